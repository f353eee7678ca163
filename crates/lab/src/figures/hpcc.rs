//! HPCC's comparison of laws: slowdown by flow size (Li et al., SIGCOMM 2019, §5.3).

use super::bench::{Bench, HPCC};
use super::plot::Plot;
use super::statistics::mean;
use super::{FigureError, Measured};
use crate::results::Results;
use crate::results::statistics::Sorted;

/// The rows of a law under a workload: mean, 95th and 99th percentile in each bin.
macro_rules! keys {
    ($workload:literal, $law:literal) => {
        [
            keys!($workload, $law, "1"),
            keys!($workload, $law, "2"),
            keys!($workload, $law, "3"),
            keys!($workload, $law, "4"),
            keys!($workload, $law, "5"),
        ]
    };
    ($workload:literal, $law:literal, $bin:literal) => {
        [
            concat!($workload, "_", $law, "_", $bin, "_mean"),
            concat!($workload, "_", $law, "_", $bin, "_p95"),
            concat!($workload, "_", $law, "_", $bin, "_p99"),
        ]
    };
}

/// The rows of the laws under a workload.
macro_rules! laws {
    ($workload:literal) => {
        [
            keys!($workload, "dcqcn"),
            keys!($workload, "timely"),
            keys!($workload, "dctcp"),
            keys!($workload, "hpcc"),
        ]
    };
}

/// The rows of HPCC's rivals: 95th and 99th percentile of short flows over HPCC's.
macro_rules! short {
    ($workload:literal) => {
        [
            [concat!($workload, "_dcqcn_p95"), concat!($workload, "_dcqcn_p99")],
            [concat!($workload, "_timely_p95"), concat!($workload, "_timely_p99")],
            [concat!($workload, "_dctcp_p95"), concat!($workload, "_dctcp_p99")],
        ]
    };
}

/// A law's name, its scenario settings, and its marks, by HPCC's `run.py` at 100 Gb/s: Kmin and Kmax 100 and 400 KB and
/// Pmax 0.2 for DCQCN, scaled by the rate over 25 Gb/s; one threshold of 30 KB over 10 Gb/s for DCTCP. The base round trip
/// is that of this tree: 12 links of 1 µs, and the times of packets. HPCC comes last: the others are held against it.
const LAWS: [(&str, &str, &str); 4] = [
    (
        "DCQCN",
        "{ law = \"dcqcn\", preset = \"hpcc\" }",
        "{ kmin = \"400KB\", kmax = \"1600KB\", pmax = 0.2 }",
    ),
    ("TIMELY", "{ law = \"timely\", preset = \"hpcc\" }", "false"),
    (
        "DCTCP",
        "{ law = \"dctcp\", preset = \"hpcc\", base_rtt = \"13us\" }",
        "{ kmin = \"300KB\", kmax = \"300KB\", pmax = 1.0 }",
    ),
    ("HPCC", "{ law = \"hpcc\", preset = \"hpcc\", base_rtt = \"13us\" }", "false"),
];

/// A workload: its name, the traffic where it is not the scenario's, up to which size a flow is short, the greatest size
/// of each tenth of its flows (the ticks of the paper's Figures 10 and 11) and the keys of its rows.
struct Workload {
    name: &'static str,
    traffic: Option<&'static str>,
    short: u64,
    tenths: [u64; 10],
    /// Where the table's bins end: places in `tenths`.
    bins: [usize; 5],
    keys: [[[&'static str; 3]; 5]; 4],
    over_hpcc: [[&'static str; 2]; 3],
}

const WORKLOADS: [Workload; 2] = [
    Workload {
        name: "WebSearch",
        traffic: None,
        short: 30_000,
        tenths: [6_700, 20_000, 30_000, 50_000, 73_000, 200_000, 1_000_000, 2_000_000, 5_000_000, 30_000_000],
        bins: [1, 3, 5, 7, 9],
        keys: laws!("web"),
        over_hpcc: short!("web"),
    },
    Workload {
        name: "FB_Hadoop",
        // Sixteen thousand flows: drawn, for a file of them would be longer than this program.
        traffic: Some("[{ kind = \"poisson\", sizes = \"fb-hdp\", load = 0.5, until = \"1ms\" }]"),
        short: 7_000,
        tenths: [324, 400, 500, 600, 700, 1_000, 7_000, 46_000, 120_000, 10_000_000],
        bins: [2, 5, 6, 8, 9],
        keys: laws!("hadoop"),
        over_hpcc: short!("hadoop"),
    },
];

pub(super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for workload in &WORKLOADS {
        let mut short = Vec::new();
        let mut plots = ["mean", "95th percentile", "99th percentile"].map(|value| {
            let title = format!("{}: {value} of slowdown", workload.name);
            Plot::new(&title, "octets of a flow, to the end of its tenth (decimal logarithm)", "slowdown")
        });
        for ((name, control, marks), keys) in LAWS.into_iter().zip(workload.keys) {
            let mut set = vec![("transport.control", control), ("switch.ecn", marks)];
            set.extend(workload.traffic.map(|traffic| ("traffic", traffic)));
            let runs = bench.run(HPCC, &set)?;
            let mut from = 0;
            for (keys, place) in keys.into_iter().zip(workload.bins) {
                let to = workload.tenths[place];
                let each: Vec<_> = runs.iter().map(|results| slowdowns(results, from, to)).collect();
                for (place, key) in keys.into_iter().enumerate() {
                    measured.each(key, &each, |values| values[place]);
                }
                from = to;
            }
            let begins = std::iter::once(0).chain(workload.tenths);
            let tenths = begins.zip(workload.tenths);
            let tenths: Vec<_> = tenths.map(|(from, to)| (to, slowdowns(&runs[0], from, to))).collect();
            plots = std::array::from_fn(|place| {
                let points = tenths.iter().map(|(to, values)| (log10(*to), values[place]));
                plots[place].clone().line(name, points.collect())
            });
            let of_short = |results| slowdowns(results, 0, workload.short);
            short.push(runs.iter().map(of_short).collect::<Vec<_>>());
        }
        let hpcc = &short[3];
        for (keys, others) in workload.over_hpcc.into_iter().zip(&short) {
            for (key, place) in keys.into_iter().zip([1, 2]) {
                let over = others.iter().zip(hpcc).map(|(other, hpcc)| other[place] / hpcc[place]);
                measured.add(key, over.collect());
            }
        }
        measured.plots.extend(plots);
    }
    Ok(measured)
}

#[expect(clippy::cast_precision_loss, reason = "a plot shows few digits")]
fn log10(octets: u64) -> f64 {
    (octets as f64).log10()
}

/// Mean, 95th and 99th percentile of the slowdown of the flows of more than `from` octets and at most `to`.
fn slowdowns(results: &Results, from: u64, to: u64) -> [f64; 3] {
    let sized = results.flows.iter().filter(|flow| from < flow.bytes && flow.bytes <= to);
    let all: Vec<f64> = sized.filter_map(|flow| flow.slowdown()).collect();
    let average = mean(&all).unwrap_or(f64::NAN);
    let sorted = Sorted::new(all);
    let percentile = |percent| sorted.percentile(percent).unwrap_or(f64::NAN);
    [average, percentile(95), percentile(99)]
}
