//! What each law does to a run: an incast that overflows nothing but shows who holds the queue down.

use roci_lab::results::{FlowStatus, Results};
use roci_lab::scenario::Scenario;
use support::{overrides, run, star};

mod support;

const INCAST: &str = r#"
    [topology]
    kind = "star"
    hosts = 9
    rate = "25Gb/s"
    delay = "1us"
    [switch]
    ecn = { kmin = "30KB", kmax = "30KB", pmax = 1.0 }
    [[traffic]]
    kind = "incast"
    senders = 8
    receiver = "h0"
    size = "2MB"
    [measure]
    sample = "100us"
    "#;

/// The mean queue of the port towards the receiver after the first half millisecond, while all send, in octets.
fn queue(results: &Results) -> f64 {
    let place = results.series.queue_names().iter().position(|name| name.contains(">h0:"));
    let place = place.expect("the switch has a port towards h0");
    let readings: Vec<_> = results.series.queue_readings(u32::try_from(place).expect("few queues")).collect();
    let (mut area, mut time) = (0.0, 0.0);
    for pair in readings.windows(2) {
        let (from, to) = (pair[0].0.as_secs_f64().max(5e-4), pair[1].0.as_secs_f64().min(4e-3));
        if from < to {
            area += pair[0].1.bytes as f64 * (to - from);
            time += to - from;
        }
    }
    area / time
}

#[test]
fn every_law_holds_the_queue_below_that_without_one() {
    let without = run(INCAST, &[("transport.control", "none")]);
    for law in ["dcqcn", "timely", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc"] {
        let settings = match law {
            // Round trips here are far below the T_low of its paper.
            "timely" => "{ law = \"timely\", preset = \"swcc\", t_low = \"10us\", t_high = \"50us\", min_rtt = \"5us\" }".into(),
            "hpcc" => "{ law = \"hpcc\", base_rtt = \"6us\" }".into(),
            law => format!("{{ law = \"{law}\" }}"),
        };
        let with = run(INCAST, &[("transport.control", &settings)]);
        assert!(with.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{law}");
        let goodput = 16e6 * 8.0 / with.simulated.as_secs_f64() / 1e9;
        println!("{law}: queue {:.0} of {:.0} octets, {goodput:.2} Gb/s", queue(&with), queue(&without));
        assert!(queue(&with) < 0.5 * queue(&without), "{law}: {} of {}", queue(&with), queue(&without));
        assert!(goodput > 15.0, "{law}: {goodput} Gb/s");
    }
}

#[test]
fn a_window_that_shuts_asks_for_an_answer_however_rarely_packets_are_acknowledged() {
    let text = star(
        4,
        "100Gb/s",
        r#"
        [[traffic]]
        kind = "permutation"
        size = "10MB"
        "#,
    );
    let laws = ["hpcc", "powertcp", "theta-powertcp", "nscc", "swift", "dctcp"]
        .map(|law| ("transport.control.law", law));
    for (key, value) in
        laws.into_iter().chain([("transport.max_in_flight", "4"), ("transport.max_in_flight", "17")])
    {
        for every in ["8", "64", "1000"] {
            let results = run(&text, &[(key, value), ("transport.ack_every", every)]);
            let flows = &results.flows;
            assert!(flows.iter().all(|flow| flow.status == FlowStatus::OK), "{value}, {every}");
            assert_eq!(flows.iter().map(|flow| flow.retransmitted).sum::<u32>(), 0, "{value}, {every}");
        }
    }
}

#[test]
fn a_loss_costs_no_timeout_for_each_window_that_is_sent_again() {
    let text = star(
        4,
        "100Gb/s",
        r#"
        [faults]
        loss = 0.001
        [[traffic]]
        kind = "permutation"
        size = "10MB"
        "#,
    );
    for law in ["hpcc", "powertcp", "theta-powertcp", "nscc", "swift", "dctcp"] {
        let timeouts = |every| {
            let results = run(&text, &[("transport.control.law", law), ("transport.ack_every", every)]);
            assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{law}");
            results.flows.iter().map(|flow| flow.timeouts).sum::<u32>()
        };
        let (seldom, always) = (timeouts("64"), timeouts("1"));
        println!("{law}: {seldom} {always}");
        assert!(seldom <= always + 8, "{law}: {seldom} timeouts, {always} where each packet is acknowledged");
    }
}

#[test]
fn a_law_of_one_flow_leaves_the_others_alone() {
    let flows = star(
        3,
        "10Gb/s",
        r#"
        [transport]
        control = { law = "none" }
        [[traffic]]
        kind = "flows"
        flows = [
            { name = "window", src = "h1", dst = "h0", op = "write", size = "1MB", control = { law = "dctcp", first_window = "2KB", wmax = "2KB" } },
            { name = "free", src = "h2", dst = "h0", op = "write", size = "1MB" },
        ]
        "#,
    );
    let results = run(&flows, &[]);
    let fct = |own: bool| {
        let flow = results.flows.iter().find(|flow| (flow.control > 0) == own).unwrap();
        flow.end.since(flow.start).as_secs_f64()
    };
    assert!(fct(true) > 1.5 * fct(false), "{} {}", fct(true), fct(false));
}

#[test]
fn hpcc_switches_telemetry_on_and_says_where_it_is_switched_off() {
    let told = |set: &[(&str, &str)]| Scenario::parse(INCAST, "here.toml", &overrides(set));
    assert!(told(&[("transport.control", "hpcc")]).unwrap().switch.int);
    assert!(!told(&[("transport.control", "dctcp")]).unwrap().switch.int);
    let error = told(&[("transport.control", "hpcc"), ("switch.int", "false")]).unwrap_err();
    assert!(error.to_string().contains("`hpcc` reads telemetry"), "{error}");
}

#[test]
fn a_flow_alone_is_not_slowed_down_for_what_its_nics_take() {
    let goodput = |model: &str, law: &str| {
        let rest = format!(
            "stop = \"2ms\"\n[nic]\nmodel = \"{model}\"\n[transport]\ncontrol = \"{law}\"\n[[traffic]]\nkind = \"flows\"\n\
             flows = [{{ src = \"h0\", dst = \"h1\", size = \"1GB\" }}]\n"
        );
        let results = run(&star(2, "100Gb/s", &rest), &[]);
        results.flows[0].goodput_bps(results.simulated) as f64
    };
    // By the network's round trip alone NSCC had 0.87 of it on srnic and 0.94 on cx6; θ-PowerTCP 0.24 on hdl and 0.40 on swcc, where the cores
    // that run a law bound it, and with what an idle NIC takes 0.20 on srnic and 0.50 on cx6. Without the fetch of requests, of which srnic keeps none,
    // PowerTCP had 0.85 there.
    let cases = [
        ("srnic", "nscc", "none"),
        ("cx6", "nscc", "none"),
        ("srnic", "powertcp", "none"),
        ("srnic", "theta-powertcp", "none"),
        ("cx6", "theta-powertcp", "none"),
        ("hdl", "theta-powertcp", "none"),
        ("swcc", "theta-powertcp", "swift"),
    ];
    for (model, law, other) in cases {
        let share = goodput(model, law) / goodput(model, other);
        assert!(share > 0.96, "{law} on {model}: {share} of {other}");
    }
}

#[test]
fn homa_fares_on_nics_that_send_in_bursts_as_on_an_ideal_one() {
    let text = star(
        5,
        "100Gb/s",
        r#"
        [nic]
        model = "ideal"
        [transport]
        control = "homa"
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h1", "h0"], ["h2", "h0"], ["h3", "h0"], ["h4", "h0"]]
        op = "send"
        message = "100KB"
        depth = 4
        count = 20
        "#,
    );
    let end = |model: &str, op: &str| {
        let model = format!("\"{model}\"");
        let results = run(&text, &[("nic.model", model.as_str()), ("traffic.0.op", op)]);
        results.flows.iter().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max)
    };
    for op in ["send", "write"] {
        let ideal = end("ideal", op);
        for model in ["srnic", "cx5", "bluefield3"] {
            let ratio = end(model, op) / ideal;
            assert!(ratio < 1.5, "{op} on {model}: {ratio}");
        }
    }
}

#[test]
fn ndp_gets_on_where_pulls_of_both_directions_cross_a_core_that_trims() {
    let text = r#"
        [topology]
        kind = "dumbbell"
        left = 4
        right = 4
        rate = "100Gb/s"
        bottleneck = "10Gb/s"
        delay = "1us"
        [switch]
        pfc = false
        trimming = true
        [transport]
        recovery = "ndp"
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h0", "h4"], ["h1", "h5"], ["h2", "h6"], ["h7", "h3"], ["h4", "h0"], ["h5", "h1"]]
        message = "1MB"
        count = 1
        "#;
    let results = run(text, &[]);
    let last = results.flows.iter().map(|flow| flow.end.as_secs_f64()).fold(0.0, f64::max);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK));
    // 3 MB each way at 10 Gb/s are 2.4 ms of payload, and headers that cross the core take a tenth of packets' turns.
    assert!(last < 6e-3, "{last}");
}

#[test]
fn the_oldest_message_has_its_share_of_the_link_though_shorter_ones_never_end_under_homa() {
    let text = |oldest: &str| {
        format!(
            r#"
            stop = "60ms"
            [topology]
            kind = "star"
            hosts = 4
            rate = "10Gb/s"
            delay = "500ns"
            [switch]
            pfc = false
            [transport]
            timeout = "100ms"
            control = {{ law = "homa", unscheduled = "10KB", oldest = {oldest} }}
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h1", dst = "h0", size = "2MB", start = "100us" }}]
            [[traffic]]
            kind = "closed-loop"
            pairs = [["h2", "h0"], ["h3", "h0"]]
            message = "1MB"
            depth = 2
            "#
        )
    };
    // A twentieth of 10 Gb/s carries 2 MB in 32 ms.
    let status = |oldest: &str| run(&text(oldest), &[]).flows[0].status;
    assert_eq!(status("0.05"), FlowStatus::OK);
    assert_ne!(status("0"), FlowStatus::OK);
}

#[test]
fn messages_that_others_hold_back_wait_under_homa_and_are_not_sent_again() {
    let text = star(
        9,
        "10Gb/s",
        r#"
        stop = "100ms"
        [transport]
        control = { law = "homa", oldest = 0 }
        [[traffic]]
        kind = "incast"
        senders = 8
        receiver = "h0"
        size = "2GB"
        "#,
    );
    let results = run(&text, &[]);
    let again: u32 = results.flows.iter().map(|flow| flow.retransmitted).sum();
    let drops: u64 = results.switches.iter().map(|switch| switch.drops).sum();
    assert_eq!((again, drops), (0, 0));
    // Eight messages' 40 KB without a grant, four messages' granted ones, and an eighth more for headers.
    let most = results.switches.iter().map(|switch| switch.max_buffer_bytes).max();
    assert!(most.is_some_and(|most| most <= 12 * 45_000), "{most:?}");
}

#[test]
fn a_read_from_an_idle_host_does_not_wait_for_those_from_a_busy_one_under_homa() {
    let text = r#"
        [topology]
        kind = "star"
        hosts = 4
        rate = "10Gb/s"
        delay = "500ns"
        [transport]
        timeout = "100ms"
        control = { law = "homa", unscheduled = "10KB", overcommit = 4 }
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h3", "h1"]]
        qps = 8
        op = "read"
        message = "1MB"
        count = 1
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h0", "h1"]]
        qps = 4
        op = "read"
        message = "2MB"
        count = 1
        [[traffic]]
        kind = "flows"
        flows = [{ name = "idle", src = "h0", dst = "h2", op = "read", size = "9MB", start = "20us" }]
        "#;
    let results = run(text, &[]);
    let idle = results.flows.last().expect("three tables");
    // Alone it takes 8 ms, and 20 where all READs have the same room.
    assert!(idle.end.as_secs_f64() < 15e-3, "{:?}", idle.end);
}

#[test]
fn hundreds_whose_packets_one_host_pulls_in_turn_wait_for_them_without_a_timeout() {
    let text = star(
        201,
        "10Gb/s",
        r#"
        [switch]
        pfc = false
        trimming = true
        [transport]
        recovery = "ndp"
        [[traffic]]
        kind = "incast"
        senders = 200
        size = "100KB"
        "#,
    );
    for op in ["write", "read"] {
        let results = run(&text, &[("traffic.0.op", op)]);
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{op}");
        let timeouts: u32 = results.flows.iter().map(|flow| flow.timeouts).sum();
        assert_eq!(timeouts, 0, "{op}");
    }
}

/// Two flows of TIMELY's own parameters begin with half of the link each. At the whole of it their queue would grow by a segment's
/// time in a segment's time, which is a gradient that cuts the rate to nothing.
#[test]
fn two_flows_of_timely_share_the_link() {
    let pair = [
        ("topology.rate", "10Gb/s"),
        ("traffic.0.senders", "2"),
        ("traffic.0.size", "40MB"),
        ("switch.ecn", "false"),
    ];
    let goodput = |control| {
        let results = run(INCAST, &[&pair[..], &[("transport.control", control), ("stop", "50ms")]].concat());
        results.flows.iter().map(|flow| flow.goodput_bps(results.simulated)).sum::<u64>()
    };
    let shared = goodput("timely");
    assert!(shared > 8_000_000_000, "{shared}");
    let greedy = goodput("{ law = \"timely\", first_rate = 1 }");
    assert!(greedy < 1_000_000_000, "{greedy}");
}
