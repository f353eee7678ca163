//! Flow completion in fat trees of up to 4096 servers (Figure 12).

use super::super::bench::{Bench, SCALE_OUT};
use super::super::plot::Plot;
use super::super::statistics::mean;
use super::super::{FigureError, Measured};
use crate::results::Results;
use crate::results::statistics::Sorted;

/// A size of the network: servers, topology, round trip without queues, octets in it in packets, and whether it is run
/// for the first seed only, for it takes minutes.
struct Scale {
    servers: f64,
    topology: &'static str,
    base_rtt: &'static str,
    window: &'static str,
    once: bool,
    keys: [&'static str; 6],
}

macro_rules! keys {
    ($servers:literal) => {
        [
            concat!("cx6_mean_", $servers),
            concat!("cx6_p99_", $servers),
            concat!("cx6_slowdown_", $servers),
            concat!("irn_mean_", $servers),
            concat!("irn_p99_", $servers),
            concat!("irn_slowdown_", $servers),
        ]
    };
}

/// The paper's switches: ToR, aggregate, core. A round trip is 2 µs a link and the time of a packet on each.
const SCALES: [Scale; 5] = [
    Scale {
        servers: 16.0,
        topology: "{ kind = \"star\", hosts = 16, rate = \"100Gb/s\", delay = \"1us\" }",
        base_rtt: "5us",
        window: "15",
        once: false,
        keys: keys!("16"),
    },
    Scale {
        servers: 64.0,
        topology: "{ kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 16, rate = \"100Gb/s\", \
            fabric_rate = \"400Gb/s\", delay = \"1us\" }",
        base_rtt: "9us",
        window: "27",
        once: false,
        keys: keys!("64"),
    },
    Scale {
        servers: 256.0,
        topology: "{ kind = \"leaf-spine\", leaves = 8, spines = 8, hosts_per_leaf = 32, rate = \"100Gb/s\", \
            fabric_rate = \"400Gb/s\", delay = \"1us\" }",
        base_rtt: "9us",
        window: "27",
        once: false,
        keys: keys!("256"),
    },
    Scale {
        servers: 1024.0,
        topology: "{ kind = \"fat-tree\", pods = 16, tors_per_pod = 4, aggs_per_pod = 4, cores = 16, \
            hosts_per_tor = 16, rate = \"100Gb/s\", fabric_rate = \"400Gb/s\", delay = \"1us\" }",
        base_rtt: "13us",
        window: "40",
        once: true,
        keys: keys!("1024"),
    },
    Scale {
        servers: 4096.0,
        topology: "{ kind = \"fat-tree\", pods = 16, tors_per_pod = 8, aggs_per_pod = 8, cores = 64, \
            hosts_per_tor = 32, rate = \"100Gb/s\", fabric_rate = \"400Gb/s\", delay = \"1us\" }",
        base_rtt: "13us",
        window: "40",
        once: true,
        keys: keys!("4096"),
    },
];

/// Marks on ports of 400 Gb/s; those on 100 Gb/s are the scenario's. In the simulation that SRNIC's authors have published
/// (its `run.py`) DCTCP has those of DCQCN.
const FABRIC: &str = "[{ rate = \"400Gb/s\", ecn = { kmin = \"1600KB\", kmax = \"6400KB\", pmax = 0.2 } }]";
/// The same with PFC: the share of the free buffer at which a port pauses its peer grows with the port's rate there.
const PAUSING_FABRIC: &str = "[{ rate = \"400Gb/s\", ecn = { kmin = \"1600KB\", kmax = \"6400KB\", pmax = 0.2 }, \
    pfc = { alpha = \"1/2\" } }]";
const DCQCN: &str = "{ law = \"dcqcn\", preset = \"hpcc\" }";

/// Mean and 99th percentile of the completion time in seconds, and the mean slowdown.
type Metrics = [f64; 3];
/// The servers of the network that is run once more with IRN's bound on the commodity NIC, and its rows.
const BOUNDED: (f64, [&str; 3]) = (256.0, ["bounded_mean_256", "bounded_p99_256", "bounded_slowdown_256"]);
/// What the keys of metrics over all scales begin with, and the metrics.
const OVERALL: [&str; 3] = ["cx6_mean", "cx6_p99", "cx6_slowdown"];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let mut ratios: Vec<[f64; 3]> = Vec::new();
    let mut lines = [const { Vec::new() }; 3];
    let mut failed = 0;
    let mut largest = (0.0_f64, 0.0_f64);
    for scale in &SCALES {
        let mut schemes = Vec::new();
        for settings in scale.schemes() {
            let set: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let runs = if scale.once { bench.first(SCALE_OUT, &set)? } else { bench.run(SCALE_OUT, &set)? };
            failed += runs.iter().flat_map(|run| &run.flows).filter(|flow| flow.fct().is_none()).count();
            for run in &runs {
                largest.0 = largest.0.max(run.run.cpu_s / 60.0);
                #[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
                let memory = run.run.peak_rss_bytes as f64 * 1e-9;
                largest.1 = largest.1.max(memory);
            }
            schemes.push(runs.iter().map(metrics).collect::<Vec<Metrics>>());
        }
        let [srnic, irn, cx6] = &schemes[..] else { unreachable!("three schemes") };
        for metric in 0..3 {
            let over = |other: &[Metrics]| -> Vec<f64> {
                other.iter().zip(srnic).map(|(other, srnic)| other[metric] / srnic[metric]).collect()
            };
            measured.add(scale.keys[metric], over(cx6));
            measured.add(scale.keys[3 + metric], over(irn));
        }
        if (scale.servers - BOUNDED.0).abs() < 0.5 {
            let [.., mut commodity] = scale.schemes();
            commodity.push(("transport.max_in_flight", scale.window.to_owned()));
            let set: Vec<(&str, &str)> =
                commodity.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let runs = bench.control(SCALE_OUT, &set)?;
            failed += runs.iter().flat_map(|run| &run.flows).filter(|flow| flow.fct().is_none()).count();
            let bounded: Vec<Metrics> = runs.iter().map(metrics).collect();
            for (metric, key) in BOUNDED.1.into_iter().enumerate() {
                let over = bounded.iter().zip(srnic).map(|(bounded, srnic)| bounded[metric] / srnic[metric]);
                measured.add(key, over.collect());
            }
        }
        let mean_of = |other: &[Metrics], metric: usize| {
            mean(
                &other
                    .iter()
                    .zip(srnic)
                    .map(|(other, srnic)| other[metric] / srnic[metric])
                    .collect::<Vec<_>>(),
            )
            .unwrap_or(f64::NAN)
        };
        ratios.push([0, 1, 2].map(|metric| mean_of(cx6, metric)));
        for (line, scheme) in lines.iter_mut().zip([srnic, irn, cx6]) {
            line.push((scale.servers.log2(), scheme[0][0] * 1e6));
        }
    }
    for (metric, key) in OVERALL.into_iter().enumerate() {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio[metric].ln()).collect();
        measured.add(key, vec![mean(&logs).unwrap_or(f64::NAN).exp()]);
    }
    let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
    measured
        .add("widens", vec![(0..3).map(|metric| last[metric] - first[metric]).fold(f64::INFINITY, f64::min)]);
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    measured.add("failed", vec![failed as f64]);
    measured.add("minutes", vec![largest.0]);
    measured.add("memory", vec![largest.1]);
    let mut plot = Plot::new("Mean flow completion time", "servers (binary logarithm)", "microseconds");
    for (name, line) in ["SRNIC", "IRN", "commodity NIC"].into_iter().zip(lines) {
        plot = plot.line(name, line);
    }
    measured.plots.push(plot);
    Ok(measured)
}

impl Scale {
    /// The settings of SRNIC, IRN with its bound of one bandwidth-delay product, and the commodity NIC. The last has
    /// acknowledgements go first, as the published simulation does for DCQCN without a window and for nobody else, and a
    /// timer for losses that PFC does not allow, which must not go while a port is paused.
    fn schemes(&self) -> [Vec<(&'static str, String)>; 3] {
        let star = self.servers <= 16.0;
        let scheme = |fabric: &str, control: String, rest: &[(&'static str, &str)]| {
            let mut set = vec![("topology", self.topology.to_owned()), ("transport.control", control)];
            if !star {
                set.push(("switch.on", fabric.to_owned()));
            }
            set.extend(rest.iter().map(|&(key, value)| (key, value.to_owned())));
            set
        };
        let dctcp = format!("{{ law = \"dctcp\", preset = \"hpcc\", base_rtt = \"{}\" }}", self.base_rtt);
        let irn = [("transport.recovery", "irn"), ("transport.max_in_flight", self.window)];
        let commodity = [
            ("transport.recovery", "go-back-n"),
            ("transport.timeout", "4ms"),
            ("switch.pfc", "true"),
            ("switch.classes.ack", "6"),
        ];
        [
            scheme(FABRIC, dctcp, &[]),
            scheme(FABRIC, DCQCN.to_owned(), &irn),
            scheme(PAUSING_FABRIC, DCQCN.to_owned(), &commodity),
        ]
    }
}

fn metrics(results: &Results) -> Metrics {
    let times: Vec<f64> =
        results.flows.iter().filter_map(|flow| flow.fct()).map(|fct| fct.as_secs_f64()).collect();
    let slowdowns: Vec<f64> = results.flows.iter().filter_map(|flow| flow.slowdown()).collect();
    let average = mean(&times).unwrap_or(f64::NAN);
    let tail = Sorted::new(times).percentile(99).unwrap_or(f64::NAN);
    [average, tail, mean(&slowdowns).unwrap_or(f64::NAN)]
}
