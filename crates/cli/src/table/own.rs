//! How much configurations differ in what collectives, schedules and requests came to, seed by seed.

use super::differences::{Line, figures_of};
use crate::format::{number, per_second, rate, time};
use roci_lab::batch::{TableDifference, TableMetric};

/// The line of a difference.
pub(super) fn difference_of<'a>(of: &TableDifference<'a>) -> Line<'a> {
    Line {
        label: of.label,
        against: of.against,
        part: Some(of.name.to_owned()),
        seeds: of.seeds,
        figures: figures_of(&of.values, heading, written),
    }
}

const fn heading(metric: TableMetric) -> &'static str {
    match metric {
        TableMetric::Iteration => "iteration mean",
        TableMetric::BusBandwidth => "busbw",
        TableMetric::OverIdeal => "over ideal",
        TableMetric::Goal => "time",
        TableMetric::GoalMessages => "on their way",
        TableMetric::Request => "request mean",
        TableMetric::P99Request => "request p99",
        TableMetric::RequestRate => "per second",
    }
}

fn written(metric: TableMetric, value: f64) -> String {
    match metric {
        TableMetric::BusBandwidth => rate(value),
        TableMetric::OverIdeal => number(value),
        TableMetric::RequestRate => per_second(value),
        TableMetric::Iteration
        | TableMetric::Goal
        | TableMetric::GoalMessages
        | TableMetric::Request
        | TableMetric::P99Request => time(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_lab::figures::statistics::Estimate;

    #[test]
    fn a_line_has_a_figure_for_each_metric_and_those_of_other_tables_are_empty() {
        let estimate = Estimate { mean: -1e-5, half_width: 2e-6, min: -1.1e-5, max: -9e-6 };
        let value = |metric| matches!(metric, TableMetric::Goal).then_some(estimate);
        let values = TableMetric::ALL.map(|metric| (metric, value(metric)));
        let of = TableDifference { label: "b", against: "a", name: "step", seeds: 2, values };
        let line = difference_of(&of);
        let shown: Vec<_> = line.figures.iter().filter(|it| it.differs).collect();
        assert_eq!((shown.len(), shown[0].heading), (1, "time"));
        assert_eq!(shown[0].value.as_deref(), Some("-10.00 us ± 2.000 us"));
        assert_eq!((line.part.as_deref(), line.figures.len()), (Some("step"), TableMetric::ALL.len()));
    }
}
