//! Programs as a NIC admits them keep to what was proved of them.

mod support {
    pub(crate) mod bounds;
}

use roci_control::program::{Side, csr};
use roci_hart::Program;
use roci_units::Random;
use std::sync::Arc;
use support::bounds::confirm;

const IMAGES: [(&str, &[u8]); 10] = [
    ("credit", include_bytes!("../../../firmware/credit.elf")),
    ("dcqcn", include_bytes!("../../../firmware/dcqcn.elf")),
    ("homa", include_bytes!("../../../firmware/homa.elf")),
    ("hpcc", include_bytes!("../../../firmware/hpcc.elf")),
    ("paced", include_bytes!("../../../firmware/paced.elf")),
    ("swift", include_bytes!("../../../firmware/swift.elf")),
    ("timely", include_bytes!("../../../firmware/timely.elf")),
    ("counts", include_bytes!("images/counts.elf")),
    ("talks", include_bytes!("images/talks.elf")),
    ("waits", include_bytes!("images/waits.elf")),
];

/// So many octets that no two tests draw alike.
fn octets(random: &mut Random) -> Vec<u8> {
    (0..512).map(|_| random.below(256).to_le_bytes()[0]).collect()
}

/// Where the code begins in an image, and how long it is: its first segment.
fn code(file: &[u8]) -> (usize, u64) {
    let number = |at: usize| u32::from_le_bytes(*file[at..].first_chunk().expect("four octets"));
    let header = usize::try_from(number(0x1c)).expect("an offset");
    (usize::try_from(number(header + 4)).expect("an offset"), number(header + 16).into())
}

#[test]
fn every_event_of_our_programs_is_answered_once_and_within_the_bounds() {
    let mut random = Random::new(1, 0);
    for (name, file) in IMAGES {
        let program = Arc::new(Program::load(file, csr::machine()).expect("an image of ours"));
        let answered = confirm(&program, Side::Rx, &octets(&mut random));
        assert_eq!(answered, Some(40), "{name}");
    }
}

#[test]
fn what_is_admitted_of_changed_programs_keeps_to_its_bounds_from_answer_to_answer() {
    let mut random = Random::new(2, 0);
    let mut admitted = 0;
    for (name, file) in IMAGES {
        let (start, length) = code(file);
        let mut changed = 0;
        for _ in 0..60 {
            let mut file = file.to_vec();
            for _ in 0..=random.below(3) {
                let at = start + usize::try_from(random.below(length)).expect("within the file");
                file[at] ^= 1 << random.below(8);
            }
            let Ok(program) = Program::load(&file, csr::machine()) else { continue };
            let program = Arc::new(program);
            for side in [Side::Rx, Side::Tx] {
                changed += u32::from(
                    confirm(&program, side, &octets(&mut random)).is_some_and(|answers| answers > 0),
                );
            }
        }
        assert!(changed > 0, "{name}: none is admitted");
        admitted += changed;
    }
    assert!(admitted > 100, "few are admitted: {admitted}");
}
