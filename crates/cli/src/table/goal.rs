//! What is printed of GOAL schedules: a line for each, with what its time went into.

use super::{fit, lines, table};
use crate::format::{number, of_seeds, or_dash, rate, size, time};
use roci_lab::batch::{GoalSum, Names};
use roci_lab::results::{CriticalPath, GoalRank, GoalResult, Replays, Results};

const HEADER: [&str; 11] = [
    "schedule",
    "ranks",
    "operations",
    "messages",
    "octets",
    "time",
    "computed",
    "overhead",
    "on their way",
    "over ideal",
    "last",
];

/// What stands below the schedules.
const PARTS: &str = "time is that of the chain of what was waited for: calculation, what CPUs had to do with messages, and messages and collectives on their way";

/// A line for each schedule; nothing where there is none.
pub(super) fn tables(results: &Results) -> String {
    if results.goals.is_empty() {
        return String::new();
    }
    let mut table = table(&HEADER);
    for it in &results.goals {
        table.add_row(row(it, results));
    }
    let less: String = results.goals.iter().filter_map(|it| with_less(it, results)).collect();
    format!("\n{}  {PARTS}\n{less}{}", lines(&table), collectives(results))
}

const KINDS: [&str; 10] = [
    "schedule",
    "collectives",
    "algorithm",
    "ranks",
    "done",
    "octets",
    "until all began",
    "time mean",
    "busbw",
    "over ideal",
];

/// A line for each kind of collectives of each schedule; nothing where there is none.
fn collectives(results: &Results) -> String {
    let mut table = table(&KINDS);
    for goal in &results.goals {
        for it in goal.joint_kinds() {
            table.add_row([
                results.traffic[goal.table].name.clone(),
                it.operation.name().to_owned(),
                or_dash(it.algorithm.map(|algorithm| algorithm.name().to_owned())),
                it.ranks.to_string(),
                done_of(it.done, it.count),
                size(it.bytes),
                or_dash(it.late_mean().map(time)),
                or_dash(it.time_mean().map(time)),
                or_dash(it.bus_bps().map(rate)),
                or_dash(it.over_ideal().map(number)),
            ]);
        }
    }
    if table.is_empty() { String::new() } else { format!("\n{}", lines(&table)) }
}

/// How long a schedule takes where less is in its way, in a line.
fn with_less(it: &GoalResult, results: &Results) -> Option<String> {
    let Replays { links, alone, no_network } = it.replays?;
    let [links, alone, no_network] = [links, alone, no_network]
        .map(|span| span.map_or_else(|| "no end".to_owned(), |span| time(span.as_secs_f64())));
    let name = &results.traffic[it.table].name;
    let over =
        it.over_links().map_or_else(String::new, |over| format!(" (it took {} of that)", number(over)));
    Some(format!(
        "  {name} takes {links} by the links of NICs alone, one message after the other{over}, {alone} where each is alone, {no_network} without a network\n"
    ))
}

/// The same of several runs: a line for each in each configuration, with means over its seeds.
pub(super) fn side_by_side(names: &Names<'_>, sums: &[GoalSum<'_>]) -> String {
    if sums.is_empty() {
        return String::new();
    }
    let first: Vec<&str> = names.headings(&SIDE_BY_SIDE).into_iter().chain(["schedule"]).collect();
    let mut table = table(&first.iter().copied().chain(SIDE_BY_SIDE).collect::<Vec<_>>());
    for sum in sums {
        let first = names.of(sum.label).into_iter().chain([sum.name]).map(str::to_owned);
        table.add_row(first.chain([
            format!("{} of {}", sum.done, sum.runs),
            of_seeds(sum.time.as_ref(), time),
            of_seeds(sum.computed.as_ref(), time),
            of_seeds(sum.overhead.as_ref(), time),
            of_seeds(sum.messages.as_ref(), time),
            of_seeds(sum.over_ideal.as_ref(), number),
            of_seeds(sum.over_links.as_ref(), number),
        ]));
    }
    format!("\n{}{}", fit::fitted(&table, first.len()), collectives_side_by_side(names, sums))
}

/// Their collectives by kind; nothing where there is none.
fn collectives_side_by_side(names: &Names<'_>, sums: &[GoalSum<'_>]) -> String {
    // Runs of several seeds have several times the octets.
    let columns: Vec<&str> = KINDS[1..].iter().copied().filter(|column| *column != "octets").collect();
    let first: Vec<&str> = names.headings(&columns).into_iter().chain(["schedule"]).collect();
    let mut table = table(&first.iter().chain(&columns).copied().collect::<Vec<_>>());
    for sum in sums {
        for it in &sum.joint {
            let first = names.of(sum.label).into_iter().chain([sum.name]).map(str::to_owned);
            table.add_row(first.chain([
                it.operation.name().to_owned(),
                or_dash(it.algorithm.map(|algorithm| algorithm.name().to_owned())),
                it.ranks.to_string(),
                done_of(it.done, it.count),
                of_seeds(it.late.as_ref(), time),
                of_seeds(it.time.as_ref(), time),
                of_seeds(it.bus_bps.as_ref(), rate),
                of_seeds(it.over_ideal.as_ref(), number),
            ]));
        }
    }
    if table.is_empty() { String::new() } else { format!("\n{}", fit::fitted(&table, first.len())) }
}

/// How many of so many are done.
fn done_of(done: usize, count: usize) -> String {
    if done == count { count.to_string() } else { format!("{done} of {count}") }
}

const SIDE_BY_SIDE: [&str; 7] =
    ["done", "time", "computed", "overhead", "on their way", "over ideal", "over links"];

fn row(it: &GoalResult, results: &Results) -> Vec<String> {
    let GoalRank { operations, undone, sent, sent_bytes, .. } = it.totals();
    let of_path = |value: fn(&CriticalPath) -> f64| or_dash(it.path.as_ref().map(|path| time(value(path))));
    let last = it.path.as_ref().and_then(|_| it.last());
    let operations = match (undone, it.failed) {
        (0, _) => operations.to_string(),
        (_, true) => format!("{} of {operations}, then failed", operations - undone),
        (_, false) => format!("{} of {operations}", operations - undone),
    };
    vec![
        results.traffic[it.table].name.clone(),
        it.ranks.len().to_string(),
        operations,
        sent.to_string(),
        size(sent_bytes),
        or_dash(it.seconds().map(time)),
        of_path(|path| path.computed.as_secs_f64()),
        of_path(|path| path.overhead.as_secs_f64()),
        of_path(|path| path.on_the_way().as_secs_f64()),
        or_dash(it.path.as_ref().and_then(CriticalPath::over_ideal).map(number)),
        or_dash(last.map(|(rank, of)| format!("{rank} on {}", results.host(of.host)))),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::results::{JointResult, JointTimes, TrafficResult};
    use roci_lab::traffic::Algorithm;
    use roci_lab::traffic::collective::Operation;
    use roci_units::{Instant, Span};
    use std::sync::Arc;

    #[test]
    fn a_schedule_has_a_line_and_other_traffic_has_none() {
        let mut one = results(2);
        assert_eq!(tables(&one), "");
        one.traffic = vec![TrafficResult {
            name: "step".to_owned(),
            kind: "goal",
            flows: 0..2,
            offered: None,
            pattern: Vec::new(),
            priorities: vec![3],
        }];
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let rank = GoalRank {
            host: 0,
            operations: 4,
            end: Some(at(90)),
            sent: 2,
            sent_bytes: 2000,
            ..GoalRank::default()
        };
        let mut path = CriticalPath {
            time: Span::from_micros(100),
            computed: Span::from_micros(60),
            messages: Span::from_micros(40),
            ideal: Span::from_micros(20),
            ..CriticalPath::default()
        };
        let second = GoalRank { host: 1, operations: 3, end: Some(at(100)), ..GoalRank::default() };
        path.overhead = Span::ZERO;
        let [links, alone, no_network] = [80, 70, 60].map(|time| Some(Span::from_micros(time)));
        let goal = GoalResult {
            table: 0,
            start: at(0),
            schedule: Arc::default(),
            joint: Vec::new(),
            ranks: vec![rank, second],
            path: Some(path),
            replays: Some(Replays { links, alone, no_network }),
            times: Vec::new(),
            failed: false,
        };
        one.goals = vec![goal];
        let text = tables(&one);
        let line = text.lines().find(|line| line.contains("step")).expect("a line");
        for part in ["100.0 us", "60.00 us", "40.00 us", "2.000", "1 on", "7"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        let less = "step takes 80.00 us by the links of NICs alone, one message after the other (it took 1.250 of that), 70.00 us where each";
        assert!(text.contains(less), "{text}");
        assert!(!text.contains("collectives  algorithm"), "there are none: {text}");
        let mut times =
            JointTimes { last_begin: at(10), last_end: at(50), begun: 2, done: 2, ..JointTimes::default() };
        times.first_begin = at(4);
        let sum = JointResult {
            operation: Operation::AllReduce,
            algorithm: Some(Algorithm::Ring),
            group: 0,
            ranks: 2,
            root: None,
            size: 1_000_000,
            busiest: None,
            parts: (1, 1),
            first: (0, 0),
            times,
            ideal: Some(Span::from_micros(20)),
        };
        one.goals[0].joint = vec![sum, JointResult { times: JointTimes::default(), ..sum }];
        let text = tables(&one);
        let line = text.lines().find(|line| line.contains("all-reduce")).expect("a line");
        for part in ["ring", "1 of 2", "1.000 MB", "6.000 us", "40.00 us", "200.0 Gb/s", "2.000"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        one.goals[0].path = None;
        one.goals[0].replays = None;
        one.goals[0].ranks[1].undone = 2;
        one.goals[0].failed = true;
        let text = tables(&one);
        assert!(text.contains("5 of 7, then failed"), "{text}");
    }
}
