//! rping's protocol, either end of which can be rping (rdma-core).
//!
//! Once for each ping: the client tells where its text lies, the server READs it and says so; the client tells where it
//! wants it, the server WRITEs it there and says so. What is told is 16 octets, big-endian: address, key, length.

use crate::alive::Alive;
use crate::cm::{CmError, ConnParam, Connection, ConnectionManager, Listener};
use crate::completion::CompletionQueue;
use crate::device::{Device, ProtectionDomain};
use crate::memory::{LentError, MemoryRegion, RegionError, RemoteMemory};
use crate::queue_pair::{QueuePair, QueuePairError};
use crate::work::{RecvWr, Refused, SendWr, WorkCompletion};
use roci_transport::{Access, CompletionKind, Status};
use roci_units::Span;
use roci_wire::cm::reason;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// rping's port.
pub const PORT: u16 = 7174;
/// Octets of what is told.
const TOLD: usize = 16;
/// Receives that are posted.
const RECEIVES: usize = 4;
/// Octets of a ping that any server takes.
const SERVED: usize = 64 << 10;
/// How often a wait looks whether it is to end.
const SLICE: Duration = Duration::from_millis(20);

/// How to ping.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server to ping; `None` to be one.
    pub host: Option<SocketAddr>,
    /// The port of a server.
    pub port: u16,
    /// The address of our device.
    pub device: IpAddr,
    /// How often; 0: until it is stopped.
    pub count: u64,
    /// Octets of a ping, 17 to 2²⁴. A server takes those of its client up to this, or to 64 KiB.
    pub size: usize,
    /// The client compares what comes back.
    pub validate: bool,
    /// A server goes on after its first client.
    pub persistent: bool,
}

/// Who is told what happens.
pub trait Watch {
    /// The server waits, at this address and port.
    fn waiting(&self, _at: SocketAddr) {}
    /// The two are connected.
    fn connected(&self, _peer: SocketAddr) {}
    /// The server could not accept what a client asked for, and waits for the next.
    fn refused(&self, _peer: SocketAddr, _error: &CmError) {}
    /// A ping is done: its number, its text, and how long it took in microseconds.
    fn ping(&self, _number: u64, _text: &[u8], _us: f64) {}
    /// Whether to end.
    fn stopped(&self) -> bool {
        false
    }
}

/// Why a ping failed.
#[derive(thiserror::Error)]
pub enum PingError {
    /// The options do not do.
    #[error("{0}")]
    Options(&'static str),
    /// The device cannot be opened.
    #[error("cannot open the device {0}: {1}")]
    Device(IpAddr, io::Error),
    /// There is no connection.
    #[error("{0}{more}", more = match .0 {
        CmError::Unreachable(peer) | CmError::Rejected { peer, reason: reason::INVALID_SERVICE, .. } => format!(
            "; a server is to be started there first: `roci ping -s -a {}`, or rping -s, at the same port (-p)", peer.ip()
        ),
        _ => String::new(),
    })]
    Connect(#[from] CmError),
    /// The peer ended the connection.
    #[error("the peer ended the connection after {0} pings")]
    Left(u64),
    /// It did so at once, and the pings are longer than every server takes.
    #[error(
        "the peer ended the connection at the first ping, of {0} octets: a server takes up to 65536, and more where it was started with -S as well"
    )]
    TooLong(usize),
    /// What came back is not what was sent.
    #[error("ping {0} came back changed")]
    Changed(u64),
    /// The peer said what does not fit.
    #[error("the peer {0}")]
    Peer(String),
    /// A request failed.
    #[error("the peer was lost: a request ended with {0}")]
    Completion(Status),
    /// A request was refused.
    #[error("a request was refused: {0}")]
    Refused(String),
    /// A queue pair could not be made.
    #[error(transparent)]
    QueuePair(#[from] QueuePairError),
    /// Memory could not be registered.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Memory could not be lent.
    #[error(transparent)]
    Lent(#[from] LentError),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It was asked to end.
    #[error("stopped")]
    Stopped,
}

speaks!(PingError);

impl<R: std::fmt::Debug> From<Box<Refused<R>>> for PingError {
    fn from(refused: Box<Refused<R>>) -> Self {
        Self::Refused(refused.to_string())
    }
}

/// Pings, or answers; gives how many pings were done.
///
/// # Errors
/// [`PingError`]. For a server that the client leaves, and for whoever is stopped between pings, it is no error.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<u64, PingError> {
    if !(17..=1 << 24).contains(&options.size) {
        return Err(PingError::Options("a ping has 17 to 2^24 octets"));
    }
    let device = Device::open(options.device).map_err(|error| PingError::Device(options.device, error))?;
    let manager = ConnectionManager::new(&device)?;
    match options.host {
        Some(host) => {
            let end = End::new(&device, options)?;
            let connection = connect(&manager, &end.qp, host, watch)?;
            watch.connected(host);
            let mut talk = Talk::new(end, connection, watch);
            let done = talk.ask(&device, options);
            talk.connection.disconnect();
            talk.connection.wait_disconnected(Duration::from_secs(2));
            match done {
                Err(PingError::Left(0)) if options.size > SERVED => Err(PingError::TooLong(options.size)),
                done => finish(done, talk.done),
            }
        }
        None => {
            let size = options.size.max(SERVED);
            let options = Options { size, ..options.clone() };
            serve(&device, &manager.listen(options.port)?, &options, watch)
        }
    }
}

/// Being stopped is no error of who did what it could.
fn finish(done: Result<(), PingError>, count: u64) -> Result<u64, PingError> {
    match done {
        Ok(()) | Err(PingError::Stopped) => Ok(count),
        Err(error) => Err(error),
    }
}

fn serve(
    device: &Device,
    listener: &Listener,
    options: &Options,
    watch: &dyn Watch,
) -> Result<u64, PingError> {
    let mut all = 0;
    loop {
        watch.waiting(SocketAddr::new(device.address(), listener.port()));
        let request = loop {
            if watch.stopped() {
                return Ok(all);
            }
            if let Some(request) = listener.get_request(SLICE)? {
                break request;
            }
        };
        let end = End::new(device, options)?;
        // Anybody may ask for anything, in anybody's name. That is no reason to leave.
        let peer = request.peer();
        let connection = match request.accept(&end.qp, &parameters()) {
            Ok(connection) => connection.met(&|| watch.stopped()),
            Err(error) => {
                watch.refused(peer, &error);
                None
            }
        };
        let Some(connection) = connection else { continue };
        watch.connected(peer);
        let mut talk = Talk::new(end, connection, watch);
        let done = talk.answer(options);
        talk.connection.disconnect();
        all += talk.done;
        match done {
            Ok(()) | Err(PingError::Left(_)) => {}
            Err(PingError::Stopped) => return Ok(all),
            Err(error) if !options.persistent => return Err(error),
            Err(_) => {}
        }
        if !options.persistent {
            return Ok(all);
        }
    }
}

/// As rping asks for it: one READ at a time.
fn parameters() -> ConnParam {
    ConnParam { responder_resources: 1, initiator_depth: 1, ..ConnParam::default() }
}

fn connect(
    manager: &ConnectionManager,
    qp: &QueuePair,
    to: SocketAddr,
    watch: &dyn Watch,
) -> Result<Connection, PingError> {
    let mut asked = manager.request(qp, to, &parameters())?;
    loop {
        if let Some(connection) = asked.wait(qp, SLICE)? {
            return Ok(connection);
        }
        if watch.stopped() {
            return Err(PingError::Stopped);
        }
    }
}

/// A queue pair with its memory.
struct End {
    qp: QueuePair,
    cq: CompletionQueue,
    /// The client's text and, behind it, the place for what comes back; the server's copy.
    open: MemoryRegion,
    /// Where the server READs to and WRITEs from.
    own: MemoryRegion,
    /// Holds the receives.
    _told: MemoryRegion,
    _pd: ProtectionDomain,
}

impl End {
    fn new(device: &Device, options: &Options) -> Result<Self, PingError> {
        let pd = device.alloc_pd();
        let cq = device.create_cq()?;
        let qp = pd.create_qp(&cq, &cq).build()?;
        let rights = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE;
        let open = pd.reg_mr(vec![0; 2 * options.size], rights)?;
        let own = pd.reg_mr(vec![0; options.size], Access::LOCAL_WRITE)?;
        let told = pd.reg_mr(vec![0; RECEIVES * TOLD], Access::LOCAL_WRITE)?;
        for slot in 0..RECEIVES {
            qp.post_recv(RecvWr::new(told.buffer(slot * TOLD..(slot + 1) * TOLD)?))?;
        }
        Ok(Self { qp, cq, open, own, _told: told, _pd: pd })
    }
}

/// One connection.
struct Talk<'a> {
    end: End,
    connection: Connection,
    told: VecDeque<(RemoteMemory, usize)>,
    alive: Alive,
    watch: &'a dyn Watch,
    done: u64,
}

impl<'a> Talk<'a> {
    fn new(end: End, connection: Connection, watch: &'a dyn Watch) -> Self {
        let alive = Alive::new(&end.qp);
        Self { end, connection, told: VecDeque::new(), alive, watch, done: 0 }
    }

    /// The client's part.
    fn ask(&mut self, device: &Device, options: &Options) -> Result<(), PingError> {
        let size = options.size;
        let mut text = vec![0; size];
        let mut back = vec![0; size];
        while options.count == 0 || self.done < options.count {
            self.go_on()?;
            let begin = device.inner.now();
            write_text(&mut text, self.done);
            self.end.open.write(0, &text)?;
            self.tell(self.end.open.remote(), size)?;
            self.hear()?;
            self.tell(self.end.open.remote().plus(size as u64), size)?;
            self.hear()?;
            self.end.open.read(size, &mut back)?;
            if options.validate && back != text {
                return Err(PingError::Changed(self.done));
            }
            let took: Span = device.inner.now().since(begin);
            self.watch.ping(self.done, &back, took.as_secs_f64() * 1e6);
            self.done += 1;
        }
        Ok(())
    }

    /// The server's part, until the client leaves.
    fn answer(&mut self, options: &Options) -> Result<(), PingError> {
        loop {
            self.go_on()?;
            let (source, length) = self.hear()?;
            if length == 0 || length > options.size {
                let size = options.size;
                return Err(PingError::Peer(format!(
                    "sends pings of {length} octets; 1 to {size} are taken (-S)"
                )));
            }
            let buffer = self.end.own.buffer(0..length)?;
            self.end.qp.post_send(SendWr::read(buffer, source))?;
            let completion = self.finished(CompletionKind::Read)?;
            let buffer =
                completion.into_buffer().ok_or(PingError::Refused("a READ without a buffer".to_owned()))?;
            let text = buffer.to_vec();
            self.tell(RemoteMemory::default(), 0)?;
            let (sink, room) = self.hear()?;
            if room < length {
                return Err(PingError::Peer(format!("has room for {room} octets and sent {length}")));
            }
            self.end.qp.post_send(SendWr::write(buffer, sink))?;
            self.finished(CompletionKind::Write)?;
            self.tell(RemoteMemory::default(), 0)?;
            self.watch.ping(self.done, &text, 0.0);
            self.done += 1;
        }
    }

    /// Looks whether to end: before each ping, as pings that follow each other leave no time to wait in.
    fn go_on(&self) -> Result<(), PingError> {
        if self.watch.stopped() { Err(PingError::Stopped) } else { Ok(()) }
    }

    fn tell(&mut self, memory: RemoteMemory, length: usize) -> Result<(), PingError> {
        let mut octets = [0; TOLD];
        octets[..8].copy_from_slice(&memory.address.to_be_bytes());
        octets[8..12].copy_from_slice(&memory.rkey.to_be_bytes());
        octets[12..].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        self.end.qp.post_send(SendWr::send_inline(&octets))?;
        self.finished(CompletionKind::Send).map(drop)
    }

    fn hear(&mut self) -> Result<(RemoteMemory, usize), PingError> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Ok(told);
            }
            self.next()?;
            // All that we asked has ended, so nothing tells of a peer that is gone. While a READ is under way its retries do; and the kernel's
            // Soft-RoCE refuses one that is asked for again once a WRITE without octets came behind it (docs/guide/interop.md).
            self.alive.ask(&self.end.qp)?;
        }
    }

    /// Waits for the end of what was posted last.
    fn finished(&mut self, kind: CompletionKind) -> Result<WorkCompletion, PingError> {
        loop {
            if let Some(completion) = self.next()?
                && completion.opcode == kind
            {
                return Ok(completion);
            }
        }
    }

    /// The next completion of a request of ours; what was told is put aside.
    fn next(&mut self) -> Result<Option<WorkCompletion>, PingError> {
        let completion = match self.end.cq.wait(SLICE) {
            Ok(completion) => completion,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.go_on()?;
                if self.connection.has_left() {
                    return Err(PingError::Left(self.done));
                }
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if !completion.is_ok() {
            let is_over = self.connection.has_left();
            let status = completion.status;
            return Err(if is_over { PingError::Left(self.done) } else { PingError::Completion(status) });
        }
        let is_ours = self.alive.note(&self.end.qp, &completion);
        if completion.opcode != CompletionKind::Recv {
            return Ok(is_ours.then_some(completion));
        }
        let length = completion.byte_len as usize;
        if length != TOLD {
            return Err(PingError::Peer(format!("told {length} octets and not {TOLD}")));
        }
        let Some(buffer) = completion.into_buffer() else { return Ok(None) };
        let octets = buffer.to_vec();
        let word = |at: usize| octets[at..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        let address = u64::from(word(0)) << 32 | u64::from(word(4));
        let length = usize::try_from(word(12)).unwrap_or(usize::MAX);
        self.told.push_back((RemoteMemory { address, rkey: word(8) }, length));
        self.end.qp.post_recv(RecvWr::new(buffer))?;
        Ok(None)
    }
}

/// A ping's text: its number, letters that begin with another each time, a zero at the end.
fn write_text(text: &mut [u8], number: u64) {
    let head = format!("rdma-ping-{number}: ");
    let letters = b'A'..=b'z';
    let count = letters.clone().count();
    let first = usize::try_from(number % count as u64).unwrap_or(0);
    let tail = letters.cycle().skip(first);
    for (place, octet) in text.iter_mut().zip(head.bytes().chain(tail)) {
        *place = octet;
    }
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_with_their_number_and_end_with_a_zero() {
        let mut text = [1; 24];
        write_text(&mut text, 3);
        assert_eq!(&text, b"rdma-ping-3: DEFGHIJKLM\0");
        let mut text = [1; 80];
        write_text(&mut text, 57);
        assert_eq!(&text[14..18], b"zABC");
    }
}
