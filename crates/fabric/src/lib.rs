//! A simulated network: an event kernel, links, switches, topologies, routing and faults.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`graph`] | hosts, switches, links: what a topology becomes |
//! | [`packet`] | a packet in flight |
//! | [`nics`] | what stands at the edge |
//! | [`topology`] | from a few numbers, or a file, to a checked graph |
//! | [`routing`] | equal-cost shortest paths |
#![forbid(unsafe_code)]

pub mod graph;
pub mod packet;
pub mod routing;
pub mod topology;
