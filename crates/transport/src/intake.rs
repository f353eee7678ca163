//! The common cases of receiving, in one piece: the next full packet in the middle of a WRITE or SEND that is under way,
//! a WRITE of one packet, and the acknowledgement of some packets of one.
//!
//! As [`stream`](crate::stream) does for sending, they do what the long way does, with the same result, but read each
//! fact once. Whatever is not a common case changes nothing here and goes the long way.

use crate::arrival::{Arrival, Placement, Reaction};
use crate::aside::Asides;
use crate::config::Recovery;
use crate::delivery::pool::Pool;
use crate::engine::{Engine, TIMER_ACK, direct};
use crate::limit::acknowledges;
use crate::memory::{Access, Regions};
use crate::qp::{Duties, Facts, Notes, Profile, Qp, Requester, ShortWay, Standing, after, sequence};
use crate::queue::{Kind, NONE, SendWork};
use crate::recovery::{bound, hear};
use crate::requester::drawn_by;
use crate::schedule::Schedule;
use crate::segment::{Segment, Source};
use crate::timer::{TimerId, Timers};
use roci_control::Class;
use roci_units::{Instant, Psn, Span};
use roci_wire::{Flags, Header, Layout, Opcode, Syndrome};

/// What a responder in the middle of a message may be about besides it.
const IDLE_DUTIES: Duties = Duties::NAKED.with(Duties::MARKED);

impl Engine {
    /// Takes up to `packets` packets from the middle of a WRITE or SEND that arrived together: `arrival` is the first, the
    /// others differ from it in their PSNs alone, each one more than the one before. Gives how many were taken; `reaction`,
    /// which is overwritten, says where the payload of all of them goes, one behind the other.
    ///
    /// What [`receive`](Self::receive) of one after the other would do is done, by looking once. Fewer, or none, are
    /// taken where the next is no common case or leads to an answer: that one is for `receive`.
    pub fn receive_middles(&mut self, arrival: &Arrival<'_>, packets: u32, reaction: &mut Reaction) -> u32 {
        reaction.clear();
        let header = arrival.header;
        let message = match header.opcode {
            Opcode::WRITE_MIDDLE => Duties::WRITING,
            Opcode::SEND_MIDDLE => Duties::SENDING,
            _ => return 0,
        };
        if self.agent.is_some() || self.unpolled > 0 || header.flags.has(Flags::ACK_REQUEST) || arrival.ce {
            return 0;
        }
        let Some(qp) = direct(header.dest_qpn).and_then(|slot| self.qps.get_mut(slot)) else { return 0 };
        let Some(profile) = self.profiles.get(usize::from(qp.common.profile)) else { return 0 };
        if profile.short != ShortWay::All
            || !is_known(qp, arrival)
            || qp.responder.keys_ended != self.keys_ended
        {
            return 0;
        }
        // One fewer than leads to an answer, and no more than the message has.
        let silent = profile.ack_every.saturating_sub(qp.responder.unacknowledged.saturating_add(1));
        let left = qp.responder.remaining / u32::from(profile.mtu);
        let packets = packets.min(silent.into()).min(left);
        if packets == 0 || !take_middles(qp, profile, header, message, packets, reaction) {
            return 0;
        }
        packets
    }

    /// Takes a packet that is a common case; false: nothing has changed.
    #[inline(always)]
    pub(crate) fn take_common(&mut self, arrival: &Arrival<'_>, reaction: &mut Reaction) -> bool {
        let header = arrival.header;
        let Some(slot) = direct(header.dest_qpn) else { return false };
        let Some(qp) = self.qps.get_mut(slot) else { return false };
        let Some(profile) = self.profiles.get(usize::from(qp.common.profile)) else { return false };
        if profile.short != ShortWay::All || !is_known(qp, arrival) {
            return false;
        }
        match header.opcode {
            Opcode::WRITE_MIDDLE if !arrival.ce && qp.responder.keys_ended == self.keys_ended => {
                take_middles(qp, profile, header, Duties::WRITING, 1, reaction)
            }
            Opcode::SEND_MIDDLE if !arrival.ce && qp.responder.keys_ended == self.keys_ended => {
                take_middles(qp, profile, header, Duties::SENDING, 1, reaction)
            }
            Opcode::WRITE_ONLY if !arrival.ce => {
                take_only(qp, profile, &self.regions, header, self.keys_ended, reaction)
            }
            _ => false,
        }
    }

    /// The same of acknowledgements. What the commonest take is put where it is used: those of which no law hears, where nothing is
    /// lost or a recovery program keeps the window. Handed on from one function to the next, an acknowledgement took half as
    /// long again (Zen 4).
    #[inline(always)]
    pub(crate) fn take_common_acknowledgement(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        reaction: &mut Reaction,
    ) -> bool {
        let header = arrival.header;
        if header.opcode != Opcode::ACKNOWLEDGE || self.agent.is_some() || self.unpolled > 0 {
            return false;
        }
        let Some(slot) = direct(header.dest_qpn) else { return false };
        let Self { qps, profiles, sends, asides, boards, timers, schedule, flights, .. } = self;
        let Some(qp) = qps.get_mut(slot) else { return false };
        let Some(profile) = profiles.get(usize::from(qp.common.profile)) else { return false };
        let recovers = qp.requester.notes.has(Notes::RECOVERING);
        if !profile.short.is_plainest(recovers) || qp.common.hears.meets(Class::ACK) {
            let taken = self.take_acknowledgement(now, slot, arrival);
            self.take_notice(reaction);
            return taken;
        }
        if !is_known(qp, arrival) {
            return false;
        }
        let Some(work) = sends.find(qp.common.head) else { return false };
        let progress = progress(&qp.requester, work, header);
        if recovers {
            let Some(upto) = progress else { return self.take_beyond_gap(now, slot, arrival) };
            let names = profile.recovery == Recovery::Sack
                && drawn_by(header, profile.layout).since(Psn::new(upto)) >= 0;
            let packets = upto.wrapping_sub(qp.requester.una);
            if names {
                return false;
            }
            if packets == 1 && qp.common.facts.lets_wait() {
                advance(&mut qp.requester, profile, upto);
            } else {
                let Some((_, room)) = move_window(qp, profile, asides, boards, upto) else { return false };
                // Not where each acknowledgement lets a packet go, for the program is asked about each then; nor where not each
                // packet asks for one, for it depends on the room which do.
                let left = u32::from(qp.common.run) + u32::from(qp.requester.staged);
                if room > left + 1 && profile.asks_every <= 1 {
                    qp.common.facts.set(Facts::HEARS_LATER);
                }
            }
            restart(qp, profile, asides, timers, now, slot, profile.timeout);
            if rejoin(qp, schedule, now, slot) {
                self.arm(now, slot);
            }
            self.land(now, slot, packets);
            return true;
        }
        let Some(upto) = progress else { return false };
        let packets = upto.wrapping_sub(qp.requester.una);
        advance(&mut qp.requester, profile, upto);
        if flights.is_some() {
            self.go_on_after_others(now, slot, packets);
        } else {
            let timeout = profile.timeout_in_order(qp.requester.high.wrapping_sub(upto));
            restart(qp, profile, asides, timers, now, slot, timeout);
            if rejoin(qp, schedule, now, slot) {
                self.arm(now, slot);
            }
        }
        true
    }

    /// So many packets were acknowledged: who waited for room comes before the one that made it.
    #[inline(never)]
    fn go_on_after_others(&mut self, now: Instant, slot: usize, packets: u32) {
        self.land(now, slot, packets);
        self.restart_timer(now, slot);
        self.arm(now, slot);
    }

    /// The same of an acknowledgement of which the law hears, or where the receiver keeps what comes out of order: nothing is
    /// lost, and it names nothing beyond what it acknowledges, or it names nothing else.
    #[inline(never)]
    fn take_acknowledgement(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) -> bool {
        let Self { qps, profiles, sends, asides, boards, timers, flights, .. } = self;
        let qp = &mut qps[slot];
        let profile = &profiles[usize::from(qp.common.profile)];
        let heard = qp.common.hears.meets(Class::ACK);
        let is_short = match profile.short {
            ShortWay::None => false,
            ShortWay::All => heard,
            _ => true,
        };
        if !is_short || !is_known(qp, arrival) || heard && (profile.deferred.law || qp.common.law == NONE) {
            return false;
        }
        let Some(work) = sends.find(qp.common.head) else { return false };
        let Some(upto) = progress(&qp.requester, work, arrival.header) else { return false };
        let packets = upto.wrapping_sub(qp.requester.una);
        let (octets, timeout);
        if qp.requester.notes.has(Notes::RECOVERING) {
            // The round trip may be that of an earlier packet.
            if drawn_by(arrival.header, profile.layout) != arrival.header.psn {
                return false;
            }
            let Some((moved, _)) = move_window(qp, profile, asides, boards, upto) else { return false };
            (octets, timeout) = (moved, profile.timeout);
        } else if profile.recovery.owns_window() {
            return false;
        } else {
            octets = advance(&mut qp.requester, profile, upto);
            timeout = profile.timeout_in_order(qp.requester.high.wrapping_sub(upto));
        }
        restart(qp, profile, asides, timers, now, slot, timeout);
        let has_times = profile.short == ShortWay::Acknowledgements;
        if flights.is_some() {
            self.land(now, slot, packets);
        }
        if has_times {
            self.note_stamp(slot, arrival);
        }
        if heard {
            self.tell_of_progress(now, slot, arrival, octets);
        } else {
            self.arm(now, slot);
        }
        true
    }

    /// The same of one that acknowledges nothing more in order and names a packet beyond a gap, where that leads to nothing but
    /// another window.
    #[inline(never)]
    fn take_beyond_gap(&mut self, now: Instant, slot: usize, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        let qp = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(qp.common.profile)];
        let (una, next) = (qp.requester.una, Psn::new(qp.requester.high));
        if profile.recovery != Recovery::Sack
            || profile.deferred.recovery
            || qp.common.aside == NONE
            || !qp.requester.notes.has(Notes::RECOVERING)
            || qp.requester.notes.has(Notes::RESENDS)
            || sequence(header.psn, una).wrapping_add(1) != una
            || !matches!(Syndrome::from_u8(header.aeth().syndrome), Some(Syndrome::Ack { .. }))
            || header.flags.has(Flags::TRIMMED)
        {
            return false;
        }
        let Some(losing) = &mut self.asides.get_mut(qp.common.aside).losing else { return false };
        let Some(room) = losing.arrived_beyond(&mut self.boards, now, drawn_by(header, profile.layout), next)
        else {
            return false;
        };
        bound(qp, profile, room);
        self.note_stamp(slot, arrival);
        self.arm(now, slot);
        true
    }
}

/// Takes all before `upto` as acknowledged where a recovery program keeps the window, and has it moved; gives how many octets
/// they are, and how many new packets the program lets go. `None`, and nothing has changed: the program recovers from something.
#[inline(always)]
fn move_window(
    qp: &mut Qp,
    profile: &Profile,
    asides: &mut Asides,
    boards: &Pool,
    upto: u32,
) -> Option<(u32, u32)> {
    hear(qp, asides);
    let losing = asides.find_mut(qp.common.aside)?.losing.as_mut()?;
    let room = losing.advance_in_order(boards, Psn::new(upto), qp.requester.high.wrapping_sub(upto))?;
    let octets = advance(&mut qp.requester, profile, upto);
    bound(qp, profile, room);
    Some((octets, room))
}

/// The acknowledgement timer starts again with `timeout`.
#[inline(always)]
fn restart(
    qp: &mut Qp,
    profile: &Profile,
    asides: &Asides,
    timers: &mut Timers,
    now: Instant,
    slot: usize,
    timeout: Span,
) {
    if let Some(at) = qp.requester.deadline_from(now, timeout)
        && qp.set_deadline(at, profile)
    {
        let at = at.min(asides.response_deadline(qp.common.aside));
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        timers.arm(TimerId { qp: slot as u32, kind: TIMER_ACK }, at);
    }
}

/// Who may send does so. Whether the pacer holds it back.
#[inline(always)]
pub(crate) fn rejoin(qp: &Qp, schedule: &mut Schedule, now: Instant, slot: usize) -> bool {
    if !qp.requester.wants_to_send() {
        return false;
    }
    let is_paced = qp.requester.pacer.eligible_at() > now;
    if !is_paced {
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        schedule.add(slot as u32, qp.requester.priority);
    }
    is_paced
}

/// Whether nothing about the queue pair, or who sent the packet, stands against the short way.
#[inline(always)]
fn is_known(qp: &Qp, arrival: &Arrival<'_>) -> bool {
    let common = &qp.common;
    common.qpn == arrival.header.dest_qpn
        && common.facts.has(Facts::ALIVE)
        && common.state.receives()
        && common.path == arrival.path
        && !qp.requester.standing.meets(Standing::PARKED)
}

/// Takes packets in the middle of the message that `message` says is under way, if the first of them is the next, and
/// answers them. Where they are several, the message has so many left, and they lead to no answer.
#[inline(always)]
fn take_middles(
    qp: &mut Qp,
    profile: &Profile,
    header: &Header,
    message: Duties,
    packets: u32,
    reaction: &mut Reaction,
) -> bool {
    let Qp { common, responder, .. } = qp;
    let payload = u32::from(header.payload) * packets;
    if header.psn != Psn::new(responder.expected)
        || !responder.duties.has(message)
        || !responder.duties.within(message.with(IDLE_DUTIES))
        || header.payload != profile.mtu
        || payload > responder.remaining
        || header.flags.has(Flags::TRIMMED)
        || common.hears.meets(Class::DATA)
    {
        return false;
    }
    reaction.placement = Some(Placement {
        qpn: common.qpn,
        address: responder.address,
        key: responder.key,
        length: payload,
        token: None,
    });
    responder.address = responder.address.wrapping_add(u64::from(payload));
    responder.remaining -= payload;
    responder.received += payload;
    responder.expected = responder.expected.wrapping_add(packets);
    responder.unacknowledged =
        responder.unacknowledged.saturating_add(u16::try_from(packets).unwrap_or(u16::MAX));
    answer(qp, profile, header, message, reaction);
    true
}

/// Takes a WRITE of one packet that its key admits, if it is the next, and answers it. The key comes last: to look it up
/// is dearer than all else that may stand against the packet.
#[inline(always)]
fn take_only(
    qp: &mut Qp,
    profile: &Profile,
    regions: &Regions,
    header: &Header,
    keys_ended: u32,
    reaction: &mut Reaction,
) -> bool {
    let Qp { common, responder, .. } = qp;
    let payload = u32::from(header.payload);
    let reth = header.reth();
    if header.psn != Psn::new(responder.expected)
        || !responder.duties.within(IDLE_DUTIES)
        || header.payload > profile.mtu
        || payload == 0
        || reth.length != payload
        || header.flags.has(Flags::TRIMMED)
        || common.hears.meets(Class::DATA)
        || regions
            .check_for((profile.pd, common.qpn), reth.rkey, reth.va, payload.into(), Access::REMOTE_WRITE)
            .is_err()
    {
        return false;
    }
    reaction.placement =
        Some(Placement { qpn: common.qpn, address: reth.va, key: reth.rkey, length: payload, token: None });
    responder.address = reth.va.wrapping_add(u64::from(payload));
    (responder.key, responder.keys_ended) = (reth.rkey, keys_ended);
    (responder.remaining, responder.received) = (0, payload);
    responder.expected = responder.expected.wrapping_add(1);
    responder.unacknowledged = responder.unacknowledged.saturating_add(1);
    responder.msn = (responder.msn + 1) & 0x00ff_ffff;
    answer(qp, profile, header, Duties::default(), reaction);
    true
}

/// Answers the packet just taken if it asks for it or enough have come without; `message` is under way then.
#[inline(always)]
fn answer(qp: &mut Qp, profile: &Profile, header: &Header, message: Duties, reaction: &mut Reaction) {
    let Qp { common, responder, .. } = qp;
    let psn = header.psn;
    let marked = responder.duties.has(Duties::MARKED);
    responder.duties = message;
    if !header.flags.has(Flags::ACK_REQUEST) && responder.unacknowledged < profile.ack_every {
        if marked {
            responder.duties.set(Duties::MARKED);
        }
        return;
    }
    responder.unacknowledged = 0;
    let mut answer = Header::new(Opcode::ACKNOWLEDGE, common.peer, psn);
    answer.set_aeth(acknowledges(profile, responder, responder.msn));
    answer.set_trigger(psn);
    answer.flags = if marked { Flags::BECN } else { Flags::NONE };
    reaction.reply = Some(Segment {
        header: answer,
        last_opcode: Opcode::ACKNOWLEDGE,
        last_flags: answer.flags,
        path: common.path,
        source: Source::default(),
        length: 0,
        packets: 1,
        mtu: profile.mtu,
        priority: profile.priority,
        ecn_capable: false,
        retransmission: false,
        each_placed: false,
        layout: Layout::Standard,
        words: None,
    });
}

/// The sequence up to which an acknowledgement moves, if that lies in the middle of `work`, the oldest request.
#[inline(always)]
fn progress(requester: &Requester, work: &SendWork, header: &Header) -> Option<u32> {
    let una = requester.una;
    let upto = sequence(header.psn, una).wrapping_add(1);
    let acknowledges = matches!(Syndrome::from_u8(header.aeth().syndrome), Some(Syndrome::Ack { .. }));
    let moves = acknowledges
        && after(upto, una) > 0
        && after(upto, requester.high) <= 0
        && after(upto, work.end) < 0
        && matches!(work.kind, Kind::Write | Kind::Send)
        && !header.flags.has(Flags::TRIMMED);
    moves.then_some(upto)
}

/// Takes all before `upto` as acknowledged, full packets in the middle of a request; gives how many octets they are.
#[inline(always)]
fn advance(requester: &mut Requester, profile: &Profile, upto: u32) -> u32 {
    let octets = upto.wrapping_sub(requester.una) * u32::from(profile.mtu);
    requester.una = upto;
    requester.in_flight = requester.in_flight.saturating_sub(octets);
    (requester.retries, requester.rnr_retries) = (profile.retry, profile.rnr_retry);
    octets
}

#[cfg(test)]
mod tests;
