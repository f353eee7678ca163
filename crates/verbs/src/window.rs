//! Memory windows.

use crate::device::Context;
use crate::memory::{Domain, rights};
use crate::posting;
use crate::queue_pair::QueuePair;
use crate::{abi, code, none, told};
use abi::mw_type;
use libc::{c_int, c_uint};
use roci_endpoint::{MemoryWindow, SendWr, WindowKind, WindowTarget};
use std::sync::atomic::Ordering;

#[repr(C)]
struct Window {
    base: abi::Mw,
    window: MemoryWindow,
}

pub(crate) unsafe extern "C" fn alloc_mw(pd: *mut abi::Pd, kind: c_uint) -> *mut abi::Mw {
    let of = match kind {
        mw_type::TYPE_1 => WindowKind::Type1,
        mw_type::TYPE_2 => WindowKind::Type2,
        _ => return none(told(libc::EINVAL, "a memory window is of type 1 or 2")),
    };
    let domain = Domain::of(pd);
    let Ok(window) = domain.pd.alloc_mw(of) else {
        return none(told(libc::ENOMEM, "there are too many memory windows"));
    };
    domain.users.fetch_add(1, Ordering::SeqCst);
    let base = abi::Mw { context: (*pd).context, pd, rkey: window.rkey(), handle: 0, kind };
    Box::into_raw(Box::new(Window { base, window })).cast()
}

pub(crate) unsafe extern "C" fn dealloc_mw(mw: *mut abi::Mw) -> c_int {
    let window = Box::from_raw(mw.cast::<Window>());
    Domain::of(window.base.pd).users.fetch_sub(1, Ordering::SeqCst);
    0
}

/// A window of type 1 has another key after each binding, which the program finds in it as soon as this is posted.
pub(crate) unsafe extern "C" fn bind_mw(qp: *mut abi::Qp, mw: *mut abi::Mw, bind: *mut abi::MwBind) -> c_int {
    // Those from zero on are of type 2.
    let is_zero_based = (*bind).bind_info.mw_access_flags & abi::access::ZERO_BASED != 0;
    if (*mw).kind != mw_type::TYPE_1 || is_zero_based {
        return libc::EINVAL;
    }
    let rkey = (*mw).rkey & !0xff | (*mw).rkey.wrapping_add(1) & 0xff;
    let of = abi::Bind { mw, rkey, bind_info: (*bind).bind_info };
    code(posting::post_bind(QueuePair::of(qp), &*bind, &of).map(|()| (*mw).rkey = rkey))
}

/// The request that binds a window. Whether that can be done turns out when it is carried out.
pub(crate) unsafe fn binding(context: &Context, bind: &abi::Bind) -> Result<SendWr, c_int> {
    let abi::MwBindInfo { mr, addr, length, mw_access_flags: flags } = bind.bind_info;
    let target = if mr.is_null() || length == 0 {
        WindowTarget::nothing()
    } else {
        context.regions.target((*mr).lkey, addr, length, rights(flags)).ok_or(libc::EINVAL)?
    };
    let target = if flags & abi::access::ZERO_BASED != 0 { target.zero_based() } else { target };
    Ok(SendWr::bind(&(*bind.mw.cast::<Window>()).window, bind.rkey, target))
}
