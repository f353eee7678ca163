//! Three boards, one server, without DCQCN (Figure 11) and with it (Figure 12).

use super::super::bench::{Bench, THREE};
use super::super::statistics::{coefficient_of_variation, count, mean, median};
use super::super::trace::{Trace, drops};
use super::super::{FigureError, Measured};
use super::incast::{aggregate, bins, throughputs};
use crate::output::digits::float;
use crate::results::statistics::jain;
use crate::results::{FlowStatus, Results};

/// The bins in which chaos is measured, in seconds.
const BIN: f64 = 0.01;
/// How long after a departure the shares are measured, in seconds.
const REDISTRIBUTION: f64 = 0.1;

/// What makes the test bed of Figure 11: the limiter off, nothing lossless, and a small buffer.
const LOSSY: [(&str, &str); 5] = [
    ("stop", "1s"),
    ("switch.buffer", "256KB"),
    ("switch.pfc", "false"),
    ("switch.ecn", "false"),
    ("transport.control", "{ law = \"none\" }"),
];
/// What a board's memory might bound; nothing hangs on it.
const BOUNDED: (&str, &str) = ("transport.max_in_flight", "64");

/// Figure 11: the limiter is off, and so is PFC.
pub(in super::super) fn without_dcqcn(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(THREE, &LOSSY)?;
    let mut measured = Measured::default();
    measured.each("variation", &runs, |results| {
        let each = Trace::all(results)
            .into_iter()
            .map(|trace| coefficient_of_variation(&in_bins(&trace)).unwrap_or(0.0));
        each.fold(f64::INFINITY, f64::min)
    });
    measured.each("jain", &runs, median_jain);
    measured.each("drops", &runs, drops);
    measured
        .each("timeouts", &runs, |results| results.flows.iter().map(|flow| f64::from(flow.timeouts)).sum());
    measured.each("aggregate", &runs, |results| aggregate(results, results.simulated.as_secs_f64()));
    let bounded: Vec<(&str, &str)> = LOSSY.into_iter().chain([BOUNDED]).collect();
    let bounded = bench.run(THREE, &bounded)?;
    measured.each("bounded_jain", &bounded, median_jain);
    measured
        .each("bounded_aggregate", &bounded, |results| aggregate(results, results.simulated.as_secs_f64()));
    let lossless: Vec<(&str, &str)> = LOSSY.into_iter().chain([("switch.pfc", "true")]).collect();
    let control = bench.control(THREE, &lossless)?;
    measured.each("control_jain", &control, median_jain);
    measured.each("control_variation", &control, |results| {
        let each = Trace::all(results)
            .into_iter()
            .map(|trace| coefficient_of_variation(&in_bins(&trace)).unwrap_or(0.0));
        each.fold(0.0, f64::max)
    });
    measured.plots.push(throughputs("Limiter off, PFC off: goodput of each board", &runs[0]));
    measured.plots.push(throughputs("Limiter off, PFC on: goodput of each board", &control[0]));
    Ok(measured)
}

/// Figure 12: the limiters are on, and nothing needs to be lossless.
pub(in super::super) fn with_dcqcn(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(THREE, &[])?;
    let mut measured = Measured::default();
    for (place, (least, most)) in
        [("three_least", "three_most"), ("two_least", "two_most"), ("one_least", "one_most")]
            .into_iter()
            .enumerate()
    {
        let shares = |results: &Results| plateau(results, place).shares;
        measured.each(least, &runs, |results| shares(results).into_iter().fold(f64::INFINITY, f64::min));
        measured.each(most, &runs, |results| shares(results).into_iter().fold(0.0, f64::max));
    }
    measured.each("shortest", &runs, |results| {
        (0..3).map(|place| plateau(results, place).seconds).fold(f64::INFINITY, f64::min)
    });
    measured.each("aggregate", &runs, |results| aggregate(results, last_end(results)));
    measured.each("seconds", &runs, last_end);
    measured.each("drops", &runs, drops);
    measured.each("retransmitted", &runs, |results| {
        float(results.flows.iter().map(|flow| u64::from(flow.retransmitted)).sum())
    });
    measured.each("completed", &runs, |results| {
        count(results.flows.iter().filter(|flow| flow.status == FlowStatus::OK).count())
    });
    measured
        .plots
        .push(throughputs("DCQCN with the parameters of Table II: goodput of each board", &runs[0]));
    Ok(measured)
}

/// The time in which the same flows are alive, its beginning left out, and what each of them gets.
pub(super) struct Plateau {
    pub(super) seconds: f64,
    pub(super) shares: Vec<f64>,
}

/// When the flows ended, in seconds, in order; one that did not, at the end of the run.
pub(super) fn ends(results: &Results) -> Vec<f64> {
    let mut ends: Vec<f64> =
        results.flows.iter().map(|flow| flow.end.min(results.simulated).as_secs_f64()).collect();
    ends.sort_by(f64::total_cmp);
    ends
}

fn last_end(results: &Results) -> f64 {
    ends(results).last().copied().unwrap_or(0.0)
}

/// The plateau before the departure number `place`.
fn plateau(results: &Results, place: usize) -> Plateau {
    let ends = ends(results);
    let from = REDISTRIBUTION + if place == 0 { 0.0 } else { ends[place - 1] };
    let to = ends[place];
    if to <= from {
        return Plateau { seconds: 0.0, shares: vec![0.0] };
    }
    let alive = Trace::all(results).into_iter();
    let alive = alive.filter(|trace| trace.flow.end.min(results.simulated).as_secs_f64() >= to);
    Plateau { seconds: to - from, shares: alive.map(|trace| trace.goodput(from, to)).collect() }
}

/// Goodput over the whole run, in bins.
fn in_bins(trace: &Trace<'_>) -> Vec<f64> {
    let end = trace.readings.last().map_or(0.0, |(at, _)| *at);
    bins(trace, BIN, end + 1e-9).into_iter().map(|(_, value)| value).collect()
}

/// The median over the bins of Jain's index among the boards. A bin in which nothing moves is left out.
fn median_jain(results: &Results) -> f64 {
    let boards: Vec<Vec<f64>> = Trace::all(results).iter().map(in_bins).collect();
    let bins = boards.iter().map(Vec::len).min().unwrap_or(0);
    let shares = (0..bins).map(|bin| boards.iter().map(|board| board[bin]).collect::<Vec<f64>>());
    let indices: Vec<f64> = shares.filter_map(|shares| jain(&shares)).collect();
    debug_assert!(mean(&indices).is_some_and(|mean| mean <= 1.0 + 1e-9));
    median(&indices).unwrap_or(f64::NAN)
}
