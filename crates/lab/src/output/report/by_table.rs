//! What `comparison.csv` has of tables of traffic of one kind, behind the figures of whole runs.

use super::Run;
use super::page::Cell;
use crate::results::Results;

/// A column's name, and how its value is found in what became of a table.
pub(super) type Figure<T> = (&'static str, fn(&T) -> Cell);

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
