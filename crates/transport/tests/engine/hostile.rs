//! What a stranger or a broken peer may send: it is refused and counted, and nothing panics.

use crate::pair::{Chance, Pair, Server};
use crate::scripts::{MTU, config, request};
use proptest::prelude::*;
use roci_control::{Hop, Law};
use roci_transport::{
    Access, Arrival, CompletionKind, Engine, EngineConfig, Operation, Pd, PostError, QpConfig, QpError,
    QpState, Reaction, Recovery, RecvRequest, RecvTarget, Refusal, Service, Status, Tail, Transition,
};
use roci_units::{Instant, Psn, Qpn};
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::layout::irn::SendPosition;
use roci_wire::{Aeth, AtomicEth, Cc, Deth, Flags, Header, Layout, NakCode, Opcode, Reth, Syndrome};

/// A header with whatever in it.
fn forged(chance: &mut Chance, key: u32, base: u32) -> Header {
    let mut header = Header::new(
        Opcode(chance.below(256) as u8),
        Qpn::new(2 + chance.below(4) as u32),
        Psn::new(base.wrapping_add(chance.below(24) as u32).wrapping_sub(8)),
    );
    header.flags = Flags(chance.below(256) as u8);
    header.payload = [0, 1, 100, 1024, 1025, u16::MAX][chance.below(6) as usize];
    let va = [0, 8, 7, u64::MAX, u64::MAX - 4][chance.below(5) as usize];
    let rkey = if chance.below(2) == 0 { key } else { chance.below(1 << 32) as u32 };
    match chance.below(4) {
        0 => {
            let length = [0, 1, 1024, 5000, u32::MAX][chance.below(5) as usize];
            header.set_reth(Reth { va, rkey, length });
            header.set_immediate(rkey);
        }
        1 => header.set_atomic(AtomicEth { va, rkey, swap_or_add: 1, compare: 2 }),
        2 => header.set_aeth(Aeth { syndrome: chance.below(256) as u8, msn: chance.below(1 << 24) as u32 }),
        _ => header.set_deth(Deth { q_key: chance.below(2) as u32, source_qpn: Qpn::new(7) }),
    }
    if chance.below(2) == 0 {
        // In layout `ndp` the same word counts pulls.
        header.set_trigger(Psn::new(base.wrapping_add(chance.below(24) as u32).wrapping_sub(8)));
    }
    header
}

const RECOVERIES: [Recovery; 7] = [
    Recovery::GoBackN,
    Recovery::Irn,
    Recovery::Srnic,
    Recovery::Reno,
    Recovery::NewReno,
    Recovery::Sack,
    Recovery::Ndp,
];

fn engine(recovery: Recovery) -> (Engine, u32) {
    let mut engine = Engine::new(EngineConfig::default());
    if recovery == Recovery::Ndp {
        engine.add_law(Law::from_settings("ndp", &[], EngineConfig::default().link).unwrap());
    }
    let (key, _) = engine.register(Pd(0), 0, 1 << 20, Access::ALL).unwrap();
    let layout = match recovery {
        Recovery::GoBackN => Layout::Standard,
        Recovery::Srnic => Layout::Srnic,
        Recovery::Ndp => Layout::Ndp,
        _ => Layout::Irn,
    };
    for (n, service) in [Service::Rc, Service::Rc, Service::Ud, Service::Uc].into_iter().enumerate() {
        let qpn = Some(Qpn::new(2 + n as u32));
        let peer = Qpn::new(9);
        let (layout, recovery) =
            if service == Service::Rc { (layout, recovery) } else { (Layout::Standard, Recovery::GoBackN) };
        let law = u16::from(recovery == Recovery::Ndp);
        engine.create_qp(QpConfig { qpn, peer, service, layout, recovery, law, ..config() }).unwrap();
    }
    (engine, key)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_packet_makes_it_panic(
        seed in any::<u64>(),
        recovery in prop::sample::select(&RECOVERIES[..]),
        count in 1u32..400,
    ) {
        let mut chance = Chance(seed);
        let (mut engine, key) = engine(recovery);
        let mut reaction = Reaction::default();
        let mut now = Instant::ZERO;
        for step in 0..count {
            now += roci_units::Span::from_nanos(chance.below(100_000));
            let qpn = Qpn::new([2, 3, 5][chance.below(3) as usize]);
            match chance.below(6) {
                0 => {
                    let rkey = key;
                    let operation = match chance.below(4) {
                        0 => Operation::Write { va: 0, rkey, tail: Tail::Plain },
                        1 => Operation::Send(Tail::Immediate(1)),
                        2 => Operation::Read { va: 0, rkey },
                        _ => Operation::FetchAdd { va: 8, rkey, add: 1 },
                    };
                    let length = if matches!(operation, Operation::FetchAdd { .. }) { 8 } else { 3 * MTU };
                    let _ = engine.post_send(now, qpn, &request(u64::from(step), operation, 0, length));
                }
                1 => {
                    let recv = RecvRequest { id: 1, address: 0, length: 2 * MTU, lkey: 0 };
                    let _ = engine.post_recv(Qpn::new(2 + chance.below(4) as u32), recv);
                }
                2 => engine.wake(now),
                3 => drop(engine.transmit(now)),
                _ => {
                    let base = engine.query(qpn).unwrap();
                    let base = if chance.below(2) == 0 { base.send_psn } else { base.receive_psn };
                    let header = forged(&mut chance, key, base.get());
                    let path = chance.below(20) / 19;
                    let ce = chance.below(4) == 0;
                    let arrival = Arrival { ce, ..Arrival::new(&header, path) };
                    engine.receive(now, &arrival, &mut reaction);
                    if let Some(placement) = reaction.placement {
                        let end = placement.address.checked_add(u64::from(placement.length));
                        prop_assert!(end.is_some_and(|end| end <= 1 << 20), "{placement:?} leaves the region");
                    }
                }
            }
            while engine.poll_completion().is_some() {}
            while engine.poll_deferral().is_some() {}
            while engine.poll_notice().is_some() {}
        }
    }
}

/// Words of layout `homa` with whatever in them, and the opcode that they go with where it is none of data.
fn forged_words(chance: &mut Chance) -> (Option<Opcode>, Vec<u32>) {
    let mut octets = || [0, 1, 1024, 3 * MTU, 1 << 20, u32::MAX][chance.below(6) as usize];
    let (length, offset) = (octets(), octets());
    let body = match chance.below(6) {
        0 => HomaBody::Grant { offset, priority: chance.below(8) as u8, resend_all: false },
        1 => HomaBody::Resend { offset, length, priority: chance.below(8) as u8 },
        2 => HomaBody::Busy,
        _ => {
            let (retransmit, number) = (chance.below(2) == 0, chance.below(3) as u16);
            HomaBody::Data { length, offset, incoming: length, retransmit, number }
        }
    };
    let homa = Homa { rpc: chance.below(24), body };
    (homa.opcode(), homa.encode().as_slice().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// What a peer says in words is no truer than what it says in headers: of messages (layout `homa`), and of links and times (`cc`).
    #[test]
    fn no_words_make_it_panic(seed in any::<u64>(), kind in 0usize..7, count in 1u32..400) {
        let mut chance = Chance(seed);
        let cc = Cc::new(true, true, 2).unwrap();
        let (law, recovery, layout) = [
            ("homa", Recovery::GoBackN, Layout::Homa),
            ("homa", Recovery::Irn, Layout::Homa),
            ("hpcc", Recovery::GoBackN, Layout::Cc(cc)),
            ("powertcp", Recovery::GoBackN, Layout::Cc(cc)),
            ("theta-powertcp", Recovery::GoBackN, Layout::Cc(cc)),
            ("swift", Recovery::GoBackN, Layout::Cc(cc)),
            ("nscc", Recovery::GoBackN, Layout::Cc(cc)),
        ][kind];
        let mut engine = Engine::new(EngineConfig::default());
        let law = engine.add_law(Law::from_settings(law, &[], EngineConfig::default().link).unwrap());
        let (key, _) = engine.register(Pd(0), 0, 1 << 20, Access::ALL).unwrap();
        for n in 0..2 {
            let (qpn, peer) = (Some(Qpn::new(2 + n)), Qpn::new(9));
            engine.create_qp(QpConfig { qpn, peer, layout, recovery, law, ..config() }).unwrap();
        }
        let (mut reaction, mut now) = (Reaction::default(), Instant::ZERO);
        for step in 0..count {
            now += roci_units::Span::from_nanos(chance.below(100_000));
            let qpn = Qpn::new(2 + chance.below(2) as u32);
            match chance.below(8) {
                0 => {
                    let operation = match chance.below(3) {
                        0 => Operation::Write { va: 0, rkey: key, tail: Tail::Plain },
                        1 => Operation::Send(Tail::Immediate(1)),
                        _ => Operation::Read { va: 0, rkey: key },
                    };
                    let _ = engine.post_send(now, qpn, &request(u64::from(step), operation, 0, 50 * MTU));
                }
                1 => {
                    let _ = engine.post_recv(qpn, RecvRequest { id: 1, address: 0, length: 60 * MTU, lkey: 0 });
                }
                2 => engine.wake(now),
                3 => drop(engine.transmit(now)),
                _ => {
                    let status = engine.query(qpn).unwrap();
                    let base = if chance.below(2) == 0 { status.send_psn } else { status.receive_psn };
                    let mut header = forged(&mut chance, key, base.get());
                    let (opcode, words) = match layout {
                        Layout::Homa => forged_words(&mut chance),
                        _ => (None, (0..cc.words()).map(|_| chance.below(1 << 32) as u32).collect()),
                    };
                    header.opcode = match opcode {
                        Some(opcode) => opcode,
                        None => [
                            Opcode::WRITE_ONLY, Opcode::WRITE_FIRST, Opcode::WRITE_MIDDLE, Opcode::SEND_ONLY,
                            Opcode::READ_REQUEST, Opcode::READ_RESPONSE_ONLY, Opcode::READ_ACKNOWLEDGE,
                            Opcode::ACKNOWLEDGE,
                        ][chance.below(8) as usize],
                    };
                    header.dest_qpn = qpn;
                    let hops: Vec<Hop> = (0..chance.below(7)).map(|_| Hop {
                        at_ns: chance.below(1 << 32) as u32,
                        tx_bytes: chance.below(1 << 32) as u32,
                        queue_bytes: chance.below(1 << 32) as u32,
                        rate_kbps: [0, 1, 100_000_000, u32::MAX][chance.below(4) as usize],
                    }).collect();
                    let ce = chance.below(4) == 0;
                    let arrival = Arrival { ce, words: &words, hops: &hops, ..Arrival::new(&header, 0) };
                    engine.receive(now, &arrival, &mut reaction);
                    if let Some(placement) = reaction.placement {
                        let end = placement.address.checked_add(u64::from(placement.length));
                        prop_assert!(end.is_some_and(|end| end <= 1 << 20), "{placement:?} leaves the region");
                    }
                }
            }
            while engine.poll_completion().is_some() {}
            while engine.poll_deferral().is_some() {}
            while engine.poll_notice().is_some() {}
        }
    }
}

#[test]
fn a_strangers_packet_changes_nothing_but_a_counter() {
    let (mut engine, key) = engine(Recovery::GoBackN);
    let before = engine.query(Qpn::new(2)).unwrap();
    let mut header = Header::new(Opcode::WRITE_ONLY, Qpn::new(2), Psn::new(0));
    header.set_reth(Reth { va: 0, rkey: key, length: 10 });
    header.payload = 10;
    let mut reaction = Reaction::default();
    let arrival = Arrival { ce: true, ..Arrival::new(&header, 77) };
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    assert_eq!(reaction.refused, Some(Refusal::WrongPeer));
    assert!(reaction.reply.is_none() && reaction.placement.is_none());
    assert_eq!(engine.query(Qpn::new(2)).unwrap(), before);
    assert_eq!(engine.refused(Refusal::WrongPeer), 1);
}

#[test]
fn a_packet_out_of_its_place_in_a_message_ends_the_connection() {
    let (mut engine, _) = engine(Recovery::GoBackN);
    let mut header = Header::new(Opcode::WRITE_MIDDLE, Qpn::new(2), Psn::new(0));
    header.payload = 1024;
    let mut reaction = Reaction::default();
    let arrival = Arrival::new(&header, 0);
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    assert_eq!(reaction.refused, Some(Refusal::Rejected));
    assert_eq!(reaction.reply.unwrap().header.aeth().syndrome, 0x61);
    assert_eq!(engine.query(Qpn::new(2)).unwrap().state, QpState::Error);
}

#[test]
fn a_send_longer_than_its_receive_ends_both_sides() {
    let mut pair = Pair::connected(config());
    pair.post_recv(Server, 5, 8192, 100);
    pair.send(1, 0, 101);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::RemoteInvalidRequestError)]);
    assert_eq!(pair.server.ended(), [(5, Status::LocalLengthError)]);
}

#[test]
fn a_send_with_invalidate_takes_the_key_away() {
    let mut pair = Pair::connected(config());
    let pd = pair.server.pd;
    let (key, _) = pair.server.engine.register(pd, 0, 4096, Access::ALL).unwrap();
    pair.post_recv(Server, 5, 8192, 100);
    pair.post(crate::pair::Client, request(1, Operation::Send(Tail::Invalidate(key)), 0, 10));
    let write = Operation::Write { va: 0, rkey: key, tail: Tail::Plain };
    pair.post(crate::pair::Client, request(2, write, 0, 10));
    pair.run();
    assert_eq!(pair.server.completions[0].tail, Tail::Invalidate(key));
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::RemoteAccessError)]);
}

#[test]
fn a_datagram_finds_its_receive_and_says_who_sent_it() {
    let config = QpConfig { service: Service::Ud, q_key: 11, ..config() };
    let mut pair = Pair::connected(config);
    pair.post_recv(Server, 5, 8192, 4096);
    let qpn = pair.server.qpns[0];
    for (id, q_key) in [(1, 12), (2, 11)] {
        let operation = Operation::Datagram { path: 9, qpn, q_key, tail: Tail::Immediate(3) };
        pair.post(crate::pair::Client, request(id, operation, 0, 100));
    }
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.server.refused, [Refusal::Datagram], "the wrong queue key");
    let received = pair.server.completions[0];
    assert_eq!((received.id, received.length, received.source), (5, 100, Some((9, qpn))));
    assert_eq!(received.kind, CompletionKind::Recv);
    pair.assert_copied(0, 8192, 100);
}

#[test]
fn a_datagram_leaves_room_for_a_header_in_a_request_that_fits_both_and_ends_one_that_does_not() {
    let config = QpConfig { service: Service::Ud, header_room: 40, ..config() };
    let mut pair = Pair::connected(config);
    let qpn = pair.server.qpns[0];
    for (id, (at, length)) in (0..).zip([(8192, 139), (16_384, 140), (0, 39), (24_576, 40)]) {
        pair.post_recv(Server, id, at, length);
    }
    for (id, length) in (0..).zip([100, 100, 0, 0]) {
        let operation = Operation::Datagram { path: 9, qpn, q_key: 0, tail: Tail::Plain };
        pair.post(crate::pair::Client, request(id, operation, 0, length));
    }
    pair.run();
    let (short, good) = (Status::LocalLengthError, Status::Success);
    assert_eq!(pair.server.ended(), [(0, short), (1, good), (2, short), (3, good)]);
    let lengths: Vec<_> = pair.server.completions.iter().map(|it| it.length).collect();
    assert_eq!(lengths, [0, 100, 0, 0], "of the datagram alone");
    assert_eq!(pair.server.refused, [Refusal::Datagram; 2]);
    pair.assert_copied(0, 16_384 + 40, 100);
}

#[test]
fn queue_pairs_share_a_receive_queue() {
    let mut server = Engine::new(EngineConfig::default());
    let srq = server.create_srq();
    let mut client = Engine::new(EngineConfig::default());
    assert_eq!(client.create_srq(), srq);
    let mut pair = Pair::with_engines(client, server, QpConfig { srq: Some(srq), ..config() }, 3);
    let (pd, lkey) = (pair.server.pd, pair.server.key);
    for id in 0..3 {
        let recv = RecvRequest { id, address: 8192 + id * 1024, length: 1024, lkey };
        pair.server.engine.post_recv(RecvTarget::Srq(srq, pd), recv).unwrap();
        let own = pair.server.engine.post_recv(pair.server.qpns[0], recv);
        assert_eq!(own, Err(PostError::Shared));
    }
    for qp in 0..3 {
        pair.post_on(crate::pair::Client, qp, request(qp as u64, Operation::Send(Tail::Plain), 0, 100));
    }
    pair.run();
    assert_eq!(pair.client.completions.len(), 3);
    assert_eq!(pair.server.ended().iter().map(|end| end.0).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_error_state_flushes_what_was_posted_and_what_is_posted() {
    let mut pair = Pair::connected(config());
    pair.post_recv(crate::pair::Client, 30, 0, 100);
    pair.write(1, 0, 4096, 100);
    pair.write(2, 0, 4096, 100);
    let qpn = pair.client.qpns[0];
    let change = roci_transport::Change { transition: Some(Transition::Fail), ..Default::default() };
    pair.client.engine.modify_qp(Instant::ZERO, qpn, &change).unwrap();
    pair.write(3, 0, 4096, 100);
    pair.run();
    let flushed = Status::WorkRequestFlushed;
    assert_eq!(pair.client.ended(), [(1, flushed), (2, flushed), (30, flushed), (3, flushed)]);
    assert!(pair.client.sent.is_empty());
}

#[test]
fn a_queue_pair_is_connected_step_by_step() {
    let mut engine = Engine::new(EngineConfig::default());
    let qpn = engine.create_qp(QpConfig { state: QpState::Reset, ..config() }).unwrap();
    let send = request(1, Operation::Send(Tail::Plain), 0, 1);
    assert_eq!(engine.post_send(Instant::ZERO, qpn, &send), Err(PostError::State(QpState::Reset)));
    let step = |engine: &mut Engine, transition| {
        let change = roci_transport::Change {
            transition: Some(transition),
            peer: Some(Qpn::new(8)),
            ..Default::default()
        };
        engine.modify_qp(Instant::ZERO, qpn, &change)
    };
    assert_eq!(
        step(&mut engine, Transition::Send),
        Err(QpError::Transition(QpState::Reset, Transition::Send))
    );
    for way in [Transition::Initialize, Transition::Receive, Transition::Send] {
        step(&mut engine, way).unwrap();
    }
    engine.post_send(Instant::ZERO, qpn, &send).unwrap();
    assert_eq!(engine.transmit(Instant::ZERO).unwrap().header.dest_qpn, Qpn::new(8));
    engine.destroy_qp(qpn).unwrap();
    assert_eq!(engine.query(qpn), Err(QpError::Unknown(qpn)));
    assert_eq!(engine.next_wakeup(), None, "its timers are gone");
    assert!(engine.transmit(Instant::ZERO).is_none());
}

#[test]
fn selective_repeat_without_its_layout_is_refused() {
    let mut engine = Engine::new(EngineConfig::default());
    let config = QpConfig { recovery: Recovery::Irn, ..config() };
    assert!(matches!(engine.create_qp(config), Err(QpError::Conflict(_))));
}

#[test]
fn a_packet_without_its_payload_is_a_gap() {
    let (mut engine, key) = engine(Recovery::GoBackN);
    let mut reaction = Reaction::default();
    let mut header = Header::new(Opcode::WRITE_ONLY, Qpn::new(2), config().receive_psn);
    header.set_reth(Reth { va: 0, rkey: key, length: 8 });
    header.flags = Flags::ACK_REQUEST.with(Flags::TRIMMED);
    let mut arrive = |engine: &mut Engine, header: &Header| {
        let arrival = Arrival::new(header, config().path);
        engine.receive(Instant::ZERO, &arrival, &mut reaction);
        (reaction.refused, reaction.reply.take().map(|reply| reply.header.aeth().syndrome))
    };
    let nak = roci_wire::Syndrome::Nak(roci_wire::NakCode::PsnSequenceError).to_u8();
    assert_eq!(arrive(&mut engine, &header), (Some(Refusal::OutOfSequence), Some(nak)));
    assert_eq!(arrive(&mut engine, &header), (Some(Refusal::OutOfSequence), None), "one NAK for a gap");
    header.flags = Flags::ACK_REQUEST;
    header.payload = 8;
    let (refused, syndrome) = arrive(&mut engine, &header);
    assert!(
        refused.is_none() && syndrome.is_some_and(|syndrome| syndrome < 0x20),
        "{refused:?} {syndrome:?}"
    );
}

#[test]
fn an_acknowledgement_of_read_responses_is_refused_and_does_no_harm() {
    let (mut engine, _) = engine(Recovery::Irn);
    let qpn = Qpn::new(2);
    let before = engine.query(qpn).unwrap();
    let header = Header::new(Opcode::READ_ACKNOWLEDGE, qpn, Psn::new(0));
    let mut reaction = Reaction::default();
    let arrival = Arrival::new(&header, 0);
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    assert_eq!(reaction.refused, Some(Refusal::UnexpectedResponse));
    assert!(reaction.reply.is_none());
    assert_eq!(engine.query(qpn).unwrap(), before);
}

#[test]
fn selective_repeat_never_tells_of_more_octets_than_the_buffer_has_nor_takes_a_key_away_for_them() {
    let (mut engine, key) = engine(Recovery::Irn);
    let qpn = Qpn::new(2);
    engine.post_recv(qpn, RecvRequest { id: 1, address: 0, length: 2 * MTU, lkey: 0 }).unwrap();
    let mut reaction = Reaction::default();
    for n in 0..10 {
        let opcode =
            [Opcode::SEND_FIRST, Opcode::SEND_MIDDLE, Opcode::SEND_LAST_INVALIDATE][(n + 7) as usize / 8];
        let mut header = Header::new(opcode, qpn, Psn::new(n));
        header.payload = 1024;
        header.set_immediate(key);
        // All of them say that they are the first packet's octets.
        header.set_send_position(SendPosition { ssn: 0, offset: 0 });
        let arrival = Arrival::new(&header, 0);
        engine.receive(Instant::ZERO, &arrival, &mut reaction);
        assert_eq!(reaction.refused.is_some(), n == 9);
    }
    let completion = engine.poll_completion().unwrap();
    assert_eq!((completion.status, completion.length), (Status::LocalLengthError, 2 * MTU));
    assert_eq!(completion.tail, Tail::Plain);
    assert_eq!(engine.invalidate(Pd(0), key), Ok(()), "it is valid still");
    assert_eq!(engine.query(qpn).unwrap().state, QpState::Error);
    let reply = reaction.reply.unwrap().header;
    assert_eq!(reply.psn, Psn::new(9), "the message is not acknowledged");
    assert_eq!(Syndrome::from_u8(reply.aeth().syndrome), Some(Syndrome::Nak(NakCode::InvalidRequest)));
}

/// An engine that has asked for the 2500 octets of a READ, and has a WRITE behind it.
fn asker(recovery: Recovery) -> Engine {
    let layout = if recovery == Recovery::GoBackN { Layout::Standard } else { Layout::Irn };
    let mut engine = Engine::new(EngineConfig::default());
    let config = QpConfig { qpn: Some(Qpn::new(2)), peer: Qpn::new(9), recovery, layout, ..config() };
    engine.create_qp(config).unwrap();
    let read = Operation::Read { va: 0, rkey: 1 };
    let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
    for (id, operation, length) in [(1, read, 2500), (2, write, 10)] {
        engine.post_send(Instant::ZERO, Qpn::new(2), &request(id, operation, 0, length)).unwrap();
    }
    assert!(engine.transmit(Instant::ZERO).is_some());
    engine
}

/// Has the engine receive a packet of READ data from `path`; why it was refused, and whether anything of it was placed.
fn data(
    engine: &mut Engine,
    opcode: Opcode,
    path: u64,
    qpn: u32,
    psn: u32,
    payload: u16,
) -> (Option<Refusal>, bool) {
    let mut header = Header::new(opcode, Qpn::new(qpn), Psn::new(psn));
    header.payload = payload;
    header.set_aeth(Aeth { syndrome: 0x1f, msn: 1 });
    let mut reaction = Reaction::default();
    let arrival = Arrival::new(&header, path);
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    (reaction.refused, reaction.placement.is_some())
}

const FIRST: Opcode = Opcode::READ_RESPONSE_FIRST;
const MIDDLE: Opcode = Opcode::READ_RESPONSE_MIDDLE;
const LAST: Opcode = Opcode::READ_RESPONSE_LAST;
const FULL: u16 = MTU as u16;

#[test]
fn read_data_of_a_wrong_length_end_the_read_as_a_bad_response() {
    for recovery in [Recovery::GoBackN, Recovery::Irn] {
        let right = [(FIRST, FULL), (MIDDLE, FULL), (LAST, 2500 - 2 * FULL)];
        for (place, opcode, payload) in [
            (0, FIRST, FULL - 1),
            (0, Opcode::READ_RESPONSE_ONLY, FULL),
            (0, FIRST, 0),
            (1, MIDDLE, FULL + 1),
            (1, LAST, FULL),
            (2, LAST, 2500 - 2 * FULL - 1),
            (2, LAST, FULL),
            (2, MIDDLE, 2500 - 2 * FULL),
        ] {
            let mut engine = asker(recovery);
            for (psn, (opcode, payload)) in (0..place).zip(right) {
                assert_eq!(data(&mut engine, opcode, 0, 2, psn, payload), (None, true));
            }
            let what = format!("{recovery:?}: {opcode:?} of {payload} at {place}");
            let refused = (Some(Refusal::UnexpectedResponse), false);
            assert_eq!(data(&mut engine, opcode, 0, 2, place, payload), refused, "{what}");
            let ended: Vec<_> =
                std::iter::from_fn(|| engine.poll_completion()).map(|c| (c.id, c.status)).collect();
            let ends = [(1, Status::BadResponseError), (2, Status::WorkRequestFlushed)];
            assert_eq!(ended, ends, "{what}");
            assert_eq!(engine.query(Qpn::new(2)).unwrap().state, QpState::Error, "{what}");
        }
    }
}

#[test]
fn read_data_of_a_wrong_length_that_are_not_the_next_from_the_peer_end_nothing() {
    for recovery in [Recovery::GoBackN, Recovery::Irn] {
        let mut engine = asker(recovery);
        assert_eq!(data(&mut engine, FIRST, 0, 2, 0, FULL), (None, true));
        let before = engine.query(Qpn::new(2)).unwrap();
        for (path, qpn, psn) in
            [(77, 2, 1), (0, 3, 1), (0, 2, 0), (0, 2, 2), (0, 2, 3), (0, 2, 1 << 20), (0, 2, 0x00ff_ffff)]
        {
            for (opcode, payload) in [(MIDDLE, 7), (LAST, 7), (Opcode::READ_RESPONSE_ONLY, FULL)] {
                let (refused, placed) = data(&mut engine, opcode, path, qpn, psn, payload);
                assert!(
                    refused.is_some() && !placed,
                    "{recovery:?}: {opcode:?} from {path} for {qpn} at {psn}"
                );
            }
        }
        assert_eq!(engine.query(Qpn::new(2)).unwrap(), before, "{recovery:?}");
        assert!(engine.poll_completion().is_none());
        assert_eq!(data(&mut engine, MIDDLE, 0, 2, 1, FULL), (None, true));
        assert_eq!(data(&mut engine, LAST, 0, 2, 2, 2500 - 2 * FULL), (None, true));
        assert_eq!(
            engine.poll_completion().map(|c| (c.id, c.status)),
            Some((1, Status::Success)),
            "{recovery:?}"
        );
    }
}
