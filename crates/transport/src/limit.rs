//! End-to-end credits: a responder may say with its acknowledgements how many receive requests it has (IBTA Vol 1 §9.7.7.2), and what would
//! find none then waits here in place of being refused there.
//!
//! Messages are counted alike by both ends: by the requester as they begin, by the responder, which tells its count as the MSN, as they end.
//! MSN and credits come to the number of the last message that has a receive request, the limit. A message that needs none moves the limit
//! on as it begins. One message goes beyond the limit where nothing is under way, as nothing else would draw an answer that says more. IBTA lets
//! one go beyond it in any case: behind others, whose answers say more as well, it would only be refused more often, and a refusal takes
//! far longer than an answer. Until a responder has told of credits there is no limit, and none where it tells that it gives none, as ours
//! do.

use crate::engine::Engine;
use crate::queue::NONE;
use roci_wire::{Aeth, Header, Syndrome};

/// How many messages `number` is after `other`, both modulo 2²⁴.
const fn after(number: u32, other: u32) -> i32 {
    (number.wrapping_sub(other) << 8).cast_signed() >> 8
}

impl Engine {
    /// An acknowledgement has said how many receive requests there are, or that it does not.
    #[inline]
    pub(crate) fn hear_credits(&mut self, slot: usize, aeth: Aeth, credits: u8) {
        if credits != Syndrome::CREDITS_OFF || self.limit(slot).is_some() {
            self.move_limit(slot, aeth, credits);
        }
    }

    /// The same of what brings data.
    pub(crate) fn hear_credits_with(&mut self, slot: usize, header: &Header) {
        if let Some(Syndrome::Ack { credits }) = Syndrome::from_u8(header.aeth().syndrome) {
            self.hear_credits(slot, header.aeth(), credits);
        }
    }

    #[inline]
    fn limit(&self, slot: usize) -> Option<u32> {
        self.asides.get(self.qps[slot].common.aside)?.limit
    }

    #[cold]
    fn move_limit(&mut self, slot: usize, aeth: Aeth, credits: u8) {
        let told = Syndrome::credit_count(credits).map(|count| aeth.msn.wrapping_add(count));
        let limit = &mut self.aside(slot).limit;
        // What needs no receive request and is under way has moved it further than an acknowledgement knows that left before.
        let is_old = |told: u32| limit.is_some_and(|limit| after(told, limit) <= 0);
        if !told.is_some_and(is_old) {
            *limit = told;
        }
    }

    /// Whether the next message of the queue pair, which `consumes` a receive request, lies beyond what the responder has some for.
    /// Where nothing is under way it does not: nothing would say more.
    #[inline]
    pub(crate) fn lacks_credit(&self, slot: usize, consumes: bool) -> bool {
        consumes && self.qps[slot].common.aside != NONE && self.is_beyond_limit(slot)
    }

    fn is_beyond_limit(&self, slot: usize) -> bool {
        let next = self.qps[slot].common.msn.wrapping_add(1);
        self.qps[slot].requester.in_flight_packets() > 0 && self.lies_beyond(slot, next)
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
