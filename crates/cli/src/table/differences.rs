//! What is printed of several configurations: how much each differs from the first one with the same flows, seed by seed.

use super::configurations::heading;
use super::{BY_CHANCE, fit, own, priorities, table};
use crate::format::{difference, or_dash, signed};
use roci_lab::batch::{Difference, Group, Metric, Names};
use roci_lab::figures::statistics::Estimate;
use roci_lab::results::Results;

/// A line: how much one configuration differs, or a part of it.
pub(super) struct Line<'a> {
    /// The configuration.
    pub(super) label: &'a str,
    /// What it is held against.
    pub(super) against: &'a str,
    /// Of which part it tells; `None`: of all.
    pub(super) part: Option<String>,
    /// How many seeds are paired.
    pub(super) seeds: usize,
    /// Its figures: the same of all lines, in the same order.
    pub(super) figures: Vec<Figure>,
}

/// How much a figure differs.
pub(super) struct Figure {
    /// What stands above it.
    pub(super) heading: &'static str,
    /// What is printed; `None` where a run does not yield it.
    pub(super) value: Option<String>,
    /// Whether it differs with any seed.
    pub(super) differs: bool,
}

/// A table for each configuration that others are held against, with a line for each of these. Nothing where no two seeds are paired, as
/// with one seed.
pub(super) fn side_by_side(group: &Group, results: &[Results]) -> String {
    tables(&group.names(), None, group.differences(results).iter().map(line))
}

/// The same of the flows of each `[[traffic]]` table, where there are several.
pub(super) fn of_traffic(group: &Group, results: &[Results]) -> String {
    let parts = Some(("traffic", "table of traffic"));
    tables(&group.names(), parts, group.differences_of_traffic(results).iter().map(line))
}

/// The same of each priority, where several are in use.
pub(super) fn of_priorities(group: &Group, results: &[Results]) -> String {
    let parts = Some(("priority", "priority"));
    let differences = group.differences_of_priorities(results);
    tables(&group.names(), parts, differences.iter().map(priorities::difference_of))
}

/// The same of each collective, schedule and table of requests.
pub(super) fn of_tables(group: &Group, results: &[Results]) -> String {
    let parts = Some(("traffic", "collective, schedule and table of requests"));
    tables(&group.names(), parts, group.differences_of_tables(results).iter().map(own::difference_of))
}

/// The figures of `values`, by what stands above each metric and how it is written.
pub(super) fn figures_of<M: Copy>(
    values: &[(M, Option<Estimate>)],
    heading: fn(M) -> &'static str,
    written: fn(M, f64) -> String,
) -> Vec<Figure> {
    let figure = |(metric, value): &(M, Option<Estimate>)| Figure {
        heading: heading(*metric),
        value: value.as_ref().map(|value| signed(value, |value| written(*metric, value))),
        differs: differs(value.as_ref()),
    };
    values.iter().map(figure).collect()
}

/// Whether a figure differs with any seed.
fn differs(difference: Option<&Estimate>) -> bool {
    difference.is_some_and(|it| it.min != 0.0 || it.max != 0.0)
}

fn line<'a>(of: &Difference<'a>) -> Line<'a> {
    let figure = |(metric, value): &(Metric, Option<Estimate>)| Figure {
        heading: heading(*metric),
        value: value.as_ref().map(|value| difference(*metric, value)),
        differs: match metric {
            Metric::Imbalance => value.is_some_and(|it| it.mean.abs() > BY_CHANCE),
            _ => differs(value.as_ref()),
        },
    };
    Line {
        label: of.label,
        against: of.against,
        part: of.traffic.map(str::to_owned),
        seeds: of.seeds,
        figures: of.values.iter().map(figure).collect(),
    }
}

/// The tables of `lines`; where these tell of parts, with what stands above their names, and what one is called.
fn tables<'a>(
    names: &Names<'_>,
    parts: Option<(&'static str, &str)>,
    lines: impl Iterator<Item = Line<'a>>,
) -> String {
    let lines: Vec<Line<'_>> = lines.collect();
    let of_one = lines.chunk_by(|one, next| one.against == next.against);
    of_one.map(|lines| against_one(names, parts, lines)).collect()
}

/// The table of `lines` that have one baseline.
fn against_one(names: &Names<'_>, parts: Option<(&'static str, &str)>, lines: &[Line<'_>]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    // What no setting changed with any seed, such as drops where nothing is ever dropped, has no column.
    let shown: Vec<usize> =
        (0..first.figures.len()).filter(|place| lines.iter().any(|it| it.figures[*place].differs)).collect();
    let of = parts.map_or_else(String::new, |(_, part)| format!(", of each {part}"));
    let against = format!("\n  against {}, seed by seed{of}: ", first.against);
    match shown.is_empty() {
        true => against + "no difference\n",
        false => {
            let part = parts.map(|(heading, _)| heading);
            against
                + "means of the differences with 95 % confidence intervals\n\n"
                + &rows(names, part, lines, &shown)
        }
    }
}

fn rows(names: &Names<'_>, part: Option<&'static str>, lines: &[Line<'_>], shown: &[usize]) -> String {
    let figures = ["seeds"].into_iter().chain(shown.iter().map(|place| lines[0].figures[*place].heading));
    let figures: Vec<&str> = part.into_iter().chain(figures).collect();
    let first = names.headings(&figures).len() + usize::from(part.is_some());
    let header: Vec<&str> = names.headings(&figures).into_iter().chain(figures).collect();
    let mut table = table(&header);
    for it in lines {
        let cells = shown.iter().map(|place| or_dash(it.figures[*place].value.clone()));
        let first = names.of(it.label).into_iter().map(str::to_owned).chain(it.part.clone());
        table.add_row(first.chain([it.seeds.to_string()]).chain(cells));
    }
    fit::fitted(&table, first)
}
