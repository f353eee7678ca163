//! How long the recovery programs are and what they keep for a queue pair (Tonic, Table 3).
//!
//! Lines are those of code: without comments, blank lines and tests. What several programs share counts for each. RoCE with
//! DCQCN is go-back-N in Rust and DCQCN in C, whose state is the words of its context.

use super::super::bench::Bench;
use super::super::{FigureError, Measured};
use roci_control::program::Options;
use roci_control::{Image, dcqcn, ndp as ndp_law};
use roci_transport::delivery::{go_back_n, irn, ndp, newreno, reno, sack, srnic};

macro_rules! program {
    ($file:literal) => {
        include_str!(concat!("../../../../transport/src/delivery/", $file))
    };
}

macro_rules! law {
    ($file:literal) => {
        include_str!(concat!("../../../../control/src/", $file))
    };
}

/// A program: what its rows are called, its sources, and the octets of its state.
type Program = (&'static str, &'static str, &'static [&'static str], usize);

const CONGESTION: &str = program!("congestion.rs");
const PROGRAMS: [Program; 8] = [
    ("reno_lines", "reno_state", &[program!("reno.rs"), CONGESTION], size_of::<reno::Reno>()),
    ("newreno_lines", "newreno_state", &[program!("newreno.rs"), CONGESTION], size_of::<newreno::NewReno>()),
    ("sack_lines", "sack_state", &[program!("sack.rs"), CONGESTION], size_of::<sack::Sack>()),
    (
        "ndp_lines",
        "ndp_state",
        &[program!("ndp.rs"), law!("ndp.rs")],
        size_of::<ndp::Ndp>() + size_of::<ndp_law::State>(),
    ),
    ("irn_lines", "irn_state", &[program!("irn.rs")], size_of::<irn::Irn>()),
    ("srnic_lines", "srnic_state", &[program!("srnic.rs")], size_of::<srnic::Srnic>()),
    ("roce_lines", "roce_state", &[program!("go_back_n.rs")], size_of::<go_back_n::GoBackN>()),
    ("dcqcn_lines", "dcqcn_state", &[law!("dcqcn.rs"), law!("dcqcn/alpha.rs")], size_of::<dcqcn::State>()),
];

const DCQCN_IN_C: &str = include_str!("../../../../../firmware/dcqcn.c");
const DCQCN_ELF: &[u8] = include_bytes!("../../../../../firmware/dcqcn.elf");

/// Lines of C: what is left of them without comments.
fn lines_of_c(source: &str) -> usize {
    let mut rest = source;
    let mut code = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Octets of the context of a program.
///
/// # Panics
/// When it is no program: those of the repository are.
fn context(elf: &[u8]) -> usize {
    let image = Image::new("dcqcn", elf, &Options::default()).expect("a program of the repository");
    image.fields().len() * 4
}

/// Lines of code before the tests.
fn lines(source: &str) -> usize {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.count()
}

/// Table 3.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
#[expect(clippy::unnecessary_wraps, reason = "as all figures")]
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    for (of_lines, of_state, sources, state) in PROGRAMS {
        let total: usize = sources.iter().map(|source| lines(source)).sum();
        measured.each(of_lines, bench.seeds(), |_| total as f64);
        measured.each(of_state, bench.seeds(), |_| state as f64);
    }
    let roce = lines(program!("go_back_n.rs")) + lines_of_c(DCQCN_IN_C);
    measured.each("roce_dcqcn_lines", bench.seeds(), |_| roce as f64);
    let state = size_of::<go_back_n::GoBackN>() + context(DCQCN_ELF);
    measured.each("roce_dcqcn_state", bench.seeds(), |_| state as f64);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_lines() {
        let source =
            "//! What.\n\n/// Doc.\nfn f() {\n    // Why.\n    g();\n}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(lines(source), 3);
        assert_eq!(lines_of_c("/* What,\n   and why. */\nint f() {\n\n    g(); /* so */\n}\n/* end */\n"), 3);
    }
}
