//! Who asks for datagrams and who is asked, over a wire in memory.

use super::*;
use crate::device::{Backend, Device, DeviceConfig};
use crate::io::{Faults, MemoryWire};
use roci_units::Span;

const WAIT: Duration = Duration::from_secs(10);

fn managers() -> [ConnectionManager; 2] {
    managers_at(&MemoryWire::new(1))
}

fn managers_at(wire: &MemoryWire) -> [ConnectionManager; 2] {
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

/// Lets all that is said from now on be lost, until the manager has said what it had to.
fn losing<T>(wire: &MemoryWire, who: &ConnectionManager, does: impl FnOnce() -> T) -> T {
    let address = who.handle.inner.device.address();
    assert!(who.settle(WAIT));
    wire.cut(address, true);
    let done = does();
    assert!(who.settle(WAIT), "what is lost has left");
    wire.cut(address, false);
    done
}

#[test]
fn an_answer_that_was_lost_is_given_again_though_nobody_listens_any_more() {
    let wire = MemoryWire::new(2);
    let [near, there] = managers_at(&wire);
    let listener = there.listen_datagrams(7000).unwrap();
    let answered = || {
        let core = there.handle.inner.core();
        core.notes.values().filter(|note| note.offer.is_some()).count()
    };
    let mut asked = near.resolve_service(far(7000), None, b"").unwrap();
    let request = listener.get_request(WAIT).unwrap();
    losing(&wire, &there, || request.accept(Qpn::new(0x22), 1, b"first").unwrap());
    // Another request is another one, and is not told what the first was.
    let mut other = near.resolve_service(far(7000), None, b"").unwrap();
    let request = listener.get_request(WAIT).unwrap();
    losing(&wire, &there, || request.reject(b"second").unwrap());
    drop(listener);
    assert_eq!(answered(), 2, "the port is ours as long as an answer may be asked for again");
    let told = asked.wait(WAIT).unwrap().unwrap();
    assert_eq!((told.qpn, &told.private_data[..6]), (Qpn::new(0x22), &b"first\0"[..]));
    match other.wait(WAIT) {
        Err(CmError::Unresolved { status: status::REJECTED, private_data, .. }) => {
            assert_eq!(&private_data[..7], b"second\0");
        }
        other => panic!("{other:?}"),
    }
    // It may have been lost once more.
    assert_eq!(answered(), 2);
    let inner = &there.handle.inner;
    let mut core = inner.core();
    core.machine.wake(inner.device.inner.now() + Span::from_millis(8_600));
    inner.pump(&mut core);
    assert!(core.notes.is_empty() && core.machine.is_empty());
}

#[test]
fn each_who_asks_over_a_wire_that_loses_is_told_of_one_queue_pair_that_was_named_once() {
    // Of two datagrams that are to arrive, so few are lost that eight requests in a row without an answer are none in 10⁵ runs.
    const MANY: u32 = 20;
    let wire = MemoryWire::new(3);
    let [near, there] = managers_at(&wire);
    let listener = there.listen_datagrams(7000).unwrap();
    wire.set_faults(Faults { loss: 80, duplicate: 100, reorder: 100, ..Faults::default() });
    let mut asked: Vec<_> =
        (0..MANY).map(|who| near.resolve_service(far(7000), None, &who.to_be_bytes()).unwrap()).collect();
    let (mut named, mut told) = (Vec::new(), vec![None; asked.len()]);
    let mut seen = 0;
    while told.contains(&None) {
        seen = there.wait_news(seen, Duration::from_millis(10));
        while let Some(request) = listener.get_request(Duration::ZERO) {
            named.push(request.private_data()[..4].to_vec());
            request.accept(Qpn::new(100 + u32::try_from(named.len()).unwrap()), 1, b"").unwrap();
        }
        for (asked, told) in asked.iter_mut().zip(&mut told).filter(|(_, told)| told.is_none()) {
            *told = asked.wait(Duration::ZERO).unwrap().map(|peer| peer.qpn);
        }
    }
    assert_eq!(named.len(), asked.len(), "nobody was asked twice");
    for (who, qpn) in (0..MANY).zip(told) {
        let place = named.iter().position(|named| *named == who.to_be_bytes()).unwrap();
        assert_eq!(qpn, Some(Qpn::new(101 + u32::try_from(place).unwrap())));
    }
}
