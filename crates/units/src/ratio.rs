//! Exact fractions of a whole, such as a gain, a threshold or a probability.

use core::fmt;

/// A fraction `numerator / denominator` in lowest terms, at least zero; denominators below 2³².
///
/// Gains such as `1/256` and probabilities such as `1%` are written by people as decimals or fractions, and both
/// are exact here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u32,
    denominator: u32,
}

const fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Default for Ratio {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Ratio {
    /// Zero.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// One, the whole.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator` in lowest terms; `None` where the denominator is zero or the terms need more than
    /// 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn checked(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator, denominator);
        let (n, d) = (numerator / divisor, denominator / divisor);
        if n > u32::MAX as u64 || d > u32::MAX as u64 {
            return None;
        }
        Some(Self { numerator: n as u32, denominator: d as u32 })
    }

    /// `numerator / denominator`, for constants.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub const fn new(numerator: u32, denominator: u32) -> Self {
        match Self::checked(numerator as u64, denominator as u64) {
            Some(ratio) => ratio,
            None => panic!("a ratio needs a denominator"),
        }
    }

    /// The upper term.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// The lower term, never zero.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// Whether it is at most one, as a probability must be.
    pub const fn is_proper(self) -> bool {
        self.numerator <= self.denominator
    }

    /// `value × self`, rounded down; saturates.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn of(self, value: u64) -> u64 {
        let product = value as u128 * self.numerator as u128 / self.denominator as u128;
        if product > u64::MAX as u128 { u64::MAX } else { product as u64 }
    }

    /// The nearest fixed-point number with `bits` fractional bits (0 to 31); halves round up, and it saturates.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn fixed(self, bits: u32) -> u64 {
        let scaled = (self.numerator as u128) << (bits + 1);
        let doubled = scaled / self.denominator as u128;
        let rounded = doubled.div_ceil(2);
        if rounded > u64::MAX as u128 { u64::MAX } else { rounded as u64 }
    }

    /// Its value, for people and reports; never used to compute with.
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_lowest() {
        assert_eq!(Ratio::new(4, 1024), Ratio::new(1, 256));
        assert_eq!(Ratio::checked(1, 0), None);
    }

    #[test]
    fn fixed_point_rounds_to_the_nearest() {
        assert_eq!(Ratio::new(1, 256).fixed(10), 4);
        assert_eq!(Ratio::new(1, 3).fixed(2), 1);
        assert_eq!(Ratio::new(3, 8).fixed(2), 2);
        assert_eq!(Ratio::new(1, 100).of(12_345), 123);
    }
}
