//! What is printed: of one run its flows and switches, of several a line each.

mod bridge;
mod collective;
mod configurations;
mod depths;
mod differences;
mod faults;
mod figure;
mod fit;
#[cfg(test)]
mod fixture;
mod goal;
mod nic;
mod own;
mod priorities;
mod program;
mod rpc;
mod run;
mod traffic;
pub(crate) mod tuned;

pub(crate) use bridge::bridge;
pub(crate) use figure::{figure, figures};
pub(crate) use nic::{NicRow, account, nic_rows, nics};
pub(crate) use program::{Cores, check, held, profile};

use crate::format::{number, or_dash, time};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use roci_lab::batch::Group;
use roci_lab::results::Results;
use roci_lab::results::statistics::Sorted;

/// More switches than this are summed up.
const MANY_SWITCHES: usize = 12;
/// By so much the use of equal ports may differ in its imbalance and say nothing of how they were chosen.
pub(crate) const BY_CHANCE: f64 = 0.1;

/// The tables of a group.
pub(crate) fn group(group: &Group, results: &[Results]) -> String {
    match results {
        [one] => run::tables(one),
        several => configurations::tables(group, several),
    }
}

/// An empty table under `header`: the first column stands to the left, what is counted to the right.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header.iter().copied());
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if place == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

/// The table with its lines indented and without spaces at their ends.
pub(crate) fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("  {}\n", line.trim_end())).collect()
}

/// A table of text, whose last column is broken into lines of a terminal's width.
fn prose(header: &[&str]) -> Table {
    let mut table = table(header);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(120);
    }
    table.column_iter_mut().for_each(|column| {
        column.set_cell_alignment(CellAlignment::Left);
    });
    table
}

/// What stands above [`spread`].
const SPREAD: [&str; 7] = ["completion p50", "p99", "slowdown mean", "p50", "p95", "p99", "max"];

/// How completion times and slowdowns of several flows are spread.
fn spread(times: &Sorted, slowdowns: &Sorted) -> [String; 7] {
    let times = |percent| or_dash(times.percentile(percent).map(time));
    let slowdown = |percent| or_dash(slowdowns.percentile(percent).map(number));
    let mean = or_dash(slowdowns.mean().map(number));
    [times(50), times(99), mean, slowdown(50), slowdown(95), slowdown(99), slowdown(100)]
}
