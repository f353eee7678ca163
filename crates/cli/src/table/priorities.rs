//! What is printed of priorities in several runs, where packets travel on several.

use super::{fit, table};
use crate::format::{count, octets_of, of_seeds, rate, time};
use roci_lab::batch::{Names, PrioritySum};

const SIDE_BY_SIDE: [&str; 7] =
    ["priority", "goodput", "drops", "marks", "pauses", "time paused", "deepest queue"];

/// A line for each priority in each configuration, with means over its seeds; nothing where no run counts by priority.
pub(super) fn side_by_side(names: &Names<'_>, sums: &[PrioritySum<'_>]) -> String {
    if sums.is_empty() {
        return String::new();
    }
    let first = names.headings(&SIDE_BY_SIDE);
    let mut table = table(&first.iter().copied().chain(SIDE_BY_SIDE).collect::<Vec<_>>());
    for sum in sums {
        let first = names.of(sum.label).into_iter().map(str::to_owned);
        table.add_row(first.chain([
            sum.priority.to_string(),
            of_seeds(sum.goodput_bps.as_ref(), rate),
            of_seeds(sum.drops.as_ref(), count),
            of_seeds(sum.ecn_marks.as_ref(), count),
            of_seeds(sum.pauses.as_ref(), count),
            of_seeds(sum.paused.as_ref(), time),
            of_seeds(sum.max_queue_bytes.as_ref(), octets_of),
        ]));
    }
    format!("\n{}", fit::fitted(&table, first.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_lab::figures::statistics::Estimate;

    #[test]
    fn each_priority_has_a_line_in_each_configuration_and_runs_without_have_none() {
        assert_eq!(side_by_side(&Names::default(), &[]), "");
        let sum = |label, priority, marks: &[f64]| PrioritySum {
            label,
            priority,
            goodput_bps: None,
            drops: Estimate::of(&[0.0]),
            ecn_marks: Estimate::of(marks),
            pauses: Estimate::of(&[12.0]),
            paused: Estimate::of(&[90e-6]),
            max_queue_bytes: Estimate::of(&[40_000.0]),
        };
        let told = side_by_side(&Names::default(), &[sum("a", 0, &[7.0]), sum("b", 3, &[24.0, 27.0])]);
        let words = |line: usize| {
            let words = told.lines().nth(line).unwrap_or_default().split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(2), ["a", "0", "-", "0", "7", "12", "90.00", "us", "40.00", "KB"], "{told}");
        assert_eq!(words(3)[..5], ["b", "3", "-", "0", "25.50"], "{told}");
    }
}
