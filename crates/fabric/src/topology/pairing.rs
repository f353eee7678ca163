//! By which of their NICs two hosts talk, where they have several.

use super::homes::Homes;
use super::ports::Ports;
use super::{Topology, node_index};
use crate::graph::NodeId;
use crate::packet::HostId;
use roci_units::BitsPerSec;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Chooses the NICs of connections: of all pairs with the fewest links between them, and of these with the fastest slower end, that whose
/// two NICs have the fewest connections of the same direction, for what is sent and what comes take nothing from each other.
///
/// So two GPUs of a server talk over its own switch, though the ToR that both are linked to is as near.
#[derive(Clone, Debug)]
pub struct Pairing {
    homes: Homes,
    /// How many NICs there are.
    nics: usize,
    ports: Ports,
    rates: Vec<BitsPerSec>,
    /// How many links each switch is away from those that were asked for, over switches alone; what no path leads to is left out.
    away: BTreeMap<u32, BTreeMap<u32, u32>>,
    /// How many connections each NIC has been chosen for, of those that begin there and of those that end there.
    chosen: [Vec<u64>; 2],
}

impl Pairing {
    /// Of the hosts of `topology`; `None` where each has one NIC.
    pub fn of(topology: &Topology) -> Option<Self> {
        let nics = topology.graph.hosts.len();
        (!topology.homes.is_none()).then(|| Self {
            homes: topology.homes.clone(),
            nics,
            ports: Ports::of(&topology.graph),
            rates: topology.graph.host_rates(),
            away: BTreeMap::new(),
            chosen: [vec![0; nics], vec![0; nics]],
        })
    }

    /// The NICs of a connection from the first to the second of `hosts`; each that is asked for counts from then on.
    pub fn choose(&mut self, hosts: [HostId; 2]) -> [HostId; 2] {
        let nearest = self.nearest(hosts);
        let connections = |&[from, to]: &[HostId; 2]| self.of_end(0, from) + self.of_end(1, to);
        let least = nearest.into_iter().min_by_key(connections).unwrap_or(hosts);
        for (chosen, nic) in self.chosen.iter_mut().zip(least) {
            chosen[usize::from(nic.0)] += 1;
        }
        least
    }

    /// How many connections have `nic` at this `end`.
    fn of_end(&self, end: usize, nic: HostId) -> u64 {
        self.chosen[end][usize::from(nic.0)]
    }

    /// All pairs of NICs of `hosts` with the fewest links between them, and of these with the fastest slower end: those that
    /// [`Pairing::choose`] chooses from.
    pub fn nearest(&mut self, hosts: [HostId; 2]) -> Vec<[HostId; 2]> {
        let [from, to] = hosts.map(|host| self.homes.nics(host).collect::<Vec<_>>());
        let mut nearest = (Reverse(u32::MAX), BitsPerSec(0));
        let mut pairs = Vec::new();
        for (a, b) in from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b))) {
            let Some(links) = self.distance(a, b) else { continue };
            let rate = |nic: HostId| self.rates[usize::from(nic.0)];
            let this = (Reverse(links), rate(a).min(rate(b)));
            if this > nearest {
                nearest = this;
                pairs.clear();
            }
            if this == nearest {
                pairs.push([a, b]);
            }
        }
        pairs
    }

    /// How many links lie between the nodes that two NICs are linked to, or less where these are linked to one another.
    fn distance(&mut self, a: HostId, b: HostId) -> Option<u32> {
        let [at_a, at_b] = [a, b].map(|nic| self.peer(NodeId(nic.0.into())));
        if at_a == NodeId(b.0.into()) {
            return Some(0);
        }
        if [at_a, at_b].iter().any(|node| (node.0 as usize) < self.nics) {
            return None;
        }
        if !self.away.contains_key(&at_b.0) {
            let away = self.distances(at_b);
            self.away.insert(at_b.0, away);
        }
        self.away[&at_b.0].get(&at_a.0).map(|links| links + 1)
    }

    fn peer(&self, nic: NodeId) -> NodeId {
        self.ports.of_node(nic)[0].peer
    }

    fn distances(&self, to: NodeId) -> BTreeMap<u32, u32> {
        let mut away = BTreeMap::from([(to.0, 0)]);
        let mut open = vec![to];
        let mut head = 0;
        while let Some(&node) = open.get(head) {
            head += 1;
            let links = away[&node.0] + 1;
            for port in self.ports.of_node(node).iter().filter(|port| port.peer.0 >= node_index(self.nics)) {
                away.entry(port.peer.0).or_insert_with(|| {
                    open.push(port.peer);
                    links
                });
            }
        }
        away
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Explicit, NamedLink, Rails};
    use roci_units::{BitsPerSec, Span};

    fn rails(scale_up: bool) -> Topology {
        let (fast, delay) = (BitsPerSec::from_gbps(3600), Span::from_nanos(100));
        let rate = BitsPerSec::from_gbps(400);
        let rails = Rails {
            servers: 6,
            gpus: 4,
            servers_per_leaf: 4,
            spines: 2,
            rate,
            fabric_rate: None,
            delay: Span::from_micros(1),
            scale_up: scale_up.then_some((fast, delay)),
        };
        rails.build().unwrap()
    }

    #[test]
    fn where_each_host_has_one_nic_there_is_nothing_to_choose() {
        assert!(Pairing::of(&rails(false)).is_none());
    }

    #[test]
    fn two_gpus_of_a_server_talk_within_it_and_others_over_their_rails() {
        let topology = rails(true);
        let mut pairing = Pairing::of(&topology).unwrap();
        let mut names = |a, b| {
            pairing
                .choose([HostId(a), HostId(b)])
                .map(|nic| topology.graph.hosts[usize::from(nic.0)].as_str())
        };
        assert_eq!(names(0, 3), ["h0.1", "h3.1"]);
        assert_eq!(names(0, 4), ["h0.0", "h4.0"], "the same place in the next server");
        assert_eq!(names(0, 5), ["h0.0", "h5.0"], "another one");
        assert_eq!(names(0, 20), ["h0.0", "h20.0"], "behind other leaves");
    }

    #[test]
    fn of_two_ways_of_one_length_the_faster_is_taken() {
        let hosts = ["a", "b", "c"].map(str::to_owned).to_vec();
        let link = |(host, switch, gbps): (&str, &str, u64)| NamedLink {
            a: host.to_owned(),
            b: switch.to_owned(),
            rate: BitsPerSec::from_gbps(gbps),
            delay: Span::from_micros(1),
        };
        let links =
            [("a", "tor", 400), ("a", "nv", 3600), ("b", "nv", 3600), ("b", "tor", 400), ("c", "tor", 400)];
        let switches = vec!["tor".to_owned(), "nv".to_owned()];
        let topology = Explicit { hosts, switches, links: links.map(link).to_vec() }.build().unwrap();
        let mut pairing = Pairing::of(&topology).unwrap();
        let mut names = |a, b| {
            pairing
                .choose([HostId(a), HostId(b)])
                .map(|nic| topology.graph.hosts[usize::from(nic.0)].as_str())
        };
        assert_eq!([names(0, 1), names(0, 1)], [["a.1", "b.0"]; 2]);
        assert_eq!(names(0, 2), ["a.0", "c"]);
    }

    #[test]
    fn connections_are_spread_over_nics_at_both_ends_and_in_both_directions() {
        let hosts = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let link = |host: &String, switch: &str| NamedLink {
            a: host.clone(),
            b: switch.to_owned(),
            rate: BitsPerSec::from_gbps(100),
            delay: Span::from_micros(1),
        };
        let links = hosts.iter().flat_map(|host| ["s", "t"].map(|switch| link(host, switch))).collect();
        let switches = vec!["s".to_owned(), "t".to_owned()];
        let topology = Explicit { hosts, switches, links }.build().unwrap();
        let mut pairing = Pairing::of(&topology).unwrap();
        let mut taken = [[0; 8]; 2];
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            for _ in 0..2 {
                let [from, to] = pairing.choose([HostId(a), HostId(b)]);
                assert_eq!([from, to].map(|nic| topology.homes.host(nic)), [HostId(a), HostId(b)]);
                // No link joins the switches.
                assert_eq!(from.0 < 4, to.0 < 4);
                taken[0][usize::from(from.0)] += 1;
                taken[1][usize::from(to.0)] += 1;
            }
        }
        assert_eq!(taken, [[3; 8]; 2]);
    }
}
