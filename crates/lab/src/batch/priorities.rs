//! Priorities of several runs side by side, and how much configurations differ in them.

use super::Group;
use super::differences::Held;
use crate::figures::statistics::Estimate;
use crate::results::{PriorityResult, Results};
use roci_units::Span;

/// What is told of a priority in several runs, over all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityMetric {
    /// Payload that the flows on it delivered, in bits per second; unknown where some table of traffic does not know its priority.
    Goodput,
    /// Packets that switches had no room for.
    Drops,
    /// Packets that faults lost on links,
    Lost,
    /// and that they damaged there.
    Corrupted,
    /// Packets that switches marked CE.
    Marks,
    /// How often ports were told to stop it.
    Pauses,
    /// How long they stood paused, in seconds.
    Paused,
    /// The most octets that waited anywhere.
    Deepest,
}

impl PriorityMetric {
    /// All of them, in the order of a table's columns.
    pub const ALL: [Self; 8] = [
        Self::Goodput,
        Self::Drops,
        Self::Lost,
        Self::Corrupted,
        Self::Marks,
        Self::Pauses,
        Self::Paused,
        Self::Deepest,
    ];

    /// Its value of a run that counts `of` on a priority.
    #[expect(clippy::cast_precision_loss, reason = "a table shows fewer digits than f64 holds")]
    fn of(self, results: &Results, of: &PriorityResult) -> Option<f64> {
        match self {
            Self::Goodput => results.goodput_of_priority(of.priority),
            Self::Drops => Some(of.drops as f64),
            Self::Lost => Some(of.lost as f64),
            Self::Corrupted => Some(of.corrupted as f64),
            Self::Marks => Some(of.ecn_marks as f64),
            Self::Pauses => Some(of.pause_received as f64),
            Self::Paused => Some(Span::as_secs_f64(of.paused)),
            Self::Deepest => of.max_queue_bytes.map(|octets| octets as f64),
        }
    }
}

/// Of each metric an estimate; `None` where a run does not yield it.
pub type PriorityValues = [(PriorityMetric, Option<Estimate>); PriorityMetric::ALL.len()];

/// What befell a priority in one configuration, over its seeds and over all links.
#[derive(Clone, Copy, Debug)]
pub struct PrioritySum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The priority.
    pub priority: u8,
    /// The mean of each metric.
    pub values: PriorityValues,
}

/// How much more befell a priority in one configuration than in its [baseline](crate::results::pairs::Pairs), over the seeds that both ran with the same
/// flows.
#[derive(Clone, Copy, Debug)]
pub struct PriorityDifference<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The one that it is held against.
    pub against: &'a str,
    /// The priority.
    pub priority: u8,
    /// How many seeds are paired: two at least.
    pub seeds: usize,
    /// The mean of the differences of each metric.
    pub values: PriorityValues,
}

impl<'a> PrioritySum<'a> {
    /// What befell each priority in a run; nothing where it does not count by priority.
    pub fn of_run(results: &'a Results) -> Vec<Self> {
        Self::of_seeds(&results.name, &[results])
    }

    fn of_seeds(label: &'a str, alike: &[&Results]) -> Vec<Self> {
        let sum = |(priority, seeds): (u8, Vec<Option<PriorityResult>>)| {
            let estimate = |metric: PriorityMetric| {
                let of =
                    |(results, of): (&&Results, &Option<PriorityResult>)| metric.of(results, of.as_ref()?);
                Estimate::of(&alike.iter().zip(&seeds).map(of).collect::<Option<Vec<f64>>>()?)
            };
            Self { label, priority, values: PriorityMetric::ALL.map(|metric| (metric, estimate(metric))) }
        };
        Results::priorities_side_by_side(alike).into_iter().map(sum).collect()
    }
}

impl Group {
    /// What befell each priority in each configuration, over its seeds; nothing of one whose runs do not count by priority.
    pub fn sums_of_priorities<'a>(&'a self, results: &'a [Results]) -> Vec<PrioritySum<'a>> {
        let of = |label: &'a str| {
            PrioritySum::of_seeds(label, &self.alike(label, results).collect::<Vec<&Results>>())
        };
        self.configurations().into_iter().flat_map(of).collect()
    }

    /// How much each configuration differs from its baseline in each priority that some run sent on, those of one configuration one after
    /// the other and in the order of [`differences`](Self::differences). Nothing of configurations that do not count by priority.
    pub fn differences_of_priorities<'a>(&'a self, results: &'a [Results]) -> Vec<PriorityDifference<'a>> {
        let priorities = Results::priorities_side_by_side(&results.iter().collect::<Vec<_>>());
        let (pairs, held) = self.held(results);
        let of = |held: Held<'a>| {
            let pairs = &pairs;
            priorities.iter().filter_map(move |(priority, of_runs)| {
                let estimate = |metric: PriorityMetric| {
                    pairs.difference(held.label, |place| metric.of(&results[place], of_runs[place].as_ref()?))
                };
                let values = PriorityMetric::ALL.map(|metric| (metric, estimate(metric)));
                values.iter().any(|(_, value)| value.is_some()).then_some(PriorityDifference {
                    label: held.label,
                    against: held.against,
                    priority: *priority,
                    seeds: held.seeds,
                    values,
                })
            })
        };
        held.into_iter().flat_map(of).collect()
    }
}
