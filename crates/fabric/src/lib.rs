//! A simulated network: an event kernel, links, switches, topologies, routing and faults.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`graph`] | hosts, switches, links: what a topology becomes |
//! | [`topology`] | star, dumbbell, tree, leaf-spine, fat tree, graphs link by link, HPCC's files |
//! | [`routing`] | shortest paths, chosen by a hash or in turn |
//! | [`balance`] | how switches choose, by the loads of their ports too |
//! | [`packet`] | a packet in flight |
//! | [`packets`] | the slab that packets live in, and what few of them carry |
//! | [`nics`] | what stands at the edge |
//! | [`queue`], `wheel` | what happens next: the event queue, and the timing wheel in it |
//! | `hop` | from switch to switch: arrival, wait, transmission |
//! | `link` | a direction of a link, as its port knows it |
//! | [`change`] | links that slow down, switches that fail, and the routes around what is down |
//! | [`net`] | everything but the NICs, and what a NIC may ask of it |
//! | [`fabric`] | the network with its NICs, and the loop that runs it |
//! | [`priorities`] | what ports count of each priority, where that is asked for |
//! | [`fault`] | loss, damage, delay, pause storms, forged CNPs |
//! | [`deadlock`] | finding ports that can never send again: [`Net::deadlock`] |
//! | [`tap`] | what a capture records |
#![forbid(unsafe_code)]

pub mod balance;
pub mod change;
pub mod deadlock;
pub mod fabric;
pub mod fault;
pub mod graph;
mod hop;
mod link;
pub mod net;
pub mod nics;
pub mod packet;
pub mod packets;
pub mod priorities;
pub mod queue;
pub mod routing;
pub mod tap;
pub mod topology;
mod wheel;

pub use balance::Balancing;
pub use change::{Outage, Part};
pub use fabric::{Fabric, Stopped};
pub use fault::{Fault, FaultSpec};
pub use net::{BuildError, FabricConfig, Net};
pub use nics::Nics;
pub use packet::{HostId, Marks, Packet, PacketId};
