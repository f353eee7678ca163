//! Ethernet II frames and the 802.1Q tag.

use crate::octets::{Writer, be16, take, view};
use core::fmt;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of an 802.1Q tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of MAC control frames, PAUSE among them.
pub const MAC_CONTROL: u16 = 0x8808;

/// Octets of the frame check sequence that ends a frame; network devices add and remove it.
pub const FCS_LEN: usize = 4;
/// The shortest frame, frame check sequence included (IEEE 802.3 §4A.4.2); shorter ones are padded.
pub const MIN_FRAME: usize = 64;
/// Octet times of a link that a frame takes besides itself: preamble and start delimiter 8, gap 12.
pub const WIRE_OVERHEAD: u32 = 8 + 12;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

view! {
    /// The Ethernet II header: two addresses and a type.
    EthernetView, 14
}

impl EthernetView<'_> {
    /// Destination address.
    pub const fn destination(&self) -> Mac {
        Mac(take(self.0, 0))
    }

    /// Source address.
    pub const fn source(&self) -> Mac {
        Mac(take(self.0, 6))
    }

    /// What follows: an EtherType, or below 0x0600 a length (which is no Ethernet II).
    pub const fn ether_type(&self) -> u16 {
        be16(self.0, 12)
    }
}

view! {
    /// What follows EtherType 0x8100: tag control information and the EtherType proper (IEEE 802.1Q §9.6).
    VlanView, 4
}

impl VlanView<'_> {
    /// Priority code point, drop eligible indicator and VLAN identifier.
    pub const fn tag(&self) -> Vlan {
        let control = be16(self.0, 0);
        Vlan { priority: (control >> 13) as u8, drop_eligible: control & 0x1000 != 0, id: control & 0x0fff }
    }

    /// The EtherType of what follows the tag.
    pub const fn ether_type(&self) -> u16 {
        be16(self.0, 2)
    }
}

/// The addresses of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ethernet {
    /// Destination address.
    pub destination: Mac,
    /// Source address.
    pub source: Mac,
}

/// An 802.1Q tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vlan {
    /// Priority code point, 0 to 7; higher bits are not emitted. PFC acts on it.
    pub priority: u8,
    /// Whether a switch may drop it sooner than others.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095; higher bits are not emitted.
    pub id: u16,
}

impl Vlan {
    /// Octets that a tag adds to a frame.
    pub const LEN: usize = 4;

    const fn control(self) -> u16 {
        (self.priority as u16 & 7) << 13 | (self.drop_eligible as u16) << 12 | self.id & 0x0fff
    }
}

/// Writes the header of a frame: addresses, tag, type.
pub(crate) fn emit(writer: &mut Writer<'_>, ethernet: Ethernet, vlan: Option<Vlan>, ether_type: u16) {
    writer.put(&ethernet.destination.0);
    writer.put(&ethernet.source.0);
    if let Some(tag) = vlan {
        writer.put16(VLAN);
        writer.put16(tag.control());
    }
    writer.put16(ether_type);
}
