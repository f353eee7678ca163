//! Octets as an ELF file, and octets as a program: loading and checking end with a value, both executors agree, and
//! what the checker admits keeps to its bounds.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use roci_hart::{CSR_WORDS, Core, Machine, Misaligned, Policy, Program, check};

#[path = "../../crates/hart/tests/support/confirm.rs"]
mod confirm;
#[path = "../../crates/hart/tests/support/differential.rs"]
mod differential;
#[path = "../../crates/hart/tests/support/plain.rs"]
mod plain;
#[path = "../../crates/hart/tests/support/program.rs"]
mod program;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, octets)) = data.split_first() else { return };
    match choice & 3 {
        0 => {
            if let Ok(program) = Program::load(octets, Machine::default()) {
                let policy = Policy { work_max: 20_000, ..Policy::of(program.machine()) };
                let _ = (program.locate(program.entry()).to_string(), check(&program, &policy));
                Core::new(Arc::new(program)).run(&mut [0; CSR_WORDS], 10_000);
            }
        }
        1 => {
            confirm::confirm(octets);
        }
        _ => {
            let misaligned = if choice & 4 == 0 { Misaligned::Trap } else { Misaligned::Allow };
            differential::compare(octets, misaligned, &[7, 100, 3, 50, 200, 0, 31, 150]);
        }
    }
});
