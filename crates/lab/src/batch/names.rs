//! What configurations are called in a table: the labels of a sweep all have the same keys, so each key is said once, above its values.

use super::Group;
use crate::scenario::overrides;
use std::collections::{BTreeMap, BTreeSet};

/// The columns that tell configurations apart.
#[derive(Clone, Debug, Default)]
pub struct Names<'a> {
    /// What stands above each.
    headings: Vec<&'a str>,
    /// What stands in them, by the label of the configuration.
    cells: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Names<'a> {
    /// What stands above the columns: the last words of the keys of a sweep, else `run`.
    pub fn headings(&self) -> Vec<&'a str> {
        if self.headings.is_empty() { vec!["run"] } else { self.headings.clone() }
    }

    /// What stands in them for the configuration `label`: its values, else the label itself.
    pub fn of(&self, label: &'a str) -> Vec<&'a str> {
        self.cells.get(label).cloned().unwrap_or_else(|| vec![label])
    }
}

impl Group {
    /// The columns that tell the configurations apart: one for each key of a sweep, else one with the labels.
    pub fn names(&self) -> Names<'_> {
        let keys =
            |values: &[(String, String)]| values.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let Some(first) = self.runs.first().map(|run| &run.values) else { return Names::default() };
        let distinct = first.iter().map(|(key, _)| key).collect::<BTreeSet<_>>().len() == first.len();
        if first.is_empty() || !distinct || self.runs.iter().any(|run| keys(&run.values) != keys(first)) {
            return Names::default();
        }
        let headings = first.iter().map(|(key, _)| shortest(key, first)).collect();
        let cells = self
            .runs
            .iter()
            .map(|run| (run.label.as_str(), run.values.iter().map(|(_, value)| value.as_str()).collect()));
        Names { headings, cells: cells.collect() }
    }
}

/// A combination of values of the keys that are swept, as a label.
pub fn in_one_line(values: &[(String, String)]) -> String {
    values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// The fewest last words of `key` that no other of `keys` ends in; an index alone is no word.
fn shortest<'a>(key: &'a str, keys: &[(String, String)]) -> &'a str {
    let is_of_another = |ending: &str| {
        let ends = |other: &str| other == ending || other.ends_with(&format!(".{ending}"));
        keys.iter().any(|(other, _)| other != key && ends(other))
    };
    let mut endings: Vec<&str> = overrides::dots(key).map(|(dot, _)| &key[dot + 1..]).collect();
    endings.reverse();
    let says = |ending: &&str| !ending.starts_with(|c: char| c.is_ascii_digit()) && !is_of_another(ending);
    endings.into_iter().find(says).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_called_by_its_last_words_that_no_other_has() {
        let keys = [
            "switch.ecn.kmin",
            "switch.on.0.ecn.kmin",
            "traffic.0.load",
            "seed",
            "topology.leaves.0",
            "at.0.set.\"switch.ecn.kmin\"",
        ];
        let all = keys.map(|key| (key.to_owned(), String::new()));
        let told = keys.map(|key| shortest(key, &all));
        let written = "\"switch.ecn.kmin\"";
        assert_eq!(told, ["switch.ecn.kmin", "on.0.ecn.kmin", "load", "seed", "leaves.0", written]);
    }
}
