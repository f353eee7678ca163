//! Asynchronous events.

use crate::device::{self, Context};
use crate::{abi, errno, none, posting, shared};
use libc::{c_int, c_void};
use roci_endpoint::Event;

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

/// An event with the queue that it is of; `None` where that is gone.
fn named(context: &Context, event: Event) -> Option<abi::AsyncEvent> {
    let event_type = match event {
        Event::Established(_) => abi::event::COMM_EST,
        Event::SendQueueDrained(_) => abi::event::SQ_DRAINED,
        Event::AccessError(_) => abi::event::QP_ACCESS_ERR,
        Event::RequestError(_) => abi::event::QP_REQ_ERR,
        Event::LastReceiveReached(_) => abi::event::QP_LAST_WQE_REACHED,
        Event::SrqLimitReached(number) => {
            let element = shared::named(context, number).cast::<c_void>();
            let event_type = abi::event::SRQ_LIMIT_REACHED;
            return (!element.is_null()).then_some(abi::AsyncEvent { element, event_type });
        }
        Event::DeviceFatal => {
            let element = std::ptr::null_mut();
            return Some(abi::AsyncEvent { element, event_type: abi::event::DEVICE_FATAL });
        }
        _ => return None,
    };
    let element = posting::alive(context, event.qp_num()?.get())?.cast();
    Some(abi::AsyncEvent { element, event_type })
}

/// An event is no more than what it says: none has to be waited for when its queue goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(_event: *mut abi::AsyncEvent) {}
