//! Requests and responses between clients and the threads of a server.

use super::spec::Common;
use roci_fabric::packet::HostId;
use roci_rpc::Credits;
use roci_units::{Bytes, Instant, Span};

/// Clients that keep requests outstanding on connections to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rpc {
    /// Who answers.
    pub server: HostId,
    /// Who asks.
    pub clients: Vec<HostId>,
    /// Hardware threads of the server that answer; connection n of the table belongs to the n-th of them, modulo this.
    pub threads: u16,
    /// Connections of each client, each with a queue pair of its own.
    pub connections: u32,
    /// Payload of a request.
    pub request: Bytes,
    /// Payload of a response.
    pub response: Bytes,
    /// Requests that each connection keeps unanswered.
    pub window: u32,
    /// Requests of each connection; `None`: until the run stops.
    pub count: Option<u64>,
    /// How long a thread is busy with a request besides receiving, copying and reading it.
    pub processing: Span,
    /// How long it is busy with each packet besides what it waits for memory.
    pub overhead: Span,
    /// What bounds the packets of a connection.
    pub credits: Credits,
    /// The cache that credits are computed for; `None`: the server's.
    pub credits_cache: Option<Bytes>,
    /// The most receive buffers of a thread.
    pub rx_ring: u32,
    /// What ends sooner after `start` is counted nowhere.
    pub warmup: Span,
    /// When the first requests are posted.
    pub start: Instant,
    /// Priority and control.
    pub common: Common,
}

impl Rpc {
    /// How many connections it has.
    pub fn queue_pairs(&self) -> u32 {
        u32::try_from(self.clients.len()).unwrap_or(u32::MAX).saturating_mul(self.connections)
    }
}
