//! librdmacm's interface with unreliable connections.
#![allow(
    missing_docs,
    dead_code,
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

use roci_verbs::abi::{self, attr_mask as mask, qp_state, qp_type};
use roci_verbs::cm::abi::{AddrInfo, CmId, ConnParam, event, port_space, rai};
use roci_verbs::cm::connect::*;
use roci_verbs::cm::endpoint::*;
use roci_verbs::cm::id::*;
use roci_verbs::cm::queue_pair::*;
use roci_verbs::completion::*;
use roci_verbs::queue_pair::*;
use std::ffi::CString;
use std::mem::zeroed;
use std::ptr::null_mut;

#[path = "common/ids.rs"]
mod ids;
use ids::*;

const UNRELIABLE: abi::QpInitAttr = abi::QpInitAttr { qp_type: qp_type::UC, ..unasked() };

const fn unasked() -> abi::QpInitAttr {
    let cap =
        abi::QpCap { max_send_wr: 4, max_recv_wr: 4, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 64 };
    let (qp_context, send_cq, recv_cq, srq) = (null_mut(), null_mut(), null_mut(), null_mut());
    abi::QpInitAttr { qp_context, send_cq, recv_cq, srq, cap, qp_type: qp_type::RC, sq_sig_all: 1 }
}

/// An address as `rdma_getaddrinfo` finds it for unreliable connections.
unsafe fn found(node: &str, port: u16, flags: i32) -> *mut AddrInfo {
    let [node, port] = [node.to_owned(), port.to_string()].map(|it| CString::new(it).unwrap());
    let mut hints: AddrInfo = zeroed();
    (hints.ai_flags, hints.ai_port_space) = (flags, port_space::TCP as i32);
    hints.ai_qp_type = qp_type::UC as i32;
    let mut found = null_mut();
    assert_eq!(rdma_getaddrinfo(node.as_ptr(), port.as_ptr(), &raw const hints, &raw mut found), 0);
    assert_eq!((*found).ai_qp_type, qp_type::UC as i32);
    found
}

#[test]
fn ids_made_in_one_step_connect_by_the_service_that_was_hinted_at() {
    devices();
    unsafe {
        let (at, mut listens) = (found(FAR, 0, rai::PASSIVE), null_mut());
        assert_eq!(rdma_create_ep(&raw mut listens, at, null_mut(), &mut { UNRELIABLE }), 0);
        rdma_freeaddrinfo(at);
        assert_eq!(rdma_listen(listens, 0), 0);
        let port = u16::from_be(rdma_get_src_port(listens));
        let server = listens.expose_provenance();
        let answers = std::thread::spawn(move || {
            let (listens, mut id) = (std::ptr::with_exposed_provenance_mut(server), null_mut());
            assert_eq!(rdma_get_request(listens, &raw mut id), 0);
            assert_eq!(((*id).qp_type, (*(*id).qp).qp_type), (qp_type::UC, qp_type::UC));
            assert_eq!(rdma_accept(id, null_mut()), 0);
            id.expose_provenance()
        });
        let (to, mut id) = (found(FAR, port, 0), null_mut());
        assert_eq!(rdma_create_ep(&raw mut id, to, null_mut(), &mut { UNRELIABLE }), 0);
        rdma_freeaddrinfo(to);
        assert_eq!((*(*id).qp).qp_type, qp_type::UC);
        assert_eq!(rdma_connect(id, null_mut()), 0);
        let theirs: *mut CmId = std::ptr::with_exposed_provenance_mut(answers.join().unwrap());
        send((*id).qp, (*theirs).qp);
        send((*theirs).qp, (*id).qp);
        assert_eq!(rdma_disconnect(id), 0);
        [id, theirs, listens].into_iter().for_each(|id| rdma_destroy_ep(id));
    }
}

/// Brings a queue pair that the program made through a state, as its id says, which says nothing of answers.
unsafe fn brought(id: *mut CmId, qp: *mut abi::Qp, to: u32) {
    let (mut attr, mut what) = (abi::QpAttr { qp_state: to, ..zeroed() }, 0);
    assert_eq!(rdma_init_qp_attr(id, &raw mut attr, &raw mut what), 0);
    assert_eq!(what & (mask::TIMEOUT | mask::RETRY_CNT | mask::MAX_DEST_RD_ATOMIC), 0);
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, what), 0);
}

#[test]
fn queue_pairs_that_the_program_made_itself_are_connected_by_their_numbers() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = resolved(FAR, port);
        let own = |id: *mut CmId| {
            let cq = ibv_create_cq((*id).verbs, 8, null_mut(), null_mut(), 0);
            let mut init = abi::QpInitAttr { send_cq: cq, recv_cq: cq, ..UNRELIABLE };
            let qp = ibv_create_qp((*id).pd, &raw mut init);
            brought(id, qp, qp_state::INIT);
            (qp, cq)
        };
        let numbered = |qp: *mut abi::Qp| ConnParam { qp_num: (*qp).qp_num, ..saying(b"number") };
        // As `rdma_create_ep` has it; who asks says so, and who is asked is told.
        (*near).qp_type = qp_type::UC;
        let (near_qp, near_cq) = own(near);
        assert_eq!(rdma_connect(near, &mut numbered(near_qp)), 0);
        let far = next(at_far, event::CONNECT_REQUEST).id;
        assert_eq!((*far).qp_type, qp_type::UC);
        let (far_qp, far_cq) = own(far);
        [qp_state::RTR, qp_state::RTS].into_iter().for_each(|to| brought(far, far_qp, to));
        assert_eq!(rdma_accept(far, &mut numbered(far_qp)), 0);
        next(at_near, event::CONNECT_RESPONSE);
        [qp_state::RTR, qp_state::RTS].into_iter().for_each(|to| brought(near, near_qp, to));
        assert_eq!(rdma_establish(near), 0);
        next(at_far, event::ESTABLISHED);
        send(near_qp, far_qp);
        send(far_qp, near_qp);
        for (qp, cq) in [(near_qp, near_cq), (far_qp, far_cq)] {
            assert_eq!((ibv_destroy_qp(qp), ibv_destroy_cq(cq)), (0, 0));
        }
        gone(null_mut(), far);
        gone(at_far, listens);
        gone(at_near, near);
    }
}

#[test]
fn who_is_to_accept_with_another_service_does_not_and_who_asked_hears_why() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = resolved(FAR, port);
        assert_eq!(rdma_create_qp(near, null_mut(), &mut { UNRELIABLE }), 0);
        assert_eq!(rdma_connect(near, null_mut()), 0);
        let far = next(at_far, event::CONNECT_REQUEST).id;
        assert_eq!(rdma_create_qp(far, null_mut(), &mut attributes()), 0);
        assert_eq!((rdma_accept(far, null_mut()), errno()), (-1, libc::EINVAL));
        // Invalid transport service type (IBTA Vol 1 §12.6.7.2).
        assert_eq!(next(at_near, event::REJECTED).status, 9);
        gone(null_mut(), far);
        gone(at_far, listens);
        gone(at_near, near);
    }
}
