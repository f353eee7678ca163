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
//! | Reno | each ACK, timeout | `newly_acked`, `in_flight` | mark the first, window | window, threshold, duplicates |
//! | NewReno | each ACK, timeout | the same | mark the first, window | the same, recovery PSN, last advance |
//! | SACK | each ACK, with selective PSN or without, timeout | `acked` (count, first clear, last set) | mark up to the third-highest selective PSN, window | window, threshold, recovery PSN, how far it has marked |
//! | NDP | LOST for a trimmed packet, timeout | `start`, `next` | mark the one packet, or all that were in flight for a timeout | what was in flight when the timer started |

use super::bitmap::Bitmap;
use super::go_back_n::GoBackN;
use super::irn::Irn;
use super::ndp::Ndp;
use super::newreno::NewReno;
use super::reno::Reno;
use super::sack::Sack;
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

impl Event {
    /// Whether a law hears of it each time, and not only where a loss begins with it: what names one packet that is lost, and
    /// a timeout.
    pub(crate) const fn is_told_each_time(self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Timeout)
    }
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
    /// How many those are.
    pub arrived: u32,
    /// The packet after the highest of them, or a later one.
    pub end: Psn,
    /// To be sent again.
    pub marked: Bitmap<'a>,
    /// How often each was sent again.
    pub resends: Resends<'a>,
}

/// How often packets of a window were sent again.
#[derive(Clone, Copy, Debug)]
pub struct Resends<'a> {
    pub(super) low: Bitmap<'a>,
    pub(super) high: Bitmap<'a>,
}

impl Resends<'_> {
    /// How often `psn` was: 3 stands for three times or more.
    #[must_use]
    pub const fn of(self, psn: Psn) -> u8 {
        self.low.test(psn) as u8 + 2 * self.high.test(psn) as u8
    }
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

    /// Whether it says how many packets may be in flight. The fixed stage then stays with the queue pair from the first
    /// packet on, and the program hears of each acknowledgement, also of one that repeats the last.
    const OWNS_WINDOW: bool = false;

    /// Reacts to an event.
    fn react(&mut self, input: &Input<'_>) -> Decision;

    /// All before `start` has arrived, `newly_acked` packets of it for the first time, `in_flight` have been sent from there on,
    /// and there is no bitmap: does what
    /// [`react`](Self::react) would, where that marks nothing and restarts the timer at its configured span, and gives the
    /// window. `None`, and nothing has changed: it recovers from something, or has no such short way.
    fn advance(&mut self, start: Psn, in_flight: u32, newly_acked: u32) -> Option<u32> {
        let _ = (start, in_flight, newly_acked);
        None
    }

    /// One packet beyond the first missing one has arrived, which is news: does what [`react`](Self::react) would, where that
    /// marks nothing and begins no recovery, and gives the window. `None`, and nothing has changed: it is to be asked by
    /// `react`.
    fn arrived(&mut self, input: &Input<'_>) -> Option<u32>
    where
        Self: Copy,
    {
        let mut tried = *self;
        match tried.react(input) {
            Decision { mark: None, window: Some(window), restart_timer: false } => {
                *self = tried;
                Some(window)
            }
            _ => None,
        }
    }

    /// Whether it recovers from nothing: bitmaps without bits may then go back to the pool, and an acknowledgement in
    /// order needs no [`react`](Self::react), unless the program owns the window.
    fn is_idle(&self) -> bool;

    /// The retransmission timeout while `in_flight` packets are; `configured` is the queue pair's.
    fn timeout(&self, in_flight: u32, configured: Span) -> Span {
        let _ = in_flight;
        configured
    }

    /// The congestion window in packets, where it owns one. [`Decision::window`] may let a few more go.
    fn window(&self) -> Option<u32> {
        None
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
    /// TCP Reno.
    Reno(Reno),
    /// TCP NewReno.
    NewReno(NewReno),
    /// TCP with selective acknowledgements.
    Sack(Sack),
    /// NDP.
    Ndp(Ndp),
}

/// Does the same with each program.
macro_rules! each {
    ($self:expr, $program:ident => $what:expr) => {
        match $self {
            Self::GoBackN($program) => $what,
            Self::Irn($program) => $what,
            Self::Srnic($program) => $what,
            Self::Reno($program) => $what,
            Self::NewReno($program) => $what,
            Self::Sack($program) => $what,
            Self::Ndp($program) => $what,
        }
    };
}

impl Program {
    /// The program that a queue pair is configured with; `initial` packets are its first window where it owns one, and
    /// `first` is the first of them.
    #[must_use]
    pub fn new(recovery: Recovery, initial: u16, first: Psn) -> Self {
        match recovery {
            Recovery::GoBackN => Self::GoBackN(GoBackN),
            Recovery::Irn => Self::Irn(Irn::default()),
            Recovery::Srnic => Self::Srnic(Srnic::default()),
            Recovery::Reno => Self::Reno(Reno::new(initial)),
            Recovery::NewReno => Self::NewReno(NewReno::new(initial, first)),
            Recovery::Sack => Self::Sack(Sack::new(initial)),
            Recovery::Ndp => Self::Ndp(Ndp::default()),
        }
    }

    /// [`Recover::SELECTIVE`].
    #[inline]
    #[must_use]
    pub const fn is_selective(&self) -> bool {
        const fn of<P: Recover>(_: &P) -> bool {
            P::SELECTIVE
        }
        each!(self, program => of(program))
    }

    /// [`Recover::OWNS_WINDOW`].
    #[inline]
    #[must_use]
    pub const fn owns_window(&self) -> bool {
        const fn of<P: Recover>(_: &P) -> bool {
            P::OWNS_WINDOW
        }
        each!(self, program => of(program))
    }

    /// [`Recover::react`].
    pub fn react(&mut self, input: &Input<'_>) -> Decision {
        each!(self, program => program.react(input))
    }

    /// [`Recover::advance`].
    #[inline(always)]
    pub fn advance(&mut self, start: Psn, in_flight: u32, newly_acked: u32) -> Option<u32> {
        match self {
            Self::Reno(program) => program.advance(start, in_flight, newly_acked),
            Self::NewReno(program) => program.advance(start, in_flight, newly_acked),
            Self::Sack(program) => program.advance(start, in_flight, newly_acked),
            Self::GoBackN(_) | Self::Irn(_) | Self::Srnic(_) | Self::Ndp(_) => None,
        }
    }

    /// [`Recover::arrived`].
    #[inline]
    pub fn arrived(&mut self, input: &Input<'_>) -> Option<u32> {
        match self {
            Self::Sack(program) => program.arrived(input),
            _ => None,
        }
    }

    /// [`Recover::is_idle`].
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        each!(self, program => program.is_idle())
    }

    /// [`Recover::timeout`].
    #[inline]
    #[must_use]
    pub fn timeout(&self, in_flight: u32, configured: Span) -> Span {
        each!(self, program => program.timeout(in_flight, configured))
    }

    /// [`Recover::window`].
    #[must_use]
    pub fn window(&self) -> Option<u32> {
        each!(self, program => program.window())
    }
}

/// A program played by hand, with as much of the fixed stage as it needs.
#[cfg(test)]
pub(super) mod play {
    use super::*;
    use crate::delivery::bitmap::BitmapMut;

    pub(in super::super) struct Play<P> {
        pub(in super::super) program: P,
        pub(in super::super) decision: Decision,
        start: Psn,
        next: Psn,
        acked: [u64; 4],
    }

    impl<P: Recover> Play<P> {
        /// `sent` packets from `first` on are in flight.
        pub(in super::super) fn new(program: P, first: u32, sent: u32) -> Self {
            let start = Psn::new(first);
            Self { program, decision: Decision::default(), start, next: start.plus(sent), acked: [0; 4] }
        }

        pub(in super::super) fn send(&mut self, packets: u32) {
            self.next = self.next.plus(packets);
        }

        /// What is marked, and the window.
        pub(in super::super) fn event(&mut self, event: Event) -> (Option<(u32, u32)>, u32) {
            let old_start = self.start;
            let mut newly_acked = 0;
            let mut acked = BitmapMut::new(&mut self.acked);
            if let Event::Ack { cumulative, selective } = event {
                let moved = cumulative.since(self.start).max(0).unsigned_abs();
                let ring = moved.min(256);
                newly_acked = moved - acked.clear_range(self.start, ring);
                self.start = self.start.plus(moved);
                if let Some(psn) = selective {
                    newly_acked += u32::from(acked.set(psn));
                }
            }
            let none = Bitmap::new(&[0; 4]);
            let (start, next, now) = (self.start, self.next, Instant::ZERO);
            let resends = Resends { low: none, high: none };
            let acked = acked.as_ref();
            let arrived = acked.count(start, next.since(start).unsigned_abs());
            let marks = Marks { acked, arrived, end: next, marked: none, resends };
            let input = Input { now, event, old_start, start, next, newly_acked, marks: Some(marks) };
            self.decision = self.program.react(&input);
            let Decision { mark, window, .. } = self.decision;
            (mark.map(|(from, to)| (from.get(), to.get())), window.unwrap_or(0))
        }

        pub(in super::super) fn ack(&mut self, cumulative: u32) -> (Option<(u32, u32)>, u32) {
            self.event(Event::Ack { cumulative: Psn::new(cumulative), selective: None })
        }

        pub(in super::super) fn sack(
            &mut self,
            cumulative: u32,
            selective: u32,
        ) -> (Option<(u32, u32)>, u32) {
            let selective = Some(Psn::new(selective));
            self.event(Event::Ack { cumulative: Psn::new(cumulative), selective })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_keeps_at_most_30_octets() {
        let sizes = [
            size_of::<Irn>(),
            size_of::<Srnic>(),
            size_of::<Reno>(),
            size_of::<NewReno>(),
            size_of::<Sack>(),
            size_of::<Ndp>(),
        ];
        assert!(sizes.iter().all(|&size| size <= 30) && size_of::<Program>() <= 32, "{sizes:?}");
    }
}
