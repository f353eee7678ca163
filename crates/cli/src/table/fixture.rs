//! A run for the tests of tables.

use roci_lab::results::{FlowName, FlowResult, FlowStatus, HostResult, Op, Results, SwitchResult};
use roci_units::{Instant, Span};

/// Two hosts behind one switch, and `flows` flows between them that are done.
pub(super) fn results(flows: u32) -> Results {
    let flow = |n| FlowResult {
        name: FlowName::Numbered { traffic: 0, n },
        src: 0,
        dst: 1,
        op: Op::Write,
        control: 0,
        status: FlowStatus::OK,
        bytes: 1_000_000,
        delivered: 1_000_000,
        start: Instant::ZERO,
        end: Instant::ZERO + Span::from_micros(100),
        ideal: Some(Span::from_micros(80)),
        packets: 977,
        retransmitted: 0,
        repeated: 0,
        timeouts: 0,
        naks: 0,
        rnr_naks: 0,
        cnps: 3,
        ecn_marked: 9,
        reordered: 0,
    };
    let host = |name: &str| HostResult { name: name.to_owned(), ..Default::default() };
    Results {
        name: "small".to_owned(),
        seed: 1,
        simulated: Instant::ZERO + Span::from_micros(100),
        flows: (0..flows).map(flow).collect(),
        hosts: vec![host("a"), host("b")],
        switches: vec![SwitchResult { name: "s0".to_owned(), ecn_marks: 9, ..Default::default() }],
        ..Results::default()
    }
}
