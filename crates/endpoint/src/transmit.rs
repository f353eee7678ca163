//! What leaves: segments of the engine become packets of a batch.

use crate::icrc::Flow;
use crate::io::PacketIo;
use crate::io::batch::{Payload, Route};
use crate::numbers::place_of;
use crate::paths::dscp_of;
use crate::shard::Core;
use crate::telemetry;
use roci_transport::{Grant, Segment};
use roci_units::Instant;
use roci_wire::{Deth, Ecn, Flags, Layout, LayoutWords, Opcode, Shape, Syndrome, Transport};

/// Octets offered at once: a run of 15 packets of 4096 octets, or of 60 of 1024.
pub(crate) const QUANTUM: u32 = 60 << 10;
/// Octets that leave before what has arrived is looked at: four messages of 64 KiB with their headers, so that they do not
/// end in a run of the last few packets, and what a socket's buffer holds wherever one is.
const TURN: u64 = 272 << 10;
/// The most octets of headers: BTH, CC header, RETH and immediate data.
const HEADERS_MAX: usize = 160;

impl Core {
    /// Sends what the engine wants to send, for a turn; some of it stays in the batch.
    pub(crate) fn fill(&mut self, now: Instant, io: &mut dyn PacketIo) {
        // They go before data, and with the system call of those.
        self.fill_urgent(io);
        self.fill_awaited(io);
        let until = self.batch.passed() + TURN;
        while self.batch.passed() < until {
            let Some(offer) = self.engine.offer(now, QUANTUM) else { break };
            let sender = offer.qpn;
            let Some(mut segment) = self.engine.commit(now, offer, Grant::Engine) else {
                self.settle(now);
                continue;
            };
            if !self.replies.is_empty() && segment.header.opcode.shape().has(Shape::RESPONSE) {
                self.answer_before(io, &segment);
            }
            segment.words = segment.stamped(now);
            if let Some(Some(entry)) = self.entries.get_mut(place_of(sender) as usize) {
                entry.octets += u64::from(segment.length);
            }
            self.pack(io, &segment);
            self.settle(now);
        }
        self.fill_urgent(io);
        self.fill_awaited(io);
    }

    /// Sends the acknowledgements where a peer's law waits for one of them, those before it first.
    fn fill_awaited(&mut self, io: &mut dyn PacketIo) {
        if self.is_awaited {
            (self.is_awaited, self.unanswered) = (false, 0);
            self.fill_replies(io);
        }
    }

    fn fill_urgent(&mut self, io: &mut dyn PacketIo) {
        if self.urgent.is_empty() {
            return;
        }
        let mut urgent = std::mem::take(&mut self.urgent);
        for segment in urgent.drain(..) {
            self.has_cnp |= segment.header.opcode == Opcode::CNP;
            self.pack(io, &segment);
        }
        // All of them, and some may have gone.
        self.urgent = urgent;
    }

    /// Lets `response` overtake no answer of its queue pair that waits: the requester would take for lost what an atomic's
    /// result brings. An acknowledgement that the response includes is left out. Behind the response it would be late,
    /// and one that comes between a READ's responses makes Soft-RoCE of Linux 6.12 give up.
    #[inline(never)]
    fn answer_before(&mut self, io: &mut dyn PacketIo, response: &Segment) {
        for _ in 0..self.replies.len() {
            let Some(reply) = self.replies.pop_front() else { return };
            if (reply.header.dest_qpn, reply.path) != (response.header.dest_qpn, response.path) {
                self.replies.push_back(reply);
                continue;
            }
            let is_included = is_plain(&reply)
                && !reply.header.flags.has(Flags::BECN)
                && reply.header.psn.since(response.header.psn) < 0;
            if is_included {
                continue;
            }
            self.pack(io, &reply);
        }
    }

    /// Sends the acknowledgements that have waited; some of them stay in the batch.
    pub(crate) fn fill_replies(&mut self, io: &mut dyn PacketIo) {
        while let Some(segment) = self.replies.pop_front() {
            self.pack(io, &segment);
        }
    }

    /// Sends the batch.
    pub(crate) fn emit(&mut self, io: &mut dyn PacketIo) {
        if self.batch.is_empty() {
            return;
        }
        let sent = io.send(&self.batch);
        self.counters.sent += sent.packets;
        self.counters.unsent += sent.dropped;
        self.batch.clear();
        if self.has_cnp && self.urgent.is_empty() {
            self.has_cnp = false;
            self.engine.cnps_left(self.clock.now());
        }
    }

    /// Lets an acknowledgement wait. It takes the place of the one before it of the same queue pair, which it includes. A CNP waits no
    /// longer than until what has arrived with its mark is dealt with, and neither does a packet of a law's own, a grant, a pull or what a
    /// program says: the peer's law waits for it to send, or measures by it, and none of them includes another. An acknowledgement that bears
    /// times or words of a law waits no longer either, but as it stands in the order of its queue pair's answers, all before it go with it.
    pub(crate) fn queue_reply(&mut self, now: Instant, mut segment: Segment) {
        segment.words = segment.stamped(now);
        if segment.header.opcode == Opcode::CNP || segment.header.opcode.shape().has(Shape::AGENT) {
            return self.urgent.push(segment);
        }
        self.is_awaited |= segment.words.is_some();
        if self.replies.is_empty() {
            self.replied_at = now;
        }
        if is_plain(&segment) {
            let same = |other: &&mut Segment| {
                (other.header.dest_qpn, other.path) == (segment.header.dest_qpn, segment.path)
            };
            let before = self.replies.iter_mut().rev().take(8).find(same);
            if let Some(before) = before
                && is_plain(before)
            {
                let flags = segment.header.flags.with(before.header.flags);
                // The answer to a duplicate may say less than the one before.
                if segment.header.psn.since(before.header.psn) >= 0 {
                    *before = segment;
                }
                before.header.flags = flags;
                return;
            }
        }
        self.replies.push_back(segment);
    }

    fn route(&mut self, segment: &Segment) -> Option<Route> {
        let (destination, flow) = match self.to {
            Some((path, address, flow)) if path == segment.path => (address, flow),
            _ => {
                let address = self.paths.address(segment.path)?;
                let flow = Flow::new(self.local, address);
                self.to = Some((segment.path, address, flow));
                (address, flow)
            }
        };
        let is_cnp = segment.header.opcode == Opcode::CNP;
        Some(Route {
            destination,
            flow,
            ecn: if segment.ecn_capable { Ecn::Ect0 } else { Ecn::NotEct },
            dscp: match segment.layout {
                _ if is_cnp => self.cnp_dscp,
                Layout::Standard => dscp_of(segment.path),
                layout if telemetry::has_room(layout, segment.header.opcode) => self.int_dscp,
                _ => dscp_of(segment.path),
            },
        })
    }

    /// Appends the packets of a segment to the batch, which is sent in between when it is due.
    fn pack(&mut self, io: &mut dyn PacketIo, segment: &Segment) {
        let Some(route) = self.route(segment) else { return };
        self.counters.cnps += u64::from(segment.header.opcode == Opcode::CNP);
        let response = segment.header.opcode.shape().has(Shape::RESPONSE);
        let (mut headers, mut length, mut cc) = ([0; HEADERS_MAX], 0, 0);
        // Packets from the middle of a message differ in their PSN alone, and in their place where each says that.
        let uniform = segment.layout == Layout::Standard;
        let (mut payload, mut source, mut va) = (0, segment.source, 0u64);
        for index in 0..segment.packets {
            if uniform && index > 1 && index + 1 < segment.packets {
                // As one word, for that is how it is read again.
                let psn = segment.header.psn.plus(index.into()).get() | u32::from(headers[8]) << 24;
                headers[8..12].copy_from_slice(&psn.to_be_bytes());
                source.address = source.address.wrapping_add(segment.mtu.into());
                if segment.each_placed {
                    va = va.wrapping_add(segment.mtu.into());
                    headers[12..20].copy_from_slice(&va.to_be_bytes());
                }
            } else {
                let (mut header, from) = segment.packet(index);
                if header.opcode.shape().has(Shape::DATAGRAM) {
                    let place = place_of(header.deth().source_qpn) as usize;
                    let Some(Some(entry)) = self.entries.get(place) else { return };
                    header.set_deth(Deth { source_qpn: entry.qpn, ..header.deth() });
                }
                let words = segment.packet_words(index).and_then(|words| {
                    LayoutWords::new(&words.words[..usize::from(words.len).min(LayoutWords::MAX)])
                });
                let law_words = segment.layout.law_words(header.opcode);
                let words = words.unwrap_or_else(|| LayoutWords::zeroed(law_words));
                let transport = Transport { header, layout: segment.layout, words };
                let Ok(emitted) = transport.emit_headers(&mut headers) else { continue };
                (length, cc) = (emitted, segment.layout.rewritable_len(header.opcode));
                (payload, source, va) = (usize::from(header.payload), from, header.reth().va);
            }
            let headers = &headers[..length];
            let joins = self.batch.joins(&route, length, payload);
            if !joins && self.batch.is_due() {
                // A region that peers reach is held for no system call.
                self.let_go();
                self.emit(io);
            }
            let start = || io.begin(route.destination);
            if response {
                // Its region may change at any time: what is checked must be what is sent. It is held meanwhile, and read once.
                let mut octets: &[u8] = &[];
                if payload > 0 {
                    let offset = self.memory(source.lkey, source.address).map(|(_, offset)| offset);
                    let found = self.held.as_ref().zip(offset);
                    // SAFETY: it is held.
                    #[expect(unsafe_code, reason = "see above")]
                    let found =
                        found.and_then(|((_, memory, _), at)| unsafe { memory.octets_held(at, payload) });
                    // A region that is gone has nothing to send any more.
                    let Some(found) = found else { break };
                    octets = found;
                }
                self.batch.push(&route, joins, start, headers, cc, Payload::Octets(octets));
            } else if let Some(octets) = self.works.in_place(source.address, payload) {
                self.batch.push(&route, joins, start, headers, cc, Payload::Octets(octets));
            } else {
                let mut write = |place: &mut [u8]| self.works.gather(source.address, place);
                self.batch.push(&route, joins, start, headers, cc, Payload::Written(payload, &mut write));
            }
        }
        self.let_go();
    }
}

/// Whether it is an acknowledgement that says nothing besides.
fn is_plain(segment: &Segment) -> bool {
    segment.header.opcode == Opcode::ACKNOWLEDGE
        && segment.words.is_none()
        && segment.layout == Layout::Standard
        && matches!(Syndrome::from_u8(segment.header.aeth().syndrome), Some(Syndrome::Ack { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Backend, Device, DeviceConfig, LINK, Mtu, Progress};
    use crate::io::memory::MemoryIo;
    use crate::io::{Faults, MemoryWire};
    use crate::memory::RemoteMemory;
    use crate::pair::{End, pair_with};
    use crate::queue_pair::{QpInfo, QueuePairBuilder};
    use crate::work::SendWr;
    use roci_control::program::Options;
    use roci_control::{Image, Law, Programmed};
    use roci_transport::{Access, Recovery};
    use roci_units::{Psn, Qpn, Span};
    use roci_wire::{AtomicEth, BthView, Cc, Header, Ip, Reth};
    use std::net::{IpAddr, Ipv6Addr};
    use std::sync::Arc;
    use std::time::Duration;

    const HERE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
    const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    const WRITE: Opcode = Opcode::WRITE_ONLY;
    const READ: Opcode = Opcode::READ_REQUEST;
    const ADD: Opcode = Opcode::FETCH_ADD;
    /// The queue pair that a peer by hand speaks for.
    const FAR: QpInfo = QpInfo { address: IpAddr::V6(PEER), qpn: Qpn::new(5), psn: Psn::new(0) };

    /// A device on `wire`, which goes on when it is told to, and a peer by hand.
    fn alone(wire: &MemoryWire, read_room: Option<u32>) -> (Device, MemoryIo) {
        let backend = Backend::Memory(wire.clone());
        let config =
            DeviceConfig { backend, progress: Progress::Caller, read_room, ..DeviceConfig::default() };
        (Device::open_with(HERE.into(), config).unwrap(), wire.attach(PEER.into()).unwrap())
    }

    /// The peer sends a packet without payload.
    fn inject(wire: &MemoryWire, header: Header) {
        let transport = Transport::standard(header);
        let mut octets = vec![0; transport.len()];
        transport.emit_with(&Ip::v6(PEER, HERE), 4791, &mut octets, |_| {}).unwrap();
        wire.inject(PEER.into(), HERE.into(), &octets);
    }

    #[test]
    fn a_cnp_waits_for_no_company_and_the_gap_to_the_next_begins_when_it_leaves() {
        let wire = MemoryWire::new(1);
        let law = Law::from_settings("dcqcn", &[("cnp_gap", "50ms")], LINK).unwrap();
        let config = DeviceConfig { progress: Progress::Caller, laws: vec![law], ..DeviceConfig::default() };
        let [near, far] = pair_with(&wire, &config, |qp| qp.timeout(0));
        wire.set_faults(Faults { mark: 1000, ..Faults::default() });
        // A marked packet that is dealt with as if it were `at`; gives the CNPs that have come back, and whether it is acknowledged.
        let marked = |at: Instant| {
            near.qp.post_send(SendWr::write_inline(&[], RemoteMemory::default())).unwrap();
            far.device.inner.cells[0].lock().run(at);
            near.device.progress();
            (near.qp.counters().cnps, near.cq.poll().is_some())
        };
        let millis = Span::from_millis;
        let asked = far.device.inner.now();
        std::thread::sleep(Duration::from_millis(30));
        // The run takes 30 ms.
        assert_eq!(marked(asked), (1, false), "the acknowledgement waits");
        let left = far.device.inner.now();
        assert_eq!(marked(asked + millis(51)).0, 1, "50 ms after it was asked for, and 20 after it left");
        assert_eq!(marked(left + millis(50)).0, 2);
    }

    #[test]
    fn what_a_law_says_by_packets_of_its_own_waits_for_no_company() {
        // It follows each ACK with a `LAW_7`, which the peer's answers with a `LAW_2`, and that one with a `LAW_3`.
        let octets = include_bytes!("../../control/tests/images/talks.elf");
        let image = Image::new("talks.elf", octets, &Options::default()).unwrap();
        let law = Law::Program(Box::new(Programmed::new(Arc::new(image), Law::None).unwrap()));
        let config = DeviceConfig { progress: Progress::Caller, laws: vec![law], ..DeviceConfig::default() };
        let layout = Layout::Cc(Cc::new(false, false, 1).unwrap());
        let build = |qp: QueuePairBuilder| qp.recovery(Recovery::GoBackN, layout).timeout(0);
        let [near, far] = pair_with(&MemoryWire::new(1), &config, build);
        let run = |end: &End| end.device.inner.cells[0].lock().run(end.device.inner.now());
        let sent = || [&near, &far].map(|end| end.device.counters().sent);
        near.qp.post_send(SendWr::write_inline(&[], RemoteMemory::default())).unwrap();
        run(&far);
        assert_eq!(sent(), [1, 0], "an acknowledgement waits for others");
        run(&far);
        assert_eq!(sent(), [1, 1]);
        // Each is answered by the very run that finds it.
        for (end, all) in [(&near, [2, 1]), (&far, [2, 2]), (&near, [3, 2])] {
            run(end);
            assert_eq!(sent(), all);
        }
    }

    #[test]
    fn an_acknowledgement_with_times_and_words_of_a_law_waits_for_no_company_and_those_before_it_go_with_it()
    {
        // It has the receiver tell in each ACK how long the data took.
        let octets = include_bytes!("../../control/tests/images/stamps.elf");
        let image = Image::new("stamps.elf", octets, &Options::default()).unwrap();
        let law = Law::Program(Box::new(Programmed::new(Arc::new(image), Law::None).unwrap()));
        let config = DeviceConfig { progress: Progress::Caller, laws: vec![law], ..DeviceConfig::default() };
        let [near, far] = pair_with(&MemoryWire::new(1), &config, |qp| qp.law(0).timeout(0));
        let layout = Layout::Cc(Cc::new(true, false, 1).unwrap());
        let [told, asked] = [&far, &near].map(|end| {
            let qp = end
                .device
                .alloc_pd()
                .create_qp(&end.cq, &end.cq)
                .recovery(Recovery::GoBackN, layout)
                .timeout(0);
            qp.build().unwrap()
        });
        told.connect(asked.info()).unwrap();
        asked.connect(told.info()).unwrap();
        let run = |end: &End| end.device.inner.cells[0].lock().run(end.device.inner.now());
        let write = || SendWr::write_inline(&[], RemoteMemory::default());
        near.qp.post_send(write()).unwrap();
        run(&far);
        assert_eq!(far.device.counters().sent, 0, "a plain one waits");
        asked.post_send(write()).unwrap();
        run(&far);
        assert_eq!(far.device.counters().sent, 2);
        run(&near);
        for qp in [&near.qp, &asked] {
            assert_eq!(near.cq.poll().unwrap().qp_num, qp.qp_num(), "in their order");
        }
        // The next plain one waits again.
        near.qp.post_send(write()).unwrap();
        run(&far);
        assert_eq!(far.device.counters().sent, 2);
    }

    /// What an endpoint sends when the requests of each of these batches, READs of two packets among them, have arrived
    /// between two of its turns.
    fn answers(batches: &[&[(Opcode, u32)]]) -> Vec<Vec<(&'static str, u32)>> {
        let wire = MemoryWire::new(1);
        let (device, mut peer) = alone(&wire, None);
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).path_mtu(Mtu::Mtu1024).build().unwrap();
        qp.connect(FAR).unwrap();
        let region = pd.reg_mr(vec![0; 4096], Access::ALL).unwrap();
        let (va, rkey) = (region.addr(), region.rkey());
        let mut all = Vec::new();
        for batch in batches {
            for &(opcode, psn) in *batch {
                let mut header = Header::new(opcode, qp.qp_num(), Psn::new(psn));
                header.flags = Flags::ACK_REQUEST;
                match opcode {
                    ADD => header.set_atomic(AtomicEth { va, rkey, swap_or_add: 1, compare: 0 }),
                    READ => header.set_reth(Reth { va, rkey, length: 2048 }),
                    _ => header.set_reth(Reth { va, rkey, length: 0 }),
                }
                inject(&wire, header);
            }
            for _ in 0..8 {
                device.progress();
            }
            let mut sent = Vec::new();
            peer.receive(&mut |arrived| {
                let (bth, _) = BthView::split(arrived.octets).unwrap();
                let name = match bth.opcode() {
                    Opcode::ACKNOWLEDGE => "ack",
                    Opcode::ATOMIC_ACKNOWLEDGE => "result",
                    _ => "data",
                };
                sent.push((name, bth.psn().get()));
            })
            .unwrap();
            all.push(sent);
        }
        all
    }

    #[test]
    fn no_response_overtakes_an_atomic_s_result_and_an_acknowledgement_that_it_includes_is_left_out() {
        let sent = answers(&[&[(WRITE, 0), (READ, 1), (ADD, 3), (READ, 4), (WRITE, 6)]]);
        let data = [("data", 1), ("data", 2), ("result", 3), ("data", 4), ("data", 5)];
        assert_eq!(sent, [[&data[..], &[("ack", 6)]].concat()]);
    }

    #[test]
    fn an_acknowledgement_of_what_came_after_a_read_goes_before_its_second_answer() {
        let sent = answers(&[&[(READ, 0)], &[(WRITE, 2), (READ, 0)]]);
        assert_eq!(sent[1], [("ack", 2), ("data", 0), ("data", 1)]);
    }

    #[test]
    fn an_acknowledgement_waits_for_silence_once_the_application_has_answered() {
        let wire = MemoryWire::new(1);
        let (device, mut peer) = alone(&wire, None);
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        for (answers, sent) in [(false, [&["ack"][..], &[]]), (true, [&["data"], &["ack"]])] {
            let qp = pd.create_qp(&cq, &cq).timeout(0).build().unwrap();
            qp.connect(FAR).unwrap();
            let mut header = Header::new(WRITE, qp.qp_num(), Psn::new(0));
            header.flags = Flags::ACK_REQUEST;
            inject(&wire, header);
            let cell = &device.inner.cells[0];
            let now = device.inner.now() + if answers { Span::ZERO } else { Span::from_micros(50) };
            cell.lock().run(now);
            if answers {
                qp.post_send(SendWr::send_inline(b"answer")).unwrap();
            }
            // At once, and after a while.
            for (later, sent) in [Span::ZERO, Span::from_micros(50)].into_iter().zip(sent) {
                let then = if later.is_zero() { now } else { device.inner.now() + later };
                cell.lock().run(then);
                let mut seen = Vec::new();
                peer.receive(&mut |arrived| {
                    let (bth, _) = BthView::split(arrived.octets).unwrap();
                    seen.push(if bth.opcode() == Opcode::ACKNOWLEDGE { "ack" } else { "data" });
                })
                .unwrap();
                assert_eq!(seen, sent);
            }
        }
    }

    #[test]
    fn the_answer_to_a_duplicate_does_not_take_a_later_one_s_place() {
        let sent = answers(&[&[(WRITE, 0), (ADD, 1), (WRITE, 2)], &[(WRITE, 3), (WRITE, 0)]]);
        assert_eq!(sent[1], [("ack", 3)]);
    }

    #[test]
    fn reads_wait_for_others_while_these_bring_something_and_not_for_long_where_they_do_not() {
        let wire = MemoryWire::new(1);
        // The peer answers nothing.
        let (device, mut peer) = alone(&wire, Some(2 << 20));
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let region = pd.reg_mr(vec![0; 9 << 20], Access::ALL).unwrap();
        let now = device.inner.now();
        let mut qps: Vec<_> = (0..9)
            .map(|index| {
                let qp = pd.create_qp(&cq, &cq).timeout(0).build().unwrap();
                qp.connect(FAR).unwrap();
                let buffer = region.buffer(index << 20..(index + 1) << 20).unwrap();
                qp.post_send(SendWr::read(buffer, region.remote())).unwrap();
                qp
            })
            .collect();
        let mut asked = |at: Instant| {
            let mut shard = device.inner.cells[0].lock();
            shard.run(at);
            shard.run(at);
            assert_eq!(shard.next_wakeup(at).is_some(), shard.core.engine.reads_wait().is_some());
            let mut count = 0;
            peer.receive(&mut |_| count += 1).unwrap();
            count
        };
        let after = |micros| now + Span::from_secs(1) + Span::from_micros(micros);
        assert_eq!([asked(after(0)), asked(after(900))], [2, 0]);
        // Where none gets on in a millisecond, one more goes.
        assert_eq!([asked(after(1000)), asked(after(1900)), asked(after(2001))], [1, 0, 1]);
        // Where some end, as many go as there is room for then.
        qps.drain(..2);
        assert_eq!(asked(after(2100)), 0);
        qps.drain(..2);
        assert_eq!([asked(after(2200)), asked(after(3100)), asked(after(3201))], [2, 0, 1]);
        assert_eq!([asked(after(4202)), asked(after(5203)), asked(after(6204))], [1, 1, 0]);
    }
}
