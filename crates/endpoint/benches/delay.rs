//! The round trips that laws of delay measure between two endpoints over UDP sockets on the loopback interface, in layout `cc`, whose packets
//! bear times: `cargo bench -p roci-endpoint --bench delay`.
//!
//! At low load a WRITE of 1 KiB goes every 100 us, at middle load one of 64 KiB after the other, at full load 16 of them are posted. The sender polls,
//! and the other end has its thread.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench")]
#![allow(clippy::cast_precision_loss, reason = "reports")]

use roci_control::{Law, Value};
use roci_endpoint::{
    Access, CompletionQueue, Device, DeviceConfig, MemoryRegion, Mtu, QueuePair, RemoteMemory, SendWr,
};
use roci_transport::Recovery;
use roci_units::BitsPerSec;
use roci_wire::{Cc, Layout};
use std::time::{Duration, Instant};

const MESSAGE: usize = 64 << 10;
const SPAN: Duration = Duration::from_millis(500);

struct End {
    device: Device,
    cq: CompletionQueue,
    region: MemoryRegion,
    qp: QueuePair,
}

fn end(law: &str) -> End {
    let link = BitsPerSec::from_gbps(100);
    let config = DeviceConfig {
        link,
        laws: vec![Law::from_settings(law, &[], link).unwrap()],
        ..DeviceConfig::default()
    };
    let device = Device::open_with("127.0.0.1".parse().unwrap(), config).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let layout = Layout::Cc(Cc::new(true, false, 0).unwrap());
    let qp = pd.create_qp(&cq, &cq).path_mtu(Mtu::Mtu1024).timeout(18).recovery(Recovery::GoBackN, layout);
    let qp = qp.build().unwrap();
    let region = pd.reg_mr(vec![0; 16 * MESSAGE], Access::ALL).unwrap();
    End { device, cq, region, qp }
}

/// Keeps `depth` WRITEs of `octets` under way, each `gap` after the one before has ended; gives the round trips seen as they end, in us, and
/// the goodput in Gb/s.
fn run(near: &End, to: RemoteMemory, octets: usize, depth: usize, gap: Duration) -> (Vec<f64>, f64) {
    let mut free: Vec<usize> = (0..depth).collect();
    let (begin, mut trips, mut ended) = (Instant::now(), Vec::new(), 0usize);
    let mut due = begin;
    while begin.elapsed() < SPAN || free.len() < depth {
        while begin.elapsed() < SPAN
            && Instant::now() >= due
            && let Some(slot) = free.pop()
        {
            let slice = near.region.slice(slot * MESSAGE..slot * MESSAGE + octets).unwrap();
            near.qp.post_send(SendWr::write(slice, to).wr_id(slot as u64)).unwrap();
        }
        while let Some(done) = near.cq.poll() {
            assert!(done.is_ok(), "{done:?}");
            free.push(usize::try_from(done.wr_id).unwrap());
            ended += 1;
            due = Instant::now() + gap;
            if let Some(Value::Time(rtt)) = near.qp.register("rtt") {
                trips.push(rtt.as_ps() as f64 / 1e6);
            }
        }
    }
    trips.sort_by(f64::total_cmp);
    (trips, (ended * octets) as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e9)
}

fn main() {
    println!("{:>8} {:>8} {:>10} {:>10} {:>10} {:>10}", "law", "load", "mean, us", "median", "99 %", "Gb/s");
    for law in ["swift", "timely"] {
        let (near, far) = (end(law), end(law));
        near.qp.connect(far.qp.info()).unwrap();
        far.qp.connect(near.qp.info()).unwrap();
        for (load, octets, depth, gap) in
            [("low", 1 << 10, 1, 100), ("middle", MESSAGE, 1, 0), ("full", MESSAGE, 16, 0)]
        {
            let (trips, rate) = run(&near, far.region.remote(), octets, depth, Duration::from_micros(gap));
            let mean = trips.iter().sum::<f64>() / trips.len() as f64;
            let at = |percent: usize| trips[(trips.len() - 1) * percent / 100];
            println!("{law:>8} {load:>8} {mean:>10.1} {:>10.1} {:>10.1} {rate:>10.2}", at(50), at(99));
        }
        assert!(far.device.counters().received > 0);
    }
}
