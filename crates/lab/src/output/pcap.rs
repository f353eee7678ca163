//! Packet captures of simulated ports in pcapng, which Wireshark opens.
//!
//! A simulated packet is a header and a length; here it becomes the octets that a real one would have, ICRC included.
//! Host n has the address 10.0.0.1 + n and the Ethernet address 02:00 followed by those four octets; switch n has
//! 02:53 and its number. Frames stand without their frame check sequence, as network devices give them.

mod messages;

use messages::Messages;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use roci_units::{BitsPerSec, Instant};
use roci_wire::{
    Ecn, Envelope, Ethernet, Header, Ip, Ipv4, Layout, LayoutWords, Mac, Packet, Pause, Transport, pattern,
};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// The least UDP source port of a flow; the low 14 bits tell flows apart.
const SOURCE_PORT_MIN: u16 = 0xc000;
/// Octets of the longest frame: 4096 of payload under the longest headers, rounded up.
const FRAME_MAX: usize = 4096 + 512;
/// The longest pause that a frame can ask for; a switch ends it by a frame with zero.
const STOP: u16 = u16::MAX;

/// Which way a frame passed a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Into the node, when it had arrived whole.
    Received,
    /// Out of the node, when its first octet left.
    Transmitted,
}

/// The file's name in the folder of results.
pub const FILE: &str = "capture.pcapng";

/// How tshark takes a capture of packets with this layout apart: the standard one by itself, others by the dissector
/// `interop/rocinante.lua`.
pub fn tshark(layout: Layout, capture: &Path) -> String {
    let told = match layout {
        Layout::Standard => return format!("tshark -r {}", capture.display()),
        Layout::Irn => " -o rocinante.layout:irn".to_owned(),
        Layout::Srnic => " -o rocinante.layout:srnic".to_owned(),
        Layout::Ndp => " -o rocinante.layout:ndp".to_owned(),
        Layout::Homa => " -o rocinante.layout:homa".to_owned(),
        Layout::Cc(cc) => {
            let time = if cc.has_time() { "time," } else { "" };
            let own = cc.own(&cc.empty()).len();
            format!(" -o rocinante.layout:cc -o rocinante.cc:{time}{own}")
        }
    };
    format!("tshark -X lua_script:interop/rocinante.lua{told} -r {}", capture.display())
}

/// A port whose frames are captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name: `<node>><neighbour>`.
    pub name: String,
    /// Its rate.
    pub rate: BitsPerSec,
}

/// A node with an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A host, by its place in the list of hosts.
    Host(u16),
    /// A switch, by its place in the list of switches.
    Switch(u16),
}

/// A frame seen at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When.
    pub at: Instant,
    /// Where: a place in the list of interfaces.
    pub interface: u32,
    /// Which way.
    pub direction: Direction,
    /// What.
    pub frame: Frame,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A RoCEv2 packet.
    Packet(RocePacket),
    /// A PAUSE frame.
    Pause {
        /// Who sent it.
        from: Node,
        /// The priorities that it speaks of: bit n is priority n.
        classes: u8,
        /// Those of them that are to stop; the others may go on.
        stop: u8,
    },
}

/// A RoCEv2 packet as the simulation holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocePacket {
    /// The host that it comes from.
    pub source: u16,
    /// The host that it goes to.
    pub destination: u16,
    /// Tells flows apart for equal-cost routing; its low 14 bits are the UDP source port less 0xC000.
    pub flow: u32,
    /// Its priority, 0 to 7; the upper three bits of its code point.
    pub priority: u8,
    /// Its congestion mark.
    pub ecn: Ecn,
    /// Whether a fault damaged it: its ICRC is then wrong.
    pub corrupt: bool,
    /// The header layout of its queue pair.
    pub layout: Layout,
    /// Whether READ responses of its queue pair are numbered apart from the requests that they answer.
    pub numbered_apart: bool,
    /// The law's words.
    pub words: LayoutWords,
    /// BTH and extension headers.
    pub header: Header,
}

/// A capture being written.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    interfaces: u32,
    buffer: Box<[u8; FRAME_MAX]>,
    messages: Messages,
}

impl<W: Write> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

impl<W: Write> Capture<W> {
    /// Begins a capture of `interfaces`.
    ///
    /// # Errors
    /// What `out` answers.
    pub fn new(out: W, interfaces: &[Interface]) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("roci"))],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(out, section).map_err(plain)?;
        for Interface { name, rate } in interfaces {
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfSpeed(rate.0),
                    InterfaceDescriptionOption::IfTsResol(9), // nanoseconds: all that the writer knows
                ],
            };
            writer.write_block(&block.into_block()).map_err(plain)?;
        }
        let interfaces = u32::try_from(interfaces.len()).map_err(io::Error::other)?;
        Ok(Self { writer, interfaces, buffer: Box::new([0; FRAME_MAX]), messages: Messages::default() })
    }

    /// Records a frame. Sightings come in the order of time.
    ///
    /// # Errors
    /// What `out` answers, and [`io::ErrorKind::InvalidData`] for a packet that cannot exist on a wire.
    ///
    /// # Panics
    /// When the interface was not announced.
    pub fn record(&mut self, sighting: &Sighting) -> io::Result<()> {
        assert!(sighting.interface < self.interfaces, "the interface was announced");
        let len = match sighting.frame {
            Frame::Packet(packet) => self.packet(&packet)?,
            Frame::Pause { from, classes, stop } => {
                let quanta = std::array::from_fn(|n| if stop >> n & 1 == 1 { STOP } else { 0 });
                let octets = Pause { source: mac(from), classes, quanta }.emit();
                self.buffer[..octets.len()].copy_from_slice(&octets);
                octets.len()
            }
        };
        let inbound_or_outbound = match sighting.direction {
            Direction::Received => 1,
            Direction::Transmitted => 2,
        };
        let block = EnhancedPacketBlock {
            interface_id: sighting.interface,
            timestamp: Duration::from_nanos(sighting.at.as_ps() / 1_000),
            original_len: u32::try_from(len).map_err(io::Error::other)?,
            data: Cow::Borrowed(&self.buffer[..len]),
            options: vec![EnhancedPacketOption::Flags(inbound_or_outbound)],
        };
        self.writer.write_pcapng_block(block).map_err(plain)?;
        Ok(())
    }

    /// Ends the capture and gives back what it was written into.
    pub fn finish(self) -> W {
        self.writer.into_inner()
    }

    /// Puts the packet's octets into the buffer and gives their number.
    fn packet(&mut self, packet: &RocePacket) -> io::Result<usize> {
        let RocePacket { source, destination, priority, ecn, layout, words, header, .. } = *packet;
        let ip = Ip::V4(Ipv4 {
            source: address(source),
            destination: address(destination),
            dscp: priority << 3,
            ecn,
            ttl: 64,
            id: 0, // atomic datagrams need none (RFC 6864 §4.1)
        });
        let frame = Packet {
            envelope: Envelope {
                ethernet: Ethernet {
                    destination: mac(Node::Host(destination)),
                    source: mac(Node::Host(source)),
                },
                vlan: None,
                ip,
                source_port: SOURCE_PORT_MIN | (packet.flow & 0x3fff) as u16,
            },
            transport: Transport { header, layout, words },
            payload: &[],
        };
        let offset = self.messages.offset(packet);
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}: {frame}"));
        let len = frame.emit_with(&mut *self.buffer, |place| pattern(offset, place)).map_err(invalid)?;
        if packet.corrupt {
            // The last octet before the padding of a short frame is the ICRC's last.
            self.buffer[frame.envelope.len() + frame.transport.len() - 1] ^= 0xff;
        }
        Ok(len)
    }
}

fn plain(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

fn address(host: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([10, 0, 0, 1]) + u32::from(host))
}

fn mac(node: Node) -> Mac {
    let (kind, [a, b, c, d]) = match node {
        Node::Host(host) => (0, address(host).octets()),
        Node::Switch(switch) => (0x53, u32::from(switch).to_be_bytes()),
    };
    Mac([0x02, kind, a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcapng::{Block, PcapNgReader};
    use roci_units::{Psn, Qpn};
    use roci_wire::{Opcode, PacketError, Reth};

    fn packet(opcode: Opcode, psn: u32, payload: u16) -> RocePacket {
        let mut header = Header::new(opcode, Qpn::new(17), Psn::new(psn));
        header.payload = payload;
        header.set_reth(Reth { va: 0x1000, rkey: 42, length: 8192 });
        RocePacket {
            source: 0,
            destination: 300,
            flow: 0xdead_beef,
            priority: 3,
            ecn: Ecn::Ect0,
            corrupt: false,
            layout: Layout::Standard,
            numbered_apart: false,
            words: LayoutWords::NONE,
            header,
        }
    }

    #[test]
    fn the_dissector_is_told_the_layout() {
        let told = |layout| tshark(layout, Path::new("out/x/capture.pcapng"));
        let command =
            |what: &str| format!("tshark -X lua_script:interop/rocinante.lua{what} -r out/x/capture.pcapng");
        assert_eq!(told(Layout::Standard), "tshark -r out/x/capture.pcapng", "Wireshark knows it");
        assert_eq!(told(Layout::Irn), command(" -o rocinante.layout:irn"));
        let cc = |time, own| Layout::Cc(roci_wire::Cc::new(time, false, own).unwrap());
        assert_eq!(told(cc(true, 2)), command(" -o rocinante.layout:cc -o rocinante.cc:time,2"));
        assert_eq!(told(cc(false, 3)), command(" -o rocinante.layout:cc -o rocinante.cc:3"));
    }

    fn capture(frames: &[Frame]) -> Vec<(Duration, Vec<u8>)> {
        let interface = Interface { name: "root>leaf".into(), rate: BitsPerSec::from_gbps(10) };
        let mut capture = Capture::new(Vec::new(), &[interface]).unwrap();
        for (n, frame) in (1..).zip(frames) {
            let at = Instant::from_ps(n * 1_500_000);
            capture
                .record(&Sighting { at, interface: 0, direction: Direction::Received, frame: *frame })
                .unwrap();
        }
        let octets = capture.finish();
        let mut reader = PcapNgReader::new(&octets[..]).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(block) = block.unwrap() {
                assert_eq!(block.options, [EnhancedPacketOption::Flags(1)]);
                seen.push((block.timestamp, block.data.into_owned()));
            }
        }
        seen
    }

    #[test]
    fn a_captured_packet_is_the_one_that_was_simulated() {
        let simulated = packet(Opcode::WRITE_FIRST, 5, 1024);
        let seen = capture(&[Frame::Packet(simulated)]);
        assert_eq!(seen[0].0, Duration::from_nanos(1_500));
        let parsed = Packet::parse(&seen[0].1, |_| Layout::Standard).unwrap();
        assert_eq!(parsed.transport.header, simulated.header);
        let Ip::V4(ip) = parsed.envelope.ip else { panic!("IPv4") };
        assert_eq!((ip.source, ip.destination), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 1, 45)));
        assert_eq!((ip.ecn, ip.dscp), (Ecn::Ect0, 24));
        assert_eq!(parsed.envelope.source_port, 0xfeef);
        assert_eq!(parsed.payload[..3], [0, 1, 2]);
    }

    #[test]
    fn payload_goes_on_where_the_packet_before_ended_also_when_sent_again() {
        let frames = [
            (Opcode::WRITE_FIRST, 0x00ff_fffe, 1024),
            (Opcode::WRITE_MIDDLE, 0x00ff_ffff, 1024),
            (Opcode::WRITE_LAST, 0, 100),
            (Opcode::WRITE_FIRST, 1, 1024),
            (Opcode::WRITE_MIDDLE, 0x00ff_ffff, 1024),
            (Opcode::WRITE_LAST, 2, 100),
        ];
        let seen = capture(&frames.map(|(opcode, psn, payload)| Frame::Packet(packet(opcode, psn, payload))));
        let offsets: Vec<u64> = seen
            .iter()
            .map(|(_, octets)| u64::from(Packet::parse(octets, |_| Layout::Standard).unwrap().payload[0]))
            .collect();
        assert_eq!(offsets, [0, 1024, 2048, 0, 1024, 1024].map(|offset: u64| offset % 251));
    }

    /// The place in 251 octets at which each packet's payload begins.
    fn begins(packets: &[RocePacket]) -> Vec<u8> {
        let seen = capture(&packets.iter().map(|packet| Frame::Packet(*packet)).collect::<Vec<_>>());
        let parsed = seen.iter().map(|(_, octets)| Packet::parse(octets, |_| Layout::Standard).unwrap());
        parsed.filter_map(|packet| packet.payload.first().copied()).collect()
    }

    fn request(psn: u32, before: u32, length: u32) -> RocePacket {
        let mut request = packet(Opcode::READ_REQUEST, psn, 0);
        request.header.set_reth(Reth { va: 0x1000 + u64::from(before), rkey: 42, length: length - before });
        request
    }

    fn response(opcode: Opcode, psn: u32, payload: u16) -> RocePacket {
        let mut response = RocePacket { source: 300, destination: 0, ..packet(opcode, psn, payload) };
        response.header.dest_qpn = Qpn::new(23);
        response
    }

    #[test]
    fn a_read_that_is_asked_for_again_from_its_middle_goes_on_there() {
        let [first, middle, last, only] = [
            Opcode::READ_RESPONSE_FIRST,
            Opcode::READ_RESPONSE_MIDDLE,
            Opcode::READ_RESPONSE_LAST,
            Opcode::READ_RESPONSE_ONLY,
        ];
        let offsets = begins(&[
            // One READ from the last number but one on, and one behind it.
            request(0x00ff_fffe, 0, 3_172),
            request(2, 0, 2_148),
            response(first, 0x00ff_fffe, 1024),
            response(last, 1, 100),
            // The first response of the second never came by.
            response(middle, 3, 1024),
            response(last, 4, 100),
            request(0x00ff_ffff, 1024, 3_172),
            response(first, 0x00ff_ffff, 1024),
            response(middle, 0, 1024),
            response(last, 1, 100),
            request(1, 3_072, 3_172),
            response(only, 1, 100),
            response(first, 2, 1024),
            response(middle, 3, 1024),
        ]);
        let places = [0, 3_072, 1_024, 2_048, 1_024, 2_048, 3_072, 3_072, 0, 1_024];
        assert_eq!(offsets, places.map(|place: u32| (place % 251) as u8));
    }

    #[test]
    fn responses_that_are_numbered_apart_begin_where_their_first_packet_says() {
        let apart = |packet| RocePacket { numbered_apart: true, ..packet };
        let offsets = begins(
            &[
                request(5, 0, 2_148),
                request(6, 0, 2_148),
                response(Opcode::READ_RESPONSE_FIRST, 5, 1024),
                response(Opcode::READ_RESPONSE_MIDDLE, 6, 1024),
                response(Opcode::READ_RESPONSE_LAST, 7, 100),
                response(Opcode::READ_RESPONSE_FIRST, 8, 1024),
            ]
            .map(apart),
        );
        assert_eq!(offsets, [0, 1_024, 2_048, 0].map(|place: u32| (place % 251) as u8));
    }

    #[test]
    fn a_corrupted_packet_has_a_wrong_icrc() {
        for opcode in [Opcode::WRITE_ONLY, Opcode::ACKNOWLEDGE] {
            let payload = if opcode == Opcode::WRITE_ONLY { 1_000 } else { 0 };
            let mut damaged = packet(opcode, 1, payload);
            damaged.header.set_aeth(roci_wire::Aeth { syndrome: 0x1f, msn: 1 });
            damaged.corrupt = true;
            let seen = capture(&[Frame::Packet(damaged)]);
            assert!(matches!(Packet::parse(&seen[0].1, |_| Layout::Standard), Err(PacketError::Icrc { .. })));
        }
    }

    #[test]
    fn a_pause_frame_names_its_priorities() {
        let seen = capture(&[Frame::Pause { from: Node::Switch(2), classes: 12, stop: 8 }]);
        let pause = Pause::parse(&seen[0].1).unwrap();
        assert_eq!((pause.source, pause.classes), (Mac([2, 0x53, 0, 0, 0, 2]), 12));
        assert_eq!(pause.quanta, [0, 0, 0, STOP, 0, 0, 0, 0]);
    }
}
