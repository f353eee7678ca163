//! Configurations held against the first one, seed by seed.
//!
//! How much the traffic of one seed differs from that of the next is in every mean over seeds, so the intervals of two means may overlap
//! though one setting is better with nearly every seed. Where both run the same flows, that part falls out of the differences.

use super::{FlowResult, Results};
use crate::figures::statistics::Estimate;
use std::collections::BTreeMap;

/// Which runs are held against which: those of one seed whose flows are the same, from the same hosts to the same and of the same sizes.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    first: &'a str,
    /// Of each other configuration: the places of a run of the first one, and of its own.
    others: BTreeMap<&'a str, Vec<(usize, usize)>>,
}

impl<'a> Pairs<'a> {
    /// Of `runs`, each with the name of its configuration; `None` of none.
    pub fn of(runs: &[(&'a str, &Results)]) -> Option<Self> {
        let (first, _) = runs.first()?;
        let of_first: BTreeMap<u64, usize> = (0..)
            .zip(runs)
            .filter(|(_, (name, _))| name == first)
            .map(|(place, (_, it))| (it.seed, place))
            .collect();
        let mut others: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        for (place, (name, results)) in runs.iter().enumerate().filter(|(_, (name, _))| name != first) {
            let pairs = others.entry(name).or_default();
            if let Some(of_first) = of_first.get(&results.seed)
                && same_flows(runs[*of_first].1, results)
            {
                pairs.push((*of_first, place));
            }
        }
        Some(Self { first, others })
    }

    /// The first configuration.
    pub fn first(&self) -> &'a str {
        self.first
    }

    /// How many seeds of `configuration` are paired; `None` of the first one, which nothing is to be said of.
    pub fn seeds(&self, configuration: &str) -> Option<usize> {
        self.others.get(configuration).map(Vec::len)
    }

    /// How much more than the first configuration `configuration` has of what `value` finds for the run at a place: the mean of the
    /// differences. `None` of fewer than two pairs, which no interval follows from, and where a paired run has no value.
    pub fn difference(&self, configuration: &str, value: impl Fn(usize) -> Option<f64>) -> Option<Estimate> {
        let pairs = self.others.get(configuration).filter(|pairs| pairs.len() > 1)?;
        let differences = pairs.iter().map(|&(first, other)| Some(value(other)? - value(first)?));
        Estimate::of(&differences.collect::<Option<Vec<f64>>>()?)
    }
}

/// Whether both runs have the same flows. What a flow without an end moved is no size that was drawn for it.
fn same_flows(one: &Results, other: &Results) -> bool {
    let drawn = |flow: &FlowResult| (flow.src, flow.dst, flow.op, flow.ideal.map(|_| flow.bytes));
    one.flows.iter().map(drawn).eq(other.flows.iter().map(drawn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::sample;

    fn run(seed: u64) -> Results {
        Results { seed, ..sample() }
    }

    #[test]
    fn differences_are_those_of_runs_with_one_seed_in_whichever_order_these_come() {
        let runs = [1, 2, 3, 3, 2, 1].map(run);
        let names = ["a", "a", "a", "b", "b", "b"];
        let named: Vec<_> = names.into_iter().zip(&runs).collect();
        let pairs = Pairs::of(&named).expect("runs");
        assert_eq!((pairs.first(), pairs.seeds("a"), pairs.seeds("b")), ("a", None, Some(3)));
        // b has 1, 1 and 4 more than a; the means alone are 20 and 22, among seeds from 10 to 30.
        let values = [10.0, 20.0, 30.0, 34.0, 21.0, 11.0];
        let estimate = pairs.difference("b", |place| Some(values[place])).expect("three pairs");
        assert_eq!((estimate.mean, estimate.min, estimate.max), (2.0, 1.0, 4.0));
        assert!((estimate.half_width - 4.303).abs() < 1e-9, "s is √3, and t is 4.303: {estimate:?}");
        assert_eq!(pairs.difference("a", |place| Some(values[place])), None, "nothing differs from itself");
        assert_eq!(pairs.difference("b", |place| (place != 1).then_some(1.0)), None, "one has no value");
    }

    #[test]
    fn one_seed_has_no_difference_and_neither_have_other_seeds_or_other_flows() {
        let mut other = run(2);
        other.flows[1].bytes += 1;
        for (runs, paired) in
            [([run(1), run(1)], 1), ([run(1), run(2)], 0), ([run(2), other.clone()], 0), ([other, run(3)], 0)]
        {
            let pairs = Pairs::of(&[("a", &runs[0]), ("b", &runs[1])]).expect("runs");
            assert_eq!(pairs.seeds("b"), Some(paired));
            assert_eq!(pairs.difference("b", |_| Some(1.0)), None);
        }
        assert!(Pairs::of(&[]).is_none());
    }

    #[test]
    fn what_flows_without_an_end_moved_does_not_tell_them_apart() {
        let endless = |moved| {
            let mut results = run(1);
            (results.flows[3].ideal, results.flows[3].bytes) = (None, moved);
            results
        };
        let pairs = Pairs::of(&[("a", &endless(5)), ("b", &endless(7))]).expect("runs");
        assert_eq!(pairs.seeds("b"), Some(1));
    }
}
