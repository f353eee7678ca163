//! Chakra traces on their way through `roci import` and `roci run`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use what these do not")]
#[path = "../../lab/tests/support/chakra.rs"]
mod encode;
#[expect(dead_code, reason = "other tests use what these do not")]
mod scratch;

use encode::{ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COMPUTE, Node, collective, trace};
use scratch::{Scratch, text};
use std::fs;

/// Acknowledgements share links with data, at moments that depend on all else: what a few of them take in each of the six steps of a sum.
const ACKS: f64 = 6.0 * 30e-9;

/// All ranks have their data at once, and what follows is the same each time.
const ALIKE: [&str; 4] = ["--set", "start_jitter=0s", "--set", "transport.control=none"];

fn done(scratch: &Scratch, arguments: &[&str]) -> String {
    let output = scratch.roci(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// How long the schedule of these traces takes, which are those of the ranks one after the other.
fn time_of(scratch: &Scratch, name: &str, ranks: &[Vec<Node>], run: &[&str]) -> f64 {
    for (rank, nodes) in ranks.iter().enumerate() {
        fs::write(scratch.0.join(format!("{name}.{rank}.et")), trace(nodes)).unwrap();
    }
    let said = done(scratch, &["import", name]);
    assert_eq!(
        said,
        format!("{name}.goal is written. {name}.toml is written. To run it: roci run {name}.toml\n")
    );
    let scenario = format!("{name}.toml");
    done(scratch, &[&["run", &*scenario], &ALIKE[..], run].concat());
    let summary = scratch.summary(&format!("out/{name}/summary.json"));
    summary["goals"][0]["time_s"].as_f64().unwrap()
}

#[test]
fn how_collectives_of_traces_are_done_is_the_scenario_s_to_say() {
    let scratch = Scratch::new("traces");
    // Of an all-gather a node has what goes in.
    let ranks = vec![
        vec![
            collective(3, "sum", ALL_REDUCE, 8_000_000),
            collective(4, "params", ALL_GATHER, 1_000_000).after(&[3]),
            collective(5, "tokens", ALL_TO_ALL, 8_000_000).after(&[4]),
        ];
        8
    ];
    let network = "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 4\nspines = 1\nrate = \"400Gb/s\"\ndelay = \"500ns\"\nscale_up = \"3.6Tb/s\"\n\
                   [switch]\nbuffer = \"64MB\"\n[nic]\nmtu = 4096\n[[traffic]]\n";
    let times = |name: &str, run: &[&str]| {
        time_of(&scratch, name, &ranks, &[]);
        let traffic = format!("kind = \"goal\"\nfile = \"{name}.goal\"\n");
        scratch.scenario("rails.toml", &format!("{network}{traffic}"));
        done(&scratch, &[&["run", "rails.toml"], &ALIKE[..], run].concat());
        let csv = fs::read_to_string(scratch.0.join("out/rails/joint.csv")).unwrap();
        let rows: Vec<Vec<String>> =
            csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect();
        let labels: Vec<&str> = rows.iter().map(|row| &*row[2]).collect();
        assert_eq!(labels, ["sum_n3", "params_n4", "tokens_n5"]);
        rows.into_iter().map(|row| (row[4].clone(), row[14].parse::<f64>().unwrap())).collect::<Vec<_>>()
    };
    let usual = times("usual", &[]);
    let set = [
        "--set",
        "traffic.0.algorithm={ all-reduce = \"tree\", all-to-all = \"pxn\" }",
        "--set",
        "traffic.0.chunks=8",
    ];
    let chosen = times("chosen", &set);
    let algorithms =
        |of: &[(String, f64)]| of.iter().map(|(algorithm, _)| algorithm.clone()).collect::<Vec<_>>();
    assert_eq!(algorithms(&usual), ["ring", "ring", "direct"]);
    assert_eq!(algorithms(&chosen), ["tree", "ring", "pxn"]);
    assert!(
        chosen[2].1 < usual[2].1,
        "over one spine tokens come sooner by their rails: {chosen:?} {usual:?}"
    );
}

/// A step of a model of two layers on each of four ranks: gradients of the second layer are summed up while those of the first are computed,
/// and the next step begins when both are.
fn data_parallel(micros: u64, size: u64, overlapped: bool) -> Vec<Node> {
    let compute = |id, name| Node::new(id, name, COMPUTE).lasts(micros);
    vec![
        compute(1, "forward"),
        compute(2, "backward_2").after(&[1]),
        collective(3, "gradients_2", ALL_REDUCE, size).after(&[2]),
        compute(4, "backward_1").after(if overlapped { &[2] } else { &[3] }),
        collective(5, "gradients_1", ALL_REDUCE, size).after(&[4]),
        compute(6, "step").after(&[3, 5]),
    ]
}

#[test]
fn gradients_are_summed_up_while_others_are_computed_as_dependencies_say() {
    let scratch = Scratch::new("overlap");
    let eager = ["--set", "traffic.0.eager=1GiB"];
    let time = |name: &str, nodes: Vec<Node>| time_of(&scratch, name, &vec![nodes; 4], &eager);
    let sum = time("alone", vec![collective(1, "gradients", ALL_REDUCE, 4_000_000)]);
    // The sum takes less than a millisecond: computing for one hides the first sum, and only that.
    assert!((1e-5..1e-3).contains(&sum), "{sum}");
    let overlapped = time("overlapped", data_parallel(1000, 4_000_000, true));
    assert!((overlapped - (4e-3 + sum)).abs() <= ACKS, "{overlapped} s, and a sum of {sum} s");
    let apart = time("apart", data_parallel(1000, 4_000_000, false));
    assert!((apart - (4e-3 + 2.0 * sum)).abs() <= 2.0 * ACKS, "{apart} s, and sums of {sum} s");
    // Where computing takes next to nothing, one sum goes behind the other.
    let bare = time("bare", data_parallel(1, 4_000_000, true));
    assert!((bare - (2e-6 + 2.0 * sum + 1e-6)).abs() <= 2.0 * ACKS, "{bare} s, and sums of {sum} s");
}

#[test]
fn what_is_imported_of_traces_is_written_over_nothing_and_refused_in_words() {
    let scratch = Scratch::new("traces-refused");
    let nodes = [collective(1, "sum", ALL_REDUCE, 64)];
    for rank in 0..2 {
        fs::write(scratch.0.join(format!("step.{rank}.et")), trace(&nodes)).unwrap();
    }
    let refused = |arguments: &[&str]| {
        let output = scratch.roci(&[&["import"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    assert!(refused(&[".", "--peak-perf", "0"]).contains("give a number above 0"));
    scratch.scenario("config.txt", "");
    let told = refused(&["config.txt", "--groups", "comm_group.json"]);
    assert!(told.starts_with("--groups is for Chakra traces, and config.txt is none"), "{told}");
    assert_eq!(scratch.files(), ["config.txt", "step.0.et", "step.1.et"]);

    done(&scratch, &["import", "step.1.et", "--out", "two.goal"]);
    assert!(
        refused(&["step", "--out", "two.toml"]).contains("two.toml exists already, and nothing was written")
    );
    fs::remove_file(scratch.0.join("two.toml")).unwrap();
    assert!(
        refused(&["step", "--out", "two.toml"]).contains("two.goal exists already, and nothing was written")
    );
    assert_eq!(scratch.files(), ["config.txt", "step.0.et", "step.1.et", "two.goal"]);
    let whole = trace(&nodes);
    fs::write(scratch.0.join("step.1.et"), &whole[..whole.len() - 1]).unwrap();
    assert!(refused(&["step"]).contains("step.1.et: it ends within the message at octet"));
}
