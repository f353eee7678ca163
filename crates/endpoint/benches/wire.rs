//! What the endpoint makes of a loopback interface, beside what bare UDP sockets make of it, in interleaved rounds.
//!
//! `cargo bench -p roci-endpoint [-- throughput | icrc | latency | connections | crowds]`; `-- v6 4096 1048576 standard` is one line of
//! the first, `-- latency v6 one` one of the third. Over IPv6 the endpoint sends from connected sockets; *plain* is what it does
//! without them. Both ends run on one thread unless it says otherwise. Goals: throughput at least 60 % of bare sockets at a path MTU
//! of 4096 and 50 % at 1024, neither of which is met, the second by the ceiling printed beside; latency at most 1.3 times
//! theirs, not met either; 10 000 connections at least 90 % of 128.
#![allow(missing_docs, unsafe_code, clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench")]
#![allow(clippy::cast_precision_loss, reason = "reports")]

use bare::calls::Calls;
use bare::{AROUND, bare_pair, cpu_seconds};
use ceiling::Ceiling;
use roci_endpoint::{
    Access, CompletionQueue, Device, DeviceConfig, MemoryRegion, Mtu, Progress, QueuePair, RecvWr, SendWr,
    Slice,
};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod bare;
mod ceiling;
mod crowd;
// The endpoint's own CRC, so that the ceiling has the quickest there is.
#[path = "../src/io/fold.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the crate uses all of it")]
mod fold;
#[path = "../src/icrc.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the crate uses all of it")]
mod icrc;
mod io {
    pub(crate) use crate::fold;
}

/// Many and short: what else the machine does falls on all that is compared.
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(100);

/// The loopback interface's addresses.
const FAMILIES: [(&str, IpAddr); 2] =
    [("v4", IpAddr::V4(Ipv4Addr::LOCALHOST)), ("v6", IpAddr::V6(Ipv6Addr::LOCALHOST))];

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let named: Vec<String> = FAMILIES.map(|(name, _)| name.to_owned()).into();
    let families: Vec<_> = FAMILIES.into_iter().filter(|(name, _)| chosen(&wanted, &named, name)).collect();
    wanted.retain(|wanted| !named.contains(wanted));
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let narrows = |one: &String| one.parse::<usize>().is_ok() || FORMS.iter().any(|(form, _)| one == form);
    if wants("throughput") || wanted.iter().any(narrows) {
        throughput(&families, &wanted);
    }
    if wants("icrc") {
        crcs();
    }
    if wants("latency") {
        latency(&families, &wanted);
    }
    if wants("connections") {
        connections();
    }
    if wants("crowds") {
        crowd::crowds();
    }
}

/// What the ICRC costs, without anything else.
fn crcs() {
    println!("the ICRC of a packet, ns: computed where it lies, and while it is copied");
    println!("{:>6} {:>9} {:>9}", "octets", "computed", "copied");
    for octets in [1024, 4096] {
        let (data, mut copy) = (vec![7u8; 1 << 18], vec![0u8; 1 << 16]);
        let headers = [5u8; 12];
        let (mut computed, mut copied) = (Vec::new(), Vec::new());
        let mut crc = 0;
        for _ in 0..ROUNDS {
            const PACKETS: usize = 100_000;
            let mut time = |copies: bool| {
                let cpu = cpu_seconds();
                for (at, packet) in (0u32..).zip(0..PACKETS) {
                    let payload = &data[packet * octets % data.len()..][..octets];
                    crc ^= if copies {
                        let to = packet % (61_440 / octets) * (octets + AROUND);
                        icrc::copy_packet(at, &headers, 0, payload, &mut copy[to..to + octets])
                    } else {
                        icrc::update_packet(at, &headers, 0, payload)
                    };
                }
                (cpu_seconds() - cpu) / PACKETS as f64 * 1e9
            };
            computed.push(time(false));
            copied.push(time(true));
        }
        std::hint::black_box((crc, &copy));
        println!("{octets:>6} {:>9.1} {:>9.1}", median(computed), median(copied));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct End {
    device: Device,
    cq: CompletionQueue,
    region: MemoryRegion,
    own: MemoryRegion,
    qps: Vec<QueuePair>,
}

const REGION: usize = 4 << 20;

/// How the endpoint is set up, and where.
#[derive(Clone, Copy)]
struct Way {
    here: IpAddr,
    /// Without connected sockets.
    plain: bool,
    lone: bool,
}

fn end(way: Way, mtu: Mtu, qps: usize) -> End {
    let mut config = DeviceConfig { progress: Progress::Caller, ..DeviceConfig::default() };
    if way.plain {
        config.connected = 0;
    }
    let lone = way.lone;
    let device = Device::open_with(way.here, config).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let region = pd.reg_mr(vec![0; REGION], Access::ALL).unwrap();
    let own = pd.reg_mr(vec![1; REGION], Access::LOCAL_WRITE).unwrap();
    // A receiver's socket holds so much of all connections together.
    let window = u32::try_from(((4 << 20) / qps).clamp(1 << 16, 1 << 20)).unwrap();
    let builder = || pd.create_qp(&cq, &cq).path_mtu(mtu).window(window).timeout(15).lone_writes(lone);
    let make = || builder().build().unwrap();
    let qps = (0..qps).map(|_| make()).collect();
    End { device, cq, region, own, qps }
}

fn ends(way: Way, mtu: Mtu, qps: usize) -> (End, End) {
    let (a, b) = (end(way, mtu, qps), end(way, mtu, qps));
    for (here, there) in a.qps.iter().zip(&b.qps) {
        here.connect(there.info()).unwrap();
        there.connect(here.info()).unwrap();
    }
    (a, b)
}

/// WRITEs of `message` octets over all queue pairs in turn, `depth` outstanding in all; payload in Gb/s.
fn writes(a: &End, b: &End, message: usize, depth: usize) -> f64 {
    let slices: Vec<Slice> = (0..(REGION / message).min(depth))
        .map(|index| a.own.slice(index * message..(index + 1) * message).unwrap())
        .collect();
    let (mut posted, mut done) = (0, 0);
    let (begin, cpu) = (Instant::now(), cpu_seconds());
    let mut end = None;
    loop {
        if end.is_none() && begin.elapsed() >= ROUND {
            end = Some(posted);
        }
        if end == Some(done) {
            break;
        }
        while end.is_none() && posted < done + depth {
            // Long messages as `roci perf` posts them, what a queue pair has room for at once; those of many queue pairs in
            // turns.
            let room = if message >= 64 << 10 { done + depth - posted } else { 1 };
            let requests = (posted..posted + room).map(|number| {
                let slot = number % slices.len();
                SendWr::write(slices[slot].clone(), b.region.remote().plus((slot * message) as u64))
            });
            posted += a.qps[posted % a.qps.len()].post_sends(requests).unwrap();
        }
        b.device.progress();
        while let Some(completion) = a.cq.poll() {
            assert!(completion.is_ok(), "{completion:?}");
            done += 1;
        }
    }
    (done * message) as f64 * 8.0 / (cpu_seconds() - cpu) / 1e9
}

const MESSAGES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

/// How the packets of a WRITE are told apart: standard, or each a message of its own.
const FORMS: [(&str, bool); 2] = [("standard", false), ("lone", true)];

/// Of those named, or all where none is.
fn chosen(wanted: &[String], all: &[String], one: &str) -> bool {
    !all.iter().any(|one| wanted.contains(one)) || wanted.iter().any(|wanted| wanted == one)
}

fn throughput(families: &[(&str, IpAddr)], wanted: &[String]) {
    println!(
        "throughput of WRITEs, both ends on one thread, Gb/s of payload and CPU time; the ceiling has the"
    );
    println!("same packets with ICRC and placement, but no transport");
    println!(
        "{:>3} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>11} {:>9} {:>9}",
        "",
        "MTU",
        "message",
        "form",
        "bare",
        "ceiling",
        "ours",
        "of bare",
        "of ceiling",
        "ceil/bare",
        "of plain"
    );
    let names = |all: &[usize]| all.iter().map(usize::to_string).collect::<Vec<_>>();
    let (mtus, messages) = (names(&[4096, 1024]), names(&MESSAGES));
    let forms = FORMS.map(|(form, _)| form.to_owned());
    for &(family, here) in families {
        for mtu in [Mtu::Mtu4096, Mtu::Mtu1024] {
            if !chosen(wanted, &mtus, &mtu.octets().to_string()) {
                continue;
            }
            for message in MESSAGES {
                if !chosen(wanted, &messages, &message.to_string()) {
                    continue;
                }
                for (form, lone) in FORMS {
                    if chosen(wanted, &forms, form) {
                        print!("{family:>3} {:>6} {message:>9} {form:>9}", mtu.octets());
                        line(here, mtu, message, lone);
                    }
                }
            }
        }
    }
}

/// One line of the table.
fn line(here: IpAddr, mtu: Mtu, message: usize, lone: bool) {
    let octets = usize::from(mtu.octets());
    let depth = ((256 << 10) / message).max(2);
    let mut bare = bare_pair(here, Some(octets + AROUND));
    let mut ceiling = Ceiling::new(here, octets, message, depth, lone);
    let ways = [false, true].map(|plain| ends(Way { here, plain, lone }, mtu, 1));
    let mut rates: [Vec<f64>; 4] = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        rates[0].push(bare.blast(octets, message * depth));
        rates[1].push(ceiling.blast());
        for ((a, b), rates) in ways.iter().zip(&mut rates[2..]) {
            rates.push(writes(a, b, message, depth));
        }
    }
    let part = |one: usize, of: usize| {
        100.0 * median(rates[one].iter().zip(&rates[of]).map(|(one, of)| one / of).collect())
    };
    let parts = [part(2, 0), part(2, 1), part(1, 0), part(2, 3)];
    let [theirs, most, ours, _] = rates.map(median);
    println!(
        " {theirs:>8.1} {most:>8.1} {ours:>8.1} {:>7.0}% {:>10.0}% {:>8.0}% {:>8.0}%",
        parts[0], parts[1], parts[2], parts[3]
    );
    for (a, b) in &ways {
        report(a);
        report(b);
    }
}

fn report(end: &End) {
    let counters = end.device.counters();
    let lost = counters.unsent + counters.overflowed + counters.corrupt;
    let again: u64 = end.qps.iter().map(|qp| qp.counters().retransmitted).sum();
    if lost > 0 || again > 0 {
        println!("  ({lost} packets lost, {again} sent again)");
    }
}

const PING: usize = 64;

/// Microseconds of half a round trip, p50, of bare sockets.
fn bare_ping(here: IpAddr, two: bool) -> f64 {
    let bare = bare_pair(here, None);
    let turn = |from: &UdpSocket| loop {
        match from.recv(&mut [0; PING]) {
            Ok(_) => return true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !two {
                    return false;
                }
                std::hint::spin_loop();
            }
            Err(error) => panic!("{error}"),
        }
    };
    let data = [1; PING];
    if !two {
        return half_trips(|| {
            bare.from.send(&data).unwrap();
            while !turn(&bare.to) {}
            bare.to.send(&data).unwrap();
            while !turn(&bare.from) {}
        });
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if bare.to.recv(&mut [0; PING]).is_ok() {
                    bare.to.send(&data).unwrap();
                } else {
                    std::hint::spin_loop();
                }
            }
        });
        let half = half_trips(|| {
            bare.from.send(&data).unwrap();
            turn(&bare.from);
        });
        stop.store(true, Ordering::Relaxed);
        half
    })
}

fn half_trips(mut trip: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < ROUND {
        let start = Instant::now();
        trip();
        times.push(start.elapsed().as_secs_f64() * 1e6 / 2.0);
    }
    median(times)
}

struct Ping {
    end: End,
    slice: Slice,
}

impl Ping {
    fn new(end: End) -> Self {
        for slot in 0..64 {
            let buffer = end.own.buffer(1024 + slot * PING..1024 + (slot + 1) * PING).unwrap();
            end.qps[0].post_recv(RecvWr::new(buffer)).unwrap();
        }
        let slice = end.own.slice(0..PING).unwrap();
        Self { end, slice }
    }

    fn send(&self) {
        self.end.qps[0].post_send(SendWr::send(self.slice.clone()).unsignaled()).unwrap();
    }

    /// Whether a message has come.
    fn receive(&self) -> bool {
        let Some(completion) = self.end.cq.poll() else { return false };
        assert!(completion.is_ok(), "{completion:?}");
        self.end.qps[0].post_recv(RecvWr::new(completion.into_buffer().unwrap())).unwrap();
        true
    }
}

fn our_ping(here: IpAddr, plain: bool, two: bool) -> f64 {
    let (a, b) = ends(Way { here, plain, lone: false }, Mtu::Mtu1024, 1);
    let (a, b) = (Ping::new(a), Ping::new(b));
    if !two {
        // What another endpoint at the address was given and has not passed on is lost until its sender runs again.
        let turn = |to: &Ping, from: &Ping| {
            let mut looks = 0u32;
            while !to.receive() {
                looks += 1;
                if looks.is_multiple_of(1 << 14) {
                    from.end.device.progress();
                }
            }
        };
        return half_trips(|| {
            a.send();
            turn(&b, &a);
            b.send();
            turn(&a, &b);
        });
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if b.receive() {
                    b.send();
                } else {
                    std::hint::spin_loop();
                }
            }
        });
        let half = half_trips(|| {
            a.send();
            while !a.receive() {
                std::hint::spin_loop();
            }
        });
        stop.store(true, Ordering::Relaxed);
        half
    })
}

/// On how many threads the two ends are: whether on two.
const THREADS: [(&str, bool); 2] = [("one", false), ("two", true)];

fn latency(families: &[(&str, IpAddr)], wanted: &[String]) {
    let threads = THREADS.map(|(threads, _)| threads.to_owned());
    println!(
        "half a round trip of {PING} octets, p50 in µs, spinning; calls: bare sockets that make our system calls"
    );
    println!(
        "{:>3} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "", "bare", "calls", "ours", "plain", "of bare"
    );
    for &(family, here) in families {
        for (number, two) in THREADS {
            if !chosen(wanted, &threads, number) {
                continue;
            }
            let mut times: [Vec<f64>; 4] = [const { Vec::new() }; 4];
            let calls = Calls::new(here);
            for _ in 0..ROUNDS {
                times[0].push(bare_ping(here, two));
                if !two {
                    times[1].push(half_trips(|| [1, 0].into_iter().for_each(|to| calls.pass(to))));
                }
                times[2].push(our_ping(here, false, two));
                times[3].push(our_ping(here, true, two));
            }
            let ratio = median(times[0].iter().zip(&times[2]).map(|(t, o)| o / t).collect());
            let name = if two { "two threads" } else { "one thread" };
            let [theirs, calls, ours, plain] = times;
            let calls = if two { "-".to_owned() } else { format!("{:.2}", median(calls)) };
            let [theirs, ours, plain] = [theirs, ours, plain].map(median);
            println!("{family:>3} {name:>12} {theirs:>8.2} {calls:>8} {ours:>8.2} {plain:>8.2} {ratio:>8.2}");
        }
    }
}

fn connections() {
    let way = Way { here: FAMILIES[0].1, plain: false, lone: false };
    println!(
        "WRITEs over many connections in turn, both ends on one thread, path MTU 1024, Gb/s of payload and CPU time"
    );
    println!("{:>9} {:>8} {:>8} {:>8}   of 128", "message", "1", "128", "10000");
    let pairs: Vec<(End, End)> =
        [1, 128, 10_000].into_iter().map(|qps| ends(way, Mtu::Mtu1024, qps)).collect();
    for message in [1 << 10, 16 << 10] {
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for ((a, b), rates) in pairs.iter().zip(&mut rates) {
                rates.push(writes(a, b, message, (1 << 20) / message / 4));
            }
        }
        let kept = median(rates[1].iter().zip(&rates[2]).map(|(some, many)| many / some).collect());
        let [one, some, many] = rates.map(median);
        println!("{message:>9} {one:>8.2} {some:>8.2} {many:>8.2}   {:.0} %", kept * 100.0);
    }
    for (a, b) in &pairs {
        report(a);
        report(b);
    }
}
