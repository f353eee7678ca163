//! The interpreter, which says what a program means; the translator must agree with it.

use crate::core::{Cause, Core, Stop, Trap};
use crate::csr::{Csr, Csrs, DeviceRead, DeviceWrite, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Register};
use crate::memory::Refusal;
use crate::program::Program;

/// Sees each instruction as it retires.
pub(crate) trait Watch {
    fn retired(&mut self, pc: u32, instruction: Instruction, cycles: u32);
}

pub(crate) struct NoWatch;

impl Watch for NoWatch {
    #[inline(always)]
    fn retired(&mut self, _: u32, _: Instruction, _: u32) {}
}

/// Runs up to the limit in the core's state.
pub(crate) fn run<C: Csrs + ?Sized, W: Watch>(core: &mut Core, csrs: &mut C, watch: &mut W) -> Stop {
    // Without a step to end it, the loop ends with a stop.
    interpret::<C, W, false>(core, csrs, watch).unwrap_or(Stop::Budget)
}

/// Carries out one instruction.
pub(crate) fn step<C: Csrs + ?Sized>(core: &mut Core, csrs: &mut C) -> Option<Stop> {
    interpret::<C, NoWatch, true>(core, csrs, &mut NoWatch)
}

/// What a CSR instruction does to the run.
enum CsrOutcome {
    /// The value for `rd`, and whether the run stops.
    Retired { value: u32, stops: bool },
    /// The core waits.
    Wait,
    /// The instruction traps.
    Refused,
}

#[inline(always)]
fn access<C: Csrs + ?Sized>(
    program: &Program,
    csrs: &mut C,
    instruction: Instruction,
    source: u32,
    cycle: u64,
) -> CsrOutcome {
    let number = instruction.csr();
    let (reads, writes) = (instruction.reads_csr(), instruction.writes_csr());
    match program.machine.csrs.at(number) {
        Csr::Absent => CsrOutcome::Refused,
        Csr::Word { index, read, write } => {
            if reads && read == OnRead::Refuse || writes && write == OnWrite::Refuse {
                return CsrOutcome::Refused;
            }
            let Some(word) = csrs.block().get_mut(usize::from(index)) else { return CsrOutcome::Refused };
            let value = *word;
            if reads && read == OnRead::WaitWhileZero && value == 0 {
                return CsrOutcome::Wait;
            }
            if writes {
                *word = instruction.csr_result(value, source);
            }
            CsrOutcome::Retired { value, stops: writes && write == OnWrite::StoreAndStop }
        }
        Csr::Device => {
            let value = match if reads { csrs.read(number, cycle) } else { DeviceRead::Value(0) } {
                DeviceRead::Value(value) => value,
                DeviceRead::Wait => return CsrOutcome::Wait,
                DeviceRead::Refuse => return CsrOutcome::Refused,
            };
            let written = if writes {
                csrs.write(number, instruction.csr_result(value, source), cycle)
            } else {
                DeviceWrite::Done
            };
            match written {
                DeviceWrite::Done => CsrOutcome::Retired { value, stops: false },
                DeviceWrite::Stop => CsrOutcome::Retired { value, stops: true },
                DeviceWrite::Refuse => CsrOutcome::Refused,
            }
        }
    }
}

/// The interpreter's loop. It ends at a stop, or behind the first instruction when `ONE`.
///
/// The clock and the program counter live in locals, and go back to the state wherever the loop is left.
#[inline(always)]
fn interpret<C: Csrs + ?Sized, W: Watch, const ONE: bool>(
    core: &mut Core,
    csrs: &mut C,
    watch: &mut W,
) -> Option<Stop> {
    let Core { state, memory, program } = core;
    let code: &[_] = &program.code;
    let x = &mut state.x;
    let (mut pc, mut cycles, mut retired) = (state.pc, state.cycles, state.retired);
    let limit = state.limit;
    let stop = loop {
        let Some(&step) = code.get(program.index(pc)) else {
            break Some(Stop::Trap(Trap { pc, cause: Cause::FetchFault }));
        };
        let instruction = step.instruction;
        let Instruction { op, rd, rs1, rs2, imm } = instruction;
        let (a, b, uimm) = (x[rs1.index()], x[rs2.index()], imm.cast_unsigned());
        let trap = |cause| Some(Stop::Trap(Trap { pc, cause }));
        let mut cost = step.cost;
        let mut next = pc.wrapping_add(4);

        /// Writes `rd`. Writing `x0` and clearing it again costs less than asking.
        macro_rules! result {
            ($value:expr) => {{
                x[rd.index()] = $value;
                x[Register::ZERO.index()] = 0;
            }};
        }
        macro_rules! branch {
            ($taken:expr) => {
                if $taken {
                    next = pc.wrapping_add(uimm);
                    if next & 3 != 0 {
                        break trap(Cause::MisalignedFetch { target: next });
                    }
                    cost = step.taken;
                }
            };
        }
        macro_rules! load {
            ($width:expr, $extend:expr) => {{
                let address = a.wrapping_add(uimm);
                match memory.load(address, $width) {
                    Ok(value) => result!($extend(value)),
                    Err(Refusal::Misaligned) => break trap(Cause::MisalignedLoad { address }),
                    Err(Refusal::OutOfBounds) => break trap(Cause::LoadFault { address }),
                }
            }};
        }
        macro_rules! store {
            ($width:expr) => {{
                let address = a.wrapping_add(uimm);
                match memory.store(address, $width, b) {
                    Ok(()) => {}
                    Err(Refusal::Misaligned) => break trap(Cause::MisalignedStore { address }),
                    Err(Refusal::OutOfBounds) => break trap(Cause::StoreFault { address }),
                }
            }};
        }

        match op {
            Op::Lui => result!(uimm),
            Op::Auipc => result!(pc.wrapping_add(uimm)),
            Op::Jal => {
                let link = next;
                next = pc.wrapping_add(uimm);
                if next & 3 != 0 {
                    break trap(Cause::MisalignedFetch { target: next });
                }
                result!(link);
            }
            Op::Jalr => {
                let link = next;
                next = a.wrapping_add(uimm) & !1;
                if next & 3 != 0 {
                    break trap(Cause::MisalignedFetch { target: next });
                }
                result!(link);
            }
            Op::Beq => branch!(a == b),
            Op::Bne => branch!(a != b),
            Op::Blt => branch!(a.cast_signed() < b.cast_signed()),
            Op::Bge => branch!(a.cast_signed() >= b.cast_signed()),
            Op::Bltu => branch!(a < b),
            Op::Bgeu => branch!(a >= b),
            Op::Lb => load!(1, |value: u32| (value << 24).cast_signed().wrapping_shr(24).cast_unsigned()),
            Op::Lh => load!(2, |value: u32| (value << 16).cast_signed().wrapping_shr(16).cast_unsigned()),
            Op::Lw => load!(4, |value| value),
            Op::Lbu => load!(1, |value| value),
            Op::Lhu => load!(2, |value| value),
            Op::Sb => store!(1),
            Op::Sh => store!(2),
            Op::Sw => store!(4),
            Op::Addi => result!(a.wrapping_add(uimm)),
            Op::Slti => result!(u32::from(a.cast_signed() < imm)),
            Op::Sltiu => result!(u32::from(a < uimm)),
            Op::Xori => result!(a ^ uimm),
            Op::Ori => result!(a | uimm),
            Op::Andi => result!(a & uimm),
            Op::Slli => result!(a.wrapping_shl(uimm)),
            Op::Srli => result!(a.wrapping_shr(uimm)),
            Op::Srai => result!(a.cast_signed().wrapping_shr(uimm).cast_unsigned()),
            Op::Ecall => break trap(Cause::EnvironmentCall),
            Op::Ebreak => break trap(Cause::Breakpoint),
            Op::Fence | Op::FenceI => {}
            Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
                let immediate = matches!(op, Op::Csrrwi | Op::Csrrsi | Op::Csrrci);
                let source = if immediate { u32::from(rs1.number()) } else { a };
                match access(program, csrs, instruction, source, cycles) {
                    CsrOutcome::Retired { value, stops } => {
                        result!(value);
                        if stops {
                            cycles += u64::from(cost);
                            retired += 1;
                            watch.retired(pc, instruction, u32::from(cost));
                            pc = next;
                            break Some(Stop::Written { csr: instruction.csr() });
                        }
                    }
                    CsrOutcome::Wait => break Some(Stop::Waiting { csr: instruction.csr() }),
                    CsrOutcome::Refused => break trap(Cause::Csr { csr: instruction.csr() }),
                }
            }
            Op::Illegal => break trap(Cause::Illegal { word: uimm }),
            _ => result!(arithmetic(op, a, b)),
        }

        cycles += u64::from(cost);
        retired += 1;
        watch.retired(pc, instruction, u32::from(cost));
        let back = next <= pc || op == Op::Jalr;
        pc = next;
        if back && cycles >= limit {
            break Some(Stop::Budget);
        }
        if ONE {
            break None;
        }
    };
    (state.pc, state.cycles, state.retired) = (pc, cycles, retired);
    stop
}

/// The result of an operation on two registers (volume I, "Integer Register-Register Operations" and "M").
#[expect(clippy::cast_possible_truncation, reason = "the upper words of products have 32 bits")]
#[inline(always)]
pub(crate) const fn arithmetic(op: Op, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a.cast_signed(), b.cast_signed());
    match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Sll => a.wrapping_shl(b),
        Op::Slt => (sa < sb) as u32,
        Op::Sltu => (a < b) as u32,
        Op::Xor => a ^ b,
        Op::Srl => a.wrapping_shr(b),
        Op::Sra => sa.wrapping_shr(b).cast_unsigned(),
        Op::Or => a | b,
        Op::And => a & b,
        Op::Mul => a.wrapping_mul(b),
        Op::Mulh => ((sa as i64 * sb as i64) >> 32).cast_unsigned() as u32,
        Op::Mulhsu => ((sa as i64 * b as i64) >> 32).cast_unsigned() as u32,
        Op::Mulhu => ((a as u64 * b as u64) >> 32) as u32,
        // Division by zero gives all ones, and the dividend as remainder; overflow wraps.
        Op::Div if b == 0 => u32::MAX,
        Op::Div => sa.wrapping_div(sb).cast_unsigned(),
        Op::Divu if b == 0 => u32::MAX,
        Op::Divu => a / b,
        Op::Rem if b == 0 => a,
        Op::Rem => sa.wrapping_rem(sb).cast_unsigned(),
        Op::Remu if b == 0 => a,
        Op::Remu => a % b,
        _ => 0,
    }
}
