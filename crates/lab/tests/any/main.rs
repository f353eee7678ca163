//! Whole scenarios at random: what is refused is refused in words, and of every run that is made holds what must hold of any.

mod draw;
mod hold;
mod joint;

use draw::{FILES, any_scenario};
use hold::{Broken, LAST, broken, flows_csv};
use joint::any_joint;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, RunError, World};
use roci_lab::scenario::{Place, Scenario, ScenarioError, Source};
use roci_lab::world::SimulatedWorld;

/// Link crossings after which a run is given up: it would take too long here.
const CROSSINGS: u64 = 20_000;
/// Flows that have begun after which it is,
const FLOWS: u64 = 2_000;
/// and questions after that, where hardly anything is sent.
const TURNS: u32 = 300;

/// What comes of `text`: `None` where the run is too long for this test.
fn run(scenario: &Scenario) -> Option<Result<Results, RunError>> {
    let mut turns = 0;
    let results = SimulatedWorld.run(scenario, scenario.seed, None, &mut |progress| {
        turns += 1;
        if progress.packet_hops > CROSSINGS || progress.flows_begun > FLOWS || turns > TURNS {
            Go::Stop
        } else {
            Go::On
        }
    });
    match results {
        Err(RunError::Interrupted) => None,
        results => Some(results),
    }
}

/// Reads a scenario, with the files that what is drawn may name.
fn read(text: &str, set: &[(String, String)]) -> Result<Scenario, ScenarioError> {
    Scenario::read(Source::new("any.toml", text, set).with_files(FILES))
}

fn parsed(text: &str, set: &[(&str, &str)]) -> Option<Scenario> {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    read(text, &set).ok()
}

/// `text` without the lines that it is refused for, if something is left of it then. What is refused for the network as a whole is given
/// the timeout or the buffer that it asks for, else loses a key.
fn accepted(text: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..24 {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = text.replace("faults.on = [\n]\n", "");
        lines = text.lines().map(str::to_owned).collect();
        let error = match read(&text, &[]) {
            Ok(_) => return Some(text),
            Err(error) => error,
        };
        assert!(!error.message.is_empty() && !error.remedy.is_empty(), "{error}");
        let Place::Line { line, .. } = error.place else { return None };
        let blamed = lines.get(line - 1)?.clone();
        let mut give = |key: &str, value: &str| {
            lines.retain(|line| !line.starts_with(key));
            lines.insert(0, format!("{key} = {value}"));
        };
        if !["topology", "traffic", "]"].iter().any(|begins| blamed.starts_with(begins)) {
            lines.remove(line - 1);
        } else if error.message.contains("timeout") {
            give("transport.timeout", "\"4s\"");
        } else if error.message.contains("headroom") {
            give("switch.buffer", "\"1GB\"");
        } else {
            let key = |line: &String| {
                ["s", "tran", "nic", "faults", "at ="].iter().any(|begins| line.starts_with(begins))
            };
            lines.remove(lines.iter().position(key)?);
        }
    }
    None
}

/// The scenario with a last flow of an octet, long after all else.
fn with_last(text: &str) -> Option<String> {
    let hosts = parsed(text, &[])?.topology.graph.hosts;
    let host = |name: &String| name.split_once('.').map_or(name.clone(), |(host, _)| host.to_owned());
    let (first, other) = (host(hosts.first()?), host(hosts.last()?));
    let table = format!(
        "{{ kind = \"flows\", flows = [{{ name = \"{LAST}\", src = \"{first}\", dst = \"{other}\", size = 1, start = \"500ms\" }}] }},\n"
    );
    let text: String =
        text.lines().filter(|line| !line.starts_with("stop")).map(|line| format!("{line}\n")).collect();
    let at = text.find("traffic = [\n")?;
    let end = at + text[at..].find("\n]")? + 1;
    Some(format!("{}{table}{}", &text[..end], &text[end..]))
}

/// The scenario with a fault of a link that begins when it is over.
fn with_a_fault_at_the_end_of_time(scenario: &Scenario, text: &str) -> Option<String> {
    let graph = &scenario.topology.graph;
    let link = graph.links.first()?;
    let [a, b] = [link.a, link.b].map(|node| {
        let node = node.0 as usize;
        graph.hosts.get(node).unwrap_or_else(|| &graph.switches[node - graph.hosts.len()])
    });
    let rule = format!("{{ link = \"{a}-{b}\", from = \"4500s\", delay = \"1us\" }}");
    // Behind other tables it would change what the faults draw that go on when those are over.
    (!text.contains("faults.on")).then(|| format!("faults.on = [{rule}]\n{text}"))
}

/// What is added to a scenario.
const IDLE: &str = "an idle host";

/// The scenario with one more host, where its traffic is between hosts that it names.
fn with_an_idle_host(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("kind = \"star\", hosts = ")?;
    let (hosts, rest) = rest.split_once(',')?;
    let hosts: u32 = hosts.parse().ok()?;
    let named = |line: &str| {
        ["flows", "closed-loop", "trigger"].iter().any(|kind| line.contains(&format!("kind = \"{kind}\"")))
    };
    let mut tables = text.lines().filter(|line| line.starts_with("{ kind"));
    tables.all(named).then(|| format!("{before}kind = \"star\", hosts = {}, {rest}", hosts + 1))
}

/// What is wrong with the runs of a scenario, its own and those that must be like it; `None` where nothing is, also where it cannot be run to its
/// end here.
fn wrong(text: &str) -> Option<Broken> {
    let counted = [("measure.priorities", "true")];
    let scenario = parsed(text, &counted)?;
    let results = run(&scenario)?.ok()?;
    let mut found = broken(&scenario, &results);
    let flows = flows_csv(&results);
    // Headroom is kept for each port of a switch, so that one port more leaves less for all to share.
    let is_calm = |results: &Results| {
        results.paused().is_zero() && results.switches.iter().all(|switch| switch.drops + switch.trimmed == 0)
    };
    let mut same = |what: &str, set: &[(&str, &str)], text: &str| {
        let Some(Some(Ok(other))) = parsed(text, set).map(|scenario| run(&scenario)) else { return };
        if what == IDLE && !(is_calm(&results) && is_calm(&other)) {
            return;
        }
        let other = flows_csv(&other);
        if other != flows {
            let differ = flows.lines().zip(other.lines()).find(|(one, other)| one != other);
            found.0.push(format!("{what} changes flows: {differ:?}"));
        }
    };
    same("nothing at all", &counted, text);
    same("what is measured", &[("measure.priorities", "false"), ("measure.sample", "700ns")], text);
    if let Some(later) = with_a_fault_at_the_end_of_time(&scenario, text) {
        same("a fault that never comes", &counted, &later);
    }
    if let Some(larger) = with_an_idle_host(text) {
        same(IDLE, &counted, &larger);
    }
    let all_began = !scenario.notes().any(|note| note.contains("never does, for the run stops at"));
    let over =
        results.flows.iter().all(|flow| flow.status != FlowStatus::Running) && results.deadlock.is_none();
    if all_began && over && !results.flows.is_empty() && !text.contains("until") && !text.contains("load =") {
        same("a later stop", &[("stop", "4000s")], text);
    }
    if let Some(text) = with_last(text)
        && let Some(scenario) = parsed(&text, &[counted[0], ("measure.sample", "0s")])
        && let Some(Ok(results)) = run(&scenario)
    {
        found.0.extend(broken(&scenario, &results).0.into_iter().map(|what| format!("{what} (with {LAST})")));
    }
    (!found.0.is_empty()).then_some(found)
}

/// So many cases that they take seconds; `PROPTEST_CASES` has others drawn, as many as it says. A failure shows its scenario, from which it is
/// run again, so that none is kept.
fn config() -> ProptestConfig {
    let usual = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => usual,
        None => ProptestConfig { cases: 96, rng_seed: RngSeed::Fixed(58), ..usual },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn of_any_run_holds_what_must_hold_of_all(drawn in any_scenario()) {
        let text = drawn.text().and_then(|text| accepted(&text)).unwrap_or_default();
        let broken = wrong(&text);
        prop_assert!(broken.is_none(), "{text}\n{broken:#?}");
    }

    #[test]
    fn collectives_of_any_kind_end_with_all_octets_and_take_no_less_than_they_do_at_least(joint in any_joint()) {
        let wrong = joint.wrong().unwrap_or_default();
        prop_assert!(wrong.is_empty(), "{joint:?}\n{wrong:#?}");
    }
}

#[test]
fn two_in_three_of_the_collectives_that_are_drawn_are_run_at_least() {
    let mut runner =
        TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(58), ..ProptestConfig::default() });
    let is_run =
        |runner: &mut TestRunner| any_joint().new_tree(runner).is_ok_and(|it| it.current().wrong().is_some());
    let runs = (0..60).filter(|_| is_run(&mut runner)).count();
    assert!(runs >= 40, "{runs} of 60");
}

#[test]
fn two_in_five_of_what_is_drawn_are_run_at_least() {
    let mut runner =
        TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(58), ..ProptestConfig::default() });
    let text = |runner: &mut TestRunner| any_scenario().new_tree(runner).ok()?.current().text();
    let runs = (0..120).filter(|_| {
        let scenario = text(&mut runner).and_then(|text| parsed(&accepted(&text)?, &[]));
        scenario.is_some_and(|scenario| matches!(run(&scenario), Some(Ok(_))))
    });
    let runs = runs.count();
    assert!(runs > 48, "{runs} of 120");
}

#[test]
fn a_port_more_of_a_switch_that_pauses_leaves_less_to_share() {
    let text = "stop = \"50us\"\ntopology = { kind = \"star\", hosts = 2, rate = \"10Gb/s\", delay = \"1us\" }\nswitch.buffer = \"100KB\"\ntraffic = [\n\
                { kind = \"flows\", flows = [{ src = \"h1\", dst = \"h0\", size = \"60KB\" }] },\n]\n\
                faults.on = [{ link = \"h0-s0\", rate = \"10Mb/s\", from = \"30us\" }]\n";
    let larger = with_an_idle_host(text).expect("its traffic is between hosts that it names");
    let packets = [text, &larger].map(|text| {
        let results = run(&parsed(text, &[]).expect("it is read")).expect("it is short").expect("it runs");
        results.flows[0].packets
    });
    assert!(packets[0] > packets[1], "{packets:?}");
    assert!(wrong(text).is_none());
}
