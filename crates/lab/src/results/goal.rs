//! What became of a GOAL schedule: how long it took, what each rank did, and what the time went into.

use crate::traffic::goal::Does;
use roci_units::{Instant, Span};
use std::cmp::Reverse;

/// The results of one `[[traffic]]` table of kind `goal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalResult {
    /// The table's place in [`Results::traffic`](super::Results::traffic).
    pub table: usize,
    /// When it began.
    pub start: Instant,
    /// What each rank did.
    pub ranks: Vec<GoalRank>,
    /// What the end was waited for; `None` where not all operations are done.
    pub path: Option<CriticalPath>,
    /// How long it takes where less is in its way; `None` where it did not come to its end.
    pub replays: Option<Replays>,
    /// When what happened to each operation of each rank, where the run was to have a timeline; else empty.
    pub times: Vec<Vec<OperationTimes>>,
    /// Whether it was given up, as one of its queue pairs failed.
    pub failed: bool,
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
    /// When the message of a send had come.
    pub came: Instant,
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
    /// How long all of those would have been on their way on an idle network, one after the other.
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
    /// The rank that did it; of a message the one that sent it.
    pub rank: u32,
    /// The operation, counted from 0 in its rank; of a message its send.
    pub operation: u32,
    /// What that does.
    pub does: Does,
    /// Of a message the queue pair that it went by, of its table's; `None` of one that a rank sent to itself.
    pub line: Option<u32>,
    /// Of a message how long it takes on an idle network.
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
}

impl LinkKind {
    /// How results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calculation => "calculation",
            Self::Overhead => "overhead",
            Self::Message => "message",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// Whether it is of a message.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Message | Self::Acknowledged)
    }
}

impl CriticalPath {
    /// How many messages.
    pub fn count(&self) -> usize {
        self.links.iter().filter(|link| link.kind.is_message()).count()
    }

    /// The time of the messages over that on an idle network; `None` where there were none.
    pub fn over_ideal(&self) -> Option<f64> {
        (!self.ideal.is_zero()).then(|| self.messages.as_secs_f64() / self.ideal.as_secs_f64())
    }
}

impl GoalResult {
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
            ..sum
        })
    }

    /// The rank that was done last, of several the first.
    pub fn last(&self) -> Option<(usize, &GoalRank)> {
        self.ranks.iter().enumerate().min_by_key(|(_, rank)| Reverse(rank.end))
    }
}
