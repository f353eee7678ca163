//! Programs for a core as congestion control of whole runs.

use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use std::path::Path;

const ADVCAM: &str = "../../scenarios/advcam-incast.toml";

fn scenario(file: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    Scenario::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file), &overrides)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn text(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let overrides: Vec<_> =
        overrides.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs.toml");
    Scenario::parse(text, &file.display().to_string(), &overrides).map_err(|error| error.to_string())
}

fn run(scenario: &Scenario) -> Results {
    let run = SimulatedWorld.run(scenario, scenario.seed, None, &mut |_| Go::On);
    run.unwrap_or_else(|error| panic!("{error}"))
}

/// `flows.csv`, with the name of the congestion control left out.
fn flows(mut results: Results) -> String {
    results.controls.clear();
    let mut octets = Vec::new();
    roci_lab::output::flows::write(&mut octets, &results).expect("memory can be written");
    String::from_utf8(octets).expect("text")
}

/// Two senders share a link of 10 Gb/s.
const PAIR: &str = r#"
name = "programs"
[topology]
kind = "star"
hosts = 3
rate = "10Gb/s"
delay = "1us"
[switch]
ecn = { kmin = "5KB", kmax = "200KB", pmax = 0.01 }
[transport]
control = { law = "program", elf = "firmware/dcqcn.elf" }
[[traffic]]
kind = "flows"
flows = [
  { name = "a", src = "h0", dst = "h2", op = "write", size = "4MB" },
  { name = "b", src = "h1", dst = "h2", op = "write", size = "4MB" },
]
[measure]
sample = "100us"
"#;

/// The flows of `advcam-incast`, smaller, under a law and under its program.
fn twins(law: &str, program: &str, more: &[(&str, &str)]) {
    let sizes: Vec<_> =
        (0..8).map(|flow| (format!("traffic.0.flows.{flow}.size"), "8MB".to_owned())).collect();
    let flows_under = |control: &str| {
        let sizes = sizes.iter().map(|(key, size)| (key.as_str(), size.as_str()));
        let overrides: Vec<_> =
            sizes.chain(more.iter().copied()).chain([("transport.control", control)]).collect();
        let results = run(&scenario(ADVCAM, &overrides));
        let programs = results.programs.clone();
        (flows(results), programs)
    };
    let (native, none) = flows_under(law);
    let (coded, programs) = flows_under(&format!("{{ law = \"program\", elf = \"{program}\" }}"));
    assert!(native.lines().count() == 9 && native.contains(",ok,"));
    assert_eq!(native, coded, "{law}");
    assert!(none.is_empty());
    let [program] = &programs[..] else { panic!("{programs:?}") };
    assert!(program.tally.events.iter().all(|&events| events > 100), "{program:?}");
    assert_eq!(program.tally.fallen(), 0);
}

#[test]
fn dcqcn_in_c_gives_the_flows_of_dcqcn_in_rust() {
    twins(r#"{ law = "dcqcn", preset = "sigcomm15" }"#, "../firmware/dcqcn.elf", &[]);
}

#[test]
fn timely_in_c_gives_the_flows_of_timely_in_rust() {
    twins(r#"{ law = "timely", preset = "sigcomm15" }"#, "firmware/timely.elf", &[]);
}

#[test]
fn hpcc_in_c_gives_the_flows_of_hpcc_in_rust() {
    twins(r#"{ law = "hpcc", preset = "sigcomm19" }"#, "firmware/hpcc.elf", &[]);
}

#[test]
fn swift_in_c_gives_the_flows_of_swift_in_rust() {
    twins(r#"{ law = "swift", preset = "htsim" }"#, "firmware/swift.elf", &[]);
}

#[test]
fn homa_in_c_gives_the_flows_of_homa_in_rust() {
    twins(r#"{ law = "homa" }"#, "firmware/homa.elf", &[]);
}

#[test]
fn executors_agree_to_the_cycle() {
    let tally = |executor: &str| {
        let control =
            format!(r#"{{ law = "program", elf = "firmware/dcqcn.elf", executor = "{executor}" }}"#);
        let results = run(&text(PAIR, &[("transport.control", &control)]).unwrap());
        (results.programs[0].tally.clone(), results.events, results.simulated)
    };
    assert_eq!(tally("translated"), tally("interpreted"));
}

#[test]
fn credit_in_c_bounds_what_is_in_flight() {
    let finished = |credit: &str| {
        let control = format!(
            r#"{{ law = "program", elf = "firmware/credit.elf", context = {{ total_credit = "{credit}" }} }}"#
        );
        let results = run(&text(PAIR, &[("transport.control", &control), ("nic.mtu", "1024")]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let queue = results.switches.iter().map(|switch| switch.max_buffer_bytes).max().unwrap();
        (results.flows[0].fct().unwrap(), queue)
    };
    let (slow, short) = finished("2KiB");
    let (fast, long) = finished("64KiB");
    // Two credits of octets can lie in the queue, each with its headers, and no more.
    assert!(short <= 2 * 2_048 * 12 / 10 && long <= 2 * 65_536 * 12 / 10, "{short} {long}");
    assert!(slow > fast && long > short);
}

#[test]
fn several_programs_and_laws_run_at_once() {
    let own = r#"{ law = "timely" }"#;
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "64KiB" } }"#;
    let overrides = [
        ("transport.layout", "{ time = false, words = 1 }"),
        ("traffic.0.flows.0.control", credit),
        ("traffic.0.flows.1.control", own),
    ];
    let three = PAIR.replace(
        "]\n[measure]",
        "  { name = \"c\", src = \"h0\", dst = \"h1\", op = \"write\", size = \"1MB\" },\n]\n[measure]",
    );
    let results = run(&text(&three, &overrides).unwrap());
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let elves: Vec<_> = results.programs.iter().map(|program| program.elf.as_str()).collect();
    assert_eq!(elves, ["firmware/dcqcn.elf", "firmware/credit.elf"]);
    assert!(results.programs.iter().all(|program| program.tally.events[1] > 100));
}

#[test]
fn a_program_that_fails_leaves_its_flows_to_the_fallback() {
    let image = "../../control/tests/images/faults.elf";
    // A packet of seven octets is its end; the flows' last packets are such.
    let control = format!(
        r#"{{ law = "program", elf = "{image}", check = false, cycles = 5000, fallback = {{ law = "dcqcn", preset = "hpcc" }} }}"#
    );
    let overrides = [
        ("transport.control", control.as_str()),
        ("nic.mtu", "1024"),
        ("traffic.0.flows.0.op", "send"),
        ("traffic.0.flows.0.size", "1MB"),
        ("traffic.0.flows.1.size", "1024007B"),
    ];
    let results = run(&text(PAIR, &overrides).unwrap());
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let tally = &results.programs[0].tally;
    assert_eq!((tally.traps, tally.fallen()), (1, 1), "{tally:?}");
    let failure = tally.first.as_ref().unwrap().to_string();
    assert!(failure.contains("faults.c:") && failure.contains("breakpoint"), "{failure}");
}

#[test]
fn a_program_is_replaced_while_flows_run() {
    let credit =
        "{ law = \"program\", elf = \"firmware/credit.elf\", context = { total_credit = \"4KiB\" } }";
    let replaced = format!(
        "{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"firmware/dcqcn.elf\" }}\n"
    );
    let other = r#"{ law = "program", elf = "../../control/tests/images/other.elf" }"#;
    let results = run(&text(&replaced, &[("transport.control", other)]).unwrap());
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let [program] = &results.programs[..] else { panic!("one program") };
    assert_eq!((program.elf.as_str(), program.tally.replaced), ("firmware/dcqcn.elf", 1));
    // Before, nothing heeded marks; after it, flows were notified of them and slowed down.
    assert!(program.tally.events[1] > 100 && results.flows.iter().any(|flow| flow.cnps > 0));
    // A header of another length cannot be put on packets whose layout stands.
    let refused = text(&replaced, &[("transport.control", credit)]).unwrap_err();
    assert!(refused.contains("0 words into each packet"), "{refused}");
}

#[test]
fn a_context_is_read_in_the_series_and_written_during_the_run() {
    let written =
        format!("{PAIR}\n[[at]]\ntime = \"400us\"\nset = {{ \"transport.control.rate\" = \"1Gb/s\" }}\n");
    let results = run(&text(&written, &[]).unwrap());
    let mut rates = Vec::new();
    results.series.words(|at, flow, name, value| {
        if flow == 0 && name == "rate" {
            rates.push((at.as_ps() / 100_000_000, value));
        }
    });
    assert_eq!(&rates[..4], [(1, rates[0].1), (2, rates[1].1), (3, rates[2].1), (4, 1_000_000)]);
    assert!(rates[2].1 > 1_500_000 && rates[4].1 > 1_000_000, "{rates:?}");
}

#[test]
fn what_a_program_lacks_is_said_where_it_was_named() {
    let refused = |control: &str| text(PAIR, &[("transport.control", control)]).unwrap_err();
    let cases = [
        (r#"{ law = "program" }"#, "`program` needs the key `elf`"),
        (r#"{ law = "program", elf = "nowhere.elf" }"#, "there is no file nowhere.elf"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", preset = "hpcc" }"#, "no key `preset`"),
        (
            r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { credit = 1 } }"#,
            "its context has `link`",
        ),
        (
            r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { rate = "fast" } }"#,
            "a word is a number",
        ),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", fallback = "homa" }"#, "cannot take over"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", fallback = "dcqn" }"#, "there is no law `dcqn`"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", cycles = 20 }"#, "more than 20 cycles"),
        (r#"{ law = "program", elf = "tests/programs.rs" }"#, "not an ELF file"),
        (r#"{ law = "program", elf = "../../control/tests/images/faults.elf" }"#, "faults.c:"),
        (r#"{ law = "programme" }"#, "`program`"),
    ];
    for (control, says) in cases {
        let refused = refused(control);
        assert!(refused.contains(says), "{control}: {refused}");
    }
    let standard = text(
        PAIR,
        &[
            ("transport.control", r#"{ law = "program", elf = "firmware/credit.elf" }"#),
            ("transport.layout", "standard"),
        ],
    );
    assert!(standard.unwrap_err().contains("puts 1 words"));
}
