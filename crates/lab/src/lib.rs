//! Scenarios become worlds, worlds run, and runs become results and reports.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`batch`] | several runs at once: seeds, sweeps, side by side |
//! | [`figures`] | the papers' figures, and the model against what is known of it |
//! | [`ideal`] | how long a flow takes alone on an idle path |
//! | [`import`] | scenarios of other simulators' configurations, and schedules of their traces |
//! | [`nic`] | NICs by name: presets and files |
//! | [`output`] | results as files |
//! | [`program`] | congestion control as programs in C |
//! | [`results`] | what a run found out |
//! | [`scenario`] | what a scenario says, read and checked |
//! | [`sizes`] | how long flows are |
//! | [`run`] | what it takes to run a scenario |
//! | [`world`] | the simulated world |
//! | [`traffic`] | what flows there are, as a stream in the order of time |
//! | [`tune`] | finds settings |
#![forbid(unsafe_code)]

pub mod batch;
pub mod figures;
pub mod ideal;
pub mod import;
pub mod nic;
pub mod output;
pub mod program;
pub mod results;
pub mod run;
pub mod scenario;
pub mod sizes;
pub mod traffic;
pub mod tune;
pub mod world;
