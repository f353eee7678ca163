//! A shared-buffer Ethernet switch as a machine without I/O and without a clock.
//!
//! The caller moves packets and keeps them; the switch decides which may stay, in which queue each waits, whom to
//! pause, which to mark, and who leaves next. A packet is a handle, and the links of the queues live in the caller's
//! packets ([`Frames`]), so a queue costs nothing and nothing is allocated per packet.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`config`] | what can be chosen, with the defaults |
//! | [`port`] | a port: its eight queues, what its peer sent into the buffer; with room for the caller's link |
//! | [`switch`] | admission, PFC, departure: the shared buffer's accounts |
//! | [`red`] | ECN marking by queue length |
//! | [`flows`] | a queue per flow, an ablation |
//! | [`shares`] | shares of a port's bandwidth by priority |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod config;
pub mod flows;
pub mod port;
pub mod red;
pub mod shares;
pub mod switch;

pub use config::{Buffering, ConfigError, Headroom, LinkSpec, Marking, Pfc, SwitchConfig, Trim};
pub use port::{Frames, NEAR, NONE, PRIORITIES, Port};
pub use red::Red;
pub use roci_wire::Hop;
pub use shares::{Quanta, Shares, Turns};
pub use switch::{Admission, Counters, Departure, OfPriority, Outcome, Switch};
