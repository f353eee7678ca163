//! What is printed of several configurations: how much each differs from the first one with the same flows, seed by seed.

use super::{BY_CHANCE, fit, heading, table};
use crate::format::{difference, or_dash};
use roci_lab::batch::{Difference, Group, Metric, Names};
use roci_lab::results::Results;

/// A table for each configuration that others are held against, with a line for each of these. Nothing where no two seeds are paired, as
/// with one seed.
pub(super) fn side_by_side(group: &Group, results: &[Results]) -> String {
    tables(&group.names(), &group.differences(results))
}

/// The same of the flows of each `[[traffic]]` table, where there are several.
pub(super) fn of_traffic(group: &Group, results: &[Results]) -> String {
    tables(&group.names(), &group.differences_of_traffic(results))
}

fn tables(names: &Names<'_>, differences: &[Difference<'_>]) -> String {
    let of_one = differences.chunk_by(|one, next| one.against == next.against);
    of_one.map(|differences| against_one(names, differences)).collect()
}

/// The table of `differences` that have one baseline.
fn against_one(names: &Names<'_>, differences: &[Difference<'_>]) -> String {
    let Some(first) = differences.first() else { return String::new() };
    // What no setting changed with any seed, such as drops where nothing is ever dropped, has no column.
    let differs = |metric: &Metric| {
        let mut values = differences.iter().flat_map(|it| &it.values).filter(|(it, _)| it == metric);
        values.any(|(_, value)| match metric {
            Metric::Imbalance => value.is_some_and(|it| it.mean.abs() > BY_CHANCE),
            _ => value.is_some_and(|it| it.min != 0.0 || it.max != 0.0),
        })
    };
    let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(differs).collect();
    let of = if first.traffic.is_some() { ", of each table of traffic" } else { "" };
    let against = format!("\n  against {}, seed by seed{of}: ", first.against);
    match metrics.is_empty() {
        true => against + "no difference\n",
        false => {
            against
                + "means of the differences with 95 % confidence intervals\n\n"
                + &rows(names, differences, &metrics)
        }
    }
}

fn rows(names: &Names<'_>, differences: &[Difference<'_>], metrics: &[Metric]) -> String {
    let traffic = differences.iter().any(|it| it.traffic.is_some()).then_some("traffic");
    let figures = ["seeds"].into_iter().chain(metrics.iter().map(|metric| heading(*metric)));
    let figures: Vec<&str> = traffic.into_iter().chain(figures).collect();
    let first = names.headings(&figures).len() + usize::from(traffic.is_some());
    let header: Vec<&str> = names.headings(&figures).into_iter().chain(figures).collect();
    let mut table = table(&header);
    for it in differences {
        let values = it.values.iter().filter(|(metric, _)| metrics.contains(metric));
        let cells =
            values.map(|(metric, value)| or_dash(value.as_ref().map(|value| difference(*metric, value))));
        let first = names.of(it.label).into_iter().chain(it.traffic).map(str::to_owned);
        table.add_row(first.chain([it.seeds.to_string()]).chain(cells));
    }
    fit::fitted(&table, first)
}
