//! Requests and responses between clients and a server that is a machine.

mod support;

use roci_lab::results::series::{Metric, Source};
use roci_lab::results::{FlowStatus, Results, RpcResult};
use roci_transport::Status;

/// Two hosts at one switch, and requests with `lines`.
fn scenario(lines: &str, rest: &str) -> String {
    let tables = "[nic]\nmtu = 4096\n[transport]\ncontrol = { law = \"none\" }\n";
    support::star(
        2,
        "100Gb/s",
        &format!("{tables}{rest}[[traffic]]\nkind = \"rpc\"\nserver = \"h0\"\n{lines}"),
    )
}

fn run(text: &str, set: &[(&str, &str)]) -> Results {
    support::run(text, set)
}

fn only(results: &Results) -> &RpcResult {
    assert_eq!((results.rpcs.len(), results.machines.len()), (1, 1));
    &results.rpcs[0]
}

/// Every request was answered, and every connection ended with success.
fn all_answered(results: &Results, requests: u64) {
    assert_eq!(only(results).answered, requests);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::Completed(Status::Success)));
    assert_eq!(results.machines[0].counters.reads > 0, requests > 0);
}

const LONG: &str = "threads = 2\nconnections = 4\nrequest = \"100KB\"\nwindow = 3\ncount = 20\n";

#[test]
fn each_request_is_answered_once_under_any_credits() {
    for credits in ["none", "session", "basic", "loosened"] {
        let results = run(&scenario(LONG, ""), &[("traffic.0.credits", credits)]);
        all_answered(&results, 80);
        // Each octet has come, been copied and been read.
        let lines = 80 * 100_000 / 64;
        assert!(only(&results).reads > 2 * lines, "{credits}");
        assert!(results.machines[0].counters.writes > lines, "{credits}");
        assert!(results.flows.iter().all(|flow| flow.delivered == 20 * 100_000));
    }
}

#[test]
fn each_request_is_answered_once_on_links_that_lose_reorder_and_duplicate() {
    let faults = "[faults]\nloss = 0.01\nduplicate = 0.01\nreorder = { share = 0.01, by = \"10us\" }\n";
    for recovery in ["go-back-n", "irn"] {
        for credits in ["none", "loosened"] {
            let set = [
                ("traffic.0.credits", credits),
                ("transport.recovery", recovery),
                ("transport.timeout", "200us"),
                ("transport.retry", "7"),
            ];
            let results = run(&scenario(LONG, faults), &set);
            all_answered(&results, 80);
            assert!(results.flows.iter().any(|flow| flow.retransmitted > 0), "{recovery} {credits}");
        }
    }
}

#[test]
fn the_series_of_a_machine_adds_up_to_what_it_counted_and_other_traffic_has_none() {
    let set = [("measure.sample", "20us"), ("traffic.0.warmup", "50us")];
    let results = run(&scenario(LONG, ""), &set);
    let (mut before, mut answered, mut fullest) = (0.0, 0.0, 0.0f64);
    results.series.rows(|reading| match (reading.source, reading.metric) {
        (Source::Requests(0), Metric::Answered) => {
            let at = reading.at.as_secs_f64();
            answered += reading.value * (at - before);
            before = at;
        }
        (Source::Machine(0), Metric::Unconsumed) => fullest = fullest.max(reading.value),
        (Source::Machine(0), Metric::Misses) => assert!((0.0..=1.0).contains(&reading.value)),
        (Source::Machine(0), Metric::Iio) | (Source::Flow(_) | Source::Queue(_), _) => {}
        other => panic!("{other:?}"),
    });
    assert!((answered - 80.0).abs() < 1e-6, "{answered}, those of the warmup too");
    assert!(only(&results).answered < 80);
    let most = results.machines[0].counters.most_unconsumed;
    assert!(fullest > 0.0 && fullest <= most as f64, "{fullest} of {most}");

    let flows = "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"1MB\" }]\n";
    let other = run(&support::star(2, "100Gb/s", flows), &set[..1]);
    let mut read = 0;
    other.series.rows(|reading| {
        read += 1;
        assert!(matches!(reading.source, Source::Flow(_) | Source::Queue(_)));
    });
    assert!(read > 0);
}

#[test]
fn nics_made_of_parts_carry_requests_too() {
    for nic in ["srnic", "cx6"] {
        let results = run(&scenario(LONG, ""), &[("nic.model", nic), ("traffic.0.credits", "loosened")]);
        all_answered(&results, 80);
    }
}

#[test]
fn a_ring_that_is_full_is_answered_with_rnr_naks_and_nothing_is_lost() {
    let lines = "request = \"4000B\"\nwindow = 64\ncount = 200\nrx_ring = 8\nprocessing = \"2us\"\n";
    let results = run(&scenario(lines, ""), &[("transport.min_rnr_timer", "20us")]);
    all_answered(&results, 200);
    assert!(results.flows[0].rnr_naks > 0);
    let [_, _, _, s4] = results.machines[0].states;
    assert!(!s4.is_zero(), "{:?}", results.machines[0].states);
}

#[test]
fn with_credits_no_more_is_unconsumed_than_the_cache_has() {
    let lines = "connections = 8\nrequest = \"4000B\"\nwindow = 500\ncount = 1000\nprocessing = \"2us\"\n";
    let cache = "[machine]\ncache = \"768KiB\"\n";
    let most = |credits| {
        let results = run(&scenario(lines, cache), &[("traffic.0.credits", credits)]);
        all_answered(&results, 8000);
        results.machines[0].counters.most_unconsumed
    };
    // A completion for each packet besides.
    let share = 768 << 10;
    assert!(most("none") > 2 * share);
    assert!(most("basic") <= share + share / 63, "{}", most("basic"));
    // A wrong idea of the cache is of no use.
    let wrong = [("traffic.0.credits", "basic"), ("traffic.0.credits_cache", "96MiB")];
    let results = run(&scenario(lines, cache), &wrong);
    assert!(results.machines[0].counters.most_unconsumed > 2 * share);
}

#[test]
fn no_connection_starves_where_shares_shrink() {
    // What is lost from so small a cache makes δ of all negative, while the thread always has something to do for others.
    let lines = "connections = 8\nrequest = \"1MB\"\nwindow = 1\ncount = 6\ncredits = \"loosened\"\ncredits_cache = \"4MiB\"\n";
    let results = run(&scenario(lines, "[machine]\ncache = \"192KiB\"\n"), &[("stop", "200ms")]);
    all_answered(&results, 48);
}

#[test]
fn a_requests_time_has_its_wait_for_credits() {
    // By Little's law: 256 are in the windows whatever credits allow.
    let lines =
        "connections = 4\nrequest = \"2000B\"\nwindow = 64\nprocessing = \"500ns\"\nwarmup = \"1ms\"\n";
    for credits in ["none", "basic"] {
        let set = [("traffic.0.credits", credits), ("traffic.0.credits_cache", "64KiB"), ("stop", "5ms")];
        let results = run(&scenario(lines, ""), &set);
        let it = only(&results);
        let within = it.per_second().unwrap_or(0.0) * it.times.mean().map_or(0.0, |mean| mean.as_secs_f64());
        assert!((within - 256.0).abs() < 13.0, "{credits}: {within}");
    }
}

#[test]
fn hostcc_marks_what_arrives_while_memory_is_slow_and_senders_slow_down() {
    let lines = "threads = 8\nrequest = \"1MB\"\nwindow = 1\ncount = 20\n";
    let slow = "[machine]\nmemory_rate = \"150Gb/s\"\n[switch]\npfc = true\n";
    let law = ("transport.control.law", "dctcp");
    let without = run(&scenario(lines, slow), &[law]);
    let with = run(&scenario(lines, slow), &[law, ("machine.hostcc", "70")]);
    let marked = |results: &Results| results.flows.iter().map(|flow| u64::from(flow.ecn_marked)).sum::<u64>();
    assert_eq!(marked(&without), 0);
    assert!(marked(&with) > 0);
    let most = |results: &Results| results.machines[0].counters.most_unconsumed;
    assert!(most(&with) < most(&without), "{} of {}", most(&with), most(&without));
}

#[test]
fn a_server_that_is_cut_off_fails_the_connections_and_the_run_ends() {
    let faults = "[[faults.on]]\nlink = \"h1-s0\"\nfrom = \"100us\"\ndown = true\n";
    let set = [("transport.timeout", "50us"), ("transport.retry", "2"), ("stop", "100ms")];
    let results = run(&scenario(LONG, faults), &set);
    assert!(
        results
            .flows
            .iter()
            .all(|flow| { flow.status == FlowStatus::Completed(Status::TransportRetryCounterExceeded) })
    );
    assert!(only(&results).answered < 80 && results.simulated.as_secs_f64() < 0.1);
}

#[test]
fn what_a_thread_does_takes_longer_while_another_has_its_core() {
    let lines = "threads = 2\nrequest = \"256B\"\nwindow = 16\ncount = 2000\nprocessing = \"1us\"\n";
    let apart = run(&scenario(lines, "[machine]\ncores = 2\n"), &[]);
    let shared = run(&scenario(lines, "[machine]\ncores = 1\n"), &[]);
    let ratio = shared.simulated.as_secs_f64() / apart.simulated.as_secs_f64();
    // 8/5 of what is not spent waiting for lines.
    assert!((1.5..1.6).contains(&ratio), "{ratio}");
}

#[test]
fn what_ends_before_the_warmup_is_over_is_not_counted() {
    let lines = "request = \"256B\"\nwindow = 1\nwarmup = \"1ms\"\n";
    let results = run(&scenario(lines, ""), &[("stop", "2ms")]);
    let all = run(&scenario(lines, ""), &[("stop", "2ms"), ("traffic.0.warmup", "0s")]);
    let (counted, all) = (only(&results), only(&all));
    assert_eq!(counted.measured.as_ps() * 2, all.measured.as_ps());
    assert!(counted.answered * 2 <= all.answered + 1 && counted.answered * 2 + 2 >= all.answered);
    assert_eq!(counted.times.count(), counted.answered);
}

#[test]
fn requests_that_wait_for_one_another_have_an_ideal_that_waits_as_well() {
    let slowdown = |window: u32, set: &[(&str, &str)]| {
        let one = format!(
            "threads = 1\nconnections = 1\nrequest = \"64B\"\nresponse = \"64B\"\nwindow = {window}\ncount = 100\n"
        );
        run(&scenario(&one, ""), set).flows[0].slowdown().expect("it is done")
    };
    let keys = [("processing", "100us"), ("overhead", "5us"), ("response", "4000B"), ("request", "100KB")];
    for (key, value) in keys {
        let one = slowdown(1, &[(&format!("traffic.0.{key}"), value)]);
        assert!((1.0..1.5).contains(&one), "{key} = {value}: {one}");
    }
    for window in [1, 4] {
        let one = slowdown(window, &[]);
        assert!((1.0..1.2).contains(&one), "window {window}: {one}");
    }
    let many = slowdown(100, &[("traffic.0.processing", "10us")]);
    assert!((1.0..1.1).contains(&many), "the thread is what they wait for: {many}");
}

/// A server that has a NIC on each of two networks, and clients on the first, on the second and on both.
const TWO_NETWORKS: &str = r#"
    start_jitter = "0s"
    [topology]
    kind = "graph"
    hosts = ["server", "one", "other", "both"]
    switches = ["s", "t"]
    links = [
        { a = "server", b = "s", rate = "100Gb/s", delay = "1us" },
        { a = "server", b = "t", rate = "100Gb/s", delay = "1us" },
        { a = "one", b = "s", rate = "100Gb/s", delay = "1us" },
        { a = "other", b = "t", rate = "100Gb/s", delay = "1us" },
        { a = "both", b = "s", rate = "100Gb/s", delay = "1us" },
        { a = "both", b = "t", rate = "100Gb/s", delay = "1us" },
    ]
    [nic]
    mtu = 4096
    [transport]
    control = "none"
    [[traffic]]
    kind = "rpc"
    server = "server"
    threads = 2
    connections = 4
    request = "100KB"
    window = 3
    count = 20
"#;

#[test]
fn requests_take_the_nics_that_flows_take_and_all_are_answered_by_one_machine() {
    for credits in ["none", "session", "basic", "loosened"] {
        let hostcc = ("machine.hostcc", "true");
        let results = run(TWO_NETWORKS, &[("traffic.0.credits", credits), hostcc]);
        all_answered(&results, 240);
        let ends = |flow: &roci_lab::results::FlowResult| {
            [results.host(flow.src).to_owned(), results.host(flow.dst).to_owned()]
        };
        let count =
            |from: &str, to: &str| results.flows.iter().filter(|flow| ends(flow) == [from, to]).count();
        assert_eq!([count("one", "server.0"), count("other", "server.1")], [4, 4], "{credits}");
        assert_eq!([count("both.0", "server.0"), count("both.1", "server.1")], [2, 2], "{credits}");
        // Either NIC carries half of 240 requests of 100 KB.
        for link in results.links.iter().filter(|link| link.name.contains(">server.")) {
            assert!(
                (12_000_000..13_500_000).contains(&link.tx_bytes),
                "{credits} {} {}",
                link.name,
                link.tx_bytes
            );
        }
    }
}

#[test]
fn of_two_nics_requests_have_twice_what_they_have_of_one() {
    let fast = [
        ("traffic.0.threads", "8"),
        ("traffic.0.connections", "8"),
        ("traffic.0.window", "8"),
        ("traffic.0.clients", "[\"both\"]"),
    ];
    let time = |text: &str| run(text, &fast).simulated.as_secs_f64();
    let one = TWO_NETWORKS
        .replace("{ a = \"server\", b = \"t\", rate = \"100Gb/s\", delay = \"1us\" },", "")
        .replace("{ a = \"both\", b = \"t\"", "{ a = \"s\", b = \"t\"");
    let ratio = time(&one) / time(TWO_NETWORKS);
    assert!((1.8..2.1).contains(&ratio), "{ratio}");
}

#[test]
fn requests_have_packets_that_all_nics_of_both_hosts_take() {
    let text = format!("{TWO_NETWORKS}\n[[nic.on]]\nhosts = [\"server.1\"]\nmtu = 1024\n");
    let results = run(&text, &[]);
    all_answered(&results, 240);
    // 1000 octets behind each header.
    assert!(results.flows.iter().all(|flow| flow.packets >= 20 * 100), "{:?}", results.flows[0]);
}
