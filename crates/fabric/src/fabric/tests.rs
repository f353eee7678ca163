//! The fabric with NICs that send by a script and write down what they see.

use super::*;
use crate::balance::Balancing;
use crate::fault::{Fault, FaultSpec};
use crate::graph::{Link, NodeId};
use crate::packet::Packet;
use crate::tap::TappedFrame;
use crate::topology::{FatTree, Form, LeafSpine, Star};
use proptest::prelude::*;
use roci_switch::config::{Headroom, Pfc};
use roci_switch::{Red, SwitchConfig, Trim};
use roci_units::{BitsPerSec, Bytes, Qpn, Random, Ratio, Span};
use roci_wire::Opcode;
use roci_wire::header::Flags;
use std::collections::VecDeque;

mod accounts;
mod balance;
mod changes;
mod deadlock;
mod faults;
mod priorities;

/// What arrived: when, at which host, and the packet.
type Arrival = (u64, u16, Packet);

/// NICs that send what they are told as fast as the port takes it.
#[derive(Default)]
struct Script {
    queues: Vec<VecDeque<Packet>>,
    /// When a host begins, in ps; those without an entry begin at zero.
    arrivals: Vec<Arrival>,
    /// Whether packets ask for telemetry.
    traced: bool,
    hops: Vec<Vec<roci_switch::Hop>>,
    wakes: Vec<(u64, u16)>,
    forge: bool,
}

impl Nics for Script {
    fn receive(&mut self, net: &mut Net, host: HostId, id: PacketId) {
        self.arrivals.push((net.now().as_ps(), host.0, net.packets()[id]));
        if let Some(extra) = net.packets().extra(id) {
            self.hops.push(extra.hops().to_vec());
        }
        net.free(id);
    }

    fn transmit(&mut self, net: &mut Net, host: HostId, open: u8) -> Option<PacketId> {
        let queue = &mut self.queues[usize::from(host.0)];
        if open & 1 << queue.front()?.priority == 0 {
            return None;
        }
        let id = net.packets_mut().alloc(queue.pop_front()?);
        if self.traced {
            net.packets_mut().extra_mut(id).set_traced(true);
        }
        Some(id)
    }

    fn wake(&mut self, net: &mut Net, host: HostId) {
        self.wakes.push((net.now().as_ps(), host.0));
        net.kick(host);
    }

    fn prefetch(&self, _: HostId, _: &Packet) {}

    fn forge_cnp(&self, packet: &Packet) -> Option<Packet> {
        self.forge.then(|| data(packet.destination.0, packet.source.0, 6, 90))
    }
}

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const DELAY: Span = Span::from_micros(1);
const SECOND: Instant = Instant::from_ps(1_000_000_000_000);
/// Picoseconds that an octet takes at 100 Gb/s.
const OCTET: u64 = 80;

fn data(source: u16, destination: u16, priority: u8, frame: u16) -> Packet {
    let mut packet = Packet {
        source: HostId(source),
        destination: HostId(destination),
        flow: u32::from(source) << 16 | u32::from(destination),
        frame,
        priority,
        marks: Marks::ECT,
        ..Packet::default()
    };
    packet.header.payload = frame.saturating_sub(78);
    packet
}

fn star(hosts: u32) -> Graph {
    Star { hosts, rate: RATE, delay: DELAY }.build().unwrap().graph
}

/// `count` frames from each of `sources` to `destination`, all from the start.
fn blast(
    graph: &Graph,
    config: &FabricConfig,
    sources: &[u16],
    destination: u16,
    count: usize,
) -> Fabric<Script> {
    let mut fabric = scripted(graph, config);
    for &source in sources {
        let packets = std::iter::repeat_n(data(source, destination, 3, 4_178), count);
        fabric.nics.queues[usize::from(source)].extend(packets);
        fabric.net.kick(HostId(source));
    }
    fabric
}

fn scripted(graph: &Graph, config: &FabricConfig) -> Fabric<Script> {
    let nics = Script { queues: vec![VecDeque::new(); graph.hosts.len()], ..Script::default() };
    Fabric::new(graph, config, nics).unwrap()
}

fn wire_time(frame: u16) -> u64 {
    (u64::from(frame) + 20) * OCTET
}

#[test]
fn a_packet_is_stored_and_forwarded() {
    let mut fabric = blast(&star(2), &FabricConfig::default(), &[0], 1, 2);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let times: Vec<u64> = fabric.nics.arrivals.iter().map(|arrival| arrival.0).collect();
    let first = 2 * (wire_time(4_178) + DELAY.as_ps());
    assert_eq!(times, [first, first + wire_time(4_178)]);
    assert_eq!(fabric.net.totals().packet_hops, 4);
    assert_eq!(fabric.net.rx_octets(HostId(1)), 2 * 4_178);
    assert_eq!(fabric.net.tx_octets(0), 2 * 4_178);
    assert_eq!(fabric.net.packets().live(), 0);
}

#[test]
fn a_long_stretch_of_events_can_be_left_and_gone_on_with() {
    let all = || blast(&star(2), &FabricConfig::default(), &[0], 1, 450_000);
    let (mut whole, mut parts) = (all(), all());
    assert_eq!(whole.run_until(SECOND), Stopped::Idle);
    assert_eq!(parts.run_some(SECOND), Stopped::Early);
    assert_eq!(parts.net.totals().events, STRETCH);
    assert!(parts.net.now() < whole.net.now());
    assert_eq!(parts.run_some(SECOND), Stopped::Idle);
    let times =
        |fabric: &Fabric<Script>| fabric.nics.arrivals.iter().map(|arrival| arrival.0).collect::<Vec<_>>();
    assert_eq!(times(&parts), times(&whole));
    assert_eq!(parts.net.totals(), whole.net.totals());
}

#[test]
fn what_lies_beyond_the_end_of_time_is_counted() {
    let mut queue = crate::queue::EventQueue::new();
    queue.push_at(HORIZON_PS - 1, 0, 0);
    queue.push_at(u64::MAX, 0, 0);
    assert_eq!(queue.beyond(), 0);
    queue.push_at(HORIZON_PS, 0, 0);
    queue.push_after(HORIZON_PS + 7, 0, 0);
    assert_eq!((queue.beyond(), queue.pushed()), (2, 1));
}

#[test]
fn a_rate_that_does_not_divide_loses_no_picosecond() {
    let graph = Star { hosts: 2, rate: BitsPerSec::from_gbps(30), delay: DELAY }.build().unwrap().graph;
    let mut fabric = blast(&graph, &FabricConfig::default(), &[0], 1, 1_000);
    fabric.run_until(SECOND);
    // The last frame has crossed the first link after 1000 frames, and the second one frame later.
    let last = fabric.nics.arrivals.last().unwrap().0;
    let exact = |frames: u64| frames * 4_198 * 8_000 / 30;
    assert!(last.abs_diff(exact(1_001) + 2 * DELAY.as_ps()) <= 1, "{last}");
}

#[test]
fn a_run_stops_where_it_is_told_and_goes_on_as_if_it_had_not() {
    let run = |steps: &[u64]| {
        let mut fabric = blast(&star(4), &FabricConfig::default(), &[0, 1, 2], 3, 50);
        for &step in steps {
            assert_eq!(fabric.run_until(Instant::from_ps(step)), Stopped::At);
            assert_eq!(fabric.net.now().as_ps(), step);
        }
        assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
        fabric.nics.arrivals.iter().map(|arrival| (arrival.0, arrival.2.source)).collect::<Vec<_>>()
    };
    assert_eq!(run(&[]), run(&[1, 2_000_000, 2_000_001, 40_000_000]));
}

/// A lossless switch with a little shared buffer.
fn tight(headroom: Headroom, shared: u64, ports: u64, max_frame: u32) -> SwitchConfig {
    let link = roci_switch::LinkSpec { rate: RATE, delay: DELAY };
    SwitchConfig {
        buffer: Bytes(shared + ports * headroom.octets(link, max_frame)),
        pfc: Some(Pfc { headroom, ..Pfc::default() }),
        ecn: None,
        max_frame,
        ..SwitchConfig::default()
    }
}

/// Frames of 4096 octets of payload, 4198 octets on the link with preamble and gap.
const FRAME: u16 = 4_178;

/// A delay at which the need for headroom is a whole number of frames and little more: between the decision to
/// pause and its effect at most 2 · rate · delay + a frame + the PAUSE frame pass, here 7¼ frames on the link; so up
/// to eight frames follow the one that has brought the decision about.
const WORST_DELAY: Span = Span::from_ps((6 * 4_198 + 4_198 / 4 - 84) / 2 * OCTET);

/// Two senders into one receiver, which takes nothing at first, so that all that arrives at the switch stays there; and
/// which sends to them in turn, so that the switch's PAUSE frames wait for frames that have begun. The receiver starts `phase` ps late. Returns how many frames were dropped.
fn incast_drops(headroom: u64, phase: u64) -> u64 {
    let graph = Star { hosts: 3, rate: RATE, delay: WORST_DELAY }.build().unwrap().graph;
    let headroom = Headroom::Octets(Bytes(headroom));
    let config = FabricConfig { switch: tight(headroom, 60_000, 3, 4_178), ..FabricConfig::default() };
    let mut fabric = blast(&graph, &config, &[0], 2, 150);
    let frames = |source, destinations: [u16; 2]| {
        (0..150).map(move |n| data(source, destinations[n % 2], 3, FRAME)).collect::<VecDeque<_>>()
    };
    fabric.nics.queues[1] = frames(1, [2, 2]);
    fabric.nics.queues[2] = frames(2, [0, 1]);
    fabric.net.wake_at(HostId(1), Instant::from_ps(phase / 3));
    fabric.net.wake_at(HostId(2), Instant::from_ps(phase));
    fabric.net.host_pause(HostId(2), 3, true);
    assert_eq!(fabric.run_until(Instant::from_ps(200 * wire_time(FRAME))), Stopped::Idle);
    fabric.net.host_pause(HostId(2), 3, false);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    let counters = (3..6).filter_map(|port| fabric.net.counters(port));
    let drops: u64 = counters.map(|port| port.headroom_dropped).sum();
    assert_eq!(fabric.nics.arrivals.len() as u64 + drops, 450);
    assert!(fabric.net.pauses(3).sent > 3, "the switch pauses its senders");
    assert_eq!(fabric.net.packets().live(), 0);
    assert_eq!(fabric.net.switch(0).used(), 0);
    drops
}

#[test]
fn exact_headroom_never_drops_and_one_mtu_less_does() {
    let link = roci_switch::LinkSpec { rate: RATE, delay: WORST_DELAY };
    let exact = Headroom::Exact.octets(link, u32::from(FRAME));
    let phases = || (0..64).map(|step| step * 2 * wire_time(FRAME) / 64);
    assert!(phases().all(|phase| incast_drops(exact, phase) == 0));
    // The worst phases are those at which a PAUSE frame waits for more than three quarters of a frame: 7 or 8 of the
    // 64, for a frame is there to wait for half of the time.
    let worst = phases().filter(|&phase| incast_drops(exact - 4_096, phase) > 0).count();
    assert!((7..=8).contains(&worst), "{worst}");
}

#[test]
fn paused_senders_go_on_and_pauses_are_counted_at_both_ends() {
    let config =
        FabricConfig { switch: tight(Headroom::Exact, 600_000, 5, 4_178), ..FabricConfig::default() };
    let mut fabric = blast(&star(5), &config, &[0, 1, 2, 3], 4, 200);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.arrivals.len(), 800);
    // The receiver's link never idles: enough waits to bridge the time that a resumption takes.
    let last = fabric.nics.arrivals.last().unwrap().0;
    assert_eq!(last, 2 * DELAY.as_ps() + 801 * wire_time(FRAME));
    for sender in 0..4 {
        let port = fabric.net.peer(sender);
        let (switch, host) = (*fabric.net.pauses(port), *fabric.net.pauses(sender));
        assert!(switch.sent > 0 && switch.sent == host.received);
        let paused = host.paused(fabric.net.now()).as_ps();
        assert!(paused > last / 2 && paused < last, "three quarters of the time: {paused} of {last}");
        assert_eq!(fabric.net.paused(sender), 0);
    }
    assert_eq!(fabric.net.deadlock(), None);
}

#[test]
fn a_full_nic_pauses_its_switch_and_the_frame_that_is_being_sent_finishes() {
    let mut fabric = blast(&star(2), &FabricConfig::default(), &[0], 1, 100);
    // The PAUSE frame takes effect at the switch after 84 octets and the delay.
    let asked = 20 * wire_time(FRAME);
    fabric.run_until(Instant::from_ps(asked));
    fabric.net.host_pause(HostId(1), 3, true);
    assert_eq!(fabric.run_until(Instant::from_ps(10 * asked)), Stopped::Idle);
    let effect = asked + 84 * OCTET + DELAY.as_ps();
    let begun = |arrival: &Arrival| arrival.0 - DELAY.as_ps() - wire_time(FRAME);
    let last = fabric.nics.arrivals.last().unwrap();
    assert!(begun(last) < effect && begun(last) + wire_time(FRAME) >= effect);
    fabric.net.host_pause(HostId(1), 3, false);
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.arrivals.len(), 100);
}

#[test]
fn a_switch_goes_on_where_it_would_not_pause_itself() {
    let mut config = FabricConfig::default();
    for (classes, obeyed) in [(Some(1 << 3), 1 << 3), (Some(1 << 4), 0), (None, 0)] {
        match classes {
            Some(classes) => config.switch.pfc.as_mut().unwrap().classes = classes,
            None => config.switch.pfc = None,
        }
        let mut fabric = blast(&star(2), &config, &[1], 0, 2);
        fabric.net.host_pause(HostId(1), 3, true);
        let port = fabric.net.peer(1);
        fabric.run_until(SECOND);
        assert_eq!((fabric.net.paused(port), fabric.net.pauses(port).received), (obeyed, 1));
    }
}

#[test]
fn a_pause_frame_says_all_that_has_changed_before_it_leaves() {
    let mut config = FabricConfig::default();
    config.switch.pfc.as_mut().unwrap().classes = 1 << 3 | 1 << 5 | 1 << 6;
    let second_arrival = |changes: &[(u8, bool)]| {
        let mut fabric = blast(&star(2), &config, &[1], 0, 2);
        fabric.run_until(Instant::from_ps(wire_time(FRAME) / 2));
        for &(priority, on) in changes {
            fabric.net.host_pause(HostId(1), priority, on);
        }
        let switch_port = fabric.net.peer(1);
        fabric.run_until(Instant::from_ps(wire_time(FRAME) + 84 * OCTET + DELAY.as_ps() - 1));
        assert_eq!(fabric.net.paused(switch_port), 0);
        fabric.run_until(Instant::from_ps(wire_time(FRAME) + 84 * OCTET + DELAY.as_ps()));
        let paused = fabric.net.paused(switch_port);
        fabric.run_until(SECOND);
        (paused, fabric.nics.arrivals[1].0)
    };
    let (one, at) = second_arrival(&[(3, true)]);
    assert_eq!((one, at), (1 << 3, 2 * DELAY.as_ps() + 3 * wire_time(FRAME) + 84 * OCTET));
    assert_eq!(second_arrival(&[(3, true), (5, true), (6, true), (5, false)]), (1 << 3 | 1 << 6, at));
    assert_eq!(
        second_arrival(&[(3, true), (3, false)]),
        (0, at),
        "a frame that says nothing new takes its time"
    );
}

#[test]
fn a_paused_priority_lets_others_pass() {
    let mut fabric = scripted(&star(2), &FabricConfig::default());
    fabric.net.host_pause(HostId(1), 3, true);
    fabric.run_until(Instant::from_ps(3_000_000));
    fabric.nics.queues[0].extend([data(0, 1, 3, 1_000), data(0, 1, 6, 90)]);
    fabric.net.kick(HostId(0));
    fabric.run_until(SECOND);
    let priorities: Vec<u8> = fabric.nics.arrivals.iter().map(|arrival| arrival.2.priority).collect();
    assert_eq!(priorities, [6]);
}

#[test]
fn one_wake_up_is_outstanding_and_it_is_the_earliest() {
    let mut fabric = scripted(&star(2), &FabricConfig::default());
    for at in [500, 300, 400, u64::MAX, 300] {
        fabric.net.wake_at(HostId(1), Instant::from_ps(at));
    }
    assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
    assert_eq!(fabric.nics.wakes, [(300, 1)]);
    fabric.net.wake_at(HostId(1), Instant::ZERO);
    fabric.run_until(SECOND);
    assert_eq!(fabric.nics.wakes[1..], [(300, 1)], "an instant that has passed means now");
}

/// A NIC that asks for a near wake-up and, when it has been given that, for its timer, which an acknowledgement has
/// put off: a thousand times.
#[test]
fn a_timer_that_is_put_off_again_and_again_is_one_event() {
    let mut fabric = scripted(&star(2), &FabricConfig::default());
    let timer = 4 * SECOND.as_ps();
    for turn in 0..1_000 {
        let now = turn * 1_000_000;
        fabric.net.wake_at(HostId(1), Instant::from_ps(timer + now));
        fabric.run_until(Instant::from_ps(now + 400_000));
        fabric.net.wake_at(HostId(1), Instant::from_ps(now + 500_000));
        fabric.run_until(Instant::from_ps(now + 999_999));
    }
    assert_eq!(fabric.nics.wakes.len(), 1_000);
    assert_eq!(fabric.net.queue.pushed(), 1_001, "the near ones, and one timer");
    fabric.net.wake_at(HostId(1), Instant::from_ps(timer + 1));
    fabric.run_until(Instant::from_ps(2 * timer));
    assert_eq!(fabric.nics.wakes[1_000..], [(timer + 1, 1)]);
}

#[test]
fn telemetry_tells_of_each_switch_and_grows_the_frame() {
    let shape =
        LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 1, rate: RATE, fabric_rate: None, delay: DELAY };
    let config = FabricConfig { hop_octets: 8, ..FabricConfig::default() };
    let mut fabric = blast(&shape.build().unwrap().graph, &config, &[0], 1, 1);
    fabric.nics.traced = true;
    fabric.run_until(SECOND);
    let hops = &fabric.nics.hops[0];
    let mut at = 0;
    for (hop, grown) in hops.iter().zip([0, 8, 16]) {
        at += wire_time(FRAME + grown) + DELAY.as_ps();
        assert_eq!((u64::from(hop.at_ns), hop.queue_bytes, hop.rate_kbps), (at / 1_000, 0, 100_000_000));
    }
    assert_eq!(hops.len(), 3);
    assert_eq!(fabric.nics.arrivals[0].2.frame, FRAME + 24);
}

#[test]
fn a_queue_beyond_the_step_marks_what_understands_ecn() {
    let mut config = FabricConfig::default();
    config.switch.ecn = Some(Red { kmin: Bytes(20_000), kmax: Bytes(20_000), pmax: Ratio::ONE });
    let mut fabric = blast(&star(3), &config, &[0, 1], 2, 20);
    fabric.nics.queues[1].iter_mut().for_each(|packet| packet.marks = Marks::default());
    fabric.run_until(SECOND);
    let marked = |source: u16| {
        let from = fabric.nics.arrivals.iter().filter(|arrival| arrival.2.source.0 == source);
        from.filter(|arrival| arrival.2.marks.has(Marks::CE)).count() as u64
    };
    assert_eq!(marked(1), 0);
    assert!(marked(0) > 3);
    assert_eq!(fabric.net.counters(5).unwrap().marked, marked(0));
    assert!(fabric.net.queue_peak(5, 3) > 20_000);
}

const TRIM: Trim = Trim {
    threshold: None,
    headers: None,
    return_to_sender: true,
    header_priority: 7,
    random_tail: false,
    headers_per_packet: Trim::HEADERS_PER_PACKET,
};

#[test]
fn headers_that_find_no_room_go_back_to_who_sent_them() {
    let mut config = FabricConfig::default();
    config.switch.pfc = None;
    config.switch.trim = Some(Trim { headers: Some(Bytes(2 * 78)), ..TRIM });
    let shape =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 3, rate: RATE, fabric_rate: None, delay: DELAY };
    let mut fabric = scripted(&shape.build().unwrap().graph, &config);
    let sources = [0, 1, 2, 3, 4];
    for source in sources {
        let mut packet = data(source, 5, 3, 4_178);
        packet.header.opcode = Opcode::WRITE_MIDDLE;
        packet.header.dest_qpn = Qpn::new(7);
        packet.header.set_source_qpn(Qpn::new(100 + u32::from(source)));
        fabric.nics.queues[usize::from(source)].extend(std::iter::repeat_n(packet, 40));
        fabric.net.kick(HostId(source));
    }
    fabric.run_until(SECOND);
    assert_eq!(fabric.nics.arrivals.len(), 5 * 40, "nothing is lost");
    let returned: Vec<&Arrival> =
        fabric.nics.arrivals.iter().filter(|it| it.2.header.flags.has(Flags::RETURNED)).collect();
    let some = |of: std::ops::Range<u16>| returned.iter().any(|it| of.contains(&it.2.destination.0));
    assert!(some(0..3) && some(3..5), "over the spine and at the same leaf");
    for (_, host, packet) in &returned {
        assert_eq!((packet.source.0, packet.destination.0), (5, *host));
        assert_eq!(packet.header.dest_qpn, Qpn::new(100 + u32::from(*host)));
        assert_eq!(packet.header.source_qpn(), Qpn::new(7));
        assert!(packet.header.flags.has(Flags::TRIMMED));
    }
}

#[test]
fn trimmed_packets_arrive_as_headers_before_what_was_queued() {
    let mut config = FabricConfig::default();
    config.switch.pfc = None;
    config.switch.trim = Some(TRIM);
    let mut fabric = blast(&star(4), &config, &[0, 1, 2], 3, 20);
    fabric.run_until(SECOND);
    assert_eq!(fabric.nics.arrivals.len(), 60, "nothing is lost");
    let trimmed = |arrival: &&Arrival| arrival.2.header.flags.has(Flags::TRIMMED);
    let headers: Vec<&Arrival> = fabric.nics.arrivals.iter().filter(trimmed).collect();
    assert!(headers.len() > 20);
    assert!(headers.iter().all(|arrival| arrival.2.frame == 78 && arrival.2.header.payload == 0));
    assert_eq!(fabric.net.counters(7).unwrap().trimmed, headers.len() as u64);
}

#[test]
fn the_same_seed_gives_the_same_arrivals() {
    let run = |seed| {
        let form = Form::Pods { pods: 2, tors_per_pod: 2, aggs_per_pod: 2, cores: 4, hosts_per_tor: 2 };
        let tree = FatTree { form, rate: RATE, fabric_rate: None, core_rate: None, delay: DELAY };
        let graph = tree.build().unwrap().graph;
        let fault = Fault::Loss(Ratio::new(1, 10));
        let faults = vec![faults::always(0, graph.links[0].a, fault)];
        let config = FabricConfig { seed, faults, ..FabricConfig::default() };
        let mut fabric = blast(&graph, &config, &[0, 1, 2, 3, 4, 5, 6], 7, 100);
        fabric.run_until(SECOND);
        let seen = fabric.nics.arrivals.iter();
        seen.map(|(at, _, packet)| (*at, packet.source.0, packet.marks.0)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_tap_records_both_directions_and_pauses() {
    let mut fabric = blast(&star(2), &FabricConfig::default(), &[0], 1, 3);
    fabric.net.tap(1, true);
    fabric.net.host_pause(HostId(1), 5, true);
    fabric.run_until(SECOND);
    let taps = fabric.net.drain_taps();
    let received: Vec<u64> = taps.iter().filter(|tap| !tap.sent).map(|tap| tap.at.as_ps()).collect();
    assert_eq!(received, fabric.nics.arrivals.iter().map(|arrival| arrival.0).collect::<Vec<_>>());
    assert!(matches!(taps[0].frame, TappedFrame::Pause { priority: 5, on: true }) && taps[0].sent);
    assert!(taps.iter().all(|tap| tap.port == 1));
    assert!(taps.is_sorted_by_key(|tap| tap.at));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn octets_in_and_duplicated_are_octets_out_dropped_and_corrupted(
        seed in any::<u64>(),
        tenths in prop::array::uniform4(0u32..5),
        senders in 1u16..6,
        lossless in any::<bool>(),
        buffer in 20_000u64..200_000,
    ) {
        let graph = star(6);
        let [loss, corrupt, duplicate, reorder] = tenths.map(|tenth| Ratio::new(tenth, 10));
        let kinds = [
            Fault::Duplicate(duplicate),
            Fault::Loss(loss),
            Fault::Reorder { chance: reorder, delay: Span::from_micros(3) },
            Fault::Corrupt(corrupt),
            Fault::Delay { delay: Span::ZERO, jitter: Span::from_micros(1) },
        ];
        let mut faults = Vec::new();
        for host in 0..6 {
            for (place, fault) in kinds.into_iter().enumerate() {
                let forth = (host as usize + place).is_multiple_of(2);
                faults.push(faults::always(host, NodeId(if forth { host } else { 6 }), fault));
            }
        }
        let mut switch = tight(Headroom::Exact, buffer, 6, 4_178);
        if !lossless {
            switch.pfc = None;
        }
        let config = FabricConfig { seed, switch, faults, ..FabricConfig::default() };
        let mut fabric = scripted(&graph, &config);
        let mut random = Random::new(seed, 1);
        for host in 0..senders {
            let packets = (0..200).map(|_| {
                let other = u16::try_from((u64::from(host) + 1 + random.below(5)) % 6).unwrap();
                data(host, other, 3, u16::try_from(64 + random.below(4_000)).unwrap())
            });
            fabric.nics.queues[usize::from(host)] = packets.collect();
            fabric.net.kick(HostId(host));
        }
        prop_assert_eq!(fabric.run_until(SECOND), Stopped::Idle);
        let (mut entered, mut left) = (0, 0);
        for port in 0..12 {
            if let Some(counters) = fabric.net.fault_counters(port) {
                let total = counters.entered.octets + counters.duplicated.octets;
                let came = counters.left.octets + counters.dropped.octets + counters.corrupted.octets;
                prop_assert_eq!(total, came);
                prop_assert_eq!(counters.entered.octets, fabric.net.tx_octets(port));
                entered += counters.entered.octets + counters.duplicated.octets - counters.dropped.octets;
            }
        }
        left += (0..6).map(|host| fabric.net.rx_octets(HostId(host))).sum::<u64>();
        let dropped: u64 = (6..12).filter_map(|port| fabric.net.counters(port)).map(|c| c.dropped_octets).sum();
        // What comes out of the hosts' links enters the switch, and leaves it by its own links or not at all.
        let forwarded: u64 = (6..12).map(|port| fabric.net.tx_octets(port)).sum();
        prop_assert_eq!(entered, forwarded + dropped + left);
        prop_assert_eq!(fabric.net.packets().live(), 0);
        prop_assert_eq!(fabric.net.switch(0).used(), 0);
    }
}
