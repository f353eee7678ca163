//! One program, two executors.

use std::sync::Arc;

use roci_hart::{Core, Misaligned, Program, Register, Stop, Translation};

use super::program::{MAP, Registers, code, machine};

/// All that a program can change in a core.
pub(crate) fn seen(core: &Core) -> (Vec<u32>, u32, u64, u64, Vec<Option<u32>>) {
    let registers = (0..32).map(|n| core.register(Register::new(n))).collect();
    let memory =
        (MAP.rom..MAP.length()).step_by(4).map(|at| core.memory().load(MAP.origin + at, 4).ok()).collect();
    (registers, core.pc(), core.cycles(), core.retired(), memory)
}

/// Runs the program of `octets` by both executors, and asserts that nothing tells them apart. What traps is stepped
/// over, so that more of the program runs.
pub(crate) fn compare(octets: &[u8], misaligned: Misaligned, budgets: &[u64]) {
    let program = Arc::new(Program::from_words(&code(octets), machine(misaligned)).expect("the code fits"));
    let translation = Translation::new(program.clone()).expect("the host is known");
    let (mut plain, mut fast) = (Core::new(program.clone()), Core::new(program));
    let (mut plain_csrs, mut fast_csrs) = (Registers::new(), Registers::new());
    for &budget in budgets {
        let stop = plain.run(&mut plain_csrs, budget);
        assert_eq!(translation.run(&mut fast, &mut fast_csrs, budget), stop);
        assert_eq!(plain_csrs, fast_csrs);
        assert_eq!(seen(&fast), seen(&plain), "after {stop:?}");
        match stop {
            Stop::Trap(trap) => {
                for core in [&mut plain, &mut fast] {
                    core.set_pc(trap.pc.wrapping_add(4));
                }
            }
            Stop::Waiting { .. } => {
                for (csrs, core) in [(&mut plain_csrs, &mut plain), (&mut fast_csrs, &mut fast)] {
                    csrs.block[4] = 9;
                    if budget & 1 == 0 {
                        core.set_pc(core.pc().wrapping_add(4));
                    }
                }
            }
            Stop::Written { .. } | Stop::Budget => {}
        }
    }
}
