//! What is known of the core at a point of the program, and what an instruction makes of it.

use std::collections::BTreeMap;

use super::Reason;
use super::arc::{Arc, decide_abreast, refine};
use super::gaps::Gaps;
use super::interval::{Interval, compute};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::memory::{Misaligned, Region};
use crate::program::Program;

/// Tables up to this many entries are read through; a longer one may hold anything.
const TABLE_MAX: u32 = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    x: [Value; 32],
    /// Beside the families, differences that are not one word.
    gaps: Gaps,
    /// Above the families of all registers.
    next: usize,
    /// Words of stack and data of which something is known, by address; the rest may be anything.
    memory: BTreeMap<u32, Interval>,
    /// The most cycles on any way here since the event began.
    pub(super) cycles: u64,
    /// The most of them since the event was answered, where it may have been.
    pub(super) answered: Option<u64>,
    /// Whether there is a way here on which the event was not answered.
    pub(super) unanswered: bool,
    /// Which of the CSRs that the event's kind gives may have been written since: bit by bit, the last for all beyond.
    written: u32,
    /// A store whose address was not known well enough to keep what was known of memory.
    pub(super) blur: Option<u32>,
}

/// What is known of a register.
///
/// Registers of one family are as far apart as their arcs: all hold the word that has the same place on its arc. So their
/// arcs are equally long, and what is learned of one is learned of all. Constants are one family, and it is theirs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    arc: Arc,
    family: usize,
}

/// The family of constants.
const CONSTANTS: usize = 0;

impl Value {
    const fn one(value: u32) -> Self {
        Self { arc: Arc::one(value), family: CONSTANTS }
    }

    /// The same and so much more.
    fn plus(self, more: u32) -> Self {
        Self { arc: self.arc.turned(more), ..self }
    }
}

/// The octets that an access may touch: the first address of its first and of its last place.
struct Reach {
    low: u32,
    high: u32,
    width: u32,
}

/// Where an access may go: its first and its last address, the octet behind that, and the region that has all of them.
pub(super) struct Place {
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) end: u32,
    pub(super) region: Option<Region>,
}

impl State {
    /// A core that was just made: registers zero but for `sp`, the stack and data unknown.
    pub(super) fn reset(program: &Program) -> Self {
        let mut x = [Value::one(0); 32];
        x[Register::SP.index()] = Value::one(program.machine.memory.stack_top());
        Self {
            x,
            gaps: Gaps::default(),
            next: CONSTANTS + 1,
            memory: BTreeMap::new(),
            cycles: 0,
            answered: None,
            unanswered: false,
            written: 0,
            blur: None,
        }
    }

    /// The same knowledge at the start of an event.
    pub(super) fn afresh(&self) -> Self {
        Self { cycles: 0, answered: None, unanswered: true, written: 0, ..self.clone() }
    }

    /// Time passes.
    pub(super) fn spend(&mut self, cycles: u64) {
        self.cycles += cycles;
        if let Some(since) = &mut self.answered {
            *since += cycles;
        }
    }

    pub(super) fn read(&self, register: Register) -> Interval {
        self.x[register.index()].arc.interval()
    }

    pub(super) fn write(&mut self, register: Register, value: Interval) {
        let value = self.unrelated(value.into());
        self.set(register, value);
    }

    fn set(&mut self, register: Register, value: Value) {
        if !register.is_zero() {
            self.x[register.index()] = value;
            self.gaps.forget(register);
        }
    }

    /// A value of which no more is known than its arc.
    fn unrelated(&mut self, arc: Arc) -> Value {
        let family = if arc.span == 0 { CONSTANTS } else { self.next };
        self.next = self.next.max(family + 1);
        Value { arc, family }
    }

    fn sum(&mut self, a: Value, b: Value) -> Value {
        match (a.arc.value(), b.arc.value()) {
            (_, Some(more)) => a.plus(more),
            (Some(more), None) => b.plus(more),
            (None, None) => self.unrelated(a.arc.plus(b.arc)),
        }
    }

    fn difference(&mut self, a: Value, b: Value) -> Value {
        match b.arc.value() {
            Some(less) => a.plus(less.wrapping_neg()),
            None if a.family == b.family => Value::one(a.arc.low.wrapping_sub(b.arc.low)),
            None => self.unrelated(a.arc.minus(b.arc)),
        }
    }

    #[cfg(test)]
    pub(super) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// Writes a sum or a difference, with what that tells of how far registers are apart.
    fn move_on(&mut self, op: Op, rd: Register, rs1: Register, rs2: Register, value: Value) {
        let (a, b) = (self.x[rs1.index()], self.x[rs2.index()]);
        if rd == rs1 && value.family == a.family && value.family != CONSTANTS {
            let gaps = std::mem::take(&mut self.gaps);
            self.set(rd, value);
            self.gaps = gaps;
            return self.gaps.grow(rd, value.arc.low.wrapping_sub(a.arc.low));
        }
        self.set(rd, value);
        match op {
            Op::Add if rs1 != rs2 => {
                if rs1 != rd {
                    self.gaps.learn(rd, rs1, b.arc);
                }
                if rs2 != rd {
                    self.gaps.learn(rd, rs2, a.arc);
                }
            }
            Op::Sub if rs1 != rs2 && rs1 != rd => self.gaps.learn(rs1, rd, b.arc),
            _ => {}
        }
    }

    /// What is known behind a branch; `None` where it cannot go that way.
    pub(super) fn branch(&self, op: Op, rs1: Register, rs2: Register, taken: bool) -> Option<Self> {
        let (a, b) = (self.x[rs1.index()], self.x[rs2.index()]);
        let related = a.family == b.family;
        if related && decide_abreast(op, a.arc, b.arc).is_some_and(|decided| decided != taken) {
            return None;
        }
        let (left_a, left_b) = refine(op, a.arc, b.arc, taken)?;
        let gaps = self.gaps.branch(op, rs1, rs2, taken)?;
        let mut state = Self { gaps, ..self.clone() };
        // Of one family, each says enough by itself.
        if !related || left_a.span <= left_b.span {
            state.narrow(a, left_a);
        }
        if !related || left_b.span < left_a.span {
            state.narrow(b, left_b);
        }
        Some(state)
    }

    /// Of `value` and all of its family, this much is left.
    fn narrow(&mut self, value: Value, left: Arc) {
        let first = left.low.wrapping_sub(value.arc.low);
        let family = if left.span == 0 { CONSTANTS } else { value.family };
        for member in self.x.iter_mut().filter(|member| member.family == value.family) {
            *member = Value { arc: Arc { span: left.span, ..member.arc.turned(first) }, family };
        }
    }

    /// Takes in another way to the same point.
    pub(super) fn join(&mut self, other: &Self) {
        // Of one family stay those that are as far apart on both ways and behind them.
        let constants = (CONSTANTS, CONSTANTS, 0, Arc::one(0));
        let mut families = vec![constants];
        for (mine, theirs) in self.x.iter_mut().zip(&other.x) {
            let hull = mine.arc.hull(theirs.arc);
            let back = mine.arc.low.wrapping_neg();
            let moved = (mine.family, theirs.family, theirs.arc.turned(back).low, hull.turned(back));
            let family = families.iter().position(|family| *family == moved).unwrap_or_else(|| {
                families.push(moved);
                families.len() - 1
            });
            *mine = Value { arc: hull, family };
        }
        self.next = families.len();
        self.gaps.join(&other.gaps);
        self.merge(other, Interval::hull);
    }

    /// As [`State::join`], but what still changes goes to its end, and is no more related.
    pub(super) fn widen(&mut self, other: &Self) {
        let both = |old: Interval, new: Interval| old.widen(old.hull(new));
        self.next = CONSTANTS + 1;
        self.gaps = Gaps::default();
        for at in 0..self.x.len() {
            let (mine, theirs) = (self.x[at].arc, other.x[at].arc);
            let within = theirs.is_within(mine);
            let arc = if within { mine } else { both(mine.interval(), theirs.interval()).into() };
            self.x[at] = self.unrelated(arc);
        }
        self.merge(other, both);
    }

    /// Takes in all but the registers.
    fn merge(&mut self, other: &Self, both: impl Fn(Interval, Interval) -> Interval) {
        self.memory.retain(|address, mine| match other.memory.get(address) {
            Some(theirs) => {
                *mine = both(*mine, *theirs);
                *mine != Interval::ANY
            }
            None => false,
        });
        self.cycles = self.cycles.max(other.cycles);
        self.answered = self.answered.max(other.answered);
        self.unanswered |= other.unanswered;
        self.written |= other.written;
        self.blur = self.blur.or(other.blur);
    }

    /// Whether the CSR that the event's kind names at `index` may have been written since the event began.
    pub(super) fn overwritten(&self, index: usize) -> bool {
        self.written >> index.min(31) & 1 != 0
    }

    /// It has been written.
    pub(super) fn overwrite(&mut self, index: usize) {
        self.written |= 1 << index.min(31);
    }

    /// Whether all that this state allows, `other` allows too; cycles apart.
    pub(super) fn within(&self, other: &Self) -> bool {
        self.written & !other.written == 0
            && self.x.iter().zip(&other.x).all(|(mine, theirs)| mine.arc.is_within(theirs.arc))
            && self.is_related_as(other)
            && self.gaps.are_within(&other.gaps)
            && other.memory.iter().all(|(address, theirs)| {
                self.memory.get(address).is_some_and(|mine| mine.hull(*theirs) == *theirs)
            })
    }

    /// Whether registers that are related there are so here too, and as far apart.
    fn is_related_as(&self, other: &Self) -> bool {
        (0..self.x.len()).all(|at| {
            let relative = (0..at).find(|&before| other.x[before].family == other.x[at].family);
            relative.is_none_or(|before| {
                let apart = |x: &[Value; 32]| x[at].arc.low.wrapping_sub(x[before].arc.low);
                self.x[at].family == self.x[before].family && apart(&self.x) == apart(&other.x)
            })
        })
    }

    /// From now on `register` is taken not to be zero, unless that is all that it can be.
    pub(super) fn suppose_not_zero(&mut self, register: Register) {
        let Interval { low, high } = self.read(register);
        if low == 0 && high > 0 {
            self.write(register, Interval::new(1, high));
        }
    }

    /// Carries out an instruction that does not transfer control.
    pub(super) fn execute(
        &mut self,
        program: &Program,
        address: u32,
        instruction: &Instruction,
    ) -> Result<(), Reason> {
        let Instruction { op, rd, rs1, rs2, imm } = *instruction;
        let constant = Interval::one(imm.cast_unsigned());
        let (a, b) = (self.x[rs1.index()], self.x[rs2.index()]);
        let kept = match op {
            Op::Addi => Some(a.plus(imm.cast_unsigned())),
            Op::Add => Some(self.sum(a, b)),
            Op::Sub => Some(self.difference(a, b)),
            _ => None,
        };
        if let Some(value) = kept {
            self.move_on(op, rd, rs1, rs2, value);
            return Ok(());
        }
        let value = match op.shape() {
            Shape::Upper if op == Op::Auipc => Interval::one(address.wrapping_add(imm.cast_unsigned())),
            Shape::Upper => constant,
            Shape::Immediate => compute(op.of_registers(), self.read(rs1), constant),
            Shape::Register if rs1 == rs2 && op == Op::Xor => Interval::one(0),
            Shape::Register => compute(op, self.read(rs1), self.read(rs2)),
            Shape::Load => self.load(program, instruction)?,
            Shape::Store => return self.store(program, address, instruction),
            Shape::Csr | Shape::CsrImmediate => Interval::ANY,
            _ => return Ok(()),
        };
        self.write(rd, value);
        Ok(())
    }

    /// Where an access may go; refused when it can only trap.
    fn reach(&self, program: &Program, instruction: &Instruction) -> Result<Reach, Reason> {
        let base = self.x[instruction.rs1.index()];
        let address = base.plus(instruction.imm.cast_unsigned()).arc.interval();
        let width = instruction.op.width();
        let Interval { low, high } = address;
        if instruction.rs1 == Register::SP {
            self.check_stack(program)?;
        }
        if low == high && !low.is_multiple_of(width) && program.machine.misaligned == Misaligned::Trap {
            return Err(Reason::MisalignedAccess { address: low });
        }
        Ok(Reach { low, high, width })
    }

    /// The stack pointer must be known to point into the stack wherever it is used.
    pub(super) fn check_stack(&self, program: &Program) -> Result<(), Reason> {
        let map = &program.machine.memory;
        let pointer = self.read(Register::SP);
        if map.holds_stack_pointer(pointer) {
            return Ok(());
        }
        match pointer.value() {
            Some(value) if value < map.stack_top() && map.stack_top() - value < 1 << 24 => {
                Err(Reason::StackOverflow { octets: map.stack_top() - value, available: map.stack })
            }
            _ => Err(Reason::StackPointer),
        }
    }

    fn load(&self, program: &Program, instruction: &Instruction) -> Result<Interval, Reason> {
        let Reach { low, high, width } = self.reach(program, instruction)?;
        let map = &program.machine.memory;
        if !touches(low, high, width, map.origin, map.length()) {
            return Err(Reason::LoadOutside { address: low });
        }
        let extended = |value: u32| match instruction.op {
            Op::Lb => i32::from(value.to_le_bytes()[0].cast_signed()).cast_unsigned(),
            Op::Lh => i32::from(u16_of(value).cast_signed()).cast_unsigned(),
            _ => value,
        };
        if low == high && width == 4 && map.holds(low, 4) != Some(Region::Rom) {
            return Ok(self.memory.get(&low).copied().unwrap_or(Interval::ANY));
        }
        let entries = (high - low) / width;
        if entries < TABLE_MAX && map.holds(low, high - low + width) == Some(Region::Rom) {
            // Unaligned places in between are read too: that can only widen the result.
            let step = if low.is_multiple_of(width) && program.machine.misaligned == Misaligned::Trap {
                width
            } else {
                1
            };
            return Ok((low..=high)
                .step_by(step as usize)
                .map(|at| Interval::one(extended(rom(program, at, width))))
                .reduce(Interval::hull)
                .unwrap_or(Interval::ANY));
        }
        Ok(match instruction.op {
            Op::Lbu => Interval::new(0, 0xff),
            Op::Lhu => Interval::new(0, 0xffff),
            _ => Interval::ANY,
        })
    }

    /// Where a load or a store may go; `None` of any other instruction, and where it can only trap.
    pub(super) fn place(&self, program: &Program, instruction: &Instruction) -> Option<Place> {
        if !matches!(instruction.op.shape(), Shape::Load | Shape::Store) {
            return None;
        }
        let Reach { low, high, width } = self.reach(program, instruction).ok()?;
        let region = program.machine.memory.holds(low, (high - low).saturating_add(width));
        Some(Place { low, high, end: high.saturating_add(width), region })
    }

    fn store(&mut self, program: &Program, address: u32, instruction: &Instruction) -> Result<(), Reason> {
        let Reach { low, high, width } = self.reach(program, instruction)?;
        let map = &program.machine.memory;
        let (first, length) = (map.stack_top() - map.stack, map.stack + map.data);
        if !touches(low, high, width, first, length) {
            return Err(if touches(low, high, width, map.origin, map.rom) {
                Reason::StoreToRom { address: low }
            } else {
                Reason::StoreOutside { address: low }
            });
        }
        if low == high && width == 4 && low.is_multiple_of(4) {
            let value = self.read(instruction.rs2);
            if value == Interval::ANY {
                self.memory.remove(&low);
            } else {
                self.memory.insert(low, value);
            }
            return Ok(());
        }
        if low != high && self.memory.range(low.saturating_sub(3)..=high.saturating_add(3)).next().is_some() {
            self.blur = Some(address);
        }
        let end = u64::from(high) + u64::from(width);
        self.memory.retain(|&word, _| u64::from(word) >= end || u64::from(word) + 4 <= u64::from(low));
        Ok(())
    }
}

/// Whether an access of `width` octets at `low` to `high` may touch any of `length` octets from `first` on.
fn touches(low: u32, high: u32, width: u32, first: u32, length: u32) -> bool {
    let (low, end) = (u64::from(low), u64::from(high) + u64::from(width));
    low < u64::from(first) + u64::from(length) && end > u64::from(first)
}

fn u16_of(value: u32) -> u16 {
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A constant of `width` octets, which all lie in ROM.
fn rom(program: &Program, address: u32, width: u32) -> u32 {
    let octet = |at: u32| {
        let offset = at - program.machine.memory.origin;
        u32::from(program.image[offset as usize / 4].to_le_bytes()[offset as usize % 4])
    };
    (0..width).rev().fold(0, |value, n| value << 8 | octet(address + n))
}

impl crate::memory::MemoryMap {
    /// Whether `sp` surely points into the stack, or behind its last octet.
    fn holds_stack_pointer(&self, pointer: Interval) -> bool {
        pointer.low >= self.stack_top() - self.stack && pointer.high <= self.stack_top()
    }
}
