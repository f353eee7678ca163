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
    /// The best average over any part of the run, octets per second; zero where it was not looked for.
    pub peak: f64,
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
    pub(crate) fn new(size: u64, iterations: u64, time: Span, peak: f64) -> Self {
        let seconds = time.as_secs_f64().max(1e-12);
        let messages = iterations as f64 / seconds;
        Self { size, iterations, peak, average: messages * size as f64, messages }
    }

    /// Both directions together.
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            peak: self.peak + other.peak,
            average: self.average + other.average,
            messages: self.messages + other.messages,
            ..self
        }
    }
}

/// The most messages for which the peak is looked for, as in perftest: it takes their square.
pub(crate) const PEAK_MAX: usize = 20_000;

/// Messages per second in the best part of a run: from the post of any message to the end of any later one.
pub(crate) fn peak(posted: &[Instant], done: &[Instant]) -> f64 {
    let mut best: Option<(u64, u64)> = None;
    for (first, begin) in posted.iter().enumerate() {
        for (count, end) in (1..).zip(&done[first.min(done.len())..]) {
            let time = end.since(*begin).as_ps().max(1);
            // time / count < best time / best count
            if best.is_none_or(|(t, n)| u128::from(time) * u128::from(n) < u128::from(t) * u128::from(count))
            {
                best = Some((time, count));
            }
        }
    }
    best.map_or(0.0, |(time, count)| count as f64 / (time as f64 / 1e12))
}

/// Those that count as outliers.
const TAIL: usize = 2;

/// How long each message took, in microseconds, as they came.
pub(crate) fn times(posted: &[Instant], ways: f64) -> Vec<f64> {
    posted.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64() * 1e6 / ways).collect()
}

impl Latency {
    /// From the instants of `iterations` posts. `ways` is 2 where a round trip is two messages.
    pub(crate) fn new(size: u64, posted: &[Instant], ways: f64) -> Self {
        let mut times = times(posted, ways);
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
        let posted = [at(0), at(10), at(20), at(20)];
        let done = [at(10), at(20), at(25), at(25)];
        assert!((peak(&posted, &done) - 400_000.0).abs() < 1e-6);
        assert!(peak(&[], &[]).abs() < 1e-9);
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
        let latency = Latency::new(2, &posted, 2.0);
        assert_eq!((latency.min, latency.max, latency.typical), (1.0, 100.0, 1.5));
        assert_eq!((latency.average, latency.deviation), (1.5, 0.5));
        assert_eq!(latency.iterations, 7);
    }

    #[test]
    fn few_samples_make_no_panic() {
        for count in 0..4 {
            let posted: Vec<Instant> = (0..count).map(at).collect();
            assert_eq!(Latency::new(2, &posted, 1.0).iterations, count);
        }
    }
}
