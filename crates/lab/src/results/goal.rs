//! What became of a GOAL schedule: how long it took, what each rank did, and what the time went into.

use crate::traffic::collective::{Algorithm, Operation};
use crate::traffic::goal::{Does, Schedule};
use roci_units::{Instant, Span};
use std::cmp::Reverse;
use std::sync::Arc;

/// The results of one `[[traffic]]` table of kind `goal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalResult {
    /// The table's place in [`Results::traffic`](super::Results::traffic).
    pub table: usize,
    /// When it began.
    pub start: Instant,
    /// What was to be done.
    pub schedule: Arc<Schedule>,
    /// What each rank did.
    pub ranks: Vec<GoalRank>,
    /// What the end was waited for; `None` where not all operations are done.
    pub path: Option<CriticalPath>,
    /// How long it takes where less is in its way; `None` where it did not come to its end.
    pub replays: Option<Replays>,
    /// The collectives, in the order in which the first of their ranks has them.
    pub joint: Vec<JointResult>,
    /// When what happened to each operation of each rank, where the run was to have a timeline; else empty.
    pub times: Vec<Vec<OperationTimes>>,
    /// Whether it was given up, as one of its queue pairs failed.
    pub failed: bool,
}

/// A collective of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointResult {
    /// What it does.
    pub operation: Operation,
    /// How; `None` where a rank does it by itself.
    pub algorithm: Option<Algorithm>,
    /// Its group, a place in [`Schedule::groups`].
    pub group: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// Of an operation that has one, the root's place in its group.
    pub root: Option<u32>,
    /// Octets of each rank's data; where these differ the most that a rank sends or receives, its own included.
    pub size: u64,
    /// The most that a rank sends to others or receives from them, where that differs from rank to rank.
    pub busiest: Option<u64>,
    /// Its channels and the chunks of each; 1 where a rank does it by itself.
    pub parts: (u32, u32),
    /// The first rank that has it, and its operation there.
    pub first: (u32, u32),
    /// When it was begun and done.
    pub times: JointTimes,
    /// The least time from when its last rank begins on an idle network, the others having begun when they did; `None` where a rank does it by itself.
    pub ideal: Option<Span>,
}

impl JointResult {
    /// From when the last rank began until the last was done; `None` where some are not.
    pub fn time(&self) -> Option<Span> {
        (self.times.done == self.ranks).then(|| self.times.last_end.since(self.times.last_begin))
    }

    /// Bits of its data in a second of that time; `None` also where it took none.
    pub fn algorithm_bps(&self) -> Option<f64> {
        per_second(self.size, self.time()?)
    }

    /// The same of what each rank must send at least, the bus bandwidth of NCCL's tests; `None` also where a rank is by itself.
    pub fn bus_bps(&self) -> Option<f64> {
        (self.ranks > 1).then_some(())?;
        if let Some(octets) = self.busiest {
            return per_second(octets, self.time()?);
        }
        Some(self.algorithm_bps()? * self.operation.bus_factor(self.ranks).as_f64())
    }

    /// Its time over what it takes at least on an idle network.
    pub fn over_ideal(&self) -> Option<f64> {
        over(self.time()?, self.ideal?)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
fn per_second(octets: u64, time: Span) -> Option<f64> {
    (!time.is_zero()).then(|| octets as f64 * 8.0 / time.as_secs_f64())
}

fn over(time: Span, least: Span) -> Option<f64> {
    (!least.is_zero()).then(|| time.as_secs_f64() / least.as_secs_f64())
}

/// Collectives of a schedule that do the same in the same way among as many ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointKind {
    /// What they do.
    pub operation: Operation,
    /// How; `None` where ranks do it by themselves.
    pub algorithm: Option<Algorithm>,
    /// How many ranks take part in each.
    pub ranks: u32,
    /// How many there are.
    pub count: usize,
    /// How many of them are done; all that follows is of these.
    pub done: usize,
    /// Octets of each rank's data in all of them.
    pub bytes: u64,
    /// Those of such as differ from rank to rank, and what the busiest rank of each of these sends to others or receives from them.
    pub uneven: (u64, u64),
    /// From when the first rank began to when the last did, all together.
    pub late: Span,
    /// Their times, all together.
    pub time: Span,
    /// What they take at least on an idle network, all together.
    pub ideal: Span,
}

impl JointKind {
    /// How long they waited for the last rank, in the mean and in seconds; `None` where none is done.
    pub fn late_mean(&self) -> Option<f64> {
        self.mean(self.late)
    }

    /// How long they took then, in the mean and in seconds; `None` where none is done.
    pub fn time_mean(&self) -> Option<f64> {
        self.mean(self.time)
    }

    #[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than f64 holds")]
    fn mean(&self, all: Span) -> Option<f64> {
        (self.done > 0).then(|| all.as_secs_f64() / self.done as f64)
    }

    /// What each rank must send at least over all their times, the bus bandwidth of NCCL's tests.
    pub fn bus_bps(&self) -> Option<f64> {
        (self.ranks > 1).then_some(())?;
        let (uneven, busiest) = self.uneven;
        let even = per_second(self.bytes.saturating_sub(uneven), self.time)?;
        Some(even * self.operation.bus_factor(self.ranks).as_f64() + per_second(busiest, self.time)?)
    }

    /// Their times over what they take at least.
    pub fn over_ideal(&self) -> Option<f64> {
        over(self.time, self.ideal)
    }

    /// These and those of `other`, which are done in another way.
    #[must_use]
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            algorithm: self.algorithm.filter(|algorithm| other.algorithm == Some(*algorithm)),
            count: self.count + other.count,
            done: self.done + other.done,
            bytes: self.bytes + other.bytes,
            uneven: (self.uneven.0 + other.uneven.0, self.uneven.1 + other.uneven.1),
            late: self.late + other.late,
            time: self.time + other.time,
            ideal: self.ideal + other.ideal,
            ..*self
        }
    }
}

/// When a collective of a schedule was begun and done; [`Instant::NEVER`] stands for what was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointTimes {
    /// When the first rank began.
    pub first_begin: Instant,
    /// When the last did that has begun.
    pub last_begin: Instant,
    /// When the first rank was done.
    pub first_end: Instant,
    /// When the last was that is done.
    pub last_end: Instant,
    /// How many have begun.
    pub begun: u32,
    /// How many are done.
    pub done: u32,
}

impl Default for JointTimes {
    /// One that no rank has begun.
    fn default() -> Self {
        let never = Instant::NEVER;
        Self { first_begin: never, last_begin: never, first_end: never, last_end: never, begun: 0, done: 0 }
    }
}

impl JointTimes {
    /// A rank begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.first_begin = self.first_begin.min(now);
        self.last_begin = now;
        self.begun += 1;
    }

    /// A rank is done.
    pub(crate) fn end(&mut self, now: Instant) {
        self.first_end = self.first_end.min(now);
        self.last_end = now;
        self.done += 1;
    }
}

/// When what happened to an operation; [`Instant::NEVER`] stands for what did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTimes {
    /// What it does.
    pub does: Does,
    /// The CPU that does it.
    pub cpu: u8,
    /// When it waited for no other operation any more.
    pub ready: Instant,
    /// When its CPU began with it; of a receive that waits, when its message had come.
    pub began: Instant,
    /// When its CPU was done with it.
    pub left: Instant,
    /// When the message of a send had come, or a collective was done at the rank.
    pub came: Instant,
    /// Of a send the queue pair that its message goes by, of its table's; `None` of one that a rank sends to itself.
    pub line: Option<u32>,
}

/// How long a schedule takes, its ranks beginning as they did, where less is in its way; `None` where it comes to no end there, as messages
/// that come in another order may have receives of any rank or tag take what others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replays {
    /// Over a fabric that holds nothing up: messages share the links of the NICs at both ends alone, one after the other.
    pub links: Option<Span>,
    /// Each message takes what it takes alone on an idle network.
    pub alone: Option<Span>,
    /// Messages take no time.
    pub no_network: Option<Span>,
}

/// What one rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoalRank {
    /// Its host, a place in [`Results::hosts`](super::Results::hosts).
    pub host: u16,
    /// How many operations it has.
    pub operations: u64,
    /// How many of them were not done when the run ended.
    pub undone: u64,
    /// When the last was done; `None` where some were not, or where there are none.
    pub end: Option<Instant>,
    /// How long its CPUs calculated, all together.
    pub computed: Span,
    /// Messages that it sent.
    pub sent: u64,
    /// Octets of these.
    pub sent_bytes: u64,
    /// Messages that came to it.
    pub received: u64,
    /// Octets of these.
    pub received_bytes: u64,
    /// Messages that no receive took.
    pub untaken: u64,
    /// Messages that its receives took though they were longer than these say.
    pub longer: u64,
    /// Those that were shorter.
    pub shorter: u64,
}

/// The chain of what was waited for, from the beginning to the operation that was done last. Its parts add up to its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// From the table's start to its end.
    pub time: Span,
    /// How much later its first rank began.
    pub late: Span,
    /// Calculation.
    pub computed: Span,
    /// What CPUs had to do with messages.
    pub overhead: Span,
    /// Messages on their way, from when they were posted: behind others of their queue pair, through the network, and where a send was
    /// done with its acknowledgement, until that came.
    pub messages: Span,
    /// Collectives, from when the rank began that the end goes back to.
    pub collectives: Span,
    /// How long all those messages would have been on their way on an idle network, one after the other, and what these collectives take there
    /// at least.
    pub ideal: Span,
    /// Its links, in the order of time; such as took no time are left out, but for messages.
    pub links: Vec<PathLink>,
}

/// A link of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLink {
    /// What took the time.
    pub kind: LinkKind,
    /// When it began.
    pub from: Instant,
    /// When it was over.
    pub to: Instant,
    /// The rank that did it; of a message the one that sent it, of a collective the one whose beginning the end goes back to.
    pub rank: u32,
    /// Of a message the rank that it went to, of a collective the one that was done then; of all else `rank`.
    pub to_rank: u32,
    /// The operation, counted from 0 in its rank; of a message its send.
    pub operation: u32,
    /// What that does.
    pub does: Does,
    /// Of a message the queue pair that it went by, of its table's; `None` of one that a rank sent to itself.
    pub line: Option<u32>,
    /// Of a message how long it takes alone on an idle network; of a collective how long it would have taken over the links of the NICs, with its ranks
    /// beginning when they did.
    pub ideal: Span,
}

/// What took the time of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A calculation.
    Calculation,
    /// What a CPU had to do with a message.
    Overhead,
    /// A message, until it had come.
    Message,
    /// A message, until it had been acknowledged.
    Acknowledged,
    /// A collective, from when the rank began that its end goes back to, by way of messages each of which waited for the one before it.
    Collective,
}

impl LinkKind {
    /// How results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calculation => "calculation",
            Self::Overhead => "overhead",
            Self::Message => "message",
            Self::Acknowledged => "acknowledged",
            Self::Collective => "collective",
        }
    }

    /// Whether it is of a message.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Message | Self::Acknowledged)
    }
}

impl CriticalPath {
    /// The time of messages and collectives.
    pub fn on_the_way(&self) -> Span {
        self.messages + self.collectives
    }

    /// How many collectives.
    pub fn joint_count(&self) -> usize {
        self.links.iter().filter(|link| link.kind == LinkKind::Collective).count()
    }

    /// How many messages.
    pub fn count(&self) -> usize {
        self.links.iter().filter(|link| link.kind.is_message()).count()
    }

    /// The time of the messages and collectives over that on an idle network; `None` where there were none.
    pub fn over_ideal(&self) -> Option<f64> {
        over(self.on_the_way(), self.ideal)
    }
}

impl GoalResult {
    /// What an operation of a rank is called; empty where the file does not call it anything.
    pub fn label(&self, rank: u32, operation: u32) -> &str {
        self.schedule.ranks.get(rank as usize).map_or("", |rank| rank.label(operation))
    }

    /// What a collective is called by the first of its ranks.
    pub fn label_of(&self, it: &JointResult) -> &str {
        self.label(it.first.0, it.first.1)
    }

    /// The collectives by what they do, how, and among how many ranks; in the order in which the first of each stands.
    pub fn joint_kinds(&self) -> Vec<JointKind> {
        let mut kinds: Vec<JointKind> = Vec::new();
        for it in &self.joint {
            let new = JointKind {
                operation: it.operation,
                algorithm: it.algorithm,
                ranks: it.ranks,
                count: 0,
                done: 0,
                bytes: 0,
                uneven: (0, 0),
                late: Span::ZERO,
                time: Span::ZERO,
                ideal: Span::ZERO,
            };
            let alike = |kind: &JointKind| {
                (kind.operation, kind.algorithm, kind.ranks) == (it.operation, it.algorithm, it.ranks)
            };
            let place = kinds.iter().position(alike).unwrap_or_else(|| {
                kinds.push(new);
                kinds.len() - 1
            });
            let kind = &mut kinds[place];
            kind.count += 1;
            let Some(time) = it.time() else { continue };
            kind.done += 1;
            kind.bytes = kind.bytes.saturating_add(it.size);
            if let Some(busiest) = it.busiest {
                kind.uneven = (kind.uneven.0.saturating_add(it.size), kind.uneven.1.saturating_add(busiest));
            }
            kind.late += it.times.last_begin.since(it.times.first_begin);
            kind.time += time;
            kind.ideal += it.ideal.unwrap_or_default();
        }
        kinds
    }

    /// How long it took, in seconds; `None` where it was not done.
    pub fn seconds(&self) -> Option<f64> {
        self.path.as_ref().map(|path| path.time.as_secs_f64())
    }

    /// Its time over that on a fabric that holds nothing up; `None` where it was not done, or would have taken no time.
    pub fn over_links(&self) -> Option<f64> {
        let links = self.replays?.links.filter(|links| !links.is_zero())?;
        Some(self.seconds()? / links.as_secs_f64())
    }

    /// Of all ranks: operations, those not done, messages sent, and their octets.
    pub fn totals(&self) -> GoalRank {
        self.ranks.iter().fold(GoalRank::default(), |sum, rank| GoalRank {
            operations: sum.operations + rank.operations,
            undone: sum.undone + rank.undone,
            computed: sum.computed + rank.computed,
            sent: sum.sent + rank.sent,
            sent_bytes: sum.sent_bytes + rank.sent_bytes,
            received: sum.received + rank.received,
            received_bytes: sum.received_bytes + rank.received_bytes,
            untaken: sum.untaken + rank.untaken,
            longer: sum.longer + rank.longer,
            shorter: sum.shorter + rank.shorter,
            ..sum
        })
    }

    /// The rank that was done last, of several the first.
    pub fn last(&self) -> Option<(usize, &GoalRank)> {
        self.ranks.iter().enumerate().min_by_key(|(_, rank)| Reverse(rank.end))
    }
}
