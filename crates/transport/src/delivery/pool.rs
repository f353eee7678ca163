//! The bitmaps of queue pairs in loss. Most are in order most of the time and have none (SRNIC, *bitmap
//! onloading*), so a few hundred serve thousands of queue pairs.

use super::bitmap::{Bitmap, BitmapMut};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use roci_units::Psn;

/// A pool of slots, each of the same number of planes (bitmaps) over a window of the same size.
///
/// Memory grows when a slot is needed that has never been, up to the limit; what was given back is used again.
#[derive(Debug)]
pub struct Pool {
    words: Vec<u64>,
    /// Slots given back. It has room for all, so that giving one back allocates nothing.
    free: Vec<(Slot, VecDeque<Psn>)>,
    slots: u32,
    limit: u32,
    /// The last three are no wider than they have to be: an engine has two pools, and a data centre many engines.
    planes: u16,
    words_per_plane: u16,
    refused: u32,
}

/// The right to one slot of a pool: taken once and given back once, hence neither `Copy` nor `Clone`.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot(NonZeroU32);

impl Slot {
    fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Pool {
    /// At most `limit` slots of `planes` bitmaps of `packets` bits each.
    ///
    /// # Panics
    /// When `packets` is no power of two from 64 to 2²¹, or `planes` is zero.
    #[must_use]
    pub fn new(packets: u32, planes: u16, limit: u32) -> Self {
        assert!(
            packets.is_power_of_two() && (64..=1 << 21).contains(&packets),
            "a window of {packets} packets"
        );
        assert!(planes > 0, "a slot has bitmaps");
        #[expect(clippy::cast_possible_truncation, reason = "2¹⁵ at most")]
        let words_per_plane = (packets / 64) as u16;
        Self { words: Vec::new(), free: Vec::new(), slots: 0, limit, planes, words_per_plane, refused: 0 }
    }

    /// The packets in a window, a power of two from 64 to 2²¹.
    #[inline]
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.words_per_plane as u32 * 64
    }

    /// Whether [`take`](Self::take) would give a slot.
    #[inline]
    #[must_use]
    pub fn available(&self) -> bool {
        !self.free.is_empty() || self.slots < self.limit
    }

    /// The same for who would take one now: a refusal is counted.
    #[inline]
    pub fn offers(&mut self) -> bool {
        let available = self.available();
        self.refused = self.refused.saturating_add(u32::from(!available));
        available
    }

    /// How often a slot was wanted and none was left, up to 2³² - 1.
    #[must_use]
    pub const fn refused(&self) -> u32 {
        self.refused
    }

    /// How many slots are taken now, of `limit` at most.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.slots - u32::try_from(self.free.len()).unwrap_or(self.slots)
    }

    /// A slot with all bits clear; `None` when all are taken.
    pub fn take(&mut self) -> Option<Slot> {
        self.take_with_queue().map(|(slot, _)| slot)
    }

    /// The same with an empty queue for packets' numbers, which has the memory that was given back with the slot.
    pub(super) fn take_with_queue(&mut self) -> Option<(Slot, VecDeque<Psn>)> {
        let words = usize::from(self.planes) * usize::from(self.words_per_plane);
        if let Some((slot, queue)) = self.free.pop() {
            let first = slot.index() * words;
            self.words[first..first + words].fill(0);
            return Some((slot, queue));
        }
        if self.slots >= self.limit {
            self.refused = self.refused.saturating_add(1);
            return None;
        }
        self.slots += 1;
        self.words.resize(self.slots as usize * words, 0);
        self.free.reserve(self.slots as usize);
        NonZeroU32::new(self.slots).map(|number| (Slot(number), VecDeque::new()))
    }

    /// Takes a slot back.
    pub fn give(&mut self, slot: Slot) {
        self.give_with_queue(slot, VecDeque::new());
    }

    /// Takes a slot back with its queue.
    pub(super) fn give_with_queue(&mut self, slot: Slot, mut queue: VecDeque<Psn>) {
        queue.clear();
        self.free.push((slot, queue));
    }

    /// One bitmap of a slot.
    ///
    /// # Panics
    /// When `plane` is not below the number of planes.
    #[inline]
    #[must_use]
    pub fn plane(&self, slot: &Slot, plane: u32) -> Bitmap<'_> {
        Bitmap::new(&self.words[self.range(slot, plane)])
    }

    /// One bitmap of a slot, to change it.
    ///
    /// # Panics
    /// When `plane` is not below the number of planes.
    #[inline]
    pub fn plane_mut(&mut self, slot: &Slot, plane: u32) -> BitmapMut<'_> {
        let range = self.range(slot, plane);
        BitmapMut::new(&mut self.words[range])
    }

    /// Sets `count` bits from `from` on in plane `plane`, but for those that are set in plane `except`, a lower one;
    /// how many were clear.
    pub(super) fn set_except(&mut self, slot: &Slot, plane: u32, except: u32, from: Psn, count: u32) -> u32 {
        debug_assert!(except < plane, "the lower plane is the one that is read");
        let (read, written) = (self.range(slot, except), self.range(slot, plane));
        let (low, high) = self.words.split_at_mut(written.start);
        let length = written.len();
        BitmapMut::new(&mut high[..length]).set_except(from, count, Bitmap::new(&low[read]))
    }

    /// [`BitmapMut::count_range`], with the upper bits in the plane after `plane`.
    pub(super) fn count_range(&mut self, slot: &Slot, plane: u32, from: Psn, count: u32) -> u32 {
        let (low, high) = (self.range(slot, plane), self.range(slot, plane + 1));
        let (before, after) = self.words.split_at_mut(high.start);
        let length = high.len();
        BitmapMut::new(&mut before[low]).count_range(from, count, &mut BitmapMut::new(&mut after[..length]))
    }

    fn range(&self, slot: &Slot, plane: u32) -> core::ops::Range<usize> {
        assert!(plane < self.planes.into(), "no such plane");
        let size = usize::from(self.words_per_plane);
        let first = (slot.index() * usize::from(self.planes) + plane as usize) * size;
        first..first + size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pool_costs_nothing_and_grows_slot_by_slot_to_its_limit() {
        let mut pool = Pool::new(256, 3, 2);
        assert_eq!(pool.words.capacity(), 0);
        let first = pool.take().unwrap();
        assert_eq!(pool.words.len(), 12);
        let second = pool.take().unwrap();
        assert!(!pool.available());
        assert_eq!(pool.take(), None, "exhaustion is a value");
        assert!(!pool.offers());
        assert_eq!(pool.refused(), 2);
        assert_ne!(first, second);
        pool.give(first);
        assert_eq!(pool.taken(), 1);
        assert!(pool.take().is_some());
        assert_eq!(pool.words.len(), 24);
    }

    #[test]
    fn a_slot_is_clear_when_it_is_taken_again_and_planes_do_not_touch() {
        let mut pool = Pool::new(64, 2, 1);
        let slot = pool.take().unwrap();
        pool.plane_mut(&slot, 0).set_range(Psn::new(0), 64);
        assert_eq!(pool.plane(&slot, 1).count(Psn::new(0), 64), 0);
        pool.give(slot);
        let slot = pool.take().unwrap();
        assert_eq!(pool.plane(&slot, 0).count(Psn::new(0), 64), 0);
    }
}
