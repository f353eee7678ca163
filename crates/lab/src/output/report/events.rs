//! Marks in plots over time: when faults began and ended, and when `[[at]]` changed something.

use super::page::{Cell, Mark, Section, Table, Unit};
use crate::results::Results;
use roci_units::Instant;

/// Marks of a page; more of them are no longer told apart.
const MARKS_MAX: usize = 60;

/// The first that came into force, in the order of time. What holds for the whole run divides it nowhere, and has none.
pub(super) fn marks(results: &Results) -> Vec<Mark> {
    let mut marks = all(results);
    marks.truncate(MARKS_MAX);
    marks
}

/// All of them.
pub(crate) fn all(results: &Results) -> Vec<Mark> {
    let end = results.simulated;
    let seconds = |at: Instant| at.as_secs_f64();
    let reached = results.rules.iter().filter(|rule| rule.from < end);
    let parts =
        reached.filter(|rule| rule.from > Instant::ZERO || rule.until.is_some_and(|until| until < end));
    let faults = parts.map(|rule| Mark {
        name: format!("{}: {}", rule.name, rule.what),
        from: seconds(rule.from),
        until: Some(seconds(rule.until.unwrap_or(Instant::NEVER).min(end))),
    });
    let changes =
        results.changes.iter().map(|(at, what)| Mark { name: what.clone(), from: seconds(*at), until: None });
    let mut marks: Vec<Mark> = faults.chain(changes).collect();
    marks.sort_by(|a, b| a.from.total_cmp(&b.from));
    marks
}

/// What the numbers of the marks stand for; nothing where there are none, or no plot that has them.
pub(super) fn of_run(results: &Results) -> Section {
    let all = all(results);
    if all.is_empty() || results.series.is_empty() {
        return Section::default();
    }
    let note = "The plots over time have these numbers where something began: a fault, whose time is shaded, or a change by [[at]].";
    let more = match all.len() {
        many if many > MARKS_MAX => format!(" The first {MARKS_MAX} of {many} are marked."),
        _ => String::new(),
    };
    let row = |(number, mark): (usize, &Mark)| {
        vec![
            number.into(),
            mark.name.as_str().into(),
            mark.from.into(),
            mark.until.map_or(Cell::None, Cell::from),
        ]
    };
    let rows = (1..=MARKS_MAX).zip(&all).map(row).collect();
    let columns =
        vec![("mark", Unit::Count), ("what", Unit::Text), ("from", Unit::Time), ("until", Unit::Time)];
    let table = Some(Table { columns, rows });
    Section { title: "What changed when", note: note.to_owned() + &more, table, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::test_results::{sample, with_rule};

    #[test]
    fn faults_and_changes_are_marked_in_the_order_of_time() {
        assert!(marks(&sample()).is_empty() && of_run(&sample()).is_empty());
        let mut results = with_rule();
        let at = |millis: u64| Instant::from_ps(millis * 1_000_000_000);
        results.changes = vec![(at(1), "rai = 80Mb/s".into()), (at(9), "g = 1/64".into())];
        let told: Vec<_> =
            marks(&results).into_iter().map(|mark| (mark.name, mark.from, mark.until)).collect();
        let expected = [
            ("rai = 80Mb/s".to_owned(), 1e-3, None),
            ("leaf2-root: down".to_owned(), 2e-3, Some(6e-3)),
            ("g = 1/64".to_owned(), 9e-3, None),
        ];
        assert_eq!(told, expected);
        let table = of_run(&results).table.expect("there are marks");
        assert_eq!(table.rows[1][..2], [2_usize.into(), "leaf2-root: down".into()]);
    }

    #[test]
    fn a_fault_ends_with_the_run_at_the_latest_and_none_is_marked_that_holds_throughout() {
        let mut results = with_rule();
        let (from, until) = (results.rules[0].from, results.rules[0].until);
        results.rules[0].until = None;
        assert_eq!(marks(&results)[0].until, Some(results.simulated.as_secs_f64()));
        results.rules[0].from = Instant::ZERO;
        assert!(marks(&results).is_empty());
        results.rules[0].until = until;
        assert_eq!(marks(&results).len(), 1);
        results.rules[0].from = from;
        results.simulated = from;
        assert!(marks(&results).is_empty(), "the run was over before");
    }

    #[test]
    fn a_page_has_no_more_marks_than_are_told_apart_and_says_so() {
        let mut results = sample();
        results.changes =
            (1..=100).map(|n| (Instant::from_ps(n * 1_000_000), format!("rai = {n}"))).collect();
        assert_eq!(marks(&results).len(), MARKS_MAX);
        let section = of_run(&results);
        assert!(section.note.ends_with("The first 60 of 100 are marked."), "{}", section.note);
        assert_eq!(section.table.map(|table| table.rows.len()), Some(MARKS_MAX));
    }
}
