//! Priorities, where there are several: `priorities.csv`, one line for each priority of each way of each link (RFC 4180), and the
//! sums in `summary.json`.

use super::flows::quoted;
use crate::results::{LinkResult, PriorityResult, Results};
use serde::Serialize;
use std::io::{self, Write};

const HEADER: &str =
    "link,priority,packets,tx_bytes,drops,ecn_marks,pause_received,paused_s,max_queue_bytes,lost,corrupted";

/// Writes the priorities of `results`.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for (link, of) in results.priorities() {
        let PriorityResult {
            priority,
            packets,
            tx_bytes,
            drops,
            ecn_marks,
            pause_received,
            lost,
            corrupted,
            ..
        } = of;
        let (name, paused) = (quoted(&link.name), of.paused.as_secs_f64());
        let deepest = of.max_queue_bytes.map_or_else(String::new, |octets| octets.to_string());
        writeln!(
            out,
            "{name},{priority},{packets},{tx_bytes},{drops},{ecn_marks},{pause_received},{paused},{deepest},{lost},{corrupted}"
        )?;
    }
    Ok(())
}

/// One of `priorities`: all ways of links together.
#[derive(Serialize)]
pub(super) struct PriorityRecord<'a> {
    priority: u8,
    packets: u64,
    tx_bytes: u64,
    drops: u64,
    ecn_marks: u64,
    pause_received: u64,
    paused_s: f64,
    lost: u64,
    corrupted: u64,
    max_queue_bytes: Option<u64>,
    deepest_queue: Option<&'a str>,
}

impl<'a> PriorityRecord<'a> {
    pub(super) fn new(&(ref sum, deepest): &(PriorityResult, Option<&'a LinkResult>)) -> Self {
        Self {
            priority: sum.priority,
            packets: sum.packets,
            tx_bytes: sum.tx_bytes,
            drops: sum.drops,
            ecn_marks: sum.ecn_marks,
            pause_received: sum.pause_received,
            paused_s: sum.paused.as_secs_f64(),
            lost: sum.lost,
            corrupted: sum.corrupted,
            max_queue_bytes: sum.max_queue_bytes,
            deepest_queue: deepest.map(|link| link.name.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::with_priorities;

    #[test]
    fn each_priority_of_each_way_has_a_line_and_a_host_no_depth() {
        let mut csv = Vec::new();
        write(&mut csv, &with_priorities()).unwrap();
        let expected = [
            HEADER,
            "s0>leaf2,0,100,100000,0,0,0,0,,0,0",
            "s0>leaf2,3,300,300000,0,0,4,0.00009,,4,2",
            "leaf2>root,0,100,100000,7,0,0,0,50000,0,0",
            "leaf2>root,3,300,300000,0,25,0,0,40000,0,0\n",
        ];
        assert_eq!(String::from_utf8(csv).unwrap(), expected.join("\n"));
    }

    #[test]
    fn the_summary_has_the_sums_of_each_priority_and_where_its_deepest_queue_was() {
        let results = with_priorities();
        let sums = results.priority_sums();
        let records: Vec<_> =
            sums.iter().map(|sum| serde_json::to_value(PriorityRecord::new(sum)).unwrap()).collect();
        let record = |priority: u8,
                      packets: u64,
                      drops: u64,
                      marks: u64,
                      pauses: u64,
                      paused: f64,
                      deepest: u64| {
            serde_json::json!({
                "priority": priority, "packets": packets, "tx_bytes": 1_000 * packets, "drops": drops, "ecn_marks": marks,
                "pause_received": pauses, "paused_s": paused, "lost": pauses, "corrupted": pauses / 2, "max_queue_bytes": deepest, "deepest_queue": "leaf2>root",
            })
        };
        assert_eq!(records, [record(0, 200, 7, 0, 0, 0.0, 50_000), record(3, 600, 0, 25, 4, 9e-5, 40_000)]);
    }
}
