//! When a sender gives up, and what it leaves behind.

use crate::pair::{ALL_DEFERRED, Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_transport::{
    Arrival, Change, Deferred, Engine, EngineConfig, Incident, Operation, QpConfig, Reaction, Recovery,
    RecvRequest, RecvTarget, Refusal, Status, Tail, Transition,
};
use roci_units::{Instant, Psn, Span};
use roci_wire::layout::srnic::RequestPosition;
use roci_wire::{Flags, Header, Layout, Opcode, Shape};

const EXCEEDED: Status = Status::TransportRetryCounterExceeded;

#[test]
fn a_nak_costs_a_retry_and_without_one_the_first_lost_packet_is_the_end() {
    for (retry, ends) in [(0, EXCEEDED), (1, Status::Success)] {
        let mut pair = Pair::connected(QpConfig { retry, ..config() }).fate(1, Fate::Drop);
        pair.write(1, 0, 4096, 4 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, ends)]);
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.naks, counters.timeouts), (1, 0));
    }
}

#[test]
fn progress_restores_the_retries() {
    // Each time that all is sent again one packet more gets through.
    let (mut time, mut last) = (0, 0);
    let mut pair = Pair::connected(QpConfig { retry: 1, ..config() }).script(move |side, _, packet, _| {
        let psn = packet.header.psn.get();
        if side == Server {
            return Fate::Pass;
        }
        time += u32::from(psn < last);
        last = psn;
        if psn == time && time < 8 { Fate::Drop } else { Fate::Pass }
    });
    pair.write(1, 0, 4096, 10 * MTU);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).naks, 8);
}

#[test]
fn nak_and_timeouts_for_one_packet_are_spent_from_the_same_count() {
    // The second packet never arrives: one NAK, and then a timeout for each retry that is left, and the last.
    let never = |side, _: usize, packet: &crate::pair::Packet, _: &mut _| {
        if side == Client && packet.header.psn.get() == 1 { Fate::Drop } else { Fate::Pass }
    };
    for retry in [0, 1, 3, 7] {
        let mut pair = Pair::connected(QpConfig { retry, ..config() }).script(never);
        pair.write(1, 0, 4096, 4 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, EXCEEDED)]);
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.naks, counters.timeouts), (1, retry.into()));
        assert_eq!(pair.client.story().iter().filter(|word| *word == "w1!").count(), 1 + usize::from(retry));
    }
}

#[test]
fn a_nak_that_comes_twice_costs_one_retry_and_draws_one_retransmission() {
    let mut pair = Pair::connected(QpConfig { retry: 1, ..config() }).fate(1, Fate::Drop).fate_of(
        Server,
        1,
        Fate::Duplicate,
    );
    pair.write(1, 0, 4096, 3 * MTU);
    pair.run();
    assert_eq!(pair.server.story(), ["ack0", "nak1:0", "ack1", "ack2"]);
    assert_eq!(pair.client.story(), ["w0!", "w1!", "w2!", "w1!", "w2!"]);
    assert_eq!(pair.client.refused, [Refusal::Duplicate]);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_read_response_that_is_missing_costs_a_retry() {
    for (retry, ends) in [(0, EXCEEDED), (1, Status::Success)] {
        let mut pair = Pair::connected(QpConfig { retry, ..config() }).fate_of(Server, 1, Fate::Drop);
        pair.read(1, 0, 4096, 4 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, ends)]);
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    }
}

#[test]
fn a_read_response_that_is_missing_after_a_timeout_is_asked_for_at_once() {
    // The second response is lost three times: it is asked for, then missed by the timer, then asked for again.
    let mut pair = Pair::connected(config()).script(|side, n, packet, _| {
        let lost = side == Server && packet.header.psn.get() == 1 && n < 8;
        if lost { Fate::Drop } else { Fate::Pass }
    });
    pair.read(1, 0, 4096, 4 * MTU);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert_eq!(pair.client.story(), ["read0", "read1", "read1", "read1"]);
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 1);
}

#[test]
fn what_selective_repeat_hears_of_single_packets_costs_nothing() {
    for (recovery, layout) in [(Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)] {
        let mut pair = Pair::connected(QpConfig { retry: 0, recovery, layout, ..config() })
            .fate(1, Fate::Drop)
            .fate(4, Fate::Drop);
        pair.write(1, 0, 4096, 8 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)], "{recovery:?}");
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert!(counters.naks >= 2 && counters.timeouts == 0, "{recovery:?}: {counters:?}");
    }
}

#[test]
fn an_rnr_nak_that_comes_twice_costs_one_retry() {
    for doubled in [Client, Server] {
        let wait = Span::from_micros(20);
        let mut pair = Pair::connected(QpConfig { rnr_retry: 1, min_rnr_timer: wait, ..config() }).fate_of(
            doubled,
            0,
            Fate::Duplicate,
        );
        pair.send(1, 0, 100);
        pair.run_until(pair.now + Span::from_micros(10));
        pair.post_recv(Server, 7, 8192, 100);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert_eq!(pair.client.refused, [Refusal::Duplicate]);
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).rnr, 1);
        assert_eq!(pair.client.story(), ["s0!", "s0!"]);
    }
}

/// The requester is told of each packet by itself, and takes messages for carried out of which all packets came.
#[test]
fn what_came_whole_behind_a_gap_ends_well_when_the_queue_pair_fails_before_the_slow_path_has_decided() {
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    for (order, ends) in [
        (vec![1, 0, 2], [Status::Success, Status::Success, Status::Success]),
        (vec![0, 2], [Status::Success, Status::WorkRequestFlushed, Status::WorkRequestFlushed]),
    ] {
        let mut engine = Engine::new(EngineConfig::default());
        let deferred = Deferred { recovery: true, ..Deferred::default() };
        let (recovery, layout) = (Recovery::Srnic, Layout::Srnic);
        let qpn = engine.create_qp(QpConfig { recovery, layout, deferred, ..config() }).unwrap();
        for id in 0..3 {
            engine.post_recv(qpn, RecvRequest { id, address: 0, length: MTU, lkey: 0 }).unwrap();
        }
        for number in order {
            let mut header = Header::new(Opcode::SEND_ONLY, qpn, Psn::new(number));
            header.payload = 100;
            header.set_request_position(RequestPosition { msn: number, psn_offset: 0, ssn: number as u16 });
            let arrival = Arrival::new(&header, 0);
            let mut reaction = Reaction::default();
            engine.receive(Instant::ZERO, &arrival, &mut reaction);
            assert_eq!(reaction.refused, None);
        }
        engine.modify_qp(Instant::ZERO, qpn, &fail).unwrap();
        let told: Vec<_> =
            std::iter::from_fn(|| engine.poll_completion()).map(|c| (c.id, c.status)).collect();
        assert_eq!(told, [(0, ends[0]), (1, ends[1]), (2, ends[2])]);
        assert_eq!(engine.bitmaps_taken(), 0);
    }
}

#[test]
fn a_failure_is_told_once_to_who_wants_to_hear_of_it_though_it_completes_nothing() {
    let to = |transition| Change { transition: Some(transition), ..Change::default() };
    for wanted in [true, false] {
        let mut engine = Engine::new(EngineConfig::default());
        let qpn = engine.create_qp(config()).unwrap();
        if wanted {
            engine.tell_incidents();
        }
        for _ in 0..2 {
            engine.modify_qp(Instant::ZERO, qpn, &to(Transition::Fail)).unwrap();
            engine.modify_qp(Instant::ZERO, qpn, &to(Transition::Fail)).unwrap();
            assert_eq!(engine.has_told(), wanted);
            let told = [engine.poll_incident(), engine.poll_incident()];
            assert_eq!(told, [wanted.then_some(Incident::Failed(qpn)), None]);
            assert!(!engine.has_told() && engine.poll_completion().is_none());
            engine.modify_qp(Instant::ZERO, qpn, &to(Transition::Reset)).unwrap();
            engine.modify_qp(Instant::ZERO, qpn, &to(Transition::Initialize)).unwrap();
        }
    }
}

#[test]
fn as_many_receivers_have_bitmaps_as_are_allowed_and_who_finds_none_is_counted() {
    for (config_of_engine, pairs, kept) in [
        (EngineConfig { bitmaps_max: 1, ..EngineConfig::default() }, 3, 1),
        (EngineConfig::default(), 3000, 3000),
    ] {
        let mut engine = Engine::new(config_of_engine);
        let irn = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, ..config() };
        let mut refused = 0;
        for _ in 0..pairs {
            let qpn = engine.create_qp(irn).unwrap();
            let mut header = Header::new(Opcode::SEND_ONLY, qpn, Psn::new(1));
            header.payload = 100;
            engine.post_recv(qpn, RecvRequest { id: 0, address: 0, length: MTU, lkey: 0 }).unwrap();
            engine.post_recv(qpn, RecvRequest { id: 1, address: 0, length: MTU, lkey: 0 }).unwrap();
            let arrival = Arrival::new(&header, 0);
            let mut reaction = Reaction::default();
            engine.receive(Instant::ZERO, &arrival, &mut reaction);
            refused += u64::from(reaction.refused == Some(Refusal::OutOfSequence));
        }
        assert_eq!((engine.bitmaps_taken(), engine.bitmaps_refused()), (kept, refused));
        assert_eq!(refused, u64::from(pairs - kept));
    }
}

/// A sender that gives up says nothing: half of its message is there, and may yet be followed by the rest.
#[test]
fn a_send_that_began_keeps_its_shared_receive_request_until_its_queue_pair_fails() {
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    for (recovery, layout) in [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn)] {
        let engine = |seed| Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        let (mut client, mut server) = (engine(1), engine(2));
        let srq = server.create_srq();
        client.create_srq();
        let config = QpConfig { srq: Some(srq), retry: 0, recovery, layout, ..config() };
        let mut pair = Pair::with_engines(client, server, config, 2).script(|_, _, packet, _| {
            if packet.header.opcode == Opcode::SEND_LAST { Fate::Drop } else { Fate::Pass }
        });
        let (pd, lkey) = (pair.server.pd, pair.server.key);
        let recv = |id| RecvRequest { id, address: 8192, length: 4096, lkey };
        pair.server.engine.post_recv(RecvTarget::Srq(srq, pd), recv(0)).unwrap();
        assert_eq!(pair.server.engine.receives_waiting(srq), 1);
        pair.post_on(Client, 0, request(1, Operation::Send(Tail::Plain), 0, 2 * MTU));
        pair.run();
        assert_eq!(pair.client.ended(), [(1, EXCEEDED)]);
        assert_eq!((pair.server.engine.receives_waiting(srq), pair.server.ended()), (0, Vec::new()));

        pair.post_on(Client, 1, request(2, Operation::Send(Tail::Plain), 0, 100));
        pair.run_until(pair.now + Span::from_micros(100));
        assert_eq!(pair.client.completions.len(), 1, "the other queue pair waits");
        let (now, qpn) = (pair.now, pair.server.qpns[0]);
        pair.server.engine.modify_qp(now, qpn, &fail).unwrap();
        pair.server.engine.post_recv(RecvTarget::Srq(srq, pd), recv(3)).unwrap();
        pair.run();
        assert_eq!(pair.server.ended(), [(0, Status::WorkRequestFlushed), (3, Status::Success)]);
        assert_eq!(pair.client.ended()[1], (2, Status::Success));
    }
}

#[test]
fn what_came_ahead_of_its_turn_and_found_no_receive_is_asked_for_when_its_turn_has_come() {
    for (recovery, layout) in [
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Sack, Layout::Irn),
        (Recovery::NewReno, Layout::Srnic),
    ] {
        for late in [false, true] {
            let timeout = Span::from_millis(100);
            let config = QpConfig { recovery, layout, timeout, ..config() };
            let config = if late { QpConfig { deferred: ALL_DEFERRED, ..config } } else { config };
            let mut pair = Pair::connected(config).fate(0, Fate::Delay(Span::from_micros(20)));
            if late {
                pair = pair.late(5);
            }
            for id in 0..12 {
                pair.send(id, 0, 64);
            }
            // A receive request from time to time.
            for step in 0..40 {
                if step < 12 {
                    pair.post_recv(Server, step, 0, 64);
                }
                pair.run_until(Instant::ZERO + Span::from_millis(step + 1));
            }
            let ended = pair.client.ended();
            assert_eq!(ended.len(), 12, "{recovery:?}, {late}: {ended:?}");
            let counters = pair.client.engine.counters(pair.client.qpns[0]);
            assert_eq!(counters.timeouts, 0, "{recovery:?}, {late}");
        }
    }
}

#[test]
fn the_timeout_of_few_packets_in_flight_is_put_off_where_more_have_followed_the_first() {
    // A round trip of 50 us lies between RTO_low, 31 us, and RTO_high.
    for reads in [false, true] {
        for (packets, in_time) in [(2, false), (3, false), (4, true), (60, true)] {
            let timeout = Span::from_micros(100);
            let config = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, timeout, ..config() };
            let mut pair = Pair::connected(config).apart(Span::from_micros(25));
            let qpn = if reads {
                pair.read(1, 0, 0, packets * MTU);
                pair.server.qpns[0]
            } else {
                pair.write(1, 0, 0, packets * MTU);
                pair.client.qpns[0]
            };
            pair.run();
            assert_eq!(pair.client.ended(), [(1, Status::Success)]);
            let node = if reads { &pair.server } else { &pair.client };
            let timeouts = node.engine.counters(qpn).timeouts;
            assert_eq!(timeouts == 0, in_time, "{packets} packets, reads: {reads}");
        }
    }
}

#[test]
fn a_timeout_that_was_put_off_comes_at_the_later_one_and_repairs_the_loss() {
    // Nothing of the burst arrives, and it has more than the few packets that RTO_low, 31 us, is for.
    let timeout = Span::from_micros(100);
    let config = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, timeout, ..config() };
    let lost = |side, number: usize, _: &crate::pair::Packet, _: &mut _| {
        if side == Client && number < 8 { Fate::Drop } else { Fate::Pass }
    };
    let mut pair = Pair::connected(config).script(lost);
    pair.write(1, 0, 0, 8 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(99));
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    pair.run_until(Instant::ZERO + Span::from_micros(101));
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 1);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn read_data_that_are_lost_are_sent_again_in_time_however_many_requests_go_the_same_way() {
    // One timer serves the deadlines of both, and each WRITE that is posted sets that of requests anew.
    for recovery in [Recovery::Irn, Recovery::Srnic, Recovery::NewReno, Recovery::Sack, Recovery::Reno] {
        let layout = if recovery == Recovery::Srnic { Layout::Srnic } else { Layout::Irn };
        let config = QpConfig { recovery, layout, timeout: Span::from_micros(100), ..config() };
        let mut lost = false;
        let mut pair = Pair::connected(config).script(move |side, _, packet, _| {
            let is_data = packet.header.opcode.shape().has(Shape::RESPONSE) && !packet.payload.is_empty();
            let loses = side == Server && is_data && !lost;
            lost |= loses;
            if loses { Fate::Drop } else { Fate::Pass }
        });
        pair.read(1, 0, 0, MTU);
        let (rkey, mut posted) = (pair.client.key, 0);
        while pair.client.ended().is_empty() {
            assert!(pair.now < Instant::ZERO + Span::from_micros(150), "{recovery:?}: after {posted} WRITEs");
            if pair.server.completions.len() == posted {
                posted += 1;
                let write = Operation::Write { va: 8192, rkey, tail: Tail::Plain };
                pair.post(Server, request(100, write, 4096, MTU));
            }
            pair.run_until(pair.now + Span::from_micros(3));
        }
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert!(posted > 5, "{posted}");
    }
}

/// Pairs whose client is to WRITE as many packets, or whose server is to answer a READ of as many, and whether they READ. With
/// go-back-N there is no such READ, for nothing acknowledges its data.
fn with_data_to_send(config: &QpConfig, packets: u32) -> Vec<(bool, Pair)> {
    let mut writes = Pair::connected(*config);
    writes.write(1, 0, 0, packets * MTU);
    let mut pairs = vec![(false, writes)];
    if config.recovery != Recovery::GoBackN {
        let mut reads = Pair::connected(*config);
        reads.read(1, 0, 0, packets * MTU);
        let asked = reads.client.engine.transmit(Instant::ZERO).expect("the request");
        let arrival = Arrival::new(&asked.header, 9);
        reads.server.engine.receive(Instant::ZERO, &arrival, &mut Reaction::default());
        pairs.push((true, reads));
    }
    pairs
}

#[test]
fn no_timeout_comes_before_anything_in_flight_has_asked_for_an_answer() {
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let kinds = [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::NewReno, Layout::Irn),
        (Recovery::Sack, Layout::Irn),
    ];
    // The turns of a queue pair among many, none of whose packets arrives. The fourth asks, long after the first, or who sends next
    // after the timer.
    let by_number = [
        (0, true, (false, 0)),
        (40, true, (false, 0)),
        (80, true, (false, 0)),
        (95, true, (true, 0)),
        (194, false, (false, 0)),
        (195, false, (false, 1)),
    ];
    let by_time = [
        (0, true, (false, 0)),
        (90, true, (false, 0)),
        (150, false, (false, 0)),
        (290, true, (true, 0)),
        (389, false, (false, 0)),
        (390, false, (false, 1)),
    ];
    for ((recovery, layout), turns) in kinds.into_iter().flat_map(|kind| [(kind, by_number), (kind, by_time)])
    {
        let timeout = Span::from_micros(100);
        let config = QpConfig { recovery, layout, timeout, ack_every: 4, ..config() };
        for (reads, mut pair) in with_data_to_send(&config, 8) {
            let node = if reads { &mut pair.server } else { &mut pair.client };
            let mut turn = |us, sends: bool| {
                node.engine.wake(at(us));
                let asks = sends.then(|| node.engine.transmit(at(us)).expect("more to send").last_flags);
                let timeouts = node.engine.counters(node.qpns[0]).timeouts;
                (asks.is_some_and(|flags| flags.has(Flags::ACK_REQUEST)), timeouts)
            };
            for (us, sends, expected) in turns {
                assert_eq!(turn(us, sends), expected, "{recovery:?}, reads: {reads}, {us} us");
            }
        }
    }
}

#[test]
fn a_dead_peer_is_found_out_a_turn_after_the_timer_whatever_asks_seldom() {
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let kinds = [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Irn, Layout::Irn),
    ];
    for (recovery, layout) in kinds {
        let timeout = Span::from_micros(100);
        let config = QpConfig { recovery, layout, timeout, ack_every: 255, ..config() };
        for (reads, mut pair) in with_data_to_send(&config, 1000) {
            let node = if reads { &mut pair.server } else { &mut pair.client };
            let failed = (0..100_000u64).step_by(10).find(|&us| {
                node.engine.wake(at(us));
                if us % 90 == 0 {
                    let _ = node.engine.transmit(at(us));
                }
                !node
                    .engine
                    .query(node.qpns[0])
                    .is_ok_and(|qp| qp.state == roci_transport::QpState::ReadyToSend)
            });
            assert!(failed.is_some_and(|us| us <= 1200), "{recovery:?}, reads: {reads}: {failed:?}");
        }
    }
}

#[test]
fn a_congestion_window_that_shuts_behind_what_has_not_asked_stops_nobody_for_ever() {
    let at = |us| Instant::ZERO + Span::from_micros(us);
    for recovery in [Recovery::Reno, Recovery::NewReno] {
        let timeout = Span::from_micros(100);
        let config = QpConfig {
            recovery,
            layout: Layout::Irn,
            timeout,
            ack_every: 255,
            initial_window: 40,
            ..config()
        };
        let mut pair = Pair::connected(config);
        pair.write(1, 0, 0, 900 * MTU);
        let node = &mut pair.client;
        let qpn = node.qpns[0];
        let acknowledge = |engine: &mut Engine, now, psn| {
            let mut header = Header::new(Opcode::ACKNOWLEDGE, qpn, Psn::new(psn));
            header.set_aeth(roci_wire::Aeth { syndrome: 0x1f, msn: 0 });
            let arrival = Arrival::new(&header, 9);
            engine.receive(now, &arrival, &mut Reaction::default());
        };
        // The whole window goes, and the first of it is acknowledged again and again: so is what was sent twice.
        while node.engine.transmit(at(0)).is_some() {}
        (0..60).for_each(|_| acknowledge(&mut node.engine, at(10), 9));
        // Some of what that lets go does, one of them asking, and then all but what followed that one is acknowledged.
        let (mut last, mut since, mut now) = (0, 0, 10);
        while since < 25 {
            now += 1;
            let sent = node.engine.transmit(at(now)).expect("more to send");
            (last, since) = if sent.last_flags.has(Flags::ACK_REQUEST) {
                (sent.header.psn.get(), 0)
            } else {
                (last, since + 1)
            };
        }
        let last = if last < 40 { 39 } else { last };
        acknowledge(&mut node.engine, at(now + 1), last);
        let before = node.engine.counters(qpn).packets;
        for us in now + 1..now + 1_000 {
            node.engine.wake(at(us));
            while node.engine.transmit(at(us)).is_some() {}
        }
        let counters = node.engine.counters(qpn);
        assert!(counters.packets > before, "{recovery:?}: it waits for ever, {last} {since} {counters:?}");
    }
}

/// It has a WRITE under way that is lost, and owes a READ, whose data come after the WRITE's deadline; a request in between that it
/// refuses fails it, and its responses still go. Nothing ends the wait for their acknowledgements but that it has failed.
#[test]
fn responses_that_go_in_the_error_state_leave_no_timer_that_is_due_for_ever() {
    for (recovery, seed) in
        [Recovery::Irn, Recovery::NewReno].into_iter().flat_map(|it| (0..20).map(move |seed| (it, seed)))
    {
        let config = QpConfig {
            layout: Layout::Irn,
            recovery,
            timeout: Span::from_micros(16),
            deferred: ALL_DEFERRED,
            ..config()
        };
        let mut pair = Pair::connected(config).late(seed).script(|side, _, packet, _| {
            let is_lost = side == Client && packet.header.opcode == Opcode::WRITE_ONLY;
            if is_lost { Fate::Drop } else { Fate::Pass }
        });
        pair.write(1, 0, 0, 10);
        pair.run_until(Instant::ZERO + Span::from_micros(3));
        let rkey = pair.client.key;
        pair.post(Server, request(2, Operation::Read { va: 0, rkey }, 4096, 2 * MTU));
        let elsewhere = Operation::Write { va: 0, rkey: rkey ^ 1, tail: Tail::Plain };
        pair.post(Server, request(3, elsewhere, 0, 10));
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::WorkRequestFlushed)], "{recovery:?} {seed}");
    }
}
