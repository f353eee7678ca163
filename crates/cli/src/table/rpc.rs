//! What is printed of requests and responses: a line for each table, and one for each machine that answered.

use super::{fit, lines, table};
use crate::format::{number, of_seeds, or_dash, per_second, rate, size, time};
use roci_lab::batch::{Names, RpcSum};
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

const MACHINE: [&str; 9] =
    ["machine", "unconsumed max", "S1", "S2", "S3", "S4", "I/O lines max", "evicted unread", "memory"];

/// What stands below the machines.
const STATES: &str = "what is unconsumed is less than the ways for I/O hold (S1), than the cache holds (S2), more (S3), or fills all receive buffers (S4)";

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
    format!("\n{}\n{}  {STATES}\n", lines(&requests), lines(&machines))
}

/// The same of several runs: a line for each table in each configuration, with means over its seeds.
pub(super) fn side_by_side(names: &Names<'_>, sums: &[RpcSum<'_>]) -> String {
    if sums.is_empty() {
        return String::new();
    }
    let first: Vec<&str> = names.headings(&SIDE_BY_SIDE).into_iter().chain(["requests"]).collect();
    let mut table = table(&first.iter().copied().chain(SIDE_BY_SIDE).collect::<Vec<_>>());
    for sum in sums {
        let first = names.of(sum.label).into_iter().chain([sum.name]).map(str::to_owned);
        table.add_row(first.chain([
            sum.of.threads.to_string(),
            sum.of.connections.to_string(),
            size(sum.of.request),
            of_seeds(sum.per_second.as_ref(), per_second),
            of_seeds(sum.goodput_bps.as_ref(), rate),
            of_seeds(sum.mean.as_ref(), time),
            of_seeds(sum.p50.as_ref(), time),
            of_seeds(sum.p99.as_ref(), time),
            of_seeds(sum.miss_share.as_ref(), percent),
        ]));
    }
    format!("\n{}", fit::fitted(&table, first.len()))
}

const SIDE_BY_SIDE: [&str; 9] =
    ["threads", "connections", "size", "per second", "goodput", "time mean", "p50", "p99", "misses"];

/// Less than a hundredth of a percent is no more told apart.
fn percent(share: f64) -> String {
    match share * 100.0 {
        little if little > 0.0 && little < 0.005 => "<0.01 %".to_owned(),
        few if few < 0.1 && few > 0.0 => format!("{few:.2} %"),
        percent => format!("{} %", number(percent)),
    }
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
        or_dash(it.per_second().map(per_second)),
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
        counters.most_iio.to_string(),
        format!("{} by the NIC, {} by cores", counters.nic_evictions, counters.cpu_evictions),
        format!("{} read, {} written", size(counters.memory_read), size(counters.memory_written)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::results::{IdleTimes, Times, TrafficResult};

    #[test]
    fn requests_have_a_line_for_each_table_and_their_machine_one() {
        assert_eq!(tables(&results(1)), "");
        let mut times = Times::default();
        times.add(Span::from_micros(100));
        let mut one = results(1);
        let kind = "rpc";
        one.traffic = vec![TrafficResult {
            name: "echo".into(),
            kind,
            flows: 0..1,
            offered: None,
            pattern: Vec::new(),
            priorities: vec![3],
        }];
        one.rpcs = vec![RpcResult {
            table: 0,
            server: 0,
            threads: 2,
            connections: 8,
            request: 256,
            response: 32,
            measured: Span::from_millis(1),
            answered: 1000,
            times,
            reads: 200,
            read_misses: 50,
            blocked: Span::ZERO,
            share: Some(192),
            delta_mean: Some(-20),
            idle: IdleTimes { count: 1, sum: Span::from_micros(500), longest: Span::from_micros(500) },
        }];
        one.machines = vec![MachineResult {
            host: 0,
            counters: Default::default(),
            states: [750, 250, 0, 0].map(Span::from_micros),
            busy: vec![Span::ZERO; 2],
        }];
        let text = tables(&one);
        for told in
            ["echo", "192 - 20", "25.00 %", "1.000 M", "S4", "75.00 %", "fills all receive buffers (S4)"]
        {
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    #[test]
    fn small_shares_are_no_powers_of_ten() {
        let told = [0.0, 4e-5 / 100.0, 3.73e-4, 9.996e-4, 1.5e-3, 0.25, 1.0].map(percent);
        assert_eq!(told, ["0 %", "<0.01 %", "0.04 %", "0.10 %", "0.150 %", "25.00 %", "100.0 %"]);
    }
}
