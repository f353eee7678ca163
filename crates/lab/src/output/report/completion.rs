//! How long flows took: of all by their sizes, and of each `[[traffic]]` table.

use super::by_size;
use super::lines::distribution;
use super::page::{Axis, Cell, Plot, Section, Table, Unit};
use crate::results::Results;
use crate::results::statistics::Sorted;

/// Completion times: distributions, and the table by size.
pub(super) fn completion(results: &Results) -> Section {
    let slowdowns = results.slowdowns();
    let times = results.completion_times();
    let mut section = Section { title: "Flow completion", ..Section::default() };
    if slowdowns.values().is_empty() {
        section.note = "No flow completed.".into();
        return section;
    }
    let (done, all) = (slowdowns.values().len(), results.flows.len());
    let of = if done < all { format!(" of the {done} completed of {all} flows") } else { String::new() };
    if done > 1 {
        section.plots = vec![
            cumulative(format!("Slowdown{of}"), Axis::new("slowdown", Unit::Factor), &slowdowns),
            cumulative(format!("Completion time{of}"), Axis::new("completion time", Unit::Time), &times),
        ];
        section.plots.extend(by_size::of_run(results));
    }
    section.note =
        "Completion time runs from the post of a message to its sender's completion; slowdown is that over \
                    the time of the same flow alone on an idle path."
            .into();
    if done < all {
        section.note +=
            &format!(" Only the {done} completed of {all} flows have them, and only these are counted here.");
    }
    let rows = results.by_size().into_iter().map(|group| {
        let size = match group.from == group.to {
            true => group.to.to_string(),
            false => format!("{} to {}", group.from, group.to),
        };
        let (fct, slowdown) = (&group.completion_times, &group.slowdowns);
        let first = [size.into(), fct.values().len().into()];
        first.into_iter().chain(spread(fct, slowdown)).collect()
    });
    let first = [("message size", Unit::Text), ("completed", Unit::Count)];
    section.table = Some(Table { columns: first.into_iter().chain(SPREAD).collect(), rows: rows.collect() });
    section
}

/// What stands above [`spread`].
const SPREAD: [(&str, Unit); 7] = [
    ("FCT mean", Unit::Time),
    ("FCT p50", Unit::Time),
    ("FCT p99", Unit::Time),
    ("slowdown p50", Unit::Factor),
    ("p95", Unit::Factor),
    ("p99", Unit::Factor),
    ("max", Unit::Factor),
];

/// How completion times and slowdowns of several flows are spread.
fn spread(fct: &Sorted, slowdown: &Sorted) -> [Cell; 7] {
    [
        fct.mean().into(),
        fct.percentile(50).into(),
        fct.percentile(99).into(),
        slowdown.percentile(50).into(),
        slowdown.percentile(95).into(),
        slowdown.percentile(99).into(),
        slowdown.max().into(),
    ]
}

/// How the flows of each `[[traffic]]` table fared beside those of the others.
pub(super) fn traffic(results: &Results) -> Section {
    if results.traffic.len() < 2 {
        return Section::default();
    }
    let rows = results.traffic.iter().map(|traffic| {
        let flows = results.flows_of(traffic);
        let mut row = vec![
            traffic.name.as_str().into(),
            traffic.kind.into(),
            flows.flows.len().into(),
            flows.completed().count().into(),
            flows.failed().count().into(),
        ];
        row.extend(spread(&flows.completion_times(), &flows.slowdowns()));
        row.extend([
            flows.offered_bps().into(),
            flows.total_goodput_bps().into(),
            flows.fairness().into(),
            flows.retransmitted().into(),
            flows.timeouts().into(),
        ]);
        row
    });
    let mut columns = vec![
        ("traffic", Unit::Text),
        ("kind", Unit::Text),
        ("flows", Unit::Count),
        ("completed", Unit::Count),
        ("failed", Unit::Count),
    ];
    columns.extend(SPREAD);
    columns.extend([
        ("offered", Unit::Rate),
        ("goodput", Unit::Rate),
        ("fairness", Unit::Number),
        ("sent again", Unit::Count),
        ("timeouts", Unit::Count),
    ]);
    Section {
        title: "Traffic",
        note: "The flows of each table of the scenario's traffic, by its name or its index. What a table offers by the clock is \
               told of it, and goodput is then what was delivered meanwhile."
            .into(),
        table: Some(Table { columns, rows: rows.collect() }),
        ..Section::default()
    }
}

fn cumulative(title: String, axis: Axis, sorted: &Sorted) -> Plot {
    Plot {
        title,
        x: axis.log_if_wide(sorted.values()),
        y: Axis::new("share of completed flows", Unit::Share).up_to(1.0),
        step: true,
        lines: vec![distribution(sorted.values()).line("all flows".into(), 0, false)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, two_tables};

    #[test]
    fn each_of_several_tables_of_traffic_has_a_row_and_a_single_one_has_no_section() {
        let mut results = sample();
        assert!(traffic(&results).is_empty());
        results.traffic = two_tables();
        let table = traffic(&results).table.expect("two tables");
        let row = |place: usize| {
            let cells = ["traffic", "completed", "FCT p99", "fairness", "sent again"].map(|heading| {
                let place_of = table.columns.iter().position(|(name, _)| *name == heading).expect("a column");
                table.rows[place][place_of].clone()
            });
            (cells, table.rows[place].len())
        };
        let all = table.columns.len();
        let first = ["0".into(), 1u32.into(), 0.026.into(), Cell::None, 0u32.into()];
        assert_eq!(row(0), (first, all));
        let (others, length) = row(1);
        assert_eq!((&others[0], &others[1], &others[4]), (&"background".into(), &2u32.into(), &6u32.into()));
        assert!(matches!(others[3], Cell::Number(jain) if 0.9 < jain && jain < 1.0) && length == all);
    }
}
