//! Hundreds of boards behind fast uplinks, and the operating point that a sweep finds.

use super::super::bench::{Bench, SCALE};
use super::super::plot::Plot;
use super::super::statistics::{count, mean};
use super::super::trace::{drops, pauses};
use super::super::{FigureError, Measured};
use crate::results::Results;
use crate::results::statistics::jain;

/// The increase timers that the sweep tries: Table II's, and faster ones.
const TIMERS: [(&str, &str); 4] =
    [("p99_2ms", "2ms"), ("p99_500us", "500us"), ("p99_150us", "150us"), ("p99_55us", "55us")];
/// Boards, which all send at each trigger.
const BOARDS: usize = 256;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut best: Option<(f64, &str, Vec<Results>)> = None;
    for (key, timer) in TIMERS {
        let runs = bench.run(SCALE, &[("transport.control.increase_timer", timer)])?;
        let tails: Vec<f64> = runs.iter().map(tail).collect();
        let mean = mean(&tails).unwrap_or(f64::INFINITY);
        measured.add(key, tails);
        if best.as_ref().is_none_or(|(least, ..)| mean < *least) {
            best = Some((mean, timer, runs));
        }
    }
    let (_, timer, runs) = best.expect("the sweep has values");
    measured.each("jain", &runs, fairness);
    measured.each("drops", &runs, drops);
    measured.each("completed", &runs, |results| {
        100.0 * count(results.completed().count()) / count(results.flows.len())
    });
    measured.each("pauses", &runs, pauses);
    measured.each("used", &runs, |results| results.goodput_to_the_last_end_bps().unwrap_or(f64::NAN) / 1e9);
    measured.remarks.push(format!("The sweep's operating point is an increase timer of {timer}."));
    let times = runs[0].completion_times();
    let all = count(times.values().len());
    let points = times.values().iter().enumerate().map(|(place, time)| (time * 1e3, count(place + 1) / all));
    measured.plots.push(
        Plot::new(
            "Completion times of the events at the operating point",
            "completion time (ms)",
            "share of boards",
        )
        .line("distribution", points.collect()),
    );
    Ok(measured)
}

/// The 99th percentile of the completion times, in ms.
fn tail(results: &Results) -> f64 {
    results.completion_times().percentile(99).map_or(f64::NAN, |seconds| seconds * 1e3)
}

/// Jain's index of the boards' goodput within one trigger, averaged over the triggers.
fn fairness(results: &Results) -> f64 {
    let goodputs: Vec<f64> =
        results.flows.iter().map(|flow| flow.fct().map_or(0.0, |fct| 1.0 / fct.as_secs_f64())).collect();
    let indices: Vec<f64> = goodputs.chunks(BOARDS).filter_map(jain).collect();
    mean(&indices).unwrap_or(f64::NAN)
}
