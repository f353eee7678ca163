//! What settings are searched for: a metric, and limits on others.

use crate::batch::{Metric, TableMetric};
use crate::figures::statistics::mean;
use crate::results::{FlowResult, FlowSet, Results};
use crate::scenario::overrides::ArgumentError;
use roci_units::{BitsPerSec, Bytes, Span};
use std::cmp::Ordering;
use std::fmt;

/// A metric of all flows or of those of one `[[traffic]]` table, the better the less of it or the more of it there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The metric; of collectives, schedules and requests the one of flows that is counted in the same unit.
    pub metric: Metric,
    /// What it is of collectives, schedules or requests; `None`: it is of flows, or of the network.
    of_tables: Option<TableMetric>,
    /// The name of the table; `None`: all flows.
    pub traffic: Option<String>,
}

/// Metrics of collectives, of schedules and of requests, with the metric of flows that has their unit.
const OF_TABLES: [(&str, TableMetric, Metric); 7] = [
    ("iteration-mean", TableMetric::Iteration, Metric::MeanCompletion),
    ("busbw", TableMetric::BusBandwidth, Metric::Goodput),
    ("over-ideal", TableMetric::OverIdeal, Metric::MeanSlowdown),
    ("goal-time", TableMetric::Goal, Metric::MeanCompletion),
    ("request-mean", TableMetric::Request, Metric::MeanCompletion),
    ("request-p99", TableMetric::P99Request, Metric::P99Completion),
    ("request-rate", TableMetric::RequestRate, Metric::Completed),
];

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    of: Aim,
    bound: f64,
    side: Side,
    /// As it was written.
    text: String,
}

/// What a bound is of the values that keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Most,
    Least,
    Only,
}

/// How they are written.
const SIGNS: [(&str, Side); 3] = [("<=", Side::Most), (">=", Side::Least), ("=", Side::Only)];

/// What a run came to: the less the better, and first of all it keeps its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// By what part limits are broken, all together; zero where all are kept.
    pub over: f64,
    /// The metric aimed at, or its negative where more of it is better.
    pub value: f64,
}

/// What it counts for that a run failed or did not yield what was asked for: more than limits that are broken by far.
const FAILED: f64 = 1e6;

/// Metrics by their names on the command line.
const WORDS: [(&str, Metric); Metric::ALL.len()] = [
    ("completed", Metric::Completed),
    ("completion-mean", Metric::MeanCompletion),
    ("completion-p99", Metric::P99Completion),
    ("slowdown-mean", Metric::MeanSlowdown),
    ("slowdown-p99", Metric::P99Slowdown),
    ("offered", Metric::Offered),
    ("goodput", Metric::Goodput),
    ("fairness", Metric::Fairness),
    ("drops", Metric::Drops),
    ("lost", Metric::Lost),
    ("marks", Metric::Marks),
    ("pauses", Metric::Pauses),
    ("paused", Metric::Paused),
    ("buffered", Metric::Buffered),
    ("queue-mean", Metric::QueueMean),
    ("queue-p99", Metric::QueueP99),
    ("timeouts", Metric::Timeouts),
    ("reordered", Metric::Reordered),
    ("imbalance", Metric::Imbalance),
];

/// All metrics by their words: what each is of tables, if it is of such, and of flows.
fn words() -> impl Iterator<Item = (&'static str, Option<TableMetric>, Metric)> {
    let of_flows = WORDS.iter().map(|&(word, metric)| (word, None, metric));
    of_flows.chain(OF_TABLES.iter().map(|&(word, of, metric)| (word, Some(of), metric)))
}

impl Aim {
    /// Reads the name of a metric, such as `slowdown-p99`, or `incast:slowdown-p99` for the flows of one table.
    ///
    /// # Errors
    /// When there is no such metric, or it is none of single flows and a table is named.
    pub fn read(text: &str) -> Result<Self, ArgumentError> {
        let (traffic, word) = match text.rsplit_once(':') {
            Some((traffic, word)) => (Some(traffic.to_owned()), word),
            None => (None, text),
        };
        let known = words().find(|(known, ..)| *known == word.trim());
        let wrong = |message, remedy: String| ArgumentError { argument: text.to_owned(), message, remedy };
        let Some((_, of_tables, metric)) = known else {
            let words: Vec<&str> = words().map(|(word, ..)| word).collect();
            return Err(wrong("there is no such metric", format!("name one of {}", words.join(", "))));
        };
        if traffic.is_some() && metric.is_of_network() {
            return Err(wrong("this is no matter of single flows", format!("leave out the table: {word}")));
        }
        Ok(Self { metric, of_tables, traffic })
    }

    /// Its value for a run; `None` where the run yields none. Of times and slowdowns flows that did not complete have theirs up to the end
    /// of the run: else what starves a flow would look good for it.
    pub fn of(&self, results: &Results) -> Option<f64> {
        if let Some(metric) = self.of_tables {
            return self.of_its_tables(metric, results);
        }
        let flows = self.flows(results)?;
        // Where none completed, nothing is known of times.
        let plain = match self.metric.is_of_network() {
            true => self.metric.of(results)?,
            false => self.metric.of_flows(flows)?,
        };
        match self.metric {
            Metric::MeanCompletion => flows.times_at_least().mean(),
            Metric::P99Completion => flows.times_at_least().percentile(99),
            Metric::MeanSlowdown => flows.slowdowns_at_least().mean(),
            Metric::P99Slowdown => flows.slowdowns_at_least().percentile(99),
            _ => Some(plain),
        }
    }

    /// The mean over the collectives, the schedules, or the tables of requests, that it is of; `None` where one of them yields nothing.
    fn of_its_tables(&self, metric: TableMetric, results: &Results) -> Option<f64> {
        let is_meant =
            |table: usize| self.traffic.as_ref().is_none_or(|name| results.traffic[table].name == *name);
        let meant = metric.of(results).into_iter().filter(|(table, _)| is_meant(*table));
        mean(&meant.map(|(_, value)| value).collect::<Option<Vec<f64>>>()?)
    }

    /// Whether the metric is of times, and the run has flows that did not complete, which tables leave out.
    pub fn leaves_out(&self, results: &Results) -> bool {
        let is_of_times = matches!(
            self.metric,
            Metric::MeanCompletion | Metric::P99Completion | Metric::MeanSlowdown | Metric::P99Slowdown
        );
        let is_left_out = |flow: &FlowResult| flow.ideal.is_some() && flow.fct().is_none();
        self.of_tables.is_none()
            && is_of_times
            && self.flows(results).is_some_and(|flows| flows.flows.iter().any(is_left_out))
    }

    /// The flows that it is of.
    fn flows<'a>(&self, results: &'a Results) -> Option<FlowSet<'a>> {
        let Some(name) = &self.traffic else { return Some(results.all()) };
        Some(results.flows_of(results.traffic.iter().find(|table| table.name == *name)?))
    }

    /// Whether more of it is better.
    pub const fn is_to_grow(&self) -> bool {
        matches!(self.metric, Metric::Completed | Metric::Goodput | Metric::Offered | Metric::Fairness)
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = words().find(|&(_, of, metric)| (of, metric) == (self.of_tables, self.metric));
        let word = word.map_or("", |(word, ..)| word);
        match &self.traffic {
            Some(traffic) => write!(f, "{traffic}:{word}"),
            None => f.write_str(word),
        }
    }
}

impl Limit {
    /// Reads `drops=0`, `pauses<=10`, `goodput>=90Gb/s`, `incast:slowdown-p99<=5`.
    ///
    /// # Errors
    /// When it has no bound, or names no metric.
    pub fn read(text: &str) -> Result<Self, ArgumentError> {
        let wrong = |message, remedy: &str| ArgumentError {
            argument: format!("--keep {text}"),
            message,
            remedy: remedy.to_owned(),
        };
        let sign = text.find(['<', '>', '=']).ok_or_else(|| {
            wrong("this bounds nothing", "write a metric and its bound, such as drops=0 or goodput>=90Gb/s")
        })?;
        let (name, rest) = text.split_at(sign);
        let sides = SIGNS.iter().find_map(|&(sign, side)| Some((side, rest.strip_prefix(sign)?)));
        let (side, bound) = sides.ok_or_else(|| {
            wrong("a limit takes its bound in", "write <= or >=, which a metric may reach, or = for it alone")
        })?;
        let of = Aim::read(name.trim())
            .map_err(|error| ArgumentError { argument: format!("--keep {text}"), ..error })?;
        let bound = bound.trim();
        let (number, example) = match of.metric {
            Metric::MeanCompletion | Metric::P99Completion | Metric::Paused => {
                (bound.parse::<Span>().ok().map(Span::as_secs_f64), "a time such as 3ms")
            }
            #[expect(clippy::cast_precision_loss, reason = "a bound has few digits")]
            Metric::Offered | Metric::Goodput => {
                (bound.parse::<BitsPerSec>().ok().map(|rate| rate.0 as f64), "a rate such as 90Gb/s")
            }
            #[expect(clippy::cast_precision_loss, reason = "a bound has few digits")]
            Metric::Buffered | Metric::QueueMean | Metric::QueueP99 => {
                (bound.parse::<Bytes>().ok().map(|octets| octets.0 as f64), "a size such as 400KB")
            }
            _ => (bound.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0), "a number such as 0"),
        };
        let bound = number.ok_or_else(|| wrong("this is no bound of that metric", example))?;
        Ok(Self { of, bound, side, text: text.to_owned() })
    }

    /// The metric that it bounds.
    pub const fn metric(&self) -> &Aim {
        &self.of
    }

    /// By what part of the bound `results` break it, or by how much where that is zero.
    pub fn over(&self, results: &Results) -> f64 {
        let Some(value) = self.of.of(results) else { return FAILED };
        let over = match self.side {
            Side::Most => value - self.bound,
            Side::Least => self.bound - value,
            Side::Only => (value - self.bound).abs(),
        };
        over.max(0.0) / if self.bound > 0.0 { self.bound } else { 1.0 }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Score {
    /// Of a run that stalled.
    pub const NOTHING: Self = Self { over: FAILED, value: f64::MAX };

    /// What `results` come to.
    pub fn of(results: &Results, aim: &Aim, limits: &[Limit]) -> Self {
        let failed = if results.failure().is_some() { FAILED } else { 0.0 };
        let over = limits.iter().map(|limit| limit.over(results)).sum::<f64>() + failed;
        match aim.of(results) {
            Some(value) => Self { over, value: if aim.is_to_grow() { -value } else { value } },
            None => Self { over: over + FAILED, value: f64::MAX },
        }
    }

    /// The mean of several; of none, that of a run that stalled. Where one did not yield what is aimed at, there is no mean of that.
    pub fn mean(scores: &[Self]) -> Self {
        let of = |of: fn(&Self) -> f64| mean(&scores.iter().map(of).collect::<Vec<_>>());
        let all_yield = scores.iter().all(Self::yields);
        let mean_value = |value| if all_yield { value } else { Self::NOTHING.value };
        of(|score| score.over)
            .zip(of(|score| score.value).map(mean_value))
            .map_or(Self::NOTHING, |(over, value)| Self { over, value })
    }

    /// Whether it has a value of the metric aimed at.
    pub fn yields(&self) -> bool {
        self.value < f64::MAX
    }

    /// Which is better, which is less.
    pub fn order(&self, other: &Self) -> Ordering {
        self.over.total_cmp(&other.over).then(self.value.total_cmp(&other.value))
    }

    /// Whether all limits were kept, and nothing failed.
    pub fn keeps(&self) -> bool {
        self.over <= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, two_tables, with_collective, with_rpc};
    use crate::results::{CollectiveResult, FlowStatus, Iteration, SwitchResult};
    use roci_units::Instant;

    fn dropped(drops: u64, buffered: u64) -> Results {
        let switch = SwitchResult { drops, max_buffer_bytes: buffered, ..SwitchResult::default() };
        Results { switches: vec![switch], ..Results::default() }
    }

    #[test]
    fn limits_are_broken_by_the_part_that_is_too_much_or_too_little() {
        for (limit, drops, over) in [
            ("drops=0", 0, 0.0),
            ("drops=0", 3, 3.0),
            ("drops<=10", 10, 0.0),
            ("drops<=10", 15, 0.5),
            ("drops >= 10", 5, 0.5),
            ("drops=10", 10, 0.0),
            ("drops=10", 5, 0.5),
            ("drops=10", 15, 0.5),
        ] {
            let found = Limit::read(limit).unwrap().over(&dropped(drops, 0));
            assert!((found - over).abs() < 1e-12, "{limit}: {found}");
        }
        assert!(Limit::read("buffered<=1MB").unwrap().over(&dropped(0, 1_500_000)) > 0.49);
        assert!(
            Limit::read("slowdown-p99<=5").unwrap().over(&dropped(0, 0)) >= FAILED,
            "no flow came to an end"
        );
    }

    #[test]
    fn what_keeps_its_limits_comes_first_whatever_it_is_worth() {
        let score = |over, value| Score { over, value };
        assert_eq!(score(0.0, 9.0).order(&score(0.1, 1.0)), Ordering::Less);
        assert_eq!(score(0.0, 9.0).order(&score(0.0, 1.0)), Ordering::Greater);
        assert_eq!(Score::mean(&[score(0.0, 1.0), score(0.5, 3.0)]), score(0.25, 2.0));
        let failed = Score::mean(&[score(0.0, 1.0), Score::NOTHING, Score::NOTHING]);
        assert!(!failed.yields() && failed.order(&Score::NOTHING) == Ordering::Less, "{failed:?}");
        let aim = Aim::read("buffered").unwrap();
        let limits = [Limit::read("drops=0").unwrap()];
        let of = |results: &Results| Score::of(results, &aim, &limits);
        assert_eq!(of(&dropped(0, 700)), score(0.0, 700.0));
        assert!(of(&dropped(1, 300)).order(&of(&dropped(0, 700))) == Ordering::Greater);
        assert!(!of(&dropped(1, 300)).keeps());
    }

    /// So many flows of a microsecond each in a run of ten, the first of which did not complete.
    fn starved(completed: u32) -> Results {
        let ideal = Span::from_micros(1);
        let flow = |number: u32| FlowResult {
            status: if number == 0 { FlowStatus::Running } else { FlowStatus::OK },
            start: Instant::ZERO,
            end: if number == 0 { Instant::NEVER } else { Instant::ZERO + ideal },
            ideal: Some(ideal),
            ..sample().flows[0].clone()
        };
        let flows = (0..=completed).map(flow).collect();
        Results { flows, simulated: Instant::ZERO + ideal * 10, ..Results::default() }
    }

    #[test]
    fn a_flow_that_does_not_complete_counts_for_as_long_as_the_run_went_on() {
        for (aim, plain, counted) in
            [("slowdown-mean", 1.0, 5.5), ("slowdown-p99", 1.0, 10.0), ("completion-mean", 1e-6, 5.5e-6)]
        {
            let (aim, results) = (Aim::read(aim).unwrap(), starved(1));
            assert!(aim.leaves_out(&results) && !Aim::read("goodput").unwrap().leaves_out(&results));
            assert!((aim.metric.of(&results).unwrap() - plain).abs() < 1e-12);
            assert!((aim.of(&results).unwrap() - counted).abs() < 1e-12, "{aim}: {:?}", aim.of(&results));
            // A run that completes nothing yields no time.
            assert_eq!(aim.of(&starved(0)), None);
        }
        let limit = Limit::read("slowdown-p99<=5").unwrap();
        assert!(limit.over(&starved(200)) <= 0.0 && limit.over(&starved(50)) > 0.99);
    }

    #[test]
    fn collectives_and_requests_have_metrics_of_their_own_by_table_or_together() {
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let iteration = |start, end| Iteration {
            start: at(start),
            first_end: at(end),
            end: at(end),
            last: 0,
            slowest: None,
        };
        let collective = |table, iterations| CollectiveResult {
            table,
            iterations,
            ideal: Some(Span::from_micros(80)),
            ..with_collective().collectives[0].clone()
        };
        let first = collective(0, vec![iteration(0, 100), iteration(100, 300)]);
        let bus = first.bus_bps(150e-6);
        let results = Results {
            collectives: vec![first, collective(1, vec![iteration(0, 50)])],
            traffic: two_tables(),
            ..sample()
        };
        let of = |text: &str| Aim::read(text).unwrap().of(&results);
        let is = |text: &str, value: f64| {
            assert!((of(text).unwrap() / value - 1.0).abs() < 1e-9, "{text}: {:?}", of(text));
        };
        is("0:iteration-mean", 150e-6);
        is("iteration-mean", 100e-6);
        is("0:over-ideal", 1.875);
        is("0:busbw", bus);
        assert!(Aim::read("busbw").unwrap().is_to_grow() && !Aim::read("over-ideal").unwrap().is_to_grow());
        assert!(Limit::read("0:iteration-mean<=200us").unwrap().over(&results) <= 0.0);
        assert!(Limit::read("0:busbw>=4Tb/s").unwrap().over(&results) > 0.0);
        // Where there are none, nothing is known of them, and an iteration that is not done has no time.
        assert_eq!(of("request-p99"), None);
        let undone = Results { collectives: vec![collective(0, Vec::new())], ..results.clone() };
        assert_eq!(Aim::read("iteration-mean").unwrap().of(&undone), None);
        let answered = with_rpc();
        let of = |text: &str| Aim::read(text).unwrap().of(&answered);
        assert_eq!(of("request-rate"), answered.rpcs[0].per_second());
        let is = |text: &str, value: f64| assert!((of(text).unwrap() / value - 1.0).abs() < 0.01, "{text}");
        is("request-mean", 200e-6);
        is("0:request-p99", 300e-6);
        assert_eq!(Aim::read("train:request-p99").unwrap().to_string(), "train:request-p99");
    }

    #[test]
    fn a_metric_that_there_is_not_is_refused_with_those_that_there_are() {
        for (text, told) in
            [("speed", "slowdown-p99, offered, goodput"), ("incast:drops", "leave out the table: drops")]
        {
            assert!(Aim::read(text).unwrap_err().to_string().contains(told), "{text}");
        }
        for (text, told) in [
            ("drops", "such as drops=0"),
            ("completion-p99<=3", "a time such as 3ms"),
            ("goodput>=9MB", "a rate such as 90Gb/s"),
            ("drops=-1", "a number such as 0"),
            ("drops<1", "write <= or >="),
            ("drops=<1", "a number such as 0"),
        ] {
            let error = Limit::read(text).unwrap_err().to_string();
            assert!(error.contains(told) && error.starts_with("--keep"), "{error}");
        }
        assert_eq!(Aim::read("incast:slowdown-p99").unwrap().to_string(), "incast:slowdown-p99");
    }
}
