//! The invariant CRC: a CRC-32 over all that does not change on the way (IBTA Annex A17, Vol 1 §7.8.1).
//!
//! It covers eight octets of ones (in place of a local route header), the IP header, UDP, BTH and everything up to
//! the last octet of pad. What routers rewrite counts as ones: of IPv4 type of service, time to live and checksum;
//! of IPv6 traffic class, flow label and hop limit; the UDP checksum; of the BTH the octet with FECN and BECN; and
//! in layout `cc` the whole CC header. It is stored least significant octet first.

use crate::ip::{Ip, IpVersion, Ipv6View};
use crate::layout::LayoutWords;
use crate::octets::Writer;
use crate::udp::{self, UdpView};
use crate::{BthView, PacketError};
use crc32fast::Hasher;

/// Octets of the ICRC.
pub const ICRC_LEN: usize = 4;

/// The ones that stand for a local route header.
const ROUTE: usize = 8;
/// The most octets that hold masked fields: up to the end of a CC header.
const HEAD_MAX: usize = ROUTE + Ipv6View::LEN + UdpView::LEN + BthView::LEN + 4 * LayoutWords::MAX;

/// The ICRC of `datagram`, which reaches from the first octet of the IP header to the last one before the ICRC.
///
/// The `cc` octets behind the BTH count as ones; at most 64.
///
/// # Errors
/// [`PacketError::Truncated`] when the datagram is shorter than the headers up to there.
pub fn icrc(datagram: &[u8], version: IpVersion, cc: usize) -> Result<u32, PacketError> {
    let head_len = version.header_len() + UdpView::LEN + BthView::LEN + cc.min(4 * LayoutWords::MAX);
    let Some((front, rest)) = datagram.split_at_checked(head_len) else {
        return Err(PacketError::Truncated { got: datagram.len(), need: head_len });
    };
    let mut head = [0xff; HEAD_MAX];
    head[ROUTE..ROUTE + head_len].copy_from_slice(front);
    Ok(finish(&mut head, version, head_len, cc, rest))
}

/// The ICRC of a packet from `ip` and `source_port` whose UDP payload is `transport`, its last four octets (the
/// ICRC's own place) left out.
///
/// # Errors
/// As [`icrc`].
pub(crate) fn icrc_of_payload(
    ip: &Ip,
    source_port: u16,
    transport: &[u8],
    cc: usize,
) -> Result<u32, PacketError> {
    let Some((front, rest)) = transport.split_at_checked(BthView::LEN + cc) else {
        return Err(PacketError::Truncated { got: transport.len(), need: BthView::LEN + cc });
    };
    let mut head = [0xff; HEAD_MAX];
    let mut writer = Writer::new(&mut head[ROUTE..]);
    let length = UdpView::LEN + transport.len() + ICRC_LEN;
    ip.emit(&mut writer, length);
    udp::emit(&mut writer, source_port, length);
    writer.put(front);
    let head_len = ip.header_len() + UdpView::LEN + front.len();
    Ok(finish(&mut head, ip.version(), head_len, cc, rest))
}

/// Puts ones in place of the fields that change, and runs the CRC over head and rest.
fn finish(head: &mut [u8; HEAD_MAX], version: IpVersion, head_len: usize, cc: usize, rest: &[u8]) -> u32 {
    let ip = &mut head[ROUTE..];
    match version {
        IpVersion::V4 => {
            ip[1] = 0xff;
            ip[8] = 0xff;
            ip[10..12].fill(0xff);
        }
        IpVersion::V6 => {
            ip[0] |= 0x0f;
            ip[1..4].fill(0xff);
            ip[7] = 0xff;
        }
    }
    let udp = &mut ip[version.header_len()..];
    udp[6..8].fill(0xff);
    let bth = &mut udp[UdpView::LEN..];
    bth[4] = 0xff;
    bth[BthView::LEN..][..cc.min(4 * LayoutWords::MAX)].fill(0xff);
    let mut hasher = Hasher::new();
    hasher.update(&head[..ROUTE + head_len]);
    hasher.update(rest);
    hasher.finalize()
}
