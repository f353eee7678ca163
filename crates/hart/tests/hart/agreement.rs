//! The translator agrees with the interpreter.

use std::sync::Arc;

use proptest::prelude::*;
use roci_hart::{
    CSR_WORDS, Core, Csr, CsrMap, Instruction, Machine, MemoryMap, Misaligned, OnRead, OnWrite, Op, Program,
    QUEUE_WORDS, Register, Shape, Stop, TranslateError, Translation,
};

use crate::support::differential::{compare, seen};
use crate::support::program::{MAP, Registers, machine};

proptest! {
    // More by `PROPTEST_CASES`.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(512)))]

    #[test]
    fn random_programs_end_alike(
        octets in prop::collection::vec(any::<[u8; 8]>(), 1..80),
        allow: bool,
        budgets in prop::collection::vec(0u64..200, 1..12),
    ) {
        let misaligned = if allow { Misaligned::Allow } else { Misaligned::Trap };
        compare(octets.as_flattened(), misaligned, &budgets);
    }
}

#[test]
fn a_core_of_another_program_is_interpreted() {
    let program = |word| Arc::new(Program::from_words(&[word], Machine::default()).expect("the code fits"));
    // addi a0, a0, 1, and addi a0, a0, 2
    let (one, two) = (program(0x0015_0513), program(0x0025_0513));
    let translation = Translation::new(one).expect("the host is known");
    let mut core = Core::new(two);
    let stop = translation.run(&mut core, &mut [0; CSR_WORDS], 100);
    assert!(matches!(stop, Stop::Trap(_)), "{stop:?}");
    assert_eq!(core.register(Register::new(10)), 2);
}

/// Translated code checks addresses by itself, so each bound is tried from both sides.
#[test]
fn accesses_at_every_bound_end_alike() {
    let (a0, a1) = (Register::new(10), Register::new(11));
    let ops = [Op::Lb, Op::Lbu, Op::Lh, Op::Lhu, Op::Lw, Op::Sb, Op::Sh, Op::Sw];
    for (op, misaligned) in ops.into_iter().flat_map(|op| [(op, Misaligned::Trap), (op, Misaligned::Allow)]) {
        let (rd, rs2) = if op.shape() == Shape::Load { (a1, Register::ZERO) } else { (Register::ZERO, a1) };
        let word = Instruction { op, rd, rs1: a0, rs2, imm: -4 }.encode();
        let program = Arc::new(Program::from_words(&[word], machine(misaligned)).expect("the code fits"));
        let translation = Translation::new(program.clone()).expect("the host is known");
        let bounds = [0, MAP.origin, MAP.origin + MAP.rom, MAP.stack_top(), MAP.origin + MAP.length()];
        for address in bounds
            .into_iter()
            .flat_map(|bound| (0..24u32).map(move |n| bound.wrapping_add(n).wrapping_sub(12)))
        {
            let [plain, fast] = [false, true].map(|fast| {
                let mut core = Core::new(program.clone());
                core.set_register(a0, address.wrapping_add(4));
                core.set_register(a1, 0x8182_8384);
                let stop = if fast {
                    translation.run(&mut core, &mut Registers::new(), 100)
                } else {
                    core.run(&mut Registers::new(), 100)
                };
                (stop, seen(&core))
            });
            assert_eq!(fast, plain, "{op} at {address:#x}");
        }
    }
}

/// Translated code chooses the lesser or the greater of two without a branch.
#[test]
fn a_branch_over_a_copy_ends_alike_taken_and_not() {
    let registers = [10, 11, 12].map(Register::new);
    let [a, b, _] = registers;
    let ops = [Op::Blt, Op::Bge, Op::Bltu, Op::Bgeu, Op::Beq];
    let values = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    for (op, source, target) in ops.into_iter().flat_map(|op| {
        [a, b].into_iter().flat_map(move |source| registers.map(move |target| (op, source, target)))
    }) {
        let code = [
            Instruction { op, rd: Register::ZERO, rs1: a, rs2: b, imm: 8 },
            Instruction { op: Op::Addi, rd: target, rs1: source, rs2: Register::ZERO, imm: 0 },
            Instruction { op: Op::Add, rd: a, rs1: a, rs2: target, imm: 0 },
        ];
        let code = code.map(|instruction| instruction.encode());
        let program = Arc::new(Program::from_words(&code, machine(Misaligned::Trap)).expect("the code fits"));
        let translation = Translation::new(program.clone()).expect("the host is known");
        for (first, second) in values.into_iter().flat_map(|first| values.map(|second| (first, second))) {
            let [plain, fast] = [false, true].map(|fast| {
                let mut core = Core::new(program.clone());
                for (register, value) in registers.into_iter().zip([first, second, 5]) {
                    core.set_register(register, value);
                }
                let csrs = &mut Registers::new();
                let stop = if fast { translation.run(&mut core, csrs, 100) } else { core.run(csrs, 100) };
                (stop, seen(&core))
            });
            assert_eq!(fast, plain, "{op} of {first:#x} and {second:#x}");
        }
    }
}

/// A program that writes `words` to a register with a queue, for words below 100, and then stops by another.
fn queueing(words: &[u32]) -> Arc<Program> {
    let queue = Csr::Word { index: 1, read: OnRead::Value, write: OnWrite::Queue { below: 100 } };
    let end = Csr::Word { index: 0, read: OnRead::Value, write: OnWrite::StoreAndStop };
    let csrs = CsrMap::default().with(0x801, queue).with(0x800, end);
    let (a0, a1) = (Register::new(10), Register::new(11));
    let code = words.iter().flat_map(|&word| {
        let imm = word.cast_signed();
        let load = Instruction { op: Op::Addi, rd: a0, rs1: Register::ZERO, rs2: Register::ZERO, imm };
        // What is read is the block's word, which no write changes.
        let write = Instruction { op: Op::Csrrw, rd: a1, rs1: a0, rs2: Register::ZERO, imm: 0x801 };
        [load.encode(), write.encode()]
    });
    let stop = Instruction { op: Op::Csrrw, rd: Register::ZERO, rs1: a1, rs2: Register::ZERO, imm: 0x800 };
    let code: Vec<u32> = code.chain([stop.encode()]).collect();
    Arc::new(Program::from_words(&code, Machine { csrs, ..Machine::default() }).expect("the code fits"))
}

/// The register that stopped each run, and what was in the queue then.
fn stops(words: &[u32], translated: bool) -> Vec<(u16, Vec<u32>)> {
    let program = queueing(words);
    let translation = Translation::without_dead_registers(program.clone()).expect("the host is known");
    let (mut core, mut block) = (Core::new(program), [0; CSR_WORDS]);
    block[1] = 77;
    let mut stops = Vec::new();
    loop {
        let stop = if translated {
            translation.run(&mut core, &mut block, 1_000)
        } else {
            core.run(&mut block, 1_000)
        };
        let Stop::Written { csr } = stop else { panic!("{stop:?}") };
        stops.push((csr, core.queue().to_vec()));
        core.empty_queue();
        if csr == 0x800 {
            assert_eq!((block[0], block[1]), (77, 77));
            return stops;
        }
    }
}

#[test]
fn words_wait_in_the_queue_until_the_run_stops() {
    for translated in [false, true] {
        let stops = |words: &[u32]| stops(words, translated);
        assert_eq!(stops(&[5, 6, 99]), [(0x800, vec![5, 6, 99])]);
        // One that is too great stops it at once, as does one that fills the queue.
        assert_eq!(stops(&[5, 100, 6]), [(0x801, vec![5, 100]), (0x800, vec![6])]);
        let many: Vec<u32> = (0..2 + QUEUE_WORDS as u32).collect();
        let (first, rest) = many.split_at(QUEUE_WORDS);
        assert_eq!(stops(&many), [(0x801, first.to_vec()), (0x800, rest.to_vec())]);
    }
}

/// A jump that stands behind the AUIPC of a call can be jumped to by itself, and then goes where another has said.
#[test]
fn registers_are_not_dead_where_a_call_is_entered_in_its_midst() {
    let mailbox = Csr::Word { index: 0, read: OnRead::Value, write: OnWrite::StoreAndStop };
    let csrs = CsrMap::default().with(0x800, mailbox);
    let (a0, ra, zero) = (Register::new(10), Register::new(1), Register::ZERO);
    let word = |op, rd, rs1, imm| Instruction { op, rd, rs1, rs2: zero, imm }.encode();
    let code = [
        word(Op::Addi, a0, zero, 7),
        word(Op::Auipc, ra, zero, 0),
        word(Op::Jal, zero, zero, 12),
        word(Op::Csrrw, zero, a0, 0x800), // where it goes
        word(Op::Auipc, ra, zero, 0),
        word(Op::Jalr, zero, ra, 8),
        word(Op::Addi, a0, zero, 1), // where it would have gone
        word(Op::Csrrw, zero, a0, 0x800),
    ];
    let machine = Machine { csrs, ..Machine::default() };
    let program = Arc::new(Program::from_words(&code, machine).expect("the code fits"));
    let translation = Translation::without_dead_registers(program.clone()).expect("the host is known");
    let (mut core, mut block) = (Core::new(program), [0; CSR_WORDS]);
    let stop = translation.run(&mut core, &mut block, 1_000);
    assert_eq!((stop, block[0]), (Stop::Written { csr: 0x800 }, 7));
}

/// What a copy would be written over is read where the branch passes over it, if by no instruction before it.
#[test]
fn a_register_is_not_dead_before_a_copy_that_is_passed_over() {
    let mailbox = Csr::Word { index: 0, read: OnRead::Value, write: OnWrite::StoreAndStop };
    let csrs = CsrMap::default().with(0x800, mailbox);
    let (a0, a1, a2, zero) = (Register::new(10), Register::new(11), Register::new(12), Register::ZERO);
    let word = |op, rd, rs1, rs2, imm| Instruction { op, rd, rs1, rs2, imm }.encode();
    let code = [
        word(Op::Addi, a2, zero, zero, 7),
        word(Op::Csrrw, zero, zero, zero, 0x800), // where it stops, and is entered again
        word(Op::Bltu, zero, a0, a1, 8),
        word(Op::Addi, a2, a0, zero, 0),
        word(Op::Csrrw, zero, a2, zero, 0x800),
    ];
    let machine = Machine { csrs, ..Machine::default() };
    let program = Arc::new(Program::from_words(&code, machine).expect("the code fits"));
    let translation = Translation::without_dead_registers(program.clone()).expect("the host is known");
    for (first, second, chosen) in [(3, 4, 7), (4, 3, 4)] {
        let (mut core, mut block) = (Core::new(program.clone()), [0; CSR_WORDS]);
        core.set_register(a0, first);
        core.set_register(a1, second);
        for answer in [0, chosen] {
            let stop = translation.run(&mut core, &mut block, 1_000);
            assert_eq!((stop, block[0]), (Stop::Written { csr: 0x800 }, answer));
        }
    }
}

#[test]
fn a_program_too_long_to_translate_is_refused() {
    let memory = MemoryMap { rom: 32 << 10, ..MemoryMap::default() };
    let code = vec![0x0015_0513; 4097];
    let program =
        Program::from_words(&code, Machine { memory, ..Machine::default() }).expect("the code fits");
    let refused = Translation::new(Arc::new(program)).map(|_| ()).expect_err("it is too long");
    assert_eq!(refused, TranslateError::TooLong { instructions: 4097, most: 4096 });
}
