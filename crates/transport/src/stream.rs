//! The common case of sending, in one piece: the next full packet in the middle of a WRITE or SEND that is under way.
//!
//! It does what `plan`, `send` and `relist` do one after the other, with the same result, but reads each fact once and
//! makes the segment in registers, so that a caller who takes it apart at once never has it in memory. Written in
//! parts, a segment of a queue pair in order took 28 ns, three quarters of it instructions that looked again for the
//! queue pair, its profile and its request. Whatever is not the common case changes nothing here and goes the long way.
//!
//! What does not change from one packet to the next is looked at once for a [run](crate::qp::Common::run) of them. Of the rest what
//! it wrote seems to have counted most: its 200 instructions had 44 stores and took as many cycles, and with each store fewer about
//! one less (Zen 4). So what all packets in the middle of a message have in common is copied at one go ([`Middle`]), and nothing is
//! asked before the packet is out of hand for which a register would be put aside: 120 instructions, 21 stores, 0.61 of the time.

use crate::aside::Asides;
use crate::config::Service;
use crate::delivery::pool::Pool;
use crate::engine::Engine;
use crate::qp::{Common, Facts, Notes, Profile, Qp, Requester};
use crate::queue::{Kind, SendWork, flag};
use crate::recovery;
use crate::segment::{Segment, Source};
use crate::transmit::{Plan, window_lets};
use core::hint::cold_path;
use roci_control::Class;
use roci_units::{Instant, Psn};
use roci_wire::{Flags, Header, Layout, Opcode, Reth};

/// What a requester that streams may have noted besides [`Notes::SENDS`], which it must have.
/// [`Notes::RECOVERING`] is looked at where a run begins.
const IDLE_NOTES: Notes = Notes::SEND_TIMER.with(Notes::ACK_TIMER).with(Notes::RECOVERING);

/// Octets in flight to which those of a run are added without asking whether they still fit their 32 bits: a run has at most 255
/// packets of 64 kB.
const MOST_IN_FLIGHT: u32 = u32::MAX - (1 << 24);

/// What full packets in the middle of a message have in common, as it stands in a [`Segment`]: so it is copied at one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Middle {
    payload: u16,
    opcode: Opcode,
    flags: Flags,
    length: u32,
    last_opcode: Opcode,
    last_flags: Flags,
    mtu: u16,
    layout: Layout,
    each_placed: bool,
    priority: u8,
}

impl Middle {
    /// Those of a SEND and of a WRITE, and then of the same that ask for an acknowledgement, where the service has any.
    pub(crate) const fn all(service: Service, layout: Layout, mtu: u16, priority: u8) -> [Self; 4] {
        let [send, write] = [service.opcode(Opcode::SEND_MIDDLE), service.opcode(Opcode::WRITE_MIDDLE)];
        let asks = if matches!(service, Service::Rc) { Flags::ACK_REQUEST } else { Flags::NONE };
        [
            Self::of(layout, mtu, priority, send, Flags::NONE),
            Self::of(layout, mtu, priority, write, Flags::NONE),
            Self::of(layout, mtu, priority, send, asks),
            Self::of(layout, mtu, priority, write, asks),
        ]
    }

    const fn of(layout: Layout, mtu: u16, priority: u8, opcode: Opcode, flags: Flags) -> Self {
        Self {
            payload: mtu,
            opcode,
            flags,
            length: mtu as u32,
            last_opcode: opcode,
            last_flags: flags,
            mtu,
            layout,
            each_placed: matches!(layout, Layout::Irn),
            priority,
        }
    }
}

/// Begins a run: finds how many packets from the next one on are alike and may go as things stand. False: the next one is not, or
/// may not.
///
/// The ring of segments is filled again whenever it is empty, and what is in it goes whatever happens. Of what is beyond it only
/// full rings belong to a run, for the last fill that is none may turn out larger when it comes to that; and none where a ring is
/// no power of two long, for a division to find out how full it is took as long as all else that ends a run.
#[inline(never)]
fn begin_run(qp: &mut Qp, profile: &Profile, work: &SendWork, asides: &mut Asides, boards: &Pool) -> bool {
    let Qp { requester, common, .. } = qp;
    let at = requester.high;
    let behind = work.end.wrapping_sub(at).saturating_sub(1);
    let alike = profile.max_in_flight.saturating_sub(at.wrapping_sub(requester.una)).min(behind).min(255);
    let is_middle = work.has(flag::STREAMS) && at != work.first && alike > 0;
    // One whose program owns the window is recovering from its first request on.
    let recovers = requester.notes.has(Notes::RECOVERING) && !profile.recovery.owns_window();
    let has_own = requester.priority != profile.priority || common.hears.meets(Class::TRANSMIT);
    if !is_middle || recovers || has_own || requester.in_flight > MOST_IN_FLIGHT {
        return false;
    }
    if requester.staged > 0 {
        // The window may have shut behind what is staged, which is what says then that there is something to send.
        (common.run, requester.staged) = (1, requester.staged - 1);
        return true;
    }
    let (mtu, ring) = (u32::from(profile.mtu), u32::from(profile.ring));
    let left = work.length - at.wrapping_sub(work.first) * mtu;
    let wanted = if ring.is_power_of_two() { (alike + ring - 1) & !(ring - 1) } else { ring };
    let lets = window_lets(requester.in_flight, requester.window, mtu, left, wanted);
    let mut room = u32::MAX;
    let hears_later = common.facts.has(Facts::HEARS_LATER);
    if requester.notes.has(Notes::RECOVERING) {
        recovery::hear(qp, asides);
        room = recovery::room(asides, boards, qp.common.aside, at);
    }
    let Qp { requester, common, .. } = qp;
    let most = lets.min(room);
    let staged = if most < ring || wanted == ring { most.min(ring) } else { most & !(ring - 1) };
    if staged == 0 {
        return false;
    }
    common.facts.put(Facts::SHUTS, room <= if most < ring { lets.min(ring) } else { staged });
    if hears_later && !common.facts.has(Facts::SHUTS) {
        common.facts.set(Facts::HEARS_LATER);
    }
    // What is left of the last ring that it begins stays staged.
    let run = alike.min(staged);
    #[expect(clippy::cast_possible_truncation, reason = "at most 255, and less than the ring")]
    {
        (common.run, requester.staged) = (run as u8, (staged - run) as u8);
    }
    true
}

/// Whether the next packet, the last of a run, is also the last that may go for now: with it `in_flight` octets are not
/// acknowledged.
#[inline]
fn ends(requester: &Requester, common: &Common, profile: &Profile, in_flight: u32) -> bool {
    requester.high.wrapping_sub(requester.una).wrapping_add(1) >= profile.max_in_flight
        || requester.staged == 0
            && (in_flight.saturating_add(profile.mtu.into()) > requester.window
                || common.facts.has(Facts::SHUTS))
}

impl Engine {
    /// The next packet of the queue pair whose turn it is, if it is the common case; `None`: nothing has changed. When the packet
    /// is out of hand, [`streamed`](Self::streamed) is to be called.
    #[inline(always)]
    pub(crate) fn stream(&mut self, now: Instant, slot: usize) -> Option<Segment> {
        let qp = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(qp.common.profile)];
        let work = self.sends.find(qp.requester.current)?;
        let Qp { requester, common, .. } = qp;
        if !requester.is_free_to_stream()
            || requester.pacer.eligible_at() > now
            || common.run == 0 && {
                cold_path();
                !begin_run(qp, profile, work, &mut self.asides, &self.boards)
            }
        {
            cold_path();
            return None;
        }
        let Qp { requester, common, .. } = qp;
        let mtu = u32::from(profile.mtu);
        let at = requester.high;
        let run = common.run - 1;
        let in_flight = requester.in_flight + mtu;
        let mut unasked = requester.unasked.wrapping_add(1); // it is below the `asks_every` of its profile
        // As `advance_request` has it.
        let asks = unasked >= common.asks_every
            || run == 0 && {
                cold_path();
                ends(requester, common, profile, in_flight)
            };
        if asks {
            unasked = 0;
        }
        common.run = run;
        requester.high = at.wrapping_add(1);
        requester.in_flight = in_flight;
        requester.unasked = unasked;
        common.packets = common.packets.wrapping_add(1);
        let offset = at.wrapping_sub(work.first) * mtu;
        // Without a branch, of which each side would put its values aside: a SEND has no address, nor a key, and no length here.
        let write = u32::from(work.kind == Kind::Write);
        let of_write = write.wrapping_neg();
        let middle = &profile.middles[usize::from(asks) << 1 | write as usize];
        let mut header = Header::new(middle.opcode, common.peer, Psn::new(at));
        header.payload = middle.payload;
        header.flags = middle.flags;
        header.set_reth(Reth {
            va: work.va.wrapping_add(u64::from(offset & of_write)),
            rkey: work.rkey,
            length: (work.length - offset) & of_write,
        });
        header.set_immediate(work.immediate);
        Some(Segment {
            path: common.path,
            source: Source { address: work.address.wrapping_add(u64::from(offset)), lkey: work.lkey },
            header,
            length: middle.length,
            last_opcode: middle.last_opcode,
            last_flags: middle.last_flags,
            mtu: middle.mtu,
            layout: middle.layout,
            each_placed: middle.each_placed,
            priority: middle.priority,
            packets: 1,
            ecn_capable: true,
            retransmission: false,
            words: None,
        })
    }

    /// Things do not stand any more as they did when the queue pair's run began.
    #[inline]
    pub(crate) fn end_run(&mut self, slot: usize) {
        let qp = &mut self.qps[slot];
        qp.end_run(self.profiles[usize::from(qp.common.profile)].ring);
    }

    /// What a packet that was sent means for timer, schedule, pacer and law, and whether the queue pair stays among those
    /// that may send. Asked when the packet is out of hand: asked before, the answers took the registers that it is made in.
    #[inline(always)]
    pub(crate) fn streamed(&mut self, now: Instant, slot: usize) {
        let Qp { requester, common, .. } = &self.qps[slot];
        let more = common.run > 0 || {
            cold_path();
            requester.staged > 0 || requester.in_flight < requester.window
        };
        let matters = !more
            || common.facts.meets(Facts::COUNTS.with(Facts::PACED))
            || common.facts.has(Facts::UNASKED) && requester.unasked == 0
            || requester.deadline == Instant::NEVER;
        if matters {
            cold_path();
            self.settle_streamed(now, slot);
        }
    }

    /// The same where it means anything.
    #[inline(never)]
    fn settle_streamed(&mut self, now: Instant, slot: usize) {
        self.time_request(now, slot);
        let Qp { requester, common, .. } = &mut self.qps[slot];
        let profile = &self.profiles[usize::from(common.profile)];
        let octets = u32::from(profile.middle_octets);
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
    /// Whether nothing stands in the way of its next request, as far as standing and notes tell.
    #[inline]
    const fn is_free_to_stream(&self) -> bool {
        self.standing.bits() == 0 && self.notes.bits() & !IDLE_NOTES.bits() == Notes::SENDS.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::{Arrival, Reaction};
    use crate::config::{EngineConfig, Pd, QpConfig, Recovery};
    use crate::memory::Access;
    use crate::requester::set_drawn_by;
    use crate::segment::Grant;
    use crate::work::{Operation, SendRequest, Tail};
    use alloc::vec;
    use proptest::prelude::*;
    use roci_control::{Hop, Law};
    use roci_units::{Qpn, Span};
    use roci_wire::Aeth;
    use roci_wire::layout::cc::Cc;

    const QPN: Qpn = Qpn::new(2);
    const MTU: u16 = 256;

    fn request(operation: Operation, packets: u32) -> SendRequest {
        SendRequest {
            id: 1,
            operation,
            length: packets * u32::from(MTU),
            address: 0,
            lkey: 0,
            solicited: false,
            signaled: true,
            fence: false,
        }
    }

    #[test]
    fn what_is_sent_of_a_queue_pair_with_lone_writes_streams_and_its_writes_do_not() {
        let write = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        for (operation, streams) in [(Operation::Send(Tail::Plain), true), (write, false)] {
            let mut engine = Engine::new(EngineConfig::default());
            let config =
                QpConfig { qpn: Some(QPN), peer: QPN, mtu: MTU, lone_writes: true, ..QpConfig::default() };
            engine.create_qp(config).unwrap();
            engine.post_send(Instant::ZERO, QPN, &request(operation, 8)).unwrap();
            assert!(engine.transmit(Instant::ZERO).is_some());
            let next = engine.stream(Instant::ZERO, 0).map(|segment| segment.header.opcode);
            assert_eq!(next, streams.then_some(Opcode::SEND_MIDDLE));
        }
    }

    /// An engine whose queue pair has a WRITE and a SEND of so many packets to send, which go the quick way or never.
    fn engine(streams: bool, law: &str, config: &QpConfig, packets: u32) -> (Engine, u32) {
        let mut engine = Engine::new(EngineConfig::default());
        let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
        let law = Law::from_settings(law, &[], EngineConfig::default().link).unwrap();
        let law = engine.add_law(law);
        engine.create_qp(QpConfig { law, qpn: Some(QPN), peer: QPN, mtu: MTU, ..*config }).unwrap();
        if !streams {
            engine.profiles.iter_mut().for_each(|profile| profile.middle_octets = 0);
        }
        let write = Operation::Write { va: 1 << 33, rkey: 7, tail: Tail::Plain };
        for operation in [write, Operation::Send(Tail::Plain)] {
            engine.post_send(Instant::ZERO, QPN, &request(operation, packets)).unwrap();
        }
        (engine, key)
    }

    #[test]
    fn responses_that_fill_the_window_hold_nothing_back_that_was_let_through() {
        let config =
            QpConfig { recovery: Recovery::Irn, layout: Layout::Irn, ring: 8, ..QpConfig::default() };
        let sent = [true, false].map(|streams| {
            let (mut engine, rkey) = engine(streams, "none", &config, 100);
            engine.qps[0].requester.window = 16 * u32::from(MTU);
            let mut sent = vec![];
            sent.extend((0..15).map_while(|_| engine.transmit(Instant::ZERO)));
            let mut header = Header::new(Opcode::READ_REQUEST, QPN, Psn::new(0));
            header.set_reth(Reth { va: 0, rkey, length: MTU.into() });
            let arrival = Arrival::new(&header, 0);
            engine.receive(Instant::ZERO, &arrival, &mut Reaction::default());
            sent.extend((0..4).map_while(|_| engine.transmit(Instant::ZERO)));
            sent
        });
        assert_eq!(sent[0].len(), 17, "fifteen, the response, and the one that was staged");
        assert_eq!(sent[0], sent[1]);
    }

    fn kinds() -> impl Strategy<Value = (Recovery, Layout)> {
        prop::sample::select(vec![
            (Recovery::GoBackN, Layout::Standard),
            (Recovery::GoBackN, Layout::Cc(Cc::new(true, false, 2).unwrap())),
            (Recovery::Irn, Layout::Irn),
            (Recovery::Reno, Layout::Irn),
            (Recovery::NewReno, Layout::Irn),
            (Recovery::Sack, Layout::Irn),
        ])
    }

    proptest! {
        #[test]
        fn what_streams_is_what_the_long_way_sends(
            ((recovery, layout), ring, ack_every) in (kinds(), 1u8..=15, prop::sample::select(vec![1u16, 3, 16, 300])),
            (initial_window, max_in_flight) in (prop::sample::select(vec![2u16, 10, 37, 1000]), prop::sample::select(vec![0u32, 7, 64])),
            law in prop::sample::select(vec!["none", "dcqcn", "timely", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc"]),
            (packets, window) in (prop::sample::select(vec![3u32, 30, 700]), prop::sample::select(vec![u32::MAX, 16 * u32::from(MTU), 40 * u32::from(MTU)])),
            steps in prop::collection::vec((0u8..13, 0u32..64, any::<bool>(), any::<bool>()), 1..80),
        ) {
            let config = QpConfig { recovery, layout, ring, ack_every, initial_window, max_in_flight, ..QpConfig::default() };
            let (mut quick, rkey) = engine(true, law, &config, packets);
            let (mut long, _) = engine(false, law, &config, packets);
            for engine in [&mut quick, &mut long] {
                let requester = &mut engine.qps[0].requester;
                requester.window = requester.window.min(window);
            }
            let mut reactions = [Reaction::default(), Reaction::default()];
            let mut now = Instant::ZERO;
            for (kind, odd, ce, many) in steps {
                now += Span::from_nanos(100);
                let count = if many { odd * 8 } else { odd / 8 };
                let header = match kind {
                    0..4 => {
                        for _ in 0..count {
                            prop_assert_eq!(quick.transmit(now), long.transmit(now));
                        }
                        continue
                    }
                    4 => {
                        for _ in 0..count {
                            let quantum = if ce { 1 } else { 16 * u32::from(MTU) };
                            let [offered, expected] = [&mut quick, &mut long].map(|engine| engine.offer(now, quantum));
                            prop_assert_eq!(offered, expected);
                            if let Some(offer) = offered {
                                let [sent, expected] = [&mut quick, &mut long].map(|engine| engine.commit(now, offer, Grant::Engine));
                                prop_assert_eq!(sent, expected);
                            }
                        }
                        continue
                    }
                    5 => {
                        now += if odd == 0 { Span::from_micros(70_000) } else { Span::from_micros(20) };
                        quick.wake(now);
                        long.wake(now);
                        continue
                    }
                    6 => Header::new(Opcode::CNP, QPN, Psn::new(0)),
                    7 => {
                        // Its responses take of the window of a selective repeat.
                        let psn = Psn::new(quick.qps[0].responder.expected);
                        let mut header = Header::new(Opcode::READ_REQUEST, QPN, psn);
                        header.set_reth(Reth { va: 0, rkey, length: (1 + odd / 2) * u32::from(MTU) });
                        header
                    }
                    _ => {
                        let una = quick.qps[0].requester.una;
                        let sent = quick.qps[0].requester.high.wrapping_sub(una);
                        let moved = if many { sent } else { odd % (sent + 1) };
                        let upto = Psn::new(una.wrapping_add(moved).wrapping_sub(1));
                        let mut header = Header::new(Opcode::ACKNOWLEDGE, QPN, upto);
                        let lost = kind > 9 && odd < 40;
                        // A NAK names the packet that is missing.
                        header.psn = if lost { upto.plus(1) } else { upto };
                        header.set_aeth(Aeth { syndrome: if lost { 0x60 } else { 0x1f }, msn: 0 });
                        set_drawn_by(&mut header, layout, if lost { upto.plus(2 + odd) } else { upto });
                        header.flags = if ce { Flags::BECN } else { Flags::NONE };
                        header
                    }
                };
                let hops = [Hop::new(now, now.as_ps() / 90, 1000 * odd, 100_000_000)];
                let words = [odd, 5, 7, 8];
                let arrival = Arrival { words: &words, hops: &hops, ..Arrival::new(&header, 0) };
                let [of_quick, of_long] = &mut reactions;
                quick.receive(now, &arrival, of_quick);
                long.receive(now, &arrival, of_long);
                prop_assert_eq!(alloc::format!("{of_quick:?}"), alloc::format!("{of_long:?}"));
            }
            // A run that ends leaves what the long way leaves.
            quick.end_run(0);
            quick.hear(0);
            long.hear(0);
            let look = |engine: &Engine| {
                let Qp { requester, common, .. } = &engine.qps[0];
                (alloc::format!("{requester:?} {:?} {}", common.facts, common.packets), engine.next_wakeup())
            };
            prop_assert_eq!(look(&quick), look(&long));
        }
    }
}
