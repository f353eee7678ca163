//! Configurations held against others, seed by seed.
//!
//! How much the traffic of one seed differs from that of the next is in every mean over seeds, so the intervals of two means may overlap
//! though one setting is better with nearly every seed. Where both run the same flows, that part falls out of the differences.
//!
//! Of several loads with several laws, each load has flows of its own. So each configuration is held against its *baseline*: the first
//! one that ran the same flows with most of the seeds that both ran, which is of the same load and of the law that was named first.
//! A few seeds may miss, such as one that a deadlock ended before all flows had begun.

use super::{FlowResult, Results};
use crate::figures::statistics::Estimate;
use std::collections::BTreeMap;

/// Which runs are held against which: those of one seed whose flows are the same, from the same hosts to the same, of the same sizes
/// and coming as often.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    /// Of each configuration that has another for its baseline.
    held: BTreeMap<&'a str, Held<'a>>,
}

/// A configuration that is held against another.
#[derive(Clone, Debug)]
struct Held<'a> {
    /// Its baseline.
    against: &'a str,
    /// The places of a run of that one, and of its own.
    pairs: Vec<(usize, usize)>,
}

impl<'a> Pairs<'a> {
    /// Of `runs`, each with the name of its configuration.
    pub fn of(runs: &[(&'a str, &Results)]) -> Self {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        // In the order of their first runs, each with the places of its runs by their seeds.
        let mut configurations: Vec<(&str, BTreeMap<u64, usize>)> = Vec::new();
        for (run, (name, results)) in runs.iter().enumerate() {
            let place = *places.entry(name).or_insert(configurations.len());
            if place == configurations.len() {
                configurations.push((name, BTreeMap::new()));
            }
            configurations[place].1.insert(results.seed, run);
        }
        let mut baselines: Vec<&(&str, BTreeMap<u64, usize>)> = Vec::new();
        let mut held = BTreeMap::new();
        for configuration in &configurations {
            let (name, own) = configuration;
            let against = |(against, its): &&(&'a str, BTreeMap<u64, usize>)| {
                let both = || own.iter().filter_map(|(seed, place)| Some((*its.get(seed)?, *place)));
                let pairs: Vec<_> =
                    both().filter(|(its, own)| same_flows(runs[*its].1, runs[*own].1)).collect();
                (2 * pairs.len() > both().count()).then_some(Held { against, pairs })
            };
            match baselines.iter().find_map(against) {
                Some(pairs) => {
                    held.insert(*name, pairs);
                }
                None => baselines.push(configuration),
            }
        }
        Self { held }
    }

    /// What `configuration` is held against; `None` where no other before it has its flows, of which nothing is to be said.
    pub fn baseline(&self, configuration: &str) -> Option<&'a str> {
        Some(self.held.get(configuration)?.against)
    }

    /// How many seeds of `configuration` are paired; `None` where it has no baseline but itself.
    pub fn seeds(&self, configuration: &str) -> Option<usize> {
        Some(self.held.get(configuration)?.pairs.len())
    }

    /// How much more than its baseline `configuration` has of what `value` finds for the run at a place: the mean of the
    /// differences. `None` of fewer than two pairs, which no interval follows from, and where a paired run has no value.
    pub fn difference(&self, configuration: &str, value: impl Fn(usize) -> Option<f64>) -> Option<Estimate> {
        let pairs = self.held.get(configuration).map(|held| &held.pairs).filter(|pairs| pairs.len() > 1)?;
        let differences = pairs.iter().map(|&(first, other)| {
            let (first, other) = (value(first)?, value(other)?);
            let difference = other - first;
            // What rounding alone makes is no difference.
            Some(if difference.abs() <= ROUNDING * first.abs().max(other.abs()) { 0.0 } else { difference })
        });
        Estimate::of(&differences.collect::<Option<Vec<f64>>>()?)
    }
}

/// How far two sums of some thousand numbers may be apart that are the same, as a part of them.
const ROUNDING: f64 = 1e-12;

/// Whether both runs have the same flows. What a flow without an end moved is no size that was drawn for it.
fn same_flows(one: &Results, other: &Results) -> bool {
    let drawn = |flow: &FlowResult| (flow.src, flow.dst, flow.op, flow.ideal.map(|_| flow.bytes));
    let patterns = one.traffic.iter().map(|table| &table.pattern);
    one.flows.len() == other.flows.len()
        && patterns.eq(other.traffic.iter().map(|table| &table.pattern))
        && one.flows.iter().map(drawn).eq(other.flows.iter().map(drawn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::sample;

    fn run(seed: u64) -> Results {
        Results { seed, ..sample() }
    }

    /// Others of its flows: of one octet more.
    fn of_others(seed: u64, more: u64) -> Results {
        let mut results = run(seed);
        results.flows[1].bytes += more;
        results
    }

    #[test]
    fn differences_are_those_of_runs_with_one_seed_in_whichever_order_these_come() {
        let runs = [1, 2, 3, 3, 2, 1].map(run);
        let names = ["a", "a", "a", "b", "b", "b"];
        let named: Vec<_> = names.into_iter().zip(&runs).collect();
        let pairs = Pairs::of(&named);
        assert_eq!((pairs.baseline("b"), pairs.seeds("b")), (Some("a"), Some(3)));
        assert_eq!((pairs.baseline("a"), pairs.seeds("a")), (None, None));
        // b has 1, 1 and 4 more than a; the means alone are 20 and 22, among seeds from 10 to 30.
        let values = [10.0, 20.0, 30.0, 34.0, 21.0, 11.0];
        let estimate = pairs.difference("b", |place| Some(values[place])).expect("three pairs");
        assert_eq!((estimate.mean, estimate.min, estimate.max), (2.0, 1.0, 4.0));
        assert!((estimate.half_width - 4.303).abs() < 1e-9, "s is √3, and t is 4.303: {estimate:?}");
        let rounded = pairs.difference("b", |place| Some(if place < 3 { 1e10 } else { 1e10 - 1.91e-6 }));
        assert_eq!(rounded.expect("three pairs").mean, 0.0);
        assert_eq!(pairs.difference("a", |place| Some(values[place])), None, "nothing differs from itself");
        assert_eq!(pairs.difference("b", |place| (place != 1).then_some(1.0)), None, "one has no value");
    }

    #[test]
    fn each_configuration_is_held_against_the_first_one_that_has_its_flows() {
        // Two loads, as of a sweep whose last key is the load: a and c have one setting each, b and d the same ones.
        let runs = [
            run(1),
            run(2),
            of_others(1, 1),
            of_others(2, 1),
            run(1),
            run(2),
            of_others(1, 1),
            of_others(2, 1),
        ];
        let names = ["a", "a", "b", "b", "c", "c", "d", "d"];
        let pairs = Pairs::of(&names.into_iter().zip(&runs).collect::<Vec<_>>());
        let baselines = ["a", "b", "c", "d"].map(|name| pairs.baseline(name));
        assert_eq!(baselines, [None, None, Some("a"), Some("b")]);
        assert_eq!((pairs.seeds("c"), pairs.seeds("d")), (Some(2), Some(2)));
        let values = [1.0, 2.0, 10.0, 20.0, 1.0, 2.0, 13.0, 25.0];
        assert_eq!(pairs.difference("d", |place| Some(values[place])).expect("two pairs").mean, 4.0);
    }

    #[test]
    fn a_seed_with_other_flows_costs_that_pair_and_most_of_the_seeds_the_baseline() {
        let short = |seed| {
            let mut results = run(seed);
            results.flows.pop();
            results
        };
        // A deadlock ended one run of the first configuration.
        let runs = [short(1), run(2), run(3), run(1), run(2), run(3)];
        let names = ["a", "a", "a", "b", "b", "b"];
        let pairs = Pairs::of(&names.into_iter().zip(&runs).collect::<Vec<_>>());
        assert_eq!((pairs.baseline("b"), pairs.seeds("b")), (Some("a"), Some(2)));
        let runs = [short(1), short(2), run(3), run(1), run(2), run(3), run(1), run(2), run(3)];
        let names = ["a", "a", "a", "b", "b", "b", "c", "c", "c"];
        let pairs = Pairs::of(&names.into_iter().zip(&runs).collect::<Vec<_>>());
        assert_eq!(
            ["b", "c"].map(|name| (pairs.baseline(name), pairs.seeds(name))),
            [(None, None), (Some("b"), Some(3))]
        );
    }

    #[test]
    fn one_seed_has_no_difference_and_neither_have_other_seeds_or_other_flows() {
        for (runs, paired) in [
            ([run(1), run(1)], Some(1)),
            ([run(1), run(2)], None),
            ([run(2), of_others(2, 1)], None),
            ([of_others(2, 1), run(3)], None),
        ] {
            let pairs = Pairs::of(&[("a", &runs[0]), ("b", &runs[1])]);
            assert_eq!(pairs.seeds("b"), paired);
            assert_eq!(pairs.baseline("b"), paired.map(|_| "a"));
            assert_eq!(pairs.difference("b", |_| Some(1.0)), None);
        }
        assert_eq!(Pairs::of(&[]).seeds("a"), None);
    }

    #[test]
    fn flows_that_come_more_often_are_others_though_as_many_came() {
        let often = |pattern: u64| {
            let mut results = run(1);
            results.traffic[0].pattern = vec![pattern];
            results
        };
        let paired = |one, other| Pairs::of(&[("a", &often(one)), ("b", &often(other))]).seeds("b");
        assert_eq!((paired(3, 3), paired(3, 5)), (Some(1), None));
    }

    #[test]
    fn what_flows_without_an_end_moved_does_not_tell_them_apart() {
        let endless = |moved| {
            let mut results = run(1);
            (results.flows[3].ideal, results.flows[3].bytes) = (None, moved);
            results
        };
        let pairs = Pairs::of(&[("a", &endless(5)), ("b", &endless(7))]);
        assert_eq!(pairs.seeds("b"), Some(1));
    }
}
