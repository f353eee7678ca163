//! Scenarios become worlds, worlds run, and runs become results and reports.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`results`] | what a run found out |
#![forbid(unsafe_code)]

pub mod results;
