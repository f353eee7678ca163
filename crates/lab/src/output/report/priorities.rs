//! What befell each priority, on the page of a run: in sum, and where it was worst.

use super::page::{Cell, Section, Table, Unit};
use super::run::grouped;
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
        of.drops + of.ecn_marks + of.pause_received > 0 || of.max_queue_bytes.is_some_and(|octets| octets > 0)
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

const COLUMNS: [(&str, Unit); 7] = [
    ("packets", Unit::Count),
    ("sent", Unit::Bytes),
    ("drops", Unit::Count),
    ("CE marks", Unit::Count),
    ("PAUSE received", Unit::Count),
    ("paused", Unit::Time),
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
        of.max_queue_bytes.map_or(Cell::None, Cell::from),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, with_priorities};

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
}
