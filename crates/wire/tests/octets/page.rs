//! `docs/wire.md` is normative: its table of lengths is what the code charges.

use roci_wire::{Cc, IpVersion, Layout, Opcode, overhead};
use std::fmt::Write;

#[test]
fn the_table_of_lengths_is_the_codes() {
    let columns =
        [Layout::Standard, Layout::Irn, Layout::Srnic, Layout::Ndp, Layout::Homa, Layout::Cc(Cc::default())];
    let mut table = String::from(
        "| opcode | standard | irn | srnic | ndp | homa | cc |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for opcode in (0..=u8::MAX).map(Opcode).filter(|opcode| opcode.is_known()) {
        write!(table, "| {:#04x} {opcode} |", opcode.0).expect("a string grows");
        for layout in columns {
            match layout.permits(opcode) {
                true => write!(table, " {} |", overhead(opcode, layout, IpVersion::V4)),
                false => write!(table, " – |"),
            }
            .expect("a string grows");
        }
        table.push('\n');
    }
    let page = include_str!("../../../../docs/wire.md");
    assert!(page.ends_with(&table), "docs/wire.md must end with\n{table}");
}
