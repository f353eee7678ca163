//! What is printed: of one run its flows and switches, of several a line each.

mod bridge;
mod collective;
mod depths;
mod differences;
mod faults;
mod fit;
mod goal;
mod priorities;
mod program;
mod rpc;
mod traffic;
pub(crate) mod tuned;

pub(crate) use bridge::bridge;
pub(crate) use program::{Cores, check, held, profile};

use crate::format::{estimate, float, number, of_each, or_dash, rate, size, time};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use roci_lab::batch::{Group, Metric, Names, Sum};
use roci_lab::figures::expect::Figure;
use roci_lab::figures::statistics::Estimate;
use roci_lab::figures::{self, Report};
use roci_lab::nic::{Account, Structure};
use roci_lab::results::statistics::{Sorted, jain};
use roci_lab::results::together::Together;
use roci_lab::results::{HostResult, Offered, Results, SwitchResult};
use roci_lab::scenario::overrides::seeds_in_words;
use roci_units::Span;

/// More flows than this are shown by their sizes, more switches summed up.
const MANY_FLOWS: usize = 24;
const MANY_SWITCHES: usize = 12;
/// By so much the use of equal ports may differ in its imbalance and say nothing of how they were chosen.
pub(crate) const BY_CHANCE: f64 = 0.1;
/// The place of a flow's goodput among the columns.
const GOODPUT: usize = 7;

/// The tables of a group.
pub(crate) fn group(group: &Group, results: &[Results]) -> String {
    match results {
        [one] => run(one),
        several => side_by_side(group, several),
    }
}

pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header.iter().copied());
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if place == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

/// The table with its lines indented and without spaces at their ends.
pub(crate) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}

/// A value of a NIC.
pub(crate) struct NicRow {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) from: String,
    pub(crate) what: &'static str,
}

/// A table of text, whose last column is broken into lines of a terminal's width.
fn prose(header: &[&str]) -> Table {
    let mut table = table(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(120);
    }
    table.column_iter_mut().for_each(|column| {
        column.set_cell_alignment(CellAlignment::Left);
    });
    table
}

/// NICs with what they are.
pub(crate) fn nics<'a>(nics: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut table = prose(&["nic", "what it is"]);
    nics.for_each(|(name, about)| {
        table.add_row([name, about]);
    });
    lines(&table)
}

/// The values of a NIC.
pub(crate) fn nic_rows(rows: &[NicRow]) -> String {
    let mut table = prose(&["key", "value", "what it means", "where it comes from"]);
    for row in rows {
        table.add_row([row.key, &row.value, row.what, &row.from]);
    }
    lines(&table)
}

/// The account of a NIC's memory.
pub(crate) fn account(account: &Account) -> String {
    let mut table = table(&["structure", "conventional", "on the chip", "off the chip"]);
    for Structure { name, conventional, on_chip, off_chip } in &account.structures {
        let octets = [conventional, on_chip, off_chip].map(|octets| binary(*octets));
        table.add_row(std::iter::once((*name).to_owned()).chain(octets));
    }
    let sum = |of: fn(&Structure) -> u64| binary(account.structures.iter().map(of).sum());
    table.add_row([
        "in all".to_owned(),
        sum(|row| row.conventional),
        sum(|row| row.on_chip),
        sum(|row| row.off_chip),
    ]);
    let resident = match account.resident {
        Some(resident) => format!("{resident} contexts fit on the chip"),
        None => format!(
            "chip size unknown: in all is what {} contexts would take, and nothing says that they fit",
            account.queue_pairs
        ),
    };
    let performant = match (account.performant, account.performant_per_mib()) {
        (Some(performant), Some(per_mib)) => format!(
            "\n  performant: {performant}, with {} on the chip, {per_mib:.0} for each MiB",
            binary(account.performant_chip)
        ),
        _ => String::new(),
    };
    format!(
        "{} with {} queue pairs\n\n{}\n  {resident}{performant}\n",
        account.name,
        account.queue_pairs,
        lines(&table),
    )
}

/// Octets in units of 1024, as memories are counted.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn binary(octets: u64) -> String {
    match octets as f64 {
        octets if octets < 1024.0 => format!("{octets:.0} B"),
        octets if octets < 1_048_576.0 => format!("{:.1} KiB", octets / 1024.0),
        octets if octets < 1_073_741_824.0 => format!("{:.1} MiB", octets / 1_048_576.0),
        octets => format!("{:.1} GiB", octets / 1_073_741_824.0),
    }
}

fn run(results: &Results) -> String {
    let mut text = format!(
        "{}, seed {}: {}, {} simulated\n\n",
        results.name,
        results.seed,
        flows_done(results),
        time(results.simulated.as_secs_f64())
    );
    if let Some(deadlock) = &results.deadlock {
        text.push_str(&format!("  {}\n\n", deadlock.to_string().replace('\n', "\n  ")));
    }
    let together = (results.flows.len() <= MANY_FLOWS).then(|| results.together()).flatten();
    if results.flows.len() <= MANY_FLOWS {
        text.push_str(&lines(&flows(results, together.as_ref())));
    } else {
        match results.completed().next() {
            Some(_) => text.push_str(&lines(&sizes(results))),
            None if results.endless() == results.flows.len() => {
                text.push_str("  what each flow moved is in flows.csv\n");
            }
            None => text.push_str("  no flow is done\n"),
        }
        if let Some(failure) = results.failure().filter(|_| results.deadlock.is_none()) {
            text.push_str(&format!("\n  {failure}\n"));
        }
    }
    text.push_str(&traffic::tables(results));
    text.push_str(&collective::tables(results));
    text.push_str(&goal::tables(results));
    text.push_str(&rpc::tables(results));
    text.push('\n');
    text.push_str(&lines(&switches(results)));
    text += &(priorities::of_run(results) + &depths::table_of(results));
    let paused: Vec<&HostResult> = results.hosts.iter().filter(|host| host.pause_received > 0).collect();
    if !paused.is_empty() {
        text.push_str(&format!(
            "\n  {} of {} {} received {} PAUSE frames and stood paused for {} in sum\n",
            paused.len(),
            results.hosts.len(),
            if results.several_nics { "NICs" } else { "hosts" },
            paused.iter().map(|host| host.pause_received).sum::<u64>(),
            time(paused.iter().map(|host| host.paused.as_secs_f64()).sum())
        ));
    }
    let sent: u64 = results.hosts.iter().map(|host| host.pause_sent).sum();
    if sent > 0 {
        text.push_str(&format!("\n  hosts sent {sent} PAUSE frames\n"));
    }
    let dropped: u64 = results.hosts.iter().map(|host| host.dropped).sum();
    if dropped > 0 {
        text.push_str(&format!("\n  receive buffers of hosts had no room for {dropped} frames\n"));
    }
    let unready: u64 = results.flows.iter().map(|flow| u64::from(flow.rnr_naks)).sum();
    if unready > 0 {
        text.push_str(&format!("\n  {unready} RNR NAKs: SENDs found no receive request\n"));
    }
    if let Some(vain) = resent_in_vain(results) {
        text.push_str(&format!("\n  {vain}\n    {LONGER_TIMEOUT}\n"));
    }
    text.push_str(&faults::tables(results));
    results.programs.iter().for_each(|program| text.push_str(&program::failures(program, results)));
    text.push_str(&program::unheard(results));
    text.push_str(&program::strained(results));
    text.push_str(&misses(results));
    for warning in &results.warnings {
        text.push_str(&format!("\n  warning: {warning}\n"));
    }
    let goodput = goodput(results);
    let fairness = results.fairness().map(|jain| format!("Jain's fairness index {}", number(jain)));
    let both: Vec<String> = goodput.into_iter().chain(fairness).collect();
    text.push_str(&format!("\n  {}\n", both.join(", ")));
    if let Some(Together { from, until, goodput_bps }) = &together
        && results.fairness().is_some()
        && let Some(jain) = jain(goodput_bps)
    {
        let [from, until] = [from, until].map(|at| time(at.as_secs_f64()));
        let jain = number(jain);
        text.push_str(&format!("  while all sent, {from} to {until}: Jain's fairness index {jain}\n"));
    }
    text.push_str(&format!("  {}\n", speed(results)));
    text
}

/// What is to be done where answers take longer than the timeout.
const LONGER_TIMEOUT: &str = "what to do: a longer transport.timeout";

/// Of packets that were sent again though none had been lost.
fn resent_in_vain(results: &Results) -> Option<String> {
    let (packets, timeouts) = results.resent_in_vain()?;
    let paused = results.hosts.iter().any(|host| host.pause_received > 0);
    let paused = if paused { ", as behind PAUSE" } else { "" };
    let times = if timeouts == 1 { "timeout" } else { "timeouts" };
    Some(format!(
        "{packets} packets were sent again after {timeouts} {times}, and none had been lost: answers took longer than the timeout{paused}"
    ))
}

/// How many flows are done, of those that have an end.
fn flows_done(results: &Results) -> String {
    let (done, all, endless) = (results.completed().count(), results.flows.len(), results.endless());
    match endless {
        0 => format!("{done} of {all} flows done"),
        _ if endless == all => format!("{all} flows without an end ran until the run stopped"),
        _ => format!(
            "{done} of {} flows done, {endless} without an end ran until the run stopped",
            all - endless
        ),
    }
}

/// Of NICs whose caches are too small; nothing where all are large enough.
fn misses(results: &Results) -> String {
    /// Hosts that are told one by one.
    const TOLD: usize = 4;
    let mut text: String = results.misses().take(TOLD).map(|misses| format!("\n  {misses}")).collect();
    let more = results.misses().count().saturating_sub(TOLD);
    if more > 0 {
        text += &format!("\n  and {more} hosts more whose caches miss: `nic` in summary.json");
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The payload that all flows moved a second: of what was offered where that was by the clock.
fn goodput(results: &Results) -> Option<String> {
    let of_all = rate(results.total_goodput_bps()?);
    Some(match (results.offered, results.offered_bps(), results.goodput_to_the_last_end_bps()) {
        (Some(Offered { from, until }), Some(offered), Some(to_the_end)) => {
            let [from, until, end] = [from, until, results.simulated].map(|at| time(at.as_secs_f64()));
            let offered = rate(offered);
            format!(
                "goodput {of_all} of {offered} offered, {from} to {until}; {} until {end}",
                rate(to_the_end)
            )
        }
        _ => format!("goodput {of_all}"),
    })
}

fn speed(results: &Results) -> String {
    format!(
        "{:.2} M packet-hops in {:.3} s of CPU time: {:.2} M per second; {} of memory",
        float(results.packet_hops) / 1e6,
        results.run.cpu_s,
        results.packet_hops_per_s() / 1e6,
        size(results.run.peak_rss_bytes)
    )
}

/// The flows one by one, with what they got while all sent, where there was such a time.
fn flows(results: &Results, together: Option<&Together>) -> Table {
    let mut header = vec![
        "flow",
        "from",
        "to",
        "op",
        "size",
        "completion",
        "slowdown",
        "goodput",
        "resent",
        "CNPs",
        "marked",
        "status",
    ];
    if together.is_some() {
        header.insert(GOODPUT + 1, "while all sent");
    }
    let controls = results.controls_differ();
    if controls {
        header.push("control");
    }
    let mut table = table(&header);
    for (place, flow) in results.flows.iter().enumerate() {
        let mut row = vec![
            flow.name.to_string(),
            results.host(flow.src).to_owned(),
            results.host(flow.dst).to_owned(),
            flow.op.name().to_owned(),
            size(flow.bytes),
            or_dash(flow.fct().map(|fct| time(fct.as_secs_f64()))),
            or_dash(flow.slowdown().map(number)),
            rate(float(flow.goodput_bps(results.simulated))),
            flow.retransmitted.to_string(),
            flow.cnps.to_string(),
            flow.ecn_marked.to_string(),
            flow.status.name().to_owned(),
        ];
        if let Some(together) = together {
            row.insert(GOODPUT + 1, rate(together.goodput_bps[place]));
        }
        if controls {
            row.push(results.control(flow).to_owned());
        }
        table.add_row(row);
    }
    table
}

fn sizes(results: &Results) -> Table {
    let mut header = vec!["size", "completed"];
    header.extend(SPREAD);
    let mut table = table(&header);
    for group in results.by_size() {
        let range = match group.from == group.to {
            true => size(group.from.0),
            false => format!("{} to {}", size(group.from.0), size(group.to.0)),
        };
        let mut row = vec![range, group.slowdowns.values().len().to_string()];
        row.extend(spread(&group.completion_times, &group.slowdowns));
        table.add_row(row);
    }
    table
}

/// What stands above [`spread`].
const SPREAD: [&str; 7] = ["completion p50", "p99", "slowdown mean", "p50", "p95", "p99", "max"];

/// How completion times and slowdowns of several flows are spread.
fn spread(times: &Sorted, slowdowns: &Sorted) -> [String; 7] {
    let times = |percent| or_dash(times.percentile(percent).map(time));
    let slowdown = |percent| or_dash(slowdowns.percentile(percent).map(number));
    let mean = or_dash(slowdowns.mean().map(number));
    [times(50), times(99), mean, slowdown(50), slowdown(95), slowdown(99), slowdown(100)]
}

fn switches(results: &Results) -> Table {
    let chooses = results.switches.iter().any(|switch| switch.imbalance.is_some());
    let mut header =
        vec!["switch", "drops", "ECN marks", "PAUSE sent", "PAUSE received", "time paused", "most buffered"];
    header.extend(chooses.then_some("imbalance"));
    let mut table = table(&header);
    let row = |switch: &SwitchResult| {
        let mut row = vec![
            switch.name.clone(),
            switch.drops.to_string(),
            switch.ecn_marks.to_string(),
            switch.pause_sent.to_string(),
            switch.pause_received.to_string(),
            time(switch.paused.as_secs_f64()),
            size(switch.max_buffer_bytes),
        ];
        row.extend(chooses.then(|| or_dash(switch.imbalance.map(|it| format!("{it:.2}")))));
        row
    };
    if results.switches.len() <= MANY_SWITCHES {
        results.switches.iter().for_each(|switch| {
            table.add_row(row(switch));
        });
        return table;
    }
    let mut all = SwitchResult { name: format!("all {}", results.switches.len()), ..SwitchResult::default() };
    for switch in &results.switches {
        all.drops += switch.drops;
        all.ecn_marks += switch.ecn_marks;
        all.pause_sent += switch.pause_sent;
        all.pause_received += switch.pause_received;
        all.paused += switch.paused;
        all.max_buffer_bytes = all.max_buffer_bytes.max(switch.max_buffer_bytes);
    }
    all.imbalance = results.imbalance();
    table.add_row(row(&all));
    table
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
const fn heading(metric: Metric) -> &'static str {
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

fn side_by_side(group: &Group, results: &[Results]) -> String {
    let sums = group.sums(results);
    let runs = results.len();
    // All configurations run with the same, unless each brings its own.
    let mut seeds: Vec<u64> = Vec::new();
    for run in &group.runs {
        if !seeds.contains(&run.seed) {
            seeds.push(run.seed);
        }
    }
    let seeds = seeds_in_words(&seeds);
    let mut text = match (sums.len(), runs) {
        (1, _) => format!("{}: {seeds}, means with 95 % confidence intervals\n\n", group.title),
        (kinds, runs) if kinds == runs => format!("{}: {runs} runs, {seeds}\n\n", group.title),
        (kinds, _) => format!(
            "{}: {kinds} configurations, {seeds} each, means with 95 % confidence intervals\n\n",
            group.title
        ),
    };
    // What was offered is known of loads by the clock alone, and fairness is one among flows of one size.
    let is_known = |metric: Metric| {
        let has = |sum: &Sum<'_>| sum.values.iter().any(|(it, value)| *it == metric && value.is_some());
        match metric {
            Metric::Offered | Metric::Fairness => sums.iter().any(has),
            // A column for queues that held nothing in any run would say nothing.
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
    };
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| is_known(*metric)).collect();
    let names = group.names();
    text.push_str(&summed(&names, &sums, &metrics));
    text.push_str(&differences::side_by_side(group, results));
    text.push_str(&traffic::side_by_side(&names, &group.sums_of_traffic(results)));
    text.push_str(&differences::of_traffic(group, results));
    text.push_str(&collective::side_by_side(&names, &group.sums_of_collectives(results)));
    text.push_str(&goal::side_by_side(&names, &group.sums_of_goals(results)));
    text.push_str(&rpc::side_by_side(&names, &group.sums_of_rpcs(results)));
    text.push_str(&priorities::of_several(group, results));
    let hops: u64 = results.iter().map(|results| results.packet_hops).sum();
    let cpu: f64 = results.iter().map(|results| results.run.cpu_s).sum();
    let per_second = if cpu > 0.0 { float(hops) / cpu / 1e6 } else { 0.0 };
    text.push_str(&format!(
        "\n  {:.2} M packet-hops in {cpu:.3} s of CPU time: {per_second:.2} M per second\n",
        float(hops) / 1e6
    ));
    if results.iter().any(|results| results.endless() > 0) {
        text.push_str("\n  flows without an end, as in a closed loop without `count`, ran until the run stopped and do not count as done\n");
    }
    let mut in_vain = group.runs.iter().zip(results).filter_map(|(run, of)| Some((run, resent_in_vain(of)?)));
    if let Some((run, vain)) = in_vain.next() {
        let more = match in_vain.count() {
            0 => String::new(),
            more => format!("; the like in {more} more runs"),
        };
        text.push_str(&format!("\n  {}: {vain}{more}\n    {LONGER_TIMEOUT}\n", group.full_label(run)));
    }
    for (run, results) in group.runs.iter().zip(results) {
        let failed = results.programs.iter().map(|it| program::failures(it, results));
        let warnings = results.warnings.iter().map(|warning| format!("\n  warning: {warning}\n"));
        let behind = [program::unheard(results), program::strained(results), misses(results)];
        let failed: Vec<_> = failed.chain(behind).chain(warnings).collect();
        if failed.iter().any(|text| !text.is_empty()) {
            let label = if sums.len() > 1 { format!("{}, ", run.label) } else { String::new() };
            text.push_str(&format!("\n  {label}seed {}:{}", results.seed, failed.concat()));
        }
    }
    text
}

/// A line for each of `sums` with its `metrics`; with the name of its traffic, where it is of a part.
fn summed(names: &Names<'_>, sums: &[Sum<'_>], metrics: &[Metric]) -> String {
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

/// About how long something takes.
fn about(seconds: Option<f64>) -> String {
    match seconds {
        None => "over 2 min".to_owned(),
        Some(seconds) if seconds < 1.0 => "under 1 s".to_owned(),
        Some(seconds) => format!("about {seconds:.0} s"),
    }
}

/// Figures of a group: what each shows, and how long it takes.
pub(crate) fn figures(group: &figures::Group, figures: &[(&str, Figure)]) -> String {
    let mut table = prose(&["figure", "kind", "rows", "ablations", "1 seed", "5 seeds", "what it shows"]);
    for (name, figure) in figures {
        let ablations =
            Some(figure.ablations.len()).filter(|count| *count > 0).map(|count| count.to_string());
        let [rows, ablations] = [figure.rows.len().to_string(), or_dash(ablations)];
        let [one, five] = [figure.takes.one_seed, figure.takes.five_seeds].map(about);
        table.add_row([*name, figure.kind.name(), &rows, &ablations, &one, &five, &figure.title]);
    }
    format!("{}: {}\n\n{}\n", group.name, group.from, lines(&table))
}

/// A figure: what the paper has, what we have.
pub(crate) fn figure(report: &Report) -> String {
    let mut text = format!("{}: {}, {}", report.name, report.title, seeds_in_words(&report.seeds));
    if let Some(without) = &report.without {
        text.push_str(&format!(", without {without}"));
    }
    text.push_str("\n\n");
    let mut table = table(&Report::HEADINGS);
    // On a terminal a cell may take several lines; what is piped has a line for each row.
    if table.width().is_some() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in report.cells() {
        table.add_row(row);
    }
    text.push_str(&lines(&table));
    if !report.note.is_empty() {
        text.push_str(&format!("\n  {}\n", report.note));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_lab::results::{FlowName, FlowResult, FlowStatus, Op};
    use roci_units::Instant;

    pub(super) fn results(flows: u32) -> Results {
        let flow = |n| FlowResult {
            name: FlowName::Numbered { traffic: 0, n },
            src: 0,
            dst: 1,
            op: Op::Write,
            control: 0,
            status: FlowStatus::OK,
            bytes: 1_000_000,
            delivered: 1_000_000,
            start: Instant::ZERO,
            end: Instant::ZERO + Span::from_micros(100),
            ideal: Some(Span::from_micros(80)),
            packets: 977,
            retransmitted: 0,
            repeated: 0,
            timeouts: 0,
            naks: 0,
            rnr_naks: 0,
            cnps: 3,
            ecn_marked: 9,
            reordered: 0,
        };
        let host = |name: &str| roci_lab::results::HostResult { name: name.to_owned(), ..Default::default() };
        Results {
            name: "small".to_owned(),
            seed: 1,
            simulated: Instant::ZERO + Span::from_micros(100),
            flows: (0..flows).map(flow).collect(),
            hosts: vec![host("a"), host("b")],
            switches: vec![SwitchResult { name: "s0".to_owned(), ecn_marks: 9, ..Default::default() }],
            ..Results::default()
        }
    }

    #[test]
    fn what_laws_did_not_hear_of_and_writes_that_were_lost_are_told() {
        let mut one = results(2);
        one.hosts[1].unheard = 743;
        one.warnings.push("nobody took it".to_owned());
        let text = run(&one);
        assert!(
            text.contains("warning: laws never heard of 743 events") && text.contains(": b 743\n"),
            "{text}"
        );
        assert!(text.contains("warning: nobody took it\n"), "{text}");
        assert!(!run(&results(2)).contains("warning"));
    }

    #[test]
    fn packets_sent_again_though_none_was_lost_are_explained() {
        let mut one = results(2);
        (one.flows[0].retransmitted, one.flows[0].timeouts) = (1_127, 3);
        one.hosts[0].pause_received = 5;
        let told = "1127 packets were sent again after 3 timeouts, and none had been lost: answers took longer than the timeout, as behind PAUSE";
        assert!(run(&one).contains(told), "{}", run(&one));
        // Where something was lost, or asked for again, timeouts have their reason.
        one.switches[0].drops = 1;
        assert!(!run(&one).contains("none had been lost"));
        (one.switches[0].drops, one.flows[1].naks) = (0, 1);
        assert!(!run(&one).contains("none had been lost"));
        assert!(!run(&results(2)).contains("none had been lost"));
    }

    #[test]
    fn sends_that_found_no_receive_request_are_counted() {
        let mut busy = results(2);
        assert!(!run(&busy).contains("RNR NAKs"));
        busy.flows[1].rnr_naks = 7;
        assert!(run(&busy).contains("\n  7 RNR NAKs: SENDs found no receive request\n"));
    }

    #[test]
    fn few_flows_are_shown_one_by_one_and_many_by_size() {
        let few = run(&results(2));
        assert!(few.contains("0.1") && few.contains("80.00 Gb/s"), "{few}");
        let many = run(&results(100));
        assert!(many.contains("slowdown mean") && !many.contains("0.99 "), "{many}");
        let mut running = results(100);
        running.flows.iter_mut().for_each(|flow| flow.status = FlowStatus::Running);
        let running = run(&running);
        assert!(running.contains("no flow is done") && !running.contains("slowdown mean"), "{running}");
    }

    #[test]
    fn flows_without_an_end_are_not_told_to_be_undone() {
        let endless = |flow: &mut FlowResult| {
            (flow.status, flow.ideal, flow.end) = (FlowStatus::Running, None, Instant::NEVER);
        };
        let mut all = results(100);
        all.flows.iter_mut().for_each(endless);
        let told = run(&all);
        assert!(told.contains(": 100 flows without an end ran until the run stopped, "), "{told}");
        assert!(!told.contains("no flow is done") && !told.contains("0 of 100"), "{told}");
        let mut some = results(5);
        some.flows.iter_mut().take(2).for_each(endless);
        let told = run(&some);
        assert!(told.contains(": 3 of 3 flows done, 2 without an end ran until the run stopped, "), "{told}");
    }
}
