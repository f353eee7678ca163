//! What is printed of collectives: a line for each, with the bandwidths that NCCL's tests report.

use super::{fit, lines, table};
use crate::format::{number, of_each, of_seeds, or_dash, rate, size, time};
use roci_lab::batch::{CollectiveSum, Names};
use roci_lab::results::{CollectiveResult, Results};

const HEADER: [&str; 12] = [
    "collective",
    "operation",
    "algorithm",
    "ranks",
    "size",
    "iterations",
    "time mean",
    "max",
    "algbw",
    "busbw",
    "over ideal",
    "last",
];

/// A line for each collective; nothing where there is none.
pub(super) fn tables(results: &Results) -> String {
    if results.collectives.is_empty() {
        return String::new();
    }
    let mut table = table(&HEADER);
    for it in &results.collectives {
        table.add_row(row(it, results));
    }
    format!("\n{}", lines(&table))
}

/// The same of several runs: a line for each in each configuration, with means over its seeds.
pub(super) fn side_by_side(names: &Names<'_>, sums: &[CollectiveSum<'_>]) -> String {
    if sums.is_empty() {
        return String::new();
    }
    // Of one collective a configuration the name says nothing.
    let several = sums.windows(2).any(|two| two[0].label == two[1].label);
    let first: Vec<&str> =
        names.headings(&SIDE_BY_SIDE).into_iter().chain(several.then_some("collective")).collect();
    let mut table = table(&first.iter().copied().chain(SIDE_BY_SIDE).collect::<Vec<_>>());
    for sum in sums {
        let failed = match sum.failed {
            0 => String::new(),
            _ if sum.runs == 1 => ", failed".to_owned(),
            failed => format!(", failed with {failed} of {} seeds", sum.runs),
        };
        let first = names.of(sum.label).into_iter().chain(several.then_some(sum.name)).map(str::to_owned);
        table.add_row(first.chain([
            sum.of.operation.name().to_owned(),
            sum.of.algorithm.name().to_owned(),
            sum.of.ranks.to_string(),
            size(sum.of.bytes),
            format!("{} of {}{failed}", of_each(sum.done, sum.runs), of_each(sum.asked, sum.runs)),
            of_seeds(sum.time.as_ref(), time),
            of_seeds(sum.algorithm_bps.as_ref(), rate),
            of_seeds(sum.bus_bps.as_ref(), rate),
            of_seeds(sum.over_ideal.as_ref(), number),
        ]));
    }
    format!("\n{}", fit::fitted(&table, first.len()))
}

const SIDE_BY_SIDE: [&str; 9] =
    ["operation", "algorithm", "ranks", "size", "iterations", "time mean", "algbw", "busbw", "over ideal"];

fn row(it: &CollectiveResult, results: &Results) -> Vec<String> {
    let times = it.times();
    let mean = times.map(|(mean, ..)| mean);
    let failed = if it.failed { ", then failed" } else { "" };
    let last = it.last_most_often().map(|(host, count)| match it.iterations.len() {
        1 => results.host(host).to_owned(),
        all => format!("{}, {count} of {all}", results.host(host)),
    });
    vec![
        results.traffic[it.table].name.clone(),
        it.operation.name().to_owned(),
        it.algorithm.name().to_owned(),
        it.ranks.to_string(),
        size(it.bytes),
        format!("{} of {}{failed}", it.iterations.len(), it.asked),
        or_dash(mean.map(time)),
        or_dash(times.map(|(.., most)| time(most))),
        or_dash(mean.map(|mean| rate(it.algorithm_bps(mean)))),
        or_dash(mean.map(|mean| rate(it.bus_bps(mean)))),
        or_dash(mean.and_then(|mean| it.over_ideal(mean)).map(number)),
        or_dash(last),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::figures::statistics::Estimate;
    use roci_lab::results::{Iteration, TrafficResult};
    use roci_lab::traffic::{Algorithm, Operation};
    use roci_units::{Instant, Span};

    #[test]
    fn a_collective_has_a_line_and_other_traffic_has_none() {
        let mut one = results(2);
        assert_eq!(tables(&one), "");
        let kind = "collective";
        one.traffic = vec![TrafficResult {
            name: "sum".to_owned(),
            kind,
            flows: 0..2,
            offered: None,
            pattern: Vec::new(),
            priorities: vec![3],
        }];
        let at = |micros| Instant::ZERO + Span::from_micros(micros);
        let iteration = |start, end| Iteration {
            start: at(start),
            first_end: at(end),
            end: at(end),
            last: 1,
            slowest: None,
        };
        let mut sum = CollectiveResult {
            table: 0,
            operation: Operation::AllReduce,
            algorithm: Algorithm::Ring,
            ranks: 4,
            root: None,
            bytes: 1_000_000,
            busiest: None,
            channels: 1,
            chunks: 1,
            asked: 2,
            iterations: vec![iteration(0, 90), iteration(90, 200)],
            ideal: Some(Span::from_micros(80)),
            failed: false,
        };
        one.collectives = vec![sum.clone()];
        let last = one.host(1).to_owned();
        let told = tables(&one);
        for value in
            ["sum", "all-reduce", "2 of 2", "100.0 us", "110.0 us", "80.00 Gb/s", "120.0 Gb/s", "1.250"]
        {
            assert!(told.contains(value), "{value} in {told}");
        }
        assert!(told.contains(&format!("{last}, 2 of 2")), "{told}");
        (sum.failed, sum.ideal) = (true, None);
        sum.iterations.clear();
        one.collectives = vec![sum];
        let told = tables(&one);
        assert!(told.contains("0 of 2, then failed") && told.contains('-'), "{told}");
    }
    #[test]
    fn of_several_runs_each_configuration_has_a_line_with_the_bandwidths() {
        let of = CollectiveResult {
            table: 0,
            operation: Operation::AllReduce,
            algorithm: Algorithm::Ring,
            ranks: 16,
            root: None,
            bytes: 1_000_000,
            busiest: None,
            channels: 1,
            chunks: 1,
            asked: 2,
            iterations: Vec::new(),
            ideal: None,
            failed: false,
        };
        let bps = |values: &[f64]| Estimate::of(values);
        let sum = |label, name, bus_bps| CollectiveSum {
            label,
            name,
            of: &of,
            done: 3,
            asked: 4,
            runs: 2,
            failed: 1,
            time: None,
            algorithm_bps: bps(&[8e9]),
            bus_bps,
            over_ideal: None,
        };
        assert_eq!(side_by_side(&Names::default(), &[]), "");
        let told = side_by_side(
            &Names::default(),
            &[sum("a", "x", bps(&[15e9])), sum("b", "x", bps(&[14e9, 16e9]))],
        );
        for value in
            ["a", "1.500 of 2, failed with 1 of 2 seeds", "8.000 Gb/s", "15.00 Gb/s", "15.00 Gb/s ± "]
        {
            assert!(told.contains(value), "{value} in {told}");
        }
        assert!(!told.contains("collective"), "one has no need of its name: {told}");
        let two = side_by_side(&Names::default(), &[sum("a", "reduce", None), sum("a", "gather", None)]);
        assert!(two.contains("collective") && two.contains("reduce") && two.contains("gather"), "{two}");
    }
}
