//! The wait on one link against the M/D/1 queue.
//!
//! Messages of one packet arrive at random (Poisson) times of rate λ, and each occupies the link for S. With ρ = λS the
//! mean wait of an M/D/1 queue is W = ρS / (2(1 − ρ)) (Pollaczek and Khinchine), and a share 1 − ρ of the messages does
//! not wait at all.

use super::super::bench::{Bench, QUEUEING};
use super::super::plot::Plot;
use super::super::statistics::{count, mean};
use super::super::{FigureError, Measured};
use crate::results::Results;
use roci_units::BitsPerSec;
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Layout, Opcode};

/// Octets of a message, and the link, as in the scenario.
const MESSAGE: u16 = 1_000;
const LINK: BitsPerSec = BitsPerSec::from_gbps(10);
/// The loads ρ, in percent.
const LOADS: [(&str, &str, u32); 4] = [
    ("wait_30", "alone_30", 30),
    ("wait_50", "alone_50", 50),
    ("wait_70", "alone_70", 70),
    ("wait_90", "alone_90", 90),
];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let service = service_s();
    let mut ours = Vec::new();
    for (wait, alone, percent) in LOADS {
        let load = f64::from(percent) / 100.0;
        // The number of triggers a second is whole; what that leaves of the load is exact again.
        let rate = (load / service).round();
        let load = rate * service;
        let runs = bench.run(QUEUEING, &[("traffic.0.rate", &format!("{rate}"))])?;
        let theory = load * service / (2.0 * (1.0 - load));
        let waits = |results: &Results| mean(&waits(results)).unwrap_or(f64::NAN);
        ours.push((load, mean(&runs.iter().map(waits).collect::<Vec<_>>()).unwrap_or(f64::NAN) * 1e6));
        measured.each(wait, &runs, |results| waits(results) / theory);
        measured.each(alone, &runs, |results| {
            let waits = self::waits(results);
            // Completion times are whole picoseconds; what is below one is no wait.
            count(waits.iter().filter(|wait| **wait < 1e-12).count()) / count(waits.len()) / (1.0 - load)
        });
    }
    let theory = (1..=95u32).map(|percent| {
        let load = f64::from(percent) / 100.0;
        (load, load * service / (2.0 * (1.0 - load)) * 1e6)
    });
    measured.plots.push(
        Plot::new("Mean wait on one link", "load", "wait (µs)")
            .line("M/D/1", theory.collect())
            .line("simulated", ours),
    );
    Ok(measured)
}

/// How long a message occupies the link, in seconds.
fn service_s() -> f64 {
    let frame = roci_wire::frame_len(Opcode::SEND_ONLY, Layout::Standard, IpVersion::V4, MESSAGE);
    LINK.time_for(u64::from(frame) + u64::from(WIRE_OVERHEAD)).as_secs_f64()
}

/// How long each message waited, in seconds: its completion time less that on an idle link.
fn waits(results: &Results) -> Vec<f64> {
    results
        .completed()
        .filter_map(|flow| Some(flow.fct()?.saturating_sub(flow.ideal?).as_secs_f64()))
        .collect()
}
