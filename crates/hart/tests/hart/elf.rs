//! Files that are wrong are refused, each with its own reason.

use proptest::prelude::*;
use roci_hart::{LoadError, Machine, MemoryMap, Program};

use crate::support::elf::{Segment, file};

const ORIGIN: u32 = 0x8000_0000;
/// `j .`
const LOOP: u32 = 0x0000_006f;

fn data() -> u32 {
    let MemoryMap { origin, rom, stack, .. } = MemoryMap::default();
    origin + rom + stack
}

fn right() -> Vec<u8> {
    file(ORIGIN, &[Segment::code(ORIGIN, &[LOOP]), Segment::new(data(), vec![1, 2, 3, 4, 5], 6)])
}

fn refusal(file: &[u8]) -> LoadError {
    Program::load(file, Machine::default()).expect_err("the file is wrong")
}

#[test]
fn a_right_file_becomes_a_program() {
    let program = Program::load(&right(), Machine::default()).expect("the file is right");
    assert_eq!((program.entry(), program.code()), (ORIGIN, (ORIGIN, ORIGIN + 4)));
    let core = roci_hart::Core::new(program.into());
    assert_eq!(core.memory().load(data(), 4), Ok(0x0403_0201));
    assert_eq!(core.memory().load(data() + 4, 4), Ok(5));
    assert_eq!(core.memory().load(ORIGIN, 4), Ok(LOOP));
}

#[test]
fn a_header_for_something_else_is_refused_for_what_it_is() {
    let with = |at: usize, octet: u8| {
        let mut file = right();
        file[at] = octet;
        refusal(&file)
    };
    assert_eq!(refusal(b"#!/bin/sh"), LoadError::NotElf);
    assert_eq!(refusal(b""), LoadError::Truncated { what: "header", length: 0 });
    assert_eq!(with(4, 2), LoadError::Class { found: 2 });
    assert_eq!(with(5, 2), LoadError::Encoding { found: 2 });
    assert_eq!(with(16, 1), LoadError::Kind { found: 1 });
    assert_eq!(with(18, 40), LoadError::Machine { found: 40 });
    assert_eq!(with(36, 1), LoadError::Flags { flags: 1, what: "compressed instructions" });
    assert_eq!(with(36, 4), LoadError::Flags { flags: 4, what: "floating-point registers" });
    assert_eq!(with(36, 8), LoadError::Flags { flags: 8, what: "the ABI of 16 registers" });
}

#[test]
fn a_file_cut_anywhere_is_refused_and_says_where() {
    let file = right();
    for length in 0..file.len() {
        let what = match length {
            0..52 => "header",
            52..116 => "program headers",
            _ => "segments",
        };
        assert_eq!(refusal(&file[..length]), LoadError::Truncated { what, length });
    }
}

#[test]
fn a_segment_lies_where_its_rights_allow() {
    let code = || Segment::code(ORIGIN, &[LOOP]);
    let reason = |segment: Segment| match refusal(&file(ORIGIN, &[code(), segment])) {
        LoadError::Place { segment: 1, reason, .. } => reason,
        other => panic!("{other}"),
    };
    let (outside, stack) = ("it lies outside the memory or across two regions", "it lies in the stack");
    assert_eq!(reason(Segment::new(ORIGIN - 4, vec![0; 4], 4)), outside);
    assert_eq!(reason(Segment::new(data() - 4, vec![0; 8], 6)), outside);
    assert_eq!(reason(Segment::new(u32::MAX - 2, vec![0; 8], 6)), outside);
    assert_eq!(reason(Segment { length: u32::MAX, ..code() }), outside);
    assert_eq!(reason(Segment::new(data() - 4, vec![0; 4], 6)), stack);
    assert_eq!(reason(Segment::new(ORIGIN + 4, vec![0; 4], 7)), "it is both writable and executable");
    assert_eq!(reason(Segment::new(ORIGIN + 4, vec![0; 4], 6)), "it is writable, but lies in ROM");
    assert_eq!(reason(Segment::new(data(), vec![0; 4], 5)), "it is code, but lies in data");
    assert_eq!(reason(Segment::new(ORIGIN + 6, vec![0; 4], 5)), "it is code, but does not start on a word");
}

#[test]
fn segments_neither_overlap_nor_hold_more_in_the_file_than_in_memory() {
    let code = Segment::code(ORIGIN, &[LOOP, LOOP]);
    let constant = Segment::new(ORIGIN + 4, vec![0; 4], 4);
    assert_eq!(
        refusal(&file(ORIGIN, &[constant, code.clone()])),
        LoadError::Overlap { first: 1, second: 0, address: ORIGIN + 4 }
    );
    assert_eq!(
        refusal(&file(ORIGIN, &[Segment { length: 4, ..code }])),
        LoadError::Size { segment: 0, address: ORIGIN, in_file: 8, in_memory: 4 }
    );
}

#[test]
fn a_program_starts_on_an_instruction() {
    let code = Segment::code(ORIGIN, &[LOOP]);
    for entry in [0, ORIGIN - 4, ORIGIN + 2, ORIGIN + 4] {
        assert_eq!(refusal(&file(entry, std::slice::from_ref(&code))), LoadError::Entry { address: entry });
    }
    let constant = Segment::new(ORIGIN, vec![0; 4], 4);
    assert_eq!(refusal(&file(ORIGIN, &[constant])), LoadError::NoCode);
}

#[test]
fn an_impossible_machine_is_refused() {
    let map = |memory| Program::load(&right(), Machine { memory, ..Machine::default() }).map(|_| ());
    for memory in [
        MemoryMap { origin: 2, ..MemoryMap::default() },
        MemoryMap { rom: 0x8000_0000, ..MemoryMap::default() },
        MemoryMap { origin: 0, rom: 0x8000_0000, stack: 4, data: 0 },
    ] {
        assert_eq!(map(memory), Err(LoadError::Map(memory)));
    }
    let mut machine = Machine::default();
    machine.cycles.divide = 0;
    assert_eq!(Program::load(&right(), machine).map(|_| ()), Err(LoadError::FreeInstruction));
}

proptest! {
    #[test]
    fn no_change_to_a_file_makes_loading_panic(changes in prop::collection::vec((0usize..220, any::<u8>()), 1..8)) {
        let mut file = right();
        for (at, octet) in changes {
            file[at] = octet;
        }
        let _ = Program::load(&file, Machine::default());
    }
}

/// An image with types: that of a law in C, built with `-g`.
const LAW: &[u8] = include_bytes!("../../../../firmware/dcqcn.elf");

#[test]
fn a_structures_fields_have_names_and_places() {
    let fields = roci_hart::fields(LAW, "QPContext").unwrap();
    let places: Vec<_> =
        fields.iter().map(|field| (field.name.as_str(), field.offset, field.size, field.signed)).collect();
    assert_eq!(places[..2], [("link", 0, 4, false), ("rate", 4, 4, false)]);
    let header = roci_hart::fields(LAW, "PktHeader").unwrap();
    assert_eq!((header.len(), header[3].name.as_str(), header[3].signed), (4, "ecn", true));
    assert_eq!(roci_hart::fields(LAW, "nothing"), None);
    let untyped = include_bytes!("../images/events.elf");
    assert_eq!(roci_hart::fields(untyped, "QPContext"), None);
}

proptest! {
    #[test]
    fn no_change_to_a_file_makes_reading_its_types_panic(
        changes in prop::collection::vec((0usize..LAW.len(), any::<u8>()), 1..40),
    ) {
        let mut file = LAW.to_vec();
        for (at, octet) in changes {
            file[at] = octet;
        }
        let _ = roci_hart::fields(&file, "QPContext");
    }
}

#[test]
fn addresses_have_functions_and_lines() {
    let image = include_bytes!("../images/events.elf");
    let program = Program::load(image, Machine::default()).expect("the image is right");
    let halving = program.symbol("halving").expect("the image has this function");
    let location = program.locate(halving + 4);
    assert_eq!(location.function, Some(("halving", 4)));
    let (file, line) = location.line.expect("the image has lines");
    let source = include_str!("../images/events.c").lines().nth(line as usize - 1);
    assert!(
        file.ends_with("events.c") && source.is_some_and(|line| !line.trim().is_empty()),
        "{file}:{line}"
    );
    // No octet of it makes loading or naming panic, whatever it becomes.
    let code = program.code();
    for at in 0x34..image.len() {
        let mut image = image.to_vec();
        image[at] ^= 0xff;
        if let Ok(program) = Program::load(&image, Machine::default()) {
            let _ = program.locate(code.0 + 4).to_string();
        }
    }
}
