//! Endpoints that share port 4791 of one address, and how each gets its packets.
//!
//! Every UDP socket at the address joins one `SO_REUSEPORT` group. An endpoint's shard claims one of [`SLOTS`]
//! remainders: its queue pair numbers have that remainder, and a classic BPF program sends a packet to the socket whose
//! index in the group is the remainder of its destination queue pair. Claims are names of abstract Unix sockets, which
//! the kernel frees when their process ends, however it ends.
//!
//! Indices follow the order of binding only until a socket in the middle closes: the kernel then moves the last one
//! into the gap. And a run that the kernel has put together may hold packets of several endpoints. So the program
//! is a fast path, and what comes to the wrong socket is handed over to the right one through the claim's socket, which
//! takes datagrams from the same user alone.

use super::{Arrived, sys};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Shards that can share the port of one address.
pub const SLOTS: u32 = 64;

/// The octet of the BTH with the lowest octet of the destination queue pair's number.
const QPN_LOW: usize = 7;
/// Mark, port and address before a packet that is handed over.
const HANDED: usize = 1 + 2 + 16;

/// One remainder at one address, claimed for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    local: IpAddr,
    slot: u32,
    socket: UnixDatagram,
    management: Option<UnixDatagram>,
    user: u32,
}

impl Claim {
    /// Claims the lowest remainder that is free at `local`.
    ///
    /// # Errors
    /// When none is free.
    pub fn lowest(local: IpAddr) -> io::Result<Self> {
        for slot in 0..SLOTS {
            match bind(local, &slot.to_string()) {
                Ok(socket) => {
                    return Ok(Self { local, slot, socket, management: None, user: sys::user() });
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "all queue pair number ranges of the address are taken"))
    }

    /// The remainder.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Has packets for queue pair 1 as well.
    pub(crate) fn claim_management(&mut self) -> io::Result<()> {
        if self.management.is_none() {
            self.management = Some(bind(self.local, "management")?);
        }
        Ok(())
    }

    /// Sends packets of the group to the socket whose index is the remainder of their queue pair's number.
    pub(crate) fn steer(&self, socket: &OwnedFd) -> io::Result<()> {
        let instruction = |code: u32, k: u32| libc::sock_filter {
            #[expect(clippy::cast_possible_truncation, reason = "constants of C")]
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        };
        #[expect(clippy::cast_possible_truncation, reason = "7")]
        let program = [
            instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, QPN_LOW as u32),
            instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, SLOTS - 1),
            instruction(libc::BPF_RET | libc::BPF_A, 0),
        ];
        sys::attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
    }

    pub(crate) fn readable(&self) -> [RawFd; 2] {
        [self.socket.as_raw_fd(), self.management.as_ref().map_or(-1, AsRawFd::as_raw_fd)]
    }

    /// Hands what is ours to `sink`, and the rest to whom it belongs.
    pub(crate) fn sort(&self, arrived: Arrived<'_>, sink: &mut dyn FnMut(Arrived<'_>)) {
        let ours = |packet: &[u8]| {
            let low = packet.get(QPN_LOW).copied().unwrap_or_default();
            if u32::from(low) % SLOTS == self.slot { low != 1 || !is_management(packet) } else { false }
        };
        if arrived.octets.chunks(arrived.segment).all(ours) {
            return sink(arrived);
        }
        let Arrived { source, source_port, ce, id, octets, segment } = arrived;
        for packet in octets.chunks_mut(segment) {
            let segment = packet.len();
            if ours(packet) || !self.hand_over(source, source_port, ce, packet) {
                sink(Arrived { source, source_port, ce, id, octets: packet, segment });
            }
        }
    }

    /// Whether the packet belongs to someone else, and was given to him.
    fn hand_over(&self, source: IpAddr, port: u16, ce: bool, packet: &[u8]) -> bool {
        let name = if is_management(packet) {
            if self.management.is_some() {
                return false;
            }
            "management".to_owned()
        } else {
            let low = packet.get(QPN_LOW).copied().unwrap_or_default();
            (u32::from(low) % SLOTS).to_string()
        };
        let mut message = Vec::with_capacity(HANDED + packet.len());
        message.push(u8::from(ce));
        message.extend(port.to_be_bytes());
        let address = match source {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        message.extend(address.octets());
        message.extend(packet);
        // Lost where the other's queue is full, as on a wire.
        name_of(self.local, &name).is_ok_and(|to| match self.socket.send_to_addr(&message, &to) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        })
    }

    /// Receives what others have handed over.
    pub(crate) fn receive(
        &self,
        buffer: &mut Vec<u8>,
        sink: &mut dyn FnMut(Arrived<'_>),
    ) -> io::Result<usize> {
        buffer.resize(HANDED + 8192, 0);
        let mut received = 0;
        for socket in std::iter::once(&self.socket).chain(&self.management) {
            for _ in 0..32 {
                let Some((length, user)) = sys::receive_with_user(socket.as_raw_fd(), buffer)? else { break };
                received += 1;
                let Some((head, octets)) = buffer[..length].split_at_mut_checked(HANDED) else { continue };
                if user != Some(self.user) {
                    continue;
                }
                let mut address = [0; 16];
                address.copy_from_slice(&head[3..]);
                let source = Ipv6Addr::from(address).to_canonical();
                let source_port = u16::from_be_bytes([head[1], head[2]]);
                let segment = octets.len().max(1);
                sink(Arrived { source, source_port, ce: head[0] != 0, id: None, octets, segment });
            }
        }
        Ok(received)
    }
}

fn is_management(packet: &[u8]) -> bool {
    matches!(packet.get(5..8), Some([0, 0, 1]))
}

fn name_of(local: IpAddr, what: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("roci-endpoint/{local}/{what}"))
}

fn bind(local: IpAddr, what: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind_addr(&name_of(local, what)?)?;
    socket.set_nonblocking(true)?;
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_PASSCRED, 1)?;
    Ok(socket)
}
