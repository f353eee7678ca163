use super::*;
use crate::traffic::spec::{Op, Repeat};
use insta::assert_snapshot;
use proptest::prelude::*;
use roci_switch::config::Headroom;
use roci_units::{Bytes, Ratio};

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
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
fn star(rest: &str) -> String {
    format!("[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n{rest}")
}

const PERMUTATION: &str = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";

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
    assert_eq!(scenario.switch, Switch::default());
    assert_eq!(scenario.nic, Nic::default());
    assert_eq!(scenario.transport, Transport::default());
    assert_eq!(scenario.measure, Measure::default());
}
