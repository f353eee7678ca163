//! What is printed of collectives: a line for each, with the bandwidths that NCCL's tests report.

use super::{lines, table};
use crate::format::{number, or_dash, rate, size, time};
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
    use super::super::tests::results;
    use super::*;
    use roci_lab::results::{Iteration, TrafficResult};
    use roci_lab::traffic::{Algorithm, Operation};
    use roci_units::{Instant, Span};

    #[test]
    fn a_collective_has_a_line_and_other_traffic_has_none() {
        let mut one = results(2);
        assert_eq!(tables(&one), "");
        let kind = "collective";
        one.traffic = vec![TrafficResult { name: "sum".to_owned(), kind, flows: 0..2, offered: None }];
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
            bytes: 1_000_000,
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
}
