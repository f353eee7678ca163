//! What the rows of a comparison's tables begin with: a column for each key that was swept, else one with the labels.

use super::Run;
use super::page::{Cell, Unit};
use crate::batch::Names;

/// What stands above these columns, beside those that are `shown`: the keys, else `one`.
pub(super) fn headings<'a>(
    names: &Names<'_>,
    one: &str,
    shown: impl IntoIterator<Item = &'a (&'static str, Unit)>,
) -> Vec<String> {
    match names.are_keys() {
        true => {
            let beside: Vec<&str> = shown.into_iter().map(|(heading, _)| *heading).collect();
            names.headings(&beside).into_iter().map(str::to_owned).collect()
        }
        false => vec![one.to_owned()],
    }
}

/// What stands in them of a configuration.
pub(super) fn of_configuration<'a>(
    names: &Names<'a>,
    label: &'a str,
) -> impl Iterator<Item = Cell> + use<'a> {
    names.of(label).into_iter().map(Cell::from)
}

/// What stands in them of a run: its seed has a column of its own beside the keys.
pub(super) fn of_run<'a>(names: &Names<'a>, run: &Run<'a>) -> impl Iterator<Item = Cell> + use<'a> {
    let words = if names.are_keys() { names.of(run.configuration) } else { vec![run.label] };
    words.into_iter().map(Cell::from)
}

/// A configuration in one cell.
pub(super) fn in_words<'a>(names: &Names<'a>, label: &'a str) -> String {
    if !names.are_keys() {
        return label.to_owned();
    }
    let told = names.headings(&[]).into_iter().zip(names.of(label));
    told.map(|(heading, value)| format!("{heading}={value}")).collect::<Vec<_>>().join(" ")
}
