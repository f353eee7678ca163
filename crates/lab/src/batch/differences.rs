//! How much configurations differ from those with the same flows, seed by seed.

use super::{Group, Metric, tables_of_all};
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
    /// The `[[traffic]]` table whose flows alone are told of; `None`: all.
    pub traffic: Option<&'a str>,
    /// How many seeds are paired: two at least.
    pub seeds: usize,
    /// The mean of the differences of each metric; `None` where a run does not yield it.
    pub values: [(Metric, Option<Estimate>); Metric::ALL.len()],
}

/// A configuration that is held against another, over so many seeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    pub(super) label: &'a str,
    pub(super) against: &'a str,
    pub(super) seeds: usize,
}

impl Group {
    /// How much each configuration differs from its baseline, where two seeds of it at least are paired. Those with one baseline stand
    /// together, in the order of the baselines.
    pub fn differences<'a>(&'a self, results: &'a [Results]) -> Vec<Difference<'a>> {
        self.differences_of(results, &[None])
    }

    /// The same of the flows of each `[[traffic]]` table, those of one configuration one after the other. Nothing where a run has one
    /// table, or where runs have different ones.
    pub fn differences_of_traffic<'a>(&'a self, results: &'a [Results]) -> Vec<Difference<'a>> {
        let tables: Vec<_> = (0..tables_of_all(results)).map(Some).collect();
        self.differences_of(results, &tables)
    }

    /// Of all flows, or of those of some tables.
    fn differences_of<'a>(&'a self, results: &'a [Results], tables: &[Option<usize>]) -> Vec<Difference<'a>> {
        let (pairs, held) = self.held(results);
        let difference = |Held { label, against, seeds }: Held<'a>, table: Option<usize>| {
            let estimate = |metric: Metric| {
                pairs.difference(label, |place| {
                    let results = &results[place];
                    match table {
                        None => metric.of(results),
                        Some(table) => metric.of_flows(results.flows_of(&results.traffic[table])),
                    }
                })
            };
            let traffic = table.and_then(|table| Some(results.first()?.traffic[table].name.as_str()));
            let values = Metric::ALL.map(|metric| (metric, estimate(metric)));
            Difference { label, against, traffic, seeds, values }
        };
        let of_tables =
            |held: &Held<'a>| tables.iter().map(|table| difference(*held, *table)).collect::<Vec<_>>();
        held.iter().flat_map(of_tables).collect()
    }

    /// Which runs are held against which, and the configurations of which two seeds at least are paired, those with one baseline together,
    /// in the order of the baselines.
    pub(super) fn held<'a>(&'a self, results: &'a [Results]) -> (Pairs<'a>, Vec<Held<'a>>) {
        let named = self.runs.iter().zip(results).map(|(run, results)| (run.label.as_str(), results));
        let pairs = Pairs::of(&named.collect::<Vec<_>>());
        let configurations = self.configurations();
        let held = |label: &&'a str| {
            let (against, seeds) = (pairs.baseline(label)?, pairs.seeds(label).filter(|seeds| *seeds > 1)?);
            Some(Held { label, against, seeds })
        };
        let mut held: Vec<_> = configurations.iter().filter_map(held).collect();
        let place: BTreeMap<&str, usize> = configurations.into_iter().zip(0..).collect();
        held.sort_by_key(|it| place.get(it.against));
        (pairs, held)
    }
}
