//! Queue pairs.

mod builder;
mod post;

pub use builder::QueuePairBuilder;

use crate::completion::CompletionQueue;
use crate::counters::Counters;
use crate::device::DeviceInner;
use crate::numbers::{MANAGEMENT, inner};
use crate::paths::classed;
use crate::shard::{Entry, Greeting, Watch};
use crate::shared_receive::SharedReceiveQueue;
use roci_control::{Law, Value};
use roci_transport::{Access, Change, Pd, QpError, QpState, QpStatus, Service, Transition};
use roci_units::{Psn, Qpn, Span};
use roci_wire::Layout;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

/// 4.096 µs · 2^`exponent`, of at most 31; zero for never (IBTA Vol 1 §9.7.6.1.3).
pub(crate) fn timeout(exponent: u8) -> Span {
    if exponent == 0 { Span::ZERO } else { Span::from_nanos(4096 << exponent.min(31)) }
}

const RETRIES: &str = "the number of retries";
const CODE_POINT: &str = "the code point";
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
        // After a reset it would go on from where it was, and peers are told by `info` that it begins anew.
        let send_psn = Some(self.info.psn);
        self.modify(&Change { send_psn, transition: Some(Transition::Send), ..Change::default() })
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
        let known = core.paths.learn(peer.address).ok_or(QueuePairError::Address(peer.address))?;
        let dscp =
            core.entries.get(self.place as usize).and_then(Option::as_ref).map_or(0, |entry| entry.dscp);
        let path = classed(known, dscp);
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

    /// Changes what [`QueuePairBuilder::dscp`] said: from when it is connected next, or of datagrams from the next on.
    ///
    /// # Errors
    /// [`QueuePairError::Range`], above 63.
    pub fn set_dscp(&self, code_point: u8) -> Result<(), QueuePairError> {
        in_range(CODE_POINT, code_point, 63)?;
        self.with_entry(|entry| entry.dscp = code_point);
        Ok(())
    }

    /// The code point of its packets, or if that was [changed](Self::set_dscp), from when it is connected next.
    pub fn dscp(&self) -> u8 {
        let core = &self.device.cells[self.shard].lock().core;
        core.entries.get(self.place as usize).and_then(Option::as_ref).map_or(0, |entry| entry.dscp)
    }

    /// Changes what [`QueuePairBuilder::access`] said, of the requests that come from now on.
    pub fn set_access(&self, access: Access) {
        self.with_entry(|entry| entry.rights = access);
    }

    fn with_entry(&self, change: impl FnOnce(&mut Entry)) {
        let core = &mut self.device.cells[self.shard].lock().core;
        core.entries.get_mut(self.place as usize).and_then(Option::as_mut).map(change);
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

#[cfg(test)]
mod tests;
