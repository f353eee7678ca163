//! Requests and responses on the pages.

use super::by_table::{self, Figure, Kind};
use super::lines::{LINES_MAX, Points, Readings};
use super::page::{Axis, Cell, Line, Plot, Section, Table, Unit};
use super::run::span;
use super::{Run, named};
use crate::batch::Names;
use crate::results::series::Metric;
use crate::results::{Results, RpcResult};
use roci_units::{Bytes, Span};

const FIGURES: [(&str, Unit); 13] = [
    ("threads", Unit::Count),
    ("connections", Unit::Count),
    ("size", Unit::Text),
    ("answered", Unit::Count),
    ("per second", Unit::Speed),
    ("goodput", Unit::Rate),
    ("time mean", Unit::Time),
    ("p50", Unit::Time),
    ("p99", Unit::Time),
    ("from memory", Unit::Share),
    ("credits, lines", Unit::Count),
    ("δ", Unit::Text),
    ("idle", Unit::Share),
];

/// Under [`FIGURES`].
fn figures(it: &RpcResult) -> [Cell; 13] {
    let seconds = |time: Option<Span>| Cell::from(time.map(Span::as_secs_f64));
    [
        u64::from(it.threads).into(),
        it.connections.into(),
        Bytes(it.request).to_string().into(),
        it.answered.into(),
        it.per_second().into(),
        it.goodput_bps().into(),
        seconds(it.times.mean()),
        seconds(it.times.percentile(50)),
        seconds(it.times.percentile(99)),
        it.miss_share().into(),
        it.share.map_or(Cell::None, Cell::from),
        it.delta_mean.map_or(Cell::None, |delta| Cell::from(delta.to_string())),
        it.idle_share().into(),
    ]
}

const KIND: Kind<RpcResult, 13> = Kind {
    of: |results| &results.rpcs,
    place: |it| it.table,
    heading: "requests",
    columns: FIGURES,
    figures,
};

/// What each table of requests came to in each configuration, over its seeds.
pub(super) fn means<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    by_table::means("Requests, means over the seeds", &KIND, names, runs)
}

const NOTE: &str = "From memory: of the cache lines that the server's threads read. Credits and δ are what a connection may have under way, \
                    in cache lines. Idle: of the threads' time.";

/// The tables of requests of one run, and what they and their machines did over time.
pub(super) fn of_run(results: &Results, readings: &Readings) -> Section {
    let row = |it: &RpcResult| {
        let name = Cell::from(results.traffic[it.table].name.as_str());
        std::iter::once(name).chain(figures(it)).collect()
    };
    let columns = std::iter::once(("requests", Unit::Text)).chain(FIGURES);
    let table = section(columns.collect(), results.rpcs.iter().map(row).collect());
    Section { plots: over_time(results, readings), ..table }
}

/// What is drawn over time: title, axis, whether lines are means, and what is read.
const OVER_TIME: [(&str, Axis, bool, Metric); 4] = [
    ("Requests answered", Axis::new("a second", Unit::Speed), true, Metric::Answered),
    ("Unconsumed at the server", Axis::new("octets", Unit::Bytes), false, Metric::Unconsumed),
    ("Lines read that came from memory", Axis::new("share", Unit::Share), true, Metric::Misses),
    ("Lines in the I/O controller", Axis::new("lines", Unit::Count), false, Metric::Iio),
];

/// The plots of requests and of machines over time.
fn over_time(results: &Results, readings: &Readings) -> Vec<Plot> {
    let interval = results.series.interval().unwrap_or(Span::ZERO).as_secs_f64();
    let plot = |(title, y, mean, metric): (&str, Axis, bool, Metric)| {
        let each = if mean { readings.stretch(metric) } else { 1 };
        let name = |place: usize| match metric {
            Metric::Answered => results.traffic[place].name.clone(),
            _ => results.hosts[place].name.clone(),
        };
        let line = |(colour, (place, points)): (usize, (usize, &Points))| {
            let points = if mean { &points.means(each) } else { points };
            (points.x.len() > 1).then(|| points.line(name(place), colour, false))
        };
        let lines: Vec<Line> = readings.all(metric).take(LINES_MAX).enumerate().filter_map(line).collect();
        #[expect(clippy::cast_precision_loss, reason = "few readings")]
        let title = match each {
            1 => title.to_owned(),
            each => format!("{title}, means over {}", span(each as f64 * interval)),
        };
        let y = if metric == Metric::Misses { y.up_to(1.0) } else { y.above_zero() };
        let x = Axis::new("time", Unit::Time).above_zero();
        (!lines.is_empty()).then_some(Plot { title, x, y, step: false, lines })
    };
    OVER_TIME.into_iter().filter_map(plot).collect()
}

/// Those of several.
pub(super) fn of_runs<'a>(names: &Names<'a>, runs: &[Run<'a>]) -> Section {
    let rows = runs.iter().flat_map(|run| {
        run.results.rpcs.iter().map(|it| {
            let name = Cell::from(run.results.traffic[it.table].name.as_str());
            named::of_run(names, run).chain([run.results.seed.into(), name]).chain(figures(it)).collect()
        })
    });
    let first = [("seed", Unit::Count), ("requests", Unit::Text)];
    let columns: Vec<_> = first.into_iter().chain(FIGURES).collect();
    Section { names: named::headings(names, "run", &columns), ..section(columns, rows.collect()) }
}

/// The columns that `comparison.csv` has of requests.
pub(super) fn csv_columns(runs: &[Run<'_>]) -> Vec<(String, Vec<Cell>)> {
    by_table::csv_columns(runs, |results| &results.rpcs, |it| it.table, &CSV)
}

#[expect(clippy::cast_precision_loss, reason = "a comparison shows fewer digits than f64 holds")]
const fn lines(count: i64) -> f64 {
    count as f64
}

/// What `comparison.csv` has of a table of requests.
const CSV: [Figure<RpcResult>; 13] = [
    ("request_bytes", |it| it.request.into()),
    ("request_connections", |it| it.connections.into()),
    ("answered", |it| it.answered.into()),
    ("answered_per_s", |it| it.per_second().into()),
    ("request_goodput_bps", |it| it.goodput_bps().into()),
    ("request_mean_s", |it| it.times.mean().map(Span::as_secs_f64).into()),
    ("request_p50_s", |it| it.times.percentile(50).map(Span::as_secs_f64).into()),
    ("request_p99_s", |it| it.times.percentile(99).map(Span::as_secs_f64).into()),
    ("miss_share", |it| it.miss_share().into()),
    ("credits", |it| it.share.map_or(Cell::None, Cell::from)),
    ("delta_mean", |it| it.delta_mean.map(lines).into()),
    ("blocked_s", |it| it.blocked.as_secs_f64().into()),
    ("idle_share", |it| it.idle_share().into()),
];

fn section(columns: Vec<(&'static str, Unit)>, rows: Vec<Vec<Cell>>) -> Section {
    if rows.is_empty() {
        return Section::default();
    }
    Section {
        title: "Requests",
        note: NOTE.into(),
        table: Some(Table { columns, rows }),
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::csv_of_runs;
    use super::*;
    use crate::output::test_results::{sample, with_rpc};

    #[test]
    fn requests_have_a_line_for_each_table_and_run_and_other_traffic_has_none() {
        let alone = |results: &Results| of_run(results, &Readings::of(results));
        assert!(alone(&sample()).is_empty());
        let results = with_rpc();
        let Section { plots, table, .. } = alone(&results);
        let drawn: Vec<_> =
            plots.iter().map(|plot| (plot.lines[0].name.as_str(), plot.lines.len())).collect();
        assert_eq!(drawn, [("0", 1), ("rx", 1), ("rx", 1), ("rx", 1)]);
        assert!(plots[2].lines[0].y.iter().all(|share| (share - 0.2).abs() < 1e-9), "{:?}", plots[2]);
        let table = table.unwrap();
        assert_eq!((table.rows.len(), table.rows[0].len()), (1, table.columns.len()));
        let runs =
            ["a", "b"].map(|label| Run { label, configuration: label, folder: None, results: &results });
        let Section { names, table, .. } = of_runs(&Names::default(), &runs);
        let table = table.unwrap();
        assert_eq!((table.rows.len(), table.rows[1].len()), (2, names.len() + table.columns.len()));
    }

    #[test]
    fn the_csv_of_a_comparison_has_requests_behind_all_else_and_by_name_where_a_run_has_several_tables() {
        let csv = |results: &[Results]| {
            let run = |results| Run { label: "a", configuration: "a", folder: None, results };
            let runs: Vec<Run<'_>> = results.iter().map(run).collect();
            csv_of_runs(&runs)
        };
        let one = csv(&[with_rpc(), sample()]);
        let lines: Vec<&str> = one.lines().collect();
        let last = ",request_bytes,request_connections,answered,answered_per_s,request_goodput_bps,request_mean_s,request_p50_s,\
                    request_p99_s,miss_share,credits,delta_mean,blocked_s,idle_share";
        assert!(lines[0].ends_with(last), "{one}");
        let told: Vec<&str> = lines[1].rsplit(',').take(13).collect();
        assert_eq!(told[..6], ["0.5", "0.00005", "-20", "192", "0.25", "0.0003"]);
        assert_eq!(told[7..], ["0.0002", "6144000", "3000", "3", "8", "256"]);
        assert!(lines[2].ends_with(&",".repeat(13)), "it has none: {one}");

        let mut several = with_rpc();
        let second = RpcResult { table: 1, delta_mean: None, share: None, ..several.rpcs[0].clone() };
        several.rpcs.push(second);
        several.traffic = crate::output::test_results::two_tables();
        let both = csv(&[several]);
        assert!(both.lines().next().expect("a heading").contains(",0.idle_share,background.request_bytes,"));
        assert!(both.lines().nth(1).expect("a run").ends_with(",0.25,,,0.00005,0.5"), "{both}");
        assert!(!csv(&[sample()]).contains("request"));
    }
}
