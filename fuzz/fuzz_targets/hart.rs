//! Octets as an ELF file, and octets as a program: loading and checking end with a value, both executors agree, and
//! what the checker admits keeps to its bounds.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use roci_hart::{Core, Machine, MemoryMap, Misaligned, Policy, Program, Stop, check};

#[path = "../../crates/hart/tests/support/differential.rs"]
mod differential;
#[path = "../../crates/hart/tests/support/program.rs"]
mod program;

use program::{MAP, Registers, code, machine};

/// What the checker admits, an executor must confirm.
fn confirm(octets: &[u8]) {
    let program = Arc::new(Program::from_words(&code(octets), machine(Misaligned::Trap)).expect("the code fits"));
    let policy = Policy { cycles_max: 2_000, work_max: 20_000, ..Policy::of(program.machine()) };
    let Ok(bounds) = check(&program, &policy) else { return };
    let mut core = Core::new(program.clone());
    let mut csrs = Registers::new();
    csrs.block[4] = 0;
    let (mut since, mut poll) = (0, None);
    for _ in 0..40 {
        // Budgets are looked at on backward jumps only, so this one never ends a run that keeps to its bound.
        match core.run(&mut csrs, 10_000) {
            Stop::Waiting { csr: 0x804 } => {
                let bound = poll.map_or(bounds.startup_cycles, |poll| bounds.event_cycles[&poll]);
                let spent = core.cycles() - since;
                assert!(spent <= bound, "{spent} cycles, {bound} proved");
                assert!(core.register(roci_hart::Register::SP) >= MAP.stack_top() - bounds.stack);
                (since, poll) = (core.cycles(), Some(core.pc()));
                csrs.block[4] = 0x1234_5678;
                // The event is taken by the read; the next poll waits.
                if core.step(&mut csrs).is_some() {
                    return;
                }
                csrs.block[4] = 0;
            }
            Stop::Written { .. } => csrs.block[4] = 0,
            // A device that waits or refuses, or an access that could not be proved to hit.
            Stop::Waiting { .. } | Stop::Trap(_) => return,
            Stop::Budget => panic!("an admitted program goes on for ever"),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, octets)) = data.split_first() else { return };
    match choice & 3 {
        0 => {
            let memory = MemoryMap::default();
            if let Ok(program) = Program::load(octets, Machine { memory, ..Machine::default() }) {
                let policy = Policy { work_max: 20_000, ..Policy::of(program.machine()) };
                let _ = (program.locate(program.entry()).to_string(), check(&program, &policy));
                Core::new(Arc::new(program)).run(&mut [0; roci_hart::CSR_WORDS], 10_000);
            }
        }
        1 => confirm(octets),
        _ => {
            let misaligned = if choice & 4 == 0 { Misaligned::Trap } else { Misaligned::Allow };
            differential::compare(octets, misaligned, &[7, 100, 3, 50, 200, 0, 31, 150]);
        }
    }
});
