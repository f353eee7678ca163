//! NewReno (RFC 6582): Reno that stays in recovery until all is acknowledged that had been sent when it began.
//!
//! An acknowledgement that moves the window, but not past that point, is *partial*: the segment that it stops at is
//! lost as well and is sent again at once.

use super::congestion::{Congestion, DUPLICATES};
use super::program::{Decision, Event, Input, Recover};
use roci_units::{Psn, Span};

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct NewReno {
    congestion: Congestion,
    /// The last segment that had been sent when the latest recovery began, or the latest timeout came.
    recover: Psn,
    /// Acknowledgements that repeated the last new one.
    duplicates: u16,
    /// By how many segments the last new acknowledgement moved the window, at most 255.
    advance: u8,
    recovering: bool,
    /// Whether the timer was restarted in this recovery.
    restarted: bool,
}

/// An acknowledgement that moved the window by more is not followed by repetitions that tell of a loss (§4.1).
const ADVANCE_MAX: u8 = 4;

impl NewReno {
    /// With a first window of `initial` segments, the first of which is `first`.
    #[must_use]
    pub fn new(initial: u16, first: Psn) -> Self {
        Self {
            congestion: Congestion::new(initial),
            recover: first.minus(1),
            duplicates: 0,
            advance: 0,
            recovering: false,
            restarted: false,
        }
    }

    /// Segments that may be in flight: with limited transmit (RFC 3042) one more for each of the first repetitions.
    fn allowance(&self) -> u32 {
        let extra = if self.recovering { 0 } else { self.duplicates.min(DUPLICATES - 1) };
        u32::from(self.congestion.window) + u32::from(extra)
    }

    /// Something was acknowledged for the first time; gives whether the first segment is lost, and whether the timer
    /// restarts (§3.2, step 3).
    fn advanced(&mut self, input: &Input<'_>) -> (bool, bool) {
        let moved = input.start.since(input.old_start).unsigned_abs();
        self.advance = u8::try_from(moved).unwrap_or(u8::MAX);
        self.congestion.backoff = 0;
        if !self.recovering {
            self.grew(input.start, input.newly_acked);
            return (false, true);
        }
        if input.start.since(self.recover) > 0 {
            let flight = u16::try_from(input.in_flight().max(1)).unwrap_or(u16::MAX);
            self.congestion.set(self.congestion.threshold.min(flight.saturating_add(1)));
            (self.recovering, self.duplicates) = (false, 0);
            return (false, true);
        }
        let moved = u16::try_from(moved).unwrap_or(u16::MAX);
        self.congestion.set(self.congestion.window.saturating_sub(moved) + 1);
        (true, !core::mem::replace(&mut self.restarted, true))
    }

    /// The same outside of recovery, once the timer is what it was.
    #[inline]
    fn grew(&mut self, start: Psn, newly_acked: u32) {
        self.congestion.grow(newly_acked);
        self.duplicates = 0;
        if start.since(self.recover) > 2 {
            // As good as the old one, and never so old that it seems to lie ahead.
            self.recover = start.minus(2);
        }
    }

    /// The last acknowledgement again; gives whether it tells that the first segment is lost (step 2).
    fn repeated(&mut self, input: &Input<'_>) -> bool {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.recovering {
            self.congestion.set(self.congestion.window + 1);
            return false;
        }
        let covers_more = input.start.minus(1).since(self.recover) > 0;
        let in_step = self.congestion.window > 1 && self.advance <= ADVANCE_MAX;
        if self.duplicates != DUPLICATES || !covers_more && !in_step {
            return false;
        }
        self.congestion.reduce(input.in_flight(), DUPLICATES);
        self.recover = input.next.minus(1);
        (self.recovering, self.restarted) = (true, false);
        true
    }
}

impl Recover for NewReno {
    const SELECTIVE: bool = false;
    const OWNS_WINDOW: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let Input { start, next, .. } = *input;
        let first = Some((start, start.plus(1)));
        let (mut mark, mut restart_timer) = (None, false);
        match input.event {
            Event::Ack { .. } if start != input.old_start => {
                let lost;
                (lost, restart_timer) = self.advanced(input);
                mark = first.filter(|_| lost);
            }
            Event::Ack { cumulative, .. } if cumulative == start && start != next => {
                mark = first.filter(|_| self.repeated(input));
            }
            Event::Ack { .. } => {}
            // The receiver was not ready: flow control, not congestion.
            Event::Nack { .. } => mark = Some((start, next)),
            Event::Lost { psn } => mark = Some((psn, psn.plus(1))),
            Event::Timeout => {
                self.congestion.collapse(input.in_flight());
                self.recover = next.minus(1);
                (self.recovering, self.duplicates) = (false, 0);
                mark = Some((start, next));
                restart_timer = true;
            }
        }
        Decision { mark, window: Some(self.allowance()), restart_timer }
    }

    #[inline]
    fn advance(&mut self, start: Psn, _in_flight: u32, newly_acked: u32) -> Option<u32> {
        if self.recovering {
            return None;
        }
        // Nothing was acknowledged selectively: the window moved by as much.
        self.advance = u8::try_from(newly_acked).unwrap_or(u8::MAX);
        self.congestion.backoff = 0;
        self.grew(start, newly_acked);
        Some(self.allowance())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        !self.recovering
    }

    fn timeout(&self, _in_flight: u32, configured: Span) -> Span {
        self.congestion.timeout(configured)
    }

    fn window(&self) -> Option<u32> {
        Some(u32::from(self.congestion.window))
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::play::Play;
    use super::*;

    fn play() -> Play<NewReno> {
        Play::new(NewReno::new(10, Psn::new(100)), 100, 10)
    }

    #[test]
    fn a_partial_acknowledgement_sends_the_segment_that_it_stops_at() {
        let mut play = play();
        play.ack(100);
        play.ack(100);
        assert_eq!(play.ack(100), (Some((100, 101)), 8));
        for window in 9..=12 {
            assert_eq!(play.ack(100), (None, window));
        }
        assert_eq!(play.ack(104), (Some((104, 105)), 9), "less 4, and one for the one that is sent again");
        assert!(play.decision.restart_timer, "the first partial one restarts the timer");
        assert_eq!(play.ack(105), (Some((105, 106)), 9));
        assert!(!play.decision.restart_timer);
        assert_eq!(play.ack(110), (None, 2), "nothing is in flight: no burst");
        assert!(play.program.is_idle() && play.decision.restart_timer);
    }

    #[test]
    fn a_full_acknowledgement_ends_recovery_with_the_threshold() {
        let mut play = play();
        for _ in 0..9 {
            play.ack(100);
        }
        play.send(8);
        assert_eq!(play.ack(110), (None, 5));
        assert_eq!(play.ack(111), (None, 5), "congestion avoidance");
    }

    #[test]
    fn repetitions_after_a_timeout_tell_of_nothing_until_new_segments_are_acknowledged() {
        let mut play = play();
        play.event(Event::Timeout);
        play.ack(106);
        for _ in 0..4 {
            assert_eq!(play.ack(106).0, None, "answers to what was sent again for nothing");
        }
        play.ack(110);
        play.send(5);
        play.ack(111);
        play.ack(111);
        play.ack(111);
        assert_eq!(play.ack(111).0, Some((111, 112)));
    }

    #[test]
    fn the_very_first_segment_may_be_the_one_that_is_lost() {
        let mut play = play();
        play.ack(100);
        play.ack(100);
        assert_eq!(play.ack(100).0, Some((100, 101)));
    }

    #[test]
    fn a_recovery_point_never_grows_so_old_that_it_lies_ahead() {
        let mut play = play();
        for step in 0..3_000 {
            play.send(10_000);
            play.ack(100 + 10_000 * (step + 1));
        }
        let start = (100 + 30_000_000) % (1 << 24);
        play.ack(start);
        play.ack(start);
        assert_eq!(play.ack(start).0, Some((start, start + 1)));
    }
}
