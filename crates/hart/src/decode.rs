//! Words to instructions and back (RISC-V Instruction Set Manual, volume I, "RV32/64G Instruction Set Listings").

use crate::instruction::{Instruction, Op, Register, Shape};

/// What the core implements beside RV32I.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions {
    /// M: multiplication and division.
    pub multiply: bool,
    /// Zicsr: control and status registers.
    pub csr: bool,
}

impl Default for Extensions {
    /// RV32I with Zicsr, as riscv-mini has it.
    fn default() -> Self {
        Self { multiply: false, csr: true }
    }
}

/// Decodes one word. Total: what is no instruction becomes [`Op::Illegal`] with the word as its immediate.
pub const fn decode(word: u32, extensions: Extensions) -> Instruction {
    let funct3 = word >> 12 & 7;
    let funct7 = word >> 25;
    let op = match word & 0x7f {
        0x37 => Op::Lui,
        0x17 => Op::Auipc,
        0x6f => Op::Jal,
        0x67 if funct3 == 0 => Op::Jalr,
        0x63 => branch(funct3),
        0x03 => load(funct3),
        0x23 => store(funct3),
        0x13 => immediate(funct3, funct7),
        0x33 if funct7 == 1 && extensions.multiply => multiply(funct3),
        0x33 => register(funct3, funct7),
        0x0f if funct3 == 0 => Op::Fence,
        0x0f if funct3 == 1 => Op::FenceI,
        0x73 if word == 0x0000_0073 => Op::Ecall,
        0x73 if word == 0x0010_0073 => Op::Ebreak,
        0x73 if extensions.csr => csr(funct3),
        _ => Op::Illegal,
    };
    fields(op, word)
}

const fn branch(funct3: u32) -> Op {
    match funct3 {
        0 => Op::Beq,
        1 => Op::Bne,
        4 => Op::Blt,
        5 => Op::Bge,
        6 => Op::Bltu,
        7 => Op::Bgeu,
        _ => Op::Illegal,
    }
}

const fn load(funct3: u32) -> Op {
    match funct3 {
        0 => Op::Lb,
        1 => Op::Lh,
        2 => Op::Lw,
        4 => Op::Lbu,
        5 => Op::Lhu,
        _ => Op::Illegal,
    }
}

const fn store(funct3: u32) -> Op {
    match funct3 {
        0 => Op::Sb,
        1 => Op::Sh,
        2 => Op::Sw,
        _ => Op::Illegal,
    }
}

const fn immediate(funct3: u32, funct7: u32) -> Op {
    match (funct3, funct7) {
        (0, _) => Op::Addi,
        (2, _) => Op::Slti,
        (3, _) => Op::Sltiu,
        (4, _) => Op::Xori,
        (6, _) => Op::Ori,
        (7, _) => Op::Andi,
        (1, 0x00) => Op::Slli,
        (5, 0x00) => Op::Srli,
        (5, 0x20) => Op::Srai,
        _ => Op::Illegal,
    }
}

const fn register(funct3: u32, funct7: u32) -> Op {
    match (funct7, funct3) {
        (0x00, 0) => Op::Add,
        (0x20, 0) => Op::Sub,
        (0x00, 1) => Op::Sll,
        (0x00, 2) => Op::Slt,
        (0x00, 3) => Op::Sltu,
        (0x00, 4) => Op::Xor,
        (0x00, 5) => Op::Srl,
        (0x20, 5) => Op::Sra,
        (0x00, 6) => Op::Or,
        (0x00, 7) => Op::And,
        _ => Op::Illegal,
    }
}

const fn multiply(funct3: u32) -> Op {
    match funct3 {
        0 => Op::Mul,
        1 => Op::Mulh,
        2 => Op::Mulhsu,
        3 => Op::Mulhu,
        4 => Op::Div,
        5 => Op::Divu,
        6 => Op::Rem,
        _ => Op::Remu,
    }
}

const fn csr(funct3: u32) -> Op {
    match funct3 {
        1 => Op::Csrrw,
        2 => Op::Csrrs,
        3 => Op::Csrrc,
        5 => Op::Csrrwi,
        6 => Op::Csrrsi,
        7 => Op::Csrrci,
        _ => Op::Illegal,
    }
}

/// Fills in the fields that the operation's shape uses, and no others.
const fn fields(op: Op, word: u32) -> Instruction {
    let signed = word.cast_signed();
    let low = (word >> 7 & 31).cast_signed();
    let (mut rd, mut rs1, mut rs2) =
        (Register::field(word, 7), Register::field(word, 15), Register::field(word, 20));
    let shape = op.shape();
    match shape {
        Shape::Branch | Shape::Store | Shape::Bare | Shape::Illegal => rd = Register::ZERO,
        _ => {}
    }
    match shape {
        Shape::Upper | Shape::Jump | Shape::Bare | Shape::Illegal => rs1 = Register::ZERO,
        _ => {}
    }
    match shape {
        Shape::Branch | Shape::Store | Shape::Register => {}
        _ => rs2 = Register::ZERO,
    }
    let imm = match shape {
        Shape::Upper => (word & 0xffff_f000).cast_signed(),
        Shape::Jump => {
            (signed >> 31 << 20)
                | ((word & 0x000f_f000) | (word >> 20 & 1) << 11 | (word >> 21 & 0x3ff) << 1).cast_signed()
        }
        Shape::Branch => {
            (signed >> 31 << 12)
                | ((word >> 7 & 1) << 11 | (word >> 25 & 0x3f) << 5 | (word >> 8 & 15) << 1).cast_signed()
        }
        Shape::Store => (signed >> 25 << 5) | low,
        Shape::JumpRegister | Shape::Load => signed >> 20,
        Shape::Immediate => match op {
            Op::Slli | Op::Srli | Op::Srai => (word >> 20 & 31).cast_signed(),
            _ => signed >> 20,
        },
        Shape::Csr | Shape::CsrImmediate => (word >> 20).cast_signed(),
        Shape::Register | Shape::Bare => 0,
        Shape::Illegal => signed,
    };
    Instruction { op, rd, rs1, rs2, imm }
}

impl Instruction {
    /// The word that [`decode`] reads as this instruction, with immediates cut to the field's width.
    pub const fn encode(&self) -> u32 {
        let imm = self.imm.cast_unsigned();
        let rd = (self.rd.number() as u32) << 7;
        let rs1 = (self.rs1.number() as u32) << 15;
        let rs2 = (self.rs2.number() as u32) << 20;
        let base = fixed_bits(self.op);
        match self.op.shape() {
            Shape::Upper => base | rd | (imm & 0xffff_f000),
            Shape::Jump => {
                base | rd
                    | (imm >> 20 & 1) << 31
                    | (imm >> 1 & 0x3ff) << 21
                    | (imm >> 11 & 1) << 20
                    | (imm & 0x000f_f000)
            }
            Shape::Branch => {
                base | rs1
                    | rs2
                    | (imm >> 12 & 1) << 31
                    | (imm >> 5 & 0x3f) << 25
                    | (imm >> 1 & 15) << 8
                    | (imm >> 11 & 1) << 7
            }
            Shape::Store => base | rs1 | rs2 | (imm >> 5 & 0x7f) << 25 | (imm & 31) << 7,
            Shape::JumpRegister | Shape::Load | Shape::Csr | Shape::CsrImmediate => {
                base | rd | rs1 | imm << 20
            }
            Shape::Immediate => match self.op {
                Op::Slli | Op::Srli | Op::Srai => base | rd | rs1 | (imm & 31) << 20,
                _ => base | rd | rs1 | imm << 20,
            },
            Shape::Register => base | rd | rs1 | rs2,
            Shape::Bare => base,
            Shape::Illegal => imm,
        }
    }
}

/// The opcode and function fields of an operation.
const fn fixed_bits(op: Op) -> u32 {
    const fn bits(opcode: u32, funct3: u32, funct7: u32) -> u32 {
        opcode | funct3 << 12 | funct7 << 25
    }
    match op {
        Op::Lui => 0x37,
        Op::Auipc => 0x17,
        Op::Jal => 0x6f,
        Op::Jalr => 0x67,
        Op::Beq => bits(0x63, 0, 0),
        Op::Bne => bits(0x63, 1, 0),
        Op::Blt => bits(0x63, 4, 0),
        Op::Bge => bits(0x63, 5, 0),
        Op::Bltu => bits(0x63, 6, 0),
        Op::Bgeu => bits(0x63, 7, 0),
        Op::Lb => bits(0x03, 0, 0),
        Op::Lh => bits(0x03, 1, 0),
        Op::Lw => bits(0x03, 2, 0),
        Op::Lbu => bits(0x03, 4, 0),
        Op::Lhu => bits(0x03, 5, 0),
        Op::Sb => bits(0x23, 0, 0),
        Op::Sh => bits(0x23, 1, 0),
        Op::Sw => bits(0x23, 2, 0),
        Op::Addi => bits(0x13, 0, 0),
        Op::Slti => bits(0x13, 2, 0),
        Op::Sltiu => bits(0x13, 3, 0),
        Op::Xori => bits(0x13, 4, 0),
        Op::Ori => bits(0x13, 6, 0),
        Op::Andi => bits(0x13, 7, 0),
        Op::Slli => bits(0x13, 1, 0),
        Op::Srli => bits(0x13, 5, 0),
        Op::Srai => bits(0x13, 5, 0x20),
        Op::Add => bits(0x33, 0, 0),
        Op::Sub => bits(0x33, 0, 0x20),
        Op::Sll => bits(0x33, 1, 0),
        Op::Slt => bits(0x33, 2, 0),
        Op::Sltu => bits(0x33, 3, 0),
        Op::Xor => bits(0x33, 4, 0),
        Op::Srl => bits(0x33, 5, 0),
        Op::Sra => bits(0x33, 5, 0x20),
        Op::Or => bits(0x33, 6, 0),
        Op::And => bits(0x33, 7, 0),
        Op::Mul => bits(0x33, 0, 1),
        Op::Mulh => bits(0x33, 1, 1),
        Op::Mulhsu => bits(0x33, 2, 1),
        Op::Mulhu => bits(0x33, 3, 1),
        Op::Div => bits(0x33, 4, 1),
        Op::Divu => bits(0x33, 5, 1),
        Op::Rem => bits(0x33, 6, 1),
        Op::Remu => bits(0x33, 7, 1),
        Op::Fence => 0x0ff0_000f,
        Op::FenceI => 0x0000_100f,
        Op::Ecall => 0x0000_0073,
        Op::Ebreak => 0x0010_0073,
        Op::Csrrw => bits(0x73, 1, 0),
        Op::Csrrs => bits(0x73, 2, 0),
        Op::Csrrc => bits(0x73, 3, 0),
        Op::Csrrwi => bits(0x73, 5, 0),
        Op::Csrrsi => bits(0x73, 6, 0),
        Op::Csrrci => bits(0x73, 7, 0),
        Op::Illegal => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Extensions = Extensions { multiply: true, csr: true };

    #[test]
    fn without_an_extension_its_words_are_illegal() {
        let (mul, csrrw) = (0x0231_00b3, 0x8001_10f3);
        assert_eq!(decode(mul, ALL).op, Op::Mul);
        assert_eq!(decode(mul, Extensions { multiply: false, csr: true }).op, Op::Illegal);
        assert_eq!(decode(csrrw, ALL).op, Op::Csrrw);
        assert_eq!(decode(csrrw, Extensions { multiply: true, csr: false }).op, Op::Illegal);
    }

    #[test]
    fn the_word_of_zeros_and_the_word_of_ones_are_illegal() {
        assert_eq!(decode(0, ALL).op, Op::Illegal);
        assert_eq!(decode(u32::MAX, ALL).op, Op::Illegal);
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_instruction(word: u32, opcode in 0u32..32) {
            for word in [word, (word & !0x7f) | opcode << 2 | 3] {
                let instruction = decode(word, ALL);
                prop_assert_eq!(decode(instruction.encode(), ALL), instruction);
                // A fence's ordering bits and hints are not kept; every other word comes back as it was.
                if instruction.op.shape() != Shape::Bare {
                    prop_assert_eq!(instruction.encode(), word);
                }
            }
        }
    }
}
