//! The fixed stage of delivery: what every protocol's sender does with its window.

use super::pool::{Pool, Slot};
use super::program::{Decision, Event, Input, Marks, Program, Resends};
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
        Self { start: first, next: first, again, window, arrived: 0, marked: 0, end: first, board, program }
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
        let most = if self.program.is_selective() { pool.packets() } else { 1 << 23 };
        self.window.min(most).saturating_sub(next.since(self.start).unsigned_abs())
    }

    /// The congestion window in packets, where the program owns one.
    #[must_use]
    pub fn congestion_window(&self) -> Option<u32> {
        self.program.window()
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

    /// Whether nothing of a loss is left: no bitmap, nothing marked, nothing in the program's mind. A program that owns
    /// the window always has that in mind.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.board.is_none()
            && self.again.0 == self.again.1
            && self.program.is_idle()
            && !self.program.owns_window()
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

    /// Accounts for a run of marked packets that was sent again; gives for how many of them it was not the first time, as far
    /// as bitmaps tell.
    pub fn resent(&mut self, pool: &mut Pool, run: Resend) -> u32 {
        let repeated = match &self.board {
            None => {
                self.again.0 = run.psn.plus(run.packets);
                0
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
    /// a short way; `next` is the first packet never sent. Gives the [`room`](Self::room) that is left. `None`, and nothing
    /// has changed, where there is none.
    ///
    /// What passes between the steps goes through memory, in pieces that are read again before they are there: with that
    /// alone left out an acknowledgement took 27 ns in place of 37.
    #[inline]
    pub fn advance_in_order(&mut self, pool: &Pool, cumulative: Psn, next: Psn) -> Option<u32> {
        let moved = cumulative.since(self.start);
        if self.board.is_some() || self.again.0 != self.again.1 || moved <= 0 {
            return None;
        }
        self.window = self.program.advance(cumulative, next, moved.unsigned_abs())?;
        (self.start, self.next) = (cumulative, next);
        Some(self.room(pool, next))
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

/// What the bitmaps of `slot` say, in which `arrived` packets before `end` are acknowledged.
#[inline(always)]
fn marks<'a>(pool: &'a Pool, slot: &Slot, arrived: u32, end: Psn) -> Marks<'a> {
    let resends = Resends { low: pool.plane(slot, RESENDS), high: pool.plane(slot, RESENDS + 1) };
    Marks { acked: pool.plane(slot, ACKED), arrived, end, marked: pool.plane(slot, MARKED), resends }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Recovery;
    use alloc::{format, vec};
    use proptest::prelude::*;

    const FIRST: Psn = Psn::new(0x00ff_fffe);

    fn sender(recovery: Recovery, packets: u32) -> Sender {
        let mut sender = Sender::new(FIRST, Program::new(recovery, 10, FIRST));
        sender.sent(packets);
        sender
    }

    fn react(sender: &mut Sender, pool: &mut Pool, event: Event) -> Option<Observed> {
        let observed = sender.observe(pool, event)?;
        if observed.wants_decision {
            let decision = sender.decide(pool, Instant::ZERO, &observed);
            sender.apply(pool, &decision);
        }
        assert_counts(sender, pool);
        Some(observed)
    }

    /// What is counted is what the bitmaps say.
    fn assert_counts(sender: &Sender, pool: &Pool) {
        let Some(slot) = &sender.board else { return assert_eq!((sender.arrived, sender.marked), (0, 0)) };
        let acked = pool.plane(slot, ACKED);
        assert_eq!(sender.arrived, acked.count(sender.start, sender.in_flight()));
        assert_eq!(sender.marked, pool.plane(slot, MARKED).count(sender.start, sender.in_flight()));
        let last = acked.last_set_but(sender.start, sender.in_flight(), 0);
        assert!(last.is_none_or(|last| last.since(sender.end) < 0), "{last:?} {:?}", sender.end);
    }

    proptest! {
        #[test]
        fn the_counts_are_those_of_the_bitmaps_whatever_happens(
            recovery in prop::sample::select(vec![Recovery::Irn, Recovery::Srnic, Recovery::Sack, Recovery::Ndp]),
            steps in prop::collection::vec((0u32..8, 0u32..6, 0u32..20), 1..200),
        ) {
            let mut pool = Sender::pool(64, 1);
            let mut sender = sender(recovery, 0);
            for (kind, packets, beyond) in steps {
                let (start, in_flight) = (sender.start(), sender.in_flight());
                let cumulative = start.plus(packets.min(in_flight));
                let psn = start.plus(beyond);
                let event = match kind {
                    0 => Event::Timeout,
                    1 => Event::Lost { psn },
                    2 => Event::Nack { cumulative, trigger: Some(psn) },
                    3 => Event::Ack { cumulative, selective: None },
                    4 => {
                        let next = sender.next();
                        sender.arrived_beyond(&mut pool, Instant::ZERO, psn, next);
                        assert_counts(&sender, &pool);
                        continue;
                    }
                    5 => {
                        if let Some(run) = sender.resend(&pool, packets) {
                            sender.resent(&mut pool, run);
                        }
                        assert_counts(&sender, &pool);
                        continue;
                    }
                    6 => {
                        sender.sent(packets.min(sender.room(&pool, sender.next())));
                        sender.doubt_first(&mut pool);
                        assert_counts(&sender, &pool);
                        continue;
                    }
                    _ => Event::Ack { cumulative: start, selective: Some(psn) },
                };
                react(&mut sender, &mut pool, event);
            }
        }
    }

    fn ack(cumulative: u32) -> Event {
        Event::Ack { cumulative: Psn::new(cumulative), selective: None }
    }

    fn nack(cumulative: u32, trigger: Option<u32>) -> Event {
        Event::Nack { cumulative: Psn::new(cumulative), trigger: trigger.map(Psn::new) }
    }

    #[test]
    fn in_order_it_takes_no_bitmap_and_asks_no_program() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 10);
        let observed = react(&mut sender, &mut pool, ack(3)).unwrap();
        assert!(!observed.wants_decision && observed.advanced == 5 && observed.newly_acked == 5);
        assert_eq!(pool.taken(), 0);
        assert!(size_of::<Sender>() <= 68, "{}", size_of::<Sender>());
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 4); // up to PSN 1
        for event in [ack(3), nack(3, None), nack(0, Some(2)), Event::Lost { psn: Psn::new(2) }] {
            assert_eq!(react(&mut sender, &mut pool, event), None);
        }
        assert_eq!(sender.start(), Psn::new(0x00ff_fffe));
    }

    #[test]
    fn go_back_n_sends_the_window_again_from_the_nak_on_and_ignores_an_old_nak() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::GoBackN, 10);
        react(&mut sender, &mut pool, nack(1, None));
        assert_eq!(sender.resend(&pool, 4), Some(Resend { psn: Psn::new(1), packets: 4 }));
        sender.resent(&mut pool, Resend { psn: Psn::new(1), packets: 4 });
        react(&mut sender, &mut pool, nack(0, None));
        assert_eq!(sender.resend(&pool, 99), Some(Resend { psn: Psn::new(5), packets: 3 }));
        react(&mut sender, &mut pool, ack(8));
        assert!(!sender.has_marked(&pool));
    }

    #[test]
    fn how_often_a_packet_was_sent_again_is_counted_up_to_three() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 10);
        react(&mut sender, &mut pool, nack(0, Some(4)));
        let mut repeated = 0;
        for round in 0..5u8 {
            while let Some(run) = sender.resend(&pool, 9) {
                repeated += sender.resent(&mut pool, run);
            }
            let slot = sender.board.as_ref().unwrap();
            let resends = Resends { low: pool.plane(slot, RESENDS), high: pool.plane(slot, RESENDS + 1) };
            let of = |psn| resends.of(Psn::new(psn));
            assert_eq!((of(0), of(4)), ((round + 1).min(3), 0));
            react(&mut sender, &mut pool, Event::Timeout);
        }
        assert!(repeated >= 4, "{repeated}");
    }

    #[test]
    fn selective_repeat_sends_the_gaps_and_gives_its_bitmaps_back() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 10);
        react(&mut sender, &mut pool, nack(0, Some(1)));
        react(&mut sender, &mut pool, nack(0, Some(4)));
        assert_eq!(pool.taken(), 1);
        for (psn, packets) in [(0, 1), (2, 2)] {
            let run = Resend { psn: Psn::new(psn), packets };
            assert_eq!(sender.resend(&pool, 9), Some(run));
            sender.resent(&mut pool, run);
        }
        assert_eq!(sender.resend(&pool, 9), None);
        let observed = react(&mut sender, &mut pool, ack(5)).unwrap();
        assert_eq!((observed.advanced, observed.newly_acked), (5, 3), "two were known");
        assert_eq!(pool.taken(), 1, "recovery lasts until the packets sent before it are through");
        react(&mut sender, &mut pool, ack(8));
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn what_arrived_after_all_is_not_sent_again() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 10);
        react(&mut sender, &mut pool, nack(0, Some(4)));
        react(&mut sender, &mut pool, nack(0, Some(2)));
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 2 }));
        sender.resent(&mut pool, Resend { psn: Psn::new(0), packets: 2 });
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(3), packets: 1 }));
        react(&mut sender, &mut pool, Event::Timeout);
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 2 }), "2 has arrived");
    }

    #[test]
    fn what_was_marked_without_a_bitmap_stays_marked_with_one() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::Irn, 10);
        react(&mut sender, &mut pool, ack(1));
        react(&mut sender, &mut pool, Event::Timeout);
        assert_eq!(pool.taken(), 0, "nothing selective is known");
        react(&mut sender, &mut pool, nack(1, Some(3)));
        assert_eq!(pool.taken(), 1);
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(1), packets: 2 }));
    }

    #[test]
    fn with_an_empty_pool_a_range_is_sent_again_and_ends_with_its_acknowledgement() {
        let mut pool = Sender::pool(64, 0);
        let mut sender = sender(Recovery::Irn, 10);
        react(&mut sender, &mut pool, nack(0, Some(2)));
        react(&mut sender, &mut pool, nack(0, Some(5)));
        assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0), packets: 5 }));
        react(&mut sender, &mut pool, ack(6));
        assert_eq!(sender.resend(&pool, 9), None);
        assert!(!sender.has_marked(&pool));
    }

    #[test]
    fn a_decision_that_comes_late_marks_only_what_is_still_missing() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::GoBackN, 10);
        let observed = sender.observe(&mut pool, Event::Timeout).unwrap();
        let decision = sender.decide(&pool, Instant::ZERO, &observed);
        sender.observe(&mut pool, ack(6)).unwrap();
        sender.apply(&mut pool, &decision);
        assert_eq!(sender.resend(&pool, 99), Some(Resend { psn: Psn::new(6), packets: 2 }));
    }

    #[test]
    fn two_ranges_that_do_not_touch_take_a_bitmap() {
        let mut pool = Sender::pool(64, 1);
        let mut sender = sender(Recovery::NewReno, 10);
        let mark = |from: u32, to: u32| Decision {
            mark: Some((FIRST.plus(from), FIRST.plus(to))),
            window: None,
            restart_timer: false,
        };
        sender.apply(&mut pool, &mark(4, 7));
        assert_eq!(pool.taken(), 0);
        sender.apply(&mut pool, &mark(0, 1));
        assert_eq!(pool.taken(), 1);
        for (psn, packets) in [(0, 1), (4, 3)] {
            let run = Resend { psn: FIRST.plus(psn), packets };
            assert_eq!(sender.resend(&pool, 9), Some(run));
            sender.resent(&mut pool, run);
        }
        assert_eq!((sender.resend(&pool, 9), pool.taken()), (None, 0));
    }

    #[test]
    fn what_is_marked_beyond_the_program_s_window_waits_for_it() {
        let mut pool = Sender::pool(64, 1);
        for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
            let mut sender = sender(recovery, 10);
            assert_eq!(sender.room(&pool, sender.next()), 0);
            react(&mut sender, &mut pool, Event::Timeout);
            let run = Resend { psn: FIRST, packets: 1 };
            assert_eq!(sender.resend(&pool, 9), Some(run), "a window of one");
            sender.resent(&mut pool, run);
            assert_eq!((sender.resend(&pool, 9), sender.has_marked(&pool)), (None, false));
            let observed = react(&mut sender, &mut pool, ack(0x00ff_ffff)).unwrap();
            assert!(observed.wants_decision);
            assert_eq!(sender.resend(&pool, 9), Some(Resend { psn: Psn::new(0x00ff_ffff), packets: 2 }));
            assert!(!sender.is_in_order(), "its program stays");
            sender.reset(&mut pool, FIRST, Program::new(recovery, 10, FIRST));
        }
    }

    #[test]
    fn the_window_is_held_to_the_size_of_the_bitmaps() {
        let pool = Sender::pool(64, 1);
        let room = |sender: &Sender| sender.room(&pool, sender.next());
        assert_eq!(room(&sender(Recovery::Irn, 60)), 4);
        assert!(room(&sender(Recovery::GoBackN, 60)) > 1_000_000);
    }

    proptest! {
        #[test]
        fn the_short_way_in_order_leads_where_the_three_steps_do(
            recovery in prop::sample::select(vec![Recovery::Reno, Recovery::NewReno, Recovery::Sack]),
            steps in prop::collection::vec((0u32..12, 0u32..6, any::<bool>()), 1..200),
        ) {
            let (mut pool, configured) = (Sender::pool(64, 1), Span::from_micros(100));
            let mut short = sender(recovery, 0);
            for (kind, packets, ahead) in steps {
                let room = short.room(&pool, short.next());
                short.sent(packets.min(room));
                let (start, in_flight) = (short.start(), short.in_flight());
                let cumulative = start.plus(packets.min(in_flight));
                let mut long = Sender { board: None, program: short.program.clone(), ..short };
                match short.advance_in_order(&pool, cumulative, short.next()) {
                    Some(room) => {
                        react(&mut long, &mut pool, Event::Ack { cumulative, selective: None }).unwrap();
                        prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
                        prop_assert_eq!(room, long.room(&pool, long.next()));
                        prop_assert_eq!(long.timeout(long.next(), configured), configured);
                        prop_assert_eq!(long.resend(&pool, 1), None);
                    }
                    None => {
                        let selective = (ahead && in_flight > packets + 1).then(|| cumulative.plus(1));
                        let event = match kind {
                            0 => Event::Timeout,
                            _ => Event::Ack { cumulative, selective },
                        };
                        react(&mut short, &mut pool, event);
                        while let Some(run) = short.resend(&pool, 99) {
                            short.resent(&mut pool, run);
                        }
                    }
                }
            }
            short.reset(&mut pool, FIRST, Program::new(recovery, 10, FIRST));
        }
    }
}
