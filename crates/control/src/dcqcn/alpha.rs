//! The congestion estimate alpha in fixed point, as NICs keep it.

/// What becomes of the digits that a fixed-point product cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest; halves go up.
    Nearest,
    /// They are dropped.
    Down,
}

/// The two equations of alpha, `α ← (1 − g)·α` and `α ← (1 − g)·α + g` (SIGCOMM 2015, equations 1 and 2), in
/// fixed point. Alpha is `0..=1 << bits`, which stands for 0 to 1.
///
/// The rounding decides more than a digit. To the nearest, an alpha of 10 bits with g = 4/1024 stops decaying at
/// 128, one eighth, because 4/1024 of 128 is half a unit and rounds away; truncated, it decays to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimator {
    /// Fractional bits of alpha, 4 to 30.
    pub bits: u8,
    /// The gain g in the same fixed point, `1..=1 << bits`.
    pub gain: u32,
    /// What is done with the product's lower digits.
    pub rounding: Rounding,
}

impl Estimator {
    /// The number that stands for one, 2⁴ to 2³⁰.
    pub const fn one(self) -> u32 {
        1 << self.bits
    }

    /// One update; `seen` tells whether congestion was notified in the period that ends.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "(1 − g)·α + g is at most one, below 2³¹")]
    pub const fn update(self, alpha: u32, seen: bool) -> u32 {
        let half = match self.rounding {
            Rounding::Nearest => 1 << (self.bits - 1),
            Rounding::Down => 0,
        };
        let kept = ((alpha as u64 * (self.one() - self.gain) as u64 + half) >> self.bits) as u32;
        if seen { kept + self.gain } else { kept }
    }

    /// What was kept with `bits` fractional bits, in these.
    pub const fn converted(self, alpha: u32, bits: u8) -> u32 {
        if bits <= self.bits {
            return alpha << (self.bits - bits);
        }
        let lost = bits - self.bits;
        let half = match self.rounding {
            Rounding::Nearest => 1 << (lost - 1),
            Rounding::Down => 0,
        };
        (alpha + half) >> lost
    }

    /// `periods` updates, of which only the first can have seen congestion.
    ///
    /// Bit for bit what single updates give, yet never longer than alpha takes to come to rest: an alpha that an
    /// update leaves as it is stays so.
    #[inline]
    pub const fn decay(self, alpha: u32, seen: bool, periods: u64) -> u32 {
        if periods == 0 {
            return alpha;
        }
        let mut alpha = self.update(alpha, seen);
        let mut left = periods - 1;
        while left > 0 {
            let next = self.update(alpha, false);
            if next == alpha {
                break;
            }
            alpha = next;
            left -= 1;
        }
        alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SURF: Estimator = Estimator { bits: 10, gain: 4, rounding: Rounding::Nearest };
    const ISEKAI: Estimator = Estimator { bits: 10, gain: 5, rounding: Rounding::Down };

    /// Updates from `alpha` until nothing changes: how many, and where.
    fn rest(estimator: Estimator, mut alpha: u32, seen: bool) -> (u32, u32) {
        let mut updates = 0;
        loop {
            let next = estimator.update(alpha, seen);
            if next == alpha {
                return (updates, alpha);
            }
            alpha = next;
            updates += 1;
        }
    }

    #[test]
    fn rounded_to_the_nearest_alpha_stalls_at_an_eighth_and_climbs_to_seven() {
        // The 502nd update from 1023 is the first that changes nothing.
        assert_eq!(rest(SURF, 1023, false), (501, 128));
        assert_eq!(rest(SURF, 0, true).1, 897);
    }

    #[test]
    fn truncated_alpha_decays_to_zero_and_climbs_to_four_fifths() {
        assert_eq!(rest(ISEKAI, 1023, false).1, 0);
        assert_eq!(rest(ISEKAI, 0, true).1, 820);
    }

    #[test]
    fn the_stall_is_the_rounding_and_not_the_gain() {
        assert_eq!(rest(Estimator { rounding: Rounding::Down, ..SURF }, 1023, false).1, 0);
        // With g = 5/1024 half a unit is lost from 102 down: 5 · 102 < 512 ≤ 5 · 103.
        assert_eq!(rest(Estimator { rounding: Rounding::Nearest, ..ISEKAI }, 1023, false).1, 102);
    }

    #[test]
    fn a_wide_alpha_follows_the_real_numbers() {
        let wide = Estimator { bits: 24, gain: 1 << 16, rounding: Rounding::Down };
        let after = f64::from(wide.decay(wide.one(), false, 500)) / f64::from(wide.one());
        assert!((after - (255.0f64 / 256.0).powi(500)).abs() < 2e-5, "{after}");
    }

    proptest! {
        #[test]
        fn many_periods_at_once_equal_one_by_one(
            bits in 4u8..=30, gain in 1u32..1 << 30, nearest: bool, start in 0u32..=1 << 30,
            steps in prop::collection::vec((any::<bool>(), 0u64..400), 1..20),
        ) {
            let one = 1u32 << bits;
            let rounding = if nearest { Rounding::Nearest } else { Rounding::Down };
            let estimator = Estimator { bits, gain: gain % one + 1, rounding };
            let (mut lazy, mut eager) = (start % (one + 1), start % (one + 1));
            for (seen, periods) in steps {
                lazy = estimator.decay(lazy, seen, periods);
                for period in 0..periods {
                    eager = estimator.update(eager, seen && period == 0);
                    prop_assert!(eager <= one);
                }
                prop_assert_eq!(lazy, eager);
            }
        }

        #[test]
        fn a_day_of_idling_is_the_state_of_rest(start in 0u32..=1 << 24) {
            let wide = Estimator { bits: 24, gain: 1 << 16, rounding: Rounding::Down };
            prop_assert_eq!(wide.decay(start, false, u64::MAX), rest(wide, start, false).1);
        }
    }
}
