//! Tasks that wait for one and the same thing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Who waits. All are woken together and look for themselves; each stays until it has found something or is dropped.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    wakers: BTreeMap<u64, Waker>,
    last: u64,
}

impl Waiters {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one that may come to wait.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { waiters: self, number: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known().wakers.is_empty()
    }

    /// Wakes all. A waker may do whatever it likes, also come back here.
    pub(crate) fn wake_all(&self) {
        let wakers: Vec<Waker> = self.known().wakers.values().cloned().collect();
        wakers.iter().for_each(Waker::wake_by_ref);
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

/// The place of one who waits, who is forgotten when it is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    waiters: &'a Waiters,
    number: Option<u64>,
}

impl Place<'_> {
    /// Has `waker` woken from now on. Look once more after this, for what came before.
    pub(crate) fn wait(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let mut known = self.waiters.known();
        let number = *self.number.get_or_insert_with(|| {
            known.last += 1;
            known.last
        });
        let before = known.wakers.insert(number, waker);
        drop(known);
        // A waker's end may be as long a story as its call.
        drop(before);
    }

    /// Waits no longer.
    pub(crate) fn leave(&mut self) {
        if let Some(number) = self.number.take() {
            let waker = self.waiters.known().wakers.remove(&number);
            drop(waker);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_is_forgotten_and_who_waits_twice_is_known_once() {
        let waiters = Waiters::default();
        let mut stays = waiters.place();
        for _ in 0..1000 {
            waiters.place().wait(Waker::noop());
            stays.wait(Waker::noop());
        }
        assert_eq!(waiters.known().wakers.len(), 1);
        drop(stays);
        assert!(waiters.is_empty());
    }
}
