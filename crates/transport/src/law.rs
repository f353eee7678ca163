//! How laws are run: when they are called, and what their answers do.

use crate::agent::PortAgent;
use crate::arrival::{Arrival, Refusal};
use crate::config::Service;
use crate::engine::Engine;
use crate::events::answer_event;
use crate::intake::rejoin;
use crate::laws::{LawState, Laws, TIMER_PACE, User};
use crate::messages::message_words;
use crate::qp::{Common, Facts, Notes, Qp, Standing};
use crate::queue::{NONE, flag};
use crate::timer::TimerId;
use crate::transmit::Plan;
use alloc::sync::Arc;
use roci_control::{Class, Context, Credit, Emit, Event, Image, Law, Outcome, Part, Scope, Verdict};
use roci_units::{BitsPerSec, Instant, Psn, Qpn};
use roci_wire::{Header, Layout, Opcode};

impl Engine {
    /// Whether the queue pair's law wants to hear of `class`.
    #[inline]
    pub(crate) fn hears(&self, slot: usize, class: Class) -> bool {
        self.qps[slot].common.hears.meets(class)
    }

    /// Whether acknowledgements of data wait for the law's answer.
    #[inline]
    pub(crate) fn law_acknowledges(&self, slot: usize) -> bool {
        self.hears(slot, Class::DATA)
    }

    /// What [`tell_law`](Self::tell_law) does of an acknowledgement of `acked` octets, where the law is not deferred and has a
    /// state: with each fact read once, for laws hear of nothing as often.
    #[inline(always)]
    pub(crate) fn tell_of_progress(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>, acked: u32) {
        let Self { qps, profiles, schedule, config, laws, .. } = self;
        let apart = laws.link_is_apart;
        let Laws { laws, states, timers, .. } = laws;
        let qp = &mut qps[slot];
        let profile = &profiles[usize::from(qp.common.profile)];
        let index = qp.common.law;
        let state = &mut states[index as usize];
        let sent = state.sent_at(qp.requester.una);
        let mut event = Event::default();
        answer_event(&mut event, qp, profile.layout, now, arrival, Class::ACK, (acked, sent));
        let wake = state.wake(timers, index);
        let mut outcome = Outcome::unchanged(state.credit(&qp.requester), wake);
        call(&mut laws[usize::from(state.law)], &mut state.context, &event, &mut outcome);
        let Credit { rate_kbps, window, tokens } = outcome.credit;
        let own = state.port().is_none() && !state.tokens.limit() && tokens == Credit::UNLIMITED;
        if !own || outcome.wake != wake || !outcome.is_credit_alone() {
            return self.apply(now, slot, &outcome);
        }
        if qp.requester.window != window {
            qp.set_window(profile, window);
        }
        let paced = qp.requester.pacer.rate_kbps();
        if paced != rate_kbps && paced != pace(apart, config.link, paced, rate_kbps) {
            self.set_rate(now, slot, rate_kbps);
            self.arm(now, slot);
        } else if rejoin(qp, schedule, now, slot) {
            self.arm(now, slot);
        }
    }

    /// Runs the law on an event that it traces, or hands the event out if the law is deferred.
    pub(crate) fn tell_law(&mut self, now: Instant, slot: usize, event: &Event<'_>) {
        if self.profile(slot).deferred.law {
            return self.tell_later(slot, event);
        }
        self.begin_law(now, slot);
        let outcome = self.run_law(slot, event);
        self.apply(now, slot, &outcome);
    }

    /// Makes the state of a queue pair's law, if it was not needed before.
    #[inline]
    pub(crate) fn begin_law(&mut self, now: Instant, slot: usize) {
        let Common { law, hears, .. } = self.qps[slot].common;
        if law == NONE && hears != Class::NONE {
            self.begin_law_now(now, slot);
        }
    }

    #[cold]
    fn begin_law_now(&mut self, now: Instant, slot: usize) {
        // It may wait because it changes nothing at its beginning, so this is all there is to it.
        let number = self.profile(slot).law;
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let user = User { slot: slot as u32, qpn: self.qps[slot].common.qpn.get(), now };
        self.qps[slot].common.law = self.laws.begin(&self.config, number, user).index;
    }

    /// Gives `event` to the law, which must have a state. Put into its callers, for an answer that is copied whole before it is
    /// looked at stalls the processor: 10 ns of an acknowledgement.
    #[inline(always)]
    pub(crate) fn run_law(&mut self, slot: usize, event: &Event<'_>) -> Outcome {
        let Qp { requester, common, .. } = &self.qps[slot];
        let Laws { laws, states, timers, .. } = &mut self.laws;
        let state = &mut states[common.law as usize];
        let wake = state.wake(timers, common.law);
        let mut outcome = Outcome::unchanged(state.credit(requester), wake);
        call(&mut laws[usize::from(state.law)], &mut state.context, event, &mut outcome);
        outcome
    }

    /// A queue pair whose law deals by the message has sent a packet. It stands in order of what it has still to send
    /// of its message (Homa §3.2), and is first in line until the next one begins: only then is it known how long that
    /// is and which priority it has.
    pub(crate) fn sent_of_message(&mut self, slot: usize) {
        const FIRST: u8 = 7;
        let mtu = u32::from(self.profile(slot).mtu);
        let requester = &mut self.qps[slot].requester;
        let work = if requester.current == NONE { None } else { Some(self.sends.get(requester.current)) };
        let begun = work.filter(|work| work.has(flag::NUMBERED));
        let left = begun.map(|work| work.end.wrapping_sub(requester.high).saturating_mul(mtu));
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.schedule.set_left(slot as u32, left);
        let begun = begun.is_some();
        if !begun && requester.priority != FIRST {
            requester.priority = FIRST;
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            self.schedule.remove(slot as u32);
        }
    }

    /// The credit as it stands.
    pub(crate) fn credit(&self, slot: usize) -> Credit {
        let Qp { requester, common, .. } = &self.qps[slot];
        match self.laws.states.get(common.law as usize) {
            Some(state) => state.credit(requester),
            None => {
                Credit { rate_kbps: requester.pacer.rate_kbps(), window: requester.window, ..Credit::FREE }
            }
        }
    }

    /// Makes a law's answer effective, and lets go what it freed.
    pub(crate) fn apply(&mut self, now: Instant, slot: usize, outcome: &Outcome) {
        if outcome.verdict == Verdict::Fault {
            self.fail(now, slot, crate::work::Status::LocalQpOperationError);
            return;
        }
        if let Some(traces) = outcome.traces {
            self.retrace(slot, traces);
        }
        let index = self.qps[slot].common.law;
        let Some(state) = self.laws.states.get_mut(index as usize) else { return };
        let Credit { rate_kbps, window, tokens } = outcome.credit;
        state.tokens.set(tokens, outcome.pushed);
        if let Some(octets) = outcome.byte_counter {
            (state.count_down, state.counts) = (octets, octets);
            self.qps[slot].common.facts.put(Facts::COUNTS, octets != 0 || state.is_timed());
        }
        if self.qps[slot].requester.window != window {
            self.set_window(slot, window);
        }
        if let Some(priority) = outcome.priority
            && priority.min(7) != self.qps[slot].requester.priority
        {
            self.end_run(slot);
            self.qps[slot].requester.priority = priority.min(7);
            #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
            self.schedule.remove(slot as u32);
        }
        let (apart, link) = (self.laws.link_is_apart, self.config.link);
        let Some(state) = self.laws.states.get_mut(index as usize) else { return };
        let requester = &mut self.qps[slot].requester;
        let limited = state.port().is_some() || tokens != Credit::UNLIMITED;
        if limited {
            requester.notes.set(Notes::LAW_CREDIT);
        } else {
            requester.notes.clear(Notes::LAW_CREDIT);
        }
        let mut changed = false;
        if let Some(port) = state.port_mut() {
            changed = port.window != window;
            port.window = window;
            let rate_kbps = pace(apart, link, port.pacer.rate_kbps(), rate_kbps);
            if port.pacer.rate_kbps() != rate_kbps {
                port.pacer.set_rate(now, rate_kbps);
                if !port.waiting.is_empty() {
                    let eligible = port.pacer.eligible_at();
                    self.laws.timers.arm(TimerId { qp: index, kind: TIMER_PACE }, eligible);
                }
            }
        } else if requester.pacer.rate_kbps() != rate_kbps {
            self.set_rate(now, slot, rate_kbps);
        }
        if changed {
            self.share_window(now, index, window);
        }
        self.laws.set_wake(index, outcome.wake);
        if let Some(emit) = &outcome.emit {
            self.emit(now, slot, emit);
        }
        self.arm(now, slot);
    }

    /// The queue pair's window has so many octets from now on.
    #[inline]
    fn set_window(&mut self, slot: usize, window: u32) {
        let qp = &mut self.qps[slot];
        qp.set_window(&self.profiles[usize::from(qp.common.profile)], window);
    }

    /// The queue pair is paced at `rate_kbps` from now on.
    fn set_rate(&mut self, now: Instant, slot: usize, rate_kbps: u32) {
        let Qp { requester, common, .. } = &mut self.qps[slot];
        let rate_kbps =
            pace(self.laws.link_is_apart, self.config.link, requester.pacer.rate_kbps(), rate_kbps);
        requester.pacer.set_rate(now, rate_kbps);
        common.facts.put(Facts::PACED, rate_kbps != Credit::UNLIMITED);
        common.asks_every =
            self.profiles[usize::from(common.profile)].asks_every_at(rate_kbps, requester.window);
        if requester.notes.has(Notes::SEND_TIMER) && !requester.standing.has(Standing::HELD) {
            let eligible = requester.pacer.eligible_at();
            self.set_send_timer(slot, eligible);
        }
    }

    /// A law hears other classes from now on.
    #[cold]
    fn retrace(&mut self, slot: usize, traces: Class) {
        self.end_run(slot);
        let common = &mut self.qps[slot].common;
        common.hears = traces;
        if let Some(state) = self.laws.states.get_mut(common.law as usize) {
            state.traces = traces;
            let timed = traces.meets(Class::ACK) && self.laws.laws[usize::from(state.law)].wants_times();
            state.set_timed(timed);
            common.facts.put(Facts::COUNTS, state.counts != 0 || timed);
        }
    }

    /// Gives law `number`, which runs a program, another one; false where it runs none. Its queue pairs begin anew with it
    /// at `now`, as if they had just been made. Of what the old one was busy with only the packets stand that it asks for.
    pub fn replace_program(&mut self, now: Instant, number: u16, image: &Arc<Image>) -> bool {
        let Some(Law::Program(law)) = self.laws.law_mut(number) else { return false };
        law.replace(image.clone());
        for slot in 0..self.qps.len() {
            let common = &self.qps[slot].common;
            let state = self.laws.states.get(common.law as usize);
            if !common.facts.has(Facts::ALIVE)
                || state.map_or(self.profile(slot).law, |state| state.law) != number
            {
                continue;
            }
            self.begin_program(now, slot, number);
        }
        true
    }

    /// The same for one queue pair, which from then on runs a law of its own; false also where there is no such queue pair,
    /// or no room for another law.
    pub fn replace_program_of(&mut self, now: Instant, qpn: Qpn, image: &Arc<Image>) -> bool {
        let Some(slot) = self.place(qpn) else { return false };
        let shared = self.profile(slot).law;
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        let mut number = state.map_or(shared, |state| state.law);
        if number == shared {
            let Some(own) = self.laws.law(shared).filter(|law| matches!(law, Law::Program(_))) else {
                return false;
            };
            let own = own.apart(shared);
            if u16::try_from(self.laws.laws.len()).is_err() {
                return false;
            }
            number = self.laws.add(own);
        }
        let Some(Law::Program(law)) = self.laws.law_mut(number) else { return false };
        law.replace(image.clone());
        self.begin_program(now, slot, number);
        true
    }

    /// A queue pair's law is `number` from now on, a program that replaces another.
    fn begin_program(&mut self, now: Instant, slot: usize, number: u16) {
        let out = self.qps[slot].requester.standing.has(Standing::LAW_OUT);
        if out {
            self.aside(slot).outdated = true;
        }
        let (granted, priority) = (self.credit(slot).tokens, self.qps[slot].requester.priority);
        self.renew_law(now, slot, number);
        self.resume_message(now, slot, granted, priority);
        self.unpark(now, slot);
    }

    /// A law of the port changed the window, which is that of each of its queue pairs.
    #[cold]
    fn share_window(&mut self, now: Instant, index: u32, window: u32) {
        for slot in 0..self.qps.len() {
            if self.qps[slot].common.law == index {
                self.set_window(slot, window);
                self.arm(now, slot);
            }
        }
    }

    /// A law that deals by the message hears of one that begins with its packet `work.first`.
    pub(crate) fn tell_of_message(&mut self, now: Instant, slot: usize, current: u32) {
        let work = self.sends.get(current);
        let length = if work.kind.is_read_or_atomic() { 0 } else { work.length };
        let message = work.first.wrapping_sub(self.qps[slot].common.base);
        let part = Part { message, message_length: length, offset: 0, end: length, priority: 0 };
        let event = Event { length, part, ..self.event(now, slot, Class::MESSAGE) };
        self.tell_law(now, slot, &event);
    }

    /// A law that takes over within a message hears of it as if it began, and what has been sent of it counts against
    /// what the law lets go. What its predecessor had been granted, `granted` octets beyond that at `priority`, no
    /// receiver grants again: it hears of that too.
    #[cold]
    fn resume_message(&mut self, now: Instant, slot: usize, granted: u32, priority: u8) {
        let current = self.qps[slot].requester.current;
        if !self.hears(slot, Class::MESSAGE) || current == NONE {
            return;
        }
        let work = self.sends.get(current);
        if !work.has(flag::NUMBERED) {
            return;
        }
        let length = if work.kind.is_read_or_atomic() { 0 } else { work.length };
        let message = work.first.wrapping_sub(self.qps[slot].common.base);
        let packets = self.qps[slot].requester.high.wrapping_sub(work.first);
        let sent = packets.saturating_mul(u32::from(self.profile(slot).mtu)).min(length);
        let index = self.qps[slot].common.law as usize;
        if let Some(state) = self.laws.states.get_mut(index) {
            state.tokens.owe(sent);
        }
        self.tell_of_message(now, slot, current);
        if granted != Credit::UNLIMITED && granted > 0 && self.hears(slot, Class::GRANT) {
            let end = sent.saturating_add(granted).min(length);
            let part = Part { message, message_length: length, offset: 0, end, priority };
            let event = Event { part, ..self.event(now, slot, Class::GRANT) };
            self.tell_law(now, slot, &event);
        }
    }

    /// Lets a queue pair wait for something received or for its law's timer.
    pub(crate) fn park(&mut self, slot: usize, why: Standing) {
        let Qp { requester, common, .. } = &mut self.qps[slot];
        requester.standing.set(why);
        if let Some(port) = self.laws.states.get_mut(common.law as usize).and_then(LawState::port_mut) {
            port.parks = true;
        }
        self.pass_flight_turn(slot);
    }

    /// The timer of a law for which queue pairs wait has come.
    pub(crate) fn unpark(&mut self, now: Instant, slot: usize) {
        let until_received = if self.awaits_first(slot) { Standing::EMPTY } else { Standing::PARKED };
        self.qps[slot].requester.standing.clear(Standing::AWAITS_LAW.with(until_received));
        self.arm(now, slot);
    }

    /// A packet was not sent, for want of one in its layout; where a program runs, that is counted.
    #[cold]
    fn leave_out(&mut self, slot: usize, class: Class) {
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        let number = state.map_or(self.profile(slot).law, |state| state.law);
        if let Some(Law::Program(program)) = self.laws.law_mut(number) {
            program.left_out(class);
        }
    }

    /// Sends what a law or the port's agent asks for. A class for which the queue pair's layout has no packet is left out.
    pub(crate) fn emit(&mut self, now: Instant, slot: usize, emit: &Emit) {
        let Common { peer, qpn, .. } = self.qps[slot].common;
        let layout = self.profile(slot).layout;
        let mut priority = None;
        let mut header = match emit.class {
            Class::CNP => {
                priority = Some(self.config.cnp_priority);
                Header::cnp(peer)
            }
            Class::ACK => self.law_acknowledgement(slot),
            class => match class.opcode() {
                Some(opcode) => Header::new(opcode, peer, Psn::new(0)),
                None => return,
            },
        };
        if !layout.permits(header.opcode) {
            return self.leave_out(slot, emit.class);
        }
        if emit.class == Class::CNP {
            self.note_cnp(slot);
        }
        let mut part = emit.part;
        let grants = emit.class == Class::GRANT;
        if grants && self.agent.as_mut().is_some_and(|agent| !agent.admit(now, qpn, &mut part)) {
            return;
        }
        header.payload = 0;
        if layout == Layout::Ndp && emit.class == Class::PULL {
            self.aside(slot).pulls = emit.part.end;
            header.set_pull(self.pull_words(slot));
        }
        let mut segment = self.control(slot, header);
        segment.words = match layout {
            Layout::Homa => message_words(emit.class, &part),
            _ => self.lay_out_words(slot, (emit.words.len > 0).then_some(emit.words), true),
        };
        segment.priority = priority.unwrap_or(segment.priority);
        self.post(segment);
        if grants {
            // Others may have their turn now.
            self.poll_agent(now);
        }
    }

    /// What a packet that has gone means for tokens, counters and the port's pacer.
    #[inline]
    pub(crate) fn law_sent(&mut self, now: Instant, slot: usize, plan: &Plan, wire_octets: u32) {
        let index = self.qps[slot].common.law;
        let state = &mut self.laws.states[index as usize];
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        {
            state.slot = slot as u32;
        }
        if !plan.response || state.tokens.count_packets() {
            state.tokens.spend(plan.packets, plan.length, plan.fresh);
        }
        if let Some(port) = state.port_mut() {
            port.pacer.charge(now, wire_octets);
            if !port.waiting.is_empty() {
                let eligible = port.pacer.eligible_at();
                self.laws.timers.arm(TimerId { qp: index, kind: TIMER_PACE }, eligible);
            }
        }
        let state = &mut self.laws.states[index as usize];
        if plan.fresh
            && !plan.response
            && let Some(sent) = state.sent_mut()
        {
            sent.note(plan.at.wrapping_add(plan.packets.into()), now);
        }
        if state.count_down == 0 {
            return;
        }
        state.count_down = state.count_down.saturating_sub(plan.length);
        if state.count_down == 0 && state.traces.meets(Class::BYTE_COUNTER) {
            let length = state.counts;
            let event = Event { length, ..self.event(now, slot, Class::BYTE_COUNTER) };
            self.tell_law(now, slot, &event);
        }
    }

    /// A law's timer ran out.
    pub(crate) fn law_timer(&mut self, now: Instant, index: u32) {
        let state = &self.laws.states[index as usize];
        let traced = state.traces.meets(Class::TIMER);
        let mut slot = state.slot as usize;
        if self.qps[slot].common.law != index {
            // The queue pair by which a port's law sent last is gone; any other of them can carry its answer.
            let Some(other) = self.qps.iter().position(|qp| qp.common.law == index) else { return };
            slot = other;
        }
        let port = self.laws.states[index as usize].port_mut();
        if port.is_some_and(|port| core::mem::take(&mut port.parks)) {
            for other in 0..self.qps.len() {
                if self.qps[other].common.law == index {
                    self.unpark(now, other);
                }
            }
        }
        self.unpark(now, slot);
        if traced {
            let event = self.event(now, slot, Class::TIMER);
            self.tell_law(now, slot, &event);
        }
        self.arm(now, slot);
    }

    /// A CNP arrived.
    #[cold]
    pub(crate) fn on_cnp(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) {
        self.qps[slot].common.cnps = self.qps[slot].common.cnps.wrapping_add(1);
        if self.hears(slot, Class::CNP) {
            let event = Event { opcode: Opcode::CNP.0, ..self.heard(now, slot, arrival, Class::CNP) };
            self.tell_law(now, slot, &event);
        }
    }

    /// Counts CE on a data packet and tells the law of it, unless it heard of the packet itself.
    #[inline]
    pub(crate) fn count_marks(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>, class: Class) {
        if self.hears(slot, class) {
            self.tell_law_of_data(now, slot, arrival, class);
        } else if arrival.ce {
            self.count_mark(now, slot, arrival);
        }
    }

    pub(crate) fn count_mark(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) {
        self.qps[slot].common.ecn_marked = self.qps[slot].common.ecn_marked.wrapping_add(1);
        if self.hears(slot, Class::CE) && !self.notifies(now, slot) {
            let event = self.packet_event(now, slot, arrival, Class::CE);
            self.tell_law(now, slot, &event);
        }
    }

    /// A marked packet came that its queue pair could not take now, since it has it, lacks what is before it, or is not
    /// ready. It stood in the same queue as others, and a notification point answers packets that reach it, not only
    /// those in order: where losses are, marks would go unheard otherwise. A law that hears of data itself
    /// hears of data that was taken.
    #[cold]
    pub(crate) fn hear_mark_of_refused(&mut self, now: Instant, arrival: &Arrival<'_>, refusal: Refusal) {
        let may_come_in_vain = matches!(
            refusal,
            Refusal::Duplicate | Refusal::OutOfSequence | Refusal::ReceiverNotReady | Refusal::Rejected
        );
        if may_come_in_vain
            && arrival.header.payload > 0
            && let Some(slot) = self.place(arrival.header.dest_qpn)
            // A message that is refused ends a reliable connection, and an unreliable one goes on.
            && (refusal != Refusal::Rejected || self.state(slot).receives() && self.profile(slot).service == Service::Uc)
        {
            self.count_mark(now, slot, arrival);
        }
    }

    /// Lets a law answer a mark that needs no state of the queue pair for it; false where it does.
    fn notifies(&mut self, now: Instant, slot: usize) -> bool {
        let profile = self.profile(slot);
        let (shared, deferred) = (profile.law, profile.deferred.law);
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        let number = state.map_or(shared, |state| state.law);
        // Queue pairs whose port is limited share one state, and what it says of CNPs with it.
        let alone = |law: &Law| law.notifies() && law.limiter() == Scope::Qp;
        if deferred || !self.laws.law(number).is_some_and(alone) {
            return false;
        }
        if let Some(emit) = self.laws.notify(number, slot, now) {
            self.emit(now, slot, &emit);
        }
        true
    }

    /// Tells a law that traces data of a packet that was accepted. Its answer carries the acknowledgement: the law's own with
    /// its words, or the engine's where the law answers with another packet or with none.
    pub(crate) fn tell_law_of_data(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
        class: Class,
    ) {
        if arrival.ce {
            self.qps[slot].common.ecn_marked = self.qps[slot].common.ecn_marked.wrapping_add(1);
        }
        let event = self.packet_event(now, slot, arrival, class);
        if self.profile(slot).deferred.law {
            return self.tell_later(slot, &event);
        }
        self.begin_law(now, slot);
        let outcome = self.run_law(slot, &event);
        self.apply(now, slot, &outcome);
        if leaves_acknowledgement(class, &outcome) {
            self.acknowledge_for_law(slot);
        }
    }

    /// Acknowledges data of which the law was told, or was to be told, and which it does not acknowledge itself.
    pub(crate) fn acknowledge_for_law(&mut self, slot: usize) {
        let header = self.law_acknowledgement(slot);
        if !self.waits_for_placement(slot, header) {
            let segment = self.control(slot, header);
            self.post(segment);
        }
    }
}

/// The rate in kb/s that a law's answer stands for where it had `paced` until now: where the `link` is `apart`, who has once been
/// paced is held to its rate when the law takes the limit away.
#[inline]
const fn pace(apart: bool, link: BitsPerSec, paced: u32, answered: u32) -> u32 {
    let freed = answered == Credit::UNLIMITED && paced != Credit::UNLIMITED;
    if apart && freed { link.as_kbps() } else { answered }
}

/// Laws together are long: one call to all of them, not one copy of them for each who asks.
#[inline(never)]
fn call(law: &mut Law, context: &mut Context, event: &Event<'_>, outcome: &mut Outcome) {
    law.on_event(context, event, outcome);
}

/// Whether data of `class` wants an acknowledgement that `outcome`, its law's answer, does not send. What READs and atomics
/// ask for is answered by their responses.
pub(crate) fn leaves_acknowledgement(class: Class, outcome: &Outcome) -> bool {
    wants_acknowledgement(class)
        && outcome.verdict != Verdict::Fault
        && outcome.emit.is_none_or(|emit| emit.class != Class::ACK)
}

/// Whether packets of `class` are acknowledged.
pub(crate) const fn wants_acknowledgement(class: Class) -> bool {
    class.meets(Class::SEND.with(Class::WRITE))
}
