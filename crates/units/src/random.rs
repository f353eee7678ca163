//! The one source of chance: seeded, the same on every machine.

use crate::Ratio;

/// A stream of pseudo-random numbers: xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64.
///
/// A run has one seed; each node, link or flow draws from a stream of its own, so that adding one disturbs no
/// other. Not for anything that an adversary must not guess.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// Stream number `stream` of the run with this `seed`.
    pub const fn new(seed: u64, stream: u64) -> Self {
        // The stream number is mixed before it meets the seed, lest seed 1 stream 2 be seed 2 stream 1.
        let mut mixed = stream;
        let mut state = seed ^ split_mix(&mut mixed);
        Self {
            state: [
                split_mix(&mut state),
                split_mix(&mut state),
                split_mix(&mut state),
                split_mix(&mut state),
            ],
        }
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`, each equally likely (Lemire 2019: multiply, and reject the few that would favour some).
    ///
    /// # Panics
    /// When `bound` is zero: there is no such number.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves of the product are meant")]
    pub const fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number lies below zero");
        loop {
            let product = self.next_u64() as u128 * bound as u128;
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Whether an event of this probability happens; a ratio above one always does.
    #[inline]
    pub const fn chance(&mut self, probability: Ratio) -> bool {
        self.below(probability.denominator() as u64) < probability.numerator() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // Worked out by hand from the definition for the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!([random.next_u64(), random.next_u64(), random.next_u64()], [11_520, 0, 1_509_978_240]);
        let mut zero = 0;
        assert_eq!(split_mix(&mut zero), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn streams_differ_and_seeds_differ() {
        let first = |seed, stream| Random::new(seed, stream).next_u64();
        assert_ne!(first(1, 2), first(2, 1));
        assert_ne!(first(1, 1), first(1, 2));
        assert_eq!(first(7, 7), first(7, 7));
    }

    #[test]
    fn each_number_below_a_bound_is_as_likely() {
        let mut random = Random::new(1, 0);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(random.below(6)).unwrap()] += 1;
        }
        // Five standard deviations of a binomial count: sqrt(60 000 · 5/36) is 91.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 456), "{counts:?}");
    }

    #[test]
    fn chances_are_exact_at_the_ends() {
        let mut random = Random::new(3, 0);
        assert!((0..1000).all(|_| random.chance(Ratio::ONE)));
        assert!((0..1000).all(|_| !random.chance(Ratio::ZERO)));
    }
}
