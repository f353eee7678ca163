//! What is shared: receive queues, completion queues, the port, a device with several shards.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{End, Pair, WAIT, by_caller, connect, forge, in_memory, over_udp, settle};
use roci_endpoint::{
    Access, Device, DeviceConfig, LimitError, Mtu, QpInfo, QueuePair, QueuePairError, RecvWr, ResizeError,
    SendWr, WrError,
};
use roci_units::Qpn;
use roci_wire::cm::{Mad, Message};
use roci_wire::{Header, Opcode};
use std::time::Duration;

#[test]
fn who_finds_the_port_taken_is_told_what_can_be_done() {
    let _other = std::net::UdpSocket::bind("127.0.0.67:4791").unwrap();
    let refused = Device::open("127.0.0.67".parse().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
    assert!(refused.to_string().contains("take another address of this host"), "{refused}");
}

#[test]
fn queue_pairs_share_a_receive_queue() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let srq = b.pd.create_srq(3);
    let mut connections: Vec<(QueuePair, QueuePair)> = Vec::new();
    for _ in 0..3 {
        let from = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
        let to = b.pd.create_qp(&b.cq, &b.cq).srq(&srq).build().unwrap();
        from.connect(to.info()).unwrap();
        to.connect(from.info()).unwrap();
        connections.push((from, to));
    }
    for (id, at) in [(0, 0), (1, 100), (2, 200)] {
        srq.post_recv(RecvWr::new(b.own.buffer(at..at + 100).unwrap()).wr_id(id)).unwrap();
    }
    let full = srq.post_recv(RecvWr::empty()).unwrap_err();
    assert_eq!(full.error, WrError::QueueFull);
    for (id, (from, to)) in (0..).zip(&connections) {
        from.post_send(SendWr::send_inline(&[id; 9])).unwrap();
        let received = b.done();
        assert_eq!((received.wr_id, received.qp_num), (u64::from(id), to.qp_num()));
        assert_eq!(received.into_buffer().unwrap().to_vec()[..9], [id; 9]);
    }
    srq.post_recv(RecvWr::empty()).unwrap();
    assert!(connections[0].1.post_recv(RecvWr::empty()).is_err(), "they have no queue of their own");
}

#[test]
fn a_shared_receive_queue_is_resized_while_messages_come_but_not_below_what_is_outstanding() {
    let Pair { a, b, .. } = in_memory(14, |qp| qp);
    let srq = b.pd.create_srq(2);
    let qp = b.pd.create_qp(&b.cq, &b.cq).srq(&srq).build().unwrap();
    let from = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    qp.connect(from.info()).unwrap();
    from.connect(qp.info()).unwrap();
    let post = |id| srq.post_recv(RecvWr::empty().wr_id(id)).map_err(|refused| refused.error);
    let take = |count| {
        for _ in 0..count {
            from.post_send(SendWr::send_inline(&[]).unsignaled()).unwrap();
        }
        (0..count).map(|_| b.done().wr_id).collect::<Vec<_>>()
    };
    assert_eq!((post(0), post(1), post(2)), (Ok(()), Ok(()), Err(WrError::QueueFull)));
    srq.resize(4).unwrap();
    assert_eq!(srq.max_wr(), 4);
    assert_eq!((post(2), post(3), post(4)), (Ok(()), Ok(()), Err(WrError::QueueFull)));
    srq.set_limit(3).unwrap();
    assert_eq!(srq.resize(3), Err(ResizeError::Outstanding { outstanding: 4, asked: 3 }));
    assert_eq!((srq.max_wr(), srq.limit()), (4, 3), "nothing has changed");
    assert_eq!(take(1), [0]);
    srq.resize(3).unwrap();
    assert_eq!((srq.max_wr(), srq.limit()), (3, 3));
    assert_eq!(post(4), Err(WrError::QueueFull));
    assert_eq!(take(3), [1, 2, 3], "in their order");
    // As many as it is for have room again, also once they have come back.
    for round in 0..2 {
        assert_eq!([post(0), post(1), post(2), post(3)], [Ok(()), Ok(()), Ok(()), Err(WrError::QueueFull)]);
        assert_eq!(take(3), [0, 1, 2], "round {round}");
    }
    srq.resize(0).unwrap();
    assert_eq!(post(0), Err(WrError::QueueFull));
    srq.resize(1).unwrap();
    assert_eq!(post(0), Ok(()));
    let text = srq.resize(0).unwrap_err().to_string();
    assert_eq!(text, "there is to be room for 0 receive requests, and 1 of them are outstanding");
}

#[test]
fn a_limit_above_the_room_of_a_shared_receive_queue_is_refused_and_tells_nothing() {
    let Pair { b, .. } = in_memory(15, |qp| qp);
    let events = b.device.events().unwrap();
    let srq = b.pd.create_srq(2);
    (0..2).for_each(|_| srq.post_recv(RecvWr::empty()).unwrap());
    srq.set_limit(2).unwrap();
    let refused = srq.set_limit(3).unwrap_err();
    assert_eq!(refused, LimitError { limit: 3, max_wr: 2 });
    let why = "fewer than 3 receive requests stand in the queue at all times, for it has room for 2";
    assert_eq!(refused.to_string(), why);
    // No event was spent on it, and the one before holds.
    assert_eq!((events.poll(), srq.limit()), (None, 2));
    srq.resize(3).unwrap();
    srq.set_limit(3).unwrap();
    assert_eq!(events.poll(), Some(roci_endpoint::Event::SrqLimitReached(srq.srq_num())));
}

#[test]
fn what_a_message_took_from_a_shared_queue_comes_back_when_its_queue_pair_ends_halfway() {
    let Pair { wire, a, b } = in_memory(1, |qp| qp);
    let srq = b.pd.create_srq(1);
    let from = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    let to = b.pd.create_qp(&b.cq, &b.cq).srq(&srq).path_mtu(Mtu::Mtu256).build().unwrap();
    to.connect(from.info()).unwrap();
    srq.post_recv(RecvWr::new(b.own.buffer(0..1000).unwrap())).unwrap();
    let header = Header::new(Opcode::SEND_FIRST, to.qp_num(), from.info().psn);
    let first = forge(&a.device, &b.device, header, &[7; 256]);
    wire.unwrap().inject(a.device.address(), b.device.address(), &first);
    settle(&b, 1);
    assert!(b.own.buffer(0..1000).is_err(), "the message has taken it");
    drop(to);
    let again = RecvWr::new(b.own.buffer(0..1000).unwrap());
    srq.post_recv(again).unwrap();
}

#[test]
fn datagrams_reach_a_queue_pair_that_knows_nobody_and_can_be_answered() {
    for address in ["127.0.0.1", "::1"] {
        let Pair { a, b, .. } = over_udp(address, |qp| qp);
        let one = a.pd.create_qp(&a.cq, &a.cq).datagrams(77).build().unwrap();
        let other = b.pd.create_qp(&b.cq, &b.cq).datagrams(77).build().unwrap();
        other.post_recv(RecvWr::new(b.own.buffer(0..256).unwrap())).unwrap();
        one.post_recv(RecvWr::new(a.own.buffer(0..256).unwrap())).unwrap();
        let to = other.info();
        one.post_send(SendWr::datagram_inline(b"wrong key", to.address, to.qpn, 78)).unwrap();
        one.post_send(SendWr::datagram_inline(b"hello", to.address, to.qpn, 77)).unwrap();
        let received = b.done();
        let (from, qpn) = received.source.unwrap();
        assert_eq!((from, qpn), (one.info().address, one.qp_num()));
        assert_eq!((received.byte_len, &received.into_buffer().unwrap().to_vec()[..5]), (5, &b"hello"[..]));
        other.post_send(SendWr::datagram_inline(b"yes?", from, qpn, 77)).unwrap();
        assert!((0..3).map(|_| a.done()).any(|done| done.byte_len == 4 && done.source.is_some()));
    }
}

#[test]
fn datagrams_and_messages_share_a_receive_queue_and_the_former_leave_room_for_a_header() {
    const KEY: u32 = 77;
    let Pair { a, b, .. } = in_memory(16, |qp| qp);
    let events = b.device.events().unwrap();
    let srq = b.pd.create_srq(8);
    let build = || b.pd.create_qp(&b.cq, &b.cq).srq(&srq);
    let [one, other] = [(); 2].map(|()| build().datagrams(KEY).header_room(40).build().unwrap());
    let (from, to) = (a.pd.create_qp(&a.cq, &a.cq).build().unwrap(), build().build().unwrap());
    from.connect(to.info()).unwrap();
    to.connect(from.info()).unwrap();
    let asks = a.pd.create_qp(&a.cq, &a.cq).datagrams(KEY).build().unwrap();
    let say = |octets: &[u8], qp: &QueuePair| {
        asks.post_send(SendWr::datagram_inline(octets, b.device.address(), qp.qp_num(), KEY).imm(9)).unwrap();
        a.done();
    };
    let post = |id: usize, length: usize| {
        let buffer = b.own.buffer(100 * id..100 * id + length).unwrap();
        srq.post_recv(RecvWr::new(buffer).wr_id(id as u64)).unwrap();
    };
    // What nobody has room for is dropped, and nobody hears of it.
    say(b"lost", &one);
    settle(&b, 1);
    (1..=5).for_each(|id| post(id, if id == 3 { 44 } else { 60 }));
    srq.set_limit(2).unwrap();
    say(b"hello", &one);
    let received = b.done();
    assert_eq!((received.wr_id, received.qp_num, received.byte_len), (1, one.qp_num(), 5));
    assert_eq!((received.source, received.imm()), (Some((a.device.address(), asks.qp_num())), Some(9)));
    let octets = received.into_buffer().unwrap().to_vec();
    assert_eq!((&octets[..40], &octets[40..45]), (&[0; 40][..], &b"hello"[..]));
    // The next is a message's, which begins where the request does.
    from.post_send(SendWr::send_inline(b"message")).unwrap();
    a.done();
    let received = b.done();
    assert_eq!((received.wr_id, received.qp_num, received.byte_len), (2, to.qp_num(), 7));
    assert_eq!(&received.into_buffer().unwrap().to_vec()[..7], b"message");
    // One that is too long ends the request that it took, and nothing else.
    say(b"too long", &other);
    let failed = b.wait();
    assert_eq!(
        (failed.wr_id, failed.qp_num, failed.status),
        (3, other.qp_num(), roci_endpoint::Status::LocalLengthError)
    );
    assert_eq!(failed.into_buffer().unwrap().to_vec(), [0; 44]);
    assert_eq!(events.poll(), None);
    say(b"next", &other);
    assert_eq!(events.wait(WAIT).unwrap(), roci_endpoint::Event::SrqLimitReached(srq.srq_num()));
    let received = b.done();
    assert_eq!((received.wr_id, received.qp_num), (4, other.qp_num()));
    // One that has failed takes none any more, and says so; the others go on.
    let fail = roci_endpoint::Change {
        transition: Some(roci_endpoint::Transition::Fail),
        ..roci_endpoint::Change::default()
    };
    other.modify(&fail).unwrap();
    assert_eq!(events.wait(WAIT).unwrap(), roci_endpoint::Event::LastReceiveReached(other.qp_num()));
    say(b"nobody", &other);
    say(b"", &one);
    let received = b.done();
    assert_eq!((received.wr_id, received.qp_num, received.byte_len), (5, one.qp_num(), 0));
}

#[test]
fn what_is_for_queue_pair_1_reaches_that_endpoint_at_the_address_whom_it_concerns() {
    const KEY: u32 = 0x8001_0000;
    let address = "127.0.0.31".parse().unwrap();
    let devices = [(); 3].map(|()| Device::open(address).unwrap());
    let to = Qpn::new(1);
    let askers = devices.each_ref().map(|device| {
        let cq = device.create_cq().unwrap();
        device.alloc_pd().create_qp(&cq, &cq).datagrams(KEY).build().unwrap()
    });
    let mut managers = Vec::from(devices.each_ref().map(|device| {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let manager = pd.create_qp(&cq, &cq).datagrams(KEY).management().build().unwrap();
        assert_eq!(manager.qp_num(), to);
        let again = pd.create_qp(&cq, &cq).datagrams(KEY).management().build();
        assert!(matches!(again, Err(QueuePairError::Management)), "{again:?}");
        let region = pd.reg_mr(vec![0; 4096], Access::LOCAL_WRITE).unwrap();
        for slot in 0..16 {
            manager.post_recv(RecvWr::new(region.buffer(256 * slot..256 * (slot + 1)).unwrap())).unwrap();
        }
        (manager, cq, region)
    }));
    for asker in &askers {
        for ((_, cq, _), own) in managers.iter().zip(&askers) {
            // An id has the remainder of the queue pair numbers.
            let remote = 0x5500 + own.qp_num().get() % 64;
            let mad = Mad { transaction: 0, message: Message::ReadyToUse { local: 1, remote } }.emit();
            asker.post_send(SendWr::datagram_inline(&mad, address, to, KEY)).unwrap();
            let received = cq.wait(WAIT).unwrap();
            assert_eq!((received.byte_len, received.source.unwrap().1), (256, asker.qp_num()));
        }
    }
    // What does not say whom it concerns reaches one, as long as one is left.
    while !managers.is_empty() {
        for asker in &askers {
            asker.post_send(SendWr::datagram_inline(b"what?", address, to, KEY)).unwrap();
            let received = (0..20_000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(1));
                managers.iter().find_map(|(_, cq, _)| cq.poll())
            });
            assert_eq!(received.unwrap().byte_len, 5);
        }
        managers.remove(0);
    }
}

/// Sends one message from one end to the other.
fn works(from: &End, to: &End) {
    to.qp.post_recv(RecvWr::new(to.own.buffer(0..8000).unwrap())).unwrap();
    let mut buffer = from.own.buffer(0..8000).unwrap();
    buffer.write(0, &common::pattern(3, 8000)).unwrap();
    from.qp.post_send(SendWr::send(buffer)).unwrap();
    assert!(to.done().into_buffer().unwrap().to_vec() == common::pattern(3, 8000));
    from.done();
}

#[test]
fn endpoints_at_one_address_find_their_packets_also_after_one_in_the_middle_is_gone() {
    let address = "127.0.0.32".parse().unwrap();
    let open = || Device::open(address).unwrap();
    let (first, middle, third, fourth) = (open(), open(), open(), open());
    let one = connect(&first, &third, |qp| qp);
    let two = connect(&middle, &fourth, |qp| qp);
    works(&one.a, &one.b);
    works(&two.a, &two.b);
    // The kernel moves the fourth socket into the place of the second; its packets take a detour now.
    drop((two, middle));
    works(&one.b, &one.a);
    let three = connect(&fourth, &third, |qp| qp);
    works(&three.a, &three.b);
    works(&three.b, &three.a);
    // A newcomer takes the remainder that became free, but another place in the group.
    let newcomer = connect(&open(), &first, |qp| qp);
    works(&newcomer.a, &newcomer.b);
    works(&newcomer.b, &newcomer.a);
}

#[test]
fn a_detour_loses_little_of_what_comes_in_long_messages() {
    const MESSAGE: usize = 1 << 16;
    let address = "127.0.0.82".parse().unwrap();
    let open = || Device::open(address).unwrap();
    let (gone, one) = (open(), open());
    drop(gone);
    // It takes the remainder that became free, but the second place: each has the other's packets.
    let other = open();
    let pair = connect(&one, &other, |qp| qp);
    for (from, to) in [(&pair.a, &pair.b), (&pair.b, &pair.a)] {
        for number in 0..200 {
            let at = number % 16 * MESSAGE;
            from.qp
                .post_send(SendWr::write(from.own.buffer(at..at + MESSAGE).unwrap(), to.open.remote()))
                .unwrap();
            if number >= 15 {
                from.done();
            }
        }
        for _ in 0..15 {
            from.done();
        }
        let counters = from.qp.counters();
        // A window or two where others have the cores; it was nearly all.
        assert!(counters.retransmitted < counters.packets / 2, "{counters:?}");
    }
}

#[test]
fn who_closes_hands_over_what_is_others_its_own_last_acknowledgement_among_it() {
    let address = "127.0.0.83".parse().unwrap();
    let open = || Device::open_with(address, by_caller()).unwrap();
    for round in 0..20 {
        let (gone, one) = (open(), open());
        drop(gone);
        // Each has the other's packets, as above.
        let other = open();
        let Pair { a, b, .. } = connect(&one, &other, |qp| qp.timeout(10).retry_cnt(1));
        a.qp.post_recv(RecvWr::empty()).unwrap();
        b.qp.post_send(SendWr::send_inline(&[])).unwrap();
        while a.cq.poll().is_none() {
            other.progress();
        }
        drop((a, one));
        let sent = b.cq.wait(WAIT).unwrap();
        assert!(sent.is_ok(), "round {round}: {}", sent.status);
    }
}

#[test]
fn a_device_of_three_shards_has_one_key_per_region() {
    let address = "127.0.0.33".parse().unwrap();
    let config = DeviceConfig { shards: 3, ..DeviceConfig::default() };
    let (a, b) = (Device::open_with(address, config).unwrap(), Device::open(address).unwrap());
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp);
    let mut seen = [false; 3];
    for round in 0..6u64 {
        let here = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
        let there = b.pd.create_qp(&b.cq, &b.cq).build().unwrap();
        here.connect(there.info()).unwrap();
        there.connect(here.info()).unwrap();
        seen[here.shard()] = true;
        drop(a.pd.reg_mr(vec![0; 9], Access::ALL).unwrap());
        let region = a.pd.reg_mr(vec![0; 64], Access::ALL).unwrap();
        there.post_send(SendWr::write_inline(&round.to_ne_bytes(), region.remote())).unwrap();
        b.done();
        assert_eq!(region.load(0).unwrap(), round);
    }
    assert_eq!(seen, [true; 3]);
}

#[test]
fn a_notification_comes_once_for_what_was_asked() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    for _ in 0..3 {
        b.qp.post_recv(RecvWr::empty()).unwrap();
    }
    b.cq.req_notify(true);
    a.qp.post_send(SendWr::write_inline(b"x", b.open.remote()).imm(1)).unwrap();
    assert!(!b.cq.wait_notify(Some(Duration::from_millis(50))).unwrap(), "it was not solicited");
    a.qp.post_send(SendWr::write_inline(b"x", b.open.remote()).imm(2).solicited()).unwrap();
    assert!(b.cq.wait_notify(Some(WAIT)).unwrap());
    assert_eq!((b.done().imm(), b.done().imm()), (Some(1), Some(2)));
    a.qp.post_send(SendWr::write_inline(b"x", b.open.remote()).imm(3)).unwrap();
    assert!(!b.cq.wait_notify(Some(Duration::from_millis(50))).unwrap(), "nobody asked again");
}

#[test]
fn a_device_without_a_thread_goes_on_while_someone_waits() {
    let address = "127.0.0.34".parse().unwrap();
    let open = || Device::open_with(address, common::by_caller()).unwrap();
    let Pair { a, b, .. } = connect(&open(), &open(), |qp| qp);
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..8).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(b"hello")).unwrap();
    assert_eq!(b.done().byte_len, 5);
    // The acknowledgement leaves when b goes on.
    b.device.progress();
    a.done();
}

#[test]
fn a_completion_queue_of_another_device_is_refused() {
    let (a, b) = (in_memory(50, |qp| qp), in_memory(51, |qp| qp));
    let (ours, theirs) = (&a.a.cq, &b.a.cq);
    for (send, recv) in [(theirs, ours), (ours, theirs), (theirs, theirs)] {
        let made = a.a.pd.create_qp(send, recv).build();
        assert!(matches!(made, Err(QueuePairError::Foreign("the completion queue"))), "{made:?}");
    }
    assert!(a.a.pd.create_qp(ours, &ours.clone()).build().is_ok());
}

#[test]
fn a_peer_of_the_other_internet_protocol_is_refused() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let qp = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    assert!(qp.connect(QpInfo { address: "::1".parse().unwrap(), ..a.qp.info() }).is_err());
}
