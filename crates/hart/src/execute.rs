//! The interpreter, which says what a program means; the translator must agree with it.

use crate::core::{Cause, Core, State, Stop, Trap};
use crate::csr::{CSR_WORDS, Csr, Csrs, DeviceRead, DeviceWrite, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Register};
use crate::memory::Refusal;
use crate::program::{Plain, Program, Step};

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
/// A straight run of instructions is accounted for when it ends, by the sums of costs that stand in the code. Until
/// then only the index of the instruction changes; the clock and the program counter are made from it where someone
/// looks.
#[inline(always)]
fn interpret<C: Csrs + ?Sized, W: Watch, const ONE: bool>(
    core: &mut Core,
    csrs: &mut C,
    watch: &mut W,
) -> Option<Stop> {
    let Core { state, memory, program } = core;
    let program: &Program = program;
    let code: &[Step] = &program.code;
    let State { x, limit, .. } = state;
    let (mut cycles, mut retired) = (state.cycles, state.retired);
    let start = program.code_start;
    if !state.pc.wrapping_sub(start).is_multiple_of(4) {
        return Some(Stop::Trap(Trap { pc: state.pc, cause: Cause::FetchFault }));
    }
    let sum_at = |at: u32| code.get(at as usize).map_or(program.sum, |step| step.before);
    // Counted modulo 2³⁰, as addresses are modulo 2³².
    let mut at = state.pc.wrapping_sub(start) >> 2;
    let mut before = sum_at(at);

    /// The address of the instruction.
    macro_rules! pc {
        () => {
            start.wrapping_add(4 * at)
        };
    }
    let halt = loop {
        let Some(step) = code.get(at as usize) else { break Halt::Trap(Cause::FetchFault) };
        let Instruction { op, rd, rs1, rs2, imm } = step.instruction;
        let (a, b, uimm) = (x[rs1.index()], x[rs2.index()], imm.cast_unsigned());

        /// Writes `rd`. Writing `x0` and clearing it again costs less than asking.
        macro_rules! result {
            ($value:expr) => {{
                x[rd.index()] = $value;
                x[Register::ZERO.index()] = 0;
            }};
        }
        /// Jumps to index `$next`, and looks at the budget when the way there may come round again.
        macro_rules! jump {
            ($next:expr, $cost:expr, $back:expr) => {{
                let (next, cost) = ($next, u32::from($cost));
                watch.retired(pc!(), step.instruction, cost);
                let run = step.before.since(before);
                cycles += run.cycles + u64::from(cost);
                retired += run.retired + 1;
                at = next;
                before = sum_at(at);
                if $back && cycles >= *limit {
                    break Halt::Stop(Stop::Budget);
                }
                if ONE {
                    break Halt::Left;
                }
                continue;
            }};
        }
        /// The index of what lies `imm` octets away.
        macro_rules! near {
            () => {{
                if imm & 3 != 0 {
                    break Halt::Trap(Cause::MisalignedFetch { target: pc!().wrapping_add(uimm) });
                }
                at.wrapping_add_signed(imm >> 2) & (u32::MAX >> 2)
            }};
        }
        macro_rules! branch {
            ($taken:expr) => {
                if $taken {
                    jump!(near!(), step.taken, imm <= 0);
                }
            };
        }
        macro_rules! load {
            ($width:expr, $extend:expr) => {{
                let address = a.wrapping_add(uimm);
                match memory.load(address, $width) {
                    Ok(value) => result!($extend(value)),
                    Err(Refusal::Misaligned) => break Halt::Trap(Cause::MisalignedLoad { address }),
                    Err(Refusal::OutOfBounds) => break Halt::Trap(Cause::LoadFault { address }),
                }
            }};
        }
        macro_rules! store {
            ($width:expr) => {{
                let address = a.wrapping_add(uimm);
                match memory.store(address, $width, b) {
                    Ok(()) => {}
                    Err(Refusal::Misaligned) => break Halt::Trap(Cause::MisalignedStore { address }),
                    Err(Refusal::OutOfBounds) => break Halt::Trap(Cause::StoreFault { address }),
                }
            }};
        }

        match op {
            Op::Lui => result!(uimm),
            Op::Auipc => result!(pc!().wrapping_add(uimm)),
            Op::Jal => {
                let next = near!();
                result!(pc!().wrapping_add(4));
                jump!(next, step.cost, imm <= 0);
            }
            Op::Jalr => {
                let target = a.wrapping_add(uimm) & !1;
                if target & 3 != 0 {
                    break Halt::Trap(Cause::MisalignedFetch { target });
                }
                result!(pc!().wrapping_add(4));
                jump!(target.wrapping_sub(start) >> 2, step.cost, true);
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
            Op::Add => result!(arithmetic(Op::Add, a, b)),
            Op::Sub => result!(arithmetic(Op::Sub, a, b)),
            Op::Sll => result!(arithmetic(Op::Sll, a, b)),
            Op::Slt => result!(arithmetic(Op::Slt, a, b)),
            Op::Sltu => result!(arithmetic(Op::Sltu, a, b)),
            Op::Xor => result!(arithmetic(Op::Xor, a, b)),
            Op::Srl => result!(arithmetic(Op::Srl, a, b)),
            Op::Sra => result!(arithmetic(Op::Sra, a, b)),
            Op::Or => result!(arithmetic(Op::Or, a, b)),
            Op::And => result!(arithmetic(Op::And, a, b)),
            Op::Mul => result!(arithmetic(Op::Mul, a, b)),
            Op::Mulh => result!(arithmetic(Op::Mulh, a, b)),
            Op::Mulhsu => result!(arithmetic(Op::Mulhsu, a, b)),
            Op::Mulhu => result!(arithmetic(Op::Mulhu, a, b)),
            Op::Div => result!(arithmetic(Op::Div, a, b)),
            Op::Divu => result!(arithmetic(Op::Divu, a, b)),
            Op::Rem => result!(arithmetic(Op::Rem, a, b)),
            Op::Remu => result!(arithmetic(Op::Remu, a, b)),
            Op::Ecall => break Halt::Trap(Cause::EnvironmentCall),
            Op::Ebreak => break Halt::Trap(Cause::Breakpoint),
            Op::Fence | Op::FenceI => {}
            // Most accesses only move a word, and it is known beforehand which.
            Op::Csrrs if step.plain == Plain::Read => {
                result!(csrs.block()[usize::from(step.word) % CSR_WORDS])
            }
            Op::Csrrs if step.plain == Plain::Poll => {
                let value = csrs.block()[usize::from(step.word) % CSR_WORDS];
                if value == 0 {
                    break Halt::Stop(Stop::Waiting { csr: step.instruction.csr() });
                }
                result!(value);
            }
            Op::Csrrw | Op::Csrrwi if step.plain == Plain::Post => {
                let value = if op == Op::Csrrw { a } else { u32::from(rs1.number()) };
                csrs.block()[usize::from(step.word) % CSR_WORDS] = value;
                watch.retired(pc!(), step.instruction, u32::from(step.cost));
                at += 1;
                break Halt::Stop(Stop::Written { csr: step.instruction.csr() });
            }
            Op::Csrrw if step.plain == Plain::Write => csrs.block()[usize::from(step.word) % CSR_WORDS] = a,
            Op::Csrrwi if step.plain == Plain::Write => {
                csrs.block()[usize::from(step.word) % CSR_WORDS] = u32::from(rs1.number());
            }
            Op::Csrrw | Op::Csrrs | Op::Csrrc | Op::Csrrwi | Op::Csrrsi | Op::Csrrci => {
                let immediate = matches!(op, Op::Csrrwi | Op::Csrrsi | Op::Csrrci);
                let source = if immediate { u32::from(rs1.number()) } else { a };
                let cycle = cycles + step.before.since(before).cycles;
                let csr = step.instruction.csr();
                match access(program, csrs, step.instruction, source, cycle) {
                    CsrOutcome::Retired { value, stops } => {
                        result!(value);
                        if stops {
                            watch.retired(pc!(), step.instruction, u32::from(step.cost));
                            at += 1;
                            break Halt::Stop(Stop::Written { csr });
                        }
                    }
                    CsrOutcome::Wait => break Halt::Stop(Stop::Waiting { csr }),
                    CsrOutcome::Refused => break Halt::Trap(Cause::Csr { csr }),
                }
            }
            Op::Illegal => break Halt::Trap(Cause::Illegal { word: uimm }),
        }

        watch.retired(pc!(), step.instruction, u32::from(step.cost));
        at += 1;
        if ONE {
            break Halt::Left;
        }
    };
    let run = sum_at(at).since(before);
    let pc = pc!();
    (state.pc, state.cycles, state.retired) = (pc, cycles + run.cycles, retired + run.retired);
    match halt {
        Halt::Trap(cause) => Some(Stop::Trap(Trap { pc, cause })),
        Halt::Stop(stop) => Some(stop),
        Halt::Left => None,
    }
}

/// How the loop was left, with the instruction at hand the next to carry out.
enum Halt {
    /// It cannot be carried out.
    Trap(Cause),
    Stop(Stop),
    /// One was asked for, and one is done.
    Left,
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
