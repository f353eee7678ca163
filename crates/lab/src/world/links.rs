//! What passed each way of each link, and of that each priority where there are several.

use super::build;
use crate::results::{LinkResult, PriorityResult};
use roci_fabric::graph::Graph;
use roci_fabric::net::Net;
use roci_fabric::priorities::OfPriority;

/// One record for each port: those of hosts, then those of each switch.
#[expect(clippy::cast_possible_truncation, reason = "there are fewer than 2^28 ports")]
pub(super) fn results(net: &Net, graph: &Graph) -> Vec<LinkResult> {
    let ports = 0..net.port_count() as u32;
    // A port may be told to stop a priority on which nothing is ever sent: its line in `links.csv` counts that too.
    let seen = |counted: OfPriority| counted.packets > 0 || counted.pauses > 0;
    let is_used =
        |priority: &u8| ports.clone().any(|port| net.of_priority(port, *priority).is_some_and(seen));
    let used: Vec<u8> = (0..8).filter(is_used).collect();
    ports.map(|port| link_result(net, port, graph, &used)).collect()
}

/// What `port` sent, also on each of the priorities `used`.
fn link_result(net: &Net, port: u32, graph: &Graph, used: &[u8]) -> LinkResult {
    let pauses = net.pauses(port);
    let counters = net.counters(port).copied().unwrap_or_default();
    let faults = net.fault_counters(port).copied().unwrap_or_default();
    LinkResult {
        name: build::port_name(net, port, |node| build::node_name(graph, node)),
        rate: net.rate_of_port(port),
        tx_bytes: net.tx_octets(port),
        drops: counters.dropped + counters.headroom_dropped,
        ecn_marks: counters.marked,
        trimmed: counters.trimmed,
        pause_received: pauses.received.into(),
        paused: pauses.paused(net.now()),
        lost: faults.dropped.packets,
        corrupted: faults.corrupted.packets,
        priorities: used
            .iter()
            .filter_map(|&of| Some(priority_result(of, net.of_priority(port, of)?)))
            .collect(),
    }
}

fn priority_result(priority: u8, counted: OfPriority) -> PriorityResult {
    let OfPriority { packets, octets, marked, dropped, pauses, paused, lost, corrupted, peak } = counted;
    PriorityResult {
        priority,
        packets,
        tx_bytes: octets,
        drops: dropped,
        ecn_marks: marked,
        pause_received: pauses,
        paused,
        lost,
        corrupted,
        max_queue_bytes: peak.map(u64::from),
    }
}
