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
            "  {} refused: longer than a wire carries, or not split and summed yet; at the host behind, \
             `ethtool -K DEVICE tx off tso off gso off`, and here `ethtool -K PORT gro off`",
            frames(refused)
        );
    }
    let untaken: u64 = served.untaken.iter().sum();
    if untaken > 0 {
        let _ = writeln!(
            text,
            "  {} not taken by the hosts' devices: they were down, full or gone, or have an MTU too small",
            frames(untaken)
        );
    }
    let missed: u64 = served.missed.iter().sum();
    if missed > 0 {
        let _ =
            writeln!(text, "  {} dropped before they were read, which came faster than that", frames(missed));
    }
    let gone: Vec<_> =
        names.iter().zip(&served.gone).filter(|(_, gone)| **gone).map(|(name, _)| *name).collect();
    if !gone.is_empty() {
        let _ = writeln!(text, "  gone before the end: {}", gone.join(", "));
    }
    text
}

/// `1 frame was`, `2 frames were`.
fn frames(count: u64) -> String {
    if count == 1 { "1 frame was".to_owned() } else { format!("{count} frames were") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_endpoint::bridge::{Counts, Report};
    use roci_units::Span;

    #[test]
    fn a_single_frame_is_one_and_a_rate_is_the_mean_over_all_the_time() {
        let port = |sent_octets, refused| Counts { sent_octets, refused, ..Counts::default() };
        let served = |refused, untaken| Served {
            passed: Span::from_millis(2_000),
            report: Report { ports: vec![port(250_000_000, refused), port(0, 0)], ..Report::default() },
            untaken: vec![0, untaken],
            ..Served::default()
        };
        let one = bridge(&["r0", "r1"], &served(1, 1));
        assert!(one.contains("1 frame was refused") && one.contains("1 frame was not taken"), "{one}");
        assert!(one.contains("1.000 Gb/s"), "{one}");
        assert!(bridge(&["r0", "r1"], &served(2, 3)).contains("3 frames were not taken"));
        assert!(!bridge(&["r0", "r1"], &served(0, 0)).contains("frame "), "there was none");
    }
}
