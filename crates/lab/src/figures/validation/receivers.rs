//! What receiver-driven transports promise: Homa's short messages hardly wait at 80 % load (Montazeri et al., SIGCOMM
//! 2018), and NDP fills a link in an incast without losing a header (Handley et al., SIGCOMM 2017).

use super::super::bench::{Bench, HOMA, NDP};
use super::super::statistics::{count, median};
use super::super::trace::{drops, octets};
use super::super::{FigureError, Measured};
use crate::results::Results;
use std::ops::RangeInclusive;

/// Octets of messages that count as short, of longer ones, and of long ones.
const SHORT: RangeInclusive<u64> = 0..=10_000;
const MEDIUM: RangeInclusive<u64> = 10_001..=100_000;
const LONG: RangeInclusive<u64> = 1_000_001..=u64::MAX;
/// The receiver's link in b/s, as in the scenario.
const LINK: f64 = 10e9;
/// Room for so few headers that an incast overflows it: some dozen.
const FEW_HEADERS: &str = "1KB";

pub(in super::super) fn homa(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let runs = bench.run(HOMA, &[])?;
    measured.each("median", &runs, |results| median(&slowdowns(results, &SHORT)).unwrap_or(f64::NAN));
    measured.each("tail", &runs, |results| tail(slowdowns(results, &SHORT)));
    measured.each("medium", &runs, |results| tail(slowdowns(results, &MEDIUM)));
    measured.each("long", &runs, |results| tail(slowdowns(results, &LONG)));
    measured.each("incomplete", &runs, incomplete);
    measured.each("drops", &runs, drops);
    measured.each("again", &runs, again);
    Ok(measured)
}

/// Packets that a sender of NDP's sends before it is pulled, by default.
const FIRST_WINDOW: f64 = 15.0;

pub(in super::super) fn ndp(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let runs = bench.run(NDP, &[])?;
    measured.each("incomplete", &runs, incomplete);
    measured.each("drops", &runs, drops);
    measured.each("again", &runs, again);
    measured.each("late", &runs, |results| again(results) / (count(results.flows.len()) * FIRST_WINDOW));
    measured.each("timeouts", &runs, timeouts);
    measured.each("goodput", &runs, goodput);
    let runs = bench.run(NDP, &[("switch.trimming.headers", FEW_HEADERS)])?;
    measured.each("few_incomplete", &runs, incomplete);
    measured.each("few_drops", &runs, drops);
    measured.each("few_returned", &runs, |results| {
        octets(results.switches.iter().map(|switch| switch.returned).sum())
    });
    measured.each("few_timeouts", &runs, timeouts);
    measured.each("few_goodput", &runs, goodput);
    Ok(measured)
}

/// Payload until the last message ended, of what the receiver's link carries.
fn goodput(results: &Results) -> f64 {
    let last = results.completed().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max);
    octets(results.completed().map(|flow| flow.bytes).sum()) * 8.0 / last / LINK * 100.0
}

fn timeouts(results: &Results) -> f64 {
    results.flows.iter().map(|flow| f64::from(flow.timeouts)).sum()
}

/// Completion times over those on an idle path, of messages of some lengths.
fn slowdowns(results: &Results, lengths: &RangeInclusive<u64>) -> Vec<f64> {
    let those = results.completed().filter(|flow| lengths.contains(&flow.bytes));
    those.filter_map(|flow| flow.slowdown()).collect()
}

/// The 99th percentile.
fn tail(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(f64::NAN)
}

fn incomplete(results: &Results) -> f64 {
    count(results.flows.len() - results.completed().count())
}

/// Packets sent again.
fn again(results: &Results) -> f64 {
    results.flows.iter().map(|flow| f64::from(flow.retransmitted)).sum()
}
