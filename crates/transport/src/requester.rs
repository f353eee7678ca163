//! The requester: requests become packets, responses complete them, and what is lost is sent again.

mod timing;

pub(crate) use timing::PutOffs;

use crate::arrival::{Arrival, Reaction, Refusal};
use crate::aside::Step;
use crate::delivery::program::Event as Loss;
use crate::engine::Engine;
use crate::opcodes::opcodes;
use crate::qp::{Notes, Profile, Qp, Requester, Standing, after, sequence};
use crate::queue::{Kind, NONE, SendWork, flag};
use crate::segment::{Segment, Source};
use crate::transmit::Plan;
use crate::work::{Completion, Status, Tail};
use roci_control::{Class, Credit, Words};
use roci_units::{Instant, Psn, Qpn};
use roci_wire::layout::irn::SendPosition;
use roci_wire::{AtomicEth, Deth, Flags, Header, Layout, NakCode, Opcode, Reth, Syndrome, rnr_delay};

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Octets newly acknowledged.
    pub(crate) octets: u32,
    /// Packets of WRITEs and SENDs newly acknowledged.
    pub(crate) packets: u32,
    /// Whether it moved anything.
    pub(crate) moved: bool,
    /// Whether it reaches beyond a READ or atomic whose response is missing.
    pub(crate) implies_loss: bool,
    /// It is about the packet that it names, and not about the last one before the window's start: something is missing.
    pub(crate) names: bool,
}

impl Progress {
    /// Whether it brought nothing, and tells of no loss either.
    const fn is_none(self) -> bool {
        !self.moved && self.octets == 0 && !self.implies_loss
    }
}

/// What is kept of a request while one of its segments is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    work: SendWork,
    /// Whether the segment ends the message.
    last: bool,
    /// The flags of the segment's last packet.
    last_flags: Flags,
}

/// Whether no full packet may follow those of `plan`, which go on to `end`: what shuts a window opens with an answer only,
/// so that one has to be asked for.
#[inline]
fn shuts(requester: &Requester, profile: &Profile, plan: &Plan, end: u32) -> bool {
    if !plan.fresh {
        // What is sent again counts from the first packet that is missing.
        let packets = requester.window / u32::from(profile.mtu);
        return requester.window != Credit::UNLIMITED && end.wrapping_sub(requester.una) >= packets.max(1);
    }
    let in_flight = requester.in_flight.saturating_add(plan.length);
    u32::from(requester.staged) <= u32::from(plan.packets)
        && in_flight.saturating_add(profile.mtu.into()) > requester.window
        || end.wrapping_sub(requester.una) >= profile.max_in_flight
}

impl Engine {
    /// Accounts for the packets that were planned as sent, and keeps what is needed to make them: their request may
    /// end with this.
    #[inline(always)]
    pub(crate) fn advance_request(&mut self, now: Instant, slot: usize, plan: &Plan) -> Draft {
        let wants_answer =
            self.qps[slot].requester.notes.has(Notes::RECOVERING) && self.wants_answer(slot, plan);
        let Qp { requester, common, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let work = *self.sends.get(plan.work);
        let end = match work.kind {
            Kind::Read => work.end,
            _ => plan.at.wrapping_add(u32::from(plan.packets)),
        };
        let last = end == work.end;
        requester.unasked = requester.unasked.saturating_add(u8::try_from(plan.packets).unwrap_or(u8::MAX));
        let mut last_flags = Flags::NONE;
        let due = requester.unasked >= common.asks_every
            || self.flights.as_ref().is_some_and(|flights| flights.asks(slot, plan.packets.into()));
        if last || wants_answer || due || shuts(requester, profile, plan, end) {
            last_flags = Flags::ACK_REQUEST;
            requester.unasked = 0;
        }
        if last && work.has(flag::SOLICITED) {
            last_flags = last_flags.with(Flags::SOLICITED);
        }
        let pulled = profile.layout == Layout::Ndp;
        let mut draft = Draft { work, last, last_flags };
        if !plan.fresh {
            self.time_request(now, slot);
            self.resent(slot, plan.at, end);
            self.aside(slot).retransmitted += u32::from(plan.packets);
            if self.flights.is_some() {
                self.fly_again(now, slot, plan.packets.into());
            }
            if pulled {
                draft.last_flags = draft.last_flags.with(self.drained(slot));
            }
            return draft;
        }
        requester.high = end;
        if last {
            requester.current = work.next;
        }
        requester.staged = requester.staged.saturating_sub(u8::try_from(plan.packets).unwrap_or(u8::MAX));
        requester.in_flight = requester.in_flight.saturating_add(plan.length);
        if work.kind.is_read_or_atomic() {
            requester.reads += 1;
            if let Some(rooms) = &mut self.read_rooms {
                rooms.sent(slot);
            }
        }
        if let Some(flights) = &mut self.flights
            && !work.has(flag::LEAVES)
        {
            flights.sent(slot, plan.packets.into());
        }
        if work.has(flag::LEAVES) {
            draft.last_flags = draft.last_flags.without(Flags::ACK_REQUEST);
            requester.una = end;
            requester.in_flight = 0;
            if last {
                self.leave(now, slot, &work);
            }
        } else {
            self.time_request(now, slot);
        }
        if work.kind == Kind::Read && self.agent.is_some() {
            self.tell_agent_of_read(now, slot);
        }
        if pulled {
            draft.last_flags = draft.last_flags.with(self.drained(slot));
        }
        draft
    }

    /// The oldest request ends with its last packet, which leaves now.
    #[inline(never)]
    fn leave(&mut self, now: Instant, slot: usize, work: &SendWork) {
        self.pop_work(slot);
        if work.has(flag::SIGNALED) {
            let qpn = self.qps[slot].common.qpn;
            self.tell(done(work.id, qpn, work.kind, work.length));
            // Nothing may come any more upon which the caller would ask for completions: it is called at once.
            self.set_deadline(slot, now);
        }
    }

    /// Makes the packets that were planned.
    #[inline(always)]
    pub(crate) fn request(&self, slot: usize, plan: &Plan, draft: &Draft, words: Option<Words>) -> Segment {
        let common = &self.qps[slot].common;
        let profile = &self.profiles[usize::from(common.profile)];
        let work = &draft.work;
        let at = plan.at.wrapping_sub(work.first);
        let lone = profile.is_lone(work);
        let (opcode, last_opcode) = opcodes(work, at == 0, draft.last, plan.packets, lone);
        let (opcode, last_opcode) = (profile.service.opcode(opcode), profile.service.opcode(last_opcode));
        let offset = at * u32::from(profile.mtu);
        let mut header = Header::new(opcode, common.peer, Psn::new(plan.at));
        header.payload = payload_of(plan.length, profile.mtu);
        if plan.packets == 1 {
            header.flags = draft.last_flags;
        }
        let mut path = common.path;
        let mut source = Source { address: work.address.wrapping_add(u64::from(offset)), lkey: work.lkey };
        match work.kind {
            Kind::Send => header.set_immediate(work.immediate),
            Kind::Write | Kind::Read => {
                header.set_reth(Reth {
                    va: work.va.wrapping_add(u64::from(offset)),
                    rkey: work.rkey,
                    length: if lone { header.payload.into() } else { work.length - offset },
                });
                header.set_immediate(work.immediate);
            }
            Kind::FetchAdd | Kind::CompareSwap => {
                let compare = if work.kind == Kind::CompareSwap { work.compare() } else { 0 };
                let swap_or_add = work.operand;
                header.set_atomic(AtomicEth { va: work.va, rkey: work.rkey, swap_or_add, compare });
            }
            Kind::Datagram => {
                path = work.va;
                header.dest_qpn = work.datagram_qpn();
                header.set_immediate(work.immediate);
                header.set_deth(Deth { q_key: work.rkey, source_qpn: common.qpn });
            }
        }
        if work.kind.is_read_or_atomic() {
            source = Source::default();
        }
        match profile.layout {
            Layout::Irn | Layout::Ndp if work.consumes_receive() => {
                header.set_send_position(SendPosition { ssn: work.number(), offset });
            }
            Layout::Srnic if matches!(work.kind, Kind::Send | Kind::Write | Kind::Read) => {
                header.set_request_position(work.position(at));
            }
            _ => {}
        }
        if profile.layout == Layout::Ndp {
            header.set_source_qpn(common.qpn);
        }
        Segment {
            header,
            last_opcode,
            last_flags: draft.last_flags,
            path,
            source,
            length: plan.length,
            packets: plan.packets,
            mtu: profile.mtu,
            priority: match profile.layout {
                Layout::Homa if !plan.fresh => self.message_priority_again(slot, plan, work),
                _ => self.qps[slot].requester.priority,
            },
            ecn_capable: true,
            retransmission: !plan.fresh,
            layout: profile.layout,
            each_placed: lone || !matches!(profile.layout, Layout::Standard | Layout::Cc(_)),
            words: match profile.layout {
                Layout::Homa => self.data_words(slot, plan, work),
                _ => self.lay_out_words(slot, words, false),
            },
        }
    }

    /// A packet from the responder.
    #[inline]
    pub(crate) fn on_response(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        match header.opcode {
            Opcode::ACKNOWLEDGE => self.on_acknowledge(now, slot, arrival),
            Opcode::ATOMIC_ACKNOWLEDGE => self.on_atomic_result(now, slot, arrival),
            _ => self.on_read_response(now, slot, arrival, reaction),
        }
    }

    #[inline]
    fn on_acknowledge(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        let header = arrival.header;
        let requester = &self.qps[slot].requester;
        let at = sequence(header.psn, requester.una);
        if after(at, requester.high) >= 0 {
            // A responder may refuse the next packet only after it was sent.
            return Err(Refusal::UnexpectedResponse);
        }
        let aeth = header.aeth();
        let syndrome = Syndrome::from_u8(aeth.syndrome).ok_or(Refusal::UnexpectedResponse)?;
        match syndrome {
            Syndrome::Ack { .. } | Syndrome::Nak(NakCode::PsnSequenceError)
                if self.profile(slot).layout == Layout::Ndp =>
            {
                self.on_pull(now, slot, arrival)
            }
            Syndrome::Ack { credits } => {
                let is_news = self.hear_credits(slot, aeth, credits);
                let upto = at.wrapping_add(1);
                let names = self.qps[slot].requester.notes.has(Notes::RECOVERING);
                let mut progress = self.acknowledge(now, slot, upto);
                progress.names = names;
                if self.qps[slot].requester.notes.has(Notes::RECOVERING) {
                    let profile = self.profile(slot);
                    let drawn_by = drawn_by(header, profile.layout);
                    if self.hears(slot, Class::ACK) && (profile.recovery.owns_window() || !progress.moved) {
                        progress.octets += self.take_news(slot, drawn_by, false).unwrap_or(0);
                    }
                    // What tells of receive requests is no sign of a packet that has left the network.
                    self.acknowledged_again(now, slot, upto, drawn_by, progress.moved || is_news);
                }
                if !progress.moved {
                    self.heard_again(now, slot, header);
                }
                let is_word = is_news && progress.is_none() && !header.flags.has(Flags::BECN);
                if is_word {
                    // It tells of receive requests alone. The time that it echoes is an old one, and says nothing of the path.
                    self.arm(now, slot);
                } else {
                    self.acknowledged(now, slot, arrival, Class::ACK, progress);
                }
                Ok(())
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => self.on_nak(now, slot, at, arrival),
            _ if after(at, requester.una) < 0 && !self.awaits_responses(slot, at) => Err(Refusal::Duplicate),
            Syndrome::RnrNak { timer } => {
                // The wait that it asks for is on: the packet or the answer was doubled on its way.
                let waits = self.qps[slot].requester.standing.has(Standing::RNR_WAIT);
                if waits && self.aside(slot).named == Some(at) {
                    return Err(Refusal::Duplicate);
                }
                let progress = self.acknowledge(now, slot, at);
                self.aside(slot).rnr += 1;
                self.aside(slot).named = Some(at);
                if self.profile(slot).rnr_retry < 7 {
                    let requester = &mut self.qps[slot].requester;
                    if requester.rnr_retries == 0 {
                        self.fail_at(now, slot, at, Status::RnrRetryCounterExceeded);
                        return Ok(());
                    }
                    requester.rnr_retries -= 1;
                }
                // A READ or atomic before it may still want its response, and is sent again as well then.
                let cumulative = Psn::new(self.qps[slot].requester.una);
                self.lost(now, slot, Loss::Nack { cumulative, trigger: None });
                self.qps[slot].requester.standing.set(Standing::RNR_WAIT);
                self.force_deadline(slot, now + rnr_delay(timer));
                self.land(now, slot, 0);
                self.lose_flight(now, slot, u32::MAX);
                self.acknowledged(now, slot, arrival, Class::RNR, progress);
                Ok(())
            }
            Syndrome::Nak(code) => {
                self.acknowledge(now, slot, at);
                self.fail_at(now, slot, at, status_of(code));
                Ok(())
            }
        }
    }

    /// The responder has refused the packet at `at`, and answers nothing any more: the request that the packet belongs to
    /// ends with `status`. A READ or atomic before it whose response was lost will never hear it, and ends as flushed, in
    /// its turn; so does what follows.
    #[cold]
    fn fail_at(&mut self, now: Instant, slot: usize, at: u32, status: Status) {
        let head = self.qps[slot].common.head;
        let mut guilty = head;
        while guilty != NONE {
            let work = self.sends.get(guilty);
            if after(at, work.end) < 0 {
                break;
            }
            guilty = work.next;
        }
        self.fail_by(now, slot, if guilty == NONE { head } else { guilty }, status);
    }

    /// A NAK for a sequence: all before `at` arrived, the packet at `at` did not.
    fn on_nak(&mut self, now: Instant, slot: usize, at: u32, arrival: &Arrival<'_>) -> Result<(), Refusal> {
        let profile = self.profile(slot);
        // In layout `homa` a NAK has no words: it is for packets that are not kept.
        let names = profile.recovery.keeps_out_of_order()
            && !profile.recovery.owns_window()
            && profile.layout != Layout::Homa;
        let trigger = names.then(|| drawn_by(arrival.header, profile.layout));
        let trigger = trigger.filter(|&trigger| trigger != arrival.header.psn);
        let una = self.qps[slot].requester.una;
        // What a slow path says of what is missing may be old, but the packet that drew it did arrive.
        let is_old = after(at, una) < 0;
        if is_old && trigger.is_none_or(|trigger| after(sequence(trigger, una), una) <= 0) {
            return Err(Refusal::Duplicate);
        }
        // To go-back-N a NAK says that all from here is to be sent again, once: a responder sends one for a gap.
        let again = !profile.recovery.keeps_out_of_order();
        if again && self.aside(slot).named == Some(at) {
            return Err(Refusal::Duplicate);
        }
        let mut progress = self.acknowledge(now, slot, at);
        self.aside(slot).naks += 1;
        let stands = self.state(slot).sends() && (self.qps[slot].requester.una == at || is_old);
        let mut class = Class::NACK;
        progress.names = true;
        if names && self.hears(slot, Class::ACK) {
            let news = trigger.filter(|_| stands).and_then(|trigger| self.take_news(slot, trigger, true));
            progress.octets += news.unwrap_or(0);
            // It acknowledges the packet that drew it, which is what a law that hears nothing else of NAKs waits for.
            if !self.hears(slot, Class::NACK) && (news.is_some() || progress.octets > 0) {
                class = Class::ACK;
            }
        }
        self.acknowledged(now, slot, arrival, class, progress);
        if !stands || !self.state(slot).sends() {
            // The NAK is beyond a READ whose response is missing, which has been asked for again.
            return Ok(());
        }
        if again {
            self.aside(slot).named = Some(at);
            if !self.spend_retry(now, slot) {
                return Ok(());
            }
        }
        self.lost(now, slot, Loss::Nack { cumulative: arrival.header.psn, trigger });
        Ok(())
    }

    /// Tells the law of an acknowledgement and lets what it freed be sent.
    #[inline]
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        class: Class,
        progress: Progress,
    ) {
        if progress.implies_loss {
            self.ask_again(now, slot);
        }
        if self.hears(slot, class) {
            let is_pulled = self.profile(slot).layout == Layout::Ndp;
            let mut event = self.answer_event(now, slot, arrival, class, progress);
            if is_pulled {
                event = self.pulled_event(slot, arrival.header, event);
            }
            self.tell_law(now, slot, &event);
        }
        self.arm(now, slot);
    }

    /// Takes all before `upto` as arrived, but nothing beyond a READ or atomic whose response has not come.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Instant, slot: usize, upto: u32) -> Progress {
        self.hear(slot);
        let mut progress = Progress::default();
        let mtu = u32::from(self.profile(slot).mtu);
        while after(upto, self.qps[slot].requester.una) > 0 {
            let una = self.qps[slot].requester.una;
            let work = self.sends.get(self.qps[slot].common.head);
            if work.kind.is_read_or_atomic() {
                if self.profile(slot).separate_reads() {
                    self.acknowledge_past_reads(slot, upto, &mut progress);
                } else {
                    progress.implies_loss = true;
                }
                break;
            }
            let reach = if after(upto, work.end) < 0 { upto } else { work.end };
            let before = una.wrapping_sub(work.first) * mtu;
            let complete = reach == work.end;
            let to = if complete { work.length } else { reach.wrapping_sub(work.first) * mtu };
            progress.octets += to - before;
            progress.packets += reach.wrapping_sub(una);
            progress.moved = true;
            self.qps[slot].requester.una = reach;
            if complete {
                self.complete(slot, 0);
            }
        }
        if progress.moved {
            // With progress a loss may be over, and then nobody knows.
            let told = self.take_told(slot, progress.octets);
            self.advanced(now, slot, progress.octets, progress.packets);
            progress.octets -= told;
        }
        progress
    }

    /// What progress brings with it: the cursor is never behind it, the counters and the timer start again.
    #[inline]
    pub(crate) fn advanced(&mut self, now: Instant, slot: usize, octets: u32, packets: u32) {
        let requester = &mut self.qps[slot].requester;
        requester.in_flight = requester.in_flight.saturating_sub(octets);
        self.land(now, slot, packets);
        self.answers(now, slot);
        if self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            // The program says whether the timer starts again.
            self.recovery_advanced(now, slot);
        }
    }

    /// Ends the oldest request with success.
    #[inline]
    pub(crate) fn complete(&mut self, slot: usize, original: u64) {
        let work = *self.sends.get(self.qps[slot].common.head);
        self.pop_work(slot);
        if work.kind.is_read_or_atomic() {
            self.qps[slot].requester.reads -= 1;
            self.land_answered(slot);
            if work.kind == Kind::Read && self.profile(slot).separate_reads() {
                self.forget_reached(slot);
            }
            if self.read_rooms.is_some() && work.kind == Kind::Read && !self.has_left_room(slot, &work) {
                self.leave_read_rooms(slot, Some(work.length));
            }
        }
        if work.has(flag::SIGNALED) {
            let qpn = self.qps[slot].common.qpn;
            let completion = Completion { original, ..done(work.id, qpn, work.kind, work.octets()) };
            self.tell_sender(slot, completion);
        }
    }

    /// Takes the oldest request off its queue.
    #[inline]
    fn pop_work(&mut self, slot: usize) {
        let common = &mut self.qps[slot].common;
        let index = common.head;
        let next = self.sends.get(index).next;
        common.head = next;
        if next == NONE {
            common.tail = NONE;
        }
        if self.qps[slot].requester.current == index {
            self.qps[slot].requester.current = next;
        }
        self.forget_hint(slot, index);
        self.sends.remove(index);
    }

    /// Tells the application of the end of a send request, after placements that came before it.
    #[inline]
    pub(crate) fn tell_sender(&mut self, slot: usize, completion: Completion) {
        let index = self.qps[slot].common.aside;
        if index != NONE && !self.asides.get_mut(index).outbound.is_empty() {
            self.asides.get_mut(index).outbound.push(Step::Completion(completion));
        } else {
            self.tell(completion);
        }
    }
}

/// The completion of a request that was carried out.
fn done(id: u64, qpn: Qpn, kind: Kind, length: u32) -> Completion {
    Completion {
        id,
        qpn,
        kind: kind.completion(),
        status: Status::Success,
        length,
        tail: Tail::Plain,
        solicited: false,
        original: 0,
        source: None,
    }
}

/// The requester's name for the responder's refusal (IBTA Vol 1 §9.9.2.1).
const fn status_of(code: NakCode) -> Status {
    match code {
        NakCode::RemoteAccessError => Status::RemoteAccessError,
        NakCode::RemoteOperationalError => Status::RemoteOperationError,
        NakCode::PsnSequenceError | NakCode::InvalidRequest | NakCode::InvalidRdRequest => {
            Status::RemoteInvalidRequestError
        }
    }
}

/// The packet that drew an acknowledgement; in layout `homa` that is not said, and the last that it acknowledges stands for it.
pub(crate) const fn drawn_by(header: &Header, layout: Layout) -> Psn {
    match layout {
        Layout::Srnic => header.echoed_psn(),
        Layout::Ndp | Layout::Homa => header.psn,
        _ => header.trigger(),
    }
}

/// Names the packet that draws an acknowledgement. In layout `ndp` there are no words for that: they say what is pulled, and
/// the BTH names the packet. Who answers a request there names it himself.
#[inline]
pub(crate) const fn set_drawn_by(header: &mut Header, layout: Layout, psn: Psn) {
    match layout {
        Layout::Srnic => header.set_echoed_psn(psn),
        Layout::Homa => {}
        Layout::Ndp if header.opcode.0 == Opcode::ACKNOWLEDGE.0 => {}
        Layout::Ndp => header.psn = psn,
        _ => header.set_trigger(psn),
    }
}

/// Octets of payload in the first packet of a run.
#[inline]
pub(crate) fn payload_of(length: u32, mtu: u16) -> u16 {
    if length >= u32::from(mtu) { mtu } else { u16::try_from(length).unwrap_or(mtu) }
}
