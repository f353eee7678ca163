//! How often a queue pair asks for acknowledgements.

use crate::laws::{LINK, dcqcn, engine};
use crate::pair::{Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_control::Law;
use roci_transport::{
    Access, Arrival, Change, Engine, EngineConfig, Operation, Pd, QpConfig, Reaction, Recovery, Status, Tail,
};
use roci_units::{Instant, Psn, Span};
use roci_wire::{Flags, Header, Layout, Opcode, Reth};

#[test]
fn a_lost_packet_that_shut_the_window_costs_no_timeout_however_rarely_packets_are_acknowledged() {
    const PACKETS: u32 = 60;
    for (recovery, layout, law, reads) in [
        (Recovery::GoBackN, Layout::Standard, "dctcp", false),
        (Recovery::Irn, Layout::Irn, "dctcp", false),
        (Recovery::Irn, Layout::Irn, "dctcp", true),
        (Recovery::Srnic, Layout::Srnic, "swift", false),
        (Recovery::Srnic, Layout::Srnic, "swift", true),
        // TCP's own windows, and IRN's bound on what is in flight.
        (Recovery::NewReno, Layout::Irn, "none", false),
        (Recovery::Sack, Layout::Irn, "none", false),
        (Recovery::Irn, Layout::Irn, "none", false),
    ] {
        let engine = |seed| {
            let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
            engine.add_law(Law::from_settings(law, &[], LINK).unwrap());
            engine
        };
        let max_in_flight = if recovery == Recovery::Irn { 8 } else { 0 };
        let config = QpConfig { recovery, layout, law: 1, ack_every: 1000, max_in_flight, ..config() };
        let lost = if reads { Server } else { Client };
        // Whichever it is, but for the last, which NewReno and SACK count three to come after.
        for number in 0..PACKETS as usize - 4 {
            let mut pair =
                Pair::with_engines(engine(1), engine(2), config, 1).fate_of(lost, number, Fate::Drop);
            if reads {
                pair.read(1, 0, 0, PACKETS * MTU);
            } else {
                pair.write(1, 0, 0, PACKETS * MTU);
            }
            pair.run();
            let sender = if reads { &pair.server } else { &pair.client };
            let counters = sender.engine.counters(sender.qpns[0]);
            assert_eq!(pair.client.ended(), [(1, Status::Success)]);
            assert_eq!(counters.timeouts, 0, "{recovery:?} with {law}, packet {number}, READ {reads}");
        }
    }
}

#[test]
fn a_slow_queue_pair_asks_for_acknowledgements_within_a_quarter_of_its_timer_for_requests_and_read_data() {
    // A packet takes 1106 octets on the wire, or 1122 with IRN's headers, and a quarter of the timer is 125 µs. The last of a
    // message asks whatever the rate.
    for (rate, every) in [("10Gb/s", [16, 16]), ("1Gb/s", [14, 13]), ("200Mb/s", [2, 2]), ("1Mb/s", [1, 1])] {
        for reads in [false, true] {
            let mut engine =
                engine(1, &[("increase_timer", "1000s"), ("byte_counter", "0"), ("rmin", "1Mb/s")]);
            let (recovery, layout) =
                if reads { (Recovery::Irn, Layout::Irn) } else { (Recovery::GoBackN, Layout::Standard) };
            let config = QpConfig { law: 1, path: 9, ack_every: 16, recovery, layout, ..config() };
            let qpn = engine.create_qp(config).unwrap();
            engine.control_set(qpn, "rc", rate, Instant::ZERO).unwrap();
            let length = 40 * MTU;
            if reads {
                let (rkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
                let mut header = Header::new(Opcode::READ_REQUEST, qpn, Psn::new(0));
                header.set_reth(Reth { va: 0, rkey, length });
                let arrival = Arrival::new(&header, 9);
                engine.receive(Instant::ZERO, &arrival, &mut Reaction::default());
            } else {
                let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
                engine.post_send(Instant::ZERO, qpn, &request(1, write, 0, length)).unwrap();
            }
            // Nobody answers: what leaves before the first timeout, IRN's, is looked at.
            let (mut now, mut asked) = (Instant::ZERO, Vec::new());
            while asked.len() < 40 && now < Instant::ZERO + config.timeout / 16 * 5 {
                match engine.transmit(now) {
                    Some(segment) => asked.push(segment.header.flags.has(Flags::ACK_REQUEST)),
                    None => now = engine.next_wakeup().unwrap(),
                }
                engine.wake(now);
            }
            let every = every[usize::from(reads)];
            let expected: Vec<_> =
                (1..=asked.len()).map(|packet| packet % every == 0 || packet == 40).collect();
            assert_eq!(asked, expected, "{rate}, {reads}");
            assert!(!asked.is_empty());
        }
    }
}

#[test]
fn what_the_pacer_holds_back_for_long_is_not_given_up_before_it_was_sent_again() {
    // A packet each 8.8 ms, which is more than all retries of a timer of 500 µs take.
    let settings = [("increase_timer", "1000s"), ("byte_counter", "0"), ("rmin", "1Mb/s")];
    for (recovery, layout) in [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::NewReno, Layout::Irn),
    ] {
        // READ data has a timer of its own where it is acknowledged.
        for reads in [false, true].into_iter().take(if recovery == Recovery::GoBackN { 1 } else { 2 }) {
            let mut pair = dcqcn(&settings, QpConfig { recovery, layout, ..config() }, 1);
            let lost = if reads { Server } else { Client };
            pair = pair.fate_of(lost, 0, Fate::Drop).fate_of(lost, 2, Fate::Drop);
            for side in [Client, Server] {
                let node = pair.node(side);
                node.engine.control_set(node.qpns[0], "rc", "1Mb/s", Instant::ZERO).unwrap();
            }
            if reads {
                pair.read(1, 0, 0, 2 * MTU);
            } else {
                pair.write(1, 0, 0, 2 * MTU);
            }
            pair.run_until(Instant::ZERO + Span::from_millis(100));
            assert_eq!(pair.client.ended(), [(1, Status::Success)], "{recovery:?}, {reads}");
        }
    }
}

#[test]
fn another_timer_changes_how_often_a_slow_queue_pair_asks() {
    for (timeout, asks) in [(500, false), (36, true), (0, false)] {
        let mut engine = engine(1, &[("increase_timer", "1s"), ("byte_counter", "0")]);
        let qpn = engine.create_qp(QpConfig { law: 1, path: 9, ack_every: 16, ..config() }).unwrap();
        engine.control_set(qpn, "rc", "1Gb/s", Instant::ZERO).unwrap();
        let change = Change { timeout: Some(Span::from_micros(timeout)), ..Change::default() };
        engine.modify_qp(Instant::ZERO, qpn, &change).unwrap();
        let send = request(1, Operation::Send(Tail::Plain), 0, 4 * MTU);
        engine.post_send(Instant::ZERO, qpn, &send).unwrap();
        let first = engine.transmit(Instant::ZERO).unwrap();
        assert_eq!(first.header.flags.has(Flags::ACK_REQUEST), asks, "{timeout} us");
    }
}
