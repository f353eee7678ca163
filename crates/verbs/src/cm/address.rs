//! Addresses as sockets have them, and the ports of this process.

use super::id::Options;
use libc::{c_int, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage, socklen_t};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Mutex, PoisonError};

/// The octets of an address of this family; 0 of another one.
pub(crate) fn length(family: c_int) -> socklen_t {
    let octets = match family {
        libc::AF_INET => size_of::<sockaddr_in>(),
        libc::AF_INET6 => size_of::<sockaddr_in6>(),
        _ => 0,
    };
    socklen_t::try_from(octets).unwrap_or(0)
}

/// A family as addresses have it.
fn family(number: c_int) -> sa_family_t {
    sa_family_t::try_from(number).unwrap_or(0)
}

/// An address that a program names; an IPv4 one is told as one, also where it is written within IPv6.
pub(crate) unsafe fn read(address: *const sockaddr) -> Result<SocketAddr, c_int> {
    if address.is_null() {
        return Err(libc::EINVAL);
    }
    match c_int::from((*address).sa_family) {
        libc::AF_INET => {
            let it = address.cast::<sockaddr_in>().read_unaligned();
            let ip = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
            Ok((ip, u16::from_be(it.sin_port)).into())
        }
        libc::AF_INET6 => {
            let it = address.cast::<sockaddr_in6>().read_unaligned();
            let (ip, port) = (Ipv6Addr::from(it.sin6_addr.s6_addr), u16::from_be(it.sin6_port));
            Ok(match ip.to_canonical() {
                IpAddr::V4(ip) => (ip, port).into(),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, port, it.sin6_flowinfo, it.sin6_scope_id).into(),
            })
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// Puts an address into a place that has room for any.
pub(crate) unsafe fn write(place: *mut sockaddr_storage, address: SocketAddr) {
    place.write(std::mem::zeroed());
    match address {
        SocketAddr::V4(address) => place.cast::<sockaddr_in>().write(sockaddr_in {
            sin_family: family(libc::AF_INET),
            sin_port: address.port().to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
            sin_zero: [0; 8],
        }),
        SocketAddr::V6(address) => place.cast::<sockaddr_in6>().write(sockaddr_in6 {
            sin6_family: family(libc::AF_INET6),
            sin6_port: address.port().to_be(),
            sin6_flowinfo: address.flowinfo(),
            sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
            sin6_scope_id: address.scope_id(),
        }),
    }
}

/// The ports that ids of this process are bound to.
static BOUND: Mutex<Vec<(SocketAddr, Options)>> = Mutex::new(Vec::new());

/// The first port that is given to who names none.
const FREE: u16 = 1 << 15;

/// An address with a port, until it is dropped.
pub(crate) struct Bound {
    address: SocketAddr,
    /// Whether it is of the port space for datagrams.
    is_for_datagrams: bool,
}

impl Bound {
    /// Binds to a port, or to a free one where it is 0.
    pub(crate) fn new(address: SocketAddr, options: Options) -> Result<Self, c_int> {
        let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
        // IPv6's any is IPv4's as well, where it does not say otherwise.
        let reaches = |one: IpAddr, options: &Options, other: IpAddr| {
            let of_both = one.is_ipv6() && !options.is_of_one_family;
            one.is_unspecified() && (of_both || one.is_ipv4() == other.is_ipv4())
        };
        let meets = |port: u16| {
            bound.iter().any(|(other, others)| {
                let (one, two) = (address.ip(), other.ip());
                let is_one_space = options.is_for_datagrams == others.is_for_datagrams;
                let overlap = one == two || reaches(one, &options, two) || reaches(two, others, one);
                other.port() == port && is_one_space && overlap && !(options.is_shared && others.is_shared)
            })
        };
        let port = match address.port() {
            0 => {
                let begin = random();
                let mut all = (0..FREE).map(|more| FREE | begin.wrapping_add(more));
                all.find(|port| !meets(*port)).ok_or(libc::EADDRNOTAVAIL)?
            }
            port if meets(port) => return Err(libc::EADDRINUSE),
            port => port,
        };
        let address = SocketAddr::new(address.ip(), port);
        bound.push((address, options));
        Ok(Self { address, is_for_datagrams: options.is_for_datagrams })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn place(&self, bound: &[(SocketAddr, Options)]) -> Option<usize> {
        let is_this = |(address, options): &(SocketAddr, Options)| {
            *address == self.address && options.is_for_datagrams == self.is_for_datagrams
        };
        bound.iter().position(is_this)
    }

    /// At another address from now on: a device's, where it was at any.
    pub(crate) fn moved(&mut self, to: IpAddr) {
        let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.place(&bound);
        self.address.set_ip(to);
        if let Some(place) = place {
            bound[place].0 = self.address;
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let mut bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = self.place(&bound) {
            bound.swap_remove(place);
        }
    }
}

/// A number that other processes do not begin with as well.
fn random() -> u16 {
    use std::hash::{BuildHasher, RandomState};
    let [low, high, ..] = RandomState::new().hash_one(0).to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_bound_to_once_at_an_address_and_not_beside_any_unless_both_share_it() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap_or(([0; 4], 0).into());
        let (alone, shared) = (Options::default(), Options { is_shared: true, ..Options::default() });
        let first = Bound::new(at("10.1.0.1:7000"), alone);
        assert_eq!(Bound::new(at("10.1.0.1:7000"), shared).err(), Some(libc::EADDRINUSE));
        assert_eq!(Bound::new(at("0.0.0.0:7000"), alone).err(), Some(libc::EADDRINUSE));
        assert!(Bound::new(at("10.1.0.2:7000"), alone).is_ok());
        drop(first);
        let both = [(); 2].map(|()| Bound::new(at("0.0.0.0:7000"), shared));
        assert!(both.iter().all(Result::is_ok));
        let datagrams = Options { is_for_datagrams: true, ..alone };
        let others = Bound::new(at("10.1.0.1:7000"), datagrams);
        assert!(others.is_ok() && Bound::new(at("10.1.0.1:7000"), datagrams).is_err());
        drop(others);
        assert!(Bound::new(at("10.1.0.1:7000"), alone).is_err(), "it is another port that is free again");
        assert!(Bound::new(at("10.1.0.1:0"), alone).is_ok_and(|it| it.address().port() >= FREE));
    }

    #[test]
    fn any_address_of_ipv6_takes_the_port_of_ipv4_where_it_does_not_say_that_it_leaves_it() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap_or(([0; 4], 0).into());
        let (of_both, of_one) =
            (Options::default(), Options { is_of_one_family: true, ..Options::default() });
        let first = Bound::new(at("0.0.0.0:7001"), of_both);
        assert_eq!(Bound::new(at("[::]:7001"), of_both).err(), Some(libc::EADDRINUSE));
        let second = Bound::new(at("[::]:7001"), of_one);
        assert!(first.is_ok() && second.is_ok());
        drop(first);
        assert!(Bound::new(at("10.1.0.1:7001"), of_both).is_ok());
        assert_eq!(Bound::new(at("[2001:db8::1]:7001"), of_both).err(), Some(libc::EADDRINUSE));
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for text in ["10.0.0.1:7471", "[2001:db8::1]:7471"] {
            let address = text.parse().unwrap_or(([0; 4], 0).into());
            // SAFETY: the place has room for any.
            let read = unsafe {
                let mut place = std::mem::zeroed();
                write(&raw mut place, address);
                read((&raw const place).cast())
            };
            assert_eq!(read.map(|it| it.to_string()).as_deref(), Ok(text));
        }
    }
}
