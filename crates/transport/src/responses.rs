//! READs and atomics at the responder: kept, carried out one after the other, answered in order, replayed.

use crate::arrival::{Deferral, MemoryOperation, Reaction, Refusal};
use crate::aside::Step;
use crate::engine::Engine;
use crate::incidents::Incident;
use crate::limit::acknowledges;
use crate::memory::Access;
use crate::messages::response_words;
use crate::qp::{Common, Duties, Notes, Profile, Qp, Standing, after, sequence};
use crate::queue::NONE;
use crate::reads::{Access as Stored, Resource, Stage};
use crate::requester::{payload_of, set_drawn_by};
use crate::responder::ACK;
use crate::segment::{Segment, Source};
use crate::token::Purpose;
use crate::transmit::Plan;
use crate::work::Status;
use roci_control::{Class, Words};
use roci_units::{Instant, Psn};
use roci_wire::layout::srnic::RequestPosition;
use roci_wire::{Flags, Header, Layout, NakCode, Opcode, Syndrome};

impl Engine {
    /// A READ request, next in order.
    pub(crate) fn take_read(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let reth = header.reth();
        let profile = self.profile(slot);
        let (pd, mtu) = (profile.pd, u32::from(profile.mtu));
        let packets = reth.length.div_ceil(mtu).max(1);
        if reth.length > 1 << 31 || packets > crate::qp::MAX_OUTSTANDING || header.payload != 0 {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        let asks = (pd, self.qps[slot].common.qpn);
        if self
            .regions
            .check_for(asks, reth.rkey, reth.va, u64::from(reth.length), Access::REMOTE_READ)
            .is_err()
        {
            return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
        }
        let access = Stored::Read { address: reth.va, key: reth.rkey, length: reth.length };
        self.take_resource(now, slot, packets, access, header, reaction)
    }

    /// A READ's responses are to go. Where the queue pair had nothing to send, it has saved up nothing by that: no more than a paced run,
    /// where there are any; a caller without them is one that is late by a few packets at most, and may make up for that.
    fn resume_responding(&mut self, now: Instant, slot: usize) {
        let (run, requester) = (self.config.paced_run, &mut self.qps[slot].requester);
        if !run.is_zero() && requester.current == NONE && !requester.notes.has(Notes::RESPONSES) {
            requester.pacer.resume_within(now, run);
        }
    }

    /// Nothing that came before holds a READ or atomic back any more.
    pub(crate) fn release_resource(&mut self, now: Instant, slot: usize, number: u16) {
        let deferred = self.profile(slot).deferred.memory;
        if self.qps[slot].responder.reads == NONE {
            return;
        }
        let reads = self.reads.get_mut(self.qps[slot].responder.reads);
        if let Some(resource) = reads.numbered(number) {
            resource.stage = match resource.access {
                Stored::Read { .. } if !deferred => Stage::Ready,
                _ => Stage::Waiting,
            };
        }
        self.ask_memory(slot);
        // It may have taken the place of a READ that was to be answered again, behind which results have waited.
        self.answer(now, slot);
    }

    /// Asks the world for the next access to memory.
    fn ask_memory(&mut self, slot: usize) {
        let Some(resource) = self.reads.get_mut(self.qps[slot].responder.reads).unasked() else { return };
        resource.stage = Stage::Asked;
        let number = u32::from(resource.number);
        let operation = match resource.access {
            Stored::Read { address, key, length } => MemoryOperation::Read { address, key, length },
            Stored::Atomic { operation, .. } => operation,
        };
        let token = self.token(slot, Purpose::Memory, number);
        self.defer(Deferral::Memory { token, qpn: self.qps[slot].common.qpn, operation });
    }

    /// An atomic request, next in order.
    pub(crate) fn take_atomic(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let atomic = header.atomic();
        if !atomic.va.is_multiple_of(8) || header.payload != 0 {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        let asks = (self.profile(slot).pd, self.qps[slot].common.qpn);
        if self.regions.check_for(asks, atomic.rkey, atomic.va, 8, Access::REMOTE_ATOMIC).is_err() {
            return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
        }
        let (address, key) = (atomic.va, atomic.rkey);
        let operation = if header.opcode == Opcode::FETCH_ADD {
            MemoryOperation::FetchAdd { address, key, add: atomic.swap_or_add }
        } else {
            MemoryOperation::CompareSwap { address, key, compare: atomic.compare, swap: atomic.swap_or_add }
        };
        self.take_resource(now, slot, 1, Stored::Atomic { operation, original: 0 }, header, reaction)
    }

    /// Keeps a READ or atomic of `packets` responses, and moves on.
    fn take_resource(
        &mut self,
        now: Instant,
        slot: usize,
        packets: u32,
        access: Stored,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let profile = self.profile(slot);
        let (limit, separate) = (profile.max_dest_rd_atomic, profile.separate_reads());
        if self.qps[slot].responder.reads == NONE {
            let index = self.reads.take();
            self.reads.get_mut(index).separate = separate;
            self.qps[slot].responder.reads = index;
        }
        let is_read = matches!(access, Stored::Read { .. });
        if is_read {
            self.resume_responding(now, slot);
        }
        let separate_read = separate && is_read;
        let request = self.qps[slot].responder.expected;
        let (mut first, mut end) = (request, request.wrapping_add(packets));
        if separate {
            self.make_room(now, slot, limit);
        }
        if separate_read {
            (first, end) = self.grant_responses(slot, packets);
        }
        let position = header.request_position();
        let keys_ended = self.keys_ended;
        let responder = &mut self.qps[slot].responder;
        let msn = (responder.msn + 1) & 0x00ff_ffff;
        let stage = Stage::Held;
        let resource = Resource {
            number: 0,
            first,
            end,
            next: first,
            sent: first,
            msn,
            access,
            stage,
            request,
            keys_ended,
            position,
        };
        let Some(number) = self.reads.get_mut(responder.reads).push(limit, resource) else {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        };
        responder.msn = msn;
        if !separate {
            responder.expected = end;
            // The response acknowledges all that came before.
            responder.unacknowledged = 0;
        }
        if !separate_read {
            responder.duties.set(Duties::RESPONDING);
        }
        let index = self.qps[slot].common.aside;
        if index != NONE && !self.asides.get_mut(index).inbound.is_empty() {
            self.asides.get_mut(index).inbound.push(Step::Access(number));
        } else {
            self.release_resource(now, slot, number);
        }
        Ok(())
    }

    /// A READ request that came before: its responses, from the one that it now asks for, are sent again.
    pub(crate) fn read_again(&mut self, now: Instant, slot: usize, at: u32, header: &Header) {
        if self.qps[slot].responder.reads == NONE {
            return;
        }
        let profile = self.profile(slot);
        let (pd, mtu, deferred) = (profile.pd, u32::from(profile.mtu), profile.deferred.memory);
        let reth = header.reth();
        let asks = (pd, self.qps[slot].common.qpn);
        let allowed = self
            .regions
            .check_for(asks, reth.rkey, reth.va, u64::from(reth.length), Access::REMOTE_READ)
            .is_ok();
        let Some(resource) = self.reads.get_mut(self.qps[slot].responder.reads).covering(at) else { return };
        let Stored::Read { address, key, length } = &mut resource.access else { return };
        let end = at.wrapping_add(reth.length.div_ceil(mtu).max(1));
        if !allowed || end != resource.end || reth.length > *length {
            return;
        }
        (*address, *key, *length) = (reth.va, reth.rkey, reth.length);
        (resource.first, resource.next) = (at, at);
        if deferred && resource.stage == Stage::Ready {
            resource.stage = Stage::Waiting;
            self.ask_memory(slot);
        }
        self.resume_responding(now, slot);
        self.qps[slot].responder.duties.set(Duties::RESPONDING);
        self.tell_of_lost_responses(now, slot);
        self.arm_responses(now, slot);
    }

    /// The peer has asked for a READ again: this is how who answers without a window of its own hears that responses are lost, or that
    /// its law lets none go.
    fn tell_of_lost_responses(&mut self, now: Instant, slot: usize) {
        if self.hears(slot, Class::LOSS) {
            let event = self.event(now, slot, Class::LOSS);
            self.tell_law(now, slot, &event);
            // What the law refused before it heard of the loss, it may let go now.
            self.qps[slot].requester.standing.clear(Standing::PARKED);
        }
        // It is supposed to wait as long as this end, and to retry as often: the other half of its retries is the fallback's.
        let profile = self.profile(slot);
        let (most, gap) = (u32::from(profile.retry) / 2, profile.timeout / 2);
        if self.stop_what_starves(now, slot, most.max(1), gap) {
            self.qps[slot].requester.retries = self.profile(slot).retry;
        }
    }

    /// An atomic request that came before: its result is sent again, behind the responses before it that are still to go,
    /// for what overtakes them tells the requester that they are lost.
    pub(crate) fn atomic_again(&mut self, now: Instant, slot: usize, at: u32) {
        if self.qps[slot].responder.reads == NONE {
            return;
        }
        let Some(resource) = self.reads.get_mut(self.qps[slot].responder.reads).covering(at) else { return };
        if !matches!(resource.access, Stored::Atomic { .. }) || resource.pending() {
            return;
        }
        resource.next = resource.first;
        self.qps[slot].responder.duties.set(Duties::RESPONDING);
        self.answer(now, slot);
    }

    /// A SEND or WRITE that came before is acknowledged again: with what came after it, up to the next READ or atomic.
    /// Those are acknowledged by their responses alone, and who still waits for one would take it for lost, or
    /// (Soft-RoCE) for come.
    ///
    /// As such responses acknowledge what came before them too, one that does not ask is not answered here: a late
    /// acknowledgement between a READ's responses is what Soft-RoCE of Linux 6.12 does not bear. One that asks while responses go again
    /// to what came before it is answered behind them.
    pub(crate) fn acknowledge_again(&mut self, slot: usize, header: &Header, reaction: &mut Reaction) {
        let responder = &self.qps[slot].responder;
        if responder.reads == NONE {
            return self.reply(slot, ACK, reaction);
        }
        let responds = responder.duties.has(Duties::RESPONDING);
        let at = sequence(header.psn, responder.expected);
        let reads = self.reads.get_mut(responder.reads);
        let is_answered = reads.following(at).map(|resource| !resource.pending());
        if responds && is_answered != Some(true) {
            return self.reply(slot, ACK, reaction);
        }
        if is_answered.is_some() && !header.flags.has(Flags::ACK_REQUEST) {
            return;
        }
        if responds {
            reads.repeated = Some(at);
            return;
        }
        let answer = self.acknowledgement_again(slot, at);
        self.answer_with(slot, answer, reaction);
    }

    /// The header of an acknowledgement of what came at `at`, up to the next READ or atomic.
    fn acknowledgement_again(&mut self, slot: usize, at: u32) -> Header {
        let following =
            self.reads.get_mut(self.qps[slot].responder.reads).following(at).map(|r| (r.request, r.msn));
        let layout = self.profile(slot).layout;
        let mut answer = self.acknowledgement(slot, ACK);
        if let Some((request, msn)) = following {
            answer.psn = Psn::new(request).minus(1);
            set_drawn_by(&mut answer, layout, Psn::new(request).minus(1));
            let msn = msn.wrapping_sub(1) & 0x00ff_ffff;
            answer.set_aeth(acknowledges(self.profile(slot), &self.qps[slot].responder, msn));
        }
        answer
    }

    /// Whether the last response that went acknowledges all that has come, and no mark waits to be told.
    pub(crate) fn responses_acknowledge_all(&mut self, slot: usize) -> bool {
        let responder = &self.qps[slot].responder;
        if responder.reads == NONE || responder.duties.has(Duties::MARKED) {
            return false;
        }
        let reads = self.reads.get_mut(responder.reads);
        !reads.separate && reads.resources.back().is_some_and(|last| last.end == responder.expected)
    }

    /// Notes whether the next response can go, for the sender's line.
    pub(crate) fn note_responses(&mut self, slot: usize) {
        let reads = self.qps[slot].responder.reads;
        if reads == NONE {
            return;
        }
        let reads = self.reads.get_mut(reads);
        let ready = if reads.separate {
            self.responses_ready(slot)
        } else {
            reads.turn().is_some_and(|r| r.stage == Stage::Ready && matches!(r.access, Stored::Read { .. }))
        };
        let notes = &mut self.qps[slot].requester.notes;
        if ready {
            notes.set(Notes::RESPONSES);
        } else {
            notes.clear(Notes::RESPONSES);
        }
    }

    fn arm_responses(&mut self, now: Instant, slot: usize) {
        self.note_responses(slot);
        self.arm(now, slot);
    }

    /// Memory answered a READ or atomic.
    pub(crate) fn memory_answered(&mut self, now: Instant, slot: usize, number: u32, value: u64) {
        let index = self.qps[slot].responder.reads;
        if index == NONE {
            return;
        }
        let Some(resource) =
            u16::try_from(number).ok().and_then(|number| self.reads.get_mut(index).numbered(number))
        else {
            return;
        };
        if resource.stage != Stage::Asked {
            return;
        }
        resource.stage = Stage::Ready;
        if let Stored::Atomic { original, .. } = &mut resource.access {
            *original = value;
        }
        self.ask_memory(slot);
        self.answer(now, slot);
    }

    /// Sends what the order of responses now allows: results of atomics, and what was owed behind the last response.
    fn answer(&mut self, now: Instant, slot: usize) {
        while let Some(resource) = self.reads.get_mut(self.qps[slot].responder.reads).turn() {
            let Stored::Atomic { original, .. } = resource.access else { break };
            if resource.stage != Stage::Ready {
                break;
            }
            (resource.next, resource.sent) = (resource.end, resource.end);
            let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
            let header = atomic_result(&self.qps[slot], profile, resource, original);
            let segment = self.control(slot, header);
            self.post(segment);
        }
        self.note_responses(slot);
        if self.qps[slot].responder.duties.has(Duties::RESPONDING)
            && self.reads.get_mut(self.qps[slot].responder.reads).turn().is_none()
        {
            let duties = &mut self.qps[slot].responder.duties;
            duties.clear(Duties::RESPONDING);
            let owes = duties.has(Duties::OWES);
            self.pay(slot);
            let repeated = self.reads.get_mut(self.qps[slot].responder.reads).repeated.take();
            if let Some(at) = repeated.filter(|_| !owes) {
                let header = self.acknowledgement_again(slot, at);
                if !self.waits_for_placement(slot, header) {
                    let segment = self.control(slot, header);
                    self.post(segment);
                }
            }
        }
        self.arm(now, slot);
    }

    /// Checks again that what is left of a READ may be read: a key ended since it was checked last. Where it may not,
    /// the queue pair fails, and the requester hears of it in place of response `at`.
    #[cold]
    pub(crate) fn check_read(&mut self, now: Instant, slot: usize, at: u32) -> bool {
        let profile = self.profile(slot);
        let (pd, mtu, separate) = (profile.pd, u32::from(profile.mtu), profile.separate_reads());
        let (keys_ended, asks) = (self.keys_ended, (pd, self.qps[slot].common.qpn));
        let reads = self.reads.get_mut(self.qps[slot].responder.reads);
        let Some(resource) = (if separate { reads.answering(at) } else { reads.turn() }) else {
            return false;
        };
        let Stored::Read { address, key, length } = resource.access else { return true };
        let before = at.wrapping_sub(resource.first) * mtu;
        let (address, left) = (address.wrapping_add(u64::from(before)), u64::from(length - before));
        if self.regions.check_for(asks, key, address, left, Access::REMOTE_READ).is_ok() {
            resource.keys_ended = keys_ended;
            return true;
        }
        let psn = Psn::new(if separate { resource.request } else { at });
        let mut header = self.acknowledgement(slot, Syndrome::Nak(NakCode::RemoteAccessError).to_u8());
        header.psn = psn;
        let segment = self.control(slot, header);
        self.post(segment);
        self.fail_refusing(now, slot, NONE, Status::WorkRequestFlushed);
        self.tell_incident(Incident::Refused(self.qps[slot].common.qpn, NakCode::RemoteAccessError));
        false
    }

    /// The queue pair failed: its responder falls silent, at once or after the NAK that it owes.
    pub(crate) fn end_responses(&mut self, now: Instant, slot: usize) {
        let responder = &mut self.qps[slot].responder;
        if responder.duties.has(Duties::DRAINING) {
            return self.arm_responses(now, slot);
        }
        responder.duties.clear(Duties::RESPONDING.with(Duties::OWES));
        self.end_responding(slot);
        let responder = &mut self.qps[slot].responder;
        let reads = core::mem::replace(&mut responder.reads, NONE);
        if reads != NONE {
            self.reads.give_back(reads);
        }
    }

    /// The next READ responses, in runs of at most `quantum` octets, all of them new or all sent again.
    pub(crate) fn plan_response(&mut self, now: Instant, slot: usize, quantum: u32, plan: &mut Plan) -> bool {
        let profile = self.profile(slot);
        let mtu = u32::from(profile.mtu);
        if profile.separate_reads() {
            return self.plan_separate(now, slot, quantum, plan);
        }
        let reads = self.qps[slot].responder.reads;
        if reads == NONE {
            return false;
        }
        let Some(resource) = self.reads.get_mut(reads).turn() else { return false };
        let Stored::Read { length, .. } = resource.access else { return false };
        if resource.stage != Stage::Ready {
            return false;
        }
        if resource.keys_ended != self.keys_ended {
            let at = resource.next;
            if !self.check_read(now, slot, at) {
                return false;
            }
        }
        let Some(resource) = self.reads.get_mut(reads).turn() else { return false };
        let left = resource.end.wrapping_sub(resource.next);
        let fresh = after(resource.next, resource.sent) >= 0;
        let alike = if fresh { left } else { resource.sent.wrapping_sub(resource.next) };
        let run = alike.min(quantum / mtu).clamp(1, u32::from(u16::MAX));
        let sent = resource.next.wrapping_sub(resource.first) * mtu;
        #[expect(clippy::cast_possible_truncation, reason = "clamped above")]
        let packets = run as u16;
        let length = if run == left { length - sent } else { run * mtu };
        *plan = Plan { response: true, work: NONE, at: resource.next, packets, length, fresh };
        true
    }

    /// The opcodes of the first READ response that was planned, of those between, and of the last.
    pub(crate) fn response_opcodes(&mut self, slot: usize, plan: &Plan) -> (Opcode, Opcode, Opcode) {
        let middle = Opcode::READ_RESPONSE_MIDDLE;
        let reads = self.reads.get_mut(self.qps[slot].responder.reads);
        let Some(resource) = (if reads.separate { reads.answering(plan.at) } else { reads.turn() }) else {
            return (middle, middle, middle);
        };
        let begins = plan.at == resource.first;
        let ends = plan.at.wrapping_add(u32::from(plan.packets)) == resource.end;
        let one = plan.packets == 1;
        (response_opcode(begins, ends && one), middle, response_opcode(begins && one, ends))
    }

    /// Makes the READ responses that were planned.
    pub(crate) fn respond(
        &mut self,
        now: Instant,
        slot: usize,
        plan: &Plan,
        words: Option<Words>,
    ) -> Segment {
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let (mtu, layout) = (profile.mtu, profile.layout);
        let srnic = layout == Layout::Srnic;
        let base = self.qps[slot].responder.course().first;
        let Common { peer, qpn, .. } = self.qps[slot].common;
        let timeouts = self.timeouts_before_response(slot, plan);
        let reads = self.reads.get_mut(self.qps[slot].responder.reads);
        let separate = reads.separate;
        let mut header = Header::new(Opcode::READ_RESPONSE_MIDDLE, peer, Psn::new(plan.at));
        let mut source = Source::default();
        let (mut own, mut priority) = (words, self.qps[slot].requester.priority);
        let (mut last_opcode, mut ends) = (header.opcode, false);
        if let Some(resource) = if separate { reads.answering(plan.at) } else { reads.turn() }
            && let Stored::Read { address, key, length } = resource.access
        {
            let end = plan.at.wrapping_add(u32::from(plan.packets));
            let begins = plan.at == resource.first;
            ends = end == resource.end;
            let one = plan.packets == 1;
            header.opcode = response_opcode(begins, ends && one);
            last_opcode = response_opcode(begins && one, ends);
            header.set_aeth(acknowledges(profile, &self.qps[slot].responder, resource.msn));
            let offset = plan.at.wrapping_sub(resource.first) * u32::from(mtu);
            source = Source { address: address.wrapping_add(u64::from(offset)), lkey: key };
            if separate && layout == Layout::Homa {
                let message = resource.request.wrapping_sub(base);
                own = response_words(message, length, offset, !plan.fresh);
                let rooms = self.read_rooms.as_ref();
                let raised = timeouts.and_then(|before| rooms?.priority_after_timeout(length, before));
                let granted = || rooms?.priority(length);
                priority = raised.or_else(granted).unwrap_or(priority);
            }
            if plan.fresh {
                resource.sent = end;
            }
            if plan.fresh || !separate {
                resource.next = end;
            }
            if srnic {
                let psn_offset = plan.at.wrapping_sub(resource.first);
                header.set_request_position(RequestPosition { psn_offset, ..resource.position });
            }
        }
        let mut last_flags = Flags::NONE;
        if separate {
            last_flags = self.sent_separately(now, slot, plan, ends);
        } else if !plan.fresh {
            self.aside(slot).retransmitted += u32::from(plan.packets);
        }
        if plan.packets == 1 {
            header.flags = last_flags;
        }
        header.payload = payload_of(plan.length, mtu);
        if layout == Layout::Ndp {
            header.set_source_qpn(qpn);
        }
        let segment = Segment {
            last_opcode,
            last_flags,
            source,
            length: plan.length,
            packets: plan.packets,
            priority,
            ecn_capable: true,
            retransmission: !plan.fresh,
            each_placed: srnic,
            words: self.lay_out_words(slot, own, true),
            ..self.control(slot, header)
        };
        self.answer(now, slot);
        segment
    }
}

/// The acknowledgement that carries an atomic's result.
pub(crate) fn atomic_result(qp: &Qp, profile: &Profile, resource: &Resource, original: u64) -> Header {
    let mut header = Header::new(Opcode::ATOMIC_ACKNOWLEDGE, qp.common.peer, Psn::new(resource.first));
    header.set_aeth(acknowledges(profile, &qp.responder, resource.msn));
    header.set_atomic_ack(original);
    header
}

const fn response_opcode(begins: bool, ends: bool) -> Opcode {
    match (begins, ends) {
        (true, true) => Opcode::READ_RESPONSE_ONLY,
        (true, false) => Opcode::READ_RESPONSE_FIRST,
        (false, false) => Opcode::READ_RESPONSE_MIDDLE,
        (false, true) => Opcode::READ_RESPONSE_LAST,
    }
}
