//! What a queue was made for, requests keep to; and how their ends are read one by one.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

mod ends;

use ends::*;
use roci_verbs::abi;
use roci_verbs::completion::*;
use std::ptr::null_mut;

#[test]
fn a_request_of_more_parts_or_octets_inline_than_its_queue_was_made_for_is_refused() {
    let [near, far] = connected();
    // Two parts, and 64 octets inline.
    let inline = abi::send_flags::INLINE;
    for (parts, length, flags, refused) in
        [(2, 40, 0, 0), (3, 8, 0, libc::EINVAL), (2, 32, inline, 0), (2, 33, inline, libc::EINVAL)]
    {
        let mut list: Vec<_> = (0..parts).map(|place| near.part(100 * place, length)).collect();
        let mut wr = request(1, abi::wr_opcode::RDMA_WRITE, &mut list, SIGNALED | flags);
        rdma(&mut wr, &far, 0);
        assert_eq!(near.post(&mut wr), refused, "{parts} of {length}");
        if refused == 0 {
            assert_eq!(near.completion().status, abi::wc::SUCCESS);
        }
        let mut list: Vec<_> = (0..parts).map(|place| near.part(100 * place, length)).collect();
        let (mut wr, mut bad) = (receive(1, &mut list), null_mut());
        let posted = unsafe { ((*near.context).ops.post_recv)(near.qp, &raw mut wr, &raw mut bad) };
        assert_eq!((posted, bad.is_null()), if parts > 2 { (libc::EINVAL, false) } else { (0, true) });
    }
    near.close();
    far.close();
}

#[test]
fn a_queue_that_asked_again_after_it_was_told_has_both_notifications_taken_one_by_one() {
    let [near, far] = connected();
    unsafe {
        let channel = ibv_create_comp_channel(near.context);
        libc::fcntl((*channel).fd, libc::F_SETFL, libc::O_NONBLOCK);
        let cq = ibv_create_cq(near.context, 4, null_mut(), channel, 0);
        let mut init = attributes(cq, abi::qp_type::RC, null_mut());
        let other = roci_verbs::queue_pair::ibv_create_qp(near.pd, &raw mut init);
        initialize(other);
        let mut fail = abi::QpAttr { qp_state: abi::qp_state::ERR, ..Default::default() };
        let changed = roci_verbs::queue_pair::ibv_modify_qp(other, &raw mut fail, abi::attr_mask::STATE);
        assert_eq!(changed, 0);
        for wr_id in [1, 2] {
            ((*near.context).ops.req_notify_cq)(cq, 0);
            // In the error state it is flushed.
            let (mut wr, mut bad) = (receive(wr_id, &mut []), null_mut());
            assert_eq!(((*near.context).ops.post_recv)(other, &raw mut wr, &raw mut bad), 0);
        }
        let (mut of, mut context) = (null_mut(), null_mut());
        let mut told = || ibv_get_cq_event(channel, &raw mut of, &raw mut context);
        assert_eq!([told(), told(), told()], [0, 0, -1]);
        ibv_ack_cq_events(cq, 2);
        assert_eq!(roci_verbs::queue_pair::ibv_destroy_qp(other), 0);
        assert_eq!((ibv_destroy_cq(cq), ibv_destroy_comp_channel(channel)), (0, 0));
    }
    near.close();
    far.close();
}
