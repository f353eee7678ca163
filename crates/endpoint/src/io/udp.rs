//! UDP sockets with segmentation offload, the default: they need no privilege.
//!
//! The socket is never connected and forbids fragmentation: only then is the identification of what it sends known,
//! zero, or counting from zero in a run (it is covered by the ICRC). What is received does not show its
//! identification, so it is solved for, which leaves 16 bits of check over IPv4; the UDP checksum stands beside it.

use super::batch::Batch;
use super::steer::Claim;
use super::{Arrived, PacketIo, Sent, sys};
use roci_wire::udp::ROCE_PORT;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Octets of the largest run.
const BUFFER: usize = 1 << 16;
/// Runs received before what they lead to is sent.
const RECEIVED_MAX: usize = 8;
/// How often packets are looked for that came to another endpoint at the address.
const DETOUR: u32 = 16;
/// Octets of a lone packet after which another one is to be expected.
const LARGE: usize = 1 << 10;
/// Runs sent by one call.
const SENT_MAX: usize = 64;
/// Packets in a run: what every kernel with segmentation offload takes.
const RUN_MAX: usize = 64;
/// Socket buffers: as many octets as the kernel lets us have of this.
const SOCKET_BUFFER: libc::c_int = 16 << 20;

/// An unconnected UDP socket at port 4791 of one address.
pub struct UdpIo {
    socket: OwnedFd,
    local: IpAddr,
    run_max: usize,
    sending: sys::Messages,
    receiving: sys::Messages,
    buffer: Box<[u8]>,
    overflowed: u64,
    /// The last destination in the kernel's form: most runs go where the last one went.
    last: Option<(IpAddr, sys::RawAddress)>,
    /// The class that the socket gives to what names none: that of the first data sent. A class that is named with each
    /// message costs a tenth of a microsecond.
    class: u8,
    claim: Claim,
    forwarded: Vec<u8>,
    turns: u32,
}

impl UdpIo {
    /// Opens port 4791 of `local`, shared with other endpoints at that address as `claim` says.
    ///
    /// # Errors
    /// When the address is not this host's, or another program has the port for itself.
    pub fn open(local: IpAddr, claim: Claim) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let domain = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let socket = sys::socket(domain, libc::SOCK_DGRAM, 0)?;
        for (name, forced, value) in [
            (libc::SO_RCVBUF, libc::SO_RCVBUFFORCE, SOCKET_BUFFER),
            (libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, SOCKET_BUFFER),
        ] {
            if sys::set_option(&socket, libc::SOL_SOCKET, forced, value).is_err() {
                sys::set_option(&socket, libc::SOL_SOCKET, name, value)?;
            }
        }
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if v6 {
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)?;
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            sys::set_option(&socket, libc::SOL_UDP, sys::UDP_NO_CHECK6_RX, 1)?;
        } else {
            sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
            sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
        let segmentation = sys::option(&socket, libc::SOL_UDP, sys::UDP_SEGMENT).is_ok()
            && sys::set_option(&socket, libc::SOL_UDP, sys::UDP_GRO, 1).is_ok();
        sys::RawAddress::new(SocketAddr::new(local, ROCE_PORT)).bind(&socket)?;
        claim.steer(&socket)?;
        Ok(Self {
            socket,
            local,
            run_max: if segmentation { RUN_MAX } else { 1 },
            sending: sys::Messages::new(SENT_MAX),
            receiving: sys::Messages::new(1),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            overflowed: 0,
            last: None,
            class: 0,
            claim,
            forwarded: Vec::new(),
            turns: 0,
        })
    }

    fn address(&mut self, destination: IpAddr) -> sys::RawAddress {
        match self.last {
            Some((last, raw)) if last == destination => raw,
            _ => {
                let raw = sys::RawAddress::new(SocketAddr::new(destination, ROCE_PORT));
                self.last = Some((destination, raw));
                raw
            }
        }
    }
}

impl PacketIo for UdpIo {
    fn local(&self) -> IpAddr {
        self.local
    }

    fn run_max(&self) -> usize {
        self.run_max
    }

    fn next_id(&mut self) -> u16 {
        0
    }

    fn send(&mut self, batch: &Batch) -> Sent {
        let v6 = self.local.is_ipv6();
        let (level, name) =
            if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        let mut outcome = Sent::default();
        for runs in batch.runs().chunks(SENT_MAX) {
            for (index, run) in runs.iter().enumerate() {
                let to = self.address(run.destination);
                #[expect(clippy::cast_possible_truncation, reason = "at most 65000")]
                let segment = (run.packets > 1).then_some(run.segment as u16);
                let class = run.dscp << 2 | run.ecn as u8;
                if self.class == 0
                    && class != 0
                    && sys::set_option(&self.socket, level, name, class.into()).is_ok()
                {
                    self.class = class;
                }
                let class = (class != self.class).then_some((v6, libc::c_int::from(class)));
                self.sending.prepare_one(index, to, batch.octets(run), segment, class);
            }
            let mut next = 0;
            let mut waited = false;
            while next < runs.len() {
                // SAFETY: the octets lie in the batch, which is not written to meanwhile.
                #[expect(unsafe_code, reason = "see above")]
                let sent = unsafe { self.sending.send(self.socket.as_raw_fd(), next, runs.len()) };
                match sent {
                    Ok(sent) => {
                        outcome.packets +=
                            runs[next..next + sent].iter().map(|run| run.packets as u64).sum::<u64>();
                        next += sent;
                        waited = false;
                    }
                    // The buffer is full: the link is slower than we are. It empties at the link's rate.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waited => {
                        waited = true;
                        let _ = sys::wait(&[(self.socket.as_raw_fd(), true)], Some(Duration::from_millis(5)));
                    }
                    Err(_) => {
                        outcome.dropped += runs[next].packets as u64;
                        next += 1;
                        waited = false;
                    }
                }
            }
        }
        outcome
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize> {
        let mut received = 0;
        // One buffer again and again stays in the cache, which is worth more than a system call for several runs.
        for _ in 0..RECEIVED_MAX {
            if self.receiving.receive(self.socket.as_raw_fd(), &mut self.buffer, BUFFER)? == 0 {
                break;
            }
            received += 1;
            let Some((length, source, source_port, told)) = self.receiving.told(0) else { continue };
            if let Some(dropped) = told.dropped {
                self.overflowed = u64::from(dropped);
            }
            let octets = &mut self.buffer[..length];
            let segment = told.segment.unwrap_or(length).max(1);
            let ce = told.class & 3 == 3;
            self.claim.sort(Arrived { source, source_port, ce, id: None, octets, segment }, sink);
            // After little there is seldom more; but a run, however short, is the beginning of a message.
            if length < LARGE && told.segment.is_none() {
                break;
            }
        }
        // A detour is rare, and looking for one is a system call.
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(DETOUR) {
            received += self.claim.receive(&mut self.forwarded, sink)?;
        }
        Ok(received)
    }

    fn readable(&self) -> [RawFd; 3] {
        let [claim, management] = self.claim.readable();
        [self.socket.as_raw_fd(), claim, management]
    }

    fn slot(&self) -> u32 {
        self.claim.slot()
    }

    fn claim_management(&mut self) -> io::Result<()> {
        self.claim.claim_management()
    }

    fn overflowed(&self) -> u64 {
        self.overflowed
    }
}
