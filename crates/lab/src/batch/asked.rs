//! What runs are asked to move, which is known before they begin.

use super::Run;
use crate::scenario::Scenario;
use crate::traffic::Traffic;
use crate::traffic::jobs::{Jobs, Setting};
use roci_units::{Instant, Span};
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
}

impl Asked {
    /// Of `scenario` with `seed`; flows are counted up to `most`. `None` of traffic that cannot be.
    fn of(scenario: &Scenario, seed: u64, most: usize) -> Option<Self> {
        let stop = scenario.stop.map(|stop| Instant::ZERO + stop);
        let traffic: Arc<[Traffic]> = scenario.traffic.clone().into();
        let graph = &scenario.topology.graph;
        // By how much coinciding starts are set apart makes no difference to how many there are.
        let setting = Setting { graph, seed, stop, packet: 0, start_jitter: Some(Span::ZERO) };
        let mut asked = Self::default();
        let jobs = Jobs::new(&traffic, &setting).ok()?;
        for job in jobs.take_while(|job| stop.is_none_or(|stop| job.start < stop)) {
            if asked.flows >= most as u64 {
                asked.more = true;
                break;
            }
            asked.flows += 1;
            match job.octets() {
                u64::MAX => asked.endless += 1,
                octets => asked.octets = asked.octets.saturating_add(octets),
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
            let is = Asked { flows: results.flows.len() as u64, endless: 0, octets, more: false };
            assert_eq!(Asked::of(&scenario, seed, usize::MAX), Some(is), "seed {seed}");
            assert_eq!(is.weight(), Some(octets));
        }
        let cut = Asked::of(&scenario, 1, 5).unwrap();
        assert_eq!((cut.flows, cut.more, cut.weight()), (5, true, None));
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
