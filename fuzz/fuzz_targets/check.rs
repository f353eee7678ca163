//! Octets as an ELF file, and octets as a program: loading and checking end with a value, and what the checker admits keeps
//! to its bounds. The target `hart` does this and runs the translator besides, which takes minutes to build.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use roci_hart::{CSR_WORDS, Core, Machine, Policy, Program, check};

#[path = "../../crates/hart/tests/support/confirm.rs"]
mod confirm;
#[path = "../../crates/hart/tests/support/program.rs"]
mod program;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, octets)) = data.split_first() else { return };
    if choice & 1 == 0 {
        if let Ok(program) = Program::load(octets, Machine::default()) {
            let policy = Policy { work_max: 20_000, ..Policy::of(program.machine()) };
            let _ = (program.locate(program.entry()).to_string(), check(&program, &policy));
            Core::new(Arc::new(program)).run(&mut [0; CSR_WORDS], 10_000);
        }
    } else {
        confirm::confirm(octets);
    }
});
