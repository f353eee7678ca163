//! Connections: asked for, granted, refused, ended.

use super::abi;
use super::address::Bound;
use super::channel::{self, rdma_ack_cm_event};
use super::id::{Options, Own, Phase, State, complete, reads};
use super::port::Port;
use super::{datagrams, done, queue_pair, refusal};
use crate::abi::qp_type;
use crate::device::addresses;
use crate::queue_pair::QueuePair;
use libc::{c_int, c_uint, c_void};
use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::{Qpn, Service};
use std::net::{IpAddr, SocketAddr};
use std::ptr::null_mut;
use std::sync::Arc;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_listen(id: *mut abi::CmId, _backlog: c_int) -> c_int {
    let own = Own::of(id);
    done(listen(&mut own.state(), own))
}

unsafe fn listen(state: &mut State, own: &Arc<Own>) -> Result<(), c_int> {
    if !matches!(state.phase, Phase::Idle) || state.peer.is_some() {
        return Err(libc::EINVAL);
    }
    if state.bound.is_none() {
        state.bind(own, ([0; 16], 0).into())?;
    }
    state.phase = if state.options().is_for_datagrams {
        Phase::ListeningDatagrams(listeners(state, own, ConnectionManager::listen_datagrams)?)
    } else {
        Phase::Listening(listeners(state, own, ConnectionManager::listen)?)
    };
    Ok(())
}

/// Listens at the port that an id is bound to, at each address that it is bound to.
unsafe fn listeners<L>(
    state: &State,
    own: &Arc<Own>,
    listen: impl Fn(&ConnectionManager, u16) -> Result<L, CmError>,
) -> Result<Vec<(&'static Port, L)>, c_int> {
    let address = state.bound.as_ref().map(Bound::address).ok_or(libc::EINVAL)?;
    let mut listeners = Vec::new();
    let mut refused = None;
    let at_port = |port: &'static Port| {
        let listener = listen(port.manager()?, address.port()).map_err(|error| refusal(&error))?;
        Ok((port, listener))
    };
    if let Some(port) = state.port {
        listeners.push(at_port(port)?);
    } else {
        for at in reached(address.ip(), state.options()) {
            match Port::at(at).and_then(at_port) {
                Ok(found) => listeners.push(found),
                Err(error) => refused = Some(error),
            }
        }
    }
    // At any address of a family that no device has one listens, and hears nothing.
    if let Some(error) = refused.filter(|_| listeners.is_empty()) {
        return Err(error);
    }
    if listeners.is_empty() && (!address.ip().is_unspecified() || addresses().next().is_none()) {
        return Err(libc::ENODEV);
    }
    for (port, _) in &listeners {
        port.attach(own);
    }
    Ok(listeners)
}

/// The devices' addresses that any address of a family reaches, or the loopback.
pub(crate) fn reached(ip: IpAddr, options: Options) -> impl Iterator<Item = IpAddr> {
    // IPv6's any is IPv4's as well.
    let only = ip.is_ipv4() || options.is_of_one_family;
    addresses().filter(move |at| match ip.is_unspecified() {
        true => !only || at.is_ipv4() == ip.is_ipv4(),
        false => *at == ip,
    })
}

/// What a program says when it asks or answers.
unsafe fn parameters(state: &State, conn: *const abi::ConnParam) -> Result<ConnParam, c_int> {
    if conn.is_null() && (*state.id).qp.is_null() {
        // Nobody says of which queue pair.
        return Err(libc::EINVAL);
    }
    let Options { ack_timeout, tos: traffic_class, .. } = state.options();
    let mut param = ConnParam { ack_timeout, traffic_class, ..ConnParam::default() };
    param.private_data.clone_from(&state.private_data);
    let Some(conn) = conn.as_ref() else { return Ok(param) };
    param.responder_resources = reads(conn.responder_resources)?;
    param.initiator_depth = reads(conn.initiator_depth)?;
    param.retry_count = conn.retry_count.min(7);
    param.rnr_retry_count = conn.rnr_retry_count.min(7);
    param.private_data = said(state, conn);
    Ok(param)
}

/// What the peer's user is told: what is said with each request, and behind it what is said now.
pub(crate) unsafe fn said(state: &State, conn: *const abi::ConnParam) -> Vec<u8> {
    let mut all = state.private_data.clone();
    if let Some(conn) = conn.as_ref()
        && conn.private_data_len > 0
        && !conn.private_data.is_null()
    {
        let length = usize::from(conn.private_data_len);
        all.extend_from_slice(std::slice::from_raw_parts(conn.private_data.cast(), length));
    }
    all
}

/// The type of queue pairs of a service.
pub(crate) const fn kind_of(service: Service) -> c_uint {
    match service {
        Service::Rc => qp_type::RC,
        Service::Uc => qp_type::UC,
        Service::Ud => qp_type::UD,
    }
}

/// The service of an id for connections whose queue pairs are of this type.
const fn service_of(kind: c_uint) -> Service {
    if kind == qp_type::UC { Service::Uc } else { Service::Rc }
}

/// The queue pair of an id; where it has none, the number that the program names.
pub(crate) unsafe fn queue_pair(
    id: *mut abi::CmId,
    conn: *const abi::ConnParam,
) -> Result<*mut crate::abi::Qp, Qpn> {
    let number = conn.as_ref().map_or(0, |conn| conn.qp_num);
    if (*id).qp.is_null() { Err(Qpn::new(number & 0xff_ffff)) } else { Ok((*id).qp) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_connect(id: *mut abi::CmId, conn: *mut abi::ConnParam) -> c_int {
    let own = Own::of(id);
    if let Err(error) = connect(&mut own.state(), conn) {
        return done(Err(error));
    }
    complete(id)
}

unsafe fn connect(state: &mut State, conn: *const abi::ConnParam) -> Result<(), c_int> {
    let (Some(port), Some(to), Phase::Idle) = (state.port, state.peer, &state.phase) else {
        return Err(libc::EINVAL);
    };
    if (*state.id).route.num_paths == 0 {
        return Err(libc::EINVAL);
    }
    if state.options().is_for_datagrams {
        return datagrams::ask(state, port, to, conn);
    }
    let mut param = parameters(state, conn)?;
    param.port = state.bound.as_ref().map(|bound| bound.address().port());
    let (manager, qp) = (port.manager()?, queue_pair(state.id, conn));
    let asked = match qp {
        Ok(qp) => manager.request(&QueuePair::of(qp).qp, to, &param),
        Err(number) => manager.request_number(number, service_of((*state.id).qp_type), to, &param),
    };
    let of = qp.ok().map(|qp| (qp, (*qp).qp_num));
    state.phase = Phase::Asking(asked.map_err(|error| refusal(&error))?, of);
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_establish(id: *mut abi::CmId) -> c_int {
    done(establish(&mut Own::of(id).state()))
}

fn establish(state: &mut State) -> Result<(), c_int> {
    match std::mem::replace(&mut state.phase, Phase::Over) {
        Phase::Granted(granted) => {
            state.phase = Phase::Connected(granted.ready().map_err(|error| refusal(&error))?);
            Ok(())
        }
        other => {
            state.phase = other;
            Err(libc::EINVAL)
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_accept(id: *mut abi::CmId, conn: *mut abi::ConnParam) -> c_int {
    if Own::of(id).state().options().is_for_datagrams {
        // There is nothing to wait for.
        return done(datagrams::accept(&mut Own::of(id).state(), conn));
    }
    if let Err(error) = accept(&mut Own::of(id).state(), conn) {
        return done(Err(error));
    }
    complete(id)
}

unsafe fn accept(state: &mut State, conn: *const abi::ConnParam) -> Result<(), c_int> {
    let Phase::Asked(request) = &state.phase else { return Err(libc::EINVAL) };
    let mut param = parameters(state, conn)?;
    if conn.is_null() {
        param.responder_resources = request.initiator_depth().min(param.responder_resources);
        param.initiator_depth = request.responder_resources().min(param.initiator_depth);
    }
    let qp = queue_pair(state.id, conn);
    let Phase::Asked(request) = std::mem::replace(&mut state.phase, Phase::Over) else { unreachable!() };
    let accepted = match qp {
        Ok(qp) => request.accept(&QueuePair::of(qp).qp, &param),
        Err(number) => request.accept_number(number, service_of((*state.id).qp_type), &param),
    };
    let connection = accepted.map_err(|error| refusal(&error))?;
    if let Ok(qp) = qp {
        queue_pair::is_connected(qp, connection.terms());
    }
    state.phase = Phase::Granting(connection);
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_reject(id: *mut abi::CmId, private_data: *const c_void, length: u8) -> c_int {
    let mut state = Own::of(id).state();
    let said = if private_data.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(private_data.cast::<u8>(), length.into())
    };
    done(match std::mem::replace(&mut state.phase, Phase::Over) {
        Phase::Asked(request) => request.reject(said).map_err(|error| refusal(&error)),
        Phase::Queried(request) => request.reject(said).map_err(|error| refusal(&error)),
        // What was granted is not wanted.
        Phase::Granted(granted) => granted.reject(said).map_err(|error| refusal(&error)),
        other => {
            state.phase = other;
            Err(libc::EINVAL)
        }
    })
}

/// Options of the connection are what there is not: it is refused as any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_reject_ece(
    id: *mut abi::CmId,
    private_data: *const c_void,
    length: u8,
) -> c_int {
    rdma_reject(id, private_data, length)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_disconnect(id: *mut abi::CmId) -> c_int {
    let own = Own::of(id);
    let is_told = {
        let state = own.state();
        match &state.phase {
            // Nothing is connected.
            _ if state.options().is_for_datagrams => return done(Err(libc::EINVAL)),
            Phase::Granting(connection) | Phase::Connected(connection) => {
                // What has been received is acknowledged before the queue pair takes no part any more.
                crate::device::Context::of((*id).verbs).device.hand_over();
                if !(*id).qp.is_null() {
                    queue_pair::fail((*id).qp);
                }
                connection.disconnect();
                true
            }
            // The peer has ended it, of which the program may have to take note.
            Phase::TimeWait(_) | Phase::Over => {
                if !(*id).qp.is_null() {
                    queue_pair::fail((*id).qp);
                }
                !state.mail.is_empty()
            }
            _ => return done(Err(libc::EINVAL)),
        }
    };
    if is_told { complete(id) } else { 0 }
}

/// The first request of a peer says that it knows of the connection, which the endpoint sees for itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_notify(_id: *mut abi::CmId, event: c_uint) -> c_int {
    done(if event == crate::abi::event::COMM_EST { Ok(()) } else { Err(libc::EINVAL) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_get_request(listens: *mut abi::CmId, id: *mut *mut abi::CmId) -> c_int {
    let own = Own::of(listens);
    if !own.is_synchronous() {
        return done(Err(libc::EINVAL));
    }
    if !(*listens).event.is_null() {
        rdma_ack_cm_event((*listens).event);
        (*listens).event = null_mut();
    }
    let mut event = null_mut();
    if channel::rdma_get_cm_event((*listens).channel, &raw mut event) != 0 {
        return -1;
    }
    if (*event).event != abi::event::CONNECT_REQUEST {
        rdma_ack_cm_event(event);
        return done(Err(libc::EINVAL));
    }
    let asked = (*event).id;
    let made_with = own.state().made_with;
    if let Some((pd, mut attr)) = made_with
        && queue_pair::rdma_create_qp(asked, pd, &raw mut attr) != 0
    {
        let error = crate::errno(&std::io::Error::last_os_error());
        rdma_ack_cm_event(event);
        super::id::rdma_destroy_id(asked);
        return done(Err(error));
    }
    (*asked).event = event;
    id.write(asked);
    0
}

/// Where a connection comes from, as its id has it.
pub(crate) unsafe fn ends(id: *mut abi::CmId, near: SocketAddr, far: SocketAddr) {
    let address = &mut (*id).route.addr;
    super::address::write(&raw mut address.src_storage, near);
    super::address::write(&raw mut address.dst_storage, far);
    address.addr.dgid = crate::device::gid_of(far.ip());
}
