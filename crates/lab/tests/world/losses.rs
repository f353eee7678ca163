//! What is lost, and what comes of it.

use super::{CLOSED_LOOP, INCAST, run, star};
use roci_lab::results::{FlowStatus, Results};
use roci_nic::arch::counters::Cause;
use roci_transport::Status;
use roci_units::{Instant, Span};

#[test]
fn without_retries_the_first_nak_ends_a_flow_and_with_some_progress_restores_them() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [transport]
        control = "none"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "1MB" }]
        [[faults.on]]
        link = "h0>s0"
        loss = 0.01
        "#,
    );
    let failed = &run(&text, &[("transport.retry", "0")]).flows[0];
    assert_eq!(failed.status, FlowStatus::Completed(Status::TransportRetryCounterExceeded));
    assert_eq!((failed.naks, failed.timeouts), (1, 0));
    let whole = &run(&text, &[]).flows[0];
    assert_eq!(whole.status, FlowStatus::OK);
    assert!(whole.naks > 7, "more than the retries that there are: {}", whole.naks);
}

#[test]
fn a_trimmed_packet_is_sent_again_and_all_arrives() {
    let results = run(
        INCAST,
        &[
            ("switch.pfc", "false"),
            ("switch.trimming", "true"),
            ("transport.control", "none"),
            ("transport.max_in_flight", "16"),
        ],
    );
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    assert!(results.flows.iter().any(|flow| flow.retransmitted > 0 && flow.naks > 0));
}

#[test]
fn who_finds_no_bitmap_is_counted_and_told_and_sends_more_again() {
    let lossy = [
        ("transport.recovery", "irn"),
        ("faults.loss", "0.02"),
        ("traffic.0.op", "write"),
        ("traffic.0.message", "64KiB"),
        ("traffic.0.depth", "8"),
        ("traffic.0.count", "200"),
    ];
    let few = run(CLOSED_LOOP, &[&lossy[..], &[("transport.bitmaps", "0")]].concat());
    let enough = run(CLOSED_LOOP, &lossy);
    let refused = |results: &Results| results.hosts.iter().map(|host| host.bitmaps_refused).sum::<u64>();
    let again = |results: &Results| results.flows.iter().map(|flow| flow.retransmitted).sum::<u32>();
    assert!(refused(&few) > 0 && few.warnings.iter().any(|it| it.contains("found no bitmap")));
    assert!(refused(&enough) == 0 && enough.warnings.is_empty() && again(&enough) > 0);
    assert!(again(&few) > again(&enough), "{} against {}", again(&few), again(&enough));
}

#[test]
fn windows_share_a_link_that_drops_and_are_seen_over_time() {
    for recovery in ["reno", "newreno", "sack"] {
        let results = run(
            INCAST,
            &[
                ("switch.pfc", "false"),
                ("switch.ecn", "false"),
                ("switch.buffer", "128KB"),
                ("transport.control", "none"),
                ("transport.recovery", recovery),
                ("transport.initial_window", "4"),
                ("measure.sample", "5us"),
            ],
        );
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{recovery}");
        assert!(results.flows.iter().all(|flow| flow.retransmitted > 0 && flow.naks == 0), "{recovery}");
        let windows: Vec<u32> =
            results.series.flow_readings(0).filter_map(|(_, reading)| reading.window).collect();
        assert_eq!(windows.first(), Some(&(4 * 1024)), "{recovery}");
        let most = windows.iter().max().copied().unwrap_or(0);
        let grows_and_falls = most > 8 * 1024 && windows.windows(2).any(|two| two[1] < two[0]);
        assert!(grows_and_falls, "{recovery}: {windows:?}");
    }
}

#[test]
fn responses_that_are_sent_again_are_counted_and_add_to_the_throughput() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [transport]
        control = "none"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "read", size = "1MB" }]
        [faults]
        loss = 0.01
        "#,
    );
    for recovery in ["go-back-n", "irn", "srnic"] {
        let results = run(&text, &[("transport.recovery", recovery)]);
        let flow = &results.flows[0];
        assert_eq!(flow.status, FlowStatus::OK);
        assert!(flow.retransmitted > 0, "{recovery}: nothing was lost, so nothing was tested");
        assert_eq!(flow.packets - u64::from(flow.retransmitted), 1_000_000u64.div_ceil(1024), "{recovery}");
        let last = results.series.flow_readings(0).last().expect("it was sampled").1;
        assert!(last.wire > 1_000_000 + 1024 * u64::from(flow.retransmitted), "{recovery}: {last:?}");
    }
}

#[test]
fn srnic_s_software_is_told_of_each_packet_of_a_loss_and_asks_for_each_that_is_sent_again() {
    let text = include_str!("../../../../figures/srnic-loss.toml");
    for (op, link, sender) in [("write", "sender>fpga", 0), ("read", "receiver>fpga", 1)] {
        let changed = [
            ("stop", "2ms"),
            ("transport.max_rd_atomic", "128"),
            ("traffic.0.op", op),
            ("faults.on.0.link", link),
        ];
        let results = run(text, &changed);
        let flow = &results.flows[0];
        let nic = |host: usize| results.hosts[host].nic.as_ref().expect("of parts");
        assert!(flow.naks > 5_000 && flow.retransmitted > 100, "{flow:?}");
        // At the sender of each NAK, at the receiver of each packet that drew one, but for those on their way.
        for host in [0, 1] {
            let told = nic(host).recoveries;
            assert!(told * 100 > u64::from(flow.naks) * 95, "{op}: {told} of {}", flow.naks);
            // 16 octets in a transaction of their own.
            let octets = nic(host).pcie_of(Cause::Recovery);
            let again = if host == sender { u64::from(flow.retransmitted) * 64 } else { 0 };
            assert!(octets >= told * 40 + again, "{op}: {octets}");
        }
    }
}

#[test]
fn a_nic_that_pauses_drops_nothing_and_what_one_drops_that_cannot_is_told() {
    let text = r#"
        stop = "2ms"
        [topology]
        kind = "star"
        hosts = 4
        rate = "25Gb/s"
        delay = "100ns"
        [switch]
        ecn = false
        classes = { pause = [3, 4] }
        [nic]
        mtu = 4096
        rx_fifo = "26000B"
        rx_rate = "1Gb/s"
        [transport]
        control = "none"
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h1", "h0"], ["h2", "h0"], ["h0", "h3"]]
        message = "20KB"
        depth = 4
        "#;
    let dropped = |results: &Results| results.hosts.iter().map(|host| host.dropped).sum::<u64>();
    let results = run(text, &[]);
    assert_eq!((dropped(&results), results.switches[0].drops), (0, 0));
    assert!(results.hosts[0].pause_sent > 10);
    let results = run(text, &[("switch.classes.pause", "[4]")]);
    assert!(dropped(&results) > 0);
    assert!(
        results.warnings.iter().any(|warning| warning.contains("receive FIFO of `h0`")),
        "{:?}",
        results.warnings
    );
}

#[test]
fn reads_and_writes_of_tcps_programs_outlive_the_same_outage() {
    let text = star(
        2,
        "25Gb/s",
        r#"
        [switch]
        pfc = false
        [transport]
        control = "none"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "read", size = "1MB" }]
        [[faults.on]]
        link = "h0-s0"
        from = "20us"
        until = "10ms"
        loss = 1.0
        "#,
    );
    for recovery in ["reno", "newreno", "sack"] {
        for op in ["read", "write"] {
            let results = run(&text.replace("read", op), &[("transport.recovery", recovery)]);
            assert_eq!(results.flows[0].status, FlowStatus::OK, "{recovery}, {op}");
            assert!(results.flows[0].end > Instant::ZERO + Span::from_millis(10), "{recovery}, {op}");
        }
    }
}

#[test]
fn requests_of_reads_and_atomics_are_not_lost_where_packets_are_trimmed() {
    let text = star(
        9,
        "10Gb/s",
        r#"
        stop = "2ms"
        [switch]
        pfc = false
        trimming = true
        [transport]
        recovery = "ndp"
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h1", "h0"], ["h2", "h0"], ["h3", "h0"], ["h4", "h0"], ["h5", "h0"], ["h6", "h0"], ["h7", "h0"], ["h8", "h0"]]
        qps = 4
        depth = 16
        op = "read"
        message = "8B"
        "#,
    );
    for text in [text.clone(), text.replace("\"read\"", "\"fetch-add\"").replace("message = \"8B\"", "")] {
        let results = run(&text, &[]);
        let counted =
            results.flows.iter().map(|flow| u64::from(flow.timeouts + flow.retransmitted)).sum::<u64>();
        assert_eq!((counted, results.switches[0].drops), (0, 0));
        assert!(results.flows.iter().all(|flow| flow.delivered > 0));
    }
}

/// What came behind a gap is carried out when the gap is filled, and answered then: its results are late, and not lost.
#[test]
fn an_atomic_whose_request_came_behind_a_gap_is_not_asked_for_again() {
    for recovery in ["irn", "srnic", "sack"] {
        let text = format!(
            "{CLOSED_LOOP}op = \"fetch-add\"\ndepth = 16\ncount = 5000\n[transport]\ncontrol = \"none\"\n\
             recovery = \"{recovery}\"\n[[faults.on]]\nlink = \"h0>s0\"\nloss = 0.01\n"
        );
        let results = run(&text, &[]);
        let (flow, lost) = (&results.flows[0], results.faults.as_ref().expect("some are lost").dropped);
        assert_eq!(flow.status, FlowStatus::OK, "{recovery}");
        assert!(lost > 20 && u64::from(flow.retransmitted) == lost, "{recovery}: {lost} lost, {flow:?}");
    }
}

/// A responder that a law has slowed down until a packet takes 33 ms is given up after eight timeouts of 500 us, and the run says why.
#[test]
fn reads_that_are_given_up_for_the_slowness_of_their_responder_are_told_of() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [transport]
        timeout = "500us"
        control = { law = "dcqcn", first_rate = "1/1000", increase_timer = "10ms", byte_counter = "1GB", rmin = "1Mb/s" }
        [[traffic]]
        kind = "flows"
        flows = [{ name = "slow", src = "h0", dst = "h1", op = "read", size = "100KB" }]
        [[faults.on]]
        link = "h1>s0"
        cnp = { threshold = "100Mb/s", window = "5us", cooldown = "5us" }
        "#,
    );
    let results = run(&text, &[]);
    assert_eq!(results.flows[0].status, FlowStatus::Completed(Status::TransportRetryCounterExceeded));
    let told = |results: &Results| results.warnings.iter().any(|said| said.contains("`dcqcn` let slow at "));
    assert!(told(&results), "{:?}", results.warnings);
    let patient = run(&text, &[("transport.timeout", "100ms")]);
    assert!(patient.flows[0].status == FlowStatus::OK && !told(&patient), "{:?}", patient.flows[0]);
}
