//! From instants to what perftest prints.

use roci_units::{Instant, Span};

/// One line of a result table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row {
    /// Of a test of bandwidth.
    Bandwidth(Bandwidth),
    /// Of a test of latency with a number of iterations.
    Latency(Latency),
    /// Of a test of latency for a time.
    Rate(Rate),
}

/// How much went through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bandwidth {
    /// Octets of a message.
    pub size: u64,
    /// Messages, of all queue pairs.
    pub iterations: u64,
    /// The best average over any part of the run, octets per second; `None` where it was not looked for: only who sends does, a
    /// number of messages, and as perftest at most 20 000 of each queue pair.
    pub peak: Option<f64>,
    /// Over the whole run, octets per second. Of both directions together where a test has two.
    pub average: f64,
    /// Messages per second, in the same way.
    pub messages: f64,
}

/// How long messages took: half a round trip, of READs a whole one; in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Octets of a message.
    pub size: u64,
    /// Messages.
    pub iterations: u64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// The median. As perftest does, this and all that follow leave out the two longest.
    pub typical: f64,
    /// The mean.
    pub average: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// 99 of 100 took no longer.
    pub percentile_99: f64,
    /// 999 of 1000 took no longer.
    pub percentile_99_9: f64,
}

/// How often messages went to and fro.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Octets of a message.
    pub size: u64,
    /// Messages.
    pub iterations: u64,
    /// The mean time of one, in microseconds, as in [`Latency`].
    pub average: f64,
    /// Round trips per second.
    pub per_second: f64,
}

impl Bandwidth {
    /// What `iterations` messages in `time` make.
    pub(crate) fn new(size: u64, iterations: u64, time: Span, peak: Option<f64>) -> Self {
        let seconds = time.as_secs_f64().max(1e-12);
        let messages = iterations as f64 / seconds;
        Self { size, iterations, peak, average: messages * size as f64, messages }
    }

    /// Both directions together.
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            peak: self.peak.zip(other.peak).map(|(ours, theirs)| ours + theirs),
            average: self.average + other.average,
            messages: self.messages + other.messages,
            ..self
        }
    }
}

/// The most messages of one queue pair for which the peak is looked for, as in perftest.
pub(crate) const PEAK_MAX: u64 = 20_000;

/// The best part of a run: from the post of any message to the end of any later one.
///
/// Of all pairs of a post and an end, of which there are the square of the messages, few can be the best. Each post is a point, of its
/// instant and of the messages before it, and each end one of its instant and of the messages until it; the best part is the steepest
/// way from one of the former to one of the latter. It begins on the lower convex hull of the posts, and along that the steepness
/// toward an end rises and then falls.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    /// The hull, from left to right.
    hull: Vec<(Instant, u64)>,
    posted: u64,
    done: u64,
    /// How many messages in how many picoseconds.
    best: Option<(i128, i128)>,
}

impl Peak {
    /// So many messages are posted, no earlier than all that has been told.
    pub(crate) fn post(&mut self, now: Instant, count: u64) {
        let point = (now, self.posted);
        self.posted += count;
        // Of those that are posted at once the first has the most messages behind it.
        if count == 0 || self.hull.last().is_some_and(|last| last.0 == now) {
            return;
        }
        while let [.., before, last] = self.hull[..]
            && is_steeper(way(before, last), way(last, point), true)
        {
            self.hull.pop();
        }
        self.hull.push(point);
    }

    /// So many messages have ended, no earlier than all that has been told.
    pub(crate) fn end(&mut self, now: Instant, count: u64) {
        self.done += count;
        let end = (now, self.done);
        let falls = |at: usize| is_steeper(way(self.hull[at], end), way(self.hull[at + 1], end), true);
        // The first from which it falls.
        let (mut low, mut high) = (0, self.hull.len().saturating_sub(1));
        while low < high {
            let middle = usize::midpoint(low, high);
            if falls(middle) { high = middle } else { low = middle + 1 }
        }
        let Some(begin) = self.hull.get(low) else { return };
        let found = way(*begin, end);
        if self.best.is_none_or(|best| is_steeper(found, best, false)) {
            self.best = Some(found);
        }
    }

    /// Messages per second in it.
    pub(crate) fn rate(&self) -> f64 {
        self.best.map_or(0.0, |(count, time)| count as f64 / (time as f64 / 1e12))
    }
}

/// How many messages, and in how many picoseconds.
fn way(from: (Instant, u64), to: (Instant, u64)) -> (i128, i128) {
    (i128::from(to.1) - i128::from(from.1), i128::from(to.0.since(from.0).as_ps().max(1)))
}

/// Whether `one` is steeper than the other, or as steep.
fn is_steeper(one: (i128, i128), other: (i128, i128), or_as_steep: bool) -> bool {
    let (one, other) = (one.0 * other.1, other.0 * one.1);
    one > other || or_as_steep && one == other
}

/// Those that count as outliers.
const TAIL: usize = 2;

/// How long each message took, in microseconds, as they came. What took `most` or longer to and fro took no time: it was lost.
pub(crate) fn times(posted: &[Instant], ways: f64, most: Span) -> Vec<f64> {
    let taken = posted.windows(2).map(|pair| pair[1].since(pair[0])).filter(|time| *time < most);
    taken.map(|time| time.as_secs_f64() * 1e6 / ways).collect()
}

impl Latency {
    /// From the instants of `iterations` posts. `ways` is 2 where a round trip is two messages.
    pub(crate) fn new(size: u64, posted: &[Instant], ways: f64, most: Span) -> Self {
        let mut times = times(posted, ways, most);
        times.sort_by(f64::total_cmp);
        let kept = &times[..times.len().saturating_sub(TAIL).max(times.len().min(1))];
        let count = kept.len().max(1) as f64;
        let average = kept.iter().sum::<f64>() / count;
        let variance = kept.iter().map(|time| (time - average).powi(2)).sum::<f64>() / count;
        let at = |per_mille: usize| {
            let place = (kept.len() * per_mille).div_ceil(1000);
            times.get(place).or(times.last()).copied().unwrap_or(0.0)
        };
        let typical = match kept.len() {
            0 => 0.0,
            length if length % 2 == 1 => kept[length / 2],
            length => f64::midpoint(kept[length / 2 - 1], kept[length / 2]),
        };
        Self {
            size,
            iterations: posted.len() as u64,
            min: times.first().copied().unwrap_or(0.0),
            max: times.last().copied().unwrap_or(0.0),
            typical,
            average,
            deviation: variance.sqrt(),
            percentile_99: at(990),
            percentile_99_9: at(999),
        }
    }
}

impl Rate {
    pub(crate) fn new(size: u64, iterations: u64, time: Span, ways: f64) -> Self {
        let seconds = time.as_secs_f64().max(1e-12);
        let average = seconds * 1e6 / ways / iterations.max(1) as f64;
        Self { size, iterations, average, per_second: iterations as f64 / seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    #[test]
    fn the_peak_is_the_best_part_of_the_run() {
        // Ten µs each, but the third and the fourth end together 5 µs after they were posted.
        let mut peak = Peak::default();
        assert!(peak.rate().abs() < 1e-9);
        for (begin, end, count) in [(0, 10, 1), (10, 20, 1), (20, 25, 2)] {
            peak.post(at(begin), count);
            peak.end(at(end), count);
        }
        assert!((peak.rate() - 400_000.0).abs() < 1e-6);
    }

    #[test]
    fn the_peak_is_that_of_all_parts_of_the_run_one_by_one() {
        let mut state = 1u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for depth in [1, 2, 5, 40] {
            let (mut peak, mut now) = (Peak::default(), 0);
            let (mut posted, mut done) = (Vec::new(), Vec::new());
            while done.len() < 300 {
                let count = draw(depth + 1).min(depth - (posted.len() - done.len()) as u64);
                peak.post(at(now), count);
                posted.extend((0..count).map(|_| now));
                // In bursts and pauses.
                now += 1 + draw(if now / 100 % 3 == 0 { 50 } else { 4 });
                let ended = draw(count + 2).min((posted.len() - done.len()) as u64);
                if ended > 0 {
                    peak.end(at(now), ended);
                    done.extend((0..ended).map(|_| now));
                }
            }
            let mut best = 0.0f64;
            for (first, begin) in posted.iter().enumerate() {
                for (last, end) in done.iter().enumerate().skip(first) {
                    best = best.max((last - first + 1) as f64 / (end - begin) as f64);
                }
            }
            assert!((peak.rate() / (best * 1e6) - 1.0).abs() < 1e-9, "{depth}: {} and {best}", peak.rate());
        }
    }

    #[test]
    fn latencies_leave_out_the_two_longest_but_for_the_maximum() {
        let mut now = 0;
        let posted: Vec<Instant> = [0, 2, 4, 2, 4, 100, 200]
            .iter()
            .map(|step| {
                now += step;
                at(now)
            })
            .collect();
        let latency = Latency::new(2, &posted, 2.0, Span::MAX);
        assert_eq!((latency.min, latency.max, latency.typical), (1.0, 100.0, 1.5));
        assert_eq!((latency.average, latency.deviation), (1.5, 0.5));
        assert_eq!(latency.iterations, 7);
        // Of an unreliable connection what took so long was lost.
        assert_eq!(Latency::new(2, &posted, 2.0, Span::from_micros(100)).max, 2.0);
    }

    #[test]
    fn few_samples_make_no_panic() {
        for count in 0..4 {
            let posted: Vec<Instant> = (0..count).map(at).collect();
            assert_eq!(Latency::new(2, &posted, 1.0, Span::MAX).iterations, count);
        }
    }
}
