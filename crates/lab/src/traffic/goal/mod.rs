//! GOAL schedules: what each rank of an application computes, sends and receives, and what of it waits for what.
//!
//! GOAL (Group Operation Assembly Language; Hoefler, Siebert, Lumsdaine, ICPP 2009) is what LogGOPSim and ATLAHS make of traced
//! applications, and what they simulate. Operations of a rank are `calc`, `send` and `recv`; `requires` has one begin when another is done,
//! `irequires` when another has begun. Each is done by one CPU of its rank, which does one thing at a time; a stream of a GPU is such a CPU.
//! Ours has one thing more: collectives of groups of ranks, as operations.
//!
//! | room | what it holds |
//! | --- | --- |
//! | `text` | the schedules that people write, and tools |
//! | `binary` | those that LogGOPSim's `txt2bin` makes of them |
//! | `groups` | process groups, and the collectives that they do |
//! | `ways` | the queue pairs of these, and how they are done |
//! | `labels` | what operations are called |
//! | `check` | whether a schedule can come to its end |
//! | `shared` | what scenarios have read of one file |

mod binary;
mod check;
mod groups;
mod labels;
mod shared;
mod text;
mod ways;

pub(crate) use groups::write_ranks;
pub use groups::{Group, Joint};
pub use ways::{Auto, How, Way, WayError, What};

use super::collective::amounts::Matrix;
use super::collective::{Collective, Operation as Collectively};
use super::spec::Common;
use labels::Labels;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The longest message: 1 GiB, as of all traffic that consists of messages.
pub const MESSAGE_MAX: u64 = 1 << 30;
/// So many operations a rank has at most.
const OPERATIONS_MAX: usize = 1 << 31;
/// So many ranks at most: each has a host.
const RANKS_MAX: u32 = 65_535;

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Keeps its CPU busy for so many units of time.
    Calc(u64),
    /// Sends a message.
    Send {
        /// The rank that it goes to.
        to: u32,
        /// What its receiver knows it by.
        tag: u32,
        /// Its octets.
        size: u64,
    },
    /// Waits for a message.
    Recv {
        /// The rank that sends it; `None`: any.
        from: Option<u32>,
        /// Its tag; `None`: any.
        tag: Option<u32>,
        /// How many octets the receiver has room for. What is sent is what comes.
        size: u64,
    },
    /// Takes part in a collective.
    Collective {
        /// What that does.
        operation: Collectively,
        /// Octets of a rank's data, as in [`Collective::size`](super::Collective::size); of a rank that says what it has for each, all of that.
        size: u64,
        /// The group, a place in [`Schedule::groups`].
        group: u32,
        /// The root's place in the group, where there is one; else 0.
        root: u32,
        /// Which one it is, a place in [`Schedule::joint`].
        number: u32,
    },
}

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Calc(units) => write!(f, "calc {units}"),
            Self::Send { to, tag, size } => write!(f, "send {size}b to {to} tag {tag}"),
            Self::Recv { from, tag, size } => {
                write!(f, "recv {size}b from ")?;
                one_or_any(f, from)?;
                f.write_str(" tag ")?;
                one_or_any(f, tag)
            }
            Self::Collective { operation, size, group, root, .. } => {
                write!(f, "{} {size}b", operation.name())?;
                if root > 0 {
                    write!(f, " root {root}")?;
                }
                // The first is that of all ranks, and has no number.
                group.checked_sub(1).map_or(Ok(()), |group| write!(f, " group {group}"))
            }
        }
    }
}

fn one_or_any(f: &mut fmt::Formatter<'_>, number: Option<u32>) -> fmt::Result {
    match number {
        Some(number) => write!(f, "{number}"),
        None => f.write_str("-1"),
    }
}

/// One operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What it does.
    pub does: Does,
    /// The CPU that does it.
    pub cpu: u8,
    /// How many others it waits for.
    pub needs: u32,
}

/// Who waits for an operation: the other's number, and whether it waits for its beginning alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The operation that waits.
    pub to: u32,
    /// It goes on when the other has begun (`irequires`), else when it is done (`requires`).
    pub at_begin: bool,
}

/// What one rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    operations: Vec<Operation>,
    labels: Labels,
    /// Who waits for each operation, one after the other; the highest bit is set of those that wait for its beginning.
    edges: Vec<u32>,
    /// Where those of each operation begin, and where the last end.
    first: Vec<u32>,
}

const AT_BEGIN: u32 = 1 << 31;

impl Default for Rank {
    /// A rank that does nothing.
    fn default() -> Self {
        Self::new(Vec::new(), &[], Labels::default())
    }
}

impl Rank {
    /// A rank with these operations; of each of `edges` the first waits for the second.
    fn new(mut operations: Vec<Operation>, edges: &[(u32, u32, bool)], labels: Labels) -> Self {
        let mut first = vec![0u32; operations.len() + 1];
        for &(waits, of, _) in edges {
            operations[waits as usize].needs += 1;
            first[of as usize + 1] += 1;
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut next = first.clone();
        let mut sorted = vec![0; edges.len()];
        // Of each operation those first that wait for its end, as `txt2bin` has them.
        for of_kind in [false, true] {
            for &(waits, of, at_begin) in edges.iter().filter(|(.., at_begin)| *at_begin == of_kind) {
                let place = &mut next[of as usize];
                sorted[*place as usize] = if at_begin { waits | AT_BEGIN } else { waits };
                *place += 1;
            }
        }
        Self { operations, labels, edges: sorted, first }
    }

    /// Its operations, in the order of the file.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// What the file calls an operation; empty where it does not, or where there is none of this number.
    pub fn label(&self, operation: u32) -> &str {
        self.labels.get(operation)
    }

    /// What waits for operation `of`.
    pub fn edges(&self, of: u32) -> impl Iterator<Item = Edge> + '_ {
        let range = self.first[of as usize] as usize..self.first[of as usize + 1] as usize;
        self.edges[range].iter().map(|edge| Edge { to: edge & !AT_BEGIN, at_begin: edge & AT_BEGIN != 0 })
    }

    /// How many CPUs it has: one more than the highest number.
    pub fn cpus(&self) -> usize {
        self.operations.iter().map(|operation| usize::from(operation.cpu) + 1).max().unwrap_or(0)
    }
}

/// What all ranks do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Of each rank.
    pub ranks: Vec<Rank>,
    /// The groups that do collectives: all ranks first, and then those of the file; empty where there are no collectives.
    pub groups: Vec<Group>,
    /// The collectives, in the order in which the first of their ranks has them.
    pub joint: Vec<Joint>,
    /// What ranks have for one another, of all-to-alls that say so; in the order of their groups' lists.
    pub matrices: Vec<Arc<Matrix>>,
}

impl Schedule {
    /// Reads a schedule, as text or as `txt2bin` of LogGOPSim writes it, and checks that it can come to an end.
    ///
    /// # Errors
    /// When it is neither, with the line that is wrong; or when an operation would wait for ever.
    pub fn read(octets: &[u8]) -> Result<Self, GoalError> {
        let schedule = match binary::read(octets) {
            Some(read) => read?,
            None => text::read(std::str::from_utf8(octets).map_err(|_| GoalError::Neither)?)?,
        };
        check::check(&schedule)?;
        Ok(schedule)
    }

    /// The same, shared with all who have read these octets and still have what they read.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_shared(octets: &[u8]) -> Result<Arc<Self>, GoalError> {
        shared::read(octets)
    }

    /// How many operations there are.
    pub fn operations(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.operations.len() as u64).sum()
    }

    /// What an operation does, behind what the file calls it if it does.
    pub fn words(&self, rank: u32, operation: u32) -> String {
        let Some(of) = self.ranks.get(rank as usize) else { return String::new() };
        let does = of.operations.get(operation as usize);
        let does = does.map_or_else(String::new, |it| self.said(rank, it.does));
        match of.label(operation) {
            "" => does,
            label => format!("{label}: {does}"),
        }
    }

    /// What an operation of a rank does, with what that has for each of its group where it says so; of a large one for the first.
    pub fn said(&self, rank: u32, does: Does) -> String {
        let said = does.to_string();
        let Some(row) = self.row(rank, does) else { return said };
        let first = row.iter().take(SHOWN).map(|octets| format!("{octets}b"));
        let listed: Vec<String> = first.chain((row.len() > SHOWN).then(|| "…".to_owned())).collect();
        // In place of all of them together.
        let (name, rest) = said.split_once(' ').unwrap_or((&said, ""));
        let rest = rest.split_once(' ').map_or_else(String::new, |(_, rest)| format!(" {rest}"));
        format!("{name} {}{rest}", listed.join(" "))
    }

    fn row(&self, rank: u32, does: Does) -> Option<&[u64]> {
        let Does::Collective { number, .. } = does else { return None };
        let it = self.joint.get(number as usize)?;
        let matrix = self.matrices.get(it.matrix? as usize)?;
        Some(matrix.row(self.groups.get(it.group as usize)?.place(rank)?))
    }

    /// The ranks that send to one another, each way once; where `by_tag` is set for each tag once. In order, with what they carry.
    fn lines(&self, by_tag: bool) -> Vec<Line> {
        let mut lines = BTreeMap::<(u32, u32, u32), Line>::new();
        for (from, rank) in (0..).zip(&self.ranks) {
            for operation in &rank.operations {
                let Does::Send { to, tag, size } = operation.does else { continue };
                if to == from {
                    continue;
                }
                let tag = if by_tag { tag } else { 0 };
                let line = lines.entry((from, to, tag)).or_insert(Line { tag, ..Line::empty(from, to) });
                line.add(1, size, size);
            }
        }
        lines.into_values().collect()
    }
}

/// What goes from one rank to another by one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// The tag, where tags have queue pairs of their own; else 0.
    pub tag: u32,
    /// How many messages.
    pub messages: u64,
    /// Octets of all of them.
    pub octets: u64,
    /// Octets of the longest.
    pub longest: u64,
}

impl Line {
    const fn empty(from: u32, to: u32) -> Self {
        Self { from, to, tag: 0, messages: 0, octets: 0, longest: 0 }
    }

    /// Adds messages, with the octets of all of them and of the longest.
    fn add(&mut self, messages: u64, octets: u64, longest: u64) {
        self.messages += messages;
        self.octets = self.octets.saturating_add(octets);
        self.longest = self.longest.max(longest);
    }
}

/// A schedule whose ranks have hosts.
#[derive(Clone, Debug)]
pub struct Goal {
    /// What the ranks do.
    pub schedule: Arc<Schedule>,
    /// The host of each rank.
    pub hosts: Vec<HostId>,
    /// Whether the ranks are dealt to these hosts at random instead of in their order (`placement`).
    pub shuffled: bool,
    /// The time of one unit of `calc`; zero leaves computation out.
    pub unit: Span,
    /// How long a CPU is busy with each message that it sends, and with each that it receives.
    pub overhead: Span,
    /// How much longer for each of its octets but the first.
    pub overhead_per_octet: Span,
    /// A send of at most so many octets is done when it has been posted, a longer one when it has been acknowledged.
    pub eager: Bytes,
    /// Whether it is found out how long it takes where less is in its way.
    pub replays: bool,
    /// When the first operations begin.
    pub start: Instant,
    /// Priority and control. Its messages are WRITEs with immediate.
    pub common: Common,
    by_tag: bool,
    /// Those of sends, and behind them those of collectives.
    lines: Arc<[Line]>,
    /// How many of them are of sends.
    of_sends: usize,
    ways: Arc<[Way]>,
    /// Of each collective the place of its way; of such as a rank does by itself there is none.
    way_of: Arc<[Option<u32>]>,
}

impl Goal {
    /// A table whose ranks have `hosts`; each tag between two ranks has a queue pair of its own if `by_tag`. What else there is to say stands
    /// as a scenario has it that says nothing.
    ///
    /// # Errors
    /// When there are not as many hosts as ranks, or a host has two.
    pub fn new(
        schedule: Arc<Schedule>,
        hosts: Vec<HostId>,
        by_tag: bool,
        common: Common,
    ) -> Result<Self, PlacementError> {
        if hosts.len() != schedule.ranks.len() {
            return Err(PlacementError::Count { ranks: schedule.ranks.len(), hosts: hosts.len() });
        }
        let mut seen = BTreeSet::new();
        if let Some(&twice) = hosts.iter().find(|host| !seen.insert(host.0)) {
            return Err(PlacementError::TwoRanks(twice));
        }
        let lines = schedule.lines(by_tag);
        Ok(Self {
            schedule,
            hosts,
            shuffled: false,
            unit: Span::from_nanos(1),
            overhead: Span::ZERO,
            overhead_per_octet: Span::ZERO,
            eager: EAGER,
            replays: true,
            start: Instant::ZERO,
            common,
            by_tag,
            of_sends: lines.len(),
            lines: lines.into(),
            ways: Arc::default(),
            way_of: Arc::default(),
        })
    }

    /// Has collectives done in this way, which a schedule that has some needs before it can run.
    ///
    /// # Errors
    /// When one cannot be done so.
    pub fn set_how(&mut self, how: &How) -> Result<(), WayError> {
        let mut lines = self.lines[..self.of_sends].to_vec();
        let placed = ways::Placed { hosts: &self.hosts, listed: !self.shuffled };
        let (ways, places) = ways::ways(&self.schedule, how, placed, &mut lines)?;
        let way_of = |it: &Joint| {
            let what = What { size: it.size, matrix: it.matrix };
            places.get(&(it.group, it.operation.name(), it.root, what)).copied()
        };
        self.way_of = self.schedule.joint.iter().map(way_of).collect();
        self.ways = ways.into();
        self.lines = lines.into();
        Ok(())
    }

    /// How a collective is done, and which of the ways that is; `None` of one that a rank does by itself.
    pub fn way(&self, number: u32) -> Option<(u32, &Way)> {
        let place = self.way_of.get(number as usize).copied().flatten()?;
        Some((place, self.ways.get(place as usize)?))
    }

    /// A collective; its ranks are places in the order of its way. `None` of one that a rank does by itself.
    pub fn collective(&self, number: u32) -> Option<Collective> {
        let Joint { size, matrix, .. } = *self.schedule.joint.get(number as usize)?;
        Some(self.way(number)?.1.of(What { size, matrix }))
    }

    /// What has nothing but collective `number`, which each of its ranks begins at once, over the same queue pairs; `None` of one that a rank does by
    /// itself.
    pub(crate) fn only(&self, number: u32) -> Option<Self> {
        let (place, way) = self.way(number)?;
        let Joint { operation, root, size, .. } = *self.schedule.joint.get(number as usize)?;
        let does = Does::Collective { operation, size, group: way.group, root, number: 0 };
        let mut ranks = vec![Rank::default(); self.schedule.ranks.len()];
        for &rank in way.ranks() {
            *ranks.get_mut(rank as usize)? =
                Rank::new(vec![Operation { does, cpu: 0, needs: 0 }], &[], Labels::default());
        }
        let joint = vec![self.schedule.joint[number as usize]];
        Some(Self {
            schedule: Arc::new(Schedule { ranks, groups: Vec::new(), joint, matrices: Vec::new() }),
            hosts: self.hosts.clone(),
            overhead: Span::ZERO,
            common: self.common,
            lines: self.lines.clone(),
            ways: self.ways.clone(),
            way_of: Arc::new([Some(place)]),
            ..*self
        })
    }

    /// How long a CPU is busy with a message of so many octets that it sends or receives: `o + (s - 1) O` of LogGOPS.
    pub fn overhead_of(&self, octets: u64) -> Span {
        self.overhead + self.overhead_per_octet * octets.saturating_sub(1)
    }

    /// Its queue pairs.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether a queue pair is of collectives, and not of sends.
    pub fn is_joint(&self, line: u32) -> bool {
        line as usize >= self.of_sends
    }

    /// The queue pair by which a message of this tag goes from one rank to another, both of which it has messages for.
    pub fn line(&self, from: u32, to: u32, tag: u32) -> Option<u32> {
        let tag = if self.by_tag { tag } else { 0 };
        let place = self.lines[..self.of_sends]
            .binary_search_by_key(&(from, to, tag), |line| (line.from, line.to, line.tag));
        place.ok().and_then(|place| u32::try_from(place).ok())
    }
}

/// So many numbers of a list are shown.
const SHOWN: usize = 16;
/// LogGOPSim's `S` unless it is told another.
pub const EAGER: Bytes = Bytes(65_535);

/// Why ranks do not fit hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// There are more ranks than hosts, or fewer.
    #[error("the schedule has {ranks} ranks, and here are {hosts} hosts; list one for each in `hosts`")]
    Count {
        /// How many ranks.
        ranks: usize,
        /// How many hosts.
        hosts: usize,
    },
    /// A host stands in the list twice.
    #[error(
        "a host has two ranks; list each of `hosts` once, and see to it that the schedule has one rank for each host"
    )]
    TwoRanks(HostId),
}

/// Why a file is no schedule, or none that comes to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// Neither text nor binary.
    #[error(
        "it is neither a GOAL schedule as text nor one by `txt2bin`; name a file of one of the two kinds"
    )]
    Neither,
    /// A line that is none of a schedule.
    #[error("line {line}: {text:?} is no line of a schedule; write {expected}")]
    Form {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A label that no operation of the rank has.
    #[error("line {line}: rank {rank} has no operation `{label}`; label one so, in the same rank")]
    NoLabel {
        /// The number of the line, from 1.
        line: usize,
        /// The rank.
        rank: u32,
        /// The label.
        label: String,
    },
    /// Two operations of a rank with one label.
    #[error("line {line}: rank {rank} has two operations `{label}`; give each a label of its own")]
    TwoLabels {
        /// The number of the line of the second, from 1.
        line: usize,
        /// The rank.
        rank: u32,
        /// The label.
        label: String,
    },
    /// A rank stands there twice.
    #[error("line {line}: a second block of rank {rank}; write all that it does into one")]
    TwoBlocks {
        /// The number of the line, from 1.
        line: usize,
        /// The rank.
        rank: u32,
    },
    /// A block has no end.
    #[error("the block of rank {0} has no end; close it with `}}`")]
    NoEnd(u32),
    /// No `num_ranks`, or one out of range.
    #[error("{0} ranks; begin with `num_ranks N`, with N from 1 to 65535")]
    Ranks(u64),
    /// A binary file that ends early, or points beyond its end.
    #[error("it is no whole file of `txt2bin`: {0}; make it anew from the text")]
    Broken(String),
    /// A rank that the schedule does not have.
    #[error("rank {rank}, operation {operation}, `{does}`: there is no rank {peer}; `num_ranks` is {ranks}")]
    NoRank {
        /// The rank that asks for it.
        rank: u32,
        /// Its operation, from 0.
        operation: u32,
        /// What that does.
        does: String,
        /// The rank that is not there.
        peer: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A message is too long.
    #[error("rank {rank}, operation {operation}, `{does}`: messages have at most 1GiB; send several")]
    TooLong {
        /// The rank.
        rank: u32,
        /// Its operation, from 0.
        operation: u32,
        /// What that does.
        does: String,
    },
    /// Operations that wait for one another.
    #[error(
        "rank {rank}: operation {operation}, `{does}`, waits for itself by way of `requires` and `irequires`; leave one of these out"
    )]
    Cycle {
        /// The rank.
        rank: u32,
        /// The first operation of those that wait, from 0.
        operation: u32,
        /// What that does.
        does: String,
    },
    /// A group with wrong ranks.
    #[error("line {line}: {what}")]
    Group {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong, and what to do.
        what: String,
    },
    /// Ranks of a group do different things together.
    #[error(
        "collective {nth} of {group} is `{one}` at rank {} and `{other}` at rank {rank}; let all ranks of a group do the same, in the \
         same order of lines",
        .first.0
    )]
    Unlike {
        /// The group, in words.
        group: String,
        /// Which one, counted from 1.
        nth: usize,
        /// What the first rank does that has it.
        one: String,
        /// That rank, and its operation, from 0.
        first: (u32, u32),
        /// What another does.
        other: String,
        /// That one.
        rank: u32,
    },
    /// Ranks of a group do more together than others.
    #[error(
        "rank {more} does {most} collectives of {group}, and rank {fewer} does {fewest}; let all ranks of a group do the same ones"
    )]
    Fewer {
        /// The group, in words.
        group: String,
        /// The rank that does more.
        more: u32,
        /// So many.
        most: usize,
        /// The rank that does fewer.
        fewer: u32,
        /// So many.
        fewest: usize,
    },
    /// Collectives that wait for one another.
    #[error(
        "rank {rank}: operation {operation}, `{does}`, waits for rank {other}, which waits in `{of_other}` for others; have all ranks begin \
         collectives in one order"
    )]
    Circle {
        /// The rank.
        rank: u32,
        /// Its operation, from 0.
        operation: u32,
        /// What that does.
        does: String,
        /// A rank that has not begun it.
        other: u32,
        /// What that one waits in.
        of_other: String,
    },
    /// A message is waited for that nobody sends.
    #[error(
        "rank {to} receives {received} messages of tag {tag} from rank {from}, which sends it {sent}; let it send as many"
    )]
    NeverSent {
        /// The rank that waits.
        to: u32,
        /// The rank that does not send.
        from: u32,
        /// The tag.
        tag: u32,
        /// How many are received.
        received: u64,
        /// How many are sent.
        sent: u64,
    },
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
