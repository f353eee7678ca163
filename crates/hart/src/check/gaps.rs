//! How far apart registers are that differ by no constant.
//!
//! A compiler counts in whatever the loop changes anyway: of `for (i = 0; i < n; i++) count++` may be left a `count` that goes on
//! until it is `count + n`, of which nobody knows more than of `count`. What is known is that it is n ahead.

use super::arc::Arc;
use crate::instruction::{Op, Register};

/// More are forgotten, the oldest first.
const GAPS_MAX: usize = 8;

/// Longer ones end no loop that is short enough.
const SPAN_MAX: u32 = 1 << 16;

/// Differences of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps(Vec<Gap>);

/// `minuend - subtrahend`, modulo 2³², is on the arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    minuend: Register,
    subtrahend: Register,
    arc: Arc,
}

impl Gap {
    fn is_of(&self, register: Register) -> bool {
        self.minuend == register || self.subtrahend == register
    }

    fn is_between(&self, a: Register, b: Register) -> bool {
        (self.minuend, self.subtrahend) == (a, b) || (self.minuend, self.subtrahend) == (b, a)
    }
}

impl Gaps {
    /// Learns of two different registers how far apart they are, if that is not far.
    pub(super) fn learn(&mut self, minuend: Register, subtrahend: Register, arc: Arc) {
        if minuend == subtrahend || minuend.is_zero() || subtrahend.is_zero() || arc.span >= SPAN_MAX {
            return;
        }
        self.0.retain(|gap| !gap.is_between(minuend, subtrahend));
        if self.0.len() == GAPS_MAX {
            self.0.remove(0);
        }
        self.0.push(Gap { minuend, subtrahend, arc });
    }

    /// The register is written.
    pub(super) fn forget(&mut self, register: Register) {
        self.0.retain(|gap| !gap.is_of(register));
    }

    /// The register grows by so much.
    pub(super) fn grow(&mut self, register: Register, by: u32) {
        for gap in &mut self.0 {
            if gap.minuend == register {
                gap.arc = gap.arc.turned(by);
            } else if gap.subtrahend == register {
                gap.arc = gap.arc.turned(by.wrapping_neg());
            }
        }
    }

    /// What is known behind a branch; `None` where it cannot go that way.
    pub(super) fn branch(&self, op: Op, a: Register, b: Register, taken: bool) -> Option<Self> {
        let equal = match op {
            Op::Beq => taken,
            Op::Bne => !taken,
            _ => return Some(self.clone()),
        };
        let mut left = self.clone();
        for gap in left.0.iter_mut().filter(|gap| gap.is_between(a, b)) {
            gap.arc = if equal { gap.arc.meet(Arc::one(0))? } else { gap.arc.without(0)? };
        }
        Some(left)
    }

    /// Takes in another way to the same point.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.retain_mut(|mine| match other.between(mine) {
            Some(theirs) => {
                mine.arc = mine.arc.hull(theirs);
                mine.arc.span < SPAN_MAX
            }
            None => false,
        });
    }

    /// Whether all that is known there is known here too.
    pub(super) fn are_within(&self, other: &Self) -> bool {
        other.0.iter().all(|theirs| self.between(theirs).is_some_and(|mine| mine.is_within(theirs.arc)))
    }

    /// Whether all that is known is so.
    #[cfg(test)]
    fn hold(&self, x: &[u32; 32]) -> bool {
        self.0.iter().all(|gap| {
            let apart = x[gap.minuend.index()].wrapping_sub(x[gap.subtrahend.index()]);
            Arc::one(apart).is_within(gap.arc)
        })
    }

    /// What is known of the same difference.
    fn between(&self, other: &Gap) -> Option<Arc> {
        let same = |gap: &&Gap| (gap.minuend, gap.subtrahend) == (other.minuend, other.subtrahend);
        self.0.iter().find(same).map(|gap| gap.arc)
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::Interval;
    use super::super::state::State;
    use super::*;
    use crate::execute::arithmetic;
    use crate::instruction::Instruction;
    use crate::program::{Machine, Program};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_known_of_differences_is_so(
            starts in prop::collection::vec((any::<u32>(), 0u32..40, 0u32..40), 4),
            steps in prop::collection::vec((0usize..5, 0u8..4, 0u8..4, 0u8..4, -3i32..4), 1..60),
        ) {
            let program = Program::from_words(&[0x13], Machine::default()).expect("it fits");
            let mut state = State::reset(&program);
            let mut x = [0; 32];
            let register = |number: u8| Register::new(5 + number);
            for (number, (low, below, above)) in (0u8..).zip(starts) {
                let low = low.min(u32::MAX - below - above);
                state.write(register(number), Interval::new(low, low + below + above));
                x[register(number).index()] = low + below;
            }
            for (op, rd, rs1, rs2, imm) in steps {
                let [rd, rs1, rs2] = [rd, rs1, rs2].map(register);
                let (a, b) = (x[rs1.index()], x[rs2.index()]);
                if op == 4 {
                    let on = state.branch(Op::Bne, rs1, rs2, a != b);
                    prop_assert!(on.is_some(), "it goes that way");
                    state = on.unwrap_or(state);
                    continue;
                }
                let op = [Op::Add, Op::Sub, Op::Addi, Op::Xor][op];
                let b = if op == Op::Addi { imm.cast_unsigned() } else { b };
                let (rs2, imm) = if op == Op::Addi { (Register::ZERO, imm) } else { (rs2, 0) };
                x[rd.index()] = arithmetic(if op == Op::Addi { Op::Add } else { op }, a, b);
                let done = state.execute(&program, 0, &Instruction { op, rd, rs1, rs2, imm });
                prop_assert!(done.is_ok());
                prop_assert!(state.gaps().hold(&x), "{:?}", state.gaps());
            }
        }
    }

    fn arc(low: u32, high: u32) -> Arc {
        Arc { low, span: high - low }
    }

    #[test]
    fn one_that_comes_nearer_is_reached_and_not_passed() {
        let (end, at) = (Register::new(15), Register::new(13));
        let mut gaps = Gaps::default();
        gaps.learn(end, at, arc(1, 3));
        for turn in 1..=3 {
            gaps.grow(at, 1);
            let on = gaps.branch(Op::Bne, end, at, true);
            assert_eq!(on.is_some(), turn < 3);
            gaps = on.unwrap_or(gaps);
        }
        assert!(gaps.branch(Op::Beq, at, end, true).is_some());
        assert!(gaps.branch(Op::Beq, at, end, false).is_none());
    }

    #[test]
    fn what_is_not_known_on_both_ways_is_not_known_behind_them() {
        let [a, b, c] = [5, 6, 7].map(Register::new);
        let (mut one, mut other) = (Gaps::default(), Gaps::default());
        one.learn(a, b, arc(1, 3));
        one.learn(a, c, arc(0, 9));
        other.learn(a, b, arc(5, 8));
        let before = one.clone();
        one.join(&other);
        assert_eq!(one.0, [Gap { minuend: a, subtrahend: b, arc: arc(1, 8) }]);
        assert!(before.are_within(&one) && other.are_within(&one));
        assert!(!one.are_within(&before) && !one.are_within(&other));
        one.forget(b);
        assert_eq!(one, Gaps::default());
        one.learn(a, a, arc(0, 0));
        one.learn(a, Register::ZERO, arc(0, 0));
        one.learn(a, b, Arc { low: 0, span: u32::MAX });
        assert_eq!(one, Gaps::default());
    }
}
