//! Sets of words as arcs: the circle of all words is 2³² around, and adding a constant only turns it.

use super::interval::Interval;
use crate::instruction::Op;

/// The word `low` and the `span` words after it, modulo 2³². Never empty.
///
/// An interval is an arc that does not cross zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arc {
    pub(super) low: u32,
    pub(super) span: u32,
}

impl From<Interval> for Arc {
    fn from(Interval { low, high }: Interval) -> Self {
        Self { low, span: high - low }
    }
}

impl Arc {
    pub(super) const fn one(value: u32) -> Self {
        Self { low: value, span: 0 }
    }

    /// The word, if there is but one.
    pub(super) fn value(self) -> Option<u32> {
        (self.span == 0).then_some(self.low)
    }

    /// Any word, where the arc crosses zero.
    pub(super) fn interval(self) -> Interval {
        self.low.checked_add(self.span).map_or(Interval::ANY, |high| Interval::new(self.low, high))
    }

    pub(super) fn crosses_zero(self) -> bool {
        self.low.checked_add(self.span).is_none()
    }

    /// Each word and so much more.
    pub(super) fn turned(self, by: u32) -> Self {
        Self { low: self.low.wrapping_add(by), ..self }
    }

    /// All sums of two.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { low: self.low.wrapping_add(other.low), span: self.span.saturating_add(other.span) }
    }

    /// All differences of two.
    pub(super) fn minus(self, other: Self) -> Self {
        let last = other.low.wrapping_add(other.span);
        Self { low: self.low.wrapping_sub(last), span: self.span.saturating_add(other.span) }
    }

    /// Whether `other` has all words of this one.
    pub(super) fn is_within(self, other: Self) -> bool {
        let first = self.low.wrapping_sub(other.low);
        other.span == u32::MAX || first.checked_add(self.span).is_some_and(|last| last <= other.span)
    }

    /// An arc that holds both: the shorter one; but of two that do not cross zero one that does only where it is short,
    /// for then these are signed numbers near zero, and else numbers that programs compare as unsigned ones.
    pub(super) fn hull(self, other: Self) -> Self {
        const SHORT: u32 = 1 << 16;
        let from = |first: Self, second: Self| {
            let reach = second.low.wrapping_sub(first.low).saturating_add(second.span);
            Self { low: first.low, span: first.span.max(reach) }
        };
        let (mine, theirs) = (from(self, other), from(other, self));
        let (short, long) = if theirs.span < mine.span { (theirs, mine) } else { (mine, theirs) };
        let crosses = self.crosses_zero() || other.crosses_zero() || !short.crosses_zero();
        if crosses || short.span < SHORT { short } else { long }
    }

    /// The words of both, and where those lie apart, all words of the shorter.
    pub(super) fn meet(self, other: Self) -> Option<Self> {
        let ahead = other.low.wrapping_sub(self.low);
        let behind = self.low.wrapping_sub(other.low);
        match (self.span.checked_sub(ahead), other.span.checked_sub(behind)) {
            (Some(_), Some(_)) if self.span <= other.span => Some(self),
            (Some(_), Some(_)) => Some(other),
            (Some(left), None) => Some(Self { span: other.span.min(left), ..other }),
            (None, Some(left)) => Some(Self { span: self.span.min(left), ..self }),
            (None, None) => None,
        }
    }

    /// What is left when it is not `word`.
    pub(super) fn without(self, word: u32) -> Option<Self> {
        match word.wrapping_sub(self.low) {
            place if place > self.span => Some(self),
            _ if self.span == 0 => None,
            0 => Some(Self { low: self.low.wrapping_add(1), span: self.span - 1 }),
            place if place == self.span => Some(Self { span: self.span - 1, ..self }),
            _ if self.span == u32::MAX => Some(Self { low: word.wrapping_add(1), span: u32::MAX - 1 }),
            _ => Some(self),
        }
    }
}

/// How far to turn two words so that counting from zero puts them in the order that a branch asks for: signed numbers
/// begin half-way around.
fn turn(op: Op) -> u32 {
    if matches!(op, Op::Blt | Op::Bge) { 1 << 31 } else { 0 }
}

/// What is left of two words when a branch is taken, or is not; `None` when that cannot be.
pub(super) fn refine(op: Op, a: Arc, b: Arc, taken: bool) -> Option<(Arc, Arc)> {
    let turn = turn(op);
    let (a, b) = (a.turned(turn), b.turned(turn));
    let (of_a, of_b) = (a.interval(), b.interval());
    let between = |low, high| Arc::from(Interval::new(low, high));
    let (a, b) = match (op, taken) {
        (Op::Beq, true) | (Op::Bne, false) => (a.meet(b)?, b.meet(a)?),
        (Op::Beq, false) | (Op::Bne, true) => {
            let left = |one: Arc, other: Arc| other.value().map_or(Some(one), |word| one.without(word));
            (left(a, b)?, left(b, a)?)
        }
        (Op::Bltu | Op::Blt, true) | (Op::Bgeu | Op::Bge, false) => (
            a.meet(between(0, of_b.high.checked_sub(1)?))?,
            b.meet(between(of_a.low.checked_add(1)?, u32::MAX))?,
        ),
        _ => (a.meet(between(of_b.low, u32::MAX))?, b.meet(between(0, of_a.high))?),
    };
    // Half around and half around again is once around.
    Some((a.turned(turn), b.turned(turn)))
}

/// Whether a branch is taken, where its two words have the same place on two arcs, and the arcs tell.
pub(super) fn decide_abreast(op: Op, a: Arc, b: Arc) -> Option<bool> {
    let turn = turn(op);
    let (a, b) = (a.turned(turn), b.turned(turn));
    let equal = a.low == b.low;
    let ordered = equal || !a.crosses_zero() && !b.crosses_zero();
    match op {
        Op::Beq => Some(equal),
        Op::Bne => Some(!equal),
        Op::Blt | Op::Bltu => ordered.then_some(a.low < b.low),
        _ => ordered.then_some(a.low >= b.low),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::interval::tests::edge;
    use crate::execute::arithmetic;
    use proptest::prelude::*;

    /// An arc and a place on it.
    fn arc() -> impl Strategy<Value = (Arc, u32)> {
        (edge(), edge(), edge()).prop_map(|(low, a, b)| (Arc { low, span: a.max(b) }, a.min(b)))
    }

    fn word((arc, place): (Arc, u32)) -> u32 {
        arc.low.wrapping_add(place)
    }

    fn holds(arc: Arc, word: u32) -> bool {
        word.wrapping_sub(arc.low) <= arc.span
    }

    fn goes(a: u32, b: u32) -> [(Op, bool); 6] {
        let (sa, sb) = (a.cast_signed(), b.cast_signed());
        [
            (Op::Beq, a == b),
            (Op::Bne, a != b),
            (Op::Blt, sa < sb),
            (Op::Bge, sa >= sb),
            (Op::Bltu, a < b),
            (Op::Bgeu, a >= b),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8192))]

        #[test]
        fn no_word_is_lost_by_sums_and_hulls(a in arc(), b in arc()) {
            let ((of_a, _), (of_b, _), x, y) = (a, b, word(a), word(b));
            prop_assert!(holds(of_a.plus(of_b), arithmetic(Op::Add, x, y)));
            prop_assert!(holds(of_a.minus(of_b), arithmetic(Op::Sub, x, y)));
            let hull = of_a.hull(of_b);
            prop_assert!(holds(hull, x) && holds(hull, y));
            prop_assert!(of_a.is_within(hull) && of_b.is_within(hull));
            prop_assert!(!of_a.is_within(of_b) || holds(of_b, x));
            let Interval { low, high } = of_a.interval();
            prop_assert!((low..=high).contains(&x));
        }

        #[test]
        fn a_word_of_two_arcs_is_where_they_meet(a in arc(), by in arc()) {
            let (of_a, x) = (a.0, word(a));
            let of_b = Arc { low: x.wrapping_sub(by.1), ..by.0 };
            prop_assert!(holds(of_b, x));
            let both = of_a.meet(of_b);
            prop_assert!(both.is_some_and(|both| holds(both, x) && both.span <= of_a.span.min(of_b.span)));
        }

        #[test]
        fn no_word_that_goes_a_way_is_refined_away(a in arc(), b in arc()) {
            let ((of_a, _), (of_b, _), x, y) = (a, b, word(a), word(b));
            for (op, taken) in goes(x, y) {
                let left = refine(op, of_a, of_b, taken);
                prop_assert!(
                    left.is_some_and(|(of_a, of_b)| holds(of_a, x) && holds(of_b, y)),
                    "{op} {x:#x} of {of_a:?}, {y:#x} of {of_b:?}, {taken}: {left:?}"
                );
            }
        }

        #[test]
        fn words_abreast_go_where_their_arcs_say((of_a, place) in arc(), apart in edge()) {
            let of_b = of_a.turned(apart);
            let (x, y) = (word((of_a, place)), word((of_b, place)));
            for (op, taken) in goes(x, y) {
                let decided = decide_abreast(op, of_a, of_b);
                prop_assert!(decided.is_none_or(|decided| decided == taken), "{op} {of_a:?}, {of_b:?}: {decided:?}");
            }
        }
    }

    #[test]
    fn what_a_branch_leaves_is_no_more_than_it_must_be() {
        let arc = |low: i32, high: i32| {
            let (low, high) = (low.cast_unsigned(), high.cast_unsigned());
            Arc { low, span: high.wrapping_sub(low) }
        };
        let zero = Arc::one(0);
        assert_eq!(refine(Op::Blt, arc(-1, 14), zero, false), Some((arc(0, 14), zero)));
        assert_eq!(refine(Op::Blt, arc(-3, 14), zero, true), Some((arc(-3, -1), zero)));
        assert_eq!(refine(Op::Bne, arc(-1, 14), arc(-1, -1), true), Some((arc(0, 14), arc(-1, -1))));
        assert_eq!(refine(Op::Bltu, arc(3, 2), arc(10, 10), true), Some((arc(0, 9), arc(10, 10))));
        assert_eq!(refine(Op::Bne, arc(8, 7), zero, true), Some((arc(1, -1), zero)));
        assert_eq!(refine(Op::Beq, arc(-2, 3), arc(4, 9), true), None);
        assert_eq!(decide_abreast(Op::Bltu, arc(4, 9), arc(12, 17)), Some(true));
        assert_eq!(decide_abreast(Op::Bltu, arc(0, -1), arc(8, 7)), None);
    }
}
