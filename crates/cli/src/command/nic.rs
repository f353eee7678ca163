//! `roci nic`: the NIC architectures, their values, and the memory that they take.

use crate::Failure;
use crate::args::{Nic, NicCommand};
use crate::execute::print;
use crate::table::{self, NicRow};
use roci_lab::nic::{Account, Architecture, KEYS, Key, Source, WITHOUT_PARTS, account, load, presets};
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

/// Where cores run the law, what decides whether they keep up and what comes of it where not.
const OF_CORES: [&str; 3] = ["cores.clock", "cores.queue", "receive.fifo"];

/// What was changed from a NIC that takes no time, with its sources, and [`OF_CORES`] where it has some.
fn rows(nic: &Architecture) -> Vec<NicRow> {
    let default = Architecture::default();
    let has_cores = nic.cores.pairs > 0;
    let given = KEYS.iter().filter(|key| {
        nic.sources.contains_key(key.path)
            || key.show(nic) != key.show(&default)
            || has_cores && OF_CORES.contains(&key.path)
    });
    let row = |key: &Key| {
        let (value, from) = match nic.core_clock() {
            Some(clock) if key.path == "cores.clock" && nic.cores.clock.is_none() => {
                (clock.to_string(), "the NIC's `clock`".to_owned())
            }
            _ => (key.show(nic), from(nic.sources.get(key.path))),
        };
        NicRow { key: key.path, value, from, what: key.what }
    };
    given.map(row).collect()
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
        "resident_qps": account.resident, "performant_qps": account.performant,
        "performant_qps_per_mib": account.performant_per_mib(),
    });
    format!("{value:#}\n")
}
