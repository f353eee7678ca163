//! Collective operations: who sends which part of the data to whom, and what it must have received before.
//!
//! The data of each rank, of each channel and of each chunk are cut into as many shards as there are ranks. A [`Schedule`] tells
//! of each rank and step which shards it sends to which other; all sizes follow from that. It is computed when it is asked
//! for: that of a ring of a thousand ranks has two million messages.

use super::spec::Common;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Ratio, Span};
use std::collections::{BTreeMap, BTreeSet};

pub mod amounts;
mod cost;
mod network;
mod pairs;
mod pxn;
mod schedule;
pub mod tree;
mod uneven;

pub use amounts::Amounts;
pub use cost::Model;
pub use network::{Network, Packets};
pub use pairs::{Carried, Pairs};
pub use schedule::{Message, Schedule};

/// What a collective does (`operation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The sum of all ranks' data, on each rank.
    AllReduce,
    /// The sum of all ranks' data, one shard of it on each rank.
    ReduceScatter,
    /// Each rank's shard, on all ranks.
    AllGather,
    /// Of each rank a shard of its own to each rank.
    AllToAll,
    /// The data of the root, on all ranks.
    Broadcast,
    /// The sum of all ranks' data, on the root.
    Reduce,
    /// Each rank's shard, on the root.
    Gather,
    /// Of the root a shard to each rank.
    Scatter,
}

impl Operation {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 8] = [
        Self::AllReduce,
        Self::ReduceScatter,
        Self::AllGather,
        Self::AllToAll,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
    ];

    /// How scenarios and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
        }
    }

    /// The algorithms that it has, the usual one first.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        match self {
            Self::AllReduce => &[Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Tree],
            Self::ReduceScatter | Self::AllGather => {
                &[Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Direct]
            }
            Self::AllToAll => &[Algorithm::Direct, Algorithm::Pxn],
            Self::Broadcast | Self::Reduce => &[Algorithm::Ring],
            Self::Gather | Self::Scatter => &[Algorithm::Direct],
        }
    }

    /// Whether one rank has a part of its own.
    pub const fn has_root(self) -> bool {
        self.is_chain() || matches!(self, Self::Gather | Self::Scatter)
    }

    /// Whether a ring of it is a chain, to the root or from it.
    pub const fn is_chain(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce)
    }

    /// Bus bandwidth over algorithm bandwidth among so many ranks, at least 2: the share of `size` that each rank, or the root, must
    /// send or receive at least (nccl-tests, doc/PERFORMANCE.md).
    pub fn bus_factor(self, ranks: u32) -> Ratio {
        match self {
            Self::AllReduce => Ratio::new(2 * (ranks - 1), ranks),
            Self::ReduceScatter | Self::AllGather | Self::AllToAll | Self::Gather | Self::Scatter => {
                Ratio::new(ranks - 1, ranks)
            }
            Self::Broadcast | Self::Reduce => Ratio::new(1, 1),
        }
    }
}

/// How it does it (`algorithm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each rank sends to the next only; from or to a root, in a chain.
    Ring,
    /// Pairs of ranks exchange halves, then quarters, and so on; or the other way round (Rabenseifner's algorithm).
    HalvingDoubling,
    /// Sums go up two binary trees among servers, each with half of the data, and their totals come down ([`tree`]).
    Tree,
    /// Each rank sends to each other, all at once; from or to a root, the root alone or to it alone.
    Direct,
    /// The same over the rails of servers: what is for another rail goes to that rail within the server first, and from there together with
    /// what the other ranks of the server have for the same rank.
    Pxn,
}

impl Algorithm {
    /// How scenarios and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::HalvingDoubling => "halving-doubling",
            Self::Tree => "tree",
            Self::Direct => "direct",
            Self::Pxn => "pxn",
        }
    }
}

/// A collective operation among hosts, once or again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// What it does.
    pub operation: Operation,
    /// How.
    pub algorithm: Algorithm,
    /// The host of each rank.
    pub ranks: Vec<HostId>,
    /// So many ranks in a row are on one server, 1 to all; they are divided evenly. Channels go through them as
    /// [`Collective::rank_at`] says.
    pub per_server: u32,
    /// The root, where the operation has one; else 0.
    pub root: u32,
    /// Whether the ranks are dealt to these hosts at random instead of in their order (`placement`).
    pub shuffled: bool,
    /// Octets of a rank's data, as NCCL's tests count: of what goes in, and of an all-gather of what comes out; of a gather what comes out at the root,
    /// and of a scatter what goes in there; of a matrix the most that a rank sends or receives, its own included.
    pub size: Bytes,
    /// Of an all-to-all whose ranks have different amounts for one another, which these are.
    pub amounts: Option<Amounts>,
    /// Parallel copies, each with queue pairs of its own and its part of the data; at least 1.
    pub channels: u32,
    /// Into how many parts each channel's data are cut that go their way by themselves; 1 to [`CHUNKS_MAX`].
    pub chunks: u32,
    /// How often, at least 1.
    pub iterations: u32,
    /// From the end of one iteration to the start of the next.
    pub gap: Span,
    /// When the first begins.
    pub start: Instant,
    /// Priority and control. Its messages are WRITEs with immediate.
    pub common: Common,
}

/// So many chunks at most: step and chunk of a message are told apart by the 32 bits of its immediate.
pub const CHUNKS_MAX: u32 = 1 << 14;
/// The longest message of a collective.
pub const MESSAGE_MAX: u64 = 1 << 30;

/// What is wrong with a collective, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveFault {
    /// A single rank, or none.
    #[error("a collective among {0} hosts; it takes two ranks at least, so list more `hosts`")]
    TooFewRanks(usize),
    /// A host stands in the list twice.
    #[error("a host has two ranks; list each of `hosts` once")]
    TwoRanks(HostId),
    /// The operation has no such algorithm.
    #[error("`{}` has no algorithm `{}`; those that it has are {}", .0.name(), .1.name(), names(*.0))]
    NoAlgorithm(Operation, Algorithm),
    /// The root is no rank.
    #[error("there is no rank {0} to be the root; name one of 0 to {last}", last = .1 - 1)]
    NoRoot(u32, u32),
    /// Servers would have different numbers of ranks.
    #[error(
        "{0} ranks are not divided evenly into servers of {1}; list a multiple of {1} `hosts`, or set another number"
    )]
    UnevenServers(u32, u32),
    /// Only rings that end where they begin, trees and all-to-alls over rails know servers.
    #[error(
        "`{}` by `{}` knows no servers; leave it out{}", .0.name(), .1.name(),
        if *.0 == Operation::AllToAll { ", or set `algorithm = \"pxn\"`" } else { "" }
    )]
    KnowsNoServers(Operation, Algorithm),
    /// There is nobody to bring data to another rail.
    #[error(
        "`pxn` has the other ranks of a server send on what is for their rails, and each server has one rank; set \
         `ranks_per_server` to 2 or more, or `algorithm = \"direct\"`"
    )]
    NoRails,
    /// Halving and doubling is for powers of two.
    #[error(
        "`halving-doubling` among {count} ranks, which is no power of two; list {less} or {more} of `hosts`, or set \
         `algorithm = \"ring\"`",
        count = .0, less = .0.next_power_of_two() / 2, more = .0.next_power_of_two()
    )]
    NoPowerOfTwo(u32),
    /// A matrix is for another number of ranks.
    #[error("{0} rows for {1} ranks; write one for each rank, in the order of `hosts`")]
    OtherRanks(u32, u32),
    /// No rank sends anything to another.
    #[error("no rank sends anything to another; write above zero what some do")]
    Nothing,
    /// Messages of a matrix would be empty.
    #[error(
        "a rank has {0} for another, which goes in {1} messages; set `chunks` or `channels` to less, or leave it out as 0"
    )]
    TooFew(Bytes, u64),
    /// Tokens would have no octet for each message.
    #[error(
        "{size} in {tokens} tokens are less than an octet for each of {messages} messages; set `tokens` to less, or `size` to more"
    )]
    SmallTokens {
        /// The size.
        size: Bytes,
        /// How many tokens.
        tokens: u32,
        /// In how many messages each goes.
        messages: u64,
    },
    /// Messages would be empty.
    #[error("{size} are fewer octets than there are messages in a step, {messages}; set `size` to {messages} octets or more{}", fewer(*.more))]
    TooSmall {
        /// The size.
        size: Bytes,
        /// Shards of all chunks of all channels.
        messages: u64,
        /// Whether fewer chunks or channels would help too.
        more: bool,
    },
    /// A message would be longer than messages may be.
    #[error("messages of {length}, and 1GiB is the most; set `chunks` to {} or more", length.0.div_ceil(MESSAGE_MAX).saturating_mul(*chunks))]
    TooLong {
        /// Octets of the longest.
        length: Bytes,
        /// Into how many chunks data are cut.
        chunks: u64,
    },
}

impl CollectiveFault {
    /// The key of a scenario that is to blame.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::TooFewRanks(_) | Self::TwoRanks(_) => "hosts",
            Self::NoRoot(..) => "root",
            Self::UnevenServers(..) | Self::KnowsNoServers(..) | Self::NoRails => "ranks_per_server",
            Self::NoAlgorithm(..) | Self::NoPowerOfTwo(_) => "algorithm",
            Self::OtherRanks(..) | Self::Nothing | Self::TooFew(..) => "matrix",
            Self::SmallTokens { .. } => "tokens",
            Self::TooSmall { .. } | Self::TooLong { .. } => "size",
        }
    }
}

fn names(operation: Operation) -> String {
    let names: Vec<_> = operation.algorithms().iter().map(|it| format!("`{}`", it.name())).collect();
    names.join(", ")
}

const fn fewer(more: bool) -> &'static str {
    if more { ", or `chunks` or `channels` to less" } else { "" }
}

impl Collective {
    /// Whether it can be done.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(&self) -> Result<(), CollectiveFault> {
        if self.ranks.len() < 2 {
            return Err(CollectiveFault::TooFewRanks(self.ranks.len()));
        }
        let mut seen = BTreeSet::new();
        if let Some(&twice) = self.ranks.iter().find(|host| !seen.insert(host.0)) {
            return Err(CollectiveFault::TwoRanks(twice));
        }
        if !self.operation.algorithms().contains(&self.algorithm) {
            return Err(CollectiveFault::NoAlgorithm(self.operation, self.algorithm));
        }
        if self.per_server == 1 && self.algorithm == Algorithm::Pxn {
            return Err(CollectiveFault::NoRails);
        }
        let ranks = self.count();
        if self.root >= ranks {
            return Err(CollectiveFault::NoRoot(self.root, ranks));
        }
        if self.per_server > 1 {
            if !self.knows_servers() {
                return Err(CollectiveFault::KnowsNoServers(self.operation, self.algorithm));
            }
            if !ranks.is_multiple_of(self.per_server) {
                return Err(CollectiveFault::UnevenServers(ranks, self.per_server));
            }
        }
        let schedule = self.schedule();
        if self.algorithm == Algorithm::HalvingDoubling && !ranks.is_power_of_two() {
            return Err(CollectiveFault::NoPowerOfTwo(ranks));
        }
        if self.amounts.is_some() {
            return self.check_amounts();
        }
        let parts = u64::from(self.channels) * u64::from(self.chunks);
        let messages = u64::from(schedule.shards()).saturating_mul(parts);
        if self.size.0 < messages {
            return Err(CollectiveFault::TooSmall { size: self.size, messages, more: parts > 1 });
        }
        let longest = u64::from(schedule.longest()) * self.size.0.div_ceil(messages);
        if longest > MESSAGE_MAX {
            return Err(CollectiveFault::TooLong { length: Bytes(longest), chunks: self.chunks.into() });
        }
        Ok(())
    }

    /// The same by each algorithm that is weighed ([`Operation::weighed`]), of those that are `named` if any are, whether or not it can do it, where so
    /// many ranks in a row share a server.
    pub fn by_each(&self, per_server: u32, named: &[Algorithm]) -> Vec<Self> {
        let by = |algorithm| {
            let mut it = Self { algorithm, per_server, ..self.clone() };
            if !it.knows_servers() {
                it.per_server = 1;
            }
            it
        };
        self.operation.weighed(self.ranks.len(), named).into_iter().map(by).collect()
    }

    /// Who sends what to whom.
    pub fn schedule(&self) -> Schedule {
        Schedule::new(self.operation, self.algorithm, self.count(), self.per_server)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.ranks.len()).unwrap_or(u32::MAX)
    }

    /// Whether it goes other ways where several ranks share a server.
    pub fn knows_servers(&self) -> bool {
        match self.algorithm {
            Algorithm::Ring => !self.operation.is_chain(),
            Algorithm::Tree | Algorithm::Pxn => true,
            Algorithm::HalvingDoubling | Algorithm::Direct => false,
        }
    }

    /// The rank at a place of the schedule of `channel`.
    ///
    /// Where servers have several ranks, each channel begins with another of them, so that all their NICs carry as much. A ring leaves a server at
    /// an even place by the rank before the one that it is entered at, the next is entered at the same place, and gone through the
    /// other way round. So with an even number of servers all that goes from server to server stays on a rail, as it does in trees, whose heads
    /// are at one place in all servers.
    ///
    /// Chains begin or end at the root, and what knows no servers begins there; others follow it in their order.
    pub fn rank_at(&self, channel: u32, place: u32) -> u32 {
        if self.operation.has_root() {
            return (place + self.first_place()) % self.count();
        }
        let (server, local) = (place / self.per_server, place % self.per_server);
        server * self.per_server + self.turned(server, channel, local)
    }

    /// The place of `rank` in the schedule of `channel`.
    pub fn place_of(&self, channel: u32, rank: u32) -> u32 {
        if self.operation.has_root() {
            return (rank + self.count() - self.first_place()) % self.count();
        }
        // Of a server that is gone through forwards this turns the other way.
        let (server, local) = (rank / self.per_server, rank % self.per_server);
        let first = channel % self.per_server;
        let local = if self.is_forwards(server) {
            (local + self.per_server - first) % self.per_server
        } else {
            self.turned(server, channel, local)
        };
        server * self.per_server + local
    }

    /// The rank that stands first where there is a root: the root, or the one behind it where that stands last.
    fn first_place(&self) -> u32 {
        let behind = u32::from(self.operation == Operation::Reduce);
        (self.root + behind) % self.count()
    }

    const fn turned(&self, server: u32, channel: u32, local: u32) -> u32 {
        let first = channel % self.per_server;
        let from_first = if self.is_forwards(server) { local } else { self.per_server - 1 - local };
        (first + from_first) % self.per_server
    }

    const fn is_forwards(&self, server: u32) -> bool {
        server.is_multiple_of(2) || !matches!(self.algorithm, Algorithm::Ring)
    }

    /// How many kinds of schedules its channels have: the first so many have one each, and those behind them the same in turn.
    pub fn kinds(&self) -> u32 {
        self.channels.min(self.per_server)
    }

    /// The octets of the shortest and of the longest message of a queue pair, of those of all channels; they differ by a few.
    fn message_sizes(&self, schedule: &Schedule, edge: u32) -> (u64, u64) {
        let (of, shards) = (u64::from(schedule.edge_shards(edge)), u64::from(schedule.shards()));
        let (channels, chunks) = (u64::from(self.channels), u64::from(self.chunks));
        let least = self.size.0 / channels / chunks;
        let most = self.size.0.div_ceil(channels).div_ceil(chunks);
        let sources = u64::from(schedule.edge_sources(edge));
        (sources * (least * of / shards), sources * (most * of).div_ceil(shards))
    }

    /// The octets that each queue pair of `channel` carries in one iteration.
    pub fn octets_by_edge(&self, channel: u32) -> Vec<u64> {
        if let Some(matrix) = self.matrix() {
            return self.uneven_octets(matrix, channel);
        }
        let schedule = self.schedule();
        let channel = share(self.size.0, self.channels, channel);
        // Chunks have one of two sizes.
        let mut sizes = BTreeMap::<u64, u64>::new();
        for chunk in 0..self.chunks {
            *sizes.entry(share(channel, self.chunks, chunk)).or_default() += 1;
        }
        if let Some(octets) = self.octets_of_ring(&schedule, &sizes) {
            return octets;
        }
        let mut octets = vec![0; schedule.edges() as usize];
        for rank in 0..schedule.ranks() {
            for message in (0..schedule.steps()).filter_map(|step| schedule.message(rank, step)) {
                let of = |size: u64| within(size, &schedule, &message);
                octets[message.edge as usize] +=
                    sizes.iter().map(|(size, count)| of(*size) * count).sum::<u64>();
            }
        }
        octets
    }

    /// The same of a ring that ends where it begins, whose steps are as many as its ranks: in half of an all-reduce, or in all of another operation,
    /// all shards but one go by each queue pair.
    fn octets_of_ring(&self, schedule: &Schedule, sizes: &BTreeMap<u64, u64>) -> Option<Vec<u64>> {
        // Of the shards of a rank and of the one behind it, which stay.
        let (own, next) = match (self.algorithm, self.operation) {
            (Algorithm::Ring, Operation::AllReduce) => (1, 1),
            (Algorithm::Ring, Operation::ReduceScatter) => (1, 0),
            (Algorithm::Ring, Operation::AllGather) => (0, 1),
            _ => return None,
        };
        let ranks = schedule.ranks();
        let of_rank = |rank: u32| {
            let of = |(size, count): (&u64, &u64)| {
                let (own_shard, next_shard) =
                    (share(*size, ranks, rank), share(*size, ranks, (rank + 1) % ranks));
                ((own + next) * size - own * own_shard - next * next_shard) * count
            };
            sizes.iter().map(of).sum()
        };
        Some((0..ranks).map(of_rank).collect())
    }

    /// Octets of a message of a chunk of a channel.
    pub fn octets(&self, channel: u32, chunk: u32, message: &Message) -> u64 {
        if let Some(matrix) = self.matrix() {
            let of_chunk = |octets| share(share(octets, self.channels, channel), self.chunks, chunk);
            return self.entries(matrix, channel, message).map(of_chunk).sum();
        }
        let channel = share(self.size.0, self.channels, channel);
        within(share(channel, self.chunks, chunk), &self.schedule(), message)
    }
}

/// Where place `place` of `parts` as equal as may be begins in `total` octets. The product fits: `parts` has 16 bits or so,
/// and `total` 40.
fn cut(total: u64, parts: u32, place: u32) -> u64 {
    total * u64::from(place) / u64::from(parts)
}

/// Octets of a message of a chunk of `size` octets.
fn within(size: u64, schedule: &Schedule, message: &Message) -> u64 {
    let at = |shard| cut(size, schedule.shards(), shard);
    u64::from(message.sources) * (at(message.shards.end) - at(message.shards.start))
}

fn share(total: u64, parts: u32, place: u32) -> u64 {
    cut(total, parts, place + 1) - cut(total, parts, place)
}

#[cfg(test)]
mod tests;
