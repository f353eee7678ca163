//! Queue pairs that have room under way together, and those that wait for it.

use crate::pair::{Client, Fate, Pair, Side};
use crate::scripts::{MTU, config, request};
use roci_transport::{
    Access, Change, Engine, EngineConfig, Operation, Pd, QpConfig, Recovery, SendRequest, Status, Tail,
    Transition, Until,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::{Layout, Opcode};
use std::sync::{Arc, Mutex};

/// An engine with room for `packets` under way, and so many queue pairs that WRITE nine packets each.
fn engine(packets: u32, qps: u32) -> (Engine, Vec<Qpn>) {
    let mut engine = Engine::new(EngineConfig::default());
    engine.bound_flight(packets);
    let (lkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let qpns: Vec<_> = (0..qps).map(|_| engine.create_qp(config()).unwrap()).collect();
    for &qpn in &qpns {
        let write = request(1, Operation::Write { va: 0, rkey: 7, tail: Tail::Plain }, 0, 9 * MTU);
        engine.post_send(Instant::ZERO, qpn, &SendRequest { lkey, ..write }).unwrap();
    }
    (engine, qpns)
}

/// Engines with room for `packets` under way, by their seeds.
fn bounded(packets: u32) -> impl Fn(u64) -> Engine {
    move |seed| {
        let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        engine.bound_flight(packets);
        engine
    }
}

/// Posts a WRITE of so many packets at the client.
fn write(pair: &mut Pair, qp: usize, id: u64, packets: u32) {
    let write = Operation::Write { va: 0, rkey: pair.server.key, tail: Tail::Plain };
    pair.post_on(Client, qp, request(id, write, 0, packets * MTU));
}

fn micros(micros: u64) -> Instant {
    Instant::ZERO + Span::from_micros(micros)
}

/// The packets of each run that leaves now, in runs of up to four.
fn runs(engine: &mut Engine) -> Vec<u16> {
    let mut runs = Vec::new();
    while let Some(offer) = engine.offer(Instant::ZERO, 4 * MTU) {
        let segment = engine.commit(Instant::ZERO, offer, roci_transport::Grant::Engine);
        runs.extend(segment.map(|segment| segment.packets));
    }
    runs
}

#[test]
fn what_all_queue_pairs_have_under_way_is_bounded_and_who_fails_leaves_room_to_others() {
    let (mut engine, qpns) = engine(10, 6);
    assert_eq!(runs(&mut engine), [4, 4, 4]);
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    engine.modify_qp(Instant::ZERO, qpns[0], &fail).unwrap();
    assert!(engine.has_work(0xff));
    assert_eq!(runs(&mut engine), [4]);
    engine.destroy_qp(qpns[4]).unwrap();
    assert_eq!(runs(&mut engine), []);
    engine.destroy_qp(qpns[1]).unwrap();
    engine.destroy_qp(qpns[2]).unwrap();
    assert_eq!(runs(&mut engine), [4, 4]);
}

#[test]
fn who_is_offered_and_has_to_wait_leaves_its_room_to_others() {
    for until in [Until::Received, Until::Timer, Until::At(micros(1_000))] {
        let (mut engine, qpns) = engine(5, 4);
        assert_eq!(runs(&mut engine), [4, 4]);
        let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
        engine.modify_qp(Instant::ZERO, qpns[0], &fail).unwrap();
        let offer = engine.offer(Instant::ZERO, 4 * MTU).unwrap();
        assert_eq!(offer.qpn, qpns[2], "it comes from the line, and the last room is its own");
        engine.decline(Instant::ZERO, offer, until);
        assert!(engine.has_work(0xff), "{until:?}");
        assert_eq!(runs(&mut engine), [4], "{until:?}");
    }
}

#[test]
fn a_queue_pair_whose_path_changes_leaves_the_room_of_the_old_one() {
    let (mut engine, qpns) = engine(5, 3);
    assert_eq!(runs(&mut engine), [4, 4]);
    let elsewhere = Change { path: Some(9), ..Change::default() };
    engine.modify_qp(Instant::ZERO, qpns[0], &elsewhere).unwrap();
    let mut runs = runs(&mut engine);
    runs.sort_unstable();
    assert_eq!(runs, [1, 4, 4], "the rest of its own there, and who stood in line here");
}

#[test]
fn a_queue_pair_by_itself_has_as_much_under_way_as_its_window_lets_it() {
    let (mut engine, _) = engine(9, 1);
    assert_eq!(runs(&mut engine), [4, 4, 1]);
}

#[test]
fn all_requests_end_well_whatever_is_lost_where_few_packets_have_room_under_way() {
    let protocols =
        [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn), (Recovery::Sack, Layout::Irn)];
    for (recovery, layout) in protocols {
        let engine = bounded(7);
        let config = QpConfig { recovery, layout, ..config() };
        let mut pair = Pair::with_engines(engine(1), engine(2), config, 8);
        for number in [5, 17, 40, 41, 90] {
            pair = pair.fate_of(Side::Client, number, Fate::Drop);
        }
        let rkey = pair.server.key;
        let mut id = 0;
        for length in [1, 3 * MTU, 9 * MTU, 40, 5 * MTU] {
            for qp in 0..8 {
                let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
                let read = Operation::Read { va: 0, rkey };
                pair.post_on(Client, qp, request(id, write, 0, length));
                pair.post_on(Client, qp, request(id + 1, read, 0, length));
                id += 2;
            }
        }
        pair.run_until(Instant::ZERO + Span::from_secs(1));
        let ended = pair.client.ended();
        assert_eq!(ended.len() as u64, id, "{recovery:?}");
        assert!(ended.iter().all(|(_, status)| *status == Status::Success), "{recovery:?}: {ended:?}");
    }
}

#[test]
fn who_waits_gets_on_with_the_first_acknowledgement_and_no_timer() {
    let engine = bounded(4);
    let under_way = Arc::new(Mutex::new((0i64, 0i64)));
    let seen = under_way.clone();
    let mut pair = Pair::with_engines(engine(1), engine(2), config(), 5).script(move |side, _, _, _| {
        let (now, most) = &mut *seen.lock().unwrap();
        if side == Client {
            *now += 1;
            *most = (*most).max(*now);
        } else {
            *now = 0;
        }
        Fate::Pass
    });
    let rkey = pair.server.key;
    for qp in 0..5 {
        let write = Operation::Write { va: 0, rkey, tail: Tail::Plain };
        pair.post_on(Client, qp, request(qp as u64, write, 0, 20 * MTU));
    }
    pair.run_until(Instant::ZERO + Span::from_millis(1));
    assert_eq!(pair.client.ended().len(), 5, "without the local ACK timeout");
    let most = under_way.lock().unwrap().1;
    assert!(most <= 4, "{most}");
}

#[test]
fn a_queue_pair_whose_receiver_is_not_ready_keeps_no_room_from_others_and_ends_well_when_it_is() {
    let engine = bounded(8);
    let config = QpConfig { rnr_retry: 7, min_rnr_timer: Span::from_micros(100), ..config() };
    let mut pair = Pair::with_engines(engine(1), engine(2), config, 2);
    pair.post_on(Client, 0, request(0, Operation::Send(Tail::Plain), 0, 8 * MTU));
    pair.run_until(micros(50));
    for id in 1..=3 {
        write(&mut pair, 1, id, 8);
    }
    pair.run_until(micros(600));
    let success = |id| (id, Status::Success);
    assert_eq!(pair.client.ended(), [success(1), success(2), success(3)]);
    pair.post_recv_on(Side::Server, 0, 9, 0, 8 * MTU);
    pair.run_until(micros(2000));
    assert_eq!(pair.client.ended().last(), Some(&success(0)));
}

#[test]
fn a_queue_pair_whose_peer_is_dead_keeps_others_waiting_until_its_first_timeout_and_no_longer() {
    let engine = bounded(32);
    let pair = Pair::with_engines(engine(1), engine(2), config(), 2);
    let dead = pair.server.qpns[0];
    let mut pair =
        pair.script(
            move |side, _, packet, _| {
                if side == Client && packet.header.dest_qpn == dead { Fate::Drop } else { Fate::Pass }
            },
        );
    write(&mut pair, 0, 0, 32);
    pair.run_until(micros(1));
    let timeout = config().timeout;
    // More than a room each: what it sends again takes a turn of the room.
    for id in 1..=20 {
        write(&mut pair, 1, id, 40);
    }
    pair.run_until(Instant::ZERO + timeout + timeout / 2);
    assert_eq!(pair.client.ended().len(), 20, "{:?}", pair.client.ended());
}

#[test]
fn many_queue_pairs_whose_peers_are_dead_end_as_soon_as_one_and_keep_nobody_waiting() {
    let timeout = Span::from_millis(5);
    let engine = bounded(512);
    let config = QpConfig { timeout, max_in_flight: 128, ..config() };
    let mut pair = Pair::with_engines(engine(1), engine(2), config, 101);
    let live = pair.server.qpns[100];
    pair =
        pair.script(
            move |side, _, packet, _| {
                if side == Client && packet.header.dest_qpn != live { Fate::Drop } else { Fate::Pass }
            },
        );
    pair.quantum = 16 * MTU;
    (0..100).for_each(|qp| write(&mut pair, qp, 1, 100));
    pair.run_until(micros(50));
    (0..20).for_each(|_| write(&mut pair, 100, 2, 100));
    pair.run_until(Instant::ZERO + timeout * 2);
    assert_eq!(pair.client.ended(), vec![(2, Status::Success); 20]);
    // The first sending and seven more.
    pair.run_until(Instant::ZERO + timeout * 11);
    assert_eq!(pair.client.ended().len(), 120);
}

#[test]
fn a_queue_pair_alone_in_a_room_that_is_smaller_than_its_window_waits_for_no_timer() {
    for packets in [1, 8, 32] {
        let engine = bounded(packets);
        let config = QpConfig { ack_every: 64, ..config() };
        let mut pair = Pair::with_engines(engine(1), engine(2), config, 1);
        write(&mut pair, 0, 1, 500);
        pair.run_until(micros(5_000));
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    }
}

#[test]
fn the_room_of_a_write_is_given_back_though_a_read_behind_it_is_not_answered() {
    let engine = bounded(8);
    let config = QpConfig { timeout: Span::from_millis(100), ..config() };
    let mut pair = Pair::with_engines(engine(1), engine(2), config, 2).script(|side, _, packet, _| {
        if side == Side::Server && !packet.payload.is_empty() { Fate::Drop } else { Fate::Pass }
    });
    write(&mut pair, 0, 0, 8);
    let rkey = pair.server.key;
    pair.post_on(Client, 0, request(1, Operation::Read { va: 0, rkey }, 0, 12 * MTU));
    pair.run_until(micros(200));
    write(&mut pair, 1, 2, 8);
    pair.run_until(micros(600));
    assert_eq!(pair.client.ended(), [(0, Status::Success), (2, Status::Success)]);
}

#[test]
fn who_answers_reads_keeps_no_turn_of_the_room_that_it_does_not_use() {
    // The last of many queue pairs of which the others each have a short WRITE, and long answers to give.
    let waits = |answers: bool| {
        let timeout = Span::from_millis(50);
        let mut pair =
            Pair::with_engines(bounded(32)(1), bounded(32)(2), QpConfig { timeout, ..config() }, 40)
                .apart(Span::from_micros(10));
        let rkey = pair.client.key;
        for (qp, id) in (1..=34).flat_map(|qp| (0..16).map(move |id| (qp, id))).filter(|_| answers) {
            pair.post_on(Side::Server, qp, request(id, Operation::Read { va: 0, rkey }, 0, 12 * MTU));
        }
        write(&mut pair, 0, 0, 32);
        pair.run_until(micros(4));
        for qp in 1..=34 {
            write(&mut pair, qp, 1, 1);
        }
        write(&mut pair, 39, 39, 1);
        (4..).find(|&at| {
            pair.run_until(micros(at));
            pair.client.ended().iter().any(|(id, _)| *id == 39)
        })
    };
    let (without, with) = (waits(false), waits(true));
    // In line with the answers of others it waits for a packet of each, but not for all of them.
    assert!(with < without.map(|without| 3 * without), "{without:?} us, {with:?} us with answers");
}

#[test]
fn a_tail_that_is_lost_gives_its_room_to_others_before_its_timeout() {
    let engine = bounded(32);
    let config = QpConfig { timeout: Span::from_millis(100), ..config() };
    let pair = Pair::with_engines(engine(1), engine(2), config, 40);
    // Of all but one the last packet is lost, and nothing follows from which the responder could see that.
    let last = pair.server.qpns[39];
    let mut pair = pair.script(move |side, _, packet, _| {
        let is_tail = side == Client && packet.header.psn.get() % 4 == 3;
        if is_tail && packet.header.dest_qpn != last { Fate::Drop } else { Fate::Pass }
    });
    // More tails than the room has packets.
    for round in 0..5 {
        for qp in 7 * round..7 * (round + 1) {
            write(&mut pair, qp, 0, 4);
        }
        write(&mut pair, 39, 1, 80);
        pair.run_until(micros(500 * (round as u64 + 1)));
    }
    assert_eq!(pair.client.ended(), [(1, Status::Success); 5]);
}

#[test]
fn reads_and_atomics_have_a_packet_each_under_way_until_they_are_answered() {
    let under_way = Arc::new(Mutex::new((0i64, 0i64)));
    let seen = under_way.clone();
    let mut pair =
        Pair::with_engines(bounded(8)(1), bounded(8)(2), config(), 20).script(move |side, _, packet, _| {
            let (now, most) = &mut *seen.lock().unwrap();
            let opcode = packet.header.opcode;
            let ends = [Opcode::READ_RESPONSE_ONLY, Opcode::READ_RESPONSE_LAST, Opcode::ATOMIC_ACKNOWLEDGE];
            *now += i64::from(side == Client) - i64::from(ends.contains(&opcode));
            *most = (*most).max(*now);
            Fate::Pass
        });
    let rkey = pair.server.key;
    for qp in 0..20 {
        pair.post_on(Client, qp, request(1, Operation::Read { va: 0, rkey }, 0, 64));
        pair.post_on(Client, qp, request(2, Operation::FetchAdd { va: 0, rkey, add: 1 }, 0, 8));
        pair.post_on(Client, qp, request(3, Operation::Read { va: 0, rkey }, 0, 3 * MTU));
    }
    pair.run_until(micros(1000));
    assert_eq!(pair.client.ended().len(), 60, "without a timeout");
    assert_eq!(under_way.lock().unwrap().1, 8);
}

#[test]
fn who_has_not_asked_and_has_no_room_among_the_silent_ends_as_others_do() {
    let timeout = Span::from_micros(100);
    let mut engine = Engine::new(EngineConfig::default());
    engine.bound_flight(6);
    let (lkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let qps = [(3, 100), (5, 1)].map(|(priority, packets)| {
        (engine.create_qp(QpConfig { ack_every: 64, timeout, priority, ..config() }).unwrap(), packets)
    });
    let post = |engine: &mut Engine, (qpn, packets): (Qpn, u32)| {
        let write = request(1, Operation::Write { va: 0, rkey: 7, tail: Tail::Plain }, 0, packets * MTU);
        engine.post_send(Instant::ZERO, qpn, &SendRequest { lkey, ..write }).unwrap();
    };
    post(&mut engine, qps[0]);
    for _ in 0..5 {
        assert!(!engine.transmit(Instant::ZERO).unwrap().last_flags.has(roci_wire::Flags::ACK_REQUEST));
    }
    post(&mut engine, qps[1]);
    let mut ended = Vec::new();
    for us in 0..20_000 {
        engine.wake(micros(us));
        while engine.transmit(micros(us)).is_some() {}
        while let Some(completion) = engine.poll_completion() {
            ended.push((us, completion.qpn, completion.status));
        }
    }
    let counters = qps.map(|(qpn, _)| engine.counters(qpn));
    assert_eq!(ended.len(), 2, "{ended:?} {counters:?}");
}
