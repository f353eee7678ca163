//! The ways between the ranks of a collective, as far as its cost goes by them: on a network where nothing else goes on.

use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Pairing, Ports, Topology};
use roci_units::{BitsPerSec, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A way from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The NICs that it begins and ends at.
    pub(super) nics: [HostId; 2],
    /// What its links are like.
    pub(super) links: Links,
    /// Where it leads to other switches, the first one's links to these.
    pub(super) up: Option<Uplinks>,
}

/// The links of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Links {
    /// How many there are; none from a rank to another of the same host.
    pub(super) count: u32,
    /// Their delays together.
    pub(super) delay: Span,
    /// The rate of the slowest.
    pub(super) rate: BitsPerSec,
}

/// The links that lead from a switch with NICs to other switches, as far as a way goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uplinks {
    /// The switch.
    pub(super) switch: NodeId,
    /// How many NICs at it belong to hosts that send at the same time.
    pub(super) nics: u32,
    /// How many links there are.
    pub(super) count: u32,
    /// The rate of each, on average.
    pub(super) rate: BitsPerSec,
    /// Among how many paths to the other end hashes choose, at this switch and at those after it.
    pub(super) paths: u32,
}

/// Thousandths.
const PARTS: u128 = 1000;
/// Of the natural logarithm of 2.
const LN_2: u128 = 693;

impl Uplinks {
    /// How many of so many flows the busiest link has, in thousandths.
    ///
    /// Of `m` flows for each of `n` links it has `m` + √(2 `m` ln `n`), about, where a hash chooses (Raab and Steger, "Balls into bins", 1998). Where
    /// the switches after the first one choose as well, theirs are as many more as paths fork there, and as full.
    pub(super) fn busiest(self, flows: u64) -> u128 {
        let [count, paths] = [self.count, self.paths].map(|it| u128::from(it.max(1)));
        let flows = u128::from(flows) * PARTS;
        let each = flows / count;
        // To a quarter of a binary logarithm.
        let more = 2 * each * LN_2 * u128::from(paths.saturating_pow(4).ilog2()) / 4;
        (each + more.isqrt()).min(flows.max(flows * paths / count))
    }
}

/// What the cost of collectives goes by: the links of a topology, and how long packets are.
#[derive(Clone, Debug)]
pub struct Network {
    topology: Topology,
    ports: Ports,
    pairing: Option<Pairing>,
    /// How packets are cut.
    pub(super) packets: Packets,
    /// How many NICs at each switch belong to hosts that send.
    sending: BTreeMap<NodeId, u32>,
    /// Of switches how many links to others they have, and their rate together.
    uplinks: BTreeMap<NodeId, (u32, BitsPerSec)>,
    /// Of switches that ways end at how many links each other switch is away.
    away: BTreeMap<NodeId, BTreeMap<NodeId, u32>>,
    /// What lies between the first and the last switch of ways: its links, and how many paths there are.
    between: BTreeMap<[NodeId; 2], Option<(Links, u32)>>,
}

/// How messages are cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The most octets of a message in a packet.
    pub mtu: u16,
    /// Octets around these, on the wire.
    pub around: u32,
    /// Octets that acknowledge each packet on the wire, on average.
    pub acknowledges: u32,
}

impl Packets {
    /// How many packets a message has.
    pub(super) fn count(self, octets: u64) -> u64 {
        octets.div_ceil(self.mtu.max(1).into()).max(1)
    }

    /// Octets on the wire of a message.
    pub(super) fn on_the_wire(self, octets: u64) -> u64 {
        octets + self.count(octets) * u64::from(self.around)
    }
}

impl Network {
    /// That of `topology`, where all hosts send.
    pub fn of(topology: &Topology, packets: Packets) -> Self {
        let topology = topology.clone();
        let hosts: Vec<_> = (0u16..).map(HostId).take(topology.hosts().len()).collect();
        let mut it = Self {
            ports: Ports::of(&topology.graph),
            pairing: Pairing::of(&topology),
            topology,
            packets,
            sending: BTreeMap::new(),
            uplinks: BTreeMap::new(),
            away: BTreeMap::new(),
            between: BTreeMap::new(),
        };
        it.send_from(&hosts);
        it
    }

    /// Has no others than `hosts` send.
    pub fn send_from(&mut self, hosts: &[HostId]) {
        self.sending.clear();
        for host in hosts.iter().collect::<BTreeSet<_>>() {
            for nic in self.topology.homes.nics(*host) {
                if let Some((switch, _)) = self.first_link(nic) {
                    *self.sending.entry(switch).or_default() += 1;
                }
            }
        }
    }

    /// How many NICs a host has.
    pub(super) fn nics_of(&self, host: HostId) -> impl Iterator<Item = HostId> {
        self.topology.homes.nics(host)
    }

    /// The link of a NIC.
    pub(super) fn own(&self, nic: HostId) -> Option<Links> {
        self.first_link(nic).map(|(_, links)| links)
    }

    /// What a NIC is linked to.
    fn first_link(&self, nic: HostId) -> Option<(NodeId, Links)> {
        let port = self.ports.of_node(NodeId(nic.0.into())).first()?;
        Some((port.peer, self.one(port.link)))
    }

    fn one(&self, link: u32) -> Links {
        let link = self.topology.graph.links[link as usize];
        Links { count: 1, delay: link.delay, rate: link.rate }
    }

    /// The way between two hosts, by the NICs that their connections have; `None` where nothing joins them.
    pub(super) fn line(&mut self, hosts: [HostId; 2]) -> Option<Line> {
        let nics = match &mut self.pairing {
            Some(pairing) if hosts[0] != hosts[1] => *pairing.nearest(hosts).first()?,
            _ => hosts,
        };
        let all = Links { count: 0, delay: Span::ZERO, rate: BitsPerSec(u64::MAX) };
        if hosts[0] == hosts[1] {
            return Some(Line { nics, links: all, up: None });
        }
        let ((first, own), (last, other)) = (self.first_link(nics[0])?, self.first_link(nics[1])?);
        if first == NodeId(nics[1].0.into()) {
            return Some(Line { nics, links: own, up: None });
        }
        if first == last {
            return Some(Line { nics, links: own.and(other), up: None });
        }
        let (between, paths) = self.between([first, last])?;
        let up = Some(self.uplinks(first, paths));
        Some(Line { nics, links: own.and(between).and(other), up })
    }

    fn is_switch(&self, node: NodeId) -> bool {
        node.0 as usize >= self.topology.graph.hosts.len()
    }

    /// The links of a shortest path from one switch to another, and how many of these there are.
    fn between(&mut self, [first, last]: [NodeId; 2]) -> Option<(Links, u32)> {
        if !self.is_switch(first) || !self.is_switch(last) {
            return None;
        }
        if let Some(known) = self.between.get(&[first, last]) {
            return *known;
        }
        if !self.away.contains_key(&last) {
            let away = self.distances(last);
            self.away.insert(last, away);
        }
        let away = &self.away[&last];
        let links = away.get(&first).map(|distance| {
            let mut all = Links { count: 0, delay: Span::ZERO, rate: BitsPerSec(u64::MAX) };
            let (mut node, mut paths) = (first, 1u32);
            for left in (0..*distance).rev() {
                let nearer =
                    self.ports.of_node(node).iter().filter(|port| away.get(&port.peer) == Some(&left));
                paths = paths.saturating_mul(u32::try_from(nearer.clone().count()).unwrap_or(u32::MAX));
                let Some(port) = nearer.clone().next() else { break };
                all = all.and(self.one(port.link));
                node = port.peer;
            }
            (all, paths)
        });
        self.between.insert([first, last], links);
        links
    }

    /// How many links each switch is away from one of them, over switches alone.
    fn distances(&self, last: NodeId) -> BTreeMap<NodeId, u32> {
        let mut away = BTreeMap::from([(last, 0)]);
        let mut open = VecDeque::from([last]);
        while let Some(node) = open.pop_front() {
            let next = away[&node] + 1;
            for port in self.ports.of_node(node).iter().filter(|port| self.is_switch(port.peer)) {
                away.entry(port.peer).or_insert_with(|| {
                    open.push_back(port.peer);
                    next
                });
            }
        }
        away
    }

    /// What `switch` has to other switches.
    fn uplinks(&mut self, switch: NodeId, paths: u32) -> Uplinks {
        let (count, all) = *self.uplinks.entry(switch).or_insert_with(|| {
            let nics = self.topology.graph.hosts.len();
            let up = self.ports.of_node(switch).iter().filter(|port| port.peer.0 as usize >= nics);
            up.fold((0, BitsPerSec(0)), |(count, all), port| {
                let rate = self.topology.graph.links[port.link as usize].rate;
                (count + 1, BitsPerSec(all.0.saturating_add(rate.0)))
            })
        });
        Uplinks {
            switch,
            nics: self.sending.get(&switch).copied().unwrap_or(1),
            count,
            rate: BitsPerSec((all.0 / u64::from(count.max(1))).max(1)),
            paths,
        }
    }
}

impl Links {
    /// These and `more` behind them.
    fn and(self, more: Self) -> Self {
        Self {
            count: self.count + more.count,
            delay: self.delay + more.delay,
            rate: self.rate.min(more.rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_fabric::topology::{FatTree, Form, LeafSpine, Rails};

    const PACKETS: Packets = Packets { mtu: 1000, around: 100, acknowledges: 0 };

    /// The ways from the first host to `others`.
    fn told(topology: &Topology, others: &[u16]) -> Vec<Option<Line>> {
        let mut network = Network::of(topology, PACKETS);
        others.iter().map(|to| network.line([HostId(0), HostId(*to)])).collect()
    }

    fn rails(servers: u32, gpus: u32, spines: u32) -> Topology {
        let rails = Rails {
            servers,
            gpus,
            servers_per_leaf: servers,
            spines,
            rate: BitsPerSec::from_gbps(400),
            fabric_rate: None,
            delay: Span::from_micros(1),
            scale_up: Some((BitsPerSec::from_gbps(3600), Span::from_nanos(100))),
        };
        rails.build().unwrap()
    }

    #[test]
    fn ranks_of_a_server_have_its_own_network_and_others_their_rails_or_the_spines() {
        let (rate, fast) = (BitsPerSec::from_gbps(400), BitsPerSec::from_gbps(3600));
        let topology = rails(4, 4, 1);
        let ways = told(&topology, &[1, 4, 5]);
        let links = |count, delay, rate| Links { count, delay, rate };
        let near: Vec<_> = ways[..2].iter().flatten().map(|way| (way.links, way.up)).collect();
        let own = links(2, Span::from_nanos(200), fast);
        assert_eq!(near, [(own, None), (links(2, Span::from_micros(2), rate), None)]);
        let far = ways[2].expect("there is a spine");
        assert_eq!(far.links, links(4, Span::from_micros(4), rate));
        let up = far.up.expect("by way of it");
        assert_eq!((up.nics, up.count, up.rate, up.paths), (4, 1, rate, 1));
        let mut network = Network::of(&topology, PACKETS);
        let nic = |network: &mut Network, to| network.line([HostId(0), HostId(to)]).unwrap().nics[0];
        assert_ne!(nic(&mut network, 1), nic(&mut network, 4));
        // Where two hosts send, no others take of these links.
        network.send_from(&[HostId(0), HostId(5)]);
        assert_eq!(network.line([HostId(0), HostId(5)]).unwrap().up.unwrap().nics, 1);
        assert_eq!(PACKETS.on_the_wire(0), 100);
        assert_eq!(PACKETS.on_the_wire(2001), 2301);
    }

    #[test]
    fn where_nothing_joins_rails_there_is_no_way_to_another() {
        let ways = told(&rails(2, 2, 0), &[2, 3]);
        assert!(ways[0].is_some() && ways[1].is_none());
    }

    #[test]
    fn hashes_choose_among_all_paths_between_two_switches() {
        let rate = BitsPerSec::from_gbps(100);
        let delay = Span::from_micros(1);
        let tree = FatTree { form: Form::Radix(4), rate, fabric_rate: None, core_rate: None, delay }
            .build()
            .unwrap();
        let paths = |line: &Option<Line>| line.and_then(|it| it.up).map(|it| (it.nics, it.count, it.paths));
        let ways = told(&tree, &[1, 2, 4]);
        assert_eq!(ways.iter().map(paths).collect::<Vec<_>>(), [None, Some((2, 2, 2)), Some((2, 2, 4))]);
        let fabric = LeafSpine { leaves: 4, spines: 3, hosts_per_leaf: 6, rate, fabric_rate: None, delay };
        let ways = told(&fabric.build().unwrap(), &[5, 6]);
        assert_eq!(ways.iter().map(paths).collect::<Vec<_>>(), [None, Some((6, 3, 3))]);
    }

    #[test]
    fn the_busiest_of_several_links_has_more_flows_than_each_on_average() {
        let up = |count: u32, paths: u32| Uplinks {
            switch: NodeId(9),
            nics: 4,
            count,
            rate: BitsPerSec::from_gbps(100),
            paths,
        };
        assert_eq!(up(1, 1).busiest(8), 8000);
        // Among as many links as flows there are two or three; among few not more than there are.
        assert!((2000..3000).contains(&up(4, 4).busiest(4)));
        assert_eq!(up(2, 2).busiest(2), 2000);
        // Of many flows nearly as many for each.
        assert!((25_000..33_500).contains(&up(4, 4).busiest(100)));
        assert!((2500..2600).contains(&(up(4, 4).busiest(10_000) / 1000)));
        // Where paths fork again, as many from elsewhere may meet.
        assert!(up(2, 4).busiest(2) > up(2, 2).busiest(2));
        // Of links that no hash chooses among each has its share.
        assert_eq!(up(3, 1).busiest(6), 2000);
    }
}
