//! The engine's timers: exact, at most one outstanding per queue pair and kind, O(1) amortised.
//!
//! An engine with a few timers keeps them in order in the record itself, so that arming and firing one touches no
//! memory of its own; with more it has a heap and a wheel, once and for all.

mod many;

use alloc::boxed::Box;
use many::Many;
use roci_units::Instant;

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId {
    /// The queue pair's dense index.
    pub qp: u32,
    /// Which of its timers, below the number of kinds.
    pub kind: u8,
}

/// The timers of one engine.
///
/// Those due come out in the order of their instants, and at one instant in the order in which they were armed.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Timers {
    /// The earliest timer's instant, kept because it is asked for after every operation; [`NEVER`]: none is armed.
    next: u64,
    /// All timers, while they are few.
    many: Option<Box<Many>>,
    /// How many of `few` count.
    len: u8,
    /// The kinds that each queue pair has.
    kinds: u8,
    /// Queue pairs for which there is to be room.
    prepared: u32,
    /// Counts arms, to order those of one instant.
    serial: u64,
    /// The timers in order.
    few: [Entry; FEW],
}

/// One outstanding timer.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    serial: u64,
    id: TimerId,
}

/// No instant: no timer is armed.
const NEVER: u64 = u64::MAX;
/// A sending and a receiving queue pair with two timers each.
const FEW: usize = 4;

impl Timers {
    /// No timers, for queue pairs with `kinds` timers each.
    ///
    /// # Panics
    /// When `kinds` is zero.
    #[must_use]
    pub fn new(kinds: u8) -> Self {
        assert!(kinds > 0, "a queue pair without timers needs none");
        let none = Entry { at: NEVER, serial: 0, id: TimerId { qp: 0, kind: 0 } };
        Self { next: NEVER, many: None, len: 0, kinds, prepared: 0, serial: 0, few: [none; FEW] }
    }

    /// Makes room for queue pairs below `count`.
    pub fn prepare(&mut self, count: u32) {
        self.prepared = self.prepared.max(count);
        if let Some(many) = &mut self.many {
            many.prepare(count);
        }
    }

    /// The instant of the earliest timer, to the picosecond; [`Instant::NEVER`] when none is armed.
    #[inline]
    #[must_use]
    pub const fn next(&self) -> Instant {
        Instant::from_ps(self.next)
    }

    /// Whose timer is the earliest, where that is known without work.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<TimerId> {
        if self.len == 0 { None } else { Some(self.few[0].id) }
    }

    /// The instant for which a timer is armed; [`Instant::NEVER`] when it is not.
    #[must_use]
    pub fn armed(&self, id: TimerId) -> Instant {
        let few = &self.few[..usize::from(self.len)];
        Instant::from_ps(match &self.many {
            None => few.iter().find(|entry| entry.id == id).map_or(NEVER, |entry| entry.at),
            Some(many) => many.armed(id),
        })
    }

    /// Arms a timer for `at`, which replaces an earlier arming; [`Instant::NEVER`] cancels it. An instant in the past
    /// is due at once.
    ///
    /// # Panics
    /// When the kind is not below the number of kinds.
    #[inline]
    pub fn arm(&mut self, id: TimerId, at: Instant) {
        assert!(id.kind < self.kinds, "a kind of timer beyond those announced");
        if at == Instant::NEVER {
            return self.cancel(id);
        }
        if self.many.is_none() {
            self.remove(id);
            if usize::from(self.len) < FEW {
                return self.insert(id, at.as_ps());
            }
            self.grow();
        }
        if let Some(many) = &mut self.many {
            many.arm(id, at.as_ps());
            self.next = many.next();
        }
    }

    /// Cancels a timer, if it is armed.
    pub fn cancel(&mut self, id: TimerId) {
        match &mut self.many {
            None => {
                self.remove(id);
                self.next = self.few[0].at;
            }
            Some(many) => {
                many.cancel(id);
                self.next = many.next();
            }
        }
    }

    /// Takes out the first timer that is due by `now`, if any is. Call it until it gives nothing.
    #[inline]
    pub fn expire(&mut self, now: Instant) -> Option<TimerId> {
        if self.next > now.as_ps() || self.next == NEVER {
            return None;
        }
        match &mut self.many {
            None => {
                let id = self.few[0].id;
                self.close(0);
                self.next = self.few[0].at;
                Some(id)
            }
            Some(many) => {
                let id = many.pop();
                self.next = many.next();
                id
            }
        }
    }

    /// Puts a timer among the few, behind those that are due no later.
    #[inline]
    fn insert(&mut self, id: TimerId, at: u64) {
        self.serial += 1;
        let mut place = usize::from(self.len);
        self.len += 1;
        while place > 0 && self.few[place - 1].at > at {
            self.few[place] = self.few[place - 1];
            place -= 1;
        }
        self.few[place] = Entry { at, serial: self.serial, id };
        self.next = self.few[0].at;
    }

    /// Takes a timer out from among the few, if it is there. The caller sees to `next`.
    #[inline]
    fn remove(&mut self, id: TimerId) {
        if let Some(place) = self.few[..usize::from(self.len)].iter().position(|entry| entry.id == id) {
            self.close(place);
        }
    }

    /// Closes the gap at `place`; the place behind the last holds no instant.
    #[inline]
    fn close(&mut self, place: usize) {
        self.few.copy_within(place + 1.., place);
        self.few[FEW - 1].at = NEVER;
        self.len -= 1;
    }

    /// There are more than a few from now on; they move in the order in which they were armed.
    #[cold]
    fn grow(&mut self) {
        let mut many = Many::new(self.kinds, self.prepared);
        self.few.sort_unstable_by_key(|entry| entry.serial);
        for entry in &self.few[..usize::from(self.len)] {
            many.arm(entry.id, entry.at);
        }
        self.len = 0;
        self.many = Some(Box::new(many));
    }
}

#[cfg(test)]
mod tests;
