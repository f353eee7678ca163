//! `roci perf` whose other end is killed, or stopped, in the middle of a test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

/// Eight times 134 ms without an answer, and the peer is given up.
const PATIENCE: [&str; 4] = ["-u", "15", "--retry_count", "7"];
const RETRY_TIME: Duration = Duration::from_millis(8 * 134);
/// After so long a silence one that listens over RDMA-CM asks whether the other is there.
const SILENCE: Duration = Duration::from_secs(1);
/// What a busy machine may be late.
const LATE: Duration = Duration::from_secs(5);

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// An end of a test, which does not outlive us.
struct End {
    process: Child,
    out: BufReader<ChildStdout>,
    wrong: ChildStderr,
}

impl End {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roci"));
        command.arg("perf").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let wrong = process.stderr.take().unwrap();
        Self { process, out, wrong }
    }

    /// Reads on until a line that has this; whether there is one.
    fn says(&mut self, what: &str) -> bool {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if line.contains(what) {
                return true;
            }
            line.clear();
        }
        false
    }

    /// Its exit code and what it complained of; it is to end within `time`. Where it had no success, no window is to blame.
    fn ended(mut self, time: Duration) -> (Option<i32>, String) {
        let until = now() + time;
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(now() < until, "it goes on though nobody is there");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut wrong = String::new();
        self.wrong.read_to_string(&mut wrong).unwrap();
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        assert!(status.success() || !out.contains("--window"), "{out}");
        (status.code(), wrong)
    }
}

/// Sends a signal to a process of ours.
fn signal(end: &End, name: &str) {
    let kill = format!("kill -{name} {}", end.process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts both ends, the client as soon as the server is there.
fn meet(options: &[&str], address: &str, own: &str) -> (End, End) {
    let mut server = End::start(&[options, &["-d", address]].concat());
    assert!(server.says("Waiting for client"));
    for _ in 0..100 {
        let mut client = End::start(&[options, &[address, "-d", own]].concat());
        if client.says("remote address") {
            assert!(server.says("remote address"));
            return (server, client);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the two do not meet: {:?}", server.ended(Duration::from_secs(1)));
}

/// Kills one end of a test that runs for a minute; then the other is to end in time and say why, and two more are to meet at the
/// same address and port.
fn kill(test: &str, port: &str, cm: &[&str], addresses: [&str; 2]) {
    let [address, own] = addresses;
    let pairs: &[&str] = if test.ends_with("lat") { &[] } else { &["-q", "2"] };
    let options = [&[test, "-p", port], pairs, cm, &PATIENCE].concat();
    for kills_server in [true, false] {
        let (server, client) = meet(&[&options[..], &["-D", "60"]].concat(), address, own);
        std::thread::sleep(Duration::from_millis(300));
        let (killed, left) = if kills_server { (server, client) } else { (client, server) };
        let begin = now();
        drop(killed);
        // The kernel takes TCP's leave for one that was killed; RDMA-CM has nobody who does.
        let (at_least, at_most) = match (kills_server, cm.is_empty()) {
            (true, true) if pairs.is_empty() => (Duration::ZERO, Duration::ZERO),
            (true, _) => (RETRY_TIME / 2, RETRY_TIME),
            (false, true) => (Duration::ZERO, Duration::ZERO),
            (false, false) => (RETRY_TIME / 2, SILENCE + RETRY_TIME),
        };
        let (code, why) = left.ended(at_most + LATE);
        let took = now() - begin;
        assert_eq!(code, Some(1), "{why}");
        let left = if cm.is_empty() { "the peer has gone" } else { "the peer no longer answers" };
        assert!(why.contains(left), "{why}");
        assert!(took >= at_least, "it tries again first: {took:?}");
        // Its address, port and queue pairs are free again.
        let (server, client) = meet(&[&options[..], &["-n", "50"]].concat(), address, own);
        for end in [server, client] {
            let (code, why) = end.ended(Duration::from_secs(30));
            assert_eq!(code, Some(0), "{why}");
        }
    }
}

#[test]
fn a_server_that_was_stopped_before_the_time_was_over_makes_no_success_of_it_when_it_goes_on() {
    let options = ["write-bw", "-p", "19530", "-D", "2"];
    let (server, client) = meet(&[&options[..], &PATIENCE].concat(), "127.0.0.61", "127.0.0.62");
    std::thread::sleep(Duration::from_millis(1700));
    signal(&server, "STOP");
    // The client's time is over before its last requests have failed.
    std::thread::sleep(RETRY_TIME + Duration::from_millis(800));
    signal(&server, "CONT");
    let (code, why) = client.ended(LATE);
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains("requests were not answered in time"), "{why}");
}

#[test]
fn a_test_whose_time_is_over_while_nothing_is_answered_says_for_how_long_and_not_that_it_was_too_short() {
    for (test, cm) in [("write-bw", &[][..]), ("write-lat", &[]), ("write-lat", &["-R"])] {
        // Retries would go on for 34 s.
        let options = [&[test, "-p", "19548", "-D", "6", "-f", "2", "-u", "20"], cm].concat();
        let (server, client) = meet(&options, "127.0.0.69", "127.0.0.70");
        // Both have begun by then, and nothing counts yet.
        std::thread::sleep(Duration::from_millis(500));
        signal(&server, "STOP");
        let (code, why) = client.ended(Duration::from_secs(6) + LATE);
        assert_eq!(code, Some(1), "{why}");
        let parts =
            ["no answer from the peer in the last ", "retries go on for 34.4 s (-u 20, --retry_count 7)"];
        assert!(parts.iter().all(|part| why.contains(part)), "{test} {cm:?}: {why}");
    }
}

/// Both ends of a test, of which the server was stopped so long `after` the client was started, and the client has given it up; `None`
/// where it waits for it.
fn stop_early(options: &[&str], after: Duration) -> Option<(End, End)> {
    let server = End::start(&[options, &["-d", "127.0.0.65"]].concat());
    std::thread::sleep(Duration::from_millis(500));
    let mut client = End::start(&[options, &["127.0.0.65", "-d", "127.0.0.66"]].concat());
    std::thread::sleep(after);
    signal(&server, "STOP");
    // Two seconds more, which do not count: the server is to find what was sent to it last.
    std::thread::sleep(RETRY_TIME + Duration::from_secs(2));
    let gave_up = client.process.try_wait().unwrap().is_some();
    gave_up.then_some((server, client))
}

#[test]
fn an_end_that_stood_still_at_the_beginning_until_it_was_given_up_has_no_figure_when_it_goes_on() {
    for (test, port, json) in [("write-lat", "19541", false), ("send-lat", "19542", true)] {
        let options = [&[test, "-p", port, "-D", "60"][..], if json { &["--json"] } else { &[] }].concat();
        let options = [&options[..], &PATIENCE].concat();
        // On a busy machine the client may not have begun yet when the server is stopped: it then waits, and once more is tried.
        let (mut server, client) = [800, 1_200, 1_600, 3_200, 6_400]
            .into_iter()
            .find_map(|after| stop_early(&options, Duration::from_millis(after)))
            .expect("a client that gives up a server that stands still");
        signal(&server, "CONT");
        let mut out = String::new();
        server.out.read_to_string(&mut out).unwrap();
        let (code, why) = server.ended(LATE);
        assert_eq!(code, Some(1), "{why}");
        assert!(why.contains("the peer has gone before the test was done"), "{why}");
        assert!(out.contains(if json { "\"rows\": []" } else { "#iterations" }), "{out}");
        assert!(!out.lines().any(is_row), "{out}");
        assert_eq!(client.ended(LATE).0, Some(1));
    }
}

/// Whether a line is the row of a time that was filled with messages of two octets.
fn is_row(line: &str) -> bool {
    line.split_whitespace().count() == 4 && line.trim().starts_with("2 ")
}

#[test]
fn an_end_that_stood_still_as_its_time_ended_has_no_figure_when_it_goes_on() {
    for (test, port) in [("write-lat", "19544"), ("send-lat", "19545")] {
        for stops_server in [true, false] {
            let options = [&[test, "-p", port, "-D", "4"][..], &PATIENCE].concat();
            let (server, client) = meet(&options, "127.0.0.67", "127.0.0.68");
            // The second that does not count any more.
            std::thread::sleep(Duration::from_millis(3_500));
            let (mut stopped, left) = if stops_server { (server, client) } else { (client, server) };
            signal(&stopped, "STOP");
            std::thread::sleep(Duration::from_millis(500) + RETRY_TIME + Duration::from_secs(1));
            signal(&stopped, "CONT");
            let mut out = String::new();
            stopped.out.read_to_string(&mut out).unwrap();
            let (code, why) = stopped.ended(LATE);
            assert_eq!(code, Some(1), "{test} {out} {why}");
            assert!(!out.lines().any(is_row), "{test} {out} {why}");
            drop(left);
        }
    }
}

#[test]
fn writes_end_when_an_end_is_killed() {
    kill("write-bw", "19521", &[], ["127.0.0.51", "127.0.0.52"]);
}

#[test]
fn tests_of_latency_end_when_an_end_is_killed() {
    for (test, port) in
        [("write-lat", "19524"), ("send-lat", "19525"), ("read-lat", "19526"), ("atomic-lat", "19532")]
    {
        kill(test, port, &[], ["127.0.0.57", "127.0.0.58"]);
    }
}

#[test]
fn tests_of_latency_end_when_an_end_of_rdma_cm_is_killed() {
    for (test, port) in [("write-lat", "19527"), ("send-lat", "19528"), ("read-lat", "19529")] {
        kill(test, port, &["-R"], ["127.0.0.59", "127.0.0.60"]);
    }
}

#[test]
fn writes_end_when_an_end_of_rdma_cm_is_killed() {
    kill("write-bw", "19522", &["-R"], ["127.0.0.53", "127.0.0.54"]);
}

#[test]
fn sends_end_when_an_end_of_rdma_cm_is_killed() {
    kill("send-bw", "19523", &["-R"], ["127.0.0.55", "127.0.0.56"]);
}
