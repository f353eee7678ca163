//! Two senders with five flows each (Figures 12 to 14).

use super::super::bench::{Bench, SWCC_INCAST};
use super::super::plot::Plot;
use super::super::trace::queue;
use super::super::{FigureError, Measured};
use super::drain::{DRAINED, QUEUE, drain};
use super::rate::number;
use super::{DCQCN, HPCC, TIMELY};
use crate::results::Results;

/// The mean time of a flow from its first post to its last completion, in µs.
fn mean_fct(results: &Results) -> f64 {
    let ends = results.flows.iter().filter_map(|flow| Some(flow.fct()?.as_secs_f64() * 1e6));
    let times: Vec<f64> = ends.collect();
    times.iter().sum::<f64>() / number(times.len() as u64)
}

/// From the top of the queue's first rise until it has drained, in µs: the first rise ends where the queue is back
/// below [`DRAINED`].
fn first_drain(results: &Results) -> f64 {
    let readings = queue(results, QUEUE);
    let Some(start) = readings.iter().position(|(_, octets)| *octets > DRAINED) else { return 0.0 };
    let rise = &readings[start..];
    let end = rise.iter().position(|(_, octets)| *octets <= DRAINED).unwrap_or(rise.len() - 1);
    let top = rise[..=end].iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(rise[0].0, |top| top.0);
    (rise[end].0 - top) * 1e6
}

fn highest(results: &Results) -> f64 {
    queue(results, QUEUE).iter().map(|reading| reading.1).fold(0.0, f64::max) / 1e3
}

fn ratio(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / b).collect()
}

/// The queue of the first seed.
fn line(runs: &[Results]) -> Vec<(f64, f64)> {
    queue(&runs[0], QUEUE).into_iter().map(|(at, octets)| (at * 1e6, octets / 1e3)).collect()
}

/// Figure 12: SwCC and a commodity NIC that halts.
pub(in super::super) fn halting(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let swcc = bench.run(SWCC_INCAST, &[("transport.control", DCQCN)])?;
    let cx5 = bench.run(SWCC_INCAST, &[("nic.model", "cx5")])?;
    let mut measured = Measured::default();
    let drains = |runs: &[Results]| runs.iter().map(first_drain).collect::<Vec<_>>();
    let fcts = |runs: &[Results]| runs.iter().map(mean_fct).collect::<Vec<_>>();
    measured.each("swcc_highest", &swcc, highest);
    measured.each("cx5_highest", &cx5, highest);
    measured.add("swcc_drain", drains(&swcc));
    measured.add("cx5_drain", drains(&cx5));
    measured.add("drain_ratio", ratio(&drains(&swcc), &drains(&cx5)));
    measured.add("swcc_fct", fcts(&swcc));
    measured.add("cx5_fct", fcts(&cx5));
    measured.add("fct_ratio", ratio(&fcts(&cx5), &fcts(&swcc)));
    measured.each("halts", &cx5, |run| {
        let halts = run.hosts.iter().filter_map(|host| host.nic.as_deref()).map(|nic| nic.halts);
        number(halts.sum())
    });
    measured.plots.push(
        Plot::new("The queue before the receiver", "time (µs)", "KB")
            .line("SwCC", line(&swcc))
            .line("cx5", line(&cx5)),
    );
    Ok(measured)
}

/// Links of 10 Gb/s with round trips of 5 µs, and of 30.
const NEAR: [(&str, &str); 3] = [("topology.rate", "10Gb/s"), ("topology.delay", "800ns"), ALL];
const FAR: [(&str, &str); 3] = [("topology.rate", "10Gb/s"), ("topology.delay", "7us"), ALL];
/// All messages are posted at once, so that it is the law which holds them back.
const ALL: (&str, &str) = ("traffic.0.depth", "2000");

/// Law, program, native twin, and the keys of the rows: the drains and their ratio, the time of a flow and what it is over
/// that with the longer round trip, and on Soft-RoCE.
type Kind = (&'static str, &'static str, &'static str, [&'static str; 6]);

const LAWS: [Kind; 3] = [
    (
        "TIMELY",
        TIMELY,
        "{ law = \"timely\" }",
        [
            "timely_drain",
            "timely_slow_drain",
            "timely_ratio",
            "timely_fct",
            "timely_slow_fct",
            "timely_soft_fct",
        ],
    ),
    (
        "DCQCN",
        DCQCN,
        "{ law = \"dcqcn\" }",
        ["dcqcn_drain", "dcqcn_slow_drain", "dcqcn_ratio", "dcqcn_fct", "dcqcn_slow_fct", "dcqcn_soft_fct"],
    ),
    (
        "HPCC",
        HPCC,
        "{ law = \"hpcc\" }",
        ["hpcc_drain", "hpcc_slow_drain", "hpcc_ratio", "hpcc_fct", "hpcc_slow_fct", "hpcc_soft_fct"],
    ),
];

/// Figures 13 and 14: the longer control loop of Soft-RoCE.
pub(in super::super) fn software(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for (name, program, native, keys) in LAWS {
        let run = |links: [(&'static str, &'static str); 3], more: &[(&'static str, &'static str)]| {
            let set: Vec<_> = links.iter().chain(more).copied().collect();
            bench.run(SWCC_INCAST, &set)
        };
        let near = run(NEAR, &[("transport.control", program)])?;
        let far = run(FAR, &[("transport.control", program)])?;
        let soft =
            run(NEAR, &[("nic.model", "soft-roce"), ("nic.mtu", "4096"), ("transport.control", native)])?;
        let drains = [&near, &far].map(|runs| runs.iter().map(|run| drain(run, QUEUE)).collect::<Vec<_>>());
        let fcts = [&near, &far, &soft].map(|runs| runs.iter().map(mean_fct).collect::<Vec<_>>());
        let values = [
            drains[0].clone(),
            drains[1].clone(),
            ratio(&drains[1], &drains[0]),
            fcts[0].clone(),
            ratio(&fcts[1], &fcts[0]),
            ratio(&fcts[2], &fcts[0]),
        ];
        keys.into_iter().zip(values).for_each(|(key, values)| measured.add(key, values));
        measured.plots.push(
            Plot::new(&format!("{name}: the queue before the receiver"), "time (µs)", "KB")
                .line("5 µs", line(&near))
                .line("30 µs", line(&far))
                .line("Soft-RoCE", line(&soft)),
        );
    }
    Ok(measured)
}
