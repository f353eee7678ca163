//! READ responses with a reliability of their own, at the requester: with selective repeat they are placed as they come
//! and acknowledged by READ_ACKNOWLEDGE, in a space of sequences that begins with the requester's first.
//!
//! A READ request is a packet like others, acknowledged on its own; the READ is complete when its responses are. The
//! responder's side is in [`responding`](crate::responding).

mod missing;

use crate::arrival::{Arrival, Deferral, Placement, Reaction, Refusal};
use crate::aside::Step;
use crate::delivery::onload::{Onloaded, SlowPath};
use crate::delivery::pool::Pool;
use crate::engine::Engine;
use crate::qp::{after, sequence};
use crate::queue::{Kind, NONE, SendWork, flag};
use crate::requester::{Progress, drawn_by, set_drawn_by};
use crate::responder::ACK;
use crate::token::Purpose;
use roci_control::{Class, Part};
use roci_units::{Instant, Psn};
use roci_wire::layout::ndp::Pull;
use roci_wire::{Aeth, Flags, Header, Layout, NakCode, Opcode, Reth, Shape, Syndrome};

/// The syndrome of a NAK with PSN sequence error.
const NAK: u8 = Syndrome::Nak(NakCode::PsnSequenceError).to_u8();

/// The READs of one queue pair.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Sequence of the first response ever expected.
    first: u32,
    /// Sequence of the next response expected.
    expected: u32,
    /// Sequence after the last response that was asked for.
    end: u32,
    /// The READ that `expected` belongs to; NONE: all are complete.
    current: u32,
    /// While the oldest request is a READ that is not complete, the request behind it that was acknowledged last, perhaps in part: all
    /// before it are. NONE: none behind it was.
    reached: u32,
    /// A gap among the responses.
    onloaded: Option<Onloaded>,
    /// The number of the slow path's decision that is out.
    out: u32,
    /// Responses accepted since the last acknowledgement.
    unacknowledged: u16,
    /// Whether one with CE came since the last acknowledgement.
    marked: bool,
    /// Sequence before which READs have left the port's rooms, for what came behind them shows that no more of them is under way
    /// but what was lost.
    passed: u32,
}

impl Reading {
    /// How many responses have come beyond a missing one.
    pub(crate) fn beyond(&self, kept: &Pool) -> Option<u32> {
        Some(self.onloaded.as_ref()?.beyond(kept, Psn::new(self.expected)))
    }
}

/// Response packets of a READ.
const fn packets_of(work: &SendWork, mtu: u16) -> u32 {
    match work.length.div_ceil(mtu as u32) {
        0 => 1,
        packets => packets,
    }
}

impl Engine {
    fn reading(&mut self, slot: usize) -> Option<&mut Reading> {
        match self.qps[slot].common.aside {
            NONE => None,
            index => self.asides.get_mut(index).reading.as_deref_mut(),
        }
    }

    fn reads_of(&self, slot: usize) -> Option<&Reading> {
        self.asides.get(self.qps[slot].common.aside)?.reading.as_deref()
    }

    /// A READ comes to be sent: its responses get their sequences.
    pub(crate) fn begin_read(&mut self, slot: usize, index: u32) {
        let packets = packets_of(self.sends.get(index), self.profile(slot).mtu);
        let base = self.qps[slot].common.base;
        let reading = self.aside(slot).reading.get_or_insert_with(|| {
            alloc::boxed::Box::new(Reading {
                first: base,
                expected: base,
                end: base,
                current: NONE,
                reached: NONE,
                onloaded: None,
                out: 0,
                unacknowledged: 0,
                marked: false,
                passed: base,
            })
        });
        let first = reading.end;
        reading.end = first.wrapping_add(packets);
        if reading.current == NONE {
            reading.current = index;
        }
        self.sends.get_mut(index).operand |= u64::from(first);
    }

    /// A packet of READ data.
    pub(crate) fn on_separate_response(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let profile = *self.profile(slot);
        let deferred = self.defers_gaps(slot);
        let (high, window) = (self.qps[slot].requester.high, self.kept.packets());
        let Some(reading) = self.reading(slot) else { return Err(Refusal::UnexpectedResponse) };
        let (expected, end, mut index) = (reading.expected, reading.end, reading.current);
        let at = sequence(header.psn, expected);
        if after(at, expected) < 0 {
            self.acknowledge_response(slot, ACK, header, reaction);
            return Err(self.came_before(now, slot, header));
        }
        if after(at, end) >= 0 || index == NONE {
            return Err(Refusal::UnexpectedResponse);
        }
        let work = loop {
            let work = self.sends.get(index);
            let last = work.number().wrapping_add(packets_of(work, profile.mtu));
            if work.kind == Kind::Read && after(at, last) < 0 {
                break *work;
            }
            index = work.next;
            if index == NONE {
                return Err(Refusal::UnexpectedResponse);
            }
        };
        let place = at.wrapping_sub(work.number());
        let last = place + 1 == packets_of(&work, profile.mtu);
        let offset = place * u32::from(profile.mtu);
        let length = if last { work.length - offset } else { u32::from(profile.mtu) };
        let shape = header.opcode.shape();
        let echoes = profile.layout != Layout::Srnic || header.request_position() == work.position(place);
        if after(high, work.first) <= 0 || !echoes {
            return Err(Refusal::UnexpectedResponse);
        }
        if u32::from(header.payload) != length
            || shape.has(Shape::LAST) != last
            || shape.has(Shape::FIRST) != (place == 0)
        {
            // One that has come early is asked for again, as it is then known to be of the READ in hand.
            let is_next = at == expected;
            return Err(if is_next {
                self.bad_response(now, slot, index)
            } else {
                Refusal::UnexpectedResponse
            });
        }
        let Some(reading) = self.reading(slot) else { return Err(Refusal::UnexpectedResponse) };
        let needs = reading.onloaded.is_none();
        let in_order = at == expected && needs;
        if !in_order && (at.wrapping_sub(expected) >= window || needs && !self.kept.offers()) {
            return Err(Refusal::OutOfSequence);
        }
        if let Some(reading) = self.reading(slot) {
            reading.marked |= arrival.ce;
        }
        if length > 0 {
            let token = profile.deferred.placement.then(|| {
                let number = self.aside(slot).outbound.push(Step::Placement(false));
                self.token(slot, Purpose::Outbound, number)
            });
            let address = work.address.wrapping_add(u64::from(offset));
            let qpn = self.qps[slot].common.qpn;
            reaction.placement = Some(Placement { qpn, address, key: work.lkey, length, token });
        }
        let (pulled, granted) = (profile.layout == Layout::Ndp, profile.layout == Layout::Homa);
        self.hear_credits_with(slot, header);
        self.pass(slot, work.number());
        if in_order {
            self.responses_came(now, slot, at.wrapping_add(1));
            if let Some(reading) = self.reading(slot) {
                reading.unacknowledged = reading.unacknowledged.saturating_add(1);
                let asks = header.flags.has(Flags::ACK_REQUEST);
                let due = !granted && reading.unacknowledged >= profile.ack_every;
                if last || asks || pulled || due {
                    self.acknowledge_response(slot, ACK, header, reaction);
                }
            }
        } else {
            self.keep_response(slot, header.psn);
            if deferred {
                self.ask_about_responses(slot);
            } else {
                self.responses_decided(now, slot);
            }
            // With NDP and Homa a gap is no loss, and a program that owns the window counts what repeats the last acknowledgement.
            let naks = at != expected && !pulled && !granted && !profile.recovery.owns_window();
            let syndrome = if naks { NAK } else { ACK };
            // With Homa who reads says what is lost, and answers what has brought him on.
            if !granted || self.next_response(slot) != Some(expected) {
                self.acknowledge_response(slot, syndrome, header, reaction);
            }
        }
        self.count_marks(now, slot, arrival, Class::READ_RESPONSE);
        self.arm(now, slot);
        Ok(())
    }

    /// A response whose payload a switch cut off: NDP's responder hears which it was. False where it is none that was asked
    /// for.
    pub(crate) fn trimmed_response(&mut self, slot: usize, header: &Header, reaction: &mut Reaction) -> bool {
        let Some(reading) = self.reads_of(slot) else { return false };
        let at = sequence(header.psn, reading.expected);
        if after(at, reading.end) >= 0 {
            return false;
        }
        let came = after(at, reading.expected) < 0
            || reading.onloaded.as_ref().is_some_and(|onloaded| onloaded.knows(&self.kept, header.psn));
        self.acknowledge_response(slot, if came { ACK } else { NAK }, header, reaction);
        true
    }

    /// Responses from the first that is missing up to that with `psn`.
    pub(crate) fn responses_missing_up_to(&self, slot: usize, psn: Psn) -> u32 {
        self.reads_of(slot).map_or(0, |reading| {
            after(sequence(psn, reading.expected).wrapping_add(1), reading.expected).max(0).cast_unsigned()
        })
    }

    /// Data of the READ with first sequence `number` came: those before it leave the port's rooms, if READs are let in piece by piece.
    fn pass(&mut self, slot: usize, number: u32) {
        if self.read_rooms.as_ref().is_none_or(|rooms| rooms.piece().is_none()) {
            return;
        }
        let Some(came) = self.read_from(slot, number).filter(|&(at, _)| at == number) else { return };
        while let Some(passed) = self.reads_of(slot).map(|reading| reading.passed)
            && let Some((at, length)) = self.read_from(slot, passed).filter(|&(at, _)| after(number, at) > 0)
        {
            let Some(rooms) = &self.read_rooms else { return };
            if rooms.priority(length) < rooms.priority(came.1) {
                // Data of a lower priority may still be under way.
                return;
            }
            if let Some(reading) = self.reading(slot) {
                reading.passed = at.wrapping_add(1);
            }
            self.leave_read_rooms(slot, Some(length));
        }
    }

    /// The first READ that has not ended and whose data begin at `from` or after: where they begin, and its length. One whose data have
    /// come but that waits for an atomic before it has not ended.
    fn read_from(&self, slot: usize, from: u32) -> Option<(u32, u32)> {
        let mut index = self.qps[slot].common.head;
        while index != NONE && self.sends.get(index).has(flag::NUMBERED) {
            let work = self.sends.get(index);
            if work.kind == Kind::Read && after(work.number(), from) >= 0 {
                return Some((work.number(), work.length));
            }
            index = work.next;
        }
        None
    }

    /// Whether a READ has left the port's rooms before it is complete.
    pub(crate) fn has_left_room(&self, slot: usize, work: &SendWork) -> bool {
        let by_pieces = self.read_rooms.as_ref().is_some_and(|rooms| rooms.piece().is_some());
        by_pieces && self.reads_of(slot).is_some_and(|reading| after(work.number(), reading.passed) < 0)
    }

    /// What of READ data has come and been asked for, for the port's agent.
    pub(crate) fn awaited_responses(&self, slot: usize) -> Part {
        let Some(reading) = self.reads_of(slot) else { return Part::default() };
        let expected = reading.expected;
        let reach =
            reading.onloaded.as_ref().map_or(expected, |onloaded| sequence(onloaded.reach(), expected));
        let base = reading.first;
        Part {
            message: 0,
            message_length: reading.end.wrapping_sub(base),
            offset: expected.wrapping_sub(base),
            end: reach.wrapping_sub(base),
            priority: 0,
        }
    }

    /// The same once the response with `psn` came, which it names.
    pub(crate) fn response_that_came(&self, slot: usize, psn: Psn) -> Part {
        let first = self.reads_of(slot).map_or(0, |reading| reading.first);
        let part = self.awaited_responses(slot);
        let expected = first.wrapping_add(part.offset);
        Part { message: sequence(psn, expected).wrapping_sub(first), ..part }
    }

    /// Into the loss recovery state with a response, or on in it.
    fn keep_response(&mut self, slot: usize, psn: Psn) {
        let slow = self.profile(slot).recovery.has_slow_path();
        let index = self.qps[slot].common.aside;
        let Some(reading) = &mut self.asides.get_mut(index).reading else { return };
        match &mut reading.onloaded {
            Some(onloaded) => onloaded.arrived(psn),
            None => {
                reading.onloaded = Onloaded::enter(&mut self.kept, Psn::new(reading.expected), psn);
                self.slow.entries += u64::from(slow);
            }
        }
    }

    fn ask_about_responses(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        let number = self.asides.get_mut(index).next_decision();
        let Some(reading) = self.reading(slot) else { return };
        let onloaded = reading.onloaded.as_mut();
        let Some(onloaded) = onloaded.filter(|onloaded| onloaded.waits() && !onloaded.is_out()) else {
            return;
        };
        let packets = onloaded.ask();
        reading.out = number;
        let token = self.token(slot, Purpose::ReadGap, number);
        self.defer(Deferral::Recovery { token, qpn: self.qps[slot].common.qpn, packets });
    }

    /// The slow path has filled the bitmap of responses.
    pub(crate) fn read_gap_resolved(&mut self, now: Instant, slot: usize, number: u32) {
        let Some(reading) = self.reading(slot) else { return };
        if reading.out != number || !reading.onloaded.as_ref().is_some_and(Onloaded::is_out) {
            return;
        }
        let before = reading.expected;
        self.responses_decided(now, slot);
        if self.reading(slot).is_some_and(|reading| reading.expected != before) {
            let header = self.response_acknowledgement(slot, ACK);
            let segment = self.control(slot, header);
            self.post(segment);
        }
        self.ask_about_responses(slot);
        self.arm(now, slot);
    }

    fn responses_decided(&mut self, now: Instant, slot: usize) {
        let index = self.qps[slot].common.aside;
        let Some(reading) = &mut self.asides.get_mut(index).reading else { return };
        let Some(onloaded) = &mut reading.onloaded else { return };
        if !onloaded.is_out() {
            onloaded.ask();
        }
        let mut done = SlowPath::default();
        let mut moved = onloaded.decide(&mut self.kept, &mut done);
        if let Some(exit) = onloaded.exit(moved) {
            moved = exit;
            done.exits = 1;
            if let Some(onloaded) = reading.onloaded.take() {
                onloaded.leave(&mut self.kept);
            }
        }
        let expected = sequence(moved, reading.expected);
        self.count_slow_path(slot, &done);
        self.responses_came(now, slot, expected);
    }

    /// All responses before `expected` have come: ends the READs that are complete.
    fn responses_came(&mut self, now: Instant, slot: usize, expected: u32) {
        let mtu = self.profile(slot).mtu;
        let Some(reading) = self.reading(slot) else { return };
        reading.expected = expected;
        let mut current = reading.current;
        let mut answered = None;
        while current != NONE {
            let work = self.sends.get_mut(current);
            if !work.has(flag::NUMBERED) {
                current = NONE;
            } else if work.kind != Kind::Read {
                current = work.next;
            } else if after(work.number().wrapping_add(packets_of(work, mtu)), expected) <= 0 {
                work.flags |= flag::ANSWERED;
                answered = Some(work.end);
                current = work.next;
            } else {
                break;
            }
        }
        if let Some(reading) = self.reading(slot) {
            reading.current = current;
        }
        if let Some(end) = answered {
            // A response acknowledges its request.
            let moved = self.acknowledge(now, slot, end).moved;
            self.pop_complete(slot);
            if moved {
                self.answered_for_pulls(now, slot);
            }
        }
        // Nothing more of the requests has arrived by it: a program that counts repeated acknowledgements would take each
        // response for one, and the third for a loss.
        self.answers(now, slot);
    }

    /// The answer to a response, which names it.
    fn acknowledge_response(&mut self, slot: usize, syndrome: u8, header: &Header, reaction: &mut Reaction) {
        let layout = self.profile(slot).layout;
        let mut answer = self.response_acknowledgement(slot, syndrome);
        set_drawn_by(&mut answer, layout, header.psn);
        answer.flags = answer.flags.with(self.lapse_flag(slot));
        if layout == Layout::Srnic {
            answer.set_request_position(header.request_position());
        }
        reaction.reply = Some(self.control(slot, answer));
    }

    fn response_acknowledgement(&mut self, slot: usize, syndrome: u8) -> Header {
        let peer = self.qps[slot].common.peer;
        let layout = self.profile(slot).layout;
        let mut header = Header::new(Opcode::READ_ACKNOWLEDGE, peer, Psn::new(0));
        let Some(reading) = self.reading(slot) else { return header };
        reading.unacknowledged = 0;
        let expected = Psn::new(reading.expected);
        header.psn = if syndrome == ACK { expected.minus(1) } else { expected };
        header.set_aeth(Aeth { syndrome, msn: 0 });
        if core::mem::take(&mut reading.marked) {
            header.flags = Flags::BECN;
        }
        let psn = header.psn;
        set_drawn_by(&mut header, layout, psn);
        if layout == Layout::Ndp {
            header.set_pull(Pull { expected, ..self.pull_words(slot) });
        }
        header
    }

    /// Takes requests before `upto` as arrived, past READs whose responses have not come; but nothing beyond an atomic
    /// without its result.
    #[cold]
    pub(crate) fn acknowledge_past_reads(&mut self, slot: usize, upto: u32, progress: &mut Progress) {
        let mtu = u32::from(self.profile(slot).mtu);
        let head = self.qps[slot].common.head;
        let mut index = self.search_from(slot, self.qps[slot].requester.una);
        while after(upto, self.qps[slot].requester.una) > 0 {
            let una = self.qps[slot].requester.una;
            let work = *self.sends.get(index);
            if after(work.end, una) <= 0 {
                index = work.next;
                continue;
            }
            let mut reach = if after(upto, work.end) < 0 { upto } else { work.end };
            match work.kind {
                Kind::Read => reach = work.end,
                Kind::FetchAdd | Kind::CompareSwap if work.has(flag::ANSWERED) => reach = work.end,
                Kind::FetchAdd | Kind::CompareSwap => {
                    progress.implies_loss = true;
                    let held = &mut self.aside(slot).held;
                    *held = Some(held.filter(|&held| after(held, upto) > 0).unwrap_or(upto));
                    break;
                }
                Kind::Send | Kind::Write | Kind::Datagram => {
                    let octets = |sequence: u32| {
                        if sequence == work.end {
                            work.length
                        } else {
                            sequence.wrapping_sub(work.first) * mtu
                        }
                    };
                    progress.octets += octets(reach) - octets(una);
                    progress.packets += reach.wrapping_sub(una);
                }
            }
            progress.moved = true;
            self.qps[slot].requester.una = reach;
        }
        self.pop_complete(slot);
        let is_read = self.sends.find(head).is_some_and(|work| work.kind == Kind::Read);
        let waits = is_read && self.qps[slot].common.head == head;
        if let Some(reading) = self.reading(slot).filter(|_| waits) {
            reading.reached = index;
        }
    }

    /// A request at or before the one with sequence `at`, which is outstanding: where the search for that begins.
    pub(crate) fn search_from(&self, slot: usize, at: u32) -> u32 {
        let reached = self.reads_of(slot).map_or(NONE, |reading| reading.reached);
        let is_before = reached != NONE && after(at, self.sends.get(reached).first) >= 0;
        if is_before { reached } else { self.qps[slot].common.head }
    }

    /// The oldest request was a READ, and has left its queue: others may follow it.
    #[cold]
    pub(crate) fn forget_reached(&mut self, slot: usize) {
        if let Some(reading) = self.reading(slot) {
            reading.reached = NONE;
        }
    }

    /// Ends the requests at the head that are complete.
    pub(crate) fn pop_complete(&mut self, slot: usize) {
        loop {
            let head = self.qps[slot].common.head;
            if head == NONE {
                return;
            }
            let work = self.sends.get(head);
            let is_read = work.kind == Kind::Read;
            let waits = is_read && !work.has(flag::ANSWERED);
            if !work.has(flag::NUMBERED) || after(work.end, self.qps[slot].requester.una) > 0 || waits {
                return;
            }
            let original = if work.kind.is_read_or_atomic() && !is_read { work.address } else { 0 };
            self.complete(slot, original);
        }
    }

    /// The result of the atomic with sequence `at`. One that comes before the result of an earlier atomic tells that this one is
    /// lost, and is kept: were it dropped, it would have to be asked for as well, and by then the next one would have come too early.
    pub(crate) fn on_separate_result(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        at: u32,
    ) -> Result<(), Refusal> {
        let mut index = self.search_from(slot, at);
        while index != NONE && after(self.sends.get(index).end, at) <= 0 {
            index = self.sends.get(index).next;
        }
        if index == NONE || !matches!(self.sends.get(index).kind, Kind::FetchAdd | Kind::CompareSwap) {
            return Err(Refusal::UnexpectedResponse);
        }
        let work = self.sends.get_mut(index);
        if work.has(flag::ANSWERED) {
            return Err(self.came_before(now, slot, arrival.header));
        }
        // Its request may have to be sent again all the same, so that what it asks for stays as it is.
        (work.flags, work.address) = (work.flags | flag::ANSWERED, arrival.header.atomic_ack());
        self.hear_credits_with(slot, arrival.header);
        let mut progress = self.acknowledge(now, slot, at.wrapping_add(1));
        if progress.implies_loss {
            progress.names = true;
            self.acknowledged(now, slot, arrival, Class::NACK, progress);
            // Who counts what comes behind a loss would take the result for lost once more.
            if !self.profile(slot).recovery.owns_window() {
                self.came_out_of_order(now, slot, arrival.header.psn);
            }
            return Ok(());
        }
        let index = self.qps[slot].common.aside;
        if index != NONE
            && let Some(upto) = self.asides.get_mut(index).held.take()
        {
            // What had to wait for the result. Nobody need say again that a READ arrived whose responses have come.
            let (una, octets, packets) = (self.qps[slot].requester.una, progress.octets, progress.packets);
            self.acknowledge_past_reads(slot, upto, &mut progress);
            if self.qps[slot].requester.una != una {
                let more = progress.octets - octets;
                let told = self.take_told(slot, more);
                self.advanced(now, slot, more, progress.packets - packets);
                progress.octets -= told;
            }
        }
        self.acknowledged(now, slot, arrival, Class::ACK, progress);
        Ok(())
    }

    /// Whether the READ whose request has sequence `at` waits for its responses.
    pub(crate) fn awaits_responses(&self, slot: usize, at: u32) -> bool {
        let mut index = self.qps[slot].common.head;
        while index != NONE && self.sends.get(index).has(flag::NUMBERED) {
            let work = self.sends.get(index);
            if work.first == at {
                return work.kind == Kind::Read && !work.has(flag::ANSWERED);
            }
            index = work.next;
        }
        false
    }

    /// An acknowledgement that moved nothing: the responder is there, and it may say that a packet behind a gap came.
    #[cold]
    pub(crate) fn heard_again(&mut self, now: Instant, slot: usize, header: &Header) {
        let profile = *self.profile(slot);
        if !profile.separate_reads() {
            return;
        }
        if self.waits_for_responses(slot) {
            self.qps[slot].requester.retries = profile.retry;
        }
        if !profile.recovery.owns_window() {
            self.came_out_of_order(now, slot, drawn_by(header, profile.layout));
        }
    }

    /// Whether all requests are acknowledged and only READ responses are waited for.
    pub(crate) fn waits_for_responses(&self, slot: usize) -> bool {
        let requester = &self.qps[slot].requester;
        requester.una == requester.high && requester.reads > 0
    }

    /// No response came for long: asks whether the responder is still there, by the oldest READ's request.
    pub(crate) fn probe(&mut self, slot: usize) {
        let common = &self.qps[slot].common;
        let work = self.sends.get(common.head);
        if work.kind != Kind::Read {
            return;
        }
        let mut header = Header::new(Opcode::READ_REQUEST, common.peer, Psn::new(work.first));
        header.set_reth(Reth { va: work.va, rkey: work.rkey, length: work.length });
        header.flags = Flags::ACK_REQUEST;
        if self.profile(slot).layout == Layout::Srnic {
            header.set_request_position(work.position(0));
        }
        let segment = self.control(slot, header);
        self.post(segment);
    }

    /// The sequence of the next response expected, if any ever was.
    pub(crate) fn next_response(&self, slot: usize) -> Option<u32> {
        self.reads_of(slot).map(|reading| reading.expected)
    }

    /// Responses that have arrived in order.
    pub(crate) fn responses_in_order(&self, slot: usize) -> u32 {
        self.reads_of(slot).map_or(0, |reading| reading.expected.wrapping_sub(reading.first))
    }

    /// The queue pair has failed: nothing is read any more, and what was stays known.
    pub(crate) fn stop_reading(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        if let Some(reading) = &mut self.asides.get_mut(index).reading {
            (reading.current, reading.end) = (NONE, reading.expected);
            reading.reached = NONE;
            if let Some(onloaded) = reading.onloaded.take() {
                onloaded.leave(&mut self.kept);
            }
        }
    }

    /// Forgets the READs.
    pub(crate) fn end_reading(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        if let Some(reading) = self.asides.get_mut(index).reading.take()
            && let Some(onloaded) = reading.onloaded
        {
            onloaded.leave(&mut self.kept);
        }
    }
}
