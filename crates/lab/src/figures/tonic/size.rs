//! How long the recovery programs are and what they keep for a queue pair (Tonic, Table 3).
//!
//! Lines are those of code: without comments, blank lines and tests. What several programs share counts for each.

use super::super::bench::Bench;
use super::super::{FigureError, Measured};
use roci_control::dcqcn;
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
    ("ndp_lines", "ndp_state", &[program!("ndp.rs")], size_of::<ndp::Ndp>()),
    ("irn_lines", "irn_state", &[program!("irn.rs")], size_of::<irn::Irn>()),
    ("srnic_lines", "srnic_state", &[program!("srnic.rs")], size_of::<srnic::Srnic>()),
    ("roce_lines", "roce_state", &[program!("go_back_n.rs")], size_of::<go_back_n::GoBackN>()),
    ("dcqcn_lines", "dcqcn_state", &[law!("dcqcn.rs"), law!("dcqcn/alpha.rs")], size_of::<dcqcn::State>()),
];

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
    }
}
