//! The RDMA transport engine: queue pairs, reliability, credit, scheduling. Sans-I/O.
//!
//! The engine deals in segments, never in payload: the caller moves octets, by memory copy on a real network, by
//! spending time in a simulated one. It reads no clock and draws no number: `now` and the seed are arguments.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`engine`] | the engine's face: who is called for what |
//! | [`config`] | how an engine and its queue pairs are set up |
//! | [`setup`], `posting` | making, changing and ending queue pairs, posting work |
//! | [`state`] | the states of a queue pair |
//! | [`work`] | what an application posts, and its completions |
//! | [`segment`] | what is offered and sent |
//! | [`arrival`] | what arrives, what follows from it, what is deferred |
//! | [`memory`] | regions, their keys and rights |
//! | [`window`] | keys to parts of regions, which requests give and take away |
//! | [`delivery`] | which packets have arrived, and which are sent again |
//! | [`credit`] | how fast and how far a queue pair may send |
//! | [`agent`] | the hook for what is per port |
//! | [`schedule`] | which queue pair sends next |
//! | [`timer`] | the engine's timers |
//! | `transmit`, `requester`, `results`, `responder`, `recovery`, `keeping`, `responses`, `reading`, `responding`, `law`, `asking`, `limit`, `events`, `registers`, `messages`, `datagram`, `unreliable`, `pulls`, `stamps`, `opcodes`, `probing`, `incidents` | the roles between which the engine chooses |
//! | `stream`, `intake` | the common cases of sending and receiving, in one piece |
//! | `qp`, `laws`, `deferred_law`, `queue`, `reads`, `flying`, `aside`, `token` | what they remember |
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod agent;
pub mod arrival;
mod aside;
mod asking;
pub mod config;
pub mod credit;
mod datagram;
mod deferred_law;
pub mod delivery;
pub mod engine;
mod events;
mod flying;
mod incidents;
mod intake;
mod keeping;
mod law;
mod laws;
mod limit;
pub mod memory;
mod messages;
mod opcodes;
mod posting;
mod probing;
mod pulls;
mod qp;
mod queue;
mod reading;
mod reads;
mod recovery;
mod registers;
mod requester;
mod responder;
mod responding;
mod responses;
mod results;
pub mod schedule;
pub mod segment;
pub mod setup;
mod stamps;
pub mod state;
mod stream;
pub mod timer;
mod token;
mod transmit;
mod unreliable;
pub mod window;
pub mod work;

pub use agent::PortAgent;
pub use arrival::{
    Arrival, Deferral, Deferred, MemoryOperation, Placement, Reaction, Refusal, Resolution, Token,
};
pub use config::{Change, EngineConfig, Pd, QpConfig, QpError, Recovery, Service, Srq};
pub use engine::Engine;
pub use incidents::Incident;
pub use memory::{Access, AccessError, RegisterError};
pub use posting::RecvTarget;
pub use qp::{BITMAP_PACKETS, BITMAP_PACKETS_MAX};
pub use segment::{Grant, Offer, OwnedEvent, Segment, Source, Until};
pub use setup::{Counters, QpStatus};
pub use state::{QpState, Transition};
pub use window::{BindError, Binding, WindowKind};
pub use work::{Completion, CompletionKind, Operation, PostError, RecvRequest, SendRequest, Status, Tail};
