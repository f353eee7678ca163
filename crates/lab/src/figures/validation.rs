//! The model against what is known independently of it.

pub(super) mod fixed_point;
mod fluid;
pub(super) mod headroom;
pub(super) mod laws;
pub(super) mod pacing;
pub(super) mod queueing;
pub(super) mod receivers;
mod renewal;
pub(super) mod shares;
