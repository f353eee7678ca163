//! Loss recovery by selective acknowledgements, after RFC 6675, with one segment named by each acknowledgement.
//!
//! A segment is lost when three beyond it have arrived. What is in the network, the *pipe*, is what was sent less what
//! arrived and what is lost and not yet sent again; segments go, lost ones first, while the window has room for more.
//! After a timeout all that is not known to have arrived is lost.
//!
//! RFC 6675's rules (3) and (4) of `NextSeg()`, which send again what is not known to be lost when nothing else is left,
//! are left out; there the timeout helps, as it does when a segment is lost again.

use super::bitmap::Bitmap;
use super::congestion::{Congestion, DUPLICATES};
use super::program::{Decision, Event, Input, Recover};
use roci_units::{Psn, Span};

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct Sack {
    congestion: Congestion,
    /// The last segment that had been sent when recovery began.
    recovery: Psn,
    /// The segment after the highest one that was sent again in this recovery.
    sent_until: Psn,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Three segments beyond the first missing one have arrived.
    Recovering,
    /// A timeout came: all that was sent before it is lost.
    TimedOut,
}

/// A window without bits, for a queue pair that found the pool of bitmaps empty.
const NOTHING: Bitmap<'static> = Bitmap::new(&[0]);

/// What the bits say.
struct Board<'a> {
    acked: Bitmap<'a>,
    start: Psn,
    in_flight: u32,
    /// Segments that arrived beyond the first missing one, and how far from it the highest of them lies at most.
    arrived: u32,
    reach: u32,
}

impl<'a> Board<'a> {
    fn new(input: &Input<'a>) -> Self {
        let (start, in_flight) = (input.start, input.in_flight());
        let acked = input.marks.map_or(NOTHING, |marks| marks.acked);
        let (arrived, end) = input.marks.map_or((0, start), |marks| (marks.arrived, marks.end));
        Self { acked, start, in_flight, arrived, reach: end.since(start).max(0).unsigned_abs() }
    }

    /// The third-highest segment that arrived: what is missing before it is lost (RFC 6675 §4, `IsLost`).
    fn lost_until(&self) -> Psn {
        if self.arrived < u32::from(DUPLICATES) {
            return self.start;
        }
        self.acked.last_set_but(self.start, self.reach, u32::from(DUPLICATES) - 1).unwrap_or(self.start)
    }

    /// Missing segments from `from` to before `to`.
    fn missing(&self, from: Psn, to: Psn) -> u32 {
        match to.since(from) {
            ..=0 => 0,
            count if self.arrived == 0 => count.unsigned_abs(),
            count if self.acked.first_clear(from, count.unsigned_abs()).is_none() => 0,
            count => count.unsigned_abs() - self.acked.count(from, count.unsigned_abs()),
        }
    }

    /// The end of the first `count` missing segments from `from` to before `to`.
    fn reach(&self, from: Psn, to: Psn, count: u32) -> Psn {
        if self.arrived == 0 {
            return if to.since(from) > count.cast_signed() { from.plus(count) } else { to };
        }
        let left = |at: Psn| to.since(at).max(0).unsigned_abs();
        let past_next = |at, _| self.acked.first_clear(at, left(at)).map(|psn| psn.plus(1));
        (0..count).try_fold(from, past_next).unwrap_or(to)
    }
}

impl Sack {
    /// With a first window of `initial` segments.
    #[must_use]
    pub const fn new(initial: u16) -> Self {
        let (congestion, zero) = (Congestion::new(initial), Psn::new(0));
        Self { congestion, recovery: zero, sent_until: zero, phase: Phase::Open }
    }

    fn enter(&mut self, input: &Input<'_>, phase: Phase) {
        (self.recovery, self.sent_until, self.phase) = (input.next.minus(1), input.start, phase);
    }

    /// Something was acknowledged in order.
    fn progress(&mut self, start: Psn, newly_acked: u32) {
        self.congestion.backoff = 0;
        if self.phase != Phase::Recovering {
            self.congestion.grow(newly_acked);
        }
        if start.since(self.recovery) > 0 {
            self.phase = Phase::Open;
        }
    }

    /// What is lost ends here.
    fn lost_until(&self, board: &Board<'_>) -> Psn {
        match self.phase {
            Phase::Open => board.start,
            Phase::TimedOut if board.lost_until().since(self.recovery) <= 0 => self.recovery.plus(1),
            Phase::Recovering | Phase::TimedOut => board.lost_until(),
        }
    }

    /// Marks as many lost segments as the window has room for, and lets new ones use what is left of it.
    fn fill(&mut self, board: &Board<'_>) -> (Option<(Psn, Psn)>, u32) {
        let begins = self.phase == Phase::Open || board.start.since(self.sent_until) > 0;
        let from = if begins { board.start } else { self.sent_until };
        let to = self.lost_until(board);
        let lost = board.missing(from, to);
        let pipe = board.in_flight - board.arrived - lost;
        let room = u32::from(self.congestion.window).saturating_sub(pipe);
        let again = lost.min(room);
        let mark = (again > 0).then(|| (from, board.reach(from, to, again)));
        self.sent_until = match mark {
            Some((_, end)) => end,
            // Nothing is missing up to there, so nobody need look again.
            None if lost == 0 && to.since(from) > 0 => to,
            None => self.sent_until,
        };
        (mark, board.in_flight + room - again)
    }
}

impl Recover for Sack {
    const SELECTIVE: bool = true;
    const OWNS_WINDOW: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let board = Board::new(input);
        let moved = input.start != input.old_start;
        let restart_timer = moved || input.event == Event::Timeout;
        if moved {
            self.progress(input.start, input.newly_acked);
        }
        match input.event {
            Event::Ack { .. } | Event::Lost { .. } => {}
            // The receiver was not ready: it keeps nothing that was sent since.
            Event::Nack { .. } => self.enter(input, Phase::TimedOut),
            Event::Timeout => {
                self.congestion.collapse(input.in_flight());
                self.enter(input, Phase::TimedOut);
            }
        }
        let begins = self.phase == Phase::Open && board.lost_until() != input.start;
        if begins {
            self.congestion.reduce(input.in_flight(), 0);
            self.enter(input, Phase::Recovering);
            // The first missing segment goes at once, whatever is in the pipe (§5, step 4.3).
            self.sent_until = input.start.plus(1);
        }
        let (mark, window) = self.fill(&board);
        let mark = if begins { Some((input.start, self.sent_until)) } else { mark };
        Decision { mark, window: Some(window), restart_timer }
    }

    #[inline(always)]
    fn advance(&mut self, _start: Psn, in_flight: u32, newly_acked: u32) -> Option<u32> {
        if self.phase != Phase::Open {
            return None;
        }
        self.congestion.backoff = 0;
        self.congestion.grow(newly_acked);
        // All that is in flight is in the pipe.
        Some(u32::from(self.congestion.window).max(in_flight))
    }

    fn is_idle(&self) -> bool {
        self.phase == Phase::Open
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

    fn play() -> Play<Sack> {
        Play::new(Sack::new(10), 100, 10)
    }

    #[test]
    fn the_third_segment_beyond_a_missing_one_begins_recovery() {
        let mut play = play();
        assert_eq!(play.sack(100, 101), (None, 11), "limited transmit");
        assert_eq!(play.sack(100, 102), (None, 12));
        assert_eq!(play.sack(100, 104), (Some((100, 101)), 10), "half the window; the pipe is full");
        assert_eq!(play.sack(100, 105), (None, 10), "103 is not lost yet: six are in the pipe");
        assert_eq!(play.sack(100, 106), (Some((102, 104)), 10), "103 is lost and four are in the pipe");
        assert_eq!(play.sack(100, 107), (None, 11), "one has left it, so a new one may go");
        assert_eq!(play.ack(103), (None, 9), "100 has arrived");
        assert_eq!(play.ack(110), (None, 5), "over");
        assert!(play.program.is_idle());
    }

    #[test]
    fn a_segment_is_sent_again_once_until_the_timeout() {
        let mut play = play();
        for psn in 101..=103 {
            play.sack(100, psn);
        }
        for psn in 104..=109 {
            assert_eq!(play.sack(100, psn).0, None);
        }
        assert_eq!(play.event(Event::Timeout), (Some((100, 101)), 10), "one segment: the window is one");
        assert_eq!(play.ack(110), (None, 2));
    }

    #[test]
    fn after_a_timeout_what_is_missing_goes_in_slow_start() {
        let mut play = play();
        play.sack(100, 103);
        assert_eq!(play.event(Event::Timeout).0, Some((100, 101)));
        assert_eq!(play.ack(101).0, Some((101, 103)), "a window of two");
        assert_eq!(play.ack(102).0, Some((103, 106)), "of three: 104 and 105; 103 is here");
    }

    #[test]
    fn without_a_bitmap_the_timeout_recovers() {
        let mut sack = Sack::new(10);
        let mut input = Input {
            now: roci_units::Instant::ZERO,
            event: Event::Timeout,
            old_start: Psn::new(100),
            start: Psn::new(100),
            next: Psn::new(110),
            newly_acked: 0,
            marks: None,
        };
        assert_eq!(sack.react(&input).mark, Some((Psn::new(100), Psn::new(101))));
        input.event = Event::Ack { cumulative: Psn::new(101), selective: None };
        (input.start, input.newly_acked) = (Psn::new(101), 1);
        assert_eq!(sack.react(&input).mark, Some((Psn::new(101), Psn::new(103))));
    }
}
