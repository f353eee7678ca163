//! Asynchronous events: what happens to queues besides the ends of requests (`ibv_get_async_event`, IBTA Vol 1 §11.6.3).
//!
//! ```no_run
//! use roci_endpoint::{Device, Event};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open("10.0.0.1".parse()?)?;
//! let events = device.events()?;
//! let srq = device.alloc_pd().create_srq(1000);
//! srq.set_limit(100)?;
//! match events.wait(Duration::from_secs(10))? {
//!     Event::SrqLimitReached(number) if number == srq.srq_num() => println!("post more receives"),
//!     event => println!("{event:?}"),
//! }
//! # Ok(())
//! # }
//! ```

use crate::device::{Device, DeviceInner, Progress};
use crate::io::sys::EventFd;
use crate::numbers::{inner, place_of};
use crate::shard::Core;
use roci_transport::{Incident, QpState};
use roci_units::Qpn;
use roci_wire::NakCode;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something that happened to a queue or to the device (`ibv_event_type`).
///
/// What verbs have besides does not happen here: a completion queue never overruns, no queue pair fails so that its completions
/// cannot be told (`IBV_EVENT_QP_FATAL`), and there are no alternate paths, no subnet manager and no port that tells of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The first packet of a request has come for a queue pair in RTR, which may go to RTS (`IBV_EVENT_COMM_EST`).
    Established(Qpn),
    /// The queue pair is in SQD, and all requests that had begun have ended (`IBV_EVENT_SQ_DRAINED`).
    SendQueueDrained(Qpn),
    /// The queue pair has failed because its peer asked for memory by a key, at an address or with a right that does not fit
    /// (`IBV_EVENT_QP_ACCESS_ERR`).
    AccessError(Qpn),
    /// The queue pair has failed by a request that is malformed or that it cannot carry out, and no receive request ended with an
    /// error that says so (`IBV_EVENT_QP_REQ_ERR`).
    RequestError(Qpn),
    /// A queue pair with a shared receive queue is in the error state and has taken its last request from there: all that it had
    /// have ended in its completion queue (`IBV_EVENT_QP_LAST_WQE_REACHED`).
    LastReceiveReached(Qpn),
    /// Fewer receive requests stand in the shared receive queue of this [number](crate::SharedReceiveQueue::srq_num) than its
    /// [limit](crate::SharedReceiveQueue::set_limit) (`IBV_EVENT_SRQ_LIMIT_REACHED`).
    SrqLimitReached(u32),
    /// The device's clock has come to its end, after 213 days, and all queue pairs have failed (`IBV_EVENT_DEVICE_FATAL`).
    DeviceFatal,
}

/// What has happened and nobody has taken. A device has one, from the first call of [`Device::events`] on.
#[derive(Debug)]
pub(crate) struct EventQueue {
    queue: Mutex<VecDeque<Event>>,
    /// Readable while there is any.
    ready: EventFd,
    /// Whether the end of the device's time has been told.
    has_ended: AtomicBool,
}

impl EventQueue {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { queue: Mutex::default(), ready: EventFd::new()?, has_ended: AtomicBool::new(false) })
    }

    /// Nobody who has this takes another lock meanwhile.
    fn queue(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: Event) {
        let mut queue = self.queue();
        queue.push_back(event);
        if queue.len() == 1 {
            self.ready.signal();
        }
    }

    /// The device's time is over, as one of its shards has found.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            self.push(Event::DeviceFatal);
        }
    }

    fn pop(&self) -> Option<Event> {
        let mut queue = self.queue();
        let first = queue.pop_front()?;
        if queue.is_empty() {
            self.ready.clear();
        }
        Some(first)
    }

    /// Forgets those of a queue that is gone, whose number another may have.
    pub(crate) fn forget(&self, is_gone: impl Fn(Event) -> bool) {
        let mut queue = self.queue();
        let before = queue.len();
        queue.retain(|event| !is_gone(*event));
        if queue.is_empty() && before > 0 {
            self.ready.clear();
        }
    }
}

impl Core {
    /// Deals with what has happened to a queue besides the end of a request.
    #[cold]
    pub(crate) fn meet_with(&mut self, incident: Incident) {
        let (qpn, event): (_, fn(Qpn) -> Event) = match incident {
            Incident::Failed(qpn) => {
                self.tell_failure(place_of(qpn));
                match self.entries.get(place_of(qpn) as usize) {
                    Some(Some(entry)) if entry.shares => (qpn, Event::LastReceiveReached),
                    _ => return,
                }
            }
            Incident::Established(qpn) => (qpn, Event::Established),
            Incident::Refused(qpn, NakCode::RemoteAccessError) => (qpn, Event::AccessError),
            Incident::Refused(qpn, _) => (qpn, Event::RequestError),
            Incident::SharedLow(srq) => {
                let number = self.shared_numbers.get(srq.0 as usize);
                if let (Some(events), Some(&number)) = (&self.events, number) {
                    events.push(Event::SrqLimitReached(number));
                }
                return;
            }
        };
        if let (Some(_), Some(Some(entry))) = (&self.events, self.entries.get(place_of(qpn) as usize)) {
            self.reached.push(event(entry.qpn));
        }
    }

    /// The queue pair at `place` has come into SQD.
    pub(crate) fn drains(&mut self, place: u32) {
        // Who says so again before that is told once.
        if self.events.is_some() && !self.draining.contains(&place) {
            self.draining.push(place);
        }
    }

    /// Tells what has happened, once the completions that came before it have been delivered.
    #[cold]
    pub(crate) fn tell_events(&mut self) {
        let Some(events) = &self.events else { return };
        self.reached.drain(..).for_each(|event| events.push(event));
        let (engine, entries) = (&self.engine, &self.entries);
        self.draining.retain(|&place| {
            let Some(Some(entry)) = entries.get(place as usize) else { return false };
            let Ok(status) = engine.query(inner(place)) else { return false };
            if status.state == QpState::SendQueueDrained && !status.sq_draining {
                events.push(Event::SendQueueDrained(entry.qpn));
            }
            status.sq_draining
        });
    }
}

impl Event {
    /// The queue pair that it is of, if it is of one.
    pub fn qp_num(self) -> Option<Qpn> {
        match self {
            Self::Established(qpn)
            | Self::SendQueueDrained(qpn)
            | Self::AccessError(qpn)
            | Self::RequestError(qpn)
            | Self::LastReceiveReached(qpn) => Some(qpn),
            Self::SrqLimitReached(_) | Self::DeviceFatal => None,
        }
    }
}

/// The events of a device. Clones, and what other calls of [`Device::events`] gave, are the same: each event goes to one who looks.
///
/// Nothing is told of what happened before the first call, or of a queue that is gone: its events are forgotten when it is dropped,
/// so none has to be acknowledged, as those of verbs have. They are kept until they are taken; a queue pair or a shared receive queue
/// has a few at most, however often its peer asks for the impossible.
#[derive(Clone, Debug)]
pub struct Events {
    queue: Arc<EventQueue>,
    device: Arc<DeviceInner>,
}

impl Device {
    /// The asynchronous events of this device, from the first such call on.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn events(&self) -> io::Result<Events> {
        Ok(Events { queue: self.inner.listen()?, device: self.inner.clone() })
    }
}

impl Events {
    /// The oldest event, if there is any. With [`Progress::Caller`] looking for one lets the device go on.
    pub fn poll(&self) -> Option<Event> {
        self.queue.pop().or_else(|| {
            if self.device.progress != Progress::Caller {
                return None;
            }
            self.device.progress();
            self.queue.pop()
        })
    }

    /// Waits for an event, blocked. Several threads may at once, and each event ends the wait of one.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when none came within `timeout`; what the operating system says otherwise.
    pub fn wait(&self, timeout: Duration) -> io::Result<Event> {
        let end = self.device.passed().checked_add(timeout);
        loop {
            if let Some(event) = self.poll() {
                return Ok(event);
            }
            let now = self.device.passed();
            if end.is_some_and(|end| now >= end) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.device.block(self.queue.ready.as_raw_fd(), end.map(|end| end.saturating_sub(now)))?;
        }
    }

    /// Leaves the device to its threads, before somebody waits by the descriptor.
    #[cfg(feature = "tokio")]
    pub(crate) fn hand_over(&self) {
        self.device.hand_over();
    }
}

/// Readable while an event waits to be taken. With [`Progress::Caller`] the device makes no progress while a program waits for that
/// alone, and [`wait`](Events::wait) is the call.
impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.ready.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::device::{Backend, DeviceConfig};
    use crate::io::MemoryWire;

    #[test]
    fn a_device_whose_time_is_over_says_so_once_and_that_its_shared_queues_are_left() {
        let backend = Backend::Memory(MemoryWire::new(1));
        let config = DeviceConfig { backend, progress: Progress::Caller, ..DeviceConfig::default() };
        let device = Device::open_by([10, 0, 0, 1].into(), config, Clock::over()).unwrap();
        let (pd, cq, events) = (device.alloc_pd(), device.create_cq().unwrap(), device.events().unwrap());
        let srq = pd.create_srq(1);
        let _plain = pd.create_qp(&cq, &cq).build().unwrap();
        let shares = pd.create_qp(&cq, &cq).srq(&srq).build().unwrap();
        let told: Vec<Event> = std::iter::from_fn(|| events.poll()).collect();
        assert_eq!(told, [Event::DeviceFatal, Event::LastReceiveReached(shares.qp_num())]);
    }
}
