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
//! Datagrams have no connection, and a task waits for which queue pair takes them:
//!
//! ```no_run
//! use roci_endpoint::cm::{ConnectionManager, UDP_Q_KEY};
//! use roci_endpoint::{Device, SendWr};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?;
//! let (pd, cq) = (device.alloc_pd(), device.create_cq()?);
//! let qp = pd.create_qp(&cq, &cq).datagrams(UDP_Q_KEY).build()?;
//! let manager = ConnectionManager::new(&device)?;
//!
//! // Who waits:
//! let listener = manager.listen_datagrams(7471)?;
//! let request = listener.get_request_async().await;
//! request.accept(qp.qp_num(), UDP_Q_KEY, b"")?;
//! // Who asks:
//! let peer = manager.resolve_service_async("10.0.0.2:7471".parse()?, None, b"").await?;
//! qp.post_send(SendWr::datagram_inline(b"hello", peer.address, peer.qpn, peer.q_key))?;
//! # Ok(())
//! # }
//! ```
//!
//! The device keeps its own threads ([`Progress::Thread`](crate::Progress::Thread)), which a task relies on: with
//! [`Progress::Caller`](crate::Progress::Caller) nothing would wake it. All futures may be dropped at any time; nothing is
//! lost by that but what they waited for. Those of connection set-up run on any executor.

use crate::cm::{
    CmError, ConnParam, ConnectRequest, Connection, ConnectionManager, DatagramListener, DatagramPeer,
    DatagramRequest, Listener, Resolving,
};
use crate::completion::CompletionQueue;
use crate::event::{Event, Events};
use crate::queue_pair::QueuePair;
use crate::waiters::{Place, Waiters};
use crate::work::WorkCompletion;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::coop::poll_proceed;

/// A completion queue that tasks wait for. Several may, and each completion goes to one of them.
///
/// The descriptor has one notification, which one of the tasks takes; so all of them are known here, each looks when
/// there is one, and who takes a completion asks for the next notification if others wait still.
#[derive(Debug)]
pub struct AsyncCompletionQueue {
    ready: AsyncFd<Channel<CompletionQueue>>,
    waiting: Arc<Waiters>,
    /// Wakes all who wait.
    waker: Waker,
}

/// What has a descriptor, as tokio wants it.
#[derive(Debug)]
struct Channel<T>(T);

impl<T: AsFd> AsRawFd for Channel<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl AsyncCompletionQueue {
    /// Gives `cq` to the runtime that calls. Nobody else is to ask for its notifications from then on.
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
        let waiting = Arc::new(Waiters::default());
        Ok(Self { ready, waker: waiting.clone().into(), waiting })
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
        let mut place = self.waiting.place();
        std::future::poll_fn(|task| self.look(&mut place, task)).await
    }

    fn look(&self, place: &mut Place<'_>, task: &mut Context<'_>) -> Poll<io::Result<WorkCompletion>> {
        // Who is never made to wait lets others of the runtime go on now and then, as with all of tokio's I/O.
        let turn = std::task::ready!(poll_proceed(task));
        let cq = self.get_ref();
        loop {
            if let Some(completion) = cq.poll() {
                turn.made_progress();
                self.pass_on(place);
                return Poll::Ready(Ok(completion));
            }
            place.wait(task.waker());
            cq.req_notify(false);
            if let Some(completion) = cq.poll() {
                turn.made_progress();
                self.pass_on(place);
                return Poll::Ready(Ok(completion));
            }
            cq.hand_over();
            match self.ready.poll_read_ready(&mut Context::from_waker(&self.waker)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ready) => {
                    let mut ready = ready?;
                    cq.take_notification();
                    ready.clear_ready();
                }
            }
        }
    }

    /// Leaves with a completion, whose notification was perhaps the one that others wait for.
    fn pass_on(&self, place: &mut Place<'_>) {
        place.leave();
        if self.waiting.is_empty() {
            return;
        }
        let cq = self.get_ref();
        cq.req_notify(false);
        if !cq.is_empty() {
            self.waiting.wake_all();
        }
    }
}

/// The asynchronous events of a device, for which tasks wait. Several may, and each event goes to one of them.
#[derive(Debug)]
pub struct AsyncEvents {
    ready: AsyncFd<Channel<Events>>,
}

impl AsyncEvents {
    /// Gives `events` to the runtime that calls.
    ///
    /// # Errors
    /// What the operating system says.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, as all of tokio's I/O does.
    pub fn new(events: Events) -> io::Result<Self> {
        // SAFETY: the descriptor is the device's, one and the same for as long as `Channel` keeps it.
        #[expect(unsafe_code, reason = "see above")]
        let ready = unsafe { AsyncFd::register_with_interest(Channel(events), Interest::READABLE)? };
        Ok(Self { ready })
    }

    /// The events, to be looked for without waiting.
    pub fn get_ref(&self) -> &Events {
        &self.ready.get_ref().0
    }

    /// The oldest event, as soon as there is one.
    ///
    /// # Errors
    /// What the operating system says, or the runtime when it ends.
    pub async fn poll(&self) -> io::Result<Event> {
        loop {
            self.get_ref().hand_over();
            let mut ready = self.ready.readable().await?;
            if let Some(event) = self.get_ref().poll() {
                return Ok(event);
            }
            // An event that has come since then makes it ready again.
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

    /// As [`resolve_service`](Self::resolve_service), and waits for the answer. Where the future is dropped, it is given up.
    ///
    /// # Errors
    /// As there, and as [`Resolving::wait`].
    pub async fn resolve_service_async(
        &self,
        to: SocketAddr,
        from: Option<u16>,
        private_data: &[u8],
    ) -> Result<DatagramPeer, CmError> {
        self.resolve_service(to, from, private_data)?.answered_async().await
    }
}

impl Resolving {
    /// As [`wait`](Self::wait), for as long as it takes. A future that is dropped loses nothing: what was asked for may be waited for
    /// again.
    ///
    /// # Errors
    /// As there.
    pub async fn answered_async(&mut self) -> Result<DatagramPeer, CmError> {
        self.answered().await
    }
}

impl DatagramListener {
    /// As [`get_request`](Self::get_request), for as long as it takes.
    pub async fn get_request_async(&self) -> DatagramRequest {
        self.asked().await
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
    /// Waits until it [is over](Self::is_disconnected): the peer has ended it, or has agreed that we did, or its queue pair is in the
    /// error state.
    pub async fn disconnected_async(&self) {
        self.over().await;
    }
}
