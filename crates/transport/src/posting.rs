//! Posting work to queue pairs.

use crate::config::{Pd, Service, Srq};
use crate::engine::Engine;
use crate::memory::Access;
use crate::queue::{Kind, NONE, SendWork};
use crate::setup::flushed;
use crate::state::QpState;
use crate::work::{CompletionKind, Operation, PostError, RecvRequest, SendRequest, Tail};
use roci_units::{Instant, Qpn};
use roci_wire::Layout;

/// The longest message (IBTA Vol 1 §9.7.2).
const MESSAGE_MAX: u32 = 1 << 31;

/// Where a receive request is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTarget {
    /// A queue pair of its own.
    Qp(Qpn),
    /// A shared receive queue, and the protection domain that its buffers are in.
    Srq(Srq, Pd),
}

impl From<Qpn> for RecvTarget {
    fn from(qpn: Qpn) -> Self {
        Self::Qp(qpn)
    }
}

impl Engine {
    /// Appends a request to a queue pair's send queue. In the error state it completes at once as flushed.
    ///
    /// # Errors
    /// [`PostError`] says what does not do; nothing has changed then.
    #[inline]
    pub fn post_send(&mut self, now: Instant, qpn: Qpn, request: &SendRequest) -> Result<(), PostError> {
        let slot = self.place(qpn).ok_or(PostError::Unknown)?;
        self.check_send(slot, request)?;
        let mut work = SendWork::new(request);
        if self.qps[slot].common.state == QpState::Error {
            // Behind those that wait for the placement of what came before.
            self.tell_sender(slot, flushed(work.id, qpn, work.kind.completion()));
            return Ok(());
        }
        if work.kind == Kind::Read
            && let Some(piece) = self.piece(slot, work.length)
        {
            // The last is as long as one or two: a short one would go before those that it ends.
            while work.length >= piece.saturating_mul(2) {
                let first = work.split(piece);
                self.append(now, slot, first);
            }
        }
        self.append(now, slot, work);
        Ok(())
    }

    /// Whether [`post_send`](Self::post_send) would take a request now: for who posts several, and all of them or none.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send).
    pub fn may_post_send(&self, qpn: Qpn, request: &SendRequest) -> Result<(), PostError> {
        self.check_send(self.place(qpn).ok_or(PostError::Unknown)?, request)
    }

    /// What a READ of `length` octets is cut into, if it is: whole packets, but for the last.
    fn piece(&self, slot: usize, length: u32) -> Option<u32> {
        let rooms = self.read_rooms.as_ref()?;
        let profile = self.profile(slot);
        let mtu = u32::from(profile.mtu);
        if profile.layout == Layout::Homa {
            return rooms.piece().map(|piece| piece.next_multiple_of(mtu));
        }
        rooms.part(length).map(|part| (part - part % mtu).max(mtu))
    }

    /// Appends `work` to the send queue.
    fn append(&mut self, now: Instant, slot: usize, work: SendWork) {
        let index = self.sends.insert(work);
        let common = &mut self.qps[slot].common;
        if common.tail == NONE {
            common.head = index;
        } else {
            self.sends.get_mut(common.tail).next = index;
        }
        common.tail = index;
        let requester = &mut self.qps[slot].requester;
        if requester.current == NONE {
            requester.current = index;
            requester.pacer.resume(now);
            self.arm(now, slot);
        }
    }

    fn check_send(&self, slot: usize, request: &SendRequest) -> Result<(), PostError> {
        let profile = self.profile(slot);
        let state = self.qps[slot].common.state;
        if !state.sends() && state != QpState::Error {
            return Err(PostError::State(state));
        }
        let datagram = matches!(request.operation, Operation::Datagram { .. });
        if datagram != (profile.service == Service::Ud) {
            return Err(PostError::Operation);
        }
        let answered = profile.service == Service::Rc;
        let mut needs = Access::NONE;
        match request.operation {
            Operation::Send(Tail::Invalidate(_)) if !answered => return Err(PostError::Operation),
            Operation::Send(_) => {}
            Operation::Write { tail, .. } | Operation::Datagram { tail, .. } => {
                if matches!(tail, Tail::Invalidate(_)) {
                    return Err(PostError::Operation);
                }
                if datagram && request.length > u32::from(profile.mtu) {
                    return Err(PostError::Length(request.length));
                }
            }
            Operation::Read { .. } | Operation::FetchAdd { .. } | Operation::CompareSwap { .. }
                if !answered =>
            {
                return Err(PostError::Operation);
            }
            Operation::Read { .. } => {
                needs = Access::LOCAL_WRITE;
                if profile.max_rd_atomic == 0 {
                    return Err(PostError::Remote);
                }
            }
            Operation::FetchAdd { va, .. } | Operation::CompareSwap { va, .. } => {
                needs = Access::LOCAL_WRITE;
                if request.length != 8 {
                    return Err(PostError::Length(request.length));
                }
                if !va.is_multiple_of(8) || profile.max_rd_atomic == 0 {
                    return Err(PostError::Remote);
                }
            }
        }
        let packets = request.length.div_ceil(u32::from(profile.mtu));
        if request.length > MESSAGE_MAX || packets > crate::qp::MAX_OUTSTANDING {
            return Err(PostError::Length(request.length));
        }
        self.check_local(profile.pd, request.lkey, request.address, request.length, needs)
    }

    /// A key of zero is for inline data and worlds without memory.
    fn check_local(
        &self,
        pd: Pd,
        key: u32,
        address: u64,
        length: u32,
        needs: Access,
    ) -> Result<(), PostError> {
        if key == 0 || self.regions.check(pd, key, address, u64::from(length), needs).is_ok() {
            return Ok(());
        }
        Err(PostError::LocalKey(key))
    }

    /// Appends a request to a receive queue. In the error state it completes at once as flushed.
    ///
    /// # Errors
    /// [`PostError`] says what does not do; nothing has changed then.
    pub fn post_recv(
        &mut self,
        target: impl Into<RecvTarget>,
        request: RecvRequest,
    ) -> Result<(), PostError> {
        let RecvRequest { id, address, length, lkey } = request;
        let qpn = match target.into() {
            RecvTarget::Qp(qpn) => qpn,
            RecvTarget::Srq(srq, pd) => {
                self.check_local(pd, lkey, address, length, Access::LOCAL_WRITE)?;
                let shared = self.shared.get_mut(srq.0 as usize).ok_or(PostError::Unknown)?;
                shared.queue.push(&mut self.recvs, request);
                shared.count += 1;
                return Ok(());
            }
        };
        let slot = self.place(qpn).ok_or(PostError::Unknown)?;
        let profile = self.profile(slot);
        if profile.srq.is_some() {
            return Err(PostError::Shared);
        }
        self.check_local(profile.pd, lkey, address, length, Access::LOCAL_WRITE)?;
        match self.qps[slot].common.state {
            QpState::Reset => return Err(PostError::State(QpState::Reset)),
            QpState::Error => self.tell_receiver(slot, flushed(id, qpn, CompletionKind::Recv)),
            _ => {
                self.qps[slot].responder.queue.push(&mut self.recvs, request);
                self.receive_posted(slot);
            }
        }
        Ok(())
    }

    /// Receive requests that stand in a shared queue and no message has taken.
    pub fn receives_waiting(&self, srq: Srq) -> u64 {
        self.shared.get(srq.0 as usize).map_or(0, |shared| shared.count.into())
    }
}
