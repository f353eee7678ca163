//! One program, two executors.

use std::sync::Arc;

use roci_hart::{Core, Misaligned, Program, Register, Stop, Translation};

use super::program::{MAP, Registers, code, machine};

/// What a program can change in a core.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    registers: Vec<u32>,
    pc: u32,
    clocks: [u64; 2],
    queue: Vec<u32>,
    memory: Vec<Option<u32>>,
}

/// All that a program can change in a core.
pub(crate) fn seen(core: &Core) -> Seen {
    let registers = (0..32).map(|n| core.register(Register::new(n))).collect();
    let memory =
        (MAP.rom..MAP.length()).step_by(4).map(|at| core.memory().load(MAP.origin + at, 4).ok()).collect();
    let clocks = [core.cycles(), core.retired()];
    Seen { registers, pc: core.pc(), clocks, queue: core.queue().to_vec(), memory }
}

/// Runs the program of `octets` by both executors, and asserts that nothing tells them apart, and, of a translation without
/// dead registers, nothing but registers. What traps is stepped over, so that more of the program runs, but not there: a
/// register that was to be written would then be read all the same.
pub(crate) fn compare(octets: &[u8], misaligned: Misaligned, budgets: &[u64]) {
    for exact in [true, false] {
        compare_with(octets, misaligned, budgets, exact);
    }
}

fn compare_with(octets: &[u8], misaligned: Misaligned, budgets: &[u64], exact: bool) {
    let translate = if exact { Translation::new } else { Translation::without_dead_registers };
    let seen = |core: &Core| {
        let seen = seen(core);
        if exact { seen } else { Seen { registers: Vec::new(), ..seen } }
    };
    let program = Arc::new(Program::from_words(&code(octets), machine(misaligned)).expect("the code fits"));
    let translation = translate(program.clone()).expect("the host is known");
    let (mut plain, mut fast) = (Core::new(program.clone()), Core::new(program));
    let (mut plain_csrs, mut fast_csrs) = (Registers::new(), Registers::new());
    for &budget in budgets {
        let stop = plain.run(&mut plain_csrs, budget);
        assert_eq!(translation.run(&mut fast, &mut fast_csrs, budget), stop);
        assert_eq!(plain_csrs, fast_csrs);
        assert_eq!(seen(&fast), seen(&plain), "after {stop:?}");
        // Sometimes nobody takes what waits there.
        if budget % 3 > 0 {
            plain.empty_queue();
            fast.empty_queue();
        }
        match stop {
            Stop::Trap(_) if !exact => return,
            Stop::Trap(trap) => {
                for core in [&mut plain, &mut fast] {
                    core.set_pc(trap.pc.wrapping_add(4));
                }
            }
            Stop::Waiting { .. } => {
                for (csrs, core) in [(&mut plain_csrs, &mut plain), (&mut fast_csrs, &mut fast)] {
                    csrs.block[4] = 9;
                    if budget & 1 == 0 && exact {
                        core.set_pc(core.pc().wrapping_add(4));
                    }
                }
            }
            Stop::Written { .. } | Stop::Budget => {}
        }
    }
}
