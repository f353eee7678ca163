//! Whose memory a core's is.

use super::*;
use crate::Law;
use crate::event::{Class, Event};
use crate::outcome::{Credit, Outcome};
use crate::register::Value;
use alloc::sync::Arc;
use alloc::vec::Vec;
use roci_units::Instant;

const FAULTS: &[u8] = include_bytes!("../../../tests/images/faults.elf");
const COUNTS: &[u8] = include_bytes!("../../../tests/images/counts.elf");
const INDEXED: &[u8] = include_bytes!("../../../tests/images/indexed.elf");
const OTHER: &[u8] = include_bytes!("../../../tests/images/other.elf");
const SHIPPED: [(&str, &[u8]); 7] = [
    ("credit", CREDIT),
    ("dcqcn", DCQCN),
    ("homa", include_bytes!("../../../../../firmware/homa.elf")),
    ("hpcc", include_bytes!("../../../../../firmware/hpcc.elf")),
    ("paced", include_bytes!("../../../../../firmware/paced.elf")),
    ("swift", include_bytes!("../../../../../firmware/swift.elf")),
    ("timely", include_bytes!("../../../../../firmware/timely.elf")),
];

fn image(file: &[u8]) -> Arc<Image> {
    let options = Options { checked: false, ..Options::default() };
    Arc::new(Image::new("test", file, &options).unwrap())
}

/// What `word` says of each of `qpns` when it has heard, in this order, of an ACK of `length` octets.
fn heard(law: &mut Programmed, qpns: &[u32], length: u32, word: &str) -> Vec<u32> {
    let mut words = Vec::new();
    for &qpn in qpns {
        let (mut state, _) = law.open(1, qpn, Instant::ZERO);
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        law.on_event(&mut state, &Event { class: Class::ACK, length, qpn, ..Event::default() }, &mut outcome);
        let Some(Value::Count(value)) = law.get(&state, word, Instant::ZERO) else { panic!("it has {word}") };
        words.push(value);
    }
    words
}

fn program(file: &[u8], pairs: u32) -> Programmed {
    let mut law = Programmed::new(image(file), Law::None).unwrap();
    law.set_pairs(pairs);
    law
}

#[test]
fn static_variables_are_seen_by_the_queue_pairs_of_one_pair_of_cores_alone() {
    // It says what the cell held, and puts 5 there.
    let qpns = [0, 1, 3, 4, 2];
    assert_eq!(heard(&mut program(FAULTS, 1), &qpns, 10, "before"), [0, 5, 5, 5, 5]);
    assert_eq!(heard(&mut program(FAULTS, 3), &qpns, 10, "before"), [0, 0, 5, 5, 0]);
}

#[test]
fn so_are_local_variables_that_outlive_the_loop() {
    assert_eq!(heard(&mut program(COUNTS, 2), &[0, 1, 2, 5, 7, 4], 0, "heard"), [1, 1, 2, 2, 3, 3]);
}

#[test]
fn so_is_a_word_that_is_read_by_an_index_from_below_the_stack() {
    // The packet's length is the index: 0x3000 into ROM and 0x1100 from there is the word that the program writes.
    let qpns = [0, 1, 2, 5, 7, 4, 8, 3];
    for (pairs, heard_by_then) in
        [(1, [1, 2, 3, 4, 5, 6, 7, 8]), (2, [1, 1, 2, 2, 3, 3, 4, 4]), (8, [1, 1, 1, 1, 1, 1, 2, 1])]
    {
        assert_eq!(heard(&mut program(INDEXED, pairs), &qpns, 0x1100, "heard"), heard_by_then, "{pairs}");
    }
}

#[test]
fn one_pair_that_starts_over_leaves_the_memory_of_others_alone() {
    let mut law = program(FAULTS, 2);
    assert_eq!(heard(&mut law, &[0, 1], 10, "before"), [0, 0]);
    heard(&mut law, &[1], 3, "before");
    assert_eq!(law.tally().fallen(), 1);
    assert_eq!(heard(&mut law, &[0, 1], 10, "before"), [5, 0]);
}

#[test]
fn another_program_runs_on_as_many_pairs() {
    let mut law = program(OTHER, 2);
    law.replace(image(COUNTS));
    assert_eq!(heard(&mut law, &[0, 1, 2], 0, "heard"), [1, 1, 2]);
}

#[test]
fn programs_that_keep_nothing_take_the_memory_of_one_pair_however_many_there_are() {
    // Two look numbers up in libgcc's table for divisions of 64 bits, with the stack in use: at what address does not follow
    // from the code, so that they count as programs that keep something.
    for (name, file) in SHIPPED {
        assert_eq!(image(file).keeps(), [["hpcc", "swift"].contains(&name), false], "{name}");
    }
    assert_eq!(image(FAULTS).keeps(), [true, false]);
    assert_eq!(image(COUNTS).keeps(), [true, false]);
    assert_eq!(image(INDEXED).keeps(), [true, false]);
    for (file, cores) in [(DCQCN, 1), (COUNTS, 3)] {
        let mut law = program(file, 8);
        for qpn in [0, 1, 2, 8] {
            let (mut state, _) = law.open(1, qpn, Instant::ZERO);
            let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
            let event = Event { class: law.traces(), qpn, ..Event::default() };
            let class = Class(1 << event.class.0.trailing_zeros());
            law.on_event(&mut state, &Event { class, ..event }, &mut outcome);
        }
        assert_eq!(law.cores_begun(), cores);
    }
}
