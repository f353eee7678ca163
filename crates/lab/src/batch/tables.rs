//! Metrics of the tables of traffic that have figures of their own, and how much configurations differ in them.

use super::Group;
use super::differences::Held;
use crate::figures::statistics::Estimate;
use crate::results::{CollectiveResult, CriticalPath, Results, RpcResult};
use roci_units::Span;

/// A metric of collectives, of schedules, or of tables of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableMetric {
    /// The mean time of a collective's iterations, in seconds.
    Iteration,
    /// The bus bandwidth in that time, in bits per second.
    BusBandwidth,
    /// That time over the ideal one.
    OverIdeal,
    /// The time of a schedule, in seconds.
    Goal,
    /// How long the messages of its critical path were on their way, in seconds.
    GoalMessages,
    /// The mean time of requests, in seconds.
    Request,
    /// The time that 99 of 100 requests take at most, in seconds.
    P99Request,
    /// Requests answered in a second.
    RequestRate,
}

impl TableMetric {
    /// All of them, in the order of a table's columns.
    pub const ALL: [Self; 8] = [
        Self::Iteration,
        Self::BusBandwidth,
        Self::OverIdeal,
        Self::Goal,
        Self::GoalMessages,
        Self::Request,
        Self::P99Request,
        Self::RequestRate,
    ];

    /// The tables of a run that it is of, each by its place and with its value, `None` where the run does not yield it.
    pub fn of(self, results: &Results) -> Vec<(usize, Option<f64>)> {
        match self {
            Self::Iteration | Self::BusBandwidth | Self::OverIdeal => {
                let of = |it: &CollectiveResult| {
                    let (seconds, ..) = it.times()?;
                    match self {
                        Self::BusBandwidth => Some(it.bus_bps(seconds)),
                        Self::OverIdeal => it.over_ideal(seconds),
                        _ => Some(seconds),
                    }
                };
                results.collectives.iter().map(|it| (it.table, of(it))).collect()
            }
            Self::Goal | Self::GoalMessages => {
                let of = |path: &CriticalPath| match self {
                    Self::GoalMessages => path.on_the_way().as_secs_f64(),
                    _ => path.time.as_secs_f64(),
                };
                results.goals.iter().map(|it| (it.table, it.path.as_ref().map(of))).collect()
            }
            Self::Request | Self::P99Request | Self::RequestRate => {
                let of = |it: &RpcResult| match self {
                    Self::RequestRate => it.per_second(),
                    Self::P99Request => it.times.percentile(99).map(Span::as_secs_f64),
                    _ => it.times.mean().map(Span::as_secs_f64),
                };
                results.rpcs.iter().map(|it| (it.table, of(it))).collect()
            }
        }
    }

    /// Its value of one table; `None` where it is not of that, or the run does not yield it.
    pub fn of_table(self, results: &Results, table: usize) -> Option<f64> {
        self.of(results).into_iter().find(|(place, _)| *place == table)?.1
    }
}

/// How much a table of traffic differs in one configuration from its [baseline](crate::results::pairs::Pairs), over the seeds that both ran with the
/// same flows.
#[derive(Clone, Copy, Debug)]
pub struct TableDifference<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The one that it is held against.
    pub against: &'a str,
    /// The table's name.
    pub name: &'a str,
    /// How many seeds are paired: two at least.
    pub seeds: usize,
    /// The mean of the differences of each metric; `None` where it is not of such tables, or a run does not yield it.
    pub values: [(TableMetric, Option<Estimate>); TableMetric::ALL.len()],
}

impl Group {
    /// How much each configuration differs from its baseline in each collective, schedule and table of requests, those of one configuration one
    /// after the other and in the order of [`differences`](Self::differences). Nothing of tables that no run yields figures of.
    pub fn differences_of_tables<'a>(&'a self, results: &'a [Results]) -> Vec<TableDifference<'a>> {
        let Some(first) = results.first() else { return Vec::new() };
        let (pairs, held) = self.held(results);
        let of = |held: Held<'a>| {
            let pairs = &pairs;
            first.traffic.iter().enumerate().filter_map(move |(table, of)| {
                let estimate = |metric: TableMetric| {
                    pairs.difference(held.label, |place| metric.of_table(&results[place], table))
                };
                let values = TableMetric::ALL.map(|metric| (metric, estimate(metric)));
                values.iter().any(|(_, value)| value.is_some()).then_some(TableDifference {
                    label: held.label,
                    against: held.against,
                    name: &of.name,
                    seeds: held.seeds,
                    values,
                })
            })
        };
        held.into_iter().flat_map(of).collect()
    }
}
