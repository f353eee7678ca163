//! What `summary.json` says of a collective, and `collectives.csv`: one line per iteration, for spreadsheets (RFC 4180).

use super::flows::quoted;
use crate::results::{CollectiveResult, Results};
use serde::Serialize;
use std::io::{self, Write};

/// One of `collectives`.
#[derive(Serialize)]
pub(crate) struct CollectiveRecord<'a> {
    name: &'a str,
    operation: &'static str,
    algorithm: &'static str,
    root: Option<u32>,
    ranks: u32,
    bytes: u64,
    channels: u32,
    chunks: u32,
    iterations: u32,
    completed: usize,
    failed: bool,
    time_mean_s: Option<f64>,
    time_min_s: Option<f64>,
    time_max_s: Option<f64>,
    algbw_bps: Option<f64>,
    busbw_bps: Option<f64>,
    ideal_s: Option<f64>,
    over_ideal: Option<f64>,
    last_host: Option<&'a str>,
    last_host_iterations: usize,
}

impl<'a> CollectiveRecord<'a> {
    pub(crate) fn new(it: &CollectiveResult, results: &'a Results) -> Self {
        let times = it.times();
        let mean = times.map(|(mean, ..)| mean);
        let last = it.last_most_often();
        Self {
            name: &results.traffic[it.table].name,
            operation: it.operation.name(),
            algorithm: it.algorithm.name(),
            root: it.root,
            ranks: it.ranks,
            bytes: it.bytes,
            channels: it.channels,
            chunks: it.chunks,
            iterations: it.asked,
            completed: it.iterations.len(),
            failed: it.failed,
            time_mean_s: mean,
            time_min_s: times.map(|(_, least, _)| least),
            time_max_s: times.map(|(.., most)| most),
            algbw_bps: mean.map(|mean| it.algorithm_bps(mean)),
            busbw_bps: mean.map(|mean| it.bus_bps(mean)),
            ideal_s: it.ideal.map(|ideal| ideal.as_secs_f64()),
            over_ideal: mean.and_then(|mean| it.over_ideal(mean)),
            last_host: last.map(|(host, _)| results.host(host)),
            last_host_iterations: last.map_or(0, |(_, count)| count),
        }
    }
}

const HEADER: &str = "collective,iteration,start_s,end_s,time_s,algbw_bps,busbw_bps,over_ideal,first_end_s,last_host,\
                      slowest_step,slowest_step_s,slowest_step_host";

/// Writes the iterations of all collectives of `results`.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for collective in &results.collectives {
        let name = quoted(&results.traffic[collective.table].name);
        for (number, it) in collective.iterations.iter().enumerate() {
            let time = it.time().as_secs_f64();
            let (start, end, first) =
                (it.start.as_secs_f64(), it.end.as_secs_f64(), it.first_end.as_secs_f64());
            let (algbw, busbw) = (collective.algorithm_bps(time), collective.bus_bps(time));
            let over = collective.over_ideal(time).map_or_else(String::new, |over| over.to_string());
            let last = quoted(results.host(it.last));
            let slowest = it.slowest.map_or_else(
                || ",,".to_owned(),
                |slow| {
                    let host = quoted(results.host(slow.host));
                    format!("{},{},{host}", slow.step, slow.time.as_secs_f64())
                },
            );
            writeln!(
                out,
                "{name},{number},{start},{end},{time},{algbw},{busbw},{over},{first},{last},{slowest}"
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::test_results::with_collective;
    use super::*;

    #[test]
    fn each_iteration_has_a_line_with_as_many_fields_as_there_are_columns() {
        let mut csv = Vec::new();
        write(&mut csv, &with_collective()).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 3, "{csv}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        assert_eq!(rows[1][..8], ["0", "0", "0", "0.0001", "0.0001", "80000000000", "120000000000", "1.25"]);
        assert_eq!(rows[1][8..], ["0.00009", "s1", "3", "0.00004", "s0"]);
        assert_eq!(rows[2][10..], ["", "", ""]);
    }

    #[test]
    fn the_summary_has_the_means_and_who_was_last() {
        let results = with_collective();
        let record = serde_json::to_value(CollectiveRecord::new(&results.collectives[0], &results)).unwrap();
        let expected = serde_json::json!({
            "name": "0", "operation": "all-reduce", "algorithm": "ring", "root": null, "ranks": 4, "bytes": 1_000_000,
            "channels": 1, "chunks": 2, "iterations": 3, "completed": 2, "failed": true,
            "time_mean_s": 1e-4, "time_min_s": 1e-4, "time_max_s": 1e-4,
            "algbw_bps": 80e9, "busbw_bps": 120e9, "ideal_s": 8e-5, "over_ideal": 1.25,
            "last_host": "s1", "last_host_iterations": 2,
        });
        assert_eq!(record, expected);
    }
}
