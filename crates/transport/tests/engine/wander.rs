//! Seeds that draw operations, losses, delays and configurations: each message ends exactly once and in order.

use crate::pair::{ALL_DEFERRED, Chance, Client, Fate, Packet, Pair, Server, Side};
use crate::scripts::request;
use proptest::prelude::*;
use roci_control::Law;
use roci_transport::{
    CompletionKind, Deferred, Engine, EngineConfig, Operation, QpConfig, QpState, Recovery, SendRequest,
    Status, Tail,
};
use roci_units::{BitsPerSec, Psn, Span};
use roci_wire::{Layout, Opcode};

/// What a run is drawn from.
#[derive(Clone, Copy, Debug)]
struct Draw {
    seed: u64,
    recovery: usize,
    /// Whether Homa's law and layout are used, where the recovery program can do with them.
    homa: bool,
    late: bool,
    deferred: bool,
    /// Faults of one packet in 64.
    faults: u64,
    operations: u64,
}

/// The recovery programs, each with a layout that it may have.
const RECOVERIES: [(Recovery, Layout); 8] = [
    (Recovery::GoBackN, Layout::Standard),
    (Recovery::Irn, Layout::Irn),
    (Recovery::Srnic, Layout::Srnic),
    (Recovery::Reno, Layout::Irn),
    (Recovery::NewReno, Layout::Irn),
    (Recovery::Sack, Layout::Irn),
    (Recovery::Sack, Layout::Srnic),
    (Recovery::Ndp, Layout::Ndp),
];
const OPS: u64 = 6;
/// Of 64 packets: five in eight of them never arrive whole, so that a request and its answer fail eight times one after
/// the other once in 10⁹ times.
const FEW_FAULTS: u64 = 4;
/// Each operation has its own region at either side.
const ROOM: u64 = 8192;

/// An engine whose queue pairs may send little before they are granted more.
fn granted(seed: u64, ndp: bool) -> Engine {
    let link = BitsPerSec::from_gbps(10);
    let mut engine = Engine::new(EngineConfig { seed, link, ..EngineConfig::default() });
    let homa = [("unscheduled", "1500B"), ("resend", "50us"), ("overcommit", "1")];
    let law = if ndp {
        Law::from_settings("ndp", &[("initial_window", "3"), ("patience", "200us")], link)
    } else {
        Law::from_settings("homa", &homa, link)
    };
    engine.add_law(law.unwrap());
    engine
}

fn run(draw: Draw) -> Result<(), TestCaseError> {
    let mut chance = Chance(draw.seed);
    let mtu = [256, 1024, 1000, 4096][chance.below(4) as usize];
    let (recovery, layout) = RECOVERIES[draw.recovery];
    let homa = draw.homa && matches!(recovery, Recovery::GoBackN | Recovery::Irn);
    let base = QpConfig {
        mtu,
        send_psn: Psn::new(0x00ff_fff0u32.wrapping_add(chance.below(32) as u32)),
        ack_every: [1, 2, 8][chance.below(3) as usize],
        ring: 1 + chance.below(15) as u8,
        max_rd_atomic: 1 + chance.below(4) as u8,
        timeout: Span::from_micros(200),
        layout: if homa { Layout::Homa } else { layout },
        law: u16::from(homa || recovery == Recovery::Ndp),
        recovery,
        probes: draw.seed.is_multiple_of(2),
        max_in_flight: chance.below(40) as u32,
        initial_window: 1 + chance.below(12) as u16,
        deferred: if draw.deferred { ALL_DEFERRED } else { Deferred::default() },
        min_rnr_timer: Span::from_micros(20),
        ..QpConfig::default()
    };
    let config = QpConfig { receive_psn: base.send_psn, ..base };
    let ndp = recovery == Recovery::Ndp;
    let mut pair = if homa || ndp {
        Pair::with_engines(granted(draw.seed, ndp), granted(draw.seed + 1, ndp), config, 1)
    } else {
        Pair::connected(config)
    };
    if draw.late {
        pair = pair.late(draw.seed);
    }
    let faults = draw.faults;
    let mut sent = 0;
    pair = pair.script(move |side: Side, number, packet: &Packet, chance: &mut Chance| {
        match (side, packet.header.opcode) {
            (Client, _) => sent = number + 1,
            // One for each packet that came, and some come twice.
            (Server, Opcode::ACKNOWLEDGE | Opcode::PULL) if ndp => {
                let counter = packet.header.pull().counter as usize;
                assert!(counter <= 2 * sent, "{counter} packets pulled of {sent}");
            }
            _ => {}
        }
        if chance.below(64) >= faults {
            return Fate::Pass;
        }
        match chance.below(8) {
            0..=2 => Fate::Drop,
            3 => Fate::Return,
            4 => Fate::Duplicate,
            5 => Fate::Mark,
            6 => Fate::Trim,
            _ => Fate::Delay(Span::from_nanos(100 + chance.below(5_000))),
        }
    });
    let before_server = pair.server.memory.clone();
    let mut sends = Vec::new();
    let mut adds = 0u64;
    let counter = 1u64 << 19;
    pair.server.memory[counter as usize..counter as usize + 8].fill(0);
    let rkey = pair.server.key;
    for id in 0..draw.operations {
        let (there, here) = (id * ROOM, id * ROOM);
        let length = chance.below(ROOM.min(u64::from(mtu) * 5)) as u32;
        let (operation, length) = match chance.below(OPS) {
            0 => (Operation::Write { va: there, rkey, tail: Tail::Plain }, length),
            1 => (Operation::Write { va: there, rkey, tail: Tail::Immediate(id as u32) }, length),
            2 => (Operation::Send(Tail::Plain), length),
            3 => (Operation::Send(Tail::Immediate(id as u32)), length),
            4 => (Operation::Read { va: there, rkey }, length),
            _ => (Operation::FetchAdd { va: counter, rkey, add: 1 }, 8),
        };
        let fence = chance.below(5) == 0;
        pair.post(Client, SendRequest { fence, ..request(id, operation, here, length) });
        if matches!(operation, Operation::Send(_) | Operation::Write { tail: Tail::Immediate(_), .. }) {
            sends.push((id, operation, length));
        }
        adds += u64::from(matches!(operation, Operation::FetchAdd { .. }));
        if chance.below(4) == 0 {
            let until = pair.now + Span::from_nanos(chance.below(20_000));
            pair.run_until(until);
        }
        // Half of the receives come late, so that the receiver is not always ready.
        while let Some(&(id, ..)) = sends.first()
            && chance.below(2) == 0
        {
            pair.post_recv(Server, id, id * ROOM, ROOM as u32);
            sends.remove(0);
        }
    }
    for (id, ..) in sends {
        pair.post_recv(Server, id, id * ROOM, ROOM as u32);
    }
    pair.run();
    check(&pair, draw, &before_server, counter, adds)
}

fn check(pair: &Pair, draw: Draw, before: &[u8], counter: u64, adds: u64) -> Result<(), TestCaseError> {
    // Each message has memory of its own, so whatever lies there twice is twice the same.
    prop_assert_eq!((pair.client.overwritten, pair.server.overwritten), (0, 0), "octets placed over others");
    let ended = pair.client.ended();
    let ids: Vec<u64> = ended.iter().map(|end| end.0).collect();
    prop_assert_eq!(ids, (0..draw.operations).collect::<Vec<_>>(), "each ends once, in the order of posting");
    let failed = ended.iter().position(|end| end.1 != Status::Success);
    if let Some(first) = failed {
        prop_assert!(draw.faults > 0, "nothing fails without faults: {:?}", ended[first]);
        // Eight losses one after the other are no chance then.
        prop_assert!(draw.faults > FEW_FAULTS, "it was given up: {:?}", ended[first]);
        prop_assert!(ended[first + 1..].iter().all(|end| end.1 == Status::WorkRequestFlushed));
        return Ok(());
    }
    let received: Vec<u64> = pair.server.completions.iter().map(|c| c.id).collect();
    prop_assert!(
        received.is_sorted() && received.windows(2).all(|two| two[0] < two[1]),
        "in order, once each"
    );
    let done = u64::from_le_bytes(pair.server.memory[counter as usize..][..8].try_into().unwrap());
    prop_assert_eq!(done, adds, "each atomic is carried out once");
    let mut previous = None;
    for completion in &pair.client.completions {
        let at = (completion.id * ROOM) as usize;
        let range = at..at + completion.length as usize;
        match completion.kind {
            CompletionKind::Write | CompletionKind::Send => {
                prop_assert!(
                    pair.server.placed[range.clone()].iter().all(|placed| *placed),
                    "each is placed"
                );
                prop_assert!(pair.client.memory[range.clone()] == pair.server.memory[range], "octets arrive");
            }
            CompletionKind::Read => {
                prop_assert!(
                    pair.client.placed[range.clone()].iter().all(|placed| *placed),
                    "each is placed"
                );
                prop_assert!(pair.client.memory[range.clone()] == before[range], "octets are read");
            }
            CompletionKind::FetchAdd => {
                prop_assert!(previous.is_none_or(|earlier| earlier < completion.original), "in order");
                previous = Some(completion.original);
            }
            _ => {}
        }
    }
    for completion in &pair.server.completions {
        let sent = pair.client.completions[completion.id as usize];
        prop_assert_eq!(completion.length, sent.length, "the receiver hears the same length");
        let known =
            matches!(completion.tail, Tail::Plain) || completion.tail == Tail::Immediate(sent.id as u32);
        prop_assert!(known);
    }
    for node in [&pair.client, &pair.server] {
        let status = node.engine.query(node.qpns[0]).unwrap();
        prop_assert_eq!((status.state, status.in_flight), (QpState::ReadyToSend, 0));
        prop_assert!(!node.engine.has_work(0xff), "nothing is left to send");
        prop_assert_eq!(node.engine.bitmaps_taken(), 0, "bitmaps go back");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_message_ends_once_and_in_order(
        seed in any::<u64>(),
        recovery in 0..RECOVERIES.len(),
        homa in any::<bool>(),
        late in any::<bool>(),
        deferred in any::<bool>(),
        faults in prop_oneof![Just(0u64), 0u64..12],
        operations in 1u64..30,
    ) {
        run(Draw { seed: seed >> 1, recovery, homa, late, deferred, faults, operations })?;
    }
}

/// Its READ's first response, the acknowledgement of the request and the last pull are lost: what waited behind its fence
/// has to hear from the response that came later that nothing is in flight any more.
#[test]
fn a_pulled_sender_goes_on_after_a_read_whose_acknowledgement_was_lost() {
    let draw = Draw {
        seed: 10_281_598_541_566_057_536 >> 1,
        recovery: 7,
        homa: false,
        late: false,
        deferred: false,
        faults: 9,
        operations: 11,
    };
    run(draw).unwrap();
}

/// Its receiver knows of a message that comes after one of which it knows nothing, and says what it granted of that again and again: no
/// word of the first, whose timer goes on.
#[test]
fn a_granted_sender_times_out_though_the_grant_of_another_message_is_said_once_more() {
    let draw = Draw {
        seed: 795_959_784_923_010_992 >> 1,
        recovery: 1,
        homa: true,
        late: false,
        deferred: true,
        faults: 3,
        operations: 11,
    };
    run(draw).unwrap();
}

/// The responder has four packets whose acknowledgement was lost, and the responses of the READ behind them as well: it answers
/// the first of the four again only if it is asked.
#[test]
fn a_granted_sender_asks_for_an_answer_to_what_it_sends_again() {
    let draw = Draw {
        seed: 13_855_352_306_647_403_570 >> 1,
        recovery: 1,
        homa: true,
        late: false,
        deferred: false,
        faults: 3,
        operations: 8,
    };
    run(draw).unwrap();
}

/// An offset in SRNIC's words, read as another layout's, named a packet beyond the gap that had been returned.
#[test]
fn what_an_acknowledgement_names_is_read_by_its_own_layout() {
    let seed = 5_333_639_786_140_345_702 >> 1;
    let draw =
        Draw { seed, recovery: 6, homa: false, late: false, deferred: false, faults: 8, operations: 8 };
    run(draw).unwrap();
}
