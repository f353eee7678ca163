//! One flow of back-to-back small packets (§1, §6.2).

use super::super::bench::{Bench, TONIC_RATE};
use super::super::{FigureError, Measured};
use crate::results::Results;

/// Octets of a packet on the wire.
const PACKET: f64 = 126.0;

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let runs = bench.run(TONIC_RATE, &[])?;
    let mut measured = Measured::default();
    measured.each("rate", &runs, |results| packets_per_second(results) * PACKET * 8e-9);
    measured.each("gap", &runs, |results| 1e9 / packets_per_second(results));
    measured.each("latency", &runs, latency);
    measured.each("retransmitted", &runs, |results| f64::from(results.flows[0].retransmitted));
    Ok(measured)
}

#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn packets_per_second(results: &Results) -> f64 {
    results.flows[0].packets as f64 / results.simulated.as_secs_f64()
}

/// From a segment's generation until it is handed to the port, in µs.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn latency(results: &Results) -> f64 {
    let counters = results.hosts[0].nic.as_deref().expect("a NIC of parts");
    counters.made_time.as_secs_f64() * 1e6 / counters.made as f64
}
