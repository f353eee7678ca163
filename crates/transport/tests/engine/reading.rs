//! READ responses that are acknowledged, under a responder's law: it hears of them as a sender's does of its packets.

use crate::pair::{Fate, Pair, Side};
use crate::scripts::{MTU, config};
use roci_control::{Law, Value};
use roci_transport::{Deferred, Engine, EngineConfig, QpConfig, Recovery, Status};
use roci_units::{BitsPerSec, Instant, Span};
use roci_wire::Layout;

const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

/// A READ of so many packets under `law`.
fn read(law: &str, packets: u32) -> Pair {
    let mut pair = readers(law);
    pair.read(1, 0, 0, packets * MTU);
    pair.run_until(Instant::ZERO + Span::from_millis(1));
    pair
}

fn readers(law: &str) -> Pair {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
        engine.add_law(Law::from_settings(law, &[], LINK).unwrap());
        engine
    };
    let config = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, law: 1, ..config() };
    Pair::with_engines(engine(1), engine(2), config, 1)
}

#[test]
fn a_window_that_shuts_over_responses_asks_for_an_answer_however_rarely_they_are_acknowledged() {
    for law in ["swift", "dctcp", "hpcc", "nscc"] {
        let mut config = QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, law: 1, ..config() };
        config.ack_every = 1_000;
        let engine = |seed| {
            let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
            engine.add_law(Law::from_settings(law, &[], LINK).unwrap());
            engine
        };
        let mut pair = Pair::with_engines(engine(1), engine(2), config, 1);
        // Each law's first window is below what is read; marks shut it further.
        pair = (0..8).fold(pair, |pair, number| pair.fate_of(Side::Server, 40 + 7 * number, Fate::Mark));
        pair.read(1, 0, 0, 400 * MTU);
        pair.run_until(Instant::ZERO + Span::from_millis(20));
        let counters = pair.server.engine.counters(pair.server.qpns[0]);
        assert_eq!(pair.client.ended(), [(1, Status::Success)], "{law}");
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0), "{law}");
    }
}

fn register(pair: &mut Pair, name: &str) -> Option<Value> {
    pair.server.engine.control_get(pair.server.qpns[0], name, pair.now)
}

#[test]
fn the_round_trips_of_responses_are_told() {
    let mut pair = read("swift", 20);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    let Some(Value::Time(rtt)) = register(&mut pair, "rtt") else { panic!("a time") };
    assert!(rtt > Span::ZERO && rtt < Span::from_micros(50), "{rtt}");
}

#[test]
fn responses_are_no_repeated_acknowledgements_of_the_requests_that_are_under_way() {
    for recovery in [Recovery::Irn, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        let config = QpConfig { recovery, layout: Layout::Irn, ..config() };
        let mut pair = Pair::connected(config).apart(Span::from_micros(50));
        pair.read(1, 0, 0, 100 * MTU);
        // The responses are on their way, and come before another request has been acknowledged.
        pair.run_until(Instant::ZERO + Span::from_micros(60));
        pair.read(2, 40_000, 0, MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)], "{recovery:?}");
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0), "{recovery:?}");
    }
}

#[test]
fn the_round_trips_of_responses_behind_one_that_is_late_are_told_as_they_come() {
    // The first response comes 40 us late.
    let mut pair = readers("swift").fate_of(Side::Server, 1, Fate::Delay(Span::from_micros(40)));
    pair.read(1, 0, 0, 20 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(4));
    let Some(Value::Time(rtt)) = register(&mut pair, "rtt") else { panic!("a time") };
    assert!((Span::from_micros(2)..Span::from_micros(3)).contains(&rtt), "{rtt}: {:?}", pair.server.story());
}

const OWNERS: [Recovery; 3] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack];

/// READs of 100 packets under a recovery program with a first window of four, over 50 us each way.
fn reads_with_window(recovery: Recovery) -> Pair {
    let config = QpConfig { recovery, layout: Layout::Irn, initial_window: 4, ..config() };
    let mut pair = Pair::connected(config).apart(Span::from_micros(50));
    pair.read(1, 0, 0, 100 * MTU);
    pair
}

#[test]
fn a_recovery_program_s_window_bounds_read_data_and_grows() {
    for recovery in OWNERS {
        let mut pair = reads_with_window(recovery);
        let qpn = pair.server.qpns[0];
        for (round, window) in [(1, 4), (2, 8), (3, 16)] {
            pair.run_until(Instant::ZERO + Span::from_micros(100 * round + 40));
            let status = pair.server.engine.query(qpn).unwrap();
            let data = pair.server.sent.iter().filter(|packet| packet.header.payload > 0).count();
            assert_eq!(
                (data, status.congestion_window),
                (2 * window - 4, Some(window as u32)),
                "{recovery:?}"
            );
        }
        pair.run();
        pair.assert_copied(0, 0, 100 * MTU);
        assert_eq!(pair.server.engine.counters(qpn).retransmitted, 0);
    }
}

#[test]
fn read_data_that_repeated_acknowledgements_tell_the_loss_of_are_sent_again_with_half_the_window() {
    for recovery in OWNERS {
        // The tenth of the data.
        let mut data = 0;
        let mut pair = reads_with_window(recovery).script(move |side, _, packet, _| {
            data += u32::from(side == Side::Server && packet.header.payload > 0);
            if side == Side::Server && packet.header.payload > 0 && data == 10 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        let qpn = pair.server.qpns[0];
        let mut windows = Vec::new();
        for step in 0..40 {
            pair.run_until(Instant::ZERO + Span::from_micros(50 * step));
            windows.extend(pair.server.engine.query(qpn).unwrap().congestion_window);
        }
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)], "{recovery:?}");
        let counters = pair.server.engine.counters(qpn);
        assert_eq!((counters.retransmitted, counters.timeouts), (1, 0), "{recovery:?}");
        assert!(windows.windows(2).any(|pair| pair[1] < pair[0]), "{recovery:?}: {windows:?}");
    }
}

#[test]
fn a_law_hears_once_of_a_loss_of_responses_however_many_naks_tell_of_it() {
    // NSCC takes a packet off its window each time: all that is in flight would leave it with one.
    let windows = [false, true].map(|reads| {
        let side = if reads { Side::Server } else { Side::Client };
        let mut pair = readers("nscc").fate_of(side, 5, Fate::Drop);
        if reads {
            pair.read(1, 0, 0, 60 * MTU);
        } else {
            pair.write(1, 0, 0, 60 * MTU);
        }
        pair.run_until(Instant::ZERO + Span::from_millis(1));
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        let now = pair.now;
        let node = pair.node(side);
        let Some(Value::Octets(window)) = node.engine.control_get(node.qpns[0], "window", now) else {
            panic!("octets")
        };
        window.0
    });
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn responses_that_are_lost_are_sent_again_when_the_slow_path_has_decided() {
    let resent = |recovery| {
        let deferred = Deferred { recovery, ..Deferred::default() };
        let srnic = QpConfig { recovery: Recovery::Srnic, layout: Layout::Srnic, deferred, ..config() };
        let mut pair = Pair::connected(srnic).late(7).fate_of(Side::Server, 5, Fate::Drop);
        pair.read(1, 0, 0, 30 * MTU);
        let qpn = pair.server.qpns[0];
        let mut at = Instant::ZERO;
        while pair.server.engine.counters(qpn).retransmitted == 0 {
            at += Span::from_nanos(100);
            pair.run_until(at);
        }
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        let counters = pair.server.engine.counters(qpn);
        assert_eq!((counters.retransmitted, counters.timeouts), (1, 0));
        assert_eq!(pair.server.engine.bitmaps_taken(), 0);
        at
    };
    let (at_once, later) = (resent(false), resent(true));
    assert!(at_once < later, "{at_once} and {later}");
}
