//! Requests and responses over SENDs, as eRPC has them, with credits that follow the receiver's last-level cache: CARC (Li et al.,
//! *Cache-Aware I/O Rate Control for RDMA*, APNet 2025).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`credits`] | how much a connection may have under way: formulas (1) and (2) of the paper |
//! | [`client`] | the requester's end of a connection: what may be posted next, and what credits that come back tell |
//! | [`server`] | the responder's end: when credits go back, and what goes with them |
//!
//! Sans-I/O: whoever calls posts the SENDs and says what time it is; a request longer than a packet is as many SENDs, each into a buffer of the
//! receiver's ring.
#![forbid(unsafe_code)]

pub mod client;
pub mod credits;
pub mod server;

pub use client::{Answered, Client, ClientConfig, Packet};
pub use credits::{Credits, Loosened, basic_credits};
pub use server::{Processed, Return, Server};

/// Octets before the payload of each packet of a request: as many as eRPC's packet header has.
pub const REQUEST_HEADER: u32 = 16;
/// Octets before the payload of a response, and those of a packet that returns credits alone: the same, and what [`Return`] says.
pub const RETURN_HEADER: u32 = 32;
