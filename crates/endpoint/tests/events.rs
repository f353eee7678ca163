//! Asynchronous events, and who waits for them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Pair, SIZE, WAIT, in_memory, over_udp};
use roci_endpoint::{
    Access, Backend, Change, Device, DeviceConfig, Event, MemoryWire, Progress, QpState, QueuePair, RecvWr,
    RemoteMemory, SendWr, Status, Transition,
};
use std::io::ErrorKind;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(50);

fn to(transition: Transition) -> Change {
    Change { transition: Some(transition), ..Change::default() }
}

/// A queue pair of each end, connected; that of `b` uses `srq`.
fn sharing(pair: &Pair, srq: &roci_endpoint::SharedReceiveQueue) -> (QueuePair, QueuePair) {
    let from = pair.a.pd.create_qp(&pair.a.cq, &pair.a.cq).build().unwrap();
    let to = pair.b.pd.create_qp(&pair.b.cq, &pair.b.cq).srq(srq).build().unwrap();
    from.connect(to.info()).unwrap();
    to.connect(from.info()).unwrap();
    (from, to)
}

#[test]
fn a_shared_receive_queue_tells_once_that_few_requests_are_left_in_time_to_post_more() {
    for pair in [in_memory(1, |qp| qp), over_udp("127.0.0.1", |qp| qp)] {
        let events = pair.b.device.events().unwrap();
        let (srq, other) = (pair.b.pd.create_srq(8), pair.b.pd.create_srq(8));
        assert_ne!(srq.srq_num(), other.srq_num());
        let (from, _to) = sharing(&pair, &srq);
        (0..8).for_each(|_| srq.post_recv(RecvWr::empty()).unwrap());
        srq.set_limit(4).unwrap();
        let send = || {
            from.post_send(SendWr::send_inline(&[]).unsignaled()).unwrap();
            drop(pair.b.done());
        };
        (0..4).for_each(|_| send());
        assert_eq!((events.poll(), srq.limit()), (None, 4), "four are left");
        send();
        assert_eq!(events.wait(WAIT).unwrap(), Event::SrqLimitReached(srq.srq_num()));
        assert_eq!(srq.limit(), 0);
        send();
        assert_eq!(events.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
        // At once where it is so already, and none of a queue that is gone.
        srq.set_limit(3).unwrap();
        other.set_limit(1).unwrap();
        drop(other);
        assert_eq!(events.poll(), Some(Event::SrqLimitReached(srq.srq_num())));
        assert_eq!(events.poll(), None);
    }
}

#[test]
fn the_last_receive_is_told_behind_the_completions_of_a_queue_pair_that_shares_its_queue() {
    let pair = in_memory(2, |qp| qp);
    let events = pair.b.device.events().unwrap();
    let srq = pair.b.pd.create_srq(8);
    let (from, with) = sharing(&pair, &srq);
    srq.post_recv(RecvWr::empty().wr_id(5)).unwrap();
    with.post_send(SendWr::write_inline(&[1], RemoteMemory::default()).wr_id(6)).unwrap();
    assert_eq!(events.wait(WAIT).unwrap(), Event::LastReceiveReached(with.qp_num()));
    let ended = pair.b.cq.poll().unwrap();
    assert_eq!((ended.wr_id, ended.status), (6, Status::RemoteAccessError));
    // Its peer refused it. That one has receives of its own.
    let peer = pair.a.device.events().unwrap();
    assert_eq!(peer.poll(), None, "nobody has asked before");
    drop((from, with));

    // Without a shared queue all receives are flushed, and tell by that.
    pair.b.qp.post_recv(RecvWr::empty()).unwrap();
    pair.b.qp.modify(&to(Transition::Fail)).unwrap();
    assert_eq!(pair.b.wait().status, Status::WorkRequestFlushed);
    assert_eq!(events.poll(), None);
    // Who ends a queue pair that shares waits for this before it drops the requests.
    let (_from, with) = sharing(&pair, &srq);
    with.modify(&to(Transition::Fail)).unwrap();
    assert_eq!(events.poll(), Some(Event::LastReceiveReached(with.qp_num())));
}

#[test]
fn a_peer_that_asks_for_what_it_must_not_is_told_of_where_no_completion_tells() {
    let Pair { a, b, .. } = in_memory(3, |qp| qp);
    let events = b.device.events().unwrap();
    a.qp.post_send(SendWr::write_inline(&[1], RemoteMemory { rkey: 1, ..b.open.remote() })).unwrap();
    assert_eq!(events.wait(WAIT).unwrap(), Event::AccessError(b.qp.qp_num()));
    assert_eq!(b.qp.state(), QpState::Error);

    // A SEND that is too long ends a receive with an error, and tells by that.
    let Pair { a, b, .. } = in_memory(4, |qp| qp);
    let events = b.device.events().unwrap();
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..4).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(&[0; 8])).unwrap();
    assert_eq!(b.wait().status, Status::LocalLengthError);
    assert_eq!(events.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);

    // READs and atomics that were turned off.
    let Pair { a, b, .. } = in_memory(5, |qp| qp.max_dest_rd_atomic(0));
    let events = b.device.events().unwrap();
    a.qp.post_send(SendWr::fetch_add(b.open.remote(), 1)).unwrap();
    assert_eq!(events.wait(WAIT).unwrap(), Event::RequestError(b.qp.qp_num()));
}

#[test]
fn a_queue_pair_in_rtr_tells_of_the_first_message_and_goes_to_rts_then() {
    let Pair { a, b, .. } = in_memory(6, |qp| qp);
    let events = b.device.events().unwrap();
    let from = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    let passive = b.pd.create_qp(&b.cq, &b.cq).build().unwrap();
    passive.ready_to_receive(from.info(), &Change::default()).unwrap();
    from.connect(passive.info()).unwrap();
    passive.set_register("rai", "10Mb/s").unwrap();
    assert_eq!(events.poll(), None);
    for octet in [1, 2] {
        from.post_send(SendWr::write_inline(&[octet], b.open.remote())).unwrap();
        assert!(a.done().is_ok());
    }
    assert_eq!(events.wait(WAIT).unwrap(), Event::Established(passive.qp_num()));
    passive.modify(&to(Transition::Send)).unwrap();
    passive.post_send(SendWr::write_inline(&[3], a.open.remote())).unwrap();
    assert!(b.done().is_ok());
    assert_eq!(events.poll(), None, "once");
    assert_eq!(b.open.load(0).unwrap().to_ne_bytes()[0], 2);
}

#[test]
fn a_send_queue_that_drains_says_when_what_had_begun_has_ended() {
    let Pair { a, b, .. } = in_memory(7, |qp| qp);
    let events = a.device.events().unwrap();
    let drained = Event::SendQueueDrained(a.qp.qp_num());
    let is_draining = || a.qp.query().unwrap().sq_draining;
    a.qp.modify(&to(Transition::Drain)).unwrap();
    assert_eq!(events.poll(), Some(drained), "there was nothing");
    assert!(!is_draining());
    // What is posted now waits for RTS.
    a.qp.post_send(SendWr::write_inline(&[1], b.open.remote())).unwrap();
    assert_eq!(events.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(a.cq.poll().is_none());
    a.qp.modify(&to(Transition::Send)).unwrap();
    assert!(a.done().is_ok());
    // One that the receiver is not ready for has begun, and one behind it has not.
    a.qp.post_send(SendWr::send(a.own.slice(0..SIZE).unwrap()).wr_id(1)).unwrap();
    assert!(!is_draining(), "it is in RTS");
    // The receiver has told that it has no receive request, and is given a while to post one.
    std::thread::sleep(SHORT);
    a.qp.modify(&to(Transition::Drain)).unwrap();
    a.qp.post_send(SendWr::send_inline(&[]).wr_id(2)).unwrap();
    a.qp.modify(&to(Transition::Drain)).unwrap();
    assert_eq!(events.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(is_draining());
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..SIZE).unwrap())).unwrap();
    b.qp.post_recv(RecvWr::empty()).unwrap();
    assert_eq!(events.wait(WAIT).unwrap(), drained);
    assert_eq!(events.wait(SHORT).unwrap_err().kind(), ErrorKind::TimedOut, "asked for twice, told once");
    assert!(!is_draining(), "the second request has not begun");
    assert_eq!(a.cq.poll().unwrap().wr_id, 1, "its completion came before");
    assert!(a.cq.poll().is_none());
    a.qp.modify(&to(Transition::Send)).unwrap();
    assert_eq!(a.done().wr_id, 2);
    // Who goes on before that is not told.
    a.qp.post_send(SendWr::send_inline(&[]).wr_id(3)).unwrap();
    std::thread::sleep(SHORT);
    a.qp.modify(&to(Transition::Drain)).unwrap();
    a.qp.modify(&to(Transition::Send)).unwrap();
    b.qp.post_recv(RecvWr::empty()).unwrap();
    assert_eq!(a.done().wr_id, 3);
    assert_eq!(events.poll(), None);
}

#[test]
fn events_are_waited_for_by_threads_by_a_descriptor_and_without_the_device_s_thread() {
    let wire = MemoryWire::new(8);
    let config = DeviceConfig {
        backend: Backend::Memory(wire),
        progress: Progress::Caller,
        ..DeviceConfig::default()
    };
    let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
    let events = device.events().unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let srqs = [(); 3].map(|()| pd.create_srq(1));
    std::thread::scope(|scope| {
        let waits: Vec<_> = srqs.iter().map(|_| scope.spawn(|| events.wait(WAIT).unwrap())).collect();
        srqs.iter().for_each(|srq| srq.set_limit(1).unwrap());
        let mut seen: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
        seen.sort_by_key(|event| format!("{event:?}").len());
        for srq in &srqs {
            assert!(seen.contains(&Event::SrqLimitReached(srq.srq_num())), "{seen:?}");
        }
    });
    let is_readable = || {
        use std::os::fd::{AsFd, AsRawFd};
        let mut fds = [libc::pollfd { fd: events.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        // SAFETY: one entry is given.
        #[expect(unsafe_code, reason = "see above")]
        let count = unsafe { libc::poll(fds.as_mut_ptr(), 1, 0) };
        count == 1
    };
    assert!(!is_readable());
    let qp = pd.create_qp(&cq, &cq).srq(&srqs[0]).build().unwrap();
    srqs[1].set_limit(1).unwrap();
    qp.modify(&to(Transition::Fail)).unwrap();
    assert!(is_readable());
    // Of a queue pair that is gone nothing is told, and what else there is stays.
    drop(qp);
    assert!(is_readable());
    assert_eq!(device.events().unwrap().poll(), Some(Event::SrqLimitReached(srqs[1].srq_num())));
    assert!(!is_readable());
    assert_eq!(events.poll(), None);
    drop(pd.reg_mr(vec![0; 8], Access::ALL).unwrap());
}
