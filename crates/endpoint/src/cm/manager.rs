//! A device's queue pair 1, and who drives the machine behind it.

use super::CmError;
use super::machine::{Event, Id, Machine};
use crate::clock;
use crate::completion::CompletionQueue;
use crate::device::{Device, DeviceInner, Progress};
use crate::io::sys::{self, EventFd};
use crate::memory::{Buffer, MemoryRegion};
use crate::numbers::{MANAGEMENT, random};
use crate::queue_pair::QueuePair;
#[cfg(feature = "tokio")]
use crate::waiters::Waiters;
use crate::work::{RecvWr, SendWr, WorkCompletion};
use roci_transport::{Access, CompletionKind, Status};
use roci_units::{Instant, Qpn};
use roci_wire::cm::{MAD_LEN, Q_KEY, Reject, Reply, Request, ServiceReply, ServiceRequest};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "tokio")]
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

/// Datagrams that may be on their way out.
const SENDS: usize = 64;
/// Receives that are posted: what a peer says at once that ends many connections, and is not said again once it is gone.
const RECEIVES: usize = 512;
/// The shard where queue pair 1 lives.
const SHARD: usize = 0;
/// How long what was said last is given to leave.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often the manager's thread looks up where nobody may wake it: when it is to end, and where it drives the device as well.
const SLICE: Duration = Duration::from_millis(50);

/// Connection set-up of one device. Clones are the same.
#[derive(Clone, Debug)]
pub struct ConnectionManager {
    pub(super) handle: Arc<Handle>,
}

impl ConnectionManager {
    /// Takes the device's queue pair 1, and a thread. Other devices at the address have theirs, in this process and in others.
    ///
    /// # Errors
    /// [`QueuePairError::Management`](crate::QueuePairError::Management) where another manager of this device has it.
    pub fn new(device: &Device) -> Result<Self, CmError> {
        let pd = device.alloc_pd();
        let cq = device.create_cq()?;
        let count = |slots| u32::try_from(slots).unwrap_or(u32::MAX);
        let qp = pd
            .create_qp(&cq, &cq)
            .datagrams(Q_KEY)
            .management()
            .max_send_wr(count(SENDS))
            .max_recv_wr(count(RECEIVES))
            .build()?;
        let region = pd
            .reg_mr(vec![0; (SENDS + RECEIVES) * MAD_LEN], Access::LOCAL_WRITE)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut free = Vec::new();
        for slot in 0..SENDS + RECEIVES {
            let range = slot * MAD_LEN..(slot + 1) * MAD_LEN;
            let buffer = region.buffer(range).map_err(|error| io::Error::other(error.to_string()))?;
            if slot < SENDS {
                free.push(buffer);
            } else {
                qp.post_recv(RecvWr::new(buffer)).map_err(|error| io::Error::other(error.to_string()))?;
            }
        }
        let guid = u64::from(random()) << 32 | u64::from(random());
        let mut machine = Machine::new(guid, random);
        machine.draws_at(device.inner.cells[SHARD].lock().io.slot());
        let core = Core {
            machine,
            free,
            notes: BTreeMap::new(),
            asked: BTreeMap::new(),
            queried: BTreeMap::new(),
            has_news: false,
            news: 0,
            sleeps: None,
        };
        let inner = Arc::new(Inner {
            device: device.clone(),
            qp,
            cq,
            guid,
            core: Mutex::new(core),
            changed: Condvar::new(),
            #[cfg(feature = "tokio")]
            tasks: Waiters::default(),
            stop: AtomicBool::new(false),
            wake: EventFd::new()?,
            _region: region,
        });
        let runs = inner.clone();
        let thread = crate::threads::spawn("roci-cm", move || runs.run())?;
        Ok(Self { handle: Arc::new(Handle { inner, thread: Some(thread) }) })
    }
}

/// Alive as long as a manager, a listener or a connection is.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) device: Device,
    qp: QueuePair,
    /// Of its datagrams, and where it hears that a connection's queue pair has failed.
    pub(super) cq: CompletionQueue,
    pub(super) guid: u64,
    core: Mutex<Core>,
    changed: Condvar,
    /// Tasks that wait for news.
    #[cfg(feature = "tokio")]
    tasks: Waiters,
    stop: AtomicBool,
    /// Ends the thread's sleep.
    wake: EventFd,
    /// The datagrams' memory.
    _region: MemoryRegion,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) machine: Machine,
    pub(super) free: Vec<Buffer>,
    /// What the connections' owners have not taken note of.
    pub(super) notes: BTreeMap<Id, Note>,
    /// Who listens, by service.
    pub(super) asked: BTreeMap<u64, Asked<Request>>,
    /// And for datagrams.
    pub(super) queried: BTreeMap<u64, Asked<ServiceRequest>>,
    /// There is something to tell those who wait, as soon as the lock is given back.
    has_news: bool,
    /// How often there was.
    pub(super) news: u64,
    /// Until when the manager's thread sleeps, where it does.
    sleeps: Option<Instant>,
}

/// The core, locked. When it is given back, the thread is woken if it would sleep longer than the machine may wait. Those who wait for news are woken after it was given back, as a waker may come back for it.
pub(super) struct Locked<'a> {
    inner: &'a Inner,
    core: Option<MutexGuard<'a, Core>>,
}

impl Deref for Locked<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.core.as_ref().unwrap_or_else(|| unreachable!("it is locked until it is dropped"))
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        self.core.as_mut().unwrap_or_else(|| unreachable!("it is locked until it is dropped"))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut core) = self.core.take() else { return };
        let has_news = std::mem::take(&mut core.has_news);
        core.news += u64::from(has_news);
        let is_late = core.sleeps.is_some_and(|until| core.next() < until);
        if is_late {
            core.sleeps = None;
        }
        drop(core);
        if is_late {
            self.inner.wake.signal();
        }
        if has_news {
            self.inner.changed.notify_all();
            #[cfg(feature = "tokio")]
            self.inner.tasks.wake_all();
        }
    }
}

/// A service of which the requests to this address come to this device, as long as this lives.
#[derive(Debug)]
pub(super) struct Offer {
    device: Arc<DeviceInner>,
    service: u64,
}

impl Offer {
    /// The service has not been offered at the address; `None` where another process, or another device of this one, does so.
    pub(super) fn new(device: &Device, service: u64) -> io::Result<Option<Arc<Self>>> {
        let device = device.inner.clone();
        let claimed = device.cells[SHARD].lock().io.claim_service(service);
        match claimed {
            Ok(()) => Ok(Some(Arc::new(Self { device, service }))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        self.device.cells[SHARD].lock().io.release_service(self.service);
    }
}

/// Requests for one service that nobody has looked at.
#[derive(Debug)]
pub(super) struct Asked<R> {
    pub(super) offer: Arc<Offer>,
    requests: VecDeque<(Id, IpAddr, Box<R>)>,
    /// Readable as long as there is one.
    waits: Arc<EventFd>,
}

impl<R> Asked<R> {
    pub(super) fn new(offer: Arc<Offer>, waits: Arc<EventFd>) -> Self {
        Self { offer, requests: VecDeque::new(), waits }
    }

    fn push(&mut self, id: Id, from: IpAddr, request: Box<R>) {
        if self.requests.is_empty() {
            self.waits.signal();
        }
        self.requests.push_back((id, from, request));
    }

    /// The next, for who answers it.
    pub(super) fn pop(&mut self) -> Option<(Id, IpAddr, Box<R>)> {
        let next = self.requests.pop_front()?;
        if self.requests.is_empty() {
            self.waits.clear();
        }
        Some(next)
    }

    fn withdraw(&mut self, id: Id) {
        let before = self.requests.len();
        self.requests.retain(|(asked, ..)| *asked != id);
        if before > 0 && self.requests.is_empty() {
            self.waits.clear();
        }
    }
}

/// Who is to see by a descriptor that a connection is over.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) over: Arc<EventFd>,
    /// Whether its queue pair has failed.
    pub(super) has_failed: Arc<AtomicBool>,
}

/// What has become of a connection.
#[derive(Debug, Default)]
pub(super) struct Note {
    /// Taken when it has been rung.
    pub(super) bell: Option<Bell>,
    pub(super) reply: Option<Box<Reply>>,
    /// Of a request for the datagrams of a service.
    pub(super) resolved: Option<Box<ServiceReply>>,
    pub(super) rejected: Option<Box<Reject>>,
    pub(super) is_unreachable: bool,
    pub(super) is_unanswered: bool,
    pub(super) is_established: bool,
    pub(super) is_disconnected: bool,
    /// Whether it has been over for so long that the peer says no more of it.
    pub(super) is_forgotten: bool,
    /// The queue pair that waits for the first request of a peer that has not said that it knows of it.
    pub(super) awaits: Option<Awaited>,
    /// The service that the peer asked for, until it knows our answer, or where it does not say so (of a refusal; of datagrams), until that is
    /// forgotten: it may ask again, and is to find us.
    pub(super) offer: Option<Arc<Offer>>,
}

/// A queue pair that waits for its peer's first request, and the shard where it lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub(super) qpn: Qpn,
    pub(super) shard: usize,
}

impl Note {
    /// Whether the peer has ended it, or is not heard of.
    pub(super) fn has_left(&self) -> bool {
        self.is_disconnected || self.is_unreachable || self.is_unanswered || self.rejected.is_some()
    }

    /// Rings the bell if it is time.
    pub(super) fn ring(&mut self) {
        let has_left = self.has_left();
        if let Some(bell) = self.bell.take_if(|bell| has_left || bell.has_failed.load(Ordering::SeqCst)) {
            bell.over.signal();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // What was said last is to leave, and a peer that answers slowly is not waited for.
        self.inner.stop.store(true, Ordering::SeqCst);
        self.inner.wake.signal();
        if let Some(thread) = self.thread.take()
            // A task that it has woken may have been the last that needed it, and nobody waits for himself.
            && thread.thread().id() != std::thread::current().id()
        {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Inner {
    pub(super) fn core(&self) -> Locked<'_> {
        Locked { inner: self, core: Some(self.lock()) }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something, up to `timeout`.
    pub(super) fn wait<T>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&mut Core) -> Option<T>,
    ) -> Option<T> {
        let begin = self.device.inner.passed();
        let mut core = self.lock();
        loop {
            if let Some(found) = look(&mut core) {
                return Some(found);
            }
            let left = timeout.saturating_sub(self.device.inner.passed().saturating_sub(begin));
            if left.is_zero() {
                return None;
            }
            core = self.changed.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The same without an end, for a task.
    #[cfg(feature = "tokio")]
    pub(super) async fn when<T>(&self, mut look: impl FnMut(&mut Core) -> Option<T>) -> T {
        let mut place = self.tasks.place();
        std::future::poll_fn(|task| {
            place.wait(task.waker());
            look(&mut self.lock()).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// What the manager's thread does.
    fn run(&self) {
        let (mut stopped, mut ended) = (None, Vec::new());
        loop {
            if self.stop.load(Ordering::SeqCst) {
                let passed = self.device.inner.passed();
                let since = *stopped.get_or_insert(passed);
                if passed.saturating_sub(since) >= FAREWELL || self.core().has_said_all() {
                    return;
                }
            }
            if self.rest(stopped.is_some(), &mut ended).is_err() {
                // It comes again, and is not to turn this into a busy loop.
                std::thread::sleep(SLICE);
            }
            // Together, so that many that come at once wake those who wait but once.
            self.cq.poll_into(&mut ended, RECEIVES);
            let mut core = self.core();
            let has_failed = ended.iter().any(|completion| completion.qp_num != MANAGEMENT);
            ended.drain(..).for_each(|completion| self.take(&mut core, completion));
            if has_failed {
                core.notes.values_mut().for_each(Note::ring);
            }
            core.machine.wake(self.device.inner.now());
            self.pump(&mut core);
        }
    }

    /// Waits for a datagram, the machine's next timer or who wakes us.
    fn rest(&self, is_ending: bool, ended: &mut Vec<WorkCompletion>) -> io::Result<()> {
        let until = |core: &Core| clock::until(core.next(), self.device.inner.now());
        if self.device.inner.progress == Progress::Caller {
            // The device has no thread, and what others post leaves when this one looks up.
            let timeout = until(&self.core()).map_or(SLICE, |next| next.min(SLICE));
            match self.cq.wait(timeout) {
                Ok(completion) => ended.push(completion),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                Err(error) => return Err(error),
            }
            return Ok(());
        }
        self.cq.req_notify(false);
        if self.cq.poll_into(ended, RECEIVES) > 0 {
            return Ok(());
        }
        let timeout = {
            let mut core = self.core();
            core.sleeps = Some(core.next());
            let timeout = until(&core);
            if is_ending { Some(timeout.map_or(SLICE, |next| next.min(SLICE))) } else { timeout }
        };
        self.device.inner.hand_over();
        let (cq, wake) = (self.cq.as_fd().as_raw_fd(), self.wake.as_raw_fd());
        let woken = sys::wait(&[(cq, false), (wake, false)], timeout);
        self.core().sleeps = None;
        self.wake.clear();
        // What has come is looked for anyhow.
        self.cq.wait_notify(Some(Duration::ZERO))?;
        woken.map(drop)
    }

    fn take(&self, core: &mut Core, completion: WorkCompletion) {
        if completion.qp_num != MANAGEMENT && completion.is_ok() {
            let waits = |note: &Note| note.awaits.is_some_and(|awaited| awaited.qpn == completion.qp_num);
            let id = core.notes.iter().find(|(_, note)| waits(note)).map(|(id, _)| *id);
            if let Some(id) = id {
                core.machine.begun(id);
            }
            return;
        }
        if completion.qp_num != MANAGEMENT {
            // The queue pair of a connection has failed, which those who wait for its end see for themselves.
            core.has_news = true;
            return;
        }
        if completion.opcode != CompletionKind::Recv {
            let slices = completion.into_slices().into_iter();
            core.free.extend(slices.filter_map(|slice| slice.try_into_buffer().ok()));
            return;
        }
        let (source, length) = (completion.source, completion.byte_len as usize);
        let (is_ok, status) = (completion.is_ok(), completion.status);
        let Some(buffer) = completion.into_buffer() else { return };
        if let (Some((from, _)), true, Some(octets)) = (source, is_ok, buffer.as_slice()) {
            let now = self.device.inner.now();
            core.machine.handle(now, from, &octets[..length.min(octets.len())]);
        }
        if status == Status::WorkRequestFlushed {
            // The queue pair has failed, and would give back at once whatever is posted.
            return;
        }
        // The queue was made for as many as there are buffers.
        let _ = self.qp.post_recv(RecvWr::new(buffer));
    }

    /// Sends what the machine wants sent, as far as there are buffers, and passes on what has happened. The rest leaves when buffers
    /// come back, upon which the thread looks again: many connections may end at once.
    pub(super) fn pump(&self, core: &mut Core) {
        while let Some(mut buffer) = core.free.pop() {
            let Some((to, mad)) = core.machine.poll_transmit() else {
                core.free.push(buffer);
                break;
            };
            let is_written = buffer.write(0, &mad).is_ok();
            let sent = self.qp.post_send(SendWr::datagram(buffer, to, Qpn::new(1), Q_KEY));
            if let Err(refused) = sent {
                let back = refused.request.into_slice().and_then(|slice| slice.try_into_buffer().ok());
                core.free.extend(back);
            }
            debug_assert!(is_written, "a buffer is as long as a datagram");
        }
        while let Some(event) = core.machine.poll_event() {
            core.has_news |= match event {
                // It is no news for anybody.
                Event::Forgotten(_) => false,
                Event::TimeWaitExit(id) => core.notes.contains_key(&id),
                _ => true,
            };
            match event {
                Event::Asked { id, from, request } => {
                    // Who listens no longer has rejected all that waited.
                    if let Some(asked) = core.asked.get_mut(&request.service) {
                        asked.push(id, from, request);
                    }
                }
                Event::Granted { id, reply } => {
                    if let Some(note) = core.notes.get_mut(&id) {
                        note.reply = Some(reply);
                    }
                }
                Event::Established(id) => {
                    core.note(id, |note| note.is_established = true);
                    self.forget_awaited(core, id);
                }
                Event::Rejected { id, reject } => {
                    core.withdraw(id);
                    core.note(id, |note| note.rejected = Some(reject));
                }
                Event::Unreachable(id) => {
                    core.withdraw(id);
                    core.note(id, |note| note.is_unreachable = true);
                }
                Event::Queried { id, from, request } => {
                    if let Some(queried) = core.queried.get_mut(&request.service) {
                        queried.push(id, from, request);
                    }
                }
                Event::Resolved { id, reply } => core.note(id, |note| note.resolved = Some(reply)),
                Event::Forgotten(id) => {
                    core.notes.remove(&id);
                }
                Event::Unanswered(id) => core.note(id, |note| note.is_unanswered = true),
                Event::Disconnected(id) => core.note(id, |note| note.is_disconnected = true),
                Event::TimeWaitExit(id) => core.note(id, |note| note.is_forgotten = true),
            }
        }
    }

    /// The first request of the peer need not be waited for.
    fn forget_awaited(&self, core: &mut Core, id: Id) {
        let awaited = core.notes.get_mut(&id).and_then(|note| note.awaits.take());
        if let Some(Awaited { qpn, shard }) = awaited {
            self.device.inner.cells[shard].lock().core.forget_greeting(qpn);
        }
    }

    /// Its owner has lost interest.
    pub(super) fn leave(&self, id: Id) {
        let mut core = self.core();
        self.forget_awaited(&mut core, id);
        core.notes.remove(&id);
        core.machine.disconnect(self.device.inner.now(), id);
        self.pump(&mut core);
    }
}

impl Core {
    /// When the machine's next timer ends.
    fn next(&self) -> Instant {
        self.machine.poll_timeout().unwrap_or(Instant::from_ps(u64::MAX))
    }

    /// Whether nothing is to be sent, nor on its way out: the queue pair takes with it what has not left.
    pub(super) fn has_said_all(&self) -> bool {
        !self.machine.has_to_transmit() && self.free.len() == SENDS
    }

    /// The peer does not ask any more.
    fn withdraw(&mut self, id: Id) {
        self.asked.values_mut().for_each(|waiting| waiting.withdraw(id));
        self.queried.values_mut().for_each(|waiting| waiting.withdraw(id));
    }

    fn note(&mut self, id: Id, change: impl FnOnce(&mut Note)) {
        if let Some(note) = self.notes.get_mut(&id) {
            change(note);
            if note.is_established || note.has_left() {
                note.offer = None;
            }
            note.ring();
        }
    }
}

#[cfg(test)]
mod tests;
