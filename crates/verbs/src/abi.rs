//! What C programs and this library agree on: structures and numbers, as `infiniband/verbs.h` of rdma-core lays them out. A test compiles
//! that header and compares (`tests/header.rs`).
//!
//! Names are those of the header without `ibv_`, fields those of the header.
#![allow(missing_docs, reason = "the manual pages of libibverbs say what each is")]

mod numbers;
pub mod wc;

pub use numbers::{access, attr_mask, event, mw_type, qp_state, qp_type, send_flags, wr_opcode};

use libc::{c_char, c_int, c_uint, c_void};

/// A pointer to a function that this library does not have.
pub type Absent = *const c_void;

#[repr(C)]
pub struct Device {
    pub _ops: [Absent; 2],
    pub node_type: c_int,
    pub transport_type: c_int,
    pub name: [c_char; 64],
    pub dev_name: [c_char; 64],
    pub dev_path: [c_char; 256],
    pub ibdev_path: [c_char; 256],
}

pub type PollCq = unsafe extern "C" fn(*mut Cq, c_int, *mut Wc) -> c_int;
pub type ReqNotifyCq = unsafe extern "C" fn(*mut Cq, c_int) -> c_int;
pub type PostSrqRecv = unsafe extern "C" fn(*mut Srq, *mut RecvWr, *mut *mut RecvWr) -> c_int;
pub type AllocMw = unsafe extern "C" fn(*mut Pd, c_uint) -> *mut Mw;
pub type BindMw = unsafe extern "C" fn(*mut Qp, *mut Mw, *mut MwBind) -> c_int;
pub type DeallocMw = unsafe extern "C" fn(*mut Mw) -> c_int;
pub type PostSend = unsafe extern "C" fn(*mut Qp, *mut SendWr, *mut *mut SendWr) -> c_int;
pub type PostRecv = unsafe extern "C" fn(*mut Qp, *mut RecvWr, *mut *mut RecvWr) -> c_int;

/// The calls that the header's inline functions make.
#[repr(C)]
pub struct ContextOps {
    pub _compat_to_dereg_mr: [Absent; 7],
    pub alloc_mw: AllocMw,
    pub bind_mw: BindMw,
    pub dealloc_mw: DeallocMw,
    pub _compat_create_cq: Absent,
    pub poll_cq: PollCq,
    pub req_notify_cq: ReqNotifyCq,
    pub _compat_to_destroy_srq: [Absent; 7],
    pub post_srq_recv: PostSrqRecv,
    pub _compat_to_destroy_qp: [Absent; 4],
    pub post_send: PostSend,
    pub post_recv: PostRecv,
    pub _compat_to_async_event: [Absent; 5],
}

#[repr(C)]
pub struct Context {
    pub device: *mut Device,
    pub ops: ContextOps,
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
    pub mutex: libc::pthread_mutex_t,
    pub abi_compat: *mut c_void,
}

pub type CreateCqEx = unsafe extern "C" fn(*mut Context, *mut CqInitAttrEx) -> *mut CqEx;
pub type CreateQpEx = unsafe extern "C" fn(*mut Context, *mut QpInitAttrEx) -> *mut Qp;

pub type ModifyCq = unsafe extern "C" fn(*mut Cq, *mut ModifyCqAttr) -> c_int;
pub type AdviseMr = unsafe extern "C" fn(*mut Pd, c_uint, u32, *mut Sge, u32) -> c_int;
pub type AllocParentDomain = unsafe extern "C" fn(*mut Context, *mut ParentDomainInitAttr) -> *mut Pd;
pub type AllocTd = unsafe extern "C" fn(*mut Context, *mut TdInitAttr) -> *mut Td;
pub type DeallocTd = unsafe extern "C" fn(*mut Td) -> c_int;
pub type QueryDeviceEx = unsafe extern "C" fn(*mut Context, *const c_void, *mut DeviceAttrEx, usize) -> c_int;
pub type QueryRtValues = unsafe extern "C" fn(*mut Context, *mut ValuesEx) -> c_int;

/// The end of `struct verbs_context`, which grows at its beginning and says by `sz` how much of it there is.
#[repr(C)]
pub struct VerbsContext {
    pub advise_mr: AdviseMr,
    pub alloc_null_mr_to_modify_qp_rate_limit: [Absent; 12],
    pub alloc_parent_domain: AllocParentDomain,
    pub dealloc_td: DeallocTd,
    pub alloc_td: AllocTd,
    pub modify_cq: ModifyCq,
    pub post_srq_ops_to_create_wq: [Absent; 6],
    pub query_rt_values: QueryRtValues,
    pub create_cq_ex: CreateCqEx,
    pub _priv: Absent,
    pub query_device_ex: QueryDeviceEx,
    pub _destroy_flow_to_open_qp: [Absent; 5],
    pub create_qp_ex: CreateQpEx,
    pub get_srq_num_create_srq_ex_open_xrcd_close_xrcd: [Absent; 4],
    pub _abi_placeholder3: u64,
    pub sz: usize,
    pub context: Context,
}

/// `abi_compat` where a [`VerbsContext`] lies around the context.
pub const VERBS_ABI_IS_EXTENDED: *mut c_void = std::ptr::without_provenance_mut(usize::MAX);

#[repr(C)]
pub struct Pd {
    pub context: *mut Context,
    pub handle: u32,
}

/// Who has one says that no two threads use what is made with it at once.
#[repr(C)]
pub struct Td {
    pub context: *mut Context,
}

#[repr(C)]
pub struct TdInitAttr {
    pub comp_mask: u32,
}

#[repr(C)]
pub struct ParentDomainInitAttr {
    pub pd: *mut Pd,
    pub td: *mut Td,
    pub comp_mask: u32,
    pub alloc_free: [Absent; 2],
    pub pd_context: *mut c_void,
}

#[repr(C)]
pub struct Mr {
    pub context: *mut Context,
    pub pd: *mut Pd,
    pub addr: *mut c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

/// A memory window.
#[repr(C)]
pub struct Mw {
    pub context: *mut Context,
    pub pd: *mut Pd,
    pub rkey: u32,
    pub handle: u32,
    pub kind: c_uint,
}

/// What a window is to be bound to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MwBindInfo {
    pub mr: *mut Mr,
    pub addr: u64,
    pub length: u64,
    pub mw_access_flags: c_uint,
}

/// How a window of type 1 is bound.
#[repr(C)]
pub struct MwBind {
    pub wr_id: u64,
    pub send_flags: c_uint,
    pub bind_info: MwBindInfo,
}

/// How a request binds a window of type 2.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bind {
    pub mw: *mut Mw,
    pub rkey: u32,
    pub bind_info: MwBindInfo,
}

#[repr(C)]
pub struct CompChannel {
    pub context: *mut Context,
    pub fd: c_int,
    pub refcnt: c_int,
}

#[repr(C)]
pub struct Cq {
    pub context: *mut Context,
    pub channel: *mut CompChannel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
    pub mutex: libc::pthread_mutex_t,
    pub cond: libc::pthread_cond_t,
    pub comp_events_completed: u32,
    pub async_events_completed: u32,
}

/// A completion queue whose completions are read one by one (`ibv_start_poll` and on).
#[repr(C)]
pub struct CqEx {
    /// The fields of `Cq`, in the same places.
    pub cq_base: Cq,
    pub comp_mask: u32,
    pub status: c_uint,
    pub wr_id: u64,
    pub start_poll: unsafe extern "C" fn(*mut CqEx, *mut PollCqAttr) -> c_int,
    pub next_poll: unsafe extern "C" fn(*mut CqEx) -> c_int,
    pub end_poll: unsafe extern "C" fn(*mut CqEx),
    pub read_opcode: unsafe extern "C" fn(*mut CqEx) -> c_uint,
    pub read_vendor_err: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_byte_len: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_imm_data: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_qp_num: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_src_qp: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_wc_flags: unsafe extern "C" fn(*mut CqEx) -> c_uint,
    pub read_slid: unsafe extern "C" fn(*mut CqEx) -> u32,
    pub read_sl: unsafe extern "C" fn(*mut CqEx) -> u8,
    pub read_dlid_path_bits: unsafe extern "C" fn(*mut CqEx) -> u8,
    pub read_completion_ts: unsafe extern "C" fn(*mut CqEx) -> u64,
    pub read_cvlan_flow_tag_tm_info: [Absent; 3],
    pub read_completion_wallclock_ns: unsafe extern "C" fn(*mut CqEx) -> u64,
}

#[repr(C)]
pub struct PollCqAttr {
    pub comp_mask: u32,
}

/// `struct ibv_modify_cq_attr`, with what it has of `struct ibv_moderate_cq`.
#[repr(C)]
pub struct ModifyCqAttr {
    pub attr_mask: u32,
    pub cq_count: u16,
    /// In microseconds.
    pub cq_period: u16,
}

/// The bit of its mask.
pub const CQ_ATTR_MODERATE: u32 = 1;

#[repr(C)]
pub struct CqInitAttrEx {
    pub cqe: u32,
    pub cq_context: *mut c_void,
    pub channel: *mut CompChannel,
    pub comp_vector: u32,
    pub wc_flags: u64,
    pub comp_mask: u32,
    pub flags: u32,
    pub parent_domain: *mut Pd,
}

#[repr(C)]
pub struct Srq {
    pub context: *mut Context,
    pub srq_context: *mut c_void,
    pub pd: *mut Pd,
    pub handle: u32,
    pub mutex: libc::pthread_mutex_t,
    pub cond: libc::pthread_cond_t,
    pub events_completed: u32,
}

#[repr(C)]
pub struct Qp {
    pub context: *mut Context,
    pub qp_context: *mut c_void,
    pub pd: *mut Pd,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: c_uint,
    pub qp_type: c_uint,
    pub mutex: libc::pthread_mutex_t,
    pub cond: libc::pthread_cond_t,
    pub events_completed: u32,
}

/// A queue pair whose requests are made by calls (`ibv_wr_start` and on).
#[repr(C)]
pub struct QpEx {
    pub qp_base: Qp,
    pub comp_mask: u64,
    pub wr_id: u64,
    pub wr_flags: c_uint,
    pub wr_atomic_cmp_swp: unsafe extern "C" fn(*mut QpEx, u32, u64, u64, u64),
    pub wr_atomic_fetch_add: unsafe extern "C" fn(*mut QpEx, u32, u64, u64),
    pub wr_bind_mw: unsafe extern "C" fn(*mut QpEx, *mut Mw, u32, *const MwBindInfo),
    pub wr_local_inv: unsafe extern "C" fn(*mut QpEx, u32),
    pub wr_rdma_read: unsafe extern "C" fn(*mut QpEx, u32, u64),
    pub wr_rdma_write: unsafe extern "C" fn(*mut QpEx, u32, u64),
    pub wr_rdma_write_imm: unsafe extern "C" fn(*mut QpEx, u32, u64, u32),
    pub wr_send: unsafe extern "C" fn(*mut QpEx),
    pub wr_send_imm: unsafe extern "C" fn(*mut QpEx, u32),
    pub wr_send_inv: unsafe extern "C" fn(*mut QpEx, u32),
    pub wr_send_tso: Absent,
    pub wr_set_ud_addr: unsafe extern "C" fn(*mut QpEx, *mut Ah, u32, u32),
    pub wr_set_xrc_srqn: Absent,
    pub wr_set_inline_data: unsafe extern "C" fn(*mut QpEx, *mut c_void, usize),
    pub wr_set_inline_data_list: unsafe extern "C" fn(*mut QpEx, usize, *const DataBuf),
    pub wr_set_sge: unsafe extern "C" fn(*mut QpEx, u32, u64, u32),
    pub wr_set_sge_list: unsafe extern "C" fn(*mut QpEx, usize, *const Sge),
    pub wr_start: unsafe extern "C" fn(*mut QpEx),
    pub wr_complete: unsafe extern "C" fn(*mut QpEx) -> c_int,
    pub wr_abort: unsafe extern "C" fn(*mut QpEx),
    pub wr_atomic_write: Absent,
}

#[repr(C)]
pub struct DataBuf {
    pub addr: *mut c_void,
    pub length: usize,
}

#[repr(C)]
pub struct Ah {
    pub context: *mut Context,
    pub pd: *mut Pd,
    pub handle: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

#[repr(C)]
pub struct RecvWr {
    pub wr_id: u64,
    pub next: *mut RecvWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ud {
    pub ah: *mut Ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Remote {
    pub rdma: Rdma,
    pub atomic: Atomic,
    pub ud: Ud,
}

#[repr(C)]
pub struct SendWr {
    pub wr_id: u64,
    pub next: *mut SendWr,
    pub sg_list: *mut Sge,
    pub num_sge: c_int,
    pub opcode: c_uint,
    pub send_flags: c_uint,
    /// Immediate data in network order, or the key to invalidate.
    pub imm_data: u32,
    pub wr: Remote,
    pub qp_type: u32,
    /// Of `BIND_MW`.
    pub bind_mw: Bind,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Wc {
    pub wr_id: u64,
    pub status: c_uint,
    pub opcode: c_uint,
    pub vendor_err: u32,
    pub byte_len: u32,
    /// Immediate data in network order, or the key that was invalidated.
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpCap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct QpInitAttr {
    pub qp_context: *mut c_void,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub cap: QpCap,
    pub qp_type: c_uint,
    pub sq_sig_all: c_int,
}

#[repr(C)]
pub struct QpInitAttrEx {
    // The fields of `QpInitAttr`, in the same places. What follows begins where that has padding.
    pub qp_context: *mut c_void,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub cap: QpCap,
    pub qp_type: c_uint,
    pub sq_sig_all: c_int,
    pub comp_mask: u32,
    pub pd: *mut Pd,
    pub xrcd: *mut c_void,
    pub create_flags: u32,
    pub max_tso_header: u16,
    pub rwq_ind_tbl: *mut c_void,
    pub rx_hash_conf: RxHashConf,
    pub source_qpn: u32,
    pub send_ops_flags: u64,
}

#[repr(C)]
pub struct RxHashConf {
    pub rx_hash_function: u8,
    pub rx_hash_key_len: u8,
    pub rx_hash_key: *mut u8,
    pub rx_hash_fields_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Gid {
    /// Eight octets at a time have the alignment of the header's union.
    pub raw: [[u8; 8]; 2],
    pub align: [u64; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct GlobalRoute {
    pub dgid: Gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AhAttr {
    pub grh: GlobalRoute,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct QpAttr {
    pub qp_state: c_uint,
    pub cur_qp_state: c_uint,
    pub path_mtu: c_uint,
    pub path_mig_state: c_uint,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_uint,
    pub cap: QpCap,
    pub ah_attr: AhAttr,
    pub alt_ah_attr: AhAttr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SrqAttr {
    pub max_wr: u32,
    pub max_sge: u32,
    pub srq_limit: u32,
}

#[repr(C)]
pub struct SrqInitAttr {
    pub srq_context: *mut c_void,
    pub attr: SrqAttr,
}

#[repr(C)]
pub struct AsyncEvent {
    /// The queue, or the number of the port.
    pub element: *mut c_void,
    pub event_type: c_uint,
}

#[repr(C)]
pub struct GidEntry {
    pub gid: Gid,
    pub gid_index: u32,
    pub port_num: u32,
    pub gid_type: u32,
    pub ndev_ifindex: u32,
}

#[repr(C)]
pub struct DeviceAttr {
    pub fw_ver: [c_char; 64],
    pub node_guid: u64,
    pub sys_image_guid: u64,
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    pub device_cap_flags: c_uint,
    pub max_sge: c_int,
    pub max_sge_rd: c_int,
    pub max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    pub max_pd: c_int,
    pub max_qp_rd_atom: c_int,
    pub max_ee_rd_atom: c_int,
    pub max_res_rd_atom: c_int,
    pub max_qp_init_rd_atom: c_int,
    pub max_ee_init_rd_atom: c_int,
    pub atomic_cap: c_uint,
    pub max_ee: c_int,
    pub max_rdd: c_int,
    pub max_mw: c_int,
    pub max_raw_ipv6_qp: c_int,
    pub max_raw_ethy_qp: c_int,
    pub max_mcast_grp: c_int,
    pub max_mcast_qp_attach: c_int,
    pub max_total_mcast_qp_attach: c_int,
    pub max_ah: c_int,
    pub max_fmr: c_int,
    pub max_map_per_fmr: c_int,
    pub max_srq: c_int,
    pub max_srq_wr: c_int,
    pub max_srq_sge: c_int,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
}

/// As far as we have it; programs of other ages have less, or more.
/// What regions whose pages are fetched on demand can be used for.
#[repr(C)]
pub struct OdpCaps {
    pub general_caps: u64,
    /// Of RC, UC and UD.
    pub per_transport_caps: [u32; 3],
}

#[repr(C)]
pub struct DeviceAttrEx {
    pub orig_attr: DeviceAttr,
    pub comp_mask: u32,
    pub odp_caps: OdpCaps,
    pub completion_timestamp_mask: u64,
    /// In kHz.
    pub hca_core_clock: u64,
    pub device_cap_flags_ex: u64,
    pub tso_caps: [u32; 2],
    pub rss_caps: [u64; 4],
    pub max_wq_type_rq: u32,
    pub packet_pacing_caps: [u32; 3],
    pub raw_packet_caps: u32,
    pub tm_caps: [u32; 5],
    pub cq_mod_caps: [u16; 2],
    pub max_dm_size: u64,
    pub pci_atomic_caps: [u16; 3],
    pub xrc_odp_caps: u32,
    pub phys_port_cnt_ex: u32,
}

#[repr(C)]
pub struct ValuesEx {
    /// What is asked for, and then what is there.
    pub comp_mask: u32,
    pub raw_clock: libc::timespec,
}

/// As far as programs of all ages have it.
#[repr(C)]
pub struct PortAttr {
    pub state: c_uint,
    pub max_mtu: c_uint,
    pub active_mtu: c_uint,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
}

/// The octets of a global route header, before each datagram that is received.
pub const GRH: u32 = 40;
