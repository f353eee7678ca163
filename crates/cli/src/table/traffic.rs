//! What is printed of each `[[traffic]]` table, where there are several: how the flows of one fared beside those of another.

use super::configurations::summed;
use super::{SPREAD, lines, spread, table};
use crate::format::{number, or_dash, rate};
use roci_lab::batch::{Metric, Names, Sum};
use roci_lab::results::{FlowSet, Results};

/// A line for each table. Nothing where there is one: what is said of all flows is said of its own.
pub(super) fn tables(results: &Results) -> String {
    if results.traffic.len() < 2 {
        return String::new();
    }
    let sets: Vec<FlowSet<'_>> = results.traffic.iter().map(|traffic| results.flows_of(traffic)).collect();
    // What few tables have is a column where one has it.
    let offered = sets.iter().any(|flows| flows.offered_bps().is_some());
    let fairness = sets.iter().any(|flows| flows.fairness().is_some());
    let timeouts = sets.iter().any(|flows| flows.timeouts() > 0);
    let mut header = vec!["traffic", "kind", "flows"];
    header.extend(SPREAD);
    header.extend(offered.then_some("offered"));
    header.push("goodput");
    header.extend(fairness.then_some("fairness"));
    header.push("resent");
    header.extend(timeouts.then_some("timeouts"));
    let mut table = table(&header);
    for (traffic, flows) in results.traffic.iter().zip(sets) {
        let mut row = vec![traffic.name.clone(), traffic.kind.to_owned(), done(flows)];
        row.extend(spread(&flows.completion_times(), &flows.slowdowns()));
        row.extend(offered.then(|| or_dash(flows.offered_bps().map(rate))));
        row.push(or_dash(flows.total_goodput_bps().map(rate)));
        row.extend(fairness.then(|| or_dash(flows.fairness().map(number))));
        row.push(flows.retransmitted().to_string());
        row.extend(timeouts.then(|| flows.timeouts().to_string()));
        table.add_row(row);
    }
    format!("\n{}", lines(&table))
}

/// The same of several runs: a line for each table in each configuration, with what is known of flows.
pub(super) fn side_by_side(names: &Names<'_>, sums: &[Sum<'_>]) -> String {
    let says = |metric: &Metric| {
        let values = sums.iter().flat_map(|sum| &sum.values).filter(|(it, _)| it == metric);
        let mut known = values.filter_map(|(_, value)| value.as_ref());
        match metric {
            Metric::Timeouts | Metric::Reordered => known.any(|count| count.mean > 0.0),
            _ => known.next().is_some(),
        }
    };
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(says).collect();
    if sums.is_empty() { String::new() } else { format!("\n{}", summed(names, sums, &metrics)) }
}

/// How many of `flows` are done, of those that have an end, and how many failed.
fn done(flows: FlowSet<'_>) -> String {
    let (done, all, endless) = (flows.completed().count(), flows.flows.len(), flows.endless());
    let text = match endless {
        _ if endless > 0 && endless == all => format!("{all} endless"),
        _ => format!("{done} of {}", all - endless),
    };
    match flows.failed().count() {
        0 => text,
        failed => format!("{text}, {failed} failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_endpoint::Status;
    use roci_lab::results::{FlowStatus, TrafficResult};
    use roci_units::Instant;
    use std::ops::Range;

    fn part(name: &str, kind: &'static str, flows: Range<usize>) -> TrafficResult {
        TrafficResult {
            name: name.to_owned(),
            kind,
            flows,
            offered: None,
            pattern: Vec::new(),
            priorities: vec![3],
        }
    }

    fn cells(line: &str) -> Vec<&str> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
    }

    #[test]
    fn each_of_several_tables_of_traffic_has_a_line_and_a_single_one_has_none() {
        let mut one = results(5);
        one.traffic = vec![part("0", "incast", 0..5)];
        assert_eq!(tables(&one), "");
        one.traffic = vec![part("0", "incast", 0..2), part("background", "poisson", 2..5)];
        one.flows[1].retransmitted = 7;
        one.flows[4].status = FlowStatus::Running;
        one.flows[4].end = Instant::NEVER;
        let text = tables(&one);
        let rows: Vec<Vec<&str>> = text.trim_start_matches('\n').lines().map(cells).collect();
        assert_eq!(rows.len(), 3, "{text}");
        let value =
            |row: usize, heading: &str| rows[row][rows[0].iter().position(|it| *it == heading).unwrap()];
        assert_eq!([value(1, "traffic"), value(1, "kind"), value(1, "flows")], ["0", "incast", "2 of 2"]);
        assert_eq!([value(2, "traffic"), value(2, "flows")], ["background", "2 of 3"]);
        assert_eq!([value(1, "resent"), value(2, "resent")], ["7", "0"]);
        assert_eq!([value(1, "slowdown mean"), value(1, "goodput")], ["1.250", "160.0 Gb/s"]);
        assert!(!text.contains("timeouts") && !text.contains("offered"), "no table has any: {text}");
    }

    #[test]
    fn flows_that_failed_and_flows_without_an_end_are_told_of_their_table() {
        let mut one = results(4);
        one.traffic = vec![part("0", "closed-loop", 0..2), part("1", "flows", 2..4)];
        for flow in &mut one.flows[..2] {
            (flow.status, flow.ideal, flow.end) = (FlowStatus::Running, None, Instant::NEVER);
        }
        one.flows[3].status = FlowStatus::Completed(Status::TransportRetryCounterExceeded);
        one.flows[3].timeouts = 8;
        let text = tables(&one);
        assert!(text.contains("2 endless") && text.contains("1 of 2, 1 failed"), "{text}");
        assert!(text.contains("timeouts"), "{text}");
    }
}
