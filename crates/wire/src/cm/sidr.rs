//! Which queue pair takes the datagrams of a service, asked and answered (IBTA Vol 1 §12.11, *Service ID Resolution*).

use super::{Endpoints, Fields, HEADER, Octets, PRIVATE_HEADER, Private};
use roci_units::Qpn;

/// The service of UDP port 0 in RDMA-CM's port space for datagrams; the port is added.
const SERVICE: u64 = 0x0000_0000_0111_0000;
/// Octets of private data in a request that are the user's, behind those of RDMA-CM (Annex A11.6).
pub const SERVICE_REQUEST_PRIVATE: usize = 216 - PRIVATE_HEADER;
/// Octets of private data in an answer.
pub const SERVICE_REPLY_PRIVATE: usize = 136;
/// Octets of additional information in an answer, at most.
pub const SERVICE_REPLY_INFORMATION: usize = 72;

/// SIDR_REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceRequest {
    /// The sender's id of the request, which the answer bears.
    pub id: u32,
    /// The partition that the queue pair is to be in.
    pub p_key: u16,
    /// The service that is asked for.
    pub service: u64,
    /// RDMA-CM's header, where the private data begin with one: port and addresses of the sender and the receiver.
    pub endpoints: Option<Endpoints>,
    /// The user's.
    pub private: Private<SERVICE_REQUEST_PRIVATE>,
}

/// SIDR_REP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceReply {
    /// The receiver's id of the request.
    pub id: u32,
    /// Whether there is a queue pair, as IBTA numbers it (Vol 1 §12.11.2.1); see [`status`].
    pub status: u8,
    /// Octets of additional information that count, 0 to 72.
    pub information_len: u8,
    /// What is added to the status, zeros behind what counts.
    pub information: Private<SERVICE_REPLY_INFORMATION>,
    /// The queue pair.
    pub qpn: Qpn,
    /// The service that was asked for.
    pub service: u64,
    /// The queue key of its datagrams.
    pub q_key: u32,
    /// The user's.
    pub private: Private<SERVICE_REPLY_PRIVATE>,
}

/// Whether a queue pair serves.
pub mod status {
    /// It does.
    pub const VALID: u8 = 0;
    /// Nobody offers the service.
    pub const UNSUPPORTED: u8 = 1;
    /// The user refuses; the private data say more.
    pub const REJECTED: u8 = 2;
    /// No queue pair is to be had.
    pub const NO_QP: u8 = 3;
    /// Another port is to be asked, which the additional information names.
    pub const REDIRECTED: u8 = 4;
    /// The version of the request is not known.
    pub const VERSION: u8 = 5;

    /// In words.
    pub const fn text(status: u8) -> &'static str {
        match status {
            VALID => "a queue pair serves",
            UNSUPPORTED => "nobody listens at this port",
            REJECTED => "the application refuses",
            NO_QP => "no queue pair is to be had",
            REDIRECTED => "another port is to be asked",
            VERSION => "the version is not known there",
            _ => "another status of IBTA's",
        }
    }
}

/// The service of a port for datagrams.
pub const fn datagram_service(port: u16) -> u64 {
    SERVICE | port as u64
}

impl Fields<'_> {
    pub(super) fn service_request(&self) -> ServiceRequest {
        ServiceRequest {
            id: self.word(HEADER),
            p_key: self.half(HEADER + 4),
            service: self.long(HEADER + 8),
            endpoints: self.endpoints(HEADER + 16),
            private: Private(self.chunk(HEADER + 16 + PRIVATE_HEADER)),
        }
    }

    pub(super) fn service_reply(&self) -> ServiceReply {
        let mut information: [u8; SERVICE_REPLY_INFORMATION] = self.chunk(HEADER + 24);
        let length = usize::from(self.octet(5)).min(SERVICE_REPLY_INFORMATION);
        information[length..].fill(0);
        ServiceReply {
            id: self.word(HEADER),
            status: self.octet(4),
            information_len: u8::try_from(length).unwrap_or(0),
            information: Private(information),
            qpn: Qpn::new(self.three(HEADER + 8)),
            service: self.long(HEADER + 12),
            q_key: self.word(HEADER + 20),
            private: Private(self.chunk(HEADER + 96)),
        }
    }
}

impl Octets {
    pub(super) fn service_request(&mut self, request: &ServiceRequest) {
        self.put(HEADER, &request.id.to_be_bytes());
        self.put(HEADER + 4, &request.p_key.to_be_bytes());
        self.put(HEADER + 8, &request.service.to_be_bytes());
        self.endpoints(HEADER + 16, request.endpoints);
        self.put(HEADER + 16 + PRIVATE_HEADER, &request.private.0);
    }

    pub(super) fn service_reply(&mut self, reply: &ServiceReply) {
        self.put(HEADER, &reply.id.to_be_bytes());
        self.put(HEADER + 4, &[reply.status, reply.information_len]);
        self.three(HEADER + 8, reply.qpn.get());
        self.put(HEADER + 12, &reply.service.to_be_bytes());
        self.put(HEADER + 20, &reply.q_key.to_be_bytes());
        self.put(HEADER + 24, &reply.information.0);
        self.put(HEADER + 96, &reply.private.0);
    }
}
