//! Running a case to its end.

use crate::case::Case;
use crate::check::check;
use crate::load::{Datagram, Datagrams, Load, Message, Shared, Side};
use crate::network;
use roci_control::{Class, Law};
use roci_fabric::fabric::{Fabric, Stopped};
use roci_fabric::packet::HostId;
use roci_fabric::routing::flow_hash;
use roci_nic::arch::presets;
use roci_nic::{Architecture, Classes, Delays, DrainConfig, Host, Path, Simulated};
use roci_switch::config::CUSTOMARY_FRAME;
use roci_transport::{Access, Change, Deferred, Engine, EngineConfig, Pd, QpConfig, Recovery, Service};
use roci_units::{BitsPerSec, Bytes, Instant, Psn, Qpn, Random, Ratio, Span};
use roci_wire::Layout;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A NIC to run a case on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nic {
    pub(crate) name: &'static str,
    pub(crate) delays: Delays,
    /// Whether it is the preset of that name.
    pub(crate) preset: bool,
}

impl Nic {
    const fn delays(name: &'static str, delays: Delays) -> Self {
        Self { name, delays, preset: false }
    }

    const fn preset(name: &'static str) -> Self {
        Self { name, delays: Delays::IDEAL, preset: true }
    }

    fn architecture(&self) -> Option<Arc<Architecture>> {
        self.preset.then(|| Arc::new(presets::find(self.name).expect("there is such a preset")))
    }

    fn deferred(&self) -> Deferred {
        self.architecture().map_or(self.delays.deferred(), |architecture| architecture.deferred())
    }
}

/// Immediate; everything late and out of order; a law on other cores; the same with a slow host; all of it together.
pub(crate) const NICS: [Nic; 5] = [
    Nic::delays("ideal", Delays::IDEAL),
    Nic::delays("delaying", Delays::delaying()),
    Nic::delays("deferred law", Delays::deferred_law()),
    Nic::delays("deferred law, slow host", Delays::deferred_law().with_placement(Span::from_micros(2))),
    Nic::delays(
        "delaying, deferred law",
        Delays { loop_back: Ratio::new(1, 2), law_acknowledges: true, ..Delays::delaying() },
    ),
];

/// NICs that are made of parts.
pub(crate) const PRESETS: [Nic; 5] =
    [Nic::preset("srnic"), Nic::preset("tonic"), Nic::preset("cx5"), Nic::preset("cx6"), Nic::preset("swcc")];

/// All traffic must have ended by then: many times what the slowest retries take.
const LIMIT: Instant = Instant::from_ps(60_000_000_000_000);
/// How often it is looked after receive queues that are filled late, and connections that are to be taken down.
const SLICE: Span = Span::from_micros(20);

/// Streams of chance. Those of hosts begin at 1000.
const LOAD_STREAM: u64 = 3;
const DATAGRAM_STREAM: u64 = 4;
const HOST_STREAMS: u64 = 1_000;

/// The choice of NDP among recoveries.
pub(crate) const NDP: u32 = 6;

/// Octets of payload in a full packet.
pub(crate) fn mtu(case: &Case) -> u16 {
    [1024, 4096, 256, 1000][case.mtu as usize]
}

/// Runs the case on NICs like `nic` until nothing more happens, and checks what came of it.
pub(crate) fn run(case: &Case, nic: Nic) -> Fabric<Simulated<Load>> {
    let mut fabric = build(case, nic);
    let Fabric { net, nics } = &mut fabric;
    nics.application.begin(net.now(), &mut nics.hosts);
    for host in 0..nics.hosts.len() {
        nics.hosts[host].poke(net, id(host));
    }
    loop {
        let now = fabric.net.now();
        assert!(now < LIMIT, "traffic goes on without end on the {} NIC: {case:?}", nic.name);
        let is_looked_after = case.late_receives == 1 || case.shared == 1;
        let stopped = fabric.run_until(if is_looked_after { now + SLICE } else { LIMIT });
        let Fabric { net, nics } = &mut fabric;
        match (stopped, nics.application.next_late()) {
            (Stopped::Idle, None) => break,
            (Stopped::Idle, Some(late)) => net.pass_to(late.max(net.now())),
            _ => {}
        }
        nics.application.act_late(net, &mut nics.hosts);
    }
    check(case, nic, &fabric);
    fabric
}

fn build(case: &Case, nic: Nic) -> Fabric<Simulated<Load>> {
    let graph = network::graph(case);
    let (rate, _) = network::rates(case);
    let count = graph.hosts.len();
    let homa = [("unscheduled", "3KB"), ("resend", "100us"), ("overcommit", "2")];
    let ndp = [("initial_window", "6"), ("patience", "200us")];
    let law = match case.law {
        _ if nic.delays.law_acknowledges => Law::External(Class::DATA.with(Class::TRANSMIT)),
        _ if case.recovery == NDP => Law::from_settings("ndp", &ndp, rate).expect("it is known"),
        0 => Law::None,
        1 => Law::from_settings("dcqcn", &[], rate).expect("it is known"),
        2 => Law::from_settings("homa", &homa, rate).expect("it is known"),
        3 => Law::from_settings("swift", &[], rate).expect("it is known"),
        _ => Law::from_settings("dctcp", &[], rate).expect("it is known"),
    };
    let mut keys = Vec::new();
    let mut hosts: Vec<Host> = (0..count as u64)
        .map(|number| {
            let random = Random::new(case.seed, HOST_STREAMS + number);
            let mut engine =
                Engine::new(EngineConfig { link: rate, seed: case.seed, ..EngineConfig::default() });
            engine.add_law(law.clone());
            let (_, key) = engine.register_everything(Pd::default(), Access::ALL).expect("the first region");
            keys.push(key);
            match nic.architecture() {
                Some(architecture) => Host::of_parts(engine, Classes::default(), architecture, random),
                None => Host::new(engine, Classes::default(), nic.delays, random),
            }
        })
        .collect();
    let shared: Vec<Shared> = hosts
        .iter_mut()
        .filter(|_| case.shared == 1)
        .map(|host| Shared { srq: host.engine.create_srq(), posted: 0, ended: BTreeSet::new() })
        .collect();
    let sides = connect(case, nic, &mut hosts, &shared);
    let datagrams = datagrams(case, nic, &mut hosts);
    let load = Load::new(case, sides, shared, datagrams, keys);
    let nics = Simulated::new(hosts, load);
    let mut fabric = Fabric::new(&graph, &network::config(case, &graph), nics)
        .unwrap_or_else(|error| panic!("{error}: {case:?}"));
    let pause = if case.pfc == 1 { 1 << 3 } else { 0 };
    let Fabric { net, nics } = &mut fabric;
    for (number, host) in nics.hosts.iter_mut().enumerate() {
        host.set_pauses(net, id(number), pause, CUSTOMARY_FRAME);
    }
    if case.slow_receivers == 1 {
        let config = DrainConfig {
            fifo: Bytes(100_000),
            rate: BitsPerSec(rate.0 / 2),
            pause,
            max_frame: CUSTOMARY_FRAME,
        };
        let Fabric { net, nics } = &mut fabric;
        for (number, host) in nics.hosts.iter_mut().enumerate() {
            host.set_drain(net, id(number), config);
        }
    }
    fabric
}

/// Connects pairs of queue pairs between hosts drawn at random, and draws what they send.
fn connect(case: &Case, nic: Nic, hosts: &mut [Host], shared: &[Shared]) -> Vec<Side> {
    let mut random = Random::new(case.seed, LOAD_STREAM);
    let mut sides = Vec::new();
    for pair in 0..case.pairs as usize {
        let mut a = random.below(hosts.len() as u64) as usize;
        let mut further = 1 + random.below(hosts.len() as u64 - 1) as usize;
        if case.shape == network::RING {
            (a, further) = (pair % hosts.len(), hosts.len().min(3) - 1);
        }
        let a = if case.incast == 1 { a.max(1) } else { a };
        let b = if case.incast == 1 { 0 } else { (a + further) % hosts.len() };
        // Half of them are about to wrap around.
        let mut psn =
            || Psn::new(if random.below(2) == 0 { 0xff_fff8 } else { random.below(1 << 24) as u32 });
        let (psn_a, psn_b) = (psn(), psn());
        let flow = flow_hash(id(a), id(b), 0xc000 | random.below(1 << 14) as u16);
        let path = |peer| Path { host: id(peer), flow }.pack();
        let common = qp_config(case, nic);
        let srq = |host: usize| shared.get(host).map(|shared| shared.srq);
        let config = QpConfig { path: path(b), send_psn: psn_a, receive_psn: psn_b, srq: srq(a), ..common };
        let qpn_a = hosts[a].engine.create_qp(config).expect("the attributes go together");
        let common = QpConfig { peer: qpn_a, srq: srq(b), ..common };
        let config = QpConfig { path: path(a), send_psn: psn_b, receive_psn: psn_a, ..common };
        let qpn_b = hosts[b].engine.create_qp(config).expect("the attributes go together");
        let known = Change { peer: Some(qpn_b), ..Change::default() };
        hosts[a].engine.modify_qp(Instant::ZERO, qpn_a, &known).expect("a peer may be named in any state");
        let place = sides.len();
        let mut side = |host, qpn: Qpn, peer, sends| Side {
            host: id(host),
            qpn,
            peer,
            messages: if sends { Message::draw_all(case, &mut random) } else { Vec::new() },
            posted: 0,
            sent: Vec::new(),
            received: Vec::new(),
            receives_posted: 0,
            failed: false,
            taken_down: false,
        };
        let pair = [side(a, qpn_a, place + 1, true), side(b, qpn_b, place, case.both == 1)];
        sides.extend(pair);
    }
    sides
}

/// A queue pair for datagrams on each host, and what they send.
fn datagrams(case: &Case, nic: Nic, hosts: &mut [Host]) -> Datagrams {
    let mut random = Random::new(case.seed, DATAGRAM_STREAM);
    let q_key = 0x1234;
    let config = QpConfig {
        service: Service::Ud,
        mtu: mtu(case),
        q_key,
        deferred: nic.deferred(),
        ..QpConfig::default()
    };
    let create = |host: &mut Host| host.engine.create_qp(config).expect("the attributes go together");
    let qpns = if case.datagrams == 0 { Vec::new() } else { hosts.iter_mut().map(create).collect() };
    let count = hosts.len() as u64;
    let draw = |_| {
        let from = random.below(count);
        let to = (from + 1 + random.below(count - 1)) % count;
        let length = random.below(u64::from(config.mtu) + 1) as u32;
        Datagram { from: from as usize, to: to as usize, length }
    };
    let all = (0..case.datagrams).map(draw).collect();
    Datagrams { qpns, all, sent: Vec::new(), received: Vec::new(), q_key }
}

fn qp_config(case: &Case, nic: Nic) -> QpConfig {
    let (recovery, layout) = [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Reno, Layout::Irn),
        (Recovery::NewReno, Layout::Irn),
        (Recovery::Sack, Layout::Irn),
        // Its receivers answer each packet, which a law that answers data would do in their place.
        if nic.delays.law_acknowledges {
            (Recovery::GoBackN, Layout::Standard)
        } else {
            (Recovery::Ndp, Layout::Ndp)
        },
    ][case.recovery as usize];
    // The other programs need what only their own layouts tell.
    let homa = case.law == 2 && !nic.delays.law_acknowledges && case.recovery < 2;
    let layout = if homa { Layout::Homa } else { layout };
    QpConfig {
        mtu: mtu(case),
        layout,
        law: 1,
        recovery,
        ring: case.ring as u8,
        timeout: Span::from_micros([4_000, 500, 200, 60][case.timeout as usize]),
        retry: 7 - case.no_retries as u8,
        rnr_retry: if case.rnr_limited == 1 { 3 } else { 7 },
        min_rnr_timer: Span::from_micros(20),
        ack_every: case.ack_every as u16,
        max_rd_atomic: case.reads as u8,
        max_dest_rd_atomic: case.reads as u8,
        deferred: nic.deferred(),
        ..QpConfig::default()
    }
}

fn id(host: usize) -> HostId {
    HostId(u16::try_from(host).expect("few hosts"))
}
