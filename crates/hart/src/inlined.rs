//! Which calls a compiler has put functions themselves in the place of, as `.debug_info` says (DWARF 2 to 5).

use gimli::AttributeValue;

use crate::elf::printable;
use crate::fields::{Entry, Reader, each_unit};

/// A call in whose place a function stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The function that is called.
    pub function: String,
    /// The file of the call.
    pub file: String,
    /// Its line.
    pub line: u32,
}

/// The calls in whose place the instruction at `address` stands, the outermost first; none in a file that was built without
/// `-g`.
pub fn inlined(file: &[u8], address: u32) -> Vec<Inlined> {
    let mut calls = Vec::new();
    each_unit(file, |reader| {
        let mut entries = reader.unit.entries();
        // Each entry comes before those that lie in it.
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() == gimli::DW_TAG_inlined_subroutine && reader.holds(entry, address) {
                calls.extend(reader.call(entry));
            }
        }
        true
    });
    calls
}

impl<'a> Reader<'a, '_> {
    /// Whether the code of an entry has `address`.
    fn holds(&self, entry: &Entry<'a>, address: u32) -> bool {
        let Ok(mut ranges) = self.dwarf.die_ranges(self.unit, entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&address.into()) {
                return true;
            }
        }
        false
    }

    fn call(&self, entry: &Entry<'a>) -> Option<Inlined> {
        let AttributeValue::UnitRef(origin) = entry.attr_value(gimli::DW_AT_abstract_origin)? else {
            return None;
        };
        let function = self.name(&self.unit.entry(origin).ok()?)?.into_owned();
        let line = Self::number(entry, gimli::DW_AT_call_line)?;
        let AttributeValue::FileIndex(index) = entry.attr_value(gimli::DW_AT_call_file)? else {
            return None;
        };
        let file = self.unit.line_program.as_ref()?.header().file(index)?;
        let file = self.dwarf.attr_string(self.unit, file.path_name()).ok()?;
        let file = printable(core::str::from_utf8(file.slice()).ok()?).into_owned();
        Some(Inlined { function, file, line })
    }
}
