//! Traffic: from what a scenario asks for to a stream of jobs in the order of time.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`spec`] | what a scenario asks for |

pub mod spec;
