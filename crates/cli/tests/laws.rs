//! Laws of one's own as their author meets them: what is warned of, and what a run tells of the cores that they ran on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod scratch;

use scratch::{SMALL, Scratch, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A file of this repository.
fn ours(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).to_string_lossy().into_owned()
}

/// A program that traces ACK and does `body` with each event, from line 7 on.
fn program(body: &str) -> String {
    format!(
        "#define TracedPkts ACK\ntypedef struct {{ int qpn, opcode, pktLength, ecn; }} PktHeader;\n\
         typedef struct {{ uint32_t rate, x; }} QPContext;\nint recv() {{\n  Event e;\n  while (true) {{\n    pollEventSync(&e);\n    \
         e.eventType = Done;\n    {body}\n    postEvent(&e);\n  }}\n}}\n"
    )
}

/// What `roci program build` says of a program with `body`; `None` where there is no cross compiler.
fn built(scratch: &Scratch, body: &str) -> Option<String> {
    fs::write(scratch.0.join("mine.c"), program(body)).unwrap();
    let output = scratch.roci(&["program", "build", "mine.c"]);
    if text(&output.stderr).contains("no cross compiler for RISC-V was found") {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Some(text(&output.stdout))
}

#[test]
fn what_is_assigned_and_lost_is_warned_of_by_its_line() {
    let scratch = Scratch::new("law-lost");
    let body = "#define ctx e.context\n    if (e.packet.ecn) ctx.x = 5;\n    updateContext(e.context.rate, e.context.x + 1);";
    let Some(told) = built(&scratch, body) else { return };
    let expected = "mine.c:10: warning: `e.context.x` is assigned without updateContext, so the queue pair does not keep it: \
                    write updateContext(e.context.x, …)\n";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(told.matches("warning").count(), 1, "{told}");
    let output = scratch.roci(&["program", "build", "mine.c", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["warnings"], expected);
}

#[test]
fn the_compiler_tells_of_an_index_beyond_a_static_array() {
    let scratch = Scratch::new("law-beyond");
    let Some(told) = built(&scratch, "static uint32_t seen[8];\n    seen[9] += 1;") else { return };
    assert!(told.contains("array subscript 9 is above array bounds"), "{told}");
    let Some(told) = built(&scratch, "static uint32_t seen[8];\n    seen[7] += 1;") else { return };
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn what_does_not_compile_is_in_the_report_too() {
    let scratch = Scratch::new("law-errors");
    let Some(_) = built(&scratch, "setRate(1);") else { return };
    for (text, code, compiles) in [(program("setRate(x);"), 1, true), ("\x7fELF".to_owned(), 2, false)] {
        fs::write(scratch.0.join("mine.c"), text).unwrap();
        let output = scratch.roci(&["program", "build", "mine.c", "--json"]);
        assert_eq!(output.status.code(), Some(code));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let errors = report["errors"].as_str().unwrap();
        assert!(
            errors.contains(if compiles { "error: 'x' undeclared" } else { "it is an image already" }),
            "{errors}"
        );
        assert!(report["image"].is_null());
        assert_eq!(report["compiler"].is_string(), compiles);
    }
}

#[test]
fn words_of_context_that_a_profile_cannot_begin_with_are_a_wrong_request() {
    let scratch = Scratch::new("law-context");
    for (word, why) in [
        ("total_credit=lots", "context: "),
        ("totl_credit=64KiB", "context: "),
        ("total_credit", "this sets nothing; write word=value, such as total_credit=64KiB"),
    ] {
        let output = scratch.roci(&["program", "profile", "firmware/credit.elf", "--context", word]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why) && !told.contains("it fails"), "{told}");
    }
}

#[test]
fn a_field_that_is_no_integer_is_not_written() {
    let scratch = Scratch::new("law-float");
    let Some(_) = built(&scratch, "updateContext(e.context.rate, e.acked);") else { return };
    for (field, is_built) in [("float", false), ("int32_t", true), ("enum { On }", true)] {
        let body = program("updateContext(e.context.x, e.acked / 2);");
        let body = body.replace("uint32_t rate, x;", &format!("{field} x;"));
        fs::write(scratch.0.join("mine.c"), body).unwrap();
        let output = scratch.roci(&["program", "build", "mine.c"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.success(), is_built, "{field}: {told}");
        assert!(is_built || told.contains("a field to write is an integer of 32 bits"), "{field}: {told}");
    }
}

#[test]
fn a_header_word_that_no_packet_has_is_not_written() {
    let scratch = Scratch::new("law-header");
    let Some(_) = built(&scratch, "setHeaderWord(4, e.acked);") else { return };
    // Behind the words of the header lie the registers of the event.
    fs::write(scratch.0.join("mine.c"), program("setHeaderWord(20, e.acked);")).unwrap();
    let output = scratch.roci(&["program", "build", "mine.c"]);
    let told = text(&output.stderr);
    assert!(told.contains("mine.c:9:") && told.contains("packets have header words 0 to 15"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_event_that_is_waited_for_and_never_comes_is_warned_of() {
    let scratch = Scratch::new("law-unheard");
    let body =
        "if (e.packet.opcode == Loss) setRate(100000);\n    if (e.packet.opcode == Timer) setRate(200000);";
    let Some(told) = built(&scratch, body) else { return };
    assert!(told.starts_with("mine.c:9: warning: TracedPkts has no Loss, so no event is one: "), "{told}");
    assert_eq!(told.matches("warning").count(), 1, "{told}");
}

#[test]
fn a_shipped_image_is_found_by_its_name_from_anywhere_as_a_run_finds_it() {
    let scratch = Scratch::new("law-shipped");
    let output = scratch.roci(&["program", "check", "firmware/swift.elf", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = scratch.roci(&["program", "profile", "firmware/swift.elf", "--packets", "100", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for command in ["check", "profile"] {
        let output = scratch.roci(&["program", command, "firmware/swyft.elf"]);
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        assert!(told.starts_with("firmware/swyft.elf: there is no such file here"), "{told}");
        assert!(told.contains("`roci program build`") && told.contains("`firmware/swift.elf`"), "{told}");
    }
    // A file of that name comes first.
    fs::create_dir(scratch.0.join("firmware")).unwrap();
    fs::copy(ours("firmware/dcqcn.elf"), scratch.0.join("firmware/swift.elf")).unwrap();
    let output = scratch.roci(&["program", "check", "firmware/swift.elf"]);
    assert!(text(&output.stdout).contains("ByteCounter"), "{}", text(&output.stdout));
    assert_eq!(scratch.files(), ["firmware/swift.elf"]);
}

#[test]
fn times_and_rates_are_by_the_clock_of_the_nics_cores() {
    let scratch = Scratch::new("law-clock");
    let clock = |nic: &str, more: &[&str]| {
        let arguments =
            ["program", "profile", "firmware/dcqcn.elf", "--packets", "100", "--json", "--nic", nic];
        let output = scratch.roci(&[&arguments[..], more].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["clock_hz"].as_u64().unwrap()
    };
    assert_eq!(clock("bluefield3", &[]), 1_800_000_000);
    assert_eq!(clock("bluefield3", &["--clock", "1GHz"]), 1_000_000_000);
    assert_eq!([clock("swcc", &[]), clock("riscv-mini", &[])], [250_000_000; 2]);
    fs::write(scratch.0.join("mine.toml"), "base = \"swcc\"\n[cores]\nclock = \"500MHz\"\n").unwrap();
    assert_eq!(clock("mine.toml", &[]), 500_000_000);
    let output = scratch.roci(&["program", "check", "firmware/dcqcn.elf", "--nic", "bluefield3"]);
    assert!(text(&output.stdout).contains("on cores of bluefield3 at 1800 MHz"), "{}", text(&output.stdout));
}

#[test]
fn what_decides_whether_cores_keep_up_is_shown_of_a_nic() {
    let scratch = Scratch::new("law-nic");
    fs::write(scratch.0.join("mine.toml"), "name = \"mine\"\nclock = \"100MHz\"\n[cores]\npairs = 2\n")
        .unwrap();
    for (nic, clock, queue, fifo) in [
        ("swcc", "250MHz", "64", "512KiB"),
        ("bluefield3", "1800MHz", "64", "512KiB"),
        ("mine.toml", "100MHz", "all", "unlimited"),
    ] {
        let output = scratch.roci(&["nic", "show", nic, "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let values = report["values"].as_array().unwrap();
        let value = |key: &str| values.iter().find(|value| value["key"] == key).expect(key)["value"].clone();
        assert_eq!(
            [value("cores.clock"), value("cores.queue"), value("receive.fifo")],
            [clock, queue, fifo],
            "{nic}"
        );
    }
    let output = scratch.roci(&["nic", "show", "cx6", "--json"]);
    assert!(!text(&output.stdout).contains("\"cores."), "it has none");
}

#[test]
fn cores_that_do_not_keep_up_are_told_of_with_their_clock_and_what_to_do() {
    let scratch = Scratch::new("law-slow");
    let law = "[transport]\ncontrol = { law = \"program\", elf = \"firmware/paced.elf\" }\n";
    let nic = "[nic]\nmodel = \"swcc\"\nmtu = 256\nwith = { cores = { queue = 4, clock = \"250MHz\" } }\n";
    scratch.scenario("fast.toml", &format!("{SMALL}{law}{nic}"));
    scratch.scenario("slow.toml", &format!("{SMALL}{law}{nic}").replace("250MHz", "2MHz"));
    let output = scratch.roci(&["run", "slow.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let told = "  warning: cores did not keep up with what arrived, and ";
    assert!(printed.contains(told), "{printed}");
    assert!(printed.contains("swcc, 8 pairs of cores at 2MHz, the busiest of them busy for "), "{printed}");
    assert!(
        printed.contains("`cores.pairs`")
            && printed.contains("`transport.ack_every`")
            && printed.contains("`roci program profile`"),
        "{printed}"
    );
    let page = text(&scratch.read("out/slow/report.html"));
    assert!(page.contains("Cores at their limit") && page.contains("8 pairs of cores at 2MHz"));
    let hosts = scratch.summary("out/slow/summary.json")["hosts"].clone();
    let cores = |name: &str| -> f64 {
        hosts.as_array().unwrap().iter().map(|host| host["nic"]["cores"][name].as_f64().unwrap()).sum()
    };
    assert!(cores("held_up") > 0.0 && cores("behind_s") > 0.0);
    assert!(cores("busiest_s") > 0.5 * cores("busiest_over_s") && cores("busiest_s") <= cores("busy_s"));
    // What is to be sent waits for its core as well, and no packet in a FIFO shows it.
    let larger =
        nic.replace("250MHz", "2MHz").replace("mtu = 256", "mtu = 1024").replace("queue = 4", "queue = 64");
    scratch.scenario("sending.toml", &format!("{SMALL}{law}{larger}"));
    let printed = text(&scratch.roci(&["run", "sending.toml"]).stdout);
    assert!(
        printed.contains("\n  cores were busy without a break, and may be what limits the rates\n"),
        "{printed}"
    );
    assert!(
        printed.contains("    h0: swcc, 8 pairs of cores at 2MHz, the busiest of them busy for "),
        "{printed}"
    );
    assert!(!printed.contains("packets waited"), "{printed}");
    let output = scratch.roci(&["run", "fast.toml"]);
    assert!(!text(&output.stdout).contains("cores "), "{}", text(&output.stdout));
    assert!(!text(&scratch.read("out/fast/report.html")).contains("Cores at their limit"));
}

#[test]
fn a_program_that_took_the_place_of_another_stands_beside_it() {
    let scratch = Scratch::new("law-replaced");
    let law = "[transport]\ncontrol = { law = \"program\", elf = \"firmware/timely.elf\" }\n";
    let at = "[[at]]\ntime = \"50us\"\nset = { \"transport.control.elf\" = \"firmware/swift.elf\" }\n";
    scratch.scenario("both.toml", &format!("{SMALL}{law}{at}"));
    scratch.scenario("one.toml", &format!("{SMALL}{law}"));
    let both = "program elf=firmware/timely.elf, firmware/swift.elf from 50us";
    let printed = text(&scratch.roci(&["run", "both.toml"]).stdout);
    assert_eq!(printed.matches(both).count(), 4, "of each flow: {printed}");
    assert_eq!(scratch.summary("out/both/summary.json")["flows"][0]["control"], both);
    assert!(text(&scratch.read("out/both/report.html")).contains(both));
    let printed = text(&scratch.roci(&["run", "one.toml"]).stdout);
    assert!(!printed.contains("control"), "there is but one: {printed}");
}

#[test]
fn flows_that_may_send_next_to_nothing_are_told_of_at_the_end_and_while_one_waits() {
    let scratch = Scratch::new("law-crawls");
    let law = format!(
        "[transport]\ncontrol = {{ law = \"program\", elf = \"{}\" }}\n",
        ours("crates/lab/tests/programs/rate_zero.elf")
    );
    let told = "warning: 4 of 4 flows under way at ";
    scratch.scenario("short.toml", &format!("stop = \"20ms\"\n{SMALL}{law}"));
    let output = scratch.roci(&["run", "short.toml"]);
    let printed = text(&output.stdout);
    assert!(printed.contains(&format!("{told}20ms may send next to nothing: `")), "{printed}");
    assert!(
        printed.contains("at 1 kb/s, for which a rate of 0 is taken too. Have the law keep a least rate\n"),
        "{printed}"
    );
    assert_eq!(text(&output.stderr), "");
    assert!(text(&scratch.read("out/short/report.html")).contains("may send next to nothing"));
    scratch.scenario("long.toml", &format!("stop = \"3s\"\n{SMALL}{law}"));
    let output = scratch.roci(&["run", "long.toml"]);
    assert!(text(&output.stderr).starts_with(&format!("long: {told}1s ")), "{}", text(&output.stderr));
    let warnings = scratch.summary("out/long/summary.json")["warnings"].clone();
    assert_eq!(warnings.as_array().map(Vec::len), Some(1), "{warnings}");
    assert_eq!(text(&scratch.roci(&["run", "long.toml", "--quiet"]).stderr), "");
}
