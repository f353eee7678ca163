//! What is known of the core at a point of the program, and what an instruction makes of it.

use std::collections::BTreeMap;

use super::Reason;
use super::interval::{Interval, compute};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::memory::{Misaligned, Region};
use crate::program::Program;

/// Tables up to this many entries are read through; a longer one may hold anything.
const TABLE_MAX: u32 = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) x: [Interval; 32],
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

/// The octets that an access may touch: the first address of its first and of its last place.
struct Reach {
    low: u32,
    high: u32,
    width: u32,
}

impl State {
    /// A core that was just made: registers zero but for `sp`, the stack and data unknown.
    pub(super) fn reset(program: &Program) -> Self {
        let mut x = [Interval::one(0); 32];
        x[Register::SP.index()] = Interval::one(program.machine.memory.stack_top());
        Self {
            x,
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
        self.x[register.index()]
    }

    pub(super) fn write(&mut self, register: Register, value: Interval) {
        if !register.is_zero() {
            self.x[register.index()] = value;
        }
    }

    /// Takes in another way to the same point.
    pub(super) fn join(&mut self, other: &Self) {
        self.merge(other, Interval::hull);
    }

    /// As [`State::join`], but what still changes goes to its end.
    pub(super) fn widen(&mut self, other: &Self) {
        self.merge(other, |old, new| old.widen(old.hull(new)));
    }

    fn merge(&mut self, other: &Self, both: impl Fn(Interval, Interval) -> Interval) {
        for (mine, theirs) in self.x.iter_mut().zip(&other.x) {
            *mine = both(*mine, *theirs);
        }
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
            && self.x.iter().zip(&other.x).all(|(mine, theirs)| mine.hull(*theirs) == *theirs)
            && other.memory.iter().all(|(address, theirs)| {
                self.memory.get(address).is_some_and(|mine| mine.hull(*theirs) == *theirs)
            })
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
        let value = match op.shape() {
            Shape::Upper if op == Op::Auipc => Interval::one(address.wrapping_add(imm.cast_unsigned())),
            Shape::Upper => constant,
            Shape::Immediate => {
                let op = match op {
                    Op::Addi => Op::Add,
                    Op::Slti => Op::Slt,
                    Op::Sltiu => Op::Sltu,
                    Op::Xori => Op::Xor,
                    Op::Ori => Op::Or,
                    Op::Andi => Op::And,
                    Op::Slli => Op::Sll,
                    Op::Srli => Op::Srl,
                    _ => Op::Sra,
                };
                compute(op, self.read(rs1), constant)
            }
            Shape::Register if rs1 == rs2 && matches!(op, Op::Sub | Op::Xor) => Interval::one(0),
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
        let address =
            compute(Op::Add, self.read(instruction.rs1), Interval::one(instruction.imm.cast_unsigned()));
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

    /// Where a store may go, its first and last address, if that is not wholly in the stack, nor wholly in data.
    pub(super) fn stray(&self, program: &Program, instruction: &Instruction) -> Option<(u32, u32)> {
        if instruction.op.shape() != Shape::Store {
            return None;
        }
        let Reach { low, high, width } = self.reach(program, instruction).ok()?;
        let region = program.machine.memory.holds(low, (high - low).saturating_add(width));
        (!matches!(region, Some(Region::Stack | Region::Data))).then_some((low, high))
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
