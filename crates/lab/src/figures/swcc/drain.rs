//! The time in which a queue drains, against the delay of the control loop (Figure 1).

use super::super::bench::{Bench, SWCC_DRAIN};
use super::super::plot::Plot;
use super::super::statistics::mean;
use super::super::trace::queue;
use super::super::{FigureError, Measured};
use crate::results::Results;

/// Twice Kmin: a queue above it has not drained.
pub(super) const DRAINED: f64 = 10_000.0;

/// Delays of the plot, in µs; what the NIC itself takes comes on top, and is about 3.
const DELAYS: [&str; 7] = ["0us", "1us", "3us", "10us", "20us", "50us", "100us"];
/// Delays with which the loop takes 3.1 and 23 µs, as an ASIC's and a CPU's.
const ASIC: &str = "0us";
const CPU: &str = "20us";

/// The gap between CNPs, the first alpha, and the keys of the rows.
const VARIANTS: [(&str, &str, &str); 6] = [
    ("0us", "1", "ratio_0_1"),
    ("4us", "1", "ratio_4_1"),
    ("50us", "1", "ratio_50_1"),
    ("0us", "1/16", "ratio_0_16"),
    ("4us", "1/16", "ratio_4_16"),
    ("50us", "1/16", "ratio_50_16"),
];

/// From the first instant at which the queue of port `name` stands above [`DRAINED`] to the last, in µs.
pub(super) fn drain(results: &Results, name: &str) -> f64 {
    span_above(&queue(results, name)) * 1e6
}

/// From the first to the last of `readings` above [`DRAINED`], in seconds.
fn span_above(readings: &[(f64, f64)]) -> f64 {
    let mut above = readings.iter().filter(|(_, octets)| *octets > DRAINED).map(|(at, _)| *at);
    let first = above.next();
    first.zip(above.next_back().or(first)).map_or(0.0, |(first, last)| last - first)
}

/// From the first instant at which it stands above [`DRAINED`] to the first at which it does no more, in µs: for a queue
/// that never stays empty, because more is offered all the time. A rise of less than [`PASSING`] is none.
pub(super) fn first_rise(results: &Results, name: &str) -> f64 {
    rise(&queue(results, name)) * 1e6
}

/// In seconds: a packet more or less.
const PASSING: f64 = 10e-6;

/// How long the first of the rises of `readings` lasts that is more than a passing one, in seconds; 0 where none is.
fn rise(readings: &[(f64, f64)]) -> f64 {
    let mut since = None;
    for &(at, octets) in readings {
        match since {
            None if octets > DRAINED => since = Some(at),
            Some(start) if octets <= DRAINED => {
                if at - start >= PASSING {
                    return at - start;
                }
                since = None;
            }
            _ => {}
        }
    }
    since.zip(readings.last()).map_or(0.0, |(start, last)| last.0 - start)
}

/// Runs with a control loop that takes `delay` more than the NIC does: how long the queue takes to drain, for each seed.
fn drains(bench: &Bench<'_>, delay: &str, gap: &str, alpha: &str) -> Result<Vec<f64>, FigureError> {
    let set = [
        ("nic.with.congestion.delay", delay),
        ("transport.control.cnp_gap", gap),
        ("transport.control.first_alpha", alpha),
    ];
    let runs = bench.run(SWCC_DRAIN, &set)?;
    Ok(runs.iter().map(|run| drain(run, QUEUE)).collect())
}

/// The queue before the receiver.
pub(super) const QUEUE: &str = "s0>h0:3";

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut line = Vec::new();
    let mut least = f64::INFINITY;
    let mut before = None;
    for delay in DELAYS {
        let times = drains(bench, delay, "50us", "1")?;
        let micros = delay.trim_end_matches("us").parse::<f64>().unwrap_or(f64::NAN);
        line.push((micros, times[0]));
        let mean = mean(&times).unwrap_or(f64::NAN);
        if let Some(before) = before.replace(mean) {
            least = least.min(mean / before);
        }
        match delay {
            ASIC => measured.add("asic", times),
            CPU => measured.add("cpu", times),
            _ => {}
        }
    }
    measured.add("grows", vec![least; bench.seeds().len()]);
    for (gap, alpha, key) in VARIANTS {
        let (fast, slow) = (drains(bench, ASIC, gap, alpha)?, drains(bench, CPU, gap, alpha)?);
        measured.add(key, slow.iter().zip(&fast).map(|(slow, fast)| slow / fast).collect());
    }
    measured.plots.push(
        Plot::new("Draining", "delay of CNPs besides the NIC's (µs)", "time above 2 Kmin (µs)")
            .line("gap 50 µs", line),
    );
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rise_is_one_that_lasts() {
        let high = DRAINED + 1.0;
        let passing = [(1e-6, high), (2e-6, DRAINED)];
        assert!(rise(&passing).abs() < 1e-12);
        let lasting = [(30e-6, high), (50e-6, high), (70e-6, DRAINED), (80e-6, high)];
        assert!((rise(&[&passing[..], &lasting].concat()) - 40e-6).abs() < 1e-12);
        assert!((rise(&lasting[..2]) - 20e-6).abs() < 1e-12, "it lasts to the end");
    }

    #[test]
    fn a_queue_drains_from_the_first_instant_above_to_the_last() {
        let high = DRAINED + 1.0;
        assert!(span_above(&[(1e-3, DRAINED)]).abs() < 1e-12, "it was never above");
        assert!(span_above(&[(1e-3, high)]).abs() < 1e-12);
        let twice = [(100e-6, high), (101e-6, 0.0), (180e-6, high), (330e-6, high), (331e-6, DRAINED)];
        assert!((span_above(&twice) - 230e-6).abs() < 1e-12);
    }
}
