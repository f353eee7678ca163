//! Connection set-up: RDMA-CM's `listen`, `connect`, `accept` and `reject`, by datagrams on queue pair 1.
//!
//! ```no_run
//! use roci_endpoint::cm::{ConnectionManager, ConnParam};
//! use roci_endpoint::Device;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?;
//! let pd = device.alloc_pd();
//! let cq = device.create_cq()?;
//! let manager = ConnectionManager::new(&device)?;
//!
//! // Who waits:
//! let listener = manager.listen(7471)?;
//! if let Some(request) = listener.get_request(Duration::from_secs(60))? {
//!     let qp = pd.create_qp(&cq, &cq).build()?;
//!     let connection = request.accept(&qp, &ConnParam::default())?;
//!     connection.wait_established(Duration::from_secs(10))?;
//! }
//! // Who asks:
//! let qp = pd.create_qp(&cq, &cq).build()?;
//! let connection = manager.connect(&qp, "10.0.0.2:7471".parse()?, &ConnParam::default())?;
//! connection.disconnect();
//! # Ok(())
//! # }
//! ```
//!
//! A device has one manager, and an address one: queue pair 1 exists once. A queue pair with another header layout than the
//! standard one is offered as such in the private data; who accepts must have made its queue pair with the layout that the
//! request names ([`ConnectRequest::layout`]), and a peer that does not know it is not connected to.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`machine`] | the protocol: states, retries, duplicates, without I/O |

pub mod machine;

use crate::completion::CompletionQueue;
use crate::device::{Device, Mtu};
use crate::memory::{Buffer, MemoryRegion};
use crate::numbers::random;
use crate::queue_pair::{QpInfo, QueuePair, QueuePairError};
use crate::work::{RecvWr, SendWr, WorkCompletion};
use machine::{Event, Id, Machine, RESPONSE_TIMEOUT, RETRIES};
use roci_transport::{Access, Change, CompletionKind, Transition};
use roci_units::{Psn, Qpn};
use roci_wire::cm::{Endpoints, MAD_LEN, Private, Q_KEY, Reject, Reply, Request, reason, service};
use roci_wire::{Layout, cm};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Datagrams that may be on their way out, and receives that are posted.
const SLOTS: usize = 64;
/// How often the manager's thread looks up.
const SLICE: Duration = Duration::from_millis(50);

/// What an end says of itself when it connects (`rdma_conn_param`).
#[derive(Clone, Debug)]
pub struct ConnParam {
    /// READs and atomics that it takes at once as responder; 16 if not said.
    pub responder_resources: u8,
    /// READs and atomics that it wants outstanding; 16 if not said. The peer's `responder_resources` bound it.
    pub initiator_depth: u8,
    /// Retransmissions without progress before the connection fails, 0 to 7; 7 if not said.
    pub retry_count: u8,
    /// Retries when the peer is not ready, 0 to 6; 7, for ever, if not said.
    pub rnr_retry_count: u8,
    /// The local ACK timeout, 4.096 µs · 2^`ack_timeout`; 14 (67 ms) if not said.
    pub ack_timeout: u8,
    /// The path MTU that who connects asks for; the device's if not said.
    pub path_mtu: Option<Mtu>,
    /// What the peer's user is told: at most 48 octets with a request, 188 with a reply.
    pub private_data: Vec<u8>,
}

impl Default for ConnParam {
    fn default() -> Self {
        Self {
            responder_resources: 16,
            initiator_depth: 16,
            retry_count: 7,
            rnr_retry_count: 7,
            ack_timeout: 14,
            path_mtu: None,
            private_data: Vec::new(),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum CmError {
    /// The peer did not answer, or its last word was lost.
    #[error("{0} does not answer: nobody there speaks RDMA-CM, or the way is blocked (UDP port 4791)")]
    Unreachable(SocketAddr),
    /// The peer refused.
    #[error("{peer} rejected the connection: {} (reason {reason})", cm::reason::text(*.reason))]
    Rejected {
        /// Who.
        peer: SocketAddr,
        /// Why, as IBTA numbers the reasons (Vol 1 §12.6.7.2).
        reason: u16,
        /// What its user adds.
        private_data: Vec<u8>,
    },
    /// It does not exist any more.
    #[error("the connection was given up meanwhile")]
    Gone,
    /// The peer's queue pair has another header layout than ours.
    #[error("the peer's header layout is {0:?}, ours is another")]
    Layout(Layout),
    /// Somebody listens at the port.
    #[error("port {0} is listened at already")]
    InUse(u16),
    /// More private data than there is room for.
    #[error("more private data than {0} octets")]
    PrivateData(usize),
    /// The queue pair does not do.
    #[error(transparent)]
    QueuePair(#[from] QueuePairError),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Connection set-up of one device. Clones are the same.
#[derive(Clone, Debug)]
pub struct ConnectionManager {
    handle: Arc<Handle>,
}

/// Alive as long as a manager, a listener or a connection is.
#[derive(Debug)]
struct Handle {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    qp: QueuePair,
    cq: CompletionQueue,
    guid: u64,
    core: Mutex<Core>,
    changed: Condvar,
    stop: AtomicBool,
    /// The datagrams' memory.
    _region: MemoryRegion,
}

#[derive(Debug)]
struct Core {
    machine: Machine,
    free: Vec<Buffer>,
    /// What the connections' owners have not taken note of.
    notes: BTreeMap<Id, Note>,
    /// Requests that nobody has looked at, by service.
    asked: BTreeMap<u64, VecDeque<(Id, IpAddr, Box<Request>)>>,
}

/// What has become of a connection.
#[derive(Debug, Default)]
struct Note {
    reply: Option<Box<Reply>>,
    rejected: Option<Box<Reject>>,
    is_unreachable: bool,
    is_established: bool,
    is_disconnected: bool,
}

impl ConnectionManager {
    /// Takes queue pair 1 of the device's address, and a thread.
    ///
    /// # Errors
    /// [`QueuePairError::Management`] where another manager has it, in this process or another.
    pub fn new(device: &Device) -> Result<Self, CmError> {
        let pd = device.alloc_pd();
        let cq = device.create_cq()?;
        let count = u32::try_from(2 * SLOTS).unwrap_or(u32::MAX);
        let qp = pd
            .create_qp(&cq, &cq)
            .datagrams(Q_KEY)
            .management()
            .max_send_wr(count)
            .max_recv_wr(count)
            .build()?;
        let region = pd
            .reg_mr(vec![0; 2 * SLOTS * MAD_LEN], Access::LOCAL_WRITE)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut free = Vec::new();
        for slot in 0..2 * SLOTS {
            let range = slot * MAD_LEN..(slot + 1) * MAD_LEN;
            let buffer = region.buffer(range).map_err(|error| io::Error::other(error.to_string()))?;
            if slot % 2 == 0 {
                free.push(buffer);
            } else {
                qp.post_recv(RecvWr::new(buffer)).map_err(|error| io::Error::other(error.to_string()))?;
            }
        }
        let machine = Machine::new(random);
        let core = Core { machine, free, notes: BTreeMap::new(), asked: BTreeMap::new() };
        let inner = Arc::new(Inner {
            device: device.clone(),
            qp,
            cq,
            guid: u64::from(random()) << 32 | u64::from(random()),
            core: Mutex::new(core),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            _region: region,
        });
        let runs = inner.clone();
        let thread = std::thread::Builder::new().name("roci-cm".into()).spawn(move || runs.run())?;
        Ok(Self { handle: Arc::new(Handle { inner, thread: Some(thread) }) })
    }

    /// Listens at a port, until the listener is dropped.
    ///
    /// # Errors
    /// [`CmError::InUse`].
    pub fn listen(&self, port: u16) -> Result<Listener, CmError> {
        if !self.handle.inner.core().machine.listen(service(port)) {
            return Err(CmError::InUse(port));
        }
        Ok(Listener { handle: self.handle.clone(), port })
    }

    /// Asks for a connection of `qp`, which is in INIT, and waits for it.
    ///
    /// # Errors
    /// [`CmError`]; `qp` is of no further use then.
    pub fn connect(&self, qp: &QueuePair, to: SocketAddr, param: &ConnParam) -> Result<Connection, CmError> {
        let mut asked = self.request(qp, to, param)?;
        loop {
            if let Some(connection) = asked.wait(qp, Duration::from_secs(1))? {
                return Ok(connection);
            }
        }
    }

    /// Asks for a connection of `qp`, and does not wait.
    ///
    /// # Errors
    /// [`CmError::PrivateData`], or [`CmError::QueuePair`] where the address is of the other Internet protocol.
    pub fn request(&self, qp: &QueuePair, to: SocketAddr, param: &ConnParam) -> Result<Connecting, CmError> {
        let inner = &self.handle.inner;
        let source = inner.device.address();
        if source.is_ipv4() != to.ip().is_ipv4() {
            return Err(QueuePairError::Address(to.ip()).into());
        }
        let private = Private::new(&param.private_data).ok_or(CmError::PrivateData(cm::REQUEST_PRIVATE))?;
        let psn = Psn::new(random());
        let [low, high, ..] = random().to_le_bytes();
        let port = u16::from_le_bytes([low, high]) | 0x8000;
        let request = Request {
            local: 0,
            service: service(to.port()),
            guid: inner.guid,
            qpn: qp.qp_num(),
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            psn,
            mtu: number_of(param.path_mtu.unwrap_or(inner.device.active_mtu())),
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
            ack_timeout: param.ack_timeout,
            response_timeout: RESPONSE_TIMEOUT,
            max_retries: RETRIES,
            service_type: 0,
            gids: (gid(source), gid(to.ip())),
            endpoints: Some(Endpoints { port, source, destination: to.ip() }),
            layout: qp.layout(),
            private,
        };
        let mut core = inner.core();
        let id = core.machine.connect(inner.device.inner.now(), to.ip(), request);
        core.notes.insert(id, Note::default());
        inner.pump(&mut core);
        Ok(Connecting { handle: self.handle.clone(), id: Some(id), to, psn, param: param.clone() })
    }
}

/// A connection that was asked for. Dropped before it is granted, it is given up.
#[derive(Debug)]
pub struct Connecting {
    handle: Arc<Handle>,
    id: Option<Id>,
    to: SocketAddr,
    psn: Psn,
    param: ConnParam,
}

impl Connecting {
    /// Waits up to `timeout` for the answer, and connects `qp`, the one that was told to the peer; `None` where there is
    /// no answer yet.
    ///
    /// # Errors
    /// [`CmError::Unreachable`] when all retries are over, within ten seconds; and the others.
    pub fn wait(&mut self, qp: &QueuePair, timeout: Duration) -> Result<Option<Connection>, CmError> {
        let inner = self.handle.inner.clone();
        let id = self.id.ok_or(CmError::Gone)?;
        let reply = inner.wait(timeout, |core| {
            let note = core.notes.get_mut(&id)?;
            if note.is_unreachable {
                return Some(Err(CmError::Unreachable(self.to)));
            }
            if let Some(reject) = note.rejected.take() {
                let (peer, reason, private_data) = (self.to, reject.reason, reject.private.0.to_vec());
                return Some(Err(CmError::Rejected { peer, reason, private_data }));
            }
            note.reply.take().map(Ok)
        });
        let reply = match reply {
            None => return Ok(None),
            Some(Err(error)) => return Err(error),
            Some(Ok(reply)) => reply,
        };
        let refuse = |error: CmError| {
            let mut core = inner.core();
            core.machine.reject(inner.device.inner.now(), id, reason::UNSUPPORTED, Private::NONE);
            inner.pump(&mut core);
            Err(error)
        };
        if reply.layout != qp.layout() {
            return refuse(CmError::Layout(reply.layout));
        }
        let peer = Peer {
            address: self.to.ip(),
            qpn: reply.qpn,
            receive_psn: self.psn,
            send_psn: reply.psn,
            mtu: self.param.path_mtu.unwrap_or(inner.device.active_mtu()),
            reads: self.param.initiator_depth.min(reply.responder_resources),
            responses: self.param.responder_resources.max(reply.initiator_depth),
        };
        if let Err(error) = peer.connect(qp, &self.param) {
            return refuse(error);
        }
        let mut core = inner.core();
        let is_ready = core.machine.ready(id);
        inner.pump(&mut core);
        drop(core);
        if !is_ready {
            return Err(CmError::Gone);
        }
        self.id = None;
        let private_data = reply.private.0.to_vec();
        let handle = self.handle.clone();
        Ok(Some(Connection { handle, id, peer: self.to, private_data, initiator_depth: peer.reads }))
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.handle.inner.leave(id);
        }
    }
}

/// Who listens at a port.
#[derive(Debug)]
pub struct Listener {
    handle: Arc<Handle>,
    port: u16,
}

impl Listener {
    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits up to `timeout` for somebody to ask; `None` where nobody did.
    ///
    /// # Errors
    /// None at present.
    pub fn get_request(&self, timeout: Duration) -> Result<Option<ConnectRequest>, CmError> {
        let service = service(self.port);
        let asked = self.handle.inner.wait(timeout, |core| core.asked.get_mut(&service)?.pop_front());
        let handle = self.handle.clone();
        Ok(asked.map(|(id, from, request)| ConnectRequest { handle, id: Some(id), from, request }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let inner = &self.handle.inner;
        let mut core = inner.core();
        core.machine.unlisten(service(self.port));
        let now = inner.device.inner.now();
        for (id, ..) in core.asked.remove(&service(self.port)).unwrap_or_default() {
            core.machine.reject(now, id, reason::INVALID_SERVICE, Private::NONE);
        }
        inner.pump(&mut core);
    }
}

/// A peer asks for a connection. Dropped, it is rejected.
#[derive(Debug)]
pub struct ConnectRequest {
    handle: Arc<Handle>,
    id: Option<Id>,
    from: IpAddr,
    request: Box<Request>,
}

impl ConnectRequest {
    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        SocketAddr::new(self.from, self.request.endpoints.map_or(0, |endpoints| endpoints.port))
    }

    /// What its user tells us: 48 octets, zeros where it tells less.
    pub fn private_data(&self) -> &[u8] {
        &self.request.private.0
    }

    /// The header layout of its queue pair, and of the one to accept with.
    pub fn layout(&self) -> Layout {
        self.request.layout
    }

    /// READs and atomics that it wants to have outstanding.
    pub fn initiator_depth(&self) -> u8 {
        self.request.initiator_depth
    }

    /// READs and atomics that it takes at once.
    pub fn responder_resources(&self) -> u8 {
        self.request.responder_resources
    }

    /// The path MTU that it asks for; `None` where that is none.
    pub fn path_mtu(&self) -> Option<Mtu> {
        mtu_of(self.request.mtu)
    }

    /// Connects `qp`, which is in INIT, and tells the peer so. [`Connection::wait_established`] says that it has heard.
    ///
    /// # Errors
    /// [`CmError`]; the request is rejected then.
    pub fn accept(mut self, qp: &QueuePair, param: &ConnParam) -> Result<Connection, CmError> {
        let inner = self.handle.inner.clone();
        let private = Private::new(&param.private_data).ok_or(CmError::PrivateData(cm::REPLY_PRIVATE))?;
        if self.request.layout != qp.layout() {
            return Err(CmError::Layout(self.request.layout));
        }
        let Some(mtu) = self.path_mtu().filter(|mtu| *mtu <= inner.device.active_mtu()) else {
            let (peer, reason) = (self.peer(), reason::INVALID_MTU);
            self.refuse(reason, &[]);
            return Err(CmError::Rejected { peer, reason, private_data: Vec::new() });
        };
        let psn = Psn::new(random());
        let peer = Peer {
            address: self.from,
            qpn: self.request.qpn,
            receive_psn: psn,
            send_psn: self.request.psn,
            mtu,
            reads: param.initiator_depth.min(self.request.responder_resources),
            responses: param.responder_resources.min(self.request.initiator_depth),
        };
        peer.connect(qp, param)?;
        let reply = Reply {
            local: 0,
            remote: 0,
            qpn: qp.qp_num(),
            psn,
            responder_resources: peer.responses,
            initiator_depth: peer.reads,
            rnr_retry_count: param.rnr_retry_count,
            guid: inner.guid,
            layout: qp.layout(),
            private,
        };
        let id = self.id.take().ok_or(CmError::Gone)?;
        let mut core = inner.core();
        core.notes.insert(id, Note::default());
        let is_accepted = core.machine.accept(inner.device.inner.now(), id, reply);
        inner.pump(&mut core);
        if !is_accepted {
            core.notes.remove(&id);
            return Err(CmError::Gone);
        }
        drop(core);
        let (handle, private_data) = (self.handle.clone(), self.request.private.0.to_vec());
        Ok(Connection { handle, id, peer: self.peer(), private_data, initiator_depth: peer.reads })
    }

    /// Refuses, and tells the peer's user up to 148 octets.
    pub fn reject(mut self, private_data: &[u8]) {
        self.refuse(reason::CONSUMER, private_data);
    }

    fn refuse(&mut self, reason: u16, private_data: &[u8]) {
        let Some(id) = self.id.take() else { return };
        let inner = &self.handle.inner;
        let private = Private::new(&private_data[..private_data.len().min(cm::REJECT_PRIVATE)]);
        let mut core = inner.core();
        core.machine.reject(inner.device.inner.now(), id, reason, private.unwrap_or(Private::NONE));
        inner.pump(&mut core);
    }
}

impl Drop for ConnectRequest {
    fn drop(&mut self) {
        self.refuse(reason::CONSUMER, &[]);
    }
}

/// A connection. Dropped, it is ended.
#[derive(Debug)]
pub struct Connection {
    handle: Arc<Handle>,
    id: Id,
    peer: SocketAddr,
    private_data: Vec<u8>,
    initiator_depth: u8,
}

impl Connection {
    /// The peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What the peer's user told when it asked or accepted, with zeros behind it.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// READs and atomics that we may have outstanding, as agreed.
    pub fn initiator_depth(&self) -> u8 {
        self.initiator_depth
    }

    /// Waits until the peer knows that we have accepted.
    ///
    /// # Errors
    /// [`CmError::Unreachable`] where it does not say so within `timeout` or all retries, [`CmError::Rejected`] where it
    /// does not want the connection any more.
    pub fn wait_established(&self, timeout: Duration) -> Result<(), CmError> {
        let known = self.handle.inner.wait(timeout, |core| {
            let note = core.notes.get_mut(&self.id)?;
            if let Some(reject) = note.rejected.take() {
                let (peer, reason, private_data) = (self.peer, reject.reason, reject.private.0.to_vec());
                return Some(Err(CmError::Rejected { peer, reason, private_data }));
            }
            if note.is_unreachable {
                return Some(Err(CmError::Unreachable(self.peer)));
            }
            (note.is_established || note.is_disconnected).then_some(Ok(()))
        });
        known.unwrap_or(Err(CmError::Unreachable(self.peer)))
    }

    /// Whether the peer has ended it, or has agreed that we did.
    pub fn is_disconnected(&self) -> bool {
        self.wait_disconnected(Duration::ZERO)
    }

    /// Waits up to `timeout` for that; whether it is so.
    pub fn wait_disconnected(&self, timeout: Duration) -> bool {
        let known = self.handle.inner.wait(timeout, |core| {
            let over = |note: &Note| note.is_disconnected || note.is_unreachable || note.rejected.is_some();
            core.notes.get(&self.id).is_none_or(over).then_some(())
        });
        known.is_some()
    }

    /// Tells the peer that it is over. The queue pair is the caller's to end.
    pub fn disconnect(&self) {
        let inner = &self.handle.inner;
        let mut core = inner.core();
        core.machine.disconnect(inner.device.inner.now(), self.id);
        inner.pump(&mut core);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.inner.leave(self.id);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // What was said last is to leave, and a peer that answers slowly is not waited for.
        self.inner.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// What a queue pair has to be told of its peer.
struct Peer {
    address: IpAddr,
    qpn: Qpn,
    receive_psn: Psn,
    send_psn: Psn,
    mtu: Mtu,
    reads: u8,
    responses: u8,
}

impl Peer {
    fn connect(&self, qp: &QueuePair, param: &ConnParam) -> Result<(), CmError> {
        let change = Change {
            mtu: Some(self.mtu.octets()),
            timeout: Some(crate::queue_pair::timeout(param.ack_timeout)),
            retry: Some(param.retry_count.min(7)),
            rnr_retry: Some(param.rnr_retry_count.min(7)),
            max_rd_atomic: Some(self.reads),
            max_dest_rd_atomic: Some(self.responses),
            ..Change::default()
        };
        let info = QpInfo { address: self.address, qpn: self.qpn, psn: self.receive_psn };
        qp.ready_to_receive(info, &change)?;
        let send_psn = Some(self.send_psn);
        qp.modify(&Change { send_psn, transition: Some(Transition::Send), ..Change::default() })?;
        Ok(())
    }
}

impl Inner {
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something, up to `timeout`.
    fn wait<T>(&self, timeout: Duration, mut look: impl FnMut(&mut Core) -> Option<T>) -> Option<T> {
        let begin = self.device.inner.now();
        let timeout = crate::device::span(timeout);
        let mut core = self.core();
        loop {
            if let Some(found) = look(&mut core) {
                return Some(found);
            }
            let left = timeout.saturating_sub(self.device.inner.now().since(begin));
            if left.is_zero() {
                return None;
            }
            let left = crate::clock::duration(left);
            core = self.changed.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What the manager's thread does.
    fn run(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            let now = self.device.inner.now();
            let next = self.core().machine.poll_timeout();
            let timeout = next.map_or(SLICE, |next| crate::clock::duration(next.since(now)).min(SLICE));
            // Every error but the end of the time is one that comes again, and is not to turn this into a busy loop.
            match self.cq.wait(timeout) {
                Ok(completion) => self.take(completion),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(_) => std::thread::sleep(SLICE),
            }
            let mut core = self.core();
            core.machine.wake(self.device.inner.now());
            self.pump(&mut core);
        }
    }

    fn take(&self, completion: WorkCompletion) {
        let mut core = self.core();
        if completion.opcode != CompletionKind::Recv {
            let slices = completion.into_slices().into_iter();
            core.free.extend(slices.filter_map(|slice| slice.try_into_buffer().ok()));
            return;
        }
        let (source, length) = (completion.source, completion.byte_len as usize);
        let is_ok = completion.is_ok();
        let Some(buffer) = completion.into_buffer() else { return };
        if let (Some((from, _)), true, Some(octets)) = (source, is_ok, buffer.as_slice()) {
            let now = self.device.inner.now();
            core.machine.handle(now, from, &octets[..length.min(octets.len())]);
        }
        // The queue was made for as many as there are buffers.
        let _ = self.qp.post_recv(RecvWr::new(buffer));
    }

    /// Sends what the machine wants sent, and passes on what has happened.
    fn pump(&self, core: &mut Core) {
        while let Some((to, mad)) = core.machine.poll_transmit() {
            // Without a buffer it is lost, as it may be on the way.
            let Some(mut buffer) = core.free.pop() else { continue };
            let is_written = buffer.write(0, &mad).is_ok();
            let sent = self.qp.post_send(SendWr::datagram(buffer, to, Qpn::new(1), Q_KEY));
            if let Err(refused) = sent {
                let back = refused.request.into_slice().and_then(|slice| slice.try_into_buffer().ok());
                core.free.extend(back);
            }
            debug_assert!(is_written, "a buffer is as long as a datagram");
        }
        let mut has_news = false;
        while let Some(event) = core.machine.poll_event() {
            has_news = true;
            match event {
                Event::Asked { id, from, request } => {
                    core.asked.entry(request.service).or_default().push_back((id, from, request));
                }
                Event::Granted { id, reply } => {
                    if let Some(note) = core.notes.get_mut(&id) {
                        note.reply = Some(reply);
                    }
                }
                Event::Established(id) => core.note(id, |note| note.is_established = true),
                Event::Rejected { id, reject } => core.note(id, |note| note.rejected = Some(reject)),
                Event::Unreachable(id) => core.note(id, |note| note.is_unreachable = true),
                Event::Disconnected(id) => core.note(id, |note| note.is_disconnected = true),
            }
        }
        if has_news {
            self.changed.notify_all();
        }
    }

    /// Its owner has lost interest.
    fn leave(&self, id: Id) {
        let mut core = self.core();
        core.notes.remove(&id);
        core.machine.disconnect(self.device.inner.now(), id);
        self.pump(&mut core);
    }
}

impl Core {
    fn note(&mut self, id: Id, change: impl FnOnce(&mut Note)) {
        if let Some(note) = self.notes.get_mut(&id) {
            change(note);
        }
    }
}

/// An address as a GID.
fn gid(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// An MTU as IBTA numbers them.
fn number_of(mtu: Mtu) -> u8 {
    let place = Mtu::ALL.iter().position(|known| *known == mtu).unwrap_or(0);
    u8::try_from(place).unwrap_or(0) + 1
}

fn mtu_of(number: u8) -> Option<Mtu> {
    Mtu::ALL.get(usize::from(number).checked_sub(1)?).copied()
}
