//! What the checker admits under a side's own policy, a core must confirm.

use std::sync::Arc;

use roci_control::program::{Side, csr};
use roci_hart::{CSR_WORDS, Core, Policy, Program, Stop, check};

/// Checks one side of `program` as a NIC does, and if it is admitted, runs it for some events out of `octets` and asserts
/// that each is answered once and within the bounds: from poll to poll, from poll to answer, and from answer to answer.
/// Returns how many events it answered; `None` where it has no such side or is refused.
pub(crate) fn confirm(program: &Arc<Program>, side: Side, octets: &[u8]) -> Option<u32> {
    let policy = Policy { work_max: 200_000, ..side.policy(program, 2_000)? };
    let bounds = check(program, &policy).ok()?;
    assert!(
        bounds.from_answer_to_answer() <= policy.cycles_max && bounds.longest_event() <= policy.cycles_max
    );
    let mut core = Core::new(program.clone());
    core.set_pc(side.start(program)?);
    let mut block = [0; CSR_WORDS];
    let mut octets = octets.iter().cycle();
    // Mostly words with few bits, for programs ask for classes and small numbers.
    let mut word = |n: usize| {
        let octet = octets.next().map_or(0, |&octet| u32::from(octet));
        match octet & 3 {
            0 => octet >> 2,
            1 => 1 << (octet >> 2 & 31),
            _ => octet.wrapping_mul(0x0135_79bd).rotate_left(u32::try_from(n & 31).unwrap_or(0)),
        }
    };
    let (mut since, mut poll, mut last, mut answers, mut answered) = (0, None, None, 0, 0);
    while answered < 40 {
        match core.run(&mut block, 100_000) {
            Stop::Waiting { csr: number } => {
                assert!(policy.polls.contains(&number), "it waits at a register that is none of its polls");
                let bound = poll.map_or(bounds.startup_cycles, |poll| bounds.event_cycles[&poll]);
                let spent = core.cycles() - since;
                assert!(spent <= bound, "{spent} cycles from poll to poll, {bound} proved");
                assert!(poll.is_none() || answers == 1, "{answers} answers of an event");
                (since, poll, answers) = (core.cycles(), Some(core.pc()), 0);
                for (n, place) in block.iter_mut().enumerate() {
                    *place = word(n);
                }
                block[csr::EVENT] = block[csr::EVENT].max(1);
                // The event is there for one read only, so that the next poll waits.
                let stop = core.step(&mut block);
                block[csr::EVENT] = 0;
                if stop.is_some() {
                    break;
                }
            }
            Stop::Written { csr: number } if policy.answers.contains(&number) => {
                block[csr::EVENT] = 0;
                answers += 1;
                if poll.is_some() {
                    let spent = core.cycles() - since;
                    assert!(
                        spent <= bounds.to_answer,
                        "{spent} cycles to the answer, {} proved",
                        bounds.to_answer
                    );
                    let spent = last.map_or(0, |last| core.cycles() - last);
                    let bound = bounds.from_answer_to_answer();
                    assert!(spent <= bound, "{spent} cycles from answer to answer, {bound} proved");
                    (last, answered) = (Some(core.cycles()), answered + 1);
                }
            }
            Stop::Written { .. } => {}
            // An access that was not proved to hit.
            Stop::Trap(_) => break,
            Stop::Budget => panic!("an admitted program goes on for ever"),
        }
    }
    Some(answered)
}
