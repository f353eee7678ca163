//! One connection: throughput against message size, message rate, latency (Figure 10).

use super::super::bench::{Bench, SINGLE};
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use super::{slow_path_cpu, wire_gbps};
use crate::results::Results;

/// Message sizes of the plot.
const SIZES: [&str; 9] = ["64B", "128B", "256B", "512B", "1KiB", "2KiB", "4KiB", "16KiB", "64KiB"];
/// A message at a time, in its request, as perftest's latency tests send it. The second is there that the first is
/// heard of: a flow that has ended takes its queue pairs with it. Caches are warm.
const LATENCY: [(&str, &str); 5] = [
    ("traffic.0.message", "64B"),
    ("traffic.0.depth", "1"),
    ("traffic.0.count", "2"),
    ("nic.with.send.inline", "64B"),
    ("nic.with.mtt.entries", "all"),
];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut plot = Plot::new("One connection", "octets of a message", "wire throughput (Gb/s)");
    for nic in ["srnic", "cx6"] {
        let mut line = Vec::new();
        for size in SIZES {
            let runs = bench.run(SINGLE, &[("nic.model", nic), ("traffic.0.message", size)])?;
            let key = match (nic, size) {
                ("srnic", "64B") => Some(("srnic_rate", "srnic_64")),
                ("cx6", "64B") => Some(("cx6_rate", "cx6_64")),
                _ => None,
            };
            if let Some((rate, throughput)) = key {
                measured.each(rate, &runs, message_rate);
                measured.each(throughput, &runs, wire_gbps);
            }
            match (nic, size) {
                ("srnic", "4KiB") => measured.each("srnic_4k", &runs, wire_gbps),
                ("srnic", "64KiB") => {
                    measured.each("srnic_64k", &runs, wire_gbps);
                    measured.each("cpu", &runs, slow_path_cpu);
                }
                ("cx6", "4KiB") => measured.each("cx6_4k", &runs, wire_gbps),
                _ => {}
            }
            line.push((octets(size), wire_gbps(&runs[0])));
        }
        plot = plot.line(nic, line);
    }
    measured.plots.push(plot);

    let latency = |nic: &str, more: &[(&str, &str)]| {
        let set: Vec<_> = [("nic.model", nic)].iter().chain(&LATENCY).chain(more).copied().collect();
        bench.run(SINGLE, &set)
    };
    let srnic = latency("srnic", &[])?;
    let cached = latency("srnic", &[("nic.with.receive_wqe.entries", "all")])?;
    measured.each("srnic_latency", &srnic, one_way);
    measured.each("srnic_latency_cached", &cached, one_way);
    let fetched = latency("srnic", &[("nic.with.send.inline", "0B")])?;
    measured.each("srnic_latency_fetched", &fetched, one_way);
    measured.add("receive_wqe", srnic.iter().zip(&cached).map(|(a, b)| one_way(a) - one_way(b)).collect());
    let warm = ["context", "wqe", "receive_wqe"].map(|part| format!("nic.with.{part}.entries"));
    let warm: Vec<_> = warm.iter().map(|key| (key.as_str(), "all")).collect();
    measured.each("cx6_latency", &latency("cx6", &warm)?, one_way);
    Ok(measured)
}

fn octets(size: &str) -> f64 {
    size.parse::<roci_units::Bytes>()
        .map_or(f64::NAN, |bytes| f64::from(u32::try_from(bytes.0).unwrap_or(u32::MAX)))
}

/// Messages completed, in millions a second.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn message_rate(results: &Results) -> f64 {
    let messages = results.flows[0].delivered / 64;
    messages as f64 * 1e-6 / results.simulated.as_secs_f64()
}

/// From the post to the receiver's completion, in µs.
fn one_way(results: &Results) -> f64 {
    let flow = &results.flows[0];
    results.first_received.map_or(f64::NAN, |received| received.since(flow.start).as_secs_f64() * 1e6)
}
