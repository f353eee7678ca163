//! Figures of "SRNIC: A Scalable Architecture for RDMA NICs" (NSDI 2023).

pub(super) mod connections;
pub(super) mod header;
pub(super) mod loss;
pub(super) mod memory;
pub(super) mod scale;
pub(super) mod single;

use crate::nic::load;
use crate::results::Results;
use roci_nic::ArchCounters;

/// Octets on the wire besides a frame: preamble and gap.
const GAP: u64 = 20;

/// Wire throughput of the first host, which sends data and nothing else, in Gb/s.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn wire_gbps(results: &Results) -> f64 {
    let packets: u64 = results.flows.iter().map(|flow| flow.packets).sum();
    let octets = results.hosts[0].tx_bytes + GAP * packets;
    octets as f64 * 8e-9 / results.simulated.as_secs_f64()
}

/// What the host's software spends on loss events of the first host's NIC, in percent of a core.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn slow_path_cpu(results: &Results) -> f64 {
    let software = load("srnic").expect("a preset").recovery.software;
    100.0 * counters(results).recoveries as f64 * software.as_secs_f64() / results.simulated.as_secs_f64()
}

/// What the first host's NIC counted.
///
/// # Panics
/// When it is made of no parts: scenarios of figures are part of this program.
fn counters(results: &Results) -> &ArchCounters {
    results.hosts[0].nic.as_deref().expect("a NIC of parts")
}
