//! The four timers that the NIC keeps for each queue pair of a program.

use super::csr::{PERIODS_MAX, TIMERS};
use roci_units::{Instant, Span};

/// What a timer's event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    /// Which timer.
    pub(super) timer: u8,
    /// When it ran out; the last time, if several are told at once.
    pub(super) at: Instant,
    /// How often.
    pub(super) periods: u32,
    /// When it runs out again; [`Instant::NEVER`] if it is not private.
    pub(super) again: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    /// [`Instant::NEVER`]: it is not armed.
    due: Instant,
    /// Zero: it runs out once.
    period: Span,
}

/// Timers, and the earliest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timers {
    timers: [Timer; TIMERS],
    next: Instant,
    wake: Instant,
}

impl Timers {
    /// None is armed.
    pub(super) const NONE: Self = Self {
        timers: [Timer { due: Instant::NEVER, period: Span::ZERO }; TIMERS],
        next: Instant::NEVER,
        wake: Instant::NEVER,
    };

    /// When the first of them runs out.
    #[inline]
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// When the first runs out that is not private: when the queue pair wants to be woken.
    #[inline]
    pub(super) const fn wake(&self) -> Instant {
        self.wake
    }

    /// Arms a timer `ns` after `now`, again and again if it is `private`; zero cancels it.
    ///
    /// One that is not private runs out later than the `present`, which is past `now` where the program is told late that
    /// another ran out. So it is told once an event, however short it is: a program that takes longer for it than it is
    /// armed for is always behind, but no further with each event.
    pub(super) fn arm(&mut self, timer: u8, now: Instant, present: Instant, ns: u32, private: bool) {
        let span = Span::from_nanos(ns.into());
        let (due, period) = match (ns, private) {
            (0, _) => (Instant::NEVER, Span::ZERO),
            (_, true) => (now + span, span),
            (_, false) => ((now + span).max(present + Span::from_nanos(1)), Span::ZERO),
        };
        self.timers[usize::from(timer) % TIMERS] = Timer { due, period };
        self.note();
    }

    /// The first expiry at or before `now`, which is taken off; of several at one instant, that of the lowest timer.
    ///
    /// A private timer tells of several periods at once, as far as no other timer runs out between them.
    pub(super) fn take(&mut self, now: Instant) -> Option<Expiry> {
        if self.next > now || self.next == Instant::NEVER {
            return None;
        }
        let at = (0..TIMERS).min_by_key(|&at| self.timers[at].due)?;
        let Timer { due, period } = self.timers[at];
        #[expect(clippy::cast_possible_truncation, reason = "of four")]
        let timer = at as u8;
        let expiry = if period.is_zero() {
            self.timers[at].due = Instant::NEVER;
            Expiry { timer, at: due, periods: 1, again: Instant::NEVER }
        } else {
            // Where another runs out at the same instant, the lower goes first.
            let others = self.timers.iter().enumerate().filter(|&(other, _)| other != at);
            let until = others.map(|(other, it)| {
                if at < other || it.due == Instant::NEVER { it.due } else { it.due - Span::from_ps(1) }
            });
            let until = until.min().unwrap_or(now).min(now).max(due);
            let more = until.since(due).as_ps() / period.as_ps();
            let more = more.min(u64::from(PERIODS_MAX) - 1);
            let last = due + period * more;
            self.timers[at].due = last + period;
            #[expect(clippy::cast_possible_truncation, reason = "at most fifteen")]
            Expiry { timer, at: last, periods: more as u32 + 1, again: last + period }
        };
        self.note();
        Some(expiry)
    }

    /// Notes what is asked at each event: timers change at few.
    fn note(&mut self) {
        let first = |timers: &mut dyn Iterator<Item = &Timer>| {
            timers.map(|timer| timer.due).min().unwrap_or(Instant::NEVER)
        };
        self.next = first(&mut self.timers.iter());
        self.wake = first(&mut self.timers.iter().filter(|timer| timer.period.is_zero()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Span::from_nanos(ns)
    }

    #[test]
    fn at_one_instant_the_lower_timer_goes_first() {
        let mut timers = Timers::NONE;
        for timer in [2, 0, 3] {
            timers.arm(timer, at(5), at(5), 10, timer == 3);
        }
        assert_eq!(timers.wake(), at(15));
        assert_eq!(timers.take(at(14)), None);
        let order: Vec<_> = core::iter::from_fn(|| timers.take(at(15))).map(|expiry| expiry.timer).collect();
        assert_eq!(order, [0, 2, 3]);
        assert_eq!(
            (timers.next(), timers.wake()),
            (at(25), Instant::NEVER),
            "the private one goes on, unasked"
        );
        timers.arm(3, at(20), at(20), 0, false);
        assert_eq!(timers.next(), Instant::NEVER);
    }

    #[test]
    fn a_timer_that_is_armed_for_what_has_gone_by_runs_out_right_after() {
        let mut timers = Timers::NONE;
        timers.arm(0, at(0), at(0), 100, false);
        let late = timers.take(at(1_000)).expect("it ran out");
        assert_eq!(late.at, at(100));
        timers.arm(0, late.at, at(1_000), 100, false);
        assert_eq!((timers.take(at(1_000)), timers.wake()), (None, at(1_001)), "and not again at this event");
        timers.arm(1, late.at, at(1_000), 950, false);
        assert_eq!(timers.take(at(1_050)).map(|expiry| expiry.at), Some(at(1_001)));
        assert_eq!(
            timers.take(at(1_050)).map(|expiry| expiry.at),
            Some(at(1_050)),
            "counted from the event's time"
        );
    }

    proptest! {
        #[test]
        fn periods_told_at_once_are_those_told_one_by_one(
            arms in prop::collection::vec((0u8..4, 1u32..50, any::<bool>()), 1..5),
            steps in prop::collection::vec(1u64..400, 1..20),
        ) {
            let (mut often, mut seldom) = (Timers::NONE, Timers::NONE);
            for &(timer, ns, private) in &arms {
                often.arm(timer, at(0), at(0), ns, private);
                seldom.arm(timer, at(0), at(0), ns, private);
            }
            // Which timers ran out in which order, periods counted singly.
            let mut order = [Vec::new(), Vec::new()];
            let end: u64 = steps.iter().sum();
            let mut now = 0;
            for step in steps {
                for _ in 0..step {
                    now += 1;
                    while let Some(expiry) = often.take(at(now)) {
                        prop_assert_eq!((expiry.at, expiry.periods), (at(now), 1));
                        order[0].push(expiry.timer);
                    }
                }
            }
            while let Some(Expiry { timer, periods, .. }) = seldom.take(at(end)) {
                order[1].extend((0..periods).map(|_| timer));
            }
            prop_assert_eq!(&order[0], &order[1]);
            prop_assert_eq!(often, seldom);
        }
    }
}
