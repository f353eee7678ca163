//! RoCEv2 octets: Ethernet, IP, UDP, BTH and its extensions, the ICRC, and the optional header layouts.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`opcode`] | BTH opcodes and what each implies |
//! | [`header`] | the transport headers of a packet as values |
#![no_std]
#![forbid(unsafe_code)]

pub mod header;
pub mod opcode;

pub use header::{Aeth, AtomicEth, Deth, Flags, Header, Reth};
pub use opcode::{Opcode, Shape};
