//! What configurations are called in a table: the labels of a sweep all have the same keys, so each key is said once, above its values.

use super::Group;
use crate::scenario::overrides;
use std::collections::{BTreeMap, BTreeSet};

/// The columns that tell configurations apart.
#[derive(Clone, Debug, Default)]
pub struct Names<'a> {
    /// The key above each.
    keys: Vec<&'a str>,
    /// What stands in them, by the label of the configuration.
    cells: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Names<'a> {
    /// What stands above the columns: the last words of the keys of a sweep that tell them from one another and from the headings that
    /// stand `beside` them, else `run`.
    pub fn headings(&self, beside: &[&str]) -> Vec<&'a str> {
        if self.keys.is_empty() {
            return vec!["run"];
        }
        self.keys.iter().map(|key| shortest(key, &self.keys, beside)).collect()
    }

    /// Whether there is a column for each key of a sweep.
    pub const fn are_keys(&self) -> bool {
        !self.keys.is_empty()
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
        let keys = first.iter().map(|(key, _)| key.as_str()).collect();
        let cells = self
            .runs
            .iter()
            .map(|run| (run.label.as_str(), run.values.iter().map(|(_, value)| value.as_str()).collect()));
        Names { keys, cells: cells.collect() }
    }
}

/// A combination of values of the keys that are swept, as a label.
pub fn in_one_line(values: &[(String, String)]) -> String {
    values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

/// The fewest last words of `key` that no other of `keys` ends in, and that are none of those `beside`; an index alone is no word.
fn shortest<'a>(key: &'a str, keys: &[&str], beside: &[&str]) -> &'a str {
    let is_of_another = |ending: &str| {
        let ends = |other: &str| other == ending || other.ends_with(&format!(".{ending}"));
        beside.contains(&ending) || keys.iter().any(|other| *other != key && ends(other))
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
        let told = keys.map(|key| shortest(key, &keys, &[]));
        let written = "\"switch.ecn.kmin\"";
        assert_eq!(told, ["switch.ecn.kmin", "on.0.ecn.kmin", "load", "seed", "leaves.0", written]);
    }

    #[test]
    fn headings_of_keys_differ_from_one_another_and_from_those_beside_them() {
        let names = |keys| Names { keys, ..Names::default() };
        let two = names(vec!["traffic.0.algorithm", "traffic.1.algorithm"]);
        assert_eq!(two.headings(&[]), ["traffic.0.algorithm", "traffic.1.algorithm"]);
        let one = names(vec!["traffic.0.algorithm", "seed"]);
        assert_eq!(one.headings(&[]), ["algorithm", "seed"]);
        assert_eq!(
            one.headings(&["algorithm", "seed"]),
            ["traffic.0.algorithm", "seed"],
            "no longer one is left"
        );
    }
}
