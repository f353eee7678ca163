//! What a law answers: credit, timers, and what is to be sent.

use crate::event::{Class, Part};
use roci_units::Instant;

/// How fast and how far a queue pair may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The pacer's rate in kb/s of octets on the wire (preamble and gap in); [`Credit::UNLIMITED`]: not paced.
    /// Never zero: a silent queue pair learns nothing.
    pub rate_kbps: u32,
    /// Octets of payload that may be unacknowledged; [`Credit::UNLIMITED`]: any number.
    pub window: u32,
    /// What may still be sent on tokens, in the law's [`TokenUnit`]; [`Credit::UNLIMITED`]: tokens are not used.
    pub tokens: u32,
}

/// What a token lets go. Tokens are for requests; READ responses go without, for their reader has asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenUnit {
    /// An octet of payload that is sent for the first time. The packet in which the tokens end goes whole, and what it
    /// takes beyond them is taken off those that come next. What was granted once is sent again without.
    #[default]
    Octets,
    /// A packet, sent for the first time or again but for those of [`Outcome::pushed`].
    Packets,
}

impl Credit {
    /// No limit, for each of the three.
    pub const UNLIMITED: u32 = u32::MAX;
    /// Limited by nothing but the link.
    pub const FREE: Self = Self { rate_kbps: u32::MAX, window: u32::MAX, tokens: u32::MAX };
}

/// What becomes of the packet or the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The event is dealt with; a packet about to be sent goes.
    #[default]
    Proceed,
    /// The packet about to be sent comes back to the law later (SwCC's LoopBack): with the queue pair's next event
    /// from outside, or at [`Outcome::wake`], whichever is first.
    LoopBack,
    /// The law can no longer be trusted with this queue pair: a program trapped. Nothing else in the outcome counts,
    /// and the queue pair goes to the error state.
    Fault,
}

/// Up to 64 octets of header words that a law puts on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// How many of the words count, at most 16.
    pub len: u8,
    /// The words.
    pub words: [u32; 16],
}

/// A packet that the law asks for: its class and the law's words, never a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// `CNP`, `ACK`, `GRANT`, `PULL`, `RESEND`, `BUSY` or one of [`Class::LAW`].
    pub class: Class,
    /// The message and octets that a `GRANT`, `RESEND` or `BUSY` is about; a `GRANT` of no more than was granted before is
    /// not sent. The `end` of a `PULL` is the count of packets pulled so far. All zero otherwise.
    pub part: Part,
    /// The law's header words on it.
    pub words: Words,
}

impl Emit {
    /// A packet of `class` without words.
    pub const fn plain(class: Class) -> Self {
        Self {
            class,
            part: Part { message: 0, message_length: 0, offset: 0, end: 0, priority: 0 },
            words: Words { len: 0, words: [0; 16] },
        }
    }
}

/// What one limiter or one notification gap is shared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each queue pair has its own.
    #[default]
    Qp,
    /// All queue pairs of a port that run the law share one.
    Port,
}

/// A law's answer to one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What becomes of the packet.
    pub verdict: Verdict,
    /// The credit from now on. Handed in as it stands, so a law that changes nothing writes nothing.
    pub credit: Credit,
    /// Of the tokens, those that let no packet go again, and go last: what is pushed without being asked for is new (NDP's first
    /// window). `None` leaves them, as many as there are tokens for; a queue pair begins with such ones alone. Where tokens stand
    /// for octets, all let go what was never sent, and this means nothing.
    pub pushed: Option<u32>,
    /// When the law wants its next `TIMER` event; `Instant::NEVER` when it waits for none. Handed in as it stands.
    pub wake: Instant,
    /// Octets of payload after which the law wants a `BYTE_COUNTER` event, counted from now; `None` leaves the
    /// counter as it stands, zero stops it.
    pub byte_counter: Option<u32>,
    /// A packet to send. Where the event is about data and this is no acknowledgement, the engine sends its own besides.
    pub emit: Option<Emit>,
    /// The priority that this queue pair's packets take from now on.
    pub priority: Option<u8>,
    /// Header words for the packet about to be sent.
    pub words: Option<Words>,
    /// The classes that the law hears from now on; `None` leaves them as they are.
    pub traces: Option<Class>,
    /// Clock cycles that the event took on the core that the law is a program for; zero for a native law. A modelled
    /// NIC spends them, the engine ignores them.
    pub cycles: u32,
    /// Those of them that the core could have spent before the event: on timers that it is told of late.
    pub late_cycles: u32,
}

impl Outcome {
    /// The answer that changes nothing.
    pub const fn unchanged(credit: Credit, wake: Instant) -> Self {
        Self {
            verdict: Verdict::Proceed,
            credit,
            pushed: None,
            wake,
            byte_counter: None,
            emit: None,
            priority: None,
            words: None,
            traces: None,
            cycles: 0,
            late_cycles: 0,
        }
    }

    /// Whether it sets credit and wake-up, and asks for nothing else: what laws answer to most acknowledgements.
    #[inline]
    pub const fn is_credit_alone(&self) -> bool {
        self.emit.is_none()
            && self.pushed.is_none()
            && self.traces.is_none()
            && self.byte_counter.is_none()
            && self.priority.is_none()
            && !matches!(self.verdict, Verdict::Fault)
    }
}
