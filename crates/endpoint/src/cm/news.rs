//! What a manager tells who has many connections, and who ends.

use super::ConnectionManager;
use super::manager::Core;
use std::time::Duration;

/// How often is looked whether all has left.
const SETTLE: Duration = Duration::from_millis(1);

impl ConnectionManager {
    /// Waits up to `timeout` until something has happened that a connection, a request for one or a listener of this device may tell of,
    /// since this told `seen`, at first 0; tells how often something has. For who has many of them, and asks each then.
    pub fn wait_news(&self, seen: u64, timeout: Duration) -> u64 {
        let inner = &self.handle.inner;
        let news = |core: &mut Core| (core.news != seen).then_some(core.news);
        inner.wait(timeout, news).unwrap_or(seen)
    }

    /// Waits up to `timeout` until all that was said has left, for who ends the process; whether it has.
    pub fn settle(&self, timeout: Duration) -> bool {
        let inner = &self.handle.inner;
        let begin = inner.device.inner.passed();
        // Nobody is told of buffers that come back.
        while inner.wait(SETTLE, |core| core.has_said_all().then_some(())).is_none() {
            if inner.device.inner.passed().saturating_sub(begin) >= timeout {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cm::{CmError, ConnParam, Terms};
    use crate::device::{Backend, Device, DeviceConfig};
    use crate::io::MemoryWire;
    use crate::work::SendWr;
    use crate::{Change, Mtu, QueuePair, RemoteMemory, Service, Transition};
    use std::net::SocketAddr;

    const WAIT: Duration = Duration::from_secs(10);

    #[test]
    fn one_wait_tells_of_requests_answers_and_ends_and_of_nothing_else() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let listener = manager.listen(7000).unwrap();
        let qps = [(); 2].map(|()| {
            let cq = device.create_cq().unwrap();
            device.alloc_pd().create_qp(&cq, &cq).build().unwrap()
        });
        assert_eq!(manager.wait_news(0, Duration::from_millis(20)), 0);
        let param = ConnParam { port: Some(4711), ..ConnParam::default() };
        let mut asked = manager.request(&qps[0], SocketAddr::new(device.address(), 7000), &param).unwrap();
        let mut seen = 0;
        let mut until = |is_so: &mut dyn FnMut() -> bool| {
            while !is_so() {
                let news = manager.wait_news(seen, WAIT);
                assert!(news > seen, "there is news before it is so");
                seen = news;
            }
        };
        let mut request = None;
        until(&mut || {
            request = listener.get_request(Duration::ZERO).unwrap();
            request.is_some()
        });
        let request = request.unwrap();
        assert_eq!(request.peer().port(), 4711);
        let accepted = request.accept(&qps[1], &param).unwrap();
        let mut connected = None;
        until(&mut || {
            connected = asked.wait(&qps[0], Duration::ZERO).unwrap();
            connected.is_some()
        });
        let connected = connected.unwrap();
        until(&mut || accepted.poll_established().unwrap().is_some());
        assert!(!accepted.has_left());
        connected.disconnect();
        until(&mut || accepted.has_left() && connected.has_left());
    }

    #[test]
    fn what_was_said_has_left_when_its_buffers_are_back() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        assert!(manager.settle(Duration::ZERO));
        let away = manager.handle.inner.core().free.pop().unwrap();
        assert!(!manager.settle(5 * SETTLE));
        manager.handle.inner.core().free.push(away);
        assert!(manager.settle(WAIT));
    }

    /// Connects it as was agreed.
    fn connect(qp: &QueuePair, terms: &Terms) {
        let change = Change { mtu: Some(terms.mtu.octets()), ..Change::default() };
        qp.ready_to_receive(terms.peer, &change).unwrap();
        let transition = Some(Transition::Send);
        qp.modify(&Change { send_psn: Some(terms.send_psn), transition, ..Change::default() }).unwrap();
    }

    #[test]
    fn queue_pairs_that_are_known_by_their_numbers_are_connected_by_who_has_them() {
        let wire = MemoryWire::new(1);
        // Of two devices one takes less in a packet, of which they agree.
        let [near, far] = [(1, None), (2, Some(Mtu::Mtu1024))].map(|(host, mtu)| {
            let backend = Backend::Memory(wire.clone());
            let config = DeviceConfig { backend, mtu, ..DeviceConfig::default() };
            Device::open_with([10, 0, 0, host].into(), config).unwrap()
        });
        let [asking, answering] = [&near, &far].map(|device| ConnectionManager::new(device).unwrap());
        let [(sent, active), (_, passive)] = [&near, &far].map(|device| {
            let cq = device.create_cq().unwrap();
            let qp = device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
            (cq, qp)
        });
        let listener = answering.listen(7000).unwrap();
        let to = SocketAddr::new(far.address(), 7000);
        let said = |text: &[u8]| ConnParam { private_data: text.to_vec(), ..ConnParam::default() };
        let mut asked = asking.request_number(active.qp_num(), Service::Rc, to, &said(b"who")).unwrap();
        let request = loop {
            // It asks for less when somebody looks.
            assert!(asked.granted().unwrap().is_none());
            match listener.get_request(Duration::from_millis(5)).unwrap() {
                None => {}
                Some(request) if request.path_mtu() == Some(Mtu::Mtu1024) => break request,
                Some(request) => {
                    let refused = request.accept_number(passive.qp_num(), Service::Rc, &said(b""));
                    assert!(matches!(refused, Err(CmError::Mtu { .. })));
                }
            }
        };
        let terms = request.terms(&ConnParam::default()).unwrap();
        assert_eq!(terms, request.terms(&ConnParam::default()).unwrap());
        assert_eq!((terms.peer.qpn, terms.mtu), (active.qp_num(), Mtu::Mtu1024));
        connect(&passive, &terms);
        let accepted = request.accept_number(passive.qp_num(), Service::Rc, &said(b"me")).unwrap();
        assert!(accepted.poll_established().unwrap().is_none(), "it has not been told so");
        let mut seen = 0;
        let terms = loop {
            if let Some((terms, private_data)) = asked.granted().unwrap() {
                assert_eq!(&private_data[..3], b"me\0");
                break terms;
            }
            seen = asking.wait_news(seen, WAIT);
        };
        assert_eq!((terms.peer.qpn, terms.mtu), (passive.qp_num(), Mtu::Mtu1024));
        connect(&active, &terms);
        let connected = asked.ready().unwrap();
        assert_eq!(connected.terms(), &terms);
        accepted.wait_established(WAIT).unwrap();
        active.post_send(SendWr::write_inline(&[], RemoteMemory::default())).unwrap();
        assert!(sent.wait(WAIT).unwrap().is_ok());
        connected.disconnect();
        assert!(accepted.wait_disconnected(WAIT));
    }
}
