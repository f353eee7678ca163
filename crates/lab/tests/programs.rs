//! Programs for a core as congestion control of whole runs.

use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::Span;
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
    let failure = tally.first().unwrap().to_string();
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
    assert_eq!(
        results.controls,
        ["program elf=../../control/tests/images/other.elf, firmware/dcqcn.elf from 1ms"]
    );
    // Before, nothing heeded marks; after it, flows were notified of them and slowed down.
    assert!(program.tally.events[1] > 100 && results.flows.iter().any(|flow| flow.cnps > 0));
    // A header of another length cannot be put on packets whose layout stands.
    let refused = text(&replaced, &[("transport.control", credit)]).unwrap_err();
    assert!(refused.contains("0 words into each packet"), "{refused}");
}

#[test]
fn a_program_is_replaced_for_one_flow_alone() {
    let timely = at("1ms", "elf", "firmware/timely.elf").replace("set", "flow = \"a\"\nset");
    for nic in ["ideal", "swcc"] {
        // What each program alone has is written afterwards, and so is what the first had before.
        let written = format!("{PAIR}{timely}{}{}", at("1500us", "t_low", "40us"), at("1600us", "g", "1/32"));
        let results = run(&text(&written, &[("nic.model", nic)]).unwrap());
        assert!(results.warnings.is_empty(), "{nic}: {:?}", results.warnings);
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let mut timed = Vec::new();
        results.series.words(|at, flow, name, _| {
            if name == "prev_rtt" {
                timed.push((flow, at.as_ps() >= 1_000_000_000));
            }
        });
        assert!(timed.len() > 10 && timed.iter().all(|seen| *seen == (0, true)), "{nic}: {timed:?}");
        let [program] = &results.programs[..] else { panic!("{nic}: one control") };
        assert_eq!((program.elf.as_str(), program.tally.replaced), ("firmware/dcqcn.elf", 1), "{nic}");
        assert!(results.flows[1].cnps > 0, "{nic}: the other heeds marks as before");
    }
    // It may come back, and then be replaced with all others.
    let back = at("1500us", "elf", "firmware/dcqcn.elf").replace("set", "flow = \"a\"\nset");
    let again = format!("{PAIR}{timely}{back}{}", at("2ms", "elf", "firmware/swift.elf"));
    let results = run(&text(&again, &[]).unwrap());
    assert!(results.warnings.is_empty(), "{:?}", results.warnings);
    let mut last = std::collections::BTreeMap::<u32, (u64, Vec<&str>)>::new();
    results.series.words(|at, flow, name, _| {
        let seen = last.entry(flow).or_default();
        if seen.0 != at.as_ps() {
            *seen = (at.as_ps(), Vec::new());
        }
        seen.1.push(name);
    });
    assert!(last.len() == 2 && last.values().all(|(_, names)| names.contains(&"cwnd")), "{last:?}");
}

#[test]
fn only_a_flow_that_runs_a_program_has_it_replaced() {
    let timely = at("1ms", "elf", "firmware/timely.elf").replace("set", "flow = \"b\"\nset");
    let refused = |more: &[(&str, &str)]| text(&format!("{PAIR}{timely}"), more).unwrap_err();
    let native = refused(&[("traffic.0.flows.1.control", "{ law = \"timely\" }")]);
    assert!(native.contains("flow `b` runs no program"), "{native}");
    // What other flows run is not asked: their headers may be of any length.
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "64KiB" } }"#;
    let layout = ("transport.layout", "{ time = false, words = 1 }");
    let other = text(&format!("{PAIR}{timely}"), &[layout, ("traffic.0.flows.0.control", credit)]).unwrap();
    let results = run(&other);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let replaced: Vec<_> = results.programs.iter().map(|program| program.tally.replaced).collect();
    assert_eq!(replaced, [1, 0], "{:?}", results.programs);
    let own = refused(&[layout, ("traffic.0.flows.1.control", credit)]);
    assert!(own.contains("0 words into each packet"), "{own}");
    // A flow that is over has nothing to replace, which is told.
    let late = timely.replace("1ms", "900ms");
    let results = run(&text(&format!("{PAIR}{late}"), &[]).unwrap());
    assert!(results.warnings.len() == 1, "{:?}", results.warnings);
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
fn homas_program_says_how_far_messages_are_granted() {
    let run_with = |control: &str| {
        let results =
            run(&text(PAIR, &[("transport.control", control), ("transport.timeout", "20ms")]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let queue = results.switches.iter().map(|switch| switch.max_buffer_bytes).max().unwrap();
        (flows(results), queue)
    };
    let coded = |ahead: &str| {
        run_with(&format!(
            r#"{{ law = "program", elf = "firmware/homa.elf", context = {{ ahead = "{ahead}" }} }}"#
        ))
    };
    let native = |ahead: &str| run_with(&format!(r#"{{ law = "homa", ahead = "{ahead}" }}"#));
    let (little, much) = (coded("10KB"), coded("400KB"));
    assert_eq!((&little, &much), (&native("10KB"), &native("400KB")), "the law in Rust says the same");
    // The queue takes in twice what it lets out: half of what both may send at once lies there, 40 KB each at the begin.
    assert!(
        (40_000..60_000).contains(&little.1) && (400_000..600_000).contains(&much.1),
        "{little:?} {much:?}"
    );
}

#[test]
fn what_instructions_take_is_the_nics_to_say() {
    let measured = |costs: &str, own: &str| {
        let control = format!("{{ law = \"program\", elf = \"firmware/dcqcn.elf\"{own} }}");
        let with = format!("{{ cores = {{ costs = {{ {costs} }} }} }}");
        let overrides = [("nic.model", "swcc"), ("nic.with", with.as_str()), ("transport.control", &control)];
        let results = run(&text(&PAIR.replace("4MB", "400KB"), &overrides).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let tally = results.programs[0].tally.clone();
        (tally.cycles, tally.events, flows(results))
    };
    let mini = measured("alu = 1, load = 2, store = 1, branch_untaken = 1, branch_taken = 2, jump = 2", "");
    let rest = "jump_register = 2, multiply = 1, divide = 34, fence = 1";
    assert_eq!(measured(rest, ""), mini, "what is left out is riscv-mini's");
    // What an event takes in the mean: cores that are slower do not hear of the same events.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let mean = |costs, own| {
        let (cycles, events, _) = measured(costs, own);
        cycles[0] as f64 / events[0] as f64
    };
    let usual = mean(rest, "");
    for slower in ["alu = 5", "load = 50", "branch_untaken = 20", "branch_taken = 20"] {
        assert!(mean(slower, "") > usual + 2.0, "{slower}: {usual}");
    }
    // A cost of registers that the program's own key says leaves the others as they are.
    assert!(mean("alu = 5", ", csr = 1") > mean("alu = 1", ", csr = 1") + 2.0);
}

/// A register that is written during the run.
fn at(time: &str, register: &str, value: &str) -> String {
    format!("\n[[at]]\ntime = \"{time}\"\nset = {{ \"transport.control.{register}\" = \"{value}\" }}\n")
}

#[test]
fn registers_have_the_names_of_the_program_that_is_in_force() {
    let replaced = at("1ms", "elf", "firmware/dcqcn.elf");
    let timely = control("firmware/timely.elf");
    let written = format!("{PAIR}{replaced}{}", at("1500us", "target", "1Gb/s"));
    let results = run(&text(&written, &[("transport.control", &timely)]).unwrap());
    assert!(results.warnings.is_empty(), "{:?}", results.warnings);
    let (mut before, mut after, mut set) = (Vec::new(), Vec::new(), Vec::new());
    results.series.words(|at, _, name, value| {
        let names = if at.as_ps() < 1_000_000_000 { &mut before } else { &mut after };
        names.push(name);
        if name == "target" && at.as_ps() == 1_500_000_000 {
            set.push(value);
        }
    });
    assert!(before.contains(&"prev_rtt") && !before.contains(&"target"), "{before:?}");
    assert!(after.contains(&"target") && !after.contains(&"prev_rtt"), "{after:?}");
    assert_eq!(set, [1_000_000; 2]);
    // What the program in force lacks is known before the run.
    for (register, time) in [("target", "500us"), ("prev_rtt", "2ms")] {
        let wrong = format!("{PAIR}{replaced}{}", at(time, register, "5"));
        let refused = text(&wrong, &[("transport.control", &timely)]).unwrap_err();
        assert!(refused.contains(register), "{refused}");
    }
}

#[test]
fn a_write_that_is_lost_is_told() {
    // The program is stopped at the flows' first packets: they run the fallback law.
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "100B" } }"#;
    let times = ["1ms", "900ms", "950ms"].map(|time| at(time, "limit", "5")).concat();
    let results = run(&text(&format!("{PAIR}{times}"), &[("transport.control", credit)]).unwrap());
    let whys = ["2 of 2 flows run the fallback law", "no flow is under way", "the run was over after "];
    assert_eq!(results.warnings.len(), whys.len(), "{:?}", results.warnings);
    let mut summary = Vec::new();
    roci_lab::output::summary::write(&mut summary, &results).unwrap();
    let summary = String::from_utf8(summary).unwrap();
    for (warning, why) in results.warnings.iter().zip(whys) {
        assert!(warning.contains("transport.control.limit") && warning.contains(why), "{warning}");
        assert!(summary.contains(warning), "{summary}");
    }
    let told = run(&text(PAIR, &[("transport.control", credit)]).unwrap());
    assert!(told.warnings.is_empty(), "{:?}", told.warnings);
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
fn packets_are_stamped_as_they_leave_and_answers_echo_that() {
    let stamps = r#"{ law = "program", elf = "../../control/tests/images/stamps.elf" }"#;
    let layout = ("transport.layout", "{ words = 1, time = true }");
    for nic in ["ideal", "swcc"] {
        let over = [("transport.control", stamps), layout, ("nic.model", nic), ("switch.ecn", "false")];
        let results = run(&text(PAIR, &over).unwrap());
        let mut last = std::collections::BTreeMap::new();
        let mut least = u32::MAX;
        results.series.words(|_, flow, name, value| {
            last.insert((flow, name.to_owned()), value);
            if name == "delay" && value > 0 {
                least = least.min(value);
            }
        });
        let word = |flow: u32, name: &str| last[&(flow, name.to_owned())];
        for flow in 0..2 {
            assert!(word(flow, "heard") > 2000, "{nic}: {last:?}");
            assert_eq!(word(flow, "differ"), 0, "{nic}: {last:?}");
        }
        // Two links of 1 µs, and two frames of 4 KB at 10 Gb/s; queues come on top.
        assert!((2_000 + 2 * 800..100_000_000).contains(&least), "{nic}: {least} ns");
    }
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
            "its context and its parameters are `link`",
        ),
        (r#"{ law = "program", elf = "firmware/dcqcn.elf", context = { rate = "fast" } }"#, "it is a number"),
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

/// NICs whose cores run programs, and one that runs them in no time.
const NICS: [&str; 4] = ["swcc", "bluefield3", "soft-roce", "ideal"];

fn control(elf: &str) -> String {
    format!("{{ law = \"program\", elf = \"{elf}\" }}")
}

#[test]
fn programs_run_on_nics_with_cores() {
    for (nic, elf) in NICS.iter().flat_map(|nic| [(nic, "firmware/dcqcn.elf"), (nic, "firmware/paced.elf")]) {
        let results = run(&text(PAIR, &[("transport.control", &control(elf)), ("nic.model", nic)]).unwrap());
        let done = results.flows.iter().filter(|flow| flow.status == FlowStatus::OK).count();
        assert_eq!(done, 2, "{nic}, {elf}: {:?}", results.flows);
        let tally = &results.programs[0].tally;
        assert_eq!(tally.fallen(), 0, "{nic}, {elf}: {tally:?}");
        // Soft-RoCE is too slow for a queue to be marked; what is not on the cores hears of nothing then.
        let hears = *nic != "soft-roce" || elf.contains("paced");
        assert!(tally.events[1] > 100 && (tally.events[0] > 100 || !hears), "{nic}, {elf}: {tally:?}");
        let cores = results.hosts.iter().filter_map(|host| Some(host.nic.as_ref()?.cores));
        let (sends, receives) =
            cores.fold((0, 0), |(sends, receives), cores| (sends + cores.sends, receives + cores.receives));
        if *nic == "ideal" {
            assert_eq!((sends, receives), (0, 0));
        } else {
            // A core hears of each event that its program is told of, timers that run out with it apart.
            assert_eq!(sends, tally.events[1], "{nic}, {elf}");
            assert!(receives > 0 || !hears, "{nic}, {elf}");
        }
    }
}

#[test]
fn timers_that_run_out_together_are_events_of_a_program_in_one_turn_of_its_core() {
    let dcqcn = control("firmware/dcqcn.elf");
    let results = run(&text(PAIR, &[("transport.control", &dcqcn), ("nic.model", "swcc")]).unwrap());
    let tally = &results.programs[0].tally;
    let cores = results.hosts.iter().filter_map(|host| Some(host.nic.as_ref()?.cores));
    let (turns, cycles) =
        cores.fold((0, 0), |(turns, cycles), cores| (turns + cores.receives, cycles + cores.cycles[1]));
    assert!(turns > 100 && tally.events[0] > turns + 100, "{tally:?}, {turns} turns");
    assert_eq!(cycles, tally.cycles[0], "the cycles of all of them count");
}

#[test]
fn a_packet_that_waits_for_a_timer_goes_when_it_runs_out() {
    let small = PAIR.replace("4MB", "40KB");
    for nic in NICS {
        let waits = control("../../control/tests/images/waits.elf");
        let results = run(&text(&small, &[("transport.control", &waits), ("nic.model", nic)]).unwrap());
        for flow in &results.flows {
            assert_eq!(flow.status, FlowStatus::OK, "{nic}: {flow:?}");
            // Each packet of one KiB or more waits for ten microseconds, and for not much more.
            let fct = flow.fct().unwrap();
            assert!(fct > Span::from_micros(90) && fct < Span::from_millis(2), "{nic}: {fct}");
        }
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}");
    }
}

#[test]
fn a_credit_that_lets_nothing_go_is_found_out() {
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "100B" } }"#;
    let small = PAIR.replace("4MB", "40KB");
    // Where packets come back, after many rounds; where they do not, at once.
    for (nic, says) in [("swcc", "LoopBacks in a row"), ("ideal", "nothing in flight and no timer armed")] {
        let results = run(&text(&small, &[("transport.control", credit), ("nic.model", nic)]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let program = &results.programs[0];
        assert_eq!((program.tally.overruns, program.tally.fallen()), (2, 2), "{nic}");
        let told = program.failures.iter().map(|(host, fault)| format!("{}: {fault}", results.host(*host)));
        let told: Vec<_> = told.collect();
        assert!(told[0].starts_with("h0: send at ") && told[0].contains(says), "{nic}: {told:?}");
        assert!(told[1].starts_with("h1: send at "), "{nic}: {told:?}");
    }
}

#[test]
fn a_program_that_waits_for_grants_is_replaced_within_a_message() {
    // Each flow is one message, and most of it has to be granted.
    let replaced = format!(
        "{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"firmware/homa.elf\" }}\n"
    );
    for nic in ["ideal", "swcc"] {
        let homa = control("firmware/homa.elf");
        let last = |scenario: &str| {
            let results = run(&text(scenario, &[("transport.control", &homa), ("nic.model", nic)]).unwrap());
            assert!(
                results.flows.iter().all(|flow| flow.status == FlowStatus::OK),
                "{nic}: {:?}",
                results.flows
            );
            (
                results.programs[0].tally.replaced,
                results.flows.iter().filter_map(|flow| flow.fct()).max().unwrap(),
            )
        };
        let ((never, usual), (once, later)) = (last(PAIR), last(&replaced));
        assert_eq!((never, once), (0, 1));
        assert!(later < usual + usual / 10, "{nic}: {later}, and {usual} without");
    }
}

#[test]
fn a_parameter_is_written_during_the_run() {
    let rates = |flow: &str| {
        // Rates rise by a hundredth of what they did, after a cut.
        let written = format!(
            "{PAIR}\n[[at]]\ntime = \"200us\"\n{flow}set = {{ \"transport.control.rmin\" = \"3Gb/s\", \
             \"transport.control.g\" = \"1\" }}\n"
        );
        let results = run(&text(&written, &[]).unwrap());
        assert_eq!(results.programs[0].tally.fallen(), 0);
        let mut least = [u32::MAX; 2];
        results.series.words(|at, flow, name, value| {
            if name == "rate" && at.as_ps() > 1_000_000_000 {
                let least = &mut least[flow as usize];
                *least = value.min(*least);
            }
        });
        (least, results.programs[0].tally.events)
    };
    let (both, events) = rates("");
    assert!(both.iter().all(|least| *least >= 3_000_000), "no cut goes below the new minimum: {both:?}");
    let (one, other_events) = rates("flow = \"a\"\n");
    assert!(one[0] >= 3_000_000 && one[1] < 3_000_000, "{one:?}");
    // A flow with a parameter of its own is counted with the others, and once.
    assert!(other_events[1].abs_diff(events[1]) < events[1] / 10, "{other_events:?} {events:?}");
    let wrong = format!("{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.g\" = 2 }}\n");
    let refused = text(&wrong, &[]).unwrap_err();
    assert!(refused.contains("`g` takes a fraction"), "{refused}");
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
fn what_a_program_set_ends_with_it() {
    // It lets 8 KiB go, slowly, and nothing more, whatever happens.
    let opening = control("../../control/tests/images/opening.elf");
    let replaced = format!(
        "{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"firmware/dcqcn.elf\" }}\n"
    );
    for nic in NICS {
        let results = run(&text(&replaced, &[("transport.control", &opening), ("nic.model", nic)]).unwrap());
        for flow in &results.flows {
            assert_eq!(flow.status, FlowStatus::OK, "{nic}: {flow:?}");
            assert!(flow.fct().unwrap() < Span::from_millis(200), "{nic}: {flow:?}");
        }
        assert_eq!(results.programs[0].tally.replaced, 1);
    }
}

#[test]
fn a_program_that_replaces_another_runs_on_the_same_cores() {
    let replaced = format!(
        "{PAIR}\n[[at]]\ntime = \"1ns\"\nset = {{ \"transport.control.elf\" = \"firmware/dcqcn.elf\" }}\n"
    );
    for nic in ["swcc", "bluefield3"] {
        let per_packet = |scenario: &str, elf: &str| {
            let results =
                run(&text(scenario, &[("transport.control", &control(elf)), ("nic.model", nic)]).unwrap());
            let tally = &results.programs[0].tally;
            (tally.replaced, tally.cycles[1] / tally.events[1])
        };
        let (once, cycles) = per_packet(&replaced, "../../control/tests/images/other.elf");
        assert_eq!((once, cycles), (1, per_packet(PAIR, "firmware/dcqcn.elf").1), "{nic}");
    }
}

#[test]
fn a_program_that_needs_what_packets_have_not_replaces_none() {
    let refused = |elf: &str, control: &str| {
        let replaced =
            format!("{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"{elf}\" }}\n");
        text(&replaced, &[("transport.control", control)]).unwrap_err()
    };
    let homa = refused("firmware/homa.elf", &control("firmware/dcqcn.elf"));
    assert!(homa.contains("waits for grants"), "{homa}");
    let dcqcn = refused("firmware/dcqcn.elf", &control("firmware/homa.elf"));
    assert!(dcqcn.contains("waits for no grants"), "{dcqcn}");
    let hpcc = refused("firmware/hpcc.elf", &control("firmware/dcqcn.elf"));
    assert!(hpcc.contains("reads telemetry") && hpcc.contains("switch.int"), "{hpcc}");
    // Within the cycles of riscv-mini's registers, but not of a NIC's whose registers stand in memory.
    let slow = format!(
        "{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"firmware/dcqcn.elf\" }}\n"
    );
    let other = r#"{ law = "program", elf = "../../control/tests/images/other.elf", cycles = 300 }"#;
    let scenario = text(&slow, &[("transport.control", other), ("nic.model", "bluefield3")]).unwrap();
    let failure = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_err().to_string();
    assert!(
        failure.contains("on these cores: firmware/dcqcn.elf") && failure.contains("300 cycles"),
        "{failure}"
    );
}

#[test]
fn parameters_are_set_by_name() {
    let finished = |more: &str| {
        let control =
            format!(r#"{{ law = "program", elf = "firmware/timely.elf", context = {{ {more} }} }}"#);
        let results = run(&text(PAIR, &[("transport.control", &control)]).unwrap());
        assert_eq!(results.programs[0].tally.fallen(), 0);
        results.flows.iter().map(|flow| flow.fct().unwrap()).max().unwrap()
    };
    let usual = finished("");
    assert_eq!(usual, finished("t_low = \"50us\", delta = \"10Mb/s\""), "these are the values anyway");
    // A target that no path can meet cuts the rate again and again.
    let slow = finished("t_low = \"1us\", t_high = \"2us\", min_rtt = \"1us\"");
    assert!(slow > usual * 2, "{slow} {usual}");
}

#[test]
fn recorded_events_are_heard_again() {
    use roci_lab::program::events::Events;
    use roci_lab::program::profile::Profile;
    use roci_lab::program::{Class, machine};
    let paced = include_bytes!("../../../firmware/paced.elf");
    let recorded = r#"{ law = "program", elf = "firmware/paced.elf", record = 1000000 }"#;
    let results = run(&text(PAIR, &[("transport.control", recorded), ("nic.model", "swcc")]).unwrap());
    let program = &results.programs[0];
    let events = Events::parse(&program.events).expect("it was written so");
    let profile = Profile::of_events(paced, machine("swcc").unwrap(), &[], &events).unwrap();
    let of = |class: Class| -> (u64, u64) {
        let refused = (class == Class::TRANSMIT).then_some(&profile.refused).into_iter().flatten();
        let histogram = profile.kinds.get(&class.0).into_iter().flatten().chain(refused);
        histogram.fold((0, 0), |(count, sum), (cycles, many)| (count + many, sum + cycles * many))
    };
    assert_eq!(of(Class::TRANSMIT), (program.tally.events[1], program.tally.cycles[1]));
    assert_eq!(profile.offered, program.tally.events[1]);
    // Some timers run out after the last event.
    let classes = profile.kinds.keys().filter(|class| **class != Class::TRANSMIT.0);
    let received = classes.fold(0, |sum, class| sum + of(Class(*class)).0);
    assert!(received <= program.tally.events[0] && received > program.tally.events[0] * 9 / 10);
    // The rest of what dcqcn.c hears was not recorded.
    let dcqcn = include_bytes!("../../../firmware/dcqcn.elf");
    let refused = Profile::of_events(dcqcn, machine("swcc").unwrap(), &[], &events).unwrap_err().to_string();
    assert!(refused.contains("it hears CE,ByteCounter, and of that nothing was recorded"), "{refused}");
    assert!(program.events.lines().nth(2).is_some_and(|line| line.contains(" link=10000000")));
}

#[test]
fn another_program_hears_what_was_recorded_if_that_is_all_it_hears() {
    use roci_lab::program::events::Events;
    use roci_lab::program::machine;
    use roci_lab::program::profile::Profile;
    let recorded = r#"{ law = "program", elf = "firmware/swift.elf", record = 1000000 }"#;
    let results = run(&text(PAIR, &[("transport.control", recorded), ("nic.model", "swcc")]).unwrap());
    let events = Events::parse(&results.programs[0].events).expect("it was written so");
    let of = |file: &[u8]| Profile::of_events(file, machine("swcc").unwrap(), &[], &events);
    let swift = of(include_bytes!("../../../firmware/swift.elf")).unwrap();
    let timely = of(include_bytes!("../../../firmware/timely.elf")).unwrap();
    assert_eq!((timely.offered, timely.sent), (swift.offered, swift.offered), "it lets all of them go");
    assert!(timely.kinds[&roci_lab::program::Class::ACK.0].values().sum::<u64>() > 1_000);
    let hpcc = of(include_bytes!("../../../firmware/hpcc.elf")).unwrap_err().to_string();
    assert!(hpcc.contains("it reads telemetry"), "{hpcc}");
}
