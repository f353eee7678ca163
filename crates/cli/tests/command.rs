//! The command as a user meets it: exit codes, messages, and what is left on disk.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scratch;

use scratch::{SMALL, Scratch, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_run_prints_a_table_and_writes_its_results() {
    let scratch = Scratch::new("run");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&["run", "small.toml"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(printed.contains("small, seed 1: 4 of 4 flows done"), "{printed}");
    assert!(printed.contains("packet-hops") && printed.contains("out/small"), "{printed}");
    assert_eq!(text(&output.stderr), "", "no progress bar where there is no terminal");
    assert_eq!(
        scratch.files(),
        [
            "out/small/flows.csv",
            "out/small/report.html",
            "out/small/series.parquet",
            "out/small/summary.json",
            "small.toml"
        ]
    );
}

/// The arguments of the README's first command, run from the top of the repository with its results in `out`.
fn readmes_first_command(out: &Path, more: &[&str]) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(top.join("README.md")).unwrap();
    let (_, after) = readme.split_once("```sh\n").unwrap();
    let arguments = after.lines().next().unwrap().strip_prefix("cargo run --release -- ").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(arguments.split_whitespace())
        .args(more)
        .arg("--out")
        .arg(out)
        .current_dir(top)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The goodput of `board` while all sent, in Gb/s, of a printed table of flows.
fn while_all_sent(printed: &str, board: &str) -> f64 {
    // Columns are two spaces apart; names of columns have single ones.
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let header = printed.lines().find(|line| line.contains("while all sent")).unwrap();
    let column = cells(header).iter().position(|cell| cell == "while all sent").unwrap();
    let row = printed.lines().map(cells).find(|row| row.first().is_some_and(|name| name == board)).unwrap();
    let (number, unit) = row[column].split_once(' ').unwrap();
    number.parse::<f64>().unwrap() * if unit == "Mb/s" { 1e-3 } else { 1.0 }
}

#[test]
fn the_readmes_first_command_shows_eight_boards_that_share_fairly() {
    let scratch = Scratch::new("readme");
    let printed = readmes_first_command(&scratch.0.join("fair"), &[]);
    assert!(printed.contains("8 of 8 flows done"), "{printed}");
    let summary = scratch.summary("fair/summary.json");
    let numbers = |list: &str, key: &str| -> Vec<f64> {
        summary[list].as_array().unwrap().iter().map(|record| record[key].as_f64().unwrap()).collect()
    };
    let goodput = numbers("flows", "goodput_bps");
    assert_eq!(goodput.len(), 8);
    assert!(summary["flows"].as_array().unwrap().iter().all(|flow| flow["status"] == "ok"));
    let (sum, squares) = goodput.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let jain = sum * sum / (8.0 * squares);
    assert!(jain >= 0.99, "Jain's index {jain}: {goodput:?}");
    // What Figure 5 asks of one run; how far each board is from the paper's 1.1 Gb/s is asked of the mean of five.
    let shares: Vec<f64> = (5..=12).map(|board| while_all_sent(&printed, &format!("s{board}"))).collect();
    for all in [&goodput, &shares] {
        let mean = all.iter().sum::<f64>() / 8.0;
        assert!(all.iter().all(|one| (one / mean - 1.0).abs() <= 0.1), "{all:?}");
    }
    let cnps = numbers("flows", "cnps");
    assert!(cnps.iter().all(|cnps| *cnps > 0.0), "{cnps:?}");
    assert_eq!(numbers("switches", "drops"), [0.0; 4]);
    for (list, nodes) in [("switches", 4), ("hosts", 9)] {
        assert_eq!(numbers(list, "pause_sent"), vec![0.0; nodes], "DCQCN is to do it, not PFC");
    }
    let report = text(&scratch.read("fair/report.html"));
    assert!(report.starts_with("<!doctype html>") && report.contains("advcam-incast"));
    assert!(!scratch.read("fair/series.parquet").is_empty() && !scratch.read("fair/flows.csv").is_empty());
}

#[test]
fn its_table_shows_whom_pause_alone_favours_while_all_send() {
    let scratch = Scratch::new("parked");
    let printed = readmes_first_command(&scratch.0.join("parked"), &["--set", "switch.ecn=false"]);
    for (board, share) in [("s5", 1.54), ("s6", 1.54), ("s7", 0.77), ("s10", 0.77), ("s12", 1.54)] {
        let gbps = while_all_sent(&printed, board);
        assert!((gbps / share - 1.0).abs() < 0.02, "{board}: {gbps} in {printed}");
    }
    assert!(printed.contains("  while all sent, "), "{printed}");
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next_one() {
    let scratch = Scratch::new("killed");
    scratch.scenario("small.toml", SMALL);
    scratch.scenario("endless.toml", &SMALL.replace("200KB", "2GB"));
    let mut endless = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(["run", "endless.toml"])
        .current_dir(&scratch.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let left = || fs::read_dir(scratch.0.join("out")).map_or(0, Iterator::count);
    while left() == 0 {
        assert!(endless.try_wait().unwrap().is_none(), "it was to run for long");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    endless.kill().unwrap();
    endless.wait().unwrap();
    assert_eq!(left(), 1, "nothing can be done against SIGKILL at once");
    assert!(scratch.roci(&["run", "small.toml"]).status.success());
    let names: Vec<_> =
        fs::read_dir(scratch.0.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["small"]);
}

#[test]
fn one_seed_gives_the_same_octets_alone_and_among_parallel_runs() {
    let scratch = Scratch::new("same");
    scratch.scenario("small.toml", SMALL);
    assert!(scratch.roci(&["run", "small.toml", "--seed", "2", "--out", "alone"]).status.success());
    let parallel = scratch.roci(&["run", "small.toml", "--seeds", "1..3", "--jobs", "3", "--out", "three"]);
    assert!(parallel.status.success());
    assert!(text(&parallel.stdout).contains("small: seeds 1 to 3, means with 95 % confidence intervals"));
    for file in ["flows.csv", "series.parquet"] {
        assert!(
            scratch.read(&format!("alone/{file}")) == scratch.read(&format!("three/seed=2/{file}")),
            "{file}"
        );
    }
    assert_eq!(scratch.summary("alone/summary.json"), scratch.summary("three/seed=2/summary.json"));
    assert_ne!(scratch.read("three/seed=1/flows.csv"), scratch.read("three/seed=2/flows.csv"));
    assert!(scratch.files().contains(&"three/comparison.csv".to_owned()));
}

#[test]
fn a_wrong_scenario_exits_with_2_and_leaves_nothing() {
    let scratch = Scratch::new("wrong");
    scratch.scenario("wrong.toml", &SMALL.replace("hosts = 4", "host = 4"));
    let output = scratch.roci(&["run", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.starts_with("wrong.toml:4:1: unknown key `host`"), "{message}");
    assert!(message.contains("did you mean `hosts`?"), "{message}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(scratch.files(), ["wrong.toml"]);
}

#[test]
fn a_negative_seed_is_refused_with_the_seeds_that_there_are() {
    let scratch = Scratch::new("negative");
    scratch.scenario("small.toml", SMALL);
    for (option, value) in [("--seed", "-5"), ("--seeds", "-5"), ("--seeds", "-1..3")] {
        let output = scratch.roci(&["run", "small.toml", option, value]);
        assert_eq!(output.status.code(), Some(2), "{option} {value}");
        let message = text(&output.stderr);
        assert!(message.contains(value) && !message.contains("-- -"), "{message}");
        assert!(message.contains("0..=9223372036854775807") || message.contains("0 to 2^63-1"), "{message}");
    }
}

#[test]
fn one_wrong_scenario_of_several_stops_all_of_them() {
    let scratch = Scratch::new("one-wrong");
    scratch.scenario("small.toml", SMALL);
    scratch.scenario("wrong.toml", "nonsense");
    assert_eq!(scratch.roci(&["run", "small.toml", "wrong.toml"]).status.code(), Some(2));
    assert_eq!(scratch.files(), ["small.toml", "wrong.toml"]);
}

#[test]
fn a_wrong_override_is_named() {
    let scratch = Scratch::new("override");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&["run", "small.toml", "--set", "switch.buffer=-1MB"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--set switch.buffer=-1MB: "), "{}", text(&output.stderr));
    assert_eq!(scratch.roci(&["run", "small.toml", "--set", "switch.buffer"]).status.code(), Some(2));
}

#[test]
fn several_values_in_a_run_are_referred_to_sweep() {
    let scratch = Scratch::new("several-values");
    scratch.scenario("small.toml", SMALL);
    let told = |set: &str| text(&scratch.roci(&["run", "small.toml", "--set", set]).stderr);
    for set in ["switch.ecn.kmin=50KB,100KB", "traffic.0.size=1..3"] {
        assert!(told(set).ends_with("; `roci sweep` runs with each of several values\n"), "{}", told(set));
    }
    assert!(!told("switch.ecn.kmin=50XB").contains("sweep"));
}

#[test]
fn a_folder_that_cannot_be_written_is_found_before_the_run() {
    let scratch = Scratch::new("unwritable");
    // It would run for hours: that it answers at once shows the order.
    scratch.scenario(
        "long.toml",
        &format!("stop = \"1000s\"\n{SMALL}").replace("\"permutation\"\nsize", ENDLESS),
    );
    scratch.scenario("file", "");
    let output = scratch.roci(&["run", "long.toml", "--out", "file/below"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("cannot write") && message.contains("--out"), "{message}");
    assert_eq!(scratch.files(), ["file", "long.toml"]);
}

/// What makes of the permutation a loop without an end.
const ENDLESS: &str = "\"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nmessage";

#[test]
fn what_is_not_ours_is_never_replaced() {
    let scratch = Scratch::new("foreign");
    scratch.scenario("small.toml", SMALL);
    fs::create_dir(scratch.0.join("thesis")).unwrap();
    scratch.scenario("thesis/chapter.tex", "years of work");
    let output = scratch.roci(&["run", "small.toml", "--out", "thesis"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(scratch.files(), ["small.toml", "thesis/chapter.tex"]);
}

#[test]
fn a_run_that_stalls_exits_with_1_and_writes_nothing() {
    let scratch = Scratch::new("stall");
    scratch
        .scenario("stall.toml", &format!("{SMALL}\n[transport]\ntimeout = \"0s\"\n[faults]\nloss = 0.5\n"));
    let output = scratch.roci(&["run", "stall.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("stalled at"), "{}", text(&output.stderr));
    let quiet = scratch.roci(&["run", "stall.toml", "-q"]);
    assert_eq!((quiet.status.code(), quiet.stdout.len()), (Some(1), 0));
    assert_eq!(quiet.stderr, output.stderr, "an error is printed however quiet");
    assert_eq!(scratch.files(), ["stall.toml"]);
}

/// Five switches in a ring, whose flows fill the buffers until each waits for the next.
fn ring() -> String {
    let link =
        |a: String, b: String| format!("{{ a = \"{a}\", b = \"{b}\", rate = \"10Gb/s\", delay = \"1us\" }}");
    let around = (0..5).map(|n| link(format!("s{n}"), format!("s{}", (n + 1) % 5)));
    let down = (0..10).map(|n| link(format!("h{n}"), format!("s{}", n / 2)));
    let links: Vec<String> = around.chain(down).collect();
    let flow = |n| format!("{{ src = \"h{n}\", dst = \"h{}\", size = \"10MB\" }}", (n + 4) % 10);
    let flows: Vec<String> = (0..10).map(flow).collect();
    let names = |letter: &str, count| (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    format!(
        "[topology]\nkind = \"graph\"\nhosts = {:?}\nswitches = {:?}\nlinks = [{}]\n[switch]\nbuffer = \"200KB\"\n\
         ecn = false\n[transport]\ncontrol = {{ law = \"none\" }}\n[[traffic]]\nkind = \"flows\"\nflows = [{}]\n\
         [measure]\nsample = \"10us\"\npcap = [\"s0\"]\n",
        names("h", 10),
        names("s", 5),
        links.join(","),
        flows.join(",")
    )
}

#[test]
fn a_deadlock_exits_with_1_and_leaves_what_led_to_it() {
    let scratch = Scratch::new("deadlock");
    scratch.scenario("ring.toml", &ring());
    let output = scratch.roci(&["run", "ring.toml", "--quiet"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let message = text(&output.stderr);
    assert!(message.starts_with("ring: deadlock at 0."), "{message}");
    assert_eq!(message.matches(" may not send to s").count(), 5, "{message}");
    let summary = scratch.summary("out/ring/summary.json");
    assert_eq!(summary["deadlock"]["cycle"].as_array().map(Vec::len), Some(5));
    assert_eq!(summary["deadlock"]["at_s"], summary["simulated_s"]);
    assert!(text(&scratch.read("out/ring/report.html")).contains("stood still in a deadlock"));
    let names = ["capture.pcapng", "flows.csv", "report.html", "series.parquet", "summary.json"];
    let mut expected = names.map(|name| format!("out/ring/{name}")).to_vec();
    expected.push("ring.toml".to_owned());
    assert_eq!(scratch.files(), expected);
    let output =
        scratch.roci(&["sweep", "ring.toml", "--set", "switch.pfc=true,false", "--set", "stop=\"2ms\""]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("1 of 2 runs failed, 1 in a deadlock, the first: switch.pfc=true"), "{message}");
    assert!(
        text(&scratch.read("out/ring-sweep/comparison.csv"))
            .lines()
            .next()
            .unwrap()
            .ends_with(",deadlocks,timeouts")
    );
}

#[test]
fn flows_that_fail_exit_with_1_after_the_results_are_written() {
    let scratch = Scratch::new("failed");
    let lossy = format!("{SMALL}\n[transport]\nretry = 0\n[faults]\nloss = 0.9\n");
    scratch.scenario("lossy.toml", &lossy);
    let output = scratch.roci(&["run", "lossy.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert_eq!(
        text(&output.stderr),
        "lossy: 4 of 4 flows failed, the first: 0.0, Transport Retry Counter Exceeded\n"
    );
    assert!(text(&output.stdout).contains(" packets dropped, 0 corrupted"), "{}", text(&output.stdout));
    let quiet = scratch.roci(&["run", "lossy.toml", "-q"]);
    assert_eq!((quiet.status.code(), quiet.stdout.len()), (Some(1), 0));
    assert_eq!(quiet.stderr, output.stderr, "an error is printed however quiet");
    let summary = scratch.summary("out/lossy/summary.json");
    assert!(summary["faults"]["dropped"].as_u64().unwrap() > 0);
    let output = scratch.roci(&["sweep", "lossy.toml", "--set", "faults.loss=0,0.9"]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.starts_with("lossy-sweep: flows failed in 1 of 2 runs, the first: faults.loss=0.9: "),
        "{message}"
    );
    let printed = text(&output.stdout);
    assert!(printed.contains("4 of 4 ") && printed.contains("0 of 4, 4 failed"), "{printed}");
}

#[test]
fn each_run_of_a_sweep_that_failed_is_named_with_its_values_and_its_timeouts_are_counted() {
    let scratch = Scratch::new("each-failed");
    scratch.scenario("lossy.toml", &format!("{SMALL}\n[transport]\nretry = 0\n"));
    let output = scratch.roci(&["sweep", "lossy.toml", "--set", "faults.loss=0.8,0,0.9,0.95"]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3, "{message}");
    assert!(
        lines[0].starts_with("lossy-sweep: flows failed in 3 of 4 runs, the first: faults.loss=0.8: "),
        "{message}"
    );
    assert!(lines[1].starts_with("  faults.loss=0.9: 4 of 4 flows failed, the first: 0.0, "), "{message}");
    assert!(lines[2].starts_with("  faults.loss=0.95: 4 of 4 flows failed"), "{message}");
    assert!(text(&output.stdout).contains("  timeouts\n"), "{}", text(&output.stdout));
    let csv = text(&scratch.read("out/lossy-sweep/comparison.csv"));
    let timeouts = |line: &str| line.rsplit(',').next().unwrap().parse::<u64>().unwrap();
    let counts: Vec<u64> = csv.lines().skip(1).map(timeouts).collect();
    assert_eq!((counts.len(), counts[1]), (4, 0), "{csv}");
    assert!(counts[0] > 0 && counts[2] > 0 && counts[3] > 0, "{csv}");
    let output = scratch.roci(&["sweep", "lossy.toml", "--set", "seed=1,2"]);
    assert!(!text(&output.stdout).contains("timeouts"), "a column of zeros says nothing");
}

#[test]
fn json_is_all_that_is_printed_and_quiet_prints_nothing() {
    let scratch = Scratch::new("json");
    scratch.scenario("small.toml", SMALL);
    let one: serde_json::Value =
        serde_json::from_slice(&scratch.roci(&["run", "small.toml", "--json"]).stdout).unwrap();
    assert_eq!(one["flows"].as_array().unwrap().len(), 4);
    let two = scratch.roci(&["run", "small.toml", "--json", "--seeds", "4,5"]).stdout;
    let two: serde_json::Value = serde_json::from_slice(&two).unwrap();
    assert_eq!((&two[0]["seed"], &two[1]["seed"]), (&4.into(), &5.into()));
    let quiet = scratch.roci(&["run", "small.toml", "--quiet"]);
    assert_eq!((quiet.status.code(), quiet.stdout.len(), quiet.stderr.len()), (Some(0), 0, 0));
}

#[test]
fn a_register_that_is_to_be_written_when_all_is_over_is_told() {
    let scratch = Scratch::new("late-write");
    let at = |time: &str| {
        format!("{SMALL}\n[[at]]\ntime = \"{time}\"\nset = {{ \"transport.control.g\" = \"1/16\" }}\n")
    };
    scratch.scenario("late.toml", &at("1s"));
    scratch.scenario("early.toml", &at("10us"));
    let late = scratch.roci(&["run", "late.toml"]);
    let told =
        "warning: nobody took what `[[at]]` writes to `transport.control.g` at 1s: the run was over after ";
    assert_eq!(text(&late.stdout).matches(told).count(), 1, "{}", text(&late.stdout));
    assert_eq!(text(&late.stderr), "");
    assert_eq!(text(&scratch.roci(&["run", "early.toml"]).stderr), "");
    let stopped = text(&scratch.roci(&["run", "late.toml", "--set", "stop=1ms"]).stderr);
    assert_eq!(
        stopped,
        "late: line 17: what `[[at]]` writes at 1s has no effect, for the run stops at 1ms\n"
    );
}

#[test]
fn samples_that_lie_farther_apart_than_asked_for_are_told() {
    let scratch = Scratch::new("sample");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&["run", "small.toml", "--set", "measure.sample=1ps"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stderr);
    assert!(told.starts_with("small: samples are ") && told.contains(" apart and not 1ps: "), "{told}");
    assert_eq!(scratch.roci(&["run", "small.toml", "--set", "measure.sample=1ps", "-q"]).stderr, b"");
}

/// A file of this repository.
fn ours(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).to_string_lossy().into_owned()
}

#[test]
fn a_program_is_checked_and_a_bad_one_exits_with_1() {
    let scratch = Scratch::new("program-check");
    let good = ours("firmware/dcqcn.elf");
    let bad = ours("crates/lab/tests/programs/recursion.elf");
    let output = scratch.roci(&["program", "check", &good, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recv = &report[0]["sides"][0];
    assert_eq!((&recv["function"], &report[0]["context_octets"]), (&"recv".into(), &28.into()));
    assert!(recv["event_cycles_max"]["CNP"].as_u64() <= recv["cycles_max"].as_u64());
    // Each packet takes the longest event, behind the two cycles of its context.
    let cycles = recv["cycles_max"].as_f64().unwrap() + 2.0;
    for (at, (payload, wire)) in [(1024.0, 1106.0), (4096.0, 4178.0)].into_iter().enumerate() {
        let rate = |name: &str| report[0]["rates_at_worst"][at][name].as_f64().unwrap();
        assert_eq!((rate("payload_bytes"), rate("wire_bytes")), (payload, wire));
        assert!((rate("link_bps") / (250e6 / cycles * 8.0 * wire) - 1.0).abs() < 1e-9);
        assert!((rate("goodput_bps") / (250e6 / cycles * 8.0 * payload) - 1.0).abs() < 1e-9);
    }
    let output = scratch.roci(&["program", "check", &good, &bad]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("ByteCounter") && text(&output.stderr).contains("recursion.c:"));
    assert!(text(&output.stderr).contains("\n  what to do: what it has yet to do can stand in variables"));
    let output = scratch.roci(&["program", "check", &bad, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report[0]["refused"].as_str().unwrap().ends_with("; called by recv() at recursion.c:14"));
    assert!(report[0]["what_to_do"].as_str().unwrap().contains("QPContext"));
    let output = scratch.roci(&["program", "check", &good, &bad]);
    assert!(text(&output.stdout).contains("if each packet takes its longest event (recv "));
    let output = scratch.roci(&["program", "check", "nowhere.elf"]);
    assert_eq!(output.status.code(), Some(2));
    let output = scratch.roci(&["program", "check", &bad, "nowhere.elf", &good]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("recursion.c:") && told.contains("nowhere.elf: "), "{told}");
    assert!(text(&output.stdout).contains("dcqcn.elf: "), "the last is checked as well");
}

#[test]
fn an_answer_that_is_never_set_is_warned_of() {
    let scratch = Scratch::new("program-unset");
    let unset = ours("crates/lab/tests/programs/unset.elf");
    let output = scratch.roci(&["program", "check", &unset]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("unset.c:19): eventType is not set before postEvent, for ACK"));
    let output = scratch.roci(&["program", "check", &unset, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report[0]["warnings"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_image_that_is_cut_off_is_refused_by_a_run_as_by_the_check() {
    let scratch = Scratch::new("program-cut-off");
    let whole = fs::read(ours("firmware/dcqcn.elf")).unwrap();
    fs::write(scratch.0.join("cut.elf"), &whole[..whole.len() / 2]).unwrap();
    let text_of = "[transport]\ncontrol = { law = \"program\", elf = \"cut.elf\" }\n";
    scratch.scenario("cut.toml", &(SMALL.to_owned() + text_of));
    let reason = format!("it is cut off at octet {}: ", whole.len() / 2);
    for arguments in [&["program", "check", "cut.elf"][..], &["run", "cut.toml"]] {
        let output = scratch.roci(arguments);
        assert!(text(&output.stderr).contains(&reason), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn constants_that_no_register_holds_are_warned_of_by_the_users_lines() {
    let scratch = Scratch::new("program-constants");
    let calls = "setRate(5000000000);\n    armTimer(0, 1000000000);\n    updateContext(e.context.rate, 5000000 * 1000);\n    \
                 armPeriods(5, 1000);\n    setPriority(9);";
    fs::write(
        scratch.0.join("big.c"),
        format!(
            "#define TracedPkts ACK\ntypedef struct {{ int qpn, opcode, pktLength, ecn; }} PktHeader;\n\
             typedef struct {{ uint32_t rate; }} QPContext;\nint recv() {{\n  Event e;\n  while (true) {{\n    pollEventSync(&e);\n    \
             {calls}\n    e.eventType = Done;\n    postEvent(&e);\n  }}\n}}\n"
        ),
    )
    .unwrap();
    let output = scratch.roci(&["program", "build", "big.c"]);
    if text(&output.stderr).contains("no cross compiler for RISC-V was found") {
        return assert_eq!(output.status.code(), Some(2));
    }
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    for line in 8..=12 {
        assert_eq!(told.matches(&format!("big.c:{line}:")).count(), 1, "line {line}: {told}");
    }
    assert!(told.contains("'5000000000' to '705032704'") && !told.contains("program.h"), "{told}");
}

#[test]
fn a_profile_tells_rates_and_needs_what_the_program_begins_with() {
    let scratch = Scratch::new("program-profile");
    let credit = ours("firmware/credit.elf");
    let profile = |more: &[&str]| {
        let arguments = ["program", "profile", &credit, "--packets", "1000", "--json"];
        let output = scratch.roci(&[&arguments[..], more].concat());
        (output.status.code(), serde_json::from_slice::<serde_json::Value>(&output.stdout))
    };
    let (code, report) = profile(&["--context", "total_credit=64MiB"]);
    let report = report.unwrap();
    assert_eq!((code, &report["packets_sent"]), (Some(0), &1000.into()));
    let (_, half) = profile(&["--context", "total_credit=64MiB", "--clock", "125MHz"]);
    let rate = |report: &serde_json::Value| report["rates"][4]["packets_per_s"].as_f64().unwrap();
    assert!((rate(&report) / rate(&half.unwrap()) - 2.0).abs() < 1e-9);
    let (_, without) = profile(&[]);
    let without = without.unwrap();
    assert_eq!(without["packets_sent"], 0, "without credit nothing goes");
    assert_eq!(without["rates"], serde_json::json!([]), "and there are no rates");
    let output = scratch.roci(&["program", "profile", &credit, "--packets", "1000"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("no packet was sent") && !table.contains("inf"), "{table}");
    assert_eq!(profile(&["--context", "credit=1"]).0, Some(2));
}

#[test]
fn a_program_that_takes_long_is_profiled_where_that_is_allowed() {
    let scratch = Scratch::new("program-long");
    let dcqcn = ours("firmware/dcqcn.elf");
    for kind in [&[][..], &["--anything"]] {
        let profile = |cycles: &str| {
            let arguments = ["program", "profile", &dcqcn, "--packets", "100", "--cycles", cycles];
            scratch.roci(&[&arguments[..], kind].concat())
        };
        let refused = profile("20");
        assert_eq!(refused.status.code(), Some(1));
        let told = text(&refused.stderr);
        assert!(told.contains("20 cycles") && told.contains("--cycles"), "{told}");
        assert_eq!(profile("20000").status.code(), Some(0));
    }
}

#[test]
fn whatever_happens_is_held_against_what_was_proved() {
    let scratch = Scratch::new("program-anything");
    let dcqcn = ours("firmware/dcqcn.elf");
    let output = scratch.roci(&["program", "profile", &dcqcn, "--anything", "--packets", "1000", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bounds = report["bounds"].as_array().unwrap();
    assert_eq!(bounds.iter().filter(|bound| bound["event"] == "any").count(), 2, "recv and send");
    assert!(bounds.iter().all(|bound| bound["cycles_max"].as_u64() <= bound["cycles_proved"].as_u64()));
}

#[test]
fn cycles_are_those_of_the_nic_that_is_named() {
    let scratch = Scratch::new("program-nic");
    let dcqcn = ours("firmware/dcqcn.elf");
    let most = |more: &[&str]| {
        let output = scratch.roci(&[&["program", "check", &dcqcn, "--json"], more].concat());
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (report[0]["nic"].as_str().unwrap().to_owned(), report[0]["sides"][0]["cycles_max"].as_u64().unwrap())
    };
    let (swcc, bare, slow) = (most(&[]), most(&["--nic", "riscv-mini"]), most(&["--nic", "bluefield3"]));
    assert_eq!([&swcc.0, &bare.0, &slow.0], ["swcc", "riscv-mini", "bluefield3"]);
    assert!(swcc.1 < bare.1 && bare.1 < slow.1, "{swcc:?} {bare:?} {slow:?}");
    // A NIC of one's own, whose cores load more slowly and say nothing else.
    fs::write(scratch.0.join("mine.toml"), "base = \"swcc\"\n[cores]\ncosts = { load = 9 }\n").unwrap();
    let mine = most(&["--nic", "mine.toml"]);
    assert!(mine.0 == "mine.toml" && mine.1 > swcc.1, "{mine:?} {swcc:?}");
    fs::write(scratch.0.join("mine.toml"), "base = \"swcc\"\n[cores]\ncosts = { load = 0 }\n").unwrap();
    let output = scratch.roci(&["program", "check", &dcqcn, "--nic", "mine.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("mine.toml:3: `cores.costs.load = 0`"), "{}", text(&output.stderr));
    let output = scratch.roci(&["nic", "show", "swcc", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let values = report["values"].as_array().unwrap();
    let cost = |key: &str| values.iter().find(|value| value["key"] == key).expect("it is listed");
    assert_eq!(cost("cores.costs.load")["value"], "2");
    assert!(cost("cores.costs.load")["from"].as_str().unwrap().contains("riscv-mini"));
    assert!(cost("cores.costs.divide")["from"].as_str().unwrap().starts_with("our choice"));
    let output = scratch.roci(&["program", "profile", &dcqcn, "--nic", "cx6"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("swcc, swcc-naive"), "{}", text(&output.stderr));
}

#[test]
fn a_run_tells_of_programs_that_failed_and_leaves_their_events() {
    let scratch = Scratch::new("program-failed");
    let control = "[transport]\ncontrol = { law = \"program\", elf = \"firmware/credit.elf\", record = 500, context = { total_credit = \"8KiB\" } }\n";
    scratch.scenario("fine.toml", &format!("{SMALL}{control}[nic]\nmodel = \"swcc\"\n"));
    scratch.scenario(
        "stuck.toml",
        &format!("{SMALL}{control}[nic]\nmodel = \"swcc\"\n").replace("8KiB", "100B"),
    );
    let output = scratch.roci(&["run", "fine.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains("failed"), "{}", text(&output.stdout));
    assert!(scratch.files().contains(&"out/fine/events.txt".to_owned()), "{:?}", scratch.files());
    let credit = ours("firmware/credit.elf");
    let profile = ["program", "profile", &credit, "--context", "total_credit=8KiB", "--json", "--events"];
    let output = scratch.roci(&[&profile[..], &["out/fine/events.txt"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = report["events"].as_array().unwrap();
    let told = |name| {
        events.iter().find(|kind| kind["event"] == name).map_or(0, |kind| kind["events"].as_u64().unwrap())
    };
    assert_eq!(report["packets_sent"], told("Transmit"), "{report}");
    assert_eq!(report["packets_offered"], told("Transmit") + told("LoopBack"), "{report}");
    // Of what another program hears nothing may have been recorded.
    let swift = ours("firmware/swift.elf");
    let output = scratch.roci(&["program", "profile", &swift, "--events", "out/fine/events.txt"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let dcqcn = ours("firmware/dcqcn.elf");
    let output = scratch.roci(&["program", "profile", &dcqcn, "--events", "out/fine/events.txt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it hears CNP,CE,ByteCounter"), "{}", text(&output.stderr));
    let output = scratch.roci(&[&profile[..], &["fine.toml"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("line 1"), "{}", text(&output.stderr));
    // All flows are done, by the fallback law.
    let output = scratch.roci(&["run", "stuck.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("firmware/credit.elf failed with 4 flows (4 queue pairs)"), "{printed}");
    assert!(printed.contains("4 let nothing go any more") && printed.contains("h0, flow 0"), "{printed}");
    assert!(printed.contains(" LoopBacks in a row, for 100"), "{printed}");
    let failures = &scratch.summary("out/stuck/summary.json")["programs"][0]["failures"];
    assert_eq!((failures.as_array().map(Vec::len), &failures[3]["function"]), (Some(4), &"send".into()));
}

#[test]
fn a_failure_has_the_name_of_the_program_that_failed_and_not_of_the_one_that_came_later() {
    let scratch = Scratch::new("program-replaced");
    let faulty = ours("crates/control/tests/images/faults.elf");
    // A packet of seven octets is the end of the program, and the last one of a flow that ends before the replacement.
    scratch.scenario(
        "replaced.toml",
        &format!(
            r#"name = "replaced"
[topology]
kind = "star"
hosts = 2
rate = "10Gb/s"
delay = "1us"
[nic]
mtu = 1024
[transport]
control = {{ law = "program", elf = "{faulty}", check = false }}
[[traffic]]
kind = "flows"
flows = [
  {{ src = "h0", dst = "h1", op = "write", size = "1031B" }},
  {{ src = "h1", dst = "h0", op = "write", size = "1MB" }},
]
[[at]]
time = "200us"
set = {{ "transport.control.elf" = "firmware/swift.elf" }}
"#
        ),
    );
    let output = scratch.roci(&["run", "replaced.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains(&format!("{faulty} failed with 1 queue pair")), "{printed}");
    assert!(printed.contains("h1, flow 0.0: recv at ") && !printed.contains("swift.elf failed"), "{printed}");
    let program = &scratch.summary("out/replaced/summary.json")["programs"][0];
    assert_eq!((&program["elf"], &program["replaced"]), (&"firmware/swift.elf".into(), &1.into()));
    assert_eq!(program["failures"][0]["elf"], faulty);
    let first = program["first_failure"].as_str().unwrap();
    assert!(first.starts_with(&format!("{faulty}: recv at ")) && first.contains("faults.c:"), "{first}");
}

#[test]
fn a_new_program_is_written_once() {
    let scratch = Scratch::new("program-new");
    let output = scratch.roci(&["program", "new", "my-law"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(scratch.files(), ["my-law/my-law.c", "my-law/my-law.toml"]);
    assert!(text(&scratch.read("my-law/my-law.toml")).contains("elf = \"my-law.elf\""));
    fs::write(scratch.0.join("my-law/my-law.c"), "mine").unwrap();
    let again = scratch.roci(&["program", "new", "my-law"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(
        text(&again.stderr),
        "./my-law/my-law.c exists already, and nothing was written: choose another name, or remove ./my-law\n"
    );
    assert_eq!(scratch.read("my-law/my-law.c"), b"mine");
    assert_eq!(scratch.roci(&["program", "new", "../up"]).status.code(), Some(2));
}

#[test]
fn every_command_has_help_with_examples() {
    let scratch = Scratch::new("help");
    for command in ["run", "sweep", "compare", "reproduce", "program"] {
        let output = scratch.roci(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(&format!("Examples:\n  roci {command} ")), "{command}");
    }
    let whole = scratch.roci(&["--help"]);
    assert_eq!(whole.status.code(), Some(0));
    assert_eq!(text(&scratch.roci(&["help"]).stdout), text(&whole.stdout));
    assert_eq!(scratch.roci(&["help", "--help"]).status.code(), Some(0));
    assert_eq!(text(&scratch.roci(&["help", "run"]).stdout), text(&scratch.roci(&["run", "-h"]).stdout));
    assert_eq!(scratch.roci(&["help", "rnu"]).status.code(), Some(2));
    assert_eq!(scratch.roci(&["rnu"]).status.code(), Some(2));
    assert_eq!(scratch.roci(&["run"]).status.code(), Some(2));
    assert_eq!(scratch.roci(&["run", "x.toml", "--seed", "1", "--seeds", "1..2"]).status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_says_so_and_writes_nothing() {
    let scratch = Scratch::new("interrupt");
    scratch.scenario(
        "long.toml",
        &format!("stop = \"1000s\"\n{SMALL}").replace("\"permutation\"\nsize", ENDLESS),
    );
    let child = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(["run", "long.toml", "--out", "n1/deep/er"])
        .current_dir(&scratch.0)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its draft shows that it listens: it is made before, and the handler set at once after.
    let drafted = || {
        let beside = fs::read_dir(scratch.0.join("n1/deep"));
        beside.is_ok_and(|mut entries| {
            entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".er"))
        })
    };
    for _ in 0..500 {
        if drafted() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "interrupted; nothing was written\n");
    assert_eq!(scratch.files(), ["long.toml"]);
}
