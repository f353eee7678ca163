//! Programs of ibverbs-utils and perftest, as distributions compile them, run over this library.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;

use common::{pair, preloaded, roci, succeeded};

#[test]
fn ibv_devinfo_sees_an_address_as_a_device_that_speaks_roce() {
    let mut info = preloaded("ibv_devinfo", "127.0.0.82");
    let told = succeeded(info.arg("-v").output().unwrap(), "ibv_devinfo");
    for said in ["roci0", "PORT_ACTIVE (4)", "Ethernet", "::ffff:127.0.0.82, RoCE v2", "ATOMIC_HCA"] {
        assert!(told.contains(said), "`{said}` in\n{told}");
    }
}

#[test]
fn the_ping_pongs_of_libibverbs_run_by_polling_by_events_by_lists_and_by_calls() {
    for (at, line) in [
        ("127.0.0.83", "ibv_rc_pingpong -g 0 -c"),
        ("127.0.0.84", "ibv_rc_pingpong -g 0 -c -e"),
        ("127.0.0.85", "ibv_rc_pingpong -g 0 -c -N"),
        ("127.0.0.86", "ibv_rc_pingpong -g 0 -s 1000000 -n 100"),
        ("127.0.0.87", "ibv_srq_pingpong -g 0"),
        ("127.0.0.88", "ibv_ud_pingpong -g 0 -n 200"),
    ] {
        let told = pair(line, at, |_| preloaded_line(line, at));
        assert!(told.contains(" iters in "), "{told}");
    }
}

#[test]
fn the_tests_of_perftest_run_against_themselves() {
    for (at, line) in [
        ("127.0.0.89", "ib_write_bw -n 500 --report_gbits"),
        ("127.0.0.90", "ib_write_bw -n 500 -q 4 -b"),
        ("127.0.0.91", "ib_write_lat -n 200"),
        ("127.0.0.92", "ib_send_bw -n 500 -e"),
        ("127.0.0.93", "ib_send_bw -n 500 --use-srq"),
        ("127.0.0.94", "ib_send_lat -n 200 -s 4096"),
        ("127.0.0.95", "ib_read_bw -n 500"),
        ("127.0.0.96", "ib_atomic_bw -n 500"),
        ("127.0.0.97", "ib_send_lat -n 200 -c UD"),
    ] {
        let told = pair(line, at, |_| preloaded_line(line, at));
        assert!(told.contains("#bytes"), "{told}");
    }
}

#[test]
fn perftest_over_this_library_talks_to_roci_perf() {
    for (at, theirs, ours) in [
        ("127.0.0.98", "ib_write_bw -n 500", "write-bw"),
        ("127.0.0.99", "ib_send_lat -n 200", "send-lat"),
        ("127.0.0.100", "ib_read_bw -n 500", "read-bw"),
    ] {
        let count = theirs.split(' ').nth(2).unwrap();
        let told = pair(theirs, at, |_| {
            let mut client = roci();
            client.args(["perf", ours, "-n", count, "-d", at]);
            client
        });
        assert!(told.contains("#bytes"), "{told}");
    }
}

/// A line of a program and its arguments.
fn preloaded_line(line: &str, at: &str) -> std::process::Command {
    let mut words = line.split(' ');
    let mut program = preloaded(words.next().unwrap(), at);
    program.args(words);
    program
}
