//! Collectives on the pages, and in the table of a comparison: times and bandwidths as NCCL's tests tell them.

use super::by_table::{self, Figure, Kind};
use super::lines::{LINES_MAX, Points};
use super::page::{Axis, Cell, Line, Plot, Section, Table, Unit};
use super::{Run, named};
use crate::batch::Names;
use crate::figures::statistics::mean;
use crate::output::digits::float;
use crate::results::{CollectiveResult, Results};
use roci_units::Bytes;
use std::collections::BTreeMap;

/// What is told of a collective's bandwidths on every page.
const FIGURES: [(&str, Unit); 10] = [
    ("operation", Unit::Text),
    ("algorithm", Unit::Text),
    ("ranks", Unit::Count),
    ("size", Unit::Text),
    ("iterations", Unit::Count),
    ("time mean", Unit::Time),
    ("max", Unit::Time),
    ("algbw", Unit::Rate),
    ("busbw", Unit::Rate),
    ("over ideal", Unit::Factor),
];

/// Under [`FIGURES`].
fn figures(it: &CollectiveResult) -> [Cell; 10] {
    let times = it.times();
    let mean = times.map(|(mean, ..)| mean);
    [
        it.operation.name().into(),
        it.algorithm.name().into(),
        it.ranks.into(),
        Bytes(it.bytes).to_string().into(),
        it.iterations.len().into(),
        mean.into(),
        times.map(|(.., most)| most).into(),
        mean.map(|mean| it.algorithm_bps(mean)).into(),
        mean.map(|mean| it.bus_bps(mean)).into(),
        mean.and_then(|mean| it.over_ideal(mean)).into(),
    ]
}

const KIND: Kind<CollectiveResult, 10> = Kind {
    of: |results| &results.collectives,
    place: |it| it.table,
    heading: "collective",
    columns: FIGURES,
    figures,
};

/// What each collective came to in each configuration, over its seeds.
pub(super) fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    by_table::means("Collectives, means over the seeds", &KIND, names, runs)
}

/// What the bandwidths are.
const NOTE: &str = "Bandwidths are those of NCCL's tests, in bits per second: the size over the mean time of an iteration (algbw), and what \
                    compares with the rate of a link whatever the number of ranks (busbw).";

/// The collectives of one run, and the bus bandwidth of each iteration where there are several.
pub(super) fn of_run(results: &Results) -> Section {
    if results.collectives.is_empty() {
        return Section::default();
    }
    let row = |it: &CollectiveResult| {
        let last = it
            .last_most_often()
            .map(|(host, count)| format!("{}, {count} of {}", results.host(host), it.iterations.len()));
        let name = Cell::from(results.traffic[it.table].name.as_str());
        let last = last.map_or(Cell::None, Cell::from);
        std::iter::once(name).chain(figures(it)).chain([last]).collect()
    };
    let line = |(colour, it): (usize, &CollectiveResult)| {
        let mut points = Points::default();
        for one in &it.iterations {
            points.push(one.end.as_secs_f64(), it.bus_bps(one.time().as_secs_f64()));
        }
        points.line(results.traffic[it.table].name.clone(), colour, false)
    };
    let several = results.collectives.iter().filter(|it| it.iterations.len() > 1);
    let lines: Vec<Line> = several.take(LINES_MAX).enumerate().map(line).collect();
    let plot = (!lines.is_empty()).then(|| Plot {
        title: "Bus bandwidth of each iteration".into(),
        x: Axis::new("end of the iteration", Unit::Time).above_zero(),
        y: Axis::new("busbw", Unit::Rate).above_zero(),
        step: false,
        lines,
    });
    let columns = [("collective", Unit::Text)].into_iter().chain(FIGURES).chain([("last", Unit::Text)]);
    Section {
        title: "Collectives",
        note: NOTE.into(),
        plots: plot.into_iter().collect(),
        table: Some(Table {
            columns: columns.collect(),
            rows: results.collectives.iter().map(row).collect(),
        }),
        ..Section::default()
    }
}

/// The collectives of several runs, and bus bandwidth over size where that was varied.
pub(super) fn of_runs<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let all: Vec<(&Run<'a>, &CollectiveResult)> =
        runs.iter().flat_map(|run| run.results.collectives.iter().map(move |it| (run, it))).collect();
    if all.is_empty() {
        return Section::default();
    }
    let name = |run: &Run<'_>, it: &CollectiveResult| run.results.traffic[it.table].name.clone();
    let row = |(run, it): &(&Run<'a>, &CollectiveResult)| {
        let first = [run.results.seed.into(), name(run, it).into()];
        named::of_run(names, run).chain(first).chain(figures(it)).collect()
    };
    let first = [("seed", Unit::Count), ("collective", Unit::Text)];
    let columns: Vec<_> = first.into_iter().chain(FIGURES).collect();
    Section {
        title: "Collectives",
        note: NOTE.into(),
        plots: by_size(runs, &all).into_iter().collect(),
        names: named::headings(names, "run", &columns),
        table: Some(Table { columns, rows: all.iter().map(row).collect() }),
        ..Section::default()
    }
}

/// A line's name, and what every seed came to with each size.
type Sizes = (String, BTreeMap<u64, Vec<f64>>);

/// Bus bandwidth over size: a line for what differs in anything else, of the sizes that it ran with, as means over seeds.
fn by_size(runs: &[Run<'_>], all: &[(&Run<'_>, &CollectiveResult)]) -> Option<Plot> {
    let several = runs.iter().any(|run| run.results.collectives.len() > 1);
    // In the order in which they come up.
    let mut kinds: Vec<Sizes> = Vec::new();
    for (run, it) in all {
        let Some((mean, ..)) = it.times() else { continue };
        let set = run.results.overrides.iter().filter(|(key, _)| key != "seed" && !key.ends_with(".size"));
        let mut kind: Vec<String> = set.map(|(key, value)| format!("{key}={value}")).collect();
        kind.extend(kind.is_empty().then(|| run.results.name.clone()));
        kind.extend(several.then(|| run.results.traffic[it.table].name.clone()));
        let kind = kind.join(" ");
        let place = kinds.iter().position(|(known, _)| *known == kind).unwrap_or(kinds.len());
        if place == kinds.len() {
            kinds.push((kind, BTreeMap::new()));
        }
        kinds[place].1.entry(it.bytes).or_default().push(it.bus_bps(mean));
    }
    kinds.retain(|(_, sizes)| sizes.len() > 1);
    let mut all: Vec<f64> = kinds.iter().flat_map(|(_, sizes)| sizes.keys().copied().map(float)).collect();
    all.sort_by(f64::total_cmp);
    let line = |(colour, (name, sizes)): (usize, Sizes)| Line {
        name,
        colour,
        dashed: false,
        dots: false,
        x: sizes.keys().copied().map(float).collect(),
        y: sizes.values().filter_map(|seeds| mean(seeds)).collect(),
        band: None,
    };
    (!kinds.is_empty()).then(|| Plot {
        title: "Bus bandwidth by size".into(),
        x: Axis::new("size", Unit::Bytes).log_if_wide(&all),
        y: Axis::new("busbw", Unit::Rate).above_zero(),
        step: false,
        lines: kinds.into_iter().take(LINES_MAX).enumerate().map(line).collect(),
    })
}

/// The columns that `comparison.csv` has of collectives.
pub(super) fn csv_columns(runs: &[Run<'_>]) -> Vec<(String, Vec<Cell>)> {
    by_table::csv_columns(runs, |results| &results.collectives, |it| it.table, &CSV)
}

/// What `comparison.csv` has of a collective.
const CSV: [Figure<CollectiveResult>; 5] = [
    ("collective_bytes", |it| it.bytes.into()),
    ("iteration_mean_s", |it| it.times().map(|(mean, ..)| mean).into()),
    ("algbw_bps", |it| it.times().map(|(mean, ..)| it.algorithm_bps(mean)).into()),
    ("busbw_bps", |it| it.times().map(|(mean, ..)| it.bus_bps(mean)).into()),
    ("over_ideal", |it| it.times().and_then(|(mean, ..)| it.over_ideal(mean)).into()),
];

#[cfg(test)]
mod tests {
    use super::super::comparison::csv_of_runs;
    use super::*;
    use crate::output::test_results::{sample, with_collective};

    /// Runs of two algorithms with two sizes each, and one of a third with a single one.
    fn sweep() -> Vec<Results> {
        let of = |(algorithm, size): (&str, u64)| {
            let mut results = with_collective();
            let set = [("traffic.0.algorithm", algorithm.to_owned()), ("traffic.0.size", size.to_string())];
            results.overrides = set.map(|(key, value)| (key.to_owned(), value)).to_vec();
            results.collectives[0].bytes = size;
            results
        };
        [
            ("ring", 2_000_000),
            ("halving-doubling", 1_000_000),
            ("ring", 1_000_000),
            ("direct", 5),
            ("halving-doubling", 4_000_000),
        ]
        .map(of)
        .to_vec()
    }

    fn runs(results: &[Results]) -> Vec<Run<'_>> {
        results.iter().map(|results| Run { label: "a", configuration: "a", folder: None, results }).collect()
    }

    #[test]
    fn bus_bandwidth_is_drawn_over_size_with_a_line_for_what_else_was_varied() {
        let results = sweep();
        let section = of_runs(&Names::default(), &runs(&results));
        assert_eq!(section.table.expect("there are some").rows.len(), 5);
        let lines = &section.plots[0].lines;
        let told: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.x.clone())).collect();
        assert_eq!(
            told,
            [
                ("traffic.0.algorithm=ring", vec![1e6, 2e6]),
                ("traffic.0.algorithm=halving-doubling", vec![1e6, 4e6])
            ],
            "a single size is no line"
        );
        // 1 MB in 100 us, and 2·3/4 of it; twice the size in the same time has twice the bandwidth.
        assert_eq!(lines[0].y.iter().map(|bps| (bps / 1e9).round()).collect::<Vec<_>>(), [120.0, 240.0]);
    }

    #[test]
    fn seeds_of_one_size_are_one_point_their_mean() {
        let mut results = sweep();
        results.extend(sweep());
        results[7].collectives[0].iterations.truncate(1);
        results[7].collectives[0].iterations[0].end += roci_units::Span::from_micros(100);
        let lines = &of_runs(&Names::default(), &runs(&results)).plots[0].lines;
        assert_eq!(lines[0].x, [1e6, 2e6]);
        assert_eq!((lines[0].y[0] / 1e9).round(), 90.0, "120 and 60");
    }

    #[test]
    fn a_run_tells_of_its_collectives_and_of_each_iteration_and_others_have_no_such_section() {
        let section = of_run(&with_collective());
        assert_eq!(section.plots[0].lines[0].y.len(), 2);
        assert!(section.table.expect("there is one").rows[0].contains(&Cell::Number(80e9)), "1 MB in 100 us");
        assert!(of_run(&sample()).is_empty() && of_runs(&Names::default(), &runs(&[sample()])).is_empty());
    }

    #[test]
    fn the_csv_of_a_comparison_has_collectives_behind_all_else_by_name_where_a_run_has_several() {
        let csv = |results: &[Results]| csv_of_runs(&runs(results));
        let one = csv(&sweep());
        let mut lines = one.lines();
        let last = "traffic.0.algorithm,traffic.0.size,collective_bytes,iteration_mean_s,algbw_bps,busbw_bps,over_ideal";
        assert!(lines.next().expect("a heading").ends_with(last), "{one}");
        let first: Vec<&str> = lines.next().expect("a run").rsplit(',').take(6).collect();
        assert_eq!(first, ["1.25", "240000000000", "160000000000", "0.0001", "2000000", "2000000"]);

        let mut several = with_collective();
        let mut second = several.collectives[0].clone();
        second.table = 1;
        second.iterations.clear();
        several.collectives.push(second);
        several.traffic = crate::output::test_results::two_tables();
        let both = csv(&[several, sample()]);
        assert!(
            both.lines()
                .next()
                .expect("a heading")
                .contains(",0.busbw_bps,0.over_ideal,background.collective_bytes")
        );
        assert!(both.lines().nth(1).expect("a run").ends_with(",1.25,1000000,,,,"), "none is done: {both}");
        assert!(both.lines().nth(2).expect("a run").ends_with(",,,,,,,,,,"), "it has none: {both}");
        assert!(!csv(&[sample()]).contains("busbw"));
    }
}
