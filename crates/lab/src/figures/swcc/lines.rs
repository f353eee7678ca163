//! How many lines of C the laws take (Table 3): comments, blank lines and all, as clang-format lays them out in 100
//! columns.

use super::super::bench::Bench;
use super::super::statistics::count;
use super::super::{FigureError, Measured};

/// The programs.
const PROGRAMS: [(&str, &str); 5] = [
    ("dcqcn", include_str!("../../../../../firmware/dcqcn.c")),
    ("timely", include_str!("../../../../../firmware/timely.c")),
    ("hpcc", include_str!("../../../../../firmware/hpcc.c")),
    ("swift", include_str!("../../../../../firmware/swift.c")),
    ("homa", include_str!("../../../../../firmware/homa.c")),
];

pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for (name, source) in PROGRAMS {
        let lines = count(source.lines().count());
        measured.add(name, vec![lines; bench.seeds().len()]);
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_no_file_but_its_own() {
        for (name, source) in PROGRAMS {
            assert!(!source.contains("#include"), "{name}: count what it includes, unless two laws do");
            assert!(source.lines().all(|line| line.chars().count() <= 100), "{name} is not in 100 columns");
        }
    }
}
