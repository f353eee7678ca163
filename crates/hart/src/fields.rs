//! The fields of a program's types and the types of its variables, as `.debug_info` names them (DWARF 2 to 5).

use core::cell::Cell;
use std::borrow::Cow;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset};

use crate::elf::{printable, section};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// A number somewhere in a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Its name, with those of what it lies in: `rate`, `links[2].at`.
    pub name: String,
    /// Octets from the start of the structure.
    pub offset: u32,
    /// Octets that it takes.
    pub size: u32,
    /// Whether it can be negative.
    pub signed: bool,
    /// The outermost `typedef` that its type is called by, such as `uint32_t`; empty where it has none.
    pub type_name: String,
}

/// A structure with more fields is not told apart, nor one whose types lie deeper in each other.
const FIELDS_MAX: usize = 1024;
const DEPTH_MAX: u32 = 16;
/// Types that are looked at: what a file says can be shaped so that there would be no end of them.
const TYPES_MAX: u32 = 1 << 16;

/// The fields of the structure that `name`, a `typedef`, stands for, by their offsets. `None` where the file does not
/// tell: it has no such type, or was built without `-g`.
pub fn fields(file: &[u8], name: &str) -> Option<Vec<Field>> {
    let mut found = None;
    each_unit(file, |reader| {
        let Some(at) = reader.typedef(name) else { return true };
        let mut fields = Vec::new();
        found = reader.gather(at, String::new(), 0, DEPTH_MAX, &mut fields).map(|()| {
            fields.sort_by_key(|field: &Field| field.offset);
            fields
        });
        false
    });
    found
}

/// The program's variables that are numbers, by their names; `offset` is zero in each. None of a file that was built
/// without `-g`.
pub fn variables(file: &[u8]) -> Vec<Field> {
    let mut variables = Vec::new();
    each_unit(file, |reader| {
        reader.variables(&mut variables);
        true
    });
    variables
}

/// Calls `look` for each unit of a file's debugging information, until it says no.
pub(crate) fn each_unit(file: &[u8], mut look: impl FnMut(&Reader<'_, '_>) -> bool) {
    let load = |id: gimli::SectionId| -> Result<Slice<'_>, gimli::Error> {
        Ok(EndianSlice::new(section(file, id.name()).unwrap_or(&[]), LittleEndian))
    };
    let Ok(dwarf) = Dwarf::load(load) else { return };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if !look(&Reader { dwarf: &dwarf, unit: &unit, left: Cell::new(TYPES_MAX) }) {
            return;
        }
    }
}

pub(crate) struct Reader<'a, 'u> {
    pub(crate) dwarf: &'u Dwarf<Slice<'a>>,
    pub(crate) unit: &'u Unit<Slice<'a>>,
    /// Types that may still be looked at.
    left: Cell<u32>,
}

impl<'a> Reader<'a, '_> {
    /// What an entry is called, [printable].
    pub(crate) fn name(&self, entry: &Entry<'a>) -> Option<Cow<'a, str>> {
        let name = entry.attr_value(gimli::DW_AT_name)?;
        core::str::from_utf8(self.dwarf.attr_string(self.unit, name).ok()?.slice()).ok().map(printable)
    }

    fn type_of(entry: &Entry<'a>) -> Option<UnitOffset> {
        match entry.attr_value(gimli::DW_AT_type)? {
            AttributeValue::UnitRef(at) => Some(at),
            _ => None,
        }
    }

    pub(crate) fn number(entry: &Entry<'a>, what: gimli::DwAt) -> Option<u32> {
        entry.attr_value(what)?.udata_value().and_then(|value| u32::try_from(value).ok())
    }

    /// What the top-level `typedef` of this name stands for.
    fn typedef(&self, name: &str) -> Option<UnitOffset> {
        let mut entries = self.unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() == gimli::DW_TAG_typedef && self.name(entry).is_some_and(|its| its == name) {
                return Self::type_of(entry);
            }
        }
        None
    }

    /// Adds the variables outside of functions.
    fn variables(&self, variables: &mut Vec<Field>) {
        let Ok(mut tree) = self.unit.entries_tree(None) else { return };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            let (Some(name), Some(at)) = (self.name(entry), Self::type_of(entry)) else { continue };
            let mut fields = Vec::new();
            if entry.tag() == gimli::DW_TAG_variable
                && self.gather(at, name.to_string(), 0, DEPTH_MAX, &mut fields).is_some()
                && let [variable] = &mut fields[..]
                && variable.name == name
                && variables.len() < FIELDS_MAX
            {
                variables.push(core::mem::take(variable));
            }
        }
    }

    /// Adds the numbers in the type at `at`, which begins at `offset` and is called `name`.
    fn gather(
        &self,
        at: UnitOffset,
        name: String,
        offset: u32,
        depth: u32,
        fields: &mut Vec<Field>,
    ) -> Option<()> {
        if depth == 0 || fields.len() >= FIELDS_MAX {
            return None;
        }
        self.left.set(self.left.get().checked_sub(1)?);
        let entry = self.unit.entry(at).ok()?;
        match entry.tag() {
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type | gimli::DW_TAG_pointer_type => {
                let size = Self::number(&entry, gimli::DW_AT_byte_size)?;
                let encoding = entry.attr_value(gimli::DW_AT_encoding);
                let signed = matches!(
                    encoding,
                    Some(AttributeValue::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char))
                );
                fields.push(Field { name, offset, size, signed, type_name: String::new() });
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
                let mut tree = self.unit.entries_tree(Some(at)).ok()?;
                let mut children = tree.root().ok()?.children();
                while let Ok(Some(child)) = children.next() {
                    let member = child.entry();
                    if member.tag() != gimli::DW_TAG_member {
                        continue;
                    }
                    let place = Self::number(member, gimli::DW_AT_data_member_location).unwrap_or(0);
                    let own = self.name(member).unwrap_or_default();
                    let dot = if name.is_empty() || own.is_empty() { "" } else { "." };
                    let place = offset.checked_add(place)?;
                    self.gather(
                        Self::type_of(member)?,
                        format!("{name}{dot}{own}"),
                        place,
                        depth - 1,
                        fields,
                    )?;
                }
            }
            gimli::DW_TAG_array_type => self.gather_array(at, &entry, &name, offset, depth, fields)?,
            // typedef, const, volatile, and other names for the same.
            _ => {
                let first = fields.len();
                self.gather(Self::type_of(&entry)?, name.clone(), offset, depth - 1, fields)?;
                // Not of what lies in a structure that this is the name of.
                if entry.tag() == gimli::DW_TAG_typedef
                    && let [field] = &mut fields[first..]
                    && field.name == name
                {
                    field.type_name = self.name(&entry).unwrap_or_default().into_owned();
                }
            }
        }
        Some(())
    }

    fn gather_array(
        &self,
        at: UnitOffset,
        entry: &Entry<'a>,
        name: &str,
        offset: u32,
        depth: u32,
        fields: &mut Vec<Field>,
    ) -> Option<()> {
        let mut tree = self.unit.entries_tree(Some(at)).ok()?;
        let mut children = tree.root().ok()?.children();
        // Of an array of arrays only the first dimension is told apart.
        let range = children.next().ok()??;
        let count = Self::number(range.entry(), gimli::DW_AT_count)
            .or_else(|| Self::number(range.entry(), gimli::DW_AT_upper_bound)?.checked_add(1))?;
        let element = Self::type_of(entry)?;
        let mut first = Vec::new();
        self.gather(element, String::new(), 0, depth - 1, &mut first)?;
        let size = self.size(element, depth)?;
        for index in 0..count {
            for field in &first {
                if fields.len() >= FIELDS_MAX {
                    return None;
                }
                let dot = if field.name.is_empty() { "" } else { "." };
                let own = format!("{name}[{index}]{dot}{}", field.name);
                let place = index.checked_mul(size)?.checked_add(offset)?.checked_add(field.offset)?;
                fields.push(Field { name: own, offset: place, ..field.clone() });
            }
        }
        Some(())
    }

    /// Octets of the type at `at`.
    fn size(&self, at: UnitOffset, depth: u32) -> Option<u32> {
        let entry = self.unit.entry(at).ok()?;
        match Self::number(&entry, gimli::DW_AT_byte_size) {
            Some(size) => Some(size),
            None if depth > 0 => self.size(Self::type_of(&entry)?, depth - 1),
            None => None,
        }
    }
}
