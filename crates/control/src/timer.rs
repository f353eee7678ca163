//! Timers that cost nothing while nothing happens.
//!
//! HPCC's DCQCN updates alpha every microsecond. As events of a queue those updates would outnumber the packets of
//! a slow flow, and nobody looks at alpha between two CNPs. A private timer is therefore not an event: whoever
//! needs what it drives asks how many periods have passed and applies them all at once.

use roci_units::{Instant, Span};

/// A periodic timer that is evaluated when somebody asks. It holds only its next expiry; the period is a parameter
/// of the law, so a period written during a run applies from the next expiry on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lazy {
    next: Instant,
}

impl Lazy {
    /// A timer that never expires.
    pub const OFF: Self = Self { next: Instant::NEVER };

    /// A timer whose first expiry is `period` after `now`.
    pub fn start(now: Instant, period: Span) -> Self {
        Self { next: now + period }
    }

    /// Its next expiry that has not been counted; [`Instant::NEVER`] when it is off.
    #[inline]
    pub const fn next(self) -> Instant {
        self.next
    }

    /// How many expiries lie at or before `now` and were not counted yet; counts them.
    #[inline]
    pub fn periods(&mut self, now: Instant, period: Span) -> u64 {
        if now < self.next || self.next == Instant::NEVER {
            return 0;
        }
        // A period of zero would expire for ever; one picosecond is the shortest there is.
        let period = period.as_ps().max(1);
        let passed = now.since(self.next).as_ps() / period + 1;
        self.next += Span::from_ps(period) * passed;
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_expiry_at_the_very_instant_counts() {
        let mut timer = Lazy::start(Instant::ZERO, Span::from_micros(1));
        assert_eq!(timer.periods(Instant::from_ps(999_999), Span::from_micros(1)), 0);
        assert_eq!(timer.periods(Instant::from_ps(1_000_000), Span::from_micros(1)), 1);
        assert_eq!(timer.periods(Instant::from_ps(1_000_000), Span::from_micros(1)), 0);
        assert_eq!(timer.next(), Instant::from_ps(2_000_000));
    }

    #[test]
    fn a_timer_that_is_off_never_expires() {
        let mut timer = Lazy::OFF;
        assert_eq!(timer.periods(Instant::from_ps(u64::MAX), Span::from_ps(1)), 0);
    }

    proptest! {
        #[test]
        fn asking_often_counts_the_same_as_asking_once(
            period in 1u64..5_000,
            steps in prop::collection::vec(0u64..20_000, 1..50),
        ) {
            let period = Span::from_ps(period);
            let (mut often, mut once) = (Lazy::start(Instant::ZERO, period), Lazy::start(Instant::ZERO, period));
            let (mut now, mut counted) = (Instant::ZERO, 0);
            for step in steps {
                now += Span::from_ps(step);
                counted += often.periods(now, period);
            }
            prop_assert_eq!(counted, once.periods(now, period));
            prop_assert_eq!(often, once);
            prop_assert_eq!(counted, now.as_ps() / period.as_ps());
        }
    }
}
