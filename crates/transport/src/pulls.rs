//! Layout `ndp`: each packet is answered by itself, and answers count the packets that were pulled (NDP, SIGCOMM 2017,
//! §3.2).

use crate::agent::PortAgent;
use crate::arrival::{Arrival, Reaction, Refusal};
use crate::delivery::program::Event as Loss;
use crate::engine::Engine;
use crate::qp::{BITMAP_PACKETS_MAX, Duties, Notes, after, sequence};
use crate::queue::NONE;
use crate::responder::ACK;
use roci_control::{Class, Event};
use roci_units::{Instant, Psn};
use roci_wire::layout::ndp::Pull;
use roci_wire::{Flags, Header, Layout, NakCode, Opcode, Shape, Syndrome};

/// A count that is ahead by more is none: a packet that came draws one pull, and no more come between two answers that are
/// heard than a window of them, sent as often as retries allow.
const PULLS_MAX: u32 = 8 * BITMAP_PACKETS_MAX;

impl Engine {
    /// Whether the packet is for a queue pair whose receiver pulls.
    #[cold]
    pub(crate) fn is_pulled(&self, header: &Header) -> bool {
        self.place(header.dest_qpn).is_some_and(|slot| self.profile(slot).layout == Layout::Ndp)
    }

    /// What the receiver grants, in each of its answers. READs and atomics are acknowledged by their responses alone.
    #[cold]
    pub(crate) fn pull_words(&mut self, slot: usize) -> Pull {
        let (common, responder) = (&self.qps[slot].common, &self.qps[slot].responder);
        let counter = self.asides.get(common.aside).map_or(0, |aside| aside.pulls);
        let mut expected = Psn::new(responder.expected);
        if responder.duties.has(Duties::RESPONDING)
            && let Some(resource) = self.reads.get_mut(responder.reads).turn()
        {
            expected = Psn::new(resource.first);
        }
        Pull { counter, expected }
    }

    /// Answers one packet of a request: it is here (an ACK), or it came without its payload (a NAK).
    pub(crate) fn answer_packet(&mut self, slot: usize, psn: Psn, trimmed: bool, reaction: &mut Reaction) {
        let syndrome = if trimmed { Syndrome::Nak(NakCode::PsnSequenceError).to_u8() } else { ACK };
        let mut header = self.acknowledgement(slot, syndrome);
        header.psn = psn;
        header.flags = header.flags.with(self.lapse_flag(slot));
        self.answer_with(slot, header, reaction);
    }

    /// A header whose payload a switch cut off. It says what to send again, and a pull lets it go.
    pub(crate) fn answer_trimmed(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        reaction: &mut Reaction,
    ) {
        let responds = header.opcode.shape().has(Shape::RESPONSE);
        if responds {
            if !self.trimmed_response(slot, header, reaction) {
                return;
            }
        } else {
            let expected = self.qps[slot].responder.expected;
            let at = sequence(header.psn, expected);
            let missing = after(at, expected) >= 0 && self.is_missing(slot, at);
            self.answer_packet(slot, header.psn, missing, reaction);
        }
        let length = u32::from(self.profile(slot).mtu);
        let event = Event {
            opcode: header.opcode.0,
            length,
            missing: self.missing_up_to(slot, header),
            drained: self.lapse_flag(slot).has(Flags::DRAINED),
            ..self.event(now, slot, Class::TRIMMED)
        };
        if let Some(agent) = &mut self.agent {
            agent.on_event(&event);
        }
        self.poll_agent(now);
    }

    /// A header of ours that a switch sent back: the packet is lost, and its receiver has not heard of it.
    pub(crate) fn on_returned(&mut self, now: Instant, slot: usize, header: &Header) {
        let (una, high) = (self.qps[slot].requester.una, self.qps[slot].requester.high);
        let at = sequence(header.psn, una);
        let is_ours = self.profile(slot).layout == Layout::Ndp && self.state(slot).sends();
        if !is_ours {
            return;
        }
        if header.opcode.shape().has(Shape::RESPONSE) {
            if !self.response_returned(now, slot, header.psn) {
                return;
            }
        } else if after(at, una) < 0 || after(at, high) >= 0 {
            return;
        } else {
            self.lost(now, slot, Loss::Lost { psn: header.psn });
        }
        if self.hears(slot, Class::TRIMMED) {
            let event = Event { opcode: header.opcode.0, ..self.event(now, slot, Class::TRIMMED) };
            self.tell_law(now, slot, &event);
        }
    }

    /// Packets from the first that is missing up to this one of a request, or of a READ's data.
    pub(crate) fn missing_up_to(&self, slot: usize, header: &Header) -> u32 {
        if header.opcode.shape().has(Shape::RESPONSE) {
            return self.responses_missing_up_to(slot, header.psn);
        }
        let expected = self.qps[slot].responder.expected;
        after(sequence(header.psn, expected).wrapping_add(1), expected).max(0).cast_unsigned()
    }

    /// An acknowledgement for one packet, or a pull: all before the first that is missing arrived as well.
    pub(crate) fn on_pull(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let (una, high) = (self.qps[slot].requester.una, self.qps[slot].requester.high);
        let upto = sequence(header.pull().expected, una);
        if after(upto, high) > 0 {
            return Err(Refusal::UnexpectedResponse);
        }
        // That a packet was trimmed, or waits for its turn among those of many, is no reason to give up who answers.
        let retry = self.profile(slot).retry;
        self.qps[slot].requester.retries = retry;
        let mut class = if header.opcode == Opcode::PULL { Class::PULL } else { Class::ACK };
        let held = self.aside(slot).held;
        let mut progress = self.acknowledge(now, slot, upto);
        if class == Class::PULL {
            // Pulls go ahead of answers: that an atomic came does not say that its result is lost, which may wait behind.
            progress.implies_loss = false;
            self.aside(slot).held = held;
        }
        let syndrome = if class == Class::ACK { Syndrome::from_u8(header.aeth().syndrome) } else { None };
        if let Some(Syndrome::Nak(NakCode::PsnSequenceError)) = syndrome {
            class = Class::NACK;
            self.aside(slot).naks += 1;
            let at = sequence(header.psn, self.qps[slot].requester.una);
            let una = self.qps[slot].requester.una;
            if after(at, una) >= 0 && after(at, high) < 0 && self.state(slot).sends() {
                self.lost(now, slot, Loss::Lost { psn: header.psn });
            }
        } else if class == Class::ACK {
            if self.hears(slot, Class::ACK) {
                progress.octets += self.take_news(slot, header.psn, true).unwrap_or(0);
            }
            self.named_out_of_order(now, slot, header.psn);
        }
        self.acknowledged(now, slot, arrival, class, progress);
        Ok(())
    }

    /// READ responses stood in for the acknowledgement of their request, which may be the last of what was pulled for: if
    /// the law were to hear of it by pulls alone, and those are lost, what follows would wait for ever.
    #[cold]
    pub(crate) fn answered_for_pulls(&mut self, now: Instant, slot: usize) {
        if self.profile(slot).layout == Layout::Ndp && self.hears(slot, Class::ACK) {
            let drained = self.aside(slot).drained;
            let event = Event { drained, ..self.event(now, slot, Class::ACK) };
            self.tell_law(now, slot, &event);
        }
    }

    /// `event` with what an answer says of pulls: the packets that it newly lets go, whether the last one that was sent said
    /// that nothing follows, and what that one's answer means for those that nobody pulls for.
    #[cold]
    pub(crate) fn pulled_event<'a>(&mut self, slot: usize, header: &Header, event: Event<'a>) -> Event<'a> {
        let (pulled, drained) = self.take_pull(slot, header);
        let lapse = self.take_lapse(slot, header);
        Event { pulled, drained, lapsed: lapse.is_some(), missing: lapse.unwrap_or(0), ..event }
    }

    /// Packets that an answer newly lets go, and whether the last one that was sent said that nothing follows.
    fn take_pull(&mut self, slot: usize, header: &Header) -> (u32, bool) {
        let counts = matches!(header.opcode, Opcode::ACKNOWLEDGE | Opcode::READ_ACKNOWLEDGE | Opcode::PULL);
        let counter = header.pull().counter;
        // An acknowledgement of responses tells of requests as well how many are in flight, but not the other way about.
        let alone = header.opcode == Opcode::READ_ACKNOWLEDGE || self.responses_in_flight(slot) == 0;
        let aside = self.aside(slot);
        let drained = aside.drained && alone;
        let news = counter.wrapping_sub(aside.pulls_seen);
        // Answers overtake each other; an older count tells nothing.
        if !counts || news > PULLS_MAX {
            return (0, drained);
        }
        aside.pulls_seen = counter;
        (news, drained)
    }

    /// Where the receiver says that it took the packet which it answers for the last, and pulls for no more than is missing:
    /// how many are missing up to that.
    fn take_lapse(&mut self, slot: usize, header: &Header) -> Option<u32> {
        if !header.flags.has(Flags::DRAINED) || header.opcode == Opcode::PULL {
            return None;
        }
        if header.opcode == Opcode::READ_ACKNOWLEDGE {
            return Some(self.responses_unanswered_up_to(slot, header.psn));
        }
        let una = self.qps[slot].requester.una;
        Some(after(sequence(header.psn, una), una).saturating_add(1).max(0).cast_unsigned())
    }

    /// Notes of a packet that arrived whether it says that nothing follows and is right: one that others have overtaken said
    /// so before those were sent. The answer tells that it was believed.
    #[cold]
    pub(crate) fn note_last(&mut self, slot: usize, header: &Header) {
        let shape = header.opcode.shape();
        let responds = shape.has(Shape::RESPONSE);
        self.aside(slot).lapses = false;
        if shape.has(Shape::AGENT)
            || header.opcode == Opcode::READ_ACKNOWLEDGE
            || responds && !shape.has(Shape::PAYLOAD)
        {
            return;
        }
        let next = if responds { self.next_response(slot) } else { Some(self.qps[slot].responder.expected) };
        let Some(expected) = next else { return };
        let at = sequence(header.psn, expected);
        if after(at, expected) >= self.kept.packets().cast_signed() {
            return;
        }
        let aside = self.aside(slot);
        let newest = if responds { &mut aside.newest_response } else { &mut aside.newest };
        if newest.is_none_or(|newest| after(at, newest) >= 0) {
            *newest = Some(at);
            aside.lapses = header.flags.has(Flags::DRAINED);
        }
    }

    /// What an answer to the packet that is being dealt with says of pulls for it.
    pub(crate) fn lapse_flag(&self, slot: usize) -> Flags {
        let lapses = self.asides.get(self.qps[slot].common.aside).is_some_and(|aside| aside.lapses);
        if lapses { Flags::DRAINED } else { Flags::NONE }
    }

    /// Whether anything waits to be sent for the first time or again.
    pub(crate) fn more_follows(&self, slot: usize) -> bool {
        let requester = &self.qps[slot].requester;
        requester.current != NONE || requester.notes.has(Notes::RESENDS) || self.responses_follow(slot)
    }

    /// Says with the last of the packets that are sent whether more follows, and remembers it.
    #[cold]
    pub(crate) fn drained(&mut self, slot: usize) -> Flags {
        let more = self.more_follows(slot);
        self.aside(slot).drained = !more;
        if more { Flags::NONE } else { Flags::DRAINED }
    }
}
