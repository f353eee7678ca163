//! Arbitrary octets as a frame: nothing panics, and whatever parses is emitted and parsed to the same packet.
//!
//! The first octet chooses the queue pair's layout. Each input is tried as it is and with its checksum and ICRC made
//! right, for no fuzzer guesses a CRC; and as what a UDP datagram carries, which needs neither.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_wire::layout::homa::Homa;
use roci_wire::{Cc, Envelope, Ethernet, Ip, Layout, Packet, Pause, Transport, seal};

/// More than the longest frame.
const BUFFER: usize = 4_300;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, octets)) = input.split_first() else { return };
    let layout = layout(choice);
    frame(octets, layout);
    let mut sealed = octets.to_vec();
    if seal(&mut sealed, |_| layout).is_ok() {
        frame(&sealed, layout);
    }
    if let Ok((transport, payload)) = Transport::parse(octets, layout) {
        let ip = Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let envelope = Envelope { ethernet: Ethernet::default(), vlan: None, ip, source_port: 0xc000 };
        returns(Packet { envelope, transport, payload });
    }
    if let Ok(pause) = Pause::parse(octets) {
        assert_eq!(Pause::parse(&pause.emit()), Ok(pause));
    }
});

fn layout(choice: u8) -> Layout {
    match choice & 7 {
        0 => Layout::Standard,
        1 => Layout::Irn,
        2 => Layout::Srnic,
        3 => Layout::Ndp,
        4 => Layout::Homa,
        _ => Cc::new(choice & 8 != 0, choice & 16 != 0, choice >> 5).map_or(Layout::Standard, Layout::Cc),
    }
}

fn frame(octets: &[u8], layout: Layout) {
    if let Ok(packet) = Packet::parse(octets, |_| layout) {
        returns(packet);
    }
}

fn returns(packet: Packet<'_>) {
    let mut buffer = [0; BUFFER];
    let layout = packet.transport.layout;
    let len = packet.emit(&mut buffer).expect("what parses can be emitted");
    assert_eq!(Packet::parse(&buffer[..len], |_| layout), Ok(packet));
    assert!(!packet.to_string().contains('\n'));
    if let Ok(homa) = Homa::decode(&packet.transport.header, &packet.transport.words) {
        assert_eq!(Homa::decode(&packet.transport.header, &homa.encode()), Ok(homa));
    }
    if let Layout::Cc(cc) = layout {
        let words = &packet.transport.words;
        let mut copy = *words;
        if let Some(stack) = cc.int(words) {
            assert!(cc.set_int(&mut copy, &stack));
            assert_eq!(cc.int(&copy), Some(stack));
        }
        if let Some(time) = cc.time(words) {
            assert!(cc.set_time(&mut copy, time));
            assert_eq!(cc.time(&copy), Some(time));
        }
    }
}
