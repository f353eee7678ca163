//! Links that run slower for a while, switches that fail, and what becomes of the flows.

use super::{run, star};
use pcap_file::pcapng::{Block, PcapNgReader};
use roci_lab::results::{FlowStatus, Outcome, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::{Instant, Span};
use roci_wire::{Layout, Packet};
use std::path::Path;

/// A long flow from each of so many senders to `h0` over a link of 100 Gb/s that runs at 25 Gb/s from 1 ms to 3 ms.
fn degraded(control: &str, senders: u32) -> String {
    let flow = |sender| format!("{{ src = \"h{sender}\", dst = \"h0\", size = \"1GB\" }}");
    let flows: Vec<String> = (1..=senders).map(flow).collect();
    let rest = format!(
        r#"
        stop = "4ms"
        [transport]
        recovery = "go-back-n"
        control = {control}
        [[traffic]]
        kind = "flows"
        flows = [{}]
        [measure]
        sample = "10us"
        [[faults.on]]
        link = "s0>h0"
        from = "1ms"
        until = "3ms"
        rate = "25Gb/s"
        "#,
        flows.join(", ")
    );
    star(senders + 1, "100Gb/s", &rest)
}

/// What the flows brought to `h0` between two instants, in Gb/s of its link, headers, preamble and gap in.
fn carried(results: &Results, from: u64, until: u64) -> f64 {
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let mut octets = 0;
    for flow in (0u32..).take(results.flows.len()) {
        let readings: Vec<_> = results.series.flow_readings(flow).collect();
        let payload =
            |us| readings.iter().rfind(|(when, _)| *when <= at(us)).map_or(0, |last| last.1.payload);
        octets += payload(until) - payload(from);
    }
    // A packet of 1024 octets takes 1106.
    octets as f64 * 8.0 / ((until - from) as f64 * 1e3) * 1106.0 / 1024.0
}

#[test]
fn what_a_degraded_link_carries_is_its_lower_rate_under_go_back_n_and_under_dcqcn() {
    // PFC holds back what exceeds the link where no law does; eight flows of DCQCN leave a queue that keeps it busy
    // where marking begins late.
    let late = [("switch.ecn.kmin", "400KB"), ("switch.ecn.kmax", "1600KB"), ("switch.ecn.pmax", "0.2")];
    for (control, senders) in [("\"none\"", 1), ("{ law = \"dcqcn\", preset = \"hpcc\" }", 8)] {
        let results = run(&degraded(control, senders), &late);
        let slow = carried(&results, 1_500, 2_900);
        assert!((slow / 25.0 - 1.0).abs() < 0.01, "{control}: {slow}");
        let full = [carried(&results, 500, 900), carried(&results, 3_100, 3_900)];
        let least = if senders == 1 { 99.0 } else { 40.0 }; // DCQCN is on its way up
        assert!(full.iter().all(|gbps| (least..101.0).contains(gbps)), "{control}: {full:?}");
        let link = results.links.iter().find(|link| link.name == "s0>h0").expect("there is one");
        assert_eq!(link.rate.0, 100_000_000_000, "it is told as it was built");
    }
}

#[test]
fn hpcc_hears_of_the_lower_rate_and_keeps_the_queue_short_at_it() {
    let results = run(&degraded("\"hpcc\"", 1), &[]);
    let slow = carried(&results, 1_500, 2_900);
    assert!((slow / (25.0 * 0.95) - 1.0).abs() < 0.05, "95 % of what the port tells: {slow}");
    let full = carried(&results, 3_300, 3_900);
    assert!(full > 85.0, "and all of it when that is back: {full}");
}

/// When packets with a payload arrived at `host`, in nanoseconds, as a capture tells.
fn arrivals(text: &str, host: &str) -> Vec<u64> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captured-over-a-degraded-link");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let nodes = [("measure.pcap".to_owned(), format!("[\"{host}\"]"))];
    let scenario = Scenario::parse(text, "here.toml", &nodes).unwrap_or_else(|error| panic!("{error}"));
    let run = SimulatedWorld.run(&scenario, 1, Some(&folder), &mut |_| Go::On);
    run.unwrap_or_else(|error| panic!("{error}"));
    let octets = std::fs::read(folder.join("capture.pcapng")).expect("it was captured");
    let mut reader = PcapNgReader::new(&octets[..]).expect("it is pcapng");
    let mut times = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(block) = block.expect("it is whole") else { continue };
        let data =
            Packet::parse(&block.data, |_| Layout::Standard).is_ok_and(|packet| !packet.payload.is_empty());
        if data {
            times.push(u64::try_from(block.timestamp.as_nanos()).expect("milliseconds"));
        }
    }
    times
}

#[test]
fn a_capture_shows_frames_as_far_apart_as_the_rate_in_force_has_them() {
    let times = arrivals(&degraded("\"none\"", 1), "h0");
    // 1106 octets: 88.48 ns at 100 Gb/s and 353.92 ns at 25 Gb/s; captures count nanoseconds.
    let gaps = |from: u64, until: u64| {
        let within = |pair: &&[u64]| pair[0] >= from * 1_000 && pair[1] < until * 1_000;
        times.windows(2).filter(within).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
    };
    let full = [gaps(100, 999), gaps(3_002, 3_999)].concat();
    let slow = gaps(1_002, 2_999);
    let share = |gaps: &[u64], expected: [u64; 2]| {
        gaps.iter().filter(|gap| expected.contains(gap)).count() as f64 / gaps.len() as f64
    };
    assert!(full.len() > 15_000 && share(&full, [88, 89]) > 0.99, "{:?}", &full[..20]);
    assert!(slow.len() > 5_000 && share(&slow, [353, 354]) > 0.99, "{:?}", &slow[..20]);
}

/// Eight flows from one leaf to the other, over two spines, one of which is down from 200 us on.
const FAILED_SPINE: &str = r#"
    [topology]
    kind = "leaf-spine"
    leaves = 2
    spines = 2
    hosts_per_leaf = 8
    rate = "25Gb/s"
    fabric_rate = "100Gb/s"
    delay = "1us"
    [transport]
    timeout = "100us"
    control = "none"
    [[traffic]]
    kind = "flows"
    flows = [
      { src = "h0", dst = "h8", size = "4MB" }, { src = "h1", dst = "h9", size = "4MB" },
      { src = "h2", dst = "h10", size = "4MB" }, { src = "h3", dst = "h11", size = "4MB" },
      { src = "h4", dst = "h12", size = "4MB" }, { src = "h5", dst = "h13", size = "4MB" },
      { src = "h6", dst = "h14", size = "4MB" }, { src = "h7", dst = "h15", size = "4MB" },
    ]
    [faults]
    detect = "50us"
    [[faults.on]]
    switch = "spine1"
    from = "200us"
    until = "9ms"
    down = true
    "#;

#[test]
fn links_tell_which_of_them_led_to_the_switch_that_failed_and_all_that_was_lost_is_told_of_somewhere() {
    let results = run(FAILED_SPINE, &[]);
    // With neither spine left the leaf knows no way, and loses packets itself.
    let no_way = run(FAILED_SPINE, &[("faults.on.0.switch", "spine*")]);
    for (results, in_switches) in [(&results, false), (&no_way, true)] {
        let faults = results.faults.expect("there are some");
        let on_links: u64 = results.links.iter().map(|link| link.lost).sum();
        assert_eq!(on_links + faults.dropped_in_switches, faults.dropped);
        assert_eq!(faults.dropped_in_switches > 0, in_switches, "{faults:?}");
    }
    let of = |name: &str| results.links.iter().find(|link| link.name == name).expect("there is one").lost;
    assert!(of("leaf0>spine1") > 0, "{:?}", results.links);
    assert_eq!(
        results.links.iter().filter(|link| !link.name.contains("spine1")).map(|it| it.lost).sum::<u64>(),
        0
    );
    let lossy = run(FAILED_SPINE, &[("faults.on.0.down", "false"), ("faults.corrupt", "0.001")]);
    let damaged: u64 = lossy.links.iter().map(|link| link.corrupted).sum();
    assert!(damaged > 0 && damaged == lossy.faults.expect("there are some").corrupted);
}

#[test]
fn each_table_of_faults_is_told_with_what_it_took_and_how_long_goodput_was_hurt() {
    let results = run(FAILED_SPINE, &[("measure.sample", "20us")]);
    let rule = &results.rules[0];
    assert_eq!((results.rules.len(), rule.name.as_str(), rule.what.as_str()), (1, "spine1", "down"));
    let faults = results.faults.expect("packets were lost");
    let held: u64 = results.switches.iter().map(|switch| switch.lost_as_it_failed).sum();
    assert_eq!((rule.lost, faults.dropped_in_switches), (faults.dropped, held));
    let mean = rule.lost_octets / rule.lost;
    assert!((64..1_200).contains(&mean), "{mean}: data packets and acknowledgements");
    let no_way = run(FAILED_SPINE, &[("faults.on.0.switch", "spine*")]);
    let without_way: u64 = no_way.switches.iter().map(|switch| switch.lost_without_way).sum();
    assert!(without_way > 0 && no_way.switches[0].lost_without_way > 0, "{:?}", no_way.switches);
    assert_eq!(no_way.rules[0].lost + without_way, no_way.faults.expect("some were lost").dropped);

    let slow = run(&degraded("\"none\"", 1), &[]);
    let (rule, effect) = (&slow.rules[0], slow.rules[0].effect);
    assert_eq!((rule.name.as_str(), rule.what.as_str(), rule.lost), ("s0>h0", "rate", 0));
    let Outcome::Back(after) = effect.outcome else { panic!("{effect:?}") };
    assert!(
        (1_980..=2_020).contains(&(after.as_ps() / 1_000_000)),
        "{after}: for 2 ms it is slow, and samples are 10 us apart"
    );
    let [before, least] = [effect.before_bps, effect.least_bps].map(|bps| bps.expect("it is known") / 1e9);
    assert!((85.0..93.0).contains(&before) && (22.0..24.0).contains(&least), "{effect:?}");
    // Of a link that nobody uses, behind the end, and of hardly any weight.
    let calm =
        run(&degraded("\"none\"", 1).replace("hosts = 2", "hosts = 3"), &[("faults.on.0.link", "s0-h2")]);
    assert_eq!((calm.rules[0].lost, calm.rules[0].effect.outcome), (0, Outcome::Unaffected));
    let late = run(&degraded("\"none\"", 1), &[("faults.on.0.from", "4ms"), ("faults.on.0.until", "5ms")]);
    assert_eq!(late.rules[0].effect.outcome, Outcome::NotReached);
    let above = run(&degraded("\"none\"", 1), &[("faults.on.0.rate", "97Gb/s")]);
    assert_eq!(above.rules[0].effect.outcome, Outcome::Unaffected, "97 is more than 95 of 100");
}

#[test]
fn outages_without_a_gap_between_them_are_noticed_as_one() {
    let both = r#"
    [[faults.on]]
    switch = "spine1"
    from = "230us"
    until = "9ms"
    down = true
    "#;
    let whole = run(FAILED_SPINE, &[]);
    let parts = run(&format!("{FAILED_SPINE}{both}"), &[("faults.on.0.until", "230us")]);
    assert_eq!(parts.faults, whole.faults);
    assert_eq!(parts.rules[0].lost + parts.rules[1].lost, whole.rules[0].lost);
    assert!(
        parts.rules.iter().all(|rule| rule.lost > 0),
        "50 us pass until it is noticed: {:?}",
        parts.rules
    );
}

#[test]
fn a_link_that_is_down_from_when_its_switch_is_back_is_noticed_as_if_it_had_been_the_link_all_the_time() {
    let link = r#"
    [[faults.on]]
    link = "leaf*-spine1"
    from = "230us"
    until = "9ms"
    down = true
    "#;
    let set = [("faults.on.0.until", "230us"), ("measure.sample", "10us")];
    let results = run(&format!("{FAILED_SPINE}{link}"), &set);
    // It takes 50 us: 30 of them while the switch is down, and 20 while the links are.
    let [switch, links] = [0, 1].map(|rule: usize| results.rules[rule].lost);
    assert!(links > 0 && links < switch, "{switch} and {links}");
}

#[test]
fn flows_over_a_failed_spine_go_on_by_the_other_one() {
    let whole = run(FAILED_SPINE, &[("faults.on.0.down", "false")]);
    let failed = run(FAILED_SPINE, &[]);
    let sent = |results: &Results, spine: &str| {
        let links = results.links.iter().filter(|link| link.name.starts_with(spine));
        links.map(|link| link.tx_bytes).sum::<u64>()
    };
    assert!(failed.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", failed.flows);
    assert!(failed.faults.expect("packets were lost").dropped > 100);
    assert!(sent(&whole, "spine1") > 4_000_000, "it has flows");
    assert!(sent(&failed, "spine1") < sent(&whole, "spine1") / 4);
    assert!(sent(&failed, "spine0") > 30_000_000, "all of the rest");
    // Only those that were under way over it sent anything again.
    let again = failed.flows.iter().filter(|flow| flow.retransmitted > 0).count();
    assert!((1..8).contains(&again), "{again}");
}

#[test]
fn where_routes_stay_as_they_are_flows_over_a_failed_spine_fail() {
    let results = run(FAILED_SPINE, &[("faults.detect", "never"), ("faults.on.0.until", "90ms")]);
    let failed = results.flows.iter().filter(|flow| flow.status != FlowStatus::OK).count();
    assert!((1..8).contains(&failed), "{failed}");
}

#[test]
fn switches_and_links_may_be_down_from_the_beginning_and_all_traffic_is_done() {
    for rule in [
        "switch = \"spine1\"\ndown = true",
        "link = \"leaf*-spine1\"\ndown = true",
        "link = \"leaf0>spine1\"\ndown = true",
    ] {
        let text = FAILED_SPINE.split("[[faults.on]]").next().expect("before it");
        let results = run(&format!("{text}\n[[faults.on]]\n{rule}\n"), &[]);
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{rule}");
        assert_eq!(results.faults.map_or(0, |faults| faults.dropped), 0, "{rule}");
    }
}

#[test]
fn a_flapping_spine_beside_a_pause_storm_leaves_nothing_stuck() {
    for seed in ["3", "4", "5"] {
        let text = FAILED_SPINE.split("[[faults.on]]").next().expect("before it");
        let rules = r#"
            [[faults.on]]
            switch = "spine1"
            from = "100us"
            until = "900us"
            flap = { up = "90us", down = "60us" }
            [[faults.on]]
            link = "leaf0-spine0"
            from = "300us"
            until = "700us"
            pause_storm = true
            rate = "10Gb/s"
            "#;
        let changed = [("seed", seed), ("switch.buffer", "3MB"), ("transport.retry", "7")];
        let results = run(&format!("{text}{rules}"), &changed);
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        assert!(results.deadlock.is_none());
    }
}

#[test]
fn bit_errors_are_lost_and_all_arrives() {
    let rest = r#"
        [transport]
        control = "none"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "20MB" }]
        [faults]
        ber = 1e-8
        "#;
    let results = run(&star(2, "100Gb/s", rest), &[]);
    assert_eq!(results.flows[0].status, FlowStatus::OK);
    // Two links, and some 20 000 packets of 8700 bits, sent again or not.
    let frames = results.links.iter().map(|link| link.tx_bytes).sum::<u64>() as f64;
    let (expected, lost) = (frames * 8.0 * 1e-8, results.faults.expect("some are lost"));
    assert_eq!(lost.corrupted, 0);
    let lost = lost.dropped as f64;
    assert!((lost - expected).abs() < 5.0 * expected.sqrt(), "{lost} for {expected}");
}

#[test]
fn a_flow_whose_route_changes_may_take_less_than_alone_on_one_path() {
    // The links to the cores are half as fast as the hosts': what queues before one of them goes on while the rest takes another.
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 4
        hosts_per_leaf = 4
        rate = "25Gb/s"
        fabric_rate = "12.5Gb/s"
        delay = "1us"
        [switch]
        wcmp = true
        [transport]
        recovery = "ndp"
        control = "none"
        [[traffic]]
        kind = "permutation"
        size = "1MB"
        [faults]
        detect = "50us"
        [[faults.on]]
        link = "leaf1-spine0"
        from = "100us"
        rate = "1Gb/s"
        "#;
    let results = run(text, &[]);
    let least = results.flows.iter().filter_map(|flow| flow.slowdown()).fold(f64::MAX, f64::min);
    assert!(least < 0.99, "{least}");
}
