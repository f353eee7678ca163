//! The addresses of this host by which devices go: what names one, which leads to a peer, and which of several interfaces that share a
//! link-local one is meant.

use crate::io::sys;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// The address that a device is named by: an address of this host itself, a link-local one perhaps with its interface
/// (`fe80::1%eth0`), or the name of an interface, for its first IPv4 address or else its first that reaches further than the link.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where no interface has that name or no address; where an interface is named with a link-local address
/// that another has as well, [`io::ErrorKind::Unsupported`]: a device is its address alone, and that is the first's; where none is
/// named with such an address, [`io::ErrorKind::InvalidInput`].
pub fn address_of(name: &str) -> io::Result<IpAddr> {
    let known = sys::interfaces()?;
    if let Ok(address) = name.parse::<IpAddr>() {
        return unambiguous(&known, address.to_canonical());
    }
    if let Some((address, interface)) = name.split_once('%')
        && let Ok(address) = address.parse()
    {
        return whose(&known, address, interface);
    }
    first(known.iter().filter(|it| it.name.to_bytes() == name.as_bytes())).ok_or_else(|| {
        let text = format!("no interface `{name}` has an address{}", listed_by_interface(&known));
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// An address of this host, which several interfaces have perhaps, with a name for it that one has alone.
fn unambiguous(known: &[sys::Interface], address: IpAddr) -> io::Result<IpAddr> {
    let mut owners = known.iter().filter(|it| it.address == address && it.scope != 0);
    if let (Some(first), Some(other)) = (owners.next(), owners.next()) {
        let (first, other) = (first.name.to_string_lossy(), other.name.to_string_lossy());
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{address} is an address of {first} and of {other}: name the interface as well, as in {address}%{first}"
            ),
        ));
    }
    Ok(address)
}

/// An address that is to be this interface's.
fn whose(known: &[sys::Interface], address: IpAddr, interface: &str) -> io::Result<IpAddr> {
    let is_named = |it: &sys::Interface| it.name.to_bytes() == interface.as_bytes();
    let mut owners = known.iter().filter(|it| it.address == address);
    match owners.next() {
        Some(first) if is_named(first) => Ok(address),
        Some(first) if owners.any(is_named) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "{address} is also an address of {}, and a device is its address alone: take another address of {interface}",
                first.name.to_string_lossy()
            ),
        )),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no interface `{interface}` has the address {address}"),
        )),
    }
}

/// That an address is none of this host's, and which are.
pub(crate) fn foreign() -> String {
    let known = sys::interfaces().unwrap_or_default();
    format!("is no address of this host{}", listed(&known))
}

/// The most addresses that are listed.
const LISTED_MAX: usize = 8;

/// The interfaces of this host with their addresses: a device is one of either, whatever an RDMA NIC may be called.
fn listed_by_interface(known: &[sys::Interface]) -> String {
    let name = |it: &sys::Interface| format!("{} ({})", it.name.to_string_lossy(), it.address);
    let names: Vec<_> = known.iter().take(LISTED_MAX).map(name).collect();
    match (names.is_empty(), known.len() - names.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("; this host has {}", names.join(", ")),
        (false, more) => {
            format!("; this host has {} and {more} more (`ip address` lists them)", names.join(", "))
        }
    }
}

/// The addresses of this host as devices are named by them; empty where there is none.
fn listed(known: &[sys::Interface]) -> String {
    let name = |it: &sys::Interface| match it.scope {
        0 => it.address.to_string(),
        _ => format!("{}%{}", it.address, it.name.to_string_lossy()),
    };
    let (names, more): (Vec<_>, _) =
        (known.iter().take(LISTED_MAX).map(name).collect(), known.len().saturating_sub(LISTED_MAX));
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(", which has {}", names.join(", ")),
        (false, _) => format!(", which has {} and {more} more (`ip address` lists them)", names.join(", ")),
    }
}

/// The address of the first device of this host that is not a loopback.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is none.
pub fn first_address() -> io::Result<IpAddr> {
    let known = sys::interfaces()?;
    first(known.iter().filter(|it| !it.is_loopback))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this host has no address but the loopback's"))
}

/// All addresses of this host by which devices go, the loopback's last. Link-local ones are left out, which tell nothing without their
/// interface.
///
/// # Errors
/// What the system says.
pub fn all() -> io::Result<Vec<IpAddr>> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for it in sys::interfaces()?.iter().filter(|it| it.scope == 0) {
        let of = if it.is_loopback { &mut near } else { &mut far };
        if !of.contains(&it.address) {
            of.push(it.address);
        }
    }
    far.append(&mut near);
    Ok(far)
}

/// The addresses of a host, in the order in which the system would have them tried, each once. An IPv4 address is told as one, also
/// where it was written within IPv6 (`::ffff:10.0.0.1`): a device is at the one or the other.
///
/// # Errors
/// What the system says where it knows none; [`io::ErrorKind::NotFound`] where it says nothing.
pub fn addresses_of_host(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        let address = match address.ip().to_canonical() {
            IpAddr::V4(ip) => (ip, port).into(),
            IpAddr::V6(_) => address,
        };
        if !all.contains(&address) {
            all.push(address);
        }
    }
    if all.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(all) }
}

/// Those of [`addresses_of_host`] that may be reached from `device`, where one is given: of a host with addresses of both families, the
/// ones of the device's. Where it has none of these all are told, and trying them says what is wrong.
///
/// # Errors
/// As [`addresses_of_host`].
pub fn addresses_of_host_from(device: Option<IpAddr>, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut all = addresses_of_host(host, port)?;
    if let Some(device) = device {
        keep_family_of(device, &mut all);
    }
    Ok(all)
}

fn keep_family_of(device: IpAddr, all: &mut Vec<SocketAddr>) {
    let is_of_it = |address: &SocketAddr| address.is_ipv4() == device.is_ipv4();
    if all.iter().any(is_of_it) {
        all.retain(is_of_it);
    }
}

/// The address of this host from which `peer` is reached.
///
/// # Errors
/// What the operating system says where no way leads there; [`io::ErrorKind::InvalidInput`] for a link-local address without its
/// interface, and [`io::ErrorKind::Unsupported`] where ours is link-local and another interface has it too, before that one.
pub fn toward(peer: SocketAddr) -> io::Result<IpAddr> {
    is_whole(peer)?;
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = std::net::UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    here(socket.local_addr()?)
}

/// The octets of the longest IP datagrams on the path to `peer`, from the device at an address if one is given: what the interface
/// takes, or less where the route says so or a router on the way has told it.
///
/// # Errors
/// What the operating system says where no way leads there.
pub(crate) fn path_mtu(device: Option<IpAddr>, peer: SocketAddr) -> io::Result<u32> {
    let scope = if let SocketAddr::V6(v6) = peer { v6.scope_id() } else { 0 };
    let from = match device {
        Some(IpAddr::V4(ip)) => (ip, 0).into(),
        Some(IpAddr::V6(ip)) => {
            SocketAddrV6::new(ip, 0, 0, if ip.is_unicast_link_local() { scope } else { 0 }).into()
        }
        None if peer.is_ipv4() => SocketAddr::from(([0; 4], 0)),
        None => SocketAddr::from(([0; 16], 0)),
    };
    let socket = std::net::UdpSocket::bind(from)?;
    socket.connect(peer)?;
    let told = match peer {
        SocketAddr::V4(_) => sys::option(&socket, libc::IPPROTO_IP, libc::IP_MTU)?,
        SocketAddr::V6(_) => sys::option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    let path = u32::try_from(told).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(sys::mtu_of(socket.local_addr()?.ip()).map_or(path, |interface| interface.min(path)))
}

/// The device's address of a socket of this host.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] for a link-local address that another interface has before the socket's: a device is its address
/// alone.
pub(crate) fn here(local: SocketAddr) -> io::Result<IpAddr> {
    match local {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => of_link(&sys::interfaces()?, v6),
        _ => Ok(local.ip().to_canonical()),
    }
}

/// A link-local address, which is to be that of the interface by whose number it is told.
fn of_link(known: &[sys::Interface], local: SocketAddrV6) -> io::Result<IpAddr> {
    let address = IpAddr::from(*local.ip());
    let is_its = |it: &&sys::Interface| it.address == address && it.scope == local.scope_id();
    match known.iter().find(is_its) {
        Some(interface) => whose(known, address, &interface.name.to_string_lossy()),
        // One that was taken away since then; opening it says so.
        None => Ok(address),
    }
}

/// Whether a peer's address says all that it takes to find it.
pub(crate) fn is_whole(peer: SocketAddr) -> io::Result<()> {
    match peer {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            let ip = v6.ip();
            let why = format!("{ip} is link-local, and wants the interface behind it, as in {ip}%eth0");
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
        _ => Ok(()),
    }
}

fn first<'a>(known: impl Iterator<Item = &'a sys::Interface> + Clone) -> Option<IpAddr> {
    let is_link_local = |address: IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let mut addresses = known.map(|it| it.address).filter(|address| !is_link_local(*address));
    addresses.clone().find(IpAddr::is_ipv4).or_else(|| addresses.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_within_ipv6_is_one_of_ipv4() {
        let at = addresses_of_host("::ffff:127.0.0.9", 7).unwrap();
        assert_eq!(at, ["127.0.0.9:7".parse().unwrap()]);
        assert_eq!(addresses_of_host("fd00::1", 7).unwrap(), ["[fd00::1]:7".parse().unwrap()]);
        assert_eq!(address_of("::ffff:127.0.0.1").unwrap(), IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn a_device_leaves_the_addresses_of_its_family_or_all_where_there_are_none() {
        let all: Vec<SocketAddr> = ["10.0.0.1:7", "[fd00::1]:7"].map(|at| at.parse().unwrap()).into();
        let kept = |device: &str, of: &[SocketAddr]| {
            let mut kept = of.to_vec();
            keep_family_of(device.parse().unwrap(), &mut kept);
            kept
        };
        assert_eq!(kept("10.0.0.2", &all), all[..1]);
        assert_eq!(kept("fd00::2", &all), all[1..]);
        assert_eq!(kept("fd00::2", &all[..1]), all[..1]);
    }

    #[test]
    fn a_link_local_address_of_two_interfaces_is_the_firsts() {
        let address = "fe80::1".parse().unwrap();
        let of = |name: &std::ffi::CStr, scope| sys::Interface {
            name: name.to_owned(),
            address,
            is_loopback: false,
            scope,
        };
        let known = [of(c"eth0", 2), of(c"eth1", 3)];
        assert_eq!(whose(&known, address, "eth0").unwrap(), address);
        let why = whose(&known, address, "eth1").unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::Unsupported);
        assert!(why.to_string().contains("is also an address of eth0"), "{why}");
        assert_eq!(whose(&known, address, "eth2").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(whose(&known[..1], address, "eth1").unwrap_err().kind(), io::ErrorKind::NotFound);
        // The same for sockets, which tell the interface by its number.
        let at = |scope| SocketAddrV6::new("fe80::1".parse().unwrap(), 4791, 0, scope);
        assert_eq!(of_link(&known, at(2)).unwrap(), address);
        assert_eq!(of_link(&known, at(3)).unwrap_err().to_string(), why.to_string());
        assert_eq!(of_link(&known[1..], at(3)).unwrap(), address);
    }

    #[test]
    fn the_path_to_this_host_carries_what_its_loopback_interface_takes() {
        let local: IpAddr = [127, 0, 0, 1].into();
        let peer = SocketAddr::new(local, 4791);
        let interface = sys::mtu_of(local).expect("every host has one");
        for device in [None, Some(local)] {
            // No IPv4 datagram has more than 65535 octets.
            assert_eq!(path_mtu(device, peer).unwrap(), interface.min(65_535), "{device:?}");
        }
        assert!(path_mtu(Some([192, 0, 2, 1].into()), peer).is_err(), "no address of this host");
        assert!(
            path_mtu(Some(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)), peer).is_err(),
            "of another family"
        );
    }

    #[test]
    fn a_link_local_address_that_is_none_of_this_host_is_told_from_its_own() {
        let error = sys::own("fe80::ffff:1".parse().unwrap(), 4791).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
        let of = |address: &str, scope| sys::Interface {
            name: c"eth0".to_owned(),
            address: address.parse().unwrap(),
            is_loopback: false,
            scope,
        };
        let known = [of("10.0.0.1", 0), of("fe80::2", 2)];
        assert_eq!(listed(&known), ", which has 10.0.0.1, fe80::2%eth0");
        assert_eq!(listed(&[]), "");
        let many = listed(&vec![of("10.0.0.1", 0); 10]);
        assert!(many.ends_with("10.0.0.1 and 2 more (`ip address` lists them)"), "{many}");
    }

    #[test]
    fn a_link_local_address_of_two_interfaces_wants_one_of_them() {
        let address = "fe80::1".parse().unwrap();
        let of = |name: &std::ffi::CStr, address, scope| sys::Interface {
            name: name.to_owned(),
            address,
            is_loopback: false,
            scope,
        };
        let global = "2001:db8::1".parse().unwrap();
        let known =
            [(c"eth0", address, 2), (c"eth1", address, 3), (c"eth0", global, 0), (c"eth1", global, 0)];
        let known = known.map(|(name, address, scope)| of(name, address, scope));
        let why = unambiguous(&known, address).unwrap_err().to_string();
        assert_eq!(
            why,
            "fe80::1 is an address of eth0 and of eth1: name the interface as well, as in fe80::1%eth0"
        );
        assert_eq!(unambiguous(&known[1..], address).unwrap(), address);
        assert_eq!(unambiguous(&known, global).unwrap(), global);
    }
}
