//! Several runs side by side, and the papers' figures, as a user meets them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scratch;

use scratch::{SMALL, Scratch, text};

#[test]
fn figures_replace_earlier_figures() {
    let scratch = Scratch::new("figures");
    for name in ["validation-headroom", "validation-shares", "validation-headroom"] {
        let output = scratch.roci(&["reproduce", name, "--seeds", "1"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    }
    assert!(scratch.files().contains(&"out/figures/figures.html".to_owned()), "{:?}", scratch.files());
}

#[test]
#[cfg(unix)]
fn what_was_reproduced_before_an_interrupt_is_written() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};
    let scratch = Scratch::new("interrupted-figures");
    let mut child = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(["reproduce", "swcc-table3", "validation-fixed-point", "swcc-fig2"])
        .current_dir(&scratch.0)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    assert!(out.read_line(&mut line).unwrap() > 0 && line.starts_with("swcc-table3: "), "{line}");
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(
        rest.ends_with("Tables and plots are in out/figures.\n1 passed, 0 failed, 0 not judged.\n"),
        "{rest}"
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = "interrupted\n`validation-fixed-point` is not done, nor what was to follow; what was done before it is in out/figures\n";
    assert_eq!(text(&output.stderr), told);
    let tables = text(&scratch.read("out/figures/figures.md"));
    assert!(tables.contains("swcc-table3") && !tables.contains("validation-fixed-point"), "{tables}");
}

/// A flow that ends with the run.
#[cfg(unix)]
fn endless() -> String {
    SMALL.replace("\"permutation\"\nsize", "\"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nmessage")
}

/// Ends `roci` with these arguments by Ctrl-C, 0.3 s after a path of this ending appeared.
#[cfg(unix)]
fn interrupt(scratch: &Scratch, arguments: &[&str], ending: &str) -> std::process::Output {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let child = Command::new(env!("CARGO_BIN_EXE_roci"))
        .args(arguments)
        .current_dir(&scratch.0)
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..500 {
        if scratch.files().iter().any(|file| file.ends_with(ending)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    child.wait_with_output().unwrap()
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_says_so_and_writes_nothing() {
    let scratch = Scratch::new("interrupt");
    scratch.scenario("long.toml", &format!("stop = \"1000s\"\n{}", endless()));
    // Its draft shows that it listens: it is made before, and the handler set at once after.
    let output = interrupt(&scratch, &["run", "long.toml", "--out", "n1/deep/er"], ".partial/");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "interrupted; nothing was written\n");
    assert_eq!(scratch.files(), ["long.toml"]);
}

#[test]
#[cfg(unix)]
fn an_interrupted_sweep_keeps_what_was_done_beside_earlier_results() {
    let scratch = Scratch::new("interrupted-sweep");
    scratch.scenario("long.toml", &endless());
    let sweep = |stops: &'static str| ["sweep", "long.toml", "--set", stops, "--jobs", "1", "--out", "o/"];
    let whole = scratch.roci(&sweep("stop=200us,300us"));
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    let before = scratch.files();
    let output = interrupt(&scratch, &sweep("stop=1ms,2ms,1000s,2000s"), "/stop=1000s/");
    assert_eq!(output.status.code(), Some(1));
    let told = "long-sweep: interrupted; 2 of 4 runs were done, and their results are in o-interrupted\n";
    assert_eq!(text(&output.stderr), told);
    assert!(text(&output.stdout).contains("Results are in o-interrupted.\n"), "{}", text(&output.stdout));
    let (part, rest): (Vec<_>, Vec<_>) =
        scratch.files().into_iter().partition(|file| file.starts_with("o-interrupted/"));
    assert_eq!(rest, before, "the whole results stay");
    let names = ["flows.csv", "links.csv", "report.html", "series.parquet", "summary.json"];
    let of = |stop: &'static str| names.map(|name| format!("o-interrupted/stop={stop}/{name}"));
    let both = ["comparison.csv", "report.html"].map(|name| format!("o-interrupted/{name}"));
    assert_eq!(part, [&both[..], &of("1ms"), &of("2ms")].concat());
}

#[test]
fn one_seed_judges_no_mean_of_five() {
    let scratch = Scratch::new("one-seed");
    // The run of seed 1 has a board more than a tenth off the paper's mean, that of seed 3 has none: neither tells of the mean.
    let output = scratch.roci(&["reproduce", "lst-fig5", "--seeds", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "--seeds 3 is seed 3 alone; 3 seeds are --seeds 1..3\n");
    let printed = text(&output.stdout);
    let named = printed
        .lines()
        .next()
        .is_some_and(|line| line.starts_with("lst-fig5: ") && line.ends_with(", seed 3"));
    assert!(
        named
            && printed.contains("lst-fig5: 8 rows are not judged")
            && printed.ends_with("1 passed, 0 failed, 0 not judged.\n"),
        "{printed}"
    );
    let count = |verdict: &str| printed.lines().filter(|line| line.ends_with(verdict)).count();
    assert_eq!((count("  too few seeds"), count("  pass")), (8, 8), "{printed}");
    assert!(text(&scratch.read("out/figures/figures.md")).contains("*emergent*, seed 3."));
}

#[test]
fn a_figure_of_which_nothing_is_judged_has_not_passed() {
    let scratch = Scratch::new("not-judged");
    let output = scratch.roci(&["reproduce", "validation-queueing", "--seeds", "1", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(
        printed.ends_with(
            "validation-queueing: none of its rows is judged with 1 seed, as the bounds are those of a mean over 5. To have \
             them judged leave out --seeds, or say --seeds 1..5.\n0 passed, 0 failed, 1 not judged (validation-queueing).\n"
        ),
        "{printed}"
    );
    assert_eq!(printed.matches("pass").count(), 1, "but in the sum nothing says so: {printed}");
    let output = scratch.roci(&["reproduce", "validation-queueing", "--seeds", "1", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json[0]["passed"].is_null(), "{json:#}");
}

#[test]
fn figures_are_listed_by_paper() {
    let scratch = Scratch::new("list");
    let all = scratch.roci(&["reproduce"]);
    assert_eq!(all.status.code(), Some(0), "{}", text(&all.stderr));
    assert_eq!(all.stdout, scratch.roci(&["reproduce", "--list"]).stdout);
    let printed = text(&all.stdout);
    for group in ["swcc", "srnic", "tonic", "lst", "hpcc", "validation"] {
        let heading = format!("{group}: ");
        assert!(printed.lines().any(|line| line.starts_with(&heading)), "{group}: {printed}");
        let figures = scratch.roci(&["reproduce", group, "--list", "--json"]).stdout;
        let figures: serde_json::Value = serde_json::from_slice(&figures).unwrap();
        for figure in figures.as_array().unwrap() {
            let name = figure["name"].as_str().unwrap();
            assert!(name.starts_with(group) && printed.contains(name), "{name}: {printed}");
            assert!(!figure["title"].as_str().unwrap().is_empty());
            let one = figure["about_s"]["one_seed"].as_f64();
            let line =
                printed.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap();
            assert!(one.is_some() || line.contains("over 2 min"), "{line}");
            let ablations = line.split_whitespace().nth(3).unwrap();
            assert_eq!(ablations != "-", figure["ablation"].as_bool().unwrap(), "{line}");
            assert!(["over 2 min", "under 1 s", "about "].iter().any(|told| line.contains(told)), "{line}");
        }
    }
    assert_eq!(scratch.files(), [""; 0], "a list runs nothing");
}

#[test]
fn json_of_several_runs_tells_them_apart() {
    let scratch = Scratch::new("labels");
    scratch.scenario("small.toml", SMALL);
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&scratch.roci(arguments).stdout).unwrap()
    };
    let arguments = [
        "sweep",
        "small.toml",
        "--set",
        "nic.mtu=1024,4096",
        "--set",
        "switch.ecn=false",
        "--json",
        "--seeds",
        "1..2",
    ];
    let sweep = json(&arguments);
    let labels: Vec<&str> =
        sweep.as_array().unwrap().iter().map(|run| run["label"].as_str().unwrap()).collect();
    let expected =
        ["1024 seed=1", "1024 seed=2", "4096 seed=1", "4096 seed=2"].map(|run| format!("nic.mtu={run}"));
    assert_eq!(labels, expected);
    assert_eq!(sweep[3]["overrides"], serde_json::json!({ "nic.mtu": "4096", "switch.ecn": "false" }));
    let compared = json(&["compare", "small.toml", "--control", "dcqcn,none", "--json"]);
    assert_eq!(
        (&compared[0]["label"], &compared[1]["label"]),
        (&"dcqcn preset=sigcomm15".into(), &"none".into())
    );
    assert_eq!(compared[1]["overrides"]["transport.control"], "none");
    // A folder says it too, but not what it is called among others.
    let kept = scratch.summary("out/small-controls/none/summary.json");
    assert_eq!((kept.get("label"), &kept["overrides"]), (None, &compared[1]["overrides"]));
    let report = text(&scratch.read("out/small-controls/none/report.html"));
    assert!(report.contains("\"subtitle\":\"with transport.control=none; seed 1, "));
}

#[test]
fn what_a_load_offers_stands_beside_its_goodput() {
    let scratch = Scratch::new("offered");
    let load = SMALL.replace(
        "kind = \"permutation\"\nsize = \"200KB\"",
        "kind = \"poisson\"\nsizes = \"10KB\"\nload = 0.2",
    );
    scratch.scenario("load.toml", &format!("stop = \"1ms\"\n{load}"));
    scratch.scenario("small.toml", SMALL);
    let heading = |arguments: &[&str]| {
        let printed = text(&scratch.roci(arguments).stdout);
        printed
            .lines()
            .find(|line| line.starts_with("  run ") || line.starts_with("  mtu "))
            .unwrap_or_else(|| panic!("{printed}"))
            .to_owned()
    };
    let sweep = |name| heading(&["sweep", name, "--set", "nic.mtu=1024,4096"]);
    assert!(sweep("load.toml").contains("  offered  "), "{}", sweep("load.toml"));
    assert!(!sweep("small.toml").contains("offered"));
    assert!(heading(&["compare", "small.toml", "load.toml"]).contains("offered"));
}

#[test]
fn configurations_are_held_against_the_first_seed_by_seed_where_they_have_the_same_flows() {
    let scratch = Scratch::new("differences");
    scratch.scenario("small.toml", SMALL);
    let told = |set: &str, seeds: &str| {
        let output = scratch.roci(&["sweep", "small.toml", "--set", set, "--seeds", seeds]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        let table = printed.lines().skip_while(|line| !line.contains(", seed by seed: "));
        table.take_while(|line| !line.contains("packet-hops")).map(str::to_owned).collect::<Vec<String>>()
    };
    let three = told("nic.mtu=1024,4096", "1..3");
    assert!(three[0].starts_with("  against nic.mtu=1024, seed by seed: means of"), "{three:?}");
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let (heading, row) = (cells(&three[2]), cells(&three[3]));
    assert_eq!((row.len(), &row[..2]), (heading.len(), &["4096".to_owned(), "3".to_owned()][..]));
    let goodput = heading.iter().position(|name| name == "goodput").unwrap();
    assert!(row[goodput].starts_with('+') && row[goodput].contains(" ± "), "fewer headers: {three:?}");
    assert!(!heading.contains(&"drops".to_owned()), "none is dropped: {three:?}");
    assert!(told("nic.mtu=1024,4096", "2").is_empty(), "one seed tells of no difference");
    assert!(told("traffic.0.size=100KB,200KB", "1..3").is_empty(), "other flows are no pairs");
    let same = told("switch.buffer=12MB,13MB", "1..3");
    assert_eq!(same[0], "  against switch.buffer=12MB, seed by seed: no difference");
}

#[test]
fn each_load_of_a_sweep_has_a_baseline_of_its_own() {
    let scratch = Scratch::new("baselines");
    // At either load so few incasts come that some seeds have as many at both.
    let random = "load = 0.05\nuntil = \"200us\"\n[measure]";
    let incasts = "kind = \"incast\"\nsenders = 3\nreceiver = \"h0\"\nsize = \"20KB\"";
    let permutation = "kind = \"permutation\"\nsize = \"200KB\"";
    let scenario = SMALL.replace(permutation, incasts).replace("[measure]", random);
    scratch.scenario("incasts.toml", &scenario);
    let told = |first: &str, then: &str| {
        let set = ["--set", first, "--set", then, "--seeds", "1..8", "--out", "out"];
        let output = scratch.roci(&[&["sweep", "incasts.toml"], &set[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        let csv = text(&scratch.read("out/comparison.csv"));
        let rows: Vec<Vec<String>> =
            csv.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        let column = |name: &str| rows[0].iter().position(|it| it == name).unwrap();
        let places = ["configuration", "paired_seeds", "baseline"].map(column);
        assert_eq!(places[2] + 1, rows[0].len(), "the last one");
        let mut baselines: Vec<_> =
            rows[1..].iter().map(|row| places.map(|place| row[place].clone())).collect();
        baselines.dedup();
        let headings = printed.lines().filter(|line| line.contains(", seed by seed")).map(str::to_owned);
        (headings.collect::<Vec<String>>(), baselines)
    };
    let (load, law) = ("traffic.0.load=0.05,0.08", "transport.control=dcqcn,none");
    let is = |name: &str, seeds: &str, baseline: &str| [name, seeds, baseline].map(str::to_owned);
    let name = |load: &str, law: &str| match law {
        "none" => format!("traffic.0.load={load} transport.control=none"),
        _ => format!("traffic.0.load={load} transport.control=dcqcn preset=sigcomm15"),
    };
    let (headings, baselines) = told(load, law);
    let [light, heavy] = ["0.05", "0.08"].map(|load| name(load, "dcqcn"));
    let none = ["0.05", "0.08"].map(|load| name(load, "none"));
    let rows = [
        is(&light, "", &light),
        is(&none[0], "8", &light),
        is(&heavy, "", &heavy),
        is(&none[1], "8", &heavy),
    ];
    assert_eq!(baselines, rows);
    assert!(headings.len() == 2 && headings[1].starts_with(&format!("  against {heavy}, ")), "{headings:?}");
    // The order of the keys makes no difference to what is held against what.
    let (headings, baselines) = told(law, load);
    assert_eq!(headings.len(), 2);
    let seeds: Vec<_> = baselines.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(seeds, ["", "", "8", "8"]);
    assert_eq!((&baselines[2][2], &baselines[3][2]), (&baselines[0][0], &baselines[1][0]));
}

#[test]
fn tables_of_traffic_are_told_apart_in_one_run_and_in_several() {
    let scratch = Scratch::new("traffic");
    let burst = "[[traffic]]\nkind = \"incast\"\nname = \"burst\"\nsenders = 3\nsize = \"20KB\"\n\n[measure]";
    scratch.scenario("one.toml", SMALL);
    scratch.scenario("two.toml", &SMALL.replace("[measure]", burst));
    // The lines of the table whose heading names the traffic.
    let lines = |arguments: &[&str]| -> Vec<String> {
        let printed = text(&scratch.roci(arguments).stdout);
        let table = printed.lines().skip_while(|line| !line.split_whitespace().any(|word| word == "traffic"));
        table.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let has = |line: &str, words: [&str; 2]| words.iter().all(|word| line.contains(word));
    let alone = lines(&["run", "two.toml"]);
    assert_eq!(alone.len(), 3, "{alone:?}");
    assert!(has(&alone[1], ["  0 ", "4 of 4"]) && has(&alone[2], ["  burst ", "3 of 3"]), "{alone:?}");
    let seeds = lines(&["run", "two.toml", "--seeds", "1..3"]);
    assert_eq!(seeds.len(), 3, "{seeds:?}");
    assert!(has(&seeds[2], [" burst ", "3 of 3"]) && has(&seeds[2], ["two ", " ± "]), "{seeds:?}");
    let sweep = lines(&["sweep", "two.toml", "--set", "nic.mtu=1024,4096"]);
    assert_eq!(sweep.len(), 5, "{sweep:?}");
    assert!(has(&sweep[1], ["1024  ", " 0 "]) && has(&sweep[4], ["4096  ", " burst "]), "{sweep:?}");
    let summary = scratch.summary("out/two/seed=2/summary.json");
    let names = [0, 1].map(|table| &summary["traffic"][table]["name"]);
    assert_eq!(names, ["0", "burst"]);
    // Nothing is to be told apart in one table, nor to be compared in different ones.
    assert_eq!(lines(&["run", "one.toml"]), [""; 0]);
    assert_eq!(lines(&["compare", "one.toml", "two.toml"]), [""; 0]);
}

#[test]
fn differences_are_told_of_each_table_of_traffic_too() {
    let scratch = Scratch::new("traffic-differences");
    let burst = "[[traffic]]\nkind = \"incast\"\nname = \"burst\"\nsenders = 3\nsize = \"20KB\"\n\n[measure]";
    scratch.scenario("one.toml", SMALL);
    scratch.scenario("two.toml", &SMALL.replace("[measure]", burst));
    let sweep = |name, seeds| {
        let set = ["--set", "nic.mtu=1024,4096", "--seeds", seeds, "--out", "out"];
        let output = scratch.roci(&[&["sweep", name], &set[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let printed = sweep("two.toml", "1..3");
    let heading = "  against nic.mtu=1024, seed by seed, of each table of traffic: means of";
    let table: Vec<&str> = printed.lines().skip_while(|line| !line.starts_with(heading)).skip(2).collect();
    let words = |line: usize| table[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(0)[1..4], ["traffic", "seeds", "completion"], "{printed}");
    assert_eq!([words(1)[1..3].to_vec(), words(2)[1..3].to_vec()], [["0", "3"], ["burst", "3"]], "{printed}");
    let csv = text(&scratch.read("out/comparison-traffic.csv"));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|it| *it == name).unwrap();
    assert_eq!((rows.len(), rows[12][column("traffic")], rows[12][column("nic.mtu")]), (13, "burst", "4096"));
    assert_eq!(rows[12][column("baseline")], "nic.mtu=1024");
    assert!(rows[12][column("fct_mean_s_diff")].parse::<f64>().unwrap() != 0.0, "{csv}");
    assert!(text(&scratch.read("out/report.html")).contains("Differences of traffic, seed by seed"));
    // The same folder, of which nothing is left then.
    assert!(!sweep("one.toml", "1..2").contains("of each table of traffic"));
    assert!(!scratch.files().contains(&"out/comparison-traffic.csv".to_owned()));
}

#[test]
fn notes_of_all_configurations_are_said_once() {
    let scratch = Scratch::new("notes");
    scratch.scenario("small.toml", SMALL);
    let output =
        scratch.roci(&["sweep", "small.toml", "--set", "topology.rate=10Gb/s,100Gb/s", "--seeds", "1..2"]);
    let told = text(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.starts_with(
            "small, topology.rate=100Gb/s: preset `sigcomm15` of `dcqcn` has the steps of 40Gb/s"
        ),
        "{told}"
    );
}

#[test]
fn a_sweep_says_once_what_helps_where_answers_take_longer_than_the_timeout() {
    let scratch = Scratch::new("in-vain");
    let incast = SMALL.replace("hosts = 4", "hosts = 9").replace(
        "kind = \"permutation\"\nsize = \"200KB\"",
        "kind = \"incast\"\nreceiver = \"h0\"\nsenders = 8\nsize = \"1MB\"",
    );
    let behind = "[switch]\nbuffer = \"1MB\"\necn = false\n[transport]\ncontrol = \"none\"\n";
    scratch.scenario("paused.toml", &format!("{incast}{behind}"));
    let output = scratch.roci(&["sweep", "paused.toml", "--set", "transport.timeout=100us,150us,100ms"]);
    let printed = text(&output.stdout);
    let told = "none had been lost: answers took longer than the timeout, as behind PAUSE; the like in 1 more runs\n";
    assert!(printed.contains(told) && printed.contains("\n  transport.timeout=100us: "), "{printed}");
    assert_eq!(printed.matches("what to do: a longer transport.timeout").count(), 1, "{printed}");
    let output = scratch.roci(&["sweep", "paused.toml", "--set", "transport.timeout=50ms,100ms"]);
    assert!(!text(&output.stdout).contains("what to do"), "{}", text(&output.stdout));
}

#[test]
fn flows_without_an_end_are_told_to_have_none() {
    let scratch = Scratch::new("endless");
    let endless = SMALL.replace(
        "kind = \"permutation\"\nsize = \"200KB\"",
        "kind = \"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nqps = 2\nmessage = \"4KB\"",
    );
    scratch.scenario("endless.toml", &format!("stop = \"1ms\"\n{endless}"));
    let printed = text(&scratch.roci(&["run", "endless.toml"]).stdout);
    assert!(
        printed.contains("seed 1: 2 flows without an end ran until the run stopped, 1.000 ms simulated"),
        "{printed}"
    );
    let printed = text(&scratch.roci(&["sweep", "endless.toml", "--set", "traffic.0.qps=2,3"]).stdout);
    let told = "flows without an end, as in a closed loop without `count`, ran until the run stopped and do not count as done";
    assert_eq!(printed.matches(told).count(), 1, "{printed}");
    let printed = text(&scratch.roci(&["run", "endless.toml", "--set", "traffic.0.count=5"]).stdout);
    assert!(printed.contains("2 of 2 flows done"), "{printed}");
}

#[test]
fn a_sweep_runs_every_combination() {
    let scratch = Scratch::new("sweep");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&[
        "sweep",
        "small.toml",
        "--set",
        "nic.mtu=1024,4096",
        "--set",
        "seed=7",
        "--out",
        "out",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let begin = ["  mtu   ", "  1024  ", "  4096  "];
    assert!(begin.iter().all(|begin| printed.lines().any(|line| line.starts_with(begin))), "{printed}");
    assert_eq!(scratch.summary("out/nic.mtu=4096/summary.json")["seed"], 7);
    assert!(scratch.files().contains(&"out/report.html".to_owned()));
}

#[test]
fn a_sweep_tells_of_the_combinations_that_cannot_be() {
    let scratch = Scratch::new("impossible");
    scratch.scenario("small.toml", SMALL);
    let sweep = |kmin: &str| {
        let set = ["--set", &format!("switch.ecn.kmin={kmin}"), "--set", "switch.ecn.kmax=100KB,400KB"];
        scratch.roci(&[&["sweep", "small.toml"], &set[..]].concat())
    };
    let output = sweep("50KB,400KB");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = "small-sweep: left out switch.ecn.kmin=400KB switch.ecn.kmax=100KB: kmin, 400KB, is more than kmax, 100KB\n";
    assert_eq!(text(&output.stderr), told);
    assert!(text(&output.stdout).contains("small-sweep: 3 runs"), "{}", text(&output.stdout));
    let kept = text(&scratch.read("out/small-sweep/left-out.csv"));
    assert_eq!(kept.lines().count(), 2, "{kept}");
    assert!(kept.starts_with("switch.ecn.kmin,switch.ecn.kmax,reason,remedy\n400KB,100KB,"), "{kept}");
    // Many are gathered, and the file has them all.
    let told = text(&sweep("50KB,200KB,300KB,400KB").stderr);
    let lines: Vec<&str> = told.lines().collect();
    let first = "small-sweep: left out 3 of 8 combinations, the first of them switch.ecn.kmin=200KB switch.ecn.kmax=100KB: kmin, 200KB, is more than kmax, 100KB";
    let rest = "small-sweep: all 3 that are left out are in out/small-sweep/left-out.csv";
    assert_eq!(lines, [first, rest]);
    assert_eq!(text(&scratch.read("out/small-sweep/left-out.csv")).lines().count(), 4);
    let output = sweep("500KB,600KB");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn controls_are_compared_and_one_scenario_alone_is_not() {
    let scratch = Scratch::new("compare");
    scratch.scenario("small.toml", SMALL);
    let output = scratch.roci(&["compare", "small.toml", "--control", "dcqcn,none", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("dcqcn preset=sigcomm15  4 of 4") && printed.contains("none"), "{printed}");
    assert_eq!(scratch.roci(&["compare", "small.toml"]).status.code(), Some(2));
    let output = scratch.roci(&["compare", "small.toml", "--control", "dcqcn,cubic"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no law `cubic`"), "{}", text(&output.stderr));
    let output = scratch.roci(&["compare", "small.toml", "--control", "dcqcn,ndp"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("set `transport.recovery` to \"ndp\" as well"), "{message}");
    assert!(message.contains("give `roci compare` a scenario file of its own for it"), "{message}");
    let output = scratch.roci(&["compare", "small.toml", "--control", "dcqcn,irn"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("`irn` is a recovery and no law"), "{message}");
    assert!(message.contains("roci sweep --set transport.recovery=go-back-n,irn"), "{message}");
}

#[test]
fn a_figure_without_ablation_is_refused_before_any_is_run_without_its_mechanism() {
    let scratch = Scratch::new("no-ablation");
    let output = scratch.roci(&["reproduce", "swcc-fig5", "srnic-fig11", "--ablate"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert!(
        text(&output.stderr)
            .starts_with("`srnic-fig11` has no ablation; of `srnic` these have one: `srnic-fig9`, ")
    );
    assert_eq!(scratch.files(), [""; 0]);
}

#[test]
fn a_figure_that_does_not_exist_is_refused_with_those_that_do() {
    let scratch = Scratch::new("figure");
    let output = scratch.roci(&["reproduce", "lst-fig99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("lst-fig5"), "{}", text(&output.stderr));
    assert_eq!(scratch.files(), [""; 0]);
}

/// Runs `roci` where no file may have more than so many blocks of 512 octets, as on a disk that is full from there on.
#[cfg(unix)]
fn with_room_for(scratch: &Scratch, blocks: u32, arguments: &str) -> std::process::Output {
    // A page of one run has about 60 blocks, that of eighty side by side 120, and no other file more than 50.
    scratch.scenario("a.toml", &SMALL.replace("[measure]\nsample = \"10us\"\n", ""));
    std::process::Command::new("sh")
        .args(["-c", &format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$ROCI\" {arguments}")])
        .env("ROCI", env!("CARGO_BIN_EXE_roci"))
        .current_dir(&scratch.0)
        .output()
        .unwrap()
}

#[test]
#[cfg(unix)]
fn runs_whose_report_has_no_room_are_kept_and_said_to_be() {
    let scratch = Scratch::new("no-room");
    let sweep = "sweep a.toml --set traffic.0.size=1KB,2KB,3KB,4KB --seeds 1..20 --out out/sw";
    let output = with_room_for(&scratch, 100, sweep);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    let expected = ": cannot write out/sw/report.html: File too large (os error 27); the results of all 80 runs are in out/sw\n";
    assert!(told.ends_with(expected), "{told}");
    assert!(text(&output.stdout).ends_with("Results are in out/sw.\n"), "the table is there too");
    let files = scratch.files();
    let count = |name: &str| files.iter().filter(|file| file.ends_with(name)).count();
    assert_eq!(
        (count("/summary.json"), count("/report.html")),
        (80, 80),
        "a page of each run and none of all"
    );
    let of_all = |name: &str| files.contains(&format!("out/sw/{name}"));
    assert!(!of_all("report.html") && of_all("comparison.csv"), "{files:?}");
    assert!(
        files.iter().all(|file| file == "a.toml" || file.starts_with("out/sw/")),
        "no draft is left: {files:?}"
    );
}

#[test]
#[cfg(unix)]
fn a_run_that_has_no_room_leaves_nothing_and_names_the_file_where_it_was_to_be() {
    let scratch = Scratch::new("no-room-for-one");
    let output = with_room_for(&scratch, 30, "run a.toml --out out/one");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stderr);
    assert!(told.ends_with(": cannot write out/one/report.html: File too large (os error 27)\n"), "{told}");
    assert_eq!(scratch.files(), ["a.toml"]);
}
