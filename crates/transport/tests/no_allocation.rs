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

use roci_control::{Hop, Law};
use roci_transport::{
    Access, Arrival, Counters, Deferral, Deferred, Engine, EngineConfig, Operation, Pd, QpConfig, Reaction,
    Recovery, RecvRequest, Resolution, Segment, SendRequest, Tail, Token,
};
use roci_units::{Instant, Qpn, Span};
use roci_wire::Layout as Headers;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
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

/// What queue pairs run.
struct Kind {
    law: &'static str,
    recovery: Recovery,
    layout: Headers,
    /// Whether decisions about losses are made elsewhere, and come late.
    late: bool,
}

/// Each law and each recovery at least once, the default first.
const KINDS: [Kind; 15] = [
    Kind { law: "dcqcn", recovery: Recovery::GoBackN, layout: Headers::Standard, late: false },
    Kind { law: "none", recovery: Recovery::GoBackN, layout: Headers::Standard, late: false },
    Kind { law: "dcqcn", recovery: Recovery::Irn, layout: Headers::Irn, late: false },
    Kind { law: "hpcc", recovery: Recovery::Irn, layout: Headers::Irn, late: false },
    Kind { law: "timely", recovery: Recovery::GoBackN, layout: Headers::Standard, late: false },
    Kind { law: "powertcp", recovery: Recovery::Irn, layout: Headers::Irn, late: false },
    Kind { law: "theta-powertcp", recovery: Recovery::Irn, layout: Headers::Irn, late: false },
    Kind { law: "swift", recovery: Recovery::Sack, layout: Headers::Irn, late: false },
    Kind { law: "dctcp", recovery: Recovery::Reno, layout: Headers::Irn, late: false },
    Kind { law: "nscc", recovery: Recovery::NewReno, layout: Headers::Irn, late: false },
    Kind { law: "none", recovery: Recovery::Srnic, layout: Headers::Srnic, late: false },
    Kind { law: "homa", recovery: Recovery::Irn, layout: Headers::Homa, late: false },
    Kind { law: "ndp", recovery: Recovery::Ndp, layout: Headers::Ndp, late: false },
    Kind { law: "dctcp", recovery: Recovery::Srnic, layout: Headers::Srnic, late: true },
    Kind { law: "none", recovery: Recovery::Irn, layout: Headers::Irn, late: true },
];

struct Ends {
    client: Engine,
    server: Engine,
    key: u32,
    now: Instant,
    flows: u32,
    /// Packets so far, of which some are lost and some marked.
    packets: u64,
    /// Decisions that are made elsewhere, and whether the client wants them.
    decisions: VecDeque<(bool, Token)>,
}

/// What the wire does: of every 64 packets so many are lost, and so many carry CE.
#[derive(Clone, Copy, Debug)]
struct Wire {
    lost: u64,
    marked: u64,
}

impl Ends {
    fn new(kind: &Kind, flows: u32) -> Self {
        let mut ends = Self {
            client: Engine::new(EngineConfig::default()),
            server: Engine::new(EngineConfig::default()),
            key: 0,
            now: Instant::ZERO,
            flows,
            packets: 0,
            decisions: VecDeque::new(),
        };
        for engine in [&mut ends.client, &mut ends.server] {
            (ends.key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
            let law =
                engine.add_law(Law::from_settings(kind.law, &[], EngineConfig::default().link).unwrap());
            for index in 0..flows {
                let qpn = Qpn::new(2 + index);
                let Kind { recovery, layout, late, .. } = *kind;
                let deferred = Deferred { recovery: late, ..Deferred::default() };
                let peer = qpn;
                let config =
                    QpConfig { qpn: Some(qpn), peer, law, recovery, layout, deferred, ..QpConfig::default() };
                engine.create_qp(config).unwrap();
            }
        }
        ends
    }

    /// Posts one message of each kind on each flow and carries them out.
    fn round(&mut self, wire: Wire) {
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
        self.exchange(wire);
    }

    fn exchange(&mut self, wire: Wire) {
        loop {
            let mut idle = true;
            for to_server in [true, false] {
                self.now += Span::from_nanos(100);
                let from = if to_server { &mut self.client } else { &mut self.server };
                let Some(segment) = from.poll_notice().or_else(|| from.transmit(self.now)) else { continue };
                idle = false;
                self.deliver(&segment, to_server, wire);
            }
            self.decide(idle);
            if idle && self.decisions.is_empty() {
                let wakes = [self.client.next_wakeup(), self.server.next_wakeup()];
                let Some(wake) = wakes.into_iter().flatten().min() else { return };
                self.now = self.now.max(wake);
                self.client.wake(self.now);
                self.server.wake(self.now);
            }
        }
    }

    /// Makes the oldest decision where many wait, or nothing else is left to do.
    fn decide(&mut self, idle: bool) {
        for (at_client, engine) in [(true, &mut self.client), (false, &mut self.server)] {
            while let Some(deferral) = engine.poll_deferral() {
                let Deferral::Recovery { token, .. } = deferral else { panic!("nothing else is deferred") };
                self.decisions.push_back((at_client, token));
            }
        }
        if (idle || self.decisions.len() > 8)
            && let Some((at_client, token)) = self.decisions.pop_front()
        {
            let engine = if at_client { &mut self.client } else { &mut self.server };
            engine.resolve(self.now, token, Resolution::Recovered);
        }
    }

    /// Brings a packet to its end, and what it is answered with back.
    fn deliver(&mut self, segment: &Segment, to_server: bool, wire: Wire) {
        self.packets += 1;
        let share = |of: u64| self.packets * of % 64 < of;
        if share(wire.lost) {
            return;
        }
        let ce = segment.ecn_capable && share(wire.marked);
        let hop = Hop::new(self.now, self.packets * 1_000, 5_000, 100_000_000);
        let mut reaction = Reaction::default();
        let ends = if to_server {
            [&mut self.server, &mut self.client]
        } else {
            [&mut self.client, &mut self.server]
        };
        let [to, from] = ends;
        arrive(to, self.now, segment, ce, hop, &mut reaction);
        let replies = [reaction.reply, reaction.notice];
        for reply in replies.iter().flatten() {
            arrive(from, self.now, reply, false, hop, &mut reaction);
        }
        while self.client.poll_completion().is_some() || self.server.poll_completion().is_some() {}
    }
}

fn arrive(engine: &mut Engine, now: Instant, segment: &Segment, ce: bool, hop: Hop, reaction: &mut Reaction) {
    let words = segment.words.as_ref().map_or(&[][..], |words| &words.words[..usize::from(words.len)]);
    let arrival = Arrival { ce, words, hops: &[hop], ..Arrival::new(&segment.header, 0) };
    engine.receive(now, &arrival, reaction);
}

#[test]
fn packets_allocate_nothing_and_queue_pairs_little() {
    // QP state in order: the allocator's octets for N connected queue pairs over N, whatever recovers their losses.
    for (index, kind) in KINDS.iter().enumerate() {
        if KINDS[..index].iter().any(|before| before.recovery == kind.recovery) {
            continue;
        }
        for count in [1000u32, 1024, 1025, 1500, 4096, 10_000] {
            let before = octets();
            let mut engine = Engine::new(EngineConfig::default());
            for index in 0..count {
                let qpn = Qpn::new(2 + index);
                let Kind { recovery, layout, .. } = *kind;
                let config = QpConfig { qpn: Some(qpn), peer: qpn, recovery, layout, ..QpConfig::default() };
                engine.create_qp(config).unwrap();
            }
            let each = (octets() - before) as f64 / f64::from(count);
            println!("{count} queue pairs with {:?}: {each:.1} octets each", kind.recovery);
            assert!(each <= 210.0, "{each} octets for each of {count} with {:?}", kind.recovery);
        }
    }

    // In order, in congestion and in loss: after rounds that warm the slabs, none allocates.
    for kind in &KINDS {
        let late = if kind.late { ", decided late" } else { "" };
        let what = format!("{} with {:?}{late}", kind.law, kind.recovery);
        for wire in [Wire { lost: 0, marked: 0 }, Wire { lost: 0, marked: 8 }, Wire { lost: 3, marked: 8 }] {
            let mut ends = Ends::new(kind, 48);
            for _ in 0..500 {
                ends.round(wire);
            }
            let (before, packets) = (CALLS.load(Ordering::Relaxed), ends.packets);
            for _ in 0..20 {
                ends.round(wire);
            }
            let calls = CALLS.load(Ordering::Relaxed) - before;
            let packets = ends.packets - packets;
            assert_eq!(calls, 0, "allocations in {packets} packets of {what}, {wire:?}");
            assert!(packets > 20 * 48, "{packets} packets of {what}, {wire:?}");
            let met = |count: fn(&Counters) -> u32| {
                let counters = |index: u32| ends.client.counters(Qpn::new(2 + index));
                (0..48u32).map(|index| u64::from(count(&counters(index)))).sum::<u64>()
            };
            assert_eq!(met(|met| met.retransmitted) > 0, wire.lost > 0, "losses of {what}, {wire:?}");
            let notified = kind.law == "dcqcn" && wire.marked > 0;
            assert_eq!(met(|met| met.cnps) > 0, notified, "congestion of {what}, {wire:?}");
        }
    }
}
