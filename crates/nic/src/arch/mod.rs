//! NIC architectures as data: what a NIC is made of, and the time that it takes.
//!
//! An [`Architecture`] is read from TOML, by the name of a preset or from a user's file. It holds no protocol rules: the
//! transport engine is the same in every NIC. An architecture decides when a queue pair's turn becomes packets, when a
//! packet that arrived reaches the engine, when payload is in the host's memory, and what all of that reads and writes
//! over PCIe.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`spec`] | [`Architecture`], part by part |
//! | [`keys`] | every key with what it means, its kind, and how it is read and shown |
//! | [`file`](mod@file) | reading the TOML, with errors that name the line and the nearest valid key |
//! | [`presets`] | the architectures that come with this crate |
//! | [`memory`] | what each structure takes on the chip and off it |
//! | [`cache`] | a set-associative cache, least recently used first out |
//! | [`pcie`] | the link to the host's memory |
//! | [`clock`] | the edges of a clock |
//! | [`cores`] | cores that run the law |
//! | [`table`] | the contexts that they work on |
//! | [`counters`] | what a NIC counts |
//! | `machine` | the state of one NIC |
//! | `answers` | READ responses on their way, and what waits behind them |
//! | `idle` | how long the parts take while nothing else is to be done |
//! | `divide` | division by numbers that are known long before |
//! | `send`, `receive`, `law` | the way of a turn, of a packet that arrived, and of an event to its core |

pub mod cache;
pub mod clock;
pub mod cores;
pub mod counters;
pub mod file;
pub mod keys;
pub mod memory;
pub mod pcie;
pub mod presets;
pub mod spec;
pub mod table;

mod answers;
mod divide;
mod idle;
mod law;
pub(crate) mod machine;
mod receive;
mod send;

pub use counters::{ArchCounters, CoreCounters};
pub use file::ArchitectureError;
pub use spec::Architecture;
