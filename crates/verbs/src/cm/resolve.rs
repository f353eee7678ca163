//! The address of an id, its peer's, and the way there.

use super::abi::{self, event};
use super::address::{Bound, read, write};
use super::done;
use super::id::{Own, Phase, State, complete};
use super::port::Port;
use crate::device::{Context, addresses, gid_of, mtu_code};
use libc::{c_int, sockaddr};
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::sync::Arc;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_bind_addr(id: *mut abi::CmId, address: *mut sockaddr) -> c_int {
    let own = Own::of(id);
    done(read(address).and_then(|address| own.state().bind(own, address)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_resolve_addr(
    id: *mut abi::CmId,
    source: *mut sockaddr,
    destination: *mut sockaddr,
    _timeout_ms: c_int,
) -> c_int {
    let own = Own::of(id);
    let resolved = {
        let mut state = own.state();
        resolve(&mut state, own, source, destination)
    };
    if let Err(error) = resolved {
        return done(Err(error));
    }
    complete(id)
}

unsafe fn resolve(
    state: &mut State,
    own: &Arc<Own>,
    source: *mut sockaddr,
    destination: *mut sockaddr,
) -> Result<(), c_int> {
    let to = read(destination)?;
    if to.ip().is_multicast() {
        return Err(crate::told(libc::EOPNOTSUPP, "there is no multicast"));
    }
    if !matches!(state.phase, Phase::Idle) || to.ip().is_unspecified() {
        return Err(libc::EINVAL);
    }
    if !source.is_null() && state.bound.is_none() {
        state.bind(own, read(source)?)?;
    }
    if state.port.is_none() {
        let from = state.bound.as_ref().map(|bound| bound.address().ip());
        let port = match from.filter(|from| !from.is_unspecified()).map_or_else(|| Port::toward(to), Port::at)
        {
            Ok(port) => port,
            // There is a way, and no device.
            Err(libc::ENODEV) => {
                state.tell(own, event::ADDR_ERROR, -libc::ENODEV);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        port.manager()?;
        state.join(own, port);
        match &mut state.bound {
            Some(bound) => bound.moved(port.address),
            None => state.bound = Some(Bound::new(SocketAddr::new(port.address, 0), state.options())?),
        }
    }
    let own_address = state.bound.as_ref().map(Bound::address).ok_or(libc::EINVAL)?;
    if own_address.is_ipv4() != to.is_ipv4() {
        return Err(libc::EAFNOSUPPORT);
    }
    let address = &mut (*state.id).route.addr;
    write(&raw mut address.src_storage, own_address);
    write(&raw mut address.dst_storage, to);
    address.addr.dgid = gid_of(to.ip());
    state.peer = Some(to);
    state.tell(own, event::ADDR_RESOLVED, 0);
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_resolve_route(id: *mut abi::CmId, _timeout_ms: c_int) -> c_int {
    let own = Own::of(id);
    let is_resolved = {
        let state = own.state();
        let is_resolved = state.peer.is_some() && matches!(state.phase, Phase::Idle);
        if is_resolved {
            route(state.id);
            state.tell(own, event::ROUTE_RESOLVED, 0);
        }
        is_resolved
    };
    if is_resolved { complete(id) } else { done(Err(libc::EINVAL)) }
}

/// The one way that there is.
pub(crate) unsafe fn route(id: *mut abi::CmId) {
    let route = &mut (*id).route;
    if !route.path_rec.is_null() {
        return;
    }
    let mtu = mtu_code(Context::of((*id).verbs).device.active_mtu());
    let ends = &route.addr.addr;
    route.path_rec = Box::into_raw(Box::new(abi::PathRec {
        dgid: ends.dgid,
        sgid: ends.sgid,
        hop_limit: 64,
        reversible: 1,
        numb_path: 1,
        pkey: 0xffff,
        // Exactly this, and 25 Gb/s as the port says.
        mtu_selector: 2,
        mtu: u8::try_from(mtu).unwrap_or(0),
        rate_selector: 2,
        rate: 15,
        packet_life_time_selector: 2,
        packet_life_time: 18,
        ..abi::PathRec::default()
    }));
    route.num_paths = 1;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut crate::abi::Context {
    let ports: Vec<_> = addresses().filter_map(|address| Port::at(address).ok()).collect();
    let size = size_of::<*mut crate::abi::Context>();
    let list = libc::calloc(ports.len() + 1, size).cast::<*mut crate::abi::Context>();
    if list.is_null() {
        return null_mut();
    }
    for (place, port) in ports.iter().enumerate() {
        list.add(place).write(port.context);
    }
    if !count.is_null() {
        count.write(c_int::try_from(ports.len()).unwrap_or(c_int::MAX));
    }
    list
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_free_devices(list: *mut *mut crate::abi::Context) {
    libc::free(list.cast());
}
