//! Flows over unreliable connections.

use super::{run, star};
use roci_lab::output::{flows, summary};
use roci_lab::results::{FlowStatus, Results};
use roci_units::{Instant, Span};

/// Two senders of messages of four packets into one link.
fn two_into_one(rest: &str) -> String {
    let text = r#"
        switch = { pfc = false, buffer = "100KB" }
        transport = { service = "UC", control = "none" }
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h1", "h0"], ["h2", "h0"]]
        message = "4KB"
        depth = 8
        count = 500
    "#;
    star(3, "10Gb/s", &format!("{text}{rest}"))
}

fn csv(results: &Results) -> String {
    let mut csv = Vec::new();
    flows::write(&mut csv, results).expect("a vector takes all");
    String::from_utf8(csv).expect("text")
}

#[test]
fn alone_on_an_idle_path_a_flow_takes_its_ideal_time_and_nobody_answers() {
    for (op, size) in [("write", "100KB"), ("send", "100KB"), ("write", "1B"), ("send", "1KB")] {
        let rest = format!(
            "transport.service = \"UC\"\n[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h1\", op = \"{op}\", size = \"{size}\" }}]"
        );
        let results = run(&star(2, "10Gb/s", &rest), &[]);
        let flow = &results.flows[0];
        assert_eq!((flow.status, flow.slowdown()), (FlowStatus::OK, Some(1.0)), "{op} of {size}");
        assert_eq!(flow.delivered, flow.bytes);
        assert_eq!(results.packets, flow.packets, "no acknowledgement");
        // The same without an answer is shorter by that.
        let reliable = run(&star(2, "10Gb/s", &rest), &[("transport.service", "RC")]);
        assert!(reliable.flows[0].fct() > flow.fct());
    }
}

#[test]
fn what_a_buffer_drops_is_lost_with_its_message_and_is_told_of() {
    let results = run(&two_into_one(""), &[]);
    let lost: u64 = results.flows.iter().map(|flow| u64::from(flow.naks)).sum();
    let drops = results.switches[0].drops;
    assert!(lost > 0 && drops >= lost, "{lost} messages by {drops} packets");
    for flow in &results.flows {
        assert_eq!(flow.delivered, 4_000 * (500 - u64::from(flow.naks)), "{flow:?}");
        assert_eq!((flow.packets, flow.retransmitted, flow.fct().is_some()), (2_000, 0, flow.naks == 0));
        assert_eq!(flow.status, if flow.naks > 0 { FlowStatus::Lost } else { FlowStatus::OK });
    }
    assert_eq!((results.failed().count(), results.failure()), (0, None), "that is what was asked for");
    assert!(results.warnings.iter().any(|warning| warning.starts_with(&format!("{lost} messages of "))));
    let sends = run(&two_into_one(""), &[("traffic.0.op", "send")]);
    assert!(sends.flows.iter().any(|flow| flow.status == FlowStatus::Lost));
}

#[test]
fn a_flow_of_which_all_is_lost_ends_when_its_messages_have_been_waited_for() {
    let text = two_into_one("[[faults.on]]\nlink = \"h1>s0\"\nloss = 1.0\n");
    let results = run(&text, &[("transport.timeout", "3ms")]);
    let [none, all] = &results.flows[..] else { panic!() };
    assert_eq!((none.status, none.naks, none.delivered), (FlowStatus::Lost, 500, 0));
    assert_eq!((all.status, all.naks), (FlowStatus::OK, 0));
    assert_eq!(none.goodput_bps(Instant::NEVER), 0);
    assert!(results.simulated.since(none.end) == Span::from_millis(3), "{:?}", results.simulated);
}

#[test]
fn messages_that_a_receiver_is_not_ready_for_are_lost() {
    let text = two_into_one("[application]\nrx_depth = 2\nrx_time = \"20us\"\n");
    let results = run(&text, &[("traffic.0.op", "send"), ("traffic.0.pairs", "[[\"h1\", \"h0\"]]")]);
    let flow = &results.flows[0];
    assert_eq!((results.switches[0].drops, flow.status), (0, FlowStatus::Lost));
    assert!(flow.naks > 250 && flow.naks < 500, "{flow:?}");
    assert_eq!(flow.delivered, 4_000 * (500 - u64::from(flow.naks)));
}

#[test]
fn its_packets_are_lost_doubled_and_swapped_and_the_run_ends() {
    let faults = "[faults]\nloss = 0.01\nduplicate = 0.01\nreorder = { share = 0.01, by = \"5us\" }\n";
    for op in ["write", "send"] {
        let results = run(&two_into_one(faults), &[("traffic.0.op", op)]);
        for flow in &results.flows {
            assert!(flow.end != Instant::NEVER && flow.delivered <= flow.bytes, "{flow:?}");
        }
    }
}

#[test]
fn a_message_that_comes_twice_hides_none_that_is_lost() {
    let faults =
        "[[faults.on]]\nlink = \"h1>s0\"\nloss = 0.02\n[[faults.on]]\nlink = \"s0>h0\"\nduplicate = 0.1\n";
    let one = [("traffic.0.pairs", "[[\"h1\", \"h0\"]]"), ("traffic.0.message", "1000B")];
    let results = run(&two_into_one(faults), &one);
    let (flow, faults) = (&results.flows[0], results.faults.unwrap());
    assert!(faults.duplicated > 20 && faults.dropped > 0 && results.switches[0].drops == 0, "{faults:?}");
    assert_eq!(
        (flow.status, u64::from(flow.naks)),
        (FlowStatus::Lost, faults.dropped),
        "each had one packet"
    );
    assert_eq!(flow.delivered, 1_000 * (500 - faults.dropped));
}

#[test]
fn dcqcn_slows_senders_down_by_cnps_before_anything_is_lost() {
    let set = [
        ("transport.control", "dcqcn"),
        ("switch.buffer", "1MB"),
        ("switch.ecn", "{ kmin = \"20KB\", kmax = \"100KB\", pmax = 0.1 }"),
        ("traffic.0.count", "3000"),
    ];
    let results = run(&two_into_one(""), &set);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK && flow.cnps > 0), "{results:?}");
    let none = run(&two_into_one(""), &[&set[1..], &[("transport.control", "none")]].concat());
    assert!(none.flows.iter().any(|flow| flow.status == FlowStatus::Lost));
}

#[test]
fn a_column_tells_of_losses_where_there_may_be_such_and_nowhere_else() {
    let results = run(&two_into_one(""), &[]);
    let told = csv(&results);
    let mut lines = told.lines().map(|line| line.rsplit_once(',').unwrap().1);
    assert_eq!(lines.next(), Some("lost"));
    let lost: Vec<String> = results.flows.iter().map(|flow| flow.naks.to_string()).collect();
    assert!(lines.eq(lost.iter().map(String::as_str)));
    let mut json = Vec::new();
    summary::write(&mut json, &results).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    for (flow, lost) in json["flows"].as_array().unwrap().iter().zip(&results.flows) {
        assert_eq!((&flow["lost"], &flow["naks"]), (&lost.naks.into(), &0.into()));
    }
    let reliable = run(&two_into_one(""), &[("transport.service", "RC")]);
    assert!(csv(&reliable).lines().next().unwrap().ends_with(",reordered"));
}
