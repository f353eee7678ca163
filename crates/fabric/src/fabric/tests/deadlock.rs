//! Rings that lock up, and one that only seems to.

use super::*;
use crate::deadlock::Deadlock;

/// A ring of switches with a host each on a link of `host_rate`; every host sends `count` packets to the one `further`
/// switches on, clockwise. `shared`: octets of buffer beside the headroom.
fn ring(switches: u32, host_rate: BitsPerSec, further: u16, count: usize, shared: u64) -> Fabric<Script> {
    let mut graph = Graph {
        hosts: (0..switches).map(|n| format!("h{n}")).collect(),
        switches: (0..switches).map(|n| format!("s{n}")).collect(),
        links: Vec::new(),
    };
    for n in 0..switches {
        let link = |a, b, rate| Link { a: NodeId(a), b: NodeId(b), rate, delay: DELAY };
        graph.links.push(link(n, switches + n, host_rate));
        graph.links.push(link(switches + n, switches + (n + 1) % switches, RATE));
    }
    let switch = tight(Headroom::Exact, shared, 3, 4_178);
    let config = FabricConfig { switch, ..FabricConfig::default() };
    let mut fabric = scripted(&graph, &config);
    for n in 0..u16::try_from(switches).unwrap() {
        let destination = (n + further) % u16::try_from(switches).unwrap();
        let packets = std::iter::repeat_n(data(n, destination, 3, FRAME), count);
        fabric.nics.queues[usize::from(n)].extend(packets);
        fabric.net.kick(HostId(n));
    }
    fabric
}

#[test]
fn a_ring_deadlocks_and_the_cycle_is_named() {
    let mut fabric = ring(7, RATE, 3, 2_000, 100_000);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert!(fabric.nics.arrivals.len() < 7 * 2_000, "it stands still before all has arrived");
    let Deadlock { priority, cycle } = fabric.net.deadlock().expect("a cycle of paused ports");
    assert_eq!(priority, 3);
    let mut switches: Vec<u32> = cycle.iter().map(|&(switch, _)| switch).collect();
    for (here, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        assert_eq!(fabric.net.switch_of(fabric.net.peer(here.1)), Some(next.0), "each waits for the next");
    }
    switches.sort_unstable();
    assert_eq!(switches, [0, 1, 2, 3, 4, 5, 6]);
}

/// The port of a switch of a ring of five that leads on, clockwise.
fn onwards(net: &Net, switch: u32) -> u32 {
    let leads_on = |&port: &u32| net.switch_of(net.peer(port)) == Some((switch + 1) % 5);
    net.switch_ports(switch).find(leads_on).unwrap()
}

/// Hosts that take nothing fill their switches, which pause the ring: each of its ports waits for the next one, but for its
/// host as well, and moves again as soon as that does.
#[test]
fn ports_that_wait_for_a_host_as_well_are_no_deadlock() {
    let mut fabric = ring(5, BitsPerSec::from_gbps(25), 2, 40, 1_000_000);
    for host in 0..5 {
        fabric.net.host_pause(HostId(host), 3, true);
    }
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    for switch in 0..5 {
        let next = (switch + 1) % 5;
        let (port, onwards) = (onwards(&fabric.net, switch), onwards(&fabric.net, next));
        assert!(fabric.net.paused(port) & 1 << 3 != 0 && fabric.net.queued(port, 3) > 0, "switch {switch}");
        let ingress = fabric.net.peer(port);
        let mut transit = 0;
        fabric.net.switch(next).for_each_waiting(
            &fabric.net.ports,
            &fabric.net.packets,
            onwards,
            3,
            |handle| transit += u32::from(fabric.net.packets[PacketId(handle)].port == ingress),
        );
        assert!(transit > 0, "one waits for the next");
    }
    assert_eq!((fabric.net.held(), fabric.net.deadlock()), (Vec::new(), None));
    for host in 0..5 {
        fabric.net.host_pause(HostId(host), 3, false);
    }
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.arrivals.len(), 5 * 40);
}
