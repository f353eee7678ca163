//! Memory windows, as a program in C has them.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

mod ends;

use abi::{access, mw_type, wc, wr_opcode as opcode};
use ends::*;
use roci_verbs::abi;
use roci_verbs::device::*;
use roci_verbs::memory::*;
use roci_verbs::queue_pair::*;
use std::ptr::null_mut;

/// Two ends, of which the second has a region of 4096 ones that peers reach by windows alone, and a window.
struct Windowed {
    near: End,
    far: End,
    memory: Vec<u8>,
    mr: *mut abi::Mr,
    mw: *mut abi::Mw,
}

impl Windowed {
    fn new(kind: u32) -> Self {
        let [near, far] = connected();
        let mut memory = vec![1u8; 4096];
        let rights = (access::LOCAL_WRITE | access::MW_BIND).cast_signed();
        unsafe {
            let mr = ibv_reg_mr(far.pd, memory.as_mut_ptr().cast(), 4096, rights);
            let mw = ((*far.context).ops.alloc_mw)(far.pd, kind);
            assert!(!mr.is_null() && !mw.is_null());
            assert_eq!(((*mw).pd, (*mw).context, (*mw).kind), (far.pd, far.context, kind));
            Self { near, far, memory, mr, mw }
        }
    }

    fn at(&self, offset: u64) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64 + offset
    }

    /// Octets 1000 to 2000, to be written.
    fn info(&self) -> abi::MwBindInfo {
        let mw_access_flags = access::REMOTE_WRITE;
        abi::MwBindInfo { mr: self.mr, addr: self.at(1000), length: 1000, mw_access_flags }
    }

    /// Binds a window of type 1.
    fn bind(&self, wr_id: u64, bind_info: abi::MwBindInfo) -> i32 {
        let mut bind = abi::MwBind { wr_id, send_flags: SIGNALED, bind_info };
        unsafe { ((*self.far.context).ops.bind_mw)(self.far.qp, self.mw, &raw mut bind) }
    }

    /// Posts what binds a window of type 2.
    fn post_bind(&self, wr_id: u64, rkey: u32, bind_info: abi::MwBindInfo) -> i32 {
        let mut wr = request(wr_id, opcode::BIND_MW, &mut [], SIGNALED);
        wr.bind_mw = abi::Bind { mw: self.mw, rkey, bind_info };
        self.far.post(&mut wr)
    }

    /// How a WRITE of 8 octets that far into the region ends.
    fn written(&self, rkey: u32, offset: u64) -> u32 {
        let mut parts = [self.near.part(0, 8)];
        let mut wr = request(9, opcode::RDMA_WRITE, &mut parts, SIGNALED);
        wr.wr.rdma = abi::Rdma { remote_addr: self.at(offset), rkey };
        assert_eq!(self.near.post(&mut wr), 0);
        self.near.completion().status
    }

    fn ended(&self) -> (u64, u32, u32) {
        let it = self.far.completion();
        (it.wr_id, it.status, it.opcode)
    }

    fn octets(&self, offset: usize) -> [u8; 8] {
        // The device writes there behind Rust's back.
        std::array::from_fn(|at| unsafe { self.memory.as_ptr().add(offset + at).read_volatile() })
    }

    /// Gives all back, the window first.
    fn close(self) {
        let Self { near, far, mr, mw, .. } = self;
        unsafe {
            assert_eq!(((*far.context).ops.dealloc_mw)(mw), 0);
            assert_eq!(ibv_dereg_mr(mr), 0);
        }
        near.close();
        far.close();
    }
}

#[test]
fn a_device_says_that_it_has_memory_windows() {
    unsafe {
        let context = open();
        let mut attr = std::mem::zeroed();
        assert_eq!(ibv_query_device(context, &raw mut attr), 0);
        assert!(
            attr.max_mw > 0
                && attr.device_cap_flags & (1 << 17) != 0
                && attr.device_cap_flags & (1 << 24) != 0
        );
        let pd = ibv_alloc_pd(context);
        assert!(((*context).ops.alloc_mw)(pd, 3).is_null());
        assert_eq!(errno(), libc::EINVAL);
        let mw = ((*context).ops.alloc_mw)(pd, mw_type::TYPE_1);
        assert_eq!(ibv_dealloc_pd(pd), libc::EBUSY);
        assert_eq!(((*context).ops.dealloc_mw)(mw), 0);
        assert_eq!((ibv_dealloc_pd(pd), ibv_close_device(context)), (0, 0));
    }
}

#[test]
fn a_window_of_type_1_has_another_key_with_each_binding_and_keeps_its_region() {
    let it = Windowed::new(mw_type::TYPE_1);
    let first = unsafe { (*it.mw).rkey };
    assert_eq!(it.bind(1, it.info()), 0);
    let key = unsafe { (*it.mw).rkey };
    assert_eq!((key & !0xff, key & 0xff), (first & !0xff, (first + 1) & 0xff));
    assert_eq!(it.ended(), (1, wc::SUCCESS, wc::BIND_MW));
    assert_eq!(it.written(key, 1992), wc::SUCCESS);
    assert_eq!((it.octets(1992), it.octets(2000)), ([0; 8], [1; 8]));
    let rereg = |flags| unsafe { ibv_rereg_mr(it.mr, flags, null_mut(), null_mut(), 0, 1) };
    assert_eq!((unsafe { ibv_dereg_mr(it.mr) }, rereg(4), errno()), (libc::EBUSY, -1, libc::EBUSY));
    // To nothing, and a former key is of no use.
    assert_eq!(it.bind(2, abi::MwBindInfo { length: 0, ..it.info() }), 0);
    assert_eq!(it.ended(), (2, wc::SUCCESS, wc::BIND_MW));
    assert_eq!(it.written(key, 1000), wc::REM_ACCESS_ERR);
    // One of type 2 is not bound so, nor one of type 1 by a request, or from zero on.
    let mw_access_flags = access::REMOTE_WRITE | access::ZERO_BASED;
    assert_eq!(it.bind(3, abi::MwBindInfo { mw_access_flags, ..it.info() }), libc::EINVAL);
    assert_eq!(it.post_bind(3, key, it.info()), libc::EINVAL);
    it.close();
}

#[test]
fn a_window_of_type_2_has_the_key_that_the_program_chose_until_that_is_invalidated() {
    for invalidates in [opcode::LOCAL_INV, opcode::SEND_WITH_INV] {
        let it = Windowed::new(mw_type::TYPE_2);
        let key = unsafe { (*it.mw).rkey } | 0x77;
        assert_eq!(it.bind(0, it.info()), libc::EINVAL);
        assert_eq!(it.post_bind(1, key, it.info()), 0);
        assert_eq!(it.ended(), (1, wc::SUCCESS, wc::BIND_MW));
        assert_eq!((it.written(key, 1000), it.octets(1000), it.octets(992)), (wc::SUCCESS, [0; 8], [1; 8]));
        let mut wr = request(2, invalidates, &mut [], SIGNALED);
        wr.imm_data = key;
        if invalidates == opcode::LOCAL_INV {
            assert_eq!(it.far.post(&mut wr), 0);
            assert_eq!(it.ended(), (2, wc::SUCCESS, wc::LOCAL_INV));
        } else {
            it.far.receive(3, &mut []);
            assert_eq!(it.near.post(&mut wr), 0);
            assert_eq!(it.near.completion().status, wc::SUCCESS);
            let told = it.far.completion();
            assert_eq!((told.wr_id, told.wc_flags, told.imm_data), (3, wc::WITH_INV, key));
        }
        assert_eq!(it.written(key, 1000), wc::REM_ACCESS_ERR);
        it.close();
    }
}

#[test]
fn what_a_window_cannot_be_bound_to_ends_its_request_with_an_error() {
    let wrong: [fn(&Windowed) -> abi::MwBindInfo; 4] = [
        |it| abi::MwBindInfo { addr: it.at(4000), ..it.info() },
        |it| abi::MwBindInfo { mr: it.far.mr, addr: it.far.at(0), ..it.info() },
        |it| abi::MwBindInfo { mr: null_mut(), ..it.info() },
        |it| abi::MwBindInfo { length: u64::MAX, ..it.info() },
    ];
    for info in wrong {
        let it = Windowed::new(mw_type::TYPE_2);
        let key = unsafe { (*it.mw).rkey };
        assert_eq!(it.post_bind(1, key, info(&it)), 0);
        assert_eq!(it.ended(), (1, wc::MW_BIND_ERR, wc::BIND_MW));
        // And its queue pair.
        assert_eq!(it.post_bind(2, key, it.info()), 0);
        assert_eq!(it.ended(), (2, wc::WR_FLUSH_ERR, wc::BIND_MW));
        it.close();
    }
}

#[test]
fn a_window_from_zero_on_is_named_so_by_peers() {
    let it = Windowed::new(mw_type::TYPE_2);
    let key = unsafe { (*it.mw).rkey };
    let mw_access_flags = access::REMOTE_WRITE | access::ZERO_BASED;
    assert_eq!(it.post_bind(1, key, abi::MwBindInfo { mw_access_flags, ..it.info() }), 0);
    assert_eq!(it.ended(), (1, wc::SUCCESS, wc::BIND_MW));
    let mut parts = [it.near.part(0, 8)];
    let mut wr = request(9, opcode::RDMA_WRITE, &mut parts, SIGNALED);
    wr.wr.rdma = abi::Rdma { remote_addr: 16, rkey: key };
    assert_eq!((it.near.post(&mut wr), it.near.completion().status), (0, wc::SUCCESS));
    assert_eq!((it.octets(1016), it.octets(1008)), ([0; 8], [1; 8]));
    assert_eq!(it.written(key, 1000), wc::REM_ACCESS_ERR);
    it.close();
}

/// `wr_bind_mw` and `wr_local_inv`, together with what the window is for.
#[test]
fn windows_are_bound_and_invalidated_by_calls() {
    let it = Windowed::new(mw_type::TYPE_2);
    let [near, far] = [&it.near, &it.far];
    unsafe {
        let mut init: abi::QpInitAttrEx = std::mem::zeroed();
        (init.send_cq, init.recv_cq, init.pd) = (far.cq, far.cq, far.pd);
        init.cap = attributes(far.cq, abi::qp_type::RC, null_mut()).cap;
        // SEND, LOCAL_INV and BIND_MW.
        (init.qp_type, init.comp_mask, init.send_ops_flags) =
            (abi::qp_type::RC, 1 | 64, 1 << 2 | 1 << 7 | 1 << 8);
        let qp = (table(far.context).create_qp_ex)(far.context, &raw mut init);
        let calling = End { qp, memory: Vec::new(), ..*far };
        let mut plain = attributes(near.cq, abi::qp_type::RC, null_mut());
        let peer = End { qp: ibv_create_qp(near.pd, &raw mut plain), memory: Vec::new(), ..*near };
        [&calling, &peer].into_iter().for_each(End::initialize);
        calling.connect(&peer);
        peer.connect(&calling);
        let (calls, key) = (ibv_qp_to_qp_ex(qp), (*it.mw).rkey | 3);
        let info = it.info();
        let begin = |calls: *mut abi::QpEx, wr_id| {
            ((*calls).wr_start)(calls);
            ((*calls).wr_id, (*calls).wr_flags) = (wr_id, SIGNALED);
        };
        begin(calls, 1);
        ((*calls).wr_bind_mw)(calls, it.mw, key, &raw const info);
        (*calls).wr_id = 2;
        ((*calls).wr_send)(calls);
        peer.receive(9, &mut []);
        assert_eq!(((*calls).wr_complete)(calls), 0);
        assert_eq!(it.ended(), (1, wc::SUCCESS, wc::BIND_MW));
        assert_eq!(it.ended(), (2, wc::SUCCESS, wc::SEND));
        assert_eq!(peer.completion().wr_id, 9);
        let written = || {
            let mut parts = [near.part(0, 8)];
            let mut wr = request(4, opcode::RDMA_WRITE, &mut parts, SIGNALED);
            wr.wr.rdma = abi::Rdma { remote_addr: it.at(1000), rkey: key };
            assert_eq!(peer.post(&mut wr), 0);
            peer.completion().status
        };
        assert_eq!((written(), it.octets(1000)), (wc::SUCCESS, [0; 8]));
        begin(calls, 3);
        ((*calls).wr_local_inv)(calls, key);
        assert_eq!(((*calls).wr_complete)(calls), 0);
        assert_eq!(it.ended(), (3, wc::SUCCESS, wc::LOCAL_INV));
        assert_eq!(written(), wc::REM_ACCESS_ERR);
        for end in [calling, peer] {
            assert_eq!(ibv_destroy_qp(end.qp), 0);
        }
    }
    it.close();
}
