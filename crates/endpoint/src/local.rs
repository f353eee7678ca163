//! Requests that no packet carries: a memory window is bound, a key invalidated here, or one fails that names no memory of ours, in the
//! order of their send queue.
//!
//! The engine knows packets alone. Such a request waits until those before it have ended, which is later than IBTA wants (they have to have
//! begun, and READs and atomics to have ended before one with a fence), and those behind it wait here until it has been carried out. A queue
//! pair that never has one looks at one length for it.

use crate::memory::region::Handle;
use crate::numbers::inner;
use crate::posting::asked;
use crate::shard::{Core, Entry};
use crate::table::Change;
use crate::work::{Payload, SendWr, WorkCompletion, WrError};
use crate::works::{Owner, Work};
use roci_transport::{Binding, CompletionKind, Operation, QpState, SendRequest, Status, Tail};
use std::sync::Arc;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Local {
    /// To bind a window. The region stays registered until that is done.
    Bind(Binding, Option<Arc<Handle>>),
    /// To invalidate the key of a window.
    Invalidate(u32),
    /// To fail, for want of memory that this operation could use.
    Fault(Operation),
}

impl Local {
    const fn kind(&self) -> CompletionKind {
        match self {
            Self::Bind(..) => CompletionKind::BindWindow,
            Self::Invalidate(_) => CompletionKind::LocalInvalidate,
            Self::Fault(operation) => match operation {
                Operation::Send(_) | Operation::Datagram { .. } => CompletionKind::Send,
                Operation::Write { .. } => CompletionKind::Write,
                Operation::Read { .. } => CompletionKind::Read,
                Operation::FetchAdd { .. } => CompletionKind::FetchAdd,
                Operation::CompareSwap { .. } => CompletionKind::CompareSwap,
            },
        }
    }
}

impl Core {
    /// Takes a request that [was prepared](Core::post_send) behind those that wait, or as the first that others wait for. It is begun or
    /// carried out when what has ended is [delivered](Core::complete), as is done after each post.
    #[cold]
    pub(crate) fn stand_behind(
        &mut self,
        place: u32,
        request: &mut SendWr,
        length: u32,
    ) -> Result<(), WrError> {
        let judged = self.engine.may_post_send(inner(place), &asked(request, 0, length));
        judged.map_err(|error| self.explain(place, error, &request.operation))?;
        let payload = std::mem::replace(&mut request.payload, Payload::None);
        let (id, owner, signaled) = (request.id, Owner::Send(place), request.signaled);
        let at = self.works.insert(Work { id, owner, signaled, payload, is_void: false });
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else { return Ok(()) };
        entry.sends_left -= 1;
        if entry.behind.is_empty() {
            self.behind.push(place);
        }
        entry.behind.push_back(asked(request, at, length));
        Ok(())
    }

    /// Carries out and begins what need wait no longer; whether there was anything.
    #[cold]
    pub(crate) fn go_on(&mut self) -> bool {
        let places = std::mem::take(&mut self.behind);
        let mut has_gone = false;
        for place in places {
            while self.go_on_at(place) {
                has_gone = true;
            }
            let waits = |entry: &Entry| !entry.behind.is_empty();
            if self.entries.get(place as usize).is_some_and(|entry| entry.as_ref().is_some_and(waits)) {
                self.behind.push(place);
            }
        }
        has_gone
    }

    /// The same of the first request that waits at one queue pair.
    fn go_on_at(&mut self, place: u32) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(place as usize) else { return false };
        let Some(&request) = entry.behind.front() else { return false };
        let is_local = self.works.is_local(request.id);
        let state = self.engine.query(inner(place)).map_or(QpState::Error, |status| status.state);
        let under_way = (entry.room.0 - entry.sends_left) as usize - entry.behind.len();
        if is_local && (under_way > 0 || state == QpState::SendQueueDrained) {
            return false;
        }
        entry.behind.pop_front();
        if is_local {
            self.carry_out(place, &request, state);
        } else {
            self.begin(place, &request);
        }
        true
    }

    /// Posts what waited.
    fn begin(&mut self, place: u32, request: &SendRequest) {
        self.has_begun = true;
        if self.engine.post_send(self.clock.now(), inner(place), request).is_err() {
            // It was judged when it came; the queue pair has been changed since.
            self.end(place, request.id, CompletionKind::Send, Status::LocalQpOperationError);
        }
    }

    fn carry_out(&mut self, place: u32, request: &SendRequest, state: QpState) {
        let Some(Some(entry)) = self.entries.get(place as usize) else { return };
        let (pd, qpn) = (entry.pd, inner(place));
        let Some(Payload::Local(local)) = self.works.take_payload(request.id) else { return };
        let kind = local.kind();
        let is_done = match *local {
            _ if state == QpState::Error => {
                return self.end(place, request.id, kind, Status::WorkRequestFlushed);
            }
            Local::Bind(binding, _region) => {
                self.let_go();
                let is_bound = self.engine.bind(pd, qpn, &binding).is_ok();
                if is_bound && self.table.shards() > 1 && self.engine.regions().is_shared_window(binding.key)
                {
                    self.table.tell_others(self.number, Change::Bind(pd, binding));
                }
                is_bound
            }
            Local::Fault(_) => {
                return self.end(place, request.id, kind, Status::LocalProtectionError);
            }
            Local::Invalidate(key) => self.engine.invalidate_window(pd, qpn, key).is_ok(),
        };
        let status = if is_done { Status::Success } else { Status::MemoryWindowBindError };
        self.end(place, request.id, kind, status);
    }

    /// Tells the end of a request that the engine has not had; one that is an error is its queue pair's.
    fn end(&mut self, place: u32, id: u64, kind: CompletionKind, status: Status) {
        let Some(work) = self.works.remove(id) else { return };
        self.returned(work.owner);
        if !matches!(status, Status::Success | Status::WorkRequestFlushed) {
            self.fail(self.clock.now(), place);
            self.meet_with_all();
        }
        let Some(Some(entry)) = self.entries.get(place as usize) else { return };
        self.has_ended = true;
        if status == Status::Success && !work.signaled {
            return;
        }
        entry.send_cq.push(WorkCompletion {
            wr_id: work.id,
            qp_num: entry.qpn,
            status,
            opcode: kind,
            byte_len: 0,
            tail: Tail::Plain,
            solicited: false,
            original: 0,
            source: None,
            payload: work.payload,
            time_ns: 0,
        });
    }
}
