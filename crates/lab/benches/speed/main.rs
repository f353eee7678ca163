//! How many packet-hops a CPU second moves: the simulator as `roci run` runs it, and the fabric with trivial NICs,
//! beside a bare event kernel without a protocol on the same network, once with DCQCN's events and once with a window
//! alone.
//!
//! `cargo bench -p roci-lab --bench speed [-- case…]`, where a case is `128`, `1024`, `4096`, `incast`, `swcc-native` or
//! `swcc-` and the name of a program in `firmware/`; the last two are the first with SwCC's NICs, and DCQCN as native code or
//! the program on their cores. The programs that pace by LoopBack have more events a hop by their nature, which are printed
//! beside. Runs of the four are interleaved in short rounds, for a neighbour on the machine comes and goes within seconds and costs whatever
//! is in its caches: each case gets ten seconds of CPU time by the thread's clock. Printed are medians, the best round,
//! and the medians of each round's own ratios to the bare kernels. For a profile, `bare`, `window`, `trivial` or `roci` among the arguments runs that one alone.
#![expect(clippy::cast_possible_truncation, reason = "the workloads are small")]

mod bare;
mod reaction;
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
    /// Octets of each flow in the scenario.
    flow: u32,
}

/// What a run has done, and how long it took.
struct Run {
    hops: u64,
    events: u64,
    cpu_s: f64,
}

impl Run {
    /// M packet-hops per CPU second.
    fn rate(&self) -> f64 {
        self.hops as f64 / self.cpu_s / 1e6
    }

    fn events_per_hop(&self) -> f64 {
        self.events as f64 / self.hops as f64
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const DELAY: Span = Span::from_micros(1);
/// 100 KB, 400 KB, 20 %: HPCC's for this rate.
pub(crate) const RED: Red = Red { kmin: Bytes(100_000), kmax: Bytes(400_000), pmax: Ratio::new(1, 5) };

fn fat_tree([pods, tors, aggs, cores, hosts]: [u32; 5], packets: u32, flow: u32) -> Workload {
    let form = Form::Pods { pods, tors_per_pod: tors, aggs_per_pod: aggs, cores, hosts_per_tor: hosts };
    let tree = FatTree { form, rate: RATE, fabric_rate: None, core_rate: None, delay: DELAY };
    let graph = tree.build().expect("a regular fat tree").graph;
    // Sattolo's shuffle: a permutation without a fixed point.
    let mut random = roci_units::Random::new(1, 0);
    let mut destinations: Vec<u16> = (0..).take(graph.hosts.len()).collect();
    for place in (1..destinations.len()).rev() {
        let other = usize::try_from(random.below(place as u64)).expect("an index");
        destinations.swap(place, other);
    }
    Workload { graph, destinations, packets, window: 64, flow }
}

fn incast() -> Workload {
    let graph = Star { hosts: 33, rate: RATE, delay: DELAY }.build().expect("a star").graph;
    Workload { graph, destinations: vec![32; 33], packets: 16_000, window: 64, flow: 10_000_000 }
}

/// The scenario of the same name, as `roci run` runs it.
fn simulate(scenario: &Scenario) -> Run {
    let results = SimulatedWorld
        .run(scenario, scenario.seed, None, &mut |_| Go::On)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
    Run { hops: results.packet_hops, events: results.events, cpu_s: results.run.cpu_s }
}

fn load(file: &str, set: &[(&str, &str)]) -> Scenario {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load(&path, &set).unwrap_or_else(|error| panic!("{error}"))
}

/// SwCC's NICs, and a program on their cores.
macro_rules! swcc {
    ($name:literal) => {
        swcc!($name, "")
    };
    ($name:literal, $more:literal) => {
        &[
            ("nic.model", "swcc"),
            (
                "transport.control",
                concat!("{ law = \"program\", elf = \"firmware/", $name, ".elf\"", $more, " }"),
            ),
        ]
    };
}
const SWCC_NATIVE: &[(&str, &str)] = &[("nic.model", "swcc")];

/// Runs again and again for so many seconds of CPU time.
fn repeat(seconds: f64, run: impl Fn() -> Run) -> Run {
    let mut sum = Run { hops: 0, events: 0, cpu_s: 0.0 };
    while sum.cpu_s < seconds {
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

/// A case: its name, the workload of the bare kernel and of the trivial NICs, the scenario, and what differs in it.
type Case = (&'static str, fn() -> Workload, &'static str, &'static [(&'static str, &'static str)]);

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let small: fn() -> Workload = || fat_tree([8, 4, 4, 16, 4], 10_000, 10_000_000);
    let cases: [Case; 12] = [
        ("128", small, "permutation-128.toml", &[]),
        ("1024", || fat_tree([16, 8, 8, 64, 8], 1_000, 2_000_000), "permutation-1024.toml", &[]),
        ("4096", || fat_tree([16, 16, 16, 256, 16], 250, 1_000_000), "permutation-4096.toml", &[]),
        ("incast", incast, "incast-32.toml", &[]),
        ("swcc-native", small, "permutation-128.toml", SWCC_NATIVE),
        ("swcc-dcqcn", small, "permutation-128.toml", swcc!("dcqcn")),
        ("swcc-timely", small, "permutation-128.toml", swcc!("timely")),
        ("swcc-hpcc", small, "permutation-128.toml", swcc!("hpcc")),
        ("swcc-swift", small, "permutation-128.toml", swcc!("swift")),
        ("swcc-homa", small, "permutation-128.toml", swcc!("homa")),
        ("swcc-paced", small, "permutation-128.toml", swcc!("paced")),
        (
            "swcc-credit",
            small,
            "permutation-128.toml",
            swcc!("credit", ", context = { total_credit = \"256KiB\" }"),
        ),
    ];
    println!(
        "M packet-hops per CPU second, median of {ROUNDS} interleaved rounds (`roci run`'s ratio), events a hop"
    );
    println!(
        "{:<11} {:>8} {:>6} {:>5} {:>22} {:>22} {:>22}",
        "case", "roci run", "best", "", "bare", "window", "trivial NICs"
    );
    for (name, make, file, set) in cases {
        if !asked.is_empty() && !asked.iter().any(|asked| asked == name) {
            continue;
        }
        let (workload, scenario) = (make(), load(file, set));
        let kernels: [(&str, &dyn Fn() -> Run); 4] = [
            ("roci", &|| simulate(&scenario)),
            ("bare", &|| bare::run::<true>(&workload)),
            ("window", &|| bare::run::<false>(&workload)),
            ("trivial", &|| window::run(&workload)),
        ];
        if let Some((kernel, run)) =
            kernels.iter().find(|(kernel, _)| asked.iter().any(|asked| asked == kernel))
        {
            let run = repeat(2.0, run);
            println!("{name} {kernel}: {:.2}, {:.3} events a hop", run.rate(), run.events_per_hop());
            continue;
        }
        let mut runs = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            for (runs, (_, run)) in runs.iter_mut().zip(kernels) {
                runs.push(repeat(ROUND_S, run));
            }
        }
        let rates = runs.each_ref().map(|runs| runs.iter().map(Run::rate).collect::<Vec<_>>());
        let best = rates[0].iter().copied().fold(0.0, f64::max);
        print!(
            "{name:<11} {:>8.2} {best:>6.2} {:>5.3}",
            median(rates[0].clone()),
            runs[0][0].events_per_hop()
        );
        for (kernel, runs) in rates.iter().zip(&runs).skip(1) {
            let ratios = rates[0].iter().zip(kernel).map(|(roci, other)| roci / other).collect();
            let rate = median(kernel.clone());
            print!(" {rate:>8.2} ({:.3}) {:>5.3}", median(ratios), runs[0].events_per_hop());
        }
        println!();
    }
}

const ROUNDS: usize = 15;
/// Seconds of a round.
const ROUND_S: f64 = 0.67;
