//! IPv4 and IPv6, as far as RoCEv2 uses them: no options, no extension headers, no fragments.

use crate::PacketError;
use crate::octets::{Writer, be16, be32, take, view};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP protocol number of UDP.
pub const UDP_PROTOCOL: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;
/// More-fragments flag and fragment offset: all zero in a whole datagram.
const FRAGMENT: u16 = 0x3fff;

/// Explicit congestion notification: the lower two bits of the traffic class (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not take part: a congested switch drops instead of marking.
    #[default]
    NotEct = 0,
    /// Takes part, code point 1.
    Ect1 = 1,
    /// Takes part, code point 0: the usual one.
    Ect0 = 2,
    /// A switch met congestion.
    Ce = 3,
}

impl Ecn {
    const fn from_class(class: u8) -> Self {
        match class & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Which Internet protocol a packet travels in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// 20 octets of header.
    #[default]
    V4,
    /// 40 octets of header.
    V6,
}

impl IpVersion {
    /// Octets of the IP header.
    pub const fn header_len(self) -> usize {
        match self {
            Self::V4 => Ipv4View::LEN,
            Self::V6 => Ipv6View::LEN,
        }
    }
}

view! {
    /// An IPv4 header without options (RFC 791 §3.1).
    Ipv4View, 20
}

impl Ipv4View<'_> {
    /// 4 in a valid header.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// IHL: the header's length in words of 32 bits, options included.
    pub const fn header_words(&self) -> u8 {
        self.0[0] & 15
    }

    /// Differentiated services code point, 0 to 63 (RFC 2474 §3).
    pub const fn dscp(&self) -> u8 {
        self.0[1] >> 2
    }

    /// Explicit congestion notification.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_class(self.0[1])
    }

    /// Octets of header and payload.
    pub const fn total_length(&self) -> u16 {
        be16(self.0, 2)
    }

    /// Identification.
    pub const fn id(&self) -> u16 {
        be16(self.0, 4)
    }

    /// The flags "don't fragment" (bit 14) and "more fragments" (bit 13), and below them the fragment's offset in units of 8 octets.
    pub const fn fragment(&self) -> u16 {
        be16(self.0, 6)
    }

    /// Time to live.
    pub const fn ttl(&self) -> u8 {
        self.0[8]
    }

    /// Protocol of the payload; 17 for UDP.
    pub const fn protocol(&self) -> u8 {
        self.0[9]
    }

    /// Header checksum.
    pub const fn checksum(&self) -> u16 {
        be16(self.0, 10)
    }

    /// What the header checksum ought to be (RFC 1071).
    pub const fn right_checksum(&self) -> u16 {
        checksum(self.0)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(take::<20, 4>(self.0, 12))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from(take::<20, 4>(self.0, 16))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const fn low16(sum: u32) -> u16 {
    sum as u16
}

/// The checksum of an IPv4 header, whatever its checksum field holds.
pub(crate) const fn checksum(header: &[u8; 20]) -> u16 {
    let mut sum = 0;
    let mut at = 0;
    while at < header.len() {
        if at != 10 {
            sum += be16(header, at) as u32;
        }
        at += 2;
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !low16(sum)
}

view! {
    /// An IPv6 header (RFC 8200 §3).
    Ipv6View, 40
}

impl Ipv6View<'_> {
    /// 6 in a valid header.
    pub const fn version(&self) -> u8 {
        self.0[0] >> 4
    }

    /// The traffic class: code point and congestion notification.
    const fn class(&self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    /// Differentiated services code point.
    pub const fn dscp(&self) -> u8 {
        self.class() >> 2
    }

    /// Explicit congestion notification.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_class(self.class())
    }

    /// Flow label, 20 bits.
    pub const fn flow_label(&self) -> u32 {
        be32(self.0, 0) & 0x000f_ffff
    }

    /// Octets that follow the header.
    pub const fn payload_length(&self) -> u16 {
        be16(self.0, 4)
    }

    /// Protocol of what follows.
    pub const fn next_header(&self) -> u8 {
        self.0[6]
    }

    /// Hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.0[7]
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        Ipv6Addr::from(take::<40, 16>(self.0, 8))
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv6Addr {
        Ipv6Addr::from(take::<40, 16>(self.0, 24))
    }
}

/// What IPv4 says of a packet. It is emitted with the don't-fragment flag set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Differentiated services code point, 0 to 63; higher bits are not emitted.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
    /// Identification; the ICRC covers it.
    pub id: u16,
}

/// What IPv6 says of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
    /// Differentiated services code point, 0 to 63; higher bits are not emitted.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Hop limit.
    pub hop_limit: u8,
    /// Flow label, 20 bits; higher bits are not emitted.
    pub flow_label: u32,
}

/// What the Internet protocol says of a packet, in either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
}

impl Ip {
    /// From `source` to `destination` with code point 0, ECT(0) and 64 hops to live.
    pub const fn v4(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::V4(Ipv4 { source, destination, dscp: 0, ecn: Ecn::Ect0, ttl: 64, id: 0 })
    }

    /// From `source` to `destination` with code point 0, ECT(0) and 64 hops to live.
    pub const fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self::V6(Ipv6 { source, destination, dscp: 0, ecn: Ecn::Ect0, hop_limit: 64, flow_label: 0 })
    }

    /// Which version it is.
    pub const fn version(&self) -> IpVersion {
        match self {
            Self::V4(_) => IpVersion::V4,
            Self::V6(_) => IpVersion::V6,
        }
    }

    /// Source address.
    pub const fn source(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::V4(ip.source),
            Self::V6(ip) => IpAddr::V6(ip.source),
        }
    }

    /// Destination address.
    pub const fn destination(&self) -> IpAddr {
        match self {
            Self::V4(ip) => IpAddr::V4(ip.destination),
            Self::V6(ip) => IpAddr::V6(ip.destination),
        }
    }

    /// Explicit congestion notification.
    pub const fn ecn(&self) -> Ecn {
        match self {
            Self::V4(ip) => ip.ecn,
            Self::V6(ip) => ip.ecn,
        }
    }

    /// Differentiated services code point.
    pub const fn dscp(&self) -> u8 {
        match self {
            Self::V4(ip) => ip.dscp,
            Self::V6(ip) => ip.dscp,
        }
    }

    /// Octets of the header.
    pub const fn header_len(&self) -> usize {
        self.version().header_len()
    }

    /// Parses the IPv4 header at the front of `octets`; gives it and the octets that it carries, without what may
    /// follow the datagram (a short frame's padding). The checksum is not judged here.
    pub(crate) fn parse_v4(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let (view, _) = Ipv4View::split(octets)?;
        if view.version() != 4 {
            return Err(PacketError::IpVersion { got: view.version(), need: 4 });
        }
        if view.header_words() != 5 {
            return Err(PacketError::IpHeaderLength { got: view.header_words(), need: 5 });
        }
        if view.fragment() & FRAGMENT != 0 {
            return Err(PacketError::Fragment { got: view.fragment() });
        }
        if view.protocol() != UDP_PROTOCOL {
            return Err(PacketError::Protocol { got: view.protocol(), need: UDP_PROTOCOL });
        }
        let total = usize::from(view.total_length());
        let carried = octets.get(Ipv4View::LEN..total);
        let carried = carried.ok_or(PacketError::IpLength { got: total, need: octets.len() })?;
        let ip = Ipv4 {
            source: view.source(),
            destination: view.destination(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            ttl: view.ttl(),
            id: view.id(),
        };
        Ok((Self::V4(ip), carried))
    }

    /// The same for IPv6.
    pub(crate) fn parse_v6(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let (view, rest) = Ipv6View::split(octets)?;
        if view.version() != 6 {
            return Err(PacketError::IpVersion { got: view.version(), need: 6 });
        }
        if view.next_header() != UDP_PROTOCOL {
            return Err(PacketError::Protocol { got: view.next_header(), need: UDP_PROTOCOL });
        }
        let length = usize::from(view.payload_length());
        let carried = rest.get(..length).ok_or(PacketError::IpLength { got: length, need: rest.len() })?;
        let ip = Ipv6 {
            source: view.source(),
            destination: view.destination(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            hop_limit: view.hop_limit(),
            flow_label: view.flow_label(),
        };
        Ok((Self::V6(ip), carried))
    }

    /// Writes the header of a datagram that carries `carried` octets of UDP, its header included.
    #[expect(clippy::cast_possible_truncation, reason = "a packet has at most 4096 octets of payload")]
    pub(crate) fn emit(&self, writer: &mut Writer<'_>, carried: usize) {
        match self {
            Self::V4(ip) => {
                let mut header = [0; Ipv4View::LEN];
                let mut fields = Writer::new(&mut header);
                fields.put(&[0x45, ip.dscp << 2 | ip.ecn as u8]);
                fields.put16((Ipv4View::LEN + carried) as u16);
                fields.put16(ip.id);
                fields.put16(DONT_FRAGMENT);
                fields.put(&[ip.ttl, UDP_PROTOCOL, 0, 0]);
                fields.put(&ip.source.octets());
                fields.put(&ip.destination.octets());
                let sum = checksum(&header).to_be_bytes();
                header[10..12].copy_from_slice(&sum);
                writer.put(&header);
            }
            Self::V6(ip) => {
                let class = u32::from(ip.dscp << 2 | ip.ecn as u8);
                writer.put32(6 << 28 | class << 20 | ip.flow_label & 0x000f_ffff);
                writer.put16(carried as u16);
                writer.put(&[UDP_PROTOCOL, ip.hop_limit]);
                writer.put(&ip.source.octets());
                writer.put(&ip.destination.octets());
            }
        }
    }
}

impl fmt::Display for Ip {
    /// The addresses, and what a switch marked: `10.0.0.1 > 10.0.0.2`, `10.0.0.1 > 10.0.0.2 CE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source(), self.destination())?;
        if self.ecn() == Ecn::Ce { f.write_str(" CE") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_known_header() {
        // A header with a carry out of the sum, computed by hand from RFC 1071's rule.
        let header: [u8; 20] =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum(&header), 0xb861);
    }
}
