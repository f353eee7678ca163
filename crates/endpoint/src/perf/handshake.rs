//! What perftest's two ends tell each other before and after the data, octet by octet.
//!
//! Seen between releases 4.5 of it, which call themselves version 6.06. In each step the client speaks first. Newer ones
//! ask a peer of version 6.28 or later for more parameters, and go without them when they hear of an older one: so
//! we say 6.06.

use crate::device::Mtu;
use roci_units::{Psn, Qpn};
use std::net::{IpAddr, Ipv6Addr};

/// What we say that we are.
pub(crate) const VERSION: &str = "6.06";
/// The oldest version that we talk to.
const OLDEST: f64 = 5.70;
/// Octets of a version.
pub(crate) const VERSION_LEN: usize = 16;
/// Octets of a key as text, with the zero at its end.
pub(crate) const TEXT_LEN: usize = 108;
/// Octets of a key as a structure, as it is told over a connection of RDMA-CM.
pub(crate) const STRUCT_LEN: usize = 56;
/// What each says last, over TCP.
pub(crate) const DONE: &[u8; 5] = b"done\0";

/// What a peer has to know of one queue pair and the memory that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// READs and atomics that its owner takes as responder.
    pub out_reads: u32,
    /// The queue pair.
    pub qpn: Qpn,
    /// The PSN of the first packet that its owner sends.
    pub psn: Psn,
    /// The key of the memory; 0 in tests of SEND.
    pub rkey: u32,
    /// Where the memory begins.
    pub address: u64,
    /// The owner's address.
    pub gid: Ipv6Addr,
}

impl Key {
    /// That of no queue pair: what is told where only the telling matters.
    pub(crate) const NONE: Self = Self {
        out_reads: 0,
        qpn: Qpn::new(0),
        psn: Psn::new(0),
        rkey: 0,
        address: 0,
        gid: Ipv6Addr::UNSPECIFIED,
    };

    /// The owner's address.
    pub fn peer(&self) -> IpAddr {
        self.gid.to_canonical()
    }

    /// As text: fields in hexadecimal, a colon after each, a zero at the end.
    pub(crate) fn to_text(self) -> Vec<u8> {
        let Self { out_reads, qpn, psn, rkey, address, gid } = self;
        let (qpn, psn) = (qpn.get(), psn.get());
        let mut text = format!("0000:{out_reads:04x}:{qpn:06x}:{psn:06x}:{rkey:08x}:{address:016x}:");
        for octet in gid.octets() {
            text.push_str(&format!("{octet:02x}:"));
        }
        text.push_str("00000000:\0");
        text.into_bytes()
    }

    /// From text.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = text.split(':').map(|field| u64::from_str_radix(field, 16).ok());
        let mut number = || fields.next().flatten();
        let mut narrow = || number().and_then(|value| u32::try_from(value).ok());
        let (_lid, out_reads, qpn, psn, rkey) = (narrow()?, narrow()?, narrow()?, narrow()?, narrow()?);
        let address = number()?;
        let mut gid = [0; 16];
        for octet in &mut gid {
            *octet = u8::try_from(number()?).ok()?;
        }
        Some(Self {
            out_reads,
            qpn: Qpn::new(qpn & 0xff_ffff),
            psn: Psn::new(psn & 0xff_ffff),
            rkey,
            address,
            gid: gid.into(),
        })
    }

    /// As a structure of big-endian words: LID, READs, number, PSN, key, a gap, address, GID, SRQ, index of the GID.
    pub(crate) fn to_struct(self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(STRUCT_LEN);
        for word in [0, self.out_reads, self.qpn.get(), self.psn.get(), self.rkey, 0] {
            octets.extend_from_slice(&word.to_be_bytes());
        }
        octets.extend_from_slice(&self.address.to_be_bytes());
        octets.extend_from_slice(&self.gid.octets());
        octets.extend_from_slice(&[0; 8]);
        octets
    }

    /// From a structure.
    pub(crate) fn from_struct(octets: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*octets.get(at..)?.first_chunk()?));
        Some(Self {
            out_reads: word(4)?,
            qpn: Qpn::new(word(8)? & 0xff_ffff),
            psn: Psn::new(word(12)? & 0xff_ffff),
            rkey: word(16)?,
            address: u64::from_be_bytes(*octets.get(24..)?.first_chunk()?),
            gid: (*octets.get(32..)?.first_chunk::<16>()?).into(),
        })
    }
}

/// Our version, padded with zeros.
pub(crate) fn version() -> [u8; VERSION_LEN] {
    let mut octets = [0; VERSION_LEN];
    octets[..VERSION.len()].copy_from_slice(VERSION.as_bytes());
    octets
}

/// Whether these octets are a number, as all versions are: digits, and a point perhaps.
pub(crate) fn is_number(octets: &[u8]) -> bool {
    let is_of_one = octets.iter().all(|octet| octet.is_ascii_digit() || *octet == b'.');
    is_of_one && std::str::from_utf8(octets).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// What the peer says that it is; `Err` with it where we do not understand it.
pub(crate) fn judge_version(octets: &[u8]) -> Result<String, String> {
    // What stands behind the zero is no part of it, see `terms`.
    let text = octets.split(|octet| *octet == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text).into_owned();
    match text.parse::<f64>() {
        Ok(number) if number >= OLDEST => Ok(text),
        _ => Err(text),
    }
}

/// An MTU as it is told: the number of verbs as a digit, and a zero.
pub(crate) fn mtu_text(mtu: Mtu) -> [u8; 2] {
    let number = Mtu::ALL.iter().position(|known| *known == mtu).unwrap_or(0);
    [b'1' + u8::try_from(number).unwrap_or(0), 0]
}

/// The MTU that was told.
pub(crate) fn mtu_from_text(text: &[u8]) -> Option<Mtu> {
    let digit = text.first()?.checked_sub(b'1')?;
    Mtu::ALL.get(usize::from(digit)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_reads_as_perftest_writes_it() {
        let told = b"0000:0001:000011:e27bcb:00000322:00007f9f1da38000:\
                     00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:0b:00000000:\0";
        assert_eq!(told.len(), TEXT_LEN);
        let key = Key::from_text(told).unwrap();
        assert_eq!((key.qpn.get(), key.psn.get(), key.rkey), (0x11, 0xe2_7bcb, 0x322));
        assert_eq!((key.address, key.peer()), (0x7f9f_1da3_8000, "10.77.0.11".parse().unwrap()));
        assert_eq!(key.to_text(), told);
    }

    #[test]
    fn versions_older_than_ours_can_follow_are_refused() {
        assert_eq!(judge_version(&version()), Ok("6.06".to_owned()));
        assert_eq!(judge_version(b"6.28\0\0\0\0"), Ok("6.28".to_owned()));
        assert_eq!(judge_version(b"5.30\0"), Err("5.30".to_owned()));
        assert_eq!(judge_version(b"\xff\xff"), Err("\u{fffd}\u{fffd}".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_told_is_what_is_heard(
            out_reads in 0u32..0x10000, qpn in 0u32..1 << 24, psn in 0u32..1 << 24, rkey: u32, address: u64, gid: u128,
        ) {
            let (qpn, psn) = (Qpn::new(qpn), Psn::new(psn));
            let key = Key { out_reads, qpn, psn, rkey, address, gid: gid.into() };
            prop_assert_eq!(key.to_text().len(), TEXT_LEN);
            prop_assert_eq!(Key::from_text(&key.to_text()), Some(key));
            prop_assert_eq!(key.to_struct().len(), STRUCT_LEN);
            prop_assert_eq!(Key::from_struct(&key.to_struct()), Some(key));
        }

        #[test]
        fn whatever_is_heard_makes_no_panic(octets in proptest::collection::vec(any::<u8>(), 0..150)) {
            let _ = (Key::from_text(&octets), Key::from_struct(&octets), judge_version(&octets));
            let _ = mtu_from_text(&octets);
        }
    }

    #[test]
    fn mtus_are_told_by_the_numbers_of_verbs() {
        assert_eq!((mtu_text(Mtu::Mtu256), mtu_text(Mtu::Mtu4096)), (*b"1\0", *b"5\0"));
        for mtu in Mtu::ALL {
            assert_eq!(mtu_from_text(&mtu_text(mtu)), Some(mtu));
        }
        assert_eq!((mtu_from_text(b"0\0"), mtu_from_text(b"6\0"), mtu_from_text(b"")), (None, None, None));
    }
}
