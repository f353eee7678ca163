//! How often a bit is wrong.

use core::fmt;

/// The chance that one bit of a link arrives wrong, at most one half, in steps of 2⁻⁶⁴.
///
/// Links are specified down to one bit in 10¹⁵, which a [`Ratio`](crate::Ratio) of 32-bit terms cannot say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitErrorRate(u64);

impl BitErrorRate {
    /// No bit is wrong.
    pub const ZERO: Self = Self(0);

    /// So many 2⁻⁶⁴; `None` above one half.
    pub const fn from_steps(steps: u64) -> Option<Self> {
        if steps <= 1 << 63 { Some(Self(steps)) } else { None }
    }

    /// Whether no bit is ever wrong.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The chance that `octets` arrive without a wrong bit, each wrong by itself: (1 − p)^(8 · octets), in 2⁻⁶⁴, rounded down.
    /// Certainty, which would be 2⁶⁴, is one step less.
    pub const fn survival(self, octets: u32) -> u64 {
        const fn times(a: u64, b: u64) -> u64 {
            ((a as u128 * b as u128) >> 64) as u64
        }
        if self.0 == 0 {
            return u64::MAX;
        }
        // Squares of the chance of one bit, those whose place is a one in the number of bits multiplied.
        let (mut square, mut bits, mut product) = (self.0.wrapping_neg(), octets as u64 * 8, u64::MAX);
        while bits != 0 {
            if bits & 1 == 1 {
                product = times(product, square);
            }
            square = times(square, square);
            bits >>= 1;
        }
        product
    }
}

impl fmt::Display for BitErrorRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0 as f64 / (1u128 << 64) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    extern crate std;

    fn read(text: &str) -> BitErrorRate {
        text.parse().unwrap()
    }

    #[test]
    fn a_frame_survives_as_often_as_all_of_its_bits_do() {
        for (text, octets) in [("1e-5", 64), ("1e-6", 1_084), ("2.5e-9", 4_178), ("1e-12", 9_216), ("0.5", 1)]
        {
            let survival = read(text).survival(octets) as f64 / (1u128 << 64) as f64;
            let p: f64 = text.parse().unwrap();
            let expected = (f64::from(octets * 8) * (-p).ln_1p()).exp();
            let lost = (1.0 - survival) / (1.0 - expected);
            assert!((lost - 1.0).abs() < 1e-4, "{text}: {survival} for {expected}");
        }
        assert_eq!(BitErrorRate::ZERO.survival(9_216), u64::MAX);
        assert_eq!(read("1e-9").survival(0), u64::MAX);
    }

    #[test]
    fn a_longer_frame_never_survives_more_often() {
        let survivals: Vec<u64> = (0..2_000).map(|octets| read("1e-7").survival(octets)).collect();
        assert!(survivals.windows(2).all(|pair| pair[1] < pair[0]));
    }
}
