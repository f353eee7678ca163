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
    // Each segment starts in the file where it starts within a page of memory.
    let mut end = PAGE;
    let places = segments.iter().map(|segment| {
        let place = end.next_multiple_of(PAGE) + segment.address as usize % PAGE;
        end = place + segment.octets.len();
        place
    });
    let places: Vec<usize> = places.collect();
    for (segment, &place) in segments.iter().zip(&places) {
        let in_file = segment.octets.len() as u32;
        let Segment { address, length, flags, .. } = *segment;
        for value in [1, place as u32, address, address, in_file, length, flags, PAGE as u32] {
            word(&mut file, value);
        }
    }
    for (segment, place) in segments.iter().zip(places) {
        file.resize(place, 0);
        file.extend(&segment.octets);
    }
    file
}
