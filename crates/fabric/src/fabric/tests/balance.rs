//! How switches choose among ports of equal cost.

use super::faults::always;
use super::*;
use crate::Balancing::{Adaptive, Flowlet, Hash, InTurn};
use crate::change::{Outage, Part};
use std::collections::BTreeSet;

const FRAME: u16 = 4_178;

/// Any way to choose.
pub(super) fn balancing() -> impl Strategy<Value = Balancing> {
    let flowlet =
        (0u64..20, 1u16..64).prop_map(|(gap, table)| Flowlet { gap: Span::from_micros(gap), table });
    prop_oneof![Just(Hash), Just(InTurn), Just(Adaptive), flowlet]
}

/// Four hosts beneath each of two leaves, which four spines join.
fn four_ways() -> Graph {
    let shape =
        LeafSpine { leaves: 2, spines: 4, hosts_per_leaf: 4, rate: RATE, fabric_rate: None, delay: DELAY };
    shape.build().unwrap().graph
}

/// A link of the first leaf to a spine, and its ends.
fn uplink(graph: &Graph) -> (u32, [NodeId; 2]) {
    let mut links = (0..).zip(&graph.links).map(|(place, link)| (place, [link.a, link.b]));
    links.find(|(_, ends)| ends.iter().all(|end| end.0 >= 8)).unwrap()
}

/// How many frames the first leaf has sent to each spine.
fn sent_up(fabric: &Fabric<Script>) -> Vec<u64> {
    let net = &fabric.net;
    let leaf = net.switch_of(net.peer(0)).unwrap();
    let up = net.switch_ports(leaf).filter(|&port| net.switch_of(net.peer(port)).is_some());
    up.map(|port| net.tx_octets(port) / u64::from(FRAME)).collect()
}

/// `rounds` of `count` frames from each host of the first leaf in `sources` to its own of the second, `pause` microseconds apart.
fn bursts(
    config: &FabricConfig,
    sources: &[u16],
    count: usize,
    rounds: u64,
    pause: u64,
) -> (Fabric<Script>, Vec<Vec<u64>>) {
    let mut fabric = scripted(&four_ways(), config);
    let mut seen = vec![vec![0; 4]];
    for round in 1..=rounds {
        for &source in sources {
            let packets = std::iter::repeat_n(data(source, source + 4, 3, FRAME), count);
            fabric.nics.queues[usize::from(source)].extend(packets);
            fabric.net.kick(HostId(source));
        }
        fabric.run_until(Instant::ZERO + Span::from_micros(pause * round));
        fabric.net.pass_to(Instant::ZERO + Span::from_micros(pause * round));
        seen.push(sent_up(&fabric));
    }
    fabric.run_until(SECOND);
    let rounds = seen.windows(2).map(|two| two[1].iter().zip(&two[0]).map(|(a, b)| a - b).collect());
    (fabric, rounds.collect())
}

#[test]
fn spraying_takes_equal_paths_in_turn() {
    for (balancing, expected) in [(InTurn, 9..=11), (Hash, 0..=40)] {
        let config = FabricConfig { balancing, ..FabricConfig::default() };
        let mut fabric = blast(&four_ways(), &config, &[0], 4, 40);
        fabric.run_until(SECOND);
        let sent = sent_up(&fabric);
        assert_eq!(sent.iter().sum::<u64>(), 40);
        // The first and the last round may be parts.
        let as_expected = sent.iter().all(|n| expected.contains(n));
        assert!(as_expected && (balancing == InTurn || sent.contains(&40)), "{sent:?}");
    }
}

#[test]
fn adaptive_routing_gives_a_slow_link_what_it_carries_and_turns_wait_for_it() {
    let graph = four_ways();
    let (uplink, ends) = uplink(&graph);
    let slow = |from| always(uplink, from, Fault::Rate(BitsPerSec::from_gbps(10)));
    let run = |balancing| {
        let mut config =
            FabricConfig { balancing, faults: ends.map(slow).to_vec(), ..FabricConfig::default() };
        config.switch.buffer = Bytes(100_000_000);
        let (fabric, _) = bursts(&config, &[0, 1, 2, 3], 300, 1, 1);
        assert_eq!(fabric.nics.arrivals.len(), 1_200);
        let last = fabric.nics.arrivals.iter().map(|arrival| arrival.0).max().unwrap();
        (sent_up(&fabric), last)
    };
    let ((turned, late), (adapted, early)) = (run(InTurn), run(Adaptive));
    assert!(turned.iter().all(|frames| (299..=301).contains(frames)), "{turned:?}");
    // 310 Gb/s are what the four together carry: 1200 frames, of which the slow link has a thirty-first.
    let (least, others) = (*adapted.iter().min().unwrap(), adapted.iter().max().unwrap());
    assert!((30..=60).contains(&least) && *others < 400, "{adapted:?}");
    assert!(late > 5 * early, "{late} ps in turn, {early} ps by load");
}

#[test]
fn weights_give_a_slow_link_its_part_of_the_turns_once_its_rate_is_known() {
    let graph = four_ways();
    let (uplink, ends) = uplink(&graph);
    let slow = |start| {
        ends.map(|from| FaultSpec { start, ..always(uplink, from, Fault::Rate(BitsPerSec::from_gbps(10))) })
    };
    let run = |start, detect| {
        let config = FabricConfig {
            balancing: InTurn,
            weighted: true,
            faults: slow(Instant::ZERO + Span::from_micros(start)).to_vec(),
            detect,
            ..FabricConfig::default()
        };
        bursts(&config, &[0, 1, 2, 3], 31, 8, 120).1
    };
    let times = |ports: &[u64]| (ports.iter().min().copied(), ports.iter().max().copied());
    let at_once = run(0, Some(Span::from_micros(30)));
    let later = run(290, Some(Span::from_micros(30)));
    let never = run(290, None);
    for (round, ports) in at_once.iter().enumerate() {
        assert!(matches!(times(ports), (Some(3..=5), Some(39..=41))), "{round}: {ports:?}");
        let known = round >= 3;
        let expected = if known { 3..=5 } else { 30..=32 };
        assert!(expected.contains(later[round].iter().min().unwrap()), "{round}: {:?}", later[round]);
        assert!(matches!(times(&never[round]), (Some(30..=31), Some(31..=32))), "{round}: {never:?}");
    }
}

#[test]
fn weights_do_not_know_a_rate_before_its_time_though_other_routes_change() {
    let graph = four_ways();
    let (slow, ends) = uplink(&graph);
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let faults = ends.map(|from| FaultSpec {
        start: at(295),
        ..always(slow, from, Fault::Rate(BitsPerSec::from_gbps(10)))
    });
    let down = Outage { part: Part::Link(slow + 1), start: at(100), until: Instant::NEVER, turns: None };
    let config = FabricConfig {
        balancing: InTurn,
        weighted: true,
        faults: faults.to_vec(),
        outages: vec![down],
        detect: Some(Span::from_micros(200)),
        ..FabricConfig::default()
    };
    let (_, rounds) = bursts(&config, &[0, 1, 2, 3], 31, 4, 240);
    let least = |ports: &[u64]| ports.iter().copied().filter(|frames| *frames > 0).min();
    assert!(matches!(least(&rounds[1]), Some(30..=32)), "four ways alike: {rounds:?}");
    assert!(
        matches!(least(&rounds[2]), Some(40..=43)),
        "three, and nobody knows that one is slow: {rounds:?}"
    );
    assert!(matches!(least(&rounds[3]), Some(5..=7)), "three with weights: {rounds:?}");
}

#[test]
fn on_idle_links_adaptive_routing_takes_each_port_about_as_often() {
    let config = FabricConfig { balancing: Adaptive, ..FabricConfig::default() };
    // One frame at a time, none of which finds another.
    let (fabric, _) = bursts(&config, &[0], 1, 400, 10);
    let sent = sent_up(&fabric);
    assert!(sent.iter().all(|frames| (70..=130).contains(frames)), "{sent:?}");
}

#[test]
fn adaptive_routing_goes_around_a_port_that_is_paused() {
    let graph = four_ways();
    let (uplink, ends) = uplink(&graph);
    let leaf = ends.into_iter().min().unwrap();
    // The spine has the leaf stop: nothing leaves by that link, and nothing should wait for it.
    let storm = always(uplink, leaf, Fault::PauseStorm { priority: 3 });
    let config = FabricConfig { balancing: Adaptive, faults: vec![storm], ..FabricConfig::default() };
    let (fabric, _) = bursts(&config, &[0], 1, 100, 10);
    // All of the first may have been on their way before the PAUSE was.
    assert!(fabric.nics.arrivals.len() >= 99, "{} arrived", fabric.nics.arrivals.len());
}

#[test]
fn a_flow_keeps_its_port_while_it_is_not_silent_and_flowlets_part_where_two_have_met() {
    for seed in 0..32 {
        let flowlet = Flowlet { gap: Span::from_micros(16), table: 4_096 };
        let config = FabricConfig { seed, balancing: flowlet, ..FabricConfig::default() };
        // Bursts of 20 frames take 7 us, and two on one port 14 us.
        let (fabric, close) = bursts(&config, &[0], 20, 10, 16);
        let ports: BTreeSet<_> =
            close.iter().map(|sent| sent.iter().position(|&frames| frames == 20)).collect();
        assert_eq!(ports.len(), 1, "seed {seed}: {close:?}");
        assert_eq!(fabric.nics.arrivals.len(), 200);
        // Four flows whose packets come side by side have four ports once they have been silent.
        let (_, apart) = bursts(&config, &[0, 1, 2, 3], 20, 4, 200);
        assert!(apart[2..].iter().all(|sent| *sent == [20; 4]), "seed {seed}: {apart:?}");
    }
}

#[test]
fn a_flowlet_that_begins_goes_where_least_was_sent_of_late() {
    for seed in 0..32 {
        let balancing = Flowlet { gap: Span::from_micros(50), table: 4_096 };
        let config = FabricConfig { seed, balancing, ..FabricConfig::default() };
        let mut fabric = scripted(&four_ways(), &config);
        // Each sends a frame now and then, so that no queue stands: ports differ in what they have sent alone.
        for at in 0..40u64 {
            for source in 0..4u16 {
                if at >= u64::from(source) * 10 {
                    fabric.nics.queues[usize::from(source)].push_back(data(source, source + 4, 3, FRAME));
                    fabric.net.kick(HostId(source));
                }
                let next = Instant::ZERO + Span::from_micros(at * 8 + u64::from(source) * 2 + 2);
                fabric.run_until(next);
                fabric.net.pass_to(next);
            }
        }
        fabric.run_until(SECOND);
        let mut sent = sent_up(&fabric);
        sent.sort_unstable();
        assert_eq!(sent, [10, 20, 30, 40], "seed {seed}");
    }
}
