//! Shared receive queues.

use crate::device::{DeviceInner, ProtectionDomain};
use crate::event::Event;
use crate::work::{RecvWr, Refused};
use crate::works::Owner;
use roci_transport::{Pd, RecvTarget, Srq};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A receive queue that several queue pairs share. Clones are the same queue; it lives on one shard, and with it the
/// queue pairs that use it.
#[derive(Clone, Debug)]
pub struct SharedReceiveQueue {
    inner: Arc<SrqInner>,
}

#[derive(Debug)]
struct SrqInner {
    device: Arc<DeviceInner>,
    pd: Pd,
    srq: Srq,
    shard: usize,
    number: u32,
    /// Requests that may be outstanding. Changed under the shard's lock alone.
    room: AtomicU32,
}

/// Why a shared receive queue was not resized. It is as it was then.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// More requests are outstanding than it is to have room for (IBTA Vol 1 §11.2.3.3; `EINVAL` of `ibv_modify_srq`).
    #[error("there is to be room for {asked} receive requests, and {outstanding} of them are outstanding")]
    Outstanding {
        /// Requests that were posted and have not ended.
        outstanding: u32,
        /// The room that was asked for.
        asked: u32,
    },
}

speaks!(ResizeError);

/// A limit that no shared receive queue with this room could keep (IBTA Vol 1 §11.2.3.3; `EINVAL` of `ibv_modify_srq`). The limit
/// is as it was then.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("fewer than {limit} receive requests stand in the queue at all times, for it has room for {max_wr}")]
pub struct LimitError {
    /// The limit that was asked for.
    pub limit: u32,
    /// The [room](SharedReceiveQueue::max_wr) that there is.
    pub max_wr: u32,
}

speaks!(LimitError);

/// Numbers of shared receive queues are not used twice.
static LAST: AtomicU32 = AtomicU32::new(0);

impl SharedReceiveQueue {
    pub(crate) fn new(pd: &ProtectionDomain, max: u32) -> Self {
        let device = pd.device.clone();
        let shard = device.turn();
        let mut locked = device.cells[shard].lock();
        let core = &mut locked.core;
        let srq = core.shared_vacant.pop().unwrap_or_else(|| {
            core.shared_left.push(0);
            core.shared_numbers.push(0);
            core.engine.create_srq()
        });
        core.shared_left[srq.0 as usize] = max;
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        core.shared_numbers[srq.0 as usize] = number;
        drop(locked);
        Self { inner: Arc::new(SrqInner { device, pd: pd.pd, srq, shard, number, room: max.into() }) }
    }

    pub(crate) fn is_of(&self, device: &Arc<DeviceInner>) -> bool {
        Arc::ptr_eq(&self.inner.device, device)
    }

    pub(crate) fn pd(&self) -> Pd {
        self.inner.pd
    }

    pub(crate) fn srq(&self) -> Srq {
        self.inner.srq
    }

    pub(crate) fn shard(&self) -> usize {
        self.inner.shard
    }

    /// Its number, by which [`Event::SrqLimitReached`] names it.
    pub fn srq_num(&self) -> u32 {
        self.inner.number
    }

    /// Asks for one [`Event::SrqLimitReached`] as soon as fewer than `limit` receive requests stand in the queue, at once where that
    /// is so now; zero asks for none any more (`srq_limit` of `ibv_modify_srq`). A request stands there until the first packet of a
    /// message takes it. Whoever wants to hear of it has called [`Device::events`](crate::Device::events) before.
    ///
    /// # Errors
    /// [`LimitError`] where it is more than [`max_wr`](Self::max_wr): it would be reached at any time, and nothing that the program
    /// posts would help.
    pub fn set_limit(&self, limit: u32) -> Result<(), LimitError> {
        let SrqInner { device, srq, shard, room, .. } = &*self.inner;
        let core = &mut device.cells[*shard].lock().core;
        let max_wr = room.load(Ordering::Relaxed);
        if limit > max_wr {
            return Err(LimitError { limit, max_wr });
        }
        core.engine.set_srq_limit(*srq, limit);
        core.complete();
        Ok(())
    }

    /// The limit that was set and has not been reached; zero: none.
    pub fn limit(&self) -> u32 {
        self.inner.device.cells[self.inner.shard].lock().core.engine.srq_limit(self.inner.srq)
    }

    /// Requests that may be outstanding, those included that a message has begun to fill (`max_wr` of `ibv_query_srq`).
    pub fn max_wr(&self) -> u32 {
        self.inner.room.load(Ordering::Relaxed)
    }

    /// Makes room for `max_wr` outstanding requests, more or fewer than before (`IBV_SRQ_MAX_WR` of `ibv_modify_srq`), while messages
    /// come. Those that are there stay, in their order. The [limit](Self::limit) stays as well: one that was not reached is no more than
    /// what stands in the queue, so there is room for as many as it says.
    ///
    /// # Errors
    /// [`ResizeError::Outstanding`] where more are outstanding: a request counts until it has ended, and the program has
    /// to let some of them be used first.
    pub fn resize(&self, max_wr: u32) -> Result<(), ResizeError> {
        let SrqInner { device, srq, shard, room, .. } = &*self.inner;
        let core = &mut device.cells[*shard].lock().core;
        let left = &mut core.shared_left[srq.0 as usize];
        let outstanding = room.load(Ordering::Relaxed).saturating_sub(*left);
        *left =
            max_wr.checked_sub(outstanding).ok_or(ResizeError::Outstanding { outstanding, asked: max_wr })?;
        room.store(max_wr, Ordering::Relaxed);
        Ok(())
    }

    /// Posts a receive request.
    ///
    /// # Errors
    /// [`Refused`] says why, and has the request.
    pub fn post_recv(&self, request: RecvWr) -> Result<(), Box<Refused<RecvWr>>> {
        let SrqInner { device, pd, srq, shard, .. } = &*self.inner;
        let mut shard = device.cells[*shard].lock();
        let owner = Owner::Shared(srq.0);
        shard.core.post_recv(RecvTarget::Srq(*srq, *pd), owner, *pd, request)
    }
}

impl Drop for SrqInner {
    fn drop(&mut self) {
        let core = &mut self.device.cells[self.shard].lock().core;
        // No queue pair uses it any more, for each has one of those that keep this; so no message has taken any of its requests.
        core.engine.clear_srq(self.srq, |id| drop(core.works.remove(id)));
        // What has been told of it is told by its number, and no later.
        core.complete();
        if let Some(events) = &core.events {
            events.forget(|event| event == Event::SrqLimitReached(self.number));
        }
        core.shared_vacant.push(self.srq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Backend, Device, DeviceConfig};
    use crate::io::MemoryWire;

    #[test]
    fn a_shared_receive_queue_that_is_gone_leaves_nothing_to_who_comes_after_it() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let mut other = pd.create_srq(1);
        for room in 1..100 {
            let srq = pd.create_srq(room);
            let qp = pd.create_qp(&cq, &cq).srq(&srq).build().unwrap();
            (0..room).for_each(|_| srq.post_recv(RecvWr::empty()).unwrap());
            assert!(srq.post_recv(RecvWr::empty()).is_err(), "it has room for as many as were asked for");
            {
                let core = &device.inner.cells[0].lock().core;
                assert_eq!(core.engine.receives_waiting(srq.inner.srq), u64::from(room));
                assert_eq!((core.shared_left.len(), core.shared_vacant.len()), (2, 0));
            }
            // As long as a queue pair uses it, it is not gone.
            other = srq;
            drop(other.clone());
            drop(qp);
        }
        drop(other);
        // Requests that wait go back with it, and those of another stay.
        let region = pd.reg_mr(vec![0; 64], roci_transport::Access::LOCAL_WRITE).unwrap();
        let [goes, stays] = [0, 32].map(|at| {
            let srq = pd.create_srq(1);
            srq.post_recv(RecvWr::new(region.buffer(at..at + 32).unwrap())).unwrap();
            srq
        });
        drop(goes);
        assert!(region.buffer(0..32).is_ok() && region.buffer(32..64).is_err());
        drop(stays);
        assert!(region.buffer(32..64).is_ok());
        let core = &device.inner.cells[0].lock().core;
        assert_eq!((core.shared_left.len(), core.shared_vacant.len()), (2, 2));
    }
}
