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
            "out/small/links.csv",
            "out/small/report.html",
            "out/small/series.parquet",
            "out/small/summary.json",
            "small.toml"
        ]
    );
}

#[test]
fn the_time_series_is_text_too_where_that_is_asked_for() {
    let scratch = Scratch::new("series-csv");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&[
        "run",
        "small.toml",
        "--set",
        "measure.series_csv=true",
        "--set",
        "measure.sample=5us",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = text(&scratch.read("out/small/series.csv"));
    assert!(csv.starts_with("t_ps,kind,name,metric,value\n5000000,flow,0.0,throughput,"), "{csv}");
    // What was there is replaced, and not left beside the new results.
    assert_eq!(scratch.roci(&["run", "small.toml"]).status.code(), Some(0));
    assert!(!scratch.files().contains(&"out/small/series.csv".to_owned()));
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

#[test]
fn a_run_of_a_sweep_that_cannot_be_leaves_the_results_of_the_others() {
    let scratch = Scratch::new("impossible");
    let ring = SMALL.split("[[traffic]]").next().unwrap().to_owned()
        + "[[traffic]]\nkind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"ring\"\nchunks = 100\nsize = \"1MB\"\n";
    scratch.scenario("ring.toml", &ring);
    let output = scratch.roci(&["sweep", "ring.toml", "--set", "traffic.0.size=1MB,80GB", "--out", "o"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("1 of 2 runs failed, the first: traffic.0.size=80GB: traffic 0: a channel's data"),
        "{said}"
    );
    let files = scratch.files();
    assert!(
        files.contains(&"o/summary.json".to_owned()) && !files.iter().any(|file| file.contains("80GB")),
        "{files:?}"
    );
}

#[test]
fn runs_of_a_sweep_that_stall_leave_the_results_of_the_others() {
    let scratch = Scratch::new("stalls");
    scratch.scenario("stall.toml", &format!("{SMALL}\n[faults]\nloss = 0.5\n"));
    let timeouts = "transport.timeout=100us,0s,200us";
    let output =
        scratch.roci(&["sweep", "stall.toml", "--set", timeouts, "--set", "transport.retry=7", "--out", "o"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 of 3 runs failed, the first: transport.timeout=0s: stalled at"), "{said}");
    let files = scratch.files();
    assert!(files.iter().any(|file| file == "o/comparison.csv"), "{files:?}");
    let of = |value: &str| files.iter().filter(|file| file.contains(value)).count();
    assert!(of("timeout=100us/") > 0 && of("timeout=200us/") > 0 && of("timeout=0s") == 0, "{files:?}");
    let table = fs::read_to_string(scratch.0.join("o/comparison.csv")).unwrap();
    assert!(table.contains("100us") && table.contains("200us") && !table.contains("timeout=0s"), "{table}");
    // Of one that is left the results lie where those of a single run do, and JSON is an array as for both.
    let one = ["sweep", "stall.toml", "--set", "transport.timeout=0s,200us", "--out", "one", "--json"];
    let output = scratch.roci(&one);
    assert_eq!(output.status.code(), Some(1));
    let runs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(runs.as_array().map(Vec::len), Some(1));
    let files: Vec<_> = scratch.files().into_iter().filter(|file| file.starts_with("one/")).collect();
    let names = ["flows.csv", "links.csv", "report.html", "series.parquet", "summary.json"];
    assert_eq!(files, names.map(|name| format!("one/{name}")));
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_told_of_and_exits_with_1() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_roci"));
    let output = command.args(["nic", "list"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to the standard output"), "{}", text(&output.stderr));
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
    let names = ["capture.pcapng", "flows.csv", "links.csv", "report.html", "series.parquet", "summary.json"];
    let mut expected = names.map(|name| format!("out/ring/{name}")).to_vec();
    expected.push("ring.toml".to_owned());
    assert_eq!(scratch.files(), expected);
    let output =
        scratch.roci(&["sweep", "ring.toml", "--set", "switch.pfc=true,false", "--set", "stop=\"2ms\""]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("1 of 2 runs failed, 1 in a deadlock, the first: switch.pfc=true"), "{message}");
    let heading = ",deadlocks,timeouts,queue_mean_bytes,queue_p99_bytes,reordered,imbalance,stop,switch.pfc,configuration,";
    let csv = text(&scratch.read("out/ring-sweep/comparison.csv"));
    assert!(csv.lines().next().unwrap().contains(heading), "{csv}");
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
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "timeouts").unwrap();
    let timeouts = |line: &str| line.split(',').nth(column).unwrap().parse::<u64>().unwrap();
    let counts: Vec<u64> = csv.lines().skip(1).map(timeouts).collect();
    assert_eq!((counts.len(), counts[1]), (4, 0), "{csv}");
    assert!(counts[0] > 0 && counts[2] > 0 && counts[3] > 0, "{csv}");
    let column = |name: &str| {
        let place = csv.lines().next().unwrap().split(',').position(|other| other == name).unwrap();
        csv.lines()
            .skip(1)
            .map(|line| line.split(',').nth(place).unwrap().parse().unwrap())
            .collect::<Vec<f64>>()
    };
    assert!(column("drops").iter().all(|drops| *drops == 0.0), "switches had room");
    let lost: Vec<bool> = column("lost").iter().map(|lost| *lost > 0.0).collect();
    assert_eq!(lost, [true, false, true, true], "{csv}");
    assert!(text(&output.stdout).lines().any(|line| line.contains("drops") && line.contains("lost")));
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
    let told = "warning: nobody took what `[[at]]` writes to `transport.control.g` at 1s: the run was over after 191.9 us";
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

#[test]
fn every_command_has_help_with_examples() {
    let scratch = Scratch::new("help");
    for command in ["run", "sweep", "compare", "tune", "import", "reproduce", "program"] {
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

/// Help is wrapped at a hundred columns, and half a command is another one.
#[test]
fn examples_in_help_stand_on_lines_of_their_own() {
    let scratch = Scratch::new("examples");
    let commands = "run|sweep|compare|tune|import|reproduce|nic|nic memory|program|perf|ping|switch|dash|ctl|ctl get|ctl set|ctl watch|ctl hops|ctl counters";
    for command in commands.split('|') {
        let asked: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = scratch.roci(&asked).stdout;
        let help = text(&help);
        let examples =
            help.split_once("Example").unwrap().1.lines().skip(1).take_while(|line| !line.is_empty());
        let mut goes_on = false;
        for line in examples {
            let begins = line.starts_with("  roci ") || line.starts_with("  ROCI_CONTROL=");
            assert_eq!(begins, !goes_on, "{command}: {line}");
            goes_on = line.ends_with(" \\");
        }
        assert!(!goes_on, "{command}");
    }
}

#[test]
fn a_wrong_list_of_a_sweep_is_refused_with_its_key() {
    let scratch = Scratch::new("lists");
    for (given, told) in [
        ("nic.mtu=", "--set nic.mtu=: it has an empty value; "),
        ("nic.mtu=1024,,4096", "--set nic.mtu=1024,,4096: it has an empty value; "),
        ("traffic.0.senders=8..1", "--set traffic.0.senders=8..1: this range runs backwards; "),
    ] {
        let output = scratch.roci(&["sweep", "x.toml", "--set", given]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with(told), "{}", text(&output.stderr));
    }
}

#[test]
fn an_imported_scenario_is_written_over_nothing() {
    let scratch = Scratch::new("import");
    scratch.scenario("topology.txt", "3 1 2\n2\n0 2 10Gbps 1us 0\n1 2 10Gbps 1us 0\n");
    scratch.scenario("flow.txt", "1\n0 1 3 100 10000 0\n");
    scratch.scenario("config.txt", "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nLB_MODE 9\n");
    let output = scratch.roci(&["import", "config.txt"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("Not read: LB_MODE (line 3)"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("roci run config.toml"), "{}", text(&output.stdout));
    let again = scratch.roci(&["import", "config.txt"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("config.toml exists already"), "{}", text(&again.stderr));
    scratch.scenario("config.txt", "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nBUFFER_SIZE 0\n");
    let refused = scratch.roci(&["import", "config.txt", "--out", "other.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!scratch.files().contains(&"other.toml".to_owned()), "{}", text(&refused.stderr));
}
