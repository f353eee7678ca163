//! What arrives at the engine, and what follows from it at once.

use crate::segment::{OwnedEvent, Segment};
use roci_control::{Hop, PathId};
use roci_units::Qpn;
use roci_wire::Header;

/// A packet that arrived, checked and parsed; its payload stays with the caller.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// BTH and extensions.
    pub header: &'a Header,
    /// Who sent it: compared with the queue pair's path, so that a stranger's packet is refused.
    pub path: u64,
    /// Whether the IP header carries CE.
    pub ce: bool,
    /// Optional header words.
    pub words: &'a [u32],
    /// Telemetry.
    pub hops: &'a [Hop],
    /// Which switches that is of.
    pub path_id: PathId,
}

impl<'a> Arrival<'a> {
    /// One of `path` that is not marked, and has neither words nor telemetry.
    #[inline]
    pub fn new(header: &'a Header, path: u64) -> Self {
        Self { header, path, ce: false, words: &[], hops: &[], path_id: PathId::default() }
    }
}

/// Where the payload of a packet that was accepted goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The queue pair.
    pub qpn: Qpn,
    /// The first octet's address, in the terms of the region or the request.
    pub address: u64,
    /// The key of the region.
    pub key: u32,
    /// Octets.
    pub length: u32,
    /// To be given back with [`Resolution::Placed`] when placement is deferred; `None` when it is immediate.
    pub token: Option<Token>,
}

/// A deferral's name. It is spent by one `resolve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// What an arriving packet leads to at once. The caller owns one and hands it in again and again.
#[derive(Clone, Debug, Default)]
pub struct Reaction {
    /// Where its payload goes, if it has any and was accepted.
    pub placement: Option<Placement>,
    /// An acknowledgement, NAK or RNR NAK to send now: a header alone, on the path that the packet came by.
    pub reply: Option<Segment>,
    /// A CNP, grant or other packet of the law to send now.
    pub notice: Option<Segment>,
    /// Why it was refused, if it was.
    pub refused: Option<Refusal>,
}

/// Why an arriving packet changed nothing. Each reason has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No queue pair has that number, or it is in no state to receive.
    NoQueuePair,
    /// It comes from someone else than the queue pair's peer.
    WrongPeer,
    /// The opcode is unknown, or does not belong to the queue pair's service.
    WrongOpcode,
    /// A duplicate of what has been received; acknowledged again where the protocol says so.
    Duplicate,
    /// Out of sequence; answered with a NAK where the protocol says so.
    OutOfSequence,
    /// A response that fits no outstanding request.
    UnexpectedResponse,
    /// The receiver is not ready; answered with an RNR NAK.
    ReceiverNotReady,
    /// Memory keys, bounds, rights or the opcode's place in its message forbid it; answered with a NAK.
    Rejected,
    /// The wrong queue key on a datagram, or no receive request for it, or a switch cut its payload off.
    Datagram,
}

/// Work that takes time elsewhere; give its result back with `resolve`, late and in any order.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::large_enum_variant, reason = "boxing the event of a law would allocate for each packet")]
pub enum Deferral {
    /// Run the law of `qpn` on this event; answer with [`Resolution::Law`].
    Law {
        /// Its name.
        token: Token,
        /// The queue pair, owned until the answer.
        qpn: Qpn,
        /// The event.
        event: OwnedEvent,
    },
    /// Decide what a loss means, or fill the bitmap of a gap (SRNIC's slow path); answer with [`Resolution::Recovered`].
    Recovery {
        /// Its name.
        token: Token,
        /// The queue pair.
        qpn: Qpn,
        /// Packets whose metadata the decision is about: what goes to the slow path.
        packets: u32,
    },
    /// Do this to memory; answer with [`Resolution::Memory`].
    Memory {
        /// Its name.
        token: Token,
        /// The queue pair.
        qpn: Qpn,
        /// What to do.
        operation: MemoryOperation,
    },
}

/// An access to memory whose result the engine needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// Fetch what a READ asks for, so that its response can be sent: `length` octets at `address` under `key`.
    Read {
        /// The first octet.
        address: u64,
        /// The key of the region.
        key: u32,
        /// Octets.
        length: u32,
    },
    /// Add to eight octets and give back what was there.
    FetchAdd {
        /// A multiple of 8.
        address: u64,
        /// The key of the region.
        key: u32,
        /// What to add.
        add: u64,
    },
    /// Compare eight octets, swap if equal, and give back what was there.
    CompareSwap {
        /// A multiple of 8.
        address: u64,
        /// The key of the region.
        key: u32,
        /// What to compare with.
        compare: u64,
        /// What to swap in.
        swap: u64,
    },
}

/// The answer to a deferral.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is handed over at once and kept nowhere; a box would be one per packet"
)]
pub enum Resolution {
    /// The law answered.
    Law(roci_control::Outcome),
    /// The payload is in its place.
    Placed,
    /// The recovery's decision may take effect.
    Recovered,
    /// The memory answered; the original value of an atomic, zero for a READ.
    Memory {
        /// The original value.
        original: u64,
    },
}

/// Which kinds of work are deferred on a queue pair; the others are immediate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferred {
    /// The law runs elsewhere.
    pub law: bool,
    /// Placement takes time; the completion waits for it.
    pub placement: bool,
    /// The acknowledgement waits for placement as well.
    pub ack_after_placement: bool,
    /// The recovery decision takes time.
    pub recovery: bool,
    /// READ data take time. An atomic's value always comes by a deferral, since the engine owns no memory.
    pub memory: bool,
}

impl Reaction {
    /// Nothing follows.
    #[inline]
    pub(crate) const fn clear(&mut self) {
        self.placement = None;
        self.reply = None;
        self.notice = None;
        self.refused = None;
    }
}

impl Refusal {
    /// How many reasons there are.
    pub const COUNT: usize = 9;
}
