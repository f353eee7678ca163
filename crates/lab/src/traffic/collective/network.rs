//! The ways between the ranks of a collective, as far as its cost goes by them: on a network where nothing else goes on.

use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_fabric::topology::{Pairing, Port, Ports, Topology};
use roci_units::{BitsPerSec, Span};
use std::collections::{BTreeMap, VecDeque};

/// A way from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The NIC that it begins at.
    pub(super) nic: HostId,
    /// The delays of its links.
    pub(super) delay: Span,
    /// How many these are.
    pub(super) links: u32,
    /// The rate of the slowest.
    pub(super) rate: BitsPerSec,
    /// That, or less where the way leads to other switches: the first one may have less to these for each of its NICs, and where it chooses among
    /// several links by a hash, two of few flows meet on one.
    pub(super) share: BitsPerSec,
}

/// The ways of a collective; of a pair that nothing joins there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// To the next rank of the same server.
    pub(super) within: Option<Line>,
    /// To the same place in the next server.
    pub(super) next: Option<Line>,
    /// To the same place in a server that is far.
    pub(super) along: Option<Line>,
    /// To another place there.
    pub(super) across: Option<Line>,
    /// To the ranks 1, 2, 4 and so on.
    pub(super) doubled: Vec<Option<Line>>,
}

/// What the cost of collectives goes by: the links of a topology, and how long packets are.
#[derive(Clone, Debug)]
pub struct Network {
    topology: Topology,
    ports: Ports,
    pairing: Option<Pairing>,
    /// How packets are cut.
    pub(super) packets: Packets,
}

/// How messages are cut into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// The most octets of a message in a packet.
    pub mtu: u16,
    /// Octets around these, on the wire.
    pub around: u32,
}

impl Packets {
    /// Octets on the wire of a message.
    pub(super) fn on_the_wire(self, octets: u64) -> u64 {
        octets + octets.div_ceil(self.mtu.max(1).into()).max(1) * u64::from(self.around)
    }
}

impl Network {
    /// That of `topology`.
    pub fn of(topology: &Topology, packets: Packets) -> Self {
        let topology = topology.clone();
        Self { ports: Ports::of(&topology.graph), pairing: Pairing::of(&topology), topology, packets }
    }

    /// The ways between ranks at `hosts`, of which so many in a row share a server; `listed` tells whether they stand in this order.
    pub(super) fn lines(&mut self, hosts: &[HostId], per_server: u32, listed: bool) -> Lines {
        let per_server = (per_server as usize).clamp(1, hosts.len());
        let servers = hosts.len() / per_server;
        let mut line = |to: usize| self.line([hosts[0], *hosts.get(to).filter(|_| to > 0)?]);
        let far = servers / 2 * per_server;
        let along = line(far);
        let doubled = std::iter::successors(Some(1), |to| Some(2 * to)).take_while(|to| *to < hosts.len());
        Lines {
            within: if per_server > 1 { line(1) } else { None },
            next: if listed { line(if servers > 1 { per_server } else { 0 }) } else { along },
            along,
            across: if far > 0 && per_server > 1 { line(far + 1) } else { along },
            doubled: doubled.map(&mut line).collect(),
        }
    }

    /// The way between two hosts, by the NICs that their connections have.
    fn line(&mut self, hosts: [HostId; 2]) -> Option<Line> {
        let [from, to] = match &mut self.pairing {
            Some(pairing) => *pairing.nearest(hosts).first()?,
            None => hosts,
        };
        let [start, end] = [from, to].map(|nic| NodeId(nic.0.into()));
        let nics = self.topology.graph.hosts.len();
        // Of each node that has been found the one before it, and the link from there.
        let mut before = BTreeMap::from([(start.0, (start, 0))]);
        let mut open = VecDeque::from([start]);
        while let Some(node) = open.pop_front().filter(|_| !before.contains_key(&end.0)) {
            for port in self.ports.of_node(node) {
                if before.contains_key(&port.peer.0) {
                    continue;
                }
                before.insert(port.peer.0, (node, port.link));
                if port.peer.0 as usize >= nics {
                    open.push_back(port.peer);
                }
            }
        }
        let mut line =
            Line { nic: from, delay: Span::ZERO, links: 0, rate: BitsPerSec(u64::MAX), share: BitsPerSec(0) };
        let (mut node, mut first) = (end, end);
        while node != start {
            first = node;
            let (back, link) = *before.get(&node.0)?;
            let link = self.topology.graph.links[link as usize];
            line.delay += link.delay;
            line.rate = line.rate.min(link.rate);
            line.links += 1;
            node = back;
        }
        line.share = if line.links > 2 { line.rate.min(self.uplinks(first)) } else { line.rate };
        Some(line)
    }

    /// What a switch has to other switches for each NIC at it, and half of that where flows choose among several.
    fn uplinks(&self, switch: NodeId) -> BitsPerSec {
        let nics = self.topology.graph.hosts.len();
        let (down, up): (Vec<&Port>, Vec<&Port>) =
            self.ports.of_node(switch).iter().partition(|port| (port.peer.0 as usize) < nics);
        let rate = up.iter().map(|port| self.topology.graph.links[port.link as usize].rate.0);
        let all = rate.fold(0, u64::saturating_add);
        let each = all / down.len().max(1) as u64;
        BitsPerSec((if up.len() > 1 { each / 2 } else { each }).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_fabric::topology::{LeafSpine, Rails};

    const PACKETS: Packets = Packets { mtu: 1000, around: 100 };

    fn hosts(count: u16) -> Vec<HostId> {
        (0..count).map(HostId).collect()
    }

    #[test]
    fn ranks_of_a_server_have_its_own_network_and_others_their_rails_or_the_spines() {
        let (rate, up) = (BitsPerSec::from_gbps(400), BitsPerSec::from_gbps(3600));
        let rails = Rails {
            servers: 4,
            gpus: 4,
            servers_per_leaf: 4,
            spines: 1,
            rate,
            fabric_rate: None,
            delay: Span::from_micros(1),
            scale_up: Some((up, Span::from_nanos(100))),
        };
        let mut network = Network::of(&rails.build().unwrap(), PACKETS);
        let lines = network.lines(&hosts(16), 4, true);
        let told = |line: Option<Line>| line.map(|it| (it.links, it.delay, it.rate, it.share));
        assert_eq!(told(lines.within), Some((2, Span::from_nanos(200), up, up)));
        assert_eq!(told(lines.next), Some((2, Span::from_micros(2), rate, rate)));
        assert_eq!(told(lines.along), told(lines.next));
        // Four NICs of a leaf share one link to the spine.
        let share = BitsPerSec::from_gbps(100);
        assert_eq!(told(lines.across), Some((4, Span::from_micros(4), rate, share)));
        let doubled: Vec<_> = lines.doubled.iter().map(|line| line.map(|it| it.links)).collect();
        assert_eq!(doubled, [Some(2); 4]);
        assert_ne!(lines.within.unwrap().nic, lines.next.unwrap().nic);
        assert_eq!(PACKETS.on_the_wire(0), 100);
        assert_eq!(PACKETS.on_the_wire(2001), 2301);
    }

    #[test]
    fn where_nothing_joins_rails_there_is_no_way_to_another() {
        let rails = Rails {
            servers: 2,
            gpus: 2,
            servers_per_leaf: 2,
            spines: 0,
            rate: BitsPerSec::from_gbps(400),
            fabric_rate: None,
            delay: Span::from_micros(1),
            scale_up: Some((BitsPerSec::from_gbps(3600), Span::from_nanos(100))),
        };
        let lines = Network::of(&rails.build().unwrap(), PACKETS).lines(&hosts(4), 2, true);
        assert!(lines.along.is_some() && lines.across.is_none());
    }

    #[test]
    fn neighbours_share_a_leaf_unless_ranks_are_dealt_at_random() {
        let rate = BitsPerSec::from_gbps(100);
        let fabric = LeafSpine {
            leaves: 4,
            spines: 1,
            hosts_per_leaf: 4,
            rate,
            fabric_rate: None,
            delay: Span::from_micros(1),
        };
        let mut network = Network::of(&fabric.build().unwrap(), PACKETS);
        let [listed, dealt] =
            [true, false].map(|listed| network.lines(&hosts(16), 1, listed).next.map(|it| it.links));
        assert_eq!((listed, dealt), (Some(2), Some(4)));
    }
}
