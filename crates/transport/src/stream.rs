//! The common case of sending, in one piece: the next full packet in the middle of a WRITE or SEND that is under way.
//!
//! It does what `plan`, `send` and `relist` do one after the other, with the same result, but reads each fact once and
//! makes the segment in registers, so that a caller who takes it apart at once never has it in memory. Written in
//! parts, a segment of a queue pair in order took 28 ns, three quarters of it instructions that looked again for the
//! queue pair, its profile and its request. What is left is about 190 instructions, of which a third store the segment: what
//! made them fewer made it quicker, and calls between them, for which values were put aside, slower. Whatever is not the common
//! case changes nothing here and goes the long way.

use crate::aside::Asides;
use crate::delivery::pool::Pool;
use crate::engine::Engine;
use crate::qp::{Facts, Notes, Profile, Qp, Requester};
use crate::queue::{Kind, SendWork, flag};
use crate::recovery;
use crate::segment::{Segment, Source};
use crate::transmit::{Plan, window_lets};
use roci_control::{Class, Credit};
use roci_units::{Instant, Psn};
use roci_wire::{Flags, Header, Layout, Opcode, Reth};

/// What a requester that streams may have noted besides [`Notes::SENDS`], which it must have.
const IDLE_NOTES: Notes = Notes::SEND_TIMER.with(Notes::ACK_TIMER).with(Notes::RESPONDED);

/// Lets through what window and program have room for, as many packets as the ring of segments holds; false: there is none.
#[inline(never)]
fn fill_ring(qp: &mut Qp, profile: &Profile, work: &SendWork, asides: &Asides, boards: &Pool) -> bool {
    let Qp { requester, common, .. } = qp;
    let (mtu, ring) = (u32::from(profile.mtu), u32::from(profile.ring));
    let left = work.length - requester.high.wrapping_sub(work.first) * mtu;
    let mut lets = window_lets(requester.in_flight, requester.window, mtu, left, ring).min(ring);
    common.shuts = false;
    if requester.notes.has(Notes::RECOVERING) {
        let room = recovery::room(asides, boards, common.aside, requester.high);
        common.shuts = room <= lets;
        lets = lets.min(room);
    }
    requester.staged = u8::try_from(lets).unwrap_or(profile.ring);
    lets > 0
}

impl Engine {
    /// The next packet of the queue pair whose turn it is, if it is the common case; `None`: nothing has changed. With it
    /// comes whether [`streamed`](Self::streamed) is to be called, which is best done when the packet is out of hand.
    #[inline(always)]
    pub(crate) fn stream(&mut self, now: Instant, slot: usize) -> Option<(Segment, bool)> {
        let qp = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(qp.common.profile)];
        let work = self.sends.find(qp.requester.current)?;
        let Qp { requester, common, .. } = qp;
        let at = requester.high;
        let outstanding = at.wrapping_sub(requester.una);
        if !requester.is_free_to_stream(profile)
            || requester.pacer.eligible_at() > now
            || common.hears.meets(Class::TRANSMIT)
            || !work.has(flag::STREAMS)
            || at == work.first
            || work.end.wrapping_sub(at) < 2
            || outstanding >= profile.max_in_flight
            || requester.staged == 0 && !fill_ring(qp, profile, work, &self.asides, &self.boards)
        {
            return None;
        }
        let Qp { requester, common, .. } = qp;
        let mtu = u32::from(profile.mtu);
        let staged = requester.staged - 1;
        let in_flight = requester.in_flight.saturating_add(mtu);
        let mut unasked = requester.unasked.wrapping_add(1); // it is below the `asks_every` of its profile
        // As `advance_request` has it.
        let asks = (unasked >= common.asks_every)
            | (outstanding + 1 >= profile.max_in_flight)
            | (staged == 0 && (in_flight.saturating_add(mtu) > requester.window || common.shuts));
        let flags = if asks { Flags::ACK_REQUEST } else { Flags::NONE };
        if asks {
            unasked = 0;
        }
        requester.staged = staged;
        requester.high = at.wrapping_add(1);
        requester.in_flight = in_flight;
        requester.unasked = unasked;
        requester.notes.clear(Notes::RESPONDED);
        common.packets = common.packets.wrapping_add(1);
        let offset = at.wrapping_sub(work.first) * mtu;
        let write = matches!(work.kind, Kind::Write);
        let opcode = if write { Opcode::WRITE_MIDDLE } else { Opcode::SEND_MIDDLE };
        let mut header = Header::new(opcode, common.peer, Psn::new(at));
        header.payload = profile.mtu;
        header.flags = flags;
        if write {
            let va = work.va.wrapping_add(u64::from(offset));
            header.set_reth(Reth { va, rkey: work.rkey, length: work.length - offset });
        }
        header.set_immediate(work.immediate);
        let segment = Segment {
            header,
            last_opcode: opcode,
            last_flags: flags,
            path: common.path,
            source: Source { address: work.address.wrapping_add(u64::from(offset)), lkey: work.lkey },
            length: mtu,
            packets: 1,
            mtu: profile.mtu,
            priority: requester.priority,
            ecn_capable: true,
            retransmission: false,
            layout: profile.layout,
            each_placed: matches!(profile.layout, Layout::Irn),
            words: None,
        };
        let more = requester.staged > 0 || requester.in_flight < requester.window;
        // Asked for together: each is the exception, and a branch for each cost more than the answers.
        let matters = !more
            | common.facts.has(Facts::COUNTS)
            | (requester.pacer.rate_kbps() != Credit::UNLIMITED)
            | (requester.deadline == Instant::NEVER)
            | self.schedule.has_rules();
        Some((segment, matters))
    }

    /// What a packet that was sent means for timer, schedule, pacer and law, and whether the queue pair stays among those
    /// that may send.
    #[inline(never)]
    pub(crate) fn streamed(&mut self, now: Instant, slot: usize) {
        if self.qps[slot].requester.deadline == Instant::NEVER {
            self.start_timer(now, slot);
        }
        let Qp { requester, common, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let octets = u32::from(profile.middle_octets);
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.schedule.charge(slot as u32, octets);
        requester.pacer.charge(now, octets);
        if common.facts.has(Facts::COUNTS) {
            let (length, at) = (u32::from(profile.mtu), requester.high.wrapping_sub(1));
            let plan = Plan { response: false, work: requester.current, at, packets: 1, length, fresh: true };
            self.law_sent(now, slot, &plan, octets);
        }
        self.relist(now, slot);
    }
}

impl Requester {
    /// Whether nothing stands in the way of its next request, as far as standing and notes tell. One whose program owns the
    /// window is recovering from its first request on.
    #[inline]
    const fn is_free_to_stream(&self, profile: &Profile) -> bool {
        // One look at both.
        const LOOKED_AT: u16 = u16::from_le_bytes([u8::MAX, !IDLE_NOTES.bits()]);
        const WANTED: u16 = u16::from_le_bytes([0, Notes::SENDS.bits()]);
        const OWNED: u16 = u16::from_le_bytes([0, Notes::SENDS.with(Notes::RECOVERING).bits()]);
        let both = u16::from_le_bytes([self.standing.bits(), self.notes.bits()]) & LOOKED_AT;
        both == WANTED || both == OWNED && profile.recovery.owns_window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EngineConfig, QpConfig};
    use crate::work::{Operation, SendRequest, Tail};
    use roci_units::Qpn;

    #[test]
    fn what_is_sent_of_a_queue_pair_with_lone_writes_streams_and_its_writes_do_not() {
        const QPN: Qpn = Qpn::new(2);
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        for (operation, streams) in [(Operation::Send(Tail::Plain), true), (write, false)] {
            let mut engine = Engine::new(EngineConfig::default());
            let config =
                QpConfig { qpn: Some(QPN), peer: QPN, mtu: 256, lone_writes: true, ..QpConfig::default() };
            engine.create_qp(config).unwrap();
            let request = SendRequest {
                id: 1,
                operation,
                length: 8 * 256,
                address: 0,
                lkey: 0,
                solicited: false,
                signaled: true,
                fence: false,
            };
            engine.post_send(Instant::ZERO, QPN, &request).unwrap();
            assert!(engine.transmit(Instant::ZERO).is_some());
            let next = engine.stream(Instant::ZERO, 0).map(|(segment, _)| segment.header.opcode);
            assert_eq!(next, streams.then_some(Opcode::SEND_MIDDLE));
        }
    }
}
