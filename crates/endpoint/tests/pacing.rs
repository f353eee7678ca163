//! What a paced queue pair makes of being driven late. How exactly it keeps rates is measured by the bench `pacing`, for a busy
//! machine would decide it here.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::disallowed_methods, reason = "tests")]

use roci_endpoint::{
    Access, CompletionQueue, Device, DeviceConfig, Law, MemoryRegion, Mtu, Progress, QueuePair, RemoteMemory,
    SendWr,
};
use roci_units::BitsPerSec;
use std::time::{Duration, Instant};

const MESSAGE: usize = 64 << 10;
const DEPTH: usize = 16;
/// Octets of a full packet on the wire: Ethernet with preamble and gap, IPv4, UDP, BTH, ICRC.
const PACKET: f64 = 1024.0 + 82.0;
const WARM: Duration = Duration::from_millis(300);
const RATES: [&str; 4] = ["10Mb/s", "20Mb/s", "100Mb/s", "1Gb/s"];
const OFF_MAX: f64 = 0.02;

/// A queue pair that always has something to send, and who takes it.
struct Flow {
    near: Device,
    far: Device,
    qp: QueuePair,
    cq: CompletionQueue,
    own: MemoryRegion,
    to: RemoteMemory,
    _taken: (QueuePair, MemoryRegion),
    free: Vec<usize>,
}

impl Flow {
    fn new(progress: Progress) -> Self {
        let link = BitsPerSec::from_gbps(100);
        // Nothing but the register changes the rate.
        let settings = [("increase_timer", "1000s"), ("byte_counter", "0B"), ("rmin", "1Mb/s")];
        let laws = vec![Law::from_settings("dcqcn", &settings, link).unwrap()];
        let config = DeviceConfig { progress, link, laws, ..DeviceConfig::default() };
        let open = || Device::open_with([127, 0, 0, 65].into(), config.clone()).unwrap();
        let (near, far) = (open(), open());
        let make = |device: &Device| {
            let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
            let qp = pd.create_qp(&cq, &cq).path_mtu(Mtu::Mtu1024).timeout(18).build().unwrap();
            (qp, pd.reg_mr(vec![0; DEPTH * MESSAGE], Access::ALL).unwrap(), cq)
        };
        let ((qp, own, cq), (taker, open, _)) = (make(&near), make(&far));
        qp.connect(taker.info()).unwrap();
        taker.connect(qp.info()).unwrap();
        let to = open.remote();
        Self { near, far, qp, cq, own, to, _taken: (taker, open), free: (0..DEPTH).collect() }
    }

    fn post(&mut self) {
        while let Some(slot) = self.free.pop() {
            let slice = self.own.slice(slot * MESSAGE..(slot + 1) * MESSAGE).unwrap();
            self.qp.post_send(SendWr::write(slice, self.to).wr_id(slot as u64)).unwrap();
        }
    }

    /// How far the mean rate over `time` is off what was asked for; `turn` keeps it going.
    fn off(&mut self, asked: &str, time: Duration, mut turn: impl FnMut(&mut Self)) -> f64 {
        self.qp.set_register("rc", asked).unwrap();
        let mut span = |flow: &mut Self, time| {
            let (begin, before) = (Instant::now(), flow.near.counters().sent);
            while begin.elapsed() < time {
                turn(flow);
            }
            let sent = (flow.near.counters().sent - before) as f64;
            sent * PACKET * 8.0 / begin.elapsed().as_secs_f64()
        };
        span(self, WARM);
        let kept = span(self, time);
        kept / (asked.parse::<BitsPerSec>().unwrap().as_kbps() as f64 * 1e3) - 1.0
    }
}

#[test]
fn who_looks_only_each_8_ms_keeps_the_rate_too() {
    let mut flow = Flow::new(Progress::Caller);
    for asked in RATES {
        let off = flow.off(asked, Duration::from_secs(1), |flow| {
            std::thread::sleep(Duration::from_millis(8));
            // Until there is nothing more to do at the moment.
            let mut quiet = 0;
            while quiet < 8 {
                flow.post();
                let before = flow.near.counters().sent;
                flow.far.progress();
                while let Some(done) = flow.cq.poll() {
                    assert!(done.is_ok(), "{done:?}");
                    flow.free.push(usize::try_from(done.wr_id).unwrap());
                }
                quiet = if flow.near.counters().sent == before { quiet + 1 } else { 0 };
            }
        });
        println!("{asked}: {off:.4}");
        // Nothing is made up for twice; what a busy machine takes beside the 8 ms may be lost.
        assert!(off < OFF_MAX && off > -0.25, "{asked} is off by {off:.4}");
    }
}
