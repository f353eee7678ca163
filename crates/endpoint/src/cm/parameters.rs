//! What the ends say of themselves, and what becomes of a queue pair by it.

use super::CmError;
use crate::completion::CompletionQueue;
use crate::device::Mtu;
use crate::queue_pair::{QpInfo, QueuePair, QueuePairError, in_range};
use roci_transport::{Change, Service, Transition};
use roci_units::Psn;
use roci_wire::Layout;
use roci_wire::cm::{self, Private};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The longest that is taken from a peer, 4.3 s: what the kernel asks for is 2.1 s.
pub(super) const ACK_TIMEOUT_MAX: u8 = 20;

/// What an end says of itself when it connects (`rdma_conn_param`).
#[derive(Clone, Debug)]
pub struct ConnParam {
    /// READs and atomics that it takes at once as responder; 16 if not said.
    pub responder_resources: u8,
    /// READs and atomics that it wants outstanding; 16 if not said. The peer's `responder_resources` bound it.
    pub initiator_depth: u8,
    /// Retransmissions without progress before the connection fails, 0 to 7; 7 if not said. Who connects says it for both.
    pub retry_count: u8,
    /// Retries that the *peer* makes when we are not ready, 0 to 6; 7, for ever, if not said.
    pub rnr_retry_count: u8,
    /// The local ACK timeout, 4.096 µs · 2^`ack_timeout`. If not said: for who connects 14 (67 ms), for who accepts what
    /// the request names.
    pub ack_timeout: Option<u8>,
    /// The path MTU that who connects asks for. If not said it is the device's, or where the peer's link takes less, what that takes.
    pub path_mtu: Option<Mtu>,
    /// The traffic class, or type of service, of packets of the connection, of which the upper six bits are their code point (DSCP). If not
    /// said it is the queue pair's, or for who accepts with one whose code point is 0, what the request names. Who connects tells the peer.
    pub traffic_class: Option<u8>,
    /// The port that who connects says it comes from. If not said it is one from 32768 on, at random.
    pub port: Option<u16>,
    /// What the peer's user is told: at most 56 octets with a request, 196 with a reply; eight less where the queue pair's
    /// header layout is not the standard one.
    pub private_data: Vec<u8>,
}

impl Default for ConnParam {
    fn default() -> Self {
        Self {
            responder_resources: 16,
            initiator_depth: 16,
            retry_count: 7,
            rnr_retry_count: 7,
            ack_timeout: None,
            path_mtu: None,
            traffic_class: None,
            port: None,
            private_data: Vec::new(),
        }
    }
}

impl ConnParam {
    /// That all of it has room on the wire.
    pub(super) fn judge(&self) -> Result<(), QueuePairError> {
        in_range("the exponent of the local ACK timeout", self.ack_timeout.unwrap_or(0), 31)?;
        in_range("retry_count", self.retry_count, 7)?;
        in_range("rnr_retry_count", self.rnr_retry_count, 7)
    }

    /// The private data of a datagram that has room for `N` octets.
    pub(super) fn private<const N: usize>(&self, layout: Layout) -> Result<Private<N>, CmError> {
        Private::beside(layout, &self.private_data).ok_or(CmError::PrivateData(Private::<N>::room(layout)))
    }
}

/// What a queue pair has to be told of its peer, as the two ends have agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The peer: its address, its queue pair, and the PSN that it begins with.
    pub peer: QpInfo,
    /// The PSN that we begin with.
    pub send_psn: Psn,
    /// The path MTU.
    pub mtu: Mtu,
    /// READs and atomics that we may have outstanding.
    pub reads: u8,
    /// READs and atomics that the peer may have outstanding.
    pub responses: u8,
    /// The traffic class of our packets.
    pub traffic_class: u8,
    /// Our local ACK timeout, 4.096 µs · 2^`ack_timeout`.
    pub ack_timeout: u8,
    /// Our retransmissions without progress, 0 to 7.
    pub retry: u8,
    /// Our retries when the peer is not ready, 0 to 7.
    pub rnr_retry: u8,
}

impl Terms {
    /// Connects `qp`; gives whether it has failed since, of which `cq` is to hear.
    pub(super) fn connect(&self, qp: &QueuePair, cq: &CompletionQueue) -> Result<Arc<AtomicBool>, CmError> {
        let has_failed = qp.watch(cq);
        // Of an unreliable connection nothing is answered, and so there is nothing to say of answers.
        let answered = qp.service() == Service::Rc;
        let change = Change {
            mtu: Some(self.mtu.octets()),
            timeout: answered.then(|| crate::queue_pair::timeout(self.ack_timeout)),
            retry: answered.then_some(self.retry),
            rnr_retry: answered.then_some(self.rnr_retry),
            max_rd_atomic: answered.then_some(self.reads),
            max_dest_rd_atomic: answered.then_some(self.responses),
            ..Change::default()
        };
        qp.set_dscp(self.traffic_class >> 2)?;
        qp.ready_to_receive(self.peer, &change)?;
        let send_psn = Some(self.send_psn);
        qp.modify(&Change { send_psn, transition: Some(Transition::Send), ..Change::default() })?;
        Ok(has_failed)
    }
}

/// The service type of a request for a queue pair of `service`. Datagrams have no connections, and nobody asks for one of theirs.
pub(super) const fn service_type_of(service: Service) -> u8 {
    match service {
        Service::Rc | Service::Ud => cm::RELIABLE,
        Service::Uc => cm::UNRELIABLE,
    }
}

/// The service that a request names; the machine refuses others than these.
pub(super) const fn service_of(service_type: u8) -> Service {
    if service_type == cm::UNRELIABLE { Service::Uc } else { Service::Rc }
}

/// An address as a GID.
pub(super) fn gid(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// An MTU as IBTA numbers them.
pub(super) fn number_of(mtu: Mtu) -> u8 {
    let place = Mtu::ALL.iter().position(|known| *known == mtu).unwrap_or(0);
    u8::try_from(place).unwrap_or(0) + 1
}

pub(super) fn mtu_of(number: u8) -> Option<Mtu> {
    Mtu::ALL.get(usize::from(number).checked_sub(1)?).copied()
}
