//! The decoded form that the executors, the disassembler, the cycle model and the checker share.

/// One of the 32 integer registers; `x0` reads zero and swallows writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Register(u8);

impl Register {
    /// `x0`.
    pub const ZERO: Self = Self(0);
    /// The return address, `x1`.
    pub const RA: Self = Self(1);
    /// The stack pointer, `x2`.
    pub const SP: Self = Self(2);

    /// Register `number`, of which five bits count.
    pub const fn new(number: u8) -> Self {
        Self(number & 31)
    }

    /// The register whose number stands in the five bits of `word` from bit `low` on.
    pub(crate) const fn field(word: u32, low: u32) -> Self {
        Self::new((word >> low & 31).to_le_bytes()[0])
    }

    /// The number, 0 to 31.
    pub const fn number(self) -> u8 {
        self.0 & 31
    }

    /// The number as an index into 32 words; the mask lets the compiler drop its bounds check.
    #[inline(always)]
    pub const fn index(self) -> usize {
        (self.0 & 31) as usize
    }

    /// Whether it is `x0`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// What an instruction does: its mnemonic in the RISC-V Instruction Set Manual, volume I.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the manual's mnemonics")]
pub enum Op {
    Lui,
    Auipc,
    Jal,
    Jalr,
    Beq,
    Bne,
    Blt,
    Bge,
    Bltu,
    Bgeu,
    Lb,
    Lh,
    Lw,
    Lbu,
    Lhu,
    Sb,
    Sh,
    Sw,
    Addi,
    Slti,
    Sltiu,
    Xori,
    Ori,
    Andi,
    Slli,
    Srli,
    Srai,
    Add,
    Sub,
    Sll,
    Slt,
    Sltu,
    Xor,
    Srl,
    Sra,
    Or,
    And,
    Mul,
    Mulh,
    Mulhsu,
    Mulhu,
    Div,
    Divu,
    Rem,
    Remu,
    Fence,
    FenceI,
    Ecall,
    Ebreak,
    Csrrw,
    Csrrs,
    Csrrc,
    Csrrwi,
    Csrrsi,
    Csrrci,
    /// No instruction of this machine; the immediate is the word itself.
    Illegal,
}

/// Which fields of an [`Instruction`] an operation uses, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `rd, imm`: the immediate already stands in the upper 20 bits.
    Upper,
    /// `rd, imm`: a jump relative to the instruction.
    Jump,
    /// `rd, imm(rs1)`: a jump through a register.
    JumpRegister,
    /// `rs1, rs2, imm`: relative to the instruction.
    Branch,
    /// `rd, imm(rs1)`.
    Load,
    /// `rs2, imm(rs1)`.
    Store,
    /// `rd, rs1, imm`.
    Immediate,
    /// `rd, rs1, rs2`.
    Register,
    /// No operand that matters.
    Bare,
    /// `rd, imm, rs1`: the immediate is the number of the register in the CSR space.
    Csr,
    /// As [`Shape::Csr`], with the number of `rs1` itself as a five-bit constant.
    CsrImmediate,
    /// Not an instruction.
    Illegal,
}

impl Op {
    /// Of an operation on a register and an immediate, the one that does the same to two registers; any other is itself.
    pub(crate) const fn of_registers(self) -> Self {
        match self {
            Self::Addi => Self::Add,
            Self::Slti => Self::Slt,
            Self::Sltiu => Self::Sltu,
            Self::Xori => Self::Xor,
            Self::Ori => Self::Or,
            Self::Andi => Self::And,
            Self::Slli => Self::Sll,
            Self::Srli => Self::Srl,
            Self::Srai => Self::Sra,
            op => op,
        }
    }

    /// Which fields the operation uses.
    pub const fn shape(self) -> Shape {
        use Op::*;
        match self {
            Lui | Auipc => Shape::Upper,
            Jal => Shape::Jump,
            Jalr => Shape::JumpRegister,
            Beq | Bne | Blt | Bge | Bltu | Bgeu => Shape::Branch,
            Lb | Lh | Lw | Lbu | Lhu => Shape::Load,
            Sb | Sh | Sw => Shape::Store,
            Addi | Slti | Sltiu | Xori | Ori | Andi | Slli | Srli | Srai => Shape::Immediate,
            Add | Sub | Sll | Slt | Sltu | Xor | Srl | Sra | Or | And => Shape::Register,
            Mul | Mulh | Mulhsu | Mulhu | Div | Divu | Rem | Remu => Shape::Register,
            Fence | FenceI | Ecall | Ebreak => Shape::Bare,
            Csrrw | Csrrs | Csrrc => Shape::Csr,
            Csrrwi | Csrrsi | Csrrci => Shape::CsrImmediate,
            Illegal => Shape::Illegal,
        }
    }

    /// How many octets a load or a store moves; 0 for the rest.
    pub const fn width(self) -> u32 {
        match self {
            Self::Lb | Self::Lbu | Self::Sb => 1,
            Self::Lh | Self::Lhu | Self::Sh => 2,
            Self::Lw | Self::Sw => 4,
            _ => 0,
        }
    }
}

/// A decoded instruction. Fields that its [`Shape`] does not name are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// Where the result goes.
    pub rd: Register,
    /// The first source.
    pub rs1: Register,
    /// The second source.
    pub rs2: Register,
    /// The immediate, sign-extended where the encoding is signed.
    pub imm: i32,
}

impl Instruction {
    /// The number of the control and status register that a CSR instruction names.
    pub const fn csr(&self) -> u16 {
        let [low, high, ..] = self.imm.to_le_bytes();
        u16::from_le_bytes([low, high & 15])
    }

    /// Whether a CSR instruction reads the register: a swap into `x0` does not (Zicsr, table of side effects).
    pub const fn reads_csr(&self) -> bool {
        match self.op {
            Op::Csrrw | Op::Csrrwi => !self.rd.is_zero(),
            Op::Csrrs | Op::Csrrc | Op::Csrrsi | Op::Csrrci => true,
            _ => false,
        }
    }

    /// Whether a CSR instruction writes the register: setting or clearing with `x0` or 0 does not.
    pub const fn writes_csr(&self) -> bool {
        match self.op {
            Op::Csrrw | Op::Csrrwi => true,
            Op::Csrrs | Op::Csrrc | Op::Csrrsi | Op::Csrrci => !self.rs1.is_zero(),
            _ => false,
        }
    }

    /// What a CSR instruction leaves in the register that held `old`, when its operand is `source`.
    #[inline(always)]
    pub const fn csr_result(&self, old: u32, source: u32) -> u32 {
        match self.op {
            Op::Csrrs | Op::Csrrsi => old | source,
            Op::Csrrc | Op::Csrrci => old & !source,
            _ => source,
        }
    }

    /// The registers it reads, as a set: bit `n` is `xn`; `x0` is never in it.
    pub const fn sources(&self) -> u32 {
        let (rs1, rs2) = (1 << self.rs1.number(), 1 << self.rs2.number());
        let set = match self.op.shape() {
            Shape::JumpRegister | Shape::Load | Shape::Immediate | Shape::Csr => rs1,
            Shape::Branch | Shape::Store | Shape::Register => rs1 | rs2,
            Shape::Upper | Shape::Jump | Shape::Bare | Shape::CsrImmediate | Shape::Illegal => 0,
        };
        set & !1
    }

    /// The register that it writes, if that is not `x0`.
    pub const fn destination(&self) -> Option<Register> {
        match self.op.shape() {
            Shape::Branch | Shape::Store | Shape::Bare | Shape::Illegal => None,
            _ if self.rd.is_zero() => None,
            _ => Some(self.rd),
        }
    }
}
