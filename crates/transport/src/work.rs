//! Work that an application posts, and what it hears of it (IBTA Vol 1 §10.7, §11.4).

use core::fmt;
use roci_units::Qpn;

/// What a send work request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// SEND, with what its last packet carries.
    Send(Tail),
    /// RDMA WRITE to `va` under `rkey`; `Tail::Invalidate` is refused.
    Write {
        /// Remote virtual address.
        va: u64,
        /// Remote key.
        rkey: u32,
        /// What its last packet carries.
        tail: Tail,
    },
    /// RDMA READ from `va` under `rkey`.
    Read {
        /// Remote virtual address.
        va: u64,
        /// Remote key.
        rkey: u32,
    },
    /// Atomic fetch-and-add on eight octets.
    FetchAdd {
        /// Remote virtual address, a multiple of 8.
        va: u64,
        /// Remote key.
        rkey: u32,
        /// What to add.
        add: u64,
    },
    /// Atomic compare-and-swap on eight octets.
    CompareSwap {
        /// Remote virtual address, a multiple of 8.
        va: u64,
        /// Remote key.
        rkey: u32,
        /// What to compare with.
        compare: u64,
        /// What to swap in when they are equal.
        swap: u64,
    },
    /// A datagram to a queue pair of another host; only on a UD queue pair.
    Datagram {
        /// Where to: opaque to the engine, as [`QpConfig::path`](crate::QpConfig::path).
        path: u64,
        /// The queue pair there.
        qpn: Qpn,
        /// Its queue key.
        q_key: u32,
        /// Immediate data.
        tail: Tail,
    },
}

/// What the last packet of a message carries besides payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    #[default]
    Plain,
    /// Immediate data.
    Immediate(u32),
    /// The responder's key to invalidate.
    Invalidate(u32),
}

/// A send work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// The application's name for it, given back in its completion.
    pub id: u64,
    /// What to do.
    pub operation: Operation,
    /// Octets of the message, up to 2³¹; 8 for atomics.
    pub length: u32,
    /// Where the octets lie, or where a READ's go: an address that the world understands (a virtual address in a
    /// registered region, or an offset in an inline buffer).
    pub address: u64,
    /// The local key of that region; zero for inline data and for worlds without memory.
    pub lkey: u32,
    /// Whether the responder's completion is to be a solicited event.
    pub solicited: bool,
    /// Whether it completes visibly when it succeeds. Errors always do.
    pub signaled: bool,
    /// Whether it waits until earlier READs and atomics have completed.
    pub fence: bool,
}

/// A receive work request: a buffer for one incoming SEND, or the notice of a WRITE with immediate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecvRequest {
    /// The application's name for it.
    pub id: u64,
    /// Where the octets go.
    pub address: u64,
    /// How many fit.
    pub length: u32,
    /// The local key of that region; zero for worlds without memory.
    pub lkey: u32,
}

/// How a work request ended (IBTA Vol 1 §11.6.2, completion return status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Done.
    Success,
    /// A buffer was too short, or a message was longer than the QP allows.
    LocalLengthError,
    /// The QP was in no state for it.
    LocalQpOperationError,
    /// A local key did not fit.
    LocalProtectionError,
    /// Flushed: the QP went to the error state before it was done.
    WorkRequestFlushed,
    /// The responder found the request malformed.
    RemoteInvalidRequestError,
    /// The responder's memory keys, bounds or rights forbid it.
    RemoteAccessError,
    /// The responder could not do it.
    RemoteOperationError,
    /// Retries ran out: no acknowledgement came.
    TransportRetryCounterExceeded,
    /// The receiver was never ready.
    RnrRetryCounterExceeded,
    /// A response arrived that fits no request.
    BadResponseError,
    /// A memory window was not bound, or a key not invalidated at our own wish.
    MemoryWindowBindError,
}

impl Status {
    /// Its name in IBTA Vol 1 §11.6.2.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::LocalLengthError => "Local Length Error",
            Self::LocalQpOperationError => "Local QP Operation Error",
            Self::LocalProtectionError => "Local Protection Error",
            Self::WorkRequestFlushed => "Work Request Flushed Error",
            Self::RemoteInvalidRequestError => "Remote Invalid Request Error",
            Self::RemoteAccessError => "Remote Access Error",
            Self::RemoteOperationError => "Remote Operation Error",
            Self::TransportRetryCounterExceeded => "Transport Retry Counter Exceeded",
            Self::RnrRetryCounterExceeded => "RNR Retry Counter Exceeded",
            Self::BadResponseError => "Bad Response Error",
            Self::MemoryWindowBindError => "Memory Window Bind Error",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a completion is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompletionKind {
    /// A SEND or datagram that was posted.
    Send,
    /// A WRITE that was posted.
    Write,
    /// A READ that was posted.
    Read,
    /// A FETCH-ADD that was posted.
    FetchAdd,
    /// A COMPARE-SWAP that was posted.
    CompareSwap,
    /// A receive request that a SEND filled.
    Recv,
    /// A receive request that a WRITE with immediate consumed.
    RecvWrite,
    /// A memory window that was to be bound; no engine's, but of worlds with windows.
    BindWindow,
    /// A key that was to be invalidated here; as the one before.
    LocalInvalidate,
}

/// The end of one work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's name.
    pub id: u64,
    /// The queue pair that it was posted to.
    pub qpn: Qpn,
    /// What it is of.
    pub kind: CompletionKind,
    /// How it ended.
    pub status: Status,
    /// Octets moved.
    pub length: u32,
    /// What the message's last packet carried, for receives.
    pub tail: Tail,
    /// Whether it is a solicited event.
    pub solicited: bool,
    /// The original value, for atomics.
    pub original: u64,
    /// Who sent it, for datagrams: path and queue pair.
    pub source: Option<(u64, Qpn)>,
}

/// Why a work request was not accepted. Nothing has changed then.
///
/// Its `Debug` is its `Display`, as that of the endpoint's errors, one of which it is: `unwrap` prints a sentence.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// There is no such queue pair or shared receive queue.
    #[error("no such queue")]
    Unknown,
    /// The queue pair is not connected far enough: sending needs RTS, receiving INIT.
    #[error("the queue pair is in state {0:?}{more}", more = unready(*.0))]
    State(crate::QpState),
    /// The queue pair's service has no such operation, or the operation no such tail.
    #[error("the operation does not belong to the queue pair's service")]
    Operation,
    /// The message is longer than 2³¹ octets, than the path MTU for a datagram, or not 8 octets for an atomic.
    #[error("a message of {0} octets")]
    Length(u32),
    /// The local key does not cover the octets with the right that they need.
    #[error("the local key {0:#x} does not fit")]
    LocalKey(u32),
    /// An atomic's remote address is no multiple of 8, or READs and atomics are turned off (`max_rd_atomic` 0).
    #[error("the responder could not take it")]
    Remote,
    /// The queue pair receives from a shared receive queue.
    #[error("the queue pair uses a shared receive queue")]
    Shared,
}

impl core::fmt::Debug for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// What a queue pair lacks that takes no request yet.
fn unready(state: crate::QpState) -> &'static str {
    use crate::QpState::{Init, ReadyToReceive, Reset};
    match state {
        Reset => ": bring it to INIT first",
        Init | ReadyToReceive => ": connect it first",
        _ => "",
    }
}
