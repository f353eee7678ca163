//! What became of a collective: its iterations, its bandwidths, and how far it is from what an idle network would give.

use crate::traffic::collective::{Algorithm, Operation};
use roci_units::{Instant, Ratio, Span};
use std::collections::BTreeMap;

/// The results of one `[[traffic]]` table of kind `collective`.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveResult {
    /// The table's place in [`Results::traffic`](super::Results::traffic).
    pub table: usize,
    /// What it does.
    pub operation: Operation,
    /// How.
    pub algorithm: Algorithm,
    /// How many ranks take part.
    pub ranks: u32,
    /// Of an operation that has one, the root.
    pub root: Option<u32>,
    /// Octets of each rank's data; where these differ the most that a rank sends or receives, its own included.
    pub bytes: u64,
    /// The most that a rank sends to others or receives from them, where that differs from rank to rank.
    pub busiest: Option<u64>,
    /// Parallel copies.
    pub channels: u32,
    /// Parts of each.
    pub chunks: u32,
    /// How many iterations were asked for.
    pub asked: u32,
    /// Those that are done.
    pub iterations: Vec<Iteration>,
    /// The least time that one takes; `None` where it never began.
    pub ideal: Option<Span>,
    /// Whether it was given up, as one of its queue pairs failed.
    pub failed: bool,
}

/// One iteration of a collective that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// When it began: all ranks had their data.
    pub start: Instant,
    /// When the first rank had received all that it was to receive.
    pub first_end: Instant,
    /// When the last one had.
    pub end: Instant,
    /// That rank's host, a place in [`Results::hosts`](super::Results::hosts).
    pub last: u16,
    /// The step that took longest; `None` where steps do not wait for one another.
    pub slowest: Option<SlowStep>,
}

/// A step of a collective, counted from 0, from when the last rank had received the step before to when the last had received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStep {
    /// Which one.
    pub step: u32,
    /// How long it took.
    pub time: Span,
    /// The host that received it last, a place in [`Results::hosts`](super::Results::hosts).
    pub host: u16,
}

impl Iteration {
    /// How long it took.
    pub fn time(&self) -> Span {
        self.end.since(self.start)
    }
}

impl CollectiveResult {
    /// The times of its iterations in seconds: the mean, the least and the most. `None` where none is done.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn times(&self) -> Option<(f64, f64, f64)> {
        let times = || self.iterations.iter().map(|it| it.time().as_secs_f64());
        let (least, most) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
        Some((times().sum::<f64>() / self.iterations.len() as f64, least, most))
    }

    /// Algorithm bandwidth: the size over the time, in bits per second.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn algorithm_bps(&self, seconds: f64) -> f64 {
        self.bytes as f64 * 8.0 / seconds
    }

    /// Bus bandwidth: what each rank must send at least over the time, in bits per second; where ranks differ, what the busiest must send or receive.
    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    pub fn bus_bps(&self, seconds: f64) -> f64 {
        if let Some(octets) = self.busiest {
            return octets as f64 * 8.0 / seconds;
        }
        let factor: Ratio = self.operation.bus_factor(self.ranks);
        self.algorithm_bps(seconds) * f64::from(factor.numerator()) / f64::from(factor.denominator())
    }

    /// The time over the ideal one.
    pub fn over_ideal(&self, seconds: f64) -> Option<f64> {
        self.ideal.map(|ideal| seconds / ideal.as_secs_f64())
    }

    /// The host that most often was done last, and how often; of several the first.
    pub fn last_most_often(&self) -> Option<(u16, usize)> {
        let mut counts = BTreeMap::new();
        for it in &self.iterations {
            *counts.entry(it.last).or_insert(0) += 1;
        }
        counts.into_iter().rev().max_by_key(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(operation: Operation) -> CollectiveResult {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let iteration = |start, end, last| Iteration {
            start: at(start),
            first_end: at(end),
            end: at(end),
            last,
            slowest: None,
        };
        CollectiveResult {
            table: 0,
            operation,
            algorithm: Algorithm::Ring,
            ranks: 4,
            root: None,
            bytes: 1_000_000,
            busiest: None,
            channels: 1,
            chunks: 1,
            asked: 3,
            iterations: vec![iteration(0, 100, 3), iteration(150, 230, 1), iteration(300, 420, 3)],
            ideal: Some(Span::from_micros(80)),
            failed: false,
        }
    }

    #[test]
    fn bandwidths_are_those_of_nccl_tests() {
        let sum = result(Operation::AllReduce);
        let (mean, least, most) = sum.times().unwrap();
        assert!(
            (mean - 100e-6).abs() < 1e-12 && (least - 80e-6).abs() < 1e-12 && (most - 120e-6).abs() < 1e-12
        );
        // 1 MB in 100 µs, and 2·3/4 of it.
        assert!((sum.algorithm_bps(100e-6) - 80e9).abs() < 1.0);
        assert!((sum.bus_bps(100e-6) - 120e9).abs() < 1.0);
        assert!((result(Operation::AllGather).bus_bps(100e-6) - 60e9).abs() < 1.0);
        assert!((result(Operation::Broadcast).bus_bps(100e-6) - 80e9).abs() < 1.0);
        assert!((sum.over_ideal(mean).unwrap() - 1.25).abs() < 1e-9);
        assert_eq!(sum.last_most_often(), Some((3, 2)));
    }

    #[test]
    fn of_hosts_that_were_last_as_often_the_first_is_told() {
        let mut one = result(Operation::AllReduce);
        one.iterations.truncate(2);
        assert_eq!(one.last_most_often(), Some((1, 1)));
        one.iterations.clear();
        assert_eq!((one.last_most_often(), one.times()), (None, None));
    }
}
