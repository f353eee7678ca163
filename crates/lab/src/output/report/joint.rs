//! Collectives of schedules on the pages, by what they do: of one run, and of several side by side.

use super::by_table::Figure;
use super::comparison::configurations;
use super::page::{Cell, Section, Table, Unit};
use super::{Run, named};
use crate::batch::{GoalSum, Names};
use crate::results::{GoalResult, JointKind, Results};
use crate::traffic::Algorithm;
use crate::traffic::collective::Operation;

/// What there is to say of each kind,
const KIND: [(&str, Unit); 4] =
    [("schedule", Unit::Text), ("operation", Unit::Text), ("algorithm", Unit::Text), ("ranks", Unit::Count)];

/// and what it came to.
const FIGURES: [(&str, Unit); 4] = [
    ("until all began", Unit::Time),
    ("time", Unit::Time),
    ("busbw", Unit::Rate),
    ("over ideal", Unit::Factor),
];

const COUNTS: [(&str, Unit); 3] =
    [("count", Unit::Count), ("not done", Unit::Count), ("octets", Unit::Bytes)];

const NOTE: &str = "Means over all of a kind: from when the first rank began to when the last did, from then until the last was done, what each rank \
                    must send at least over that time (the bus bandwidth of NCCL's tests), and the time over what it takes at least on an idle network.";

/// Those of all schedules of one run.
pub(super) fn of_run(results: &Results) -> Section {
    let columns = KIND.into_iter().chain(COUNTS).chain(FIGURES);
    section(columns.collect(), rows(results).collect())
}

/// Those of each of several runs.
pub(super) fn of_runs<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let of_run = |run: &Run<'a>| {
        let run = *run;
        let first = move || named::of_run(names, &run).chain([run.results.seed.into()]);
        rows(run.results).map(move |row| first().chain(row).collect()).collect::<Vec<Vec<Cell>>>()
    };
    let columns: Vec<_> =
        [("seed", Unit::Count)].into_iter().chain(KIND).chain(COUNTS).chain(FIGURES).collect();
    let names = named::headings(names, "run", &columns);
    Section { names, ..section(columns, runs.iter().flat_map(of_run).collect()) }
}

/// What those of each schedule came to in each configuration, where one ran with several seeds: the means over these.
pub(super) fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let configurations = configurations(runs);
    if configurations.len() == runs.len() {
        return Section::default();
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (label, alike) in configurations {
        for GoalSum { name, joint, .. } in GoalSum::all(label, &alike) {
            for it in joint {
                let of = kind(name, it.operation, it.algorithm, it.ranks);
                let figures = [it.late, it.time, it.bus_bps, it.over_ideal];
                let counts = [alike.len().into(), it.count.into(), (it.count - it.done).into()];
                let cells = figures.map(|figure| figure.map_or(Cell::None, Cell::from));
                let first = named::of_configuration(names, label);
                rows.push(first.chain(of).chain(counts).chain(cells).collect());
            }
        }
    }
    let counts = [("seeds", Unit::Count), ("count", Unit::Count), ("not done", Unit::Count)];
    let columns: Vec<_> = KIND.into_iter().chain(counts).chain(FIGURES).collect();
    let names = named::headings(names, "configuration", &columns);
    let section = Section { names, ..section(columns, rows) };
    if section.is_empty() {
        return section;
    }
    Section {
        title: "Collectives of schedules, means over the seeds",
        note: "Means over the seeds with 95 % confidence intervals (Student's t); counts are of all seeds."
            .into(),
        ..section
    }
}

fn section(columns: Vec<(&'static str, Unit)>, rows: Vec<Vec<Cell>>) -> Section {
    if rows.is_empty() {
        return Section::default();
    }
    Section {
        title: "Collectives of schedules",
        note: NOTE.into(),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

/// Under [`KIND`].
fn kind(schedule: &str, operation: Operation, algorithm: Option<Algorithm>, ranks: u32) -> [Cell; 4] {
    [schedule.into(), operation.name().into(), algorithm.map_or("", Algorithm::name).into(), ranks.into()]
}

/// A row for each kind of each schedule of a run, under [`KIND`], [`COUNTS`] and [`FIGURES`].
fn rows(results: &Results) -> impl Iterator<Item = Vec<Cell>> {
    let of_goal = |goal: &GoalResult| {
        let name = results.traffic[goal.table].name.as_str();
        let row = |it: JointKind| {
            let counts = [it.count.into(), (it.count - it.done).into(), it.bytes.into()];
            let figures = [it.late_mean(), it.time_mean(), it.bus_bps(), it.over_ideal()];
            let of = kind(name, it.operation, it.algorithm, it.ranks);
            of.into_iter().chain(counts).chain(figures.map(Cell::from)).collect()
        };
        goal.joint_kinds().into_iter().map(row).collect::<Vec<Vec<Cell>>>()
    };
    results.goals.iter().flat_map(of_goal)
}

/// What `comparison.csv` tells apart: the schedule, where a run has several, the operation, and the number of ranks. How it is done does not count, for
/// that is what is compared.
type Key = (String, Operation, u32);

/// What `comparison.csv` has of all of one key.
const CSV: [Figure<JointKind>; 5] = [
    ("done", |it| it.done.into()),
    ("late_mean_s", |it| it.late_mean().into()),
    ("time_mean_s", |it| it.time_mean().into()),
    ("busbw_bps", |it| it.bus_bps().into()),
    ("over_ideal", |it| it.over_ideal().into()),
];

/// The columns that `comparison.csv` has of them.
pub(super) fn csv_columns(runs: &[Run<'_>]) -> Vec<(String, Vec<Cell>)> {
    let several = runs.iter().any(|run| run.results.goals.len() > 1);
    let of_run = |run: &Run<'_>| {
        let mut kinds: Vec<(Key, JointKind)> = Vec::new();
        for goal in &run.results.goals {
            let name = if several { run.results.traffic[goal.table].name.as_str() } else { "" };
            for it in goal.joint_kinds() {
                let key = (name.to_owned(), it.operation, it.ranks);
                match kinds.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, all)) => *all = all.with(&it),
                    None => kinds.push((key, it)),
                }
            }
        }
        kinds
    };
    let of_runs: Vec<Vec<(Key, JointKind)>> = runs.iter().map(of_run).collect();
    let mut keys: Vec<&Key> = Vec::new();
    for (key, _) in of_runs.iter().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let column = |key: &Key, (figure, value): Figure<JointKind>| {
        let (name, operation, ranks) = key;
        let schedule = if several { format!("{name}.") } else { String::new() };
        let of = |kinds: &Vec<(Key, JointKind)>| {
            kinds.iter().find(|(of, _)| of == key).map_or(Cell::None, |(_, it)| value(it))
        };
        (format!("{schedule}{}.{ranks}.{figure}", operation.name()), of_runs.iter().map(of).collect())
    };
    keys.into_iter().flat_map(|key| CSV.map(|figure| column(key, figure))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::comparison::csv_of_runs;
    use super::*;
    use crate::output::test_results::{with_goal, with_joint};
    use roci_units::Span;

    fn runs<'a>(results: &'a [Results], configurations: &[&'a str]) -> Vec<Run<'a>> {
        let run = |(results, configuration): (&'a Results, &&'a str)| Run {
            label: configuration,
            configuration,
            folder: None,
            results,
        };
        results.iter().zip(configurations).map(run).collect()
    }

    /// [`with_joint`], of which the one that is done took twice as long, in trees.
    fn slower() -> Results {
        let mut results = with_joint();
        for it in &mut results.goals[0].joint {
            let [begun, end] = [it.times.last_begin, it.times.last_end];
            if it.time().is_some() {
                it.times.last_end = end + end.since(begun);
            }
            it.algorithm = it.algorithm.map(|_| Algorithm::Tree);
        }
        results
    }

    #[test]
    fn runs_stand_side_by_side_with_a_row_for_each_kind() {
        let results = [with_joint(), slower(), with_goal()];
        let table =
            of_runs(&Names::default(), &runs(&results, &["a", "b", "c"])).table.expect("there is one");
        let kinds = of_run(&results[0]).table.expect("there is one").rows.len();
        assert_eq!(table.rows.len(), 2 * kinds, "the last has none");
        let sum = |run: usize| &table.rows[run * kinds];
        let time = table.columns.iter().position(|(name, _)| *name == "time").expect("it has a column") + 1;
        let [Cell::Number(fast), Cell::Number(slow)] = [0, 1].map(|run| sum(run)[time].clone()) else {
            panic!("{:?}", table.rows)
        };
        assert!((slow - 2.0 * fast).abs() < 1e-12 && fast > 0.0, "{fast} {slow}");
        assert!(sum(0).contains(&"ring".into()) && sum(1).contains(&"tree".into()), "{:?}", table.rows);
        assert!(of_runs(&Names::default(), &runs(&results[2..], &["c"])).is_empty());
    }

    #[test]
    fn seeds_of_a_configuration_have_means() {
        let results = [with_joint(), slower(), with_goal()];
        let section = means(&Names::default(), &runs(&results, &["a", "a", "c"]));
        let table = section.table.expect("two seeds");
        assert!(section.title.ends_with("means over the seeds"));
        assert!(table.rows.iter().all(|row| row[0] == "a".into()), "{:?}", table.rows);
        assert!(means(&Names::default(), &runs(&results, &["a", "b", "c"])).is_empty(), "one seed each");
        let alike = [with_joint(), with_joint()];
        let table = means(&Names::default(), &runs(&alike, &["a", "a"])).table.expect("two seeds");
        let place = |name: &str| table.columns.iter().position(|(it, _)| *it == name).expect("a column") + 1;
        let kind = alike[0].goals[0].joint_kinds()[0];
        let Cell::Estimate { mean, half_width } = table.rows[0][place("busbw")] else {
            panic!("{:?}", table.rows)
        };
        assert!((mean - kind.bus_bps().unwrap()).abs() < 1e-3 && half_width == 0.0, "{mean} {half_width}");
        assert_eq!(table.rows[0][place("count")], (2 * kind.count).into(), "of both seeds");
    }

    #[test]
    fn the_csv_of_a_comparison_has_them_by_what_they_do_and_not_by_how() {
        let results = [with_joint(), slower(), with_goal()];
        let csv = csv_of_runs(&runs(&results, &["a", "b", "c"]));
        let mut lines = csv.lines();
        let heading: Vec<&str> = lines.next().expect("a heading").split(',').collect();
        let of = |figure: &str| {
            let name = format!("all-reduce.4.{figure}");
            let found: Vec<usize> = (0..heading.len()).filter(|place| heading[*place] == name).collect();
            let [place] = found[..] else { panic!("{name}: {heading:?}") };
            csv.lines().skip(1).map(|line| line.split(',').nth(place).unwrap_or("")).collect::<Vec<_>>()
        };
        assert_eq!(of("done"), ["1", "1", ""]);
        let number = |text: &str| text.parse::<f64>().expect("a number");
        for (figure, slower) in
            [("time_mean_s", 2.0), ("busbw_bps", 0.5), ("over_ideal", 2.0), ("late_mean_s", 1.0)]
        {
            let [fast, slow] = [0, 1].map(|run| number(of(figure)[run]));
            assert!((slow / fast - slower).abs() < 1e-9, "{figure}: {fast} {slow}");
        }
        let kind = results[0].goals[0].joint_kinds()[0];
        assert!((number(of("time_mean_s")[0]) - kind.time_mean().unwrap()).abs() < 1e-12);
        assert!(!csv_of_runs(&runs(&results[2..], &["c"])).contains("all-reduce"), "it has none");

        // Of several schedules the name of each stands before.
        let mut several = with_joint();
        let second = several.goals[0].clone();
        several.goals.push(second);
        let name = several.traffic[several.goals[0].table].name.clone();
        assert!(
            csv_of_runs(&runs(&[several], &["a"])).contains(&format!(",{name}.all-reduce.4.time_mean_s,"))
        );
    }

    #[test]
    fn kinds_that_differ_in_how_they_are_done_are_one_in_the_csv() {
        let mut results = with_joint();
        let mut other = results.goals[0].joint[0];
        other.algorithm = Some(Algorithm::Tree);
        other.times.last_end += Span::from_micros(100);
        results.goals[0].joint.push(other);
        let kinds = results.goals[0].joint_kinds();
        let sums: Vec<_> =
            kinds.iter().filter(|it| it.operation == Operation::AllReduce && it.ranks == 4).collect();
        let [ring, tree] = sums[..] else { panic!("{kinds:?}") };
        let columns = csv_columns(&runs(std::slice::from_ref(&results), &["a"]));
        let time = columns.iter().find(|(name, _)| name == "all-reduce.4.time_mean_s").expect("a column");
        let mean = (ring.time + tree.time).as_secs_f64() / 2.0;
        assert_eq!(time.1, [Cell::Number(mean)]);
    }
}
