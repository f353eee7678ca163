//! What arrives: checked, judged by the engine, put in its place.

use crate::icrc::{self, Flow, Id, Solver};
use crate::io::Arrived;
use crate::numbers::inner;
use crate::shard::Core;
use crate::telemetry::{self, Told};
use roci_transport::{Access, Arrival};
use roci_units::Instant;
use roci_wire::bth::{DEFAULT_PKEY, RethView};
use roci_wire::layout::int::IntStack;
use roci_wire::transport::PAYLOAD_MAX;
use roci_wire::{AtomicEth, BthView, Header, Layout, Opcode, Reth, Shape, Transport};
use std::net::IpAddr;
use std::ops::Range;

/// Payload of the run in hand that waits to be put in its place: of one packet, or of several from the middle of a
/// message, one behind the other.
///
/// All of a run is judged before any of it is placed, unless something in it depends on what came before. What is being written to
/// memory holds up whatever reads what was just put together from smaller parts, as a header is, and a run is still in the
/// second-level cache when it has been judged.
pub(crate) struct Unplaced {
    /// Where that of the first lies in the run.
    payload: Range<usize>,
    packets: usize,
    /// From one packet to the next.
    stride: usize,
    key: u32,
    address: u64,
}

/// What the packets of a run have in common.
struct Run<'a> {
    octets: &'a [u8],
    segment: usize,
    source: IpAddr,
    source_port: u16,
    path: u64,
    flow: Flow,
    ce: bool,
    id: Option<u16>,
}

/// How far the ICRCs of a run have been looked at.
#[derive(Default)]
struct Judged {
    /// Where the first packet begins that has not been.
    until: usize,
    /// The identification that it is taken to have: what a socket sends begins at zero and counts up within a run.
    guess: u16,
}

impl Core {
    /// A run of packets has arrived.
    pub(crate) fn arrived(&mut self, now: Instant, arrived: Arrived<'_>) {
        let Arrived { source, source_port, ce, id, octets, segment } = arrived;
        if octets.is_empty() {
            self.counters.received += 1;
            self.counters.malformed += 1;
        }
        self.unanswered = self.unanswered.saturating_add(octets.len());
        let (path, flow) = self.flow_from(source);
        let run = Run { octets, segment, source, source_port, path, flow, ce, id };
        let (mut at, mut alone, mut judged) = (0, 0, Judged::default());
        while at < run.octets.len() {
            if alone == 0 {
                let alike = run.alike(at);
                let taken = if alike > 1 { self.take_alike(now, &run, &mut judged, at, alike) } else { 0 };
                at += segment * taken;
                if taken == alike {
                    continue;
                }
                // Where none was taken none would be, and to look again for each of them would take long.
                alone = if taken == 0 { alike } else { 1 };
            }
            self.take(now, &run, &mut judged, at);
            at += segment;
            alone -= 1;
        }
        self.place_all(run.octets);
        self.let_go();
    }

    fn flow_from(&mut self, source: IpAddr) -> (u64, Flow) {
        match self.from {
            Some((last, path, flow)) if last == source => (path, flow),
            _ => {
                let (path, flow) = (self.paths.find(source), Flow::new(source, self.local));
                // A stranger may become a peer at any time.
                if self.paths.address(path).is_some() {
                    self.from = Some((source, path, flow));
                }
                (path, flow)
            }
        }
    }

    /// Takes packets from the middle of a message that are as one but for their PSNs; gives how many. For those that are left, or
    /// where it takes none, [`take`](Self::take) is the way.
    fn take_alike(
        &mut self,
        now: Instant,
        run: &Run<'_>,
        judged: &mut Judged,
        at: usize,
        packets: usize,
    ) -> usize {
        let packet = &run.octets[at..at + run.segment];
        let Ok((bth, _)) = BthView::split(packet) else { return 0 };
        let Some(place) = self.numbers.find(bth.dest_qpn()) else { return 0 };
        let Some(entry) = self.entries[place as usize].as_ref() else { return 0 };
        let mut header = Header::new(bth.opcode(), inner(place), bth.psn());
        let Some(payload) = plain(&bth, packet, entry.layout, &mut header) else { return 0 };
        let (octets, path) = (payload.len(), run.path | entry.class);
        let mut sound = 0;
        for packet in run.octets[at..at + packets * run.segment].chunks_exact(run.segment) {
            if judged.of(run, at + sound * run.segment, packet, 0, &mut self.solver).is_none() {
                break;
            }
            sound += 1;
        }
        let arrival = Arrival { ce: run.ce, ..Arrival::new(&header, path) };
        let taken = self.engine.receive_middles(&arrival, as_u32(sound), &mut self.reaction);
        let Some(placement) = self.reaction.placement.take() else { return 0 };
        let taken = taken as usize;
        debug_assert_eq!(placement.length as usize, taken * octets);
        self.counters.received += taken as u64;
        let from = at + BthView::LEN;
        self.place_soon(
            run.octets,
            Unplaced {
                payload: from..from + octets,
                packets: taken,
                stride: run.segment,
                key: placement.key,
                address: placement.address,
            },
        );
        self.settle(now);
        taken
    }

    /// Takes one packet.
    #[inline]
    fn take(&mut self, now: Instant, run: &Run<'_>, judged: &mut Judged, at: usize) {
        let packet = &run.octets[at..run.octets.len().min(at + run.segment)];
        self.counters.received += 1;
        let Ok((bth, _)) = BthView::split(packet) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(place) = self.numbers.find(bth.dest_qpn()) else {
            self.counters.stray += 1;
            return;
        };
        let Some(entry) = self.entries[place as usize].as_ref() else { return };
        let (layout, rights, class) = (entry.layout, entry.rights, entry.class);
        let mut transport = Transport::standard(Header::new(bth.opcode(), bth.dest_qpn(), bth.psn()));
        let payload = match plain(&bth, packet, layout, &mut transport.header) {
            Some(payload) => payload,
            None => match Transport::parse(packet, layout) {
                Ok((parsed, payload)) => {
                    transport = parsed;
                    payload
                }
                Err(_) => {
                    self.counters.malformed += 1;
                    return;
                }
            },
        };
        let cc = layout.rewritable_len(transport.header.opcode);
        if judged.of(run, at, packet, cc, &mut self.solver).is_none() {
            self.counters.corrupt += 1;
            return;
        }
        transport.header.dest_qpn = inner(place);
        if rights != Access::ALL {
            hold_to(rights, layout, &mut transport.header);
        }
        let path = match transport.header.opcode {
            // A datagram may come from anyone who knows the queue key, and be answered.
            Opcode::UD_SEND_ONLY | Opcode::UD_SEND_ONLY_IMMEDIATE
                if self.engine.expects_datagram(&transport.header) =>
            {
                self.paths.learn(run.source).unwrap_or(run.path)
            }
            _ => run.path | class,
        };
        let words = transport.words.as_slice();
        let block = telemetry::block_of(layout).and_then(|block| words.get(block)?.first_chunk());
        let told = block.and_then(|block| {
            let ways = self.entries[place as usize].as_mut()?.telemetry.as_mut()?;
            let is_answer = telemetry::is_answer(transport.header.opcode);
            let (way, stack) = (&mut ways[usize::from(is_answer)], IntStack::decode(block));
            if !self.hop_rates.suit(&stack) {
                self.counters.unrated += 1;
                return None;
            }
            let is_told = way.hear(now, &stack, &self.hop_rates);
            self.counters.told += u64::from(is_told && is_answer);
            self.counters.beyond += u64::from(is_told && way.is_beyond());
            self.counters.short += u64::from(is_told && way.is_short());
            is_told.then_some(*way.told())
        });
        let (hops, path_id) = told.as_ref().map_or_else(Default::default, Told::get);
        let arrival = Arrival { ce: run.ce, words, hops, path_id, ..Arrival::new(&transport.header, path) };
        if transport.header.opcode.shape().has(Shape::ATOMIC) {
            // It is carried out at once, on what came before it.
            self.place_all(run.octets);
        }
        self.engine.receive(now, &arrival, &mut self.reaction);
        if let Some(placement) = &self.reaction.placement {
            debug_assert_eq!(placement.length as usize, payload.len());
            let (key, address) = (placement.key, placement.address);
            self.reaction.placement = None;
            // Where the payload begins in the run.
            let from = at + (payload.as_ptr().addr() - packet.as_ptr().addr());
            let payload = from..from + payload.len();
            self.place_soon(run.octets, Unplaced { payload, packets: 1, stride: 0, key, address });
        }
        if self.reaction.reply.is_some()
            && let Some(mut reply) = self.reaction.reply.take()
        {
            if let Some(told) = block
                && telemetry::is_answer(reply.header.opcode)
                && let (Some(words), Some(place)) = (&mut reply.words, telemetry::block_of(layout))
            {
                words.words[place].copy_from_slice(told);
            }
            self.queue_reply(now, reply);
        }
        if self.reaction.notice.is_some()
            && let Some(notice) = self.reaction.notice.take()
        {
            self.queue_reply(now, notice);
        }
        self.counters.refused += u64::from(self.reaction.refused.is_some());
        self.settle(now);
    }

    /// Has these parts of a run put in their places, once all of it has been judged.
    #[inline]
    fn place_soon(&mut self, run: &[u8], unplaced: Unplaced) {
        if self.placements.last().is_some_and(|last| last.key != unplaced.key) {
            self.place_all(run);
        }
        self.placements.push(unplaced);
    }

    /// Puts those parts of a run in their places that have been judged, all of which are of one region.
    fn place_all(&mut self, run: &[u8]) {
        let Some(first) = self.placements.first() else { return };
        let (key, mut placements) = (first.key, std::mem::take(&mut self.placements));
        if key == 0 {
            self.let_go();
        }
        for Unplaced { payload, packets, stride, mut address, .. } in placements.drain(..) {
            let mut payload = payload;
            for _ in 0..packets {
                let octets = &run[payload.clone()];
                if key == 0 {
                    self.works.place(address, octets);
                } else if let Some((memory, offset)) = self.memory(key, address) {
                    // SAFETY: it is held.
                    #[expect(unsafe_code, reason = "see above")]
                    unsafe {
                        memory.copy_in_held(offset, octets);
                    }
                }
                address = address.wrapping_add(octets.len() as u64);
                payload = payload.start + stride..payload.end + stride;
            }
        }
        self.placements = placements;
    }
}

impl Run<'_> {
    /// How many packets from the one at `at` on can be taken as one, which is at least that: from the middle of a message, of
    /// full length, with nothing between their BTHs but a PSN.
    #[inline]
    fn alike(&self, at: usize) -> usize {
        let Some(bth) = self.octets[at..].first_chunk::<{ BthView::LEN }>() else { return 1 };
        let is_middle = matches!(Opcode(bth[0]), Opcode::WRITE_MIDDLE | Opcode::SEND_MIDDLE);
        if !is_middle || self.id.is_some() || self.ce {
            return 1;
        }
        let packets = self.octets[at..].chunks_exact(self.segment);
        let first = halves(bth);
        let is_next = |(number, packet): (u32, &[u8])| {
            packet.first_chunk().is_some_and(|bth| halves(bth) == (first.0, after(first.1, number)))
        };
        // A last one that is shorter is one too.
        (0..).zip(packets).take_while(|&(number, packet)| is_next((number, packet))).count().max(1)
    }
}

/// A BTH as two numbers, the second of which has the PSN in its lower 24 bits.
#[inline]
fn halves(bth: &[u8; BthView::LEN]) -> (u64, u32) {
    let (words, _) = bth.as_chunks::<4>();
    let word = |index: usize| u32::from_be_bytes(words[index]);
    (u64::from(word(0)) << 32 | u64::from(word(1)), word(2))
}

/// The same word with a PSN that lies `packets` further on.
#[inline]
const fn after(word: u32, packets: u32) -> u32 {
    const PSN: u32 = 0x00ff_ffff;
    word & !PSN | (word & PSN).wrapping_add(packets) & PSN
}

fn as_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Judged {
    /// Judges the ICRC of the packet at `at`, unless that has been done; `None` where it is wrong.
    #[inline]
    fn of(&mut self, run: &Run<'_>, at: usize, packet: &[u8], cc: usize, solver: &mut Solver) -> Option<()> {
        if at < self.until {
            return Some(());
        }
        let id = run.id.map_or(Id::Guess(self.guess), Id::Seen);
        let id = icrc::judge(&run.flow, id, run.source_port, packet, cc, solver)?;
        (self.until, self.guess) = (at + packet.len(), id.wrapping_add(1));
        Some(())
    }
}

/// The quick way for the many: a well-formed packet that has nothing between BTH and payload, or what a WRITE of one
/// packet has. `None` for all others.
#[inline]
fn plain<'a>(bth: &BthView<'_>, packet: &'a [u8], layout: Layout, header: &mut Header) -> Option<&'a [u8]> {
    let shape = bth.opcode().shape();
    let is_plain = layout == Layout::Standard
        && shape.has(Shape::KNOWN)
        && shape.has(Shape::PAYLOAD)
        && (bth.opcode().extension_len() == 0 || bth.opcode() == Opcode::WRITE_ONLY)
        && (bth.version(), bth.pkey()) == (0, DEFAULT_PKEY);
    let body = packet.get(BthView::LEN..packet.len().checked_sub(icrc::ICRC_LEN)?)?;
    let (reth, body) = body.split_at_checked(bth.opcode().extension_len())?;
    let payload = body.get(..body.len().checked_sub(bth.pad().into())?)?;
    if !is_plain || !body.len().is_multiple_of(4) || payload.len() > PAYLOAD_MAX {
        return None;
    }
    header.payload = u16::try_from(payload.len()).ok()?;
    header.flags = bth.flags();
    if let Ok((reth, _)) = RethView::split(reth) {
        header.set_reth(reth.get());
    }
    Some(payload)
}

/// Has a request for which its queue pair gives the peer no right be one that it does not take, which is invalid (IBTA Vol 1 §9.7.5.2, NAK codes):
/// it seems to go on with a WRITE that has not begun, and is answered as an invalid request. Where packets say where they go by
/// themselves, and of unreliable connections, it bears no region's key.
fn hold_to(rights: Access, layout: Layout, header: &mut Header) {
    const NOWHERE: u32 = 0;
    let shape = header.opcode.shape();
    let needs = match header.opcode {
        Opcode::READ_REQUEST => Access::REMOTE_READ,
        _ if shape.has(Shape::ATOMIC) => Access::REMOTE_ATOMIC,
        _ if shape.has(Shape::WRITE) => Access::REMOTE_WRITE,
        _ => return,
    };
    let is_answered = header.opcode.0 < Opcode::UC_SEND_FIRST.0;
    if rights.has(needs) {
        return;
    }
    if layout == Layout::Standard && is_answered {
        header.opcode = Opcode::WRITE_LAST;
    } else if needs == Access::REMOTE_ATOMIC {
        header.set_atomic(AtomicEth { rkey: NOWHERE, ..header.atomic() });
    } else {
        header.set_reth(Reth { rkey: NOWHERE, ..header.reth() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::END;
    use crate::control;
    use crate::device::{Backend, Device, DeviceConfig, Progress};
    use crate::io::{MemoryWire, PacketIo as _};
    use crate::memory::RemoteMemory;
    use crate::queue_pair::QpInfo;
    use crate::work::{RecvWr, SendWr};
    use proptest::prelude::*;
    use roci_control::Hop;
    use roci_transport::{Access, QpState, Recovery, Status};
    use roci_units::{BitsPerSec, Bytes, Psn, Qpn, Span};
    use roci_wire::layout::int::IntHop;
    use roci_wire::{Aeth, Cc, Deth, Flags, Ip, Reth};
    use std::net::Ipv6Addr;

    const HERE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

    fn device(wire: &MemoryWire) -> Device {
        let backend = Backend::Memory(wire.clone());
        let config = DeviceConfig { backend, progress: Progress::Caller, ..DeviceConfig::default() };
        Device::open_with(HERE.into(), config).unwrap()
    }

    #[test]
    fn who_does_not_know_the_queue_key_is_not_remembered() {
        let wire = MemoryWire::new(1);
        let device = device(&wire);
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).datagrams(77).build().unwrap();
        let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        let stranger: Ipv6Addr = "fd00::99".parse().unwrap();
        let is_known = || device.inner.cells[0].lock().core.paths.find(stranger.into()) != u64::MAX;
        for (q_key, knows) in [(76, false), (77, true)] {
            let mut header = Header::new(Opcode::UD_SEND_ONLY, qp.qp_num(), Psn::new(0));
            header.set_deth(Deth { q_key, source_qpn: Qpn::new(5) });
            header.payload = 4;
            let transport = Transport::standard(header);
            let mut octets = vec![0; transport.len()];
            let ip = Ip::v6(stranger, HERE);
            transport.emit_with(&ip, 4791, &mut octets, |place| place.fill(1)).unwrap();
            wire.inject(stranger.into(), HERE.into(), &octets);
            device.progress();
            assert_eq!(is_known(), knows);
            let source = cq.poll().map(|completion| completion.source);
            assert_eq!(source, knows.then_some(Some((stranger.into(), Qpn::new(5)))));
        }
        assert_eq!(device.refused(roci_transport::Refusal::Datagram), 1);
    }

    #[test]
    fn an_acknowledgement_takes_back_what_switches_told_in_the_packet_that_it_answers() {
        let (wire, peer) = (MemoryWire::new(1), "fd00::2".parse::<Ipv6Addr>().unwrap());
        let (device, mut far) = (device(&wire), wire.attach(peer.into()).unwrap());
        let cc = Cc::new(true, true, 1).unwrap();
        let layout = Layout::Cc(cc);
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let open = pd.reg_mr(vec![0; 64], Access::ALL).unwrap().remote();
        let qp = pd.create_qp(&cq, &cq).recovery(Recovery::GoBackN, layout).build().unwrap();
        qp.connect(QpInfo { address: peer.into(), qpn: Qpn::new(5), psn: Psn::new(0) }).unwrap();
        let mut stack = IntStack::default();
        let hop =
            IntHop::new(BitsPerSec::from_gbps(25), Instant::from_ps(7_000_000), Bytes(12_800), Bytes(800));
        stack.push(9, hop);
        let mut words = cc.empty();
        assert!(cc.set_int(&mut words, &stack));
        let mut say = |mut header: Header, fill: &dyn Fn(&mut Header)| {
            fill(&mut header);
            let transport = Transport { header, layout, words };
            let mut octets = vec![0; transport.len()];
            transport.emit_with(&Ip::v6(peer, HERE), 4791, &mut octets, |place| place.fill(1)).unwrap();
            wire.inject(peer.into(), HERE.into(), &octets);
            device.progress();
            device.progress();
            let mut heard = None;
            far.receive(&mut |arrived| {
                heard = Transport::parse(arrived.octets, layout).ok().map(|(packet, _)| packet)
            })
            .unwrap();
            heard
        };
        let write = Header::new(Opcode::WRITE_ONLY, qp.qp_num(), Psn::new(0));
        let answer = say(write, &|header| {
            header.set_reth(Reth { va: open.address, rkey: open.rkey, length: 4 });
            (header.payload, header.flags) = (4, Flags::ACK_REQUEST);
        });
        let answer = answer.unwrap();
        assert_eq!((answer.header.opcode, cc.int(&answer.words)), (Opcode::ACKNOWLEDGE, Some(stack)));
        // And what comes back in an answer to ours is what the law hears of our way, with rate and times in full.
        let told = |way: usize| {
            let cell = device.inner.cells[0].lock();
            let entry = cell.core.entries.iter().flatten().find(|entry| entry.qpn == qp.qp_num()).unwrap();
            entry.telemetry.as_ref().unwrap()[way].told().get().0.to_vec()
        };
        let hop = Hop { at_ns: 7_000, tx_bytes: 12_800, queue_bytes: 800, rate_kbps: 25_000_000 };
        assert_eq!([told(0), told(1)], [vec![hop], vec![]]);
        qp.post_send(SendWr::write_inline(b"ours", RemoteMemory::default())).unwrap();
        let ours = qp.info().psn;
        say(Header::new(Opcode::ACKNOWLEDGE, qp.qp_num(), ours), &|header| header.set_aeth(Aeth::default()));
        assert_eq!([told(0), told(1)], [vec![hop], vec![hop]]);
        // And it can be read through a control socket, in every form.
        let path = std::env::temp_dir().join(format!("roci-hops-{}", std::process::id()));
        device.serve_control(&path).unwrap();
        let ask = |request: &str| control::ask(&path, request).unwrap().unwrap();
        let all = ask("get");
        for (register, value) in
            [("hop1_queue", "800B"), ("hop1_rate", "25Gb/s"), ("from_hop1_queue", "800B")]
        {
            assert!(all.contains(&format!(" {register} {value}\n")), "{register}: {all}");
        }
        assert!(all.contains(" hops_told ") && all.contains(" hop1_sent 0B\n"), "{all}");
        let ways = control::table::read(&path).unwrap().unwrap().swap_remove(0).ways;
        assert_eq!(ways.iter().map(|way| way.direction()).collect::<Vec<_>>(), ["to", "from"]);
        assert_eq!(ways[0].hops[0].queued, Bytes(800));
        let counters = ask("counters");
        assert!(counters.contains(",way=\"from\",hop=\"1\"} 25000000000\n"), "{counters}");
    }

    #[test]
    fn a_device_whose_time_is_over_ends_its_queue_pairs_with_errors() {
        let wire = MemoryWire::new(1);
        let device = device(&wire);
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        qp.connect(qp.info()).unwrap();
        let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        for _ in 0..2 {
            device.inner.cells[0].lock().run(END);
        }
        assert_eq!(qp.state(), QpState::Error);
        assert_eq!(cq.poll().map(|completion| completion.status), Some(Status::WorkRequestFlushed));
        assert!(region.buffer(0..64).is_ok(), "what was lent is back");
    }

    #[test]
    fn an_acknowledgement_that_has_come_counts_before_the_timer_that_waited_for_it() {
        let device = device(&MemoryWire::new(1));
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        qp.connect(qp.info()).unwrap();
        let region = pd.reg_mr(vec![0; 64], Access::ALL).unwrap();
        qp.post_send(SendWr::write(region.slice(0..8).unwrap(), region.remote().plus(32))).unwrap();
        let now = device.inner.now();
        let mut shard = device.inner.cells[0].lock();
        // The WRITE arrives; its acknowledgement leaves; and then nobody has run the shard for long.
        for later in [Span::ZERO, Span::ZERO, Span::from_secs(1)] {
            shard.run(now + later);
        }
        drop(shard);
        assert_eq!(qp.counters().retransmitted, 0);
        assert!(cq.poll().unwrap().is_ok());
    }

    #[test]
    fn packets_that_differ_in_their_psns_alone_are_taken_as_one_up_to_a_shorter_last_one() {
        let mut octets = Vec::new();
        for (psn, octet, length) in [(7, 1, 64), (8, 2, 64), (9, 3, 64), (11, 4, 64), (12, 5, 48)] {
            let mut packet = [octet; 64];
            packet[..BthView::LEN].copy_from_slice(&[
                Opcode::WRITE_MIDDLE.0,
                0,
                255,
                255,
                0,
                0,
                0,
                9,
                0,
                0,
                0,
                psn,
            ]);
            octets.extend(&packet[..length]);
        }
        let source = HERE.into();
        let flow = Flow::new(source, source);
        let path = 1;
        let run =
            Run { octets: &octets, segment: 64, source, source_port: 9, path, flow, ce: false, id: None };
        let alike: Vec<usize> = (0..5).map(|packet| run.alike(64 * packet)).collect();
        assert_eq!(alike, [3, 2, 1, 1, 1]);
        let marked = Run { ce: true, ..run };
        assert_eq!(marked.alike(0), 1);
    }

    proptest! {
        #[test]
        fn the_quick_way_and_the_long_way_agree(
            mut packet in proptest::collection::vec(any::<u8>(), 0..200), opcode in 0u8..0x2c, sound: bool,
        ) {
            if sound && packet.len() >= 12 {
                (packet[0], packet[1]) = (opcode, packet[1] & 0xf0);
                (packet[2], packet[3]) = (0xff, 0xff);
            }
            let Ok((bth, _)) = BthView::split(&packet) else { return Ok(()) };
            let mut header = Header::new(bth.opcode(), bth.dest_qpn(), bth.psn());
            if let Some(payload) = plain(&bth, &packet, Layout::Standard, &mut header) {
                let (long, same) = Transport::parse(&packet, Layout::Standard).unwrap();
                prop_assert_eq!((long.header, same), (header, payload));
            }
        }
    }
}
