//! One host's NIC: its engine, what waits to be sent, and the work that takes time.

use crate::apart::Apart;
use crate::arch::spec::Entries;
use crate::arch::{ArchCounters, Architecture};
use crate::delay::Delays;
use crate::drain::{Drain, DrainConfig};
use crate::order::Order;
use crate::path::Path;
use crate::spread::{Spread, Spreading, port_of};
use crate::work::{Due, Slow};
use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, Marks, Packet, PacketId};
use roci_fabric::packets::Extra;
use roci_transport::{Arrival, Engine, Reaction, Resolution, Segment, Until};
use roci_units::{Instant, Qpn, Random};
use roci_wire::{Header, Layout, Opcode, PathId, Shape};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

mod deferred;
mod making;
mod sharing;
mod waiting;

use making::{frame_octets, place, place_data, place_planned};
pub(crate) use sharing::Sharing;
use waiting::Foremost;

/// What a NIC counted that no queue pair knows of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets sent, data and control.
    pub sent: u64,
    /// Packets whose ICRC was wrong.
    pub corrupt: u64,
    /// Packets that the engine refused.
    pub refused: u64,
}

/// The priorities of what the NIC sends besides data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    /// Of acknowledgements; `None`: as the data that they acknowledge.
    pub ack: Option<u8>,
    /// Of CNPs and other packets of laws.
    pub notice: u8,
}

impl Default for Classes {
    /// Acknowledgements travel with the data, CNPs on priority 6.
    fn default() -> Self {
        Self { ack: None, notice: 6 }
    }
}

/// A host's NIC. What each packet touches comes first.
#[repr(C, align(64))]
pub struct Host {
    /// What a NIC that is not ideal needs; an ideal one pays a null pointer for it.
    pub(crate) slow: Option<Box<Slow>>,
    /// A receive path slower than the link.
    drain: Option<Box<Drain>>,
    classes: Classes,
    /// [`TRACED`], [`STAGED`], [`PARTS`], [`CONGESTED`], [`WATCHED`] and [`SPREAD`], in one octet: the record has none to spare.
    flags: u8,
    /// Packets that are made and wait for the port, so that one look tells that there are none.
    pub(crate) waits: u32,
    /// What it counted.
    pub counters: HostCounters,
    /// The first packet that waits in each of the queues [`NOTICES`], [`REPLIES`] and [`GRANTED`]. Seldom does a second
    /// one, so that memory of the queues' own is seldom touched.
    first: [PacketId; QUEUES],
    /// Its engine.
    pub engine: Engine,
    /// The packets behind the first.
    behind: [VecDeque<PacketId>; QUEUES],
    /// Those that wait apart: let past while their priority was paused, or made by a NIC's parts.
    apart: Option<Box<Apart>>,
    /// The eight-octet words that atomics touched; all others are zero.
    #[expect(
        clippy::box_collection,
        reason = "one word in place of three, of which the record has none to spare"
    )]
    memory: Option<Box<BTreeMap<u64, u64>>>,
    /// In what order data arrive, where it is [`WATCHED`]; likewise.
    order: Option<Box<Order>>,
    /// Which ports its packets have, where they are [`SPREAD`].
    spread: Option<Box<Spread>>,
}

/// Its data packets ask the switches for telemetry.
const TRACED: u8 = 1;
/// What arrives does not come to the engine at once.
const STAGED: u8 = 2;
/// It is made of parts, which decide what becomes a packet.
const PARTS: u8 = 4;
/// Its machine is congested: what arrives is marked.
const CONGESTED: u8 = 8;
/// It is watched in what order data arrive.
const WATCHED: u8 = 16;
/// Each of its packets chooses a path.
const SPREAD: u8 = 32;
/// How many queues wait for the port. Of one priority the first goes first.
pub(crate) const QUEUES: usize = 3;
/// CNPs and other packets of laws.
const NOTICES: usize = 0;
/// Then acknowledgements, and READ responses whose grant came late, in the order in which they were made.
pub(crate) const REPLIES: usize = 1;
/// Then requests whose grant came late.
pub(crate) const GRANTED: usize = 2;
/// How many of these may wait before further offers are left with the engine.
const GRANTED_MAX: usize = 16;

impl Host {
    /// A NIC around `engine`. Its delays are drawn from `random`.
    pub fn new(engine: Engine, classes: Classes, delays: Delays, random: Random) -> Self {
        Self {
            engine,
            counters: HostCounters::default(),
            first: [PacketId::NONE; 3],
            behind: Default::default(),
            apart: None,
            slow: (!delays.is_ideal()).then(|| Box::new(Slow::new(delays, random))),
            drain: None,
            classes,
            flags: 0,
            waits: 0,
            memory: None,
            order: None,
            spread: None,
        }
    }

    /// A NIC around `engine` that is made of the parts of `architecture`. Its queue pairs defer what
    /// [`Architecture::deferred`] says. What happens in it by chance is drawn from `random`.
    pub fn of_parts(
        mut engine: Engine,
        classes: Classes,
        architecture: Arc<Architecture>,
        random: Random,
    ) -> Self {
        if architecture.cores.queue != Entries::All {
            engine.count_waiting(architecture.cores.pairs);
        }
        let slow = Some(Box::new(Slow::of_parts(architecture, random)));
        Self { slow, flags: STAGED | PARTS, ..Self::new(engine, classes, Delays::IDEAL, Random::new(0, 0)) }
    }

    /// What its parts counted; `None` where it is made of none.
    pub fn parts(&self) -> Option<ArchCounters> {
        Some(self.slow.as_ref()?.machine.as_ref()?.counters())
    }

    #[inline]
    const fn traced(&self) -> bool {
        self.flags & TRACED != 0
    }

    /// Gives it a receive path slower than its link.
    pub fn set_drain(&mut self, net: &Net, id: HostId, config: DrainConfig) {
        self.drain = Some(Box::new(Drain::new(config, net, id)));
        self.flags |= STAGED;
    }

    /// Lets [`set_congested`](Self::set_congested) have an effect.
    pub fn listen_to_machine(&mut self) {
        self.flags |= STAGED;
    }

    /// Whether the machine behind it is congested. What arrives meanwhile and may be marked is marked CE, as hostCC does (Agarwal et
    /// al., SIGCOMM 2023).
    pub fn set_congested(&mut self, congested: bool) {
        self.flags = self.flags & !CONGESTED | if congested { CONGESTED } else { 0 };
    }

    /// Has its data packets ask the switches on their way for telemetry (INT).
    pub fn set_traced(&mut self, traced: bool) {
        self.flags = self.flags & !TRACED | if traced { TRACED } else { 0 };
    }

    /// Has it count what comes out of order from now on. It takes time for each packet, and is for networks in which packets may
    /// overtake each other.
    pub fn watch_order(&mut self) {
        self.flags |= WATCHED;
        self.order = Some(Box::default());
    }

    /// Has each of its packets choose a path by its UDP source port, and not each queue pair. All hosts have to, as who receives
    /// them must know that. What is left to chance is drawn from `random`.
    pub fn spread(&mut self, how: Spreading, random: Random) {
        self.flags |= SPREAD;
        self.spread = Some(Box::new(Spread::new(how, random)));
    }

    /// Queue pair `qpn` is a new one, connected with a path. The order of what comes for it is counted from now on, if it is watched,
    /// and its packets choose paths, if they do.
    pub fn begin(&mut self, qpn: Qpn) {
        if self.flags & (WATCHED | SPREAD) == 0 {
            return;
        }
        let (Some(place), Ok(attributes)) = (self.engine.place_of(qpn), self.engine.query(qpn)) else {
            return;
        };
        let path = Path::unpack(attributes.path);
        if let Some(order) = &mut self.order {
            order.begin(place, path.flow);
        }
        if let Some(spread) = &mut self.spread {
            spread.begin(place, qpn, path);
        }
    }

    /// How many packets with payload came for queue pair `qpn` behind one that was sent after them; zero where it is not watched.
    /// Those that are sent again are not counted, as RFC 4737 speaks of packets in the order in which they are sent.
    pub fn reordered(&self, qpn: Qpn) -> u32 {
        let order = self.order.as_ref().zip(self.engine.place_of(qpn));
        order.map_or(0, |(order, place)| order.reordered(place))
    }

    /// Frames that the receive path had no room for.
    pub fn overflowed(&self) -> u64 {
        let drained = self.drain.as_ref().map_or(0, |drain| drain.dropped);
        drained + self.parts().map_or(0, |parts| parts.overflowed)
    }

    /// Tells the fabric what this host wants next. To be called after anything was posted to the engine.
    #[inline(always)]
    pub fn poke(&mut self, net: &mut Net, id: HostId) {
        if self.slow.is_some() || self.drain.is_some() {
            return self.poke_slow(net, id);
        }
        if self.has_work() {
            net.kick(id);
        }
        if let Some(at) = self.engine.next_wakeup() {
            net.wake_at(id, at);
        }
    }

    /// The same for a NIC that is not ideal.
    #[inline(never)]
    fn poke_slow(&mut self, net: &mut Net, id: HostId) {
        if let Some(slow) = &self.slow {
            if let Some(at) = slow.next() {
                net.wake_at(id, at);
            }
            if slow.machine.is_some() {
                self.poke_parts(net, id);
                return;
            }
        }
        if self.has_work() {
            net.kick(id);
        }
        if let Some(at) = self.engine.next_wakeup() {
            net.wake_at(id, at);
        }
        if let Some(at) = self.drain.as_ref().and_then(|drain| drain.next()) {
            net.wake_at(id, at);
        }
    }

    /// The CNP that this host would send to the source of `packet`, if it has the queue pair that it is for.
    pub(crate) fn cnp_against(&self, packet: &Packet) -> Option<Packet> {
        let peer = self.engine.query(packet.header.dest_qpn).ok()?.peer;
        let header = Header::cnp(peer);
        let mut cnp = Packet::new(packet.destination, packet.source, header);
        cnp.flow = packet.flow;
        cnp.frame = frame_octets(&header, Layout::Standard);
        cnp.priority = self.classes.notice;
        Some(cnp)
    }

    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.waits > 0 || self.flags & PARTS == 0 && self.engine.has_work(0xff)
    }

    /// Whether it is made of parts.
    #[inline]
    pub(crate) const fn has_parts(&self) -> bool {
        self.flags & PARTS != 0
    }

    /// Prefetches what any event touches of its parts.
    #[inline]
    pub(crate) fn prefetch_parts(&self) {
        if let Some(slow) = &self.slow {
            slow.prefetch();
        }
    }

    /// A packet has arrived.
    #[inline]
    pub(crate) fn receive(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        if self.flags & (STAGED | WATCHED) != 0 {
            self.stage(net, id, packet, reaction);
        } else {
            self.take(net, id, packet, reaction);
        }
    }

    /// A packet has arrived where it is watched, or has some way to go to the engine.
    #[inline(never)]
    fn stage(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        if self.flags & WATCHED != 0 {
            self.watch(&net.packets()[packet]);
        }
        if self.flags & STAGED == 0 {
            return self.take(net, id, packet, reaction);
        }
        match &mut self.drain {
            Some(drain) => drain.push(net, id, packet),
            None => self.enter(net, id, packet, reaction),
        }
    }

    /// Looks whether a packet comes in order. A header that a switch left of one is not looked at: it takes another queue.
    fn watch(&mut self, packet: &Packet) {
        if packet.header.payload > 0
            && packet.marks.0 & (Marks::AGAIN.0 | Marks::CORRUPT.0) == 0
            && let (Some(order), Some(place)) =
                (&mut self.order, self.engine.place_of(packet.header.dest_qpn))
        {
            let flow = self.spread.as_ref().map_or(packet.flow, |spread| spread.flow_of(place, packet));
            order.arrived(place, flow, packet.header.psn);
        }
    }

    /// A packet has come through the drain, if there is one.
    fn enter(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        if self.flags & CONGESTED != 0 {
            let marks = &mut net.packets_mut()[packet].marks;
            if marks.has(Marks::ECT) {
                *marks = marks.with(Marks::CE);
            }
        }
        if self.has_parts() {
            self.arrive(net, id, packet);
        } else {
            self.take(net, id, packet, reaction);
        }
    }

    #[inline(never)]
    fn poke_parts(&mut self, net: &mut Net, id: HostId) {
        self.run_machine(net, id);
        if let Some(at) = self.drain.as_ref().and_then(|drain| drain.next()) {
            net.wake_at(id, at);
        }
    }

    /// The engine judges a packet, and it becomes its own acknowledgement in place.
    #[inline]
    pub(crate) fn take(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        let now = net.now();
        let arrived = &net.packets()[packet];
        if arrived.marks.has(Marks::CORRUPT) {
            self.counters.corrupt += 1;
            net.free(packet);
            return;
        }
        let extra = net.packets().extra(packet);
        let (words, hops) = extra.map_or((&[][..], &[][..]), |extra| (extra.words(), extra.hops()));
        let path_id = extra.map_or_else(PathId::default, Extra::path_id);
        let flow = if self.flags & SPREAD == 0 { arrived.flow } else { self.hear(now, arrived) };
        let path = Path { host: arrived.source, flow }.pack();
        let arrival =
            Arrival { header: &arrived.header, path, ce: arrived.marks.has(Marks::CE), words, hops, path_id };
        self.engine.receive(now, &arrival, reaction);
        self.counters.refused += u64::from(reaction.refused.is_some());
        self.react(net, id, packet, reaction);
        self.settle(net, id);
    }

    /// The flow by which the engine knows a packet that chose its path, and what is to be learnt of it if it answers one.
    #[inline(never)]
    fn hear(&mut self, now: Instant, packet: &Packet) -> u32 {
        let (Some(spread), Some(place)) = (&mut self.spread, self.engine.place_of(packet.header.dest_qpn))
        else {
            return packet.flow;
        };
        spread.hear(now, place, packet);
        spread.flow_of(place, packet)
    }

    /// Lets a packet of the queue pair at `place` choose its path.
    #[inline(never)]
    fn choose_path(&mut self, net: &mut Net, place: usize, packet: PacketId) {
        if let Some(spread) = &mut self.spread {
            let now = net.now();
            spread.choose(now, &self.engine, place, &mut net.packets_mut()[packet]);
        }
    }

    /// The port is free: the highest priority first, and of one priority notices, then acknowledgements, then data.
    #[inline]
    pub(crate) fn transmit(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        let packet = self.next_packet(net, id, open)?;
        self.counters.sent += 1;
        Some(packet)
    }

    #[inline]
    fn next_packet(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        if self.slow.is_some() {
            return self.next_slow(net, id, open);
        }
        if self.waits > 0
            && let Some(foremost) = self.foremost(net, open)
        {
            return Some(self.next_or_above(net, id, open, foremost));
        }
        self.next_fresh(net, id, open)
    }

    /// What waits foremost, or data of a higher priority.
    #[inline]
    fn next_or_above(&mut self, net: &mut Net, id: HostId, open: u8, mut foremost: Foremost) -> PacketId {
        while self.engine.has_work(open & foremost.above()) {
            let above = open & foremost.above();
            // What goes before data may stand behind what does not.
            if let Some(higher) = self.foremost_unpaused(net, above) {
                foremost = higher;
            } else if let Some(packet) = self.next_fresh(net, id, above) {
                return packet;
            } else {
                break;
            }
        }
        self.take_waiting(open, foremost)
    }

    /// The next packet of a NIC that is not ideal.
    #[inline(never)]
    fn next_slow(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        if self.slow.as_ref().is_some_and(|slow| slow.sharing.is_some()) {
            return self.next_shared(net, id, open);
        }
        self.next_strict(net, id, open)
    }

    /// The same where all priorities in `open` are strict.
    fn next_strict(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        if self.has_parts() {
            return self.next_made(net, id, open);
        }
        if let Some(foremost) = self.foremost(net, open) {
            return Some(self.next_or_above(net, id, open, foremost));
        }
        if self.slow.as_ref().is_some_and(|slow| slow.delays.grant.is_some()) {
            self.request_grants(net, id, open);
            return None;
        }
        self.next_fresh(net, id, open)
    }

    /// A packet made now.
    #[inline]
    fn next_fresh(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        let traced = self.traced();
        let packet = self.engine.transmit_with(
            net.now(),
            open,
            net,
            |net, segment, place| (place_data(net, id, segment, traced), place),
            |net, segment, place| (place_planned(net, id, segment, traced), place),
        );
        if self.flags & SPREAD != 0
            && let Some((packet, place)) = packet
        {
            self.choose_path(net, place, packet);
        }
        // The last of a READ's responses lets go of the acknowledgement that waited behind it.
        self.settle(net, id);
        // Also where nothing may leave: what holds a packet back has named the instant at which it may.
        if let Some(at) = self.engine.next_wakeup() {
            net.wake_at(id, at);
        }
        packet.map(|(packet, _)| packet)
    }

    /// Makes a packet of a segment of queue pair `qpn` that is no answer.
    pub(crate) fn make_packet(&mut self, net: &mut Net, id: HostId, qpn: Qpn, segment: &Segment) -> PacketId {
        let packet = place_data(net, id, segment, self.traced());
        if self.flags & SPREAD != 0
            && let Some(place) = self.engine.place_of(qpn)
        {
            self.choose_path(net, place, packet);
        }
        packet
    }

    /// A timer of the engine, or work that took time, is due.
    pub(crate) fn wake(&mut self, net: &mut Net, id: HostId, reaction: &mut Reaction) {
        let now = net.now();
        while let Some(packet) = self.drain.as_mut().and_then(|drain| drain.pop(net, id)) {
            self.enter(net, id, packet, reaction);
        }
        let parts = self.has_parts();
        if !parts {
            self.engine.wake(now);
            self.settle(net, id);
        }
        while let Some(due) = self.slow.as_mut().and_then(|slow| slow.take(now)) {
            match due {
                Due::Resolve(token, resolution) => self.engine.resolve(now, token, resolution),
                Due::Commit(offer, grant) if parts => self.ran(net, id, offer, &grant),
                Due::Commit(offer, grant) => {
                    let qpn = offer.qpn;
                    if let Some(segment) = self.engine.commit(now, offer, grant) {
                        // What acknowledges beyond a READ's response must not overtake it.
                        let response = segment.header.opcode.shape().has(Shape::RESPONSE);
                        let queue = if response { REPLIES } else { GRANTED };
                        let packet = self.make_packet(net, id, qpn, &segment);
                        self.wait(queue, packet);
                    }
                }
                Due::Decline(offer) => self.engine.decline(now, offer, Until::Recirculated),
                Due::Step(step) => self.step(net, id, step, reaction),
            }
            self.settle(net, id);
        }
        if parts {
            // What arrived in this cycle comes before what has not arrived (Tonic §3.4).
            self.machine_timers(net, id);
        }
    }

    /// Sends what the engine answered, in the packet that it answered if there is room.
    #[inline]
    fn react(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        let mut spare = Some(packet);
        if let Some(segment) = &reaction.reply {
            self.send(net, spare.take(), id, segment);
        }
        if let Some(segment) = &reaction.notice {
            self.send(net, spare.take(), id, segment);
        }
        if let Some(unused) = spare {
            net.free(unused);
        }
        if let (Some(placement), Some(slow)) = (reaction.placement.take(), &mut self.slow)
            && let Some(token) = placement.token
        {
            if slow.machine.is_some() {
                self.place_payload(net.now(), &placement);
            } else {
                let range = slow.delays.placement;
                slow.after(net.now(), range, Due::Resolve(token, Resolution::Placed));
            }
        }
    }

    /// Lets a packet that is no data wait for the port.
    #[inline]
    fn send(&mut self, net: &mut Net, spare: Option<PacketId>, id: HostId, segment: &Segment) {
        let (queue, priority) = if segment.header.opcode == Opcode::CNP {
            (NOTICES, self.classes.notice)
        } else if segment.header.opcode.shape().has(Shape::AGENT) {
            (NOTICES, segment.priority)
        } else {
            (REPLIES, self.classes.ack.unwrap_or(segment.priority))
        };
        let answered = spare.map(|answered| port_of(&net.packets()[answered]));
        let packet = place(net, spare, id, segment);
        net.packets_mut()[packet].priority = priority;
        if let Some(spread) = &mut self.spread {
            spread.set_answer(answered, &mut net.packets_mut()[packet]);
        }
        if queue == REPLIES && self.has_parts() && self.follows_responses(net, packet) {
            return;
        }
        self.wait(queue, packet);
    }

    /// Sends what the engine wants sent at once, and does, now or later, what it deferred.
    #[inline(always)]
    pub(crate) fn settle(&mut self, net: &mut Net, id: HostId) {
        if self.engine.has_told() {
            self.settle_told(net, id);
        }
    }
}

#[cfg(test)]
mod tests;
