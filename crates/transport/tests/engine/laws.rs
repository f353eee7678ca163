//! Laws: what they hear, what their answers do, immediately and late.

use crate::pair::{Client, Fate, Pair, Server};
use crate::scripts::{MTU, config, request};
use roci_control::{Class, Emit, Event, Law, Value};
use roci_transport::{
    Access, Arrival, Change, Deferral, Deferred, Engine, EngineConfig, Grant, Operation, Pd, PortAgent,
    QpConfig, QpState, Reaction, Recovery, Refusal, Resolution, Status, Tail, Transition, Until,
};
use roci_units::{BitsPerSec, Instant, Psn, Qpn, Span};
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::{Aeth, Header, IpVersion, Layout, Opcode, Reth, frame_len};
use std::sync::{Arc, Mutex};

pub(crate) const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

pub(crate) fn engine(seed: u64, settings: &[(&str, &str)]) -> Engine {
    let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
    let law = Law::from_settings("dcqcn", settings, LINK).unwrap();
    assert_eq!(engine.add_law(law), 1);
    engine
}

pub(crate) fn dcqcn(settings: &[(&str, &str)], config: QpConfig, count: u32) -> Pair {
    Pair::with_engines(engine(1, settings), engine(2, settings), QpConfig { law: 1, ..config }, count)
}

fn rate(pair: &Pair, qp: usize) -> u32 {
    pair.client.engine.query(pair.client.qpns[qp]).unwrap().credit.rate_kbps
}

#[test]
fn packets_that_come_behind_a_late_one_bring_the_law_their_round_trips() {
    for (recovery, layout) in
        [(Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic), (Recovery::Sack, Layout::Irn)]
    {
        let engine = |seed| {
            let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
            engine.add_law(Law::from_settings("swift", &[], LINK).unwrap());
            engine
        };
        let config = QpConfig { recovery, layout, law: 1, initial_window: 30, ..config() };
        let late = Fate::Delay(Span::from_micros(40));
        let mut pair = Pair::with_engines(engine(1), engine(2), config, 1).fate(0, late);
        pair.write(1, 0, 4096, 10 * MTU);
        // Each packet takes 100 ns to leave and each way 1 us; the first is sent again after 2 us.
        pair.run_until(Instant::ZERO + Span::from_micros(3));
        let rtt = pair.client.engine.control_get(pair.client.qpns[0], "rtt", pair.now);
        let Some(Value::Time(rtt)) = rtt else { panic!("a time") };
        assert!((Span::from_micros(2)..Span::from_micros(3)).contains(&rtt), "{recovery:?}: {rtt}");
    }
}

#[test]
fn a_marked_packet_draws_a_cnp_and_the_cnp_a_lower_rate() {
    let mut pair = dcqcn(&[], config(), 1).fate(1, Fate::Mark);
    pair.write(1, 0, 4096, 20 * MTU);
    pair.run_until(Instant::ZERO + Span::from_micros(8));
    assert_eq!(pair.server.story().iter().filter(|word| *word == "cnp").count(), 1);
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!(counters.cnps, 1);
    assert_eq!(pair.server.engine.counters(pair.server.qpns[0]).ecn_marked, 1);
    assert!(rate(&pair, 0) < LINK.as_kbps(), "{} kb/s", rate(&pair, 0));
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_marked_packet_that_comes_in_vain_draws_a_cnp_too() {
    // The second is lost, so that the third is out of sequence.
    let mut pair = dcqcn(&[], config(), 1).fate(1, Fate::Drop).fate(2, Fate::Mark);
    pair.write(1, 0, 4096, 20 * MTU);
    pair.run();
    assert_eq!(pair.server.story().iter().filter(|word| *word == "cnp").count(), 1);
    assert_eq!(pair.server.engine.counters(pair.server.qpns[0]).ecn_marked, 1);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_marked_packet_that_comes_twice_draws_a_cnp_too() {
    // The acknowledgement is lost, so that the packet comes again.
    let mut pair = dcqcn(&[], config(), 1).script(|side, n, _, _| match (side == Client, n) {
        (true, 1) => Fate::Mark,
        (false, 0) => Fate::Drop,
        _ => Fate::Pass,
    });
    pair.write(1, 0, 4096, MTU);
    pair.run();
    assert_eq!(pair.server.story().iter().filter(|word| *word == "cnp").count(), 1);
    assert_eq!(pair.server.engine.counters(pair.server.qpns[0]).ecn_marked, 1);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_marked_packet_that_finds_no_receive_request_draws_a_cnp_too() {
    let wait = Span::from_micros(20);
    let mut pair = dcqcn(&[], QpConfig { min_rnr_timer: wait, ..config() }, 1).fate(0, Fate::Mark);
    pair.send(1, 0, 100);
    pair.run_until(pair.now + Span::from_micros(10));
    pair.post_recv(Server, 7, 8192, 100);
    pair.run();
    assert_eq!(pair.server.story().iter().filter(|word| *word == "cnp").count(), 1);
    assert_eq!(pair.server.engine.counters(pair.server.qpns[0]).ecn_marked, 1);
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
}

#[test]
fn a_paced_queue_pair_keeps_its_gaps() {
    let mut pair =
        dcqcn(&[], config(), 1).script(|side, _, _, _| if side == Client { Fate::Mark } else { Fate::Pass });
    pair.write(1, 0, 4096, 400 * MTU);
    pair.run();
    let taken = pair.now.as_ps();
    let at_link_rate = LINK.time_for(400 * 1106).as_ps();
    assert!(taken > 2 * at_link_rate, "{taken} ps against {at_link_rate} ps at the link's rate");
    pair.assert_copied(0, 4096, 400 * MTU);
}

#[test]
fn a_deferred_law_gives_the_same_octets() {
    for seed in 0..10 {
        let deferred = Deferred { law: true, ..Deferred::default() };
        let mut pair = dcqcn(&[], QpConfig { deferred, ..config() }, 1)
            .late(seed)
            .script(|_, n, _, _| if n % 5 == 0 { Fate::Mark } else { Fate::Pass });
        pair.write(1, 0, 4096, 60 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        pair.assert_copied(0, 4096, 60 * MTU);
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert!(counters.cnps > 0, "{counters:?}");
    }
}

#[test]
fn a_limiter_of_the_port_paces_its_queue_pairs_together() {
    let settings = [("limiter", "port")];
    let mut pair = dcqcn(&settings, config(), 4).fate(0, Fate::Mark);
    let rkey = pair.server.key;
    for qp in 0..4u64 {
        let write = Operation::Write { va: 4096 + qp * 65_536, rkey, tail: Tail::Plain };
        pair.post_on(Client, qp as usize, request(qp, write, 0, 40 * MTU));
    }
    pair.run_until(Instant::ZERO + Span::from_micros(10));
    let rates: Vec<u32> = (0..4).map(|qp| rate(&pair, qp)).collect();
    assert!(rates.iter().all(|&rate| rate == rates[0] && rate < LINK.as_kbps()), "{rates:?}");
    pair.run();
    assert_eq!(pair.client.completions.len(), 4, "nobody is forgotten in the line");
}

#[test]
fn registers_are_read_and_written_during_a_run() {
    let mut pair = dcqcn(&[], config(), 1);
    let qpn = pair.client.qpns[0];
    let engine = &mut pair.client.engine;
    let before = engine.control_get(qpn, "g", Instant::ZERO);
    engine.control_set(qpn, "g", "1/128", Instant::ZERO).unwrap();
    let after = engine.control_get(qpn, "g", Instant::ZERO);
    assert!(before.is_some() && before != after);
    assert!(engine.control_set(qpn, "no-such", "1", Instant::ZERO).is_err());
    assert!(engine.sample(qpn, Instant::ZERO).is_some());
}

#[test]
fn a_parameter_written_for_one_queue_pair_leaves_the_others_alone() {
    let mut pair = dcqcn(&[], config(), 2);
    let [first, second] = [pair.client.qpns[0], pair.client.qpns[1]];
    let engine = &mut pair.client.engine;
    let before = engine.control_get(second, "g", Instant::ZERO);
    engine.control_set(first, "g", "1/128", Instant::ZERO).unwrap();
    assert_ne!(engine.control_get(first, "g", Instant::ZERO), before);
    assert_eq!(engine.control_get(second, "g", Instant::ZERO), before);
}

#[test]
fn a_declined_queue_pair_parks_until_what_it_waits_for() {
    let mut pair = Pair::connected(config());
    pair.write(1, 0, 4096, MTU);
    let engine = &mut pair.client.engine;
    let now = Instant::ZERO;
    let offer = engine.offer(now, 1 << 16).unwrap();
    assert!(engine.offer(now, 1 << 16).is_none(), "an offered queue pair offers nothing else");
    engine.decline(now, offer, Until::At(now + Span::from_micros(3)));
    assert!(engine.offer(now, 1 << 16).is_none());
    assert_eq!(engine.next_wakeup(), Some(now + Span::from_micros(3)));
    let later = now + Span::from_micros(3);
    engine.wake(later);
    let offer = engine.offer(later, 1 << 16).unwrap();
    engine.decline(later, offer, Until::Recirculated);
    let offer = engine.offer(later, 1 << 16).unwrap();
    let segment = engine.commit(later, offer, roci_transport::Grant::Engine).unwrap();
    assert_eq!((segment.packets, segment.length), (1, MTU));
    assert!(engine.commit(later, offer, roci_transport::Grant::Engine).is_none(), "an offer is settled once");
}

#[test]
fn a_run_is_one_message_and_no_longer_than_the_quantum() {
    let mut pair = Pair::connected(config());
    pair.write(1, 0, 4096, 10 * MTU + 1);
    pair.write(2, 0, 65_536, MTU);
    let engine = &mut pair.client.engine;
    let mut lengths = Vec::new();
    while let Some(offer) = engine.offer(Instant::ZERO, 4 * MTU) {
        let segment = engine.commit(Instant::ZERO, offer, roci_transport::Grant::Engine).unwrap();
        lengths.push(segment.length);
    }
    assert_eq!(lengths, [4 * MTU, 4 * MTU, 2 * MTU + 1, MTU]);
}

/// Answers each data packet with a CNP after a microsecond: an agent that is not to be taken as an example.
#[derive(Debug, Default)]
struct Nag {
    due: Vec<(Instant, Qpn)>,
    awake: bool,
}

impl PortAgent for Nag {
    fn on_event(&mut self, event: &Event<'_>) {
        if event.class == Class::WRITE {
            self.due.push((event.now + Span::from_micros(1), Qpn::new(event.qpn)));
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Qpn, Emit)> {
        if !self.awake || self.due.is_empty() {
            self.awake = false;
            return None;
        }
        Some((self.due.remove(0).1, Emit::plain(Class::CNP)))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.due.first().map(|due| due.0)
    }

    fn wake(&mut self, _now: Instant) {
        self.awake = true;
    }
}

#[test]
fn a_port_agent_hears_of_packets_and_sends_its_own() {
    let mut pair = Pair::connected(config());
    pair.server.engine.set_port_agent(Box::new(Nag::default()));
    pair.write(1, 0, 4096, 100);
    pair.run();
    assert_eq!(pair.server.story(), ["ack0", "cnp"]);
    assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).cnps, 1);
}

#[test]
fn a_deferred_law_of_the_port_hears_of_each_of_its_queue_pairs() {
    let mut engine = engine(1, &[("limiter", "port")]);
    let deferred = Deferred { law: true, ..Deferred::default() };
    let config = QpConfig { law: 1, deferred, path: 9, ..config() };
    let qps: Vec<_> = (0..2).map(|_| engine.create_qp(config).unwrap()).collect();
    let mut heard = [0; 2];
    for round in 0..4 {
        let now = Instant::ZERO + Span::from_micros(100 * round);
        let mut out = Vec::new();
        for &qpn in &qps {
            notify(&mut engine, now, qpn);
            out.extend(engine.poll_deferral());
        }
        for deferral in out {
            let Deferral::Law { token, qpn, event } = deferral else { panic!("{deferral:?}") };
            heard[usize::from(qpn == qps[1])] += 1;
            let outcome = engine.evaluate(qpn, &event).unwrap();
            engine.resolve(now, token, Resolution::Law(outcome));
        }
    }
    assert_eq!(heard, [4, 4], "events of two queue pairs are out side by side");
}

/// A CNP arrives for `qpn`.
pub(crate) fn notify(engine: &mut Engine, now: Instant, qpn: Qpn) {
    let header = Header::cnp(qpn);
    let arrival = Arrival::new(&header, 9);
    engine.receive(now, &arrival, &mut Reaction::default());
}

#[test]
fn a_grant_reaches_the_law_and_the_port_agent_as_what_it_is() {
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::External(Class::GRANT));
    let deferred = Deferred { law: true, ..Deferred::default() };
    let config = QpConfig { law, layout: Layout::Homa, deferred, path: 9, ..config() };
    let qpn = engine.create_qp(config).unwrap();
    let header = Header::new(Opcode::HOMA_GRANT, qpn, Psn::new(0));
    let grant = Homa { rpc: 8, body: HomaBody::Grant { offset: 9_000, priority: 5, resend_all: false } };
    let words = grant.encode();
    let arrival = Arrival { words: words.as_slice(), ..Arrival::new(&header, 9) };
    let mut reaction = Reaction::default();
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    assert!(reaction.refused.is_none() && reaction.reply.is_none());
    let Some(Deferral::Law { event, .. }) = engine.poll_deferral() else { panic!("the law hears of grants") };
    let part = event.event.part;
    assert_eq!((event.event.class, part.message, part.end, part.priority), (Class::GRANT, 4, 9_000, 5));
    let refused = Header::new(Opcode::HOMA_BUSY, qpn, Psn::new(0));
    engine.receive(Instant::ZERO, &Arrival { header: &refused, words: &[], ..arrival }, &mut reaction);
    assert_eq!(reaction.refused, Some(Refusal::WrongOpcode), "nobody listens for it");
    assert_eq!(engine.query(qpn).unwrap().state, QpState::ReadyToSend);
    let heard = Arc::new(Mutex::new(Vec::new()));
    engine.set_port_agent(Box::new(Listener(Arc::clone(&heard))));
    engine.receive(Instant::ZERO, &Arrival { header: &refused, words: &[], ..arrival }, &mut reaction);
    engine.receive(Instant::ZERO, &arrival, &mut reaction);
    notify(&mut engine, Instant::ZERO, qpn);
    assert_eq!(*heard.lock().unwrap(), [(Class::BUSY, 0), (Class::GRANT, 9_000), (Class::CNP, 0)]);
}

/// Writes down the class of each packet, and how far it grants.
#[derive(Debug)]
struct Listener(Arc<Mutex<Vec<(Class, u32)>>>);

impl PortAgent for Listener {
    fn on_event(&mut self, event: &Event<'_>) {
        self.0.lock().unwrap().push((event.class, event.part.end));
    }

    fn poll(&mut self, _now: Instant) -> Option<(Qpn, Emit)> {
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn wake(&mut self, _now: Instant) {}
}

#[test]
fn a_paced_queue_pair_sends_octets_on_the_wire_at_its_rate_whatever_the_packets() {
    let write = |length| (Operation::Write { va: 0, rkey: 1, tail: Tail::Immediate(1) }, length);
    let send = |length| (Operation::Send(Tail::Plain), length);
    for (operation, length) in [write(64), write(0), send(1), write(3 * MTU + 1), send(20 * MTU - 3)] {
        for quantum in [1, 1 << 16] {
            let (mut engine, qpn) = paced();
            for id in 0..200 {
                engine.post_send(Instant::ZERO, qpn, &request(id, operation, 0, length)).unwrap();
            }
            assert_paced(&mut engine, quantum, 200);
        }
    }
}

#[test]
fn a_paced_responder_sends_octets_on_the_wire_at_its_rate() {
    for length in [1, MTU + 1, 20 * MTU] {
        for quantum in [1, 1 << 16] {
            let (mut engine, qpn) = paced();
            let (rkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
            let mut psn = Psn::new(0);
            for _ in 0..16 {
                let mut header = Header::new(Opcode::READ_REQUEST, qpn, psn);
                header.set_reth(Reth { va: 0, rkey, length });
                let arrival = Arrival::new(&header, 9);
                engine.receive(Instant::ZERO, &arrival, &mut Reaction::default());
                psn = psn.plus(length.div_ceil(MTU));
            }
            assert_paced(&mut engine, quantum, 16);
        }
    }
}

#[test]
fn a_queue_pair_is_paced_by_the_packets_of_the_mtu_that_it_gets_last() {
    let mut engine = engine(1, &[("increase_timer", "1s"), ("byte_counter", "0")]);
    let made = QpConfig { law: 1, path: 9, timeout: Span::ZERO, mtu: 4096, state: QpState::Init, ..config() };
    let qpn = engine.create_qp(made).unwrap();
    let mtu = u16::try_from(MTU).ok();
    for (way, mtu) in [(Transition::Receive, mtu), (Transition::Send, None)] {
        let change = Change { transition: Some(way), mtu, ..Change::default() };
        engine.modify_qp(Instant::ZERO, qpn, &change).unwrap();
    }
    engine.control_set(qpn, "rc", "1Gb/s", Instant::ZERO).unwrap();
    engine.post_send(Instant::ZERO, qpn, &request(1, Operation::Send(Tail::Plain), 0, 40 * MTU)).unwrap();
    assert_paced(&mut engine, 1, 40);
}

/// An engine with a queue pair that is paced at 1 Gb/s.
fn paced() -> (Engine, Qpn) {
    let mut engine = engine(1, &[("increase_timer", "1s"), ("byte_counter", "0")]);
    let config = QpConfig { law: 1, path: 9, timeout: Span::ZERO, ..config() };
    let qpn = engine.create_qp(config).unwrap();
    engine.control_set(qpn, "rc", "1Gb/s", Instant::ZERO).unwrap();
    (engine, qpn)
}

/// Sends what there is, in runs of at most `quantum` octets, and checks that the last of at least `count` left when an
/// octet for each 8 ns had.
fn assert_paced(engine: &mut Engine, quantum: u32, count: usize) {
    let mut now = Instant::ZERO;
    let (mut octets, mut last, mut runs) = (0, 0, 0);
    loop {
        if let Some(offer) = engine.offer(now, quantum) {
            let segment = engine.commit(now, offer, Grant::Engine).unwrap();
            (last, runs) = (octets, runs + 1);
            for index in 0..segment.packets {
                let Header { opcode, payload, .. } = segment.packet(index).0;
                octets += u64::from(frame_len(opcode, Layout::Standard, IpVersion::V4, payload)) + 20;
            }
        } else if let Some(at) =
            engine.next_wakeup().filter(|at| *at < Instant::ZERO + Span::from_millis(900))
        {
            now = at;
            engine.wake(now);
        } else {
            break;
        }
    }
    assert!(runs >= count);
    assert_eq!(now, Instant::ZERO + Span::from_nanos(8 * last), "{octets} octets");
}

#[test]
fn a_paced_queue_pair_that_was_late_makes_up_for_it_and_one_that_was_idle_does_not() {
    for late in [true, false] {
        let burst =
            EngineConfig { link: LINK, pacing_burst: Span::from_millis(1), ..EngineConfig::default() };
        let mut engine = Engine::new(burst);
        let law =
            Law::from_settings("dcqcn", &[("increase_timer", "1s"), ("byte_counter", "0")], LINK).unwrap();
        assert_eq!(engine.add_law(law), 1);
        let config = QpConfig { law: 1, path: 9, timeout: Span::ZERO, ..config() };
        let qpn = engine.create_qp(config).unwrap();
        engine.control_set(qpn, "rc", "1Gb/s", Instant::ZERO).unwrap();
        let write = |id| request(id, Operation::Write { va: 0, rkey: 1, tail: Tail::Plain }, 0, 40 * MTU);
        if late {
            engine.post_send(Instant::ZERO, qpn, &write(1)).unwrap();
        }
        let now = Instant::ZERO + Span::from_millis(5);
        if !late {
            engine.post_send(now, qpn, &write(1)).unwrap();
        }
        let sent = core::iter::from_fn(|| engine.transmit(now)).map(|segment| segment.length).sum::<u32>();
        // A millisecond at the rate is 125 000 octets.
        assert_eq!(sent > 20 * MTU, late, "{sent}");
    }
}

#[test]
fn a_queue_pair_that_was_reset_begins_at_the_links_rate() {
    for settings in [&[][..], &[("limiter", "port")]] {
        let mut engine = engine(1, settings);
        let qpn = engine.create_qp(QpConfig { law: 1, path: 9, ..config() }).unwrap();
        let begins_with = engine.query(qpn).unwrap().credit;
        notify(&mut engine, Instant::ZERO, qpn);
        assert!(engine.query(qpn).unwrap().credit.rate_kbps < begins_with.rate_kbps);
        let now = Instant::ZERO + Span::from_micros(1);
        let ways = [Transition::Reset, Transition::Initialize, Transition::Receive, Transition::Send];
        for way in ways {
            engine.modify_qp(now, qpn, &Change { transition: Some(way), ..Change::default() }).unwrap();
        }
        assert_eq!(engine.query(qpn).unwrap().credit, begins_with);
        assert_eq!(engine.next_wakeup(), None, "the law that was has no timer left");
        notify(&mut engine, now, qpn);
        assert!(engine.query(qpn).unwrap().credit.rate_kbps < begins_with.rate_kbps, "the law still hears");
    }
}

#[test]
fn events_that_wait_for_a_law_that_is_out_are_limited_and_the_rest_counted() {
    let mut engine = engine(1, &[]);
    let deferred = Deferred { law: true, ..Deferred::default() };
    let qpn = engine.create_qp(QpConfig { law: 1, deferred, path: 9, ..config() }).unwrap();
    for _ in 0..1_000 {
        notify(&mut engine, Instant::ZERO, qpn);
    }
    let mut heard = 0;
    while let Some(deferral) = engine.poll_deferral() {
        let Deferral::Law { token, qpn, event } = deferral else { panic!("{deferral:?}") };
        heard += 1;
        let outcome = engine.evaluate(qpn, &event).unwrap();
        engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
    }
    let counters = engine.counters(qpn);
    assert_eq!((heard, counters.unheard, counters.cnps), (257, 743, 1_000));
}

#[test]
fn packets_that_wait_for_laws_are_counted_for_the_queue_pairs_of_a_group_together() {
    let mut engine = engine(1, &[]);
    engine.count_waiting(2);
    let deferred = Deferred { law: true, ..Deferred::default() };
    let config = QpConfig { law: 1, deferred, path: 9, ..config() };
    let [a, b, c] = [2, 3, 4].map(|qpn| {
        let config = QpConfig { qpn: Some(Qpn::new(qpn)), ..config };
        engine.create_qp(config).unwrap()
    });
    let waiting = |engine: &Engine| [a, b].map(|qpn| engine.packets_waiting(qpn));
    for qpn in [a, a, a, b, b, c, c, c] {
        notify(&mut engine, Instant::ZERO, qpn);
    }
    assert_eq!((waiting(&engine), engine.packets_waiting(c)), ([4, 1], 4), "one of each is out");
    let Some(Deferral::Law { token, event, .. }) = engine.poll_deferral() else { panic!("it is told") };
    let outcome = engine.evaluate(a, &event).unwrap();
    engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
    assert_eq!(waiting(&engine), [3, 1], "the next one is out");
    engine.destroy_qp(c).unwrap();
    assert_eq!(waiting(&engine), [1, 1], "nobody hears of them any more");
    let reset = Change { transition: Some(Transition::Reset), ..Change::default() };
    engine.modify_qp(Instant::ZERO, b, &reset).unwrap();
    assert_eq!(waiting(&engine), [1, 0]);
    for _ in 0..1_000 {
        notify(&mut engine, Instant::ZERO, a);
    }
    assert_eq!((waiting(&engine), engine.unheard()), ([256, 0], 745));
}

#[test]
fn what_waits_for_a_packet_to_be_sent_is_heard_where_the_queue_pair_fails_before() {
    let mut engine = Engine::new(EngineConfig::default());
    engine.count_waiting(1);
    let law = engine.add_law(Law::External(Class::CNP.with(Class::TRANSMIT)));
    let deferred = Deferred { law: true, ..Deferred::default() };
    let offered = |engine: &mut Engine| {
        let qpn = engine.create_qp(QpConfig { law, deferred, path: 9, ..config() }).unwrap();
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        engine.post_send(Instant::ZERO, qpn, &request(1, write, 0, 100)).unwrap();
        let offer = engine.offer(Instant::ZERO, MTU).unwrap();
        notify(engine, Instant::ZERO, qpn);
        notify(engine, Instant::ZERO, qpn);
        let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
        engine.modify_qp(Instant::ZERO, qpn, &fail).unwrap();
        assert_eq!(engine.packets_waiting(qpn), 2);
        (qpn, offer)
    };
    let hears_both = |engine: &mut Engine, qpn| {
        for left in [1, 0] {
            assert_eq!(engine.packets_waiting(qpn), left);
            let Some(Deferral::Law { token, event, .. }) = engine.poll_deferral() else {
                panic!("it is told")
            };
            let outcome = engine.evaluate(qpn, &event).unwrap();
            engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
        }
        assert!(engine.poll_deferral().is_none());
    };
    let (qpn, offer) = offered(&mut engine);
    assert!(engine.commit(Instant::ZERO, offer, Grant::Engine).is_none());
    hears_both(&mut engine, qpn);
    let (qpn, offer) = offered(&mut engine);
    engine.decline(Instant::ZERO, offer, Until::At(Instant::ZERO));
    hears_both(&mut engine, qpn);
}

#[test]
fn tokens_that_are_spent_while_the_law_is_out_stay_spent() {
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::External(Class::CNP));
    let deferred = Deferred { law: true, ..Deferred::default() };
    let qpn = engine.create_qp(QpConfig { law, deferred, path: 9, ..config() }).unwrap();
    let tokens = |engine: &Engine| engine.query(qpn).unwrap().credit.tokens;
    // What the law adds to the tokens that it sees, at first to none, and how many packets go before it answers.
    let mut expected = 0;
    for (adds, sent) in [(10 * MTU, 0), (2 * MTU, 3), (0, 4), (MTU, 0)] {
        notify(&mut engine, Instant::ZERO, qpn);
        let Some(Deferral::Law { token, event, .. }) = engine.poll_deferral() else { panic!("it is told") };
        let mut outcome = engine.evaluate(qpn, &event).unwrap();
        let seen = outcome.credit.tokens;
        outcome.credit.tokens = if seen == u32::MAX { adds } else { seen + adds };
        for id in 0..sent {
            let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
            engine.post_send(Instant::ZERO, qpn, &request(id, write, 0, MTU)).unwrap();
            assert!(engine.transmit(Instant::ZERO).is_some());
        }
        engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
        expected = expected + adds - sent as u32 * MTU;
        assert_eq!(tokens(&engine), expected);
    }
    assert_eq!(expected, 6 * MTU);
}

#[test]
fn the_timer_of_the_ports_law_lets_all_queue_pairs_go_that_wait_for_it() {
    let mut engine = engine(1, &[("limiter", "port")]);
    let config = QpConfig { law: 1, path: 9, timeout: Span::ZERO, ..config() };
    let qps: Vec<_> = (0..3).map(|_| engine.create_qp(config).unwrap()).collect();
    let now = Instant::ZERO;
    for (id, &qpn) in (0..).zip(&qps) {
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        engine.post_send(now, qpn, &request(id, write, 0, 100)).unwrap();
    }
    while let Some(offer) = engine.offer(now, MTU) {
        engine.decline(now, offer, Until::Timer);
    }
    notify(&mut engine, now, qps[1]);
    let mut sent = 0;
    while let Some(at) = engine.next_wakeup().filter(|at| *at < now + Span::from_millis(10)) {
        engine.wake(at);
        while engine.transmit(at).is_some() {
            sent += 1;
        }
    }
    assert_eq!(sent, 3);
}

#[test]
fn a_window_of_the_ports_law_is_that_of_each_queue_pair() {
    let mut engine = engine(1, &[("limiter", "port")]);
    let deferred = Deferred { law: true, ..Deferred::default() };
    let config = QpConfig { law: 1, deferred, path: 9, ..config() };
    let qps: Vec<_> = (0..3).map(|_| engine.create_qp(config).unwrap()).collect();
    notify(&mut engine, Instant::ZERO, qps[1]);
    let Some(Deferral::Law { token, event, .. }) = engine.poll_deferral() else { panic!("it is told") };
    let mut outcome = engine.evaluate(qps[1], &event).unwrap();
    outcome.credit.window = 5_000;
    engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
    assert!(qps.iter().all(|&qpn| engine.query(qpn).unwrap().credit.window == 5_000));
}

#[test]
fn a_law_hears_of_a_loss_once_for_each_recovery_of_a_window() {
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::External(Class::LOSS));
    let deferred = Deferred { law: true, ..Deferred::default() };
    let (recovery, layout) = (Recovery::NewReno, Layout::Irn);
    let qpn = engine.create_qp(QpConfig { law, deferred, recovery, layout, ..config() }).unwrap();
    let operation = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
    engine.post_send(Instant::ZERO, qpn, &request(1, operation, 0, 40 * MTU)).unwrap();
    assert_eq!(std::iter::from_fn(|| engine.transmit(Instant::ZERO)).count(), 10);
    let (mut heard, mut again) = (Vec::new(), Vec::new());
    // 2 and 5 are lost: the third repetition tells of one, a partial acknowledgement of the other. Limited transmit
    // has sent up to 14 meanwhile.
    for (cumulative, came) in [(1, 1), (1, 3), (1, 4), (1, 6), (1, 7), (4, 4), (14, 14)] {
        let mut header = Header::new(Opcode::ACKNOWLEDGE, qpn, Psn::new(cumulative));
        header.set_aeth(Aeth { syndrome: 31, msn: 0 });
        header.set_trigger(Psn::new(came));
        let arrival = Arrival::new(&header, 0);
        let mut reaction = Reaction::default();
        engine.receive(Instant::ZERO, &arrival, &mut reaction);
        assert_eq!(reaction.refused, None);
        while let Some(Deferral::Law { event, token, .. }) = engine.poll_deferral() {
            heard.push((cumulative, came, event.event.class, event.event.timeout));
            let outcome = engine.evaluate(qpn, &event).unwrap();
            engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
        }
        let sent = std::iter::from_fn(|| engine.transmit(Instant::ZERO));
        again.extend(sent.filter(|segment| segment.retransmission).map(|segment| segment.header.psn.get()));
    }
    assert_eq!(heard, [(1, 6, Class::LOSS, false)]);
    assert_eq!(again, [2, 5]);
}

/// Two queue pairs of which each has sent a packet, and the instant at which both time out.
fn two_that_time_out(settings: &[(&str, &str)]) -> (Engine, [Qpn; 2], Instant) {
    let mut engine = engine(1, settings);
    let config = QpConfig { law: 1, path: 9, timeout: Span::from_micros(100), ..config() };
    let qps = [0, 1].map(|_| engine.create_qp(config).unwrap());
    for (id, &qpn) in (0..).zip(&qps) {
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        engine.post_send(Instant::ZERO, qpn, &request(id, write, 0, 100)).unwrap();
    }
    while engine.transmit(Instant::ZERO).is_some() {}
    (engine, qps, Instant::ZERO + Span::from_micros(100))
}

const CYCLE: Span = Span::from_nanos(10);

#[test]
fn who_looks_after_one_flow_at_a_time_fires_one_timer() {
    let (mut engine, qps, at) = two_that_time_out(&[]);
    let timeouts = |engine: &Engine| qps.map(|qpn| engine.counters(qpn).timeouts).iter().sum::<u32>();
    for fired in 1..=2 {
        assert!(engine.wake_one(at, None, at + CYCLE));
        assert_eq!(timeouts(&engine), fired);
    }
    // Of laws as well: each has one timer after its notification.
    let (mut engine, qps, _) = two_that_time_out(&[("increase_timer", "20us"), ("alpha_timer", "1ms")]);
    for qpn in qps {
        notify(&mut engine, Instant::ZERO, qpn);
    }
    let due = engine.next_wakeup().unwrap();
    let mut fired = 0;
    while engine.next_wakeup().is_some_and(|next| next <= due) {
        assert!(engine.wake_one(due, None, due + CYCLE));
        fired += 1;
    }
    assert_eq!(fired, 2);
    assert!(!engine.wake_one(due, None, due + CYCLE));
}

#[test]
fn a_timeout_is_discarded_where_the_flow_has_an_acknowledgement_in_the_same_cycle() {
    let (mut engine, [first, second], at) = two_that_time_out(&[]);
    let timeouts = |engine: &Engine| [first, second].map(|qpn| engine.counters(qpn).timeouts);
    engine.wake_one(at, Some(first), at + CYCLE);
    engine.wake_one(at, Some(first), at + CYCLE);
    assert_eq!(timeouts(&engine), [0, 1], "that of the other is not");
    assert!(!engine.wake_one(at, None, at + CYCLE), "nothing is due before the next cycle");
    engine.wake_one(at + CYCLE, Some(second), at + CYCLE * 2);
    assert_eq!(timeouts(&engine), [1, 1], "an acknowledgement that moves nothing leaves the timer as it is");
}
