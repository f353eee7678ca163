//! What the guide says to do can be done. The page on laws of one's own needs a compiler: see `outside.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests write more")]
#[path = "../../lab/tests/support/chakra.rs"]
mod encode;
mod page;
#[expect(dead_code, reason = "other tests look at more")]
mod scratch;

use page::blocks;
use scratch::{Scratch, text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of the page on the endpoint.
mod verbs {
    include!("page/verbs.rs");

    pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

/// That of a server that hears of events.
mod events {
    include!("page/events.rs");

    pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

/// That of two that meet by RDMA-CM, of which one tells where its memory lies.
mod remote {
    include!("page/remote.rs");

    pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

/// That of two ends that meet by RDMA-CM.
mod connect {
    include!("page/connect.rs");

    pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
        main()
    }
}

/// Of the commands on these pages, those that want more than a moment, another host, or a compiler.
const ELSEWHERE: [&str; 8] = [
    "roci run scenarios/*.toml",
    "roci sweep scenarios/websearch-fat-tree.toml",
    "roci reproduce validation",
    "roci reproduce all",
    "roci program build",
    "roci perf",
    "roci ping",
    "roci switch",
];

/// Chakra traces of two ranks, which compute and then sum something up.
fn traces(scratch: &Scratch) {
    std::fs::create_dir(scratch.0.join("traces")).unwrap();
    let nodes = [
        encode::Node::new(1, "mm", encode::COMPUTE).lasts(5),
        encode::collective(2, "sum", encode::ALL_REDUCE, 100_000).after(&[1]),
    ];
    for rank in 0..2 {
        std::fs::write(scratch.0.join(format!("traces/step.{rank}.et")), encode::trace(&nodes)).unwrap();
    }
    scratch.scenario("comm_group.json", "{\"1\": [0, 1]}");
}

/// A configuration of HPCC's simulator with its files: a flow of ten packets between two hosts on a switch.
const HPCC: [(&str, &str); 3] = [
    (
        "mix/config.txt",
        "TOPOLOGY_FILE mix/topology.txt\nFLOW_FILE mix/flow.txt\nPACKET_PAYLOAD_SIZE 1024\nCC_MODE 1\nHAS_WIN 0\n\
         KMIN_MAP 1 100000000000 400\nKMAX_MAP 1 100000000000 1600\nPMAX_MAP 1 100000000000 0.2\n",
    ),
    ("mix/topology.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
    ("mix/flow.txt", "1\n0 1 3 100 10240 2.0\n"),
];

#[test]
fn the_commands_of_the_guide_do_something() {
    let scratch = Scratch::new("guide-commands");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in ["scenarios", "firmware"] {
        std::os::unix::fs::symlink(repository.join(folder), scratch.0.join(folder)).unwrap();
    }
    std::fs::create_dir(scratch.0.join("mix")).unwrap();
    for (name, content) in HPCC {
        scratch.scenario(name, content);
    }
    traces(&scratch);
    let program = Path::new(env!("CARGO_BIN_EXE_roci")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut done = 0;
    for page in ["commands.md", "nics.md", "ns3.md"] {
        for (_, block) in blocks(page).into_iter().filter(|(kind, _)| kind == "sh") {
            // A pipe goes on in the next line.
            let block = block.replace("|\n", "| ");
            for line in block.lines().filter(|line| line.starts_with("roci ") || line.starts_with("awk ")) {
                if ELSEWHERE.iter().any(|elsewhere| line.starts_with(elsewhere)) {
                    continue;
                }
                let mut shell = Command::new("sh");
                let output =
                    shell.args(["-c", line]).current_dir(&scratch.0).env("PATH", &path).output().unwrap();
                assert!(output.status.success(), "{page}: {line}: {}", text(&output.stderr));
                assert!(!output.stdout.is_empty() || line.contains(" > "), "{page}: {line}");
                done += 1;
            }
        }
    }
    assert!(done >= 20, "only {done} commands were found");
    // Ten packets of 1082 octets on two links of 100 Gb/s and 1 us, and 62 octets back.
    let times = text(&scratch.read("fct.txt"));
    let (flow, ideal) = times.trim_end().rsplit_once(' ').unwrap();
    assert!(flow.starts_with("h0 h1 10000 100 10240 2000000000 ") && flow.ends_with(ideal), "{times}");
}

#[test]
fn the_guides_ring_stands_still_as_it_says_and_gets_on_with_what_helps() {
    let scratch = Scratch::new("guide-deadlock");
    let blocks = blocks("deadlock.md");
    let first = |kind| &blocks.iter().find(|block| block.0 == kind).unwrap().1;
    scratch.scenario("ring.toml", first("toml"));
    let console = first("console");
    let said = console.strip_prefix("$ roci run ring.toml\n").unwrap().to_owned();
    let output = scratch.roci(&["run", "ring.toml"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), said));
    let summary = scratch.summary("out/ring/summary.json");
    assert_eq!(summary["deadlock"]["at_s"], 0.002);
    assert_eq!(summary["deadlock"]["cycle"][0], serde_json::json!({ "from": "s0", "to": "s1" }));
    let dcqcn = ["switch.ecn=true", "transport.control=dcqcn"];
    let rows: [(&[&str], &str); 6] = [
        (&["switch.buffer=12MB"], "deadlock at"),
        (&dcqcn, "deadlock at"),
        (&[dcqcn[0], dcqcn[1], "switch.buffer=2MB"], ""),
        (&["transport.max_in_flight=8"], ""),
        (&["switch.pfc=false"], "Transport Retry Counter Exceeded"),
        (&["switch.pfc=false", "transport.recovery=irn", "transport.max_in_flight=40"], ""),
    ];
    for (set, said) in rows {
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let output = scratch.roci(&[&["run", "ring.toml"], set.as_slice()].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.success(), said.is_empty(), "{set:?}: {message}");
        assert!(message.contains(said), "{set:?}: {message}");
    }
}

#[test]
fn the_guides_settings_are_told_apart_seed_by_seed_as_it_says() {
    let scratch = Scratch::new("guide-operate");
    let blocks = blocks("operate.md");
    let first = |kind| &blocks.iter().find(|block| block.0 == kind).unwrap().1;
    scratch.scenario("shared.toml", first("toml"));
    let (command, said) = first("console").split_once('\n').unwrap();
    let arguments: Vec<&str> = command.strip_prefix("$ roci ").unwrap().split_whitespace().collect();
    let output = scratch.roci(&arguments);
    let printed = text(&output.stdout);
    assert!(printed.starts_with(said.strip_suffix("...\n").unwrap().trim_end()), "{printed}");
    let csv = text(&scratch.read("out/shared-sweep/comparison.csv"));
    let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    for name in ["configuration", "slowdown_p95_diff", "slowdown_p95_diff_ci95", "slowdown_p99", "paused_s"] {
        assert!(heading.contains(&name), "{name}");
    }
    let report = text(&scratch.read("out/shared-sweep/report.html"));
    assert!(report.contains("Slowdown by size, p99") && report.contains("Differences, seed by seed"));
    // The same with bursts, table by table.
    let second = |kind| &blocks.iter().filter(|block| block.0 == kind).nth(1).unwrap().1;
    scratch.scenario("with-bursts.toml", &format!("{}\n{}", first("toml"), second("toml")));
    let (command, said) = second("console").split_once('\n').unwrap();
    let arguments: Vec<&str> = command.strip_prefix("$ roci ").unwrap().split_whitespace().collect();
    let printed = text(&scratch.roci(&arguments).stdout);
    let said = said.trim_start_matches("...\n").trim_end_matches("...\n");
    assert!(said.lines().count() > 3 && printed.contains(said), "{said} in\n{printed}");
    assert!(scratch.files().contains(&"out/shared-sweep/comparison-traffic.csv".to_owned()));
    // Two loads with two laws.
    let arguments: Vec<&str> = first("sh").strip_prefix("roci ").unwrap().split_whitespace().collect();
    let printed = text(&scratch.roci(&arguments).stdout);
    let against = printed.lines().filter_map(|line| line.strip_prefix("  against "));
    let against: Vec<_> = against.map(|line| line.split_once(", seed by seed").unwrap().0).collect();
    let law = "transport.control=dcqcn preset=hpcc switch.ecn.kmin=20KB";
    assert_eq!(against, [0.3, 0.6].map(|load| format!("traffic.0.load={load} {law}")));
    let timely =
        ["transport.control=timely", "switch.ecn.kmin=20KB,100KB"].map(|set| ["--set", set]).concat();
    let output =
        scratch.roci(&[&["sweep", "shared.toml", "--set", "traffic.0.until=1ms"], &timely[..]].concat());
    assert_eq!(text(&output.stderr).matches("`timely` does not slow down for marks").count(), 1);
}

#[test]
fn the_guides_thresholds_are_found_as_it_says() {
    let scratch = Scratch::new("guide-tune");
    let blocks = blocks("operate.md");
    scratch.scenario("shared.toml", &blocks.iter().find(|block| block.0 == "toml").unwrap().1);
    let (_, console) = blocks.iter().find(|(_, text)| text.starts_with("$ roci tune")).unwrap();
    let (command, said) = console.split_once('\n').unwrap();
    let arguments: Vec<&str> =
        command.split_whitespace().skip(2).map(|word| word.trim_matches('\'')).collect();
    let output = scratch.roci(&arguments);
    let (rounds, verdict) = said.split_once("...\n").unwrap();
    assert!(text(&output.stderr).starts_with(rounds), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with(verdict), "{}", text(&output.stdout));
}

/// Runs the command on the first line of `block`, and holds what it prints against the lines behind it; gives how many these are.
fn lines_shown(scratch: &Scratch, block: &str) -> usize {
    let (command, lines) = block.split_once('\n').unwrap();
    let arguments: Vec<&str> = command.split_whitespace().skip(2).collect();
    let printed = text(&scratch.roci(&arguments).stdout);
    let lines = lines.lines().filter(|line| !line.is_empty() && *line != "...");
    let is_printed = |line: &&str| {
        assert!(printed.lines().any(|printed| printed == *line), "{command}: {line} in\n{printed}");
    };
    lines.inspect(is_printed).count()
}

#[test]
fn the_guides_faults_and_bursts_are_told_of_as_it_says() {
    let scratch = Scratch::new("guide-traffic");
    let blocks = blocks("output.md");
    let scenarios: Vec<&String> =
        blocks.iter().filter(|block| block.0 == "toml").map(|block| &block.1).collect();
    assert_eq!(scenarios.len(), 2);
    let names = ["failed-spine.toml", "bursts.toml"];
    for (name, scenario) in names.into_iter().zip(scenarios) {
        scratch.scenario(name, scenario);
    }
    let is_meant = |text: &str| text.starts_with("$ roci") && names.iter().any(|name| text.contains(name));
    let meant = blocks.iter().filter(|(_, text)| is_meant(text));
    let shown: usize = meant.map(|(_, block)| lines_shown(&scratch, block)).sum();
    assert!(shown >= 13, "only {shown} lines were found");
}

#[test]
fn the_guides_unreliable_connections_lose_what_it_says() {
    let scratch = Scratch::new("guide-unreliable");
    let blocks = blocks("scenario.md");
    let scenario =
        blocks.iter().find(|block| block.0 == "toml" && block.1.contains("service = \"UC\"")).unwrap();
    scratch.scenario("readout.toml", &scenario.1);
    let runs = blocks.iter().filter(|block| block.1.starts_with("$ roci run readout.toml"));
    let shown: usize = runs.map(|(_, block)| lines_shown(&scratch, block)).sum();
    assert!(shown >= 10, "only {shown} lines were found");
}

#[test]
fn the_programs_of_the_page_on_the_endpoint_run() {
    let programs: Vec<_> = blocks("endpoint.md").into_iter().filter(|block| block.0 == "rust").collect();
    assert_eq!(programs.len(), 4);
    assert_eq!(programs[0].1, include_str!("page/verbs.rs"), "the page and tests/page/verbs.rs");
    assert_eq!(programs[1].1, include_str!("page/connect.rs"), "the page and tests/page/connect.rs");
    assert_eq!(programs[2].1, include_str!("page/remote.rs"), "the page and tests/page/remote.rs");
    assert_eq!(programs[3].1, include_str!("page/events.rs"), "the page and tests/page/events.rs");
    verbs::run().unwrap();
    connect::run().unwrap();
    remote::run().unwrap();
    events::run().unwrap();
}

/// The documents, by their paths.
fn documents() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folders = ["", "docs", "docs/guide", "docs/decisions"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let pages =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of a page outside its blocks of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n```").step_by(2).flat_map(str::lines)
}

/// What a heading is called in links: its letters and digits in small, with dashes for spaces.
fn anchor(heading: &str) -> String {
    // Of a link the words alone.
    let words = heading.split("](").enumerate().map(|(place, part)| match place {
        0 => part,
        _ => part.split_once(')').map_or("", |(_, rest)| rest),
    });
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    words.collect::<String>().trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let documents = documents();
    let mut followed = 0;
    for (path, page) in &documents {
        for link in prose(page).flat_map(|line| line.split("](").skip(1)) {
            let (link, _) = link.split_once(')').unwrap();
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let there = match file {
                "" => path.clone(),
                _ => path.parent().unwrap().join(file),
            };
            let there = there.canonicalize().unwrap_or_else(|_| panic!("{}: {link}", path.display()));
            if !heading.is_empty() {
                let headings = prose(&documents[&there]).filter_map(|line| line.strip_prefix('#'));
                let mut anchors = headings.map(|line| anchor(line.trim_start_matches('#')));
                assert!(anchors.any(|it| it == heading), "{}: {link}", path.display());
            }
            followed += 1;
        }
    }
    assert!(followed > 60, "only {followed} links were found");
}
