//! Who runs a shard: its thread, or whoever polls; and how a thread waits.

use crate::absence::Absence;
use crate::clock::{self, Clock};
use crate::io::sys::{self, EventFd};
use crate::shard::{REPLY_WAIT, Shard};
use crate::table::Table;
use roci_units::{Instant, Span};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A shard behind its lock.
pub(crate) struct Cell {
    number: usize,
    shard: Mutex<Shard>,
    table: Arc<Table>,
    clock: Clock,
    /// What becomes readable when packets arrive.
    readable: [RawFd; 3],
    /// How many want the lock to post: the thread lets them go first.
    wanted: AtomicU32,
    /// Wakes the thread.
    wake: EventFd,
    /// Until when the thread sleeps; zero while it is awake.
    asleep: AtomicU64,
    /// When the application drove the shard last; the thread leaves it alone for a while then.
    driven: AtomicU64,
    /// Whether it comes back for what arrives.
    absence: Absence,
    stop: AtomicBool,
}

/// For how long a thread leaves a shard to the application that polled it.
const GRACE: Span = Span::from_millis(1);
/// The same where the application will most likely not come for what arrives: it looks more often than that as long as it looks.
const GRACE_ABSENT: Span = Span::from_micros(5);
/// The longest sleep while the shard is in use: a timer that is set to a later instant need not wake the thread.
const NAP: Span = Span::from_millis(5);
/// A shard without traffic for so long is not in use.
const IDLE: Span = Span::from_secs(1);

/// What a loop does between two looks that found nothing.
///
/// Peers that share a core get nothing done while one of them spins. So the core is offered now and then, and as long as
/// somebody takes it for a little, after every look. One that takes it for long is most likely no peer of ours: then nothing is
/// offered for a long while, as who sleeps until a packet comes is woken before such a one is done.
///
/// But it may be a peer that offers nothing for such a while itself, and spins until its time is up, and each would take the
/// other for such a one for ever. What tells them apart is when packets come: those of a peer that shares the core have always
/// arrived when the core comes back, however soon, and never come while it is ours. While nothing is offered, the kernel's count
/// of the times that the core was taken from us says which it was.
///
/// Such a peer may also have the core only when we sleep: a responder that nobody polls looks for all of its time after each request,
/// and what it looks for cannot be sent meanwhile. Where looks before a sleep have found nothing so often, only a few are made.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Looks left until the core may be offered again.
    looks: AtomicU32,
    /// When it may be, at the earliest.
    until: AtomicU64,
    /// Whether a look has found nothing since one found something.
    looked: AtomicBool,
    /// How often the core had been taken from the thread when it found something last, while nothing is offered.
    taken: AtomicU64,
    /// How often in a row, while nothing is offered, packets had arrived when the core came back.
    returned: AtomicU32,
    /// How often somebody may still take the core for long and be a peer all the same.
    trust: AtomicU32,
    /// How often in a row, while nothing is offered, all looks before a sleep found nothing.
    in_vain: AtomicU32,
}

/// So often in a row, and peers share the core. Where one has it that is no peer, a few in a row are common, as threads of one's
/// own want it as well.
const SHARED: u32 = 8;
/// Where looks are in vain, one sleep in so many comes after all of them, to see whether they still are.
const TRIAL: u32 = 64;
/// And the others come after so long.
const BRIEF: Span = Span::from_micros(2);
/// As long as it takes a peer to find out the same, and some slices more.
const TRUST: u32 = 10;

/// Looks between two offers that nobody took: so few of them that sharing is noticed at once, and so many that a core of
/// one's own costs little.
const ALONE: u32 = 16;
/// A core that was given away for so long was taken by somebody.
const TAKEN: Span = Span::from_nanos(1500);
/// And for so long, by somebody who has other things to do.
const HOGGED: Span = Span::from_micros(500);
/// More is a machine that stood still.
const LONGEST: Span = Span::from_millis(10);
/// So much of the time may be lost to such, at most: one part in so many.
const WARY: u64 = 256;

impl Pause {
    /// Nothing was found; look again after this.
    #[inline]
    pub(crate) fn pause(&self, clock: &Clock) {
        self.looked.store(true, Ordering::Relaxed);
        let looks = self.looks.load(Ordering::Relaxed);
        if looks > 0 {
            self.looks.store(looks - 1, Ordering::Relaxed);
            return std::hint::spin_loop();
        }
        let before = clock.now();
        if before.as_ps() < self.until.load(Ordering::Relaxed) {
            self.looks.store(ALONE, Ordering::Relaxed);
            return std::hint::spin_loop();
        }
        std::thread::yield_now();
        let after = clock.now();
        let gone = after.since(before).min(LONGEST);
        if gone >= HOGGED {
            match self.trust.load(Ordering::Relaxed) {
                0 => self.withhold(after + gone * WARY),
                trust => self.trust.store(trust - 1, Ordering::Relaxed),
            }
        }
        self.looks.store(if gone < TAKEN { ALONE } else { 0 }, Ordering::Relaxed);
    }

    /// Offers nothing before `until`.
    fn withhold(&self, until: Instant) {
        self.taken.store(sys::times_preempted(), Ordering::Relaxed);
        self.returned.store(0, Ordering::Relaxed);
        self.in_vain.store(0, Ordering::Relaxed);
        self.until.store(until.as_ps(), Ordering::Relaxed);
    }

    /// For how long to look before a sleep, of at most `spin`.
    fn looks_for(&self, spin: Span, now: Instant) -> Span {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let are_few = in_vain >= SHARED
            && !in_vain.is_multiple_of(TRIAL)
            && now.as_ps() < self.until.load(Ordering::Relaxed);
        if are_few { spin.min(BRIEF) } else { spin }
    }

    /// The thread sleeps.
    fn sleeps(&self) {
        if self.looked.swap(false, Ordering::Relaxed) {
            self.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Something was found by the look that began at `now`.
    #[inline]
    pub(crate) fn found(&self, now: Instant) {
        if now.as_ps() < self.until.load(Ordering::Relaxed) && self.looked.swap(false, Ordering::Relaxed) {
            self.in_vain.store(0, Ordering::Relaxed);
            let taken = sys::times_preempted();
            self.judge(self.taken.swap(taken, Ordering::Relaxed) == taken);
        }
    }

    /// Something was found while nothing is offered, and the core `was_ours` since something was found before.
    fn judge(&self, was_ours: bool) {
        let returned = if was_ours { 0 } else { self.returned.load(Ordering::Relaxed) + 1 };
        self.returned.store(returned, Ordering::Relaxed);
        if returned >= SHARED {
            self.trust.store(TRUST, Ordering::Relaxed);
            self.until.store(0, Ordering::Relaxed);
        }
    }
}

impl Cell {
    pub(crate) fn new(number: usize, shard: Shard, table: Arc<Table>, clock: Clock) -> std::io::Result<Self> {
        Ok(Self {
            number,
            readable: shard.io.readable(),
            shard: Mutex::new(shard),
            table,
            clock,
            wanted: AtomicU32::new(0),
            wake: EventFd::new()?,
            asleep: AtomicU64::new(0),
            driven: AtomicU64::new(0),
            absence: Absence::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// The shard, for a call that the thread lets go first.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shard> {
        // Most often nobody has it, and then nobody has to be told.
        let mut shard = self.try_lock().unwrap_or_else(|| self.wait_for_it());
        self.table.catch_up(self.number, &mut shard.core);
        shard
    }

    /// The shard, unless somebody has it. A panic of whoever had it last is no reason against it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Shard>> {
        match self.shard.try_lock() {
            Ok(shard) => Some(shard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn wait_for_it(&self) -> MutexGuard<'_, Shard> {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let shard = self.shard.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        shard
    }

    /// Runs the shard, unless somebody else does, and tells `pause` of what it found.
    pub(crate) fn progress(&self, pause: &Pause) {
        let Some(mut shard) = self.try_lock() else { return };
        self.table.catch_up(self.number, &mut shard.core);
        let mut now = self.clock.now();
        shard.core.habit.comes(Instant::from_ps(self.driven.load(Ordering::Relaxed)), now);
        if shard.core.company.comes(now) {
            shard.send(now);
            now = self.clock.now();
        }
        if shard.run(now) {
            pause.found(now);
            self.absence.attended();
        }
        let took = std::mem::take(&mut shard.core.has_taken);
        if !shard.core.replies.is_empty() && shard.core.habit.goes(took) {
            shard.reply();
        }
        drop(shard);
        self.driven.store(now.as_ps(), Ordering::Relaxed);
    }

    /// Leaves the shard to its thread, but for acknowledgements that wait: a peer that spins may have the thread's core, and waits for
    /// them.
    pub(crate) fn hand_over(&self) {
        // Whoever has the lock does what there is to do.
        if let Some(mut shard) = self.try_lock() {
            shard.reply();
            shard.send_waiting(self.clock.now());
        }
        self.driven.store(0, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) != 0 {
            self.wake.signal();
        }
    }

    /// After a post at `now`: wakes the thread if it would sleep too long. One that leaves the shard to the application looks
    /// again soon, and would leave it alone until then if it were woken.
    pub(crate) fn nudge(&self, shard: &Shard, now: Instant) {
        let asleep = self.asleep.load(Ordering::SeqCst);
        let driven = Instant::from_ps(self.driven.load(Ordering::SeqCst));
        let is_left = driven != Instant::ZERO && now.since(driven) < GRACE;
        if asleep == 0 || is_left && asleep <= (now + GRACE).as_ps() {
            return;
        }
        let next = shard.core.engine.next_wakeup().map_or(u64::MAX, Instant::as_ps);
        if next < asleep || shard.core.engine.has_work(0xff) {
            self.wake.signal();
        }
    }

    /// Whether the application drives the shard, and its thread leaves it alone at `now`.
    #[inline]
    pub(crate) fn is_driven(&self, now: Instant) -> bool {
        let driven = Instant::from_ps(self.driven.load(Ordering::Relaxed));
        driven != Instant::ZERO && now.since(driven) < GRACE
    }

    /// Sends what waits for company.
    pub(crate) fn send_waiting(&self) {
        let mut shard = self.lock();
        let now = self.clock.now();
        shard.send_waiting(now);
    }

    pub(crate) fn readable(&self) -> [RawFd; 3] {
        self.readable
    }

    /// When it has to run again without anything arriving.
    pub(crate) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.lock().next_wakeup(now)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake.signal();
    }

    /// What the shard's thread does: run to completion, spin for `spin`, sleep.
    pub(crate) fn drive(&self, spin: Span) {
        sys::wake_on_time();
        let mut busy = self.clock.now();
        let (pause, mut missed) = (Pause::default(), 0);
        while !self.stop.load(Ordering::Relaxed) {
            let now = self.clock.now();
            if let Some(until) = self.left_until(now) {
                let fds = if self.absence.is_likely() { &self.readable[..] } else { &[] };
                self.sleep(fds, Some(until), now);
                continue;
            }
            while self.wanted.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
            let mut shard = self.shard.lock().unwrap_or_else(PoisonError::into_inner);
            self.table.catch_up(self.number, &mut shard.core);
            // Not before the lock is had: who had it may have sent later than that, and answers would come before they were
            // asked for.
            let now = self.clock.now();
            let is_over = now >= clock::END;
            shard.send_left(now);
            if shard.run(now) {
                busy = now;
                pause.found(now);
                // Once for each time that the application left it alone.
                let driven = self.driven.load(Ordering::Relaxed);
                if driven != 0 && driven != missed {
                    missed = driven;
                    self.absence.missed();
                }
                continue;
            }
            if now.since(busy) < pause.looks_for(spin, now) && !is_over {
                drop(shard);
                pause.pause(&self.clock);
                continue;
            }
            let nap = if now.since(busy) < IDLE && !is_over { Some(now + NAP) } else { None };
            let until = match (shard.next_wakeup(now), nap) {
                (Some(next), Some(nap)) => Some(next.min(nap)),
                (next, nap) => next.or(nap),
            };
            // Before the lock is given back: who posts from now on sees that the thread sleeps.
            self.asleep.store(until.map_or(u64::MAX, Instant::as_ps), Ordering::SeqCst);
            drop(shard);
            pause.sleeps();
            self.sleep(&self.readable, until, now);
        }
    }

    /// Until when the thread sleeps, if the application drives the shard and its thread leaves it alone at `now`.
    ///
    /// It does not wake as soon as an acknowledgement may have waited long enough: on a virtual machine each time takes 20 µs from
    /// the application that polls on the same core. What keeps most of them from waiting is [`Habit`](crate::habit::Habit).
    fn left_until(&self, now: Instant) -> Option<Instant> {
        let driven = Instant::from_ps(self.driven.load(Ordering::Relaxed));
        let grace = if self.absence.is_likely() { GRACE_ABSENT } else { GRACE };
        // At the end of the clock nothing is ever long ago.
        if driven == Instant::ZERO || now.since(driven) >= grace || now >= clock::END {
            return None;
        }
        // Where it does not poll at the moment. Whoever has the lock does what there is to do.
        if now.since(driven) >= REPLY_WAIT
            && let Some(mut shard) = self.try_lock()
        {
            shard.reply();
            shard.send_left(now);
        }
        // No sooner: an application whose core is a peer's for a slice would find that its thread had run the shard.
        Some(now + grace)
    }

    fn sleep(&self, fds: &[RawFd], until: Option<Instant>, now: Instant) {
        self.asleep.store(until.map_or(u64::MAX, Instant::as_ps), Ordering::SeqCst);
        if fds.is_empty() && self.driven.load(Ordering::SeqCst) == 0 {
            // The application has left the shard to the thread before it could see that this sleeps.
            return self.asleep.store(0, Ordering::SeqCst);
        }
        let mut all = [(self.wake.as_raw_fd(), false), (-1, false), (-1, false), (-1, false)];
        for (place, fd) in all[1..].iter_mut().zip(fds) {
            place.0 = *fd;
        }
        let timeout = until.and_then(|until| clock::until(until, now));
        // Whatever is wrong with a descriptor shows when it is read.
        let _ = sys::wait(&all, timeout);
        self.asleep.store(0, Ordering::SeqCst);
        self.wake.clear();
    }
}

impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cell").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::company::Company;
    use crate::device::{Backend, Device, DeviceConfig, Progress};
    use crate::habit::Habit;
    use crate::io::MemoryWire;
    use crate::pair::{End, pair};
    use crate::work::{RecvWr, SendWr};
    use std::io::ErrorKind;
    use std::time::Duration;

    const WHILE: Duration = Duration::from_millis(300);

    fn over() -> Device {
        let backend = Backend::Memory(MemoryWire::new(1));
        let config = DeviceConfig { backend, progress: Progress::Caller, ..DeviceConfig::default() };
        Device::open_by([10, 0, 0, 1].into(), config, Clock::over()).unwrap()
    }

    fn wary() -> Pause {
        let pause = Pause::default();
        pause.withhold(Instant::from_ps(u64::MAX));
        pause
    }

    fn offers(pause: &Pause) -> bool {
        pause.until.load(Ordering::Relaxed) == 0
    }

    #[test]
    fn a_peer_that_spins_on_the_same_core_is_soon_offered_it_again() {
        let pause = wary();
        for _ in 1..SHARED {
            pause.judge(false);
            assert!(!offers(&pause));
        }
        pause.judge(false);
        assert!(offers(&pause));
    }

    #[test]
    fn who_takes_the_core_for_long_is_no_peer_while_packets_come_from_elsewhere() {
        let pause = wary();
        for _ in 0..100 {
            (1..SHARED).for_each(|_| pause.judge(false));
            pause.judge(true);
            assert!(!offers(&pause));
        }
    }

    /// However little time is lost by it: a peer that gives way has the core for microseconds.
    #[test]
    fn a_core_that_was_taken_is_seen_by_the_count_of_that() {
        let pause = wary();
        for expected in [1, 2] {
            pause.taken.store(sys::times_preempted().wrapping_sub(1), Ordering::Relaxed);
            pause.looked.store(true, Ordering::Relaxed);
            pause.found(Instant::from_ps(10));
            pause.found(Instant::from_ps(11)); // the second of what had arrived
            assert_eq!(pause.returned.load(Ordering::Relaxed), expected);
        }
    }

    /// A responder that looks for all its time has the core while the requester wants it.
    #[test]
    fn looks_that_are_always_in_vain_become_few_until_one_of_them_finds_something() {
        let (pause, spin, now) = (wary(), Span::from_micros(50), Instant::from_ps(10));
        let look_and_sleep = || {
            pause.looked.store(true, Ordering::Relaxed);
            pause.sleeps();
            pause.sleeps(); // nothing comes before the nap is over
        };
        for _ in 0..SHARED {
            assert_eq!(pause.looks_for(spin, now), spin);
            look_and_sleep();
        }
        assert_eq!(pause.looks_for(spin, now), BRIEF);
        (SHARED..TRIAL).for_each(|_| look_and_sleep());
        assert_eq!(pause.looks_for(spin, now), spin, "whether they still are in vain is tried");
        look_and_sleep();
        assert_eq!(pause.looks_for(spin, now), BRIEF);
        pause.looked.store(true, Ordering::Relaxed);
        pause.found(now);
        assert_eq!(pause.looks_for(spin, now), spin);
    }

    /// Two devices on one wire that go on where they are told to alone, and a message from the first that the second is to take.
    fn one_message() -> [End; 2] {
        let ends = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let [near, far] = &ends;
        far.qp.post_recv(RecvWr::empty()).unwrap();
        near.qp.post_send(SendWr::send_inline(&[])).unwrap();
        ends
    }

    #[test]
    fn a_shard_is_had_again_after_a_panic_of_who_had_it() {
        let [End { cq: sent, qp: _near, .. }, End { device, qp: far, cq: received, .. }] = one_message();
        let cell = device.inner.cells[0].clone();
        let panicked = std::thread::spawn(move || {
            let _shard = cell.lock();
            panic!("on purpose");
        });
        assert!(panicked.join().is_err());
        assert!(received.poll().is_some() && sent.poll().is_some_and(|completion| completion.is_ok()));
        device.inner.cells[0].hand_over();
        drop(device.inner.cells[0].lock());
        drop(far);
    }

    #[test]
    fn an_application_that_polls_once_and_computes_has_its_message_acknowledged() {
        let [End { cq: sent, qp: _near, .. }, End { qp: _far, cq: received, .. }] = one_message();
        assert!(received.poll().is_some());
        assert!(sent.poll().is_some_and(|completion| completion.is_ok()));
    }

    #[test]
    fn an_application_that_leaves_its_shard_to_the_thread_has_all_acknowledged_before() {
        let [End { cq: sent, qp: _near, .. }, End { device, qp: _far, cq: received, .. }] = one_message();
        device.inner.cells[0].lock().core.habit = Habit::returns();
        assert!(received.poll().is_some());
        assert!(sent.poll().is_none());
        device.inner.cells[0].hand_over();
        assert!(sent.poll().is_some_and(|completion| completion.is_ok()));
    }

    #[test]
    fn an_application_that_drops_its_queue_pair_has_all_acknowledged_before() {
        let [End { cq: sent, qp: _near, .. }, End { device, qp, cq: received, .. }] = one_message();
        device.inner.cells[0].lock().core.habit = Habit::returns();
        assert!(received.poll().is_some());
        assert!(sent.poll().is_none());
        drop((qp, device, received));
        assert!(sent.poll().is_some_and(|completion| completion.is_ok()));
    }

    #[test]
    fn a_thread_that_finds_the_application_gone_acknowledges_what_came_last() {
        let [End { cq: sent, qp: _near, .. }, End { device, qp: _far, cq: received, .. }] = one_message();
        let cell = &device.inner.cells[0];
        cell.lock().core.habit = Habit::returns();
        assert!(received.poll().is_some());
        assert!(sent.poll().is_none(), "the acknowledgement waits for what the application answers");
        let driven = Instant::from_ps(cell.driven.load(Ordering::Relaxed));
        assert_eq!(cell.left_until(driven), Some(driven + GRACE), "it may poll again");
        assert!(sent.poll().is_none());
        assert!(cell.left_until(driven + REPLY_WAIT).is_some());
        assert!(sent.poll().is_some_and(|completion| completion.is_ok()));
        assert_eq!(cell.left_until(driven + GRACE), None, "from now on the thread runs the shard");
    }

    #[test]
    fn a_thread_waits_beside_an_application_that_does_not_come_for_what_arrives() {
        let [_near, End { device, .. }] = one_message();
        let cell = &device.inner.cells[0];
        let driven = device.inner.now();
        cell.driven.store(driven.as_ps(), Ordering::SeqCst);
        assert!(cell.left_until(driven + GRACE_ABSENT).is_some());
        (0..10).for_each(|_| cell.absence.missed());
        assert!(cell.left_until(driven).is_some(), "it may look for the end of its own request");
        assert_eq!(cell.left_until(driven + GRACE_ABSENT), None);
    }

    /// Has `end` post two requests, of which the second waits, where it may: the program is taken to look in time.
    fn post_two(end: &End) {
        let cell = &end.device.inner.cells[0];
        let write = || SendWr::write_inline(&[], crate::memory::RemoteMemory::default());
        end.qp.post_send(write()).unwrap();
        cell.lock().core.company = Company::returns();
        cell.driven.store(u64::MAX >> 1, Ordering::SeqCst);
        end.qp.post_send(write()).unwrap();
    }

    #[test]
    fn what_waits_for_company_leaves_however_the_program_waits_for_its_end() {
        let ways: [fn(End); 6] = [
            |end| drop(end.cq.poll()),
            |end| drop(end.cq.wait(Duration::from_millis(1))),
            |end| end.cq.req_notify(false),
            |end| end.device.hand_over(),
            |end| {
                drop(end.device.inner.block(end.device.inner.cells[0].wake.as_raw_fd(), Some(Duration::ZERO)))
            },
            |end| drop(end.qp),
        ];
        for (number, way) in ways.into_iter().enumerate() {
            let [near, far] = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
            let arrived = || {
                far.device.progress();
                far.device.counters().received
            };
            post_two(&near);
            assert_eq!(arrived(), 1, "the first alone");
            way(near);
            assert_eq!(arrived(), 2, "way {number}");
        }
    }

    #[test]
    fn nothing_waits_for_company_while_the_thread_runs_the_shard_or_nothing_is_on_its_way() {
        let [near, far] = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let cell = &near.device.inner.cells[0];
        let write = || SendWr::write_inline(&[], crate::memory::RemoteMemory::default());
        let mut sent = 0;
        for (driven, is_busy) in [(0, true), (u64::MAX >> 1, false)] {
            if is_busy {
                near.qp.post_send(write()).unwrap();
                sent += 1;
            }
            cell.lock().core.company = Company::returns();
            cell.driven.store(driven, Ordering::SeqCst);
            near.qp.post_send(write()).unwrap();
            sent += 1;
            far.device.progress();
            assert_eq!(far.device.counters().received, sent);
            far.device.inner.cells[0].hand_over();
            while near.cq.poll().is_some() {}
        }
    }

    #[test]
    fn what_a_program_posts_that_never_looks_is_sent_by_the_thread() {
        let [near, far] = pair(&MemoryWire::new(1), DeviceConfig::default().progress, |qp| qp);
        post_two(&near);
        let cell = &near.device.inner.cells[0];
        // As if it had looked for the last time now.
        cell.driven.store(near.device.inner.now().as_ps(), Ordering::SeqCst);
        let begin = near.device.inner.passed();
        while far.device.counters().received < 2 {
            assert!(near.device.inner.passed() - begin < Duration::from_secs(20), "it is sent");
            std::thread::sleep(WHILE / 300);
        }
    }

    #[test]
    fn a_shard_whose_time_is_over_lets_its_thread_sleep() {
        let device = over();
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let _qp = pd.create_qp(&cq, &cq).build().unwrap();
        assert!(cq.poll().is_none());
        let cell = device.inner.cells[0].clone();
        let thread = std::thread::spawn(move || {
            cell.drive(Span::from_micros(50));
            clock::busy()
        });
        std::thread::sleep(WHILE);
        device.inner.cells[0].stop();
        let busy = thread.join().unwrap();
        assert!(busy < WHILE / 30, "it was busy for {busy:?}");
    }

    #[test]
    fn a_wait_ends_in_time_and_without_spinning_when_the_clock_has_ended() {
        let device = over();
        let cq = device.create_cq().unwrap();
        let (begin, before) = (device.inner.passed(), clock::busy());
        assert_eq!(cq.wait(WHILE).unwrap_err().kind(), ErrorKind::TimedOut);
        let busy = clock::busy() - before;
        assert!(device.inner.passed() - begin >= WHILE && busy < WHILE / 30, "it was busy for {busy:?}");
    }
}
