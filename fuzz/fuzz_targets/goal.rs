//! Arbitrary files as GOAL schedules, text and binary: nothing panics, a schedule has no more than its file, and what is read has queue
//! pairs for all that is sent, and for its collectives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_fabric::packet::HostId;
use roci_lab::traffic::collective::Algorithm;
use roci_lab::traffic::goal::{Does, Goal, How, Schedule};
use roci_lab::traffic::spec::{Common, Op};
use std::sync::Arc;

fuzz_target!(|input: &[u8]| {
    let Ok(schedule) = Schedule::read(input) else { return };
    assert!(schedule.operations() <= input.len() as u64, "operations that nobody wrote");
    let mut waits = 0;
    for rank in &schedule.ranks {
        let operations = (0..).zip(rank.operations());
        let edges: usize = operations.map(|(number, _)| rank.edges(number).count()).sum();
        let needs: u64 = rank.operations().iter().map(|operation| u64::from(operation.needs)).sum();
        assert_eq!(needs, edges as u64, "each waits for those that tell it");
        waits += edges;
    }
    assert!(waits <= input.len(), "waiting that nobody wrote");
    let ranks = u16::try_from(schedule.ranks.len()).expect("as many as there may be hosts");
    let hosts = (0..ranks).map(HostId).collect();
    let common = Common { op: Op::Write, priority: None, control: None };
    let mut goal = Goal::new(Arc::new(schedule), hosts, input.len() % 2 == 0, common).expect("each has a host");
    let mut sent = 0;
    for (from, rank) in (0..).zip(&goal.schedule.ranks) {
        for operation in rank.operations() {
            if let Does::Send { to, tag, .. } = operation.does
                && to != from
            {
                assert!(goal.line(from, to, tag).is_some(), "a message without a queue pair");
                sent += 1;
            }
        }
    }
    assert_eq!(goal.lines().iter().map(|line| line.messages).sum::<u64>(), sent);
    let how = How {
        algorithms: [("all-reduce", Algorithm::Tree), ("all-to-all", Algorithm::Pxn)].into_iter().collect(),
        per_server: 1 + input.len() as u32 % 3,
        chunks: Some(2),
        ..How::default()
    };
    // What is too large is refused.
    if goal.set_how(&how).is_err() {
        return;
    }
    for number in (0..).take(goal.schedule.joint.len()) {
        let Some((_, way)) = goal.way(number) else { continue };
        let line = way.line(0, 0);
        assert!(goal.is_joint(line) && goal.lines()[line as usize].messages > 0, "a queue pair that carries nothing");
    }
});
