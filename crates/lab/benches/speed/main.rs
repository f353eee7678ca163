//! How many packet-hops a CPU second moves: the simulator as `roci run` runs it, and the fabric with trivial NICs,
//! beside a bare event kernel without a protocol on the same network.
//!
//! `cargo bench -p roci-lab --bench speed [-- case…]`, where a case is `128`, `1024`, `4096` or `incast`. The runs of the
//! three are interleaved, each repeated for two seconds of CPU time by the thread's clock; medians and ratios to the bare
//! kernel are printed. For a profile, `bare`, `trivial` or `roci` among the arguments runs that one alone, once.
#![expect(clippy::cast_possible_truncation, reason = "the workloads are small")]

mod bare;
mod window;

use roci_fabric::graph::Graph;
use roci_fabric::topology::{FatTree, Form, Star};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
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

/// The scenario of the same name, as `roci run` runs it.
fn simulate(scenario: &Scenario) -> Run {
    let results = SimulatedWorld
        .run(scenario, scenario.seed, None, &mut |_| Go::On)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    Run { hops: results.packet_hops, events: results.events, cpu_s: results.run.cpu_s }
}

fn load(file: &str) -> Scenario {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs again and again for two seconds of CPU time.
fn repeat(run: impl Fn() -> Run) -> Run {
    let mut sum = Run { hops: 0, events: 0, cpu_s: 0.0 };
    while sum.cpu_s < 2.0 {
        let once = run();
        sum.hops += once.hops;
        sum.events += once.events;
        sum.cpu_s += once.cpu_s;
    }
    sum
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A case: its name, the workload of the bare kernel and of the trivial NICs, and the scenario.
type Case = (&'static str, fn() -> Workload, &'static str);

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let cases: [Case; 4] = [
        ("128", || fat_tree(8, 4, 4, 16, 4, 10_000), "permutation-128.toml"),
        ("1024", || fat_tree(16, 8, 8, 64, 8, 1_000), "permutation-1024.toml"),
        ("4096", || fat_tree(16, 16, 16, 256, 16, 250), "permutation-4096.toml"),
        ("incast", incast, "incast-32.toml"),
    ];
    println!(
        "M packet-hops per CPU second, median of {ROUNDS} interleaved rounds, and the ratio to the bare kernel"
    );
    println!("{:<8} {:>8} {:>16} {:>16} {:>8}", "case", "bare", "trivial NICs", "roci run", "ev/hop");
    for (name, make, file) in cases {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        let (workload, scenario) = (make(), load(file));
        let alone = |kernel: &str| asked.iter().any(|asked| asked == kernel);
        if alone("bare") || alone("trivial") || alone("roci") {
            let run = match () {
                () if alone("bare") => repeat(|| bare::run(&workload)),
                () if alone("trivial") => repeat(|| window::run(&workload)),
                () => repeat(|| simulate(&scenario)),
            };
            println!("{name:<8} {:>8.2}", run.hops as f64 / run.cpu_s / 1e6);
            continue;
        }
        let mut rates = [const { Vec::new() }; 3];
        let mut events = 0.0;
        for _ in 0..ROUNDS {
            let runs = [
                repeat(|| bare::run(&workload)),
                repeat(|| window::run(&workload)),
                repeat(|| simulate(&scenario)),
            ];
            events = runs[2].events as f64 / runs[2].hops as f64;
            for (rates, run) in rates.iter_mut().zip(&runs) {
                rates.push(run.hops as f64 / run.cpu_s / 1e6);
            }
        }
        let [bare, trivial, simulator] = rates.map(median);
        println!(
            "{name:<8} {bare:>8.2} {trivial:>8.2} ({:>5.3}) {simulator:>8.2} ({:>5.3}) {events:>8.3}",
            trivial / bare,
            simulator / bare
        );
    }
}

const ROUNDS: usize = 5;
