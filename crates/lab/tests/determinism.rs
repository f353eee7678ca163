//! The same scenario and seed give the same results, byte for byte: twice, among other runs, and in every build.

use roci_lab::output::write_all;
use roci_lab::results::{HostFigures, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// DCQCN in an incast that loses, damages, doubles, delays and swaps packets.
const INCAST: &str = r#"
name = "incast-with-faults"
[topology]
kind = "tree"
leaves = [2, 4, 2]
rate = "10Gb/s"
uplink = "10Gb/s"
delay = "1us"
[transport]
control = { law = "dcqcn", preset = "sigcomm15" }
[[traffic]]
kind = "incast"
senders = 8
size = "1MB"
[[traffic]]
kind = "closed-loop"
src = "h1"
dst = "h2"
qps = 2
op = "read"
message = "20KB"
depth = 2
count = 20
[faults]
loss = 0.002
corrupt = 0.001
duplicate = 0.002
reorder = { share = 0.002, by = "10us" }
delay = { min = "0s", max = "2us" }
[measure]
sample = "50us"
"#;

/// Flows of random sizes between random hosts of a fat tree, over IRN, a NIC that makes everything wait, and links that lose.
const POISSON: &str = r#"
name = "poisson"
stop = "3ms"
[topology]
kind = "fat-tree"
k = 4
rate = "25Gb/s"
delay = "1us"
[nic]
model = "delaying"
[transport]
recovery = "irn"
control = { law = "dcqcn", preset = "hpcc" }
[[traffic]]
kind = "poisson"
sizes = "web-search"
load = 0.6
[faults]
loss = 0.001
[measure]
sample = "100us"
"#;

/// PFC alone: pauses spread from a slow receiver.
const PAUSES: &str = r#"
name = "pauses"
[topology]
kind = "dumbbell"
left = 4
right = 4
rate = "40Gb/s"
bottleneck = "100Gb/s"
delay = "2us"
[switch]
buffer = "1MB"
ecn = false
[transport]
control = { law = "none" }
[[traffic]]
kind = "incast"
senders = 6
size = "500KB"
op = "send"
"#;

/// Spines that fail and flap, a link that loses lanes and bits, and routes that follow.
const OUTAGES: &str = r#"
name = "outages"
stop = "3ms"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = "25Gb/s"
fabric_rate = "100Gb/s"
delay = "1us"
[transport]
control = { law = "dcqcn", preset = "hpcc" }
timeout = "150us"
[[traffic]]
kind = "permutation"
size = "3MB"
[faults]
detect = "30us"
[[faults.on]]
switch = "spine1"
from = "200us"
until = "700us"
down = true
[[faults.on]]
switch = "spine*"
from = "900us"
until = "1300us"
flap = { up = "100us", down = "50us" }
[[faults.on]]
link = "leaf0-spine*"
from = "300us"
rate = "33Gb/s"
ber = 1e-8
"#;

const SCENARIOS: [&str; 4] = [INCAST, POISSON, PAUSES, OUTAGES];
const SEED: u64 = 7;

fn results(text: &str) -> Results {
    let scenario = Scenario::parse(text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let run = SimulatedWorld.run(&scenario, SEED, None, &mut |_| Go::On);
    // What a run cost the machine is all that may differ.
    Results { run: HostFigures::default(), ..run.unwrap_or_else(|error| panic!("{error}")) }
}

/// All files of a run, with their names.
fn files(text: &str, folder: &Path) -> Vec<(String, Vec<u8>)> {
    std::fs::create_dir_all(folder).expect("a folder for the test");
    write_all(folder, &mut results(text), &|| 0.0).expect("the folder can be written");
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    let read = |path: &PathBuf| (name(path).expect("a file"), std::fs::read(path).expect("it can be read"));
    paths.iter().map(read).collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("determinism").join(name)
}

#[test]
fn two_runs_give_the_same_files_alone_and_among_others() {
    let alone: Vec<_> = SCENARIOS.iter().map(|text| files(text, &folder("alone"))).collect();
    assert!(alone.iter().all(|files| files.len() == 5 && files.iter().all(|(_, octets)| !octets.is_empty())));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let text = SCENARIOS[number % 4];
                scope.spawn(move || files(text, &folder(&number.to_string())))
            })
            .collect();
        for (number, thread) in threads.into_iter().enumerate() {
            for (once, again) in alone[number % 4].iter().zip(thread.join().expect("it ends")) {
                assert_eq!(once.0, again.0);
                assert!(once.1 == again.1, "{} of scenario {} differs", once.0, number % 4);
            }
        }
    });
}

/// Debug and release builds and all machines agree on this. A change of behaviour changes it: look at what changed
/// and, if that was meant, record it anew with `INSTA_UPDATE=always`.
#[test]
fn every_build_on_every_machine_gives_these_results() {
    let mut recorded = String::new();
    for text in SCENARIOS {
        let results = results(text);
        let mut octets = Vec::new();
        roci_lab::output::summary::write(&mut octets, &results).expect("memory can be written");
        roci_lab::output::flows::write(&mut octets, &results).expect("memory can be written");
        roci_lab::output::series::write(&mut octets, &results).expect("memory can be written");
        let retransmitted: u64 = results.flows.iter().map(|flow| u64::from(flow.retransmitted)).sum();
        let pauses: u64 = results.switches.iter().map(|switch| switch.pause_sent).sum();
        let Results { name, simulated, events, packets, .. } = &results;
        writeln!(
            recorded,
            "{name}: {simulated}, {} flows, {events} events, {packets} packets, {retransmitted} sent again, \
             {pauses} pauses, digest {:016x}",
            results.flows.len(),
            fnv1a(&octets)
        )
        .expect("a string can be written");
    }
    insta::assert_snapshot!(recorded);
}

/// Fowler, Noll and Vo's hash of 64 bits.
fn fnv1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
