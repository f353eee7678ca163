//! Packets that a program asks for.

use super::{PAIR, control, run, text};
use roci_lab::results::{FlowStatus, Results};
use std::collections::BTreeMap;

const TALKS: &str = "../../control/tests/images/talks.elf";

/// The last value of each word of each flow's context.
fn words(results: &Results) -> BTreeMap<(u32, String), i64> {
    let mut last = BTreeMap::new();
    results.series.words(|_, flow, name, value| {
        last.insert((flow, name.to_owned()), value);
    });
    last
}

#[test]
fn a_program_sends_packets_of_its_own_and_hears_those_that_it_traces() {
    for nic in ["ideal", "swcc"] {
        let overrides = [("transport.control", control(TALKS)), ("nic.model", nic.to_owned())];
        let overrides: Vec<_> = overrides.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let results = run(&text(PAIR, &overrides).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let words = words(&results);
        let word = |flow: u32, name: &str| words[&(flow, name.to_owned())];
        for flow in 0..2 {
            // What was said comes back as the peer's program changed it.
            assert!(word(flow, "answers") > 500 && word(flow, "differ") == 0, "{nic}: {words:?}");
            assert!(word(flow, "acks") >= word(flow, "answers"), "{nic}: {words:?}");
        }
        // Of each packet an ACK, a LAW_7 and a LAW_2 are heard, unless they are under way when all is done, and the LAW_3 that
        // follows is not, nor does a core's time go with it.
        let packets: u64 = results.flows.iter().map(|flow| flow.packets).sum();
        let sum = |name| (0..2).map(|flow| word(flow, name).cast_unsigned()).sum::<u64>();
        let (acks, answers) = (sum("acks"), sum("answers"));
        let events = results.programs[0].tally.events[0];
        assert!((acks + 2 * answers..=3 * packets).contains(&events), "{nic}: {events} of {packets}");
        assert!(acks + 3 * answers > 3 * packets, "it would be more with LAW_3: {nic}: {words:?}");
        let cores = results.hosts.iter().filter_map(|host| Some(host.nic.as_ref()?.cores.receives));
        assert_eq!(cores.sum::<u64>(), if nic == "ideal" { 0 } else { events }, "{nic}");
        assert!(results.warnings.is_empty(), "{:?}", results.warnings);
    }
}

#[test]
fn packets_that_the_layout_has_not_are_refused_before_the_run_where_the_program_says_so() {
    let refused = |layout: &str| {
        text(PAIR, &[("transport.control", &control(TALKS)), ("transport.layout", layout)]).unwrap_err()
    };
    let none = refused("standard");
    assert!(none.contains("puts 1 words"), "{none}");
    let plain = control("../../control/tests/images/grants.elf");
    let grants = text(PAIR, &[("transport.control", &plain)]).unwrap_err();
    assert!(grants.contains("packets of the class GRANT") && grants.contains("Homa's"), "{grants}");
    let replaced = format!(
        "{PAIR}\n[[at]]\ntime = \"1ms\"\nset = {{ \"transport.control.elf\" = \"../../control/tests/images/grants.elf\" }}\n"
    );
    let refused = text(&replaced, &[]).unwrap_err();
    assert!(refused.contains("packets of the class GRANT"), "{refused}");
}

#[test]
fn packets_that_the_layout_has_not_are_counted_where_nobody_could_know() {
    // A PULL is NDP's.
    let pulls = format!(r#"{{ law = "program", elf = "{TALKS}", context = {{ other = 512 }} }}"#);
    let results = run(&text(PAIR, &[("transport.control", &pulls)]).unwrap());
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let tally = &results.programs[0].tally;
    assert!(tally.left_out > 1_000 && tally.left_out == tally.events[0], "{tally:?}");
    let [warning] = &results.warnings[..] else { panic!("{:?}", results.warnings) };
    assert!(warning.contains(&format!("{} packets of class PULL", tally.left_out)), "{warning}");
    let mut summary = Vec::new();
    roci_lab::output::summary::write(&mut summary, &results).unwrap();
    let summary = String::from_utf8(summary).unwrap();
    assert!(summary.contains(&format!("\"left_out\": {}", tally.left_out)), "{summary}");
    assert!(summary.contains(warning), "{summary}");
}
