//! Collective operations: who sends which part of the data to whom, and what it must have received before.
//!
//! The data of each rank, of each channel and of each chunk are cut into as many shards as there are ranks. A [`Schedule`] tells
//! of each rank and step which shards it sends to which other; all sizes follow from that. It is computed when it is asked
//! for: that of a ring of a thousand ranks has two million messages.

use super::spec::Common;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Ratio, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use tree::Tree;

pub mod tree;

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
    /// The data of the first rank, on all ranks.
    Broadcast,
}

impl Operation {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 5] =
        [Self::AllReduce, Self::ReduceScatter, Self::AllGather, Self::AllToAll, Self::Broadcast];

    /// How scenarios and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
            Self::Broadcast => "broadcast",
        }
    }

    /// The algorithms that it has, the usual one first.
    pub const fn algorithms(self) -> &'static [Algorithm] {
        match self {
            Self::AllReduce => &[Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Tree],
            Self::ReduceScatter | Self::AllGather => {
                &[Algorithm::Ring, Algorithm::HalvingDoubling, Algorithm::Direct]
            }
            Self::AllToAll => &[Algorithm::Direct],
            Self::Broadcast => &[Algorithm::Ring],
        }
    }

    /// Bus bandwidth over algorithm bandwidth among so many ranks, at least 2: the share of `size` that each rank must
    /// send at least (nccl-tests, doc/PERFORMANCE.md).
    pub fn bus_factor(self, ranks: u32) -> Ratio {
        match self {
            Self::AllReduce => Ratio::new(2 * (ranks - 1), ranks),
            Self::ReduceScatter | Self::AllGather | Self::AllToAll => Ratio::new(ranks - 1, ranks),
            Self::Broadcast => Ratio::new(1, 1),
        }
    }
}

/// How it does it (`algorithm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each rank sends to the next only; of a broadcast, to the last.
    Ring,
    /// Pairs of ranks exchange halves, then quarters, and so on; or the other way round (Rabenseifner's algorithm).
    HalvingDoubling,
    /// Sums go up two binary trees, each with half of the data, and their totals come down ([`tree`]).
    Tree,
    /// Each rank sends to each other, all at once.
    Direct,
}

impl Algorithm {
    /// How scenarios and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::HalvingDoubling => "halving-doubling",
            Self::Tree => "tree",
            Self::Direct => "direct",
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
    /// So many ranks in a row are on one server, 1 to all; they are divided evenly. Rings of several channels go through them as
    /// [`Collective::rank_at`] says.
    pub per_server: u32,
    /// Whether the ranks are dealt to these hosts at random instead of in their order (`placement`).
    pub shuffled: bool,
    /// Octets of a rank's data, as NCCL's tests count: of what goes in, and of an all-gather of what comes out.
    pub size: Bytes,
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
    /// Servers would have different numbers of ranks.
    #[error(
        "{0} ranks are not divided evenly into servers of {1}; list a multiple of {1} `hosts`, or set another number"
    )]
    UnevenServers(u32, u32),
    /// Only rings that end where they begin have an order of servers.
    #[error("`{}` by `{}` has no rings through servers; leave it out", .0.name(), .1.name())]
    NoRings(Operation, Algorithm),
    /// Halving and doubling is for powers of two.
    #[error(
        "`halving-doubling` among {count} ranks, which is no power of two; list {less} or {more} of `hosts`, or set \
         `algorithm = \"ring\"`",
        count = .0, less = .0.next_power_of_two() / 2, more = .0.next_power_of_two()
    )]
    NoPowerOfTwo(u32),
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
            Self::UnevenServers(..) | Self::NoRings(..) => "ranks_per_server",
            Self::NoAlgorithm(..) | Self::NoPowerOfTwo(_) => "algorithm",
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
        let schedule = self.schedule();
        if self.algorithm == Algorithm::HalvingDoubling && !schedule.ranks.is_power_of_two() {
            return Err(CollectiveFault::NoPowerOfTwo(schedule.ranks));
        }
        if self.per_server > 1 {
            if self.algorithm != Algorithm::Ring || self.operation == Operation::Broadcast {
                return Err(CollectiveFault::NoRings(self.operation, self.algorithm));
            }
            if !schedule.ranks.is_multiple_of(self.per_server) {
                return Err(CollectiveFault::UnevenServers(schedule.ranks, self.per_server));
            }
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

    /// Who sends what to whom.
    pub fn schedule(&self) -> Schedule {
        let ranks = u32::try_from(self.ranks.len()).unwrap_or(u32::MAX);
        Schedule { operation: self.operation, algorithm: self.algorithm, ranks }
    }

    /// The rank at a place of the ring of `channel`.
    ///
    /// Where servers have several ranks, each channel enters and leaves them at others, so that all their NICs carry as much: a server at an
    /// even place is left by the rank before the one that it is entered at, the next is entered at the same place, and gone through the
    /// other way round. So with an even number of servers all that goes from server to server stays on a rail.
    pub const fn rank_at(&self, channel: u32, place: u32) -> u32 {
        let (server, local) = (place / self.per_server, place % self.per_server);
        server * self.per_server + self.turned(server, channel, local)
    }

    /// The place of `rank` in the ring of `channel`.
    pub const fn place_of(&self, channel: u32, rank: u32) -> u32 {
        // Of an even server this turns the other way.
        let (server, local) = (rank / self.per_server, rank % self.per_server);
        let first = channel % self.per_server;
        let local = if server.is_multiple_of(2) {
            (local + self.per_server - first) % self.per_server
        } else {
            self.turned(server, channel, local)
        };
        server * self.per_server + local
    }

    const fn turned(&self, server: u32, channel: u32, local: u32) -> u32 {
        let first = channel % self.per_server;
        let from_first = if server.is_multiple_of(2) { local } else { self.per_server - 1 - local };
        (first + from_first) % self.per_server
    }

    /// How many kinds of rings its channels have: the first so many have one each, and those behind them the same in turn.
    pub fn kinds(&self) -> u32 {
        self.channels.min(self.per_server)
    }

    /// Queue pairs of all channels.
    pub fn queue_pairs(&self) -> u32 {
        self.channels.saturating_mul(self.schedule().edges())
    }

    /// Messages of a queue pair over all iterations.
    pub fn messages(&self) -> u64 {
        u64::from(self.schedule().uses()) * u64::from(self.chunks) * u64::from(self.iterations)
    }

    /// The octets of the shortest and of the longest message of a queue pair, of those of all channels; they differ by a few.
    pub fn message_sizes(&self, edge: u32) -> (u64, u64) {
        let schedule = self.schedule();
        let (of, shards) = (u64::from(schedule.edge_shards(edge)), u64::from(schedule.shards()));
        let (channels, chunks) = (u64::from(self.channels), u64::from(self.chunks));
        let least = self.size.0 / channels / chunks;
        let most = self.size.0.div_ceil(channels).div_ceil(chunks);
        (least * of / shards, (most * of).div_ceil(shards))
    }

    /// The octets that each queue pair of `channel` carries in one iteration.
    pub fn octets_by_edge(&self, channel: u32) -> Vec<u64> {
        let schedule = self.schedule();
        let channel = share(self.size.0, self.channels, channel);
        // Chunks have one of two sizes.
        let mut sizes = BTreeMap::<u64, u64>::new();
        for chunk in 0..self.chunks {
            *sizes.entry(share(channel, self.chunks, chunk)).or_default() += 1;
        }
        let mut octets = vec![0; schedule.edges() as usize];
        for rank in 0..schedule.ranks {
            for message in (0..schedule.steps()).filter_map(|step| schedule.message(rank, step)) {
                let Range { start, end } = message.shards;
                let of = |size: u64| cut(size, schedule.shards(), end) - cut(size, schedule.shards(), start);
                octets[message.edge as usize] +=
                    sizes.iter().map(|(size, count)| of(*size) * count).sum::<u64>();
            }
        }
        octets
    }

    /// Octets of the `shards` of a chunk of a channel.
    pub fn octets(&self, channel: u32, chunk: u32, shards: &Range<u32>) -> u64 {
        let channel = share(self.size.0, self.channels, channel);
        let chunk = share(channel, self.chunks, chunk);
        let all = self.schedule().shards();
        cut(chunk, all, shards.end) - cut(chunk, all, shards.start)
    }
}

/// Where place `place` of `parts` as equal as may be begins in `total` octets. The product fits: `parts` has 16 bits or so,
/// and `total` 40.
fn cut(total: u64, parts: u32, place: u32) -> u64 {
    total * u64::from(place) / u64::from(parts)
}

fn share(total: u64, parts: u32, place: u32) -> u64 {
    cut(total, parts, place + 1) - cut(total, parts, place)
}

/// What a rank sends in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue pair, of its channel's.
    pub edge: u32,
    /// The rank that it goes to.
    pub to: u32,
    /// The shards that it brings.
    pub shards: Range<u32>,
    /// Whether the receiver adds them to what it has; else it puts them in its place.
    pub adds: bool,
}

/// Who sends which shards to whom in which step, of each chunk alike.
///
/// A rank sends the message of step `s` + 1 when it has received those of all steps up to `s` ([`Schedule::follows`]); those of
/// [`Schedule::at_once`] it sends without having received any. In trees steps are not rounds: each tree has four, sums from child 0
/// and from child 1, and totals to child 0 and to child 1. Of `edge`s, the queue pairs of a channel, each leads from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    operation: Operation,
    algorithm: Algorithm,
    ranks: u32,
}

impl Schedule {
    /// How it is done.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// How many ranks there are.
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Into how many shards data are cut.
    pub const fn shards(&self) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Broadcast, _) => 1,
            (_, Algorithm::Tree) => 2,
            _ => self.ranks,
        }
    }

    /// Shards of the longest message.
    const fn longest(&self) -> u32 {
        match self.algorithm {
            Algorithm::HalvingDoubling => self.ranks / 2,
            Algorithm::Ring | Algorithm::Direct | Algorithm::Tree => 1,
        }
    }

    /// The number of steps.
    pub const fn steps(&self) -> u32 {
        let once = match self.algorithm {
            Algorithm::HalvingDoubling => self.bits(),
            Algorithm::Ring | Algorithm::Direct => self.ranks - 1,
            Algorithm::Tree => TREE_STEPS,
        };
        match self.operation {
            Operation::AllReduce => 2 * once,
            _ => once,
        }
    }

    /// The queue pairs of a channel that each rank sends with; of a broadcast the last rank has none.
    const fn fan(&self) -> u32 {
        match self.algorithm {
            Algorithm::Ring => 1,
            Algorithm::HalvingDoubling => self.bits(),
            Algorithm::Direct => self.ranks - 1,
            Algorithm::Tree => 0, // it differs from rank to rank
        }
    }

    /// How many messages of a chunk a queue pair carries in an iteration.
    const fn uses(&self) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Broadcast, _) | (_, Algorithm::Direct | Algorithm::Tree) => 1,
            (_, Algorithm::Ring) => self.steps(),
            (Operation::AllReduce, Algorithm::HalvingDoubling) => 2,
            (_, Algorithm::HalvingDoubling) => 1,
        }
    }

    /// Shards of each message of a queue pair.
    pub const fn edge_shards(&self, edge: u32) -> u32 {
        match self.algorithm {
            Algorithm::HalvingDoubling => 1 << (edge % self.bits()),
            Algorithm::Ring | Algorithm::Direct | Algorithm::Tree => 1,
        }
    }

    const fn bits(&self) -> u32 {
        self.ranks.trailing_zeros()
    }

    /// The queue pairs of a channel.
    pub const fn edges(&self) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Broadcast, _) => self.ranks - 1,
            // Up and down each line of two trees.
            (_, Algorithm::Tree) => 4 * (self.ranks - 1),
            _ => self.ranks * self.fan(),
        }
    }

    /// One of the two trees.
    pub const fn tree(&self, second: bool) -> Tree {
        Tree::new(self.ranks, second)
    }

    /// The queue pair that leads from `node` of a tree up to its parent, or back down.
    pub const fn line(&self, second: bool, node: u32, down: bool) -> u32 {
        (second as u32 * 2 + down as u32) * (self.ranks - 1) + node - 1
    }

    /// The tree of a step, and which of its steps it is.
    const fn of_tree(&self, step: u32) -> (bool, Tree, u32) {
        let second = step >= TREE_STEPS;
        (second, self.tree(second), step % TREE_STEPS)
    }

    /// The ranks that a queue pair leads from and to.
    pub const fn ends(&self, edge: u32) -> (u32, u32) {
        if matches!(self.algorithm, Algorithm::Tree) {
            let (line, node) = (edge / (self.ranks - 1), edge % (self.ranks - 1) + 1);
            let tree = self.tree(line >= 2);
            let (child, parent) = (tree.rank(node), tree.rank(tree.parent(node)));
            return if line % 2 == 0 { (child, parent) } else { (parent, child) };
        }
        let (rank, slot) = (edge / self.fan(), edge % self.fan());
        let to = match self.algorithm {
            Algorithm::HalvingDoubling => rank ^ 1 << slot,
            Algorithm::Ring | Algorithm::Direct | Algorithm::Tree => self.wrap(rank + 1 + slot),
        };
        (rank, to)
    }

    /// A number below twice the number of ranks as one of a rank.
    const fn wrap(&self, rank: u32) -> u32 {
        if rank >= self.ranks { rank - self.ranks } else { rank }
    }

    /// Steps whose messages `rank` sends at the start.
    pub fn at_once(self, rank: u32) -> impl Iterator<Item = u32> {
        let steps = match (self.operation, self.algorithm) {
            (Operation::Broadcast, _) if rank > 0 => 0..0,
            (_, Algorithm::Direct | Algorithm::Tree) => 0..self.steps(),
            _ => 0..1,
        };
        steps.filter(move |&step| {
            // Leaves have nothing to wait for.
            self.algorithm != Algorithm::Tree || {
                let (_, tree, of_tree) = self.of_tree(step);
                of_tree < 2 && tree.children(tree.node(rank)).next().is_none()
            }
        })
    }

    /// The steps whose messages `rank` may send of a chunk now that it has received that of `step`. `received` is kept for it,
    /// of each chunk at each rank where it [`keeps`](Schedule::keeps_received); it is 0 at first.
    ///
    /// A ring has all messages from one neighbour and in order. Elsewhere a partner that is ahead may send before the one of
    /// the step before does.
    pub fn follows(&self, rank: u32, received: &mut u32, step: u32) -> Range<u32> {
        if !self.waits() {
            return 0..0;
        }
        if self.algorithm == Algorithm::Tree {
            return self.follows_in_tree(rank, received, step);
        }
        if !self.keeps_received() {
            return step + 1..step + 2;
        }
        let before = received.trailing_ones();
        *received |= 1 << step;
        before + 1..received.trailing_ones() + 1
    }

    /// The sum goes on when those of all children are in it; the total goes to all of them, and from the root so does the sum.
    fn follows_in_tree(&self, rank: u32, received: &mut u32, step: u32) -> Range<u32> {
        let (_, tree, of_tree) = self.of_tree(step);
        let (node, first) = (tree.node(rank), step - of_tree);
        let down = first + 2..first + TREE_STEPS;
        if of_tree >= 2 {
            return down;
        }
        *received |= 1 << step;
        let has = |child: u32| *received >> (first + tree.place(child)) & 1 == 1;
        if !tree.children(node).all(has) {
            return 0..0;
        }
        if node == 0 {
            return down;
        }
        let up = first + tree.place(node);
        up..up + 1
    }

    /// Whether what each rank has received is to be kept.
    pub const fn keeps_received(&self) -> bool {
        matches!(self.algorithm, Algorithm::HalvingDoubling | Algorithm::Tree)
    }

    /// Whether steps are rounds, each of which comes after the one before it at all ranks.
    pub const fn has_rounds(&self) -> bool {
        matches!(self.algorithm, Algorithm::Ring | Algorithm::HalvingDoubling)
    }

    /// Whether messages wait for those of the step before.
    pub const fn waits(&self) -> bool {
        !matches!(self.algorithm, Algorithm::Direct)
    }

    /// How many messages of each chunk a rank receives.
    pub fn receives(&self, rank: u32) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Broadcast, _) => u32::from(rank > 0),
            (_, Algorithm::Tree) => {
                [false, true].into_iter().map(|second| self.receives_in(second, rank)).sum()
            }
            _ => self.steps(),
        }
    }

    /// Sums of children, and the total but at the root.
    fn receives_in(&self, second: bool, rank: u32) -> u32 {
        let tree = self.tree(second);
        let node = tree.node(rank);
        (0..2).filter(|place| tree.child(node, *place).is_some()).fold(u32::from(node > 0), |sum, _| sum + 1)
    }

    /// What `rank` sends in `step`, if it sends anything.
    pub fn message(&self, rank: u32, step: u32) -> Option<Message> {
        if step >= self.steps() {
            return None;
        }
        if self.algorithm == Algorithm::Tree {
            return self.message_in_tree(rank, step);
        }
        let half = self.steps() / 2;
        // All-reduce is reduce-scatter and then all-gather.
        let (adds, step) = match self.operation {
            Operation::AllReduce => (step < half, if step < half { step } else { step - half }),
            Operation::ReduceScatter => (true, step),
            Operation::AllGather | Operation::AllToAll | Operation::Broadcast => (false, step),
        };
        match self.algorithm {
            Algorithm::Ring if self.operation == Operation::Broadcast => {
                (step == rank).then(|| Message { edge: rank, to: rank + 1, shards: 0..1, adds })
            }
            Algorithm::Ring => {
                // Sums begin behind their rank and come to it last; from there they go round once more.
                let shard = self.wrap(rank + self.ranks - step - u32::from(adds));
                Some(Message { edge: rank, to: self.wrap(rank + 1), shards: shard..shard + 1, adds })
            }
            Algorithm::HalvingDoubling => {
                let bit = if adds { self.bits() - 1 - step } else { step };
                let to = rank ^ 1 << bit;
                // The block of 2^bit shards that the partner keeps of a sum, or that this rank has by then.
                let block = if adds { to } else { rank } >> bit << bit;
                Some(Message { edge: rank * self.bits() + bit, to, shards: block..block + (1 << bit), adds })
            }
            Algorithm::Direct => {
                let to = self.wrap(rank + 1 + step);
                let shard = if self.operation == Operation::AllGather { rank } else { to };
                Some(Message { edge: rank * self.fan() + step, to, shards: shard..shard + 1, adds })
            }
            Algorithm::Tree => None, // as above
        }
    }

    fn message_in_tree(&self, rank: u32, step: u32) -> Option<Message> {
        let (second, tree, of_tree) = self.of_tree(step);
        let (node, shard) = (tree.node(rank), u32::from(second));
        let message = |edge, to, adds| Message { edge, to: tree.rank(to), shards: shard..shard + 1, adds };
        if of_tree < 2 {
            let is_its = node > 0 && tree.place(node) == of_tree;
            return is_its.then(|| message(self.line(second, node, false), tree.parent(node), true));
        }
        let child = tree.child(node, of_tree - 2)?;
        Some(message(self.line(second, child, true), child, false))
    }
}

/// Steps of one of two trees.
const TREE_STEPS: u32 = 4;

#[cfg(test)]
mod tests;
