//! Notifications that are held back until enough completions have come, or the first of them has waited for long enough.

use crate::completion::CqInner;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// What holds back the notifications of a queue. It has a thread, as the time passes whoever makes progress.
#[derive(Debug)]
pub(crate) struct Moderation {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many completions make a notification; 0: none is held back.
    count: u32,
    /// How long the first of them waits at most.
    period: Duration,
    /// Completions that wait to be notified of.
    held: u32,
    /// Which wait this is, so that one which is over ends no other.
    wait: u64,
    has_ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends each wait when its time has come, until the queue is gone.
    fn watch(&self, queue: &Weak<CqInner>) {
        let mut state = self.state();
        while !state.has_ended {
            if state.held == 0 {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (wait, period) = (state.wait, state.period);
            let goes_on = |state: &mut State| state.held > 0 && state.wait == wait && !state.has_ended;
            let waited = self.changed.wait_timeout_while(state, period, goes_on);
            let (mut now, over) = waited.unwrap_or_else(PoisonError::into_inner);
            let is_due = over.timed_out() && goes_on(&mut now);
            if is_due {
                now.held = 0;
            }
            drop(now);
            if is_due && let Some(queue) = queue.upgrade() {
                queue.notify();
            }
            state = self.state();
        }
    }
}

impl Moderation {
    /// For `queue`; nothing is held back yet.
    pub(crate) fn new(queue: Weak<CqInner>) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("roci-cq".into()).spawn(move || of_thread.watch(&queue))?;
        Ok(Self { shared })
    }

    /// From now on so many completions make a notification, or the first of them when it has waited for so long. Gives whether some wait
    /// already, which are to be told of now.
    pub(crate) fn set(&self, count: u32, period: Duration) -> bool {
        let mut state = self.shared.state();
        (state.count, state.period) = (count, period);
        let held = std::mem::take(&mut state.held);
        self.shared.changed.notify_one();
        held > 0
    }

    /// A completion has come that somebody is to be notified of: whether at once.
    pub(crate) fn tells(&self) -> bool {
        let mut state = self.shared.state();
        state.held += 1;
        if state.held >= state.count {
            state.held = 0;
            return true;
        }
        if state.held == 1 {
            state.wait += 1;
            self.shared.changed.notify_one();
        }
        false
    }
}

impl Drop for Moderation {
    fn drop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.changed.notify_one();
    }
}
