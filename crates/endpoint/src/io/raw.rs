//! Raw sockets: the IPv4 header is seen and written, so that identification and ICRC are checked in full.
//!
//! Needs CAP_NET_RAW. Each packet is a message of its own, without segmentation offload. Over IPv6 the kernel keeps the
//! IP header for itself, of which the ICRC needs nothing that is not known anyway.
//!
//! A raw socket behind a virtual link sees what the kernel has not split yet: who sends to it over loopback or veth turns
//! `tx-udp-segmentation` off there. Physical links split.

use super::batch::Batch;
use super::steer::{Claim, SLOTS, is_management};
use super::{Arrived, PacketIo, Sent, Start, sys};
use roci_wire::ip::Ipv4View;
use roci_wire::udp::{ROCE_PORT, UdpView};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

const BUFFER: usize = 1 << 14;
const RECEIVED_MAX: usize = 32;
const SENT_MAX: usize = 64;
const SOCKET_BUFFER: libc::c_int = 16 << 20;
/// How often the port is looked after for packets of others.
const DETOUR: u32 = 4;
/// Octets of IPv4 and UDP header.
const HEAD: usize = 28;

/// A raw socket for UDP port 4791 of one address.
pub struct RawIo {
    socket: OwnedFd,
    /// Keeps the kernel from answering that nobody listens. Of what it gets, our own is dropped, for the raw socket has it as
    /// well, and what is others' is handed over. Packets for queue pair 1 come this way alone.
    port: OwnedFd,
    turns: u32,
    local: IpAddr,
    id: u16,
    sending: sys::Messages,
    /// IP and UDP headers of the packets of one call, and all its pieces: kept to be used again.
    heads: Vec<([u8; HEAD], usize)>,
    pieces: sys::Pieces,
    receiving: sys::Messages,
    buffers: Box<[u8]>,
    overflowed: u64,
    claim: Claim,
}

impl RawIo {
    /// Opens a raw socket at `local` and takes port 4791 beside it.
    ///
    /// # Errors
    /// When the address is not this host's, the port is taken by another program, or the right is missing.
    pub fn open(local: IpAddr, mut claim: Claim) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let domain = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let port = sys::socket(domain, libc::SOCK_DGRAM, 0)?;
        sys::set_option(&port, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        sys::attach(&port, libc::SO_ATTACH_FILTER, &foreign(claim.slot()))?;
        if v6 {
            // Ours come without a checksum. Those for others have to get here to be handed over.
            sys::set_option(&port, libc::SOL_UDP, sys::UDP_NO_CHECK6_RX, 1)?;
            sys::set_option(&port, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        } else {
            sys::set_option(&port, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
        sys::RawAddress::new(sys::own(local, ROCE_PORT)?).bind(&port)?;
        claim.steer(&port)?;
        claim.shut()?;
        let socket = sys::socket(domain, libc::SOCK_RAW, libc::IPPROTO_UDP)?;
        sys::attach(&socket, libc::SO_ATTACH_FILTER, &filter(v6, claim.slot()))?;
        for (name, forced) in
            [(libc::SO_RCVBUF, libc::SO_RCVBUFFORCE), (libc::SO_SNDBUF, libc::SO_SNDBUFFORCE)]
        {
            if sys::set_option(&socket, libc::SOL_SOCKET, forced, SOCKET_BUFFER).is_err() {
                sys::set_option(&socket, libc::SOL_SOCKET, name, SOCKET_BUFFER)?;
            }
        }
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if v6 {
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)?;
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        } else {
            sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_HDRINCL, 1)?;
        }
        sys::RawAddress::new(sys::own(local, 0)?).bind(&socket)?;
        Ok(Self {
            socket,
            port,
            turns: 0,
            local,
            id: 1,
            sending: sys::Messages::new(SENT_MAX),
            heads: Vec::with_capacity(SENT_MAX),
            pieces: sys::Pieces::default(),
            receiving: sys::Messages::new(RECEIVED_MAX),
            buffers: vec![0; RECEIVED_MAX * BUFFER].into_boxed_slice(),
            overflowed: 0,
            claim,
        })
    }

    /// IP (over IPv4) and UDP header of a packet with `carried` octets behind them.
    fn head(&self, run: &super::batch::Run) -> ([u8; HEAD], usize) {
        let mut head = [0; HEAD];
        #[expect(clippy::cast_possible_truncation, reason = "a packet has at most 4400 octets")]
        let udp = (run.octets + 8) as u16;
        let port = ROCE_PORT.to_be_bytes();
        let mut at = 0;
        if let (IpAddr::V4(source), IpAddr::V4(destination)) = (self.local, run.destination) {
            head[0] = 0x45;
            head[1] = run.dscp << 2 | run.ecn as u8;
            head[2..4].copy_from_slice(&(udp + 20).to_be_bytes());
            head[4..6].copy_from_slice(&run.id.to_be_bytes());
            head[6] = 0x40;
            head[8] = 64;
            head[9] = 17;
            head[12..16].copy_from_slice(&source.octets());
            head[16..20].copy_from_slice(&destination.octets());
            at = 20;
        }
        head[at..at + 2].copy_from_slice(&port);
        head[at + 2..at + 4].copy_from_slice(&port);
        head[at + 4..at + 6].copy_from_slice(&udp.to_be_bytes());
        (head, at + 8)
    }
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    #[expect(clippy::cast_possible_truncation, reason = "constants of C")]
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Lets packets with another remainder than ours pass, and those for management, which may be another's whatever our
/// remainder. A UDP socket's filter sees the UDP header first.
fn foreign(slot: u32) -> [libc::sock_filter; 7] {
    [
        instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 8 + 7),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 1),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, SLOTS - 1),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, slot),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ]
}

/// Lets packets to port 4791 with our remainder pass, but those for queue pair 1.
fn filter(v6: bool, slot: u32) -> Vec<libc::sock_filter> {
    use libc::{
        BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_W,
    };
    let load_header = if v6 {
        instruction(BPF_LDX | libc::BPF_IMM, 0, 0, 0)
    } else {
        instruction(BPF_LDX | BPF_B | libc::BPF_MSH, 0, 0, 0)
    };
    debug_assert_eq!(BPF_ABS, 0x20, "linux/bpf_common.h");
    vec![
        load_header,
        instruction(BPF_LD | BPF_H | BPF_IND, 0, 0, 2),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 6, u32::from(ROCE_PORT)),
        instruction(BPF_LD | BPF_W | BPF_IND, 0, 0, 8 + 4),
        instruction(BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x00ff_ffff),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 1),
        instruction(BPF_ALU | BPF_AND | BPF_K, 0, 0, SLOTS - 1),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, slot),
        instruction(libc::BPF_RET | BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_RET | BPF_K, 0, 0, 0),
    ]
}

impl PacketIo for RawIo {
    fn local(&self) -> IpAddr {
        self.local
    }

    fn run_max(&self) -> usize {
        1
    }

    fn begin(&mut self, _: IpAddr) -> Start {
        // The kernel puts its own number in place of zero.
        let id = self.id;
        self.id = id.checked_add(1).unwrap_or(1);
        Start::with_id(id)
    }

    fn send(&mut self, batch: &Batch) -> Sent {
        let mut outcome = Sent::default();
        let v6 = self.local.is_ipv6();
        for runs in batch.runs().chunks(SENT_MAX) {
            self.heads.clear();
            for run in runs {
                let head = self.head(run);
                self.heads.push(head);
            }
            self.pieces.clear();
            for (run, (head, length)) in runs.iter().zip(&self.heads) {
                self.pieces.push(&head[..*length]);
                self.pieces.push(batch.octets(run));
            }
            for (index, run) in runs.iter().enumerate() {
                let to = sys::RawAddress::new(SocketAddr::new(run.destination, 0));
                let class = (v6 && (run.dscp, run.ecn as u8) != (0, 0))
                    .then_some((true, libc::c_int::from(run.dscp << 2 | run.ecn as u8)));
                self.sending.prepare(
                    index,
                    Some(&to),
                    &self.pieces.get()[2 * index..2 * index + 2],
                    None,
                    class,
                );
            }
            let (mut next, mut waited) = (0, false);
            while next < runs.len() {
                // SAFETY: the pieces lie in `self.heads` and in the batch, neither of which is written to meanwhile.
                #[expect(unsafe_code, reason = "see above")]
                let sent = unsafe { self.sending.send(self.socket.as_raw_fd(), next, runs.len()) };
                match sent {
                    Ok(sent) => {
                        outcome.packets += sent as u64;
                        next += sent;
                        waited = false;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waited => {
                        waited = true;
                        let _ = sys::wait(&[(self.socket.as_raw_fd(), true)], Some(Duration::from_millis(5)));
                    }
                    Err(_) => {
                        outcome.dropped += 1;
                        next += 1;
                        waited = false;
                    }
                }
            }
        }
        outcome
    }

    fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize> {
        let received = self.receiving.receive(self.socket.as_raw_fd(), &mut self.buffers, BUFFER)?;
        for (index, buffer) in self.buffers.chunks_exact_mut(BUFFER).enumerate().take(received) {
            let Some((length, source, _, told)) = self.receiving.told(index) else { continue };
            if let Some(dropped) = told.dropped {
                self.overflowed = u64::from(dropped);
            }
            let mut octets = &mut buffer[..length];
            let (mut class, mut id) = (told.class, None);
            if self.local.is_ipv4() {
                let Ok((ip, _)) = Ipv4View::split(octets) else { continue };
                let whole = ip.version() == 4 && ip.header_words() == 5 && ip.fragment() & 0x3fff == 0;
                if !whole || IpAddr::V4(ip.destination()) != self.local {
                    continue;
                }
                id = Some(ip.id());
                class = ip.ecn() as u8;
                octets = &mut octets[Ipv4View::LEN..];
            }
            let Ok((udp, rest)) = UdpView::split(octets) else { continue };
            let (port, length) = (udp.source_port(), usize::from(udp.length()));
            if udp.destination_port() != ROCE_PORT || length != UdpView::LEN + rest.len() {
                continue;
            }
            let octets = &mut octets[UdpView::LEN..];
            let segment = octets.len().max(1);
            sink(Arrived { source, source_port: port, ce: class & 3 == 3, id, octets, segment });
        }
        self.turns = self.turns.wrapping_add(1);
        if (received == 0 || self.claim.has_management()) && self.turns.is_multiple_of(DETOUR) {
            // The raw socket has all of ours but what is for queue pair 1, which others may have got as well.
            let mut sink = |arrived: Arrived<'_>| {
                if is_management(arrived.octets) {
                    sink(arrived);
                }
            };
            self.claim.receive(&mut sink)?;
            let received = self.receiving.receive(self.port.as_raw_fd(), &mut self.buffers, BUFFER)?;
            for (index, buffer) in self.buffers.chunks_exact_mut(BUFFER).enumerate().take(received) {
                let Some((length, source, source_port, told)) = self.receiving.told(index) else { continue };
                let octets = &mut buffer[..length];
                let segment = octets.len().max(1);
                let ce = told.class & 3 == 3;
                self.claim.sort(Arrived { source, source_port, ce, id: None, octets, segment }, &mut sink);
            }
        }
        Ok(received)
    }

    fn readable(&self) -> [RawFd; 3] {
        let [_, management] = self.claim.readable();
        [self.socket.as_raw_fd(), self.port.as_raw_fd(), management]
    }

    fn slot(&self) -> u32 {
        self.claim.slot()
    }

    fn claim_management(&mut self) -> io::Result<()> {
        self.claim.claim_management()
    }

    fn release_management(&mut self) {
        self.claim.release_management();
    }

    fn claim_service(&mut self, service: u64) -> io::Result<()> {
        self.claim.claim_service(service)
    }

    fn release_service(&mut self, service: u64) {
        self.claim.release_service(service);
    }

    fn receive_buffer(&self) -> u64 {
        sys::receive_buffer(&self.socket)
    }

    fn overflowed(&self) -> u64 {
        self.overflowed
    }
}
