//! What `summary.json` says of a GOAL schedule, `ranks.csv`, one line per rank, `joint.csv`, one per collective, and `critical.csv`, one per link
//! of the critical path, for spreadsheets (RFC 4180).

use super::flows::quoted;
use crate::results::{CriticalPath, GoalResult, JointKind, JointResult, LinkKind, Replays, Results};
use crate::traffic::collective::Algorithm;
use roci_units::{Instant, Span};
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
    untaken: u64,
    longer: u64,
    shorter: u64,
    critical_path: Option<PathRecord>,
    replays: Option<ReplaysRecord>,
    collectives: Vec<KindRecord>,
}

/// Collectives of one kind among as many ranks.
#[derive(Serialize)]
struct KindRecord {
    operation: &'static str,
    algorithm: Option<&'static str>,
    ranks: u32,
    count: usize,
    done: usize,
    bytes: u64,
    late_mean_s: Option<f64>,
    time_mean_s: Option<f64>,
    busbw_bps: Option<f64>,
    over_ideal: Option<f64>,
}

impl KindRecord {
    fn new(it: &JointKind) -> Self {
        Self {
            operation: it.operation.name(),
            algorithm: it.algorithm.map(Algorithm::name),
            ranks: it.ranks,
            count: it.count,
            done: it.done,
            bytes: it.bytes,
            late_mean_s: it.late_mean(),
            time_mean_s: it.time_mean(),
            busbw_bps: it.bus_bps(),
            over_ideal: it.over_ideal(),
        }
    }
}

/// How long a schedule takes where less is in its way.
#[derive(Serialize)]
struct ReplaysRecord {
    links_s: Option<f64>,
    over_links: Option<f64>,
    alone_s: Option<f64>,
    no_network_s: Option<f64>,
}

/// What a schedule's time went into.
#[derive(Serialize)]
struct PathRecord {
    late_s: f64,
    computed_s: f64,
    overhead_s: f64,
    messages_s: f64,
    messages: usize,
    collectives_s: f64,
    collectives: usize,
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
            collectives_s: path.collectives.as_secs_f64(),
            collectives: path.joint_count(),
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
            untaken: totals.untaken,
            longer: totals.longer,
            shorter: totals.shorter,
            critical_path: it.path.as_ref().map(PathRecord::new),
            replays: it.replays.map(|Replays { links, alone, no_network }| ReplaysRecord {
                links_s: links.map(Span::as_secs_f64),
                over_links: it.over_links(),
                alone_s: alone.map(Span::as_secs_f64),
                no_network_s: no_network.map(Span::as_secs_f64),
            }),
            collectives: it.joint_kinds().iter().map(KindRecord::new).collect(),
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

const JOINT_HEADER: &str = "goal,collective,label,operation,algorithm,group,ranks,bytes,channels,chunks,first_begin_s,last_begin_s,first_end_s,last_end_s,\
                            time_s,algbw_bps,busbw_bps,ideal_s,over_ideal,root";

/// Writes the collectives of all schedules of `results`.
///
/// # Errors
/// What `out` answers.
pub fn write_joint(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{JOINT_HEADER}")?;
    for goal in &results.goals {
        let name = quoted(&results.traffic[goal.table].name);
        for (number, it) in goal.joint.iter().enumerate() {
            let label = quoted(goal.label_of(it));
            let (operation, algorithm) = (it.operation.name(), it.algorithm.map_or("", Algorithm::name));
            // That of all ranks has no number.
            let group = it.group.checked_sub(1).map_or_else(String::new, |group| group.to_string());
            write!(out, "{name},{number},{label},{operation},{algorithm},{group},{},{}", it.ranks, it.size)?;
            let JointResult { times, parts: (channels, chunks), .. } = it;
            write!(out, ",{channels},{chunks}")?;
            for at in [times.first_begin, times.last_begin, times.first_end, times.last_end] {
                match at {
                    Instant::NEVER => write!(out, ",")?,
                    at => write!(out, ",{}", at.as_secs_f64())?,
                }
            }
            let figures = [
                it.time().map(Span::as_secs_f64),
                it.algorithm_bps(),
                it.bus_bps(),
                it.ideal.map(Span::as_secs_f64),
                it.over_ideal(),
            ];
            for figure in figures {
                write!(out, ",{}", figure.map_or_else(String::new, |figure| figure.to_string()))?;
            }
            writeln!(out, ",{}", it.root.map_or_else(String::new, |root| root.to_string()))?;
        }
    }
    Ok(())
}

const CRITICAL_HEADER: &str = "goal,from_s,to_s,what,rank,host,to_rank,operation,label,does,flow,ideal_s";

/// Writes the critical paths of all schedules of `results` that are done.
///
/// # Errors
/// What `out` answers.
pub fn write_critical(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{CRITICAL_HEADER}")?;
    for goal in &results.goals {
        let table = &results.traffic[goal.table];
        let name = quoted(&table.name);
        for link in goal.path.iter().flat_map(|path| &path.links) {
            let rank = goal.ranks.get(link.rank as usize).map_or("", |rank| results.host(rank.host));
            let (from, to) = (link.from.as_secs_f64(), link.to.as_secs_f64());
            write!(
                out,
                "{name},{from},{to},{},{},{},{},",
                link.kind.name(),
                link.rank,
                quoted(rank),
                link.to_rank
            )?;
            let label = quoted(goal.label(link.rank, link.operation));
            write!(out, "{},{label},{}", link.operation, goal.schedule.said(link.rank, link.does))?;
            let flow = link.line.and_then(|line| results.flows.get(table.flows.start + line as usize));
            let flow = flow.map_or_else(String::new, |flow| quoted(&flow.name.to_string()).into_owned());
            if flow.is_empty() && link.kind != LinkKind::Collective {
                writeln!(out, ",,")?;
            } else {
                writeln!(out, ",{flow},{}", link.ideal.as_secs_f64())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_results::{with_goal, with_joint};
    use super::*;
    use crate::traffic::Operation;

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
    fn each_link_of_the_critical_path_has_a_line() {
        let mut csv = Vec::new();
        write_critical(&mut csv, &with_goal()).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 5, "{csv}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        let message = [
            "0",
            "0.00003",
            "0.00007",
            "message",
            "0",
            "s0",
            "1",
            "1",
            "",
            "send 1000b to 1 tag 7",
            "a",
            "0.00002",
        ];
        assert_eq!(rows[3], message);
        assert_eq!(rows[4][3..], ["calculation", "1", "s1", "1", "1", "", "calc 30000", "", ""]);
    }

    #[test]
    fn each_collective_has_a_line_and_each_kind_its_means() {
        let results = with_joint();
        let mut csv = Vec::new();
        write_joint(&mut csv, &results).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 4, "{csv}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        assert_eq!(rows[1][..8], ["0", "0", "", "all-reduce", "ring", "0", "4", "1000000"]);
        assert_eq!(rows[1][8..15], ["2", "4", "0.00001", "0.00004", "0.00005", "0.00014", "0.0001"]);
        assert_eq!(rows[1][15..], ["80000000000", "120000000000", "0.00008", "1.25", ""]);
        assert_eq!(rows[2][10..17], ["0.00013", "0.00013", "", "", "", "", ""]);
        assert_eq!(rows[3][3..8], ["all-reduce", "", "", "1", "1000000"]);
        let mut rooted = results.clone();
        (rooted.goals[0].joint[0].operation, rooted.goals[0].joint[0].root) = (Operation::Reduce, Some(3));
        let mut csv = Vec::new();
        write_joint(&mut csv, &rooted).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let roots: Vec<_> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
        assert_eq!(roots, ["root", "3", "", ""]);
        let record = serde_json::to_value(GoalRecord::new(&results.goals[0], &results)).unwrap();
        let expected = serde_json::json!([
            {
                "operation": "all-reduce", "algorithm": "ring", "ranks": 4, "count": 2, "done": 1, "bytes": 1_000_000,
                "late_mean_s": 3e-5, "time_mean_s": 1e-4, "busbw_bps": 120e9, "over_ideal": 1.25,
            },
            {
                "operation": "all-reduce", "algorithm": null, "ranks": 1, "count": 1, "done": 1, "bytes": 1_000_000,
                "late_mean_s": 0.0, "time_mean_s": 0.0, "busbw_bps": null, "over_ideal": null,
            },
        ]);
        assert_eq!(record["collectives"], expected);
    }

    #[test]
    fn the_summary_tells_what_the_time_went_into() {
        let results = with_goal();
        let record = serde_json::to_value(GoalRecord::new(&results.goals[0], &results)).unwrap();
        let expected = serde_json::json!({
            "name": "0", "ranks": 2, "operations": 5, "undone": 0, "failed": false, "time_s": 1e-4,
            "last_rank": 1, "last_host": "s1", "computed_s": 5e-5, "messages": 1, "message_bytes": 1000, "untaken": 0,
            "longer": 0, "shorter": 0,
            "critical_path": {
                "late_s": 0.0, "computed_s": 5e-5, "overhead_s": 1e-5, "messages_s": 4e-5, "messages": 1, "collectives_s": 0.0,
                "collectives": 0,
                "ideal_s": 2e-5, "over_ideal": 2.0,
            },
            "replays": { "links_s": 8e-5, "over_links": 1.25, "alone_s": 7e-5, "no_network_s": 6e-5 },
            "collectives": [],
        });
        assert_eq!(record, expected);
        let mut undone = results;
        undone.goals[0].path = None;
        undone.goals[0].replays = None;
        let record = serde_json::to_value(GoalRecord::new(&undone.goals[0], &undone)).unwrap();
        assert!(["time_s", "last_rank", "critical_path", "replays"].iter().all(|key| record[key].is_null()));
    }
}
