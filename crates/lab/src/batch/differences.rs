//! How much configurations differ from the first one, seed by seed.

use super::{Group, Metric};
use crate::figures::statistics::Estimate;
use crate::results::Results;
use crate::results::pairs::Pairs;

/// How much one configuration of a group has more than the first one, over the seeds that both ran with the same flows.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// The configuration.
    pub label: &'a str,
    /// How many seeds are paired: two at least.
    pub seeds: usize,
    /// The mean of the differences of each metric; `None` where a run does not yield it.
    pub values: [(Metric, Option<Estimate>); Metric::ALL.len()],
}

impl Group {
    /// How much each configuration differs from the first one, where two seeds of it at least are paired.
    pub fn differences<'a>(&'a self, results: &[Results]) -> Vec<Difference<'a>> {
        let named = self.runs.iter().zip(results).map(|(run, results)| (run.label.as_str(), results));
        let Some(pairs) = Pairs::of(&named.collect::<Vec<_>>()) else { return Vec::new() };
        let difference = |label: &'a str| {
            let seeds = pairs.seeds(label).filter(|seeds| *seeds > 1)?;
            let estimate = |metric: Metric| pairs.difference(label, |place| metric.of(&results[place]));
            Some(Difference { label, seeds, values: Metric::ALL.map(|metric| (metric, estimate(metric))) })
        };
        self.configurations().into_iter().filter_map(difference).collect()
    }
}
