//! Packet I/O: what carries datagrams to and from UDP port 4791, behind one trait.
//!
//! | room | what it is |
//! | --- | --- |
//! | [`udp`] | UDP sockets with segmentation offload: the default, needs no privilege |
//! | [`raw`] | raw sockets, which see the whole IP header: needs CAP_NET_RAW |
//! | [`memory`] | a wire in memory with seeded faults, for tests |
//! | [`batch`] | packets gathered for one system call |
//! | [`steer`] | how endpoints that share the port find their packets |
//! | `connected` | sending sockets for one peer each |
//! | `ethernet` | whole frames, of TAP devices and interfaces, for the emulated switch |
//! | `management` | whose the packets for queue pair 1 are |
//! | `fold` | the CRC of payload, with wide registers |
//! | `sys` | the system calls |

pub mod batch;
pub(crate) mod connected;
pub(crate) mod ethernet;
pub(crate) mod fold;
mod management;
pub mod memory;
pub mod raw;
pub mod steer;
pub(crate) mod sys;
pub mod udp;

pub use batch::Batch;
pub use memory::{Bottleneck, Faults, MemoryWire};

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

/// Something that carries RoCEv2 datagrams for one address.
///
/// All its calls come from one thread at a time.
pub trait PacketIo: Send {
    /// The address that packets come from and go to.
    fn local(&self) -> IpAddr;

    /// How many packets may leave as one run, split by the kernel or by hardware; at least 1.
    fn run_max(&self) -> usize;

    /// What the first packet of the next run, which goes to `destination`, will bear.
    fn begin(&mut self, destination: IpAddr) -> Start;

    /// Sends all runs of `batch`. What cannot be sent is dropped and counted: the transport repeats it.
    fn send(&mut self, batch: &Batch) -> Sent;

    /// Hands what has arrived to `sink`, without waiting, up to an amount that keeps the caches warm; gives the
    /// number of runs.
    ///
    /// # Errors
    /// Whatever the operating system says, but "nothing there" is 0.
    fn receive(&mut self, sink: &mut dyn FnMut(Arrived<'_>)) -> io::Result<usize>;

    /// What becomes readable when something arrives; −1 for none. It is the same for as long as this lives.
    fn readable(&self) -> [RawFd; 3];

    /// The remainder modulo [`steer::SLOTS`] that the queue pair numbers of this address have here.
    fn slot(&self) -> u32 {
        0
    }

    /// Has those packets for queue pair 1 that concern this endpoint: all endpoints at an address have it together, and what is said there
    /// tells whom it concerns. Ids of connections have to have the remainder [`slot`](Self::slot) therefore.
    ///
    /// # Errors
    /// What the operating system says.
    fn claim_management(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Has them no longer, and offers no services.
    fn release_management(&mut self) {}

    /// Has the requests for a service as well, which one endpoint at an address can have; once more if it has them.
    ///
    /// # Errors
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) where another endpoint has them.
    fn claim_service(&mut self, service: u64) -> io::Result<()> {
        let _ = service;
        Ok(())
    }

    /// Takes one such claim back.
    fn release_service(&mut self, service: u64) {
        let _ = service;
    }

    /// Octets that what arrives may take, as the system counts them, before it is received: with each packet's bookkeeping.
    /// Zero where there is no bound.
    fn receive_buffer(&self) -> u64 {
        0
    }

    /// Datagrams that were lost before they could be received, as far as that is known.
    fn overflowed(&self) -> u64 {
        0
    }
}

/// What a run begins with that the ICRC covers, but the endpoint does not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The UDP source port of its packets.
    pub source_port: u16,
    /// The IPv4 identification of the first; the following ones count up.
    pub id: u16,
}

impl Start {
    /// From RoCEv2's own port.
    pub(crate) const fn with_id(id: u16) -> Self {
        Self { source_port: roci_wire::udp::ROCE_PORT, id }
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets that left.
    pub packets: u64,
    /// Packets that could not.
    pub dropped: u64,
}

/// A run of datagrams that arrived together, from one sender with one mark.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// Who sent it.
    pub source: IpAddr,
    /// The UDP source port.
    pub source_port: u16,
    /// Whether the IP header carries CE.
    pub ce: bool,
    /// The identification of the first, where it could be seen.
    pub id: Option<u16>,
    /// What the datagrams carried, BTH to ICRC, one after the other.
    pub octets: &'a mut [u8],
    /// Octets of each datagram but the last, which may be shorter.
    pub segment: usize,
}
