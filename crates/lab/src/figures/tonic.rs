//! The figures of the Tonic paper (Arashloo et al., NSDI 2020).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`newreno`] | one NewReno flow as a program on the engine and as a textbook has it (Figure 3) |
//! | [`dcqcn`] | RoCE with DCQCN on the engine and as its paper has it (Figure 4) |
//! | [`flows`] | two hundred NewReno flows behind one queue (Figure 3c) |
//! | [`path`] | a path that both send over |
//! | [`rate`] | one flow of back-to-back small packets |
//! | [`size`] | lines and state of the programs (Table 3) |
//! | [`capacity`] | what state, how many flows and how long a window there may be (Table 4) |

pub(super) mod capacity;
pub(super) mod dcqcn;
pub(super) mod flows;
pub(super) mod newreno;
mod path;
pub(super) mod rate;
pub(super) mod size;
