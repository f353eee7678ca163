//! Memory windows that end while messages are under way, with each way of looking at keys.

use crate::pair::{Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_transport::{Access, Binding, Operation, QpConfig, Recovery, Refusal, Status, Tail, WindowKind};
use roci_units::{Instant, Span};

const WAYS: [Recovery; 3] = [Recovery::GoBackN, Recovery::Irn, Recovery::Srnic];
/// Where the window begins, in the memory of the server.
const PLACE: u64 = 65_536;
const PACKETS: u32 = 8;
const LENGTH: u64 = (PACKETS * MTU) as u64;

/// A pair whose server has bound a window of type 2; with its region's key and its own.
fn windowed(recovery: Recovery) -> (Pair, u32, u32) {
    let layout = recovery.layout();
    let mut pair = Pair::connected(QpConfig { recovery, layout, ..config() });
    let (engine, pd) = (&mut pair.server.engine, pair.server.pd);
    let (region, _) = engine.register(pd, PLACE, LENGTH, Access::LOCAL_WRITE | Access::BIND).unwrap();
    let key = engine.allocate_window(pd, WindowKind::Type2).unwrap() | 7;
    bind(&mut pair, region, key);
    (pair, region, key)
}

fn bind(pair: &mut Pair, region: u32, key: u32) {
    let node = &mut pair.server;
    let binding =
        Binding { key, region, address: PLACE, length: LENGTH, access: Access::ALL, is_zero_based: false };
    node.engine.bind(node.pd, node.qpns[0], &binding).unwrap();
}

/// Whether the window's key fits.
fn fits(pair: &Pair, key: u32) -> bool {
    let node = &pair.server;
    let asks = (node.pd, node.qpns[0]);
    node.engine.regions().check_for(asks, key, PLACE, 1, Access::REMOTE_WRITE).is_ok()
}

/// When so many packets of those that were posted at first have arrived.
fn arrived(packets: u64) -> Instant {
    Instant::ZERO + Span::from_nanos(1_000 + 100 * packets + 50)
}

/// How a window ends.
type End = fn(&mut Pair, u32, u32);

const ENDS: [End; 4] = [
    |pair, _, key| {
        let (pd, qpn) = (pair.server.pd, pair.server.qpns[0]);
        pair.server.engine.invalidate_window(pd, qpn, key).unwrap();
    },
    |pair, _, key| pair.server.engine.deallocate_window(key).unwrap(),
    |pair, region, _| pair.server.engine.deregister(region).unwrap(),
    |pair, region, _| {
        let (pd, access) = (pair.server.pd, Access::ALL | Access::BIND);
        pair.server.engine.reregister(region, pd, PLACE, LENGTH, access).unwrap();
    },
];

#[test]
fn what_is_left_of_a_write_is_refused_when_its_window_ends() {
    for recovery in WAYS {
        for (end, lost) in ENDS.into_iter().flat_map(|end| [(end, None), (end, Some(1))]) {
            let (pair, region, key) = windowed(recovery);
            let mut pair = if let Some(lost) = lost { pair.fate(lost, Fate::Drop) } else { pair };
            let write = Operation::Write { va: PLACE, rkey: key, tail: Tail::Plain };
            pair.post(Client, request(1, write, 0, PACKETS * MTU));
            pair.run_until(arrived(4));
            let before = pair.server.placed.clone();
            end(&mut pair, region, key);
            pair.run();
            assert_eq!(pair.client.ended(), [(1, Status::RemoteAccessError)], "{recovery:?}");
            assert!(before.contains(&true) && before == pair.server.placed, "{recovery:?}");
            assert!(pair.server.refused.contains(&Refusal::Rejected));
        }
    }
}

#[test]
fn what_is_left_of_a_read_is_refused_when_its_window_ends() {
    for recovery in WAYS {
        for end in ENDS {
            let (mut pair, region, key) = windowed(recovery);
            pair.post(Client, request(1, Operation::Read { va: PLACE, rkey: key }, 0, PACKETS * MTU));
            pair.run_until(arrived(4));
            assert!((1..PACKETS as usize).contains(&pair.server.sent.len()));
            end(&mut pair, region, key);
            pair.run();
            assert_eq!(pair.client.ended(), [(1, Status::RemoteAccessError)], "{recovery:?}");
        }
    }
}

#[test]
fn a_key_is_taken_away_in_the_order_of_what_came_before() {
    for recovery in WAYS {
        let (pair, _, key) = windowed(recovery);
        let mut pair = pair.fate(0, Fate::Drop);
        pair.post_recv(Server, 5, 0, 0);
        let write = Operation::Write { va: PLACE, rkey: key, tail: Tail::Plain };
        pair.post(Client, request(1, write, 0, 100));
        pair.post(Client, request(2, Operation::Send(Tail::Invalidate(key)), 0, 0));
        pair.run_until(arrived(2));
        assert!(fits(&pair, key), "the WRITE is missing: {recovery:?}");
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
        assert_eq!(pair.server.completions[0].tail, Tail::Invalidate(key));
        assert!(!fits(&pair, key));
        pair.assert_copied(0, PLACE, 100);
    }
}

#[test]
fn a_send_that_comes_twice_takes_a_key_away_once() {
    for recovery in WAYS {
        let (pair, region, key) = windowed(recovery);
        // Its acknowledgement is lost.
        let mut pair = pair.fate_of(Server, 0, Fate::Drop);
        pair.post_recv(Server, 5, 0, 0);
        pair.post(Client, request(1, Operation::Send(Tail::Invalidate(key)), 0, 0));
        pair.run_until(arrived(3));
        assert!(!fits(&pair, key) && pair.client.completions.is_empty());
        bind(&mut pair, region, key);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert!(pair.client.sent.len() > 1, "it was sent again");
        assert!(fits(&pair, key), "{recovery:?}");
    }
}

#[test]
fn a_send_that_nobody_receives_takes_no_key_away() {
    for recovery in WAYS {
        let (mut pair, _, key) = windowed(recovery);
        pair.post(Client, request(1, Operation::Send(Tail::Invalidate(key)), 0, 0));
        pair.run_until(arrived(3));
        assert!(fits(&pair, key), "{recovery:?}");
        pair.post_recv(Server, 5, 0, 0);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert!(!fits(&pair, key));
    }
}
