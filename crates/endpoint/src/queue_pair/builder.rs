//! The making of queue pairs.

mod datagrams;

use super::{
    ACK_TIMEOUT, CODE_POINT, QpInfo, QueuePair, QueuePairError, RETRIES, RNR_RETRIES, in_range, timeout,
};
use crate::completion::CompletionQueue;
use crate::congestion;
use crate::device::{DeviceInner, Mtu, ProtectionDomain, span};
use crate::numbers::{MANAGEMENT, inner, random};
use crate::shard::{Entry, Shard};
use crate::shared_receive::SharedReceiveQueue;
use crate::telemetry;
use roci_transport::{Access, QpConfig, QpState, Recovery, Service};
use roci_units::{Psn, Qpn};
use roci_wire::Layout;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

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
    dscp: u8,
    rights: Access,
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
            dscp: pd.device.dscp,
            rights: Access::ALL,
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

    /// The code point (DSCP) of its data and acknowledgements, 0 to 63, by which switches tell classes of traffic apart; the
    /// [device's](crate::DeviceConfig::dscp) if not said. CNPs keep theirs, and packets with room for telemetry the one that they are known by.
    pub fn dscp(mut self, code_point: u8) -> Self {
        self.dscp = code_point;
        self
    }

    /// What the peer may do by this queue pair, of what a region allows it; all of that if not said. Of `access` the remote rights are
    /// looked at: a WRITE, READ or atomic without its right is an invalid request, as one that the queue pair does not know.
    pub fn access(mut self, access: Access) -> Self {
        self.rights = access;
        self
    }

    /// Makes the queue pair. It is in INIT: receive requests can be posted. A datagram queue pair is in RTS.
    ///
    /// # Errors
    /// [`QueuePairError`] says what does not do.
    pub fn build(mut self) -> Result<QueuePair, QueuePairError> {
        let device = self.pd.device.clone();
        self.check(&device)?;
        self.configure();
        let shard = self.shard(&device);
        let mut locked = device.cells[shard].lock();
        let place = locked.core.vacancy();
        let qpn = match self.number(&mut locked, place) {
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
        locked.core.entries[place as usize] = Some(self.entry(qpn));
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

    /// That all that was said can be, and belongs together.
    fn check(&self, device: &Arc<DeviceInner>) -> Result<(), QueuePairError> {
        let config = &self.config;
        in_range("the exponent of the local ACK timeout", self.timeout, 31)?;
        in_range(RETRIES, config.retry, 7)?;
        in_range(RNR_RETRIES, config.rnr_retry, 7)?;
        in_range(CODE_POINT, self.dscp, 63)?;
        if config.service != Service::Ud
            && let Some(law) = device.laws.get(usize::from(config.law))
            && let Some(lacking) = congestion::lacks(law, config.layout)
        {
            return Err(QueuePairError::Law(congestion::title(law).into_owned(), lacking, config.layout));
        }
        // Who waits at another device's queue would have that device go on, and not this one.
        if [&self.send_cq, &self.recv_cq].into_iter().any(|cq| !cq.is_of(device)) {
            return Err(QueuePairError::Foreign("the completion queue"));
        }
        match &self.srq {
            Some(srq) if !srq.is_of(device) || srq.pd() != self.pd.pd => {
                Err(QueuePairError::Foreign("the shared receive queue"))
            }
            _ => Ok(()),
        }
    }

    /// Brings what was said into the engine's terms.
    fn configure(&mut self) {
        let config = &mut self.config;
        config.timeout = timeout(self.timeout);
        let mtu = u32::from(config.mtu);
        config.max_in_flight = (self.window / mtu).max(2);
        // What switches or a law say in packets comes back with each acknowledgement, and not with one of many.
        let every = if matches!(config.layout, Layout::Cc(_)) { 1 } else { 64 };
        config.ack_every = u16::try_from((self.window / mtu / 8).clamp(1, every)).unwrap_or(64);
        if config.service == Service::Ud {
            config.state = QpState::ReadyToSend;
        }
        config.srq = self.srq.as_ref().map(|srq| srq.srq());
        config.send_psn = Psn::new(random());
    }

    /// The shard that it is to live on: its shared receive queue's, or the next in turn.
    fn shard(&self, device: &DeviceInner) -> usize {
        match &self.srq {
            Some(srq) => srq.shard(),
            None if self.management => 0,
            None => device.turn(),
        }
    }

    /// The number by which peers know the queue pair at `place`.
    fn number(&self, shard: &mut Shard, place: u32) -> Result<Qpn, QueuePairError> {
        if !self.management {
            return Ok(shard.core.numbers.draw(place));
        }
        shard.io.claim_management().map_err(QueuePairError::Claim)?;
        shard.core.numbers.manage(place).ok_or(QueuePairError::Management)
    }

    /// What its shard knows of it beside the engine.
    fn entry(&self, qpn: Qpn) -> Entry {
        Entry {
            qpn,
            pd: self.pd.pd,
            send_cq: self.send_cq.inner.clone(),
            recv_cq: self.recv_cq.inner.clone(),
            layout: self.config.layout,
            peer: None,
            dscp: self.dscp,
            class: 0,
            rights: self.rights,
            law: self.config.law,
            mtu: self.config.mtu,
            sends_left: self.sends,
            recvs_left: self.recvs,
            shares: self.srq.is_some(),
            room: (self.sends, self.recvs),
            behind: VecDeque::new(),
            watch: None,
            octets: 0,
            tally: None,
            telemetry: telemetry::of(self.config.layout),
        }
    }
}
