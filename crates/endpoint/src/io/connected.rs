//! Sending sockets that are connected to one peer each.
//!
//! For what an unconnected socket sends, the kernel looks up the route each time; a connected one remembers it. Each has a UDP source
//! port of its own, which RoCEv2 leaves to the sender; all that is received comes to port 4791, and nobody reads what comes to
//! theirs. Not every peer has one: they are few, peers that send much get one by sending, and those that have stopped lose
//! theirs.

use super::sys;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// Each of so many runs to peers without a socket gets its peer one, where there is room.
const EARNED: u32 = 16;
/// After so many of them sockets that sent nothing meanwhile are closed.
const REVIEW: u32 = 1 << 16;

/// A socket that sends to one peer.
pub(crate) struct Connected {
    pub(crate) socket: OwnedFd,
    /// The class that it gives to what names none.
    pub(crate) class: u8,
    peer: IpAddr,
    is_used: bool,
}

/// The sockets, each found by its source port and by its peer.
pub(crate) struct Peers {
    local: IpAddr,
    port: u16,
    most: usize,
    sockets: BTreeMap<u16, Connected>,
    ports: BTreeMap<IpAddr, u16>,
    /// The peer of the last run, and its port: most go where the last one went.
    last: Option<(IpAddr, Option<u16>)>,
    /// Runs to peers without a socket.
    without: u32,
    wanted: Option<IpAddr>,
    /// Whether none is opened until the next review, as one could not be, or could not send.
    is_shut: bool,
}

impl Peers {
    /// At most `most` sockets from `local`, to `port` of their peers.
    pub(crate) fn new(local: IpAddr, port: u16, most: usize) -> Self {
        Self {
            local,
            port,
            most,
            sockets: BTreeMap::new(),
            ports: BTreeMap::new(),
            last: None,
            without: 0,
            wanted: None,
            is_shut: false,
        }
    }

    /// The source port of the next run to `peer`, if it has a socket, which stays until the next [`tend`](Self::tend).
    #[inline]
    pub(crate) fn port(&mut self, peer: IpAddr) -> Option<u16> {
        if self.most == 0 {
            return None;
        }
        if let Some((last, Some(port))) = self.last
            && last == peer
        {
            return Some(port);
        }
        self.find(peer)
    }

    fn find(&mut self, peer: IpAddr) -> Option<u16> {
        let port = match self.last {
            Some((last, port)) if last == peer => port,
            _ => self.ports.get(&peer).copied(),
        };
        self.last = Some((peer, port));
        if let Some(socket) = port.and_then(|port| self.sockets.get_mut(&port)) {
            socket.is_used = true;
        } else {
            self.without = self.without.wrapping_add(1);
            if self.without.is_multiple_of(EARNED) {
                self.wanted = Some(peer);
            }
        }
        port
    }

    /// The socket with a source port.
    #[inline]
    pub(crate) fn get_mut(&mut self, port: u16) -> Option<&mut Connected> {
        self.sockets.get_mut(&port)
    }

    /// Between two batches: opens what was earned, and closes what is not used.
    #[inline]
    pub(crate) fn tend(&mut self) {
        if let Some(peer) = self.wanted.take() {
            self.grant(peer);
        }
    }

    #[cold]
    fn grant(&mut self, peer: IpAddr) {
        if self.without >= REVIEW {
            (self.without, self.is_shut, self.last) = (0, false, None);
            self.ports.retain(|_, port| self.sockets.get(port).is_some_and(|socket| socket.is_used));
            self.sockets.retain(|_, socket| std::mem::take(&mut socket.is_used));
        }
        if self.is_shut || self.sockets.len() >= self.most {
            return;
        }
        self.last = None;
        match open(self.local, SocketAddr::new(peer, self.port)) {
            Ok((socket, port)) => {
                self.sockets.insert(port, Connected { socket, class: 0, peer, is_used: true });
                self.ports.insert(peer, port);
            }
            Err(_) => self.is_shut = true,
        }
    }

    /// The socket with this source port cannot send: its peer has none until the next review.
    #[cold]
    pub(crate) fn give_up(&mut self, port: u16) {
        if let Some(socket) = self.sockets.remove(&port) {
            self.ports.remove(&socket.peer);
            (self.last, self.is_shut) = (None, true);
        }
    }
}

/// A socket at any port of `local`, connected to `peer`, and its port.
fn open(local: IpAddr, peer: SocketAddr) -> io::Result<(OwnedFd, u16)> {
    let socket = sys::sending_socket(local.is_ipv6())?;
    // Whatever comes to it is not read: it takes next to nothing.
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 1)?;
    sys::RawAddress::new(sys::own(local, 0)?).bind(&socket)?;
    sys::RawAddress::new(peer).connect(&socket)?;
    let port = sys::local_port(&socket)?;
    Ok((socket, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 93));

    fn peer(last: u8) -> IpAddr {
        [127, 0, 93, last].into()
    }

    /// Sends so many runs to a peer; gives the source port of the last.
    fn runs(peers: &mut Peers, peer: IpAddr, count: u32) -> Option<u16> {
        (0..count).map(|_| (peers.port(peer), peers.tend()).0).last().flatten()
    }

    #[test]
    fn a_peer_that_is_sent_much_has_a_socket_that_sends_to_it_alone() {
        let receiver = UdpSocket::bind((peer(1), 0)).unwrap();
        let to = receiver.local_addr().unwrap().port();
        let mut peers = Peers::new(HERE, to, 2);
        assert_eq!(runs(&mut peers, peer(1), EARNED), None);
        let port = runs(&mut peers, peer(1), 1).unwrap();
        assert_eq!(runs(&mut peers, peer(2), 1), None, "another's is its own");
        let socket = &peers.get_mut(port).unwrap().socket;
        // SAFETY: the octets are alive.
        #[expect(unsafe_code, reason = "see above")]
        let sent =
            unsafe { libc::send(std::os::fd::AsRawFd::as_raw_fd(socket), b"run".as_ptr().cast(), 3, 0) };
        let mut octets = [0; 8];
        let (length, from) = receiver.recv_from(&mut octets).unwrap();
        assert_eq!((sent, &octets[..length], from), (3, &b"run"[..], SocketAddr::new(HERE, port)));
    }

    #[test]
    fn there_are_no_more_sockets_than_allowed_and_peers_that_are_sent_nothing_lose_theirs() {
        let mut peers = Peers::new(HERE, 9, 2);
        let kept = runs(&mut peers, peer(1), 2 * EARNED).unwrap();
        let lost = runs(&mut peers, peer(2), 2 * EARNED).unwrap();
        assert_eq!(runs(&mut peers, peer(3), 100 * EARNED), None, "there are two");
        // Until the review the first is sent something now and then, the second nothing.
        while runs(&mut peers, peer(3), EARNED).is_none() {
            assert_eq!(runs(&mut peers, peer(1), 1), Some(kept));
        }
        assert_eq!(peers.sockets.len(), 2);
        assert!(peers.get_mut(lost).is_none_or(|socket| socket.peer == peer(3)));
        assert_eq!(runs(&mut peers, peer(2), 100 * EARNED), None, "there are two again");
    }

    #[test]
    fn ten_thousand_peers_in_turn_open_few_sockets() {
        let mut peers = Peers::new(HERE, 9, 8);
        let (mut with, mut before, mut opened) = (0, Vec::new(), 0);
        for number in 0..200_000u32 {
            let [.., high, low] = (number % 10_000).to_be_bytes();
            with += u32::from(runs(&mut peers, [127, 94, high, low].into(), 1).is_some());
            let now: Vec<u16> = peers.sockets.keys().copied().collect();
            assert!(now.len() <= 8);
            opened += now.iter().filter(|port| !before.contains(*port)).count();
            before = now;
        }
        assert!((8 * 15..=8 * 20).contains(&with), "{with} runs of peers that have one");
        // Each was sent something between two reviews.
        assert_eq!(opened, 8);
    }

    #[test]
    fn a_peer_to_whom_its_socket_cannot_send_has_none_until_the_next_review() {
        let mut peers = Peers::new(HERE, 9, 2);
        let port = runs(&mut peers, peer(1), 2 * EARNED).unwrap();
        peers.give_up(port);
        assert!(peers.get_mut(port).is_none());
        assert_eq!(runs(&mut peers, peer(1), 100 * EARNED), None);
        assert!(runs(&mut peers, peer(1), REVIEW).is_some());
    }

    #[test]
    fn who_allows_none_has_none() {
        let mut peers = Peers::new(HERE, 9, 0);
        assert_eq!(runs(&mut peers, peer(1), 2 * REVIEW), None);
    }
}
