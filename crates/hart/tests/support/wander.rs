//! Random programs that end: each loads its registers with telling numbers, wanders through all plain instructions, and
//! writes down what the registers hold then. They run alike on our core and on Linux.

use roci_hart::{Instruction, Op, Register, Shape};

use super::elf::{Segment, file};
use super::plain::PLAIN;
use super::suite::MAP;

/// What stays as it is until the end: the counter of loops, and an address amid the octets that loads and stores reach.
const COUNTER: Register = Register::new(30);
const BASE: Register = Register::new(31);
const X0: Register = Register::ZERO;

/// Octets that loads and stores reach, and all that is compared: the registers stand behind them.
const REACHED: u32 = 4_096;
pub(crate) const SEEN: u32 = REACHED + 4 * 32;

/// Where the octets lie that [`SEEN`] counts.
pub(crate) fn seen_from() -> u32 {
    MAP.stack_top()
}

/// Numbers that follow from a seed (Steele, Lea and Flood 2014, "SplitMix").
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.next() % u64::from(end)) as u32
    }

    /// A number as hardware is often wrong about it, or any.
    fn telling(&mut self) -> u32 {
        const EDGES: [u32; 10] =
            [0, 1, 2, 31, 32, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX - 1, u32::MAX];
        match self.below(3) {
            0 => self.next() as u32,
            1 => EDGES[self.below(EDGES.len() as u32) as usize],
            _ => (self.next() as u32) >> self.below(32),
        }
    }

    /// A register that may be read; most of them are few, so that instructions meet each other's results.
    fn source(&mut self) -> Register {
        let end = if self.below(4) == 0 { 32 } else { 8 };
        Register::new(self.below(end) as u8)
    }

    /// One that may be written.
    fn target(&mut self) -> Register {
        let register = self.source();
        if [COUNTER, BASE].contains(&register) { X0 } else { register }
    }
}

/// Code as it grows.
#[derive(Default)]
struct Code(Vec<Instruction>);

impl Code {
    fn put(&mut self, op: Op, rd: Register, rs1: Register, rs2: Register, imm: i32) {
        self.0.push(Instruction { op, rd, rs1, rs2, imm });
    }

    fn set(&mut self, register: Register, value: u32) {
        let low = (value << 20).cast_signed() >> 20;
        let high = value.wrapping_sub(low.cast_unsigned()).cast_signed();
        self.put(Op::Lui, register, X0, X0, high);
        self.put(Op::Addi, register, register, X0, low);
    }

    /// Appends one instruction, or a jump through a register and what it needs, before which at most `ahead` more come.
    fn wander(&mut self, numbers: &mut Numbers, ahead: u32) {
        let op = PLAIN[numbers.below(PLAIN.len() as u32) as usize];
        let (rd, rs1, rs2) = (numbers.target(), numbers.source(), numbers.source());
        let forward = 4 * (1 + numbers.below(ahead.clamp(1, 9))).cast_signed();
        match op.shape() {
            Shape::Branch | Shape::Jump => self.put(op, rd, rs1, rs2, forward),
            Shape::JumpRegister => {
                // Past itself; the lowest bit of the sum does not count.
                let base = if rd.is_zero() { Register::new(5) } else { rd };
                let odd = numbers.below(2).cast_signed();
                self.put(Op::Auipc, base, X0, X0, 0);
                self.put(Op::Jalr, rd, base, X0, 4 + forward + odd);
            }
            Shape::Load | Shape::Store => {
                let place = numbers.below(REACHED - 4).cast_signed() - 2_048;
                let place = if numbers.below(4) == 0 { place } else { place & -4 };
                self.put(op, rd, BASE, rs2, place);
            }
            _ => {
                let imm = (numbers.next() as i32) >> numbers.below(32);
                self.put(op, rd, rs1, rs2, imm);
            }
        }
    }

    /// Has no jump go between the two instructions of one through a register, whose own would go anywhere.
    fn mend(&mut self) {
        for at in 0..self.0.len() {
            let Instruction { op, imm, .. } = self.0[at];
            let from = match op.shape() {
                Shape::Branch | Shape::Jump => at,
                Shape::JumpRegister => at - 1,
                _ => continue,
            };
            let target = from.wrapping_add_signed((imm >> 2) as isize);
            if self.0[target].op == Op::Jalr {
                self.0[at].imm += 4;
            }
        }
    }
}

/// The program of a seed.
pub(crate) fn program(seed: u64) -> Vec<u8> {
    let numbers = &mut Numbers(seed);
    let mut code = Code::default();
    for register in 1..30 {
        code.set(Register::new(register), numbers.telling());
    }
    code.set(BASE, seen_from() + 2_048);
    for _ in 0..1 + numbers.below(8) {
        code.set(COUNTER, 1 + numbers.below(5));
        let start = code.0.len();
        let end = start + 1 + numbers.below(40) as usize;
        while code.0.len() < end {
            let ahead = end - code.0.len();
            code.wander(numbers, ahead as u32);
        }
        // Room for what goes further.
        for _ in 0..3 {
            code.put(Op::Addi, X0, X0, X0, 0);
        }
        code.put(Op::Addi, COUNTER, COUNTER, X0, -1);
        let back = 4 * (start as i32 - code.0.len() as i32);
        code.put(Op::Bne, X0, COUNTER, X0, back);
    }
    code.mend();
    code.set(BASE, seen_from() + REACHED);
    for register in 0..32 {
        code.put(Op::Sw, X0, BASE, Register::new(register), 4 * i32::from(register));
    }
    // `write(1, seen, length)` and `exit(0)`, as Linux takes them.
    for (register, value) in [(10, 1), (11, seen_from()), (12, SEEN), (17, 64)] {
        code.set(Register::new(register), value);
    }
    code.put(Op::Ecall, X0, X0, X0, 0);
    for (register, value) in [(10, 0), (17, 93)] {
        code.set(Register::new(register), value);
    }
    code.put(Op::Ecall, X0, X0, X0, 0);
    let words: Vec<u32> = code.0.iter().map(Instruction::encode).collect();
    let filled: Vec<u8> = (0..REACHED).map(|_| numbers.next() as u8).collect();
    let data = Segment { length: MAP.data, ..Segment::new(seen_from(), filled, 6) };
    file(MAP.origin, &[Segment::code(MAP.origin, &words), data])
}
