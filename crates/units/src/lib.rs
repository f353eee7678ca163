//! Quantities with their units, and how people write them.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`time`] | [`Instant`] and [`Span`], counted in picoseconds |
//! | [`data`] | [`Bytes`] and [`BitsPerSec`], and the exact time that octets take at a rate |
//! | [`sequence`] | [`Psn`] and [`Qpn`], the 24-bit numbers of the InfiniBand transport |
//! | [`random`] | [`Random`], the seeded source of chance |
//! | [`ratio`] | [`Ratio`], an exact fraction such as `1/256` or `1%` |
//! | [`errors`] | [`BitErrorRate`], how often a bit is wrong |
//! | [`text`] | reading all of them from text: `"10 Gb/s"`, `"1us"`, `"5KiB"`, `"1/256"` |
//!
//! Everything is integer arithmetic: the same input gives the same result on every machine.
#![no_std]
#![forbid(unsafe_code)]

pub mod data;
pub mod errors;
pub mod random;
pub mod ratio;
pub mod sequence;
pub mod text;
pub mod time;

pub use data::{BitsPerSec, Bytes, Pace};
pub use errors::BitErrorRate;
pub use random::Random;
pub use ratio::Ratio;
pub use sequence::{Psn, Qpn};
pub use text::ParseError;
pub use time::{Instant, Span};
