//! From time series to lines of at most some hundred points, however long the run was.

use super::page::{Band, Line};
use crate::figures::statistics::median;
use crate::results::Results;
use crate::results::series::{Metric, Source};
use std::collections::BTreeMap;

/// Lines per plot; more are not told apart by anybody.
pub(crate) const LINES_MAX: usize = 12;
/// Buckets along the axis; a line has at most two points in each, its least and its greatest.
const BUCKETS: usize = 400;
/// Points of a line of means: with more of them, rates that swing from sample to sample fill the plot, and none is told from
/// another.
const MEANS_MAX: usize = 200;
/// Stretches of time that counts are given for.
const STRETCHES_MAX: f64 = 150.0;

/// A line's points.
#[derive(Debug, Default)]
pub(crate) struct Points {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
}

impl Points {
    pub(crate) fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }

    /// A line of these; rounded to five digits, which is more than a screen shows.
    pub(crate) fn line(&self, name: String, colour: usize, dashed: bool) -> Line {
        let thinned = self.thinned();
        let round = |values: Vec<f64>| values.into_iter().map(five_digits).collect();
        // Abscissae keep their digits: neighbouring points of a long run would else coincide.
        Line { name, colour, dashed, dots: false, x: thinned.x, y: round(thinned.y), band: None }
    }

    /// Means over `each` readings in turn, every one weighted by the time since the reading before it, of which it speaks.
    pub(crate) fn means(&self, each: usize) -> Self {
        let step = |place: usize| match place.max(1) {
            place if place < self.x.len() => self.x[place] - self.x[place - 1],
            _ => 1.0,
        };
        let mut means = Self::default();
        for first in (0..self.x.len()).step_by(each.max(1)) {
            let end = (first + each.max(1)).min(self.x.len());
            let seconds: f64 = (first..end).map(step).sum();
            let area: f64 = (first..end).map(|place| self.y[place] * step(place)).sum();
            means.push(self.x[end - 1], area / seconds.max(f64::MIN_POSITIVE));
        }
        means
    }

    /// At most two points per bucket, the least and the greatest in their order, so that no peak is lost.
    fn thinned(&self) -> Self {
        let n = self.x.len();
        if n <= 2 * BUCKETS {
            return Self { x: self.x.clone(), y: self.y.clone() };
        }
        let mut kept = Self::default();
        for bucket in 0..BUCKETS {
            let range = bucket * n / BUCKETS..(bucket + 1) * n / BUCKETS;
            let by_value = |a: &usize, b: &usize| self.y[*a].total_cmp(&self.y[*b]);
            let (Some(least), Some(most)) = (range.clone().min_by(by_value), range.max_by(by_value)) else {
                continue;
            };
            kept.push(self.x[least.min(most)], self.y[least.min(most)]);
            if least != most {
                kept.push(self.x[least.max(most)], self.y[least.max(most)]);
            }
        }
        // The ends stand where the line really begins and ends.
        kept.x[0] = self.x[0];
        if let (Some(end), Some(last)) = (kept.x.last_mut(), self.x.last()) {
            *end = *last;
        }
        kept
    }
}

pub(crate) fn five_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// A line of several runs, each of which has a value in `runs` for each of `x`: their median, in a band from the least to the
/// greatest. There are no more points than a screen shows.
pub(crate) fn of_runs(name: String, colour: usize, x: Vec<f64>, runs: &[Vec<f64>]) -> Line {
    let (mut y, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for place in 0..x.len() {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(place).copied()).collect();
        y.push(five_digits(median(&values).unwrap_or(0.0)));
        low.push(five_digits(values.iter().copied().fold(f64::INFINITY, f64::min)));
        high.push(five_digits(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
    }
    Line { name, colour, dashed: false, dots: false, x, y, band: Some(Band { low, high }) }
}

/// Every reading of a run, by metric and by place of the flow, queue, machine or table.
pub(crate) struct Readings([BTreeMap<usize, Points>; Metric::ALL.len()]);

impl Readings {
    pub(crate) fn of(results: &Results) -> Self {
        Self::only(results, &Metric::ALL)
    }

    /// Those of `metrics` alone.
    pub(crate) fn only(results: &Results, metrics: &[Metric]) -> Self {
        let mut readings = Self(Default::default());
        results.series.rows(|reading| {
            if !metrics.contains(&reading.metric) {
                return;
            }
            let (Source::Flow(place)
            | Source::Queue(place)
            | Source::Machine(place)
            | Source::Requests(place)) = reading.source;
            let points = readings.0[reading.metric as usize].entry(place as usize).or_default();
            points.push(reading.at.as_secs_f64(), reading.value);
        });
        readings
    }

    /// The points of `metric` for the flow or queue at `place`; `None` where it has none.
    pub(crate) fn get(&self, metric: Metric, place: usize) -> Option<&Points> {
        self.0[metric as usize].get(&place)
    }

    /// All flows, queues, machines or tables with readings of `metric`, by their places.
    pub(crate) fn all(&self, metric: Metric) -> impl Iterator<Item = (usize, &Points)> {
        self.0[metric as usize].iter().map(|(place, points)| (*place, points))
    }

    /// Over how many readings of `metric` in turn a mean is to be taken, so that no line has more than [`MEANS_MAX`] points.
    pub(crate) fn stretch(&self, metric: Metric) -> usize {
        means_over(self.0[metric as usize].values().map(|points| points.x.len()).max().unwrap_or(0))
    }

    /// The sum of `metric` over the flows whose places are in `range`, at each of `times`: zero where none has a reading.
    pub(crate) fn sum_at(&self, metric: Metric, range: std::ops::Range<usize>, times: &[f64]) -> Points {
        let mut sum = Points { x: times.to_vec(), y: vec![0.0; times.len()] };
        for (_, points) in self.0[metric as usize].range(range) {
            for (x, y) in points.x.iter().zip(&points.y) {
                let place = times.partition_point(|time| time < x);
                if let Some(at) = sum.y.get_mut(place) {
                    *at += y;
                }
            }
        }
        sum
    }

    /// How many flows or queues have readings of `metric`.
    pub(crate) fn sources(&self, metric: Metric) -> usize {
        self.0[metric as usize].len()
    }

    /// The sum of `metric` over all that have a reading at an instant.
    pub(crate) fn sum(&self, metric: Metric) -> Points {
        let of_all = self.0[metric as usize].values().flat_map(|points| points.x.iter().zip(&points.y));
        let mut readings: Vec<(f64, f64)> = of_all.map(|(x, y)| (*x, *y)).collect();
        readings.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut sum = Points::default();
        for together in readings.chunk_by(|(a, _), (b, _)| a == b) {
            sum.push(together[0].0, together.iter().map(|(_, y)| y).sum());
        }
        sum
    }

    /// The flows or queues with readings of `metric`, the one with the greatest `weight` first; none that weighs nothing.
    fn ranked(&self, metric: Metric, weight: impl Fn(&Points) -> f64) -> Vec<usize> {
        let weights = self.0[metric as usize].iter().map(|(place, points)| (*place, weight(points)));
        let mut weights: Vec<_> = weights.filter(|(_, weight)| *weight > 0.0).collect();
        weights.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        weights.into_iter().map(|(place, _)| place).collect()
    }

    /// The flow or queue whose `metric` peaks highest of all; none where all stay zero.
    pub(crate) fn peak(&self, metric: Metric) -> Option<(usize, &Points)> {
        let place = *self.ranked(metric, highest).first()?;
        Some((place, self.get(metric, place)?))
    }

    /// Those whose `metric` peaks highest, [`LINES_MAX`] at most, in their order.
    pub(crate) fn with_highest_peaks(&self, metric: Metric) -> Vec<usize> {
        shown(self.ranked(metric, highest))
    }

    /// Those whose `metric` adds up to the most over time, [`LINES_MAX`] at most, in their order.
    pub(crate) fn with_greatest_sums(&self, metric: Metric) -> Vec<usize> {
        shown(self.ranked(metric, |points| points.y.iter().sum()))
    }
}

/// Over how many of so many readings in turn a mean is to be taken, so that a line has no more than [`MEANS_MAX`] points.
pub(crate) fn means_over(readings: usize) -> usize {
    readings.div_ceil(MEANS_MAX).max(1)
}

fn highest(points: &Points) -> f64 {
    points.y.iter().copied().fold(0.0, f64::max)
}

fn shown(mut places: Vec<usize>) -> Vec<usize> {
    places.truncate(LINES_MAX);
    places.sort_unstable();
    places
}

/// How often something that is counted since the start happened in each stretch of a run of `seconds`, with samples at
/// `times`, which are `interval` apart but for the last; and how long a stretch is: a whole number of intervals.
pub(crate) fn per_stretch(counted: &Points, times: &[f64], seconds: f64, interval: f64) -> (f64, Points) {
    let width = stretch(seconds, interval);
    (width, counts(counted, times, seconds, width))
}

/// How long a stretch of time is of which there are no more than are told apart: a whole number of intervals.
pub(crate) fn stretch(seconds: f64, interval: f64) -> f64 {
    let interval = if interval > 0.0 { interval } else { seconds };
    interval * (seconds / interval / STRETCHES_MAX).ceil().max(1.0)
}

/// How many stretches of a width there are in so many seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and STRETCHES_MAX")]
pub(crate) fn stretches(seconds: f64, width: f64) -> usize {
    ((seconds / width).ceil() as usize).max(1)
}

/// How often it happened in each stretch of a `width`.
#[expect(clippy::cast_precision_loss, reason = "few stretches")]
pub(crate) fn counts(counted: &Points, times: &[f64], seconds: f64, width: f64) -> Points {
    let stretches = stretches(seconds, width);
    let mut counts = vec![0.0; stretches];
    let mut before = 0.0;
    for (at, value) in counted.x.iter().zip(&counted.y) {
        // A sample speaks of the time since the one before it: its middle is inside.
        let middle = 0.5 * (since(times, *at) + at);
        counts[place(middle, width, stretches)] += value - before;
        before = *value;
    }
    let mut points = Points::default();
    for (n, count) in counts.into_iter().enumerate() {
        points.push(n as f64 * width, count);
    }
    // The last stretch, too, has a right end.
    let last = points.y.last().copied().unwrap_or(0.0);
    points.push(seconds, last);
    points
}

/// When the sample before `at` was taken: the start where there is none.
pub(crate) fn since(times: &[f64], at: f64) -> f64 {
    times[..times.partition_point(|time| *time < at)].last().copied().unwrap_or(0.0)
}

/// In which of so many stretches of a `width` it is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the stretches")]
pub(crate) fn place(at: f64, width: f64, stretches: usize) -> usize {
    ((at / width).max(0.0) as usize).min(stretches - 1)
}

/// What each stretch has, over its length; the last one may be shorter than the others.
pub(crate) fn over_lengths(mut points: Points) -> Points {
    let ends: Vec<f64> = points.x.iter().skip(1).copied().collect();
    let mut share = 0.0;
    for ((from, to), seconds) in points.x.iter().zip(&ends).zip(&mut points.y) {
        share = *seconds / (to - from).max(f64::MIN_POSITIVE);
        *seconds = share;
    }
    // The right end of the last stretch.
    if let Some(last) = points.y.last_mut() {
        *last = share;
    }
    points
}

/// The cumulative distribution of `sorted` values.
#[expect(clippy::cast_precision_loss, reason = "a plot shows fewer digits than f64 holds")]
pub(crate) fn distribution(sorted: &[f64]) -> Points {
    let mut points = Points::default();
    let n = sorted.len();
    if let Some(least) = sorted.first() {
        points.push(*least, 0.0);
    }
    let step = n.div_ceil(2 * BUCKETS - 2).max(1);
    for rank in (step..n).step_by(step).chain((n > 0).then_some(n)) {
        points.push(sorted[rank - 1], rank as f64 / n as f64);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_a_single_peak_and_both_ends() {
        let mut points = Points::default();
        for n in 0..100_000 {
            points.push(f64::from(n), if n == 54_321 { 9.0 } else { 1.0 });
        }
        let line = points.line("x".into(), 0, false);
        assert!(line.x.len() <= 2 * BUCKETS);
        assert!(line.y.contains(&9.0));
        assert_eq!((line.x.first(), line.x.last()), (Some(&0.0), Some(&99_999.0)));
        assert!(line.x.is_sorted());
    }

    #[test]
    fn means_keep_what_was_moved_and_no_more_points_than_are_told_apart() {
        let mut points = Points::default();
        for n in 1..=1_000 {
            points.push(f64::from(n) * 1e-4, if n % 2 == 0 { 10e9 } else { 0.0 });
        }
        points.push(0.10005, 4e9);
        let mut readings = Readings(Default::default());
        readings.0[Metric::Goodput as usize].insert(0, points);
        let each = readings.stretch(Metric::Goodput);
        assert_eq!(each, 6, "1001 readings in 200 points");
        let means = readings.get(Metric::Goodput, 0).unwrap().means(each);
        assert_eq!(means.x.len(), 167);
        assert!(means.y[..166].iter().all(|mean| (mean - 5e9).abs() < 1.0), "{:?}", means.y);
        // Four whole intervals and half of one: the last reading counts as half.
        assert_eq!(means.x.last(), Some(&0.10005));
        assert!((means.y[166] - (2.0 * 10e9 + 0.5 * 4e9) / 4.5).abs() < 1.0, "{}", means.y[166]);
        assert_eq!(readings.stretch(Metric::Throughput), 1);
        assert_eq!(Points { x: vec![1.0], y: vec![7.0] }.means(3).y, [7.0]);
    }

    #[test]
    fn counts_per_stretch_add_up_to_what_was_counted() {
        let mut counted = Points::default();
        for n in 1..=1_000 {
            counted.push(f64::from(n) * 1e-4, f64::from(n * 3));
        }
        let (width, points) = per_stretch(&counted, &counted.x, 0.1, 1e-4);
        assert!((width - 7e-4).abs() < 1e-12, "seven samples each");
        let (right_end, counts) = points.y.split_last().unwrap();
        assert_eq!(counts.iter().sum::<f64>(), 3_000.0);
        assert!(counts[..counts.len() - 1].iter().all(|count| *count == 21.0), "{counts:?}");
        assert_eq!(counts.last(), Some(right_end));
        assert!(points.x.is_sorted());
    }

    /// A run that ends a third of an interval behind its last whole one: what happened then happened then.
    #[test]
    fn the_last_stretch_has_what_happened_in_it_however_short_it_is() {
        let mut counted = Points::default();
        for (at, value) in [(1e-4, 5.0), (2e-4, 10.0), (3e-4, 15.0), (3.3e-4, 18.0)] {
            counted.push(at, value);
        }
        let (width, points) = per_stretch(&counted, &counted.x, 3.3e-4, 1e-4);
        assert_eq!((width, points.y), (1e-4, vec![5.0, 5.0, 5.0, 3.0, 3.0]));
        assert_eq!(points.x[3..], [3.0 * 1e-4, 3.3e-4]);
        // A queue that stood still in between has no row of it; samples there were all the same.
        let sparse = Points { x: vec![3.3e-4], y: vec![3.0] };
        assert_eq!(per_stretch(&sparse, &counted.x, 3.3e-4, 1e-4).1.y, [0.0, 0.0, 0.0, 3.0, 3.0]);
    }

    #[test]
    fn a_distribution_ends_at_one() {
        let sorted: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let points = distribution(&sorted);
        assert!(points.x.len() <= 2 * BUCKETS);
        assert_eq!((points.x.last(), points.y.last()), (Some(&10_000.0), Some(&1.0)));
        let middle = points.x.partition_point(|x| *x < 5_000.0);
        assert!((points.y[middle] - 0.5).abs() < 0.01);
        assert_eq!(distribution(&[2.0]).x, [2.0, 2.0]);
    }
}
