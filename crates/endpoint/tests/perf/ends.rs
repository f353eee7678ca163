//! Ends that stop, fall silent, or were told different things.

use crate::{Notes, TURN, meet, options, visit};
use roci_endpoint::perf::{self, Metric, Options, PerfError, Test, Verb};
use roci_endpoint::{Recovery, Service};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn who_stops_ends_the_peer_as_well_which_says_that_it_has_gone() {
    for by_client in [true, false] {
        for verb in [Verb::Write, Verb::Send, Verb::Read] {
            for duration in [None, Some(Duration::from_secs(60))] {
                stopped(&Options { duration, ..options(verb, Metric::Bandwidth) }, by_client);
            }
        }
    }
}

#[test]
fn who_stops_a_test_of_latency_ends_the_peer_as_well_which_says_that_it_has_gone() {
    for by_client in [true, false] {
        for verb in [Verb::Write, Verb::Send, Verb::Read] {
            for duration in [None, Some(Duration::from_secs(60))] {
                stopped(&Options { duration, ..options(verb, Metric::Latency) }, by_client);
            }
        }
    }
}

#[test]
fn a_peer_that_goes_before_anything_counts_has_gone() {
    let duration = Some(Duration::from_secs(60));
    for verb in [Verb::Write, Verb::Send] {
        let margin = Some(Duration::from_secs(20));
        stopped(&Options { duration, margin, ..options(verb, Metric::Latency) }, true);
    }
    // The time is over before the requests that nobody answers have failed.
    let short = Duration::from_millis(1200);
    let margin = Some(Duration::from_millis(500));
    let near =
        Options { duration: Some(short), margin, qp_timeout: 20, ..options(Verb::Write, Metric::Bandwidth) };
    stopped(&near, false);
}

/// Runs a test without end, of which one end is stopped in the middle.
fn stopped(options: &Options, by_client: bool) {
    let options = Options { iterations: u32::MAX, peak: false, ..options.clone() };
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
        std::thread::sleep(Duration::from_millis(100));
        let asked = Instant::now();
        if by_client { &client } else { &server }.stop.store(true, Ordering::SeqCst);
        let patience = Duration::from_secs(8);
        let is_over = (0..1600).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            near.is_finished() && far.is_finished()
        });
        for notes in [&server, &client] {
            notes.stop.store(true, Ordering::SeqCst);
        }
        let (near, far) = (near.join().unwrap(), far.join().unwrap());
        let (who, left) = if by_client { (near, far) } else { (far, near) };
        assert!(is_over && asked.elapsed() < patience, "{options:?}: {left:?}");
        assert!(matches!(who, Err(PerfError::Stopped)), "{options:?}: {who:?}");
        assert!(matches!(left, Err(PerfError::Left)), "{options:?}: {left:?}");
    });
}

/// Hands on what two ends tell each other, but of their versions only what perftest's have, so that each takes the other for one.
/// The port at which a client finds it.
fn mute(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let near = listener.accept().unwrap().0;
        let far = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            TcpStream::connect(("127.0.0.1", server)).ok()
        });
        let far = far.unwrap();
        let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || hand_on(far_too, near_too));
        hand_on(near, far);
    });
    port
}

fn hand_on(mut from: TcpStream, mut to: TcpStream) {
    let mut version = [0; 16];
    if from.read_exact(&mut version).is_ok() {
        version[5..].fill(0);
        let _ = to.write_all(&version);
        let _ = std::io::copy(&mut from, &mut to);
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Hands on what two ends tell each other, but nothing of the server's from when `silent` says so. The port at which a client finds it.
fn falling_silent(server: u16, silent: &'static AtomicBool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut far = visit(server);
        let (mut near_too, mut far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut octets = [0; 4096];
            while let Ok(length @ 1..) = far_too.read(&mut octets) {
                if !silent.load(Ordering::SeqCst) {
                    let _ = near_too.write_all(&octets[..length]);
                }
            }
        });
        let _ = std::io::copy(&mut near, &mut far);
        let _ = far.shutdown(Shutdown::Both);
    });
    port
}

#[test]
fn a_server_that_says_nothing_after_the_test_is_not_waited_for_without_end() {
    static SILENT: AtomicBool = AtomicBool::new(false);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let test = options(Verb::Write, Metric::Bandwidth);
    let options = Options { duration: Some(Duration::from_secs(1)), ..test };
    let (server, client) = (Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        scope.spawn(|| perf::run(&options, &server));
        let near = scope.spawn(|| {
            let begun = Instant::now();
            let near = Options { port: falling_silent(options.port, &SILENT), ..options.clone() };
            (meet(&near, &client), begun.elapsed())
        });
        let is_connected = (0..2000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            client.connected.load(Ordering::SeqCst)
        });
        SILENT.store(is_connected, Ordering::SeqCst);
        let is_over = (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            near.is_finished()
        });
        for notes in [&server, &client] {
            notes.stop.store(true, Ordering::SeqCst);
        }
        let (done, took) = near.join().unwrap();
        assert!(is_over && matches!(done, Err(PerfError::Unconfirmed(_))), "{done:?}");
        assert!(took >= Duration::from_secs(6), "it is given the retry time and more: {took:?}");
    });
}

/// Runs two ends that were told different things and compare nothing, as perftest's; gives how they ended.
fn unaware(server: &Options, client: &Options) -> [Result<(), PerfError>; 2] {
    apart(server, &Options { port: mute(server.port), ..client.clone() })
}

/// Runs two ends that were told different things; gives how they ended, server and client, at the latest after ten seconds.
fn apart(server: &Options, client: &Options) -> [Result<(), PerfError>; 2] {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (far, near) = (Notes::default(), Notes::default());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !ended.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(5));
            }
            far.stop.store(true, Ordering::SeqCst);
            near.stop.store(true, Ordering::SeqCst);
        });
        let one = scope.spawn(|| perf::run(server, &far));
        let two = meet(client, &near);
        let one = one.join().unwrap();
        ended.store(true, Ordering::SeqCst);
        [one, two]
    })
}

#[test]
fn perftest_is_not_talked_to_with_a_recovery_of_ours() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let usual = options(Verb::Write, Metric::Bandwidth);
    let ours = Options { recovery: Recovery::Irn, ..usual.clone() };
    for (server, client) in [(&usual, &ours), (&ours, &usual)] {
        let (far, near) = (Notes::default(), Notes::default());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| perf::run(server, &far));
            let done = meet(&Options { port: mute(server.port), ..client.clone() }, &near);
            far.stop.store(true, Ordering::SeqCst);
            assert!(matches!(waits.join().unwrap(), Err(PerfError::Stopped)), "it waits for another");
            let why = done.unwrap_err().to_string();
            let strangers = far.strangers.lock().unwrap().concat();
            let told = if client.recovery == Recovery::Irn { why } else { strangers };
            assert!(told.contains("recovery `irn`: leave --recovery out"), "{told}");
        });
    }
}

#[test]
fn ends_that_were_told_different_things_name_both_and_end() {
    let of =
        |verb, metric| Options { port: options(verb, metric).port, ..Options::new(Test { verb, metric }) };
    let usual = of(Verb::Send, Metric::Bandwidth);
    let seconds = |time| Some(Duration::from_secs(time));
    let same = "give both ends the same";
    let cases = [
        (
            of(Verb::Write, Metric::Bandwidth),
            Options::new(Test { verb: Verb::Write, metric: Metric::Latency }),
            "the server was given `write-bw` and the client `write-lat`: give both ends the same test"
                .to_owned(),
        ),
        (
            of(Verb::Write, Metric::Bandwidth),
            Options::new(Test { verb: Verb::Read, metric: Metric::Bandwidth }),
            "the server was given `write-bw` and the client `read-bw`: give both ends the same test"
                .to_owned(),
        ),
        (
            usual.clone(),
            Options { iterations: 77, queue_pairs: 2, ..usual.clone() },
            format!("the server was given `-n 1000 -q 1` and the client `-n 77 -q 2`: {same}"),
        ),
        (
            Options { all_sizes: true, ..usual.clone() },
            Options { bidirectional: true, ..usual.clone() },
            format!("the server was given `-a` and no `-b` and the client `-s 65536 -b`: {same}"),
        ),
        (
            usual.clone(),
            Options { duration: seconds(3), ..usual.clone() },
            format!("the server was given `-n 1000` and the client `-D 3`: {same}"),
        ),
        (
            Options { recovery: Recovery::Irn, ..usual.clone() },
            usual,
            format!("the server was given `--recovery irn` and the client `--recovery go-back-n`: {same}"),
        ),
    ];
    for (far, near, why) in cases {
        let [server, client] = apart(&far, &Options { port: far.port, ..near });
        for end in [server, client] {
            let told = end.unwrap_err();
            assert!(matches!(told, PerfError::Apart { .. }), "{told:?}");
            assert_eq!(told.to_string(), why);
        }
    }
}

#[test]
fn ends_with_different_numbers_of_queue_pairs_say_so_and_end() {
    for (far, near) in [(2, 4), (4, 2)] {
        let far = Options { queue_pairs: far, ..options(Verb::Write, Metric::Bandwidth) };
        let near = Options { queue_pairs: near, ..far.clone() };
        let [server, client] = unaware(&far, &near);
        // Who has more of them hears the other's a second time.
        assert!(
            matches!(
                [&server, &client],
                [Err(PerfError::Left), Err(PerfError::Peer(_))]
                    | [Err(PerfError::Peer(_)), Err(PerfError::Left)]
            ),
            "{server:?}, {client:?}"
        );
    }
}

#[test]
fn ends_of_different_services_say_so_and_where_they_cannot_each_gives_up() {
    let far = options(Verb::Send, Metric::Latency);
    let near = Options { service: Service::Uc, ..far.clone() };
    let [server, client] = apart(&far, &near);
    for end in [server, client] {
        let why = "the server was given `-c RC` and the client `-c UC`: give both ends the same";
        assert_eq!(end.unwrap_err().to_string(), why);
    }
    let [server, client] = unaware(&far, &near);
    assert!(matches!(client, Err(PerfError::Unreturned(_))), "{client:?}");
    assert!(matches!(server, Err(PerfError::Left)), "{server:?}");
}

#[test]
fn a_time_in_which_nothing_was_taken_is_no_result() {
    let far = options(Verb::Send, Metric::Bandwidth);
    let near = Options { duration: Some(Duration::from_millis(800)), ..far.clone() };
    let [_, client] = unaware(&far, &near);
    assert!(matches!(client, Err(PerfError::Nothing)), "{client:?}");
}

#[test]
fn a_time_that_the_peer_cut_short_gives_no_latency() {
    for verb in [Verb::Write, Verb::Send] {
        let far = options(verb, Metric::Latency);
        let near = Options {
            duration: Some(Duration::from_millis(800)),
            margin: Some(Duration::from_millis(200)),
            ..far.clone()
        };
        // Fifty messages are over within the margin.
        let [_, client] = unaware(&far, &near);
        assert!(matches!(client, Err(PerfError::Nothing | PerfError::Left)), "{verb:?}: {client:?}");
        let far = Options {
            duration: Some(Duration::from_millis(400)),
            margin: Some(Duration::from_millis(50)),
            ..near.clone()
        };
        let [_, client] = unaware(&far, &near);
        assert!(matches!(client, Err(PerfError::Left)), "{verb:?}: {client:?}");
    }
}

#[test]
fn a_server_that_is_told_its_device_opens_it_before_anybody_has_come() {
    let address = [127, 0, 0, 86];
    let alone = UdpSocket::bind((Ipv4Addr::from(address), 4791)).unwrap();
    let options = Options { device: Some(address.into()), ..options(Verb::Write, Metric::Bandwidth) };
    let notes = Notes::default();
    let open = || {
        std::thread::scope(|scope| {
            let server = scope.spawn(|| perf::run(&options, &notes));
            (0..2000).any(|_| {
                std::thread::sleep(Duration::from_millis(5));
                server.is_finished() || notes.waiting.load(Ordering::SeqCst)
            });
            notes.stop.store(true, Ordering::SeqCst);
            server.join().unwrap()
        })
    };
    let busy = open();
    assert!(matches!(&busy, Err(PerfError::Device(at, _)) if at.to_string() == "127.0.0.86"), "{busy:?}");
    assert!(!notes.waiting.load(Ordering::SeqCst), "for whom there is no device");
    drop(alone);
    assert!(matches!(open(), Err(PerfError::Stopped)) && notes.waiting.load(Ordering::SeqCst));
}
