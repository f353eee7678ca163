//! How far apart the hosts of a network are: the nearest two, the farthest two, and the most switches between any.

use super::source::{Origin, ScenarioError, Source};
use super::{Faults, Transport};
use crate::traffic::{ControlIndex, Networks};
use roci_fabric::graph::{Graph, Link, NodeId};
use roci_fabric::packet::HostId;
use roci_fabric::topology::ports::Ports;
use roci_fabric::topology::{Pairing, Topology};
use roci_transport::Recovery;
use roci_transport::delivery::irn::{FEW_IN_FLIGHT, timeout_of_few};
use roci_units::{BitsPerSec, Span};
use roci_wire::ethernet::{MIN_FRAME, WIRE_OVERHEAD};
use roci_wire::{IpVersion, Layout, Opcode, frame_len};
use std::collections::BTreeMap;
use std::fmt;

/// Two hosts, or NICs where hosts have several, and how long something takes from one to the other and back over idle links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    hosts: [usize; 2],
    time: Span,
}

/// What a flow alone has in flight between the farthest two hosts, at the rate of their links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    /// Full packets, rounded up.
    pub(super) packets: u64,
    hosts: [String; 2],
    pub(super) rate: BitsPerSec,
    /// The idle round trip, with what NICs take and `faults.delay` adds at least.
    pub(super) time: Span,
    /// What of these there is.
    added: &'static str,
}

impl Product {
    /// What the round trip is of, and how long it takes.
    pub(super) fn trip(&self) -> String {
        let [a, b] = &self.hosts;
        let added = self.added;
        format!(
            "the idle round trip of a full packet between `{a}` and `{b}`{added}, {}",
            in_nanos(self.time)
        )
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} times {}", self.rate, self.trip())
    }
}

/// The extremes among the shortest paths between hosts.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// The most switches on one.
    pub(super) most_switches: usize,
    /// The least time that the smallest packet and an answer of that size take.
    nearest: Option<Pair>,
    /// The most time that a full packet and its acknowledgement take.
    farthest: Option<Pair>,
    /// The same of flows that have the control of their network, and of all others, where there are such networks.
    farthest_of: BTreeMap<Option<ControlIndex>, Pair>,
    /// Where hosts have several NICs, which of all are in one part of the network with the farthest two, of those between which no network
    /// has a control of its own.
    part: Option<Vec<bool>>,
    /// What NICs take of it besides, when they are idle.
    nics: Span,
}

/// The times for one link there and back: of the smallest packet and answer, and of a full packet and acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Times {
    least: Span,
    full: Span,
}

impl Times {
    const NONE: Self = Self { least: Span::ZERO, full: Span::ZERO };

    fn plus(self, other: Self) -> Self {
        Self { least: self.least + other.least, full: self.full + other.full }
    }
}

/// What hosts one leaf has.
#[derive(Clone, Debug, Default)]
struct Leaf {
    /// The two with the fastest links, first the fastest.
    nearest: Vec<(usize, Span)>,
    /// The two with the slowest links, first the slowest.
    farthest: Vec<(usize, Span)>,
}

impl Leaf {
    fn add(&mut self, host: usize, times: Times) {
        self.nearest.push((host, times.least));
        self.nearest.sort_by_key(|(_, time)| *time);
        self.nearest.truncate(2);
        self.farthest.push((host, times.full));
        self.farthest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        self.farthest.truncate(2);
    }
}

/// So many pairs of hosts are looked at where these have several NICs: a tenth of a second.
const PAIRS: usize = 1 << 17;

/// The links of a network, and how long each takes.
#[derive(Clone, Copy)]
struct Links<'a> {
    graph: &'a Graph,
    ports: &'a Ports,
    /// Octets of a full packet, and of an acknowledgement.
    frames: [u32; 2],
}

/// For each switch how many there are up to it, itself and the first one included, and the times of the links between; `None` where no
/// path leads.
type Ways = Vec<Option<(usize, Times)>>;

impl Links<'_> {
    fn times(&self, link: &Link) -> Times {
        let time = |octets: u64| link.rate.time_for(octets + u64::from(WIRE_OVERHEAD)) + link.delay;
        let [frame, answer] = self.frames.map(|octets| time(octets.into()));
        Times { least: time(MIN_FRAME as u64) * 2, full: frame + answer }
    }

    /// The ways from the switch `start`, and the switches that they lead to, the nearest first.
    fn ways_from(&self, start: usize) -> (Ways, Vec<usize>) {
        let hosts = self.graph.hosts.len();
        let mut ways: Ways = vec![None; self.graph.switches.len()];
        ways[start] = Some((1, Times::NONE));
        let mut open = vec![start];
        let mut head = 0;
        while let Some(&switch) = open.get(head) {
            head += 1;
            let Some((switches, so_far)) = ways[switch] else { continue };
            let node = NodeId(u32::try_from(hosts + switch).unwrap_or(u32::MAX));
            for port in self.ports.of_node(node) {
                let Some(next) = (port.peer.0 as usize).checked_sub(hosts) else { continue };
                if ways[next].is_none() {
                    let link = &self.graph.links[port.link as usize];
                    ways[next] = Some((switches + 1, so_far.plus(self.times(link))));
                    open.push(next);
                }
            }
        }
        (ways, open)
    }
}

impl Reach {
    /// Of `topology`, with frames of up to `frame` octets and acknowledgements as `transport` has them.
    ///
    /// Of equal paths one counts, since they are equally long where it matters.
    pub(super) fn of(topology: &Topology, networks: &Networks, frame: u32, transport: &Transport) -> Self {
        let answer = frame_len(Opcode::ACKNOWLEDGE, transport.layout, IpVersion::V4, 0);
        let ports = Ports::of(&topology.graph);
        let links = Links { graph: &topology.graph, ports: &ports, frames: [frame, answer] };
        match Pairing::of(topology) {
            None => Self::of_hosts(&links),
            Some(pairing) => Self::of_nics(topology, networks, &links, pairing),
        }
    }

    /// Where each host has one NIC: leaf by leaf.
    fn of_hosts(links: &Links<'_>) -> Self {
        let Links { graph, .. } = *links;
        let hosts = graph.hosts.len();
        let mut reach = Self::default();
        let mut leaves = vec![Leaf::default(); graph.switches.len()];
        for link in &graph.links {
            let [a, b] = [link.a, link.b].map(|node| node.0 as usize);
            match (a.checked_sub(hosts), b.checked_sub(hosts)) {
                (None, None) => {
                    let end = |host| {
                        let mut end = Leaf::default();
                        end.add(host, Times::NONE);
                        end
                    };
                    reach.join(&end(a), &end(b), false, links.times(link), 0);
                }
                (Some(switch), None) => leaves[switch].add(b, links.times(link)),
                (None, Some(switch)) => leaves[switch].add(a, links.times(link)),
                (Some(_), Some(_)) => {}
            }
        }
        for (start, leaf) in leaves.iter().enumerate().filter(|(_, leaf)| !leaf.nearest.is_empty()) {
            let (ways, order) = links.ways_from(start);
            for switch in order {
                let Some((switches, so_far)) = ways[switch] else { continue };
                reach.join(leaf, &leaves[switch], start == switch, so_far, switches);
            }
        }
        reach
    }

    /// Where hosts have several: pair by pair, by the NICs that flows between them take. Where there are more than [`PAIRS`] pairs, of so
    /// many, from hosts that lie evenly among all to all others.
    fn of_nics(topology: &Topology, networks: &Networks, links: &Links<'_>, mut pairing: Pairing) -> Self {
        let Links { graph, .. } = *links;
        let nics = graph.hosts.len();
        let mut link_of = vec![None; nics];
        for link in &graph.links {
            for (nic, other) in [(link.a, link.b), (link.b, link.a)] {
                if let Some(place) = link_of.get_mut(nic.0 as usize) {
                    *place = Some((link, (other.0 as usize).checked_sub(nics)));
                }
            }
        }
        let hosts = topology.hosts().len();
        let mut reach = Self::default();
        for from in (0..hosts).step_by((hosts * hosts).div_ceil(PAIRS)) {
            let mut known = BTreeMap::new();
            for to in (0..hosts).filter(|to| *to != from) {
                let host = |place: usize| HostId(u16::try_from(place).unwrap_or(u16::MAX));
                for pair in pairing.nearest([host(from), host(to)]) {
                    let control = networks.control(pair);
                    let pair = pair.map(|nic| usize::from(nic.0));
                    let [Some((first, at)), Some((last, to))] = pair.map(|nic| link_of[nic]) else {
                        continue;
                    };
                    let (switches, times) = match (at, to) {
                        (Some(at), Some(to)) => {
                            let (ways, _) = known.entry(at).or_insert_with(|| links.ways_from(at));
                            let Some((switches, between)) = ways[to] else { continue };
                            (switches, links.times(first).plus(between).plus(links.times(last)))
                        }
                        // They are linked to one another.
                        _ => (0, links.times(first)),
                    };
                    reach.most_switches = reach.most_switches.max(switches);
                    reach.take_nearest(Pair { hosts: pair, time: times.least });
                    reach.take_farthest(Pair { hosts: pair, time: times.full });
                    if !networks.is_none() {
                        reach.take_farthest_of(control, Pair { hosts: pair, time: times.full });
                    }
                }
            }
        }
        let part = reach.farthest_of(None).and_then(|pair| link_of[pair.hosts[0]]?.1);
        if let Some(at) = part {
            let (ways, _) = links.ways_from(at);
            let is_in = |link: &Option<(&Link, Option<usize>)>| {
                link.and_then(|(_, at)| at).is_some_and(|at| ways[at].is_some())
            };
            reach.part = Some(link_of.iter().map(is_in).collect());
        }
        reach
    }

    /// The same between hosts whose NICs take so long for a full packet and its acknowledgement.
    pub(super) fn with_nics(self, nics: Span) -> Self {
        Self { nics, ..self }
    }

    /// Takes the hosts of two leaves into account, or of one where they are the `same`.
    fn join(&mut self, from: &Leaf, to: &Leaf, same: bool, between: Times, switches: usize) {
        let other = usize::from(same);
        if let (Some(near), Some(to_near)) = (from.nearest.first(), to.nearest.get(other)) {
            self.most_switches = self.most_switches.max(switches);
            self.take_nearest(Pair { hosts: [near.0, to_near.0], time: near.1 + between.least + to_near.1 });
        }
        if let (Some(far), Some(to_far)) = (from.farthest.first(), to.farthest.get(other)) {
            self.take_farthest(Pair { hosts: [far.0, to_far.0], time: far.1 + between.full + to_far.1 });
        }
    }

    fn take_nearest(&mut self, pair: Pair) {
        if self.nearest.is_none_or(|nearest| pair.time < nearest.time) {
            self.nearest = Some(pair);
        }
    }

    fn take_farthest(&mut self, pair: Pair) {
        if self.farthest.is_none_or(|farthest| pair.time > farthest.time) {
            self.farthest = Some(pair);
        }
    }

    fn take_farthest_of(&mut self, control: Option<ControlIndex>, pair: Pair) {
        let farthest = self.farthest_of.entry(control).or_insert(pair);
        if pair.time > farthest.time {
            *farthest = pair;
        }
    }

    /// The farthest two between which flows have the control of their network; `None`: those between which they have what they have
    /// anywhere.
    fn farthest_of(&self, control: Option<ControlIndex>) -> Option<Pair> {
        if self.farthest_of.is_empty() { self.farthest } else { self.farthest_of.get(&control).copied() }
    }

    /// Bandwidth times delay in packets of `frame` octets, where no network has a control of its own; `None` where hosts' links differ in rate, of those
    /// in the part of the network that the farthest two are in.
    pub(super) fn product(&self, graph: &Graph, frame: u32, faults: &Faults) -> Option<Product> {
        let farthest = self.farthest_of(None)?;
        let time = self.round_trip(None, faults)?;
        let is_host = |node: NodeId| {
            let nic = node.0 as usize;
            nic < graph.hosts.len() && self.part.as_ref().is_none_or(|part| part[nic])
        };
        let mut rates =
            graph.links.iter().filter(|link| is_host(link.a) || is_host(link.b)).map(|link| link.rate);
        let rate = rates.next()?;
        if !rates.all(|other| other == rate) {
            return None;
        }
        let packet = rate.time_for(u64::from(frame) + u64::from(WIRE_OVERHEAD));
        Some(Product {
            packets: time.as_ps().div_ceil(packet.as_ps().max(1)),
            hosts: farthest.hosts.map(|host| graph.hosts[host].clone()),
            rate,
            time,
            added: match (time > farthest.time + self.nics, self.nics.is_zero()) {
                (false, true) => "",
                (true, true) => " with `faults.delay`",
                (false, false) => " with what NICs take",
                (true, false) => " with what NICs take and `faults.delay`",
            },
        })
    }

    /// The longest idle round trip of a full packet under the `control` of some network, or `None` of these, with what NICs take and
    /// `faults.delay` adds at least.
    pub(super) fn round_trip(&self, control: Option<ControlIndex>, faults: &Faults) -> Option<Span> {
        let delay = faults.common.delay.map_or(Span::ZERO, |delay| delay.min) * self.crossings();
        Some(self.farthest_of(control)?.time + self.nics + delay)
    }

    /// How many links a packet and its answer cross at most.
    fn crossings(&self) -> u64 {
        2 * (self.most_switches as u64 + 1)
    }

    /// Refuses a timeout that is over before anything can have been acknowledged, and has a remark on one that is over
    /// before some packets can, or IRN's with few in flight. `origin` is where the timeout, or else the
    /// topology, was written.
    pub(super) fn judge(
        &self,
        source: &Source,
        origin: Origin,
        graph: &Graph,
        transport: &Transport,
        faults: &Faults,
    ) -> Result<Option<String>, ScenarioError> {
        let (Some(nearest), Some(farthest)) = (self.nearest, self.farthest) else { return Ok(None) };
        let timeout = transport.timeout;
        let names = |pair: Pair| pair.hosts.map(|host| graph.hosts[host].as_str());
        let [a, b] = names(farthest);
        let longest = format!("{}, for a full packet between `{a}` and `{b}`", in_nanos(farthest.time));
        if timeout.is_zero() || timeout > farthest.time {
            let few = timeout_of_few(timeout);
            // What a link delays, it delays there and back.
            let delay = faults.common.delay.map_or(Span::ZERO, |delay| delay.max) * self.crossings();
            let delayed = farthest.time + delay;
            if !timeout.is_zero() && timeout <= delayed {
                return Ok(Some(format!(
                    "the timeout of {timeout} is shorter than the longest round trip with `faults.delay`, {}: packets are sent again though \
                     none is lost; `transport.timeout` is best several times that",
                    in_nanos(delayed)
                )));
            }
            // With Homa IRN's timeout is one.
            let has_few = transport.recovery == Recovery::Irn && transport.layout != Layout::Homa;
            let added = if delay.is_zero() {
                String::new()
            } else {
                format!(" and {delay} more with `faults.delay`")
            };
            return Ok((has_few && !timeout.is_zero() && few <= delayed).then(|| {
                format!(
                    "with at most {FEW_IN_FLIGHT} packets in flight `irn` gives them up after {few}, 5/16 of `transport.timeout`, which is \
                     shorter than the longest idle round trip, {longest}{added}: they are sent again though none is lost"
                )
            }));
        }
        if timeout > nearest.time {
            return Ok(Some(format!(
                "the timeout of {timeout} is shorter than the longest idle round trip, {longest}: packets are sent again \
                 though none is lost; `transport.timeout` is best several times that"
            )));
        }
        let [a, b] = names(nearest);
        Err(source.error(
            origin,
            format!(
                "the timeout of {timeout} is over before anything can be acknowledged: the shortest idle round trip, \
                 between `{a}` and `{b}`, takes {}",
                in_nanos(nearest.time)
            ),
            format!(
                "set `transport.timeout` to several times the longest idle round trip, {longest}; or to \"0s\" for none"
            ),
        ))
    }
}

/// `time`, rounded up to nanoseconds: what is to be read needs no picoseconds.
fn in_nanos(time: Span) -> Span {
    Span::from_nanos(time.as_ps().div_ceil(1_000))
}
