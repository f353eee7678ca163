//! `roci program` as a user meets it, and runs with programs: what is proved of them, and what is told of those that fail.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scratch;

use scratch::{SMALL, Scratch, text};
use std::fs;
use std::path::Path;

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
fn a_run_tells_what_the_check_warns_of_and_a_sweep_once() {
    let scratch = Scratch::new("program-warned");
    let unset = ours("crates/lab/tests/programs/unset.elf");
    let output = scratch.roci(&["program", "check", &unset, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let warnings = report[0]["warnings"].as_array().unwrap();
    let wanted: Vec<String> =
        warnings.iter().map(|it| format!("law: {unset}: {}", it.as_str().unwrap())).collect();
    assert_eq!(wanted.len(), 2, "{report}");
    let with = |elf: &str, more: &str| {
        format!("{SMALL}[transport]\ncontrol = {{ law = \"program\", elf = \"{elf}\"{more} }}\n")
    };
    scratch.scenario("law.toml", &with(&unset, ""));
    let told = |arguments: &[&str]| {
        let output = scratch.roci(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let of_program = |line: &&str| line.contains(".elf: ");
        text(&output.stderr).lines().filter(of_program).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&["run", "law.toml"]), wanted);
    assert_eq!(told(&["run", "law.toml", "--seeds", "1..3"]), wanted);
    assert_eq!(told(&["sweep", "law.toml", "--set", "nic.mtu=1024,4096", "--seeds", "1..2"]), wanted);
    assert!(told(&["run", "law.toml", "--quiet"]).is_empty());
    scratch.scenario("law.toml", &with(&unset, ", check = false"));
    assert!(told(&["run", "law.toml"]).is_empty(), "it is not to be checked");
    scratch.scenario("law.toml", &with("firmware/dcqcn.elf", ""));
    assert!(told(&["run", "law.toml"]).is_empty(), "nothing is wrong with it");
    let swept = format!("transport.control.elf=firmware/dcqcn.elf,{unset}");
    let of_second = told(&["sweep", "law.toml", "--set", &swept]);
    assert_eq!(of_second.len(), 2, "{of_second:?}");
    assert!(of_second[0].starts_with(&format!("law, transport.control.elf={unset}: {unset}: in recv(): ")));
    // Timers keep those cores busy that take time.
    scratch.scenario("law.toml", &with(&ours("crates/lab/tests/programs/hasty.elf"), ""));
    let hasty =
        |nic: &str| told(&["run", "law.toml", "--set", &format!("nic.model={nic}"), "--set", "stop=10us"]);
    let on_cores = hasty("swcc");
    assert!(
        on_cores.len() == 1 && on_cores[0].contains("hasty.c:15): arms a timer of 100 ns"),
        "{on_cores:?}"
    );
    assert!(hasty("ideal").is_empty());
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
fn an_event_that_is_answered_wrongly_is_told_and_is_found_among_those_recorded() {
    let scratch = Scratch::new("program-event");
    let unset = ours("crates/lab/tests/programs/unset.elf");
    let control = format!(
        "[transport]\ncontrol = {{ law = \"program\", elf = \"{unset}\", fallback = \"none\" }}\n[nic]\nmtu = 512\n"
    );
    scratch.scenario("unset.toml", &(SMALL.to_owned() + &control));
    let output = scratch.roci(&["run", "unset.toml"]);
    let printed = text(&output.stdout);
    let event = ", event 1, ACK, 0x";
    let why = "unset.c:19): eventType still is the event's class, ACK (0x20), for it was not set on this way: set it to Done or GenTxEvent \
               before postEvent";
    assert!(printed.contains(event) && printed.contains(why), "{printed}");
    assert!(
        printed.contains("to see it: `--set transport.control.record=100000` writes events.txt"),
        "{printed}"
    );
    let failure = &scratch.summary("out/unset/summary.json")["programs"][0]["failures"][0];
    assert_eq!((&failure["event"], &failure["event_number"]), (&"ACK".into(), &1.into()));
    // The line that it names stands in the recording, and the program fails with it again.
    let line =
        printed.split("the event is the line `").nth(1).and_then(|rest| rest.split(" …`").next()).unwrap();
    let recorded = scratch.roci(&["run", "unset.toml", "--set", "transport.control.record=100000"]);
    assert!(text(&recorded.stdout).contains(&format!(
        "there is events.txt beside the results, in which the event is the line `{line} …`"
    )));
    let events = text(&scratch.read("out/unset/events.txt"));
    assert_eq!(
        events.lines().filter(|event| event.starts_with(&format!("{line} "))).count(),
        1,
        "{line}: {events}"
    );
    let output = scratch.roci(&["program", "profile", &unset, "--events", "out/unset/events.txt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("it fails: recv at ") && text(&output.stderr).contains(why),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_no_c_library_gives_is_named_with_what_is_at_hand() {
    let scratch = Scratch::new("program-library");
    let law = "#define TracedPkts ACK\ntypedef struct { int qpn, opcode, pktLength, ecn; } PktHeader;\n\
               typedef struct { uint32_t rate, n[8]; } QPContext;\nint recv() {\n  Event e;\n  while (true) {\n    pollEventSync(&e);\n    \
               BODY\n    e.eventType = Done;\n    postEvent(&e);\n  }\n}\n";
    let refused = |body: &str| {
        fs::write(scratch.0.join("law.c"), law.replace("BODY", body)).unwrap();
        let output = scratch.roci(&["program", "build", "law.c"]);
        (output.status.code(), text(&output.stderr))
    };
    let (code, told) =
        refused("updateContext(e.context.rate, abs((int)e.now) + min(e.acked, 5)); printf(\"x\");");
    if told.contains("no cross compiler for RISC-V was found") {
        return assert_eq!(code, Some(2));
    }
    assert_eq!(code, Some(1));
    for name in ["abs", "min", "printf"] {
        assert!(told.contains(&format!("error: there is no function '{name}'")), "{told}");
        assert!(told.contains(&format!("what to do: in place of `{name}`: ")), "{told}");
    }
    assert!(
        told.contains("what to do: no C library runs on the cores; at hand are memset, memcpy,"),
        "{told}"
    );
    for noise in ["#include", "ld returned", "undefined reference", "program.h:"] {
        assert!(!told.contains(noise), "{noise}: {told}");
    }
    let (_, told) = refused("updateContext(e.context.n[e.now & 7], 5);");
    assert!(
        told.contains("law.c:8:5: error: `e.now&7` in updateContext(e.context.n[e.now&7], …) is a variable"),
        "{told}"
    );
    assert!(
        told.contains("what to do: name each word of `n` by a constant: `switch (e.now&7) { case 0:"),
        "{told}"
    );
    // What it says to do builds.
    let (code, told) = refused(
        "\n#pragma GCC unroll 8\nfor (uint32_t k = 0; k < 8; k++) if (k == (e.now&7)) updateContext(e.context.n[k], 5);",
    );
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = refused(
        "switch (e.now&7) { case 0: updateContext(e.context.n[0], 5); break; case 1: updateContext(e.context.n[1], 5); }",
    );
    assert_eq!(code, Some(0), "{told}");
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
