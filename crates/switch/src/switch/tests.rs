//! The switch alone, its packets moved by hand.

use super::*;
use crate::config::{Headroom, Pfc};
use proptest::prelude::*;
use roci_units::{BitsPerSec, Bytes, Span};
use std::vec;
extern crate std;

mod ets;

#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    next: u32,
    ingress: u32,
    octets: u32,
    payload: u32,
    priority: u8,
    flow: u32,
    ect: bool,
    ce: bool,
    trimmed: bool,
    returned: bool,
    bare: bool,
}

#[derive(Default)]
struct Slab(Vec<Frame>);

impl Slab {
    fn add(&mut self, frame: Frame) -> u32 {
        self.0.push(frame);
        u32::try_from(self.0.len() - 1).unwrap()
    }
}

impl Frames for Slab {
    fn next(&self, handle: u32) -> u32 {
        self.0[handle as usize].next
    }
    fn set_next(&mut self, handle: u32, next: u32) {
        self.0[handle as usize].next = next;
    }
    fn ingress(&self, handle: u32) -> u32 {
        self.0[handle as usize].ingress
    }
    fn octets(&self, handle: u32) -> u32 {
        self.0[handle as usize].octets
    }
    fn priority(&self, handle: u32) -> u8 {
        self.0[handle as usize].priority
    }
    fn flow(&self, handle: u32) -> u32 {
        self.0[handle as usize].flow
    }
    fn is_ect(&self, handle: u32) -> bool {
        self.0[handle as usize].ect
    }
    fn mark(&mut self, handle: u32) {
        self.0[handle as usize].ce = true;
    }
    fn stays_whole(&self, handle: u32) -> bool {
        self.0[handle as usize].bare
    }
    fn trim(&mut self, handle: u32, priority: u8) -> bool {
        let frame = &mut self.0[handle as usize];
        let cut = frame.payload > 0;
        frame.octets -= frame.payload;
        frame.payload = 0;
        frame.trimmed |= cut;
        frame.priority = priority;
        cut
    }
    fn turn_back(&mut self, handle: u32) -> bool {
        let frame = &mut self.0[handle as usize];
        let turns = frame.trimmed && !frame.returned;
        frame.returned |= turns;
        turns
    }
    fn swap(&mut self, a: u32, b: u32) {
        let (mut first, mut second) = (self.0[a as usize], self.0[b as usize]);
        core::mem::swap(&mut first.next, &mut second.next);
        (self.0[a as usize], self.0[b as usize]) = (second, first);
    }
}

struct Bench {
    switch: Switch,
    ports: Vec<Port<()>>,
    slab: Slab,
}

const LINK: LinkSpec = LinkSpec { rate: BitsPerSec::from_gbps(100), delay: Span::from_micros(1) };

impl Bench {
    fn new(config: &SwitchConfig) -> Self {
        let mut ports = vec![Port::new(()); 4];
        let switch = Switch::new(config, &mut ports, 0, &[LINK; 4], Random::new(1, 0)).unwrap();
        Self { switch, ports, slab: Slab::default() }
    }

    fn admit(&mut self, egress: u32, frame: Frame) -> Admission {
        let handle = self.slab.add(frame);
        self.switch.admit(&mut self.ports, &mut self.slab, egress, handle)
    }

    fn dequeue(&mut self, egress: u32) -> Option<Departure> {
        self.switch.dequeue(&mut self.ports, &mut self.slab, egress, 0xff)
    }

    fn drain(&mut self, egress: u32) -> Vec<Frame> {
        let mut left = Vec::new();
        while let Some(departure) = self.dequeue(egress) {
            left.push(self.frame(departure));
        }
        left
    }

    fn frame(&self, departure: Departure) -> Frame {
        self.slab.0[departure.handle as usize]
    }
}

const TRIM: Trim = Trim {
    threshold: Some(Bytes(3_000)),
    headers: None,
    return_to_sender: true,
    header_priority: 7,
    random_tail: true,
    headers_per_packet: Trim::HEADERS_PER_PACKET,
};

fn data(octets: u32) -> Frame {
    Frame { octets, payload: octets.saturating_sub(78), priority: 3, ect: true, ..Frame::default() }
}

/// A switch with `shared` octets for all and a headroom of 10 000 octets for each of its four ports.
fn lossless(shared: u64) -> SwitchConfig {
    SwitchConfig {
        buffer: Bytes(shared + 40_000),
        pfc: Some(Pfc { headroom: Headroom::Octets(Bytes(10_000)), ..Pfc::default() }),
        ecn: None,
        ..SwitchConfig::default()
    }
}

#[test]
fn the_usual_headroom_is_three_flights_two_frames_and_the_pause() {
    // 100 Gb/s for 1 us are 12 500 octets.
    assert_eq!(Headroom::Usual.octets(LINK, 4_178), 3 * 12_500 + 2 * 4_178 + 64);
    assert_eq!(Headroom::Exact.octets(LINK, 4_178), 2 * 12_500 + 2 * 4_178 + 64);
}

#[test]
fn a_buffer_smaller_than_its_headroom_is_refused() {
    let config = SwitchConfig { buffer: Bytes(40_000), ..lossless(0) };
    let mut ports = vec![Port::new(()); 4];
    let error = Switch::new(&config, &mut ports, 0, &[LINK; 4], Random::new(1, 0)).err();
    assert_eq!(error, Some(ConfigError::Buffer { needed: 40_000, buffer: 40_000 }));
}

#[test]
fn higher_priorities_leave_first_and_paused_ones_stay() {
    let mut bench = Bench::new(&lossless(1_000_000));
    for priority in [0, 6, 3, 7, 3] {
        bench.admit(1, Frame { priority, ..data(1_000) });
    }
    let mut order = Vec::new();
    while let Some(departure) = bench.switch.dequeue(&mut bench.ports, &mut bench.slab, 1, !(1 << 7)) {
        order.push(departure.priority);
    }
    assert_eq!(order, [6, 3, 3, 0]);
    assert_eq!(bench.dequeue(1).map(|departure| departure.priority), Some(7));
    assert_eq!(bench.switch.used(), 0);
}

#[test]
fn an_eighth_of_the_free_buffer_pauses_and_the_resume_offset_below_it_lets_go() {
    // Use u of 90 000 pauses once u >= (90 000 - u) / 8: at 10 000. It lets go once u + 3000 <= (90 000 - u) / 8:
    // at 7333 or less.
    let mut bench = Bench::new(&lossless(90_000));
    let pauses: Vec<bool> = (0..11).map(|_| bench.admit(1, data(1_000)).pause).collect();
    assert_eq!(pauses.iter().position(|&pause| pause), Some(9));
    assert_eq!(pauses.iter().filter(|&&pause| pause).count(), 1, "a pause is said once");
    assert_eq!(bench.ports[0].pausing(), 1 << 3);
    let left_at_resume = (0..11).rev().find(|_| bench.dequeue(1).is_some_and(|left| left.resume == Some(0)));
    assert_eq!(left_at_resume, Some(7));
    assert_eq!(bench.ports[0].pausing(), 0);
}

#[test]
fn a_port_of_four_times_the_rate_that_the_share_is_for_has_four_times_the_share() {
    // Use u of 90 000 pauses once u >= (90 000 - u) / 2: at 30 000. It lets go once u + 3000 <= (90 000 - u) / 2: at 28 000 or less.
    let mut config = lossless(90_000);
    let rate = |gbps| Some(BitsPerSec::from_gbps(gbps));
    config.pfc.as_mut().unwrap().rate = rate(25);
    let mut bench = Bench::new(&config);
    let pauses: Vec<bool> = (0..31).map(|_| bench.admit(1, data(1_000)).pause).collect();
    assert_eq!(pauses.iter().position(|&pause| pause), Some(29));
    let left_at_resume = (0..31).rev().find(|_| bench.dequeue(1).is_some_and(|left| left.resume == Some(0)));
    assert_eq!(left_at_resume, Some(28));
    config.pfc.as_mut().unwrap().rate = rate(100);
    bench.switch.set_thresholds(&mut bench.ports, &config, [LINK.rate; 4].into_iter()).unwrap();
    bench.drain(1);
    let pauses: Vec<bool> = (0..11).map(|_| bench.admit(1, data(1_000)).pause).collect();
    assert_eq!(pauses.iter().position(|&pause| pause), Some(9), "an eighth");
}

#[test]
fn a_reserve_with_next_to_no_share_is_a_fixed_threshold_and_resumes_below_it() {
    let mut config = lossless(300_000);
    let pfc = config.pfc.as_mut().unwrap();
    (pfc.reserve, pfc.alpha, pfc.resume) = (Bytes(20_000), Ratio::new(1, 65_536), Bytes(5_000));
    let mut bench = Bench::new(&config);
    let pauses: Vec<bool> = (0..25).map(|_| bench.admit(1, data(1_000)).pause).collect();
    assert_eq!(pauses.iter().position(|&pause| pause), Some(20), "the first frame beyond the reserve");
    let left_at_resume = (0..25).rev().find(|_| bench.dequeue(1).is_some_and(|left| left.resume == Some(0)));
    assert_eq!(left_at_resume, Some(15));
}

#[test]
fn a_port_has_its_reserve_while_another_has_taken_all_that_is_shared() {
    let said = |reserve: u64| {
        let mut config = lossless(60_000 + 4 * reserve);
        let pfc = config.pfc.as_mut().unwrap();
        (pfc.reserve, pfc.alpha) = (Bytes(reserve), Ratio::new(1024, 1));
        let mut bench = Bench::new(&config);
        while bench.admit(1, data(1_000)).outcome == Outcome::Queued {}
        assert_eq!(bench.switch.free(), 0);
        let other: Vec<_> = (0..31).map(|_| bench.admit(1, Frame { ingress: 2, ..data(1_000) })).collect();
        let paused = other.iter().position(|admission| admission.pause);
        let dropped = other.iter().position(|admission| admission.outcome == Outcome::Dropped);
        (paused, dropped)
    };
    // Ten frames more are its headroom.
    assert_eq!(said(20_000), (Some(20), Some(30)));
    assert_eq!(said(0), (Some(0), Some(10)));
}

#[test]
fn what_arrives_after_the_pause_takes_the_headroom_and_not_an_octet_more() {
    let mut bench = Bench::new(&lossless(90_000));
    while !bench.admit(1, data(1_000)).pause {}
    let before = bench.switch.free();
    for _ in 0..10 {
        assert_eq!(bench.admit(1, data(1_000)).outcome, Outcome::Queued);
    }
    assert_eq!(bench.switch.free(), before, "the headroom is not shared");
    assert_eq!(bench.admit(1, data(1_000)).outcome, Outcome::Dropped);
    assert_eq!(bench.switch.counters(0).headroom_dropped, 1);
    assert_eq!(bench.switch.counters(0).dropped_octets, 1_000);
}

#[test]
fn without_pfc_a_queue_takes_alpha_of_the_free_buffer() {
    let config = SwitchConfig { buffer: Bytes(100_000), pfc: None, ecn: None, ..SwitchConfig::default() };
    let mut bench = Bench::new(&config);
    // With α = 1 a queue alone takes half: 50 frames of 1000 octets stand where the next would exceed what is free.
    let admitted = (0..100).filter(|_| bench.admit(2, data(1_000)).outcome == Outcome::Queued).count();
    assert_eq!(admitted, 50);
    assert_eq!(bench.switch.counters(2).dropped, 50);
    assert_eq!(bench.switch.peak(), 50_000);
}

#[test]
fn only_packets_that_understand_ecn_are_marked() {
    let mut config = lossless(1_000_000);
    config.ecn = Some(Red { kmin: Bytes(1_000), kmax: Bytes(1_000), pmax: Ratio::ONE });
    for (marking, expected) in [
        (Marking::Departure, [true, false, true, false, false]),
        (Marking::Arrival, [false, false, true, false, true]),
    ] {
        let mut bench = Bench::new(&SwitchConfig { marking, ..config.clone() });
        for ect in [true, false, true, false, true] {
            bench.admit(1, Frame { ect, ..data(1_000) });
        }
        let mut marks = Vec::new();
        while let Some(departure) = bench.dequeue(1) {
            marks.push(bench.frame(departure).ce);
        }
        // More than 1000 octets stand behind the first three as they leave, before the last three as they come.
        assert_eq!(marks, expected, "{marking:?}");
        assert_eq!(bench.switch.counters(1).marked, 2);
    }
}

#[test]
fn thresholds_may_change_while_packets_wait() {
    let step = |octets| Some(Red { kmin: Bytes(octets), kmax: Bytes(octets), pmax: Ratio::ONE });
    let config = SwitchConfig { ecn: step(1_000), ..lossless(90_000) };
    let mut bench = Bench::new(&config);
    for _ in 0..6 {
        assert!(!bench.admit(1, data(1_000)).pause, "an eighth of the free buffer is more");
    }
    let marked = |bench: &mut Bench| bench.dequeue(1).map(|departure| bench.frame(departure).ce);
    assert_eq!(marked(&mut bench), Some(true));
    let mut later = SwitchConfig { ecn: step(3_000), ..config.clone() };
    later.pfc.as_mut().unwrap().alpha = Ratio::new(1, 1_000);
    // More lines than a switch can know at once, one after the other.
    for octets in (3_000..3_300).rev() {
        let thresholds = SwitchConfig { ecn: step(octets), ..later.clone() };
        bench.switch.set_thresholds(&mut bench.ports, &thresholds, [LINK.rate; 4].into_iter()).unwrap();
    }
    assert_eq!([(); 3].map(|()| marked(&mut bench)), [true, false, false].map(Some));
    assert!(bench.admit(1, data(1_000)).pause, "a thousandth is less");
    assert_eq!(bench.switch.counters(1).marked, 2);
}

#[test]
fn a_full_queue_trims_to_the_header_and_headers_go_first() {
    let config = SwitchConfig {
        buffer: Bytes(1_000_000),
        pfc: None,
        ecn: None,
        trim: Some(Trim { random_tail: false, ..TRIM }),
        ..SwitchConfig::default()
    };
    let mut bench = Bench::new(&config);
    let outcomes: Vec<Outcome> =
        (0..5).map(|flow| bench.admit(1, Frame { flow, ..data(1_000) }).outcome).collect();
    assert_eq!(outcomes[..3], [Outcome::Queued; 3]);
    assert_eq!(outcomes[3..], [Outcome::Trimmed; 2]);
    let left: Vec<(u32, u32)> = bench.drain(1).iter().map(|frame| (frame.flow, frame.octets)).collect();
    assert_eq!(left, [(3, 78), (4, 78), (0, 1_000), (1, 1_000), (2, 1_000)]);
    assert_eq!(bench.switch.counters(1).trimmed_octets, 2 * 922);
    assert_eq!(bench.switch.used(), 0);
}

#[test]
fn of_what_has_no_payload_acknowledgements_pass_a_full_queue_and_requests_stay_in_it() {
    let sent = |random_tail, bare| {
        let trim = Trim { random_tail, ..TRIM };
        let config = SwitchConfig { pfc: None, ecn: None, trim: Some(trim), ..SwitchConfig::default() };
        let mut bench = Bench::new(&config);
        for _ in 0..3 {
            bench.admit(1, data(1_000));
        }
        let small = Frame { flow: 7, octets: 94, payload: 0, bare, ..data(94) };
        assert_eq!(bench.admit(1, small).outcome, Outcome::Queued);
        if random_tail {
            assert_eq!(
                bench.admit(1, data(1_000)).outcome,
                Outcome::Trimmed,
                "the last one is not to be cut"
            );
        }
        let counters = *bench.switch.counters(1);
        assert_eq!((counters.trimmed, counters.dropped), (u64::from(random_tail), 0));
        let left = bench.drain(1);
        let place = left.iter().position(|frame| frame.flow == 7).unwrap();
        assert!(!left[place].trimmed);
        (place, left[place].priority)
    };
    assert_eq!(sent(false, false), (0, 7));
    assert_eq!(sent(false, true), (3, 3));
    assert_eq!(sent(true, true).1, 3);
}

#[test]
fn the_peak_of_a_queue_tells_of_long_packets_that_took_the_place_of_short_ones() {
    let config = SwitchConfig { pfc: None, ecn: None, trim: Some(TRIM), ..SwitchConfig::default() };
    let mut bench = Bench::new(&config);
    let mut most = (0, 0);
    for number in 0..40 {
        bench.admit(1, data(if number < 10 { 300 } else { 1_000 }));
        let Bench { switch, ports, .. } = &bench;
        most = (most.0.max(switch.queued(ports, 1, 3)), most.1.max(switch.used()));
    }
    assert!(most.0 > 3_000, "the place of a packet of 300 octets was taken");
    assert_eq!((bench.switch.queue_peak(&bench.ports, 1, 3), bench.switch.peak()), most);
}

#[test]
fn a_packet_leaves_after_every_so_many_headers_while_both_wait() {
    let order = |headers_per_packet, open: &[u8]| {
        let trim = Trim { headers: Some(Bytes(10_000)), random_tail: false, headers_per_packet, ..TRIM };
        let config = SwitchConfig { pfc: None, ecn: None, trim: Some(trim), ..SwitchConfig::default() };
        let mut bench = Bench::new(&config);
        for _ in 0..3 {
            bench.admit(1, data(1_000));
        }
        for _ in 0..5 {
            bench.admit(1, data(1_000));
        }
        let mut open = open.iter().chain(std::iter::repeat(&u8::MAX));
        let mut next = |bench: &mut Bench| {
            let Bench { switch, ports, slab } = bench;
            switch.dequeue(ports, slab, 1, *open.next().unwrap_or(&0))
        };
        std::iter::from_fn(|| Some(if next(&mut bench)?.priority == 7 { 'h' } else { 'p' }))
            .collect::<std::string::String>()
    };
    assert_eq!(order(0, &[]), "hhhhhppp");
    assert_eq!(order(1, &[]), "hphphphh");
    assert_eq!(order(2, &[]), "hhphhphp");
    assert_eq!(order(10, &[]), "hhhhhppp");
    // A paused priority does not wait, nor is a header counted that leaves meanwhile.
    assert_eq!(order(2, &[!8, !8]), "hhhhphpp");
}

#[test]
fn where_nothing_else_was_chosen_a_queue_holds_eight_of_the_largest_frames_and_as_many_octets_of_headers_as_of_jumbograms()
 {
    let config = |max_frame| SwitchConfig {
        buffer: Bytes(4_000_000),
        pfc: None,
        ecn: None,
        trim: Some(Trim { threshold: None, return_to_sender: false, random_tail: false, ..TRIM }),
        max_frame,
        ..SwitchConfig::default()
    };
    for frame in [1_000, 4_178, 10_000] {
        let mut bench = Bench::new(&config(frame));
        let mut admit = || bench.admit(1, data(frame)).outcome;
        let room = 8 * frame.max(9_000) / 78;
        assert!((0..8).all(|_| admit() == Outcome::Queued));
        assert!((0..room).all(|_| admit() == Outcome::Trimmed));
        assert_eq!(
            admit(),
            Outcome::Dropped,
            "headers take no more octets than packets, or than eight jumbograms"
        );
    }
}

#[test]
fn a_full_queue_of_headers_turns_the_next_one_back_once_and_drops_what_cannot_turn() {
    let two = Trim { headers: Some(Bytes(2 * 78)), random_tail: false, ..TRIM };
    for (trim, expected) in
        [(two, Outcome::Returned), (Trim { return_to_sender: false, ..two }, Outcome::Dropped)]
    {
        let config = SwitchConfig {
            buffer: Bytes(1_000_000),
            pfc: None,
            ecn: None,
            trim: Some(trim),
            ..SwitchConfig::default()
        };
        let mut bench = Bench::new(&config);
        let outcomes: Vec<Outcome> = (0..6).map(|_| bench.admit(1, data(1_000)).outcome).collect();
        assert_eq!(outcomes[3..], [Outcome::Trimmed, Outcome::Trimmed, expected]);
        let header = Frame { octets: 78, priority: 7, trimmed: true, ..Frame::default() };
        assert_eq!(bench.admit(1, header).outcome, expected, "trimmed elsewhere");
        let turned = Frame { returned: true, ..header };
        assert_eq!(bench.admit(1, turned).outcome, Outcome::Dropped, "turned before");
        let control = Frame { trimmed: false, ..header };
        assert_eq!(bench.admit(1, control).outcome, Outcome::Dropped, "never trimmed");
        let counters = *bench.switch.counters(1);
        let returned = if expected == Outcome::Returned { 2 } else { 0 };
        assert_eq!((counters.trimmed, counters.returned, counters.dropped), (3, returned, 4 - returned));
        assert_eq!(bench.switch.used(), 3 * 1_000 + 2 * 78, "what went back is not kept");
        bench.drain(1);
        assert_eq!(bench.admit(1, header).outcome, Outcome::Queued);
    }
}

#[test]
fn a_random_tail_trims_the_last_packet_about_half_of_the_time() {
    let config = SwitchConfig {
        buffer: Bytes(1_000_000),
        pfc: None,
        ecn: None,
        trim: Some(TRIM),
        ..SwitchConfig::default()
    };
    let mut bench = Bench::new(&config);
    let mut tails = 0;
    for _ in 0..400 {
        for flow in 0..4 {
            bench.admit(1, Frame { flow, ..data(1_000) });
        }
        let first = bench.dequeue(1).unwrap();
        tails += u32::from(bench.frame(first).flow == 2);
        assert_eq!(bench.drain(1).len(), 3);
        assert_eq!((bench.switch.used(), bench.switch.free()), (0, 1_000_000));
    }
    // Five standard deviations of a fair coin: 10 each.
    assert!((150..=250).contains(&tails), "{tails}");
}

#[test]
fn a_queue_per_flow_serves_flows_in_turn() {
    let mut bench = Bench::new(&SwitchConfig { queues: Buffering::PerFlow, ..lossless(1_000_000) });
    for flow in [1, 1, 1, 2, 2, 3] {
        bench.admit(1, Frame { flow, ..data(1_000) });
    }
    let order: Vec<u32> = bench.drain(1).iter().map(|frame| frame.flow).collect();
    assert_eq!(order, [1, 2, 3, 1, 2, 1]);
    assert_eq!(bench.ports[1].backlog(), 0);
}

/// A queue for each flow, in a buffer of 100 KB without PFC.
fn per_flow() -> SwitchConfig {
    let buffer = Bytes(100_000);
    SwitchConfig { buffer, pfc: None, ecn: None, queues: Buffering::PerFlow, ..SwitchConfig::default() }
}

#[test]
fn a_flow_that_fills_its_own_queue_leaves_the_others_as_much_of_the_buffer_as_their_queues_may_take() {
    let mut bench = Bench::new(&per_flow());
    let mut admitted = |flow| {
        let arrive = |_: &u32| bench.admit(1, Frame { flow, ..data(1_000) }).outcome == Outcome::Queued;
        (0..100).filter(arrive).count()
    };
    // With α = 1 each takes half of what those before it left: 50, 25, and of 25 thirteen.
    assert_eq!([admitted(1), admitted(2), admitted(3)], [50, 25, 13]);
    assert_eq!(admitted(1), 0, "the first has long had its share");
    assert_eq!(bench.switch.queued(&bench.ports, 1, 3), 88_000, "the port's queue is all of them");
    assert_eq!(bench.drain(1).len(), 88);
    assert_eq!(bench.switch.free(), 100_000);
    assert_eq!(bench.admit(1, Frame { flow: 1, ..data(1_000) }).outcome, Outcome::Queued);
}

#[test]
fn a_packet_is_trimmed_and_its_header_dropped_by_the_queues_of_its_own_flow() {
    let trim = Trim { headers: Some(Bytes(2 * 78)), return_to_sender: false, random_tail: false, ..TRIM };
    let mut bench = Bench::new(&SwitchConfig { trim: Some(trim), ..per_flow() });
    let (queued, trimmed, dropped) = (Outcome::Queued, Outcome::Trimmed, Outcome::Dropped);
    for flow in 1..4 {
        let outcomes: Vec<Outcome> =
            (0..6).map(|_| bench.admit(1, Frame { flow, ..data(1_000) }).outcome).collect();
        assert_eq!(outcomes, [queued, queued, queued, trimmed, trimmed, dropped], "flow {flow}");
    }
}

#[test]
fn a_packet_is_marked_by_the_queue_of_its_own_flow() {
    let ecn = Some(Red { kmin: Bytes(1_000), kmax: Bytes(1_000), pmax: Ratio::ONE });
    // More than 1000 octets stand behind the first two of flow 1 as they leave, before its last two as they come; never with flow 2.
    for (marking, expected) in [
        (Marking::Departure, [true, false, true, false, false]),
        (Marking::Arrival, [false, false, false, true, true]),
    ] {
        let mut bench = Bench::new(&SwitchConfig { marking, ecn, ..per_flow() });
        for flow in [1, 1, 1, 2, 1] {
            bench.admit(1, Frame { flow, ect: true, ..data(1_000) });
        }
        let left = bench.drain(1);
        assert_eq!(left.iter().map(|frame| frame.flow).collect::<Vec<_>>(), [1, 2, 1, 1, 1]);
        assert_eq!(left.iter().map(|frame| frame.ce).collect::<Vec<_>>(), expected, "{marking:?}");
    }
}

#[test]
fn what_is_left_behind_a_packet_is_its_own_flows() {
    let mut bench = Bench::new(&per_flow());
    for flow in [1, 1, 1, 2] {
        bench.admit(1, Frame { flow, ..data(1_000) });
    }
    let behind: Vec<u32> = (0..4).map_while(|_| Some(bench.dequeue(1)?.behind)).collect();
    assert_eq!(behind, [2_000, 0, 1_000, 0]);
}

proptest! {
    #[test]
    fn every_octet_is_accounted_for(
        pfc in any::<bool>(),
        per_flow in any::<bool>(),
        trim in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), 0u32..4, 0u32..4, 0u8..8, 64u32..4_200), 1..400),
    ) {
        let mut config = lossless(60_000);
        if !pfc {
            config.pfc = None;
        }
        if per_flow {
            config.queues = Buffering::PerFlow;
        }
        config.trim = trim.then_some(Trim { threshold: Some(Bytes(8_000)), headers: Some(Bytes(1_000)), ..TRIM });
        let mut bench = Bench::new(&config);
        let whole = bench.switch.free();
        let mut inside = 0;
        for (arrives, ingress, egress, priority, octets) in steps {
            if arrives {
                let payload = octets.saturating_sub(78);
                let frame = Frame { ingress, octets, payload, priority, flow: octets % 5, ..Frame::default() };
                let before = *bench.switch.counters(egress);
                let admission = bench.admit(egress, frame);
                let cut = bench.switch.counters(egress).trimmed_octets - before.trimmed_octets;
                match admission.outcome {
                    Outcome::Dropped | Outcome::Returned if cut > 0 => {
                        let lost = bench.slab.0[bench.slab.0.len() - 1].octets;
                        inside = inside + u64::from(octets) - cut - u64::from(lost);
                    }
                    // A packet without payload may have taken the place of another; then that one is lost.
                    Outcome::Dropped | Outcome::Returned => {
                        let lost = bench.slab.0[bench.slab.0.len() - 1].octets;
                        inside = inside + u64::from(octets) - u64::from(lost);
                    }
                    _ => inside = inside + u64::from(octets) - cut,
                }
            } else if let Some(departure) = bench.dequeue(egress) {
                inside -= u64::from(bench.frame(departure).octets);
            }
            prop_assert_eq!(u64::from(bench.switch.used()), inside);
            let queued: u32 = (0..4).flat_map(|port| (0..8).map(move |p| (port, p))).map(|(port, p)| bench.switch.queued(&bench.ports, port, p)).sum();
            prop_assert_eq!(u64::from(queued), inside);
            let held: u32 = (0..4).map(|port| bench.switch.held(&bench.ports, port, 3)).sum();
            let lossless: u32 = (0..4).map(|port| bench.switch.queued(&bench.ports, port, 3)).sum();
            prop_assert_eq!(held, if pfc { lossless } else { 0 });
            prop_assert!(bench.switch.free() <= whole);
        }
        for egress in 0..4 {
            bench.drain(egress);
        }
        prop_assert_eq!(bench.switch.used(), 0);
        prop_assert_eq!(bench.switch.free(), whole);
        prop_assert!(bench.ports.iter().all(|port| port.pausing() == 0), "an empty buffer pauses nobody");
    }
}

#[test]
fn a_switch_that_is_cleared_has_lost_every_packet_once_and_owes_nothing() {
    let trim = Some(Trim { random_tail: false, ..TRIM });
    for queues in [Buffering::PerPriority, Buffering::PerFlow] {
        // Priority 3 is lossless, and what is beyond 3000 octets of priority 2 is trimmed to priority 7.
        let config = SwitchConfig {
            queues,
            trim,
            ecn: Some(Red { kmin: Bytes(0), ..Red::default() }),
            ..lossless(100_000)
        };
        let mut bench = Bench::new(&config);
        let free = bench.switch.free();
        let mut held = Vec::new();
        for n in 0..60 {
            let frame = Frame { ingress: n % 2, flow: n % 5, priority: 2 + (n % 2) as u8, ..data(1_000) };
            let handle = u32::try_from(bench.slab.0.len()).unwrap();
            if bench.admit(2 + n % 3 / 2, frame).outcome != Outcome::Dropped {
                held.push(handle);
            }
        }
        assert!(bench.ports[1].pausing() != 0, "the account of one port is full");
        let Bench { switch, ports, slab } = &mut bench;
        let mut lost = Vec::new();
        switch.clear(ports, slab, |handle| lost.push(handle));
        lost.sort_unstable();
        assert_eq!(lost, held);
        assert_eq!((switch.used(), switch.free()), (0, free));
        assert!(ports.iter().all(|port| port.backlog() == 0 && port.pausing() == 0));
        assert!((0..4).all(|port| switch.counters(port).marked == 0 && switch.held(ports, port, 3) == 0));
        // It works as a new one does.
        assert_eq!(bench.admit(2, data(1_000)).outcome, Outcome::Queued);
        assert_eq!(bench.drain(2).len(), 1);
    }
}
