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
