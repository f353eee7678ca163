//! The one vocabulary in which every law hears of the network, native or a program on a core.

pub use roci_wire::{Hop, PathId};

use roci_units::Instant;
use roci_wire::Opcode;

/// Classes of events, one bit each: what a law traces is a set of them, an event's class is one.
///
/// The classes of packets come first, and those of a law's own last. `TURN`, `CNP`, `CE` and what follows them are private
/// to the NIC: they have no opcode of their own on every layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class(pub u32);

impl Class {
    /// No class: a law that traces nothing is never called.
    pub const NONE: Self = Self(0);
    /// A packet of a SEND arrived.
    pub const SEND: Self = Self(1);
    /// A packet of a WRITE arrived.
    pub const WRITE: Self = Self(1 << 1);
    /// A READ request arrived.
    pub const READ_REQUEST: Self = Self(1 << 2);
    /// A packet of a READ response arrived.
    pub const READ_RESPONSE: Self = Self(1 << 3);
    /// An atomic request arrived.
    pub const ATOMIC: Self = Self(1 << 4);
    /// An acknowledgement arrived, an atomic's included.
    pub const ACK: Self = Self(1 << 5);
    /// A negative acknowledgement of a sequence arrived, selective ones included.
    pub const NACK: Self = Self(1 << 6);
    /// A receiver-not-ready NAK arrived.
    pub const RNR: Self = Self(1 << 7);
    /// A grant arrived (Homa, credit-based laws).
    pub const GRANT: Self = Self(1 << 8);
    /// A pull arrived (NDP).
    pub const PULL: Self = Self(1 << 9);
    /// A request to send again arrived (Homa).
    pub const RESEND: Self = Self(1 << 10);
    /// The peer is alive but sends something else (Homa).
    pub const BUSY: Self = Self(1 << 11);
    /// A packet arrived whose payload a switch cut off (NDP).
    pub const TRIMMED: Self = Self(1 << 12);
    /// A congestion notification packet arrived.
    pub const CNP: Self = Self(1 << 16);
    /// A data packet arrived that carries Congestion Experienced. A law that traces the packet's own class sees
    /// that class with [`Event::ecn`] set instead.
    pub const CE: Self = Self(1 << 17);
    /// A data packet is about to be sent: the event to answer with a [`Verdict`](crate::Verdict).
    pub const TRANSMIT: Self = Self(1 << 18);
    /// A timer of the law ran out.
    pub const TIMER: Self = Self(1 << 19);
    /// The octets that the law asked to be told of have been sent.
    pub const BYTE_COUNTER: Self = Self(1 << 20);
    /// A loss was detected: a timeout of the queue pair ([`Event::timeout`]), a recovery that began, or a packet whose
    /// payload a switch cut off, each of which the receiver names.
    pub const LOSS: Self = Self(1 << 21);
    /// A message came to the head of the send queue and nothing of it has been sent: [`Event::part`] names it. A law
    /// that deals tokens by the message (Homa) deals the first ones here.
    pub const MESSAGE: Self = Self(1 << 22);
    /// The port's agent has come to a message on its way in, and is about to send its sender a `GRANT` or, with
    /// [`Event::timeout`], a `RESEND`: [`Event::part`] is what the agent would say. Whose turn it is, and when, is the
    /// agent's affair; what is said is the law's, which sends it by [`Outcome::emit`](crate::Outcome::emit), as it is or
    /// otherwise, or says nothing. Where no law hears of it, what the agent would say is said.
    pub const TURN: Self = Self(1 << 15);
    /// Packets that mean what a law makes of them, `LAW_0` to `LAW_7`: each of the eight bits is a class. They are what SwCC
    /// leaves to programs as the operations 0x18 to 0x1f, one bit each in its filter (§4.3.2), and go in layout `cc`.
    pub const LAW: Self = Self(0xff << 24);
    /// Arriving packets that carry payload or ask for data; the answer of a law that traces one of these
    /// carries the acknowledgement ([`Outcome::emit`](crate::Outcome::emit)).
    pub const DATA: Self =
        Self(Self::SEND.0 | Self::WRITE.0 | Self::READ_REQUEST.0 | Self::READ_RESPONSE.0 | Self::ATOMIC.0);

    /// What comes of a packet that arrived.
    pub const ARRIVED: Self = Self(0x1fff | Self::CNP.0 | Self::CE.0 | Self::LAW.0);

    /// The class of a packet of a law's own, of which there are eight.
    pub const fn law(number: u8) -> Self {
        Self(1 << (24 + (number & 7)))
    }

    /// The opcode of the packets that only laws and the port's agents send, and no layout has all of them; `None` where
    /// packets of this class are the engine's, or it is no class of packets.
    pub const fn opcode(self) -> Option<Opcode> {
        Some(match self {
            Self::GRANT => Opcode::HOMA_GRANT,
            Self::PULL => Opcode::PULL,
            Self::RESEND => Opcode::HOMA_RESEND,
            Self::BUSY => Opcode::HOMA_BUSY,
            Self(bit) if bit.is_power_of_two() && self.within(Self::LAW) => {
                #[expect(clippy::cast_possible_truncation, reason = "below 8")]
                let number = bit.trailing_zeros() as u8 - 24;
                Opcode(Opcode::LAW_FIRST.0 + number)
            }
            _ => return None,
        })
    }

    /// The class of a packet with such an opcode.
    pub const fn of_opcode(opcode: Opcode) -> Option<Self> {
        Some(match opcode {
            Opcode::PULL => Self::PULL,
            Opcode::HOMA_GRANT => Self::GRANT,
            Opcode::HOMA_RESEND => Self::RESEND,
            Opcode::HOMA_BUSY => Self::BUSY,
            Opcode(law) if law >= Opcode::LAW_FIRST.0 => Self::law(law - Opcode::LAW_FIRST.0),
            _ => return None,
        })
    }

    /// Whether the two sets share a class.
    #[inline]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether all of this set's classes are in the other.
    #[inline]
    pub const fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// This set without what is in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which octets of which message a packet is about, for the layouts that name them (Homa); else all zero.
///
/// In a data packet, and in a `TRANSMIT` or `MESSAGE` event, `offset..end` is what the packet carries or would carry. In a
/// `GRANT`, `end` is how far the sender may go. In a `RESEND`, `offset..end` is what is missing. In a `TURN` for a `GRANT`,
/// `offset` is how many octets have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The message: where its first packet stands in the queue pair's sequence, counted from zero, modulo 2³².
    pub message: u32,
    /// Octets of the whole message, where the packet tells.
    pub message_length: u32,
    /// The first octet meant.
    pub offset: u32,
    /// The octet after the last one meant.
    pub end: u32,
    /// The priority that the packet came with or that a `GRANT` assigns; 0 is the lowest.
    pub priority: u8,
}

/// Something that happened to a queue pair, as its law sees it.
///
/// Fields that have no meaning for a class are zero or empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// What happened: exactly one class.
    pub class: Class,
    /// The NIC's clock.
    pub now: Instant,
    /// The queue pair, by our own number.
    pub qpn: u32,
    /// The host that sent the packet that arrived, as the port's agent tells hosts apart; zero for all others.
    pub peer: u64,
    /// The opcode in the BTH of the packet that arrived or is about to be sent; zero where there is no packet.
    pub opcode: u8,
    /// Octets of payload in the packet that arrived or is about to be sent; octets counted, for `BYTE_COUNTER`; those of the
    /// packet that was trimmed, for a `LOSS`, and zero for any other.
    pub length: u32,
    /// Whether the packet carries CE, or echoes it (BECN in an ACK).
    pub ecn: bool,
    /// Whether a `LOSS` is a timeout; whether a `TURN` is for octets that did not come in time.
    pub timeout: bool,
    /// Which timer ran out. The engine keeps one wake-up per queue pair and says zero; a law with several timers keeps
    /// their instants in its context, asks to be woken at the earliest, and tells them apart by itself (the adapter of
    /// programs does it for a program, which finds its timer's number here).
    pub timer: u8,
    /// How many periods of a private timer have passed since the law was last called; the law or the adapter that
    /// keeps the timer fills it in, the engine says zero.
    pub periods: u32,
    /// Octets newly acknowledged by this packet.
    pub acked: u32,
    /// Octets sent and not yet acknowledged, after this event.
    pub in_flight: u32,
    /// Of a packet that is about to be sent: whether something comes for certain, the answer to what was sent or asked for before, its
    /// timeout, or, while the peer's READ is answered, that it is asked for again.
    pub outstanding: bool,
    /// The packet sequence up to which all is acknowledged, counted from the first packet, modulo 2³².
    pub acked_sequence: u32,
    /// The packet sequence to be sent next, counted alike.
    pub next_sequence: u32,
    /// Hardware time of the CC header, in nanoseconds modulo 2³²: when the peer sent this packet, by its clock, and when what it
    /// answers was sent, by ours, or zero where it answers nothing.
    pub peer_sent: u32,
    /// See [`peer_sent`](Self::peer_sent).
    pub echoed: u32,
    /// Whether the packet told these two.
    pub stamped: bool,
    /// When the packet that this one answers was sent, by our clock; `Instant::ZERO` where the layout or the engine
    /// does not know.
    pub sent: Instant,
    /// Switches that the answered packet crossed, where the layout or the IP hop limit tells (Swift's target).
    pub hop_count: u8,
    /// Which switches told [`hops`](Self::hops), as HPCC's pathID has it.
    pub path_id: PathId,
    /// Packets newly allowed by a `PULL`, or by an acknowledgement that carries the count of pulls (NDP).
    pub pulled: u32,
    /// Packets of requests from the first that is missing up to the one that arrived; zero where none is (NDP). Of a message's data in
    /// layout `homa`: one where nothing is kept that comes out of order.
    pub missing: u32,
    /// Whether the sender had nothing more to send: as an arriving data packet says, else as the queue pair's own last
    /// packet said (NDP).
    pub drained: bool,
    /// Whether the packet that is answered said that nothing follows: its receiver pulls for what is missing alone, and for
    /// nothing else of what came by then (NDP).
    pub lapsed: bool,
    /// The message and octets concerned, where the layout names them.
    pub part: Part,
    /// The law's own header words on the packet.
    pub words: &'a [u32],
    /// Telemetry that the packet gathered, nearest switch first.
    pub hops: &'a [Hop],
}

impl Event<'_> {
    /// By which switches the telemetry came, and from bit 24 on how many they are: zero where there is none.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "few hops")]
    pub const fn path(&self) -> u32 {
        self.path_id.get() | (self.hops.len() as u32) << 24
    }

    /// The same without its words and hops, which whoever keeps an event keeps beside it.
    #[must_use]
    pub const fn bare(&self) -> Event<'static> {
        let Event {
            class,
            now,
            qpn,
            peer,
            opcode,
            length,
            ecn,
            timeout,
            timer,
            periods,
            acked,
            in_flight,
            outstanding,
            acked_sequence,
            next_sequence,
            peer_sent,
            echoed,
            stamped,
            sent,
            hop_count,
            path_id,
            pulled,
            missing,
            drained,
            lapsed,
            part,
            words: _,
            hops: _,
        } = *self;
        Event {
            class,
            now,
            qpn,
            peer,
            opcode,
            length,
            ecn,
            timeout,
            timer,
            periods,
            acked,
            in_flight,
            outstanding,
            acked_sequence,
            next_sequence,
            peer_sent,
            echoed,
            stamped,
            sent,
            hop_count,
            path_id,
            pulled,
            missing,
            drained,
            lapsed,
            part,
            words: &[],
            hops: &[],
        }
    }
}
