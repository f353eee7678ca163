//! Which octets of a message have arrived.

use crate::messages::RESENDS_AT_ONCE;
use crate::qp::BITMAP_PACKETS_MAX;
use alloc::vec::Vec;
use core::iter;
use core::ops::Range;

/// Octets that have arrived: a stretch from the start, and others in order that do not touch.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    pub(super) start: u32,
    pub(super) beyond: Vec<(u32, u32)>,
    pub(super) octets: u32,
}

/// Stretches beyond the first octet that is missing: a receiver keeps no more packets than its window has, and who names more
/// stretches lies.
const STRETCHES: usize = BITMAP_PACKETS_MAX as usize;

impl Ranges {
    /// Adds `from..to`, if that is not one stretch too many.
    pub(super) fn add(&mut self, from: u32, to: u32) {
        let (mut from, mut to) = (from.max(self.start), to);
        if from >= to {
            return;
        }
        let first = self.beyond.partition_point(|range| range.1 < from);
        let mut last = first;
        while let Some(&(low, high)) = self.beyond.get(last).filter(|range| range.0 <= to) {
            (from, to) = (from.min(low), to.max(high));
            self.octets -= high - low;
            last += 1;
        }
        if first == last && from != self.start && self.beyond.len() >= STRETCHES {
            return;
        }
        self.octets += to - from;
        if from == self.start {
            self.start = to;
            self.beyond.drain(first..last);
        } else {
            self.beyond.splice(first..last, [(from, to)]);
        }
    }

    /// The end of what has arrived beyond octets that are missing, where some are.
    pub(super) fn reach(&self) -> Option<u32> {
        self.beyond.last().map(|range| range.1)
    }

    /// Where the first `count` octets end that are missing within `octets`, in so many stretches as are asked for at once.
    pub(super) fn first_missing(&self, octets: Range<u32>, count: u32) -> u32 {
        let (mut left, mut end) = (count, octets.start);
        for (from, to) in self.gaps(octets).take(RESENDS_AT_ONCE) {
            let taken = left.min(to - from);
            (left, end) = (left - taken, from + taken);
            if left == 0 {
                break;
            }
        }
        end
    }

    /// The stretches of missing octets within `octets`.
    pub(super) fn gaps(&self, octets: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        let ends = iter::once(self.start).chain(self.beyond.iter().map(|range| range.1));
        let begins = self.beyond.iter().map(|range| range.0).chain(iter::once(u32::MAX));
        let gaps = ends.zip(begins).map(move |(end, begin)| (end.max(octets.start), begin.min(octets.end)));
        gaps.filter(|&(from, to)| from < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_every_other_octet_takes_no_more_room_than_a_window() {
        let mut ranges = Ranges::default();
        for packet in 1..50_000 {
            ranges.add(2 * packet, 2 * packet + 1);
        }
        assert_eq!((ranges.beyond.len(), ranges.octets), (STRETCHES, BITMAP_PACKETS_MAX));
        // What closes a gap counts all the same.
        ranges.add(3, 4);
        assert_eq!((ranges.beyond.len(), ranges.octets), (STRETCHES - 1, BITMAP_PACKETS_MAX + 1));
        ranges.add(0, 2);
        assert_eq!((ranges.start, ranges.beyond.len()), (5, STRETCHES - 2));
        ranges.add(0, 100_000);
        assert_eq!((ranges.start, ranges.octets, ranges.reach()), (100_000, 100_000, None));
    }
}
