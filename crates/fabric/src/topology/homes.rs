//! Hosts with several links, each of which has a NIC at each of them.
//!
//! A [`Graph`] knows NICs alone: what it calls a host has one link. Where hosts have several, their first NICs come first in it, in
//! the order of hosts, and the others after all of these; so a host and its first NIC have the same number.

use super::check::{NICS_MAX, check_hosts, check_links, check_names, counts, host_count};
use super::ports::Ports;
use super::{Pairing, Topology, TopologyError, check, node_index};
use crate::graph::{Graph, Link, NodeId};
use crate::packet::HostId;
use roci_units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};

/// Which NICs belong to one host; of a network where each has one, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// The names of the hosts.
    names: Vec<String>,
    /// Where the other NICs of each host begin among all that are no host's first, and at the end how many these are.
    starts: Vec<u16>,
    /// The hosts of these others, in the order of their numbers.
    of_others: Vec<HostId>,
}

impl Homes {
    /// Whether each host has one NIC.
    pub const fn is_none(&self) -> bool {
        self.of_others.is_empty()
    }

    /// The NICs of `host`, in the order of its links.
    pub fn nics(&self, host: HostId) -> impl Iterator<Item = HostId> {
        let place = usize::from(host.0);
        let others = match self.starts.get(place..place + 2) {
            Some(&[start, end]) => narrow(self.names.len()) + start..narrow(self.names.len()) + end,
            _ => 0..0,
        };
        std::iter::once(host).chain(others.map(HostId))
    }

    /// The host that `nic` belongs to.
    pub fn host(&self, nic: HostId) -> HostId {
        let other = usize::from(nic.0).checked_sub(self.names.len());
        other.and_then(|place| self.of_others.get(place)).copied().unwrap_or(nic)
    }
}

/// Of each host the parts of the network that its NICs are in, where nothing joins NICs of one host.
#[derive(Clone, Debug)]
pub struct Islands {
    of_hosts: Vec<BTreeSet<u32>>,
}

impl Islands {
    /// Whether some NIC of the one of `hosts` reaches some of the other.
    pub fn join(&self, hosts: [HostId; 2]) -> bool {
        let [one, other] = hosts.map(|host| &self.of_hosts[usize::from(host.0)]);
        !one.is_disjoint(other)
    }

    /// The first two hosts that it does not join, if there are such.
    pub fn apart(&self) -> Option<[HostId; 2]> {
        // In most networks there is a part that all are in, and hosts are in the same parts as many others.
        let mut known: BTreeMap<&BTreeSet<u32>, HostId> = BTreeMap::new();
        for (number, of_host) in (0u16..).zip(&self.of_hosts) {
            known.entry(of_host).or_insert(HostId(number));
        }
        let mut everywhere = known.keys().next().copied().cloned().unwrap_or_default();
        everywhere.retain(|island| known.keys().all(|of_host| of_host.contains(island)));
        if !everywhere.is_empty() {
            return None;
        }
        let ends = |(one, from): (&&BTreeSet<u32>, &HostId)| {
            let others = known.iter().filter(|(other, _)| one.is_disjoint(other));
            let to = others.map(|(_, to)| to.0).min()?;
            Some([from.0.min(to), from.0.max(to)])
        };
        known.iter().filter_map(ends).min().map(|ends| ends.map(HostId))
    }
}

impl Topology {
    /// The network of `graph`, in which hosts may have several links; there the NICs of host `h0` are called `h0.0`, `h0.1`, … in the
    /// order of its links.
    ///
    /// # Errors
    /// What [`check`](super::check()) refuses, but of hosts with several NICs that two are not joined by any of these:
    /// [`Topology::islands_of_hosts`] tells.
    pub fn of(graph: Graph) -> Result<Self, TopologyError> {
        counts(&graph)?;
        check_names(&graph)?;
        check_links(&graph)?;
        let ports = Ports::of(&graph);
        let links = |host: usize| ports.of_node(NodeId(node_index(host))).len();
        let hosts = graph.hosts.len();
        if (0..hosts).all(|host| links(host) <= 1) {
            check(&graph)?;
            return Ok(Self { graph, ..Self::default() });
        }
        if let Some(host) = (0..hosts).find(|host| links(*host) > NICS_MAX) {
            return Err(TopologyError::TooManyNics { host: graph.hosts[host].clone(), links: links(host) });
        }
        let nics = host_count((0..hosts).map(|host| links(host).max(1) as u64).sum())?;
        let mut homes = Homes { names: graph.hosts.clone(), ..Homes::default() };
        let mut names = graph.hosts;
        for (number, host) in (0u16..).zip(0..hosts) {
            homes.starts.push(narrow(homes.of_others.len()));
            if links(host) > 1 {
                names[host] = format!("{}.0", homes.names[host]);
            }
            for link in 1..links(host) {
                homes.of_others.push(HostId(number));
                names.push(format!("{}.{link}", homes.names[host]));
            }
        }
        homes.starts.push(narrow(homes.of_others.len()));
        let mut taken = vec![0usize; hosts];
        let mut place = |node: NodeId| {
            let Some(taken) = taken.get_mut(node.0 as usize) else {
                return NodeId(node.0 + nics - node_index(hosts));
            };
            *taken += 1;
            let host = HostId(narrow(node.0 as usize));
            NodeId(homes.nics(host).nth(*taken - 1).unwrap_or(host).0.into())
        };
        let moved = |link: Link| Link { a: place(link.a), b: place(link.b), ..link };
        let links = graph.links.into_iter().map(moved).collect();
        let graph = Graph { hosts: names, switches: graph.switches, links };
        check_names(&graph)?;
        let ports = Ports::of(&graph);
        check_hosts(&graph, &ports)?;
        Ok(Self { graph, homes, ..Self::default() })
    }

    /// The names of the hosts, in their order; [`Graph::hosts`] has those of NICs where hosts have several.
    pub fn hosts(&self) -> &[String] {
        if self.homes.is_none() { &self.graph.hosts } else { &self.homes.names }
    }

    /// What each host can send: of one with several NICs, those that reach the most others together, as far as connections are made by
    /// them. So links within a server, be they ever so fast, are no part of what its hosts send into the network.
    pub fn capacities(&self) -> Vec<BitsPerSec> {
        let rates = self.graph.host_rates();
        if self.homes.is_none() {
            return rates;
        }
        let islands = self.islands();
        let mut sizes = vec![0u32; islands.iter().max().map_or(0, |last| *last as usize + 1)];
        for nic in 0..self.graph.hosts.len() {
            sizes[islands[nic] as usize] += 1;
        }
        let reach = |nic: HostId| sizes[islands[usize::from(nic.0)] as usize];
        let mut pairing = Pairing::of(self);
        let hosts = self.hosts().len();
        let mut of_host = |host: HostId| {
            let most = self.homes.nics(host).map(reach).max();
            let mut widest: Vec<HostId> =
                self.homes.nics(host).filter(|nic| Some(reach(*nic)) == most).collect();
            if let (Some(pairing), 2..) = (&mut pairing, widest.len()) {
                let others =
                    (0u16..).take(hosts).step_by(hosts.div_ceil(ASKED)).filter(|other| *other != host.0);
                let pairs = others.flat_map(|other| pairing.nearest([host, HostId(other)]));
                let used: BTreeSet<u16> = pairs.map(|[nic, _]| nic.0).collect();
                widest.retain(|nic| used.contains(&nic.0));
            }
            BitsPerSec(widest.into_iter().map(|nic| rates[usize::from(nic.0)].0).sum())
        };
        (0u16..).take(hosts).map(|host| of_host(HostId(host))).collect()
    }

    /// For each node the number of the part of the network that it is in, where nothing joins NICs of one host.
    pub fn islands(&self) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        let ports = Ports::of(&self.graph);
        let mut islands = vec![NONE; self.graph.hosts.len() + self.graph.switches.len()];
        let mut count = 0;
        for start in 0..islands.len() {
            if islands[start] != NONE {
                continue;
            }
            islands[start] = count;
            let mut open = vec![NodeId(node_index(start))];
            while let Some(node) = open.pop() {
                for port in ports.of_node(node) {
                    let island = &mut islands[port.peer.0 as usize];
                    if *island == NONE {
                        *island = count;
                        open.push(port.peer);
                    }
                }
            }
            count += 1;
        }
        islands
    }

    /// Which hosts are joined by some of their NICs.
    pub fn islands_of_hosts(&self) -> Islands {
        let islands = self.islands();
        let of_host =
            |host: u16| self.homes.nics(HostId(host)).map(|nic| islands[usize::from(nic.0)]).collect();
        Islands { of_hosts: (0u16..).take(self.hosts().len()).map(of_host).collect() }
    }
}

/// So many others are looked at, that lie evenly among all, to see by which of its NICs a host talks to them.
const ASKED: usize = 64;

#[expect(clippy::cast_possible_truncation, reason = "numbers of hosts and NICs have 16 bits")]
const fn narrow(place: usize) -> u16 {
    place as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Explicit, NamedLink};
    use roci_units::Span;

    fn network(pairs: &[(&str, &str)]) -> Result<Topology, TopologyError> {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let link = |&(a, b): &(&str, &str)| NamedLink {
            a: a.into(),
            b: b.into(),
            rate: BitsPerSec::from_gbps(if b == "fast" { 800 } else { 100 }),
            delay: Span::from_micros(1),
        };
        let links = pairs.iter().map(link).collect();
        Explicit { hosts: named(&["a", "b", "c"]), switches: named(&["s", "t", "fast"]), links }.build()
    }

    #[test]
    fn a_host_has_a_nic_at_each_of_its_links_and_the_number_of_its_first() {
        let pairs = [("a", "s"), ("a", "t"), ("b", "t"), ("c", "s"), ("s", "t"), ("c", "t"), ("c", "t")];
        let topology = network(&pairs).unwrap();
        assert_eq!(topology.hosts(), ["a", "b", "c"]);
        assert_eq!(topology.graph.hosts, ["a.0", "b", "c.0", "a.1", "c.1", "c.2"]);
        let ends: Vec<_> = topology.graph.links.iter().map(|link| (link.a.0, link.b.0)).collect();
        assert_eq!(ends, [(0, 6), (3, 7), (1, 7), (2, 6), (6, 7), (4, 7), (5, 7)]);
        let homes = &topology.homes;
        let nics = |host| homes.nics(HostId(host)).map(|nic| nic.0).collect::<Vec<_>>();
        assert_eq!((nics(0), nics(1), nics(2)), (vec![0, 3], vec![1], vec![2, 4, 5]));
        let hosts: Vec<u16> = (0..6).map(|nic| homes.host(HostId(nic)).0).collect();
        assert_eq!(hosts, [0, 1, 2, 0, 2, 2]);
    }

    #[test]
    fn hosts_reach_one_another_by_some_nic_or_are_apart() {
        // A ring of three islands: each two hosts share one, and there is none that all are in.
        let ring = [("a", "s"), ("b", "s"), ("b", "t"), ("c", "t"), ("c", "fast"), ("a", "fast")];
        assert_eq!(network(&ring).unwrap().islands_of_hosts().apart(), None);
        let apart = network(&[("a", "s"), ("b", "s"), ("b", "t"), ("c", "t"), ("a", "fast")]).unwrap();
        let islands = apart.islands_of_hosts();
        assert_eq!(islands.apart(), Some([HostId(0), HostId(2)]));
        let joined = [(0, 1), (1, 2), (0, 2)].map(|(a, b)| islands.join([HostId(a), HostId(b)]));
        assert_eq!(joined, [true, true, false]);
    }

    #[test]
    fn what_hosts_send_into_the_network_counts_the_nics_that_reach_most() {
        let gbps = BitsPerSec::from_gbps;
        let within = [("a", "s"), ("b", "s"), ("c", "s"), ("a", "fast"), ("b", "fast")];
        assert_eq!(network(&within).unwrap().capacities(), [gbps(100); 3]);
        // Both switches reach all, and nobody takes the slower one.
        let alike = [("a", "s"), ("b", "s"), ("c", "s"), ("a", "fast"), ("b", "fast"), ("c", "fast")];
        assert_eq!(network(&alike).unwrap().capacities(), [gbps(800); 3]);
        let twice = [("a", "s"), ("a", "t"), ("b", "s"), ("b", "t"), ("c", "s"), ("s", "t")];
        assert_eq!(network(&twice).unwrap().capacities(), [gbps(200), gbps(200), gbps(100)]);
    }
}
