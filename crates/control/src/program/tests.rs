use super::csr::{Side, machine};
use roci_hart::{Program, check};

const DCQCN: &[u8] = include_bytes!("../../../../firmware/dcqcn.elf");
const CREDIT: &[u8] = include_bytes!("../../../../firmware/credit.elf");

#[test]
fn both_sides_of_our_programs_are_bounded() {
    for (image, words) in [(DCQCN, (9, 0)), (CREDIT, (1, 1))] {
        let program = Program::load(image, machine()).unwrap();
        for side in Side::ALL {
            let policy = side.policy(&program, 1_000).expect("it has both sides");
            let bounds = check(&program, &policy).unwrap_or_else(|refused| panic!("{refused}"));
            assert!((1..200).contains(&bounds.longest_event()));
        }
        let octets = |name| program.symbol(name).unwrap();
        assert_eq!((octets("context_octets") / 4, octets("header_octets") / 4), words);
    }
}
