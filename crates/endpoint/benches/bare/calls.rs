//! Bare sockets that make the system calls that the endpoint makes for a message to and fro, and nothing else.
//!
//! Two sockets at one port, told apart by an octet of the packet; class, receive offload and overflows are told; over
//! IPv6 what is sent leaves from connected sockets of its own.
#![allow(clippy::cast_possible_truncation, reason = "constants and lengths of C")]

use super::set;
use std::mem::zeroed;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};

const OCTETS: usize = crate::PING + super::AROUND + 4;
/// The octet that tells the sockets apart.
const STEERED: usize = 7;

pub(crate) struct Calls {
    at: [UdpSocket; 2],
    /// Sends to either.
    from: [UdpSocket; 2],
    to: (libc::sockaddr_storage, u32),
    is_connected: bool,
}

impl Calls {
    pub(crate) fn new(here: IpAddr) -> Self {
        let first = socket(here, 0);
        let port = first.local_addr().unwrap().port();
        let at = [first, socket(here, port)];
        let instruction = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
        let mut program = [
            instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, STEERED as u32),
            instruction(libc::BPF_RET | libc::BPF_A, 0),
        ];
        let program = libc::sock_fprog { len: 2, filter: program.as_mut_ptr() };
        // SAFETY: the pointer and the length describe `program`, which outlives the call.
        let attached = unsafe {
            let length = size_of::<libc::sock_fprog>() as u32;
            let (fd, value) = (at[0].as_raw_fd(), (&raw const program).cast());
            libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, value, length)
        };
        assert_eq!(attached, 0);
        let from = if here.is_ipv6() {
            [(); 2].map(|()| {
                let socket = socket(here, 0);
                socket.connect((here, port)).unwrap();
                socket
            })
        } else {
            at.each_ref().map(|socket| socket.try_clone().unwrap())
        };
        Self { at, from, to: address(here, port), is_connected: here.is_ipv6() }
    }

    /// Sends to one of the two from the other, and receives it there.
    pub(crate) fn pass(&self, to: usize) {
        let mut data = [1; OCTETS];
        data[STEERED] = u8::try_from(to).unwrap_or(0);
        let from = self.from[1 - to].as_raw_fd();
        let (name, length) =
            if self.is_connected { (std::ptr::null(), 0) } else { (&raw const self.to.0, self.to.1) };
        // SAFETY: the pointers describe `data` and an address, which outlive the call.
        let sent = unsafe {
            libc::sendto(from, data.as_ptr().cast(), OCTETS, libc::MSG_DONTWAIT, name.cast(), length)
        };
        assert_eq!(sent, OCTETS as isize);
        let (mut place, mut control) = ([0u8; 2048], [0u64; 12]);
        loop {
            let mut piece = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
            // SAFETY: zeros are a valid header and address; what the header points to outlives the call.
            let received = unsafe {
                let mut name: libc::sockaddr_storage = zeroed();
                let mut header: libc::msghdr = zeroed();
                (header.msg_name, header.msg_namelen) =
                    ((&raw mut name).cast(), size_of::<libc::sockaddr_storage>() as u32);
                (header.msg_iov, header.msg_iovlen) = (&raw mut piece, 1);
                (header.msg_control, header.msg_controllen) =
                    (control.as_mut_ptr().cast(), size_of_val(&control));
                libc::recvmsg(self.at[to].as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT)
            };
            if received == sent {
                return;
            }
        }
    }
}

/// A socket at a port that others may share, set up as the endpoint's are.
fn socket(here: IpAddr, port: u16) -> UdpSocket {
    let (domain, level, class, told, discover) = if here.is_ipv6() {
        let (class, told) = (libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS);
        (libc::AF_INET6, libc::IPPROTO_IPV6, class, told, libc::IPV6_MTU_DISCOVER)
    } else {
        (libc::AF_INET, libc::IPPROTO_IP, libc::IP_TOS, libc::IP_RECVTOS, libc::IP_MTU_DISCOVER)
    };
    // SAFETY: no pointers are passed; the descriptor is fresh and nobody else owns it.
    let socket = unsafe {
        let fd = libc::socket(domain, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0);
        assert!(fd >= 0);
        UdpSocket::from_raw_fd(fd)
    };
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_REUSEPORT, 1),
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1),
        (libc::SOL_UDP, 104, 1),
        (level, class, 2),
        (level, told, 1),
        (level, discover, libc::IP_PMTUDISC_DO),
    ] {
        set(&socket, level, name, value);
    }
    let (name, length) = address(here, port);
    // SAFETY: the pointer and the length describe `name`, which outlives the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const name).cast(), length) };
    assert_eq!(bound, 0);
    socket
}

fn address(here: IpAddr, port: u16) -> (libc::sockaddr_storage, u32) {
    // SAFETY: zeros are a valid address of each kind, and a sockaddr_storage has room for each.
    unsafe {
        let mut storage: libc::sockaddr_storage = zeroed();
        let length = match here {
            IpAddr::V4(here) => {
                let inner = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                (inner.sin_family, inner.sin_port) = (libc::AF_INET as u16, port.to_be());
                inner.sin_addr.s_addr = u32::from_ne_bytes(here.octets());
                size_of::<libc::sockaddr_in>()
            }
            IpAddr::V6(here) => {
                let inner = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                (inner.sin6_family, inner.sin6_port) = (libc::AF_INET6 as u16, port.to_be());
                inner.sin6_addr.s6_addr = here.octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as u32)
    }
}
