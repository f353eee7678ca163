//! Protocols as a textbook tells them, written without the engine: what it is compared with.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`newreno`] | a TCP NewReno sender in octets |

pub(super) mod newreno;
