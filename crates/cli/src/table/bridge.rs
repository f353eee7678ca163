//! What a switch on a real network has done.

use super::{lines, table};
use crate::format::{float, rate, size, time};
use roci_endpoint::bridge::Served;
use std::fmt::Write as _;

/// A line for each port, and how well time was kept.
pub(crate) fn bridge(names: &[&str], served: &Served) -> String {
    let mut table = table(&[
        "port",
        "from host",
        "to host",
        "rate",
        "lost",
        "dropped",
        "marked",
        "pauses",
        "paused",
        "most queued",
    ]);
    let seconds = served.passed.as_secs_f64();
    for (name, port) in names.iter().zip(&served.report.ports) {
        table.add_row([
            (*name).to_owned(),
            port.received.to_string(),
            port.sent.to_string(),
            rate(float(port.sent_octets) * 8.0 / seconds),
            port.lost.to_string(),
            port.dropped.to_string(),
            port.marked.to_string(),
            port.pauses.to_string(),
            time(port.paused.as_secs_f64()),
            size(port.peak),
        ]);
    }
    let mut text = format!("{}\n", lines(&table));
    let (mean, most) = served.late;
    let _ = writeln!(
        text,
        "  {} in the buffer at most; frames were handed over {} late on average, {} at most",
        size(served.report.peak),
        time(mean.as_secs_f64()),
        time(most.as_secs_f64())
    );
    let refused: u64 = served.report.ports.iter().map(|port| port.refused).sum();
    if refused > 0 {
        let _ = writeln!(
            text,
            "  {refused} frames were refused: longer than a wire carries, or not split and summed yet; at the host behind, \
             `ethtool -K DEVICE tx off tso off gso off`, and here `ethtool -K PORT gro off`"
        );
    }
    let untaken: u64 = served.untaken.iter().sum();
    if untaken > 0 {
        let _ = writeln!(
            text,
            "  {untaken} frames were not taken by the hosts' devices: those were down, full or gone, or have an MTU too small"
        );
    }
    let missed: u64 = served.missed.iter().sum();
    if missed > 0 {
        let _ = writeln!(
            text,
            "  {missed} frames were dropped before they were read, which came faster than that"
        );
    }
    let gone: Vec<_> =
        names.iter().zip(&served.gone).filter(|(_, gone)| **gone).map(|(name, _)| *name).collect();
    if !gone.is_empty() {
        let _ = writeln!(text, "  gone before the end: {}", gone.join(", "));
    }
    text
}
