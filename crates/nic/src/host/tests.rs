use super::*;
use crate::delay::Range;
use crate::nics::{Application, Simulated};
use roci_control::{Class, Law};
use roci_fabric::fabric::{Fabric, Stopped};
use roci_fabric::graph::NodeId;
use roci_fabric::net::FabricConfig;
use roci_fabric::tap::TappedFrame;
use roci_fabric::topology::Star;
use roci_fabric::{Fault, FaultSpec};
use roci_transport::{
    Access, Change, Completion, EngineConfig, Operation, Pd, QpConfig, RecvRequest, SendRequest, Status, Tail,
};
use roci_units::{BitsPerSec, Instant, Qpn, Ratio, Span};

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const A: HostId = HostId(0);
const B: HostId = HostId(1);

/// What ended, on which host.
#[derive(Default)]
struct Heard(Vec<(HostId, Completion)>);

impl Application for Heard {
    fn completed(&mut self, _: &mut Net, _: &mut [Host], host: HostId, completion: &Completion) {
        self.0.push((host, *completion));
    }
}

/// Two hosts on one switch, with a queue pair each.
struct Pair {
    fabric: Fabric<Simulated<Heard>>,
    qpn: Qpn,
    peer: Qpn,
    key: u32,
}

impl Pair {
    fn new(classes: Classes, delays: Delays, law: Law, qp: QpConfig, faults: Vec<FaultSpec>) -> Self {
        let star = Star { hosts: 2, rate: RATE, delay: Span::from_micros(1) };
        let graph = star.build().expect("two hosts").graph;
        let mut key = 0;
        let mut hosts: Vec<Host> = (0..2)
            .map(|number| {
                let mut engine = Engine::new(EngineConfig { link: RATE, ..EngineConfig::default() });
                engine.add_law(law.clone());
                (_, key) = engine.register_everything(Pd::default(), Access::ALL).expect("the first region");
                Host::new(engine, classes, delays, Random::new(1, number))
            })
            .collect();
        let config = |host| QpConfig {
            path: Path { host, flow: 0 }.pack(),
            law: 1,
            deferred: delays.deferred(),
            ..qp
        };
        let qpn = hosts[0].engine.create_qp(config(B)).expect("usable");
        let peer = hosts[1].engine.create_qp(QpConfig { peer: qpn, ..config(A) }).expect("usable");
        let known = Change { peer: Some(peer), ..Change::default() };
        hosts[0].engine.modify_qp(Instant::ZERO, qpn, &known).expect("it exists");
        let nics = Simulated::new(hosts, Heard::default());
        let config = FabricConfig { faults, ..FabricConfig::default() };
        let mut fabric = Fabric::new(&graph, &config, nics).expect("it can be built");
        fabric.net.tap(u32::from(A.0), true);
        Self { fabric, qpn, peer, key }
    }

    fn ideal() -> Self {
        Self::new(Classes::default(), Delays::IDEAL, Law::None, QpConfig::default(), Vec::new())
    }

    fn post(&mut self, operation: Operation, length: u32) -> &mut Self {
        let request = SendRequest {
            id: 1,
            operation,
            length,
            address: 0,
            lkey: 0,
            solicited: false,
            signaled: true,
            fence: false,
        };
        let Fabric { net, nics } = &mut self.fabric;
        nics.hosts[0].engine.post_send(net.now(), self.qpn, &request).expect("it is connected");
        nics.hosts[0].poke(net, A);
        self
    }

    fn write(&mut self, length: u32) -> &mut Self {
        let rkey = self.key;
        self.post(Operation::Write { va: 0, rkey, tail: Tail::Plain }, length)
    }

    /// Runs until nothing more happens, and gives what crossed A's port since: whether A sent it, and the packet.
    fn run(&mut self) -> Vec<(bool, Packet)> {
        let limit = self.fabric.net.now() + Span::from_millis(100);
        assert_eq!(self.fabric.run_until(limit), Stopped::Idle);
        let crossed = self.fabric.net.drain_taps().into_iter().map(|tapped| match tapped.frame {
            TappedFrame::Packet(packet, _) => (tapped.sent, packet),
            TappedFrame::Pause { .. } => panic!("nothing here is paused"),
        });
        crossed.collect()
    }

    fn statuses(&self) -> Vec<Status> {
        self.fabric.nics.application.0.iter().map(|(_, completion)| completion.status).collect()
    }
}

fn acknowledgements(crossed: &[(bool, Packet)]) -> Vec<&Packet> {
    let is = |packet: &Packet| packet.header.opcode == Opcode::ACKNOWLEDGE;
    crossed.iter().filter(|(sent, packet)| !sent && is(packet)).map(|(_, packet)| packet).collect()
}

#[test]
fn acknowledgements_travel_with_the_data_unless_they_have_a_priority() {
    let crossed = Pair::ideal().write(3_000).run();
    assert!(crossed.iter().all(|(_, packet)| packet.priority == 3), "{crossed:?}");
    let classes = Classes { ack: Some(5), ..Classes::default() };
    let mut pair = Pair::new(classes, Delays::IDEAL, Law::None, QpConfig::default(), Vec::new());
    let crossed = pair.write(3_000).run();
    assert_eq!(acknowledgements(&crossed).len(), 3);
    assert!(acknowledgements(&crossed).iter().all(|packet| packet.priority == 5));
}

#[test]
fn data_are_ecn_capable_and_acknowledgements_are_not() {
    for (sent, packet) in Pair::ideal().write(2_048).run() {
        assert_eq!(packet.marks.has(Marks::ECT), sent, "{packet:?}");
    }
}

#[test]
fn a_frame_has_the_octets_of_its_headers_and_padded_payload() {
    let crossed = Pair::ideal().write(1_024 + 5).run();
    let sent: Vec<u16> = crossed.iter().filter(|(sent, _)| *sent).map(|(_, packet)| packet.frame).collect();
    // Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16 in the first, payload and pad, ICRC 4, FCS 4.
    assert_eq!(sent, [14 + 20 + 8 + 12 + 16 + 1_024 + 4 + 4, 14 + 20 + 8 + 12 + 8 + 4 + 4]);
}

#[test]
fn a_damaged_packet_is_counted_and_changes_nothing() {
    let fault = Fault::Corrupt(Ratio::ONE);
    let until = Instant::ZERO + Span::from_micros(100);
    let faults = vec![FaultSpec { link: 0, from: NodeId(0), start: Instant::ZERO, until, fault }];
    let mut pair = Pair::new(Classes::default(), Delays::IDEAL, Law::None, QpConfig::default(), faults);
    let crossed = pair.write(100).run();
    assert_eq!(pair.fabric.nics.hosts[1].counters.corrupt, 1);
    assert_eq!(acknowledgements(&crossed).len(), 1, "of the packet that was sent again");
    assert_eq!(pair.statuses(), [Status::Success]);
}

#[test]
fn a_paused_priority_holds_data_back() {
    let mut pair = Pair::ideal();
    let Pair { fabric: Fabric { net, nics }, qpn, key, .. } = &mut pair;
    let host = &mut nics.hosts[0];
    let request = SendRequest {
        id: 1,
        operation: Operation::Write { va: 0, rkey: *key, tail: Tail::Plain },
        length: 1,
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    };
    host.engine.post_send(net.now(), *qpn, &request).expect("it is connected");
    assert!(host.transmit(net, A, !(1 << 3)).is_none());
    assert_eq!(host.counters.sent, 0);
    assert!(host.transmit(net, A, 1 << 3).is_some());
    assert_eq!(host.counters.sent, 1);
}

#[test]
fn a_law_that_traces_data_acknowledges_each_packet_whatever_the_engine_would() {
    let qp = QpConfig { ack_every: 100, ..QpConfig::default() };
    let mut pair = Pair::new(Classes::default(), Delays::IDEAL, Law::None, qp, Vec::new());
    assert_eq!(acknowledgements(&pair.write(10 * 1_024).run()).len(), 1, "the engine, for the last packet");
    let law = Law::External(Class::DATA.with(Class::TRANSMIT));
    let mut pair = Pair::new(Classes::default(), Delays::deferred_law(), law, qp, Vec::new());
    let crossed = pair.write(10 * 1_024).run();
    assert_eq!(acknowledgements(&crossed).len(), 10, "{crossed:?}");
    assert_eq!(crossed.iter().filter(|(sent, _)| *sent).count(), 10);
    assert_eq!(pair.statuses(), [Status::Success]);
}

#[test]
fn a_law_does_not_acknowledge_beyond_a_read_that_is_being_answered() {
    let law = Law::External(Class::DATA.with(Class::TRANSMIT));
    let mut pair =
        Pair::new(Classes::default(), Delays::deferred_law(), law, QpConfig::default(), Vec::new());
    let rkey = pair.key;
    pair.post(Operation::Read { va: 0, rkey }, 50_000).write(5_000);
    let requests = |crossed: &[(bool, Packet)]| {
        crossed.iter().filter(|(sent, packet)| *sent && packet.header.opcode == Opcode::READ_REQUEST).count()
    };
    assert_eq!(requests(&pair.run()), 1, "nothing made the requester ask again");
    assert_eq!(pair.statuses(), [Status::Success; 2]);
}

#[test]
fn each_packet_waits_for_its_grant() {
    let grant = Some(Range::exactly(Span::from_micros(7)));
    let delays = Delays { grant, ..Delays::IDEAL };
    let mut pair = Pair::new(Classes::default(), delays, Law::None, QpConfig::default(), Vec::new());
    pair.write(1);
    assert_eq!(pair.fabric.run_until(Instant::ZERO + Span::from_nanos(6_999)), Stopped::At);
    assert_eq!(pair.fabric.nics.hosts[0].counters.sent, 0);
    assert_eq!(pair.fabric.run_until(Instant::ZERO + Span::from_micros(7)), Stopped::At);
    assert_eq!(pair.fabric.nics.hosts[0].counters.sent, 1);
}

#[test]
fn a_completion_waits_for_the_placement() {
    let delays = Delays::IDEAL.with_placement(Span::from_micros(50));
    let mut pair = Pair::new(Classes::default(), delays, Law::None, QpConfig::default(), Vec::new());
    let receive = RecvRequest { id: 2, address: 0, length: 64, lkey: 0 };
    pair.fabric.nics.hosts[1].engine.post_recv(pair.peer, receive).expect("it is connected");
    pair.post(Operation::Send(Tail::Immediate(9)), 64);
    assert_eq!(pair.fabric.run_until(Instant::ZERO + Span::from_micros(50)), Stopped::At);
    assert_eq!(pair.statuses(), []);
    pair.run();
    let heard: Vec<_> = pair.fabric.nics.application.0.iter().map(|(host, done)| (*host, done.id)).collect();
    assert_eq!(heard, [(B, 2), (A, 1)], "the receiver first, then the acknowledgement");
}

#[test]
fn atomics_work_on_the_words_of_the_responder() {
    let mut pair = Pair::ideal();
    let rkey = pair.key;
    pair.post(Operation::FetchAdd { va: 8, rkey, add: 5 }, 8);
    pair.post(Operation::CompareSwap { va: 8, rkey, compare: 5, swap: 7 }, 8);
    pair.post(Operation::CompareSwap { va: 8, rkey, compare: 5, swap: 9 }, 8).run();
    let found: Vec<u64> = pair.fabric.nics.application.0.iter().map(|(_, done)| done.original).collect();
    assert_eq!(found, [0, 5, 7]);
    assert_eq!((pair.fabric.nics.hosts[1].word(8), pair.fabric.nics.hosts[0].word(8)), (7, 0));
}

#[test]
fn a_strangers_packet_is_refused() {
    let mut pair = Pair::ideal();
    let stranger = Path { host: A, flow: 1 }.pack();
    let elsewhere = Change { path: Some(stranger), ..Change::default() };
    let Pair { fabric, peer, .. } = &mut pair;
    fabric.nics.hosts[1].engine.modify_qp(Instant::ZERO, *peer, &elsewhere).expect("it exists");
    pair.write(1).run();
    assert_eq!(pair.statuses(), [Status::TransportRetryCounterExceeded]);
    assert_eq!(pair.fabric.nics.hosts[1].counters.refused, 8, "the packet and seven retries");
}
