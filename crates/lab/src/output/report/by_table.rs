//! What a comparison has of tables of traffic of one kind: their means over seeds, and columns of `comparison.csv` behind the figures of
//! whole runs.

use super::comparison::{configurations, paired};
use super::page::{Cell, Section, Table, Unit};
use super::{Run, named};
use crate::batch::{Names, TableMetric};
use crate::figures::statistics::Estimate;
use crate::results::Results;

/// A column's name, and how its value is found in what became of a table.
pub(super) type Figure<T> = (&'static str, fn(&T) -> Cell);

/// How the tables of one kind stand on a page.
pub(super) struct Kind<T, const N: usize> {
    /// The tables of a run.
    pub(super) of: fn(&Results) -> &[T],
    /// Where a table stands among all of its run.
    pub(super) place: fn(&T) -> usize,
    /// What stands above the name of a table.
    pub(super) heading: &'static str,
    /// What is told of one,
    pub(super) columns: [(&'static str, Unit); N],
    /// and what of this one.
    pub(super) figures: fn(&T) -> [Cell; N],
}

/// One row for each table in each configuration, where one ran with several seeds: the means over these.
pub(super) fn means<'a, T: 'a, const N: usize>(
    title: &'static str,
    kind: &Kind<T, N>,
    names: &Names<'a>,
    runs: &[Run<'a>],
) -> Section {
    let configurations = configurations(runs);
    if configurations.len() == runs.len() {
        return Section::default();
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (name, alike) in configurations {
        let count = alike.iter().map(|results| (kind.of)(results).len()).min().unwrap_or(0);
        for place in 0..count {
            let of_seeds: Vec<[Cell; N]> =
                alike.iter().map(|results| (kind.figures)(&(kind.of)(results)[place])).collect();
            let table = (kind.place)(&(kind.of)(alike[0])[place]);
            let first = [alike[0].traffic[table].name.as_str().into(), alike.len().into()];
            let figures = (0..N).map(|figure| mean(of_seeds.iter().map(|seed| &seed[figure])));
            rows.push(named::of_configuration(names, name).chain(first).chain(figures).collect());
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    let first = [(kind.heading, Unit::Text), ("seeds", Unit::Count)];
    let columns: Vec<_> = first.into_iter().chain(kind.columns).collect();
    Section {
        title,
        note: "Means over the seeds with 95 % confidence intervals (Student's t).".into(),
        names: named::headings(names, "configuration", &columns),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

/// The mean of numbers, or what all others are; nothing where some seed has none, or they differ in words.
pub(super) fn mean<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Cell {
    match cells.clone().map(Cell::number).collect::<Option<Vec<f64>>>() {
        Some(numbers) => Estimate::of(&numbers).map_or(Cell::None, Cell::from),
        None => {
            let mut cells = cells;
            let first = cells.next();
            first.filter(|first| cells.all(|cell| cell == *first)).cloned().unwrap_or(Cell::None)
        }
    }
}

/// One row for each collective, schedule and table of requests of each configuration that another with the same flows comes before, where two
/// seeds at least are paired.
pub(super) fn differences<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let pairs = paired(runs);
    let mut rows: Vec<(Vec<Cell>, [Cell; OF_TABLES.len()])> = Vec::new();
    for (name, alike) in configurations(runs) {
        let (Some(against), Some(seeds)) =
            (pairs.baseline(name), pairs.seeds(name).filter(|seeds| *seeds > 1))
        else {
            continue;
        };
        let against = named::in_words(names, against);
        for (table, of) in alike[0].traffic.iter().enumerate() {
            let difference = |metric: TableMetric| {
                let value = |place: usize| metric.of_table(runs[place].results, table);
                pairs.difference(name, value).map_or(Cell::None, Cell::from)
            };
            let cells = TableMetric::ALL.map(difference);
            if cells.iter().any(|cell| *cell != Cell::None) {
                let first = [against.as_str().into(), of.name.as_str().into(), seeds.into()];
                rows.push((named::of_configuration(names, name).chain(first).collect(), cells));
            }
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    // What no table has, as bandwidths where there are requests alone, has no column.
    let is_known = |place: &usize| rows.iter().any(|(_, cells)| cells[*place] != Cell::None);
    let known: Vec<usize> = (0..OF_TABLES.len()).filter(is_known).collect();
    let row = |(first, cells): (Vec<Cell>, [Cell; OF_TABLES.len()])| {
        first.into_iter().chain(known.iter().map(|place| cells[*place].clone())).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(row).collect();
    let first = [("against", Unit::Text), ("traffic", Unit::Text), ("paired seeds", Unit::Count)];
    let columns: Vec<_> = first.into_iter().chain(known.iter().map(|place| OF_TABLES[*place])).collect();
    Section {
        title: "Differences of collectives, schedules and requests, seed by seed",
        note: "The same differences as of all flows, of what each came to.".into(),
        names: named::headings(names, "configuration", &columns),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

/// What stands above the metrics of tables.
const OF_TABLES: [(&str, Unit); TableMetric::ALL.len()] = [
    ("iteration mean", Unit::Time),
    ("busbw", Unit::Rate),
    ("over ideal", Unit::Factor),
    ("time", Unit::Time),
    ("on their way", Unit::Time),
    ("request mean", Unit::Time),
    ("request p99", Unit::Time),
    ("per second", Unit::Speed),
];

/// The columns of `figures` of the tables of a kind: names, and a run's values. Where a run has several such tables the name of each
/// stands before those of its columns. `of` gives the tables of a run, and `place` where one stands among all.
pub(super) fn csv_columns<T>(
    runs: &[Run<'_>],
    of: fn(&Results) -> &[T],
    place: fn(&T) -> usize,
    figures: &[Figure<T>],
) -> Vec<(String, Vec<Cell>)> {
    let several = runs.iter().any(|run| of(run.results).len() > 1);
    let mut names: Vec<&str> = Vec::new();
    for (run, it) in runs.iter().flat_map(|run| of(run.results).iter().map(move |it| (run, it))) {
        let name = if several { run.results.traffic[place(it)].name.as_str() } else { "" };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let column = |name: &str, (metric, value): &Figure<T>| {
        let heading = if several { format!("{name}.{metric}") } else { (*metric).to_owned() };
        let value = |run: &Run<'_>| {
            let named = |it: &&T| !several || run.results.traffic[place(it)].name == name;
            of(run.results).iter().find(named).map_or(Cell::None, value)
        };
        (heading, runs.iter().map(value).collect())
    };
    names.into_iter().flat_map(|name| figures.iter().map(move |metric| column(name, metric))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{collectives, rpcs};
    use super::*;
    use crate::output::test_results::{with_collective, with_rpc};
    use crate::results::Times;
    use roci_units::Span;

    fn page(
        of: fn(&Names<'_>, &[Run<'_>]) -> Section,
        results: [&Results; 2],
        configurations: [&str; 2],
    ) -> Section {
        let both = configurations.into_iter().zip(results);
        let run = |(configuration, results)| Run { label: "run", configuration, folder: None, results };
        let runs: Vec<Run<'_>> = both.map(run).collect();
        of(&Names::default(), &runs)
    }

    fn cell<'a>(section: &'a Section, heading: &str) -> &'a Cell {
        let table = section.table.as_ref().expect("a table");
        let place = table.columns.iter().position(|(name, _)| *name == heading).expect(heading);
        &table.rows[0][section.names.len() + place]
    }

    #[test]
    fn differences_of_tables_have_a_row_for_each_and_columns_of_what_is_known() {
        let seeds = [1, 2, 1, 2].map(|seed| Results { seed, ..with_collective() });
        let run = |(results, configuration)| Run { label: "run", configuration, folder: None, results };
        let runs: Vec<Run<'_>> = seeds.iter().zip(["a", "a", "b", "b"]).map(run).collect();
        let Section { names, table, .. } = differences(&Names::default(), &runs);
        let table = table.expect("two seeds are paired");
        let headings: Vec<_> = table.columns.iter().map(|(heading, _)| *heading).collect();
        assert_eq!(headings[headings.len() - 3..], ["iteration mean", "busbw", "over ideal"]);
        assert_eq!((table.rows.len(), table.rows[0].len()), (1, names.len() + table.columns.len()));
        assert!(differences(&Names::default(), &runs[..2]).table.is_none(), "nothing to hold it against");
    }

    #[test]
    fn collectives_and_requests_have_means_over_the_seeds_of_a_configuration() {
        let (fast, mut slow) = (with_collective(), with_collective());
        slow.collectives[0].iterations.truncate(1);
        slow.collectives[0].iterations[0].end += Span::from_micros(100);
        let told = page(collectives::means, [&fast, &slow], ["a", "a"]);
        let mean = |section: &Section, heading: &str| match cell(section, heading) {
            Cell::Estimate { mean, half_width } => (*mean, *half_width > 0.0),
            other => panic!("{heading}: {other:?}"),
        };
        assert_eq!(told.table.as_ref().map(|table| table.rows.len()), Some(1));
        assert_eq!((cell(&told, "seeds"), cell(&told, "size")), (&Cell::Number(2.0), &"1MB".into()));
        assert_eq!(mean(&told, "iterations"), (1.5, true));
        // 1 MB in 100 us and in 200 us, and 2 times 3/4 of it.
        assert!((mean(&told, "time mean").0 - 150e-6).abs() < 1e-9, "{told:?}");
        assert!(
            (mean(&told, "busbw").0 - 90e9).abs() < 1.0 && mean(&told, "ranks") == (4.0, false),
            "{told:?}"
        );
        slow.collectives[0].iterations.clear();
        let told = page(collectives::means, [&fast, &slow], ["a", "a"]);
        assert_eq!(cell(&told, "time mean"), &Cell::None, "a mean of what some have would be no mean");

        let (one, mut other) = (with_rpc(), with_rpc());
        other.rpcs[0].answered *= 2;
        other.rpcs[0].times = Times::default();
        other.rpcs[0].times.add(Span::from_micros(900));
        let told = page(rpcs::means, [&one, &other], ["a", "a"]);
        assert!((mean(&told, "per second").0 - 1.5 * 3e3).abs() < 1.0, "{told:?}");
        assert!(mean(&told, "time mean").1 && mean(&told, "p99").1 && mean(&told, "answered").1, "{told:?}");
        for alone in [collectives::means, rpcs::means] {
            let each = with_rpc();
            assert!(page(alone, [&each, &with_collective()], ["a", "b"]).table.is_none(), "one seed each");
        }
    }
}
