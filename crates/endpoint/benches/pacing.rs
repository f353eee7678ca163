//! How exactly a queue pair keeps a rate over UDP sockets on the loopback interface, from 10 Mb/s to what the path has.
//!
//! `cargo bench -p roci-endpoint --bench pacing`. Both ends run on one thread. Goal: 2 % on a machine with nothing else to
//! do; how long others had the processor is told, and only what cannot be made up for is taken off. Beyond the path's
//! limit, measured first and unpaced, no rate is asked for. Then many queue pairs share nine tenths of what as many of them have unpaced.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench")]
#![allow(clippy::cast_precision_loss, reason = "reports")]

use roci_control::Law;
use roci_endpoint::{
    Access, CompletionQueue, Device, DeviceConfig, MemoryRegion, Mtu, Progress, ProtectionDomain, QueuePair,
    RemoteMemory, SendWr,
};
use roci_units::BitsPerSec;
use std::time::{Duration, Instant};

const MESSAGE: usize = 64 << 10;
const DEPTH: usize = 8;
/// What a pacer makes up for.
const BURST: Duration = Duration::from_millis(20);
const RATES: [&str; 12] = [
    "10Mb/s", "20Mb/s", "50Mb/s", "100Mb/s", "200Mb/s", "500Mb/s", "1Gb/s", "2Gb/s", "5Gb/s", "10Gb/s",
    "20Gb/s", "40Gb/s",
];

struct End {
    device: Device,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    open: MemoryRegion,
    own: MemoryRegion,
    qp: QueuePair,
}

fn end(mtu: Mtu) -> End {
    let link = BitsPerSec::from_gbps(100);
    let settings = [("increase_timer", "1000s"), ("byte_counter", "0B"), ("rmin", "1Mb/s")];
    let laws = vec![Law::from_settings("dcqcn", &settings, link).unwrap()];
    let config = DeviceConfig { progress: Progress::Caller, link, laws, ..DeviceConfig::default() };
    let device = Device::open_with("127.0.0.1".parse().unwrap(), config).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let qp = pd.create_qp(&cq, &cq).path_mtu(mtu).timeout(18).build().unwrap();
    let open = pd.reg_mr(vec![0; MESSAGE], Access::ALL).unwrap();
    let own = pd.reg_mr(vec![0; DEPTH * MESSAGE], Access::LOCAL_WRITE).unwrap();
    End { device, pd, cq, open, own, qp }
}

/// Rate on the wire, in b/s of usable time; and the share of time that others had.
fn run(a: &End, b: &End, mtu: Mtu, free: &mut Vec<usize>, span: Duration) -> (f64, f64) {
    // Ethernet with preamble and gap, IPv4, UDP, BTH, ICRC; the sixteen octets of a message's RETH are small beside it.
    let frame = f64::from(mtu.octets()) + 82.0;
    let (begin, before, mut usable) = (Instant::now(), a.device.counters().sent, Duration::ZERO);
    let mut last = begin;
    while usable < span {
        while let Some(slot) = free.pop() {
            let slice = a.own.slice(slot * MESSAGE..(slot + 1) * MESSAGE).unwrap();
            a.qp.post_send(SendWr::write(slice, b.open.remote()).wr_id(slot as u64)).unwrap();
        }
        b.device.progress();
        while let Some(done) = a.cq.poll() {
            assert!(done.is_ok(), "{done:?}");
            free.push(usize::try_from(done.wr_id).unwrap());
        }
        let now = Instant::now();
        usable += (now - last).min(BURST);
        last = now;
    }
    let sent = (a.device.counters().sent - before) as f64;
    let others = 1.0 - usable.as_secs_f64() / begin.elapsed().as_secs_f64();
    (sent * frame * 8.0 / usable.as_secs_f64(), others)
}

/// Queue pairs between two devices, and who takes what they send.
struct Crowd {
    a: End,
    b: End,
    own: MemoryRegion,
    to: RemoteMemory,
    qps: Vec<QueuePair>,
    _taken: Vec<QueuePair>,
    free: Vec<usize>,
}

/// So many at once.
const CROWD: usize = 64;
/// Bits that a packet of 1024 octets takes on the wire.
const WIRE: f64 = 1106.0 * 8.0;
/// Octets of a message of theirs.
const SHORT: usize = 32 << 10;

impl Crowd {
    fn new(mtu: Mtu) -> Self {
        let (a, b) = (end(mtu), end(mtu));
        let make = |end: &End| {
            (0..CROWD)
                .map(|_| end.pd.create_qp(&end.cq, &end.cq).path_mtu(mtu).timeout(18).build().unwrap())
                .collect::<Vec<_>>()
        };
        let (qps, taken) = (make(&a), make(&b));
        for (near, far) in qps.iter().zip(&taken) {
            near.connect(far.info()).unwrap();
            far.connect(near.info()).unwrap();
        }
        let to = b.open.remote();
        let own = a.pd.reg_mr(vec![0; 4 * CROWD * SHORT], Access::LOCAL_WRITE).unwrap();
        Self { a, b, own, to, qps, _taken: taken, free: (0..4 * CROWD).collect() }
    }

    /// Has them send at so many b/s together, from a half of the mean to one and a half; gives their rates.
    fn pace(&self, total: f64) -> Vec<f64> {
        let mean = total / CROWD as f64;
        let rates = (0..CROWD).map(|n| (mean * (0.5 + n as f64 / (CROWD - 1) as f64) / 1e3).round());
        let set = rates.zip(&self.qps).map(|(kbps, qp)| {
            qp.set_register("rc", &format!("{kbps}kb/s")).unwrap();
            kbps * 1e3
        });
        set.collect()
    }

    /// Packets that each has sent, and the seconds that a pacer can make use of.
    fn run(&mut self, span: Duration) -> (Vec<u64>, f64) {
        let sent = |crowd: &Self| crowd.qps.iter().map(|qp| qp.counters().packets).collect::<Vec<_>>();
        let (before, mut usable, mut last) = (sent(self), Duration::ZERO, Instant::now());
        while usable < span {
            while let Some(slot) = self.free.pop() {
                let slice = self.own.slice(slot * SHORT..(slot + 1) * SHORT).unwrap();
                let of = slot % CROWD;
                self.qps[of].post_send(SendWr::write(slice, self.to).wr_id(slot as u64)).unwrap();
            }
            self.b.device.progress();
            while let Some(done) = self.a.cq.poll() {
                assert!(done.is_ok(), "{done:?}");
                self.free.push(usize::try_from(done.wr_id).unwrap());
            }
            let now = Instant::now();
            usable += (now - last).min(BURST);
            last = now;
        }
        let sent = sent(self).iter().zip(&before).map(|(now, then)| now - then).collect();
        (sent, usable.as_secs_f64())
    }
}

fn main() {
    let mut crowd = Crowd::new(Mtu::Mtu1024);
    crowd.run(Duration::from_millis(200));
    let (sent, seconds) = crowd.run(Duration::from_millis(500));
    let unpaced = sent.iter().sum::<u64>() as f64 * WIRE / seconds;
    // Short runs cost more: what it has time for is what it sends of more than it has time for.
    crowd.pace(2.0 * unpaced);
    crowd.run(Duration::from_millis(200));
    crowd.pace(unpaced);
    crowd.run(Duration::from_millis(300));
    let (sent, seconds) = crowd.run(Duration::from_secs(1));
    let limit = sent.iter().sum::<u64>() as f64 * WIRE / seconds;
    println!(
        "{CROWD} queue pairs: {:.1} Gb/s unpaced, {:.1} Gb/s paced beyond the limit",
        unpaced / 1e9,
        limit / 1e9
    );
    for share in [0.5, 0.8, 0.9] {
        let rates = crowd.pace(share * limit);
        crowd.run(Duration::from_millis(300));
        let (sent, seconds) = crowd.run(Duration::from_secs(2));
        let off = |sent: u64, rate: f64| (sent as f64 * WIRE / seconds / rate - 1.0) * 100.0;
        let mut offs: Vec<f64> = sent.iter().zip(&rates).map(|(sent, rate)| off(*sent, *rate)).collect();
        offs.sort_by(f64::total_cmp);
        let all = off(sent.iter().sum(), rates.iter().sum());
        println!(
            "  {:.0} % of that: off by {:.2} to {:.2} %, together {all:.2} %",
            share * 100.0,
            offs[0],
            offs[CROWD - 1]
        );
    }
    drop(crowd);
    for mtu in [Mtu::Mtu1024, Mtu::Mtu4096] {
        let (a, b) = (end(mtu), end(mtu));
        a.qp.connect(b.qp.info()).unwrap();
        b.qp.connect(a.qp.info()).unwrap();
        let mut free = (0..DEPTH).collect();
        let (limit, _) = run(&a, &b, mtu, &mut free, Duration::from_millis(500));
        println!("MTU {}: the path's limit is {:.1} Gb/s on the wire", mtu.octets(), limit / 1e9);
        println!("{:>10} {:>12} {:>8} {:>14}", "asked", "kept, Mb/s", "off", "others had");
        for text in RATES {
            let asked = text.parse::<BitsPerSec>().unwrap().as_kbps() as f64 * 1e3;
            if asked > 0.9 * limit {
                break;
            }
            a.qp.set_register("rc", text).unwrap();
            run(&a, &b, mtu, &mut free, Duration::from_millis(200));
            let (kept, others) = run(&a, &b, mtu, &mut free, Duration::from_secs(1));
            let off = (kept / asked - 1.0) * 100.0;
            println!("{text:>10} {:>12.1} {off:>7.2}% {:>13.0}%", kept / 1e6, others * 100.0);
        }
    }
}
