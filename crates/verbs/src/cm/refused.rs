//! What there is not. librdmacm's own functions would take our objects for theirs, so each has one here that says so.

use super::{abi, done};
use libc::{c_int, c_void, sockaddr};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_join_multicast(
    _id: *mut abi::CmId,
    _address: *mut sockaddr,
    _context: *mut c_void,
) -> c_int {
    done(Err(crate::told(libc::EOPNOTSUPP, "there is no multicast")))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_join_multicast_ex(
    _id: *mut abi::CmId,
    _attr: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    done(Err(crate::told(libc::EOPNOTSUPP, "there is no multicast")))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_leave_multicast(_id: *mut abi::CmId, _address: *mut sockaddr) -> c_int {
    done(Err(crate::told(libc::EOPNOTSUPP, "there is no multicast")))
}

/// Extended shared receive queues are those of XRC and of tags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_srq_ex(_id: *mut abi::CmId, _init: *mut c_void) -> c_int {
    done(Err(crate::told(
        libc::EOPNOTSUPP,
        "there are no shared receive queues of XRC or of tags (rdma_create_srq_ex)",
    )))
}

/// Options of the connection that vendors agree on: there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_set_local_ece(_id: *mut abi::CmId, _ece: *mut c_void) -> c_int {
    done(Err(libc::EOPNOTSUPP))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_remote_ece(_id: *mut abi::CmId, _ece: *mut c_void) -> c_int {
    done(Err(libc::EOPNOTSUPP))
}

/// librdmacm's sockets look into what its own ids hold.
#[unsafe(no_mangle)]
pub extern "C" fn rsocket(_domain: c_int, _kind: c_int, _protocol: c_int) -> c_int {
    done(Err(crate::told(libc::EOPNOTSUPP, "there are no rsockets")))
}
