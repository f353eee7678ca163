//! The delay of the control loop where the law is in different places (Table 1 and Figure 7).

use super::super::bench::{Bench, SWCC_DELAY};
use super::super::plot::Plot;
use super::super::statistics::{count, ratios};
use super::super::{FigureError, Measured};
use super::PACED;
use crate::output::digits::float;
use crate::results::Results;

/// What a place of the law is called, the scenario that is run for it, and the keys of its rows.
type Place = (&'static str, &'static [(&'static str, &'static str)], [&'static str; 2]);

/// A law that hears each acknowledgement; on SwCC its prototype's, which is asked before each packet and hears of data. The
/// commodity NICs fetch each request.
const PLACES: [Place; 5] = [
    (
        "CPU (Soft-RoCE)",
        &[
            ("nic.model", "soft-roce"),
            ("transport.control", TIMELY),
            ("traffic.0.rate", "20000"),
            ("stop", "50ms"),
        ],
        ["cpu", "cpu_spread"],
    ),
    (
        "ASIC (cx5)",
        &[("nic.model", "cx5"), ("transport.control", TIMELY), KNOWN[0], KNOWN[1]],
        ["asic", "asic_spread"],
    ),
    ("FPGA in HDL", &[("nic.model", "hdl"), ("transport.control", TIMELY)], ["hdl", "hdl_spread"]),
    (
        "SoC (BlueField-3)",
        &[("nic.model", "bluefield3"), ("transport.control", TIMELY), KNOWN[0], KNOWN[1]],
        ["soc", "soc_spread"],
    ),
    ("SwCC", &[("nic.model", "swcc"), ("transport.control", PACED)], ["swcc", "swcc_spread"]),
];

/// Contexts and translations are on the chip, as they are where a connection is used again. Here each message has a queue
/// pair and memory of its own, for which the presets' caches would have to ask the host.
const KNOWN: [(&str, &str); 2] = [("nic.with.context.entries", "all"), ("nic.with.mtt.entries", "all")];

const TIMELY: &str = "{ law = \"timely\" }";

/// Times from the post to the sender's completion in µs, in order.
fn round_trips(results: &Results) -> Vec<f64> {
    let ends = results.flows.iter().filter_map(|flow| Some(flow.fct()?.as_secs_f64() * 1e6));
    let mut times: Vec<f64> = ends.collect();
    times.sort_by(f64::total_cmp);
    times
}

fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// What an event takes a core of the sender, from its turn to its end, in µs.
fn event(results: &Results) -> f64 {
    let cores = results.hosts[0].nic.as_deref().map(|nic| nic.cores).unwrap_or_default();
    match cores.sends + cores.receives {
        0 => 0.0,
        events => cores.busy.as_secs_f64() * 1e6 / float(events),
    }
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut plot = Plot::new("Round trip of a WRITE of 1 KB", "share of messages (%)", "µs");
    let mut delays = Vec::new();
    for (name, set, [delay, spread]) in PLACES {
        let runs = bench.control(SWCC_DELAY, set)?;
        let times: Vec<Vec<f64>> = runs.iter().map(round_trips).collect();
        let values = runs.iter().zip(&times).map(|(run, times)| percentile(times, 50) + event(run));
        let values: Vec<f64> = values.collect();
        let wide =
            |times: &Vec<f64>| 100.0 * (percentile(times, 99) - percentile(times, 1)) / percentile(times, 50);
        measured.add(delay, values.clone());
        measured.add(spread, times.iter().map(wide).collect());
        let line = (0..=20).map(|step| (count(step) * 5.0, percentile(&times[0], step * 5)));
        plot = plot.line(name, line.collect());
        if name == "SwCC" {
            measured.add("swcc_trip", times.iter().map(|times| percentile(times, 50)).collect());
        }
        delays.push(values);
    }
    measured.plots.push(plot);
    let over = |a: usize, b: usize| ratios(&delays[a], &delays[b]);
    measured.add("hdl_over_asic", over(2, 1));
    measured.add("swcc_over_hdl", over(4, 2));
    measured.add("soc_over_swcc", over(3, 4));
    measured.add("cpu_over_asic", over(0, 1));
    Ok(measured)
}
