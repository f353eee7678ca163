//! How deep queues were.

use super::{lines, table};
use crate::format::{octets_of, size, time};
use roci_lab::results::Results;

/// The deepest queues, where they were sampled.
pub(super) fn table_of(results: &Results) -> String {
    /// As many have a line.
    const TOLD: usize = 4;
    let depths = results.series.depths();
    let Some(interval) = results.series.interval().filter(|_| !depths.is_empty()) else {
        return String::new();
    };
    let every = format!("queue, each {}", time(interval.as_secs_f64()));
    let mut table = table(&[every.as_str(), "mean", "median", "p99", "most"]);
    for depth in depths.iter().take(TOLD) {
        table.add_row([
            depth.queue.clone(),
            octets_of(depth.mean_bytes),
            size(depth.p50_bytes),
            size(depth.p99_bytes),
            size(depth.max_bytes),
        ]);
    }
    format!("\n{}", lines(&table))
}
