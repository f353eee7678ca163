//! UDP, whose checksum RoCEv2 leaves zero: the ICRC protects the packet.

use crate::PacketError;
use crate::octets::{Writer, be16, view};

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

view! {
    /// A UDP header (RFC 768).
    UdpView, 8
}

impl UdpView<'_> {
    /// Source port: RoCEv2's entropy for equal-cost paths.
    pub const fn source_port(&self) -> u16 {
        be16(self.0, 0)
    }

    /// Destination port.
    pub const fn destination_port(&self) -> u16 {
        be16(self.0, 2)
    }

    /// Octets of header and payload.
    pub const fn length(&self) -> u16 {
        be16(self.0, 4)
    }

    /// Checksum; zero for none. RoCEv2 receivers ignore it.
    pub const fn checksum(&self) -> u16 {
        be16(self.0, 6)
    }
}

/// Parses the UDP datagram that is all of `octets`; gives its source port and what it carries.
pub(crate) fn parse(octets: &[u8]) -> Result<(u16, &[u8]), PacketError> {
    let (view, carried) = UdpView::split(octets)?;
    if view.destination_port() != ROCE_PORT {
        return Err(PacketError::UdpPort { got: view.destination_port(), need: ROCE_PORT });
    }
    if usize::from(view.length()) != octets.len() {
        return Err(PacketError::UdpLength { got: view.length().into(), need: octets.len() });
    }
    Ok((view.source_port(), carried))
}

/// Writes the header of a datagram of `length` octets, header included.
#[expect(clippy::cast_possible_truncation, reason = "a packet has at most 4096 octets of payload")]
pub(crate) fn emit(writer: &mut Writer<'_>, source_port: u16, length: usize) {
    writer.put16(source_port);
    writer.put16(ROCE_PORT);
    writer.put16(length as u16);
    writer.put16(0);
}
