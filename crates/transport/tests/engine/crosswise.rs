//! Seeds that draw requests of both sides at once, on several queue pairs, under a law or none, with few retries or many: whatever is
//! lost, each ends exactly once and in order, and who fails fails of one request.

use crate::pair::{ALL_DEFERRED, Chance, Client, Fate, Packet, Pair, Server, Side};
use crate::scripts::request;
use proptest::prelude::*;
use roci_control::Law;
use roci_transport::{
    Access, Change, Completion, CompletionKind, Deferred, Engine, EngineConfig, Operation, QpConfig, QpState,
    Recovery, SendRequest, Status, Tail, Transition,
};
use roci_units::{BitsPerSec, Psn, Span};
use roci_wire::Layout;

/// What a run is drawn from.
#[derive(Clone, Copy, Debug)]
struct Draw {
    seed: u64,
    recovery: usize,
    law: usize,
    late: bool,
    deferred: bool,
    qps: u32,
    /// Faults of one packet in 64.
    faults: u64,
    retry: u8,
    rnr_retry: u8,
    operations: u64,
}

/// The recovery programs, each with a layout that it may have; Homa's brings its law.
const RECOVERIES: [(Recovery, Layout); 10] = [
    (Recovery::GoBackN, Layout::Standard),
    (Recovery::Irn, Layout::Irn),
    (Recovery::Srnic, Layout::Srnic),
    (Recovery::Reno, Layout::Irn),
    (Recovery::NewReno, Layout::Irn),
    (Recovery::Sack, Layout::Irn),
    (Recovery::Sack, Layout::Srnic),
    (Recovery::Ndp, Layout::Ndp),
    (Recovery::GoBackN, Layout::Homa),
    (Recovery::Irn, Layout::Homa),
];
/// The laws where neither recovery nor layout asks for one. Their round trips are those of this wire.
const LAWS: [(&str, &[(&str, &str)]); 7] = [
    ("none", &[]),
    ("dcqcn", &[("cnp_gap", "5us")]),
    ("timely", &[("t_low", "3us"), ("t_high", "20us"), ("min_rtt", "2us")]),
    ("dctcp", &[("first_window", "3KB"), ("base_rtt", "3us")]),
    ("theta-powertcp", &[("base_rtt", "3us")]),
    ("swift", &[("base_target", "4us"), ("min_cwnd", "0.1")]),
    ("nscc", &[("base_rtt", "3us"), ("target", "2us")]),
];
/// As in `wander`: more than this, and eight losses one after the other are a chance.
const FEW_FAULTS: u64 = 4;
/// Each request has its own region at either side, those of the server behind those of the client.
const ROOM: u64 = 8192;
const SERVERS: u64 = 60;
/// Where atomics count, two for each queue pair, at the side that they are for.
const COUNTERS: u64 = 127 * ROOM;

/// What was posted on one queue pair of one side.
#[derive(Clone, Debug, Default)]
struct Posted {
    requests: Vec<(u64, Operation, u32)>,
    adds: u64,
    swaps: u64,
}

impl Posted {
    /// The requests that take a receive at the other side, by name.
    fn receives(&self) -> Vec<u64> {
        let takes = |operation: &Operation| {
            matches!(operation, Operation::Send(_) | Operation::Write { tail: Tail::Immediate(_), .. })
        };
        self.requests.iter().filter(|posted| takes(&posted.1)).map(|posted| posted.0).collect()
    }
}

fn engine(draw: Draw, salt: u64) -> Engine {
    let link = BitsPerSec::from_gbps(10);
    let mut engine = Engine::new(EngineConfig { seed: draw.seed + salt, link, ..EngineConfig::default() });
    let (recovery, layout) = RECOVERIES[draw.recovery];
    let (name, settings): (&str, &[(&str, &str)]) = if layout == Layout::Homa {
        ("homa", &[("unscheduled", "1500B"), ("resend", "50us"), ("overcommit", "1")])
    } else if recovery == Recovery::Ndp {
        ("ndp", &[("initial_window", "3"), ("patience", "200us")])
    } else {
        LAWS[draw.law]
    };
    engine.add_law(Law::from_settings(name, settings, link).unwrap());
    engine
}

/// A request of `side` named `id` on queue pair `qp`, and its length.
fn draw_request(
    pair: &mut Pair,
    chance: &mut Chance,
    mtu: u16,
    side: Side,
    qp: usize,
    posted: &mut Posted,
    id: u64,
) {
    let at = id * ROOM;
    let other = if side == Client { Server } else { Client };
    let peer = pair.node(other);
    let rkey = peer.key;
    let length = chance.below(ROOM.min(u64::from(mtu) * 5)) as u32;
    let length = if chance.below(8) == 0 { 0 } else { length };
    let counter = COUNTERS + 16 * qp as u64;
    let (operation, length) = match chance.below(8) {
        0 => (Operation::Write { va: at, rkey, tail: Tail::Plain }, length),
        1 => (Operation::Write { va: at, rkey, tail: Tail::Immediate(id as u32) }, length),
        2 => (Operation::Send(Tail::Plain), length),
        3 => (Operation::Send(Tail::Immediate(id as u32)), length),
        4 => {
            let pd = peer.pd;
            let (key, _) = peer.engine.register(pd, at, ROOM, Access::ALL).unwrap();
            (Operation::Send(Tail::Invalidate(key)), length)
        }
        5 => (Operation::Read { va: at, rkey }, length),
        6 => {
            posted.adds += 1;
            (Operation::FetchAdd { va: counter, rkey, add: 1 }, 8)
        }
        _ => {
            posted.swaps += 1;
            let (compare, swap) = (posted.swaps - 1, posted.swaps);
            (Operation::CompareSwap { va: counter + 8, rkey, compare, swap }, 8)
        }
    };
    posted.requests.push((id, operation, length));
    let fence = chance.below(5) == 0;
    pair.post_on(side, qp, SendRequest { fence, ..request(id, operation, at, length) });
}

fn run(draw: Draw) -> Result<(), TestCaseError> {
    let mut chance = Chance(draw.seed);
    let mtu = [256, 1024, 1000, 4096][chance.below(4) as usize];
    let (recovery, layout) = RECOVERIES[draw.recovery];
    let psn = Psn::new(0x00ff_fff0u32.wrapping_add(chance.below(32) as u32));
    let config = QpConfig {
        mtu,
        send_psn: psn,
        receive_psn: psn,
        ack_every: [1, 2, 8][chance.below(3) as usize],
        ring: 1 + chance.below(15) as u8,
        max_rd_atomic: 1 + chance.below(4) as u8,
        timeout: Span::from_micros(200),
        lone_writes: chance.below(4) == 0,
        credits: chance.below(2) == 0,
        retry: draw.retry,
        rnr_retry: draw.rnr_retry,
        layout,
        law: 1,
        recovery,
        probes: draw.seed.is_multiple_of(2),
        max_in_flight: chance.below(40) as u32,
        initial_window: 1 + chance.below(12) as u16,
        deferred: if draw.deferred { ALL_DEFERRED } else { Deferred::default() },
        min_rnr_timer: Span::from_micros(20),
        ..QpConfig::default()
    };
    let mut pair = Pair::with_engines(engine(draw, 0), engine(draw, 1), config, draw.qps);
    if draw.late {
        pair = pair.late(draw.seed);
    }
    let (faults, latest) = (draw.faults, [5_000, 50_000, 500_000][chance.below(3) as usize]);
    pair = pair.script(move |_, _, _: &Packet, chance: &mut Chance| {
        if chance.below(64) >= faults {
            return Fate::Pass;
        }
        match chance.below(8) {
            0..=2 => Fate::Drop,
            3 => Fate::Return,
            4 => Fate::Duplicate,
            5 => Fate::Mark,
            6 => Fate::Trim,
            _ => Fate::Delay(Span::from_nanos(100 + chance.below(latest))),
        }
    });
    let before = [pair.client.memory.clone(), pair.server.memory.clone()];
    for node in [&mut pair.client, &mut pair.server] {
        node.memory[COUNTERS as usize..].fill(0);
    }
    let sides = [Client, Server];
    let mut posted = [(); 2].map(|()| vec![Posted::default(); draw.qps as usize]);
    // Receives that have still to be posted: by the side that sends, the queue pair and the name.
    let mut waiting: Vec<(usize, usize, u64)> = Vec::new();
    for step in 0..draw.operations {
        let (by, qp) = (chance.below(2) as usize, chance.below(draw.qps.into()) as usize);
        let id = step + SERVERS * by as u64;
        let of = &mut posted[by][qp];
        if state(&mut pair, sides[by], qp) == QpState::SendQueueDrained {
            change(&mut pair, sides[by], qp, Transition::Send);
        }
        draw_request(&mut pair, &mut chance, mtu, sides[by], qp, of, id);
        if of.receives().last() == Some(&id) {
            waiting.push((by, qp, id));
        }
        if chance.below(16) == 0 {
            change(&mut pair, sides[by], qp, Transition::Drain);
        }
        if chance.below(4) == 0 {
            let until = pair.now + Span::from_nanos(chance.below(20_000));
            pair.run_until(until);
        }
        while let Some(&(by, qp, id)) = waiting.first()
            && chance.below(2) == 0
        {
            pair.post_recv_on(sides[1 - by], qp, id, id * ROOM, ROOM as u32);
            waiting.remove(0);
        }
    }
    for (by, qp, id) in waiting {
        pair.post_recv_on(sides[1 - by], qp, id, id * ROOM, ROOM as u32);
    }
    for side in sides {
        for qp in 0..draw.qps as usize {
            change(&mut pair, side, qp, Transition::Send);
        }
    }
    pair.run();
    for by in 0..2 {
        for (qp, posted) in posted[by].iter().enumerate() {
            check(&mut pair, draw, posted, (sides[by], sides[1 - by]), qp, &before[1 - by])?;
        }
    }
    prop_assert_eq!((pair.client.overwritten, pair.server.overwritten), (0, 0), "octets placed over others");
    Ok(())
}

fn state(pair: &mut Pair, side: Side, qp: usize) -> QpState {
    let node = pair.node(side);
    node.engine.query(node.qpns[qp]).unwrap().state
}

/// Takes a queue pair that has not failed to another state.
fn change(pair: &mut Pair, side: Side, qp: usize, way: Transition) {
    if state(pair, side, qp) != QpState::Error {
        let now = pair.now;
        let node = pair.node(side);
        let change = Change { transition: Some(way), ..Change::default() };
        node.engine.modify_qp(now, node.qpns[qp], &change).unwrap();
    }
}

/// What became of the requests of one side on one queue pair, which `before` was the peer's memory of.
fn check(
    pair: &mut Pair,
    draw: Draw,
    posted: &Posted,
    (side, other): (Side, Side),
    qp: usize,
    before: &[u8],
) -> Result<(), TestCaseError> {
    let name = pair.node(side).qpns[qp];
    let of = |pair: &mut Pair, side: Side, receives: bool| -> Vec<Completion> {
        let is_recv = |kind| matches!(kind, CompletionKind::Recv | CompletionKind::RecvWrite);
        let all = &pair.node(side).completions;
        all.iter().filter(|c| c.qpn == name && is_recv(c.kind) == receives).copied().collect()
    };
    let ended = of(pair, side, false);
    let ids: Vec<u64> = ended.iter().map(|c| c.id).collect();
    let names: Vec<u64> = posted.requests.iter().map(|posted| posted.0).collect();
    prop_assert_eq!(&ids, &names, "each ends once, in the order of posting");
    let done = ended.iter().take_while(|c| c.status == Status::Success).count();
    let guilty: Vec<Status> = ended[done..]
        .iter()
        .map(|c| c.status)
        .filter(|status| *status != Status::WorkRequestFlushed)
        .collect();
    prop_assert!(guilty.len() <= 1, "one request is to blame: {guilty:?}");
    let may_fail = [
        (Status::TransportRetryCounterExceeded, draw.retry < 7 || draw.faults > FEW_FAULTS),
        (Status::RnrRetryCounterExceeded, draw.rnr_retry < 7),
    ];
    // Of the peer's failure this side hears by its own retries.
    let peer = pair.node(other).engine.query(name).unwrap();
    let own = pair.node(side).engine.query(name).unwrap();
    for status in &guilty {
        let may = may_fail.iter().any(|(of, may)| of == status && *may) || peer.state == QpState::Error;
        prop_assert!(may, "it was given up: {status:?}");
    }
    let failed = own.state == QpState::Error;
    prop_assert!(failed || done == ended.len(), "who has not failed has done all");
    let may_end = may_fail.iter().any(|(_, may)| *may);
    prop_assert!(!failed || may_end, "nothing fails where retries are many and faults are few");
    // The receives that these took at the peer.
    let received = of(pair, other, true);
    let (good, flushed): (Vec<Completion>, Vec<Completion>) =
        received.iter().copied().partition(|c| c.status == Status::Success);
    let wanted = posted.receives();
    let good: Vec<u64> = good.iter().map(|c| c.id).collect();
    prop_assert_eq!(&good[..], &wanted[..good.len()], "receives end in order, without a gap");
    let heard = wanted.iter().filter(|id| names[..done].contains(id)).count();
    prop_assert!(heard <= good.len(), "who is told of an end is not the only one");
    prop_assert!(flushed.iter().all(|c| c.status == Status::WorkRequestFlushed), "{flushed:?}");
    prop_assert!(flushed.is_empty() || peer.state == QpState::Error);
    if peer.state == QpState::Error {
        prop_assert_eq!(received.len(), wanted.len(), "all receives of who has failed are over");
    }
    for (completion, &(id, operation, length)) in ended[..done].iter().zip(&posted.requests) {
        prop_assert_eq!(completion.length, length);
        let range = (id * ROOM) as usize..(id * ROOM) as usize + length as usize;
        match operation {
            Operation::Write { .. } | Operation::Send(_) => {
                let octets = pair.node(side).memory[range.clone()].to_vec();
                let there = pair.node(other);
                prop_assert!(there.placed[range.clone()].iter().all(|placed| *placed), "each is placed");
                prop_assert!(octets == there.memory[range], "octets arrive");
            }
            Operation::Read { .. } => {
                let here = pair.node(side);
                prop_assert!(here.placed[range.clone()].iter().all(|placed| *placed), "each is placed");
                prop_assert!(here.memory[range.clone()] == before[range], "octets are read");
            }
            _ => {}
        }
        if let Operation::Send(Tail::Invalidate(key)) = operation {
            let there = pair.node(other);
            let pd = there.pd;
            prop_assert!(there.engine.invalidate(pd, key).is_err(), "the key was taken away");
        }
    }
    for completion in received.iter().filter(|c| c.status == Status::Success) {
        let sent = posted.requests.iter().find(|posted| posted.0 == completion.id).unwrap();
        prop_assert_eq!(completion.length, sent.2, "the receiver hears the same length");
        let tail = match sent.1 {
            Operation::Send(tail) | Operation::Write { tail, .. } => tail,
            _ => Tail::Plain,
        };
        prop_assert_eq!(completion.tail, tail);
    }
    let kinds =
        |kind| ended[..done].iter().filter(|c| c.kind == kind).map(|c| c.original).collect::<Vec<_>>();
    let count = |at: u64, pair: &mut Pair| {
        let at = (COUNTERS + 16 * qp as u64 + at) as usize;
        u64::from_le_bytes(pair.node(other).memory[at..at + 8].try_into().unwrap())
    };
    for (kind, at, posted) in
        [(CompletionKind::FetchAdd, 0, posted.adds), (CompletionKind::CompareSwap, 8, posted.swaps)]
    {
        let originals = kinds(kind);
        prop_assert_eq!(&originals, &(0..originals.len() as u64).collect::<Vec<_>>(), "atomics are in order");
        let now = count(at, pair);
        prop_assert!(now >= originals.len() as u64 && now <= posted, "each is carried out once");
        prop_assert!(failed || now == posted, "each is carried out");
    }
    prop_assert_eq!(own.in_flight, 0);
    let node = pair.node(side);
    prop_assert!(!node.engine.has_work(0xff), "nothing is left to send");
    // A gap that a peer was to fill stays where that has failed.
    let others = draw.qps > 1 || failed || peer.state == QpState::Error;
    prop_assert!(others || node.engine.bitmaps_taken() == 0, "bitmaps go back");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn requests_of_both_sides_end_once_and_in_order_however_few_retries_there_are(
        seed in any::<u64>(),
        recovery in 0..RECOVERIES.len(),
        law in 0..LAWS.len(),
        late in any::<bool>(),
        deferred in any::<bool>(),
        qps in 1u32..4,
        faults in prop_oneof![Just(0u64), 0u64..12],
        retry in prop_oneof![Just(7u8), 0u8..7],
        rnr_retry in prop_oneof![Just(7u8), 0u8..7],
        operations in 1u64..50,
    ) {
        run(Draw { seed: seed >> 1, recovery, law, late, deferred, qps, faults, retry, rnr_retry, operations })?;
    }
}
