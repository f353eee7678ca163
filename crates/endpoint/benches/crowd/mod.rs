//! Many queue pairs that all ask for something at once, at one end with a receive buffer that does not hold all of it.

use crate::{ROUNDS, median};
use roci_endpoint::{Access, CompletionQueue, Device, DeviceConfig, MemoryRegion, QueuePair, SendWr};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

struct Crowd {
    cq: CompletionQueue,
    qps: Vec<QueuePair>,
    /// What peers may read and write, and where what is read comes.
    open: MemoryRegion,
    own: MemoryRegion,
}

impl Crowd {
    fn new(qps: usize, message: usize, read_room: Option<u32>) -> Self {
        let config = DeviceConfig { read_room, ..DeviceConfig::default() };
        let device = Device::open_with(IpAddr::V4(Ipv4Addr::LOCALHOST), config).unwrap();
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let builder = || pd.create_qp(&cq, &cq).timeout(14);
        let qps: Vec<_> = (0..qps).map(|_| builder().build().unwrap()).collect();
        let open = pd.reg_mr(vec![1; message], Access::ALL).unwrap();
        let own = pd.reg_mr(vec![0; message * qps.len()], Access::LOCAL_WRITE).unwrap();
        Self { cq, qps, open, own }
    }

    fn again(&self) -> u64 {
        self.qps.iter().map(|qp| qp.counters().retransmitted).sum()
    }
}

/// One request of each queue pair, `times` times over; seconds, or `None` where one failed.
fn round(a: &Crowd, b: &Crowd, message: usize, reads: bool, times: usize) -> Option<f64> {
    let begin = Instant::now();
    let post = |index: usize| {
        let buffer = a.own.buffer(index * message..(index + 1) * message).unwrap();
        let remote = b.open.remote();
        let request = if reads { SendWr::read(buffer, remote) } else { SendWr::write(buffer, remote) };
        a.qps[index].post_send(request.wr_id(index as u64)).unwrap();
    };
    let mut left = vec![times; a.qps.len()];
    (0..left.len()).for_each(post);
    let mut open = left.len();
    while open > 0 {
        let done = a.cq.wait(Duration::from_secs(60)).expect("a completion");
        if !done.is_ok() {
            return None;
        }
        let index = usize::try_from(done.wr_id).unwrap();
        drop(done);
        left[index] -= 1;
        if left[index] > 0 {
            post(index);
        } else {
            open -= 1;
        }
    }
    Some(begin.elapsed().as_secs_f64())
}

/// READs and WRITEs of many queue pairs at once, with what READs ask for bounded as it is by default, and by nothing.
pub(crate) fn crowds() {
    println!(
        "requests of all queue pairs at once, an endpoint on each of two threads, Gb/s of payload, and packets that are"
    );
    println!(
        "sent again in a round; unbound: READs ask for whatever their queue pairs' windows let them. Zero: all retries of one"
    );
    println!("were spent, as many queue pairs whose packets are lost in a socket may");
    println!(
        "{:>6} {:>6} {:>9} {:>8} {:>9} {:>8} {:>9}",
        "", "QPs", "message", "ours", "again", "unbound", "again"
    );
    for reads in [true, false] {
        for (qps, message) in
            [(1, 64 << 10), (1, 1 << 20), (64, 64 << 10), (64, 1 << 20), (1000, 64 << 10), (1000, 256 << 10)]
        {
            let times = ((64 << 20) / (qps * message)).max(1);
            let ways =
                [None, Some(0)].map(|room| [Crowd::new(qps, message, room), Crowd::new(qps, message, room)]);
            for [a, b] in &ways {
                for (here, there) in a.qps.iter().zip(&b.qps) {
                    here.connect(there.info()).unwrap();
                    there.connect(here.info()).unwrap();
                }
            }
            let mut rates = [Vec::new(), Vec::new()];
            let mut failed = [false; 2];
            for _ in 0..ROUNDS {
                for (([a, b], rates), failed) in ways.iter().zip(&mut rates).zip(&mut failed) {
                    if !*failed && let Some(seconds) = round(a, b, message, reads, times) {
                        rates.push((qps * message * times) as f64 * 8.0 / seconds / 1e9);
                    } else {
                        *failed = true;
                    }
                }
            }
            let mut results = rates.into_iter().zip(failed);
            let [ours, unbound] = [(); 2].map(|()| match results.next() {
                Some((rates, false)) => median(rates),
                _ => 0.0,
            });
            let [again, most] = ways.map(|[a, b]| (a.again() + b.again()) / ROUNDS as u64);
            let name = if reads { "READ" } else { "WRITE" };
            println!("{name:>6} {qps:>6} {message:>9} {ours:>8.2} {again:>9} {unbound:>8.2} {most:>9}");
        }
    }
}
