//! The receiving side of selective repeat: packets are placed as they come, messages end in order.
//!
//! In layouts `irn` and `srnic` each packet says where its payload goes, so the path is the same in order and out of it. A bitmap
//! and a list of messages that ended early exist only while something is missing.

use crate::arrival::{Arrival, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::delivery::receive::{Receiver, Standing};
use crate::engine::Engine;
use crate::memory::Access;
use crate::qp::{Qp, after};
use crate::queue::NONE;
use crate::responder::ACK;
use crate::token::Purpose;
use crate::work::{Completion, CompletionKind, Status, Tail};
use alloc::collections::VecDeque;
use roci_control::Class;
use roci_units::{Instant, Psn};
use roci_wire::{Flags, Header, Layout, NakCode, Shape};

/// A gap that a responder has, and what it keeps behind it.
#[derive(Debug)]
pub(crate) struct Keeping {
    receiver: Receiver,
    /// Last packets of messages that came before what precedes them, in order.
    ends: VecDeque<End>,
    /// Receive requests taken for SENDs ahead of their turn, from the one whose number is the next on.
    taken: VecDeque<u32>,
}

/// The end of a message.
#[derive(Clone, Copy, Debug)]
struct End {
    at: u32,
    payload: u16,
    write: bool,
    solicited: bool,
    tail: Tail,
}

impl End {
    fn new(at: u32, header: &Header) -> Self {
        let shape = header.opcode.shape();
        let tail = if shape.has(Shape::IMMEDIATE) {
            Tail::Immediate(header.immediate())
        } else if shape.has(Shape::INVALIDATE) {
            Tail::Invalidate(header.immediate())
        } else {
            Tail::Plain
        };
        Self {
            at,
            payload: header.payload,
            write: shape.has(Shape::WRITE),
            solicited: header.flags.has(Flags::SOLICITED),
            tail,
        }
    }

    const fn consumes_receive(&self) -> bool {
        !self.write || matches!(self.tail, Tail::Immediate(_))
    }
}

impl Engine {
    /// A packet of a request that is not a duplicate, on a queue pair with selective repeat.
    ///
    /// Two fields that only the other path needs have another meaning here: `received` is the sequence at which the
    /// message in course began, `remaining` the number of that message among those that consume a receive.
    pub(crate) fn keep(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let shape = header.opcode.shape();
        let next = at == self.qps[slot].responder.expected;
        if !shape.has(Shape::SEND) && !shape.has(Shape::WRITE) {
            return self.keep_read(now, slot, arrival, next, reaction);
        }
        let standing = if next { Standing::Next } else { self.stands(slot, at) };
        if standing == Standing::Beyond || standing == Standing::Kept {
            // Nothing new is kept: the requester hears what is missing.
            let trigger = if standing == Standing::Kept { Some(header) } else { None };
            self.tell_of_gap(slot, trigger, reaction);
            return Err(if trigger.is_some() { Refusal::Duplicate } else { Refusal::OutOfSequence });
        }
        let first = shape.has(Shape::FIRST);
        if next && first != (at == self.message_start(slot)) {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        self.place_by_header(now, slot, header, next, reaction)?;
        if arrival.ce {
            self.note_mark(slot);
        }
        if shape.has(Shape::LAST) {
            self.note_end(slot, End::new(at, header));
        }
        let had_gap = self.has_gap(slot);
        let moved = self.advance(slot, header.psn, shape.has(Shape::LAST));
        if let Err(code) = self.end_messages(slot, moved) {
            return Err(self.refuse(now, slot, code, reaction));
        }
        let class = if shape.has(Shape::SEND) { Class::SEND } else { Class::WRITE };
        let law_acknowledges = self.law_acknowledges(slot);
        let counts_answers = self.profile(slot).recovery.owns_window();
        if !next && law_acknowledges && counts_answers {
            // The law's acknowledgement is the one answer: a second would count as another packet.
            self.qps[slot].responder.trigger = Some(header.psn);
        } else if !next {
            self.tell_of_gap(slot, Some(header), reaction);
        }
        if law_acknowledges {
            self.tell_law_of_data(now, slot, arrival, class);
        } else {
            let closed = next && moved != at.wrapping_add(1);
            if closed && self.profile(slot).layout == Layout::Homa || next && had_gap && counts_answers {
                // What fills a gap is acknowledged at once (RFC 5681 §4.2); in layout homa because what asked for an
                // acknowledgement may lie behind the gap, and no NAK told of it.
                self.answer_to(slot, ACK, Some(header), reaction);
            } else if next {
                self.acknowledge_kept(slot, header, reaction);
            }
            self.count_marks(now, slot, arrival, class);
        }
        Ok(())
    }

    /// READs and atomics are carried out in order alone; one that came early is asked for again.
    fn keep_read(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        next: bool,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        if !next {
            self.tell_of_gap(slot, None, reaction);
            return Err(Refusal::OutOfSequence);
        }
        if self.message_start(slot) != self.qps[slot].responder.expected {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        let first = self.qps[slot].responder.expected;
        self.take_single(now, slot, arrival, reaction)?;
        let end = self.qps[slot].responder.expected;
        self.qps[slot].responder.received = end;
        let index = self.qps[slot].common.aside;
        if index != NONE
            && let Some(keeping) = &mut self.asides.get_mut(index).keeping
        {
            // What is kept lies behind all of its responses.
            let mut at = first;
            while at != end {
                keeping.receiver.accept(&mut self.kept, Psn::new(at), false);
                at = at.wrapping_add(1);
            }
            let expected = keeping.receiver.expected();
            let moved = crate::qp::sequence(expected, end);
            self.qps[slot].responder.expected = moved;
            if let Err(code) = self.end_messages(slot, moved) {
                return Err(self.refuse(now, slot, code, reaction));
            }
            if moved != end {
                self.reply(slot, ACK, reaction);
            }
        }
        Ok(())
    }

    fn has_gap(&self, slot: usize) -> bool {
        let aside = self.asides.get(self.qps[slot].common.aside);
        aside.and_then(|aside| aside.keeping.as_ref()).is_some_and(|keeping| keeping.receiver.has_gap())
    }

    pub(crate) fn message_start(&self, slot: usize) -> u32 {
        self.qps[slot].responder.received
    }

    fn stands(&self, slot: usize, at: u32) -> Standing {
        let psn = Psn::new(at);
        match self.asides.get(self.qps[slot].common.aside).and_then(|aside| aside.keeping.as_ref()) {
            Some(keeping) => keeping.receiver.standing(&self.kept, psn),
            None => {
                let expected = Psn::new(self.qps[slot].responder.expected);
                Receiver::new(expected, true).standing(&self.kept, psn)
            }
        }
    }

    fn keeping(&mut self, slot: usize) -> &mut Keeping {
        let expected = Psn::new(self.qps[slot].responder.expected);
        self.aside(slot).keeping.get_or_insert_with(|| Keeping {
            receiver: Receiver::new(expected, true),
            ends: VecDeque::new(),
            taken: VecDeque::new(),
        })
    }

    /// Says where the payload goes, by what the packet itself tells.
    fn place_by_header(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        next: bool,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let shape = header.opcode.shape();
        let profile = self.profile(slot);
        let (pd, mtu, deferred) = (profile.pd, profile.mtu, profile.deferred.placement);
        let payload = u32::from(header.payload);
        let last = shape.has(Shape::LAST);
        if header.payload > mtu || !last && header.payload != mtu {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        let (address, key);
        if shape.has(Shape::WRITE) {
            let reth = header.reth();
            let short = self.profile(slot).layout == Layout::Srnic && !shape.has(Shape::FIRST);
            let length = if short { payload } else { reth.length };
            if payload > length || last && payload != length {
                return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
            }
            let length = u64::from(length);
            if self.regions.check(pd, reth.rkey, reth.va, length, Access::REMOTE_WRITE).is_err() {
                return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
            }
            if shape.has(Shape::IMMEDIATE) && self.receive_for(slot, header).is_none() {
                return Err(self.keep_not_ready(slot, next, reaction));
            }
            (address, key) = (reth.va, reth.rkey);
        } else {
            let Some(recv) = self.receive_for(slot, header) else {
                return Err(self.keep_not_ready(slot, next, reaction));
            };
            let request = self.recvs.get(recv).request;
            let offset = match self.profile(slot).layout {
                Layout::Srnic => header.request_position().psn_offset.checked_mul(u32::from(mtu)),
                _ => Some(header.send_position().offset),
            };
            let end = offset.and_then(|offset| offset.checked_add(payload));
            let Some(offset) = offset.filter(|_| end.is_some_and(|end| end <= request.length)) else {
                return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
            };
            (address, key) = (request.address.wrapping_add(u64::from(offset)), request.lkey);
            let length = u64::from(payload);
            if key != 0 && self.regions.check(pd, key, address, length, Access::LOCAL_WRITE).is_err() {
                return Err(self.refuse(now, slot, NakCode::RemoteOperationalError, reaction));
            }
        }
        if payload > 0 {
            let token = deferred.then(|| {
                let number = self.aside(slot).inbound.push(Step::Placement(false));
                self.token(slot, Purpose::Inbound, number)
            });
            reaction.placement =
                Some(Placement { qpn: self.qps[slot].common.qpn, address, key, length: payload, token });
        }
        Ok(())
    }

    fn keep_not_ready(&mut self, slot: usize, next: bool, reaction: &mut Reaction) -> Refusal {
        if next {
            return self.not_ready(slot, reaction);
        }
        Refusal::ReceiverNotReady
    }

    /// The receive request that a packet's message number means, taken now if it is not yet; `None` where the queue
    /// does not reach so far, or the number is of a message that has ended.
    fn receive_for(&mut self, slot: usize, header: &Header) -> Option<u32> {
        let number = self.qps[slot].responder.remaining;
        let ahead = match self.profile(slot).layout {
            Layout::Srnic => u32::from(header.request_position().ssn).wrapping_sub(number) & 0xffff,
            _ => header.send_position().ssn.wrapping_sub(number) & 0x00ff_ffff,
        };
        if ahead == 0 && self.qps[slot].responder.recv != NONE {
            return Some(self.qps[slot].responder.recv);
        }
        if ahead == 0 {
            let recv = self.next_recv(slot)?;
            self.qps[slot].responder.recv = recv;
            return Some(recv);
        }
        if ahead >= crate::qp::BITMAP_PACKETS {
            return None;
        }
        // The message in course has its own place; those ahead of it stand in line behind.
        if self.qps[slot].responder.recv == NONE {
            self.qps[slot].responder.recv = self.next_recv(slot)?;
        }
        while self.keeping(slot).taken.len() < ahead as usize {
            let recv = self.next_recv(slot)?;
            self.keeping(slot).taken.push_back(recv);
        }
        self.keeping(slot).taken.get(ahead as usize - 1).copied()
    }

    fn note_end(&mut self, slot: usize, end: End) {
        let ends = &mut self.keeping(slot).ends;
        let place = ends.iter().rposition(|other| after(other.at, end.at) < 0).map_or(0, |place| place + 1);
        ends.insert(place, end);
    }

    /// Takes the packet into the window; gives the sequence that is expected from now on.
    fn advance(&mut self, slot: usize, psn: Psn, ends: bool) -> u32 {
        let index = self.qps[slot].common.aside;
        let expected = self.qps[slot].responder.expected;
        let in_order = psn == Psn::new(expected);
        let has_keeping = index != NONE && self.asides.get_mut(index).keeping.is_some();
        if in_order && !has_keeping {
            let responder = &mut self.qps[slot].responder;
            responder.expected = expected.wrapping_add(1);
            responder.duties.clear(crate::qp::Duties::NAKED);
            return expected.wrapping_add(1);
        }
        self.keeping(slot);
        let index = self.qps[slot].common.aside;
        let Some(keeping) = &mut self.asides.get_mut(index).keeping else { return expected };
        keeping.receiver.accept(&mut self.kept, psn, ends);
        let now_expected = crate::qp::sequence(keeping.receiver.expected(), expected);
        self.qps[slot].responder.expected = now_expected;
        if now_expected != expected {
            self.qps[slot].responder.duties.clear(crate::qp::Duties::NAKED);
        }
        now_expected
    }

    /// Ends, in order, the messages whose last packet lies before `expected`.
    ///
    /// # Errors
    /// What to refuse one of them with: a key that it was to invalidate does not fit, or a SEND is longer than its
    /// buffer.
    fn end_messages(&mut self, slot: usize, expected: u32) -> Result<(), NakCode> {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return Ok(());
        }
        loop {
            let Some(keeping) = &mut self.asides.get_mut(index).keeping else { return Ok(()) };
            let Some(&end) = keeping.ends.front() else { break };
            if after(end.at, expected) >= 0 {
                break;
            }
            keeping.ends.pop_front();
            if let Err(code) = self.end_message(slot, end) {
                // The NAK is for the packet that ended the message, whatever is kept behind it.
                self.qps[slot].responder.expected = end.at;
                return Err(code);
            }
        }
        let keeping = self.asides.get_mut(index).keeping.as_ref();
        if keeping.is_some_and(|k| !k.receiver.has_gap() && k.ends.is_empty() && k.taken.is_empty()) {
            self.asides.get_mut(index).keeping = None;
        }
        Ok(())
    }

    fn end_message(&mut self, slot: usize, end: End) -> Result<(), NakCode> {
        let profile = self.profile(slot);
        let (mtu, pd) = (u32::from(profile.mtu), profile.pd);
        if let Tail::Invalidate(key) = end.tail
            && self.invalidate(pd, key).is_err()
        {
            return Err(NakCode::RemoteAccessError);
        }
        let Qp { common, responder, .. } = &mut self.qps[slot];
        let start = core::mem::replace(&mut responder.received, end.at.wrapping_add(1));
        responder.msn = (responder.msn + 1) & 0x00ff_ffff;
        if !end.consumes_receive() || responder.recv == NONE {
            return Ok(());
        }
        let keeping = self.asides.get_mut(common.aside).keeping.as_mut();
        let next = keeping.and_then(|keeping| keeping.taken.pop_front()).unwrap_or(NONE);
        let recv = core::mem::replace(&mut responder.recv, next);
        responder.remaining = responder.remaining.wrapping_add(1) & 0x00ff_ffff;
        let request = self.recvs.get(recv).request;
        self.recvs.remove(recv);
        // Each packet was placed within the buffer, but only now is it known that they are as many as it holds.
        let length = end.at.wrapping_sub(start) * mtu + u32::from(end.payload);
        let fits = end.write || length <= request.length;
        let completion = Completion {
            id: request.id,
            qpn: common.qpn,
            kind: if end.write { CompletionKind::RecvWrite } else { CompletionKind::Recv },
            status: if fits { Status::Success } else { Status::LocalLengthError },
            length: if fits { length } else { request.length },
            tail: end.tail,
            solicited: end.solicited,
            original: 0,
            source: None,
        };
        self.tell_receiver(slot, completion);
        if fits { Ok(()) } else { Err(NakCode::InvalidRequest) }
    }

    /// Forgets the gap; receive requests taken ahead are flushed, or dropped where nobody is to hear of it.
    pub(crate) fn end_keeping(&mut self, slot: usize, flush: bool) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let Some(mut keeping) = self.asides.get_mut(index).keeping.take() else { return };
        keeping.receiver.reset(&mut self.kept, Psn::new(0));
        for recv in keeping.taken {
            if flush {
                self.flush_recv(slot, recv);
            } else {
                self.recvs.remove(recv);
            }
        }
    }
}
