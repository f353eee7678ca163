//! Changes of the table of regions, in one order for all shards.
//!
//! Each shard's engine has a table of its own. Tables with one seed that undergo the same changes in the same order
//! give the same keys, so that a region has one key whatever shard a queue pair is on.

use crate::memory::region::Memory;
use crate::shard::Core;
use roci_transport::{Binding, Pd, RegisterError, WindowKind};
use roci_units::Qpn;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
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
}

impl Table {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            changes: Mutex::default(),
            end: AtomicU64::new(0),
            applied: (0..shards).map(|_| AtomicU64::new(0)).collect(),
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
                // The region or the window may be gone since.
                let _ = self.engine.bind(pd, Qpn::new(0), &binding);
            }
        }
    }
}
