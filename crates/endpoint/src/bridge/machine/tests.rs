use super::*;
use proptest::prelude::*;
use roci_switch::Shares;
use roci_switch::config::{Pfc, SwitchConfig};
use roci_switch::red::Red;
use roci_units::{BitsPerSec, Bytes};
use roci_wire::ethernet::{Ethernet, Vlan};
use roci_wire::ip::{Ecn, Ip};
use roci_wire::layout::int::IntStack;
use roci_wire::{Cc, Envelope, Header, Layout, Opcode, Packet, Transport};
use std::net::{Ipv4Addr, Ipv6Addr};

const GIGABIT: Link =
    Link { rate: BitsPerSec::from_gbps(1), delay: Span::from_micros(5), pause_frames: false };
const START: Instant = Instant::ZERO;

const fn station(port: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, port])
}

/// A WRITE's middle packet, or a CNP, between the stations of two ports.
fn packet(opcode: Opcode, from: u8, to: u8, payload: u16, v6: bool) -> Vec<u8> {
    let ip = if v6 {
        Ip::v6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
    } else {
        Ip::v4(Ipv4Addr::new(10, 0, 0, from), Ipv4Addr::new(10, 0, 0, to))
    };
    let (length, payload) = (payload, vec![7; payload.into()]);
    let mut header = Header::default();
    (header.opcode, header.payload) = (opcode, length);
    let ethernet = Ethernet { source: station(from), destination: station(to) };
    let envelope = Envelope { ethernet, vlan: None, ip, source_port: 4791 };
    let packet = Packet { envelope, transport: Transport::standard(header), payload: &payload };
    let mut frame = vec![0; packet.len()];
    packet.emit(&mut frame).unwrap();
    frame
}

fn data(from: u8, to: u8) -> Vec<u8> {
    packet(Opcode::WRITE_MIDDLE, from, to, 4096, false)
}

/// What has been delivered: port, frame, when.
type Delivered = Vec<(u32, Vec<u8>, Instant)>;

/// Lets `hosts`, which have so many frames each, hand them over as their NICs take them; gives what is delivered.
fn drive(bridge: &mut Bridge, mut hosts: Vec<VecDeque<Vec<u8>>>) -> Delivered {
    let mut delivered = Delivered::new();
    let mut now = START;
    loop {
        bridge.advance(now, |port, frame, at| delivered.push((port, frame.to_vec(), at)));
        for (port, frames) in (0..).zip(&mut hosts) {
            while bridge.takes(port)
                && let Some(frame) = frames.pop_front()
            {
                bridge.send(port, &frame, now);
            }
        }
        let Some(next) = bridge.next_event() else { return delivered };
        now = next;
    }
}

/// A bridge of three whose hosts have been heard.
fn three(config: &BridgeConfig, link: Link) -> Bridge {
    let mut bridge = Bridge::new(config, &[link; 3]).unwrap();
    for port in 0..3 {
        bridge.stations.learn(station(port), port.into(), START);
    }
    bridge
}

fn lossy(ecn: Option<Red>) -> BridgeConfig {
    let switch = SwitchConfig { pfc: None, ecn, ..SwitchConfig::default() };
    BridgeConfig { switch, ..BridgeConfig::default() }
}

#[test]
fn frames_leave_at_the_rate_of_their_link_to_the_picosecond() {
    let mut bridge = three(&lossy(None), GIGABIT);
    let count = 1_000;
    let frame = data(0, 1);
    let delivered =
        drive(&mut bridge, vec![vec![frame.clone(); count].into(), VecDeque::new(), VecDeque::new()]);
    assert_eq!(delivered.len(), count);
    // Through two links, whose delays add up; the second is busy while the first carries the next frame.
    let each = Span::from_nanos((frame.len() as u64 + 4 + 20) * 8);
    let last = START + each * (count as u64 + 1) + GIGABIT.delay * 2;
    assert_eq!(delivered.last().map(|(port, _, at)| (*port, *at)), Some((1, last)));
}

#[test]
fn a_frame_to_a_station_that_has_been_heard_goes_to_its_port_alone_and_others_to_all() {
    let mut bridge = Bridge::new(&BridgeConfig::default(), &[GIGABIT; 4]).unwrap();
    let ports = |delivered: Delivered| delivered.into_iter().map(|(port, ..)| port).collect::<Vec<_>>();
    let alone = |port: usize, frame: Vec<u8>| {
        let mut hosts = vec![VecDeque::new(); 4];
        hosts[port].push_back(frame);
        hosts
    };
    assert_eq!(ports(drive(&mut bridge, alone(0, data(0, 2)))), [1, 2, 3], "nobody has been heard");
    assert_eq!(ports(drive(&mut bridge, alone(2, data(2, 0)))), [0]);
    assert_eq!(ports(drive(&mut bridge, alone(0, data(0, 2)))), [2]);
    assert_eq!(ports(drive(&mut bridge, alone(0, data(1, 0)))), [0; 0], "they are at the same port");
    let mut broadcast = data(0, 1);
    broadcast[..6].fill(0xff);
    assert_eq!(ports(drive(&mut bridge, alone(3, broadcast.clone()))), [0, 1, 2]);
    broadcast[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    assert_eq!(ports(drive(&mut bridge, alone(3, broadcast))), [0; 0], "LLDP ends at the next bridge");
    assert_eq!(bridge.frames.held(), 0);
}

#[test]
fn a_frame_that_is_lost_on_its_way_teaches_the_switch_nothing() {
    let config = BridgeConfig { loss: Ratio::ONE, ..BridgeConfig::default() };
    let mut bridge = Bridge::new(&config, &[GIGABIT; 3]).unwrap();
    assert_eq!(drive(&mut bridge, vec![vec![data(0, 1)].into(), VecDeque::new(), VecDeque::new()]), []);
    assert_eq!(bridge.report(START).ports[0].lost, 1);
    assert_eq!(bridge.stations.port(station(0), START + Span::from_millis(1)), None);
}

#[test]
fn packets_behind_a_queue_are_marked_and_stay_right() {
    for v6 in [false, true] {
        let ecn = Red { kmin: Bytes(20_000), kmax: Bytes(20_000), pmax: Ratio::ONE };
        let mut bridge = three(&lossy(Some(ecn)), GIGABIT);
        let frame = |from| packet(Opcode::WRITE_MIDDLE, from, 2, 4096, v6);
        let hosts = vec![vec![frame(0); 100].into(), vec![frame(1); 100].into(), VecDeque::new()];
        let delivered = drive(&mut bridge, hosts);
        assert_eq!(delivered.len(), 200);
        // It parses, so checksum and ICRC are right, marked or not.
        let ecn = |frame: &Vec<u8>| Packet::parse(frame, |_| Layout::Standard).unwrap().envelope.ip.ecn();
        let marked = delivered.iter().filter(|(_, frame, _)| ecn(frame) == Ecn::Ce).count();
        assert_eq!(bridge.report(START).ports[2].marked, marked as u64);
        // A queue grows by a frame in two until 200 have come; beyond 20 KB of it all are marked.
        assert!((150..195).contains(&marked), "{marked}");
    }
}

#[test]
fn a_queue_is_told_in_packets_that_have_room_for_it_and_they_stay_right() {
    // Whether they have hardware time as well, which the switch does not know.
    for (v6, time) in [(false, false), (true, false), (true, true)] {
        let cc = Cc::new(time, true, 1).unwrap();
        let layout = Layout::Cc(cc);
        let mut ip = if v6 {
            Ip::v6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST)
        } else {
            Ip::v4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
        };
        match &mut ip {
            Ip::V4(ip) => ip.dscp = 23,
            Ip::V6(ip) => ip.dscp = 23,
        }
        let frame = |opcode, payload: &[u8]| {
            let mut header = Header::default();
            (header.opcode, header.payload) = (opcode, payload.len().try_into().unwrap());
            let ethernet = Ethernet { source: station(0), destination: station(2) };
            let envelope = Envelope { ethernet, vlan: None, ip, source_port: 4791 };
            let transport = Transport { header, layout, words: cc.empty() };
            let packet = Packet { envelope, transport, payload };
            let mut frame = vec![0; packet.len()];
            packet.emit(&mut frame).unwrap();
            // Sockets have the kernel put the checksum there that RoCEv2 leaves out.
            let udp = if v6 { 14 + 40 } else { 14 + 20 };
            let sum = checksum(&frame, v6, udp);
            frame[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
            frame
        };
        let (data, ack) = (frame(Opcode::WRITE_MIDDLE, &[7; 1024]), frame(Opcode::ACKNOWLEDGE, &[]));
        let telemetry = Some(Telemetry { dscp: 23, number: 5 });
        let config = BridgeConfig { telemetry, ..lossy(None) };
        let slow = Link { rate: BitsPerSec::from_mbps(100), ..GIGABIT };
        let mut bridge = Bridge::new(&config, &[GIGABIT, GIGABIT, slow]).unwrap();
        bridge.stations.learn(station(2), 2, START);
        let hosts = vec![
            [vec![data.clone(); 3], vec![ack.clone()]].concat().into(),
            VecDeque::new(),
            VecDeque::new(),
        ];
        let delivered = drive(&mut bridge, hosts);
        let told: Vec<_> = delivered
            .iter()
            .map(|(_, frame, _)| {
                let udp = if v6 { 14 + 40 } else { 14 + 20 };
                assert_eq!(checksum(frame, v6, udp), u16::from_be_bytes([frame[udp + 6], frame[udp + 7]]));
                cc.int(&Packet::parse(frame, |_| layout).unwrap().transport.words).unwrap()
            })
            .collect();
        assert_eq!(
            told.iter().map(IntStack::crossed).collect::<Vec<_>>(),
            [1, 1, 1, 0],
            "ACKs are left alone"
        );
        let hops: Vec<_> = told.iter().flat_map(|stack| stack.hops().to_vec()).collect();
        let on_wire = u64::from(counted(&data) + WIRE_OVERHEAD);
        assert_eq!(
            hops.iter().map(|hop| u64::from(hop.bytes_128)).collect::<Vec<_>>(),
            [0, on_wire / 128, 2 * on_wire / 128]
        );
        // When the first has left, two wait and the acknowledgement; a frame takes 10 times as long as it came in.
        let waiting = |frames: u32| (frames * counted(&data) + counted(&ack)) / 80;
        assert_eq!([hops[0].queue_80, hops[1].queue_80], [0, waiting(1)]);
        let span = slow.rate.time_for(on_wire);
        assert_eq!(u64::from(hops[2].time_ns - hops[1].time_ns), span.as_ps() / 1000);
        // Those of RDMA-CM, and of unreliable connections, have no room, whatever their code point.
        for opcode in [Opcode::UD_SEND_ONLY, Opcode::UC_WRITE_MIDDLE] {
            let mut header = Header::default();
            (header.opcode, header.payload) = (opcode, 256);
            let ethernet = Ethernet { source: station(0), destination: station(2) };
            let envelope = Envelope { ethernet, vlan: None, ip, source_port: 4791 };
            let packet = Packet { envelope, transport: Transport::standard(header), payload: &[7; 256] };
            let mut frame = vec![0; packet.len()];
            packet.emit(&mut frame).unwrap();
            let mut bridge = three(&config, GIGABIT);
            let delivered =
                drive(&mut bridge, vec![vec![frame.clone()].into(), VecDeque::new(), VecDeque::new()]);
            assert!(delivered[0].1 == frame, "{opcode:?}");
        }
        // Of another code point, or of a switch that is not asked, they are left alone.
        let others =
            [BridgeConfig { telemetry: Some(Telemetry { dscp: 22, number: 5 }), ..lossy(None) }, lossy(None)];
        for config in others {
            let mut bridge = three(&config, GIGABIT);
            let delivered =
                drive(&mut bridge, vec![vec![data.clone()].into(), VecDeque::new(), VecDeque::new()]);
            assert!(delivered[0].1 == data);
        }
    }
}

/// The UDP checksum of a frame whose UDP header begins at `udp` (RFC 768, RFC 8200 §8.1).
fn checksum(frame: &[u8], v6: bool, udp: usize) -> u16 {
    let length = u16::from_be_bytes([frame[udp + 4], frame[udp + 5]]);
    let addresses = if v6 { &frame[22..54] } else { &frame[26..34] };
    let mut octets =
        [addresses, &[0, 17], &length.to_be_bytes(), &frame[udp..udp + usize::from(length)]].concat();
    let at = addresses.len() + 4 + 6;
    octets[at..at + 2].fill(0);
    octets.extend(vec![0; octets.len() % 2]);
    let sum =
        octets.chunks(2).fold(0_u64, |sum, pair| sum + u64::from(u16::from_be_bytes([pair[0], pair[1]])));
    let folded = (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16));
    !u16::try_from(folded).unwrap()
}

#[test]
fn a_lossless_priority_pauses_its_senders_and_no_other_priority_waits_for_it() {
    for pause_frames in [false, true] {
        let switch = SwitchConfig { buffer: Bytes(200_000), ecn: None, ..SwitchConfig::default() };
        let config = BridgeConfig { switch, ..BridgeConfig::default() };
        let mut bridge = three(&config, Link { pause_frames, ..GIGABIT });
        let cnp = packet(Opcode::CNP, 0, 2, 0, false);
        let mut first: VecDeque<_> = vec![data(0, 2); 500].into();
        for place in (0..500).step_by(10) {
            first.insert(place, cnp.clone());
        }
        let hosts = vec![first, vec![data(1, 2); 500].into(), VecDeque::new()];
        let delivered = drive(&mut bridge, hosts);
        let report = bridge.report(START);
        let frames = delivered.iter().filter(|(port, ..)| *port == 2).count();
        assert_eq!((frames, report.ports[2].dropped), (1_050, 0), "nothing is lost");
        assert!(report.ports[0].pauses > 5 && report.ports[1].pauses > 5, "{report:?}");
        assert!(report.ports[0].paused > Span::from_millis(5), "{report:?}");
        let to_first = delivered.iter().filter(|(port, ..)| *port == 0);
        let asked = to_first.map(|(_, frame, _)| Pause::parse(frame).unwrap());
        let asked = asked.map(|pause| (pause.classes, pause.quanta[3]));
        let asked: Vec<_> = asked.collect();
        if pause_frames {
            assert_eq!(asked.iter().filter(|pause| **pause == (8, 0)).count() as u64, report.ports[0].pauses);
            assert!(
                asked.iter().filter(|pause| **pause == (8, QUANTA)).count() as u64 >= report.ports[0].pauses
            );
        } else {
            assert_eq!(asked, [], "its NIC is simply told");
        }
        // All CNPs are through while data still come for a long time: they go before data at the NIC and at the switch.
        let end = delivered.last().map(|(.., at)| *at).unwrap();
        let cnps = delivered.iter().filter(|(_, frame, _)| frame.len() == cnp.len());
        let last = cnps.map(|(.., at)| *at).max().unwrap();
        assert!(last.since(START) < Span::from_ps(end.since(START).as_ps() / 100 * 98), "{last} {end}");
        assert_eq!(bridge.frames.held(), 0);
    }
}

/// A packet of this class selector, between the stations of two ports.
fn of_class(class: u8, from: u8, to: u8) -> Vec<u8> {
    let mut frame = data(from, to);
    frame[15] = class << 5;
    frame
}

#[test]
fn priorities_share_a_nic_in_turns_and_those_without_a_share_go_first() {
    let shares = Shares::new([40, 0, 0, 60, 0, 0, 0, 0]).unwrap();
    let config = BridgeConfig { nic_ets: Some(shares), classes: None, nic_buffer: u64::MAX, ..lossy(None) };
    let mut bridge = three(&config, GIGABIT);
    let mut frames: VecDeque<Vec<u8>> = vec![of_class(0, 0, 1); 500].into();
    frames.extend(vec![of_class(3, 0, 1); 500]);
    frames.extend(vec![of_class(6, 0, 1); 100]);
    let delivered = drive(&mut bridge, vec![frames, VecDeque::new(), VecDeque::new()]);
    let classes: Vec<u8> = delivered.iter().map(|(_, frame, _)| frame[15] >> 5).collect();
    assert_eq!(classes.len(), 1_100);
    // The first finds the link idle, before the others are there.
    assert_eq!((classes[0], &classes[1..101]), (0, &[6; 100][..]));
    for sent in (100..800).step_by(50) {
        let of_three = classes[101..101 + sent].iter().filter(|class| **class == 3).count();
        assert!((of_three * 10).abs_diff(sent * 6) <= 20, "{of_three} of {sent}");
    }
    // A priority that is paused leaves all to the other.
    let mut bridge = three(&config, GIGABIT);
    bridge.pause(0, 3, true, START);
    let both = [vec![of_class(3, 0, 1); 10], vec![of_class(0, 0, 1); 10]].concat();
    let delivered = drive(&mut bridge, vec![both.into(), VecDeque::new(), VecDeque::new()]);
    assert_eq!(delivered.len(), 10);
    assert!(delivered.iter().all(|(_, frame, _)| frame[15] == 0));
    bridge.pause(0, 3, false, START + Span::from_millis(1));
    assert_eq!(drive(&mut bridge, vec![VecDeque::new(); 3]).len(), 10);
}

#[test]
fn a_pause_that_lasts_is_asked_for_again_before_its_time_is_over() {
    // The device at its end may be faster than the link that is emulated, and then its bits last less long.
    for speed in [GIGABIT.rate, BitsPerSec::from_gbps(25), BitsPerSec(1_000)] {
        let switch = SwitchConfig { buffer: Bytes(200_000), ecn: None, ..SwitchConfig::default() };
        let config = BridgeConfig { switch, ..BridgeConfig::default() };
        let slow = Link { rate: BitsPerSec(1_000_000), ..GIGABIT };
        let fast = Link { pause_frames: true, ..GIGABIT };
        let mut bridge = Bridge::new(&config, &[fast, fast, slow]).unwrap();
        bridge.set_speed(0, speed);
        (0..3).for_each(|port| bridge.stations.learn(station(port), port.into(), START));
        let hosts = vec![vec![data(0, 2); 100].into(), VecDeque::new(), VecDeque::new()];
        let delivered = drive(&mut bridge, hosts);
        let lasts = Pause::span(QUANTA, speed.max(GIGABIT.rate));
        let (mut until, mut renewed) = (None, 0);
        for (.., frame, at) in delivered.iter().filter(|(port, ..)| *port == 0) {
            let quanta = Pause::parse(frame).unwrap().quanta[3];
            assert!(until.is_none_or(|until| *at < until), "the host sends at {until:?}, before {at}");
            renewed += u32::from(quanta > 0 && until.is_some());
            until = (quanta > 0).then(|| *at + lasts);
        }
        // A frame takes 33 ms of the slow link, and what is paused waits for some of them.
        assert!(renewed > 3, "{renewed}");
        assert_eq!(delivered.iter().filter(|(port, ..)| *port == 2).count(), 100);
    }
}

#[test]
fn roce_packets_have_the_priority_of_their_kind_and_others_that_of_their_tag_or_dscp() {
    let classes = Some(Classes { data: 3, ack: 5, cnp: 6 });
    let of = |frame: &[u8], classes| Told::of(frame, classes).unwrap().priority;
    let ack = packet(Opcode::ACKNOWLEDGE, 0, 1, 0, false);
    let cnp = packet(Opcode::CNP, 0, 1, 0, true);
    assert_eq!([of(&data(0, 1), classes), of(&ack, classes), of(&cnp, classes)], [3, 5, 6]);
    assert_eq!([of(&data(0, 1), None), of(&ack, None), of(&cnp, None)], [0, 0, 0]);
    let mut of_class = data(0, 1);
    of_class[15] = 26 << 2;
    assert_eq!(of(&of_class, None), 3, "DSCP 26 is class selector 3");
    let mut other = of_class.clone();
    (other[15], other[36]) = (16 << 2, 0);
    assert_eq!(of(&other, classes), 2, "another UDP port");
    other[15] = 0;
    assert_eq!([of(&other, classes), of(&other, None)], [3, 0], "it says nothing");
    let mut parsed = Packet::parse(&cnp, |_| Layout::Standard).unwrap();
    parsed.envelope.vlan = Some(Vlan { priority: 4, drop_eligible: false, id: 9 });
    let mut tagged = vec![0; parsed.len()];
    parsed.emit(&mut tagged).unwrap();
    assert_eq!([of(&tagged, None), of(&tagged, classes)], [4, 6]);
    (tagged[14], tagged[18], tagged[19]) = (0, 0x6a, 0);
    assert_eq!(of(&tagged, None), 5, "a tag of priority 0 says nothing, and DSCP 40 does");
    assert_eq!(Told::of(&cnp[..13], classes), None);
}

#[test]
fn what_makes_no_switch_is_refused() {
    let config = BridgeConfig::default();
    let error = |config: &BridgeConfig, links: &[Link]| Bridge::new(config, links).unwrap_err().to_string();
    assert_eq!(error(&config, &[GIGABIT]), "a switch has 2 to 64 ports, and not 1");
    let dead = Link { rate: BitsPerSec(0), ..GIGABIT };
    assert_eq!(error(&config, &[GIGABIT, dead]), "port 1: a link without a rate carries nothing");
    let small = SwitchConfig { buffer: Bytes(10_000), pfc: Some(Pfc::default()), ..SwitchConfig::default() };
    assert!(error(&BridgeConfig { switch: small, ..config }, &[GIGABIT; 2]).contains("headroom and reserve"));
}

proptest! {
    #[test]
    fn frames_that_are_read_late_fare_as_those_that_are_read_when_they_come(
        frames in prop::collection::vec((0_u8..3, 0_u8..4, 0_u16..4096, 0_u64..40), 1..100),
        every in 1_usize..20,
    ) {
        let config = lossy(Some(Red { kmin: Bytes(20_000), kmax: Bytes(90_000), pmax: Ratio::ONE }));
        let (mut at, mut handed) = (START, Vec::new());
        for (from, to, payload, gap) in frames {
            at += Span::from_micros(gap);
            handed.push((u32::from(from), packet(Opcode::WRITE_MIDDLE, from, to, payload, false), at));
        }
        let run = |every: usize| {
            let (mut bridge, mut delivered) = (three(&config, GIGABIT), Delivered::new());
            for some in handed.chunks(every) {
                // Ports are read one after the other, each for all that has come.
                for port in 0..3 {
                    some.iter().filter(|one| one.0 == port).for_each(|(port, frame, at)| bridge.send(*port, frame, *at));
                }
                let (.., last) = some[some.len() - 1];
                bridge.advance(last, |port, frame, at| delivered.push((port, frame.to_vec(), at)));
            }
            bridge.advance(Instant::NEVER, |port, frame, at| delivered.push((port, frame.to_vec(), at)));
            (0..3).map(|to| delivered.iter().filter(|one| one.0 == to).map(|one| one.2).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(1).concat().len(), run(every).concat().len());
        // Who comes first at one and the same instant is open.
        if handed.windows(2).all(|pair| pair[0].2 < pair[1].2) {
            prop_assert_eq!(run(1), run(every));
        }
    }

    #[test]
    fn each_frame_is_delivered_dropped_lost_or_refused(
        frames in prop::collection::vec((0_u8..3, 0_u8..4, 0_u16..4096, 0_u8..4), 0..200),
        loss in 0_u32..3,
        buffer in prop::sample::select(vec![20_000_u64, 60_000, 1_000_000]),
        pfc in any::<bool>(),
    ) {
        let pfc = pfc.then(Pfc::default).filter(|_| buffer > 60_000);
        let switch = SwitchConfig { buffer: Bytes(buffer), pfc, ..SwitchConfig::default() };
        let config = BridgeConfig { switch, loss: Ratio::new(loss, 10), ..BridgeConfig::default() };
        let mut bridge = three(&config, GIGABIT);
        let mut hosts = vec![VecDeque::new(); 3];
        let (mut sent, mut copies) = (0, 0);
        for (from, to, payload, kind) in frames {
            let opcode = [Opcode::WRITE_MIDDLE, Opcode::CNP, Opcode::WRITE_MIDDLE, Opcode::WRITE_ONLY][usize::from(kind)];
            let payload = if opcode == Opcode::CNP { 0 } else { payload };
            let frame = if kind == 2 { vec![1; 13] } else { packet(opcode, from, to, payload, false) };
            let copies_of = if kind == 2 || from == to { 0 } else if to == 3 { 2 } else { 1 };
            sent += 1;
            copies += copies_of;
            hosts[usize::from(from)].push_back(frame);
        }
        let delivered = drive(&mut bridge, hosts);
        let report = bridge.report(START);
        let sum = |of: fn(&Counts) -> u64| report.ports.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|port| port.received) + sum(|port| port.refused), sent);
        prop_assert_eq!(sum(|port| port.sent), delivered.len() as u64);
        if loss == 0 {
            prop_assert_eq!(sum(|port| port.sent) + sum(|port| port.dropped), copies);
        }
        prop_assert_eq!(bridge.frames.held(), 0);
        prop_assert_eq!(bridge.switch.used(), 0);
        if bridge.switch.lossless() != 0 {
            prop_assert_eq!(sum(|port| port.dropped), 0);
        }
    }
}
