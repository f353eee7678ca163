//! What stands on a link and what it does to packets.

use super::*;
use crate::fault::Turns;

pub(super) fn always(link: u32, from: NodeId, fault: Fault) -> FaultSpec {
    FaultSpec { link, from, start: Instant::ZERO, until: Instant::NEVER, fault }
}

/// A link that is up for 30 us from the beginning, down for 10 us, and so on.
fn flap() -> Fault {
    Fault::Flap(Turns { began: Instant::ZERO, up: Span::from_micros(30), down: Span::from_micros(10) })
}

/// Host 0 sends `count` frames to host 1 over a star of two; the faults stand on host 0's link.
fn faulty(faults: &[Fault], count: usize) -> Fabric<Script> {
    let faults = faults.iter().map(|&fault| always(0, NodeId(0), fault)).collect();
    let config = FabricConfig { faults, seed: 5, ..FabricConfig::default() };
    let mut fabric = scripted(&star(2), &config);
    let numbered = (0..count).map(|n| {
        let mut packet = data(0, 1, 3, 1_000);
        packet.flow = u32::try_from(n).unwrap();
        packet
    });
    fabric.nics.queues[0].extend(numbered);
    fabric.net.kick(HostId(0));
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.net.packets().live(), 0);
    fabric
}

/// Five standard deviations about the mean of a binomial count.
fn likely(count: usize, of: usize, p: f64) -> bool {
    let (count, of) = (count as f64, of as f64);
    (count - of * p).abs() <= 5.0 * (of * p * (1.0 - p)).sqrt()
}

/// What of 2,000 frames comes through `faults` at host 1.
fn through(faults: Vec<FaultSpec>) -> Vec<u32> {
    let config = FabricConfig { faults, seed: 5, ..FabricConfig::default() };
    let mut fabric = scripted(&star(2), &config);
    fabric.nics.queues[0].extend((0..2_000).map(|flow| Packet { flow, ..data(0, 1, 3, 1_000) }));
    fabric.net.kick(HostId(0));
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    order(&fabric)
}

#[test]
fn a_fault_draws_the_same_whatever_other_faults_there_are() {
    let loss =
        |start, until| FaultSpec { start, until, ..always(0, NodeId(0), Fault::Loss(Ratio::new(1, 4))) };
    let (begins, never) = (Instant::from_ps(80_000_000), Instant::NEVER);
    let alone = through(vec![loss(begins, never)]);
    let untouched = alone.iter().zip(0..).take_while(|(flow, place)| *flow == place).count();
    assert!((500..1_500).contains(&untouched), "{untouched}");
    let earlier = loss(Instant::ZERO, begins);
    let elsewhere = always(1, NodeId(1), Fault::Loss(Ratio::new(1, 4)));
    let others = [earlier, elsewhere, always(0, NodeId(0), Fault::Corrupt(Ratio::ZERO))];
    for other in others {
        for faults in [vec![other.clone(), loss(begins, never)], vec![loss(begins, never), other.clone()]] {
            let lost_later = |order: &[u32]| -> Vec<u32> {
                let later = 1_000..2_000;
                later.filter(|flow| !order.contains(flow)).collect()
            };
            assert_eq!(lost_later(&through(faults)), lost_later(&alone), "beside {other:?}");
        }
    }
}

#[test]
fn faults_of_one_link_that_are_alike_draw_each_by_itself() {
    let loss = || always(0, NodeId(0), Fault::Loss(Ratio::new(1, 2)));
    let back = FaultSpec { from: NodeId(2), ..loss() };
    assert_ne!(loss().random(5, false, 0), loss().random(5, false, 1));
    assert_ne!(loss().random(5, false, 0), back.random(5, true, 0));
    let kept = through(vec![loss(), loss()]).len();
    assert!(likely(kept, 2_000, 0.25), "{kept}");
}

fn order(fabric: &Fabric<Script>) -> Vec<u32> {
    fabric.nics.arrivals.iter().map(|arrival| arrival.2.flow).collect()
}

#[test]
fn loss_is_as_likely_as_it_says() {
    let fabric = faulty(&[Fault::Loss(Ratio::new(1, 20))], 20_000);
    assert!(likely(20_000 - fabric.nics.arrivals.len(), 20_000, 0.05));
}

#[test]
fn gilbert_elliott_loses_in_bursts() {
    let fault = Fault::GilbertElliott {
        to_bad: Ratio::new(1, 100),
        to_good: Ratio::new(1, 10),
        loss_good: Ratio::ZERO,
        loss_bad: Ratio::ONE,
        chain: 0,
    };
    let arrived = order(&faulty(&[fault], 50_000));
    let lost = 50_000 - arrived.len();
    // The chain is bad for 1 packet in 11; bursts have a mean of ten, so the count spreads wider than a coin's.
    assert!((3_600..5_500).contains(&lost), "{lost}");
    let bursts = arrived.windows(2).filter(|pair| pair[1] - pair[0] > 1).count();
    assert!((8..=12).contains(&(lost / bursts)), "{lost} in {bursts} bursts");
}

#[test]
fn a_chain_that_another_fault_stood_in_for_goes_on_where_it_was() {
    // It turns at each packet: the first is lost, the second is not.
    let turns = |chain| Fault::GilbertElliott {
        to_bad: Ratio::ONE,
        to_good: Ratio::ONE,
        loss_good: Ratio::ZERO,
        loss_bad: Ratio::ONE,
        chain,
    };
    let at = |frames: u64| Instant::from_ps(frames * wire_time(1_000));
    for (chain, first_after) in [(7, 16), (8, 17)] {
        let faults = vec![
            FaultSpec { until: at(11), ..always(0, NodeId(0), turns(7)) },
            FaultSpec { start: at(16), ..always(0, NodeId(0), turns(chain)) },
        ];
        let mut fabric = scripted(&star(2), &FabricConfig { faults, ..FabricConfig::default() });
        fabric.nics.queues[0].extend((0..20).map(|n| Packet { flow: n, ..data(0, 1, 3, 1_000) }));
        fabric.net.kick(HostId(0));
        fabric.run_until(SECOND);
        // Bad at the eleventh; then five that it does not see.
        let arrived = [1, 3, 5, 7, 9, 11, 12, 13, 14, 15, first_after, first_after + 2];
        assert_eq!(order(&fabric), arrived, "{chain}");
    }
}

#[test]
fn corrupt_packets_arrive_marked_and_duplicates_arrive_twice() {
    let faults = [Fault::Duplicate(Ratio::new(1, 10)), Fault::Corrupt(Ratio::new(1, 5))];
    let fabric = faulty(&faults, 10_000);
    let arrivals = &fabric.nics.arrivals;
    assert!(likely(arrivals.len() - 10_000, 10_000, 0.1));
    let corrupt = arrivals.iter().filter(|arrival| arrival.2.marks.has(Marks::CORRUPT)).count();
    assert!(likely(corrupt, arrivals.len(), 0.2));
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let jitter = Fault::Delay { delay: DELAY, jitter: Span::from_micros(10) };
    let jittered = faulty(&[jitter], 2_000);
    assert!(order(&jittered).is_sorted());
    assert!(jittered.nics.arrivals[0].0 >= 2 * wire_time(1_000) + 3 * DELAY.as_ps());
    let reordered =
        faulty(&[Fault::Reorder { chance: Ratio::new(1, 50), delay: Span::from_micros(2) }], 2_000);
    assert_eq!(reordered.nics.arrivals.len(), 2_000);
    let overtaken = order(&reordered).windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(likely(overtaken, 2_000, 0.02), "{overtaken}");
}

#[test]
fn delayed_packets_follow_each_other_as_the_link_lets_them_also_when_the_delay_is_over() {
    let graph = Graph {
        hosts: vec!["h0".into(), "h1".into()],
        links: vec![Link { a: NodeId(0), b: NodeId(1), rate: RATE, delay: DELAY }],
        ..Graph::default()
    };
    let delay = Fault::Delay { delay: Span::from_micros(50), jitter: Span::from_micros(20) };
    let until = Instant::from_ps(300 * wire_time(1_000));
    let faults = vec![FaultSpec { until, ..always(0, NodeId(0), delay) }];
    let mut fabric = scripted(&graph, &FabricConfig { faults, ..FabricConfig::default() });
    fabric.nics.queues[0].extend((0..1_000).map(|n| Packet { flow: n, ..data(0, 1, 3, 1_000) }));
    fabric.net.kick(HostId(0));
    fabric.run_until(SECOND);
    assert_eq!(order(&fabric), (0..1_000).collect::<Vec<_>>());
    let times: Vec<u64> = fabric.nics.arrivals.iter().map(|arrival| arrival.0).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= wire_time(1_000)));
    assert!(times[0] >= wire_time(1_000) + DELAY.as_ps() + 50_000_000);
    assert!(times[999] <= 1_000 * wire_time(1_000) + DELAY.as_ps() + 70_000_000);
}

/// When each of `count` frames of 1001 octets arrives over a link of `rate` without a switch, in the order in which they were sent.
fn over_one_link(rate: BitsPerSec, faults: &[Fault], count: u32) -> Vec<u64> {
    let link = Link { a: NodeId(0), b: NodeId(1), rate, delay: DELAY };
    let graph = Graph { hosts: vec!["h0".into(), "h1".into()], links: vec![link], ..Graph::default() };
    let faults = faults.iter().map(|&fault| always(0, NodeId(0), fault)).collect();
    let mut fabric = scripted(&graph, &FabricConfig { faults, ..FabricConfig::default() });
    fabric.nics.queues[0].extend((0..count).map(|flow| Packet { flow, ..data(0, 1, 3, 1_001) }));
    fabric.net.kick(HostId(0));
    fabric.run_until(SECOND);
    let mut arrivals: Vec<_> =
        fabric.nics.arrivals.iter().map(|arrival| (arrival.2.flow, arrival.0)).collect();
    arrivals.sort_unstable();
    arrivals.into_iter().map(|(_, at)| at).collect()
}

#[test]
fn packets_that_a_busy_link_holds_back_all_alike_do_not_fall_behind_each_other() {
    // A frame takes 2,722,666 ps and two thirds.
    let rate = BitsPerSec::from_gbps(3);
    let held = Fault::Delay { delay: Span::from_micros(5), jitter: Span::ZERO };
    let (free, held) = (over_one_link(rate, &[], 10_000), over_one_link(rate, &[held], 10_000));
    let late: Vec<u64> = free.iter().zip(&held).map(|(free, held)| held - free).collect();
    assert!(late.iter().all(|late| (5_000_000..5_000_002).contains(late)), "{:?}", late.iter().max());
}

#[test]
fn a_packet_that_others_overtake_is_as_late_as_was_said() {
    let held = Fault::Reorder { chance: Ratio::new(1, 10), delay: Span::from_micros(2) };
    let (free, held) = (over_one_link(RATE, &[], 2_000), over_one_link(RATE, &[held], 2_000));
    let late: Vec<u64> = free.iter().zip(&held).map(|(free, held)| held - free).collect();
    assert!(late.iter().all(|late| [0, 2_000_000].contains(late)));
    assert!(likely(late.iter().filter(|late| **late > 0).count(), 2_000, 0.1));
}

#[test]
fn a_flapping_link_loses_what_is_sent_while_it_is_down() {
    let fabric = faulty(&[flap()], 4_000);
    assert!((980..1_080).contains(&(4_000 - fabric.nics.arrivals.len())), "a quarter of the time");
    let sent_at = |n: u32| u64::from(n) * wire_time(1_000);
    assert!(order(&fabric).into_iter().all(|n| sent_at(n) % 40_000_000 < 30_000_000));
}

#[test]
fn a_flap_that_comes_into_force_later_is_where_it_would_be_by_then() {
    let start = Instant::from_ps(75_000_000);
    let faults = vec![FaultSpec { start, ..always(0, NodeId(0), flap()) }];
    let mut fabric = scripted(&star(2), &FabricConfig { faults, ..FabricConfig::default() });
    fabric.nics.queues[0].extend((0..1_500).map(|n| Packet { flow: n, ..data(0, 1, 3, 1_000) }));
    fabric.net.kick(HostId(0));
    fabric.run_until(SECOND);
    let down = |n: u32| {
        let at = u64::from(n) * wire_time(1_000);
        at >= 75_000_000 && at % 40_000_000 >= 30_000_000
    };
    let arrived: Vec<u32> = (0..1_500).filter(|&n| !down(n)).collect();
    assert_eq!(order(&fabric), arrived);
    assert!(arrived.len() < 1_500 - 100, "it was down for fifteen microseconds");
}

#[test]
fn a_fault_lasts_from_its_start_until_its_end() {
    let faults = vec![FaultSpec {
        start: Instant::from_ps(10 * wire_time(1_000)),
        until: Instant::from_ps(20 * wire_time(1_000)),
        ..always(0, NodeId(0), Fault::Loss(Ratio::ONE))
    }];
    let mut fabric = scripted(&star(2), &FabricConfig { faults, ..FabricConfig::default() });
    fabric.nics.queues[0].extend((0..30).map(|n| Packet { flow: n, ..data(0, 1, 3, 1_000) }));
    fabric.net.kick(HostId(0));
    fabric.run_until(SECOND);
    assert_eq!(order(&fabric), (0..10).chain(20..30).collect::<Vec<_>>());
}

#[test]
fn a_fault_stands_on_the_one_of_parallel_links_that_it_is_for() {
    let link = |a, b| Link { a: NodeId(a), b: NodeId(b), rate: RATE, delay: DELAY };
    // Two hosts at two switches with three links between them.
    let graph = Graph {
        hosts: vec!["h0".into(), "h1".into()],
        switches: vec!["s".into(), "t".into()],
        links: vec![link(0, 2), link(2, 3), link(2, 3), link(1, 3), link(3, 2)],
    };
    for (place, from, port) in [(1, 2, 3), (2, 2, 4), (4, 2, 5), (4, 3, 9)] {
        let faults = vec![always(place, NodeId(from), Fault::Loss(Ratio::ONE))];
        let fabric = scripted(&graph, &FabricConfig { faults, ..FabricConfig::default() });
        let standing: Vec<u32> = (0..10).filter(|&port| fabric.net.fault_counters(port).is_some()).collect();
        assert_eq!(standing, [port]);
    }
}

#[test]
fn a_pause_storm_stops_a_link_with_pfc_and_without_and_lets_it_go_on() {
    let faults = vec![FaultSpec {
        start: Instant::from_ps(5_000_000),
        until: Instant::from_ps(105_000_000),
        ..always(1, NodeId(2), Fault::PauseStorm { priority: 3 })
    }];
    for pfc in [SwitchConfig::default().pfc, None] {
        let switch = SwitchConfig { pfc, ..SwitchConfig::default() };
        let config = FabricConfig { faults: faults.clone(), switch, ..FabricConfig::default() };
        let mut fabric = scripted(&star(2), &config);
        fabric.nics.queues[0].extend(std::iter::repeat_n(data(0, 1, 3, 1_000), 200));
        fabric.net.kick(HostId(0));
        assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
        assert_eq!(fabric.nics.arrivals.len(), 200);
        let gap = fabric.nics.arrivals.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
        assert!(gap.abs_diff(100_000_000) < 2 * wire_time(1_000), "{gap}");
        assert_eq!(fabric.net.pauses(3).paused(fabric.net.now()), Span::from_micros(100));
    }
}

#[test]
fn a_forger_calls_for_cnps_above_its_threshold_and_no_faster_than_its_cooldown() {
    let forger = Fault::ForgedCnp {
        threshold: BitsPerSec::from_gbps(5),
        window: Span::from_micros(32),
        cooldown: Span::from_micros(50),
    };
    let config = FabricConfig { faults: vec![always(0, NodeId(0), forger)], ..FabricConfig::default() };
    let mut fabric = blast(&star(2), &config, &[0], 1, 500);
    fabric.nics.forge = true;
    fabric.net.tap(0, true);
    fabric.run_until(SECOND);
    let cnps: Vec<u64> = fabric.nics.arrivals.iter().filter(|a| a.1 == 0).map(|a| a.0).collect();
    // 5 Gb/s over 32 us are 20 000 octets: the fifth frame goes over, and its CNP takes the link's delay.
    assert_eq!(cnps[0], 4 * wire_time(FRAME) + DELAY.as_ps());
    assert!(cnps.windows(2).all(|pair| pair[1] - pair[0] >= 50_000_000));
    assert_eq!(cnps.len(), 4, "500 frames last 168 us");
    assert_eq!(fabric.net.fault_counters(0).unwrap().forged, 4);
    let taps = fabric.net.drain_taps();
    let received: Vec<u64> = taps.iter().filter(|tap| !tap.sent).map(|tap| tap.at.as_ps()).collect();
    assert_eq!(received, cnps, "a capture shows what came, whoever made it");
}
