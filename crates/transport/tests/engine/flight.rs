//! Queue pairs that have room under way together, and those that wait for it.

use crate::pair::{Client, Fate, Pair, Side};
use crate::scripts::{MTU, config, request};
use roci_transport::{
    Access, Change, Engine, EngineConfig, Operation, Pd, QpConfig, Recovery, SendRequest, Status, Tail,
    Transition,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::Layout;
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
fn a_queue_pair_by_itself_has_as_much_under_way_as_its_window_lets_it() {
    let (mut engine, _) = engine(9, 1);
    assert_eq!(runs(&mut engine), [4, 4, 1]);
}

#[test]
fn all_requests_end_well_whatever_is_lost_where_few_packets_have_room_under_way() {
    let protocols =
        [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn), (Recovery::Sack, Layout::Irn)];
    for (recovery, layout) in protocols {
        let engine = |seed| {
            let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
            engine.bound_flight(7);
            engine
        };
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
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        engine.bound_flight(4);
        engine
    };
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
