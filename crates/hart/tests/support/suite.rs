//! A program that carries out every plain instruction on telling operands and writes down each result. It runs alike on
//! our core and on Linux, which gives it a kernel and another implementation of the processor.

use roci_hart::{Instruction, MemoryMap, Op, Register, Shape};

use super::elf::{Segment, file};
use super::plain::PLAIN;

/// Pages of their own for code and data, where Linux lets a program be.
pub(crate) const MAP: MemoryMap =
    MemoryMap { origin: 0x10_0000, rom: 256 << 10, stack: 4 << 10, data: 64 << 10 };

const X0: Register = Register::ZERO;
const A: Register = Register::new(5);
const B: Register = Register::new(6);
const RESULT: Register = Register::new(7);
/// Where the next result goes.
const OUT: Register = Register::new(8);
/// Eight octets into a scratch area of 16.
const SCRATCH: Register = Register::new(9);

const VALUES: [u32; 8] = [0, 1, 7, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x1234_5678, 0xffff_fff3];

/// The program, and the names of its results in the order in which it writes them.
pub(crate) struct Suite {
    pub(crate) elf: Vec<u8>,
    pub(crate) names: Vec<String>,
}

/// Where the results lie.
pub(crate) fn results() -> u32 {
    MAP.stack_top() + 16
}

struct Assembler {
    words: Vec<u32>,
    names: Vec<String>,
}

impl Assembler {
    fn put(&mut self, op: Op, rd: Register, rs1: Register, rs2: Register, imm: i32) {
        self.words.push(Instruction { op, rd, rs1, rs2, imm }.encode());
    }

    fn set(&mut self, register: Register, value: u32) {
        let low = (value << 20).cast_signed() >> 20;
        self.put(Op::Lui, register, X0, X0, value.wrapping_sub(low.cast_unsigned()).cast_signed());
        self.put(Op::Addi, register, register, X0, low);
    }

    /// Writes down `register` as the result `name`.
    fn note(&mut self, register: Register, name: String) {
        self.put(Op::Sw, X0, OUT, register, 0);
        self.put(Op::Addi, OUT, OUT, X0, 4);
        self.names.push(name);
    }

    fn arithmetic(&mut self) {
        let registers = PLAIN.into_iter().filter(|op| op.shape() == Shape::Register);
        for op in registers {
            for (a, b) in VALUES.into_iter().flat_map(|a| VALUES.map(|b| (a, b))) {
                self.set(A, a);
                self.set(B, b);
                self.put(op, RESULT, A, B, 0);
                self.note(RESULT, format!("{op} {a:#x} {b:#x}"));
            }
        }
        for op in [Op::Addi, Op::Slti, Op::Sltiu, Op::Xori, Op::Ori, Op::Andi, Op::Slli, Op::Srli, Op::Srai] {
            let shift = matches!(op, Op::Slli | Op::Srli | Op::Srai);
            let immediates = if shift { [0, 1, 15, 31] } else { [0, 1, 0x7ff, -0x800] };
            for (a, imm) in VALUES.into_iter().flat_map(|a| immediates.map(|imm| (a, imm))) {
                self.set(A, a);
                self.put(op, RESULT, A, X0, imm);
                self.note(RESULT, format!("{op} {a:#x} {imm}"));
            }
        }
        for imm in [0, 0x1000, i32::MIN, -0x1000] {
            for op in [Op::Lui, Op::Auipc] {
                self.put(op, RESULT, X0, X0, imm);
                self.note(RESULT, format!("{op} {imm:#x}"));
            }
        }
        self.set(A, 3);
        self.put(Op::Add, X0, A, A, 0);
        self.note(X0, "x0 after a write".to_owned());
    }

    fn transfers(&mut self) {
        for op in [Op::Beq, Op::Bne, Op::Blt, Op::Bge, Op::Bltu, Op::Bgeu] {
            for (a, b) in VALUES.into_iter().flat_map(|a| VALUES.map(|b| (a, b))) {
                self.set(A, a);
                self.set(B, b);
                self.set(RESULT, 1);
                self.put(op, X0, A, B, 8);
                self.put(Op::Addi, RESULT, X0, X0, 0);
                self.note(RESULT, format!("{op} {a:#x} {b:#x}"));
            }
        }
        // Over the way back, to it, and back to behind the start.
        self.put(Op::Jal, A, X0, X0, 12);
        self.put(Op::Addi, B, X0, X0, 1);
        self.put(Op::Jal, X0, X0, X0, 12);
        self.put(Op::Addi, B, X0, X0, 2);
        self.put(Op::Jal, RESULT, X0, X0, -12);
        self.note(A, "jal forwards".to_owned());
        self.note(RESULT, "jal backwards".to_owned());
        self.note(B, "where jal went".to_owned());
        // An odd target loses its lowest bit; the register may be its own link.
        for link in [RESULT, A] {
            self.put(Op::Auipc, A, X0, X0, 0);
            self.put(Op::Jalr, link, A, X0, 13);
            self.put(Op::Addi, link, X0, X0, 0);
            self.note(link, format!("jalr {link}"));
        }
    }

    fn memory(&mut self) {
        let fill = |assembler: &mut Self, value: u32| {
            for (place, n) in [-8, -4, 0, 4].into_iter().zip(0u32..) {
                assembler.set(A, value.rotate_left(8 * n));
                assembler.put(Op::Sw, X0, SCRATCH, A, place);
            }
        };
        for op in [Op::Lb, Op::Lh, Op::Lw, Op::Lbu, Op::Lhu] {
            fill(self, 0x7f80_ff01);
            for place in (-8..8).step_by(op.width() as usize) {
                self.put(op, RESULT, SCRATCH, X0, place);
                self.note(RESULT, format!("{op} {place}"));
            }
        }
        for op in [Op::Sb, Op::Sh, Op::Sw] {
            for place in (-8..8).step_by(op.width() as usize) {
                fill(self, 0x0102_0304);
                self.set(B, 0xf9fa_fbfc);
                self.put(op, X0, SCRATCH, B, place);
                for word in [-8, -4, 0, 4] {
                    self.put(Op::Lw, RESULT, SCRATCH, X0, word);
                    self.note(RESULT, format!("{op} {place}, then word {word}"));
                }
            }
        }
        self.put(Op::Fence, X0, X0, X0, 0);
        self.put(Op::FenceI, X0, X0, X0, 0);
    }

    /// `write(1, results, length)`, then `exit(0)`, as Linux takes them.
    fn end(&mut self) {
        let argument = |n: u8| Register::new(10 + n);
        let length = 4 * self.names.len() as u32;
        for (register, value) in
            [(argument(0), 1), (argument(1), results()), (argument(2), length), (argument(7), 64)]
        {
            self.set(register, value);
        }
        self.put(Op::Ecall, X0, X0, X0, 0);
        self.set(argument(0), 0);
        self.set(argument(7), 93);
        self.put(Op::Ecall, X0, X0, X0, 0);
    }
}

pub(crate) fn suite() -> Suite {
    let mut assembler = Assembler { words: Vec::new(), names: Vec::new() };
    assembler.set(OUT, results());
    assembler.set(SCRATCH, MAP.stack_top() + 8);
    assembler.arithmetic();
    assembler.transfers();
    assembler.memory();
    assembler.end();
    let Assembler { words, names } = assembler;
    let code = Segment::code(MAP.origin, &words);
    let data = Segment { length: MAP.data, ..Segment::new(MAP.stack_top(), vec![0; 4], 6) };
    Suite { elf: file(MAP.origin, &[code, data]), names }
}

/// Results with their names, one a line.
pub(crate) fn listing(names: &[String], values: &[u32]) -> String {
    assert_eq!(names.len(), values.len(), "each result has a name");
    names.iter().zip(values).map(|(name, value)| format!("{name} = {value:#x}\n")).collect()
}
