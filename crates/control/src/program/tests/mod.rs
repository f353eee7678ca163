mod cores;
mod ends;
mod faults;
mod marks;
mod paced;
mod twin;

use super::csr::{Side, machine};
use super::*;
use roci_hart::{Program, check};

const DCQCN: &[u8] = include_bytes!("../../../../../firmware/dcqcn.elf");
const CREDIT: &[u8] = include_bytes!("../../../../../firmware/credit.elf");

#[test]
fn both_sides_of_our_programs_are_bounded() {
    for (image, words) in [(DCQCN, (7, 0)), (CREDIT, (2, 1))] {
        let program = Program::load(image, machine()).unwrap();
        for side in Side::ALL {
            let policy = side.policy(&program, 1_000).expect("it has both sides");
            let bounds = check(&program, &policy).unwrap_or_else(|refused| panic!("{refused}"));
            assert!((1..200).contains(&bounds.from_answer_to_answer()));
        }
        let octets = |name| program.symbol(name).unwrap();
        assert_eq!((octets("context_octets") / 4, octets("header_octets") / 4), words);
    }
}

#[test]
fn an_image_knows_its_context_by_name() {
    let image = Image::new("dcqcn", DCQCN, &Options::default()).unwrap();
    let names: alloc::vec::Vec<_> = image.fields().iter().map(|field| field.name).collect();
    let expected = ["link", "rate", "target", "alpha", "stage", "byte_stage", "flags"];
    assert_eq!(names, expected);
    assert_eq!(image.field("alpha").map(|field| field.word), Some(3));
}

#[test]
fn parameters_are_the_variables_that_are_not_static() {
    let image = Image::new("dcqcn", DCQCN, &Options::default()).unwrap();
    let mut names: alloc::vec::Vec<_> = image.parameters().map(|register| register.name).collect();
    names.sort_unstable();
    let expected =
        ["alpha_timer", "byte_counter", "cnp_gap", "g", "increase_timer", "rai", "rhai", "rmin", "threshold"];
    assert_eq!(names, expected);
    assert_eq!((image.parameter_value("rai"), image.parameter_value("rate")), (Some(40_000), None));
}
