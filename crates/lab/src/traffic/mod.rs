//! Traffic: from what a scenario asks for to a stream of jobs in the order of time.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`spec`] | what a scenario asks for |
//! | [`fault`] | what is wrong with that, if anything |
//! | [`jobs`] | the stream: all sources merged by time, coinciding starts set apart |
//! | `source` | one source for each kind of traffic |
//! | [`collective`] | the schedules of collective operations |
//! | [`goal`] | GOAL schedules: what ranks compute, send and receive |
//! | [`hpcc`] | the flow files of the HPCC simulator |
//! | [`rpc`] | requests and responses |
//! | `networks` | congestion controls that go by the network |
//!
//! Jobs are made one at a time as the run reaches them, so a million flows take no more memory than those that are
//! alive.

pub mod collective;
pub mod fault;
pub mod goal;
pub mod hpcc;
pub mod jobs;
mod networks;
mod pairs;
pub mod rpc;
mod source;
pub mod spec;
#[cfg(test)]
mod tests;

pub use collective::{Algorithm, Collective, CollectiveFault, Operation};
pub use fault::{Fault, MESSAGE_MAX, TrafficError};
pub use goal::{Goal, GoalError};
pub use hpcc::FlowFileError;
pub use jobs::{Job, JobId, Jobs, Setting, flow_name};
pub use networks::{Networks, OutOfNetwork};
pub use rpc::Rpc;
pub use spec::{
    ClosedLoop, Common, ControlIndex, Exchange, Flow, HpccFlow, HpccFlows, Incast, Op, Poisson, Repeat,
    Traffic, Trigger,
};
