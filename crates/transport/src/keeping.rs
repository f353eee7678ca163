//! The receiving side of selective repeat: packets are placed as they come, messages end in order.
//!
//! In layouts `irn` and `srnic` each packet says where its payload goes, so the path is the same in order and out of it. A bitmap
//! and a list of messages that ended early exist only while something is missing. READs and atomics that came early wait
//! in that list.

mod ends;

use crate::arrival::{Arrival, Deferral, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::delivery::onload::{Onloaded, SlowPath};
use crate::engine::Engine;
use crate::memory::Access;
use crate::messages::is_sent_again;
use crate::qp::{Duties, after, sequence};
use crate::queue::{NONE, RecvWork};
use crate::reads::Access as Stored;
use crate::responder::ACK;
use crate::responses::atomic_result;
use crate::token::Purpose;
use crate::work::Tail;
use alloc::collections::VecDeque;
use roci_control::Class;
use roci_units::{Instant, Psn, Qpn};
use roci_wire::{Flags, Header, Layout, NakCode, Shape};

/// A gap that a responder has, and what it keeps behind it.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    /// The gap; `None`: it is closed, and what is left came early.
    onloaded: Option<Onloaded>,
    /// Last packets of messages that came before what precedes them, in order.
    ends: VecDeque<End>,
    /// Receive requests taken for SENDs ahead of their turn, from the one whose number is the next on.
    taken: VecDeque<u32>,
    /// The last packet that came ahead of its turn and found no receive request, so that it has to come again.
    unready: Option<u32>,
}

/// The end of a message.
#[derive(Clone, Copy, Debug)]
struct End {
    at: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// Of a SEND or WRITE.
    Message { payload: u16, write: bool, solicited: bool, tail: Tail },
    /// A READ or atomic.
    Single(Header),
}

impl Keeping {
    /// Whether there is no gap, and nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.onloaded.is_none() && self.ends.is_empty() && self.taken.is_empty() && self.unready.is_none()
    }

    /// Forgets what came early; the gap and the receive requests went back before.
    fn clear(&mut self) {
        self.ends.clear();
        self.unready = None;
    }
}

impl What {
    fn new(header: &Header) -> Self {
        let shape = header.opcode.shape();
        if !shape.has(Shape::SEND) && !shape.has(Shape::WRITE) {
            return Self::Single(*header);
        }
        let tail = if shape.has(Shape::IMMEDIATE) {
            Tail::Immediate(header.immediate())
        } else if shape.has(Shape::INVALIDATE) {
            Tail::Invalidate(header.immediate())
        } else {
            Tail::Plain
        };
        let (write, solicited) = (shape.has(Shape::WRITE), header.flags.has(Flags::SOLICITED));
        Self::Message { payload: header.payload, write, solicited, tail }
    }
}

impl Engine {
    /// A packet of a request that is not a duplicate, on a queue pair with selective repeat.
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
        let single = !shape.has(Shape::SEND) && !shape.has(Shape::WRITE);
        if single && !self.profile(slot).separate_reads() {
            return self.keep_in_order(now, slot, arrival, next, reaction);
        }
        self.stands(slot, at, single, header, reaction)?;
        let first = single || shape.has(Shape::FIRST);
        if next && first != (at == self.qps[slot].responder.course().start) {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        let slow = self.has_gap(slot) || !next;
        if !single {
            self.place_by_header(now, slot, header, next, reaction)?;
        } else if !slow {
            self.take_single_kept(now, slot, at, header, reaction)?;
            self.qps[slot].responder.begin_message(at.wrapping_add(1));
        }
        if arrival.ce {
            self.note_mark(slot);
        }
        if slow {
            if single || shape.has(Shape::LAST) {
                self.note_end(slot, End { at, what: What::new(header) });
            }
            self.answer_out_of_order(now, slot, at, header, reaction)?;
        } else {
            let responder = &mut self.qps[slot].responder;
            responder.expected = at.wrapping_add(1);
            responder.duties.clear(Duties::NAKED);
            if !single && shape.has(Shape::LAST) {
                self.end_message(now, slot, End { at, what: What::new(header) }, reaction)?;
            }
        }
        let class = match (shape.has(Shape::SEND), shape.has(Shape::WRITE), shape.has(Shape::RETH)) {
            (true, ..) => Class::SEND,
            (_, true, _) => Class::WRITE,
            (_, _, true) => Class::READ_REQUEST,
            _ => Class::ATOMIC,
        };
        self.tell_of_unready(slot);
        if !single && self.law_acknowledges(slot) {
            self.tell_law_of_data(now, slot, arrival, class);
            return Ok(());
        }
        // The result of an atomic acknowledges it, and so do data that follow at once.
        let answered = class == Class::ATOMIC || single && self.is_answered_at_once(slot, header);
        if !slow && !answered {
            self.acknowledge_kept(slot, header, reaction);
        }
        self.count_marks(now, slot, arrival, class);
        Ok(())
    }

    /// Where responses share the sequences of requests, READs and atomics are carried out in order alone; one that came
    /// early is asked for again.
    fn keep_in_order(
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
        let first = self.qps[slot].responder.expected;
        if self.qps[slot].responder.course().start != first {
            return Err(self.refuse(now, slot, NakCode::InvalidRequest, reaction));
        }
        self.take_single(now, slot, arrival, reaction)?;
        let end = self.qps[slot].responder.expected;
        self.qps[slot].responder.begin_message(end);
        if !self.has_gap(slot) {
            return Ok(());
        }
        // What is kept lies behind all of its responses.
        let mut at = first;
        while at != end {
            if let Some(onloaded) = &mut self.keeping(slot).onloaded {
                onloaded.arrived(Psn::new(at));
            }
            self.gap_decided(now, slot, reaction)?;
            at = at.wrapping_add(1);
        }
        if self.qps[slot].responder.expected != end {
            self.reply(slot, ACK, reaction);
        }
        Ok(())
    }

    /// Whether the packet at `at` may be taken; otherwise the requester hears what is missing.
    fn stands(
        &mut self,
        slot: usize,
        at: u32,
        single: bool,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let expected = self.qps[slot].responder.expected;
        if at == expected && !self.has_gap(slot) {
            return Ok(());
        }
        let limit = usize::from(self.profile(slot).max_dest_rd_atomic);
        let deferred = self.defers_gaps(slot);
        let keeping = self.asides.get(self.qps[slot].common.aside).and_then(|aside| aside.keeping.as_ref());
        let onloaded = keeping.and_then(|keeping| keeping.onloaded.as_ref());
        let knows = onloaded.is_some_and(|onloaded| !deferred && onloaded.knows(&self.kept, header.psn));
        if knows {
            self.tell_of_gap(slot, Some(header), reaction);
            return Err(Refusal::Duplicate);
        }
        // Not of packets with payload, behind as many messages as a window has packets.
        let is_early = |end: &&End| matches!(end.what, What::Single(_));
        let too_many = single && keeping.is_some_and(|it| it.ends.iter().filter(is_early).count() >= limit);
        let fits = onloaded.is_some() || self.kept.offers();
        let ahead = at.wrapping_sub(expected);
        if !fits || ahead >= self.kept.packets() || too_many {
            self.tell_of_gap(slot, None, reaction);
            return Err(Refusal::OutOfSequence);
        }
        Ok(())
    }

    /// Whether a packet at or after the first that is missing is missing as well.
    pub(crate) fn is_missing(&self, slot: usize, at: u32) -> bool {
        let keeping = self.asides.get(self.qps[slot].common.aside).and_then(|aside| aside.keeping.as_ref());
        let onloaded = keeping.and_then(|keeping| keeping.onloaded.as_ref());
        !onloaded.is_some_and(|onloaded| onloaded.knows(&self.kept, Psn::new(at)))
    }

    /// The ends of messages that came early, in order, and whether each is all of its message.
    pub(crate) fn early(&self, slot: usize) -> impl Iterator<Item = (u32, bool)> {
        let aside = self.asides.get(self.qps[slot].common.aside);
        let keeping = aside.and_then(|aside| aside.keeping.as_ref());
        keeping
            .into_iter()
            .flat_map(|keeping| &keeping.ends)
            .map(|end| (end.at, matches!(end.what, What::Single(_))))
    }

    fn has_gap(&self, slot: usize) -> bool {
        let keeping = self.asides.get(self.qps[slot].common.aside).and_then(|aside| aside.keeping.as_ref());
        keeping.is_some_and(|keeping| keeping.onloaded.is_some())
    }

    /// Whether the bitmap of a gap is on a slow path.
    pub(crate) fn defers_gaps(&self, slot: usize) -> bool {
        let profile = self.profile(slot);
        profile.recovery.has_slow_path() && profile.deferred.recovery
    }

    /// Adds to what slow paths have done, where there is one.
    pub(crate) fn count_slow_path(&mut self, slot: usize, done: &SlowPath) {
        if self.profile(slot).recovery.has_slow_path() {
            self.slow.add(done);
        }
    }

    /// A packet behind a gap, or one that may close it: tells the slow path, and the requester.
    fn answer_out_of_order(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let old = self.qps[slot].responder.expected;
        let (psn, expected) = (header.psn, Psn::new(old));
        let slow = self.profile(slot).recovery.has_slow_path();
        self.aside(slot);
        let keeping = self.asides.get_mut(self.qps[slot].common.aside).keeping.get_or_insert_default();
        match &mut keeping.onloaded {
            Some(onloaded) => onloaded.arrived(psn),
            None => {
                keeping.onloaded = Onloaded::enter(&mut self.kept, expected, psn);
                self.slow.entries += u64::from(slow);
            }
        }
        if self.defers_gaps(slot) {
            self.ask_about_gap(slot);
        } else {
            self.gap_decided(now, slot, reaction)?;
        }
        let shape = header.opcode.shape();
        let law_acknowledges =
            self.law_acknowledges(slot) && (shape.has(Shape::SEND) || shape.has(Shape::WRITE));
        let owns_window = self.profile(slot).recovery.owns_window();
        if law_acknowledges && at != old && owns_window {
            // The law's acknowledgement is the one answer: a second would count as another packet.
            self.qps[slot].responder.trigger = Some(psn);
        } else if at == old && !law_acknowledges {
            // What fills a gap is acknowledged at once (RFC 5681 §4.2), whatever the slow path makes of it.
            self.answer_kept(slot, header, reaction);
        } else if at != old {
            self.tell_of_gap(slot, Some(header), reaction);
        }
        Ok(())
    }

    fn ask_about_gap(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        let aside = self.asides.get_mut(index);
        let onloaded = aside.keeping.as_mut().and_then(|keeping| keeping.onloaded.as_mut());
        let Some(onloaded) = onloaded.filter(|onloaded| onloaded.waits() && !onloaded.is_out()) else {
            return;
        };
        let packets = onloaded.ask();
        let number = aside.next_decision();
        aside.gap_out = number;
        let token = self.token(slot, Purpose::Gap, number);
        self.defer(Deferral::Recovery { token, qpn: self.qps[slot].common.qpn, packets });
    }

    /// The slow path has filled the bitmap.
    pub(crate) fn gap_resolved(&mut self, now: Instant, slot: usize, number: u32) {
        let index = self.qps[slot].common.aside;
        if index == NONE || self.asides.get_mut(index).gap_out != number {
            return;
        }
        let out = self.asides.get_mut(index).keeping.as_ref().and_then(|keeping| keeping.onloaded.as_ref());
        if !out.is_some_and(Onloaded::is_out) {
            return;
        }
        let before = self.qps[slot].responder.expected;
        let mut reaction = Reaction::default();
        let ended = self.gap_decided(now, slot, &mut reaction);
        if ended.is_ok() && self.qps[slot].responder.expected != before {
            self.reply(slot, ACK, &mut reaction);
        }
        if let Some(reply) = reaction.reply {
            self.post(reply);
        }
        if ended.is_ok() {
            self.tell_of_unready(slot);
            self.ask_about_gap(slot);
        }
    }

    /// Has the slow path decide on all that it was asked about, or everything where it is immediate.
    fn gap_decided(&mut self, now: Instant, slot: usize, reaction: &mut Reaction) -> Result<(), Refusal> {
        let index = self.qps[slot].common.aside;
        let Some(keeping) = &mut self.asides.get_mut(index).keeping else { return Ok(()) };
        let Some(onloaded) = &mut keeping.onloaded else { return Ok(()) };
        if !onloaded.is_out() {
            onloaded.ask();
        }
        let mut done = SlowPath::default();
        let mut moved = onloaded.decide(&mut self.kept, &mut done);
        if let Some(exit) = onloaded.exit(moved) {
            moved = exit;
            done.exits = 1;
            if let Some(onloaded) = keeping.onloaded.take() {
                onloaded.leave(&mut self.kept);
            }
        }
        self.count_slow_path(slot, &done);
        let responder = &mut self.qps[slot].responder;
        let moved = sequence(moved, responder.expected);
        if after(moved, responder.expected) > 0 {
            responder.expected = moved;
            responder.duties.clear(Duties::NAKED);
        }
        self.end_messages(now, slot, moved, reaction)
    }

    /// How many packets of requests, or of READ data, have come to a queue pair beyond a missing one; nothing where there is no such
    /// queue pair.
    pub fn kept(&self, qpn: Qpn) -> u32 {
        let Some(slot) = self.place(qpn) else { return 0 };
        let Some(aside) = self.asides.get(self.qps[slot].common.aside) else { return 0 };
        let (requests, reading) = (aside.keeping.as_ref(), aside.reading.as_deref());
        let expected = Psn::new(self.qps[slot].responder.expected);
        let requests = requests.and_then(|it| it.onloaded.as_ref()).map(|it| it.beyond(&self.kept, expected));
        let reads = reading.and_then(|reading| reading.beyond(&self.kept));
        requests.unwrap_or(0) + reads.unwrap_or(0)
    }

    fn keeping(&mut self, slot: usize) -> &mut Keeping {
        self.aside(slot).keeping.get_or_insert_default()
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
            if self
                .regions
                .check_for((pd, self.qps[slot].common.qpn), reth.rkey, reth.va, length, Access::REMOTE_WRITE)
                .is_err()
            {
                return Err(self.refuse(now, slot, NakCode::RemoteAccessError, reaction));
            }
            if shape.has(Shape::IMMEDIATE) && self.receive_for(slot, header).is_none() {
                return Err(self.keep_not_ready(slot, header, next, reaction));
            }
            (address, key) = (reth.va, reth.rkey);
        } else {
            let Some(recv) = self.receive_for(slot, header) else {
                return Err(self.keep_not_ready(slot, header, next, reaction));
            };
            let RecvWork { request, is_void, .. } = *self.recvs.get(recv);
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
            let fits = key == 0 || self.regions.check(pd, key, address, length, Access::LOCAL_WRITE).is_ok();
            if !fits || is_void {
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

    /// No receive request for a packet. One that came ahead of its turn is like one that is lost, but for which no later one
    /// may come that shows it: the requester hears of it when its turn has come.
    fn keep_not_ready(
        &mut self,
        slot: usize,
        header: &Header,
        next: bool,
        reaction: &mut Reaction,
    ) -> Refusal {
        if next {
            return self.not_ready(slot, reaction);
        }
        let at = sequence(header.psn, self.qps[slot].responder.expected);
        let keeping = self.keeping(slot);
        keeping.unready = keeping.unready.filter(|&last| after(last, at) > 0).or(Some(at));
        Refusal::ReceiverNotReady
    }

    /// Where the turn of a packet has come that found no receive request before, and nothing is missing before it: tells the
    /// requester, once, as if it came now. That goes beside what acknowledges the packet which came.
    #[inline]
    fn tell_of_unready(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let Some(keeping) = &mut self.asides.get_mut(index).keeping else { return };
        let Some(at) = keeping.unready.filter(|_| keeping.onloaded.is_none()) else { return };
        keeping.unready = None;
        if after(at, self.qps[slot].responder.expected) < 0 {
            return;
        }
        let mut reaction = Reaction::default();
        self.not_ready(slot, &mut reaction);
        if let Some(reply) = reaction.reply {
            self.post(reply);
        }
    }

    /// The receive request that a packet's message number means, taken now if it is not yet; `None` where the queue
    /// does not reach so far, or the number is of a message that has ended.
    fn receive_for(&mut self, slot: usize, header: &Header) -> Option<u32> {
        let number = self.qps[slot].responder.course().number;
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
        // Each message between has a packet at least, so that a number says no more than the sequence does.
        let expected = self.qps[slot].responder.expected;
        let beyond = sequence(header.psn, expected).wrapping_sub(expected);
        if ahead >= self.kept.packets() || ahead > beyond {
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

    /// A READ or atomic whose turn has come.
    fn take_single_kept(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        header: &Header,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        debug_assert_eq!(at, self.qps[slot].responder.expected, "it is next");
        if header.opcode.shape().has(Shape::RETH) {
            self.take_read(now, slot, header, reaction)
        } else {
            self.take_atomic(now, slot, header, reaction)
        }
    }

    /// A packet that came before. A READ that was forgotten is complete; were it not, the silence would say so.
    pub(crate) fn kept_before(
        &mut self,
        now: Instant,
        slot: usize,
        at: u32,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) {
        let header = arrival.header;
        let shape = header.opcode.shape();
        let reads = self.qps[slot].responder.reads;
        let resource = if reads == NONE { None } else { self.reads.get_mut(reads).requested(at).copied() };
        match resource.map(|resource| (resource.access, resource)) {
            Some((Stored::Atomic { original, .. }, resource)) if shape.has(Shape::ATOMIC) => {
                if !resource.pending() {
                    let header = atomic_result(&self.qps[slot], self.profile(slot), &resource, original);
                    reaction.reply = Some(self.control(slot, header));
                }
                return;
            }
            None if !shape.has(Shape::SEND) && !shape.has(Shape::WRITE) => return,
            Some((Stored::Read { .. }, resource)) => {
                self.reader_is_there(slot);
                if self.names_messages(slot) && is_sent_again(arrival) {
                    self.answer_request_again(now, slot, &resource);
                }
            }
            _ => {}
        }
        // What is owed acknowledges all that came before as well, and may ask for more.
        if !self.qps[slot].responder.duties.has(Duties::OWES) {
            self.answer_kept(slot, header, reaction);
        }
    }

    /// Acknowledges what has come in order, and says which packet drew that; with pulls, that packet alone.
    fn answer_kept(&mut self, slot: usize, header: &Header, reaction: &mut Reaction) {
        if self.profile(slot).layout == Layout::Ndp {
            self.answer_packet(slot, header.psn, false, reaction);
        } else {
            self.answer_to(slot, ACK, Some(header), reaction);
        }
    }

    /// Forgets the gap; receive requests taken ahead are flushed, or dropped where nobody is to hear of it.
    pub(crate) fn end_keeping(&mut self, slot: usize, flush: bool) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let Some(kept) = self.asides.get_mut(index).keeping.as_mut() else { return };
        if let Some(onloaded) = kept.onloaded.take() {
            onloaded.leave(&mut self.kept);
        }
        while let Some(recv) =
            self.asides.get_mut(index).keeping.as_mut().and_then(|kept| kept.taken.pop_front())
        {
            if flush {
                self.flush_recv(slot, recv);
            } else {
                self.recvs.remove(recv);
            }
        }
        self.asides.get_mut(index).keeping.iter_mut().for_each(Keeping::clear);
    }
}
