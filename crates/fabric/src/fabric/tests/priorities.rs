//! What ports count of each priority, against what they count of all.

use super::*;
use crate::change::{Outage, Part};

/// Two lossless senders of priority 3 and one of priority 0, whose packets may be dropped, to one receiver that is slow at first.
fn two_classes(config: &FabricConfig, counted: bool) -> Fabric<Script> {
    let mut fabric = blast(&star(4), config, &[0, 1], 3, 200);
    fabric.nics.queues[2].extend(std::iter::repeat_n(data(2, 3, 0, 1_000), 400));
    fabric.net.kick(HostId(2));
    if counted {
        fabric.net.count_priorities();
    }
    fabric
}

fn lossless_3() -> FabricConfig {
    let mut config = FabricConfig::default();
    config.switch.ecn = Some(Red { kmin: Bytes(10_000), kmax: Bytes(10_000), pmax: Ratio::ONE });
    config.switch.buffer = Bytes(200_000);
    config.switch.pfc =
        Some(Pfc { classes: 1 << 3, headroom: Headroom::Octets(Bytes(40_000)), ..Pfc::default() });
    config
}

/// The counts of all priorities of `port`, which make up what it has counted of all.
fn by_priority(net: &Net, port: u32) -> Vec<crate::priorities::OfPriority> {
    let of: Vec<_> = (0..8).map(|priority| net.of_priority(port, priority).unwrap()).collect();
    let sum = |count: fn(&crate::priorities::OfPriority) -> u64| of.iter().map(count).sum::<u64>();
    assert_eq!(sum(|of| of.octets), net.tx_octets(port), "port {port}");
    assert_eq!(sum(|of| of.pauses), u64::from(net.pauses(port).received));
    assert_eq!(sum(|of| of.paused.as_ps()), net.pauses(port).paused(net.now()).as_ps());
    let counters = net.counters(port).copied().unwrap_or_default();
    assert_eq!(sum(|of| of.marked), counters.marked);
    assert_eq!(sum(|of| of.dropped), counters.dropped + counters.headroom_dropped);
    let faults = net.fault_counters(port).copied().unwrap_or_default();
    assert_eq!(sum(|of| of.lost), faults.dropped.packets);
    assert_eq!(sum(|of| of.corrupted), faults.corrupted.packets);
    of
}

#[test]
fn what_befalls_one_priority_is_not_counted_as_the_other_s() {
    let mut fabric = two_classes(&lossless_3(), true);
    // Part of the way, so that a pause which stands is counted up to now.
    for until in [Instant::from_ps(60 * wire_time(FRAME)), SECOND] {
        fabric.run_until(until);
        (0..8).for_each(|port| _ = by_priority(&fabric.net, port));
    }
    let [from_lossless, from_lossy, to_receiver] = [0, 2, 7].map(|port| by_priority(&fabric.net, port));
    assert_eq!((from_lossless[3].packets, from_lossless[0].packets), (200, 0));
    assert!(from_lossless[3].pauses > 0 && from_lossless[3].paused > Span::ZERO);
    assert_eq!(
        (from_lossless[3].peak, from_lossy[0].peak),
        (None, None),
        "packets of hosts wait in their NICs"
    );
    assert_eq!((from_lossy[0].packets, from_lossy[0].pauses, from_lossy[0].paused), (400, 0, Span::ZERO));
    let (lossy, lossless) = (to_receiver[0], to_receiver[3]);
    assert_eq!((lossless.packets, lossless.octets, lossless.dropped), (400, 400 * u64::from(FRAME), 0));
    assert_eq!(lossy.packets + lossy.dropped, 400);
    assert!(lossy.dropped > 0 && lossy.marked > 0 && lossless.marked > 0, "{to_receiver:?}");
    assert_eq!(lossless.peak, Some(fabric.net.queue_peak(7, 3)));
}

#[test]
fn counting_by_priority_changes_nothing_else_and_a_switch_that_fails_ends_its_pauses() {
    let outage = Outage {
        part: Part::Switch(0),
        start: Instant::from_ps(60 * wire_time(FRAME)),
        until: Instant::from_ps(90 * wire_time(FRAME)),
        turns: None,
    };
    let config = FabricConfig { outages: vec![outage], ..lossless_3() };
    let [counted, plain] = [true, false].map(|counted| {
        let mut fabric = two_classes(&config, counted);
        fabric.run_until(SECOND);
        fabric
    });
    let arrivals = |fabric: &Fabric<Script>| {
        let of = |(at, host, packet): &Arrival| (*at, *host, packet.source, packet.priority);
        fabric.nics.arrivals.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(&counted), arrivals(&plain));
    assert_eq!(counted.net.totals(), plain.net.totals());
    assert!((0..8).all(|port| plain.net.of_priority(port, 3).is_none()));
    (0..8).for_each(|port| _ = by_priority(&counted.net, port));
    let paused = by_priority(&counted.net, 0)[3].paused;
    assert!(paused > Span::ZERO && paused < Span::from_millis(1), "{paused}");
}

#[test]
fn what_faults_lose_and_damage_is_counted_with_the_priority_of_the_packet() {
    // Copies that are made of a packet count as it does.
    let faults =
        [Fault::Duplicate(Ratio::new(1, 4)), Fault::Corrupt(Ratio::new(1, 4)), Fault::Loss(Ratio::new(1, 2))];
    let faults = faults.map(|fault| super::faults::always(2, NodeId(2), fault)).to_vec();
    let mut fabric = two_classes(&FabricConfig { faults, ..lossless_3() }, true);
    fabric.run_until(SECOND);
    (0..8).for_each(|port| _ = by_priority(&fabric.net, port));
    let [of_others, faulty] = [0, 2].map(|port| by_priority(&fabric.net, port));
    assert!(of_others.iter().chain(&faulty[1..]).all(|of| (of.lost, of.corrupted) == (0, 0)), "{faulty:?}");
    assert!(faulty[0].packets == 400 && faulty[0].lost > 150 && faulty[0].corrupted > 20, "{faulty:?}");
}
