//! The interpreter, which says what a program means; the translator must agree with it.

use crate::act::Act;
use crate::core::{Cause, Core, Queue, State, Stop, Trap};
use crate::csr::{CSR_WORDS, Csr, Csrs, DeviceRead, DeviceWrite, OnRead, OnWrite};
use crate::instruction::{Instruction, Op, Register, Shape};
use crate::memory::Refusal;
use crate::program::{Program, Step};

/// Runs up to the limit in the core's state.
pub(crate) fn run<C: Csrs + ?Sized>(core: &mut Core, csrs: &mut C) -> Stop {
    // Without a step to end it, the loop ends with a stop.
    interpret::<C, false>(core, csrs).unwrap_or(Stop::Budget)
}

/// Carries out one instruction.
pub(crate) fn step<C: Csrs + ?Sized>(core: &mut Core, csrs: &mut C) -> Option<Stop> {
    interpret::<C, true>(core, csrs)
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

/// Any access to a register. Most only move a word, and the loop does those itself.
#[inline(never)]
fn access<C: Csrs + ?Sized>(
    program: &Program,
    csrs: &mut C,
    queue: &mut Queue,
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
            let mut stops = false;
            if writes {
                let result = instruction.csr_result(value, source);
                match write {
                    OnWrite::Queue { below } => stops = queue.push(result, below),
                    _ => *word = result,
                }
                stops |= write == OnWrite::StoreAndStop;
            }
            CsrOutcome::Retired { value, stops }
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
/// Going straight on changes the index of the instruction alone. The clock is what it was at a jump, less the cycles of
/// the code before its target, and more those of the code before the instruction, which stand there; the count of
/// instructions is likewise the index and something that only jumps change. Both, and the program counter, are made where
/// someone looks.
#[inline(always)]
fn interpret<C: Csrs + ?Sized, const ONE: bool>(core: &mut Core, csrs: &mut C) -> Option<Stop> {
    let Core { state, memory, program } = core;
    let program: &Program = program;
    let code: &[Step] = &program.code;
    let start = program.code_start;
    let State { x, pc, cycles, retired, limit, queue } = state;
    #[expect(clippy::cast_possible_truncation, reason = "an address is turned into it, which has 32 bits")]
    let mut at = Program::index_from(start, *pc) as u32;
    let Some(mut step) = code.get(at as usize) else {
        return Some(Stop::Trap(Trap { pc: *pc, cause: Cause::FetchFault }));
    };
    // Without the code before the instruction.
    let mut clock = cycles.wrapping_sub(step.before);
    let mut count = retired.wrapping_sub(at.into());

    /// Ends the run before the instruction at index `$at`, with the clock at `$clock`.
    macro_rules! leave {
        ($at:expr, $clock:expr, $stop:expr) => {{
            *pc = start.wrapping_add(4 * $at);
            *cycles = $clock;
            *retired = count.wrapping_add($at.into());
            return $stop;
        }};
    }
    /// The clock before the instruction.
    macro_rules! now {
        () => {
            clock.wrapping_add(step.before)
        };
    }
    /// The address of the instruction.
    macro_rules! address {
        () => {
            start.wrapping_add(4 * at)
        };
    }
    let cause = loop {
        // Fields of the instruction are read where they are used, for few use all of them: registers,
        macro_rules! a {
            () => {
                x[step.instruction.rs1.index()]
            };
        }
        macro_rules! b {
            () => {
                x[step.instruction.rs2.index()]
            };
        }
        // and the immediate, with its sign and without.
        macro_rules! imm {
            () => {
                step.instruction.imm
            };
        }
        macro_rules! uimm {
            () => {
                imm!().cast_unsigned()
            };
        }
        /// Writes `rd`, where that is not `x0`.
        macro_rules! result {
            ($value:expr) => {
                x[step.instruction.rd.index()] = $value
            };
        }
        /// Writes `rd`. Writing `x0` and clearing it again costs less than asking.
        macro_rules! result_or_none {
            ($value:expr) => {{
                x[step.instruction.rd.index()] = $value;
                x[Register::ZERO.index()] = 0;
            }};
        }
        /// Jumps to index `$next`, and looks at the budget when the way there may come round again.
        macro_rules! jump {
            ($next:expr, $cost:expr, $back:expr) => {{
                let (next, cost) = ($next, u32::from($cost));
                let then = now!().wrapping_add(cost.into());
                count = count.wrapping_add(u64::from(at) + 1).wrapping_sub(next.into());
                at = next;
                if $back && then >= *limit {
                    leave!(at, then, Some(Stop::Budget));
                }
                if ONE {
                    leave!(at, then, None);
                }
                let Some(target) = code.get(at as usize) else {
                    let trap = Trap { pc: address!(), cause: Cause::FetchFault };
                    leave!(at, then, Some(Stop::Trap(trap)));
                };
                step = target;
                clock = then.wrapping_sub(step.before);
                continue;
            }};
        }
        macro_rules! branch {
            ($taken:expr) => {
                if $taken {
                    if imm!() & 3 != 0 {
                        break Cause::MisalignedFetch { target: address!().wrapping_add(uimm!()) };
                    }
                    jump!(step.place, step.taken, imm!() <= 0);
                }
            };
        }
        macro_rules! load {
            ($width:expr, $extend:expr) => {{
                let address = a!().wrapping_add(uimm!());
                match memory.load(address, $width) {
                    Ok(value) => result_or_none!($extend(value)),
                    Err(Refusal::Misaligned) => break Cause::MisalignedLoad { address },
                    Err(Refusal::OutOfBounds) => break Cause::LoadFault { address },
                }
            }};
        }
        macro_rules! store {
            ($width:expr) => {{
                let address = a!().wrapping_add(uimm!());
                match memory.store(address, $width, b!()) {
                    Ok(()) => {}
                    Err(Refusal::Misaligned) => break Cause::MisalignedStore { address },
                    Err(Refusal::OutOfBounds) => break Cause::StoreFault { address },
                }
            }};
        }
        /// The word of the block that it is about.
        macro_rules! word {
            () => {
                csrs.block()[step.place as usize % CSR_WORDS]
            };
        }
        /// The constant in the place of a register.
        macro_rules! constant {
            () => {
                u32::from(step.instruction.rs1.number())
            };
        }
        /// Stops behind a write.
        macro_rules! written {
            () => {{
                let stop = Stop::Written { csr: step.instruction.csr() };
                let then = now!().wrapping_add(step.cost.into());
                at += 1;
                leave!(at, then, Some(stop));
            }};
        }
        macro_rules! wait {
            () => {
                leave!(at, now!(), Some(Stop::Waiting { csr: step.instruction.csr() }))
            };
        }

        match step.act {
            Act::Lui => result!(uimm!()),
            Act::Auipc => result!(address!().wrapping_add(uimm!())),
            Act::Jump => jump!(step.place, step.cost, imm!() <= 0),
            Act::Jal => {
                result!(address!().wrapping_add(4));
                jump!(step.place, step.cost, imm!() <= 0);
            }
            Act::Astray => break Cause::MisalignedFetch { target: address!().wrapping_add(uimm!()) },
            Act::Jalr => {
                let target = a!().wrapping_add(uimm!()) & !1;
                if target & 3 != 0 {
                    break Cause::MisalignedFetch { target };
                }
                result_or_none!(address!().wrapping_add(4));
                jump!(target.wrapping_sub(start) >> 2, step.cost, true);
            }
            Act::Beq => branch!(a!() == b!()),
            Act::Bne => branch!(a!() != b!()),
            Act::Blt => branch!(a!().cast_signed() < b!().cast_signed()),
            Act::Bge => branch!(a!().cast_signed() >= b!().cast_signed()),
            Act::Bltu => branch!(a!() < b!()),
            Act::Bgeu => branch!(a!() >= b!()),
            Act::Lb => load!(1, |value: u32| (value << 24).cast_signed().wrapping_shr(24).cast_unsigned()),
            Act::Lh => load!(2, |value: u32| (value << 16).cast_signed().wrapping_shr(16).cast_unsigned()),
            Act::Lw => load!(4, |value| value),
            Act::Lbu => load!(1, |value| value),
            Act::Lhu => load!(2, |value| value),
            Act::Sb => store!(1),
            Act::Sh => store!(2),
            Act::Sw => store!(4),
            Act::Addi => result!(a!().wrapping_add(uimm!())),
            Act::Slti => result!(u32::from(a!().cast_signed() < imm!())),
            Act::Sltiu => result!(u32::from(a!() < uimm!())),
            Act::Xori => result!(a!() ^ uimm!()),
            Act::Ori => result!(a!() | uimm!()),
            Act::Andi => result!(a!() & uimm!()),
            Act::Slli => result!(a!().wrapping_shl(uimm!())),
            Act::Srli => result!(a!().wrapping_shr(uimm!())),
            Act::Srai => result!(a!().cast_signed().wrapping_shr(uimm!()).cast_unsigned()),
            Act::Add => result!(arithmetic(Op::Add, a!(), b!())),
            Act::Sub => result!(arithmetic(Op::Sub, a!(), b!())),
            Act::Sll => result!(arithmetic(Op::Sll, a!(), b!())),
            Act::Slt => result!(arithmetic(Op::Slt, a!(), b!())),
            Act::Sltu => result!(arithmetic(Op::Sltu, a!(), b!())),
            Act::Xor => result!(arithmetic(Op::Xor, a!(), b!())),
            Act::Srl => result!(arithmetic(Op::Srl, a!(), b!())),
            Act::Sra => result!(arithmetic(Op::Sra, a!(), b!())),
            Act::Or => result!(arithmetic(Op::Or, a!(), b!())),
            Act::And => result!(arithmetic(Op::And, a!(), b!())),
            Act::Mul => result!(arithmetic(Op::Mul, a!(), b!())),
            Act::Mulh => result!(arithmetic(Op::Mulh, a!(), b!())),
            Act::Mulhsu => result!(arithmetic(Op::Mulhsu, a!(), b!())),
            Act::Mulhu => result!(arithmetic(Op::Mulhu, a!(), b!())),
            Act::Div => result!(arithmetic(Op::Div, a!(), b!())),
            Act::Divu => result!(arithmetic(Op::Divu, a!(), b!())),
            Act::Rem => result!(arithmetic(Op::Rem, a!(), b!())),
            Act::Remu => result!(arithmetic(Op::Remu, a!(), b!())),
            Act::Ecall => break Cause::EnvironmentCall,
            Act::Ebreak => break Cause::Breakpoint,
            Act::Nothing => {}
            Act::Read => result_or_none!(word!()),
            Act::Poll => {
                let value = word!();
                if value == 0 {
                    wait!();
                }
                result_or_none!(value);
            }
            Act::Write => word!() = a!(),
            Act::WriteImmediate => word!() = constant!(),
            Act::Post => {
                word!() = a!();
                written!();
            }
            Act::PostImmediate => {
                word!() = constant!();
                written!();
            }
            Act::Queue => {
                if queue.push(a!(), step.place) {
                    written!();
                }
            }
            Act::Csr => {
                let immediate = step.instruction.op.shape() == Shape::CsrImmediate;
                let source = if immediate { constant!() } else { a!() };
                match access(program, csrs, queue, step.instruction, source, now!()) {
                    CsrOutcome::Retired { value, stops } => {
                        result_or_none!(value);
                        if stops {
                            written!();
                        }
                    }
                    CsrOutcome::Wait => wait!(),
                    CsrOutcome::Refused => break Cause::Csr { csr: step.instruction.csr() },
                }
            }
            Act::Illegal => break Cause::Illegal { word: uimm!() },
        }

        if ONE {
            let then = now!().wrapping_add(step.cost.into());
            at += 1;
            leave!(at, then, None);
        }
        at += 1;
        let Some(next) = code.get(at as usize) else {
            let trap = Trap { pc: address!(), cause: Cause::FetchFault };
            leave!(at, clock.wrapping_add(program.sum), Some(Stop::Trap(trap)));
        };
        step = next;
    };
    let trap = Trap { pc: address!(), cause };
    leave!(at, now!(), Some(Stop::Trap(trap)))
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
