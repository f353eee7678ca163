//! What the interpreter does at each instruction, known before it runs.

use crate::csr::{Csr, CsrMap, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Shape};

/// Defines [`Act`]: operations that are carried out as they are named, and others.
macro_rules! acts {
    (own { $($own:ident),* $(,)? } $($(#[$doc:meta])* $other:ident,)*) => {
        /// An operation, or a shorter way to the same where the operands allow one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Act {
            $($own,)*
            $($(#[$doc])* $other,)*
        }

        impl Act {
            /// What is done for any operands.
            const fn of(op: Op) -> Self {
                match op {
                    $(Op::$own => Self::$own,)*
                    Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => Self::Csr,
                    Op::Fence | Op::FenceI => Self::Nothing,
                }
            }
        }
    };
}

acts! {
    own {
        Lui, Auipc, Jal, Jalr, Beq, Bne, Blt, Bge, Bltu, Bgeu, Lb, Lh, Lw, Lbu, Lhu, Sb, Sh, Sw, Addi, Slti, Sltiu,
        Xori, Ori, Andi, Slli, Srli, Srai, Add, Sub, Sll, Slt, Sltu, Xor, Srl, Sra, Or, And, Mul, Mulh, Mulhsu,
        Mulhu, Div, Divu, Rem, Remu, Ecall, Ebreak, Illegal,
    }
    /// Nothing but going on: FENCE, and results that nobody gets.
    Nothing,
    /// `j`.
    Jump,
    /// A JAL to an address that is no multiple of 4.
    Astray,
    /// `csrr` of a word of the block.
    Read,
    /// The same, which waits while the word is zero.
    Poll,
    /// `csrw` of a word of the block.
    Write,
    /// `csrwi` of one.
    WriteImmediate,
    /// `csrw` of one that stops the run.
    Post,
    /// `csrwi` of one that does.
    PostImmediate,
    /// `csrw` of one with a queue.
    Queue,
    /// Any other access to a register.
    Csr,
}

impl Act {
    /// What is done at `instruction`, and which word of the block that is about, if any, or below which words only join a
    /// queue.
    pub(crate) fn new(instruction: &Instruction, csrs: &CsrMap) -> (Self, u32) {
        let Instruction { op, rd, imm, .. } = *instruction;
        match op.shape() {
            Shape::Jump if imm & 3 != 0 => (Self::Astray, 0),
            Shape::Jump if rd.is_zero() => (Self::Jump, 0),
            Shape::Upper | Shape::Immediate | Shape::Register if rd.is_zero() => (Self::Nothing, 0),
            Shape::Csr | Shape::CsrImmediate => Self::access(instruction, csrs.at(instruction.csr())),
            _ => (Self::of(op), 0),
        }
    }

    fn access(instruction: &Instruction, csr: Csr) -> (Self, u32) {
        let Csr::Word { index, read, write } = csr else { return (Self::Csr, 0) };
        let immediate = instruction.op.shape() == Shape::CsrImmediate;
        let act = match (instruction.reads_csr(), instruction.writes_csr()) {
            (true, false) => match read {
                OnRead::Value => Self::Read,
                OnRead::WaitWhileZero => Self::Poll,
                OnRead::Refuse => Self::Csr,
            },
            // A write that reads nothing is a swap: what is set or cleared is read.
            (false, true) => match write {
                OnWrite::Store if immediate => Self::WriteImmediate,
                OnWrite::Store => Self::Write,
                OnWrite::StoreAndStop if immediate => Self::PostImmediate,
                OnWrite::StoreAndStop => Self::Post,
                OnWrite::Queue { below } if !immediate => return (Self::Queue, below),
                OnWrite::Queue { .. } | OnWrite::Refuse => Self::Csr,
            },
            _ => Self::Csr,
        };
        (act, index.into())
    }
}
