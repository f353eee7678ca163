//! What is refused: by keys, bounds, rights, domains, addresses and sequence, and on our own side by ownership.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{End, Pair, connect, forge, in_memory, settle};
use proptest::prelude::*;
use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::{
    Access, BitsPerSec, Change, Device, INLINE_MAX, LentError, Mtu, QpInfo, QpState, QueuePair,
    QueuePairBuilder, QueuePairError, RecvWr, Refusal, RemoteMemory, SendWr, Status, Transition, WrError,
};
use roci_units::Psn;
use roci_wire::{AtomicEth, Flags, Header, Ip, Opcode, Reth, Transport};

/// A fresh connection on which `request` is posted; how it ended.
fn fate(request: impl FnOnce(&End, &End) -> SendWr) -> (Status, Pair) {
    let pair = in_memory(1, |qp| qp.timeout(18));
    let request = request(&pair.a, &pair.b);
    pair.a.qp.post_send(request).unwrap();
    (pair.a.wait().status, pair)
}

#[test]
fn a_wrong_key_is_answered_with_an_error_and_ends_the_connection() {
    let (status, pair) = fate(|_, b| {
        let RemoteMemory { address, rkey } = b.open.remote();
        SendWr::write_inline(&[1; 8], RemoteMemory { address, rkey: rkey ^ 0x100 })
    });
    assert_eq!(status, Status::RemoteAccessError);
    assert_eq!((pair.a.qp.state(), pair.b.qp.state()), (QpState::Error, QpState::Error));
    assert_eq!(pair.b.open.load(0).unwrap(), 0, "not an octet was written");
    assert_eq!(pair.b.device.refused(Refusal::Rejected), 1);
}

#[test]
fn octets_outside_of_a_region_are_not_to_be_had() {
    let read = |length: usize, offset: u64| {
        fate(|a, b| SendWr::read(a.own.buffer(0..length).unwrap(), b.open.remote().plus(offset))).0
    };
    let size = common::SIZE as u64;
    assert_eq!(read(16, size - 16), Status::Success);
    assert_eq!(read(16, size - 15), Status::RemoteAccessError);
    assert_eq!(read(1, u64::MAX), Status::RemoteAccessError);
}

#[test]
fn a_region_without_remote_rights_or_of_another_domain_is_not_reached() {
    assert_eq!(fate(|_, b| SendWr::write_inline(&[1; 8], b.own.remote())).0, Status::RemoteAccessError);
    assert_eq!(fate(|_, b| SendWr::fetch_add(b.own.remote(), 1)).0, Status::RemoteAccessError);
    let mut foreign = None;
    let (status, _pair) = fate(|_, b| {
        let domain = b.device.alloc_pd();
        let region = foreign.insert(domain.reg_mr(vec![0; 64], Access::ALL).unwrap());
        SendWr::write_inline(&[1; 8], region.remote())
    });
    assert_eq!((status, foreign.unwrap().load(0).unwrap()), (Status::RemoteAccessError, 0));
}

#[test]
fn a_key_ends_with_its_region_which_gives_the_memory_back() {
    let mut memory = None;
    let (status, _) = fate(|_, b| {
        let region = b.pd.reg_mr(vec![7; 64], Access::ALL).unwrap();
        let there = region.remote();
        memory = region.deregister().ok();
        SendWr::write_inline(&[1; 8], there)
    });
    assert_eq!((status, memory), (Status::RemoteAccessError, Some(vec![7; 64])));
}

#[test]
fn a_send_with_invalidate_ends_the_key_that_it_names() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp.timeout(18));
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..8).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(b"done").invalidate(b.open.rkey())).unwrap();
    a.done();
    assert_eq!(b.done().tail, roci_endpoint::Tail::Invalidate(b.open.rkey()));
    a.qp.post_send(SendWr::write_inline(&[1; 8], b.open.remote())).unwrap();
    assert_eq!(a.wait().status, Status::RemoteAccessError);
}

#[test]
fn a_message_that_is_longer_than_the_receive_is_an_error_on_both_sides() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp.timeout(18));
    b.qp.post_recv(RecvWr::new(b.own.buffer(0..4).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(b"12345")).unwrap();
    assert_eq!(b.wait().status, Status::LocalLengthError);
    assert_eq!(a.wait().status, Status::RemoteInvalidRequestError);
}

#[test]
fn what_is_lent_can_be_neither_written_nor_lent_again_nor_deregistered() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let buffer = a.own.buffer(100..200).unwrap();
    assert_eq!(a.own.write(150, b"x"), Err(LentError::Lent(150, 151)));
    assert_eq!(a.own.write(99, b"xy"), Err(LentError::Lent(99, 101)));
    assert_eq!(a.own.buffer(0..1000).err(), Some(LentError::Lent(0, 1000)));
    assert_eq!(a.own.write(200, b"x"), Ok(()));
    a.qp.post_recv(RecvWr::new(buffer)).unwrap();
    assert_eq!(a.own.buffer(199..200).err(), Some(LentError::Lent(199, 200)), "the receive has it");
    let own = a.own.clone().deregister().unwrap_err();
    drop(a.qp);
    assert!(own.buffer(100..200).is_ok(), "a queue pair that ends gives back what was posted");
    let size = common::SIZE;
    assert_eq!(own.buffer(size - 1..size + 1).err(), Some(LentError::Bounds(size - 1, size + 1)));
}

#[test]
fn who_lends_all_of_a_region_once_sends_and_reads_any_parts_of_it() {
    let Pair { a, b, .. } = in_memory(5, |qp| qp);
    a.own.write(0, b"overlap").unwrap();
    let all = a.own.slice(0..a.own.len()).unwrap();
    assert_eq!(a.own.read(0, &mut [0; 4]), Err(LentError::Lent(0, 4)));
    for (range, at) in [(0..4, 0), (2..7, 8)] {
        a.qp.post_send(SendWr::write(all.slice(range).unwrap(), b.open.remote().plus(at))).unwrap();
    }
    assert_eq!(all.slice(1..3).unwrap().to_vec(), b"ve");
    (0..2).for_each(|_| drop(a.done()));
    let mut there = [0; 13];
    b.open.read(0, &mut there).unwrap();
    assert_eq!(&there, b"over\0\0\0\0erlap");
    drop(all);
    assert!(a.own.write(0, b"again").is_ok());
}

#[test]
fn requests_that_do_not_fit_come_back() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp.max_send_wr(1).max_recv_wr(1));
    let refused = a.qp.post_send(SendWr::send_inline(&[0; INLINE_MAX + 1])).unwrap_err();
    assert_eq!(refused.error, WrError::Inline);
    let alien = b.own.buffer(0..8).unwrap();
    let refused = a.qp.post_send(SendWr::send(alien)).unwrap_err();
    assert_eq!(refused.error, WrError::ProtectionDomain);
    assert_eq!(refused.request.into_slice().unwrap().len(), 8);
    let read_only = a.pd.reg_mr(vec![0; 8], Access::NONE).unwrap();
    let refused = a.qp.post_recv(RecvWr::new(read_only.buffer(0..8).unwrap())).unwrap_err();
    assert_eq!(refused.error, WrError::Rights);
    a.qp.post_recv(RecvWr::empty()).unwrap();
    assert_eq!(a.qp.post_recv(RecvWr::empty()).unwrap_err().error, WrError::QueueFull);
    a.qp.post_send(SendWr::send_inline(b"1")).unwrap();
    assert_eq!(a.qp.post_send(SendWr::send_inline(b"2")).unwrap_err().error, WrError::QueueFull);
}

#[test]
fn requests_that_are_to_fault_late_end_with_errors_in_their_turn_and_not_when_they_are_posted() {
    let make = || {
        let pair = in_memory(1, |qp| qp);
        let elsewhere = pair.b.device.alloc_pd().reg_mr(vec![1; 64], Access::LOCAL_WRITE).unwrap();
        let readable = pair.b.pd.reg_mr(vec![1; 64], Access::NONE).unwrap();
        (pair, elsewhere, readable)
    };
    for which in 0..3 {
        let (Pair { a, b, .. }, elsewhere, readable) = make();
        let wrong = match which {
            0 => SendWr::write(elsewhere.buffer(..).unwrap(), a.open.remote().plus(64)),
            1 => SendWr::read(readable.buffer(..).unwrap(), a.open.remote()),
            _ => SendWr::write_inline(&[1; 8], a.open.remote().plus(64)).without_memory(),
        };
        let behind = SendWr::write_inline(&[1; 8], a.open.remote().plus(64)).wr_id(2);
        let first = SendWr::write_inline(&[1; 8], a.open.remote());
        b.qp.post_sends_together(vec![first, wrong.wr_id(1).fault_late(), behind]).unwrap();
        let ended = [(); 3].map(|()| b.wait()).map(|it| (it.wr_id, it.status));
        let expected = [Status::Success, Status::LocalProtectionError, Status::WorkRequestFlushed];
        assert_eq!(ended, [(0, expected[0]), (1, expected[1]), (2, expected[2])]);
        assert_eq!((a.open.fetch_add(64, 0), b.qp.state()), (Ok(0), QpState::Error));
        assert!(elsewhere.deregister().is_ok() && readable.deregister().is_ok(), "they are lent no more");
    }
    for which in 0..2 {
        let (Pair { a, b, .. }, elsewhere, readable) = make();
        let region = [elsewhere, readable].into_iter().nth(which).unwrap();
        b.qp.post_recv(RecvWr::new(region.buffer(..).unwrap()).wr_id(1).fault_late()).unwrap();
        b.qp.post_recv(RecvWr::new(b.own.buffer(..64).unwrap()).wr_id(2)).unwrap();
        a.qp.post_send(SendWr::send_inline(&[7; 8])).unwrap();
        assert_eq!(a.wait().status, Status::RemoteOperationError);
        let ended = [(); 2].map(|()| b.wait()).map(|it| (it.wr_id, it.status));
        assert_eq!(ended, [(1, Status::LocalProtectionError), (2, Status::WorkRequestFlushed)]);
        assert_eq!(region.deregister().unwrap(), [1; 64]);
    }
}

#[test]
fn what_a_queue_pair_cannot_do_is_refused_with_the_reason_and_the_range() {
    let Pair { a, b, .. } = in_memory(2, |qp| qp);
    let refused = |qp: &QueuePair, request| qp.post_send(request).unwrap_err().to_string();
    let odd = refused(&a.qp, SendWr::fetch_add(b.open.remote().plus(4), 1));
    assert!(odd.contains("a multiple of 8"), "{odd}");
    let no_reads = a.pd.create_qp(&a.cq, &a.cq).max_rd_atomic(0).build().unwrap();
    no_reads.connect(b.qp.info()).unwrap();
    for request in
        [SendWr::fetch_add(b.open.remote(), 1), SendWr::read(a.own.buffer(0..8).unwrap(), b.open.remote())]
    {
        let off = refused(&no_reads, request);
        assert!(off.contains("max_rd_atomic is 0"), "{off}");
    }
    let datagrams = a.pd.create_qp(&a.cq, &a.cq).datagrams(7).path_mtu(Mtu::Mtu256).build().unwrap();
    let to = |address, octets| SendWr::datagram(a.own.buffer(0..octets).unwrap(), address, b.qp.qp_num(), 7);
    let long = refused(&datagrams, to(b.device.address(), 257));
    assert!(long.contains("256") && long.contains("257"), "{long}");
    let group = refused(&datagrams, to([224, 0, 0, 5].into(), 1));
    assert!(group.contains("224.0.0.5"), "{group}");
    let again = a.qp.connect(b.qp.info()).unwrap_err().to_string();
    assert!(again.contains("ReadyToSend") && again.contains("INIT alone"), "{again}");
    let built = |build: fn(QueuePairBuilder) -> QueuePairBuilder| {
        build(a.pd.create_qp(&a.cq, &a.cq)).build().unwrap_err().to_string()
    };
    for (told, most) in [
        (built(|qp| qp.retry_cnt(8)), "7 at most, and not 8"),
        (built(|qp| qp.rnr_retry(9)), "7 at most, and not 9"),
        (built(|qp| qp.timeout(32)), "31 at most, and not 32"),
    ] {
        assert!(told.contains(most), "{told}");
    }
    assert!(a.pd.create_qp(&a.cq, &a.cq).timeout(31).build().is_ok());
    let changed = a.qp.modify(&Change { retry: Some(8), ..Change::default() }).unwrap_err().to_string();
    assert!(changed.contains("7 at most, and not 8"), "{changed}");
}

#[test]
fn a_state_that_no_way_leads_to_is_refused_with_the_ways_that_there_are() {
    let Pair { a, .. } = in_memory(2, |qp| qp);
    let early = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    let to = |transition| Change { transition: Some(transition), ..Change::default() };
    for (qp, way, why) in [
        (
            &early,
            Transition::Send,
            "Init, where Send is not possible, but Reset, Initialize, Receive or Fail",
        ),
        (
            &a.qp,
            Transition::Receive,
            "ReadyToSend, where Receive is not possible, but Reset, Send, Drain or Fail",
        ),
    ] {
        let refused = qp.modify(&to(way)).unwrap_err().to_string();
        assert_eq!(refused, format!("the queue pair is in state {why}"));
    }
}

#[test]
fn a_peer_is_named_by_who_leads_to_it_alone() {
    let Pair { a, .. } = in_memory(2, |qp| qp);
    let early = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    let receive = Change { transition: Some(Transition::Receive), ..Change::default() };
    let other = Change { peer: Some(a.qp.info().qpn), ..Change::default() };
    for (qp, change) in [(&early, &receive), (&early, &other), (&a.qp, &other)] {
        let before = qp.state();
        let refused = qp.modify(change).unwrap_err();
        assert!(matches!(refused, QueuePairError::Peer), "{refused}");
        assert_eq!(qp.state(), before);
    }
}

#[test]
fn a_device_is_of_one_host() {
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"] {
        let refused = Device::open(address.parse().unwrap()).unwrap_err().to_string();
        assert!(refused.contains("not the address of a host"), "{address}: {refused}");
    }
    let mapped = Device::open("::ffff:127.0.0.1".parse().unwrap()).unwrap();
    assert_eq!(mapped.address().to_string(), "127.0.0.1");
}

#[test]
fn rights_are_joined_in_constants_as_elsewhere() {
    const RIGHTS: Access = Access::LOCAL_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_WRITE);
    assert_eq!(RIGHTS, Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE);
    assert!(RIGHTS.has(Access::REMOTE_READ) && !RIGHTS.has(Access::REMOTE_ATOMIC));
}

#[test]
fn parts_that_a_request_has_no_use_for_are_refused_with_it() {
    let Pair { a, b, .. } = in_memory(3, |qp| qp);
    let (buffer, to) = (|at| a.own.buffer(at..at + 8).unwrap(), b.open.remote());
    let read = SendWr::read(buffer(0), to).gather(vec![buffer(8).freeze()]);
    let write = SendWr::write(buffer(16), to).scatter(vec![buffer(24)]);
    for request in [read, write, SendWr::fetch_add(to, 1).scatter(vec![buffer(32)])] {
        let refused = a.qp.post_send(request).unwrap_err();
        assert_eq!(refused.error, WrError::Parts);
    }
    // A READ into no buffers reads nothing, and what it was made with is back at once.
    let nothing = SendWr::read(buffer(40), to).scatter(Vec::new());
    drop(buffer(40));
    a.qp.post_send(nothing).unwrap();
    assert_eq!(a.done().byte_len, 0);
    assert_eq!(a.own.buffer(5..5).err(), Some(LentError::Empty(5)));
    let slice = a.own.slice(0..64).unwrap();
    a.qp.post_send(SendWr::write(slice.slice(64..64).unwrap(), to)).unwrap();
    assert_eq!(a.done().byte_len, 0);
}

#[test]
fn what_a_refused_request_was_to_gather_or_scatter_comes_back_with_it() {
    let Pair { a, b, .. } = in_memory(3, |qp| qp.max_send_wr(0).max_recv_wr(0));
    let buffers = || vec![a.own.buffer(0..8).unwrap(), a.own.buffer(8..16).unwrap()];
    let slices = buffers().into_iter().map(roci_endpoint::Buffer::freeze).collect();
    let refused = a.qp.post_send(SendWr::send_inline(&[]).gather(slices)).unwrap_err();
    assert_eq!(refused.request.into_slices().len(), 2);
    let read = SendWr::read(a.own.buffer(99..100).unwrap(), b.open.remote()).scatter(buffers());
    assert_eq!(a.qp.post_send(read).unwrap_err().request.into_buffers().len(), 2);
    let refused = a.qp.post_recv(RecvWr::scatter(buffers())).unwrap_err();
    let back = refused.request.into_buffers();
    assert!(a.own.buffer(15..16).is_err(), "it is ours alone still");
    assert_eq!(back.iter().map(roci_endpoint::Buffer::offset).collect::<Vec<_>>(), [0, 8]);
}

#[test]
fn who_is_no_single_host_is_no_peer() {
    let Pair { a, .. } = in_memory(4, |qp| qp);
    for address in [[0, 0, 0, 0], [255, 255, 255, 255], [224, 0, 0, 1]] {
        let qp = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
        let refused = qp.connect(QpInfo { address: address.into(), ..a.qp.info() });
        assert!(matches!(refused, Err(QueuePairError::NoHost(_))), "{refused:?}");
        assert_eq!(qp.state(), QpState::Init);
        let manager = ConnectionManager::new(&a.device).unwrap();
        let refused = manager.request(&qp, (address, 7).into(), &ConnParam::default());
        assert!(matches!(refused, Err(CmError::QueuePair(QueuePairError::NoHost(_)))), "{refused:?}");
        let param = ConnParam { ack_timeout: Some(32), ..ConnParam::default() };
        let refused = manager.request(&qp, ([10, 0, 0, 9], 7).into(), &param).unwrap_err().to_string();
        assert!(refused.contains("31 at most, and not 32"), "{refused}");
    }
}

/// The WRITE of eight octets of ones to the start of b's region, as a would send it with `psn`.
#[test]
fn what_is_printed_is_short_and_names_what_is_wrong() {
    let (a, b) = (Device::open([127, 0, 0, 1].into()).unwrap(), Device::open([127, 0, 0, 1].into()).unwrap());
    let Pair { a, b, .. } = connect(&a, &b, |qp| qp);
    b.qp.post_recv(RecvWr::new(b.own.buffer(8..40).unwrap())).unwrap();
    a.qp.post_send(SendWr::send_inline(&[1; 33])).unwrap();
    let completion = a.wait();
    assert_eq!(completion.status.to_string(), "Remote Invalid Request Error");
    for text in [
        format!("{:?}", b.wait()),
        format!("{:?}", b.qp),
        format!("{:?}", b.own),
        format!("{a:?}", a = a.device),
    ] {
        assert!(text.len() < 500, "{} octets: {text}", text.len());
    }
    // An address for documentation (RFC 5737).
    let error = Device::open([192, 0, 2, 1].into()).unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("192.0.2.1 is no address of this host, which has 127.0.0.1"), "{told}");
}

fn write_of_ones(b: &End, qp: &QueuePair, psn: Psn) -> Header {
    let mut header = Header::new(Opcode::WRITE_ONLY, qp.qp_num(), psn);
    header.flags = Flags::ACK_REQUEST;
    header.set_reth(Reth { va: b.open.addr(), rkey: b.open.rkey(), length: 8 });
    header
}

#[test]
fn a_stranger_cannot_write_even_with_all_the_right_numbers() {
    let Pair { wire, a, b } = in_memory(1, |qp| qp);
    let wire = wire.unwrap();
    let c = wire.attach("10.0.0.3".parse().unwrap()).unwrap();
    let header = write_of_ones(&b, &b.qp, a.qp.info().psn);
    let mut octets = forge(&a.device, &b.device, header, &[0xff; 8]);
    // With a's ICRC from another address it is corrupt; with its own ICRC it comes from the wrong peer.
    wire.inject("10.0.0.3".parse().unwrap(), b.device.address(), &octets);
    settle(&b, 1);
    assert_eq!(b.device.counters().corrupt, 1);
    let ip = Ip::v4("10.0.0.3".parse().unwrap(), "10.0.0.2".parse().unwrap());
    let mut header = header;
    header.payload = 8;
    Transport::standard(header).emit_with(&ip, 4791, &mut octets, |place| place.fill(0xff)).unwrap();
    wire.inject("10.0.0.3".parse().unwrap(), b.device.address(), &octets);
    settle(&b, 2);
    assert_eq!((b.device.refused(Refusal::WrongPeer), b.open.load(0).unwrap()), (1, 0));
    drop(c);
    // The same from the peer is a WRITE.
    wire.inject(a.device.address(), b.device.address(), &forge(&a.device, &b.device, header, &[0xff; 8]));
    settle(&b, 3);
    assert_eq!(b.open.load(0).unwrap(), u64::MAX);
}

#[test]
fn a_stale_packet_changes_nothing_and_a_replayed_atomic_is_not_carried_out_again() {
    let Pair { wire, a, b } = in_memory(1, |qp| qp);
    let wire = wire.unwrap();
    let psn = a.qp.info().psn;
    a.qp.post_send(SendWr::write_inline(&[0; 8], b.open.remote())).unwrap();
    a.done();
    a.qp.post_send(SendWr::fetch_add(b.open.remote(), 1)).unwrap();
    assert_eq!(a.done().original, 0);
    let received = b.device.counters().received;
    let stale = forge(&a.device, &b.device, write_of_ones(&b, &b.qp, psn), &[0xff; 8]);
    wire.inject(a.device.address(), b.device.address(), &stale);
    let mut again = Header::new(Opcode::FETCH_ADD, b.qp.qp_num(), psn.plus(1));
    again.flags = Flags::ACK_REQUEST;
    let (va, rkey) = (b.open.addr(), b.open.rkey());
    again.set_atomic(AtomicEth { va, rkey, swap_or_add: 1, compare: 0 });
    wire.inject(a.device.address(), b.device.address(), &forge(&a.device, &b.device, again, &[]));
    settle(&b, received + 2);
    assert_eq!((b.open.load(0).unwrap(), b.device.refused(Refusal::Duplicate)), (1, 2));
    a.qp.post_send(SendWr::fetch_add(b.open.remote(), 1)).unwrap();
    assert_eq!(a.done().original, 1, "and the connection goes on");
}

#[test]
fn numbers_and_keys_differ_from_device_to_device() {
    let (one, other) = (in_memory(1, |qp| qp), in_memory(1, |qp| qp));
    assert_ne!(one.a.qp.qp_num(), other.a.qp.qp_num());
    assert_ne!(one.a.qp.info().psn, other.a.qp.info().psn);
    assert_ne!(one.a.open.rkey(), other.a.open.rkey());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_octets_from_the_network_do_harm(
        packets in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), any::<u8>(), any::<bool>()), 1..64)
    ) {
        let Pair { wire, a, b } = in_memory(1, |qp| qp);
        let wire = wire.unwrap();
        let total = packets.len() as u64;
        for (mut octets, opcode, sealed) in packets {
            if sealed {
                // Plausible as far as the ICRC: what the headers say is the hostile part.
                let mut header = Header::new(Opcode(opcode), b.qp.qp_num(), a.qp.info().psn);
                header.set_atomic(AtomicEth { va: b.open.addr(), rkey: b.open.rkey(), swap_or_add: 8, compare: 9 });
                header.payload = u16::try_from(octets.len()).unwrap();
                let transport = Transport::standard(header);
                let (payload, mut sealed) = (octets, vec![0; transport.len()]);
                let ip = Ip::v4("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
                let fill = |place: &mut [u8]| place.copy_from_slice(&payload);
                octets = match transport.emit_with(&ip, 4791, &mut sealed, fill) {
                    Ok(_) => sealed,
                    Err(_) => payload,
                };
            } else if octets.len() >= 8 {
                octets[5..8].copy_from_slice(&b.qp.qp_num().get().to_be_bytes()[1..]);
            }
            wire.inject(a.device.address(), b.device.address(), &octets);
        }
        settle(&b, total);
        let counted = b.device.counters();
        prop_assert_eq!(counted.received, total);
    }
}

#[test]
fn who_posts_before_connecting_is_told_to_connect() {
    let device = common::in_memory(1, |qp| qp).a;
    let qp = device.pd.create_qp(&device.cq, &device.cq).build().unwrap();
    let refused = qp.post_send(SendWr::send_inline(b"too early")).unwrap_err();
    assert_eq!(refused.to_string(), "the queue pair is in state Init: connect it first");
    qp.modify(&Change { transition: Some(Transition::Reset), ..Change::default() }).unwrap();
    let refused = qp.post_recv(RecvWr::empty()).unwrap_err();
    assert_eq!(refused.to_string(), "the queue pair is in state Reset: bring it to INIT first");
}

/// As a `main` that returns `Result<(), Box<dyn Error>>` ends.
#[test]
fn a_program_that_ends_with_an_error_prints_a_sentence() {
    use roci_endpoint::{bridge::BridgeError, congestion, perf::PerfError, ping::PingError};
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let _lent = a.own.buffer(0..64).unwrap();
    let srq = a.pd.create_srq(1);
    srq.post_recv(RecvWr::empty()).unwrap();
    let twice = a.qp.connect(b.qp.info()).unwrap_err();
    let fresh = a.pd.create_qp(&a.cq, &a.cq).build().unwrap();
    let errors: [(Box<dyn std::error::Error>, &str); 11] = [
        (a.own.buffer(0..64).unwrap_err().into(), "some of octets 0 to 64 are lent: wait for"),
        (a.pd.reg_mr(Vec::new(), Access::LOCAL_WRITE).unwrap_err().into(), "it has no octets"),
        (srq.resize(0).unwrap_err().into(), "there is to be room for 0"),
        (srq.post_recv(RecvWr::empty()).unwrap_err(), "the queue is full"),
        (WrError::Inline.into(), "more than "),
        (
            fresh.post_send(SendWr::send_inline(b"early")).unwrap_err(),
            "the queue pair is in state Init: connect it",
        ),
        (twice.into(), "the queue pair is in state ReadyToSend, and can be connected in INIT alone"),
        (CmError::InUse(7).into(), "port 7 is listened at already"),
        (
            congestion::law("dcqcm", BitsPerSec::from_gbps(10), |path| std::fs::read(path))
                .unwrap_err()
                .into(),
            "there is no law \"dcqcm\"",
        ),
        (PerfError::Options("no".into()).into(), "no"),
        (PingError::Options("no").into(), "no"),
    ];
    for (error, begins) in &errors {
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(error.to_string().starts_with(begins), "{error}");
    }
    assert!(!format!("{:?}", BridgeError::Trim).starts_with("Trim"));
}
