//! Several runs at once: of one scenario with several seeds, of a sweep, or side by side.
//!
//! A [`Group`] is what is looked at together: its runs have one folder of results and one table. Runs share nothing, so
//! each gives the same results whether it runs alone or among others.

mod asked;
mod collectives;
mod differences;
mod goals;
mod left_out;
mod names;
mod priorities;
mod rpcs;
mod samples;
mod tables;

pub use asked::{Asked, Kept, asked, kept};
pub use collectives::CollectiveSum;
pub use differences::Difference;
pub use goals::{GoalSum, JointSum};
pub use left_out::{Alike, LeftOut};
pub use names::{Names, in_one_line};
pub use priorities::{PriorityDifference, PriorityMetric, PrioritySum, PriorityValues};
pub use rpcs::RpcSum;
pub use tables::{TableDifference, TableMetric};

use crate::figures::statistics::Estimate;
use crate::output::report::{self, Run as Shown};
use crate::output::{self, Folder, OutputError};
use crate::results::{FlowSet, Results, TrafficResult};
use crate::run::{Go, Progress, RunError, World};
use crate::scenario::overrides::{self, ArgumentError};
use crate::scenario::{Scenario, ScenarioError};
use crate::tune::Tried;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs that are looked at together.
#[derive(Debug)]
pub struct Group {
    /// What they show.
    pub title: String,
    /// The runs; never empty.
    pub runs: Vec<Run>,
    /// The combinations of a sweep that no scenario can have, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// What was tried before these were left, where they are what a search has come to.
    pub tried: Option<Tried>,
}

/// One run of a group.
#[derive(Clone, Debug)]
pub struct Run {
    /// What tells its configuration from others of the group, such as `switch.buffer=2MB`.
    pub label: String,
    /// The keys that are swept, with the values that its configuration has of them, as the label says them; empty where nothing is.
    pub values: Vec<(String, String)>,
    /// What is run.
    pub scenario: Arc<Scenario>,
    /// With which seed.
    pub seed: u64,
}

impl Run {
    /// Its label among so many runs, of which so many have one configuration, its own.
    fn among(&self, alike: usize, all: usize) -> String {
        match (alike > 1, alike < all) {
            (true, true) => format!("{} seed={}", self.label, self.seed),
            (true, false) => format!("seed={}", self.seed),
            (false, _) => self.label.clone(),
        }
    }
}

/// Why runs could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An argument is wrong.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Too many combinations.
    #[error("{0} runs are too many for one group; at most {MOST} fit: sweep fewer values")]
    TooMany(usize),
}

/// The key of the common congestion control.
const CONTROL: &str = "transport.control";

/// The most runs of a group: their results are all kept to be compared.
const MOST: usize = 10_000;

impl Group {
    /// One scenario with each of `seeds`; its own seed where there are none.
    ///
    /// # Errors
    /// When the scenario is wrong, or there are too many seeds.
    pub fn of_seeds(path: &Path, set: &[(String, String)], seeds: &[u64]) -> Result<Self, PlanError> {
        let scenario = Arc::new(Scenario::load(path, set)?);
        let mut group = Self { title: scenario.name.clone(), ..Self::empty() };
        group.add(&scenario.name, Vec::new(), &scenario, seeds)?;
        Ok(group)
    }

    /// Every combination of the values of `axes`, each a path and a list such as `1..8` or `a,b,c`. A combination that is
    /// refused is left out, where each of its values goes with others: a value that goes with none is a wrong one.
    ///
    /// # Errors
    /// When a list or a value is wrong, or there are too many.
    pub fn of_sweep(
        path: &Path,
        set: &[(String, String)],
        axes: &[(String, String)],
        seeds: &[u64],
    ) -> Result<Self, PlanError> {
        let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (place, (key, list)) in axes.iter().enumerate() {
            if axes[..place].iter().any(|(other, _)| other == key) {
                let remedy = "name all of its values behind one of the two".to_owned();
                let (argument, message) =
                    (format!("--set {key}"), "several values are given twice for this key");
                return Err(ArgumentError { argument, message, remedy }.into());
            }
            let values = overrides::values(list).map_err(|error| ArgumentError {
                argument: format!("--set {key}={}", error.argument),
                ..error
            })?;
            if combinations.len() * values.len() > MOST {
                return Err(PlanError::TooMany(combinations.len() * values.len()));
            }
            combinations = combinations
                .iter()
                .flat_map(|before| {
                    values.iter().map(|value| {
                        let mut combination = before.clone();
                        combination.push((key.clone(), value.clone()));
                        combination
                    })
                })
                .collect();
        }
        let mut group = Self::empty();
        let mut refused = Vec::new();
        let mut taken = BTreeSet::new();
        for combination in combinations {
            let all: Vec<_> = set.iter().chain(&combination).cloned().collect();
            let scenario = match Scenario::load(path, &all) {
                Ok(scenario) => Arc::new(scenario),
                Err(error) => {
                    refused.push((combination, error));
                    continue;
                }
            };
            taken.extend(combination.iter().cloned());
            let varied = |(key, value): (String, String)| match key.as_str() {
                // A law's name alone does not tell which parameters it runs with.
                CONTROL => (key, scenario.transport.control.name()),
                _ => (key, value),
            };
            let values: Vec<_> = combination.into_iter().map(varied).collect();
            let label = in_one_line(&values);
            group.title = format!("{}-sweep", scenario.name);
            group.add(if label.is_empty() { &scenario.name } else { &label }, values, &scenario, seeds)?;
        }
        for (combination, error) in refused {
            if group.runs.is_empty() || combination.iter().any(|value| !taken.contains(value)) {
                return Err(error.into());
            }
            group.left_out.push(LeftOut { values: combination, error });
        }
        Ok(group)
    }

    /// One scenario with each of several congestion controls: a list of names of laws, or of tables as in a scenario.
    ///
    /// # Errors
    /// When the list or a control is wrong, or there are too many.
    pub fn of_controls(
        path: &Path,
        set: &[(String, String)],
        controls: &str,
        seeds: &[u64],
    ) -> Result<Self, PlanError> {
        let axis = (CONTROL.to_owned(), controls.to_owned());
        let mut group = Self::of_sweep(path, set, &[axis], seeds)?;
        group.title = group.title.replace("-sweep", "-controls");
        for run in &mut group.runs {
            run.label = run.label.trim_start_matches(CONTROL).trim_start_matches('=').to_owned();
        }
        Ok(group)
    }

    /// Several scenarios side by side.
    ///
    /// # Errors
    /// When a scenario is wrong, or there are too many.
    pub fn of_scenarios(
        paths: &[PathBuf],
        set: &[(String, String)],
        seeds: &[u64],
    ) -> Result<Self, PlanError> {
        let mut group = Self::empty();
        let mut names = Vec::new();
        for path in paths {
            let scenario = Arc::new(Scenario::load(path, set)?);
            // Scenarios of one name are told apart by their files.
            let label = match names.contains(&scenario.name) {
                true => path.display().to_string(),
                false => scenario.name.clone(),
            };
            names.push(scenario.name.clone());
            group.add(&label, Vec::new(), &scenario, seeds)?;
        }
        group.title = names.join("-vs-");
        Ok(group)
    }

    const fn empty() -> Self {
        Self { title: String::new(), runs: Vec::new(), left_out: Vec::new(), tried: None }
    }

    fn add(
        &mut self,
        label: &str,
        mut values: Vec<(String, String)>,
        scenario: &Arc<Scenario>,
        seeds: &[u64],
    ) -> Result<(), PlanError> {
        let own = [scenario.seed];
        let seeds = if seeds.is_empty() { &own } else { seeds };
        if self.runs.len() + seeds.len() > MOST {
            return Err(PlanError::TooMany(self.runs.len() + seeds.len()));
        }
        // Two configurations that come to the same are two all the same.
        let free = |label: &String| self.runs.iter().all(|run| run.label != *label);
        let mut numbered = (2..).map(|n| format!(" ({n})"));
        let ending = match free(&label.to_owned()) {
            true => String::new(),
            false => numbered.find(|ending| free(&format!("{label}{ending}"))).unwrap_or_default(),
        };
        let label = format!("{label}{ending}");
        if let Some((_, last)) = values.last_mut() {
            last.push_str(&ending);
        }
        self.runs.extend(seeds.iter().map(|seed| Run {
            label: label.clone(),
            values: values.clone(),
            scenario: Arc::clone(scenario),
            seed: *seed,
        }));
        Ok(())
    }

    /// Where each run's results lie within the folder of the group: in itself for a single one, else in a folder each.
    pub fn places(&self) -> Vec<PathBuf> {
        if self.runs.len() == 1 {
            return vec![PathBuf::new()];
        }
        let mut taken = BTreeSet::new();
        let place = |label: &String| {
            let name = folder_name(label);
            let free = |name: &String| !taken.contains(name);
            let numbered = || (2..).map(|n| format!("{name}-{n}")).find(free).unwrap_or_default();
            let name = if free(&name) { name.clone() } else { numbered() };
            taken.insert(name.clone());
            PathBuf::from(name)
        };
        self.full_labels().iter().map(place).collect()
    }

    /// Takes `runs`, in ascending order, out of the group and out of `folder`, where its results lie: those that have none.
    ///
    /// # Errors
    /// [`OutputError`] names the file.
    pub fn leave_out(&mut self, runs: &[usize], folder: &Path) -> Result<(), OutputError> {
        if runs.is_empty() {
            return Ok(());
        }
        let mut before = self.places();
        for index in runs.iter().rev() {
            self.runs.remove(*index);
            let place = folder.join(before.remove(*index));
            match std::fs::remove_dir_all(&place) {
                // It never began.
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(|source| OutputError::Write { path: place, source })?,
            }
        }
        for (from, to) in before.iter().zip(self.places()).filter(|(from, to)| *from != to) {
            let from = folder.join(from);
            let moved = if to.as_os_str().is_empty() {
                empty_into(&from, folder)
            } else {
                std::fs::rename(&from, folder.join(to))
            };
            moved.map_err(|source| OutputError::Write { path: from, source })?;
        }
        Ok(())
    }

    /// The label of a run, with its seed where configurations run with several.
    pub fn full_label(&self, run: &Run) -> String {
        let alike = self.runs.iter().filter(|other| other.label == run.label).count();
        run.among(alike, self.runs.len())
    }

    /// The labels of all runs, as [`Group::full_label`] has each. To ask for them one by one takes the square of their number.
    pub fn full_labels(&self) -> Vec<String> {
        let mut alike: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &self.runs {
            *alike.entry(&run.label).or_default() += 1;
        }
        self.runs.iter().map(|run| run.among(alike[run.label.as_str()], self.runs.len())).collect()
    }

    /// The labels of the configurations, in the order of their first runs.
    pub fn configurations(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        self.runs.iter().map(|run| run.label.as_str()).filter(|label| seen.insert(*label)).collect()
    }

    /// Writes what shows the runs side by side into `folder`: `report.html`, `comparison.csv` and, where a run has several tables of
    /// traffic, `comparison-traffic.csv`; for a single run, which has its own report, none of these. What a sweep has left out is in
    /// `left-out.csv`. Those that cannot be written are missing, and the others are there: why, the answer says of each.
    #[must_use]
    pub fn write_comparison(&self, folder: &Path, results: &[Results]) -> Vec<OutputError> {
        let mut written = Vec::new();
        if !self.left_out.is_empty() {
            let path = folder.join("left-out.csv");
            written.push(output::write(&path, |file| left_out::write_csv(file, &self.left_out)));
        }
        if self.runs.len() > 1 {
            written.extend(self.write_side_by_side(folder, results));
        }
        written.into_iter().filter_map(Result::err).collect()
    }

    /// Writes those files of a comparison that show several runs.
    fn write_side_by_side(&self, folder: &Path, results: &[Results]) -> Vec<Result<(), OutputError>> {
        let labels = self.full_labels();
        let places: Vec<String> =
            self.places().iter().map(|place| place.to_string_lossy().into_owned()).collect();
        let shown: Vec<Shown<'_>> = (self.runs.iter().zip(&labels).zip(&places).zip(results))
            .map(|(((run, label), place), results)| Shown {
                label,
                configuration: &run.label,
                folder: Some(place),
                results,
            })
            .collect();
        let path = folder.join("comparison.csv");
        let mut written = vec![output::write(&path, |file| report::write_comparison_csv(file, &shown))];
        if report::has_tables_of_traffic(&shown) {
            let path = folder.join("comparison-traffic.csv");
            written.push(output::write(&path, |file| report::write_traffic_csv(file, &shown)));
        }
        let names = self.names();
        written.push(output::write(&folder.join("report.html"), |file| match &self.tried {
            Some(tried) => report::write_tuned(file, &self.title, &names, &shown, tried),
            None => report::write_comparison(file, &self.title, &names, &shown),
        }));
        written
    }

    /// What each configuration came to, over its seeds.
    pub fn sums<'a>(&'a self, results: &'a [Results]) -> Vec<Sum<'a>> {
        self.configurations().into_iter().map(|label| self.sum(label, None, results)).collect()
    }

    /// What the flows of each `[[traffic]]` table came to in each configuration, over its seeds. Nothing where a run has one
    /// table, or where runs have different ones.
    pub fn sums_of_traffic<'a>(&'a self, results: &'a [Results]) -> Vec<Sum<'a>> {
        let count = tables_of_all(results);
        let tables = |label| (0..count).map(move |table| self.sum(label, Some(table), results));
        self.configurations().into_iter().flat_map(tables).collect()
    }

    /// The results of the configuration `label`, one for each seed.
    fn alike<'a>(&'a self, label: &'a str, results: &'a [Results]) -> impl Iterator<Item = &'a Results> {
        let runs = self.runs.iter().zip(results);
        runs.filter(move |(run, _)| run.label == label).map(|(_, results)| results)
    }

    /// What the configuration `label` came to: all of it, or the flows of one of its tables.
    fn sum<'a>(&'a self, label: &'a str, table: Option<usize>, results: &'a [Results]) -> Sum<'a> {
        let alike = || self.alike(label, results);
        let flows = |results: &'a Results| {
            table.map_or_else(|| results.all(), |table| results.flows_of(&results.traffic[table]))
        };
        let estimate = |metric: Metric| {
            let of = |results| match table {
                None => metric.of(results),
                Some(_) => metric.of_flows(flows(results)),
            };
            Estimate::of(&alike().map(of).collect::<Option<Vec<f64>>>()?)
        };
        Sum {
            label,
            traffic: table.and_then(|table| Some(results.first()?.traffic[table].name.as_str())),
            values: Metric::ALL.map(|metric| (metric, estimate(metric))),
            flows: alike().map(|results| flows(results).flows.len()).sum(),
            failed: alike().map(|results| flows(results).failed().count()).sum(),
            runs: alike().count(),
            runs_failed: alike().filter(|results| results.failure().is_some()).count(),
        }
    }
}

/// How many `[[traffic]]` tables each of the runs has; none where they have one, or different ones.
fn tables_of_all(results: &[Results]) -> usize {
    let Some(first) = results.first().map(|results| &results.traffic) else { return 0 };
    let names =
        |traffic: &[TrafficResult]| traffic.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
    let alike = |results: &Results| names(&results.traffic) == names(first);
    if first.len() > 1 && results.iter().all(alike) { first.len() } else { 0 }
}

/// What one configuration of a group came to, over its seeds.
#[derive(Clone, Copy, Debug)]
pub struct Sum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The `[[traffic]]` table whose flows alone are told of; `None`: all.
    pub traffic: Option<&'a str>,
    /// Each metric; `None` where a run does not yield it.
    pub values: [(Metric, Option<Estimate>); Metric::ALL.len()],
    /// Flows of all its runs.
    pub flows: usize,
    /// Of those, flows that ended in an error completion.
    pub failed: usize,
    /// Its runs.
    pub runs: usize,
    /// Of those, runs in which a flow failed or that ended in a deadlock.
    pub runs_failed: usize,
}

/// A number that sums a run up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Flows that completed with success.
    Completed,
    /// Mean completion time in seconds.
    MeanCompletion,
    /// 99th percentile of completion times in seconds.
    P99Completion,
    /// Mean slowdown.
    MeanSlowdown,
    /// 99th percentile of slowdowns.
    P99Slowdown,
    /// Payload offered per second by the clock, in bits per second.
    Offered,
    /// Payload delivered per second by all flows together, in bits per second: of what was offered, meanwhile.
    Goodput,
    /// Jain's index of the flows' goodput.
    Fairness,
    /// Packets dropped by switches.
    Drops,
    /// Packets that faults lost or damaged on links.
    Lost,
    /// Packets marked CE by switches.
    Marks,
    /// PAUSE frames sent, by switches and hosts.
    Pauses,
    /// How long ports of switches and hosts stood paused, in seconds.
    Paused,
    /// The most octets that the buffer of a switch held, of the fullest one.
    Buffered,
    /// The mean of the queue that was deepest over the samples, in octets.
    QueueMean,
    /// Its 99th percentile.
    QueueP99,
    /// Times that local ACK timers expired.
    Timeouts,
    /// Data packets that arrived after one with a higher PSN.
    Reordered,
    /// How unevenly switches used their ports of equal cost, on the mean.
    Imbalance,
}

impl Metric {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 19] = [
        Self::Completed,
        Self::MeanCompletion,
        Self::P99Completion,
        Self::MeanSlowdown,
        Self::P99Slowdown,
        Self::Offered,
        Self::Goodput,
        Self::Fairness,
        Self::Drops,
        Self::Lost,
        Self::Marks,
        Self::Pauses,
        Self::Paused,
        Self::Buffered,
        Self::QueueMean,
        Self::QueueP99,
        Self::Timeouts,
        Self::Reordered,
        Self::Imbalance,
    ];

    /// Its value for a run; `None` where the run yields none, such as a completion time without a completion.
    #[expect(clippy::cast_precision_loss, reason = "a table shows fewer digits than f64 holds")]
    pub fn of(self, results: &Results) -> Option<f64> {
        let sum = |of: fn(&crate::results::SwitchResult) -> u64| {
            Some(results.switches.iter().map(of).sum::<u64>() as f64)
        };
        match self {
            Self::Completed
            | Self::MeanCompletion
            | Self::P99Completion
            | Self::MeanSlowdown
            | Self::P99Slowdown
            | Self::Offered
            | Self::Goodput
            | Self::Fairness
            | Self::Timeouts
            | Self::Reordered => self.of_flows(results.all()),
            Self::Drops => sum(|switch| switch.drops),
            Self::Lost => Some(results.lost() as f64),
            Self::Marks => sum(|switch| switch.ecn_marks),
            Self::Pauses => {
                let by_hosts: u64 = results.hosts.iter().map(|host| host.pause_sent).sum();
                Some(sum(|switch| switch.pause_sent)? + by_hosts as f64)
            }
            Self::Paused => Some(results.paused().as_secs_f64()),
            Self::Buffered => {
                let most = results.switches.iter().map(|switch| switch.max_buffer_bytes).max();
                most.map(|octets| octets as f64)
            }
            Self::QueueMean => results.deepest().map(|(mean, _)| mean),
            Self::QueueP99 => results.deepest().map(|(_, p99)| p99 as f64),
            Self::Imbalance => results.imbalance(),
        }
    }

    /// Whether it is no matter of single flows, such as drops in switches.
    pub const fn is_of_network(self) -> bool {
        matches!(
            self,
            Self::Drops
                | Self::Lost
                | Self::Marks
                | Self::Pauses
                | Self::Paused
                | Self::Buffered
                | Self::QueueMean
                | Self::QueueP99
                | Self::Imbalance
        )
    }

    /// The same of some flows of a run; `None` as well where it is no matter of flows, such as drops in switches.
    #[expect(clippy::cast_precision_loss, reason = "a table shows fewer digits than f64 holds")]
    pub fn of_flows(self, flows: FlowSet<'_>) -> Option<f64> {
        match self {
            Self::Completed => Some(flows.completed().count() as f64),
            Self::MeanCompletion => flows.completion_times().mean(),
            Self::P99Completion => flows.completion_times().percentile(99),
            Self::MeanSlowdown => flows.slowdowns().mean(),
            Self::P99Slowdown => flows.slowdowns().percentile(99),
            Self::Offered => flows.offered_bps(),
            Self::Goodput => flows.total_goodput_bps(),
            Self::Fairness => flows.fairness(),
            Self::Timeouts => Some(flows.timeouts() as f64),
            Self::Reordered => Some(flows.reordered() as f64),
            _ => None,
        }
    }
}

/// Moves all that is in `from` into `to`, and removes it.
fn empty_into(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::rename(entry.path(), to.join(entry.file_name()))?;
    }
    std::fs::remove_dir(from)
}

/// Letters, digits and a few signs of `label`; dashes for the rest. File systems take names of 255 octets, of which some are left for
/// a number behind it: what is cut off is the seed, and the values of the keys that were named last.
fn folder_name(label: &str) -> String {
    const OCTETS: usize = 240;
    let fit = |c: char| if c.is_alphanumeric() || "._=+".contains(c) { c } else { '-' };
    let mut name: String = label.trim_start_matches('.').chars().map(fit).collect();
    name.truncate(name.floor_char_boundary(OCTETS));
    name
}

/// Hears of runs as they go on, from several threads at once.
pub trait Watch: Sync {
    /// Run `index` has come so far; says whether it goes on.
    fn progress(&self, index: usize, progress: &Progress) -> Go;
    /// Run `index` is over.
    fn ended(&self, index: usize, result: &Result<Results, RunError>);
    /// Seconds since any moment; what writing takes is measured with it.
    fn seconds(&self) -> f64;
}

/// A run, and where its results go.
#[derive(Clone, Debug)]
pub struct Task {
    /// The run.
    pub run: Run,
    /// The folder that its files are written into, made where it does not exist; `None`: nothing is written.
    pub folder: Option<PathBuf>,
}

/// Runs `tasks` in `world` on as many as `threads` threads, and writes each one's results as it ends. The answers stand
/// in the order of the tasks.
pub fn run_all(
    world: &dyn World,
    tasks: &[Task],
    threads: usize,
    watch: &dyn Watch,
) -> Vec<Result<Results, RunError>> {
    each(tasks.len(), threads, |index| {
        let result = run_one(world, &tasks[index], index, watch);
        watch.ended(index, &result);
        result
    })
}

/// The same of so many tasks, each of which `task` makes when its turn has come, and of whose results only what `keep` makes of them is
/// kept: so many more can be run than there is memory for, were they all there at once.
pub fn run_each<T: Send>(
    world: &dyn World,
    count: usize,
    threads: usize,
    watch: &dyn Watch,
    task: impl Fn(usize) -> Result<Task, RunError> + Sync,
    keep: impl Fn(Result<Results, RunError>) -> T + Sync,
) -> Vec<T> {
    each(count, threads, |index| {
        let result = task(index).and_then(|task| run_one(world, &task, index, watch));
        watch.ended(index, &result);
        keep(result)
    })
}

/// What `of` makes of each index below `count`, on as many as `threads` threads.
fn each<T: Send>(count: usize, threads: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = made.get(index) else { break };
            let one = of(index);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    // A thread that panics takes the others with it, so there is one of each.
    made.into_iter().filter_map(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

fn run_one(world: &dyn World, task: &Task, index: usize, watch: &dyn Watch) -> Result<Results, RunError> {
    if watch.progress(index, &Progress::default()) == Go::Stop {
        return Err(RunError::Interrupted);
    }
    let output = |error: &dyn std::fmt::Display| RunError::Output(error.to_string());
    if let Some(folder) = &task.folder {
        std::fs::create_dir_all(folder)
            .map_err(|error| output(&format!("cannot write {}: {error}", folder.display())))?;
    }
    let mut on = |progress: &Progress| watch.progress(index, progress);
    let mut results = world.run(&task.run.scenario, task.run.seed, task.folder.as_deref(), &mut on)?;
    if let Some(folder) = &task.folder {
        output::write_all(folder, &mut results, &|| watch.seconds()).map_err(|error| output(&error))?;
    }
    Ok(results)
}

/// The tasks of `group` with their results in `folder`; without one, nothing is written.
pub fn tasks(group: &Group, folder: Option<&Folder>) -> Vec<Task> {
    let places = group.places();
    let task = |(run, place): (&Run, PathBuf)| Task {
        run: run.clone(),
        folder: folder.map(|folder| folder.draft().join(place)),
    };
    group.runs.iter().zip(places).map(task).collect()
}

#[cfg(test)]
mod tests;
