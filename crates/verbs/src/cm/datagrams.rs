//! Ids for datagrams: which queue pair takes them is asked for and told, and nothing is connected.

use super::abi::{self, event, port_space};
use super::channel::Mail;
use super::id::{self, Own, Phase, State};
use super::port::Port;
use super::{connect, refusal, resolve};
use crate::abi::{AhAttr, GlobalRoute, QpAttr, attr_mask as mask, qp_state as state};
use crate::device::gid_of;
use crate::queue_pair::modify;
use libc::{c_int, c_uint};
use roci_endpoint::cm::{CmError, DatagramPeer, DatagramRequest, UDP_Q_KEY};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Asks who listens where datagrams are to go.
pub(crate) unsafe fn ask(
    state: &mut State,
    port: &'static Port,
    to: SocketAddr,
    conn: *const abi::ConnParam,
) -> Result<(), c_int> {
    let from = state.bound.as_ref().map(|bound| bound.address().port());
    let asked = port.manager()?.resolve_service(to, from, &connect::said(state, conn));
    state.phase = Phase::Resolving(asked.map_err(|error| refusal(&error))?);
    Ok(())
}

/// Tells who asks that they go to the queue pair of the id, or to that which the program names.
pub(crate) unsafe fn accept(state: &mut State, conn: *const abi::ConnParam) -> Result<(), c_int> {
    if !matches!(state.phase, Phase::Queried(_)) || conn.is_null() && (*state.id).qp.is_null() {
        return Err(libc::EINVAL);
    }
    let said = connect::said(state, conn);
    let number = match connect::queue_pair(state.id, conn) {
        Ok(qp) => roci_endpoint::Qpn::new((*qp).qp_num),
        Err(number) => number,
    };
    let Phase::Queried(request) = std::mem::replace(&mut state.phase, Phase::Over) else { unreachable!() };
    request.accept(number, UDP_Q_KEY, &said).map_err(|error| refusal(&error))
}

/// What has come for an id that listens.
pub(crate) fn requests(state: &State, port: &Port, own: &Arc<Own>) -> Vec<(Arc<Own>, u16, DatagramRequest)> {
    let Phase::ListeningDatagrams(listeners) = &state.phase else { return Vec::new() };
    let here = listeners.iter().filter(|(at, _)| std::ptr::eq(*at, port));
    let all = here.flat_map(|(_, listener)| {
        let next = || listener.get_request(Duration::ZERO);
        std::iter::from_fn(next).map(|request| (own.clone(), listener.port(), request))
    });
    all.collect()
}

/// A peer asks who listens.
pub(crate) unsafe fn asked(
    state: &State,
    own: &Arc<Own>,
    port: &'static Port,
    number: u16,
    request: DatagramRequest,
) {
    let listens = &*state.id;
    let made = id::new(listens.channel, listens.context, false, port_space::UDP);
    let its = Own::of(made);
    let (peer, private_data) = (request.peer(), request.private_data().to_vec());
    {
        let mut child = its.state();
        child.join(its, port);
        child.peer = Some(peer);
        child.phase = Phase::Queried(request);
        connect::ends(made, SocketAddr::new(port.address, number), peer);
        resolve::route(made);
    }
    let none = abi::UdParam { qp_num: 0, qkey: 0, ..param(peer.ip()) };
    let mail = Mail::new(own.clone(), made, event::CONNECT_REQUEST, 0).to(state.id);
    state.mail.put(mail.with_datagrams(none, &private_data));
}

/// The way to a peer.
fn param(peer: IpAddr) -> abi::UdParam {
    let grh = GlobalRoute { dgid: gid_of(peer), hop_limit: 64, ..GlobalRoute::default() };
    let ah_attr = AhAttr { grh, is_global: 1, port_num: 1, ..AhAttr::default() };
    let (private_data, private_data_len) = (std::ptr::null(), 0);
    abi::UdParam { private_data, private_data_len, ah_attr, qp_num: 0, qkey: 0 }
}

/// What has become of what we asked for.
pub(crate) fn answered(state: &State, own: &Arc<Own>, answer: Result<DatagramPeer, CmError>) {
    let tell = |event: c_uint, status: c_int, ud: abi::UdParam, private_data: &[u8]| {
        let mail = Mail::new(own.clone(), state.id, event, status);
        state.mail.put(mail.with_datagrams(ud, private_data));
    };
    let unknown = || param(state.peer.map_or(IpAddr::from([0; 4]), |peer| peer.ip()));
    match answer {
        Ok(DatagramPeer { address, qpn, q_key, private_data }) => {
            let mut ud = abi::UdParam { qp_num: qpn.get(), qkey: q_key, ..param(address) };
            ud.ah_attr.grh.traffic_class = state.options().tos.unwrap_or(0);
            tell(event::ESTABLISHED, 0, ud, &private_data);
        }
        Err(CmError::Unresolved { status, private_data, .. }) => {
            tell(event::UNREACHABLE, status.into(), unknown(), &private_data);
        }
        Err(CmError::Unreachable(_)) => tell(event::UNREACHABLE, -libc::ETIMEDOUT, unknown(), &[]),
        Err(error) => tell(event::UNREACHABLE, -refusal(&error), unknown(), &[]),
    }
}

/// What brings a queue pair for datagrams to a state.
pub(crate) fn attributes(to: c_uint) -> Option<(QpAttr, c_int)> {
    let attr = QpAttr { qp_state: to, port_num: 1, qkey: UDP_Q_KEY, ..QpAttr::default() };
    let what = match to {
        state::INIT => mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::QKEY,
        state::RTR => mask::STATE,
        state::RTS => mask::STATE | mask::SQ_PSN,
        _ => return None,
    };
    Some((attr, what))
}

/// Makes a queue pair for datagrams ready, of which there is nothing to agree.
pub(crate) unsafe fn made_ready(qp: *mut crate::abi::Qp) -> Result<(), c_int> {
    let mut steps = [state::INIT, state::RTR, state::RTS].into_iter().filter_map(attributes);
    steps.try_for_each(|(attr, what)| modify(qp, &attr, what))
}
