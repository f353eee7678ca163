//! Whole frames: from octets to a [`Packet`] and back.

use crate::bth::BthView;
use crate::ethernet::{self, Ethernet, EthernetView, FCS_LEN, MIN_FRAME, Vlan, VlanView};
use crate::icrc::{ICRC_LEN, icrc};
use crate::ip::{Ip, IpVersion, Ipv4View};
use crate::layout::Layout;
use crate::octets::Writer;
use crate::opcode::Shape;
use crate::syndrome::Syndrome;
use crate::transport::Transport;
use crate::udp::{self, UdpView};
use crate::{Flags, PacketError};
use core::fmt;
use core::ops::Range;
use roci_units::Qpn;

/// What surrounds the transport headers: link, network and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The frame's addresses.
    pub ethernet: Ethernet,
    /// The frame's 802.1Q tag.
    pub vlan: Option<Vlan>,
    /// Addresses, code point, congestion mark.
    pub ip: Ip,
    /// UDP source port; the destination port is [`crate::udp::ROCE_PORT`].
    pub source_port: u16,
}

/// A RoCEv2 packet as a frame on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Link, network and UDP.
    pub envelope: Envelope,
    /// BTH, layout words and extension headers.
    pub transport: Transport,
    /// The payload, pad excluded; as many octets as [`Header::payload`](crate::Header::payload).
    pub payload: &'a [u8],
}

impl Envelope {
    /// Octets from the first address to the end of the UDP header.
    pub const fn len(&self) -> usize {
        let tag = if self.vlan.is_some() { Vlan::LEN } else { 0 };
        EthernetView::LEN + tag + self.ip.header_len() + UdpView::LEN
    }

    /// Always false: every packet has addresses.
    pub const fn is_empty(&self) -> bool {
        false
    }

    fn emit(&self, writer: &mut Writer<'_>, transport_len: usize) {
        let ether_type = match self.ip.version() {
            IpVersion::V4 => ethernet::IPV4,
            IpVersion::V6 => ethernet::IPV6,
        };
        let length = UdpView::LEN + transport_len;
        ethernet::emit(writer, self.ethernet, self.vlan, ether_type);
        self.ip.emit(writer, length);
        udp::emit(writer, self.source_port, length);
    }
}

impl<'a> Packet<'a> {
    /// Parses `frame`, from the first address on, without frame check sequence; what follows the IP datagram (the
    /// padding of a short frame) is ignored.
    ///
    /// `layout_of` gives the layout of the queue pair that the packet is for; [`Layout::Standard`] where there is no
    /// such queue pair.
    ///
    /// # Errors
    /// [`PacketError`] says what was seen and what was expected. Every length, the IPv4 checksum and the ICRC are
    /// judged; the UDP checksum is not, since the ICRC covers more.
    pub fn parse(frame: &'a [u8], layout_of: impl FnOnce(Qpn) -> Layout) -> Result<Self, PacketError> {
        let parts = Parts::of(frame)?;
        parts.judge_checksum()?;
        let layout = parts.layout(layout_of)?;
        let (got, need) = parts.icrc(layout)?;
        if got != need {
            return Err(PacketError::Icrc { got, need });
        }
        let (transport, payload) = Transport::parse(parts.carried, layout)?;
        Ok(Self { envelope: parts.envelope, transport, payload })
    }

    /// Octets of the frame as emitted, padded to the shortest frame, without frame check sequence.
    pub const fn len(&self) -> usize {
        let len = self.envelope.len() + self.transport.len();
        if len < MIN_FRAME - FCS_LEN { MIN_FRAME - FCS_LEN } else { len }
    }

    /// Always false: the shortest frame has 60 octets.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes the frame into the front of `buffer`; gives its octets' number, which is [`Packet::len`].
    ///
    /// # Errors
    /// [`PacketError`] when the buffer is too small, the payload is not as long as the header says, or the packet is
    /// one that could not be parsed.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, PacketError> {
        let (got, need) = (self.payload.len(), usize::from(self.transport.header.payload));
        if got != need {
            return Err(PacketError::PayloadLength { got, need });
        }
        self.emit_with(buffer, |place| place.copy_from_slice(self.payload))
    }

    /// As [`Packet::emit`], but the payload is what `fill` writes: it is called once with the place of
    /// [`Header::payload`](crate::Header::payload) octets. `self.payload` is not looked at.
    ///
    /// # Errors
    /// As [`Packet::emit`].
    pub fn emit_with(&self, buffer: &mut [u8], fill: impl FnOnce(&mut [u8])) -> Result<usize, PacketError> {
        self.transport.check(self.transport.header.payload.into())?;
        let len = self.len();
        let got = buffer.len();
        let frame = buffer.get_mut(..len).ok_or(PacketError::Buffer { got, need: len })?;
        let (front, rest) = frame.split_at_mut(self.envelope.len());
        self.envelope.emit(&mut Writer::new(front), self.transport.len());
        let Envelope { ip, source_port, .. } = &self.envelope;
        let used = self.transport.emit_with(ip, *source_port, rest, fill)?;
        rest[used..].fill(0);
        Ok(len)
    }
}

/// Makes `frame` right again after a device has rewritten it in place: IPv4 checksum and ICRC.
///
/// Whoever trims a packet (layout `ndp`), having cut the payload and corrected the lengths, calls this.
///
/// # Errors
/// [`PacketError`] when it is no RoCEv2 packet; the frame is then unchanged.
pub fn seal(frame: &mut [u8], layout_of: impl FnOnce(Qpn) -> Layout) -> Result<(), PacketError> {
    let parts = Parts::of(frame)?;
    let layout = parts.layout(layout_of)?;
    let (_, right) = parts.icrc(layout)?;
    let checksum = match Ipv4View::split(parts.datagram) {
        Ok((view, _)) if parts.envelope.ip.version() == IpVersion::V4 => Some(view.right_checksum()),
        _ => None,
    };
    let Range { start, end } = parts.span;
    if let Some(sum) = checksum {
        frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
    }
    frame[end - ICRC_LEN..end].copy_from_slice(&right.to_le_bytes());
    Ok(())
}

/// Fills `place` with the payload that simulated packets are captured with, from octet `offset` of the message on:
/// octet n is n mod 251, so that neighbouring words, packets and pages all differ.
pub fn pattern(offset: u64, place: &mut [u8]) {
    let mut next = offset % 251;
    for octet in place {
        *octet = u8::try_from(next).unwrap_or_default();
        next = if next == 250 { 0 } else { next + 1 };
    }
}

/// A frame taken apart down to UDP.
struct Parts<'a> {
    envelope: Envelope,
    /// Where the IP datagram lies in the frame.
    span: Range<usize>,
    /// The IP datagram.
    datagram: &'a [u8],
    /// What UDP carries.
    carried: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(frame: &'a [u8]) -> Result<Self, PacketError> {
        let (view, mut rest) = EthernetView::split(frame)?;
        let mut ether_type = view.ether_type();
        let mut vlan = None;
        if ether_type == ethernet::VLAN {
            let (tag, after) = VlanView::split(rest)?;
            (ether_type, vlan, rest) = (tag.ether_type(), Some(tag.tag()), after);
        }
        let (ip, payload) = match ether_type {
            ethernet::IPV4 => Ip::parse_v4(rest)?,
            ethernet::IPV6 => Ip::parse_v6(rest)?,
            got => return Err(PacketError::EtherType { got }),
        };
        let (source_port, carried) = udp::parse(payload)?;
        let start = frame.len() - rest.len();
        let length = ip.header_len() + payload.len();
        let ethernet = Ethernet { destination: view.destination(), source: view.source() };
        Ok(Self {
            envelope: Envelope { ethernet, vlan, ip, source_port },
            span: start..start + length,
            datagram: &rest[..length],
            carried,
        })
    }

    fn judge_checksum(&self) -> Result<(), PacketError> {
        if self.envelope.ip.version() == IpVersion::V6 {
            return Ok(());
        }
        let (view, _) = Ipv4View::split(self.datagram)?;
        let (got, need) = (view.checksum(), view.right_checksum());
        if got == need { Ok(()) } else { Err(PacketError::IpChecksum { got, need }) }
    }

    fn layout(&self, layout_of: impl FnOnce(Qpn) -> Layout) -> Result<Layout, PacketError> {
        let (bth, _) = BthView::split(self.carried)?;
        Ok(layout_of(bth.dest_qpn()))
    }

    /// The ICRC that the packet has, and the one that it ought to have.
    fn icrc(&self, layout: Layout) -> Result<(u32, u32), PacketError> {
        let (bth, _) = BthView::split(self.carried)?;
        let cc = layout.rewritable_len(bth.opcode());
        let need = BthView::LEN + cc + ICRC_LEN;
        let truncated = PacketError::Truncated { got: self.carried.len(), need };
        if self.carried.len() < need {
            return Err(truncated);
        }
        let (covered, stored) = self.datagram.split_last_chunk().ok_or(truncated)?;
        Ok((u32::from_le_bytes(*stored), icrc(covered, self.envelope.ip.version(), cc)?))
    }
}

impl fmt::Display for Packet<'_> {
    /// One line: `10.0.0.1 > 10.0.0.2 WRITE_FIRST qpn 0x000011 psn 5 va 0x1000 rkey 0x2a length 8192 payload 4096`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.envelope.ip, self.transport)
    }
}

impl fmt::Display for Transport {
    /// Opcode, queue pair and PSN, then what the packet carries, then its flags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        let shape = header.opcode.shape();
        write!(f, "{} qpn {:#08x} psn {}", header.opcode, header.dest_qpn, header.psn)?;
        if shape.has(Shape::DATAGRAM) {
            let deth = header.deth();
            write!(f, " from qpn {:#08x} q_key {:#x}", deth.source_qpn, deth.q_key)?;
        }
        if shape.has(Shape::RETH) {
            let reth = header.reth();
            write!(f, " va {:#x} rkey {:#x} length {}", reth.va, reth.rkey, reth.length)?;
        }
        if shape.has(Shape::ATOMIC) {
            let atomic = header.atomic();
            write!(f, " va {:#x} rkey {:#x} operand {:#x}", atomic.va, atomic.rkey, atomic.swap_or_add)?;
            write!(f, " compare {:#x}", atomic.compare)?;
        }
        if shape.has(Shape::AETH) {
            let aeth = header.aeth();
            match Syndrome::from_u8(aeth.syndrome) {
                Some(syndrome) => write!(f, " {syndrome} msn {}", aeth.msn)?,
                None => write!(f, " syndrome {:#04x} msn {}", aeth.syndrome, aeth.msn)?,
            }
        }
        if shape.has(Shape::ATOMIC_ACK) {
            write!(f, " original {:#x}", header.atomic_ack())?;
        }
        if shape.has(Shape::IMMEDIATE) {
            write!(f, " immediate {:#x}", header.immediate())?;
        }
        if shape.has(Shape::INVALIDATE) {
            write!(f, " invalidate {:#x}", header.immediate())?;
        }
        if shape.has(Shape::PAYLOAD) {
            write!(f, " payload {}", header.payload)?;
        }
        if self.layout != Layout::Standard {
            write!(f, " layout {}", self.layout)?;
        }
        for (flag, name) in [
            (Flags::ACK_REQUEST, "ack-request"),
            (Flags::SOLICITED, "solicited"),
            (Flags::FECN, "fecn"),
            (Flags::BECN, "becn"),
            (Flags::TRIMMED, "trimmed"),
            (Flags::FIRST_WINDOW, "first-window"),
            (Flags::DRAINED, "drained"),
            (Flags::RETURNED, "returned"),
        ] {
            if header.flags.has(flag) {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}
