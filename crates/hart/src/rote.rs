//! Programs that answer by rote: the same, after the same instructions, whatever they are told.
//!
//! The sending side of most laws is such a program, for what is offered to it has been held back by a pacer or a window. Who
//! knows that need not run it.

use crate::csr::{Csr, OnRead, OnWrite};
use crate::instruction::{Op, Register, Shape};
use crate::program::Program;

/// A round that a program makes for ever, from one write that stops it to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rote {
    /// Where it stands between two rounds.
    pub pc: u32,
    /// The register that it writes.
    pub csr: u16,
    /// What it writes there.
    pub value: u32,
    /// Cycles of a round.
    pub cycles: u64,
}

/// More instructions than a round has that deserves the name.
const LENGTH_MAX: u32 = 64;

impl Program {
    /// The round that a core makes which stands at `pc`, where that follows from the code alone: it goes one way, reads
    /// no memory and writes none, and of the registers only that which stops it, to the same value each time. While
    /// nothing is there for it to read, it waits. `None` where it does not follow, or the round ends elsewhere.
    pub fn rote(&self, pc: u32) -> Option<Rote> {
        let mut known = [None; 32];
        known[0] = Some(0);
        let (mut at, mut cycles) = (pc, 0);
        for _ in 0..LENGTH_MAX {
            let step = self.step(at)?;
            let instruction = &step.instruction;
            cycles += u64::from(step.cost);
            let next = at.wrapping_add(4);
            let source = known[instruction.rs1.index()];
            let imm = instruction.imm;
            let result = match instruction.op.shape() {
                Shape::Upper if instruction.op == Op::Lui => Some(imm.cast_unsigned()),
                Shape::Immediate if instruction.op == Op::Addi => {
                    source.map(|source: u32| source.wrapping_add_signed(imm))
                }
                Shape::Upper | Shape::Immediate | Shape::Register => None,
                Shape::Jump => {
                    at = at.wrapping_add_signed(imm);
                    set(&mut known, instruction.rd, Some(next));
                    continue;
                }
                Shape::Csr | Shape::CsrImmediate => {
                    let csr = instruction.csr();
                    let Csr::Word { read, write, .. } = self.machine().csrs.at(csr) else { return None };
                    if !instruction.writes_csr() {
                        if read == OnRead::Refuse {
                            return None;
                        }
                    } else if write == OnWrite::StoreAndStop && !instruction.reads_csr() && next == pc {
                        let value = match instruction.op.shape() {
                            Shape::CsrImmediate => Some(u32::from(instruction.rs1.number())),
                            _ => source,
                        };
                        return value.map(|value| Rote { pc, csr, value, cycles });
                    } else {
                        return None;
                    }
                    None
                }
                _ => return None,
            };
            set(&mut known, instruction.rd, result);
            at = next;
        }
        None
    }
}

fn set(known: &mut [Option<u32>; 32], register: Register, value: Option<u32>) {
    if !register.is_zero() {
        known[register.index()] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Core, Stop};
    use crate::csr::{CSR_WORDS, CsrMap};
    use crate::program::Machine;
    use std::sync::Arc;

    const EVENT: u32 = 0x800;
    const PLAIN: u32 = 0x801;

    /// A core with an event register and a plain one.
    fn program(code: &[u32]) -> Program {
        let event = Csr::Word { index: 0, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
        let csrs = CsrMap::default().with(0x800, event).with_words(0x801..0x803, 1);
        Program::from_words(code, Machine { csrs, ..Machine::default() }).expect("code")
    }

    const fn csrr(rd: u32, csr: u32) -> u32 {
        csr << 20 | 2 << 12 | rd << 7 | 0x73
    }

    const fn csrw(csr: u32, rs: u32) -> u32 {
        csr << 20 | rs << 15 | 1 << 12 | 0x73
    }

    const fn addi(rd: u32, rs: u32, imm: u32) -> u32 {
        imm << 20 | rs << 15 | rd << 7 | 0x13
    }

    /// `j` back by so many instructions.
    const fn back(words: u32) -> u32 {
        let offset = (4 * words).wrapping_neg();
        (offset >> 20 & 1) << 31
            | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20
            | (offset >> 12 & 0xff) << 12
            | 0x6f
    }

    #[test]
    fn a_round_that_looks_at_nothing_is_what_a_core_does() {
        let program =
            Arc::new(program(&[csrr(5, EVENT), addi(6, 0, 1), csrr(7, PLAIN), csrw(EVENT, 6), back(4)]));
        let mut core = Core::new(program.clone());
        let mut block = [0; CSR_WORDS];
        let mut round = |core: &mut Core, event| {
            block[0] = event;
            let before = core.cycles();
            let stop = core.run(&mut block, u64::MAX);
            (stop, block[0], core.pc(), core.cycles() - before)
        };
        let (_, _, pc, _) = round(&mut core, 9);
        let rote = program.rote(pc).expect("it is one");
        for event in [1, 77, u32::MAX] {
            let stop = Stop::Written { csr: rote.csr };
            assert_eq!(round(&mut core, event), (stop, rote.value, rote.pc, rote.cycles));
        }
        assert_eq!(program.rote(program.entry()), None, "the first round begins elsewhere");
    }

    #[test]
    fn who_looks_before_it_answers_does_not_answer_by_rote() {
        const BEQ: u32 = 0x0002_8463; // beq x5, x0, +8
        const LOAD: u32 = 0x0000_2303; // lw x6, 0(x0)
        for (what, code) in [
            ("what it was told", vec![csrr(6, EVENT), csrw(EVENT, 6), back(2)]),
            ("a branch", vec![csrr(5, EVENT), BEQ, addi(6, 0, 1), csrw(EVENT, 6), back(4)]),
            ("memory", vec![csrr(5, EVENT), LOAD, addi(6, 0, 1), csrw(EVENT, 6), back(4)]),
            ("another write", vec![csrr(5, EVENT), addi(6, 0, 1), csrw(PLAIN, 6), csrw(EVENT, 6), back(4)]),
            ("a sum that grows", vec![csrr(5, EVENT), addi(6, 6, 1), csrw(EVENT, 6), back(3)]),
        ] {
            let program = program(&code);
            let last = program.entry() + 4 * (u32::try_from(code.len()).expect("few") - 1);
            assert_eq!(program.rote(last), None, "{what}");
        }
    }
}
