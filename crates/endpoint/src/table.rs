//! Changes of the table of regions, in one order for all shards.
//!
//! Each shard's engine has a table of its own. Tables with one seed that undergo the same changes in the same order
//! give the same keys, so that a region has one key whatever shard a queue pair is on.

use crate::memory::region::Memory;
use crate::shard::Core;
use roci_transport::{Binding, Pd, RegisterError, WindowKind};
use roci_units::Qpn;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where the key of a new region is told.
pub(crate) type Key = Arc<OnceLock<Result<u32, RegisterError>>>;

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Register(Pd, Arc<Memory>, Key),
    Deregister(u32),
    /// A region is another one under its key.
    Reregister(u32, Pd, Arc<Memory>, Key),
    /// A peer had the key invalidated, on the shard of its queue pair.
    Invalidate(Pd, u32),
    AllocateWindow(Pd, WindowKind, Key),
    DeallocateWindow(u32),
    /// A window of type 1 was bound, on the shard of the queue pair that did it, where this comes too late to change anything. One of type
    /// 2 serves that queue pair alone, and no other shard need know.
    Bind(Pd, Binding),
}

/// All changes that some shard has not applied yet.
#[derive(Debug)]
pub(crate) struct Table {
    changes: Mutex<VecDeque<Change>>,
    /// Changes ever made.
    end: AtomicU64,
    /// How many of them each shard has applied.
    applied: Vec<AtomicU64>,
    /// Whether each shard is at its turn.
    turns: Vec<Arc<AtomicBool>>,
}

/// The time in which a shard of several places what has arrived, or sends what peers READ, by keys as it knows them. In it the shard waits
/// for no other, so that others may wait for its end.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn(Option<Arc<AtomicBool>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turn) = &self.0 {
            turn.store(false, Ordering::Release);
        }
    }
}

impl Table {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            changes: Mutex::default(),
            end: AtomicU64::new(0),
            applied: (0..shards).map(|_| AtomicU64::new(0)).collect(),
            turns: (0..shards).map(|_| Arc::default()).collect(),
        }
    }

    /// Begins a turn. What the others changed before is to be applied next: a change that is made from now on waits for its end.
    fn begin(&self, shard: usize) -> Turn {
        let turn = (self.shards() > 1).then(|| self.turns[shard].clone());
        if let Some(turn) = &turn {
            turn.store(true, Ordering::SeqCst);
            // Before it looks for changes: who makes one looks for turns after that.
            fence(Ordering::SeqCst);
        }
        Turn(turn)
    }

    /// Makes a change that shard number `shard` has applied already, and which all others know when this returns: none of them has
    /// anything under way that it looked up before.
    pub(crate) fn tell_others(&self, shard: usize, change: Change) {
        self.push(change);
        let end = self.end.load(Ordering::SeqCst);
        for (other, turn) in self.turns.iter().enumerate().filter(|(other, _)| *other != shard) {
            while turn.load(Ordering::SeqCst) && self.applied[other].load(Ordering::SeqCst) < end {
                std::thread::yield_now();
            }
        }
    }

    fn changes(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn shards(&self) -> usize {
        self.applied.len()
    }

    pub(crate) fn push(&self, change: Change) {
        let mut changes = self.changes();
        changes.push_back(change);
        self.end.fetch_add(1, Ordering::SeqCst);
    }

    /// Applies to `core`, shard number `shard`, what it has not applied yet. Its lock is held.
    #[inline]
    pub(crate) fn catch_up(&self, shard: usize, core: &mut Core) {
        if self.applied[shard].load(Ordering::Relaxed) != self.end.load(Ordering::Acquire) {
            self.apply(shard, core);
        }
    }

    #[cold]
    fn apply(&self, shard: usize, core: &mut Core) {
        let mut changes = self.changes();
        let end = self.end.load(Ordering::SeqCst);
        let applied = self.applied[shard].swap(end, Ordering::SeqCst);
        let new = usize::try_from(end - applied).unwrap_or(0).min(changes.len());
        for change in changes.range(changes.len() - new..) {
            core.apply(change.clone());
        }
        let slowest = self.applied.iter().map(|applied| applied.load(Ordering::SeqCst)).min().unwrap_or(end);
        let keep = usize::try_from(end - slowest).unwrap_or(0);
        while changes.len() > keep {
            changes.pop_front();
        }
    }
}

impl Core {
    /// Begins a turn, with all changes applied. A device of one shard has no turns.
    #[inline]
    pub(crate) fn turn(&mut self) -> Turn {
        let turn = self.table.begin(self.number);
        if turn.0.is_some() {
            let table = self.table.clone();
            table.catch_up(self.number, self);
        }
        turn
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Register(pd, memory, told) => {
                let (start, length) = (memory.address(), memory.len() as u64);
                let key = self.engine.register(pd, start, length, memory.access).map(|(key, _)| key);
                if let Ok(key) = key {
                    self.memories.insert(key, memory);
                }
                let first = told.get_or_init(|| key);
                debug_assert_eq!(*first, key, "the tables of the shards agree");
            }
            Change::Reregister(key, pd, memory, told) => {
                let (start, length) = (memory.address(), memory.len() as u64);
                let changed = self.engine.reregister(key, pd, start, length, memory.access).map(|()| key);
                if changed.is_ok() {
                    self.memories.insert(key, memory);
                }
                let first = told.get_or_init(|| changed);
                debug_assert_eq!(*first, changed, "the tables of the shards agree");
            }
            Change::Deregister(key) => {
                // Invalidated or not, a registered region has its place until now.
                let _ = self.engine.deregister(key);
                self.memories.remove(&key);
            }
            Change::Invalidate(pd, key) => {
                // On the shard where it happened it is invalid already; it may be gone, too.
                let _ = self.engine.invalidate(pd, key);
            }
            Change::AllocateWindow(pd, kind, told) => {
                let key = self.engine.allocate_window(pd, kind);
                let first = told.get_or_init(|| key);
                debug_assert_eq!(*first, key, "the tables of the shards agree");
            }
            Change::DeallocateWindow(key) => {
                let _ = self.engine.deallocate_window(key);
            }
            Change::Bind(pd, binding) => {
                // The region or the window may be gone since, or another one. A former key of the window does not fit then either.
                if self.engine.bind(pd, Qpn::new(0), &binding).is_err() {
                    let _ = self.engine.bind(pd, Qpn::new(0), &Binding { length: 0, ..binding });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, DeviceConfig, Progress};
    use roci_transport::{Access, WindowKind};
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn who_tells_others_of_a_change_waits_for_those_at_their_turn() {
        let table = Table::new(2);
        let turn = table.begin(1);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                table.tell_others(0, Change::Deregister(1));
                tell.send(()).unwrap();
            });
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "it looked keys up before");
            drop(turn);
            assert!(told.recv_timeout(Duration::from_secs(20)).is_ok());
        });
        // Not for oneself, nor for one that knows.
        let _own = table.begin(0);
        let _other = table.begin(1);
        table.applied[1].store(2, Ordering::SeqCst);
        table.tell_others(0, Change::Deregister(2));
    }

    #[test]
    fn a_window_that_cannot_be_bound_on_another_shard_has_no_former_key_there() {
        let config = DeviceConfig { shards: 2, progress: Progress::Caller, ..DeviceConfig::default() };
        let device = Device::open_with("127.0.4.72".parse().unwrap(), config).unwrap();
        let pd = device.alloc_pd();
        let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE | Access::BIND).unwrap();
        let window = pd.alloc_mw(WindowKind::Type1).unwrap();
        let (address, access) = (region.addr(), Access::REMOTE_READ);
        let (key, region) = (window.rkey(), region.rkey());
        let binding = Binding { key, region, address, length: 64, access, is_zero_based: false };
        let core = &mut device.inner.cells[1].lock().core;
        core.apply(Change::Bind(pd.pd, binding));
        assert!(core.engine.regions().has_windows(region));
        core.apply(Change::Bind(pd.pd, Binding { key: key | 1, region: region ^ 1, ..binding }));
        assert!(!core.engine.regions().has_windows(region));
    }
}
