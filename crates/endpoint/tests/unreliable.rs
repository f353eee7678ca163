//! Unreliable connections between two devices: what arrives is whole, what does not is dropped, and nobody is told.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

mod common;

use common::{End, Pair, WAIT, connect, in_memory, over_udp, pattern, settle};
use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::{
    Access, Backend, BitsPerSec, Change, CompletionKind, Device, DeviceConfig, Faults, Law, MemoryWire, Mtu,
    QpState, QueuePairBuilder, QueuePairError, Recovery, RecvWr, Refusal, SendWr, Service, Span, Tail,
    Transition,
};
use roci_wire::Layout;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

fn unreliable(qp: QueuePairBuilder) -> QueuePairBuilder {
    qp.path_mtu(Mtu::Mtu256).unreliable()
}

fn receive(end: &End, id: u64, at: usize) {
    end.qp.post_recv(RecvWr::new(end.own.buffer(at..at + 10_000).unwrap()).wr_id(id)).unwrap();
}

/// A SEND, a WRITE and a WRITE with immediate, from memory and inline.
fn talk(Pair { a, b, .. }: &Pair) {
    assert_eq!((a.qp.service(), a.qp.service().name()), (Service::Uc, "UC"));
    receive(b, 1, 0);
    receive(b, 2, 20_000);
    let data = pattern(1, 5_000);
    let mut send = a.own.buffer(0..5_000).unwrap();
    send.write(0, &data).unwrap();
    let send = send.freeze();
    a.qp.post_send(SendWr::send(send.clone()).wr_id(1)).unwrap();
    a.qp.post_send(SendWr::write(send.clone(), b.open.remote()).wr_id(2)).unwrap();
    a.qp.post_send(SendWr::write(send, b.open.remote().plus(8_000)).imm(9).wr_id(3)).unwrap();
    assert_eq!([a.done(), a.done(), a.done()].map(|done| done.wr_id), [1, 2, 3]);
    let first = b.done();
    assert_eq!((first.opcode, first.wr_id, first.byte_len), (CompletionKind::Recv, 1, 5_000));
    assert!(first.into_buffer().unwrap().to_vec()[..5_000] == data);
    let second = b.done();
    assert_eq!((second.opcode, second.wr_id, second.byte_len), (CompletionKind::RecvWrite, 2, 5_000));
    assert_eq!(second.tail, Tail::Immediate(9));
    for at in [0, 8_000] {
        let mut written = vec![0; 5_000];
        b.open.read(at, &mut written).unwrap();
        assert!(written == data);
    }
    // And back, from where no memory is registered.
    receive(a, 7, 50_000);
    b.qp.post_send(SendWr::send_inline(b"hello")).unwrap();
    b.done();
    assert_eq!((a.done().byte_len, a.qp.counters().dropped, b.qp.counters().dropped), (5, 0, 0));
}

#[test]
fn messages_pass_in_both_directions() {
    talk(&in_memory(1, unreliable));
    talk(&over_udp("127.0.0.66", unreliable));
}

#[test]
fn what_ends_over_a_bad_wire_has_its_senders_octets_and_all_sends_end() {
    for seed in 0..4 {
        let Pair { wire, a, b } = in_memory(seed, |qp| unreliable(qp).max_recv_wr(128));
        let faults = Faults { loss: 30, duplicate: 10, reorder: 10, corrupt: 10, mark: 0 };
        wire.as_ref().unwrap().set_faults(faults);
        let length = |message: u64| 1 + (message as usize * 977) % 3_000;
        for id in 0..64 {
            receive(&b, id, 10_000 * id as usize);
        }
        let (mut heard, mut came) = (0, BTreeSet::new());
        for message in 0..100u64 {
            let mut send = a.own.buffer(0..length(message)).unwrap();
            send.write(0, &pattern(message, length(message))).unwrap();
            a.qp.post_send(SendWr::send(send.freeze()).imm(message as u32)).unwrap();
            a.done();
            while let Ok(done) = b.cq.wait(Duration::from_millis(1)) {
                assert!(done.is_ok(), "{done:?}");
                let Tail::Immediate(told) = done.tail else { panic!("{done:?}") };
                let (told, id) = (u64::from(told), done.wr_id);
                assert_eq!(done.byte_len as usize, length(told));
                let buffer = done.into_buffer().unwrap();
                assert!(buffer.to_vec()[..length(told)] == pattern(told, length(told)), "message {told}");
                drop(buffer);
                came.insert(told);
                receive(&b, id, 10_000 * id as usize);
                heard += 1;
            }
        }
        assert!(came.len() < 100 && heard >= came.len(), "nothing was lost, so nothing was tested");
        assert!(came.len() > 20, "{} of 100", came.len());
        let counted = b.qp.counters();
        assert!(counted.dropped > 0);
        assert_eq!((counted.taken as usize, counted.doubled as usize), (came.len(), heard - came.len()));
        assert_eq!((a.qp.counters().retransmitted, a.qp.state()), (0, QpState::ReadyToSend));
        assert_eq!(a.qp.counters().acknowledged, a.qp.counters().packets);
    }
}

#[test]
fn without_a_receive_request_a_message_is_dropped_and_the_connection_stands() {
    let Pair { a, b, .. } = in_memory(1, unreliable);
    a.qp.post_send(SendWr::send_inline(b"nobody")).unwrap();
    a.done();
    settle(&b, 1);
    assert_eq!((b.qp.counters().dropped, b.device.refused(Refusal::ReceiverNotReady)), (1, 1));
    receive(&b, 1, 0);
    a.qp.post_send(SendWr::send_inline(b"somebody")).unwrap();
    assert_eq!(b.done().byte_len, 8);
    assert_eq!(b.device.counters().sent, 0, "nothing was answered");
}

#[test]
fn a_shared_receive_queue_serves_reliable_and_unreliable_connections() {
    let wire = MemoryWire::new(1);
    let open = |address: &str| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (near, far) = (open("10.0.0.1"), open("10.0.0.2"));
    let (pd, cq) = (far.alloc_pd(), far.create_cq().unwrap());
    let srq = pd.create_srq(8);
    let region = pd.reg_mr(vec![0; 400], Access::LOCAL_WRITE).unwrap();
    for id in 0..4 {
        srq.post_recv(RecvWr::new(region.buffer(100 * id..100 * (id + 1)).unwrap())).unwrap();
    }
    let (near_pd, near_cq) = (near.alloc_pd(), near.create_cq().unwrap());
    for build in [|qp: QueuePairBuilder| qp, unreliable] {
        let taking = build(pd.create_qp(&cq, &cq)).srq(&srq).build().unwrap();
        let sending = build(near_pd.create_qp(&near_cq, &near_cq)).build().unwrap();
        sending.connect(taking.info()).unwrap();
        taking.connect(sending.info()).unwrap();
        for _ in 0..2 {
            sending.post_send(SendWr::send_inline(b"shared")).unwrap();
            let (sent, came) = (near_cq.wait(WAIT).unwrap(), cq.wait(WAIT).unwrap());
            assert!(sent.is_ok() && came.is_ok() && came.byte_len == 6 && came.qp_num == taking.qp_num());
        }
    }
}

#[test]
fn its_law_paces_it() {
    let settings = [("increase_timer", "1000s"), ("byte_counter", "0B"), ("rmin", "1Mb/s")];
    let link = BitsPerSec::from_gbps(100);
    let laws = vec![Law::from_settings("dcqcn", &settings, link).unwrap()];
    let open = || {
        let config = DeviceConfig { laws: laws.clone(), link, ..DeviceConfig::default() };
        Device::open_with([127, 0, 0, 67].into(), config).unwrap()
    };
    let (near, far) = (open(), open());
    let Pair { a, b, .. } = connect(&near, &far, |qp| qp.path_mtu(Mtu::Mtu1024).unreliable());
    // As a CNP would bring it there; nobody answers, and no retry or window holds it.
    a.qp.set_register("rc", "80Mb/s").unwrap();
    let time = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let began = time();
    let message = a.own.slice(0..1 << 17).unwrap();
    for _ in 0..8 {
        a.qp.post_send(SendWr::write(message.clone(), b.open.remote())).unwrap();
    }
    for _ in 0..8 {
        a.done();
    }
    // A mebibyte takes 105 ms, and the last message ends when its last packet leaves.
    let took = time() - began;
    assert!(took >= Duration::from_millis(90), "{took:?}");
    settle(&b, 1024);
    assert_eq!((b.qp.counters().dropped, b.device.counters().overflowed), (0, 0));
}

#[test]
fn what_needs_answers_is_refused() {
    let Pair { a, b, .. } = in_memory(1, unreliable);
    let read = SendWr::read(a.own.buffer(0..8).unwrap(), b.open.remote());
    let why = a.qp.post_send(read).unwrap_err().to_string();
    assert_eq!(why, "the operation does not belong to the queue pair's service");
    let why =
        a.qp.modify(&Change { timeout: Some(Span::ZERO), ..Change::default() }).unwrap_err().to_string();
    assert_eq!(why, "an unreliable connection has no timeout, retries, READs or atomics");
    let laws = vec![Law::from_settings("timely", &[], BitsPerSec::from_gbps(100)).unwrap()];
    let backend = Backend::Memory(MemoryWire::new(1));
    let device =
        Device::open_with([10, 0, 0, 1].into(), DeviceConfig { backend, laws, ..DeviceConfig::default() });
    let device = device.unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let why = |qp: QueuePairBuilder| match qp.unreliable().build() {
        Err(error @ QueuePairError::Engine(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(why(pd.create_qp(&cq, &cq)).contains("its law needs acknowledgements"));
    let why = why(pd.create_qp(&cq, &cq).law(0).recovery(Recovery::Irn, Layout::Irn));
    assert_eq!(why, "an unreliable connection has the standard layout");
    assert!(pd.create_qp(&cq, &cq).law(0).unreliable().build().is_ok());
}

#[test]
fn connection_set_up_agrees_on_the_service_and_refuses_another() {
    let wire = MemoryWire::new(1);
    let open = |address: &str| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let (near, far) = (open("10.0.0.1"), open("10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let make = |device: &Device, service| {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq);
        let qp = if service == Service::Uc { qp.unreliable() } else { qp };
        (qp.build().unwrap(), pd, cq)
    };
    for (asked, given) in [(Service::Uc, Service::Uc), (Service::Uc, Service::Rc), (Service::Rc, Service::Uc)]
    {
        let ((qp, _pd, cq), (theirs, their_pd, their_cq)) = (make(&near, asked), make(&far, given));
        let mut connecting = asking.request(&qp, to, &ConnParam::default()).unwrap();
        let request = listener.get_request(WAIT).unwrap().unwrap();
        assert_eq!(request.service(), asked);
        let accepted = request.accept(&theirs, &ConnParam::default());
        if asked != given {
            assert!(matches!(accepted, Err(CmError::Service(service)) if service == asked), "{accepted:?}");
            let error = connecting.wait(&qp, WAIT).unwrap_err();
            assert!(matches!(error, CmError::Rejected { reason: 9, .. }), "{error}");
            assert_eq!(
                (qp.state(), theirs.state()),
                (QpState::Init, QpState::Init),
                "both serve another time"
            );
            continue;
        }
        let accepted = accepted.unwrap();
        let connection = connecting.wait(&qp, WAIT).unwrap().unwrap();
        accepted.wait_established(WAIT).unwrap();
        let region = their_pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
        theirs.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        qp.post_send(SendWr::send_inline(b"agreed")).unwrap();
        assert!(cq.wait(WAIT).unwrap().is_ok());
        assert_eq!(their_cq.wait(WAIT).unwrap().byte_len, 6);
        connection.disconnect();
        assert!(accepted.wait_disconnected(WAIT));
    }
}

#[test]
fn it_is_drained_reset_and_connected_again() {
    let Pair { a, b, .. } = in_memory(1, unreliable);
    for _ in 0..2 {
        receive(&b, 1, 0);
        a.qp.post_send(SendWr::send_inline(b"once more")).unwrap();
        a.done();
        assert_eq!(b.done().byte_len, 9);
        let change = |qp: &roci_endpoint::QueuePair, way| {
            qp.modify(&Change { transition: Some(way), ..Change::default() }).unwrap();
        };
        change(&a.qp, Transition::Drain);
        assert!(!a.qp.query().unwrap().sq_draining);
        for qp in [&a.qp, &b.qp] {
            change(qp, Transition::Reset);
            change(qp, Transition::Initialize);
        }
        a.qp.connect(b.qp.info()).unwrap();
        b.qp.connect(a.qp.info()).unwrap();
    }
}
