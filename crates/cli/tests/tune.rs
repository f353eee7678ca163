//! Searching settings, as a user meets it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scratch;

use scratch::{SMALL, Scratch, text};
use serde_json::Value;

#[test]
fn settings_are_found_and_held_against_the_scenario_as_it_is_on_other_seeds() {
    let scratch = Scratch::new("tune");
    scratch.scenario("far.toml", &SMALL.replace("delay = \"1us\"", "delay = \"50us\""));
    let vary = [
        "tune",
        "far.toml",
        "--vary",
        "topology.delay=1us..100us",
        "--aim",
        "completion-mean",
        "--draws",
        "8",
    ];
    let output = scratch.roci(&vary);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let (_, verdict) = printed.split_once("\nThe best by completion-mean: --set topology.delay=").unwrap();
    let (delay, rest) = verdict.split_once("us\n").unwrap();
    assert!(delay.parse::<f64>().unwrap() < 3.0, "{verdict}");
    assert!(
        rest.contains(
            "as it is, over seeds 1 to 5, which the search had not seen.\nSeed by seed the difference is -"
        ),
        "{rest}"
    );
    let tried = text(&scratch.read("out/far-tune/tried.csv"));
    assert!(tried.starts_with("topology.delay,seeds,over_limits,completion-mean\n"), "{tried}");
    assert!((11..=13).contains(&tried.lines().count()), "{tried}");
    let told = text(&output.stderr);
    assert!(told.starts_with("8 configurations on 1 seed: the best has topology.delay="), "{told}");
    // The same again, in the same folder.
    assert_eq!(scratch.roci(&vary).stderr, output.stderr);
    assert_eq!(text(&scratch.read("out/far-tune/tried.csv")), tried);
    // Where nothing keeps a limit, and where nothing is better.
    let bounded = |more: &[&str]| text(&scratch.roci(&[&vary[..], more].concat()).stdout);
    let none = bounded(&["--keep", "drops>=5", "--seeds", "3"]);
    assert!(none.contains("None that was left keeps `drops>=5` in every run"), "{none}");
    let near = bounded(&["--set", "topology.delay=1us", "--keep", "drops=0", "--quiet"]);
    assert_eq!(near, "");
    let near = bounded(&["--set", "topology.delay=100ns", "--keep", "drops=0"]);
    assert!(
        near.contains("Nothing better by completion-mean within `drops=0` than the scenario as it is: "),
        "{near}"
    );
}

#[test]
fn what_a_search_has_tried_is_written_where_nothing_came_of_the_comparison() {
    let scratch = Scratch::new("tune-tried");
    scratch.scenario("small.toml", SMALL);
    // Nobody repeats what is lost, and nothing comes to an end.
    let lossy = ["--set", "faults.loss=0.3", "--set", "transport.timeout=0s", "--vary", "nic.mtu=1024,4096"];
    let output = scratch.roci(&[&["tune", "small.toml"], &lossy[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(
        told.contains("all 2 that were tried are in ") && told.contains("15 of 15 runs failed"),
        "{told}"
    );
    let tried = text(&scratch.read("out/small-tune-interrupted/tried.csv"));
    assert!(tried.starts_with("nic.mtu,seeds,over_limits,slowdown-p99\n4096,1,1000000,\n"), "{tried}");
}

#[test]
#[cfg(unix)]
fn what_was_tried_before_an_interrupt_is_written() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};
    let scratch = Scratch::new("interrupted-tune");
    scratch.scenario("long.toml", &SMALL.replace("200KB", "20MB"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(["tune", "long.toml", "--vary", "topology.delay=1us..100us", "--draws", "16"])
        .current_dir(&scratch.0)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    assert!(
        told.read_line(&mut line).unwrap() > 0 && line.starts_with("16 configurations on 1 seed"),
        "{line}"
    );
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    told.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(line.ends_with("\ninterrupted while it searched\n"), "{line}");
    let tried = text(&scratch.read("out/long-tune-interrupted/tried.csv"));
    assert!(tried.lines().count() >= 17, "{tried}");
    assert!(!scratch.files().iter().any(|name| name.starts_with("out/long-tune/")), "{:?}", scratch.files());
}

#[test]
fn a_search_for_what_no_run_yields_ends_after_the_first_runs_and_says_so() {
    let scratch = Scratch::new("tune-valueless");
    scratch.scenario("endless.toml", &format!("stop = \"10us\"\n{SMALL}"));
    for arguments in [&["--aim", "slowdown-p99"][..], &["--aim", "drops", "--keep", "completion-mean<=1ms"]] {
        let search = ["tune", "endless.toml", "--vary", "nic.mtu=1024,4096"];
        let output = scratch.roci(&[&search[..], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        let metric = if arguments.len() > 2 { "completion-mean" } else { "slowdown-p99" };
        let told = format!("none of the first 2 runs yields `{metric}`");
        assert!(text(&output.stderr).contains(&told), "{}", text(&output.stderr));
    }
    assert_eq!(scratch.files(), ["endless.toml"]);
}

#[test]
fn a_verdict_says_what_was_not_tried_and_where_it_compares_what_is_not_alike() {
    let scratch = Scratch::new("tune-unlike");
    scratch.scenario("small.toml", SMALL);
    let tune = |arguments: &[&str]| {
        scratch.roci(&[&["tune", "small.toml", "--seeds", "1..2", "--draws", "4"], arguments].concat())
    };
    // A law without that key; and the verdict beside JSON.
    let laws =
        ["--vary", "transport.control.law=dcqcn,swift", "--vary", "transport.control.rai=1Mb/s..100Mb/s"];
    let output = tune(&[&laws[..], &["--json"]].concat());
    let told = text(&output.stderr);
    assert!(
        told.contains("\ntransport.control.law=swift was not tried, as it went with no other value: "),
        "{told}"
    );
    assert!(told.contains("\nAll ") && told.contains(" by slowdown-p99"), "{told}");
    assert!(text(&output.stdout).ends_with("]\n"), "{}", text(&output.stdout));
    // Other flows.
    let told = text(&tune(&["--vary", "traffic.0.size=1KB..2KB", "--aim", "completion-mean"]).stdout);
    assert!(told.contains("Its flows are not those of the scenario as it is"), "{told}");
    // Other ideal times.
    let told = text(&tune(&["--vary", "nic.mtu=256,4096", "--aim", "slowdown-mean"]).stdout);
    assert!(told.contains("The ideal times that slowdowns are over are not the same in both"), "{told}");
}

#[test]
fn a_search_that_makes_no_sense_is_refused_before_anything_runs() {
    let scratch = Scratch::new("tune-refused");
    scratch.scenario("small.toml", SMALL);
    for (arguments, told) in [
        (&["--vary", "nic.mtu"][..], "this sets nothing"),
        (&["--vary", "nic.mtu=1024"], "leaves nothing to choose"),
        (&["--vary", "nic.mtu=1024,4096", "--aim", "speed"], "--aim speed: there is no such metric"),
        (&["--vary", "nic.mtu=1024,4096", "--keep", "drops"], "--keep drops: this bounds nothing"),
        (
            &["--vary", "nic.mtu=1024,4096", "--aim", "x:goodput"],
            "there is no `[[traffic]]` table `x`; those that exist are `0`",
        ),
        (&["--vary", "seed=1..9"], "--vary seed: the search takes seeds of its own"),
        (
            &["--vary", "nic.mtu=256,512", "--vary", "nic.mtu=1024,4096"],
            "--vary nic.mtu: this key stands there twice",
        ),
        (&["--vary", "nic.mut=1024,4096"], "every configuration that was drawn was refused"),
    ] {
        let output = scratch.roci(&[&["tune", "small.toml"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains(told), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(scratch.files(), ["small.toml"]);
}

/// Two flows to one host, of which the first is done the sooner the less the second sends.
const SHARED: &str = r#"
stop = "1ms"
topology = { kind = "star", hosts = 3, rate = "10Gb/s", delay = "1us" }

[[traffic]]
kind = "flows"
flows = [
  { src = "h0", dst = "h2", size = "100KB" },
  { src = "h1", dst = "h2", size = "100KB", control = { law = "timely", first_rate = "1/2" } },
]
"#;

#[test]
fn what_starves_a_flow_is_not_the_best_for_it() {
    let scratch = Scratch::new("tune-starved");
    scratch.scenario("shared.toml", SHARED);
    let vary = "traffic.0.flows.1.control.first_rate=1/1000,1";
    let output =
        scratch.roci(&["tune", "shared.toml", "--aim", "slowdown-mean", "--seeds", "1..2", "--vary", vary]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let tried = text(&scratch.read("out/shared-tune/tried.csv"));
    let lines: Vec<&str> = tried.lines().collect();
    assert!(lines[1].starts_with("1,1,0,") && lines[2].starts_with("1/1000,1,0,"), "{tried}");
    // By flows that completed alone it would be.
    scratch.roci(&["run", "shared.toml", "--set", &vary.replace(",1", "")]);
    let told = scratch.summary("out/shared/summary.json");
    let slowdowns: Vec<_> =
        told["flows"].as_array().unwrap().iter().map(|flow| flow["slowdown"].as_f64()).collect();
    let counted: f64 = lines[1].rsplit(',').next().unwrap().parse().unwrap();
    assert!(slowdowns[0].unwrap() < counted && slowdowns[1].is_none(), "{slowdowns:?} {tried}");
    // Limits go by the same.
    let keep = ["--keep", "slowdown-p99<=5", "--aim", "pauses"];
    let output =
        scratch.roci(&[&["tune", "shared.toml", "--vary", vary, "--seeds", "1..2"], &keep[..]].concat());
    assert!(text(&output.stdout).contains(" within `slowdown-p99<=5`"), "{}", text(&output.stdout));
    let tried = text(&scratch.read("out/shared-tune/tried.csv"));
    assert!(tried.lines().nth(2).is_some_and(|line| line.starts_with("1/1000,1,1")), "{tried}");
}

#[test]
fn json_marks_the_best_and_the_scenario_as_it_is() {
    let scratch = Scratch::new("tune-json");
    scratch.scenario("far.toml", &SMALL.replace("delay = \"1us\"", "delay = \"50us\""));
    let tune = |arguments: &[&str]| {
        let search =
            ["tune", "far.toml", "--vary", "topology.delay=1us..40us", "--draws", "4", "--seeds", "1..2"];
        let output =
            scratch.roci(&[&search[..], &["--json", "--aim", "completion-mean"], arguments].concat());
        let told: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let of = |mark: &str| {
            let marked = told.iter().filter(|run| run[mark] == true);
            marked.map(|run| run["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        (of("best"), of("as_it_is"), text(&output.stderr))
    };
    let own = ["as it is seed=1", "as it is seed=2"];
    let (best, as_it_is, verdict) = tune(&[]);
    assert_eq!(as_it_is, own);
    let (_, set) = verdict.split_once("The best by completion-mean: --set ").unwrap();
    let set = set.lines().next().unwrap();
    assert_eq!(best, [format!("{set} seed=1"), format!("{set} seed=2")]);
    let (best, as_it_is, _) = tune(&["--set", "topology.delay=100ns"]);
    assert_eq!((&best[..], &as_it_is[..]), (&own.map(str::to_owned)[..], &own.map(str::to_owned)[..]));
}

#[test]
fn a_key_with_dots_is_varied_in_quotes_and_what_is_printed_runs_when_pasted() {
    let scratch = Scratch::new("tune-quoted");
    let written = "[[at]]\ntime = \"1us\"\nset = { \"switch.ecn.kmin\" = \"5KB\" }\n";
    scratch.scenario("small.toml", &format!("{SMALL}\n{written}"));
    let key = "at.0.set.\"switch.ecn.kmin\"";
    let vary = format!("{key}=10KB..100KB");
    let search = ["tune", "small.toml", "--draws", "2", "--aim", "goodput", "--seeds", "1..2", "--vary"];
    let output = scratch.roci(&[&search[..], &[&vary]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&format!("the best has {key}=")), "{}", text(&output.stderr));
    let heading = "\"at.0.set.\"\"switch.ecn.kmin\"\"\",seeds,";
    assert!(text(&scratch.read("out/small-tune/tried.csv")).starts_with(heading));
    let set = format!("{key}=50KB,60KB");
    let output = scratch.roci(&["sweep", "small.toml", "--set", &set]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = scratch.roci(&["run", "small.toml", "--set", &format!("{key}=900KB")]);
    let told = text(&output.stderr);
    assert!(told.contains("kmin, 900KB, is more than kmax"), "{told}");
    // Without its index a table is not found, but what to write is.
    let output = scratch.roci(&["tune", "small.toml", "--vary", "traffic.senders=2,4"]);
    let told = text(&output.stderr);
    assert!(told.contains("has one entry, with the index 0: write `traffic.0.senders`"), "{told}");
    let output = scratch.roci(&["run", "small.toml", "--set", "at.set.\"switch.ecn.kmin\"=9KB"]);
    assert!(text(&output.stderr).contains(&format!("write `{key}`")), "{}", text(&output.stderr));
}

#[test]
fn a_range_of_parts_of_one_is_drawn_as_such() {
    let scratch = Scratch::new("tune-parts");
    scratch.scenario("small.toml", SMALL);
    let vary = "transport.control.g=1/1024..1/16";
    let output = scratch.roci(&["tune", "small.toml", "--draws", "4", "--seeds", "1..2", "--vary", vary]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let tried = text(&scratch.read("out/small-tune/tried.csv"));
    assert!(tried.lines().count() > 4 && tried.lines().skip(1).all(|line| line.starts_with("1/")), "{tried}");
}
