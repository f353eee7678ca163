//! Unreliable connections as a program in C makes them.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

mod ends;

use ends::*;
use roci_verbs::abi::{self, attr_mask as mask, qp_state as state};
use roci_verbs::queue_pair::*;
use std::mem::zeroed;
use std::ptr::null_mut;

/// What brings an unreliable connection to RTR and to RTS, and no more.
const RECEIVES: i32 = mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN;
const OF_ANSWERS: [i32; 6] = [
    mask::TIMEOUT,
    mask::RETRY_CNT,
    mask::RNR_RETRY,
    mask::MAX_QP_RD_ATOMIC,
    mask::MAX_DEST_RD_ATOMIC,
    mask::MIN_RNR_TIMER,
];

fn connect(end: &End, peer: &End) {
    let mut attr = abi::QpAttr {
        qp_state: state::RTR,
        path_mtu: 1,
        dest_qp_num: unsafe { (*peer.qp).qp_num },
        rq_psn: 77,
        sq_psn: 77,
        ..Default::default()
    };
    (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, 1);
    attr.ah_attr.grh.dgid = peer.gid();
    assert_eq!(end.to(&mut attr, mask::STATE | RECEIVES & !mask::DEST_QPN), libc::EINVAL);
    for answered in OF_ANSWERS {
        assert_eq!(end.to(&mut attr, mask::STATE | RECEIVES | answered), libc::EINVAL, "{answered:#x}");
    }
    assert_eq!(end.to(&mut attr, mask::STATE | RECEIVES), 0);
    attr.qp_state = state::RTS;
    for answered in OF_ANSWERS {
        assert_eq!(end.to(&mut attr, mask::STATE | mask::SQ_PSN | answered), libc::EINVAL, "{answered:#x}");
    }
    assert_eq!(end.to(&mut attr, mask::STATE), libc::EINVAL);
    assert_eq!(end.to(&mut attr, mask::STATE | mask::SQ_PSN), 0);
    for answered in OF_ANSWERS {
        assert_eq!(end.to(&mut attr, answered), libc::EINVAL, "{answered:#x}");
    }
}

fn unreliable() -> [End; 2] {
    let ends = [(); 2].map(|()| End::new(abi::qp_type::UC, |_| null_mut()));
    ends.iter().for_each(End::initialize);
    let [near, far] = &ends;
    connect(near, far);
    connect(far, near);
    ends
}

#[test]
fn it_sends_and_writes_is_asked_for_nothing_of_answers_and_says_what_it_is() {
    let [mut near, far] = unreliable();
    near.memory[..1000].fill(7);
    far.receive(1, &mut [far.part(2000, 500), far.part(3000, 1000)]);
    far.receive(2, &mut []);
    let mut parts = [near.part(0, 1000)];
    let mut wr = request(3, abi::wr_opcode::SEND, &mut parts, SIGNALED);
    assert_eq!(near.post(&mut wr), 0);
    let mut wr = request(4, abi::wr_opcode::RDMA_WRITE_WITH_IMM, &mut parts, SIGNALED);
    rdma(&mut wr, &far, 4096);
    assert_eq!(near.post(&mut wr), 0);
    assert_eq!([near.completion(), near.completion()].map(|wc| (wc.wr_id, wc.status)), [(3, 0), (4, 0)]);
    let came = [far.completion(), far.completion()];
    assert_eq!(came.map(|wc| (wc.wr_id, wc.status, wc.byte_len)), [(1, 0, 1000), (2, 0, 1000)]);
    assert_eq!(came[1].imm_data, 0x0403_0201u32.to_be());
    let [one, two, three] =
        [(2000, 500), (3000, 500), (4096, 1000)].map(|(at, length)| far.octets(at, length));
    assert!([one, two, three].concat().iter().all(|octet| *octet == 7));
    // What finds no receive is gone, and nobody hears of it.
    let mut wr = request(5, abi::wr_opcode::SEND, &mut parts, SIGNALED);
    assert_eq!((near.post(&mut wr), near.completion().status), (0, 0));
    let (mut attr, mut init) = unsafe { (zeroed::<abi::QpAttr>(), zeroed()) };
    let asked = unsafe { ibv_query_qp(near.qp, &raw mut attr, 0, &raw mut init) };
    assert_eq!((asked, attr.qp_state, init.qp_type), (0, state::RTS, abi::qp_type::UC));
    for operation in [
        abi::wr_opcode::RDMA_READ,
        abi::wr_opcode::ATOMIC_CMP_AND_SWP,
        abi::wr_opcode::ATOMIC_FETCH_AND_ADD,
        abi::wr_opcode::SEND_WITH_INV,
    ] {
        let mut parts = [near.part(0, 8)];
        let mut wr = request(6, operation, &mut parts, SIGNALED);
        rdma(&mut wr, &far, 0);
        assert_eq!(near.post(&mut wr), libc::EINVAL, "{operation}");
    }
    assert!(near.is_silent() && far.is_silent());
    near.close();
    far.close();
}

#[test]
fn a_drained_queue_tells_and_a_failed_one_gives_back_what_was_posted() {
    let [near, far] = unreliable();
    let mut drain = abi::QpAttr { qp_state: state::SQD, en_sqd_async_notify: 1, ..Default::default() };
    assert_eq!(near.to(&mut drain, mask::STATE | mask::EN_SQD_ASYNC_NOTIFY), 0);
    assert_eq!(event(near.context).event_type, abi::event::SQ_DRAINED);
    far.receive(9, &mut [far.part(0, 10)]);
    let mut attr = abi::QpAttr { qp_state: state::ERR, ..Default::default() };
    assert_eq!(far.to(&mut attr, mask::STATE), 0);
    let flushed = far.completion();
    assert_eq!((flushed.wr_id, flushed.status), (9, abi::wc::WR_FLUSH_ERR));
    near.close();
    far.close();
}

#[test]
fn of_other_types_there_are_no_queue_pairs() {
    let end = End::new(abi::qp_type::UC, |_| null_mut());
    // Raw packets, and XRC's.
    for kind in [0, 1, 5, 8, 9, 10] {
        let mut init = attributes(end.cq, kind, null_mut());
        assert!(unsafe { ibv_create_qp(end.pd, &raw mut init) }.is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    }
    end.close();
}

#[test]
fn calls_are_those_of_its_operations() {
    let end = End::new(abi::qp_type::UC, |_| null_mut());
    // `IBV_QP_EX_WITH_…` of WRITE, of SEND, and of READ.
    const SENDS_AND_WRITES: u64 = 0xf;
    for (asked, kind, is_made) in [
        (SENDS_AND_WRITES, abi::qp_type::UC, true),
        (SENDS_AND_WRITES | 1 << 4, abi::qp_type::UC, false),
        (SENDS_AND_WRITES | 1 << 4, abi::qp_type::RC, true),
    ] {
        let plain = attributes(end.cq, kind, null_mut());
        let mut init = abi::QpInitAttrEx {
            send_cq: end.cq,
            recv_cq: end.cq,
            cap: plain.cap,
            qp_type: kind,
            // A protection domain, and operations.
            comp_mask: 1 | 64,
            pd: end.pd,
            send_ops_flags: asked,
            ..unsafe { zeroed() }
        };
        let qp = unsafe { (table(end.context).create_qp_ex)(end.context, &raw mut init) };
        assert_eq!(!qp.is_null(), is_made, "{asked:#x} of {kind}");
        if qp.is_null() {
            assert_eq!(errno(), libc::EOPNOTSUPP);
        } else {
            assert_eq!(unsafe { ibv_destroy_qp(qp) }, 0);
        }
    }
    end.close();
}
