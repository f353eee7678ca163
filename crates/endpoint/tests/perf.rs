//! perftest's tests with both ends ours, over UDP sockets at one loopback address.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::perf::{self, Event, Metric, Options, PerfError, Row, Test, Verb, Watch};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Remembers the rows, and stops when it is told to.
#[derive(Default)]
struct Notes {
    rows: Mutex<Vec<Row>>,
    stop: AtomicBool,
    connected: AtomicBool,
}

impl Watch for Notes {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Row(row) => self.rows.lock().unwrap().push(*row),
            Event::Connected(_) => self.connected.store(true, Ordering::SeqCst),
            _ => {}
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

fn options(verb: Verb, metric: Metric) -> Options {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // A thread may wait long for a processor.
    Options { iterations: 50, port: free, qp_timeout: 15, ..Options::new(Test { verb, metric }) }
}

/// Each test has four busy threads; side by side they would keep each other from answering in time.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a client, which finds its server there within ten seconds.
fn meet(options: &Options, client: &Notes) -> Result<(), PerfError> {
    let near = Options { host: Some("127.0.0.1".to_owned()), ..options.clone() };
    let attempts = 500;
    for _ in 1..attempts {
        match perf::run(&near, client) {
            Err(PerfError::Unreachable(..)) => std::thread::sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
    perf::run(&near, client)
}

/// Runs both ends; gives the server's and the client's rows.
fn both(options: &Options) -> (Vec<Row>, Vec<Row>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (server, client) = (Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(options, &server));
        let done = meet(options, &client);
        // A server that nobody came to would wait for ever.
        server.stop.store(done.is_err(), Ordering::SeqCst);
        let far = far.join().unwrap();
        assert!(done.is_ok() && far.is_ok(), "client {done:?}, server {far:?}, {options:?}");
    });
    (server.rows.into_inner().unwrap(), client.rows.into_inner().unwrap())
}

#[test]
fn each_test_runs_and_both_ends_agree_on_the_bandwidth() {
    for verb in [Verb::Write, Verb::Read, Verb::Atomic { swap: false }, Verb::Atomic { swap: true }] {
        let options = Options { queue_pairs: 3, ..options(verb, Metric::Bandwidth) };
        let (server, client) = both(&options);
        let [Row::Bandwidth(row)] = client[..] else { panic!("{client:?}") };
        assert_eq!((row.iterations, row.size), (150, options.size.into()));
        assert!(row.average > 0.0 && row.peak >= row.average * 0.99, "{row:?}");
        let [Row::Bandwidth(told)] = server[..] else { panic!("{server:?}") };
        assert!((told.average - row.average).abs() < row.average * 1e-6);
    }
}

#[test]
fn sends_are_counted_at_the_receiver() {
    let options = Options { queue_pairs: 2, rx_depth: 8, ..options(Verb::Send, Metric::Bandwidth) };
    let (server, client) = both(&options);
    for rows in [server, client] {
        let [Row::Bandwidth(row)] = rows[..] else { panic!("{rows:?}") };
        assert_eq!(row.iterations, 100);
    }
}

#[test]
fn both_directions_are_added_up() {
    for verb in [Verb::Write, Verb::Send, Verb::Read] {
        let options = Options { bidirectional: true, ..options(verb, Metric::Bandwidth) };
        let (server, client) = both(&options);
        let ([Row::Bandwidth(one)], [Row::Bandwidth(two)]) = (&server[..], &client[..]) else { panic!() };
        assert!((one.average - two.average).abs() < one.average * 1e-6, "{one:?} {two:?}");
    }
}

#[test]
fn all_sizes_have_a_row_each() {
    for (verb, metric) in [(Verb::Send, Metric::Bandwidth), (Verb::Write, Metric::Latency)] {
        let options = Options { all_sizes: true, iterations: 5, ..options(verb, metric) };
        let (_, client) = both(&options);
        assert_eq!(client.len(), 23, "{verb:?} {metric:?}");
    }
}

#[test]
fn a_time_in_place_of_a_number_ends_both() {
    for (verb, metric) in
        [(Verb::Write, Metric::Bandwidth), (Verb::Send, Metric::Bandwidth), (Verb::Send, Metric::Latency)]
    {
        let duration = Some(Duration::from_millis(400));
        let options = Options { duration, ..options(verb, metric) };
        let (server, client) = both(&options);
        assert_eq!((server.len(), client.len()), (1, 1), "{verb:?} {metric:?}");
        match client[0] {
            Row::Bandwidth(row) => assert!(row.iterations > 0 && row.average > 0.0, "{row:?}"),
            Row::Rate(row) => assert!(row.iterations > 0 && row.per_second > 0.0, "{row:?}"),
            Row::Latency(_) => panic!("of iterations"),
        }
    }
}

#[test]
fn latency_is_told_by_both_ends() {
    for verb in [Verb::Write, Verb::Send] {
        for size in [2, 1000] {
            let options = Options { size, ..options(verb, Metric::Latency) };
            let (server, client) = both(&options);
            for rows in [server, client] {
                let [Row::Latency(row)] = rows[..] else { panic!("{rows:?}") };
                assert!(
                    row.iterations == 50 && row.min > 0.0 && row.min <= row.typical && row.typical <= row.max
                );
            }
        }
    }
}

#[test]
fn who_stops_ends_the_peer_as_well() {
    let options = Options { iterations: u32::MAX, peak: false, ..options(Verb::Write, Metric::Bandwidth) };
    let (server, client) = (Notes::default(), Notes::default());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &server));
        let near = scope.spawn(|| meet(&options, &client));
        let is_connected = (0..4000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            client.connected.load(Ordering::SeqCst)
        });
        // Else they would go on for ever.
        server.stop.store(!is_connected, Ordering::SeqCst);
        client.stop.store(true, Ordering::SeqCst);
        assert!(matches!(near.join().unwrap(), Err(PerfError::Stopped)));
        assert!(matches!(far.join().unwrap(), Err(PerfError::Left)));
    });
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let of = |verb, metric| Options::new(Test { verb, metric });
    let wrong = [
        of(Verb::Atomic { swap: false }, Metric::Latency),
        Options { queue_pairs: 2, ..of(Verb::Send, Metric::Latency) },
        Options { size: 0, ..of(Verb::Send, Metric::Bandwidth) },
        Options { iterations: 4, ..of(Verb::Send, Metric::Bandwidth) },
        Options { all_sizes: true, ..of(Verb::Atomic { swap: true }, Metric::Bandwidth) },
    ];
    for options in wrong {
        let done = perf::run(&options, &Notes::default());
        assert!(matches!(done, Err(PerfError::Options(_))), "{options:?}");
    }
}
