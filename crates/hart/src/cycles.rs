//! What each instruction costs in clock cycles.

use crate::instruction::{Op, Shape};

/// The cost of each kind of instruction, in cycles of the core's clock; each at least 1.
///
/// The default is riscv-mini: three stages, in order, one instruction at a time. A load, a CSR instruction, FENCE.I and a
/// jump kill the instruction fetched behind them and so take two cycles (`inst_kill` in its `Control.scala`). It has no
/// multiplier, so the costs of M are a choice: a pipelined multiplier of one cycle, and a divider of one bit per cycle with
/// one cycle before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleModel {
    /// Arithmetic, logic, shifts, comparisons, LUI and AUIPC.
    pub alu: u16,
    /// A load of any width.
    pub load: u16,
    /// A store of any width: 1 into a scratchpad, 2 through riscv-mini's cache.
    pub store: u16,
    /// A conditional branch that falls through.
    pub branch_untaken: u16,
    /// A conditional branch that is taken.
    pub branch_taken: u16,
    /// JAL.
    pub jump: u16,
    /// JALR.
    pub jump_register: u16,
    /// Any CSR instruction (SwCC's paper implies 1), but on registers with a cost of their own
    /// ([`CsrMap::with_cost`](crate::CsrMap::with_cost)).
    pub csr: u16,
    /// MUL and its high-word forms.
    pub multiply: u16,
    /// DIV, REM and their unsigned forms.
    pub divide: u16,
    /// FENCE. FENCE.I takes one more, for the instruction behind it is fetched again.
    pub fence: u16,
}

impl Default for CycleModel {
    fn default() -> Self {
        Self {
            alu: 1,
            load: 2,
            store: 1,
            branch_untaken: 1,
            branch_taken: 2,
            jump: 2,
            jump_register: 2,
            csr: 2,
            multiply: 1,
            divide: 34,
            fence: 1,
        }
    }
}

impl CycleModel {
    /// What `op` costs; a branch, when it is not taken. Instructions that trap cost nothing, for they do not retire.
    pub const fn cost(&self, op: Op) -> u16 {
        match op.shape() {
            Shape::Upper | Shape::Immediate => self.alu,
            Shape::Jump => self.jump,
            Shape::JumpRegister => self.jump_register,
            Shape::Branch => self.branch_untaken,
            Shape::Load => self.load,
            Shape::Store => self.store,
            Shape::Register => match op {
                Op::Mul | Op::Mulh | Op::Mulhsu | Op::Mulhu => self.multiply,
                Op::Div | Op::Divu | Op::Rem | Op::Remu => self.divide,
                _ => self.alu,
            },
            Shape::Csr | Shape::CsrImmediate => self.csr,
            Shape::Bare => match op {
                Op::Fence => self.fence,
                Op::FenceI => self.fence.saturating_add(1),
                _ => 0,
            },
            Shape::Illegal => 0,
        }
    }

    /// Whether every cost is at least one cycle. A loop of free instructions would outlast every budget.
    pub(crate) const fn is_positive(&self) -> bool {
        let Self { alu, load, store, branch_untaken, branch_taken, jump, .. } = *self;
        let Self { jump_register, csr, multiply, divide, fence, .. } = *self;
        alu != 0
            && load != 0
            && store != 0
            && branch_untaken != 0
            && branch_taken != 0
            && jump != 0
            && jump_register != 0
            && csr != 0
            && multiply != 0
            && divide != 0
            && fence != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table of riscv-mini's `Control.scala` says, by its `inst_kill`; a branch that is taken does the same.
    #[test]
    fn what_kills_the_instruction_behind_it_takes_two_cycles_on_riscv_mini() {
        let model = CycleModel::default();
        let killing = [
            Op::Jal,
            Op::Jalr,
            Op::Lb,
            Op::Lh,
            Op::Lw,
            Op::Lbu,
            Op::Lhu,
            Op::FenceI,
            Op::Csrrw,
            Op::Csrrs,
            Op::Csrrc,
            Op::Csrrwi,
            Op::Csrrsi,
            Op::Csrrci,
        ];
        let others = [Op::Lui, Op::Auipc, Op::Beq, Op::Bgeu, Op::Sb, Op::Sw, Op::Addi, Op::Sra, Op::Fence];
        assert!(killing.into_iter().all(|op| model.cost(op) == 2));
        assert!(others.into_iter().all(|op| model.cost(op) == 1));
        assert_eq!(model.branch_taken, 2);
    }
}
