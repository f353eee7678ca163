//! A client of perftest's tests at a server that is none, or whose packets do not come.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::perf::{self, Counted, Event, Metric, Options, PerfError, Test, Verb, Watch};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Duration;

/// Remembers what a client is told.
#[derive(Default)]
struct Notes {
    mute: Mutex<Vec<String>>,
    counted: Mutex<Option<Counted>>,
}

impl Watch for Notes {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Mute(server) => self.mute.lock().unwrap().push(server.to_string()),
            Event::Counted(counted) => *self.counted.lock().unwrap() = Some(*counted),
            _ => {}
        }
    }
}

/// A client of whoever listens there.
fn client(listener: &TcpListener) -> Options {
    Options {
        host: Some("127.0.0.1".to_owned()),
        port: listener.local_addr().unwrap().port(),
        ..Options::new(Test { verb: Verb::Write, metric: Metric::Bandwidth })
    }
}

#[test]
fn a_server_that_says_nothing_is_told_of_and_then_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options { patience: Duration::from_millis(1200), ..client(&listener) };
    let notes = Notes::default();
    let done = perf::run(&options, &notes);
    let address = listener.local_addr().unwrap();
    assert!(matches!(done, Err(PerfError::Mute(server)) if server == address), "{done:?}");
    assert_eq!(*notes.mute.lock().unwrap(), [address.to_string()], "once, and before it is given up");
}

#[test]
fn a_server_that_leaves_without_a_word_is_perhaps_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = client(&listener);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept()));
        perf::run(&options, &Notes::default())
    });
    let address = listener.local_addr().unwrap();
    assert!(matches!(done, Err(PerfError::Unheard(server)) if server == address), "{done:?}");
}

#[test]
fn a_server_whose_packets_never_come_is_perhaps_behind_a_closed_port() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options { qp_timeout: 10, retry_count: 1, ..client(&listener) };
    let notes = Notes::default();
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = listener.accept().unwrap().0;
            // Version, terms, page, line and MTU, then keys. What a client says is what a server of the same test says.
            for length in [16, 26, 4, 4, 2].into_iter().chain(std::iter::repeat(108)) {
                let mut said = vec![0; length];
                if stream.read_exact(&mut said).is_err() {
                    return;
                }
                if length == 108 {
                    // The last octet of the address: nobody is at 127.0.0.199.
                    said[95..97].copy_from_slice(b"c7");
                }
                stream.write_all(&said).unwrap();
            }
        });
        perf::run(&options, &notes)
    });
    assert!(matches!(done, Err(PerfError::Unanswered { octets: 1.., .. })), "{done:?}");
    let counted = notes.counted.lock().unwrap().unwrap();
    assert!(counted.packets > 0 && counted.timeouts > 0, "{counted:?}");
}
