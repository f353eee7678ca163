//! Throughput against the number of connections (Figures 2 and 9), and performant connections per MB.

use super::super::bench::{Bench, CONNECTIONS};
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use super::{counters, wire_gbps};
use crate::nic::{account, load};
use crate::results::Results;
use roci_nic::arch::counters::Cause;

/// Connections of the plot; the commodity NICs go one step further.
const QPS: [&str; 8] = ["128", "256", "512", "1024", "2048", "4096", "10000", "16384"];
/// The share of its throughput with the fewest connections that a NIC must keep for them to be called performant.
const PERFORMANT: f64 = 0.98;

/// Rows of the commodity NIC with the most connections, each with another value of one key.
const OTHERS: [(&str, (&str, &str)); 5] = [
    ("cx6_all_contexts", ("nic.with.context.entries", "all")),
    ("cx6_slow_pcie", ("nic.with.pcie.read", "1100ns")),
    ("cx6_two_a_turn", ("nic.with.send.serve", "2")),
    ("cx6_more_turns", ("nic.with.send.turns", "256")),
    ("cx6_more_units", ("nic.with.units.count", "16")),
];

/// Runs of one NIC by the number of connections.
struct Sweep {
    points: Vec<(f64, Vec<Results>)>,
}

impl Sweep {
    fn run(bench: &Bench<'_>, nic: &str, qps: &[&str], ablated: bool) -> Result<Self, FigureError> {
        let mut points = Vec::new();
        for count in qps {
            let set = [("nic.model", nic), ("traffic.0.qps", *count)];
            let runs =
                if ablated { bench.run(CONNECTIONS, &set)? } else { bench.control(CONNECTIONS, &set)? };
            points.push((count.parse().unwrap_or(f64::NAN), runs));
        }
        Ok(Self { points })
    }

    /// The commodity NIC with `counts` of connections and another value of `key`.
    fn with(bench: &Bench<'_>, (key, value): (&str, &str), counts: &[&str]) -> Result<Self, FigureError> {
        let mut points = Vec::new();
        for &qps in counts {
            let set = [("nic.model", "cx6"), (key, value), ("traffic.0.qps", qps)];
            points.push((qps.parse().unwrap_or(f64::NAN), bench.control(CONNECTIONS, &set)?));
        }
        Ok(Self { points })
    }

    fn at(&self, qps: f64) -> &[Results] {
        let near = |point: &&(f64, Vec<Results>)| (point.0 - qps).abs() < 0.5;
        self.points.iter().find(near).map_or(&[], |(_, runs)| runs)
    }

    /// Throughput with `qps` connections, as a share of that with the fewest, for each seed.
    fn share(&self, qps: f64) -> Vec<f64> {
        let first = self.points.first().map_or(&[][..], |(_, runs)| runs);
        self.at(qps).iter().zip(first).map(|(runs, first)| wire_gbps(runs) / wire_gbps(first)).collect()
    }

    /// The most connections with which each seed keeps its throughput, as do all fewer ones.
    fn performant(&self, seed: usize) -> f64 {
        let keeps = |(qps, _): &&(f64, Vec<Results>)| {
            self.share(*qps).get(seed).is_some_and(|share| *share >= PERFORMANT)
        };
        self.points.iter().take_while(keeps).last().map_or(0.0, |(qps, _)| *qps)
    }

    /// A line of the plot: what `value` reads from the first seed.
    fn line(&self, value: impl Fn(&Results) -> f64) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|(qps, runs)| Some((*qps, value(runs.first()?)))).collect()
    }
}

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let srnic = Sweep::run(bench, "srnic", &QPS[..7], false)?;
    let cx5 = Sweep::run(bench, "cx5", &["128", "256", "512", "16384"], true)?;
    let cx6 = Sweep::run(bench, "cx6", &QPS, true)?;
    let mut measured = Measured::default();
    measured.each("srnic_128", srnic.at(128.0), wire_gbps);
    measured.add("srnic_10k", srnic.share(10_000.0));
    measured.each("cx6_128", cx6.at(128.0), wire_gbps);
    measured.add("cx6_256", cx6.share(256.0));
    measured.add("cx6_512", cx6.share(512.0));
    measured.add("cx6_1024", cx6.share(1024.0));
    measured.add("cx6_16k", cx6.share(16_384.0));
    for (row, other) in OTHERS {
        measured.add(row, Sweep::with(bench, other, &[QPS[0], QPS[7]])?.share(16_384.0));
    }
    let any = Sweep::with(bench, ("nic.with.context.replacement", "random"), &QPS)?;
    measured.add("cx6_any_512", any.share(512.0));
    measured.add("cx6_any_1024", any.share(1024.0));
    measured.add("cx6_any_16k", any.share(16_384.0));
    measured.add("cx5_16k", cx5.share(16_384.0));
    measured.each("cx6_misses", cx6.at(16_384.0), misses);
    measured.each("cx6_misses_256", cx6.at(256.0), misses);
    measured.each("cx6_pcie", cx6.at(16_384.0), extra_pcie);
    measured.each("cx6_pcie_256", cx6.at(256.0), extra_pcie);
    let onset = cx6.at(512.0).iter().zip(cx6.at(256.0));
    measured.add("cx6_onset", onset.map(|(more, few)| fetched(more) - fetched(few)).collect());
    measured.each("srnic_misses", srnic.at(10_000.0), misses);
    measured.plots.push(
        Plot::new("Throughput against connections", "queue pairs", "wire throughput (Gb/s)")
            .line("srnic", srnic.line(wire_gbps))
            .line("cx5", cx5.line(wire_gbps))
            .line("cx6", cx6.line(wire_gbps))
            .line("cx6, any context makes way", any.line(wire_gbps)),
    );
    measured.plots.push(
        Plot::new("What misses cost the sender", "queue pairs", "PCIe besides payload (Gb/s)")
            .line("cx6", cx6.line(extra_pcie))
            .line("srnic", srnic.line(extra_pcie)),
    );
    measured.plots.push(
        Plot::new("Contexts missed at the sender", "queue pairs", "lookups (%)")
            .line("cx6", cx6.line(misses))
            .line("cx5", cx5.line(misses))
            .line("srnic", srnic.line(misses)),
    );
    Ok(measured)
}

/// Performant connections per MB of memory on the chip.
pub(in super::super) fn normalised(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let srnic = Sweep::run(bench, "srnic", &QPS[..7], false)?;
    let cx5 = Sweep::run(bench, "cx5", &QPS[..4], false)?;
    let seeds = srnic.at(128.0).len();
    let per_mib = |sweep: &Sweep, nic: &str, seed: usize| {
        let performant = sweep.performant(seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of the sweep")]
        let account = account(&load(nic).expect("a preset"), performant as u64);
        #[expect(clippy::cast_precision_loss, reason = "a few MB")]
        let mib = account.chip as f64 / f64::from(1 << 20);
        performant / mib
    };
    let mut measured = Measured::default();
    measured.add("srnic_qps", (0..seeds).map(|seed| srnic.performant(seed)).collect());
    measured.add("cx5_qps", (0..seeds).map(|seed| cx5.performant(seed)).collect());
    measured.add("srnic_per_mb", (0..seeds).map(|seed| per_mib(&srnic, "srnic", seed)).collect());
    measured.add("cx5_per_mb", (0..seeds).map(|seed| per_mib(&cx5, "cx5", seed)).collect());
    let ratio = |seed| per_mib(&srnic, "srnic", seed) / per_mib(&cx5, "cx5", seed);
    measured.add("ratio", (0..seeds).map(ratio).collect());
    Ok(measured)
}

/// The share of lookups that missed their context at the sender.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn misses(results: &Results) -> f64 {
    let context = counters(results).context;
    100.0 * context.misses as f64 / (context.hits + context.misses).max(1) as f64
}

/// What the sender's NIC fetches or writes back of contexts that are not on its chip, in Gb/s.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn fetched(results: &Results) -> f64 {
    let octets = counters(results).pcie_of(Cause::Context);
    octets as f64 * 8e-9 / results.simulated.as_secs_f64()
}

/// PCIe traffic of the sender besides payload, in Gb/s.
#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
fn extra_pcie(results: &Results) -> f64 {
    let counters = counters(results);
    let octets = counters.pcie_total() - counters.pcie_of(Cause::Payload);
    octets as f64 * 8e-9 / results.simulated.as_secs_f64()
}
