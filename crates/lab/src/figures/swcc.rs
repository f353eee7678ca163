//! Figures of "SwCC: Software-Programmable and Per-Packet Congestion Control in RDMA Engine" (ATC 2025).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`budget`] | the time that a packet leaves for its law (Figure 3) |
//! | [`contexts`] | how a core comes by its context (Figures 5 and 11a) |
//! | `event` | cycles of a program's events |
//! | [`lines`] | how long programs are (Table 3) |

pub(super) mod budget;
pub(super) mod contexts;
mod event;
pub(super) mod lines;
