//! Homa's senders: which message goes first, and what they answer to a receiver that misses something.

use crate::pair::{Fate, Packet, Pair, Server, Side};
use crate::scripts::{MTU, config, request};
use roci_control::program::Options;
use roci_control::{Class, Credit, Emit, Event, Image, Law, Outcome, Part, Programmed};
use roci_transport::{
    Arrival, Change, Deferral, Deferred, Engine, EngineConfig, Grant, Offer, Operation, PortAgent, QpConfig,
    Reaction, Recovery, Resolution, Segment, SendRequest, Status, Tail, Transition, Until,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::{Header, Layout, LayoutWords, Opcode, Shape};
use std::sync::{Arc, Mutex};

/// An engine with queue pairs of law `homa`; the peer of the one numbered n is 100 + n.
fn sender(unscheduled: &str, count: u32) -> (Engine, Vec<Qpn>) {
    let mut engine = Engine::new(EngineConfig::default());
    let link = EngineConfig::default().link;
    let law = Law::from_settings("homa", &[("unscheduled", unscheduled)], link).unwrap();
    let law = engine.add_law(law);
    // Longer than receivers ask.
    let timeout = Span::from_millis(10);
    let homa = QpConfig { law, layout: Layout::Homa, recovery: Recovery::Irn, path: 9, timeout, ..config() };
    let create = |n| engine.create_qp(QpConfig { peer: Qpn::new(100 + n), ..homa }).unwrap();
    let qpns = (0..count).map(create).collect();
    (engine, qpns)
}

/// The receiver asks for the first `length` octets of the first message on `qpn`; what it is answered at once.
fn resend(engine: &mut Engine, now: Instant, qpn: Qpn, length: u32) -> Option<Opcode> {
    let body = HomaBody::Resend { offset: 0, length, priority: 4 };
    let header = Header::new(Opcode::HOMA_RESEND, qpn, Psn::new(0));
    let words = Homa { rpc: 0, body }.encode();
    let arrival = Arrival { words: words.as_slice(), ..Arrival::new(&header, 9) };
    let mut reaction = Reaction::default();
    engine.receive(now, &arrival, &mut reaction);
    assert_eq!(reaction.refused, None);
    reaction.notice.map(|notice| notice.header.opcode)
}

fn message(id: u64, length: u32) -> SendRequest {
    request(id, Operation::Send(Tail::Plain), 0, length)
}

fn all(engine: &mut Engine, now: Instant) -> Vec<Segment> {
    core::iter::from_fn(|| engine.transmit(now)).collect()
}

#[test]
fn the_message_with_the_least_left_goes_first() {
    let (mut engine, qpns) = sender("64KB", 3);
    let now = Instant::ZERO;
    engine.post_send(now, qpns[0], &message(0, 20 * MTU)).unwrap();
    let next = |engine: &mut Engine| engine.transmit(now).map(|segment| segment.header.dest_qpn.get());
    assert_eq!((next(&mut engine), next(&mut engine)), (Some(100), Some(100)));
    engine.post_send(now, qpns[1], &message(1, 18 * MTU + 1)).unwrap();
    engine.post_send(now, qpns[2], &message(2, 3 * MTU)).unwrap();
    let order: Vec<u32> = core::iter::from_fn(|| next(&mut engine)).collect();
    // How long a message is, is known once its first packet goes, which takes its turn.
    let mut expected = vec![101, 102, 102, 102];
    expected.extend([100; 18]);
    expected.extend([101; 18]);
    assert_eq!(order, expected);
}

#[test]
fn who_has_granted_packets_to_send_is_busy_and_sends_nothing_again() {
    let (mut engine, qpns) = sender("64KB", 1);
    engine.post_send(Instant::ZERO, qpns[0], &message(0, 4 * MTU)).unwrap();
    assert!(engine.transmit(Instant::ZERO).is_some());
    let now = Instant::ZERO + Span::from_millis(1);
    assert_eq!(resend(&mut engine, now, qpns[0], MTU), Some(Opcode::HOMA_BUSY));
    let sent = all(&mut engine, now);
    assert_eq!((sent.len(), sent.iter().any(|segment| segment.retransmission)), (3, false));
    assert_eq!(resend(&mut engine, now, qpns[0], MTU), None);
    let again: Vec<Segment> = all(&mut engine, now);
    assert_eq!(again.len(), 1, "all is sent: the packet may be lost");
    assert!(again[0].retransmission && again[0].header.psn == config().send_psn);
}

#[test]
fn octets_that_others_have_overtaken_are_sent_again_before_granted_packets_that_wait() {
    let (mut engine, qpns) = sender("64KB", 1);
    engine.post_send(Instant::ZERO, qpns[0], &message(0, 4 * MTU)).unwrap();
    assert!(engine.transmit(Instant::ZERO).is_some() && engine.transmit(Instant::ZERO).is_some());
    resend(&mut engine, Instant::ZERO, qpns[0], MTU);
    let sent = all(&mut engine, Instant::ZERO);
    assert!(sent[0].retransmission && sent[0].header.psn == config().send_psn);
    assert_eq!(sent.iter().map(|segment| segment.retransmission).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn what_goes_again_has_the_priority_by_which_it_was_asked_for() {
    let (mut engine, qpns) = sender("64KB", 1);
    let now = Instant::ZERO;
    engine.post_send(now, qpns[0], &message(0, 4 * MTU)).unwrap();
    engine.post_send(now, qpns[0], &message(1, 100)).unwrap();
    let [first, last] = [0, 4].map({
        let sent = all(&mut engine, now);
        move |at: usize| sent[at].priority
    });
    assert_eq!((first, last), (5, 7), "the shorter one goes above it");
    resend(&mut engine, now, qpns[0], 2 * MTU);
    let again: Vec<_> = all(&mut engine, now).iter().map(|segment| segment.priority).collect();
    assert_eq!(again, [4, 4]);
}

#[test]
fn who_is_asked_for_his_oldest_message_waits_for_his_timer_anew() {
    let (mut engine, qpns) = sender("64KB", 1);
    engine.post_send(Instant::ZERO, qpns[0], &message(0, 4 * MTU)).unwrap();
    all(&mut engine, Instant::ZERO);
    let millis = |millis| Instant::ZERO + Span::from_millis(millis);
    resend(&mut engine, millis(6), qpns[0], MTU);
    all(&mut engine, millis(6));
    engine.wake(millis(15));
    assert_eq!(engine.counters(qpns[0]).timeouts, 0);
    engine.wake(millis(16));
    assert_eq!(engine.counters(qpns[0]).timeouts, 1);
}

#[test]
fn a_read_request_goes_again_as_it_went_first() {
    let (mut engine, qpns) = sender("64KB", 1);
    engine
        .post_send(Instant::ZERO, qpns[0], &request(1, Operation::Read { va: 0, rkey: 1 }, 0, 100))
        .unwrap();
    let first = all(&mut engine, Instant::ZERO);
    let at = engine.next_wakeup().unwrap();
    engine.wake(at);
    let again = all(&mut engine, at);
    assert_eq!(engine.counters(qpns[0]).timeouts, 0);
    let priorities = [&first, &again].map(|sent| sent.iter().map(|it| it.priority).collect::<Vec<_>>());
    assert_eq!((priorities, again[0].retransmission), ([vec![7], vec![7]], true));
}

#[test]
fn what_goes_again_after_a_timeout_takes_a_higher_priority_each_time() {
    let (mut engine, qpns) = sender("64KB", 1);
    let now = Instant::ZERO;
    engine.post_send(now, qpns[0], &message(0, 64_000 + 4 * MTU)).unwrap();
    let unscheduled = all(&mut engine, now);
    grant(&mut engine, now, qpns[0], 64_000 + 4 * MTU);
    let granted = all(&mut engine, now);
    let priorities = [&unscheduled, &granted].map(|sent| sent.last().map(|last| last.priority));
    assert_eq!(priorities, [Some(4), Some(2)], "a message of more than 15 KB has the last of four levels");
    let mut again = Vec::new();
    while let Some(at) = engine.next_wakeup() {
        engine.wake(at);
        again.extend(all(&mut engine, at).iter().map(|segment| (segment.retransmission, segment.priority)));
    }
    assert_eq!(again, [4, 5, 6, 7, 7, 7, 7].map(|priority| (true, priority)));
}

#[test]
fn who_is_told_busy_is_the_law_to_say_if_it_hears_of_requests_to_send_again() {
    for (hears, expected) in [(Class::NONE, Some(Opcode::HOMA_BUSY)), (Class::RESEND, None)] {
        let mut engine = Engine::new(EngineConfig::default());
        let law = engine.add_law(Law::External(Class::MESSAGE.with(hears)));
        // An external law deals nothing: all may go at once, but nothing has gone.
        let homa = QpConfig { law, layout: Layout::Homa, recovery: Recovery::Irn, path: 9, ..config() };
        let qpn = engine.create_qp(QpConfig { peer: Qpn::new(100), ..homa }).unwrap();
        engine.post_send(Instant::ZERO, qpn, &message(0, 4 * MTU)).unwrap();
        assert!(engine.transmit(Instant::ZERO).is_some());
        // It asks for what has not been sent yet: there is nothing to send again.
        let body = HomaBody::Resend { offset: 2 * MTU, length: MTU, priority: 4 };
        let header = Header::new(Opcode::HOMA_RESEND, qpn, Psn::new(0));
        let words = Homa { rpc: 0, body }.encode();
        let arrival = Arrival { words: words.as_slice(), ..Arrival::new(&header, 9) };
        let mut reaction = Reaction::default();
        engine.set_port_agent(Box::new(Silent));
        engine.receive(Instant::ZERO, &arrival, &mut reaction);
        assert_eq!(reaction.refused, None);
        assert_eq!(reaction.notice.map(|notice| notice.header.opcode), expected);
    }
}

/// A port's agent that says nothing.
#[derive(Debug)]
struct Silent;

impl PortAgent for Silent {
    fn on_event(&mut self, _event: &Event<'_>) {}

    fn poll(&mut self, _now: Instant) -> Option<(Qpn, Emit)> {
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn wake(&mut self, _now: Instant) {}
}

/// Two ends that speak layout `homa` and keep what comes out of order.
fn homa() -> QpConfig {
    QpConfig { layout: Layout::Homa, recovery: Recovery::Irn, ..config() }
}

#[test]
fn a_message_that_overtakes_another_finds_its_own_receive() {
    // All packets of the first but one come after the others, as where they have a lower priority.
    for (number, fate) in [(0, Fate::Delay(Span::from_micros(50))), (1, Fate::Delay(Span::from_micros(50)))] {
        let mut pair = Pair::connected(homa()).fate(number, fate);
        for (id, at) in [(11, 1u64 << 16), (12, 2 << 16), (13, 3 << 16)] {
            pair.post_recv(Server, id, at, 4 * MTU);
        }
        pair.send(1, 0, 3 * MTU);
        pair.write(2, 10_000, 4 << 16, 2 * MTU);
        pair.send(3, 20_000, 2 * MTU + 5);
        pair.send(4, 30_000, 7);
        pair.run();
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts, counters.naks), (0, 0, 0), "packet {number}");
        let received: Vec<_> = pair.server.completions.iter().map(|it| (it.id, it.length)).collect();
        assert_eq!(received, [(11, 3 * MTU), (12, 2 * MTU + 5), (13, 7)], "packet {number}");
        pair.assert_copied(0, 1 << 16, 3 * MTU);
        pair.assert_copied(10_000, 4 << 16, 2 * MTU);
        pair.assert_copied(20_000, 2 << 16, 2 * MTU + 5);
        pair.assert_copied(30_000, 3 << 16, 7);
    }
}

#[test]
fn a_message_after_a_lost_one_is_kept_and_not_sent_again() {
    let mut pair = Pair::connected(homa()).fate(0, Fate::Drop);
    for id in 0..40 {
        pair.post_recv(Server, id, 4096 * id, 100);
        pair.send(id, 4096 * id, 100);
    }
    pair.run();
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.retransmitted, counters.timeouts), (1, 1));
    assert!(pair.server.completions.iter().map(|it| it.id).eq(0..40));
}

#[test]
fn numbers_of_messages_go_round() {
    let mut pair = Pair::connected(homa());
    for round in 0..0x8040u64 {
        if round == 0x7fff {
            let next = pair.client.sent.len();
            pair = pair.fate(next, Fate::Drop);
        }
        pair.post_recv(Server, round, 0, 64);
        pair.send(round, 0, 1);
        if round < 0x7fff {
            pair.run();
        }
    }
    pair.run();
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.retransmitted, counters.timeouts), (1, 1));
    assert!(pair.server.completions.iter().map(|it| it.id).eq(0..0x8040));
}

#[test]
fn a_read_that_others_have_overtaken_is_asked_for_alone() {
    let mut pair = granted().fate(1, Fate::Drop);
    pair.server.memory[8192..8192 + 100].fill(7);
    pair.write(1, 0, 4096, 10);
    for id in 2..10 {
        pair.read(id, 1024 * id, 8192, 100);
    }
    pair.run();
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.retransmitted, counters.timeouts, counters.naks), (1, 0, 0));
    assert_eq!(pair.client.ended().len(), 9);
    assert!((2..10).all(|id| pair.client.memory[1024 * id..1024 * id + 100].iter().all(|&octet| octet == 7)));
}

/// Two ends with Homa's agents.
fn granted() -> Pair {
    let engine = |seed| {
        let mut engine = Engine::new(EngineConfig { seed, ..EngineConfig::default() });
        let link = EngineConfig::default().link;
        engine.add_law(
            Law::from_settings("homa", &[("unscheduled", "64KB"), ("resend", "400us")], link).unwrap(),
        );
        engine
    };
    Pair::with_engines(engine(1), engine(2), QpConfig { law: 1, ..homa() }, 1)
}

/// One READ of so many packets that is asked for at once.
fn reader(packets: u32) -> Pair {
    let mut pair = granted();
    pair.server.memory[8192..8192 + (packets * MTU) as usize].fill(7);
    pair.read(1, 0, 8192, packets * MTU);
    pair
}

#[test]
fn of_read_data_that_are_lost_those_alone_are_sent_again_and_each_says_whose_it_is() {
    // The first, some among others, and the last and all, of which nothing tells but silence.
    for lost in [vec![0], vec![3, 4, 7], vec![19], (0..20).collect()] {
        let count = lost.len() as u32;
        let mut pair = reader(20);
        let mut data = 0;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = seen.clone();
        pair = pair.script(move |side, _, packet, _| {
            let is_data = side == Side::Server && packet.header.opcode.shape().has(Shape::PAYLOAD);
            data += usize::from(is_data);
            if !packet.words.is_empty() {
                let words = LayoutWords::new(&packet.words).unwrap();
                told.lock().unwrap().push(Homa::decode(&packet.header, &words).unwrap());
            }
            if is_data && lost.contains(&(data - 1)) { Fate::Drop } else { Fate::Pass }
        });
        pair.run();
        let (reader, responder) = (&pair.client, &pair.server);
        let counters = responder.engine.counters(responder.qpns[0]);
        let timeouts = reader.engine.counters(reader.qpns[0]).timeouts + counters.timeouts;
        assert_eq!((timeouts, counters.retransmitted), (0, count), "{counters:?}");
        assert_eq!(reader.ended(), [(1, Status::Success)]);
        assert!(reader.memory[..20 * MTU as usize].iter().all(|&octet| octet == 7));
        let seen = seen.lock().unwrap();
        let data: Vec<_> = seen.iter().filter(|homa| matches!(homa.body, HomaBody::Data { .. })).collect();
        assert!(data.iter().all(|homa| homa.rpc <= 1), "the request is 0, and the data are 1");
        assert!(seen.iter().any(|homa| matches!(homa.body, HomaBody::Resend { .. }) && homa.rpc == 1));
    }
}

#[test]
fn read_data_are_lost_that_equals_have_overtaken_and_waited_for_behind_a_higher_priority() {
    // The last packet of the first READ of twenty does not come, or all come late, and another READ's data overtake them.
    for (length, late) in [(20 * MTU, false), (100, true)] {
        let mut pair = reader(20).script(move |side, _, packet, _| {
            let place = packet.header.psn.since(config().send_psn);
            let is_data = side == Side::Server && packet.header.opcode.shape().has(Shape::PAYLOAD);
            let again = packet.words.first().is_some_and(|word| word & 1 == 1);
            match (is_data && !again, late) {
                (true, true) if place < 20 => Fate::Delay(Span::from_micros(30)),
                (true, false) if place == 19 => Fate::Drop,
                _ => Fate::Pass,
            }
        });
        pair.read(2, 1 << 16, 8192, length);
        // An eighth of RESEND's interval, 50 us, is the shortest silence.
        pair.run_until(Instant::ZERO + Span::from_micros(45));
        let (reader, responder) = (&pair.client, &pair.server);
        let retransmitted = responder.engine.counters(responder.qpns[0]).retransmitted;
        assert_eq!(retransmitted, u32::from(!late), "late: {late}");
        assert_eq!(reader.ended(), [(1, Status::Success), (2, Status::Success)]);
    }
}

#[test]
fn a_queue_pair_that_has_failed_asks_for_no_more_read_data() {
    let mut number = 0;
    let mut pair = reader(20).script(move |side, _, _, _| {
        number += u32::from(side == Side::Server);
        if side == Side::Server && number > 3 { Fate::Drop } else { Fate::Pass }
    });
    pair.run_until(Instant::ZERO + Span::from_micros(20));
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    let qpn = pair.client.qpns[0];
    pair.client.engine.modify_qp(Instant::ZERO + Span::from_micros(20), qpn, &fail).unwrap();
    assert_eq!(pair.client.engine.next_wakeup(), None, "nor does anybody look whether they come");
    let sent = pair.client.sent.len();
    pair.run_until(Instant::ZERO + Span::from_millis(5));
    assert_eq!(pair.client.sent.len(), sent);
}

#[test]
fn a_request_that_comes_twice_draws_the_data_once() {
    let mut pair = granted().fate(0, Fate::Duplicate);
    pair.read(1, 0, 8192, 100);
    pair.run();
    assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    assert_eq!(pair.server.engine.counters(pair.server.qpns[0]).retransmitted, 0);
}

#[test]
fn grants_that_are_lost_are_said_once_more_after_a_silence() {
    let sent = |lost: usize| {
        let grants = Arc::new(Mutex::new(0));
        let count = grants.clone();
        let mut pair = granted().script(move |_, _, packet, _| {
            let mut count = count.lock().unwrap();
            let grant = packet.header.opcode == Opcode::HOMA_GRANT;
            *count += usize::from(grant);
            if grant && *count <= lost { Fate::Drop } else { Fate::Pass }
        });
        pair.write(1, 0, 0, 64_000 + 20 * MTU);
        pair.run_until(Instant::ZERO + Span::from_micros(600));
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
        *grants.lock().unwrap()
    };
    let all = sent(0);
    assert!(all > 1 && sent(all) == all, "by another packet than a grant");
}

#[test]
fn a_read_request_that_is_lost_is_sent_again_after_the_interval_and_not_after_the_timeout() {
    for length in [100, 20 * MTU] {
        let mut pair = granted().fate(0, Fate::Drop);
        pair.server.memory[8192..8292].fill(7);
        pair.read(1, 0, 8192, length);
        pair.run_until(Instant::ZERO + Span::from_micros(450));
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!((counters.retransmitted, counters.timeouts), (1, 0));
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert!(pair.client.memory[..100].iter().all(|&octet| octet == 7));
    }
}

#[test]
fn the_data_of_a_short_read_acknowledge_its_request_and_are_asked_for_by_it() {
    // The octets of three READs, and whether the data of the second are lost.
    for (length, lost) in [(100, false), (100, true), (2 * MTU, false)] {
        let mut number = 0;
        let mut pair = granted().script(move |side, _, packet, _| {
            let is_data = side == Side::Server && packet.header.opcode.shape().has(Shape::PAYLOAD);
            number += u32::from(is_data);
            if is_data && number == 2 && lost { Fate::Drop } else { Fate::Pass }
        });
        pair.server.memory[8192..8292].fill(7);
        for id in 0..3 {
            pair.read(id, 4096 * id, 8192, length);
        }
        pair.run();
        assert_eq!(pair.client.ended().len(), 3);
        assert!((0..3).all(|id| pair.client.memory[4096 * id..][..100].iter().all(|&octet| octet == 7)));
        let acknowledged = |packet: &&Packet| packet.header.opcode == Opcode::ACKNOWLEDGE;
        let acknowledgements = pair.server.sent.iter().filter(acknowledged).count();
        let expected = if length > MTU { 3 } else { usize::from(lost) };
        assert_eq!(acknowledgements, expected, "{length} octets, lost: {lost}");
        for node in [&pair.client, &pair.server] {
            let counters = node.engine.counters(node.qpns[0]);
            assert_eq!((counters.retransmitted, counters.timeouts), (u32::from(lost), 0));
        }
    }
}

#[test]
fn what_a_read_request_overtakes_is_not_asked_for_while_it_may_come() {
    // Six WRITEs of two packets come 2 us late, and READ requests go before all data.
    let mut pair = granted();
    pair = pair.script(|side, _, packet, _| {
        let late = side == Side::Client && packet.header.opcode.shape().has(Shape::WRITE);
        if late { Fate::Delay(Span::from_micros(2)) } else { Fate::Pass }
    });
    for id in 0..6 {
        pair.write(id, 0, 1 << 16, 2 * MTU);
    }
    pair.read(6, 1 << 17, 8192, 100);
    pair.run();
    let counters = pair.client.engine.counters(pair.client.qpns[0]);
    assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
    assert_eq!(pair.client.ended().len(), 7);
}

#[test]
fn a_timeout_tells_of_every_message_that_is_next_to_come_and_was_sent_before_it() {
    for reads in [false, true] {
        let mut pair = Pair::connected(homa());
        pair = pair.script(|side, number, _, _| {
            let lost = side == Side::Client && number < 8 && number != 3;
            if lost { Fate::Drop } else { Fate::Pass }
        });
        for id in 0..8 {
            if reads {
                pair.read(id, 1024 * id, 8192, 100);
            } else {
                pair.write(id, 1024 * id, 4096 + 1024 * id, 100);
            }
        }
        pair.run();
        let counters = pair.client.engine.counters(pair.client.qpns[0]);
        assert_eq!(counters.timeouts, 1, "reads: {reads}");
        assert!((7..=8).contains(&counters.retransmitted), "{counters:?}");
        assert_eq!(pair.client.ended().len(), 8);
    }
}

/// Homa in C, which lets four packets of a message go unscheduled, and the same once more.
fn coded(deferred: bool) -> (Engine, Qpn, u16, Arc<Image>) {
    let file = include_bytes!("../../../../firmware/homa.elf");
    let image = Arc::new(Image::new("homa", file, &Options::default()).unwrap());
    let mut program = Programmed::new(Arc::clone(&image), Law::None).unwrap();
    program.set_initial("unscheduled", &(4 * MTU).to_string()).unwrap();
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::Program(Box::new(program)));
    let deferred = Deferred { law: deferred, ..Deferred::default() };
    let homa = QpConfig { law, deferred, layout: Layout::Homa, recovery: Recovery::Irn, path: 9, ..config() };
    let qpn = engine.create_qp(QpConfig { peer: Qpn::new(100), ..homa }).unwrap();
    (engine, qpn, law, image)
}

/// The receiver grants the first `end` octets of the first message on `qpn`.
fn grant(engine: &mut Engine, now: Instant, qpn: Qpn, end: u32) {
    let body = HomaBody::Grant { offset: end, priority: 2, resend_all: false };
    let header = Header::new(Opcode::HOMA_GRANT, qpn, Psn::new(0));
    let words = Homa { rpc: 0, body }.encode();
    let arrival = Arrival { words: words.as_slice(), ..Arrival::new(&header, 9) };
    let mut reaction = Reaction::default();
    engine.receive(now, &arrival, &mut reaction);
    assert_eq!(reaction.refused, None);
}

/// The next packet that is offered, where what the law hears takes no time.
fn offered(engine: &mut Engine, now: Instant) -> Option<Offer> {
    loop {
        if let Some(offer) = engine.offer(now, 1) {
            return Some(offer);
        }
        let Deferral::Law { token, qpn, event } = engine.poll_deferral()? else { return None };
        let outcome = engine.evaluate(qpn, &event)?;
        engine.resolve(now, token, Resolution::Law(outcome));
    }
}

/// Sends what may go, at most so many packets; how many it were.
fn serve(engine: &mut Engine, now: Instant, most: u32) -> u32 {
    let mut packets = 0;
    while packets < most
        && let Some(offer) = offered(engine, now)
    {
        let event = engine.transmit_event(now, &offer).filter(|_| offer.wants_law);
        let outcome = event.and_then(|event| engine.evaluate(offer.qpn, &event));
        let sent = engine.commit(now, offer, outcome.map_or(Grant::Engine, Grant::Law));
        packets += u32::from(sent.is_some());
    }
    packets
}

#[test]
fn a_program_that_takes_over_within_a_message_goes_on_with_it() {
    // How many packets have gone of forty, of which so many are granted, when another program comes.
    for (gone, granted) in [(0, 4), (2, 4), (4, 4), (4, 10), (7, 10), (10, 10), (39, 40)] {
        for deferred in [false, true] {
            let (mut engine, qpn, law, image) = coded(deferred);
            let now = Instant::ZERO;
            engine.post_send(now, qpn, &message(0, 40 * MTU)).unwrap();
            let first = offered(&mut engine, now).expect("the message begins");
            engine.decline(now, first, Until::Recirculated);
            if granted > 4 {
                grant(&mut engine, now, qpn, granted * MTU);
            }
            assert_eq!(serve(&mut engine, now, gone), gone);
            assert!(engine.replace_program(now, law, &image));
            assert_eq!(gone + serve(&mut engine, now, 99), granted, "after {gone}: what is granted, no more");
            grant(&mut engine, now, qpn, 40 * MTU);
            assert_eq!(granted + serve(&mut engine, now, 99), 40, "after {gone} of {granted}");
        }
    }
}

/// An agent that lets the messages of one queue pair have their turns, each when the one before has its grant.
#[derive(Debug)]
struct OneByOne {
    qpn: Qpn,
    next: Option<u32>,
    wakes: Option<Instant>,
}

impl PortAgent for OneByOne {
    fn on_event(&mut self, _event: &Event<'_>) {}

    fn poll(&mut self, _now: Instant) -> Option<(Qpn, Emit)> {
        let message = self.next.take()?;
        let part = Part { message, message_length: 9 * MTU, offset: 0, end: 9 * MTU, priority: 3 };
        Some((self.qpn, Emit { part, ..Emit::plain(Class::GRANT) }))
    }

    fn admit(&mut self, _now: Instant, _qpn: Qpn, part: &mut Part) -> bool {
        self.next = Some(part.message + 1);
        true
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakes
    }

    fn wake(&mut self, _now: Instant) {
        self.next = Some(0);
        self.wakes = None;
    }
}

#[test]
fn a_turn_that_an_answer_of_a_deferred_law_brings_is_answered_as_well_and_in_its_order() {
    let now = Instant::ZERO;
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::External(Class::TURN.with(Class::ACK)));
    let deferred = Deferred { law: true, ..Deferred::default() };
    let homa = QpConfig { law, deferred, layout: Layout::Homa, recovery: Recovery::Irn, path: 9, ..config() };
    let qpn = engine.create_qp(QpConfig { peer: Qpn::new(100), ..homa }).unwrap();
    engine.set_port_agent(Box::new(OneByOne { qpn, next: None, wakes: Some(now) }));
    engine.post_send(now, qpn, &message(0, 2 * MTU)).unwrap();
    assert_eq!(all(&mut engine, now).len(), 2);
    engine.wake(now);
    // The law is out with the first turn when an acknowledgement comes, which waits for it.
    let acknowledgement = Header::new(Opcode::ACKNOWLEDGE, qpn, config().send_psn);
    let arrival = Arrival::new(&acknowledgement, 9);
    engine.receive(now, &arrival, &mut Reaction::default());
    let mut heard = Vec::new();
    let mut granted = 0;
    while let Some(Deferral::Law { token, event, .. }) = engine.poll_deferral().filter(|_| heard.len() < 5) {
        assert!(engine.poll_deferral().is_none(), "one is out");
        heard.push((event.event.class, event.event.part.message));
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        let turn = event.event.class == Class::TURN;
        outcome.emit = turn.then(|| Emit { part: event.event.part, ..Emit::plain(Class::GRANT) });
        engine.resolve(now, token, Resolution::Law(outcome));
        granted += core::iter::from_fn(|| engine.poll_notice()).count();
    }
    let turn = |message| (Class::TURN, message);
    assert_eq!(heard, [turn(0), (Class::ACK, 0), turn(1), turn(2), turn(3)]);
    assert_eq!(granted, 4);
}
