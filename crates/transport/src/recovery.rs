//! The sending side of a loss: the fixed stage of delivery and the recovery program, for as long as it lasts.
//!
//! A queue pair in order has neither. Both begin with the first NAK or timeout, with the window that is in flight
//! then, and end when nothing is marked and the program has nothing in mind. Where the program owns the window both
//! begin with the first request and stay.

mod beyond;
mod resend;

use crate::arrival::Deferral;
use crate::aside::{Aside, Asides};
use crate::config::Recovery;
use crate::delivery::pool::Pool;
use crate::delivery::program::{Decision, Event as Loss, Program};
use crate::delivery::sender::Sender;
use crate::engine::Engine;
use crate::probing::Probe;
use crate::qp::{Facts, Notes, Profile, Qp, Standing, sequence};
use crate::queue::NONE;
use crate::token::Purpose;
use core::hint::cold_path;
use roci_control::{Class, Event};
use roci_units::{Instant, Psn, Span};
use roci_wire::Layout;

/// A loss that a queue pair is in.
#[derive(Debug)]
pub(crate) struct Losing {
    sender: Sender,
    /// How many of the events that wait for a decision one is out about.
    asked: u32,
    /// A request at or before which nothing is marked: where the search for a packet's request begins.
    hint: u32,
    /// What is sent again of what a timeout took for lost.
    pub(crate) probe: Option<Probe>,
}

impl Losing {
    pub(crate) fn sender(&mut self) -> &mut Sender {
        &mut self.sender
    }

    /// [`Sender::advance_in_order`].
    #[inline(always)]
    pub(crate) fn advance_in_order(&mut self, boards: &Pool, cumulative: Psn, in_flight: u32) -> Option<u32> {
        self.sender.advance_in_order(boards, cumulative, in_flight)
    }

    /// [`Sender::leave_tail`].
    pub(crate) fn leave_tail(&mut self) {
        self.sender.leave_tail();
    }

    /// [`Sender::has_lost_nothing`].
    pub(crate) fn has_lost_nothing(&self) -> bool {
        self.sender.has_lost_nothing()
    }

    /// [`Sender::arrived_beyond`].
    #[inline]
    pub(crate) fn arrived_beyond(
        &mut self,
        boards: &mut Pool,
        now: Instant,
        psn: Psn,
        next: Psn,
    ) -> Option<u32> {
        self.sender.arrived_beyond(boards, now, psn, next)
    }
}

/// Has the recovery program of `qp` hear of the acknowledgements that it was to hear of later, and of the next at once.
///
/// While a run lasts nobody asks for the program's window. Told when the run ends, and not for each, an acknowledgement in order
/// costs little more than one of go-back-N; it cost half as much again.
#[inline(always)]
pub(crate) fn hear(qp: &mut Qp, asides: &mut Asides) {
    if qp.common.facts.has(Facts::HEARS_LATER) {
        cold_path();
        qp.common.facts.clear(Facts::HEARS_LATER);
        let (una, high) = (qp.requester.una, qp.requester.high);
        if let Some(losing) = asides.find_mut(qp.common.aside).and_then(|aside| aside.losing.as_mut()) {
            losing.sender.hear(Psn::new(una), high.wrapping_sub(una));
        }
    }
}

/// No more is let through than the program lets go, `room` new packets. A run that fits in there goes on.
#[inline(always)]
pub(crate) fn bound(qp: &mut Qp, profile: &Profile, room: u32) {
    let left = u32::from(qp.common.run) + u32::from(qp.requester.staged);
    if room <= left || qp.common.facts.has(Facts::SHUTS) {
        cold_path();
        if room < left {
            qp.end_run(profile.ring);
            let staged = &mut qp.requester.staged;
            *staged = u8::try_from(room).map_or(*staged, |room| room.min(*staged));
        }
        let left = u32::from(qp.common.run) + u32::from(qp.requester.staged);
        qp.common.facts.put(Facts::SHUTS, room <= left);
    }
    if profile.asks_every > 1 {
        renew_asks(qp, profile, room);
    }
}

/// A program that owns the window lets `room` new packets go: half of the window asks for an acknowledgement.
#[cold]
#[inline(never)]
fn renew_asks(qp: &mut Qp, profile: &Profile, room: u32) {
    let Qp { requester, common, .. } = qp;
    if profile.recovery.owns_window() {
        let packets = room.saturating_add(requester.high.wrapping_sub(requester.una));
        let window = packets.saturating_mul(profile.mtu.into()).min(requester.window);
        common.asks_every = profile.asks_every_at(requester.pacer.rate_kbps(), window);
    }
}

impl Engine {
    /// Something is lost.
    pub(crate) fn lost(&mut self, now: Instant, slot: usize, event: Loss) {
        let begins = !self.qps[slot].requester.notes.has(Notes::RECOVERING);
        let requester = &self.qps[slot].requester;
        let (una, in_flight) = (requester.una, requester.high.wrapping_sub(requester.una));
        if in_flight == 0 {
            return;
        }
        if begins {
            self.begin_recovery(slot, una, in_flight);
        }
        let timeout = event == Loss::Timeout;
        if timeout {
            self.doubt_result(slot);
        }
        let heard = (begins || event.is_told_each_time()) && self.hears(slot, Class::LOSS);
        let length = match event {
            Loss::Lost { psn } if heard => self.payload_in_flight(slot, sequence(psn, una)),
            _ => 0,
        };
        self.observe(now, slot, event);
        self.probe_after(slot, timeout);
        if heard {
            let event = Event { timeout, length, ..self.event(now, slot, Class::LOSS) };
            self.tell_law(now, slot, &event);
            // What the law refused before it heard of the loss, it may let go now.
            self.qps[slot].requester.standing.clear(Standing::PARKED);
        }
        if !self.profile(slot).names_packets() {
            self.laws.forget_times(self.qps[slot].common.law);
        }
        self.arm(now, slot);
    }

    /// A request comes to be sent: a program that owns the window begins with the first.
    #[inline]
    pub(crate) fn open_window(&mut self, slot: usize) {
        if self.profile(slot).recovery.owns_window() && !self.qps[slot].requester.notes.has(Notes::RECOVERING)
        {
            let requester = &self.qps[slot].requester;
            let (una, in_flight) = (requester.una, requester.high.wrapping_sub(requester.una));
            self.begin_recovery(slot, una, in_flight);
            self.bound_staged(slot);
        }
    }

    pub(crate) fn begin_recovery(&mut self, slot: usize, una: u32, in_flight: u32) {
        let profile = self.profile(slot);
        let first = Psn::new(una);
        let mut sender = Sender::new(first, Program::new(profile.recovery, profile.initial_window, first));
        sender.sent(in_flight);
        self.slow.entries += u64::from(profile.recovery.has_slow_path());
        self.aside(slot).losing = Some(Losing { sender, asked: 0, hint: NONE, probe: None });
        self.end_run(slot);
        self.qps[slot].requester.notes.set(Notes::RECOVERING);
    }

    /// [`hear`].
    #[inline]
    pub(crate) fn hear(&mut self, slot: usize) {
        hear(&mut self.qps[slot], &mut self.asides);
    }

    /// The loss that the queue pair is in, with a fixed stage that knows how far was sent: packets that stream do not tell
    /// it.
    pub(crate) fn losing(&mut self, slot: usize) -> Option<&mut Losing> {
        self.hear(slot);
        let Qp { requester, common, .. } = &self.qps[slot];
        if common.aside == NONE {
            return None;
        }
        let losing = self.asides.get_mut(common.aside).losing.as_mut()?;
        losing.sender.has_sent(Psn::new(requester.high));
        Some(losing)
    }

    fn bound(&mut self, slot: usize, room: u32) {
        let qp = &mut self.qps[slot];
        bound(qp, &self.profiles[usize::from(qp.common.profile)], room);
    }

    /// No more is let through than the program lets go.
    fn bound_staged(&mut self, slot: usize) {
        let room = self.recovery_room(slot);
        self.bound(slot, room);
    }

    /// Takes an event into the window, and has it decided, now or elsewhere.
    fn observe(&mut self, now: Instant, slot: usize, event: Loss) {
        let profile = self.profile(slot);
        let (deferred, slow) = (profile.deferred.recovery, profile.recovery.has_slow_path());
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_none() {
            return;
        }
        let Aside { losing: Some(losing), undecided, .. } = self.asides.get_mut(index) else { return };
        let Some(observed) = losing.sender.observe(&mut self.boards, event) else { return };
        if !observed.wants_decision {
            if observed.advanced > 0 {
                self.restart_timer(now, slot);
            }
            return;
        }
        let is_ack = matches!(observed.event, Loss::Ack { .. });
        if !is_ack && (slow || deferred)
            || slow && !matches!(observed.event, Loss::Ack { selective: None, .. })
        {
            self.slow.packets += u64::from(slow);
            self.slow.bitmap_reads += u64::from(slow);
            self.slow.bitmap_writes += u64::from(slow && observed.newly_acked > 0);
            if deferred {
                undecided.push_back(observed);
                if losing.asked == 0 {
                    self.ask_for_decision(slot);
                }
                return;
            }
        }
        let decision = losing.sender.decide(&self.boards, now, &observed);
        self.decided(now, slot, &decision);
    }

    fn ask_for_decision(&mut self, slot: usize) {
        let srnic = self.profile(slot).recovery == Recovery::Srnic;
        let aside = self.aside(slot);
        let number = aside.next_decision();
        aside.loss_out = number;
        let Aside { losing: Some(losing), undecided, .. } = aside else { return };
        // SRNIC's slow path takes all that waits, and the queue pair goes on sending meanwhile.
        losing.asked = if srnic { u32::try_from(undecided.len()).unwrap_or(1) } else { 1 };
        let packets = losing.asked;
        if !srnic {
            self.qps[slot].requester.standing.set(Standing::RECOVERY_OUT);
        }
        let token = self.token(slot, Purpose::Recovery, number);
        self.defer(Deferral::Recovery { token, qpn: self.qps[slot].common.qpn, packets });
    }

    /// The decision that was out may take effect.
    pub(crate) fn recovered(&mut self, now: Instant, slot: usize, number: u32) {
        let index = self.qps[slot].common.aside;
        if index == NONE || self.asides.get_mut(index).loss_out != number {
            return;
        }
        self.qps[slot].requester.standing.clear(Standing::RECOVERY_OUT);
        let asked = self.losing(slot).map_or(0, |losing| core::mem::take(&mut losing.asked));
        for _ in 0..asked {
            let Aside { losing: Some(losing), undecided, .. } = self.asides.get_mut(index) else { break };
            let Some(observed) = undecided.pop_front() else { break };
            let decision = losing.sender.decide(&self.boards, now, &observed);
            self.decided(now, slot, &decision);
        }
        if asked > 0 && self.losing(slot).is_some() && !self.asides.get_mut(index).undecided.is_empty() {
            self.ask_for_decision(slot);
        }
        self.arm(now, slot);
    }

    pub(crate) fn decided(&mut self, now: Instant, slot: usize, decision: &Decision) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_some()
            && let Some(losing) = &mut self.asides.get_mut(index).losing
        {
            losing.sender.apply(&mut self.boards, decision);
            self.bound_staged(slot);
        }
        if decision.restart_timer {
            self.restart_timer(now, slot);
        }
        if let Some((from, to)) = decision.mark {
            // An acknowledgement of what was sent twice does not tell which of the two it answers (Karn and Partridge). Where it
            // names no packet that holds for all that is in flight.
            let (law, una) = (self.qps[slot].common.law, self.qps[slot].requester.una);
            if self.profile(slot).names_packets() {
                self.laws.forget_times_between(law, sequence(from, una), sequence(to, una));
            } else {
                self.laws.forget_times(law);
            }
        }
        self.note_resends(slot);
        if let Some((from, to)) = decision.mark {
            self.lose_flight(now, slot, to.since(from).unsigned_abs());
        }
    }

    /// Forgets the loss.
    pub(crate) fn end_recovery(&mut self, slot: usize) {
        let requester = &mut self.qps[slot].requester;
        if !requester.notes.has(Notes::RECOVERING) {
            return;
        }
        requester.notes.clear(Notes::RECOVERING.with(Notes::RESENDS));
        requester.standing.clear(Standing::RECOVERY_OUT);
        let una = Psn::new(requester.una);
        self.qps[slot].common.facts.clear(Facts::SHUTS.with(Facts::HEARS_LATER));
        let profile = self.profile(slot);
        let program = Program::new(profile.recovery, profile.initial_window, una);
        let counts = profile.recovery.has_slow_path();
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let aside = self.asides.get_mut(index);
        aside.undecided.clear();
        if let Some(mut losing) = aside.losing.take() {
            self.slow.exits += u64::from(counts);
            losing.sender.reset(&mut self.boards, una, program);
        }
    }

    /// Progress while in a loss, or of a program that owns the window and has lost nothing.
    pub(crate) fn recovery_advanced(&mut self, now: Instant, slot: usize) {
        let Qp { requester, common, .. } = &self.qps[slot];
        let (cumulative, in_flight) = (Psn::new(requester.una), requester.high.wrapping_sub(requester.una));
        if common.aside != NONE
            && let Some(losing) = &mut self.asides.get_mut(common.aside).losing
            && let Some(room) = losing.advance_in_order(&self.boards, cumulative, in_flight)
        {
            self.bound(slot, room);
            let timeout = self.profile(slot).timeout;
            self.restart_timer_at(now, slot, timeout);
            return;
        }
        self.probed(slot);
        self.observe(now, slot, Loss::Ack { cumulative, selective: None });
        self.resend_next_message(now, slot);
        self.follow(now, slot);
    }

    /// New packets that the fixed stage and its program let go.
    pub(crate) fn recovery_room(&mut self, slot: usize) -> u32 {
        self.hear(slot);
        let Qp { requester, common, .. } = &self.qps[slot];
        room(&self.asides, &self.boards, common.aside, requester.high)
    }

    /// The recovery program's congestion window, in packets: that of requests, or of READ responses where there are none.
    pub(crate) fn congestion_window(&self, slot: usize) -> Option<u32> {
        let Qp { requester, common, .. } = &self.qps[slot];
        let losing = self.asides.get(common.aside)?.losing.as_ref();
        let of_requests = losing.and_then(|losing| {
            let is_behind = common.facts.has(Facts::HEARS_LATER);
            let heard = if is_behind { Psn::new(requester.una) } else { losing.sender.start() };
            losing.sender.congestion_window(heard)
        });
        of_requests.or_else(|| self.congestion_window_of_responses(slot))
    }

    /// The retransmission timeout as things stand; zero: never.
    #[inline]
    pub(crate) fn retransmission_timeout(&self, slot: usize) -> Span {
        let profile = self.profile(slot);
        // With layout `homa` receivers ask for what is missing, and do not acknowledge each packet: that few are in
        // flight says nothing.
        if profile.recovery.keeps_timeout() || profile.layout == Layout::Homa {
            return profile.timeout;
        }
        self.timeout_of_program(slot)
    }

    #[inline(never)]
    fn timeout_of_program(&self, slot: usize) -> Span {
        let profile = self.profile(slot);
        let requester = &self.qps[slot].requester;
        let in_flight = requester.high.wrapping_sub(requester.una);
        if in_flight == 0 {
            // Only READ responses are waited for, which the responder sends again by itself, ever later where TCP's programs
            // tell it when: who waits for them has as much patience.
            let spent = profile.retry.saturating_sub(requester.retries).min(7);
            let doubled = if profile.recovery.owns_window() { spent } else { 0 };
            return Span::from_ps(profile.timeout.as_ps().saturating_mul(1 << doubled));
        }
        let aside = self.asides.get(self.qps[slot].common.aside);
        match aside.and_then(|aside| aside.losing.as_ref()) {
            Some(losing) => losing.sender.timeout(Psn::new(requester.high), profile.timeout),
            None => {
                let first = Psn::new(requester.una);
                Program::new(profile.recovery, profile.initial_window, first)
                    .timeout(in_flight, profile.timeout)
            }
        }
    }
}

/// New packets that the fixed stage and its program let go from sequence `high` on, for a queue pair whose loss is in `aside`.
pub(crate) fn room(asides: &Asides, boards: &Pool, aside: u32, high: u32) -> u32 {
    let losing = asides.get(aside).and_then(|aside| aside.losing.as_ref());
    losing.map_or(u32::MAX, |losing| losing.sender.room(boards, Psn::new(high)))
}
