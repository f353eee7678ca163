//! A hop: arrival at a switch, the wait, the transmission. This is the simulator's inner loop.
//!
//! A hop is one event, the arrival, which is scheduled when the transmission begins. The end of a transmission is an
//! event only where something waits for it.

use crate::balance::Balancing;
use crate::fault::{Copy, Crossing, Passage};
use crate::link::{COUNTED, FAULTY, PENDING, SPECIAL, TAPPED, TAPPED_AFAR, UNEVEN};
use crate::net::{ARRIVE, FREE, LEAVE, Net, PAUSE};
use crate::packet::{HostId, Marks, Packet, PacketId};
use crate::routing::NO_PORT;
use crate::tap::{Tapped, TappedFrame};
use roci_switch::config::PAUSE_FRAME;
use roci_switch::{Hop, Outcome, Switch};

/// No port: the packet ends at the other end of the link, at a host or because no path leads on.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The port is chosen when the packet has come.
const UNDECIDED: u32 = u32::MAX - 1;

impl Net {
    /// A packet has arrived at a switch.
    #[inline]
    pub(crate) fn arrive(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let (egress, bit) = (packet.next, 1 << packet.priority);
        if egress >= UNDECIDED {
            return self.arrive_undecided(id);
        }
        let port = &self.ports[egress as usize];
        let end = &port.link;
        let waits = port.backlog() & !end.paused;
        if end.free_at <= self.queue.now() && end.flags & PENDING == 0 && waits == 0 && end.paused & bit == 0
        {
            if packet.side != 0 {
                self.stamp(egress, id, 0);
            }
            return self.transmit(egress, id);
        }
        self.wait(egress, id);
    }

    /// A packet has arrived at a switch which knows no way on, or several and chooses now.
    #[inline(never)]
    fn arrive_undecided(&mut self, id: PacketId) {
        let switch = self.switch_of(self.packets[id].port);
        if let Some(switch) = switch
            && self.packets[id].next == UNDECIDED
        {
            self.packets[id].next = self.choose_by_load(switch, id);
        }
        if self.packets[id].next == NOWHERE { self.lose_way(id) } else { self.arrive(id) }
    }

    /// The port by which a packet sent to `node` will go on from there: none for a host.
    ///
    /// It is looked up as the packet is sent and not as it arrives, so that the port can be prefetched before; where it is to be chosen
    /// by loads, [`UNDECIDED`].
    #[inline]
    fn next_egress(&mut self, node: u32, destination: HostId, flow: u32) -> u32 {
        let Some(switch) = self.switch_at(node) else { return NOWHERE };
        let local = match self.balancer.turns.get_mut(switch as usize) {
            None => self.routes.next_port(switch, destination, flow),
            Some(turn) if self.balancer.how == Balancing::InTurn => {
                self.routes.port_in_turn(switch, destination, turn)
            }
            Some(_) => match self.routes.equal(switch, destination) {
                several if several.count() > 1 => return UNDECIDED,
                one => one.ports().next().unwrap_or(NO_PORT),
            },
        };
        if local == NO_PORT { NOWHERE } else { self.first_ports[switch as usize] + u32::from(local) }
    }

    /// The switch that is node `node`; `None` for a host.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    pub(crate) fn switch_at(&self, node: u32) -> Option<u32> {
        node.checked_sub(self.hosts.len() as u32)
    }

    /// The packet cannot leave at once.
    #[inline]
    fn wait(&mut self, egress: u32, id: PacketId) {
        let Some(switch) = self.switch_of(egress) else { return };
        let buffer = &mut self.switches[switch as usize];
        let admission = buffer.admit(&mut self.ports, &mut self.packets, egress, id.0);
        if matches!(admission.outcome, Outcome::Dropped | Outcome::Returned) {
            return self.refused(switch, id, admission.outcome);
        }
        if admission.pause {
            let packet = &self.packets[id];
            let (ingress, priority) = (packet.port, packet.priority);
            self.send_pause(ingress, priority, true);
        }
        self.serve_soon(switch, egress);
    }

    /// A switch keeps no packet here: it is lost, or goes back from there to its sender.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 65 535 hosts")]
    fn refused(&mut self, switch: u32, id: PacketId, outcome: Outcome) {
        if outcome == Outcome::Dropped {
            return self.lose(id);
        }
        let (destination, flow) = (self.packets[id].destination, self.packets[id].flow);
        self.packets[id].next = self.next_egress(self.hosts.len() as u32 + switch, destination, flow);
        self.arrive(id);
    }

    /// The switch that a packet has come to knows no way on.
    #[cold]
    fn lose_way(&mut self, id: PacketId) {
        if let Some(switch) = self.switch_of(self.packets[id].port) {
            self.faults.losses.in_switch(switch).no_way += 1;
        }
        self.lose(id);
    }

    /// A switch that fails by the outage at this place among all held a packet.
    #[cold]
    pub(crate) fn lose_held(&mut self, switch: u32, outage: u32, id: PacketId) {
        self.faults.losses.in_switch(switch).failed += 1;
        self.faults.losses.by_outage(outage, self.packets[id].frame.into());
        self.lose(id);
    }

    #[cold]
    fn lose(&mut self, id: PacketId) {
        self.totals.dropped += 1;
        self.packets.free(id);
    }

    /// Serves a switch's port now if it is free, else when it will be; if something may leave.
    #[inline]
    pub(crate) fn serve_soon(&mut self, switch: u32, egress: u32) {
        let port = &mut self.ports[egress as usize];
        if port.link.flags & PENDING != 0 || port.backlog() & !port.link.paused == 0 {
            return;
        }
        let free_at = port.link.free_at;
        if free_at > self.queue.now() {
            port.link.flags |= PENDING;
            self.queue.push_after(free_at - self.queue.now(), FREE, egress);
        } else {
            self.serve(switch, egress);
        }
    }

    /// A free port of a switch sends the next packet, if one may leave.
    #[inline]
    pub(crate) fn serve(&mut self, switch: u32, egress: u32) {
        let open = !self.ports[egress as usize].link.paused;
        let buffer = &mut self.switches[switch as usize];
        let Some(departure) = buffer.dequeue(&mut self.ports, &mut self.packets, egress, open) else {
            return;
        };
        let id = PacketId(departure.handle);
        if self.packets[id].side != 0 {
            self.stamp(egress, id, departure.behind);
        }
        self.transmit(egress, id);
        let port = &mut self.ports[egress as usize];
        if port.backlog() & open != 0 {
            port.link.flags |= PENDING;
            self.queue.push_after(port.link.free_at - self.queue.now(), FREE, egress);
        }
        if let Some(ingress) = departure.resume {
            self.send_pause(ingress, departure.priority, false);
        }
    }

    /// Begins to send a packet; the port is free.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, port: u32, id: PacketId) {
        let end = &mut self.ports[port as usize].link;
        let packet = &mut self.packets[id];
        debug_assert!(end.free_at <= self.queue.now(), "one frame at a time");
        packet.port = end.peer;
        end.tx_octets += u64::from(packet.frame);
        let (node, destination, flow) = (end.node, packet.destination, packet.flow);
        let next = self.next_egress(node, destination, flow);
        self.totals.packet_hops += 1;
        let end = &mut self.ports[port as usize].link;
        let packet = &mut self.packets[id];
        packet.next = next;
        if end.flags & SPECIAL != 0 {
            return self.transmit_special(port, id);
        }
        let class = &self.classes[usize::from(end.class)];
        let time = class.time(u32::from(packet.frame), None).as_ps();
        end.free_at = self.queue.now() + time;
        self.queue.push_after(time + class.delay_ps, ARRIVE, id.0);
    }

    /// Sends a packet into a link that has faults, is tapped, counted by priority, or has an uneven rate.
    #[cold]
    fn transmit_special(&mut self, port: u32, id: PacketId) {
        let now = self.queue.now();
        let end = &mut self.ports[port as usize].link;
        let class = &self.classes[usize::from(end.class)];
        let pace = if end.flags & UNEVEN != 0 { self.paces.get_mut(port as usize) } else { None };
        let time = class.time(u32::from(self.packets[id].frame), pace).as_ps();
        end.free_at = now + time;
        let (flags, end) = (end.flags, end.free_at);
        let arrival = end + class.delay_ps;
        if flags & COUNTED != 0 {
            let packet = &self.packets[id];
            self.priorities.sent(port, packet.priority, packet.frame);
        }
        if flags & TAPPED != 0 {
            self.record(port, true, id);
        }
        if flags & TAPPED_AFAR != 0 {
            let marks = self.packets[id].marks;
            self.packets[id].marks = marks.with(Marks::TAPPED);
        }
        if flags & FAULTY == 0 {
            return self.queue.push_after(arrival - now, ARRIVE, id.0);
        }
        let packet = self.packets[id];
        let mut copies = std::mem::take(&mut self.faults.copies);
        let Crossing { forge, lost } =
            self.faults.cross(port, Passage { now, end, arrival }, &packet, &mut copies);
        if forge {
            self.forged.push((port, packet));
        }
        self.totals.dropped += lost;
        if lost > 0 {
            self.priorities.hurt(port, packet.priority, lost, 0);
        }
        if copies.is_empty() {
            self.packets.free(id);
        }
        for (place, copy) in copies.drain(..).enumerate() {
            let Copy { arrival, damaged } = copy;
            // The first copy to come out is the packet itself; the others are made from it while it is on its way.
            let sent = if place == 0 { id } else { self.packets.clone_packet(id) };
            let marks = if place == 0 { packet.marks } else { packet.marks.with(Marks::AGAIN) };
            self.packets[sent].marks = if damaged.is_some() {
                self.priorities.hurt(port, packet.priority, 0, 1);
                marks.with(Marks::CORRUPT)
            } else {
                marks
            };
            self.queue.push_at(arrival, ARRIVE, sent.0);
        }
        self.faults.copies = copies;
    }

    /// Adds this switch's hop to a packet that asks for it; the frame grows.
    #[cold]
    fn stamp(&mut self, egress: u32, id: PacketId, behind: u32) {
        let end = &self.ports[egress as usize].link;
        // A faster link than telemetry can tell of is told as the fastest.
        let rate_kbps = u32::try_from(self.classes[usize::from(end.class)].rate_kbps).unwrap_or(u32::MAX);
        let hop = Hop::new(self.now(), end.tx_octets, behind, rate_kbps);
        let node = end.owner;
        if self.packets.extra_mut(id).add_hop(node, hop) {
            let packet = &mut self.packets[id];
            packet.frame = packet.frame.saturating_add(self.hop_octets);
        }
    }

    /// Sends a PAUSE frame, ahead of all queues but after the frame that is being sent.
    ///
    /// A pause stands until it is revoked. A real switch repeats the frame before its 65 535 quanta of 512 bit times
    /// run out (IEEE 802.1Qbb); the repetitions, one minimum frame in 4 MB of line rate, are left out.
    pub(crate) fn send_pause(&mut self, port: u32, priority: u8, on: bool) {
        if self.faults.storms(port) & (1 << priority) != 0 {
            return; // the storm has paused the peer already, and has the last word
        }
        self.emit_pause(port, priority, on);
    }

    /// A PAUSE frame leaves with what has changed before its first octet does: one waits at most at a port.
    pub(crate) fn emit_pause(&mut self, port: u32, priority: u8, on: bool) {
        let pauses = &mut self.pauses[port as usize];
        let bit = 1 << priority;
        pauses.asks = if on { pauses.asks | bit } else { pauses.asks & !bit };
        if pauses.waits {
            return;
        }
        pauses.waits = true;
        let now = self.queue.now();
        let end = &mut self.ports[port as usize].link;
        let class = &self.classes[usize::from(end.class)];
        let begins = end.free_at.max(now);
        let pace = if end.flags & UNEVEN != 0 { self.paces.get_mut(port as usize) } else { None };
        end.free_at = begins + class.time(PAUSE_FRAME, pace).as_ps();
        if begins > now {
            self.queue.push_at(begins, LEAVE, port);
        } else {
            self.pause_leaves(port);
        }
    }

    /// The first octet of the PAUSE frame that waited at `port` leaves, and with it what has changed since the last one.
    pub(crate) fn pause_leaves(&mut self, port: u32) {
        let pauses = &mut self.pauses[port as usize];
        let (asks, changed) = (pauses.asks, pauses.asks ^ pauses.told);
        (pauses.told, pauses.waits) = (asks, false);
        pauses.sent = pauses.sent.saturating_add((asks & changed).count_ones());
        let end = &self.ports[port as usize].link;
        let (peer, tapped) = (end.peer, end.flags & TAPPED != 0);
        let arrival = end.free_at + self.classes[usize::from(end.class)].delay_ps;
        // Who fails pauses nobody, with what is on its way as little as with what is not; nor does who is cut off.
        let now = self.queue.now();
        let lost =
            self.faults.cuts(port, Passage { now, end: arrival, arrival }) || self.is_cut_off(port, arrival);
        // What is to stop stops before what may go on does.
        for (on, priorities) in [(true, asks & changed), (false, changed & !asks)] {
            for priority in (0..8).filter(|priority| priorities >> priority & 1 == 1) {
                let handle = peer | u32::from(priority) << 28 | u32::from(on) << 31;
                if !lost {
                    self.queue.push_at(arrival, PAUSE, handle);
                }
                if tapped {
                    self.record_pause(port, true, priority, on);
                }
            }
        }
    }

    /// A pause storm begins or ends.
    #[cold]
    pub(crate) fn storm(&mut self, handle: u32) {
        let (victim, priority) = self.faults.storm_at(handle);
        let port = self.peer(victim);
        // What the port itself pauses stays paused through the storm and after it.
        let own = self.pausing(port);
        let before = own | self.faults.storms(port);
        self.faults.turn_storm(handle, port);
        let after = own | self.faults.storms(port);
        if (before ^ after) & (1 << priority) != 0 {
            self.emit_pause(port, priority, after & (1 << priority) != 0);
        }
    }

    /// Bit p: the node of `port` has its peer pause priority p, storms aside.
    pub(crate) fn pausing(&self, port: u32) -> u8 {
        match self.hosts.get(port as usize) {
            Some(host) => host.pausing,
            None => self.ports[port as usize].pausing(),
        }
    }

    /// Puts a packet on its way to the node that sends into `port`'s link, as if from that link.
    pub(crate) fn inject(&mut self, port: u32, packet: Packet) {
        let (owner, delay) = (self.owner(port), self.class(port).delay_ps);
        let now = self.queue.now();
        if self.faults.is_cut(port, now, now + delay) {
            return; // the node has failed by then
        }
        let next = self.next_egress(owner, packet.destination, packet.flow);
        let tapped = self.ports[port as usize].link.flags & TAPPED != 0;
        let marks = if tapped { packet.marks.with(Marks::TAPPED) } else { packet.marks };
        let id = self.packets.alloc(Packet { port, next, marks, ..packet });
        self.queue.push_after(delay, ARRIVE, id.0);
    }

    /// A PAUSE frame has arrived at `port`; whether the port may now send what it could not. A switch stops those priorities
    /// alone that are lossless in it (IEEE 802.1Qbb enables a priority's PFC, not a direction of it), and any for a storm.
    pub(crate) fn pause_arrived(&mut self, port: u32, priority: u8, on: bool) -> bool {
        let now = self.now();
        let switch = self.switch_of(port).map(|switch| &self.switches[switch as usize]);
        let obeyed = switch.map_or(u8::MAX, Switch::lossless) | self.faults.storms(self.peer(port));
        let end = &mut self.ports[port as usize].link;
        let (before, bit) = (end.paused, 1 << priority);
        end.paused = if on { before | bit & obeyed } else { before & !bit };
        let (paused, tapped) = (end.paused, end.flags & TAPPED != 0);
        let pauses = &mut self.pauses[port as usize];
        pauses.received = pauses.received.saturating_add(u32::from(on));
        if on {
            self.priorities.told_to_stop(port, priority);
        }
        if on && before != paused {
            self.pause_may_lapse(port);
        }
        if before != paused {
            self.count_paused(port, paused, now);
        }
        if tapped {
            self.record_pause(port, false, priority, on);
        }
        !on
    }

    /// Records a packet at a tapped port.
    pub(crate) fn record(&mut self, port: u32, sent: bool, id: PacketId) {
        let extra = self.packets.extra(id).map(|extra| Box::new(*extra));
        let frame = TappedFrame::Packet(self.packets[id], extra);
        self.taps.push(Tapped { at: self.now(), port, sent, frame });
    }

    fn record_pause(&mut self, port: u32, sent: bool, priority: u8, on: bool) {
        self.taps.push(Tapped { at: self.now(), port, sent, frame: TappedFrame::Pause { priority, on } });
    }
}
