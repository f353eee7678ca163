//! Octets as an ELF file, and octets as a program: loading and checking end with a value, and what the checker admits keeps
//! to its bounds. As a program's file they are taken in whole: by the machine of a NIC's cores, with each side's policy, as
//! `roci program check` does; what is admitted answers each event once and within its bounds, from answer to answer too. The
//! target `hart` does the rest and runs the translator besides, which takes minutes to build.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use roci_control::program::{Side, csr};
use roci_hart::{CSR_WORDS, Core, Machine, Policy, Program, check};

#[path = "../../crates/control/tests/support/bounds.rs"]
mod bounds;
#[path = "../../crates/hart/tests/support/confirm.rs"]
mod confirm;
#[path = "../../crates/hart/tests/support/plain.rs"]
mod plain;
#[path = "../../crates/hart/tests/support/program.rs"]
mod program;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, octets)) = data.split_first() else { return };
    if choice & 3 == 2 {
        if let Ok(program) = Program::load(octets, csr::machine()) {
            let program = Arc::new(program);
            for side in [Side::Rx, Side::Tx] {
                bounds::confirm(&program, side, octets);
            }
            Core::new(program).run(&mut [0; CSR_WORDS], 10_000);
        }
    } else if choice & 1 == 0 {
        if let Ok(program) = Program::load(octets, Machine::default()) {
            let policy = Policy { work_max: 20_000, ..Policy::of(program.machine()) };
            let _ = (program.locate(program.entry()).to_string(), check(&program, &policy));
            Core::new(Arc::new(program)).run(&mut [0; CSR_WORDS], 10_000);
        }
    } else {
        confirm::confirm(octets);
    }
});
