//! What a configuration's windows and round trips are counted from: the farthest hosts.

use roci_fabric::graph::Graph;
use roci_units::{BitsPerSec, Span};
use std::collections::VecDeque;

/// The longest of all shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    /// The longest round trip: both ways' delays, and one full packet's payload sent on each link one way.
    pub(super) round_trip: Span,
    /// The most octets that a path's slowest link carries in its round trip.
    pub(super) octets: u64,
}

/// A node as seen from a host.
#[derive(Clone, Copy)]
struct Seen {
    delay: Span,
    sending: Span,
    slowest: BitsPerSec,
}

/// Looks from each host to all others, by the fewest links, through switches, as HPCC's simulator does.
pub(super) fn longest(graph: &Graph, payload: u32) -> Paths {
    let nodes = graph.hosts.len() + graph.switches.len();
    let mut links = vec![Vec::new(); nodes];
    for link in &graph.links {
        links[link.a.0 as usize].push((link.b.0 as usize, link));
        links[link.b.0 as usize].push((link.a.0 as usize, link));
    }
    let mut longest = Paths { round_trip: Span::ZERO, octets: 0 };
    for host in 0..graph.hosts.len() {
        let mut seen: Vec<Option<Seen>> = vec![None; nodes];
        seen[host] = Some(Seen { delay: Span::ZERO, sending: Span::ZERO, slowest: BitsPerSec(u64::MAX) });
        let mut next = VecDeque::from([host]);
        while let Some(node) = next.pop_front() {
            let Some(from) = seen[node] else { continue };
            for &(to, link) in &links[node] {
                if seen[to].is_some() {
                    continue;
                }
                let delay = from.delay + link.delay;
                let sending = from.sending + link.rate.time_for(payload.into());
                let slowest = from.slowest.min(link.rate);
                seen[to] = Some(Seen { delay, sending, slowest });
                if to >= graph.hosts.len() {
                    next.push_back(to);
                    continue;
                }
                let round_trip = delay + delay + sending;
                longest.round_trip = longest.round_trip.max(round_trip);
                longest.octets = longest.octets.max(slowest.octets_in(round_trip));
            }
        }
    }
    longest
}
