//! Octets and the rates at which they move.

use crate::time::Span;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A number of octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// None.
    pub const ZERO: Self = Self(0);
}

impl Add for Bytes {
    type Output = Self;
    /// # Panics
    /// In debug builds, when the sum is 2⁶⁴ or more.
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    /// # Panics
    /// In debug builds, when `other` is more: a number of octets is never negative.
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Bytes {
    /// Writes the largest decimal unit that needs no rounding, a binary one where only that is exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 6] = [
            (1_000_000_000, "GB"),
            (1 << 30, "GiB"),
            (1_000_000, "MB"),
            (1 << 20, "MiB"),
            (1_000, "KB"),
            (1 << 10, "KiB"),
        ];
        match UNITS.into_iter().find(|(size, _)| self.0 != 0 && self.0.is_multiple_of(*size)) {
            Some((size, unit)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// A rate in bits per second, up to 18 Eb/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSec(pub u64);

impl BitsPerSec {
    /// `mbps` megabits per second, of 10⁶ bits; below 1.8·10¹³ of them.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// `gbps` gigabits per second, of 10⁹ bits; below 1.8·10¹⁰ of them.
    pub const fn from_gbps(gbps: u64) -> Self {
        Self(gbps * 1_000_000_000)
    }

    /// `kbps` kilobits per second, of 1000 bits, the unit of the laws; below 1.8·10¹⁶ of them.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }

    /// Whole kilobits per second, rounded down; `u32::MAX` (4.3 Tb/s) where that is out of range.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn as_kbps(self) -> u32 {
        let kbps = self.0 / 1_000;
        if kbps > u32::MAX as u64 { u32::MAX } else { kbps as u32 }
    }

    /// How long `octets` take at this rate, rounded up to a picosecond; [`Span::MAX`] at rate zero.
    ///
    /// For back-to-back transmissions use [`Pace`], which carries the remainder from one to the next.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn time_for(self, octets: u64) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let ps = (octets as u128 * 8_000_000_000_000).div_ceil(self.0 as u128);
        if ps > u64::MAX as u128 { Span::MAX } else { Span::from_ps(ps as u64) }
    }

    /// How many whole octets pass in `span`, rounded down; `u64::MAX` where that is out of range.
    #[expect(clippy::cast_possible_truncation, reason = "compared with the bound first")]
    pub const fn octets_in(self, span: Span) -> u64 {
        let octets = self.0 as u128 * span.as_ps() as u128 / 8_000_000_000_000;
        if octets > u64::MAX as u128 { u64::MAX } else { octets as u64 }
    }
}

impl fmt::Display for BitsPerSec {
    /// Writes the largest unit that needs no rounding: `10Gb/s`, `2500Mb/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "Tb/s"), (1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "Kb/s")];
        match UNITS.into_iter().find(|(size, _)| self.0 != 0 && self.0.is_multiple_of(*size)) {
            Some((size, unit)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}b/s", self.0),
        }
    }
}

/// The exact time of back-to-back octets at a link's rate: a remainder is carried, never dropped.
///
/// After any number of transmissions without a gap, the sum of their times is the true time rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Whole picoseconds an octet takes.
    whole_ps: u64,
    /// What is left of an octet's time, in units of 1/rate ps.
    part: u64,
    rate: u64,
    carried: u64,
}

impl Pace {
    /// The pace of `rate`.
    ///
    /// # Panics
    /// When `rate` is zero: a link without a rate is refused before it is built.
    pub const fn new(rate: BitsPerSec) -> Self {
        assert!(rate.0 > 0, "a pace needs a rate");
        Self {
            whole_ps: 8_000_000_000_000 / rate.0,
            part: 8_000_000_000_000 % rate.0,
            rate: rate.0,
            carried: 0,
        }
    }

    /// The time of the next `octets`, in which less than a picosecond is carried over. It is to be below [`Span::MAX`], as it is for 2³² octets
    /// from 2 Kb/s on.
    #[inline]
    pub const fn advance(&mut self, octets: u32) -> Span {
        let mut ps = self.whole_ps * octets as u64;
        if self.part != 0 {
            let due = self.part as u128 * octets as u128 + self.carried as u128;
            #[expect(clippy::cast_possible_truncation, reason = "part < rate, so the quotient is below 2³²")]
            {
                ps += (due / self.rate as u128) as u64;
                self.carried = (due % self.rate as u128) as u64;
            }
        }
        Span::from_ps(ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_octet_at_400_gigabit_lasts_20_picoseconds() {
        assert_eq!(BitsPerSec::from_gbps(400).time_for(1), Span::from_ps(20));
        assert_eq!(Pace::new(BitsPerSec::from_gbps(400)).advance(1), Span::from_ps(20));
    }

    #[test]
    fn a_rate_of_zero_takes_forever() {
        assert_eq!(BitsPerSec(0).time_for(1), Span::MAX);
    }

    proptest! {
        #[test]
        fn a_pace_never_drifts(rate in 1_000u64..900_000_000_000, sizes in prop::collection::vec(1u32..10_000, 1..200)) {
            let mut pace = Pace::new(BitsPerSec(rate));
            let (mut octets, mut ps) = (0u128, 0u128);
            for size in sizes {
                octets += u128::from(size);
                ps += u128::from(pace.advance(size).as_ps());
                prop_assert_eq!(ps, octets * 8_000_000_000_000 / u128::from(rate));
            }
        }
    }
}
