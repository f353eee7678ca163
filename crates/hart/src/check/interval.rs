//! Sets of words as intervals: what the checker knows of a value.

use super::arc::refine;
use crate::execute::arithmetic;
use crate::instruction::Op;

/// All words from `low` to `high`, both included, counted as unsigned numbers. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: u32,
    pub(super) high: u32,
}

const SIGN: u32 = 1 << 31;

impl Interval {
    /// Any word.
    pub(super) const ANY: Self = Self { low: 0, high: u32::MAX };

    pub(super) const fn one(value: u32) -> Self {
        Self { low: value, high: value }
    }

    pub(super) const fn new(low: u32, high: u32) -> Self {
        debug_assert!(low <= high, "an interval is not empty");
        Self { low, high }
    }

    /// The value, if there is but one.
    pub(super) fn value(self) -> Option<u32> {
        (self.low == self.high).then_some(self.low)
    }

    /// The smallest interval that holds both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// A bound that grew goes to its end, so that growing ends.
    pub(super) fn widen(self, next: Self) -> Self {
        Self {
            low: if next.low < self.low { 0 } else { self.low },
            high: if next.high > self.high { u32::MAX } else { self.high },
        }
    }

    /// From 64-bit bounds: exact when both lie in the same turn of 2³², else any word.
    fn wrapped(low: i64, high: i64) -> Self {
        if low >> 32 != high >> 32 {
            return Self::ANY;
        }
        // Only the lower 32 bits count, and both bounds have lost the same upper ones.
        let word = |value: i64| u32::try_from(value & i64::from(u32::MAX)).unwrap_or(u32::MAX);
        Self::new(word(low), word(high))
    }

    fn is_positive(self) -> bool {
        self.high < SIGN
    }
}

/// The results of an operation on two registers.
pub(super) fn compute(op: Op, a: Interval, b: Interval) -> Interval {
    if let (Some(a), Some(b)) = (a.value(), b.value()) {
        return Interval::one(arithmetic(op, a, b));
    }
    let wide = |value: u32| i64::from(value);
    match op {
        Op::Add => Interval::wrapped(wide(a.low) + wide(b.low), wide(a.high) + wide(b.high)),
        Op::Sub => Interval::wrapped(wide(a.low) - wide(b.high), wide(a.high) - wide(b.low)),
        Op::Sll => shift(a, b, |value, by| u64::from(value) << by),
        Op::Srl => shift(a, b, |value, by| u64::from(value >> by)),
        Op::Sra if a.is_positive() => shift(a, b, |value, by| u64::from(value >> by)),
        Op::Sra => match b.value() {
            Some(by) if a.low >= SIGN => {
                Interval::new(arithmetic(Op::Sra, a.low, by), arithmetic(Op::Sra, a.high, by))
            }
            _ => Interval::ANY,
        },
        Op::And => Interval::new(0, a.high.min(b.high)),
        // Neither is more than the sum, which is what words give that share no bit.
        Op::Or => Interval::new(a.low.max(b.low), fill(a.high | b.high).min(a.high.saturating_add(b.high))),
        Op::Xor => Interval::new(0, fill(a.high | b.high).min(a.high.saturating_add(b.high))),
        Op::Slt => decided(decide(Op::Blt, a, b)),
        Op::Sltu => decided(decide(Op::Bltu, a, b)),
        Op::Mul => match (u64::from(a.high) * u64::from(b.high)).try_into() {
            Ok(high) => Interval::new(a.low * b.low, high),
            Err(_) => Interval::ANY,
        },
        Op::Mulhu => Interval::new(arithmetic(op, a.low, b.low), arithmetic(op, a.high, b.high)),
        // By zero the quotient is all ones, and the rest the dividend.
        Op::Divu if b.high == 0 => Interval::one(u32::MAX),
        Op::Divu => Interval::new(a.low / b.high, a.high.checked_div(b.low).unwrap_or(u32::MAX)),
        Op::Remu if b.high == 0 => a,
        Op::Remu if b.low > 0 => Interval::new(0, a.high.min(b.high - 1)),
        Op::Remu => Interval::new(0, a.high),
        Op::Div if b.low > 0 && a.is_positive() && b.is_positive() => {
            Interval::new(a.low / b.high, a.high / b.low)
        }
        Op::Rem if b.low > 0 && a.is_positive() && b.is_positive() => {
            Interval::new(0, a.high.min(b.high - 1))
        }
        // It has the sign of the dividend, and is no further from zero, whatever the divisor.
        Op::Rem if a.is_positive() => Interval::new(0, a.high),
        _ => Interval::ANY,
    }
}

/// Shifts whose distance is known within a word's width.
fn shift(a: Interval, b: Interval, by: impl Fn(u32, u32) -> u64) -> Interval {
    if b.high > 31 {
        return match b.value() {
            Some(distance) => shift(a, Interval::one(distance & 31), by),
            None => Interval::ANY,
        };
    }
    let all = [(a.low, b.low), (a.low, b.high), (a.high, b.low), (a.high, b.high)].map(|(v, d)| by(v, d));
    let (low, high) = all.iter().fold((u64::MAX, 0), |(low, high), &v| (low.min(v), high.max(v)));
    match (low.try_into(), high.try_into()) {
        (Ok(low), Ok(high)) => Interval::new(low, high),
        _ => Interval::ANY,
    }
}

/// All bits below the highest one that is set.
fn fill(value: u32) -> u32 {
    u32::MAX.checked_shr(value.leading_zeros()).unwrap_or(0)
}

fn decided(answer: Option<bool>) -> Interval {
    answer.map_or(Interval::new(0, 1), |answer| Interval::one(u32::from(answer)))
}

/// Whether a branch is taken, if all values agree.
fn decide(op: Op, a: Interval, b: Interval) -> Option<bool> {
    let goes = |taken| refine(op, a.into(), b.into(), taken).is_some();
    match (goes(true), goes(false)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Words near the places where something turns over.
    pub(in crate::check) fn edge() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            (0u32..40),
            (0u32..40).prop_map(|n| SIGN.wrapping_add(n).wrapping_sub(20)),
            (0u32..40).prop_map(|n| u32::MAX - n),
            (0u32..32, 0u32..3).prop_map(|(bit, n)| (1u32 << bit).wrapping_add(n).wrapping_sub(1)),
        ]
    }

    /// Some value, and an interval around it.
    fn around() -> impl Strategy<Value = (u32, Interval)> {
        (edge(), edge(), edge()).prop_map(|(a, b, c)| {
            let mut sorted = [a, b, c];
            sorted.sort_unstable();
            (sorted[1], Interval::new(sorted[0], sorted[2]))
        })
    }

    fn holds(interval: Interval, value: u32) -> bool {
        (interval.low..=interval.high).contains(&value)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn no_result_lies_outside_what_is_computed((a, of_a) in around(), (b, of_b) in around()) {
            for op in [
                Op::Add, Op::Sub, Op::Sll, Op::Slt, Op::Sltu, Op::Xor, Op::Srl, Op::Sra, Op::Or, Op::And, Op::Mul,
                Op::Mulh, Op::Mulhsu, Op::Mulhu, Op::Div, Op::Divu, Op::Rem, Op::Remu,
            ] {
                let (result, interval) = (arithmetic(op, a, b), compute(op, of_a, of_b));
                prop_assert!(holds(interval, result), "{op} {of_a:?} {of_b:?}: {result:#x} outside {interval:?}");
            }
        }
    }

    #[test]
    fn a_rest_is_no_more_than_the_dividend_whatever_the_divisor() {
        let (some, any) = (Interval::new(3, 15), Interval::ANY);
        for op in [Op::Rem, Op::Remu] {
            assert_eq!(compute(op, some, any), Interval::new(0, 15), "{op}");
            assert_eq!(
                compute(op, some, Interval::new(0, 4)),
                Interval::new(0, 15),
                "{op}: by zero it is the dividend"
            );
            assert_eq!(compute(op, some, Interval::new(1, 4)), Interval::new(0, 3), "{op}");
        }
        assert_eq!(compute(Op::Remu, some, Interval::one(0)), some);
        assert_eq!(compute(Op::Divu, some, Interval::one(0)), Interval::one(u32::MAX));
        assert_eq!(compute(Op::Divu, some, Interval::new(0, 3)), Interval::new(1, u32::MAX));
    }

    #[test]
    fn a_value_halved_again_and_again_ends_at_zero() {
        let mut value = Interval::ANY;
        for _ in 0..32 {
            value = compute(Op::Srl, value, Interval::one(1));
        }
        assert_eq!(value, Interval::one(0));
    }
}
