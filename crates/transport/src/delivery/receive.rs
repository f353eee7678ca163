//! The receiver's side of delivery: what is expected, what is kept out of order, what is missing.

use super::pool::{Pool, Slot};
use roci_units::Psn;

/// The planes of a receiver's slot.
const KEPT: u32 = 0;
/// Of the packets kept, those that end a message (IRN's second bitmap, SIGCOMM 2018 §5.3).
const ENDS: u32 = 1;

/// What one queue pair has received.
///
/// In order it has no bitmap; a receiver that keeps packets out of order takes one with the first gap and gives it
/// back with the last.
#[derive(Debug)]
pub struct Receiver {
    expected: Psn,
    /// Whether packets out of order are kept.
    selective: bool,
    /// Whether the packet expected has been asked for already.
    has_complained: bool,
    board: Option<Slot>,
}

/// What a packet is to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The one expected.
    Next,
    /// Ahead of it, and there is room to keep it.
    Ahead,
    /// Ahead of it, and kept already.
    Kept,
    /// Ahead of it, and not to be kept: the protocol keeps none, it is beyond the window, or the pool is empty.
    Beyond,
    /// Before it: a duplicate.
    Behind,
}

/// By how much a packet that was accepted moved what is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// Packets now in order: none for one that is kept ahead.
    pub packets: u32,
    /// Messages that ended among them.
    pub messages: u32,
}

impl Receiver {
    /// A receiver that expects `first`; `selective`: it keeps packets out of order.
    #[must_use]
    pub const fn new(first: Psn, selective: bool) -> Self {
        Self { expected: first, selective, has_complained: false, board: None }
    }

    /// A pool for receivers: windows of `packets`, at most `limit` of them with gaps at once.
    #[must_use]
    pub fn pool(packets: u32, limit: u32) -> Pool {
        Pool::new(packets, 2, limit)
    }

    /// The packet expected: all before it have arrived.
    #[inline]
    #[must_use]
    pub const fn expected(&self) -> Psn {
        self.expected
    }

    /// What a packet is, before anything is done about it.
    #[inline]
    #[must_use]
    pub fn standing(&self, pool: &Pool, psn: Psn) -> Standing {
        let ahead = psn.since(self.expected);
        if ahead == 0 {
            return Standing::Next;
        }
        if ahead < 0 {
            return Standing::Behind;
        }
        if !self.selective || ahead.unsigned_abs() >= pool.packets() {
            return Standing::Beyond;
        }
        match &self.board {
            Some(slot) if pool.plane(slot, KEPT).test(psn) => Standing::Kept,
            Some(_) => Standing::Ahead,
            None if pool.available() => Standing::Ahead,
            None => Standing::Beyond,
        }
    }

    /// Accepts a packet that is [`Standing::Next`] or [`Standing::Ahead`]; `ends`: it is the last of its message. A packet
    /// of another standing changes nothing.
    #[inline]
    pub fn accept(&mut self, pool: &mut Pool, psn: Psn, ends: bool) -> Advance {
        if psn == self.expected && self.board.is_none() {
            self.expected = psn.plus(1);
            self.has_complained = false;
            return Advance { packets: 1, messages: u32::from(ends) };
        }
        match self.standing(pool, psn) {
            Standing::Next => self.close_gap(pool, ends),
            Standing::Ahead => {
                self.keep(pool, psn, ends);
                Advance::default()
            }
            Standing::Kept | Standing::Beyond | Standing::Behind => Advance::default(),
        }
    }

    /// Whether a packet that was not kept deserves a NAK: true once for each packet expected, as a go-back-N requester
    /// wants it (IBTA Vol 1 §9.7.5).
    pub fn complains(&mut self) -> bool {
        !core::mem::replace(&mut self.has_complained, true)
    }

    /// Whether something is kept out of order.
    #[must_use]
    pub const fn has_gap(&self) -> bool {
        self.board.is_some()
    }

    /// Gives the bitmap back; the receiver begins anew at `first`.
    pub fn reset(&mut self, pool: &mut Pool, first: Psn) {
        if let Some(slot) = self.board.take() {
            pool.give(slot);
        }
        *self = Self::new(first, self.selective);
    }

    fn keep(&mut self, pool: &mut Pool, psn: Psn, ends: bool) {
        if self.board.is_none() {
            self.board = pool.take();
        }
        if let Some(slot) = &self.board {
            pool.plane_mut(slot, KEPT).set(psn);
            if ends {
                pool.plane_mut(slot, ENDS).set(psn);
            }
        }
    }

    /// The packet expected has come: all that were kept after it up to the next gap are in order now.
    fn close_gap(&mut self, pool: &mut Pool, ends: bool) -> Advance {
        let Some(slot) = &self.board else { return Advance::default() };
        // The packet expected has the window's first bit, which nobody set; the others follow.
        let others = pool.packets() - 1;
        let first = self.expected.plus(1);
        let end = pool.plane(slot, KEPT).first_clear(first, others);
        let kept = end.map_or(others, |end| end.since(first).unsigned_abs());
        pool.plane_mut(slot, KEPT).clear_range(first, kept);
        let messages = u32::from(ends) + pool.plane_mut(slot, ENDS).clear_range(first, kept);
        self.expected = first.plus(kept);
        self.has_complained = false;
        if pool.plane(slot, KEPT).first_set(self.expected, pool.packets()).is_none()
            && let Some(slot) = self.board.take()
        {
            pool.give(slot);
        }
        Advance { packets: kept + 1, messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Psn = Psn::new(0x00ff_ffff);

    #[test]
    fn gaps_are_kept_closed_and_forgotten() {
        let mut pool = Receiver::pool(64, 1);
        let mut receiver = Receiver::new(FIRST, true);
        let mut arrive = |ahead: u32, ends| {
            let standing = receiver.standing(&pool, FIRST.plus(ahead));
            let advance = receiver.accept(&mut pool, FIRST.plus(ahead), ends);
            (standing, advance, pool.taken())
        };
        let nothing = Advance::default();
        assert_eq!(arrive(0, false), (Standing::Next, Advance { packets: 1, messages: 0 }, 0));
        assert_eq!(arrive(2, true), (Standing::Ahead, nothing, 1));
        assert_eq!(arrive(2, true), (Standing::Kept, nothing, 1));
        assert_eq!(arrive(3, false), (Standing::Ahead, nothing, 1));
        assert_eq!(arrive(5, true), (Standing::Ahead, nothing, 1));
        assert_eq!(arrive(1, false), (Standing::Next, Advance { packets: 3, messages: 1 }, 1));
        assert_eq!(arrive(0, false), (Standing::Behind, nothing, 1));
        assert_eq!(arrive(4 + 64, false), (Standing::Beyond, nothing, 1));
        assert_eq!(arrive(4, true), (Standing::Next, Advance { packets: 2, messages: 2 }, 0));
    }

    #[test]
    fn a_whole_window_may_be_kept() {
        let mut pool = Receiver::pool(64, 1);
        let mut receiver = Receiver::new(FIRST, true);
        for ahead in 1..64 {
            receiver.accept(&mut pool, FIRST.plus(ahead), false);
        }
        assert_eq!(receiver.accept(&mut pool, FIRST, false).packets, 64);
        assert!(!receiver.has_gap() && pool.taken() == 0);
    }

    #[test]
    fn a_gap_draws_one_complaint_until_it_is_closed() {
        let mut pool = Receiver::pool(64, 0);
        let mut receiver = Receiver::new(FIRST, false);
        assert_eq!(receiver.standing(&pool, FIRST.plus(1)), Standing::Beyond);
        assert!(receiver.complains());
        assert!(!receiver.complains());
        receiver.accept(&mut pool, FIRST, false);
        assert!(receiver.complains());
    }

    #[test]
    fn when_the_pool_is_empty_it_keeps_nothing() {
        let mut pool = Receiver::pool(64, 1);
        let taken = pool.take();
        assert!(taken.is_some());
        let mut receiver = Receiver::new(FIRST, true);
        assert_eq!(receiver.standing(&pool, FIRST.plus(1)), Standing::Beyond);
        assert_eq!(receiver.accept(&mut pool, FIRST.plus(1), false), Advance::default());
        assert!(!receiver.has_gap());
    }
}
