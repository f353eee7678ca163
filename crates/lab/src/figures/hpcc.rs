//! HPCC's comparison of laws: slowdown by flow size (Li et al., SIGCOMM 2019, §5.3).

use super::bench::{Bench, HPCC};
use super::statistics::mean;
use super::{FigureError, Measured};
use crate::results::Results;
use crate::results::statistics::Sorted;

/// The rows of a law: each bin's mean, 95th and 99th percentile.
macro_rules! keys {
    ($law:literal) => {
        [
            concat!($law, "_small_mean"),
            concat!($law, "_small_p95"),
            concat!($law, "_small_p99"),
            concat!($law, "_middle_mean"),
            concat!($law, "_middle_p95"),
            concat!($law, "_middle_p99"),
            concat!($law, "_large_mean"),
            concat!($law, "_large_p95"),
            concat!($law, "_large_p99"),
        ]
    };
}

/// A law's scenario settings, and its marks, by HPCC's `run.py` at 100 Gb/s: Kmin and Kmax 100 and 400 KB and
/// Pmax 0.2 for DCQCN, scaled by the rate over 25 Gb/s; one threshold of 30 KB over 10 Gb/s for DCTCP. The base round trip
/// is that of this tree: 12 links of 1 µs, and the times of packets.
const LAWS: [(&str, &str, [&str; 9]); 4] = [
    (
        "{ law = \"dcqcn\", preset = \"hpcc\" }",
        "{ kmin = \"400KB\", kmax = \"1600KB\", pmax = 0.2 }",
        keys!("dcqcn"),
    ),
    ("{ law = \"timely\", preset = \"hpcc\" }", "false", keys!("timely")),
    ("{ law = \"hpcc\", preset = \"hpcc\", base_rtt = \"13us\" }", "false", keys!("hpcc")),
    (
        "{ law = \"dctcp\", preset = \"hpcc\", base_rtt = \"13us\" }",
        "{ kmin = \"300KB\", kmax = \"300KB\", pmax = 1.0 }",
        keys!("dctcp"),
    ),
];

/// Where small flows end and large ones begin, in octets.
const BINS: [(u64, u64); 3] = [(0, 30_000), (30_000, 1_000_000), (1_000_000, u64::MAX)];

pub(super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut tails = Vec::new();
    for (control, marks, keys) in LAWS {
        let runs = bench.run(HPCC, &[("transport.control", control), ("switch.ecn", marks)])?;
        for (keys, bin) in keys.chunks(3).zip(BINS) {
            let each: Vec<[f64; 3]> = runs.iter().map(|results| slowdowns(results, bin)).collect();
            for (place, key) in keys.iter().enumerate() {
                measured.add(key, each.iter().map(|values| values[place]).collect());
            }
        }
        tails.push(runs.iter().map(|results| slowdowns(results, BINS[0])[2]).collect::<Vec<f64>>());
    }
    let hpcc = tails[2].clone();
    for (key, law) in [("small_dcqcn", 0), ("small_timely", 1), ("small_dctcp", 3)] {
        measured.add(key, tails[law].iter().zip(&hpcc).map(|(other, hpcc)| other / hpcc).collect());
    }
    Ok(measured)
}

/// Mean, 95th and 99th percentile of the slowdown of the flows of these sizes.
fn slowdowns(results: &Results, (from, to): (u64, u64)) -> [f64; 3] {
    let sized = results.flows.iter().filter(|flow| (from..to).contains(&flow.bytes));
    let all: Vec<f64> = sized.filter_map(|flow| flow.slowdown()).collect();
    let average = mean(&all).unwrap_or(f64::NAN);
    let sorted = Sorted::new(all);
    let percentile = |percent| sorted.percentile(percent).unwrap_or(f64::NAN);
    [average, percentile(95), percentile(99)]
}
