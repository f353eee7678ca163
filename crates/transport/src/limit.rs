//! End-to-end credits: a responder may say with its acknowledgements how many receive requests it has (IBTA Vol 1 §9.7.7.2), and what would
//! find none then waits here in place of being refused there.
//!
//! Messages are counted alike by both ends: by the requester as they begin, by the responder, which tells its count as the MSN, as they end.
//! MSN and credits come to the number of the last message that has a receive request, the limit. A message that needs none moves the limit
//! on as it begins. One message goes beyond the limit where nothing is under way, as nothing else would draw an answer that says more. IBTA lets
//! one go beyond it in any case: behind others, whose answers say more as well, it would only be refused more often, and a refusal takes
//! far longer than an answer. Until a responder has told of credits there is no limit, and none where it tells that it gives none.
//!
//! A responder of ours that is to tell ([`QpConfig::credits`](crate::QpConfig::credits)) does so unasked as well, when a receive request is
//! posted after all were used up. For that word who has nothing under way [waits](Words) before it goes beyond the limit: to be refused takes
//! longer, and ends the queue pair where there are no RNR retries.

use crate::arrival::Reaction;
use crate::engine::{Engine, TIMER_SEND};
use crate::qp::{Duties, Notes, Profile, Qp, Responder};
use crate::queue::NONE;
use crate::requester::set_drawn_by;
use crate::responder::ACK;
use crate::timer::TimerId;
use roci_units::{Instant, Psn, Span};
use roci_wire::{Aeth, Header, Shape, Syndrome};

/// How long who has no credit and nothing under way waits for a word before it goes beyond the limit. A program that has to be scheduled
/// first posts its receive requests within this.
const PATIENCE: Span = Span::from_micros(4_000);

/// The same where a refusal would end the queue pair, for the first word and for each further one once the responder has told unasked: then
/// only where the word was lost is it in vain.
const PATIENCE_AT_RISK: Span = Span::from_micros(64_000);

/// After so many waits without a word the responder is one that tells only when it is asked.
const SILENCES: u8 = 4;

/// What a requester knows of how its responder tells of receive requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Words {
    /// It has told unasked.
    unasked: bool,
    /// Waits that ended without a word.
    silences: u8,
    /// Until when the next message waits, if it does.
    until: Option<Instant>,
}

/// An acknowledgement with `msn`, the responder's number of messages or an earlier one, and how many receive requests there are from there on:
/// each message since then used up one of them, or moved the requester's limit on by one.
#[inline(always)]
pub(crate) const fn acknowledges(profile: &Profile, responder: &Responder, msn: u32) -> Aeth {
    if !profile.credits {
        return Aeth { syndrome: ACK, msn };
    }
    let count = responder.receives.saturating_add(responder.msn.wrapping_sub(msn) & 0x00ff_ffff);
    Aeth { syndrome: Syndrome::Ack { credits: Syndrome::credit_code(count) }.to_u8(), msn }
}

/// How many messages `number` is after `other`, both modulo 2²⁴.
const fn after(number: u32, other: u32) -> i32 {
    (number.wrapping_sub(other) << 8).cast_signed() >> 8
}

impl Engine {
    /// An acknowledgement has said how many receive requests there are, or that it does not. Whether that was news.
    #[inline]
    pub(crate) fn hear_credits(&mut self, slot: usize, aeth: Aeth, credits: u8) -> bool {
        let limit = self.limit(slot);
        let told = Syndrome::credit_count(credits).map(|count| aeth.msn.wrapping_add(count));
        match (told, limit) {
            (None, None) => false,
            // What needs no receive request and is under way has moved it further than an acknowledgement knows that left before.
            (Some(told), Some(limit)) if after(told, limit) <= 0 => false,
            _ => {
                self.move_limit(slot, told);
                true
            }
        }
    }

    /// The same of what brings data or a result.
    pub(crate) fn hear_credits_with(&mut self, slot: usize, header: &Header) -> bool {
        let aeth = header.aeth();
        match Syndrome::from_u8(aeth.syndrome) {
            Some(Syndrome::Ack { credits }) if header.opcode.shape().has(Shape::AETH) => {
                self.hear_credits(slot, aeth, credits)
            }
            _ => false,
        }
    }

    #[inline]
    fn limit(&self, slot: usize) -> Option<u32> {
        self.asides.get(self.qps[slot].common.aside)?.limit
    }

    fn move_limit(&mut self, slot: usize, told: Option<u32>) {
        let requester = &self.qps[slot].requester;
        let has_asked = requester.in_flight_packets() > 0 || requester.reads > 0;
        let aside = self.aside(slot);
        aside.limit = told;
        aside.words.unasked |= told.is_some() && !has_asked;
    }

    /// Whether the next message of the queue pair, which `consumes` a receive request, lies beyond what the responder has some for.
    /// Where nothing is under way it does not once no word has come for a while: nothing else would say more.
    #[inline]
    pub(crate) fn lacks_credit(&mut self, now: Instant, slot: usize, consumes: bool) -> bool {
        consumes && self.qps[slot].common.aside != NONE && self.is_beyond_limit(now, slot)
    }

    fn is_beyond_limit(&mut self, now: Instant, slot: usize) -> bool {
        let next = self.qps[slot].common.msn.wrapping_add(1);
        let lacks = self.lies_beyond(slot, next);
        if lacks && self.qps[slot].requester.in_flight_packets() > 0 {
            return true;
        }
        lacks && self.awaits_word(now, slot) || {
            self.aside(slot).words.until = None;
            false
        }
    }

    /// Whether the next message waits for the responder to tell unasked of receive requests. The timer is set each time, as pacing of
    /// responses may have moved it, and stays free for pacing.
    fn awaits_word(&mut self, now: Instant, slot: usize) -> bool {
        let at_risk = self.profile(slot).rnr_retry == 0;
        let words = &mut self.aside(slot).words;
        if words.silences >= SILENCES && !words.unasked {
            return false;
        }
        let may_tell = words.unasked || words.silences == 0;
        let patience = if may_tell && at_risk { PATIENCE_AT_RISK } else { PATIENCE };
        let until = *words.until.get_or_insert(now + patience);
        if until <= now {
            words.silences = words.silences.saturating_add(1);
            return false;
        }
        self.qps[slot].requester.notes.clear(Notes::SEND_TIMER);
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.timers.arm(TimerId { qp: slot as u32, kind: TIMER_SEND }, until);
        true
    }

    /// A receive request was posted. Where all were used up before, the requester is told, which may wait for it.
    #[inline]
    pub(crate) fn receive_posted(&mut self, slot: usize) {
        let tells = self.profile(slot).credits;
        let responder = &mut self.qps[slot].responder;
        responder.receives += 1;
        // Before the first message has ended nobody has been told anything.
        if tells && responder.receives == 1 && responder.msn != 0 {
            self.tell_of_receives(slot);
        }
    }

    #[cold]
    fn tell_of_receives(&mut self, slot: usize) {
        let duties = self.qps[slot].responder.duties;
        // Who was told to come again does, and what is owed tells as well.
        if !self.state(slot).receives() || duties.meets(Duties::NAKED.with(Duties::OWES)) {
            return;
        }
        if duties.has(Duties::RESPONDING) {
            return self.reply(slot, ACK, &mut Reaction::default());
        }
        let mut header = self.acknowledgement(slot, ACK);
        let Qp { common, responder, .. } = &self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        if responder.reads != NONE {
            // READs and atomics are acknowledged by their responses alone, which may be lost: who still waits for one would take it for
            // lost, or (Soft-RoCE) for come.
            let (end, msn) =
                self.reads.get_mut(responder.reads).before_last(responder.expected, responder.msn);
            header.psn = Psn::new(end).minus(1);
            let psn = header.psn;
            set_drawn_by(&mut header, profile.layout, psn);
            header.set_aeth(acknowledges(profile, responder, msn));
        }
        if !self.waits_for_placement(slot, header) {
            let segment = self.control(slot, header);
            self.post(segment);
        }
    }

    /// Whether the message with `number`, which counts from one on, lies beyond the limit.
    fn lies_beyond(&self, slot: usize, number: u32) -> bool {
        self.limit(slot).is_some_and(|limit| after(number, limit) > 0)
    }

    /// The same of `work`, which is to be sent again and most likely began before the responder had told of credits. The oldest one is
    /// what an answer is to come to.
    pub(crate) fn repeats_in_vain(&self, slot: usize, work: u32) -> bool {
        let is_oldest = self.qps[slot].common.head == work;
        let work = self.sends.get(work);
        !is_oldest && work.consumes_receive() && self.lies_beyond(slot, work.message().wrapping_add(1))
    }

    /// So many messages begin that need no receive request.
    #[inline]
    pub(crate) fn pass_limit(&mut self, slot: usize, messages: u32) {
        if let Some(aside) = self.asides.find_mut(self.qps[slot].common.aside)
            && let Some(limit) = &mut aside.limit
        {
            *limit = limit.wrapping_add(messages);
        }
    }
}
