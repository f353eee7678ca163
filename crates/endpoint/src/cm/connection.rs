//! What both ends have: a connection, to watch and to end.

use super::CmError;
use super::machine::Id;
use super::manager::{Core, Handle, Note};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a wait looks whether it is to end.
const SLICE: Duration = Duration::from_millis(20);

/// A connection. Dropped, it is ended.
#[derive(Debug)]
pub struct Connection {
    pub(super) handle: Arc<Handle>,
    pub(super) id: Id,
    pub(super) peer: SocketAddr,
    pub(super) private_data: Vec<u8>,
    pub(super) initiator_depth: u8,
    /// Whether its queue pair has failed.
    pub(super) has_failed: Arc<AtomicBool>,
}

impl Connection {
    /// The peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What the peer's user told when it asked or accepted, with zeros behind it.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// READs and atomics that we may have outstanding, as agreed.
    pub fn initiator_depth(&self) -> u8 {
        self.initiator_depth
    }

    /// Waits for that, but no longer than the peer takes to prove that it means it: who asks in another's name never
    /// knows what we answer. Looks at `stopped` now and then. `None` where the connection came to nothing.
    pub(crate) fn met(self, stopped: &dyn Fn() -> bool) -> Option<Self> {
        loop {
            if self.wait_established(SLICE).is_ok() {
                // Whoever said so may have left since, which is not the same as never having been there.
                return Some(self);
            }
            if stopped() || self.has_left() {
                return None;
            }
        }
    }

    /// Waits until the peer knows that we have accepted.
    ///
    /// # Errors
    /// [`CmError::Unreachable`] where it does not say so within `timeout` or all retries, [`CmError::Rejected`] where it
    /// does not want the connection any more.
    pub fn wait_established(&self, timeout: Duration) -> Result<(), CmError> {
        let known = self.handle.inner.wait(timeout, |core| self.outcome(core));
        known.unwrap_or(Err(CmError::Unreachable(self.peer)))
    }

    /// The same for as long as it takes, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn established(&self) -> Result<(), CmError> {
        self.handle.inner.when(|core| self.outcome(core)).await
    }

    /// What has become of our answer, if that is known.
    fn outcome(&self, core: &mut Core) -> Option<Result<(), CmError>> {
        let note = core.notes.get_mut(&self.id)?;
        if let Some(reject) = note.rejected.take() {
            note.is_disconnected = true;
            let (peer, reason, private_data) = (self.peer, reject.reason, reject.private.0.to_vec());
            return Some(Err(CmError::Rejected { peer, reason, private_data }));
        }
        if note.is_unreachable {
            return Some(Err(CmError::Unreachable(self.peer)));
        }
        (note.is_established || note.is_disconnected).then_some(Ok(()))
    }

    /// Whether it is over: the peer has ended it, or has agreed that we did, or its queue pair is in the error state.
    ///
    /// A peer that was killed, or whose host has gone, ends nothing, and a queue pair from which nothing is outstanding does not
    /// notice. Who only listens asks for a sign of life now and then: a WRITE without octets
    /// ([`SendWr::write_inline`](crate::SendWr::write_inline) of `&[]`), which needs no key and takes no receive, is acknowledged, or
    /// fails when its retries are over, and the queue pair with it.
    pub fn is_disconnected(&self) -> bool {
        self.wait_disconnected(Duration::ZERO)
    }

    /// Whether the peer has ended it, or has agreed that we did, whatever has become of the queue pair.
    pub(crate) fn has_left(&self) -> bool {
        self.handle.inner.core().notes.get(&self.id).is_none_or(Note::has_left)
    }

    /// Waits up to `timeout` for [that](Self::is_disconnected); whether it is so.
    pub fn wait_disconnected(&self, timeout: Duration) -> bool {
        self.handle.inner.wait(timeout, |core| self.end(core)).is_some()
    }

    /// The same for as long as it takes, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn over(&self) {
        self.handle.inner.when(|core| self.end(core)).await;
    }

    fn end(&self, core: &mut Core) -> Option<()> {
        let has_left = core.notes.get(&self.id).is_none_or(Note::has_left);
        (has_left || self.has_failed.load(Ordering::SeqCst)).then_some(())
    }

    /// Tells the peer that it is over. The queue pair is the caller's to end: both ends' stay in RTS and carry data until they are
    /// brought into the error state ([`modify`](crate::QueuePair::modify) with `Transition::Fail`) or dropped.
    pub fn disconnect(&self) {
        let inner = &self.handle.inner;
        // What has been taken is acknowledged before: the peer would hear of the end first, and take its last request for lost.
        inner.device.inner.hand_over();
        let mut core = inner.core();
        core.machine.disconnect(inner.device.inner.now(), self.id);
        inner.pump(&mut core);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.handle.inner.leave(self.id);
    }
}
