//! Instructions that cannot be carried out stop the core, and change nothing.

use std::sync::Arc;

use roci_hart::{
    CSR_WORDS, Cause, Core, Csr, CsrMap, Csrs, DeviceRead, DeviceWrite, Instruction, Machine, MemoryMap,
    Misaligned, OnRead, OnWrite, Op, Program, Register, Stop, Trap,
};

const MAP: MemoryMap = MemoryMap { origin: 0x1_0000, rom: 64, stack: 64, data: 64 };
const A0: Register = Register::new(10);
const A1: Register = Register::new(11);

fn word(op: Op, rd: Register, rs1: Register, rs2: Register, imm: i32) -> u32 {
    Instruction { op, rd, rs1, rs2, imm }.encode()
}

fn machine() -> Machine {
    let csrs = CsrMap::default()
        .with(0x10, Csr::Word { index: 0, read: OnRead::Refuse, write: OnWrite::Store })
        .with(0x11, Csr::Word { index: 1, read: OnRead::Value, write: OnWrite::Refuse })
        .with(0x12, Csr::Device);
    Machine { memory: MAP, csrs, ..Machine::default() }
}

/// The state of a core that has run `code` with `a0` set.
fn run(machine: Machine, a0: u32, code: &[u32]) -> (Stop, Core) {
    let program = Program::from_words(code, machine).expect("the code fits");
    let mut core = Core::new(Arc::new(program));
    core.set_register(A0, a0);
    core.set_register(A1, 0x5555);
    let stop = core.run(&mut [7; CSR_WORDS], 1_000);
    (stop, core)
}

/// Asserts that `instruction` traps, and leaves no trace.
fn assert_traps(machine: Machine, a0: u32, instruction: u32, cause: Cause) {
    let (stop, core) = run(machine, a0, &[instruction]);
    assert_eq!(stop, Stop::Trap(Trap { pc: MAP.origin, cause }));
    assert_eq!((core.pc(), core.cycles(), core.retired()), (MAP.origin, 0, 0));
    assert_eq!((core.register(A0), core.register(A1)), (a0, 0x5555));
}

#[test]
fn loads_and_stores_trap_outside_the_memory() {
    let load = |op| word(op, A1, A0, Register::ZERO, 0);
    let store = |op| word(op, Register::ZERO, A0, A1, 0);
    let end = MAP.origin + MAP.length();
    for address in [0, MAP.origin - 4, end, 0xffff_fffc] {
        for op in [Op::Lb, Op::Lbu, Op::Lh, Op::Lhu, Op::Lw] {
            assert_traps(machine(), address, load(op), Cause::LoadFault { address });
        }
        for op in [Op::Sb, Op::Sh, Op::Sw] {
            assert_traps(machine(), address, store(op), Cause::StoreFault { address });
        }
    }
    for op in [Op::Sb, Op::Sh, Op::Sw] {
        let address = MAP.origin;
        assert_traps(machine(), address, store(op), Cause::StoreFault { address });
    }
}

#[test]
fn misaligned_accesses_trap_or_work_as_configured() {
    let address = MAP.stack_top() + 1;
    let (lw, sw) = (word(Op::Lw, A1, A0, Register::ZERO, 0), word(Op::Sw, Register::ZERO, A0, A1, 0));
    assert_traps(machine(), address, lw, Cause::MisalignedLoad { address });
    assert_traps(machine(), address, sw, Cause::MisalignedStore { address });
    let allow = Machine { misaligned: Misaligned::Allow, ..machine() };
    let (_, core) = run(allow, address, &[sw, word(Op::Lw, A0, A0, Register::ZERO, 0)]);
    assert_eq!(core.register(A0), 0x5555);
    assert_eq!(core.memory().load(address - 1, 4), Ok(0x0055_5500));
}

#[test]
fn jumps_to_misaligned_addresses_trap_at_the_jump() {
    let target = MAP.origin + 6;
    let cause = Cause::MisalignedFetch { target };
    assert_traps(machine(), 0, word(Op::Jal, A1, Register::ZERO, Register::ZERO, 6), cause);
    assert_traps(machine(), target, word(Op::Jalr, A1, A0, Register::ZERO, 0), cause);
    assert_traps(machine(), 0, word(Op::Beq, Register::ZERO, A0, A0, 6), cause);
    // The lowest bit of a computed target is cleared, and an untaken branch goes nowhere.
    let (_, core) = run(machine(), MAP.origin + 9, &[word(Op::Jalr, A1, A0, Register::ZERO, 0)]);
    assert_eq!(core.pc(), MAP.origin + 8);
    let (_, core) = run(machine(), 0, &[word(Op::Bne, Register::ZERO, A0, A0, 6)]);
    assert_eq!(core.pc(), MAP.origin + 4);
}

#[test]
fn running_off_the_code_traps_where_it_ends() {
    let (stop, core) = run(machine(), 0, &[word(Op::Addi, A1, A0, Register::ZERO, 3)]);
    assert_eq!(stop, Stop::Trap(Trap { pc: MAP.origin + 4, cause: Cause::FetchFault }));
    assert_eq!((core.register(A1), core.cycles(), core.retired()), (3, 1, 1));
}

#[test]
fn what_is_no_instruction_traps() {
    let mul = 0x02b5_05b3;
    assert_traps(machine(), 0, mul, Cause::Illegal { word: mul });
    assert_traps(machine(), 0, 0, Cause::Illegal { word: 0 });
    assert_traps(machine(), 0, 0x0000_0073, Cause::EnvironmentCall);
    assert_traps(machine(), 0, 0x0010_0073, Cause::Breakpoint);
}

#[test]
fn a_csr_that_is_absent_or_refuses_traps() {
    let csr = |op, number| word(op, A1, Register::ZERO, Register::ZERO, number);
    assert_traps(machine(), 0, csr(Op::Csrrs, 0x13), Cause::Csr { csr: 0x13 });
    assert_traps(machine(), 0, csr(Op::Csrrs, 0x10), Cause::Csr { csr: 0x10 });
    assert_traps(machine(), 0, csr(Op::Csrrw, 0x11), Cause::Csr { csr: 0x11 });
    // A block of words has no device.
    assert_traps(machine(), 0, csr(Op::Csrrs, 0x12), Cause::Csr { csr: 0x12 });
    // Neither does a swap into x0 read, nor setting no bit write.
    let (_, core) = run(machine(), 0, &[word(Op::Csrrw, Register::ZERO, A0, Register::ZERO, 0x10)]);
    assert_eq!(core.retired(), 1);
    let (_, core) = run(machine(), 0, &[csr(Op::Csrrs, 0x11)]);
    assert_eq!((core.register(A1), core.retired()), (7, 1));
}

/// A device that shows the clock and remembers what it was told.
struct Clock {
    block: [u32; CSR_WORDS],
    told: Option<(u32, u64)>,
}

impl Csrs for Clock {
    fn block(&mut self) -> &mut [u32; CSR_WORDS] {
        &mut self.block
    }

    fn read(&mut self, _number: u16, cycle: u64) -> DeviceRead {
        if cycle < 3 { DeviceRead::Wait } else { DeviceRead::Value(cycle as u32) }
    }

    fn write(&mut self, _number: u16, value: u32, cycle: u64) -> DeviceWrite {
        self.told = Some((value, cycle));
        DeviceWrite::Stop
    }
}

#[test]
fn a_device_sees_the_clock_before_the_instruction() {
    let nop = word(Op::Addi, Register::ZERO, Register::ZERO, Register::ZERO, 0);
    let swap = word(Op::Csrrs, A1, A0, Register::ZERO, 0x12);
    let program = Program::from_words(&[nop, nop, nop, swap, nop, swap], machine()).expect("the code fits");
    let mut core = Core::new(Arc::new(program));
    core.set_register(A0, 0x100);
    let mut clock = Clock { block: [0; CSR_WORDS], told: None };
    assert_eq!(core.run(&mut clock, 1_000), Stop::Written { csr: 0x12 });
    assert_eq!((core.register(A1), clock.told, core.cycles()), (3, Some((0x103, 3)), 5));
    let program = Program::from_words(&[nop, swap], machine()).expect("the code fits");
    let mut core = Core::new(Arc::new(program));
    for _ in 0..2 {
        assert_eq!(core.run(&mut clock, 1_000), Stop::Waiting { csr: 0x12 });
        assert_eq!((core.pc(), core.cycles()), (MAP.origin + 4, 1));
    }
}

#[test]
fn a_stack_that_overflows_meets_the_rom() {
    // sw a1, -4(sp); addi sp, sp, -4; j .-8
    let code = [
        word(Op::Sw, Register::ZERO, Register::SP, A1, -4),
        word(Op::Addi, Register::SP, Register::SP, Register::ZERO, -4),
        word(Op::Jal, Register::ZERO, Register::ZERO, Register::ZERO, -8),
    ];
    let (stop, core) = run(machine(), 0, &code);
    let address = MAP.origin + MAP.rom - 4;
    assert_eq!(stop, Stop::Trap(Trap { pc: MAP.origin, cause: Cause::StoreFault { address } }));
    assert_eq!((core.retired(), core.cycles()), (16 * 3, 16 * 4));
}

#[test]
fn a_budget_ends_a_loop_at_its_head() {
    let code = [
        word(Op::Addi, A0, A0, Register::ZERO, 1),
        word(Op::Jal, Register::ZERO, Register::ZERO, Register::ZERO, -4),
    ];
    let (stop, mut core) = run(machine(), 0, &code);
    assert_eq!((stop, core.pc()), (Stop::Budget, MAP.origin));
    assert_eq!((core.register(A0), core.cycles()), (334, 1_002));
    assert_eq!(core.run(&mut [0; CSR_WORDS], 0), Stop::Budget);
    assert_eq!(core.cycles(), 1_005);
}

#[test]
fn a_register_in_a_slower_place_costs_its_own_cycles() {
    let read = |csr| word(Op::Csrrs, A1, Register::ZERO, Register::ZERO, csr);
    let mut plain = machine();
    plain.csrs = CsrMap::default().with_words(0x10..0x12, 0);
    let mut slow = plain.clone();
    slow.csrs = slow.csrs.with_cost(0x11..0x12, 18);
    let spent = |machine: &Machine, csr| {
        let (_, core) = run(machine.clone(), 0, &[read(csr)]);
        core.cycles()
    };
    assert_eq!(spent(&plain, 0x10), spent(&plain, 0x11));
    assert_eq!(spent(&slow, 0x10), spent(&plain, 0x10));
    assert_eq!(spent(&slow, 0x11), spent(&plain, 0x11) - u64::from(plain.cycles.csr) + 18);
}
