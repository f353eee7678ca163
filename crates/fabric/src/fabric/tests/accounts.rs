//! The books of switches, looked at in every instant in which something happens.

use super::balance::balancing;
use super::*;
use crate::change::{Outage, Part};
use crate::fault::Turns;
use roci_switch::config::{Buffering, Marking};
use roci_switch::{Shares, Switch};
use std::collections::BTreeMap;

/// Octets of each priority at a switch, by what they wait for and by what they came in by: as the packets in the queues say.
#[derive(Default)]
struct Seen {
    leaving: BTreeMap<(u32, u8), u32>,
    came: BTreeMap<(u32, u8), u32>,
    octets: u32,
}

fn seen(net: &Net, switch: u32) -> Seen {
    let mut seen = Seen::default();
    for port in net.switch_ports(switch) {
        for priority in 0..8 {
            let mut waiting = 0;
            let visit = |handle| {
                let packet = &net.packets[PacketId(handle)];
                assert_eq!(packet.priority, priority);
                assert!(
                    net.switch_ports(switch).contains(&packet.port),
                    "it came in by a port of this switch"
                );
                waiting += u32::from(packet.frame);
                *seen.came.entry((packet.port, priority)).or_default() += u32::from(packet.frame);
            };
            net.switch(switch).for_each_waiting(&net.ports, &net.packets, port, priority, visit);
            assert_eq!(net.backlog(port) >> priority & 1 == 1, waiting > 0);
            seen.leaving.insert((port, priority), waiting);
            seen.octets += waiting;
        }
    }
    seen
}

/// What holds of a switch at any time. `shared` is what is free of it while nothing waits, and `exact` says that nothing of it is
/// reserved and there is no headroom.
fn check(net: &Net, switch: u32, shared: u32, exact: bool) {
    let of: &Switch = net.switch(switch);
    let seen = seen(net, switch);
    assert_eq!(of.used(), seen.octets);
    assert!(of.peak() >= of.used());
    let taken = shared - of.free();
    assert!(taken <= of.used() && (!exact || taken == of.used()), "{taken} of {}", of.used());
    for port in net.switch_ports(switch) {
        for priority in 0..8 {
            let (bit, key) = (1 << priority, (port, priority));
            assert_eq!(net.queued(port, priority), seen.leaving[&key]);
            assert!(net.queue_peak(port, priority) >= seen.leaving[&key]);
            let came = seen.came.get(&key).copied().unwrap_or(0);
            let held = of.held(&net.ports, port, priority);
            if of.lossless() & bit != 0 {
                assert_eq!(held, came, "port {port}, priority {priority}");
                assert!(
                    net.ports[port as usize].pausing() & bit == 0 || held > 0,
                    "who paused has a reason to go on"
                );
            } else {
                assert_eq!((held, net.ports[port as usize].pausing() & bit), (0, 0));
            }
        }
    }
}

/// Two that may be lossless and two that may not.
const PRIORITIES: [u8; 4] = [3, 5, 0, 6];

fn drawn(random: &mut Random) -> u8 {
    PRIORITIES[usize::try_from(random.below(4)).unwrap()]
}

/// What is drawn besides chance: the shared buffer, what is reserved, and which ways switches go.
#[derive(Clone, Copy, Debug)]
struct Ways {
    buffer: u64,
    reserve: u64,
    headroom: bool,
    pfc: bool,
    ets: bool,
    per_flow: bool,
    arrivals: bool,
    trims: bool,
    balancing: Balancing,
    fails: bool,
}

fn configured(seed: u64, ways: Ways) -> FabricConfig {
    let mut config = FabricConfig { seed, balancing: ways.balancing, ..FabricConfig::default() };
    let set_aside = if ways.headroom { 600_000 } else { 0 } + 10 * ways.reserve;
    config.switch.buffer = Bytes(ways.buffer + set_aside);
    config.switch.max_frame = 4_178;
    config.switch.pfc = ways.pfc.then(|| Pfc {
        classes: 1 << 3 | 1 << 5,
        headroom: if ways.headroom { Headroom::Exact } else { Headroom::Octets(Bytes(0)) },
        reserve: Bytes(ways.reserve),
        ..Pfc::default()
    });
    config.switch.marking = if ways.arrivals { Marking::Arrival } else { Marking::Departure };
    config.switch.queues = if ways.per_flow { Buffering::PerFlow } else { Buffering::PerPriority };
    config.switch.ets = ways.ets.then(|| Shares::new([40, 0, 0, 60, 0, 0, 0, 0]).unwrap());
    let trim = Trim { threshold: Some(Bytes(9_000)), random_tail: true, ..TRIM };
    config.switch.trim = ways.trims.then_some(trim);
    if ways.fails {
        let (up, down) = (Span::from_micros(4), Span::from_micros(2));
        let turns = Some(Turns { began: Instant::ZERO, up, down });
        let (start, until) = (Instant::ZERO, Instant::from_ps(30_000_000));
        config.detect = Some(Span::from_micros(1));
        config.outages = vec![Outage { part: Part::Switch(2), start, until, turns }];
    }
    config
}

/// What the six hosts send: most of it to the last one, that there be something to wait for.
fn traffic(fabric: &mut Fabric<Script>, random: &mut Random) -> usize {
    let below = |random: &mut Random, bound| u16::try_from(random.below(bound)).unwrap();
    for host in 0..6 {
        for _ in 0..60 {
            let other = (host + 1 + below(random, 5)) % 6;
            let other = if host != 5 && below(random, 3) > 0 { 5 } else { other };
            let mut packet = data(host, other, drawn(random), 64 + below(random, 4_115));
            packet.flow = u32::from(below(random, 1 << 16));
            packet.header.opcode = Opcode::WRITE_MIDDLE;
            fabric.nics.queues[usize::from(host)].push_back(packet);
        }
        fabric.net.kick(HostId(host));
    }
    6 * 60
}

fn account_for(seed: u64, ways: Ways) {
    let (rate, fabric_rate) = (RATE, Some(BitsPerSec::from_gbps(70)));
    let delay = Span::from_nanos(50);
    let shape = LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 3, rate, fabric_rate, delay };
    let mut fabric = scripted(&shape.build().unwrap().graph, &configured(seed, ways));
    let shared: Vec<u32> = (0..4).map(|switch| fabric.net.switch(switch).free()).collect();
    let mut random = Random::new(seed, 1);
    let sent = traffic(&mut fabric, &mut random);
    let exact = ways.reserve == 0 && !(ways.pfc && ways.headroom);
    fabric.run_until(Instant::ZERO);
    let mut instants = 0;
    for pausing in [true, false] {
        while let Some(next) = fabric.net.queue.next_time() {
            fabric.run_until(Instant::from_ps(next));
            // Now and then a host pauses its switch, or lets it go on.
            if pausing && random.below(40) == 0 {
                let (host, priority) = (HostId(u16::try_from(random.below(6)).unwrap()), drawn(&mut random));
                let on = fabric.net.hosts[usize::from(host.0)].pausing >> priority & 1 == 0;
                fabric.net.host_pause(host, priority, on);
            }
            (0..4).for_each(|switch| check(&fabric.net, switch, shared[switch as usize], exact));
            instants += 1;
        }
        for host in 0..6 {
            PRIORITIES.iter().for_each(|&priority| fabric.net.host_pause(HostId(host), priority, false));
        }
    }
    assert!(instants > 400, "{instants}");
    assert_eq!(fabric.net.packets().live(), 0);
    let lost = usize::try_from(fabric.net.totals().dropped).unwrap();
    assert_eq!(fabric.nics.arrivals.len() + lost, sent);
    for (switch, shared) in (0..).zip(shared) {
        let of = fabric.net.switch(switch);
        assert_eq!((of.used(), of.free()), (0, shared));
    }
    if ways.pfc && ways.headroom && !ways.trims && !ways.fails {
        let counters = (0u32..).take(fabric.net.port_count()).filter_map(|port| fabric.net.counters(port));
        assert_eq!(counters.map(|counters| counters.headroom_dropped).sum::<u64>(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn at_any_time_each_octet_is_on_one_account_of_its_switch(
        seed in any::<u64>(),
        buffer in 30_000u64..200_000,
        reserve in prop_oneof![Just(0u64), 1u64..6_000],
        (headroom, pfc, ets, per_flow) in any::<(bool, bool, bool, bool)>(),
        (arrivals, trims, fails) in any::<(bool, bool, bool)>(),
        balancing in balancing(),
    ) {
        let ways = Ways { buffer, reserve, headroom, pfc, ets, per_flow, arrivals, trims, balancing, fails };
        account_for(seed, ways);
    }
}
