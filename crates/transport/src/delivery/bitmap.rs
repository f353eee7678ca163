//! One bit per packet of a window, as a ring: the place of a bit follows from its PSN alone, so a window that moves
//! shifts nothing and one that wraps at 2²⁴ needs no care. All searches go by whole words.

use roci_units::Psn;

/// Bits that may be read. The number of bits is a power of two, at least 64; bits outside the window that the caller
/// keeps are zero.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap<'a>(&'a [u64]);

/// Bits that may be changed.
#[derive(Debug)]
pub struct BitmapMut<'a>(&'a mut [u64]);

/// The part of a range that lies in one word.
struct Chunk {
    word: usize,
    mask: u64,
    /// How far the word's bit 0 lies after the range's beginning; negative in the first chunk, hence wrapping.
    origin: u32,
}

/// The words of `count` bits from `from` on, in a ring of `words` words.
#[inline]
fn chunks(from: Psn, count: u32, words: usize) -> impl Iterator<Item = Chunk> {
    debug_assert!(count as usize <= words * 64, "a range is no longer than the ring");
    let mut done = 0;
    core::iter::from_fn(move || {
        (done < count).then(|| {
            let at = from.get().wrapping_add(done);
            let bit = at & 63;
            let take = (64 - bit).min(count - done);
            let chunk = Chunk {
                word: (at / 64) as usize & (words - 1),
                mask: (u64::MAX >> (64 - take)) << bit,
                origin: done.wrapping_sub(bit),
            };
            done += take;
            chunk
        })
    })
}

const fn locate(psn: Psn, words: usize) -> (usize, u64) {
    ((psn.get() / 64) as usize & (words - 1), 1 << (psn.get() & 63))
}

impl<'a> Bitmap<'a> {
    /// The bits in `words`.
    ///
    /// # Panics
    /// In debug builds, when the number of words is no power of two or does not divide the PSNs' 2²⁴.
    #[inline]
    #[must_use]
    pub const fn new(words: &'a [u64]) -> Self {
        debug_assert!(words.len().is_power_of_two() && words.len() <= 1 << 18, "a power of two of words");
        Self(words)
    }

    /// Whether a packet's bit is set.
    #[inline]
    #[must_use]
    pub const fn test(self, psn: Psn) -> bool {
        let (word, bit) = locate(psn, self.0.len());
        self.0[word] & bit != 0
    }

    /// The first packet among `count` from `from` on whose bit is set.
    #[inline]
    #[must_use]
    pub fn first_set(self, from: Psn, count: u32) -> Option<Psn> {
        self.find(from, count, 0)
    }

    /// The first packet among `count` from `from` on whose bit is clear.
    #[inline]
    #[must_use]
    pub fn first_clear(self, from: Psn, count: u32) -> Option<Psn> {
        self.find(from, count, u64::MAX)
    }

    /// The packet among `count` from `from` on whose bit is set and beyond which there are `others` such.
    #[inline]
    #[must_use]
    pub fn last_set_but(self, from: Psn, count: u32, mut others: u32) -> Option<Psn> {
        let mut left = count;
        while left > 0 {
            let last = from.plus(left - 1);
            let (word, bit) = locate(last, self.0.len());
            // The bits of the word up to the last, and none before the range.
            let take = (bit.trailing_zeros() + 1).min(left);
            let mask = (u64::MAX >> (64 - take)) << (bit.trailing_zeros() + 1 - take);
            let mut hits = self.0[word] & mask;
            while hits != 0 {
                let highest = 63 - hits.leading_zeros();
                if others == 0 {
                    return Some(last.minus(bit.trailing_zeros() - highest));
                }
                others -= 1;
                hits &= !(1 << highest);
            }
            left -= take;
        }
        None
    }

    /// How many bits are set among `count` from `from` on.
    #[must_use]
    pub fn count(self, from: Psn, count: u32) -> u32 {
        chunks(from, count, self.0.len()).map(|chunk| (self.0[chunk.word] & chunk.mask).count_ones()).sum()
    }

    /// The first bit that is set once the words are inverted by `inversion`.
    #[inline]
    fn find(self, from: Psn, count: u32, inversion: u64) -> Option<Psn> {
        chunks(from, count, self.0.len()).find_map(|chunk| {
            let hits = (self.0[chunk.word] ^ inversion) & chunk.mask;
            (hits != 0).then(|| from.plus(chunk.origin.wrapping_add(hits.trailing_zeros())))
        })
    }
}

impl<'a> BitmapMut<'a> {
    /// The bits in `words`.
    ///
    /// # Panics
    /// As [`Bitmap::new`].
    #[inline]
    #[must_use]
    pub const fn new(words: &'a mut [u64]) -> Self {
        debug_assert!(words.len().is_power_of_two() && words.len() <= 1 << 18, "a power of two of words");
        Self(words)
    }

    /// The same bits for reading.
    #[inline]
    #[must_use]
    pub const fn as_ref(&self) -> Bitmap<'_> {
        Bitmap(self.0)
    }

    /// Sets a packet's bit; whether it was clear.
    #[inline]
    pub const fn set(&mut self, psn: Psn) -> bool {
        let (word, bit) = locate(psn, self.0.len());
        let was_clear = self.0[word] & bit == 0;
        self.0[word] |= bit;
        was_clear
    }

    /// Clears a packet's bit; whether it was set.
    #[inline]
    pub const fn clear(&mut self, psn: Psn) -> bool {
        let (word, bit) = locate(psn, self.0.len());
        let was_set = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        was_set
    }

    /// Sets `count` bits from `from` on, but for those that are set in `except`; how many were clear.
    pub fn set_except(&mut self, from: Psn, count: u32, except: Bitmap<'_>) -> u32 {
        debug_assert_eq!(self.0.len(), except.0.len(), "two windows of one size");
        let mut were_clear = 0;
        for chunk in chunks(from, count, self.0.len()) {
            let set = chunk.mask & !except.0[chunk.word];
            were_clear += (set & !self.0[chunk.word]).count_ones();
            self.0[chunk.word] |= set;
        }
        were_clear
    }

    /// Counts one more for each of `count` packets from `from` on, in numbers of two bits that stay at three: these are the
    /// lower bits, `high` the upper ones. Gives for how many it was not the first.
    pub fn count_range(&mut self, from: Psn, count: u32, high: &mut Self) -> u32 {
        debug_assert_eq!(self.0.len(), high.0.len(), "two windows of one size");
        let mut again = 0;
        for Chunk { word, mask, .. } in chunks(from, count, self.0.len()) {
            let (low, up) = (self.0[word], high.0[word]);
            again += ((low | up) & mask).count_ones();
            self.0[word] = low & !mask | (!low | up) & mask;
            high.0[word] = up | low & mask;
        }
        again
    }

    /// Sets `count` bits from `from` on, of the window's length at most.
    pub fn set_range(&mut self, from: Psn, count: u32) {
        for chunk in chunks(from, count, self.0.len()) {
            self.0[chunk.word] |= chunk.mask;
        }
    }

    /// Clears `count` bits from `from` on, as when the window moves past them; how many were set.
    pub fn clear_range(&mut self, from: Psn, count: u32) -> u32 {
        let mut were_set = 0;
        for chunk in chunks(from, count, self.0.len()) {
            were_set += (self.0[chunk.word] & chunk.mask).count_ones();
            self.0[chunk.word] &= !chunk.mask;
        }
        were_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn a_window_across_the_end_of_the_sequence_space_is_one_window() {
        let mut words = [0; 2];
        let mut bits = BitmapMut::new(&mut words);
        let from = Psn::new(0x00ff_fff0);
        bits.set_range(from.plus(10), 20);
        assert_eq!(bits.as_ref().first_set(from, 128), Some(Psn::new(0x00ff_fffa)));
        assert_eq!(bits.as_ref().first_clear(from.plus(10), 118), Some(Psn::new(14)));
        assert_eq!(bits.as_ref().count(from, 128), 20);
        assert_eq!(bits.clear_range(from, 16), 6);
        assert_eq!(bits.as_ref().first_set(from, 128), Some(Psn::new(0)));
    }

    proptest! {
        #[test]
        fn counts_of_two_bits_stay_at_three(
            base in 0u32..1 << 24,
            steps in prop::collection::vec((0u32..256, 0u32..256), 1..40),
        ) {
            let (mut low, mut high) = (vec![0; 4], vec![0; 4]);
            let mut counts = [0u8; 256];
            for (at, most) in steps {
                let count = most.min(256 - at);
                let psn = Psn::new(base).plus(at);
                let again = BitmapMut::new(&mut low).count_range(psn, count, &mut BitmapMut::new(&mut high));
                let range = &mut counts[at as usize..(at + count) as usize];
                prop_assert_eq!(again as usize, range.iter().filter(|&&count| count > 0).count());
                range.iter_mut().for_each(|count| *count = (*count + 1).min(3));
            }
            for (at, &count) in (0..).zip(&counts) {
                let psn = Psn::new(base).plus(at);
                let bit = |words| u8::from(Bitmap::new(words).test(psn));
                prop_assert_eq!(bit(&low) + 2 * bit(&high), count);
            }
        }

        #[test]
        fn word_operations_agree_with_a_set_of_numbers(
            log in 6u32..=12,
            base in 0u32..1 << 24,
            steps in prop::collection::vec((0u8..6, any::<u32>(), any::<u32>()), 1..80),
        ) {
            let size = 1 << log;
            let (mut words, mut other) = (vec![0; size / 64], vec![0; size / 64]);
            let (mut bits, mut except) = (BitmapMut::new(&mut words), BitmapMut::new(&mut other));
            let (mut set, mut spared) = (BTreeSet::new(), BTreeSet::new());
            let size = u32::try_from(size).unwrap();
            let base = Psn::new(base);
            for (kind, a, b) in steps {
                let at = a % size;
                let count = b % (size - at + 1);
                let (psn, range) = (base.plus(at), at..at + count);
                match kind {
                    0 => prop_assert_eq!(bits.set(psn), set.insert(at)),
                    1 => prop_assert_eq!(bits.clear(psn), set.remove(&at)),
                    2 => {
                        bits.set_range(psn, count);
                        set.extend(range.clone());
                    }
                    3 => {
                        let before = set.len();
                        set.retain(|at| !range.contains(at));
                        prop_assert_eq!(bits.clear_range(psn, count) as usize, before - set.len());
                    }
                    4 => prop_assert_eq!(except.set(psn), spared.insert(at)),
                    _ => {
                        bits.set_except(psn, count, except.as_ref());
                        set.extend(range.clone().filter(|at| !spared.contains(at)));
                    }
                }
                let bits = bits.as_ref();
                let range = at..at + count;
                let first_set = set.range(range.clone()).next().map(|&at| base.plus(at));
                let first_clear = range.clone().find(|at| !set.contains(at)).map(|at| base.plus(at));
                prop_assert_eq!(bits.first_set(psn, count), first_set);
                prop_assert_eq!(bits.first_clear(psn, count), first_clear);
                for others in 0..4 {
                    let last = set.range(range.clone()).nth_back(others).map(|&at| base.plus(at));
                    prop_assert_eq!(bits.last_set_but(psn, count, u32::try_from(others).unwrap()), last);
                }
                prop_assert_eq!(bits.count(psn, count) as usize, set.range(range).count());
                prop_assert_eq!(bits.test(psn), set.contains(&at));
                prop_assert_eq!(bits.count(base, size) as usize, set.len());
            }
        }
    }
}
