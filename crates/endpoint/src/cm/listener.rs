//! Who is asked for a connection.

use super::machine::{Id, Machine};
use super::manager::{Asked, Awaited, Core, Handle, Note, Offer};
use super::parameters::{ACK_TIMEOUT_MAX, ConnParam, Terms, mtu_of, service_of};
use super::{CmError, Connection, ConnectionManager};
use crate::device::{Device, Mtu};
use crate::io::sys::EventFd;
use crate::numbers::random;
use crate::queue_pair::{ACK_TIMEOUT, QpInfo, QueuePair};
use roci_transport::Service;
use roci_units::{Psn, Qpn};
use roci_wire::Layout;
use roci_wire::cm::{self, Private, Reply, Request, reason, service};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The first of the ports that are given to who names none, of which there are as many.
const FREE: u16 = 1 << 15;

/// One of them.
pub(super) fn random_port() -> u16 {
    let [low, high, ..] = random().to_le_bytes();
    u16::from_le_bytes([low, high]) | FREE
}

/// A port space: the service of a port, and how a machine begins and ends to offer one.
pub(super) struct Space {
    pub(super) service: fn(u16) -> u64,
    pub(super) listen: fn(&mut Machine, u64) -> bool,
    pub(super) unlisten: fn(&mut Machine, u64),
}

const CONNECTIONS: Space = Space { service, listen: Machine::listen, unlisten: Machine::unlisten };

impl Core {
    /// Offers a port, or a free one where it is 0.
    pub(super) fn offer(
        &mut self,
        device: &Device,
        port: u16,
        space: &Space,
    ) -> Result<(u16, Arc<Offer>), CmError> {
        let mut offer = |port: u16| -> io::Result<Option<Arc<Offer>>> {
            let service = (space.service)(port);
            if !(space.listen)(&mut self.machine, service) {
                return Ok(None);
            }
            let offer = Offer::new(device, service);
            if !matches!(offer, Ok(Some(_))) {
                (space.unlisten)(&mut self.machine, service);
            }
            offer
        };
        let (first, count) = if port == 0 { (random_port(), FREE) } else { (port, 1) };
        let ports = (0..count).map(|more| if port == 0 { FREE | first.wrapping_add(more) } else { port });
        let found = ports.map(|port| offer(port).map(|offer| offer.map(|offer| (port, offer))));
        let found = found.filter_map(Result::transpose).next().transpose()?;
        found.ok_or(CmError::InUse(port))
    }
}

impl ConnectionManager {
    /// Listens at a port, until the listener is dropped; at 0, as with sockets, at a free one from 32768 on, which
    /// [`Listener::port`] tells.
    ///
    /// # Errors
    /// [`CmError::InUse`] where somebody listens there at this address, in this process or another, or has [refused](ConnectRequest) of
    /// late; of 0, where no port is free. [`CmError::Io`] where there are too many descriptors.
    pub fn listen(&self, port: u16) -> Result<Listener, CmError> {
        let waits = Arc::new(EventFd::new()?);
        let mut core = self.handle.inner.core();
        let (port, offer) = core.offer(&self.handle.inner.device, port, &CONNECTIONS)?;
        core.asked.insert(service(port), Asked::new(offer, waits.clone()));
        drop(core);
        Ok(Listener { handle: self.handle.clone(), port, waits })
    }
}

/// Who listens at a port.
///
/// The descriptor of its [`AsFd`] is readable as long as a request waits for [`get_request`](Self::get_request), so that one thread can
/// wait for that and for much else by poll(2). It is not to be read. It stays as it is where the device has no thread, until
/// somebody lets it make progress.
#[derive(Debug)]
pub struct Listener {
    handle: Arc<Handle>,
    port: u16,
    waits: Arc<EventFd>,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waits.borrow()
    }
}

impl Listener {
    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits up to `timeout` for somebody to ask; `None` where nobody did.
    ///
    /// # Errors
    /// None at present.
    pub fn get_request(&self, timeout: Duration) -> Result<Option<ConnectRequest>, CmError> {
        Ok(self.handle.inner.wait(timeout, |core| self.next(core)))
    }

    /// The next that asks, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn asked(&self) -> ConnectRequest {
        self.handle.inner.when(|core| self.next(core)).await
    }

    fn next(&self, core: &mut Core) -> Option<ConnectRequest> {
        let asked = core.asked.get_mut(&service(self.port))?;
        let (id, from, request) = asked.pop()?;
        let (offer, psn) = (Some(asked.offer.clone()), Psn::new(random()));
        // Where it is noted that the peer has given up, and by which it finds us if it asks again.
        core.notes.insert(id, Note { offer, ..Note::default() });
        Some(ConnectRequest { handle: self.handle.clone(), id: Some(id), from, request, psn })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let inner = &self.handle.inner;
        let mut core = inner.core();
        core.machine.unlisten(service(self.port));
        let now = inner.device.inner.now();
        let mut asked = core.asked.remove(&service(self.port));
        while let Some((id, ..)) = asked.as_mut().and_then(Asked::pop) {
            core.machine.reject(now, id, reason::INVALID_SERVICE, Private::NONE);
        }
        inner.pump(&mut core);
    }
}

/// A peer asks for a connection. Dropped, it is rejected.
///
/// A peer does not say that it has heard of a rejection, and asks again where that was lost: it is told the same until it has not asked for
/// 8.6 s. So long the port stays taken for others at this address, although its listener may be dropped; a listener of this device may be
/// there at once.
#[derive(Debug)]
pub struct ConnectRequest {
    handle: Arc<Handle>,
    id: Option<Id>,
    from: IpAddr,
    request: Box<Request>,
    /// The first that the peer is to send.
    psn: Psn,
}

impl ConnectRequest {
    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        SocketAddr::new(self.from, self.request.endpoints.map_or(0, |endpoints| endpoints.port))
    }

    /// What its user tells us: 56 octets, zeros where it tells less.
    pub fn private_data(&self) -> &[u8] {
        &self.request.private.0
    }

    /// The header layout of its queue pair, and of the one to accept with.
    pub fn layout(&self) -> Layout {
        self.request.layout
    }

    /// The service of its queue pair, and of the one to accept with: RC or UC.
    pub fn service(&self) -> Service {
        service_of(self.request.service_type)
    }

    /// READs and atomics that it wants to have outstanding.
    pub fn initiator_depth(&self) -> u8 {
        self.request.initiator_depth
    }

    /// READs and atomics that it takes at once.
    pub fn responder_resources(&self) -> u8 {
        self.request.responder_resources
    }

    /// The path MTU that it asks for; `None` where that is none.
    pub fn path_mtu(&self) -> Option<Mtu> {
        mtu_of(self.request.mtu)
    }

    /// The traffic class that it names for packets of the connection.
    pub fn traffic_class(&self) -> u8 {
        self.request.traffic_class
    }

    /// What a queue pair of ours is to be told of the peer if the request is accepted with `param`; the same each time.
    ///
    /// # Errors
    /// [`CmError::Mtu`] where the path MTU that is asked for cannot be.
    pub fn terms(&self, param: &ConnParam) -> Result<Terms, CmError> {
        let (asked, most) = (self.path_mtu(), self.handle.inner.device.active_mtu());
        let mtu = asked.filter(|mtu| *mtu <= most).ok_or(CmError::Mtu { asked, most })?;
        Ok(Terms {
            peer: QpInfo { address: self.from, qpn: self.request.qpn, psn: self.psn },
            send_psn: self.request.psn,
            mtu,
            reads: param.initiator_depth.min(self.request.responder_resources),
            responses: param.responder_resources.min(self.request.initiator_depth),
            traffic_class: param.traffic_class.unwrap_or(self.request.traffic_class),
            ack_timeout: param.ack_timeout.unwrap_or(match self.request.ack_timeout {
                0 => ACK_TIMEOUT,
                asked => asked.min(ACK_TIMEOUT_MAX),
            }),
            retry: self.request.retry_count.min(7),
            rnr_retry: self.request.rnr_retry_count.min(7),
        })
    }

    /// Connects `qp`, which is this device's and in INIT, and tells the peer so. Its retries are those that the peer asks for, and so is its
    /// local ACK timeout, up to 4.3 s, if `param` has none. [`Connection::wait_established`] says that it has heard.
    ///
    /// # Errors
    /// [`CmError`]; the request is rejected then, and `qp` can serve for another.
    pub fn accept(self, qp: &QueuePair, param: &ConnParam) -> Result<Connection, CmError> {
        qp.may_be_connected_by(&self.handle.inner.device.inner)?;
        let own = Some(qp.dscp() << 2).filter(|class| *class != 0);
        let param = ConnParam { traffic_class: param.traffic_class.or(own), ..param.clone() };
        self.grant(qp.qp_num(), (qp.service(), qp.layout()), Some(qp), &param)
    }

    /// Tells the peer that a queue pair of `service` at this address has been connected, which the caller has seen to by what [`terms`](Self::terms)
    /// says: for queue pairs that are not this device's. Nobody looks whether there is one of that number; and
    /// [`Connection::wait_established`] hears of the peer's word alone, not of its first request.
    ///
    /// # Errors
    /// [`CmError`]; the request is rejected then.
    pub fn accept_number(self, qpn: Qpn, service: Service, param: &ConnParam) -> Result<Connection, CmError> {
        self.grant(qpn, (service, Layout::Standard), None, param)
    }

    fn grant(
        mut self,
        qpn: Qpn,
        (service, layout): (Service, Layout),
        qp: Option<&QueuePair>,
        param: &ConnParam,
    ) -> Result<Connection, CmError> {
        let inner = self.handle.inner.clone();
        param.judge()?;
        let private = param.private(layout)?;
        if self.service() != service {
            let asked = self.service();
            self.refuse(reason::INVALID_SERVICE_TYPE, &[]);
            return Err(CmError::Service(asked));
        }
        if self.request.layout != layout {
            return Err(CmError::Layout(self.request.layout));
        }
        let terms = self.terms(param).inspect_err(|_| self.refuse(reason::INVALID_MTU, &[]))?;
        let reply = Reply {
            local: 0,
            remote: 0,
            qpn,
            psn: self.psn,
            responder_resources: terms.responses,
            initiator_depth: terms.reads,
            rnr_retry_count: param.rnr_retry_count,
            guid: inner.guid,
            layout,
            private,
        };
        let id = self.id.ok_or(CmError::Gone)?;
        // Under one lock, for the peer may give up at any time, and a queue pair that was connected is of no further use.
        let mut core = inner.core();
        if !core.machine.is_asked(id) {
            return Err(CmError::Gone);
        }
        let has_failed = qp.map_or_else(|| Ok(Arc::default()), |qp| terms.connect(qp, &inner.cq))?;
        self.id = None;
        // Its word that it knows of this may be lost, and then the first that it sends says as much.
        let awaits = qp.map(|qp| {
            qp.await_first(self.psn);
            Awaited { qpn, shard: qp.shard() }
        });
        core.notes.entry(id).or_default().awaits = awaits;
        let is_accepted = core.machine.accept(inner.device.inner.now(), id, reply);
        debug_assert!(is_accepted, "it was asked for");
        inner.pump(&mut core);
        drop(core);
        let (handle, private_data) = (self.handle.clone(), self.request.private.0.to_vec());
        Ok(Connection {
            handle,
            id,
            peer: self.peer(),
            private_data,
            terms,
            has_failed,
            over: OnceLock::new(),
        })
    }

    /// Refuses, and tells the peer's user up to 148 octets.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] where that is more; the request is rejected nevertheless, and the user told nothing.
    pub fn reject(mut self, private_data: &[u8]) -> Result<(), CmError> {
        let is_short = private_data.len() <= cm::REJECT_PRIVATE;
        self.refuse(reason::CONSUMER, if is_short { private_data } else { &[] });
        if is_short { Ok(()) } else { Err(CmError::PrivateData(cm::REJECT_PRIVATE)) }
    }

    /// Refuses because of the path MTU that is asked for, of which [`terms`](Self::terms) says whether it can be. A peer that has named none
    /// asks for less then.
    pub fn reject_path_mtu(mut self) {
        self.refuse(reason::INVALID_MTU, &[]);
    }

    /// Why it can be accepted no more, where that is so: the peer has given up, or nobody has answered for as long as it would wait.
    pub fn withdrawn(&self) -> Option<CmError> {
        let id = self.id?;
        let core = self.handle.inner.core();
        let note = core.notes.get(&id)?;
        if let Some(reject) = &note.rejected {
            let (peer, reason, private_data) = (self.peer(), reject.reason, reject.private.0.to_vec());
            return Some(CmError::Rejected { peer, reason, private_data });
        }
        note.is_unreachable.then(|| CmError::Unreachable(self.peer()))
    }

    fn refuse(&mut self, reason: u16, private_data: &[u8]) {
        let Some(id) = self.id.take() else { return };
        let inner = &self.handle.inner;
        let private = Private::new(private_data);
        let mut core = inner.core();
        let private = private.unwrap_or(Private::NONE);
        if !core.machine.reject(inner.device.inner.now(), id, reason, private) {
            core.notes.remove(&id);
        }
        inner.pump(&mut core);
    }
}

impl Drop for ConnectRequest {
    fn drop(&mut self) {
        self.refuse(reason::CONSUMER, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Backend, DeviceConfig};
    use crate::io::MemoryWire;

    #[test]
    fn who_asks_for_a_path_mtu_that_cannot_be_hears_why_and_we_that_we_rejected_it() {
        const WAIT: Duration = Duration::from_secs(10);
        let wire = MemoryWire::new(1);
        let [near, far] = [1, 2].map(|host| {
            let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
            Device::open_with([10, 0, 0, host].into(), config).unwrap()
        });
        let [asking, answering] = [&near, &far].map(|device| ConnectionManager::new(device).unwrap());
        let [active, passive] = [&near, &far].map(|device| {
            let cq = device.create_cq().unwrap();
            device.alloc_pd().create_qp(&cq, &cq).build().unwrap()
        });
        let listener = answering.listen(7000).unwrap();
        let param = ConnParam { path_mtu: Some(Mtu::Mtu4096), ..ConnParam::default() };
        let mut asked = asking.request(&active, ([10, 0, 0, 2], 7000).into(), &param).unwrap();
        let mut request = listener.get_request(WAIT).unwrap().unwrap();
        // None of IBTA's five.
        request.request.mtu = 6;
        let refused = request.accept(&passive, &param).unwrap_err();
        assert!(matches!(refused, CmError::Mtu { asked: None, most: Mtu::Mtu4096 }), "{refused:?}");
        assert_eq!(refused.to_string(), "it names no path MTU, and our link takes at most 4096");
        let told = asked.wait(&active, WAIT).unwrap_err();
        assert!(matches!(told, CmError::Rejected { reason: reason::INVALID_MTU, .. }), "{told:?}");
        let larger = CmError::Mtu { asked: Some(Mtu::Mtu4096), most: Mtu::Mtu1024 };
        assert_eq!(larger.to_string(), "its path MTU is 4096, and our link takes at most 1024");
    }

    #[test]
    fn packets_have_the_class_that_who_connects_names_unless_who_accepts_has_its_own() {
        const WAIT: Duration = Duration::from_secs(10);
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let (manager, cq) = (ConnectionManager::new(&device).unwrap(), device.create_cq().unwrap());
        let listener = manager.listen(7000).unwrap();
        let of = |traffic_class| ConnParam { traffic_class, ..ConnParam::default() };
        // Code points of the two queue pairs, classes that are named by who connects and who accepts; what is asked for, and what comes of it.
        for (own, named, asked, agreed) in [
            ((0, 0), (None, None), 0, [0, 0]),
            ((0, 0), (Some(0x68), None), 0x68, [26, 26]),
            ((26, 0), (None, None), 0x68, [26, 26]),
            ((26, 0), (Some(0x20), Some(0x28)), 0x20, [8, 10]),
            ((26, 5), (None, None), 0x68, [26, 5]),
            ((26, 5), (None, Some(0)), 0x68, [26, 0]),
        ] {
            let qp = |dscp| device.alloc_pd().create_qp(&cq, &cq).dscp(dscp).build().unwrap();
            let (active, passive) = (qp(own.0), qp(own.1));
            let to = ([10, 0, 0, 1], 7000).into();
            let mut connecting = manager.request(&active, to, &of(named.0)).unwrap();
            let request = listener.get_request(WAIT).unwrap().unwrap();
            assert_eq!(request.traffic_class(), asked);
            let _accepted = request.accept(&passive, &of(named.1)).unwrap();
            let _connected = connecting.wait(&active, WAIT).unwrap().unwrap();
            assert_eq!([active.dscp(), passive.dscp()], agreed);
        }
    }

    #[test]
    fn who_is_asked_hears_that_the_peer_has_given_up() {
        const WAIT: Duration = Duration::from_secs(10);
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let cq = device.create_cq().unwrap();
        let qp = device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
        let (listener, param) = (manager.listen(7000).unwrap(), ConnParam::default());
        let asked = manager.request(&qp, ([10, 0, 0, 1], 7000).into(), &param).unwrap();
        let request = listener.get_request(WAIT).unwrap().unwrap();
        assert!(request.withdrawn().is_none());
        drop(asked);
        let mut seen = 0;
        let why = loop {
            match request.withdrawn() {
                Some(why) => break why,
                None => seen = manager.wait_news(seen, WAIT),
            }
        };
        assert!(matches!(why, CmError::Rejected { reason: reason::TIMEOUT, .. }), "{why:?}");
        assert!(matches!(request.accept(&qp, &param), Err(CmError::Gone)));
        assert!(manager.handle.inner.core().notes.is_empty(), "nothing is remembered of it");
    }

    #[test]
    fn what_was_granted_is_refused_with_what_the_peer_s_user_is_told() {
        const WAIT: Duration = Duration::from_secs(10);
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let (listener, param) = (manager.listen(7000).unwrap(), ConnParam::default());
        let to = ([10, 0, 0, 1], 7000).into();
        for said in [&b"not so"[..], &[0; 149]] {
            let mut asked = manager.request_number(Qpn::new(9), Service::Rc, to, &param).unwrap();
            let request = listener.get_request(WAIT).unwrap().unwrap();
            let granted = request.accept_number(Qpn::new(8), Service::Rc, &param).unwrap();
            while asked.granted().unwrap().is_none() {
                std::thread::yield_now();
            }
            let is_short = said.len() <= cm::REJECT_PRIVATE;
            assert_eq!(asked.reject(said).is_ok(), is_short);
            let told = granted.wait_established(WAIT).unwrap_err();
            let CmError::Rejected { private_data, reason, .. } = told else { panic!("{told:?}") };
            assert_eq!(reason, reason::CONSUMER);
            assert_eq!(&private_data[..6], if is_short { said } else { &[0; 6] });
        }
    }

    #[test]
    fn who_names_no_path_mtu_gets_the_largest_that_both_links_take_and_who_names_one_that_or_nothing() {
        const WAIT: Duration = Duration::from_secs(10);
        let wire = MemoryWire::new(1);
        let [near, far] = [(1, None), (2, Some(Mtu::Mtu1024))].map(|(host, mtu)| {
            let backend = Backend::Memory(wire.clone());
            let config = DeviceConfig { backend, mtu, ..DeviceConfig::default() };
            Device::open_with([10, 0, 0, host].into(), config).unwrap()
        });
        assert_eq!((near.active_mtu(), far.active_mtu()), (Mtu::Mtu4096, Mtu::Mtu1024));
        let [asking, answering] = [&near, &far].map(|device| ConnectionManager::new(device).unwrap());
        let pair = || {
            [&near, &far].map(|device| {
                let cq = device.create_cq().unwrap();
                device.alloc_pd().create_qp(&cq, &cq).build().unwrap()
            })
        };
        let listener = answering.listen(7000).unwrap();
        let to = ([10, 0, 0, 2], 7000).into();
        for named in [None, Some(Mtu::Mtu2048)] {
            let param = ConnParam { path_mtu: named, ..ConnParam::default() };
            let [active, passive] = pair();
            let (connected, asked) = std::thread::scope(|scope| {
                let connects = scope.spawn(|| asking.connect(&active, to, &param));
                let mut asked = Vec::new();
                while !connects.is_finished() {
                    let Some(request) = listener.get_request(Duration::from_millis(5)).unwrap() else {
                        continue;
                    };
                    asked.push(request.path_mtu().unwrap());
                    if request.terms(&ConnParam::default()).is_err() {
                        // As well without an attempt.
                        request.reject_path_mtu();
                        continue;
                    }
                    if let Ok(accepted) = request.accept(&passive, &ConnParam::default()) {
                        accepted.wait_established(WAIT).unwrap();
                    }
                }
                (connects.join().unwrap(), asked)
            });
            match named {
                None => {
                    assert!(connected.is_ok());
                    assert_eq!(asked, [Mtu::Mtu4096, Mtu::Mtu2048, Mtu::Mtu1024]);
                }
                Some(_) => {
                    let told = connected.unwrap_err();
                    assert!(matches!(told, CmError::Rejected { reason: reason::INVALID_MTU, .. }), "{told}");
                    assert_eq!(asked, [Mtu::Mtu2048]);
                }
            }
        }
    }
}
