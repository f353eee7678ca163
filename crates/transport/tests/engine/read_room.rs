//! READs whose data a port has room for, those that wait for others to end, and those that go piece by piece.

use crate::pair::{Client, Fate, Pair, Side};
use crate::scripts::{MTU, config, request};
use roci_control::Law;
use roci_transport::{
    Access, Change, Engine, EngineConfig, Operation, Pd, QpConfig, Recovery, Status, Transition,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::{Layout, Opcode};
use std::sync::{Arc, Mutex};

/// An engine with room for `packets` of READ data, and so many queue pairs that READ four packets each.
fn engine(packets: u32, qps: u32) -> (Engine, Vec<Qpn>) {
    let mut engine = Engine::new(EngineConfig::default());
    engine.bound_reads(u64::from(packets * MTU));
    let (lkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let qpns: Vec<_> = (0..qps).map(|_| engine.create_qp(config()).unwrap()).collect();
    for &qpn in &qpns {
        let read = request(1, Operation::Read { va: 0, rkey: 7 }, 0, 4 * MTU);
        engine.post_send(Instant::ZERO, qpn, &roci_transport::SendRequest { lkey, ..read }).unwrap();
    }
    (engine, qpns)
}

/// How many READ requests leave now.
fn asked(engine: &mut Engine) -> usize {
    core::iter::from_fn(|| engine.transmit(Instant::ZERO))
        .filter(|segment| segment.header.opcode == Opcode::READ_REQUEST)
        .count()
}

#[test]
fn reads_that_there_is_no_room_for_wait_until_others_have_ended_or_failed() {
    let (mut engine, qpns) = engine(10, 6);
    assert_eq!(asked(&mut engine), 2);
    assert!(engine.reads_wait().is_some());
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    engine.modify_qp(Instant::ZERO, qpns[0], &fail).unwrap();
    assert_eq!(asked(&mut engine), 1);
    // One of those that wait leaves its place to others.
    engine.destroy_qp(qpns[3]).unwrap();
    assert_eq!(asked(&mut engine), 0);
    engine.destroy_qp(qpns[1]).unwrap();
    assert_eq!(asked(&mut engine), 1);
    engine.let_reads(1);
    assert_eq!((asked(&mut engine), engine.reads_wait()), (1, None));
}

#[test]
fn a_read_that_is_longer_than_the_room_goes_alone_and_what_is_wider_is_not_narrowed() {
    let (mut engine, _) = engine(3, 4);
    assert_eq!(asked(&mut engine), 1);
    engine.widen_reads(u64::from(12 * MTU));
    engine.widen_reads(u64::from(MTU));
    engine.let_reads(0);
    assert_eq!(asked(&mut engine), 2);
}

#[test]
fn all_reads_end_well_whatever_is_lost_and_other_requests_keep_their_order() {
    for (recovery, layout) in [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn)] {
        let engine = |seed| {
            let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
            engine.bound_reads(u64::from(5 * MTU));
            engine
        };
        let config = QpConfig { recovery, layout, ..config() };
        let mut pair = Pair::with_engines(engine(1), engine(2), config, 8);
        for number in [3, 9, 17, 30] {
            pair = pair.fate_of(Side::Server, number, Fate::Drop);
        }
        let rkey = pair.server.key;
        let lengths = [1, 3 * MTU, 9 * MTU, 40, 5 * MTU];
        let mut id = 0;
        for (turn, length) in lengths.into_iter().enumerate() {
            for qp in 0..8 {
                let to = (turn * 8 + qp) as u64 * 16 * u64::from(MTU);
                let read = Operation::Read { va: 0, rkey };
                let write = Operation::Write { va: 1 << 18, rkey, tail: roci_transport::Tail::Plain };
                pair.post_on(Client, qp, request(id, read, to, length));
                pair.post_on(Client, qp, request(id + 1, write, 0, MTU));
                id += 2;
            }
        }
        pair.run_until(Instant::ZERO + Span::from_secs(1));
        let ended = pair.client.ended();
        assert_eq!(ended.len() as u64, id, "{recovery:?}");
        assert!(ended.iter().all(|(_, status)| *status == Status::Success), "{recovery:?}: {ended:?}");
        assert_eq!(pair.client.engine.reads_wait(), None);
    }
}

/// Two engines that deal as Homa does: pieces of two packets, and of all together three.
fn granted(count: u32) -> Pair {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        let (unscheduled, overcommit) = (format!("{}B", 2 * MTU), "3".to_owned());
        let settings = [("unscheduled", unscheduled.as_str()), ("overcommit", overcommit.as_str())];
        engine.add_law(Law::from_settings("homa", &settings, EngineConfig::default().link).unwrap());
        engine
    };
    let config = QpConfig { law: 1, recovery: Recovery::Irn, layout: Layout::Homa, ..config() };
    Pair::with_engines(engine(1), engine(2), config, count)
}

/// READs of nine packets and some octets on the pair's queue pairs, and of each request for a piece its octets, those that its queue
/// pair had asked for by then and that had not come, and those of all.
fn asked_for(mut pair: Pair) -> Vec<(u32, u32, u32)> {
    let qps = pair.client.qpns.len() as u32;
    let under_way = Arc::new(Mutex::new((vec![0; qps as usize], Vec::new())));
    let [readers, responders] = [&pair.client, &pair.server].map(|node| node.qpns.clone());
    let seen = under_way.clone();
    pair = pair.script(move |side, _, packet, _| {
        let (open, requests) = &mut *seen.lock().unwrap();
        let qpns = if side == Client { &responders } else { &readers };
        let qp = qpns.iter().position(|qpn| *qpn == packet.header.dest_qpn).unwrap();
        if packet.header.opcode == Opcode::READ_REQUEST {
            let length = packet.header.reth().length;
            open[qp] += length;
            requests.push((length, open[qp], open.iter().sum::<u32>()));
        } else {
            open[qp] -= u32::from(packet.header.payload);
        }
        Fate::Pass
    });
    let rkey = pair.server.key;
    let length = 9 * MTU + 5;
    for qp in 0..qps {
        let to = u64::from(qp * 16 * MTU);
        pair.post_on(Client, qp as usize, request(qp.into(), Operation::Read { va: 512, rkey }, to, length));
    }
    pair.run();
    let ended = pair.client.ended();
    assert_eq!(ended.len() as u32, qps, "each is one work request: {ended:?}");
    assert!(ended.iter().all(|(_, status)| *status == Status::Success), "{ended:?}");
    for qp in 0..qps {
        pair.assert_copied(u64::from(qp * 16 * MTU), 512, length);
    }
    let (open, requests) = &*under_way.lock().unwrap();
    assert!(open.iter().all(|octets| *octets == 0));
    requests.clone()
}

#[test]
fn reads_are_asked_for_in_pieces_as_homas_receivers_grant_and_each_ends_once() {
    for qps in [1, 4] {
        let requests = asked_for(granted(qps));
        // The last piece is longer than others, not shorter: a short one would go before those that it ends.
        let last = 3 * MTU + 5;
        assert_eq!(requests.len(), 4 * qps as usize);
        assert!(requests.iter().all(|&(length, ..)| length == 2 * MTU || length == last));
        // Of a queue pair two pieces, one on its way and one asked for; of all together three, as the overcommitment says.
        let own = requests.iter().map(|&(_, own, _)| own).max();
        let all = requests.iter().map(|&(.., all)| all).max();
        if qps == 1 {
            assert_eq!((own, all), (Some(2 * MTU + last), Some(2 * MTU + last)));
        } else {
            assert!(own.is_some_and(|own| own <= 2 * MTU + last), "{own:?}");
            assert!(all.is_some_and(|all| (6 * MTU..6 * MTU + last).contains(&all)), "{all:?}");
        }
    }
}

#[test]
fn who_is_not_answered_in_time_keeps_no_room_of_those_that_are_read_under_homa() {
    // The responses of two queue pairs are lost for ever, and what they had asked for fills the rooms.
    let mut pair = granted(4);
    let dead: Vec<_> = pair.client.qpns[..2].to_vec();
    pair = pair.script(
        move |_, _, packet, _| {
            if dead.contains(&packet.header.dest_qpn) { Fate::Drop } else { Fate::Pass }
        },
    );
    let rkey = pair.server.key;
    for qp in 0..4 {
        let to = qp as u64 * 64 * u64::from(MTU);
        pair.post_on(Client, qp, request(qp as u64, Operation::Read { va: 0, rkey }, to, 40 * MTU));
    }
    pair.run_until(Instant::ZERO + config().timeout + config().timeout / 2);
    assert_eq!(pair.client.ended(), [(2, Status::Success), (3, Status::Success)]);
    pair.run();
    let failed = (0, Status::TransportRetryCounterExceeded);
    assert!(pair.client.ended().contains(&failed) && pair.client.ended().len() == 4);
}

#[test]
fn a_read_in_pieces_fails_once_with_what_its_piece_failed_of() {
    let mut pair = granted(1);
    let rkey = pair.server.key;
    pair.post(Client, request(1, Operation::Read { va: 0, rkey }, 0, 3 * MTU));
    // The second piece of this one has no key.
    let end = pair.server.memory.len() as u64;
    pair.post(Client, request(2, Operation::Read { va: end - u64::from(3 * MTU), rkey }, 0, 6 * MTU));
    pair.post(Client, request(3, Operation::Read { va: 0, rkey }, 0, 5 * MTU));
    pair.run();
    let ended = [(1, Status::Success), (2, Status::RemoteAccessError), (3, Status::WorkRequestFlushed)];
    assert_eq!(pair.client.ended(), ended);
}

/// Two engines with room for so many packets of READ data, of which longer READs are asked for in parts.
fn cut(packets: u32, config: QpConfig, count: u32) -> Pair {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        engine.bound_reads(u64::from(packets * MTU));
        engine.cut_reads();
        engine
    };
    Pair::with_engines(engine(1), engine(2), config, count)
}

#[test]
fn a_read_that_is_longer_than_the_room_is_asked_for_in_parts_of_half_of_it() {
    for qps in [1, 3] {
        let requests = asked_for(cut(4, config(), qps));
        let lengths = [2 * MTU, 2 * MTU, 2 * MTU, 3 * MTU + 5];
        assert_eq!(requests.len(), lengths.len() * qps as usize);
        assert!(requests.iter().all(|(length, ..)| lengths.contains(length)), "{requests:?}");
        let most = requests.iter().map(|&(.., all)| all).max();
        assert_eq!(most, Some(4 * MTU), "the room is full, and no more than that");
    }
    let whole = asked_for(cut(10, config(), 1));
    assert_eq!(
        whole,
        [(9 * MTU + 5, 9 * MTU + 5, 9 * MTU + 5)],
        "what there is room for is asked for at once"
    );
}

#[test]
fn a_read_in_parts_ends_once_whatever_is_lost_or_fails() {
    for (recovery, layout) in [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Sack, Layout::Irn),
    ] {
        for depth in [1, 16] {
            let config = QpConfig { recovery, layout, max_rd_atomic: depth, ..config() };
            let mut pair = cut(4, config, 1);
            for number in [0, 3, 9, 17, 30, 44] {
                pair = pair.fate_of(Side::Server, number, Fate::Drop);
            }
            for number in [0, 2, 5] {
                pair = pair.fate_of(Client, number, Fate::Drop);
            }
            let rkey = pair.server.key;
            let end = pair.server.memory.len() as u64;
            let length = 37 * MTU + 9;
            pair.post(Client, request(1, Operation::Read { va: 512, rkey }, 0, length));
            let write = Operation::Write { va: 0, rkey, tail: roci_transport::Tail::Plain };
            pair.post(Client, request(2, write, 1 << 17, 64));
            pair.run_until(Instant::ZERO + Span::from_secs(1));
            assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)], "{recovery:?}");
            pair.assert_copied(0, 512, length);
            // A part in the middle leaves the region.
            let beyond = Operation::Read { va: end - u64::from(5 * MTU), rkey };
            pair.post(Client, request(3, beyond, 0, 12 * MTU));
            pair.run_until(Instant::ZERO + Span::from_secs(2));
            assert_eq!(pair.client.ended().last(), Some(&(3, Status::RemoteAccessError)), "{recovery:?}");
            assert_eq!(pair.client.ended().len(), 3);
        }
    }
}
