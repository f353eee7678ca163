//! The host behind a simulated NIC, as far as it decides how fast what arrives is consumed: a last-level cache with ways for I/O
//! (DDIO), memory of a bounded bandwidth, the buffer of the I/O controller, and hardware threads that share cores.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`cache`] | the last-level cache: what a NIC writes may take some of its ways, what a core misses may take all |
//! | [`memory`] | the DRAM behind it: a latency, and what waits for its bandwidth |
//! | [`iio`] | the buffer between PCIe and memory, whose occupancy hostCC watches |
//! | [`threads`] | hardware threads, two of which may share a core |
//! | [`host`] | all of it as one machine: what a NIC writes, and what a thread's work costs |
//! | [`states`] | how much has arrived and not been consumed, as the states S1 to S4 of Li et al., APNet 2025, §3.1 |
//!
//! It knows addresses and times, and nothing of packets. Caches nearer to a core are not modelled: a line that a piece of work has
//! touched is near for the rest of that piece.
#![forbid(unsafe_code)]

pub mod cache;
pub mod host;
pub mod iio;
pub mod memory;
pub mod states;
pub mod threads;

pub use cache::{Cache, Geometry};
pub use host::{Counters, Machine, MachineConfig, Work};
pub use iio::IioConfig;
pub use memory::MemoryConfig;
pub use states::State;
