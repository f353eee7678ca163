//! The sending side of a loss: the fixed stage of delivery and the recovery program, for as long as it lasts.
//!
//! A queue pair in order has neither. Both begin with the first NAK or timeout, with the window that is in flight
//! then, and end when nothing is marked and the program has nothing in mind. Where the program owns the window both
//! begin with the first request and stay.

use crate::arrival::Deferral;
use crate::aside::{Aside, Asides};
use crate::config::Recovery;
use crate::delivery::pool::Pool;
use crate::delivery::program::{Decision, Event as Loss, Program};
use crate::delivery::sender::Sender;
use crate::engine::Engine;
use crate::probing::Probe;
use crate::qp::{Facts, Notes, Profile, Qp, Requester, Standing, after, sequence};
use crate::queue::{Kind, NONE, flag};
use crate::token::Purpose;
use crate::transmit::Plan;
use core::hint::cold_path;
use roci_control::{Class, Credit, Event};
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

    /// Brings the queue pair's notes up to date, and ends the recovery when nothing is left of it.
    fn note_resends(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_none() {
            return;
        }
        let Aside { losing: Some(losing), undecided, .. } = self.asides.get_mut(index) else { return };
        let marked = losing.sender.has_marked(&self.boards);
        let over = undecided.is_empty() && losing.sender.is_in_order();
        let notes = &mut self.qps[slot].requester.notes;
        if marked {
            notes.set(Notes::RESENDS);
        } else {
            notes.clear(Notes::RESENDS);
            if over {
                self.end_recovery(slot);
            }
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

    /// An acknowledgement that the program is to hear of beyond the progress it brought: it names a packet that came
    /// out of order, or repeats the last one.
    pub(crate) fn acknowledged_again(
        &mut self,
        now: Instant,
        slot: usize,
        upto: u32,
        trigger: Psn,
        moved: bool,
    ) {
        let requester = &self.qps[slot].requester;
        let (una, high) = (requester.una, requester.high);
        let recovery = self.profile(slot).recovery;
        if !recovery.owns_window() || una == high {
            return;
        }
        let cumulative = Psn::new(una);
        let selective = (recovery == Recovery::Sack && trigger.since(cumulative) >= 0).then_some(trigger);
        if selective.is_none() && (moved || upto != una) {
            return;
        }
        let began = |losing: Option<&mut Losing>| losing.is_some_and(|losing| losing.sender.recovers());
        let before = began(self.losing(slot));
        self.observe(now, slot, Loss::Ack { cumulative, selective });
        self.follow(now, slot);
        if !before && began(self.losing(slot)) && self.hears(slot, Class::LOSS) {
            let event = self.event(now, slot, Class::LOSS);
            self.tell_law(now, slot, &event);
        }
    }

    /// The octets of the packet `psn` if an acknowledgement that names it is the first to say that it arrived, beyond one that
    /// is missing. They are told to the law now, and not again when all before it have arrived as well. A loss `begins` with that
    /// acknowledgement, or has begun.
    #[cold]
    pub(crate) fn take_news(&mut self, slot: usize, psn: Psn, begins: bool) -> Option<u32> {
        let (una, high) = (self.qps[slot].requester.una, self.qps[slot].requester.high);
        let at = sequence(psn, una);
        let profile = self.profile(slot);
        if !profile.names_packets()
            || !profile.recovery.is_selective()
            || after(at, una) < 0
            || after(at, high) >= 0
        {
            return None;
        }
        let aside = self.asides.get(self.qps[slot].common.aside);
        let remembers = match aside.and_then(|aside| aside.losing.as_ref()) {
            Some(losing) if losing.sender.knows(&self.boards, psn) => false,
            Some(losing) => losing.sender.remembers(&self.boards),
            None => begins && self.boards.available(),
        };
        if !remembers {
            return None;
        }
        let octets = self.payload_in_flight(slot, at);
        self.aside(slot).told += octets;
        Some(octets)
    }

    /// Octets of payload in the packet at `at`, which is in flight.
    fn payload_in_flight(&self, slot: usize, at: u32) -> u32 {
        let mtu = u32::from(self.profile(slot).mtu);
        let mut index = self.search_from(slot, at);
        while after(at, self.sends.get(index).end) >= 0 {
            index = self.sends.get(index).next;
        }
        let work = self.sends.get(index);
        match work.kind {
            _ if work.kind.is_read_or_atomic() => 0,
            _ if at.wrapping_add(1) == work.end => work.length - at.wrapping_sub(work.first) * mtu,
            _ => mtu,
        }
    }

    /// How many of `octets`, newly acknowledged in order, the law has been told of: all that it has, at most.
    #[inline]
    pub(crate) fn take_told(&mut self, slot: usize, octets: u32) -> u32 {
        if !self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            return 0;
        }
        let told = &mut self.aside(slot).told;
        let before = octets.min(*told);
        *told -= before;
        before
    }

    /// An acknowledgement named a packet that came out of order.
    pub(crate) fn came_out_of_order(&mut self, now: Instant, slot: usize, psn: Psn) {
        let cumulative = Psn::new(self.qps[slot].requester.una);
        if self.qps[slot].requester.notes.has(Notes::RECOVERING) && psn.since(cumulative) >= 0 {
            self.observe(now, slot, Loss::Ack { cumulative, selective: Some(psn) });
            self.follow(now, slot);
        }
    }

    /// The same where that may be the first sign of a gap: what has arrived beyond it is remembered, lest a timeout send it again.
    pub(crate) fn named_out_of_order(&mut self, now: Instant, slot: usize, psn: Psn) {
        let Requester { una, high, notes, .. } = &self.qps[slot].requester;
        let at = sequence(psn, *una);
        if after(at, *high) >= 0 {
            return;
        }
        if after(at, *una) > 0
            && !notes.has(Notes::RECOVERING)
            && self.state(slot).sends()
            && self.boards.available()
        {
            let (una, in_flight) = (*una, high.wrapping_sub(*una));
            self.begin_recovery(slot, una, in_flight);
        }
        self.came_out_of_order(now, slot, psn);
    }

    /// Follows the fixed stage where it knows more.
    fn follow(&mut self, now: Instant, slot: usize) {
        let cumulative = Psn::new(self.qps[slot].requester.una);
        self.note_resends(slot);
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_some()
            && let Some(losing) = &self.asides.get_mut(index).losing
        {
            let missing = losing.sender.first_missing(&self.boards);
            if missing != cumulative {
                let upto = self.before_result(slot, sequence(missing, self.qps[slot].requester.una));
                self.acknowledge(now, slot, upto);
            }
        }
    }

    /// `upto`, or the sequence of an atomic before it that has no result yet. That its request came behind a gap says nothing of
    /// that: it is carried out, and answered, when its turn has come.
    fn before_result(&self, slot: usize, upto: u32) -> u32 {
        let mut index = self.search_from(slot, self.qps[slot].requester.una);
        while index != NONE {
            let work = self.sends.get(index);
            if !work.has(flag::NUMBERED) || after(work.first, upto) >= 0 {
                break;
            }
            if matches!(work.kind, Kind::FetchAdd | Kind::CompareSwap) && !work.has(flag::ANSWERED) {
                return work.first;
            }
            index = work.next;
        }
        upto
    }

    /// The first run of packets that are marked to be sent again, within one message; of no packets where a window holds
    /// it back.
    ///
    /// Go-back-N takes all that is in flight for lost, so the window bounds what has been sent again as it bounds what is
    /// new. Elsewhere the others are still under way, and what is sent again takes the place of what was lost.
    pub(crate) fn plan_resend(&mut self, slot: usize, quantum: u32) -> Option<Plan> {
        let mtu = u32::from(self.profile(slot).mtu);
        let (una, window) = (self.qps[slot].requester.una, self.qps[slot].requester.window);
        let bounded = self.profile(slot).recovery == Recovery::GoBackN && window != Credit::UNLIMITED;
        let index = self.qps[slot].common.aside;
        self.losing(slot)?;
        let head = self.search_from(slot, una);
        let losing = self.asides.get_mut(index).losing.as_mut()?;
        let most = (quantum / mtu).clamp(1, u32::from(u16::MAX));
        let run = losing.sender.resend(&self.boards, most)?;
        let at = sequence(run.psn, una);
        let mut place = head;
        if losing.hint != NONE && after(at, self.sends.get(losing.hint).first) >= 0 {
            place = losing.hint;
        }
        while after(at, self.sends.get(place).end) >= 0 {
            place = self.sends.get(place).next;
        }
        losing.hint = place;
        let work = self.sends.get(place);
        debug_assert!(work.has(flag::NUMBERED), "what is in flight has numbers");
        let left = work.end.wrapping_sub(at);
        let mut packets = if work.kind.is_read_or_atomic() { 1 } else { run.packets.min(left) };
        if bounded && !work.kind.is_read_or_atomic() {
            let lets = (window / mtu).max(1).saturating_sub(at.wrapping_sub(una));
            // As with new packets: where the window has shut behind what asks for nothing, one goes that asks.
            packets = packets.min(lets.max(u32::from(self.qps[slot].requester.unasked > 0)));
        }
        if let Some(probe) = losing.probe {
            packets = packets.min(probe.lets(at));
        }
        let length = match work.kind {
            _ if work.kind.is_read_or_atomic() => 0,
            _ if packets == left => work.length - at.wrapping_sub(work.first) * mtu,
            _ => packets * mtu,
        };
        let packets = u16::try_from(packets).ok()?;
        Some(Plan { response: false, work: place, at, packets, length, fresh: false })
    }

    /// Packets from `at` to before `end` were sent again.
    pub(crate) fn resent(&mut self, slot: usize, at: u32, end: u32) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_none() {
            return;
        }
        let aside = self.asides.get_mut(index);
        let Some(losing) = &mut aside.losing else { return };
        // A READ is asked for to its end, though fewer of its packets may be marked.
        if let Some(run) = losing.sender.resend(&self.boards, end.wrapping_sub(at)) {
            debug_assert_eq!(run.psn, Psn::new(at), "what is marked first is sent first");
            aside.repeated += losing.sender.resent(&mut self.boards, run);
        }
        self.note_resends(slot);
    }

    /// A READ's response is missing: asks for the rest of it, once until it moves on. With go-back-N it asks for all that is
    /// outstanding, and that costs a retry, as the NAK would that it stands for.
    pub(crate) fn ask_again(&mut self, now: Instant, slot: usize) {
        let requester = &self.qps[slot].requester;
        let (una, in_flight) = (requester.una, requester.high.wrapping_sub(requester.una));
        if self.aside(slot).asked_at == Some(una) {
            return;
        }
        if !self.profile(slot).recovery.keeps_out_of_order() && !self.spend_retry(now, slot) {
            return;
        }
        if !self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            self.begin_recovery(slot, una, in_flight);
        }
        let end = match self.profile(slot).separate_reads() {
            true => una.wrapping_add(1),
            // What followed of the answers was dropped, for it came before its turn: all that is outstanding is asked again.
            false => self.qps[slot].requester.high,
        };
        self.doubt_result(slot);
        self.probe_after(slot, false);
        let aside = self.aside(slot);
        aside.asked_at = Some(una);
        let mark = Some((Psn::new(una), Psn::new(end)));
        self.decided(now, slot, &Decision { mark, window: None, restart_timer: false });
    }

    /// What is first to be acknowledged is to be sent again though its request is known to have arrived: had an atomic's
    /// result arrived as well, it would be acknowledged.
    fn doubt_result(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_some()
            && let Some(losing) = &mut self.asides.get_mut(index).losing
        {
            losing.sender.doubt_first(&mut self.boards);
        }
    }

    /// A request left its queue: no search may begin there.
    #[inline]
    pub(crate) fn forget_hint(&mut self, slot: usize, work: u32) {
        if self.qps[slot].requester.notes.has(Notes::RECOVERING)
            && let Some(losing) = self.losing(slot)
            && losing.hint == work
        {
            losing.hint = NONE;
        }
    }

    /// New packets that the fixed stage and its program let go.
    pub(crate) fn recovery_room(&mut self, slot: usize) -> u32 {
        self.hear(slot);
        let Qp { requester, common, .. } = &self.qps[slot];
        room(&self.asides, &self.boards, common.aside, requester.high)
    }

    /// Whether `packets` that are about to be sent have to be acknowledged at once: they were lost before, or no others
    /// follow until they are.
    ///
    /// Where single packets are sent again, they may fill no gap that the receiver knows of, as after the loss of all that
    /// followed: it would take them for the next of many. And where READ responses acknowledge what came before them, as in
    /// layout `homa`, a responder that has the packet may owe no answer but to one that asks.
    pub(crate) fn wants_answer(&mut self, slot: usize, plan: &Plan) -> bool {
        let ends_probe = self.ends_probe(slot, plan);
        let profile = self.profile(slot);
        ends_probe
            || !plan.fresh && profile.recovery.keeps_out_of_order()
            || profile.recovery.owns_window()
                && (!plan.fresh || self.recovery_room(slot) <= u32::from(plan.packets))
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
