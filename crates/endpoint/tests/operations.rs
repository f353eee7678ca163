//! Every operation between two endpoints, over a wire in memory and over UDP sockets, IPv4 and IPv6.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Pair, SIZE, connect, in_memory, over_udp, pattern};
use roci_endpoint::{
    Access, Backend, Change, CompletionKind, Device, DeviceConfig, Faults, INLINE_MAX, Layout, MemoryWire,
    Mtu, QpState, Recovery, RecvWr, SendWr, Status, Transition, WrError,
};

fn everything(pair: &Pair) {
    sends(pair);
    writes_and_reads(pair);
    atomics(pair);
}

fn sends(Pair { a, b, .. }: &Pair) {
    for (round, length) in [(1, 1), (2, 5), (3, 4096), (4, 4097), (5, 100_000), (6, 262_144)] {
        let data = pattern(round, length);
        b.qp.post_recv(RecvWr::new(b.own.buffer(0..300_000).unwrap()).wr_id(round)).unwrap();
        let mut buffer = a.own.buffer(0..length).unwrap();
        buffer.write(0, &data).unwrap();
        let wr = SendWr::send(buffer).wr_id(100 + round).imm(77);
        a.qp.post_send(wr).unwrap();
        let received = b.done();
        assert_eq!((received.wr_id, received.byte_len as usize), (round, length));
        assert_eq!((received.opcode, received.imm()), (CompletionKind::Recv, Some(77)));
        assert!(received.into_buffer().unwrap().as_slice().unwrap()[..length] == data);
        let sent = a.done();
        assert_eq!((sent.wr_id, sent.into_slices()[0].len()), (100 + round, length));
    }
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..64).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(b"inline")).unwrap();
    assert_eq!(&b.done().into_buffer().unwrap().to_vec()[..6], b"inline");
    a.done();
}

#[test]
fn completions_that_nobody_polls_are_all_kept_and_make_room_for_more_requests_meanwhile() {
    const MANY: u64 = 500;
    let Pair { a, b, .. } = in_memory(30, |qp| qp.max_send_wr(4));
    for number in 0..MANY {
        let request = || SendWr::write_inline(b"x", b.open.remote()).wr_id(number);
        while let Err(refused) = a.qp.post_send(request()) {
            assert_eq!(refused.error, WrError::QueueFull);
            std::thread::yield_now();
        }
    }
    let ended: Vec<u64> = (0..MANY).map(|_| a.done().wr_id).collect();
    assert!(ended.into_iter().eq(0..MANY));
    // One that says nothing when all is well leaves nothing here.
    a.qp.post_send(SendWr::write_inline(b"x", b.open.remote()).unsignaled()).unwrap();
    a.qp.post_send(SendWr::write_inline(b"y", b.open.remote()).wr_id(7)).unwrap();
    assert_eq!(a.done().wr_id, 7);
}

#[test]
fn what_a_run_carries_comes_whole_in_each_layout() {
    for (recovery, layout) in [
        (Recovery::GoBackN, Layout::Standard),
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Irn, Layout::Homa),
    ] {
        let pair = in_memory(9, |qp| qp.recovery(recovery, layout));
        for (round, length) in [(1, 1024), (2, 4097), (3, 100_000)] {
            let data = pattern(round, length);
            pair.b.qp.post_recv(RecvWr::new(pair.b.own.buffer(0..length).unwrap())).unwrap();
            let mut buffer = pair.a.own.buffer(0..length).unwrap();
            buffer.write(0, &data).unwrap();
            pair.a.qp.post_send(SendWr::send(buffer)).unwrap();
            let received = pair.b.done().into_buffer().unwrap().to_vec();
            assert!(received == data, "{layout:?}, {length}");
            pair.a.done();
        }
    }
}

fn writes_and_reads(Pair { a, b, .. }: &Pair) {
    for (round, length) in [(1, 3), (2, 1024), (3, 65_536), (4, SIZE)] {
        let data = pattern(10 + round, length);
        let mut buffer = a.own.buffer(0..length).unwrap();
        buffer.write(0, &data).unwrap();
        a.qp.post_send(SendWr::write(buffer, b.open.remote())).unwrap();
        a.done();
        let mut there = vec![0; length];
        b.open.read(0, &mut there).unwrap();
        assert!(there == data, "WRITE of {length}");
        a.qp.post_send(SendWr::read(a.own.buffer(0..length).unwrap(), b.open.remote())).unwrap();
        let read = a.done();
        assert_eq!((read.opcode, read.byte_len as usize), (CompletionKind::Read, length));
        assert!(read.into_buffer().unwrap().to_vec() == data, "READ of {length}");
    }
    b.qp.post_recv(RecvWr::empty().wr_id(5)).unwrap();
    a.qp.post_send(SendWr::write_inline(b"notice", b.open.remote().plus(9)).imm(42)).unwrap();
    let notice = b.done();
    assert_eq!((notice.wr_id, notice.opcode, notice.imm()), (5, CompletionKind::RecvWrite, Some(42)));
    let mut there = [0; 6];
    b.open.read(9, &mut there).unwrap();
    assert_eq!(&there, b"notice");
    a.done();
    // Pieces from here and there, to pieces here and there.
    let slices: Vec<_> = [0..10, 100..5000, 6000..6003]
        .map(|range| {
            let mut buffer = a.own.buffer(range.clone()).unwrap();
            buffer.write(0, &pattern(range.start as u64, range.len())).unwrap();
            buffer.freeze()
        })
        .to_vec();
    let whole: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
    let wr = SendWr::write(slices[0].clone(), b.open.remote()).gather(slices);
    a.qp.post_send(wr).unwrap();
    a.done();
    let buffers = vec![a.own.buffer(10_000..10_001).unwrap(), a.own.buffer(20_000..24_912).unwrap()];
    let first = a.own.buffer(30_000..30_001).unwrap();
    a.qp.post_send(SendWr::read(first, b.open.remote()).scatter(buffers)).unwrap();
    let back: Vec<u8> = a.done().into_buffers().iter().flat_map(|buffer| buffer.to_vec()).collect();
    assert!(back == whole);
}

fn atomics(Pair { a, b, .. }: &Pair) {
    let at = b.open.remote().plus(64);
    b.open.write(64, &100u64.to_ne_bytes()).unwrap();
    a.qp.post_send(SendWr::fetch_add(at, 11)).unwrap();
    assert_eq!(a.done().original, 100);
    a.qp.post_send(SendWr::compare_swap(at, 111, 5)).unwrap();
    assert_eq!(a.done().original, 111);
    a.qp.post_send(SendWr::compare_swap(at, 111, 6)).unwrap();
    assert_eq!((a.done().original, b.open.load(64).unwrap()), (5, 5));
}

#[test]
fn numbers_are_changed_at_once_by_peers_and_by_whose_they_are() {
    const EACH: u64 = 300;
    for Pair { a, b, .. } in [in_memory(8, |qp| qp), over_udp("127.0.0.1", |qp| qp)] {
        let (lock, count) = (b.open.remote(), b.open.remote().plus(8));
        std::thread::scope(|scope| {
            // A lock that both ends take by comparing and swapping, around what is no single step, and a number that both add to.
            scope.spawn(|| {
                for _ in 0..EACH {
                    while b.open.compare_swap(0, 0, 2).unwrap() != 0 {
                        std::thread::yield_now();
                    }
                    let seen = b.open.load(16).unwrap();
                    b.open.fetch_add(8, 1).unwrap();
                    b.open.store(16, seen + 1).unwrap();
                    assert_eq!(b.open.compare_swap(0, 2, 0).unwrap(), 2);
                }
            });
            let done = |request| {
                a.qp.post_send(request).unwrap();
                a.done()
            };
            for _ in 0..EACH {
                while done(SendWr::compare_swap(lock, 0, 1)).original != 0 {}
                let seen =
                    done(SendWr::read(a.own.buffer(0..8).unwrap(), lock.plus(16))).into_buffer().unwrap();
                let next = 1 + u64::from_ne_bytes(seen.to_vec().try_into().unwrap());
                done(SendWr::fetch_add(count, 1));
                done(SendWr::write_inline(&next.to_ne_bytes(), lock.plus(16)));
                assert_eq!(done(SendWr::compare_swap(lock, 1, 0)).original, 1);
            }
        });
        assert_eq!([0, 8, 16].map(|at| b.open.load(at).unwrap()), [0, 2 * EACH, 2 * EACH]);
    }
}

#[test]
fn every_operation_works_in_memory() {
    everything(&in_memory(1, |qp| qp));
}

#[test]
fn every_operation_works_over_udp() {
    everything(&over_udp("127.0.0.1", |qp| qp));
}

#[test]
fn every_operation_works_over_udp_and_ipv6() {
    everything(&over_udp("::1", |qp| qp));
}

#[test]
fn writes_in_messages_of_a_packet_are_writes_all_the_same() {
    let pair = over_udp("127.0.0.1", |qp| qp.path_mtu(Mtu::Mtu1024).lone_writes(true));
    everything(&pair);
    let Pair { a, b, .. } = &pair;
    let data = pattern(99, 10_000);
    let mut buffer = a.own.buffer(0..data.len()).unwrap();
    buffer.write(0, &data).unwrap();
    b.qp.post_recv(RecvWr::empty().wr_id(6)).unwrap();
    a.qp.post_send(SendWr::write(buffer, b.open.remote()).imm(43)).unwrap();
    let notice = b.done();
    assert_eq!((notice.wr_id, notice.opcode, notice.imm()), (6, CompletionKind::RecvWrite, Some(43)));
    let mut there = vec![0; data.len()];
    b.open.read(0, &mut there).unwrap();
    assert!(there == data);
    a.done();
    assert!(b.cq.poll().is_none(), "one notice");
}

#[test]
fn every_operation_works_over_raw_sockets() {
    // Over IPv4 and IPv6; and a raw socket understands what a UDP socket sends one by one, and the other way round.
    for address in ["127.0.0.41", "::1"] {
        let open = |backend| {
            let config = DeviceConfig { backend, ..DeviceConfig::default() };
            Device::open_with(address.parse().unwrap(), config)
        };
        let (a, b) = match (open(Backend::Raw), open(Backend::Raw)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(error), _) | (_, Err(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
                return;
            }
        };
        everything(&connect(&a, &b, |qp| qp.path_mtu(Mtu::Mtu1024)));
        assert_eq!(a.counters().corrupt + b.counters().corrupt, 0);
        let udp = open(Backend::Udp).unwrap();
        atomics(&connect(&a, &udp, |qp| qp));
        atomics(&connect(&udp, &a, |qp| qp));
    }
}

#[test]
fn a_write_that_leaves_its_region_fails_and_is_placed_in_part_only_where_it_is_many_messages() {
    for lone in [false, true] {
        let Pair { a, b, .. } = in_memory(3, |qp| qp.path_mtu(Mtu::Mtu1024).lone_writes(lone));
        let mut buffer = a.own.buffer(0..4096).unwrap();
        buffer.write(0, &[7; 4096]).unwrap();
        let at = SIZE - 2048;
        a.qp.post_send(SendWr::write(buffer, b.open.remote().plus(at as u64))).unwrap();
        assert_eq!(a.wait().status, Status::RemoteAccessError);
        let mut there = [0; 2048];
        b.open.read(at, &mut there).unwrap();
        assert_eq!(there.iter().all(|octet| *octet == 7), lone);
        assert_eq!(there.iter().all(|octet| *octet == 0), !lone);
    }
}

#[test]
fn requests_that_are_made_while_they_are_posted_may_ask_the_queue_pair_and_the_first_refused_says_how_many_were_posted()
 {
    let Pair { a, b, .. } = over_udp("127.0.0.1", |qp| qp);
    let at = b.open.remote();
    let asking = |_| {
        assert_eq!(a.qp.state(), QpState::ReadyToSend);
        SendWr::write_inline(&[1], at)
    };
    assert_eq!(a.qp.post_sends((0..40).map(asking)).unwrap(), 40);
    (0..40).for_each(|_| drop(a.done()));
    let long = [0; INLINE_MAX + 1];
    let requests = (0..40).map(|n| SendWr::write_inline(if n < 20 { &[1] } else { &long }, at));
    let refused = a.qp.post_sends(requests).unwrap_err();
    assert_eq!((refused.error, refused.posted), (WrError::Inline, 20));
    (0..20).for_each(|_| drop(a.done()));
}

#[test]
fn who_lends_the_iterator_posts_each_request_once_however_often_the_queue_is_full() {
    const REQUESTS: u64 = 100;
    let Pair { a, b, .. } = in_memory(6, |qp| qp.max_send_wr(7));
    let mut requests = (0..REQUESTS).map(|number| SendWr::fetch_add(b.open.remote(), 1).wr_id(number));
    let mut again = Vec::new();
    let mut posted = 0;
    let mut done = 0;
    while done < REQUESTS {
        // What came back goes before what was never taken.
        match a.qp.post_sends(std::mem::take(&mut again).into_iter().chain(requests.by_ref())) {
            Ok(count) => posted += count,
            Err(refused) => {
                assert_eq!(refused.error, WrError::QueueFull);
                posted += refused.posted;
                again.push(refused.request);
                again.extend(refused.rest);
            }
        }
        while done < posted as u64 {
            let completion = a.done();
            assert_eq!((completion.wr_id, completion.original), (done, done));
            done += 1;
        }
    }
    assert_eq!((posted as u64, b.open.load(0).unwrap()), (REQUESTS, REQUESTS));
}

#[test]
fn a_datagram_queue_pair_that_has_failed_is_led_back_without_a_peer() {
    const KEY: u32 = 7;
    let Pair { a, b, .. } = in_memory(7, |qp| qp);
    let [from, to] = [&a, &b].map(|end| end.pd.create_qp(&end.cq, &end.cq).datagrams(KEY).build().unwrap());
    for way in
        [Transition::Fail, Transition::Reset, Transition::Initialize, Transition::Receive, Transition::Send]
    {
        let change = Change { transition: Some(way), ..Change::default() };
        [&from, &to].into_iter().for_each(|qp| qp.modify(&change).unwrap());
    }
    to.post_recv(RecvWr::new(b.own.buffer(0..64).unwrap())).unwrap();
    from.post_send(SendWr::datagram_inline(b"back", to.info().address, to.qp_num(), KEY)).unwrap();
    assert_eq!(b.done().byte_len, 4);
}

#[test]
fn a_connection_that_has_failed_is_made_again_between_the_same_queue_pairs() {
    let Pair { a, b, .. } = in_memory(7, |qp| qp);
    for octet in 0..3 {
        a.qp.post_send(SendWr::write_inline(&[octet; 8], b.open.remote())).unwrap();
        assert!(a.done().is_ok());
        a.qp.post_send(SendWr::write_inline(&[9; 8], b.own.remote())).unwrap();
        assert_eq!(a.wait().status, Status::RemoteAccessError);
        for qp in [&a.qp, &b.qp] {
            for way in [Transition::Reset, Transition::Initialize] {
                qp.modify(&Change { transition: Some(way), ..Change::default() }).unwrap();
            }
        }
        a.qp.connect(b.qp.info()).unwrap();
        b.qp.connect(a.qp.info()).unwrap();
    }
}

#[test]
fn an_atomic_sees_what_was_written_before_it_in_the_same_run() {
    let Pair { a, b, .. } = over_udp("127.0.0.1", |qp| qp);
    // A WRITE of twelve octets and an atomic are packets of one length, which travel together.
    let at = b.open.remote().plus(64);
    let mut twelve = [0; 12];
    twelve[..8].copy_from_slice(&7u64.to_ne_bytes());
    a.qp.post_sends([SendWr::write_inline(&twelve, at), SendWr::fetch_add(at, 1)]).unwrap();
    a.done();
    assert_eq!((a.done().original, b.open.load(64).unwrap()), (7, 8));
}

#[test]
fn a_write_with_immediate_tells_its_whole_length_even_where_writes_are_many_messages() {
    for lone in [false, true] {
        let Pair { a, b, .. } = in_memory(4, |qp| qp.path_mtu(Mtu::Mtu1024).lone_writes(lone));
        for length in [8, 1024, 5000] {
            b.qp.post_recv(RecvWr::empty()).unwrap();
            let buffer = a.own.buffer(0..length).unwrap();
            a.qp.post_send(SendWr::write(buffer, b.open.remote()).imm(7)).unwrap();
            let received = b.done();
            assert_eq!((received.byte_len as usize, received.imm()), (length, Some(7)), "lone: {lone}");
            a.done();
        }
    }
}

#[test]
fn what_many_queue_pairs_read_at_once_is_not_lost_in_the_reader_s_socket() {
    const PAIRS: usize = 64;
    let address = "127.0.0.1".parse().unwrap();
    let (a, b) = (Device::open(address).unwrap(), Device::open(address).unwrap());
    let (ours, theirs) = (a.alloc_pd(), b.alloc_pd());
    let (cq, other) = (a.create_cq().unwrap(), b.create_cq().unwrap());
    let data = pattern(9, SIZE);
    let open = theirs.reg_mr(data.clone(), Access::ALL).unwrap();
    let own = ours.reg_mr(vec![0; PAIRS * SIZE], Access::LOCAL_WRITE).unwrap();
    let qps: Vec<_> = (0..PAIRS)
        .map(|index| {
            let here = ours.create_qp(&cq, &cq).timeout(18).build().unwrap();
            let there = theirs.create_qp(&other, &other).build().unwrap();
            here.connect(there.info()).unwrap();
            there.connect(here.info()).unwrap();
            let buffer = own.buffer(index * SIZE..(index + 1) * SIZE).unwrap();
            here.post_send(SendWr::read(buffer, open.remote())).unwrap();
            (here, there)
        })
        .collect();
    for _ in &qps {
        let read = cq.wait(common::WAIT).expect("a completion");
        assert!(read.is_ok(), "{read:?}");
        assert!(read.into_buffer().unwrap().as_slice().unwrap() == data);
    }
    assert_eq!(a.counters().overflowed, 0);
}

#[test]
fn a_read_longer_than_what_is_asked_for_at_once_comes_whole_and_ends_once() {
    const LENGTH: usize = (9 << 20) + 77;
    let wire = MemoryWire::new(31);
    let config = DeviceConfig {
        backend: Backend::Memory(wire.clone()),
        read_room: Some(1 << 20),
        ..DeviceConfig::default()
    };
    let [near, far] =
        ["10.0.0.1", "10.0.0.2"].map(|at| Device::open_with(at.parse().unwrap(), config.clone()).unwrap());
    let Pair { a, b, .. } = connect(&near, &far, |qp| qp.timeout(12));
    wire.set_faults(Faults { loss: 1, ..Faults::default() });
    let octets = pattern(31, LENGTH);
    let open = b.pd.reg_mr(octets.clone(), Access::REMOTE_READ).unwrap();
    let own = a.pd.reg_mr(vec![0; LENGTH], Access::LOCAL_WRITE).unwrap();
    // The parts do not end where the buffers do.
    let buffers = vec![own.buffer(0..3_000_001).unwrap(), own.buffer(3_000_001..LENGTH).unwrap()];
    let first = a.own.buffer(0..1).unwrap();
    a.qp.post_send(SendWr::read(first, open.remote()).scatter(buffers).wr_id(5)).unwrap();
    let done = a.done();
    assert_eq!((done.wr_id, done.byte_len as usize), (5, LENGTH));
    let heard: Vec<u8> = done.into_buffers().iter().flat_map(|buffer| buffer.to_vec()).collect();
    assert!(heard == octets);
    assert!(a.cq.poll().is_none());
    assert!(a.qp.counters().packets >= 18, "requests for half a MiB each: {:?}", a.qp.counters());
}
