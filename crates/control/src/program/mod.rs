//! Programs for a core as laws: a `hart` program that is loaded, checked, and run event by event.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`csr`] | the registers through which a program meets the NIC |
//! | `cores` | the cores of a NIC's pairs |
//! | `keeps` | whether a core's memory can tell one event of another |
//! | [`image`] | a program's file, taken in: checked, with names for its context |
//! | `event` | an event in the registers |
//! | `timers` | a queue pair's timers |
//! | [`law`] | the law that runs a program |
//! | [`patience`] | how long it may let nothing go |
//! | `fall` | its fallback takes over |
//! | `words` | the words of its contexts and its parameters, by name |
//! | [`record`] | what it heard and took, written down |
//! | [`fault`] | what goes wrong, and how it is counted |

mod cores;
pub mod csr;
mod event;
mod fall;
pub mod fault;
pub mod image;
mod keeps;
pub mod law;
pub mod patience;
pub mod record;
#[cfg(test)]
mod tests;
mod timers;
mod words;

pub use csr::Side;
pub use fault::{Fault, Tally, Why};
pub use image::{Image, ImageError, Options};
pub use keeps::{keeps, keeps_beside};
pub use law::{Programmed, State};
pub use record::{Recorded, Recorder, Run};
