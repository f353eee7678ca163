//! Plain instructions do what another implementation does. `tests/vectors.txt` holds what qemu-riscv32 answered; the
//! test program `outside` asks it again.

use std::sync::Arc;

use roci_hart::{CSR_WORDS, Cause, Core, Extensions, Machine, Op, Program, Shape, Stop, Trap, decode};

use crate::support::suite::{MAP, Suite, listing, results, suite};

fn machine() -> Machine {
    let extensions = Extensions { multiply: true, csr: true };
    Machine { memory: MAP, extensions, ..Machine::default() }
}

/// Whether the suite carries the operation out, if it must.
fn covers(names: &[String], op: Op) -> bool {
    match op.shape() {
        Shape::Bare | Shape::Csr | Shape::CsrImmediate | Shape::Illegal => true,
        _ => names.iter().any(|name| name.split(' ').next() == Some(&op.to_string())),
    }
}

fn values(core: &Core, count: usize) -> Vec<u32> {
    (0..count as u32)
        .map(|n| core.memory().load(results() + 4 * n, 4).expect("results are in data"))
        .collect()
}

fn compare(run: impl Fn(&Arc<Program>, &mut Core) -> Stop) {
    let Suite { elf, names } = suite();
    let program = Arc::new(Program::load(&elf, machine()).expect("the file is right"));
    let mut core = Core::new(program.clone());
    let stop = run(&program, &mut core);
    assert!(matches!(stop, Stop::Trap(Trap { cause: Cause::EnvironmentCall, .. })), "{stop:?}");
    let found = listing(&names, &values(&core, names.len()));
    for (found, expected) in found.lines().zip(include_str!("../vectors.txt").lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), include_str!("../vectors.txt").lines().count());
}

#[test]
fn the_interpreter_answers_as_qemu_does() {
    compare(|_, core| core.run(&mut [0; CSR_WORDS], u64::MAX));
}

#[cfg(feature = "translate")]
#[test]
fn the_translator_answers_as_qemu_does() {
    compare(|program, core| {
        let translation =
            roci_hart::Translation::with_limit(program.clone(), 1 << 15).expect("the host is known");
        translation.run(core, &mut [0; CSR_WORDS], u64::MAX)
    });
}

#[test]
fn no_plain_instruction_is_left_out() {
    let names = suite().names;
    let extensions = Extensions { multiply: true, csr: true };
    for word in (0..1 << 15).map(|n: u32| (n & 0x7f) | (n >> 7 & 7) << 12 | (n >> 10) << 25) {
        let op = decode(word, extensions).op;
        assert!(covers(&names, op), "no vector carries out {op}");
    }
}
