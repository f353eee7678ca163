//! How much configurations differ from those with the same flows, seed by seed.

use super::{Group, Metric};
use crate::figures::statistics::Estimate;
use crate::results::Results;
use crate::results::pairs::Pairs;
use std::collections::BTreeMap;

/// How much one configuration of a group has more than its [baseline](Pairs), over the seeds that both ran with the same flows.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The one that it is held against: the first with the same flows.
    pub against: &'a str,
    /// How many seeds are paired: two at least.
    pub seeds: usize,
    /// The mean of the differences of each metric; `None` where a run does not yield it.
    pub values: [(Metric, Option<Estimate>); Metric::ALL.len()],
}

impl Group {
    /// How much each configuration differs from its baseline, where two seeds of it at least are paired. Those with one baseline stand
    /// together, in the order of the baselines.
    pub fn differences<'a>(&'a self, results: &[Results]) -> Vec<Difference<'a>> {
        let named = self.runs.iter().zip(results).map(|(run, results)| (run.label.as_str(), results));
        let pairs = Pairs::of(&named.collect::<Vec<_>>());
        let configurations = self.configurations();
        let difference = |label: &'a str| {
            let (against, seeds) = (pairs.baseline(label)?, pairs.seeds(label).filter(|seeds| *seeds > 1)?);
            let estimate = |metric: Metric| pairs.difference(label, |place| metric.of(&results[place]));
            let values = Metric::ALL.map(|metric| (metric, estimate(metric)));
            Some(Difference { label, against, seeds, values })
        };
        let mut differences: Vec<_> = configurations.iter().filter_map(|label| difference(label)).collect();
        let place: BTreeMap<&str, usize> = configurations.into_iter().zip(0..).collect();
        differences.sort_by_key(|it| place.get(it.against));
        differences
    }
}
