//! Ids of RDMA-CM at two devices of one process, and what is said to them.

use roci_verbs::abi::{self};
use roci_verbs::cm::abi::{CmEvent, CmId, ConnParam, EventChannel, event, port_space};
use roci_verbs::cm::channel::*;
use roci_verbs::cm::connect::*;
use roci_verbs::cm::id::*;
use roci_verbs::cm::queue_pair::*;
use roci_verbs::cm::resolve::*;
use roci_verbs::memory::*;
use std::ffi::CStr;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::ptr::null_mut;
use std::sync::Once;
use std::time::{Duration, Instant};

pub(crate) const NEAR: &str = "127.0.5.1";
pub(crate) const FAR: &str = "127.0.5.2";
/// The device of a process that a test starts, and where it is told to which port it connects.
pub(crate) const OTHER: &str = "127.0.5.3";
pub(crate) const CHILD: &str = "ROCI_TEST_PORT";

/// The devices of this process.
pub(crate) fn devices() {
    static NAMED: Once = Once::new();
    NAMED.call_once(|| {
        let all = if std::env::var(CHILD).is_ok() { OTHER.to_owned() } else { format!("{NEAR},{FAR}") };
        unsafe { std::env::set_var("ROCI_DEVICES", all) };
    });
}

pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

pub(crate) fn address(text: &str, port: u16) -> libc::sockaddr_in {
    let ip: Ipv4Addr = text.parse().unwrap();
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
        sin_zero: [0; 8],
    }
}

/// An event as it was, acknowledged.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) event: u32,
    pub(crate) status: i32,
    pub(crate) private_data: Vec<u8>,
    pub(crate) conn: (u8, u8, u32),
    pub(crate) id: *mut CmId,
    pub(crate) listens: *mut CmId,
}

pub(crate) unsafe fn read(event: *mut CmEvent) -> Told {
    let conn = (*event).param.conn;
    let private_data = if conn.private_data.is_null() {
        Vec::new()
    } else {
        std::slice::from_raw_parts(conn.private_data.cast(), conn.private_data_len.into()).to_vec()
    };
    Told {
        event: (*event).event,
        status: (*event).status,
        private_data,
        conn: (conn.responder_resources, conn.initiator_depth, conn.qp_num),
        id: (*event).id,
        listens: (*event).listen_id,
    }
}

/// The next event of a channel.
pub(crate) unsafe fn any(channel: *mut EventChannel) -> Told {
    let mut got = null_mut();
    assert_eq!(rdma_get_cm_event(channel, &raw mut got), 0);
    let told = read(got);
    assert_eq!(rdma_ack_cm_event(got), 0);
    told
}

/// The same, which is to be this one.
pub(crate) unsafe fn next(channel: *mut EventChannel, expected: u32) -> Told {
    let told = any(channel);
    let name = |event| CStr::from_ptr(rdma_event_str(event));
    assert_eq!(name(told.event), name(expected), "{told:?}");
    told
}

pub(crate) fn attributes() -> abi::QpInitAttr {
    let cap =
        abi::QpCap { max_send_wr: 4, max_recv_wr: 4, max_send_sge: 1, max_recv_sge: 1, max_inline_data: 64 };
    abi::QpInitAttr {
        qp_context: null_mut(),
        send_cq: null_mut(),
        recv_cq: null_mut(),
        srq: null_mut(),
        cap,
        qp_type: abi::qp_type::RC,
        sq_sig_all: 1,
    }
}

pub(crate) fn saying(private_data: &[u8]) -> ConnParam {
    ConnParam {
        private_data: private_data.as_ptr().cast(),
        private_data_len: private_data.len() as u8,
        responder_resources: 3,
        initiator_depth: 5,
        retry_count: 7,
        rnr_retry_count: 7,
        ..ConnParam::NONE
    }
}

/// Who listens at a port of the far device.
pub(crate) unsafe fn listening() -> (*mut EventChannel, *mut CmId, u16) {
    devices();
    let (channel, mut id) = (rdma_create_event_channel(), null_mut());
    let mark = std::ptr::without_provenance_mut(7);
    assert_eq!(rdma_create_id(channel, &raw mut id, mark, port_space::TCP), 0);
    assert_eq!(rdma_bind_addr(id, (&raw mut *Box::new(address(FAR, 0))).cast()), 0);
    assert_eq!(rdma_listen(id, 4), 0);
    let port = u16::from_be(rdma_get_src_port(id));
    assert!(port >= 1 << 15, "{port}");
    (channel, id, port)
}

/// An id that has been led to a peer from the near device.
pub(crate) unsafe fn resolved(to: &str, port: u16) -> (*mut EventChannel, *mut CmId) {
    resolved_from(NEAR, to, port)
}

pub(crate) unsafe fn resolved_from(from: &str, to: &str, port: u16) -> (*mut EventChannel, *mut CmId) {
    devices();
    let (channel, mut id) = (rdma_create_event_channel(), null_mut());
    assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
    let (mut from, mut to) = (address(from, 0), address(to, port));
    assert_eq!(rdma_resolve_addr(id, (&raw mut from).cast(), (&raw mut to).cast(), 2000), 0);
    next(channel, event::ADDR_RESOLVED);
    assert!(!(*id).verbs.is_null() && !(*id).pd.is_null());
    assert_eq!(rdma_resolve_route(id, 2000), 0);
    next(channel, event::ROUTE_RESOLVED);
    assert_eq!(((*id).route.num_paths, (*(*id).route.path_rec).pkey), (1, 0xffff));
    (channel, id)
}

/// Asks for a connection, with a queue pair.
pub(crate) unsafe fn asks(id: *mut CmId) {
    assert_eq!(rdma_create_qp(id, null_mut(), &mut attributes()), 0);
    assert_eq!(rdma_connect(id, null_mut()), 0);
}

/// An id that asks the far device.
pub(crate) unsafe fn asking(port: u16) -> (*mut EventChannel, *mut CmId) {
    let (channel, id) = resolved(FAR, port);
    asks(id);
    (channel, id)
}

/// Grants one, with a queue pair.
pub(crate) unsafe fn accepts(id: *mut CmId) {
    assert_eq!(rdma_create_qp(id, null_mut(), &mut attributes()), 0);
    assert_eq!(rdma_accept(id, null_mut()), 0);
}

/// What a queue that is polled says, within a while.
pub(crate) unsafe fn completion(cq: *mut abi::Cq) -> abi::Wc {
    let begin = Instant::now();
    loop {
        let mut wc = abi::Wc::default();
        if ((*(*cq).context).ops.poll_cq)(cq, 1, &raw mut wc) == 1 {
            return wc;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "nothing completes");
    }
}

/// A message of some octets from one queue pair to another.
pub(crate) unsafe fn send(from: *mut abi::Qp, to: *mut abi::Qp) {
    let mut memory = [0u8; 64];
    let mr = ibv_reg_mr((*to).pd, memory.as_mut_ptr().cast(), 64, 1);
    let mut part =
        abi::Sge { addr: memory.as_mut_ptr().expose_provenance() as u64, length: 64, lkey: (*mr).lkey };
    let mut wr = abi::RecvWr { wr_id: 9, next: null_mut(), sg_list: &raw mut part, num_sge: 1 };
    assert_eq!(((*(*to).context).ops.post_recv)(to, &raw mut wr, &mut null_mut()), 0);
    let mut said = *b"hello";
    let mut part = abi::Sge { addr: said.as_mut_ptr().expose_provenance() as u64, length: 5, lkey: 0 };
    let mut wr: abi::SendWr = zeroed();
    (wr.sg_list, wr.num_sge) = (&raw mut part, 1);
    (wr.opcode, wr.send_flags) = (abi::wr_opcode::SEND, abi::send_flags::INLINE);
    assert_eq!(((*(*from).context).ops.post_send)(from, &raw mut wr, &mut null_mut()), 0);
    let sent = completion((*from).send_cq);
    let received = completion((*to).recv_cq);
    assert_eq!((sent.status, received.status, received.byte_len, received.wr_id), (0, 0, 5, 9));
    assert_eq!(&memory[..5], b"hello");
    ibv_dereg_mr(mr);
}

pub(crate) unsafe fn gone(channel: *mut EventChannel, id: *mut CmId) {
    rdma_destroy_qp(id);
    assert_eq!(rdma_destroy_id(id), 0);
    if !channel.is_null() {
        rdma_destroy_event_channel(channel);
    }
}
