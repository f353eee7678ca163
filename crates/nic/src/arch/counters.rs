//! What a NIC counts besides its engine.

use super::cores::Side;
use roci_units::Span;

/// Why something crossed PCIe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Payload, read to be sent or written where it arrived.
    Payload,
    /// Queue pair contexts, fetched or written back.
    Context,
    /// Send requests (WQEs).
    Wqe,
    /// Receive requests.
    ReceiveWqe,
    /// Address translations.
    Mtt,
    /// Completions.
    Completion,
    /// What the slow path of a loss recovery tells the host's software, and what that answers.
    Recovery,
}

impl Cause {
    /// All of them, in the order of [`ArchCounters::pcie`].
    pub const ALL: [Self; 7] = [
        Self::Payload,
        Self::Context,
        Self::Wqe,
        Self::ReceiveWqe,
        Self::Mtt,
        Self::Completion,
        Self::Recovery,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Context => "context",
            Self::Wqe => "wqe",
            Self::ReceiveWqe => "receive_wqe",
            Self::Mtt => "mtt",
            Self::Completion => "completion",
            Self::Recovery => "recovery",
        }
    }
}

/// Lookups of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Found.
    pub hits: u64,
    /// Fetched.
    pub misses: u64,
    /// Of these, how many others had to make way for, or would have had to where nothing is kept; the rest filled what was
    /// empty.
    pub evictions: u64,
}

impl Lookups {
    /// The share of lookups that missed; zero of none.
    #[expect(clippy::cast_precision_loss, reason = "a share shows fewer digits than f64 holds")]
    pub fn missed(&self) -> f64 {
        self.misses as f64 / (self.hits + self.misses).max(1) as f64
    }
}

/// What the cores of a NIC counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Events about packets to be sent.
    pub sends: u64,
    /// All others. Timers of a program that have run out by then are told in the turn of the event at hand, and count as
    /// events of the program alone.
    pub receives: u64,
    /// Packets that a core refused for now (LoopBack).
    pub loop_backs: u64,
    /// Packets that waited in the receive FIFO because a core had too many still to hear of.
    pub held_up: u64,
    /// How long they waited, summed.
    pub held_up_for: Span,
    /// Cycles of their programs, by side as above.
    pub cycles: [u64; 2],
    /// From when the engine had an event until it came in line, behind an earlier one of its queue pair, summed.
    pub behind: Span,
    /// From an event's arrival in line until its turn, summed.
    pub waited: Span,
    /// From an event's turn until its context was on the chip, summed.
    pub stalled: Span,
    /// From an event's turn until it was done, summed.
    pub busy: Span,
    /// The same of the core that was busy longest.
    pub busiest: Span,
    /// From that one's first turn until it was done with its last event.
    pub busiest_over: Span,
    /// Lookups of contexts by a hint.
    pub hinted: Lookups,
    /// Lookups of contexts by a core; one that is on its way counts as found.
    pub wanted: Lookups,
}

impl CoreCounters {
    /// Notes an event.
    pub(crate) fn note(&mut self, side: Side, cycles: u32, waited: Span, stalled: Span, busy: Span) {
        match side {
            Side::Send => self.sends += 1,
            Side::Receive => self.receives += 1,
        }
        self.cycles[side as usize] += u64::from(cycles);
        self.waited += waited;
        self.stalled += stalled;
        self.busy += busy;
    }
}

/// What a NIC that is not ideal counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchCounters {
    /// Octets over PCIe in both directions by [`Cause`], headers of transactions included.
    pub pcie: [u64; Cause::ALL.len()],
    /// Lookups of queue pair contexts.
    pub context: Lookups,
    /// Turns that found send requests on the chip or on their way there, or had to fetch them.
    pub wqe: Lookups,
    /// Lookups of receive requests.
    pub receive_wqe: Lookups,
    /// Lookups of address translations.
    pub mtt: Lookups,
    /// Send requests that were fetched and not used in their turn, and will be fetched again.
    pub dropped_wqes: u64,
    /// Times that a queue pair was halted because of congestion.
    pub halts: u64,
    /// Packets of losses that the slow path was told of.
    pub recoveries: u64,
    /// Packets that the receive FIFO had no room for.
    pub overflowed: u64,
    /// Processing units; zero: a pipeline.
    pub units: u32,
    /// How long units waited for a context or for requests, summed over them.
    pub units_waited: Span,
    /// Turns of queue pairs.
    pub turns: u64,
    /// Packets of requests that were made.
    pub made: u64,
    /// From the engine's segment until it could be handed to the port, summed over them.
    pub made_time: Span,
    /// What its cores counted.
    pub cores: CoreCounters,
}

impl ArchCounters {
    /// Octets over PCIe for `cause`.
    pub const fn pcie_of(&self, cause: Cause) -> u64 {
        self.pcie[cause as usize]
    }

    /// Octets over PCIe in all.
    pub fn pcie_total(&self) -> u64 {
        self.pcie.iter().sum()
    }
}
