//! GOAL schedules on the pages: how long they took, and what the time went into.

use super::by_table::{self, Figure, Kind};
use super::page::{Cell, Section, Table, Unit};
use super::{Run, named};
use crate::batch::Names;
use crate::results::{CriticalPath, GoalRank, GoalResult, Replays, Results};
use roci_units::Span;

const FIGURES: [(&str, Unit); 15] = [
    ("ranks", Unit::Count),
    ("operations", Unit::Count),
    ("not done", Unit::Count),
    ("messages", Unit::Count),
    ("octets", Unit::Bytes),
    ("time", Unit::Time),
    ("late", Unit::Time),
    ("computed", Unit::Time),
    ("overhead", Unit::Time),
    ("on their way", Unit::Time),
    ("over ideal", Unit::Factor),
    ("by links alone", Unit::Time),
    ("over that", Unit::Factor),
    ("each message alone", Unit::Time),
    ("no network", Unit::Time),
];

/// Under [`FIGURES`].
fn figures(it: &GoalResult) -> [Cell; 15] {
    let GoalRank { operations, undone, sent, sent_bytes, .. } = it.totals();
    let of_path = |value: fn(&CriticalPath) -> f64| Cell::from(it.path.as_ref().map(value));
    let of_replay = |value: fn(&Replays) -> Option<Span>| {
        Cell::from(it.replays.as_ref().and_then(value).map(Span::as_secs_f64))
    };
    [
        it.ranks.len().into(),
        operations.into(),
        undone.into(),
        sent.into(),
        sent_bytes.into(),
        it.seconds().into(),
        of_path(|path| path.late.as_secs_f64()),
        of_path(|path| path.computed.as_secs_f64()),
        of_path(|path| path.overhead.as_secs_f64()),
        of_path(|path| path.on_the_way().as_secs_f64()),
        it.path.as_ref().and_then(CriticalPath::over_ideal).into(),
        of_replay(|replays| replays.links),
        it.over_links().into(),
        of_replay(|replays| replays.alone),
        of_replay(|replays| replays.no_network),
    ]
}

const KIND: Kind<GoalResult, 15> = Kind {
    of: |results| &results.goals,
    place: |it| it.table,
    heading: "schedule",
    columns: FIGURES,
    figures,
};

const NOTE: &str = "The time is that of a chain in which each operation waited for the one before it: a rank that began late, calculation, what CPUs \
                    had to do with messages, and messages and collectives on their way, over what these would have taken on an idle network. Behind these: how long \
                    the schedule takes over a fabric that holds nothing up, where messages share the links of the NICs at both ends alone; where \
                    each message takes what it takes alone; and where it takes no time.";

/// What each schedule came to in each configuration, over its seeds.
pub(super) fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    by_table::means("Schedules, means over the seeds", &KIND, names, runs)
}

/// The schedules of one run.
pub(super) fn of_run(results: &Results) -> Section {
    let row = |it: &GoalResult| {
        let name = Cell::from(results.traffic[it.table].name.as_str());
        std::iter::once(name).chain(figures(it)).collect()
    };
    let columns = std::iter::once(("schedule", Unit::Text)).chain(FIGURES);
    section(columns.collect(), results.goals.iter().map(row).collect())
}

/// Those of several.
pub(super) fn of_runs(names: &Names<'_>, runs: &[Run<'_>]) -> Section {
    let all = runs.iter().flat_map(|run| run.results.goals.iter().map(move |it| (run, it)));
    let row = |(run, it): (&Run<'_>, &GoalResult)| {
        let first = named::of_run(names, run).chain([run.results.traffic[it.table].name.as_str().into()]);
        first.chain(figures(it)).collect()
    };
    let columns: Vec<_> = std::iter::once(("schedule", Unit::Text)).chain(FIGURES).collect();
    Section { names: named::headings(names, "run", &columns), ..section(columns, all.map(row).collect()) }
}

fn section(columns: Vec<(&'static str, Unit)>, rows: Vec<Vec<Cell>>) -> Section {
    if rows.is_empty() {
        return Section::default();
    }
    Section {
        title: "Schedules",
        note: NOTE.into(),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

/// The columns that `comparison.csv` has of schedules.
pub(super) fn csv_columns(runs: &[Run<'_>]) -> Vec<(String, Vec<Cell>)> {
    by_table::csv_columns(runs, |results| &results.goals, |it| it.table, &CSV)
}

/// What `comparison.csv` has of a schedule.
const CSV: [Figure<GoalResult>; 6] = [
    ("goal_s", |it| it.seconds().into()),
    ("goal_computed_s", |it| it.path.as_ref().map(|path| path.computed.as_secs_f64()).into()),
    ("goal_messages_s", |it| it.path.as_ref().map(|path| path.messages.as_secs_f64()).into()),
    ("goal_collectives_s", |it| it.path.as_ref().map(|path| path.collectives.as_secs_f64()).into()),
    ("goal_over_ideal", |it| it.path.as_ref().and_then(CriticalPath::over_ideal).into()),
    ("goal_over_links", |it| it.over_links().into()),
];

#[cfg(test)]
mod tests {
    use super::super::comparison::csv_of_runs;
    use super::*;
    use crate::output::test_results::{sample, with_goal};

    #[test]
    fn schedules_have_a_section_where_there_are_any_and_columns_of_a_comparison() {
        let results = [with_goal(), sample()];
        let run = |results| Run { label: "a", configuration: "a", folder: None, results };
        let runs: Vec<Run<'_>> = results.iter().map(run).collect();
        let rows = of_run(&results[0]).table.expect("there is one").rows;
        assert!(rows[0].contains(&Cell::Number(2.0)) && rows[0].contains(&Cell::Number(1e-4)), "{rows:?}");
        assert!(of_run(&results[1]).is_empty());
        assert_eq!(of_runs(&Names::default(), &runs).table.expect("there is one").rows.len(), 1);
        assert_eq!(means(&Names::default(), &[runs[0], runs[0]]).table.expect("two seeds").rows.len(), 1);
        let csv = csv_of_runs(&runs);
        let mut lines = csv.lines();
        assert!(
            lines.next().unwrap().ends_with(
                ",goal_s,goal_computed_s,goal_messages_s,goal_collectives_s,goal_over_ideal,goal_over_links"
            ),
            "{csv}"
        );
        assert!(lines.next().unwrap().ends_with(",0.0001,0.00005,0.00004,0,2,1.25"), "{csv}");
        assert!(lines.next().unwrap().ends_with(",,,,,,"), "{csv}");
        assert!(!csv_of_runs(&runs[1..]).contains("goal_s"));
    }
}
