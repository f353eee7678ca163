//! `roci nic`: the NIC architectures, their values, and the memory that they take.

use crate::Failure;
use crate::args::{Nic, NicCommand};
use crate::execute::print;
use crate::table::{self, NicRow};
use roci_lab::nic::{Account, Architecture, KEYS, Source, WITHOUT_PARTS, account, load, presets};
use serde_json::json;

pub(crate) fn nic(arguments: &Nic) -> Result<(), Failure> {
    let find = |name: &str| load(name).map_err(|error| Failure::Request(error.to_string()));
    let text = match &arguments.command {
        NicCommand::List => list(),
        NicCommand::Show(show) => {
            let found = find(&show.nic)?;
            if show.json { shown_json(&found) } else { shown(&found) }
        }
        NicCommand::Memory(memory) => {
            let account = account(&find(&memory.nic)?, memory.qps.into());
            if memory.json { account_json(&account) } else { table::account(&account) }
        }
    };
    print(&text);
    Ok(())
}

fn list() -> String {
    let made_of_parts: Vec<Architecture> = presets::all().collect();
    let parts = made_of_parts.iter().map(|nic| (nic.name.as_str(), nic.about.as_str()));
    table::nics(WITHOUT_PARTS.into_iter().chain(parts))
}

/// What was changed from a NIC that takes no time, with its sources.
fn rows(nic: &Architecture) -> Vec<NicRow> {
    let default = Architecture::default();
    let given =
        KEYS.iter().filter(|key| nic.sources.contains_key(key.path) || key.show(nic) != key.show(&default));
    given
        .map(|key| NicRow {
            key: key.path,
            value: key.show(nic),
            from: from(nic.sources.get(key.path)),
            what: key.what,
        })
        .collect()
}

fn from(source: Option<&Source>) -> String {
    match source {
        None => String::new(),
        Some(Source::Said(place)) => place.clone(),
        Some(Source::Calibrated(place)) => format!("calibrated to {place}"),
        Some(Source::Chosen(why)) => format!("our choice: {why}"),
        Some(Source::Given) => "given".to_owned(),
    }
}

fn shown(nic: &Architecture) -> String {
    format!("{}: {}\n\n{}", nic.name, nic.about, table::nic_rows(&rows(nic)))
}

fn shown_json(nic: &Architecture) -> String {
    let values: Vec<_> = rows(nic)
        .iter()
        .map(|row| json!({ "key": row.key, "value": row.value, "from": row.from, "what": row.what }))
        .collect();
    format!("{:#}\n", json!({ "name": nic.name, "about": nic.about, "values": values }))
}

fn account_json(account: &Account) -> String {
    let structures: Vec<_> = account
        .structures
        .iter()
        .map(|row| {
            json!({
                "name": row.name, "conventional_bytes": row.conventional, "on_chip_bytes": row.on_chip,
                "off_chip_bytes": row.off_chip,
            })
        })
        .collect();
    let value = json!({
        "nic": account.name, "qps": account.queue_pairs, "structures": structures,
        "conventional_bytes": account.conventional(), "chip_bytes": account.chip,
        "resident_qps": account.resident, "resident_qps_per_mib": account.resident_per_mib(),
    });
    format!("{value:#}\n")
}
