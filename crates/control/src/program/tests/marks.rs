//! Which marks the NIC answers beside a program.

use super::super::law::{heard, usual_fallback_of};
use super::*;
use crate::Law;
use crate::event::{Class, Event};
use crate::outcome::Outcome;
use alloc::sync::Arc;
use roci_units::{BitsPerSec, Instant, Span};

const OTHER: &[u8] = include_bytes!("../../../tests/images/other.elf");
const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

fn image(file: &[u8]) -> Arc<Image> {
    let options = Options { checked: true, cycles_max: 2_000, ..Options::default() };
    Arc::new(Image::new("test", file, &options).unwrap())
}

fn fallback() -> Law {
    Law::from_settings("dcqcn", &[], LINK).unwrap()
}

#[test]
fn marks_that_a_program_does_not_hear_of_its_fallback_answers() {
    let mut law = Programmed::new(image(OTHER), fallback()).unwrap();
    let (mut state, begun) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
    assert!(law.traces().meets(Class::CE));
    let mut mark = |us| {
        let event =
            Event { class: Class::CE, now: Instant::ZERO + Span::from_micros(us), ..Event::default() };
        let mut outcome = Outcome::unchanged(begun.credit, begun.wake);
        law.on_event(&mut state, &event, &mut outcome);
        (outcome.emit.map(|emit| emit.class), outcome.cycles)
    };
    let cnp = (Some(Class::CNP), 0);
    assert_eq!([1, 30, 52, 53].map(&mut mark), [cnp, (None, 0), cnp, (None, 0)], "one in 50 us, on no core");
    assert_eq!((law.tally().events, law.tally().fallen()), ([0, 0], 0));
    // One that hears of marks answers them itself, and fallbacks that do not notify ask for none.
    let own = Programmed::new(image(DCQCN), fallback()).unwrap();
    assert_eq!(Programmed::usual_fallback(own.image()), "dcqcn");
    // This one is a reaction point alone, and hears what the NIC's notification point sends.
    assert_eq!(Programmed::usual_fallback(law.image()), "dcqcn");
    assert_eq!(usual_fallback_of(Class::ACK.with(Class::LOSS)), "dctcp");
}

#[test]
fn marks_are_answered_for_a_program_that_hears_of_cnps_whatever_it_falls_back_to() {
    for name in ["none", "dctcp", "swift"] {
        let fallback = Law::from_settings(name, &[], LINK).unwrap();
        let mut law = Programmed::new(image(OTHER), fallback).unwrap();
        let (mut state, begun) = law.open(LINK.as_kbps(), 0, Instant::ZERO);
        assert!(law.traces().meets(Class::CE), "{name}");
        let mut mark = |us| {
            let event =
                Event { class: Class::CE, now: Instant::ZERO + Span::from_micros(us), ..Event::default() };
            let mut outcome = Outcome::unchanged(begun.credit, begun.wake);
            law.on_event(&mut state, &event, &mut outcome);
            outcome.emit.map(|emit| emit.class)
        };
        assert_eq!(
            [1, 30, 52, 53].map(&mut mark),
            [Some(Class::CNP), None, Some(Class::CNP), None],
            "{name}"
        );
        // One that hears of neither marks nor CNPs has no use for them.
        let fallback = Law::from_settings(name, &[], LINK).unwrap();
        assert!(!heard(&fallback, Class::ACK.with(Class::LOSS)).meets(Class::CE));
    }
}
