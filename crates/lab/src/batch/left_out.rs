//! What a sweep leaves out: combinations of values that no scenario can have.

use super::Group;
use super::names::in_one_line;
use crate::output::flows::quoted;
use crate::scenario::ScenarioError;
use std::io::{self, Write};

/// A combination of values that a scenario cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The keys that are swept, with their values.
    pub values: Vec<(String, String)>,
    /// Why not.
    pub error: ScenarioError,
}

impl LeftOut {
    /// The values in one line.
    pub fn label(&self) -> String {
        in_one_line(&self.values)
    }

    /// Its reason without what differs between two combinations: the values.
    fn kind(&self) -> String {
        let word =
            |word: &str| if word.contains(|c: char| c.is_ascii_digit()) { "0" } else { word }.to_owned();
        self.error.message.split([' ', ',', '`', '"']).map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Combinations that are left out for one reason.
#[derive(Clone, Copy, Debug)]
pub struct Alike<'a> {
    /// The first of them.
    pub first: &'a LeftOut,
    /// How many they are.
    pub count: usize,
}

impl Group {
    /// The combinations that are left out, those of one reason together, in the order of the first ones.
    pub fn left_out_alike(&self) -> Vec<Alike<'_>> {
        let mut all: Vec<(String, Alike<'_>)> = Vec::new();
        for one in &self.left_out {
            let kind = one.kind();
            match all.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, alike)) => alike.count += 1,
                None => all.push((kind, Alike { first: one, count: 1 })),
            }
        }
        all.into_iter().map(|(_, alike)| alike).collect()
    }
}

/// The combinations as CSV, a line each (RFC 4180): a column for each key, then why it cannot be and what would be right.
pub(super) fn write_csv(out: &mut impl Write, left_out: &[LeftOut]) -> io::Result<()> {
    let Some(first) = left_out.first() else { return Ok(()) };
    let line = |cells: &mut dyn Iterator<Item = &str>| cells.map(quoted).collect::<Vec<_>>().join(",");
    let keys = first.values.iter().map(|(key, _)| key.as_str());
    writeln!(out, "{}", line(&mut keys.chain(["reason", "remedy"])))?;
    for LeftOut { values, error } in left_out {
        let values = values.iter().map(|(_, value)| value.as_str());
        writeln!(out, "{}", line(&mut values.chain([error.message.as_str(), error.remedy.as_str()])))?;
    }
    Ok(())
}
