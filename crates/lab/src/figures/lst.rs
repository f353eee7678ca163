//! "A Congestion-Aware RDMA Front-End for LST Advanced Camera Readout" (Marini et al., 2026).

pub(super) mod forged;
pub(super) mod incast;
pub(super) mod limiter;
pub(super) mod sawtooth;
pub(super) mod scale;
pub(super) mod three;
