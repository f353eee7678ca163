//! The common case of sending, in one piece: the next full packet in the middle of a WRITE or SEND that is under way.
//!
//! It does what `plan`, `send` and `relist` do one after the other, with the same result, but reads each fact once and
//! makes the segment in registers, so that a caller who takes it apart at once never has it in memory. Written in
//! parts, a segment of a queue pair in order took 28 ns, three quarters of it instructions that looked again for the
//! queue pair, its profile and its request; what is left costs what its four cache lines cost. Whatever is not the
//! common case changes nothing here and goes the long way.

use crate::engine::Engine;
use crate::qp::{Notes, Qp, Standing};
use crate::queue::{Kind, NONE, flag};
use crate::segment::{Segment, Source};
use crate::transmit::{Plan, window_lets};
use roci_control::{Class, Credit};
use roci_units::{Instant, Psn};
use roci_wire::{Flags, Header, Layout, Opcode, Reth};

/// What a requester that streams may have noted besides [`Notes::SENDS`], which it must have.
const IDLE_NOTES: Notes = Notes::SENDS.with(Notes::SEND_TIMER).with(Notes::ACK_TIMER).with(Notes::RESPONDED);

impl Engine {
    /// The next packet of the queue pair whose turn it is, if it is the common case; `None`: nothing has changed.
    #[inline(always)]
    pub(crate) fn stream(&mut self, now: Instant, slot: usize) -> Option<Segment> {
        let Qp { requester, common, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        if requester.standing != Standing::default()
            || !requester.notes.has(Notes::SENDS)
            || !requester.notes.within(IDLE_NOTES)
            || requester.pacer.eligible_at() > now
            || common.hears.meets(Class::TRANSMIT)
            || profile.middle_octets == 0
            || requester.current == NONE
        {
            return None;
        }
        let current = requester.current;
        let work = self.sends.get(current);
        let (at, mtu) = (requester.high, u32::from(profile.mtu));
        let index = at.wrapping_sub(work.first);
        let names_place = matches!(profile.layout, Layout::Irn);
        if !work.has(flag::NUMBERED)
            || !(matches!(work.kind, Kind::Send) || matches!(work.kind, Kind::Write) && !profile.lone_writes)
            || index == 0
            || work.end.wrapping_sub(at) < 2
            || at.wrapping_sub(requester.una) >= profile.max_in_flight
            || names_place && work.consumes_receive()
        {
            return None;
        }
        if requester.staged == 0 {
            let ring = u32::from(profile.ring);
            let left = work.length - index * mtu;
            let lets = window_lets(requester.in_flight, requester.window, mtu, left, ring).min(ring);
            if lets == 0 {
                return None;
            }
            requester.staged = u8::try_from(lets).unwrap_or(profile.ring);
        }
        requester.staged -= 1;
        requester.high = at.wrapping_add(1);
        requester.in_flight = requester.in_flight.saturating_add(mtu);
        requester.unasked = requester.unasked.saturating_add(1);
        let mut flags = Flags::NONE;
        // As `shuts` has it.
        if u16::from(requester.unasked) >= profile.ack_every.min(u8::MAX.into())
            || requester.staged == 0 && requester.in_flight.saturating_add(mtu) > requester.window
            || requester.high.wrapping_sub(requester.una) >= profile.max_in_flight
        {
            flags = Flags::ACK_REQUEST;
            requester.unasked = 0;
        }
        requester.notes.clear(Notes::RESPONDED);
        common.packets = common.packets.wrapping_add(1);
        let octets = u32::from(profile.middle_octets);
        let goes_on = requester.staged > 0 || requester.in_flight < requester.window;
        let paced = requester.pacer.rate_kbps() != Credit::UNLIMITED;
        if requester.deadline == Instant::NEVER {
            self.start_timer(now, slot);
        }
        let common = &self.qps[slot].common;
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        self.schedule.charge(slot as u32, octets);
        if paced || common.counts || !goes_on {
            self.streamed(now, slot, at, octets);
        }
        Some(self.middle(slot, current, at, flags))
    }

    /// What a packet that was sent means for pacer and law, and whether the queue pair stays among those that may send.
    #[inline]
    fn streamed(&mut self, now: Instant, slot: usize, at: u32, octets: u32) {
        let Qp { requester, common, .. } = &mut self.qps[slot];
        requester.pacer.charge(now, octets);
        if common.counts {
            let length = u32::from(self.profiles[usize::from(common.profile)].mtu);
            let plan = Plan { response: false, work: requester.current, at, packets: 1, length, fresh: true };
            self.law_sent(now, slot, &plan, octets);
        }
        self.relist(now, slot);
    }

    /// Makes the packet at sequence `at`, full and in the middle of request `work`.
    #[inline(always)]
    fn middle(&self, slot: usize, work: u32, at: u32, flags: Flags) -> Segment {
        let Qp { requester, common, .. } = &self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let work = self.sends.get(work);
        let offset = at.wrapping_sub(work.first) * u32::from(profile.mtu);
        let write = work.kind == Kind::Write;
        let opcode = if write { Opcode::WRITE_MIDDLE } else { Opcode::SEND_MIDDLE };
        let mut header = Header::new(opcode, common.peer, Psn::new(at));
        header.payload = profile.mtu;
        header.flags = flags;
        if write {
            let va = work.va.wrapping_add(u64::from(offset));
            header.set_reth(Reth { va, rkey: work.rkey, length: work.length - offset });
        }
        header.set_immediate(work.immediate);
        Segment {
            header,
            last_opcode: opcode,
            last_flags: flags,
            path: common.path,
            source: Source { address: work.address.wrapping_add(u64::from(offset)), lkey: work.lkey },
            length: u32::from(profile.mtu),
            packets: 1,
            mtu: profile.mtu,
            priority: requester.priority,
            ecn_capable: true,
            retransmission: false,
            layout: profile.layout,
            each_placed: matches!(profile.layout, Layout::Irn),
            words: None,
        }
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
            let next = engine.stream(Instant::ZERO, 0).map(|segment| segment.header.opcode);
            assert_eq!(next, streams.then_some(Opcode::SEND_MIDDLE));
        }
    }
}
