//! What `summary.json` says of a `[[traffic]]` table.

use super::summary::OfferedRecord;
use crate::results::{Results, TrafficResult};
use serde::Serialize;

/// One of `traffic`.
#[derive(Serialize)]
pub(crate) struct TrafficRecord<'a> {
    name: &'a str,
    kind: &'static str,
    flows: usize,
    completed: usize,
    failed: usize,
    running: usize,
    delivered_bytes: u64,
    goodput_bps: Option<f64>,
    offered: Option<OfferedRecord>,
    fairness: Option<f64>,
    fct_mean_s: Option<f64>,
    fct_p50_s: Option<f64>,
    fct_p95_s: Option<f64>,
    fct_p99_s: Option<f64>,
    fct_max_s: Option<f64>,
    slowdown_mean: Option<f64>,
    slowdown_p50: Option<f64>,
    slowdown_p95: Option<f64>,
    slowdown_p99: Option<f64>,
    slowdown_max: Option<f64>,
    retransmitted: u64,
    timeouts: u64,
}

impl<'a> TrafficRecord<'a> {
    pub(crate) fn new(traffic: &'a TrafficResult, results: &Results) -> Self {
        let flows = results.flows_of(traffic);
        let (times, slowdowns) = (flows.completion_times(), flows.slowdowns());
        Self {
            name: &traffic.name,
            kind: traffic.kind,
            flows: flows.flows.len(),
            completed: flows.completed().count(),
            failed: flows.failed().count(),
            running: flows.running().count(),
            delivered_bytes: flows.delivered(),
            goodput_bps: flows.total_goodput_bps(),
            offered: OfferedRecord::new(flows),
            fairness: flows.fairness(),
            fct_mean_s: times.mean(),
            fct_p50_s: times.percentile(50),
            fct_p95_s: times.percentile(95),
            fct_p99_s: times.percentile(99),
            fct_max_s: times.max(),
            slowdown_mean: slowdowns.mean(),
            slowdown_p50: slowdowns.percentile(50),
            slowdown_p95: slowdowns.percentile(95),
            slowdown_p99: slowdowns.percentile(99),
            slowdown_max: slowdowns.max(),
            retransmitted: flows.retransmitted(),
            timeouts: flows.timeouts(),
        }
    }
}
