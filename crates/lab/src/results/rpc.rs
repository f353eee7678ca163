//! What became of requests and responses, and of the machines that answered.

use roci_machine::Counters;
use roci_units::{Instant, Span};

/// The results of one `[[traffic]]` table of kind `rpc`. Counts and times begin after its `warmup`.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcResult {
    /// The table's place in [`Results::traffic`](super::Results::traffic).
    pub table: usize,
    /// The server, a place in [`Results::hosts`](super::Results::hosts).
    pub server: u16,
    /// Its threads that answer.
    pub threads: u16,
    /// Connections of all clients.
    pub connections: u32,
    /// Payload of a request.
    pub request: u64,
    /// Payload of a response.
    pub response: u64,
    /// How long was counted.
    pub measured: Span,
    /// Requests whose response came.
    pub answered: u64,
    /// How long each took, from when it could be sent but for credits to its response.
    pub times: Times,
    /// Lines that the threads read: completions, buffers, and what was put together of them.
    pub reads: u64,
    /// Of those, lines that came from memory.
    pub read_misses: u64,
    /// How long connections could not send for want of credits, in sum, from the start on.
    pub blocked: Span,
    /// A connection's share of the cache in lines, without δ; `None` without credits.
    pub share: Option<u32>,
    /// The mean of δ in lines, over all credits that came back; `None` where shares are not loosened.
    pub delta_mean: Option<i64>,
    /// How the threads had nothing to do.
    pub idle: IdleTimes,
}

#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
impl RpcResult {
    /// Requests answered per second; `None` where no time passed.
    pub fn per_second(&self) -> Option<f64> {
        (!self.measured.is_zero()).then(|| self.answered as f64 / self.measured.as_secs_f64())
    }

    /// Payload of requests answered, in bits per second; `None` where no time passed.
    pub fn goodput_bps(&self) -> Option<f64> {
        self.per_second().map(|rate| rate * self.request as f64 * 8.0)
    }

    /// Lines that came from memory, of all that were read; `None` where none were.
    pub fn miss_share(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.read_misses as f64 / self.reads as f64)
    }

    /// The share of their time that the threads had nothing to do; `None` where no time passed.
    pub fn idle_share(&self) -> Option<f64> {
        let all = self.measured.as_secs_f64() * f64::from(self.threads);
        (all > 0.0).then(|| self.idle.sum.as_secs_f64() / all)
    }
}

/// How threads had nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleTimes {
    /// How often.
    pub count: u64,
    /// How long in sum.
    pub sum: Span,
    /// How long at most.
    pub longest: Span,
}

impl IdleTimes {
    /// One idle time is over.
    pub fn end(&mut self, since: Instant, until: Instant) {
        if until > since {
            let span = until.since(since);
            self.count += 1;
            self.sum += span;
            self.longest = self.longest.max(span);
        }
    }

    /// Adds those of others.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }
}

/// What a machine that answered has counted, from the start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineResult {
    /// The host, a place in [`Results::hosts`](super::Results::hosts).
    pub host: u16,
    /// What it counted.
    pub counters: Counters,
    /// How long it was in each of the states S1 to S4.
    pub states: [Span; 4],
    /// How long each of its threads that answer was busy.
    pub busy: Vec<Span>,
}

/// Times in buckets, each no wider than a hundred-and-twenty-eighth of its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    counts: Vec<u64>,
    all: u64,
    sum: u128,
    most: Span,
}

/// Buckets of each power of two.
const FINE: u32 = 7;

impl Times {
    /// Counts one.
    pub fn add(&mut self, time: Span) {
        let bucket = bucket(time.as_ps());
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.all += 1;
        self.sum += u128::from(time.as_ps());
        self.most = self.most.max(time);
    }

    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.all
    }

    /// Their mean; `None` where there are none.
    pub fn mean(&self) -> Option<Span> {
        let mean = self.sum.checked_div(self.all.into())?;
        u64::try_from(mean).ok().map(Span::from_ps)
    }

    /// The longest; `None` where there are none.
    pub fn max(&self) -> Option<Span> {
        (self.all > 0).then_some(self.most)
    }

    /// The time that `percent` of them do not exceed, by nearest rank, rounded up by less than a hundredth; `None` where there are none.
    pub fn percentile(&self, percent: u32) -> Option<Span> {
        let rank = (u128::from(self.all) * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                return Some(Span::from_ps(highest(bucket)).min(self.most));
            }
        }
        None
    }
}

/// The bucket of a value: each power of two from 2⁷ on has 2⁷ of them, and lower values have their own.
fn bucket(value: u64) -> usize {
    if value < 1 << FINE {
        return usize::try_from(value).unwrap_or(0);
    }
    let power = 63 - value.leading_zeros();
    let within = usize::try_from(value >> (power - FINE)).unwrap_or(0) & ((1 << FINE) - 1);
    (((power - FINE + 1) as usize) << FINE) + within
}

/// The highest value of a bucket.
fn highest(bucket: usize) -> u64 {
    let (power, within) = (bucket >> FINE, (bucket & ((1 << FINE) - 1)) as u64);
    if power == 0 {
        return within;
    }
    // The last bucket of all ends with the highest number there is.
    (((1 << FINE) + within + 1) << (power - 1)).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_no_more_than_a_hundredth_above_the_times() {
        let mut times = Times::default();
        assert_eq!((times.percentile(50), times.mean(), times.max()), (None, None, None));
        for nanos in 1..=1000 {
            times.add(Span::from_nanos(nanos));
        }
        for percent in [1, 50, 99, 100] {
            let exact = Span::from_nanos(u64::from(percent) * 10).as_ps();
            let told = times.percentile(percent).unwrap().as_ps();
            assert!(told >= exact && told <= exact + exact / 100, "{percent}: {told} of {exact}");
        }
        assert_eq!(times.mean(), Some(Span::from_ps(500_500)));
        assert_eq!(times.max(), Some(Span::from_nanos(1000)));
    }

    #[test]
    fn each_value_is_in_the_bucket_whose_highest_it_does_not_exceed() {
        let mut last = None;
        for value in (0..1000).chain([1 << 20, (1 << 20) + 4095, u64::MAX >> 1, u64::MAX]) {
            let bucket = bucket(value);
            assert!(value <= highest(bucket), "{value}");
            assert!(bucket == 0 || value > highest(bucket - 1), "{value}");
            assert!(last <= Some(bucket));
            last = Some(bucket);
        }
    }

    #[test]
    fn idle_times_add_up() {
        let at = |nanos| Instant::ZERO + Span::from_nanos(nanos);
        let mut idle = IdleTimes::default();
        idle.end(at(10), at(30));
        idle.end(at(50), at(50));
        idle.add(&IdleTimes { count: 2, sum: Span::from_nanos(50), longest: Span::from_nanos(40) });
        assert_eq!((idle.count, idle.sum, idle.longest), (3, Span::from_nanos(70), Span::from_nanos(40)));
    }
}
