//! Packets that are made of segments.

use crate::path::Path;
use roci_control::Hop;
use roci_fabric::net::Net;
use roci_fabric::packet::{HostId, Marks, Packet, PacketId};
use roci_transport::Segment;
use roci_wire::{Header, IpVersion, Layout, Opcode};

/// Makes a packet of a segment that is no answer.
#[inline(always)]
pub(super) fn place_data(net: &mut Net, id: HostId, segment: &Segment, traced: bool) -> PacketId {
    let packet = place(net, None, id, segment);
    if traced && segment.ecn_capable {
        net.packets_mut().extra_mut(packet).set_traced(true);
    }
    packet
}

/// The same for what took the long way.
#[inline(never)]
pub(super) fn place_planned(net: &mut Net, id: HostId, segment: &Segment, traced: bool) -> PacketId {
    place_data(net, id, segment, traced)
}

/// Makes a packet of `segment`, in `spare` if there is one.
#[inline(always)]
pub(super) fn place(net: &mut Net, spare: Option<PacketId>, from: HostId, segment: &Segment) -> PacketId {
    let path = Path::unpack(segment.path);
    let mut packet = Packet::new(from, path.host, segment.header);
    packet.flow = path.flow;
    packet.frame = frame_octets(&segment.header, segment.layout);
    packet.priority = segment.priority;
    packet.marks = if segment.ecn_capable { Marks::ECT } else { Marks::default() };
    if segment.retransmission {
        packet.marks = packet.marks.with(Marks::AGAIN);
    }
    let id = match spare {
        Some(id) => {
            packet.side = keep_telemetry(net, id, &mut packet);
            net.packets_mut()[id] = packet;
            id
        }
        None => net.packets_mut().alloc(packet),
    };
    if let Some(words) = segment.stamped(net.now()) {
        net.packets_mut().extra_mut(id).set_words(&words.words[..usize::from(words.len)]);
    }
    id
}

/// An acknowledgement takes the telemetry of the packet that it answers back to the sender, and its octets on the wire;
/// other answers leave it behind. Gives the side that `packet` is to have.
#[inline]
fn keep_telemetry(net: &mut Net, id: PacketId, packet: &mut Packet) -> u32 {
    let told = net.packets().extra(id).map_or(0, |extra| extra.hops().len());
    if told == 0 || !matches!(packet.header.opcode, Opcode::ACKNOWLEDGE | Opcode::READ_ACKNOWLEDGE) {
        net.packets_mut().drop_extra(id);
        return 0;
    }
    let extra = net.packets_mut().extra_mut(id);
    extra.set_traced(false);
    extra.set_words(&[]);
    packet.frame += Hop::OCTETS * u16::try_from(told).expect("at most eight hops");
    net.packets()[id].side
}

/// Octets of the frame that carries `header`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a frame has at most 4096 octets of payload and 300 of headers"
)]
pub(super) fn frame_octets(header: &Header, layout: Layout) -> u16 {
    roci_wire::frame_len(header.opcode, layout, IpVersion::V4, header.payload) as u16
}
