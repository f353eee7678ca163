//! The network of a case: its graph, its switches and its faults.

use crate::case::{Case, FaultChoice};
use crate::run::NDP;
use roci_fabric::fault::Turns;
use roci_fabric::graph::{Graph, Link, NodeId};
use roci_fabric::topology::{Dumbbell, LeafSpine, Star, Tree};
use roci_fabric::{Balancing, FabricConfig, Fault, FaultSpec};
use roci_switch::{Headroom, LinkSpec, Pfc, SwitchConfig, Trim};
use roci_units::{BitsPerSec, Bytes, Instant, Random, Ratio, Span};

/// The stream of chance that graphs are drawn from.
const GRAPH_STREAM: u64 = 1;

const DELAY: Span = Span::from_micros(1);

/// The choice of a ring among shapes.
pub(crate) const RING: u32 = 5;

pub(crate) fn rates(case: &Case) -> (BitsPerSec, BitsPerSec) {
    let (host, core) = [(100, 100), (10, 10), (25, 100)][case.rate as usize];
    (BitsPerSec::from_gbps(host), BitsPerSec::from_gbps(core))
}

/// The graph.
pub(crate) fn graph(case: &Case) -> Graph {
    let (rate, core) = rates(case);
    let (hosts, delay) = (case.hosts, DELAY);
    let built = match case.shape {
        0 => Star { hosts, rate, delay }.build(),
        1 => Dumbbell { left: hosts / 2, right: hosts - hosts / 2, rate, bottleneck: core, delay }.build(),
        2 => Tree { leaves: vec![hosts / 2, hosts - 1 - hosts / 2], rate, uplink: core, delay }.build(),
        3 => {
            let hosts_per_leaf = hosts.div_ceil(2);
            LeafSpine { leaves: 2, spines: 2, hosts_per_leaf, rate, fabric_rate: Some(core), delay }.build()
        }
        RING => return ring(case),
        _ => return any_graph(case),
    };
    built.unwrap_or_else(|error| panic!("{case:?}: {error}")).graph
}

/// Five switches in a ring. Where each link of it carries what two of them send to the switch after the next, PFC
/// makes each wait for the next.
fn ring(case: &Case) -> Graph {
    let (rate, core) = rates(case);
    let (hosts, delay) = (case.hosts, DELAY);
    let node = |switch| NodeId(hosts + switch % 5);
    let around = (0..5).map(|switch| Link { a: node(switch), b: node(switch + 1), rate: core, delay });
    let down = (0..hosts).map(|host| Link { a: NodeId(host), b: node(host), rate, delay });
    named(hosts, 5, around.chain(down).collect())
}

/// Switches joined to a tree at random, with more links between them: shortest paths through cycles of lossless links
/// may deadlock.
fn any_graph(case: &Case) -> Graph {
    let (rate, core) = rates(case);
    let mut random = Random::new(case.seed, GRAPH_STREAM);
    let mut draw = |bound: u32| u32::try_from(random.below(u64::from(bound))).expect("below a small bound");
    let switches = 1 + draw(5);
    let (hosts, delay) = (case.hosts, DELAY);
    let node = |switch| NodeId(hosts + switch);
    let mut links = Vec::new();
    for switch in 1..switches {
        links.push(Link { a: node(draw(switch)), b: node(switch), rate: core, delay });
    }
    let more = if switches < 3 { 0 } else { draw(4) };
    for _ in 0..more {
        let a = draw(switches);
        let b = (a + 1 + draw(switches - 1)) % switches;
        links.push(Link { a: node(a), b: node(b), rate: core, delay });
    }
    for host in 0..hosts {
        links.push(Link { a: NodeId(host), b: node(draw(switches)), rate, delay });
    }
    named(hosts, switches, links)
}

fn named(hosts: u32, switches: u32, links: Vec<Link>) -> Graph {
    let names = |letter: &str, count| (0..count).map(|number| format!("{letter}{number}")).collect();
    Graph { hosts: names("h", hosts), switches: names("s", switches), links }
}

/// The fabric's configuration.
pub(crate) fn config(case: &Case, graph: &Graph) -> FabricConfig {
    let pfc = (case.pfc == 1).then(Pfc::default);
    let defaults = SwitchConfig::default();
    let headroom: u64 = if case.pfc == 0 {
        0
    } else {
        let of = |link: &Link| {
            let spec = LinkSpec { rate: link.rate, delay: link.delay };
            2 * Headroom::Usual.octets(spec, defaults.max_frame)
        };
        graph.links.iter().map(of).sum()
    };
    let buffer = if case.small == 1 { Bytes(headroom + 40_000) } else { defaults.buffer };
    // Queues and the room for headers are short, so that packets are trimmed and some headers go back.
    let trim = (case.recovery == NDP).then_some(Trim {
        threshold: Some(Bytes(12_000)),
        headers: Some(Bytes(400)),
        return_to_sender: true,
        header_priority: 7,
        random_tail: true,
        headers_per_packet: 2,
    });
    FabricConfig {
        seed: case.seed,
        switch: SwitchConfig { buffer, pfc, trim, ..defaults },
        balancing: match case.spray {
            0 => Balancing::Hash,
            1 => Balancing::InTurn,
            2 => Balancing::Adaptive,
            _ => Balancing::Flowlet { gap: Span::from_micros(2), table: 64 },
        },
        faults: case.faults.iter().flat_map(|choice| specs(choice, graph)).collect(),
        ..FabricConfig::default()
    }
}

fn specs(choice: &FaultChoice, graph: &Graph) -> Vec<FaultSpec> {
    let link = choice.link % graph.links.len() as u32;
    let Link { a, b, .. } = graph.links[link as usize];
    let spec =
        |from| FaultSpec { link, from, start: Instant::ZERO, until: Instant::NEVER, fault: fault(choice) };
    match choice.way {
        0 => vec![spec(a)],
        1 => vec![spec(b)],
        _ => vec![spec(a), spec(b)],
    }
}

fn fault(choice: &FaultChoice) -> Fault {
    let chance = Ratio::new(choice.permille, 1_000);
    let share = |of: u64| Span::from_nanos(of * u64::from(choice.permille) / 100);
    match choice.kind {
        0 => Fault::Loss(chance),
        1 => Fault::GilbertElliott {
            to_bad: chance,
            to_good: Ratio::new(1, 4),
            loss_good: Ratio::ZERO,
            loss_bad: Ratio::new(1, 2),
            chain: 0,
        },
        2 => Fault::Corrupt(chance),
        3 => Fault::Duplicate(chance),
        4 => Fault::Reorder { chance, delay: Span::from_micros(5) },
        5 => Fault::Delay { delay: share(10_000), jitter: share(20_000) },
        _ => Fault::Flap(Turns { began: Instant::ZERO, up: Span::from_micros(300), down: share(30_000) }),
    }
}
