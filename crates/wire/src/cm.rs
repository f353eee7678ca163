//! Management datagrams of connection set-up (IBTA Vol 1 §12.6) and of what is asked of a service for datagrams (§12.11), and what RDMA-CM puts into their private data (Annex A11).
//!
//! They are the payload of UD SENDs from and to queue pair 1 with the queue key [`Q_KEY`]. [`Mad::parse`] judges the
//! header and the kind; what fields of a known kind say is for the caller to judge. The fields that RoCEv2 has no use for
//! (LIDs, the end-to-end context, the alternate path) are emitted as zeros, LIDs as ones.

use crate::PacketError;
use crate::layout::Layout;
use core::net::{IpAddr, Ipv6Addr};
use roci_units::{Psn, Qpn};

mod sidr;

pub use sidr::{
    SERVICE_REPLY_INFORMATION, SERVICE_REPLY_PRIVATE, SERVICE_REQUEST_PRIVATE, ServiceReply, ServiceRequest,
    datagram_service, status,
};

/// Octets of a datagram.
pub const MAD_LEN: usize = 256;
/// The queue key of management.
pub const Q_KEY: u32 = 0x8001_0000;
/// Octets before the message.
const HEADER: usize = 24;
/// The service of TCP port 0 in RDMA-CM's port space for connections; the port is added.
const SERVICE: u64 = 0x0000_0000_0106_0000;
/// Octets of the Annex A11 header at the start of a request's private data.
const PRIVATE_HEADER: usize = 36;
/// Octets of private data in a request that are the user's (Annex A11.6). Where a header layout is offered, the last
/// [`OFFER`] of them bear the offer.
pub const REQUEST_PRIVATE: usize = 92 - PRIVATE_HEADER;
/// Octets of private data in a reply that are the user's. Where a header layout is accepted, the last [`OFFER`] of them
/// say so.
pub const REPLY_PRIVATE: usize = 196;
/// Octets of private data in a rejection.
pub const REJECT_PRIVATE: usize = 148;
/// Octets by which a header layout is offered, and accepted: eight at the end of the private data.
pub const OFFER: usize = 8;
/// By which such an offer is known, and its version.
const MAGIC: [u8; 6] = *b"RoCI\0\x01";

/// Octets of a device's GUID.
const GUID_LEN: u8 = 8;

/// One management datagram of connection set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// The transaction, chosen by who asks; an answer bears the question's.
    pub transaction: u64,
    /// What it says.
    pub message: Message,
}

/// What a datagram says. Ids are called by who sends: `local` is the sender's, `remote` the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// REQ: asks for a connection.
    Request(Request),
    /// REP: grants it.
    Reply(Reply),
    /// RTU: the reply has arrived.
    ReadyToUse {
        /// The sender's id.
        local: u32,
        /// The receiver's.
        remote: u32,
    },
    /// REJ: refuses, or gives up.
    Reject(Reject),
    /// MRA: an answer takes time.
    Acknowledge {
        /// The sender's id.
        local: u32,
        /// The receiver's.
        remote: u32,
        /// The answer takes up to 4.096 µs · 2^`timeout`, 0 to 31.
        timeout: u8,
    },
    /// DREQ: ends the connection.
    DisconnectRequest {
        /// The sender's id.
        local: u32,
        /// The receiver's.
        remote: u32,
        /// The receiver's queue pair.
        qpn: Qpn,
    },
    /// DREP: it has ended.
    DisconnectReply {
        /// The sender's id.
        local: u32,
        /// The receiver's.
        remote: u32,
    },
    /// SIDR_REQ: asks which queue pair takes the datagrams of a service.
    Resolve(ServiceRequest),
    /// SIDR_REP: says so, or that none does.
    Resolved(ServiceReply),
}

/// Which message an MRA or REJ is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A request.
    Request,
    /// A reply.
    Reply,
    /// Something else, or nothing.
    Other,
}

/// Private data: octets that the other side's user is told, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Private<const N: usize>(pub [u8; N]);

impl<const N: usize> Private<N> {
    /// None.
    pub const NONE: Self = Self([0; N]);

    /// These; `None` where there are too many.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let mut all = [0; N];
        all.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(Self(all))
    }

    /// These, beside the offer of a layout; `None` where there is no room for both.
    pub fn beside(layout: Layout, octets: &[u8]) -> Option<Self> {
        if octets.len() > Self::room(layout) { None } else { Self::new(octets) }
    }

    /// Octets that there is room for beside the offer of a layout.
    pub const fn room(layout: Layout) -> usize {
        if matches!(layout, Layout::Standard) { N } else { N - OFFER }
    }

    /// Takes out the offer that they end with.
    fn split(octets: [u8; N]) -> (Layout, Self) {
        let mut private = Self(octets);
        let Some((_, offer)) = private.0.split_last_chunk_mut() else { return (Layout::Standard, private) };
        let layout = layout_of(*offer);
        if layout != Layout::Standard {
            offer.fill(0);
        }
        (layout, private)
    }

    /// Puts an offer at their end; the standard layout needs none.
    fn join(&self, layout: Layout) -> [u8; N] {
        let mut octets = self.0;
        if layout != Layout::Standard
            && let Some((_, offer)) = octets.split_last_chunk_mut()
        {
            *offer = offer_of(layout);
        }
        octets
    }
}

impl<const N: usize> core::fmt::Debug for Private<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let said = N - self.0.iter().rev().take_while(|octet| **octet == 0).count();
        write!(f, "{:02x?}", &self.0[..said])
    }
}

/// REQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The sender's id of the connection.
    pub local: u32,
    /// The service that is asked for.
    pub service: u64,
    /// The sender's device.
    pub guid: u64,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// READs and atomics that the sender takes at once, as responder.
    pub responder_resources: u8,
    /// READs and atomics that it wants to have outstanding.
    pub initiator_depth: u8,
    /// The PSN of the first packet that the *receiver* of this is to send.
    pub psn: Psn,
    /// The path MTU as IBTA numbers it, 1 for 256 to 5 for 4096.
    pub mtu: u8,
    /// Retransmissions, 0 to 7.
    pub retry_count: u8,
    /// Retries when the receiver is not ready, 0 to 7.
    pub rnr_retry_count: u8,
    /// The traffic class of packets of the connection; its two lowest bits are ECN's.
    pub traffic_class: u8,
    /// The sender's local ACK timeout, 4.096 µs · 2^`ack_timeout`.
    pub ack_timeout: u8,
    /// An answer is expected within 4.096 µs · 2^`response_timeout`.
    pub response_timeout: u8,
    /// How often this is sent again, 0 to 15.
    pub max_retries: u8,
    /// The service type: [`RELIABLE`], [`UNRELIABLE`], or another, 2 or 3.
    pub service_type: u8,
    /// The GIDs of sender and receiver: their addresses.
    pub gids: (Ipv6Addr, Ipv6Addr),
    /// RDMA-CM's header, where the private data begin with one: port and addresses of the sender and the receiver.
    pub endpoints: Option<Endpoints>,
    /// The header layout that is offered. A peer of another make sees private data that it does not know.
    pub layout: Layout,
    /// The user's.
    pub private: Private<REQUEST_PRIVATE>,
}

/// What RDMA-CM says of the two ends (Annex A11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The sender's port.
    pub port: u16,
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
}

/// REP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The sender's id of the connection.
    pub local: u32,
    /// The receiver's.
    pub remote: u32,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// The PSN of the first packet that the *receiver* of this is to send.
    pub psn: Psn,
    /// READs and atomics that the sender takes at once, as responder.
    pub responder_resources: u8,
    /// READs and atomics that it will have outstanding.
    pub initiator_depth: u8,
    /// Retries when the receiver is not ready, 0 to 7.
    pub rnr_retry_count: u8,
    /// The sender's device.
    pub guid: u64,
    /// The header layout that is accepted.
    pub layout: Layout,
    /// The user's.
    pub private: Private<REPLY_PRIVATE>,
}

/// REJ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The sender's id, 0 where it has none.
    pub local: u32,
    /// The receiver's.
    pub remote: u32,
    /// What is rejected. Who gives up waiting rejects no message.
    pub of: Answered,
    /// Why, as IBTA numbers the reasons (Vol 1 §12.6.7.2); see [`reason`].
    pub reason: u16,
    /// The sender's device, which the additional information of [`reason::TIMEOUT`] names: by it and by the sender's id the
    /// receiver finds the connection, whose id at the receiver the sender may not know. Not emitted for other reasons.
    pub guid: Option<u64>,
    /// The user's.
    pub private: Private<REJECT_PRIVATE>,
}

/// The service type of reliable connections.
pub const RELIABLE: u8 = 0;
/// The service type of unreliable connections.
pub const UNRELIABLE: u8 = 1;

/// Reasons of a rejection.
pub mod reason {
    /// No queue pair is to be had.
    pub const NO_QP: u16 = 1;
    /// No resources.
    pub const NO_RESOURCES: u16 = 3;
    /// The other side did not answer in time.
    pub const TIMEOUT: u16 = 4;
    /// The request cannot be fulfilled.
    pub const UNSUPPORTED: u16 = 5;
    /// Nobody offers the service.
    pub const INVALID_SERVICE: u16 = 8;
    /// The service type is none that is known here.
    pub const INVALID_SERVICE_TYPE: u16 = 9;
    /// A connection with these ids exists already.
    pub const STALE_CONNECTION: u16 = 10;
    /// The sender's GID is not its address.
    pub const INVALID_GID: u16 = 12;
    /// The path MTU is larger than the link takes.
    pub const INVALID_MTU: u16 = 26;
    /// The user refuses; the private data say more.
    pub const CONSUMER: u16 = 28;

    /// In words.
    pub const fn text(reason: u16) -> &'static str {
        match reason {
            NO_QP => "no queue pair is to be had",
            NO_RESOURCES => "no resources",
            TIMEOUT => "no answer in time",
            UNSUPPORTED => "unsupported request",
            INVALID_SERVICE => "nobody listens at this port",
            INVALID_SERVICE_TYPE => "invalid service type",
            STALE_CONNECTION => "a stale connection",
            INVALID_GID => "the GID is rejected",
            INVALID_MTU => "invalid path MTU",
            CONSUMER => "the application refuses",
            _ => "another reason of IBTA's",
        }
    }
}

/// The service of a port.
pub const fn service(port: u16) -> u64 {
    SERVICE | port as u64
}

/// The port of a service, where it is one of RDMA-CM's port space for connections.
pub const fn port_of(service: u64) -> Option<u16> {
    if service & !0xffff == SERVICE { Some((service & 0xffff) as u16) } else { None }
}

const REQ: u16 = 0x10;
const MRA: u16 = 0x11;
const REJ: u16 = 0x12;
const REP: u16 = 0x13;
const RTU: u16 = 0x14;
const DREQ: u16 = 0x15;
const DREP: u16 = 0x16;
const SIDR_REQ: u16 = 0x17;
const SIDR_REP: u16 = 0x18;

impl Mad {
    /// Reads a datagram.
    ///
    /// # Errors
    /// [`PacketError::Truncated`] where it is shorter than [`MAD_LEN`]; [`PacketError::Management`] where it is of another
    /// class, version, method or kind.
    pub fn parse(octets: &[u8]) -> Result<Self, PacketError> {
        let truncated = PacketError::Truncated { got: octets.len(), need: MAD_LEN };
        let mad: &[u8; MAD_LEN] = octets.first_chunk().ok_or(truncated)?;
        let at = Fields(mad);
        let kind = at.half(16);
        // Base version 1, class 7 (communication management) of version 2, method 3 (Send).
        let unknown = PacketError::Management { got: u64::from(at.word(0)) << 16 | u64::from(kind) };
        if at.word(0) != 0x0107_0203 {
            return Err(unknown);
        }
        let (local, remote) = (at.word(HEADER), at.word(HEADER + 4));
        let message = match kind {
            REQ => Message::Request(at.request()),
            REP => Message::Reply(at.reply()),
            RTU => Message::ReadyToUse { local, remote },
            REJ => Message::Reject(Reject {
                local,
                remote,
                of: answered(mad[HEADER + 8]),
                reason: at.half(HEADER + 10),
                guid: at.rejecting_device(),
                private: Private(at.chunk(HEADER + 84)),
            }),
            MRA => Message::Acknowledge { local, remote, timeout: mad[HEADER + 9] >> 3 },
            DREQ => Message::DisconnectRequest { local, remote, qpn: Qpn::new(at.three(HEADER + 8)) },
            DREP => Message::DisconnectReply { local, remote },
            SIDR_REQ => Message::Resolve(at.service_request()),
            SIDR_REP => Message::Resolved(at.service_reply()),
            _ => return Err(unknown),
        };
        Ok(Self { transaction: at.long(8), message })
    }

    /// The datagram's octets.
    pub fn emit(&self) -> [u8; MAD_LEN] {
        let mut mad = Octets([0; MAD_LEN]);
        mad.put(0, &0x0107_0203u32.to_be_bytes());
        mad.put(8, &self.transaction.to_be_bytes());
        let kind = match &self.message {
            Message::Request(request) => {
                mad.request(request);
                REQ
            }
            Message::Reply(reply) => {
                mad.reply(reply);
                REP
            }
            Message::ReadyToUse { local, remote } => {
                mad.ids(*local, *remote);
                RTU
            }
            Message::Reject(reject) => {
                mad.ids(reject.local, reject.remote);
                mad.0[HEADER + 8] = match reject.of {
                    Answered::Request => 0,
                    Answered::Reply => 1 << 6,
                    Answered::Other => 2 << 6,
                };
                mad.put(HEADER + 10, &reject.reason.to_be_bytes());
                if let (Some(guid), reason::TIMEOUT) = (reject.guid, reject.reason) {
                    mad.0[HEADER + 9] = GUID_LEN << 1;
                    mad.put(HEADER + 12, &guid.to_be_bytes());
                }
                mad.put(HEADER + 84, &reject.private.0);
                REJ
            }
            Message::Acknowledge { local, remote, timeout } => {
                mad.ids(*local, *remote);
                mad.0[HEADER + 9] = timeout << 3;
                MRA
            }
            Message::DisconnectRequest { local, remote, qpn } => {
                mad.ids(*local, *remote);
                mad.three(HEADER + 8, qpn.get());
                DREQ
            }
            Message::DisconnectReply { local, remote } => {
                mad.ids(*local, *remote);
                DREP
            }
            Message::Resolve(request) => {
                mad.service_request(request);
                SIDR_REQ
            }
            Message::Resolved(reply) => {
                mad.service_reply(reply);
                SIDR_REP
            }
        };
        mad.put(16, &kind.to_be_bytes());
        mad.0
    }
}

/// Whom of those who share an address a datagram concerns, by what it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// Who offers this service.
    Service(u64),
    /// Who has drawn this id.
    Id(u32),
    /// Whoever was asked for a connection that the sender gives up before it has heard how that is called there.
    Asked,
    /// It is none of connection set-up.
    Nobody,
}

impl Addressee {
    /// Of a datagram's octets, which may be anything.
    pub fn of(octets: &[u8]) -> Self {
        match Mad::parse(octets).map(|mad| mad.message) {
            Ok(
                Message::Request(Request { service, .. }) | Message::Resolve(ServiceRequest { service, .. }),
            ) => Self::Service(service),
            Ok(Message::Resolved(reply)) => Self::Id(reply.id),
            Ok(Message::Reject(Reject { remote: 0, .. })) => Self::Asked,
            Ok(
                Message::Reply(Reply { remote, .. })
                | Message::Reject(Reject { remote, .. })
                | Message::ReadyToUse { remote, .. }
                | Message::Acknowledge { remote, .. }
                | Message::DisconnectRequest { remote, .. }
                | Message::DisconnectReply { remote, .. },
            ) => Self::Id(remote),
            Err(_) => Self::Nobody,
        }
    }
}

const fn answered(octet: u8) -> Answered {
    match octet >> 6 {
        0 => Answered::Request,
        1 => Answered::Reply,
        _ => Answered::Other,
    }
}

/// Fields of a datagram that is long enough for all.
struct Fields<'a>(&'a [u8; MAD_LEN]);

impl Fields<'_> {
    fn chunk<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut octets = [0; N];
        octets.copy_from_slice(&self.0[at..at + N]);
        octets
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.chunk(at))
    }

    fn three(&self, at: usize) -> u32 {
        self.word(at) >> 8
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.chunk(at))
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.chunk(at))
    }

    fn octet(&self, at: usize) -> u8 {
        self.0[HEADER + at]
    }

    fn rejecting_device(&self) -> Option<u64> {
        let says = self.half(HEADER + 10) == reason::TIMEOUT && self.octet(9) >> 1 >= GUID_LEN;
        says.then(|| self.long(HEADER + 12))
    }

    fn request(&self) -> Request {
        let at_private = HEADER + 140;
        let (layout, private) = Private::split(self.chunk(at_private + PRIVATE_HEADER));
        let gid = |at: usize| Ipv6Addr::from(self.chunk::<16>(HEADER + at));
        Request {
            local: self.word(HEADER),
            service: self.long(HEADER + 8),
            guid: self.long(HEADER + 16),
            qpn: Qpn::new(self.three(HEADER + 32)),
            responder_resources: self.octet(35),
            initiator_depth: self.octet(39),
            service_type: self.octet(43) >> 1 & 3,
            psn: Psn::new(self.three(HEADER + 44)),
            response_timeout: self.octet(47) >> 3,
            retry_count: self.octet(47) & 7,
            mtu: self.octet(50) >> 4,
            rnr_retry_count: self.octet(50) & 7,
            max_retries: self.octet(51) >> 4,
            gids: (gid(56), gid(72)),
            traffic_class: self.octet(92),
            ack_timeout: self.octet(95) >> 3,
            endpoints: self.endpoints(at_private),
            layout,
            private,
        }
    }

    fn endpoints(&self, at: usize) -> Option<Endpoints> {
        let (version, family) = (self.0[at], self.0[at + 1] >> 4);
        let address = |at: usize| -> Option<IpAddr> {
            match family {
                4 => Some(IpAddr::from(self.chunk::<4>(at + 12))),
                6 => Some(IpAddr::from(self.chunk::<16>(at))),
                _ => None,
            }
        };
        if version != 0 {
            return None;
        }
        Some(Endpoints { port: self.half(at + 2), source: address(at + 4)?, destination: address(at + 20)? })
    }

    fn reply(&self) -> Reply {
        let (layout, private) = Private::split(self.chunk(HEADER + 36));
        Reply {
            local: self.word(HEADER),
            remote: self.word(HEADER + 4),
            qpn: Qpn::new(self.three(HEADER + 12)),
            psn: Psn::new(self.three(HEADER + 20)),
            responder_resources: self.octet(24),
            initiator_depth: self.octet(25),
            rnr_retry_count: self.octet(27) >> 5,
            guid: self.long(HEADER + 28),
            layout,
            private,
        }
    }
}

/// A datagram in the making.
struct Octets([u8; MAD_LEN]);

impl Octets {
    fn put(&mut self, at: usize, octets: &[u8]) {
        self.0[at..at + octets.len()].copy_from_slice(octets);
    }

    /// Three octets; the fourth is not touched.
    fn three(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_be_bytes()[1..]);
    }

    fn ids(&mut self, local: u32, remote: u32) {
        self.put(HEADER, &local.to_be_bytes());
        self.put(HEADER + 4, &remote.to_be_bytes());
    }

    fn request(&mut self, request: &Request) {
        self.ids(request.local, 0);
        self.put(HEADER + 8, &request.service.to_be_bytes());
        self.put(HEADER + 16, &request.guid.to_be_bytes());
        self.three(HEADER + 32, request.qpn.get());
        self.0[HEADER + 35] = request.responder_resources;
        self.0[HEADER + 39] = request.initiator_depth;
        self.0[HEADER + 43] = request.response_timeout << 3 | (request.service_type & 3) << 1;
        self.three(HEADER + 44, request.psn.get());
        self.0[HEADER + 47] = request.response_timeout << 3 | request.retry_count & 7;
        self.put(HEADER + 48, &0xffffu16.to_be_bytes());
        self.0[HEADER + 50] = request.mtu << 4 | request.rnr_retry_count & 7;
        self.0[HEADER + 51] = request.max_retries << 4;
        self.put(HEADER + 52, &[0xff; 4]);
        self.put(HEADER + 56, &request.gids.0.octets());
        self.put(HEADER + 72, &request.gids.1.octets());
        // A packet rate of 10 Gb/s as IBTA numbers it, which nobody heeds; the hop limit of all our packets.
        self.0[HEADER + 91] = 3;
        self.0[HEADER + 92] = request.traffic_class;
        self.0[HEADER + 93] = 64;
        self.0[HEADER + 95] = request.ack_timeout << 3;
        let private = HEADER + 140;
        self.endpoints(private, request.endpoints);
        self.put(private + PRIVATE_HEADER, &request.private.join(request.layout));
    }

    fn endpoints(&mut self, at: usize, endpoints: Option<Endpoints>) {
        let Some(Endpoints { port, source, destination }) = endpoints else { return };
        self.0[at + 1] = if source.is_ipv4() { 0x40 } else { 0x60 };
        self.put(at + 2, &port.to_be_bytes());
        for (at, address) in [(at + 4, source), (at + 20, destination)] {
            match address {
                IpAddr::V4(address) => self.put(at + 12, &address.octets()),
                IpAddr::V6(address) => self.put(at, &address.octets()),
            }
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.ids(reply.local, reply.remote);
        self.three(HEADER + 12, reply.qpn.get());
        self.three(HEADER + 20, reply.psn.get());
        self.0[HEADER + 24] = reply.responder_resources;
        self.0[HEADER + 25] = reply.initiator_depth;
        // A delay of acknowledgements of 134 ms at most, as the kernel says of Soft-RoCE.
        self.0[HEADER + 26] = 15 << 3;
        self.0[HEADER + 27] = reply.rnr_retry_count << 5;
        self.put(HEADER + 28, &reply.guid.to_be_bytes());
        self.put(HEADER + 36, &reply.private.join(reply.layout));
    }
}

/// The octets that offer a layout; zeros for the standard one, which needs no offer.
fn offer_of(layout: Layout) -> [u8; OFFER] {
    if layout == Layout::Standard {
        return [0; OFFER];
    }
    let [number, words] = layout.code();
    let [a, b, c, d, e, f] = MAGIC;
    [a, b, c, d, e, f, number, words]
}

/// The layout that is offered; the standard one where nothing is.
fn layout_of(octets: [u8; OFFER]) -> Layout {
    let [magic @ .., number, words] = octets;
    if magic != MAGIC {
        return Layout::Standard;
    }
    Layout::from_code([number, words]).unwrap_or_default()
}

#[cfg(test)]
mod tests;
