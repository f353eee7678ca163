//! Work requests, typed by what they do, and their completions.

use crate::local::Local;
use crate::memory::region::Handle;
use crate::memory::window::{MemoryWindow, WindowTarget};
use crate::memory::{Buffer, RemoteMemory, Slice};
use roci_transport::{CompletionKind, Operation, PostError, Status, Tail};
use roci_units::Qpn;
use std::net::IpAddr;

/// The most octets that a request carries inline.
pub const INLINE_MAX: usize = 256;

/// What a request lends: nothing, octets of its own, or parts of regions.
///
/// It is moved half a dozen times between a post and the completion, so it has the size of a slice: octets of its own lie apart.
#[derive(Debug)]
pub(crate) enum Payload {
    None,
    /// At most [`INLINE_MAX`], which is looked at when it is posted.
    Inline(Box<[u8]>),
    Slice(Slice),
    Slices(Box<[Slice]>),
    Buffer(Buffer),
    Buffers(Box<[Buffer]>),
    /// What no packet carries.
    Local(Box<Local>),
}

impl Payload {
    /// Whether some of it lies in a region.
    pub(crate) fn refers_to(&self, handle: &Handle) -> bool {
        match self {
            Self::None | Self::Inline(_) | Self::Local(_) => false,
            Self::Slice(slice) => slice.is_of(handle),
            Self::Slices(slices) => slices.iter().any(|slice| slice.is_of(handle)),
            Self::Buffer(buffer) => buffer.is_of(handle),
            Self::Buffers(buffers) => buffers.iter().any(|buffer| buffer.is_of(handle)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None | Self::Local(_) => 0,
            Self::Inline(octets) => octets.len(),
            Self::Slice(slice) => slice.len(),
            Self::Slices(slices) => slices.iter().map(Slice::len).sum(),
            Self::Buffer(buffer) => buffer.len(),
            Self::Buffers(buffers) => buffers.iter().map(Buffer::len).sum(),
        }
    }

    fn into_slices(self) -> Vec<Slice> {
        match self {
            Self::Slice(slice) => vec![slice],
            Self::Slices(slices) => slices.into_vec(),
            _ => Vec::new(),
        }
    }

    fn into_buffers(self) -> Vec<Buffer> {
        match self {
            Self::Buffer(buffer) => vec![buffer],
            Self::Buffers(buffers) => buffers.into_vec(),
            _ => Vec::new(),
        }
    }
}

/// A request for the send queue.
///
/// Made by one of its functions, refined by its methods, and given to [`QueuePair::post_send`](crate::QueuePair::post_send).
#[derive(Debug)]
pub struct SendWr {
    pub(crate) id: u64,
    pub(crate) operation: Operation,
    pub(crate) destination: Option<IpAddr>,
    /// Of a datagram; else its queue pair's.
    pub(crate) dscp: Option<u8>,
    pub(crate) payload: Payload,
    pub(crate) solicited: bool,
    pub(crate) signaled: bool,
    pub(crate) fence: bool,
    /// It was to gather what it does not send, or to scatter what it does not read.
    pub(crate) is_misfit: bool,
    /// Whether memory that it may not use ends it, and does not have it refused.
    pub(crate) faults_late: bool,
}

impl SendWr {
    fn new(operation: Operation, payload: Payload) -> Self {
        let (solicited, signaled, fence) = (false, true, false);
        let (destination, dscp, is_misfit, faults_late) = (None, None, false, false);
        Self {
            id: 0,
            operation,
            destination,
            dscp,
            payload,
            solicited,
            signaled,
            fence,
            is_misfit,
            faults_late,
        }
    }

    /// SEND of a slice or a buffer.
    pub fn send(data: impl Into<Slice>) -> Self {
        Self::new(Operation::Send(Tail::Plain), Payload::Slice(data.into()))
    }

    /// SEND of octets that are copied at once, at most [`INLINE_MAX`]; a longer one is refused when it is posted.
    pub fn send_inline(octets: &[u8]) -> Self {
        Self::new(Operation::Send(Tail::Plain), inline(octets))
    }

    /// RDMA WRITE of a slice or a buffer.
    pub fn write(data: impl Into<Slice>, to: RemoteMemory) -> Self {
        let RemoteMemory { address: va, rkey } = to;
        Self::new(Operation::Write { va, rkey, tail: Tail::Plain }, Payload::Slice(data.into()))
    }

    /// RDMA WRITE of octets that are copied at once, as [`send_inline`](Self::send_inline).
    pub fn write_inline(octets: &[u8], to: RemoteMemory) -> Self {
        let RemoteMemory { address: va, rkey } = to;
        Self::new(Operation::Write { va, rkey, tail: Tail::Plain }, inline(octets))
    }

    /// RDMA READ into a buffer, as many octets as it is long.
    pub fn read(into: Buffer, from: RemoteMemory) -> Self {
        let RemoteMemory { address: va, rkey } = from;
        Self::new(Operation::Read { va, rkey }, Payload::Buffer(into))
    }

    /// RDMA READ into several buffers, one after the other, as [`scatter`](Self::scatter): of nothing, where there are none.
    pub fn read_scattered(into: Vec<Buffer>, from: RemoteMemory) -> Self {
        let RemoteMemory { address: va, rkey } = from;
        Self::new(Operation::Read { va, rkey }, Payload::Buffers(into.into_boxed_slice()))
    }

    /// Adds to the eight octets at `at`, a multiple of 8; the completion has what was there.
    pub fn fetch_add(at: RemoteMemory, add: u64) -> Self {
        Self::new(Operation::FetchAdd { va: at.address, rkey: at.rkey, add }, Payload::None)
    }

    /// Replaces the eight octets at `at`, a multiple of 8, by `swap` if they equal `compare`; the completion has what was
    /// there.
    pub fn compare_swap(at: RemoteMemory, compare: u64, swap: u64) -> Self {
        Self::new(Operation::CompareSwap { va: at.address, rkey: at.rkey, compare, swap }, Payload::None)
    }

    /// A datagram to a queue pair at `address`; for UD queue pairs.
    pub fn datagram(data: impl Into<Slice>, address: IpAddr, qpn: Qpn, q_key: u32) -> Self {
        let operation = Operation::Datagram { path: 0, qpn, q_key, tail: Tail::Plain };
        Self { destination: Some(address), ..Self::new(operation, Payload::Slice(data.into())) }
    }

    /// As [`datagram`](Self::datagram), of octets that are copied at once.
    pub fn datagram_inline(octets: &[u8], address: IpAddr, qpn: Qpn, q_key: u32) -> Self {
        let operation = Operation::Datagram { path: 0, qpn, q_key, tail: Tail::Plain };
        Self { destination: Some(address), ..Self::new(operation, inline(octets)) }
    }

    /// Binds a memory window to `target`, in the order of the send queue: once all requests before it have ended, and before those behind
    /// it begin. From then on `rkey` is its key, of which the lower 8 bits are the caller's to choose (the former one's and one, say): peers
    /// may be told of it by a request behind this one, or when this has completed. No receiver hears of it; RC and UC queue pairs bind.
    ///
    /// What cannot be bound completes as [`Status::MemoryWindowBindError`], and its queue pair fails: a window of type 2 that is bound, a
    /// region without [`Access::BIND`](roci_transport::Access::BIND), one without local writing where peers are to write, one of another
    /// protection domain, octets beyond it.
    pub fn bind(window: &MemoryWindow, rkey: u32, target: WindowTarget) -> Self {
        let local = Local::Bind(target.binding(window, rkey), target.into_handle());
        Self::new(Operation::Send(Tail::Plain), Payload::Local(Box::new(local)))
    }

    /// Invalidates the key of a window of type 2 that this queue pair has bound, in the order of the send queue as
    /// [`bind`](Self::bind): a peer's requests under it fail from then on. Any other key is an error, as there.
    pub fn invalidate_local(rkey: u32) -> Self {
        Self::new(Operation::Send(Tail::Plain), Payload::Local(Box::new(Local::Invalidate(rkey))))
    }

    /// Gathers from several slices, one after the other, in place of what it was made with, which goes back to its region. READs
    /// and atomics have nothing to gather, and are refused when they are posted.
    #[must_use]
    pub fn gather(mut self, slices: Vec<Slice>) -> Self {
        if matches!(self.payload, Payload::Slice(_) | Payload::Slices(_) | Payload::Inline(_)) {
            self.payload = Payload::Slices(slices.into_boxed_slice());
        } else {
            self.is_misfit = true;
        }
        self
    }

    /// Scatters a READ's octets to several buffers, one after the other, in place of what it was made with, which goes back to its
    /// region: as many octets as they have together, and none where there are none. All else has nothing to scatter, and is refused
    /// when it is posted.
    #[must_use]
    pub fn scatter(mut self, buffers: Vec<Buffer>) -> Self {
        if matches!(self.payload, Payload::Buffer(_) | Payload::Buffers(_)) {
            self.payload = Payload::Buffers(buffers.into_boxed_slice());
        } else {
            self.is_misfit = true;
        }
        self
    }

    /// The name that its completion bears.
    #[must_use]
    pub fn wr_id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    /// Immediate data for the receiver's completion. Ignored by READs and atomics.
    #[must_use]
    pub fn imm(self, immediate: u32) -> Self {
        self.tail_is(Tail::Immediate(immediate))
    }

    /// The key of the receiver's to invalidate; SENDs alone may.
    #[must_use]
    pub fn invalidate(self, rkey: u32) -> Self {
        self.tail_is(Tail::Invalidate(rkey))
    }

    fn tail_is(mut self, new: Tail) -> Self {
        if let Operation::Send(tail) | Operation::Write { tail, .. } | Operation::Datagram { tail, .. } =
            &mut self.operation
        {
            *tail = new;
        }
        self
    }

    /// Has the receiver's completion count as a solicited event.
    #[must_use]
    pub fn solicited(mut self) -> Self {
        self.solicited = true;
        self
    }

    /// Gives no completion when it succeeds; what it lent is given back to the region then.
    #[must_use]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }

    /// Waits until earlier READs and atomics of the queue pair are done.
    #[must_use]
    pub fn fence(mut self) -> Self {
        self.fence = true;
        self
    }

    /// Has memory of another protection domain, or without the local writing that is needed, end the request as
    /// [`Status::LocalProtectionError`] when its turn comes, and with it its queue pair, as NICs do: it is not refused when it is posted.
    #[must_use]
    pub fn fault_late(mut self) -> Self {
        self.faults_late = true;
        self
    }

    /// Has it end so whatever memory it was made with, which goes back: for a program in another language that names none that is
    /// registered.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.forgo_memory();
        self
    }

    pub(crate) fn forgo_memory(&mut self) {
        self.payload = Payload::Local(Box::new(Local::Fault(self.operation)));
    }

    /// The code point (DSCP) of a datagram, 0 to 63; its queue pair's if not said. All else goes with that of the connection.
    #[must_use]
    pub fn dscp(mut self, code_point: u8) -> Self {
        self.dscp = Some(code_point);
        self
    }

    /// Octets that leave with it.
    pub(crate) fn octets_sent(&self) -> usize {
        match self.operation {
            Operation::Send(_) | Operation::Write { .. } | Operation::Datagram { .. } => self.payload.len(),
            _ => 0,
        }
    }

    /// Takes the slice back out of a request that was refused; the first of several.
    pub fn into_slice(self) -> Option<Slice> {
        self.into_slices().into_iter().next()
    }

    /// Takes the slices back out of a request that was refused.
    pub fn into_slices(self) -> Vec<Slice> {
        self.payload.into_slices()
    }

    /// Takes the buffer back out of a READ that was refused; the first of several.
    pub fn into_buffer(self) -> Option<Buffer> {
        self.into_buffers().into_iter().next()
    }

    /// Takes the buffers back out of a READ that was refused.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.payload.into_buffers()
    }
}

fn inline(octets: &[u8]) -> Payload {
    // Of too many, one more than may be is enough to have them refused.
    Payload::Inline(octets[..octets.len().min(INLINE_MAX + 1)].into())
}

/// A request for a receive queue: buffers for one SEND, or the notice of one WRITE with immediate.
#[derive(Debug)]
pub struct RecvWr {
    pub(crate) id: u64,
    pub(crate) payload: Payload,
    /// Whether memory that it may not use ends it, and does not have it refused.
    pub(crate) faults_late: bool,
    /// It has no memory that it could use, and was to have so many octets.
    pub(crate) void: Option<u32>,
}

impl RecvWr {
    /// Receives into a buffer.
    pub fn new(into: Buffer) -> Self {
        Self::of(Payload::Buffer(into))
    }

    /// Receives into several buffers, one after the other.
    pub fn scatter(buffers: Vec<Buffer>) -> Self {
        Self::of(Payload::Buffers(buffers.into_boxed_slice()))
    }

    /// Receives no octets, only immediate data.
    pub fn empty() -> Self {
        Self::of(Payload::None)
    }

    fn of(payload: Payload) -> Self {
        Self { id: 0, payload, faults_late: false, void: None }
    }

    /// As [`SendWr::fault_late`]: a message that takes it ends both with errors.
    #[must_use]
    pub fn fault_late(mut self) -> Self {
        self.faults_late = true;
        self
    }

    /// One that was to have room for so many octets where no memory is registered, as [`SendWr::without_memory`].
    pub fn without_memory(length: u32) -> Self {
        Self { void: Some(length), ..Self::empty() }
    }

    /// The name that its completion bears.
    #[must_use]
    pub fn wr_id(mut self, id: u64) -> Self {
        self.id = id;
        self
    }

    /// Takes the buffer back out of a request that was refused; the first of several.
    pub fn into_buffer(self) -> Option<Buffer> {
        self.into_buffers().into_iter().next()
    }

    /// Takes the buffers back out of a request that was refused.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.payload.into_buffers()
    }
}

/// A request that was refused, and why. What it lent comes back with it.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct Refused<R: std::fmt::Debug> {
    /// Why.
    pub error: WrError,
    /// The request.
    pub request: R,
    /// How many that were given with it were posted before it.
    pub posted: usize,
    /// Those that were to be posted next and had been taken from their iterator already.
    pub rest: Vec<R>,
}

speaks!(Refused<R> where R: std::fmt::Debug);

impl<R: std::fmt::Debug> Refused<R> {
    /// One that was given by itself.
    pub(crate) fn alone(error: WrError, request: R) -> Self {
        Self { error, request, posted: 0, rest: Vec::new() }
    }
}

/// Why a work request was not accepted. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WrError {
    /// As many requests are outstanding as the queue was made for.
    #[error("the queue is full")]
    QueueFull,
    /// More than [`INLINE_MAX`] octets inline.
    #[error("more than {INLINE_MAX} octets inline")]
    Inline,
    /// The memory belongs to another protection domain than the queue.
    #[error("the memory belongs to another protection domain")]
    ProtectionDomain,
    /// The memory was registered without local writing.
    #[error("the memory was registered without local writing")]
    Rights,
    /// The address is of the other Internet protocol than the device's or not of one host, or there are too many peers.
    #[error("{0} cannot be reached from this device")]
    Address(IpAddr),
    /// A datagram's code point is above 63.
    #[error("the code point of a datagram (DSCP) is 63 at most")]
    CodePoint,
    /// A READ or atomic was to gather, or something else than a READ to scatter.
    #[error("SENDs, WRITEs and datagrams gather, and READs alone scatter")]
    Parts,
    /// An atomic's remote address is no multiple of 8.
    #[error("the remote address of an atomic is a multiple of 8, and not {0:#x}")]
    Misaligned(u64),
    /// A READ or atomic, of a queue pair that may have none outstanding.
    #[error("READs and atomics are turned off on this queue pair: max_rd_atomic is 0")]
    NoReads,
    /// A datagram is longer than the path MTU.
    #[error("a datagram has at most the {mtu} octets of the path MTU, and not {length}")]
    Datagram {
        /// Its octets.
        length: u32,
        /// The path MTU.
        mtu: u16,
    },
    /// What the engine found.
    #[error(transparent)]
    Engine(#[from] PostError),
}

speaks!(WrError);

/// The end of one work request (`ibv_wc`).
#[derive(Debug)]
pub struct WorkCompletion {
    /// The request's name.
    pub wr_id: u64,
    /// The queue pair.
    pub qp_num: Qpn,
    /// How it ended.
    pub status: Status,
    /// What it is of.
    pub opcode: CompletionKind,
    /// Octets moved.
    pub byte_len: u32,
    /// Immediate data, or the key that the peer had invalidated, of receives.
    pub tail: Tail,
    /// Whether the sender solicited an event.
    pub solicited: bool,
    /// What was there, of atomics.
    pub original: u64,
    /// Who sent it, of datagrams.
    pub source: Option<(IpAddr, Qpn)>,
    pub(crate) payload: Payload,
    /// When it was told, in nanoseconds; 0 where nobody asked for that.
    pub(crate) time_ns: u64,
}

impl WorkCompletion {
    /// Whether it ended well.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Success
    }

    /// Immediate data, if there are any.
    pub fn imm(&self) -> Option<u32> {
        if let Tail::Immediate(immediate) = self.tail { Some(immediate) } else { None }
    }

    /// What a receive or READ brought, [`byte_len`](Self::byte_len) octets, copied from its buffers. None of a receive that a WRITE's
    /// immediate data took, of which `byte_len` says how much was written elsewhere; and none where it is no success.
    pub fn octets(&self) -> Vec<u8> {
        let brings = matches!(self.opcode, CompletionKind::Recv | CompletionKind::Read) && self.is_ok();
        let mut octets = match &self.payload {
            Payload::Buffer(buffer) if brings => buffer.to_vec(),
            Payload::Buffers(buffers) if brings => buffers.iter().flat_map(Buffer::to_vec).collect(),
            _ => Vec::new(),
        };
        octets.truncate(self.byte_len as usize);
        octets
    }

    /// The buffer that a receive or READ was given, as long as it was then: [`octets`](Self::octets) are what came.
    pub fn into_buffer(self) -> Option<Buffer> {
        match self.payload {
            Payload::Buffer(buffer) => Some(buffer),
            Payload::Buffers(buffers) => buffers.into_iter().next(),
            _ => None,
        }
    }

    /// The buffers that a receive or READ filled.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.payload.into_buffers()
    }

    /// The slices that a SEND or WRITE sent.
    pub fn into_slices(self) -> Vec<Slice> {
        self.payload.into_slices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceConfig;
    use crate::io::MemoryWire;
    use crate::memory::MemoryRegion;
    use crate::pair::{End, pair};
    use roci_transport::Access;
    use std::time::Duration;

    #[test]
    fn a_completion_has_the_octets_that_came_and_no_more_of_its_buffers() {
        let [near, far] = pair(&MemoryWire::new(1), DeviceConfig::default().progress, |qp| qp);
        let region = |end: &End| end.pd.reg_mr(vec![9; 64], Access::ALL).unwrap();
        let (own, theirs) = (region(&near), region(&far));
        let wait = |end: &End| end.cq.wait(Duration::from_secs(20)).unwrap();
        let buffer = |of: &MemoryRegion, length: usize| of.buffer(0..length).unwrap();
        // What comes of a request for which the peer has these buffers, one after the other.
        let received = |lengths: &[usize], request: SendWr| {
            let mut at = 0;
            let next = |length: &usize| {
                at += length;
                theirs.buffer(at - length..at).unwrap()
            };
            far.qp.post_recv(RecvWr::scatter(lengths.iter().map(next).collect())).unwrap();
            near.qp.post_send(request).unwrap();
            assert!(wait(&near).is_ok());
            wait(&far)
        };
        assert_eq!(received(&[8], SendWr::send_inline(&[1, 2, 3])).octets(), [1, 2, 3]);
        assert_eq!(received(&[2, 1, 8], SendWr::send_inline(&[1, 2, 3, 4])).octets(), [1, 2, 3, 4]);
        assert!(received(&[8], SendWr::send_inline(&[])).octets().is_empty());
        let written = received(&[8], SendWr::write_inline(&[5; 40], theirs.remote().plus(24)).imm(7));
        assert_eq!((written.byte_len, written.octets()), (40, Vec::new()));
        drop(written);
        near.qp.post_send(SendWr::read(buffer(&own, 40), theirs.remote().plus(24))).unwrap();
        assert_eq!(wait(&near).octets(), [5; 40]);
        far.qp.post_recv(RecvWr::new(buffer(&theirs, 8))).unwrap();
        near.qp.post_send(SendWr::send_inline(&[1; 9])).unwrap();
        let refused = wait(&far);
        assert!(!refused.is_ok() && refused.octets().is_empty());
    }
}
