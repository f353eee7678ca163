//! Programs that connect by librdmacm, as distributions compile them, run over this library.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;

use common::{Killed, preloaded_line, roci, succeeded};
use std::process::Command;
use std::time::{Duration, Instant};

/// What client and server say, each at an address of its own; both succeed. The client is run again as long as the server does not listen.
fn pair(server: Command, what: &str, client: impl Fn() -> Command) -> [String; 2] {
    let server = Killed::begun(server);
    let begin = Instant::now();
    let mut failed = Vec::new();
    let told = loop {
        let output = client().output().unwrap();
        if output.status.success() {
            break succeeded(output, what);
        }
        let said = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        failed.push(format!("{}: {}", output.status, said.concat()));
        // Those after the first that came to a server that listened fail because of that one.
        failed.dedup();
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: in turn {failed:#?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    [told, succeeded(server.ended(), what)]
}

/// The two addresses of a pair of processes, as if each had a host.
fn two(number: u8) -> [String; 2] {
    [0, 1].map(|more| format!("127.0.4.{}", 2 * number + more))
}

/// A program against itself: the lines of server and client, in which FAR and NEAR are their addresses.
fn against_itself(number: u8, server: &str, client: &str) -> [String; 2] {
    let [far, near] = two(number);
    let line = |line: &str, at: &str| preloaded_line(&line.replace("FAR", &far).replace("NEAR", &near), at);
    pair(line(server, &far), client, || line(client, &near))
}

#[test]
fn rping_pings_itself_and_compares_what_comes_back() {
    let server = "rping -s -a FAR -C 100 -V";
    against_itself(1, server, "rping -c -a FAR -I NEAR -C 100 -V");
    // At any address, and from the only device that there is.
    let [said, _] = against_itself(2, "rping -s -C 10", "rping -c -a FAR -C 10 -v");
    assert_eq!(said.matches("ping data: rdma-ping-").count(), 10, "{said}");
}

#[test]
fn rping_pings_itself_at_one_address_that_both_have() {
    for (number, address) in [(20, "127.0.4.40"), (21, "::1")] {
        let client = format!("rping -c -a {address} -C 100 -V");
        pair(preloaded_line(&format!("rping -s -a {address} -C 100 -V"), address), &client, || {
            preloaded_line(&client, address)
        });
        // With all the devices of this host, of which one is asked.
        let mut server = preloaded_line(&format!("rping -s -p {} -C 10", 7200 + number), "");
        server.env_remove("ROCI_DEVICES");
        let client = format!("rping -c -a {} -p {} -C 10 -v", "127.0.0.1", 7200 + number);
        let [said, _] = pair(server, &client, || {
            let mut client = preloaded_line(&client, "");
            client.env_remove("ROCI_DEVICES");
            client
        });
        assert_eq!(said.matches("ping data: rdma-ping-").count(), 10, "{said}");
    }
}

#[test]
fn servers_at_one_address_have_a_port_each_and_the_second_at_a_port_is_refused() {
    let address = "127.0.4.44";
    let server = |port: u16| preloaded_line(&format!("rping -s -a {address} -p {port} -C 5 -v"), address);
    let first = Killed::begun(server(7301));
    let client = |port: u16| preloaded_line(&format!("rping -c -a {address} -p {port} -C 5 -v"), address);
    pair(server(7302), "rping at one port", || client(7302));
    // It is there by now, and has the port.
    let told = server(7301).output().unwrap();
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success() && said.contains("Address already in use"), "{said}");
    // It may end with an error when it is done: it destroys its event channel while a thread of its own reads from it.
    let told = client(7301).output().unwrap();
    assert!(String::from_utf8_lossy(&told.stdout).contains("rdma-ping-4:"), "{told:?}");
    succeeded(first.ended(), "its server");
}

#[test]
fn rping_and_roci_ping_ping_each_other() {
    let [far, near] = two(3);
    let server = preloaded_line(&format!("rping -s -a {far} -C 20 -V"), &far);
    let [said, _] = pair(server, "roci ping -c", || {
        let mut client = roci();
        client.args(["ping", "-c", "-a", &far, "-I", &near, "-C", "20", "-V"]);
        client
    });
    assert!(said.contains("20 pings done"), "{said}");
    let [far, near] = two(4);
    let mut server = roci();
    server.args(["ping", "-s", "-a", &far, "-V"]);
    let client = format!("rping -c -a {far} -C 20 -V");
    let [_, said] = pair(server, &client, || preloaded_line(&client, &near));
    assert!(said.contains("20 pings done"), "{said}");
}

#[test]
fn the_tests_of_perftest_connect_by_rdma_cm() {
    for (number, line) in [
        (5, "ib_write_bw -R -n 300"),
        (6, "ib_write_bw -R -n 300 -q 4 -b"),
        (7, "ib_send_lat -R -n 200"),
        (8, "ib_send_bw -R -n 300 -e"),
        (9, "ib_send_bw -R -n 300 --use-srq"),
        (10, "ib_read_bw -R -n 300"),
        (11, "ib_atomic_lat -R -n 100"),
    ] {
        let line = format!("{line} -p {}", 18_700 + u16::from(number));
        let [said, _] = against_itself(number, &line, &format!("{line} FAR"));
        assert!(said.contains("#bytes") && said.contains("rdma_cm QPs\t : ON"), "{said}");
    }
}

#[test]
fn perftest_and_roci_perf_connect_by_rdma_cm() {
    let [far, near] = two(12);
    let server = preloaded_line("ib_send_lat -R -n 200 -p 18712", &far);
    let [said, _] = pair(server, "roci perf send-lat -R", || {
        let mut client = roci();
        client.args(["perf", "send-lat", "-R", "-n", "200", "-d", &near, "-p", "18712", &far]);
        client
    });
    assert!(said.contains("#bytes"), "{said}");
    let [far, near] = two(13);
    let mut server = roci();
    server.args(["perf", "write-bw", "-R", "-n", "200", "-d", &far, "-p", "18713"]);
    let client = format!("ib_write_bw -R -n 200 -p 18713 {far}");
    let [said, _] = pair(server, &client, || preloaded_line(&client, &near));
    assert!(said.contains("#bytes"), "{said}");
}

#[test]
fn the_examples_of_librdmacm_run() {
    for (number, server, client, said) in [
        (14, "rdma_server -s FAR", "rdma_client -s FAR", "rdma_client: end 0"),
        (15, "rdma_xserver -c r -p 18715", "rdma_xclient -s FAR -c r -p 18715", "rdma_xclient: end 0"),
        (16, "ucmatose -p 18716", "ucmatose -s FAR -p 18716", "return status 0"),
        (17, "ucmatose -p 18717 -c 8 -C 20 -m", "ucmatose -s FAR -p 18717 -c 8 -C 20 -m", "return status 0"),
    ] {
        let heard = against_itself(number, server, client);
        assert!(heard[0].contains(said), "{heard:?}");
    }
}

#[test]
fn datagrams_go_where_rdma_cm_says() {
    for (number, server, client, said) in [
        (22, "udaddy -b FAR", "udaddy -s FAR -b NEAR", "return status 0"),
        (23, "udaddy -c 8 -C 20 -S 1024", "udaddy -s FAR -c 8 -C 20 -S 1024", "return status 0"),
        (
            24,
            "ib_send_bw -R -c UD -n 300 -p 18724",
            "ib_send_bw -R -c UD -n 300 -p 18724 FAR",
            "rdma_cm QPs\t : ON",
        ),
        (
            25,
            "ib_send_lat -R -c UD -n 300 -p 18725",
            "ib_send_lat -R -c UD -n 300 -p 18725 FAR",
            "rdma_cm QPs\t : ON",
        ),
    ] {
        let heard = against_itself(number, server, client);
        assert!(heard[0].contains(said), "{heard:?}");
    }
    // At one address that both have.
    let at = "127.0.4.54";
    let client = format!("udaddy -s {at} -b {at} -C 20");
    let server = preloaded_line(&format!("udaddy -b {at} -C 20"), at);
    let [said, _] = pair(server, &client, || preloaded_line(&client, at));
    assert!(said.contains("return status 0"), "{said}");
}

#[test]
fn who_asks_for_datagrams_where_nobody_listens_hears_so() {
    let [far, near] = two(26);
    // Who listens there does so for connections.
    let _server = Killed::begun(preloaded_line(&format!("rping -s -P -a {far}"), &far));
    let pings = || preloaded_line(&format!("rping -c -a {far} -I {near} -C 1"), &near).output().unwrap();
    let begin = Instant::now();
    while !pings().status.success() {
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not come to listen");
    }
    let output = preloaded_line(&format!("udaddy -s {far} -b {near}"), &near).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    // IBTA's status of a service that nobody offers.
    assert!(!output.status.success() && told.contains("UNREACHABLE, error: 1\n"), "{output:?}");
}

#[test]
fn what_needs_multicast_is_refused_and_says_why() {
    let output = preloaded_line("mckey -m 239.1.1.1 -b 127.0.4.38", &two(19)[0]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("there is no multicast"), "{told}");
}

#[test]
fn a_program_goes_on_where_nobody_takes_what_it_is_told() {
    let mut command = preloaded_line("mckey -m 239.1.1.1 -b 127.0.4.36", &two(18)[0]);
    command.stderr(std::fs::File::create("/dev/full").unwrap());
    // It ends by itself.
    assert!(command.status().unwrap().code().is_some());
}

/// A process that was stopped goes on as if nothing had been.
#[test]
fn a_server_that_was_stopped_and_goes_on_still_serves() {
    let [far, near] = two(21);
    let mut server = preloaded_line(&format!("rping -s -a {far} -C 5"), &far).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    for signal in ["-STOP", "-CONT"] {
        let told = Command::new("kill").args([signal, &server.id().to_string()]).status().unwrap();
        assert!(told.success());
        std::thread::sleep(Duration::from_millis(100));
    }
    let client = preloaded_line(&format!("rping -c -a {far} -C 5"), &near).output();
    if !client.as_ref().is_ok_and(|client| client.status.success()) {
        server.kill().unwrap();
    }
    let status = server.wait().unwrap();
    succeeded(client.unwrap(), "rping -c");
    assert!(status.success());
}
