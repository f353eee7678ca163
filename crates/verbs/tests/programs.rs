//! Programs of ibverbs-utils and perftest, as distributions compile them, run over this library.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;

use common::{pair, pair_with, preloaded, preloaded_line, roci, succeeded};
use std::process::Command;

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
    // Not a thousand, as they have by default: where cores are busy each waits for the scheduler.
    for (at, line) in [
        ("127.0.0.83", "ibv_rc_pingpong -g 0 -c -n 200"),
        ("127.0.0.84", "ibv_rc_pingpong -g 0 -c -e -n 200"),
        ("127.0.0.85", "ibv_rc_pingpong -g 0 -c -N -n 200"),
        ("127.0.0.86", "ibv_rc_pingpong -g 0 -s 1000000 -n 100"),
        ("127.0.0.87", "ibv_srq_pingpong -g 0 -n 200"),
        ("127.0.0.88", "ibv_ud_pingpong -g 0 -n 200"),
        ("127.0.0.105", "ibv_uc_pingpong -g 0 -c -n 200"),
        ("127.0.0.106", "ibv_uc_pingpong -g 0 -c -e -s 100000 -n 100"),
        ("127.0.0.115", "ibv_rc_pingpong -g 0 -c -o -P -n 200"),
    ] {
        let told = pair(line, at, |_| preloaded_line(line, at));
        assert!(told.contains(" iters in "), "{told}");
    }
}

#[test]
fn what_is_refused_says_why_beside_the_programs_own_words() {
    for (line, said) in [
        ("ibv_uc_pingpong -g 0 -r 40000", "roci-verbs: a queue pair has room for"),
        ("ibv_rc_pingpong -g 0 -r 40000", "asked for were 1 to send and 40000 to receive"),
    ] {
        let output = preloaded_line(line, "127.0.0.102").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{line}: {told}");
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
        // As many as a socket buffer has room for that the process may not enlarge: datagrams that find none are lost.
        ("127.0.0.104", "ib_send_bw -n 40 -c UD --use-srq"),
        ("127.0.0.94", "ib_send_lat -n 200 -s 4096"),
        ("127.0.0.95", "ib_read_bw -n 500"),
        ("127.0.0.96", "ib_atomic_bw -n 500"),
        ("127.0.0.96", "ib_atomic_lat -n 200 -A CMP_AND_SWAP"),
        ("127.0.0.97", "ib_send_lat -n 200 -c UD"),
        ("127.0.0.107", "ib_write_bw -n 500 -c UC"),
        ("127.0.0.108", "ib_write_lat -n 200 -c UC"),
        ("127.0.0.109", "ib_send_bw -n 100 -s 1024 -c UC"),
        ("127.0.0.111", "ib_send_lat -n 200 -c UC -s 4096"),
        ("127.0.0.116", "ib_write_bw -n 500 --odp"),
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
        ("127.0.0.100", "ib_atomic_lat -n 200", "atomic-lat"),
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

/// A device file of the kernel, which UCX looks for and does not open; it goes with this. To make one takes root.
struct DeviceFile {
    path: &'static str,
    has_made: bool,
}

impl DeviceFile {
    fn new() -> Self {
        let path = "/dev/infiniband/uverbs-roci0";
        let has_made = !std::path::Path::new(path).exists();
        if has_made {
            std::fs::create_dir_all("/dev/infiniband").unwrap();
            let made = Command::new("mknod").args(["-m", "666", path, "c", "1", "3"]).status().unwrap();
            assert!(made.success(), "{path} is made, which root may");
        }
        Self { path, has_made }
    }
}

impl Drop for DeviceFile {
    fn drop(&mut self) {
        if self.has_made {
            let _ = std::fs::remove_file(self.path);
            // Others' files may be there.
            let _ = std::fs::remove_dir("/dev/infiniband");
        }
    }
}

#[test]
fn ucx_runs_its_reliable_and_its_unreliable_transport() {
    let _file = DeviceFile::new();
    for (transports, test) in [
        ("rc_verbs,ud_verbs,self", "tag_bw"),
        ("rc_verbs,ud_verbs,self", "ucp_get"),
        ("ud_verbs,self", "tag_lat"),
    ] {
        let line = format!("ucx_perftest -t {test} -n 300 -s 20000 -w 10");
        let at = "127.0.0.101";
        let with = |mut program: Command| {
            program.env("UCX_TLS", transports).env("UCX_UD_VERBS_ETH_DGID_CHECK", "n");
            program
        };
        let told = pair_with(with(preloaded_line(&line, at)), &line, at, |_| with(preloaded_line(&line, at)));
        assert!(told.contains("Final:"), "{told}");
    }
}

#[test]
fn a_path_mtu_that_the_link_has_no_room_for_is_refused_with_both_numbers() {
    // A network of its own, whose loopback is as a link of 1500 octets.
    let script = "ip link set lo mtu 1500 up
        ibv_rc_pingpong -g 0 -n 200 -m 1024 > /dev/null &
        until ibv_rc_pingpong -g 0 -n 200 -m 1024 127.0.0.103; do kill -0 $! || exit; sleep 0.1; done
        wait $!
        ibv_rc_pingpong -g 0 -m 4096 > /dev/null &
        until ibv_rc_pingpong -g 0 -m 4096 127.0.0.103; do kill -0 $! || exit; sleep 0.1; done";
    let mut shell = preloaded("unshare", "127.0.0.103");
    let output =
        shell.args(["--map-root-user", "--net", "timeout", "60", "sh", "-c", script]).output().unwrap();
    let [said, error] = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert_eq!(said.matches(" iters in ").count(), 1, "{said}\n{error}");
    assert!(error.contains("a path MTU of 4096 is above the device's, 1024"), "{error}");
}

#[test]
fn a_program_in_c_has_its_events_held_back_until_enough_have_come_or_the_first_has_waited() {
    let told = compiled("moderation", "127.0.0.112", &[]);
    let seconds = |what: &str| {
        let found = told.lines().find_map(|line| line.strip_prefix(what)?.trim().parse::<f64>().ok());
        found.unwrap_or_else(|| panic!("{what}: {told}"))
    };
    assert!(seconds("period") >= 0.06, "{told}");
    assert!(told.ends_with("done\n"), "{told}");
}

#[test]
fn a_program_in_c_gives_its_peers_the_rights_and_its_packets_the_class_that_it_says() {
    assert_eq!(compiled("classes", "127.0.0.113", &["127.0.0.114"]), "done\n");
}

/// What a program in C of these tests says, compiled and run at an address.
fn compiled(name: &str, at: &str, arguments: &[&str]) -> String {
    let source = format!("{}/tests/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = std::env::temp_dir().join(format!("roci-{name}-{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-o"]).arg(&program).args([&source, "-libverbs"]);
    succeeded(compiler.output().unwrap(), "cc");
    let output = preloaded(program.to_str().unwrap(), at).args(arguments).output().unwrap();
    std::fs::remove_file(&program).unwrap();
    succeeded(output, name)
}
