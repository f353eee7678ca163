//! What `summary.json` says of requests and responses, and of the machines that answered.

use crate::results::{MachineResult, Results, RpcResult};
use roci_units::Span;
use serde::Serialize;

/// One of `rpcs`.
#[derive(Serialize)]
pub(crate) struct RpcRecord<'a> {
    name: &'a str,
    server: &'a str,
    threads: u16,
    connections: u32,
    request_bytes: u64,
    response_bytes: u64,
    measured_s: f64,
    answered: u64,
    per_s: Option<f64>,
    goodput_bps: Option<f64>,
    time_mean_s: Option<f64>,
    time_p50_s: Option<f64>,
    time_p99_s: Option<f64>,
    time_max_s: Option<f64>,
    line_reads: u64,
    line_read_misses: u64,
    miss_share: Option<f64>,
    credits: Option<u32>,
    delta_mean: Option<i64>,
    blocked_s: f64,
    idle_share: Option<f64>,
    idle_times: u64,
    idle_longest_s: f64,
}

impl<'a> RpcRecord<'a> {
    pub(crate) fn new(it: &RpcResult, results: &'a Results) -> Self {
        let seconds = |time: Option<Span>| time.map(Span::as_secs_f64);
        Self {
            name: &results.traffic[it.table].name,
            server: results.host(it.server),
            threads: it.threads,
            connections: it.connections,
            request_bytes: it.request,
            response_bytes: it.response,
            measured_s: it.measured.as_secs_f64(),
            answered: it.answered,
            per_s: it.per_second(),
            goodput_bps: it.goodput_bps(),
            time_mean_s: seconds(it.times.mean()),
            time_p50_s: seconds(it.times.percentile(50)),
            time_p99_s: seconds(it.times.percentile(99)),
            time_max_s: seconds(it.times.max()),
            line_reads: it.reads,
            line_read_misses: it.read_misses,
            miss_share: it.miss_share(),
            credits: it.share,
            delta_mean: it.delta_mean,
            blocked_s: it.blocked.as_secs_f64(),
            idle_share: it.idle_share(),
            idle_times: it.idle.count,
            idle_longest_s: it.idle.longest.as_secs_f64(),
        }
    }
}

/// One of `machines`.
#[derive(Serialize)]
pub(crate) struct MachineRecord<'a> {
    host: &'a str,
    line_reads: u64,
    line_read_misses: u64,
    line_writes: u64,
    line_write_misses: u64,
    dma_lines: u64,
    dma_hits: u64,
    nic_evictions: u64,
    cpu_evictions: u64,
    memory_read_bytes: u64,
    memory_written_bytes: u64,
    max_unconsumed_bytes: u64,
    s1_s: f64,
    s2_s: f64,
    s3_s: f64,
    s4_s: f64,
    max_iio_lines: u32,
    threads_busy_s: Vec<f64>,
}

impl<'a> MachineRecord<'a> {
    pub(crate) fn new(it: &MachineResult, results: &'a Results) -> Self {
        let counters = &it.counters;
        let [s1_s, s2_s, s3_s, s4_s] = it.states.map(Span::as_secs_f64);
        Self {
            host: results.host(it.host),
            line_reads: counters.reads,
            line_read_misses: counters.read_misses,
            line_writes: counters.writes,
            line_write_misses: counters.write_misses,
            dma_lines: counters.dma_writes,
            dma_hits: counters.dma_hits,
            nic_evictions: counters.nic_evictions,
            cpu_evictions: counters.cpu_evictions,
            memory_read_bytes: counters.memory_read,
            memory_written_bytes: counters.memory_written,
            max_unconsumed_bytes: counters.most_unconsumed,
            s1_s,
            s2_s,
            s3_s,
            s4_s,
            max_iio_lines: counters.most_iio,
            threads_busy_s: it.busy.iter().map(|busy| busy.as_secs_f64()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_results::with_rpc;
    use super::*;

    #[test]
    fn the_summary_has_rates_times_and_misses_of_requests_and_the_states_of_machines() {
        let results = with_rpc();
        let record = serde_json::to_value(RpcRecord::new(&results.rpcs[0], &results)).unwrap();
        let expected = serde_json::json!({
            "name": "0", "server": "rx", "threads": 4, "connections": 8, "request_bytes": 256, "response_bytes": 32,
            "measured_s": 1e-3, "answered": 3, "per_s": 3000.0, "goodput_bps": 6_144_000.0,
            "time_mean_s": 2e-4, "time_p50_s": record["time_p50_s"], "time_p99_s": 3e-4, "time_max_s": 3e-4,
            "line_reads": 100, "line_read_misses": 25, "miss_share": 0.25, "credits": 192, "delta_mean": -20,
            "blocked_s": 5e-5, "idle_share": 0.5, "idle_times": 2, "idle_longest_s": 1.5e-3,
        });
        assert_eq!(record, expected);
        let median = record["time_p50_s"].as_f64().unwrap();
        assert!((2e-4..2.02e-4).contains(&median), "{median}");
        let record = serde_json::to_value(MachineRecord::new(&results.machines[0], &results)).unwrap();
        assert_eq!((&record["host"], &record["line_read_misses"]), (&"rx".into(), &25.into()));
        assert_eq!(
            (&record["s1_s"], &record["s3_s"], &record["s4_s"]),
            (&6e-4.into(), &1e-4.into(), &0.0.into())
        );
        assert_eq!(record["threads_busy_s"].as_array().unwrap().len(), 4);
    }
}
