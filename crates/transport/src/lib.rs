//! The RDMA transport engine: queue pairs, reliability, credit, scheduling. Sans-I/O.
//!
//! The engine deals in segments, never in payload: the caller moves octets, by memory copy on a real network, by
//! spending time in a simulated one. It reads no clock and draws no number: `now` and the seed are arguments.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`config`] | how an engine and its queue pairs are set up |
//! | [`work`] | what an application posts, and its completions |
//! | [`segment`] | what is offered and sent |
//! | [`arrival`] | what arrives, what follows from it, what is deferred |
//! | [`schedule`] | which queue pair sends next |
//! | [`credit`] | what a queue pair may send now: rate, window, tokens |
//! | [`delivery`] | which packets have arrived, which are sent again |
//! | [`memory`] | memory regions, their keys and rights |
//! | [`timer`] | exact timers, one per queue pair and kind |
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod arrival;
pub mod config;
pub mod credit;
pub mod delivery;
pub mod memory;
pub mod schedule;
pub mod segment;
pub mod timer;
pub mod work;

pub use arrival::{
    Arrival, Deferral, Deferred, MemoryOperation, Placement, Reaction, Refusal, Resolution, Token,
};
pub use config::{EngineConfig, Pd, QpConfig, Recovery, Service, Srq};
pub use segment::{Grant, Offer, OwnedEvent, Segment, Source, Until};
pub use work::{Completion, CompletionKind, Operation, RecvRequest, SendRequest, Status, Tail};
