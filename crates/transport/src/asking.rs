//! What holds a packet back for its law's sake: the law is asked, tokens and the port's pacer have to let it go, and a program that lets
//! nothing go is stopped.

use crate::engine::Engine;
use crate::laws::{Laws, TIMER_PACE};
use crate::qp::{Duties, Qp, Standing};
use crate::timer::TimerId;
use crate::transmit::Plan;
use roci_control::{Class, Event, Law, Outcome, Verdict, Words};
use roci_units::{Instant, Span};

impl Engine {
    /// The event of a packet of `length` octets that is about to be sent.
    #[inline]
    pub(crate) fn before_sending<'a>(&self, now: Instant, slot: usize, length: u32) -> Event<'a> {
        let Qp { requester, responder, .. } = &self.qps[slot];
        let asked = requester.una != requester.high || requester.in_flight > 0 || requester.reads > 0;
        let outstanding = asked || responder.duties.has(Duties::RESPONDING);
        Event { length, outstanding, ..self.event(now, slot, Class::TRANSMIT) }
    }

    /// The law says LoopBack to the packet of `event`, which waits for the queue pair's next event. Where nothing is outstanding and
    /// no timer runs, that is one that comes unasked: where none such can come, or none does, the law has to give up.
    #[cold]
    pub(crate) fn refuse_what_strands(&mut self, slot: usize, event: &Event<'_>, outcome: &mut Outcome) {
        if event.outstanding || outcome.wake != Instant::NEVER {
            return;
        }
        let Laws { laws, states, .. } = &mut self.laws;
        if let Some(state) = states.get_mut(self.qps[slot].common.law as usize) {
            laws[usize::from(state.law)].give_up(&mut state.context, event, outcome);
        }
    }

    /// A retransmission timeout has come, of this queue pair's or, as a READ that was asked for again tells, of its peer's; what comes
    /// sooner than `gap` after the one before was a loss. A program that has let nothing go through `most` of them is stopped, for what it waits for does not come: they are so many that a queue
    /// pair would fail without that. True if so: the retries begin anew then, and are the fallback's. A program that waits for long, and
    /// in the end not in vain, is left alone.
    pub(crate) fn stop_what_starves(&mut self, now: Instant, slot: usize, most: u32, gap: Span) -> bool {
        if !self.hears(slot, Class::TRANSMIT) {
            return false;
        }
        let event = self.event(now, slot, Class::TRANSMIT);
        let index = self.qps[slot].common.law;
        let Laws { laws, states, timers, .. } = &mut self.laws;
        let Some(state) = states.get_mut(index as usize) else { return false };
        let law = &mut laws[usize::from(state.law)];
        if law.note_timeout(&mut state.context, now, gap) < most {
            return false;
        }
        let wake = state.wake(timers, index);
        let mut outcome = Outcome::unchanged(state.credit(&self.qps[slot].requester), wake);
        law.starve(&mut state.context, &event, &mut outcome);
        if self.qps[slot].requester.standing.has(Standing::LAW_OUT) {
            self.aside(slot).outdated = true;
        }
        self.apply(now, slot, &outcome);
        self.unpark(now, slot);
        true
    }

    /// How many timeouts a program may starve through where so many retries are `left`: any number but at the last.
    pub(crate) const fn starves_through(left: u8) -> u32 {
        if left == 0 { 1 } else { u32::MAX }
    }

    /// A packet waits for tokens. A program that has nothing in flight, so that no answer will have it give more, and that gives none
    /// for long, is stopped.
    #[cold]
    fn lacks_tokens(&mut self, now: Instant, slot: usize, length: u32) {
        let index = self.qps[slot].common.law;
        let number = usize::from(self.laws.states[index as usize].law);
        if !matches!(self.laws.laws[number], Law::Program(_)) {
            return;
        }
        let event = self.before_sending(now, slot, length);
        if event.outstanding || self.qps[slot].requester.standing.has(Standing::LAW_OUT) {
            return;
        }
        let Laws { laws, states, timers, .. } = &mut self.laws;
        let (state, law) = (&mut states[index as usize], &mut laws[number]);
        let wake = state.wake(timers, index);
        let mut outcome = Outcome::unchanged(state.credit(&self.qps[slot].requester), wake);
        law.lacks_tokens(&mut state.context, &event, &mut outcome);
        if outcome.traces.is_some() {
            // The fallback has taken over. Who has no plan leaves the line, and has to be brought back to it.
            self.apply(now, slot, &outcome);
            self.set_send_timer(slot, now);
        } else {
            self.laws.set_wake(index, outcome.wake);
        }
    }

    /// Asks the law about a packet that is about to be sent. `None`: not now; else the words that it carries.
    #[inline]
    pub(crate) fn ask_law(&mut self, now: Instant, slot: usize, plan: &Plan) -> Option<Option<Words>> {
        if !self.hears(slot, Class::TRANSMIT) {
            return Some(None);
        }
        let event = self.before_sending(now, slot, plan.length);
        let mut outcome = self.run_law(slot, &event);
        if outcome.verdict == Verdict::LoopBack {
            self.refuse_what_strands(slot, &event, &mut outcome);
        }
        if outcome.verdict == Verdict::LoopBack {
            self.park(slot, Standing::PARKED);
        }
        self.apply(now, slot, &outcome);
        (outcome.verdict == Verdict::Proceed).then_some(outcome.words)
    }

    /// Whether the law's tokens let packets go that were never sent, and no others: those come first, though some are to be sent again.
    #[cold]
    pub(crate) fn sends_new_only(&self, slot: usize) -> bool {
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        state.is_some_and(|state| state.tokens.are_for_new_ones())
    }

    /// Whether tokens and the port's pacer let something of `plan` go, which is cut to what the tokens let; where the
    /// pacer does not, the queue pair waits in line.
    #[inline]
    pub(crate) fn law_admits(&mut self, now: Instant, slot: usize, plan: &mut Plan) -> bool {
        let index = self.qps[slot].common.law;
        let Some(state) = self.laws.states.get_mut(index as usize) else { return true };
        if state.tokens.limit() && (!plan.response || state.tokens.count_packets()) {
            let mtu = self.profiles[usize::from(self.qps[slot].common.profile)].mtu;
            let run = state.tokens.allow(plan.packets, plan.length, mtu, plan.fresh);
            if run < plan.packets {
                (plan.packets, plan.length) = (run, u32::from(run) * u32::from(mtu));
            }
            if run == 0 {
                self.lacks_tokens(now, slot, plan.length);
                return false;
            }
        }
        let Some(port) = state.port_mut() else { return true };
        let eligible = port.pacer.eligible_at();
        if eligible <= now {
            return true;
        }
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let place = slot as u32;
        // Held until its turn comes, it is not planned again and so stands in line once.
        port.waiting.push_back(place);
        self.qps[slot].requester.standing.set(Standing::HELD);
        if self.laws.timers.armed(TimerId { qp: index, kind: TIMER_PACE }) == Instant::NEVER {
            self.laws.timers.arm(TimerId { qp: index, kind: TIMER_PACE }, eligible);
        }
        false
    }

    /// The port's pacer lets another packet go: the next in line may send.
    pub(crate) fn port_eligible(&mut self, now: Instant, index: u32) {
        let Some(port) = self.laws.states[index as usize].port_mut() else { return };
        let eligible = port.pacer.eligible_at();
        let next = if eligible <= now { port.waiting.pop_front() } else { None };
        if !port.waiting.is_empty() {
            // The one that may send now moves the pacer; who is behind it looks again then.
            let again = if eligible <= now { now + Span::from_ps(1) } else { eligible };
            self.laws.timers.arm(TimerId { qp: index, kind: TIMER_PACE }, again);
        }
        if let Some(slot) = next {
            self.qps[slot as usize].requester.standing.clear(Standing::HELD);
            self.arm(now, slot as usize);
        }
    }
}
