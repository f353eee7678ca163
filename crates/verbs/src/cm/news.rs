//! What becomes of connections, as events.

use super::abi::{self, event, port_space};
use super::channel::Mail;
use super::id::{self, Own, Phase, State};
use super::port::Port;
use super::{connect, datagrams, queue_pair, refusal, resolve};
use crate::abi::Qp;
use crate::device::Context;
use crate::queue_pair::{QueuePair, is_there};
use libc::{c_int, c_uint};
use roci_endpoint::cm::{CmError, ConnParam, ConnectRequest, Connecting, Terms};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Looks what has become of the ids of a port.
///
/// Requests that have come are told of last: who ends a connection and asks for another is heard of in this order, as at the kernel, and is
/// not turned away by a program that serves one at a time.
pub(crate) fn look(port: &'static Port, ids: &[Arc<Own>]) {
    let requests: Vec<_> = ids.iter().flat_map(|own| own.state().requests(port, own)).collect();
    let queries: Vec<_> = ids.iter().flat_map(|own| datagrams::requests(&own.state(), port, own)).collect();
    ids.iter().for_each(became);
    for (own, number, request) in requests {
        let state = own.state();
        // Who listens no longer rejects what came, by dropping it.
        if !state.id.is_null() {
            // SAFETY: the id is there as long as its state says so, which is locked.
            unsafe { asked(&state, &own, port, number, request) };
        }
    }
    for (own, number, request) in queries {
        let state = own.state();
        if !state.id.is_null() {
            // SAFETY: as above.
            unsafe { datagrams::asked(&state, &own, port, number, request) };
        }
    }
}

impl State {
    /// What has come for an id that listens, and at which port.
    fn requests(&self, port: &Port, own: &Arc<Own>) -> Vec<(Arc<Own>, u16, ConnectRequest)> {
        let Phase::Listening(listeners) = &self.phase else { return Vec::new() };
        let here = listeners.iter().filter(|(at, _)| std::ptr::eq(*at, port));
        let all = here.flat_map(|(_, listener)| {
            let next = || listener.get_request(Duration::ZERO).ok().flatten();
            std::iter::from_fn(next).map(|request| (own.clone(), listener.port(), request))
        });
        all.collect()
    }
}

/// Looks what has become of an id.
fn became(own: &Arc<Own>) {
    let mut state = own.state();
    if state.id.is_null() {
        return;
    }
    // SAFETY: the id is there as long as its state says so, which is locked.
    unsafe {
        match std::mem::replace(&mut state.phase, Phase::Over) {
            Phase::Asking(asked, qp) => answered(&mut state, own, asked, qp),
            Phase::Resolving(mut asked) => match asked.wait(Duration::ZERO).transpose() {
                Some(answer) => datagrams::answered(&state, own, answer),
                None => state.phase = Phase::Resolving(asked),
            },
            other => state.phase = other,
        }
        if let Phase::Asked(request) = &state.phase
            && let Some(why) = request.withdrawn()
        {
            state.phase = Phase::Over;
            refused(&state, own, &why);
        }
        if let Phase::Granting(connection) = &state.phase {
            let established = connection.poll_established();
            granted(&mut state, own, established);
        }
        state.phase = match std::mem::replace(&mut state.phase, Phase::Over) {
            Phase::Connected(connection) if connection.has_left() => {
                state.tell(own, event::DISCONNECTED, 0);
                Phase::TimeWait(connection)
            }
            Phase::TimeWait(connection) if connection.is_forgotten() => {
                state.tell(own, event::TIMEWAIT_EXIT, 0);
                Phase::Over
            }
            other => other,
        };
    }
}

/// A peer asks who listens.
unsafe fn asked(state: &State, own: &Arc<Own>, port: &'static Port, number: u16, request: ConnectRequest) {
    // Of a program that serves one and ends there would be nobody left whom the peer could ask for less.
    let Ok(terms) = request.terms(&ConnParam::default()) else {
        request.reject_path_mtu();
        return;
    };
    let listens = &*state.id;
    let made = id::new(listens.channel, listens.context, false, port_space::TCP);
    (*made).qp_type = connect::kind_of(request.service());
    let its = Own::of(made);
    let peer = request.peer();
    let conn = abi::ConnParam {
        responder_resources: request.initiator_depth(),
        initiator_depth: request.responder_resources(),
        retry_count: terms.retry,
        rnr_retry_count: terms.rnr_retry,
        qp_num: terms.peer.qpn.get(),
        ..abi::ConnParam::NONE
    };
    let private_data = request.private_data().to_vec();
    {
        let mut child = its.state();
        child.join(its, port);
        child.peer = Some(peer);
        child.phase = Phase::Asked(request);
        connect::ends(made, SocketAddr::new(port.address, number), peer);
        resolve::route(made);
    }
    let mail = Mail::new(own.clone(), made, event::CONNECT_REQUEST, 0).to(state.id);
    state.mail.put(mail.with(conn, &private_data));
}

/// What a peer says of a connection.
fn said(terms: &Terms) -> abi::ConnParam {
    abi::ConnParam {
        responder_resources: terms.responses,
        initiator_depth: terms.reads,
        rnr_retry_count: terms.rnr_retry,
        qp_num: terms.peer.qpn.get(),
        ..abi::ConnParam::NONE
    }
}

/// What has become of what we asked for.
unsafe fn answered(state: &mut State, own: &Arc<Own>, mut asked: Connecting, of: Option<(*mut Qp, u32)>) {
    let tell = |state: &State, event: c_uint, terms: &Terms, private_data: &[u8]| {
        let mail = Mail::new(own.clone(), state.id, event, 0);
        state.mail.put(mail.with(said(terms), private_data));
    };
    let Some((qp, number)) = of else {
        match asked.granted() {
            Ok(None) => state.phase = Phase::Asking(asked, None),
            Ok(Some((terms, private_data))) => {
                tell(state, event::CONNECT_RESPONSE, &terms, private_data);
                state.phase = Phase::Granted(asked);
            }
            Err(error) => refused(state, own, &error),
        }
        return;
    };
    let has = |port: &Port| is_there(Context::of(port.context), qp, number);
    let is_there = (*state.id).qp == qp && state.port.is_some_and(has);
    if !is_there {
        state.tell(own, event::CONNECT_ERROR, -libc::EINVAL);
        return;
    }
    match asked.wait(&QueuePair::of(qp).qp, Duration::ZERO) {
        Ok(None) => state.phase = Phase::Asking(asked, of),
        Ok(Some(connection)) => {
            queue_pair::is_connected(qp, connection.terms());
            tell(state, event::ESTABLISHED, connection.terms(), connection.private_data());
            state.phase = Phase::Connected(connection);
        }
        Err(error) => {
            queue_pair::fail(qp);
            refused(state, own, &error);
        }
    }
}

/// What has become of what we granted.
unsafe fn granted(state: &mut State, own: &Arc<Own>, established: Result<Option<()>, CmError>) {
    match established {
        Ok(None) => {}
        Ok(Some(())) => {
            if let Phase::Granting(connection) = std::mem::replace(&mut state.phase, Phase::Over) {
                let mail = Mail::new(own.clone(), state.id, event::ESTABLISHED, 0);
                state.mail.put(mail.with(said(connection.terms()), &[]));
                state.phase = Phase::Connected(connection);
            }
        }
        Err(error) => {
            state.phase = Phase::Over;
            if !(*state.id).qp.is_null() {
                queue_pair::fail((*state.id).qp);
            }
            refused(state, own, &error);
        }
    }
}

/// There is no connection.
fn refused(state: &State, own: &Arc<Own>, error: &CmError) {
    let (event, status, private_data): (_, c_int, &[u8]) = match error {
        CmError::Unreachable(_) | CmError::Unanswered(_) => (event::UNREACHABLE, -libc::ETIMEDOUT, &[]),
        CmError::Rejected { reason, private_data, .. } => (event::REJECTED, (*reason).into(), private_data),
        error => (event::CONNECT_ERROR, -refusal(error), &[]),
    };
    let mail = Mail::new(own.clone(), state.id, event, status);
    state.mail.put(mail.with(abi::ConnParam::NONE, private_data));
}
