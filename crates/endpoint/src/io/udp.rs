//! UDP sockets with segmentation offload, the default: they need no privilege.
//!
//! Over IPv4 the socket that sends is not connected and forbids fragmentation: only then is the identification of what it sends
//! known, zero, or counting from zero in a run (it is covered by the ICRC). What is received does not show its
//! identification, so it is solved for, which leaves 16 bits of check over IPv4; the UDP checksum stands beside it.
//! Over IPv6 there is none, and peers that are sent much have a sending socket of their own, which is connected.

use super::batch::{Batch, Run};
use super::connected::Peers;
use super::steer::Claim;
use super::{Arrived, PacketIo, Sent, Start, sys};
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
/// And for how many turns each time, once some have come that way: others follow most often.
const DETOURED: u32 = 1024;
/// Octets of a lone packet after which another one is to be expected.
const LARGE: usize = 1 << 10;
/// Runs sent by one call.
const SENT_MAX: usize = 64;
/// How often in a row a connected socket may be told of ICMP messages.
const TOLD_MAX: u32 = 4;
/// Packets in a run: what every kernel with segmentation offload takes.
const RUN_MAX: usize = 64;

/// An unconnected UDP socket at port 4791 of one address, and connected ones that only send.
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
    peers: Peers,
    claim: Claim,
    turns: u32,
    /// Turns left in which packets that came to another endpoint are looked for each time.
    detoured: u32,
}

impl UdpIo {
    /// Opens port 4791 of `local`, shared with other endpoints at that address as `claim` says. Up to `connected` peers have
    /// a sending socket of their own.
    ///
    /// # Errors
    /// When the address is not this host's, or another program has the port for itself.
    pub fn open(local: IpAddr, mut claim: Claim, connected: usize) -> io::Result<Self> {
        let v6 = local.is_ipv6();
        let socket = sys::sending_socket(v6)?;
        sys::enlarge(&socket, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE)?;
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if v6 {
            sys::set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            sys::set_option(&socket, libc::SOL_UDP, sys::UDP_NO_CHECK6_RX, 1)?;
        } else {
            sys::set_option(&socket, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
        let segmentation = sys::option(&socket, libc::SOL_UDP, sys::UDP_SEGMENT).is_ok()
            && sys::set_option(&socket, libc::SOL_UDP, sys::UDP_GRO, 1).is_ok();
        sys::RawAddress::new(sys::own(local, ROCE_PORT)?).bind(&socket)?;
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
            peers: Peers::new(local, ROCE_PORT, if v6 { connected } else { 0 }),
            claim,
            turns: 0,
            detoured: 0,
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

fn packets_of(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.packets as u64).sum()
}

impl UdpIo {
    /// Sends runs from one source port.
    fn send_some(&mut self, batch: &Batch, runs: &[Run], outcome: &mut Sent) {
        let Some(source_port) = runs.first().map(|run| run.source_port) else { return };
        let v6 = self.local.is_ipv6();
        let (level, name) =
            if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        let (fd, mut usual) = match self.peers.get_mut(source_port) {
            Some(connected) => (connected.socket.as_raw_fd(), connected.class),
            None if source_port == ROCE_PORT => (self.socket.as_raw_fd(), self.class),
            // It was given up since they were put together.
            None => return outcome.dropped += packets_of(runs),
        };
        let is_connected = source_port != ROCE_PORT;
        let class_of = |run: &Run| run.dscp << 2 | run.ecn as u8;
        // Before any is prepared: what has the socket's own class bears no other, and it would be another one's then.
        if usual == 0
            && let Some(class) = runs.iter().map(class_of).find(|class| *class != 0)
            && sys::set_option(&fd, level, name, class.into()).is_ok()
        {
            usual = class;
        }
        for (index, run) in runs.iter().enumerate() {
            let to = (!is_connected).then(|| self.address(run.destination));
            #[expect(clippy::cast_possible_truncation, reason = "at most 65000")]
            let segment = (run.packets > 1).then_some(run.segment as u16);
            let class = Some(class_of(run)).filter(|class| *class != usual);
            let class = class.map(|class| (v6, libc::c_int::from(class)));
            self.sending.prepare_one(index, to.as_ref(), batch.octets(run), segment, class);
        }
        match self.peers.get_mut(source_port) {
            Some(connected) => connected.class = usual,
            None => self.class = usual,
        }
        let (mut next, mut waited, mut told) = (0, false, 0);
        while next < runs.len() {
            // SAFETY: the octets lie in the batch, which is not written to meanwhile.
            #[expect(unsafe_code, reason = "see above")]
            let sent = unsafe { self.sending.send(fd, next, runs.len()) };
            match sent {
                Ok(sent) => {
                    outcome.packets += packets_of(&runs[next..next + sent]);
                    next += sent;
                    (waited, told) = (false, 0);
                }
                // The buffer is full: the link is slower than we are. It empties at the link's rate.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waited => {
                    waited = true;
                    let _ = sys::wait(&[(fd, true)], Some(Duration::from_millis(5)));
                }
                // A connected socket is told what ICMP says of an earlier packet, in place of sending: the peer's port may be
                // closed for now. That is the transport's to find out.
                Err(error)
                    if is_connected && error.kind() != io::ErrorKind::WouldBlock && told < TOLD_MAX =>
                {
                    told += 1;
                }
                Err(error) => {
                    if is_connected && error.kind() != io::ErrorKind::WouldBlock {
                        // It sends no more; an unconnected one finds its way anew.
                        self.peers.give_up(source_port);
                        outcome.dropped += packets_of(&runs[next..]);
                        return;
                    }
                    outcome.dropped += packets_of(&runs[next..=next]);
                    next += 1;
                    (waited, told) = (false, 0);
                }
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

    #[inline]
    fn begin(&mut self, destination: IpAddr) -> Start {
        let source_port = self.peers.port(destination).unwrap_or(ROCE_PORT);
        Start { source_port, id: 0 }
    }

    fn send(&mut self, batch: &Batch) -> Sent {
        let mut outcome = Sent::default();
        for runs in batch.runs().chunk_by(|one, other| one.source_port == other.source_port) {
            for runs in runs.chunks(SENT_MAX) {
                self.send_some(batch, runs, &mut outcome);
            }
        }
        self.peers.tend();
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
        self.detoured = self.detoured.saturating_sub(1);
        if self.detoured > 0 || self.turns.is_multiple_of(DETOUR) {
            let taken = self.claim.receive(sink)?;
            if taken > 0 {
                self.detoured = DETOURED;
            }
            received += taken;
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
        self.overflowed + self.claim.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icrc::{self, Flow, Id, Solver};
    use crate::io::batch::{Payload, Route};
    use roci_wire::Ecn;
    use std::net::{Ipv6Addr, UdpSocket};

    const HERE: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    fn open(port: u16) -> UdpIo {
        let mut io = UdpIo::open(HERE, Claim::lowest(HERE).unwrap(), 0).unwrap();
        io.peers = Peers::new(HERE, port, 1);
        io
    }

    /// Sends a batch of a packet with this mark, and gives what became of it and its source port.
    fn send(io: &mut UdpIo, ecn: Ecn) -> (Sent, u16) {
        let flow = Flow::new(HERE, HERE);
        let route = Route { destination: HERE, ecn, dscp: 0, flow };
        let mut batch = Batch::new(64);
        batch.push(&route, false, || io.begin(HERE), &[1; 12], 0, Payload::Octets(&[2; 20]));
        (io.send(&batch), batch.runs()[0].source_port)
    }

    /// Sends until a connected socket does, and gives its port. What the unconnected one sends is nobody's: its queue pair is
    /// not there.
    fn connect(io: &mut UdpIo) -> u16 {
        (0..1000).map(|_| send(io, Ecn::Ect0)).find(|sent| sent.1 != ROCE_PORT).unwrap().1
    }

    #[test]
    fn what_a_connected_socket_sends_is_right_and_bears_its_mark() {
        let receiver = UdpSocket::bind((HERE, 0)).unwrap();
        sys::set_option(&receiver, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1).unwrap();
        let mut io = open(receiver.local_addr().unwrap().port());
        let port = connect(&mut io);
        let (mut messages, mut octets) = (sys::Messages::new(1), vec![0; 2048]);
        for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
            while messages.receive(receiver.as_raw_fd(), &mut octets, 2048).unwrap() > 0 {}
            assert_eq!(send(&mut io, ecn), (Sent { packets: 1, dropped: 0 }, port));
            assert_eq!(messages.receive(receiver.as_raw_fd(), &mut octets, 2048).unwrap(), 1);
            let (length, source, source_port, told) = messages.told(0).unwrap();
            assert_eq!((source, source_port, told.class), (HERE, port, ecn as u8));
            let flow = Flow::new(HERE, HERE);
            let judged = icrc::judge(&flow, Id::Seen(0), port, &octets[..length], 0, &mut Solver::default());
            assert_eq!(judged, Some(0), "its ICRC covers its port");
        }
    }

    #[test]
    fn each_packet_bears_its_own_class_also_before_the_socket_has_one() {
        let [here, there] = [[127, 0, 0, 91], [127, 0, 0, 92]].map(IpAddr::from);
        let receiver = UdpSocket::bind((there, ROCE_PORT)).unwrap();
        sys::set_option(&receiver, libc::IPPROTO_IP, libc::IP_RECVTOS, 1).unwrap();
        let mut io = UdpIo::open(here, Claim::lowest(here).unwrap(), 0).unwrap();
        let flow = Flow::new(here, there);
        let (mut messages, mut octets) = (sys::Messages::new(1), vec![0; 2048]);
        let classes = [(0, Ecn::NotEct), (10, Ecn::Ect0), (0, Ecn::NotEct), (48, Ecn::NotEct)];
        for _ in 0..2 {
            let mut batch = Batch::new(64);
            for (dscp, ecn) in classes {
                let route = Route { destination: there, ecn, dscp, flow };
                batch.push(&route, false, || io.begin(there), &[1; 12], 0, Payload::Octets(&[2; 20]));
            }
            assert_eq!(io.send(&batch), Sent { packets: 4, dropped: 0 });
            let came = classes.map(|_| {
                receiver.peek_from(&mut [0; 64]).unwrap();
                assert_eq!(messages.receive(receiver.as_raw_fd(), &mut octets, 2048).unwrap(), 1);
                messages.told(0).unwrap().3.class
            });
            assert_eq!(came, classes.map(|(dscp, ecn)| dscp << 2 | ecn as u8));
        }
    }

    #[test]
    fn a_connected_socket_goes_on_where_nobody_listens_for_a_while() {
        let to = UdpSocket::bind((HERE, 0)).unwrap().local_addr().unwrap();
        let mut io = open(to.port());
        let port = connect(&mut io);
        for _ in 0..100 {
            assert_eq!(send(&mut io, Ecn::Ect0), (Sent { packets: 1, dropped: 0 }, port));
        }
        let receiver = UdpSocket::bind(to).unwrap();
        assert_eq!(send(&mut io, Ecn::Ect0), (Sent { packets: 1, dropped: 0 }, port));
        assert_eq!(receiver.recv_from(&mut [0; 64]).unwrap().1.port(), port);
    }

    #[test]
    fn what_was_put_together_for_a_socket_that_is_given_up_is_dropped_and_counted() {
        let receiver = UdpSocket::bind((HERE, 0)).unwrap();
        let mut io = open(receiver.local_addr().unwrap().port());
        let port = connect(&mut io);
        let flow = Flow::new(HERE, HERE);
        let route = Route { destination: HERE, ecn: Ecn::Ect0, dscp: 0, flow };
        let mut batch = Batch::new(64);
        for _ in 0..3 {
            batch.push(&route, false, || io.begin(HERE), &[1; 12], 0, Payload::Octets(&[2; 20]));
        }
        io.peers.give_up(port);
        assert_eq!(io.send(&batch), Sent { packets: 0, dropped: 3 });
        assert_eq!(send(&mut io, Ecn::Ect0).1, ROCE_PORT);
    }
}
