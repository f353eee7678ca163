//! Ids made in one step, and names.

use super::abi::{self, AddrInfo, port_space, rai};
use super::id::{Own, rdma_create_id, rdma_destroy_id};
use super::resolve::{rdma_bind_addr, rdma_resolve_addr, rdma_resolve_route};
use super::{address, done, queue_pair};
use crate::abi::{Pd, QpInitAttr, qp_type};
use libc::{addrinfo, c_char, c_int, c_uint, sockaddr, socklen_t};
use std::ptr::null_mut;

/// Time that a peer's address is given to be found, which it takes none of.
const RESOLVE_MS: c_int = 2000;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_ep(
    id: *mut *mut abi::CmId,
    res: *mut AddrInfo,
    pd: *mut Pd,
    init: *mut QpInitAttr,
) -> c_int {
    let (found, mut made) = (&*res, null_mut());
    let failed = rdma_create_id(null_mut(), &raw mut made, null_mut(), found.ai_port_space.cast_unsigned());
    if failed != 0 {
        return failed;
    }
    let kind = found.ai_qp_type.cast_unsigned();
    if kind == qp_type::UC {
        (*made).qp_type = kind;
    }
    let is_ready = if found.ai_flags & rai::PASSIVE != 0 {
        let bound = rdma_bind_addr(made, found.ai_src_addr);
        if bound == 0 && !init.is_null() {
            Own::of(made).state().made_with = Some((pd, QpInitAttr { qp_type: kind, ..*init }));
        }
        bound
    } else {
        resolved(made, found, pd, init)
    };
    if is_ready != 0 {
        let error = crate::errno(&std::io::Error::last_os_error());
        rdma_destroy_ep(made);
        return done(Err(error));
    }
    id.write(made);
    0
}

/// An id that is to ask for a connection.
unsafe fn resolved(id: *mut abi::CmId, found: &AddrInfo, pd: *mut Pd, init: *mut QpInitAttr) -> c_int {
    let steps = [
        rdma_resolve_addr(id, found.ai_src_addr, found.ai_dst_addr, RESOLVE_MS),
        rdma_resolve_route(id, RESOLVE_MS),
    ];
    if let Some(failed) = steps.into_iter().find(|step| *step != 0) {
        return failed;
    }
    if found.ai_connect_len > 0 && !found.ai_connect.is_null() {
        let said = std::slice::from_raw_parts(found.ai_connect.cast::<u8>(), found.ai_connect_len);
        Own::of(id).state().private_data = said.to_vec();
    }
    if init.is_null() {
        return 0;
    }
    (*init).qp_type = found.ai_qp_type.cast_unsigned();
    queue_pair::rdma_create_qp(id, pd, init)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_ep(id: *mut abi::CmId) {
    queue_pair::rdma_destroy_qp(id);
    queue_pair::rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

/// An address of its own, for who frees it by `free`.
unsafe fn copied(from: *const sockaddr, length: socklen_t) -> *mut sockaddr {
    let made = libc::malloc(length as usize);
    if !made.is_null() {
        libc::memcpy(made, from.cast(), length as usize);
    }
    made.cast()
}

/// What the system knows of a name, its first address.
unsafe fn named(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&AddrInfo>,
    into: &mut AddrInfo,
) -> Result<(), c_int> {
    let mut asked: addrinfo = std::mem::zeroed();
    let flags = hints.map_or(0, |hints| hints.ai_flags);
    let is_datagrams = hints.is_some_and(is_for_datagrams);
    asked.ai_socktype = if is_datagrams { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    if let Some(hints) = hints
        && (hints.ai_flags & rai::FAMILY != 0 || hints.ai_family != libc::AF_UNSPEC)
    {
        asked.ai_family = hints.ai_family;
    }
    for (theirs, ours) in [(rai::PASSIVE, libc::AI_PASSIVE), (rai::NUMERICHOST, libc::AI_NUMERICHOST)] {
        asked.ai_flags |= if flags & theirs != 0 { ours } else { 0 };
    }
    let mut found = null_mut();
    let failed = libc::getaddrinfo(node, service, &raw const asked, &raw mut found);
    if failed != 0 {
        return Err(failed);
    }
    let (first, is_passive) = (&*found, flags & rai::PASSIVE != 0);
    let address = copied(first.ai_addr, first.ai_addrlen);
    let name = if first.ai_canonname.is_null() { null_mut() } else { libc::strdup(first.ai_canonname) };
    if is_passive {
        (into.ai_src_addr, into.ai_src_len, into.ai_src_canonname) = (address, first.ai_addrlen, name);
    } else {
        (into.ai_dst_addr, into.ai_dst_len, into.ai_dst_canonname) = (address, first.ai_addrlen, name);
    }
    into.ai_family = first.ai_family;
    libc::freeaddrinfo(found);
    Ok(())
}

/// Whether a program asks where datagrams go.
fn is_for_datagrams(hints: &AddrInfo) -> bool {
    hints.ai_qp_type.cast_unsigned() == qp_type::UD || hints.ai_port_space.cast_unsigned() == port_space::UDP
}

/// librdmacm's own one looks for the kernel's device first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const AddrInfo,
    res: *mut *mut AddrInfo,
) -> c_int {
    let hints = hints.as_ref();
    if node.is_null() && service.is_null() && hints.is_none() {
        return done(Err(libc::EINVAL));
    }
    let mut made: Box<AddrInfo> = Box::new(std::mem::zeroed());
    if (!node.is_null() || !service.is_null())
        && let Err(failed) = named(node, service, hints, &mut made)
    {
        return failed;
    }
    if let Some(hints) = hints {
        made.ai_flags = hints.ai_flags;
        for (asked, length, into, has) in [
            (hints.ai_src_addr, hints.ai_src_len, &mut made.ai_src_addr, &mut made.ai_src_len),
            (hints.ai_dst_addr, hints.ai_dst_len, &mut made.ai_dst_addr, &mut made.ai_dst_len),
        ] {
            if into.is_null() && !asked.is_null() && length > 0 {
                let length = length.min(address::length((*asked).sa_family.into()));
                (*into, *has) = (copied(asked, length), length);
                made.ai_family = (*asked).sa_family.into();
            }
        }
    }
    let (kind, space) = hints.map_or((0, 0), |hints| (hints.ai_qp_type, hints.ai_port_space));
    let is_datagrams = hints.is_some_and(is_for_datagrams);
    let usual: (c_uint, c_uint) =
        if is_datagrams { (qp_type::UD, port_space::UDP) } else { (qp_type::RC, port_space::TCP) };
    let or = |asked: c_int, usual: c_uint| if asked == 0 { usual.cast_signed() } else { asked };
    (made.ai_qp_type, made.ai_port_space) = (or(kind, usual.0), or(space, usual.1));
    res.write(Box::into_raw(made));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_freeaddrinfo(mut res: *mut AddrInfo) {
    while !res.is_null() {
        let it = Box::from_raw(res);
        for part in [it.ai_src_addr, it.ai_dst_addr] {
            libc::free(part.cast());
        }
        for part in [it.ai_src_canonname, it.ai_dst_canonname] {
            libc::free(part.cast());
        }
        res = it.ai_next;
    }
}
