//! Chakra traces on their way through `roci import` and `roci run`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use what these do not")]
#[path = "../../lab/tests/support/chakra.rs"]
mod encode;
#[expect(dead_code, reason = "other tests use what these do not")]
mod scratch;

use encode::{
    ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, COMPUTE, Node, REDUCE_SCATTER, collective, trace,
};
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
fn time_of(scratch: &Scratch, name: &str, ranks: &[Vec<Node>], import: &[&str], run: &[&str]) -> f64 {
    for (rank, nodes) in ranks.iter().enumerate() {
        fs::write(scratch.0.join(format!("{name}.{rank}.et")), trace(nodes)).unwrap();
    }
    let said = done(scratch, &[&["import", name], import].concat());
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
fn a_collective_of_a_trace_takes_what_kind_collective_takes() {
    let scratch = Scratch::new("traces");
    for (kind, operation, algorithm, chunks) in [
        (ALL_REDUCE, "all-reduce", "ring", "1"),
        (ALL_REDUCE, "all-reduce", "ring", "4"),
        (ALL_REDUCE, "all-reduce", "halving-doubling", "3"),
        (ALL_REDUCE, "all-reduce", "tree", "5"),
        (REDUCE_SCATTER, "reduce-scatter", "ring", "1"),
        (ALL_GATHER, "all-gather", "halving-doubling", "2"),
        (ALL_GATHER, "all-gather", "direct", "1"),
        (ALL_TO_ALL, "all-to-all", "direct", "1"),
        (BROADCAST, "broadcast", "ring", "4"),
    ] {
        let size = 8_000_000;
        // Of an all-gather a node has what goes in.
        let of_node = if kind == ALL_GATHER { size / 8 } else { size };
        let ranks = vec![vec![collective(3, "it", kind, of_node)]; 8];
        let name = format!("{operation}-{algorithm}-{chunks}");
        // Nobody waits for an acknowledgement: of a collective it is told when all has come.
        let eager = ["--set", "traffic.0.eager=1GiB"];
        let time = time_of(&scratch, &name, &ranks, &["--collective", algorithm, "--chunks", chunks], &eager);
        let network = fs::read_to_string(scratch.0.join(format!("{name}.toml"))).unwrap();
        let network = network.split("[[traffic]]").next().unwrap().to_owned();
        scratch.scenario(
            "ours.toml",
            &format!(
                "{network}\n[[traffic]]\nkind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{algorithm}\"\n\
                 size = {size}\nchunks = {chunks}\n"
            ),
        );
        done(&scratch, &[&["run", "ours.toml", "--out", "out/ours"], &ALIKE[..]].concat());
        let ours =
            scratch.summary("out/ours/summary.json")["collectives"][0]["time_mean_s"].as_f64().unwrap();
        assert!(
            (time - ours).abs() < 1.5e-12,
            "{name}: {time} s of the trace, {ours} s of kind = \"collective\""
        );
    }
}

#[test]
fn collectives_of_traces_keep_to_the_rails_of_servers_as_those_of_kind_collective_do() {
    let scratch = Scratch::new("traces-rails");
    let ranks = vec![vec![collective(3, "it", ALL_REDUCE, 8_000_000)]; 8];
    let exchanges = vec![vec![collective(3, "it", ALL_TO_ALL, 8_000_000)]; 8];
    // With one channel two ranks have a queue pair, as there; with several each channel has its own, which tags come near to: where a NIC sends for
    // several it does so in other turns.
    for (ranks, operation, algorithm, channels, queue_pairs, off) in [
        (&ranks, "all-reduce", "ring", "4", "tag", 0.05),
        (&ranks, "all-reduce", "ring", "1", "pair", 0.0),
        (&ranks, "all-reduce", "tree", "4", "tag", 0.05),
        (&exchanges, "all-to-all", "pxn", "1", "pair", 0.0),
    ] {
        let name = format!("{algorithm}-{channels}");
        for (rank, nodes) in ranks.iter().enumerate() {
            fs::write(scratch.0.join(format!("{name}.{rank}.et")), trace(nodes)).unwrap();
        }
        let servers = ["--ranks-per-server", "4", "--channels", channels];
        // Rings and trees have four unless they are told, others one.
        let servers = if name == "ring-1" { &servers[..] } else { &servers[..2] };
        done(&scratch, &[&["import", &*name, "--collective", algorithm], servers].concat());
        // Nothing joins the rails, so what does not keep to them is refused.
        let network = "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 4\nspines = 0\nrate = \"400Gb/s\"\ndelay = \"500ns\"\nscale_up = \"3.6Tb/s\"\n\
                       [switch]\nbuffer = \"64MB\"\n[nic]\nmtu = 4096\n[[traffic]]\n";
        let goal = format!(
            "kind = \"goal\"\nfile = \"{name}.goal\"\neager = \"1GiB\"\nqueue_pairs = \"{queue_pairs}\"\n"
        );
        let ours = format!(
            "kind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{algorithm}\"\nsize = 8000000\nchannels = {channels}\n"
        );
        let times = [("goal", goal, "goals", "time_s"), ("ours", ours, "collectives", "time_mean_s")].map(
            |(file, traffic, of, time)| {
                scratch.scenario(&format!("{file}.toml"), &format!("{network}{traffic}"));
                let out = format!("out/{file}");
                done(&scratch, &[&["run", &*format!("{file}.toml"), "--out", &*out], &ALIKE[..]].concat());
                scratch.summary(&format!("{out}/summary.json"))[of][0][time].as_f64().unwrap()
            },
        );
        let [trace, ours] = times;
        assert!(
            (trace - ours).abs() < off * ours + 1.5e-12,
            "{name}: {trace} s of the trace, {ours} s of kind = \"collective\""
        );
    }
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
    let time = |name: &str, nodes: Vec<Node>| time_of(&scratch, name, &vec![nodes; 4], &[], &eager);
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
    assert!(refused(&[".", "--collective", "fast"]).starts_with("--collective: `fast` is no algorithm"));
    assert!(refused(&[".", "--peak-perf", "0"]).contains("give a number above 0"));
    assert!(refused(&[".", "--chunks", "0"]).contains("0 is not in 1..=16384"));
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
