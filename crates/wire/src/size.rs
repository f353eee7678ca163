//! How many octets a packet is on the wire, without making it.

use crate::bth::BthView;
use crate::ethernet::{EthernetView, FCS_LEN, MIN_FRAME};
use crate::icrc::ICRC_LEN;
use crate::ip::{IpVersion, Ipv4View, Ipv6View};
use crate::layout::{Cc, Layout};
use crate::opcode::Opcode;
use crate::udp::UdpView;

/// What every packet has but for the IP header: Ethernet, UDP, BTH, ICRC and frame check sequence.
const FIXED: usize = EthernetView::LEN + UdpView::LEN + BthView::LEN + ICRC_LEN + FCS_LEN;

/// For each layout and opcode, the octets of [`overhead`] over IPv4, the words of a CC header excepted.
#[expect(clippy::cast_possible_truncation, reason = "asserted at compile time")]
const OVER_IPV4: [[u8; 256]; 6] = {
    let layouts =
        [Layout::Standard, Layout::Irn, Layout::Srnic, Layout::Ndp, Layout::Homa, Layout::Cc(EMPTY)];
    let mut table = [[0; 256]; 6];
    let mut row = 0;
    while row < layouts.len() {
        let mut code = 0;
        while code < 256 {
            let octets = FIXED + Ipv4View::LEN + layouts[row].extension_len(Opcode(code as u8));
            assert!(octets <= u8::MAX as usize);
            table[row][code] = octets as u8;
            code += 1;
        }
        row += 1;
    }
    table
};

const EMPTY: Cc = match Cc::new(false, false, 0) {
    Some(cc) => cc,
    None => panic!("no words are fewer than 16"),
};

/// Octets of a frame with `opcode` but for payload and pad: untagged Ethernet header, IP, UDP, BTH, the layout's words,
/// extension headers, ICRC and frame check sequence.
///
/// A frame is [`frame_len`] octets long, which is this plus the payload padded to words, or the shortest frame.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the sum is below 300")]
pub const fn overhead(opcode: Opcode, layout: Layout, version: IpVersion) -> u16 {
    let row = match layout {
        Layout::Standard => 0,
        Layout::Irn => 1,
        Layout::Srnic => 2,
        Layout::Ndp => 3,
        Layout::Homa => 4,
        Layout::Cc(_) => 5,
    };
    let cc = match layout {
        Layout::Cc(_) => 4 * layout.law_words(opcode),
        _ => 0,
    };
    let ip = match version {
        IpVersion::V4 => 0,
        IpVersion::V6 => Ipv6View::LEN - Ipv4View::LEN,
    };
    OVER_IPV4[row][opcode.0 as usize] as u16 + (cc + ip) as u16
}

/// Octets of an untagged frame with `opcode` and `payload` octets, frame check sequence included, at least 64.
///
/// On the link it takes [`WIRE_OVERHEAD`](crate::ethernet::WIRE_OVERHEAD) octet times more.
#[inline]
pub const fn frame_len(opcode: Opcode, layout: Layout, version: IpVersion, payload: u16) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "64")]
    const SHORTEST: u32 = MIN_FRAME as u32;
    let len = overhead(opcode, layout, version) as u32 + (payload as u32).next_multiple_of(4);
    if len < SHORTEST { SHORTEST } else { len }
}
