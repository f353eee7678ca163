//! What traffic a scenario asks for, as values that have been read and have their units.
//!
//! Each variant of [`Traffic`] is one `[[traffic]]` table of a scenario, with its keys. Whether the values make
//! sense together (a flow to itself, a source without an end) is judged by [`Jobs::new`](super::Jobs::new).

use super::collective::{Collective, Operation};
use super::goal::Goal;
use super::rpc::Rpc;
use crate::sizes::Sizes;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Ratio, Span};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What a message does (`op`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Op {
    /// SEND into a posted receive buffer.
    Send,
    /// RDMA WRITE.
    #[default]
    Write,
    /// RDMA READ: the octets travel from `dst` to `src`.
    Read,
    /// Atomic fetch-and-add on eight octets.
    FetchAdd,
    /// Atomic compare-and-swap on eight octets.
    CompareSwap,
}

impl Op {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 5] = [Self::Send, Self::Write, Self::Read, Self::FetchAdd, Self::CompareSwap];

    /// How scenarios and results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::Read => "read",
            Self::FetchAdd => "fetch-add",
            Self::CompareSwap => "compare-swap",
        }
    }

    /// Whether it is one of the atomics, whose messages have eight octets.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CompareSwap)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not an operation's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown op {0:?}; use one of send, write, read, fetch-add, compare-swap")]
pub struct UnknownOp(pub String);

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, UnknownOp> {
        Self::ALL.into_iter().find(|op| op.name() == name).ok_or_else(|| UnknownOp(name.to_owned()))
    }
}

/// Which of the scenario's control settings a flow uses instead of the common one. Traffic only passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlIndex(pub u32);

/// What all flows of one table share (`op`, `priority`, `control`). A `flows` table has it per flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// What the messages do.
    pub op: Op,
    /// The priority that data travel on, 0 to 7; `None`: the scenario's class for data.
    pub priority: Option<u8>,
    /// The control setting; `None`: `transport.control`.
    pub control: Option<ControlIndex>,
}

/// One `[[traffic]]` table.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// `kind = "flows"`: listed one by one.
    Flows(Vec<Flow>),
    /// `kind = "closed-loop"`: queue pairs that keep a number of messages outstanding.
    ClosedLoop(ClosedLoop),
    /// `kind = "incast"`: many send to one.
    Incast(Incast),
    /// `kind = "permutation"`: each host sends to one other, and each receives from one other.
    Permutation(Exchange),
    /// `kind = "all-to-all"`: each host sends to each other.
    AllToAll(Exchange),
    /// `kind = "poisson"`: flows of random size at random times between random hosts.
    Poisson(Poisson),
    /// `kind = "trigger"`: bursts that all listed hosts send at once, at random times.
    Trigger(Trigger),
    /// `kind = "collective"`: all-reduce and its like, each message when those it waits for have come.
    Collective(Collective),
    /// `kind = "goal"`: what the ranks of a GOAL schedule send when they have computed and received what it takes.
    Goal(Goal),
    /// `kind = "rpc"`: requests to the threads of a server, and their responses.
    Rpc(Rpc),
    /// `kind = "hpcc"`: the flows of an HPCC flow file.
    Hpcc(HpccFlows),
}

impl Traffic {
    /// How scenarios and results write its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Flows(_) => "flows",
            Self::ClosedLoop(_) => "closed-loop",
            Self::Incast(_) => "incast",
            Self::Permutation(_) => "permutation",
            Self::AllToAll(_) => "all-to-all",
            Self::Poisson(_) => "poisson",
            Self::Trigger(_) => "trigger",
            Self::Collective(_) => "collective",
            Self::Goal(_) => "goal",
            Self::Rpc(_) => "rpc",
            Self::Hpcc(_) => "hpcc",
        }
    }

    /// What the list of its flows does not tell: how often these come by the clock, and which messages those consist of that have no end
    /// or wait for others. It is there to be held against that of another table of this kind.
    pub fn pattern(&self) -> Vec<u64> {
        let ratio = |ratio: Ratio| vec![ratio.numerator().into(), ratio.denominator().into()];
        match self {
            Self::Poisson(spec) => ratio(spec.load),
            Self::Trigger(spec) => ratio(spec.rate),
            Self::Incast(spec) => match spec.repeat {
                Repeat::Once => Vec::new(),
                Repeat::Every(period) => vec![period.as_ps()],
                Repeat::Load(load) => ratio(load),
            },
            Self::ClosedLoop(spec) => vec![spec.message.0, spec.depth.into(), spec.count.unwrap_or(u64::MAX)],
            Self::Collective(spec) => {
                let operations = Operation::ALL.into_iter().take_while(|it| *it != spec.operation);
                vec![operations.count() as u64, spec.size.0, spec.iterations.into(), spec.gap.as_ps()]
            }
            Self::Rpc(spec) => {
                vec![spec.request.0, spec.response.0, spec.window.into(), spec.count.unwrap_or(u64::MAX)]
            }
            Self::Goal(spec) => vec![spec.schedule.operations(), spec.unit.as_ps(), spec.overhead.as_ps()],
            Self::Flows(_) | Self::Hpcc(_) | Self::Permutation(_) | Self::AllToAll(_) => Vec::new(),
        }
    }

    /// By when all of its flows have begun; `None`: by when the run stops, if ever.
    pub fn begun_by(&self) -> Option<Instant> {
        match self {
            Self::Flows(flows) => flows.iter().map(|flow| flow.start).max(),
            Self::Hpcc(hpcc) => hpcc.flows.last().map(|flow| flow.start),
            Self::ClosedLoop(spec) => Some(spec.start),
            Self::Collective(spec) => Some(spec.start),
            Self::Goal(spec) => Some(spec.start),
            Self::Rpc(spec) => Some(spec.start),
            Self::Permutation(spec) | Self::AllToAll(spec) => Some(spec.start),
            Self::Incast(spec) if spec.repeat == Repeat::Once => Some(spec.start),
            Self::Incast(spec) => spec.until,
            Self::Trigger(spec) => spec.until,
            Self::Poisson(spec) => spec.until,
        }
    }

    /// What its messages do, some of it more than once.
    pub fn ops(&self) -> Box<dyn Iterator<Item = Op> + '_> {
        match self {
            Self::Flows(flows) => Box::new(flows.iter().map(|flow| flow.common.op)),
            Self::Hpcc(hpcc) => Box::new(std::iter::once(hpcc.common.op)),
            other => Box::new(other.common().map(|common| common.op).into_iter()),
        }
    }

    /// What its messages share, where all have it from the table.
    fn common(&self) -> Option<Common> {
        match self {
            Self::Flows(_) | Self::Hpcc(_) => None,
            Self::ClosedLoop(spec) => Some(spec.common),
            Self::Collective(spec) => Some(spec.common),
            Self::Goal(spec) => Some(spec.common),
            Self::Rpc(spec) => Some(spec.common),
            Self::Incast(spec) => Some(spec.common),
            Self::Permutation(spec) | Self::AllToAll(spec) => Some(spec.common),
            Self::Poisson(spec) => Some(spec.common),
            Self::Trigger(spec) => Some(spec.common),
        }
    }

    /// The congestion controls that its flows have, some of them more than once; `None`: the common one.
    pub fn controls(&self) -> Box<dyn Iterator<Item = Option<ControlIndex>> + '_> {
        Box::new(self.commons().map(|common| common.control))
    }

    /// Those of its flows that READ.
    pub fn controls_of_reads(&self) -> impl Iterator<Item = Option<ControlIndex>> + '_ {
        self.commons().filter(|common| common.op == Op::Read).map(|common| common.control)
    }

    /// What its messages share, of each flow where these differ.
    pub(crate) fn commons(&self) -> Box<dyn Iterator<Item = Common> + '_> {
        match self {
            Self::Flows(flows) => Box::new(flows.iter().map(|flow| flow.common)),
            Self::Hpcc(hpcc) => Box::new(std::iter::once(hpcc.common)),
            other => Box::new(other.common().into_iter()),
        }
    }

    /// Gives its flows the controls that `of` has for theirs.
    pub(crate) fn set_controls(&mut self, of: impl Fn(Option<ControlIndex>) -> Option<ControlIndex>) {
        let set = |common: &mut Common| common.control = of(common.control);
        match self {
            Self::Flows(flows) => flows.iter_mut().for_each(|flow| set(&mut flow.common)),
            Self::Hpcc(hpcc) => set(&mut hpcc.common),
            Self::ClosedLoop(spec) => set(&mut spec.common),
            Self::Collective(spec) => set(&mut spec.common),
            Self::Goal(spec) => set(&mut spec.common),
            Self::Rpc(spec) => set(&mut spec.common),
            Self::Incast(spec) => set(&mut spec.common),
            Self::Permutation(spec) | Self::AllToAll(spec) => set(&mut spec.common),
            Self::Poisson(spec) => set(&mut spec.common),
            Self::Trigger(spec) => set(&mut spec.common),
        }
    }

    /// The priorities that its data travel on, some of them more than once; `None`: the scenario's class for data.
    pub fn priorities(&self) -> Box<dyn Iterator<Item = Option<u8>> + '_> {
        match self {
            Self::Flows(flows) => Box::new(flows.iter().map(|flow| flow.common.priority)),
            Self::Hpcc(hpcc) => Box::new(hpcc.flows.iter().map(|flow| Some(flow.priority))),
            other => Box::new(other.common().map(|common| common.priority).into_iter()),
        }
    }
}

/// One flow: one message on a queue pair of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name in results; `None`: `<traffic index>.<n>`.
    pub name: Option<Arc<str>>,
    /// Who posts it.
    pub src: HostId,
    /// The other end.
    pub dst: HostId,
    /// Octets of the message.
    pub size: Bytes,
    /// When it is posted.
    pub start: Instant,
    /// Its `op`, `priority` and `control`.
    pub common: Common,
}

/// Queue pairs that each keep `depth` messages outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLoop {
    /// Who posts to whom (`pairs`, or the one pair of `src` and `dst`).
    pub pairs: Vec<(HostId, HostId)>,
    /// Queue pairs for each pair of hosts, at least 1.
    pub qps: u32,
    /// Octets of a message.
    pub message: Bytes,
    /// Messages outstanding on each queue pair, at least 1.
    pub depth: u32,
    /// Messages for each queue pair; `None`: until the run stops.
    pub count: Option<u64>,
    /// When the first are posted.
    pub start: Instant,
    /// What all share.
    pub common: Common,
}

/// Many send to one, once or again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incast {
    /// How many send: drawn anew for each incast from all hosts but the receiver.
    pub senders: u32,
    /// Octets that each sends.
    pub size: Bytes,
    /// Who receives; `None`: drawn anew for each incast where [`Repeat::Load`] says how often, else the first host.
    pub receiver: Option<HostId>,
    /// When the first begins, or the random ones may begin.
    pub start: Instant,
    /// How often.
    pub repeat: Repeat,
    /// No incast begins at or after this; `None`: until the run stops. Without meaning for [`Repeat::Once`].
    pub until: Option<Instant>,
    /// What all share.
    pub common: Common,
}

/// How often an incast comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Once, at `start`.
    Once,
    /// At `start` and then at this period (`every`).
    Every(Span),
    /// At random times, so often that the octets sent are this share of the sum of the host link rates (`load`).
    Load(Ratio),
}

/// A permutation or an all-to-all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Octets from each sender to each of its receivers.
    pub size: Bytes,
    /// When all begin.
    pub start: Instant,
    /// What all share.
    pub common: Common,
}

/// Flows that begin at random times, by an open-loop Poisson process.
#[derive(Clone, Debug)]
pub struct Poisson {
    /// How long the flows are.
    pub sizes: Arc<Sizes>,
    /// Payload octets over the sum of the host link rates.
    pub load: Ratio,
    /// No flow begins before this.
    pub start: Instant,
    /// No flow begins at or after this; `None`: until the run stops.
    pub until: Option<Instant>,
    /// What all share.
    pub common: Common,
}

/// Bursts at random times, such as the read-out of a detector after a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Who sends at each trigger.
    pub hosts: Vec<HostId>,
    /// Who receives.
    pub receiver: HostId,
    /// Octets that each host sends at each trigger.
    pub size: Bytes,
    /// Triggers per second, on average.
    pub rate: Ratio,
    /// No trigger comes before this.
    pub start: Instant,
    /// No trigger comes at or after this; `None`: until the run stops.
    pub until: Option<Instant>,
    /// What all share.
    pub common: Common,
}

/// The flows of an HPCC flow file, ordered by start; [`HpccFlows::read`] makes one.
#[derive(Clone, Debug, Default)]
pub struct HpccFlows {
    /// The flows, those of one start in the order of the file.
    pub flows: Vec<HpccFlow>,
    /// What all share, except that the file tells the priority.
    pub common: Common,
    /// What a user should know of how the file was read.
    pub note: Option<String>,
}

/// One line of an HPCC flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpccFlow {
    /// When it is posted.
    pub start: Instant,
    /// Octets of its message.
    pub size: Bytes,
    /// Who posts it.
    pub src: HostId,
    /// The other end.
    pub dst: HostId,
    /// The priority group (`pg`), 0 to 7.
    pub priority: u8,
}
