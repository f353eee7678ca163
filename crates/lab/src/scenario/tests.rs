mod refused;

use super::*;
use crate::traffic::spec::{Op, Repeat};
use insta::assert_snapshot;
use proptest::prelude::*;
use roci_switch::SwitchConfig;
use roci_switch::config::Headroom;
use roci_units::{Bytes, Ratio};

pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "test.toml", &[])
}

fn with(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    Scenario::parse(text, "test.toml", &overrides)
}

/// What the user sees.
fn refused(text: &str) -> String {
    parse(text).map(|scenario| scenario.name).expect_err("this scenario is wrong").to_string()
}

const DESIGN: &str = r#"
name = "advcam-incast"
seed = 1
stop = "300ms"

[topology]
kind = "graph"
hosts = ["rx", "s5", "s6"]
switches = ["root", "leaf2"]
links = [
  { a = "rx", b = "root", rate = "10Gb/s", delay = "1us" },
  { a = "root", b = "leaf2", rate = "10Gb/s", delay = "1us" },
  { a = "s5", b = "leaf2", rate = "10Gb/s", delay = "1us" },
  { a = "s6", b = "leaf2", rate = "10Gb/s", delay = "1us" },
]

[switch]
buffer = "12MB"
pfc = true
ecn = { kmin = "5KB", kmax = "200KB", pmax = 0.01 }

[nic]
model = "ideal"
mtu = 1024

[transport]
recovery = "go-back-n"
timeout = "500us"
retry = 7
rnr_retry = 7
ack_every = 1
control = { law = "dcqcn", preset = "sigcomm15", g = "1/256" }

[[traffic]]
kind = "flows"
flows = [
  { name = "a", src = "s5", dst = "rx", op = "write", size = "38MB", start = "0s" },
  { name = "b", src = "s6", dst = "rx", op = "write", size = "38MB", start = "0s", control = { law = "none" } },
]

[measure]
sample = "100us"
pcap = ["root"]
"#;

/// Four hosts around a switch, and what comes behind.
pub(super) fn star(rest: &str) -> String {
    format!("[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n{rest}")
}

pub(super) const PERMUTATION: &str = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";

#[test]
fn what_stands_beside_a_list_of_flows_holds_for_those_that_say_nothing() {
    let shared = [("traffic.0.control", "none"), ("traffic.0.op", "send"), ("traffic.0.priority", "5")];
    let scenario = with(DESIGN, &shared).unwrap();
    let Traffic::Flows(flows) = &scenario.traffic[0] else { panic!("flows") };
    assert_eq!((flows[0].common.op, flows[0].common.priority), (Op::Write, Some(5)), "it says what it does");
    assert_eq!(scenario.control(flows[0].common.control).law.value, "none");
    let scenario = with(DESIGN, &[("traffic.0.control", "{ preset = \"hpcc\" }")]).unwrap();
    let Traffic::Flows(flows) = &scenario.traffic[0] else { panic!("flows") };
    assert_eq!(scenario.control(flows[0].common.control).name(), "dcqcn preset=hpcc");
    assert_eq!(scenario.control(flows[1].common.control).name(), "none", "it has its own");
}

#[test]
fn a_flow_file_of_hpcc_s_simulator_says_who_sends_how_much_and_when() {
    let text = star("[[traffic]]\nkind = \"hpcc\"\nop = \"send\"\nfile = \"flows.txt\"\n");
    let files = &[("flows.txt", "2\n0 1 3 100 20000 2.0\n3 2 3 100 5000 2.5\n")];
    let scenario = Scenario::read(Source::new("test.toml", &text, &[]).with_files(files)).unwrap();
    let Traffic::Hpcc(hpcc) = &scenario.traffic[0] else { panic!("a flow file") };
    let flows: Vec<_> =
        hpcc.flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size.0, flow.priority)).collect();
    assert_eq!(flows, [(0, 1, 20_000, 3), (3, 2, 5_000, 3)]);
    assert_eq!((hpcc.common.op, hpcc.common.priority), (Op::Send, None));
    assert!(hpcc.flows[0].start < hpcc.flows[1].start);
}

#[test]
fn the_name_of_the_law_alone_keeps_its_settings() {
    let scenario = with(DESIGN, &[("transport.control", "dcqcn")]).unwrap();
    assert_eq!(scenario.transport.control.name(), "dcqcn preset=sigcomm15 g=1/256");
    let scenario = with(DESIGN, &[("transport.control", "{ law = \"dcqcn\" }")]).unwrap();
    assert_eq!(scenario.transport.control.settings.len(), 0, "a table replaces all of it");
    let scenario = with(DESIGN, &[("transport.control", "none")]).unwrap();
    assert_eq!(scenario.transport.control.name(), "none");
}

#[test]
fn a_table_that_names_no_law_has_the_one_of_its_recovery() {
    let text = |lines: &str| star(&format!("{PERMUTATION}[transport]\n{lines}"));
    for (recovery, key, name) in [
        ("ndp", ("initial_window", "28"), "ndp initial_window=28"),
        ("srnic", ("g", "1/8"), "dctcp preset=sigcomm10 g=1/8"),
        ("go-back-n", ("g", "1/8"), "dcqcn preset=sigcomm15 g=1/8"),
        ("irn", ("preset", "hpcc"), "dcqcn preset=hpcc"),
    ] {
        let plain = text(&format!("recovery = \"{recovery}\"\n"));
        let set = format!("transport.control.{}", key.0);
        let scenario = with(&plain, &[(&set, key.1)]).unwrap();
        assert_eq!(scenario.transport.control.name(), name);
        let own =
            plain.replace("[transport]", &format!("control = {{ {} = \"{}\" }}\n[transport]", key.0, key.1));
        assert_eq!(parse(&own).unwrap().controls[0].name(), name, "a flow's own");
    }
    let wrong = refused(&text("recovery = \"ndp\"\ncontrol = { rai = \"1Gb/s\" }\n"));
    assert!(
        wrong.contains("`ndp` has no key `rai`") && wrong.contains("so it is `ndp`, the recovery's own"),
        "{wrong}"
    );
    let named = refused(&text("control = { law = \"dcqcn\", initial_window = 3 }\n"));
    assert!(!named.contains("No `law` is named"), "{named}");
}

#[test]
fn a_law_that_is_given_as_a_recovery_is_told_to_be_one() {
    let given =
        |recovery: &str| refused(&star(&format!("{PERMUTATION}[transport]\nrecovery = \"{recovery}\"\n")));
    for (law, beside) in [("homa", "and leave `recovery` out"), ("swift", "and choose a recovery besides")] {
        let told = given(law);
        assert!(told.contains(&format!("there is no recovery `{law}`: `{law}` is a law")), "{told}");
        assert!(told.contains(&format!("set `transport.control = \"{law}\"` {beside}")), "{told}");
    }
    assert!(given("homer").contains("there is no recovery `homer`\n"), "{}", given("homer"));
    let both =
        refused(&star(&format!("{PERMUTATION}[transport]\nrecovery = \"sack\"\ncontrol = \"homa\"\n")));
    assert!(both.contains("this recovery does not work with Homa"), "{both}");
}

#[test]
fn the_scenario_of_the_guide_is_read() {
    let scenario = parse(DESIGN).unwrap();
    assert_eq!(scenario.name, "advcam-incast");
    assert_eq!(scenario.stop, Some(Span::from_millis(300)));
    assert_eq!(scenario.topology.graph.links.len(), 4);
    assert_eq!(scenario.transport.control.law.value, "dcqcn");
    let Traffic::Flows(flows) = &scenario.traffic[0] else { panic!("flows") };
    assert_eq!(flows[0].size, Bytes(38_000_000));
    assert_eq!(scenario.control(flows[0].common.control).law.value, "dcqcn");
    assert_eq!(scenario.control(flows[1].common.control).law.value, "none");
    assert_eq!(scenario.measure.pcap[0].value, "root");
}

#[test]
fn what_is_left_out_has_its_default() {
    let scenario = parse(&star(PERMUTATION)).unwrap();
    assert_eq!(scenario.name, "test");
    assert_eq!((scenario.seed, scenario.stop, scenario.start_jitter), (1, None, None));
    // A WRITE of 1024 octets has 78 around it.
    let mut switch = Switch::default();
    switch.config.max_frame = 1102;
    assert_eq!(scenario.switch, switch);
    assert_eq!(scenario.nic, Nic::default());
    assert_eq!(scenario.transport, Transport::default());
    assert_eq!(scenario.measure, Measure::default());
}

#[test]
fn an_acknowledgement_is_waited_for_longer_where_nothing_is_lost_or_homa_grants() {
    let timeout = |more: &str| parse(&star(&format!("{PERMUTATION}{more}"))).unwrap().transport.timeout;
    let (on, off) = ("[switch]\npfc = { alpha = 1 }\n", "[switch]\npfc = false\n");
    assert_eq!(timeout(on), Span::from_millis(16));
    assert_eq!(timeout(&format!("{on}[transport]\nretry = 3\n")), Span::from_millis(16));
    assert_eq!(timeout("[switch]\ntrimming = true\npfc = true\n"), Span::from_millis(16), "nothing to trim");
    for lossy in [
        off,
        "[switch]\ntrimming = true\n",
        "[[switch.on]]\nswitches = [\"s0\"]\npfc = false\n",
        "[faults]\nloss = 0.01\n",
        "[[faults.on]]\nlink = \"h0-s0\"\nloss = 0.01\n",
        "priority = 4\n",
        "[switch.classes]\npause = []\n",
    ] {
        assert_eq!(timeout(lossy), Span::from_micros(500), "{lossy}");
    }
    assert_eq!(timeout(&format!("{off}[transport]\ncontrol = \"homa\"\n")), Span::from_millis(10));
    assert_eq!(timeout(&format!("{on}[transport]\ntimeout = \"2ms\"\n")), Span::from_millis(2));
    assert_eq!(timeout("priority = 4\n[transport]\ntimeout = \"16ms\"\n"), Span::from_millis(16));
    assert_eq!(timeout("priority = 4\n[switch.classes]\npause = [3, 4]\n"), Span::from_millis(16));
}

#[test]
fn every_kind_of_topology_is_read() {
    let cases = [
        ("kind = \"star\"\nhosts = 4", 4),
        ("kind = \"dumbbell\"\nleft = 2\nright = 3\nbottleneck = \"40Gb/s\"", 5),
        ("kind = \"tree\"\nleaves = [2, 4, 2]\nuplink = \"10Gb/s\"", 9),
        ("kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\nfabric_rate = \"400Gb/s\"", 16),
        ("kind = \"fat-tree\"\nhosts = 128", 128),
        ("kind = \"fat-tree\"\nk = 4", 16),
        (
            "kind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\ncores = 4\nhosts_per_tor = 3",
            12,
        ),
    ];
    for (shape, hosts) in cases {
        let text = format!("[topology]\n{shape}\nrate = \"100Gb/s\"\ndelay = \"1us\"\n{PERMUTATION}");
        assert_eq!(parse(&text).unwrap().topology.graph.hosts.len(), hosts, "{shape}");
    }
}

#[test]
fn every_kind_of_traffic_is_read() {
    let text = star(
        r#"
[[traffic]]
kind = "closed-loop"
pairs = [["h0", "h1"], ["h2", "h3"]]
op = "read"
message = "64KB"
depth = 4
count = 100
[[traffic]]
kind = "closed-loop"
src = "h0"
dst = "h1"
op = "fetch-add"
count = 5
[[traffic]]
kind = "incast"
name = "burst"
senders = 3
size = "500KB"
load = "2%"
until = "10ms"
[[traffic]]
kind = "permutation"
size = "1MB"
priority = 2
[[traffic]]
kind = "all-to-all"
size = "1MB"
start = "1ms"
[[traffic]]
kind = "poisson"
sizes = "WebSearch"
load = 0.3
until = "10ms"
[[traffic]]
kind = "trigger"
hosts = ["h1", "h2"]
receiver = "h0"
size = "10KB"
rate = 10000
until = "10ms"
"#,
    );
    let scenario = parse(&text).unwrap();
    let kinds: Vec<&str> = scenario.traffic.iter().map(Traffic::kind).collect();
    assert_eq!(
        kinds,
        ["closed-loop", "closed-loop", "incast", "permutation", "all-to-all", "poisson", "trigger"]
    );
    assert_eq!(scenario.traffic_names, ["0", "1", "burst", "3", "4", "5", "6"]);
    let Traffic::ClosedLoop(atomics) = &scenario.traffic[1] else { panic!("closed loop") };
    assert_eq!((atomics.common.op, atomics.message), (Op::FetchAdd, Bytes(8)));
    let Traffic::Incast(incast) = &scenario.traffic[2] else { panic!("incast") };
    assert_eq!(incast.repeat, Repeat::Load(Ratio::new(1, 50)));
}

#[test]
fn thresholds_that_are_for_a_rate_are_scaled_for_ports_of_others() {
    let text = star(&format!(
        "[switch]\necn = {{ kmin = \"100KB\", kmax = \"400KB\", rate = \"25Gb/s\" }}\n[[switch.on]]\nswitches = [\"s0\"]\n\
         ecn = {{ kmin = \"50KB\" }}\n{PERMUTATION}"
    ));
    let scenario = parse(&text).unwrap();
    let lengths = |config: &SwitchConfig, gbps| {
        config.marking_at(BitsPerSec::from_gbps(gbps)).map(|red| (red.kmin.0, red.kmax.0))
    };
    assert_eq!(lengths(&scenario.switch.config, 25), Some((100_000, 400_000)));
    assert_eq!(lengths(&scenario.switch.config, 100), Some((400_000, 1_600_000)));
    let other = scenario.switch.config_of("s0", BitsPerSec::from_gbps(10));
    assert_eq!(lengths(other, 50), Some((100_000, 800_000)), "the rate is as in [switch]");
}

#[test]
fn switches_and_hosts_may_differ() {
    let text = star(&format!(
        "[switch]\nbuffer = \"2MB\"\nclasses = {{ data = 5 }}\n[[switch.on]]\nswitches = [\"s0\"]\npfc = {{ headroom = \"exact\" }}\n\
         ecn = {{ step = \"30KB\" }}\n[nic]\nmtu = 4096\n[[nic.on]]\nhosts = [\"h1\"]\nrx_fifo = \"64KB\"\n{PERMUTATION}"
    ));
    let scenario = parse(&text).unwrap();
    let other = scenario.switch.config_of("s0", BitsPerSec::from_gbps(10));
    assert_eq!(other.buffer, Bytes(2_000_000));
    let pfc = other.pfc.as_ref().unwrap();
    assert_eq!((pfc.headroom, pfc.classes), (Headroom::Exact, 1 << 5));
    assert_eq!(other.ecn.map(|red| (red.kmin, red.kmax)), Some((Bytes(30_000), Bytes(30_000))));
    assert_eq!(scenario.switch.config.ecn, Some(roci_switch::red::Red::default()));
    let nic = scenario.nic.config_of("h1");
    assert_eq!((nic.mtu, nic.rx_fifo), (4096, Some(Bytes(64_000))));
    assert_eq!(scenario.nic.config_of("h0").rx_fifo, None);
}

#[test]
fn faults_are_read_and_a_dash_in_a_name_is_no_trap() {
    let text = r#"
stop = "1ms"
[topology]
kind = "graph"
hosts = ["rack-1", "rack-2"]
switches = ["s-0"]
links = [
  { a = "rack-1", b = "s-0", rate = "10Gb/s", delay = "1us" },
  { a = "rack-2", b = "s-0", rate = "10Gb/s", delay = "1us" },
]
[[traffic]]
kind = "permutation"
size = "1MB"
[faults]
loss = "1%"
reorder = { share = 0.1, by = "5us" }
delay = "3us"
[[faults.on]]
link = "rack-1-s-0"
loss = { to_bad = 0.01, to_good = 0.5 }
[[faults.on]]
link = "s-0>rack-2"
from = "10us"
until = "20us"
flap = { up = "1us", down = "1us" }
pause_storm = { priority = 3 }
cnp = { threshold = "5Gb/s", window = "32us", cooldown = "100us" }
"#;
    let faults = parse(text).unwrap().faults;
    assert_eq!(faults.common.loss, faults::Loss::Bernoulli(Ratio::new(1, 100)));
    assert_eq!(faults.rules[0].ways, [(0, 0), (0, 2)]);
    assert_eq!(faults.rules[1].ways, [(1, 2)]);
    assert!(faults.rules[1].cnp.is_some());
    assert_eq!(faults.rules[1].faults.pause_storm, Some(faults::PauseStorm { priority: Some(3) }));
}

#[test]
fn a_rule_may_be_about_all_links_and_switches_that_are_called_alike() {
    let text = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 1
rate = "10Gb/s"
delay = "1us"
[[traffic]]
kind = "permutation"
size = "1MB"
[faults]
detect = "20us"
[[faults.on]]
link = "leaf*-spine1"
rate = "1Gb/s"
[[faults.on]]
link = "*>leaf0"
ber = 2.5e-12
[[faults.on]]
switch = "*ne*"
from = "1us"
flap = { up = "1us", down = "1us" }
"#;
    let scenario = parse(text).unwrap();
    let (faults, graph) = (&scenario.faults, &scenario.topology.graph);
    let name = |node: u32| graph.hosts.iter().chain(&graph.switches).nth(node as usize).unwrap().as_str();
    let named = |rule: usize| {
        let way = |&(link, from): &(u32, u32)| {
            let link = &graph.links[link as usize];
            let to = if link.a.0 == from { link.b.0 } else { link.a.0 };
            format!("{}>{}", name(from), name(to))
        };
        let mut ways: Vec<String> = faults.rules[rule].ways.iter().map(way).collect();
        ways.sort();
        ways
    };
    assert_eq!(named(0), ["leaf0>spine1", "leaf1>spine1", "spine1>leaf0", "spine1>leaf1"]);
    assert_eq!(named(1), ["h0>leaf0", "spine0>leaf0", "spine1>leaf0"]);
    assert_eq!(faults.rules[1].faults.ber, "2.5e-12".parse().unwrap());
    assert_eq!(faults.switches[0].switches, [2, 3]);
    assert_eq!((faults.detect(), faults.follows_flaps()), (Some(Span::from_micros(20)), true));
    let unsaid = parse(&text.replace("detect = \"20us\"", "")).unwrap().faults;
    assert_eq!((unsaid.detect(), unsaid.follows_flaps()), (Some(Span::from_millis(1)), false));
    let never = parse(&text.replace("\"20us\"", "\"never\"")).unwrap().faults;
    assert_eq!((never.detect(), never.follows_flaps()), (None, false));
}

#[test]
fn registers_to_be_written_are_sorted_by_time() {
    let text = DESIGN.replace(
        "[measure]",
        "[[at]]\ntime = \"2ms\"\nflow = \"a\"\nset = { \"transport.control.g\" = \"1/128\" }\n\
         [[at]]\ntime = \"1ms\"\nset = { \"transport.control.rai\" = \"80Mb/s\" }\n[measure]",
    );
    let writes = parse(&text).unwrap().writes;
    assert_eq!(writes[0].register.value, "rai");
    assert_eq!((writes[1].register.value.as_str(), writes[1].text.value.as_str()), ("g", "1/128"));
    assert_eq!(writes[1].flow.as_ref().map(|flow| flow.value.as_str()), Some("a"));
}

#[test]
fn an_override_finds_an_entry_of_a_list_by_its_name() {
    let flow = with(DESIGN, &[("traffic.0.flows.b.size", "19MB")]).unwrap();
    let Traffic::Flows(flows) = &flow.traffic[0] else { panic!("flows") };
    assert_eq!((flows[0].size, flows[1].size), (Bytes(38_000_000), Bytes(19_000_000)));
    let named = star(&PERMUTATION.replace("kind", "name = \"all\"\nkind"));
    let size = |path| match &with(&named, &[(path, "3KB")]).unwrap().traffic[0] {
        Traffic::Permutation(traffic) => traffic.size,
        other => panic!("{other:?}"),
    };
    assert_eq!(size("traffic.all.size"), size("traffic.0.size"));
}

#[test]
fn an_override_is_toml_or_else_a_string() {
    let scenario = with(
        DESIGN,
        &[
            ("switch.ecn", "false"),
            ("switch.buffer", "2MB"),
            ("switch.pfc.headroom", "20KB"),
            ("traffic.0.flows.1.size", "\"19MB\""),
            ("topology.links.3.rate", "40Gb/s"),
            ("nic.mtu", "4096"),
            ("seed", "9"),
        ],
    )
    .unwrap();
    assert_eq!((scenario.switch.config.ecn, scenario.switch.config.buffer), (None, Bytes(2_000_000)));
    let pfc = scenario.switch.config.pfc.unwrap();
    assert_eq!(pfc.headroom, Headroom::Octets(Bytes(20_000)));
    let Traffic::Flows(flows) = &scenario.traffic[0] else { panic!("flows") };
    assert_eq!(flows[1].size, Bytes(19_000_000));
    assert_eq!(scenario.topology.graph.links[3].rate, BitsPerSec::from_gbps(40));
    assert_eq!((scenario.nic.config.mtu, scenario.seed), (4096, 9));
}

#[test]
fn overriding_a_value_equals_writing_it() {
    for (path, line, value) in [
        ("switch.buffer", "buffer = \"12MB\"", "3MB"),
        ("transport.timeout", "timeout = \"500us\"", "16ms"),
        ("measure.sample", "sample = \"100us\"", "1ms"),
        ("transport.recovery", "recovery = \"go-back-n\"", "irn"),
    ] {
        let key = path.rsplit('.').next().unwrap();
        let written = parse(&DESIGN.replace(line, &format!("{key} = \"{value}\""))).unwrap();
        let overridden = with(DESIGN, &[(path, value)]).unwrap();
        let (a, b) = (written, overridden);
        assert_eq!((a.switch, a.transport, a.measure), (b.switch, b.transport, b.measure), "{path}");
    }
}

#[test]
fn another_law_drops_the_keys_of_the_law_before_it() {
    let scenario = with(DESIGN, &[("transport.control.law", "none")]).unwrap();
    assert_eq!(scenario.transport.control.settings, []);
    let same = with(DESIGN, &[("transport.control.law", "dcqcn")]).unwrap();
    assert_eq!(same.transport.control.settings.len(), 2);
    let short = with(DESIGN, &[("transport.control", "dcqcn"), ("transport.control.g", "1/64")]).unwrap();
    assert_eq!(short.transport.control.settings.len(), 2, "its name again is no other law");
}

#[test]
fn every_scenario_of_the_repository_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    for path in files {
        let scenario = Scenario::load(&path, &[]).unwrap();
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert_eq!(scenario.topology.note, None, "no size is rounded");
    }
}

#[test]
fn a_number_in_place_of_a_string_is_told_its_quotes() {
    let text = format!("{DESIGN}[[at]]\ntime = \"1ms\"\nflow = 0.1\nset = {{ g = \"1/64\" }}\n");
    assert!(refused(&text).contains("; a string is written in quotes, \"0.1\""), "{}", refused(&text));
    let error = with(DESIGN, &[("name", "0.10")]).unwrap_err().to_string();
    assert!(
        error.contains("a string is written in quotes, \"0.10\", with --set as 'name=\"0.10\"'"),
        "{error}"
    );
}

#[test]
fn a_link_whose_name_may_be_two_is_refused_and_ways_tell_them_apart() {
    let text = r#"
stop = "1ms"
[topology]
kind = "graph"
hosts = ["a", "a-b"]
switches = ["b-c", "c"]
links = [
  { a = "a", b = "b-c", rate = "10Gb/s", delay = "1us" },
  { a = "a-b", b = "c", rate = "10Gb/s", delay = "1us" },
  { a = "b-c", b = "c", rate = "10Gb/s", delay = "1us" },
]
[[traffic]]
kind = "permutation"
size = "1MB"
[[faults.on]]
"#;
    let two = refused(&format!("{text}link = \"a-b-c\"\ndown = true\n"));
    assert!(two.contains("`a-b-c` names links between `a` and `b-c` and between `a-b` and `c`"), "{two}");
    for one in ["a>b-c", "a-b>c", "b-c-c", "*-c"] {
        assert!(parse(&format!("{text}link = \"{one}\"\ndown = true\n")).is_ok(), "{one}");
    }
}

#[test]
fn laws_on_telemetry_are_said_to_see_five_switches_whatever_the_rates_of_hosts() {
    let told = |switches: usize, rate: &str, law: &str| {
        let names: Vec<String> = (0..switches).map(|n| format!("\"s{n}\"")).collect();
        let between = (1..switches)
            .map(|n| format!("{{ a = \"s{}\", b = \"s{n}\", rate = \"10Gb/s\", delay = \"1us\" }}, ", n - 1));
        let text = format!(
            r#"
            [topology]
            kind = "graph"
            hosts = ["a", "b"]
            switches = [{}]
            links = [
              {}{{ a = "a", b = "s0", rate = "10Gb/s", delay = "1us" }},
              {{ a = "b", b = "s{}", rate = "{rate}", delay = "1us" }},
            ]
            [transport]
            control = "{law}"
            [[traffic]]
            kind = "permutation"
            size = "1MB"
            "#,
            names.join(", "),
            between.collect::<String>(),
            switches - 1
        );
        parse(&text).unwrap().notes().filter(|note| note.contains("looks at the first 5 switches")).count()
    };
    for law in ["hpcc", "powertcp"] {
        assert_eq!(
            [told(6, "10Gb/s", law), told(6, "5Gb/s", law), told(5, "5Gb/s", law)],
            [1, 1, 0],
            "{law}"
        );
    }
    assert_eq!(told(6, "5Gb/s", "dcqcn"), 0);
}
