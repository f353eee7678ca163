//! What a scenario's keys do to a run, seen from outside.

use pcap_file::pcapng::{Block, PcapNgReader};
use roci_lab::results::series::{Metric, Source};
use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_transport::Status;
use roci_wire::{Layout, Opcode, Packet, Shape};
use std::collections::BTreeMap;
use std::path::Path;
use support::{run, star};

mod ets;
mod losses;
mod nics;
mod outages;
mod paces;
mod pauses;
mod priorities;
mod receiving;
mod registers;
mod routing;
mod spread;
#[path = "../support/mod.rs"]
mod support;
mod thresholds;
mod unreliable;

const INCAST: &str = r#"
    [topology]
    kind = "star"
    hosts = 5
    rate = "10Gb/s"
    delay = "1us"
    [[traffic]]
    kind = "incast"
    senders = 4
    receiver = "h0"
    size = "1MB"
    "#;

#[test]
fn telemetry_lengthens_data_by_eight_octets_a_switch_and_comes_back_with_the_acknowledgement() {
    let plain = run(INCAST, &[("switch.ecn", "false")]);
    let told = run(INCAST, &[("switch.ecn", "false"), ("switch.int", "true")]);
    let received = |results: &Results| results.hosts[0].rx_bytes;
    let data: u64 = told.flows.iter().map(|flow| flow.packets).sum();
    assert_eq!(plain.flows.iter().map(|flow| flow.packets).sum::<u64>(), data);
    assert_eq!(received(&told) - received(&plain), 8 * data);
    // Each packet is acknowledged, and switches add nothing to acknowledgements.
    assert_eq!(told.hosts[0].tx_bytes - plain.hosts[0].tx_bytes, 8 * data);
}

/// The most that a metric of queues reached, by their names.
fn peaks(results: &Results, metric: Metric) -> BTreeMap<String, f64> {
    let mut peaks = BTreeMap::new();
    results.series.rows(|row| {
        if let (Source::Queue(place), true) = (row.source, row.metric == metric && row.value > 0.0) {
            let peak = peaks.entry(results.series.queue_names()[place as usize].clone()).or_insert(0.0);
            *peak = row.value.max(*peak);
        }
    });
    peaks
}

#[test]
fn an_incast_of_reads_fills_the_queue_of_its_receiver_as_one_of_writes_does() {
    for op in ["write", "read"] {
        let traffic = [("traffic.0.op", op), ("measure.sample", "10us"), ("transport.control", "none")];
        let results = run(INCAST, &traffic);
        let (deepest, received) = (peaks(&results, Metric::Bytes), results.hosts[0].rx_bytes);
        assert!(deepest["s0>h0:3"] > 100_000.0 && received > 4_000_000, "{op}: {deepest:?}, {received}");
        let at_others = peaks(&results, Metric::Marks).into_iter().filter(|(name, _)| name != "s0>h0:3");
        assert_eq!(at_others.collect::<Vec<_>>(), [], "{op}: nothing is marked elsewhere");
        let reads = op == "read";
        assert!(results.flows.iter().all(|flow| (flow.src == 0) == reads && (flow.dst == 0) != reads));
    }
}

#[test]
fn the_pauses_of_hosts_are_sampled() {
    let results = run(INCAST, &[("transport.control", "none"), ("switch.buffer", "400KB")]);
    let pauses = peaks(&results, Metric::Pauses);
    for (place, host) in results.hosts.iter().enumerate() {
        let of_host = pauses.get(&format!("h{place}>s0:3")).copied().unwrap_or(0.0);
        assert!(place == 0 || host.pause_received > 0, "the senders are paused");
        assert!((of_host - host.pause_received as f64).abs() < 0.5, "{pauses:?}");
    }
    assert!(!peaks(&run(INCAST, &[("switch.buffer", "100MB")]), Metric::Pauses).contains_key("h1>s0:3"));
}

#[test]
fn the_queues_of_every_priority_that_data_travel_on_are_sampled() {
    let flow = |n, priority| {
        format!("{{ src = \"h{n}\", dst = \"h0\", op = \"write\", size = \"1MB\", priority = {priority} }}")
    };
    let flows = |a, b| {
        let list = [flow(1, a), flow(2, a), flow(3, b), flow(4, b)].join(", ");
        let (head, _) = INCAST.split_once("[[traffic]]").unwrap();
        format!("{head}[[traffic]]\nkind = \"flows\"\nflows = [{list}]\n")
    };
    let set = [("switch.pfc", "false"), ("transport.control", "none"), ("measure.sample", "10us")];
    let alone = peaks(&run(&flows(5, 5), &set), Metric::Bytes);
    assert!(alone["s0>h0:5"] > 500_000.0 && !alone.contains_key("s0>h0:3"), "{alone:?}");
    let both = peaks(&run(&flows(3, 5), &set), Metric::Bytes);
    assert!(both["s0>h0:5"] > 10_000.0 && both["s0>h0:3"] > 500_000.0, "{both:?}");
}

#[test]
fn packets_that_are_dropped_though_pfc_is_on_are_explained() {
    let warnings = |set: &[(&str, &str)]| {
        let few = [("switch.buffer", "100KB"), ("transport.control", "none")];
        let results = run(INCAST, &[&few, set].concat());
        let told = results.warnings.iter().filter(|warning| warning.contains("though PFC is on"));
        let told: Vec<String> = told.cloned().collect();
        let drops: u64 = results.switches.iter().map(|switch| switch.drops).sum();
        assert_eq!(told.is_empty(), drops == 0, "{drops}: {told:?}");
        told.concat()
    };
    assert_eq!(warnings(&[("switch.pfc.headroom", "exact")]), "");
    let short = warnings(&[("switch.pfc.headroom", "1KB")]);
    assert!(short.contains("`s0` has a headroom of 1KB for what comes from `h"), "{short}");
    assert!(short.contains("`switch.pfc.headroom = \"exact\"` would be "), "{short}");
    let other = warnings(&[("traffic.0.priority", "2")]);
    assert!(other.contains("priorities that PAUSE does not act on"), "{other}");
}

#[test]
fn a_receive_rate_without_a_fifo_slows_the_receiver() {
    let took = |set: &[(&str, &str)]| run(INCAST, set).simulated.as_secs_f64();
    let (free, slow) = (took(&[]), took(&[("nic.rx_rate", "2Gb/s")]));
    assert!(slow > 3.0 * free, "4 MB take {slow} s at 2 Gb/s, and {free} s at 10 Gb/s");
}

#[test]
fn what_is_under_way_has_goodput_within_the_line() {
    let results = run(INCAST, &[("stop", "1ms"), ("transport.control", "none")]);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::Running && flow.delivered > 0));
    let total: u64 = results.flows.iter().map(|flow| flow.goodput_bps(results.simulated)).sum();
    assert!((8_500_000_000..10_000_000_000).contains(&total), "{total}");
}

#[test]
fn reads_have_goodput_within_the_line_whether_they_go_on_or_have_failed() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [transport]
        control = "none"
        timeout = "20us"
        retry = 2
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "read", size = "1MB" }]
        "#,
    );
    for recovery in ["go-back-n", "irn", "srnic"] {
        let recovery = ("transport.recovery", recovery);
        let results = run(&text, &[recovery, ("stop", "400us")]);
        let flow = &results.flows[0];
        assert_eq!(flow.status, FlowStatus::Running);
        assert!((400_000..500_000).contains(&flow.delivered), "{recovery:?}: {} octets", flow.delivered);
        let last = results.series.flow_readings(0).last().expect("it was sampled").1;
        assert!((400_000..500_000).contains(&last.payload), "{recovery:?}: {last:?}");

        let cut = text.to_owned() + "[[faults.on]]\nlink = \"h1-s0\"\nfrom = \"400us\"\nloss = 1\n";
        let results = run(&cut, &[recovery]);
        let flow = &results.flows[0];
        assert!(matches!(flow.status, FlowStatus::Completed(status) if status != Status::Success));
        assert!((400_000..500_000).contains(&flow.delivered), "{recovery:?}: {} octets", flow.delivered);
    }
}

#[test]
fn small_messages_take_no_more_than_the_line() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        stop = "1ms"
        [[traffic]]
        kind = "closed-loop"
        src = "h0"
        dst = "h1"
        qps = 1
        op = "write"
        message = "64B"
        depth = 64
        "#,
    );
    let results = run(&text, &[]);
    let last = results.series.flow_readings(0).last().expect("it was sampled").1;
    let line = 10_000_000_000 / 8 / 1_000;
    assert!(last.wire > line / 2 && last.wire <= line, "{} of {line} octets", last.wire);
}

/// Messages between two hosts alone.
const CLOSED_LOOP: &str = r#"
    [topology]
    kind = "star"
    hosts = 2
    rate = "100Gb/s"
    delay = "1us"
    [[traffic]]
    kind = "closed-loop"
    src = "h0"
    dst = "h1"
    qps = 1
    "#;

/// Of messages of a packet each the last one is no longer than the others, whatever all their octets would fill.
#[test]
fn messages_of_a_packet_each_take_no_less_than_alone_on_an_idle_path() {
    for [op, message, count] in [["send", "512B", "8"], ["write", "1000B", "15"], ["read", "300B", "5"]] {
        let text =
            format!("{CLOSED_LOOP}op = \"{op}\"\nmessage = \"{message}\"\ncount = {count}\ndepth = 16\n");
        let slowdown = run(&text, &[]).flows[0].slowdown().expect("it is done");
        assert!((1.0..1.1).contains(&slowdown), "{op}: {slowdown}");
    }
}

#[test]
fn a_captured_response_has_one_payload_however_often_it_is_sent() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [transport]
        control = "none"
        [[traffic]]
        kind = "closed-loop"
        src = "h0"
        dst = "h1"
        op = "read"
        message = "10KB"
        depth = 2
        count = 20
        [faults]
        loss = 0.02
        [measure]
        pcap = ["h0"]
        "#,
    );
    for node in ["h0", "h1", "s0"] {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reads-captured-at").join(node);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        let nodes = [("measure.pcap".to_owned(), format!("[\"{node}\"]"))];
        let scenario = Scenario::parse(&text, "here.toml", &nodes).unwrap_or_else(|error| panic!("{error}"));
        let run = SimulatedWorld.run(&scenario, 1, Some(&folder), &mut |_| Go::On);
        run.unwrap_or_else(|error| panic!("{error}"));
        let octets = std::fs::read(folder.join("capture.pcapng")).expect("it was captured");
        let mut reader = PcapNgReader::new(&octets[..]).expect("it is pcapng");
        let (mut base, mut begun_in_the_middle, mut places) = (None, 0, BTreeMap::new());
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(block) = block.expect("it is whole") else { continue };
            let packet = Packet::parse(&block.data, |_| Layout::Standard).expect("it is RoCE");
            let (header, shape) = (packet.transport.header, packet.transport.header.opcode.shape());
            let base = *base.get_or_insert(header.psn);
            if !shape.has(Shape::RESPONSE) || !shape.has(Shape::PAYLOAD) {
                continue;
            }
            // Ten packets answer each READ, and nothing else takes numbers.
            let place = header.psn.since(base).rem_euclid(10);
            begun_in_the_middle += u32::from(header.opcode == Opcode::READ_RESPONSE_FIRST && place > 0);
            let begins = u8::try_from(place * 1024 % 251).expect("less than 251");
            assert_eq!(packet.payload[0], begins, "{node}: response {}", header.psn.since(base));
            *places.entry(header.psn.since(base)).or_insert(0) += 1;
        }
        assert_eq!(places.len(), 200, "{node}: all were captured");
        assert!(begun_in_the_middle > 0, "{node}: nothing was asked for again, so nothing was tested");
    }
}

#[test]
fn equally_many_hops_of_unequal_links_leave_no_flow_faster_than_its_ideal() {
    let links = [("a", "s0", 100, 1), ("s0", "m1", 100, 100), ("s0", "m2", 100, 1), ("s0", "m3", 10, 1)];
    let links = links.iter().chain(&[("m1", "s3", 100, 100), ("m2", "s3", 100, 1), ("m3", "s3", 10, 1)]);
    let links: Vec<String> = links
        .chain(&[("s3", "b", 100, 1)])
        .map(|(a, b, gbps, us)| {
            format!("{{ a = \"{a}\", b = \"{b}\", rate = \"{gbps}Gb/s\", delay = \"{us}us\" }}")
        })
        .collect();
    for size in ["1KB", "100KB"] {
        let text = format!(
            r#"
            [topology]
            kind = "graph"
            hosts = ["a", "b"]
            switches = ["s0", "m1", "m2", "m3", "s3"]
            links = [{}]
            [[traffic]]
            kind = "closed-loop"
            pairs = [["a", "b"]]
            qps = 32
            message = "{size}"
            depth = 1
            count = 1
            "#,
            links.join(", ")
        );
        let results = run(&text, &[]);
        let slowdowns: Vec<f64> =
            results.flows.iter().map(|flow| flow.slowdown().expect("it is done")).collect();
        assert!(slowdowns.iter().all(|slowdown| *slowdown >= 1.0), "{slowdowns:?}");
        assert!(slowdowns.iter().any(|slowdown| *slowdown > 2.0), "some take the long way: {slowdowns:?}");
    }
}

#[test]
fn what_is_sprayed_over_slow_links_goes_faster_than_one_of_them_and_no_faster_than_its_ideal() {
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 4
        hosts_per_leaf = 1
        rate = "100Gb/s"
        fabric_rate = "40Gb/s"
        delay = "1us"
        [switch]
        ecn = false
        [transport]
        recovery = "irn"
        control = { law = "none" }
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "1MB" }]
        "#;
    let fct = |results: &Results| results.flows[0].fct().expect("it is done").as_secs_f64();
    let (one, all) = (run(text, &[]), run(text, &[("switch.routing", "spray")]));
    assert!(fct(&all) < 0.6 * fct(&one), "{} of {}", fct(&all), fct(&one));
    let [alone, sprayed] = [&one, &all].map(|results| results.flows[0].slowdown().expect("it is done"));
    assert!((1.0..1.01).contains(&alone), "{alone}");
    // What overtakes is asked for again, so it is not quite as fast as the links together.
    assert!((1.0..1.5).contains(&sprayed), "{sprayed}");
}

#[test]
fn a_short_last_packet_that_overtakes_takes_no_less_than_the_ideal() {
    let text = |size: u32| {
        format!(
            r#"
            [topology]
            kind = "leaf-spine"
            leaves = 2
            spines = 2
            hosts_per_leaf = 1
            rate = "100Gb/s"
            delay = "1us"
            [switch]
            routing = "spray"
            [transport]
            recovery = "irn"
            control = "none"
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h1", size = "{size}B" }}, {{ src = "h1", dst = "h0", op = "read", size = "{size}B" }}]
            "#
        )
    };
    for size in [1_025, 1_100, 1_300, 2_000, 2_100, 4_500] {
        for flow in &run(&text(size), &[]).flows {
            let slowdown = flow.slowdown().expect("it is done");
            assert!((1.0..1.1).contains(&slowdown), "{size}: {slowdown}");
        }
    }
}

#[test]
fn messages_that_wait_for_one_another_alone_are_not_slowed_down() {
    let text = format!("{CLOSED_LOOP}message = \"8B\"\n");
    for op in ["write", "send", "read", "fetch-add", "compare-swap"] {
        for (depth, count) in [("1", "100"), ("4", "100"), ("64", "200")] {
            let named = format!("{text}op = \"{op}\"\ndepth = {depth}\ncount = {count}\n");
            let slowdown = run(&named, &[]).flows[0].slowdown().expect("it is done");
            assert!((1.0..1.3).contains(&slowdown), "{op}, depth {depth}: {slowdown}");
        }
    }
    let endless = format!("{text}op = \"write\"\ndepth = 1\n");
    let results = run(&endless, &[("stop", "1ms")]);
    assert_eq!((results.flows[0].ideal, results.flows[0].slowdown()), (None, None));
    assert!(results.flows[0].delivered > 0);
}

#[test]
fn a_message_of_more_packets_than_sequence_numbers_can_tell_apart_is_posted_in_parts() {
    let text = star(
        2,
        "100Gb/s",
        r#"
        stop = "1ms"
        [nic]
        mtu = 1
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "10MB" }]
        "#,
    );
    let results = run(&text, &[]);
    assert_eq!((results.flows[0].status, results.flows[0].bytes), (FlowStatus::Running, 10_000_000));
    assert!(results.flows[0].delivered > 0);
}

#[test]
fn a_flow_of_two_messages_does_not_wait_between_them() {
    let text = r#"
        [topology]
        kind = "star"
        hosts = 2
        rate = "400Gb/s"
        delay = "100us"
        [switch]
        pfc = false
        [nic]
        mtu = 4096
        [transport]
        control = "none"
        timeout = "10ms"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "2GiB" }]
        "#;
    let results = run(text, &[]);
    let slowdown = results.flows[0].slowdown().expect("it ends");
    // A round trip is 0.9 % of it.
    assert!(slowdown < 1.0001, "{slowdown}");
}

#[test]
fn time_in_pause_is_summed_over_priorities() {
    let text = star(
        2,
        "10Gb/s",
        r#"
        [[nic.on]]
        hosts = ["h1"]
        rx_rate = "1Gb/s"
        rx_fifo = "64KB"
        [transport]
        control = { law = "none" }
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "1MB" }]
        "#,
    );
    let paused = |classes| run(&text, &[("switch.classes.pause", classes)]).switches[0].paused;
    let (one, two) = (paused("[3]"), paused("[3, 4]"));
    assert!(!one.is_zero());
    assert_eq!(two, one * 2);
}

#[test]
fn progress_tells_of_octets_of_open_messages_and_of_flows_that_have_yet_to_begin() {
    let told = |traffic: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\nrate = \"10Gb/s\"\ndelay = \"1us\"\n[[traffic]]\n{traffic}\n\
             [measure]\nsample = \"0s\"\n"
        );
        let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
        let mut told = Vec::new();
        let run = SimulatedWorld.run(&scenario, 1, None, &mut |progress| {
            told.push((progress.now, progress.delivered, progress.total));
            Go::On
        });
        let results = run.unwrap();
        (told, results.flows.iter().map(|flow| flow.bytes).sum::<u64>())
    };
    // Four messages of 16 ms: octet by octet, as they go.
    let (steps, all) = told("kind = \"permutation\"\nsize = \"20MB\"");
    assert!(steps.iter().all(|(_, delivered, total)| *total == Some(all) && *delivered <= all), "{steps:?}");
    assert!(steps.is_sorted_by_key(|(_, delivered, _)| *delivered), "{steps:?}");
    let half = steps.iter().find(|(now, ..)| now.as_ps() >= 8_000_000_000).unwrap();
    assert!((all / 3..all * 2 / 3).contains(&half.1), "{half:?}");
    // Half of the flows have yet to begin: as many again are expected.
    let (steps, all) = told("kind = \"poisson\"\nsizes = \"20KB\"\nload = 0.5\nuntil = \"40ms\"");
    let half = steps.iter().find(|(now, ..)| now.as_ps() >= 20_000_000_000).unwrap();
    assert!((all * 9 / 10..all * 11 / 10).contains(&half.2.unwrap()), "{half:?} of {all}");
    assert!((all * 4 / 10..all * 6 / 10).contains(&half.1), "{half:?} of {all}");
    assert_eq!(steps.last().unwrap().2, Some(all));
}

#[test]
fn packets_that_pause_was_sent_for_are_told_to_have_found_a_shared_buffer_of_a_packet_full() {
    let text = |buffer: u32| {
        format!(
            "seed = 10\nstart_jitter = \"3us\"\n[topology]\nkind = \"star\"\nhosts = 6\nrate = \"25Gb/s\"\ndelay = \"100ns\"\n[switch]\n\
             buffer = {buffer}\necn = false\npfc = {{ headroom = \"exact\", alpha = 1 }}\n[nic]\nmtu = 1024\n[transport]\n\
             control = \"none\"\n[[traffic]]\nkind = \"all-to-all\"\nsize = \"60KB\"\n[measure]\nsample = \"0s\"\n"
        )
    };
    let dropped = |buffer| {
        let scenario = Scenario::parse(&text(buffer), "here.toml", &[]).unwrap();
        let results = SimulatedWorld.run(&scenario, 10, None, &mut |_| Go::On).unwrap();
        (results.switches[0].drops, results.warnings)
    };
    // Headroom takes 17 358 octets; 1000 are left, and then eight packets.
    let (drops, warnings) = dropped(18_358);
    assert!(
        drops > 0
            && warnings[0].contains("the shared buffer had no room for packets that PAUSE was sent for"),
        "{warnings:?}"
    );
    assert_eq!(dropped(17_358 + 8 * 1_106).0, 0);
}

#[test]
fn what_flows_elsewhere_changes_no_flows_path() {
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 3
        spines = 2
        hosts_per_leaf = 2
        rate = "100Gb/s"
        delay = "1us"
        [transport]
        control = "none"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h2", size = "1MB", start = "10us" }, { src = "h1", dst = "h3", size = "1MB", start = "11us" }]
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h4", dst = "h5", size = "1KB" }]
    "#;
    let mut kept = Vec::new();
    for seed in 1..9 {
        let times = |start: &str| {
            let set = [("traffic.1.flows.0.start".to_owned(), start.to_owned())];
            let scenario = Scenario::parse(text, "here.toml", &set).unwrap();
            let results = SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).unwrap();
            [0, 1].map(|flow| results.flows[flow].fct())
        };
        assert_eq!(times("0s"), times("90us"), "seed {seed}");
        kept.push(times("0s"));
    }
    assert!(kept.iter().any(|times| *times != kept[0]), "seeds choose among paths: {kept:?}");
}

#[test]
fn how_often_samples_are_taken_changes_nothing_else() {
    let text = "stop = \"20ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n[transport]\n\
                control = \"none\"\n[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h1\", dst = \"h0\", size = \"2MB\" }]\n\
                [faults]\non = [{ link = \"h3>s0\", pause_storm = true, from = \"10us\" }]\n";
    let told = |sample: &str| {
        let results = run(text, &[("measure.sample", sample)]);
        let hosts: Vec<_> =
            results.hosts.iter().map(|host| (host.tx_bytes, host.rx_bytes, host.paused)).collect();
        (results.simulated, results.flows[0].end, hosts, results.switches, results.packet_hops)
    };
    let never = told("0s");
    assert_eq!(never.0, never.1, "the run ends with its last flow");
    for sample in ["1us", "300us", "5ms"] {
        assert_eq!(told(sample), never, "{sample}");
    }
}

#[test]
fn a_queues_mean_counts_the_time_in_which_nothing_flows() {
    let text = star(
        11,
        "10Gb/s",
        r#"
        stop = "100ms"
        [switch]
        ecn = false
        pfc = false
        [transport]
        control = "none"
        timeout = "1ms"
        [[traffic]]
        kind = "incast"
        senders = 8
        receiver = "h0"
        size = "20KB"
        every = "9ms"
        [[traffic]]
        kind = "closed-loop"
        src = "h9"
        dst = "h10"
        message = "1B"
        count = 1
        [measure]
        sample = "10us"
    "#,
    );
    // A trickle of messages elsewhere has samples taken all the time.
    let [idle, trickle] = ["1", "30000"].map(|count| {
        let results = run(&text, &[("traffic.1.count", count)]);
        results.series.depths().into_iter().find(|depth| depth.queue == "s0>h0:3").unwrap().mean_bytes
    });
    assert!(idle > 100.0 && (idle / trickle - 1.0).abs() < 0.1, "{idle} {trickle}");
}

/// Homa's packets overtake each other by their priorities, and all that was beyond a missing one counted when that came: 168 Gb/s over
/// a link of 10.
#[test]
fn what_came_beyond_a_missing_packet_is_delivered_when_it_comes() {
    let text = star(
        3,
        "10Gb/s",
        r#"
        [transport]
        control = "homa"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h1", dst = "h0", size = "3MB" }, { src = "h2", dst = "h0", size = "4MB" }]
        "#,
    );
    let mut at: BTreeMap<_, f64> = BTreeMap::new();
    run(&text, &[]).series.rows(|row| {
        if row.metric == Metric::Goodput {
            *at.entry(row.at).or_default() += row.value;
        }
    });
    let fastest = at.values().copied().fold(0.0, f64::max);
    assert!((8e9..9.2e9).contains(&fastest), "{fastest}");
    assert!(at.values().filter(|goodput| **goodput == 0.0).count() < at.len() / 20, "{at:?}");
}

#[test]
fn queues_of_parallel_links_have_names_of_their_own() {
    let text = r#"
        [topology]
        kind = "graph"
        hosts = ["a", "b"]
        switches = ["s", "t"]
        links = [
            { a = "a", b = "s", rate = "100Gb/s", delay = "1us" },
            { a = "s", b = "t", rate = "40Gb/s", delay = "1us" },
            { a = "t", b = "b", rate = "100Gb/s", delay = "1us" },
            { a = "t", b = "s", rate = "40Gb/s", delay = "1us" },
        ]
        [[traffic]]
        kind = "closed-loop"
        src = "a"
        dst = "b"
        qps = 32
        message = "64KB"
        count = 1
        [measure]
        sample = "1us"
        "#;
    let results = run(text, &[]);
    let names = results.series.queue_names().iter().filter(|name| name.starts_with("s>t"));
    assert_eq!(names.collect::<Vec<_>>(), ["s>t#1:3", "s>t#2:3"]);
}
