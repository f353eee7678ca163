//! A RoCEv2 endpoint on Linux: verbs over plain Ethernet, in user space, without a kernel module.
//!
//! The transport is `roci-transport`, the one that the simulator runs; here is what surrounds it in the real world:
//! packet I/O, registered memory, and the verbs interface in safe Rust. Names follow ibverbs.
//!
//! ```no_run
//! use roci_endpoint::{Access, Device, RecvWr, RemoteMemory, SendWr};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?; // UDP port 4791 of this address, and a thread
//! let pd = device.alloc_pd();
//! let cq = device.create_cq()?;
//! let qp = pd.create_qp(&cq, &cq).build()?;
//! // Tell the peer qp.info(), by whatever means, and be told its own:
//! # let told = qp.info();
//! qp.connect(told)?;
//!
//! let region = pd.reg_mr(vec![0; 4096], Access::LOCAL_WRITE)?;
//! qp.post_recv(RecvWr::new(region.buffer(0..1024)?).wr_id(1))?;
//! let mut hello = region.buffer(1024..2048)?;
//! hello.write(0, b"hello")?;
//! hello.set_len(5);
//! qp.post_send(SendWr::send(hello).wr_id(2))?;
//! let completion = cq.wait(Duration::from_secs(1))?;
//! assert!(completion.is_ok(), "{}", completion.status);
//!
//! // Memory that the peer may write and read. It is told where that lies, and tells where its own does:
//! let open = pd.reg_mr(vec![0; 4096], Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ)?;
//! let ours: RemoteMemory = open.remote();
//! # let theirs = ours;
//! qp.post_send(SendWr::write_inline(b"there", theirs.plus(64)).wr_id(3))?;
//! qp.post_send(SendWr::read(region.buffer(2048..2053)?, theirs.plus(64)).wr_id(4))?;
//! for _ in 0..2 {
//!     let completion = cq.wait(Duration::from_secs(1))?;
//!     assert!(completion.is_ok(), "{}", completion.status);
//!     if completion.wr_id == 4 {
//!         assert_eq!(completion.into_buffer().map(|buffer| buffer.to_vec()), Some(b"there".to_vec()));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **Ownership.** A request takes the [`Buffer`] or [`Slice`] that it refers to, and its completion brings it back:
//!   nothing can be freed or written while it is lent. Memory that a peer can reach ([`Access::REMOTE_WRITE`] and the
//!   like) is never behind a Rust reference; it is copied in and out ([`MemoryRegion::read`], [`MemoryRegion::write`]).
//! - **Completions.** A request ends exactly once: done, or with an error. A receive's and a READ's octets are in their
//!   place before their completion is told.
//! - **Progress.** By default a thread for each shard drives it ([`Progress::Thread`]); polling a completion queue does as
//!   well, and posting sends at once from the caller's thread. With [`Progress::Caller`] there is no thread.
//! - **Trust.** Keys, queue pair numbers and first PSNs are unpredictable. A packet is judged by its ICRC, its source
//!   address, its key, bounds, rights and protection domain before it touches anything; what is refused is counted
//!   ([`Device::counters`], [`Device::refused`]).
//! - **Errors.** `{:?}` of an error of this crate is the same sentence as `{}`, so that `unwrap` and a `main` that returns
//!   `Result<(), Box<dyn Error>>` print it.
//!
//! Out of scope: reliable and unreliable datagrams beyond UD SEND, automatic path migration.
//!
//! # Rooms
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`addresses`] | the addresses of this host by which devices go |
//! | [`device`] | devices, protection domains, their configuration |
//! | [`queue_pair`] | queue pairs and their builder |
//! | [`shared_receive`] | shared receive queues |
//! | [`work`] | typed work requests, completions |
//! | [`completion`] | completion queues: polling, waiting, notification |
//! | `times` | when completions were told |
//! | [`event`] | asynchronous events: what happens to queues besides completions |
//! | [`congestion`] | congestion-control laws and programs by name |
//! | `asynchronous` | with the feature `tokio`: tasks wait for completions and connections |
//! | [`control`] | the control socket: registers and counters of a running device, and what they come to over time |
//! | [`memory`] | regions, buffers, slices, windows |
//! | [`cm`] | connection set-up: RDMA-CM's listen, connect, accept, reject |
//! | [`perf`] | perftest's tests of bandwidth and latency, either end of which can be perftest |
//! | [`ping`] | rping's protocol, either end of which can be rping |
//! | [`bridge`] | the emulated switch, which needs no endpoint |
//! | [`io`] | packet I/O behind one trait: UDP sockets, raw sockets, a wire in memory |
//! | `posting`, `company` | from a work request to the engine's, and whether it waits for the next |
//! | `driver`, `habit`, `absence` | who runs a shard, how its thread waits, and what is known of an application that polls |
//! | `shard`, `receive`, `transmit` | one engine with its packet I/O |
//! | `icrc` | the ICRC of a flow, and the identification that it betrays |
//! | `telemetry` | what switches wrote into packets, as laws read it |
//! | [`threads`] | threads of the library's own |
//! | `counters` | what the packets of a queue pair have met |
//! | `alive` | whether a peer still lives of which nothing is awaited |
//! | `local` | requests that no packet carries, in the order of their queue |
//! | `works`, `table`, `numbers`, `paths`, `clock`, `waiters` | what they lean on |
//!
//! `docs/decisions/0004-endpoint.md` says who owns what, and why; `docs/guide/endpoint.md` how it meets the host.

/// Has an error's `Debug` say what its `Display` does. A program whose `main` returns `Result<(), Box<dyn Error>>` ends with the former, and
/// so does `unwrap`: there a variant's name and its numbers tell little, and what a refused request lent is told octet by octet.
macro_rules! speaks {
    ($error:ident $(<$of:ident> where R: $bound:path)?) => {
        impl $(<$of: $bound>)? std::fmt::Debug for $error $(<$of>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

mod absence;
pub mod addresses;
mod alive;
#[cfg(feature = "tokio")]
pub mod asynchronous;
pub mod bridge;
mod clock;
pub mod cm;
mod company;
pub mod completion;
pub mod congestion;
pub mod control;
mod counters;
pub mod device;
mod driver;
pub mod event;
mod habit;
mod icrc;
pub mod io;
mod local;
pub mod memory;
mod moderation;
mod numbers;
#[cfg(test)]
mod pair;
mod paths;
pub mod perf;
pub mod ping;
mod posting;
pub mod queue_pair;
mod receive;
mod shard;
pub mod shared_receive;
mod table;
mod telemetry;
pub mod threads;
mod times;
mod transmit;
#[cfg(feature = "tokio")]
mod waiters;
pub mod work;
mod works;

pub use completion::CompletionQueue;
pub use counters::Counters;
pub use device::{Backend, Device, DeviceConfig, Mtu, Progress, ProtectionDomain};
pub use event::{Event, Events};
pub use io::{Bottleneck, Faults, MemoryWire};
pub use memory::{
    Buffer, ForeignRegion, LentError, MemoryRegion, MemoryWindow, RegionError, RemoteMemory, Slice,
    WindowTarget,
};
pub use queue_pair::{QpInfo, QueuePair, QueuePairBuilder, QueuePairError};
pub use roci_control::{Law, Value};
pub use roci_transport::{
    Access, Change, CompletionKind, Operation, PostError, QpState, QpStatus, Recovery, Refusal,
    RegisterError, Service, Status, Tail, Transition, WindowKind,
};
pub use roci_units::{BitsPerSec, Psn, Qpn, Span};
pub use roci_wire::Layout;
pub use shard::IoCounters;
pub use shared_receive::{LimitError, ResizeError, SharedReceiveQueue};
pub use work::{INLINE_MAX, RecvWr, Refused, SendWr, WorkCompletion, WrError};
