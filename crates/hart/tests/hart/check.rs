//! What the checker admits runs within its bounds, and what it refuses it names.

use std::sync::Arc;

use proptest::prelude::*;
use roci_hart::{
    Bounds, CSR_WORDS, Core, Csr, CsrMap, Instruction, Kind, Machine, OnRead, OnWrite, Op, Policy, Program,
    Reason, Refused, Register, Shape, Stop, check,
};

const EVENTS: &[u8] = include_bytes!("../images/events.elf");
const LOOPS: &[u8] = include_bytes!("../images/loops.elf");
const ORIGIN: u32 = 0x8000_0000;

fn machine() -> Machine {
    let event = Csr::Word { index: 0, read: OnRead::WaitWhileZero, write: OnWrite::StoreAndStop };
    let fixed = Csr::Word { index: 2, read: OnRead::Value, write: OnWrite::Refuse };
    let csrs = CsrMap::default().with(0x800, event).with_words(0x801..0x802, 1).with(0x802, fixed);
    Machine { csrs, ..Machine::default() }
}

fn events() -> Arc<Program> {
    Arc::new(Program::load(EVENTS, machine()).expect("the image is right"))
}

fn policy(program: &Program, start: &str) -> Policy {
    let start = program.symbol(start).expect("the image has this function");
    Policy { starts: vec![start], ..Policy::of(program.machine()) }
}

fn bounds(start: &str) -> Bounds {
    let program = events();
    check(&program, &policy(&program, start)).unwrap_or_else(|refused| panic!("{start}: {refused}"))
}

/// The cycles that a core takes for each event, from one poll to the next.
fn measured(start: &str, events_in: &[(u32, u32)]) -> Vec<u64> {
    measured_in(&events(), start, events_in)
}

fn measured_in(program: &Arc<Program>, start: &str, events_in: &[(u32, u32)]) -> Vec<u64> {
    let mut core = Core::new(program.clone());
    core.set_pc(program.symbol(start).expect("the image has this function"));
    let mut csrs = [0; CSR_WORDS];
    let waiting = Stop::Waiting { csr: 0x800 };
    assert_eq!(core.run(&mut csrs, 1_000_000), waiting);
    let mut cycles = Vec::new();
    for &(event, word) in events_in {
        let before = core.cycles();
        (csrs[0], csrs[1]) = (event, word);
        assert_eq!(core.run(&mut csrs, 1_000_000), Stop::Written { csr: 0x800 });
        csrs[0] = 0;
        assert_eq!(core.run(&mut csrs, 1_000_000), waiting);
        cycles.push(core.cycles() - before);
    }
    cycles
}

/// Asserts that no event takes longer than the bound, and that the worst of `worst` comes near it.
fn assert_bounds(start: &str, worst: &[(u32, u32)], slack: u64) {
    let bound = bounds(start).longest_event();
    let most = measured(start, worst).into_iter().max().unwrap_or(0);
    assert!((bound - slack..=bound).contains(&most), "{start}: {most} measured, {bound} proved");
}

#[test]
fn bounds_are_what_the_worst_event_takes() {
    assert_bounds("straight", &[(1, 1)], 0);
    assert_bounds("counted", &[(1, 1)], 0);
    assert_bounds("halving", &[(u32::MAX, 1)], 0);
    assert_bounds("bounded", &[(3, 15)], 0);
    assert_bounds("table", &[(7, 0)], 0);
    assert_bounds("calls", &[(1, 0), (6, 9)], 0);
    assert_bounds("remembers", &[(1, 0); 6], 0);
    assert_bounds("waits_below", &[(1, 0)], 0);
}

/// Each loop of the second image with the bound of its event.
const ENDING: [(&str, u64); 20] = [
    ("bitmap", 58),
    ("walk", 94),
    ("pointer", 61),
    ("masked_down", 86),
    ("least_down", 87),
    ("octet_down", 1286),
    ("at_most_20", 106),
    ("counted_down", 85),
    ("signed_down", 105),
    ("if_below", 56),
    ("once_and_again", 65),
    ("capped", 251),
    ("chosen", 57),
    ("least_up", 262),
    ("hundred", 512),
    ("clamped_down", 278),
    ("both_ends", 57),
    ("two_ends", 2476),
    ("by_twos", 306),
    ("counts_on", 229),
];

#[test]
fn loops_that_plainly_end_are_bounded_by_their_longest_way() {
    let program = Arc::new(Program::load(LOOPS, machine()).expect("the image is right"));
    let words = (0..300).chain([4096 * 19, 4096 * 20, 1 << 31, u32::MAX]);
    let worst: Vec<(u32, u32)> =
        words.flat_map(|word| [1, 7, 1 << 31, u32::MAX].map(|event| (event, word))).collect();
    for (start, bound) in ENDING {
        let bounds =
            check(&program, &policy(&program, start)).unwrap_or_else(|refused| panic!("{start}: {refused}"));
        let most = measured_in(&program, start, &worst).into_iter().max().unwrap_or(0);
        // The last of `clamped_down`'s turns does not multiply by the factor that takes longest.
        let slack = if start == "clamped_down" { 2 } else { 0 };
        assert_eq!((bounds.longest_event(), most), (bound, bound - slack), "{start}");
    }
}

#[test]
fn libgccs_division_and_multiplication_are_bounded() {
    let bound = bounds("divides").longest_event();
    let most = measured("divides", &[(u32::MAX, 1), (u32::MAX, 2), (u32::MAX, u32::MAX), (1 << 31, 3)]);
    let most = most.into_iter().max().unwrap_or(0);
    assert!(most <= bound && bound < 2 * most, "{most} measured, {bound} proved");
}

proptest! {
    #[test]
    fn no_event_outlasts_its_bound(events_in in prop::collection::vec((1u32.., any::<u32>()), 1..20)) {
        for start in
            ["straight", "counted", "halving", "bounded", "divides", "table", "calls", "remembers", "waits_below"]
        {
            let bound = bounds(start).longest_event();
            for (cycles, event) in measured(start, &events_in).into_iter().zip(&events_in) {
                prop_assert!(cycles <= bound, "{start} {event:?}: {cycles} measured, {bound} proved");
            }
        }
    }
}

#[test]
fn stack_and_registers_in_use_are_reported() {
    let bounds = bounds("calls");
    assert_eq!(bounds.stack, deepest("calls"));
    assert_eq!(bounds.reads.into_iter().collect::<Vec<_>>(), [0x800]);
    assert_eq!(bounds.writes.into_iter().collect::<Vec<_>>(), [0x800]);
}

/// The octets of stack that a core uses for a few events.
fn deepest(start: &str) -> u32 {
    let program = events();
    let mut core = Core::new(program.clone());
    core.set_pc(program.symbol(start).expect("the image has this function"));
    let top = program.machine().memory.stack_top();
    let mut lowest = top;
    let mut csrs = [1; CSR_WORDS];
    for _ in 0..1_000 {
        core.step(&mut csrs);
        lowest = lowest.min(core.register(Register::SP));
    }
    top - lowest
}

fn refusal(start: &str) -> Refused {
    let program = events();
    check(&program, &policy(&program, start)).expect_err("the program is bad")
}

#[test]
fn what_cannot_be_bounded_is_refused_by_function_and_line() {
    let line_of = |text: &str| {
        let source = include_str!("../images/events.c");
        1 + source.lines().position(|line| line.contains(text)).expect("the source has this line")
    };
    let loop_ = refusal("unbounded");
    assert_eq!(loop_.reason, Reason::LongLoop { cycles: 100_000 });
    let line = line_of("i < turns; i++) __asm__");
    assert!(loop_.place.ends_with(&format!(", events.c:{line})")), "{}", loop_.place);
    assert!(loop_.place.contains("(unbounded+"), "{}", loop_.place);
    let call = refusal("recurses");
    assert_eq!(call.reason, Reason::Recursion { function: "recursive()".to_owned() });
    let line = line_of("recursive(value - 1)");
    assert!(call.place.ends_with(&format!(", events.c:{line})")), "{}", call.place);
}

#[test]
fn an_event_that_takes_too_long_is_refused() {
    let program = events();
    let policy = |cycles_max| Policy { cycles_max, ..policy(&program, "counted") };
    let cycles = bounds("counted").longest_event();
    assert!(check(&program, &policy(cycles)).is_ok());
    let refused = check(&program, &policy(cycles - 1)).expect_err("the limit is too low by one");
    assert_eq!(refused.reason, Reason::TooLong { cycles: cycles - 1 });
    let refused = check(&program, &policy(cycles / 2)).expect_err("the limit is too low");
    assert_eq!(refused.reason, Reason::LongLoop { cycles: cycles / 2 });
}

const A0: Register = Register::new(10);
const A1: Register = Register::new(11);
const X0: Register = Register::ZERO;
const T0: Register = Register::new(5);

fn word(op: Op, rd: Register, rs1: Register, rs2: Register, imm: i32) -> u32 {
    Instruction { op, rd, rs1, rs2, imm }.encode()
}

/// `csrr a0, 0x800`
fn poll() -> u32 {
    word(Op::Csrrs, A0, X0, X0, 0x800)
}

fn jump(distance: i32) -> u32 {
    word(Op::Jal, X0, X0, X0, distance)
}

/// Checks that a loop of a poll and `body` is refused at instruction `at` of the body.
fn assert_refused(body: &[u32], at: u32, reason: Reason) {
    let mut code = vec![poll()];
    code.extend(body);
    code.push(jump(-4 * i32::try_from(code.len()).expect("the body is short")));
    let program = Program::from_words(&code, machine()).expect("the code fits");
    let refused = check(&program, &Policy::of(program.machine())).expect_err("the program is bad");
    assert_eq!((refused.reason, refused.address), (reason, ORIGIN + 4 + 4 * at));
}

#[test]
fn bad_instructions_are_refused_where_they_stand() {
    let nop = word(Op::Addi, X0, X0, X0, 0);
    let mul = word(Op::Mul, A0, A0, A0, 0);
    assert_refused(&[nop, 0], 1, Reason::Illegal { word: 0 });
    assert_refused(&[mul], 0, Reason::Illegal { word: mul });
    assert_refused(&[word(Op::Ecall, X0, X0, X0, 0)], 0, Reason::EnvironmentCall);
    assert_refused(&[word(Op::Ebreak, X0, X0, X0, 0)], 0, Reason::Breakpoint);
    assert_refused(&[word(Op::Csrrs, A0, X0, X0, 0x300)], 0, Reason::NoCsr { csr: 0x300 });
    assert_refused(&[word(Op::Csrrw, X0, A0, X0, 0x802)], 0, Reason::CsrWrite { csr: 0x802 });
    assert_refused(&[jump(6)], 0, Reason::MisalignedJump { target: ORIGIN + 10 });
    assert_refused(&[jump(0x400)], 0, Reason::NoCode { target: ORIGIN + 0x404 });
    assert_refused(&[jump(0)], 0, Reason::EndlessLoop);
    assert_refused(&[word(Op::Jalr, X0, A0, X0, 0)], 0, Reason::ComputedJump);
    assert_refused(&[word(Op::Jalr, X0, Register::RA, X0, 0)], 0, Reason::ReturnToNowhere);
    assert_refused(&[word(Op::Jalr, X0, T0, X0, 0)], 0, Reason::ComputedJump);
}

#[test]
fn a_jump_through_t0_is_a_return_only_where_a_call_left_its_way_back_there() {
    let code = |link| [poll(), word(Op::Jal, link, X0, X0, 8), jump(-8), word(Op::Jalr, X0, T0, X0, 0)];
    let program = |link| Program::from_words(&code(link), machine()).expect("the code fits");
    let called = program(T0);
    let bounds = check(&called, &Policy::of(called.machine())).expect("the program is right");
    assert_eq!(bounds.longest_event(), 2 + 2 + 2 + 2);
    let computed = program(Register::RA);
    let refused = check(&computed, &Policy::of(computed.machine())).expect_err("the program is bad");
    assert_eq!((refused.reason, refused.address), (Reason::ComputedJump, ORIGIN + 12));
    assert_eq!(refused.calls, [ORIGIN + 4]);
}

/// Functions of which each calls the one before it twice; the first waits for an event and answers it. With each call a
/// function of its own, there is a poll for every two calls.
fn doubling(depth: usize) -> (Vec<u32>, u32) {
    let (sp, ra) = (Register::SP, Register::RA);
    let call = |from: usize, to: usize| {
        let distance = 4 * (i32::try_from(to).expect("few") - i32::try_from(from).expect("few"));
        word(Op::Jal, ra, X0, X0, distance)
    };
    let (answer, back) = (word(Op::Csrrw, X0, A0, X0, 0x800), word(Op::Jalr, X0, ra, X0, 0));
    let mut code = vec![poll(), answer, back];
    let mut last = 0;
    for _ in 0..depth {
        let here = code.len();
        code.extend([word(Op::Addi, sp, sp, X0, -16), word(Op::Sw, X0, sp, ra, 12)]);
        code.extend([call(here + 2, last), call(here + 3, last)]);
        code.extend([word(Op::Lw, ra, sp, X0, 12), word(Op::Addi, sp, sp, X0, 16), back]);
        last = here;
    }
    let start = code.len();
    code.extend([call(start, last), jump(-4)]);
    (code, ORIGIN + 4 * u32::try_from(start).expect("few"))
}

#[test]
fn a_program_that_waits_in_thousands_of_places_is_bounded_at_each() {
    const DEPTH: usize = 13;
    let (code, start) = doubling(DEPTH);
    let program = Arc::new(Program::from_words(&code, machine()).expect("the code fits"));
    let policy = Policy { starts: vec![start], ..Policy::of(program.machine()) };
    let bounds = check(&program, &policy).expect("each event ends");
    let mut core = Core::new(program);
    core.set_pc(start);
    let (mut csrs, mut most) = ([0; CSR_WORDS], 0);
    assert_eq!(core.run(&mut csrs, 1_000), Stop::Waiting { csr: 0x800 });
    assert_eq!(core.cycles(), bounds.startup_cycles);
    for _ in 0..1 << DEPTH {
        let before = core.cycles();
        csrs[0] = 1;
        assert_eq!(core.run(&mut csrs, 1_000), Stop::Written { csr: 0x800 });
        csrs[0] = 0;
        assert_eq!(core.run(&mut csrs, 1_000), Stop::Waiting { csr: 0x800 });
        most = most.max(core.cycles() - before);
    }
    assert_eq!(most, bounds.longest_event());
    assert_eq!(bounds.stack, 16 * u32::try_from(DEPTH).expect("few"));
}

#[test]
fn a_bad_instruction_that_no_event_reaches_is_no_matter() {
    // csrr a0, 0x800 gives no zero: beqz a0, .+8; j .+8; ebreak
    let code = [poll(), word(Op::Beq, X0, A0, X0, 8), jump(-8), word(Op::Ebreak, X0, X0, X0, 0)];
    let program = Program::from_words(&code, machine()).expect("the code fits");
    assert_eq!(check(&program, &Policy::of(program.machine())).map(|bounds| bounds.longest_event()), Ok(5));
}

#[test]
fn a_kind_of_event_has_a_bound_of_its_own_until_the_program_writes_what_tells_it() {
    let longer = [word(Op::Addi, A1, X0, X0, 1); 10];
    let read = word(Op::Csrrs, A0, X0, X0, 0x801);
    let skip = word(Op::Beq, X0, A0, X0, 4 * 11);
    let write = word(Op::Csrrw, X0, A0, X0, 0x801);
    let bounds = |before: &[u32]| {
        let mut code = vec![poll()];
        code.extend(before);
        code.extend([read, skip]);
        code.extend(longer);
        code.push(jump(-4 * i32::try_from(code.len()).expect("the body is short")));
        let program = Program::from_words(&code, machine()).expect("the code fits");
        let kinds = vec![Kind::from([(0x801, 0)]), Kind::from([(0x801, 1)])];
        let policy = Policy { kinds, ..Policy::of(program.machine()) };
        check(&program, &policy).expect("the program is right").kind_cycles
    };
    assert_eq!(bounds(&[]), [2 + 2 + 2 + 2, 2 + 2 + 1 + 10 + 2]);
    // What the poll gave is not zero: after the write, the register cannot be either.
    assert_eq!(bounds(&[write]), [2 + 2 + 2 + 1 + 10 + 2; 2]);
}

#[test]
fn accesses_that_can_only_trap_are_refused() {
    let upper = |imm| word(Op::Lui, A1, X0, X0, imm);
    let store = |imm| word(Op::Sw, X0, A1, A0, imm);
    let load = |imm| word(Op::Lw, A0, A1, X0, imm);
    let rom = ORIGIN.cast_signed();
    assert_refused(&[upper(rom), store(16)], 1, Reason::StoreToRom { address: ORIGIN + 16 });
    assert_refused(&[upper(0x1000), store(0)], 1, Reason::StoreOutside { address: 0x1000 });
    assert_refused(&[upper(0x1000), load(4)], 1, Reason::LoadOutside { address: 0x1004 });
    assert_refused(&[upper(rom), load(2)], 1, Reason::MisalignedAccess { address: ORIGIN + 2 });
    // An octet of the event added to an address outside the memory stays there.
    let masked = [upper(0x1000), word(Op::Andi, A0, A0, X0, 0xff), word(Op::Add, A1, A1, A0, 0), store(0)];
    assert_refused(&masked, 3, Reason::StoreOutside { address: 0x1000 });
}

#[test]
fn a_stack_that_is_too_deep_or_unknown_is_refused() {
    let sp = Register::SP;
    let deep = [word(Op::Lui, A1, X0, X0, 0x2000), word(Op::Sub, sp, sp, A1, 0), word(Op::Sw, X0, sp, A0, 0)];
    assert_refused(&deep, 1, Reason::StackOverflow { octets: 0x2000, available: 0x1000 });
    let unknown = [word(Op::Sub, sp, sp, A0, 0), word(Op::Sw, X0, sp, A0, 0)];
    assert_refused(&unknown, 0, Reason::StackPointer);
    // An array of variable length, which is reached by way of another register.
    let variable = [word(Op::Sub, sp, sp, A0, 0), word(Op::Addi, A1, sp, X0, 0), word(Op::Sw, X0, A1, A0, 0)];
    assert_refused(&variable, 0, Reason::StackPointer);
    // An event that leaves the stack deeper than it found it: sooner or later it is too deep.
    let leaks = [word(Op::Addi, sp, sp, X0, -16), word(Op::Sw, X0, sp, A0, 0)];
    assert_refused(&leaks, 0, Reason::StackPointer);
}

#[test]
fn what_is_stored_below_the_stack_pointer_counts_as_stack() {
    let code = [poll(), word(Op::Sw, X0, Register::SP, A0, -64), jump(-8)];
    let program = Program::from_words(&code, machine()).expect("the code fits");
    let bounds = check(&program, &Policy::of(program.machine())).expect("the program is right");
    assert_eq!(bounds.stack, 64);
}

#[test]
fn what_events_write_to_data_and_loads_that_may_miss_are_told() {
    let data = machine().memory.stack_top();
    let upper = word(Op::Lui, A1, X0, X0, data.cast_signed());
    let code = [
        poll(),
        upper,
        word(Op::Sw, X0, A1, A0, 8),
        word(Op::Andi, A0, A0, X0, 12),
        word(Op::Add, A1, A1, A0, 0),
        word(Op::Sw, X0, A1, A0, 16),
        jump(-24),
    ];
    let told = |code: &[u32]| {
        let program = Program::from_words(code, machine()).expect("the code fits");
        check(&program, &Policy::of(program.machine())).expect("the program is right")
    };
    let bounds = told(&code);
    assert_eq!(
        bounds.data_stores.into_iter().collect::<Vec<_>>(),
        [(ORIGIN + 8, (data + 8, data + 12)), (ORIGIN + 20, (data + 16, data + 32))]
    );
    assert!(bounds.stray_loads.is_empty());
    let bounds = told(&[poll(), word(Op::Lw, A1, A0, X0, 0), jump(-8)]);
    assert_eq!(bounds.stray_loads.into_iter().collect::<Vec<_>>(), [(ORIGIN + 4, (1, u32::MAX))]);
}

#[test]
fn a_return_address_that_may_be_overwritten_is_not_believed() {
    let (sp, ra) = (Register::SP, Register::RA);
    // The function saves its return address, stores to an address from the event, and returns.
    let code = [
        poll(),
        word(Op::Jal, ra, X0, X0, 8),
        jump(-8),
        word(Op::Addi, sp, sp, X0, -16),
        word(Op::Sw, X0, sp, ra, 12),
        word(Op::Sw, X0, A0, A0, 0),
        word(Op::Lw, ra, sp, X0, 12),
        word(Op::Addi, sp, sp, X0, 16),
        word(Op::Jalr, X0, ra, X0, 0),
    ];
    let program = Program::from_words(&code, machine()).expect("the code fits");
    let refused = check(&program, &Policy::of(program.machine())).expect_err("the program is bad");
    assert_eq!(refused.address, ORIGIN + 32);
    assert_eq!(refused.reason, Reason::UnprovedReturn { blur: Some("0x80000014".to_owned()) });
    assert!(refused.to_string().contains("the store at 0x80000014 may overwrite"), "{refused}");
    // Without that store it is admitted.
    let mut code = code;
    code[5] = word(Op::Addi, X0, X0, X0, 0);
    let program = Program::from_words(&code, machine()).expect("the code fits");
    let bounds = check(&program, &Policy::of(program.machine())).expect("the program is right");
    assert_eq!((bounds.longest_event(), bounds.stack), (2 + 2 + 1 + 1 + 1 + 2 + 1 + 2 + 2, 16));
}

#[test]
fn a_program_may_use_only_what_its_policy_allows() {
    let program = events();
    let mut policy = policy(&program, "straight");
    policy.readable.remove(&0x801);
    let refused = check(&program, &policy).expect_err("it reads that register");
    assert_eq!(refused.reason, Reason::CsrRead { csr: 0x801 });
}

/// An event's body from random octets, without jumps backwards, in a loop of `turns` turns between poll and post.
fn random_event(octets: &[[u8; 8]], turns: i32) -> Vec<u32> {
    let counter = Register::new(9);
    let all = roci_hart::Extensions { multiply: true, csr: true };
    let mut body: Vec<u32> = Vec::new();
    for (&octets, left) in octets.iter().zip((1..=octets.len()).rev()) {
        let mut instruction = roci_hart::decode(crate::support::program::word(octets), all);
        // At most to behind the last.
        let ahead = 1 + i32::try_from(usize::from(octets[7]) % left).unwrap_or(0);
        match instruction.op.shape() {
            Shape::Branch => instruction.imm = 4 * ahead,
            Shape::Jump => (instruction.imm, instruction.rd) = (4 * ahead, X0),
            Shape::Load | Shape::Store => {
                let place = instruction.imm.unsigned_abs() % 64 * 4;
                (instruction.rs1, instruction.imm) = (Register::SP, -4 - i32::try_from(place).unwrap_or(0));
            }
            Shape::Upper | Shape::Immediate | Shape::Register => {}
            _ => instruction = Instruction { op: Op::Csrrs, rd: A0, rs1: X0, rs2: X0, imm: 0x801 },
        }
        if [Some(Register::SP), Some(counter)].contains(&instruction.destination()) {
            instruction.rd = A1;
        }
        body.push(instruction.encode());
    }
    let length = i32::try_from(body.len()).expect("the body is short");
    let mut code = vec![poll(), word(Op::Addi, counter, X0, X0, turns)];
    code.extend(body);
    code.push(word(Op::Addi, counter, counter, X0, -1));
    code.push(word(Op::Bne, X0, counter, X0, -4 * (length + 1)));
    code.push(word(Op::Csrrwi, X0, Register::new(1), X0, 0x800));
    code.push(jump(-4 * (length + 5)));
    code
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_events_keep_to_their_bounds(
        octets in prop::collection::vec(any::<[u8; 8]>(), 1..30),
        turns in 1..20,
        words in prop::collection::vec(any::<u32>(), 1..10),
    ) {
        let extensions = roci_hart::Extensions { multiply: true, csr: true };
        let code = random_event(&octets, turns);
        let program = Arc::new(Program::from_words(&code, Machine { extensions, ..machine() }).expect("it fits"));
        let kinds: Vec<Kind> = words.iter().map(|&word| Kind::from([(0x800, word.max(1)), (0x801, word)])).collect();
        let policy = Policy { kinds, valid: Some((1, 4)), ..Policy::of(program.machine()) };
        let bounds = check(&program, &policy).unwrap_or_else(|refused| panic!("{refused}"));
        let mut core = Core::new(program);
        let mut csrs = [0; CSR_WORDS];
        let mut answered = 0;
        for (at, word) in words.into_iter().enumerate() {
            let of_kind = bounds.kind_cycles[at];
            prop_assert_eq!(core.run(&mut csrs, 1_000_000), Stop::Waiting { csr: 0x800 });
            let before = core.cycles();
            (csrs[0], csrs[1]) = (word.max(1), word);
            prop_assert_eq!(core.run(&mut csrs, 1_000_000), Stop::Written { csr: 0x800 });
            let wrong = &bounds.kind_wrong[at];
            prop_assert!(wrong.values().all(|(low, high)| (low..=high).contains(&&csrs[0]) && !(1..=4).contains(&csrs[0])));
            csrs[0] = 0;
            let to_answer = bounds.after_answer + bounds.kind_answers[at];
            prop_assert!(at == 0 || core.cycles() - answered <= to_answer);
            answered = core.cycles();
            prop_assert_eq!(core.run(&mut csrs, 1_000_000), Stop::Waiting { csr: 0x800 });
            let spent = core.cycles() - before;
            prop_assert!(of_kind <= bounds.longest_event());
            prop_assert!(spent <= of_kind, "{spent} cycles, {of_kind} proved");
        }
    }

    #[test]
    fn the_limit_is_from_answer_to_answer(
        octets in prop::collection::vec(any::<[u8; 8]>(), 1..30),
        turns in 1..20,
        after in 0usize..40,
    ) {
        // The event of `random_event`, with so many instructions between its answer and the next poll.
        let mut code = random_event(&octets, turns);
        let back = code.pop().expect("a jump");
        let distance = code.len();
        code.extend(std::iter::repeat_n(word(Op::Addi, X0, X0, X0, 0), after));
        code.push(jump(-4 * i32::try_from(distance + after).expect("few")));
        prop_assert_eq!(back, jump(-4 * i32::try_from(distance).expect("few")));
        let extensions = roci_hart::Extensions { multiply: true, csr: true };
        let program = Arc::new(Program::from_words(&code, Machine { extensions, ..machine() }).expect("it fits"));
        let policy = Policy { answers_once: true, ..Policy::of(program.machine()) };
        let bounds = check(&program, &policy).unwrap_or_else(|refused| panic!("{refused}"));
        let bound = bounds.from_answer_to_answer();
        prop_assert!(bound >= bounds.longest_event() && bound > bounds.to_answer);
        let within = |cycles_max| check(&program, &Policy { cycles_max, ..policy.clone() });
        prop_assert!(within(bound).is_ok());
        prop_assert!(within(bound - 1).is_err());
        // A core that is stopped where it has used up the bound gets every answer out.
        let mut core = Core::new(program);
        let mut csrs = [0; CSR_WORDS];
        prop_assert_eq!(core.run(&mut csrs, 1_000_000), Stop::Waiting { csr: 0x800 });
        for _ in 0..5 {
            csrs[0] = 1;
            let before = core.cycles();
            prop_assert_eq!(core.run(&mut csrs, bound), Stop::Written { csr: 0x800 });
            prop_assert!(core.cycles() - before <= bound);
            csrs[0] = 0;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// Few are admitted, but none makes the checker panic.
    #[test]
    fn random_programs_are_refused_or_keep_to_their_bounds(octets in prop::collection::vec(any::<[u8; 8]>(), 1..40)) {
        crate::support::confirm::confirm(octets.as_flattened());
    }
}
