//! The way of a queue pair's turn: decided, fetched, made into packets, handed to the port.

use super::cache;
use super::counters::Cause;
use super::machine::{Machine, Requests, Step, Work};
use crate::host::{GRANTED, Host, REPLIES};
use crate::work::{Due, Slow};
use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, PacketId};
use roci_transport::{Grant, Offer, Segment, Until};
use roci_units::{Instant, Qpn};
use roci_wire::Shape;

impl Host {
    /// The NIC's parts, if it is made of any, and its clockwork.
    pub(super) fn machine(&mut self) -> Option<(&mut Machine, &mut crate::work::Agenda)> {
        self.slow.as_mut().and_then(|slow| {
            let Slow { machine, agenda, .. } = &mut **slow;
            machine.as_mut().map(|machine| (machine, agenda))
        })
    }

    /// Begins the turns that may begin, and tells the fabric what this host wants next.
    pub(crate) fn run_machine(&mut self, net: &mut Net, id: HostId) {
        self.decide(net, id);
        if self.waits > 0 {
            net.kick(id);
        }
        self.look_after_held_up(net);
        self.ask_to_wake(net, id);
    }

    /// Tells the fabric when something comes due.
    fn ask_to_wake(&mut self, net: &mut Net, id: HostId) {
        let now = net.now();
        let wakeup = self.engine.next_wakeup();
        let Some((machine, agenda)) = self.machine() else { return };
        if let Some(at) = wakeup {
            let at = if machine.times.timer.is_zero() {
                at
            } else {
                machine.edge(at.max(machine.next_timer).max(now))
            };
            net.wake_at(id, at);
        }
        if let Some(at) = agenda.next() {
            net.wake_at(id, at);
        }
    }

    /// Hands the port its next packet.
    pub(crate) fn next_made(&mut self, net: &mut Net, id: HostId, open: u8) -> Option<PacketId> {
        let Some(mut foremost) = self.foremost(net, open) else {
            // The port may have been let go on: so are the turns. What waits for a priority that is held does so still.
            let waited = self.waits;
            self.decide(net, id);
            if self.waits > waited {
                net.kick(id);
            }
            self.ask_to_wake(net, id);
            return None;
        };
        // An acknowledgement that goes before what a turn made may stand behind one that does not.
        if foremost.queue == GRANTED
            && let Some(higher) = self.foremost_unpaused(net, open & foremost.above())
        {
            foremost = higher;
        }
        let packet = self.take_waiting(open, foremost);
        if foremost.queue == GRANTED {
            self.has_left(net, packet);
        }
        self.run_machine(net, id);
        Some(packet)
    }

    /// A packet that a turn made is with the port.
    fn has_left(&mut self, net: &Net, packet: PacketId) {
        let of = &net.packets()[packet];
        let (to, header, priority) = ((of.destination, of.header.dest_qpn), &of.header, of.priority);
        let Some((machine, _)) = self.machine() else { return };
        machine.is_through(priority, header.payload.into());
        if header.opcode.shape().has(Shape::RESPONSE) {
            for acknowledgement in machine.answers.left(to) {
                self.wait(REPLIES, acknowledgement);
            }
        }
    }

    /// Whether an acknowledgement has to wait for READ responses that are on their way to the same queue pair. It then
    /// follows them.
    pub(crate) fn follows_responses(&mut self, net: &Net, packet: PacketId) -> bool {
        let Some((machine, _)) = self.machine() else { return false };
        let of = &net.packets()[packet];
        machine.answers.hold((of.destination, of.header.dest_qpn), packet)
    }

    /// Takes turns while there is room for them.
    fn decide(&mut self, net: &mut Net, id: HostId) {
        let now = net.now();
        let unpaused = !net.paused(u32::from(id.0));
        loop {
            let Some((machine, _)) = self.machine() else { return };
            let open = unpaused & machine.with_room();
            if !self.engine.has_work(open) {
                return;
            }
            let Some((machine, agenda)) = self.machine() else { return };
            let send = machine.arch.send;
            if machine.turns >= send.turns {
                return;
            }
            let at = machine.edge(now.max(machine.next_turn));
            // What is decided before the clock's next edge begins there, in the same cycle. It rests on what the NIC
            // knows now: what comes between now and the edge, less than a cycle, is seen by the next decision. A
            // register between two stages does the same. Of two turns whose requests come within one cycle that may
            // change which goes first, and by no more than that cycle when either is served.
            if at > now && at >= now + machine.times.cycle {
                if !machine.deciding {
                    machine.deciding = true;
                    agenda.at(at, Due::Step(Step::Decide));
                }
                return;
            }
            let quantum = u32::try_from(send.burst.0).unwrap_or(u32::MAX);
            let offer = self.engine.offer_open(now, quantum, open);
            self.settle(net, id);
            let Some(offer) = offer else { return };
            if let Some(until) = self.halted_until(now, offer.qpn) {
                self.engine.decline(now, offer, Until::At(until));
                continue;
            }
            let Some((machine, _)) = self.machine() else { return };
            machine.next_turn = at + machine.times.decide;
            machine.turns += 1;
            machine.turns_begun += 1;
            self.fetch_requests(net, id, at, offer);
        }
    }

    /// Has the requests of a turn fetched from `now` on, which lies in the present cycle, if they are not on the chip. No unit
    /// waits for them: the turn begins when they are there.
    ///
    /// More than a turn serves are fetched for a queue pair that comes again before its place among those that stay is given
    /// away: for others they would be fetched in vain.
    fn fetch_requests(&mut self, net: &mut Net, id: HostId, now: Instant, offer: Offer) {
        let most = self.machine().map_or(0, |(machine, _)| machine.arch.send.fetch);
        let waiting = self.engine.requests_waiting(offer.qpn, most).max(1);
        let Some((machine, agenda)) = self.machine() else { return };
        *machine.ahead_of(offer.priority) += u64::from(offer.length);
        let needs = !machine.is_retry(&offer) && !offer.response && machine.arch.pcie.attached;
        let number = cache::of(offer.qpn);
        if needs && !machine.wqes.is_whole() {
            let at = match machine.wqes.lookup_serving(number, |kept| kept.left + kept.coming > 0) {
                Some(kept) => kept.there(now),
                None => {
                    let again = machine.wqes.peek_mut(number).is_some();
                    let coming = if again { waiting } else { waiting.min(machine.arch.send.serve) };
                    let octets = u64::from(coming) * machine.request;
                    let ready = machine.pcie.read(now, octets, Cause::Wqe);
                    machine.wqes.insert(number, Requests { left: 0, coming, ready, again });
                    ready
                }
            };
            if at > now {
                return agenda.at(at, Due::Step(Step::Requested { offer }));
            }
        }
        self.begin_work(net, id, now, offer.qpn, Work::Turn(offer));
    }

    fn halted_until(&mut self, now: Instant, qpn: Qpn) -> Option<Instant> {
        let (machine, _) = self.machine()?;
        let until = *machine.halted.get(&qpn)?;
        if until > now {
            return Some(until);
        }
        machine.halted.remove(&qpn);
        None
    }

    /// Has the unit of `qpn` do `work`, at `now`, which lies in the present cycle, or when it is free.
    pub(super) fn begin_work(&mut self, net: &mut Net, id: HostId, now: Instant, qpn: Qpn, work: Work) {
        let Some((machine, _)) = self.machine() else { return };
        if let Some(unit) = machine.unit_of(qpn) {
            let unit = &mut machine.units[unit];
            if unit.busy {
                unit.waiting.push_back(work);
                return;
            }
            unit.busy = true;
        }
        match work {
            Work::Turn(offer) => self.fetch(net, id, now, offer),
            Work::Packet(packet) => self.take_in(net, now, packet),
        }
    }

    /// Has what a turn needs besides its requests fetched from `now` on, which lies in the present cycle.
    pub(super) fn fetch(&mut self, net: &mut Net, id: HostId, now: Instant, offer: Offer) {
        let Some((machine, agenda)) = self.machine() else { return };
        let mut at = machine.context(now, offer.qpn);
        if offer.wants_law && !machine.is_sliced(offer.qpn) {
            if let Some(cores) = &mut machine.cores {
                cores.table.hint(now, offer.qpn);
            }
            at = at.max(now + machine.times.handler);
        }
        if machine.is_retry(&offer) {
            at = at.max(machine.pcie.read(now, machine.retry_octets(&offer), Cause::Recovery));
        }
        if at > now {
            if machine.unit_of(offer.qpn).is_some() {
                machine.units_waited += at.since(now);
            }
            agenda.at(at, Due::Step(Step::Fetched { offer }));
        } else {
            self.serve(net, id, now, offer);
        }
    }

    /// Makes packets of a turn: its context and requests are on the chip. Where a core is to be asked, it is.
    pub(super) fn serve(&mut self, net: &mut Net, id: HostId, now: Instant, offer: Offer) {
        if offer.wants_law && self.has_cores() && self.ask_core(now, offer) {
            return;
        }
        self.serve_granted(net, id, now, offer, &Grant::Engine);
    }

    /// Makes packets of a turn that has been granted, from `begun` on, which lies in the present cycle.
    pub(super) fn serve_granted(
        &mut self,
        net: &mut Net,
        id: HostId,
        begun: Instant,
        offer: Offer,
        mut grant: &Grant,
    ) {
        let now = net.now();
        let most = self.machine().map_or(0, |(machine, _)| machine.arch.send.fetch);
        let waiting = self.engine.requests_waiting(offer.qpn, most).max(1);
        let Some((machine, _)) = self.machine() else { return };
        let send = machine.arch.send;
        let number = cache::of(offer.qpn);
        let retries = machine.is_retry(&offer);
        // What was fetched for this turn is there even where nothing stays, or where it would have had to make way.
        let fetched = waiting.min(send.serve);
        let Requests { mut left, coming, again, .. } = match machine.wqes.is_whole() || retries {
            true => Requests { left: u32::MAX, ..Requests::default() },
            false => {
                let kept = machine.wqes.peek_mut(number).map(|kept| {
                    kept.there(begun);
                    *kept
                });
                kept.filter(|kept| kept.left > 0).unwrap_or(Requests { left: fetched, ..Requests::default() })
            }
        };
        let (qpn, mut next) = (offer.qpn, Some(offer));
        let (mut served, mut octets, mut packets) = (0, 0u64, 0u32);
        // Whether the last packet ended its message.
        let mut ended = true;
        while let Some(offer) = next.take() {
            if let Some((machine, _)) = self.machine() {
                machine.is_through(offer.priority, offer.length.into());
            }
            let segment = self.engine.commit(now, offer, *std::mem::replace(&mut grant, &Grant::Engine));
            if let Some(segment) = segment {
                served += 1;
                octets += u64::from(segment.length);
                packets += u32::from(segment.packets);
                ended = segment.last_opcode.shape().has(Shape::LAST);
                if !offer.response && !offer.retransmission && ended {
                    left = left.saturating_sub(1);
                }
                self.make(net, id, begun, qpn, &segment);
                let burst = send.burst.0.saturating_sub(octets);
                if served < send.serve && burst > 0 && left > 0 && !offer.response && !offer.wants_law {
                    let quantum = u32::try_from(burst).unwrap_or(u32::MAX);
                    next = self.engine.offer_more(now, qpn, quantum);
                    // What is new waits for a turn of its own, whose requests have been fetched.
                    if let Some(new) = next.take_if(|next| retries && !next.retransmission) {
                        self.engine.decline(now, new, Until::Recirculated);
                    }
                    if let (Some(offer), Some((machine, _))) = (&next, self.machine()) {
                        *machine.ahead_of(offer.priority) += u64::from(offer.length);
                        if retries {
                            machine.pcie.count(now, machine.retry_octets(offer), Cause::Recovery);
                        }
                    }
                }
            }
            self.settle(net, id);
        }
        // What is sliced stands in line at the core at once: the rest of the message goes on with this turn.
        let room = self.machine().map_or(0, |(machine, _)| machine.with_room());
        let open = (!net.paused(u32::from(id.0)) & room) >> offer.priority & 1 == 1;
        let more = send.whole && offer.wants_law && !ended && open;
        let next = if more { self.engine.offer_more(now, qpn, 1) } else { None };
        let waiting = self.engine.requests_waiting(qpn, send.fetch);
        let Some((machine, agenda)) = self.machine() else { return };
        machine.turns -= u32::from(next.is_none());
        if offer.wants_law {
            machine.note_sliced(now, qpn, waiting > 0);
        }
        if !offer.response && !machine.wqes.is_whole() && left < u32::MAX {
            match machine.wqes.peek_mut(number) {
                Some(kept) => kept.left = left,
                None => machine.dropped_wqes += u64::from(left),
            }
        }
        if again && !offer.response && coming == 0 && left <= send.fetch / 2 {
            // The next requests are on their way before the last ones are used up.
            let coming = waiting.min(send.fetch).saturating_sub(left);
            if coming > 0 {
                let octets = u64::from(coming) * machine.request;
                let ready = machine.pcie.read(now, octets, Cause::Wqe);
                machine.wqes.insert(number, Requests { left, coming, ready, again });
            }
        }
        if let Some(unit) = machine.unit_of(qpn) {
            let taken = machine.work(packets) + std::mem::take(&mut machine.taken);
            agenda.at(begun + taken, Due::Step(Step::Free { unit }));
        }
        if let Some(next) = next {
            *machine.ahead_of(next.priority) += u64::from(next.length);
            self.begin_work(net, id, begun, qpn, Work::Turn(next));
        }
    }

    /// Makes the packets of a segment, each when its payload is there.
    fn make(&mut self, net: &mut Net, id: HostId, now: Instant, qpn: Qpn, segment: &Segment) {
        let response = segment.header.opcode.shape().has(Shape::RESPONSE);
        for number in 0..segment.packets {
            let (header, source) = segment.packet(number);
            let one = Segment {
                header,
                source,
                length: header.payload.into(),
                packets: 1,
                last_opcode: header.opcode,
                last_flags: header.flags,
                words: segment.packet_words(number),
                ..*segment
            };
            let packet = self.make_packet(net, id, qpn, &one);
            let Some((machine, agenda)) = self.machine() else { return };
            *machine.ahead_of(segment.priority) += u64::from(header.payload);
            let inline = !response && u64::from(segment.length) <= machine.arch.send.inline.0;
            let mut at = now;
            if response {
                let of = &net.packets()[packet];
                machine.answers.made((of.destination, of.header.dest_qpn));
            }
            if machine.arch.pcie.attached && header.payload > 0 && !inline {
                let known = machine.translate(now, qpn, source.address, header.payload.into());
                at = machine.pcie.read(now, header.payload.into(), Cause::Payload) + known.since(now);
            }
            let unit = machine.unit_of(qpn);
            let extra = machine.extra(header.payload.into());
            machine.taken += extra;
            let work = machine.work(u32::from(number) + 1) + machine.taken;
            let last = &mut machine.made[unit.unwrap_or(0)];
            at = (at.max(now + work) + machine.times.send).max(*last);
            *last = at;
            if !machine.times.pace.is_zero() {
                at = machine.edge(at.max(machine.next_out));
                machine.next_out = at + machine.times.pace;
            }
            machine.packets_made += 1;
            machine.made_time += at.since(now);
            if at > net.now() {
                agenda.at(at, Due::Step(Step::Made { packet }));
            } else {
                self.wait_made(net, packet);
            }
        }
    }
}
