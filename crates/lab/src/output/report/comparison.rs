//! The page of several runs side by side: one row each.

use super::page::{Cell, Page, Section, Table, Tile, Unit};
use super::{Run, by_table, collectives, curves, goals, joint, named, of_traffic, priorities, rpcs};
use crate::batch::Names;
use crate::figures::statistics::Estimate;
use crate::output::flows::quoted;
use crate::results::Results;
use crate::results::pairs::Pairs;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What many comparisons have nothing to say of: failures, of flows, links and programs, loads by the clock, fairness among flows of
/// one size, depths of queues, packets that overtake, ports of equal cost. The page shows them where some run does.
const SOMETIMES: [&str; 13] = [
    "failed",
    "lost",
    "offered_bps",
    "fairness",
    "deadlocks",
    "fallen_back",
    "unheard",
    "held_up",
    "timeouts",
    "queue_mean_bytes",
    "queue_p99_bytes",
    "reordered",
    "imbalance",
];

/// The table's columns: heading, name in `comparison.csv`, unit, and how a run's value is found.
type Column = (&'static str, &'static str, Unit, fn(&Results) -> Cell);

const COLUMNS: [Column; 29] = [
    ("flows", "flows", Unit::Count, |r| r.flows.len().into()),
    ("completed", "completed", Unit::Count, |r| r.completed().count().into()),
    ("failed", "failed", Unit::Count, |r| r.failed().count().into()),
    ("offered", "offered_bps", Unit::Rate, |r| r.offered_bps().into()),
    ("goodput", "goodput_bps", Unit::Rate, |r| r.total_goodput_bps().into()),
    ("fairness", "fairness", Unit::Number, |r| r.fairness().into()),
    ("FCT mean", "fct_mean_s", Unit::Time, |r| r.completion_times().mean().into()),
    ("FCT p50", "fct_p50_s", Unit::Time, |r| r.completion_times().percentile(50).into()),
    ("FCT p99", "fct_p99_s", Unit::Time, |r| r.completion_times().percentile(99).into()),
    ("slowdown mean", "slowdown_mean", Unit::Factor, |r| r.slowdowns().mean().into()),
    ("p50", "slowdown_p50", Unit::Factor, |r| r.slowdowns().percentile(50).into()),
    ("p95", "slowdown_p95", Unit::Factor, |r| r.slowdowns().percentile(95).into()),
    ("p99", "slowdown_p99", Unit::Factor, |r| r.slowdowns().percentile(99).into()),
    ("max", "slowdown_max", Unit::Factor, |r| r.slowdowns().max().into()),
    ("drops", "drops", Unit::Count, |r| r.switches.iter().map(|s| s.drops).sum::<u64>().into()),
    ("lost", "lost", Unit::Count, |r| r.lost().into()),
    ("CE marks", "ecn_marks", Unit::Count, |r| r.switches.iter().map(|s| s.ecn_marks).sum::<u64>().into()),
    ("PAUSE", "pause_sent", Unit::Count, |r| {
        let hosts: u64 = r.hosts.iter().map(|host| host.pause_sent).sum();
        (r.switches.iter().map(|s| s.pause_sent).sum::<u64>() + hosts).into()
    }),
    ("time paused", "paused_s", Unit::Time, |r| r.paused().as_secs_f64().into()),
    ("most buffered", "max_buffer_bytes", Unit::Bytes, |r| {
        r.switches.iter().map(|s| s.max_buffer_bytes).max().map_or(Cell::None, Cell::from)
    }),
    ("fell back", "fallen_back", Unit::Count, |r| r.fallen().into()),
    ("unheard", "unheard", Unit::Count, |r| r.unheard().into()),
    ("held up", "held_up", Unit::Count, |r| r.packets_held_up().into()),
    ("deadlocks", "deadlocks", Unit::Count, |r| u64::from(r.deadlock.is_some()).into()),
    ("timeouts", "timeouts", Unit::Count, |r| r.timeouts().into()),
    ("deepest queue, mean", "queue_mean_bytes", Unit::Bytes, |r| r.deepest().map(|(mean, _)| mean).into()),
    ("p99", "queue_p99_bytes", Unit::Bytes, |r| r.deepest().map_or(Cell::None, |(_, p99)| Cell::from(p99))),
    ("reordered", "reordered", Unit::Count, |r| r.all().reordered().into()),
    ("imbalance", "imbalance", Unit::Number, |r| r.imbalance().into()),
];

pub(crate) fn page<'a>(title: &str, names: &Names<'a>, runs: &[Run<'a>]) -> Page {
    let sections = [
        means(names, runs),
        differences(names, runs),
        of_traffic::means(names, runs),
        of_traffic::differences(names, runs),
        table(names, runs),
        priorities::side_by_side(names, runs),
        priorities::differences(names, runs),
        collectives::means(names, runs),
        collectives::of_runs(names, runs),
        goals::means(names, runs),
        goals::of_runs(names, runs),
        joint::means(names, runs),
        joint::of_runs(names, runs),
        rpcs::means(names, runs),
        by_table::differences(names, runs),
        rpcs::of_runs(names, runs),
        curves::distributions(runs),
        curves::over_time(runs),
    ];
    Page {
        title: title.into(),
        subtitle: format!("{} runs side by side", runs.len()),
        tiles: Vec::<Tile>::new(),
        sections: sections.into_iter().filter(|s| s.table.is_some() || !s.plots.is_empty()).collect(),
        marks: Vec::new(),
    }
}

/// The columns of the page of `runs`.
fn columns(runs: &[Run<'_>]) -> Vec<Column> {
    let says = |value: fn(&Results) -> Cell| {
        runs.iter().any(|run| matches!(value(run.results), Cell::Number(number) if number != 0.0))
    };
    COLUMNS.into_iter().filter(|(_, name, _, value)| !SOMETIMES.contains(name) || says(*value)).collect()
}

/// The keys that were set for some run, in the order in which they come up; a seed has its column.
pub(super) fn set_keys<'a>(runs: &[Run<'a>]) -> Vec<&'a str> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flat_map(|run| &run.results.overrides) {
        if key != "seed" && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

/// One line per run, with the figures of the page's table and behind them the keys that were set, collectives, schedules, requests and priorities where
/// there are any, and what is said of the run's configuration: its name, how much each figure differs from that of the configuration which it
/// is held against, and which that is.
pub(crate) fn write_csv(out: &mut impl Write, runs: &[Run<'_>]) -> io::Result<()> {
    let keys = set_keys(runs);
    let figure = |(_, name, _, value): Column| {
        (name.to_owned(), runs.iter().map(|run| value(run.results)).collect::<Vec<Cell>>())
    };
    let of_all: Vec<_> = COLUMNS.into_iter().map(figure).collect();
    let mut of_tables = collectives::csv_columns(runs);
    of_tables.extend(goals::csv_columns(runs));
    of_tables.extend(joint::csv_columns(runs));
    of_tables.extend(rpcs::csv_columns(runs));
    of_tables.extend(priorities::csv_columns(runs));
    let figures = || of_all.iter().chain(&of_tables);
    write!(out, "run,seed")?;
    for name in of_all.iter().map(|(name, _)| name.as_str()).chain(keys.iter().copied()) {
        write!(out, ",{}", quoted(name))?;
    }
    for (name, _) in &of_tables {
        write!(out, ",{}", quoted(name))?;
    }
    write!(out, ",configuration,paired_seeds")?;
    for (name, _) in figures() {
        write!(out, ",{},{}", quoted(&format!("{name}_diff")), quoted(&format!("{name}_diff_ci95")))?;
    }
    writeln!(out, ",baseline")?;
    let pairs = paired(runs);
    let mut differences: BTreeMap<&str, String> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        write!(out, "{},{}", quoted(run.label), run.results.seed)?;
        for (_, values) in &of_all {
            write_cell(out, &values[place])?;
        }
        for wanted in &keys {
            write!(out, ",{}", quoted(set(run, wanted)))?;
        }
        for (_, values) in &of_tables {
            write_cell(out, &values[place])?;
        }
        let told = differences.entry(run.configuration).or_insert_with(|| {
            let values = figures().map(|(_, values)| |place: usize| values[place].number());
            of_configuration(run.configuration, &pairs, values)
        });
        writeln!(out, "{told}")?;
    }
    Ok(())
}

/// The value that a key was set to for a run; empty where it was not. Of a key that is set twice the last holds.
pub(super) fn set<'a>(run: &Run<'a>, wanted: &str) -> &'a str {
    run.results.overrides.iter().rev().find(|(key, _)| key == wanted).map_or("", |(_, value)| value)
}

/// What stands behind a line's figures: its configuration, how many of its seeds are paired, how much each of `figures`, which finds the
/// value of the run at a place, differs from that of the baseline, and which that is.
pub(super) fn of_configuration(
    configuration: &str,
    pairs: &Pairs<'_>,
    figures: impl Iterator<Item = impl Fn(usize) -> Option<f64>>,
) -> String {
    let seeds = pairs.seeds(configuration).map_or_else(String::new, |seeds| seeds.to_string());
    let differences = figures.map(|value| match pairs.difference(configuration, value) {
        Some(Estimate { mean, half_width, .. }) => format!(",{mean},{half_width}"),
        None => ",,".into(),
    });
    let first = format!(",{},{seeds}", quoted(configuration));
    let last = format!(",{}", quoted(pairs.baseline(configuration).unwrap_or(configuration)));
    std::iter::once(first).chain(differences).chain([last]).collect()
}

/// Which of `runs` are held against which.
pub(super) fn paired<'a>(runs: &[Run<'a>]) -> Pairs<'a> {
    Pairs::of(&runs.iter().map(|run| (run.configuration, run.results)).collect::<Vec<_>>())
}

/// A comma and a number, or nothing behind it.
pub(super) fn write_cell(out: &mut impl Write, cell: &Cell) -> io::Result<()> {
    match cell {
        Cell::Number(number) => write!(out, ",{number}"),
        _ => write!(out, ","),
    }
}

/// One row per configuration, where one ran with several seeds: means with 95 % confidence intervals.
fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let configurations = configurations(runs);
    if configurations.len() == runs.len() {
        return Section::default();
    }
    let shown = columns(runs);
    let rows = configurations.iter().map(|(name, alike)| {
        let estimate = |(.., value): &Column| {
            let values = alike.iter().map(|results| value(results).number());
            let estimate = values.collect::<Option<Vec<f64>>>().and_then(|values| Estimate::of(&values));
            estimate.map_or(Cell::None, Cell::from)
        };
        let first = named::of_configuration(names, name).chain([alike.len().into()]);
        first.chain(shown.iter().map(estimate)).collect()
    });
    let table = table_of(&[("seeds", Unit::Count)], &shown, rows.collect());
    Section {
        title: "Means over the seeds",
        note: "With 95 % confidence intervals (Student's t).".into(),
        names: named::headings(names, "configuration", &table.columns),
        table: Some(table),
        ..Section::default()
    }
}

/// One row per configuration that another with the same flows comes before, where two seeds at least are paired.
fn differences<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let pairs = paired(runs);
    let shown = columns(runs);
    let row = |(name, _): &(&'a str, Vec<&Results>)| {
        let seeds = pairs.seeds(name).filter(|seeds| *seeds > 1)?;
        let difference = |(.., value): &Column| {
            pairs.difference(name, |place| value(runs[place].results).number()).map_or(Cell::None, Cell::from)
        };
        let against = named::in_words(names, pairs.baseline(name)?);
        let first = named::of_configuration(names, name).chain([against.into(), seeds.into()]);
        Some(first.chain(shown.iter().map(difference)).collect())
    };
    let rows: Vec<Vec<Cell>> = configurations(runs).iter().filter_map(row).collect();
    if rows.is_empty() {
        return Section::default();
    }
    let first = [("against", Unit::Text), ("paired seeds", Unit::Count)];
    let table = table_of(&first, &shown, rows);
    Section {
        title: "Differences, seed by seed",
        note: "How much more each configuration has than the first one that ran the same flows, with the same seed: means of the \
               differences, with 95 % confidence intervals (Student's t)."
            .into(),
        names: named::headings(names, "configuration", &table.columns),
        table: Some(table),
        ..Section::default()
    }
}

/// The configurations in the order of their first runs, each with its results.
pub(super) fn configurations<'a>(runs: &[Run<'a>]) -> Vec<(&'a str, Vec<&'a Results>)> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut configurations: Vec<(&str, Vec<&Results>)> = Vec::new();
    for run in runs {
        let place = *places.entry(run.configuration).or_insert(configurations.len());
        match configurations.get_mut(place) {
            Some((_, alike)) => alike.push(run.results),
            None => configurations.push((run.configuration, vec![run.results])),
        }
    }
    configurations
}

/// The table of `rows`, which begin with their names and what stands under `first`, and then have a cell for each of the `shown`.
fn table_of(first: &[(&'static str, Unit)], shown: &[Column], rows: Vec<Vec<Cell>>) -> Table {
    let figures = shown.iter().map(|(heading, _, unit, _)| (*heading, *unit));
    Table { columns: first.iter().copied().chain(figures).collect(), rows }
}

/// One row per run, which leads to its own page.
fn table<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let shown = columns(runs);
    let row = |run: &Run<'a>| {
        let mut cells: Vec<Cell> = named::of_run(names, run).collect();
        if let (Some(folder), Some(Cell::Text(text))) = (run.folder, cells.first_mut()) {
            let href = format!("{}/report.html", escaped(folder));
            cells[0] = Cell::Link { href, text: std::mem::take(text) };
        }
        cells.push(run.results.seed.into());
        cells.extend(shown.iter().map(|(.., value)| value(run.results)));
        cells
    };
    let table = table_of(&[("seed", Unit::Count)], &shown, runs.iter().map(row).collect());
    Section {
        title: "Comparison",
        names: named::headings(names, "run", &table.columns),
        table: Some(table),
        ..Section::default()
    }
}

/// A folder's name as part of a URL.
fn escaped(folder: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.~/=,".contains(&octet);
    folder
        .bytes()
        .map(|octet| if plain(octet) { char::from(octet).to_string() } else { format!("%{octet:02X}") })
        .collect()
}

/// The lines of `comparison.csv` as far as what they say of the configuration; no cell has a comma.
#[cfg(test)]
pub(super) fn csv_of_runs(runs: &[Run<'_>]) -> String {
    let mut csv = Vec::new();
    write_csv(&mut csv, runs).expect("memory is enough");
    let csv = String::from_utf8(csv).expect("it is text");
    let kept = csv.split(',').position(|cell| cell == "configuration").expect("a column");
    csv.lines().map(|line| line.split(',').take(kept).collect::<Vec<_>>().join(",") + "\n").collect()
}
