//! Shared receive queues.

use crate::device::Context;
use crate::events::Told;
use crate::memory::{Domain, free};
use crate::{abi, calls, code, none, posting};
use libc::c_int;
use roci_endpoint::SharedReceiveQueue;
use std::cell::UnsafeCell;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
pub(crate) struct Shared {
    /// The program writes there.
    base: UnsafeCell<abi::Srq>,
    pub(crate) srq: SharedReceiveQueue,
    pub(crate) users: AtomicU32,
    /// Parts that each of its requests may have.
    pub(crate) max_sge: u32,
    pub(crate) told: Told,
}

impl Shared {
    pub(crate) unsafe fn of<'a>(srq: *mut abi::Srq) -> &'a Self {
        &*srq.cast::<Self>()
    }
}

/// What of a queue is to change.
const MAX_WR: c_int = 1;
const LIMIT: c_int = 2;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut abi::Pd, init: *mut abi::SrqInitAttr) -> *mut abi::Srq {
    let attr = &mut (*init).attr;
    let most = (calls::WORKS.cast_unsigned(), posting::PARTS.cast_unsigned());
    if attr.max_wr == 0 || attr.max_wr > most.0 || attr.max_sge > most.1 {
        return none(libc::EINVAL);
    }
    let domain = Domain::of(pd);
    let srq = domain.pd.create_srq(attr.max_wr);
    let number = srq.srq_num();
    let made = Box::into_raw(Box::new(Shared {
        base: UnsafeCell::new(abi::Srq {
            context: (*pd).context,
            srq_context: (*init).srq_context,
            pd,
            handle: number,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            events_completed: 0,
        }),
        srq,
        users: AtomicU32::new(0),
        max_sge: attr.max_sge.max(1),
        told: Told::default(),
    }));
    attr.max_sge = (*made).max_sge;
    let context = Context::of((*pd).context);
    context.shared.write().unwrap_or_else(PoisonError::into_inner).insert(number, made.cast());
    domain.users.fetch_add(1, Ordering::SeqCst);
    made.cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_srq(srq: *mut abi::Srq, attr: *mut abi::SrqAttr, mask: c_int) -> c_int {
    let it = &Shared::of(srq).srq;
    // All of it or nothing.
    let room = if mask & MAX_WR == 0 { it.max_wr() } else { (*attr).max_wr };
    if mask & LIMIT != 0 && (*attr).srq_limit > room {
        return libc::EINVAL;
    }
    let resized = || {
        if mask & MAX_WR == 0 {
            return Ok(());
        }
        if (*attr).max_wr == 0 || (*attr).max_wr > calls::WORKS.cast_unsigned() {
            return Err(libc::EINVAL);
        }
        it.resize((*attr).max_wr).map_err(|_| libc::EINVAL)
    };
    code(resized().and_then(|()| {
        if mask & LIMIT == 0 {
            return Ok(());
        }
        it.set_limit((*attr).srq_limit).map_err(|_| libc::EINVAL)
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_srq(srq: *mut abi::Srq, attr: *mut abi::SrqAttr) -> c_int {
    let Shared { srq, max_sge, .. } = Shared::of(srq);
    attr.write(abi::SrqAttr { max_wr: srq.max_wr(), max_sge: *max_sge, srq_limit: srq.limit() });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut abi::Srq) -> c_int {
    code(free(&Shared::of(srq).users).map(|()| {
        let (number, context) = ((*srq).handle, Context::of((*srq).context));
        context.shared.write().unwrap_or_else(PoisonError::into_inner).remove(&number);
        Shared::of(srq).told.wait();
        let shared = Box::from_raw(srq.cast::<Shared>());
        Domain::of(shared.base.into_inner().pd).users.fetch_sub(1, Ordering::SeqCst);
    }))
}
