use super::*;
use crate::graph::Link;
use crate::topology::{Explicit, FatTree, Form, LeafSpine, NamedLink, Star};
use proptest::prelude::*;
use roci_units::{BitsPerSec, Span};

const RATE: BitsPerSec = BitsPerSec::from_gbps(100);
const DELAY: Span = Span::from_micros(1);

fn fat_tree(form: Form) -> Graph {
    FatTree { form, rate: RATE, fabric_rate: None, core_rate: None, delay: DELAY }.build().unwrap().graph
}

/// The nodes that a packet visits, `from` and `to` included.
fn path(
    graph: &Graph,
    ports: &Ports,
    from: u32,
    to: u32,
    mut next: impl FnMut(u32, HostId) -> u16,
) -> Vec<u32> {
    let hosts = u32::try_from(graph.hosts.len()).unwrap();
    let mut visited = vec![from, ports.of_node(NodeId(from))[0].peer.0];
    while *visited.last().unwrap() != to {
        let at = *visited.last().unwrap();
        assert!(visited.len() <= graph.switches.len() + 2, "a loop: {visited:?}");
        let port = next(at - hosts, HostId(u16::try_from(to).unwrap()));
        visited.push(ports.of_node(NodeId(at))[usize::from(port)].peer.0);
    }
    visited
}

/// Hop counts between all nodes, by relaxing until nothing changes: slow, and plainly right.
fn distances(graph: &Graph) -> Vec<Vec<usize>> {
    let nodes = graph.hosts.len() + graph.switches.len();
    let mut table = vec![vec![usize::MAX / 2; nodes]; nodes];
    for (node, row) in table.iter_mut().enumerate() {
        row[node] = 0;
    }
    for link in &graph.links {
        let (a, b) = (link.a.0 as usize, link.b.0 as usize);
        table[a][b] = 1;
        table[b][a] = 1;
    }
    for via in 0..nodes {
        for a in 0..nodes {
            for b in 0..nodes {
                table[a][b] = table[a][b].min(table[a][via] + table[via][b]);
            }
        }
    }
    table
}

/// A connected graph: a random tree of switches, some more links (parallel ones among them), hosts at random switches.
fn any_graph() -> impl Strategy<Value = Graph> {
    let parents = prop::collection::vec(any::<prop::sample::Index>(), 0..10);
    let extra = prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..15);
    let places = prop::collection::vec(any::<prop::sample::Index>(), 2..15);
    (parents, extra, places).prop_map(|(parents, extra, places)| {
        let (hosts, switches) = (places.len(), parents.len() + 1);
        let node = |index: usize| NodeId(node_index(index));
        let link = |a, b| Link { a, b, rate: RATE, delay: DELAY };
        let mut links = Vec::new();
        for (child, parent) in parents.iter().enumerate() {
            links.push(link(node(hosts + child + 1), node(hosts + parent.index(child + 1))));
        }
        for (host, place) in places.iter().enumerate() {
            links.push(link(node(hosts + place.index(switches)), node(host)));
        }
        for (a, b) in extra {
            let (a, b) = (a.index(switches), b.index(switches));
            if a != b {
                links.push(link(node(hosts + a), node(hosts + b)));
            }
        }
        Graph {
            hosts: (0..hosts).map(|i| format!("h{i}")).collect(),
            switches: (0..switches).map(|i| format!("s{i}")).collect(),
            links,
        }
    })
}

proptest! {
    #[test]
    fn every_pair_is_joined_by_a_shortest_path(graph in any_graph(), hash in any::<u32>()) {
        crate::topology::check(&graph).unwrap();
        let ports = Ports::of(&graph);
        let routes = Routes::new(&graph).unwrap();
        let distances = distances(&graph);
        let hosts = node_index(graph.hosts.len());
        for from in 0..hosts {
            for to in (0..hosts).filter(|&to| to != from) {
                let by_hash = path(&graph, &ports, from, to, |s, d| routes.next_port(s, d, hash));
                prop_assert_eq!(by_hash.len() - 1, distances[from as usize][to as usize]);
                let mut turn = hash;
                let in_turn = path(&graph, &ports, from, to, |s, d| routes.port_in_turn(s, d, &mut turn));
                prop_assert_eq!(in_turn.len(), by_hash.len());
            }
        }
    }

    #[test]
    fn every_port_on_a_shortest_path_is_used_and_no_other(graph in any_graph(), rates in any::<[u8; 8]>()) {
        let ports = Ports::of(&graph);
        let routes = Routes::new(&graph).unwrap();
        let rate = |switch: usize, port: u16| rates[(switch + usize::from(port)) % 8].into();
        let weighted = Routes::weighted(&graph, &rate).unwrap();
        let distances = distances(&graph);
        let hosts = graph.hosts.len();
        for switch in 0..graph.switches.len() {
            for (to, &here) in distances[hosts + switch].iter().enumerate().take(hosts) {
                let all = ports.of_node(NodeId(node_index(hosts + switch))).iter().enumerate();
                let shortest: Vec<u16> = all
                    .filter(|(_, port)| distances[port.peer.0 as usize][to] + 1 == here)
                    .map(|(index, _)| narrow(index))
                    .collect();
                let destination = HostId(u16::try_from(to).unwrap());
                let switch = node_index(switch);
                // One before a round.
                let mut turn = u32::MAX;
                let mut taken: Vec<u16> =
                    shortest.iter().map(|_| routes.port_in_turn(switch, destination, &mut turn)).collect();
                taken.sort_unstable();
                prop_assert_eq!(&taken, &shortest);
                prop_assert_eq!(&routes.equal(switch, destination).ports().collect::<Vec<_>>(), &shortest);
                let mut weighted: Vec<u16> = weighted.equal(switch, destination).ports().collect();
                weighted.sort_unstable();
                weighted.dedup();
                prop_assert_eq!(weighted, shortest);
            }
        }
    }
}

/// Links between a node and the others of a graph, from one.
fn distances_from(ports: &Ports, nodes: usize, from: NodeId) -> Vec<u32> {
    let mut distances = vec![u32::MAX; nodes];
    distances[from.0 as usize] = 0;
    let mut open = std::collections::VecDeque::from([from]);
    while let Some(node) = open.pop_front() {
        for port in ports.of_node(node) {
            if distances[port.peer.0 as usize] == u32::MAX {
                distances[port.peer.0 as usize] = distances[node.0 as usize] + 1;
                open.push_back(port.peer);
            }
        }
    }
    distances
}

/// 600 switches, each with a host and ten links to others at random: every other set of equal ports is new.
#[test]
fn a_random_graph_has_more_sets_of_equal_ports_than_a_page_and_each_is_right() {
    let (count, mut state) = (600u32, 1u64);
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((state >> 33) % u64::from(count)).unwrap()
    };
    let link = |a, b| Link { a: NodeId(a), b: NodeId(b), rate: RATE, delay: DELAY };
    let mut links: Vec<_> = (0..count).map(|node| link(node, count + node)).collect();
    for switch in 0..10 * count {
        let (one, other) = (switch % count, draw());
        if one != other {
            links.push(link(count + one, count + other));
        }
    }
    let names = |letter: &str| (0..count).map(|node| format!("{letter}{node}")).collect();
    let graph = Graph { hosts: names("h"), switches: names("s"), links };
    let (ports, routes) = (Ports::of(&graph), Routes::new(&graph).unwrap());
    assert!(routes.groups.len() > 2 * PAGE, "{} groups", routes.groups.len());
    for host in 0..count {
        let distances = distances_from(&ports, graph.hosts.len() + graph.switches.len(), NodeId(host));
        for switch in 0..count {
            let here = distances[(count + switch) as usize];
            let all = ports.of_node(NodeId(count + switch)).iter().enumerate();
            let nearer = all.filter(|(_, port)| distances[port.peer.0 as usize] + 1 == here);
            let shortest: Vec<u16> = nearer.map(|(index, _)| narrow(index)).collect();
            assert_eq!(
                routes.equal(switch, HostId(u16::try_from(host).unwrap())).ports().collect::<Vec<_>>(),
                shortest
            );
        }
    }
}

#[test]
fn flows_spread_evenly_over_a_fat_tree() {
    let graph = fat_tree(Form::Hosts(1024)); // 16 pods of 8 ToRs with 8 hosts
    let ports = Ports::of(&graph);
    let routes = Routes::new(&graph).unwrap();
    let mut uses = std::collections::BTreeMap::new();
    let (pod, flows) = (64u16, 6_000u16);
    for from in 0..pod {
        for n in 0..flows {
            let other = (u32::from(from) + u32::from(n) * 61) % (1024 - u32::from(pod));
            let to = HostId(pod + u16::try_from(other).unwrap()); // always in another pod
            let hash = flow_hash(HostId(from), to, 0xc000 + n);
            let visited =
                path(&graph, &ports, u32::from(from), u32::from(to.0), |s, d| routes.next_port(s, d, hash));
            assert_eq!(visited.len(), 7, "host, ToR, agg, core, agg, ToR, host");
            *uses.entry((visited[1], visited[2])).or_insert(0u32) += 1;
            *uses.entry((visited[2], visited[3])).or_insert(0) += 1;
        }
    }
    // 8 ToRs × 8 uplinks and 8 aggregation switches × 8 uplinks, each used by 6000 flows on average.
    assert_eq!(uses.len(), 128);
    for (link, count) in uses {
        assert!(count.abs_diff(6000) <= 600, "{link:?} carries {count} flows");
    }
}

#[test]
fn one_flow_keeps_its_path_and_a_changing_hash_uses_all() {
    let graph = fat_tree(Form::Radix(4));
    let ports = Ports::of(&graph);
    let routes = Routes::new(&graph).unwrap();
    let by = |hash| path(&graph, &ports, 0, 15, |s, d| routes.next_port(s, d, hash));
    assert_eq!(by(7), by(7));
    let cores: std::collections::BTreeSet<u32> = (0..64).map(|hash| by(hash)[3]).collect();
    assert_eq!(cores.len(), 4);
}

#[test]
fn the_ports_that_are_left_share_all_flows_anew_as_ranges_of_the_hash() {
    let graph = fat_tree(Form::Radix(8)); // four ports up
    let (ports, home) = (Ports::of(&graph), Routes::new(&graph).unwrap());
    let of_leaf = ports.of_node(NodeId(128));
    for lost in 4u16..8 {
        let link = of_leaf[usize::from(lost)].link;
        let around = Routes::around(&graph, |dead| dead == link, |_| false, None).unwrap();
        let (mut uses, mut moved) = ([0u32; 8], 0);
        for n in 0..12_000u16 {
            let hash = flow_hash(HostId(0), HostId(127), n);
            let [before, after] = [&home, &around].map(|routes| routes.next_port(0, HostId(127), hash));
            uses[usize::from(after)] += 1;
            moved += u32::from(before != lost && before != after);
        }
        // From quarters to thirds: without the first or the last one two ranges move, else one of a twelfth.
        let expected = if lost == 4 || lost == 7 { 12_000 / 4 } else { 12_000 / 12 };
        assert!(moved.abs_diff(expected) < 250, "{lost}: {moved}");
        assert_eq!(uses[usize::from(lost)], 0);
        assert!(
            (4..8).filter(|port| *port != usize::from(lost)).all(|port| uses[port].abs_diff(4_000) < 250),
            "{uses:?}"
        );
    }
}

/// How often each port stands among those by which `switch` sends to `destination`.
fn weights(routes: &Routes, switch: u32, destination: u16) -> Vec<usize> {
    let mut counts = std::collections::BTreeMap::<u16, usize>::new();
    for port in routes.equal(switch, HostId(destination)).ports() {
        *counts.entry(port).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn a_slow_link_counts_wherever_paths_lead_over_it() {
    let shape =
        LeafSpine { leaves: 3, spines: 4, hosts_per_leaf: 1, rate: RATE, fabric_rate: None, delay: DELAY };
    let graph = shape.build().unwrap().graph;
    let ports = Ports::of(&graph);
    // The first leaf's to the first spine, both ways; its switches are nodes 3 to 9.
    let slow = ports.of_node(NodeId(3))[1].link;
    let of = |node: usize, port: u16| ports.of_node(NodeId(u32::try_from(node).unwrap()))[usize::from(port)];
    let rate = |switch: usize, port: u16| if of(3 + switch, port).link == slow { 25 } else { 100 };
    let routes = Routes::weighted(&graph, &rate).unwrap();
    assert_eq!(weights(&routes, 0, 1), [1, 4, 4, 4], "its own link");
    assert_eq!(weights(&routes, 1, 0), [1, 4, 4, 4], "the one behind the spine");
    assert_eq!(weights(&routes, 1, 2), [1, 1, 1, 1], "no path leads over it");
}

#[test]
fn a_switch_carries_what_its_own_ways_do_together_and_a_link_no_more_than_its_rate() {
    // Host 0 at switch 0, which leads to 1 and 2; 1 leads to 3 and 4, 2 to 3 alone; these lead to 5, with host 1.
    let joined = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 5), (4, 5)];
    let node = |switch: u32| NodeId(2 + switch);
    let link = |(a, b)| Link { a, b, rate: RATE, delay: DELAY };
    let mut links: Vec<Link> = joined.iter().map(|&(a, b)| link((node(a), node(b)))).collect();
    links.extend([link((NodeId(0), node(0))), link((NodeId(1), node(5)))]);
    let graph = Graph {
        hosts: vec!["h0".into(), "h1".into()],
        switches: (0..6).map(|switch| format!("s{switch}")).collect(),
        links,
    };
    let ports = Ports::of(&graph);
    let weights = |first: u64| {
        let rates = [first, 100, 100, 100, 100, 30, 40, 100, 100];
        let link = |switch: usize, port: u16| ports.of_node(node(node_index(switch)))[usize::from(port)].link;
        let routes = Routes::weighted(&graph, &|switch, port| rates[link(switch, port) as usize]).unwrap();
        [0, 1, 2].map(|switch| weights(&routes, switch, 1))
    };
    assert_eq!(weights(100), [vec![7, 3], vec![3, 4], vec![1]]);
    assert_eq!(weights(50), [vec![5, 3], vec![3, 4], vec![1]]);
    // What switch 1 has shut it takes no more, and switch 0 has not heard of it.
    let rates = [100, 100, 100, 100, 100, 30, 40, 100, 100];
    let rate = |switch: usize, port: u16| {
        rates[ports.of_node(node(node_index(switch)))[usize::from(port)].link as usize]
    };
    let routes = Routes::around(&graph, |_| false, |link| link == 2, Some(&rate)).unwrap();
    assert_eq!([0, 1, 2].map(|switch| self::weights(&routes, switch, 1)), [vec![7, 3], vec![1], vec![1]]);
}

#[test]
fn packets_in_turn_differ_by_at_most_one_per_port() {
    let graph = fat_tree(Form::Radix(8));
    let routes = Routes::new(&graph).unwrap();
    let mut uses = [0u32; 8];
    let mut turn = u32::MAX - 500;
    for _ in 0..1001u32 {
        uses[usize::from(routes.port_in_turn(0, HostId(127), &mut turn))] += 1;
    }
    assert_eq!(uses[..4], [0; 4], "the lower ports lead to hosts");
    // Where the count of turns wraps, 2³² is a multiple of four, so that rounds are whole.
    assert!(uses[4..].iter().all(|&n| n == 250 || n == 251), "{uses:?}");
}

#[test]
fn packets_that_come_alternately_share_all_ports() {
    let routes = Routes::new(&fat_tree(Form::Radix(8))).unwrap();
    let mut turn = 7;
    let mut uses = [[0i32; 8]; 2];
    for n in 0..8000 {
        uses[n % 2][usize::from(routes.port_in_turn(0, HostId(127), &mut turn))] += 1;
    }
    // A thousand of each kind on each port, give or take five times the standard deviation.
    assert!(uses.iter().flat_map(|kind| &kind[4..]).all(|&n| (n - 1000).abs() < 150), "{uses:?}");
}

#[test]
fn ports_alike_are_chosen_alike_wherever_the_busy_ones_are() {
    let routes = Routes::new(&fat_tree(Form::Radix(16))).unwrap();
    let equal = routes.equal(0, HostId(1023));
    assert_eq!(equal.ports().collect::<Vec<_>>(), (8..16).collect::<Vec<_>>());
    for busy in [&[8][..], &[8, 9, 10], &[8, 12], &[9, 10, 11, 12, 13, 14]] {
        let mut uses = BTreeMap::<u16, i32>::new();
        for turn in 0..8_000 {
            let port = equal.least(None, mix(turn, 0), |port| u64::from(busy.contains(&port)));
            *uses.entry(port).or_default() += 1;
        }
        let each = 8_000 / (8 - i32::try_from(busy.len()).unwrap());
        assert!(uses.keys().all(|port| !busy.contains(port)) && uses.len() == 8 - busy.len(), "{uses:?}");
        assert!(uses.values().all(|&uses| (uses - each).abs() < each / 8), "{busy:?}: {uses:?}");
    }
    assert_eq!(equal.least(Some(11), 7, |_| 5), 11, "where none is better");
    assert_eq!(equal.least(Some(11), 7, |port| u64::from(port != 9)), 9);
}

#[test]
fn parallel_links_share_the_load() {
    let link = |a: &str, b: &str| NamedLink { a: a.into(), b: b.into(), rate: RATE, delay: DELAY };
    let graph = Explicit {
        hosts: vec!["a".into(), "b".into()],
        switches: vec!["s".into(), "t".into()],
        // The host's link between the two parallel ones makes their ports not consecutive.
        links: vec![link("s", "t"), link("a", "s"), link("s", "t"), link("b", "t")],
    };
    let routes = Routes::new(&graph.build().unwrap().graph).unwrap();
    let ports: std::collections::BTreeSet<u16> = (0..32).map(|h| routes.next_port(0, HostId(1), h)).collect();
    assert_eq!(ports, [0, 2].into());
    assert_eq!(routes.next_port(0, HostId(0), 9), 1);
}

#[test]
fn two_hosts_need_no_switch() {
    let graph = Explicit {
        hosts: vec!["a".into(), "b".into()],
        switches: vec![],
        links: vec![NamedLink { a: "a".into(), b: "b".into(), rate: RATE, delay: DELAY }],
    };
    let routes = Routes::new(&graph.build().unwrap().graph).unwrap();
    assert_eq!(routes.leaves(), 0);
}

#[test]
fn an_island_is_nowhere() {
    let mut graph = Star { hosts: 2, rate: RATE, delay: DELAY }.build().unwrap().graph;
    graph.switches.push("island".into());
    let routes = Routes::new(&graph).unwrap();
    assert_eq!(routes.next_port(1, HostId(0), 0), NO_PORT);
}

#[test]
fn the_widest_star_is_routed() {
    let graph = Star { hosts: 65_534, rate: RATE, delay: DELAY }.build().unwrap().graph;
    let routes = Routes::new(&graph).unwrap();
    assert_eq!(routes.next_port(0, HostId(65_533), 1), 65_533);
}

#[test]
fn more_ports_than_can_be_numbered_are_refused() {
    let graph = Star { hosts: 65_535, rate: RATE, delay: DELAY }.build().unwrap().graph;
    let refused = RoutingError::TooManyPorts { switch: 0, ports: 65_535 };
    assert_eq!(Routes::new(&graph).unwrap_err(), refused);
}

#[test]
fn a_flows_hash_carries_its_port() {
    let hash = flow_hash(HostId(1), HostId(2), 0xc123);
    assert_eq!(hash & 0x3fff, 0x0123);
    assert_ne!(hash >> 14, flow_hash(HostId(2), HostId(1), 0xc123) >> 14);
}

/// The tables stay small: from 1024 to 4096 hosts each further host costs less than 128 octets, all switches
/// included.
#[test]
fn a_host_costs_few_octets() {
    let octets = |hosts| Routes::new(&fat_tree(Form::Hosts(hosts))).unwrap().octets();
    let slope = (octets(4096) - octets(1024)) / 3072;
    assert!(slope <= 128, "{slope} octets a host");
}
