//! Numbers by their kinds: rights, types, states, attributes, operations, events.

pub mod access {
    use libc::c_uint;
    pub const LOCAL_WRITE: c_uint = 1;
    pub const REMOTE_WRITE: c_uint = 2;
    pub const REMOTE_READ: c_uint = 4;
    pub const REMOTE_ATOMIC: c_uint = 8;
    pub const MW_BIND: c_uint = 16;
    pub const ZERO_BASED: c_uint = 32;
    pub const ON_DEMAND: c_uint = 64;
}

pub mod mw_type {
    use libc::c_uint;
    pub const TYPE_1: c_uint = 1;
    pub const TYPE_2: c_uint = 2;
}

pub mod qp_type {
    use libc::c_uint;
    pub const RC: c_uint = 2;
    pub const UC: c_uint = 3;
    pub const UD: c_uint = 4;
}

pub mod qp_state {
    use libc::c_uint;
    pub const RESET: c_uint = 0;
    pub const INIT: c_uint = 1;
    pub const RTR: c_uint = 2;
    pub const RTS: c_uint = 3;
    pub const SQD: c_uint = 4;
    pub const ERR: c_uint = 6;
}

pub mod attr_mask {
    use libc::c_int;
    pub const STATE: c_int = 1;
    pub const CUR_STATE: c_int = 1 << 1;
    pub const EN_SQD_ASYNC_NOTIFY: c_int = 1 << 2;
    pub const ACCESS_FLAGS: c_int = 1 << 3;
    pub const PKEY_INDEX: c_int = 1 << 4;
    pub const PORT: c_int = 1 << 5;
    pub const QKEY: c_int = 1 << 6;
    pub const AV: c_int = 1 << 7;
    pub const PATH_MTU: c_int = 1 << 8;
    pub const TIMEOUT: c_int = 1 << 9;
    pub const RETRY_CNT: c_int = 1 << 10;
    pub const RNR_RETRY: c_int = 1 << 11;
    pub const RQ_PSN: c_int = 1 << 12;
    pub const MAX_QP_RD_ATOMIC: c_int = 1 << 13;
    pub const ALT_PATH: c_int = 1 << 14;
    pub const MIN_RNR_TIMER: c_int = 1 << 15;
    pub const SQ_PSN: c_int = 1 << 16;
    pub const MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
    pub const CAP: c_int = 1 << 19;
    pub const DEST_QPN: c_int = 1 << 20;
    pub const RATE_LIMIT: c_int = 1 << 25;
}

pub mod wr_opcode {
    use libc::c_uint;
    pub const RDMA_WRITE: c_uint = 0;
    pub const RDMA_WRITE_WITH_IMM: c_uint = 1;
    pub const SEND: c_uint = 2;
    pub const SEND_WITH_IMM: c_uint = 3;
    pub const RDMA_READ: c_uint = 4;
    pub const ATOMIC_CMP_AND_SWP: c_uint = 5;
    pub const ATOMIC_FETCH_AND_ADD: c_uint = 6;
    pub const LOCAL_INV: c_uint = 7;
    pub const BIND_MW: c_uint = 8;
    pub const SEND_WITH_INV: c_uint = 9;
}

pub mod send_flags {
    use libc::c_uint;
    pub const FENCE: c_uint = 1;
    pub const SIGNALED: c_uint = 2;
    pub const SOLICITED: c_uint = 4;
    pub const INLINE: c_uint = 8;
}

pub mod event {
    use libc::c_uint;
    pub const QP_REQ_ERR: c_uint = 2;
    pub const QP_ACCESS_ERR: c_uint = 3;
    pub const COMM_EST: c_uint = 4;
    pub const SQ_DRAINED: c_uint = 5;
    pub const DEVICE_FATAL: c_uint = 8;
    pub const SRQ_LIMIT_REACHED: c_uint = 15;
    pub const QP_LAST_WQE_REACHED: c_uint = 16;
}
