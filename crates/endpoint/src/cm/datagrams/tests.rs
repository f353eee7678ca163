//! Who asks for datagrams and who is asked, over a wire in memory.

use super::*;
use crate::device::{Backend, Device, DeviceConfig};
use crate::io::MemoryWire;

const WAIT: Duration = Duration::from_secs(10);

fn managers() -> [ConnectionManager; 2] {
    let wire = MemoryWire::new(1);
    [1, 2].map(|host| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, host].into(), config).unwrap();
        ConnectionManager::new(&device).unwrap()
    })
}

fn far(port: u16) -> SocketAddr {
    ([10, 0, 0, 2], port).into()
}

#[test]
fn who_asks_learns_the_queue_pair_its_key_and_what_the_user_says() {
    let [near, there] = managers();
    let listener = there.listen_datagrams(7000).unwrap();
    let mut asked = near.resolve_service(far(7000), Some(4711), b"who").unwrap();
    assert!(asked.wait(Duration::ZERO).unwrap().is_none());
    let request = listener.get_request(WAIT).unwrap();
    assert_eq!(request.peer(), ([10, 0, 0, 1], 4711).into());
    assert_eq!((request.private_data().len(), &request.private_data()[..4]), (180, &b"who\0"[..]));
    request.accept(Qpn::new(0x1122), UDP_Q_KEY, b"me").unwrap();
    let told = asked.wait(WAIT).unwrap().unwrap();
    assert_eq!((told.address, told.qpn, told.q_key), (far(0).ip(), Qpn::new(0x1122), UDP_Q_KEY));
    assert_eq!((told.private_data.len(), &told.private_data[..3]), (136, &b"me\0"[..]));
    assert!(matches!(asked.wait(WAIT), Err(CmError::Gone)), "it is told once");
    assert!(near.handle.inner.core().machine.is_empty() && near.handle.inner.core().notes.is_empty());
}

#[test]
fn who_refuses_says_why_and_so_does_who_does_not_look() {
    let [near, there] = managers();
    let listener = there.listen_datagrams(0).unwrap();
    let to = far(listener.port());
    let status_of = |asked: &mut Resolving| match asked.wait(WAIT) {
        Err(CmError::Unresolved { peer, status, private_data }) if peer == to => (status, private_data[0]),
        other => panic!("{other:?}"),
    };
    let mut asked = near.resolve_service(to, None, b"").unwrap();
    listener.get_request(WAIT).unwrap().reject(b"no").unwrap();
    assert_eq!(status_of(&mut asked), (status::REJECTED, b'n'));
    let mut asked = near.resolve_service(to, None, b"").unwrap();
    drop(listener.get_request(WAIT).unwrap());
    assert_eq!(status_of(&mut asked), (status::REJECTED, 0));
    let request = near.resolve_service(to, None, b"").map(|_| listener.get_request(WAIT).unwrap()).unwrap();
    assert!(matches!(request.accept(Qpn::new(2), 1, &[0; 137]), Err(CmError::PrivateData(136))));
    assert!(matches!(near.resolve_service(to, None, &[0; 181]), Err(CmError::PrivateData(180))));
    // Nobody listens any more.
    drop(listener);
    let mut asked = near.resolve_service(to, None, b"").unwrap();
    assert_eq!(status_of(&mut asked), (status::UNSUPPORTED, 0));
}

#[test]
fn a_port_for_datagrams_is_none_for_connections() {
    let [near, there] = managers();
    let _connections = there.listen(7000).unwrap();
    let mut asked = near.resolve_service(far(7000), None, b"").unwrap();
    let refused = asked.wait(WAIT).unwrap_err();
    assert!(matches!(refused, CmError::Unresolved { status: status::UNSUPPORTED, .. }), "{refused}");
    assert_eq!(
        refused.to_string(),
        "10.0.0.2:7000 has no queue pair for these datagrams: nobody listens at this port (status 1)"
    );
    let listener = there.listen_datagrams(7000).unwrap();
    assert!(matches!(there.listen_datagrams(7000), Err(CmError::InUse(7000))));
    drop(listener);
    assert!(there.listen_datagrams(7000).is_ok());
}
