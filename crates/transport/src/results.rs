//! What READs and atomics bring back, at the requester.

use crate::arrival::{Arrival, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::engine::Engine;
use crate::qp::{after, sequence};
use crate::queue::{Kind, NONE, flag};
use crate::requester::Progress;
use crate::token::Purpose;
use crate::work::Status;
use roci_control::Class;
use roci_units::Instant;
use roci_wire::{Header, Shape};

impl Engine {
    /// A deferred placement of READ data is done.
    pub(crate) fn placed_outbound(&mut self, slot: usize, number: u32) {
        let index = self.qps[slot].common.aside;
        if index == NONE || !self.asides.get_mut(index).outbound.placed(number) {
            return;
        }
        while let Some(step) = self.asides.get_mut(index).outbound.next() {
            if let Step::Completion(completion) = step {
                self.tell(completion);
            }
        }
    }

    /// A packet of READ data. They come in order, each PSN has its place in the message.
    pub(crate) fn on_read_response(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        if self.profile(slot).separate_reads() {
            return self.on_separate_response(now, slot, arrival, reaction);
        }
        let header = arrival.header;
        let una = self.qps[slot].requester.una;
        let at = sequence(header.psn, una);
        if after(at, una) < 0 {
            return Err(self.came_before(now, slot, header));
        }
        if after(at, self.qps[slot].requester.high) >= 0 || !self.is_within_read(slot, at) {
            return Err(Refusal::UnexpectedResponse);
        }
        let progress = self.acknowledge(now, slot, at);
        if progress.implies_loss {
            // An earlier response is missing.
            self.acknowledged(now, slot, arrival, Class::NACK, progress);
            return Err(Refusal::OutOfSequence);
        }
        let mtu = self.profile(slot).mtu;
        let work = *self.sends.get(self.qps[slot].common.head);
        let offset = at.wrapping_sub(work.first) * u32::from(mtu);
        let last = at.wrapping_add(1) == work.end;
        let length = if last { work.length - offset } else { u32::from(mtu) };
        if u32::from(header.payload) != length || header.opcode.shape().has(Shape::LAST) != last {
            return Err(self.bad_response(now, slot, self.qps[slot].common.head));
        }
        let qpn = self.qps[slot].common.qpn;
        if length > 0 {
            let token = self.profile(slot).deferred.placement.then(|| {
                let number = self.aside(slot).outbound.push(Step::Placement(false));
                self.token(slot, Purpose::Outbound, number)
            });
            let address = work.address.wrapping_add(u64::from(offset));
            reaction.placement = Some(Placement { qpn, address, key: work.lkey, length, token });
        }
        self.qps[slot].requester.una = at.wrapping_add(1);
        if last {
            self.hear_credits_with(slot, header);
            self.complete(slot, 0);
        }
        self.advanced(now, slot, 0, 0);
        self.count_marks(now, slot, arrival, Class::READ_RESPONSE);
        self.arm(now, slot);
        Ok(())
    }

    /// READ data or a result that came before. What it tells of receive requests may be news all the same: it was answered again after some
    /// were posted, and nothing else may say so.
    #[cold]
    pub(crate) fn came_before(&mut self, now: Instant, slot: usize, header: &Header) -> Refusal {
        if self.hear_credits_with(slot, header) {
            self.arm(now, slot);
        }
        Refusal::Duplicate
    }

    /// The next packet of READ data has not the length or the opcode that its place in the message has: the responder answers something
    /// other than was asked, and would again. The READ ends in error, and the queue pair with it, as Linux's qib driver has it, which calls
    /// it a length error. To ask again until the retries are spent would call it a peer that does not answer.
    ///
    /// That takes its peer's address, its number, and the very PSN that is next, as data that would be placed do.
    #[cold]
    pub(crate) fn bad_response(&mut self, now: Instant, slot: usize, read: u32) -> Refusal {
        self.fail_by(now, slot, read, Status::BadResponseError);
        Refusal::UnexpectedResponse
    }

    /// Whether `at` is the sequence of a READ's response, and its request has been sent.
    fn is_within_read(&self, slot: usize, at: u32) -> bool {
        let mut index = self.qps[slot].common.head;
        while index != NONE {
            let work = self.sends.get(index);
            if !work.has(flag::NUMBERED) {
                return false;
            }
            if after(at, work.end) < 0 {
                return work.kind == Kind::Read;
            }
            index = work.next;
        }
        false
    }

    /// The result of an atomic.
    pub(crate) fn on_atomic_result(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let una = self.qps[slot].requester.una;
        let at = sequence(header.psn, una);
        if after(at, una) < 0 {
            return Err(self.came_before(now, slot, header));
        }
        if after(at, self.qps[slot].requester.high) >= 0 {
            return Err(Refusal::UnexpectedResponse);
        }
        if self.profile(slot).separate_reads() {
            return self.on_separate_result(now, slot, arrival, at);
        }
        let progress = self.acknowledge(now, slot, at);
        if progress.implies_loss {
            self.acknowledged(now, slot, arrival, Class::NACK, progress);
            return Err(Refusal::OutOfSequence);
        }
        let work = self.sends.get(self.qps[slot].common.head);
        if !matches!(work.kind, Kind::FetchAdd | Kind::CompareSwap) {
            return Err(Refusal::UnexpectedResponse);
        }
        self.qps[slot].requester.una = at.wrapping_add(1);
        self.hear_credits_with(slot, header);
        self.complete(slot, header.atomic_ack());
        self.advanced(now, slot, 0, 0);
        self.acknowledged(now, slot, arrival, Class::ACK, Progress { moved: true, ..progress });
        Ok(())
    }
}
