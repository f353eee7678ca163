//! Simulated NICs around the transport engine.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`host`] | one host's NIC: its engine, what waits to be sent, its memory |
//! | `apart` | packets that wait for the port apart by priority |
//! | `work` | work that takes time, by when it is due |
//! | [`nics`] | the NICs of all hosts, driven by the fabric |
//! | [`drain`] | a receive path slower than its link |
//! | `order` | whether data arrive in the order in which they were sent |
//! | [`spread`] | senders that choose a path for each packet |
//! | [`path`] | how a queue pair's path names its peer |
//! | [`arch`] | NICs that are made of parts, as data: presets such as `srnic` and `cx6`, and a user's own |
//! | [`delay`] | how long deferred work takes: not at all (`ideal`), or at random (`delaying`) |
#![forbid(unsafe_code)]

mod apart;
pub mod arch;
pub mod delay;
pub mod drain;
pub mod host;
pub mod nics;
mod order;
pub mod path;
pub mod spread;
mod work;

pub use arch::{ArchCounters, Architecture, CoreCounters};
pub use delay::{Delays, Range};
pub use drain::DrainConfig;
pub use host::{Classes, Host, HostCounters};
pub use nics::{Application, Simulated};
pub use path::Path;
pub use spread::{Recycling, Spreading};
