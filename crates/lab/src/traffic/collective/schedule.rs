//! Who sends which shards to whom in which step, and what it must have received before.

use super::pxn::Pxn;
use super::tree::{CHILDREN, Tree};
use super::{Algorithm, Operation};
use std::ops::Range;

/// What a rank sends in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue pair, of its channel's.
    pub edge: u32,
    /// The rank that it goes to.
    pub to: u32,
    /// The shards that it brings.
    pub shards: Range<u32>,
    /// From how many ranks it brings each of them: 1, but where what a server has for a rank goes there together.
    pub sources: u32,
    /// Whether the receiver adds them to what it has; else it puts them in its place.
    pub adds: bool,
}

/// Who sends which shards to whom in which step, of each chunk alike.
///
/// A rank sends the message of step `s` + 1 when it has received those of all steps up to `s` ([`Schedule::follows`]); those of
/// [`Schedule::at_once`] it sends without having received any. In trees steps are not rounds: each tree has six, a sum from each of
/// three children and a total to each. Of `edge`s, the queue pairs of a channel, each leads from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    operation: Operation,
    algorithm: Algorithm,
    ranks: u32,
    per_server: u32,
}

impl Schedule {
    /// That of `operation` among so many ranks, of which so many in a row are on a server each.
    pub(super) const fn new(operation: Operation, algorithm: Algorithm, ranks: u32, per_server: u32) -> Self {
        Self { operation, algorithm, ranks, per_server }
    }

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
            (Operation::Broadcast | Operation::Reduce, _) => 1,
            (_, Algorithm::Tree) => 2,
            _ => self.ranks,
        }
    }

    /// Shards of the longest message.
    pub(crate) const fn longest(&self) -> u32 {
        match self.algorithm {
            Algorithm::HalvingDoubling => self.ranks / 2,
            Algorithm::Pxn => self.per_server,
            Algorithm::Ring | Algorithm::Direct | Algorithm::Tree => 1,
        }
    }

    /// The number of steps.
    pub const fn steps(&self) -> u32 {
        let once = match self.algorithm {
            Algorithm::HalvingDoubling => self.bits(),
            Algorithm::Ring | Algorithm::Direct => self.ranks - 1,
            Algorithm::Tree => TREE_STEPS,
            Algorithm::Pxn => self.pxn().steps(),
        };
        match self.operation {
            Operation::AllReduce => 2 * once,
            _ => once,
        }
    }

    /// The queue pairs of a channel that each rank sends with; where there is a root it differs as well.
    const fn fan(&self) -> u32 {
        match self.algorithm {
            Algorithm::Ring => 1,
            Algorithm::HalvingDoubling => self.bits(),
            Algorithm::Direct => self.ranks - 1,
            Algorithm::Tree => 0, // it differs from rank to rank
            Algorithm::Pxn => self.pxn().fan(),
        }
    }

    /// How many messages of a chunk a queue pair carries in an iteration.
    pub(super) const fn uses(&self, edge: u32) -> u32 {
        match (self.operation, self.algorithm) {
            (operation, _) if operation.has_root() => 1,
            (_, Algorithm::Direct | Algorithm::Tree) => 1,
            (_, Algorithm::Ring) => self.steps(),
            (Operation::AllReduce, Algorithm::HalvingDoubling) => 2,
            (_, Algorithm::HalvingDoubling) => 1,
            (_, Algorithm::Pxn) if self.is_on_rail(edge) => 1,
            (_, Algorithm::Pxn) => self.ranks / self.per_server,
        }
    }

    /// Shards of each message of a queue pair.
    pub const fn edge_shards(&self, edge: u32) -> u32 {
        match self.algorithm {
            Algorithm::HalvingDoubling => 1 << (edge % self.bits()),
            Algorithm::Ring | Algorithm::Direct | Algorithm::Tree | Algorithm::Pxn => 1,
        }
    }

    /// From how many ranks the messages of a queue pair bring each of them.
    pub(super) const fn edge_sources(&self, edge: u32) -> u32 {
        if matches!(self.algorithm, Algorithm::Pxn) && self.is_on_rail(edge) { self.per_server } else { 1 }
    }

    /// Whether a queue pair of an all-to-all over rails leads to another server.
    pub const fn is_on_rail(&self, edge: u32) -> bool {
        self.pxn().is_on_rail(edge % self.pxn().fan())
    }

    pub(super) const fn pxn(&self) -> Pxn {
        Pxn::new(self.ranks, self.per_server)
    }

    const fn bits(&self) -> u32 {
        self.ranks.trailing_zeros()
    }

    /// The queue pairs of a channel.
    pub const fn edges(&self) -> u32 {
        match (self.operation, self.algorithm) {
            (operation, _) if operation.has_root() => self.ranks - 1,
            // Up and down each line of two trees.
            (_, Algorithm::Tree) => 4 * (self.ranks - 1),
            _ => self.ranks * self.fan(),
        }
    }

    /// One of the two trees.
    pub const fn tree(&self, second: bool) -> Tree {
        Tree::new(self.ranks, self.per_server, second)
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
        match self.operation {
            Operation::Gather => return (edge + 1, 0),
            Operation::Scatter => return (0, edge + 1),
            _ => {}
        }
        let (rank, slot) = (edge / self.fan(), edge % self.fan());
        let to = match self.algorithm {
            Algorithm::HalvingDoubling => rank ^ 1 << slot,
            Algorithm::Pxn => self.pxn().to(rank, slot),
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
            (Operation::Broadcast | Operation::Reduce | Operation::Scatter, _) if rank > 0 => 0..0,
            // Each has a step of its own.
            (Operation::Gather, _) => rank.saturating_sub(1)..rank,
            (_, Algorithm::Direct | Algorithm::Tree) => 0..self.steps(),
            (_, Algorithm::Pxn) => 0..self.pxn().within(),
            _ => 0..1,
        };
        steps.filter(move |&step| {
            // Leaves have nothing to wait for.
            self.algorithm != Algorithm::Tree || {
                let (_, tree, of_tree) = self.of_tree(step);
                of_tree < CHILDREN && tree.children(tree.node(rank)).next().is_none()
            }
        })
    }

    /// The steps whose messages `rank` may send of a chunk now that it has received that of `step`. `received` are as many words as
    /// [`kept`](Schedule::kept) says, of each chunk at each rank; they are 0 at first.
    ///
    /// A ring has all messages from one neighbour and in order. Elsewhere a partner that is ahead may send before the one of
    /// the step before does.
    pub fn follows(&self, rank: u32, received: &mut [u32], step: u32) -> Range<u32> {
        match (self.algorithm, received) {
            (Algorithm::Pxn, received) => self.pxn().follows(received, step),
            (Algorithm::Tree, [received]) => self.follows_in_tree(rank, received, step),
            (Algorithm::HalvingDoubling, [received]) => {
                let before = received.trailing_ones();
                *received |= 1 << step;
                before + 1..received.trailing_ones() + 1
            }
            (Algorithm::Ring, _) => step + 1..step + 2,
            (Algorithm::Direct | Algorithm::Tree | Algorithm::HalvingDoubling, _) => 0..0,
        }
    }

    /// The sum goes on when those of all children are in it; the total goes to all of them, and from the root so does the sum.
    fn follows_in_tree(&self, rank: u32, received: &mut u32, step: u32) -> Range<u32> {
        let (_, tree, of_tree) = self.of_tree(step);
        let (node, first) = (tree.node(rank), step - of_tree);
        let down = first + CHILDREN..first + TREE_STEPS;
        if of_tree >= CHILDREN {
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

    /// How many words are kept of what each rank has received.
    pub const fn kept(&self) -> u32 {
        match self.algorithm {
            Algorithm::Ring | Algorithm::Direct => 0,
            Algorithm::HalvingDoubling | Algorithm::Tree => 1,
            Algorithm::Pxn => self.pxn().waits(),
        }
    }

    /// Whether steps are rounds, each of which comes after the one before it at all ranks.
    pub const fn has_rounds(&self) -> bool {
        matches!(self.algorithm, Algorithm::Ring | Algorithm::HalvingDoubling)
    }

    /// Whether all messages come to one rank, whose link to itself they share.
    pub(crate) const fn gathers(&self) -> bool {
        matches!(self.operation, Operation::Gather)
    }

    /// Whether messages wait for those of the step before.
    pub const fn waits(&self) -> bool {
        !matches!(self.algorithm, Algorithm::Direct)
    }

    /// How many messages of each chunk a rank receives.
    pub fn receives(&self, rank: u32) -> u32 {
        match (self.operation, self.algorithm) {
            (Operation::Broadcast | Operation::Reduce | Operation::Scatter, _) => u32::from(rank > 0),
            (Operation::Gather, _) if rank > 0 => 0,
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
        (0..CHILDREN)
            .filter(|place| tree.child(node, *place).is_some())
            .fold(u32::from(node > 0), |sum, _| sum + 1)
    }

    /// What `rank` sends in `step`, if it sends anything.
    pub fn message(&self, rank: u32, step: u32) -> Option<Message> {
        if step >= self.steps() {
            return None;
        }
        match self.algorithm {
            Algorithm::Tree => return self.message_in_tree(rank, step),
            Algorithm::Pxn => return Some(self.pxn().message(rank, step)),
            Algorithm::Ring | Algorithm::HalvingDoubling | Algorithm::Direct => {}
        }
        let half = self.steps() / 2;
        // All-reduce is reduce-scatter and then all-gather.
        let (adds, step) = match self.operation {
            Operation::AllReduce => (step < half, if step < half { step } else { step - half }),
            Operation::ReduceScatter | Operation::Reduce => (true, step),
            Operation::AllGather
            | Operation::AllToAll
            | Operation::Broadcast
            | Operation::Gather
            | Operation::Scatter => (false, step),
        };
        match self.algorithm {
            Algorithm::Ring if self.operation.is_chain() => {
                (step == rank).then(|| Message { edge: rank, to: rank + 1, shards: 0..1, sources: 1, adds })
            }
            Algorithm::Ring => {
                // Sums begin behind their rank and come to it last; from there they go round once more.
                let shard = self.wrap(rank + self.ranks - step - u32::from(adds));
                Some(Message {
                    edge: rank,
                    to: self.wrap(rank + 1),
                    shards: shard..shard + 1,
                    sources: 1,
                    adds,
                })
            }
            Algorithm::HalvingDoubling => {
                let bit = if adds { self.bits() - 1 - step } else { step };
                let to = rank ^ 1 << bit;
                // The block of 2^bit shards that the partner keeps of a sum, or that this rank has by then.
                let block = if adds { to } else { rank } >> bit << bit;
                Some(Message {
                    edge: rank * self.bits() + bit,
                    to,
                    shards: block..block + (1 << bit),
                    sources: 1,
                    adds,
                })
            }
            Algorithm::Direct if self.operation.has_root() => {
                let gathers = self.operation == Operation::Gather;
                let (from, to) = if gathers { (step + 1, 0) } else { (0, step + 1) };
                let message = Message { edge: step, to, shards: step + 1..step + 2, sources: 1, adds };
                (rank == from).then_some(message)
            }
            Algorithm::Direct => {
                let to = self.wrap(rank + 1 + step);
                let shard = if self.operation == Operation::AllGather { rank } else { to };
                Some(Message {
                    edge: rank * self.fan() + step,
                    to,
                    shards: shard..shard + 1,
                    sources: 1,
                    adds,
                })
            }
            Algorithm::Tree | Algorithm::Pxn => None, // as above
        }
    }

    fn message_in_tree(&self, rank: u32, step: u32) -> Option<Message> {
        let (second, tree, of_tree) = self.of_tree(step);
        let (node, shard) = (tree.node(rank), u32::from(second));
        let message =
            |edge, to, adds| Message { edge, to: tree.rank(to), shards: shard..shard + 1, sources: 1, adds };
        if of_tree < CHILDREN {
            let is_its = node > 0 && tree.place(node) == of_tree;
            return is_its.then(|| message(self.line(second, node, false), tree.parent(node), true));
        }
        let child = tree.child(node, of_tree - CHILDREN)?;
        Some(message(self.line(second, child, true), child, false))
    }
}

/// Steps of one of two trees.
const TREE_STEPS: u32 = 2 * CHILDREN;
