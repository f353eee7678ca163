//! The core against files, against hostile programs, and against itself.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]
#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "translate")]
mod agreement;
mod check;
mod elf;
mod oracle;
mod traps;
