//! Connection set-up: RDMA-CM's `listen`, `connect`, `accept` and `reject`, by datagrams on queue pair 1.
//!
//! ```no_run
//! use roci_endpoint::cm::{ConnectionManager, ConnParam};
//! use roci_endpoint::Device;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?;
//! let pd = device.alloc_pd();
//! let cq = device.create_cq()?;
//! let manager = ConnectionManager::new(&device)?;
//!
//! // Who waits:
//! let listener = manager.listen(7471)?;
//! if let Some(request) = listener.get_request(Duration::from_secs(60))? {
//!     let qp = pd.create_qp(&cq, &cq).build()?;
//!     let connection = request.accept(&qp, &ConnParam::default())?;
//!     connection.wait_established(Duration::from_secs(10))?;
//! }
//! // Who asks:
//! let qp = pd.create_qp(&cq, &cq).build()?;
//! let connection = manager.connect(&qp, "10.0.0.2:7471".parse()?, &ConnParam::default())?;
//! connection.disconnect();
//! # Ok(())
//! # }
//! ```
//!
//! Datagrams need no connection, and who sends them has to know a queue pair and its key: [`ConnectionManager::resolve_service`] asks who has
//! called [`ConnectionManager::listen_datagrams`]. Ports for connections and for datagrams are apart, as those of TCP and UDP.
//!
//! A device has one manager. Devices at one address have queue pair 1 together, in whatever processes they are: each hears what concerns its
//! connections, and its ports, at each of which one of them listens. A queue pair with another header layout than the
//! standard one is offered as such in the private data; who accepts must have made its queue pair with the layout that the
//! request names ([`ConnectRequest::layout`]), and a peer that does not know it is not connected to.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`machine`] | the protocol: states, retries, duplicates, without I/O |
//! | `manager` | queue pair 1 and the thread that drives the machine |
//! | `news` | one wait for whatever happens |
//! | `connecting` | who asks |
//! | `listener` | who is asked |
//! | `connection` | what both have then |
//! | `datagrams` | which queue pair takes the datagrams of a service |
//! | `parameters` | what the ends say of themselves, and what becomes of a queue pair by it |

mod connecting;
mod connection;
mod datagrams;
mod listener;
pub mod machine;
mod manager;
mod news;
mod parameters;

pub use connecting::Connecting;
pub use connection::Connection;
pub use datagrams::{DatagramListener, DatagramPeer, DatagramRequest, Resolving, UDP_Q_KEY};
pub use listener::{ConnectRequest, Listener};
pub use manager::ConnectionManager;
pub use parameters::{ConnParam, Terms};

use crate::device::Mtu;
use crate::queue_pair::QueuePairError;
use roci_transport::Service;
use roci_units::Qpn;
use roci_wire::{Layout, cm};
use std::io;
use std::net::SocketAddr;

/// Why there is no connection.
#[derive(thiserror::Error)]
pub enum CmError {
    /// The peer did not answer, or its last word was lost.
    #[error("{0} does not answer: nobody there speaks RDMA-CM, or the way is blocked (UDP port 4791)")]
    Unreachable(SocketAddr),
    /// The peer has heard us, but nobody accepts or rejects what was asked for there.
    #[error(
        "{0} listens, but nobody there accepted or rejected the connection: its program asks for no requests at present"
    )]
    Unanswered(SocketAddr),
    /// The peer refused.
    #[error("{peer} rejected the connection: {} (reason {reason})", cm::reason::text(*.reason))]
    Rejected {
        /// Who.
        peer: SocketAddr,
        /// Why, as IBTA numbers the reasons (Vol 1 §12.6.7.2).
        reason: u16,
        /// What its user adds.
        private_data: Vec<u8>,
    },
    /// No queue pair of the peer takes the datagrams that were asked for.
    #[error("{peer} has no queue pair for these datagrams: {} (status {status})", cm::status::text(*.status))]
    Unresolved {
        /// Who.
        peer: SocketAddr,
        /// Why, as IBTA numbers it (Vol 1 §12.11.2.1).
        status: u8,
        /// What its user adds.
        private_data: Vec<u8>,
    },
    /// We rejected what the peer asked for: its path MTU is more than our link takes, or none that there is.
    #[error("{}, and our link takes at most {}", mtu_of(*.asked), .most.octets())]
    Mtu {
        /// What it asked for.
        asked: Option<Mtu>,
        /// The most that our link takes.
        most: Mtu,
    },
    /// It does not exist any more.
    #[error("the connection was given up meanwhile")]
    Gone,
    /// The peer's queue pair has another header layout than ours.
    #[error("the peer's header layout is {0:?}, ours is another")]
    Layout(Layout),
    /// The peer's queue pair is of another service than ours; we rejected what it asked for.
    #[error("the peer's queue pair is of service {}, ours of another", .0.name())]
    Service(Service),
    /// Somebody listens at the port of this address, in this process or another.
    #[error("port {0} is listened at already")]
    InUse(u16),
    /// More private data than there is room for.
    #[error("more private data than {0} octets")]
    PrivateData(usize),
    /// The answer is waited for with another queue pair than was asked for.
    #[error("queue pair {asked:#08x} was asked for, and {given:#08x} is to be connected")]
    Another {
        /// The queue pair that the peer was told of.
        asked: Qpn,
        /// The other one.
        given: Qpn,
    },
    /// The queue pair does not do.
    #[error(transparent)]
    QueuePair(#[from] QueuePairError),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

speaks!(CmError);

fn mtu_of(asked: Option<Mtu>) -> String {
    asked.map_or("it names no path MTU".to_owned(), |mtu| format!("its path MTU is {}", mtu.octets()))
}
