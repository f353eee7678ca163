//! Routes: shortest paths over all equal-cost ports, found with two small loads and no search.
//!
//! What is looked up per packet is small, so that thousands of hosts fit the caches: a host is replaced by its
//! *leaf*, the switch that it is attached to, and for each switch and leaf there is a `u16` that names a *group* of
//! ports. Few distinct groups exist (in a fat tree, "all ports up" and each single port), so they stay in the first
//! cache. At the leaf itself the host's own port is taken. Switches that know the same way to all leaves share one
//! *row* of groups: in a fat tree all leaves do, all cores do, and the other switches of one pod, so that 4096 hosts
//! need 18 rows of 512 octets instead of one for each of 768 switches. Where there are more groups than a `u16` has numbers, as in
//! random graphs of some hundred switches, they come in *pages*, and a switch has all of its own in one.

mod weights;

use crate::graph::{Graph, NodeId};
use crate::packet::HostId;
use crate::topology::{Port, Ports, node_index};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use weights::weigh;

/// The answer where no path leads: no node has this many ports.
pub const NO_PORT: u16 = u16::MAX;

/// The rates in kb/s of the ports of switches, each named by its place in the graph.
pub type Rates<'a> = &'a dyn Fn(usize, u16) -> u64;

/// The shortest paths of a graph, as each switch takes them.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Where each host is attached.
    attached: Vec<Attached>,
    /// Where each switch reads.
    switches: Vec<Known>,
    /// Rows: for each leaf the group of ports on shortest paths there.
    rows: Vec<u16>,
    leaves: usize,
    groups: Vec<Group>,
    /// The ports of those groups that are not a run of consecutive ones.
    scattered: Vec<u16>,
}

/// A host's leaf and the leaf's port to it.
#[derive(Clone, Copy, Debug)]
struct Attached {
    leaf: u16,
    port: u16,
}

/// Where a switch finds the groups that it takes.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The place of its row's first group.
    row: u32,
    /// Where the page begins that the row's numbers count from.
    page: u32,
    /// Which leaf it is, or [`NO_LEAF`].
    leaf: u16,
}

/// A switch without hosts: there are at most 65 535 hosts, hence leaves with lower numbers.
const NO_LEAF: u16 = u16::MAX;

/// Equal ports to choose from.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The first port, where they are consecutive.
    first: u16,
    count: u16,
    /// Where they are listed, or [`CONSECUTIVE`].
    list: u32,
}

const CONSECUTIVE: u32 = u32::MAX;

impl Group {
    /// The port at `place`, below `count` or zero.
    #[inline(always)]
    fn port(self, scattered: &[u16], place: u16) -> u16 {
        if self.list == CONSECUTIVE {
            self.first + place
        } else {
            scattered[self.list as usize + place as usize]
        }
    }
}

/// Ports of equal cost to choose from; none where no path leads on. In ascending order, or where they have weights each
/// as often as its weight.
#[derive(Clone, Copy, Debug)]
pub struct EqualPorts<'a> {
    group: Group,
    scattered: &'a [u16],
}

impl EqualPorts<'_> {
    /// How many there are, each as often as its weight.
    pub fn count(self) -> u16 {
        self.group.count
    }

    /// All of them, each as often as its weight.
    pub fn ports(self) -> impl Iterator<Item = u16> {
        (0..self.count()).map(move |place| self.group.port(self.scattered, place))
    }

    /// The one with the least of `load`: among several the one `before`, or else any of them, as `random` says. [`NO_PORT`] where there is
    /// none.
    pub fn least(self, before: Option<u16>, random: u32, mut load: impl FnMut(u16) -> u64) -> u16 {
        let (mut least, mut chosen, mut alike) = (u64::MAX, NO_PORT, 0);
        if let Some(before) = before {
            (least, chosen) = (load(before), before);
        }
        // Most ports of a fabric that is not full are idle, and nothing is less: a few are tried before all are looked at. One after
        // another from a random place on they would not do, for the port behind those that are busy would be chosen for all of these.
        for trial in 0..TRIALS {
            if least == 0 || self.count() == 0 {
                return chosen;
            }
            let port = self.group.port(self.scattered, scale(mix(random, trial), self.count()));
            if load(port) == 0 {
                return port;
            }
        }
        for (place, port) in (0..).zip(self.ports()) {
            let load = load(port);
            if load < least {
                (least, chosen, alike) = (load, port, 1);
            } else if load == least && before != Some(chosen) {
                alike += 1;
                if scale(mix(random, TRIALS + place), alike) == 0 {
                    chosen = port;
                }
            }
        }
        chosen
    }
}

/// How many ports are tried before all are looked at.
const TRIALS: u32 = 4;

/// The group of a leaf that no path leads to, the first of all.
const NOWHERE: u32 = 0;

/// Groups in a page, at most.
const PAGE: usize = 1 << 16;

/// Why routes cannot be laid through a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// A switch has more ports than can be numbered.
    #[error("switch {switch} has {ports} links; at most 65534 can be routed over")]
    TooManyPorts {
        /// The switch, by its place in the list of switches.
        switch: usize,
        /// Its links.
        ports: usize,
    },
}

impl Routes {
    /// The shortest paths, counted in links, through `graph`, which has passed [`check`](crate::topology::check()).
    ///
    /// # Errors
    /// When a switch has more than 65 534 ports.
    pub fn new(graph: &Graph) -> Result<Self, RoutingError> {
        Self::around(graph, |_| false, |_| false, None)
    }

    /// The same where equal ports are chosen by their weights, as `rate` has the ports' rates: it is asked with a switch's place in the
    /// graph and its port.
    ///
    /// # Errors
    /// As [`Routes::new`].
    pub fn weighted(graph: &Graph, rate: Rates<'_>) -> Result<Self, RoutingError> {
        Self::around(graph, |_| false, |_| false, Some(rate))
    }

    /// The shortest paths over links that are not `dead`, which is asked with their places in the graph; but a switch takes none of its own
    /// links that are `shut`, of which the others have not heard. Ports keep their numbers, and hosts their leaves. Where `rates` are
    /// given, equal ports have weights.
    ///
    /// # Errors
    /// As [`Routes::new`].
    pub fn around(
        graph: &Graph,
        dead: impl Fn(u32) -> bool,
        shut: impl Fn(u32) -> bool,
        rates: Option<Rates<'_>>,
    ) -> Result<Self, RoutingError> {
        let ports = Ports::of(graph);
        let hosts = graph.hosts.len();
        let switch_ports = |switch: usize| ports.of_node(NodeId(node_index(hosts + switch)));
        for switch in 0..graph.switches.len() {
            let count = switch_ports(switch).len();
            if count >= usize::from(NO_PORT) {
                return Err(RoutingError::TooManyPorts { switch, ports: count });
            }
        }
        let (attached, leaves) = attach(graph, &ports);
        let mut routes = Self {
            attached,
            switches: vec![Known { row: 0, page: 0, leaf: NO_LEAF }; graph.switches.len()],
            rows: Vec::new(),
            leaves: leaves.len(),
            groups: Vec::new(),
            scattered: Vec::new(),
        };
        let mut sets = Sets::new();
        let mut equal = Vec::new();
        let mut group_of = vec![NOWHERE; graph.switches.len() * leaves.len()];
        // What each switch carries to the leaf, where there are weights.
        let mut carried = vec![u64::MAX; graph.switches.len()];
        for (leaf, &leaf_switch) in leaves.iter().enumerate() {
            routes.switches[leaf_switch].leaf = narrow(leaf);
            carried[leaf_switch] = u64::MAX;
            let (distances, by_distance) =
                distances_to(leaf_switch, graph.switches.len(), hosts, switch_ports, &dead);
            for &switch in &by_distance[1..] {
                let distance = distances[switch];
                let nearer = |port: &Port| {
                    (port.peer.0 as usize)
                        .checked_sub(hosts)
                        .is_some_and(|peer| distances[peer] == distance - 1)
                        && !dead(port.link)
                };
                equal.clear();
                let all = || switch_ports(switch).iter().zip(0u16..).filter(|(port, _)| nearer(port));
                equal.extend(all().filter(|(port, _)| !shut(port.link)).map(|(_, place)| place));
                if let Some(rate) = rates {
                    let capacity =
                        |port: &Port, place| rate(switch, place).min(carried[port.peer.0 as usize - hosts]);
                    let mut capacities = Vec::with_capacity(equal.len());
                    let mut sum = 0u64;
                    for (port, place) in all() {
                        let capacity = capacity(port, place);
                        // What it has shut the others count on.
                        sum = sum.saturating_add(capacity);
                        capacities.extend((!shut(port.link)).then_some(capacity));
                    }
                    carried[switch] = sum;
                    weigh(&mut equal, &capacities);
                }
                group_of[switch * leaves.len() + leaf] = sets.number(&equal);
            }
        }
        routes.share_rows(&mut group_of, &sets);
        routes.groups.shrink_to_fit();
        routes.scattered.shrink_to_fit();
        Ok(routes)
    }

    /// Keeps one row of each kind of `group_of`, which has one for each switch, of numbers in `sets`; and those groups, in pages.
    fn share_rows(&mut self, group_of: &mut [u32], sets: &Sets) {
        let mut kept: BTreeMap<&[u32], (u32, u32)> = BTreeMap::new();
        let mut page = Page::default();
        for (place, row) in group_of.chunks_exact_mut(self.leaves.max(1)).enumerate() {
            // A leaf does not look up itself, and has its neighbour's group there: then all leaves are alike.
            let own = usize::from(self.switches[place].leaf);
            if own < row.len() {
                row[own] = row[(own + 1) % row.len()];
            }
            let row = &*row;
            let (at, begin) = *kept.entry(row).or_insert_with(|| {
                if !page.has_room_for(row) {
                    page = Page { begin: node_index(self.groups.len()), numbers: BTreeMap::new() };
                }
                let at = node_index(self.rows.len());
                for &set in row {
                    let number = *page.numbers.entry(set).or_insert_with(|| {
                        let group = self.group(sets.ports(set));
                        self.groups.push(group);
                        narrow(self.groups.len() - 1 - page.begin as usize)
                    });
                    self.rows.push(number);
                }
                (at, page.begin)
            });
            (self.switches[place].row, self.switches[place].page) = (at, begin);
        }
        self.rows.shrink_to_fit();
    }

    /// The group of these ports.
    fn group(&mut self, ports: &[u16]) -> Group {
        let Some(&first) = ports.first() else {
            return Group { first: NO_PORT, count: 0, list: CONSECUTIVE };
        };
        let consecutive = ports.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let list = if consecutive { CONSECUTIVE } else { node_index(self.scattered.len()) };
        if !consecutive {
            self.scattered.extend_from_slice(ports);
        }
        Group { first, count: narrow(ports.len()), list }
    }

    /// The port by which `switch` (its place in the list of switches) forwards a packet to `destination`: among equal
    /// ones the one that `hash` chooses, each switch differently. The same hash always takes the same path.
    ///
    /// [`NO_PORT`] when no path leads there.
    #[inline]
    pub fn next_port(&self, switch: u32, destination: HostId, hash: u32) -> u16 {
        self.choose(switch, destination, |count| scale(mix(hash, switch), count))
    }

    /// As [`Routes::next_port`], but takes equal ports in turn: `turn` is the switch's count of packets that had a choice, begun anywhere.
    /// Each round of all ports begins with one at random, lest packets of two kinds that come alternately have ports of their own.
    #[inline]
    pub fn port_in_turn(&self, switch: u32, destination: HostId, turn: &mut u32) -> u16 {
        self.choose(switch, destination, |count| {
            *turn = turn.wrapping_add(1);
            let ports = u32::from(count);
            let (round, place) = (*turn / ports, *turn % ports);
            let first = u32::from(scale(mix(round, switch), count));
            narrow(((first + place) % ports) as usize)
        })
    }

    /// The ports of `switch` on shortest paths to `destination`.
    #[inline]
    pub fn equal(&self, switch: u32, destination: HostId) -> EqualPorts<'_> {
        EqualPorts { group: self.group_to(switch, destination), scattered: &self.scattered }
    }

    /// Each set of several ports that `switch` chooses among, once.
    pub fn choices(&self, switch: u32) -> impl Iterator<Item = EqualPorts<'_>> {
        let known = self.switches[switch as usize];
        let mut numbers = self.rows[known.row as usize..][..self.leaves].to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let groups =
            numbers.into_iter().map(move |number| self.groups[known.page as usize + number as usize]);
        groups.filter(|group| group.count > 1).map(|group| EqualPorts { group, scattered: &self.scattered })
    }

    #[inline(always)]
    fn choose(&self, switch: u32, destination: HostId, pick: impl FnOnce(u16) -> u16) -> u16 {
        let group = self.group_to(switch, destination);
        if group.count <= 1 { group.first } else { group.port(&self.scattered, pick(group.count)) }
    }

    #[inline(always)]
    fn group_to(&self, switch: u32, destination: HostId) -> Group {
        let attached = self.attached[destination.0 as usize];
        let known = self.switches[switch as usize];
        if known.leaf == attached.leaf {
            return Group { first: attached.port, count: 1, list: CONSECUTIVE };
        }
        let number = self.rows[known.row as usize + attached.leaf as usize];
        self.groups[known.page as usize + number as usize]
    }

    /// How many switches have hosts.
    pub const fn leaves(&self) -> usize {
        self.leaves
    }

    /// Octets of memory that the tables take.
    pub const fn octets(&self) -> usize {
        self.attached.capacity() * size_of::<Attached>()
            + (self.rows.capacity() + self.scattered.capacity()) * size_of::<u16>()
            + self.switches.capacity() * size_of::<Known>()
            + self.groups.capacity() * size_of::<Group>()
    }
}

/// All sets of equal ports, by their numbers.
struct Sets {
    numbers: BTreeMap<Rc<[u16]>, u32>,
    all: Vec<Rc<[u16]>>,
}

impl Sets {
    /// That of no ports alone, whose number is [`NOWHERE`].
    fn new() -> Self {
        let mut sets = Self { numbers: BTreeMap::new(), all: Vec::new() };
        sets.number(&[]);
        sets
    }

    /// The number of the set of these ports, a new one where it is new.
    fn number(&mut self, ports: &[u16]) -> u32 {
        if let Some(&number) = self.numbers.get(ports) {
            return number;
        }
        let (number, ports): (_, Rc<[u16]>) = (node_index(self.all.len()), ports.into());
        self.all.push(ports.clone());
        self.numbers.insert(ports, number);
        number
    }

    fn ports(&self, number: u32) -> &[u16] {
        &self.all[number as usize]
    }
}

/// Groups that are numbered from the first of them on, by their numbers among all sets.
#[derive(Default)]
struct Page {
    /// Where the first of them lies.
    begin: u32,
    numbers: BTreeMap<u32, u16>,
}

impl Page {
    /// Whether those of a row that it does not have fit; as many as leaves do into an empty one.
    fn has_room_for(&self, row: &[u32]) -> bool {
        self.numbers.len() + row.len() <= PAGE || {
            let new: BTreeSet<_> = row.iter().filter(|set| !self.numbers.contains_key(set)).collect();
            self.numbers.len() + new.len() <= PAGE
        }
    }
}

/// What equal-cost paths are chosen by: 18 bits of a hash of both addresses and the port, over the 14 low bits of
/// `source_port`, in which the ports of RoCEv2 differ (0xC000 to 0xFFFF; IBTA Annex A17.9.2).
pub const fn flow_hash(source: HostId, destination: HostId, source_port: u16) -> u32 {
    let addresses = (source.0 as u32) << 16 | destination.0 as u32;
    let port = (source_port & 0x3fff) as u32;
    mix(addresses, port) & !0x3fff | port
}

/// Mixes `hash` with what tells one switch from another, lest all tiers choose alike. The constants are those of
/// Wellons' 2018 search for mixing functions with little bias.
#[inline]
pub(crate) const fn mix(hash: u32, salt: u32) -> u32 {
    let mut x = hash ^ salt.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

/// A number below `count`, in proportion to where `mixed` lies among all `u32`: no division.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below count, which has 16 bits")]
pub(crate) const fn scale(mixed: u32, count: u16) -> u16 {
    ((mixed as u64 * count as u64) >> 32) as u16
}

/// A port number.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "no switch has more than 65 534 ports")]
const fn narrow(port: usize) -> u16 {
    port as u16
}

/// Where each host is attached, and the switches that have hosts in the order of their first host.
///
/// A host whose link leads to another host has no leaf; no switch is then between them, so none is asked for it.
fn attach(graph: &Graph, ports: &Ports) -> (Vec<Attached>, Vec<usize>) {
    let hosts = graph.hosts.len();
    let mut leaves = Vec::new();
    let mut leaf_of = vec![None; graph.switches.len()];
    let mut attached = vec![Attached { leaf: 0, port: NO_PORT }; hosts];
    for (host, place) in attached.iter_mut().enumerate() {
        let host = NodeId(node_index(host));
        let Some(switch) = ports.of_node(host).first().and_then(|p| (p.peer.0 as usize).checked_sub(hosts))
        else {
            continue;
        };
        let leaf = *leaf_of[switch].get_or_insert_with(|| {
            leaves.push(switch);
            narrow(leaves.len() - 1)
        });
        *place = Attached { leaf, port: NO_PORT };
    }
    // One pass over each leaf's ports; to look for each host's port would take the square of a large star.
    for &switch in &leaves {
        for (index, port) in ports.of_node(NodeId(node_index(hosts + switch))).iter().enumerate() {
            if let Some(place) = attached.get_mut(port.peer.0 as usize) {
                place.port = narrow(index);
            }
        }
    }
    (attached, leaves)
}

const UNSEEN: u32 = u32::MAX;

/// How many links that are not `dead` each switch is away from `leaf`, over switches alone; and those that a path leads from,
/// the nearest first.
fn distances_to<'a>(
    leaf: usize,
    switches: usize,
    hosts: usize,
    ports: impl Fn(usize) -> &'a [Port],
    dead: impl Fn(u32) -> bool,
) -> (Vec<u32>, Vec<usize>) {
    let mut distances = vec![UNSEEN; switches];
    let mut open = Vec::with_capacity(switches);
    distances[leaf] = 0;
    open.push(leaf);
    let mut head = 0;
    while let Some(&switch) = open.get(head) {
        head += 1;
        for port in ports(switch) {
            if let Some(peer) = (port.peer.0 as usize).checked_sub(hosts)
                && distances[peer] == UNSEEN
                && !dead(port.link)
            {
                distances[peer] = distances[switch] + 1;
                open.push(peer);
            }
        }
    }
    (distances, open)
}

#[cfg(test)]
mod tests;
