//! Unreliable connections as they arrive (IBTA Vol 1 §9.8.2): messages are taken whole or not at all, and nobody is told which.
//!
//! A packet that is not the one expected ends the message under way, of which the rest is dropped; the first packet of any
//! message begins that one, whatever its PSN is. What is dropped is counted. The receive request that a dropped SEND had is for the
//! next message that needs one; octets of a WRITE that came before the loss are in their place.
//!
//! A message that the network doubles is taken twice, as the specification has it, and counted once: [`taken`] knows which.

pub(crate) mod taken;

use crate::arrival::{Arrival, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::engine::Engine;
use crate::memory::Access;
use crate::qp::{Duties, Qp, Standing};
use crate::queue::NONE;
use crate::responder::fits_message;
use crate::token::Purpose;
use crate::work::{Completion, CompletionKind, Status, Tail};
use alloc::boxed::Box;
use roci_units::{Instant, Psn};
use roci_wire::{Flags, Header, Opcode, Shape};
use taken::{Place, Taken};

/// What comes lies behind the furthest packet that has come: nothing here is ever answered by a NAK.
const BEHIND: Duties = Duties::NAKED;
/// In the middle of a message.
const IN_MESSAGE: Duties = Duties::SENDING.with(Duties::WRITING);

impl Engine {
    /// A packet for a queue pair of an unreliable connection.
    #[inline(never)]
    pub(crate) fn on_unreliable(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        if self.qps[slot].common.path != arrival.path {
            return Err(Refusal::WrongPeer);
        }
        if self.qps[slot].requester.standing.meets(Standing::PARKED) {
            self.unpark_by(now, slot, arrival);
        }
        if header.opcode == Opcode::CNP {
            self.on_cnp(now, slot, arrival);
            return Ok(());
        }
        if !header.opcode.is_unreliable_connection() {
            return Err(Refusal::WrongOpcode);
        }
        let shape = header.opcode.shape();
        // One whose payload a switch cut off is lost.
        let is_whole = !header.flags.has(Flags::TRIMMED);
        let responder = &self.qps[slot].responder;
        let ahead = header.psn.since(Psn::new(responder.expected));
        let is_next = is_whole && ahead == 0 && fits_message(responder.duties, shape);
        let begins = is_whole && shape.has(Shape::FIRST);
        if !is_next && responder.duties.meets(IN_MESSAGE) {
            let under_way = Psn::new(responder.expected).minus(self.packets_taken(slot));
            self.miss(slot, under_way);
            // That of the message under way come again begins it anew, and nothing of it is lost.
            if !(begins && header.psn == under_way) {
                self.drop_message(slot, false);
            }
        }
        if !is_next && !begins {
            return Err(self.drop_rest(slot, shape, ahead));
        }
        // One that is late may have come in between another's packets, and what is left of that follows and is known to be dropped.
        if ahead >= 0 {
            self.qps[slot].responder.duties.clear(Duties::DROPPING);
        }
        if begins && (ahead != 0 || self.qps[slot].responder.duties.meets(BEHIND)) {
            self.begin_elsewhere(slot, header.psn);
        }
        if let Err(refusal) = self.take_unreliable(now, slot, header, shape, reaction) {
            let before = if begins { 0 } else { self.packets_taken(slot) };
            self.miss(slot, header.psn.minus(before));
            self.drop_message(slot, shape.has(Shape::LAST));
            return Err(refusal);
        }
        if arrival.ce {
            self.count_mark(now, slot, arrival);
        }
        Ok(())
    }

    /// How many packets of the message under way have been taken, which were all full.
    fn packets_taken(&self, slot: usize) -> u32 {
        self.qps[slot].responder.received / u32::from(self.profile(slot).mtu)
    }

    /// What is known of the messages before.
    fn taken(&mut self, slot: usize) -> &mut Taken {
        let Qp { responder, .. } = &self.qps[slot];
        let (expected, is_behind) = (Psn::new(responder.expected), responder.duties.meets(BEHIND));
        let taken = self.aside(slot).taken.get_or_insert_with(|| Box::new(Taken::new(expected)));
        if !is_behind {
            taken.pass(expected, false);
            taken.again = false;
        }
        taken
    }

    /// The message that began at `first` is not taken: one that comes from there later is the first of it, unless this one was none.
    #[cold]
    fn miss(&mut self, slot: usize, first: Psn) {
        let taken = self.taken(slot);
        if !taken.again {
            taken.drop(first);
        }
    }

    /// A message begins at `first`, which is not what was expected, or lies behind what has come.
    #[cold]
    fn begin_elsewhere(&mut self, slot: usize, first: Psn) {
        let place = self.taken(slot).begin(first);
        let duties = &mut self.qps[slot].responder.duties;
        match place {
            Place::Late | Place::Again => duties.set(BEHIND),
            Place::Ahead | Place::Unknown => duties.clear(BEHIND),
        }
    }

    /// A message has been taken that lies behind what had come.
    #[cold]
    fn count_behind(&mut self, slot: usize) {
        let taken = self.taken(slot);
        taken.doubled += u32::from(core::mem::take(&mut taken.again));
    }

    /// Drops the message under way, or the one that the packet just seen is of; `ended`: nothing more of it can come.
    #[cold]
    fn drop_message(&mut self, slot: usize, ended: bool) {
        let duties = &mut self.qps[slot].responder.duties;
        duties.clear(IN_MESSAGE);
        if !ended {
            duties.set(Duties::DROPPING);
        }
        self.aside(slot).naks += 1;
    }

    /// Drops a packet that no message is under way for: `ahead` says how far it lies from the one expected.
    #[cold]
    fn drop_rest(&mut self, slot: usize, shape: Shape, ahead: i32) -> Refusal {
        let is_known = self.qps[slot].responder.duties.has(Duties::DROPPING);
        if !is_known && ahead < 0 {
            return Refusal::Duplicate;
        }
        if !is_known {
            self.drop_message(slot, false);
        }
        if shape.has(Shape::LAST) {
            self.qps[slot].responder.duties.clear(Duties::DROPPING);
        }
        Refusal::OutOfSequence
    }

    /// A packet that is the next of its message, or begins one: where its octets go, and what follows if it is the last.
    fn take_unreliable(
        &mut self,
        now: Instant,
        slot: usize,
        header: &Header,
        shape: Shape,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let profile = self.profile(slot);
        let (pd, deferred, mtu) = (profile.pd, profile.deferred.placement, profile.mtu);
        let (first, last, write) = (shape.has(Shape::FIRST), shape.has(Shape::LAST), shape.has(Shape::WRITE));
        let payload = u32::from(header.payload);
        self.qps[slot].responder.expected = header.psn.plus(1).get();
        let length_fits =
            if last { header.payload <= mtu && (first || payload > 0) } else { header.payload == mtu };
        if !length_fits {
            return Err(Refusal::Rejected);
        }
        if write && first {
            let reth = header.reth();
            let (rkey, va, length) = (reth.rkey, reth.va, reth.length);
            if self
                .regions
                .check_for((pd, self.qps[slot].common.qpn), rkey, va, u64::from(length), Access::REMOTE_WRITE)
                .is_err()
            {
                return Err(Refusal::Rejected);
            }
            self.begin_unreliable(slot, va, rkey, length);
        }
        let consumes = if write { shape.has(Shape::IMMEDIATE) } else { first };
        if consumes && self.qps[slot].responder.recv == NONE {
            let recv = self.next_recv(slot).ok_or(Refusal::ReceiverNotReady)?;
            self.qps[slot].responder.recv = recv;
        }
        if first && !write {
            let request = self.recvs.get(self.qps[slot].responder.recv).request;
            self.begin_unreliable(slot, request.address, request.lkey, request.length);
        }
        let remaining = self.qps[slot].responder.remaining;
        if payload > remaining || write && last && payload != remaining {
            return Err(Refusal::Rejected);
        }
        if self.qps[slot].responder.keys_ended != self.keys_ended || first && !write {
            self.check_unreliable_rest(now, slot, write)?;
        }
        if payload > 0 {
            let token = deferred.then(|| {
                let number = self.aside(slot).inbound.push(Step::Placement(false));
                self.token(slot, Purpose::Inbound, number)
            });
            let Qp { common, responder, .. } = &mut self.qps[slot];
            let (address, key) = (responder.address, responder.key);
            reaction.placement = Some(Placement { qpn: common.qpn, address, key, length: payload, token });
            responder.address = address.wrapping_add(u64::from(payload));
            responder.remaining -= payload;
            responder.received += payload;
        }
        let responder = &mut self.qps[slot].responder;
        responder.duties.clear(IN_MESSAGE);
        if !last {
            responder.duties.set(if write { Duties::WRITING } else { Duties::SENDING });
            return Ok(());
        }
        // No answer bears it: here it only counts.
        responder.msn = responder.msn.wrapping_add(1);
        if responder.duties.meets(BEHIND) {
            self.count_behind(slot);
        }
        if consumes || !write {
            let has_immediate = shape.has(Shape::IMMEDIATE);
            let tail = if has_immediate { Tail::Immediate(header.immediate()) } else { Tail::Plain };
            let kind = if write { CompletionKind::RecvWrite } else { CompletionKind::Recv };
            self.end_recv(slot, Status::Success, tail, header.flags.has(Flags::SOLICITED), kind);
        } else if self.profile(slot).tells_writes {
            self.tell_of_write(slot);
        }
        Ok(())
    }

    /// Tells of a WRITE that nobody posted anything for.
    fn tell_of_write(&mut self, slot: usize) {
        let Qp { common, responder, .. } = &self.qps[slot];
        let completion = Completion {
            id: u64::MAX,
            qpn: common.qpn,
            kind: CompletionKind::RecvWrite,
            status: Status::Success,
            length: responder.received,
            tail: Tail::Plain,
            solicited: false,
            original: 0,
            source: None,
        };
        self.tell_receiver(slot, completion);
    }

    /// The message goes to `length` octets from `address` on.
    fn begin_unreliable(&mut self, slot: usize, address: u64, key: u32, length: u32) {
        let keys_ended = self.keys_ended;
        let responder = &mut self.qps[slot].responder;
        (responder.address, responder.key) = (address, key);
        (responder.remaining, responder.received) = (length, 0);
        responder.keys_ended = keys_ended;
    }

    /// Checks again that what is left of the message may be written. That a buffer of one's own may not is a fault on this side, of which
    /// the queue pair fails, as the next message would meet the same one.
    #[cold]
    fn check_unreliable_rest(&mut self, now: Instant, slot: usize, write: bool) -> Result<(), Refusal> {
        let pd = self.profile(slot).pd;
        let Qp { common, responder, .. } = &mut self.qps[slot];
        let asks = (pd, common.qpn);
        responder.keys_ended = self.keys_ended;
        let (key, address, left) = (responder.key, responder.address, u64::from(responder.remaining));
        let needs = if write { Access::REMOTE_WRITE } else { Access::LOCAL_WRITE };
        let is_void = !write && self.recvs.get(responder.recv).is_void;
        if !is_void && (!write && key == 0 || self.regions.check_for(asks, key, address, left, needs).is_ok())
        {
            return Ok(());
        }
        if !write {
            self.end_recv(slot, Status::LocalProtectionError, Tail::Plain, false, CompletionKind::Recv);
            self.fail_refusing(now, slot, NONE, Status::WorkRequestFlushed);
        }
        Err(Refusal::Rejected)
    }
}
