//! Figures of "SwCC: Software-Programmable and Per-Packet Congestion Control in RDMA Engine" (ATC 2025).
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`delay`] | the delay of the control loop (Table 1 and Figure 7) |
//! | [`drain`] | how long a queue drains, against that delay (Figure 1) |
//! | [`interface`] | which laws need more than a rate (Figure 2) |
//! | [`budget`] | the time that a packet leaves for its law (Figure 3) |
//! | [`contexts`] | how a core comes by its context (Figures 5 and 11a) |
//! | [`rate`] | throughput against packet size, and the clock for it (Figures 10, 11c, 11d) |
//! | [`cycles`] | what an event takes on which NIC's cores (Figure 11b) |
//! | [`incast`] | two senders with five flows each (Figures 12 to 14) |
//! | `event` | cycles of a program's events |
//! | [`lines`] | how long programs are (Table 3) |

pub(super) mod budget;
pub(super) mod contexts;
pub(super) mod cycles;
pub(super) mod delay;
pub(super) mod drain;
mod event;
pub(super) mod incast;
pub(super) mod interface;
pub(super) mod lines;
pub(super) mod rate;

/// DCQCN that is asked before each packet and hears each one that arrives, as SwCC's prototype is.
const PACED: &str = "{ law = \"program\", elf = \"firmware/paced.elf\" }";
/// DCQCN that leaves pacing and counting to hardware.
const DCQCN: &str = "{ law = \"program\", elf = \"firmware/dcqcn.elf\" }";
