//! What a queue was made for, requests keep to; and how their ends are read one by one.
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
use roci_verbs::abi;
use roci_verbs::completion::*;
use roci_verbs::memory::*;
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

/// What names 8 octets that are not registered, go beyond their region, or are of another domain.
fn strange(end: &End, how: usize, elsewhere: *mut abi::Mr) -> abi::Sge {
    match how {
        0 => abi::Sge { lkey: 1, ..end.part(0, 8) },
        1 => end.part(8190, 8),
        _ => abi::Sge { lkey: unsafe { (*elsewhere).lkey }, ..end.part(0, 8) },
    }
}

#[test]
fn a_request_that_names_memory_that_is_not_the_queue_pairs_ends_with_an_error_in_its_turn() {
    use abi::wr_opcode::{ATOMIC_CMP_AND_SWP, RDMA_READ, RDMA_WRITE, SEND};
    for how in 0..3 {
        for (opcode, ended) in [
            (SEND, abi::wc::SEND),
            (RDMA_WRITE, abi::wc::RDMA_WRITE),
            (RDMA_READ, abi::wc::RDMA_READ),
            (ATOMIC_CMP_AND_SWP, abi::wc::COMP_SWAP),
        ] {
            let [mut near, far] = connected();
            near.memory[..16].fill(7);
            let (pd, elsewhere) = unsafe {
                let pd = ibv_alloc_pd(near.context);
                (pd, ibv_reg_mr(pd, near.memory.as_mut_ptr().cast(), 8192, RIGHTS))
            };
            let (mut one, mut two, mut three) =
                ([near.part(0, 8)], [strange(&near, how, elsewhere)], [near.part(0, 8)]);
            let mut last = request(3, RDMA_WRITE, &mut three, SIGNALED);
            rdma(&mut last, &far, 200);
            let mut wrong = request(2, opcode, &mut two, 0);
            rdma(&mut wrong, &far, 104);
            if opcode == ATOMIC_CMP_AND_SWP {
                let (remote_addr, rkey) = (far.at(104).next_multiple_of(8), unsafe { (*far.mr).rkey });
                wrong.wr.atomic = abi::Atomic { remote_addr, compare_add: 0, swap: u64::MAX, rkey };
            }
            wrong.next = &raw mut last;
            let mut first = request(1, RDMA_WRITE, &mut one, SIGNALED);
            rdma(&mut first, &far, 0);
            first.next = &raw mut wrong;
            assert_eq!(near.post(&mut first), 0);
            let told = [(); 3].map(|()| near.completion()).map(|wc| (wc.wr_id, wc.status));
            let expected = [(1, abi::wc::SUCCESS), (2, abi::wc::LOC_PROT_ERR), (3, abi::wc::WR_FLUSH_ERR)];
            assert_eq!(told, expected, "{opcode} {how}");
            assert_eq!((far.octets(0, 8), far.octets(8, 300)), (vec![7; 8], vec![0; 300]));
            // By itself it is told what it was of.
            let mut alone = request(4, opcode, &mut two, 0);
            rdma(&mut alone, &far, 0);
            assert_eq!(near.post(&mut alone), 0);
            let wc = near.completion();
            assert_eq!((wc.wr_id, wc.status, wc.opcode), (4, abi::wc::WR_FLUSH_ERR, ended));
            unsafe { assert_eq!((ibv_dereg_mr(elsewhere), ibv_dealloc_pd(pd)), (0, 0)) };
            near.close();
            far.close();
        }
    }
}

#[test]
fn a_message_that_takes_a_request_whose_memory_is_not_the_queue_pairs_ends_both_with_errors() {
    for how in 0..3 {
        let [near, mut far] = connected();
        let (pd, elsewhere) = unsafe {
            let pd = ibv_alloc_pd(far.context);
            (pd, ibv_reg_mr(pd, far.memory.as_mut_ptr().cast(), 8192, RIGHTS))
        };
        far.receive(1, &mut [far.part(100, 8)]);
        far.receive(2, &mut [strange(&far, how, elsewhere)]);
        for (wr_id, expected) in [(11, abi::wc::SUCCESS), (12, abi::wc::REM_OP_ERR)] {
            let mut parts = [near.part(0, 8)];
            assert_eq!(near.post(&mut request(wr_id, abi::wr_opcode::SEND, &mut parts, SIGNALED)), 0);
            let wc = near.completion();
            assert_eq!((wc.wr_id, wc.status), (wr_id, expected), "{how}");
        }
        let told = [(); 2].map(|()| far.completion()).map(|wc| (wc.wr_id, wc.status));
        assert_eq!(told, [(1, abi::wc::SUCCESS), (2, abi::wc::LOC_PROT_ERR)]);
        unsafe { assert_eq!((ibv_dereg_mr(elsewhere), ibv_dealloc_pd(pd)), (0, 0)) };
        near.close();
        far.close();
    }
}

#[test]
fn a_datagram_whose_memory_is_not_registered_ends_with_an_error() {
    use abi::{attr_mask as mask, qp_state as state};
    let end = End::new(abi::qp_type::UD, |_| null_mut());
    end.initialize();
    for (to, besides) in [(state::RTR, 0), (state::RTS, mask::SQ_PSN)] {
        let mut attr = abi::QpAttr { qp_state: to, ..Default::default() };
        assert_eq!(end.to(&mut attr, mask::STATE | besides), 0);
    }
    let mut to = abi::AhAttr { is_global: 1, port_num: 1, ..Default::default() };
    to.grh.dgid = end.gid();
    let ah = unsafe { ibv_create_ah(end.pd, &raw mut to) };
    for (wr_id, expected) in [(1, abi::wc::LOC_PROT_ERR), (2, abi::wc::WR_FLUSH_ERR)] {
        let mut parts = [strange(&end, 0, null_mut())];
        let mut wr = request(wr_id, abi::wr_opcode::SEND, &mut parts, 0);
        wr.wr.ud = abi::Ud { ah, remote_qpn: unsafe { (*end.qp).qp_num }, remote_qkey: 7 };
        assert_eq!(end.post(&mut wr), 0);
        let wc = end.completion();
        assert_eq!((wc.wr_id, wc.status, wc.opcode), (wr_id, expected, abi::wc::SEND));
    }
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
    end.close();
}

/// As in a packed structure of the program's, at no multiple of what C asks for.
#[repr(C, packed)]
struct Packed {
    one: u8,
    lists: [[abi::Sge; 2]; 2],
    receives: [abi::RecvWr; 2],
    two: u8,
    sends: [abi::SendWr; 2],
}

#[test]
fn requests_and_lists_of_parts_lie_at_any_address() {
    let [mut near, far] = connected();
    near.memory[..8].copy_from_slice(b"abcdefgh");
    let lists = [[near.part(0, 3), near.part(4, 2)], [far.part(10, 4), far.part(20, 60)]];
    let mut all: Box<Packed> = Box::new(Packed { lists, ..unsafe { std::mem::zeroed() } });
    unsafe {
        let mut list = |end: usize| (&raw mut all.lists).cast::<abi::Sge>().add(2 * end);
        let (from, to) = (list(0), list(1));
        let sends = (&raw mut all.sends).cast::<abi::SendWr>();
        let receives = (&raw mut all.receives).cast::<abi::RecvWr>();
        assert!(!from.is_aligned() && !to.is_aligned());
        assert!(!sends.is_aligned() && !receives.is_aligned());
        for place in [1, 0] {
            let is_last = place == 1;
            let mut wr = receive(10 + place as u64, &mut []);
            (wr.sg_list, wr.num_sge) = (to, 2);
            wr.next = if is_last { null_mut() } else { receives.add(1) };
            receives.add(place).write_unaligned(wr);
            let mut wr = request(20 + place as u64, abi::wr_opcode::SEND, &mut [], SIGNALED);
            (wr.sg_list, wr.num_sge) = (from, 2);
            wr.next = if is_last { null_mut() } else { sends.add(1) };
            sends.add(place).write_unaligned(wr);
        }
        let mut bad = null_mut();
        assert_eq!(((*far.context).ops.post_recv)(far.qp, receives, &raw mut bad), 0);
        let mut bad = null_mut();
        assert_eq!(((*near.context).ops.post_send)(near.qp, sends, &raw mut bad), 0);
    }
    for place in [0, 1] {
        let (sent, received) = (near.completion(), far.completion());
        assert_eq!((sent.wr_id, sent.status), (20 + place, abi::wc::SUCCESS));
        assert_eq!((received.wr_id, received.status, received.byte_len), (10 + place, abi::wc::SUCCESS, 5));
    }
    assert_eq!((far.octets(10, 4), far.octets(20, 1)), (b"abce".to_vec(), b"f".to_vec()));
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

#[test]
fn completions_of_an_extended_queue_are_read_one_by_one() {
    let [mut near, mut far] = connected();
    unsafe {
        // VLANs are not told.
        assert!(create_cq_ex(near.context, &mut cq_attributes(16, 1 << 8)).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
        let ex = create_cq_ex(near.context, &mut cq_attributes(16, 0x7f));
        assert!(!ex.is_null());
        let mut init = attributes(ex.cast(), abi::qp_type::RC, null_mut());
        let qp = roci_verbs::queue_pair::ibv_create_qp(near.pd, &raw mut init);
        let first = near.qp;
        let ordinary = near.cq;
        (near.qp, near.cq) = (qp, ex.cast());
        let mut init = attributes(far.cq, abi::qp_type::RC, null_mut());
        let other = roci_verbs::queue_pair::ibv_create_qp(far.pd, &raw mut init);
        let second = far.qp;
        far.qp = other;
        [&near, &far].into_iter().for_each(End::initialize);
        near.connect(&far);
        far.connect(&near);
        let mut attr = abi::PollCqAttr { comp_mask: 0 };
        let it = &raw mut *ex;
        assert_eq!(((*it).start_poll)(ex, &raw mut attr), libc::ENOENT);
        for wr_id in [1, 2] {
            near.receive(wr_id, &mut [near.part(100 * wr_id, 64)]);
        }
        for (length, opcode) in [(5, abi::wr_opcode::SEND), (7, abi::wr_opcode::SEND_WITH_IMM)] {
            let mut parts = [far.part(0, length)];
            let mut wr = request(9, opcode, &mut parts, SIGNALED);
            assert_eq!((far.post(&mut wr), far.completion().status), (0, 0));
        }
        let begin = std::time::Instant::now();
        while ((*it).start_poll)(ex, &raw mut attr) != 0 {
            assert!(begin.elapsed() < std::time::Duration::from_secs(20), "a completion comes");
        }
        let read = || ((*it).wr_id, (*it).status, ((*it).read_byte_len)(ex), ((*it).read_wc_flags)(ex));
        assert_eq!(read(), (1, abi::wc::SUCCESS, 5, 0));
        // Another thread that starts waits for the end.
        let address = ex.expose_provenance();
        std::thread::scope(|scope| {
            let starts = scope.spawn(move || {
                let ex = std::ptr::with_exposed_provenance_mut::<abi::CqEx>(address);
                let mut attr = abi::PollCqAttr { comp_mask: 0 };
                ((*ex).start_poll)(ex, &raw mut attr)
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!starts.is_finished());
            while ((*it).next_poll)(ex) != 0 {
                assert!(begin.elapsed() < std::time::Duration::from_secs(20), "another comes");
            }
            assert_eq!(read(), (2, abi::wc::SUCCESS, 7, abi::wc::WITH_IMM));
            assert_eq!(((*it).read_imm_data)(ex), 0x0403_0201u32.to_be());
            assert_eq!((((*it).read_opcode)(ex), ((*it).read_qp_num)(ex)), (abi::wc::RECV, (*qp).qp_num));
            ((*it).end_poll)(ex);
            assert_eq!(starts.join().unwrap(), libc::ENOENT);
        });
        // It is a queue as others are, too.
        near.receive(3, &mut [near.part(0, 64)]);
        let mut parts = [far.part(0, 3)];
        let mut wr = request(9, abi::wr_opcode::SEND, &mut parts, SIGNALED);
        assert_eq!((far.post(&mut wr), near.completion().byte_len), (0, 3));
        for qp in [first, second] {
            assert_eq!(roci_verbs::queue_pair::ibv_destroy_qp(qp), 0);
        }
        assert_eq!(ibv_destroy_cq(ordinary), 0);
    }
    near.close();
    far.close();
}
