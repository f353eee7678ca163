//! What became of the flows of each `[[traffic]]` table, such as those of a background under an incast.

use super::{FlowSet, Offered, Results};
use std::ops::Range;

/// A `[[traffic]]` table of the scenario, and which flows are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficResult {
    /// The name that the scenario gives it, else its index there.
    pub name: String,
    /// Its kind, such as `incast`.
    pub kind: &'static str,
    /// The places of its flows in [`Results::flows`].
    pub flows: Range<usize>,
    /// When they were offered by the clock; `None` where they were not.
    pub offered: Option<Offered>,
    /// Its [pattern](crate::traffic::Traffic::pattern).
    pub pattern: Vec<u64>,
    /// The priority that the data of its flows travel on: one of all, or one for each of them; empty where it is not known before a run, as
    /// of laws that rank messages and of programs.
    pub priorities: Vec<u8>,
}

impl Results {
    /// The flows of one of [`Results::traffic`].
    pub fn flows_of(&self, traffic: &TrafficResult) -> FlowSet<'_> {
        let flows = self.flows.get(traffic.flows.clone()).unwrap_or_default();
        FlowSet { flows, offered: traffic.offered, simulated: self.simulated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Go, World};
    use crate::scenario::Scenario;
    use crate::traffic::Traffic;
    use crate::world::SimulatedWorld;

    /// Large flows under which small ones come by the clock, and one that does not end.
    const MIXED: &str = r#"
        stop = "4ms"
        [topology]
        kind = "star"
        hosts = 6
        rate = "10Gb/s"
        delay = "1us"
        [[traffic]]
        kind = "incast"
        name = "burst"
        senders = 4
        size = "200KB"
        [[traffic]]
        kind = "poisson"
        sizes = "10KB"
        load = 0.1
        until = "2ms"
        [[traffic]]
        kind = "flows"
        flows = [{ name = "huge", src = "h4", dst = "h5", size = "1GB" }]
    "#;

    fn results() -> Results {
        let scenario = Scenario::parse(MIXED, "here.toml", &[]).unwrap();
        SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap()
    }

    #[test]
    fn each_flow_is_counted_with_the_table_that_it_comes_from_and_with_no_other() {
        let results = results();
        let tables: Vec<_> = results.traffic.iter().map(|it| (it.name.as_str(), it.kind)).collect();
        assert_eq!(tables, [("burst", "incast"), ("1", "poisson"), ("2", "flows")]);
        let mut flows = 0;
        for (index, traffic) in results.traffic.iter().enumerate() {
            for flow in results.flows_of(traffic).flows {
                let name = flow.name.to_string();
                assert!(
                    name.starts_with(&format!("{index}.")) || (index, name.as_str()) == (2, "huge"),
                    "{name}"
                );
                flows += 1;
            }
        }
        assert_eq!(flows, results.flows.len());
        let delivered: u64 = results.traffic.iter().map(|it| results.flows_of(it).delivered()).sum();
        assert_eq!(delivered, results.all().delivered());
        let [burst, poisson, huge] = [0, 1, 2].map(|index| results.flows_of(&results.traffic[index]));
        assert_eq!((burst.flows.len(), burst.completed().count()), (4, 4));
        assert!(poisson.flows.len() > 50, "{}", poisson.flows.len());
        assert_eq!((huge.completed().count(), huge.running().count()), (0, 1));
    }

    #[test]
    fn a_pattern_tells_of_what_the_flows_do_not() {
        let pattern = |text: &str| {
            let scenario = Scenario::parse(text, "here.toml", &[]).unwrap();
            scenario.traffic.iter().map(Traffic::pattern).collect::<Vec<_>>()
        };
        let of = |key: &str, with: &str| pattern(&MIXED.replace(key, with));
        assert_eq!(pattern(MIXED), [vec![], vec![1, 10], vec![]]);
        assert_eq!(of("load = 0.1", "load = 0.2")[1], [1, 5], "as many flows may come");
        assert_eq!(of("senders = 4", "senders = 4\nevery = \"1ms\"")[0], [1_000_000_000]);
        assert_eq!(of("\"200KB\"", "\"100KB\""), pattern(MIXED), "the flows tell of their sizes");
        let endless = "\nkind = \"closed-loop\"\nsrc = \"h0\"\ndst = \"h1\"\nmessage = \"4KB\"\n";
        let (_, flows) = MIXED.rsplit_once("[[traffic]]").unwrap();
        assert_eq!(of(flows, endless)[2], [4000, 1, u64::MAX]);
        let sum = "\nkind = \"collective\"\noperation = \"all-gather\"\nsize = \"1MB\"\niterations = 2\n";
        assert_eq!(of(flows, sum)[2], [2, 1_000_000, 2, 0]);
        let rpc = "\nkind = \"rpc\"\nserver = \"h0\"\nrequest = \"2KB\"\nwindow = 3\n";
        assert_eq!(of(flows, rpc)[2], [2000, 32, 3, u64::MAX]);
    }

    #[test]
    fn what_a_part_of_the_traffic_offers_by_the_clock_is_known_though_the_rest_waits_for_itself() {
        let results = results();
        assert_eq!(results.offered, None);
        let offered = |index: usize| results.flows_of(&results.traffic[index]).offered_bps();
        assert_eq!((offered(0), offered(2)), (None, None));
        let load = offered(1).unwrap() / 60e9;
        assert!((load / 0.1 - 1.0).abs() < 0.3, "{load}: 10 % of 60 Gb/s");
    }
}
