//! A timing wheel: the part of the event queue that takes any event.

use crate::queue::Key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot spans 2¹⁴ ps, 16 ns: about the distance of two events at some hundred hosts.
const SLOT_BITS: u32 = 14;
/// The wheel reaches 16.8 µs ahead, beyond which lie only timers and far links.
const SLOTS: usize = 1024;
const WORDS: usize = SLOTS / 64;
/// How far from the end of the current slot a key is sorted in.
const NEAR: usize = 32;

/// Keys in order: unsorted slots ahead, the current slot sorted, and heaps for what lies before it and beyond the wheel.
#[derive(Debug)]
pub(crate) struct Wheel {
    slots: Vec<Vec<Key>>,
    /// Which slots hold something.
    occupied: [u64; WORDS],
    /// Keys in `slots`.
    waiting: usize,
    /// The current slot's keys in order; those before `taken` are gone.
    current: Vec<Key>,
    taken: usize,
    /// The number of the current slot, counted from the start of the run.
    slot: u64,
    /// The next slot after it that holds something, or [`NO_SLOT`].
    upcoming: u64,
    /// Keys that are older than the current slot, and those of it that lie far from both ends of what is left there. The queue takes the
    /// wheel's least key out before its time, and a timer that is the only one sends the wheel far ahead: what is pushed until then comes
    /// here. So does most of what a thousand links of terabits bring into a slot while it lasts; to be sorted in took two thirds of a run.
    early: BinaryHeap<Reverse<Key>>,
    beyond: BinaryHeap<Reverse<Key>>,
}

/// No slot: nothing waits on the wheel.
const NO_SLOT: u64 = u64::MAX;

#[expect(clippy::cast_possible_truncation, reason = "reduced modulo the number of slots first")]
const fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![Vec::new(); SLOTS],
            occupied: [0; WORDS],
            waiting: 0,
            current: Vec::new(),
            taken: 0,
            slot: 0,
            upcoming: NO_SLOT,
            early: BinaryHeap::new(),
            beyond: BinaryHeap::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: Key) {
        let slot = key.time() >> SLOT_BITS;
        if slot < self.slot {
            self.early.push(Reverse(key));
        } else if slot == self.slot {
            self.insert(key);
        } else if slot - self.slot < SLOTS as u64 {
            self.put(slot, key);
        } else {
            self.beyond.push(Reverse(key));
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Key> {
        if let Some(&Reverse(key)) = self.early.peek()
            && self.current.get(self.taken).is_none_or(|&first| key < first)
        {
            self.early.pop();
            return Some(key);
        }
        if self.taken >= self.current.len() && !self.advance() {
            return None;
        }
        let key = self.current[self.taken];
        self.taken += 1;
        Some(key)
    }

    /// About the key that `n` pops after the last one would yield: exact within the current slot, and in the next one
    /// any of its keys, which are not in order yet.
    #[inline]
    pub(crate) fn ahead(&self, n: usize) -> Option<Key> {
        let at = self.taken + n;
        match self.current.get(at) {
            Some(&key) => Some(key),
            None if self.upcoming == NO_SLOT => None,
            None => self.slots[place(self.upcoming)].get(at - self.current.len()).copied(),
        }
    }

    /// Puts `key` among the sorted remainder of the current slot, where it often was the first until an earlier one
    /// came.
    fn insert(&mut self, key: Key) {
        if self.taken > 0 && self.current.get(self.taken).is_none_or(|&first| key < first) {
            self.taken -= 1;
            self.current[self.taken] = key;
            return;
        }
        let mut place = self.current.len();
        if place > self.taken + NEAR && key < self.current[place - NEAR] {
            self.early.push(Reverse(key));
            return;
        }
        self.current.push(key);
        while place > self.taken && self.current[place - 1] > key {
            self.current[place] = self.current[place - 1];
            place -= 1;
        }
        self.current[place] = key;
    }

    #[inline]
    fn put(&mut self, slot: u64, key: Key) {
        let at = place(slot);
        self.slots[at].push(key);
        self.occupied[at / 64] |= 1 << (at % 64);
        self.waiting += 1;
        self.upcoming = self.upcoming.min(slot);
    }

    /// Moves on to the next slot that holds something; whether there is one.
    fn advance(&mut self) -> bool {
        self.current.clear();
        self.taken = 0;
        let beyond = self.beyond.peek().map_or(NO_SLOT, |Reverse(key)| key.time() >> SLOT_BITS);
        let next = self.upcoming.min(beyond);
        if next == NO_SLOT {
            return false;
        }
        self.slot = next;
        let at = place(next);
        std::mem::swap(&mut self.current, &mut self.slots[at]);
        self.occupied[at / 64] &= !(1 << (at % 64));
        self.waiting -= self.current.len();
        self.upcoming = self.next_occupied();
        while let Some(&Reverse(key)) = self.beyond.peek() {
            let slot = key.time() >> SLOT_BITS;
            if slot >= next + SLOTS as u64 {
                break;
            }
            self.beyond.pop();
            if slot == next {
                self.current.push(key);
            } else {
                self.put(slot, key);
            }
        }
        if self.current.len() > 1 {
            self.current.sort_unstable();
        }
        true
    }

    /// The next slot on the wheel that holds something, or [`NO_SLOT`].
    fn next_occupied(&self) -> u64 {
        if self.waiting == 0 {
            return NO_SLOT;
        }
        let start = place(self.slot + 1);
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        while bits == 0 {
            word = (word + 1) % WORDS;
            bits = self.occupied[word];
        }
        let at = word * 64 + bits.trailing_zeros() as usize;
        self.slot + 1 + (at.wrapping_sub(start) % SLOTS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{EventQueue, HORIZON_PS};

    /// Events that are each pushed when the one before has happened, while a timer stands ten seconds ahead.
    #[test]
    fn a_timer_far_ahead_lets_nothing_pile_up() {
        let mut queue = EventQueue::new();
        queue.push_at(10_000_000_000_000, 1, 0);
        let mut random = roci_units::Random::new(1, 1);
        for _ in 0..100_000 {
            queue.push_at(queue.now() + random.below(40_000_000), 0, 0);
            assert_eq!(queue.pop(HORIZON_PS).map(Key::kind), Some(0));
        }
        let wheel = queue.wheel();
        assert!(wheel.current.capacity() <= 8 && wheel.early.capacity() <= 8 && wheel.beyond.capacity() <= 8);
        assert_eq!(queue.pop(HORIZON_PS).map(Key::kind), Some(1));
    }

    /// Two thousand links that bring an event every few nanoseconds into a slot of 16, beside later ones.
    #[test]
    fn a_crowded_slot_gives_its_events_in_order() {
        let mut queue = EventQueue::new();
        let mut random = roci_units::Random::new(2, 1);
        for link in 0..2_000 {
            queue.push_at(random.below(20_000), 0, link);
        }
        let mut last = 0;
        for _ in 0..50_000 {
            let key = queue.pop(HORIZON_PS).expect("each is followed by another");
            assert!(key.time() >= last, "{} after {last}", key.time());
            last = key.time();
            queue.push_at(last + random.below(9_000), 0, 0);
        }
        assert!(queue.wheel().current.capacity() > NEAR && queue.wheel().early.capacity() > NEAR);
        assert_eq!(std::iter::from_fn(|| queue.pop(HORIZON_PS)).count(), 2_000);
    }
}
