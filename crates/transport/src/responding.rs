//! READ responses with a reliability of their own, at the responder: with selective repeat they are sent like WRITEs,
//! within the window, from a space of sequences of their own; what is lost of them is sent again, by the queue pair's recovery
//! program (SRNIC, NSDI 2023, §4.4.1; IRN, SIGCOMM 2018, §5.2).
//!
//! The requester's side is in [`reading`](crate::reading).

mod losing;
mod timing;

use crate::arrival::{Arrival, Refusal};
use crate::config::Recovery;
use crate::delivery::pool::Pool;
use crate::delivery::program::{Decision, Event as Loss, Program};
use crate::delivery::sender::{Observed, Resend, Sender};
use crate::engine::Engine;
use crate::laws::{LawState, SentTimes};
use crate::qp::{Common, Profile, Requester, after, sequence};
use crate::queue::NONE;
use crate::reads::{Access, Resource, Stage};
use crate::requester::{PutOffs, drawn_by};
use crate::transmit::Plan;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use roci_control::{Class, Event, Part};
use roci_units::{Instant, Psn, Span};
use roci_wire::{Flags, Header, Layout, NakCode, Syndrome};

/// The responses of one queue pair.
#[derive(Debug)]
pub(crate) struct Responding {
    /// Sequence up to which all are acknowledged.
    una: u32,
    /// Sequence of the next that was never sent.
    next: u32,
    /// Sequence after the last that was asked for.
    end: u32,
    /// The window, while in a loss; and always where the recovery program owns it.
    sender: Option<Sender>,
    /// What it saw and has not decided about, for that takes a slow path; the oldest first.
    undecided: VecDeque<Observed>,
    /// How many of them a decision is out about, and its number.
    asked: u32,
    out: u32,
    /// Sent since one last asked for an acknowledgement.
    unasked: u16,
    /// When some of them were sent, for a law that measures round trips.
    sent: SentTimes,
    /// Octets that the law heard were acknowledged, of responses beyond one that is missing.
    told: u32,
    /// Where messages are named, the sequence after the last that had been sent at the last timeout.
    doubted: Option<u32>,
    /// When the oldest is given up for lost.
    deadline: Instant,
    /// The timeout that was it then.
    timeout: Span,
    /// Timeouts left before the queue pair fails.
    retries: u8,
    /// Timeouts that were put off.
    put_offs: PutOffs,
}

impl Responding {
    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The oldest is given up `timeout` from now.
    fn give_up_after(&mut self, now: Instant, timeout: Span) {
        (self.deadline, self.timeout) = (now + timeout, timeout);
    }

    /// Whether some are in flight, and none of them asks for an acknowledgement.
    fn has_still_to_ask(&self) -> bool {
        (1..=self.unasked.into()).contains(&self.next.wrapping_sub(self.una))
    }

    /// Into a loss, unless it is in one; true if it was in none.
    fn enter(&mut self, recovery: Recovery) -> bool {
        let enters = self.sender.is_none();
        if enters {
            let first = Psn::new(self.una);
            let mut sender = Sender::new(first, Program::new(recovery, 1, first));
            sender.sent(self.next.wrapping_sub(self.una));
            self.sender = Some(sender);
        }
        enters
    }

    /// How many new responses may be sent, where `most` may be in flight whatever the recovery program says.
    fn room(&self, boards: &Pool, most: u32) -> u32 {
        let room = most.saturating_sub(self.next.wrapping_sub(self.una));
        let owner = self.sender.as_ref().filter(|sender| sender.owns_window());
        owner.map_or(room, |sender| room.min(sender.room(boards, Psn::new(self.next))))
    }
}

impl Engine {
    fn responding(&mut self, slot: usize) -> Option<&mut Responding> {
        match self.qps[slot].common.aside {
            NONE => None,
            index => self.asides.get_mut(index).responding.as_deref_mut(),
        }
    }

    fn responses_of(&self, slot: usize) -> Option<&Responding> {
        self.asides.get(self.qps[slot].common.aside)?.responding.as_deref()
    }

    /// Sequences for the `packets` responses of a READ.
    pub(crate) fn grant_responses(&mut self, slot: usize, packets: u32) -> (u32, u32) {
        let first = self.qps[slot].responder.course().first;
        let names = self.names_messages(slot);
        let Profile { retry: retries, recovery, initial_window, .. } = *self.profile(slot);
        let responding = self.aside(slot).responding.get_or_insert_with(|| {
            let (sent, deadline) = (SentTimes::default(), Instant::NEVER);
            let psn = Psn::new(first);
            let sender = || Sender::new(psn, Program::new(recovery, initial_window, psn));
            Box::new(Responding {
                una: first,
                next: first,
                end: first,
                sender: recovery.owns_window().then(sender),
                undecided: VecDeque::new(),
                asked: 0,
                out: 0,
                unasked: 0,
                sent,
                told: 0,
                doubted: None,
                deadline,
                timeout: Span::ZERO,
                retries,
                put_offs: PutOffs::default(),
            })
        });
        if names {
            responding.retries = retries;
        }
        let first = responding.end;
        responding.end = first.wrapping_add(packets);
        (first, responding.end)
    }

    /// Takes the oldest READ's responses for arrived, if all have gone: the peer asks for more READs than it may have
    /// outstanding otherwise, so that it has that one.
    pub(crate) fn make_room(&mut self, now: Instant, slot: usize, limit: u8) {
        let reads = &self.reads.get_mut(self.qps[slot].responder.reads).resources;
        let Some(&oldest) = reads.front() else { return };
        if reads.len() < usize::from(limit)
            || !matches!(oldest.access, Access::Read { .. })
            || oldest.pending()
        {
            return;
        }
        self.responses_arrived(now, slot, oldest.end);
        self.observe_responses(now, slot, Loss::Ack { cumulative: Psn::new(oldest.end), selective: None });
    }

    /// Whether a response may be ready to go.
    pub(crate) fn responses_ready(&mut self, slot: usize) -> bool {
        let index = self.qps[slot].common.aside;
        let reads = self.qps[slot].responder.reads;
        if index == NONE || reads == NONE {
            return false;
        }
        let Some(responding) = &self.asides.get_mut(index).responding else { return false };
        if responding.sender.as_ref().is_some_and(|sender| sender.has_marked(&self.boards)) {
            return true;
        }
        if responding.next == responding.end {
            return false;
        }
        self.reads.get_mut(reads).answering(responding.next).is_some_and(|r| r.stage == Stage::Ready)
    }

    /// The next responses: what is lost first, then new ones as far as the windows let them.
    pub(crate) fn plan_separate(&mut self, now: Instant, slot: usize, quantum: u32, plan: &mut Plan) -> bool {
        let (index, reads) = (self.qps[slot].common.aside, self.qps[slot].responder.reads);
        if index == NONE || reads == NONE {
            return false;
        }
        let profile = self.profile(slot);
        let (mtu, window) = (u32::from(profile.mtu), profile.max_in_flight);
        let most = (quantum / mtu).clamp(1, u32::from(u16::MAX));
        let new_only = self.sends_new_only(slot);
        let Some(responding) = &self.asides.get_mut(index).responding else { return false };
        let marked = responding.sender.as_ref().filter(|_| !new_only);
        let resend = marked.and_then(|sender| sender.resend(&self.boards, most));
        let requester = &self.qps[slot].requester;
        let (at, most) = if let Some(run) = resend {
            (sequence(run.psn, responding.una), run.packets)
        } else {
            let mut room = responding.room(&self.boards, window);
            if room == 0
                && responding.has_still_to_ask()
                && responding.next.wrapping_sub(responding.una) < window
            {
                // The program's window has shut behind what asks for no answer.
                room = 1;
            }
            let octets = requester.window.saturating_sub(requester.in_flight);
            // Behind what asks for no answer one more goes, and asks.
            let lets = u32::from(requester.in_flight == 0 || responding.unasked > 0);
            (responding.next, most.min(room).min(lets.max(octets.div_ceil(mtu))))
        };
        if most == 0 || resend.is_none() && responding.next == responding.end {
            return false;
        }
        let Some(resource) = self.reads.get_mut(reads).answering(at) else { return false };
        let Access::Read { length, .. } = resource.access else { return false };
        if resource.stage != Stage::Ready {
            return false;
        }
        let (first, end) = (resource.first, resource.end);
        if resource.keys_ended != self.keys_ended && !self.check_read(now, slot, at) {
            return false;
        }
        let left = end.wrapping_sub(at);
        let run = left.min(most);
        (plan.response, plan.work, plan.at, plan.fresh) = (true, NONE, at, resend.is_none());
        plan.length = if run == left { length - at.wrapping_sub(first) * mtu } else { run * mtu };
        plan.packets = u16::try_from(run).unwrap_or(u16::MAX);
        true
    }

    /// Accounts for responses that were sent; gives the flags of the last of them, which may end a READ.
    pub(crate) fn sent_separately(&mut self, now: Instant, slot: usize, plan: &Plan, ends: bool) -> Flags {
        let asked_none = self.responses_of(slot).is_some_and(Responding::has_still_to_ask);
        self.account_for_responses(now, slot, plan);
        let asks = self.asks_for_answer(slot, plan);
        let layout = self.profile(slot).layout;
        // With Homa a message is acknowledged when it has come.
        let every = if layout == Layout::Homa { u8::MAX } else { self.qps[slot].common.asks_every };
        let pulled = layout == Layout::Ndp;
        let drained = pulled && !self.more_follows(slot);
        let Some(responding) = self.responding(slot) else { return Flags::NONE };
        let mut flags = Flags::NONE;
        responding.unasked = responding.unasked.saturating_add(plan.packets);
        if asks || ends || responding.unasked >= every.into() {
            responding.unasked = 0;
            flags = Flags::ACK_REQUEST;
        }
        self.time_responses(now, slot, plan, asked_none);
        if drained {
            flags = flags.with(Flags::DRAINED);
        }
        self.aside(slot).drained = drained;
        flags
    }

    /// Whether the last of the responses that were sent has to ask for an acknowledgement: what is sent again does, where
    /// the requester may know of no gap; and where nothing new may follow before one comes.
    fn asks_for_answer(&self, slot: usize, plan: &Plan) -> bool {
        let window = self.profile(slot).max_in_flight;
        let Requester { in_flight, window: octets, .. } = &self.qps[slot].requester;
        let shuts = in_flight >= octets;
        self.responses_of(slot)
            .is_some_and(|responding| !plan.fresh || shuts || responding.room(&self.boards, window) == 0)
    }

    /// Whether responses wait to be sent for the first time or again.
    pub(crate) fn responses_follow(&self, slot: usize) -> bool {
        self.responses_of(slot).is_some_and(|responding| {
            let resends = responding.sender.as_ref().is_some_and(|sender| sender.has_marked(&self.boards));
            resends || responding.next != responding.end
        })
    }

    /// The congestion window of responses in packets, where the recovery program owns one.
    pub(crate) fn congestion_window_of_responses(&self, slot: usize) -> Option<u32> {
        let sender = self.responses_of(slot)?.sender.as_ref()?;
        sender.congestion_window(sender.start())
    }

    /// Responses that were sent and are not acknowledged in order.
    pub(crate) fn responses_in_flight(&self, slot: usize) -> u32 {
        self.responses_of(slot).map_or(0, |r| r.next.wrapping_sub(r.una))
    }

    /// How many responses are missing up to `psn`, as far as is known.
    pub(crate) fn responses_unanswered_up_to(&self, slot: usize, psn: Psn) -> u32 {
        self.responses_of(slot).map_or(0, |responding| {
            let at = sequence(psn, responding.una);
            after(at, responding.una).saturating_add(1).max(0).cast_unsigned()
        })
    }

    fn account_for_responses(&mut self, now: Instant, slot: usize, plan: &Plan) {
        // They take of the window what the rest of a run counts on.
        self.end_run(slot);
        let Common { aside: index, law, .. } = self.qps[slot].common;
        let timed = self.laws.states.get(law as usize).is_some_and(LawState::is_timed);
        let aside = self.asides.get_mut(index);
        let Some(responding) = &mut aside.responding else { return };
        let packets = u32::from(plan.packets);
        if !plan.fresh {
            aside.retransmitted += packets;
            if let Some(sender) = &mut responding.sender {
                aside.repeated += sender.resent(&mut self.boards, Resend { psn: Psn::new(plan.at), packets });
            }
            return;
        }
        responding.next = responding.next.wrapping_add(packets);
        if timed {
            responding.sent.note(responding.next, now);
        }
        if let Some(sender) = &mut responding.sender {
            sender.sent(packets);
        }
        let requester = &mut self.qps[slot].requester;
        requester.in_flight = requester.in_flight.saturating_add(plan.length);
    }

    /// A READ_ACKNOWLEDGE: all responses before its PSN have arrived, and it names the one that drew it.
    pub(crate) fn on_read_acknowledge(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
    ) -> Result<(), Refusal> {
        let header = arrival.header;
        let Profile { layout, recovery, retry, .. } = *self.profile(slot);
        let Some(responding) = self.responding(slot) else { return Err(Refusal::UnexpectedResponse) };
        let (una, next) = (responding.una, responding.next);
        let at = sequence(header.psn, una);
        let pulled = layout == Layout::Ndp;
        let (upto, class) = match Syndrome::from_u8(header.aeth().syndrome) {
            Some(Syndrome::Ack { .. }) => (at.wrapping_add(1), Class::ACK),
            Some(Syndrome::Nak(NakCode::PsnSequenceError)) => (at, Class::NACK),
            _ => return Err(Refusal::UnexpectedResponse),
        };
        let upto = if pulled { sequence(header.pull().expected, una) } else { upto };
        if after(upto, next) > 0 || class == Class::NACK && upto == next {
            return Err(Refusal::UnexpectedResponse);
        }
        let drawn_by = sequence(drawn_by(header, layout), una);
        let came = after(drawn_by, upto) > 0 && after(drawn_by, una) >= 0 && after(drawn_by, next) < 0;
        if after(upto, una) < 0 && !came && !pulled {
            return Err(Refusal::Duplicate);
        }
        if pulled && let Some(responding) = self.responding(slot) {
            // As with requests: who answers is there.
            responding.retries = retry;
        }
        // Who counts repetitions keeps track of no single packets.
        let came = came && recovery.of_responses().is_selective();
        let mut octets = self.responses_arrived(now, slot, upto);
        let news = if came { self.news_of_responses(slot, drawn_by, class) } else { 0 };
        let (cumulative, came) = (Psn::new(upto), came.then(|| Psn::new(drawn_by)));
        let mut loss = Loss::Ack { cumulative, selective: came };
        if class == Class::NACK {
            self.aside(slot).naks += 1;
            loss = Loss::Nack { cumulative, trigger: came };
            let una = self.responding(slot).map_or(upto, |responding| responding.una);
            if pulled && after(drawn_by, una) >= 0 && after(drawn_by, next) < 0 {
                octets += self.observe_responses(now, slot, Loss::Ack { cumulative, selective: None });
                loss = Loss::Lost { psn: Psn::new(drawn_by) };
            } else if pulled {
                loss = Loss::Ack { cumulative, selective: None };
            }
        }
        octets += self.observe_responses(now, slot, loss);
        if octets > 0 {
            self.resend_next_data(slot);
        }
        if let Some(responding) = self.responding(slot) {
            let told = octets.min(responding.told);
            responding.told = responding.told - told + news;
            octets = octets - told + news;
        }
        self.note_responses(slot);
        // As with requests: a NAK acknowledges the response that drew it.
        let stands_in = class == Class::NACK && !self.hears(slot, class) && octets > 0;
        let class = if stands_in { Class::ACK } else { class };
        if self.hears(slot, class) {
            let answered = self.responding(slot).map(|r| {
                let sent = r.sent.take(drawn_by);
                r.sent.before(r.una);
                (r.una, r.next, sent)
            });
            let answered = answered.unwrap_or((0, 0, Instant::ZERO));
            let base = self.qps[slot].responder.course().first;
            let event = self.heard(now, slot, arrival, class);
            let event = Event {
                opcode: header.opcode.0,
                ecn: header.flags.has(Flags::BECN),
                acked: octets,
                sent: answered.2,
                hop_count: u8::try_from(arrival.hops.len()).unwrap_or(u8::MAX),
                acked_sequence: event.acked_sequence.wrapping_add(answered.0.wrapping_sub(base)),
                next_sequence: event.next_sequence.wrapping_add(answered.1.wrapping_sub(base)),
                ..event
            };
            let event = if pulled { self.pulled_event(slot, header, event) } else { event };
            self.tell_law(now, slot, &event);
        }
        self.arm(now, slot);
        Ok(())
    }

    /// The header of response `psn` came back: it is lost. False where it is none that is under way.
    pub(crate) fn response_returned(&mut self, now: Instant, slot: usize, psn: Psn) -> bool {
        let Some(responding) = self.responding(slot) else { return false };
        let at = sequence(psn, responding.una);
        if after(at, responding.una) < 0 || after(at, responding.next) >= 0 {
            return false;
        }
        self.observe_responses(now, slot, Loss::Lost { psn });
        self.note_responses(slot);
        self.arm(now, slot);
        true
    }

    /// Who asks for a READ, once more or for the first time, is there, however long what it was sent stands in a queue of a lower
    /// priority (layout `homa`).
    pub(crate) fn reader_is_there(&mut self, slot: usize) {
        let (retry, names) = (self.profile(slot).retry, self.names_messages(slot));
        if let Some(responding) = self.responding(slot).filter(|_| names) {
            responding.retries = retry;
        }
    }

    /// Where the response that was planned goes again after a timeout for being the first that is missing: how many there were before
    /// that, since something was heard.
    pub(crate) fn timeouts_before_response(&self, slot: usize, plan: &Plan) -> Option<u8> {
        if plan.fresh {
            return None;
        }
        let responding = self.responses_of(slot)?;
        let spent = self.profile(slot).retry.saturating_sub(responding.retries);
        (responding.doubted.is_some() && plan.at == responding.una).then_some(spent.saturating_sub(1))
    }

    /// Whether the data of the READ that came last stand for the acknowledgement of its request (layout `homa`): one packet, which
    /// the window lets go with all that is before it.
    pub(crate) fn is_answered_at_once(&self, slot: usize, header: &Header) -> bool {
        let Profile { mtu, max_in_flight, .. } = *self.profile(slot);
        header.reth().length <= u32::from(mtu)
            && self.names_messages(slot)
            && self.responses_of(slot).is_some_and(|r| r.end.wrapping_sub(r.una) <= max_in_flight)
    }

    /// The request of a READ came once more: whose data stand for its acknowledgement, his data have not come.
    #[cold]
    pub(crate) fn answer_request_again(&mut self, now: Instant, slot: usize, resource: &Resource) {
        let (first, end) = (resource.first, resource.end);
        let sent = self.responses_of(slot).is_some_and(|r| after(end, r.next) <= 0 && after(end, r.una) > 0);
        if sent && end == first.wrapping_add(1) {
            let recovery = self.profile(slot).recovery;
            self.lose_responses(slot, recovery, first, end);
            self.note_responses(slot);
            self.arm(now, slot);
        }
    }

    /// The reader asks for octets of READ data again (layout `homa`): those that were sent and not acknowledged are marked. Where there
    /// are none, for their turn has not come, or while others wait to be sent and it asks for the last that were as well, it is
    /// told to be patient.
    #[cold]
    pub(crate) fn on_resend_of_responses(&mut self, now: Instant, slot: usize, part: &Part) {
        let Profile { mtu, recovery, max_in_flight, .. } = *self.profile(slot);
        let mtu = u32::from(mtu);
        self.reader_is_there(slot);
        let reads = self.qps[slot].responder.reads;
        let request = self.qps[slot].responder.course().first.wrapping_add(part.message);
        if reads == NONE {
            return;
        }
        let resource = self.reads.get_mut(reads).requested(request).copied();
        let Some(resource) = resource.filter(|r| matches!(r.access, Access::Read { .. })) else {
            // All of it is acknowledged, or its request has still to come.
            return;
        };
        let Some(responding) = self.responding(slot) else { return };
        let (una, next, end) = (responding.una, responding.next, responding.end);
        let more = next != end && next.wrapping_sub(una) < max_in_flight;
        let earlier = |a: u32, b: u32| if after(a, b) < 0 { a } else { b };
        let asked = earlier(resource.first.wrapping_add(part.end.div_ceil(mtu)), resource.end);
        let from = resource.first.wrapping_add(part.offset / mtu);
        let (from, to) = (if after(from, una) > 0 { from } else { una }, earlier(asked, next));
        if after(to, from) <= 0 || after(asked, next) >= 0 && more {
            return self.say_data_wait(slot, part.message);
        }
        self.lose_responses(slot, recovery, from, to);
        self.note_responses(slot);
        self.arm(now, slot);
    }

    /// Marks responses from `from` to before `to` to be sent again, but for those that are known to have arrived.
    fn lose_responses(&mut self, slot: usize, recovery: Recovery, from: u32, to: u32) {
        let index = self.qps[slot].common.aside;
        let Some(responding) = &mut self.asides.get_mut(index).responding else { return };
        responding.enter(recovery);
        let Some(sender) = &mut responding.sender else { return };
        let mark = Some((Psn::new(from), Psn::new(to)));
        sender.apply(&mut self.boards, &Decision { mark, window: None, restart_timer: false });
        responding.sent.forget_between(from, to);
    }

    /// Responses before the first that is missing have arrived, after a timeout perhaps: as with requests, the READ's data that are next
    /// to come begin again.
    fn resend_next_data(&mut self, slot: usize) {
        let recovery = self.profile(slot).recovery;
        let reads = self.qps[slot].responder.reads;
        let Some(responding) = self.responding(slot) else { return };
        let Some(sent) = responding.doubted else { return };
        let una = responding.una;
        if after(sent, una) <= 0 {
            responding.doubted = None;
        } else if reads != NONE && self.reads.get_mut(reads).answering(una).is_some_and(|r| r.first == una) {
            self.lose_responses(slot, recovery, una, una.wrapping_add(1));
        }
    }

    /// The octets of the response `at` if the acknowledgement of `class` that names it is the first to say that it arrived, and
    /// that will be remembered.
    fn news_of_responses(&mut self, slot: usize, at: u32, class: Class) -> u32 {
        let Some(responding) = self.responses_of(slot) else { return 0 };
        let remembers = match &responding.sender {
            Some(sender) => !sender.knows(&self.boards, Psn::new(at)) && sender.remembers(&self.boards),
            None => {
                (class == Class::NACK || self.profile(slot).layout == Layout::Ndp) && self.boards.available()
            }
        };
        if remembers { self.payload_of_response(slot, at) } else { 0 }
    }

    /// Octets of payload in the response at `at`, which is in flight.
    fn payload_of_response(&mut self, slot: usize, at: u32) -> u32 {
        let mtu = u32::from(self.profile(slot).mtu);
        let reads = self.qps[slot].responder.reads;
        if reads == NONE {
            return 0;
        }
        let Some(resource) = self.reads.get_mut(reads).answering(at) else { return 0 };
        let Access::Read { length, .. } = resource.access else { return 0 };
        mtu.min(length.saturating_sub(at.wrapping_sub(resource.first) * mtu))
    }

    /// Responses before `upto` have arrived; gives their octets of payload.
    fn responses_arrived(&mut self, now: Instant, slot: usize, upto: u32) -> u32 {
        let Profile { mtu, retry: retries, recovery, .. } = *self.profile(slot);
        let mtu = u32::from(mtu);
        let reads = self.qps[slot].responder.reads;
        let Some(responding) = self.responding(slot) else { return 0 };
        let (una, next) = (responding.una, responding.next);
        if after(upto, una) <= 0 || reads == NONE {
            return 0;
        }
        responding.una = upto;
        responding.retries = retries;
        let mut octets = 0;
        self.reads.get_mut(reads).resources.retain(|resource| {
            let Access::Read { length, .. } = resource.access else { return true };
            let to = |sequence: u32| {
                let packets = after(sequence, resource.first).max(0).unsigned_abs();
                if packets >= resource.end.wrapping_sub(resource.first) { length } else { packets * mtu }
            };
            octets += to(upto) - to(una);
            after(resource.end, upto) > 0
        });
        let requester = &mut self.qps[slot].requester;
        requester.in_flight = requester.in_flight.saturating_sub(octets);
        let timeout = self.response_timeout(slot);
        if let Some(responding) = self.responding(slot) {
            if upto == next || timeout.is_zero() {
                responding.deadline = Instant::NEVER;
            } else if !recovery.owns_window() {
                // Else the program says whether the timer starts again.
                responding.give_up_after(now, timeout);
            }
        }
        octets
    }

    /// Forgets the responses.
    pub(crate) fn end_responding(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let recovery = self.profile(slot).recovery.of_responses();
        if let Some(responding) = self.asides.get_mut(index).responding.take()
            && let Some(mut sender) = responding.sender
        {
            let first = Psn::new(0);
            sender.reset(&mut self.boards, first, Program::new(recovery, 1, first));
        }
    }
}
