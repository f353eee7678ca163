//! What all handles of a device share.

use super::{Mtu, Progress};
use crate::clock::{self, Clock};
use crate::control;
use crate::driver::{Cell, Pause};
use crate::event::EventQueue;
use crate::io::sys;
use crate::memory::region::{Handle, Memory};
use crate::shard::IoCounters;
use crate::table::{Change, Table};
use roci_control::Law;
use roci_control::program::Tally;
use roci_transport::{Pd, Refusal, RegisterError, WindowKind};
use roci_units::Instant;
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) struct DeviceInner {
    pub(crate) cells: Vec<Arc<Cell>>,
    pub(crate) local: IpAddr,
    pub(crate) mtu: Mtu,
    /// The code point of queue pairs that say no other.
    pub(crate) dscp: u8,
    /// The laws by their numbers, the first of which is 0, none.
    pub(crate) laws: Vec<Law>,
    /// Who wants to hear of asynchronous events.
    pub(super) events: OnceLock<Arc<EventQueue>>,
    /// Its control sockets.
    pub(super) names: Mutex<Vec<control::Name>>,
    pub(super) table: Arc<Table>,
    pub(crate) clock: Clock,
    pub(crate) progress: Progress,
    pub(super) pause: Pause,
    pub(super) next_shard: AtomicUsize,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

// Queue pairs, regions, buffers and completions lead here: who prints one wants no tables.
impl std::fmt::Debug for DeviceInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceInner").field("local", &self.local).finish_non_exhaustive()
    }
}

impl DeviceInner {
    pub(crate) fn programs(&self) -> Vec<(String, Tally)> {
        let mut programs: Vec<(String, Tally)> = Vec::new();
        for cell in &self.cells {
            for (name, tally) in cell.lock().core.programs() {
                match programs.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => sum.add(&tally),
                    None => programs.push((name, tally)),
                }
            }
        }
        programs
    }

    pub(crate) fn counters(&self) -> IoCounters {
        let mut sum = IoCounters::default();
        for cell in &self.cells {
            sum.add(&cell.lock().core.counters);
        }
        sum
    }

    /// How many rates were said for hops one by one.
    pub(crate) fn ordered_rates(&self) -> usize {
        self.cells.first().map_or(0, |cell| cell.lock().core.hop_rates.ordered())
    }

    pub(crate) fn refused(&self, reason: Refusal) -> u64 {
        self.cells.iter().map(|cell| cell.lock().core.engine.refused(reason)).sum()
    }

    pub(crate) fn bitmaps_refused(&self) -> u64 {
        self.cells.iter().map(|cell| cell.lock().core.engine.bitmaps_refused()).sum()
    }

    /// Where asynchronous events are told, by all shards from the first call on.
    pub(crate) fn listen(&self) -> io::Result<Arc<EventQueue>> {
        if let Some(queue) = self.events.get() {
            return Ok(queue.clone());
        }
        let made = Arc::new(EventQueue::new()?);
        let queue = self.events.get_or_init(|| made);
        for cell in &self.cells {
            cell.lock().core.events = Some(queue.clone());
        }
        Ok(queue.clone())
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Time since it was opened, which goes on when [`now`](Self::now) has come to its end.
    pub(crate) fn passed(&self) -> Duration {
        self.clock.passed()
    }

    pub(crate) fn spin(&self) -> Duration {
        match self.progress {
            Progress::Thread { spin } => spin,
            Progress::Caller => Duration::from_micros(50),
        }
    }

    /// What a loop does that found nothing and looks again.
    pub(crate) fn pause(&self) {
        self.pause.pause(&self.clock);
    }

    /// The shard for the next queue pair, in turns.
    pub(crate) fn turn(&self) -> usize {
        self.next_shard.fetch_add(1, Ordering::Relaxed) % self.cells.len()
    }

    pub(crate) fn progress(&self) {
        for cell in &self.cells {
            cell.progress(&self.pause);
        }
    }

    /// Leaves the device to its threads.
    pub(crate) fn hand_over(&self) {
        if self.progress != Progress::Caller {
            for cell in &self.cells {
                cell.hand_over();
            }
        }
    }

    /// Sends what waits for company, before somebody waits by other means than looking for completions.
    pub(crate) fn send_waiting(&self) {
        for cell in &self.cells {
            cell.send_waiting();
        }
    }

    /// Waits for `event`, for `left` at most, or until it is time to go on.
    pub(crate) fn block(&self, event: RawFd, mut left: Option<Duration>) -> io::Result<()> {
        let mut fds = vec![(event, false)];
        let now = self.now();
        if self.progress == Progress::Caller {
            for cell in &self.cells {
                cell.send_waiting();
                fds.extend(cell.readable().map(|fd| (fd, false)));
                let next = cell.next_wakeup(now).and_then(|next| clock::until(next, now));
                left = next.map_or(left, |next| Some(left.map_or(next, |left| left.min(next))));
            }
        } else {
            self.hand_over();
        }
        sys::wait(&fds, left)?;
        Ok(())
    }

    /// Registers memory on all shards; gives its key.
    pub(crate) fn register(&self, pd: Pd, memory: &Arc<Memory>) -> Result<u32, RegisterError> {
        let key = Arc::new(OnceLock::new());
        self.table.push(Change::Register(pd, memory.clone(), key.clone()));
        self.settle();
        key.get().copied().unwrap_or(Err(RegisterError::Full))
    }

    /// Has the region of a key be another one on all shards.
    pub(crate) fn reregister(&self, key: u32, pd: Pd, memory: &Arc<Memory>) -> Result<(), RegisterError> {
        let told = Arc::new(OnceLock::new());
        self.table.push(Change::Reregister(key, pd, memory.clone(), told.clone()));
        self.settle();
        told.get().copied().unwrap_or(Err(RegisterError::Full)).map(drop)
    }

    /// Makes a memory window on all shards; gives its first key.
    pub(crate) fn allocate_window(&self, pd: Pd, kind: WindowKind) -> Result<u32, RegisterError> {
        let key = Arc::new(OnceLock::new());
        self.table.push(Change::AllocateWindow(pd, kind, key.clone()));
        self.settle();
        key.get().copied().unwrap_or(Err(RegisterError::Full))
    }

    /// Ends a memory window: its key fits no longer when this returns.
    pub(crate) fn deallocate_window(&self, key: u32) {
        self.table.push(Change::DeallocateWindow(key));
        self.settle();
    }

    /// Whether a memory window is bound to the region of this key, on any shard.
    pub(crate) fn has_windows(&self, key: u32) -> bool {
        self.cells.iter().any(|cell| cell.lock().core.engine.regions().has_windows(key))
    }

    /// Deregisters a region, on each shard before it does anything else. May be called under a shard's lock.
    pub(crate) fn deregister(&self, key: u32) {
        self.table.push(Change::Deregister(key));
    }

    /// Requests part with the memory of a region, which is to be taken away.
    pub(crate) fn part_with(&self, handle: &Handle) {
        for cell in &self.cells {
            let core = &mut cell.lock().core;
            let recvs = core.works.part_with(handle);
            if !recvs.is_empty() {
                core.engine.void_recvs(|id| recvs.contains(&id));
            }
        }
    }

    /// Has all changes of the table of regions applied.
    pub(crate) fn settle(&self) {
        for cell in &self.cells {
            drop(cell.lock());
        }
    }
}

impl Drop for DeviceInner {
    fn drop(&mut self) {
        for cell in &self.cells {
            cell.stop();
        }
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        // The kernel may have given us what is others' at this address, as their peers' last acknowledgements, ours among them: it is
        // handed over before the sockets close, which take it with them.
        for cell in &self.cells {
            let io = &mut cell.lock().io;
            (0..LAST_LOOKS).take_while(|_| io.receive(&mut |_| {}).is_ok_and(|runs| runs > 0)).for_each(drop);
        }
    }
}

/// So often is something looked for at the end, in case that somebody goes on sending.
const LAST_LOOKS: u32 = 64;
