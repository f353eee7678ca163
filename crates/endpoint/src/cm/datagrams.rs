//! Which queue pair takes the datagrams of a service, for who asks and who is asked (`RDMA_PS_UDP`; IBTA Vol 1 §12.11).
//!
//! There is no connection: who asks learns a number and a key, and its own queue pair is not told of. It says whatever the other is to
//! know in the private data, or in its first datagram.

use super::listener::{Space, random_port};
use super::machine::{Id, Machine, Serving};
use super::manager::{Asked, Core, Handle, Note};
use super::{CmError, ConnectionManager};
use crate::io::sys::EventFd;
use crate::queue_pair::can_be_peer;
use roci_units::Qpn;
use roci_wire::cm::{self, Endpoints, Private, ServiceRequest, datagram_service, status};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The queue key that queue pairs of this port space have where nobody says another (`RDMA_UDP_QKEY` of librdmacm).
pub const UDP_Q_KEY: u32 = 0x0123_4567;

const DATAGRAMS: Space = Space {
    service: datagram_service,
    listen: Machine::listen_datagrams,
    unlisten: Machine::unlisten_datagrams,
};

/// What takes the datagrams of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatagramPeer {
    /// Where.
    pub address: IpAddr,
    /// The queue pair.
    pub qpn: Qpn,
    /// The queue key that its datagrams bear.
    pub q_key: u32,
    /// What its user says: 136 octets, zeros where it says less.
    pub private_data: Vec<u8>,
}

impl ConnectionManager {
    /// Listens at a port for who asks where to send datagrams, until the listener is dropped; at 0, at a free one from 32768 on, which
    /// [`DatagramListener::port`] tells. A port for connections of the same number is another one.
    ///
    /// # Errors
    /// [`CmError::InUse`] where somebody listens there at this address, in this process or another, or has [answered](DatagramRequest) of
    /// late; of 0, where no port is free. [`CmError::Io`] where there are too many descriptors.
    pub fn listen_datagrams(&self, port: u16) -> Result<DatagramListener, CmError> {
        let waits = Arc::new(EventFd::new()?);
        let mut core = self.handle.inner.core();
        let (port, offer) = core.offer(&self.handle.inner.device, port, &DATAGRAMS)?;
        core.queried.insert(datagram_service(port), Asked::new(offer, waits.clone()));
        drop(core);
        Ok(DatagramListener { handle: self.handle.clone(), port, waits })
    }

    /// Asks who listens at `to` where its datagrams are to go, and does not wait. `from` is the port that this says it comes from; if not
    /// said it is one from 32768 on, at random. The other user is told up to 180 octets.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] where these are more; [`CmError::QueuePair`] where the address is of the other Internet protocol or not of
    /// one host.
    pub fn resolve_service(
        &self,
        to: SocketAddr,
        from: Option<u16>,
        private_data: &[u8],
    ) -> Result<Resolving, CmError> {
        let inner = &self.handle.inner;
        let source = inner.device.address();
        can_be_peer(to.ip(), source)?;
        let private = Private::new(private_data).ok_or(CmError::PrivateData(cm::SERVICE_REQUEST_PRIVATE))?;
        let port = from.unwrap_or_else(random_port);
        let request = ServiceRequest {
            id: 0,
            p_key: 0xffff,
            service: datagram_service(to.port()),
            endpoints: Some(Endpoints { port, source, destination: to.ip() }),
            private,
        };
        let mut core = inner.core();
        let id = core.machine.resolve(inner.device.inner.now(), to.ip(), request);
        core.notes.insert(id, Note::default());
        inner.pump(&mut core);
        drop(core);
        Ok(Resolving { handle: self.handle.clone(), id, to })
    }
}

/// What was asked for. Dropped, it is given up.
#[derive(Debug)]
pub struct Resolving {
    handle: Arc<Handle>,
    id: Id,
    to: SocketAddr,
}

impl Resolving {
    /// Waits up to `timeout` for the answer; `None` where there is none yet. It is told once.
    ///
    /// # Errors
    /// [`CmError::Unresolved`] where no queue pair takes the datagrams: of a port at which nobody listens after 0.3 s, in which the peer is
    /// asked again. [`CmError::Unreachable`] when all retries are over, after nine seconds: also where somebody listens and does not answer,
    /// for a listener has no word for that it takes its time. [`CmError::Gone`] after the answer was told.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<DatagramPeer>, CmError> {
        let answer = self.handle.inner.wait(timeout, |core| self.answer(core));
        answer.transpose()
    }

    /// The same for as long as it takes, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn answered(&self) -> Result<DatagramPeer, CmError> {
        self.handle.inner.when(|core| self.answer(core)).await
    }

    fn answer(&self, core: &mut Core) -> Option<Result<DatagramPeer, CmError>> {
        let Some(note) = core.notes.get_mut(&self.id) else { return Some(Err(CmError::Gone)) };
        let peer = self.to;
        let told = if note.is_unreachable {
            Err(CmError::Unreachable(peer))
        } else {
            let reply = note.resolved.take()?;
            let (status, private_data) = (reply.status, reply.private.0.to_vec());
            match status {
                status::VALID => {
                    Ok(DatagramPeer { address: peer.ip(), qpn: reply.qpn, q_key: reply.q_key, private_data })
                }
                _ => Err(CmError::Unresolved { peer, status, private_data }),
            }
        };
        core.notes.remove(&self.id);
        Some(told)
    }
}

impl Drop for Resolving {
    fn drop(&mut self) {
        let mut core = self.handle.inner.core();
        core.notes.remove(&self.id);
        core.machine.forget_service(self.id);
    }
}

/// Who listens at a port for who asks where to send datagrams.
///
/// The descriptor of its [`AsFd`] is readable as long as a request waits, as that of a [`Listener`](super::Listener).
#[derive(Debug)]
pub struct DatagramListener {
    handle: Arc<Handle>,
    port: u16,
    waits: Arc<EventFd>,
}

impl AsFd for DatagramListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waits.borrow()
    }
}

impl DatagramListener {
    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits up to `timeout` for somebody to ask; `None` where nobody did.
    pub fn get_request(&self, timeout: Duration) -> Option<DatagramRequest> {
        self.handle.inner.wait(timeout, |core| self.next(core))
    }

    /// The next that asks, for a task.
    #[cfg(feature = "tokio")]
    pub(crate) async fn asked(&self) -> DatagramRequest {
        self.handle.inner.when(|core| self.next(core)).await
    }

    fn next(&self, core: &mut Core) -> Option<DatagramRequest> {
        let queried = core.queried.get_mut(&datagram_service(self.port))?;
        let (id, from, request) = queried.pop()?;
        let offer = Some(queried.offer.clone());
        core.notes.insert(id, Note { offer, ..Note::default() });
        Some(DatagramRequest { handle: self.handle.clone(), id: Some(id), from, request })
    }
}

impl Drop for DatagramListener {
    fn drop(&mut self) {
        let inner = &self.handle.inner;
        let mut core = inner.core();
        let (service, now) = (datagram_service(self.port), inner.device.inner.now());
        core.machine.unlisten_datagrams(service);
        let mut queried = core.queried.remove(&service);
        while let Some((id, ..)) = queried.as_mut().and_then(Asked::pop) {
            core.machine.serve(now, id, &Serving::not(status::UNSUPPORTED, Private::NONE));
        }
        inner.pump(&mut core);
    }
}

/// A peer asks where to send datagrams. Dropped, it is refused.
///
/// A peer does not say that it has heard the answer, and asks again where that was lost: it is told the same, without that anybody is
/// asked here, until it has not asked for 8.6 s. So long the port stays taken for others at this address, although its listener may be
/// dropped; a listener of this device may be there at once.
#[derive(Debug)]
pub struct DatagramRequest {
    handle: Arc<Handle>,
    id: Option<Id>,
    from: IpAddr,
    request: Box<ServiceRequest>,
}

impl DatagramRequest {
    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        SocketAddr::new(self.from, self.request.endpoints.map_or(0, |endpoints| endpoints.port))
    }

    /// What its user tells us: 180 octets, zeros where it tells less.
    pub fn private_data(&self) -> &[u8] {
        &self.request.private.0
    }

    /// Names a queue pair of this address, and the key of its datagrams; tells the peer's user up to 136 octets. Nobody looks whether there
    /// is one of that number.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] where these are more; the request is refused then. [`CmError::Gone`] where nobody has answered for a minute.
    pub fn accept(mut self, qpn: Qpn, q_key: u32, private_data: &[u8]) -> Result<(), CmError> {
        let private = Private::new(private_data).ok_or(CmError::PrivateData(cm::SERVICE_REPLY_PRIVATE))?;
        let is_said = self.say(&Serving { status: status::VALID, qpn, q_key, private });
        if is_said { Ok(()) } else { Err(CmError::Gone) }
    }

    /// Refuses, and tells the peer's user up to 136 octets.
    ///
    /// # Errors
    /// [`CmError::PrivateData`] where these are more; the request is refused nevertheless, and the user told nothing.
    pub fn reject(mut self, private_data: &[u8]) -> Result<(), CmError> {
        let private = Private::new(private_data);
        self.say(&Serving::not(status::REJECTED, private.unwrap_or(Private::NONE)));
        private.map(drop).ok_or(CmError::PrivateData(cm::SERVICE_REPLY_PRIVATE))
    }

    fn say(&mut self, serving: &Serving) -> bool {
        let Some(id) = self.id.take() else { return false };
        let inner = &self.handle.inner;
        let mut core = inner.core();
        let is_said = core.machine.serve(inner.device.inner.now(), id, serving);
        if !is_said {
            core.notes.remove(&id);
        }
        inner.pump(&mut core);
        is_said
    }
}

impl Drop for DatagramRequest {
    fn drop(&mut self) {
        self.say(&Serving::not(status::REJECTED, Private::NONE));
    }
}

#[cfg(test)]
mod tests;
