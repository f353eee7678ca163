//! What a program in C makes of a device, and its requests.
#![allow(
    dead_code,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests, of which each uses some"
)]

use roci_verbs::abi::{self, attr_mask as mask, qp_state as state};
use roci_verbs::completion::*;
use roci_verbs::device::*;
use roci_verbs::events::*;
use roci_verbs::memory::*;
use roci_verbs::queue_pair::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// A device opened, with what a program makes of it.
pub(crate) struct End {
    pub(crate) context: *mut abi::Context,
    pub(crate) pd: *mut abi::Pd,
    pub(crate) cq: *mut abi::Cq,
    pub(crate) qp: *mut abi::Qp,
    pub(crate) memory: Vec<u8>,
    pub(crate) mr: *mut abi::Mr,
}

pub(crate) const RIGHTS: i32 = 15;

/// The loopback, as the device of all tests of this process.
pub(crate) fn open() -> *mut abi::Context {
    unsafe {
        static NAMED: std::sync::Once = std::sync::Once::new();
        NAMED.call_once(|| std::env::set_var("ROCI_DEVICES", "127.0.0.81"));
        let (mut count, list) = (0, ibv_get_device_list(null_mut()));
        ibv_free_device_list(ibv_get_device_list(&raw mut count));
        assert_eq!((count, (*list.add(1)).is_null()), (1, true));
        let context = ibv_open_device(*list);
        ibv_free_device_list(list);
        assert!(!context.is_null());
        context
    }
}

pub(crate) fn attributes(cq: *mut abi::Cq, kind: u32, srq: *mut abi::Srq) -> abi::QpInitAttr {
    let cap = abi::QpCap {
        max_send_wr: 16,
        max_recv_wr: 16,
        max_send_sge: 2,
        max_recv_sge: 2,
        max_inline_data: 64,
    };
    abi::QpInitAttr {
        qp_context: null_mut(),
        send_cq: cq,
        recv_cq: cq,
        srq,
        cap,
        qp_type: kind,
        sq_sig_all: 0,
    }
}

impl End {
    pub(crate) fn new(kind: u32, srq: impl FnOnce(*mut abi::Pd) -> *mut abi::Srq) -> Self {
        unsafe {
            let context = open();
            let pd = ibv_alloc_pd(context);
            let cq = ibv_create_cq(context, 64, null_mut(), null_mut(), 0);
            let mut init = attributes(cq, kind, srq(pd));
            let qp = ibv_create_qp(pd, &raw mut init);
            assert!(!qp.is_null());
            let mut memory = vec![0u8; 8192];
            let mr = ibv_reg_mr(pd, memory.as_mut_ptr().cast(), 8192, RIGHTS);
            assert!(!mr.is_null());
            Self { context, pd, cq, qp, memory, mr }
        }
    }

    pub(crate) fn at(&self, offset: u64) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64 + offset
    }

    pub(crate) fn part(&self, offset: u64, length: u32) -> abi::Sge {
        abi::Sge { addr: self.at(offset), length, lkey: unsafe { (*self.mr).lkey } }
    }

    pub(crate) fn octets(&self, offset: usize, length: usize) -> Vec<u8> {
        // The device writes there behind Rust's back.
        (offset..offset + length).map(|at| unsafe { self.memory.as_ptr().add(at).read_volatile() }).collect()
    }

    pub(crate) fn to(&self, attr: &mut abi::QpAttr, what: i32) -> i32 {
        unsafe { ibv_modify_qp(self.qp, attr, what) }
    }

    pub(crate) fn initialize(&self) {
        initialize(self.qp);
    }

    pub(crate) fn gid(&self) -> abi::Gid {
        let mut gid = abi::Gid::default();
        assert_eq!(unsafe { ibv_query_gid(self.context, 1, 0, &raw mut gid) }, 0);
        gid
    }

    pub(crate) fn connect(&self, peer: &Self) {
        let mut attr = abi::QpAttr {
            qp_state: state::RTR,
            path_mtu: 3,
            dest_qp_num: unsafe { (*peer.qp).qp_num },
            rq_psn: 77,
            max_dest_rd_atomic: 4,
            min_rnr_timer: 12,
            ..Default::default()
        };
        attr.ah_attr.is_global = 1;
        attr.ah_attr.port_num = 1;
        attr.ah_attr.grh.dgid = peer.gid();
        let what = mask::AV
            | mask::PATH_MTU
            | mask::DEST_QPN
            | mask::RQ_PSN
            | mask::MAX_DEST_RD_ATOMIC
            | mask::MIN_RNR_TIMER;
        // All that is needed, and not less.
        assert_eq!(self.to(&mut attr, mask::STATE | what & !mask::RQ_PSN), libc::EINVAL);
        assert_eq!(self.to(&mut attr, mask::STATE | what), 0);
        let mut attr = abi::QpAttr {
            qp_state: state::RTS,
            sq_psn: 77,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: 4,
            ..Default::default()
        };
        let what = mask::SQ_PSN | mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
        assert_eq!(self.to(&mut attr, mask::STATE | what), 0);
    }

    pub(crate) fn post(&self, wr: &mut abi::SendWr) -> i32 {
        let mut bad = null_mut();
        unsafe { ((*self.context).ops.post_send)(self.qp, wr, &raw mut bad) }
    }

    pub(crate) fn receive(&self, wr_id: u64, parts: &mut [abi::Sge]) {
        let mut wr = receive(wr_id, parts);
        let mut bad = null_mut();
        assert_eq!(unsafe { ((*self.context).ops.post_recv)(self.qp, &raw mut wr, &raw mut bad) }, 0);
    }

    pub(crate) fn completion(&self) -> abi::Wc {
        let (mut wc, begin) = (abi::Wc::default(), Instant::now());
        while unsafe { ((*self.context).ops.poll_cq)(self.cq, 1, &raw mut wc) } == 0 {
            assert!(begin.elapsed() < Duration::from_secs(20), "a completion comes");
        }
        wc
    }

    pub(crate) fn is_silent(&self) -> bool {
        let mut wc = abi::Wc::default();
        unsafe { ((*self.context).ops.poll_cq)(self.cq, 1, &raw mut wc) == 0 }
    }

    /// Gives all back, in the order that the manual pages ask for.
    pub(crate) fn close(self) {
        unsafe {
            assert_eq!(ibv_destroy_cq(self.cq), libc::EBUSY);
            assert_eq!(ibv_destroy_qp(self.qp), 0);
            assert_eq!(ibv_dealloc_pd(self.pd), libc::EBUSY);
            assert_eq!((ibv_dereg_mr(self.mr), ibv_destroy_cq(self.cq)), (0, 0));
            assert_eq!((ibv_dealloc_pd(self.pd), ibv_close_device(self.context)), (0, 0));
        }
    }
}

/// From RESET to INIT.
pub(crate) fn initialize(qp: *mut abi::Qp) {
    use abi::access::{REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE};
    let mut attr = abi::QpAttr { qp_state: state::INIT, port_num: 1, qkey: 7, ..Default::default() };
    attr.qp_access_flags = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC;
    let what = mask::STATE | mask::PKEY_INDEX | mask::PORT;
    unsafe {
        let is_ud = (*qp).qp_type == abi::qp_type::UD;
        assert_eq!(ibv_modify_qp(qp, &raw mut attr, what), libc::EINVAL);
        let what = what | if is_ud { mask::QKEY } else { mask::ACCESS_FLAGS };
        assert_eq!(ibv_modify_qp(qp, &raw mut attr, what), 0);
    }
}

pub(crate) fn receive(wr_id: u64, parts: &mut [abi::Sge]) -> abi::RecvWr {
    abi::RecvWr { wr_id, next: null_mut(), sg_list: parts.as_mut_ptr(), num_sge: parts.len() as i32 }
}

pub(crate) fn request(wr_id: u64, opcode: u32, parts: &mut [abi::Sge], send_flags: u32) -> abi::SendWr {
    let atomic = abi::Atomic { remote_addr: 0, compare_add: 0, swap: 0, rkey: 0 };
    abi::SendWr {
        wr_id,
        next: null_mut(),
        sg_list: parts.as_mut_ptr(),
        num_sge: parts.len() as i32,
        opcode,
        send_flags,
        imm_data: 0x0403_0201u32.to_be(),
        wr: abi::Remote { atomic },
        qp_type: 0,
        bind_mw: unsafe { std::mem::zeroed() },
    }
}

pub(crate) const SIGNALED: u32 = abi::send_flags::SIGNALED;

pub(crate) fn connected() -> [End; 2] {
    let ends = [(); 2].map(|()| End::new(abi::qp_type::RC, |_| null_mut()));
    ends.iter().for_each(End::initialize);
    let [near, far] = &ends;
    near.connect(far);
    far.connect(near);
    ends
}

/// The calls behind the header's inline functions.
pub(crate) fn table<'a>(context: *mut abi::Context) -> &'a abi::VerbsContext {
    unsafe { &*context.byte_sub(std::mem::offset_of!(abi::VerbsContext, context)).cast() }
}

/// The call that `ibv_create_cq_ex` of the header makes.
pub(crate) fn create_cq_ex(context: *mut abi::Context, init: &mut abi::CqInitAttrEx) -> *mut abi::CqEx {
    unsafe { (table(context).create_cq_ex)(context, init) }
}

pub(crate) fn cq_attributes(cqe: u32, wc_flags: u64) -> abi::CqInitAttrEx {
    abi::CqInitAttrEx {
        cqe,
        cq_context: null_mut(),
        channel: null_mut(),
        comp_vector: 0,
        wc_flags,
        comp_mask: 0,
        flags: 0,
        parent_domain: null_mut(),
    }
}

/// What the system said last.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

/// The next event of a device, which is acknowledged.
pub(crate) fn event(context: *mut abi::Context) -> abi::AsyncEvent {
    let mut event = abi::AsyncEvent { element: null_mut(), event_type: 0 };
    unsafe {
        assert_eq!(ibv_get_async_event(context, &raw mut event), 0);
        ibv_ack_async_event(&raw mut event);
    }
    event
}

pub(crate) fn rdma(wr: &mut abi::SendWr, peer: &End, offset: u64) {
    wr.wr.rdma = abi::Rdma { remote_addr: peer.at(offset), rkey: unsafe { (*peer.mr).rkey } };
}
