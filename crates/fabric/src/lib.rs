//! A simulated network: an event kernel, links, switches, topologies, routing and faults.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`graph`] | hosts, switches, links: what a topology becomes |
//! | [`packet`] | a packet in flight |
//! | [`nics`] | what stands at the edge |
#![forbid(unsafe_code)]

pub mod graph;
pub mod packet;
