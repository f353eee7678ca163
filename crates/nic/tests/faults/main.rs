//! Exactly once, in order, or an error completion: over random topologies, faults, loads and NICs.
//!
//! A failure prints the line that replays it. `PROPTEST_CASES` asks for more cases, `PROPTEST_RNG_SEED` for others.

mod case;
mod check;
mod load;
mod network;
mod run;

use case::{Case, any_case};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use run::{NICS, run};

/// As many cases as a few seconds allow, the same ones each time; the environment asks for more or others.
fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    let asks = |name: &str| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if asks("PROPTEST_CASES") { given.cases } else { 64 },
        rng_seed: if asks("PROPTEST_RNG_SEED") { given.rng_seed } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..given
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_message_completes_once_in_order_or_in_error(case in any_case()) {
        run(&case, NICS[0]);
        run(&case, NICS[1]);
    }

    #[test]
    fn a_deferred_law_and_a_slow_host_change_nothing_of_that(case in any_case()) {
        let case = Case { late_receives: 1, ..case };
        run(&case, NICS[2]);
        run(&case, NICS[3]);
    }
}

/// Cases that failed once, and the one that the environment names.
#[test]
fn replay() {
    let given = std::env::var("ROCI_CASE").ok();
    for line in given.as_deref().into_iter().chain(FOUND.iter().copied()) {
        let case: Case = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        for nic in NICS {
            run(&case, nic);
        }
    }
}

/// Cases that failed once, as they were printed.
const FOUND: &[&str] = &["seed=1"];
