//! perftest's tests with both ends ours, over UDP sockets at one loopback address.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::disallowed_methods, reason = "tests")]

mod by_cm;
mod ends;

use roci_endpoint::perf::{
    self, Counted, Event, Metric, Options, Order, PerfError, RateLimit, Row, Test, Verb, Watch,
};
use roci_endpoint::{BitsPerSec, INLINE_MAX, Law, Mtu, Recovery, Service};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Remembers the rows, and stops when it is told to.
#[derive(Default)]
struct Notes {
    rows: Mutex<Vec<Row>>,
    times: Mutex<Vec<f64>>,
    counted: Mutex<Option<Counted>>,
    stop: AtomicBool,
    waiting: AtomicBool,
    connected: AtomicBool,
    strangers: Mutex<Vec<String>>,
}

impl Watch for Notes {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Row(row) => self.rows.lock().unwrap().push(*row),
            Event::Times(times) => self.times.lock().unwrap().extend(times),
            Event::Counted(counted) => *self.counted.lock().unwrap() = Some(*counted),
            Event::Stranger { deed, .. } => self.strangers.lock().unwrap().push(deed.to_owned()),
            Event::Waiting(_) => self.waiting.store(true, Ordering::SeqCst),
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
    let host = options.device.map_or("127.0.0.1".to_owned(), |address| address.to_string());
    let near = Options { host: Some(host), ..options.clone() };
    let attempts = 500;
    for _ in 1..attempts {
        match perf::run(&near, client) {
            Err(PerfError::Unreachable(..)) => std::thread::sleep(Duration::from_millis(20)),
            done => return done,
        }
    }
    perf::run(&near, client)
}

/// Connects to a server of this port, which is there within ten seconds.
fn visit(port: u16) -> TcpStream {
    let tried = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    tried.unwrap()
}

/// Runs both ends; gives the server's and the client's rows.
fn both(options: &Options) -> (Vec<Row>, Vec<Row>) {
    let (server, client) = noted(options);
    (server.rows.into_inner().unwrap(), client.rows.into_inner().unwrap())
}

/// Runs both ends; gives what the server and the client noted.
fn noted(options: &Options) -> (Notes, Notes) {
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
    (server, client)
}

#[test]
fn each_test_runs_and_both_ends_agree_on_the_bandwidth() {
    for verb in [Verb::Write, Verb::Read, Verb::Atomic { swap: false }, Verb::Atomic { swap: true }] {
        let options = Options { queue_pairs: 3, ..options(verb, Metric::Bandwidth) };
        let (server, client) = both(&options);
        let [Row::Bandwidth(row)] = client[..] else { panic!("{client:?}") };
        assert_eq!((row.iterations, row.size), (150, options.size.into()));
        assert!(row.average > 0.0 && row.peak.unwrap() >= row.average * 0.99, "{row:?}");
        let [Row::Bandwidth(told)] = server[..] else { panic!("{server:?}") };
        assert!((told.average - row.average).abs() < row.average * 1e-6);
    }
}

#[test]
fn each_test_runs_with_each_recovery_of_ours() {
    for recovery in [Recovery::Irn, Recovery::Srnic, Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        for verb in [Verb::Write, Verb::Send, Verb::Read, Verb::Atomic { swap: false }] {
            let options =
                Options { recovery, queue_pairs: 2, bidirectional: true, ..options(verb, Metric::Bandwidth) };
            let (_, client) = both(&options);
            let [Row::Bandwidth(row)] = client[..] else { panic!("{client:?}") };
            assert_eq!((row.iterations, row.size), (100, options.size.into()), "{options:?}");
        }
        let (_, client) = both(&Options { recovery, ..options(Verb::Write, Metric::Latency) });
        assert!(matches!(client[..], [Row::Latency(_)]), "{recovery:?}: {client:?}");
    }
}

#[test]
fn a_server_reports_strangers_and_serves_the_client_that_comes_after_them() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let options = options(Verb::Write, Metric::Bandwidth);
    let (server, client) = (Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &server));
        let silent = visit(options.port);
        drop(visit(options.port));
        let mut browser = visit(options.port);
        browser.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        assert!(!matches!(browser.read(&mut [0]), Ok(1..)), "it is shown out");
        let done = meet(&options, &client);
        server.stop.store(done.is_err(), Ordering::SeqCst);
        assert!(done.is_ok() && far.join().unwrap().is_ok(), "{done:?}");
        drop(silent);
    });
    let mut strangers = server.strangers.into_inner().unwrap();
    strangers.sort();
    assert_eq!(strangers, ["said \"GET / HTTP/1.1\\r\\n\"", "said nothing and left"]);
}

#[test]
fn who_comes_first_has_to_make_room_where_too_many_say_nothing() {
    let options = options(Verb::Write, Metric::Bandwidth);
    let server = Notes::default();
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &server));
        let mut first = visit(options.port);
        let others: Vec<_> =
            (0..64).map(|_| TcpStream::connect(("127.0.0.1", options.port)).unwrap()).collect();
        assert!(!matches!(first.read(&mut [0]), Ok(1..)));
        server.stop.store(true, Ordering::SeqCst);
        assert!(matches!(far.join().unwrap(), Err(PerfError::Stopped)));
        drop(others);
    });
    assert_eq!(server.strangers.into_inner().unwrap(), ["was one too many that said nothing"]);
}

#[test]
fn a_client_that_takes_its_time_is_answered() {
    let options = options(Verb::Write, Metric::Bandwidth);
    let server = Notes::default();
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &server));
        let mut slow = visit(options.port);
        for part in [&b"6."[..], b"06\0", &[0; 11]] {
            std::thread::sleep(Duration::from_millis(200));
            slow.write_all(part).unwrap();
        }
        let mut heard = [0; 16];
        slow.read_exact(&mut heard).unwrap();
        assert!(heard.starts_with(b"6.06\0"), "{heard:?}");
        assert!(server.strangers.lock().unwrap().is_empty());
        server.stop.store(true, Ordering::SeqCst);
        assert!(matches!(far.join().unwrap(), Err(PerfError::Stopped)));
    });
}

/// Says what perftest's client says before its first queue pair, and hears the answers.
fn begin(port: u16) -> TcpStream {
    let mut client = visit(port);
    for said in [&b"6.06\0\0\0\0\0\0\0\0\0\0\0\0"[..], &[0, 0, 16, 0], &[0, 0, 0, 64], b"5\0"] {
        client.write_all(said).unwrap();
        client.read_exact(&mut vec![0; said.len()]).unwrap();
    }
    client
}

#[test]
fn who_begins_as_a_client_and_stops_before_the_test_is_reported_and_keeps_no_server() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let key: &[u8] = b"0000:0001:000011:e27bcb:00000322:00007f9f1da38000:\
                       00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01:00000000:\0";
    let patience = Duration::from_millis(400);
    let options = Options { patience, queue_pairs: 2, ..options(Verb::Write, Metric::Bandwidth) };
    let (server, client) = (Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &server));
        let mut version = visit(options.port);
        version.write_all(b"6.06\0\0\0\0\0\0\0\0\0\0\0\0").unwrap();
        let mut told = [0; 17];
        assert!(version.read_exact(&mut told).is_err(), "it is shown out");
        // In the middle of the queue pairs.
        let mut keys = begin(options.port);
        keys.write_all(key).unwrap();
        let mut heard = Vec::new();
        assert_eq!(keys.read_to_end(&mut heard).unwrap_or(heard.len()), key.len());
        drop(begin(options.port));
        let mut nonsense = begin(options.port);
        nonsense.write_all(&[b'x'; 108]).unwrap();
        let _ = nonsense.read(&mut [0]);
        let done = meet(&options, &client);
        server.stop.store(done.is_err(), Ordering::SeqCst);
        let far = far.join().unwrap();
        assert!(done.is_ok() && far.is_ok(), "{done:?}, {far:?}");
    });
    let strangers = server.strangers.into_inner().unwrap();
    let left = "left before it told a queue pair";
    assert_eq!(strangers, ["said no more", "said no more", left, "told a queue pair that cannot be read"]);
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
fn lists_and_few_completions_leave_out_no_message() {
    for verb in [Verb::Write, Verb::Send, Verb::Read, Verb::Atomic { swap: false }] {
        for (cq_mod, post_list) in [(7, None), (1, Some(16)), (50, Some(5)), (1000, Some(1000))] {
            let options = Options {
                cq_mod,
                post_list,
                queue_pairs: 2,
                iterations: 103,
                ..options(verb, Metric::Bandwidth)
            };
            let (_, client) = both(&options);
            let [Row::Bandwidth(row)] = client[..] else { panic!("{client:?}") };
            assert_eq!((row.iterations, row.average > 0.0), (206, true), "{verb:?} {cq_mod} {post_list:?}");
        }
    }
}

#[test]
fn messages_go_inline_up_to_the_size_that_was_said() {
    for (verb, metric, size, inline) in [
        (Verb::Write, Metric::Bandwidth, 100, 100),
        (Verb::Send, Metric::Bandwidth, 184, 184),
        (Verb::Write, Metric::Latency, 64, 0),
        (Verb::Send, Metric::Latency, 64, 63),
    ] {
        let options = Options { size, inline: Some(inline), ..options(verb, metric) };
        let (_, client) = both(&options);
        assert_eq!(client.len(), 1, "{verb:?} {metric:?}");
    }
}

#[test]
fn a_rate_that_is_asked_for_is_kept_over_all_queue_pairs() {
    // 80 messages of 4096 octets in 200 ms are 13.1 Mb/s, 1.5625 MiB/s, 400 a second and 1600 packets of 1024.
    let usual = Options {
        size: 4096,
        iterations: 40,
        queue_pairs: 2,
        mtu: Some(roci_endpoint::Mtu::Mtu1024),
        ..options(Verb::Write, Metric::Bandwidth)
    };
    for rate in [RateLimit::Gbits(0.013_107_2), RateLimit::Mebibytes(1.5625), RateLimit::Packets(1600.0)] {
        for (verb, post_list) in [(Verb::Write, None), (Verb::Read, Some(4))] {
            let test = Test { verb, metric: Metric::Bandwidth };
            let options = Options { rate_limit: Some(rate), post_list, test, ..usual.clone() };
            let (_, client) = both(&options);
            let [Row::Bandwidth(row)] = client[..] else { panic!("{client:?}") };
            // The last message's time is not waited for, nor that of a list; a busy machine is late.
            let most = 400.0 * 80.0 / (80.0 - f64::from(post_list.unwrap_or(1)) * 2.0);
            assert!(row.messages < most * 1.01, "{rate:?} {verb:?}: {row:?}");
            assert!(row.messages > 200.0, "{rate:?} {verb:?}: {row:?}");
        }
    }
}

#[test]
fn each_message_s_time_is_told_where_that_is_asked_for() {
    for (verb, order) in [
        (Verb::Write, Order::Sorted),
        (Verb::Send, Order::Unsorted),
        (Verb::Read, Order::Sorted),
        (Verb::Atomic { swap: false }, Order::Sorted),
        (Verb::Atomic { swap: true }, Order::Unsorted),
    ] {
        let options = Options { times: Some(order), ..options(verb, Metric::Latency) };
        let (_, client) = noted(&options);
        let (rows, times) = (client.rows.into_inner().unwrap(), client.times.into_inner().unwrap());
        let [Row::Latency(row)] = rows[..] else { panic!("{rows:?}") };
        assert_eq!(times.len(), 49, "between 50 posts");
        assert!(order == Order::Unsorted || times.is_sorted());
        let (least, most) = times.iter().fold((f64::MAX, 0.0f64), |(a, b), it| (a.min(*it), b.max(*it)));
        assert_eq!((least, most), (row.min, row.max));
    }
}

/// Receives the IP packets that bring UDP to this address, and not all of this host's, which would fill its buffer; `None` where
/// we may not see them.
#[expect(unsafe_code, reason = "the standard library opens no raw sockets")]
fn wire(address: Ipv4Addr) -> Option<UdpSocket> {
    // SAFETY: it takes no pointers.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_UDP) };
    if raw < 0 {
        return None;
    }
    // SAFETY: it is a socket, and nobody else's.
    let socket = unsafe { UdpSocket::from_raw_fd(raw) };
    let name = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: it is a name of that length.
    let bound = unsafe { libc::bind(raw, (&raw const name).cast(), size_of_val(&name) as libc::socklen_t) };
    assert_eq!(bound, 0);
    Some(socket)
}

#[test]
fn the_type_of_service_is_on_the_packets() {
    let address = Ipv4Addr::new(127, 0, 0, 57);
    let Some(wire) = wire(address) else {
        assert_eq!(std::io::Error::last_os_error().kind(), std::io::ErrorKind::PermissionDenied);
        return;
    };
    let (test, device) = (options(Verb::Write, Metric::Bandwidth), Some(address.into()));
    let options = Options { tos: 46 << 2, device, size: 256, ..test };
    both(&options);
    wire.set_nonblocking(true).unwrap();
    let (mut packet, mut seen) = ([0; 64], Vec::new());
    while wire.recv(&mut packet).is_ok() {
        if packet[22..24] == 4791u16.to_be_bytes() {
            // Beside it, data have ECT(0), and acknowledgements nothing.
            assert!(packet[1] & !3 == 46 << 2, "{packet:?}");
            seen.push(packet[28]);
        }
    }
    assert!(seen.contains(&0x0a) && seen.contains(&0x11), "WRITEs and acknowledgements: {seen:?}");
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
fn a_receiver_of_few_messages_has_seen_them_in_no_less_time_than_they_took() {
    let usual = options(Verb::Send, Metric::Bandwidth);
    let (server, client) = both(&Options { all_sizes: true, iterations: 5, ..usual });
    for (there, here) in server.iter().zip(&client) {
        let (Row::Bandwidth(there), Row::Bandwidth(here)) = (there, here) else { panic!() };
        // Five messages of two octets within ten ns would be a GB/s.
        let most = (there.size as f64 * 1e8).min(50e9);
        assert!(there.average > 0.0 && there.average < most, "{there:?}, {here:?}");
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
fn a_thousand_queue_pairs_do_not_send_more_than_the_receiver_s_socket_holds() {
    let options = Options { iterations: 10, queue_pairs: 1000, ..options(Verb::Write, Metric::Bandwidth) };
    let (server, client) = noted(&options);
    let [overflowed, packets] = [&server, &client].map(|notes| {
        let counted = notes.counted.lock().unwrap().unwrap();
        (counted.overflowed, counted.packets)
    });
    // Each by itself had 32 packets under way, and the socket lost a tenth of them.
    assert!(overflowed.0 * 100 < packets.1, "{} of {}", overflowed.0, packets.1);
}

#[test]
fn each_end_counts_what_it_sent_and_what_it_was_told() {
    let far = Options {
        iterations: 20,
        size: 10_000,
        mtu: Some(Mtu::Mtu1024),
        ..options(Verb::Send, Metric::Latency)
    };
    let (server, client) = noted(&far);
    for notes in [&server, &client] {
        let counted = notes.counted.lock().unwrap().unwrap();
        assert_eq!(counted.packets - counted.retransmitted, 20 * 10, "{counted:?}");
        assert_eq!((counted.cnps, counted.ecn_marked), (0, 0));
    }
}

fn unreliable(options: Options) -> Options {
    Options { service: Service::Uc, ..options }
}

#[test]
fn each_test_of_unreliable_connections_tells_what_has_arrived() {
    for (verb, metric, bidirectional) in [
        (Verb::Write, Metric::Bandwidth, false),
        (Verb::Write, Metric::Bandwidth, true),
        (Verb::Send, Metric::Bandwidth, false),
        (Verb::Send, Metric::Bandwidth, true),
        (Verb::Write, Metric::Latency, false),
        (Verb::Send, Metric::Latency, false),
    ] {
        let options = Options { size: 100, bidirectional, ..unreliable(options(verb, metric)) };
        let (server, client) = noted(&options);
        let [far, near] = [&server, &client].map(|notes| notes.counted.lock().unwrap().unwrap());
        let is_one_way = metric == Metric::Bandwidth && !bidirectional;
        assert_eq!((near.sent, near.lost, near.retransmitted), (50, Some(0), 0), "{verb:?} {metric:?}");
        assert_eq!((far.taken, near.taken), (50, if is_one_way { 0 } else { 50 }), "{verb:?} {metric:?}");
        assert_eq!(far.lost, (!is_one_way).then_some(0));
        assert_eq!(client.rows.lock().unwrap().len(), 1);
    }
}

#[test]
fn a_receiver_tells_how_many_messages_came_and_waits_for_no_others() {
    // Of a burst most find no receive.
    let options = Options {
        iterations: 2000,
        size: 64,
        rx_depth: 1,
        tx_depth: 1000,
        ..unreliable(options(Verb::Send, Metric::Bandwidth))
    };
    let (server, client) = noted(&options);
    let [far, near] = [&server, &client].map(|notes| notes.counted.lock().unwrap().unwrap());
    assert!(near.lost.unwrap() > 0 && far.dropped > 0, "nothing was lost, so nothing was tested");
    assert_eq!((near.sent, near.sent - near.lost.unwrap()), (2000, far.taken));
    let [Row::Bandwidth(came)] = server.rows.lock().unwrap()[..] else { panic!() };
    let [Row::Bandwidth(went)] = client.rows.lock().unwrap()[..] else { panic!() };
    assert_eq!((came.iterations, went.iterations), (far.taken, 2000));
}

#[test]
fn both_ends_send_over_unreliable_connections_and_neither_waits_for_what_was_lost() {
    let options = Options {
        iterations: 2000,
        size: 64,
        rx_depth: 1,
        tx_depth: 1000,
        bidirectional: true,
        ..unreliable(options(Verb::Send, Metric::Bandwidth))
    };
    let (server, client) = noted(&options);
    let [far, near] = [&server, &client].map(|notes| notes.counted.lock().unwrap().unwrap());
    assert!(near.lost.unwrap() + far.lost.unwrap() > 0, "nothing was lost, so nothing was tested");
    assert_eq!((near.taken, far.taken), (far.sent - far.lost.unwrap(), near.sent - near.lost.unwrap()));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let of = |verb, metric| Options::new(Test { verb, metric });
    let inline = Some(u32::try_from(INLINE_MAX).unwrap() + 1);
    let wrong = [
        Options { size: 4, ..of(Verb::Atomic { swap: false }, Metric::Latency) },
        Options { queue_pairs: 2, ..of(Verb::Send, Metric::Latency) },
        Options { size: 0, ..of(Verb::Send, Metric::Bandwidth) },
        Options { iterations: 4, ..of(Verb::Send, Metric::Bandwidth) },
        Options { all_sizes: true, ..of(Verb::Atomic { swap: true }, Metric::Bandwidth) },
        Options { cq_mod: 2, ..of(Verb::Write, Metric::Latency) },
        Options { rate_limit: Some(RateLimit::Gbits(1.0)), ..of(Verb::Read, Metric::Latency) },
        Options { rate_limit: Some(RateLimit::Packets(0.0)), ..of(Verb::Read, Metric::Bandwidth) },
        Options { times: Some(Order::Sorted), ..of(Verb::Write, Metric::Bandwidth) },
        Options { inline, ..of(Verb::Write, Metric::Bandwidth) },
        Options { inline: Some(8), ..of(Verb::Read, Metric::Bandwidth) },
        Options { tos: 1, ..of(Verb::Write, Metric::Bandwidth) },
        Options { service: Service::Ud, ..of(Verb::Send, Metric::Bandwidth) },
        unreliable(of(Verb::Read, Metric::Latency)),
        unreliable(of(Verb::Atomic { swap: false }, Metric::Bandwidth)),
        unreliable(of(Verb::Atomic { swap: true }, Metric::Latency)),
        unreliable(Options { all_sizes: true, ..of(Verb::Send, Metric::Latency) }),
        unreliable(Options { window: Some(1 << 18), ..of(Verb::Write, Metric::Bandwidth) }),
        unreliable(Options {
            law: Law::from_settings("timely", &[], BitsPerSec::from_gbps(100)).ok(),
            ..of(Verb::Write, Metric::Bandwidth)
        }),
    ];
    for options in wrong {
        // What is not refused is a server, and would wait for ever.
        let stopped = Notes { stop: AtomicBool::new(true), ..Notes::default() };
        let done = perf::run(&options, &stopped);
        assert!(matches!(done, Err(PerfError::Options(_))), "{options:?}");
    }
}
