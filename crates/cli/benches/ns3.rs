//! How many packet-hops a CPU second moves in `roci run` and in ns-3, on this machine.
//!
//! `cargo bench -p roci-cli --features outside-tools --bench ns3` needs `apt-get install g++ libns3-dev tshark`. *Links*: 32 hosts on one
//! switch send 4 MB each without congestion control, and ns-3 carries the same frames over bare point-to-point devices: it has no NICs,
//! no transport, no marks and no results to write. *DCTCP*: four long flows into one link, by ns-3's TCP over IP, by ours in RoCEv2's
//! packets of the same length on the wire. Rounds alternate; printed are the medians of rates and of each round's ratio. Both count the time of
//! their event loops alone.

#[path = "../tests/outside/ns3.rs"]
mod ns3;
#[path = "../tests/outside/tools.rs"]
#[expect(dead_code, reason = "the tests need Python as well")]
mod tools;

use std::process::Command;
use tools::{output_of, scratch};

const ROUNDS: usize = 5;

/// Packet-hops and the CPU seconds that they took.
type Run = (u64, f64);

/// Runs `scenario` with `roci`.
fn roci(name: &str, scenario: &str) -> Run {
    let (path, folder) = (scratch().join(format!("{name}.toml")), scratch().join(name));
    std::fs::write(&path, scenario).expect("a scratch file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_roci"));
    command.arg("run").arg(&path).arg("--quiet").arg("--out").arg(&folder);
    output_of(&mut command, "it is the program under test");
    let summary = std::fs::read_to_string(folder.join("summary.json")).expect("summary.json");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    let cpu_s = summary["host"]["cpu_s"].as_f64().expect("seconds");
    (summary["packet_hops"].as_u64().expect("hops"), cpu_s)
}

/// Prints what `ours` and `theirs` do in a second, in turns.
fn compare(name: &str, mut ours: impl FnMut() -> Run, mut theirs: impl FnMut() -> Run) {
    let rate = |(hops, cpu_s): Run| hops as f64 / cpu_s / 1e6;
    let rounds: Vec<_> = (0..ROUNDS).map(|_| (ours(), theirs())).collect();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (hops, others) = (rounds[0].0.0, rounds[0].1.0);
    let ratio = median(rounds.iter().map(|&(ours, theirs)| rate(ours) / rate(theirs)).collect());
    let [ours, theirs] = [0, 1].map(|side| {
        median(rounds.iter().map(|&(ours, theirs)| rate(if side == 0 { ours } else { theirs })).collect())
    });
    println!(
        "{name:<6}  roci {ours:6.2} M hops/s ({hops} hops)  ns-3 {theirs:6.3} M hops/s ({others} hops)  ratio {ratio:.1}"
    );
}

fn links() {
    const HOSTS: usize = 32;
    let links =
        (0..HOSTS).map(|host| ns3::Link { a: host, b: HOSTS, gbps: 8, delay_ns: 1_000 + host as u64 });
    let network = ns3::Network { hosts: HOSTS, switches: 1, links: links.collect() };
    let scenario = format!(
        "{}[switch]\nbuffer = \"1GB\"\n[transport]\ncontrol = \"none\"\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"4MB\"\n",
        network.scenario()
    );
    roci("captured", &(scenario.clone() + &network.capture()));
    let frames = ns3::frames(&scratch().join("captured/capture.pcapng"));
    let theirs = || {
        let ns3::Carried { arrived, hops, cpu_s } = ns3::carry(&network, &frames);
        // What arrives at one instant may leave in either order.
        let alike = frames.iter().zip(arrived).filter(|(frame, arrived)| frame.arrived == *arrived).count();
        assert!(alike * 100 > frames.len() * 99, "{alike} of {} arrive alike", frames.len());
        (hops, cpu_s)
    };
    compare("links", || roci("links", &scenario), theirs);
}

fn dctcp() {
    let scenario = "stop = \"50ms\"\n[topology]\nkind = \"star\"\nhosts = 5\nrate = \"8Gb/s\"\ndelay = \"10us\"\n\
        [switch]\npfc = false\nbuffer = \"100MB\"\nalpha = 1024\necn = { step = \"65KB\", at = \"enqueue\" }\n\
        [transport]\ncontrol = \"dctcp\"\n\
        [[traffic]]\nkind = \"incast\"\nsenders = 4\nreceiver = \"h0\"\nsize = \"1GB\"\n";
    let program = ns3::program("tcp");
    // 1024 octets of payload are 1106 on the wire.
    let arguments = ["4", "8000000000", "10000", "1106", "65000", "50000000"];
    let theirs = || {
        let text = output_of(Command::new(&program).args(arguments), "it has just been built");
        let words: Vec<&str> = text.split_whitespace().collect();
        (words[3].parse().expect("hops"), words[4].parse().expect("seconds"))
    };
    compare("dctcp", || roci("dctcp", scenario), theirs);
}

fn main() {
    links();
    dctcp();
}
