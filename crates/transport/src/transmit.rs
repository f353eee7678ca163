//! Sending: whose turn it is, what its next segment is, and what is settled when it goes.
//!
//! A queue pair's segment ring is not stored: its entries follow from the work requests and their sequence numbers.
//! What is kept is its fill, the number of packets that the window has let through and that wait for the pacer or
//! the law. They are sent whatever becomes of the window, and in their order; a retransmission goes before them.

use crate::config::Service;
use crate::engine::{Engine, TIMER_SEND};
use crate::incidents::goes_on;
use crate::opcodes::request_opcodes;
use crate::qp::{BLOCKED, Facts, Notes, Qp, Standing};
use crate::queue::{Kind, NONE, flag};
use crate::segment::{Grant, Offer, Segment, Until};
use crate::state::QpState;
use crate::timer::TimerId;
use roci_control::{Class, Credit, Verdict, Words};
use roci_units::{Instant, Qpn};
use roci_wire::{IpVersion, Layout, Opcode, WIRE_OVERHEAD, frame_len};

/// Priorities of which none is paused.
const ALL_OPEN: u8 = 0xff;

/// The next segment of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether it is a READ response, not a request.
    pub(crate) response: bool,
    /// The send request that it belongs to.
    pub(crate) work: u32,
    /// Sequence of its first packet.
    pub(crate) at: u32,
    /// Packets of the run.
    pub(crate) packets: u16,
    /// Octets of payload.
    pub(crate) length: u32,
    /// Whether it has never been sent.
    pub(crate) fresh: bool,
}

impl Plan {
    /// To be filled in.
    const NONE: Self = Self { response: false, work: NONE, at: 0, packets: 0, length: 0, fresh: true };
}

impl Engine {
    /// Takes the next packet that is to be sent now, with the law run by the engine itself.
    #[inline]
    pub fn transmit(&mut self, now: Instant) -> Option<Segment> {
        self.transmit_open(now, ALL_OPEN)
    }

    /// Takes the next packet whose priority is in `open_priorities` (bit p: priority p is not paused).
    #[inline]
    pub fn transmit_open(&mut self, now: Instant, open_priorities: u8) -> Option<Segment> {
        let Some(mut place) = self.schedule.turn(open_priorities) else {
            let mut place = self.turn_from_line(now, open_priorities)?;
            return self.transmit_planned(now, open_priorities, &mut place);
        };
        let Some(segment) = self.stream(now, place as usize) else {
            return self.transmit_planned(now, open_priorities, &mut place);
        };
        self.streamed(now, place as usize);
        Some(segment)
    }

    /// The same, but hands the packet to `quick` or `take` with `world` and its queue pair's [place](Self::place_of), and gives
    /// back the answer. Whoever takes a segment apart at once does well to do it there: the commonest one, which is for `quick`,
    /// is then never written to memory. They do the same; a single function called at two places would stand apart from both.
    #[inline]
    pub fn transmit_with<W: ?Sized, R>(
        &mut self,
        now: Instant,
        open_priorities: u8,
        world: &mut W,
        quick: impl FnOnce(&mut W, &Segment, usize) -> R,
        take: impl FnOnce(&mut W, &Segment, usize) -> R,
    ) -> Option<R> {
        let mut place = match self.schedule.turn(open_priorities) {
            None => self.turn_from_line(now, open_priorities)?,
            Some(place) => {
                if let Some(segment) = self.stream(now, place as usize) {
                    let answer = quick(world, &segment, place as usize);
                    self.streamed(now, place as usize);
                    return Some(answer);
                }
                place
            }
        };
        let segment = self.transmit_planned(now, open_priorities, &mut place)?;
        Some(take(world, &segment, place as usize))
    }

    /// The long way: the turn is that of `place`, and then of others, which are put there, until one of them has something to send.
    #[inline(never)]
    fn transmit_planned(&mut self, now: Instant, open_priorities: u8, place: &mut u32) -> Option<Segment> {
        loop {
            let slot = *place as usize;
            let mut plan = Plan::NONE;
            if !self.plan(now, slot, 1, &mut plan) {
                self.schedule.remove(*place);
                self.end_flight_turn(slot);
            } else if self.grants_at_once(slot) {
                return self.send(now, slot, &plan, &Grant::Engine);
            } else if let Some(segment) = self.send_if_granted(now, slot, &plan, &Grant::Engine) {
                return Some(segment);
            } else {
                self.relist(now, slot);
            }
            let turn = self.schedule.turn(open_priorities);
            *place = turn.or_else(|| self.turn_from_line(now, open_priorities))?;
        }
    }

    /// Whether no law is asked before a packet goes.
    #[inline]
    fn grants_at_once(&self, slot: usize) -> bool {
        !self.hears(slot, Class::TRANSMIT)
    }

    /// The way of queue pairs whose law is asked, kept apart from the quick one.
    #[inline(never)]
    fn send_if_granted(&mut self, now: Instant, slot: usize, plan: &Plan, grant: &Grant) -> Option<Segment> {
        self.send(now, slot, plan, grant)
    }

    /// Offers the head of the next queue pair's ring: a run of packets of one message, of at most `quantum_octets`
    /// of payload but at least one packet. Settle it with [`commit`](Self::commit) or [`decline`](Self::decline), at
    /// any later time.
    #[inline]
    pub fn offer(&mut self, now: Instant, quantum_octets: u32) -> Option<Offer> {
        self.offer_open(now, quantum_octets, ALL_OPEN)
    }

    /// The same among the priorities in `open_priorities`.
    pub fn offer_open(&mut self, now: Instant, quantum_octets: u32, open_priorities: u8) -> Option<Offer> {
        loop {
            let turn = self.schedule.take(open_priorities);
            let slot = turn.or_else(|| self.take_from_line(now, open_priorities))? as usize;
            if let Some(offer) = self.offer_slot(now, slot, quantum_octets) {
                return Some(offer);
            }
        }
    }

    /// Offers what queue pair `qpn` sends next, out of its turn: for a NIC that serves several requests of a queue
    /// pair in one turn (SRNIC §4.3.1). `None` where it has nothing that may go now.
    pub fn offer_more(&mut self, now: Instant, qpn: Qpn, quantum_octets: u32) -> Option<Offer> {
        let slot = self.place(qpn)?;
        if !self.may_send(now, slot) {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.schedule.remove(slot as u32);
        self.offer_slot(now, slot, quantum_octets)
    }

    /// How many send requests of `qpn` are not yet sent whole, counted up to `most`: what a NIC finds in a send queue.
    pub fn requests_waiting(&self, qpn: Qpn, most: u32) -> u32 {
        let Some(slot) = self.place(qpn) else { return 0 };
        let (mut index, mut count) = (self.qps[slot].requester.current, 0);
        while index != NONE && count < most {
            index = self.sends.get(index).next;
            count += 1;
        }
        count
    }

    fn offer_slot(&mut self, now: Instant, slot: usize, quantum_octets: u32) -> Option<Offer> {
        let mut plan = Plan::NONE;
        let quantum = self.paced_quantum(slot, quantum_octets);
        if !self.plan(now, slot, quantum, &mut plan) {
            self.end_flight_turn(slot);
            return None;
        }
        let wants_law = self.profile(slot).deferred.law && self.hears(slot, Class::TRANSMIT);
        if wants_law {
            self.own_law(slot);
        }
        let Qp { requester, common, .. } = &mut self.qps[slot];
        requester.standing.set(Standing::OFFERED);
        Some(Offer {
            qpn: common.qpn,
            length: plan.length,
            packets: plan.packets,
            priority: requester.priority,
            retransmission: !plan.fresh,
            response: plan.response,
            wants_law,
        })
    }

    /// What of `quantum` octets a paced queue pair is offered at once.
    #[inline]
    fn paced_quantum(&self, slot: usize, quantum: u32) -> u32 {
        let rate = self.qps[slot].requester.pacer.rate_kbps();
        let run = self.config.paced_run;
        if rate == Credit::UNLIMITED || run.is_zero() {
            return quantum;
        }
        // kb/s times ps is 8·10⁹ times as many octets.
        let octets = u128::from(rate) * u128::from(run.as_ps()) / 8_000_000_000;
        u32::try_from(octets).map_or(quantum, |octets| octets.clamp(1, quantum.max(1)))
    }

    /// Takes what was offered. `None` where nothing is left of it: it was acknowledged meanwhile, the queue pair is
    /// gone or failed, or its law refused (LoopBack), which parks the queue pair.
    ///
    /// Where an arrival moved the head meanwhile, what is taken is the head as it now stands, never longer than the
    /// offer.
    pub fn commit(&mut self, now: Instant, offer: Offer, grant: Grant) -> Option<Segment> {
        let Some(slot) = self.withdraw(offer) else {
            self.give_law_back(offer);
            return None;
        };
        let mut refused = false;
        if let Grant::Law(outcome) = &grant {
            refused = self.settle_law(now, slot, offer.length, outcome) != Verdict::Proceed;
        }
        let segment = if refused { None } else { self.settle(now, slot, &offer, &grant) };
        if offer.wants_law {
            self.release_law(slot);
        }
        self.arm(now, slot);
        segment
    }

    fn settle(&mut self, now: Instant, slot: usize, offer: &Offer, grant: &Grant) -> Option<Segment> {
        let mtu = u32::from(self.profile(slot).mtu);
        if offer.packets == 1
            && offer.length == mtu
            && matches!(grant, Grant::Engine)
            && let Some(segment) = self.stream(now, slot)
        {
            self.streamed(now, slot);
            return Some(segment);
        }
        let quantum = u32::from(offer.packets) * mtu;
        let mut plan = Plan::NONE;
        if !self.plan(now, slot, quantum, &mut plan) || plan.length > offer.length {
            return None;
        }
        self.send_if_granted(now, slot, &plan, grant)
    }

    /// Refuses what was offered; it is offered again when `until` has come.
    pub fn decline(&mut self, now: Instant, offer: Offer, until: Until) {
        let Some(slot) = self.withdraw(offer) else { return self.give_law_back(offer) };
        match until {
            Until::Received => self.park(slot, Standing::PARKED),
            Until::Timer => self.park(slot, Standing::AWAITS_LAW),
            Until::At(instant) => {
                self.qps[slot].requester.standing.set(Standing::HELD);
                self.set_send_timer(slot, instant);
                self.pass_flight_turn(slot);
            }
            Until::Recirculated => {}
        }
        if offer.wants_law {
            self.release_law(slot);
        }
        self.arm(now, slot);
    }

    fn withdraw(&mut self, offer: Offer) -> Option<usize> {
        let slot = self.place(offer.qpn)?;
        let standing = &mut self.qps[slot].requester.standing;
        if !standing.has(Standing::OFFERED) {
            return None;
        }
        standing.clear(Standing::OFFERED);
        Some(slot)
    }

    /// The queue pair of an offer failed before it was settled: the events that waited for its law are heard.
    #[cold]
    fn give_law_back(&mut self, offer: Offer) {
        if offer.wants_law
            && let Some(slot) = self.place(offer.qpn)
            && self.state(slot) == QpState::Error
        {
            self.release_law(slot);
        }
    }

    /// Whether the queue pair belongs among those that may send.
    #[inline]
    fn may_send(&self, now: Instant, slot: usize) -> bool {
        self.qps[slot].requester.pacer.eligible_at() <= now && self.qps[slot].requester.wants_to_send()
    }

    /// Puts the queue pair where it belongs: among those that may send, or into the wheel until its time comes.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, slot: usize) {
        let requester = &self.qps[slot].requester;
        let eligible = requester.pacer.eligible_at();
        let waits = eligible > now && requester.notes.has(Notes::SEND_TIMER);
        if !waits && self.qps[slot].requester.wants_to_send() {
            self.arm_now(now, slot);
        }
    }

    /// The same for a queue pair that only time holds back.
    #[inline]
    fn arm_now(&mut self, now: Instant, slot: usize) {
        let requester = &self.qps[slot].requester;
        let eligible = requester.pacer.eligible_at();
        if eligible <= now {
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            self.schedule.add(slot as u32, requester.priority);
        } else if !requester.notes.has(Notes::SEND_TIMER) {
            self.set_send_timer(slot, eligible);
        }
    }

    pub(crate) fn set_send_timer(&mut self, slot: usize, at: Instant) {
        self.qps[slot].requester.notes.set(Notes::SEND_TIMER);
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.timers.arm(TimerId { qp: slot as u32, kind: TIMER_SEND }, at);
    }

    /// The send timer fired: a pacing gap or a refusal is over.
    pub(crate) fn send_timer(&mut self, now: Instant, slot: usize) {
        let requester = &mut self.qps[slot].requester;
        requester.notes.clear(Notes::SEND_TIMER);
        requester.standing.clear(Standing::HELD);
        self.arm(now, slot);
    }

    /// Plans what the queue pair sends next, in runs of at most `quantum` octets; false where something holds it back,
    /// and then whatever ends that arms it again.
    ///
    /// The plan is filled in place: handing it over whole made the processor wait for its parts.
    #[inline]
    fn plan(&mut self, now: Instant, slot: usize, quantum: u32, plan: &mut Plan) -> bool {
        let requester = &self.qps[slot].requester;
        if requester.standing.meets(BLOCKED) {
            return false;
        }
        if requester.pacer.eligible_at() > now {
            self.arm(now, slot);
            return false;
        }
        let responds = requester.notes.has(Notes::RESPONSES);
        let first = responds && !requester.notes.has(Notes::RESPONDED);
        let mut planned = first && self.plan_response(now, slot, quantum, plan)
            || self.qps[slot].requester.has_requests() && self.plan_request(now, slot, quantum, plan);
        if !planned {
            // Whatever answers it may have to send: those take no room of requests.
            self.end_flight_turn(slot);
            planned = responds && self.plan_response(now, slot, quantum, plan);
        }
        planned
            && (!self.qps[slot].requester.notes.has(Notes::LAW_CREDIT) || self.law_admits(now, slot, plan))
    }

    /// The next request packets: what is marked to be sent again first, then the ring.
    #[inline]
    fn plan_request(&mut self, now: Instant, slot: usize, quantum: u32, plan: &mut Plan) -> bool {
        self.end_run(slot);
        let is_doubted = self.flights.as_ref().is_some_and(|flights| flights.doubts(slot));
        let quantum = if is_doubted { 1 } else { quantum };
        if self.qps[slot].requester.notes.has(Notes::RESENDS) && !self.sends_new_only(slot) {
            let mut resend = self.plan_resend(slot, quantum);
            if resend.is_some_and(|resend| resend.packets == 0) && self.probes_with_new(slot) {
                if self.plan_new(now, slot, 1, plan) {
                    return true;
                }
                self.probe_without_new(slot);
                resend = self.plan_resend(slot, quantum);
            }
            if let Some(resend) = resend {
                *plan = resend;
                return plan.packets > 0
                    && !self.repeats_in_vain(slot, plan.work)
                    && (self.flights.is_none() || self.admits_flight(slot, plan.work));
            }
        }
        self.plan_new(now, slot, quantum, plan)
    }

    /// The next request packets from the ring.
    #[inline]
    fn plan_new(&mut self, now: Instant, slot: usize, quantum: u32, plan: &mut Plan) -> bool {
        let current = self.qps[slot].requester.current;
        if current == NONE || !self.sends.get(current).has(flag::NUMBERED) && !self.begin(now, slot, current)
        {
            return false;
        }
        let most = if self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            self.recovery_room(slot)
        } else {
            u32::MAX
        };
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let Qp { requester, common, .. } = &mut self.qps[slot];
        // The program's window has shut behind packets that ask for no answer: as with the law's, one more goes, and asks.
        let most = if most == 0 && profile.recovery.owns_window() && requester.has_still_to_ask() {
            1
        } else {
            most
        };
        let work = self.sends.get(current);
        let mtu = u32::from(profile.mtu);
        let at = requester.high;
        let left = work.end.wrapping_sub(at);
        let outstanding = at.wrapping_sub(requester.una);
        let room = profile.max_in_flight.saturating_sub(outstanding).min(most);
        (plan.response, plan.work, plan.at, plan.fresh) = (false, current, at, true);
        if work.kind.is_read_or_atomic() {
            (plan.packets, plan.length) = (1, 0);
            // A READ longer than the window goes by itself.
            return (left <= room || outstanding == 0)
                && (self.flights.is_none() || self.admits_flight(slot, current))
                && (self.read_rooms.is_none() || self.admits_read(slot, current));
        }
        let packets = if quantum <= mtu { 1 } else { (quantum / mtu).min(u32::from(u16::MAX)) };
        let mut run = left.min(packets).min(room);
        let octets_left = work.length - at.wrapping_sub(work.first) * mtu;
        if u32::from(requester.staged) < run {
            let ring = u32::from(profile.ring);
            let mut lets =
                window_lets(requester.in_flight, requester.window, mtu, octets_left, run.max(ring));
            if lets == 0 && requester.unasked > 0 {
                // The law has shut the window behind packets that ask for no answer: one more goes, and asks.
                lets = 1;
            }
            let let_through = lets.min(ring).min(most);
            requester.staged = requester.staged.max(u8::try_from(let_through).unwrap_or(profile.ring));
            common.facts.put(Facts::SHUTS, most <= u32::from(requester.staged));
            run = run.min(lets.max(u32::from(requester.staged)));
        }
        plan.length = if run == left { octets_left } else { run * mtu };
        #[expect(clippy::cast_possible_truncation, reason = "bounded by 2¹⁶ - 1 above")]
        {
            plan.packets = run as u16;
        }
        run > 0 && (self.flights.is_none() || self.admits_flight(slot, current))
    }

    /// Whether the port has room for what READ `current` brings; where it has none, the queue pair waits in line.
    #[cold]
    fn admits_read(&mut self, slot: usize, current: u32) -> bool {
        let (layout, retry) = (self.profile(slot).layout, self.profile(slot).retry);
        let host = self.config.host(self.qps[slot].common.path);
        let work = self.sends.get(current);
        let Some(rooms) = self.read_rooms.as_mut().filter(|_| work.kind == Kind::Read) else { return true };
        if rooms.piece().is_none() {
            return rooms.admit(slot, host, work.length);
        }
        // Whose responder has not answered in time has no place among others until it does, as with grants.
        let requester = &self.qps[slot].requester;
        let answered = requester.reads == 0 || requester.retries >= retry;
        layout != Layout::Homa || answered && rooms.admit(slot, host, work.length)
    }

    /// A READ of `length` octets has come to its end, or, where that is `None`, nothing more of the queue pair's is to be
    /// expected: who waited for the room goes.
    #[cold]
    pub(crate) fn leave_read_rooms(&mut self, slot: usize, length: Option<u32>) {
        let Some(rooms) = &mut self.read_rooms else { return };
        let awaited = match length {
            Some(length) => rooms.leave(slot, length),
            None => rooms.forget(slot),
        };
        if awaited {
            self.let_reads(0);
        }
    }

    /// Lets READs go that wait for others to end (see [`bound_reads`](Self::bound_reads)): those that there is room for, and
    /// about `extra` octets more.
    #[cold]
    pub fn let_reads(&mut self, mut extra: u64) {
        let Some(mut rooms) = self.read_rooms.take() else { return };
        while let Some((next, left)) = rooms.next(extra, |next| self.qps[next].requester.has_requests()) {
            extra = left;
            if self.qps[next].requester.wants_to_send() {
                #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
                self.schedule.add(next as u32, self.qps[next].requester.priority);
            }
        }
        self.read_rooms = Some(rooms);
    }

    /// The next request comes to be sent: its packets get their numbers. False where it has to wait.
    fn begin(&mut self, now: Instant, slot: usize, current: u32) -> bool {
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let work = self.sends.get_mut(current);
        let reads = self.qps[slot].requester.reads;
        // What has begun is finished in SQD as well.
        if self.qps[slot].common.state != QpState::ReadyToSend && !goes_on(work)
            || work.kind.is_read_or_atomic() && reads >= profile.max_rd_atomic
            || work.has(flag::FENCE) && reads > 0
        {
            return false;
        }
        let consumes = work.consumes_receive();
        if self.lacks_credit(now, slot, consumes) {
            return false;
        }
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let work = self.sends.get_mut(current);
        let packets = match work.kind {
            Kind::FetchAdd | Kind::CompareSwap => 1,
            Kind::Read if profile.separate_reads() => 1,
            _ => work.length.div_ceil(u32::from(profile.mtu)).max(1),
        };
        let requester = &mut self.qps[slot].requester;
        // The quick way asks for no room under way.
        let streams = self.flights.is_none() && profile.streams(work);
        work.flags |= if streams { flag::NUMBERED | flag::STREAMS } else { flag::NUMBERED };
        if profile.service != Service::Rc {
            work.flags |= flag::LEAVES;
        }
        work.first = requester.high;
        work.end = requester.high.wrapping_add(packets);
        let common = &mut self.qps[slot].common;
        match work.kind {
            Kind::Send | Kind::Write | Kind::Read => work.operand = u64::from(common.msn) << 32,
            Kind::FetchAdd | Kind::CompareSwap | Kind::Datagram => {}
        }
        // The responder counts each packet of a lone WRITE.
        let messages = if profile.is_lone(work) { packets } else { 1 };
        common.msn = common.msn.wrapping_add(messages);
        let requester = &mut self.qps[slot].requester;
        if consumes {
            work.operand |= u64::from(requester.ssn);
            requester.ssn = requester.ssn.wrapping_add(1);
        } else {
            self.pass_limit(slot, messages);
        }
        let profile = &self.profiles[usize::from(self.qps[slot].common.profile)];
        let work = self.sends.get(current);
        if work.kind == Kind::Read && profile.separate_reads() {
            self.begin_read(slot, current);
        }
        self.open_window(slot);
        if self.qps[slot].common.law != NONE && self.hears(slot, Class::MESSAGE) {
            let law = self.qps[slot].common.law as usize;
            self.laws.states[law].tokens.begin();
            let work = self.sends.get(current);
            let length = if work.kind.is_read_or_atomic() { 0 } else { work.length };
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            self.schedule.set_left(slot as u32, Some(length));
            self.tell_of_message(now, slot, current);
            if self.qps[slot].common.state != QpState::ReadyToSend {
                return false;
            }
        }
        !self.qps[slot].requester.standing.meets(BLOCKED)
    }

    /// Sends what was planned, if the law lets it.
    #[inline(always)]
    fn send(&mut self, now: Instant, slot: usize, plan: &Plan, grant: &Grant) -> Option<Segment> {
        let has_law = self.qps[slot].common.law != NONE;
        let mut words: Option<Words> = None;
        if has_law {
            words = self.granted(now, slot, plan, grant)?;
        }
        let requester = &self.qps[slot].requester;
        let paced =
            requester.pacer.rate_kbps() != Credit::UNLIMITED || requester.notes.has(Notes::LAW_CREDIT);
        let octets = if paced {
            self.wire_octets(slot, plan)
        } else {
            // Nobody counts them exactly.
            plan.length + u32::from(self.config.wire_overhead) * u32::from(plan.packets)
        };
        let draft = if plan.response { None } else { Some(self.advance_request(now, slot, plan)) };
        let Qp { requester, common, .. } = &mut self.qps[slot];
        common.packets = common.packets.wrapping_add(u32::from(plan.packets));
        requester.pacer.charge(now, octets);
        // What the law makes of this packet counts from the next one on, as in `stream`.
        let priority = requester.priority;
        if has_law {
            self.law_sent(now, slot, plan, octets);
        }
        let Some(draft) = draft else {
            if self.qps[slot].responder.reads == NONE {
                // The law, told of the octets, could not be trusted any more.
                return None;
            }
            self.qps[slot].requester.notes.set(Notes::RESPONDED);
            let segment = self.respond(now, slot, plan, words);
            self.relist(now, slot);
            return Some(segment);
        };
        self.qps[slot].requester.notes.clear(Notes::RESPONDED);
        if has_law && self.hears(slot, Class::MESSAGE) {
            let segment = self.request(slot, plan, &draft, words);
            self.sent_of_message(slot);
            self.relist(now, slot);
            return Some(segment);
        }
        self.relist(now, slot);
        Some(Segment { priority, ..self.request(slot, plan, &draft, words) })
    }

    /// Octets that the packets planned take on the wire over IPv4, preamble and gap included.
    #[inline(never)]
    fn wire_octets(&mut self, slot: usize, plan: &Plan) -> u32 {
        let (first, middle, last) = if plan.response {
            self.response_opcodes(slot, plan)
        } else {
            let work = self.sends.get(plan.work);
            request_opcodes(work, plan, self.profile(slot).is_lone(work))
        };
        let profile = self.profile(slot);
        let octets = |opcode: Opcode, payload: u32| {
            let payload = u16::try_from(payload).unwrap_or(u16::MAX);
            frame_len(opcode, profile.layout, IpVersion::V4, payload) + WIRE_OVERHEAD
        };
        let (mtu, packets) = (u32::from(profile.mtu), u32::from(plan.packets));
        match packets {
            1 => octets(first, plan.length),
            _ => {
                let rest = plan.length - (packets - 1) * mtu;
                octets(first, mtu) + (packets - 2) * octets(middle, mtu) + octets(last, rest)
            }
        }
    }

    /// Has the law's leave to send, and the words that it puts on the packet; `None`: not now.
    fn granted(&mut self, now: Instant, slot: usize, plan: &Plan, grant: &Grant) -> Option<Option<Words>> {
        match grant {
            Grant::Law(outcome) => Some(outcome.words),
            Grant::Engine => self.ask_law(now, slot, plan),
        }
    }

    /// Most queue pairs have more to send after a packet and stay where they are.
    #[inline]
    pub(crate) fn relist(&mut self, now: Instant, slot: usize) {
        let wants = self.qps[slot].requester.wants_to_send();
        if !wants || self.qps[slot].requester.pacer.eligible_at() > now {
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            self.schedule.remove(slot as u32);
            self.end_flight_turn(slot);
        } else if !self.qps[slot].requester.has_requests() {
            self.end_flight_turn(slot);
        }
        if wants {
            self.arm_now(now, slot);
        }
    }
}

/// How many of `wanted` packets the window lets through: all that fit, or one where nothing is in flight.
#[inline]
pub(crate) fn window_lets(in_flight: u32, window: u32, mtu: u32, left: u32, wanted: u32) -> u32 {
    if window == u32::MAX {
        return wanted;
    }
    let room = window.saturating_sub(in_flight);
    let last = left.min(mtu);
    if in_flight == 0 && room < last {
        return 1;
    }
    if left <= mtu && room >= left {
        return 1;
    }
    // A division takes longer than all else here.
    if u64::from(room) >= u64::from(wanted) * u64::from(mtu) { wanted } else { room / mtu }
}
