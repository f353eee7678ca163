//! The rings of queue pair numbers, one for each priority.

use super::PRIORITIES;
use alloc::{boxed::Box, vec::Vec};

/// The rings of all priorities. The one in use stands at a fixed place: to look it up by its number with each turn cost 3 ns a
/// segment, in a bench of nothing else.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Rings {
    /// That of the priority in use, `forward` of the schedule, is the first and has changed places with that of priority 0.
    pub(super) by_place: [Ring; PRIORITIES as usize],
}

impl Rings {
    #[inline]
    const fn place(forward: u8, priority: u8) -> usize {
        if priority == forward {
            0
        } else if priority == 0 {
            forward as usize
        } else {
            priority as usize
        }
    }

    #[inline]
    pub(super) fn of(&mut self, forward: u8, priority: u8) -> &mut Ring {
        &mut self.by_place[Self::place(forward, priority)]
    }

    #[inline]
    pub(super) fn look(&self, forward: u8, priority: u8) -> &Ring {
        &self.by_place[Self::place(forward, priority)]
    }

    /// Makes the ring of `priority` the front one in place of that of `forward`.
    pub(super) fn bring_forward(&mut self, forward: u8, priority: u8) {
        self.by_place.swap(0, usize::from(forward));
        self.by_place.swap(0, usize::from(priority));
    }

    #[inline]
    pub(super) const fn front(&mut self) -> &mut Ring {
        &mut self.by_place[0]
    }

    /// Whether no queue pair has an entry, not even one left behind.
    pub(super) fn are_empty(&self) -> bool {
        self.by_place.iter().all(|ring| ring.len == 0)
    }
}

/// A growing ring of queue pair numbers: a power of two of them, or no memory at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    pub(super) entries: Box<[u32]>,
    head: u32,
    len: u32,
}

impl Ring {
    #[inline]
    pub(super) fn push_back(&mut self, qp: u32) {
        if self.len as usize == self.entries.len() {
            self.grow_to(self.len + 1);
        }
        let at = self.index(self.len);
        self.entries[at] = qp;
        self.len += 1;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        let qp = self.get(0)?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(qp)
    }

    /// Moves the first entry to the end, and gives the one that is then the first; the ring has one.
    #[inline]
    pub(super) fn rotate(&mut self) -> u32 {
        let (from, to) = (self.index(0), self.index(self.len));
        if to != from {
            self.entries[to] = self.entries[from];
        }
        self.head = self.head.wrapping_add(1);
        self.entries[self.index(0)]
    }

    #[inline]
    pub(super) fn get(&self, distance: u32) -> Option<u32> {
        if distance < self.len { self.entries.get(self.index(distance)).copied() } else { None }
    }

    /// The place of the entry `distance` after the head. The head runs on freely: the length is a power of two.
    #[inline]
    fn index(&self, distance: u32) -> usize {
        self.head.wrapping_add(distance) as usize & self.entries.len().wrapping_sub(1)
    }

    #[cold]
    pub(super) fn grow_to(&mut self, count: u32) {
        let size = (count.next_power_of_two() as usize).max(2);
        if size <= self.entries.len() {
            return;
        }
        let mut entries = Vec::with_capacity(size);
        entries.extend((0..self.len).filter_map(|n| self.get(n)));
        entries.resize(size, 0);
        self.entries = entries.into_boxed_slice();
        self.head = 0;
    }
}
