//! Asynchronous events.

use crate::device::{self, Context};
use crate::queue_pair::QueuePair;
use crate::shared::Shared;
use crate::{abi, errno, none};
use libc::c_int;
use roci_endpoint::Event;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Events that name an object and that the program has not acknowledged: until it has, the object stays.
#[derive(Default)]
pub(crate) struct Told {
    count: Mutex<u32>,
    acknowledged: Condvar,
}

impl Told {
    fn count(&self) -> MutexGuard<'_, u32> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program is told another. Whoever calls this holds the lock under which the object is taken from its table.
    pub(crate) fn another(&self) {
        *self.count() += 1;
    }

    pub(crate) fn acknowledge(&self, count: u32) {
        let mut left = self.count();
        *left = left.saturating_sub(count);
        self.acknowledged.notify_all();
    }

    /// Waits until all have been acknowledged. The object is in no table any more, so that none comes.
    pub(crate) fn wait(&self) {
        let mut left = self.count();
        while *left > 0 {
            left = self.acknowledged.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_async_event(
    context: *mut abi::Context,
    event: *mut abi::AsyncEvent,
) -> c_int {
    let of = Context::of(context);
    of.device.hand_over();
    loop {
        if let Some(told) = of.events.poll().and_then(|it| named(of, it)) {
            event.write(told);
            return 0;
        }
        match device::wait((*context).async_fd) {
            Ok(Some(_)) => {}
            Ok(None) => {
                none::<()>(libc::EAGAIN);
                return -1;
            }
            Err(error) => {
                none::<()>(errno(&error));
                return -1;
            }
        }
    }
}

/// An event with the queue that it is of, which stays until it is acknowledged; `None` where that is gone.
unsafe fn named(context: &Context, event: Event) -> Option<abi::AsyncEvent> {
    let event_type = match event {
        Event::Established(_) => abi::event::COMM_EST,
        Event::SendQueueDrained(_) => abi::event::SQ_DRAINED,
        Event::AccessError(_) => abi::event::QP_ACCESS_ERR,
        Event::RequestError(_) => abi::event::QP_REQ_ERR,
        Event::LastReceiveReached(_) => abi::event::QP_LAST_WQE_REACHED,
        Event::SrqLimitReached(number) => {
            let shared = context.shared.read().unwrap_or_else(PoisonError::into_inner);
            let element = *shared.get(&number)?;
            Shared::of(element).told.another();
            let event_type = abi::event::SRQ_LIMIT_REACHED;
            return Some(abi::AsyncEvent { element: element.cast(), event_type });
        }
        Event::DeviceFatal => {
            let element = std::ptr::null_mut();
            return Some(abi::AsyncEvent { element, event_type: abi::event::DEVICE_FATAL });
        }
        _ => return None,
    };
    let alive = context.queue_pairs.read().unwrap_or_else(PoisonError::into_inner);
    let element = alive.get(&event.qp_num()?.get())?.0;
    if event_type == abi::event::SQ_DRAINED && !(*element).tells_of_drain() {
        return None;
    }
    (*element).told.another();
    Some(abi::AsyncEvent { element: element.cast(), event_type })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut abi::AsyncEvent) {
    match (*event).event_type {
        abi::event::DEVICE_FATAL => {}
        abi::event::SRQ_LIMIT_REACHED => Shared::of((*event).element.cast()).told.acknowledge(1),
        _ => QueuePair::of((*event).element.cast()).told.acknowledge(1),
    }
}
