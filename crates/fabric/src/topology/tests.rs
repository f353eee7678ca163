use super::*;
use crate::packet::HostId;
use proptest::prelude::*;

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const FABRIC: BitsPerSec = BitsPerSec::from_gbps(400);
const DELAY: Span = Span::from_micros(1);

fn fat_tree(form: Form) -> Result<Topology, TopologyError> {
    FatTree { form, rate: RATE, fabric_rate: Some(FABRIC), core_rate: None, delay: DELAY }.build()
}

/// How many switches have a name with this prefix.
fn count(topology: &Topology, prefix: &str) -> usize {
    topology.graph.switches.iter().filter(|name| name.starts_with(prefix)).count()
}

/// The links as text, `a-b` and the rate.
fn links(topology: &Topology) -> Vec<String> {
    let graph = &topology.graph;
    let names: Vec<&String> = graph.hosts.iter().chain(&graph.switches).collect();
    let line = |l: &Link| format!("{}-{} {}", names[l.a.0 as usize], names[l.b.0 as usize], l.rate);
    graph.links.iter().map(line).collect()
}

#[test]
fn a_star_has_one_switch() {
    let star = Star { hosts: 3, rate: RATE, delay: DELAY }.build().unwrap();
    assert_eq!(links(&star), ["h0-s0 100Gb/s", "h1-s0 100Gb/s", "h2-s0 100Gb/s"]);
}

#[test]
fn a_dumbbell_has_its_bottleneck_last() {
    let shape = Dumbbell { left: 1, right: 2, rate: RATE, bottleneck: FABRIC, delay: DELAY };
    let expected = ["h0-s0 100Gb/s", "h1-s1 100Gb/s", "h2-s1 100Gb/s", "s0-s1 400Gb/s"];
    assert_eq!(links(&shape.build().unwrap()), expected);
}

#[test]
fn a_tree_has_its_receiver_at_the_root() {
    let tree = Tree { leaves: vec![2, 1], rate: RATE, uplink: FABRIC, delay: DELAY }.build().unwrap();
    let expected = [
        "h0-root 100Gb/s",
        "leaf0-root 400Gb/s",
        "h1-leaf0 100Gb/s",
        "h2-leaf0 100Gb/s",
        "leaf1-root 400Gb/s",
        "h3-leaf1 100Gb/s",
    ];
    assert_eq!(links(&tree), expected);
}

#[test]
fn a_fat_tree_has_a_rate_for_each_tier() {
    let form = Form::Pods { pods: 2, tors_per_pod: 1, aggs_per_pod: 1, cores: 1, hosts_per_tor: 1 };
    let core_rate = Some(BitsPerSec::from_gbps(800));
    let tree = FatTree { form, rate: RATE, fabric_rate: Some(FABRIC), core_rate, delay: DELAY };
    let expected = [
        "h0-tor0 100Gb/s",
        "tor0-agg0 400Gb/s",
        "h1-tor1 100Gb/s",
        "tor1-agg1 400Gb/s",
        "agg0-core0 800Gb/s",
        "agg1-core0 800Gb/s",
    ];
    assert_eq!(links(&tree.build().unwrap()), expected);
    // Unless it is said, the core's are like the others between switches.
    let links = links(&FatTree { core_rate: None, ..tree }.build().unwrap());
    assert_eq!(links[4..], ["agg0-core0 400Gb/s", "agg1-core0 400Gb/s"]);
}

#[test]
fn a_leaf_spine_joins_every_leaf_with_every_spine() {
    let shape =
        LeafSpine { leaves: 2, spines: 3, hosts_per_leaf: 4, rate: RATE, fabric_rate: None, delay: DELAY };
    let topology = shape.build().unwrap();
    assert_eq!((topology.graph.hosts.len(), count(&topology, "leaf"), count(&topology, "spine")), (8, 2, 3));
    let links = links(&topology);
    assert_eq!(links.len(), 8 + 6);
    for leaf in 0..2 {
        for spine in 0..3 {
            assert!(links.contains(&format!("leaf{leaf}-spine{spine} 100Gb/s")));
        }
    }
}

#[test]
fn rails_join_gpus_of_one_place_and_scale_up_links_those_of_a_server() {
    let scale_up = Some((FABRIC, Span::from_nanos(100)));
    let rails = Rails {
        servers: 3,
        gpus: 2,
        servers_per_leaf: 2,
        spines: 1,
        rate: RATE,
        fabric_rate: Some(FABRIC),
        delay: DELAY,
        scale_up,
    };
    let topology = rails.build().unwrap();
    let expected = [
        "h0.0-leaf0 100Gb/s",
        "h0.1-up0 400Gb/s",
        "h1.0-leaf1 100Gb/s",
        "h1.1-up0 400Gb/s",
        "h2.0-leaf0 100Gb/s",
        "h2.1-up1 400Gb/s",
        "h3.0-leaf1 100Gb/s",
        "h3.1-up1 400Gb/s",
        // The third server is in a group of its own.
        "h4.0-leaf2 100Gb/s",
        "h4.1-up2 400Gb/s",
        "h5.0-leaf3 100Gb/s",
        "h5.1-up2 400Gb/s",
        "leaf0-spine0 400Gb/s",
        "leaf1-spine0 400Gb/s",
        "leaf2-spine0 400Gb/s",
        "leaf3-spine0 400Gb/s",
    ];
    assert_eq!(links(&topology), expected);
    assert_eq!([0, 1].map(|link| topology.graph.links[link].delay), [DELAY, Span::from_nanos(100)]);
    let plain = Rails { scale_up: None, ..rails.clone() }.build().unwrap();
    assert_eq!(plain.graph.hosts, ["h0", "h1", "h2", "h3", "h4", "h5"]);
    assert_eq!(plain.graph.switches.len(), 5);
    let of_servers = |topology: &Topology| -> Vec<String> {
        topology.scale_up.iter().map(|place| topology.graph.switches[*place as usize].clone()).collect()
    };
    assert_eq!(of_servers(&topology), ["up0", "up1", "up2"]);
    assert!(of_servers(&plain).is_empty());
    let none = Rails { spines: 0, scale_up: None, ..rails.clone() }.build().unwrap_err();
    assert_eq!(none.to_string(), "spines is 0, but must be at least 1");
    let apart = Rails { spines: 0, ..rails.clone() }.build().unwrap();
    assert_eq!(links(&apart), expected[..12]);
    assert_eq!(apart.islands_of_hosts().apart(), Some([HostId(0), HostId(3)]));
    let many = Rails { servers: 40_000, gpus: 2, ..rails }.build().unwrap_err();
    assert!(many.to_string().contains("80000 hosts; at most"), "{many}");
}

#[test]
fn fat_trees_by_hosts_are_exact_where_they_can_be() {
    for (hosts, tors, aggs, cores) in
        [(16, 8, 8, 4), (128, 32, 32, 16), (1000, 100, 100, 100), (1024, 128, 128, 64), (4096, 256, 256, 256)]
    {
        let topology = fat_tree(Form::Hosts(hosts)).unwrap();
        let found = (count(&topology, "tor"), count(&topology, "agg"), count(&topology, "core"));
        assert_eq!(topology.graph.hosts.len(), hosts as usize);
        assert_eq!(found, (tors, aggs, cores), "{hosts}");
        assert_eq!(topology.note, None);
    }
}

#[test]
fn other_sizes_are_rounded_up_and_said_so() {
    let topology = fat_tree(Form::Hosts(20)).unwrap();
    assert_eq!(topology.graph.hosts.len(), 27);
    let note = "fat-tree: 20 hosts rounded up to 27 (3 pods of 3 ToRs with 3 hosts each)";
    assert_eq!(topology.note.as_deref(), Some(note));
}

#[test]
fn a_radix_gives_the_textbook_tree() {
    let topology = fat_tree(Form::Radix(4)).unwrap();
    assert_eq!(topology.graph.hosts.len(), 16);
    assert_eq!(count(&topology, "core"), 4);
    assert_eq!(topology.graph.links.len(), 3 * 16, "full bisection: as many links on each tier");
    // Each switch has k ports.
    let ports = Ports::of(&topology.graph);
    for switch in 16..16 + 20 {
        assert_eq!(ports.of_node(NodeId(switch)).len(), 4);
    }
}

#[test]
fn trees_by_their_parts_span_the_published_scales() {
    // (ToR, aggregation, core) of the SRNIC scale study: (1,0,0) (4,4,0) (8,8,0) (64,64,16) (128,128,64).
    for (pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor, hosts, links) in [
        (1, 1, 0, 0, 16, 16, 16),
        (1, 4, 4, 0, 16, 64, 64 + 16),
        (1, 8, 8, 0, 32, 256, 256 + 64),
        (16, 4, 4, 16, 16, 1024, 1024 + 256 + 256),
        (16, 8, 8, 64, 32, 4096, 4096 + 1024 + 1024),
    ] {
        let form = Form::Pods { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor };
        let topology = fat_tree(form).unwrap();
        assert_eq!((topology.graph.hosts.len(), topology.graph.links.len()), (hosts, links));
        assert_eq!(count(&topology, "core"), cores as usize);
        let host_links = topology.graph.links.iter().filter(|l| l.rate == RATE).count();
        assert_eq!(host_links, hosts, "the fabric has its own rate");
    }
}

#[test]
fn fewer_cores_than_aggregation_switches_are_shared() {
    let form = Form::Pods { pods: 2, tors_per_pod: 1, aggs_per_pod: 4, cores: 2, hosts_per_tor: 1 };
    let up: Vec<String> =
        links(&fat_tree(form).unwrap()).into_iter().filter(|l| l.contains("core")).collect();
    let expected = [
        "agg0-core0",
        "agg1-core1",
        "agg2-core0",
        "agg3-core1",
        "agg4-core0",
        "agg5-core1",
        "agg6-core0",
        "agg7-core1",
    ];
    assert_eq!(up, expected.map(|l| format!("{l} 400Gb/s")));
}

#[test]
fn impossible_trees_are_refused_with_the_remedy() {
    let pods = |pods, tors_per_pod, aggs_per_pod, cores| {
        fat_tree(Form::Pods { pods, tors_per_pod, aggs_per_pod, cores, hosts_per_tor: 2 })
    };
    for (built, message) in [
        (pods(1, 2, 0, 0), "2 ToRs are not joined; give aggs_per_pod at least 1"),
        (pods(2, 1, 1, 0), "2 pods are not joined; give cores at least 1"),
        (pods(2, 1, 3, 4), "4 cores cannot be shared evenly by 3 aggregation switches"),
        (pods(1, 1, 0, 1), "1 cores cannot be shared evenly by 0"),
        (pods(0, 1, 1, 1), "pods is 0, but must be at least 1"),
        (pods(u32::MAX, u32::MAX, u32::MAX, u32::MAX), "hosts; at most 65535"),
        (pods(1, 1, u32::MAX, 0), "switches; at most 16384"),
        (pods(1, 8_000, 8_000, 0), "64016000 links; at most 4194304"),
        (fat_tree(Form::Radix(3)), "k is 3, but must be even"),
        (fat_tree(Form::Radix(0)), "k is 0, but must be at least 2"),
        (fat_tree(Form::Hosts(0)), "hosts is 0, but must be at least 1"),
        (fat_tree(Form::Hosts(70_000)), "70000 hosts; at most 65535"),
    ] {
        let error = built.unwrap_err().to_string();
        assert!(error.contains(message), "{error:?} should contain {message:?}");
    }
}

#[test]
fn small_shapes_refuse_nothing_and_too_much() {
    let star = |hosts, rate| Star { hosts, rate, delay: DELAY }.build().map(|_| ());
    assert_eq!(star(0, RATE), Err(TopologyError::TooFew { key: "hosts", value: 0, least: 1 }));
    assert_eq!(star(65_536, RATE), Err(TopologyError::TooManyHosts(65_536)));
    assert_eq!(star(65_535, RATE), Ok(()));
    assert!(matches!(star(1, BitsPerSec(0)), Err(TopologyError::ZeroRate { link: 0, .. })));
    let tree = |leaves| Tree { leaves, rate: RATE, uplink: RATE, delay: DELAY }.build().map(|_| ());
    assert_eq!(tree(vec![]), Err(TopologyError::TooFew { key: "leaves", value: 0, least: 1 }));
    assert_eq!(tree(vec![u32::MAX, u32::MAX]), Err(TopologyError::TooManyHosts(2 * u64::from(u32::MAX) + 1)));
    let bell = Dumbbell { left: u32::MAX, right: u32::MAX, rate: RATE, bottleneck: RATE, delay: DELAY };
    assert!(matches!(bell.build(), Err(TopologyError::TooManyHosts(_))));
}

fn explicit(hosts: &[&str], switches: &[&str], pairs: &[(&str, &str)]) -> Result<Topology, TopologyError> {
    let own = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
    let link = |&(a, b): &(&str, &str)| NamedLink { a: a.into(), b: b.into(), rate: RATE, delay: DELAY };
    Explicit { hosts: own(hosts), switches: own(switches), links: pairs.iter().map(link).collect() }.build()
}

#[test]
fn graphs_that_cannot_work_are_refused_with_the_remedy() {
    for (built, message) in [
        (explicit(&["a", "b"], &["s"], &[("a", "s"), ("b", "t")]), "link 1 leads to \"t\", which is neither"),
        (explicit(&["a", "b"], &["s"], &[("a", "s"), ("s", "s")]), "link 1 leads from \"s\" to itself"),
        (explicit(&["a", "b"], &["s"], &[("a", "s")]), "host \"b\" has no link"),
        (explicit(&["a"], &["s"], &[("a", "s"); 65]), "host \"a\" has 65 links; at most 64"),
        (explicit(&["a", "a.1"], &["s"], &[("a", "s"), ("a", "s"), ("a.1", "s")]), "\"a.1\" is given twice"),
        (explicit(&["a", "s"], &["s"], &[]), "the name \"s\" is given twice"),
        (explicit(&["a", ""], &["s"], &[]), "an empty name"),
        (explicit(&["a", "h>1"], &["s"], &[]), "the name \"h>1\" has a control character or `>`"),
        (explicit(&["a", "b"], &["s\n1"], &[]), "the name \"s\\n1\" has a control character or `>`"),
        (explicit(&[], &["s"], &[]), "hosts is 0"),
        (
            explicit(&["a", "b"], &["s", "t"], &[("a", "s"), ("b", "t")]),
            "no path from \"a\" to \"b\"; add a link",
        ),
    ] {
        let error = built.unwrap_err().to_string();
        assert!(error.contains(message), "{error:?} should contain {message:?}");
    }
}

#[test]
fn two_hosts_may_be_joined_directly_and_switches_twice() {
    assert!(explicit(&["a", "b"], &[], &[("a", "b")]).is_ok());
    let twice = explicit(&["a", "b"], &["s", "t"], &[("a", "s"), ("s", "t"), ("s", "t"), ("t", "b")]);
    assert_eq!(twice.unwrap().graph.links.len(), 4);
}

#[test]
fn ports_are_numbered_in_the_order_of_the_links() {
    let topology = explicit(&["a", "b"], &["s"], &[("b", "s"), ("a", "s")]).unwrap();
    let ports = Ports::of(&topology.graph);
    let expected = [Port { peer: NodeId(1), link: 0 }, Port { peer: NodeId(0), link: 1 }];
    assert_eq!(ports.of_node(NodeId(2)), expected);
}

#[test]
fn an_hpcc_file_is_read_as_it_is() {
    let text = "\
# a comment
6 2 5   # nodes switches links
4 1
0 1 10Gbps 1us 0.000000

2 1 40Gbps 1000ns 0.001
3 4 2.5Gbps 0.002ms 0
5 4 25Gbps 1us
1 4 100Gbps 1us 0
";
    let topology = hpcc::read(text).unwrap();
    assert_eq!(topology.graph.hosts, ["h0", "h2", "h3", "h5"]);
    assert_eq!(topology.graph.switches, ["s1", "s4"]);
    let expected = ["h0-s1 10Gb/s", "h2-s1 40Gb/s", "h3-s4 2500Mb/s", "h5-s4 25Gb/s", "s1-s4 100Gb/s"];
    assert_eq!(links(&topology), expected);
    assert_eq!(topology.graph.links[2].delay, Span::from_micros(2));
    assert_eq!(topology.loss, [(1, Ratio::new(1, 1000))]);
}

#[test]
fn a_simai_file_counts_nvswitches_apart_and_has_a_nic_at_each_link() {
    let text = "\
7 2 2 1 8 H100
4 5 6
0 4 2880Gbps 0.000025ms 0
0 6 400Gbps 0.0005ms 0
1 4 2880Gbps 0.000025ms 0
1 6 400Gbps 0.0005ms 0
2 5 2880Gbps 0.000025ms 0
2 6 400Gbps 0.0005ms 0
3 5 2880Gbps 0.000025ms 0
3 6 400Gbps 0.0005ms 0
";
    let topology = hpcc::read(text).unwrap();
    assert_eq!(topology.hosts(), ["h0", "h1", "h2", "h3"]);
    assert_eq!(topology.per_server, Some(2));
    let nics = ["h0.0", "h1.0", "h2.0", "h3.0", "h0.1", "h1.1", "h2.1", "h3.1"];
    assert_eq!(topology.graph.hosts, nics);
    assert_eq!(links(&topology)[2..4], ["h1.0-s4 2880Gb/s", "h1.1-s6 400Gb/s"]);
    assert_eq!(topology.graph.links[0].delay, Span::from_nanos(25));
    // Two of one server talk over its switch, others over the network: only that is what hosts send into it.
    let mut pairing = Pairing::of(&topology).unwrap();
    assert_eq!(pairing.choose([HostId(2), HostId(3)]), [HostId(2), HostId(3)]);
    assert_eq!(pairing.choose([HostId(0), HostId(3)]), [HostId(4), HostId(7)]);
    assert_eq!(topology.capacities(), [BitsPerSec::from_gbps(400); 4]);
    let counted = text.replace("H100", "H100 8");
    assert_eq!(links(&hpcc::read(&counted).unwrap()), links(&topology), "some count once more");
    let of_astra_sim = hpcc::read(&text.replace("7 2 2 1 8 H100", "7 3 8")).unwrap();
    assert_eq!((links(&of_astra_sim), of_astra_sim.per_server), (links(&topology), None));
}

#[test]
fn what_follows_the_counted_links_of_an_hpcc_file_is_not_read() {
    let explained =
        "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n\nFirst line: how many there are\nsrc dst …\n";
    let topology = hpcc::read(explained).unwrap();
    assert_eq!((topology.graph.links.len(), topology.note), (2, None));
    let longer = "3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 1 1Gbps 1us 0\n";
    let topology = hpcc::read(longer).unwrap();
    assert_eq!(topology.graph.links.len(), 2);
    assert!(topology.note.unwrap().contains("counts 2 links; from line 5 on"));
}

#[test]
fn what_is_wrong_with_an_hpcc_file_is_said_with_its_line() {
    for (text, message) in [
        ("", "the file is empty; begin it with \"nodes switches links\""),
        ("3 1\n", "line 1: \"3 1\" cannot be read here; write \"nodes switches links\""),
        ("3 x 2\n", "line 1:"),
        ("4 2 0 1 3 H100\n3\n", "line 1: 3 GPUs are not divided evenly into servers of 2"),
        (
            "3 1 1\n2\n0 2 720Tbps 1us 0\n",
            "line 3: link 0 (h0 to s2) has a rate of 720Tb/s; at most 100Tb/s can",
        ),
        ("3 1 2\n", "line 1: the first line counts 1 switches, but only 0 are listed"),
        // The count of switches is too high: the first link is none of them.
        (
            "3 2 2\n2\n0 2 1Gbps 1us 0\n",
            "line 3: the first line counts 2 switches, but only 1 are listed before",
        ),
        ("3 1 2\n7\n", "line 2: node 7, but the first line counts 3"),
        ("3 1 2\n2 1\n", "line 2: more switches are listed than the 1 that the first line counts"),
        ("4 2 2\n2 2\n", "line 2: switch 2 is listed twice"),
        ("3 1 2\n2\n0 2 10Gbps 1us 0\n", "the first line counts 2 links, but 1 follow"),
        ("3 1 1\n2\n\n0 2 10Gbps\n", "line 4: \"0 2 10Gbps\" cannot be read here; write a link"),
        ("3 1 1\n2\n0 9 10Gbps 1us 0\n", "line 3: node 9, but"),
        ("3 1 1\n2\n0 2 10G 1us 0\n", "line 3: \"10G\": unclear unit"),
        ("3 1 1\n2\n0 2 10Gbps 1 0\n", "line 3: \"1\": wrong or missing unit"),
        ("3 1 1\n2\n0 2 10Gbps 1us 1.5\n", "line 3: a loss of 3/2"),
        ("3 1 1\n2\n0 2 0Gbps 1us 0\n", "line 3: link 0 (h0 to s2) has a rate of zero"),
        ("3 1 1\n2\n0 2 10Gbps 5000s 0\n", "line 3: a delay of"),
        ("3 1 1\n2\n0 2 1Gbps 1us 0\n", "host \"h1\" has no link"),
        ("1 2 1\n", "line 1: 2 of 1 nodes are switches, which leaves no host"),
        ("4294967295 0 1\n", "line 1: 4294967295 hosts"),
    ] {
        let error = hpcc::read(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?} gave {error:?}");
        assert!(error.contains("; "), "{error:?} does not say what to do");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[0-9 ]{0,8}\n[0-9 \n]{0,8}\n([0-9]{1,2} [0-9]{1,2} [0-9]{1,2}(Gbps|us|) [0-9](us|s|) [0-9.]{0,3}\n){0,4}") {
        let _ = hpcc::read(&text);
    }

    #[test]
    fn every_fat_tree_by_hosts_holds_them_with_full_bisection(hosts in 1u32..5_000) {
        let topology = fat_tree(Form::Hosts(hosts)).unwrap();
        let built = topology.graph.hosts.len();
        prop_assert!(built >= hosts as usize);
        prop_assert_eq!(topology.note.is_some(), built != hosts as usize);
        prop_assert_eq!(topology.graph.links.len(), 3 * built);
        prop_assert_eq!(topology.loss.len(), 0);
    }
}
