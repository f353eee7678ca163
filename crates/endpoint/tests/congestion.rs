//! Congestion control on the wire: marks become CNPs, laws are chosen per queue pair, rates are kept and shared.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{End, Pair, connect};
use roci_control::program::Options;
use roci_control::{Image, Law, Programmed};
use roci_endpoint::{
    Backend, Bottleneck, Device, DeviceConfig, Faults, MemoryWire, Mtu, QueuePair, QueuePairBuilder,
    QueuePairError, SendWr, congestion, control,
};
use roci_transport::Recovery;
use roci_units::BitsPerSec;
use roci_wire::{Cc, Layout};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Who drives is the test, so that nothing depends on which thread runs when.
fn open(wire: &MemoryWire, address: &str, link: BitsPerSec, laws: &[&[(&str, &str)]]) -> Device {
    let laws = laws.iter().map(|settings| Law::from_settings("dcqcn", settings, link).unwrap()).collect();
    let backend = Backend::Memory(wire.clone());
    let config = DeviceConfig { backend, link, laws, ..common::by_caller() };
    Device::open_with(address.parse().unwrap(), config).unwrap()
}

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// Tests that take the time have the processor one after the other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Octets of payload in each message.
const MESSAGE: usize = 16 << 10;
/// Octets on the wire for each of payload: 1024 of them have 82 around them.
const WIRE: f64 = 1106.0 / 1024.0;

/// Keeps a queue pair busy; counts what was acknowledged.
struct Flow<'a> {
    end: &'a End,
    qp: &'a QueuePair,
    to: &'a End,
    octets: u64,
}

impl<'a> Flow<'a> {
    fn begin(end: &'a End, to: &'a End) -> Self {
        let flow = Self { end, qp: &end.qp, to, octets: 0 };
        for _ in 0..8 {
            flow.post();
        }
        flow
    }

    fn post(&self) {
        let slice = self.end.own.slice(self.free()).unwrap();
        self.qp.post_send(SendWr::write(slice, self.to.open.remote())).unwrap();
    }

    /// Any part that is not lent.
    fn free(&self) -> std::ops::Range<usize> {
        let parts = (0..64).map(|part| part * MESSAGE..(part + 1) * MESSAGE);
        parts.into_iter().find(|part| self.end.own.buffer(part.clone()).is_ok()).unwrap()
    }

    fn go_on(&mut self) {
        while let Some(done) = self.end.cq.poll() {
            assert!(done.is_ok(), "{done:?}");
            self.octets += MESSAGE as u64;
            drop(done);
            self.post();
        }
    }
}

fn plain(qp: QueuePairBuilder) -> QueuePairBuilder {
    // Nothing is lost here: a timeout only says that the machine is busy.
    qp.path_mtu(Mtu::Mtu1024).timeout(18)
}

/// What a paced queue pair may make up for.
const BURST: Duration = Duration::from_millis(20);

/// What a run came to.
struct Ran {
    /// Octets of each flow.
    octets: Vec<u64>,
    /// Seconds by the clock.
    seconds: f64,
    /// Seconds that a pacer can make use of: of each time that the machine let others run for long, what can be made up for.
    usable: f64,
}

/// Runs flows for `span` of usable time.
fn run(flows: &mut [Flow<'_>], span: Duration) -> Ran {
    let before: Vec<u64> = flows.iter().map(|flow| flow.octets).collect();
    let (begin, mut usable) = (now(), Duration::ZERO);
    let mut last = begin;
    while usable < span {
        for flow in &mut *flows {
            flow.go_on();
            flow.to.device.progress();
        }
        let this = now();
        usable += (this - last).min(BURST);
        last = this;
    }
    let octets = flows.iter().zip(before).map(|(flow, before)| flow.octets - before).collect();
    Ran { octets, seconds: (last - begin).as_secs_f64(), usable: usable.as_secs_f64() }
}

#[test]
fn queue_pairs_run_dcqcn_unless_they_say_otherwise() {
    let wire = MemoryWire::new(1);
    let config = |wire: &MemoryWire| DeviceConfig {
        backend: Backend::Memory(wire.clone()),
        ..DeviceConfig::default()
    };
    let a = Device::open_with("10.0.0.1".parse().unwrap(), config(&wire)).unwrap();
    let b = Device::open_with("10.0.0.2".parse().unwrap(), config(&wire)).unwrap();
    wire.set_faults(Faults { mark: 1000, ..Faults::default() });
    for (law, slowed) in [(None, true), (Some(0), false)] {
        let build = |qp| match law {
            Some(law) => plain(qp).law(law),
            None => plain(qp),
        };
        let Pair { a, b, .. } = connect(&a, &b, build);
        let before = b.device.counters().cnps;
        for _ in 0..8 {
            a.qp.post_send(SendWr::write(a.own.slice(0..65_536).unwrap(), b.open.remote())).unwrap();
            a.done();
        }
        assert_eq!(a.qp.counters().cnps > 0, slowed, "law {law:?}");
        assert_eq!(b.device.counters().cnps > before, slowed, "law {law:?}");
        assert_eq!(a.qp.query().unwrap().credit.rate_kbps < 100_000_000, slowed, "law {law:?}");
    }
}

#[test]
fn the_gap_between_cnps_is_each_queue_pairs_own() {
    let wire = MemoryWire::new(1);
    let link = BitsPerSec::from_gbps(1);
    let laws: &[&[(&str, &str)]] = &[&[("cnp_gap", "20ms"), ("rmin", "50Mb/s")]];
    let (a, b) = (open(&wire, "10.0.0.1", link, laws), open(&wire, "10.0.0.2", link, laws));
    wire.set_faults(Faults { mark: 1000, ..Faults::default() });
    let pairs = [connect(&a, &b, plain), connect(&a, &b, plain)];
    let mut flows: Vec<_> = pairs.iter().map(|pair| Flow::begin(&pair.a, &pair.b)).collect();
    let begin = now();
    run(&mut flows, Duration::from_millis(300));
    let most = (now() - begin).as_millis() / 20 + 2;
    for pair in &pairs {
        let cnps = u128::from(pair.a.qp.counters().cnps);
        assert!((3..=most).contains(&cnps), "{cnps} CNPs, at most {most}");
    }
}

#[test]
fn two_senders_that_are_marked_come_to_fair_shares() {
    let _turn = turn();
    let wire = MemoryWire::new(1);
    let link = BitsPerSec::from_gbps(1);
    let laws: &[&[(&str, &str)]] = &[&[("rai", "4Mb/s"), ("rhai", "20Mb/s"), ("rmin", "5Mb/s")]];
    let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|at| open(&wire, at, link, laws));
    let bottleneck = Bottleneck { rate: BitsPerSec::from_mbps(400), kmin: 5000, kmax: 200_000, pmax: 10 };
    wire.set_bottleneck(c.address(), Some(bottleneck));
    let (one, other) = (connect(&a, &c, plain), connect(&b, &c, plain));
    // The first has the way for itself before the second comes.
    let mut flows = vec![Flow::begin(&one.a, &one.b)];
    run(&mut flows, Duration::from_millis(500));
    flows.push(Flow::begin(&other.a, &other.b));
    run(&mut flows, Duration::from_millis(1500));
    let ran = run(&mut flows, Duration::from_millis(2000));
    let rate = |octets: &u64| *octets as f64 * 8.0 * WIRE / ran.seconds / 1e6;
    let rates: Vec<f64> = ran.octets.iter().map(rate).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    let fairness = sum * sum / (2.0 * squares);
    assert!(fairness > 0.95, "{rates:?} Mb/s");
    // Time in which the machine did not let the senders run is no fault of theirs.
    let could = sum * ran.seconds / ran.usable;
    assert!(could > 240.0 && sum < 440.0, "{rates:?} Mb/s of 400, {could} while it ran");
    for end in [&one.a, &other.a] {
        assert!(end.qp.counters().cnps > 10);
        let alpha = end.qp.register("alpha").unwrap().to_string();
        assert_ne!(alpha, "0", "the registers tell why");
    }
}

#[test]
fn a_program_controls_each_queue_pair_and_its_context_can_be_read_and_written() {
    let wire = MemoryWire::new(9);
    let link = BitsPerSec::from_gbps(10);
    let firmware =
        |path: &Path| std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path));
    let open = |address: &str| {
        let laws = vec![congestion::law("firmware/dcqcn.elf", link, firmware).unwrap()];
        let config =
            DeviceConfig { backend: Backend::Memory(wire.clone()), link, laws, ..common::by_caller() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let Pair { a, b, .. } = connect(&open("10.0.0.1"), &open("10.0.0.2"), plain);
    assert_eq!(a.qp.law(), "program");
    let path = std::env::temp_dir().join(format!("roci-program-{}", std::process::id()));
    a.device.serve_control(&path).unwrap();
    let ask = |request: &str| control::ask(&path, request).unwrap().unwrap();
    let number = |text: &str| -> u64 {
        let digits: String =
            text.rsplit(' ').next().unwrap().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let qp = format!("{:#08x}", a.qp.qp_num().get());
    let rate = || a.qp.query().unwrap().credit.rate_kbps;
    assert!(ask("counters").contains(&format!("qp=\"{qp}\",law=\"dcqcn.elf\"}} ")), "{}", ask("counters"));
    let before = (ask("get"), rate());
    assert!(before.0.contains(&format!("{qp} dcqcn.elf allowed_rate unlimited\n")), "{}", before.0);
    // Every packet is marked: the program at b answers with CNPs, and the one at a slows down.
    wire.set_faults(Faults { mark: 1000, ..Faults::default() });
    let mut flows = [Flow::begin(&a, &b)];
    // A machine that lets others run for a while lets the rate recover as well.
    let is_slowed = (0..2000).any(|_| {
        run(&mut flows, Duration::from_millis(1));
        rate() < link.as_kbps() / 2
    });
    assert!(a.qp.counters().cnps > 0 && is_slowed, "{} kb/s", rate());
    let told = ask(&format!("get {qp}"));
    let word = |name: &str| {
        let line = told.lines().find(|line| line.contains(&format!(" dcqcn.elf {name} ")));
        number(line.unwrap_or_else(|| panic!("its context has {name}: {told}")))
    };
    assert!(word("alpha") > 0 && word("target") <= link.as_kbps().into(), "{told}");
    // The one word that no event changes.
    ask(&format!("set {qp} link 123456"));
    assert_eq!(number(ask(&format!("get {qp} link")).trim()), 123_456);
}

#[test]
fn a_program_that_lets_nothing_go_is_stopped_and_its_fallback_sends() {
    let wire = MemoryWire::new(9);
    let link = BitsPerSec::from_gbps(10);
    let refuses = include_bytes!("../../control/tests/images/refuses.elf");
    let open = |address: &str| {
        let laws = vec![congestion::law("refuses.elf", link, |_| Ok(refuses.to_vec())).unwrap()];
        let config =
            DeviceConfig { backend: Backend::Memory(wire.clone()), link, laws, ..common::by_caller() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let Pair { a, b, .. } = connect(&open("10.0.0.1"), &open("10.0.0.2"), plain);
    let mut flows = [Flow::begin(&a, &b)];
    let goes = (0..2000).any(|_| {
        run(&mut flows, Duration::from_millis(1));
        flows[0].octets > 0
    });
    assert!(goes, "nothing brings a packet back here");
    let [(name, tally)] = &a.device.programs()[..] else { panic!("one program") };
    assert_eq!((name.as_str(), tally.fallen(), tally.starved), ("refuses.elf", 1, 1));
    let fault = tally.first().unwrap();
    assert_eq!(fault.qpn, a.qp.qp_num().get(), "as on the wire");
    let fault = fault.to_string();
    assert!(fault.starts_with("send at ") && fault.contains("nothing in flight"), "{fault}");

    let path = std::env::temp_dir().join(format!("roci-fallen-{}", std::process::id()));
    a.device.serve_control(&path).unwrap();
    let ask = |request: &str| control::ask(&path, request).unwrap();
    let qp = format!("{:#08x}", a.qp.qp_num().get());
    let told = ask(&format!("get {qp}")).unwrap();
    assert!(told.starts_with(&format!("{qp} refuses.elf failed starved at 0x80")), "{told}");
    assert!(told.contains("send+0x") && told.contains("nothing in flight"), "{told}");
    // What it falls back to tells of itself, and nothing of the program is left.
    for line in ["state ReadyToSend", "mss 1KiB", "wmax 16MiB"] {
        assert!(told.contains(&format!("\n{qp} dctcp {line}\n")), "{line}: {told}");
    }
    assert_eq!(told.matches(" refuses.elf ").count(), 1, "{told}");
    assert_eq!(ask(&format!("get {qp} failed")).unwrap().lines().next(), told.lines().next());
    for name in ["window", "asked"] {
        let why = ask(&format!("set {qp} {name} 5")).unwrap_err();
        assert!(why.starts_with(&format!("{qp}: the program failed (starved at 0x80")), "{why}");
        assert!(why.ends_with(") and `dctcp` took over"), "{why}");
    }
    let why = ask("set all asked 5").unwrap_err();
    assert!(
        why.starts_with(&format!("nothing is set: refuses.elf failed with {qp} (starved at 0x80")),
        "{why}"
    );
    // Of all, it is written where the program still runs.
    let other = connect(&a.device, &b.device, plain).a;
    let told = ask("set all asked 5").unwrap();
    assert!(
        told.starts_with("asked is 5 on 1 queue pair now, and was ")
            && told.contains(&format!("\nthe others are set; refuses.elf failed with {qp} (starved at 0x80")),
        "{told}"
    );
    let other = format!("{:#08x}", other.qp.qp_num().get());
    assert_eq!(ask(&format!("get {other} asked")).unwrap(), format!("{other} refuses.elf asked 5\n"));
    let why = ask("set all asked much").unwrap_err();
    assert!(why.starts_with(&format!("{other}: ")), "a wrong value stays one: {why}");
}

/// The program that follows each ACK with a `LAW_7`, which the peer's answers with a `LAW_2`, and that one with a `LAW_3`.
fn talks() -> Law {
    let octets = include_bytes!("../../control/tests/images/talks.elf");
    let image = Image::new("talks.elf", octets, &Options::default()).unwrap();
    Law::Program(Box::new(Programmed::new(Arc::new(image), Law::None).unwrap()))
}

#[test]
fn a_law_runs_where_the_layout_brings_what_it_needs_and_is_refused_elsewhere() {
    let link = BitsPerSec::from_gbps(10);
    let native = |name| Law::from_settings(name, &[], link).unwrap();
    let config = |laws, wire: &MemoryWire| DeviceConfig {
        backend: Backend::Memory(wire.clone()),
        link,
        laws,
        ..DeviceConfig::default()
    };
    let cc = |words| Layout::Cc(Cc::new(false, false, words).unwrap());
    for (law, recovery, layout) in [
        (native("homa"), Recovery::Irn, Layout::Homa),
        (native("ndp"), Recovery::Ndp, Layout::Ndp),
        (talks(), Recovery::GoBackN, cc(1)),
        (native("hpcc"), Recovery::GoBackN, Layout::Cc(Cc::new(false, true, 0).unwrap())),
    ] {
        let wire = MemoryWire::new(7);
        let open =
            |last| Device::open_with([10, 0, 0, last].into(), config(vec![law.clone()], &wire)).unwrap();
        let (a, b) = (open(1), open(2));
        let (pd, cq) = (a.alloc_pd(), a.create_cq().unwrap());
        for (recovery, layout) in
            [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn), (Recovery::GoBackN, cc(0))]
        {
            let refused = pd.create_qp(&cq, &cq).recovery(recovery, layout).build().unwrap_err();
            assert!(matches!(refused, QueuePairError::Law(..)), "{refused}");
            pd.create_qp(&cq, &cq).recovery(recovery, layout).law(0).build().unwrap();
        }
        // Datagrams are of no law, as those of RDMA-CM.
        pd.create_qp(&cq, &cq).datagrams(1).build().unwrap();
        // It would crawl from timeout to timeout, each of 17 s.
        let Pair { a, b, .. } = connect(&a, &b, |qp| qp.recovery(recovery, layout).timeout(22));
        a.qp.post_send(SendWr::write(a.own.slice(0..common::SIZE).unwrap(), b.open.remote())).unwrap();
        a.done();
    }
}

#[test]
fn programs_send_each_other_packets_of_their_own() {
    const MESSAGES: u64 = 50;
    let wire = MemoryWire::new(5);
    let open = |address: &str, backend| {
        let config = DeviceConfig { backend, laws: vec![talks()], ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let in_memory = |address| open(address, Backend::Memory(wire.clone()));
    let over_udp = || open("127.0.0.1", Backend::Udp);
    // Layout `cc` has such packets, with the one word that the program says.
    let layout = Layout::Cc(Cc::new(false, false, 1).unwrap());
    for (a, b) in [(in_memory("10.0.0.1"), in_memory("10.0.0.2")), (over_udp(), over_udp())] {
        let Pair { a, b, .. } = connect(&a, &b, |qp| plain(qp).recovery(Recovery::GoBackN, layout));
        for _ in 0..MESSAGES {
            a.qp.post_send(SendWr::write(a.own.slice(0..MESSAGE).unwrap(), b.open.remote())).unwrap();
            a.done();
        }
        let words = || ["acks", "answers", "differ"].map(|word| a.qp.register(word).unwrap().to_string());
        let until = now() + common::WAIT;
        let [acks, answers, differ] = loop {
            let words = words().map(|word| word.parse::<u64>().unwrap());
            if words[0] == words[1] || now() > until {
                break words;
            }
            std::thread::yield_now();
        };
        assert!(acks >= MESSAGES && answers == acks, "{answers} answers to {acks}");
        assert_eq!(differ, 0, "what was said comes back as the peer's program changed it");
        // What nobody listens for, the LAW_3, costs the peer's program no event.
        let events = |end: &End| {
            let [(_, tally)] = &end.device.programs()[..] else { panic!("one program") };
            assert_eq!((tally.fallen(), tally.left_out), (0, 0), "{tally:?}");
            tally.events[0]
        };
        assert_eq!((events(&a), events(&b)), (acks + answers, acks));
        for counters in [&a, &b].map(|end| end.device.counters()) {
            assert_eq!((counters.malformed, counters.corrupt, counters.refused), (0, 0, 0), "{counters:?}");
        }
    }
}

#[test]
fn a_queue_pair_that_has_recovered_keeps_to_the_links_rate() {
    let _turn = turn();
    let wire = MemoryWire::new(1);
    let link = BitsPerSec::from_mbps(100);
    let laws: &[&[(&str, &str)]] = &[&[("rai", "50Mb/s")]];
    let (a, b) = (open(&wire, "10.0.0.1", link, laws), open(&wire, "10.0.0.2", link, laws));
    let Pair { a, b, .. } = connect(&a, &b, plain);
    let mut flow = Flow::begin(&a, &b);
    let rate = |flow: &Flow<'_>| flow.qp.query().unwrap().credit.rate_kbps;
    a.qp.set_register("rc", "50Mb/s").unwrap();
    assert_eq!(rate(&flow), 50_000);
    let begin = now();
    while rate(&flow) < link.as_kbps() && now() - begin < Duration::from_secs(20) {
        run(std::slice::from_mut(&mut flow), Duration::from_millis(20));
    }
    // What its time in the loop above saved up.
    run(std::slice::from_mut(&mut flow), BURST);
    let ran = run(std::slice::from_mut(&mut flow), Duration::from_millis(500));
    let bits = ran.octets[0] as f64 * 8.0 * WIRE;
    let most = link.as_kbps() as f64 * 1e3 * (ran.seconds + BURST.as_secs_f64());
    assert_eq!(rate(&flow), link.as_kbps());
    assert!(bits <= most * 1.05, "{:.0} Mb/s", bits / ran.seconds / 1e6);
}
