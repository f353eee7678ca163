//! The examples do what they say.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// An example, which cargo builds beside the tests unless it was asked for this test alone.
fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap();
    // target/debug/deps/examples-… is this test, target/debug/examples/NAME the example.
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    if !path.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "roci-endpoint", "--example", name])
            .status();
        assert!(built.unwrap().success() && path.exists(), "{} is there", path.display());
    }
    Command::new(path)
}

fn succeeded(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the second of two says that talk to each other, once the first listens. Both succeed.
fn pair(mut first: Command, mut second: impl FnMut() -> Command) -> String {
    let first = Killed(first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let begin = Instant::now();
    let told = loop {
        let output = second().output().unwrap();
        let refused = String::from_utf8_lossy(&output.stderr).contains("Connection refused");
        if !refused || begin.elapsed() > Duration::from_secs(10) {
            break succeeded(&output);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    first.ended();
    told
}

/// A process that does not outlive the test.
struct Killed(Child);

impl Killed {
    fn ended(mut self) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "it ended with {status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn remote_kv_finds_all_keys_and_sees_a_change() {
    let told = succeeded(&example("remote_kv").output().unwrap());
    assert!(told.starts_with("700 keys found with "), "{told}");
    assert!(told.contains("701: None"), "{told}");
}

#[test]
fn requests_are_answered_and_no_more_of_them_wait_than_there_are_credits() {
    let told = succeeded(&example("requests").output().unwrap());
    let waited = |credits: &str| {
        let row = told.lines().find(|line| line.trim_start().starts_with(credits)).unwrap();
        row.split_whitespace().rev().nth(1).unwrap().parse::<u32>().unwrap()
    };
    assert!(waited("session of 8") <= 4 * 8 * 4096, "{told}");
    assert!(waited("basic") <= 256 << 10, "{told}");
    assert!(waited("unlimited") > 0 && waited("loosened") > 0, "{told}");
}

#[test]
fn ping_pong_tells_how_long_a_message_takes() {
    let mut server = example("ping_pong");
    server.args(["server", "127.0.0.61"]);
    let told = pair(server, || {
        let mut client = example("ping_pong");
        client.args(["client", "127.0.0.62", "127.0.0.61"]);
        client
    });
    assert!(told.contains("half a round trip in "), "{told}");
}

#[test]
fn an_example_that_is_asked_wrongly_tells_how_to_ask() {
    for name in ["ping_pong", "file_copy", "verify"] {
        let output = example(name).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.starts_with(&format!("usage: {name} ")), "{told}");
    }
}

#[test]
fn file_copy_says_what_to_do_when_the_other_end_has_gone() {
    let receiver = std::net::TcpListener::bind("127.0.0.65:18601").unwrap();
    let gone = std::thread::spawn(move || drop(receiver.accept().unwrap()));
    let output = example("file_copy")
        .args(["send", "127.0.0.66", "127.0.0.65", file!()])
        .current_dir("../..")
        .output();
    let output = output.unwrap();
    gone.join().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("start both again"), "{told}");
}

#[test]
fn file_copy_copies_a_file_and_goes_on_where_a_copy_ended() {
    let room = std::env::temp_dir().join(format!("roci-file-copy-{}", std::process::id()));
    std::fs::create_dir_all(&room).unwrap();
    let (from, to): (PathBuf, PathBuf) = (room.join("from"), room.join("to"));
    let octets: Vec<u8> = (0..5_000_123u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&from, &octets).unwrap();
    // Nothing is there; a part of it is; something else is.
    for before in [None, Some(&octets[..2 << 20]), Some(&[7; 3 << 20][..])] {
        match before {
            Some(before) => std::fs::write(&to, before).unwrap(),
            None => assert!(!to.exists()),
        }
        let mut receiver = example("file_copy");
        receiver.args(["receive", "127.0.0.63"]).arg(&to);
        pair(receiver, || {
            let mut sender = example("file_copy");
            sender.args(["send", "127.0.0.64", "127.0.0.63"]).arg(&from);
            sender
        });
        assert!(std::fs::read(&to).unwrap() == octets, "what was copied is what was there");
    }
    std::fs::remove_dir_all(&room).unwrap();
}
