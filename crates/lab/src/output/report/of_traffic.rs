//! The flows of each `[[traffic]]` table in several runs: the means over seeds, and how much configurations differ.

use super::comparison::{configurations, of_configuration, paired, set, set_keys, write_cell};
use super::page::{Cell, Section, Table, Unit};
use super::{Run, named};
use crate::batch::Names;
use crate::figures::statistics::Estimate;
use crate::output::flows::quoted;
use crate::results::{FlowSet, Results};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What is told of the flows of a table: heading, name in `comparison-traffic.csv`, unit, and how it is found.
type Figure = (&'static str, &'static str, Unit, fn(FlowSet<'_>) -> Cell);

const FIGURES: [Figure; 17] = [
    ("flows", "flows", Unit::Count, |flows| flows.flows.len().into()),
    ("completed", "completed", Unit::Count, |flows| flows.completed().count().into()),
    ("failed", "failed", Unit::Count, |flows| flows.failed().count().into()),
    ("offered", "offered_bps", Unit::Rate, |flows| flows.offered_bps().into()),
    ("goodput", "goodput_bps", Unit::Rate, |flows| flows.total_goodput_bps().into()),
    ("fairness", "fairness", Unit::Number, |flows| flows.fairness().into()),
    ("FCT mean", "fct_mean_s", Unit::Time, |flows| flows.completion_times().mean().into()),
    ("FCT p50", "fct_p50_s", Unit::Time, |flows| flows.completion_times().percentile(50).into()),
    ("FCT p99", "fct_p99_s", Unit::Time, |flows| flows.completion_times().percentile(99).into()),
    ("slowdown mean", "slowdown_mean", Unit::Factor, |flows| flows.slowdowns().mean().into()),
    ("p50", "slowdown_p50", Unit::Factor, |flows| flows.slowdowns().percentile(50).into()),
    ("p95", "slowdown_p95", Unit::Factor, |flows| flows.slowdowns().percentile(95).into()),
    ("p99", "slowdown_p99", Unit::Factor, |flows| flows.slowdowns().percentile(99).into()),
    ("max", "slowdown_max", Unit::Factor, |flows| flows.slowdowns().max().into()),
    ("sent again", "retransmitted", Unit::Count, |flows| flows.retransmitted().into()),
    ("timeouts", "timeouts", Unit::Count, |flows| flows.timeouts().into()),
    ("reordered", "reordered", Unit::Count, |flows| flows.reordered().into()),
];

/// What the page leaves out where no run has any.
const SOMETIMES: [&str; 5] = ["failed", "offered_bps", "fairness", "timeouts", "reordered"];

/// Whether some run has several tables: of a single one all is told that is told of its flows.
pub(crate) fn are_several(runs: &[Run<'_>]) -> bool {
    runs.iter().any(|run| run.results.traffic.len() > 1)
}

/// A figure of the table at a place of a run.
fn value(results: &Results, table: usize, of: fn(FlowSet<'_>) -> Cell) -> Cell {
    results.traffic.get(table).map_or(Cell::None, |traffic| of(results.flows_of(traffic)))
}

/// One line for each table of each run, with the keys that were set and what is said of the run's configuration, as in the comparison
/// of whole runs: the same configurations are held against the same.
pub(crate) fn write_csv(out: &mut impl Write, runs: &[Run<'_>]) -> io::Result<()> {
    let keys = set_keys(runs);
    write!(out, "run,seed,traffic,kind")?;
    for name in FIGURES.iter().map(|(_, name, ..)| *name).chain(keys.iter().copied()) {
        write!(out, ",{}", quoted(name))?;
    }
    write!(out, ",configuration,paired_seeds")?;
    for (_, name, ..) in FIGURES {
        write!(out, ",{name}_diff,{name}_diff_ci95")?;
    }
    writeln!(out, ",baseline")?;
    let pairs = paired(runs);
    let mut differences: BTreeMap<(&str, usize), String> = BTreeMap::new();
    for run in runs {
        for (table, traffic) in run.results.traffic.iter().enumerate() {
            let [label, name] = [run.label, &traffic.name].map(quoted);
            write!(out, "{label},{},{name},{}", run.results.seed, traffic.kind)?;
            for (.., of) in FIGURES {
                write_cell(out, &value(run.results, table, of))?;
            }
            for wanted in &keys {
                write!(out, ",{}", quoted(set(run, wanted)))?;
            }
            let told = differences.entry((run.configuration, table)).or_insert_with(|| {
                let values = FIGURES.into_iter().map(|(.., of)| of_run(runs, table, of));
                of_configuration(run.configuration, &pairs, values)
            });
            writeln!(out, "{told}")?;
        }
    }
    Ok(())
}

/// Finds a figure of a table for the run at a place.
fn of_run<'a>(
    runs: &'a [Run<'_>],
    table: usize,
    of: fn(FlowSet<'_>) -> Cell,
) -> impl Fn(usize) -> Option<f64> + use<'a> {
    move |place| value(runs[place].results, table, of).number()
}

/// The figures of the page of `runs`.
fn shown(runs: &[Run<'_>]) -> Vec<Figure> {
    let says = |of: fn(FlowSet<'_>) -> Cell| {
        let tables =
            runs.iter().flat_map(|run| (0..run.results.traffic.len()).map(move |table| (run, table)));
        tables
            .map(|(run, table)| value(run.results, table, of))
            .any(|cell| matches!(cell, Cell::Number(number) if number != 0.0))
    };
    FIGURES.into_iter().filter(|(_, name, _, of)| !SOMETIMES.contains(name) || says(*of)).collect()
}

/// The table of `rows`, which begin with words or a count under `first`, and then have a cell for each of the `shown`.
fn table_of(first: &[(&'static str, Unit)], shown: &[Figure], rows: Vec<Vec<Cell>>) -> Table {
    let figures = shown.iter().map(|(heading, _, unit, _)| (*heading, *unit));
    Table { columns: first.iter().copied().chain(figures).collect(), rows }
}

/// One row for each table of each configuration: means over its seeds, where it has several.
pub(super) fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    if !are_several(runs) {
        return Section::default();
    }
    let shown = shown(runs);
    let mut rows = Vec::new();
    for (name, alike) in configurations(runs) {
        for (table, traffic) in alike[0].traffic.iter().enumerate() {
            let estimate = |(.., of): &Figure| {
                let values = alike.iter().map(|results| value(results, table, *of).number());
                let values: Option<Vec<f64>> = values.collect();
                values.and_then(|values| Estimate::of(&values)).map_or(Cell::None, Cell::from)
            };
            let first = [traffic.name.as_str().into(), traffic.kind.into()];
            let first = named::of_configuration(names, name).chain(first);
            rows.push(first.chain(shown.iter().map(estimate)).collect());
        }
    }
    let table = table_of(&[("traffic", Unit::Text), ("kind", Unit::Text)], &shown, rows);
    Section {
        title: "Traffic",
        note: "The flows of each table of the scenario's traffic, by its name or its index: means over the seeds with 95 % confidence \
               intervals (Student's t), where there are several. As numbers they are in comparison-traffic.csv."
            .into(),
        names: named::headings(names, "configuration", &table.columns),
        table: Some(table),
        ..Section::default()
    }
}

/// One row for each table of each configuration that another with the same flows comes before, where two seeds at least are paired.
pub(super) fn differences<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    if !are_several(runs) {
        return Section::default();
    }
    let (pairs, shown) = (paired(runs), shown(runs));
    let mut rows = Vec::new();
    for (name, alike) in configurations(runs) {
        let (Some(against), Some(seeds)) =
            (pairs.baseline(name), pairs.seeds(name).filter(|seeds| *seeds > 1))
        else {
            continue;
        };
        let against = named::in_words(names, against);
        for (table, traffic) in alike[0].traffic.iter().enumerate() {
            let difference = |(.., of): &Figure| {
                pairs.difference(name, of_run(runs, table, *of)).map_or(Cell::None, Cell::from)
            };
            let first = [against.as_str().into(), traffic.name.as_str().into(), seeds.into()];
            let first = named::of_configuration(names, name).chain(first);
            rows.push(first.chain(shown.iter().map(difference)).collect());
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    let first = [("against", Unit::Text), ("traffic", Unit::Text), ("paired seeds", Unit::Count)];
    let table = table_of(&first, &shown, rows);
    Section {
        title: "Differences of traffic, seed by seed",
        note: "The same differences as of all flows, of the flows of each table of the scenario's traffic."
            .into(),
        names: named::headings(names, "configuration", &table.columns),
        table: Some(table),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, two_tables};
    use roci_units::Span;

    /// Runs of two configurations with two seeds each: in the second one the flow of the first table takes as many microseconds longer
    /// as are given for each seed.
    fn results(longer: [u64; 2]) -> Vec<Results> {
        let run = |seed: u64, more: u64| {
            let mut results = Results { seed, traffic: two_tables(), ..sample() };
            results.flows[0].end += Span::from_micros(1_000 * seed + more);
            results
        };
        vec![run(1, 0), run(2, 0), run(1, longer[0]), run(2, longer[1])]
    }

    fn runs(results: &[Results]) -> Vec<Run<'_>> {
        let run = |(place, results)| Run {
            label: ["a seed=1", "a seed=2", "b seed=1", "b seed=2"][place],
            configuration: ["a", "a", "b", "b"][place],
            folder: None,
            results,
        };
        results.iter().enumerate().map(run).collect()
    }

    #[test]
    fn what_a_configuration_differs_by_in_one_table_is_told_of_that_table_alone() {
        let results = results([100, 300]);
        let mut csv = Vec::new();
        write_csv(&mut csv, &runs(&results)).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert!(rows.len() == 9 && rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
        let value = |row: usize, name: &str| {
            rows[row][rows[0].iter().position(|it| *it == name).unwrap_or_else(|| panic!("{name}: {csv}"))]
        };
        let first =
            ["run", "traffic", "kind", "flows", "completed", "fct_mean_s", "paired_seeds", "baseline"];
        assert_eq!(first.map(|name| value(1, name)), ["a seed=1", "0", "incast", "1", "1", "0.027", "", "a"]);
        let first = ["run", "traffic", "flows", "completed", "paired_seeds", "baseline"];
        assert_eq!(first.map(|name| value(8, name)), ["b seed=2", "background", "3", "2", "2", "a"]);
        let number = |row, name| value(row, name).parse::<f64>().expect(name);
        for row in [5, 7] {
            let [mean, half] = ["fct_mean_s_diff", "fct_mean_s_diff_ci95"].map(|name| number(row, name));
            // Student's t for one degree of freedom, 12.706, times a deviation of 100·√2 us, over √2.
            assert!((mean - 2e-4).abs() < 1e-9 && (half - 1.2706e-3).abs() < 1e-7, "{mean} {half}");
            assert_eq!((number(row + 1, "fct_mean_s_diff"), number(row + 1, "fct_p99_s_diff")), (0.0, 0.0));
        }
        assert_eq!(value(1, "fct_mean_s_diff"), "", "nothing differs from itself");
    }

    #[test]
    fn a_page_has_tables_of_traffic_where_a_run_has_several_and_of_a_single_one_none() {
        let mut results = results([100, 300]);
        let names = Names::default();
        let (means, differences) = (means(&names, &runs(&results)), differences(&names, &runs(&results)));
        assert_eq!([&means.names, &differences.names], [&["configuration"], &["configuration"]]);
        let [means, differences] = [means, differences].map(|section| section.table.expect("two tables"));
        assert_eq!((means.rows.len(), differences.rows.len()), (4, 2));
        let place = |table: &Table, heading| {
            1 + table.columns.iter().position(|(name, _)| *name == heading).expect(heading)
        };
        let mean = &means.rows[2][place(&means, "FCT mean")];
        assert!(matches!(mean, Cell::Estimate { mean, .. } if (mean - 0.0277).abs() < 1e-9), "{mean:?}");
        let [one, other] = [0, 1].map(|row| differences.rows[row][place(&differences, "FCT mean")].clone());
        assert!(matches!(one, Cell::Estimate { mean, .. } if (mean - 2e-4).abs() < 1e-9), "{one:?}");
        assert_eq!(other, Cell::Estimate { mean: 0.0, half_width: 0.0 });
        for run in &mut results {
            run.traffic.truncate(1);
        }
        assert!(!are_several(&runs(&results)));
        assert!(super::means(&names, &runs(&results)).table.is_none());
        assert!(super::differences(&names, &runs(&results)).table.is_none());
    }
}
