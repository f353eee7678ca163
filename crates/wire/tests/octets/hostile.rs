//! Every way in which a frame can be wrong draws its own refusal, which names what was seen and what was expected.

use roci_units::{Psn, Qpn};
use roci_wire::{
    Envelope, Ethernet, Header, Ip, Layout, Opcode, Packet, PacketError, Transport, Vlan, pattern, seal,
};

const IP: usize = 14;
const UDP: usize = IP + 20;
const BTH: usize = UDP + 8;

/// A SEND of 13 octets over IPv4: a frame of 14 + 20 + 8 + 12 + 16 + 4 octets.
fn frame() -> Vec<u8> {
    emit(Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), None, 13)
}

fn emit(ip: Ip, vlan: Option<Vlan>, payload: u16) -> Vec<u8> {
    let mut header = Header::new(Opcode::SEND_ONLY, Qpn::new(5), Psn::new(9));
    header.payload = payload;
    let envelope = Envelope { ethernet: Ethernet::default(), vlan, ip, source_port: 0xc000 };
    let packet = Packet { envelope, transport: Transport::standard(header), payload: &[] };
    let mut frame = vec![0; packet.len()];
    packet.emit_with(&mut frame, |place| pattern(0, place)).expect("the buffer is as long as the packet");
    frame
}

fn parse(frame: &[u8]) -> Result<Packet<'_>, PacketError> {
    Packet::parse(frame, |_| Layout::Standard)
}

/// The refusal of the frame after `change`, with checksum and ICRC made right where that is possible.
fn refusal(change: impl FnOnce(&mut Vec<u8>)) -> PacketError {
    let mut frame = frame();
    change(&mut frame);
    let _ = seal(&mut frame, |_| Layout::Standard);
    parse(&frame).expect_err("the frame is wrong")
}

#[test]
fn the_frame_itself_is_right() {
    let mut sealed = frame();
    assert!(parse(&sealed).is_ok());
    seal(&mut sealed, |_| Layout::Standard).unwrap();
    assert_eq!(sealed, frame());
}

#[test]
fn every_truncation_is_refused() {
    for vlan in [None, Some(Vlan { priority: 3, drop_eligible: false, id: 1 })] {
        let v4 = Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let v6 = Ip::v6([1; 16].into(), [2; 16].into());
        for frame in [emit(v4, vlan, 13), emit(v6, vlan, 13)] {
            for len in 0..frame.len() {
                let refused = parse(&frame[..len]);
                assert!(
                    matches!(refused, Err(PacketError::Truncated { .. } | PacketError::IpLength { .. })),
                    "{len} octets: {refused:?}"
                );
            }
        }
    }
    assert_eq!(parse(&[]), Err(PacketError::Truncated { got: 0, need: 14 }));
    assert_eq!(parse(&frame()[..73]), Err(PacketError::IpLength { got: 60, need: 59 }));
}

#[test]
fn what_follows_the_datagram_is_ignored() {
    let mut longer = frame();
    longer.extend([0xff; 9]);
    assert_eq!(parse(&longer), parse(&frame()));
}

#[test]
fn wrong_network_headers_are_refused() {
    for (refused, at, octets) in [
        (PacketError::EtherType { got: 0x0806 }, 12, [0x08, 0x06]),
        (PacketError::IpVersion { got: 6, need: 4 }, IP, [0x65, 0]),
        (PacketError::IpHeaderLength { got: 6, need: 5 }, IP, [0x46, 0]),
        (PacketError::IpLength { got: 61, need: 60 }, IP + 2, [0, 61]),
        (PacketError::IpLength { got: 19, need: 60 }, IP + 2, [0, 19]),
        (PacketError::Truncated { got: 7, need: 8 }, IP + 2, [0, 27]),
        (PacketError::Fragment { got: 0x2000 }, IP + 6, [0x20, 0]),
        (PacketError::Fragment { got: 0x0001 }, IP + 6, [0, 1]),
        (PacketError::Protocol { got: 6, need: 17 }, IP + 8, [64, 6]),
        (PacketError::UdpPort { got: 4790, need: 4791 }, UDP + 2, [0x12, 0xb6]),
        (PacketError::UdpLength { got: 41, need: 40 }, UDP + 4, [0, 41]),
        (PacketError::UdpLength { got: 39, need: 40 }, UDP + 4, [0, 39]),
    ] {
        assert_eq!(refusal(|frame| frame[at..at + 2].copy_from_slice(&octets)), refused);
    }
    let mut v6 = emit(Ip::v6([1; 16].into(), [2; 16].into()), None, 13);
    v6[IP + 6] = 44;
    assert_eq!(parse(&v6), Err(PacketError::Protocol { got: 44, need: 17 }));
    v6[IP] = 0x45;
    assert_eq!(parse(&v6), Err(PacketError::IpVersion { got: 4, need: 6 }));
}

#[test]
fn wrong_transport_headers_are_refused() {
    for (refused, at, octet) in [
        (PacketError::Opcode { got: 0x15 }, BTH, 0x15),
        (PacketError::Opcode { got: Opcode::PULL.0 }, BTH, Opcode::PULL.0),
        (PacketError::TransportVersion { got: 1, need: 0 }, BTH + 1, 0x31),
        (PacketError::Partition { got: 0x12ff, need: 0xffff }, BTH + 2, 0x12),
        (PacketError::Truncated { got: 32, need: 44 }, BTH, Opcode::COMPARE_SWAP.0),
        (PacketError::Payload { got: 9, need: 0 }, BTH, Opcode::ACKNOWLEDGE.0),
    ] {
        assert_eq!(refusal(|frame| frame[at] = octet), refused);
    }
    let reserved = refusal(|frame| {
        frame[BTH] = Opcode::READ_RESPONSE_ONLY.0;
        frame[BTH + 12] = 0x40;
    });
    assert_eq!(reserved, PacketError::Syndrome { got: 0x40 });
}

#[test]
fn pad_and_alignment_are_judged() {
    let mut empty = emit(Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), None, 0);
    empty[BTH + 1] = 1 << 4;
    seal(&mut empty, |_| Layout::Standard).unwrap();
    assert_eq!(parse(&empty), Err(PacketError::Pad { got: 1, need: 0 }));

    let cut = refusal(|frame| {
        frame.truncate(frame.len() - 1);
        frame[IP + 3] -= 1;
        frame[UDP + 5] -= 1;
    });
    assert_eq!(cut, PacketError::Alignment { got: 15, need: 4 });
}

#[test]
fn more_than_4096_octets_are_refused() {
    let mut long = emit(Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), None, 4096);
    long.extend([0; 4]);
    let length = |at: usize, frame: &mut Vec<u8>| {
        let longer = u16::from_be_bytes([frame[at], frame[at + 1]]) + 4;
        frame[at..at + 2].copy_from_slice(&longer.to_be_bytes());
    };
    length(IP + 2, &mut long);
    length(UDP + 4, &mut long);
    seal(&mut long, |_| Layout::Standard).unwrap();
    assert_eq!(parse(&long), Err(PacketError::Payload { got: 4100, need: 4096 }));
}

#[test]
fn corruption_is_noticed() {
    let mut corrupt = frame();
    corrupt[BTH + 12] ^= 1;
    let Err(PacketError::Icrc { got, need }) = parse(&corrupt) else { panic!("the ICRC is wrong") };
    assert_eq!(got.to_le_bytes(), frame()[70..74]);
    assert_ne!(got, need);
    let mut header = frame();
    header[IP + 8] -= 1;
    assert!(matches!(parse(&header), Err(PacketError::IpChecksum { .. })));
}

#[test]
fn a_packet_that_could_not_be_parsed_is_not_emitted() {
    let ip = Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let envelope = Envelope { ethernet: Ethernet::default(), vlan: None, ip, source_port: 0 };
    let emit = |opcode, octets: u16, layout| {
        let mut header = Header::new(opcode, Qpn::new(5), Psn::new(9));
        header.payload = octets;
        let transport = Transport { layout, ..Transport::standard(header) };
        Packet { envelope, transport, payload: &[0; 8] }.emit(&mut [0; 9000])
    };
    let standard = Layout::Standard;
    assert_eq!(emit(Opcode::SEND_ONLY, 9, standard), Err(PacketError::PayloadLength { got: 8, need: 9 }));
    assert_eq!(emit(Opcode::ACKNOWLEDGE, 8, standard), Err(PacketError::Payload { got: 8, need: 0 }));
    assert_eq!(emit(Opcode::PULL, 8, standard), Err(PacketError::Opcode { got: 0xc1 }));
    assert_eq!(emit(Opcode::SEND_ONLY, 8, Layout::Homa), Err(PacketError::Words { got: 0, need: 6 }));
    let mut header = Header::new(Opcode::SEND_ONLY, Qpn::new(5), Psn::new(9));
    header.payload = 4097;
    let packet = Packet { envelope, transport: Transport::standard(header), payload: &[0; 4097] };
    assert_eq!(packet.emit(&mut [0; 9000]), Err(PacketError::Payload { got: 4097, need: 4096 }));
}
