//! Completion queues: polled, or waited for.

use crate::clock::Clock;
use crate::device::DeviceInner;
use crate::io::sys::{self, EventFd};
use crate::moderation::Moderation;
use crate::work::WorkCompletion;
use roci_units::Qpn;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Where the ends of work requests are told. Clones are the same queue.
///
/// It belongs to no shard, and grows as it has to: it never overflows, and nothing bounds it. A request's place in its queue is free
/// again as soon as it is done, not when its completion has been polled. So who posts on and does not poll has ever more of them here,
/// each of about a hundred octets and with what its request lent, which goes back to its region only when the completion is dropped:
/// in the end memory is short, or no buffer is left to be lent. Poll for what you post, or post it
/// [`unsignaled`](crate::SendWr::unsignaled), which makes no completion unless it fails.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    pub(crate) inner: Arc<CqInner>,
    device: Arc<DeviceInner>,
}

#[derive(Debug)]
pub(crate) struct CqInner {
    /// By which completions say when they are told, where somebody asked for that.
    clock: Option<Clock>,
    queue: Mutex<VecDeque<WorkCompletion>>,
    /// Its length, to be looked at without the lock.
    length: AtomicUsize,
    armed: AtomicU8,
    /// Whether notifications may be held back,
    is_moderated: AtomicBool,
    /// and what does that, since it was first asked for.
    moderation: OnceLock<Moderation>,
    event: EventFd,
    /// Threads that are blocked in [`CompletionQueue::wait`], or about to be.
    blocked: AtomicUsize,
    /// Whether they want to be woken.
    awaited: AtomicBool,
    /// What wakes them, since somebody waited first. It is not the notification, which they would take from who asked for that.
    wake: OnceLock<EventFd>,
}

/// Nobody wants to be notified, anybody, or of solicited events and errors alone.
const IDLE: u8 = 0;
const ANY: u8 = 1;
const SOLICITED: u8 = 2;

impl CqInner {
    fn queue(&self) -> MutexGuard<'_, VecDeque<WorkCompletion>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, mut completion: WorkCompletion) {
        let urgent = completion.solicited || !completion.is_ok();
        let mut queue = self.queue();
        // With the lock, so that times in one queue never go back.
        if let Some(clock) = &self.clock {
            completion.time_ns = u64::try_from(clock.passed().as_nanos()).unwrap_or(u64::MAX).max(1);
        }
        queue.push_back(completion);
        self.length.store(queue.len(), Ordering::Release);
        drop(queue);
        let mut armed = self.armed.load(Ordering::SeqCst);
        let is_wanted = |armed| armed == ANY || armed == SOLICITED && urgent;
        if is_wanted(armed) && (!self.is_moderated.load(Ordering::Relaxed) || self.is_due()) {
            while is_wanted(armed) {
                match self.armed.compare_exchange(armed, IDLE, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(_) => {
                        self.event.signal();
                        break;
                    }
                    // Asked for again meanwhile, or somebody else has told.
                    Err(now) => armed = now,
                }
            }
        }
        if self.awaited.load(Ordering::SeqCst) && self.awaited.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Whether a notification is due, as enough completions have come for one.
    #[cold]
    fn is_due(&self) -> bool {
        self.moderation.get().is_none_or(Moderation::tells)
    }

    /// Tells of completions that were held back.
    pub(crate) fn notify(&self) {
        if self.armed.swap(IDLE, Ordering::SeqCst) != IDLE {
            self.event.signal();
        }
    }

    /// Between setting a flag that has [`push`](Self::push) tell of what comes, and looking for what came before.
    ///
    /// Who pushes changes the queue and then reads the flags; who waits sets a flag and then reads the queue's length. Were these
    /// loads and stores alone, both might read what was there before the other's store, whatever `Acquire` and `Release` say of them
    /// (on ARM they do), and a completion would lie there while somebody sleeps. The lock leaves two cases. A push that
    /// had it before this left its length to whoever has it later. One that has it after this reads the flags later still, and
    /// finds this one set, or somebody else has been told since it was. So `push`, which is for each completion, needs no barrier of its own.
    fn settle(&self) {
        drop(self.queue());
    }

    /// Wakes those who are blocked, who look for themselves.
    fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake.signal();
        }
    }

    fn pop(&self) -> Option<WorkCompletion> {
        if self.length.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = self.queue();
        let first = queue.pop_front();
        self.length.store(queue.len(), Ordering::Release);
        first
    }
}

impl CompletionQueue {
    pub(crate) fn new(device: Arc<DeviceInner>, clock: Option<Clock>) -> io::Result<Self> {
        let inner = CqInner {
            clock,
            queue: Mutex::default(),
            length: AtomicUsize::new(0),
            armed: AtomicU8::new(IDLE),
            is_moderated: AtomicBool::new(false),
            moderation: OnceLock::new(),
            event: EventFd::new()?,
            blocked: AtomicUsize::new(0),
            awaited: AtomicBool::new(false),
            wake: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner), device })
    }

    /// Whether it was made from this device, which goes on while somebody looks for completions.
    pub(crate) fn is_of(&self, device: &Arc<DeviceInner>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    /// The oldest completion, if there is any. Looking for one lets the device make progress.
    pub fn poll(&self) -> Option<WorkCompletion> {
        self.inner.pop().or_else(|| {
            self.device.progress();
            self.inner.pop()
        })
    }

    /// Moves up to `count` completions to the end of `to`; gives how many.
    pub fn poll_into(&self, to: &mut Vec<WorkCompletion>, count: usize) -> usize {
        if self.inner.length.load(Ordering::Acquire) == 0 {
            self.device.progress();
        }
        let mut queue = self.inner.queue();
        let count = count.min(queue.len());
        to.extend(queue.drain(..count));
        self.inner.length.store(queue.len(), Ordering::Release);
        count
    }

    /// Completions that have come and not been polled.
    pub fn len(&self) -> usize {
        self.inner.length.load(Ordering::SeqCst)
    }

    /// Whether there is nothing to be polled at the moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops what is here of a queue pair that is gone: for programs that expect to hear no more of it, as those of libibverbs do.
    pub fn forget(&self, qp_num: Qpn) {
        let mut queue = self.inner.queue();
        queue.retain(|completion| completion.qp_num != qp_num);
        self.inner.length.store(queue.len(), Ordering::Release);
    }

    /// Waits for a completion: first spinning, as long as the device is set to, then blocked. Several threads may wait at once, and
    /// each completion ends the wait of one. Notifications that others [asked for](Self::req_notify) are left to those.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when none came within `timeout`; what the operating system says otherwise.
    pub fn wait(&self, timeout: Duration) -> io::Result<WorkCompletion> {
        let begin = self.device.passed();
        let (end, spin) = (begin.checked_add(timeout), begin.saturating_add(self.device.spin()));
        loop {
            if let Some(completion) = self.poll() {
                self.pass_on();
                return Ok(completion);
            }
            let now = self.device.passed();
            if end.is_some_and(|end| now >= end) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if now < spin {
                self.device.pause();
                continue;
            }
            let wake = self.wake()?;
            self.inner.blocked.fetch_add(1, Ordering::SeqCst);
            self.inner.awaited.store(true, Ordering::SeqCst);
            self.inner.settle();
            let found = self.poll();
            let blocked = if found.is_some() {
                Ok(())
            } else {
                self.block(wake, end.map(|end| end.saturating_sub(now)))
            };
            self.inner.blocked.fetch_sub(1, Ordering::SeqCst);
            self.pass_on();
            blocked?;
            if let Some(completion) = found {
                return Ok(completion);
            }
        }
    }

    /// Sleeps until somebody is woken, and takes that.
    fn block(&self, wake: &EventFd, left: Option<Duration>) -> io::Result<()> {
        self.device.block(wake.as_raw_fd(), left)?;
        wake.clear();
        Ok(())
    }

    /// What wakes those who are blocked.
    fn wake(&self) -> io::Result<&EventFd> {
        if let Some(wake) = self.inner.wake.get() {
            return Ok(wake);
        }
        let made = EventFd::new()?;
        Ok(self.inner.wake.get_or_init(|| made))
    }

    /// Whoever leaves a wait may have been woken in the place of others, who wait still.
    fn pass_on(&self) {
        if self.inner.blocked.load(Ordering::SeqCst) > 0 {
            self.inner.awaited.store(true, Ordering::SeqCst);
            self.inner.settle();
            if self.inner.length.load(Ordering::SeqCst) > 0 {
                self.inner.wake();
            }
        }
    }

    /// Asks for one notification at the next completion, or the next that is a solicited event or an error: the
    /// descriptor of [`AsFd`] becomes readable then. Poll once more after asking, for what came before. Who asks for solicited events
    /// while somebody waits for any completion takes nothing from that one, and both are told of the next.
    pub fn req_notify(&self, solicited_only: bool) {
        if solicited_only {
            let _ = self.inner.armed.compare_exchange(IDLE, SOLICITED, Ordering::SeqCst, Ordering::SeqCst);
        } else {
            self.inner.armed.store(ANY, Ordering::SeqCst);
        }
        self.inner.settle();
        self.device.send_waiting();
    }

    /// Holds notifications back: each that is [asked for](Self::req_notify) comes when `count` completions that it is of have come
    /// since, or the first of them is as old as `period`, to about a tenth of a millisecond. So who handles them is woken less often, and hears of them
    /// later. With a count of 0 or 1, or a period of zero, none is held back, as at first; what is held when that changes is told of at
    /// once. [`wait`](Self::wait) goes on ending at the first completion.
    ///
    /// # Errors
    /// What the operating system says of the thread that minds the time, which is made when this is first asked for.
    pub fn moderate(&self, count: u16, period: Duration) -> io::Result<()> {
        let is_moderated = count > 1 && !period.is_zero();
        if self.inner.moderation.get().is_none() && is_moderated {
            let made = Moderation::new(Arc::downgrade(&self.inner))?;
            // Where another thread was faster, that one's holds.
            let _ = self.inner.moderation.set(made);
        }
        let Some(moderation) = self.inner.moderation.get() else { return Ok(()) };
        self.inner.is_moderated.store(is_moderated, Ordering::SeqCst);
        if moderation.set(if is_moderated { count.into() } else { 0 }, period) {
            self.inner.notify();
        }
        Ok(())
    }

    /// Waits for a notification that was asked for, and takes it. Without [`Progress::Thread`](crate::Progress::Thread)
    /// the device makes no progress meanwhile, and [`wait`](Self::wait) is the call.
    ///
    /// # Errors
    /// What the operating system says; a timeout gives `false`.
    pub fn wait_notify(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.device.hand_over();
        let notified = sys::wait(&[(self.inner.event.as_raw_fd(), false)], timeout)?;
        Ok(self.inner.event.clear() || notified)
    }

    /// Takes one notification, if there is any: who asked twice, as the first had been given already, takes two, as programs that count
    /// them expect (`ibv_get_cq_event`). [`wait_notify`](Self::wait_notify) takes all that are there.
    pub fn take_notify(&self) -> bool {
        self.inner.event.take()
    }
}

#[cfg(feature = "tokio")]
impl CompletionQueue {
    /// Leaves the device to its threads, before somebody waits for a notification.
    pub(crate) fn hand_over(&self) {
        self.device.hand_over();
    }

    /// Takes the notification, if there is one.
    pub(crate) fn take_notification(&self) {
        self.inner.event.clear();
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.event.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceConfig;
    use crate::io::MemoryWire;
    use crate::pair::{End, pair};
    use crate::work::{RecvWr, SendWr};

    fn threads() -> [End; 2] {
        let progress = DeviceConfig::default().progress;
        pair(&MemoryWire::new(1), progress, |qp| qp)
    }

    #[test]
    fn who_waits_takes_no_notification_that_another_asked_for() {
        let [End { qp: from, .. }, End { qp: to, cq, .. }] = threads();
        let is_notified = |timeout| cq.wait_notify(Some(Duration::from_millis(timeout))).unwrap();
        // A completion that another thread waits for, and is blocked when it comes.
        let waited_for = |request: SendWr| {
            to.post_recv(RecvWr::empty()).unwrap();
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| cq.wait(Duration::from_secs(20)).expect("it comes"));
                while cq.inner.blocked.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(20));
                from.post_send(request).unwrap();
                drop(waits.join().unwrap());
            });
        };
        let plain = || SendWr::send_inline(&[]);
        cq.req_notify(false);
        waited_for(plain());
        assert!(is_notified(10_000), "the other took it");
        cq.req_notify(true);
        waited_for(plain());
        assert!(!is_notified(20), "of a solicited event it was to be");
        waited_for(plain().solicited());
        assert!(is_notified(10_000), "the other asked for all");
        waited_for(plain());
        assert!(!is_notified(20), "nobody asked for it");
        cq.req_notify(false);
        cq.req_notify(true);
        waited_for(plain());
        assert!(is_notified(10_000), "any was asked for, and not taken back");
    }

    #[test]
    fn notifications_can_be_taken_one_by_one_or_all_together() {
        let [near, far] = threads();
        for takes_all in [false, true] {
            for _ in 0..3 {
                far.cq.req_notify(false);
                far.qp.post_recv(RecvWr::empty()).unwrap();
                near.qp.post_send(SendWr::send_inline(&[])).unwrap();
                far.cq.wait(Duration::from_secs(20)).unwrap();
            }
            let mut left = 3;
            if takes_all {
                assert!(far.cq.wait_notify(Some(Duration::ZERO)).unwrap());
                left = 0;
            }
            assert_eq!((0..5).filter(|_| far.cq.take_notify()).count(), left);
        }
    }

    #[test]
    fn a_notification_is_held_back_for_as_many_completions_or_for_as_long_as_was_said() {
        let [near, far] = threads();
        let cq = &far.cq;
        let come = |count: usize| {
            let before = cq.inner.length.load(Ordering::SeqCst);
            for _ in 0..count {
                far.qp.post_recv(RecvWr::empty()).unwrap();
                near.qp.post_send(SendWr::send_inline(&[])).unwrap();
            }
            while cq.inner.length.load(Ordering::SeqCst) < before + count {
                std::thread::yield_now();
            }
        };
        let is_told = |millis| cq.wait_notify(Some(Duration::from_millis(millis))).unwrap();
        let hour = Duration::from_secs(3_600);
        cq.moderate(4, hour).unwrap();
        for _ in 0..2 {
            cq.req_notify(false);
            come(3);
            assert!(!is_told(30), "three have come of four");
            come(1);
            assert!(is_told(10_000));
        }
        // One that is not asked for is none to be held.
        come(4);
        assert!(!is_told(30));
        let period = Duration::from_millis(60);
        cq.moderate(100, period).unwrap();
        for _ in 0..2 {
            cq.req_notify(false);
            let begin = far.device.inner.passed();
            come(1);
            assert!(is_told(10_000));
            assert!(far.device.inner.passed() - begin >= period, "it was held back");
        }
        cq.moderate(100, hour).unwrap();
        cq.req_notify(false);
        come(2);
        cq.moderate(0, hour).unwrap();
        assert!(is_told(10_000), "two waited when moderation ended");
        cq.req_notify(false);
        come(1);
        assert!(is_told(10_000), "nothing is held back any more");
        cq.moderate(2, hour).unwrap();
        let watched = std::sync::Arc::downgrade(&cq.inner);
        drop(far);
        let begin = near.device.inner.passed();
        while watched.upgrade().is_some() {
            let waited = near.device.inner.passed() - begin;
            assert!(waited < Duration::from_secs(10), "somebody keeps a queue that is dropped");
        }
    }

    #[test]
    fn each_of_many_threads_that_wait_gets_one_of_as_many_completions() {
        const THREADS: usize = 4;
        let [near, far] = threads();
        for round in 0..20 {
            std::thread::scope(|scope| {
                let wait = || far.cq.wait(Duration::from_secs(20)).expect("it comes");
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(wait)).collect();
                // All at once while they sleep, and one after the other while they do not.
                std::thread::sleep(Duration::from_millis(if round % 2 == 0 { 5 } else { 0 }));
                for _ in 0..THREADS {
                    far.qp.post_recv(RecvWr::empty()).unwrap();
                    near.qp.post_send(SendWr::send_inline(&[])).unwrap();
                }
                let begun = far.device.inner.passed();
                threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
                let took = far.device.inner.passed() - begun;
                assert!(took < Duration::from_secs(10), "some slept on, for {took:?}");
            });
            while near.cq.poll().is_some() {}
        }
    }
}
