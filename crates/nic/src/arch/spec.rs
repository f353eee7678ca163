//! What a NIC is made of.

use super::clock::Clock;
use roci_hart::CycleModel;
use roci_transport::Deferred;
use roci_units::{BitsPerSec, Bytes, Span};
use std::collections::BTreeMap;

/// A NIC's architecture: its parts, and what each takes.
///
/// The default is a NIC that takes no time for anything and has everything on its chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Architecture {
    /// Its name.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What its cycles are counted by.
    pub clock: Option<Clock>,
    /// The link to the host's memory.
    pub pcie: Pcie,
    /// Processing units.
    pub units: Units,
    /// Cores that run the congestion-control law beside the engine.
    pub cores: Cores,
    /// What those cores keep of each queue pair.
    pub table: Table,
    /// The way of a queue pair's turn.
    pub send: Send,
    /// The way of a packet that arrived.
    pub receive: Receive,
    /// Queue pair contexts.
    pub context: Store,
    /// Send requests (WQEs); an entry is what a queue pair fetched at once.
    pub wqe: Store,
    /// Receive requests; an entry is what a queue pair fetched at once.
    pub receive_wqe: Store,
    /// Address translations; an entry is a page.
    pub mtt: Mtt,
    /// What congestion does to it besides what the law says.
    pub congestion: Congestion,
    /// How it decides what a loss means.
    pub recovery: RecoveryPath,
    /// The engine's timers.
    pub timers: TimerPath,
    /// What it keeps in memory besides, for the account of [`memory`](super::memory).
    pub memory: Memory,
    /// Where each value comes from, by its key.
    pub sources: BTreeMap<&'static str, Source>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Said by a paper or a manual: which, and where.
    Said(String),
    /// Fitted to this point of this figure.
    Calibrated(String),
    /// Our choice, with its reason.
    Chosen(String),
    /// Given by the user, in a file or a scenario.
    Given,
}

/// A length of time, or cycles of the architecture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// A length of time.
    Span(Span),
    /// Cycles.
    Cycles(u32),
}

impl Default for Time {
    fn default() -> Self {
        Self::Span(Span::ZERO)
    }
}

/// How many entries a memory on the chip has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entries {
    /// As many as are wanted: nothing is anywhere else.
    #[default]
    All,
    /// So many; zero: nothing is kept.
    Count(u32),
}

/// The link to the host's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcie {
    /// Whether there is one. Without it payload, requests and contexts are at hand at once.
    pub attached: bool,
    /// From a read's request to its first octet.
    pub read: Span,
    /// From a write's last octet on the link until it is in the host's memory.
    pub write: Span,
    /// Octets per second each way; `None`: no limit.
    pub rate: Option<BitsPerSec>,
    /// The most payload of one transaction.
    pub payload: u32,
    /// Octets of each transaction besides.
    pub overhead: u32,
}

/// Processing units: each does one piece of work after the other, and waits for what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// How many; a queue pair's work goes to the unit of its number modulo this. Zero: a pipeline, in which packets of
    /// all queue pairs keep their order.
    pub count: u32,
    /// How long one is taken by the first packet of a turn.
    pub send: Time,
    /// How long it is taken by each further packet.
    pub more: Time,
    /// How long one is taken by a packet that arrived.
    pub receive: Time,
    /// How long it is taken by each KiB of payload, sent or received.
    pub copy: Time,
    /// How long each packet takes it besides, at random: the mean of an exponential distribution.
    pub jitter: Time,
}

/// Cores that run the law: N for packets about to be sent and N for all other events, a queue pair's by its number
/// modulo N. Each runs one event to its end, and then the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// How many pairs; zero: the engine runs the law itself, in no time.
    pub pairs: u32,
    /// Whether one core does the work of both of a pair.
    pub shared: bool,
    /// Their clock; `None`: the architecture's.
    pub clock: Option<Clock>,
    /// From an event's turn, when its context is at hand, until the core can begin: hardware fills its registers, or its
    /// program works out where the context is.
    pub load: Time,
    /// What an instruction that reads or writes a word of context or header takes, in cycles, in a program; zero: what
    /// riscv-mini takes, whatever the register.
    pub word: u32,
    /// What one on any other register takes (event, clock, credit), in cycles.
    pub register: u32,
    /// What a program's other instructions take; `csr`, those on registers where `word` is zero.
    pub costs: CycleModel,
    /// What an event of a law that is no program takes, in cycles.
    pub native: u32,
    /// Packets that a pair has still to hear of before those that arrive for it wait in the receive FIFO; at least 1.
    pub queue: Entries,
    /// From the first hint of what is to be sent until it stands in line for its core.
    pub handler: Time,
    /// From a core's refusal until the packet stands in line again (SwCC's LoopBack).
    pub loop_back: Time,
}

/// The contexts of queue pairs that the cores work on, on the chip as far as there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Octets of a context.
    pub size: u32,
    /// Octets of a line; zero: a context is one line.
    pub line: u32,
    /// Lines on the chip.
    pub lines: Entries,
    /// Lines of a set; zero: any may stand anywhere.
    pub ways: u32,
    /// How long a line takes that is not there.
    pub memory: Span,
    /// Whether a line is fetched as soon as the number of its queue pair is known, and not when a core wants it.
    pub hint: bool,
}

/// The way of a queue pair's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// From one decision whose turn it is to the next.
    pub interval: Time,
    /// From the decision to the packet, besides what is waited for.
    pub latency: Time,
    /// From one packet handed to the port to the next.
    pub pace: Time,
    /// How much of the time by which packets leave later than their pace lets them is made up.
    pub slack: Time,
    /// Send requests fetched at once.
    pub fetch: u32,
    /// Send requests served in a turn.
    pub serve: u32,
    /// Octets of payload sent in a turn, though at least one packet.
    pub burst: Bytes,
    /// Whether a turn about whose packets cores are asked, one by one, goes on until its message ends.
    pub whole: bool,
    /// Turns under way at once.
    pub turns: u32,
    /// Octets of payload fetched, or being fetched, ahead of the port.
    pub buffer: Bytes,
    /// Payload up to this long lies in the send request itself, whose place is as much longer; at most 1 KiB.
    pub inline: Bytes,
}

impl Default for Send {
    fn default() -> Self {
        Self {
            interval: Time::default(),
            latency: Time::default(),
            pace: Time::default(),
            slack: Time::default(),
            fetch: 1,
            serve: 1,
            burst: Bytes(1),
            whole: false,
            turns: 64,
            buffer: Bytes(65_536),
            inline: Bytes(0),
        }
    }
}

/// The way of a packet that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receive {
    /// From one packet taken out of the FIFO to the next.
    pub interval: Time,
    /// From there to the engine's decision, besides what is waited for.
    pub latency: Time,
    /// Octets of frames that wait or are worked on; `None`: no limit. A NIC that it fills sends PAUSE where PFC is on,
    /// else drops.
    pub fifo: Option<Bytes>,
    /// Whether the acknowledgement waits until the payload is in the host's memory.
    pub ack_after_placement: bool,
}

/// A memory of equal entries, on the chip as far as it has room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// Octets of an entry.
    pub size: u32,
    /// Entries on the chip.
    pub entries: Entries,
    /// Entries of a set; zero: any entry may stand anywhere.
    pub ways: u32,
    /// Which entry of a set makes way.
    pub replacement: Replacement,
}

/// Which entry of a set makes way for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used: who goes round one entry more than there are never finds any.
    #[default]
    Lru,
    /// Any, each as likely, by the run's seed.
    Random,
}

/// The address translations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mtt {
    /// The entries.
    pub store: Store,
    /// Octets of a page.
    pub page: Bytes,
}

/// What congestion does to a NIC besides what its law says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// How long a queue pair sends nothing after a CNP that finds it sending; zero: not at all.
    pub halt: Span,
    /// How long a CNP that arrived is on its way to the law.
    pub delay: Span,
}

/// How a NIC decides what a loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryPath {
    /// How long a NAK is on its way to the engine, while the queue pair goes on sending.
    pub nak: Span,
    /// What software on the host takes for each packet of a loss; with `octets` above zero.
    pub software: Span,
    /// Octets that the host's software is told of each packet of a loss; zero: the NIC decides at once.
    pub octets: u32,
    /// Cores of the host that run that software; a queue pair's is that of its number modulo this.
    pub cores: u32,
}

impl Default for RecoveryPath {
    fn default() -> Self {
        Self { nak: Span::ZERO, software: Span::ZERO, octets: 0, cores: 1 }
    }
}

/// How a NIC looks after the engine's timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerPath {
    /// From one timer that expired to the next: a NIC that looks after one queue pair at a time. Zero: all at once.
    pub interval: Time,
}

/// What a NIC keeps in memory, for its account: what a conventional one keeps for selective repeat, and sizes that do
/// not depend on the number of queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All of the memory on the chip, where it is known.
    pub chip: Bytes,
    /// Queue pairs that it was shown to serve with all their contexts on the chip; zero: not known.
    pub queue_pairs: u32,
    /// The receiving buffer.
    pub receive_buffer: Bytes,
    /// The scheduler's queues besides `schedule_entry`.
    pub scheduler: Bytes,
    /// Octets of an entry of the schedule queue; one per queue pair.
    pub schedule_entry: u32,
    /// Octets that a context takes up on the chip, padding included; zero: its size.
    pub context_stored: u32,
    /// Memory that is registered, for the size of the translation table.
    pub registered: Bytes,
    /// Packets in flight that selective repeat tracks, by queue pair.
    pub window: u32,
    /// Bitmaps of that many bits on the chip.
    pub bitmaps: u32,
    /// Octets of reordering buffer on the chip, by queue pair.
    pub reorder: Bytes,
    /// Octets of an entry of the table of outstanding requests; as many entries as `window`.
    pub outstanding_entry: u32,
}

impl Architecture {
    /// What cycles of the cores are counted by.
    pub fn core_clock(&self) -> Option<Clock> {
        self.cores.clock.or(self.clock)
    }

    /// Octets of a send request, with what may lie in it of payload, in steps of 64 octets: a send queue's places are alike.
    pub fn send_request(&self) -> u64 {
        u64::from(self.wqe.size) + self.send.inline.0.next_multiple_of(64)
    }

    /// `time` by the architecture's clock; cycles without a clock take no time.
    pub fn span(&self, time: Time) -> Span {
        match time {
            Time::Span(span) => span,
            Time::Cycles(cycles) => self.clock.map_or(Span::ZERO, |clock| clock.cycles(cycles)),
        }
    }

    /// What queue pairs on such a NIC have to defer.
    pub fn deferred(&self) -> Deferred {
        Deferred {
            law: self.cores.pairs > 0,
            placement: self.pcie.attached,
            ack_after_placement: self.pcie.attached && self.receive.ack_after_placement,
            recovery: self.recovery.octets > 0,
            memory: self.pcie.attached,
        }
    }
}
