//! Frames built by another implementation, octet for octet.
//!
//! `vectors.txt` was printed by `vectors.py`, which builds and seals them with scapy 2.8.0 (`scapy.contrib.roce`) and
//! computes each ICRC a second time with zlib.

use roci_wire::{
    Aeth, AtomicEth, Deth, Ecn, Ethernet, Flags, Ip, IpVersion, Layout, Mac, Opcode, Packet, PacketError,
    Reth, Vlan, frame_len, pattern,
};
use std::collections::BTreeMap;

fn frames() -> BTreeMap<&'static str, Vec<u8>> {
    let digits =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
    let lines = include_str!("vectors.txt").lines();
    let pairs = lines.map(|line| line.split_once(' ').expect("a name and a frame"));
    pairs.map(|(name, hex)| (name, Result::<_, _>::expect(digits(hex), "hexadecimal"))).collect()
}

fn parse(frame: &[u8]) -> Result<Packet<'_>, PacketError> {
    Packet::parse(frame, |_| Layout::Standard)
}

/// The frame of `name` in both versions of IP, parsed.
fn both<'a>(frames: &'a BTreeMap<&'static str, Vec<u8>>, name: &str) -> [Packet<'a>; 2] {
    ["v4", "v6"].map(|version| parse(&frames[format!("{version}-{name}").as_str()]).expect(name))
}

#[test]
fn every_frame_parses_and_is_emitted_octet_for_octet() {
    let frames = frames();
    assert_eq!(frames.len(), 49);
    for (name, frame) in &frames {
        let packet = parse(frame).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut buffer = [0xaa; 4300];
        let len = packet.emit(&mut buffer).expect(name);
        let (emitted, padding) = buffer[..len].split_at(frame.len());
        assert_eq!(emitted, frame, "{name}");
        assert!(padding.iter().all(|&octet| octet == 0), "{name}");
        if packet.envelope.vlan.is_none() {
            let header = packet.transport.header;
            let version = packet.envelope.ip.version();
            let charged = frame_len(header.opcode, Layout::Standard, version, header.payload);
            assert_eq!(charged as usize, len + 4, "{name}");
        }
    }
}

#[test]
fn every_flipped_bit_that_the_icrc_covers_is_noticed() {
    for (name, frame) in frames() {
        // Ethernet and what routers rewrite are not covered; of those, only a wrong IPv4 checksum is noticed.
        let link = if name.contains("VLAN") { 18 } else { 14 };
        let covered = link + if name.starts_with("v4") { 12 } else { 8 };
        for at in (covered..frame.len().min(200)).chain(frame.len() - 4..frame.len()) {
            let mut frame = frame.clone();
            frame[at] ^= 0x10;
            let udp_checksum = link + if name.starts_with("v4") { 20 } else { 40 } + 6;
            if (udp_checksum..udp_checksum + 2).contains(&at) || at == udp_checksum + 2 + 4 {
                assert!(parse(&frame).is_ok(), "{name}: octet {at} is not covered");
            } else {
                assert!(parse(&frame).is_err(), "{name}: octet {at} went unnoticed");
            }
        }
    }
}

#[test]
fn what_routers_rewrite_does_not_disturb_the_icrc() {
    let frames = frames();
    let mut v6 = frames["v6-CNP"].clone();
    v6[14] |= 0x0f;
    v6[15] = 0xff;
    v6[21] = 3;
    assert_eq!(parse(&v6).map(|packet| packet.envelope.ip.ecn()), Ok(Ecn::Ce));
    let mut v4 = frames["v4-CNP"].clone();
    v4[15] = 3;
    v4[22] = 1;
    assert!(matches!(parse(&v4), Err(PacketError::IpChecksum { .. })));
    roci_wire::seal(&mut v4, |_| Layout::Standard).unwrap();
    assert_eq!(v4[v4.len() - 4..], frames["v4-CNP"][v4.len() - 4..]);
    assert_eq!(parse(&v4).map(|packet| packet.envelope.ip.ecn()), Ok(Ecn::Ce));
}

#[test]
fn the_envelope_is_read() {
    let frames = frames();
    let packet = parse(&frames["v4-VLAN-CE"]).unwrap();
    let envelope = packet.envelope;
    assert_eq!(envelope.vlan, Some(Vlan { priority: 3, drop_eligible: false, id: 42 }));
    let addresses = Ethernet { destination: Mac([2, 0, 0, 0, 0, 2]), source: Mac([2, 0, 0, 0, 0, 1]) };
    assert_eq!((envelope.ethernet, envelope.source_port), (addresses, 0xc123));
    let Ip::V4(ip) = envelope.ip else { panic!("version 4") };
    assert_eq!((ip.dscp, ip.ecn, ip.ttl, ip.id), (0x1a, Ecn::Ce, 61, 0x1234));
    assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
    let Ip::V6(ip) = parse(&frames["v6-CNP"]).unwrap().envelope.ip else { panic!("version 6") };
    assert_eq!((ip.dscp, ip.ecn, ip.hop_limit, ip.flow_label), (0, Ecn::Ect0, 64, 0xabcde));
}

#[test]
fn each_extension_header_is_read() {
    let frames = frames();
    for packet in both(&frames, "ACKNOWLEDGE") {
        let header = packet.transport.header;
        assert_eq!((header.opcode, header.dest_qpn.get(), header.psn.get()), (Opcode::ACKNOWLEDGE, 0x11, 5));
        assert_eq!(header.aeth(), Aeth { syndrome: 0x1f, msn: 0x010203 });
        assert_eq!(header.flags, Flags::NONE);
    }
    for packet in both(&frames, "ACKNOWLEDGE-BECN") {
        assert_eq!(packet.transport.header.flags, Flags::BECN);
    }
    for packet in both(&frames, "WRITE_MIDDLE-FECN") {
        assert_eq!(packet.transport.header.flags, Flags::FECN);
    }
    for packet in both(&frames, "SEND_ONLY_IMMEDIATE") {
        let header = packet.transport.header;
        assert_eq!(header.immediate(), 0xdead_beef);
        assert_eq!(header.flags, Flags::SOLICITED.with(Flags::ACK_REQUEST));
        assert_eq!(packet.payload, [0, 1, 2, 3, 4, 5]);
    }
    for packet in both(&frames, "SEND_LAST_INVALIDATE") {
        assert_eq!(packet.transport.header.immediate(), 0x00c0_ffee);
    }
    for packet in both(&frames, "WRITE_FIRST") {
        let reth = Reth { va: 0x0123_4567_89ab_cdef, rkey: 0x2a, length: 8192 };
        assert_eq!(packet.transport.header.reth(), reth);
        assert_eq!(packet.transport.header.psn.get(), 0xff_fffe);
    }
    for packet in both(&frames, "WRITE_ONLY_IMMEDIATE") {
        let header = packet.transport.header;
        assert_eq!((header.reth().length, header.immediate(), header.payload), (3, 1, 3));
    }
    for packet in both(&frames, "COMPARE_SWAP") {
        let (swap_or_add, compare) = (0x1111_2222_3333_4444, 0x5555_6666_7777_8888);
        assert_eq!(
            packet.transport.header.atomic(),
            AtomicEth { va: 0x1000, rkey: 0x2a, swap_or_add, compare }
        );
    }
    for packet in both(&frames, "ATOMIC_ACKNOWLEDGE") {
        let header = packet.transport.header;
        assert_eq!((header.aeth().msn, header.atomic_ack()), (10, 0x99aa_bbcc_ddee_ff00));
    }
    for packet in both(&frames, "UD_SEND_ONLY") {
        let Deth { q_key, source_qpn } = packet.transport.header.deth();
        assert_eq!((q_key, source_qpn.get()), (0x8001_0000, 1));
    }
}

#[test]
fn a_captured_payload_is_the_pattern_of_its_offset() {
    let frames = frames();
    for packet in both(&frames, "SEND_FIRST-4096") {
        let mut expected = [0; 4096];
        pattern(0, &mut expected);
        assert_eq!(packet.payload, expected);
        pattern(1000, &mut expected[..2000]);
        assert_eq!(packet.payload[1000..3000], expected[..2000]);
    }
}

#[test]
fn a_packet_is_one_line() {
    let frames = frames();
    let line = |name| parse(&frames[name]).unwrap().to_string();
    assert_eq!(
        line("v4-WRITE_FIRST"),
        "10.0.0.1 > 10.0.0.2 WRITE_FIRST qpn 0x000011 psn 16777214 va 0x123456789abcdef rkey 0x2a length 8192 payload 1024"
    );
    assert_eq!(
        line("v4-UC_WRITE_ONLY-ODD"),
        "10.0.0.1 > 10.0.0.2 UC_WRITE_ONLY qpn 0x000011 psn 16777214 va 0x1000 rkey 0x2a length 13 payload 13"
    );
    assert_eq!(line("v6-CNP"), "fd00::1 > fd00::2 CNP qpn 0x000011 psn 0 becn");
    assert_eq!(line("v4-RNR-NAK"), "10.0.0.1 > 10.0.0.2 ACKNOWLEDGE qpn 0x000011 psn 6 RNR-NAK 640us msn 7");
    assert_eq!(line("v4-VLAN-CE"), "10.0.0.1 > 10.0.0.2 CE SEND_ONLY qpn 0x000011 psn 16777214 payload 5");
}

#[test]
fn an_acknowledgement_of_66_octets_and_a_cnp_of_78_are_charged() {
    let standard = |opcode| frame_len(opcode, Layout::Standard, IpVersion::V4, 0);
    assert_eq!(standard(Opcode::ACKNOWLEDGE), 66);
    assert_eq!(standard(Opcode::CNP), 78);
    assert_eq!(standard(Opcode::SEND_ONLY), 64, "62 octets, padded to the shortest frame");
    assert_eq!(frame_len(Opcode::WRITE_MIDDLE, Layout::Standard, IpVersion::V4, 1024), 62 + 1024);
}
