//! The responder: requests are checked, carried out in order, and answered.

use crate::arrival::{Arrival, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::engine::Engine;
use crate::incidents::Incident;
use crate::limit::acknowledges;
use crate::memory::Access;
use crate::qp::{Duties, Qp, after, sequence};
use crate::queue::NONE;
use crate::requester::set_drawn_by;
use crate::segment::{Segment, Source};
use crate::token::Purpose;
use crate::work::{Completion, CompletionKind, Status, Tail};
use roci_control::Class;
use roci_units::{Instant, Psn};
use roci_wire::{Aeth, Flags, Header, Layout, NakCode, Opcode, Shape, Syndrome};

/// The syndrome of an ACK that advertises no end-to-end credits; [`acknowledges`] fills in those there are.
pub(crate) const ACK: u8 = Syndrome::Ack { credits: Syndrome::CREDITS_OFF }.to_u8();

impl Engine {
    /// A packet of a request.
    #[inline]
    pub(crate) fn on_request(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let expected = self.qps[slot].responder.expected;
        let at = sequence(header.psn, expected);
        if after(at, expected) < 0 {
            self.duplicate(now, slot, at, arrival, reaction);
            Err(Refusal::Duplicate)
        } else if self.profile(slot).recovery.keeps_out_of_order() {
            if self.profile(slot).layout == Layout::Homa {
                return self.keep_message(now, slot, at, arrival, reaction);
            }
            self.keep(now, slot, at, arrival, reaction)
        } else if at == expected {
            self.in_order(now, slot, arrival, reaction)
        } else {
            self.complain(slot, None, reaction);
            Err(Refusal::OutOfSequence)
        }
    }

    #[inline]
    fn in_order(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let shape = header.opcode.shape();
        if !fits_message(self.qps[slot].responder.duties, shape) {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        if !shape.has(Shape::SEND) && !shape.has(Shape::WRITE) {
            return self.take_single(now, slot, arrival, reaction);
        }
        let class = self.take_payload(now, slot, header, shape, reaction)?;
        self.qps[slot].responder.duties.clear(Duties::NAKED);
        if arrival.ce {
            self.note_mark(slot);
        }
        if self.law_acknowledges(slot) {
            self.tell_law_of_data(now, slot, arrival, class);
        } else {
            self.acknowledge_request(slot, header, reaction);
            self.count_marks(now, slot, arrival, class);
        }
        Ok(())
    }

    /// A READ or atomic, next in order.
    pub(crate) fn take_single(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let class = if arrival.header.opcode.shape().has(Shape::RETH) {
            self.take_read(now, slot, arrival.header, reaction)?;
            Class::READ_REQUEST
        } else {
            self.take_atomic(now, slot, arrival.header, reaction)?;
            Class::ATOMIC
        };
        self.qps[slot].responder.duties.clear(Duties::NAKED);
        if arrival.ce {
            self.note_mark(slot);
        }
        self.count_marks(now, slot, arrival, class);
        Ok(())
    }

    /// The next acknowledgement is to echo CE.
    pub(crate) fn note_mark(&mut self, slot: usize) {
        self.qps[slot].responder.duties.set(Duties::MARKED);
    }

    /// A packet of a SEND or WRITE, next in order: where its octets go, and what follows if it is the last.
    #[inline]
    fn take_payload(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        shape: Shape,
        reaction: &mut Reaction,
    ) -> Result<Class, Refusal> {
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let (first, last, write) = (shape.has(Shape::FIRST), shape.has(Shape::LAST), shape.has(Shape::WRITE));
        let (pd, deferred, mtu) = (profile.pd, profile.deferred.placement, profile.mtu);
        let payload = u32::from(header.payload);
        let full = header.payload == mtu;
        let length_fits = if last { header.payload <= mtu && (first || payload > 0) } else { full };
        if !length_fits {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        if write && first {
            let reth = header.reth();
            if self
                .regions
                .check_for(
                    (pd, self.qps[slot].common.qpn),
                    reth.rkey,
                    reth.va,
                    u64::from(reth.length),
                    Access::REMOTE_WRITE,
                )
                .is_err()
            {
                return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
            }
            let responder = &mut self.qps[slot].responder;
            (responder.address, responder.key) = (reth.va, reth.rkey);
            (responder.remaining, responder.received) = (reth.length, 0);
            responder.keys_ended = self.keys_ended;
        }
        if write {
            let remaining = self.qps[slot].responder.remaining;
            if payload > remaining || last && payload != remaining {
                return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
            }
        }
        let consumes = if write { shape.has(Shape::IMMEDIATE) } else { first };
        if consumes {
            let Some(recv) = self.next_recv(slot) else {
                return Err(self.not_ready(slot, reaction));
            };
            self.qps[slot].responder.recv = recv;
            if !write {
                let request = self.recvs.get(recv).request;
                let responder = &mut self.qps[slot].responder;
                (responder.address, responder.key) = (request.address, request.lkey);
                (responder.remaining, responder.received) = (request.length, 0);
            }
        }
        if !write && payload > self.qps[slot].responder.remaining {
            self.end_recv(slot, Status::LocalLengthError, Tail::Plain, false, CompletionKind::Recv);
            return Err(self.refuse_told(now, slot, NakCode::InvalidRequest, reaction));
        }
        if self.qps[slot].responder.keys_ended != self.keys_ended || first && !write {
            self.check_rest(now, slot, write, reaction)?;
        }
        if shape.has(Shape::INVALIDATE) && self.invalidate_for(slot, header.immediate()).is_err() {
            return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
        }
        if payload > 0 {
            let token = deferred.then(|| {
                let number = self.aside(slot).inbound.push(Step::Placement(false));
                self.token(slot, Purpose::Inbound, number)
            });
            let Qp { common, responder, .. } = &mut self.qps[slot];
            reaction.placement = Some(Placement {
                qpn: common.qpn,
                address: responder.address,
                key: responder.key,
                length: payload,
                token,
            });
            responder.address = responder.address.wrapping_add(u64::from(payload));
            responder.remaining -= payload;
            responder.received += payload;
        }
        let responder = &mut self.qps[slot].responder;
        responder.expected = responder.expected.wrapping_add(1);
        let middle = if write { Duties::WRITING } else { Duties::SENDING };
        if !last {
            responder.duties.set(middle);
            return Ok(if write { Class::WRITE } else { Class::SEND });
        }
        responder.duties.clear(middle);
        responder.msn = (responder.msn + 1) & 0x00ff_ffff;
        if responder.recv != NONE {
            let tail = if shape.has(Shape::IMMEDIATE) {
                Tail::Immediate(header.immediate())
            } else if shape.has(Shape::INVALIDATE) {
                Tail::Invalidate(header.immediate())
            } else {
                Tail::Plain
            };
            let kind = if write { CompletionKind::RecvWrite } else { CompletionKind::Recv };
            self.end_recv(slot, Status::Success, tail, header.flags.has(Flags::SOLICITED), kind);
        }
        Ok(if write { Class::WRITE } else { Class::SEND })
    }

    /// Checks again that what is left of the message may be written: a key ended since it was checked last, or the
    /// message goes to a buffer that was posted some time ago. A buffer's key of zero is for worlds that look after memory themselves.
    #[inline(never)]
    fn check_rest(
        &mut self,
        now: Instant,
        slot: usize,
        write: bool,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let pd = self.profile(slot).pd;
        let Qp { common, responder, .. } = &mut self.qps[slot];
        let asks = (pd, common.qpn);
        responder.keys_ended = self.keys_ended;
        let (key, address, left) = (responder.key, responder.address, u64::from(responder.remaining));
        let needs = if write { Access::REMOTE_WRITE } else { Access::LOCAL_WRITE };
        let is_void = !write && self.recvs.get(responder.recv).is_void;
        let fits = !write && key == 0 || self.regions.check_for(asks, key, address, left, needs).is_ok();
        if fits && !is_void {
            return Ok(());
        }
        if write {
            return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
        }
        self.end_recv(slot, Status::LocalProtectionError, Tail::Plain, false, CompletionKind::Recv);
        Err(self.refuse_told(now, slot, NakCode::RemoteOperationalError, reaction))
    }

    /// Takes the next receive request, of the queue pair's own or the shared queue. It stays in the slab.
    pub(crate) fn next_recv(&mut self, slot: usize) -> Option<u32> {
        let Some(srq) = self.profile(slot).srq else {
            return self.qps[slot].responder.queue.take(&self.recvs);
        };
        let shared = &mut self.shared[srq.0 as usize];
        let recv = shared.queue.take(&self.recvs)?;
        shared.count -= 1;
        if shared.count < shared.limit {
            self.shared_is_low(srq);
        }
        Some(recv)
    }

    /// Ends the receive request in use.
    pub(crate) fn end_recv(
        &mut self,
        slot: usize,
        status: Status,
        tail: Tail,
        solicited: bool,
        kind: CompletionKind,
    ) {
        let responder = &mut self.qps[slot].responder;
        let recv = core::mem::replace(&mut responder.recv, NONE);
        responder.receives = responder.receives.saturating_sub(1);
        let length = responder.received;
        let id = self.recvs.get(recv).request.id;
        self.recvs.remove(recv);
        let qpn = self.qps[slot].common.qpn;
        self.tell_receiver(
            slot,
            Completion { id, qpn, kind, status, length, tail, solicited, original: 0, source: None },
        );
    }

    /// Tells the application of the end of a receive request, after placements that came before it.
    #[inline]
    pub(crate) fn tell_receiver(&mut self, slot: usize, completion: Completion) {
        let index = self.qps[slot].common.aside;
        if index != NONE && !self.asides.get_mut(index).inbound.is_empty() {
            self.asides.get_mut(index).inbound.push(Step::Completion(completion));
        } else {
            self.tell(completion);
        }
    }

    /// A deferred placement is done, and what waited for it happens.
    pub(crate) fn placed_inbound(&mut self, now: Instant, slot: usize, number: u32) {
        let index = self.qps[slot].common.aside;
        if index == NONE || !self.asides.get_mut(index).inbound.placed(number) {
            return;
        }
        while let Some(step) = self.asides.get_mut(index).inbound.next() {
            match step {
                Step::Completion(completion) => self.tell(completion),
                Step::Reply(header) => {
                    let segment = self.control(slot, header);
                    self.post(segment);
                }
                Step::Access(number) => self.release_resource(now, slot, number),
                Step::Placement(_) => {}
            }
        }
    }

    /// Acknowledges the packet just taken if it asks for it or enough have come without.
    #[inline]
    pub(crate) fn acknowledge_request(&mut self, slot: usize, header: &Header, reaction: &mut Reaction) {
        let every = self.profile(slot).ack_every;
        let responder = &mut self.qps[slot].responder;
        responder.unacknowledged = responder.unacknowledged.saturating_add(1);
        if header.flags.has(Flags::ACK_REQUEST) || responder.unacknowledged >= every {
            self.reply(slot, ACK, reaction);
        }
    }

    /// The same where the answer names the packet that draws it.
    pub(crate) fn acknowledge_kept(&mut self, slot: usize, header: &Header, reaction: &mut Reaction) {
        if self.profile(slot).layout == Layout::Ndp {
            return self.answer_packet(slot, header.psn, false, reaction);
        }
        let every = self.profile(slot).ack_every;
        let responder = &mut self.qps[slot].responder;
        responder.unacknowledged = responder.unacknowledged.saturating_add(1);
        if header.flags.has(Flags::ACK_REQUEST) || responder.unacknowledged >= every {
            self.answer_to(slot, ACK, Some(header), reaction);
        }
    }

    /// Answers with `syndrome`, at once or when the responses before it are gone.
    #[inline]
    pub(crate) fn reply(&mut self, slot: usize, syndrome: u8, reaction: &mut Reaction) {
        let responder = &mut self.qps[slot].responder;
        if responder.duties.has(Duties::RESPONDING) {
            responder.duties.set(Duties::OWES);
            (responder.owed, responder.trigger) = (syndrome, None);
            return;
        }
        let header = self.acknowledgement(slot, syndrome);
        self.answer_with(slot, header, reaction);
    }

    /// Sends an answer, or leaves it until the payload that came before it is in its place.
    #[inline]
    pub(crate) fn answer_with(&mut self, slot: usize, header: Header, reaction: &mut Reaction) {
        if self.waits_for_placement(slot, header) {
            return;
        }
        if reaction.reply.is_none() {
            reaction.reply = Some(self.control(slot, header));
        } else {
            let segment = self.control(slot, header);
            self.post(segment);
        }
    }

    /// Whether an answer has to wait for placement, and then stands in line for it.
    #[inline]
    pub(crate) fn waits_for_placement(&mut self, slot: usize, header: Header) -> bool {
        let index = self.qps[slot].common.aside;
        let waits = self.profile(slot).deferred.ack_after_placement
            && index != NONE
            && !self.asides.get_mut(index).inbound.is_empty();
        if waits {
            self.asides.get_mut(index).inbound.push(Step::Reply(header));
        }
        waits
    }

    /// Sends the answer that was owed until the responses before it were gone.
    ///
    /// What asked to send something again is meaningless once it has come: it is an acknowledgement then.
    pub(crate) fn pay(&mut self, slot: usize) {
        let responder = &mut self.qps[slot].responder;
        if !responder.duties.has(Duties::OWES) {
            return;
        }
        responder.duties.clear(Duties::OWES);
        let stands = responder.duties.meets(Duties::NAKED.with(Duties::DRAINING));
        let (owed, trigger) = if stands { (responder.owed, responder.trigger) } else { (ACK, None) };
        if owed == ACK && trigger.is_none() && self.responses_acknowledge_all(slot) {
            return;
        }
        let mut header = self.acknowledgement(slot, owed);
        if let Some(trigger) = trigger {
            set_drawn_by(&mut header, self.profile(slot).layout, trigger);
        }
        if !self.waits_for_placement(slot, header) {
            let segment = self.control(slot, header);
            self.post(segment);
        }
    }

    /// The header of an acknowledgement of all that has come in order, or of a NAK for what is expected next.
    #[inline]
    pub(crate) fn acknowledgement(&mut self, slot: usize, syndrome: u8) -> Header {
        let Qp { common, responder, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let layout = profile.layout;
        responder.unacknowledged = 0;
        let psn = Psn::new(responder.expected);
        let psn = if syndrome == ACK { psn.minus(1) } else { psn };
        let mut header = Header::new(Opcode::ACKNOWLEDGE, common.peer, psn);
        header.set_aeth(match syndrome {
            ACK => acknowledges(profile, responder, responder.msn),
            _ => Aeth { syndrome, msn: responder.msn },
        });
        set_drawn_by(&mut header, layout, psn);
        if responder.duties.has(Duties::MARKED) {
            responder.duties.clear(Duties::MARKED);
            header.flags = Flags::BECN;
        }
        if layout == Layout::Ndp {
            header.set_pull(self.pull_words(slot));
        }
        header
    }

    /// The header of an acknowledgement that a law asks for.
    ///
    /// It reaches no further than to the READ or atomic whose response is the next to go, for the requester would take
    /// that response for lost; what lies behind is acknowledged when the responses are gone.
    pub(crate) fn law_acknowledgement(&mut self, slot: usize) -> Header {
        let mut header = self.acknowledgement(slot, ACK);
        let Qp { common, responder, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let layout = profile.layout;
        if !responder.duties.has(Duties::OWES)
            && let Some(kept) = responder.trigger.take()
        {
            set_drawn_by(&mut header, layout, kept);
        }
        if responder.duties.has(Duties::RESPONDING)
            && let Some(resource) = self.reads.get_mut(responder.reads).turn()
        {
            header.psn = Psn::new(resource.first).minus(1);
            let psn = header.psn;
            set_drawn_by(&mut header, layout, psn);
            let msn = resource.msn.wrapping_sub(1) & 0x00ff_ffff;
            header.set_aeth(acknowledges(profile, responder, msn));
            if !responder.duties.has(Duties::OWES) {
                responder.duties.set(Duties::OWES);
                (responder.owed, responder.trigger) = (ACK, None);
            }
        }
        header
    }

    /// A header alone, to the peer.
    #[inline]
    pub(crate) fn control(&self, slot: usize, header: Header) -> Segment {
        let common = &self.qps[slot].common;
        let profile = &self.profiles[usize::from(common.profile)];
        Segment {
            header,
            last_opcode: header.opcode,
            last_flags: header.flags,
            path: common.path,
            source: Source::default(),
            length: 0,
            packets: 1,
            mtu: profile.mtu,
            priority: match profile.layout {
                // What asks for data goes before all data (Homa §3.4, NDP §3.2).
                Layout::Homa => 7,
                Layout::Ndp => self.config.cnp_priority,
                _ => profile.priority,
            },
            ecn_capable: false,
            retransmission: false,
            each_placed: false,
            layout: profile.layout,
            words: self.lay_out_words(slot, None, true),
        }
    }

    /// A request that cannot be carried out: it is answered with a NAK, and the queue pair fails (IBTA Vol 1 §9.9.3).
    #[cold]
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        slot: usize,
        code: NakCode,
        reaction: &mut Reaction,
    ) -> Refusal {
        let refusal = self.refuse_told(now, slot, code, reaction);
        self.tell_incident(Incident::Refused(self.qps[slot].common.qpn, code));
        refusal
    }

    /// The same where a receive request has ended with an error that says so.
    #[cold]
    pub(crate) fn refuse_told(
        &mut self,
        now: Instant,
        slot: usize,
        code: NakCode,
        reaction: &mut Reaction,
    ) -> Refusal {
        self.reply(slot, Syndrome::Nak(code).to_u8(), reaction);
        let duties = &mut self.qps[slot].responder.duties;
        if duties.has(Duties::OWES) {
            duties.set(Duties::DRAINING);
        }
        self.fail_refusing(now, slot, NONE, Status::WorkRequestFlushed);
        Refusal::Rejected
    }

    /// No receive request: the requester is to come again.
    #[cold]
    pub(crate) fn not_ready(&mut self, slot: usize, reaction: &mut Reaction) -> Refusal {
        // What comes behind it draws no NAK of its own: the requester goes back to this packet anyway.
        self.qps[slot].responder.duties.set(Duties::NAKED);
        let timer = self.profile(slot).rnr_timer;
        self.reply(slot, Syndrome::RnrNak { timer }.to_u8(), reaction);
        Refusal::ReceiverNotReady
    }

    /// Tells the requester that the packet expected is missing: once, or with each packet that it learns of by it.
    pub(crate) fn complain(&mut self, slot: usize, trigger: Option<&Header>, reaction: &mut Reaction) {
        let profile = self.profile(slot);
        let silent = match profile.layout {
            // A gap is no loss, for packets overtake each other; but what came too early to be kept has to come again.
            Layout::Homa => profile.recovery.keeps_out_of_order() && trigger.is_some(),
            Layout::Ndp => true,
            _ => false,
        };
        if trigger.is_none() && self.qps[slot].responder.duties.has(Duties::NAKED) || silent {
            return;
        }
        self.qps[slot].responder.duties.set(Duties::NAKED);
        self.answer_to(slot, Syndrome::Nak(NakCode::PsnSequenceError).to_u8(), trigger, reaction);
    }

    /// Answers with `syndrome` and says which packet drew the answer, at once or when the responses before it are gone.
    pub(crate) fn answer_to(
        &mut self,
        slot: usize,
        syndrome: u8,
        drawn_by: Option<&Header>,
        reaction: &mut Reaction,
    ) {
        let responder = &mut self.qps[slot].responder;
        if responder.duties.has(Duties::RESPONDING) {
            responder.duties.set(Duties::OWES);
            (responder.owed, responder.trigger) = (syndrome, drawn_by.map(|header| header.psn));
            return;
        }
        let mut header = self.acknowledgement(slot, syndrome);
        if let Some(packet) = drawn_by {
            let layout = self.profile(slot).layout;
            set_drawn_by(&mut header, layout, packet.psn);
            if layout == Layout::Srnic && !packet.opcode.shape().has(Shape::ATOMIC) {
                header.set_request_position(packet.request_position());
            }
        }
        self.answer_with(slot, header, reaction);
    }

    /// Answers a packet out of order: where windows are the recovery program's, with an acknowledgement of what came in
    /// order, which tells of the one that is kept; else with a NAK for the packet that is missing.
    pub(crate) fn tell_of_gap(&mut self, slot: usize, kept: Option<&Header>, reaction: &mut Reaction) {
        let profile = self.profile(slot);
        if profile.layout == Layout::Ndp {
            // Order tells nothing; what came is acknowledged, what did not will be trimmed or time out.
            if let Some(kept) = kept {
                self.answer_packet(slot, kept.psn, false, reaction);
            }
        } else if profile.recovery.owns_window() {
            self.answer_to(slot, ACK, kept, reaction);
        } else {
            self.complain(slot, kept, reaction);
        }
    }

    /// A packet whose payload a switch cut off: it is lost, and this is the first word of it.
    ///
    /// Go-back-N answers as it does to a gap. To selective repeat a NACK would say that the packet came, so it waits
    /// for a later one to show the gap.
    #[cold]
    pub(crate) fn on_trimmed(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Refusal {
        let expected = self.qps[slot].responder.expected;
        let is_ahead = after(sequence(header.psn, expected), expected) >= 0;
        let shape = header.opcode.shape();
        let is_request = !shape.has(Shape::RESPONSE);
        if header.flags.has(Flags::RETURNED) {
            self.on_returned(now, slot, header);
        } else if (is_request || shape.has(Shape::PAYLOAD)) && self.profile(slot).layout == Layout::Ndp {
            self.answer_trimmed(now, slot, header, reaction);
        } else if is_request && is_ahead && !self.profile(slot).recovery.keeps_out_of_order() {
            self.complain(slot, None, reaction);
        }
        Refusal::OutOfSequence
    }

    /// A packet that came before: it is acknowledged again, a READ is read again, an atomic's result is repeated.
    #[cold]
    fn duplicate(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) {
        let shape = arrival.header.opcode.shape();
        if self.profile(slot).separate_reads() {
            return self.kept_before(now, slot, at, arrival, reaction);
        }
        if shape.has(Shape::SEND) || shape.has(Shape::WRITE) {
            // What is owed acknowledges all that came before as well, and may ask for more.
            if self.profile(slot).layout == Layout::Ndp {
                self.answer_packet(slot, arrival.header.psn, false, reaction);
            } else if !self.qps[slot].responder.duties.has(Duties::OWES) {
                self.acknowledge_again(slot, arrival.header, reaction);
            }
        } else if shape.has(Shape::RETH) {
            self.read_again(now, slot, at, arrival.header);
        } else {
            self.atomic_again(now, slot, at);
        }
    }
}

/// Whether a packet may come at this place of a message: a first one between messages, others within their own.
#[inline]
pub(crate) fn fits_message(duties: Duties, shape: Shape) -> bool {
    if shape.has(Shape::FIRST) {
        !duties.meets(Duties::SENDING.with(Duties::WRITING))
    } else if shape.has(Shape::WRITE) {
        duties.has(Duties::WRITING)
    } else {
        duties.has(Duties::SENDING)
    }
}
