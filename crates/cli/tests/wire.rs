//! `roci perf` and `roci ping` as a user meets them, both ends of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::net::Ipv6Addr;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A program with a loop that nothing bounds.
const FAULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../control/tests/images/faults.elf");

fn roci(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roci"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a client until it finds its server there.
fn client(arguments: &[&str]) -> Output {
    let mut near = ended(roci(arguments).spawn().unwrap(), "the client");
    for _ in 0..100 {
        let is_early = text(&near).contains("cannot connect") || text(&near).contains("rejected");
        if !is_early {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        near = ended(roci(arguments).spawn().unwrap(), "the client");
    }
    near
}

/// Runs a server and a client.
fn both(server: &[&str], arguments: &[&str]) -> [Output; 2] {
    let mut far = roci(server).spawn().unwrap();
    let near = client(arguments);
    if !near.status.success() {
        far.kill().unwrap();
    }
    let far = ended(far, "the server");
    assert!(far.status.success() && near.status.success(), "{}\n{}", text(&far), text(&near));
    [far, near]
}

/// Waits for a program's end, a minute at most. What these say fits the pipes.
fn ended(mut program: Child, which: &str) -> Output {
    for _ in 0..6000 {
        if program.try_wait().unwrap().is_some() {
            return program.wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    program.kill().unwrap();
    panic!("{which} does not end: {}", text(&program.wait_with_output().unwrap()));
}

#[test]
fn both_ends_of_a_test_print_the_same_result() {
    let options =
        ["perf", "read-bw", "--it", "50", "-s", "64K", "-q", "2", "-p", "19515", "--json", "--win", "64K"];
    let server = [&options[..], &["-d", "127.0.0.42"]].concat();
    let client = [&options[..], &["127.0.0.42"]].concat();
    let [far, near] = both(&server, &client).map(|it| serde_json::from_slice::<Value>(&it.stdout).unwrap());
    assert_eq!((&far["role"], &near["role"]), (&"server".into(), &"client".into()));
    assert_eq!((&near["rows"][0]["iterations"], &near["rows"][0]["bytes"]), (&100.into(), &65_536.into()));
    assert_eq!(near["connection"]["peer"], "127.0.0.42");
    assert_eq!((&near["command"], &near["size"]), (&"read-bw".into(), &65_536.into()));
    assert_eq!((&near["control"], &near["link_bps"]), (&"dcqcn".into(), &100_000_000_000_u64.into()));
    assert_eq!((&near["tx_depth"], &near["error"]), (&128.into(), &Value::Null));
    assert_eq!(near["counted"]["cnps"], 0);
    let rate = |value: &Value| value["rows"][0]["average_bps"].as_f64().unwrap();
    assert!((rate(&far) / rate(&near) - 1.0).abs() < 1e-9);
}

#[test]
fn a_server_names_a_stranger_on_stderr_and_waits_on() {
    let options = ["perf", "write-bw", "-n", "20", "-p", "19535", "--json"];
    let server = [&options[..], &["-d", "127.0.0.74"]].concat();
    let far = roci(&server).spawn().unwrap();
    let visit = || std::net::TcpStream::connect(("127.0.0.74", 19535)).ok();
    let stranger = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        visit()
    });
    let address = stranger.unwrap().local_addr().unwrap();
    let near = ended(roci(&[&options[..], &["127.0.0.74"]].concat()).spawn().unwrap(), "the client");
    let far = ended(far, "the server");
    assert!(near.status.success() && far.status.success(), "{}\n{}", text(&near), text(&far));
    let told = String::from_utf8_lossy(&far.stderr).into_owned();
    assert_eq!(told, format!("{address} is no client: it said nothing and left; still waiting for one\n"));
    assert!(serde_json::from_slice::<Value>(&far.stdout).is_ok());
}

#[test]
fn the_peak_is_looked_for_up_to_so_many_messages_of_one_queue_pair_and_told_to_be_missing_beyond() {
    for (more, has_peak, why) in [
        (&["-n", "5000", "-q", "5"][..], true, ""),
        (&["-n", "20001"], false, "the peak is not measured in this run: it is of at most 20000 messages"),
        (&["-D", "1"], false, "the peak is not measured in this run: a test that lasts a time (-D)"),
        (&["-n", "50", "-N"], false, ""),
    ] {
        let options = [&["perf", "write-bw", "-s", "64", "-p", "19543"], more].concat();
        let server = [&options[..], &["-d", "127.0.0.75"]].concat();
        let client = [&options[..], &["127.0.0.75"]].concat();
        let [far, near] = both(&[&server[..], &["--json"]].concat(), &[&client[..], &["--json"]].concat());
        for end in [&far, &near] {
            let told: Value = serde_json::from_slice(&end.stdout).unwrap();
            let row = &told["rows"][0];
            assert_eq!(row["peak_bps"].as_f64().is_some(), has_peak, "{more:?} {row}");
            assert!(has_peak || row["peak_bps"].is_null(), "{more:?} {row}");
            if has_peak {
                assert!(row["peak_bps"].as_f64() >= row["average_bps"].as_f64().map(|rate| rate * 0.99));
            }
            let wrong = String::from_utf8_lossy(&end.stderr);
            assert_eq!(wrong.contains("the peak is not measured"), !why.is_empty(), "{more:?} {wrong}");
            assert!(wrong.contains(why), "{more:?} {wrong}");
        }
    }
    let options = ["perf", "write-bw", "-s", "64", "-p", "19543", "-n", "20001"];
    let [_, near] =
        both(&[&options[..], &["-d", "127.0.0.75"]].concat(), &[&options[..], &["127.0.0.75"]].concat());
    let row = String::from_utf8_lossy(&near.stdout)
        .lines()
        .find(|line| line.starts_with(" 64 "))
        .unwrap()
        .to_owned();
    assert_eq!(row.split_whitespace().nth(2), Some("0.00"), "{row}");
}

#[test]
fn a_limit_that_is_missed_ends_a_test_with_1_and_one_figure_is_printed_alone() {
    let options = ["perf", "write-bw", "-n", "50", "--report_gbits", "-p", "19549"];
    let run = |more: &[&str]| {
        let far = roci(&[&options[..], &["-d", "127.0.0.77"]].concat()).spawn().unwrap();
        let near = client(&[&options[..], more, &["127.0.0.77"]].concat());
        assert!(ended(far, "the server").status.success());
        near
    };
    for (more, missed) in [
        (&["-w", "1e-9", "-y", "1e-9", "--output", "bandwidth"][..], None),
        (
            &["-w", "1e9", "--output", "bandwidth"],
            Some(" Gb/s of 65536 octets each are below the limit, -w 1000000000\n"),
        ),
        (
            &["-y", "1e9", "--output", "message_rate"],
            Some(" million messages a second of 65536 octets each are below the limit, -y "),
        ),
    ] {
        let near = run(more);
        let figure: f64 = String::from_utf8_lossy(&near.stdout).trim().parse().unwrap();
        assert!(figure > 0.0, "{more:?}");
        assert_eq!(near.status.code(), Some(i32::from(missed.is_some())), "{more:?}");
        let told = String::from_utf8_lossy(&near.stderr);
        assert_eq!(told.contains(missed.unwrap_or("below")), missed.is_some(), "{more:?}: {told}");
    }
    let near = run(&["-w", "1e9", "--json"]);
    let told: Value = serde_json::from_slice(&near.stdout).unwrap();
    assert!(
        told["error"].as_str().unwrap().contains("below the limit") && told["rows"][0].is_object(),
        "{told}"
    );
    assert_eq!(near.status.code(), Some(1));
}

#[test]
fn a_table_has_perftests_columns() {
    let options = ["perf", "send-lat", "-n", "20", "-p", "19516"];
    let server = [&options[..], &["-d", "127.0.0.43"]].concat();
    let [_, near] = both(&server, &[&options[..], &["127.0.0.43"]].concat());
    let near = text(&near);
    assert!(near.contains("t_typical[usec]") && near.contains("99.9% percentile[usec]"), "{near}");
    let row = near.lines().find(|line| line.starts_with(" 2 ")).unwrap();
    assert_eq!(row.split_whitespace().count(), 9);
    assert_eq!(row.split_whitespace().nth(1), Some("20"));
}

#[test]
fn times_of_messages_are_printed_before_their_row_and_are_part_of_the_json() {
    let options = ["perf", "send-lat", "-n", "20", "-p", "19519", "-I", "0", "-H"];
    let server = [&options[..], &["-d", "127.0.0.48"]].concat();
    let [_, near] = both(&server, &[&options[..], &["127.0.0.48"]].concat());
    let near = text(&near);
    let lines: Vec<&str> = near.lines().skip_while(|line| *line != "#, usec").collect();
    let times: Vec<f64> =
        lines[1..20].iter().map(|line| line.split(", ").nth(1).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 0.0, "{near}");
    assert!(lines[20].starts_with(" 2 "), "{near}");
    let options = ["perf", "read-lat", "-n", "20", "-p", "19519", "-U", "--json"];
    let server = [&options[..], &["-d", "127.0.0.48"]].concat();
    let [_, near] = both(&server, &[&options[..], &["127.0.0.48"]].concat());
    let near: Value = serde_json::from_slice(&near.stdout).unwrap();
    assert_eq!(near["rows"][0]["times_us"].as_array().map(Vec::len), Some(19));
}

#[test]
fn lists_completions_types_of_service_and_rates_are_asked_for_as_of_perftest() {
    let asked = [
        "-Q",
        "8",
        "-l",
        "4",
        "-I",
        "64",
        "--tclass",
        "32",
        "-S",
        "3",
        "--rate_limit",
        "2000",
        "--rate_units",
        "p",
    ];
    let options =
        [&["perf", "write-bw", "-n", "200", "-s", "64", "-p", "19520", "--json"][..], &asked].concat();
    let server = [&options[..], &["-d", "127.0.0.49"]].concat();
    let [_, near] = both(&server, &[&options[..], &["127.0.0.49"]].concat());
    let near: Value = serde_json::from_slice(&near.stdout).unwrap();
    let rate = near["rows"][0]["messages_per_s"].as_f64().unwrap();
    assert!(rate > 500.0 && rate < 2000.0 * 200.0 / 196.0 * 1.01, "{rate}");
}

#[test]
fn a_test_whose_program_was_stopped_says_so() {
    // It lets nothing go, and hears of nothing.
    let options = ["perf", "write-bw", "-n", "50", "-p", "19521"];
    let server = [&options[..], &["-d", "127.0.0.50"]].concat();
    let image = concat!(env!("CARGO_MANIFEST_DIR"), "/../control/tests/images/refuses.elf");
    let refuses = ["--control", image, "127.0.0.50"];
    let [_, near] = both(&server, &[&options[..], &refuses].concat());
    let near = text(&near);
    assert!(near.contains("refuses.elf failed with 1 queue pair, and its fallback took over"), "{near}");
    assert!(near.contains("send at ") && near.contains("refuses.c:"), "{near}");
    let qpn = near.split_once("local address: QPN ").unwrap().1.split(' ').next().unwrap();
    assert!(near.contains(&format!(" of queue pair {qpn}, ")), "as the table has it: {near}");
    let [_, near] = both(&server, &[&options[..], &["--json"], &refuses].concat());
    let near: Value = serde_json::from_slice(&near.stdout).unwrap();
    assert_eq!(near["program"]["failed_queue_pairs"], 1, "{near}");
}

#[test]
fn pings_are_shown_and_counted() {
    let server = ["ping", "-s", "-a", "127.0.0.45", "-v"];
    let client = ["ping", "-c", "-a", "127.0.0.45", "-I", "127.0.0.44", "-C", "3", "-v", "-V"];
    let [far, near] = both(&server, &client).map(|it| text(&it));
    assert!(near.contains("ping data: rdma-ping-2: C") && near.contains("3 pings done"), "{near}");
    assert!(far.contains("server ping data: rdma-ping-0: A"), "{far}");
}

#[test]
fn a_program_controls_congestion_where_one_is_named() {
    let control = ["--control", "firmware/dcqcn.elf,link=25Gb/s"];
    let options = [&["perf", "write-bw", "-n", "50", "-p", "19518", "--json"][..], &control].concat();
    let server = [&options[..], &["-d", "127.0.0.47"]].concat();
    let client = [&options[..], &["127.0.0.47"]].concat();
    let [_, near] = both(&server, &client).map(|it| serde_json::from_slice::<Value>(&it.stdout).unwrap());
    assert_eq!(near["rows"][0]["iterations"], 50);
}

#[test]
fn a_law_that_one_end_alone_was_told_is_shown_at_both() {
    let server = ["perf", "write-bw", "-n", "20", "-p", "19539", "-d", "127.0.0.66"];
    let client = ["perf", "write-bw", "-n", "20", "-p", "19539", "127.0.0.66"];
    let dctcp = ["--control", "dctcp"];
    let [far, near] = both(&server, &[&client[..], &dctcp].concat()).map(|it| text(&it));
    let line =
        |text: &str| text.lines().find_map(|line| Some(line.strip_prefix(" Control        : ")?.to_owned()));
    let both_ends = "at the other end; say --control at both for the same";
    assert_eq!(line(&near), Some(format!("dctcp, and dcqcn {both_ends}")));
    assert_eq!(line(&far), Some(format!("dcqcn, and dctcp {both_ends}")));
    let [far, near] = both(&[&server[..], &["--control", "dcqcn"]].concat(), &client).map(|it| text(&it));
    assert_eq!((line(&near), line(&far)), (None, None), "they are the same");
    let program = ["--control", "firmware/dcqcn.elf"];
    let json = ["--json"];
    let [far, near] = both(&[&server[..], &json].concat(), &[&client[..], &json, &program].concat())
        .map(|it| serde_json::from_slice::<Value>(&it.stdout).unwrap()["connection"]["peer_control"].clone());
    assert_eq!((near, far), ("dcqcn".into(), "program".into()));
}

#[test]
fn timely_gets_on_with_the_times_that_the_guide_gives_it() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/perf.md");
    let page = std::fs::read_to_string(page).unwrap();
    let control = page.split('`').find(|words| words.starts_with("timely,t_low=")).unwrap();
    let options = ["perf", "write-bw", "-D", "2", "-p", "19532", "--json", "--control", control];
    let server = [&options[..], &["-d", "127.0.0.73"]].concat();
    let [_, near] = both(&server, &[&options[..], &["127.0.0.73"]].concat());
    let near: Value = serde_json::from_slice(&near.stdout).unwrap();
    // Of some 10 Gb/s; without them it stays below 0.4.
    let rate = near["rows"][0]["average_bps"].as_f64().unwrap();
    assert!(rate > 1e9, "{rate}");
}

/// A link-local address of this host with its interface, if it has any.
fn link_local() -> Option<String> {
    let known = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    known.lines().find_map(|line| {
        let [address, _, _, scope, flags, interface] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let address = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
        // Not one that is tentative, or turned out to be another's.
        let is_usable = u8::from_str_radix(flags, 16).ok()? & 0x48 == 0;
        (scope == "20" && is_usable).then(|| format!("{address}%{interface}"))
    })
}

#[test]
fn a_link_local_address_is_named_with_its_interface() {
    let Some(name) = link_local() else { return };
    for test in ["write-bw", "send-lat"] {
        let options = ["perf", test, "-n", "500", "-p", "19533", "--json"];
        let server = [&options[..], &["-d", &name]].concat();
        let [_, near] = both(&server, &[&options[..], &[&name]].concat());
        let near: Value = serde_json::from_slice(&near.stdout).unwrap();
        assert_eq!(near["rows"][0]["iterations"], 500);
        assert_eq!(near["connection"]["peer"], name.split('%').next().unwrap());
    }
}

#[test]
fn a_link_local_address_without_its_interface_is_an_error_that_says_so() {
    for more in [&["-p", "19534"][..], &["-R"]] {
        let output = roci(&[&["perf", "write-bw", "fe80::1"], more].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output).contains("wants the interface behind it, as in fe80::1%eth0"),
            "{}",
            text(&output)
        );
    }
    let output = roci(&["perf", "write-bw", "-d", "fe80::1%nosuch0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("no interface `nosuch0` has the address fe80::1"), "{}", text(&output));
}

#[test]
fn wrong_requests_exit_with_2_and_say_why() {
    let wrong: [(&[&str], &str); 63] = [
        (&["switch", "tap:r0", "tap:r1", "--set", "nic.ets={ 3 = 60, 0 = 30 }"], "make 90 percent"),
        (&["switch", "tap:r%d", "tap:r1"], "`r%d` is no device's name"),
        (&["switch", "tap:r0"], "2 values required"),
        (&["switch", "tap:r0", "tap:a-name-that-is-too-long"], "1 to 15 letters; a port is tap:r0, or eth1"),
        (&["switch", "tap:r0", "tap:r1", "r0"], "port r0 is named twice"),
        (&["switch", "tap:r0", "tap:r1@0b/s"], "a link without a rate carries nothing"),
        (&["switch", "nosuch0", "nosuch1"], "port nosuch0: there is no such device; `tap:NAME` creates one"),
        (&["switch", "tap:r0", "tap:r1", "--loss", "2"], "at most 1"),
        (&["switch", "tap:r0", "tap:r1", "--like", "nosuch.toml"], "name a scenario file"),
        (&["switch", "tap:r0", "tap:r1", "--set", "switch.ecn.kmim=1KB"], "kmin"),
        (
            &["switch", "tap:r0", "tap:r1", "--set", "nic.mtu=512"],
            "--set nic.mtu: a switch on a real network has the keys of [switch], and nic.ets",
        ),
        (&["switch", "tap:r0", "tap:r1", "--set", "switch.trimming=true"], "it cannot trim packets"),
        (
            &["switch", "tap:r0", "tap:r1", "--set", "switch.buffer=10KB"],
            "make `switch.pfc.headroom` smaller",
        ),
        (&["ctl", "--socket", "nosuch", "set", "all", "rai", ""], "it is empty; a value is 10Mb/s"),
        (&["ctl", "--socket", "nosuch", "get", "a b"], "it is one word"),
        (&["ctl", "--socket", "nosuch", "watch", "--every", "0s"], "at least 1ms"),
        (&["dash"], "--socket or ROCI_CONTROL is to name a control socket"),
        (&["dash", "--socket", "a", "--socket", "a"], "--socket a is named twice, and would count twice"),
        (&["dash", "--socket", "a", "--every", "1ms"], "at least 10ms"),
        (&["dash", "--socket", "a", "--json"], "--once"),
        (&["ctl", "--socket", "nosuch", "hops", "many"], "it is no number of a queue pair"),
        (&["perf", "write-lat", "--hop-rate", "1Gb/s,100Mb/s"], "in the order of the hops of one way"),
        (
            &["perf", "send-bw", "-b", "--hop-rate", "1Gb/s,100Mb/s"],
            "one for all, or run a test of bandwidth without -b",
        ),
        (
            &["perf", "write-bw", "--hop-rate", "1Gb/s,1Gb/s,1Gb/s,1Gb/s,1Gb/s,1Gb/s"],
            "a packet tells of five hops at most",
        ),
        (&["perf", "write-bw", "--control", "nosuch"], "nscc, hpcc, powertcp, or a program's file"),
        (&["perf", "write-bw", "--control", "dcqcm"], "there is no law"),
        (&["perf", "write-bw", "--control", "firmware/homa.elf"], "needs"),
        (&["perf", "write-bw", "--control", "hpcc", "--recovery", "irn"], "leave --recovery out"),
        (&["perf", "write-bw", "--recovery", "ndp"], "no network trims"),
        (&["perf", "read-bw", "--control", "hpcc"], "controls WRITEs and SENDs"),
        (&["switch", "tap:r0", "tap:r1", "--int-dscp", "9"], "switch.int=true"),
        (
            &["perf", "write-bw", "--control", "dcqcn.elf"],
            "there is no such file here; build it with `roci program build`, or name one of `",
        ),
        (&["perf", "write-bw", "--control", FAULTS], "/faults.elf` says more, and what to do"),
        (&["perf", "atomic-bw", "-s", "4"], "atomics have 8 octets"),
        (&["perf", "write-lat", "-q", "2"], "one queue pair"),
        (&["perf", "write-bw", "-m", "1500"], "an MTU is"),
        (&["perf", "write-lat", "-Q", "2"], "one message at a time"),
        (&["perf", "write-bw", "-I", "300"], "at most 256"),
        (&["perf", "write-bw", "-T", "3"], "ECN"),
        (&["perf", "write-bw", "-H"], "tests of latency"),
        (&["perf", "write-bw", "--rate_limit", "-1"], "rate"),
        (&["perf", "write-bw", "--rate_units", "g"], "--rate_limit"),
        (&["perf", "write-bw", "--rate_limit", "1", "--rate_limit_type", "HW"], "no NIC beneath"),
        (
            &["perf", "write-bw", "-d", "mlx5_0"],
            "no interface `mlx5_0` has an address; this host has lo (127.0.0.1)",
        ),
        (&["perf", "write-bw", "-s", "4X"], "64K"),
        (&["perf", "write-bw", "-s", "2048M"], "is not in 1..=1073741824"),
        (&["perf", "write-bw", "-n", "4"], "the two longest times do not count"),
        (&["perf", "write-bw", "10.0.0.1", "--run_infinitely"], "--run_infinitely is not there: -D SECONDS"),
        (&["perf", "write-bw", "-z", "10.0.0.1"], "--com_rdma_cm (-z) is not there: -R"),
        (&["perf", "read-bw", "-w", "0", "10.0.0.1"], "a limit is a number above 0"),
        (&["perf", "read-lat", "-y", "5", "10.0.0.1"], "-w and -y are limits of tests of bandwidth"),
        (&["perf", "read-lat", "--output", "bandwidth"], "--output of this test is latency"),
        (&["perf", "read-bw", "--out_json"], "--json > FILE"),
        (&["ping"], "--server or --client: `roci ping -s -a ADDRESS` waits there"),
        (&["ctl", "get"], "--socket or ROCI_CONTROL"),
        (&["ping", "-c"], "--address"),
        (&["ping", "-s", "-p", "0"], "0 is not in 1..=65535"),
        (&["perf", "write-bw", "-p", "0"], "0 is not in 1..=65535"),
        (&["perf", "write-bw", "--window", "512"], "512 is not in 1024..=1073741824"),
        // Abbreviated, and of two options.
        (&["perf", "write-bw", "--dur", "0"], "'--duration <SECONDS>'"),
        (&["perf", "write-bw", "--run_inf"], "--run_infinitely is not there: -D SECONDS"),
        (&["perf", "write-bw", "--inline", "64"], "a similar argument exists: '--inline_size'"),
        (&["perf", "write-bw", "--mmap-of"], "'--mmap-offset"),
    ];
    for (arguments, why) in wrong {
        let output = roci(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output).contains(why), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn ends_of_different_tests_exit_with_2_and_name_both() {
    for (options, why) in [
        (&["-p", "19530"][..], "the server was given `write-bw` and the client `write-lat`"),
        (&["-p", "19531", "-R"], "the server was given `write-bw` and the client `write-lat`"),
    ] {
        let mut server =
            roci(&[&["perf", "write-bw", "-d", "127.0.0.71"], options].concat()).spawn().unwrap();
        let client = [&["perf", "write-lat", "127.0.0.71", "-d", "127.0.0.72"], options].concat();
        let mut near = ended(roci(&client).spawn().unwrap(), "the client");
        for _ in 0..100 {
            if near.status.code() == Some(2) || server.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            near = ended(roci(&client).spawn().unwrap(), "the client");
        }
        for end in [near, ended(server, "the server")] {
            assert_eq!(end.status.code(), Some(2), "{}", text(&end));
            assert!(text(&end).contains(why), "{}", text(&end));
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_of_the_run() {
    let output = roci(&["perf", "write-bw", "127.0.0.46", "-p", "19517"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cannot connect to 127.0.0.46, port 19517"), "{}", text(&output));
    assert!(text(&output).contains("or it is busy with another client"), "{}", text(&output));
}

#[test]
fn why_a_test_failed_is_in_its_json_with_what_was_counted() {
    let output = roci(&["perf", "write-bw", "127.0.0.46", "-p", "19517", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = told["error"].as_str().unwrap();
    assert!(error.starts_with("cannot connect to 127.0.0.46"), "{told}");
    assert_eq!((&told["command"], &told["counted"]["packets"]), (&"write-bw".into(), &0.into()));
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim_end(), error);
}

#[test]
fn a_law_with_the_times_of_a_nic_is_run_with_a_word_on_that() {
    let told = |control: &str| {
        let line = ["perf", "write-bw", "127.0.0.46", "-p", "19517", "--control", control];
        text(&roci(&line).output().unwrap())
    };
    for (control, target) in [
        ("timely", "t_low"),
        ("swift", "base_target"),
        ("timely,delta=1Gb/s", "t_low"),
        ("firmware/timely.elf", "t_low"),
        ("firmware/swift.elf", "base_target"),
        ("theta-powertcp", "base_rtt"),
    ] {
        assert!(told(control).contains(&format!("it crawls: add {target}=…")), "{}", told(control));
    }
    for control in
        ["dcqcn", "timely,t_low=10ms,t_high=60ms", "firmware/dcqcn.elf", "firmware/timely.elf,t_low=10ms"]
    {
        assert!(!told(control).contains("it crawls"), "{}", told(control));
    }
}

#[test]
fn a_law_that_hears_nothing_of_read_data_is_run_with_a_word_on_that() {
    let told = |test: &str, more: &[&str]| {
        let line = [&["perf", test, "127.0.0.46", "-p", "19518", "--control"], more].concat();
        text(&roci(&line).output().unwrap())
    };
    let unheld = "go-back-n acknowledges no READ data: nothing holds them back";
    for control in ["swift", "timely,t_low=10ms", "dctcp", "nscc", "theta-powertcp", "firmware/swift.elf"] {
        for test in ["read-bw", "read-lat"] {
            assert!(told(test, &[control]).contains(unheld), "{control}: {}", told(test, &[control]));
        }
    }
    for (test, more) in [
        ("write-bw", &["dctcp"][..]),
        ("read-bw", &["dctcp", "--recovery", "irn"]),
        ("read-bw", &["dcqcn"]),
        ("read-bw", &["firmware/dcqcn.elf"]),
    ] {
        assert!(!told(test, more).contains(unheld), "{more:?}: {}", told(test, more));
    }
}

#[test]
fn the_socket_of_ctl_stands_before_or_behind_what_is_asked() {
    for line in [["ctl", "get", "--socket", "/nosuch/roci"], ["ctl", "--socket", "/nosuch/roci", "get"]] {
        let output = roci(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("no endpoint serves /nosuch/roci"), "{}", text(&output));
    }
}

#[test]
fn nobody_who_answers_a_ping_is_told_with_how_to_start_one() {
    // The client itself is at the address of the second, and rejects.
    for (address, source) in [("127.0.0.75", "127.0.0.76"), ("127.0.0.76", "127.0.0.76")] {
        let output = roci(&["ping", "-c", "-a", address, "-I", source, "-C", "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output).contains("-s -a 127.0.0."), "{}", text(&output));
    }
}

#[test]
fn server_and_client_of_a_ping_and_of_a_test_that_connects_by_rdma_cm_can_be_at_one_address() {
    for address in ["127.0.0.1", "::1"] {
        let ping = |role| ["ping", role, "-a", address, "-p", "7190", "-C", "50", "-V"];
        let [_, near] = both(&ping("-s"), &ping("-c"));
        assert!(text(&near).contains("50 pings done"), "{}", text(&near));
        let perf = ["perf", "write-bw", "-R", "-n", "50", "-q", "4", "-p", "19547"];
        let far = [&perf[..], &["-d", address]].concat();
        let [far, near] = both(&far, &[&perf[..], &[address]].concat());
        assert!(far.status.success() && near.status.success(), "{}", text(&near));
    }
    // The second at a port is told so, and at which.
    let server = ["ping", "-s", "-a", "127.0.0.1", "-p", "7191"];
    let mut first = roci(&server).spawn().unwrap();
    let mut waits = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(first.stdout.take().unwrap()), &mut waits)
        .unwrap();
    let second = roci(&server).output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!second.status.success(), "{waits}");
    assert!(text(&second).contains("port 7191 is listened at already"), "{}", text(&second));
}

#[test]
fn a_server_that_waits_at_its_device_can_be_asked_through_its_control_socket() {
    let socket = std::env::temp_dir().join(format!("roci-waits-{}", std::process::id()));
    let server = ["perf", "write-bw", "-p", "19546", "-d", "127.0.0.87", "--quiet"];
    let mut server = roci(&server).env("ROCI_CONTROL", &socket).spawn().unwrap();
    let is_there = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        socket.exists()
    });
    let told = roci(&["ctl", "counters", "--socket", socket.to_str().unwrap()]).output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let _ = std::fs::remove_file(&socket);
    assert!(is_there && told.status.success(), "{}", text(&told));
}

#[test]
fn a_server_whose_device_cannot_be_opened_exits_with_2_before_anybody_has_come() {
    let _alone = std::net::UdpSocket::bind("127.0.0.88:4791").unwrap();
    let server = roci(&["perf", "write-bw", "-p", "19547", "-d", "127.0.0.88"]).spawn().unwrap();
    let server = ended(server, "the server");
    assert_eq!(server.status.code(), Some(2));
    assert!(text(&server).contains("cannot open the device 127.0.0.88"), "{}", text(&server));
}
