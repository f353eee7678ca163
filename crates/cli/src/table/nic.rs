//! What a NIC is, and what it keeps of its queue pairs.

use super::{lines, prose, table};
use roci_lab::nic::{Account, Structure};

/// A value of a NIC.
pub(crate) struct NicRow {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) from: String,
    pub(crate) what: &'static str,
}

/// NICs with what they are.
pub(crate) fn nics<'a>(nics: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut table = prose(&["nic", "what it is"]);
    nics.for_each(|(name, about)| {
        table.add_row([name, about]);
    });
    lines(&table)
}

/// The values of a NIC.
pub(crate) fn nic_rows(rows: &[NicRow]) -> String {
    let mut table = prose(&["key", "value", "what it means", "where it comes from"]);
    for row in rows {
        table.add_row([row.key, &row.value, row.what, &row.from]);
    }
    lines(&table)
}

/// The account of a NIC's memory.
pub(crate) fn account(account: &Account) -> String {
    let mut table = table(&["structure", "conventional", "on the chip", "off the chip"]);
    for Structure { name, conventional, on_chip, off_chip } in &account.structures {
        let octets = [conventional, on_chip, off_chip].map(|octets| binary(*octets));
        table.add_row(std::iter::once((*name).to_owned()).chain(octets));
    }
    let sum = |of: fn(&Structure) -> u64| binary(account.structures.iter().map(of).sum());
    table.add_row([
        "in all".to_owned(),
        sum(|row| row.conventional),
        sum(|row| row.on_chip),
        sum(|row| row.off_chip),
    ]);
    let resident = match account.resident {
        Some(resident) => format!("{resident} contexts fit on the chip"),
        None => format!(
            "chip size unknown: in all is what {} contexts would take, and nothing says that they fit",
            account.queue_pairs
        ),
    };
    let performant = match (account.performant, account.performant_per_mib()) {
        (Some(performant), Some(per_mib)) => format!(
            "\n  performant: {performant}, with {} on the chip, {per_mib:.0} for each MiB",
            binary(account.performant_chip)
        ),
        _ => String::new(),
    };
    format!(
        "{} with {} queue pairs\n\n{}\n  {resident}{performant}\n",
        account.name,
        account.queue_pairs,
        lines(&table),
    )
}

/// Octets in units of 1024, as memories are counted.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn binary(octets: u64) -> String {
    match octets as f64 {
        octets if octets < 1024.0 => format!("{octets:.0} B"),
        octets if octets < 1_048_576.0 => format!("{:.1} KiB", octets / 1024.0),
        octets if octets < 1_073_741_824.0 => format!("{:.1} MiB", octets / 1_048_576.0),
        octets => format!("{:.1} GiB", octets / 1_073_741_824.0),
    }
}
