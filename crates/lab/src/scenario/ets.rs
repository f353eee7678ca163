//! Shares of bandwidth by priority: `switch.ets`.

use super::Switch;
use super::read::Table;
use super::source::{ScenarioError, listed};
use super::tree::{Entry, Kind};
use crate::traffic::spec::Traffic;
use roci_switch::{PRIORITIES, Shares, SwitchConfig};

const FORM: &str = "a table of percentages by priority, such as `ets = { 3 = 60, 0 = 40 }`";

/// Reads `ets` of `table`; where it is left out, it is as in `base`.
pub(super) fn read(table: Table<'_>, base: Option<Shares>) -> Result<Option<Shares>, ScenarioError> {
    let Some(node) = table.get("ets") else { return Ok(base) };
    let entries = match &node.kind {
        Kind::Flag(false) => return Ok(None),
        Kind::Table(entries) => entries,
        _ => {
            let message = match &node.kind {
                Kind::Flag(_) => "`ets = true` names no shares".to_owned(),
                _ => format!("`ets = {}` is {}", node.shown(), node.what()),
            };
            return Err(table.refuse("ets", message, format!("it takes {FORM}, or `false`")));
        }
    };
    let mut percent = [0; PRIORITIES];
    for entry in entries {
        let of = ["0", "1", "2", "3", "4", "5", "6", "7"].iter().position(|name| *name == entry.key);
        let Some(of) = of else {
            return Err(table.source.error(
                entry.key_origin,
                format!("there is no priority `{}`", entry.key),
                format!("priorities are 0 to 7, and `ets` takes {FORM}"),
            ));
        };
        percent[of] = share(table, entry)?;
    }
    if let [entry] = entries.as_slice() {
        return Err(table.source.error(
            entry.key_origin,
            format!("priority {} alone has a share, and shares divide what is left between two or more", entry.key),
            "give another priority one too, 100 percent together, or leave `ets` out: without it the highest priority goes first",
        ));
    }
    Shares::new(percent).map(Some).map_err(|_| {
        let sum: u32 = percent.iter().map(|&share| u32::from(share)).sum();
        // They are said, since some of them may have been set on the command line and not where the error points.
        let shares: Vec<_> = (percent.iter().enumerate().rev())
            .filter(|(_, share)| **share > 0)
            .map(|(priority, share)| format!("{priority} = {share}"))
            .collect();
        let shares = if shares.is_empty() { String::new() } else { format!(" (`{}`)", shares.join(", ")) };
        table.refuse(
            "ets",
            format!("the shares of `ets`{shares} make {sum} percent together"),
            "make them 100: they divide what strict priorities leave. A priority that is left out is strict",
        )
    })
}

/// A share, 1 to 99 percent.
fn share(table: Table<'_>, entry: &Entry) -> Result<u8, ScenarioError> {
    let node = &entry.value;
    let written = match &node.kind {
        Kind::Integer(number) => Some(number.as_str()),
        Kind::Text(text) => text.strip_suffix('%').map(str::trim_end),
        _ => None,
    };
    let refuse = |why: &str, remedy: &str| {
        let message = format!("`ets.{} = {}` {why}", entry.key, node.shown());
        Err(table.source.error(node.origin, message, remedy))
    };
    match written.and_then(|number| number.parse::<u8>().ok()) {
        Some(0) => refuse(
            "is no share",
            "leave the priority out: it is strict then, and goes before those that have shares",
        ),
        Some(percent @ 1..=100) => Ok(percent),
        _ => refuse(
            "is no whole number of percent",
            "it takes 1 to 99, such as 40 or \"40%\"; the shares make 100 together",
        ),
    }
}

/// Refuses a share for the headers of trimmed packets: those go first, that their receiver may hear of the loss at once.
pub(super) fn beside_headers(table: Table<'_>, config: &SwitchConfig) -> Result<(), ScenarioError> {
    let (Some(trim), Some(shares)) = (&config.trim, &config.ets) else { return Ok(()) };
    let headers = trim.header_priority;
    if shares.of(headers) == 0 {
        return Ok(());
    }
    let key = if table.get("ets").is_some() { "ets" } else { "trimming" };
    Err(table.refuse(
        key,
        format!("`ets` has a share for priority {headers}, on which headers of trimmed packets go first"),
        "take that share away, or choose another `switch.trimming.priority`: `headers_per_packet` keeps headers from taking all",
    ))
}

/// What a user should know of shares that do not do what they seem to.
pub(super) fn notes(switch: &Switch, traffic: &[Traffic], ranked: bool) -> Vec<String> {
    let Some(shares) = switch.configs().find_map(|config| config.ets) else { return Vec::new() };
    let shared = shares.priorities();
    let data = traffic.iter().flat_map(Traffic::priorities).map(|own| own.unwrap_or(switch.classes.data));
    let data = data.fold(0u8, |set, priority| set | 1 << priority);
    if ranked {
        return Vec::new();
    }
    let names = |set: u8| {
        let names: Vec<String> = (0..8).filter(|p| set >> p & 1 == 1).map(|p: u8| p.to_string()).collect();
        listed(names.iter().map(String::as_str))
    };
    let highest = u8::MAX.checked_shr(shared.leading_zeros()).unwrap_or(0);
    let before = data & !shared & highest;
    let idle = shared & !(data | 1 << switch.classes.ack | 1 << switch.classes.cnp);
    let mut notes = Vec::new();
    if before != 0 {
        notes.push(format!(
            "data of priority {} have no share in `switch.ets`, and so they go before those of {}, which have: give them a share too, \
             or leave `ets` to others",
            names(before),
            names(shared)
        ));
    }
    if idle != 0 {
        notes.push(format!(
            "`switch.ets` has shares for {}, on which nothing travels: the others have all of the link. `traffic.priority` puts data there",
            names(idle)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use crate::scenario::tests::{PERMUTATION, parse, star};

    fn notes(lines: &str) -> String {
        let scenario = parse(&star(&format!("{PERMUTATION}{lines}"))).unwrap();
        scenario.notes().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shares_are_read_by_priority_and_a_rule_replaces_or_drops_them() {
        let text = star(&format!(
            "{PERMUTATION}[switch]\nets = {{ 3 = 60, 0 = \"40%\" }}\n[[switch.on]]\nswitches = [\"s0\"]\nets = {{ 5 = 1, 3 = 99 }}\n\
             [[switch.on]]\nrate = \"1Gb/s\"\nets = false\n[[switch.on]]\nrate = \"2Gb/s\"\nalpha = 2\n"
        ));
        let switch = parse(&text).unwrap().switch;
        let shares: Vec<_> =
            switch.configs().map(|config| config.ets.map(|ets| [0, 3, 5].map(|p| ets.of(p)))).collect();
        assert_eq!(shares, [Some([40, 60, 0]), Some([0, 99, 1]), None, Some([40, 60, 0])]);
        assert_eq!(parse(&star(PERMUTATION)).unwrap().switch.config.ets, None);
    }

    #[test]
    fn data_that_go_before_shares_from_below_and_shares_that_nothing_uses_are_told_of() {
        let lower = notes("priority = 0\n[switch]\nets = { 3 = 60, 4 = 40 }\n");
        assert!(lower.contains("data of priority `0` have no share in `switch.ets`"), "{lower}");
        assert!(lower.contains("has shares for `4`, on which nothing travels"), "{lower}");
        let second = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\npriority = 0\n";
        let used = format!("{second}[switch]\nets = {{ 3 = 60, 0 = 40 }}\n");
        assert_eq!(notes(&used), "");
        assert_eq!(
            notes(&used.replace("3 = 60", "6 = 60")).matches("they go before").count(),
            1,
            "data of 3 go first"
        );
        assert_eq!(
            notes(&format!("priority = 7\n{used}")).matches("they go before").count(),
            0,
            "strict from above is usual"
        );
    }
}
