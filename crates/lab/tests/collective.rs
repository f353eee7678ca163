//! Collectives: how long they take on an idle network, that they end whatever happens to packets, and what is told of them.

mod support;

use roci_lab::results::{CollectiveResult, FlowResult, FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_transport::Status;
use roci_units::Span;
use support::{overrides, run, star};

/// Octets around a packet's payload at most: preamble and gap 20, Ethernet with its check 18, IPv4 20, UDP 8, BTH 12, RETH 16,
/// immediate 4, ICRC 4.
const HEADERS: f64 = 102.0;
const MTU: f64 = 4096.0;
/// Octets of an acknowledgement on the wire, of which there is one for each packet: what the above says, and AETH for RETH and immediate.
const ACK: f64 = 86.0;
/// Octets on the wire for each of full packets' payload at most, and of the acknowledgements that share the link with them.
const HEADED: f64 = 1.0 + (HEADERS + ACK) / MTU;
/// Octets a second at 100 Gb/s.
const RATE: f64 = 12.5e9;
/// Over two links of a microsecond each.
const LATENCY: f64 = 2e-6;

/// A collective of `ranks` around one switch; `lines` are its own, `rest` are other tables.
fn of(ranks: u32, lines: &str, rest: &str) -> String {
    let rest = format!(
        "start_jitter = \"0s\"\n[nic]\nmtu = 4096\n{rest}\n[[traffic]]\nkind = \"collective\"\n{lines}"
    );
    star(ranks, "100Gb/s", &rest)
}

/// What comes of `text` with this seed.
fn with_seed(seed: u64, text: &str, set: &[(&str, &str)]) -> Results {
    let scenario =
        Scenario::parse(text, "here.toml", &overrides(set)).unwrap_or_else(|error| panic!("{error}"));
    SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"))
}

fn only(results: &Results) -> &CollectiveResult {
    let [one] = &results.collectives[..] else { panic!("one collective") };
    one
}

/// The mean time of an iteration, where all are done, and all flows.
fn time_of(results: &Results) -> f64 {
    let one = only(results);
    assert_eq!((one.iterations.len(), one.failed), (one.asked as usize, false));
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK));
    one.times().expect("an iteration is done").0
}

/// A run in which no law holds anything back.
fn unpaced(lines: &str, ranks: u32) -> Results {
    run(&of(ranks, lines, ""), &[("transport.control", "none")])
}

/// What steps that send so many octets each take beyond these octets at the rate of the links and the latency: headers, one
/// frame more, as the switch sends the last one when it has all of it, and what acknowledgements take.
fn most_beyond(steps: impl Iterator<Item = f64> + Clone) -> f64 {
    let headers = steps.clone().map(|octets| ((octets / MTU).ceil() * HEADERS + MTU + HEADERS) / RATE);
    headers.sum::<f64>() + of_acknowledgements(steps)
}

/// What acknowledgements of what a rank receives take from what it sends: each of its links, to the switch and from there, carries one
/// for each packet, and one may go before the first.
fn of_acknowledgements(steps: impl Iterator<Item = f64>) -> f64 {
    steps.map(|octets| 2.0 * ((octets / MTU).ceil() + 1.0) * ACK / RATE).sum()
}

/// Asserts that an iteration took what `least` says, and what follows from `steps`; and as much as is told to be ideal, but for
/// acknowledgements.
fn judge(results: &Results, least: f64, steps: impl Iterator<Item = f64> + Clone) {
    let (time, ranks) = (time_of(results), only(results).ranks);
    let ideal = only(results).ideal.expect("it began").as_secs_f64();
    assert!(least <= ideal && ideal <= time, "{ranks} ranks: {least}, {ideal} and {time}");
    assert!(time <= least + most_beyond(steps.clone()), "{ranks} ranks: {least} and {time}");
    assert!(time <= ideal + of_acknowledgements(steps), "{ranks} ranks: {ideal} and {time}");
}

#[test]
fn a_ring_takes_two_rounds_of_shards_at_the_rate_of_its_links_and_a_latency_for_each_step() {
    for (ranks, size) in [(2, 800_000.0), (8, 8_388_608.0), (5, 10_000.0)] {
        let steps = 2.0 * (f64::from(ranks) - 1.0);
        let least = steps / f64::from(ranks) * size / RATE + steps * LATENCY;
        let shards = std::iter::repeat_n(f64::ceil(size / f64::from(ranks)), 2 * (ranks as usize - 1));
        let lines = format!("operation = \"all-reduce\"\nsize = {size}\niterations = 2\n");
        judge(&unpaced(&lines, ranks), least, shards);
    }
}

#[test]
fn halving_and_doubling_sends_as_much_in_fewer_steps() {
    for ranks in [2_u32, 8, 16] {
        let size = 4_194_304.0;
        let bits = ranks.trailing_zeros();
        let halves = || (1..=bits).map(|bit| size / f64::from(1 << bit));
        let least =
            2.0 * (f64::from(ranks) - 1.0) / f64::from(ranks) * size / RATE + 2.0 * f64::from(bits) * LATENCY;
        let lines = format!("operation = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nsize = {size}\n");
        judge(&unpaced(&lines, ranks), least, halves().chain(halves()));
    }
}

#[test]
fn two_trees_take_a_message_for_each_level_up_and_down_and_their_links_carry_twice_the_data() {
    let lines = |size: u32, chunks: u32| {
        format!("operation = \"all-reduce\"\nalgorithm = \"tree\"\nsize = {size}\nchunks = {chunks}\n")
    };
    // Small ones: of 2^k ranks the deepest leaf of a tree is k below its root.
    for (ranks, levels) in [(2_u32, 1.0), (4, 2.0), (8, 3.0), (16, 4.0), (13, 4.0)] {
        let results = unpaced(&lines(256, 1), ranks);
        let (time, ideal) = (time_of(&results), only(&results).ideal.unwrap().as_secs_f64());
        let message = LATENCY + 2.0 * (128.0 + HEADERS) / RATE;
        assert!((ideal - 2.0 * levels * message).abs() < 0.03 * ideal, "{ranks}: {ideal}");
        // Two messages may meet at each level, and acknowledgements.
        assert!(ideal <= time && time < ideal * 1.1, "{ranks}: {ideal} and {time}");
    }
    // Between two ranks each has half of the data to send as a sum, and the other half as a total.
    let results = unpaced(&lines(8_000_000, 1), 2);
    let steps = [4e6, 4e6].into_iter();
    judge(&results, 8e6 / RATE + 2.0 * LATENCY, steps);
    // Large ones in many chunks: what the busiest rank sends, and what is on its way.
    for ranks in [4, 8, 16] {
        let results = unpaced(&lines(16_000_000, 64), ranks);
        let (time, ideal) = (time_of(&results), only(&results).ideal.unwrap().as_secs_f64());
        let wire = 2.0 * 16e6 / RATE;
        assert!(wire < ideal && ideal < 1.04 * wire, "{ranks}: {ideal} for {wire}");
        assert!(ideal <= time && time < 1.35 * ideal, "{ranks}: {ideal} and {time}");
    }
}

#[test]
fn chunks_hide_the_latency_of_steps_behind_one_another() {
    let time = |chunks: u32| {
        let lines = format!("operation = \"all-reduce\"\nsize = \"1MB\"\nchunks = {chunks}\n");
        time_of(&unpaced(&lines, 8))
    };
    let (one, four) = (time(1), time(4));
    let wire = 2.0 * 7.0 / 8.0 * 1e6 / RATE;
    assert!(one > wire + 14.0 * LATENCY, "{one}");
    // A step of one takes 2.5 µs and a latency of little less, and those of the others the link meanwhile: it is hardly ever idle.
    assert!(
        wire < four && four < HEADED * wire + 2.0 * LATENCY,
        "{four}, and {wire} at the rate of the link"
    );
}

const STAR: &str = "topology = { kind = \"star\", hosts = 12, rate = \"100Gb/s\", delay = \"1us\" }\n";

/// How long that takes which is chosen, what it is, and how long each of `algorithms` takes that can do it.
fn choice(network: &str, lines: &str, algorithms: &[&str]) -> (f64, &'static str, Vec<f64>) {
    let result = |algorithm: &str| {
        let text = format!(
            "start_jitter = \"0s\"\n{network}[switch]\nbuffer = \"64MB\"\n[nic]\nmtu = 4096\n[transport]\ncontrol = \"none\"\n\
             [[traffic]]\nkind = \"collective\"\nalgorithm = \"{algorithm}\"\n{lines}"
        );
        let results = run(&text, &[]);
        (time_of(&results), only(&results).algorithm.name())
    };
    let (time, by) = result("auto");
    let times: Vec<f64> = algorithms.iter().map(|algorithm| result(algorithm).0).collect();
    println!("{lines}: {algorithms:?} {times:?}, {by} {time}");
    (time, by, times)
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn what_is_chosen_by_size_is_about_as_fast_as_the_fastest_and_a_tree_for_short_and_a_ring_for_long_data() {
    let star = STAR.replace("12", "16");
    let rails = "[topology]\nkind = \"rails\"\nservers = 6\ngpus = 4\nspines = 2\nrate = \"400Gb/s\"\ndelay = \"500ns\"\n\
                 scale_up = \"3.6Tb/s\"\n";
    for (network, rest, algorithms) in [
        (STAR, "chunks = 8", &["tree", "ring"][..]),
        (&star, "chunks = 8", &["tree", "ring", "halving-doubling"]),
        (rails, "chunks = 8\nchannels = 4", &["tree", "ring"]),
    ] {
        let mut chosen = Vec::new();
        for size in [6_144_u32, 98_304, 1_572_864, 25_165_824] {
            let lines = format!("operation = \"all-reduce\"\nsize = {size}\n{rest}\n");
            let (time, by, times) = choice(network, &lines, algorithms);
            let most = times.iter().copied().fold(0.0, f64::max);
            assert!(time <= 1.1 * least(&times) && time < most, "{size}: {by} takes {time}, of {times:?}");
            chosen.push(by);
        }
        if !algorithms.contains(&"halving-doubling") {
            assert_eq!((chosen.first(), chosen.last()), (Some(&"tree"), Some(&"ring")), "{chosen:?}");
        }
    }
}

/// Networks, and ranks in them, on which an algorithm is chosen.
const NETWORKS: [&str; 6] = [
    STAR,
    "topology = { kind = \"fat-tree\", k = 4, rate = \"100Gb/s\", delay = \"1us\" }\n",
    "topology = { kind = \"dumbbell\", left = 8, right = 8, rate = \"100Gb/s\", delay = \"1us\" }\n",
    "topology = { kind = \"leaf-spine\", leaves = 4, spines = 2, hosts_per_leaf = 6, rate = \"100Gb/s\", delay = \"1us\" }\n",
    "topology = { kind = \"rails\", servers = 4, gpus = 8, spines = 4, rate = \"400Gb/s\", delay = \"500ns\", scale_up = \"3.6Tb/s\" }\n",
    // A rail has two leaves.
    "topology = { kind = \"rails\", servers = 8, gpus = 4, spines = 2, servers_per_leaf = 4, rate = \"400Gb/s\", delay = \"500ns\", \
     scale_up = \"900Gb/s\" }\n",
];

#[test]
fn what_is_chosen_by_size_is_never_far_from_the_fastest_on_any_network_and_however_data_are_cut() {
    let all = [
        ("all-reduce", &["ring", "tree", "halving-doubling"][..]),
        ("reduce-scatter", &["ring", "direct", "halving-doubling"]),
        ("all-to-all", &["direct", "pxn"]),
    ];
    let mut worst: f64 = 1.0;
    for (place, network) in NETWORKS.into_iter().enumerate() {
        let is_power = ![0, 3].contains(&place);
        let has_servers = place >= 4;
        for (operation, algorithms) in all {
            let can = |it: &&&str| match **it {
                "halving-doubling" => is_power,
                "pxn" => has_servers,
                _ => true,
            };
            let algorithms: Vec<_> = algorithms.iter().filter(can).copied().collect();
            for size in ["4KiB", "64KiB", "1MiB"] {
                for (chunks, channels) in [(1, 1), (8, 1), (1, 4)] {
                    let lines = format!(
                        "operation = \"{operation}\"\nsize = \"{size}\"\nchunks = {chunks}\nchannels = {channels}\n"
                    );
                    let (time, by, times) = choice(network, &lines, &algorithms);
                    let over = time / least(&times);
                    assert!(over <= 1.25, "{network}{lines}{by} takes {time}, of {algorithms:?} {times:?}");
                    worst = worst.max(over);
                }
            }
        }
    }
    println!("at most {worst} times the fastest");
}

#[test]
fn a_ring_is_not_chosen_where_a_slow_link_of_one_rank_makes_trees_faster() {
    let link = |host: u32| {
        let rate = if host == 0 { "10Gb/s" } else { "100Gb/s" };
        format!("{{ a = \"h{host}\", b = \"s\", rate = \"{rate}\", delay = \"1us\" }}")
    };
    let links: Vec<_> = (0..7).map(link).collect();
    let hosts: Vec<_> = (0..7).map(|host| format!("\"h{host}\"")).collect();
    let network = format!(
        "[topology]\nkind = \"graph\"\nswitches = [\"s\"]\nhosts = [{}]\nlinks = [{}]\n",
        hosts.join(", "),
        links.join(", ")
    );
    let lines = "operation = \"all-reduce\"\nsize = \"256KiB\"\nchunks = 16\n";
    let (time, by, times) = choice(&network, lines, &["ring", "tree"]);
    assert!(by == "tree" && time == times[1] && times[1] < times[0], "{by} {times:?}");
}

#[test]
fn a_broadcast_is_a_chain_through_which_chunks_follow_one_another() {
    let time = |chunks: u32| {
        let lines = format!("operation = \"broadcast\"\nsize = \"4MB\"\nchunks = {chunks}\n");
        let results = unpaced(&lines, 4);
        assert_eq!(results.flows.len(), 3);
        assert!(only(&results).iterations[0].last == 3, "the last of the chain is done last");
        time_of(&results)
    };
    let (whole, parts) = (time(1), time(40));
    let wire = 4e6 / RATE;
    assert!(whole > 3.0 * wire, "{whole}");
    // 39 chunks after the first one has gone through three links.
    assert!(wire < parts && parts < wire * HEADED * 43.0 / 40.0 + 3.0 * LATENCY, "{parts}");
}

#[test]
fn a_root_sends_or_receives_all_by_its_own_link_whichever_rank_it_is() {
    let size = 8_388_608.0;
    for operation in ["gather", "scatter"] {
        let results = unpaced(&format!("operation = \"{operation}\"\nsize = {size}\nroot = 3\n"), 8);
        let ends = |flow: &FlowResult| if operation == "gather" { flow.dst } else { flow.src };
        assert!(results.flows.len() == 7 && results.flows.iter().all(|flow| ends(flow) == 3));
        judge(&results, 7.0 / 8.0 * size / RATE + LATENCY, std::iter::repeat_n(size / 8.0, 7));
        assert!(operation == "scatter" || only(&results).iterations[0].last == 3, "the root has all last");
    }
    // Chains, one from the root through all others in their order, and one to it.
    for (operation, root, last) in [("broadcast", 2, 1), ("reduce", 1, 1)] {
        let lines = format!("operation = \"{operation}\"\nsize = {size}\nroot = {root}\n");
        let results = unpaced(&lines, 4);
        judge(&results, 3.0 * (size / RATE + LATENCY), std::iter::repeat_n(size, 3));
        assert_eq!(only(&results).iterations[0].last, last, "{operation}");
    }
}

/// All operations with all of their algorithms, and how many ranks share a server.
const EACH: [(&str, &str, u64); 18] = [
    ("all-reduce", "ring", 1),
    ("all-reduce", "ring", 4),
    ("all-reduce", "halving-doubling", 1),
    ("all-reduce", "tree", 1),
    ("all-reduce", "tree", 2),
    ("reduce-scatter", "ring", 1),
    ("reduce-scatter", "halving-doubling", 1),
    ("reduce-scatter", "direct", 1),
    ("all-gather", "ring", 1),
    ("all-gather", "halving-doubling", 1),
    ("all-gather", "direct", 1),
    ("all-to-all", "direct", 1),
    ("all-to-all", "pxn", 2),
    ("all-to-all", "pxn", 4),
    ("broadcast", "ring", 1),
    ("reduce", "ring", 1),
    ("gather", "direct", 1),
    ("scatter", "direct", 1),
];

/// Octets that all ranks together send in an iteration, each `size` of data.
fn sent(operation: &str, algorithm: &str, (ranks, per_server): (u64, u64), size: u64) -> u64 {
    match (operation, algorithm) {
        ("all-reduce", _) => 2 * (ranks - 1) * size,
        // Each server's ranks send one another what is for their rails, and then that of all to each other server.
        (_, "pxn") => {
            let servers = ranks / per_server;
            (servers * (per_server - 1) + per_server * (servers - 1)) * size
        }
        // All but the root's own shard of each chunk of each channel, cut down to whole octets.
        ("gather" | "scatter", _) => size - 6 * (size / 6 / ranks),
        _ => (ranks - 1) * size,
    }
}

#[test]
fn each_ends_and_has_moved_its_data_whatever_links_and_hosts_do() {
    let faults = "[transport]\ntimeout = \"200us\"\n[faults]\nloss = 0.004\ncorrupt = 0.002\nduplicate = 0.01\n\
        reorder = { share = 0.01, by = \"5us\" }\n";
    let late = "[transport]\nrecovery = \"irn\"\ntimeout = \"200us\"\n[faults]\nloss = 0.01\n";
    for (operation, algorithm, per_server) in EACH {
        let lines = format!(
            "operation = \"{operation}\"\nalgorithm = \"{algorithm}\"\nranks_per_server = {per_server}\nsize = 100_003\nchannels = 2\n\
             chunks = 3\niterations = 3\n"
        );
        for (rest, set) in [
            (faults, None),
            (late, None),
            // Many ranks are sent to before they begin.
            ("", Some(("start_jitter", "100us"))),
            ("", Some(("nic.model", "delaying"))),
            ("", Some(("nic.model", "cx5"))),
        ] {
            let results = run(&of(8, &lines, rest), set.as_slice());
            let time = time_of(&results);
            let over = only(&results).over_ideal(time).unwrap();
            assert!(over >= 1.0, "{operation} {algorithm} {set:?}: {over}");
            let delivered: u64 = results.flows.iter().map(|flow| flow.delivered).sum();
            let octets = sent(operation, algorithm, (8, per_server), 100_003);
            assert_eq!(delivered, 3 * octets, "{operation} {algorithm} {per_server} {set:?}");
        }
    }
}

#[test]
fn under_each_law_and_recovery_ranks_get_on() {
    let lines = "operation = \"all-reduce\"\nsize = \"400KB\"\nchunks = 2\niterations = 2\n";
    let laws =
        ["none", "dcqcn", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc", "timely", "homa"];
    let recoveries = ["irn", "srnic", "reno", "newreno", "sack"];
    let laws = laws.map(|law| ("transport.control", law));
    for set in laws.into_iter().chain(recoveries.map(|it| ("transport.recovery", it))) {
        let time = time_of(&run(&of(4, lines, ""), &[set]));
        assert!(time < 10.0 * 2.0 * 400e3 / RATE, "{set:?}: {time}");
    }
}

#[test]
fn an_iteration_begins_a_gap_after_the_last_rank_is_done() {
    let lines =
        "operation = \"all-gather\"\nsize = \"1MB\"\niterations = 4\ngap = \"7us\"\nstart = \"3us\"\n";
    for jitter in ["0s", "1us"] {
        let results = run(&of(4, lines, ""), &[("start_jitter", jitter)]);
        time_of(&results);
        let iterations = &only(&results).iterations;
        assert_eq!(iterations[0].start.as_ps(), 3_000_000);
        for pair in iterations.windows(2) {
            assert_eq!(pair[1].start.since(pair[0].end), Span::from_micros(7));
            assert!(pair[0].first_end <= pair[0].end && pair[0].start < pair[0].first_end);
        }
    }
}

#[test]
fn ranks_are_where_they_are_listed_or_dealt_by_the_seed() {
    let lines = "operation = \"all-reduce\"\nsize = \"64KB\"\nhosts = [\"h3\", \"h0\", \"h4\", \"h1\"]\n";
    let pairs = |seed: u64, set: &[(&str, &str)]| {
        let results = with_seed(seed, &of(6, lines, ""), set);
        results.flows.iter().map(|flow| (flow.src, flow.dst)).collect::<Vec<_>>()
    };
    assert_eq!(pairs(1, &[]), [(3, 0), (0, 4), (4, 1), (1, 3)]);
    let random = ("traffic.0.placement", "random");
    // Of five seeds all alike would be a chance of one in 24⁴ and less.
    let dealt: Vec<_> = (1..6).map(|seed| pairs(seed, &[random])).collect();
    for ring in &dealt {
        let mut ranks: Vec<u16> = ring.iter().map(|(src, _)| *src).collect();
        assert!(ring.iter().zip(ring.iter().cycle().skip(1)).all(|(one, next)| one.1 == next.0), "{ring:?}");
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1, 3, 4]);
    }
    assert!(dealt.iter().any(|ring| *ring != dealt[0]));
}

#[test]
fn a_rank_that_is_cut_off_ends_the_collective_with_the_reason_and_the_rest_flushed() {
    let rest = "[transport]\ntimeout = \"50us\"\nretry = 2\n[[faults.on]]\nlink = \"h2-s0\"\nloss = 1\nfrom = \"100us\"\n";
    let lines = "operation = \"all-reduce\"\nsize = \"1MB\"\niterations = 50\n";
    let results = run(&of(4, lines, rest), &[("stop", "20ms")]);
    let one = only(&results);
    assert!(one.failed && one.iterations.len() < 50);
    let with =
        |status| results.flows.iter().filter(|flow| flow.status == FlowStatus::Completed(status)).count();
    assert_eq!((with(Status::TransportRetryCounterExceeded), with(Status::WorkRequestFlushed)), (1, 3));
    let told = results.failure().unwrap();
    assert!(told.ends_with("Transport Retry Counter Exceeded"), "the cause, and not what came of it: {told}");
    assert!(results.simulated.as_ps() < 20_000_000_000, "the run ends with its traffic");
}

#[test]
fn one_seed_gives_one_result_and_jitter_comes_from_it() {
    let lines = "operation = \"all-reduce\"\nsize = \"256KB\"\niterations = 5\nchannels = 2\n";
    let iterations = |seed: u64| {
        let set = [("start_jitter", "2us")];
        let results = with_seed(seed, &of(4, lines, "[faults]\nloss = 0.001\n"), &set);
        (only(&results).iterations.clone(), results.events)
    };
    assert_eq!(iterations(7), iterations(7));
    assert_ne!(iterations(7), iterations(8));
}

#[test]
fn a_rank_that_begins_when_it_has_all_ends_the_last_iteration() {
    // The second rank of two has nothing to send, and often begins long after it was sent to.
    for seed in 0..10 {
        let lines = "operation = \"broadcast\"\nsize = 17\niterations = 3\n";
        let results = with_seed(seed, &of(2, lines, ""), &[("start_jitter", "30us")]);
        time_of(&results);
        let iterations = &only(&results).iterations;
        assert!(iterations.iter().all(|it| it.first_end <= it.end), "{iterations:?}");
        assert!(iterations[2].end <= results.simulated, "the run lasts as long");
    }
}

#[test]
fn nobody_waits_for_ranks_of_a_collective_that_has_failed() {
    // h2 would begin late, and the queue pairs to it fail before.
    let rest = "[transport]\ntimeout = \"20us\"\nretry = 0\n[[faults.on]]\nlink = \"h2-s0\"\ndown = true\n";
    let lines = "operation = \"all-gather\"\nalgorithm = \"direct\"\nsize = \"9KB\"\n";
    let results = run(&of(3, lines, rest), &[("start_jitter", "50ms"), ("stop", "1s")]);
    let one = only(&results);
    assert!(one.failed && one.iterations.is_empty());
    let last = results.flows.iter().map(|flow| flow.end).max();
    assert_eq!(Some(results.simulated), last, "the run ends with its traffic");
}

#[test]
fn a_slow_host_is_found() {
    let links = |host: u32| {
        let rate = if host == 2 { "25Gb/s" } else { "100Gb/s" };
        format!("{{ a = \"h{host}\", b = \"s\", rate = \"{rate}\", delay = \"1us\" }},\n")
    };
    let links: String = (0..4).map(links).collect();
    let text = format!(
        "start_jitter = \"0s\"\n[topology]\nkind = \"graph\"\nhosts = [\"h0\", \"h1\", \"h2\", \"h3\"]\nswitches = [\"s\"]\nlinks = [\n{links}]\n\
         [switch]\npfc = true\necn = false\n[transport]\ncontrol = \"none\"\n\
         [[traffic]]\nkind = \"collective\"\noperation = \"broadcast\"\nsize = \"1MB\"\n"
    );
    let results = run(&text, &[]);
    let slowest = only(&results).iterations[0].slowest.unwrap();
    // To it and from it: 1 MB at 25 Gb/s each, and the second of the two is ACKed on the slow link too.
    assert!([2, 3].contains(&slowest.host) && slowest.time > Span::from_micros(320), "{slowest:?}");
    assert!(only(&results).over_ideal(time_of(&results)).unwrap() < 1.01);
}

#[test]
fn a_server_may_be_as_large_as_a_network_whose_chain_is_long() {
    // Of a chain of 3000 ranks one after the other is looked at: on a small stack none calls itself for the next.
    let lines =
        "operation = \"all-reduce\"\nalgorithm = \"tree\"\nranks_per_server = 3000\nsize = \"64KB\"\n";
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    let results = thread
        .spawn(|| run(&of(3000, lines, ""), &[("transport.control", "none"), ("switch.pfc", "false")]))
        .expect("a thread")
        .join()
        .expect("no overflow");
    let one = only(&results);
    let least = one.ideal.expect("it began").as_secs_f64();
    let time = time_of(&results);
    assert!(least > 2.0 * 2999.0 * LATENCY && time >= least && time < 1.1 * least, "{time} and {least}");
}

/// An all-to-all of what each of `rows` says.
fn of_matrix(rows: &[Vec<u64>], rest: &str) -> String {
    format!("operation = \"all-to-all\"\nmatrix = {rows:?}\n{rest}\n")
}

/// `flows.csv`.
fn flows_csv(results: &Results) -> String {
    let mut csv = Vec::new();
    roci_lab::output::flows::write(&mut csv, results).expect("memory can be written");
    String::from_utf8(csv).expect("it is text")
}

#[test]
fn a_matrix_of_equal_amounts_is_an_even_all_to_all() {
    for rest in [
        "",
        "chunks = 2\nchannels = 3\niterations = 2",
        "algorithm = \"pxn\"\nranks_per_server = 2\nchunks = 4",
    ] {
        let even = unpaced(&format!("operation = \"all-to-all\"\nsize = {}\n{rest}\n", 6 * 12_000), 6);
        let same = unpaced(&of_matrix(&vec![vec![12_000; 6]; 6], rest), 6);
        assert_eq!(flows_csv(&even), flows_csv(&same), "{rest}");
        let (even, same) = (only(&even), only(&same));
        assert_eq!((even.bytes, &even.iterations), (same.bytes, &same.iterations), "{rest}");
        // That of receivers counts as well.
        assert!(same.ideal >= even.ideal && same.iterations[0].time() >= same.ideal.unwrap(), "{rest}");
        assert!((even.bus_bps(1e-6) / same.bus_bps(1e-6) - 1.0).abs() < 1e-12);
    }
}

#[test]
fn ranks_receive_what_the_columns_of_a_matrix_say_and_nothing_is_sent_where_it_says_zero() {
    let rows: Vec<Vec<u64>> = vec![
        vec![7, 30_000, 0, 1, 100_000],
        vec![0, 0, 0, 0, 0],
        vec![500, 0, 0, 70_001, 64],
        vec![0, 9_000, 0, 3, 8],
        vec![20_000, 20_000, 20_000, 20_000, 0],
    ];
    for placement in ["listed", "random"] {
        let results = unpaced(&of_matrix(&rows, &format!("placement = \"{placement}\"\niterations = 3")), 5);
        time_of(&results);
        let pairs = (0..5).flat_map(|from| (0..5).map(move |to| (from, to))).filter(|(from, to)| from != to);
        let mut some: Vec<u64> =
            pairs.map(|(from, to)| 3 * rows[from][to]).filter(|octets| *octets > 0).collect();
        let mut flows: Vec<u64> = results.flows.iter().map(|flow| flow.delivered).collect();
        if placement == "listed" {
            for host in 0..5u16 {
                let came = results.flows.iter().filter(|flow| flow.dst == host);
                let column = (0..5)
                    .filter(|from| *from != usize::from(host))
                    .map(|from| 3 * rows[from][usize::from(host)]);
                assert_eq!(came.map(|flow| flow.delivered).sum::<u64>(), column.sum::<u64>(), "h{host}");
            }
        }
        some.sort_unstable();
        flows.sort_unstable();
        assert_eq!(flows, some, "{placement}");
    }
}

#[test]
fn all_of_a_hot_expert_comes_by_its_one_link() {
    // Five packets of each of four ranks for the fifth.
    let packets = 5;
    let octets = packets * 4096;
    let rows: Vec<Vec<u64>> =
        (0..5).map(|from| (0..5).map(|to| if from != 3 && to == 3 { octets } else { 0 }).collect()).collect();
    let results = unpaced(&of_matrix(&rows, ""), 5);
    // At 100 Gb/s an octet is 80 ps. The first packet of a message has a RETH, the last its immediate, and all have 82 octets around their payload.
    let around = 20 + 18 + 20 + 8 + 12 + 4;
    let first = (4096 + around + 16) * 80 + 1_000_000;
    let all = 4 * (octets + packets * around + 16 + 4) * 80;
    let least = Span::from_ps(first + all + 1_000_000);
    let one = only(&results);
    assert_eq!((one.iterations[0].time(), one.ideal), (least, Some(least)));
    // What it receives, over that.
    let bus = one.bus_bps(least.as_secs_f64());
    assert!((bus / (4.0 * octets as f64 * 8.0 / least.as_secs_f64()) - 1.0).abs() < 1e-12, "{bus}");
    assert_eq!((one.bytes, one.busiest), (4 * octets, Some(4 * octets)));
}

#[test]
fn tokens_of_a_skew_are_drawn_by_the_seed_and_those_of_servers_go_over_rails() {
    let lines = "operation = \"all-to-all\"\nsize = \"256KB\"\nskew = 1.2\ntokens = 64\n";
    let text = of(6, lines, "");
    let none = [("transport.control", "none")];
    let [one, again, other] = [1, 1, 2].map(|seed| with_seed(seed, &text, &none));
    assert_eq!(flows_csv(&one), flows_csv(&again));
    assert_ne!(only(&one).busiest, only(&other).busiest);
    let sent: u64 = one.flows.iter().map(|flow| flow.bytes).sum();
    assert!(sent < 6 * 256_000 && sent > 3 * 256_000, "{sent}: some tokens stay where they are");
    let rails = |set: &[(&str, &str)]| {
        let text = format!(
            "start_jitter = \"0s\"\n[topology]\nkind = \"rails\"\nservers = 3\ngpus = 4\nspines = 1\nrate = \"100Gb/s\"\ndelay = \"1us\"\n\
             scale_up = \"3.6Tb/s\"\nscale_up_delay = \"100ns\"\n[transport]\ncontrol = \"none\"\n[[traffic]]\nkind = \"collective\"\n{lines}"
        );
        let results = run(&text, set);
        let time = time_of(&results);
        let one = only(&results);
        assert!(one.over_ideal(time).unwrap() >= 1.0, "{set:?}");
        (one.algorithm.name(), one.busiest, time)
    };
    let direct = rails(&[("traffic.0.algorithm", "direct"), ("traffic.0.ranks_per_server", "1")]);
    let over_rails = rails(&[("traffic.0.algorithm", "pxn")]);
    assert_eq!(direct.1, over_rails.1, "they are drawn alike");
    assert!(over_rails.2 < direct.2, "one spine for four NICs of a leaf: {direct:?} {over_rails:?}");
    assert_eq!(rails(&[("traffic.0.algorithm", "auto")]), over_rails);
}
