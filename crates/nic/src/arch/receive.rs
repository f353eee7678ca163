//! The way of a packet that arrived: through the FIFO and past its context to the engine, and its payload to memory.

use super::cache;
use super::counters::Cause;
use super::machine::{Judged, Machine, Step, Work};
use crate::drain::Thresholds;
use crate::host::Host;
use crate::work::Due;
use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, Marks, PacketId};
use roci_transport::{CompletionKind, Deferral, MemoryOperation, Placement, Reaction, Resolution};
use roci_units::{Instant, Qpn, Span};
use roci_wire::{Header, Opcode, Shape, Syndrome};

/// Octets of a completion (CQE).
const COMPLETION: u64 = 64;
/// Octets with which software tells the NIC that it has decided.
const DOORBELL: u64 = 8;
/// Octets that an atomic works on.
const ATOMIC: u32 = 8;

impl Host {
    /// Has a NIC made of parts pause `priorities` (bit p: priority p) when its receive FIFO fills, so early that frames of
    /// up to `max_frame` octets do not overflow it. Nothing happens on others.
    pub fn set_pauses(&mut self, net: &Net, id: HostId, priorities: u8, max_frame: u32) {
        let Some((machine, _)) = self.machine() else { return };
        let Some(fifo) = machine.arch.receive.fifo else { return };
        machine.pauses = priorities;
        machine.thresholds = Thresholds::of(fifo, net, id, max_frame);
    }

    /// A packet has arrived at a NIC made of parts.
    pub(crate) fn arrive(&mut self, net: &mut Net, id: HostId, packet: PacketId) {
        let now = net.now();
        let frame = u64::from(net.packets()[packet].frame);
        let qpn = net.packets()[packet].header.dest_qpn;
        let Some((machine, _)) = self.machine() else { return };
        if machine.arch.receive.fifo.is_some_and(|fifo| machine.held + frame > fifo.0) {
            machine.overflowed += 1;
            net.free(packet);
            return;
        }
        machine.held += frame;
        if !machine.paused && machine.held > machine.thresholds.pause_above {
            self.set_paused(net, id, true);
        }
        let Some((machine, agenda)) = self.machine() else { return };
        if machine.unit_of(qpn).is_some() {
            self.begin_work(net, id, now, qpn, Work::Packet(packet));
            return;
        }
        let at = machine.edge(now.max(machine.next_in));
        machine.next_in = at + machine.times.take_out;
        if at > now && at >= now + machine.times.cycle {
            agenda.at(at, Due::Step(Step::Begin { packet }));
        } else {
            // What else the NIC does before the clock's next edge, it does in the same cycle: looking at the context now
            // finds in the cache what is there less than a cycle before the edge, as in `decide`.
            self.take_in(net, at, packet);
        }
    }

    /// A packet leaves the FIFO at `now`, within the present cycle, and waits for its queue pair's context.
    pub(super) fn take_in(&mut self, net: &Net, now: Instant, packet: PacketId) {
        let qpn = net.packets()[packet].header.dest_qpn;
        let known = self.engine.has_queue_pair(qpn);
        let Some((machine, agenda)) = self.machine() else { return };
        // A packet for nobody must not drive out somebody's context.
        let there = if known { machine.context(now, qpn) } else { now };
        if let (true, Some(cores)) = (known, &mut machine.cores) {
            cores.table.hint(now, qpn);
        }
        let payload = net.packets()[packet].header.payload;
        let worked = there + machine.times.unit_receive + machine.extra(payload.into());
        if let Some(unit) = machine.unit_of(qpn) {
            machine.units_waited += there.since(now);
            agenda.at(worked, Due::Step(Step::Free { unit }));
        }
        let late = delay_of(machine, &net.packets()[packet].header);
        let mut at = worked + machine.times.receive + late;
        if machine.units.is_empty() && late.is_zero() {
            at = at.max(machine.judged_last);
            machine.judged_last = at;
        }
        agenda.at(at, Due::Step(Step::Judge { packet }));
    }

    /// A packet has come to where the engine judges it, unless its core has too many to hear of already: then it waits,
    /// and all that come behind it.
    #[inline]
    fn come(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        let (now, qpn) = (net.now(), net.packets()[packet].header.dest_qpn);
        let stands = self.machine().is_some_and(|(machine, _)| !machine.held_up.is_empty());
        if !stands && self.core_has_room(now, qpn) {
            self.judge(net, id, packet, reaction);
        } else if let Some((machine, _)) = self.machine() {
            machine.held_up.push_back((packet, now));
        }
    }

    /// Whether the core of `qpn`, if there is one, may hear of another packet.
    #[inline]
    fn core_has_room(&mut self, now: Instant, qpn: Qpn) -> bool {
        let Self { slow, engine, .. } = self;
        let machine = slow.as_mut().and_then(|slow| slow.machine.as_mut());
        let Some(cores) = machine.and_then(|machine| machine.cores.as_mut()) else { return true };
        !cores.is_limited() || cores.has_room(now, qpn, engine.packets_waiting(qpn))
    }

    /// Has the first packet that waits for its core go on if that has room now. Something always comes that makes room: a
    /// core ends each event, and no event waits but for one, or for a packet to be sent that a core is asked about.
    pub(super) fn look_after_held_up(&mut self, net: &Net) {
        let Some((machine, _)) = self.machine() else { return };
        let Some((packet, _)) = machine.held_up.front().filter(|_| !machine.going_on) else { return };
        let (now, qpn) = (net.now(), net.packets()[*packet].header.dest_qpn);
        if self.core_has_room(now, qpn)
            && let Some((machine, agenda)) = self.machine()
        {
            machine.going_on = true;
            agenda.at(machine.edge(now.max(machine.next_on)), Due::Step(Step::GoOn));
        }
    }

    /// The first packet that waited for its core goes on; the next one may as soon as it could have left the FIFO.
    fn go_on(&mut self, net: &mut Net, id: HostId, reaction: &mut Reaction) {
        let now = net.now();
        let Some((machine, _)) = self.machine() else { return };
        machine.going_on = false;
        let Some((packet, since)) = machine.held_up.pop_front() else { return };
        machine.next_on = now + machine.times.take_out;
        if let Some(cores) = &mut machine.cores {
            cores.held_up(now.since(since));
        }
        self.judge(net, id, packet, reaction);
    }

    /// The engine judges a packet, and its payload goes to memory.
    pub(super) fn judge(&mut self, net: &mut Net, id: HostId, packet: PacketId, reaction: &mut Reaction) {
        let now = net.now();
        let arrived = &net.packets()[packet];
        let (header, frame) = (arrived.header, u32::from(arrived.frame));
        let sound = !arrived.marks.has(Marks::CORRUPT);
        let shape = header.opcode.shape();
        let Some((machine, _)) = self.machine() else { return };
        if shape.has(Shape::RESPONSE) && sound {
            machine.heard = Some((now, header.dest_qpn));
        }
        let send = shape.has(Shape::SEND);
        machine.judged = Judged {
            frame,
            takes_receive: send && shape.has(Shape::FIRST) || shape.has(Shape::IMMEDIATE) && !send,
            completes: shape.has(Shape::LAST) && (send || shape.has(Shape::IMMEDIATE)),
            held: false,
        };
        let halt = machine.arch.congestion.halt;
        if header.opcode == Opcode::CNP && sound && !halt.is_zero() {
            let until = machine.halted.entry(header.dest_qpn).or_insert(Instant::ZERO);
            if *until <= now {
                *until = now + halt;
                machine.halts += 1;
            }
        }
        self.take(net, id, packet, reaction);
        let Some((machine, _)) = self.machine() else { return };
        if !machine.judged.held {
            self.release(net, id, frame);
        }
    }

    /// A request of this host has ended: its completion is written. Those of messages that arrived are with their payload.
    pub(crate) fn write_completion(&mut self, now: Instant, kind: CompletionKind) {
        let Some((machine, _)) = self.machine() else { return };
        let received = matches!(kind, CompletionKind::Recv | CompletionKind::RecvWrite);
        if machine.arch.pcie.attached && !received {
            machine.pcie.write(now, COMPLETION, Cause::Completion);
        }
    }

    /// Payload goes to memory: the receive request is looked up, its pages translated, and it is written.
    pub(crate) fn place_payload(&mut self, now: Instant, placement: &Placement) {
        let Some(token) = placement.token else { return };
        let Some((machine, agenda)) = self.machine() else { return };
        let Judged { frame, takes_receive, completes, .. } = machine.judged;
        machine.judged.held = true;
        let mut waited = now;
        if takes_receive && !machine.receive_wqes.is_whole() {
            let number = cache::of(placement.qpn);
            if let Some(left) = machine.receive_wqes.lookup_serving(number, |left| *left > 0) {
                *left -= 1;
            } else {
                // One, but for a queue pair that comes again before its place is given away, as with send requests.
                let again = machine.receive_wqes.peek_mut(number).is_some();
                let fetched = if again { machine.arch.send.fetch } else { 1 };
                let octets = u64::from(fetched) * u64::from(machine.arch.receive_wqe.size);
                waited = machine.pcie.read(now, octets, Cause::ReceiveWqe);
                machine.receive_wqes.insert(number, fetched - 1);
            }
        }
        // Where the payload goes stands in the request that it takes: the two round trips follow each other.
        let known = machine.translate(now, placement.qpn, placement.address, placement.length);
        waited += known.since(now);
        let mut at = machine.pcie.write(now, placement.length.into(), Cause::Payload);
        if completes {
            at = machine.pcie.write(now, COMPLETION, Cause::Completion);
        }
        agenda.at(at + waited.since(now), Due::Step(Step::Placed { token, frame }));
    }

    /// Until when the parts of a NIC are busy with a deferral; `None` where there are none.
    pub(crate) fn parts_take_until(&mut self, now: Instant, deferral: &Deferral) -> Option<Instant> {
        let (machine, _) = self.machine()?;
        match deferral {
            Deferral::Law { .. } => None,
            Deferral::Recovery { qpn, packets, .. } => {
                machine.recoveries += u64::from(*packets);
                let path = machine.arch.recovery;
                // The software is told of each packet as it comes, in a write of its own.
                let mut told = now;
                for _ in 0..*packets {
                    told = machine.pcie.write(now, path.octets.into(), Cause::Recovery);
                }
                machine.pcie.count(now, DOORBELL, Cause::Recovery);
                // What came while it was busy with others of the same queue pair waits in its queue, not on the way there
                // and back.
                let queued = machine.decided.get(qpn) == Some(&now);
                let at = if queued { now } else { told + machine.arch.pcie.write };
                // One module of software serves all queue pairs (SRNIC §4.2), on a core or several.
                let core = qpn.get() as usize % machine.deciding_until.len();
                let busy = &mut machine.deciding_until[core];
                let at = at.max(*busy) + path.software * u64::from(*packets);
                *busy = at;
                machine.decided.insert(*qpn, at);
                Some(at)
            }
            // A READ's payload is read in its turns, as that of a WRITE (SRNIC §4.4.1).
            Deferral::Memory { operation: MemoryOperation::Read { .. }, .. } => None,
            Deferral::Memory {
                qpn,
                operation:
                    MemoryOperation::FetchAdd { address, .. } | MemoryOperation::CompareSwap { address, .. },
                ..
            } => {
                let known = machine.translate(now, *qpn, *address, ATOMIC);
                let at = machine.pcie.read(now, ATOMIC.into(), Cause::Payload);
                machine.pcie.write(now, ATOMIC.into(), Cause::Payload);
                Some(at + known.since(now))
            }
        }
    }

    /// A frame's octets leave the FIFO.
    fn release(&mut self, net: &mut Net, id: HostId, frame: u32) {
        let Some((machine, _)) = self.machine() else { return };
        machine.held = machine.held.saturating_sub(frame.into());
        if machine.paused && machine.held <= machine.thresholds.resume_below {
            self.set_paused(net, id, false);
        }
    }

    fn set_paused(&mut self, net: &mut Net, id: HostId, on: bool) {
        let Some((machine, _)) = self.machine() else { return };
        machine.paused = on;
        let pauses = machine.pauses;
        for priority in (0..8).filter(|priority| pauses & 1 << priority != 0) {
            net.host_pause(id, priority, on);
        }
    }

    /// Does what has come due.
    pub(crate) fn step(&mut self, net: &mut Net, id: HostId, step: Step, reaction: &mut Reaction) {
        match step {
            Step::Decide => {
                if let Some((machine, _)) = self.machine() {
                    machine.deciding = false;
                }
            }
            Step::Requested { offer } => self.begin_work(net, id, net.now(), offer.qpn, Work::Turn(offer)),
            Step::Fetched { offer } => self.serve(net, id, net.now(), offer),
            Step::Made { packet } => self.wait_made(net, packet),
            Step::Free { unit } => self.free(net, id, unit),
            Step::Begin { packet } => self.take_in(net, net.now(), packet),
            Step::Judge { packet } => self.come(net, id, packet, reaction),
            Step::GoOn => self.go_on(net, id, reaction),
            Step::Placed { token, frame } => {
                self.engine.resolve(net.now(), token, Resolution::Placed);
                self.release(net, id, frame);
                self.settle(net, id);
            }
        }
    }

    /// A unit has done its work: the next piece of work begins.
    fn free(&mut self, net: &mut Net, id: HostId, unit: usize) {
        let Some((machine, _)) = self.machine() else { return };
        let unit = &mut machine.units[unit];
        match unit.waiting.pop_front() {
            None => unit.busy = false,
            Some(Work::Turn(offer)) => self.fetch(net, id, net.now(), offer),
            Some(Work::Packet(packet)) => self.take_in(net, net.now(), packet),
        }
    }

    /// Fires the engine's timers that are due: all, or one in each interval.
    pub(crate) fn machine_timers(&mut self, net: &mut Net, id: HostId) {
        let now = net.now();
        let Some((machine, _)) = self.machine() else { return };
        if machine.times.timer.is_zero() {
            self.engine.wake(now);
        } else if machine.edge(now.max(machine.next_timer)) == now {
            machine.next_timer = now + machine.times.timer;
            let heard = machine.heard.filter(|(at, _)| *at == now).map(|(_, qpn)| qpn);
            let next = machine.next_timer;
            self.engine.wake_one(now, heard, next);
        }
        self.settle(net, id);
    }
}

/// How long a NAK or a CNP is on its way to the engine; no other packet is.
fn delay_of(machine: &Machine, header: &Header) -> Span {
    if header.opcode == Opcode::CNP {
        return machine.arch.congestion.delay;
    }
    let nak = header.opcode == Opcode::ACKNOWLEDGE
        && matches!(Syndrome::from_u8(header.aeth().syndrome), Some(Syndrome::Nak(_)));
    if nak { machine.arch.recovery.nak } else { Span::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::presets;
    use crate::host::Classes;
    use roci_transport::{Engine, EngineConfig, Token};
    use roci_units::Random;
    use std::sync::Arc;

    #[test]
    fn one_core_decides_about_the_losses_of_all_queue_pairs_unless_there_are_more() {
        let decided = |cores| {
            let mut nic = presets::find("srnic").expect("it exists");
            (nic.recovery.software, nic.recovery.cores) = (Span::from_micros(1), cores);
            let engine = Engine::new(EngineConfig::default());
            let mut host = Host::of_parts(engine, Classes::default(), Arc::new(nic), Random::new(1, 1));
            [1, 2].map(|qpn| {
                let asked = Deferral::Recovery { token: Token(0), qpn: Qpn::new(qpn), packets: 3 };
                host.parts_take_until(Instant::ZERO, &asked).expect("it is made of parts")
            })
        };
        let ([first, second], [one, other]) = (decided(1), decided(2));
        assert_eq!(first, one);
        assert_eq!(second.since(first), Span::from_micros(3), "three packets behind the others");
        // What tells of the second three is on the link behind the first.
        assert!(other.since(one) < Span::from_nanos(10), "{}", other.since(one));
    }
}
