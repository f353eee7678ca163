//! Programs that were compiled for libibverbs, run in pairs.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of which each uses some"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// What cargo puts beside the tests.
fn built() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    // target/debug/deps/programs-… is this test.
    path.pop();
    path.pop();
    path
}

/// The library that was built for these tests: beside it, above, may lie one of an earlier build, or none.
pub(crate) fn library() -> PathBuf {
    let library = built().join("deps/libroci_verbs.so");
    assert!(library.exists(), "{} is there", library.display());
    library
}

/// A program with the library loaded before libibverbs, whose one device is at this address.
pub(crate) fn preloaded(program: &str, at: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library()).env("ROCI_DEVICES", at);
    command
}

/// `roci`, as built beside the tests.
pub(crate) fn roci() -> Command {
    let path = built().join("roci");
    if !path.exists() {
        let asked = ["build", "--quiet", "--package", "roci-cli", "--bin", "roci"];
        assert!(Command::new(env!("CARGO")).args(asked).status().unwrap().success());
    }
    Command::new(path)
}

/// What it said, where it succeeded.
pub(crate) fn succeeded(output: Output, what: &str) -> String {
    let [said, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{what}: {}\n{said}\n{error}", output.status);
    said
}

/// What the client says of a server that `line` starts at an address, at a TCP port of their own; both succeed.
pub(crate) fn pair(line: &str, at: &str, client: impl Fn(&str) -> Command) -> String {
    let mut words = line.split(' ');
    let mut server = preloaded(words.next().unwrap(), at);
    server.args(words);
    pair_with(server, line, at, client)
}

/// The same of a server that is there, and is called `line`.
pub(crate) fn pair_with(
    mut server: Command,
    line: &str,
    at: &str,
    client: impl Fn(&str) -> Command,
) -> String {
    // They listen at all addresses.
    static PORTS: AtomicU16 = AtomicU16::new(18_620);
    let port = PORTS.fetch_add(1, Ordering::Relaxed).to_string();
    server.args(["-p", &port]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Killed(Some(server.spawn().unwrap()));
    let begin = Instant::now();
    let told = loop {
        let output = client(at).args(["-p", &port, at]).output().unwrap();
        let refused = [&output.stdout, &output.stderr].into_iter().any(|it| {
            let said = String::from_utf8_lossy(it);
            said.contains("onnection refused") || said.contains("Couldn't connect")
        });
        if !refused || begin.elapsed() > Duration::from_secs(20) {
            break succeeded(output, line);
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    succeeded(server.ended(), line);
    told
}

/// A line of a program and its arguments, with the library.
pub(crate) fn preloaded_line(line: &str, at: &str) -> Command {
    let mut words = line.split(' ');
    let mut program = preloaded(words.next().unwrap(), at);
    program.args(words);
    program
}

/// A process that does not outlive the test.
pub(crate) struct Killed(Option<Child>);

impl Killed {
    /// One whose output is heard when it has ended.
    pub(crate) fn begun(mut command: Command) -> Self {
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    pub(crate) fn ended(mut self) -> Output {
        let begin = Instant::now();
        while self.0.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(30), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
