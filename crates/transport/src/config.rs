//! How an engine and its queue pairs are set up.

use crate::arrival::Deferred;
use crate::state::{QpState, Transition};
use alloc::format;
use alloc::string::String;
use roci_control::{Class, Law};
use roci_units::{BitsPerSec, Instant, Psn, Qpn, Span};
use roci_wire::{Layout, Opcode};

/// An engine's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The rate of the port, what "unpaced" means to a law.
    pub link: BitsPerSec,
    /// Seed for keys and other numbers that must not be guessed in the real world.
    pub seed: u64,
    /// Octets on the wire besides payload of the most common data packet, preamble and gap included: what packets
    /// count for in their queue pair's share of the port. Pacers count what each packet takes.
    pub wire_overhead: u16,
    /// The priority of CNPs, 0 to 7.
    pub cnp_priority: u8,
    /// What a pacer may make up for of time that was lost because the caller came late; zero: nothing, as a NIC that is
    /// never late.
    pub pacing_burst: Span,
    /// The longest time, at the pacer's rate, of a paced run that is offered at once, though at least a packet; zero:
    /// whatever the caller's quantum holds.
    pub paced_run: Span,
    /// How many of a path's lowest bits tell flows to the same host apart; the port's agent takes paths that differ in others for
    /// those of different hosts.
    pub flow_bits: u8,
    /// Bitmaps that senders in a loss may have at once, and as many for receivers with a gap; a queue pair takes up to two of each,
    /// for requests and for READ responses. Who finds none recovers without: it keeps nothing that comes out of order and sends more
    /// again. They take 1 KiB and 512 octets, or up to four times that with
    /// [longer ones](crate::Engine::with_bitmaps); memory grows with the first use of each. SRNIC keeps them in the host's memory, for
    /// all queue pairs (NSDI 2023, §4.4.2).
    pub bitmaps_max: u32,
}

impl EngineConfig {
    /// The host at the end of `path`.
    pub(crate) const fn host(&self, path: u64) -> u64 {
        match path.checked_shr(self.flow_bits as u32) {
            Some(host) => host,
            None => 0,
        }
    }
}

/// The service of a queue pair, with the upper three bits of its opcodes (IBTA Vol 1 §9.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Service {
    /// Reliable connection.
    #[default]
    Rc = 0x00,
    /// Unreliable connection: SENDs and WRITEs to one peer that nobody acknowledges. A request ends as its last packet leaves, and of a
    /// message of which a packet is lost the rest is dropped; a WRITE may have been placed in part then. It has the standard layout, no
    /// recovery, and a law that needs no acknowledgements, as [`dcqcn`](roci_control::Dcqcn); what is said of timeouts, retries,
    /// windows, READs and atomics is without effect.
    Uc = 0x20,
    /// Unreliable datagram.
    Ud = 0x60,
}

impl Service {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        }
    }

    /// The opcode of this service for `opcode` of a reliable connection, or itself where it is of this service already.
    #[inline]
    pub(crate) const fn opcode(self, opcode: Opcode) -> Opcode {
        Opcode(opcode.0 | self as u8)
    }

    /// Whether queue pairs of this service hear all that `law` has to hear of. Nobody acknowledges the packets of an unreliable connection,
    /// or grants it anything; marks are answered by CNPs there too.
    pub fn has_answers_for(self, law: &Law) -> bool {
        let answers =
            Class::ARRIVED.with(Class::LOSS).with(Class::MESSAGE).without(Class::CE.with(Class::CNP));
        self != Self::Uc || !law.traces().meets(answers)
    }
}

/// The recovery programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Go-back-N on a NAK or a timeout (IBTA Vol 1 §9.7.5).
    #[default]
    GoBackN,
    /// IRN's selective repeat (Mittal et al., SIGCOMM 2018, §3).
    Irn,
    /// SRNIC's memory-free selective repeat (Wang et al., NSDI 2023, §4.4).
    Srnic,
    /// TCP Reno (RFC 5681): a congestion window, fast retransmit and fast recovery.
    Reno,
    /// TCP NewReno (RFC 6582).
    NewReno,
    /// TCP with selective acknowledgements (RFC 6675).
    Sack,
    /// NDP (Handley et al., SIGCOMM 2017): what a switch trimmed is sent again.
    Ndp,
}

impl Recovery {
    /// All of them, by the names that scenarios and command lines have for them.
    pub const NAMED: [(&'static str, Self); 7] = [
        ("go-back-n", Self::GoBackN),
        ("irn", Self::Irn),
        ("srnic", Self::Srnic),
        ("reno", Self::Reno),
        ("newreno", Self::NewReno),
        ("sack", Self::Sack),
        ("ndp", Self::Ndp),
    ];

    /// Its name among [`Recovery::NAMED`].
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED.into_iter().find(|(_, recovery)| *recovery == self).map_or("", |(name, _)| name)
    }

    /// The layout with the fewest octets that says all that it needs to know.
    #[must_use]
    pub const fn layout(self) -> Layout {
        match self {
            Self::GoBackN => Layout::Standard,
            Self::Srnic => Layout::Srnic,
            Self::Ndp => Layout::Ndp,
            Self::Irn | Self::Reno | Self::NewReno | Self::Sack => Layout::Irn,
        }
    }

    /// Whether the receiver keeps packets that come out of order, so that each must say where it goes.
    #[inline]
    #[must_use]
    pub const fn keeps_out_of_order(self) -> bool {
        !matches!(self, Self::GoBackN)
    }

    /// Whether the sender keeps track of single packets beyond the first that is missing.
    pub(crate) const fn is_selective(self) -> bool {
        !matches!(self, Self::GoBackN | Self::Reno | Self::NewReno)
    }

    /// Whether bitmaps are on a slow path: what it does is counted ([`Engine::slow_path`](crate::Engine::slow_path)), and
    /// when it is deferred the queue pair goes on.
    #[inline]
    #[must_use]
    pub const fn has_slow_path(self) -> bool {
        matches!(self, Self::Srnic)
    }

    /// The program that sends READ responses again where they are acknowledged. SRNIC's stands in for go-back-N, which a lost
    /// tail costs a round trip a packet, where with IRN's each packet of it takes a timeout.
    #[must_use]
    pub(crate) const fn of_responses(self) -> Self {
        match self {
            Self::GoBackN => Self::Srnic,
            other => other,
        }
    }

    /// Whether the program says how many packets may be in flight. The receiver of such a one answers each packet that
    /// comes out of order with an acknowledgement of what came in order, not with a NAK.
    #[inline]
    #[must_use]
    pub const fn owns_window(self) -> bool {
        matches!(self, Self::Reno | Self::NewReno | Self::Sack)
    }

    /// Whether the retransmission timeout is the configured one whatever happens. Others have a shorter one while few packets
    /// are in flight (IRN), or a longer one after each that passed (Reno, NewReno, SACK).
    #[inline]
    #[must_use]
    pub const fn keeps_timeout(self) -> bool {
        matches!(self, Self::GoBackN | Self::Srnic | Self::Ndp)
    }
}

/// A memory protection domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pd(pub u32);

/// A shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Srq(pub u32);

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            link: BitsPerSec::from_gbps(100),
            seed: 1,
            wire_overhead: 82,
            cnp_priority: 6,
            pacing_burst: Span::ZERO,
            paced_run: Span::ZERO,
            flow_bits: 0,
            bitmaps_max: u32::MAX,
        }
    }
}

/// A queue pair's attributes (IBTA Vol 1 §11.2.5). `Default` gives a usable RC queue pair but for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpConfig {
    /// The number that it is to have; `None` lets the engine choose.
    pub qpn: Option<Qpn>,
    /// The state that it begins in: RTS where the peer is known, RESET where it is connected step by step.
    pub state: QpState,
    /// The service.
    pub service: Service,
    /// The protection domain.
    pub pd: Pd,
    /// The peer's queue pair.
    pub peer: Qpn,
    /// Where the peer is: opaque to the engine, given back with each segment and compared with each arrival.
    pub path: u64,
    /// The PSN of the first packet that we send.
    pub send_psn: Psn,
    /// The PSN of the first packet that we expect.
    pub receive_psn: Psn,
    /// Payload octets of a full packet, 1 to 4096.
    pub mtu: u16,
    /// Which optional headers the packets carry.
    pub layout: Layout,
    /// Each packet of a WRITE is a message of its own, RDMA WRITE ONLY. The peer cannot tell the difference but by its MSN;
    /// all packets have one length, which segmentation offload needs, and cost 16 octets more. Nor is the whole of the WRITE
    /// checked at its first packet then: where it leaves the region, or the key ends meanwhile, what lies before is placed,
    /// and the NAK is for the first packet that does not fit. A WRITE with immediate is one message all the same, for the peer's completion
    /// tells its length. On the standard layout, with go-back-N; elsewhere without effect.
    pub lone_writes: bool,
    /// The law, by its place among those added to the engine.
    pub law: u16,
    /// The recovery program.
    pub recovery: Recovery,
    /// Segments generated ahead of sending, 1 to 15 (Tonic's N; 1 for SwCC).
    pub ring: u8,
    /// The local ACK timeout; zero: never. IRN's RTO_high; its RTO_low is 5/16 of it. Reno, NewReno and SACK double it
    /// with each timeout in a row.
    pub timeout: Span,
    /// Retransmissions without progress before the queue pair fails, 0 to 7: after timeouts, and with go-back-N after NAKs
    /// and READ responses that are missing. To the other programs a NACK is news of one packet among others, as often as
    /// any is lost, and costs nothing.
    pub retry: u8,
    /// Retries after RNR NAKs without progress, 0 to 6; 7: for ever.
    pub rnr_retry: u8,
    /// The wait that our RNR NAKs ask for.
    pub min_rnr_timer: Span,
    /// Acknowledge at least every so many packets; the last packet of a message always asks for one, and so does, at the latest, what
    /// fills half of a window. The local ACK timer runs from the first packet that asks.
    pub ack_every: u16,
    /// READs and atomics that may be outstanding at once, as requester.
    pub max_rd_atomic: u8,
    /// READs and atomics that the responder keeps for replay.
    pub max_dest_rd_atomic: u8,
    /// Packets that may be unacknowledged whatever the law says (IRN's BDP-FC); zero: 2²³.
    pub max_in_flight: u32,
    /// The first congestion window in packets, at least 1, for the programs that own one.
    pub initial_window: u16,
    /// The priority of data, 0 to 7.
    pub priority: u8,
    /// The shared receive queue, if it uses one.
    pub srq: Option<Srq>,
    /// As responder, tell with each acknowledgement how many receive requests there are (end-to-end credits, IBTA Vol 1 §9.7.7.2), and
    /// unasked once there are some again, so that a requester which heeds it draws no RNR NAK. Without effect with a shared receive
    /// queue, as IBTA has it, and in layouts `ndp` and `homa`.
    pub credits: bool,
    /// With go-back-N, after a timeout send a few packets again in place of all that is in flight, and all, or step by step more, only where
    /// what is acknowledged then, or a NAK that a new packet draws, does not say that nothing was lost. For peers and paths that stand still
    /// for longer than the timeout now and then, as hosts do that take packets in software.
    pub probes: bool,
    /// The queue key, for datagrams.
    pub q_key: u32,
    /// Octets at the front of a receive request that a datagram leaves free, for the header that the world puts there: 40 in verbs (IBTA
    /// Vol 1 §11.4.1.2). The request has to have room for both.
    pub header_room: u8,
    /// Of an unreliable connection, tell of WRITEs without immediate data as well when all of one has come, by completions of kind
    /// [`RecvWrite`](crate::CompletionKind::RecvWrite) that bear no request's id: for a world that measures, for verbs have none such.
    pub tells_writes: bool,
    /// When it is made, which a program is told that opens it.
    pub created: Instant,
    /// What is deferred.
    pub deferred: Deferred,
}

impl Default for QpConfig {
    fn default() -> Self {
        Self {
            qpn: None,
            state: QpState::ReadyToSend,
            service: Service::Rc,
            pd: Pd::default(),
            peer: Qpn::new(0),
            path: 0,
            send_psn: Psn::new(0),
            receive_psn: Psn::new(0),
            mtu: 1024,
            layout: Layout::Standard,
            lone_writes: false,
            law: 0,
            recovery: Recovery::GoBackN,
            ring: 4,
            timeout: Span::from_micros(500),
            retry: 7,
            rnr_retry: 7,
            min_rnr_timer: Span::from_micros(640),
            ack_every: 1,
            max_rd_atomic: 16,
            max_dest_rd_atomic: 16,
            max_in_flight: 0,
            initial_window: 10,
            priority: 3,
            srq: None,
            credits: false,
            probes: false,
            q_key: 0,
            header_room: 0,
            tells_writes: false,
            created: Instant::ZERO,
            deferred: Deferred::default(),
        }
    }
}

/// What [`modify_qp`](crate::Engine::modify_qp) changes; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The way to another state, taken after the other changes.
    pub transition: Option<Transition>,
    /// The peer's queue pair.
    pub peer: Option<Qpn>,
    /// Where the peer is.
    pub path: Option<u64>,
    /// The PSN of the first packet that we send; only before RTS.
    pub send_psn: Option<Psn>,
    /// The PSN of the first packet that we expect; only before RTR.
    pub receive_psn: Option<Psn>,
    /// Payload octets of a full packet, 1 to 4096; only before RTR.
    pub mtu: Option<u16>,
    /// The local ACK timeout; zero: never.
    pub timeout: Option<Span>,
    /// Retransmissions without progress before the queue pair fails, 0 to 7.
    pub retry: Option<u8>,
    /// Retries after RNR NAKs, 0 to 6; 7: for ever.
    pub rnr_retry: Option<u8>,
    /// The wait that our RNR NAKs ask for.
    pub min_rnr_timer: Option<Span>,
    /// READs and atomics that may be outstanding at once, as requester.
    pub max_rd_atomic: Option<u8>,
    /// READs and atomics that the responder keeps for replay.
    pub max_dest_rd_atomic: Option<u8>,
    /// The queue key, for datagrams.
    pub q_key: Option<u32>,
}

impl Change {
    /// Whether it changes what is about answers, which an unreliable connection has none of.
    pub(crate) const fn is_of_answers(&self) -> bool {
        self.timeout.is_some()
            || self.retry.is_some()
            || self.rnr_retry.is_some()
            || self.min_rnr_timer.is_some()
            || self.max_rd_atomic.is_some()
            || self.max_dest_rd_atomic.is_some()
    }
}

/// Why a queue pair could not be made or changed. Nothing has changed then.
///
/// Its `Debug` is its `Display`, as that of the endpoint's errors.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QpError {
    /// There is no queue pair with that number.
    #[error("no queue pair {0:#08x}")]
    Unknown(Qpn),
    /// The number is in use.
    #[error("queue pair {0:#08x} exists already")]
    InUse(Qpn),
    /// An attribute is out of its range.
    #[error("{0} is out of range")]
    Range(&'static str),
    /// No such law, protection domain or shared receive queue.
    #[error("no such {0}")]
    Missing(&'static str),
    /// The attributes do not go together.
    #[error("{0}")]
    Conflict(&'static str),
    /// The state knows no such way.
    #[error("the queue pair is in state {0:?}, where {1:?} is not possible, but {ways}", ways = ways(*.0))]
    Transition(QpState, Transition),
}

impl core::fmt::Debug for QpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// The ways that lead on from `state`, of which there are several: the last of them is set apart.
fn ways(state: QpState) -> String {
    let mut text = String::new();
    let mut ways = state.ways().peekable();
    while let Some(way) = ways.next() {
        let before = if text.is_empty() {
            ""
        } else if ways.peek().is_some() {
            ", "
        } else {
            " or "
        };
        text += &format!("{before}{way:?}");
    }
    text
}
