//! The memory of each structure with 10,000 connections (Tables 1 and 2).

use super::super::bench::Bench;
use super::super::{FigureError, Measured};
use crate::nic::{account, load};

/// Connections of the tables.
const QPS: u64 = 10_000;
const MIB: f64 = 1_048_576.0;

#[expect(clippy::cast_precision_loss, reason = "a printed figure has few digits")]
pub(in super::super) fn measure(_: &Bench<'_>) -> Result<Measured, FigureError> {
    let nic = load("srnic").expect("a preset");
    let account = account(&nic, QPS);
    let mut measured = Measured::default();
    let mib = |octets: u64| octets as f64 / MIB;
    let rows = [
        ("receiving buffer", "receiving", "receiving_on_chip"),
        ("queue pair contexts", "contexts", "contexts_on_chip"),
        ("address translations (MTT)", "mtt", "mtt_on_chip"),
        ("requests (WQE caches)", "wqes", "wqes_on_chip"),
        ("bitmaps", "bitmaps", "bitmaps_on_chip"),
        ("reordering buffers", "reordering", "reordering_on_chip"),
        ("outstanding requests", "outstanding", "outstanding_on_chip"),
        ("scheduler", "scheduler", "scheduler_on_chip"),
    ];
    for (name, conventional, on_chip) in rows {
        let structure = account.structure(name).expect("the account has it");
        measured.add(conventional, vec![mib(structure.conventional)]);
        measured.add(on_chip, vec![mib(structure.on_chip)]);
    }
    measured.add("context", vec![f64::from(nic.context.size)]);
    measured.add("all", vec![mib(account.conventional()) / 1024.0]);
    measured.add("all_on_chip", vec![mib(account.chip)]);
    Ok(measured)
}
