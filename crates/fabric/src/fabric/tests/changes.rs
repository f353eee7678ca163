//! Links that slow down, switches that fail, and what becomes of packets, pauses and routes.

use super::balance::balancing;
use super::faults::always;
use super::*;
use crate::change::{Outage, Part};
use crate::fault::{InSwitch, Turns};

const SLOW: BitsPerSec = BitsPerSec::from_gbps(25);

fn at_us(us: u64) -> Instant {
    Instant::from_ps(us * 1_000_000)
}

/// Host 0 sends `count` frames of 1000 octets to host 1, whose flows are numbered.
fn numbered(graph: &Graph, config: &FabricConfig, count: u32) -> Fabric<Script> {
    let mut fabric = scripted(graph, config);
    fabric.nics.queues[0].extend((0..count).map(|n| Packet { flow: n, ..data(0, 1, 3, 1_000) }));
    fabric.net.kick(HostId(0));
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.net.packets().live(), 0);
    fabric
}

fn times(fabric: &Fabric<Script>) -> Vec<u64> {
    fabric.nics.arrivals.iter().map(|arrival| arrival.0).collect()
}

fn two_hosts() -> Graph {
    Graph {
        hosts: vec!["h0".into(), "h1".into()],
        links: vec![Link { a: NodeId(0), b: NodeId(1), rate: RATE, delay: DELAY }],
        ..Graph::default()
    }
}

#[test]
fn a_degraded_link_sends_at_its_lower_rate_and_ends_each_frame_as_it_began() {
    let frame = wire_time(1_000);
    // It slows down in the middle of the eleventh frame, and recovers in the middle of the sixth after that.
    let (start, until) = (10 * frame + frame / 2, 11 * frame + 5 * 4 * frame + frame / 2);
    let fault = FaultSpec {
        start: Instant::from_ps(start),
        until: Instant::from_ps(until),
        ..always(0, NodeId(0), Fault::Rate(SLOW))
    };
    let config = FabricConfig { faults: vec![fault], ..FabricConfig::default() };
    let times = times(&numbered(&two_hosts(), &config, 30));
    let mut expected = Vec::new();
    let mut at = 0;
    for n in 0..30 {
        at += if (11..17).contains(&n) { 4 * frame } else { frame };
        expected.push(at + DELAY.as_ps());
    }
    assert_eq!(times, expected);
}

#[test]
fn a_lower_rate_holds_from_the_first_frame_on_one_way_alone_and_need_not_divide() {
    // 7 Gb/s: 1142.857 ps an octet.
    let rate = BitsPerSec::from_gbps(7);
    let faults = vec![always(0, NodeId(0), Fault::Rate(rate))];
    let mut fabric = scripted(&two_hosts(), &FabricConfig { faults, ..FabricConfig::default() });
    for (from, to) in [(0, 1), (1, 0)] {
        fabric.nics.queues[usize::from(from)].extend(std::iter::repeat_n(data(from, to, 3, 1_000), 700));
        fabric.net.kick(HostId(from));
    }
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let last = |host: u16| fabric.nics.arrivals.iter().rfind(|arrival| arrival.1 == host).unwrap().0;
    assert_eq!(last(0), 700 * wire_time(1_000) + DELAY.as_ps());
    assert_eq!(last(1), 700 * 1_020 * 8_000 / 7 + DELAY.as_ps());
}

#[test]
fn rules_that_follow_each_other_change_the_rate_once() {
    let frame = wire_time(1_000);
    let end = Instant::from_ps(10 * 4 * frame);
    let first = FaultSpec { until: end, ..always(0, NodeId(0), Fault::Rate(SLOW)) };
    let second = FaultSpec { start: end, ..always(0, NodeId(0), Fault::Rate(BitsPerSec::from_gbps(50))) };
    let config = FabricConfig { faults: vec![first, second], ..FabricConfig::default() };
    let times = times(&numbered(&two_hosts(), &config, 20));
    assert_eq!(times[9], 10 * 4 * frame + DELAY.as_ps());
    // The eleventh begins in the instant of the change, after the old rule's end and the new one's beginning.
    assert_eq!(times[19], 10 * 4 * frame + 10 * 2 * frame + DELAY.as_ps());
}

#[test]
fn a_link_that_was_slow_from_the_beginning_has_its_own_rate_back_after_each_rule() {
    let frame = wire_time(1_000);
    let rule = |from: u64, until: u64, rate| FaultSpec {
        start: Instant::from_ps(from * frame),
        until: Instant::from_ps(until * frame),
        ..always(0, NodeId(0), Fault::Rate(rate))
    };
    // Ten frames at a quarter of the rate, ten at all of it, five at half of it, and all of it.
    let faults = vec![rule(0, 40, SLOW), rule(50, 60, BitsPerSec::from_gbps(50))];
    let times = times(&numbered(&two_hosts(), &FabricConfig { faults, ..FabricConfig::default() }, 40));
    let at = |n: usize| (times[n] - DELAY.as_ps()) / frame;
    assert_eq!([9, 19, 24, 34].map(at), [40, 50, 60, 70]);
}

#[test]
fn telemetry_tells_the_rate_in_force() {
    let fault = FaultSpec { start: at_us(50), until: at_us(100), ..always(1, NodeId(2), Fault::Rate(SLOW)) };
    let config = FabricConfig { faults: vec![fault], hop_octets: 8, ..FabricConfig::default() };
    let mut fabric = scripted(&star(2), &config);
    fabric.nics.traced = true;
    fabric.nics.queues[0].extend(std::iter::repeat_n(data(0, 1, 3, 1_000), 1_000));
    fabric.net.kick(HostId(0));
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let rates: Vec<(u64, u32)> =
        fabric.nics.hops.iter().map(|hops| (u64::from(hops[0].at_ns) / 1_000, hops[0].rate_kbps)).collect();
    assert!(
        rates
            .iter()
            .all(|&(at, kbps)| kbps == if (50..100).contains(&at) { 25_000_000 } else { 100_000_000 })
    );
    assert!(rates.iter().filter(|(_, kbps)| *kbps == 25_000_000).count() > 100);
}

#[test]
fn a_rate_of_zero_or_above_the_link_s_own_is_refused() {
    for rate in [BitsPerSec(0), BitsPerSec::from_gbps(200)] {
        let faults = vec![always(0, NodeId(0), Fault::Rate(rate))];
        let config = FabricConfig { faults, ..FabricConfig::default() };
        let nics = Script { queues: vec![VecDeque::new(); 2], ..Script::default() };
        let refused = Fabric::new(&two_hosts(), &config, nics).map(drop);
        assert_eq!(refused, Err(BuildError::Fault(crate::fault::FaultError::Rate)));
    }
}

#[test]
fn packets_held_back_follow_each_other_at_the_lower_rate() {
    let jitter = Fault::Delay { delay: Span::from_micros(5), jitter: Span::from_micros(20) };
    let (jitter, rate) = (always(0, NodeId(0), jitter), always(0, NodeId(0), Fault::Rate(SLOW)));
    // Also where the rate is said first, as a rule does that has both.
    for faults in [vec![jitter.clone(), rate.clone()], vec![rate, jitter]] {
        let times = times(&numbered(&two_hosts(), &FabricConfig { faults, ..FabricConfig::default() }, 500));
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 4 * wire_time(1_000)));
    }
}

#[test]
fn bit_errors_lose_long_frames_more_often_than_short_ones() {
    let rate: roci_units::BitErrorRate = "1e-5".parse().unwrap();
    let lost = |frame: u16| {
        let faults = vec![always(0, NodeId(0), Fault::BitErrors(rate))];
        let mut fabric = scripted(&two_hosts(), &FabricConfig { faults, ..FabricConfig::default() });
        fabric.nics.queues[0].extend(std::iter::repeat_n(data(0, 1, 3, frame), 20_000));
        fabric.net.kick(HostId(0));
        fabric.run_until(SECOND);
        20_000 - fabric.nics.arrivals.len()
    };
    for (frame, chance) in [(100, 0.007_968), (1_000, 0.076_884), (4_000, 0.273_852)] {
        let (mean, lost) = (20_000.0 * chance, lost(frame) as f64);
        assert!((lost - mean).abs() < 5.0 * mean.sqrt(), "{frame}: {lost} for {mean}");
    }
}

/// Two leaves with two hosts each, two spines: switches 0 and 1 are the leaves, 2 and 3 the spines.
fn leaf_spine() -> Graph {
    let shape =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, rate: RATE, fabric_rate: None, delay: DELAY };
    shape.build().unwrap().graph
}

fn failing(switch: u32, start: u64, until: u64) -> Outage {
    Outage { part: Part::Switch(switch), start: at_us(start), until: at_us(until), turns: None }
}

/// Hosts 0 and 1 each send `count` frames to the hosts of the other leaf, each of its own flow.
fn across(config: &FabricConfig, count: u32) -> Fabric<Script> {
    let mut fabric = scripted(&leaf_spine(), config);
    for source in [0, 1] {
        let packets = (0..count).map(|n| Packet {
            flow: n.wrapping_mul(0x9e37_79b9) ^ u32::from(source),
            ..data(source, source + 2, 3, 1_000)
        });
        fabric.nics.queues[usize::from(source)].extend(packets);
        fabric.net.kick(HostId(source));
    }
    fabric
}

#[test]
fn a_failed_spine_loses_what_it_has_and_the_routes_lead_over_the_other_one() {
    let config = FabricConfig {
        outages: vec![failing(2, 100, 300)],
        detect: Some(Span::from_micros(50)),
        ..FabricConfig::default()
    };
    let mut fabric = across(&config, 6_000);
    let crossed = |fabric: &Fabric<Script>, spine| {
        fabric.net.switch_ports(spine).map(|port| fabric.net.tx_octets(port)).sum::<u64>()
    };
    let mut before = [0; 2];
    // What each spine sends in these stretches: both; the other; both again once its return is noticed.
    for (us, works) in [(100, [true, true]), (300, [false, true]), (349, [false, true])] {
        fabric.run_until(at_us(us));
        let now = [2, 3].map(|spine| crossed(&fabric, spine));
        for spine in [0, 1] {
            assert_eq!(now[spine] > before[spine], works[spine], "{spine} until {us}");
        }
        before = now;
    }
    let lost = fabric.net.totals().dropped;
    let per_us = 1e6 / wire_time(1_000) as f64;
    // Half of what two hosts send is lost until the leaf knows, and what waits for the spine by then; then nothing is.
    let expected = 50.0 * per_us;
    assert!((lost as f64 - expected).abs() < 0.15 * expected, "{lost} for {expected}");
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.net.totals().dropped, lost);
    assert!(crossed(&fabric, 2) > before[0], "it is used again");
    assert_eq!(fabric.nics.arrivals.len() as u64 + lost, 12_000);
    assert_eq!(fabric.net.packets().live(), 0);
}

#[test]
fn what_a_switch_holds_as_it_fails_is_lost_and_its_peers_are_let_go() {
    let mut config = FabricConfig { outages: vec![failing(0, 50, 200)], ..FabricConfig::default() };
    config.switch.buffer = Bytes(600_000);
    let mut fabric = blast(&star(3), &config, &[0, 1], 2, 100);
    fabric.run_until(Instant::from_ps(49_999_999));
    let held = fabric.net.switch(0).used();
    assert!(held > 10 * 4_178, "two hosts fill a link: {held}");
    assert!((0..2).any(|host| fabric.net.pauses(host).received > 0), "and are paused");
    fabric.run_until(at_us(50));
    assert_eq!(fabric.net.switch(0).used(), 0);
    assert_eq!(fabric.net.lost_elsewhere(), u64::from(held / 4_178));
    assert!((0..6).all(|port| fabric.net.paused(port) == 0));
    let arrived = fabric.nics.arrivals.len();
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    // Whatever had left the switch whole arrives, and what the hosts send before it is back does not.
    let totals = fabric.net.totals();
    assert!(fabric.nics.arrivals.len() - arrived <= 4, "{arrived}");
    assert_eq!(fabric.nics.arrivals.len() as u64 + totals.dropped, 200);
    assert_eq!(fabric.net.packets().live(), 0);
}

#[test]
fn a_switch_that_comes_back_is_told_again_whom_to_pause() {
    // Two leaves and a spine. Host 1 on the right does not take what host 0 sends, so that everything up to host 0 is
    // paused; the left leaf fails and comes back, and finds the spine pausing it still.
    let graph =
        LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 1, rate: RATE, fabric_rate: None, delay: DELAY };
    let graph = graph.build().unwrap().graph;
    let config = FabricConfig {
        faults: vec![FaultSpec {
            until: at_us(500),
            ..always(2, NodeId(3), Fault::PauseStorm { priority: 3 })
        }],
        outages: vec![failing(0, 200, 300)],
        switch: SwitchConfig { buffer: Bytes(150_000), ..SwitchConfig::default() },
        ..FabricConfig::default()
    };
    assert_eq!((graph.links[2].a, graph.links[2].b), (NodeId(1), NodeId(3)), "the right host's link");
    let mut fabric = blast(&graph, &config, &[0], 1, 60);
    fabric.run_until(at_us(199));
    let uplink =
        fabric.net.switch_ports(0).find(|&port| fabric.net.switch_of(fabric.net.peer(port)).is_some());
    let uplink = uplink.unwrap();
    assert_eq!(fabric.net.paused(uplink), 1 << 3);
    fabric.run_until(at_us(299));
    assert_eq!(fabric.net.paused(uplink), 0);
    fabric.run_until(at_us(310));
    assert_eq!(fabric.net.paused(uplink), 1 << 3, "the spine holds what came before");
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.net.paused(uplink), 0);
    assert_eq!(fabric.nics.arrivals.len() as u64 + fabric.net.totals().dropped, 60);
    assert_eq!(fabric.net.packets().live(), 0);
}

/// Host 0 sends to host 1 over a switch that pauses it from `storm.0` to `storm.1`; its link is down, one way or both, from `cut.0`
/// to `cut.1`. Tells of each of these instants whether the host is paused, and whether it has sent since the one before.
fn cut_while_paused(storm: (u64, u64), cut: (u64, u64), ways: &[NodeId], at: &[u64]) -> Vec<(bool, bool)> {
    let storm = FaultSpec {
        start: at_us(storm.0),
        until: at_us(storm.1),
        ..always(0, NodeId(0), Fault::PauseStorm { priority: 3 })
    };
    let down = |from: &NodeId| FaultSpec {
        start: at_us(cut.0),
        until: at_us(cut.1),
        ..always(0, *from, Fault::Down)
    };
    let faults = std::iter::once(storm).chain(ways.iter().map(down)).collect();
    let config = FabricConfig { faults, ..FabricConfig::default() };
    let mut fabric = blast(&star(2), &config, &[0], 1, 3_000);
    let mut before = 0;
    let seen = at.iter().map(|&us| {
        fabric.run_until(at_us(us));
        let sent = fabric.net.tx_octets(0);
        (fabric.net.paused(0) != 0, std::mem::replace(&mut before, sent) != sent)
    });
    let seen = seen.collect();
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.arrivals.len() as u64 + fabric.net.totals().dropped, 3_000);
    assert_eq!((fabric.net.packets().live(), fabric.net.paused(0)), (0, 0));
    seen
}

#[test]
fn nobody_is_paused_across_a_link_that_is_down_and_all_are_told_anew_when_it_is_up() {
    let (both, cut) = ([NodeId(0), NodeId(2)], (100, 200));
    let (paused, sends, idle) = ((true, false), (false, true), (true, true));
    // Paused before; told while it is down; told just before, so that the frame is on its way as the link goes down.
    let at = [5, 99, 102, 199, 203, 499];
    assert_eq!(cut_while_paused((0, 500), cut, &both, &at), [idle, paused, sends, sends, idle, paused]);
    for begins in [99, 120] {
        let at = [99, 150, 199, 203, 499];
        assert_eq!(cut_while_paused((begins, 500), cut, &both, &at), [sends, sends, sends, idle, paused]);
    }
    // It ends while the link is down: there is nothing to tell.
    assert_eq!(cut_while_paused((0, 150), cut, &both, &[99, 102, 199, 203]), [idle, sends, sends, sends]);
    // What the host sends is lost, and PAUSE comes by the other way. And the other way round.
    assert_eq!(cut_while_paused((0, 500), cut, &[NodeId(0)], &[99, 199, 499]), [idle, paused, paused]);
    assert_eq!(
        cut_while_paused((0, 500), cut, &[NodeId(2)], &[99, 199, 203, 499]),
        [idle, sends, idle, paused]
    );
    // Both begin with the run.
    assert_eq!(cut_while_paused((0, 500), (0, 50), &both, &[49, 53, 499]), [sends, idle, paused]);
}

#[test]
fn a_network_that_stands_still_comes_to_rest_though_a_link_with_somebody_paused_goes_on_flapping() {
    // The switch pauses host 0 for ever, over a link that is up for 30 us and down for 10 both ways.
    let turns = Turns { began: at_us(0), up: Span::from_micros(30), down: Span::from_micros(10) };
    let faults = vec![
        always(0, NodeId(0), Fault::PauseStorm { priority: 3 }),
        always(0, NodeId(0), Fault::Flap(turns)),
        always(0, NodeId(2), Fault::Flap(turns)),
    ];
    let mut fabric = scripted(&star(2), &FabricConfig { faults, ..FabricConfig::default() });
    // The end of the storm lies beyond the end of time.
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let at_rest = fabric.net.now();
    assert!((at_us(40)..at_us(100)).contains(&at_rest), "{at_rest:?}");
    assert_eq!(fabric.net.paused(0), 1 << 3);
    assert_eq!(fabric.run_until(at_rest + Span::from_micros(5)), Stopped::Idle);
    // Who then has something to send is let go by the next time that the link is down.
    fabric.nics.queues[0].extend(std::iter::repeat_n(data(0, 1, 3, 1_000), 3));
    fabric.net.kick(HostId(0));
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!((fabric.net.totals().dropped, fabric.net.packets().live()), (3, 0));
    assert!(fabric.net.now() > at_rest + Span::from_micros(20));
}

#[test]
fn a_switch_that_is_down_from_the_beginning_is_never_asked() {
    let config = FabricConfig {
        outages: vec![Outage { until: Instant::NEVER, ..failing(3, 0, 1) }],
        detect: Some(Span::from_millis(1)),
        ..FabricConfig::default()
    };
    let mut fabric = across(&config, 1_000);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.arrivals.len(), 2_000);
    assert_eq!(fabric.net.routes().equal(0, HostId(2)).count(), 2, "ways while nothing is down");
}

#[test]
fn a_link_that_is_down_is_avoided_once_it_has_been_for_long_enough() {
    // Link 4 joins the first leaf and the first spine.
    let graph = leaf_spine();
    let place = graph.links.iter().position(|link| (link.a, link.b) == (NodeId(4), NodeId(6))).unwrap();
    let link = u32::try_from(place).unwrap();
    let dropped_with = |down: u64, detect: Option<Span>, detect_own: Option<Span>| {
        let turns = Turns { began: at_us(0), up: Span::from_micros(60), down: Span::from_micros(down) };
        let faults = vec![always(link, NodeId(4), Fault::Flap(turns))];
        let outage =
            Outage { part: Part::Link(link), start: at_us(0), until: Instant::NEVER, turns: Some(turns) };
        let outages = vec![outage];
        let config = FabricConfig { faults, outages, detect, detect_own, ..FabricConfig::default() };
        let mut fabric = across(&config, 4_000);
        fabric.run_until(at_us(320));
        fabric.net.totals().dropped
    };
    let dropped = |down, detect| dropped_with(down, detect, None);
    let [never, late, soon] = [None, Some(30), Some(5)].map(|us| dropped(20, us.map(Span::from_micros)));
    // Four of 20 us each: never noticed where it takes 30 us to be sure, and after a quarter of them where it takes 5.
    assert_eq!(never, late);
    assert!(soon * 5 < never * 2 && soon > never / 8, "{soon} of {never}");
    // The leaf sees at its port what it takes all others 30 us to hear of, and no later than they do.
    let [own, later] =
        [5, 60].map(|us| dropped_with(20, Some(Span::from_micros(30)), Some(Span::from_micros(us))));
    assert_eq!((own, later), (soon, late));
}

#[test]
fn a_port_whose_link_is_down_is_left_by_its_own_switch_and_chosen_again_when_all_may() {
    let graph = leaf_spine();
    let place = graph.links.iter().position(|link| (link.a, link.b) == (NodeId(4), NodeId(6))).unwrap();
    let link = u32::try_from(place).unwrap();
    let (start, until) = (at_us(20), at_us(100));
    let down = [4, 6].map(|end| FaultSpec { start, until, ..always(link, NodeId(end), Fault::Down) });
    let lost = |balancing, detect_own: Option<u64>| {
        let config = FabricConfig {
            faults: down.to_vec(),
            outages: vec![Outage { part: Part::Link(link), start, until, turns: None }],
            detect: Some(Span::from_micros(60)),
            detect_own: detect_own.map(Span::from_micros),
            balancing,
            ..FabricConfig::default()
        };
        let mut fabric = across(&config, 4_000);
        let uplink =
            fabric.net.switch_ports(0).find(|&port| fabric.net.switch_of(fabric.net.peer(port)) == Some(2));
        let uplink = uplink.unwrap();
        let sent =
            |fabric: &Fabric<Script>| fabric.net.fault_counters(uplink).map_or(0, |it| it.dropped.packets);
        fabric.run_until(at_us(40));
        let early = sent(&fabric);
        fabric.run_until(at_us(78));
        let late = sent(&fabric);
        fabric.run_until(SECOND);
        (early, late, fabric.net.lost_elsewhere())
    };
    for balancing in [Balancing::Hash, Balancing::InTurn, Balancing::Adaptive] {
        let (early, late, _) = lost(balancing, None);
        assert!(late > early + early / 2, "{balancing:?}: {early} and {late} until all know it");
        let (early, late, elsewhere) = lost(balancing, Some(3));
        assert!(early > 0 && late == early, "{balancing:?}: {early} and {late} though its own switch knows");
        assert_eq!(elsewhere, 0, "there is another way");
    }
}

#[test]
fn no_way_left_loses_packets_and_the_next_way_takes_them() {
    let config = FabricConfig {
        outages: vec![failing(2, 20, 60), failing(3, 20, 60)],
        detect: Some(Span::from_micros(5)),
        ..FabricConfig::default()
    };
    let mut fabric = across(&config, 1_500);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert!(fabric.net.lost_elsewhere() > 500, "{}", fabric.net.lost_elsewhere());
    assert_eq!(fabric.nics.arrivals.len() as u64 + fabric.net.totals().dropped, 3_000);
    assert_eq!(fabric.net.packets().live(), 0);
}

#[test]
fn an_outage_of_what_does_not_exist_is_refused() {
    for part in [Part::Switch(1), Part::Link(9)] {
        let outages = vec![Outage { part, ..failing(0, 1, 2) }];
        let nics = Script { queues: vec![VecDeque::new(); 2], ..Script::default() };
        let refused =
            Fabric::new(&star(2), &FabricConfig { outages, ..FabricConfig::default() }, nics).map(drop);
        assert_eq!(refused, Err(BuildError::NoSuchPart(part)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever fails whenever: each packet arrives or is counted as lost, once, and nothing stands still in the end.
    #[test]
    fn with_switches_that_fail_every_packet_is_accounted_for(
        outages in prop::collection::vec((0u32..4, 0u64..200, 1u64..150, prop::option::of((1u64..40, 1u64..40))), 1..5),
        slow in prop::collection::vec((0u32..8, 0u64..200, 1u64..200, 1u64..100), 0..4),
        downs in prop::collection::vec((0u32..8, 0u64..300, 1u64..100, any::<bool>(), any::<bool>(), prop::option::of((1u64..20, 1u64..20))), 0..5),
        (detect, detect_own) in (prop::option::of(0u64..60), prop::option::of(0u64..60)),
        balancing in balancing(),
        per_flow in any::<bool>(),
    ) {
        let graph = leaf_spine();
        let outages = outages.into_iter().map(|(switch, start, length, turns)| {
            let turns = turns.map(|(up, down)| Turns {
                began: at_us(start), up: Span::from_micros(up), down: Span::from_micros(down),
            });
            Outage { turns, ..failing(switch, start, start + length) }
        });
        let faults = slow.into_iter().map(|(link, start, length, gbps)| FaultSpec {
            start: at_us(start),
            until: at_us(start + length),
            ..always(link, graph.links[link as usize].b, Fault::Rate(BitsPerSec::from_gbps(gbps)))
        });
        let downs = downs.into_iter().flat_map(|(link, start, length, a, b, turns)| {
            let ends = [(a, graph.links[link as usize].a), (b, graph.links[link as usize].b)];
            ends.into_iter().filter(|(is_down, _)| *is_down).map(move |(_, from)| FaultSpec {
                start: at_us(start),
                until: at_us(start + length),
                ..always(link, from, turns.map_or(Fault::Down, |(up, down)| Fault::Flap(Turns {
                    began: at_us(start), up: Span::from_micros(up), down: Span::from_micros(down),
                })))
            })
        });
        let mut config = FabricConfig {
            outages: outages.collect(),
            faults: faults.chain(downs).collect(),
            detect: detect.map(Span::from_micros),
            detect_own: detect_own.map(Span::from_micros),
            balancing,
            ..FabricConfig::default()
        };
        config.switch.buffer = Bytes(300_000);
        if per_flow {
            config.switch.queues = roci_switch::config::Buffering::PerFlow;
        }
        let mut fabric = scripted(&graph, &config);
        for (from, to) in [(0, 2), (1, 2), (3, 2), (2, 0)] {
            fabric.nics.queues[usize::from(from)].extend((0..400).map(|n| Packet {
                flow: n * 31, ..data(from, to, 3, 4_178)
            }));
            fabric.net.kick(HostId(from));
        }
        prop_assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
        prop_assert_eq!(fabric.nics.arrivals.len() as u64 + fabric.net.totals().dropped, 1_600);
        prop_assert_eq!(fabric.net.packets().live(), 0);
        prop_assert!((0..4).all(|switch| fabric.net.switch(switch).used() == 0));
        let ports = u32::try_from(fabric.net.port_count()).unwrap();
        prop_assert!((0..ports).all(|port| fabric.net.paused(port) == 0));
    }
}

#[test]
fn each_loss_is_told_of_the_fault_that_took_it_and_of_the_switch_where_it_was() {
    let (half, down) = (Fault::Loss(Ratio::new(1, 2)), Fault::Down);
    let first = FaultSpec { until: at_us(40), ..always(0, NodeId(0), half) };
    let second = FaultSpec { start: at_us(40), until: at_us(60), ..always(0, NodeId(0), down) };
    let config = FabricConfig {
        // Host 1 stands at the same leaf, whose spines are down one after the other, and then both.
        faults: vec![first, second],
        outages: vec![failing(2, 70, 140), failing(3, 90, 140)],
        detect: Some(Span::from_micros(5)),
        ..FabricConfig::default()
    };
    let mut fabric = across(&config, 2_000);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let net = &fabric.net;
    let to_faults = [0, 1].map(|place| net.lost_to_fault(place).packets);
    let frames = 1e6 / wire_time(1_000) as f64;
    assert!((to_faults[0] as f64 - 20.0 * frames).abs() < 0.2 * 20.0 * frames, "{to_faults:?}");
    assert!((to_faults[1] as f64 - 20.0 * frames).abs() <= 1.0, "{to_faults:?}");
    assert_eq!(net.lost_to_fault(1).octets, to_faults[1] * 1_000);
    let to_outages = [0, 1].map(|place| net.lost_to_outage(place).packets);
    assert!(to_outages.iter().all(|lost| *lost > 0), "{to_outages:?}");
    let in_switches = [0, 1, 2, 3].map(|switch| net.lost_in_switch(switch));
    assert!(in_switches[0].no_way > 0 && in_switches[1] == InSwitch::default(), "{in_switches:?}");
    let no_way: u64 = in_switches.iter().map(|switch| switch.no_way).sum();
    let all: u64 = to_faults.iter().chain(&to_outages).sum();
    assert_eq!(all + no_way, net.totals().dropped, "nothing is told twice, nor forgotten");
    assert_eq!((net.lost_to_fault(7), net.lost_to_outage(7)), Default::default());
}

#[test]
fn two_outages_without_a_gap_between_them_are_noticed_as_one() {
    let lost = |outages: &[(u64, u64)], detect| {
        let outages = outages.iter().map(|&(start, until)| failing(2, start, until)).collect();
        let detect = Some(Span::from_micros(detect));
        let mut fabric = across(&FabricConfig { outages, detect, ..FabricConfig::default() }, 6_000);
        assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
        fabric.net.totals().dropped
    };
    for (start, detect) in [(100, 50), (100, 20), (100, 90), (0, 50)] {
        let whole = lost(&[(start, 200)], detect);
        for first in [130, 150] {
            let told = lost(&[(start, first), (first, 200)], detect);
            let turned = lost(&[(first, 200), (start, first)], detect);
            assert_eq!(
                (told, turned),
                (whole, whole),
                "from {start}, detected after {detect}, cut at {first}"
            );
        }
    }
}

#[test]
fn what_is_damaged_and_then_lost_on_one_link_is_told_once() {
    let half = Ratio::new(1, 2);
    let faults = [Fault::Corrupt(half), Fault::Duplicate(half), Fault::Loss(half)];
    let config = FabricConfig {
        faults: faults.map(|fault| always(0, NodeId(0), fault)).into(),
        ..FabricConfig::default()
    };
    let mut fabric = across(&config, 2_000);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let [damaged, doubled, lost] = [0, 1, 2].map(|place| fabric.net.lost_to_fault(place).packets);
    let corrupted = fabric.nics.arrivals.iter().filter(|it| it.2.marks.has(Marks::CORRUPT)).count() as u64;
    assert_eq!((damaged, doubled, lost), (corrupted, 0, fabric.net.totals().dropped));
    // Half of one and a half.
    assert!(lost.abs_diff(1_500) < 150 && damaged.abs_diff(750) < 150, "{damaged} {lost}");
}
