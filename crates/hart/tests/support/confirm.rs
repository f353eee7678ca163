//! What the checker admits, an executor must confirm.

use std::sync::Arc;

use roci_hart::{Core, Misaligned, Policy, Program, Stop, check};

use super::program::{Registers, code, machine};

/// Checks the program of `octets`, and if it is admitted, runs it for some events and asserts that it keeps to its
/// bounds. Returns whether it was admitted.
pub(crate) fn confirm(octets: &[u8]) -> bool {
    let program =
        Arc::new(Program::from_words(&code(octets), machine(Misaligned::Trap)).expect("the code fits"));
    let policy = Policy { cycles_max: 2_000, work_max: 20_000, ..Policy::of(program.machine()) };
    let Ok(bounds) = check(&program, &policy) else { return false };
    let mut core = Core::new(program);
    let mut csrs = Registers::new();
    csrs.block[4] = 0;
    let (mut since, mut poll) = (0, None);
    for _ in 0..40 {
        match core.run(&mut csrs, 10_000) {
            Stop::Waiting { csr: 0x804 } => {
                let bound = poll.map_or(bounds.startup_cycles, |poll| bounds.event_cycles[&poll]);
                let spent = core.cycles() - since;
                assert!(spent <= bound, "{spent} cycles, {bound} proved");
                (since, poll) = (core.cycles(), Some(core.pc()));
                // The event is there for one read only, so that the next poll waits.
                csrs.block[4] = 0x1234_5678;
                let stop = core.step(&mut csrs);
                csrs.block[4] = 0;
                if stop.is_some() {
                    break;
                }
            }
            Stop::Written { .. } => csrs.block[4] = 0,
            // A device that waits or refuses, or an access that was not proved to hit.
            Stop::Waiting { .. } | Stop::Trap(_) => break,
            Stop::Budget => panic!("an admitted program goes on for ever"),
        }
    }
    true
}
