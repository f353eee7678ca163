//! How long a program may let nothing go of a queue pair before it is stopped: as long as something is to come, or may come,
//! that might change its mind.

use super::law::State;
use crate::event::{Class, Event};
use roci_units::{Instant, Span};

/// How long cores make a packet go round that is answered with LoopBack while nothing is to come that might change the program's mind:
/// it may look at the time by itself. Longer than a packet of 4 KiB takes at 1 Mb/s.
pub const LOOP_BACKS_SPAN: Span = Span::from_millis(50);

/// How long a packet that is refused waits for something that may come unasked, from the last that did, if nothing else
/// [is said](super::Programmed::set_patience): longer than receivers pace.
pub const PATIENCE: Span = Span::from_millis(100);

/// Timers that may run out while a packet is refused, however long each takes: who arms one again and again without ever letting the packet
/// go has come to that, and to the same span in all.
pub const EXPIRIES_LEAST: u8 = 8;

/// The same for what is certain to come though nobody says when, the answer to what is in flight or its timeout; and for tokens,
/// of which others may be given many first.
pub const LONG_PATIENCE: Span = Span::from_secs(10);

/// What may come to a queue pair of which nothing is in flight: all but what answers what it sent, or is of its own making.
const UNASKED: Class =
    Class::ARRIVED.with(Class::TURN).without(Class::ACK.with(Class::NACK).with(Class::RNR));

/// What a program has refused to let go of one queue pair, and what has come meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    /// LoopBacks in a row: nothing has been sent meanwhile, nothing acknowledged, granted or pulled.
    pub(super) loop_backs: u32,
    /// Whether a packet waits for tokens, with nothing in flight.
    pub(super) tokenless: bool,
    /// When the first LoopBack was, or the first wait for tokens.
    pub(super) since: Instant,
    /// When the program has heard of something since; timers beyond the first few do not count.
    heard_at: Instant,
    /// Timers that have run out since.
    expiries: u8,
    /// Where the core stood behind the last LoopBack, or behind the answer with which tokens ended.
    pub(super) at: u32,
    /// Until when what was refused waits for something that may come unasked; `NEVER` where it does not.
    pub(super) patient_until: Instant,
    /// Retransmission timeouts in a row between which nothing was let go.
    pub(super) timeouts: u32,
    /// When the last was.
    timed_out_at: Instant,
    /// Whether something was let go since the last timeout.
    pub(super) sends: bool,
}

impl Refusal {
    /// Nothing is refused.
    pub(super) const NONE: Self = Self {
        loop_backs: 0,
        tokenless: false,
        since: Instant::ZERO,
        heard_at: Instant::ZERO,
        expiries: 0,
        at: 0,
        patient_until: Instant::NEVER,
        timeouts: 0,
        timed_out_at: Instant::ZERO,
        sends: true,
    };

    /// Whether a packet is refused.
    pub(super) fn lasts(&self) -> bool {
        self.loop_backs > 0 || self.tokenless
    }

    /// A packet is refused at `now`.
    pub(super) fn begin(&mut self, now: Instant) {
        if !self.lasts() {
            (self.since, self.heard_at, self.expiries) = (now, now, 0);
        }
    }

    /// A packet goes, or may go now.
    #[inline]
    pub(super) fn end(&mut self) {
        (self.loop_backs, self.tokenless, self.patient_until) = (0, false, Instant::NEVER);
    }

    /// The program has heard of something at `now`: what it refused may wait anew.
    #[inline]
    pub(super) fn hope(&mut self, now: Instant, patience: Span) {
        self.heard_at = now;
        if self.patient_until != Instant::NEVER {
            self.patient_until = self.patient_until.max(now + patience);
        }
    }

    /// A timer has run out by `now`; `last` if it is not armed again.
    pub(super) fn note_expiry(&mut self, now: Instant, last: bool, patience: Span) {
        if self.expiries < EXPIRIES_LEAST {
            self.hope(now, patience);
            self.expiries += u8::from(last);
        }
    }
}

impl State {
    /// Since when it has let nothing go, by LoopBack or for want of tokens, if it has not and was not stopped for it.
    pub fn refused_since(&self) -> Option<Instant> {
        (self.refusal.lasts() && !self.has_fallen()).then_some(self.refusal.since)
    }

    /// A retransmission timeout has come at `now`, no sooner than `gap` after the one before: how many have, in a row, since each of
    /// which the program was asked and let nothing go. Whoever waits for the answers to what was sent has let go what it could when the
    /// first comes. What comes sooner is none, and so counts for nothing: zero.
    pub(crate) fn note_timeout(&mut self, now: Instant, gap: Span) -> u32 {
        let fallen = self.has_fallen();
        let refusal = &mut self.refusal;
        if now < refusal.timed_out_at + gap {
            return 0;
        }
        refusal.timed_out_at = now;
        let starves = !fallen && refusal.loop_backs > 0 && !refusal.sends;
        refusal.timeouts = if starves { refusal.timeouts + 1 } else { 0 };
        refusal.sends = false;
        refusal.timeouts
    }

    /// Until when the packet of `event` may be refused. `patience` is that for what may come unasked, and somebody is going to write to
    /// the queue pair until `written`.
    pub(super) fn may_refuse_until(
        &self,
        event: &Event<'_>,
        patience: Span,
        written: Option<Instant>,
    ) -> Instant {
        let Self { refusal, timers, traces, .. } = self;
        let mut until = refusal.since;
        if event.outstanding {
            until = until.max(refusal.heard_at + LONG_PATIENCE);
        }
        if timers.wake() != Instant::NEVER {
            if refusal.expiries < EXPIRIES_LEAST {
                return Instant::NEVER;
            }
            until = until.max(refusal.since + patience);
        }
        if traces.meets(UNASKED) {
            let patience = if refusal.tokenless { LONG_PATIENCE } else { patience };
            until = until.max(refusal.heard_at + patience);
        }
        written.map_or(until, |written| until.max(written + patience))
    }
}
