//! What we write, read by tools that are not ours: Chromium, tshark, pyarrow, and an ICRC checker that shares no code
//! with us; and what we simulate, simulated by ns-3. Run by `cargo test -p roci-cli --features outside-tools --test outside`; a tool that is not there fails the
//! test that needs it, with a word on how to get it.

#[path = "outside/chromium.rs"]
mod chromium;
#[path = "outside/layouts.rs"]
mod layouts;
#[path = "outside/ns3.rs"]
mod ns3;
mod page;
#[path = "outside/tools.rs"]
mod tools;

use chromium::{Look, look_at};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tools::{output_of, python_with_pyarrow, scratch};

/// Every operation, congestion, PAUSE and some damage on one small network; small enough that a capture of it is
/// checked packet by packet.
const SCENARIO: &str = include_str!("outside/scenario.toml");

/// Runs `roci` with `arguments`, which must succeed.
fn roci(arguments: &[&str]) {
    output_of(Command::new(env!("CARGO_BIN_EXE_roci")).args(arguments), "it is the program under test");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn scenario() -> PathBuf {
    let path = scratch().join("outside.toml");
    std::fs::write(&path, SCENARIO).expect("a scratch file");
    path
}

/// The results of one run of the scenario, made once for all tests.
fn results() -> &'static Path {
    static RESULTS: OnceLock<PathBuf> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let folder = scratch().join("run");
        roci(&["run", text(&scenario()), "--quiet", "--out", text(&folder)]);
        folder
    })
}

/// The captures among the results.
fn captures() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(results()).expect("a folder of results");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let captures: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "pcapng")).collect();
    assert!(!captures.is_empty(), "the scenario asks for a capture");
    captures
}

fn summary() -> serde_json::Value {
    let text = std::fs::read_to_string(results().join("summary.json")).expect("summary.json");
    serde_json::from_str(&text).expect("JSON")
}

/// The page draws itself without help from outside, at a laptop's width and at a telephone's.
fn assert_good(page: &Path, plots_min: usize) {
    for width in [1366, 390] {
        let Look { errors, requests, overflow, plots, tables } = look_at(page, width);
        assert_eq!(errors, Vec::<String>::new(), "errors in the console, {width} px wide");
        assert_eq!(requests, Vec::<String>::new(), "requests, {width} px wide");
        assert!(overflow <= 0, "{overflow} px too wide for {width} px");
        assert!(plots.len() >= plots_min, "{} plots", plots.len());
        for plot in plots {
            assert!(plot.points >= 2 && plot.lines > 0, "empty at {width} px: {plot:?}");
        }
        assert!(tables > 0, "no table with rows");
    }
}

#[test]
fn the_report_draws_itself_offline_at_every_width() {
    assert_good(&results().join("report.html"), 8);
}

#[test]
fn a_comparison_draws_itself_offline_at_every_width() {
    let folder = scratch().join("comparison");
    roci(&["compare", text(&scenario()), "--control", "dcqcn,none", "--quiet", "--out", text(&folder)]);
    assert_good(&folder.join("report.html"), 4);
}

#[test]
fn a_comparison_of_several_seeds_draws_a_band_around_each_line() {
    let folder = scratch().join("seeds");
    let seeds = ["--control", "dcqcn,none", "--seeds", "1..3", "--quiet", "--out", text(&folder)];
    roci(&[&["compare", text(&scenario())], &seeds[..]].concat());
    let page = folder.join("report.html");
    assert_good(&page, 4);
    for plot in look_at(&page, 1366).plots {
        assert_eq!((plot.lines, plot.bands), (2, 2), "{plot:?}");
    }
}

#[test]
fn tshark_knows_every_packet_and_warns_of_none() {
    let tshark = |arguments: &[&str], capture: &Path| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(capture).args(arguments);
        output_of(&mut command, "apt-get install tshark")
    };
    let mut pauses = 0;
    for capture in captures() {
        // 0x400000 is a note, 0x600000 a warning (Wireshark, epan/proto.h).
        let severe = ["-Y", "_ws.expert.severity >= 0x600000", "-T", "fields", "-e", "frame.number"];
        let warned = tshark(&[&severe[..], &["-e", "_ws.expert.message"]].concat(), &capture);
        assert_eq!(warned, "", "expert notes in {}", capture.display());
        let fields = ["_ws.col.Protocol", "_ws.col.Info", "infiniband.bth.opcode"].map(|name| ["-e", name]);
        let all = tshark(&[&["-T", "fields"], fields.as_flattened()].concat(), &capture);
        for line in all.lines() {
            let (rest, opcode) = line.rsplit_once('\t').expect("three fields");
            // tshark 4.0 takes a CNP's headers apart but has no name for its opcode.
            let named = !rest.contains("Unknown") || opcode == "129";
            let known = rest.starts_with("RRoCE\t") || rest.starts_with("MAC CTRL\t");
            assert!(known && named && !rest.contains("Malformed"), "{line}");
            pauses += usize::from(rest.starts_with("MAC CTRL\t"));
        }
        for operation in ["Send", "Write", "Read Request", "Fetch", "Acknowledge"] {
            assert!(all.contains(operation), "no {operation} in {}", capture.display());
        }
        let interfaces = tshark(&["-T", "fields", "-e", "frame.interface_name"], &capture);
        assert!(interfaces.lines().all(|name| name.contains('>')), "an interface without a name");
    }
    assert!(pauses > 0, "no PAUSE frame was captured");
}

#[test]
fn tshark_takes_no_short_send_for_another_protocol_where_it_is_told_not_to_guess() {
    let folder = scratch().join("short");
    let flow = |octets| format!("{{ src = \"h0\", dst = \"h1\", op = \"send\", size = \"{octets}B\" }}");
    let flows: Vec<String> = (1..=20).map(flow).collect();
    let path = scratch().join("short.toml");
    let scenario = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"10Gb/s\"\ndelay = \"1us\"\n[[traffic]]\nkind = \"flows\"\nflows = [{}]\n\
         [measure]\npcap = [\"h0\"]\n",
        flows.join(", ")
    );
    std::fs::write(&path, scenario).expect("a scratch file");
    roci(&["run", text(&path), "--quiet", "--out", text(&folder)]);
    let seen = |arguments: &[&str]| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(folder.join("capture.pcapng")).args(arguments);
        output_of(&mut command, "apt-get install tshark").lines().count()
    };
    let quiet = ["--disable-heuristic", "rpcrdma_infiniband"];
    assert_eq!(seen(&quiet), 40, "twenty messages and their acknowledgements");
    assert_eq!(seen(&[&quiet[..], &["-Y", "_ws.malformed"]].concat()), 0);
}

/// What the Lua dissector finds in `capture`: a line for each packet, with the values of `fields`.
fn dissect(capture: &Path, preferences: &[String], fields: &[String]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/rocinante.lua");
    command.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(capture);
    for preference in preferences {
        command.args(["-o", preference]);
    }
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark; to install it: apt-get install tshark");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaints.contains("Lua"), "{complaints}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// A field's value as tshark prints it: decimal, hexadecimal, or a word in its newer releases.
fn number(text: &str) -> u64 {
    match (text, text.strip_prefix("0x")) {
        ("True", _) => 1,
        ("False", _) => 0,
        (_, Some(digits)) => u64::from_str_radix(digits, 16).expect("hexadecimal digits"),
        (_, None) => text.parse().expect("a number"),
    }
}

#[test]
fn the_dissector_finds_in_every_layout_what_was_sent() {
    for layout in layouts::layouts_to_dissect() {
        let capture = scratch().join(format!("{layout}.pcap"));
        let sent = layouts::write_capture(layout, &capture);
        let names: BTreeSet<&str> = sent.iter().flat_map(|fields| fields.keys().copied()).collect();
        // Addresses are random, and tshark has its opinion of them: only complaints of the dissector count.
        let complaints = ["_ws.lua.error", "_ws.malformed", "rocinante.short", "rocinante.unknown"];
        let fields = names.iter().map(|name| format!("rocinante.{name}"));
        let fields: Vec<String> = complaints.map(str::to_owned).into_iter().chain(fields).collect();
        let found = dissect(&capture, &layouts::preferences(layout), &fields);
        assert!(sent.len() > 150, "{layout}: {} packets", sent.len());
        assert_eq!(found.len(), sent.len(), "{layout}");
        for (line, sent) in found.iter().zip(&sent) {
            let (complained, values) = line.split_at(complaints.len());
            assert_eq!(complained, [""; 4], "{layout}: {sent:?}");
            for (name, text) in names.iter().zip(values) {
                let found: Vec<u64> = text.split(';').filter(|text| !text.is_empty()).map(number).collect();
                let wanted = sent.get(name).cloned().unwrap_or_default();
                let unasked = wanted.is_empty() && ["homa.priority"].contains(name);
                assert!(found == wanted || unasked, "{layout}, {name}: {found:?} in {sent:?}");
            }
        }
    }
}

#[test]
fn preferences_that_the_dissector_does_not_understand_are_told() {
    let capture = scratch().join("preferences.pcap");
    let layout = layouts::layouts_to_dissect().into_iter().next().expect("a layout");
    layouts::write_capture(layout, &capture);
    let told = |preferences: &[&str]| {
        let preferences: Vec<String> = preferences.iter().map(|text| (*text).to_owned()).collect();
        let lines = dissect(&capture, &preferences, &["rocinante.preference".to_owned()]);
        lines.iter().filter(|line| !line[0].is_empty()).count() == lines.len()
    };
    assert!(told(&["rocinante.layout:xyz"]));
    assert!(told(&["rocinante.layout:cc", "rocinante.cc:foo"]));
    assert!(told(&["rocinante.qps:0x11"]));
    assert!(!told(&[
        "rocinante.layout:irn",
        "rocinante.cc:time,2",
        "rocinante.qps:0x11=cc(int,time,2); 3=irn"
    ]));
}

#[test]
fn the_dissector_takes_a_run_apart_without_a_complaint() {
    for (law, recovery) in [("dcqcn", "irn"), ("none", "srnic"), ("ndp", "ndp"), ("homa", "go-back-n")] {
        let layout = if law == "homa" { law } else { recovery };
        let folder = scratch().join(format!("layout-{layout}"));
        let recovery = format!("transport.recovery={recovery}");
        let control = format!("transport.control={law}");
        let scenario = scenario();
        let arguments = ["--set", &recovery, "--set", &control, "--quiet", "--out", text(&folder)];
        roci(&[&["run", text(&scenario)], &arguments[..]].concat());
        let fields = ["rocinante.layout", "_ws.expert.message", "_ws.lua.error", "udp.dstport"];
        let fields = fields.map(str::to_owned);
        let preference = [format!("rocinante.layout:{layout}")];
        let lines = dissect(&folder.join("capture.pcapng"), &preference, &fields);
        let wrong = |line: &&Vec<String>| !line[1].is_empty() || !line[2].is_empty();
        assert_eq!(lines.iter().find(wrong), None, "{layout}");
        let ours = lines.iter().filter(|line| line[0] == layout).count();
        let others = lines.iter().filter(|line| line[0] != layout && line[3] == "4791").count();
        assert!(ours > 10_000, "{layout}: {ours} packets of its own");
        assert!(others < 500, "{layout}: {others} packets that only a CNP can be");
    }
}

#[test]
fn the_dissector_names_notifications_in_the_list_of_packets() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/rocinante.lua");
    let script = format!("lua_script:{}", script.display());
    let capture = results().join("capture.pcapng");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &script, "-r", text(&capture), "-Y", "infiniband.bth.opcode == 0x81"]);
    let listed = output_of(&mut tshark, "tshark; to install it: apt-get install tshark");
    let packets: Vec<&str> = listed.lines().filter(|line| line.contains("RoCE")).collect();
    assert!(!packets.is_empty() && packets.iter().all(|line| line.contains(" CNP, QP 0x")), "{listed}");
}

#[test]
fn the_dissector_finds_the_times_and_words_of_a_runs_cc_header() {
    // A program whose receiver tells by a word of its own how long each packet of data was under way.
    let elf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../control/tests/images/stamps.elf");
    let scenario = format!(
        "[topology]\nkind = \"star\"\nhosts = 2\nrate = \"10Gb/s\"\ndelay = \"1us\"\n[transport]\n\
         layout = {{ words = 1, time = true }}\ncontrol = {{ law = \"program\", elf = \"{}\" }}\n\
         [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", op = \"write\", size = \"200KB\" }}]\n\
         [measure]\npcap = [\"h0\", \"h1\"]\n",
        text(&elf)
    );
    let (path, folder) = (scratch().join("cc.toml"), scratch().join("cc"));
    std::fs::write(&path, scenario).expect("a scratch file");
    roci(&["run", text(&path), "--quiet", "--out", text(&folder)]);
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/icrc_check.py");
    let mut command = Command::new("python3");
    command.arg(&checker).arg(folder.join("capture.pcapng")).args(["--cc-words", "3"]);
    let report = output_of(&mut command, "apt-get install python3");
    assert!(report.ends_with(" right, 0 wrong\n"), "time and one word: {report}");
    let names = ["layout", "opcode", "psn", "cc.sent", "cc.echoed", "cc.word"];
    let names = names.map(|name| format!("rocinante.{name}"));
    let others = ["frame.interface_name", "frame.time_relative", "_ws.expert.message"].map(str::to_owned);
    let preferences = ["rocinante.layout:cc", "rocinante.cc:time,1"].map(str::to_owned);
    let lines = dissect(&folder.join("capture.pcapng"), &preferences, &[&names[..], &others].concat());
    // Seconds with nine digits behind the point, since the first packet, which says itself when that was.
    let first = number(&lines[0][3]);
    let nanos = |text: &str| first + text.replace('.', "").parse::<u64>().expect("seconds");
    let mut data = BTreeMap::new();
    let (mut acknowledged, mut heard) = (0, 0);
    for line in &lines {
        let [layout, opcode, psn, sent, echoed, word, link, at, complaint] = &line[..] else {
            panic!("nine fields: {line:?}")
        };
        assert_eq!((layout.as_str(), complaint.as_str()), ("cc", ""), "{line:?}");
        let [psn, sent, echoed, word] = [psn, sent, echoed, word].map(|text| number(text));
        let (at, leaves_h0) = (nanos(at), link.starts_with("h0"));
        match (number(opcode) == 0x11, leaves_h0) {
            (false, true) => {
                assert_eq!((sent, echoed, word), (at, 0, 0), "{line:?}");
                data.insert(psn, (sent, None));
            }
            (false, false) => {
                let (left, arrived) = data.get_mut(&psn).expect("it has left h0");
                assert_eq!((sent, echoed, word), (*left, 0, 0), "{line:?}");
                *arrived = Some(at);
            }
            (true, here) => {
                let (left, arrived) = data[&psn];
                let arrived = arrived.expect("it has come to h1");
                assert_eq!((echoed, word), (left, arrived - left), "{line:?}");
                // An ACK is stamped where it leaves, and its times are not touched on the way.
                assert!(if here { sent < at } else { sent == at }, "{line:?}");
                acknowledged += u32::from(!here);
                heard += u32::from(here);
            }
        }
    }
    assert!(
        data.len() > 40 && data.len() == acknowledged as usize && acknowledged == heard,
        "{}",
        data.len()
    );
}

#[test]
fn a_single_queue_pair_can_have_a_layout_of_its_own() {
    let folder = scratch().join("layout-of-one");
    let scenario = scenario();
    let set = ["--set", "transport.recovery=irn", "--quiet", "--out", text(&folder)];
    roci(&[&["run", text(&scenario)], &set[..]].concat());
    let capture = folder.join("capture.pcapng");
    let fields = ["rocinante.qpn", "rocinante.layout"].map(str::to_owned);
    let all = dissect(&capture, &["rocinante.layout:irn".to_owned()], &fields);
    let one = all.iter().map(|line| &line[0]).find(|qpn| !qpn.is_empty()).expect("a packet").clone();
    let preferences = format!("rocinante.qps:7=srnic; {one} = irn; 9=cc(int,time,2)");
    let some = dissect(&capture, &[preferences], &fields);
    let expected = all.iter().filter(|line| line[0] == one).count();
    let ours: Vec<_> = some.iter().filter(|line| !line[0].is_empty()).collect();
    assert!(expected > 0 && expected < all.len());
    assert_eq!(ours.len(), expected);
    assert!(ours.iter().all(|line| line[0] == one && line[1] == "irn"));
}

#[test]
fn every_icrc_is_what_an_independent_checker_computes() {
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/icrc_check.py");
    for capture in captures() {
        let mut command = Command::new("python3");
        let report = output_of(command.arg(&checker).arg(&capture), "apt-get install python3");
        assert!(report.ends_with(" right, 0 wrong\n"), "{report}");
        for opcode in ["0x06", "0x0c", "0x11", "0x12", "0x81"] {
            assert!(report.contains(&format!("opcode {opcode}: ")), "no {opcode} in {report}");
        }
    }
}

#[test]
fn a_damaged_packet_has_a_wrong_icrc() {
    let folder = scratch().join("damaged");
    let scenario = scenario();
    roci(&["run", text(&scenario), "--quiet", "--out", text(&folder), "--set", "faults.corrupt=0.01"]);
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/icrc_check.py");
    // By itself, as the guide has it.
    let output = Command::new(&checker).arg(folder.join("capture.pcapng")).output().expect("python3");
    assert!(!output.status.success(), "the checker must find the damage");
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_short = |line: &str| line.starts_with("packet ") && line.contains(" octets: ") && line.len() < 80;
    assert!(!lines.is_empty() && lines.lines().all(is_short), "{lines}");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = report.lines().last().and_then(|line| line.split_whitespace().nth(2)?.parse::<u32>().ok());
    assert!(wrong.is_some_and(|wrong| wrong > 0), "{report}");
}

#[test]
fn the_series_is_a_table_that_data_frames_read() {
    let script = "
import sys, pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1])
print(','.join(f'{field.name}:{field.type}' for field in table.schema))
rows = table.to_pylist()
print(len(rows))
for kind, metric in sorted({(row['kind'], row['metric']) for row in rows}):
    print(kind, metric)
names = {row['name'] for row in rows if row['kind'] == 'flow'}
print(' '.join(sorted(names)))
";
    let mut command = Command::new(python_with_pyarrow());
    command.args(["-c", script]).arg(results().join("series.parquet"));
    let report = output_of(&mut command, "pip install pyarrow");
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines[0], "t_ps:int64,kind:string,name:string,metric:string,value:double");
    assert!(lines[1].parse::<usize>().is_ok_and(|rows| rows > 100), "{} rows", lines[1]);
    let metrics = ["alpha", "goodput", "rate", "target", "throughput"].map(|metric| format!("flow {metric}"));
    for metric in metrics.iter().map(String::as_str).chain(["queue bytes", "queue marks", "queue pauses"]) {
        assert!(lines.contains(&metric), "no {metric} in {report}");
    }
    let summary = summary();
    let flows = summary["flows"].as_array().expect("flows");
    let known = |name: &str| flows.iter().any(|flow| flow["name"] == name);
    let names: Vec<&str> = lines.last().expect("a line of names").split(' ').collect();
    assert!(names.iter().all(|name| known(name)), "{names:?}");
}

/// As a newcomer does: each block goes to its file, each command is given, and prints what the page says it prints.
#[test]
fn the_page_on_laws_of_ones_own_leads_to_a_plot() {
    let folder = scratch().join("own-law");
    std::fs::create_dir_all(&folder).expect("a scratch folder");
    let program = Path::new(env!("CARGO_BIN_EXE_roci")).parent().expect("it lies in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a search path"));
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        let both = format!("({command}) 2>&1");
        output_of(
            shell.args(["-c", &both]).current_dir(&folder).env("PATH", &path),
            "it is the program under test",
        )
    };
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a scratch file");
    let mut law = String::new();
    let mut commands = 0;
    for (kind, text) in page::blocks("own-law.md") {
        match kind.as_str() {
            "c" => {
                write("near.c", &text);
                law = text;
            }
            "toml" => write("near.toml", &text),
            "console" => {
                for part in text.split("$ ").skip(1) {
                    let (command, said) = part.split_once('\n').expect("a command ends its line");
                    let tries_others = command.contains("context.target");
                    if tries_others {
                        // As the text before it says, and back again behind it.
                        let variable = law.replace("#define TARGET 20000u", "uint32_t target = 20000;");
                        assert_ne!(variable, law, "the law has the constant that the page speaks of");
                        write("near.c", &variable.replace("TARGET", "target"));
                        shell("roci program build near.c");
                    }
                    let printed = shell(command);
                    for line in said.lines().filter(|line| !line.is_empty() && *line != "…") {
                        assert!(printed.contains(line), "{command} does not print {line:?}, but\n{printed}");
                    }
                    commands += 1;
                    if tries_others {
                        write("near.c", &law);
                        shell("roci program build near.c");
                    }
                }
            }
            _ => {}
        }
    }
    assert!(commands >= 9, "only {commands} commands were found");
    assert!(folder.join("out/near/report.html").exists());
}

/// A tree of switches with links of many lengths, whose rates send an octet in a whole number of ns.
fn tree() -> ns3::Network {
    let link = |(a, b, gbps, delay_ns)| ns3::Link { a, b, gbps, delay_ns };
    let links = [
        (0, 8, 8, 137),
        (1, 8, 8, 251),
        (2, 8, 4, 499),
        (3, 9, 8, 1_013),
        (4, 9, 4, 331),
        (5, 10, 2, 5_003),
        (6, 10, 8, 777),
        (7, 11, 8, 89),
        (8, 11, 4, 1_031),
        (9, 11, 8, 647),
        (10, 9, 4, 20_011),
    ];
    ns3::Network { hosts: 8, switches: 4, links: links.map(link).into() }
}

#[test]
fn frames_arrive_in_ns3_at_the_same_nanosecond() {
    let network = tree();
    let (mut at, mut random) = (0, 1_u64);
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut flow = |_| {
        at += 1 + draw(60_000);
        let (source, size) = (draw(8), 1 << draw(20));
        let (destination, size) = ((source + 1 + draw(7)) % 8, size + draw(size));
        format!(
            "{{ src = \"h{source}\", dst = \"h{destination}\", size = \"{size}B\", start = \"{at}ns\" }},\n"
        )
    };
    let flows: String = (0..600).map(&mut flow).collect();
    let switch = "[switch]\npfc = false\nbuffer = \"1GB\"\nalpha = 1024\necn = { step = \"30KB\" }\n";
    let transport = "[transport]\ncontrol = \"dctcp\"\n[[traffic]]\nkind = \"flows\"\nflows = [\n";
    let text_of = [&network.scenario(), switch, transport, &flows, "]\n", &network.capture()].concat();
    let (path, folder) = (scratch().join("carried.toml"), scratch().join("carried"));
    std::fs::write(&path, text_of).expect("a scratch file");
    roci(&["run", text(&path), "--quiet", "--out", text(&folder)]);
    let frames = ns3::frames(&folder.join("capture.pcapng"));
    let waited = frames.iter().map(|frame| frame.arrived - frame.sent).max();
    let ns3::Carried { arrived, hops, cpu_s } = ns3::carry(&network, &frames);
    println!(
        "{} frames, one of them {waited:?} ns under way; {hops} hops in {cpu_s} s of ns-3's",
        frames.len()
    );
    assert!(waited.is_some_and(|ns| ns > 400_000), "little has queued: {waited:?}");
    assert_eq!(frames.len(), arrived.len());
    let page = include_str!("../../../docs/guide/ns3.md");
    let told = format!("each of the {} {:03} arrives", frames.len() / 1000, frames.len() % 1000);
    assert!(page.contains(&told), "{told}");
    let differ = frames.iter().zip(&arrived).filter(|(frame, arrived)| frame.arrived != **arrived);
    assert_eq!(differ.count(), 0, "of {}", frames.len());
}
