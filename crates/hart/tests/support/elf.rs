//! Writes ELF files, right ones and wrong ones.
#![allow(clippy::cast_possible_truncation, reason = "the files are small")]

/// A program header and what it points at.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) address: u32,
    pub(crate) octets: Vec<u8>,
    /// Octets in memory.
    pub(crate) length: u32,
    /// 4 to read, 2 to write, 1 to execute.
    pub(crate) flags: u32,
}

impl Segment {
    pub(crate) fn new(address: u32, octets: Vec<u8>, flags: u32) -> Self {
        let length = octets.len() as u32;
        Self { address, octets, length, flags }
    }

    pub(crate) fn code(address: u32, words: &[u32]) -> Self {
        Self::new(address, words.iter().flat_map(|word| word.to_le_bytes()).collect(), 5)
    }
}

/// A file with these segments, each on a page of the file, as a loader that maps files wants it.
pub(crate) fn file(entry: u32, segments: &[Segment]) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    half(&mut file, 2); // a linked program
    half(&mut file, 243); // for RISC-V
    for value in [1, entry, 52, 0, 0] {
        word(&mut file, value); // version, entry, program headers, sections, flags
    }
    for value in [52, 32, segments.len() as u16, 40, 0, 0] {
        half(&mut file, value);
    }
    for (index, segment) in segments.iter().enumerate() {
        let offset = (index + 1) * PAGE + segment.address as usize % PAGE;
        for value in [
            1,
            offset as u32,
            segment.address,
            segment.address,
            segment.octets.len() as u32,
            segment.length,
            segment.flags,
            PAGE as u32,
        ] {
            word(&mut file, value);
        }
    }
    for (index, segment) in segments.iter().enumerate() {
        file.resize((index + 1) * PAGE + segment.address as usize % PAGE, 0);
        file.extend(&segment.octets);
    }
    file
}
