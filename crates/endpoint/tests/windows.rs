//! Memory windows: what a peer can do with their keys, and when.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{End, Pair, connect, in_memory};
use roci_endpoint::{
    Access, Change, CompletionKind, Device, DeviceConfig, MemoryRegion, MemoryWindow, PostError, QpState,
    QueuePairBuilder, RecvWr, RemoteMemory, SendWr, Status, Transition, WindowKind, WindowTarget, WrError,
};
use std::time::Duration;

const ALL: Access = Access::ALL;
const READ: Access = Access::REMOTE_READ;

/// A region of 4096 nines that peers reach by windows alone.
fn shut(end: &End) -> MemoryRegion {
    end.pd.reg_mr(vec![9; 4096], Access::LOCAL_WRITE | Access::BIND).unwrap()
}

/// Binds octets 1000 to 2000 and waits for that; gives what a peer has to know.
fn bind(end: &End, window: &MemoryWindow, region: &MemoryRegion, access: Access) -> RemoteMemory {
    let rkey = window.rkey() | 0x5a;
    end.qp
        .post_send(SendWr::bind(window, rkey, WindowTarget::new(region, 1000..2000, access)).wr_id(3))
        .unwrap();
    let bound = end.done();
    assert_eq!((bound.wr_id, bound.opcode, bound.byte_len), (3, CompletionKind::BindWindow, 0));
    RemoteMemory { address: region.addr() + 1000, rkey }
}

/// How a request ends.
fn status(end: &End, request: SendWr) -> Status {
    end.qp.post_send(request).unwrap();
    end.wait().status
}

/// A pair of which `b` has bound a window of `kind` to octets 1000 to 2000 of a region, for `access`.
fn bound(kind: WindowKind, access: Access) -> (Pair, MemoryWindow, MemoryRegion, RemoteMemory) {
    let pair = in_memory(1, |qp| qp);
    let (region, window) = (shut(&pair.b), pair.b.pd.alloc_mw(kind).unwrap());
    let there = bind(&pair.b, &window, &region, access);
    (pair, window, region, there)
}

const KINDS: [WindowKind; 2] = [WindowKind::Type1, WindowKind::Type2];

#[test]
fn a_peer_writes_reads_and_changes_what_a_window_opens() {
    for kind in KINDS {
        let (Pair { a, b: _b, .. }, _window, region, there) = bound(kind, ALL);
        assert_eq!(status(&a, SendWr::write_inline(&[1; 100], there)), Status::Success);
        assert_eq!(status(&a, SendWr::write(a.own.buffer(0..1000).unwrap(), there)), Status::Success);
        assert_eq!(status(&a, SendWr::write_inline(&[7; 8], there)), Status::Success);
        a.qp.post_send(SendWr::fetch_add(there, 1)).unwrap();
        assert_eq!(a.done().original, u64::from_ne_bytes([7; 8]));
        a.qp.post_send(SendWr::read(a.own.buffer(0..1000).unwrap(), there)).unwrap();
        let read = a.done().octets();
        let mut octets = vec![9; 4096];
        octets[1000..2000].fill(0);
        octets[1000..1008].copy_from_slice(&(u64::from_ne_bytes([7; 8]) + 1).to_ne_bytes());
        assert_eq!(read, octets[1000..2000]);
        let mut now = vec![0; 4096];
        region.read(0, &mut now).unwrap();
        assert_eq!(now, octets);
    }
}

#[test]
fn a_peer_does_nothing_beyond_a_window_nor_what_it_is_not_for() {
    type Request = fn(&End, RemoteMemory) -> SendWr;
    let before = |there: RemoteMemory| RemoteMemory { address: there.address - 1, ..there };
    let cases: [(Access, Request); 6] = [
        (ALL, |_, there| SendWr::write_inline(&[1; 8], there.plus(993))),
        (ALL, |a, there| SendWr::read(a.own.buffer(0..1001).unwrap(), there)),
        (ALL, |_, there| SendWr::fetch_add(there.plus(1000), 1)),
        (READ, |_, there| SendWr::write_inline(&[1; 8], there)),
        (READ, |_, there| SendWr::compare_swap(there, 0, 1)),
        (Access::REMOTE_WRITE, |a, there| SendWr::read(a.own.buffer(0..8).unwrap(), there)),
    ];
    for kind in KINDS {
        for (access, request) in cases {
            let (Pair { a, b: _b, .. }, _window, region, there) = bound(kind, access);
            assert_eq!(status(&a, request(&a, there)), Status::RemoteAccessError);
            assert_eq!(region.fetch_add(1000, 0).unwrap(), u64::from_ne_bytes([9; 8]));
        }
        let (Pair { a, b: _b, .. }, _window, _region, there) = bound(kind, ALL);
        assert_eq!(status(&a, SendWr::write_inline(&[1; 2], before(there))), Status::RemoteAccessError);
        // Nor with the key of the region itself, or with another one of the window.
        for key in [true, false] {
            let (Pair { a, b: _b, .. }, window, region, there) = bound(kind, ALL);
            let rkey = if key { region.rkey() } else { window.rkey() };
            let refused = status(&a, SendWr::write_inline(&[1], RemoteMemory { rkey, ..there }));
            assert_eq!(refused, Status::RemoteAccessError);
        }
    }
}

/// Another pair of queue pairs between the same ends, in the same domains.
fn another(Pair { a, b, .. }: &Pair) -> [roci_endpoint::QueuePair; 2] {
    let made = [a, b].map(|end| end.pd.create_qp(&end.cq, &end.cq).build().unwrap());
    made[0].connect(made[1].info()).unwrap();
    made[1].connect(made[0].info()).unwrap();
    made
}

#[test]
fn a_window_of_type_2_serves_its_queue_pair_alone_and_one_of_type_1_all_of_its_domain() {
    for (kind, expected) in KINDS.into_iter().zip([Status::Success, Status::RemoteAccessError]) {
        let (pair, _window, _region, there) = bound(kind, ALL);
        let [near, _far] = another(&pair);
        near.post_send(SendWr::write_inline(&[1; 8], there)).unwrap();
        assert_eq!(pair.a.wait().status, expected, "{kind:?}");
        assert_eq!(status(&pair.a, SendWr::write_inline(&[1; 8], there)), Status::Success);
    }
    // Nor one of another domain.
    let (pair, _window, _region, there) = bound(WindowKind::Type1, ALL);
    let pd = pair.b.pd.clone();
    let elsewhere = pair.b.device.alloc_pd().create_qp(&pair.b.cq, &pair.b.cq).build().unwrap();
    let near = pair.a.pd.create_qp(&pair.a.cq, &pair.a.cq).build().unwrap();
    near.connect(elsewhere.info()).unwrap();
    elsewhere.connect(near.info()).unwrap();
    near.post_send(SendWr::write_inline(&[1; 8], there)).unwrap();
    assert_eq!(pair.a.wait().status, Status::RemoteAccessError);
    drop(pd);
}

#[test]
fn a_window_that_is_bound_to_nothing_or_invalidated_or_gone_opens_nothing() {
    let ends: [fn(&Pair, &mut Option<MemoryWindow>, u32); 4] = [
        |pair, window, rkey| {
            let unbinds = SendWr::bind(window.as_ref().unwrap(), rkey, WindowTarget::nothing());
            assert_eq!(status(&pair.b, unbinds), Status::Success);
        },
        |pair, _, rkey| {
            pair.b.qp.post_send(SendWr::invalidate_local(rkey)).unwrap();
            assert_eq!(pair.b.done().opcode, CompletionKind::LocalInvalidate);
        },
        |pair, _, rkey| {
            pair.b.qp.post_recv(RecvWr::empty()).unwrap();
            pair.a.qp.post_send(SendWr::send_inline(&[]).invalidate(rkey)).unwrap();
            assert_eq!(pair.b.done().tail, roci_endpoint::Tail::Invalidate(rkey));
            pair.a.done();
        },
        |_, window, _| drop(window.take()),
    ];
    for (kind, end) in [(0, 0), (1, 1), (1, 2), (0, 3), (1, 3)] {
        let (pair, window, region, there) = bound(KINDS[kind], ALL);
        assert_eq!(status(&pair.a, SendWr::write_inline(&[1; 8], there)), Status::Success);
        ends[end](&pair, &mut Some(window), there.rkey);
        assert_eq!(status(&pair.a, SendWr::write_inline(&[2; 8], there)), Status::RemoteAccessError);
        assert_eq!(region.fetch_add(1000, 0).unwrap(), u64::from_ne_bytes([1; 8]));
        assert!(region.deregister().is_ok(), "nothing is bound to it");
    }
}

#[test]
fn what_came_under_a_key_before_it_was_invalidated_is_in_its_place() {
    let (Pair { a, b, .. }, window, region, there) = bound(WindowKind::Type2, ALL);
    for round in 0..50u8 {
        b.qp.post_recv(RecvWr::empty()).unwrap();
        let write = SendWr::write_inline(&[round; 100], there.plus(u64::from(round))).unsignaled();
        a.qp.post_sends([write, SendWr::send_inline(&[]).invalidate(there.rkey)]).unwrap();
        a.done();
        b.done();
        let mut octets = [0; 100];
        region.read(1000 + usize::from(round), &mut octets).unwrap();
        assert_eq!(octets, [round; 100]);
        // Once more under the same key.
        assert_eq!(bind(&b, &window, &region, ALL), there);
    }
}

#[test]
fn a_peer_names_the_octets_of_a_window_from_zero_on() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
    let target = WindowTarget::new(&region, 1000..2000, ALL).zero_based();
    assert_eq!(status(&b, SendWr::bind(&window, window.rkey(), target)), Status::Success);
    let there = RemoteMemory { address: 0, rkey: window.rkey() };
    assert_eq!(status(&a, SendWr::write_inline(&[1; 10], there.plus(990))), Status::Success);
    assert_eq!(status(&a, SendWr::fetch_add(there.plus(8), 1)), Status::Success);
    a.qp.post_send(SendWr::read(a.own.buffer(0..1000).unwrap(), there)).unwrap();
    let octets = a.done().octets();
    assert_eq!((octets[989], octets[990], octets[999]), (9, 1, 1));
    assert_eq!(status(&a, SendWr::write_inline(&[1; 2], there.plus(999))), Status::RemoteAccessError);
}

#[test]
fn a_window_is_bound_in_the_order_of_its_queue() {
    let pair = in_memory(1, |qp| qp);
    let spare = another(&pair);
    let Pair { a, b, .. } = &pair;
    let (region, window) = (shut(b), b.pd.alloc_mw(WindowKind::Type1).unwrap());
    let there = RemoteMemory { address: region.addr(), rkey: window.rkey() | 1 };
    // The first waits for a receive request, and all others for it.
    b.qp.post_sends([
        SendWr::send_inline(b"one").wr_id(1),
        SendWr::bind(&window, there.rkey, WindowTarget::new(&region, .., ALL)).wr_id(2),
        SendWr::send_inline(b"two").wr_id(3).fence(),
        SendWr::read(b.own.buffer(0..4000).unwrap(), a.open.remote()).wr_id(4),
        SendWr::bind(&window, window.rkey() | 2, WindowTarget::new(&region, .., READ)).wr_id(5).unsignaled(),
        SendWr::bind(&window, window.rkey() | 3, WindowTarget::new(&region, .., READ)).wr_id(6),
    ])
    .unwrap();
    assert!(b.cq.wait(Duration::from_millis(20)).is_err());
    // It is not bound yet, as a peer finds by another queue pair.
    spare[0].post_send(SendWr::write_inline(&[1; 8], there)).unwrap();
    assert_eq!(a.wait().status, Status::RemoteAccessError);
    for _ in 0..2 {
        a.qp.post_recv(RecvWr::new(a.own.buffer(0..8).unwrap())).unwrap();
        assert!(a.done().is_ok());
    }
    assert_eq!([1, 2, 3, 4, 6], [(); 5].map(|()| b.done().wr_id));
    let last = RemoteMemory { rkey: window.rkey() | 3, ..there };
    assert_eq!(status(a, SendWr::read(a.own.buffer(0..8).unwrap(), last)), Status::Success);
    assert_eq!(status(a, SendWr::write_inline(&[1; 8], there)), Status::RemoteAccessError);
}

#[test]
fn what_waits_for_a_binding_is_flushed_in_its_order_when_the_queue_pair_fails() {
    let Pair { a: _a, b, .. } = in_memory(1, |qp| qp.max_send_wr(5));
    let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
    let bind = |id| SendWr::bind(&window, window.rkey(), WindowTarget::new(&region, .., ALL)).wr_id(id);
    // There is no receive request.
    let requests = [SendWr::send_inline(b"one"), bind(1), SendWr::send_inline(b"two").wr_id(2), bind(3)];
    b.qp.post_sends_together(requests.into()).unwrap();
    b.qp.post_send(SendWr::invalidate_local(window.rkey()).wr_id(4)).unwrap();
    assert_eq!(b.qp.post_send(bind(5)).unwrap_err().error, WrError::QueueFull);
    b.qp.modify(&Change { transition: Some(Transition::Fail), ..Change::default() }).unwrap();
    for id in 0..5 {
        let flushed = b.wait();
        assert_eq!((flushed.wr_id, flushed.status), (id, Status::WorkRequestFlushed));
    }
    // And so is one that comes now; nothing is bound.
    assert_eq!(status(&b, bind(5)), Status::WorkRequestFlushed);
    assert!(region.deregister().is_ok());
}

#[test]
fn a_queue_pair_that_is_reset_or_gone_forgets_the_bindings_that_wait() {
    let Pair { a: _a, b, .. } = in_memory(1, |qp| qp.max_send_wr(2));
    let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
    let requests = || {
        let bind = SendWr::bind(&window, window.rkey(), WindowTarget::new(&region, .., ALL));
        [SendWr::send_inline(b"one"), bind]
    };
    b.qp.post_sends(requests()).unwrap();
    b.qp.modify(&Change { transition: Some(Transition::Reset), ..Change::default() }).unwrap();
    assert!(b.cq.poll().is_none());
    let refused = b.qp.post_sends(requests()).unwrap_err();
    assert_eq!(refused.error, WrError::Engine(PostError::State(QpState::Reset)));
    let End { qp, cq, .. } = b;
    drop(refused);
    drop(qp);
    assert!(cq.poll().is_none() && region.deregister().is_ok(), "no request has it");
}

#[test]
fn a_queue_pair_that_is_drained_binds_nothing_until_it_sends_again() {
    let Pair { a: _a, b, .. } = in_memory(1, |qp| qp);
    let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
    let to = |transition| Change { transition: Some(transition), ..Change::default() };
    b.qp.modify(&to(Transition::Drain)).unwrap();
    b.qp.post_send(SendWr::bind(&window, window.rkey(), WindowTarget::new(&region, .., ALL))).unwrap();
    assert!(b.cq.wait(Duration::from_millis(20)).is_err());
    b.qp.modify(&to(Transition::Send)).unwrap();
    assert_eq!(b.done().opcode, CompletionKind::BindWindow);
}

#[test]
fn what_cannot_be_bound_or_invalidated_ends_with_an_error_and_its_queue_pair_with_it() {
    type Request = fn(&End, &MemoryWindow, &MemoryRegion) -> SendWr;
    let requests: [Request; 7] = [
        |_, window, region| SendWr::bind(window, 0, WindowTarget::new(region, 1..4097, ALL)),
        |b, window, _| SendWr::bind(window, 0, WindowTarget::new(&b.open, .., ALL)),
        |_, window, _| SendWr::bind(window, 0, WindowTarget::nothing()),
        |b, window, _| {
            let readable = b.pd.reg_mr(vec![0; 8], Access::BIND).unwrap();
            SendWr::bind(window, 0, WindowTarget::new(&readable, .., ALL))
        },
        |b, window, _| {
            let elsewhere = b.device.alloc_pd().reg_mr(vec![0; 8], Access::BIND).unwrap();
            SendWr::bind(window, 0, WindowTarget::new(&elsewhere, .., READ))
        },
        |_, window, _| SendWr::invalidate_local(window.rkey()),
        |_, _, region| SendWr::invalidate_local(region.rkey()),
    ];
    for request in requests {
        let Pair { a: _a, b, .. } = in_memory(1, |qp| qp);
        let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
        let wrong = request(&b, &window, &region).unsignaled();
        b.qp.post_sends([wrong, SendWr::send_inline(b"behind")]).unwrap();
        assert_eq!(b.wait().status, Status::MemoryWindowBindError);
        assert_eq!(b.wait().status, Status::WorkRequestFlushed);
        assert_eq!(b.qp.state(), QpState::Error);
    }
    // One that is bound.
    let (Pair { a: _a, b, .. }, window, region, _) = bound(WindowKind::Type2, ALL);
    let again = SendWr::bind(&window, 1, WindowTarget::new(&region, .., ALL));
    assert_eq!(status(&b, again), Status::MemoryWindowBindError);
    // One of type 1 from zero on.
    let (Pair { a: _a, b, .. }, window, region, _) = bound(WindowKind::Type1, ALL);
    let from_zero = SendWr::bind(&window, 1, WindowTarget::new(&region, .., ALL).zero_based());
    assert_eq!(status(&b, from_zero), Status::MemoryWindowBindError);
}

#[test]
fn a_region_with_a_window_is_not_deregistered() {
    let (Pair { a, b, .. }, window, region, there) = bound(WindowKind::Type2, ALL);
    let region = region.deregister().unwrap_err();
    assert_eq!(status(&a, SendWr::write_inline(&[1; 8], there)), Status::Success);
    // With its queue pair, which bound it, it is invalid.
    let End { qp, .. } = b;
    drop(qp);
    assert_eq!(region.deregister().unwrap()[1000..1008], [1; 8]);
    drop(window);
}

#[test]
fn datagrams_go_with_no_windows_and_unreliable_connections_do() {
    let Pair { b, .. } = in_memory(1, |qp| qp);
    let window = b.pd.alloc_mw(WindowKind::Type1).unwrap();
    let datagrams = b.pd.create_qp(&b.cq, &b.cq).datagrams(0).build().unwrap();
    let refused = datagrams.post_send(SendWr::bind(&window, 0, WindowTarget::nothing())).unwrap_err();
    assert_eq!(refused.error, WrError::Engine(PostError::Operation));
    let Pair { a, b, .. } = in_memory(1, QueuePairBuilder::unreliable);
    let (region, window) = (shut(&b), b.pd.alloc_mw(WindowKind::Type2).unwrap());
    let there = bind(&b, &window, &region, ALL);
    // What goes beyond it is dropped.
    for (at, octet) in [(0, 1), (997, 2), (4, 3)] {
        b.qp.post_recv(RecvWr::empty()).unwrap();
        a.qp.post_send(SendWr::write_inline(&[octet; 4], there.plus(at)).imm(1)).unwrap();
        a.done();
    }
    assert_eq!([(); 2].map(|()| b.done().byte_len), [4, 4]);
    let mut octets = vec![0; 4096];
    region.read(0, &mut octets).unwrap();
    assert_eq!(octets[1000..1008], [1, 1, 1, 1, 3, 3, 3, 3]);
    assert_eq!(octets[1997..2001], [9; 4]);
}

/// A device of two shards.
fn two_shards(address: &str) -> Device {
    let config = DeviceConfig { shards: 2, ..DeviceConfig::default() };
    Device::open_with(address.parse().unwrap(), config).unwrap()
}

#[test]
fn no_shard_writes_by_a_key_of_type_1_that_another_has_taken_away_nor_refuses_one_that_it_gave() {
    let (near, far) = [(); 2].map(|()| two_shards("127.0.4.73")).into();
    for _ in 0..100 {
        let pair = connect(&near, &far, |qp| qp);
        let others = another(&pair);
        assert_ne!(others[1].shard(), pair.b.qp.shard());
        let region = pair.b.pd.reg_mr(vec![9; 8], Access::LOCAL_WRITE | Access::BIND).unwrap();
        let window = pair.b.pd.alloc_mw(WindowKind::Type1).unwrap();
        for octet in 0..3u8 {
            let rkey = window.rkey() | u32::from(octet);
            let target = WindowTarget::new(&region, .., Access::REMOTE_WRITE);
            assert_eq!(status(&pair.b, SendWr::bind(&window, rkey, target)), Status::Success);
            let there = RemoteMemory { address: region.addr(), rkey };
            others[0].post_send(SendWr::write_inline(&[octet], there)).unwrap();
            assert_eq!(pair.a.wait().status, Status::Success);
        }
        // The key may go while some of them have been judged and not been placed.
        let there = RemoteMemory { address: region.addr(), rkey: window.rkey() | 2 };
        let writes =
            (0..100u64).map(|number| SendWr::write_inline(&number.to_ne_bytes(), there).unsignaled());
        others[0].post_sends(writes).unwrap();
        let unbinds = SendWr::bind(&window, 0, WindowTarget::nothing());
        assert_eq!(status(&pair.b, unbinds), Status::Success);
        let now = region.load(0).unwrap();
        assert!(pair.b.cq.wait(Duration::from_millis(1)).is_err());
        assert_eq!(region.load(0).unwrap(), now);
    }
}

#[test]
fn a_window_of_type_1_serves_queue_pairs_of_all_shards() {
    let (near, far) = [(); 2].map(|()| two_shards("127.0.4.71")).into();
    let pair = connect(&near, &far, |qp| qp);
    let others = another(&pair);
    assert_ne!(others[1].shard(), pair.b.qp.shard());
    let (region, window) = (shut(&pair.b), pair.b.pd.alloc_mw(WindowKind::Type1).unwrap());
    let there = bind(&pair.b, &window, &region, ALL);
    let write = |octet| SendWr::write_inline(&[octet; 8], there);
    assert_eq!(status(&pair.a, write(1)), Status::Success);
    others[0].post_send(write(2)).unwrap();
    assert_eq!(pair.a.wait().status, Status::Success);
    assert_eq!(region.fetch_add(1000, 0).unwrap(), u64::from_ne_bytes([2; 8]));
    // Unbound by the queue pair on the other shard.
    others[1].post_send(SendWr::bind(&window, there.rkey, WindowTarget::nothing())).unwrap();
    pair.b.done();
    assert_eq!(status(&pair.a, write(3)), Status::RemoteAccessError);
    assert!(region.deregister().is_ok());
}
