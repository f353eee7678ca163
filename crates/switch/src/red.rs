//! ECN marking by queue length: RED's line from kmin to kmax, or a step.

use roci_units::{BitsPerSec, Bytes, Random, Ratio};

/// Marks none up to `kmin`, all from `kmax` on, and between them a share that grows from none to `pmax`.
///
/// With `kmin == kmax` it is DCTCP's step: none up to it, all beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// The queue length up to which nothing is marked.
    pub kmin: Bytes,
    /// The queue length from which everything is marked.
    pub kmax: Bytes,
    /// The share marked just before `kmax`.
    pub pmax: Ratio,
}

impl Default for Red {
    /// The DCQCN paper's: 5 KB, 200 KB, 1 %.
    fn default() -> Self {
        Self { kmin: Bytes(5_000), kmax: Bytes(200_000), pmax: Ratio::new(1, 100) }
    }
}

impl Red {
    /// Whether it makes sense: `kmin ≤ kmax`, both below 4 GiB, and `pmax ≤ 1`.
    pub const fn is_valid(&self) -> bool {
        self.kmin.0 <= self.kmax.0 && self.kmax.0 <= u32::MAX as u64 && self.pmax.is_proper()
    }

    /// The same in time for a port of `rate`, where it is meant for one of `of`: lengths in proportion, rounded down, below 4 GiB.
    #[must_use]
    pub fn scaled(&self, rate: BitsPerSec, of: BitsPerSec) -> Self {
        let scaled = |length: Bytes| {
            let octets = u128::from(length.0) * u128::from(rate.0) / u128::from(of.0.max(1));
            Bytes(u32::try_from(octets).unwrap_or(u32::MAX).into())
        };
        Self { kmin: scaled(self.kmin), kmax: scaled(self.kmax), pmax: self.pmax }
    }

    /// Whether to mark a packet at a queue of `octets`: exact, for the share is a ratio of integers and so is the
    /// chance.
    #[inline]
    pub fn marks(&self, octets: u32, random: &mut Random) -> bool {
        let octets = u64::from(octets);
        if octets <= self.kmin.0 {
            return false;
        }
        if octets >= self.kmax.0 {
            return true;
        }
        // pmax · (octets − kmin) / (kmax − kmin), numerator and denominator below 2⁶⁴.
        let whole = u64::from(self.pmax.denominator()) * (self.kmax.0 - self.kmin.0);
        random.below(whole) < u64::from(self.pmax.numerator()) * (octets - self.kmin.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_marked_is_the_line() {
        let red = Red { kmin: Bytes(5_000), kmax: Bytes(200_000), pmax: Ratio::new(1, 5) };
        let mut random = Random::new(1, 0);
        for octets in [6_000, 50_000, 102_500, 199_999] {
            let draws = 200_000u32;
            let marked = (0..draws).filter(|_| red.marks(octets, &mut random)).count() as f64;
            let share = 0.2 * f64::from(octets - 5_000) / 195_000.0;
            let deviation = (f64::from(draws) * share * (1.0 - share)).sqrt();
            assert!((marked - f64::from(draws) * share).abs() < 5.0 * deviation, "{octets}: {marked}");
        }
    }

    #[test]
    fn thresholds_for_one_rate_are_scaled_to_another() {
        let gbps = BitsPerSec::from_gbps;
        let red = Red { kmin: Bytes(100_000), kmax: Bytes(400_000), pmax: Ratio::new(1, 5) };
        let lengths =
            |rate| (red.scaled(gbps(rate), gbps(25)).kmin.0, red.scaled(gbps(rate), gbps(25)).kmax.0);
        assert_eq!([25, 100, 10].map(lengths), [(100_000, 400_000), (400_000, 1_600_000), (40_000, 160_000)]);
        let long = Red { kmax: Bytes(4_000_000_000), ..red }.scaled(gbps(400), gbps(1));
        assert_eq!(long.kmax.0, u64::from(u32::MAX));
        assert!(long.is_valid());
    }

    #[test]
    fn nothing_is_marked_up_to_kmin_and_all_from_kmax() {
        let red = Red::default();
        let mut random = Random::new(1, 0);
        assert!((0..1_000).all(|_| !red.marks(5_000, &mut random) && red.marks(200_000, &mut random)));
    }

    #[test]
    fn equal_thresholds_make_a_step() {
        let step = Red { kmin: Bytes(30_000), kmax: Bytes(30_000), pmax: Ratio::ONE };
        let mut random = Random::new(1, 0);
        assert!(!step.marks(30_000, &mut random));
        assert!(step.marks(30_001, &mut random));
    }
}
