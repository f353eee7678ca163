//! What C programs and this library agree on: structures and numbers, as `rdma/rdma_cma.h` of rdma-core lays them out. A test compiles
//! that header and compares (`tests/header.rs`).
//!
//! Names are those of the header without `rdma_`, fields those of the header.
#![allow(missing_docs, reason = "the manual pages of librdmacm say what each is")]

use crate::abi::{AhAttr, CompChannel, Context, Cq, Gid, Pd, Qp, Srq};
use libc::{c_char, c_int, c_uint, c_void, sockaddr, sockaddr_storage, socklen_t};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct IbAddr {
    pub sgid: Gid,
    pub dgid: Gid,
    pub pkey: u16,
}

#[repr(C)]
pub struct Addr {
    pub src_storage: sockaddr_storage,
    pub dst_storage: sockaddr_storage,
    pub addr: IbAddr,
}

/// `struct ibv_sa_path_rec`, of `infiniband/sa.h`.
#[repr(C)]
#[derive(Default)]
pub struct PathRec {
    pub dgid: Gid,
    pub sgid: Gid,
    pub dlid: u16,
    pub slid: u16,
    pub raw_traffic: c_int,
    pub flow_label: u32,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub reversible: c_int,
    pub numb_path: u8,
    pub pkey: u16,
    pub sl: u8,
    pub mtu_selector: u8,
    pub mtu: u8,
    pub rate_selector: u8,
    pub rate: u8,
    pub packet_life_time_selector: u8,
    pub packet_life_time: u8,
    pub preference: u8,
}

#[repr(C)]
pub struct Route {
    pub addr: Addr,
    pub path_rec: *mut PathRec,
    pub num_paths: c_int,
}

#[repr(C)]
pub struct EventChannel {
    pub fd: c_int,
}

#[repr(C)]
pub struct CmId {
    pub verbs: *mut Context,
    pub channel: *mut EventChannel,
    pub context: *mut c_void,
    pub qp: *mut Qp,
    pub route: Route,
    pub ps: c_uint,
    pub port_num: u8,
    pub event: *mut CmEvent,
    pub send_cq_channel: *mut CompChannel,
    pub send_cq: *mut Cq,
    pub recv_cq_channel: *mut CompChannel,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub pd: *mut Pd,
    pub qp_type: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ConnParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

impl ConnParam {
    pub const NONE: Self = Self {
        private_data: std::ptr::null(),
        private_data_len: 0,
        responder_resources: 0,
        initiator_depth: 0,
        flow_control: 0,
        retry_count: 0,
        rnr_retry_count: 0,
        srq: 0,
        qp_num: 0,
    };
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct UdParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub ah_attr: AhAttr,
    pub qp_num: u32,
    pub qkey: u32,
}

#[repr(C)]
pub union Param {
    pub conn: ConnParam,
    pub ud: UdParam,
}

#[repr(C)]
pub struct CmEvent {
    pub id: *mut CmId,
    pub listen_id: *mut CmId,
    pub event: c_uint,
    pub status: c_int,
    pub param: Param,
}

#[repr(C)]
pub struct AddrInfo {
    pub ai_flags: c_int,
    pub ai_family: c_int,
    pub ai_qp_type: c_int,
    pub ai_port_space: c_int,
    pub ai_src_len: socklen_t,
    pub ai_dst_len: socklen_t,
    pub ai_src_addr: *mut sockaddr,
    pub ai_dst_addr: *mut sockaddr,
    pub ai_src_canonname: *mut c_char,
    pub ai_dst_canonname: *mut c_char,
    pub ai_route_len: usize,
    pub ai_route: *mut c_void,
    pub ai_connect_len: usize,
    pub ai_connect: *mut c_void,
    pub ai_next: *mut AddrInfo,
}

pub mod event {
    use libc::c_uint;
    pub const ADDR_RESOLVED: c_uint = 0;
    pub const ADDR_ERROR: c_uint = 1;
    pub const ROUTE_RESOLVED: c_uint = 2;
    pub const ROUTE_ERROR: c_uint = 3;
    pub const CONNECT_REQUEST: c_uint = 4;
    pub const CONNECT_RESPONSE: c_uint = 5;
    pub const CONNECT_ERROR: c_uint = 6;
    pub const UNREACHABLE: c_uint = 7;
    pub const REJECTED: c_uint = 8;
    pub const ESTABLISHED: c_uint = 9;
    pub const DISCONNECTED: c_uint = 10;
    pub const TIMEWAIT_EXIT: c_uint = 15;
}

pub mod port_space {
    use libc::c_uint;
    pub const IPOIB: c_uint = 0x0002;
    pub const TCP: c_uint = 0x0106;
    pub const UDP: c_uint = 0x0111;
    pub const IB: c_uint = 0x013f;
}

pub mod rai {
    use libc::c_int;
    pub const PASSIVE: c_int = 1;
    pub const NUMERICHOST: c_int = 2;
    pub const NOROUTE: c_int = 4;
    pub const FAMILY: c_int = 8;
}

/// What `rdma_set_option` sets.
pub mod option {
    use libc::c_int;
    pub const LEVEL_ID: c_int = 0;
    pub const ID_TOS: c_int = 0;
    pub const ID_REUSEADDR: c_int = 1;
    pub const ID_AFONLY: c_int = 2;
    pub const ID_ACK_TIMEOUT: c_int = 3;
}

/// As many READs and atomics as the device has.
pub const MAX_RESP_RES: u8 = 0xff;
