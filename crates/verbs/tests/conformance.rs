//! rdma-core's own tests of libibverbs and librdmacm, run over this library.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;

use common::{preloaded, succeeded};

#[test]
fn the_tests_of_rdma_core_pass() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance.py");
    for at in ["127.0.4.60", "::1"] {
        // pyverbs is the system's, and no other interpreter's.
        let mut python = preloaded("/usr/bin/python3", at);
        let output = python.args([script, at]).output().unwrap();
        let how = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = succeeded(output, "conformance.py");
        let failed: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("failed ")).collect();
        assert!(failed.is_empty(), "{failed:?}: {how}");
        let ran = told.lines().find_map(|line| line.strip_prefix("ran ")?.parse::<u32>().ok());
        // Those of what there is not skip themselves.
        assert!(ran.is_some_and(|ran| ran >= 107), "{told}{how}");
    }
}
