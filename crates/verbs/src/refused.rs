//! What there is not. libibverbs' own functions would take our objects for theirs, so each has one here that says so.

use crate::{abi, none, told};
use libc::{c_int, c_uint, c_void};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_dmabuf_mr(
    _pd: *mut abi::Pd,
    _offset: u64,
    _length: usize,
    _iova: u64,
    _fd: c_int,
    _access: c_int,
) -> *mut abi::Mr {
    none(told(libc::EOPNOTSUPP, "no memory is registered by a DMA-BUF"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_attach_mcast(_qp: *mut abi::Qp, _gid: *const abi::Gid, _lid: u16) -> c_int {
    told(libc::EOPNOTSUPP, "there is no multicast")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_detach_mcast(_qp: *mut abi::Qp, _gid: *const abi::Gid, _lid: u16) -> c_int {
    libc::EOPNOTSUPP
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_device(_fd: c_int) -> *mut abi::Context {
    none(libc::EOPNOTSUPP)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_pd(_context: *mut abi::Context, _handle: u32) -> *mut abi::Pd {
    none(libc::EOPNOTSUPP)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_mr(_pd: *mut abi::Pd, _handle: u32) -> *mut abi::Mr {
    none(libc::EOPNOTSUPP)
}

/// Options of the connection that vendors agree on: there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_ece(_qp: *mut abi::Qp, _ece: *mut c_void) -> c_int {
    libc::EOPNOTSUPP
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_set_ece(_qp: *mut abi::Qp, _ece: *mut c_void) -> c_int {
    libc::EOPNOTSUPP
}

/// Whether octets are placed in their order: nothing is promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_qp_data_in_order(_qp: *mut abi::Qp, _op: c_uint, _flags: u32) -> c_int {
    0
}

/// Neighbours are the system's to find.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resolve_eth_l2_from_gid(
    _context: *mut abi::Context,
    _attr: *mut abi::AhAttr,
    _mac: *mut u8,
    _vid: *mut u16,
) -> c_int {
    libc::EOPNOTSUPP
}

/// Pages are the system's, and a child has copies of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_fork_init() -> c_int {
    0
}

/// A child needs nothing of its parent's pages here (`IBV_FORK_UNNEEDED`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_is_fork_initialized() -> c_uint {
    2
}
