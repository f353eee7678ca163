//! Senders that choose a path for each packet, and what comes of it.

use crate::support::overrides;
use roci_lab::results::{FlowResult, FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;

const UNEVEN: &str = include_str!("../../../../scenarios/uneven-16.toml");
const FAILED: &str = include_str!("../../../../scenarios/failed-16.toml");

fn run(text: &str, seed: u64, set: &[(&str, &str)]) -> Results {
    let scenario = Scenario::parse(text, "spread.toml", &overrides(set)).expect("it is read");
    SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).expect("it runs")
}

/// The mean slowdown of flows over four seeds. None may be faster than the paths allow.
fn slowdown(set: &[(&str, &str)]) -> f64 {
    let flows: Vec<FlowResult> = (1..=4).flat_map(|seed| run(UNEVEN, seed, set).flows).collect();
    let slowdowns = flows.iter().map(|flow| flow.slowdown().expect("it is done"));
    assert!(slowdowns.clone().all(|slowdown| slowdown >= 1.0));
    slowdowns.sum::<f64>() / flows.len() as f64
}

#[test]
fn ports_that_are_recycled_keep_off_a_slow_link_two_hops_away() {
    let by_hash = ("switch.routing", "ecmp");
    let [flow, ops, reps] =
        ["flow", "ops", "reps"].map(|paths| slowdown(&[by_hash, ("transport.paths", paths)]));
    let adaptive = slowdown(&[]);
    // What the link lacks is 75 of the 1600 Gb/s between leaves and spines.
    assert!(reps < 1.15, "{reps}");
    assert!(adaptive > 1.25 && ops > 1.25 && flow > 1.25, "{flow} {ops} {reps}, by load {adaptive}");
}

fn timeouts(results: &Results) -> u32 {
    results.flows.iter().map(|flow| flow.timeouts).sum()
}

fn failed(results: &Results) -> usize {
    results.flows.iter().filter(|flow| flow.status != FlowStatus::OK).count()
}

#[test]
fn a_timeout_sends_packets_around_a_link_that_failed_and_nobody_routes_around() {
    for seed in 1..=3 {
        let [reps, thawed, ops] = ["reps", "{ by = \"reps\", freeze = \"0s\" }", "ops"]
            .map(|paths| run(FAILED, seed, &[("transport.paths", paths)]));
        assert_eq!(failed(&reps), 0, "seed {seed}");
        // Eight flows come by that leaf; what each has under way may take a timeout or two.
        assert!(timeouts(&reps) <= 16, "seed {seed}: {}", timeouts(&reps));
        assert!(timeouts(&thawed) > 4 * timeouts(&reps), "seed {seed}: {}", timeouts(&thawed));
        assert!(failed(&ops) > 0 || timeouts(&ops) > 20 * timeouts(&reps), "seed {seed}: {}", timeouts(&ops));
    }
}

#[test]
fn a_queue_pair_that_knows_only_the_path_that_failed_finds_another() {
    // One packet is under way at a time, none explores, and so the port that came back last is all that is known.
    let traffic = "[[traffic]]\nkind = \"closed-loop\"\nmessage = \"4KB\"\ncount = 300\nqps = 8\n\
                   pairs = [[\"h0\", \"h4\"], [\"h1\", \"h5\"], [\"h8\", \"h2\"], [\"h12\", \"h3\"]]\n";
    let text = FAILED.replace("[[traffic]]\nkind = \"permutation\"\nsize = \"20MB\"\n", traffic);
    let reps = run(&text, 1, &[("transport.paths", "{ by = \"reps\", explore = 0 }")]);
    assert_eq!((reps.flows.len(), failed(&reps)), (32, 0));
    let hit = reps.flows.iter().filter(|flow| flow.timeouts > 0).count();
    assert!((1..32).contains(&hit), "some had that path: {hit}");
    // The first timeout freezes and the second forgets; what is tried then may be that path again.
    assert!(reps.flows.iter().all(|flow| flow.timeouts != 1 && flow.timeouts <= 7), "{}", timeouts(&reps));
}

#[test]
fn all_kinds_of_requests_recoveries_and_nics_work_over_several_paths() {
    let all = [
        vec![("traffic.0.op", "read"), ("transport.recovery", "irn"), ("transport.control", "dcqcn")],
        vec![("traffic.0.op", "send"), ("transport.recovery", "sack"), ("transport.control", "swift")],
        vec![("traffic.0.op", "write"), ("transport.recovery", "srnic")],
        vec![("traffic.0.op", "write"), ("transport.control", "homa"), ("transport.recovery", "irn")],
        vec![("nic.model", "delaying")],
        vec![("nic.model", "cx6"), ("transport.recovery", "irn"), ("transport.control", "dcqcn")],
        vec![("transport.ack_every", "8"), ("transport.recovery", "irn"), ("transport.control", "dctcp")],
        vec![("traffic.0.op", "read"), ("transport.recovery", "go-back-n"), ("transport.control", "dcqcn")],
    ];
    for set in all {
        for paths in ["ops", "reps"] {
            let mut set = set.clone();
            set.extend([
                ("transport.paths", paths),
                ("switch.routing", "ecmp"),
                ("faults.on.0.rate", "100Gb/s"),
                ("traffic.0.size", "400KB"),
            ]);
            let results = run(UNEVEN, 1, &set);
            assert_eq!(failed(&results), 0, "{set:?}");
            // What `delaying` sends has mostly come when the next packet leaves.
            let overtakes = !set.contains(&("nic.model", "delaying"));
            assert!(!overtakes || results.flows.iter().any(|flow| flow.reordered > 0), "{set:?}");
        }
    }
}

#[test]
fn packets_with_paths_of_their_own_stay_in_order_where_there_is_one_path() {
    let set = [("transport.paths", "{ by = \"ops\", entropies = 1 }"), ("switch.routing", "ecmp")];
    assert_eq!(run(UNEVEN, 1, &set).flows.iter().map(|flow| flow.reordered).sum::<u32>(), 0);
}
