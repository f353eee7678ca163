//! ELF files as the linker leaves them. Whatever stands in the file, loading ends with an image or a reason.

use std::borrow::Cow;

use object::LittleEndian as Le;
use object::elf::{self, FileHeader32, ProgramHeader32, SHT_SYMTAB};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};

use crate::error::LoadError;
use crate::memory::{MemoryMap, Region};

/// A name for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// Its value: an address, or a number that the linker was given.
    pub address: u32,
    /// Octets of what it names; 0 when the file does not say.
    pub size: u32,
    /// Whether it names code.
    pub is_function: bool,
    /// Whether it names data that other files may refer to.
    pub is_variable: bool,
}

/// What an ELF file puts into memory.
pub(crate) struct Image {
    /// Every word of the memory map.
    pub(crate) words: Box<[u32]>,
    /// The first address of code, and the one behind the last; both multiples of 4.
    pub(crate) code: (u32, u32),
    pub(crate) entry: u32,
    pub(crate) symbols: Vec<Symbol>,
}

type Header = FileHeader32<Le>;

/// The header, once it is one of a RISC-V program for 32 bits.
fn header(file: &[u8]) -> Result<&Header, LoadError> {
    let truncated = LoadError::Truncated { what: "header", length: file.len() };
    let ident = file.get(..6).ok_or_else(|| {
        if elf::ELFMAG.starts_with(&file[..file.len().min(4)]) {
            truncated.clone()
        } else {
            LoadError::NotElf
        }
    })?;
    if ident[..4] != elf::ELFMAG {
        return Err(LoadError::NotElf);
    }
    if ident[4] != elf::ELFCLASS32 {
        return Err(LoadError::Class { found: ident[4] });
    }
    if ident[5] != elf::ELFDATA2LSB {
        return Err(LoadError::Encoding { found: ident[5] });
    }
    let header = Header::parse(file).map_err(|_| truncated)?;
    let (machine, kind, flags) = (header.e_machine(Le), header.e_type(Le), header.e_flags(Le));
    if machine != elf::EM_RISCV {
        return Err(LoadError::Machine { found: machine });
    }
    if kind != elf::ET_EXEC {
        return Err(LoadError::Kind { found: kind });
    }
    for (bits, what) in [
        (elf::EF_RISCV_RVC, "compressed instructions"),
        (elf::EF_RISCV_FLOAT_ABI, "floating-point registers"),
        (elf::EF_RISCV_RVE, "the ABI of 16 registers"),
    ] {
        if flags & bits != 0 {
            return Err(LoadError::Flags { flags, what });
        }
    }
    Ok(header)
}

/// A loadable segment's place.
struct Span {
    segment: usize,
    address: u32,
    length: u32,
}

/// Reads the program in `file` into the memory that `map` describes.
pub(crate) fn read(file: &[u8], map: &MemoryMap) -> Result<Image, LoadError> {
    let header = header(file)?;
    let truncated = |what| LoadError::Truncated { what, length: file.len() };
    let segments = header.program_headers(Le, file).map_err(|_| truncated("program headers"))?;
    let mut octets = vec![0u8; map.length() as usize];
    let mut code: Option<(u32, u32)> = None;
    let mut spans: Vec<Span> = Vec::new();
    for (segment, program) in segments.iter().enumerate() {
        let (address, length) = (program.p_vaddr(Le), program.p_memsz(Le));
        if program.p_type(Le) != elf::PT_LOAD || length == 0 {
            continue;
        }
        place(program, segment, map)?;
        let data = program.data(Le, file).map_err(|()| truncated("segments"))?;
        let start = (address - map.origin) as usize;
        octets[start..start + data.len()].copy_from_slice(data);
        if program.p_flags(Le) & elf::PF_X != 0 {
            let (first, last) = code.unwrap_or((address, address));
            let end = (address + length) & !3;
            code = Some((first.min(address), last.max(end)));
        }
        spans.push(Span { segment, address, length });
    }
    no_overlap(&mut spans)?;
    let code = code.ok_or(LoadError::NoCode)?;
    let entry = header.e_entry(Le);
    if !entry.is_multiple_of(4) || !(code.0..code.1).contains(&entry) {
        return Err(LoadError::Entry { address: entry });
    }
    let words = octets.as_chunks::<4>().0.iter().map(|octets| u32::from_le_bytes(*octets)).collect();
    whole(header, file)?;
    Ok(Image { words, code, entry, symbols: symbols(header, file) })
}

/// A program runs without its sections; but of a file that was cut off within them, names and lines are lost.
fn whole(header: &Header, file: &[u8]) -> Result<(), LoadError> {
    let octets = u64::from(header.e_shentsize(Le)) * u64::from(header.e_shnum(Le));
    let need = u64::from(header.e_shoff(Le)) + octets;
    if need > file.len() as u64 { Err(LoadError::CutOff { length: file.len(), need }) } else { Ok(()) }
}

/// Checks that a segment lies where its rights allow.
fn place(program: &ProgramHeader32<Le>, segment: usize, map: &MemoryMap) -> Result<(), LoadError> {
    let (address, length, in_file) = (program.p_vaddr(Le), program.p_memsz(Le), program.p_filesz(Le));
    if in_file > length {
        return Err(LoadError::Size { segment, address, in_file, in_memory: length });
    }
    let (writes, runs) = (program.p_flags(Le) & elf::PF_W != 0, program.p_flags(Le) & elf::PF_X != 0);
    let reason = match map.holds(address, length) {
        None => "it lies outside the memory or across two regions",
        Some(Region::Stack) => "it lies in the stack",
        Some(_) if writes && runs => "it is both writable and executable",
        Some(Region::Rom) if writes => "it is writable, but lies in ROM",
        Some(Region::Data) if runs => "it is code, but lies in data",
        Some(Region::Rom) if runs && !address.is_multiple_of(4) => "it is code, but does not start on a word",
        Some(_) => return Ok(()),
    };
    Err(LoadError::Place { segment, address, length, reason })
}

fn no_overlap(spans: &mut [Span]) -> Result<(), LoadError> {
    spans.sort_by_key(|span| (span.address, span.segment));
    match spans.windows(2).find(|pair| pair[0].address + pair[0].length > pair[1].address) {
        None => Ok(()),
        Some(pair) => Err(LoadError::Overlap {
            first: pair[0].segment,
            second: pair[1].segment,
            address: pair[1].address,
        }),
    }
}

/// The defined symbols by address, without those that mark files, sections and the compiler's own labels. A broken
/// symbol table costs names, not the program.
fn symbols(header: &Header, file: &[u8]) -> Vec<Symbol> {
    let Ok(sections) = header.sections(Le, file) else { return Vec::new() };
    let Ok(table) = sections.symbols(Le, file, SHT_SYMTAB) else { return Vec::new() };
    let strings = sections.section(table.string_section()).and_then(|section| section.data(Le, file));
    let strings: &[u8] = strings.unwrap_or(&[]);
    let mut symbols: Vec<Symbol> = table
        .iter()
        .filter(|symbol| {
            let kind = symbol.st_type();
            !symbol.is_undefined(Le) && kind != elf::STT_FILE && kind != elf::STT_SECTION
        })
        .filter_map(|symbol| {
            let name = name_at(strings, symbol.st_name(Le) as usize)?;
            (!name.is_empty() && !name.starts_with(['$', '.'])).then(|| Symbol {
                name: printable(name).into_owned(),
                address: symbol.st_value(Le),
                size: symbol.st_size(Le),
                is_function: symbol.st_type() == elf::STT_FUNC,
                is_variable: symbol.st_type() == elf::STT_OBJECT && symbol.st_bind() == elf::STB_GLOBAL,
            })
        })
        .collect();
    symbols.sort_by(|a, b| (a.address, !a.is_function, &a.name).cmp(&(b.address, !b.is_function, &b.name)));
    symbols
}

/// The name that starts at `offset` of a table of strings. One that does not end within 255 octets is none: many entries
/// may point into one long string, and to follow each to its end would take the square of the file's length.
pub(crate) fn name_at(strings: &[u8], offset: usize) -> Option<&str> {
    let strings = strings.get(offset..)?;
    let strings = &strings[..strings.len().min(256)];
    let length = strings.iter().position(|&octet| octet == 0)?;
    core::str::from_utf8(&strings[..length]).ok()
}

/// A text of a file with its control characters escaped, and those that change the direction of writing: whoever is told of it in a
/// terminal sees them, and they do nothing there.
pub fn printable(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let escaped = text.chars().map(|c| if acts(c) { c.escape_default().to_string() } else { c.to_string() });
    Cow::Owned(escaped.collect())
}

/// The contents of the section `name`, for what an embedder's tools leave beside the code.
///
/// `None` when the file is no RISC-V program, or has no such section, or has it compressed or empty.
pub fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let header = header(file).ok()?;
    let sections = header.sections(Le, file).ok()?;
    let (_, section) = sections.section_by_name(Le, name.as_bytes())?;
    if section.sh_flags(Le) & elf::SHF_COMPRESSED != 0 {
        return None;
    }
    section.data(Le, file).ok().filter(|data| !data.is_empty())
}
