//! Flows over unreliable connections: their senders hear of nothing, so what has come is heard of where it comes, and what has not by
//! some time after the last packet was sent is lost.

use super::{Driver, Live, at};
use crate::results::FlowStatus;
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_nic::Host;
use roci_transport::{Completion, Service, Status};
use roci_units::{Instant, Qpn};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What has come of the flows that are alive.
#[derive(Debug, Default)]
pub(in crate::world) struct Arrivals {
    /// By host and queue pair of the receiver.
    flows: BTreeMap<(HostId, Qpn), Arrived>,
    /// When a flow is given up: when, its place among those that are alive, and its number.
    due: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

/// What has come of a flow.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    place: u32,
    /// Messages that came whole, each counted once.
    messages: u64,
    /// Those that came once more, as the network had doubled them.
    doubled: u32,
    /// When the last of them came, or the flow's last packet was sent.
    last: Instant,
}

impl Arrivals {
    /// When a flow is given up next.
    pub(in crate::world) fn next(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at)
    }
}

impl Live {
    /// Messages whose last packets have been sent.
    fn sent(&self) -> u64 {
        let posted = (self.bytes - self.left).div_ceil(u64::from(self.message.max(1)));
        posted.saturating_sub(self.outstanding.into())
    }
}

impl Driver {
    /// Whether queue pairs are unreliable connections.
    pub(super) fn is_unreliable(&self) -> bool {
        self.profiles.service() == Service::Uc
    }

    /// A flow has begun.
    pub(super) fn expect_arrivals(&mut self, now: Instant, live: &Live, place: u32) {
        if self.is_unreliable() {
            self.arrivals
                .flows
                .insert((live.dst, live.dst_qpn), Arrived { place, messages: 0, doubled: 0, last: now });
        }
    }

    /// A message of a flow has come whole.
    pub(super) fn message_came(&mut self, now: Instant, hosts: &mut [Host], host: HostId, it: &Completion) {
        let Some(arrived) = self.arrivals.flows.get_mut(&(host, it.qpn)) else { return };
        if it.status != Status::Success {
            return;
        }
        if hosts[at(host)].engine.counters(it.qpn).doubled != arrived.doubled {
            arrived.doubled = arrived.doubled.wrapping_add(1);
            return;
        }
        arrived.messages += 1;
        arrived.last = now;
        let (place, messages) = (arrived.place, arrived.messages);
        let Some(Some(live)) = self.live.get_mut(place as usize) else { return };
        live.delivered = live.delivered.saturating_add(it.length.into()).min(live.bytes);
        let is_sent = live.left == 0 && live.outstanding == 0;
        if is_sent && messages >= live.sent() {
            self.end_as(hosts, place, FlowStatus::OK, now);
        }
    }

    /// The last packet of a flow's last message has been sent: what does not come by some time from now is lost.
    pub(super) fn all_sent(&mut self, net: &mut Net, hosts: &mut [Host], place: u32) {
        let now = net.now();
        let Some(Some(live)) = self.live.get(place as usize).copied() else { return };
        let Some(arrived) = self.arrivals.flows.get_mut(&(live.dst, live.dst_qpn)) else { return };
        if arrived.messages >= live.sent() {
            // They came before their sender was done with the last of them.
            return self.end_as(hosts, place, FlowStatus::OK, now);
        }
        arrived.last = now;
        let due = (now + self.profiles.timeout(), place, live.number);
        if due.0 < self.arrivals.next() {
            net.pause_here();
        }
        self.arrivals.due.push(Reverse(due));
    }

    /// Gives up the flows of which nothing more will come.
    pub(in crate::world) fn give_up_due(&mut self, now: Instant, hosts: &mut [Host]) {
        while self.arrivals.next() <= now {
            let Some(Reverse((_, place, number))) = self.arrivals.due.pop() else { return };
            // It may have ended, and the place be another flow's by now.
            if let Some(live) = self.live[place as usize].filter(|live| live.number == number) {
                let arrived = self.arrivals.flows.get(&(live.dst, live.dst_qpn));
                let last = arrived.map_or(now, |arrived| arrived.last);
                self.end_as(hosts, place, FlowStatus::Lost, last);
            }
        }
    }

    /// Messages of a flow that were sent and have not come: of one that is under way, those that are on their way are among them.
    pub(super) fn lost(&self, live: &Live) -> u32 {
        let arrived = self.arrivals.flows.get(&(live.dst, live.dst_qpn));
        let lost = arrived.map_or(0, |arrived| live.sent().saturating_sub(arrived.messages));
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// A flow has ended.
    pub(super) fn forget_arrivals(&mut self, live: &Live) {
        if self.is_unreliable() {
            self.arrivals.flows.remove(&(live.dst, live.dst_qpn));
        }
    }
}
