//! Extended completion queues: completions are read one by one, and of each what the program wants of it (`ibv_start_poll` and on).

use crate::abi;
use crate::completion::{self, Besides, Queue};
use crate::device::{Context, nanoseconds};
use crate::memory::Domain;
use crate::{none, told};
use libc::{c_int, c_uint};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// What one thread reads between start and end.
#[derive(Default)]
pub(crate) struct Reading {
    /// Whether a thread is at it: others wait, from their start on.
    busy: AtomicBool,
    /// Of that thread alone: the completion, and when it was told.
    current: UnsafeCell<(abi::Wc, Duration)>,
}

/// When requests have ended, by the device's clock and by the system's.
const TIMES: u64 = 1 << 7 | 1 << 11;
/// All that can be read: `IBV_WC_STANDARD_FLAGS`, and times.
const POSSIBLE: u64 = 0x7f | TIMES;
/// What `comp_mask` says to be there, and what may be there: that one thread polls alone, or that overruns are no matter; a parent domain.
const HAS_FLAGS: u32 = 1;
const FLAGS: u32 = 3;
const HAS_DOMAIN: u32 = 2;

pub(crate) unsafe extern "C" fn create_cq_ex(
    context: *mut abi::Context,
    init: *mut abi::CqInitAttrEx,
) -> *mut abi::CqEx {
    let it = &*init;
    if it.wc_flags & !POSSIBLE != 0 {
        return none(told(libc::EOPNOTSUPP, "completions tell no tags or VLANs"));
    }
    let has = |what| it.comp_mask & what != 0;
    if it.comp_mask & !(HAS_FLAGS | HAS_DOMAIN) != 0 || has(HAS_FLAGS) && it.flags & !FLAGS != 0 {
        return none(libc::EOPNOTSUPP);
    }
    let domain = if has(HAS_DOMAIN) { it.parent_domain } else { null_mut() };
    if has(HAS_DOMAIN) && !Domain::is_parent(domain) {
        return none(told(libc::EINVAL, "what a completion queue is made with is no parent domain"));
    }
    let cqe = c_int::try_from(it.cqe).unwrap_or(c_int::MAX);
    let vector = c_int::try_from(it.comp_vector).unwrap_or(c_int::MAX);
    let besides = Besides { has_times: it.wc_flags & TIMES != 0, vector, domain };
    completion::make(context, cqe, it.cq_context, it.channel, &besides).map_or_else(none, |cq| cq.cast())
}

/// An extended queue with these calls.
pub(crate) fn made(cq_base: abi::Cq) -> abi::CqEx {
    let absent = std::ptr::null();
    abi::CqEx {
        cq_base,
        comp_mask: 0,
        status: 0,
        wr_id: 0,
        start_poll,
        next_poll,
        end_poll,
        read_opcode,
        read_vendor_err,
        read_byte_len,
        read_imm_data,
        read_qp_num,
        read_src_qp,
        read_wc_flags,
        read_slid,
        read_sl,
        read_dlid_path_bits,
        read_completion_ts,
        read_cvlan_flow_tag_tm_info: [absent; 3],
        read_completion_wallclock_ns,
    }
}

unsafe fn of<'a>(cq: *mut abi::CqEx) -> &'a Queue {
    Queue::of(cq.cast())
}

/// The next completion becomes the one that is read. The caller is between start and end.
unsafe fn next(cq: *mut abi::CqEx) -> c_int {
    let queue = of(cq);
    let context = Context::of((*cq).cq_base.context);
    // What nobody asked to hear of is passed over.
    let mut ended = std::iter::from_fn(|| queue.cq.poll());
    let told = ended.find_map(|it| {
        let at = it.time().unwrap_or_default();
        completion::convert(context, it).map(|wc| (wc, at))
    });
    let Some((wc, at)) = told else { return libc::ENOENT };
    ((*cq).status, (*cq).wr_id) = (wc.status, wc.wr_id);
    queue.reading.current.get().write((wc, at));
    0
}

unsafe extern "C" fn start_poll(cq: *mut abi::CqEx, attr: *mut abi::PollCqAttr) -> c_int {
    if (*attr).comp_mask != 0 {
        return libc::EINVAL;
    }
    let reading = &of(cq).reading;
    while reading.busy.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
    let found = next(cq);
    if found != 0 {
        // It is not ended then.
        reading.busy.store(false, Ordering::Release);
        Context::of((*cq).cq_base.context).device.pause();
    }
    found
}

unsafe extern "C" fn next_poll(cq: *mut abi::CqEx) -> c_int {
    next(cq)
}

unsafe extern "C" fn end_poll(cq: *mut abi::CqEx) {
    of(cq).reading.busy.store(false, Ordering::Release);
}

/// What is read now. The caller is between start and end, or the only one.
unsafe fn current(cq: *mut abi::CqEx) -> abi::Wc {
    (*of(cq).reading.current.get()).0
}

/// When it was told; 0 where the queue was not made to say so.
unsafe fn time(cq: *mut abi::CqEx) -> Duration {
    (*of(cq).reading.current.get()).1
}

unsafe extern "C" fn read_opcode(cq: *mut abi::CqEx) -> c_uint {
    current(cq).opcode
}

unsafe extern "C" fn read_vendor_err(cq: *mut abi::CqEx) -> u32 {
    current(cq).vendor_err
}

unsafe extern "C" fn read_byte_len(cq: *mut abi::CqEx) -> u32 {
    current(cq).byte_len
}

unsafe extern "C" fn read_imm_data(cq: *mut abi::CqEx) -> u32 {
    current(cq).imm_data
}

unsafe extern "C" fn read_qp_num(cq: *mut abi::CqEx) -> u32 {
    current(cq).qp_num
}

unsafe extern "C" fn read_src_qp(cq: *mut abi::CqEx) -> u32 {
    current(cq).src_qp
}

unsafe extern "C" fn read_wc_flags(cq: *mut abi::CqEx) -> c_uint {
    current(cq).wc_flags
}

unsafe extern "C" fn read_slid(cq: *mut abi::CqEx) -> u32 {
    current(cq).slid.into()
}

unsafe extern "C" fn read_sl(cq: *mut abi::CqEx) -> u8 {
    current(cq).sl
}

unsafe extern "C" fn read_dlid_path_bits(cq: *mut abi::CqEx) -> u8 {
    current(cq).dlid_path_bits
}

unsafe extern "C" fn read_completion_ts(cq: *mut abi::CqEx) -> u64 {
    nanoseconds(time(cq))
}

unsafe extern "C" fn read_completion_wallclock_ns(cq: *mut abi::CqEx) -> u64 {
    let at = time(cq);
    if at.is_zero() {
        return 0;
    }
    let wall = Context::of((*cq).cq_base.context).device.wall_clock(at);
    nanoseconds(wall.duration_since(UNIX_EPOCH).unwrap_or_default())
}
