//! In the steady state no packet costs an allocation, and a queue pair in order costs at most 210 octets.
//!
//! One test alone: the counters of the allocator are the process's.
#![allow(unsafe_code, reason = "a counting allocator is an allocator")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "a test that does not fit its engine may panic"
)]

use roci_transport::{
    Access, Arrival, Engine, EngineConfig, Operation, Pd, QpConfig, Reaction, RecvRequest, SendRequest, Tail,
};
use roci_units::{Instant, Qpn, Span};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static OCTETS: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call is handed on to the system's allocator with the caller's own arguments; the counters beside it
// touch no memory of the caller's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        OCTETS.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        OCTETS.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above, hence from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn octets() -> i64 {
    OCTETS.load(Ordering::Relaxed)
}

const MTU: u32 = 1024;

struct Ends {
    client: Engine,
    server: Engine,
    key: u32,
    now: Instant,
    flows: u32,
}

impl Ends {
    fn new(flows: u32) -> Self {
        let mut ends = Self {
            client: Engine::new(EngineConfig::default()),
            server: Engine::new(EngineConfig::default()),
            key: 0,
            now: Instant::ZERO,
            flows,
        };
        for engine in [&mut ends.client, &mut ends.server] {
            (ends.key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
            for index in 0..flows {
                let qpn = Qpn::new(2 + index);
                engine.create_qp(QpConfig { qpn: Some(qpn), peer: qpn, ..QpConfig::default() }).unwrap();
            }
        }
        ends
    }

    /// Posts one message of each kind on each flow and carries them out, with `lost` of every 64 packets lost.
    fn round(&mut self, lost: u64) {
        let rkey = self.key;
        for index in 0..self.flows {
            let qpn = Qpn::new(2 + index);
            let recv = RecvRequest { id: 9, address: 0, length: 4 * MTU, lkey: 0 };
            self.server.post_recv(qpn, recv).unwrap();
            for operation in [
                Operation::Write { va: 0, rkey, tail: Tail::Plain },
                Operation::Send(Tail::Plain),
                Operation::Read { va: 0, rkey },
            ] {
                let request = SendRequest {
                    id: 1,
                    operation,
                    length: 3 * MTU,
                    address: 0,
                    lkey: 0,
                    solicited: false,
                    signaled: true,
                    fence: false,
                };
                self.client.post_send(self.now, qpn, &request).unwrap();
            }
        }
        self.exchange(lost);
    }

    fn exchange(&mut self, lost: u64) {
        let mut reaction = Reaction::default();
        let mut count = 0u64;
        loop {
            let mut idle = true;
            for to_server in [true, false] {
                self.now += Span::from_nanos(100);
                let (from, to) = if to_server {
                    (&mut self.client, &mut self.server)
                } else {
                    (&mut self.server, &mut self.client)
                };
                let Some(segment) = from.poll_notice().or_else(|| from.transmit(self.now)) else { continue };
                idle = false;
                count += 1;
                if count * lost % 64 < lost {
                    continue;
                }
                let arrival = Arrival { header: &segment.header, path: 0, ce: false, words: &[], hops: &[] };
                to.receive(self.now, &arrival, &mut reaction);
                for reply in [reaction.reply, reaction.notice].into_iter().flatten() {
                    let arrival =
                        Arrival { header: &reply.header, path: 0, ce: false, words: &[], hops: &[] };
                    from.receive(self.now, &arrival, &mut Reaction::default());
                }
                while self.client.poll_completion().is_some() || self.server.poll_completion().is_some() {}
            }
            if idle {
                let wakes = [self.client.next_wakeup(), self.server.next_wakeup()];
                let Some(wake) = wakes.into_iter().flatten().min() else { return };
                self.now = self.now.max(wake);
                self.client.wake(self.now);
                self.server.wake(self.now);
            }
        }
    }
}

#[test]
fn packets_allocate_nothing_and_queue_pairs_little() {
    // QP state in order: the allocator's octets for N connected queue pairs over N.
    for count in [1000u32, 1024, 1025, 1500, 4096, 10_000] {
        let before = octets();
        let mut engine = Engine::new(EngineConfig::default());
        for index in 0..count {
            let qpn = Qpn::new(2 + index);
            engine.create_qp(QpConfig { qpn: Some(qpn), peer: qpn, ..QpConfig::default() }).unwrap();
        }
        let each = (octets() - before) as f64 / f64::from(count);
        println!("{count} queue pairs: {each:.1} octets each");
        assert!(each <= 210.0, "{each} octets for each of {count}");
    }

    // In order, and again with losses: after rounds that warm the slabs, none allocates.
    for lost in [0, 3] {
        let mut ends = Ends::new(64);
        for _ in 0..30 {
            ends.round(lost);
        }
        let before = CALLS.load(Ordering::Relaxed);
        for _ in 0..20 {
            ends.round(lost);
        }
        let calls = CALLS.load(Ordering::Relaxed) - before;
        assert_eq!(calls, 0, "allocations with {lost} of 64 packets lost");
    }
}
