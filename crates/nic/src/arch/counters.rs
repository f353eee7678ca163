//! What a NIC counts besides its engine.

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
}

/// What a NIC that is not ideal counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchCounters {
    /// Octets over PCIe in both directions by [`Cause`], headers of transactions included.
    pub pcie: [u64; Cause::ALL.len()],
    /// Lookups of queue pair contexts.
    pub context: Lookups,
    /// Turns that found send requests on the chip, or had to fetch them.
    pub wqe: Lookups,
    /// Lookups of receive requests.
    pub receive_wqe: Lookups,
    /// Lookups of address translations.
    pub mtt: Lookups,
    /// Send requests that were fetched and not used in their turn, and will be fetched again.
    pub dropped_wqes: u64,
    /// Times that a queue pair was halted because of congestion.
    pub halts: u64,
    /// Loss events that went over the slow path.
    pub recoveries: u64,
    /// Packets that the receive FIFO had no room for.
    pub overflowed: u64,
    /// Turns of queue pairs.
    pub turns: u64,
    /// Packets of requests that were made.
    pub made: u64,
    /// From the engine's segment until it could be handed to the port, summed over them.
    pub made_time: Span,
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
