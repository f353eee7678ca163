//! Requests and responses over SENDs, as eRPC has them, with credits that follow the receiver's last-level cache: CARC (Li et al.,
//! *Cache-Aware I/O Rate Control for RDMA*, APNet 2025).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`credits`] | how much a connection may have under way: formulas (1) and (2) of the paper |
//! | [`client`] | the requester's end of a connection: what may be posted next, and what credits that come back tell |
//! | [`server`] | the responder's end: when credits go back, and what goes with them |
//! | [`header`] | the octets before the payload of what is sent |
//!
//! Sans-I/O: whoever calls posts the SENDs and says what time it is; a request longer than a packet is as many SENDs, each into a buffer of the
//! receiver's ring.
#![forbid(unsafe_code)]

pub mod client;
pub mod credits;
pub mod header;
pub mod server;

pub use client::{Answered, Client, ClientConfig, Packet};
pub use credits::{Credits, Loosened, basic_credits};
pub use header::{HeaderError, REQUEST_HEADER, RETURN_HEADER, RequestHeader, ReturnHeader};
pub use server::{Processed, Return, Server};
