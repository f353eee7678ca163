//! Several runs side by side: a line for each configuration.

use super::run::{LONGER_TIMEOUT, misses, resent_in_vain};
use super::{BY_CHANCE, collective, differences, fit, goal, priorities, program, rpc, table, traffic};
use crate::format::{estimate, float, of_each, or_dash};
use roci_lab::batch::{Group, Metric, Names, Sum};
use roci_lab::figures::statistics::Estimate;
use roci_lab::results::Results;
use roci_lab::scenario::overrides::seeds_in_words;
use roci_units::Span;

/// The tables of a group of several runs, and what is to be said of them.
pub(super) fn tables(group: &Group, results: &[Results]) -> String {
    let sums = group.sums(results);
    let metrics: Vec<Metric> =
        Metric::ALL.into_iter().filter(|metric| says_something(*metric, &sums, results)).collect();
    let names = group.names();
    let mut text = title(group, sums.len(), results.len());
    text.push_str(&summed(&names, &sums, &metrics));
    text.push_str(&differences::side_by_side(group, results));
    text.push_str(&traffic::side_by_side(&names, &group.sums_of_traffic(results)));
    text.push_str(&differences::of_traffic(group, results));
    text.push_str(&collective::side_by_side(&names, &group.sums_of_collectives(results)));
    text.push_str(&goal::side_by_side(&names, &group.sums_of_goals(results)));
    text.push_str(&rpc::side_by_side(&names, &group.sums_of_rpcs(results)));
    text.push_str(&differences::of_tables(group, results));
    text.push_str(&priorities::of_several(group, results));
    text.push_str(&speed(results));
    if results.iter().any(|results| results.endless() > 0) {
        text.push_str("\n  flows without an end, as in a closed loop without `count`, ran until the run stopped and do not count as done\n");
    }
    text.push_str(&in_vain(group, results));
    text.push_str(&of_single_runs(group, sums.len(), results));
    text
}

/// What was run: so many `kinds` of configurations, in so many `runs`.
fn title(group: &Group, kinds: usize, runs: usize) -> String {
    // All configurations run with the same, unless each brings its own.
    let mut seeds: Vec<u64> = Vec::new();
    for run in &group.runs {
        if !seeds.contains(&run.seed) {
            seeds.push(run.seed);
        }
    }
    let seeds = seeds_in_words(&seeds);
    match kinds {
        1 => format!("{}: {seeds}, means with 95 % confidence intervals\n\n", group.title),
        _ if kinds == runs => format!("{}: {runs} runs, {seeds}\n\n", group.title),
        _ => format!(
            "{}: {kinds} configurations, {seeds} each, means with 95 % confidence intervals\n\n",
            group.title
        ),
    }
}

/// Whether a column for `metric` would say something of these runs.
fn says_something(metric: Metric, sums: &[Sum<'_>], results: &[Results]) -> bool {
    let has = |sum: &Sum<'_>| sum.values.iter().any(|(it, value)| *it == metric && value.is_some());
    match metric {
        // What was offered is known of loads by the clock alone, and fairness is one among flows of one size.
        Metric::Offered | Metric::Fairness => sums.iter().any(has),
        // Queues that held nothing in any run.
        Metric::QueueMean | Metric::QueueP99 => {
            results.iter().any(|results| results.deepest().is_some_and(|(mean, _)| mean > 0.0))
        }
        // What was chosen in the same way is as uneven as before, but for chance.
        Metric::Imbalance => {
            let means = sums.iter().filter_map(|sum| sum.values.iter().find(|(it, _)| *it == metric)?.1);
            let (least, most) = means.fold((f64::MAX, 0.0), |(least, most): (f64, f64), it| {
                (least.min(it.mean), most.max(it.mean))
            });
            most - least > BY_CHANCE
        }
        // Few runs have any.
        Metric::Timeouts => results.iter().any(|results| results.timeouts() > 0),
        Metric::Reordered => results.iter().any(|results| results.all().reordered() > 0),
        Metric::Lost => results.iter().any(|results| results.lost() > 0),
        Metric::Paused => results.iter().any(|results| results.paused() > Span::ZERO),
        _ => true,
    }
}

/// How much was simulated, and how fast.
fn speed(results: &[Results]) -> String {
    let hops: u64 = results.iter().map(|results| results.packet_hops).sum();
    let cpu: f64 = results.iter().map(|results| results.run.cpu_s).sum();
    let per_second = if cpu > 0.0 { float(hops) / cpu / 1e6 } else { 0.0 };
    format!(
        "\n  {:.2} M packet-hops in {cpu:.3} s of CPU time: {per_second:.2} M per second\n",
        float(hops) / 1e6
    )
}

/// The first run that sent packets again in vain, and how many more did.
fn in_vain(group: &Group, results: &[Results]) -> String {
    let mut in_vain = group.runs.iter().zip(results).filter_map(|(run, of)| Some((run, resent_in_vain(of)?)));
    let Some((run, vain)) = in_vain.next() else { return String::new() };
    let more = match in_vain.count() {
        0 => String::new(),
        more => format!("; the like in {more} more runs"),
    };
    format!("\n  {}: {vain}{more}\n    {LONGER_TIMEOUT}\n", group.full_label(run))
}

/// Failures and warnings of single runs, each under its seed, and under its configuration where there are several `kinds`.
fn of_single_runs(group: &Group, kinds: usize, results: &[Results]) -> String {
    let mut text = String::new();
    for (run, results) in group.runs.iter().zip(results) {
        let failed = results.programs.iter().map(|it| program::failures(it, results));
        let warnings = results.warnings.iter().map(|warning| format!("\n  warning: {warning}\n"));
        let behind = [program::unheard(results), program::strained(results), misses(results)];
        let failed: Vec<_> = failed.chain(behind).chain(warnings).collect();
        if failed.iter().any(|text| !text.is_empty()) {
            let label = if kinds > 1 { format!("{}, ", run.label) } else { String::new() };
            text.push_str(&format!("\n  {label}seed {}:{}", results.seed, failed.concat()));
        }
    }
    text
}

/// A line for each of `sums` with its `metrics`; with the name of its traffic, where it is of a part.
pub(super) fn summed(names: &Names<'_>, sums: &[Sum<'_>], metrics: &[Metric]) -> String {
    let traffic = sums.iter().any(|sum| sum.traffic.is_some()).then_some("traffic");
    let figures: Vec<&str> = traffic.into_iter().chain(metrics.iter().map(|it| heading(*it))).collect();
    let first = names.headings(&figures).len() + usize::from(traffic.is_some());
    let header: Vec<&str> = names.headings(&figures).into_iter().chain(figures).collect();
    let mut table = table(&header);
    for sum in sums {
        let cell = |(metric, value): &(Metric, Option<Estimate>)| {
            let text = or_dash(value.as_ref().map(|value| estimate(*metric, value)));
            match metric {
                Metric::Completed => format!("{text} of {}", of_flows(sum)),
                _ => text,
            }
        };
        let values = sum.values.iter().filter(|(metric, _)| metrics.contains(metric));
        let first = names.of(sum.label).into_iter().chain(sum.traffic).map(str::to_owned);
        table.add_row(first.chain(values.map(cell)));
    }
    fit::fitted(&table, first)
}

/// How many flows a run of a configuration has, and how many of them failed.
fn of_flows(sum: &Sum<'_>) -> String {
    let mean = |count: usize| of_each(count, sum.runs);
    match sum.failed {
        0 => mean(sum.flows),
        failed => format!("{}, {} failed", mean(sum.flows), mean(failed)),
    }
}

/// What stands above a metric. A percentile stands behind the mean of the same.
pub(super) const fn heading(metric: Metric) -> &'static str {
    match metric {
        Metric::Completed => "flows",
        Metric::MeanCompletion => "completion mean",
        Metric::MeanSlowdown => "slowdown mean",
        Metric::P99Completion | Metric::P99Slowdown | Metric::QueueP99 => "p99",
        Metric::Offered => "offered",
        Metric::Goodput => "goodput",
        Metric::Fairness => "fairness",
        Metric::Drops => "drops",
        Metric::Lost => "lost",
        Metric::Marks => "ECN marks",
        Metric::Pauses => "PAUSE",
        Metric::Paused => "time paused",
        Metric::Buffered => "most buffered",
        Metric::QueueMean => "deepest queue, mean",
        Metric::Timeouts => "timeouts",
        Metric::Reordered => "reordered",
        Metric::Imbalance => "imbalance",
    }
}
