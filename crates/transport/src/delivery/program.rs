//! Recovery programs: what they see, what they answer, and which there are.
//!
//! The face is Tonic's (§3.2, §3.5, Table 2): the fixed stage has moved the window and set the bits before a program
//! runs, and does what the program answers after it. A program keeps at most 30 octets for a queue pair and reads
//! bitmaps, but writes none. What each protocol uses of it:
//!
//! | protocol | events it reacts to | what it reads | what it answers | what it keeps |
//! | --- | --- | --- | --- | --- |
//! | go-back-N | NACK, timeout | `start`, `next` | mark to the end of the window | nothing |
//! | IRN | NACK with trigger, timeout | `start`, `next`; `acked` through the marking | mark up to the trigger | recovery PSN, how far it has marked |
//! | SRNIC | as IRN, and ACK with selective PSN; its decision may be deferred | the same | mark up to the trigger; the first again when a newer packet came | how far it has marked, what was new when it marked the first, and when it marked last |
//! | Reno | ACK without progress (the third), timeout | `newly_acked`, `in_flight` | mark the first, window | window, threshold, duplicates, recovery PSN |
//! | NewReno | as Reno, and ACK below the recovery PSN | the same | mark the first, window | the same, timeout flag, last highest ACK |
//! | SACK | ACK with selective PSN, timeout | `acked` (count, first clear), `resent` | mark up to the third selective PSN, window | window, threshold, lowest selective, last marked, recovery PSN |
//! | NDP | LOST for a trimmed packet, ACK with selective PSN, timeout | `start`, `next` | mark the one packet | nothing but a flag |

use super::bitmap::Bitmap;
use super::go_back_n::GoBackN;
use super::irn::Irn;
use super::srnic::Srnic;
use crate::config::Recovery;
use roci_units::{Instant, Psn, Span};

/// What happened to the packets of a sender's window, apart from how the wire says it. `cumulative` is the first
/// packet that the receiver has not got in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets arrived: all before `cumulative`, and `selective`.
    Ack {
        /// The first packet that is missing.
        cumulative: Psn,
        /// A packet beyond it that the receiver has and keeps.
        selective: Option<Psn>,
    },
    /// The receiver misses `cumulative`, which it expected.
    Nack {
        /// The first packet that is missing.
        cumulative: Psn,
        /// The packet whose arrival showed it and which the receiver keeps; `None`: it keeps nothing out of order.
        trigger: Option<Psn>,
    },
    /// The receiver knows that this packet is lost: a switch cut off its payload.
    Lost {
        /// The packet.
        psn: Psn,
    },
    /// No acknowledgement came in time.
    Timeout,
}

/// What a program sees.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The time.
    pub now: Instant,
    /// What happened, after the fixed stage has dealt with it. Selective parts are missing where no bitmap could be
    /// had to remember them.
    pub event: Event,
    /// The first packet not acknowledged, before the event.
    pub old_start: Psn,
    /// The first packet not acknowledged.
    pub start: Psn,
    /// The first packet never sent.
    pub next: Psn,
    /// Packets that this event acknowledged for the first time, selectively or not.
    pub newly_acked: u32,
    /// The bitmaps, if the queue pair has any.
    pub marks: Option<Marks<'a>>,
}

/// The bitmaps of a window, from its start to the first packet never sent.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// Selectively acknowledged.
    pub acked: Bitmap<'a>,
    /// To be sent again.
    pub marked: Bitmap<'a>,
    /// Sent again, at least once.
    pub resent: Bitmap<'a>,
}

impl Input<'_> {
    /// Packets sent and not acknowledged in order.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.next.since(self.start).unsigned_abs()
    }
}

/// What a program answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Packets to be sent again, from the first to before the second; those that were acknowledged meanwhile are left
    /// out.
    pub mark: Option<(Psn, Psn)>,
    /// The packets that may be in flight from now on, for programs that own the window.
    pub window: Option<u32>,
    /// Whether the retransmission timer starts anew.
    pub restart_timer: bool,
}

/// A recovery program for one queue pair, with what it keeps.
pub trait Recover {
    /// Whether it uses selective acknowledgements, so that the fixed stage keeps them in bitmaps and holds the window
    /// to their size.
    const SELECTIVE: bool;

    /// Reacts to an event.
    fn react(&mut self, input: &Input<'_>) -> Decision;

    /// Whether it has nothing in mind: an acknowledgement in order then needs no [`react`](Self::react), and bitmaps
    /// without bits may go back to the pool.
    fn is_idle(&self) -> bool;

    /// The retransmission timeout while `in_flight` packets are; `configured` is the queue pair's.
    fn timeout(&self, in_flight: u32, configured: Span) -> Span {
        let _ = in_flight;
        configured
    }
}

/// One of the programs.
#[derive(Clone, Debug)]
pub enum Program {
    /// Go-back-N.
    GoBackN(GoBackN),
    /// IRN's selective repeat.
    Irn(Irn),
    /// SRNIC's selective repeat.
    Srnic(Srnic),
}

impl Program {
    /// The program that a queue pair is configured with.
    #[must_use]
    pub fn new(recovery: Recovery) -> Self {
        match recovery {
            Recovery::GoBackN => Self::GoBackN(GoBackN),
            Recovery::Irn => Self::Irn(Irn::default()),
            Recovery::Srnic => Self::Srnic(Srnic::default()),
        }
    }

    /// [`Recover::SELECTIVE`].
    #[inline]
    #[must_use]
    pub const fn is_selective(&self) -> bool {
        match self {
            Self::GoBackN(_) => GoBackN::SELECTIVE,
            Self::Irn(_) => Irn::SELECTIVE,
            Self::Srnic(_) => Srnic::SELECTIVE,
        }
    }

    /// [`Recover::react`].
    pub fn react(&mut self, input: &Input<'_>) -> Decision {
        match self {
            Self::GoBackN(program) => program.react(input),
            Self::Irn(program) => program.react(input),
            Self::Srnic(program) => program.react(input),
        }
    }

    /// [`Recover::is_idle`].
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match self {
            Self::GoBackN(program) => program.is_idle(),
            Self::Irn(program) => program.is_idle(),
            Self::Srnic(program) => program.is_idle(),
        }
    }

    /// [`Recover::timeout`].
    #[inline]
    #[must_use]
    pub fn timeout(&self, in_flight: u32, configured: Span) -> Span {
        match self {
            Self::GoBackN(program) => program.timeout(in_flight, configured),
            Self::Irn(program) => program.timeout(in_flight, configured),
            Self::Srnic(program) => program.timeout(in_flight, configured),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_at_most_30_octets() {
        assert!(size_of::<Irn>() <= 30 && size_of::<Srnic>() <= 30 && size_of::<Program>() <= 32);
    }
}
