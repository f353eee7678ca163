//! Who asks for a connection.

use super::listener::random_port;
use super::machine::{Id, RESPONSE_TIMEOUT, RETRIES};
use super::manager::{Core, Handle, Note};
use super::parameters::{ConnParam, Terms, gid, number_of, service_type_of};
use super::{CmError, Connection, ConnectionManager};
use crate::device::Mtu;
use crate::numbers::random;
use crate::queue_pair::{ACK_TIMEOUT, QpInfo, QueuePair, can_be_peer};
use roci_transport::Service;
use roci_units::{Psn, Qpn};
use roci_wire::Layout;
use roci_wire::cm::{self, Endpoints, Private, Reply, Request, reason, service};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

impl ConnectionManager {
    /// Asks for a connection of `qp`, which is in INIT, and waits for it: nine seconds where nothing is heard, forty where somebody
    /// listens who does not answer, and 0.3 s where nobody listens: in them the peer is asked again.
    ///
    /// # Errors
    /// [`CmError`]; `qp` is of no further use then.
    pub fn connect(&self, qp: &QueuePair, to: SocketAddr, param: &ConnParam) -> Result<Connection, CmError> {
        let mut asked = self.request(qp, to, param)?;
        loop {
            if let Some(connection) = asked.wait(qp, Duration::from_secs(1))? {
                return Ok(connection);
            }
        }
    }

    /// Asks for a connection of `qp`, which is in INIT, and does not wait. Where `param` names no path MTU and the peer's link takes less
    /// than ours, it is asked for less until it agrees, if it says (reason 26) that this is what it minds.
    ///
    /// # Errors
    /// [`CmError::PrivateData`], or [`CmError::QueuePair`] where `qp` is not this device's or not in INIT, or the address is of the
    /// other Internet protocol or not of one host, or a number is out of its range.
    pub fn request(&self, qp: &QueuePair, to: SocketAddr, param: &ConnParam) -> Result<Connecting, CmError> {
        qp.may_be_connected_by(&self.handle.inner.device.inner)?;
        let traffic_class = Some(param.traffic_class.unwrap_or(qp.dscp() << 2));
        let param = ConnParam { traffic_class, ..param.clone() };
        self.ask(qp.qp_num(), (qp.service(), qp.layout()), to, &param)
    }

    /// The same for a queue pair of `service`, which is RC or UC, that is not this device's, but at its address; nobody looks whether there
    /// is one of that number. The answer
    /// is polled by [`Connecting::granted`], the queue pair is the caller's to connect, and [`Connecting::ready`] says that it is.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_number(
        &self,
        qpn: Qpn,
        service: Service,
        to: SocketAddr,
        param: &ConnParam,
    ) -> Result<Connecting, CmError> {
        self.ask(qpn, (service, Layout::Standard), to, param)
    }

    fn ask(
        &self,
        qpn: Qpn,
        kind: (Service, Layout),
        to: SocketAddr,
        param: &ConnParam,
    ) -> Result<Connecting, CmError> {
        let (service_type, layout) = (service_type_of(kind.0), kind.1);
        let inner = &self.handle.inner;
        let source = inner.device.address();
        can_be_peer(to.ip(), source)?;
        param.judge()?;
        let private = param.private(layout)?;
        let psn = Psn::new(random());
        let port = param.port.unwrap_or_else(random_port);
        let mtu = param.path_mtu.unwrap_or(inner.device.active_mtu());
        let request = Request {
            local: 0,
            service: service(to.port()),
            guid: inner.guid,
            qpn,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            psn,
            mtu: number_of(mtu),
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
            traffic_class: param.traffic_class.unwrap_or(0),
            ack_timeout: param.ack_timeout.unwrap_or(ACK_TIMEOUT),
            response_timeout: RESPONSE_TIMEOUT,
            max_retries: RETRIES,
            service_type,
            gids: (gid(source), gid(to.ip())),
            endpoints: Some(Endpoints { port, source, destination: to.ip() }),
            layout,
            private,
        };
        let mut core = inner.core();
        let id = core.machine.connect(inner.device.inner.now(), to.ip(), request);
        core.notes.insert(id, Note::default());
        inner.pump(&mut core);
        let (handle, param) = (self.handle.clone(), param.clone());
        Ok(Connecting { handle, id: Some(id), to, qpn, kind, psn, mtu, param, grant: None })
    }
}

/// A connection that was asked for. Dropped before it is granted, it is given up.
#[derive(Debug)]
pub struct Connecting {
    handle: Arc<Handle>,
    id: Option<Id>,
    to: SocketAddr,
    /// The queue pair that the peer was told of.
    qpn: Qpn,
    kind: (Service, Layout),
    psn: Psn,
    /// The path MTU that it was told.
    mtu: Mtu,
    param: ConnParam,
    /// What it has granted, and what its user says.
    grant: Option<(Terms, Vec<u8>)>,
}

impl Connecting {
    /// Waits up to `timeout` for the answer, and connects `qp`, the one that was told to the peer; `None` where there is
    /// no answer yet.
    ///
    /// # Errors
    /// [`CmError::Unreachable`] when all retries are over, after nine seconds; [`CmError::Unanswered`] where somebody listens and does
    /// not answer, after forty, for the peer asks for time with each retry; and the others. [`CmError::Another`] changes nothing:
    /// it can be waited for with the right one.
    pub fn wait(&mut self, qp: &QueuePair, timeout: Duration) -> Result<Option<Connection>, CmError> {
        let device = self.handle.inner.device.clone();
        let begin = device.inner.passed();
        loop {
            let id = self.id.ok_or(CmError::Gone)?;
            self.is_for(qp)?;
            let left = timeout.saturating_sub(device.inner.passed().saturating_sub(begin));
            let Some(answer) = self.handle.inner.wait(left, |core| self.answer(core, id)) else {
                return Ok(None);
            };
            if !self.asks_for_less(&answer)? {
                return self.conclude(qp, answer).map(Some);
            }
        }
    }

    /// Asks once more, for the next smaller path MTU, where the peer's link takes less than ours and nobody has said what it is to be.
    fn asks_for_less(&mut self, answer: &Result<Box<Reply>, CmError>) -> Result<bool, CmError> {
        let is_less = matches!(answer, Err(CmError::Rejected { reason: reason::INVALID_MTU, .. }));
        let less = Mtu::ALL.into_iter().rev().find(|mtu| *mtu < self.mtu);
        let Some(mtu) = less.filter(|_| is_less && self.param.path_mtu.is_none()) else { return Ok(false) };
        let manager = ConnectionManager { handle: self.handle.clone() };
        let param = ConnParam { path_mtu: Some(mtu), ..self.param.clone() };
        let mut asked = manager.ask(self.qpn, self.kind, self.to, &param)?;
        asked.param.path_mtu = None;
        *self = asked;
        Ok(true)
    }

    /// That this is the queue pair that the peer was told of.
    fn is_for(&self, qp: &QueuePair) -> Result<(), CmError> {
        qp.may_be_connected_by(&self.handle.inner.device.inner)?;
        match (self.qpn, qp.qp_num()) {
            (asked, given) if asked != given => Err(CmError::Another { asked, given }),
            _ => Ok(()),
        }
    }

    /// The same for as long as it takes, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn answered(mut self, qp: &QueuePair) -> Result<Connection, CmError> {
        loop {
            let id = self.id.ok_or(CmError::Gone)?;
            let answer = self.handle.inner.when(|core| self.answer(core, id)).await;
            if !self.asks_for_less(&answer)? {
                return self.conclude(qp, answer);
            }
        }
    }

    /// What the peer said, or that it did not.
    fn answer(&self, core: &mut Core, id: Id) -> Option<Result<Box<Reply>, CmError>> {
        let note = core.notes.get_mut(&id)?;
        if note.is_unreachable {
            return Some(Err(CmError::Unreachable(self.to)));
        }
        if note.is_unanswered {
            return Some(Err(CmError::Unanswered(self.to)));
        }
        if let Some(reject) = note.rejected.take() {
            let (peer, reason, private_data) = (self.to, reject.reason, reject.private.0.to_vec());
            return Some(Err(CmError::Rejected { peer, reason, private_data }));
        }
        note.reply.take().map(Ok)
    }

    /// What the peer grants, and what its user says, where it has answered: for who connects the queue pair itself
    /// ([`ConnectionManager::request_number`]). It is the same each time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn granted(&mut self) -> Result<Option<(Terms, &[u8])>, CmError> {
        while self.grant.is_none() {
            let id = self.id.ok_or(CmError::Gone)?;
            let Some(answer) = self.handle.inner.wait(Duration::ZERO, |core| self.answer(core, id)) else {
                return Ok(None);
            };
            if !self.asks_for_less(&answer)? {
                self.agree(answer)?;
            }
        }
        Ok(self.grant.as_ref().map(|(terms, private_data)| (*terms, &private_data[..])))
    }

    /// Tells the peer that the queue pair has been connected as was [granted](Self::granted).
    ///
    /// # Errors
    /// [`CmError::Gone`] where nothing was granted, or the peer has given up since.
    pub fn ready(mut self) -> Result<Connection, CmError> {
        self.finish(Arc::default())
    }

    /// Refuses what the peer has [granted](Self::granted), and tells its user up to 148 octets. What was not granted is given up, as by who
    /// drops it.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] where that is more; it is refused nevertheless, and the user told nothing.
    pub fn reject(self, private_data: &[u8]) -> Result<(), CmError> {
        let Some(private) = Private::new(private_data) else {
            return Err(CmError::PrivateData(cm::REJECT_PRIVATE));
        };
        self.refuse(reason::CONSUMER, private);
        Ok(())
    }

    /// Takes note of what the peer grants.
    fn agree(&mut self, answer: Result<Box<Reply>, CmError>) -> Result<Terms, CmError> {
        let reply = answer?;
        if reply.layout != self.kind.1 {
            self.refuse(reason::UNSUPPORTED, Private::NONE);
            return Err(CmError::Layout(reply.layout));
        }
        let terms = Terms {
            peer: QpInfo { address: self.to.ip(), qpn: reply.qpn, psn: self.psn },
            send_psn: reply.psn,
            mtu: self.mtu,
            reads: self.param.initiator_depth.min(reply.responder_resources),
            responses: self.param.responder_resources.max(reply.initiator_depth),
            traffic_class: self.param.traffic_class.unwrap_or(0),
            ack_timeout: self.param.ack_timeout.unwrap_or(ACK_TIMEOUT),
            retry: self.param.retry_count,
            rnr_retry: reply.rnr_retry_count.min(7),
        };
        self.grant = Some((terms, reply.private.0.to_vec()));
        Ok(terms)
    }

    fn refuse(&self, reason: u16, private: Private<{ cm::REJECT_PRIVATE }>) {
        let Some(id) = self.id else { return };
        let inner = &self.handle.inner;
        let mut core = inner.core();
        core.machine.reject(inner.device.inner.now(), id, reason, private);
        inner.pump(&mut core);
    }

    /// Connects `qp` as the peer has agreed.
    fn conclude(
        &mut self,
        qp: &QueuePair,
        answer: Result<Box<Reply>, CmError>,
    ) -> Result<Connection, CmError> {
        let terms = self.agree(answer)?;
        let has_failed = terms
            .connect(qp, &self.handle.inner.cq)
            .inspect_err(|_| self.refuse(reason::UNSUPPORTED, Private::NONE))?;
        self.finish(has_failed)
    }

    /// Tells the peer, and is a connection from now on.
    fn finish(&mut self, has_failed: Arc<AtomicBool>) -> Result<Connection, CmError> {
        let id = self.id.ok_or(CmError::Gone)?;
        let (terms, private_data) = self.grant.take().ok_or(CmError::Gone)?;
        let inner = &self.handle.inner;
        let mut core = inner.core();
        let is_ready = core.machine.ready(id);
        inner.pump(&mut core);
        drop(core);
        if !is_ready {
            return Err(CmError::Gone);
        }
        self.id = None;
        let (handle, peer) = (self.handle.clone(), self.to);
        Ok(Connection { handle, id, peer, private_data, terms, has_failed, over: OnceLock::new() })
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.handle.inner.leave(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Backend, Device, DeviceConfig};
    use crate::io::MemoryWire;

    #[test]
    fn who_listens_and_does_not_answer_is_told_from_who_is_not_there() {
        let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
        let device = Device::open_with([10, 0, 0, 1].into(), config).unwrap();
        let manager = ConnectionManager::new(&device).unwrap();
        let cq = device.create_cq().unwrap();
        let qp = device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
        for (is_heard, why) in [(true, "10.0.0.2:7 listens"), (false, "10.0.0.2:7 does not answer")] {
            let mut asked = manager.request(&qp, ([10, 0, 0, 2], 7).into(), &ConnParam::default()).unwrap();
            for note in manager.handle.inner.core().notes.values_mut() {
                (note.is_unanswered, note.is_unreachable) = (is_heard, !is_heard);
            }
            let told = asked.wait(&qp, Duration::ZERO).unwrap_err().to_string();
            assert!(told.starts_with(why), "{told}");
        }
    }
}
