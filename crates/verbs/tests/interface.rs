//! What a program in C meets, without one: the functions and the calls behind the header's inline ones.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

mod ends;

use ends::*;
use roci_verbs::abi::{self, attr_mask as mask, qp_state as state};
use roci_verbs::completion::*;
use roci_verbs::device::*;
use roci_verbs::events::*;
use roci_verbs::memory::*;
use roci_verbs::queue_pair::*;
use roci_verbs::shared::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

#[test]
fn operations_of_a_connection_do_what_they_are_asked_for_and_tell_who_asked() {
    let [mut near, far] = connected();
    near.memory[..200].fill(7);
    // A WRITE that gathers, unsignaled, and one with immediate behind it that takes a receive request.
    far.receive(41, &mut []);
    let mut lists = [near.part(0, 100), near.part(100, 100)];
    let mut wr = request(1, abi::wr_opcode::RDMA_WRITE, &mut lists, 0);
    rdma(&mut wr, &far, 1000);
    let mut parts = [near.part(0, 8)];
    let mut then = request(2, abi::wr_opcode::RDMA_WRITE_WITH_IMM, &mut parts, SIGNALED | 8);
    rdma(&mut then, &far, 2000);
    wr.next = &raw mut then;
    assert_eq!(near.post(&mut wr), 0);
    let (sent, told) = (near.completion(), far.completion());
    assert_eq!((sent.wr_id, sent.status, sent.opcode), (2, 0, abi::wc::RDMA_WRITE));
    assert_eq!((told.wr_id, told.opcode, told.byte_len), (41, abi::wc::RECV_RDMA_WITH_IMM, 8));
    assert_eq!((told.wc_flags, told.imm_data), (abi::wc::WITH_IMM, 0x0403_0201u32.to_be()));
    assert_eq!(far.octets(1000, 200), [7; 200]);
    // A READ that scatters.
    let mut parts = [near.part(3000, 50), near.part(4000, 150)];
    let mut wr = request(3, abi::wr_opcode::RDMA_READ, &mut parts, SIGNALED);
    rdma(&mut wr, &far, 1000);
    assert_eq!(near.post(&mut wr), 0);
    assert_eq!((near.completion().wr_id, near.octets(4000, 150)), (3, vec![7; 150]));
    // Atomics, of which one is to be silent, and leaves its result all the same.
    for (wr_id, flags, before) in [(4, 0, 0u64), (5, SIGNALED, 9)] {
        let mut parts = [near.part(5000 + 8 * wr_id, 8)];
        let mut wr = request(wr_id, abi::wr_opcode::ATOMIC_FETCH_AND_ADD, &mut parts, flags);
        let rkey = unsafe { (*far.mr).rkey };
        // The eight octets at an address that is a multiple of 8.
        let remote_addr = far.at(4096).next_multiple_of(8);
        wr.wr.atomic = abi::Atomic { remote_addr, compare_add: 9, swap: 0, rkey };
        assert_eq!(near.post(&mut wr), 0);
        if flags != 0 {
            let wc = near.completion();
            assert_eq!((wc.wr_id, wc.opcode), (5, abi::wc::FETCH_ADD));
            assert_eq!(near.octets(5000 + 8 * wr_id as usize, 8), before.to_ne_bytes());
        }
    }
    assert!(near.is_silent());
    // A peer's memory beyond its region ends the connection, which C hears of.
    let mut parts = [near.part(0, 8)];
    let mut wr = request(7, abi::wr_opcode::RDMA_WRITE, &mut parts, 0);
    rdma(&mut wr, &far, 8190);
    assert_eq!(near.post(&mut wr), 0);
    let wc = near.completion();
    assert_eq!((wc.wr_id, wc.status), (7, abi::wc::REM_ACCESS_ERR));
    let expected = [abi::event::COMM_EST, abi::event::QP_ACCESS_ERR];
    loop {
        let told = event(far.context);
        assert_eq!(told.element, far.qp.cast());
        assert!(expected.contains(&told.event_type), "{}", told.event_type);
        if told.event_type == abi::event::QP_ACCESS_ERR {
            break;
        }
    }
    let (mut attr, mut init) = (abi::QpAttr::default(), attributes(null_mut(), 0, null_mut()));
    assert_eq!(unsafe { ibv_query_qp(near.qp, &raw mut attr, 0, &raw mut init) }, 0);
    assert_eq!((attr.qp_state, attr.timeout, init.send_cq), (state::ERR, 14, near.cq));
    // Reset, it is as new.
    let mut attr = abi::QpAttr { qp_state: state::RESET, ..Default::default() };
    for end in [&near, &far] {
        assert_eq!(end.to(&mut attr, mask::STATE), 0);
        end.initialize();
    }
    near.connect(&far);
    far.connect(&near);
    far.receive(42, &mut [far.part(0, 64)]);
    let mut wr = request(8, abi::wr_opcode::SEND, &mut parts, SIGNALED);
    assert_eq!(near.post(&mut wr), 0);
    assert_eq!((near.completion().wr_id, far.completion().wr_id), (8, 42));
    near.close();
    far.close();
}

#[test]
fn memory_that_the_program_does_not_have_or_may_not_write_is_not_registered() {
    const PAGE: usize = 4096;
    let errno = || std::io::Error::last_os_error().raw_os_error();
    unsafe {
        let context = open();
        let pd = ibv_alloc_pd(context);
        let (private, read, write) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 4, 1);
        let start = libc::mmap(null_mut(), 4 * PAGE, libc::PROT_READ | libc::PROT_WRITE, private, -1, 0);
        let at = |page: usize| start.byte_add(page * PAGE);
        let fits = |page, length, rights| {
            let mr = ibv_reg_mr(pd, at(page), length, rights);
            let told = (!mr.is_null()).then(|| assert_eq!(ibv_dereg_mr(mr), 0));
            told.ok_or_else(|| errno().unwrap())
        };
        assert_eq!(fits(0, 4 * PAGE, RIGHTS), Ok(()));
        // Pages of several mappings are one region; one that may be read alone can be read alone.
        assert_eq!(libc::mprotect(at(1), PAGE, libc::PROT_READ), 0);
        assert_eq!(fits(0, 4 * PAGE, read), Ok(()));
        assert_eq!(fits(0, PAGE, write), Ok(()));
        assert_eq!(fits(0, PAGE + 1, write), Err(libc::EFAULT));
        assert_eq!(libc::mprotect(at(1), PAGE, libc::PROT_NONE), 0);
        assert_eq!(fits(1, 1, read), Err(libc::EFAULT));
        // A hole in the midst, and none.
        assert_eq!(libc::munmap(at(1), PAGE), 0);
        assert_eq!(fits(0, 4 * PAGE, read), Err(libc::EFAULT));
        assert_eq!(fits(2, 2 * PAGE, RIGHTS), Ok(()));
        assert_eq!(fits(2, usize::MAX, read), Err(libc::EFAULT));
        // All that there is: `IBV_ACCESS_ON_DEMAND`.
        assert!(ibv_reg_mr(pd, null_mut(), usize::MAX, 64 | write).is_null());
        assert_eq!(errno(), Some(libc::EOPNOTSUPP));
        assert_eq!((libc::munmap(at(0), PAGE), libc::munmap(at(2), 2 * PAGE)), (0, 0));
        assert_eq!((ibv_dealloc_pd(pd), ibv_close_device(context)), (0, 0));
    }
}

#[test]
fn a_region_that_is_changed_keeps_its_keys_and_is_as_it_was_where_that_cannot_be() {
    let [near, far] = connected();
    let written = |offset, rkey| {
        let mut parts = [near.part(0, 8)];
        let mut wr = request(1, abi::wr_opcode::RDMA_WRITE, &mut parts, SIGNALED);
        wr.wr.rdma = abi::Rdma { remote_addr: far.at(offset), rkey };
        assert_eq!(near.post(&mut wr), 0);
        near.completion().status
    };
    let (mr, place) = (far.mr, |offset| std::ptr::with_exposed_provenance_mut(far.at(offset) as usize));
    let known = unsafe { ((*mr).pd, (*mr).addr, (*mr).length, (*mr).rkey) };
    let is = |mr: *mut abi::Mr| unsafe { ((*mr).pd, (*mr).addr, (*mr).length, (*mr).rkey) };
    unsafe {
        let (pd, foreign) = (ibv_alloc_pd(far.context), near.pd);
        // No change, one that there is not, no place, another device's domain, and memory that the program does not have.
        for (flags, pd, addr, length) in [
            (0, pd, place(0), 8),
            (8, pd, place(0), 8),
            (1, null_mut(), null_mut(), 8),
            (1, null_mut(), place(0), 0),
            (2, null_mut(), null_mut(), 0),
            (2, foreign, null_mut(), 0),
            (1, null_mut(), std::ptr::without_provenance_mut(8), 8),
        ] {
            assert_eq!((ibv_rereg_mr(mr, flags, pd, addr, length, RIGHTS), is(mr)), (-1, known));
        }
        assert_eq!(written(0, known.3), 0);
        // Less of it, with the rights that there were.
        assert_eq!(ibv_rereg_mr(mr, 1, null_mut(), place(4096), 64, 0), 0);
        let (.., rkey) = is(mr);
        assert_eq!((is(mr), rkey == (*mr).lkey), ((far.pd, place(4096), 64, rkey), true));
        assert_eq!(rkey, known.3);
        assert_eq!((written(4096, rkey), far.octets(4096, 8)), (0, near.octets(0, 8)));
        // In another domain, which cannot go before it; and peers may only read it.
        assert_eq!(ibv_rereg_mr(mr, 2 | 4, pd, null_mut(), 0, 1 | 4), 0);
        assert_eq!(((*mr).pd, (*mr).addr, (*mr).length), (pd, place(4096), 64));
        assert_eq!(ibv_dealloc_pd(pd), libc::EBUSY);
        let mut parts = [far.part(4096, 8)];
        let (mut wr, mut bad) = (receive(1, &mut parts), null_mut());
        let posted = ((*far.context).ops.post_recv)(far.qp, &raw mut wr, &raw mut bad);
        assert_eq!(
            posted, 0,
            "though its queue pair is of another domain: who takes it ends it with an error"
        );
        assert_eq!(ibv_rereg_mr(mr, 2, far.pd, null_mut(), 0, 0), 0);
        assert_eq!(ibv_dealloc_pd(pd), 0);
        assert_eq!(written(4096, (*mr).rkey), abi::wc::REM_ACCESS_ERR);
    }
    near.close();
    far.close();
}

#[test]
fn a_datagram_comes_behind_a_header_from_which_it_can_be_answered() {
    let [mut near, far] = [(); 2].map(|()| End::new(abi::qp_type::UD, |_| null_mut()));
    for end in [&near, &far] {
        end.initialize();
        for (to, besides) in [(state::RTR, 0), (state::RTS, mask::SQ_PSN)] {
            let mut attr = abi::QpAttr { qp_state: to, ..Default::default() };
            assert_eq!(end.to(&mut attr, mask::STATE | besides), 0);
        }
    }
    near.memory[..10].copy_from_slice(b"0123456789");
    // Less than a header has no place.
    let mut short = [far.part(0, 39)];
    let (mut wr, mut bad) = (receive(1, &mut short), null_mut());
    let refused = unsafe { ((*far.context).ops.post_recv)(far.qp, &raw mut wr, &raw mut bad) };
    assert_eq!((refused, bad), (libc::EINVAL, &raw mut wr));
    far.receive(2, &mut [far.part(0, 30), far.part(100, 200)]);
    let mut attr = abi::AhAttr { is_global: 1, port_num: 1, ..Default::default() };
    attr.grh.dgid = far.gid();
    let ah = unsafe { ibv_create_ah(near.pd, &raw mut attr) };
    let mut parts = [near.part(0, 10)];
    let mut wr = request(3, abi::wr_opcode::SEND_WITH_IMM, &mut parts, SIGNALED);
    wr.wr.ud = abi::Ud { ah, remote_qpn: unsafe { (*far.qp).qp_num }, remote_qkey: 7 };
    assert_eq!(near.post(&mut wr), 0);
    let (sent, mut told) = (near.completion(), far.completion());
    assert_eq!((sent.wr_id, sent.status), (3, 0));
    assert_eq!((told.wr_id, told.byte_len, told.src_qp), (2, 50, unsafe { (*near.qp).qp_num }));
    assert_eq!(told.wc_flags, abi::wc::GRH | abi::wc::WITH_IMM);
    assert_eq!(far.octets(110, 10), b"0123456789");
    // IPv4's header, split over both parts.
    assert_eq!((far.octets(20, 1), far.octets(102, 4)), (vec![0x45], vec![127, 0, 0, 81]));
    let mut grh = [far.octets(0, 30), far.octets(100, 10)].concat();
    let mut found = abi::AhAttr::default();
    let is_found = unsafe {
        ibv_init_ah_from_wc(far.context, 1, &raw mut told, grh.as_mut_ptr().cast(), &raw mut found)
    };
    assert!(is_found == 0 && found.grh.dgid == near.gid());
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
    near.close();
    far.close();
}

#[test]
fn a_channel_tells_once_of_each_queue_that_asked_and_a_shared_queue_of_its_limit() {
    unsafe {
        let mut srq_init = abi::SrqInitAttr {
            srq_context: null_mut(),
            attr: abi::SrqAttr { max_wr: 4, max_sge: 1, srq_limit: 0 },
        };
        let mut srq = null_mut();
        let near = End::new(abi::qp_type::RC, |_| null_mut());
        let far = End::new(abi::qp_type::RC, |pd| {
            srq = ibv_create_srq(pd, &raw mut srq_init);
            srq
        });
        [&near, &far].into_iter().for_each(End::initialize);
        near.connect(&far);
        far.connect(&near);
        let channel = ibv_create_comp_channel(near.context);
        let mine = 5u32;
        let told = (&raw const mine).cast_mut().cast();
        let cq = ibv_create_cq(near.context, 4, told, channel, 0);
        assert_eq!(ibv_destroy_comp_channel(channel), libc::EBUSY);
        let mut init = attributes(cq, abi::qp_type::RC, null_mut());
        let other = ibv_create_qp(near.pd, &raw mut init);
        initialize(other);
        // Nothing has been asked for, so nothing is there to be read.
        libc::fcntl((*channel).fd, libc::F_SETFL, libc::O_NONBLOCK);
        let (mut of, mut context) = (null_mut(), null_mut());
        assert_eq!(ibv_get_cq_event(channel, &raw mut of, &raw mut context), -1);
        ((*near.context).ops.req_notify_cq)(cq, 0);
        // It fails, and its receive request is flushed.
        let mut parts = [near.part(0, 8)];
        let (mut wr, mut bad) = (receive(9, &mut parts), null_mut());
        assert_eq!(((*near.context).ops.post_recv)(other, &raw mut wr, &raw mut bad), 0);
        let mut attr = abi::QpAttr { qp_state: state::ERR, ..Default::default() };
        assert_eq!(ibv_modify_qp(other, &raw mut attr, mask::STATE), 0);
        libc::fcntl((*channel).fd, libc::F_SETFL, 0);
        assert_eq!(ibv_get_cq_event(channel, &raw mut of, &raw mut context), 0);
        assert_eq!((of, context), (cq, told));
        ibv_ack_cq_events(cq, 1);
        let mut wc = abi::Wc::default();
        assert_eq!(((*near.context).ops.poll_cq)(cq, 4, &raw mut wc), 1);
        assert_eq!((wc.wr_id, wc.status), (9, abi::wc::WR_FLUSH_ERR));
        // What is left of a queue pair goes with it.
        let mut wr = receive(10, &mut parts);
        assert_eq!(((*near.context).ops.post_recv)(other, &raw mut wr, &raw mut bad), 0);
        assert_eq!(ibv_destroy_qp(other), 0);
        assert_eq!(((*near.context).ops.poll_cq)(cq, 4, &raw mut wc), 0);
        assert_eq!((ibv_destroy_cq(cq), ibv_destroy_comp_channel(channel)), (0, 0));
        let mut attr = abi::SrqAttr { max_wr: 2, max_sge: 0, srq_limit: 3 };
        assert_eq!(ibv_modify_srq(srq, &raw mut attr, 3), libc::EINVAL);
        // Of what cannot be had in all, nothing is.
        assert_eq!((ibv_query_srq(srq, &raw mut attr), attr.max_wr), (0, 4));
        let mut attr = abi::SrqAttr { max_wr: 2, max_sge: 0, srq_limit: 0 };
        assert_eq!(ibv_modify_srq(srq, &raw mut attr, 1), 0);
        let mut parts = [far.part(0, 64)];
        for wr_id in [1, 2] {
            let mut wr = receive(wr_id, &mut parts);
            assert_eq!(((*far.context).ops.post_srq_recv)(srq, &raw mut wr, &raw mut bad), 0);
        }
        let mut attr = abi::SrqAttr { max_wr: 2, max_sge: 0, srq_limit: 2 };
        assert_eq!(ibv_modify_srq(srq, &raw mut attr, 2), 0);
        assert_eq!((ibv_query_srq(srq, &raw mut attr), attr.srq_limit, attr.max_wr), (0, 2, 2));
        let mut parts = [near.part(0, 8)];
        let mut wr = request(1, abi::wr_opcode::SEND, &mut parts, SIGNALED);
        assert_eq!(near.post(&mut wr), 0);
        assert_eq!((near.completion().status, far.completion().wr_id), (0, 1));
        let limit = std::iter::repeat_with(|| event(far.context))
            .find(|it| it.event_type == abi::event::SRQ_LIMIT_REACHED);
        assert_eq!(limit.map(|it| it.element), Some(srq.cast()));
        assert_eq!(ibv_destroy_srq(srq), libc::EBUSY);
        ibv_destroy_qp(far.qp);
        assert_eq!(ibv_destroy_srq(srq), 0);
    }
}

#[test]
fn queue_pairs_of_datagrams_share_a_receive_queue() {
    let limited = |max_wr, srq_limit| abi::SrqAttr { max_wr, max_sge: 2, srq_limit };
    let mut srq_init = abi::SrqInitAttr { srq_context: null_mut(), attr: limited(8, 0) };
    let mut srq = null_mut();
    let mut near = End::new(abi::qp_type::UD, |_| null_mut());
    let far = End::new(abi::qp_type::UD, |pd| {
        srq = unsafe { ibv_create_srq(pd, &raw mut srq_init) };
        srq
    });
    let mut init = attributes(far.cq, abi::qp_type::UD, srq);
    let other = unsafe { ibv_create_qp(far.pd, &raw mut init) };
    assert!(!other.is_null());
    for qp in [near.qp, far.qp, other] {
        initialize(qp);
        for (to, besides) in [(state::RTR, 0), (state::RTS, mask::SQ_PSN)] {
            let mut attr = abi::QpAttr { qp_state: to, ..Default::default() };
            assert_eq!(unsafe { ibv_modify_qp(qp, &raw mut attr, mask::STATE | besides) }, 0);
        }
    }
    near.memory[..10].copy_from_slice(b"0123456789");
    let mut attr = abi::AhAttr { is_global: 1, port_num: 1, ..Default::default() };
    attr.grh.dgid = far.gid();
    let ah = unsafe { ibv_create_ah(near.pd, &raw mut attr) };
    let say = |qp: *mut abi::Qp, length| {
        let mut parts = [near.part(0, length)];
        let mut wr = request(1, abi::wr_opcode::SEND_WITH_IMM, &mut parts, SIGNALED);
        wr.wr.ud = abi::Ud { ah, remote_qpn: unsafe { (*qp).qp_num }, remote_qkey: 7 };
        assert_eq!((near.post(&mut wr), near.completion().status), (0, 0));
    };
    let post = |wr_id, parts: &mut [abi::Sge]| {
        let (mut wr, mut bad) = (receive(wr_id, parts), null_mut());
        unsafe { ((*far.context).ops.post_srq_recv)(srq, &raw mut wr, &raw mut bad) }
    };
    // It has no queue of its own.
    let (mut wr, mut bad) = (receive(0, &mut []), null_mut());
    assert_ne!(unsafe { ((*far.context).ops.post_recv)(far.qp, &raw mut wr, &raw mut bad) }, 0);
    // A request may have less than a header: it may be that no datagram takes it.
    let lengths = [100, 49, 39, 40];
    for (wr_id, length) in (1..).zip(lengths) {
        assert_eq!(
            post(wr_id, &mut [far.part(1000 * wr_id, 30), far.part(1000 * wr_id + 500, length - 30)]),
            0
        );
    }
    let mut limit = limited(0, 2);
    assert_eq!(unsafe { ibv_modify_srq(srq, &raw mut limit, 2) }, 0);
    say(far.qp, 10);
    let told = far.completion();
    assert_eq!((told.wr_id, told.status, told.opcode, told.byte_len), (1, 0, abi::wc::RECV, 50));
    unsafe { assert_eq!((told.qp_num, told.src_qp), ((*far.qp).qp_num, (*near.qp).qp_num)) };
    assert_eq!(told.wc_flags, abi::wc::GRH | abi::wc::WITH_IMM);
    assert_eq!(told.imm_data, 0x0403_0201u32.to_be());
    assert_eq!(far.octets(1510, 10), b"0123456789");
    let header = [far.octets(1000, 30), far.octets(1500, 10)].concat();
    assert_eq!((header[20], &header[32..36]), (0x45, &[127, 0, 0, 81][..]));
    // One that is too long for what it takes ends that with an error, of which the queue pair does not fail.
    for (wr_id, qp, length) in [(2, other, 10), (3, far.qp, 0)] {
        say(qp, length);
        let told = far.completion();
        assert_eq!((told.wr_id, told.status), (wr_id, abi::wc::LOC_LEN_ERR));
        assert_eq!(told.qp_num, unsafe { (*qp).qp_num });
        assert_eq!([far.octets(2000, 30), far.octets(2500, 30)].concat(), [0; 60]);
    }
    let limit = event(far.context);
    assert_eq!((limit.event_type, limit.element), (abi::event::SRQ_LIMIT_REACHED, srq.cast()));
    say(other, 0);
    let told = far.completion();
    assert_eq!((told.wr_id, told.status, told.byte_len), (4, 0, 40));
    assert_eq!((told.qp_num, far.octets(4020, 1)), (unsafe { (*other).qp_num }, vec![0x45]));
    // Of what comes when none stands there a program does not hear, and what comes later has its turn.
    say(other, 10);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(post(5, &mut [far.part(5000, 100)]), 0);
    let mut failed = abi::QpAttr { qp_state: state::ERR, ..Default::default() };
    assert_eq!(unsafe { ibv_modify_qp(other, &raw mut failed, mask::STATE) }, 0);
    let last = event(far.context);
    assert_eq!((last.event_type, last.element), (abi::event::QP_LAST_WQE_REACHED, other.cast()));
    say(far.qp, 3);
    assert_eq!((far.completion().wr_id, far.octets(5040, 3)), (5, b"012".to_vec()));
    unsafe {
        assert_eq!((ibv_destroy_ah(ah), ibv_destroy_srq(srq)), (0, libc::EBUSY));
        assert_eq!((ibv_destroy_qp(other), ibv_destroy_qp(far.qp), ibv_destroy_srq(srq)), (0, 0, 0));
        assert_eq!((ibv_dereg_mr(far.mr), ibv_destroy_cq(far.cq)), (0, 0));
        assert_eq!((ibv_dealloc_pd(far.pd), ibv_close_device(far.context)), (0, 0));
    }
    near.close();
}

/// `wr_complete` posts all that was built or nothing of it.
#[test]
fn of_a_batch_that_has_no_room_nothing_is_posted() {
    let [near, far] = connected();
    unsafe {
        let cap = abi::QpCap { max_send_wr: 4, ..attributes(near.cq, 0, null_mut()).cap };
        let mut init: abi::QpInitAttrEx = std::mem::zeroed();
        (init.send_cq, init.recv_cq, init.pd, init.cap) = (near.cq, near.cq, near.pd, cap);
        (init.qp_type, init.comp_mask, init.send_ops_flags) = (abi::qp_type::RC, 1 | 64, 1);
        let create = (*near
            .context
            .byte_sub(std::mem::offset_of!(abi::VerbsContext, context))
            .cast::<abi::VerbsContext>())
        .create_qp_ex;
        let qp = create(near.context, &raw mut init);
        assert!(!qp.is_null());
        let End { context, pd, cq, mr, .. } = near;
        let other = End { context, pd, cq, qp, memory: Vec::new(), mr };
        let first = far.qp;
        let mut init = attributes(far.cq, abi::qp_type::RC, null_mut());
        let far = End { qp: ibv_create_qp(far.pd, &raw mut init), ..far };
        [&other, &far].into_iter().for_each(End::initialize);
        other.connect(&far);
        far.connect(&other);
        let calls = ibv_qp_to_qp_ex(qp);
        let batch = |count: u64, end: unsafe extern "C" fn(*mut abi::QpEx) -> i32, octets: usize| {
            let it = &*calls;
            (it.wr_start)(calls);
            for place in 0..count {
                ((*calls).wr_id, (*calls).wr_flags) = (place, SIGNALED);
                (it.wr_rdma_write)(calls, (*far.mr).rkey, far.at(100 * (place + 1)));
                let mut inline = vec![7u8; octets];
                (it.wr_set_inline_data)(calls, inline.as_mut_ptr().cast(), inline.len());
            }
            end(calls)
        };
        let complete = (*calls).wr_complete;
        assert_eq!(batch(5, complete, 8), libc::ENOMEM);
        std::thread::sleep(Duration::from_millis(100));
        assert!(near.is_silent() && far.octets(0, 8192) == vec![0; 8192], "nothing of it was posted");
        // Nor of one of which the last is refused for itself.
        let it = &*calls;
        (it.wr_start)(calls);
        (it.wr_rdma_write)(calls, (*far.mr).rkey, far.at(0));
        (it.wr_set_sge)(calls, (*near.mr).lkey, near.at(0), 8);
        (it.wr_atomic_fetch_add)(calls, (*far.mr).rkey, far.at(8).next_multiple_of(8) + 1, 1);
        (it.wr_set_sge)(calls, (*near.mr).lkey, near.at(64), 8);
        assert_eq!(complete(calls), libc::EINVAL);
        // And what was given up is not posted either.
        (it.wr_start)(calls);
        (it.wr_rdma_write)(calls, (*far.mr).rkey, far.at(0));
        (it.wr_set_sge)(calls, (*near.mr).lkey, near.at(0), 8);
        (it.wr_abort)(calls);
        assert_eq!(batch(4, complete, 8), 0);
        for wr_id in 0..4 {
            let wc = near.completion();
            assert_eq!((wc.wr_id, wc.status, wc.qp_num), (wr_id, 0, (*qp).qp_num));
        }
        assert_eq!((far.octets(400, 8), far.octets(500, 8)), (vec![7; 8], vec![0; 8]));
        assert_eq!((ibv_destroy_qp(qp), ibv_destroy_qp(first)), (0, 0));
        near.close();
        far.close();
    }
}

/// What is left when `destroy` is called is given back only after `acknowledge` has been.
fn waits(destroy: impl FnOnce() -> i32 + Send, acknowledge: impl FnOnce()) {
    std::thread::scope(|scope| {
        let destroying = scope.spawn(destroy);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!destroying.is_finished(), "an event of it is not acknowledged");
        acknowledge();
        assert_eq!(destroying.join().unwrap(), 0);
    });
}

#[test]
fn what_an_event_names_lives_until_the_event_is_acknowledged() {
    struct Sent<T>(T);
    unsafe impl<T> Send for Sent<T> {}
    impl<T> Sent<T> {
        fn get(self) -> T {
            self.0
        }
    }
    let [near, far] = connected();
    unsafe {
        let channel = ibv_create_comp_channel(near.context);
        let cq = ibv_create_cq(near.context, 4, null_mut(), channel, 0);
        let mut init = attributes(cq, abi::qp_type::RC, null_mut());
        let other = ibv_create_qp(near.pd, &raw mut init);
        initialize(other);
        ((*near.context).ops.req_notify_cq)(cq, 0);
        let (mut wr, mut bad) = (receive(9, &mut []), null_mut());
        assert_eq!(((*near.context).ops.post_recv)(other, &raw mut wr, &raw mut bad), 0);
        let mut attr = abi::QpAttr { qp_state: state::ERR, ..Default::default() };
        assert_eq!(ibv_modify_qp(other, &raw mut attr, mask::STATE), 0);
        let (mut of, mut context) = (null_mut(), null_mut());
        assert_eq!(ibv_get_cq_event(channel, &raw mut of, &raw mut context), 0);
        assert_eq!(ibv_destroy_qp(other), 0);
        let sent = Sent(cq);
        waits(move || ibv_destroy_cq(sent.get()), || ibv_ack_cq_events(cq, 1));
        assert_eq!(ibv_destroy_comp_channel(channel), 0);
        // Of a queue pair.
        let mut parts = [near.part(0, 8)];
        let mut wr = request(7, abi::wr_opcode::RDMA_WRITE, &mut parts, 0);
        rdma(&mut wr, &far, 8190);
        assert_eq!((near.post(&mut wr), near.completion().status), (0, abi::wc::REM_ACCESS_ERR));
        let mut told = abi::AsyncEvent { element: null_mut(), event_type: 0 };
        assert_eq!(ibv_get_async_event(far.context, &raw mut told), 0);
        let sent = Sent(far.qp);
        waits(move || ibv_destroy_qp(sent.get()), || ibv_ack_async_event(&raw mut told));
    }
    near.close();
}

#[test]
fn a_change_of_a_queue_pair_has_all_that_it_needs_and_nothing_that_does_not_belong_to_it() {
    let [near, far] = connected();
    let mut attr = abi::QpAttr { qp_state: state::RTS, path_mtu: 1, min_rnr_timer: 3, ..Default::default() };
    for wrong in [mask::PATH_MTU, mask::TIMEOUT, mask::SQ_PSN, mask::QKEY, mask::AV, mask::DEST_QPN] {
        assert_eq!(near.to(&mut attr, mask::STATE | wrong), libc::EINVAL, "{wrong:#x}");
        assert_eq!(near.to(&mut attr, wrong), libc::EINVAL, "{wrong:#x}");
    }
    assert_eq!(near.to(&mut attr, mask::MIN_RNR_TIMER), 0);
    // The state in which it is said to be.
    let current = 2;
    attr.cur_qp_state = state::RTR;
    assert_eq!(near.to(&mut attr, mask::STATE | current), libc::EINVAL);
    attr.cur_qp_state = state::RTS;
    assert_eq!(near.to(&mut attr, mask::STATE | current), 0);
    // Drained in silence, and then with an event that was asked for.
    let mut drain = abi::QpAttr { qp_state: state::SQD, en_sqd_async_notify: 0, ..Default::default() };
    for notify in [0, 1] {
        drain.en_sqd_async_notify = notify;
        assert_eq!(near.to(&mut drain, mask::STATE | mask::EN_SQD_ASYNC_NOTIFY), 0);
        unsafe {
            let flags = if notify == 0 { libc::O_NONBLOCK } else { 0 };
            libc::fcntl((*near.context).async_fd, libc::F_SETFL, flags);
            if notify == 0 {
                let mut told = abi::AsyncEvent { element: null_mut(), event_type: 0 };
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(50) {
                    assert_eq!(ibv_get_async_event(near.context, &raw mut told), -1, "nobody asked");
                }
            } else {
                assert_eq!(event(near.context).event_type, abi::event::SQ_DRAINED);
            }
        }
        assert_eq!(near.to(&mut attr, mask::STATE), 0);
    }
    near.close();
    far.close();
    // Datagrams leave and come in no state before theirs.
    let end = End::new(abi::qp_type::UD, |_| null_mut());
    let mut to = abi::AhAttr { is_global: 1, port_num: 1, ..Default::default() };
    to.grh.dgid = end.gid();
    let ah = unsafe { ibv_create_ah(end.pd, &raw mut to) };
    let send = || {
        let mut parts = [end.part(0, 8)];
        let mut wr = request(3, abi::wr_opcode::SEND, &mut parts, SIGNALED);
        wr.wr.ud = abi::Ud { ah, remote_qpn: unsafe { (*end.qp).qp_num }, remote_qkey: 7 };
        end.post(&mut wr)
    };
    assert_eq!(send(), libc::EINVAL);
    end.initialize();
    assert_eq!(send(), libc::EINVAL);
    // What is posted and not done is forgotten by a reset, under whatever name it was known.
    for round in 0..3 {
        end.receive(round, &mut [end.part(100, 100)]);
        let mut attr = abi::QpAttr { qp_state: state::ERR, ..Default::default() };
        assert_eq!(end.to(&mut attr, mask::STATE), 0);
        attr.qp_state = state::RESET;
        assert_eq!(end.to(&mut attr, mask::STATE | mask::QKEY), libc::EINVAL);
        assert_eq!(end.to(&mut attr, mask::STATE), 0);
        end.initialize();
        assert!(end.is_silent(), "the reset took it along");
    }
    for (to, besides) in [(state::RTR, 0), (state::RTS, mask::SQ_PSN)] {
        assert_eq!(send(), libc::EINVAL);
        let mut attr = abi::QpAttr { qp_state: to, ..Default::default() };
        assert_eq!(end.to(&mut attr, mask::STATE | besides | mask::AV), libc::EINVAL);
        assert_eq!(end.to(&mut attr, mask::STATE | besides), 0);
    }
    end.receive(8, &mut [end.part(100, 48)]);
    assert_eq!(send(), 0);
    let mut told = [end.completion(), end.completion()].map(|wc| (wc.wr_id, wc.status));
    told.sort_unstable();
    assert_eq!(told, [(3, 0), (8, 0)]);
    assert_eq!(unsafe { ibv_destroy_ah(ah) }, 0);
    end.close();
}

#[test]
fn memory_without_local_writing_takes_no_results_and_no_headers() {
    let [near, far] = connected();
    // A READ of nothing needs no memory, and has its turn all the same.
    let mut wr = request(2, abi::wr_opcode::RDMA_READ, &mut [], SIGNALED);
    rdma(&mut wr, &far, 0);
    assert_eq!(near.post(&mut wr), 0);
    let wc = near.completion();
    assert_eq!((wc.wr_id, wc.status, wc.opcode), (2, 0, abi::wc::RDMA_READ));
    let [ud] = [End::new(abi::qp_type::UD, |_| null_mut())];
    ud.initialize();
    unsafe {
        for (end, is_ud) in [(&near, false), (&ud, true)] {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(null_mut(), 4096, libc::PROT_READ, flags, -1, 0);
            let mr = ibv_reg_mr(end.pd, page, 4096, 0);
            assert!(!mr.is_null());
            let addr = page.expose_provenance() as u64;
            let header = abi::Sge { addr, length: 40, lkey: (*mr).lkey };
            if is_ud {
                let mut parts = [header, end.part(0, 64)];
                let (mut wr, mut bad) = (receive(1, &mut parts), null_mut());
                assert_eq!(((*end.context).ops.post_recv)(end.qp, &raw mut wr, &raw mut bad), 0);
                for (to, besides) in [(state::RTR, 0), (state::RTS, mask::SQ_PSN)] {
                    let mut attr = abi::QpAttr { qp_state: to, ..Default::default() };
                    assert_eq!(end.to(&mut attr, mask::STATE | besides), 0);
                }
                let mut to = abi::AhAttr { is_global: 1, port_num: 1, ..Default::default() };
                to.grh.dgid = end.gid();
                let ah = ibv_create_ah(end.pd, &raw mut to);
                let mut wr = request(2, abi::wr_opcode::SEND, &mut [], 0);
                wr.wr.ud = abi::Ud { ah, remote_qpn: (*end.qp).qp_num, remote_qkey: 7 };
                assert_eq!((end.post(&mut wr), ibv_destroy_ah(ah)), (0, 0));
            } else {
                let mut parts = [abi::Sge { length: 8, ..header }];
                let mut wr = request(1, abi::wr_opcode::ATOMIC_FETCH_AND_ADD, &mut parts, SIGNALED);
                let remote_addr = far.at(0).next_multiple_of(8);
                wr.wr.atomic = abi::Atomic { remote_addr, compare_add: 1, swap: 0, rkey: (*far.mr).rkey };
                assert_eq!(end.post(&mut wr), 0);
            }
            let wc = end.completion();
            assert_eq!((wc.wr_id, wc.status), (1, abi::wc::LOC_PROT_ERR));
            assert_eq!(ibv_dereg_mr(mr), 0);
            libc::munmap(page, 4096);
        }
    }
    assert_eq!(far.octets(0, 64), [0; 64]);
    [near, far, ud].into_iter().for_each(End::close);
}

#[test]
fn results_whose_place_was_deregistered_are_errors() {
    let [near, far] = connected();
    unsafe {
        let mut place = Box::new(5u64);
        let rights = abi::access::LOCAL_WRITE.cast_signed();
        let mr = ibv_reg_mr(near.pd, (&raw mut *place).cast(), 8, rights);
        let addr = (&raw const *place).expose_provenance() as u64;
        let mut parts = [abi::Sge { addr, length: 8, lkey: (*mr).lkey }];
        let mut wr = request(1, abi::wr_opcode::ATOMIC_FETCH_AND_ADD, &mut parts, 0);
        let remote_addr = far.at(0).next_multiple_of(8);
        wr.wr.atomic = abi::Atomic { remote_addr, compare_add: 1, swap: 0, rkey: (*far.mr).rkey };
        assert_eq!(near.post(&mut wr), 0);
        assert_eq!(ibv_dereg_mr(mr), 0);
        let wc = near.completion();
        assert_eq!((wc.wr_id, wc.status, *place), (1, abi::wc::LOC_PROT_ERR, 5));
    }
    [near, far].into_iter().for_each(End::close);
}
