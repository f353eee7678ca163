//! The fixed stage of delivery: what every protocol's sender does with its window.

use super::pool::{Pool, Slot};
use super::program::{Decision, Event, Input, Marks, Program, Recover, Resends};
use roci_units::{Instant, Psn, Span};

/// The planes of a sender's slot.
const ACKED: u32 = 0;
const MARKED: u32 = 1;
/// How often each packet was sent again, up to three times: the lower bits, and in the plane after it the upper ones.
const RESENDS: u32 = 2;

/// One queue pair's window of packets sent and not acknowledged, and what of it is to be sent again.
///
/// An event goes through three steps: [`observe`](Self::observe) moves the window and sets the bits,
/// [`decide`](Self::decide) asks the program, [`apply`](Self::apply) marks what it answered. A NIC whose recovery runs
/// on a slow path does the last two later; what was acknowledged by then is not marked. What is marked goes before
/// anything new, lowest first.
///
/// Without a bitmap the marked packets are one range. The pool is the one of [`Sender::pool`]; a queue pair that finds
/// it empty works on without a bitmap and sends more again than it had to.
#[derive(Debug)]
pub struct Sender {
    start: Psn,
    next: Psn,
    /// Without a bitmap: what is marked, from the first to before the second.
    again: (Psn, Psn),
    /// Without a bitmap: the packet after the last one that was sent again, of which all from the start on were.
    repeats: Psn,
    window: u32,
    /// How many bits of the bitmaps are set, so that nothing is searched where there is nothing to find: packets that arrived
    /// beyond a missing one, and packets to be sent again.
    arrived: u32,
    marked: u32,
    /// The packet after the highest one that arrived beyond a missing one, or any later one.
    end: Psn,
    board: Option<Slot>,
    program: Program,
}

/// What an event did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The event as the program is to see it: a NAK that is older than the window's start has become an ACK.
    pub event: Event,
    /// The first packet not acknowledged, before the event.
    pub old_start: Psn,
    /// Packets that were acknowledged for the first time.
    pub newly_acked: u32,
    /// By how many packets the window's start moved; the timer restarts with each move.
    pub advanced: u32,
    /// Whether the program has to be asked.
    pub wants_decision: bool,
}

/// A run of packets to be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// The first.
    pub psn: Psn,
    /// How many.
    pub packets: u32,
}

impl Sender {
    /// A window without packets, of which the first will be `first`.
    #[must_use]
    pub fn new(first: Psn, program: Program) -> Self {
        let window = program.window().unwrap_or(u32::MAX);
        let (again, board) = ((first, first), None);
        Self {
            start: first,
            next: first,
            again,
            repeats: first,
            window,
            arrived: 0,
            marked: 0,
            end: first,
            board,
            program,
        }
    }

    /// A pool for senders: windows of `packets`, at most `limit` of them in loss at once.
    #[must_use]
    pub fn pool(packets: u32, limit: u32) -> Pool {
        Pool::new(packets, 4, limit)
    }

    /// The first packet not acknowledged.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> Psn {
        self.start
    }

    /// The first packet never sent.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> Psn {
        self.next
    }

    /// Packets sent and not acknowledged in order.
    #[inline]
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.next.since(self.start).unsigned_abs()
    }

    /// How many new packets may be sent from `next` on, the first packet never sent, as far as delivery goes: the program's
    /// window, and the size of the bitmaps where the program needs them.
    #[inline]
    #[must_use]
    pub fn room(&self, pool: &Pool, next: Psn) -> u32 {
        self.window.min(most(&self.program, pool)).saturating_sub(next.since(self.start).unsigned_abs())
    }

    /// The congestion window in packets, where the program owns one: when it has [heard](Self::hear) of all before `heard`.
    #[must_use]
    pub fn congestion_window(&self, heard: Psn) -> Option<u32> {
        let mut program = self.program.clone();
        tell(&mut program, self.start, heard, self.in_flight());
        program.window()
    }

    /// Whether the program has a congestion window.
    #[inline]
    #[must_use]
    pub const fn owns_window(&self) -> bool {
        self.program.owns_window()
    }

    /// Whether the program recovers from a loss.
    #[must_use]
    pub fn recovers(&self) -> bool {
        !self.program.is_idle()
    }

    /// How far packets may be sent again: the program's window begins at the first packet not acknowledged.
    #[inline]
    fn reach(&self) -> u32 {
        self.in_flight().min(self.window)
    }

    /// The retransmission timeout as things stand, where `next` is the first packet never sent.
    #[inline]
    #[must_use]
    pub fn timeout(&self, next: Psn, configured: Span) -> Span {
        self.program.timeout(next.since(self.start).unsigned_abs(), configured)
    }

    /// Accounts for `packets` that were sent for the first time.
    #[inline]
    pub fn sent(&mut self, packets: u32) {
        self.next = self.next.plus(packets);
    }

    /// The same for whoever sends without telling each time: `next` is now the first packet never sent.
    #[inline]
    pub const fn has_sent(&mut self, next: Psn) {
        self.next = next;
    }

    /// Whether anything is marked that the window lets go.
    #[inline]
    #[must_use]
    pub fn has_marked(&self, pool: &Pool) -> bool {
        match &self.board {
            None => {
                self.again.0 != self.again.1 && self.again.0.since(self.start) < self.reach().cast_signed()
            }
            Some(_) if self.marked == 0 => false,
            Some(slot) => pool.plane(slot, MARKED).first_set(self.start, self.reach()).is_some(),
        }
    }

    /// The first packet that is not known to have arrived: beyond the start where a response moved the start to packets
    /// that had been acknowledged selectively.
    #[must_use]
    pub fn first_missing(&self, pool: &Pool) -> Psn {
        let known = self.board.as_ref().filter(|_| self.arrived > 0).map(|slot| {
            pool.plane(slot, ACKED).first_clear(self.start, self.in_flight()).unwrap_or(self.next)
        });
        known.unwrap_or(self.start)
    }

    /// Whether nothing is left of this window: nothing of a loss, and no window that the program owns.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.has_lost_nothing() && !self.program.owns_window()
    }

    /// What follows the packet that a timeout has sent again is asked for by the receiver, if it is missing.
    pub fn leave_tail(&mut self) {
        if let Program::Irn(irn) = &mut self.program {
            irn.leave_tail();
        }
    }

    /// Whether nothing of a loss is left: no bitmap, nothing marked, nothing in the program's mind.
    #[must_use]
    pub fn has_lost_nothing(&self) -> bool {
        self.board.is_none() && self.again.0 == self.again.1 && self.program.is_idle()
    }

    /// The first run of marked packets that the window lets go, at most `most` of them.
    #[must_use]
    pub fn resend(&self, pool: &Pool, most: u32) -> Option<Resend> {
        let Some(slot) = &self.board else {
            let (from, to) = self.again;
            let end = self.start.plus(self.reach());
            let to = if to.since(end) > 0 { end } else { to };
            let packets = to.since(from).max(0).unsigned_abs().min(most);
            return (packets > 0).then_some(Resend { psn: from, packets });
        };
        let marked = pool.plane(slot, MARKED);
        let psn = marked.first_set(self.start, self.reach())?;
        let most = self.start.plus(self.reach()).since(psn).unsigned_abs().min(most);
        let packets = marked.first_clear(psn, most).map_or(most, |end| end.since(psn).unsigned_abs());
        (packets > 0).then_some(Resend { psn, packets })
    }

    /// Which packets are still to be sent again, in one piece, the end excluded. `None` where nothing is, or where a bitmap says which.
    #[must_use]
    pub fn marked_range(&self) -> Option<(Psn, Psn)> {
        (self.board.is_none() && self.again.0 != self.again.1).then_some(self.again)
    }

    /// Nothing of [that](Self::marked_range) is to be sent again any more.
    pub fn unmark_range(&mut self) {
        self.again.0 = self.again.1;
    }

    /// Accounts for a run of marked packets that was sent again; gives for how many of them it was not the first time. Without a
    /// bitmap all before one that was sent again count as such.
    pub fn resent(&mut self, pool: &mut Pool, run: Resend) -> u32 {
        let repeated = match &self.board {
            None => {
                let (before, end) = (self.repeats, run.psn.plus(run.packets));
                self.again.0 = end;
                self.repeats = if end.since(before) > 0 { end } else { before };
                before.since(run.psn).max(0).unsigned_abs().min(run.packets)
            }
            Some(slot) => {
                self.marked -= pool.plane_mut(slot, MARKED).clear_range(run.psn, run.packets);
                pool.count_range(slot, RESENDS, run.psn, run.packets)
            }
        };
        self.tidy(pool);
        repeated
    }

    /// Moves the window and sets the bits. `None`, and nothing has changed, where the event speaks of packets that were
    /// never sent: it is no answer to us.
    pub fn observe(&mut self, pool: &mut Pool, event: Event) -> Option<Observed> {
        let (old_start, in_flight) = (self.start, self.in_flight());
        let (cumulative, other) = match event {
            Event::Ack { cumulative, selective } => (Some(cumulative), selective),
            Event::Nack { cumulative, trigger } => (Some(cumulative), trigger),
            Event::Lost { psn } => (None, Some(psn)),
            Event::Timeout => (None, None),
        };
        let reaches = |psn: Psn| psn.since(old_start).max(0).unsigned_abs();
        if cumulative.is_some_and(|psn| reaches(psn) > in_flight) {
            return None;
        }
        if other.is_some_and(|psn| psn.since(old_start) >= 0 && reaches(psn) >= in_flight) {
            return None;
        }
        let mut newly_acked = cumulative.map_or(0, |psn| self.advance(pool, reaches(psn)));
        if let Event::Ack { selective: Some(psn), .. } | Event::Nack { trigger: Some(psn), .. } = event {
            newly_acked += self.acknowledge(pool, psn);
        }
        let event = self.refresh(event, old_start);
        let is_news = !matches!(event, Event::Ack { .. });
        Some(Observed {
            event,
            old_start,
            newly_acked,
            advanced: self.start.since(old_start).unsigned_abs(),
            wants_decision: is_news
                || !self.program.is_idle()
                || self.program.owns_window()
                || self.board.is_some(),
        })
    }

    /// Asks the program about what was observed.
    pub fn decide(&mut self, pool: &Pool, now: Instant, observed: &Observed) -> Decision {
        let marks = self.board.as_ref().map(|slot| marks(pool, slot, self.arrived, self.end));
        self.program.react(&Input {
            now,
            event: observed.event,
            old_start: observed.old_start,
            start: self.start,
            next: self.next,
            newly_acked: observed.newly_acked,
            marks,
        })
    }

    /// Does what the program answered.
    pub fn apply(&mut self, pool: &mut Pool, decision: &Decision) {
        if let Some(window) = decision.window {
            self.window = window;
        }
        if let Some((from, to)) = decision.mark {
            self.mark(pool, from, to);
        }
        self.tidy(pool);
    }

    /// The three steps at once for an acknowledgement of all before `cumulative`, where nothing is lost and the program has
    /// a short way; `in_flight` packets have been sent from there on. Gives the [`room`](Self::room) that is left. `None`, and nothing
    /// has changed, where there is none.
    ///
    /// What passes between the steps goes through memory, in pieces that are read again before they are there: with that
    /// alone left out an acknowledgement took 27 ns in place of 37.
    #[inline(always)]
    pub fn advance_in_order(&mut self, pool: &Pool, cumulative: Psn, in_flight: u32) -> Option<u32> {
        let moved = cumulative.since(self.start);
        if self.board.is_some() || self.again.0 != self.again.1 || moved <= 0 {
            return None;
        }
        let newly_acked = moved.unsigned_abs();
        // A program at a time, so that what is known of it is looked at once.
        let (window, most) = match &mut self.program {
            Program::Sack(sack) => (sack.advance(cumulative, in_flight, newly_acked)?, pool.packets()),
            program => (program.advance(cumulative, in_flight, newly_acked)?, most(program, pool)),
        };
        (self.start, self.next, self.window) = (cumulative, cumulative.plus(in_flight), window);
        Some(window.min(most).saturating_sub(in_flight))
    }

    /// The same for an acknowledgement that names `psn` alone, which came beyond the first missing packet, where nothing is to
    /// be sent again and the program has a short way.
    #[inline]
    pub fn arrived_beyond(&mut self, pool: &mut Pool, now: Instant, psn: Psn, next: Psn) -> Option<u32> {
        let slot = self.board.as_ref()?;
        let beyond = psn.since(self.start) > 0 && psn.since(next) < 0;
        if self.marked > 0 || !beyond || !pool.plane_mut(slot, ACKED).set(psn) {
            return None;
        }
        let end = if psn.since(self.end) >= 0 { psn.plus(1) } else { self.end };
        let marks = marks(pool, slot, self.arrived + 1, end);
        let input = Input {
            now,
            event: Event::Ack { cumulative: self.start, selective: Some(psn) },
            old_start: self.start,
            start: self.start,
            next,
            newly_acked: 1,
            marks: Some(marks),
        };
        let Some(window) = self.program.arrived(&input) else {
            pool.plane_mut(slot, ACKED).clear(psn);
            return None;
        };
        (self.next, self.window, self.arrived, self.end) = (next, window, self.arrived + 1, end);
        Some(self.room(pool, next))
    }

    /// What [`advance_in_order`](Self::advance_in_order) does, for each packet up to `cumulative`, of which one after the other was
    /// acknowledged since that was last done. Where no more was sent than the window let go, it is the same in the end.
    pub fn hear(&mut self, cumulative: Psn, in_flight: u32) {
        if self.start == cumulative {
            return;
        }
        if let Some(window) = tell(&mut self.program, self.start, cumulative, in_flight) {
            self.window = window;
        }
        (self.start, self.next) = (cumulative, cumulative.plus(in_flight));
    }

    /// Gives the bitmaps back and forgets what is marked: the queue pair is at an end, or begins anew at `first`.
    pub fn reset(&mut self, pool: &mut Pool, first: Psn, program: Program) {
        if let Some(slot) = self.board.take() {
            pool.give(slot);
        }
        *self = Self::new(first, program);
    }

    /// Marks what of a range is in flight and not acknowledged.
    fn mark(&mut self, pool: &mut Pool, from: Psn, to: Psn) {
        let from = if from.since(self.start) < 0 { self.start } else { from };
        let to = if to.since(self.next) > 0 { self.next } else { to };
        if to.since(from) <= 0 {
            return;
        }
        let (old_from, old_to) = self.again;
        let apart = old_from != old_to && (to.since(old_from) < 0 || from.since(old_to) > 0);
        if apart {
            // One range does not tell of two.
            self.takes_board(pool);
        }
        if let Some(slot) = &self.board {
            self.marked += pool.set_except(slot, MARKED, ACKED, from, to.since(from).unsigned_abs());
            return;
        }
        self.again = match old_from == old_to {
            true => (from, to),
            false => (
                if from.since(old_from) < 0 { from } else { old_from },
                if to.since(old_to) > 0 { to } else { old_to },
            ),
        };
    }

    /// Moves the start by `count` packets; gives how many of them had not been acknowledged selectively.
    fn advance(&mut self, pool: &mut Pool, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        let old = self.start;
        self.start = old.plus(count);
        let Some(slot) = &self.board else {
            let (from, to) = self.again;
            if from != to && self.start.since(from) > 0 {
                let to = if self.start.since(to) > 0 { self.start } else { to };
                self.again = (self.start, to);
            }
            return count;
        };
        self.marked -= pool.plane_mut(slot, MARKED).clear_range(old, count);
        pool.plane_mut(slot, RESENDS).clear_range(old, count);
        pool.plane_mut(slot, RESENDS + 1).clear_range(old, count);
        if self.end.since(self.start) < 0 {
            self.end = self.start;
        }
        let known = pool.plane_mut(slot, ACKED).clear_range(old, count);
        self.arrived -= known;
        count - known
    }

    /// Remembers that `psn` arrived out of order; gives whether that is new, as a number of packets. The window's start
    /// stays even where it is the first: what arrived may have to be answered before it is done with.
    fn acknowledge(&mut self, pool: &mut Pool, psn: Psn) -> u32 {
        if psn.since(self.start) < 0 || !self.program.is_selective() || !self.takes_board(pool) {
            return 0;
        }
        let Some(slot) = &self.board else { return 0 };
        self.marked -= u32::from(pool.plane_mut(slot, MARKED).clear(psn));
        let is_new = u32::from(pool.plane_mut(slot, ACKED).set(psn));
        self.arrived += is_new;
        if psn.since(self.end) >= 0 {
            self.end = psn.plus(1);
        }
        is_new
    }

    /// Whether `psn`, a packet of the window, is known to have arrived.
    #[must_use]
    pub fn knows(&self, pool: &Pool, psn: Psn) -> bool {
        self.board.as_ref().is_some_and(|slot| pool.plane(slot, ACKED).test(psn))
    }

    /// Whether a packet that arrives beyond a missing one would be remembered.
    #[must_use]
    pub fn remembers(&self, pool: &Pool) -> bool {
        let takes = || pool.available() && self.in_flight() <= pool.packets();
        self.program.is_selective() && (self.board.is_some() || takes())
    }

    /// Takes back that the first packet arrived: it is to be sent again when an event says so.
    pub fn doubt_first(&mut self, pool: &mut Pool) {
        if let Some(slot) = &self.board {
            self.arrived -= u32::from(pool.plane_mut(slot, ACKED).clear(self.start));
        }
        self.tidy(pool);
    }

    /// Whether there is a bitmap, after trying to take one.
    fn takes_board(&mut self, pool: &mut Pool) -> bool {
        if self.board.is_none() && self.in_flight() <= pool.packets() {
            self.board = pool.take();
            if let Some(slot) = &self.board {
                let (from, to) = self.again;
                let packets = to.since(from).unsigned_abs();
                pool.plane_mut(slot, MARKED).set_range(from, packets);
                (self.arrived, self.marked, self.end) = (0, packets, self.start);
                self.again = (self.start, self.start);
            }
        }
        self.board.is_some()
    }

    /// An event that was overtaken: an older NAK must not send the window again.
    fn refresh(&self, event: Event, old_start: Psn) -> Event {
        let ack = Event::Ack { cumulative: self.start, selective: None };
        match event {
            Event::Nack { cumulative, trigger } if cumulative.since(old_start) < 0 => {
                if self.program.is_selective() && trigger.is_some() { event } else { ack }
            }
            Event::Lost { psn } if psn.since(self.start) < 0 => ack,
            _ => event,
        }
    }

    /// Gives the bitmaps back once they say nothing and the program needs none.
    fn tidy(&mut self, pool: &mut Pool) {
        if self.board.is_some() && self.program.is_idle() && self.arrived == 0 && self.marked == 0 {
            self.again = (self.start, self.start);
            if let Some(slot) = self.board.take() {
                pool.give(slot);
            }
        }
    }
}

/// Tells a program that recovers from nothing of acknowledgements, one for each packet from `start` to before `end`; gives its window
/// after the last.
fn tell(program: &mut Program, start: Psn, end: Psn, in_flight: u32) -> Option<u32> {
    let packets = end.since(start).max(0).unsigned_abs();
    (1..=packets).fold(None, |_, packet| program.advance(start.plus(packet), in_flight, 1))
}

/// The packets that may be in flight whatever the window.
#[inline]
fn most(program: &Program, pool: &Pool) -> u32 {
    if program.is_selective() { pool.packets() } else { 1 << 23 }
}

/// What the bitmaps of `slot` say, in which `arrived` packets before `end` are acknowledged.
#[inline(always)]
fn marks<'a>(pool: &'a Pool, slot: &Slot, arrived: u32, end: Psn) -> Marks<'a> {
    let resends = Resends { low: pool.plane(slot, RESENDS), high: pool.plane(slot, RESENDS + 1) };
    Marks { acked: pool.plane(slot, ACKED), arrived, end, marked: pool.plane(slot, MARKED), resends }
}

#[cfg(test)]
mod tests;
