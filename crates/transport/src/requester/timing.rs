//! When a request is given up for lost, and what is done then.

use crate::config::Service;
use crate::delivery::program::Event as Loss;
use crate::engine::{Engine, TIMER_ACK};
use crate::qp::{Facts, Notes, Qp, Standing};
use crate::queue::NONE;
use crate::timer::TimerId;
use crate::work::Status;
use roci_units::{Instant, Span};

/// How often a timeout is put off for a queue pair that stands in line, and in whose turn nothing is sent meanwhile.
const PUT_OFFS: u8 = 32;
/// So many packets since one asked for an answer that the next one does, whatever `ack_every` is.
const ASKS_NEXT: u8 = 254;

/// Timeouts that were put off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PutOffs {
    /// How many packets had been sent at the last.
    sent: u32,
    /// How many since then.
    times: u8,
}

impl PutOffs {
    /// Another one is wanted where `sent` packets have been sent: whether it may be.
    pub(crate) fn another(&mut self, sent: u32) -> bool {
        if sent != self.sent {
            *self = Self { sent, times: 0 };
        }
        self.times = self.times.saturating_add(1);
        self.times <= PUT_OFFS
    }
}

impl Engine {
    /// A request was sent: the acknowledgement timer starts if it does not run, or if this is the first packet in flight that
    /// asks for an answer, which is when IBTA's starts (Vol 1 §9.7.6.1.3).
    #[inline]
    pub(crate) fn time_request(&mut self, now: Instant, slot: usize) {
        let Qp { requester, common, .. } = &self.qps[slot];
        let asks_first = common.facts.has(Facts::UNASKED) && requester.unasked == 0;
        if (requester.deadline == Instant::NEVER || asks_first) && !self.profile(slot).timeout.is_zero() {
            let deadline = now + self.retransmission_timeout(slot);
            self.set_deadline(slot, deadline);
        }
    }

    /// Sets when the oldest packet is given up; the timer in the wheel is moved only when it fires.
    #[inline]
    pub(super) fn set_deadline(&mut self, slot: usize, at: Instant) {
        let qp = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(qp.common.profile)];
        if qp.set_deadline(at, profile) {
            self.arm_ack_timer(slot, at);
        }
    }

    /// Has the acknowledgement timer fire at `at`, or when READ responses are given up: it serves both.
    #[inline]
    pub(crate) fn arm_ack_timer(&mut self, slot: usize, at: Instant) {
        let Qp { requester, common, .. } = &mut self.qps[slot];
        requester.notes.set(Notes::ACK_TIMER);
        let at = at.min(self.asides.response_deadline(common.aside));
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.timers.arm(TimerId { qp: slot as u32, kind: TIMER_ACK }, at);
    }

    /// Moves the timer in the wheel as well: the new instant may be the earlier one.
    pub(super) fn force_deadline(&mut self, slot: usize, at: Instant) {
        self.qps[slot].requester.notes.clear(Notes::ACK_TIMER);
        self.set_deadline(slot, at);
    }

    /// The responder is there and gets on, though it may have acknowledged no request.
    #[inline]
    pub(crate) fn answers(&mut self, now: Instant, slot: usize) {
        let common = &self.qps[slot].common;
        let profile = &self.profiles[usize::from(common.profile)];
        let requester = &mut self.qps[slot].requester;
        requester.retries = profile.retry;
        requester.rnr_retries = profile.rnr_retry;
        if requester.una == requester.high || !requester.notes.has(Notes::RECOVERING) {
            self.restart_timer(now, slot);
        }
    }

    /// Starts the acknowledgement timer again, or stops it when nothing is in flight. An RNR wait goes on.
    #[inline]
    pub(crate) fn restart_timer(&mut self, now: Instant, slot: usize) {
        let timeout = self.retransmission_timeout(slot);
        self.restart_timer_at(now, slot, timeout);
    }

    /// The same with a span that is known; zero: never.
    #[inline]
    pub(crate) fn restart_timer_at(&mut self, now: Instant, slot: usize, timeout: Span) {
        if let Some(deadline) = self.qps[slot].requester.deadline_from(now, timeout) {
            self.set_deadline(slot, deadline);
        }
    }

    /// Spends one of the retries that progress restores (IBTA Vol 1 §9.9.2.1): a timeout costs one, and with go-back-N so
    /// does a NAK for a sequence or a READ response that later ones show to be missing. False: none was left, and the
    /// queue pair has failed.
    ///
    /// Seven are seven. Soft-RoCE takes them for endless, as both do with RNR retries.
    pub(crate) fn spend_retry(&mut self, now: Instant, slot: usize) -> bool {
        let requester = &mut self.qps[slot].requester;
        if requester.retries == 0 {
            self.fail(now, slot, Status::TransportRetryCounterExceeded);
            return false;
        }
        requester.retries -= 1;
        true
    }

    /// Whether no answer can be missing, for nothing in flight asks for one, and the queue pair stands in line with a packet
    /// behind it: where many share a port, a turn may take longer than the timer. It will ask, so that a peer that is dead is found
    /// out a turn later, and not `ack_every` turns. Who sends nothing for [`PUT_OFFS`] timers stands at a port that is paused, or worse.
    fn puts_off_to_ask(&mut self, now: Instant, slot: usize) -> bool {
        let Qp { requester, common, .. } = &self.qps[slot];
        let losing = self.asides.get(common.aside).and_then(|aside| aside.losing.as_ref());
        let recovers = losing.is_some_and(|losing| !losing.has_lost_nothing());
        let will_ask = requester.has_still_to_ask()
            && requester.current != NONE
            && requester.has_requests()
            && self.is_in_line(now, slot)
            && !recovers
            && self.profile(slot).asks_seldom();
        if !will_ask {
            return false;
        }
        let sent = common.packets;
        self.qps[slot].requester.unasked = ASKS_NEXT;
        self.aside(slot).put_offs.another(sent)
    }

    /// Whether the queue pair stands in line, or will when its rate lets it.
    pub(crate) fn is_in_line(&self, now: Instant, slot: usize) -> bool {
        let requester = &self.qps[slot].requester;
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let stands = self.schedule.contains(slot as u32);
        requester.wants_to_send() && (stands || requester.pacer.eligible_at() > now)
    }

    /// The acknowledgement timer fired: nothing came for too long, or an RNR wait is over, or neither, for progress
    /// moved the deadline.
    pub(crate) fn request_timer(&mut self, now: Instant, slot: usize) {
        let deadline = self.qps[slot].requester.deadline;
        if deadline == Instant::NEVER {
            return;
        }
        if deadline > now {
            // It was set before: what is in flight now has no say in it.
            self.arm_ack_timer(slot, deadline);
            return;
        }
        if self.profile(slot).service != Service::Rc {
            // Nobody answers: it was set for the caller to ask for completions.
            self.qps[slot].requester.deadline = Instant::NEVER;
            return;
        }
        if let Some(later) = self.qps[slot].put_off(self.profile(slot)) {
            self.set_deadline(slot, later);
            return;
        }
        let index = self.qps[slot].common.aside;
        if index != NONE {
            let aside = self.asides.get_mut(index);
            (aside.named, aside.asked_at) = (None, None);
        }
        let timeout = self.retransmission_timeout(slot);
        let again = if timeout.is_zero() { Instant::NEVER } else { now + timeout };
        let requester = &mut self.qps[slot].requester;
        if requester.standing.has(Standing::RNR_WAIT) {
            requester.standing.clear(Standing::RNR_WAIT);
            self.set_deadline(slot, again);
            self.arm(now, slot);
            return;
        }
        if requester.una == requester.high && requester.reads == 0 {
            requester.deadline = Instant::NEVER;
            return;
        }
        if self.holds_back(slot) || self.puts_off_to_ask(now, slot) {
            self.set_deadline(slot, again);
            return;
        }
        if self.flights.as_ref().is_some_and(|flights| flights.is_held_up(slot)) {
            self.set_deadline(slot, again);
            return;
        }
        self.doubt_flight(now, slot);
        self.aside(slot).timeouts += 1;
        if self.read_rooms.as_ref().is_some_and(|rooms| rooms.piece().is_some()) {
            self.leave_read_rooms(slot, None);
        }
        let left = self.qps[slot].requester.retries;
        if self.stop_what_starves(now, slot, Self::starves_through(left), Span::ZERO) {
            self.qps[slot].requester.retries = self.profile(slot).retry;
        }
        if !self.spend_retry(now, slot) {
            return;
        }
        self.set_deadline(slot, again);
        if self.waits_for_responses(slot) {
            return self.probe(slot);
        }
        self.lost(now, slot, Loss::Timeout);
        self.doubt_messages(slot);
        // Nobody can answer what the pacer holds back, and the law may have slowed it down for this timeout.
        let eligible = self.qps[slot].requester.pacer.eligible_at();
        if eligible > now && self.state(slot).sends() {
            self.restart_timer(eligible, slot);
        }
        self.arm(now, slot);
    }
}
