//! What runs are asked to move, which is known before they begin.

use super::{Run, samples};
use crate::results::{FlowResult, HostResult, Iteration, LinkResult, SwitchResult};
use crate::scenario::Scenario;
use crate::traffic::Traffic;
use crate::traffic::jobs::{Jobs, Setting};
use roci_fabric::graph::{Graph, NodeId};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the flows of one run are asked to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Flows that begin before the run stops, if no others have to end for that.
    pub flows: u64,
    /// Of those, flows that have no end of their own.
    pub endless: u64,
    /// Octets of payload of all others.
    pub octets: u64,
    /// Whether there are more than were counted.
    pub more: bool,
    /// Whether a capture is written.
    pub capture: bool,
    /// Octets of payload that are in it once all is moved, where they begin and end: at hosts that are captured, and at switches that these
    /// are linked to, which see them twice. What other switches see depends on the paths that are chosen. Flows whose own links cannot
    /// carry them until the run stops are not counted.
    pub captured: u64,
}

/// How often payload between hosts stands in a capture: by host and by switch, what is captured.
struct Captured(Vec<End>);

/// A host as far as captures go.
#[derive(Clone, Copy, Default)]
struct End {
    host: bool,
    switch: Option<NodeId>,
}

impl Captured {
    /// By the nodes that `scenario` names; `None` where it names none.
    fn of(scenario: &Scenario) -> Option<Self> {
        let names: BTreeSet<&str> = scenario.measure.pcap.iter().map(|name| name.value.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        let Graph { hosts, switches, links } = &scenario.topology.graph;
        let end = |name: &String| End { host: names.contains(name.as_str()), switch: None };
        let mut ends: Vec<End> = hosts.iter().map(end).collect();
        for link in links {
            for (host, other) in [(link.a, link.b), (link.b, link.a)] {
                let switch =
                    (other.0 as usize).checked_sub(hosts.len()).and_then(|place| switches.get(place));
                if let (Some(end), Some(switch)) = (ends.get_mut(host.0 as usize), switch)
                    && names.contains(switch.as_str())
                {
                    end.switch = Some(other);
                }
            }
        }
        Some(Self(ends))
    }

    fn times(&self, src: HostId, dst: HostId) -> u64 {
        let end = |host: HostId| self.0.get(usize::from(host.0)).copied().unwrap_or_default();
        let (src, dst) = (end(src), end(dst));
        let switches = match (src.switch, dst.switch) {
            (None, None) => 0,
            (Some(one), Some(other)) if one != other => 2,
            _ => 1,
        };
        u64::from(src.host) + u64::from(dst.host) + 2 * switches
    }
}

impl Asked {
    /// Of `scenario` with `seed`; flows are counted up to `most`. `None` of traffic that cannot be.
    fn of(scenario: &Scenario, seed: u64, most: usize) -> Option<Self> {
        let stop = scenario.stop.map(|stop| Instant::ZERO + stop);
        let traffic: Arc<[Traffic]> = scenario.traffic.clone().into();
        let graph = &scenario.topology.graph;
        // By how much coinciding starts are set apart makes no difference to how many there are.
        let setting =
            Setting { topology: &scenario.topology, seed, stop, packet: 0, start_jitter: Some(Span::ZERO) };
        let captured = Captured::of(scenario);
        let rates = graph.host_rates();
        let mut asked = Self { capture: captured.is_some(), ..Self::default() };
        let jobs = Jobs::new(&traffic, &setting).ok()?;
        for job in jobs.take_while(|job| stop.is_none_or(|stop| job.start < stop)) {
            if asked.flows >= most as u64 {
                asked.more = true;
                break;
            }
            asked.flows += 1;
            match job.octets() {
                u64::MAX => asked.endless += 1,
                octets => {
                    asked.octets = asked.octets.saturating_add(octets);
                    let ends = [job.src, job.dst].map(|host| rates.get(usize::from(host.0)).copied());
                    let rate = ends.into_iter().flatten().min().unwrap_or_default();
                    let ends_before = |stop| rate.0 > 0 && job.start + rate.time_for(octets) <= stop;
                    let times = match &captured {
                        Some(captured) if stop.is_none_or(ends_before) => captured.times(job.src, job.dst),
                        _ => 0,
                    };
                    asked.captured = asked.captured.saturating_add(octets.saturating_mul(times));
                }
            }
        }
        Some(asked)
    }

    /// By how much its run takes longer than others, as far as that follows from what it moves; `None` where it moves as much as it can
    /// until it stops.
    pub fn weight(&self) -> Option<u64> {
        (self.endless == 0 && !self.more && self.octets > 0).then_some(self.octets)
    }
}

/// What runs keep in memory until all of them are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Flows of all of them; about, where they come by the clock.
    pub flows: u64,
    /// Octets of what became of each, of iterations of collectives, of hosts, switches and links, and, about, of samples. What is under way
    /// takes more.
    pub octets: u64,
}

/// What `runs` keep.
pub fn kept(runs: &[Run]) -> Kept {
    let mut kept = Kept::default();
    // Other seeds have as many, as far as can be told.
    for alike in runs.chunk_by(|one, next| Arc::ptr_eq(&one.scenario, &next.scenario)) {
        let Some(first) = alike.first() else { continue };
        let runs = alike.len() as u64;
        let flows = expected(&first.scenario, first.seed).unwrap_or(0).saturating_mul(runs);
        let others = beside_flows(&first.scenario) + samples::octets(&first.scenario, first.seed);
        let others = others.saturating_mul(runs);
        kept.flows = kept.flows.saturating_add(flows);
        let octets = flows.saturating_mul(size_of::<FlowResult>() as u64).saturating_add(others);
        kept.octets = kept.octets.saturating_add(octets);
    }
    kept
}

/// About how many flows `scenario` has; `None` of traffic that cannot be.
fn expected(scenario: &Scenario, seed: u64) -> Option<u64> {
    let stop = scenario.stop.map(|stop| Instant::ZERO + stop);
    let traffic: Arc<[Traffic]> = scenario.traffic.clone().into();
    let setting =
        Setting { topology: &scenario.topology, seed, stop, packet: 0, start_jitter: Some(Span::ZERO) };
    Some(Jobs::new(&traffic, &setting).ok()?.expected(stop))
}

/// Octets that a run of `scenario` keeps of what is not a flow.
fn beside_flows(scenario: &Scenario) -> u64 {
    let Graph { hosts, switches, links } = &scenario.topology.graph;
    let of_network = hosts.len() * size_of::<HostResult>()
        + switches.len() * size_of::<SwitchResult>()
        + 2 * links.len() * size_of::<LinkResult>();
    let iterations = scenario.traffic.iter().map(|traffic| match traffic {
        Traffic::Collective(spec) => u64::from(spec.iterations) * size_of::<Iteration>() as u64,
        _ => 0,
    });
    of_network as u64 + iterations.sum::<u64>()
}

/// So many flows are counted of all runs together: a fraction of a second.
const COUNTED: usize = 2_000_000;

/// What each of `runs` is asked to move.
pub fn asked<'a>(runs: impl ExactSizeIterator<Item = &'a Run>) -> Vec<Asked> {
    let most = COUNTED / runs.len().max(1);
    let of = |run: &Run| Asked::of(&run.scenario, run.seed, most);
    runs.map(|run| of(run).unwrap_or(Asked { more: true, ..Asked::default() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Go, World as _};
    use crate::world::SimulatedWorld;

    const MIXED: &str = r#"
        [topology]
        kind = "star"
        hosts = 6
        rate = "10Gb/s"
        delay = "1us"
        [[traffic]]
        kind = "incast"
        senders = 4
        size = "20KB"
        every = "500us"
        until = "2ms"
        [[traffic]]
        kind = "poisson"
        sizes = "web-search"
        load = 0.1
        until = "2ms"
    "#;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(text, "here.toml", &[]).unwrap()
    }

    #[test]
    fn what_is_told_before_a_run_is_what_its_flows_move() {
        let scenario = scenario(MIXED);
        for seed in 1..4 {
            let results = SimulatedWorld.run(&scenario, seed, None, &mut |_| Go::On).unwrap();
            let octets = results.flows.iter().map(|flow| flow.bytes).sum();
            let is = Asked { flows: results.flows.len() as u64, octets, ..Asked::default() };
            assert_eq!(Asked::of(&scenario, seed, usize::MAX), Some(is), "seed {seed}");
            assert_eq!(is.weight(), Some(octets));
        }
        let cut = Asked::of(&scenario, 1, 5).unwrap();
        assert_eq!((cut.flows, cut.more, cut.weight()), (5, true, None));
    }

    #[test]
    fn what_runs_keep_of_their_flows_is_about_what_they_come_to() {
        let often = MIXED.replace("load = 0.1", "load = 0.9");
        let scenario = Arc::new(scenario(&format!(
            "measure.sample = \"0s\"\n{often}[[traffic]]\nkind = \"all-to-all\"\nsize = \"1KB\"\n"
        )));
        let run =
            |seed| Run { label: String::new(), values: Vec::new(), scenario: Arc::clone(&scenario), seed };
        let runs = [1, 2, 3].map(run);
        let counted: u64 = asked(runs.iter()).iter().map(|asked| asked.flows).sum();
        let Kept { flows, octets } = kept(&runs);
        // 4 bursts of 4, 30 from each to each, and those by chance.
        assert!(flows > 3 * 46 && flows.abs_diff(counted) * 5 < counted, "{flows} {counted}");
        let network = 6 * (size_of::<HostResult>() + 2 * size_of::<LinkResult>()) + size_of::<SwitchResult>();
        assert_eq!(octets, flows * size_of::<FlowResult>() as u64 + 3 * network as u64);
        assert_eq!(kept(&[]), Kept::default());
    }

    #[test]
    fn what_is_kept_of_each_kind_of_traffic_is_what_it_comes_to_before_the_run_stops() {
        let kinds = [
            "kind = 'flows'; flows = [{ src = 'h0', dst = 'h1', size = '1KB' }, { src = 'h1', dst = 'h0', size = '1KB', start = '2ms' }]",
            "kind = 'permutation'; size = '1KB'",
            "kind = 'permutation'; size = '1KB'; [[traffic]]; kind = 'permutation'; size = '1KB'; start = '2ms'",
            "kind = 'all-to-all'; size = '1KB'",
            "kind = 'incast'; senders = 3; size = '1KB'; start = '500us'",
            "kind = 'incast'; senders = 3; size = '1KB'; every = '300us'",
            "kind = 'closed-loop'; src = 'h0'; dst = 'h1'; qps = 3; message = '1KB'",
            "kind = 'collective'; operation = 'all-reduce'; size = '6KB'; channels = 2; iterations = 5",
            "kind = 'rpc'; server = 'h0'; request = '1KB'; window = 1",
        ];
        let (head, _) = MIXED.split_once("[[traffic]]").unwrap();
        for kind in kinds {
            let lines = kind.replace("; ", "\n");
            let scenario = Arc::new(scenario(&format!(
                "stop = '1ms'\nmeasure.sample = '0s'\n{head}[[traffic]]\n{lines}\n"
            )));
            let results = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap();
            let run =
                Run { label: String::new(), values: Vec::new(), scenario: Arc::clone(&scenario), seed: 1 };
            let Kept { flows, octets } = kept(&[run]);
            assert_eq!(flows, results.flows.len() as u64, "{kind}");
            let iterations: usize = results.collectives.iter().map(|it| it.iterations.len()).sum();
            let is = size_of_val(&*results.flows)
                + size_of_val(&*results.hosts)
                + size_of_val(&*results.switches)
                + size_of_val(&*results.links)
                + iterations * size_of::<Iteration>();
            assert_eq!(octets, is as u64, "{kind}");
        }
    }

    /// One flow from `h0` to `h1` behind the other leaf, and one to its neighbour.
    #[test]
    fn a_capture_holds_what_begins_and_ends_at_its_hosts_and_twice_what_passes_their_switches() {
        let text = |pcap: &str| {
            format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\nrate = \"10Gb/s\"\ndelay = \"1us\"\n\
                 [[traffic]]\nkind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"h2\", size = \"1MB\" }}, {{ src = \"h0\", dst = \"h1\", size = \"10KB\" }}]\n\
                 [measure]\npcap = [{pcap}]\n"
            )
        };
        let captured = |pcap: &str| {
            let asked = Asked::of(&scenario(&text(pcap)), 1, usize::MAX).unwrap();
            assert_eq!(asked.capture, !pcap.is_empty());
            asked.captured
        };
        assert_eq!(captured(""), 0);
        assert_eq!([captured("\"h0\""), captured("\"h1\""), captured("\"h3\"")], [1_010_000, 10_000, 0]);
        assert_eq!([captured("\"leaf0\""), captured("\"leaf1\"")], [2_020_000, 2_000_000]);
        assert_eq!(captured("\"leaf0\", \"leaf1\", \"h1\""), 4_030_000);
        assert_eq!(captured("\"spine0\""), 0, "by which spine it goes, nobody knows before");
        // A link of 10 Gb/s carries the short one in 8 us, and not the long one in 100.
        let text = format!("stop = \"100us\"\n{}", text("\"h0\""));
        assert_eq!(Asked::of(&scenario(&text), 1, usize::MAX).unwrap().captured, 10_000);
    }

    #[test]
    fn flows_without_an_end_are_counted_and_weigh_nothing() {
        let endless =
            "[[traffic]]\nkind = \"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nqps = 2\nmessage = \"4KB\"\n";
        let asked = |stop: &str| {
            let scenario = scenario(&format!("stop = \"{stop}\"\n{MIXED}{endless}"));
            Asked::of(&scenario, 1, usize::MAX).unwrap()
        };
        let (short, long) = (asked("600us"), asked("3ms"));
        assert_eq!((long.endless, long.weight()), (2, None));
        assert!(short.flows < long.flows, "{short:?} {long:?}");
    }
}
