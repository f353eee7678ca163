//! How exactly a queue pair keeps a rate over UDP sockets on the loopback interface, from 10 Mb/s to what the path has.
//!
//! `cargo bench -p roci-endpoint --bench pacing`. Both ends run on one thread. Goal: 2 % on a machine with nothing else to
//! do; how long others had the processor is told, and only what cannot be made up for is taken off. Beyond the path's
//! limit, measured first and unpaced, no rate is asked for.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench")]
#![allow(clippy::cast_precision_loss, reason = "reports")]

use roci_control::Law;
use roci_endpoint::{
    Access, CompletionQueue, Device, DeviceConfig, MemoryRegion, Mtu, Progress, QueuePair, SendWr,
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
    End { device, cq, open, own, qp }
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

fn main() {
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
