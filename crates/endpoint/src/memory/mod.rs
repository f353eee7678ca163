//! Registered memory: who owns it, who may touch it, and what is lent to the transport.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`region`] | regions of memory under a key |
//! | [`buffer`] | parts of a region that go to work requests and come back with their completions |
//! | [`window`] | windows: keys to parts of regions, which requests give and take away |
//! | [`foreign`] | memory that a program in another language answers for |
//! | `lending` | which parts are lent, and whose turn it is to copy |
//!
//! Two things make the safe interface sound. A part that is lent ([`Buffer`], [`Slice`]) is lent to nobody else, and copied by
//! nobody else: the region keeps the list, and of who copies what is not lent. And memory that a peer can reach is never behind a Rust reference: octets are copied in and
//! out under the region's lock, which the transport takes as well.

pub mod buffer;
pub mod foreign;
mod lending;
pub mod region;
pub mod window;

pub use buffer::{Buffer, Slice};
pub use foreign::ForeignRegion;
pub use region::{LentError, MemoryRegion, RegionError, RemoteMemory};
pub use window::{MemoryWindow, WindowTarget};
