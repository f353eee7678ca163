//! Reno: fast retransmit and fast recovery (RFC 5681 §3.2), one loss at a time.
//!
//! The third acknowledgement in a row that repeats the last one tells that the first segment is lost. It is sent again
//! and the window halved; until something new is acknowledged each further repetition, for which a segment must have
//! left the network, lets another go. A second loss in the same window mostly waits for the timeout.

use super::congestion::{Congestion, DUPLICATES};
use super::program::{Decision, Event, Input, Recover};
use roci_units::{Psn, Span};

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    congestion: Congestion,
    /// Acknowledgements that repeated the last new one.
    duplicates: u16,
}

impl Reno {
    /// With a first window of `initial` segments.
    #[must_use]
    pub const fn new(initial: u16) -> Self {
        Self { congestion: Congestion::new(initial), duplicates: 0 }
    }

    const fn recovers(&self) -> bool {
        self.duplicates >= DUPLICATES
    }

    /// Something was acknowledged for the first time.
    #[inline]
    fn progress(&mut self, newly_acked: u32) {
        self.congestion.backoff = 0;
        if self.recovers() {
            self.congestion.set(self.congestion.threshold);
        } else {
            self.congestion.grow(newly_acked);
        }
        self.duplicates = 0;
    }

    /// Segments that may be in flight: with limited transmit (RFC 3042) one more for each of the first repetitions.
    fn allowance(&self) -> u32 {
        let extra = if self.recovers() { 0 } else { self.duplicates };
        u32::from(self.congestion.window) + u32::from(extra)
    }
}

impl Recover for Reno {
    const SELECTIVE: bool = false;
    const OWNS_WINDOW: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let Input { start, next, .. } = *input;
        let mut mark = None;
        let mut restart_timer = false;
        match input.event {
            Event::Ack { .. } if start != input.old_start => {
                self.progress(input.newly_acked);
                restart_timer = true;
            }
            Event::Ack { cumulative, .. } if cumulative == start && start != next => {
                self.duplicates = self.duplicates.saturating_add(1);
                if self.duplicates == DUPLICATES {
                    self.congestion.reduce(input.in_flight(), DUPLICATES);
                    mark = Some((start, start.plus(1)));
                } else if self.recovers() {
                    self.congestion.set(self.congestion.window + 1);
                }
            }
            Event::Ack { .. } => {}
            // The receiver was not ready: flow control, not congestion.
            Event::Nack { .. } => mark = Some((start, next)),
            Event::Lost { psn } => mark = Some((psn, psn.plus(1))),
            Event::Timeout => {
                self.congestion.collapse(input.in_flight());
                self.duplicates = 0;
                mark = Some((start, next));
                restart_timer = true;
            }
        }
        Decision { mark, window: Some(self.allowance()), restart_timer }
    }

    #[inline]
    fn advance(&mut self, _start: Psn, _in_flight: u32, newly_acked: u32) -> Option<u32> {
        if self.recovers() {
            return None;
        }
        self.progress(newly_acked);
        Some(self.allowance())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        !self.recovers()
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

    #[test]
    fn the_third_duplicate_sends_the_first_segment_again_and_halves_the_window() {
        let mut play = Play::new(Reno::new(10), 100, 10);
        assert_eq!(play.ack(100), (None, 11), "limited transmit");
        assert_eq!(play.ack(100), (None, 12));
        assert_eq!(play.ack(100), (Some((100, 101)), 8));
        assert_eq!(play.ack(100), (None, 9));
        assert_eq!(play.ack(110), (None, 5), "the window is the threshold again");
    }

    #[test]
    fn a_second_loss_waits_for_three_more_duplicates() {
        let mut play = Play::new(Reno::new(10), 100, 10);
        for _ in 0..3 {
            play.ack(100);
        }
        assert_eq!(play.ack(104).0, None);
        assert_eq!(play.ack(104).0, None);
        assert_eq!(play.ack(104).0, None);
        assert_eq!(play.ack(104).0, Some((104, 105)));
    }

    #[test]
    fn a_timeout_begins_again_with_one_segment_from_the_first_missing_one() {
        let mut play = Play::new(Reno::new(10), 100, 10);
        assert_eq!(play.event(Event::Timeout), (Some((100, 110)), 1));
        assert_eq!(play.program.timeout(10, Span::from_micros(1)), Span::from_micros(2));
        assert_eq!(play.ack(101), (None, 2), "slow start");
        assert_eq!(play.program.timeout(10, Span::from_micros(1)), Span::from_micros(1));
    }

    #[test]
    fn an_acknowledgement_that_was_overtaken_is_no_duplicate() {
        let mut play = Play::new(Reno::new(10), 100, 10);
        for _ in 0..5 {
            assert_eq!(play.ack(99), (None, 10));
        }
    }
}
