//! From a work request to the engine's: what is looked at before, and what goes back where it is refused.

use crate::numbers::inner;
use crate::paths::classed;
use crate::queue_pair::can_be_peer;
use crate::shard::Core;
use crate::work::{INLINE_MAX, Payload, RecvWr, Refused, SendWr, WrError};
use crate::works::{Owner, Work, address_of};
use roci_transport::{Operation, Pd, PostError, RecvRequest, RecvTarget, SendRequest};
use roci_units::Instant;

/// How many requests of many are taken before they are posted.
pub(crate) const AT_ONCE: usize = 32;

impl Core {
    /// Posts `request`, whose payload is taken out of it unless it is refused.
    pub(crate) fn post_send(
        &mut self,
        now: Instant,
        place: u32,
        pd: Pd,
        request: &mut SendWr,
    ) -> Result<(), WrError> {
        let left = self.entries[place as usize].as_ref().map_or(0, |entry| entry.sends_left);
        let length = self.prepare(place, left, pd, request)?;
        let waits = self.entries[place as usize].as_ref().is_some_and(|entry| !entry.behind.is_empty());
        if waits || matches!(request.payload, Payload::Local(_)) {
            return self.stand_behind(place, request, length);
        }
        let payload = std::mem::replace(&mut request.payload, Payload::None);
        let (id, owner, signaled) = (request.id, Owner::Send(place), request.signaled);
        let work = Work { id, owner, signaled, payload, is_void: false };
        let at = self.works.insert(work);
        let posted = asked(request, at, length);
        match self.engine.post_send(now, inner(place), &posted) {
            Ok(()) => {
                if let Some(Some(entry)) = self.entries.get_mut(place as usize) {
                    entry.sends_left -= 1;
                }
                Ok(())
            }
            Err(error) => {
                request.payload = self.works.remove(u64::from(at)).map_or(Payload::None, |work| work.payload);
                Err(self.explain(place, error, &request.operation))
            }
        }
    }

    /// Finds out whether all of `requests` would be posted now; where one would not, which it is.
    pub(crate) fn may_post_sends(
        &mut self,
        place: u32,
        pd: Pd,
        requests: &mut [SendWr],
    ) -> Result<(), (usize, WrError)> {
        let room = self.entries[place as usize].as_ref().map_or(0, |entry| entry.sends_left);
        for (before, request) in (0u32..).zip(&mut *requests) {
            let judged = self.prepare(place, room.saturating_sub(before), pd, request).and_then(|length| {
                let judged = self.engine.may_post_send(inner(place), &asked(request, 0, length));
                judged.map_err(|error| self.explain(place, error, &request.operation))
            });
            judged.map_err(|error| (before as usize, error))?;
        }
        Ok(())
    }

    /// What the engine does not look at, of a request for which the queue has `left` places; gives its octets.
    fn prepare(&mut self, place: u32, left: u32, pd: Pd, request: &mut SendWr) -> Result<u32, WrError> {
        let error = match judge(&request.payload, pd) {
            _ if left == 0 => Some(WrError::QueueFull),
            _ if request.is_misfit => Some(WrError::Parts),
            _ if request.dscp.is_some_and(|dscp| dscp > 63) => Some(WrError::CodePoint),
            Some(WrError::ProtectionDomain | WrError::Rights) if request.faults_late => {
                request.forgo_memory();
                None
            }
            error => error,
        };
        if let Some(error) = error {
            return Err(error);
        }
        let length = match (&request.operation, &request.payload) {
            (Operation::FetchAdd { .. } | Operation::CompareSwap { .. }, _) => 8,
            (_, payload) => payload.len(),
        };
        let length = u32::try_from(length).map_err(|_| PostError::Length(u32::MAX))?;
        if let (Operation::Datagram { path, .. }, Some(address)) =
            (&mut request.operation, request.destination)
        {
            let is_peer = can_be_peer(address, self.local).is_ok();
            let usual = || self.entries[place as usize].as_ref().map_or(0, |entry| entry.dscp);
            let dscp = request.dscp.unwrap_or_else(usual);
            match is_peer.then(|| self.paths.learn(address)).flatten() {
                Some(known) => *path = classed(known, dscp),
                None => return Err(WrError::Address(address)),
            }
        }
        Ok(length)
    }

    /// What the engine found, in words that say what can be done.
    pub(crate) fn explain(&self, place: u32, error: PostError, operation: &Operation) -> WrError {
        match (error, operation) {
            (PostError::Remote, Operation::FetchAdd { va, .. } | Operation::CompareSwap { va, .. })
                if !va.is_multiple_of(8) =>
            {
                WrError::Misaligned(*va)
            }
            (PostError::Remote, _) => WrError::NoReads,
            (PostError::Length(length), Operation::Datagram { .. }) => {
                let mtu = self.entries[place as usize].as_ref().map_or(0, |entry| entry.mtu);
                WrError::Datagram { length, mtu }
            }
            (error, _) => error.into(),
        }
    }

    pub(crate) fn post_recv(
        &mut self,
        target: RecvTarget,
        owner: Owner,
        pd: Pd,
        mut request: RecvWr,
    ) -> Result<(), Box<Refused<RecvWr>>> {
        let refuse = |error, request| Err(Box::new(Refused::alone(error, request)));
        let left = match owner {
            Owner::Shared(srq) => self.shared_left.get_mut(srq as usize),
            Owner::Recv(place) | Owner::Send(place) => self
                .entries
                .get_mut(place as usize)
                .and_then(|entry| entry.as_mut())
                .map(|entry| &mut entry.recvs_left),
        };
        let Some(left) = left.filter(|left| **left > 0) else {
            return refuse(WrError::QueueFull, request);
        };
        match judge(&request.payload, pd) {
            None => {}
            Some(WrError::ProtectionDomain | WrError::Rights) if request.faults_late => {
                let length = u32::try_from(request.payload.len()).unwrap_or(u32::MAX);
                (request.payload, request.void) = (Payload::None, Some(length));
            }
            Some(error) => return refuse(error, request),
        }
        let RecvWr { id, payload, faults_late, void } = request;
        let length = void.unwrap_or_else(|| u32::try_from(payload.len()).unwrap_or(u32::MAX));
        let at = self.works.insert(Work { id, owner, signaled: true, payload, is_void: false });
        let posted = RecvRequest { id: u64::from(at), address: address_of(at), length, lkey: 0 };
        match self.engine.post_recv(target, posted) {
            Ok(()) => {
                *left -= 1;
                if void.is_some() {
                    self.engine.void_recvs(|id| id == u64::from(at));
                }
                Ok(())
            }
            Err(error) => {
                let payload = self.works.remove(u64::from(at)).map_or(Payload::None, |work| work.payload);
                refuse(error.into(), RecvWr { id, payload, faults_late, void })
            }
        }
    }
}

/// The engine's request, of the work at place `at`.
pub(crate) fn asked(request: &SendWr, at: u32, length: u32) -> SendRequest {
    SendRequest {
        id: u64::from(at),
        operation: request.operation,
        length,
        address: address_of(at),
        lkey: 0,
        solicited: request.solicited,
        // What it lent is to be given back whether the application wants to hear of it or not.
        signaled: true,
        fence: request.fence,
    }
}

/// What the engine cannot check, since it is given no local keys.
fn judge(payload: &Payload, pd: Pd) -> Option<WrError> {
    let (domains, writable) = match payload {
        Payload::None | Payload::Local(_) => (true, true),
        Payload::Inline(octets) if octets.len() > INLINE_MAX => return Some(WrError::Inline),
        Payload::Inline(_) => (true, true),
        Payload::Slice(slice) => (slice.pd() == pd, true),
        Payload::Slices(slices) => (slices.iter().all(|slice| slice.pd() == pd), true),
        Payload::Buffer(buffer) => (buffer.pd() == pd, buffer.is_writable()),
        Payload::Buffers(buffers) => {
            (buffers.iter().all(|b| b.pd() == pd), buffers.iter().all(crate::Buffer::is_writable))
        }
    };
    if !domains {
        return Some(WrError::ProtectionDomain);
    }
    (!writable).then_some(WrError::Rights)
}
