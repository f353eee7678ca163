//! The way by which perftest's two ends talk beside the data: a TCP connection, or SENDs over one of RDMA-CM.

use super::handshake::{DONE, Key, STRUCT_LEN, TEXT_LEN};
use super::{Event, Options, PerfError, Watch, good, lobby, named};
use crate::addresses::{addresses_of_host, here, is_whole};
use crate::alive::Alive;
use crate::clock::Clock;
use crate::cm::Connection;
use crate::completion::CompletionQueue;
use crate::io::sys;
use crate::memory::Buffer;
use crate::queue_pair::QueuePair;
use crate::work::{RecvWr, SendWr};
use roci_transport::{CompletionKind, Status};
use roci_units::Qpn;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How often a wait looks whether it is to end.
const SLICE: Duration = Duration::from_millis(50);
/// How long the peer's host may be silent on TCP before it is asked whether it is there, and then how often it is, each second; without an
/// answer it counts as gone.
const SILENCE: libc::c_int = 5;
pub(super) const QUESTIONS: libc::c_int = 5;

/// What can be known of the peer without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    Silence,
    /// It has spoken.
    Spoke,
    /// It has ended the conversation.
    Gone,
}

/// A way to talk to the peer. In each exchange the client speaks first.
pub(crate) trait Channel {
    /// Whether we speak first.
    fn is_client(&self) -> bool;
    /// Tells the peer something.
    fn tell(&mut self, octets: &[u8]) -> Result<(), PerfError>;
    /// Hears so many octets.
    fn hear(&mut self, length: usize) -> Result<Vec<u8>, PerfError>;
    /// Tells a key.
    fn tell_key(&mut self, key: &Key) -> Result<(), PerfError>;
    /// Hears a key.
    fn hear_key(&mut self) -> Result<Key, PerfError>;
    /// Whether the peer has spoken or is gone, without waiting.
    fn news(&mut self) -> News;
    /// Takes leave.
    fn finish(&mut self) -> Result<(), PerfError>;
    /// How the conversation has failed though the peer has not taken leave: it no longer answers.
    fn failure(&self) -> Option<PerfError> {
        None
    }
    /// What is known of a peer that has not been met in full.
    fn acquaintance(&mut self) -> &mut Acquaintance;

    /// Tells something and hears as much.
    fn exchange(&mut self, octets: &[u8]) -> Result<Vec<u8>, PerfError> {
        if self.is_client() {
            self.tell(octets)?;
            return self.hear(octets.len());
        }
        let heard = self.hear(octets.len())?;
        self.tell(octets)?;
        Ok(heard)
    }

    /// Tells a key and hears one.
    fn exchange_key(&mut self, key: &Key) -> Result<Key, PerfError> {
        if self.is_client() {
            self.tell_key(key)?;
            return self.hear_key();
        }
        let heard = self.hear_key()?;
        self.tell_key(key)?;
        Ok(heard)
    }
}

/// How far a server knows who has come, and a client whom it has reached.
#[derive(Debug, Default)]
pub(crate) struct Acquaintance {
    /// How long the other may be silent, if that is bounded. Of a server it is until it has spoken: it may take its time over memory.
    pub(crate) patience: Option<Duration>,
    /// Whether it has told a queue pair: it is a client then, whatever it does next.
    pub(crate) is_client: bool,
}

/// The key that was told, if one could be made of it.
fn key_from(key: Option<Key>) -> Result<Key, PerfError> {
    key.ok_or_else(|| PerfError::Peer("told a queue pair that cannot be read".to_owned()))
}

/// A TCP connection.
pub(crate) struct Tcp<'a> {
    stream: TcpStream,
    /// What the peer said before it was known to be one, and has not been asked for yet.
    said: Vec<u8>,
    is_client: bool,
    /// The server, as long as it has said nothing.
    mute: Option<SocketAddr>,
    /// Whether TCP has given the peer's host up, which said nothing any more.
    is_severed: bool,
    acquaintance: Acquaintance,
    watch: &'a dyn Watch,
}

/// Where a server waits for clients over TCP.
pub(crate) struct Door<'a> {
    listener: TcpListener,
    patience: Duration,
    watch: &'a dyn Watch,
}

impl<'a> Door<'a> {
    /// At the address of the device, if one is named, or at all.
    pub(crate) fn open(options: &Options, watch: &'a dyn Watch) -> Result<Self, PerfError> {
        let (at, port, patience) = (options.device, options.port, options.patience);
        let named = SocketAddr::from((at.unwrap_or(Ipv6Addr::UNSPECIFIED.into()), port));
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let listener = match at {
            Some(address) => sys::own(address, port).and_then(TcpListener::bind),
            None => TcpListener::bind(any).or_else(|_| TcpListener::bind(("0.0.0.0", port))),
        };
        let listener = listener.map_err(|error| PerfError::Listen(named, error))?;
        watch.event(Event::Waiting(None));
        Ok(Self { listener, patience, watch })
    }

    /// The next who has said its version, and from where.
    pub(crate) fn client(&self) -> Result<(Tcp<'a>, SocketAddr), PerfError> {
        let (stream, from, said) = lobby::client(&self.listener, self.patience, self.watch)?;
        let mut tcp = Tcp::new(stream, said, false, self.watch)?;
        tcp.acquaintance.patience = Some(self.patience);
        Ok((tcp, from))
    }
}

impl<'a> Tcp<'a> {
    /// Connects to a server.
    pub(crate) fn connect(host: &str, options: &Options, watch: &'a dyn Watch) -> Result<Self, PerfError> {
        let port = options.port;
        let unreachable = |error| PerfError::Unreachable(host.to_owned(), port, error);
        let mut last = unreachable(ErrorKind::NotFound.into());
        for address in addresses_of_host(host, port).map_err(unreachable)? {
            if let Err(error) = is_whole(address) {
                last = named(error);
                continue;
            }
            match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
                Ok(stream) => {
                    let mut tcp = Self::new(stream, Vec::new(), true, watch)?;
                    (tcp.mute, tcp.acquaintance.patience) = (Some(address), Some(options.patience));
                    return Ok(tcp);
                }
                Err(error) => last = unreachable(error),
            }
        }
        Err(last)
    }

    fn new(
        stream: TcpStream,
        said: Vec<u8>,
        is_client: bool,
        watch: &'a dyn Watch,
    ) -> Result<Self, PerfError> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SLICE))?;
        // A peer whose host has vanished is to be noticed while nothing is said.
        sys::set_option(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        sys::set_option(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, SILENCE)?;
        sys::set_option(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1)?;
        sys::set_option(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, QUESTIONS)?;
        let (mute, is_severed, acquaintance) = (None, false, Acquaintance::default());
        Ok(Self { stream, said, is_client, mute, is_severed, acquaintance, watch })
    }

    /// Notes an error by which TCP says that the peer's host is not heard of any more.
    fn note(&mut self, error: &std::io::Error) {
        let severed = [libc::ETIMEDOUT, libc::EHOSTUNREACH, libc::ENETUNREACH];
        self.is_severed |= error.raw_os_error().is_some_and(|number| severed.contains(&number));
    }

    fn left(&self) -> PerfError {
        if self.is_severed {
            return PerfError::Severed;
        }
        self.mute.map_or(PerfError::Left, PerfError::Unheard)
    }

    /// The address of the device at our end.
    pub(crate) fn local(&self) -> Result<IpAddr, PerfError> {
        here(self.stream.local_addr()?).map_err(named)
    }

    /// The address of the peer's end.
    pub(crate) fn peer(&self) -> Result<SocketAddr, PerfError> {
        let peer = self.stream.peer_addr()?;
        Ok(match peer.ip().to_canonical() {
            IpAddr::V4(ip) => (ip, peer.port()).into(),
            IpAddr::V6(_) => peer,
        })
    }
}

impl Channel for Tcp<'_> {
    fn is_client(&self) -> bool {
        self.is_client
    }

    fn tell(&mut self, octets: &[u8]) -> Result<(), PerfError> {
        self.stream.write_all(octets).map_err(|error| match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.left(),
            _ => error.into(),
        })
    }

    fn hear(&mut self, length: usize) -> Result<Vec<u8>, PerfError> {
        let clock = Clock::new();
        let mut is_told = self.mute.is_none();
        let mut octets: Vec<u8> = self.said.drain(..length.min(self.said.len())).collect();
        let mut heard = octets.len();
        octets.resize(length, 0);
        while heard < length {
            match self.stream.read(&mut octets[heard..]) {
                Ok(0) => return Err(self.left()),
                Ok(more) => heard += more,
                Err(error) => {
                    self.note(&error);
                    match error.kind() {
                        _ if self.is_severed => return Err(PerfError::Severed),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return Err(self.left()),
                        _ => return Err(error.into()),
                    }
                }
            }
            if self.watch.stopped() {
                return Err(PerfError::Stopped);
            }
            let Some(patience) = self.acquaintance.patience.filter(|_| heard < length) else { continue };
            if clock.passed() >= patience {
                return Err(self.mute.map_or(PerfError::Silent, PerfError::Mute));
            }
            if let Some(server) = self.mute.filter(|_| !is_told && clock.passed() >= patience / 12) {
                is_told = true;
                self.watch.event(Event::Mute(server));
            }
        }
        if self.mute.take().is_some() {
            self.acquaintance.patience = None;
        }
        Ok(octets)
    }

    fn acquaintance(&mut self) -> &mut Acquaintance {
        &mut self.acquaintance
    }

    fn tell_key(&mut self, key: &Key) -> Result<(), PerfError> {
        self.tell(&key.to_text())
    }

    fn hear_key(&mut self) -> Result<Key, PerfError> {
        let key = key_from(Key::from_text(&self.hear(TEXT_LEN)?))?;
        self.acquaintance.is_client = true;
        Ok(key)
    }

    fn news(&mut self) -> News {
        if self.stream.set_nonblocking(true).is_err() {
            return News::Gone;
        }
        let peeked = self.stream.peek(&mut [0]);
        if self.stream.set_nonblocking(false).is_err() {
            return News::Gone;
        }
        match peeked {
            Ok(0) => News::Gone,
            Ok(_) => News::Spoke,
            Err(error) if error.kind() == ErrorKind::WouldBlock => News::Silence,
            Err(error) => {
                self.note(&error);
                News::Gone
            }
        }
    }

    fn failure(&self) -> Option<PerfError> {
        self.is_severed.then_some(PerfError::Severed)
    }

    fn finish(&mut self) -> Result<(), PerfError> {
        // The peer may have left already: all has been said.
        let _ = self.tell(DONE);
        match self.hear(DONE.len()) {
            Err(PerfError::Stopped) => Err(PerfError::Stopped),
            _ => Ok(()),
        }
    }
}

/// SENDs over a connection of their own: each is one thing that is told.
pub(crate) struct Messages<'a> {
    connection: Connection,
    qp: QueuePair,
    cq: CompletionQueue,
    heard: VecDeque<Vec<u8>>,
    alive: Alive,
    /// How the connection has failed.
    failed: Option<(Status, Qpn)>,
    is_client: bool,
    acquaintance: Acquaintance,
    watch: &'a dyn Watch,
}

/// Octets of the longest thing that is told.
pub(crate) const MESSAGE_MAX: usize = 256;

impl<'a> Messages<'a> {
    /// Over a connection whose queue pair has receives of [`MESSAGE_MAX`] octets posted.
    pub(crate) fn new(
        connection: Connection,
        qp: QueuePair,
        cq: CompletionQueue,
        is_client: bool,
        watch: &'a dyn Watch,
    ) -> Self {
        let (heard, alive) = (VecDeque::new(), Alive::new(&qp));
        let (failed, acquaintance) = (None, Acquaintance::default());
        Self { connection, qp, cq, heard, alive, failed, is_client, acquaintance, watch }
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// Takes one thing that has ended, waiting up to `timeout` for it; whether there was one.
    fn take(&mut self, timeout: Duration) -> Result<bool, PerfError> {
        if let Some((status, qpn)) = self.failed {
            return Err(PerfError::Completion { status, qpn });
        }
        let completion = match self.cq.wait(timeout) {
            Ok(completion) => completion,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                // Who only listens would wait for a peer that was killed for ever: nothing else is told while data are moved.
                self.alive.ask(&self.qp)?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        if !completion.is_ok() {
            // What follows was flushed, and says only that.
            self.failed = Some((completion.status, completion.qp_num));
            return good(completion).map(|_| true);
        }
        self.alive.note(&self.qp, &completion);
        if completion.opcode == CompletionKind::Recv {
            let length = completion.byte_len as usize;
            if let Some(buffer) = completion.into_buffer() {
                self.keep(&buffer, length);
                self.qp.post_recv(RecvWr::new(buffer))?;
            }
        }
        Ok(true)
    }

    fn keep(&mut self, buffer: &Buffer, length: usize) {
        let octets = buffer.as_slice().unwrap_or_default();
        self.heard.push_back(octets[..length.min(octets.len())].to_vec());
    }
}

impl Channel for Messages<'_> {
    fn is_client(&self) -> bool {
        self.is_client
    }

    fn tell(&mut self, octets: &[u8]) -> Result<(), PerfError> {
        Ok(self.qp.post_send(SendWr::send_inline(octets))?)
    }

    fn acquaintance(&mut self) -> &mut Acquaintance {
        &mut self.acquaintance
    }

    fn failure(&self) -> Option<PerfError> {
        let (status, qpn) = self.failed.filter(|_| !self.connection.has_left())?;
        Some(PerfError::Completion { status, qpn })
    }

    fn hear(&mut self, length: usize) -> Result<Vec<u8>, PerfError> {
        let clock = Clock::new();
        loop {
            if let Some(heard) = self.heard.pop_front() {
                let (got, told) = (heard.len(), format!("told {} octets and not {length}", heard.len()));
                return if got == length { Ok(heard) } else { Err(PerfError::Peer(told)) };
            }
            if self.watch.stopped() {
                return Err(PerfError::Stopped);
            }
            let is_over = self.connection.has_left();
            // What was told before the end may stand behind what else has ended.
            let has_more = self.take(if is_over { Duration::ZERO } else { SLICE })?;
            if is_over && !has_more {
                return Err(PerfError::Left);
            }
            if !has_more && self.acquaintance.patience.is_some_and(|most| clock.passed() >= most) {
                return Err(PerfError::Silent);
            }
        }
    }

    fn tell_key(&mut self, key: &Key) -> Result<(), PerfError> {
        self.tell(&key.to_struct())
    }

    fn hear_key(&mut self) -> Result<Key, PerfError> {
        let key = key_from(Key::from_struct(&self.hear(STRUCT_LEN)?))?;
        self.acquaintance.is_client = true;
        Ok(key)
    }

    fn news(&mut self) -> News {
        let is_over = self.connection.has_left();
        while self.heard.is_empty() {
            match self.take(Duration::ZERO) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return News::Gone,
            }
        }
        match (self.heard.is_empty(), is_over) {
            (false, _) => News::Spoke,
            (true, true) => News::Gone,
            (true, false) => News::Silence,
        }
    }

    fn finish(&mut self) -> Result<(), PerfError> {
        // The server ends the connection, as perftest's does; a client only when it does not.
        if self.is_client {
            self.connection.wait_disconnected(Duration::from_secs(2));
        }
        self.connection.disconnect();
        self.connection.wait_disconnected(Duration::from_secs(2));
        Ok(())
    }
}
