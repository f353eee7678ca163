//! What a loss of READ responses means at the responder, decided at once or by a slow path.

use super::Responding;
use crate::arrival::Deferral;
use crate::delivery::program::{Event as Loss, Program};
use crate::delivery::sender::Observed;
use crate::engine::Engine;
use crate::qp::{Profile, sequence};
use crate::token::Purpose;
use roci_control::{Class, Event};
use roci_units::{Instant, Psn};
use roci_wire::Layout;

impl Engine {
    /// Takes an event into the window of responses and has it decided, now or elsewhere; gives the octets that turned out to have
    /// arrived before.
    pub(super) fn observe_responses(&mut self, now: Instant, slot: usize, event: Loss) -> u32 {
        let Profile { recovery, layout, deferred, .. } = *self.profile(slot);
        let (recovery, slow) = (recovery.of_responses(), recovery.has_slow_path());
        let index = self.qps[slot].common.aside;
        let Some(responding) = &mut self.asides.get_mut(index).responding else { return 0 };
        let (una, in_flight) = (responding.una, responding.next.wrapping_sub(responding.una));
        let is_loss = !matches!(event, Loss::Ack { .. });
        // Where answers come one for each packet, what has arrived beyond a gap is remembered before anything tells of a loss, as
        // of requests, lest a timeout send it again.
        let remembers = layout == Layout::Ndp
            && matches!(event, Loss::Ack { selective: Some(_), .. })
            && self.boards.available();
        if responding.sender.is_none() && (!(is_loss || remembers) || in_flight == 0) {
            return 0;
        }
        let enters = responding.enter(recovery);
        self.slow.entries += u64::from(enters && slow);
        let Some(sender) = &mut responding.sender else { return 0 };
        let recovered = sender.recovers();
        let observed = sender.observe(&mut self.boards, event).filter(|observed| observed.wants_decision);
        let mut later = false;
        if let Some(observed) = &observed {
            let counts = slow && !matches!(observed.event, Loss::Ack { selective: None, .. });
            self.slow.packets += u64::from(counts);
            self.slow.bitmap_reads += u64::from(counts);
            self.slow.bitmap_writes += u64::from(counts && observed.newly_acked > 0);
            later = deferred.recovery && (counts || !matches!(observed.event, Loss::Ack { .. }));
        }
        match observed {
            Some(observed) if later => responding.undecided.push_back(observed),
            Some(observed) => self.decide_of_responses(now, slot, &observed),
            None => {}
        }
        let Some(responding) = self.responding(slot) else { return 0 };
        let asks = responding.asked == 0 && !responding.undecided.is_empty();
        let recovers = responding.sender.as_ref().is_some_and(|sender| sender.recovers());
        let begins = if recovery.owns_window() { !recovered && recovers } else { enters && is_loss };
        let missing = self.leave_loss_of_responses(slot);
        if asks {
            self.ask_about_lost_responses(slot);
        }
        if (begins || event.is_told_each_time()) && self.hears(slot, Class::LOSS) {
            let length = match event {
                Loss::Lost { psn } => self.payload_of_response(slot, sequence(psn, una)),
                _ => 0,
            };
            let timeout = event == Loss::Timeout;
            let event = Event { timeout, length, ..self.event(now, slot, Class::LOSS) };
            self.tell_law(now, slot, &event);
        }
        let octets = self.responses_arrived(now, slot, missing);
        if octets > 0 {
            self.observe_responses(now, slot, Loss::Ack { cumulative: Psn::new(missing), selective: None });
        }
        octets
    }

    /// Has the recovery program decide, and does what it answers.
    fn decide_of_responses(&mut self, now: Instant, slot: usize, observed: &Observed) {
        let owns = self.profile(slot).recovery.of_responses().owns_window();
        let index = self.qps[slot].common.aside;
        let Some(responding) = &mut self.asides.get_mut(index).responding else { return };
        let Some(sender) = &mut responding.sender else { return };
        let decision = sender.decide(&self.boards, now, observed);
        sender.apply(&mut self.boards, &decision);
        if let Some((from, to)) = decision.mark {
            let [from, to] = [from, to].map(|psn| sequence(psn, responding.una));
            responding.sent.forget_between(from, to);
        }
        if owns && decision.restart_timer {
            self.restart_response_timer(now, slot);
        }
    }

    /// Out of the loss, if nothing is left of it; gives the sequence of the first response that is missing.
    fn leave_loss_of_responses(&mut self, slot: usize) -> u32 {
        let Profile { recovery, .. } = *self.profile(slot);
        let (recovery, slow) = (recovery.of_responses(), recovery.has_slow_path());
        let index = self.qps[slot].common.aside;
        let Some(responding) = &mut self.asides.get_mut(index).responding else { return 0 };
        let Responding { una, sender, undecided, .. } = &mut **responding;
        let Some(losing) = sender else { return *una };
        let missing = sequence(losing.first_missing(&self.boards), *una);
        if undecided.is_empty()
            && losing.is_in_order()
            && let Some(mut sender) = sender.take()
        {
            let first = Psn::new(0);
            sender.reset(&mut self.boards, first, Program::new(recovery, 1, first));
            self.slow.exits += u64::from(slow);
        }
        missing
    }

    /// Asks the slow path about all that waits for it; the queue pair goes on sending meanwhile.
    fn ask_about_lost_responses(&mut self, slot: usize) {
        let number = self.aside(slot).next_decision();
        let Some(responding) = self.responding(slot) else { return };
        responding.asked = u32::try_from(responding.undecided.len()).unwrap_or(u32::MAX);
        responding.out = number;
        let packets = responding.asked;
        let token = self.token(slot, Purpose::LostResponses, number);
        self.defer(Deferral::Recovery { token, qpn: self.qps[slot].common.qpn, packets });
    }

    /// The decision about lost responses that was out may take effect.
    pub(crate) fn lost_responses_decided(&mut self, now: Instant, slot: usize, number: u32) {
        let Some(responding) = self.responding(slot).filter(|responding| responding.out == number) else {
            return;
        };
        for _ in 0..core::mem::take(&mut responding.asked) {
            let observed = self.responding(slot).and_then(|responding| responding.undecided.pop_front());
            let Some(observed) = observed else { break };
            self.decide_of_responses(now, slot, &observed);
        }
        if self.responding(slot).is_some_and(|responding| !responding.undecided.is_empty()) {
            self.ask_about_lost_responses(slot);
        }
        self.leave_loss_of_responses(slot);
        self.note_responses(slot);
        self.arm(now, slot);
    }
}
