//! Unreliable connections: nobody answers, a message comes whole or is dropped, and what is dropped disturbs no other.

use crate::laws::dcqcn;
use crate::pair::{Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use proptest::prelude::*;
use roci_control::Law;
use roci_transport::{
    Access, Arrival, Change, CompletionKind, Engine, EngineConfig, Operation, Pd, PostError, QpConfig,
    QpError, QpState, Reaction, Recovery, RecvRequest, RecvTarget, Refusal, Service, Status, Tail,
    Transition,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Cc, Flags, Header, Layout, Opcode, Reth};

const SEND: Operation = Operation::Send(Tail::Plain);

fn unreliable() -> QpConfig {
    QpConfig { service: Service::Uc, ..config() }
}

/// A WRITE to `va` of the server.
fn write(pair: &Pair, va: u64, tail: Tail) -> Operation {
    Operation::Write { va, rkey: pair.server.key, tail }
}

fn dropped(pair: &Pair) -> u32 {
    pair.server.engine.counters(pair.server.qpns[0]).dropped
}

#[test]
fn requests_end_as_their_last_packets_leave_and_nothing_answers_them() {
    let mut pair = Pair::connected(unreliable());
    pair.post_recv(Server, 5, 100_000, 10_000);
    pair.post_recv(Server, 6, 0, 0);
    let (plain, told) = (write(&pair, 200_000, Tail::Plain), write(&pair, 300_000, Tail::Immediate(7)));
    pair.post(Client, request(1, SEND, 0, 3 * MTU + 1));
    pair.post(Client, request(2, plain, 10_000, 5 * MTU));
    pair.post(Client, request(3, told, 20_000, 10));
    // Ten packets of 100 ns each, before the first of them has arrived.
    pair.run_until(Instant::ZERO + Span::from_nanos(1_000));
    assert_eq!(pair.client.ended(), [1, 2, 3].map(|id| (id, Status::Success)));
    assert!(pair.server.completions.is_empty());
    pair.run();
    assert!(pair.server.sent.is_empty());
    let opcodes: Vec<Opcode> = pair.client.sent.iter().map(|packet| packet.header.opcode).collect();
    let [first, middle, last] = [Opcode::UC_WRITE_FIRST, Opcode::UC_WRITE_MIDDLE, Opcode::UC_WRITE_LAST];
    assert_eq!(
        opcodes[..4],
        [Opcode::UC_SEND_FIRST, Opcode::UC_SEND_MIDDLE, Opcode::UC_SEND_MIDDLE, Opcode::UC_SEND_LAST]
    );
    assert_eq!(opcodes[4..], [first, middle, middle, middle, last, Opcode::UC_WRITE_ONLY_IMMEDIATE]);
    assert!(
        pair.client.sent.iter().all(|packet| packet.header.flags == Flags::NONE),
        "none asks for an answer"
    );
    pair.assert_copied(0, 100_000, 3 * MTU + 1);
    pair.assert_copied(10_000, 200_000, 5 * MTU);
    pair.assert_copied(20_000, 300_000, 10);
    let ends = pair.server.completions.iter().map(|end| (end.id, end.kind, end.length, end.tail));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [
            (5, CompletionKind::Recv, 3 * MTU + 1, Tail::Plain),
            (6, CompletionKind::RecvWrite, 10, Tail::Immediate(7))
        ]
    );
    assert_eq!(pair.client.engine.counters(Qpn::new(2)).timeouts, 0);
}

#[test]
fn a_send_that_lost_a_packet_leaves_its_receive_to_the_next() {
    for lost in 0..3 {
        let mut pair = Pair::connected(unreliable()).fate(lost, Fate::Drop);
        pair.post_recv(Server, 5, 100_000, 10_000);
        pair.post(Client, request(1, SEND, 0, 3 * MTU));
        pair.post(Client, request(2, SEND, 20_000, 2 * MTU));
        pair.run();
        assert_eq!(pair.server.ended(), [(5, Status::Success)], "of the second");
        pair.assert_copied(20_000, 100_000, 2 * MTU);
        assert_eq!(dropped(&pair), 1, "packet {lost}");
        assert_eq!(pair.server.engine.query(Qpn::new(2)).unwrap().receive_psn, Psn::new(5));
        assert!(pair.server.sent.is_empty());
    }
}

#[test]
fn a_write_with_immediate_takes_the_receive_that_a_broken_send_left_and_a_plain_one_does_not() {
    let mut pair = Pair::connected(unreliable()).fate(1, Fate::Drop);
    pair.post_recv(Server, 5, 100_000, 10_000);
    let (plain, told) = (write(&pair, 200_000, Tail::Plain), write(&pair, 300_000, Tail::Immediate(7)));
    pair.post(Client, request(1, SEND, 0, 2 * MTU));
    pair.post(Client, request(2, plain, 0, 100));
    pair.run();
    assert!(pair.server.completions.is_empty());
    pair.post(Client, request(3, told, 0, 3 * MTU));
    pair.run();
    let [end] = pair.server.completions[..] else { panic!("{:?}", pair.server.completions) };
    assert_eq!((end.id, end.kind, end.length), (5, CompletionKind::RecvWrite, 3 * MTU));
}

#[test]
fn what_finds_no_receive_request_is_dropped_and_the_connection_goes_on() {
    let mut pair = Pair::connected(unreliable());
    let told = write(&pair, 300_000, Tail::Immediate(7));
    pair.post(Client, request(1, SEND, 0, 3 * MTU));
    pair.post(Client, request(2, told, 0, 2 * MTU));
    pair.run();
    assert_eq!(pair.server.refused[0], Refusal::ReceiverNotReady);
    assert_eq!((pair.server.completions.len(), dropped(&pair)), (0, 2));
    pair.post_recv(Server, 5, 100_000, 10_000);
    pair.post(Client, request(3, SEND, 10_000, 3 * MTU));
    pair.run();
    assert_eq!(pair.server.ended(), [(5, Status::Success)]);
    pair.assert_copied(10_000, 100_000, 3 * MTU);
    assert!(pair.client.completions.iter().all(|end| end.status == Status::Success));
}

#[test]
fn what_may_not_be_written_or_does_not_fit_is_dropped_and_the_connection_goes_on() {
    let mut pair = Pair::connected(unreliable());
    pair.post_recv(Server, 5, 100_000, 2 * MTU);
    let rkey = pair.server.key ^ 1;
    let forbidden = Operation::Write { va: 0, rkey, tail: Tail::Plain };
    let beyond = write(&pair, (1 << 20) - 10, Tail::Plain);
    for (id, operation, length) in
        [(1, forbidden, 10), (2, beyond, 11), (3, SEND, 2 * MTU + 1), (4, SEND, 2 * MTU)]
    {
        pair.post(Client, request(id, operation, 1_000 * id, length));
        pair.run();
    }
    assert_eq!(pair.server.refused, [Refusal::Rejected; 3]);
    assert_eq!(pair.server.ended(), [(5, Status::Success)]);
    assert_eq!(dropped(&pair), 3);
    pair.assert_copied(4_000, 100_000, 2 * MTU);
    assert_eq!(pair.server.engine.query(Qpn::new(2)).unwrap().state, QpState::ReadyToSend);
    assert!(pair.server.sent.is_empty());
}

#[test]
fn a_key_that_ends_in_the_middle_of_a_message_ends_a_write_and_for_a_buffer_of_ones_own_the_connection() {
    for own in [false, true] {
        let mut pair = Pair::connected(unreliable());
        let (pd, length) = (pair.server.pd, 8 * u64::from(MTU));
        let (key, _) = pair.server.engine.register(pd, 0, length, Access::ALL).unwrap();
        let recv = RecvRequest { id: 5, address: 0, length: 8 * MTU, lkey: key };
        pair.server.engine.post_recv(Qpn::new(2), recv).unwrap();
        let operation = if own { SEND } else { Operation::Write { va: 0, rkey: key, tail: Tail::Plain } };
        pair.post(Client, request(1, operation, 0, 8 * MTU));
        // Some of them have come by then.
        pair.run_until(Instant::ZERO + Span::from_nanos(1_400));
        pair.server.engine.deregister(key).unwrap();
        pair.run();
        let (ended, state) = (pair.server.ended(), pair.server.engine.query(Qpn::new(2)).unwrap().state);
        if own {
            assert_eq!((ended, state), (vec![(5, Status::LocalProtectionError)], QpState::Error));
        } else {
            assert_eq!((ended, state), (vec![], QpState::ReadyToSend));
        }
        assert_eq!(pair.server.refused[0], Refusal::Rejected);
        assert!(pair.server.sent.is_empty());
    }
}

#[test]
fn who_measures_is_told_of_writes_that_came_whole() {
    for tells_writes in [true, false] {
        let mut pair = Pair::connected(QpConfig { tells_writes, ..unreliable() }).fate(1, Fate::Drop);
        let operation = write(&pair, 100_000, Tail::Plain);
        for (id, octets) in [(1, 2 * MTU), (2, 3 * MTU), (3, 0)] {
            pair.post(Client, request(id, operation, 0, octets));
        }
        pair.run();
        let told: Vec<_> = pair.server.completions.iter().map(|end| (end.kind, end.length)).collect();
        let whole = [3 * MTU, 0].map(|length| (CompletionKind::RecvWrite, length));
        assert_eq!(told, if tells_writes { whole.to_vec() } else { Vec::new() });
        assert_eq!(pair.server.engine.counters(Qpn::new(2)).taken, 2);
    }
}

#[test]
fn a_shared_receive_queue_serves_it_as_well() {
    let engine = |seed| Engine::new(EngineConfig { seed, ..EngineConfig::default() });
    let (mut client, mut server) = (engine(1), engine(2));
    let srq = server.create_srq();
    client.create_srq();
    let config = QpConfig { srq: Some(srq), ..unreliable() };
    let mut pair = Pair::with_engines(client, server, config, 2).fate(1, Fate::Drop);
    let (pd, lkey) = (pair.server.pd, pair.server.key);
    for id in [5, 6] {
        let request = RecvRequest { id, address: 100_000 * id, length: 4 * MTU, lkey };
        pair.server.engine.post_recv(RecvTarget::Srq(srq, pd), request).unwrap();
    }
    pair.post_on(Client, 0, request(1, SEND, 0, 3 * MTU));
    pair.run();
    pair.post_on(Client, 1, request(2, SEND, 10_000, MTU));
    pair.run();
    pair.post_on(Client, 0, request(3, SEND, 20_000, 4 * MTU));
    pair.run();
    assert_eq!(
        pair.server.ended(),
        [(6, Status::Success), (5, Status::Success)],
        "the first still had its own"
    );
    pair.assert_copied(10_000, 600_000, MTU);
    pair.assert_copied(20_000, 500_000, 4 * MTU);
    assert_eq!(pair.server.engine.receives_waiting(srq), 0);
}

#[test]
fn what_needs_an_answer_is_not_taken() {
    let mut pair = Pair::connected(unreliable());
    let (qpn, rkey) = (Qpn::new(2), pair.server.key);
    for operation in [
        Operation::Read { va: 0, rkey },
        Operation::FetchAdd { va: 0, rkey, add: 1 },
        Operation::CompareSwap { va: 0, rkey, compare: 1, swap: 2 },
        Operation::Send(Tail::Invalidate(rkey)),
        Operation::Datagram { path: 9, qpn, q_key: 0, tail: Tail::Plain },
    ] {
        let posted = pair.client.engine.post_send(Instant::ZERO, qpn, &request(1, operation, 0, 8));
        assert_eq!(posted, Err(PostError::Operation), "{operation:?}");
    }
    for change in [
        Change { timeout: Some(Span::ZERO), ..Change::default() },
        Change { retry: Some(7), ..Change::default() },
        Change { rnr_retry: Some(7), ..Change::default() },
        Change { max_dest_rd_atomic: Some(1), ..Change::default() },
    ] {
        let changed = pair.client.engine.modify_qp(Instant::ZERO, qpn, &change);
        assert!(matches!(changed, Err(QpError::Conflict(_))), "{change:?}");
    }
}

#[test]
fn a_connection_that_is_to_have_layouts_recovery_or_laws_that_need_answers_is_not_made() {
    let mut engine = Engine::new(EngineConfig::default());
    let link = EngineConfig::default().link;
    let laws = ["timely", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc", "homa"];
    for name in laws {
        let law = engine.add_law(Law::from_settings(name, &[], link).unwrap());
        let made = engine.create_qp(QpConfig { law, ..unreliable() });
        assert!(matches!(made, Err(QpError::Conflict(why)) if why.contains("acknowledgements")), "{name}");
    }
    for config in [
        QpConfig { layout: Layout::Cc(Cc::default()), ..unreliable() },
        QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, ..unreliable() },
        QpConfig { recovery: Recovery::Sack, ..unreliable() },
    ] {
        assert!(matches!(engine.create_qp(config), Err(QpError::Conflict(_))), "{config:?}");
    }
    let law = engine.add_law(Law::from_settings("dcqcn", &[], link).unwrap());
    assert!(engine.create_qp(QpConfig { law, ..unreliable() }).is_ok());
}

#[test]
fn marks_draw_cnps_which_slow_its_sender_down() {
    let mut pair = dcqcn(&[], unreliable(), 1).fate(3, Fate::Mark);
    let operation = write(&pair, 0, Tail::Plain);
    pair.post(Client, request(1, operation, 0, 100 * MTU));
    pair.run_until(Instant::ZERO + Span::from_micros(3));
    let status = pair.client.engine.query(Qpn::new(2)).unwrap();
    assert_eq!(pair.server.story(), ["cnp"]);
    assert_eq!(pair.client.engine.counters(Qpn::new(2)).cnps, 1);
    assert!(u64::from(status.credit.rate_kbps) < EngineConfig::default().link.as_kbps().into(), "{status:?}");
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    pair.assert_copied(0, 0, 100 * MTU);
}

#[test]
fn marks_on_messages_that_are_refused_slow_their_sender_down_as_well() {
    let mut pair = dcqcn(&[], unreliable(), 1).fate(0, Fate::Mark);
    let forbidden = Operation::Write { va: 0, rkey: pair.server.key ^ 1, tail: Tail::Plain };
    pair.post(Client, request(1, forbidden, 0, MTU));
    pair.run();
    assert_eq!((pair.server.refused.as_slice(), dropped(&pair)), ([Refusal::Rejected].as_slice(), 1));
    assert_eq!(pair.server.story(), ["cnp"]);
    assert_eq!(pair.client.engine.counters(Qpn::new(2)).cnps, 1);
}

#[test]
fn each_service_refuses_the_opcodes_of_the_others() {
    let mut engine = Engine::new(EngineConfig::default());
    let (key, _) = engine.register(Pd(0), 0, 1 << 20, Access::ALL).unwrap();
    for (service, qpn) in [(Service::Rc, 2), (Service::Uc, 3), (Service::Ud, 4)] {
        let qpn = Some(Qpn::new(qpn));
        engine.create_qp(QpConfig { qpn, service, ..config() }).unwrap();
    }
    let opcodes = [
        Opcode::WRITE_ONLY,
        Opcode::UC_WRITE_ONLY,
        Opcode::UD_SEND_ONLY,
        Opcode::ACKNOWLEDGE,
        Opcode::READ_REQUEST,
    ];
    for (opcode, takes) in opcodes.into_iter().zip([[2].as_slice(), &[3], &[4], &[2], &[2]]) {
        for qpn in 2..5 {
            let mut header = Header::new(opcode, Qpn::new(qpn), Psn::new(0));
            header.set_reth(Reth { va: 0, rkey: key, length: 0 });
            let mut reaction = Reaction::default();
            let arrival = Arrival::new(&header, 0);
            engine.receive(Instant::ZERO, &arrival, &mut reaction);
            let is_foreign = reaction.refused == Some(Refusal::WrongOpcode);
            assert_eq!(is_foreign, !takes.contains(&qpn), "{opcode} on {qpn}: {:?}", reaction.refused);
        }
    }
}

#[test]
fn numbers_of_packets_begin_anew_in_the_middle_of_a_message() {
    let psn = Psn::new(0x00ff_fffd);
    let mut pair = Pair::connected(QpConfig { send_psn: psn, receive_psn: psn, ..unreliable() });
    for (id, octets) in [(1, 5 * MTU), (2, 3 * MTU)] {
        let operation = write(&pair, 100_000 * id, Tail::Plain);
        pair.post(Client, request(id, operation, 10_000 * id, octets));
    }
    pair.run();
    pair.assert_copied(10_000, 100_000, 5 * MTU);
    pair.assert_copied(20_000, 200_000, 3 * MTU);
    assert_eq!((pair.server.refused.len(), dropped(&pair)), (0, 0));
    assert_eq!(pair.server.engine.query(Qpn::new(2)).unwrap().receive_psn, Psn::new(5));
}

#[test]
fn a_message_that_came_is_over_for_who_repeats_its_last_packet() {
    let mut pair = Pair::connected(unreliable()).fate(2, Fate::Duplicate);
    let operation = write(&pair, 100_000, Tail::Plain);
    pair.post(Client, request(1, operation, 0, 3 * MTU));
    pair.run();
    assert_eq!((pair.server.refused.as_slice(), dropped(&pair)), ([Refusal::Duplicate].as_slice(), 0));
}

#[test]
fn a_message_whose_first_packet_comes_twice_begins_anew_and_is_not_counted_as_dropped() {
    let mut pair = Pair::connected(unreliable()).fate(0, Fate::Duplicate);
    let operation = write(&pair, 100_000, Tail::Plain);
    pair.post(Client, request(1, operation, 0, 3 * MTU));
    pair.run();
    pair.assert_copied(0, 100_000, 3 * MTU);
    assert_eq!((pair.server.refused.len(), dropped(&pair)), (0, 0));
}

#[test]
fn a_message_that_another_comes_in_between_of_is_dropped_and_counted_once() {
    // Into the middle of the four packets of the second.
    let mut pair = Pair::connected(unreliable()).fate(0, Fate::Delay(Span::from_nanos(250)));
    for (id, octets) in [(1, MTU), (2, 4 * MTU), (3, 2 * MTU)] {
        let operation = write(&pair, 100_000 * id, Tail::Plain);
        pair.post(Client, request(id, operation, 10_000 * id, octets));
    }
    pair.run();
    pair.assert_copied(10_000, 100_000, MTU);
    pair.assert_copied(30_000, 300_000, 2 * MTU);
    assert!(
        pair.server.refused.len() >= 2
            && pair.server.refused.iter().all(|why| *why == Refusal::OutOfSequence)
    );
    assert_eq!(dropped(&pair), 1);
}

#[test]
fn messages_that_come_twice_are_counted_once_and_hide_none_that_is_lost() {
    // Of eight messages of a packet the second is lost, and the fifth doubled.
    let mut pair = Pair::connected(unreliable()).fate(1, Fate::Drop).fate(4, Fate::Duplicate);
    for id in 0..8 {
        let operation = write(&pair, 100_000 * (id + 1), Tail::Plain);
        pair.post(Client, request(id, operation, 10_000 * id, 100));
    }
    pair.run();
    let counted = |pair: &Pair| pair.server.engine.counters(pair.server.qpns[0]);
    assert_eq!((counted(&pair).taken, counted(&pair).doubled, dropped(&pair)), (7, 1, 0));
    // A run of them that comes once more, as where the network doubles what was not yet cut into packets, with the lost one late.
    let packets: Vec<_> = pair.client.sent.iter().map(|packet| packet.header).collect();
    for header in &packets {
        let arrival = Arrival::new(header, 9);
        let mut reaction = Reaction::default();
        pair.server.engine.receive(pair.now, &arrival, &mut reaction);
    }
    assert_eq!((counted(&pair).taken, counted(&pair).doubled), (8, 8));
    let reset = Change { transition: Some(Transition::Reset), ..Change::default() };
    pair.server.engine.modify_qp(pair.now, pair.server.qpns[0], &reset).unwrap();
    assert_eq!((counted(&pair).taken, counted(&pair).doubled), (0, 0));
}

#[test]
fn a_drained_send_queue_has_ended_what_had_begun() {
    let mut pair = Pair::connected(unreliable());
    for id in [1, 2] {
        let operation = write(&pair, 100_000, Tail::Plain);
        pair.post(Client, request(id, operation, 0, 8 * MTU));
    }
    pair.run_until(Instant::ZERO + Span::from_nanos(300));
    let drain = Change { transition: Some(Transition::Drain), ..Change::default() };
    pair.client.engine.modify_qp(pair.now, Qpn::new(2), &drain).unwrap();
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert!(!pair.client.engine.query(Qpn::new(2)).unwrap().sq_draining);
}

/// What is sent over an unreliable connection and over a reliable one whose window is endless.
fn sent_by(service: Service, quantum: u32, messages: &[(bool, u32)]) -> Vec<(u8, u32, Vec<u8>, Reth)> {
    let mut pair = Pair::connected(QpConfig { service, timeout: Span::ZERO, ..config() });
    pair.quantum = quantum;
    for id in 0..messages.len() as u64 {
        pair.post_recv(Server, id, 500_000, 1 << 18);
    }
    for (id, &(is_write, length)) in messages.iter().enumerate() {
        let operation = if is_write { write(&pair, 700_000, Tail::Plain) } else { SEND };
        pair.post(Client, request(id as u64, operation, 1_000 * id as u64, length));
    }
    pair.run();
    let sent = pair.client.sent.iter();
    sent.map(|packet| {
        let opcode = packet.header.opcode;
        let reth =
            if opcode.shape().has(roci_wire::Shape::RETH) { packet.header.reth() } else { Reth::default() };
        (opcode.0 & 0x1f, packet.header.psn.get(), packet.payload.clone(), reth)
    })
    .collect()
}

proptest! {
    #[test]
    fn its_packets_are_those_of_a_reliable_connection_that_loses_none(
        messages in prop::collection::vec((any::<bool>(), 0u32..100 * MTU), 1..12),
        quantum in prop::sample::select(vec![0, 1, 3_000, 65_536]),
    ) {
        let [uc, rc] = [Service::Uc, Service::Rc].map(|service| sent_by(service, quantum, &messages));
        prop_assert_eq!(uc, rc);
    }

    /// SENDs and WRITEs with immediate that say which message they are, over a wire that loses, doubles and reorders.
    #[test]
    fn every_message_that_ends_has_its_senders_octets(
        seed in any::<u64>(),
        (losses, others) in (0u64..40, 0u64..40),
        start in prop::sample::select(vec![0u32, 0x00ff_ff80]),
        quantum in prop::sample::select(vec![0, 3_000]),
        messages in prop::collection::vec((any::<bool>(), 0u32..12 * MTU), 1..28),
    ) {
        let psn = Psn::new(start);
        let config = QpConfig { send_psn: psn, receive_psn: psn, ..unreliable() };
        let mut pair = Pair::connected(config).script(move |_, _, _, chance| match chance.below(200) {
            n if n < losses => Fate::Drop,
            n if n < losses + others / 2 => Fate::Duplicate,
            n if n < losses + others => Fate::Delay(Span::from_nanos(chance.below(2_000))),
            _ => Fate::Pass,
        });
        pair.quantum = quantum;
        let salt = seed % 1_000;
        // SENDs go to a buffer each of two for each message, WRITEs to a place each, none of which overlap: 28 messages have all of a side's memory.
        const ROOM: u64 = 12 * MTU as u64;
        let count = messages.len() as u64;
        for id in 0..2 * count {
            pair.post_recv(Server, id, (1 + id) * ROOM, ROOM as u32);
        }
        for (id, &(is_write, length)) in messages.iter().enumerate() {
            let id = id as u64;
            let tail = Tail::Immediate(id as u32);
            let operation = if is_write {
                write(&pair, (1 + 2 * count + id) * ROOM, tail)
            } else {
                Operation::Send(tail)
            };
            pair.post(Client, request(id, operation, salt + 997 * id, length));
        }
        pair.run();
        prop_assert_eq!(pair.client.completions.len(), messages.len());
        prop_assert!(pair.server.sent.is_empty());
        let mut intact = 0;
        let mut seen = std::collections::BTreeSet::new();
        for end in &pair.server.completions {
            prop_assert_eq!(end.status, Status::Success);
            let Tail::Immediate(message) = end.tail else { panic!("{end:?} has none") };
            let (is_write, length) = messages[message as usize];
            let kind = if is_write { CompletionKind::RecvWrite } else { CompletionKind::Recv };
            prop_assert_eq!((end.kind, end.length), (kind, length));
            let message = u64::from(message);
            let to = if is_write { 1 + 2 * count + message } else { 1 + end.id } * ROOM;
            pair.assert_copied(salt + 997 * message, to, length);
            intact += 1;
            seen.insert(message);
        }
        let counted = pair.server.engine.counters(pair.server.qpns[0]);
        prop_assert_eq!((counted.taken as usize, counted.doubled as usize), (seen.len(), intact - seen.len()));
        if losses + others == 0 {
            prop_assert_eq!((intact, dropped(&pair)), (messages.len(), 0));
        }
    }
}
