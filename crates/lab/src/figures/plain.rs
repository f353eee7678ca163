//! Protocols as a textbook tells them, written without the engine: what it is compared with.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`newreno`] | a TCP NewReno sender in octets |
//! | [`dcqcn`] | DCQCN in real numbers |
//! | [`multi_precision`] | Tonic's rate limiter |
//! | [`bottleneck`], [`stream`] | hosts behind one queue, and NewReno's both ends over it |

pub(super) mod bottleneck;
pub(super) mod dcqcn;
pub(super) mod multi_precision;
pub(super) mod newreno;
pub(super) mod stream;
