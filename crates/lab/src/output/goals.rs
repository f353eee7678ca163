//! What `summary.json` says of a GOAL schedule, and `ranks.csv`: one line per rank, for spreadsheets (RFC 4180).

use super::flows::quoted;
use crate::results::{CriticalPath, GoalResult, Results};
use serde::Serialize;
use std::io::{self, Write};

/// One of `goals`.
#[derive(Serialize)]
pub(crate) struct GoalRecord<'a> {
    name: &'a str,
    ranks: usize,
    operations: u64,
    undone: u64,
    failed: bool,
    time_s: Option<f64>,
    last_rank: Option<usize>,
    last_host: Option<&'a str>,
    computed_s: f64,
    messages: u64,
    message_bytes: u64,
    critical_path: Option<PathRecord>,
}

/// What a schedule's time went into.
#[derive(Serialize)]
struct PathRecord {
    late_s: f64,
    computed_s: f64,
    overhead_s: f64,
    messages_s: f64,
    messages: u64,
    ideal_s: f64,
    over_ideal: Option<f64>,
}

impl PathRecord {
    fn new(path: &CriticalPath) -> Self {
        Self {
            late_s: path.late.as_secs_f64(),
            computed_s: path.computed.as_secs_f64(),
            overhead_s: path.overhead.as_secs_f64(),
            messages_s: path.messages.as_secs_f64(),
            messages: path.count(),
            ideal_s: path.ideal.as_secs_f64(),
            over_ideal: path.over_ideal(),
        }
    }
}

impl<'a> GoalRecord<'a> {
    pub(crate) fn new(it: &GoalResult, results: &'a Results) -> Self {
        let totals = it.totals();
        let last = it.path.as_ref().and_then(|_| it.last());
        Self {
            name: &results.traffic[it.table].name,
            ranks: it.ranks.len(),
            operations: totals.operations,
            undone: totals.undone,
            failed: it.failed,
            time_s: it.seconds(),
            last_rank: last.map(|(rank, _)| rank),
            last_host: last.map(|(_, rank)| results.host(rank.host)),
            computed_s: totals.computed.as_secs_f64(),
            messages: totals.sent,
            message_bytes: totals.sent_bytes,
            critical_path: it.path.as_ref().map(PathRecord::new),
        }
    }
}

const HEADER: &str =
    "goal,rank,host,operations,undone,end_s,computed_s,sent,sent_bytes,received,received_bytes";

/// Writes the ranks of all schedules of `results`.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for goal in &results.goals {
        let name = quoted(&results.traffic[goal.table].name);
        for (number, rank) in goal.ranks.iter().enumerate() {
            let host = quoted(results.host(rank.host));
            let end = rank.end.map_or_else(String::new, |end| end.as_secs_f64().to_string());
            writeln!(
                out,
                "{name},{number},{host},{},{},{end},{},{},{},{},{}",
                rank.operations,
                rank.undone,
                rank.computed.as_secs_f64(),
                rank.sent,
                rank.sent_bytes,
                rank.received,
                rank.received_bytes
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_results::with_goal;
    use super::*;

    #[test]
    fn each_rank_has_a_line_with_as_many_fields_as_there_are_columns() {
        let mut csv = Vec::new();
        write(&mut csv, &with_goal()).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 3, "{csv}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        assert_eq!(rows[1], ["0", "0", "s0", "3", "0", "0.00004", "0.00003", "1", "1000", "0", "0"]);
        assert_eq!(rows[2], ["0", "1", "s1", "2", "0", "0.0001", "0.00002", "0", "0", "1", "1000"]);
    }

    #[test]
    fn the_summary_tells_what_the_time_went_into() {
        let results = with_goal();
        let record = serde_json::to_value(GoalRecord::new(&results.goals[0], &results)).unwrap();
        let expected = serde_json::json!({
            "name": "0", "ranks": 2, "operations": 5, "undone": 0, "failed": false, "time_s": 1e-4,
            "last_rank": 1, "last_host": "s1", "computed_s": 5e-5, "messages": 1, "message_bytes": 1000,
            "critical_path": {
                "late_s": 0.0, "computed_s": 5e-5, "overhead_s": 1e-5, "messages_s": 4e-5, "messages": 1,
                "ideal_s": 2e-5, "over_ideal": 2.0,
            },
        });
        assert_eq!(record, expected);
        let mut undone = results;
        undone.goals[0].path = None;
        let record = serde_json::to_value(GoalRecord::new(&undone.goals[0], &undone)).unwrap();
        assert!(
            record["time_s"].is_null() && record["last_rank"].is_null() && record["critical_path"].is_null()
        );
    }
}
