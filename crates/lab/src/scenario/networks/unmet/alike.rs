//! Pairs of hosts that talk by NICs of the same kind, so that one of them tells of all.

use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Ports, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The hosts of a topology by what their NICs are like.
///
/// Two NICs are alike that the same rules name, with links of one rate to one switch, or each to a switch that leads to no other. So of a pair of hosts
/// nothing counts but what both are like, and which of their NICs are at the same switch of that kind: each other way between them goes by
/// switches that both kinds name.
pub(super) struct Alike {
    /// What each host is like.
    kinds: Vec<u32>,
    /// Of each NIC of each host its switch, if that leads to no other.
    own: Vec<Vec<Option<NodeId>>>,
}

/// What a pair of hosts is like: both, and which of their NICs, by their places, are at one switch that leads to no other.
pub(super) type Kind = ([u32; 2], Vec<[usize; 2]>);

impl Alike {
    /// The hosts of `topology`, with `rules` about its NICs.
    pub(super) fn of(topology: &Topology, rules: &[BTreeSet<u32>]) -> Self {
        let graph = &topology.graph;
        let (ports, rates) = (Ports::of(graph), graph.host_rates());
        let is_switch = |node: NodeId| node.0 as usize >= graph.hosts.len();
        let mut leads = BTreeMap::new();
        let mut leads_on = |switch: NodeId| {
            *leads
                .entry(switch)
                .or_insert_with(|| ports.of_node(switch).iter().any(|port| is_switch(port.peer)))
        };
        let mut known = BTreeMap::new();
        let (mut kinds, mut own) = (Vec::new(), Vec::new());
        for host in (0u16..).map(HostId).take(topology.hosts().len()) {
            let nics = topology.homes.nics(host).map(|nic| {
                let switch = ports.of_node(NodeId(nic.0.into())).first().map(|port| port.peer);
                let named = (0..).zip(rules).filter(|(_, rule)| rule.contains(&nic.0.into()));
                let named: Vec<u32> = named.map(|(place, _)| place).collect();
                let alone = switch.filter(|switch| is_switch(*switch) && !leads_on(*switch));
                ((switch.filter(|_| alone.is_none()), rates[usize::from(nic.0)], named), alone)
            });
            let (like, alone): (Vec<_>, Vec<_>) = nics.unzip();
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            kinds.push(*known.entry(like).or_insert(next));
            own.push(alone);
        }
        Self { kinds, own }
    }

    /// What a pair of hosts is like.
    pub(super) fn kind(&self, hosts: [HostId; 2]) -> Kind {
        let [one, other] = hosts.map(|host| usize::from(host.0));
        let switches =
            self.own[one].iter().enumerate().filter_map(|(place, switch)| Some((place, (*switch)?)));
        let together = switches.flat_map(|(place, switch)| {
            let at = self.own[other].iter().enumerate().filter(move |(_, other)| **other == Some(switch));
            at.map(move |(other, _)| [place, other])
        });
        ([self.kinds[one], self.kinds[other]], together.collect())
    }

    /// Pairs of all hosts, so that each is like one of them: each two of few hosts; of many, some of each two kinds, in the same place and apart.
    /// `None` where there are more than `most`.
    pub(super) fn each_two(&self, most: usize) -> Option<Vec<[HostId; 2]>> {
        let all = || (0u16..).map(HostId).take(self.kinds.len());
        if self.kinds.len().pow(2) <= most {
            return Some(all().flat_map(|a| all().filter(move |b| *b != a).map(move |b| [a, b])).collect());
        }
        let mut places: BTreeMap<Option<NodeId>, BTreeMap<u32, Vec<HostId>>> = BTreeMap::new();
        for host in all() {
            let at = usize::from(host.0);
            for place in self.own[at].iter().flatten().map(|switch| Some(*switch)).chain([None]) {
                places.entry(place).or_default().entry(self.kinds[at]).or_default().push(host);
            }
        }
        let mut pairs = BTreeMap::new();
        for kinds in places.values() {
            // Of each kind the first, the last and one between.
            let few = |of: &Vec<HostId>| BTreeSet::from([of[0], of[of.len() / 2], of[of.len() - 1]]);
            let few: Vec<HostId> = kinds.values().flat_map(few).collect();
            for (a, b) in few.iter().flat_map(|a| few.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
                pairs.entry(self.kind([a, b])).or_insert([a, b]);
                if pairs.len() > most {
                    return None;
                }
            }
        }
        Some(pairs.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_fabric::topology::Rails;
    use roci_units::{BitsPerSec, Span};

    fn rails(servers: u32, spines: u32) -> Topology {
        let rails = Rails {
            servers,
            gpus: 4,
            servers_per_leaf: servers / 2,
            spines,
            rate: BitsPerSec::from_gbps(400),
            fabric_rate: None,
            delay: Span::from_micros(1),
            scale_up: Some((BitsPerSec::from_gbps(3600), Span::from_nanos(100))),
        };
        rails.build().unwrap()
    }

    #[test]
    fn each_pair_of_many_hosts_is_like_one_of_few() {
        for topology in [rails(128, 2), rails(128, 0)] {
            let one: BTreeSet<u32> = [3, 17, 400].into();
            let alike = Alike::of(&topology, &[one]);
            let few: BTreeSet<Kind> =
                alike.each_two(1 << 14).expect("few").into_iter().map(|pair| alike.kind(pair)).collect();
            let hosts = || (0u16..512).map(HostId);
            let all: BTreeSet<Kind> = hosts()
                .flat_map(|a| hosts().filter(move |b| *b != a).map(move |b| [a, b]))
                .map(|pair| alike.kind(pair))
                .collect();
            assert_eq!(few, all);
            assert!(all.len() < 512, "{}", all.len());
        }
    }
}
