//! ns-3 as a second opinion on how frames queue and travel: what hosts have sent in a run of ours is sent once more, and
//! carried by ns-3's links.

use super::tools::{output_of, scratch};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What an Ethernet link is busy with besides the octets of a capture: preamble, check sequence and gap.
const FRAMING: u64 = 8 + 4 + 12;

/// A link of the network, both ways alike.
pub(crate) struct Link {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) gbps: u64,
    pub(crate) delay_ns: u64,
}

/// Hosts, then switches, numbered in this order, and the links between them; there is one path from each to each.
pub(crate) struct Network {
    pub(crate) hosts: usize,
    pub(crate) switches: usize,
    pub(crate) links: Vec<Link>,
}

impl Network {
    fn name(&self, node: usize) -> String {
        if node < self.hosts { format!("h{node}") } else { format!("s{}", node - self.hosts) }
    }

    /// `[topology]` of a scenario, where flows begin when they say.
    pub(crate) fn scenario(&self) -> String {
        let list = |nodes: std::ops::Range<usize>| {
            nodes.map(|node| format!("\"{}\"", self.name(node))).collect::<Vec<_>>().join(", ")
        };
        let (hosts, switches) = (list(0..self.hosts), list(self.hosts..self.hosts + self.switches));
        let mut text = format!(
            "start_jitter = \"0s\"\n[topology]\nkind = \"graph\"\nhosts = [{hosts}]\nswitches = [{switches}]\nlinks = [\n"
        );
        for Link { a, b, gbps, delay_ns } in &self.links {
            let (a, b) = (self.name(*a), self.name(*b));
            let _ = writeln!(
                text,
                "{{ a = \"{a}\", b = \"{b}\", rate = \"{gbps}Gb/s\", delay = \"{delay_ns}ns\" }},"
            );
        }
        text + "]\n"
    }

    /// `measure.pcap` of all hosts.
    pub(crate) fn capture(&self) -> String {
        let names: Vec<_> = (0..self.hosts).map(|host| format!("\"{}\"", self.name(host))).collect();
        format!("[measure]\npcap = [{}]\n", names.join(", "))
    }
}

/// A frame that a host has sent.
pub(crate) struct Frame {
    /// When its first octet left, and when its last one had arrived, in ns.
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    source: usize,
    destination: usize,
    octets: u64,
}

/// The frames of a capture at all hosts in the order in which they were sent. None may have been lost on the way.
pub(crate) fn frames(capture: &Path) -> Vec<Frame> {
    const FIELDS: [&str; 9] = [
        "frame.packet_flags_direction",
        "frame.time_epoch",
        "frame.len",
        "ip.src",
        "ip.dst",
        "udp.srcport",
        "infiniband.bth.opcode",
        "infiniband.bth.psn",
        "infiniband.aeth.msn",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-T", "fields"]).args(FIELDS.map(|name| ["-e", name]).as_flattened());
    let text = output_of(&mut tshark, "apt-get install tshark");
    let (mut sent, mut arrived) = (Vec::new(), BTreeMap::<String, VecDeque<u64>>::new());
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let at = fields[1].replace('.', "").parse().expect("seconds with nine digits behind the point");
        // What is sent again is told apart by its place: nothing overtakes on the only path.
        let name = fields[2..].join(" ");
        match fields[0] {
            "0x00000001" => arrived.entry(name).or_default().push_back(at),
            "0x00000002" => {
                let host = |address: &str| {
                    let octets = address.split('.').map(|octet| octet.parse().expect("a decimal octet"));
                    octets.fold(0, |sum: usize, octet: usize| sum << 8 | octet) - (10 << 24) - 1
                };
                let octets = fields[2].parse::<u64>().expect("a length") + FRAMING;
                sent.push((at, host(fields[3]), host(fields[4]), octets, name));
            }
            other => panic!("direction {other} in {line}"),
        }
    }
    sent.sort_by_key(|&(at, ..)| at);
    let frame = |(sent, source, destination, octets, name)| {
        let arrived = arrived.get_mut(&name).and_then(VecDeque::pop_front);
        let arrived = arrived.unwrap_or_else(|| panic!("{name} has not arrived"));
        Frame { sent, arrived, source, destination, octets }
    };
    sent.into_iter().map(frame).collect()
}

/// What the programs under `tests/ns3` measure of themselves.
#[derive(Debug)]
pub(crate) struct Carried {
    /// When each frame had arrived, in ns.
    pub(crate) arrived: Vec<u64>,
    /// How many links they crossed together, and how many seconds of CPU time that took.
    pub(crate) hops: u64,
    pub(crate) cpu_s: f64,
}

/// Has ns-3 carry `frames` through `network`.
pub(crate) fn carry(network: &Network, frames: &[Frame]) -> Carried {
    let mut input = format!("node {}\n", network.hosts + network.switches);
    for Link { a, b, gbps, delay_ns } in &network.links {
        let _ = writeln!(input, "link {a} {b} {} {delay_ns}", gbps * 1_000_000_000);
    }
    for Frame { sent, source, destination, octets, .. } in frames {
        let _ = writeln!(input, "frame {sent} {source} {destination} {octets}");
    }
    let mut command = Command::new(program("links"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the program has just been built");
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "links of ns-3: {said}");
    writer.join().expect("no panic").expect("it reads all");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let arrived = text.lines().map(|line| line.parse().expect("ns")).collect();
    let (hops, cpu_s) = said.trim().split_once(' ').expect("two numbers");
    Carried { arrived, hops: hops.parse().expect("hops"), cpu_s: cpu_s.parse().expect("seconds") }
}

/// Builds the program `name` under `tests/ns3` with Debian's ns-3.
pub(crate) fn program(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ns3/{name}.cc"));
    let program = scratch().join(format!("ns3-{name}"));
    let parts = ["applications", "internet", "traffic-control", "point-to-point", "network", "core"];
    let mut compiler = Command::new("c++");
    compiler.args(["-O2", "-std=c++17"]).arg(&source).arg("-o").arg(&program);
    compiler.args(parts.map(|part| format!("-lns3-{part}")));
    output_of(&mut compiler, "apt-get install g++ libns3-dev");
    program
}
