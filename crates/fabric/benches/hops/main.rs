//! How many packet-hops a CPU second moves: the fabric with trivial NICs beside a bare event kernel.
//!
//! `cargo bench -p roci-fabric --bench hops [-- case…]`, where a case is `128`, `1024`, `4096` or `incast`. The runs of
//! the two are interleaved and timed by the thread's CPU clock; the medians and their ratio are printed.
#![expect(clippy::cast_possible_truncation, reason = "the workloads are small")]

mod bare;
mod window;

use roci_fabric::graph::Graph;
use roci_fabric::topology::{FatTree, Form, Star};
use roci_switch::Red;
use roci_units::{BitsPerSec, Bytes, Ratio, Span};
use rustix::time::{ClockId, clock_gettime};

/// What both run: every source sends packets to its destination, as many as the window allows, each acknowledged.
struct Workload {
    graph: Graph,
    /// The destination of each host's flow; its own number for none.
    destinations: Vec<u16>,
    packets: u32,
    window: u32,
}

/// What a run has done, and how long it took.
struct Run {
    hops: u64,
    events: u64,
    cpu_s: f64,
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const DELAY: Span = Span::from_micros(1);
/// 100 KB, 400 KB, 20 %: HPCC's for this rate.
pub(crate) const RED: Red = Red { kmin: Bytes(100_000), kmax: Bytes(400_000), pmax: Ratio::new(1, 5) };

fn fat_tree(pods: u32, tors: u32, aggs: u32, cores: u32, hosts: u32, packets: u32) -> Workload {
    let form = Form::Pods { pods, tors_per_pod: tors, aggs_per_pod: aggs, cores, hosts_per_tor: hosts };
    let tree = FatTree { form, rate: RATE, fabric_rate: None, delay: DELAY };
    let graph = tree.build().expect("a regular fat tree").graph;
    // Sattolo's shuffle: a permutation without a fixed point.
    let mut random = roci_units::Random::new(1, 0);
    let mut destinations: Vec<u16> = (0..).take(graph.hosts.len()).collect();
    for place in (1..destinations.len()).rev() {
        let other = usize::try_from(random.below(place as u64)).expect("an index");
        destinations.swap(place, other);
    }
    Workload { graph, destinations, packets, window: 64 }
}

fn incast() -> Workload {
    let graph = Star { hosts: 33, rate: RATE, delay: DELAY }.build().expect("a star").graph;
    Workload { graph, destinations: vec![32; 33], packets: 16_000, window: 64 }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    println!("M packet-hops per CPU second, median (best)");
    println!("{:<8} {:>16} {:>16} {:>7} {:>10} {:>10}", "case", "bare", "fabric", "ratio", "ev/hop", "hops");
    type Case = (&'static str, fn() -> Workload);
    let cases: [Case; 4] = [
        ("128", || fat_tree(8, 4, 4, 16, 4, 10_000)),
        ("1024", || fat_tree(16, 8, 8, 64, 8, 1_000)),
        ("4096", || fat_tree(16, 16, 16, 256, 16, 250)),
        ("incast", incast),
    ];
    for (name, make) in cases {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        let workload = make();
        let (mut bare_rates, mut fabric_rates) = (Vec::new(), Vec::new());
        let mut last = None;
        for _ in 0..5 {
            let bare = bare::run(&workload);
            let fabric = window::run(&workload);
            bare_rates.push(bare.hops as f64 / bare.cpu_s / 1e6);
            fabric_rates.push(fabric.hops as f64 / fabric.cpu_s / 1e6);
            last = Some(fabric);
        }
        let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
        let (bare_best, fabric_best) = (best(&bare_rates), best(&fabric_rates));
        let (bare, fabric) = (median(bare_rates), median(fabric_rates));
        let events = last.as_ref().map_or(0.0, |run: &Run| run.events as f64 / run.hops as f64);
        println!(
            "{name:<8} {bare:>8.2} ({bare_best:>5.2}) {fabric:>8.2} ({fabric_best:>5.2}) {:>7.3} {events:>10.3} {:>10}",
            fabric / bare,
            last.map_or(0, |run| run.hops)
        );
    }
}
