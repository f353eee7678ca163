//! For programs on tokio: completions and connection set-up that tasks wait for, in place of threads.
//!
//! ```no_run
//! use roci_endpoint::asynchronous::AsyncCompletionQueue;
//! use roci_endpoint::cm::{ConnParam, ConnectionManager};
//! use roci_endpoint::{Device, SendWr};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?;
//! let (pd, cq) = (device.alloc_pd(), AsyncCompletionQueue::new(device.create_cq()?)?);
//! let qp = pd.create_qp(cq.get_ref(), cq.get_ref()).build()?;
//! let manager = ConnectionManager::new(&device)?;
//! let connection = manager.connect_async(&qp, "10.0.0.2:7471".parse()?, &ConnParam::default()).await?;
//! qp.post_send(SendWr::send_inline(b"hello"))?;
//! assert!(cq.poll().await?.is_ok());
//! # drop(connection);
//! # Ok(())
//! # }
//! ```
//!
//! The device keeps its own threads ([`Progress::Thread`](crate::Progress::Thread)), which a task relies on: with
//! [`Progress::Caller`](crate::Progress::Caller) nothing would wake it. All futures may be dropped at any time; nothing is
//! lost by that but what they waited for. Those of connection set-up run on any executor.

use crate::cm::{CmError, ConnParam, ConnectRequest, Connection, ConnectionManager, Listener};
use crate::completion::CompletionQueue;
use crate::queue_pair::QueuePair;
use crate::work::WorkCompletion;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A completion queue that tasks wait for. Several may, and each completion goes to one of them.
#[derive(Debug)]
pub struct AsyncCompletionQueue {
    ready: AsyncFd<Channel>,
}

/// A completion queue as tokio wants it.
#[derive(Debug)]
struct Channel(CompletionQueue);

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl AsyncCompletionQueue {
    /// Gives `cq` to the runtime that calls. Nobody is to ask for notifications or wait by other means from then on.
    ///
    /// # Errors
    /// What the operating system says.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, as all of tokio's I/O does.
    pub fn new(cq: CompletionQueue) -> io::Result<Self> {
        // SAFETY: the queue owns its descriptor, which is one and the same for as long as a clone of the queue lives, and
        // `Channel` is such a clone.
        #[expect(unsafe_code, reason = "see above")]
        let ready = unsafe { AsyncFd::register_with_interest(Channel(cq), Interest::READABLE)? };
        Ok(Self { ready })
    }

    /// The queue, to make queue pairs with.
    pub fn get_ref(&self) -> &CompletionQueue {
        &self.ready.get_ref().0
    }

    /// The oldest completion, as soon as there is one.
    ///
    /// # Errors
    /// What the operating system says, or the runtime when it ends.
    pub async fn poll(&self) -> io::Result<WorkCompletion> {
        let cq = self.get_ref();
        loop {
            if let Some(completion) = cq.poll() {
                return Ok(completion);
            }
            cq.req_notify(false);
            if let Some(completion) = cq.poll() {
                return Ok(completion);
            }
            cq.hand_over();
            let mut ready = self.ready.readable().await?;
            cq.take_notification();
            ready.clear_ready();
        }
    }
}

impl ConnectionManager {
    /// As [`connect`](Self::connect), without a thread that waits.
    ///
    /// # Errors
    /// As there.
    pub async fn connect_async(
        &self,
        qp: &QueuePair,
        to: SocketAddr,
        param: &ConnParam,
    ) -> Result<Connection, CmError> {
        self.request(qp, to, param)?.answered(qp).await
    }
}

impl Listener {
    /// As [`get_request`](Self::get_request), for as long as it takes.
    ///
    /// # Errors
    /// None at present.
    pub async fn get_request_async(&self) -> Result<ConnectRequest, CmError> {
        Ok(self.asked().await)
    }
}

impl ConnectRequest {
    /// [Accepts](Self::accept), and waits until the peer knows.
    ///
    /// # Errors
    /// As `accept`, and as [`wait_established`](Connection::wait_established).
    pub async fn accept_async(self, qp: &QueuePair, param: &ConnParam) -> Result<Connection, CmError> {
        let connection = self.accept(qp, param)?;
        connection.established().await?;
        Ok(connection)
    }
}

impl Connection {
    /// Waits until the peer has ended it, or has agreed that we did.
    pub async fn disconnected_async(&self) {
        self.over().await;
    }
}
