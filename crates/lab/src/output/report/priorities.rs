//! What befell each priority: on the page of a run in sum, and where it was worst; and side by side in several runs.

use super::comparison::{configurations, paired};
use super::page::{Cell, Section, Table, Unit};
use super::run::grouped;
use super::{Run, by_table, named};
use crate::batch::Names;
use crate::results::{LinkResult, PriorityResult, Results};

/// Ways of links that have rows for their priorities.
const ROWS_MAX: usize = 60;

/// Each priority over all links, and the links on which most befell one; nothing where there are not several priorities.
pub(super) fn of_run(results: &Results) -> Vec<Section> {
    let sums = results.priority_sums();
    if sums.is_empty() {
        return Vec::new();
    }
    let rows = sums.iter().map(|(sum, deepest)| {
        let deepest = deepest.map_or(Cell::None, |link| link.name.as_str().into());
        [sum.priority.to_string().into()].into_iter().chain(cells(sum)).chain([deepest]).collect()
    });
    let mut columns = vec![("priority", Unit::Text)];
    columns.extend(COLUMNS);
    columns.push(("there", Unit::Text));
    let sums = Section {
        title: "Priorities",
        note: "Over all links, both ways; packets count on each that they cross.".into(),
        table: Some(Table { columns, rows: rows.collect() }),
        ..Section::default()
    };
    vec![sums, worst(results)]
}

/// The links on which most befell a priority: with the drops first, then the longest pauses, the marks, and the queues.
fn worst(results: &Results) -> Section {
    let befell = |of: &PriorityResult| {
        of.drops + of.ecn_marks + of.pause_received + of.lost + of.corrupted > 0
            || of.max_queue_bytes.is_some_and(|octets| octets > 0)
    };
    let mut ways: Vec<(&LinkResult, &PriorityResult)> =
        results.priorities().filter(|(_, of)| befell(of)).collect();
    let all = ways.len();
    ways.sort_by_key(|(_, of)| std::cmp::Reverse(of.trouble()));
    ways.truncate(ROWS_MAX);
    if ways.is_empty() {
        return Section::default();
    }
    let note = match ways.len() {
        shown if shown < all => format!(
            "The {shown} worst of {} on which something waited, was marked, dropped or paused; all are in priorities.csv.",
            grouped(all as u64)
        ),
        _ => String::new(),
    };
    let row = |(link, of): (&LinkResult, &PriorityResult)| {
        let name = format!("{}:{}", link.name, of.priority);
        [name.into()].into_iter().chain(cells(of)).collect()
    };
    let mut columns = vec![("link and priority", Unit::Text)];
    columns.extend(COLUMNS);
    let table = Some(Table { columns, rows: ways.into_iter().map(row).collect() });
    Section { title: "Priorities by link", note, table, ..Section::default() }
}

const COLUMNS: [(&str, Unit); 9] = [
    ("packets", Unit::Count),
    ("sent", Unit::Bytes),
    ("drops", Unit::Count),
    ("CE marks", Unit::Count),
    ("PAUSE received", Unit::Count),
    ("paused", Unit::Time),
    ("lost", Unit::Count),
    ("damaged", Unit::Count),
    ("deepest queue", Unit::Bytes),
];

fn cells(of: &PriorityResult) -> [Cell; COLUMNS.len()] {
    [
        of.packets.into(),
        of.tx_bytes.into(),
        of.drops.into(),
        of.ecn_marks.into(),
        of.pause_received.into(),
        of.paused.as_secs_f64().into(),
        of.lost.into(),
        of.corrupted.into(),
        of.max_queue_bytes.map_or(Cell::None, Cell::from),
    ]
}

/// What `comparison.csv` calls what [`cells`] tells.
const NAMES: [&str; COLUMNS.len()] = [
    "packets",
    "tx_bytes",
    "drops",
    "ecn_marks",
    "pause_received",
    "paused_s",
    "lost",
    "corrupted",
    "max_queue_bytes",
];

/// The columns that `comparison.csv` has of priorities: of each its goodput, and what befell it over all links.
pub(super) fn csv_columns(runs: &[Run<'_>]) -> Vec<(String, Vec<Cell>)> {
    let named = |(priority, figures): (u8, Vec<Vec<Cell>>)| {
        let names = ["goodput_bps"].into_iter().chain(NAMES);
        names.map(move |name| format!("priority_{priority}.{name}")).zip(figures)
    };
    figures(runs).into_iter().flat_map(named).collect()
}

/// Of each priority its goodput and what [`cells`] tells, each with the value of every run.
fn figures(runs: &[Run<'_>]) -> Vec<(u8, Vec<Vec<Cell>>)> {
    let results: Vec<&Results> = runs.iter().map(|run| run.results).collect();
    let of = |(priority, of_runs): (u8, Vec<Option<PriorityResult>>)| {
        let goodput = |(results, of): (&&Results, &Option<PriorityResult>)| {
            of.and_then(|_| results.goodput_of_priority(priority)).into()
        };
        let goodput = results.iter().zip(&of_runs).map(goodput).collect();
        let cells: Vec<_> = of_runs.iter().map(|of| of.as_ref().map(cells)).collect();
        let column = |place: usize| {
            cells.iter().map(|of| of.as_ref().map_or(Cell::None, |of| of[place].clone())).collect()
        };
        (priority, std::iter::once(goodput).chain((0..COLUMNS.len()).map(column)).collect())
    };
    Results::priorities_side_by_side(&results).into_iter().map(of).collect()
}

/// One row for each priority of each configuration: means over its seeds, where it has several.
pub(super) fn side_by_side<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let mut rows = Vec::new();
    for (name, alike) in configurations(runs) {
        for (priority, of_seeds) in Results::priorities_side_by_side(&alike) {
            let goodput: Vec<Cell> =
                alike.iter().map(|results| results.goodput_of_priority(priority).into()).collect();
            let seeds: Vec<_> = of_seeds.iter().flatten().map(cells).collect();
            let figures = (0..COLUMNS.len()).map(|place| by_table::mean(seeds.iter().map(|of| &of[place])));
            let first = [priority.to_string().into(), by_table::mean(goodput.iter())];
            rows.push(named::of_configuration(names, name).chain(first).chain(figures).collect());
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    let columns: Vec<_> =
        [("priority", Unit::Text), ("goodput", Unit::Rate)].into_iter().chain(COLUMNS).collect();
    Section {
        title: "Priorities",
        note: "Over all links, both ways; packets count on each that they cross. Means over the seeds with 95 % confidence intervals \
               (Student's t), where there are several."
            .into(),
        names: named::headings(names, "configuration", &columns),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

/// One row for each priority of each configuration that another with the same flows comes before, where two seeds at least are paired.
pub(super) fn differences<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let (pairs, figures) = (paired(runs), figures(runs));
    let mut rows = Vec::new();
    for (name, _) in configurations(runs) {
        let (Some(against), Some(seeds)) =
            (pairs.baseline(name), pairs.seeds(name).filter(|seeds| *seeds > 1))
        else {
            continue;
        };
        let against = named::in_words(names, against);
        for (priority, figures) in &figures {
            let difference = |values: &Vec<Cell>| {
                pairs.difference(name, |place| values[place].number()).map_or(Cell::None, Cell::from)
            };
            let cells: Vec<Cell> = figures.iter().map(difference).collect();
            if cells.iter().any(|cell| *cell != Cell::None) {
                let first = [against.as_str().into(), priority.to_string().into(), seeds.into()];
                rows.push(named::of_configuration(names, name).chain(first).chain(cells).collect());
            }
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    let first = [("against", Unit::Text), ("priority", Unit::Text), ("paired seeds", Unit::Count)];
    let columns: Vec<_> = first.into_iter().chain([("goodput", Unit::Rate)]).chain(COLUMNS).collect();
    Section {
        title: "Differences of priorities, seed by seed",
        note: "The same differences as of all flows, of each priority over all links.".into(),
        names: named::headings(names, "configuration", &columns),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::csv_of_runs;
    use super::*;
    use crate::output::test_results::{sample, two_tables, with_priorities};
    use crate::results::TrafficResult;

    #[test]
    fn priorities_have_a_row_each_and_the_worst_ways_of_links_stand_first() {
        assert!(of_run(&sample()).is_empty());
        let sections = of_run(&with_priorities());
        let first = |section: &Section| -> Vec<Cell> {
            let table = section.table.as_ref().expect("a table");
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
            table.rows.iter().map(|row| row[0].clone()).collect()
        };
        assert_eq!(first(&sections[0]), ["0".into(), "3".into()]);
        let worst = ["leaf2>root:0".into(), "s0>leaf2:3".into(), "leaf2>root:3".into()];
        assert_eq!(first(&sections[1]), worst, "dropped, paused, marked; and not where nothing befell it");
    }

    #[test]
    fn of_many_links_the_worst_have_rows() {
        let mut results = with_priorities();
        let link = results.links[1].clone();
        results.links.extend(std::iter::repeat_n(link, 1_000));
        let section = worst(&results);
        assert!(section.note.starts_with("The 60 worst of 2\u{202f}003 on which"), "{}", section.note);
        assert_eq!(section.table.map(|table| table.rows.len()), Some(ROWS_MAX));
    }

    /// Two seeds of one configuration, the second with 13 drops more on priority 0, and one that does not count by priority.
    fn three() -> [Results; 3] {
        let mut traffic: Vec<TrafficResult> = two_tables();
        traffic[1].priorities = vec![0];
        let one = Results { traffic: traffic.clone(), ..with_priorities() };
        let mut other = Results { seed: one.seed + 1, ..one.clone() };
        other.links[1].priorities[0].drops += 13;
        [one, other, Results { traffic, ..sample() }]
    }

    fn runs(results: &[Results; 3]) -> Vec<Run<'_>> {
        let run = |(place, results)| Run {
            label: ["a seed=1", "a seed=2", "b"][place],
            configuration: ["a", "a", "b"][place],
            folder: None,
            results,
        };
        results.iter().enumerate().map(run).collect()
    }

    #[test]
    fn a_comparison_has_columns_for_each_priority_and_none_where_no_run_counts_them() {
        let results = three();
        let runs = runs(&results);
        let csv = csv_of_runs(&runs);
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let column = |name: &str| {
            let place = rows[0].iter().position(|it| *it == name).unwrap_or_else(|| panic!("{name}: {csv}"));
            [1, 2, 3].map(|row: usize| rows[row][place])
        };
        assert_eq!(column("priority_0.drops"), ["7", "20", ""]);
        assert_eq!(column("priority_3.ecn_marks"), ["25", "25", ""]);
        assert_eq!(column("priority_3.pause_received"), ["4", "4", ""]);
        assert_eq!(column("priority_3.paused_s"), ["0.00009", "0.00009", ""]);
        let goodput = [0, 3].map(|priority| {
            let told = column(&format!("priority_{priority}.goodput_bps"));
            assert!(told[2].is_empty(), "{csv}");
            told[0].parse::<f64>().unwrap()
        });
        let of_table = |table: usize| results[0].flows_of(&results[0].traffic[table]).total_goodput_bps();
        assert_eq!(goodput.map(Some), [of_table(1), of_table(0)]);
        assert!(!csv_of_runs(&runs[2..]).contains("priority_"), "{csv}");
    }

    #[test]
    fn the_page_of_several_runs_has_a_row_for_each_priority_of_each_configuration_that_counts_them() {
        let results = three();
        let section = side_by_side(&Names::default(), &runs(&results));
        let table = section.table.expect("priorities are in use");
        let first: Vec<_> = table.rows.iter().map(|row| row[..2].to_vec()).collect();
        assert_eq!(first, [["a".into(), "0".into()], ["a".into(), "3".into()]]);
        let place = 1 + table.columns.iter().position(|(name, _)| *name == "drops").expect("a column");
        assert!(
            matches!(table.rows[0][place], Cell::Estimate { mean: 13.5, half_width } if half_width > 0.0)
        );
        assert_eq!(table.rows[1][place], Cell::Estimate { mean: 0.0, half_width: 0.0 });
        assert!(side_by_side(&Names::default(), &runs(&results)[2..]).table.is_none());
    }
    #[test]
    fn how_much_configurations_differ_in_each_priority_is_told_where_seeds_are_paired() {
        let [one, other, uncounted] = three();
        let results = [one.clone(), Results { seed: one.seed + 1, ..one.clone() }, one, other];
        let run = |(place, results)| Run {
            label: ["a seed=1", "a seed=2", "b seed=1", "b seed=2"][place],
            configuration: ["a", "a", "b", "b"][place],
            folder: None,
            results,
        };
        let runs: Vec<Run<'_>> = results.iter().enumerate().map(run).collect();
        let section = differences(&Names::default(), &runs);
        let table = section.table.expect("two seeds of b are paired with those of a");
        assert!(table.rows.iter().all(|row| row.len() == 1 + table.columns.len()));
        let first: Vec<_> = table.rows.iter().map(|row| row[..4].to_vec()).collect();
        let is = |priority: &str| vec!["b".into(), "a".into(), priority.into(), 2_usize.into()];
        assert_eq!(first, [is("0"), is("3")]);
        let place = 1 + table.columns.iter().position(|(name, _)| *name == "drops").expect("a column");
        assert!(matches!(table.rows[0][place], Cell::Estimate { mean: 6.5, .. }), "{:?}", table.rows[0]);
        assert_eq!(table.rows[1][place], Cell::Estimate { mean: 0.0, half_width: 0.0 });
        let uncounted = [1, 2].map(|seed| Results { seed, ..uncounted.clone() });
        let runs: Vec<Run<'_>> = [0, 1, 0, 1].iter().map(|it| &uncounted[*it]).enumerate().map(run).collect();
        assert!(differences(&Names::default(), &runs).table.is_none());
    }
}
