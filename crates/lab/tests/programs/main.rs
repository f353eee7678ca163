//! Programs for a core as congestion control of whole runs.

mod nics;
mod packets;
mod recorded;
mod replaced;
mod settings;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other tests look at more")]
mod support;
mod twins;

use roci_lab::results::series::Metric;
use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use std::path::Path;
use support::overrides;

const ADVCAM: &str = "../../scenarios/advcam-incast.toml";

fn scenario(file: &str, set: &[(&str, &str)]) -> Scenario {
    Scenario::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file), &overrides(set))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn text(text: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs.toml");
    Scenario::parse(text, &file.display().to_string(), &overrides(set)).map_err(|error| error.to_string())
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

/// A register that is written during the run.
fn at(time: &str, register: &str, value: &str) -> String {
    format!("\n[[at]]\ntime = \"{time}\"\nset = {{ \"transport.control.{register}\" = \"{value}\" }}\n")
}

fn control(elf: &str) -> String {
    format!("{{ law = \"program\", elf = \"{elf}\" }}")
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
    let failure = tally.first().unwrap().to_string();
    assert!(failure.contains("faults.c:") && failure.contains("breakpoint"), "{failure}");
}

#[test]
fn a_fallback_holds_back_though_the_program_had_no_word_for_marks() {
    let failing = |fallback: &str| {
        let control = format!(
            r#"{{ law = "program", elf = "tests/programs/store_outside.elf", check = false{fallback} }}"#
        );
        let results = run(&text(PAIR, &[("transport.control", &control)]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        assert_eq!(results.programs[0].tally.traps, 2, "with the senders' queue pairs alone");
        let queue = results.switches.iter().map(|switch| switch.max_buffer_bytes).max().unwrap();
        (results.flows.iter().map(|flow| flow.cnps).sum::<u32>(), queue)
    };
    let (none, unlimited) = failing(r#", fallback = "none""#);
    let (cnps, notified) = failing(r#", fallback = "dcqcn""#);
    let (usual, echoed) = failing("");
    assert!(none == 0 && cnps > 0 && usual == 0, "{none} {cnps} {usual}");
    assert!(notified < unlimited / 2 && echoed < unlimited / 2, "{unlimited} {notified} {echoed}");
}

#[test]
fn the_rate_of_a_program_is_the_one_in_force_whatever_its_words_are_called() {
    let rates = |control: &str| {
        let results = run(&text(PAIR, &[("transport.control", control), ("stop", "5ms")]).unwrap());
        let mut rates = Vec::new();
        results.series.rows(|reading| {
            if reading.metric == Metric::Rate {
                rates.push(reading.value);
            }
        });
        rates
    };
    // This one sets 1 Mb/s when it is opened, and has no word for it.
    let opening = rates(r#"{ law = "program", elf = "../../control/tests/images/opening.elf" }"#);
    assert!(opening.len() > 10 && opening.iter().all(|rate| *rate == 1e6), "{opening:?}");
    // This one paces itself, by LoopBack: what it calls `rate` is its own affair.
    assert_eq!(rates(r#"{ law = "program", elf = "firmware/paced.elf" }"#), [0.0; 0]);
    let twin = rates(r#"{ law = "program", elf = "firmware/dcqcn.elf" }"#);
    let native = rates(r#"{ law = "dcqcn" }"#);
    assert!(twin.len() > 10 && twin.iter().all(|rate| native.contains(rate)), "{twin:?} {native:?}");
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
fn credit_is_not_lost_with_packets() {
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "16KiB" } }"#;
    let lossy = format!("{PAIR}\n[faults]\nloss = 0.01\n");
    for nic in ["ideal", "swcc"] {
        let overrides = [("transport.control", credit), ("nic.model", nic), ("nic.mtu", "1024")];
        let results = run(&text(&lossy, &overrides).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        assert!(results.flows.iter().any(|flow| flow.retransmitted > 100), "{nic}: {:?}", results.flows);
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}");
        // Not more in flight than there is credit, once and once more after a loss, each packet with its headers.
        let queue = results.switches.iter().map(|switch| switch.max_buffer_bytes).max().unwrap();
        assert!(queue <= 4 * 16_384 * 12 / 10, "{nic}: {queue}");
    }
}

#[test]
fn packets_of_all_programs_are_charged_for_the_header_of_the_run() {
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "64KiB" } }"#;
    let own = ("traffic.0.flows.0.control", credit);
    // The one has a word of its own, the other none.
    let sent = |words: u64| {
        let layout = format!("{{ time = false, words = {words} }}");
        let more = [own, ("transport.layout", &layout), ("switch.ecn", "false")];
        let results = run(&text(PAIR, &more).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let of = |flow: usize| (results.flows[flow].packets, results.hosts[flow].tx_bytes);
        [of(0), of(1)]
    };
    for (one, three) in sent(1).into_iter().zip(sent(3)) {
        assert!(one.0 > 900 && one.0 == three.0, "as many packets: {one:?} {three:?}");
        assert_eq!(three.1 - one.1, one.0 * 2 * 4, "two words more on each");
    }
    let refused = text(PAIR, &[own]).unwrap_err();
    let says = ["puts 1 words of its own into each packet", "set `transport.layout = { words = 1 }`"];
    assert!(says.iter().all(|says| refused.contains(says)), "{refused}");
}

#[test]
fn what_a_program_lacks_is_said_where_it_was_named() {
    let refused = |control: &str| text(PAIR, &[("transport.control", control)]).unwrap_err();
    let cases = [
        (r#"{ law = "program" }"#, "`program` needs the key `elf`"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", context = 3 }"#, "`context` is no table"),
        (r#"{ law = "program", elf = "nowhere.elf" }"#, "there is no file `nowhere.elf`"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", preset = "hpcc" }"#, "no key `preset`"),
        (
            r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { credit = 1 } }"#,
            "its context and its parameters are `link`",
        ),
        (
            r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { rate = "fast" } }"#,
            "`rate` takes a rate, such",
        ),
        (
            r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { stage = -1 } }"#,
            "takes a whole number from 0 to 2^32 - 1",
        ),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", fallback = "homa" }"#, "cannot take over"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", fallback = "dcqn" }"#, "there is no law `dcqn`"),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", cycles = 20 }"#, "more than 20 cycles"),
        (r#"{ law = "program", elf = "tests/programs/main.rs" }"#, "not an ELF file"),
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
