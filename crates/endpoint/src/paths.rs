//! Peers' addresses as the engine's opaque numbers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 addresses are their own numbers; IPv6 addresses are numbered as they become known.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    known: Vec<Ipv6Addr>,
    numbers: HashMap<Ipv6Addr, u32>,
}

const V6: u64 = 1 << 40;
/// No queue pair has this path.
const NOBODY: u64 = u64::MAX;
/// The most IPv6 addresses: strangers who send datagrams must not fill the memory.
const KNOWN_MAX: usize = 1 << 20;

impl Paths {
    /// The number of an address, if it is known.
    pub(crate) fn find(&self, address: IpAddr) -> u64 {
        match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                self.numbers.get(&address).map_or(NOBODY, |number| V6 | u64::from(*number))
            }
        }
    }

    /// The number of an address, which is known from now on; `None` where too many are.
    pub(crate) fn learn(&mut self, address: IpAddr) -> Option<u64> {
        if let IpAddr::V6(new) = address
            && !self.numbers.contains_key(&new)
        {
            if self.known.len() >= KNOWN_MAX {
                return None;
            }
            let number = u32::try_from(self.known.len()).ok()?;
            self.known.push(new);
            self.numbers.insert(new, number);
        }
        Some(self.find(address))
    }

    /// The address with this number.
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    pub(crate) fn address(&self, path: u64) -> Option<IpAddr> {
        if path < V6 {
            return Some(Ipv4Addr::from_bits(path as u32).into());
        }
        self.known.get((path ^ V6) as usize).copied().map(IpAddr::V6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_back_from_its_number_and_a_stranger_has_none() {
        let mut paths = Paths::default();
        for text in ["10.0.0.1", "255.255.255.255", "fd00::1", "fd00::2"] {
            let address: IpAddr = text.parse().unwrap();
            let path = paths.learn(address).unwrap();
            assert_eq!((paths.address(path), paths.find(address)), (Some(address), path));
        }
        assert_eq!(paths.address(paths.find("fd00::3".parse().unwrap())), None);
    }
}
