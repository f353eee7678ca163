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
//!
//! Queue pair 1 is everybody's. What comes for it says whose it is (`management`), and goes the same ways.

use super::management::{self, Concerned, Management};
use super::sys::Several;
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
    management: Option<Management>,
    /// Readable when a socket of management is, which may only come: who sleeps does not ask for it again.
    several: Several,
    user: u32,
    /// Whether it takes no packets of queue pairs from others.
    is_shut: bool,
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
    Management(Concerned),
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
                        several: Several::new()?,
                        user: sys::user(),
                        is_shut: false,
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

    /// Has packets for queue pair 1 that concern it.
    pub(crate) fn claim_management(&mut self) -> io::Result<()> {
        if self.management.is_none() {
            self.management = Some(Management::new(self.local, self.slot, &self.several)?);
        }
        Ok(())
    }

    /// Has them no longer.
    pub(crate) fn release_management(&mut self) {
        if let Some(management) = self.management.take() {
            management.end(&self.several);
        }
    }

    pub(crate) fn has_management(&self) -> bool {
        self.management.is_some()
    }

    /// Has the requests for a service as well; once more if it has them.
    pub(crate) fn claim_service(&mut self, service: u64) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::NotConnected, "nobody manages connections here");
        self.management.as_mut().ok_or_else(missing)?.claim(service, &self.several)
    }

    /// Takes one such claim back.
    pub(crate) fn release_service(&mut self, service: u64) {
        if let Some(management) = &mut self.management {
            management.release(service, &self.several);
        }
    }

    /// Takes nothing of queue pairs that others have: its owner sees all that comes to the address.
    pub(crate) fn shut(&mut self) -> io::Result<()> {
        self.is_shut = true;
        self.socket.shutdown(Shutdown::Read)
    }

    /// Sends packets of the group, of which `socket` is the last, to that whose index is the remainder of their queue pair's number, and
    /// those for queue pair 1 to that whose index is the remainder of the id that they bear. Requests bear none of ours, and go to anyone.
    pub(crate) fn steer(&mut self, socket: &OwnedFd) -> io::Result<()> {
        sys::attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &steering(self.slot + 1))?;
        self.opening = None;
        Ok(())
    }

    pub(crate) fn readable(&self) -> [RawFd; 2] {
        [self.socket.as_raw_fd(), self.several.as_raw_fd()]
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
            return self.concerned(packet);
        }
        match u32::from(low) % SLOTS {
            slot if slot == self.slot => Owner::We,
            slot => Owner::Slot(slot),
        }
    }

    /// Whose a packet for queue pair 1 is.
    #[cold]
    fn concerned(&self, packet: &[u8]) -> Owner {
        let concerned = Concerned::of(packet);
        match (concerned, &self.management) {
            (Concerned::Slot(slot), Some(_)) if slot == self.slot => Owner::We,
            (Concerned::Service(service), Some(management)) if management.offers(service) => Owner::We,
            _ => Owner::Management(concerned),
        }
    }

    /// Gives the run to `owner`; false if there is none, or we are to have it as well.
    fn hand_over(&mut self, owner: Owner, run: &Arrived<'_>, sink: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let mut message = std::mem::take(&mut self.message);
        wrap(run, &mut message);
        let packets = run.octets.len().div_ceil(run.segment) as u64;
        let mut give = |name: &str| self.give(name, &message, packets, sink);
        let is_given = match owner {
            Owner::We => false,
            Owner::Slot(slot) => give(&slot.to_string()),
            Owner::Management(Concerned::Slot(slot)) => give(&management::manager(slot)),
            Owner::Management(Concerned::Service(service)) => give(&management::offer(service)),
            Owner::Management(Concerned::All | Concerned::Any) => false,
        };
        let is_given = is_given
            || matches!(owner, Owner::Management(concerned) if self.share(concerned, &message, packets, sink));
        self.message = message;
        is_given
    }

    /// Gives what is for queue pair 1, and nobody's alone, to all managers of others or to one. If we have one ourselves, we are to have it
    /// as well: false.
    #[cold]
    fn share(
        &mut self,
        concerned: Concerned,
        message: &[u8],
        packets: u64,
        sink: &mut dyn FnMut(Arrived<'_>),
    ) -> bool {
        let (own, is_for_all) = (self.slot, concerned == Concerned::All);
        if self.management.is_some() && !is_for_all {
            return false;
        }
        let mut is_given = false;
        for slot in (0..SLOTS).filter(|slot| *slot != own) {
            is_given |= self.give(&management::manager(slot), message, packets, sink);
            if is_given && !is_for_all {
                break;
            }
        }
        is_given && self.management.is_none()
    }

    /// Gives a message to the socket of this name; false if there is none.
    fn give(&mut self, name: &str, message: &[u8], packets: u64, sink: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let Ok(to) = name_of(self.local, name) else { return false };
        let looks = if self.waits { ROOM_LOOKS } else { 0 };
        let mut looked = 0;
        loop {
            match self.socket.send_to_addr(message, &to) {
                Ok(_) => {
                    self.waits = true;
                    return true;
                }
                // Its owner has seen it.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return true,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return false,
                // Its owner does not look. Lost, as on a wire.
                Err(_) if looked == looks => {
                    self.waits = false;
                    self.lost += packets;
                    return true;
                }
                Err(_) => looked += 1,
            }
            // Its owner may be waiting for room in ours.
            if self.receive(sink).unwrap_or(0) == 0 {
                let _ = sys::wait(&[], Some(ROOM_PAUSE));
            }
        }
    }

    /// Receives what others have handed over; gives the number of runs.
    pub(crate) fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize> {
        self.taken.resize(HANDED + RUN, 0);
        let mut received = 0;
        if !self.is_shut {
            received += take(&self.socket, self.user, &mut self.taken, sink)?;
        }
        if let Some(management) = &self.management {
            for socket in management.ready(&self.several)? {
                received += take(socket, self.user, &mut self.taken, sink)?;
            }
        }
        Ok(received)
    }
}

/// Takes what processes of `user` have sent to a socket.
fn take(
    socket: &UnixDatagram,
    user: u32,
    buffer: &mut [u8],
    sink: &mut dyn FnMut(Arrived<'_>),
) -> io::Result<usize> {
    for received in 0..TAKEN_MAX {
        let Some((length, sender)) = sys::receive_with_user(socket.as_raw_fd(), buffer)? else {
            return Ok(received);
        };
        if sender == Some(user)
            && let Some(run) = unwrap(&mut buffer[..length])
        {
            sink(run);
        }
    }
    Ok(TAKEN_MAX)
}

/// Makes a run a message.
fn wrap(run: &Arrived<'_>, message: &mut Vec<u8>) {
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
}

/// The run in a message, which may be anything.
fn unwrap(message: &mut [u8]) -> Option<Arrived<'_>> {
    let (head, octets) = message.split_at_mut_checked(HANDED)?;
    let mut address = [0; 16];
    address.copy_from_slice(&head[3..19]);
    let source = Ipv6Addr::from(address).to_canonical();
    let source_port = u16::from_be_bytes([head[1], head[2]]);
    let segment = usize::from(u16::from_be_bytes([head[19], head[20]])).max(1);
    Some(Arrived { source, source_port, ce: head[0] != 0, id: None, octets, segment })
}

/// Answers with the index of the socket that gets a packet. One that is too short to be looked at goes to the first. Requests go to one of
/// `places` by chance: it may be stopped or busy, and who asks again is to find another one.
fn steering(places: u32) -> [libc::sock_filter; 18] {
    use libc::{
        BPF_A, BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_JA, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_MOD,
        BPF_RET, BPF_W,
    };
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        #[expect(clippy::cast_possible_truncation, reason = "constants of C")]
        code: code as u16,
        jt,
        jf,
        k,
    };
    #[expect(clippy::cast_possible_truncation, reason = "below 64")]
    let [qpn_low, kind, id_low, asked_low] =
        [QPN_LOW, management::KIND, management::ID_LOW, management::ASKED_LOW].map(|at| at as u32);
    [
        instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, qpn_low),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 10, 1),
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, qpn_low - 3),
        instruction(BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x00ff_ffff),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 12, 1),
        instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, kind),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, management::REQUEST),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, management::RESOLVE),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, management::RESOLVED),
        instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, id_low),
        instruction(BPF_JMP | BPF_JA, 0, 0, 1),
        instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, asked_low),
        instruction(BPF_ALU | BPF_AND | BPF_K, 0, 0, SLOTS - 1),
        instruction(BPF_RET | BPF_A, 0, 0, 0),
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM).cast_unsigned()),
        instruction(BPF_ALU | BPF_MOD | BPF_K, 0, 0, places),
        instruction(BPF_RET | BPF_A, 0, 0, 0),
        // Another queue pair's number with this remainder.
        instruction(BPF_RET | BPF_K, 0, 0, 1),
    ]
}

pub(super) fn is_management(packet: &[u8]) -> bool {
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

pub(super) fn bind(local: IpAddr, what: &str) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind_addr(&name_of(local, what)?)?;
    socket.set_nonblocking(true)?;
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_PASSCRED, 1)?;
    // Room for as many runs as the other's queue takes.
    sys::enlarge(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_is_handed_over_as_it_came(
            octets in proptest::collection::vec(any::<u8>(), 1..3000),
            source in any::<IpAddr>(),
            source_port in any::<u16>(),
            ce in any::<bool>(),
            segment in 1usize..0xffff,
        ) {
            let source = source.to_canonical();
            let (mut copy, mut message) = (octets.clone(), Vec::new());
            wrap(&Arrived { source, source_port, ce, id: None, octets: &mut copy, segment }, &mut message);
            let run = unwrap(&mut message).unwrap();
            prop_assert_eq!((run.source, run.source_port, run.ce, run.segment), (source, source_port, ce, segment));
            prop_assert!(run.octets == octets && run.id.is_none());
        }

        #[test]
        fn whatever_a_process_hands_over_is_a_run_or_none(mut message in proptest::collection::vec(any::<u8>(), 0..200)) {
            let length = message.len();
            match unwrap(&mut message) {
                Some(run) => prop_assert!(run.segment > 0 && run.octets.len() == length - HANDED),
                None => prop_assert!(length < HANDED),
            }
        }
    }
}
