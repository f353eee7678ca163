//! A host that receives more slowly than its link: its FIFO fills, and it pauses its switch or drops.

use roci_fabric::fabric::{Fabric, Stopped};
use roci_fabric::net::{FabricConfig, Net};
use roci_fabric::packet::HostId;
use roci_fabric::routing::flow_hash;
use roci_fabric::topology::Star;
use roci_nic::{Application, Classes, Delays, DrainConfig, Host, Path, Simulated};
use roci_switch::SwitchConfig;
use roci_switch::config::CUSTOMARY_FRAME;
use roci_transport::{
    Access, Change, Completion, Engine, EngineConfig, Operation, Pd, QpConfig, SendRequest, Status, Tail,
};
use roci_units::{BitsPerSec, Bytes, Instant, Random, Span};

const RATE: BitsPerSec = BitsPerSec::from_gbps(40);
const SLOW: BitsPerSec = BitsPerSec::from_gbps(10);
const MESSAGE: u32 = 2_000_000;
const SENDER: HostId = HostId(0);
const RECEIVER: HostId = HostId(1);

/// Hears of the one WRITE.
#[derive(Default)]
struct Heard(Vec<(Instant, Status)>);

impl Application for Heard {
    fn completed(&mut self, net: &mut Net, _: &mut [Host], _: HostId, completion: &Completion) {
        self.0.push((net.now(), completion.status));
    }
}

/// Sends 2 MB at 40 Gb/s to a host that takes 10 Gb/s, until nothing more happens.
fn run(fifo: u64, pause: u8) -> Fabric<Simulated<Heard>> {
    let star = Star { hosts: 2, rate: RATE, delay: Span::from_micros(1) };
    let graph = star.build().expect("two hosts").graph;
    let mut key = 0;
    let mut hosts: Vec<Host> = (0..2)
        .map(|number| {
            let mut engine = Engine::new(EngineConfig { link: RATE, ..EngineConfig::default() });
            (_, key) = engine.register_everything(Pd::default(), Access::ALL).expect("the first region");
            Host::new(engine, Classes::default(), Delays::IDEAL, Random::new(1, number))
        })
        .collect();
    let flow = flow_hash(SENDER, RECEIVER, 0xc000);
    let config = |peer| QpConfig { path: Path { host: peer, flow }.pack(), ..QpConfig::default() };
    let qpn = hosts[0].engine.create_qp(config(RECEIVER)).expect("usable");
    let peer = hosts[1].engine.create_qp(QpConfig { peer: qpn, ..config(SENDER) }).expect("usable");
    let known = Change { peer: Some(peer), ..Change::default() };
    hosts[0].engine.modify_qp(Instant::ZERO, qpn, &known).expect("it exists");
    let request = SendRequest {
        id: 1,
        operation: Operation::Write { va: 0, rkey: key, tail: Tail::Plain },
        length: MESSAGE,
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    };
    hosts[0].engine.post_send(Instant::ZERO, qpn, &request).expect("it is connected");
    let pfc = if pause == 0 { None } else { SwitchConfig::default().pfc };
    let config =
        FabricConfig { switch: SwitchConfig { pfc, ..SwitchConfig::default() }, ..FabricConfig::default() };
    let nics = Simulated::new(hosts, Heard::default());
    let mut fabric = Fabric::new(&graph, &config, nics).expect("it can be built");
    let Fabric { net, nics } = &mut fabric;
    let drain = DrainConfig { fifo: Bytes(fifo), rate: SLOW, pause, max_frame: CUSTOMARY_FRAME };
    nics.hosts[1].set_drain(net, RECEIVER, drain);
    nics.hosts[0].poke(net, SENDER);
    assert_eq!(fabric.run_until(Instant::ZERO + Span::from_secs(5)), Stopped::Idle);
    assert_eq!(fabric.net.packets().live(), 0);
    fabric
}

/// How long the FIFO takes for the whole message with its headers.
fn at_least() -> Instant {
    Instant::ZERO + SLOW.time_for(u64::from(MESSAGE))
}

/// The octets that may still arrive after the decision to pause, and the threshold below them.
const HEADROOM: u64 = 10_000 + 2 * 4_178 + 64;

#[test]
fn a_slow_receiver_pauses_its_switch_and_drops_nothing() {
    let fabric = run(HEADROOM + 10_000, 1 << 3);
    let (ended, status) = fabric.nics.application.0[0];
    assert_eq!((status, fabric.nics.application.0.len()), (Status::Success, 1));
    assert!(ended > at_least(), "{ended}");
    assert!(ended < at_least() + Span::from_micros(250), "the FIFO ran empty under pauses: {ended}");
    assert_eq!((fabric.nics.hosts[1].overflowed(), fabric.net.totals().dropped), (0, 0));
    let switch_port = fabric.net.peer(u32::from(RECEIVER.0));
    assert!(fabric.net.pauses(switch_port).received > 10, "the switch was told to stop, again and again");
    assert_eq!(fabric.net.paused(switch_port), 0, "and in the end to go on");
}

#[test]
fn the_headroom_is_enough_and_less_than_is_in_flight_is_not() {
    assert_eq!(run(HEADROOM, 1 << 3).nics.hosts[1].overflowed(), 0);
    // It pauses at the first octet; 10 KB follow, of which it has taken a quarter by then.
    assert!(run(7_000, 1 << 3).nics.hosts[1].overflowed() > 0);
}

#[test]
fn without_pauses_it_drops_and_go_back_n_recovers() {
    let fabric = run(50_000, 0);
    assert_eq!(fabric.nics.application.0.len(), 1);
    assert_eq!(fabric.nics.application.0[0].1, Status::Success);
    assert!(fabric.nics.hosts[1].overflowed() > 0);
    assert_eq!(fabric.net.pauses(fabric.net.peer(u32::from(RECEIVER.0))).received, 0);
}
