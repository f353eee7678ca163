//! Queue pairs and shared receive queues.

mod datagrams;

use crate::completion::CompletionQueue;
use crate::congestion;
use crate::counters::Counters;
use crate::device::{DeviceInner, Mtu, ProtectionDomain, span};
use crate::numbers::{MANAGEMENT, inner, random};
use crate::posting::AT_ONCE;
use crate::shard::{Entry, Greeting, Shard, Watch};
use crate::shared_receive::SharedReceiveQueue;
use crate::telemetry;
use crate::work::{RecvWr, Refused, SendWr};
use crate::works::Owner;
use roci_control::{Law, Value};
use roci_transport::{Change, Pd, QpConfig, QpError, QpState, QpStatus, Recovery, Service, Transition};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::Layout;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// The local ACK timeout that nobody has named: 67 ms, as of perftest and of the examples of libibverbs.
///
/// A timer finds what nothing else does, the last packets of a burst that were lost, and the loss of one that is alone costs about one
/// timeout. Where nothing was lost it does harm: packets are sent again to a peer that is busy, which makes it busier. Threads of
/// a host wait up to 20 ms for their turns, so 12, which is 16.8 ms, was too short without any loss: of 1000 clients of one shared receive
/// queue at 50 us for a message, a tenth to a half of all packets were sent again, and none with this. And with seven retries it gave up a
/// peer that had stood still for an eighth of a second, this for half a second. Who knows a path that is short, idle and lossy says less.
pub(crate) const ACK_TIMEOUT: u8 = 14;

/// Why a queue pair could not be made or changed.
#[derive(thiserror::Error)]
pub enum QueuePairError {
    /// What the engine found.
    #[error(transparent)]
    Engine(#[from] QpError),
    /// The address is of the other Internet protocol than the device's, or there are too many peers.
    #[error("{0} cannot be reached from this device")]
    Address(IpAddr),
    /// A peer has the address of one host: not of a group or of all, nor the one that stands for none.
    #[error("{0} is not the address of a host")]
    NoHost(IpAddr),
    /// An attribute is out of its range.
    #[error("{what} is {most} at most, and not {given}")]
    Range {
        /// Which.
        what: &'static str,
        /// What was asked for.
        given: u8,
        /// The most that can be.
        most: u8,
    },
    /// The parts belong to different devices or protection domains.
    #[error("{0} belongs to another device or protection domain")]
    Foreign(&'static str),
    /// It is to be connected, and has been before, or is a datagram queue pair.
    #[error(
        "the queue pair is in state {0:?}, and can be connected in INIT alone: make another, or bring it there by Reset and Initialize"
    )]
    NotInit(QpState),
    /// Who its peer is can be changed by `connect` and `ready_to_receive` alone, which lead from INIT to RTR.
    #[error("connect or ready_to_receive name the peer and lead to RTR, and modify does not")]
    Peer,
    /// The device has a queue pair with the number for management.
    #[error(
        "this device has a queue pair 1 already, which it can have once: clone its ConnectionManager in place of another one"
    )]
    Management,
    /// Queue pair 1 cannot be had.
    #[error("queue pair 1 cannot be had: {0}")]
    Claim(#[source] io::Error),
    /// Packets of its layout do not bring what its law needs.
    #[error("law `{0}` needs {1}, and this layout is `{2}`, as `QueuePairBuilder::recovery` says it")]
    Law(String, &'static str, Layout),
    /// A register cannot be written so.
    #[error("{0}")]
    Register(String),
}

speaks!(QueuePairError);

/// What the two ends of a connection tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpInfo {
    /// The device's address.
    pub address: IpAddr,
    /// The queue pair's number.
    pub qpn: Qpn,
    /// The PSN of the first packet that it sends.
    pub psn: Psn,
}

/// A queue pair in the making. What is not said has a default that suits two endpoints of this crate; for a connection
/// to another implementation, its path MTU and numbers of READs are to be told.
#[derive(Debug)]
#[must_use]
pub struct QueuePairBuilder {
    pd: ProtectionDomain,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    srq: Option<SharedReceiveQueue>,
    config: QpConfig,
    /// The exponent of the local ACK timeout.
    timeout: u8,
    sends: u32,
    recvs: u32,
    window: u32,
    management: bool,
}

impl QueuePairBuilder {
    pub(crate) fn new(pd: &ProtectionDomain, send_cq: &CompletionQueue, recv_cq: &CompletionQueue) -> Self {
        let config = QpConfig {
            state: QpState::Init,
            pd: pd.pd,
            mtu: pd.device.mtu.octets(),
            law: u16::from(pd.device.laws.len() > 1),
            credits: true,
            probes: true,
            ..QpConfig::default()
        };
        Self {
            pd: pd.clone(),
            send_cq: send_cq.clone(),
            recv_cq: recv_cq.clone(),
            srq: None,
            config,
            timeout: ACK_TIMEOUT,
            sends: 256,
            recvs: 256,
            window: 1 << 20,
            management: false,
        }
    }

    /// Send requests that may be outstanding; 256 if not said.
    pub fn max_send_wr(mut self, count: u32) -> Self {
        self.sends = count;
        self
    }

    /// Receive requests that may be outstanding; 256 if not said.
    pub fn max_recv_wr(mut self, count: u32) -> Self {
        self.recvs = count;
        self
    }

    /// Receives from a shared queue.
    pub fn srq(mut self, srq: &SharedReceiveQueue) -> Self {
        self.srq = Some(srq.clone());
        self
    }

    /// The payload of a full packet; the device's active MTU if not said. Both ends must agree.
    pub fn path_mtu(mut self, mtu: Mtu) -> Self {
        self.config.mtu = mtu.octets();
        self
    }

    /// The local ACK timeout, 4.096 µs · 2^`exponent`, 1 to 31; 0: never. 14 (67 ms) if not said. It should be above
    /// what the peer may take for all that was sent to it before.
    pub fn timeout(mut self, exponent: u8) -> Self {
        self.timeout = exponent;
        self
    }

    /// Retransmissions without progress before the connection fails, 0 to 7; 7 if not said.
    pub fn retry_cnt(mut self, count: u8) -> Self {
        self.config.retry = count;
        self
    }

    /// Retries after the receiver was not ready, 0 to 6; 7, for ever, if not said.
    pub fn rnr_retry(mut self, count: u8) -> Self {
        self.config.rnr_retry = count;
        self
    }

    /// How long a requester that met no receive request is to wait; 0.64 ms if not said.
    pub fn min_rnr_timer(mut self, wait: Duration) -> Self {
        self.config.min_rnr_timer = span(wait);
        self
    }

    /// READs and atomics that may be outstanding as requester; 16 if not said.
    pub fn max_rd_atomic(mut self, count: u8) -> Self {
        self.config.max_rd_atomic = count;
        self
    }

    /// READs and atomics that the responder keeps; 16 if not said.
    pub fn max_dest_rd_atomic(mut self, count: u8) -> Self {
        self.config.max_dest_rd_atomic = count;
        self
    }

    /// The congestion-control law, by its number in [`DeviceConfig::laws`](crate::DeviceConfig::laws), from 1, and 1 if not
    /// said; 0: none.
    pub fn law(mut self, number: u16) -> Self {
        self.config.law = number;
        self
    }

    /// The recovery program and the header layout that it needs. Both ends must agree.
    pub fn recovery(mut self, recovery: Recovery, layout: Layout) -> Self {
        (self.config.recovery, self.config.layout) = (recovery, layout);
        self
    }

    /// Octets of payload that may be unacknowledged, rounded to packets; 1 MiB if not said: what a receiver's socket
    /// holds.
    pub fn window(mut self, octets: u32) -> Self {
        self.window = octets;
        self
    }

    /// Each packet of a WRITE is a message of its own (RDMA WRITE ONLY): more of them fit a run of segmentation offload, all
    /// of whose packets are of one length, where a message's first one is longer. Any peer takes them. They cost 16
    /// octets a packet. A WRITE with immediate stays one message, whose length the peer's completion tells. And the peer checks each packet by itself, not the whole message by its first one: a WRITE that
    /// leaves the region fails all the same, but not before the part of it that lies within may have been placed. Without
    /// effect on other layouts than the standard one.
    pub fn lone_writes(mut self, lone: bool) -> Self {
        self.config.lone_writes = lone;
        self
    }

    /// Makes the queue pair. It is in INIT: receive requests can be posted. A datagram queue pair is in RTS.
    ///
    /// # Errors
    /// [`QueuePairError`] says what does not do.
    pub fn build(mut self) -> Result<QueuePair, QueuePairError> {
        let device = self.pd.device.clone();
        let (config, exponent) = (&mut self.config, self.timeout);
        in_range("the exponent of the local ACK timeout", exponent, 31)?;
        in_range(RETRIES, config.retry, 7)?;
        in_range(RNR_RETRIES, config.rnr_retry, 7)?;
        config.timeout = timeout(exponent);
        let mtu = u32::from(config.mtu);
        config.max_in_flight = (self.window / mtu).max(2);
        // What switches or a law say in packets comes back with each acknowledgement, and not with one of many.
        let every = if matches!(config.layout, Layout::Cc(_)) { 1 } else { 64 };
        config.ack_every = u16::try_from((self.window / mtu / 8).clamp(1, every)).unwrap_or(64);
        if config.service == Service::Ud {
            config.state = QpState::ReadyToSend;
        } else if let Some(law) = device.laws.get(usize::from(config.law))
            && let Some(lacking) = congestion::lacks(law, config.layout)
        {
            return Err(QueuePairError::Law(congestion::title(law).into_owned(), lacking, config.layout));
        }
        // Who waits at another device's queue would have that device go on, and not this one.
        if [&self.send_cq, &self.recv_cq].into_iter().any(|cq| !cq.is_of(&device)) {
            return Err(QueuePairError::Foreign("the completion queue"));
        }
        let shard = match &self.srq {
            Some(srq) if !srq.is_of(&device) || srq.pd() != self.pd.pd => {
                return Err(QueuePairError::Foreign("the shared receive queue"));
            }
            Some(srq) => srq.shard(),
            None if self.management => 0,
            None => device.turn(),
        };
        config.srq = self.srq.as_ref().map(|srq| srq.srq());
        config.send_psn = Psn::new(random());
        let mut locked = device.cells[shard].lock();
        let place = locked.core.vacancy();
        let number = if self.management {
            let claimed = locked.io.claim_management().map_err(QueuePairError::Claim);
            claimed.and_then(|()| locked.core.numbers.manage(place).ok_or(QueuePairError::Management))
        } else {
            Ok(locked.core.numbers.draw(place))
        };
        let qpn = match number {
            Ok(qpn) => qpn,
            Err(error) => {
                locked.core.vacant.push(place);
                return Err(error);
            }
        };
        let made = locked.core.engine.create_qp(QpConfig { qpn: Some(inner(place)), ..self.config });
        if let Err(error) = made {
            locked.core.numbers.remove(qpn);
            locked.core.vacant.push(place);
            if qpn == MANAGEMENT {
                locked.io.release_management();
            }
            return Err(error.into());
        }
        locked.core.entries[place as usize] = Some(Entry {
            qpn,
            pd: self.pd.pd,
            send_cq: self.send_cq.inner.clone(),
            recv_cq: self.recv_cq.inner.clone(),
            layout: self.config.layout,
            peer: None,
            law: self.config.law,
            mtu: self.config.mtu,
            sends_left: self.sends,
            recvs_left: self.recvs,
            shares: self.srq.is_some(),
            room: (self.sends, self.recvs),
            watch: None,
            octets: 0,
            tally: None,
            telemetry: telemetry::of(self.config.layout),
        });
        locked.core.mind_window(self.window);
        drop(locked);
        Ok(QueuePair {
            info: QpInfo { address: device.local, qpn, psn: self.config.send_psn },
            device,
            pd: self.pd.pd,
            shard,
            place,
            law: self.config.law,
            layout: self.config.layout,
            service: self.config.service,
            srq: self.srq,
        })
    }
}

/// 4.096 µs · 2^`exponent`, of at most 31; zero for never (IBTA Vol 1 §9.7.6.1.3).
pub(crate) fn timeout(exponent: u8) -> Span {
    if exponent == 0 { Span::ZERO } else { Span::from_nanos(4096 << exponent.min(31)) }
}

const RETRIES: &str = "the number of retries";
const RNR_RETRIES: &str = "the number of retries after the receiver was not ready";

/// That what is to change is in its range.
fn judge(change: &Change) -> Result<(), QueuePairError> {
    in_range(RETRIES, change.retry.unwrap_or(0), 7)?;
    in_range(RNR_RETRIES, change.rnr_retry.unwrap_or(0), 7)
}

/// That an attribute is what the wire has room for.
pub(crate) fn in_range(what: &'static str, given: u8, most: u8) -> Result<(), QueuePairError> {
    if given > most { Err(QueuePairError::Range { what, given, most }) } else { Ok(()) }
}

/// That a device at `local` may have a peer with this address.
pub(crate) fn can_be_peer(address: IpAddr, local: IpAddr) -> Result<(), QueuePairError> {
    if address.is_ipv4() != local.is_ipv4() {
        return Err(QueuePairError::Address(address));
    }
    if is_host(address) { Ok(()) } else { Err(QueuePairError::NoHost(address)) }
}

/// Whether it is the address of one host, as far as that can be seen.
pub(crate) fn is_host(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified() || address.is_multicast() || is_broadcast)
}

/// A queue pair. It ends when this is dropped; what was posted comes back to its regions then, without
/// completions, and so does what a message that has begun took from a shared receive queue.
#[derive(Debug)]
pub struct QueuePair {
    device: Arc<DeviceInner>,
    pd: Pd,
    info: QpInfo,
    shard: usize,
    place: u32,
    law: u16,
    layout: Layout,
    service: Service,
    srq: Option<SharedReceiveQueue>,
}

impl QueuePair {
    /// What the peer has to know.
    pub fn info(&self) -> QpInfo {
        self.info
    }

    /// Its number.
    pub fn qp_num(&self) -> Qpn {
        self.info.qpn
    }

    /// Its service.
    pub fn service(&self) -> Service {
        self.service
    }

    /// The header layout that it was made with.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn device(&self) -> &DeviceInner {
        &self.device
    }

    /// Whether connection management of this device may connect it.
    pub(crate) fn may_be_connected_by(&self, device: &DeviceInner) -> Result<(), QueuePairError> {
        if !std::ptr::eq(&*self.device, device) {
            return Err(QueuePairError::Foreign("the queue pair"));
        }
        match self.state() {
            QpState::Init => Ok(()),
            state => Err(QueuePairError::NotInit(state)),
        }
    }

    /// Whether it has failed from now on: true as soon as that is so, upon which `cq` hears of it by a completion of its number.
    pub(crate) fn watch(&self, cq: &CompletionQueue) -> Arc<AtomicBool> {
        let has_failed = Arc::new(AtomicBool::new(false));
        let watch = Watch { has_failed: has_failed.clone(), cq: cq.inner.clone() };
        if let Some(Some(entry)) =
            self.device.cells[self.shard].lock().core.entries.get_mut(self.place as usize)
        {
            entry.watch = Some(watch);
        }
        has_failed
    }

    /// Tells the queue that [watches](Self::watch) it, by a completion that is a success, when the first request of the peer comes, whose
    /// PSN `first` is.
    pub(crate) fn await_first(&self, first: Psn) {
        let core = &mut self.device.cells[self.shard].lock().core;
        core.greetings.push(Greeting { place: self.place, qpn: self.info.qpn, first });
    }

    /// The shard that it lives on.
    pub fn shard(&self) -> usize {
        self.shard
    }

    /// Connects it to the peer: INIT to RTR to RTS.
    ///
    /// # Errors
    /// [`QueuePairError`]; the queue pair is then as it was.
    pub fn connect(&self, peer: QpInfo) -> Result<(), QueuePairError> {
        self.ready_to_receive(peer, &Change::default())?;
        self.modify(&Change { transition: Some(Transition::Send), ..Change::default() })
    }

    /// To RTR only, with further changes of attributes: for who is told some of them by the peer, as connection
    /// management does. [`modify`](Self::modify) with `Transition::Send` is the next step.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn ready_to_receive(&self, peer: QpInfo, attributes: &Change) -> Result<(), QueuePairError> {
        can_be_peer(peer.address, self.device.local)?;
        judge(attributes)?;
        let mut shard = self.device.cells[self.shard].lock();
        let core = &mut shard.core;
        let path = core.paths.learn(peer.address).ok_or(QueuePairError::Address(peer.address))?;
        let change = Change {
            transition: Some(Transition::Receive),
            peer: Some(peer.qpn),
            path: Some(path),
            receive_psn: Some(peer.psn),
            ..*attributes
        };
        core.engine.modify_qp(self.device.now(), inner(self.place), &change).map_err(
            |error| match error {
                QpError::Transition(state, _) => QueuePairError::NotInit(state),
                error => error.into(),
            },
        )?;
        core.meet(self.place, Some(path));
        Ok(())
    }

    /// Changes attributes, and then the state. The peer is set by [`connect`](Self::connect) or
    /// [`ready_to_receive`](Self::ready_to_receive); `change.path` is not the caller's to set.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn modify(&self, change: &Change) -> Result<(), QueuePairError> {
        judge(change)?;
        let cell = &self.device.cells[self.shard];
        let mut shard = cell.lock();
        // Datagrams have no peer.
        let wants_peer = self.service != Service::Ud && change.transition == Some(Transition::Receive);
        let is_init = |status: QpStatus| status.state == QpState::Init;
        if change.peer.is_some()
            || wants_peer && shard.core.engine.query(inner(self.place)).is_ok_and(is_init)
        {
            return Err(QueuePairError::Peer);
        }
        let now = self.device.now();
        let change = Change { path: None, ..*change };
        if change.transition == Some(Transition::Reset) {
            shard.core.abandon(now, self.place);
        }
        shard.core.counting_on(self.place, |engine| engine.modify_qp(now, inner(self.place), &change))?;
        if change.transition == Some(Transition::Reset) {
            shard.core.meet(self.place, None);
        }
        if change.transition == Some(Transition::Drain) {
            shard.core.drains(self.place);
        }
        shard.push(now);
        cell.nudge(&shard, now);
        Ok(())
    }

    /// Its state and where it stands.
    ///
    /// # Errors
    /// Never, as long as the queue pair lives.
    pub fn query(&self) -> Result<QpStatus, QueuePairError> {
        Ok(self.device.cells[self.shard].lock().core.engine.query(inner(self.place))?)
    }

    /// Its state.
    pub fn state(&self) -> QpState {
        self.query().map_or(QpState::Error, |status| status.state)
    }

    /// What its packets have met.
    pub fn counters(&self) -> Counters {
        let core = &self.device.cells[self.shard].lock().core;
        let entry = core.entries.get(self.place as usize).and_then(Option::as_ref);
        entry.map_or(Counters::default(), |entry| entry.counters(&core.engine, self.place))
    }

    /// The name of its law.
    pub fn law(&self) -> &'static str {
        self.device.laws.get(usize::from(self.law)).map_or("none", Law::name)
    }

    /// Reads a register of its law; `None`: it has none of that name.
    pub fn register(&self, name: &str) -> Option<Value> {
        let mut shard = self.device.cells[self.shard].lock();
        let now = self.device.now();
        shard.core.engine.control_get(inner(self.place), name, now)
    }

    /// Writes a register of its law, in the form of scenarios: `"rc"`, `"10Mb/s"`. A parameter is written for this queue
    /// pair alone.
    ///
    /// # Errors
    /// [`QueuePairError::Register`] says what does not do; nothing has changed then.
    pub fn set_register(&self, name: &str, value: &str) -> Result<(), QueuePairError> {
        let cell = &self.device.cells[self.shard];
        let mut shard = cell.lock();
        let now = self.device.now();
        let set = shard.core.engine.control_set(inner(self.place), name, value, now);
        set.map_err(|error| match error {
            Some(error) => QueuePairError::Register(error.to_string()),
            None => QueuePairError::Register("there is no room for another law".to_owned()),
        })?;
        shard.push(now);
        cell.nudge(&shard, now);
        Ok(())
    }

    /// Posts a request; what can leave leaves before this returns. But short ones of a program that posts one after the other, while
    /// others of the queue pair are on their way, may wait for the next of them, for some microseconds: until the program looks for
    /// completions, waits, or asks for notifications. One that was not seen to do so soon after it has posted has nothing wait.
    ///
    /// # Errors
    /// [`Refused`] says why, and has the request. In the error state it is accepted and flushed.
    pub fn post_send(&self, mut request: SendWr) -> Result<(), Box<Refused<SendWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let now = self.device.now();
        let octets = request.octets_sent();
        let posted = shard.core.post_send(now, self.place, self.pd, &mut request);
        self.send(shard, now, 1, octets);
        posted.map_err(|error| Box::new(Refused::alone(error, request)))
    }

    /// Posts requests one after the other, and sends afterwards: packets of several can share a system call. Gives how
    /// many. They are taken from the iterator some at a time before any of those is posted, so it must not wait for one that it gave.
    ///
    /// # Errors
    /// The first that was refused. Those before it are posted, [`Refused::posted`] of them, and those behind it that were taken come
    /// back with it: who lends the iterator (`by_ref`) has the others still, and can post all of them later.
    pub fn post_sends(
        &self,
        requests: impl IntoIterator<Item = SendWr>,
    ) -> Result<usize, Box<Refused<SendWr>>> {
        let mut requests = requests.into_iter();
        let (mut some, mut posted) = (Vec::new(), 0);
        loop {
            // Not under the lock: an iterator may ask the device for something.
            some.extend(requests.by_ref().take(AT_ONCE));
            let is_last = some.len() < AT_ONCE;
            let mut shard = self.device.cells[self.shard].lock();
            let now = self.device.now();
            let octets = some.iter().map(SendWr::octets_sent).sum();
            let refused = some.iter_mut().enumerate().find_map(|(place, request)| {
                Some((place, shard.core.post_send(now, self.place, self.pd, request).err()?))
            });
            if let Some((place, error)) = refused {
                self.send(shard, now, place, octets);
                let request = some.remove(place);
                let (posted, rest) = (posted + place, some.split_off(place));
                return Err(Box::new(Refused { error, request, posted, rest }));
            }
            posted += some.len();
            if is_last {
                self.send(shard, now, some.len(), octets);
                return Ok(posted);
            }
            some.clear();
        }
    }

    /// Posts all of `requests`, or none: for who builds several and is told once how they fared, as by `ibv_wr_complete`.
    ///
    /// # Errors
    /// The first that does not do; it and all others come back, in their order in [`Refused::rest`] but for itself.
    pub fn post_sends_together(&self, mut requests: Vec<SendWr>) -> Result<(), Box<Refused<SendWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let now = self.device.now();
        let judged = shard.core.may_post_sends(self.place, self.pd, &mut requests);
        if let Err((place, error)) = judged {
            drop(shard);
            let request = requests.remove(place);
            return Err(Box::new(Refused { error, request, posted: 0, rest: requests }));
        }
        let octets = requests.iter().map(SendWr::octets_sent).sum();
        let posted = requests.iter_mut().enumerate().find_map(|(place, request)| {
            Some((place, shard.core.post_send(now, self.place, self.pd, request).err()?))
        });
        self.send(shard, now, requests.len(), octets);
        match posted {
            None => Ok(()),
            // Nothing has come between: they were judged under the same lock.
            Some((posted, error)) => {
                let request = requests.remove(posted);
                Err(Box::new(Refused { error, request, posted, rest: requests.split_off(posted) }))
            }
        }
    }

    /// Sends what was posted until `now`, of which so many requests with so many octets are new, unless they wait for company.
    fn send(&self, mut shard: MutexGuard<'_, Shard>, now: Instant, requests: usize, octets: usize) {
        // One that posts as requests end streams, and its peer may do the same and wait for what waits here.
        if !std::mem::take(&mut shard.core.has_ended) && !shard.core.replies.is_empty() {
            shard.core.answered_at = now;
        }
        let cell = &self.device.cells[self.shard];
        let may_wait = cell.is_driven(now) && self.has_others_than(&shard, requests);
        if shard.core.company.waits(now, requests, octets, may_wait) {
            shard.hold(now);
        } else {
            shard.push(now);
            let now = self.device.now();
            shard.core.company.posted(now);
        }
        cell.nudge(&shard, now);
    }

    /// Whether it has something on its way besides the last so many requests. Where nobody acknowledges it never has: nothing says how
    /// much the peer can take at once.
    fn has_others_than(&self, shard: &Shard, requests: usize) -> bool {
        let Some(Some(entry)) = shard.core.entries.get(self.place as usize) else { return false };
        self.service == Service::Rc && (entry.room.0 - entry.sends_left) as usize > requests
    }

    /// Posts a receive request.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send); a queue pair with a shared receive queue has no own one.
    pub fn post_recv(&self, request: RecvWr) -> Result<(), Box<Refused<RecvWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let owner = Owner::Recv(self.place);
        shard.core.post_recv(inner(self.place).into(), owner, self.pd, request)?;
        shard.core.complete();
        // The peer may wait for a receive request, and is told.
        if shard.core.engine.has_told() {
            shard.push(self.device.now());
            shard.reply();
        }
        Ok(())
    }

    /// The shared receive queue that it uses.
    pub fn srq(&self) -> Option<&SharedReceiveQueue> {
        self.srq.as_ref()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        let mut shard = self.device.cells[self.shard].lock();
        // What has been received is acknowledged before: the device may close next, and the peer would ask for it until it gives up.
        shard.reply();
        let now = self.device.now();
        // And what was posted leaves before, as far as it can.
        if shard.core.company.is_there() {
            shard.send(now);
        }
        shard.core.destroy(now, self.place);
        if self.qp_num() == MANAGEMENT {
            shard.io.release_management();
        }
    }
}
