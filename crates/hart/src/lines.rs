//! Which source line an instruction comes from, as `.debug_line` says (DWARF 2 to 5).

use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LineRow, LittleEndian};

use crate::elf::{name_at, printable, section};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A run of instructions that come from one line.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u32,
    /// Index into the files; `None` where a sequence ends.
    file: Option<u32>,
    line: u32,
}

/// The line table of a program, empty where the file has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    rows: Vec<Row>,
    files: Vec<String>,
}

impl Lines {
    /// Reads the table. What is broken in it costs lines, not the program.
    pub(crate) fn read(elf: &[u8]) -> Self {
        let mut lines = Self::default();
        let part = |name| section(elf, name).unwrap_or(&[]);
        let strings = Strings { of_lines: part(".debug_line_str"), shared: part(".debug_str") };
        let table: Slice<'_> = EndianSlice::new(part(".debug_line"), LittleEndian);
        let mut offset = 0;
        while offset < table.len() {
            let program = DebugLine::from(table).program(DebugLineOffset(offset), 4, None, None);
            let Ok(program) = program else { break };
            let header = program.header();
            // A unit is its length field and as many octets as that says.
            offset += header.unit_length() + usize::from(header.format().initial_length_size());
            let first = u32::try_from(lines.files.len()).unwrap_or(u32::MAX);
            lines.files.extend(header.file_names().iter().map(|file| strings.text(file.path_name())));
            // Files are counted from 1 before DWARF 5.
            let base = if header.version() >= 5 { 0 } else { 1 };
            let count = header.file_names().len() as u64;
            let mut rows = program.rows();
            while let Ok(Some((_, row))) = rows.next_row() {
                lines.rows.extend(row_of(row, first, base, count));
            }
        }
        lines.rows.sort_by_key(|row| (row.address, row.file.is_some()));
        lines
    }

    /// The file and line of the instruction at `address`.
    pub(crate) fn find(&self, address: u32) -> Option<(&str, u32)> {
        let behind = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows[..behind].last()?;
        Some((self.files.get(row.file? as usize)?, row.line))
    }
}

fn row_of(row: &LineRow, first: u32, base: u64, count: u64) -> Option<Row> {
    let address = u32::try_from(row.address()).ok()?;
    let file = row.file_index().checked_sub(base).filter(|&file| file < count && !row.end_sequence());
    let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
    Some(Row { address, file: file.and_then(|file| u32::try_from(file).ok()).map(|file| first + file), line })
}

/// The tables that names of files may stand in.
struct Strings<'a> {
    of_lines: &'a [u8],
    shared: &'a [u8],
}

impl Strings<'_> {
    fn text(&self, value: AttributeValue<Slice<'_>>) -> String {
        let name = match value {
            // This one stands in the table of lines itself, so no other entry can share it.
            AttributeValue::String(name) => core::str::from_utf8(name.slice()).ok(),
            AttributeValue::DebugLineStrRef(offset) => name_at(self.of_lines, offset.0),
            AttributeValue::DebugStrRef(offset) => name_at(self.shared, offset.0),
            _ => None,
        };
        printable(name.unwrap_or("?")).into_owned()
    }
}
