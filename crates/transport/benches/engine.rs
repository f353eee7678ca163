//! What an engine operation costs: segment generation, acknowledgements, data received.
//!
//! `cargo bench -p roci-transport`. The goal is at most 10 ns for a segment with 2048 flows round robin and 15 ns for an
//! acknowledgement, 90 % of the rate of 128 flows with 10 240 and 50 % with 102 400, and below 50 ns for any operation at a
//! host. Beside them stands what the cache lines of a segment cost alone.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

mod support;

use core::cell::RefCell;
use divan::{Bencher, black_box, counter::ItemsCount};
use roci_transport::{Arrival, Engine, Grant, QpConfig, Reaction, Recovery, Segment, SendRequest};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Flags, Header, Layout, Opcode, Reth};
use support::{MESSAGE, MTU, ROUND, engine, turns, under_way, write};

fn main() {
    divan::main();
}

fn busy(flows: u32) -> Engine {
    let (mut engine, key) = engine(flows, QpConfig::default());
    for index in 0..flows {
        engine.post_send(Instant::ZERO, Qpn::new(2 + index), &write(key)).unwrap();
    }
    engine
}

/// The yardstick: what no engine can do without that makes a segment. Flows in turn, both lines of a queue pair that its
/// requester needs and the one of its request are read, one of them is written, and as many octets as a segment has are
/// handed over.
#[divan::bench(args = [1, 128, 1024, 2048, 10_240, 102_400], sample_count = 100, sample_size = 1)]
fn lines_alone(bencher: Bencher, flows: usize) {
    #[derive(Clone)]
    #[repr(align(64))]
    struct Line([u64; 8]);
    let mut queue_pairs = vec![[const { Line([1; 8]) }; 3]; flows];
    let requests = vec![Line([1; 8]); flows];
    let mut turn = 0;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            turn = if turn + 1 < flows { turn + 1 } else { 0 };
            let [requester, common, _] = &mut queue_pairs[turn];
            requester.0[0] += 1;
            let first = requester.0[0] + common.0[0] + requests[turn].0[0];
            black_box(&[first; size_of::<Segment>() / 8]);
        }
    });
}

/// One segment, flows in turn, as a caller takes it who has nothing to ask.
#[divan::bench(args = [1, 128, 1024, 2048, 10_240, 102_400], sample_count = 100, sample_size = 1)]
fn segment(bencher: Bencher, flows: u32) {
    let mut engine = under_way(flows, QpConfig::default());
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            black_box(&engine.transmit(Instant::ZERO).unwrap());
        }
    });
}

/// The same where segments are read where they were made, as the simulated NIC does: no copy of 152 octets.
#[divan::bench(args = [1, 128, 1024, 2048, 10_240, 102_400], sample_count = 100, sample_size = 1)]
fn segment_in_place(bencher: Bencher, flows: u32) {
    let mut engine = under_way(flows, QpConfig::default());
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            let take = |(): &mut (), segment: &Segment, _| _ = black_box(segment);
            engine.transmit_with(Instant::ZERO, 0xff, &mut (), take, take).unwrap();
        }
    });
}

/// One segment offered and then committed, as a NIC takes it that asks a law or waits for a grant in between.
#[divan::bench(args = [1, 128, 1024, 2048], sample_count = 100, sample_size = 1)]
fn segment_offered(bencher: Bencher, flows: u32) {
    let mut engine = under_way(flows, QpConfig::default());
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            let offer = engine.offer(Instant::ZERO, 1).unwrap();
            black_box(&engine.commit(Instant::ZERO, offer, Grant::Engine).unwrap());
        }
    });
}

/// One segment of selective repeat within its window, read where it was made: of IRN, and of the program SACK. An engine is used
/// until the windows are full, as one that runs is: one that was just made has its queue pairs far from the processor. What
/// acknowledgements that come meanwhile cost says [`segment_and_acknowledgement`].
#[divan::bench(args = [(Recovery::Irn, 1), (Recovery::Irn, 128), (Recovery::Irn, 1024), (Recovery::Irn, 2048),
    (Recovery::Sack, 1), (Recovery::Sack, 128), (Recovery::Sack, 1024), (Recovery::Sack, 2048)], sample_count = 100, sample_size = 1)]
fn segment_selective(bencher: Bencher, (recovery, flows): (Recovery, u32)) {
    const WINDOW: u16 = 1500;
    let config = QpConfig { recovery, layout: Layout::Irn, initial_window: WINDOW, ..QpConfig::default() };
    let round = if flows == 1 { 1024 } else { ROUND };
    let (engine, mut left) = (RefCell::new(under_way(flows, config)), 0);
    let renew = || {
        if left < round {
            *engine.borrow_mut() = under_way(flows, config);
            left = flows * u32::from(WINDOW - 2);
        }
        left -= round;
    };
    bencher.counter(ItemsCount::new(round)).with_inputs(renew).bench_local_values(|()| {
        let engine = &mut *engine.borrow_mut();
        for _ in 0..round {
            let take = |(): &mut (), segment: &Segment, _| _ = black_box(segment);
            engine.transmit_with(Instant::ZERO, 0xff, &mut (), take, take).unwrap();
        }
    });
}

/// An acknowledgement of each packet, flows in turn.
#[divan::bench(args = [1, 128, 1024, 2048])]
fn acknowledgement(bencher: Bencher, flows: u32) {
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| {
            let mut engine = busy(flows);
            for _ in 0..ROUND {
                engine.transmit(Instant::ZERO).unwrap();
            }
            engine
        })
        .bench_local_refs(|engine| {
            let mut reaction = Reaction::default();
            for (n, (flow, turn)) in (0..ROUND).zip(turns(flows)) {
                let mut header = Header::new(Opcode::ACKNOWLEDGE, Qpn::new(2 + flow), Psn::new(turn));
                header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
                let arrival = Arrival::new(&header, 0);
                engine.receive(Instant::ZERO + Span::from_nanos(u64::from(n)), &arrival, &mut reaction);
                black_box(&reaction);
            }
        });
}

/// A segment, and the acknowledgement of the one eight before it, flows in turn: what a sender does whose window is under way.
#[divan::bench(args = [(Recovery::GoBackN, 1), (Recovery::GoBackN, 128), (Recovery::GoBackN, 2048), (Recovery::Irn, 1),
    (Recovery::Irn, 128), (Recovery::Irn, 2048), (Recovery::Sack, 1), (Recovery::Sack, 128), (Recovery::Sack, 2048)],
    sample_count = 100, sample_size = 1)]
fn segment_and_acknowledgement(bencher: Bencher, (recovery, flows): (Recovery, u32)) {
    const BEHIND: u32 = 8;
    let layout = if recovery == Recovery::GoBackN { Layout::Standard } else { Layout::Irn };
    let config = QpConfig { recovery, layout, initial_window: 1500, ..QpConfig::default() };
    let mut engine = under_way(flows, config);
    let mut reaction = Reaction::default();
    let mut step = move || {
        let take = |(): &mut (), segment: &Segment, _| black_box(segment).header;
        let sent = engine.transmit_with(Instant::ZERO, 0xff, &mut (), take, take).unwrap();
        if sent.psn.get() >= BEHIND {
            let psn = sent.psn.minus(BEHIND);
            let mut header = Header::new(Opcode::ACKNOWLEDGE, sent.dest_qpn, psn);
            header.set_aeth(Aeth { syndrome: 0x1f, msn: 0 });
            header.set_trigger(psn);
            let arrival = Arrival::new(&header, 0);
            engine.receive(Instant::ZERO, &arrival, &mut reaction);
            black_box(&reaction);
        }
    };
    (0..2 * BEHIND * flows).for_each(|_| step());
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| (0..ROUND).for_each(|_| step()));
}

/// A data packet in order, each answered by an acknowledgement, flows in turn.
#[divan::bench(args = [1, 128, 1024, 2048])]
fn data(bencher: Bencher, flows: u32) {
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| engine(flows, QpConfig::default()))
        .bench_local_refs(|(engine, key)| {
            let mut reaction = Reaction::default();
            for (flow, turn) in turns(flows).take(ROUND as usize) {
                let opcode = if turn == 0 { Opcode::WRITE_FIRST } else { Opcode::WRITE_MIDDLE };
                let mut header = Header::new(opcode, Qpn::new(2 + flow), Psn::new(turn));
                header.payload = MTU;
                header.flags = Flags::ACK_REQUEST;
                header.set_reth(Reth { va: 0, rkey: *key, length: MESSAGE });
                let arrival = Arrival::new(&header, 0);
                engine.receive(Instant::ZERO, &arrival, &mut reaction);
                black_box(&reaction);
            }
        });
}

/// A whole exchange of one-packet messages: post, transmit, receive, acknowledge, complete.
#[divan::bench(args = [1, 128, 1024])]
fn message(bencher: Bencher, flows: u32) {
    bencher
        .counter(ItemsCount::new(ROUND))
        .with_inputs(|| (engine(flows, QpConfig::default()), engine(flows, QpConfig::default())))
        .bench_local_refs(|((client, key), (server, _))| {
            let mut reaction = Reaction::default();
            let now = Instant::ZERO;
            for n in 0..ROUND {
                let qpn = Qpn::new(2 + n % flows);
                client.post_send(now, qpn, &SendRequest { length: 64, ..write(*key) }).unwrap();
                let segment = client.transmit(now).unwrap();
                let arrival = |header| Arrival::new(header, 0);
                server.receive(now, &arrival(&segment.header), &mut reaction);
                let reply = reaction.reply.unwrap();
                client.receive(now, &arrival(&reply.header), &mut reaction);
                black_box(client.poll_completion());
            }
        });
}
