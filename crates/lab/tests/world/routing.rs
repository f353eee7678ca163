//! How switches choose among equal paths, and what comes of it.

use crate::support::{overrides, run};
use roci_fabric::Balancing;
use roci_lab::results::{FlowResult, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::Span;

const UNEVEN: &str = include_str!("../../../../scenarios/uneven-16.toml");

/// The mean completion time in milliseconds over four seeds, under each way to choose and with the slow link at `rate`. No flow may be faster
/// than the path alone.
fn means(rate: &str, wcmp: &str) -> [f64; 4] {
    ["ecmp", "spray", "adaptive", "flowlet"].map(|routing| {
        let set =
            overrides(&[("switch.routing", routing), ("switch.wcmp", wcmp), ("faults.on.0.rate", rate)]);
        let scenario = Scenario::parse(UNEVEN, "uneven-16.toml", &set).expect("it is read");
        let means = [1, 2, 3, 4].map(|seed| {
            let flows = SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).expect("it runs").flows;
            assert!(flows.iter().all(|flow| flow.slowdown().expect("it is done") >= 1.0), "{routing}");
            let times = flows.iter().map(|flow| flow.fct().expect("it is done").as_secs_f64() * 1e3);
            times.sum::<f64>() / flows.len() as f64
        });
        means.iter().sum::<f64>() / means.len() as f64
    })
}

#[test]
fn loads_beat_turns_where_a_link_is_slow_and_turns_beat_loads_where_all_are_alike() {
    let [ecmp, spray, adaptive, flowlet] = means("25Gb/s", "false");
    assert!(adaptive < 0.95 * spray && spray < ecmp, "uneven: {ecmp} {spray} {adaptive} ms");
    assert!(flowlet < 0.95 * ecmp, "uneven: {ecmp} {flowlet} ms");
    let [ecmp, spray, adaptive, flowlet] = means("100Gb/s", "false");
    assert!(
        spray < adaptive && adaptive < flowlet && flowlet < ecmp,
        "{ecmp} {spray} {adaptive} {flowlet} ms"
    );
}

#[test]
fn weights_spare_a_slow_link_what_other_switches_send_over_it() {
    let [ecmp, spray, adaptive, _] = means("25Gb/s", "false");
    let [weighted, turns, loads, _] = means("25Gb/s", "true");
    assert!(weighted < 0.9 * ecmp, "{ecmp} to {weighted} ms");
    assert!(turns < 0.7 * spray && loads < 0.9 * adaptive, "{spray} to {turns} ms, {adaptive} to {loads} ms");
    assert_eq!(means("100Gb/s", "true"), means("100Gb/s", "false"), "where all are alike nothing changes");
}

#[test]
fn weights_that_are_all_alike_and_choices_of_one_port_are_told() {
    let notes = |set: &[(&str, &str)]| {
        let all = [("switch.wcmp", "true"), ("switch.routing", "ecmp")];
        let scenario = Scenario::parse(UNEVEN, "uneven-16.toml", &overrides(&[&all[..], set].concat()));
        let scenario = scenario.expect("it is read");
        let told = scenario.notes().filter(|note| note.contains("wcmp"));
        told.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(notes(&[]), Vec::<String>::new());
    let [alike] = &notes(&[("faults", "{}")])[..] else { panic!("one note") };
    assert!(alike.contains("the paths through them carry the same"), "{alike}");
    let [alone] = &notes(&[("topology.spines", "1"), ("faults.on.0.link", "leaf0-spine0")])[..] else {
        panic!("one note")
    };
    assert!(alone.contains("no switch here has several ports"), "{alone}");
}

#[test]
fn flows_whose_hashes_collide_part_as_flowlets() {
    let text = r#"
        [topology]
        kind = "leaf-spine"
        leaves = 2
        spines = 8
        hosts_per_leaf = 8
        rate = "100Gb/s"
        delay = "1us"
        [transport]
        control = "none"
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h0", "h8"], ["h1", "h9"], ["h2", "h10"], ["h3", "h11"], ["h4", "h12"], ["h5", "h13"], ["h6", "h14"], ["h7", "h15"]]
        message = "64KB"
        depth = 1
        count = 200
        "#;
    let longest = |set: &[(&str, &str)]| {
        let results: Results = run(text, set);
        results.flows.iter().map(|flow| flow.fct().expect("it is done").as_secs_f64()).fold(0.0, f64::max)
    };
    let [hashed, parted] =
        [longest(&[]), longest(&[("switch.routing", "flowlet"), ("switch.flowlet_gap", "3us")])];
    assert!(parted < 0.8 * hashed, "{parted} s against {hashed} s");
}

#[test]
fn flowlets_are_as_the_scenario_says() {
    let read = |set: &[(&str, &str)]| {
        Scenario::parse(UNEVEN, "uneven-16.toml", &overrides(set)).expect("it is read").switch.routing
    };
    let flowlet = ("switch.routing", "flowlet");
    assert_eq!(read(&[flowlet]), Balancing::Flowlet { gap: Span::from_micros(16), table: 4_096 });
    let set = [flowlet, ("switch.flowlet_gap", "50us"), ("switch.flowlet_table", "256")];
    assert_eq!(read(&set), Balancing::Flowlet { gap: Span::from_micros(50), table: 256 });
    assert_eq!(read(&[]), Balancing::Adaptive);
}

/// Of all flows: packets reordered, and sent again.
fn reordered(set: &[(&str, &str)]) -> [u64; 2] {
    let results = run(UNEVEN, &[&[("traffic.0.size", "2MB")], set].concat());
    let sum = |of: fn(&FlowResult) -> u32| results.flows.iter().map(|flow| u64::from(of(flow))).sum();
    [sum(|flow| flow.reordered), sum(|flow| flow.retransmitted)]
}

#[test]
fn other_paths_reorder_packets_and_what_is_sent_again_is_not_reordered() {
    for (routing, reorders) in [("ecmp", false), ("spray", true), ("adaptive", true)] {
        assert_eq!(reordered(&[("switch.routing", routing)])[0] > 0, reorders, "{routing}");
    }
    // What is lost comes behind what was sent after it, and did not overtake it.
    let lossy = [("switch.routing", "ecmp"), ("transport.recovery", "sack"), ("faults.loss", "0.01")];
    let [none, again] = reordered(&lossy);
    assert!(none == 0 && again > 50, "{none} of {again}");
    let copied = [("switch.routing", "ecmp"), ("faults.duplicate", "0.1"), ("transport.recovery", "sack")];
    assert_eq!(reordered(&copied)[0], 0, "copies are not looked at");
    let late = [("switch.routing", "ecmp"), ("faults.reorder.share", "0.01"), ("faults.reorder.by", "5us")];
    let [late, _] = reordered(&late);
    // Each of 16 flows has some 490 packets, which cross two links or four, and one in a hundred is late on each.
    assert!((150..400).contains(&late), "{late}");
}

#[test]
fn one_flow_uses_one_port_of_four_under_a_hash_and_all_alike_in_turn() {
    let imbalance = |routing: &str| {
        let one = [
            ("switch.routing", routing),
            ("traffic", "[{ kind = \"flows\", flows = [{ src = \"h0\", dst = \"h12\", size = \"4MB\" }] }]"),
        ];
        let results = run(UNEVEN, &one);
        let leaf = results.switches.iter().find(|switch| switch.name == "leaf0").expect("it is there");
        let spine = results.switches.iter().find(|switch| switch.name == "spine0").expect("it is there");
        assert_eq!(spine.imbalance, None, "a spine has no choice");
        leaf.imbalance.expect("it has sent something")
    };
    assert!((imbalance("ecmp") - 4.0).abs() < 1e-9, "{}", imbalance("ecmp"));
    assert!(imbalance("spray") < 0.02, "{}", imbalance("spray"));
}

#[test]
fn hpcc_computes_from_one_path_at_a_time_and_so_keeps_its_rate_when_packets_change_theirs() {
    for routing in ["ecmp", "flowlet", "adaptive", "spray"] {
        let set =
            [("switch.routing", routing), ("transport.control", "hpcc"), ("faults.on.0.rate", "100Gb/s")];
        for seed in [1, 2] {
            let scenario = Scenario::parse(UNEVEN, "uneven-16.toml", &overrides(&set)).expect("it is read");
            let flows = SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).expect("it runs").flows;
            // Two flows that share a link take about twice as long as one alone; of several ports' counters computed together, forty times.
            let most = flows.iter().map(|flow| flow.slowdown().expect("it is done")).fold(0.0, f64::max);
            assert!(most < 5.0, "{routing}, seed {seed}: {most}");
        }
    }
}

#[test]
fn the_least_time_of_a_flow_is_the_same_whether_its_ways_have_weights() {
    let ideal = |wcmp: &str| {
        let one = [
            ("switch.routing", "spray"),
            ("switch.wcmp", wcmp),
            ("topology.fabric_rate", "10Gb/s"),
            ("faults.on.0.rate", "2500Mb/s"),
            ("traffic", "[{ kind = \"flows\", flows = [{ src = \"h0\", dst = \"h12\", size = \"1MB\" }] }]"),
        ];
        run(UNEVEN, &one).flows[0].ideal.expect("it ends")
    };
    assert_eq!(ideal("true"), ideal("false"));
}

/// Hosts `a` and `b` at switches `x` and `y`, and these links besides, with their rates in Gb/s.
fn between_two(switches: &str, gbps: u32, links: &[(&str, &str, u32, &str)]) -> String {
    let ends = [("a", "x", gbps, "1us"), ("b", "y", gbps, "1us")];
    let links = ends.iter().chain(links).map(|(a, b, gbps, delay)| {
        format!("{{ a = \"{a}\", b = \"{b}\", rate = \"{gbps}Gb/s\", delay = \"{delay}\" }}")
    });
    format!(
        r#"
        [topology]
        kind = "graph"
        hosts = ["a", "b"]
        switches = [{switches}]
        links = [{}]
        [transport]
        recovery = "sack"
        control = "none"
        "#,
        links.collect::<Vec<_>>().join(", ")
    )
}

#[test]
fn paths_of_unequal_rates_carry_what_they_carry_together_and_no_more() {
    let parallel = between_two("\"x\", \"y\"", 10, &[("x", "y", 5, "1us"), ("x", "y", 1, "1us")]);
    let by_switches =
        [("x", "m", 40, "1us"), ("m", "y", 40, "1us"), ("x", "n", 10, "5us"), ("n", "y", 10, "5us")];
    let diamond = between_two("\"x\", \"y\", \"m\", \"n\"", 100, &by_switches);
    for (text, octets, gbps) in [(&parallel, 1_000_000.0, 6.0), (&diamond, 2_000_000.0, 50.0)] {
        for op in ["write", "read"] {
            let flow = format!(
                "[[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"a\", dst = \"b\", op = \"{op}\", size = \"{octets}B\" }}]\n"
            );
            for routing in ["spray", "adaptive", "flowlet"] {
                let results = run(&format!("{text}{flow}"), &[("switch.routing", routing)]);
                let (ideal, slowdown) =
                    (results.flows[0].ideal.unwrap().as_secs_f64(), results.flows[0].slowdown().unwrap());
                let least = octets * 8.0 / (gbps * 1e9);
                assert!(
                    (least * 1.05..least * 1.15).contains(&ideal),
                    "{op} {routing}: {ideal} s, {least} s"
                );
                assert!(slowdown >= 1.0, "{op} {routing}: {slowdown}");
            }
            // One path has what its slowest link has.
            let alone = run(&format!("{text}{flow}"), &[]).flows[0].ideal.unwrap().as_secs_f64();
            assert!(alone > octets * 8.0 / (gbps * 1e9 * 0.85), "{op}: {alone} s");
        }
    }
}
