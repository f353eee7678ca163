//! When READ responses are given up for lost, and what is done then.

use crate::delivery::program::{Event as Loss, Program};
use crate::engine::Engine;
use crate::qp::Notes;
use crate::state::QpState;
use crate::transmit::Plan;
use crate::work::Status;
use roci_units::{Instant, Psn, Span};
use roci_wire::Layout;

impl Engine {
    /// After how long the oldest response is given up; zero: never.
    pub(super) fn response_timeout(&self, slot: usize) -> Span {
        let profile = *self.profile(slot);
        let Some(responding) = self.responses_of(slot) else { return profile.timeout };
        if profile.layout == Layout::Homa {
            // As for requests: the receiver asks for what is missing.
            return profile.timeout;
        }
        if let Some(sender) = responding.sender.as_ref().filter(|sender| sender.owns_window()) {
            return sender.timeout(Psn::new(responding.next), profile.timeout);
        }
        let in_flight = responding.next.wrapping_sub(responding.una);
        let program = Program::new(profile.recovery.of_responses(), 1, Psn::new(0));
        program.timeout(in_flight, profile.timeout)
    }

    /// Responses were sent: the timer starts if it does not run, or if they are the first in flight that ask for an answer, since
    /// those before asked for none.
    pub(super) fn time_responses(&mut self, now: Instant, slot: usize, plan: &Plan, asked_none: bool) {
        let Some(responding) = self.responses_of(slot).filter(|_| plan.fresh) else { return };
        let asks_first = asked_none && responding.unasked == 0;
        let starts = responding.deadline == Instant::NEVER || asks_first && self.profile(slot).asks_seldom();
        let timeout = if starts { self.response_timeout(slot) } else { Span::ZERO };
        if !timeout.is_zero()
            && let Some(responding) = self.responding(slot)
        {
            responding.give_up_after(now, timeout);
            self.keep_response_timer(slot);
        }
    }

    /// As [of requests](Self::puts_off_to_ask).
    fn puts_responses_off_to_ask(&mut self, now: Instant, slot: usize) -> bool {
        let may_ask = self.profile(slot).asks_seldom()
            && self.qps[slot].requester.notes.has(Notes::RESPONSES)
            && self.is_in_line(now, slot);
        let Some(responding) = self.responding(slot).filter(|_| may_ask) else { return false };
        let recovers = responding.sender.as_ref().is_some_and(|sender| !sender.has_lost_nothing());
        let will_ask = responding.has_still_to_ask() && responding.next != responding.end && !recovers;
        if !will_ask {
            return false;
        }
        responding.unasked = u16::MAX;
        responding.put_offs.another(responding.next)
    }

    /// Starts the timer again if it runs.
    pub(super) fn restart_response_timer(&mut self, now: Instant, slot: usize) {
        let timeout = self.response_timeout(slot);
        if let Some(responding) = self.responding(slot)
            && responding.deadline != Instant::NEVER
        {
            responding.give_up_after(now, timeout);
        }
    }

    /// The acknowledgement timer fired, for requests, for responses, or for neither: progress moved the deadlines.
    pub(crate) fn ack_timer(&mut self, now: Instant, slot: usize) {
        self.qps[slot].requester.notes.clear(Notes::ACK_TIMER);
        if self.state(slot) == QpState::Error {
            // It still sends what it owes, which sets the timer, but hears of no answer: what was waited for would be due for ever.
            return;
        }
        let timeout = self.response_timeout(slot);
        let is_due = self.responses_of(slot).is_some_and(|responding| responding.deadline <= now);
        let puts_off = is_due && self.puts_responses_off_to_ask(now, slot);
        if let Some(responding) = self.responding(slot).filter(|_| is_due) {
            if puts_off {
                responding.give_up_after(now, timeout);
            } else if timeout > responding.timeout {
                // That was for fewer in flight (IRN's RTO_low), and more followed.
                responding.deadline += timeout - responding.timeout;
                responding.timeout = timeout;
            } else {
                self.responses_timed_out(now, slot);
            }
        }
        if self.state(slot).sends() {
            self.request_timer(now, slot);
        }
        self.keep_response_timer(slot);
    }

    /// Sees to it that the timer fires when the responses' deadline has come.
    pub(super) fn keep_response_timer(&mut self, slot: usize) {
        let Some(responding) = self.responding(slot) else { return };
        let at = responding.deadline;
        if at == Instant::NEVER {
            return;
        }
        let at = at.min(self.qps[slot].requester.deadline);
        self.arm_ack_timer(slot, at);
    }

    fn responses_timed_out(&mut self, now: Instant, slot: usize) {
        self.aside(slot).timeouts += 1;
        let (retry, left) = (self.profile(slot).retry, self.responding(slot).map_or(0, |r| r.retries));
        let stopped = self.stop_what_starves(now, slot, Self::starves_through(left), Span::ZERO);
        let Some(responding) = self.responding(slot) else { return };
        if stopped {
            responding.retries = retry;
        }
        if responding.retries == 0 {
            return self.fail(now, slot, Status::TransportRetryCounterExceeded);
        }
        responding.retries -= 1;
        self.observe_responses(now, slot, Loss::Timeout);
        let names = self.names_messages(slot);
        if let Some(responding) = self.responding(slot).filter(|_| names) {
            responding.doubted = Some(responding.next);
        }
        // As for requests: nobody can answer what the pacer holds back.
        let from = now.max(self.qps[slot].requester.pacer.eligible_at());
        self.restart_response_timer(from, slot);
        self.note_responses(slot);
        self.arm(now, slot);
    }
}
