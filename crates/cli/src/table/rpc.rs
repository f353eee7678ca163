//! What is printed of requests and responses: a line for each table, and one for each machine that answered.

use super::{lines, table};
use crate::format::{number, or_dash, rate, size, time};
use roci_lab::results::{MachineResult, Results, RpcResult};
use roci_units::Span;

const HEADER: [&str; 12] = [
    "requests",
    "threads",
    "connections",
    "size",
    "answered",
    "per second",
    "goodput",
    "time p50",
    "p99",
    "misses",
    "credits",
    "idle",
];

const MACHINE: [&str; 8] = ["machine", "unconsumed max", "S1", "S2", "S3", "S4", "evicted unread", "memory"];

/// A line for each table of requests and each machine; nothing where there is none.
pub(super) fn tables(results: &Results) -> String {
    if results.rpcs.is_empty() {
        return String::new();
    }
    let mut requests = table(&HEADER);
    results.rpcs.iter().for_each(|it| {
        requests.add_row(row(it, results));
    });
    let mut machines = table(&MACHINE);
    results.machines.iter().for_each(|it| {
        machines.add_row(machine(it, results));
    });
    format!("\n{}\n{}", lines(&requests), lines(&machines))
}

fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

fn row(it: &RpcResult, results: &Results) -> Vec<String> {
    let seconds = |span: Option<Span>| or_dash(span.map(|span| time(span.as_secs_f64())));
    let credits = it.share.map(|share| match it.delta_mean {
        Some(delta) => format!("{share} {} {}", if delta < 0 { '-' } else { '+' }, delta.unsigned_abs()),
        None => share.to_string(),
    });
    vec![
        results.traffic[it.table].name.clone(),
        it.threads.to_string(),
        it.connections.to_string(),
        size(it.request),
        it.answered.to_string(),
        or_dash(it.per_second().map(number)),
        or_dash(it.goodput_bps().map(rate)),
        seconds(it.times.percentile(50)),
        seconds(it.times.percentile(99)),
        or_dash(it.miss_share().map(percent)),
        or_dash(credits),
        or_dash(it.idle_share().map(percent)),
    ]
}

fn machine(it: &MachineResult, results: &Results) -> Vec<String> {
    let all: f64 = it.states.iter().map(|span| span.as_secs_f64()).sum();
    let share = |span: Span| if all > 0.0 { percent(span.as_secs_f64() / all) } else { "-".to_owned() };
    let counters = &it.counters;
    let [s1, s2, s3, s4] = it.states.map(share);
    vec![
        results.host(it.host).to_owned(),
        size(counters.most_unconsumed),
        s1,
        s2,
        s3,
        s4,
        format!("{} by the NIC, {} by cores", counters.nic_evictions, counters.cpu_evictions),
        format!("{} read, {} written", size(counters.memory_read), size(counters.memory_written)),
    ]
}
