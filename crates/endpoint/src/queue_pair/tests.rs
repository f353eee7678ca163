use super::*;
use crate::device::{Device, DeviceConfig, Progress};
use crate::io::{MemoryWire, sys};
use crate::memory::{MemoryRegion, RemoteMemory};
use crate::pair::{End, pair};
use crate::work::{SendWr, WorkCompletion, WrError};
use roci_transport::{Recovery, Status};
use roci_wire::udp::ROCE_PORT;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

fn pair_as(build: impl Fn(QueuePairBuilder) -> QueuePairBuilder) -> [End; 2] {
    pair(&MemoryWire::new(1), DeviceConfig::default().progress, build)
}

fn done(end: &End, request: SendWr) -> WorkCompletion {
    end.qp.post_send(request).unwrap();
    end.cq.wait(Duration::from_secs(20)).unwrap()
}

#[test]
fn packets_bear_the_code_point_of_their_queue_pair_or_their_datagram() {
    let [here, there] = [[127, 0, 0, 93], [127, 0, 0, 94]].map(IpAddr::from);
    let peer = UdpSocket::bind((there, ROCE_PORT)).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    sys::set_option(&peer, libc::IPPROTO_IP, libc::IP_RECVTOS, 1).unwrap();
    let config = DeviceConfig { progress: Progress::Caller, dscp: 4, ..DeviceConfig::default() };
    let device = Device::open_with(here, config).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let (mut messages, mut octets) = (sys::Messages::new(1), vec![0; 2048]);
    let mut came = |qp: &QueuePair, request: SendWr| {
        qp.post_send(request).unwrap();
        device.progress();
        peer.peek_from(&mut [0; 64]).unwrap();
        assert_eq!(messages.receive(peer.as_raw_fd(), &mut octets, 2048).unwrap(), 1);
        messages.told(0).unwrap().3.class >> 2
    };
    let made = || pd.create_qp(&cq, &cq).timeout(0);
    let far = QpInfo { address: there, qpn: Qpn::new(5), psn: Psn::new(0) };
    let connected = |qp: QueuePair| {
        qp.connect(far).unwrap();
        qp
    };
    let plain = || SendWr::write_inline(&[], RemoteMemory::default());
    // Several of one device at once, to one address.
    let [usual, own, later] = [made(), made().dscp(26), made().dscp(26)].map(|qp| qp.build().unwrap());
    later.set_dscp(8).unwrap();
    let [usual, own, later] = [usual, own, later].map(connected);
    for _ in 0..2 {
        assert_eq!([&usual, &own, &later].map(|qp| came(qp, plain())), [4, 26, 8]);
    }
    let datagrams = made().datagrams(7).dscp(10).build().unwrap();
    let datagram = || SendWr::datagram_inline(&[1], there, Qpn::new(9), 7);
    let points = [datagram(), datagram().dscp(46), datagram()].map(|request| came(&datagrams, request));
    assert_eq!(points, [10, 46, 10]);
    datagrams.set_dscp(12).unwrap();
    assert_eq!(came(&datagrams, datagram()), 12);
    let beyond = datagrams.post_send(datagram().dscp(64)).unwrap_err();
    assert!(matches!(beyond.error, WrError::CodePoint));
    assert!(matches!(made().dscp(64).build(), Err(QueuePairError::Range { given: 64, most: 63, .. })));
    assert!(own.set_dscp(64).is_err());
}

#[test]
fn ends_of_different_code_points_are_each_others_peers() {
    let [near, far] = pair_as(|qp| qp.dscp(26));
    far.qp.modify(&Change { transition: Some(Transition::Reset), ..Change::default() }).unwrap();
    far.qp.modify(&Change { transition: Some(Transition::Initialize), ..Change::default() }).unwrap();
    far.qp.set_dscp(0).unwrap();
    far.qp.connect(near.qp.info()).unwrap();
    let all = Access::ALL;
    let target = far.pd.reg_mr(vec![0; 100_000], all).unwrap();
    let source = near.pd.reg_mr(vec![7; 100_000], all).unwrap();
    assert!(done(&near, SendWr::write(source.slice(..).unwrap(), target.remote())).is_ok());
    assert!(done(&near, SendWr::read(source.buffer(..).unwrap(), target.remote())).is_ok());
    let mut last = [0];
    target.read(99_999, &mut last).unwrap();
    assert_eq!(last, [7]);
}

#[test]
fn a_queue_pair_gives_its_peer_no_more_rights_than_it_has_been_told() {
    // Each request as it ends where the queue pair gives `rights`, of a region that allows all.
    let ends = |rights: Access| {
        let request: [fn(&MemoryRegion, RemoteMemory) -> SendWr; 3] = [
            |_, remote| SendWr::write_inline(&[1; 8], remote),
            |own, remote| SendWr::read(own.buffer(..).unwrap(), remote),
            |_, remote| SendWr::fetch_add(remote, 1),
        ];
        request.map(|request| {
            let [near, far] = pair_as(|qp| qp.access(rights));
            let target = far.pd.reg_mr(vec![0; 8], Access::ALL).unwrap();
            let own = near.pd.reg_mr(vec![0; 8], Access::ALL).unwrap();
            done(&near, request(&own, target.remote())).status
        })
    };
    let (success, refused) = (Status::Success, Status::RemoteInvalidRequestError);
    assert_eq!(ends(Access::ALL), [success; 3]);
    assert_eq!(ends(Access::NONE), [refused; 3]);
    assert_eq!(ends(Access::REMOTE_WRITE), [success, refused, refused]);
    assert_eq!(ends(Access::REMOTE_READ), [refused, success, refused]);
    assert_eq!(ends(Access::REMOTE_ATOMIC), [refused, refused, success]);
    let nothing = || SendWr::write_inline(&[], RemoteMemory::default());
    let [near, _far] = pair_as(|qp| qp.access(Access::REMOTE_READ));
    assert_eq!(done(&near, nothing()).status, refused, "nor does it take a WRITE without octets");
    // Layouts whose packets say where they go, and connections that answer nothing.
    let [near, far] = pair_as(|qp| qp.recovery(Recovery::Irn, Recovery::Irn.layout()).access(Access::NONE));
    let target = far.pd.reg_mr(vec![0; 8], Access::ALL).unwrap();
    assert_eq!(done(&near, SendWr::write_inline(&[1], target.remote())).status, Status::RemoteAccessError);
    let [near, far] = pair_as(|qp| qp.unreliable().access(Access::NONE));
    let target = far.pd.reg_mr(vec![0; 8], Access::ALL).unwrap();
    assert!(done(&near, SendWr::write_inline(&[1], target.remote())).is_ok());
    while far.qp.counters().dropped == 0 {
        std::thread::yield_now();
    }
    assert_eq!(target.load(0).unwrap(), 0);
    // What is taken away of a queue pair that is connected is gone from the next request on.
    let [near, far] = pair_as(|qp| qp);
    let target = far.pd.reg_mr(vec![0; 8], Access::ALL).unwrap();
    assert!(done(&near, SendWr::write_inline(&[1], target.remote())).is_ok());
    far.qp.set_access(Access::REMOTE_READ);
    assert_eq!(done(&near, SendWr::write_inline(&[1], target.remote())).status, refused);
}
