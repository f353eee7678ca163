//! Hosts with several NICs: which of them carries what.

use super::support::run;
use roci_lab::results::{FlowStatus, Results};
use roci_lab::scenario::Scenario;
use std::collections::BTreeMap;

const SERVERS: &str = r#"
    [topology]
    kind = "rails"
    servers = 4
    gpus = 4
    servers_per_leaf = 2
    spines = 2
    rate = "100Gb/s"
    delay = "500ns"
    scale_up = "900Gb/s"
    scale_up_delay = "100ns"
    [nic]
    mtu = 4096
    [transport]
    control = "none"
    [switch.pfc]
"#;

/// Octets that each way of each link carried.
fn carried(results: &Results) -> BTreeMap<&str, u64> {
    results.links.iter().map(|link| (link.name.as_str(), link.tx_bytes)).collect()
}

fn with(rest: &str) -> String {
    format!("{SERVERS}\n[[traffic]]\n{rest}")
}

#[test]
fn what_stays_within_a_server_takes_its_own_links_and_what_leaves_it_the_rail() {
    let text = with(
        "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h3\", size = \"1MB\" }, \
        { src = \"h0\", dst = \"h4\", size = \"1MB\" }, { src = \"h1\", dst = \"h15\", size = \"1MB\", op = \"read\" }]",
    );
    let results = run(&text, &[]);
    let ends = |flow: usize| [results.flows[flow].src, results.flows[flow].dst].map(|nic| results.host(nic));
    assert_eq!([0, 1, 2].map(ends), [["h0.1", "h3.1"], ["h0.0", "h4.0"], ["h1.0", "h15.0"]]);
    for flow in &results.flows {
        assert_eq!(flow.status, FlowStatus::OK);
        let over = flow.slowdown().unwrap();
        assert!((1.0..1.001).contains(&over), "{over} {flow:?}");
    }
    let carried = carried(&results);
    assert!(carried["up0>h3.1"] > 1_000_000 && carried["leaf0>h4.0"] > 1_000_000);
    assert!(carried["h15.0>leaf7"] > 1_000_000, "the octets of a READ come from there");
}

#[test]
fn rings_of_several_channels_keep_to_rails_and_fill_all_of_them() {
    let ring = with(
        "kind = \"collective\"\noperation = \"all-reduce\"\nsize = \"16MiB\"\nchannels = 4\nchunks = 4\nranks_per_server = 4",
    );
    let results = run(&ring, &[]);
    let one = &results.collectives[0];
    let time = one.iterations[0].end.since(one.iterations[0].start).as_secs_f64();
    let over = one.over_ideal(time).unwrap();
    assert!((1.0..1.08).contains(&over), "{over}");
    let carried = carried(&results);
    // Each way of each NIC on the rails carries the same payload, 30 sixteenths of the data of one of four channels, in frames, and
    // acknowledgements of as much the other way.
    let of_rails = (0..16).flat_map(|host| {
        let leaf = host / 8 * 4 + host % 4;
        [format!("h{host}.0>leaf{leaf}"), format!("leaf{leaf}>h{host}.0")]
    });
    let payload = 30 * (16u64 << 20) / 16 / 4;
    for link in of_rails {
        let octets = carried[link.as_str()];
        assert!((payload..payload * 104 / 100).contains(&octets), "{link} {octets} {payload}");
    }
    // With two groups of servers, half of the ways between servers lead over a spine, and those stay on their rail.
    let up =
        |leaf: u32| (0..2).map(|spine| carried[format!("leaf{leaf}>spine{spine}").as_str()]).sum::<u64>();
    assert!(
        (0..8).all(|leaf| up(leaf) > payload),
        "each leaf has one neighbour behind the spines in two of four rings"
    );
    // In one order for all, a single NIC of each server carries all that leaves it.
    let alike = run(&ring, &[("traffic.0.ranks_per_server", "1")]);
    let slow = &alike.collectives[0];
    let ratio = slow.iterations[0].end.since(slow.iterations[0].start).as_secs_f64() / time;
    assert!((3.5..6.0).contains(&ratio), "{ratio}");
    assert!(self::carried(&alike)["h0.0>leaf0"] < 1_000_000, "{ratio}");
}

#[test]
fn a_tree_and_an_all_to_all_are_no_faster_than_their_ideal_on_several_nics() {
    for (operation, algorithm) in [
        ("all-reduce", "tree"),
        ("all-to-all", "direct"),
        ("all-to-all", "pxn"),
        ("all-gather", "direct"),
        ("reduce-scatter", "halving-doubling"),
    ] {
        let text = with(&format!(
            "kind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{algorithm}\"\nsize = \"4MiB\"\nchannels = 2\nchunks = 2"
        ));
        let results = run(&text, &[]);
        let one = &results.collectives[0];
        let time = one.iterations[0].end.since(one.iterations[0].start).as_secs_f64();
        let over = one.over_ideal(time).unwrap();
        assert!((1.0..4.0).contains(&over), "{operation} {algorithm} {over}");
        let iteration = &one.iterations[0];
        assert!(results.host(iteration.last).ends_with(".0"), "hosts are called by their first NIC");
    }
}

/// The mean time of the iterations of the one collective, in seconds.
fn mean(results: &Results) -> f64 {
    let (mean, ..) = results.collectives[0].times().expect("an iteration");
    mean
}

/// An all-to-all of 16 MiB among all sixteen GPUs, which are all on one group of leaves: what the NIC of a GPU on its rail sends to other
/// servers is 12 MiB, and takes as many seconds as it tells.
fn all_to_all() -> (String, f64) {
    let text = with("kind = \"collective\"\noperation = \"all-to-all\"\nsize = \"16MiB\"\nchunks = 4")
        .replace("servers_per_leaf = 2", "servers_per_leaf = 4");
    // Headers, preamble and gap are 82 octets of 4178 in most packets.
    let on_wire = f64::from(12 << 20) * 4178.0 / 4096.0;
    (text, on_wire * 8.0 / 100e9)
}

#[test]
fn over_rails_an_all_to_all_needs_no_spines_which_a_direct_one_waits_for() {
    let (text, rail) = all_to_all();
    // One spine: the four GPUs of a rail share a way of 100 Gb/s to other rails, and 9 of 12 MiB of each go there.
    let one_spine = [("topology.spines", "1")];
    let direct = run(&text, &one_spine);
    let over_rails = run(&text, &[one_spine[0], ("traffic.0.algorithm", "pxn")]);
    let (direct_time, time) = (mean(&direct), mean(&over_rails));
    let least = rail * 4.0 * 9.0 / 12.0;
    assert!((least..1.1 * least).contains(&direct_time), "{direct_time} {least}");
    assert!((rail..1.05 * rail).contains(&time), "{time} {rail}");
    let [direct, over_rails] = [&direct, &over_rails].map(carried);
    assert!(direct["leaf0>spine0"] > 36 << 20);
    assert_eq!(over_rails["leaf0>spine0"], 0);
    // The rail carries as much either way, but for the ends of messages and what is acknowledged.
    let of = |links: &BTreeMap<&str, u64>| links["h0.0>leaf0"] as f64;
    assert!((of(&over_rails) / of(&direct) - 1.0).abs() < 0.02, "{} {}", of(&over_rails), of(&direct));
}

#[test]
fn where_spines_are_no_bottleneck_an_all_to_all_over_rails_costs_its_way_within_the_server() {
    let (text, rail) = all_to_all();
    let wide = [("topology.spines", "1"), ("topology.fabric_rate", "1600Gb/s")];
    let direct = mean(&run(&text, &wide));
    let over_rails = mean(&run(&text, &[wide[0], wide[1], ("traffic.0.algorithm", "pxn")]));
    assert!((rail..1.05 * rail).contains(&direct), "{direct} {rail}");
    // No NIC of a rail has anything to send before the first of four chunks of the first round has come: three of 256 KiB, at 900 Gb/s.
    // From then on it is never idle, as is that of a direct one from the start, whose last packet goes over two links of 500 ns more.
    let chunks = 3.0 * f64::from(256 << 10) * 8.0 / 900e9;
    let cost = over_rails - direct + 1e-6;
    assert!((cost / chunks - 1.0).abs() < 0.1, "{cost} {chunks}");
}

#[test]
fn trees_with_their_heads_on_different_gpus_are_as_fast_as_rings_on_rails() {
    let tree = with(
        "kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"tree\"\nsize = \"16MiB\"\nchannels = 4\nchunks = 16",
    );
    let results = run(&tree, &[]);
    let time = mean(&results);
    // The busiest server has two children in one tree and a parent in both: each of its NICs sends its channel's 4 MiB twice.
    let least = f64::from(8 << 20) * 8.0 / 100e9;
    assert!((least..1.25 * least).contains(&time), "{time} {least}");
    let carried = carried(&results);
    let sent = |host: u32| carried[format!("h{host}.0>leaf{}", host / 8 * 4 + host % 4).as_str()];
    for server in 0..4 {
        // Servers 0 and 3 have a parent in one tree and one child in the other, with half of the data each.
        let payload = if server == 1 || server == 2 { 8u64 << 20 } else { 4 << 20 };
        let range = payload..payload * 106 / 100;
        assert!((0..4).all(|gpu| range.contains(&sent(4 * server + gpu))), "{server} {}", sent(4 * server));
    }
    // As if each rank were a server of its own, half of all that goes up and down crosses to other rails, or takes NICs that have enough to do.
    let alike = mean(&run(&tree, &[("traffic.0.ranks_per_server", "1")]));
    assert!(alike > 1.5 * time, "{alike} {time}");
}

#[test]
fn names_of_hosts_stand_for_all_of_their_nics_and_those_of_nics_for_one() {
    let text = format!(
        "{}\n[[nic.on]]\nhosts = [\"h1\", \"h2.0\"]\nmtu = 1024\n[[faults.on]]\nlink = \"h3-*\"\ndelay = {{ min = \"3us\", max = \"3us\" }}\n",
        with(
            "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", size = \"8KB\" }, { src = \"h0\", dst = \"h2\", size = \"8KB\" }, \
             { src = \"h2\", dst = \"h6\", size = \"8KB\" }, { src = \"h5\", dst = \"h1\", size = \"8KB\" }, \
             { src = \"h0\", dst = \"h3\", size = \"8KB\" }, { src = \"h7\", dst = \"h3\", size = \"8KB\" }]"
        )
    );
    let results = run(&text, &[]);
    let packets: Vec<u64> = results.flows.iter().take(4).map(|flow| flow.packets).collect();
    assert_eq!(packets, [8, 2, 8, 8]);
    for flow in &results.flows[4..] {
        assert!(
            flow.fct().unwrap().as_secs_f64() > flow.ideal.unwrap().as_secs_f64() + 5.9e-6,
            "there and back: {flow:?}"
        );
    }
}

#[test]
fn a_load_is_that_of_the_nics_that_reach_most_hosts() {
    let text = with("kind = \"poisson\"\nsizes = \"10KB\"\nload = 0.5\nuntil = \"2ms\"");
    let results = run(&text, &[]);
    let bits: u64 = results.flows.iter().map(|flow| flow.bytes * 8).sum();
    let offered = bits as f64 / 2e-3 / (16.0 * 100e9);
    assert!((0.45..0.55).contains(&offered), "{offered}");
}

#[test]
fn rings_keep_to_rails_unless_somebody_says_where_their_ranks_are() {
    let ring = "kind = \"collective\"\noperation = \"all-gather\"\nsize = \"1MiB\"\nchannels = 4\n";
    let leaves = |rest: &str| {
        let results = run(&with(&format!("{ring}{rest}")), &[]);
        carried(&results)["h0.0>leaf0"] > 100_000
    };
    assert!(leaves(""), "the topology says how many GPUs a server has");
    assert!(!leaves("ranks_per_server = 1"), "only the last GPU of a server sends to the next");
    let listed: Vec<String> = (0..16).map(|host| format!("\"h{host}\"")).collect();
    assert!(!leaves(&format!("hosts = [{}]", listed.join(", "))));
    let direct =
        with("kind = \"collective\"\noperation = \"all-gather\"\nalgorithm = \"direct\"\nsize = \"1MiB\"\n");
    assert!(!run(&direct, &[]).collectives[0].iterations.is_empty(), "it knows no servers");
}

const TWO_TORS: &str = r#"
    [topology]
    kind = "graph"
    hosts = ["a", "b"]
    switches = ["s", "t", "core"]
    links = [
        { a = "a", b = "s", rate = "100Gb/s", delay = "500ns" },
        { a = "a", b = "t", rate = "100Gb/s", delay = "500ns" },
        { a = "b", b = "s", rate = "100Gb/s", delay = "500ns" },
        { a = "b", b = "t", rate = "100Gb/s", delay = "500ns" },
        { a = "s", b = "core", rate = "100Gb/s", delay = "50us" },
        { a = "t", b = "core", rate = "100Gb/s", delay = "50us" },
    ]
    [[traffic]]
    kind = "flows"
    flows = [{ src = "a", dst = "b", size = "1MB" }]
"#;

#[test]
fn a_law_that_believes_in_too_short_a_round_trip_is_told_of_with_links_within_servers_too() {
    let hpcc = with("kind = \"permutation\"\nsize = \"1MB\"")
        .replace("delay = \"500ns\"", "delay = \"20us\"")
        .replace("control = \"none\"", "control = { law = \"hpcc\", base_rtt = \"10us\" }");
    let scenario = Scenario::parse(&hpcc, "here.toml", &[]).unwrap();
    let note = scenario.notes().find(|note| note.contains("`base_rtt` of `hpcc` is 10us"));
    assert!(note.is_some_and(|note| note.contains("between `h0.0` and")), "{note:?}");
}

#[test]
fn a_nic_that_is_down_is_no_reason_to_refuse_flows_that_may_have_another() {
    let down = |link: &str| format!("{TWO_TORS}\n[[faults.on]]\nlink = \"{link}\"\ndown = true\n");
    let results = run(&down("a.1-t"), &[]);
    assert_eq!(results.host(results.flows[0].src), "a.0");
    assert_eq!(results.flows[0].status, FlowStatus::OK);
    let both = Scenario::parse(&down("a-*"), "here.toml", &[]).unwrap_err().to_string();
    assert!(both.contains("nothing gets from `a."), "{both}");
}

#[test]
fn without_spines_collectives_that_keep_to_rails_are_as_with_them() {
    let apart = [("topology.servers_per_leaf", "4"), ("topology.spines", "0")];
    for (operation, algorithm) in [("all-reduce", "ring"), ("all-reduce", "tree"), ("all-to-all", "pxn")] {
        let text = with(&format!(
            "kind = \"collective\"\noperation = \"{operation}\"\nalgorithm = \"{algorithm}\"\nsize = \"4MiB\"\nchannels = 4\nchunks = 2"
        ));
        let [without, spines] = [&apart[..], &apart[..1]].map(|set| run(&text, set));
        assert_eq!(without.collectives, spines.collectives, "{operation} {algorithm}");
        assert_eq!(without.collectives[0].iterations.len(), 1);
    }
}

#[test]
fn a_flow_within_a_server_has_all_of_a_link_that_is_faster_than_laws_can_tell() {
    for law in ["none", "dcqcn", "{ law = \"timely\", first_rate = 1 }"] {
        let text = with("kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h3\", size = \"9MB\" }]");
        let results = run(&text, &[("topology.scale_up", "7.2Tb/s"), ("transport.control", law)]);
        let flow = &results.flows[0];
        // 82 octets of 4178 are no payload, and the acknowledgement of the last packet is back over two links of 100 ns each way.
        let least = 72e6 * 4178.0 / 4096.0 / 7.2e12 + 0.4e-6;
        let time = flow.fct().unwrap().as_secs_f64();
        assert!((least..1.02 * least).contains(&time), "{law} {time} {least}");
        assert!((1.0..1.02).contains(&flow.slowdown().unwrap()), "{law} {flow:?}");
    }
}

#[test]
fn flows_within_a_server_have_no_congestion_control_and_others_have_their_own() {
    let text = with(
        "kind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h3\", size = \"1MB\" }, { src = \"h1\", dst = \"h3\", size = \"1MB\" }, \
         { src = \"h0\", dst = \"h4\", size = \"1MB\" }, { src = \"h2\", dst = \"h3\", size = \"1MB\", control = \"timely\" }, \
         { src = \"h2\", dst = \"h6\", size = \"1MB\", control = \"timely\" }]",
    );
    let controls = |set: &[(&str, &str)]| {
        let results = run(&text, set);
        let name = |flow: usize| results.controls[usize::from(results.flows[flow].control)].clone();
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK));
        (0..5).map(name).collect::<Vec<_>>()
    };
    let dcqcn = "dcqcn preset=sigcomm15";
    let law = ("transport.control", "dcqcn");
    assert_eq!(controls(&[law]), ["none", "none", dcqcn, "none", "timely preset=sigcomm15"]);
    let own = ("transport.on", "[{ switches = [\"up*\"], control = \"swift\" }]");
    let swift = "swift preset=htsim";
    assert_eq!(controls(&[law, own]), [swift, swift, dcqcn, swift, "timely preset=sigcomm15"]);
    let same = ("transport.on", "[{ switches = [\"up*\"] }]");
    assert_eq!(controls(&[law, same])[..4], [dcqcn, dcqcn, dcqcn, "timely preset=sigcomm15"]);
}

#[test]
fn any_law_runs_beside_links_within_servers_that_are_faster_than_it_can_tell() {
    for law in ["hpcc", "powertcp", "theta-powertcp", "dctcp", "nscc", "dcqcn", "timely", "swift", "homa"] {
        let text = with("kind = \"all-to-all\"\nsize = \"40KB\"");
        let results = run(&text, &[("topology.scale_up", "7.2Tb/s"), ("transport.control", law)]);
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{law}");
        let within = |nic| results.host(nic).ends_with(".1");
        for flow in &results.flows {
            let control = &results.controls[usize::from(flow.control)];
            assert_eq!(control.starts_with("none"), within(flow.src), "{law} {control}");
        }
        assert_eq!(results.flows.iter().filter(|flow| within(flow.src)).count(), 16 * 3);
    }
}

#[test]
fn a_program_runs_on_one_network_alone() {
    let text = with("kind = \"all-to-all\"\nsize = \"20KB\"");
    let on = "[{ hosts = [\"h*.1\"], control = { law = \"program\", elf = \"firmware/dcqcn.elf\" } }]";
    let results = run(&text, &[("transport.on", on)]);
    let [program] = &results.programs[..] else { panic!("one program") };
    assert!(program.tally.fallen() == 0 && program.tally.events != [0, 0], "{:?}", program.tally);
    for flow in &results.flows {
        assert_eq!(flow.control == program.control, results.host(flow.src).ends_with(".1"));
    }
}
