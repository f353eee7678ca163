//! What octets cost: the ICRC and whole frames, beside the bare CRC and a copy of as many octets.

use divan::{Bencher, black_box, counter::BytesCount};
use roci_units::{Psn, Qpn};
use roci_wire::{Envelope, Ethernet, Header, Ip, IpVersion, Layout, Opcode, Packet, Transport, icrc};

const PAYLOADS: [u16; 4] = [0, 256, 1024, 4096];
const BUFFER: usize = 4_300;

fn main() {
    divan::main();
}

fn packet(payload: &[u8]) -> Packet<'_> {
    let mut header = Header::new(Opcode::WRITE_MIDDLE, Qpn::new(17), Psn::new(5));
    header.payload = u16::try_from(payload.len()).expect("at most 4096");
    let ip = Ip::v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let envelope = Envelope { ethernet: Ethernet::default(), vlan: None, ip, source_port: 0xc000 };
    Packet { envelope, transport: Transport::standard(header), payload }
}

/// A frame's octets and their number.
fn frame(payload: u16) -> ([u8; BUFFER], usize) {
    let mut buffer = [0; BUFFER];
    let len = packet(&[7; 4096][..payload.into()]).emit(&mut buffer).expect("it fits");
    (buffer, len)
}

#[divan::bench(args = PAYLOADS)]
fn yardstick_copy(bencher: Bencher<'_, '_>, payload: u16) {
    let (buffer, len) = frame(payload);
    let mut copy = [0; BUFFER];
    bencher.counter(BytesCount::new(len)).bench_local(|| {
        copy[..len].copy_from_slice(black_box(&buffer[..len]));
        black_box(&mut copy);
    });
}

#[divan::bench(args = PAYLOADS)]
fn yardstick_crc32(bencher: Bencher<'_, '_>, payload: u16) {
    let (buffer, len) = frame(payload);
    bencher.counter(BytesCount::new(len)).bench_local(|| crc32fast::hash(black_box(&buffer[..len])));
}

#[divan::bench(args = PAYLOADS)]
fn icrc_of_a_datagram(bencher: Bencher<'_, '_>, payload: u16) {
    let (buffer, len) = frame(payload);
    let datagram = &buffer[14..len - 4];
    bencher.counter(BytesCount::new(len)).bench_local(|| icrc(black_box(datagram), IpVersion::V4, 0));
}

#[divan::bench(args = PAYLOADS)]
fn parse(bencher: Bencher<'_, '_>, payload: u16) {
    let (buffer, len) = frame(payload);
    bencher.counter(BytesCount::new(len)).bench_local(|| {
        Packet::parse(black_box(&buffer[..len]), |_| Layout::Standard).map(|packet| packet.payload.len())
    });
}

#[divan::bench(args = PAYLOADS)]
fn emit(bencher: Bencher<'_, '_>, payload: u16) {
    let octets = [7; 4096];
    let mut buffer = [0; BUFFER];
    bencher.counter(BytesCount::new(payload)).bench_local(|| {
        let len = packet(black_box(&octets[..payload.into()])).emit(&mut buffer);
        black_box(&mut buffer);
        len
    });
}
