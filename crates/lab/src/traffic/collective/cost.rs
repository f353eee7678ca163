//! How long collectives take by a plain model, by which the algorithm is chosen that takes least (`algorithm = "auto"`).
//!
//! The form is that of NCCL's tuner (`src/graph/tuning.cc`): a latency for each message that waits for one before it, and the octets over a
//! bandwidth. NCCL has the latencies and what algorithms make of the bandwidth from tables that were measured; here they are the delays and rates of
//! the scenario's own links, and what these carry.
//!
//! | algorithm | messages one after the other | what links carry |
//! | --- | --- | --- |
//! | ring | each step, by the links all around | all steps of all chunks |
//! | halving and doubling | each step, with its part of the data | the same, and hashed uplinks |
//! | trees | up and down the two trees of the ranks | the halves that the busiest NIC sends or receives |
//! | direct | one | a shard for each other rank, and hashed uplinks |
//! | over rails | one within the server, and one for all of its ranks | the shards for each other server |
//!
//! Where ranks have different amounts for one another, each message counts by its own way, the busiest NIC, be it that it sends or that it
//! receives, and likewise the switch whose links to others have most to do.
//!
//! One chunk takes what the first column says. Each other one follows by what it takes of the slowest link of a step, or of a tree, and nothing takes
//! less than what a link carries. Channels that leave a server by one NIC go there in step, packet by packet: a message of one arrives when nearly
//! all have left.

mod trees;
mod uneven;

use super::network::{Line, Links, Network, Packets, Uplinks};
use super::{Algorithm, Collective, Operation};
use roci_fabric::graph::NodeId;
use roci_fabric::packet::HostId;
use roci_units::BitsPerSec;
use std::collections::BTreeMap;
use trees::Trees;

/// Picoseconds. A chain of thousands of ranks with a TiB for each has more than 64 bits of them.
type Time = u128;

/// Among so many ranks all may send to each at once where that is not the usual way: by 4032 queue pairs.
const DIRECT_MOST: usize = 64;

/// The model of the collectives of some ranks.
///
/// What it goes by is found when an algorithm needs it for the first time: the way between each two ranks that talk. Of halving and doubling, and
/// where all talk to each, it is that of the first rank, with the slowest NIC of all.
#[derive(Debug)]
pub struct Model<'a> {
    network: &'a mut Network,
    hosts: Vec<HostId>,
    per_server: u32,
    ring: Option<Option<Ring>>,
    trees: Option<Option<Trees>>,
    direct: Option<Option<Vec<(Line, u64)>>>,
    rails: Option<Option<Vec<(Line, u64)>>>,
    slowest: Option<Vec<Links>>,
}

/// What ways between ranks have in common that take as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    links: Links,
    /// Whether it stays within a server.
    within: bool,
}

/// The ways around a ring, or along a chain.
#[derive(Clone, Debug)]
struct Ring {
    /// How many there are of each class.
    classes: Vec<(Class, u64)>,
    crossings: Vec<Crossing>,
}

/// How many ways lead from one switch to others.
type Crossing = (Uplinks, u64);

impl Operation {
    /// The algorithms that are weighed against each other among so many ranks: those of `named` that it has, or where these are none all of its own. Of
    /// these a direct reduce-scatter or all-gather has a queue pair for each two ranks, so that among many it is none.
    pub fn weighed(self, ranks: usize, named: &[Algorithm]) -> Vec<Algorithm> {
        let its: Vec<_> = self.algorithms().iter().copied().filter(|it| named.contains(it)).collect();
        if !its.is_empty() {
            return its;
        }
        let usual = self.algorithms()[0];
        let is_weighed =
            |it: &Algorithm| *it != Algorithm::Direct || usual == Algorithm::Direct || ranks <= DIRECT_MOST;
        self.algorithms().iter().copied().filter(is_weighed).collect()
    }
}

impl<'a> Model<'a> {
    /// That of ranks at `hosts`, of which so many in a row share a server; `listed` tells whether they stand in this order, and are not dealt to
    /// these hosts at random.
    pub fn new(network: &'a mut Network, hosts: &[HostId], per_server: u32, listed: bool) -> Self {
        let hosts = if listed { hosts.to_vec() } else { dealt(hosts) };
        let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        let per_server = per_server.clamp(1, count.max(1));
        Self { network, hosts, per_server, ring: None, trees: None, direct: None, rails: None, slowest: None }
    }

    /// Of collectives that do the same that which takes least; of several the first. `None` where no network joins the ranks of any.
    pub fn fastest<'b>(
        &mut self,
        candidates: impl Iterator<Item = &'b Collective>,
    ) -> Option<&'b Collective> {
        candidates.filter_map(|it| Some((self.time(it)?, it))).min_by_key(|(time, _)| *time).map(|(_, it)| it)
    }

    /// How long `it` takes; `None` where nothing joins two of its ranks that talk.
    pub fn time(&mut self, it: &Collective) -> Option<u128> {
        if let Some(matrix) = it.matrix() {
            return self.uneven(it, matrix);
        }
        match it.algorithm {
            Algorithm::Ring => self.ring(it),
            Algorithm::HalvingDoubling => self.halving_doubling(it),
            Algorithm::Tree => self.trees(it),
            Algorithm::Direct => self.direct(it),
            Algorithm::Pxn => self.over_rails(it),
        }
    }

    /// Steps of which each waits for the one before it, or a chain that each chunk goes through by itself.
    fn ring(&mut self, it: &Collective) -> Option<Time> {
        if self.ring.is_none() {
            self.ring = Some(self.find_ring(it));
        }
        let ring = self.ring.as_ref().and_then(Option::as_ref)?;
        let octets = part(it, it.schedule().shards().into());
        let is_chain = it.operation.is_chain();
        // How often each way is gone, of a chunk, and all of them.
        let (steps, rounds) = if is_chain { (1, 1) } else { (it.schedule().steps(), it.count()) };
        let copies = u64::from(it.chunks) * u64::from(steps);
        let packets = self.network.packets;
        let (mut around, mut behind, mut slowest, mut most) = (0, 0, 0, 0);
        for &(class, count) in &ring.classes {
            let together = self.together(it, class);
            let message = packets.message(class.links, octets, together);
            around += times(count, message);
            behind = behind.max(times(together - 1, packets.last(class.links.rate, octets)));
            slowest = slowest.max(times(together, packets.link(class.links.rate, octets)));
            let load = times(copies * together, packets.busy(class.links.rate, octets));
            most = most.max(load + packets.behind(class.links, octets));
        }
        for (up, flows) in &ring.crossings {
            // Other channels leave servers by other NICs, whose switches are others on rails.
            let one = packets.shared(*up, octets, flows * u64::from(it.channels.div_ceil(self.per_server)));
            slowest = slowest.max(one);
            most = most.max(times(copies, one));
        }
        let alone = around * Time::from(steps) / Time::from(rounds) + behind;
        Some((alone + times(u64::from(it.chunks) - 1, slowest)).max(most))
    }

    fn find_ring(&mut self, it: &Collective) -> Option<Ring> {
        let ranks = it.count();
        let ways = if it.operation.is_chain() { ranks - 1 } else { ranks };
        let mut classes = BTreeMap::new();
        let mut crossings = Crossings::default();
        for place in 0..ways {
            let ranks = [place, (place + 1) % ranks].map(|place| it.rank_at(0, place));
            let (line, class) = self.way(ranks)?;
            *classes.entry(class).or_default() += 1;
            crossings.add(line);
        }
        Some(Ring { classes: classes.into_iter().collect(), crossings: crossings.all() })
    }

    fn halving_doubling(&mut self, it: &Collective) -> Option<Time> {
        let shard = part(it, it.count().into());
        let rounds = if it.operation == Operation::AllReduce { 2 } else { 1 };
        let (channels, chunks) = (u64::from(it.channels), u64::from(it.chunks));
        let packets = self.network.packets;
        let (mut alone, mut longest, mut load) = (0, 0, Load::default());
        for bit in 0..it.count().ilog2() {
            let line = self.slow_line(1 << bit)?;
            let octets = shard << bit;
            let mut message = packets.message(line.links, octets, channels);
            let mut step = times(channels, packets.link(line.links.rate, octets));
            let mut busy = times(channels * chunks, packets.busy(line.links.rate, octets));
            if let Some(up) = line.up {
                let shared = packets.shared(up, octets, u64::from(up.nics) * channels);
                message = message.max(shared + packets.behind(line.links, octets));
                step = step.max(shared);
                busy = busy.max(times(chunks, shared));
            }
            alone += times(rounds, message);
            longest = longest.max(step);
            load.add(line, times(rounds, busy), packets.behind(line.links, octets));
        }
        Some((alone + times(chunks - 1, longest)).max(load.longest()))
    }

    fn trees(&mut self, it: &Collective) -> Option<Time> {
        if self.trees.is_none() {
            self.trees = Some(Trees::find(self, it));
        }
        let trees = self.trees.as_ref().and_then(Option::as_ref)?;
        Some(trees.time(self.network.packets, it, |class| self.together(it, class)))
    }

    fn direct(&mut self, it: &Collective) -> Option<Time> {
        if self.direct.is_none() {
            self.direct = Some(self.ways_to_each(1, it.count()));
        }
        let lines = self.direct.as_ref().and_then(Option::as_ref)?;
        let octets = part(it, it.count().into());
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let packets = self.network.packets;
        let mut load = Load::default();
        let mut alone = 0;
        for &(line, count) in lines {
            alone = alone.max(packets.message(line.links, octets, 1));
            let busy = times(copies * count, packets.busy(line.links.rate, octets));
            load.add(line, busy, packets.behind(line.links, octets));
        }
        Some(alone.max(load.longest()).max(packets.away(lines, octets, it)))
    }

    fn over_rails(&mut self, it: &Collective) -> Option<Time> {
        if self.rails.is_none() {
            self.rails = Some(self.ways_to_each(self.per_server, it.count()));
        }
        let within = self.slow_line(1)?;
        let rails = self.rails.as_ref().and_then(Option::as_ref)?;
        let (others, servers) = (u64::from(self.per_server - 1), u64::from(it.count() / self.per_server));
        let shard = part(it, it.count().into());
        let together = shard * u64::from(self.per_server);
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let packets = self.network.packets;
        let round = times(others, packets.busy(within.links.rate, shard));
        let mut load = Load::default();
        load.add(within, times(copies * servers, round), packets.behind(within.links, shard));
        // What is for the first other server leaves when all ranks have theirs for it.
        let first = packets.message(within.links, shard, 1) + round;
        let mut alone = first;
        for &(line, count) in rails {
            alone = alone.max(first + packets.message(line.links, together, 1));
            let busy = times(copies * count, packets.busy(line.links.rate, together));
            load.add(line, busy, first + packets.behind(line.links, together));
        }
        Some(alone.max(load.longest()).max(first + packets.away(rails, together, it)))
    }

    /// The ways from the first rank to each so many ranks after it; of those in a row that are alike one, and how many there are.
    fn ways_to_each(&mut self, step: u32, ranks: u32) -> Option<Vec<(Line, u64)>> {
        let mut lines: Vec<(Line, u64)> = Vec::new();
        for to in (step..ranks).step_by(step as usize) {
            let mut line = self.slow_line(to)?;
            line.nics[1] = line.nics[0]; // wherever it ends
            match lines.last_mut().filter(|(before, _)| *before == line) {
                Some((_, count)) => *count += 1,
                None => lines.push((line, 1)),
            }
        }
        Some(lines)
    }

    /// The way between two ranks.
    fn way(&mut self, ranks: [u32; 2]) -> Option<(Line, Class)> {
        let hosts = ranks.map(|rank| self.hosts.get(rank as usize).copied());
        let line = self.network.line([hosts[0]?, hosts[1]?])?;
        let [one, other] = ranks.map(|rank| rank / self.per_server);
        Some((line, Class { links: line.links, within: one == other && self.per_server > 1 }))
    }

    /// The way from the first rank to another, if its NICs were the slowest of all ranks'.
    fn slow_line(&mut self, to: u32) -> Option<Line> {
        let (mut line, _) = self.way([0, to])?;
        let nics: Vec<_> = self.network.nics_of(self.hosts[0]).collect();
        let place = nics.iter().position(|nic| *nic == line.nics[0]).unwrap_or(0);
        if self.slowest.is_none() {
            self.slowest = Some(self.find_slowest());
        }
        let slowest = self.slowest.as_ref().and_then(|all| all.get(place));
        if let (Some(slowest), Some(own)) = (slowest, self.network.own(line.nics[0])) {
            line.links.rate = line.links.rate.min(slowest.rate);
            line.links.delay += slowest.delay.saturating_sub(own.delay);
        }
        Some(line)
    }

    /// Of all ranks' first, second and further NICs the slowest link: the rate of one, and the delay of one.
    fn find_slowest(&self) -> Vec<Links> {
        let mut slowest: Vec<Links> = Vec::new();
        for host in &self.hosts {
            for (place, own) in
                self.network.nics_of(*host).filter_map(|nic| self.network.own(nic)).enumerate()
            {
                match slowest.get_mut(place) {
                    Some(it) => {
                        *it = Links { count: 1, delay: it.delay.max(own.delay), rate: it.rate.min(own.rate) }
                    }
                    None => slowest.push(own),
                }
            }
        }
        slowest
    }

    /// How many channels take the NIC of a way in step. Each leaves a server by another of its ranks, as far as there are so many, and that one sends
    /// nothing within it for this channel.
    fn together(&self, it: &Collective, class: Class) -> u64 {
        let leave = if class.within {
            it.channels - it.channels / self.per_server
        } else {
            it.channels.div_ceil(self.per_server)
        };
        leave.max(1).into()
    }
}

/// `hosts` in an order that has nothing to do with theirs: by steps of about 0.618 of their number, which come by each.
fn dealt(hosts: &[HostId]) -> Vec<HostId> {
    let count = hosts.len();
    let step = (count * 618 / 1000..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
    (0..count).map(|place| hosts[place * step % count]).collect()
}

const fn gcd(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Packets {
    /// How long a link of `rate` is busy with a message.
    fn link(self, rate: BitsPerSec, octets: u64) -> Time {
        of_octets(rate, self.on_the_wire(octets))
    }

    /// The same with the acknowledgements of a message that comes meanwhile.
    fn busy(self, rate: BitsPerSec, octets: u64) -> Time {
        of_octets(rate, self.on_the_wire(octets) + self.count(octets) * u64::from(self.acknowledges))
    }

    /// How long it is busy with the last packet of a message.
    fn last(self, rate: BitsPerSec, octets: u64) -> Time {
        self.link(rate, octets - (self.count(octets) - 1) * u64::from(self.mtu.max(1)))
    }

    /// How long the last octet of a message is on its way after it has left: switches send a packet on when they have all of it.
    fn behind(self, links: Links, octets: u64) -> Time {
        let packet = self.link(links.rate, octets.min(self.mtu.into()));
        Time::from(links.delay.as_ps()) + times(links.count.saturating_sub(1).into(), packet)
    }

    /// How long a message takes that begins with others at its NIC, so many with it: packets of each take turns, and all but the last of the others'
    /// leave before the last of it does.
    fn message(self, links: Links, octets: u64, together: u64) -> Time {
        let (whole, last) = (self.link(links.rate, octets), self.last(links.rate, octets));
        times(together, whole - last) + last + self.behind(links, octets)
    }

    /// How long the busiest link from a switch to others has to do with a message of each of so many flows.
    fn shared(self, up: Uplinks, octets: u64, flows: u64) -> Time {
        self.link(up.rate, octets) * up.busiest(flows) / 1000
    }

    /// How long that takes which leads to other switches, where each NIC sends messages of so many octets by all of `lines` at once.
    fn away(self, lines: &[(Line, u64)], octets: u64, it: &Collective) -> Time {
        let up = lines.iter().filter_map(|(line, _)| line.up).max_by_key(|up| up.paths);
        let Some(up) = up else { return 0 };
        let away = lines.iter().filter(|(line, _)| line.up.is_some());
        let (ways, behind) = away.fold((0, 0), |(ways, behind), (line, count)| {
            (ways + count, behind.max(self.behind(line.links, octets)))
        });
        let flows = ways * u64::from(up.nics) * u64::from(it.channels);
        times(it.chunks.into(), self.shared(up, octets, flows)) + behind
    }
}

fn of_octets(rate: BitsPerSec, octets: u64) -> Time {
    (Time::from(octets) * 8_000_000_000_000).div_ceil(rate.0.max(1).into())
}

/// What NICs have to send.
#[derive(Default)]
struct Load {
    /// Of each NIC how long that takes, and how long the last octet is on its way.
    of: BTreeMap<HostId, (Time, Time)>,
}

impl Load {
    fn add(&mut self, line: Line, busy: Time, behind: Time) {
        let load = self.of.entry(line.nics[0]).or_default();
        *load = (load.0 + busy, load.1.max(behind));
    }

    fn longest(&self) -> Time {
        self.of.values().map(|(busy, behind)| busy + behind).max().unwrap_or(0)
    }
}

/// How many ways lead from each switch to others.
#[derive(Default)]
struct Crossings {
    of: BTreeMap<NodeId, Crossing>,
}

impl Crossings {
    fn add(&mut self, line: Line) {
        if let Some(up) = line.up {
            // Which of those from elsewhere it meets where paths fork again is not known, and few are on their way at once.
            let up = Uplinks { paths: up.paths.min(up.count), ..up };
            self.of.entry(up.switch).or_insert((up, 0)).1 += 1;
        }
    }

    /// Of those that are alike one.
    fn all(self) -> Vec<Crossing> {
        let mut all: Vec<_> = self.of.into_values().collect();
        all.sort_by_key(|(up, ways)| (up.count, up.rate, up.paths, *ways));
        all.dedup_by_key(|(up, ways)| (up.count, up.rate, up.paths, *ways));
        all
    }
}

/// Octets of each of so many parts of a chunk of a channel.
fn part(it: &Collective, parts: u64) -> u64 {
    it.size.0.div_ceil(u64::from(it.channels) * u64::from(it.chunks)).div_ceil(parts)
}

fn times(count: u64, time: Time) -> Time {
    Time::from(count) * time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::spec::Common;
    use roci_fabric::topology::{Rails, Star, Topology};
    use roci_units::{Bytes, Instant, Span};

    /// An octet is a nanosecond, and packets have nothing around them.
    const PACKETS: Packets = Packets { mtu: 1000, around: 0, acknowledges: 0 };

    fn star(hosts: u32) -> Topology {
        Star { hosts, rate: BitsPerSec::from_gbps(8), delay: Span::from_micros(1) }.build().unwrap()
    }

    pub(super) fn of(operation: Operation, algorithm: Algorithm, ranks: u16, size: u64) -> Collective {
        Collective {
            operation,
            algorithm,
            ranks: (0..ranks).map(HostId).collect(),
            per_server: 1,
            root: 0,
            shuffled: false,
            size: Bytes(size),
            amounts: None,
            channels: 1,
            chunks: 1,
            iterations: 1,
            gap: Span::ZERO,
            start: Instant::ZERO,
            common: Common::default(),
        }
    }

    /// Nanoseconds.
    pub(super) fn time(topology: &Topology, it: &Collective, per_server: u32) -> u128 {
        let mut network = Network::of(topology, PACKETS);
        Model::new(&mut network, &it.ranks, per_server, true).time(it).expect("they are joined") / 1000
    }

    #[test]
    fn the_model_counts_messages_that_wait_and_what_links_carry() {
        let star = star(8);
        let time = |it: &Collective| time(&star, it, 1);
        // Of 800 octets a message of so many takes 2000 of delay, and is sent twice.
        let message = |octets: u128| 2000 + 2 * octets;
        let ring = of(Operation::AllReduce, Algorithm::Ring, 8, 800);
        assert_eq!(time(&ring), 14 * message(100));
        let halves = of(Operation::AllReduce, Algorithm::HalvingDoubling, 8, 800);
        assert_eq!(time(&halves), 2 * (message(100) + message(200) + message(400)));
        let trees = of(Operation::AllReduce, Algorithm::Tree, 8, 800);
        assert_eq!(time(&trees), 2 * (3 * message(400) + 2 * 400));
        let direct = of(Operation::AllToAll, Algorithm::Direct, 8, 8000);
        assert_eq!(time(&direct), 7 * 1000 + 2000 + 1000);
        let chain = of(Operation::Broadcast, Algorithm::Ring, 8, 1000);
        assert_eq!(time(&chain), 7 * message(1000));
        // Chunks hide delays of a ring until its links have no gap, and make pipelines of trees and chains.
        let ring = Collective { chunks: 100, size: Bytes(800_000), ..ring };
        assert_eq!(time(&ring), 14 * 100_000 + 2000 + 1000);
        let trees = Collective { chunks: 1000, size: Bytes(800_000), ..trees };
        assert_eq!(time(&trees), 2 * (3 * message(400) + 2 * 400) + 999 * 4 * 400);
        // Channels share the NIC, packet by packet, whether or not there are chunks: of one packet the last of four leaves behind three others, and of
        // two packets that of each waits for one of each other.
        let four = Collective { channels: 4, chunks: 1, size: Bytes(3200), ..trees.clone() };
        assert_eq!(time(&four), 2 * (3 * message(400) + 2 * 400) + 3 * 400);
        let four = Collective { size: Bytes(4 * 4000), ..four };
        let in_step = 2000 + 3 * 1000 + 2000 + 1000;
        assert_eq!(time(&four), 2 * (3 * in_step + 2 * 2000) + 3 * 1000);
        let chain = Collective { chunks: 10, size: Bytes(10_000), ..chain };
        assert_eq!(time(&chain), 7 * message(1000) + 9 * 1000);
    }

    #[test]
    fn what_stays_in_a_server_takes_its_network_and_channels_share_the_nics() {
        let rails = Rails {
            servers: 2,
            gpus: 4,
            servers_per_leaf: 2,
            spines: 0,
            rate: BitsPerSec::from_gbps(8),
            fabric_rate: None,
            delay: Span::from_micros(10),
            scale_up: Some((BitsPerSec::from_gbps(80), Span::from_micros(1))),
        };
        let rails = rails.build().unwrap();
        let in_servers =
            |algorithm| Collective { per_server: 4, ..of(Operation::AllReduce, algorithm, 8, 800) };
        let ring = in_servers(Algorithm::Ring);
        // Two of eight ways leave a server, and the fourteen steps go around nearly twice.
        assert_eq!(time(&rails, &ring, 4), (2 * (20_000 + 200) + 6 * (2000 + 20)) * 14 / 8);
        let one = Collective { size: Bytes(8_000_000), ..ring.clone() };
        let four = Collective { channels: 4, ..one.clone() };
        assert_eq!(time(&rails, &one, 4), 14 * 1_000_000 + 20_000 + 1000);
        assert_eq!(time(&rails, &four, 4), 14 * 250_000 + 20_000 + 1000);
        let trees = in_servers(Algorithm::Tree);
        assert_eq!(time(&rails, &trees, 4), 2 * (20_000 + 800 + 3 * (2000 + 80)));
        let over_rails = of(Operation::AllToAll, Algorithm::Pxn, 8, 800);
        let first = 2000 + 20 + 3 * 10;
        assert_eq!(time(&rails, &over_rails, 4), first + 20_000 + 400 + 400);
        // Nothing joins the rails.
        let direct = of(Operation::AllToAll, Algorithm::Direct, 8, 800);
        let mut network = Network::of(&rails, PACKETS);
        let mut model = Model::new(&mut network, &direct.ranks, 4, true);
        assert_eq!(model.time(&direct), None);
        let fastest = model.fastest([&direct, &over_rails].into_iter()).expect("the other");
        assert_eq!(fastest.algorithm, Algorithm::Pxn);
    }

    #[test]
    fn channels_of_trees_begin_at_other_ranks_of_servers_and_those_of_halves_share_a_nic() {
        let rails = Rails {
            servers: 128,
            gpus: 8,
            servers_per_leaf: 128,
            spines: 4,
            rate: BitsPerSec::from_gbps(400),
            fabric_rate: None,
            delay: Span::from_nanos(500),
            scale_up: Some((BitsPerSec::from_gbps(3600), Span::from_nanos(250))),
        };
        let rails = rails.build().unwrap();
        let mut network = Network::of(&rails, Packets { mtu: 4096, around: 102, acknowledges: 86 });
        let [trees, halves] = [Algorithm::Tree, Algorithm::HalvingDoubling].map(|algorithm| Collective {
            channels: 8,
            ..of(Operation::AllReduce, algorithm, 1024, 4 << 20)
        });
        let trees = Collective { per_server: 8, ..trees };
        let mut model = Model::new(&mut network, &trees.ranks, 8, true);
        let [by_trees, by_halves] = [&trees, &halves].map(|it| model.time(it).expect("they are joined"));
        // Simulated they take 178 and 198 us.
        assert!(by_trees < by_halves, "{by_trees} {by_halves}");
        // Chains of other channels are at other ranks by then.
        let one = Collective { channels: 1, size: Bytes(512 << 10), ..trees };
        assert_eq!(model.time(&one), Some(by_trees));
    }

    #[test]
    fn a_slow_link_of_any_rank_slows_all_down() {
        for slow in [0, 3] {
            let mut star = star(8);
            star.graph.links[slow].rate = BitsPerSec(800_000_000);
            let time = |it: &Collective| time(&star, it, 1);
            let ring = of(Operation::AllReduce, Algorithm::Ring, 8, 8000);
            let ring = Collective { chunks: 10, ..ring };
            assert_eq!(time(&ring), 14 * 10 * 1000 + 2000 + 1000, "{slow}");
            let halves = of(Operation::AllReduce, Algorithm::HalvingDoubling, 8, 800);
            assert_eq!(time(&halves), 2 * (3 * 2000 + 2 * (1000 + 2000 + 4000)), "{slow}");
            let direct = of(Operation::AllToAll, Algorithm::Direct, 8, 800);
            assert_eq!(time(&direct), 7 * 1000 + 2000 + 1000, "{slow}");
            // A leaf of one tree and an inner node of the other sends four halves, and the roots two.
            let trees = Collective { chunks: 1000, ..of(Operation::AllReduce, Algorithm::Tree, 8, 800_000) };
            let least = 1000 * 4000 * if slow == 0 { 2 } else { 4 };
            assert!((least..least + 100_000).contains(&time(&trees)), "{slow}");
        }
    }

    #[test]
    fn short_sums_take_trees_and_long_ones_rings() {
        let star = star(12);
        let fastest = |size: u64, ranks: u16| {
            let chunks = u32::try_from(size.div_ceil(100_000)).unwrap();
            let all: Vec<_> = Operation::AllReduce
                .weighed(ranks.into(), &[])
                .into_iter()
                .map(|algorithm| Collective { chunks, ..of(Operation::AllReduce, algorithm, ranks, size) })
                .filter(|it| it.check().is_ok())
                .collect();
            let mut network = Network::of(&star, PACKETS);
            let mut model = Model::new(&mut network, &all[0].ranks, 1, true);
            model.fastest(all.iter()).expect("they are joined").algorithm
        };
        assert_eq!([100, 100_000_000].map(|size| fastest(size, 12)), [Algorithm::Tree, Algorithm::Ring]);
        // A power of two of ranks has what takes no more than either.
        assert_eq!([100, 100_000].map(|size| fastest(size, 8)), [Algorithm::HalvingDoubling; 2]);
        let direct = |operation: Operation, ranks| operation.weighed(ranks, &[]).contains(&Algorithm::Direct);
        assert!(direct(Operation::AllGather, 64) && !direct(Operation::AllGather, 65));
        assert!(direct(Operation::AllToAll, 65));
        // Who names it has it among any number.
        assert_eq!(Operation::AllGather.weighed(65, &[Algorithm::Direct]), [Algorithm::Direct]);
        let two = [Algorithm::Tree, Algorithm::Ring];
        assert_eq!(Operation::AllReduce.weighed(8, &two), [Algorithm::Ring, Algorithm::Tree]);
        assert_eq!(Operation::AllToAll.weighed(8, &two), Operation::AllToAll.weighed(8, &[]));
    }
}
