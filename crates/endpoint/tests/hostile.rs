//! What the network may bring, in bulk: packets that were changed on their way, packets that someone made up, both also from a
//! recording of Linux's Soft-RoCE, a path that loses, repeats and overtakes for as long as one likes, and a peer that is gone.
//!
//! `ROCI_HOSTILE_PACKETS` and `ROCI_SOAK_SECONDS` make it longer: a million packets, an hour.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use common::{End, Pair, SIZE, connect, pattern};
use roci_endpoint::{
    Access, Backend, Device, DeviceConfig, Faults, MemoryRegion, MemoryWire, Mtu, Psn, QpState, RecvWr,
    Refusal, SendWr, Status,
};
use roci_units::Random;
use roci_wire::{AtomicEth, Flags, Header, Ip, Opcode, Reth, Transport};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, SystemTime};

fn asked(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// Over IPv6, where all 32 bits of the ICRC are checked.
fn over_v6(wire: &MemoryWire) -> (Device, Device) {
    let open = |address: &str| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..common::by_caller() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    (open("fd00::1"), open("fd00::2"))
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(address) => address.to_ipv6_mapped(),
    }
}

/// A packet with its ICRC; `None` where the header can be none.
fn sealed(from: &Device, to: &Device, mut header: Header, payload: &[u8]) -> Option<Vec<u8>> {
    header.payload = payload.len() as u16;
    let transport = Transport::standard(header);
    let mut octets = vec![0; transport.len()];
    let ip = Ip::v6(v6(from.address()), v6(to.address()));
    transport.emit_with(&ip, 4791, &mut octets, |place| place.copy_from_slice(payload)).ok()?;
    Some(octets)
}

/// What was recorded between this endpoint and Linux's Soft-RoCE, from BTH to ICRC; `captures/README.md` says what it holds.
fn recorded() -> Vec<Vec<u8>> {
    let file = include_bytes!("captures/soft-roce.pcap");
    let word = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_c3d4, 1), "a pcap file of Ethernet frames");
    let (mut at, mut packets) = (24, Vec::new());
    while at < file.len() {
        let frame = &file[at + 16..][..word(at + 8) as usize];
        at += 16 + frame.len();
        let (ip, udp) = match frame[12..14] {
            [0x08, 0x00] => (&frame[14..], 14 + 4 * usize::from(frame[14] & 15)),
            _ => (&frame[14..], 14 + 40),
        };
        assert_eq!(frame[udp + 2..udp + 4], 4791u16.to_be_bytes(), "{ip:?}");
        let length = usize::from(u16::from_be_bytes([frame[udp + 4], frame[udp + 5]]));
        packets.push(frame[udp + 8..udp + length].to_vec());
    }
    packets
}

/// Gives a packet the ICRC that it has to have from there to there, whatever its headers say.
fn seal(from: &Device, to: &Device, octets: &mut [u8]) {
    let covered = octets.len() - 4;
    let length = (8 + octets.len() as u16).to_be_bytes();
    let mut datagram = vec![0x60, 0, 0, 0, length[0], length[1], 17, 64];
    datagram.extend(v6(from.address()).octets());
    datagram.extend(v6(to.address()).octets());
    for part in [&4791u16.to_be_bytes()[..], &4791u16.to_be_bytes(), &length, &[0, 0], &octets[..covered]] {
        datagram.extend(part);
    }
    let icrc = roci_wire::icrc(&datagram, roci_wire::IpVersion::V6, 0).unwrap();
    octets[covered..].copy_from_slice(&icrc.to_le_bytes());
}

/// Addresses a packet to a queue pair.
fn address(octets: &mut [u8], end: &End) {
    octets[5..8].copy_from_slice(&end.qp.qp_num().get().to_be_bytes()[1..]);
}

/// Some header that a request of a to b may have.
fn header(random: &mut Random, b: &End, psn: Psn, any: bool) -> Header {
    let known = [
        Opcode::SEND_FIRST,
        Opcode::SEND_ONLY,
        Opcode::WRITE_FIRST,
        Opcode::WRITE_ONLY,
        Opcode::READ_REQUEST,
        Opcode::FETCH_ADD,
        Opcode::COMPARE_SWAP,
        Opcode::ACKNOWLEDGE,
    ];
    let opcode = if any { Opcode(random.below(256) as u8) } else { known[random.below(8) as usize] };
    let mut header = Header::new(opcode, b.qp.qp_num(), psn);
    header.flags = Flags::ACK_REQUEST;
    let (va, rkey) = (b.own.addr() + random.below(1 << 21), b.own.rkey() ^ (random.below(4) as u32) << 8);
    let length = random.below(1 << 13) as u32;
    // Which of them the opcode has is the header's to know.
    if random.below(2) == 0 {
        header.set_reth(Reth { va, rkey, length });
    } else {
        header.set_atomic(AtomicEth { va: va & !7, rkey, swap_or_add: random.next_u64(), compare: 0 });
    }
    header
}

/// Lets the device go on until so many packets have arrived.
fn arrive(device: &Device, packets: u64) {
    let until = now() + common::WAIT;
    while device.counters().received < packets {
        assert!(now() < until, "{packets} packets arrive: {:?}", device.counters());
        device.progress();
    }
}

#[test]
fn packets_that_were_changed_on_their_way_change_nothing() {
    let (wire, mut random) = (MemoryWire::new(1), Random::new(7, 0));
    let (a, b) = over_v6(&wire);
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
    let before = b.qp.query().unwrap();
    let total = asked("ROCI_HOSTILE_PACKETS", 50_000);
    let mut sent = 0;
    while sent < total {
        let mut write = header(&mut random, &b, a.qp.info().psn, false);
        write.set_reth(Reth { va: b.open.addr(), rkey: b.open.rkey(), length: 64 });
        let payload = pattern(sent, random.below(65) as usize);
        let Some(mut octets) = sealed(&a.device, &b.device, write, &payload) else { continue };
        // One octet is changed for certain, and not the one that switches may change; others may follow.
        let mut at = random.below(octets.len() as u64) as usize;
        at = if at == 4 { 5 } else { at };
        octets[at] ^= 1 + random.below(255) as u8;
        for _ in 0..random.below(4) {
            let other = random.below(octets.len() as u64) as usize;
            if other != at {
                octets[other] ^= random.below(256) as u8;
            }
        }
        match random.below(8) {
            0 => octets.truncate(random.below(octets.len() as u64) as usize),
            1 => octets.extend(pattern(sent, random.below(64) as usize + 1)),
            _ => {}
        }
        wire.inject(a.device.address(), b.device.address(), &octets);
        sent += 1;
        if sent % 64 == 0 || sent == total {
            b.device.progress();
        }
    }
    arrive(&b.device, total);
    let counted = b.device.counters();
    assert_eq!(counted.malformed + counted.corrupt + counted.stray, total, "{counted:?}");
    assert!(counted.corrupt > total / 2 && counted.malformed > 0 && counted.stray > 0, "{counted:?}");
    assert_eq!((counted.refused, counted.sent), (0, 0));
    let after = b.qp.query().unwrap();
    assert_eq!((after.state, after.receive_psn), (QpState::ReadyToSend, before.receive_psn));
    let mut memory = vec![1; SIZE];
    b.open.read(0, &mut memory).unwrap();
    assert!(memory.iter().all(|octet| *octet == 0));
    assert!(b.cq.poll().is_none());
}

#[test]
fn recorded_packets_that_were_changed_on_their_way_change_nothing() {
    let (wire, mut random) = (MemoryWire::new(11), Random::new(17, 0));
    let (a, b) = over_v6(&wire);
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
    let packets: Vec<Vec<u8>> = recorded()
        .into_iter()
        .map(|mut octets| {
            address(&mut octets, &b);
            seal(&a.device, &b.device, &mut octets);
            octets
        })
        .collect();
    let before = b.qp.query().unwrap();
    let total = asked("ROCI_HOSTILE_PACKETS", 50_000);
    for sent in 1..=total {
        let mut octets = packets[random.below(packets.len() as u64) as usize].clone();
        let mut at = random.below(octets.len() as u64) as usize;
        at = if at == 4 { 5 } else { at };
        octets[at] ^= 1 + random.below(255) as u8;
        match random.below(8) {
            0 => octets.truncate(random.below(octets.len() as u64) as usize),
            1 => octets.extend(pattern(sent, random.below(64) as usize + 1)),
            _ => {}
        }
        wire.inject(a.device.address(), b.device.address(), &octets);
        if sent % 64 == 0 || sent == total {
            b.device.progress();
        }
    }
    arrive(&b.device, total);
    let counted = b.device.counters();
    assert_eq!(counted.malformed + counted.corrupt + counted.stray, total, "{counted:?}");
    assert!(counted.corrupt > total / 2 && counted.malformed > 0 && counted.stray > 0, "{counted:?}");
    assert_eq!((counted.refused, counted.sent), (0, 0));
    let after = b.qp.query().unwrap();
    assert_eq!((after.state, after.receive_psn), (QpState::ReadyToSend, before.receive_psn));
    // As they were recorded each gets to the transport, whose judgement of PSNs and keys it is then.
    for octets in &packets {
        wire.inject(a.device.address(), b.device.address(), octets);
    }
    arrive(&b.device, total + packets.len() as u64);
    let then = b.device.counters();
    let judged = |it: roci_endpoint::IoCounters| (it.malformed, it.corrupt, it.stray);
    assert!(judged(then) == judged(counted) && then.refused > packets.len() as u64 * 9 / 10, "{then:?}");
    let mut memory = vec![1; SIZE];
    b.open.read(0, &mut memory).unwrap();
    assert!(memory.iter().all(|octet| *octet == 0) && b.cq.poll().is_none());
}

#[test]
fn recorded_packets_that_someone_changed_and_sealed_reach_no_memory_without_rights() {
    let (wire, mut random) = (MemoryWire::new(12), Random::new(18, 0));
    let (a, b) = over_v6(&wire);
    let foreign = b.alloc_pd().reg_mr(vec![0x5a; 4096], Access::ALL).unwrap();
    let packets = recorded();
    for round in 0..asked("ROCI_HOSTILE_PACKETS", 50_000) / 500 {
        let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
        b.own.write(0, &[0xa5; 4096]).unwrap();
        let before = b.device.counters();
        for _ in 0..500 {
            let mut octets = packets[random.below(packets.len() as u64) as usize].clone();
            // The next PSN, or one near to it; often with a place of ours behind it, where a RETH or an atomic's header has it.
            let psn = b.qp.query().unwrap().receive_psn.plus(random.below(3) as u32).get();
            octets[9..12].copy_from_slice(&psn.to_be_bytes()[1..]);
            if octets.len() >= 32 && random.below(2) == 0 {
                let region = if random.below(2) == 0 { &b.own } else { &foreign };
                let va = region.addr() + random.below(64) * 8;
                octets[12..20].copy_from_slice(&va.to_be_bytes());
                octets[20..24].copy_from_slice(&region.rkey().to_be_bytes());
            }
            let end = octets.len() as u64 - 4;
            for _ in 0..random.below(4) {
                octets[random.below(end) as usize] ^= 1 << random.below(8);
            }
            address(&mut octets, &b);
            seal(&a.device, &b.device, &mut octets);
            wire.inject(a.device.address(), b.device.address(), &octets);
            b.device.progress();
        }
        arrive(&b.device, before.received + 500);
        let counted = b.device.counters();
        assert_eq!((counted.corrupt, counted.stray), (before.corrupt, before.stray), "round {round}");
        assert!(counted.refused > before.refused, "round {round}: {counted:?}");
        for (region, octet) in [(&b.own, 0xa5), (&foreign, 0x5a)] {
            let mut memory = [0; 4096];
            region.read(0, &mut memory).unwrap();
            assert!(memory.iter().all(|it| *it == octet), "round {round}");
        }
    }
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
    assert!(is_alive(&a, &b), "another connection is none the worse");
}

#[test]
fn packets_that_someone_made_up_reach_no_memory_without_rights() {
    let (wire, mut random) = (MemoryWire::new(2), Random::new(8, 0));
    let (a, b) = over_v6(&wire);
    let pd = b.alloc_pd();
    // Of another protection domain than the queue pair's, with all rights.
    let foreign = pd.reg_mr(vec![0x5a; 4096], Access::ALL).unwrap();
    let total = asked("ROCI_HOSTILE_PACKETS", 50_000) / 500;
    let mut failed = 0;
    for round in 0..total {
        let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
        b.own.write(0, &[0xa5; 4096]).unwrap();
        let received = b.device.counters().received;
        let mut injected = 0;
        for number in 0..500u64 {
            let psn = a.qp.info().psn.plus(random.below(4) as u32);
            let mut made_up = header(&mut random, &b, psn, number % 2 == 0);
            if number % 3 == 0 {
                made_up.set_reth(Reth { va: foreign.addr(), rkey: foreign.rkey(), length: 8 });
            }
            let payload = pattern(number, random.below(32) as usize);
            if let Some(octets) = sealed(&a.device, &b.device, made_up, &payload) {
                wire.inject(a.device.address(), b.device.address(), &octets);
                injected += 1;
            }
        }
        arrive(&b.device, received + injected);
        let mut memory = [0; 4096];
        b.own.read(0, &mut memory).unwrap();
        assert!(memory.iter().all(|octet| *octet == 0xa5), "round {round}");
        foreign.read(0, &mut memory).unwrap();
        assert!(memory.iter().all(|octet| *octet == 0x5a), "round {round}");
        failed += u32::from(b.qp.state() == QpState::Error);
    }
    assert!(b.refused(Refusal::Rejected) > 0 && failed > 0, "a wrong key ends its connection, and no other");
    // Of which there is proof.
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024));
    a.qp.post_send(SendWr::write_inline(b"alive", b.open.remote())).unwrap();
    let until = now() + common::WAIT;
    let done = loop {
        b.device.progress();
        if let Some(done) = a.cq.poll() {
            break done;
        }
        assert!(now() < until);
    };
    assert!(done.is_ok(), "{done:?}");
}

/// Whether `a` still reaches `b`.
fn is_alive(a: &End, b: &End) -> bool {
    if a.qp.post_send(SendWr::write_inline(b"alive", b.open.remote())).is_err() {
        return false;
    }
    let until = now() + common::WAIT;
    loop {
        a.device.progress();
        b.device.progress();
        if let Some(done) = a.cq.poll() {
            return done.is_ok();
        }
        assert!(now() < until, "a request ends");
    }
}

#[test]
fn each_forgery_is_refused_for_its_own_reason_and_touches_nothing() {
    // What it claims to be, by which address, how far from the PSN that is expected next; why it is refused, and whether the
    // connection goes on. Who knows its addresses, queue pairs and the very PSN can end it: IBTA has a request without
    // rights end its connection (Vol 1 §9.9.3), and nothing tells it from the peer's own.
    enum To {
        Open,
        WrongKey,
        Beyond,
        NoRights,
        OtherDomain,
    }
    const A: &str = "fd00::1";
    const STRANGER: &str = "fd00::3";
    let write = Opcode::WRITE_ONLY;
    let table = [
        ("a wrong key", A, write, To::WrongKey, 0i32, Refusal::Rejected, false),
        ("an address out of bounds", A, write, To::Beyond, 0, Refusal::Rejected, false),
        ("no rights", A, write, To::NoRights, 0, Refusal::Rejected, false),
        ("another protection domain", A, write, To::OtherDomain, 0, Refusal::Rejected, false),
        ("a wrong key, and a PSN that was guessed", A, write, To::WrongKey, 99, Refusal::OutOfSequence, true),
        ("a stale WRITE", A, write, To::Open, -2, Refusal::Duplicate, true),
        ("a replayed FETCH-ADD", A, Opcode::FETCH_ADD, To::Open, -1, Refusal::Duplicate, true),
        ("a WRITE before its turn", A, write, To::Open, 1, Refusal::OutOfSequence, true),
        ("a stranger's WRITE", STRANGER, write, To::Open, 0, Refusal::WrongPeer, true),
        ("a stranger's FETCH-ADD", STRANGER, Opcode::FETCH_ADD, To::Open, 0, Refusal::WrongPeer, true),
        ("a stranger's ACK", STRANGER, Opcode::ACKNOWLEDGE, To::Open, 0, Refusal::WrongPeer, true),
    ];
    let wire = MemoryWire::new(4);
    let (a, b) = over_v6(&wire);
    let domain = b.alloc_pd();
    let other = domain.reg_mr(vec![0x5a; 64], Access::ALL).unwrap();
    let Pair { a: c, b: d, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024).timeout(12));
    for (what, source, opcode, to, ahead, why, goes_on) in table {
        let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024).timeout(12));
        assert!(is_alive(&a, &b), "{what}");
        a.qp.post_send(SendWr::fetch_add(b.open.remote().plus(8), 1)).unwrap();
        let until = now() + common::WAIT;
        while a.cq.poll().is_none() {
            b.device.progress();
            assert!(now() < until, "{what}: the request before it ends");
        }
        let region = match to {
            To::NoRights => &b.own,
            To::OtherDomain => &other,
            _ => &b.open,
        };
        let rkey = region.rkey() ^ if matches!(to, To::WrongKey) { 0x100 } else { 0 };
        let va = region.addr() + if matches!(to, To::Beyond) { SIZE as u64 - 4 } else { 8 };
        let expected = b.qp.query().unwrap().receive_psn;
        let psn = expected.plus(100).minus((100 - ahead).unsigned_abs());
        let mut forged = Header::new(opcode, b.qp.qp_num(), psn);
        forged.flags = Flags::ACK_REQUEST;
        let mut payload = &[0xff; 8][..];
        match opcode {
            Opcode::FETCH_ADD => {
                forged.set_atomic(AtomicEth { va, rkey, swap_or_add: 7, compare: 0 });
                payload = &[];
            }
            Opcode::WRITE_ONLY => forged.set_reth(Reth { va, rkey, length: 8 }),
            _ => payload = &[],
        }
        forged.payload = payload.len() as u16;
        let transport = Transport::standard(forged);
        let mut octets = vec![0; transport.len()];
        let (from, here) = (source.parse().unwrap(), v6(b.device.address()));
        let fill = |place: &mut [u8]| place.copy_from_slice(payload);
        transport.emit_with(&Ip::v6(from, here), 4791, &mut octets, fill).unwrap();
        let memory = |region: &MemoryRegion| {
            let mut octets = vec![0; region.len()];
            region.read(0, &mut octets).unwrap();
            octets
        };
        let before = (memory(&b.open), memory(&b.own), memory(&other));
        let (refused, counted) = (b.device.refused(why), b.device.counters());
        wire.inject(from.into(), b.device.address(), &octets);
        arrive(&b.device, counted.received + 1);
        assert_eq!(b.device.refused(why), refused + 1, "{what}");
        assert!((memory(&b.open), memory(&b.own), memory(&other)) == before, "{what}: memory has changed");
        assert_eq!(b.qp.state() == QpState::ReadyToSend, goes_on, "{what}");
        assert_eq!(is_alive(&a, &b), goes_on, "{what}");
        assert!(is_alive(&c, &d), "{what}: another connection");
    }
}

#[test]
fn every_octet_arrives_once_however_long_the_path_misbehaves() {
    let wire = MemoryWire::new(3);
    let open = |address: &str| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (a, b) = (open("10.0.0.1"), open("10.0.0.2"));
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024).timeout(13));
    wire.set_faults(Faults { loss: 10, duplicate: 10, reorder: 10, ..Faults::default() });
    let mut random = Random::new(9, 0);
    let end = now() + Duration::from_secs(asked("ROCI_SOAK_SECONDS", 5));
    let mut rounds = 0;
    while now() < end {
        let length = 1 + random.below(200_000) as usize;
        let data = pattern(rounds, length);
        let mut out = a.own.buffer(0..length).unwrap();
        out.write(0, &data).unwrap();
        let out = out.freeze();
        b.qp.post_recv(RecvWr::new(b.own.buffer(0..length).unwrap())).unwrap();
        a.qp.post_send(SendWr::write(out.clone(), b.open.remote())).unwrap();
        a.qp.post_send(SendWr::send(out)).unwrap();
        let back = a.own.buffer(300_000..300_000 + length).unwrap();
        a.qp.post_send(SendWr::read(back, b.open.remote())).unwrap();
        a.qp.post_send(SendWr::fetch_add(b.open.remote().plus(SIZE as u64 - 8), 1)).unwrap();
        a.done();
        a.done();
        assert!(a.done().into_buffer().unwrap().to_vec() == data, "READ of round {rounds}");
        assert_eq!(a.done().original, rounds, "each atomic is carried out once");
        assert!(b.done().into_buffer().unwrap().to_vec() == data, "SEND of round {rounds}");
        let mut there = vec![0; length];
        b.open.read(0, &mut there).unwrap();
        assert!(there == data, "WRITE of round {rounds}");
        rounds += 1;
    }
    assert!(rounds > 0 && a.qp.counters().retransmitted > 0);
}

#[test]
fn a_peer_that_is_gone_in_the_middle_of_a_transfer_ends_it_within_the_retry_time() {
    let address: IpAddr = "127.0.0.61".parse().unwrap();
    let (a, b) = (Device::open(address).unwrap(), Device::open(address).unwrap());
    // Four times 134 ms, the last of which ends it: longer than a busy machine keeps the peer from answering.
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp.timeout(15).retry_cnt(3).window(16_384));
    let to = b.open.remote();
    let post = |round: usize| {
        let slice = a.own.slice(round * 16_384..(round + 1) * 16_384).unwrap();
        a.qp.post_send(SendWr::write(slice, to)).unwrap();
    };
    (0..63).for_each(post);
    a.done();
    let begin = now();
    drop(b);
    // A busy machine may let all of the others through before.
    post(63);
    let (mut done, mut first) = (1, None);
    while done < 64 {
        let completion = a.wait();
        done += 1;
        match (completion.is_ok(), first) {
            (true, None) => {}
            (true, Some(_)) => panic!("nothing succeeds after an error"),
            (false, None) => first = Some(completion.status),
            (false, Some(_)) => assert_eq!(completion.status, Status::WorkRequestFlushed),
        }
    }
    let took = now() - begin;
    assert_eq!(first, Some(Status::TransportRetryCounterExceeded));
    assert!(took > Duration::from_millis(400), "it tries again first: {took:?}");
    assert!(took < Duration::from_millis(537) + Duration::from_secs(5), "{took:?}");
    assert_eq!(a.qp.state(), QpState::Error);
    assert!(a.own.buffer(0..SIZE).is_ok(), "what was lent is back");
}
