//! The clocks of the room: one for all that it does, and the system's for who wants to be told a time of day.

use roci_units::{Instant, Span};
use std::time::{Duration, SystemTime};

/// When it stops: the last instant that has one after it. In picoseconds 64 bits last for 213 days, and an instant that
/// came again would set every timer wrong, so a shard ends its queue pairs then.
pub(crate) const END: Instant = Instant::from_ps(u64::MAX - 1);

/// Time since it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the real world's time comes from here")]
    pub(crate) fn new() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since it was made, which goes on after [`END`]: for those who wait by a timeout of their own.
    pub(crate) fn passed(&self) -> Duration {
        self.0.elapsed()
    }

    /// What the system's clock said when so much had passed, if nobody has set it since.
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub(crate) fn wall(&self, passed: Duration) -> SystemTime {
        let since = self.passed().saturating_sub(passed);
        SystemTime::now().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// One whose time is over.
    #[cfg(test)]
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub(crate) fn over() -> Self {
        let days = Duration::from_secs(214 * 86_400);
        Self(std::time::Instant::now().checked_sub(days).unwrap_or_else(|| unreachable!("time is signed")))
    }

    /// Now, up to [`END`]. It begins above zero, so that there is a time before the first call.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        instant(self.0.elapsed())
    }
}

#[inline]
fn instant(passed: Duration) -> Instant {
    let ps = passed.as_secs().saturating_mul(1_000_000_000_000);
    Instant::from_ps(ps.saturating_add(u64::from(passed.subsec_nanos()) * 1000 + 1)).min(END)
}

/// How long to sleep from `now` on until it is `at`; `None` where it never is.
pub(crate) fn until(at: Instant, now: Instant) -> Option<Duration> {
    (at <= END).then(|| duration(at.since(now)))
}

/// A span for the system calls, rounded up.
const fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_ps().div_ceil(1000))
}

/// Processor time of the calling thread.
#[cfg(test)]
pub(crate) fn busy() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_else(|| unreachable!("the kernel accounts for threads")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_stops_before_it_would_begin_anew() {
        let day = Duration::from_secs(86_400);
        let days = [0, 1, 213, 214, 100_000].map(|days| instant(day * days));
        assert!(days.is_sorted() && days[0] > Instant::ZERO, "{days:?}");
        assert!(days[2] < END, "it lasts for 213 days");
        assert_eq!((days[3], instant(Duration::MAX)), (END, END));
        assert!(END + Span::from_ps(1) > END, "what is later than now is later at the end too");
        assert_eq!((Clock::over().now(), until(END + Span::from_ps(1), END)), (END, None));
        assert_eq!(until(END, END), Some(Duration::ZERO));
    }
}
