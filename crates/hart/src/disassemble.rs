//! Instructions as text, in the assembler's notation.

use core::fmt;

use crate::instruction::{Instruction, Op, Register, Shape};

const REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

impl fmt::Display for Register {
    /// The name in the calling convention.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(REGISTERS[self.index()])
    }
}

impl fmt::Debug for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Illegal => ".word".to_owned(),
            Self::FenceI => "fence.i".to_owned(),
            op => format!("{op:?}").to_lowercase(),
        };
        f.pad(&text)
    }
}

impl fmt::Display for Instruction {
    /// As the assembler reads it; jumps and branches show their distance, for the address is not known here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, rd, rs1, rs2, imm } = self;
        match op.shape() {
            Shape::Upper => write!(f, "{op} {rd}, {:#x}", imm.cast_unsigned() >> 12),
            Shape::Jump => write!(f, "{op} {rd}, .{imm:+}"),
            Shape::JumpRegister | Shape::Load => write!(f, "{op} {rd}, {imm}({rs1})"),
            Shape::Branch => write!(f, "{op} {rs1}, {rs2}, .{imm:+}"),
            Shape::Store => write!(f, "{op} {rs2}, {imm}({rs1})"),
            Shape::Immediate => write!(f, "{op} {rd}, {rs1}, {imm}"),
            Shape::Register => write!(f, "{op} {rd}, {rs1}, {rs2}"),
            Shape::Bare => write!(f, "{op}"),
            Shape::Csr => write!(f, "{op} {rd}, {:#x}, {rs1}", self.csr()),
            Shape::CsrImmediate => write!(f, "{op} {rd}, {:#x}, {}", self.csr(), rs1.number()),
            Shape::Illegal => write!(f, "{op} {imm:#010x}"),
        }
    }
}

impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::decode::{Extensions, decode};

    #[test]
    fn instructions_read_as_the_assembler_writes_them() {
        let all = Extensions { multiply: true, csr: true };
        for (word, text) in [
            (0x1234_52b7, "lui t0, 0x12345"),
            (0xff5f_f06f, "jal zero, .-12"),
            (0x0000_8067, "jalr zero, 0(ra)"),
            (0xfe06_8ce3, "beq a3, zero, .-8"),
            (0xffc1_2503, "lw a0, -4(sp)"),
            (0x00a1_2623, "sw a0, 12(sp)"),
            (0xfff5_0513, "addi a0, a0, -1"),
            (0x4055_d593, "srai a1, a1, 5"),
            (0x02b5_0533, "mul a0, a0, a1"),
            (0x8000_2573, "csrrs a0, 0x800, zero"),
            (0x8001_d073, "csrrwi zero, 0x800, 3"),
            (0x0ff0_000f, "fence"),
            (0x0000_100f, "fence.i"),
            (0x0000_0000, ".word 0x00000000"),
        ] {
            assert_eq!(decode(word, all).to_string(), text);
        }
    }
}
