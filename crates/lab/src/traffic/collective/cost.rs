//! How long collectives take by a plain model, by which the algorithm is chosen that takes least (`algorithm = "auto"`).
//!
//! The model is that of NCCL's tuner (`src/graph/tuning.cc`): a latency for each message that waits for one before it, apart for those within
//! servers and those among them, and the octets over a bandwidth. NCCL has the latencies and what algorithms make of the bandwidth from tables that
//! were measured; here they are the delays and rates of the scenario's own links, and what a NIC sends.
//!
//! | algorithm | messages one after the other | what a NIC sends |
//! | --- | --- | --- |
//! | ring | each step of each chunk; of these those that leave servers | all steps of all chunks |
//! | halving and doubling | each step, with its part of the data | the same |
//! | trees | up and down the chain of a server and the levels among servers, on which two meet | four halves of the data |
//! | direct | one | a shard for each other rank |
//! | over rails | one within the server, and one for all of its ranks | the shards for each other server |
//!
//! Where ranks have different amounts for one another, the busiest counts, be it that it sends or that it receives.
//!
//! Where each step waits for the one before it all around, chunks hide latency, so the longer of the two columns counts. Along trees and chains they
//! are a pipeline: the first chunk takes what the one column says, and each other follows by what it takes of a link.

use super::amounts::Matrix;
use super::network::{Line, Lines, Network, Packets};
use super::{Algorithm, Collective, Operation};
use roci_fabric::packet::HostId;
use roci_units::BitsPerSec;
use std::collections::BTreeMap;

/// Picoseconds. A chain of thousands of ranks with a TiB for each has more than 64 bits of them.
type Time = u128;

/// Among so many ranks all may send to each at once where that is not the usual way: by 4032 queue pairs.
const DIRECT_MOST: usize = 64;

/// The model of the collectives of some ranks.
#[derive(Clone, Debug)]
pub struct Model {
    lines: Lines,
    packets: Packets,
    per_server: u32,
}

impl Operation {
    /// The algorithms that are weighed against each other among so many ranks. A direct reduce-scatter or all-gather has a queue pair for each two,
    /// so that among many it is none.
    pub fn weighed(self, ranks: usize) -> impl Iterator<Item = Algorithm> {
        let usual = self.algorithms()[0];
        let is_weighed = move |it: &Algorithm| {
            *it != Algorithm::Direct || usual == Algorithm::Direct || ranks <= DIRECT_MOST
        };
        self.algorithms().iter().copied().filter(is_weighed)
    }
}

impl Model {
    /// That of ranks at `hosts`, of which so many in a row share a server; `listed` tells whether they stand in this order.
    pub fn new(network: &mut Network, hosts: &[HostId], per_server: u32, listed: bool) -> Self {
        Self { lines: network.lines(hosts, per_server, listed), packets: network.packets, per_server }
    }

    /// Of collectives that do the same that which takes least; of several the first. `None` where no network joins the ranks of any.
    pub fn fastest<'a>(&self, candidates: impl Iterator<Item = &'a Collective>) -> Option<&'a Collective> {
        candidates.filter_map(|it| Some((self.time(it)?, it))).min_by_key(|(time, _)| *time).map(|(_, it)| it)
    }

    /// How long `it` takes; `None` where nothing joins two of its ranks.
    pub fn time(&self, it: &Collective) -> Option<u128> {
        if let Some(matrix) = it.matrix() {
            return self.uneven(it, matrix);
        }
        match it.algorithm {
            Algorithm::Ring if it.operation.is_chain() => self.chain(it),
            Algorithm::Ring => self.ring(it),
            Algorithm::HalvingDoubling => self.halving_doubling(it),
            Algorithm::Tree => self.trees(it),
            Algorithm::Direct => self.direct(it),
            Algorithm::Pxn => self.over_rails(it),
        }
    }

    fn servers(&self, it: &Collective) -> u64 {
        u64::from(it.count() / self.per_server)
    }

    /// Steps of which each waits for the one before it: `steps` in all, so many of them among servers, with messages of so many octets.
    fn ring(&self, it: &Collective) -> Option<Time> {
        let (ranks, servers) = (u64::from(it.count()), self.servers(it));
        let steps = u64::from(it.schedule().steps());
        let among = steps / (ranks - 1) * (servers - 1);
        let octets = part(it, ranks);
        let mut load = Load::default();
        let mut alone = 0;
        if among > 0 {
            let line = self.lines.next?;
            alone += times(among, self.message(line, octets));
            let messages = u64::from(it.chunks) * steps * self.sharing(it);
            load.add(line, times(messages, self.link(line.rate, octets)));
        }
        if steps > among {
            let line = self.lines.within?;
            alone += times(steps - among, self.message(line, octets));
            let messages = u64::from(it.chunks) * steps * u64::from(it.channels);
            load.add(line, times(messages, self.link(line.rate, octets)));
        }
        Some(alone.max(load.longest()))
    }

    /// A chain that each chunk goes through by itself.
    fn chain(&self, it: &Collective) -> Option<Time> {
        let (ranks, servers) = (u64::from(it.count()), self.servers(it));
        let octets = part(it, 1);
        let mut alone = 0;
        let mut slowest = 0;
        for (links, line) in [(servers - 1, self.lines.next), (ranks - servers, self.lines.within)] {
            if links > 0 {
                let line = line?;
                alone += times(links, self.message(line, octets));
                slowest = slowest.max(self.link(line.rate, octets));
            }
        }
        Some(alone + times(u64::from(it.channels) * u64::from(it.chunks) - 1, slowest))
    }

    fn halving_doubling(&self, it: &Collective) -> Option<Time> {
        let octets = part(it, it.count().into());
        let rounds = if it.operation == Operation::AllReduce { 2 } else { 1 };
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let mut load = Load::default();
        let mut alone = 0;
        for (bit, line) in self.lines.doubled.iter().enumerate() {
            let (line, octets) = ((*line)?, octets << bit);
            let line = Line { rate: line.share, ..line };
            alone += times(rounds, self.message(line, octets));
            load.add(line, times(rounds * copies, self.link(line.rate, octets)));
        }
        Some(alone.max(load.longest()))
    }

    fn trees(&self, it: &Collective) -> Option<Time> {
        let servers = self.servers(it);
        let octets = part(it, 2);
        let levels = u64::from(servers.next_power_of_two().trailing_zeros());
        let chunks = u64::from(it.chunks);
        // The first chunk, and what all others take of the busiest link, those of other channels too.
        let (mut alone, mut rest) = (0, 0);
        if levels > 0 {
            let line = self.lines.along?;
            let link = self.link(line.rate, octets);
            // Two children's sums meet at their parent, and it sends its total to both; the root has one.
            alone += times(levels, self.message(line, octets)) + times(levels - 1, link);
            let others = chunks * self.sharing(it) - 1;
            rest = times(others * if servers > 2 { 4 } else { 2 }, link);
        }
        if self.per_server > 1 {
            let line = self.lines.within?;
            alone += times((self.per_server - 1).into(), self.message(line, octets));
            let others = chunks * u64::from(it.channels) - 1;
            let halves = if self.per_server > 2 { 4 } else { 2 };
            rest = rest.max(times(others * halves, self.link(line.rate, octets)));
        }
        Some(2 * alone + rest)
    }

    fn direct(&self, it: &Collective) -> Option<Time> {
        let octets = part(it, it.count().into());
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let (others, all) = (self.per_server - 1, it.count() - 1);
        let mut load = Load::default();
        let mut alone = 0;
        for (count, line) in [(others, self.lines.within), (all - others, self.lines.across)] {
            if count > 0 {
                let line = line?;
                alone = alone.max(self.message(line, octets));
                load.add(line, times(copies * u64::from(count), self.link(line.share, octets)));
            }
        }
        Some(alone.max(load.longest()))
    }

    fn over_rails(&self, it: &Collective) -> Option<Time> {
        let (others, servers) = (u64::from(self.per_server - 1), self.servers(it));
        let shard = part(it, it.count().into());
        let together = shard * u64::from(self.per_server);
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let within = self.lines.within?;
        let round = times(others, self.link(within.rate, shard));
        let mut load = Load::default();
        load.add(within, times(copies * servers, round));
        // What is for the first other server leaves when all ranks have theirs for it.
        let mut alone = self.message(within, shard) + round;
        if servers > 1 {
            let line = self.lines.along?;
            let rest = times(copies * (servers - 1), self.link(line.share, together));
            load.add(line, alone + rest);
            alone += self.message(line, together);
        }
        Some(alone.max(load.longest()))
    }

    /// Of what ranks have for one another all messages of one channel, and what the busiest NICs send and receive. Over rails the first way
    /// comes before all else.
    fn uneven(&self, it: &Collective, matrix: &Matrix) -> Option<Time> {
        let (schedule, over_rails) = (it.schedule(), it.algorithm == Algorithm::Pxn);
        let copies = u64::from(it.channels) * u64::from(it.chunks);
        let server = |place: u32| place / self.per_server;
        // Of each rank what it sends and receives within its server, and beyond.
        let mut busy = BTreeMap::<(u32, bool, bool), Time>::new();
        let (mut within, mut beyond) = (0, 0);
        for (.., message) in it.uneven_steps(0) {
            let (from, to) = schedule.ends(message.edge);
            let is_within = server(from) == server(to);
            let line = match (is_within, over_rails) {
                (true, _) => self.lines.within,
                (false, true) => self.lines.along,
                (false, false) => self.lines.across,
            };
            let line = line?;
            let octets = it.cut_sizes(matrix, 0, &message).1;
            let alone = self.message(line, octets);
            let longest = if is_within { &mut within } else { &mut beyond };
            *longest = alone.max(*longest);
            for (rank, sends) in [(from, true), (to, false)] {
                *busy.entry((rank, sends, is_within)).or_default() +=
                    times(copies, self.link(line.share, octets));
            }
        }
        let most = |is_within: bool| {
            let of = busy.iter().filter(|((.., it), _)| *it == is_within);
            of.map(|(_, busy)| *busy).max().unwrap_or(0)
        };
        let [in_servers, among] = [true, false].map(most);
        let one_nic = self.lines.within.zip(self.lines.across).is_none_or(|(a, b)| a.nic == b.nic);
        let links = match (over_rails, one_nic) {
            (true, _) => within.saturating_add(among).max(in_servers),
            (false, true) => in_servers + among,
            (false, false) => in_servers.max(among),
        };
        let alone = if over_rails { within + beyond } else { within.max(beyond) };
        let behind =
            self.lines.within.into_iter().chain(self.lines.across).map(|line| line.delay.as_ps()).max();
        Some(alone.max(links + Time::from(behind.unwrap_or(0))))
    }

    /// How many channels leave a server by one NIC.
    fn sharing(&self, it: &Collective) -> u64 {
        it.channels.div_ceil(self.per_server).into()
    }

    /// How long a link of `rate` is busy with a message.
    fn link(&self, rate: BitsPerSec, octets: u64) -> Time {
        (Time::from(self.packets.on_the_wire(octets)) * 8_000_000_000_000).div_ceil(rate.0.max(1).into())
    }

    /// How long a message takes that is alone: switches send a packet on when they have all of it.
    fn message(&self, line: Line, octets: u64) -> Time {
        let packet = self.link(line.rate, octets.min(self.packets.mtu.into()));
        Time::from(line.delay.as_ps()) + self.link(line.rate, octets) + times((line.links - 1).into(), packet)
    }
}

/// What NICs have to send.
#[derive(Default)]
struct Load {
    /// Of each NIC how long that takes, and how long the last octet is on its way.
    of: BTreeMap<HostId, (Time, Time)>,
}

impl Load {
    fn add(&mut self, line: Line, busy: Time) {
        let load = self.of.entry(line.nic).or_default();
        *load = (load.0 + busy, load.1.max(line.delay.as_ps().into()));
    }

    fn longest(&self) -> Time {
        self.of.values().map(|(busy, behind)| busy + behind).max().unwrap_or(0)
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
    const PACKETS: Packets = Packets { mtu: 1000, around: 0 };

    fn star(hosts: u32) -> Topology {
        Star { hosts, rate: BitsPerSec::from_gbps(8), delay: Span::from_micros(1) }.build().unwrap()
    }

    fn of(operation: Operation, algorithm: Algorithm, ranks: u16, size: u64) -> Collective {
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
    fn time(topology: &Topology, it: &Collective, per_server: u32) -> u128 {
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
        assert_eq!(time(&direct), 7 * 1000 + 2000);
        let chain = of(Operation::Broadcast, Algorithm::Ring, 8, 1000);
        assert_eq!(time(&chain), 7 * message(1000));
        // Chunks hide delays of a ring until its links have no gap, and make pipelines of trees and chains.
        let ring = Collective { chunks: 100, size: Bytes(800_000), ..ring };
        assert_eq!(time(&ring), 14 * 100_000 + 2000);
        let trees = Collective { chunks: 1000, size: Bytes(800_000), ..trees };
        assert_eq!(time(&trees), 2 * (3 * message(400) + 2 * 400) + 999 * 4 * 400);
        // Channels share the NIC, whether or not there are chunks.
        let four = Collective { channels: 4, chunks: 1, size: Bytes(3200), ..trees };
        assert_eq!(time(&four), 2 * (3 * message(400) + 2 * 400) + 3 * 4 * 400);
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
        let ring = of(Operation::AllReduce, Algorithm::Ring, 8, 800);
        // Two of fourteen steps leave the server.
        assert_eq!(time(&rails, &ring, 4), 2 * (20_000 + 200) + 12 * (2000 + 20));
        let one = Collective { size: Bytes(8_000_000), ..ring.clone() };
        let four = Collective { channels: 4, ..one.clone() };
        assert_eq!(time(&rails, &one, 4), 14 * 1_000_000 + 20_000);
        assert_eq!(time(&rails, &four, 4), 14 * 250_000 + 20_000);
        let trees = of(Operation::AllReduce, Algorithm::Tree, 8, 800);
        assert_eq!(time(&rails, &trees, 4), 2 * (20_000 + 800 + 3 * (2000 + 80)));
        let over_rails = of(Operation::AllToAll, Algorithm::Pxn, 8, 800);
        let first = 2000 + 20 + 3 * 10;
        assert_eq!(time(&rails, &over_rails, 4), first + 20_000 + 400 + 400);
        // Nothing joins the rails.
        let direct = of(Operation::AllToAll, Algorithm::Direct, 8, 800);
        let model = Model::new(&mut Network::of(&rails, PACKETS), &direct.ranks, 4, true);
        assert_eq!(model.time(&direct), None);
        let fastest = model.fastest([&direct, &over_rails].into_iter()).expect("the other");
        assert_eq!(fastest.algorithm, Algorithm::Pxn);
    }

    #[test]
    fn short_sums_take_trees_and_long_ones_rings() {
        let star = star(12);
        let fastest = |size: u64, ranks: u16| {
            let chunks = u32::try_from(size.div_ceil(100_000)).unwrap();
            let all: Vec<_> = Operation::AllReduce
                .weighed(ranks.into())
                .map(|algorithm| Collective { chunks, ..of(Operation::AllReduce, algorithm, ranks, size) })
                .filter(|it| it.check().is_ok())
                .collect();
            let model = Model::new(&mut Network::of(&star, PACKETS), &all[0].ranks, 1, true);
            model.fastest(all.iter()).expect("they are joined").algorithm
        };
        assert_eq!([100, 100_000_000].map(|size| fastest(size, 12)), [Algorithm::Tree, Algorithm::Ring]);
        // A power of two of ranks has what takes no more than either.
        assert_eq!([100, 100_000].map(|size| fastest(size, 8)), [Algorithm::HalvingDoubling; 2]);
        let direct = |operation: Operation, ranks| operation.weighed(ranks).any(|it| it == Algorithm::Direct);
        assert!(direct(Operation::AllGather, 64) && !direct(Operation::AllGather, 65));
        assert!(direct(Operation::AllToAll, 65));
    }
}
