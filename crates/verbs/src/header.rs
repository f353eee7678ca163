//! The 40 octets before a datagram: of IPv6 its header, of IPv4 its header in the last 20 (IBTA Annex A17 §4.5.2).

use crate::abi::GRH;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const OCTETS: usize = GRH as usize;

/// As far as the endpoint tells: addresses, UDP, and the length of what follows the 20 or 40 octets.
pub(crate) fn made(source: IpAddr, destination: IpAddr, length: u16) -> [u8; OCTETS] {
    const UDP: u8 = 17;
    const HOPS: u8 = 64;
    let mut octets = [0; OCTETS];
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            octets[20] = 0x45;
            octets[22..24].copy_from_slice(&length.saturating_add(20).to_be_bytes());
            [octets[28], octets[29]] = [HOPS, UDP];
            octets[32..36].copy_from_slice(&source.octets());
            octets[36..].copy_from_slice(&destination.octets());
            let words = octets[20..].chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
            let sum: u32 = words.sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            #[expect(clippy::cast_possible_truncation, reason = "the carry is added")]
            octets[30..32].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        (source, destination) => {
            let v6 = |address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            octets[0] = 0x60;
            octets[4..6].copy_from_slice(&length.to_be_bytes());
            [octets[6], octets[7]] = [UDP, HOPS];
            octets[8..24].copy_from_slice(&v6(source).octets());
            octets[24..].copy_from_slice(&v6(destination).octets());
        }
    }
    octets
}

pub(crate) fn source(octets: &[u8; OCTETS]) -> IpAddr {
    let part = |at: usize| octets[at];
    if octets[0] >> 4 == 6 {
        Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|place| part(8 + place))).into()
    } else {
        Ipv4Addr::from(std::array::from_fn::<u8, 4, _>(|place| part(32 + place))).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_addresses_where_the_annex_puts_them_and_a_checksum_that_is_right() {
        let [near, far] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let octets = made(near, far, 100);
        assert_eq!((source(&octets), &octets[..20]), (near, &[0; 20][..]));
        let sum: u32 = octets[20..].chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        let near = IpAddr::V6(Ipv6Addr::LOCALHOST);
        let octets = made(near, near, 100);
        assert_eq!((source(&octets), octets[0], &octets[4..6]), (near, 0x60, &[0, 100][..]));
    }
}
