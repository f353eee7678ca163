//! Connection set-up between two devices, over UDP sockets at two loopback addresses and over a wire in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::ping::{self, Watch};
use roci_endpoint::{
    Access, Backend, Device, DeviceConfig, Faults, MemoryWire, Mtu, QpState, QueuePairError, Recovery,
    RecvWr, SendWr,
};
use roci_wire::Layout;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);

fn in_memory(wire: &MemoryWire, address: &str) -> Device {
    let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
    Device::open_with(address.parse().unwrap(), config).unwrap()
}

/// Connects two queue pairs, moves a message in each direction, and ends the connection.
fn talk(near: &Device, far: &Device, param: &ConnParam) {
    let (asking, answering) = (ConnectionManager::new(near).unwrap(), ConnectionManager::new(far).unwrap());
    let listener = answering.listen(7000).unwrap();
    assert!(matches!(answering.listen(7000), Err(CmError::InUse(7000))));
    let to = SocketAddr::new(far.address(), 7000);
    std::thread::scope(|scope| {
        let end = |device: &Device| {
            let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
            let qp = pd.create_qp(&cq, &cq).build().unwrap();
            let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
            qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
            (qp, cq, region)
        };
        let far = scope.spawn(move || {
            let request = listener.get_request(WAIT).unwrap().unwrap();
            assert_eq!(&request.private_data()[..6], b"hello\0");
            let (qp, cq, _region) = end(far);
            let param = ConnParam { private_data: b"welcome".to_vec(), ..ConnParam::default() };
            let connection = request.accept(&qp, &param).unwrap();
            connection.wait_established(WAIT).unwrap();
            let heard = cq.wait(WAIT).unwrap();
            assert_eq!((heard.is_ok(), heard.byte_len), (true, 4));
            qp.post_send(SendWr::send_inline(b"pong!")).unwrap();
            assert!(cq.wait(WAIT).unwrap().is_ok());
            assert!(connection.wait_disconnected(WAIT));
        });
        let (qp, cq, _region) = end(near);
        let param = ConnParam { private_data: b"hello".to_vec(), ..param.clone() };
        let connection = asking.connect(&qp, to, &param).unwrap();
        assert_eq!(qp.state(), QpState::ReadyToSend);
        assert_eq!(&connection.private_data()[..8], b"welcome\0");
        qp.post_send(SendWr::send_inline(b"ping")).unwrap();
        let lengths = [cq.wait(WAIT).unwrap(), cq.wait(WAIT).unwrap()].map(|it| (it.is_ok(), it.byte_len));
        assert!(lengths.contains(&(true, 5)), "{lengths:?}");
        connection.disconnect();
        assert!(connection.wait_disconnected(WAIT));
        far.join().unwrap();
    });
}

#[test]
fn two_devices_connect_over_sockets() {
    let open = |address: &str| Device::open(address.parse().unwrap()).unwrap();
    talk(&open("127.0.0.21"), &open("127.0.0.22"), &ConnParam::default());
}

#[test]
fn a_smaller_mtu_is_agreed_on_and_what_is_lost_comes_again() {
    let wire = MemoryWire::new(3);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let param = ConnParam { path_mtu: Some(Mtu::Mtu256), ..ConnParam::default() };
    talk(&near, &far, &param);
    wire.set_faults(Faults { loss: 200, duplicate: 200, ..Faults::default() });
    talk(&near, &far, &param);
}

#[test]
fn a_rejection_tells_why() {
    let wire = MemoryWire::new(4);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let (pd, cq) = (near.alloc_pd(), near.create_cq().unwrap());
    let qp = pd.create_qp(&cq, &cq).build().unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let refused = asking.connect(&qp, to, &ConnParam::default());
    assert!(matches!(refused, Err(CmError::Rejected { reason: 8, .. })), "{refused:?}");
    let listener = answering.listen(7000).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| listener.get_request(WAIT).unwrap().unwrap().reject(b"full"));
        let refused = asking.connect(&qp, to, &ConnParam::default());
        let Err(CmError::Rejected { reason: 28, private_data, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(&private_data[..5], b"full\0");
    });
    assert_eq!(qp.state(), QpState::Init);
}

#[test]
fn a_header_layout_is_offered_and_has_to_be_accepted() {
    let wire = MemoryWire::new(5);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let make = |device: &Device, is_irn: bool| {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let builder = pd.create_qp(&cq, &cq);
        let builder = if is_irn { builder.recovery(Recovery::Irn, Layout::Irn) } else { builder };
        builder.build().unwrap()
    };
    for knows in [true, false] {
        std::thread::scope(|scope| {
            let (listener, far) = (&listener, &far);
            let answer = scope.spawn(move || {
                let request = listener.get_request(WAIT).unwrap().unwrap();
                assert_eq!(request.layout(), Layout::Irn);
                let qp = make(far, knows);
                request.accept(&qp, &ConnParam::default()).map(|connection| (qp, connection))
            });
            let asked = asking.connect(&make(&near, true), to, &ConnParam::default());
            assert_eq!(asked.is_ok(), knows, "{asked:?}");
            let answered = answer.join().unwrap();
            assert_eq!(answered.is_ok(), knows);
        });
    }
}

#[test]
fn queue_pair_1_is_there_once() {
    let wire = MemoryWire::new(6);
    let device = in_memory(&wire, "10.0.0.1");
    let first = ConnectionManager::new(&device).unwrap();
    let second = ConnectionManager::new(&device);
    assert!(matches!(second, Err(CmError::QueuePair(QueuePairError::Management))), "{second:?}");
    drop(first);
    ConnectionManager::new(&device).unwrap();
}

struct Silent;

impl Watch for Silent {}

#[test]
fn pings_go_to_and_fro() {
    let options = |host: Option<SocketAddr>, device: &str| ping::Options {
        host,
        port: 7174,
        device: device.parse::<IpAddr>().unwrap(),
        count: 50,
        size: 5000,
        validate: true,
        persistent: false,
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| ping::run(&options(None, "127.0.0.32"), &Silent).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        let host = Some("127.0.0.32:7174".parse().unwrap());
        assert_eq!(ping::run(&options(host, "127.0.0.31"), &Silent).unwrap(), 50);
        assert_eq!(server.join().unwrap(), 50);
    });
}
