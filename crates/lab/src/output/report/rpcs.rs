//! Requests and responses on the pages.

use super::Run;
use super::page::{Cell, Section, Table, Unit};
use crate::results::{Results, RpcResult};
use roci_units::{Bytes, Span};

const FIGURES: [(&str, Unit); 11] = [
    ("threads", Unit::Count),
    ("connections", Unit::Count),
    ("size", Unit::Text),
    ("answered", Unit::Count),
    ("goodput", Unit::Rate),
    ("time p50", Unit::Time),
    ("p99", Unit::Time),
    ("from memory", Unit::Share),
    ("credits, lines", Unit::Count),
    ("δ", Unit::Text),
    ("idle", Unit::Share),
];

/// Under [`FIGURES`].
fn figures(it: &RpcResult) -> [Cell; 11] {
    let seconds = |time: Option<Span>| Cell::from(time.map(Span::as_secs_f64));
    [
        u64::from(it.threads).into(),
        it.connections.into(),
        Bytes(it.request).to_string().into(),
        it.answered.into(),
        it.goodput_bps().into(),
        seconds(it.times.percentile(50)),
        seconds(it.times.percentile(99)),
        it.miss_share().into(),
        it.share.map_or(Cell::None, Cell::from),
        it.delta_mean.map_or(Cell::None, |delta| Cell::from(delta.to_string())),
        it.idle_share().into(),
    ]
}

const NOTE: &str = "From memory: of the cache lines that the server's threads read. Credits and δ are what a connection may have under way, \
                    in cache lines. Idle: of the threads' time.";

/// The tables of requests of one run.
pub(super) fn of_run(results: &Results) -> Section {
    let row = |it: &RpcResult| {
        let name = Cell::from(results.traffic[it.table].name.as_str());
        std::iter::once(name).chain(figures(it)).collect()
    };
    let columns = std::iter::once(("requests", Unit::Text)).chain(FIGURES);
    section(columns.collect(), results.rpcs.iter().map(row).collect())
}

/// Those of several.
pub(super) fn of_runs(runs: &[Run<'_>]) -> Section {
    let rows = runs.iter().flat_map(|run| {
        run.results.rpcs.iter().map(|it| {
            let name = Cell::from(run.results.traffic[it.table].name.as_str());
            [run.label.into(), run.results.seed.into(), name].into_iter().chain(figures(it)).collect()
        })
    });
    let first = [("run", Unit::Text), ("seed", Unit::Count), ("requests", Unit::Text)];
    section(first.into_iter().chain(FIGURES).collect(), rows.collect())
}

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
    use super::*;
    use crate::output::test_results::{sample, with_rpc};

    #[test]
    fn requests_have_a_line_for_each_table_and_run_and_other_traffic_has_none() {
        assert!(of_run(&sample()).is_empty());
        let results = with_rpc();
        let table = of_run(&results).table.unwrap();
        assert_eq!((table.rows.len(), table.rows[0].len()), (1, table.columns.len()));
        let runs =
            ["a", "b"].map(|label| Run { label, configuration: label, folder: None, results: &results });
        let table = of_runs(&runs).table.unwrap();
        assert_eq!((table.rows.len(), table.rows[1].len()), (2, table.columns.len()));
    }
}
