//! Programs from random octets, made so that they do something before they trap.

use roci_hart::{
    CSR_WORDS, Csr, CsrBlock, CsrMap, Csrs, DeviceRead, DeviceWrite, Extensions, Instruction, Machine,
    MemoryMap, Misaligned, OnRead, OnWrite, Op, Register, Shape,
};

use super::plain::PLAIN;

pub(crate) const MAP: MemoryMap = MemoryMap { origin: 0x1_0000, rom: 4096, stack: 64, data: 64 };

/// The core that the programs are for.
pub(crate) fn machine(misaligned: Misaligned) -> Machine {
    let csrs = CsrMap::default()
        .with_words(0x800..0x804, 0)
        .with(0x804, Csr::Word { index: 4, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop })
        .with(0x805, Csr::Word { index: 5, read: OnRead::Value, write: OnWrite::Refuse })
        .with(0x806, Csr::Word { index: 6, read: OnRead::Refuse, write: OnWrite::Store })
        .with(0x807, Csr::Device)
        .with(0x808, Csr::Word { index: 7, read: OnRead::Value, write: OnWrite::Queue { below: 1 << 31 } })
        .with_cost(0x801..0x805, 5);
    let extensions = Extensions { multiply: true, csr: true };
    Machine { memory: MAP, extensions, misaligned, csrs, ..Machine::default() }
}

/// Words, and a device that answers by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) block: CsrBlock,
    told: u64,
}

impl Registers {
    pub(crate) fn new() -> Self {
        let mut block = [0; CSR_WORDS];
        for (word, n) in block.iter_mut().zip(0..) {
            *word = 0x1357_9bdf_u32.wrapping_mul(n);
        }
        Self { block, told: 0 }
    }
}

impl Csrs for Registers {
    fn block(&mut self) -> &mut CsrBlock {
        &mut self.block
    }

    fn read(&mut self, _number: u16, cycle: u64) -> DeviceRead {
        match cycle % 7 {
            0 => DeviceRead::Refuse,
            1 => DeviceRead::Wait,
            _ => DeviceRead::Value((cycle ^ self.told) as u32),
        }
    }

    fn write(&mut self, _number: u16, value: u32, cycle: u64) -> DeviceWrite {
        if cycle.is_multiple_of(5) {
            return DeviceWrite::Refuse;
        }
        self.told = self.told.rotate_left(5) ^ u64::from(value) ^ cycle;
        if value & 1 == 0 { DeviceWrite::Done } else { DeviceWrite::Stop }
    }
}

/// Those that are drawn beside the plain ones.
const OTHERS: [Op; 9] =
    [Op::Fence, Op::FenceI, Op::Ecall, Op::Csrrw, Op::Csrrs, Op::Csrrc, Op::Csrrwi, Op::Csrrsi, Op::Csrrci];

/// Few registers, so that instructions meet each other's results.
const REGISTERS: [u8; 8] = [0, 1, 2, 8, 10, 11, 12, 31];

/// An instruction from eight octets.
pub(crate) fn word(octets: [u8; 8]) -> u32 {
    let [op, rd, rs1, rs2, low, high, odd, _] = octets;
    let raw = u32::from_le_bytes([op, rs2, low, high]);
    if odd == 0xff {
        return raw;
    }
    let register = |choice: u8| Register::new(REGISTERS[usize::from(choice & 7)]);
    let drawn = usize::from(op) % (PLAIN.len() + OTHERS.len());
    let op = PLAIN.into_iter().chain(OTHERS).nth(drawn).unwrap_or(Op::Ecall);
    let wide = i32::from(i16::from_le_bytes([low, high]));
    // Mostly aligned, sometimes not.
    let skew = if odd > 0xf0 { 1 << (odd & 1) } else { 0 };
    let near = 4 * (wide % 12) + skew;
    let shape = op.shape();
    let imm = match shape {
        Shape::Upper => wide << 12,
        Shape::Branch | Shape::Jump => near & !1,
        Shape::JumpRegister if odd & 1 == 0 => 0,
        Shape::JumpRegister | Shape::Load | Shape::Store => near,
        Shape::Immediate if matches!(op, Op::Slli | Op::Srli | Op::Srai) => wide & 31,
        Shape::Immediate => wide >> 4,
        Shape::Csr | Shape::CsrImmediate => 0x800 + (wide & 15) % 10,
        _ => 0,
    };
    // Addresses and returns come from registers that are likely to hold them.
    let rs1 = match shape {
        Shape::Load | Shape::Store if odd & 7 != 0 => Register::SP,
        Shape::JumpRegister if odd & 3 != 0 => Register::RA,
        _ => register(rs1),
    };
    let keeps = odd & 3 != 0 && [Register::SP, Register::RA].contains(&register(rd)) && shape != Shape::Jump;
    let rd = if keeps { Register::new(10) } else { register(rd) };
    Instruction { op, rd, rs1, rs2: register(rs2), imm }.encode()
}

/// One or two instructions from eight octets: some branches pass over a copy of what they compare, as where a compiler
/// chooses the lesser of two.
fn words(octets: [u8; 8]) -> impl Iterator<Item = u32> {
    let register = |word: u32, shift: u32| Register::new((word >> shift & 31) as u8);
    let first = word(octets);
    let chooses = octets[7] & 1 == 1 && first & 0x7f == 0x63;
    let first = if chooses { first & 0x01ff_f07f | 8 << 7 } else { first };
    let copy = chooses.then(|| {
        let [rs1, rs2] = [15, 20].map(|shift| register(first, shift));
        let (rd, rs1) = match octets[7] >> 1 & 3 {
            0 => (rs1, rs2),
            1 => (rs2, rs1),
            _ => (Register::new(REGISTERS[usize::from(octets[1] & 7)]), rs2),
        };
        let rd = if rd == Register::SP { Register::ZERO } else { rd };
        Instruction { op: Op::Addi, rd, rs1, rs2: Register::ZERO, imm: 0 }.encode()
    });
    std::iter::once(first).chain(copy)
}

/// A program; half a stack lies above `sp` at its start. Every other one waits for events and answers them, for ever.
pub(crate) fn code(octets: &[u8]) -> Vec<u32> {
    let first =
        Instruction { op: Op::Addi, rd: Register::SP, rs1: Register::SP, rs2: Register::ZERO, imm: -32 };
    let chunks = octets.as_chunks::<8>().0;
    let answers = chunks.len() % 2 == 1;
    let rest = chunks.iter().flat_map(|&octets| words(octets));
    let csr = |op, rd, rs1| {
        let (rd, rs1) = (Register::new(rd), Register::new(rs1));
        Instruction { op, rd, rs1, rs2: Register::ZERO, imm: 0x804 }.encode()
    };
    let poll = answers.then(|| csr(Op::Csrrs, 10, 0));
    let mut code: Vec<u32> =
        std::iter::once(first.encode()).chain(poll).chain(rest).take(MAP.rom as usize / 4 - 2).collect();
    if answers {
        code.push(csr(Op::Csrrw, 0, 11));
        let back = i32::try_from(code.len()).expect("it fits into ROM") - 1;
        let zero = Register::ZERO;
        code.push(Instruction { op: Op::Jal, rd: zero, rs1: zero, rs2: zero, imm: -4 * back }.encode());
    }
    code
}
