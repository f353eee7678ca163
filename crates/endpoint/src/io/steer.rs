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
//! takes datagrams from the same user alone. After a socket in the middle has closed that may be all that two endpoints
//! send each other, for as long as they live: so it goes in runs, as it came, and who hands over waits a little for room,
//! as the queue of a Unix socket is of ten datagrams only.

use super::{Arrived, sys};
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Shards that can share the port of one address.
pub const SLOTS: u32 = 64;

/// The octet of the BTH with the lowest octet of the destination queue pair's number.
const QPN_LOW: usize = 7;
/// Mark, port, address and length of a segment before a run that is handed over.
const HANDED: usize = 1 + 2 + 16 + 2;
/// Octets of the largest run.
const RUN: usize = 1 << 16;
/// Runs taken from others before what they lead to is sent.
const TAKEN_MAX: usize = 32;
/// So often is room looked for in a full queue, with so much time between: as long as who shares the core with its owner may
/// have it.
const ROOM_LOOKS: u32 = 50;
const ROOM_PAUSE: Duration = Duration::from_micros(100);
/// So often is another endpoint waited for that is between its claim and its place in the group, and so long each time.
const OPENING_LOOKS: u32 = 100;
const OPENING_PAUSE: Duration = Duration::from_millis(1);

/// One remainder at one address, claimed for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    local: IpAddr,
    slot: u32,
    socket: UnixDatagram,
    management: Option<UnixDatagram>,
    user: u32,
    /// Held until the socket is in its place: two that claim in one order and bind in the other would have each other's packets.
    opening: Option<UnixDatagram>,
    /// Whether a full queue is waited for: it had room after the last wait, or has had some since.
    waits: bool,
    /// Packets of others that there was no room for.
    lost: u64,
    message: Vec<u8>,
    taken: Vec<u8>,
}

/// Whose a packet is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    We,
    Slot(u32),
    Management,
}

impl Claim {
    /// Claims the lowest remainder that is free at `local`.
    ///
    /// # Errors
    /// When none is free.
    pub fn lowest(local: IpAddr) -> io::Result<Self> {
        let opening = opening(local);
        for slot in 0..SLOTS {
            match bind(local, &slot.to_string()) {
                Ok(socket) => {
                    return Ok(Self {
                        local,
                        slot,
                        socket,
                        management: None,
                        user: sys::user(),
                        opening,
                        waits: true,
                        lost: 0,
                        message: Vec::new(),
                        taken: Vec::new(),
                    });
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

    /// Takes nothing that others have: its owner sees all that comes to the address.
    pub(crate) fn shut(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Read)
    }

    /// Sends packets of the group, of which `socket` is the last, to that whose index is the remainder of their queue pair's number.
    pub(crate) fn steer(&mut self, socket: &OwnedFd) -> io::Result<()> {
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
        sys::attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &program)?;
        self.opening = None;
        Ok(())
    }

    pub(crate) fn readable(&self) -> [RawFd; 2] {
        [self.socket.as_raw_fd(), self.management.as_ref().map_or(-1, AsRawFd::as_raw_fd)]
    }

    /// Packets of others that could not be handed over, as their queues were full.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Hands what is ours to `sink`, and the rest to whom it belongs; what others have handed over meanwhile goes to `sink` as
    /// well.
    pub(crate) fn sort(&mut self, arrived: Arrived<'_>, sink: &mut dyn FnMut(Arrived<'_>)) {
        if arrived.octets.chunks(arrived.segment).all(|packet| self.owner(packet) == Owner::We) {
            return sink(arrived);
        }
        let Arrived { source, source_port, ce, id, octets, segment } = arrived;
        let mut rest = octets;
        while !rest.is_empty() {
            let owner = self.owner(&rest[..segment.min(rest.len())]);
            let alike = rest.chunks(segment).take_while(|packet| self.owner(packet) == owner).count();
            let (run, others) = rest.split_at_mut((alike * segment).min(rest.len()));
            rest = others;
            let run = Arrived { source, source_port, ce, id, octets: run, segment };
            if owner == Owner::We || !self.hand_over(owner, &run, sink) {
                sink(run);
            }
        }
    }

    fn owner(&self, packet: &[u8]) -> Owner {
        let low = packet.get(QPN_LOW).copied().unwrap_or_default();
        if low == 1 && is_management(packet) {
            return if self.management.is_some() { Owner::We } else { Owner::Management };
        }
        match u32::from(low) % SLOTS {
            slot if slot == self.slot => Owner::We,
            slot => Owner::Slot(slot),
        }
    }

    /// Gives the run to `owner`; false if there is none.
    fn hand_over(&mut self, owner: Owner, run: &Arrived<'_>, sink: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let name = match owner {
            Owner::We => return false,
            Owner::Slot(slot) => slot.to_string(),
            Owner::Management => "management".to_owned(),
        };
        let Ok(to) = name_of(self.local, &name) else { return false };
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        message.push(u8::from(run.ce));
        message.extend(run.source_port.to_be_bytes());
        let address = match run.source {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        message.extend(address.octets());
        message.extend(u16::try_from(run.segment).unwrap_or(u16::MAX).to_be_bytes());
        message.extend(&*run.octets);
        let looks = if self.waits { ROOM_LOOKS } else { 0 };
        let mut looked = 0;
        let sent = loop {
            match self.socket.send_to_addr(&message, &to) {
                Ok(_) => {
                    self.waits = true;
                    break true;
                }
                // Its owner has seen it.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break true,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => break false,
                // Its owner does not look. Lost, as on a wire.
                Err(_) if looked == looks => {
                    self.waits = false;
                    self.lost += run.octets.len().div_ceil(run.segment) as u64;
                    break true;
                }
                Err(_) => looked += 1,
            }
            // Its owner may be waiting for room in ours.
            if self.receive(sink).unwrap_or(0) == 0 {
                let _ = sys::wait(&[], Some(ROOM_PAUSE));
            }
        };
        self.message = message;
        sent
    }

    /// Receives what others have handed over; gives the number of runs.
    pub(crate) fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize> {
        self.taken.resize(HANDED + RUN, 0);
        let mut received = 0;
        for socket in std::iter::once(&self.socket).chain(&self.management) {
            for _ in 0..TAKEN_MAX {
                let Some((length, user)) = sys::receive_with_user(socket.as_raw_fd(), &mut self.taken)?
                else {
                    break;
                };
                received += 1;
                let Some((head, octets)) = self.taken[..length].split_at_mut_checked(HANDED) else {
                    continue;
                };
                if user != Some(self.user) {
                    continue;
                }
                let mut address = [0; 16];
                address.copy_from_slice(&head[3..19]);
                let source = Ipv6Addr::from(address).to_canonical();
                let source_port = u16::from_be_bytes([head[1], head[2]]);
                let segment = usize::from(u16::from_be_bytes([head[19], head[20]])).max(1);
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

/// The name that one endpoint at a time has while it opens. Without it, where somebody keeps it: its packets may take the detour.
fn opening(local: IpAddr) -> Option<UnixDatagram> {
    for _ in 0..OPENING_LOOKS {
        match bind(local, "opening") {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let _ = sys::wait(&[], Some(OPENING_PAUSE));
            }
            other => return other.ok(),
        }
    }
    None
}

fn bind(local: IpAddr, what: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind_addr(&name_of(local, what)?)?;
    socket.set_nonblocking(true)?;
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_PASSCRED, 1)?;
    // Room for as many runs as the other's queue takes.
    sys::enlarge(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE)?;
    Ok(socket)
}
