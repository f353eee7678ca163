//! Queue pairs and shared receive queues of ids.

use super::abi;
use super::id::{Own, Phase};
use super::{datagrams, done};
use crate::abi::{
    AhAttr, CompChannel, Context, Cq, GlobalRoute, Pd, Qp, QpAttr, QpInitAttr, QpInitAttrEx, SrqInitAttr,
    access, attr_mask as mask, qp_state as state, qp_type,
};
use crate::completion::{ibv_create_comp_channel, ibv_create_cq, ibv_destroy_comp_channel, ibv_destroy_cq};
use crate::device::{gid_of, mtu_code};
use crate::queue_pair::{HAS_PD, create_qp_ex, ibv_create_qp, ibv_destroy_qp, modify, took};
use crate::shared::{ibv_create_srq, ibv_destroy_srq};
use libc::{c_int, c_uint};
use roci_endpoint::cm::{ConnParam, Terms};
use std::ptr::null_mut;

/// What is made for an id where its program brings none.
struct Queues {
    was_without: (bool, bool),
}

impl Queues {
    /// Gives the queue pair completion queues; those that are made are the id's.
    unsafe fn made(
        id: *mut abi::CmId,
        sizes: (u32, u32),
        send_cq: &mut *mut Cq,
        recv_cq: &mut *mut Cq,
    ) -> Result<Self, c_int> {
        let it = &mut *id;
        let made = Self { was_without: (it.send_cq.is_null(), it.recv_cq.is_null()) };
        let each = [
            (recv_cq, sizes.1, &mut it.recv_cq, &mut it.recv_cq_channel),
            (send_cq, sizes.0, &mut it.send_cq, &mut it.send_cq_channel),
        ];
        for (asked, size, own, channel) in each {
            if !asked.is_null() {
                continue;
            }
            if own.is_null()
                && let Err(error) = queue(it.verbs, id, size, own, channel)
            {
                made.undo(id);
                return Err(error);
            }
            *asked = *own;
        }
        Ok(made)
    }

    unsafe fn undo(&self, id: *mut abi::CmId) {
        let it = &mut *id;
        if self.was_without.0 {
            dispose(&mut it.send_cq, &mut it.send_cq_channel);
        }
        if self.was_without.1 {
            dispose(&mut it.recv_cq, &mut it.recv_cq_channel);
        }
    }
}

unsafe fn queue(
    verbs: *mut Context,
    id: *mut abi::CmId,
    size: u32,
    cq: &mut *mut Cq,
    channel: &mut *mut CompChannel,
) -> Result<(), c_int> {
    let failed = || crate::errno(&std::io::Error::last_os_error());
    *channel = ibv_create_comp_channel(verbs);
    if channel.is_null() {
        return Err(failed());
    }
    let size = c_int::try_from(size.max(1)).unwrap_or(c_int::MAX);
    *cq = ibv_create_cq(verbs, size, id.cast(), *channel, 0);
    if cq.is_null() {
        let error = failed();
        dispose(cq, channel);
        return Err(error);
    }
    Ok(())
}

unsafe fn dispose(cq: &mut *mut Cq, channel: &mut *mut CompChannel) {
    if !cq.is_null() {
        ibv_destroy_cq(*cq);
        *cq = null_mut();
    }
    if !channel.is_null() {
        ibv_destroy_comp_channel(*channel);
        *channel = null_mut();
    }
}

/// The queues that were made for an id go with what used them.
unsafe fn dispose_all(id: *mut abi::CmId) {
    let it = &mut *id;
    if it.qp.is_null() && it.srq.is_null() {
        dispose(&mut it.recv_cq, &mut it.recv_cq_channel);
        dispose(&mut it.send_cq, &mut it.send_cq_channel);
    }
}

/// That an id may have a queue pair in this domain, its own where none is named.
unsafe fn domain(id: *mut abi::CmId, pd: *mut Pd) -> Result<*mut Pd, c_int> {
    let it = &*id;
    let pd = if pd.is_null() { it.pd } else { pd };
    let does = it.qp.is_null() && !it.verbs.is_null() && !pd.is_null() && (*pd).context == it.verbs;
    if does { Ok(pd) } else { Err(libc::EINVAL) }
}

/// Makes the queue pair of an id, and brings it to INIT, and one for datagrams on to RTS.
unsafe fn made(id: *mut abi::CmId, qp: *mut Qp, queues: &Queues) -> Result<(), c_int> {
    if qp.is_null() {
        let error = crate::errno(&std::io::Error::last_os_error());
        queues.undo(id);
        return Err(error);
    }
    let is_ready = if (*qp).qp_type == qp_type::UD {
        datagrams::made_ready(qp)
    } else {
        let (attr, what) = initial();
        modify(qp, &attr, what)
    };
    if let Err(error) = is_ready {
        ibv_destroy_qp(qp);
        queues.undo(id);
        return Err(error);
    }
    // Who looks at the id for news sees the one or the other.
    let _state = Own::of(id).state();
    // Its memory is registered there (`rdma_reg_msgs`).
    ((*id).qp, (*id).pd, (*id).qp_type) = (qp, (*qp).pd, (*qp).qp_type);
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_qp(id: *mut abi::CmId, pd: *mut Pd, init: *mut QpInitAttr) -> c_int {
    let made = domain(id, pd).and_then(|pd| {
        let it = &mut *init;
        let sizes = (it.cap.max_send_wr, it.cap.max_recv_wr);
        let queues = Queues::made(id, sizes, &mut it.send_cq, &mut it.recv_cq)?;
        if it.srq.is_null() {
            it.srq = (*id).srq;
        }
        made(id, ibv_create_qp(pd, init), &queues)
    });
    done(made)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_qp_ex(id: *mut abi::CmId, init: *mut QpInitAttrEx) -> c_int {
    let asked = if (*init).comp_mask & HAS_PD == 0 { null_mut() } else { (*init).pd };
    let made = domain(id, asked).and_then(|pd| {
        let it = &mut *init;
        (it.pd, it.comp_mask) = (pd, it.comp_mask | HAS_PD);
        let sizes = (it.cap.max_send_wr, it.cap.max_recv_wr);
        let queues = Queues::made(id, sizes, &mut it.send_cq, &mut it.recv_cq)?;
        if it.srq.is_null() {
            it.srq = (*id).srq;
        }
        made(id, create_qp_ex((*id).verbs, init), &queues)
    });
    done(made)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_qp(id: *mut abi::CmId) {
    let qp = {
        let _state = Own::of(id).state();
        std::mem::replace(&mut (*id).qp, null_mut())
    };
    if !qp.is_null() {
        ibv_destroy_qp(qp);
    }
    dispose_all(id);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_create_srq(id: *mut abi::CmId, pd: *mut Pd, init: *mut SrqInitAttr) -> c_int {
    let made = domain(id, pd).and_then(|pd| {
        if !(*id).srq.is_null() {
            return Err(libc::EINVAL);
        }
        (*id).srq = ibv_create_srq(pd, init);
        if (*id).srq.is_null() { Err(crate::errno(&std::io::Error::last_os_error())) } else { Ok(()) }
    });
    done(made)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_srq(id: *mut abi::CmId) {
    let srq = std::mem::replace(&mut (*id).srq, null_mut());
    if !srq.is_null() {
        ibv_destroy_srq(srq);
    }
    dispose_all(id);
}

/// What brings a queue pair to INIT.
fn initial() -> (QpAttr, c_int) {
    let attr = QpAttr {
        qp_state: state::INIT,
        qp_access_flags: access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC,
        port_num: 1,
        ..QpAttr::default()
    };
    (attr, mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS)
}

/// What brings it to RTR and to RTS.
fn agreed(terms: &Terms, kind: c_uint) -> (QpAttr, c_int, c_int) {
    let (dgid, traffic_class) = (gid_of(terms.peer.address), terms.traffic_class);
    let grh = GlobalRoute { dgid, hop_limit: 64, traffic_class, ..GlobalRoute::default() };
    let attr = QpAttr {
        ah_attr: AhAttr { grh, is_global: 1, port_num: 1, ..AhAttr::default() },
        path_mtu: mtu_code(terms.mtu),
        dest_qp_num: terms.peer.qpn.get(),
        rq_psn: terms.peer.psn.get(),
        max_dest_rd_atomic: terms.responses,
        // 0.64 ms.
        min_rnr_timer: 12,
        sq_psn: terms.send_psn.get(),
        timeout: terms.ack_timeout,
        retry_cnt: terms.retry,
        rnr_retry: terms.rnr_retry,
        max_rd_atomic: terms.reads,
        ..QpAttr::default()
    };
    let receive = mask::STATE | mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN;
    let send = mask::STATE | mask::SQ_PSN;
    if kind == qp_type::UC {
        return (attr, receive, send);
    }
    let sends_again = mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
    (attr, receive | mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER, send | sends_again)
}

/// The endpoint has connected a queue pair.
pub(crate) unsafe fn is_connected(qp: *mut Qp, terms: &Terms) {
    let (attr, receive, send) = agreed(terms, (*qp).qp_type);
    took(qp, state::RTS, &attr, receive | send);
}

/// A queue pair whose connection is over carries nothing more.
pub(crate) unsafe fn fail(qp: *mut Qp) {
    let attr = QpAttr { qp_state: state::ERR, ..QpAttr::default() };
    // It may have failed by itself.
    let _ = modify(qp, &attr, mask::STATE);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_init_qp_attr(id: *mut abi::CmId, attr: *mut QpAttr, what: *mut c_int) -> c_int {
    let to = (*attr).qp_state;
    let found = attributes(id, to).map(|(found, bits)| {
        attr.write(QpAttr { qp_state: to, ..found });
        what.write(bits);
    });
    done(found)
}

unsafe fn attributes(id: *mut abi::CmId, to: c_uint) -> Result<(QpAttr, c_int), c_int> {
    let mut state = Own::of(id).state();
    if state.options().is_for_datagrams && !(*id).verbs.is_null() {
        return datagrams::attributes(to).ok_or(libc::EINVAL);
    }
    if to == state::INIT && !(*id).verbs.is_null() {
        return Ok(initial());
    }
    let asked = ConnParam { traffic_class: state.options().tos, ..ConnParam::default() };
    let terms = match &mut state.phase {
        Phase::Granted(granted) => granted.granted().ok().flatten().map(|(terms, _)| terms),
        Phase::Asked(request) => request.terms(&asked).ok(),
        Phase::Granting(connection) | Phase::Connected(connection) => Some(*connection.terms()),
        _ => None,
    };
    let (attr, receive, send) = agreed(&terms.ok_or(libc::EINVAL)?, (*id).qp_type);
    match to {
        state::RTR => Ok((attr, receive)),
        state::RTS => Ok((attr, send)),
        _ => Err(libc::EINVAL),
    }
}
