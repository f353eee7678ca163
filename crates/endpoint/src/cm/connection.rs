//! What both ends have: a connection, to watch and to end.

use super::machine::Id;
use super::manager::{Bell, Core, Handle, Note};
use super::{CmError, Terms};
use crate::io::sys::EventFd;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
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
    pub(super) terms: Terms,
    /// Whether its queue pair has failed.
    pub(super) has_failed: Arc<AtomicBool>,
    /// Readable when it is over, where somebody wants to see it so.
    pub(super) over: OnceLock<Arc<EventFd>>,
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
        self.terms.reads
    }

    /// What its queue pair was told of the peer.
    pub fn terms(&self) -> &Terms {
        &self.terms
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

    /// Waits until the peer knows that we have accepted: by its word, or by the first request that comes from it.
    ///
    /// # Errors
    /// [`CmError::Unreachable`] where it does not say so within `timeout` or all retries, [`CmError::Rejected`] where it
    /// does not want the connection any more.
    pub fn wait_established(&self, timeout: Duration) -> Result<(), CmError> {
        let known = self.handle.inner.wait(timeout, |core| self.outcome(core));
        known.unwrap_or(Err(CmError::Unreachable(self.peer)))
    }

    /// The same without a wait: `None` where it is not known yet. A rejection is told once.
    ///
    /// # Errors
    /// As [`wait_established`](Self::wait_established).
    pub fn poll_established(&self) -> Result<Option<()>, CmError> {
        self.handle.inner.wait(Duration::ZERO, |core| self.outcome(core)).transpose()
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
    pub fn has_left(&self) -> bool {
        self.handle.inner.core().notes.get(&self.id).is_none_or(Note::has_left)
    }

    /// Whether it [has been over](Self::has_left) for so long that the peer will not ask again for what was said last (IBTA's TimeWait):
    /// 8.6 s, or less where thousands of connections end meanwhile.
    pub fn is_forgotten(&self) -> bool {
        self.handle.inner.core().notes.get(&self.id).is_none_or(|note| note.is_forgotten)
    }

    /// Waits up to `timeout` for [that](Self::is_disconnected); whether it is so.
    pub fn wait_disconnected(&self, timeout: Duration) -> bool {
        self.handle.inner.wait(timeout, |core| self.end(core)).is_some()
    }

    /// A descriptor that is readable once [that](Self::is_disconnected) is so, for poll(2). It is made at the first call, is the same
    /// from then on, and is not to be read.
    ///
    /// # Errors
    /// What the operating system says, which may be that there are too many descriptors.
    pub fn end_fd(&self) -> io::Result<BorrowedFd<'_>> {
        if self.over.get().is_none() {
            let over = Arc::new(EventFd::new()?);
            // Under the lock, so that of two that come at once one is known to both.
            let mut core = self.handle.inner.core();
            if self.over.set(over.clone()).is_ok() {
                match core.notes.get_mut(&self.id) {
                    Some(note) => {
                        note.bell = Some(Bell { over, has_failed: self.has_failed.clone() });
                        note.ring();
                    }
                    None => over.signal(),
                }
            }
        }
        let over = self.over.get().unwrap_or_else(|| unreachable!("it has been made"));
        Ok(over.borrow())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cm::{ConnParam, ConnectionManager, Listener};
    use crate::device::{Backend, Device, DeviceConfig};
    use crate::io::{MemoryWire, sys};
    use crate::queue_pair::QueuePair;
    use roci_transport::Transition;
    use std::os::fd::{AsFd, AsRawFd};

    const WAIT: Duration = Duration::from_secs(10);

    /// Whether poll(2) finds a descriptor readable within `timeout`.
    fn is_readable(fd: impl AsFd, timeout: Duration) -> bool {
        sys::wait(&[(fd.as_fd().as_raw_fd(), false)], Some(timeout)).unwrap()
    }

    fn queue_pair(device: &Device) -> QueuePair {
        let cq = device.create_cq().unwrap();
        device.alloc_pd().create_qp(&cq, &cq).build().unwrap()
    }

    /// A connection from `near` to `far`: each end, with its queue pair.
    fn connect(
        near: (&Device, &ConnectionManager),
        far: (&Device, &Listener),
    ) -> [(Connection, QueuePair); 2] {
        let (active, passive) = (queue_pair(near.0), queue_pair(far.0));
        let to = SocketAddr::new(far.0.address(), far.1.port());
        let mut asked = near.1.request(&active, to, &ConnParam::default()).unwrap();
        assert!(is_readable(far.1, WAIT), "a request waits");
        let request = far.1.get_request(Duration::ZERO).unwrap().unwrap();
        assert!(!is_readable(far.1, Duration::ZERO), "and no other one");
        let accepted = request.accept(&passive, &ConnParam::default()).unwrap();
        let connected = asked.wait(&active, WAIT).unwrap().unwrap();
        [(connected, active), (accepted, passive)]
    }

    #[test]
    fn requests_and_the_ends_of_connections_are_waited_for_by_descriptors() {
        let wire = MemoryWire::new(1);
        let [near, far] = [1, 2].map(|host| {
            let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
            Device::open_with([10, 0, 0, host].into(), config).unwrap()
        });
        let [asking, answering] = [&near, &far].map(|device| ConnectionManager::new(device).unwrap());
        let listener = answering.listen(7000).unwrap();
        let (near, far) = ((&near, &asking), (&far, &listener));
        assert!(!is_readable(&listener, Duration::ZERO));

        // The peer disconnects.
        let [(connected, _active), (accepted, _passive)] = connect(near, far);
        assert!(!is_readable(accepted.end_fd().unwrap(), Duration::from_millis(50)));
        connected.disconnect();
        assert!(is_readable(accepted.end_fd().unwrap(), WAIT) && accepted.is_disconnected());
        // Who asks later sees it as well.
        assert!(connected.wait_disconnected(WAIT));
        assert!(is_readable(connected.end_fd().unwrap(), Duration::ZERO));

        // The own queue pair fails, which is no other connection's end.
        let [_other, (stays, _qp)] = connect(near, far);
        let [_peer, (accepted, passive)] = connect(near, far);
        let ends = [&stays, &accepted].map(|connection| connection.end_fd().unwrap());
        let fail = crate::Change { transition: Some(Transition::Fail), ..Default::default() };
        passive.modify(&fail).unwrap();
        assert!(is_readable(ends[1], WAIT) && accepted.is_disconnected());
        assert!(!is_readable(ends[0], Duration::ZERO) && !stays.is_disconnected());
    }

    #[test]
    fn a_request_that_is_withdrawn_does_not_wait_any_more() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let listener = manager.listen(7000).unwrap();
        let (qp, to) = (queue_pair(&device), SocketAddr::new(device.address(), 7000));
        let asked = manager.request(&qp, to, &ConnParam::default()).unwrap();
        assert!(is_readable(&listener, WAIT));
        drop(asked);
        let begin = device.inner.passed();
        while is_readable(&listener, Duration::ZERO) {
            assert!(device.inner.passed().saturating_sub(begin) < WAIT);
            std::thread::yield_now();
        }
        assert!(listener.get_request(Duration::ZERO).unwrap().is_none());
    }

    #[test]
    fn who_rejects_with_more_private_data_than_there_is_room_for_is_told_so_and_has_rejected() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let listener = manager.listen(7000).unwrap();
        let (qp, to) = (queue_pair(&device), SocketAddr::new(device.address(), 7000));
        for (length, is_told) in [(148, true), (149, false)] {
            let mut asked = manager.request(&qp, to, &ConnParam::default()).unwrap();
            let said = listener.get_request(WAIT).unwrap().unwrap().reject(&vec![7; length]);
            assert!(if is_told { said.is_ok() } else { matches!(said, Err(CmError::PrivateData(148))) });
            let heard = asked.wait(&qp, WAIT).unwrap_err();
            let CmError::Rejected { private_data, .. } = heard else { panic!("{heard:?}") };
            assert_eq!(private_data[..], [if is_told { 7 } else { 0 }; 148]);
        }
    }
}
