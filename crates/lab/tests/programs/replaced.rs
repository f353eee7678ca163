//! Programs that replace others during a run.

use super::nics::NICS;
use super::{PAIR, at, control, run, text};
use roci_lab::results::FlowStatus;
use roci_lab::run::{Go, World};
use roci_lab::world::SimulatedWorld;
use roci_units::Span;

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
        let controls = results.flows.iter().map(|flow| results.control(flow));
        let own = "program elf=firmware/dcqcn.elf, firmware/timely.elf from 1ms";
        assert_eq!(controls.collect::<Vec<_>>(), [own, "program elf=firmware/dcqcn.elf"], "{nic}");
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
