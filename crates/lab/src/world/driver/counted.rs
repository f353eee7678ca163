//! What flows have delivered, and what their queue pairs have counted.

use super::{Driver, Ended, Live, Poster, at};
use crate::results::{FlowResult, FlowStatus, Op};
use roci_nic::Host;
use roci_units::Instant;

/// What the queue pairs of a flow have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Counted {
    pub(in crate::world) delivered: u64,
    pub(in crate::world) packets: u32,
    pub(in crate::world) retransmitted: u32,
    pub(in crate::world) repeated: u32,
    pub(in crate::world) timeouts: u32,
    pub(in crate::world) naks: u32,
    pub(in crate::world) rnr_naks: u32,
    pub(in crate::world) cnps: u32,
    pub(in crate::world) ecn_marked: u32,
    pub(in crate::world) reordered: u32,
}

impl Driver {
    /// Octets of a flow's payload that have arrived, those of open messages and those beyond a missing packet included. Of the
    /// latter each counts for a full packet. Of schedules and requests, whose messages have all lengths, whole messages count.
    fn delivered(&self, hosts: &[Host], live: &Live) -> u64 {
        if matches!(live.poster, Poster::Rpc | Poster::Goal) || self.is_unreliable() {
            return live.delivered;
        }
        let src = hosts[at(live.src)].engine.query(live.src_qpn);
        let dst = hosts[at(live.dst)].engine.query(live.dst_qpn);
        let (Ok(src), Ok(dst)) = (src, dst) else { return live.delivered };
        let acknowledged = src.acknowledged;
        let packets = if live.op == Op::Read {
            let responses = hosts[at(live.src)].engine.responses(live.src_qpn);
            u64::from(responses.unwrap_or(acknowledged))
        } else {
            // The responder tells its place on the circle of PSNs; it is less than half of it ahead of what the
            // requester has heard.
            let ahead = dst.receive_psn.since(live.first_psn.plus(acknowledged));
            u64::from(acknowledged).saturating_add_signed(ahead.into())
        };
        let mtu = u64::from(self.profiles.mtu(live.src, live.dst));
        let message = u64::from(live.message);
        let of_message = message.div_ceil(mtu);
        let open = (packets % of_message * mtu).min(message);
        let in_order = packets / of_message * message + open;
        let receiver = if live.op == Op::Read { (live.src, live.src_qpn) } else { (live.dst, live.dst_qpn) };
        let kept = hosts[at(receiver.0)].engine.kept(receiver.1);
        (in_order + u64::from(kept) * message.min(mtu)).min(live.bytes).max(live.delivered)
    }

    /// Octets that all flows have delivered; each live one is asked.
    pub(in crate::world) fn delivered_octets(&self, hosts: &[Host]) -> u64 {
        let live = self.live.iter().flatten().map(|live| self.delivered(hosts, live));
        live.fold(self.ended_octets, u64::saturating_add)
    }

    /// A live flow and what its queue pairs have counted.
    pub(in crate::world) fn count(&mut self, hosts: &[Host], place: usize) -> Option<(Live, Counted)> {
        let live = self.live[place]?;
        let delivered = self.delivered(hosts, &live);
        if let Some(live) = &mut self.live[place] {
            live.delivered = delivered;
        }
        let sender = hosts[at(live.src)].engine.counters(live.src_qpn);
        let receiver = hosts[at(live.dst)].engine.counters(live.dst_qpn);
        // A READ's data travel the other way: its responder sends and counts them, and waits for what acknowledges them; the
        // requester waits for the answer to its request.
        let (data, arrivals) = if live.op == Op::Read { (receiver, sender) } else { (sender, receiver) };
        let both = |one: u32, other: u32| if live.op == Op::Read { one + other } else { one };
        let counted = Counted {
            delivered,
            packets: data.packets,
            retransmitted: data.retransmitted,
            repeated: data.repeated,
            timeouts: both(sender.timeouts, receiver.timeouts),
            naks: both(sender.naks, receiver.naks),
            rnr_naks: sender.rnr,
            cnps: data.cnps,
            ecn_marked: arrivals.ecn_marked,
            reordered: if live.op == Op::Read {
                hosts[at(live.src)].reordered(live.src_qpn)
            } else {
                hosts[at(live.dst)].reordered(live.dst_qpn)
            },
        };
        Some((live, counted))
    }

    /// Octets of payload of a flow's full packets.
    pub(in crate::world) fn packet(&self, live: &Live) -> u16 {
        let mtu = self.profiles.mtu(live.src, live.dst);
        u16::try_from(live.message).map_or(mtu, |message| message.min(mtu))
    }

    /// What became of a flow, as one that ends at `end`.
    pub(super) fn close(&self, live: &Live, counted: &Counted, status: FlowStatus, end: Instant) -> Ended {
        let result = FlowResult {
            name: self.name(live.id),
            src: live.src.0,
            dst: live.dst.0,
            op: live.op,
            control: live.law - 1,
            status,
            bytes: live.bytes,
            delivered: if status == FlowStatus::OK { live.bytes } else { counted.delivered },
            start: live.start,
            end,
            ideal: (!live.ideal.is_zero()).then_some(live.ideal),
            packets: u64::from(counted.packets),
            retransmitted: counted.retransmitted,
            repeated: counted.repeated,
            timeouts: counted.timeouts,
            naks: if self.is_unreliable() { self.lost(live) } else { counted.naks },
            rnr_naks: counted.rnr_naks,
            cnps: counted.cnps,
            ecn_marked: counted.ecn_marked,
            reordered: counted.reordered,
        };
        Ended { id: live.id, number: live.number, packet: self.packet(live), result }
    }
}
