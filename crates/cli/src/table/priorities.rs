//! What is printed of priorities, where packets travel on several: of one run, of several, and how much these differ.

use super::differences::{self, Line, figures_of};
use super::{fit, table};
use crate::format::{count, octets_of, of_seeds, rate, time};
use roci_lab::batch::{Group, Names, PriorityDifference, PriorityMetric, PrioritySum, PriorityValues};
use roci_lab::figures::statistics::Estimate;
use roci_lab::results::Results;

/// A line for each priority of a run; nothing where it does not count by priority.
pub(super) fn of_run(results: &Results) -> String {
    side_by_side(&Names::default(), &PrioritySum::of_run(results), false)
}

/// A line for each priority in each configuration, with means over its seeds, and how much these differ; nothing where no run counts by
/// priority.
pub(super) fn of_several(group: &Group, results: &[Results]) -> String {
    side_by_side(&group.names(), &group.sums_of_priorities(results), true)
        + &differences::of_priorities(group, results)
}

/// The lines of `sums`, those of several configurations behind their `names`.
fn side_by_side(names: &Names<'_>, sums: &[PrioritySum<'_>], named: bool) -> String {
    if sums.is_empty() {
        return String::new();
    }
    let shown = |metric: &PriorityMetric| {
        let mut values = sums.iter().filter_map(|sum| value(&sum.values, *metric));
        !is_seldom(*metric) || values.any(|value| value.max > 0.0)
    };
    let metrics: Vec<PriorityMetric> = PriorityMetric::ALL.into_iter().filter(shown).collect();
    let figures: Vec<&str> = ["priority"].into_iter().chain(metrics.iter().copied().map(heading)).collect();
    let first = if named { names.headings(&figures) } else { Vec::new() };
    let mut table = table(&first.iter().copied().chain(figures).collect::<Vec<_>>());
    for sum in sums {
        let first = if named { names.of(sum.label) } else { Vec::new() };
        let first = first.into_iter().map(str::to_owned).chain([sum.priority.to_string()]);
        let cell =
            |metric: &PriorityMetric| of_seeds(value(&sum.values, *metric), |value| written(*metric, value));
        table.add_row(first.chain(metrics.iter().map(cell)));
    }
    format!("\n{}", fit::fitted(&table, first.len() + 1))
}

/// The line of a difference.
pub(super) fn difference_of<'a>(of: &PriorityDifference<'a>) -> Line<'a> {
    Line {
        label: of.label,
        against: of.against,
        part: Some(of.priority.to_string()),
        seeds: of.seeds,
        figures: figures_of(&of.values, heading, written),
    }
}

fn value(values: &PriorityValues, wanted: PriorityMetric) -> Option<&Estimate> {
    values.iter().find(|(metric, _)| *metric == wanted)?.1.as_ref()
}

/// What faults alone bring about: it has a column where one of its values is not zero.
const fn is_seldom(metric: PriorityMetric) -> bool {
    matches!(metric, PriorityMetric::Lost | PriorityMetric::Corrupted)
}

/// What stands above a metric.
const fn heading(metric: PriorityMetric) -> &'static str {
    match metric {
        PriorityMetric::Goodput => "goodput",
        PriorityMetric::Drops => "drops",
        PriorityMetric::Lost => "lost",
        PriorityMetric::Corrupted => "damaged",
        PriorityMetric::Marks => "marks",
        PriorityMetric::Pauses => "pauses",
        PriorityMetric::Paused => "time paused",
        PriorityMetric::Deepest => "deepest queue",
    }
}

fn written(metric: PriorityMetric, value: f64) -> String {
    match metric {
        PriorityMetric::Goodput => rate(value),
        PriorityMetric::Paused => time(value),
        PriorityMetric::Deepest => octets_of(value),
        PriorityMetric::Drops
        | PriorityMetric::Lost
        | PriorityMetric::Corrupted
        | PriorityMetric::Marks
        | PriorityMetric::Pauses => count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::results;
    use super::*;
    use roci_lab::results::{LinkResult, PriorityResult};

    /// What a priority came to, given as values of seeds; nothing of what is not given.
    fn sum<'a>(label: &'a str, priority: u8, given: &[(PriorityMetric, &[f64])]) -> PrioritySum<'a> {
        let values = PriorityMetric::ALL.map(|metric| {
            let of = given.iter().find(|(it, _)| *it == metric);
            (metric, of.and_then(|(_, seeds)| Estimate::of(seeds)))
        });
        PrioritySum { label, priority, values }
    }

    fn words(told: &str, line: usize) -> Vec<&str> {
        told.lines()
            .nth(line)
            .unwrap_or_default()
            .split("  ")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect()
    }

    #[test]
    fn each_priority_has_a_line_in_each_configuration_and_runs_without_have_none() {
        use PriorityMetric::{Corrupted, Deepest, Drops, Lost, Marks, Paused, Pauses};
        assert_eq!(side_by_side(&Names::default(), &[], true), "");
        let of = |label, priority, marks: &[f64], lost: f64| {
            let given: [(PriorityMetric, &[f64]); 7] = [
                (Drops, &[0.0]),
                (Lost, &[lost]),
                (Corrupted, &[0.0]),
                (Marks, marks),
                (Pauses, &[12.0]),
                (Paused, &[90e-6]),
                (Deepest, &[40_000.0]),
            ];
            sum(label, priority, &given)
        };
        let told = |sums: &[PrioritySum<'_>]| side_by_side(&Names::default(), sums, true);
        let both = told(&[of("a", 0, &[7.0], 0.0), of("b", 3, &[24.0, 27.0], 0.0)]);
        assert_eq!(words(&both, 2), ["a", "0", "-", "0", "7", "12", "90.00 us", "40.00 KB"], "{both}");
        assert_eq!(words(&both, 3)[..4], ["b", "3", "-", "0"], "{both}");
        assert!(words(&both, 3)[4].starts_with("25.50 ±"), "{both}");
        let told = told(&[of("a", 0, &[7.0], 0.0), of("b", 3, &[24.0], 6.0)]);
        assert_eq!(words(&told, 1)[2..6], ["goodput", "drops", "lost", "marks"], "{told}");
        assert_eq!(words(&told, 2)[2..5], ["-", "0", "0"], "{told}");
        assert_eq!(words(&told, 3)[2..5], ["-", "0", "6"], "{told}");
    }

    #[test]
    fn a_run_with_several_priorities_has_a_line_for_each_and_what_faults_damaged_where_there_is_any() {
        let mut one = results(2);
        assert_eq!(of_run(&one), "");
        let of = |priority, corrupted| PriorityResult { priority, corrupted, drops: 7, ..Default::default() };
        one.links = vec![LinkResult { priorities: vec![of(0, 0), of(3, 2)], ..Default::default() }];
        let told = of_run(&one);
        let headings =
            ["priority", "goodput", "drops", "damaged", "marks", "pauses", "time paused", "deepest queue"];
        assert_eq!(words(&told, 1), headings, "{told}");
        assert_eq!(words(&told, 3)[2..5], ["7", "2", "0"], "{told}");
        one.links[0].priorities[1].corrupted = 0;
        assert!(!of_run(&one).contains("damaged"), "{}", of_run(&one));
    }

    #[test]
    fn how_much_a_priority_differs_has_its_sign_and_what_does_not_differ_no_column() {
        let sum =
            sum("b", 3, &[(PriorityMetric::Drops, &[10.0, 12.0]), (PriorityMetric::Marks, &[0.0, 0.0])]);
        let line = difference_of(&PriorityDifference {
            label: sum.label,
            against: "a",
            priority: sum.priority,
            seeds: 2,
            values: sum.values,
        });
        assert_eq!(line.part.as_deref(), Some("3"));
        let differs: Vec<_> = line.figures.iter().filter(|it| it.differs).collect();
        let told: Vec<_> =
            differs.iter().map(|it| (it.heading, it.value.clone().unwrap_or_default())).collect();
        assert_eq!((told.len(), told[0].0), (1, "drops"));
        assert!(told[0].1.starts_with("+11 ±"), "{}", told[0].1);
    }
}
