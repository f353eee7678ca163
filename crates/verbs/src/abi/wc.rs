//! Of completions: how they ended, what of, and what stands in them.

use libc::c_uint;

pub const SUCCESS: c_uint = 0;
pub const LOC_LEN_ERR: c_uint = 1;
pub const LOC_QP_OP_ERR: c_uint = 2;
pub const LOC_PROT_ERR: c_uint = 4;
pub const WR_FLUSH_ERR: c_uint = 5;
pub const MW_BIND_ERR: c_uint = 6;
pub const BAD_RESP_ERR: c_uint = 7;
pub const REM_INV_REQ_ERR: c_uint = 9;
pub const REM_ACCESS_ERR: c_uint = 10;
pub const REM_OP_ERR: c_uint = 11;
pub const RETRY_EXC_ERR: c_uint = 12;
pub const RNR_RETRY_EXC_ERR: c_uint = 13;

pub const SEND: c_uint = 0;
pub const RDMA_WRITE: c_uint = 1;
pub const RDMA_READ: c_uint = 2;
pub const COMP_SWAP: c_uint = 3;
pub const FETCH_ADD: c_uint = 4;
pub const BIND_MW: c_uint = 5;
pub const LOCAL_INV: c_uint = 6;
pub const RECV: c_uint = 128;
pub const RECV_RDMA_WITH_IMM: c_uint = 129;

pub const GRH: c_uint = 1;
pub const WITH_IMM: c_uint = 2;
pub const WITH_INV: c_uint = 8;
