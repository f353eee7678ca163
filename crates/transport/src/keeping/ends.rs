//! The ends of messages that came before what precedes them.

use super::{End, Keeping, What};
use crate::arrival::{Reaction, Refusal};
use crate::delivery::onload::SlowPath;
use crate::engine::Engine;
use crate::qp::{Course, Qp, after, sequence};
use crate::queue::NONE;
use crate::work::{Completion, CompletionKind, Status, Tail};
use roci_units::Instant;
use roci_wire::NakCode;

impl Engine {
    /// Notes the end of a message that cannot end yet, once.
    pub(super) fn note_end(&mut self, slot: usize, end: End) {
        let ends = &mut self.keeping(slot).ends;
        let place = ends.iter().rposition(|other| after(other.at, end.at) <= 0).map_or(0, |place| place + 1);
        if place == 0 || ends[place - 1].at != end.at {
            ends.insert(place, end);
        }
    }

    /// Ends, in order, the messages whose last packet lies before `expected`.
    ///
    /// # Errors
    /// When one of them is refused.
    pub(super) fn end_messages(
        &mut self,
        now: Instant,
        slot: usize,
        expected: u32,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let index = self.qps[slot].common.aside;
        loop {
            let Some(keeping) = &mut self.asides.get_mut(index).keeping else { return Ok(()) };
            let Some(&end) = keeping.ends.front() else { break };
            if after(end.at, expected) >= 0 {
                break;
            }
            keeping.ends.pop_front();
            self.end_message(now, slot, end, reaction)?;
        }
        Ok(())
    }

    /// Ends a message: all its packets have come. What refuses it is for its last packet, whatever is kept behind it.
    pub(super) fn end_message(
        &mut self,
        now: Instant,
        slot: usize,
        end: End,
        reaction: &mut Reaction,
    ) -> Result<(), Refusal> {
        let expected = core::mem::replace(&mut self.qps[slot].responder.expected, end.at);
        match end.what {
            What::Single(header) => {
                self.take_single_kept(now, slot, end.at, &header, reaction)?;
                self.qps[slot].responder.begin_message(end.at.wrapping_add(1));
            }
            What::Message { payload, write, solicited, tail } => {
                if let Err(code) = self.end_payload(slot, end.at, (payload, write, solicited, tail)) {
                    return Err(self.refuse(now, slot, code, reaction));
                }
            }
        }
        self.qps[slot].responder.expected = expected;
        Ok(())
    }

    pub(super) fn end_payload(
        &mut self,
        slot: usize,
        at: u32,
        (payload, write, solicited, tail): (u16, bool, bool, Tail),
    ) -> Result<(), NakCode> {
        let profile = self.profile(slot);
        let mtu = u32::from(profile.mtu);
        let Course { start, number, .. } = self.qps[slot].responder.course();
        // Each packet was placed within the buffer, but only now is it known that they are as many as it holds.
        // A peer may send more packets than any buffer holds, each of which named a place within it.
        let length = u64::from(at.wrapping_sub(start)) * u64::from(mtu) + u64::from(payload);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let recv = self.qps[slot].responder.recv;
        let fits = write || recv == NONE || length <= self.recvs.get(recv).request.length;
        // A message that ends with an error takes no key away.
        if let Tail::Invalidate(key) = tail
            && fits
            && self.invalidate_for(slot, key).is_err()
        {
            return Err(NakCode::RemoteAccessError);
        }
        let Qp { common, responder, .. } = &mut self.qps[slot];
        responder.begin_message(at.wrapping_add(1));
        responder.msn = (responder.msn + 1) & 0x00ff_ffff;
        let consumes = !write || matches!(tail, Tail::Immediate(_));
        if !consumes || responder.recv == NONE {
            return Ok(());
        }
        let keeping = match common.aside {
            NONE => None,
            index => self.asides.get_mut(index).keeping.as_mut(),
        };
        let next = keeping.and_then(|keeping| keeping.taken.pop_front()).unwrap_or(NONE);
        let recv = core::mem::replace(&mut responder.recv, next);
        responder.receives = responder.receives.saturating_sub(1);
        let number = number.wrapping_add(1) & 0x00ff_ffff;
        responder.set_course(Course { number, ..responder.course() });
        let request = self.recvs.get(recv).request;
        self.recvs.remove(recv);
        let completion = Completion {
            id: request.id,
            qpn: common.qpn,
            kind: if write { CompletionKind::RecvWrite } else { CompletionKind::Recv },
            status: if fits { Status::Success } else { Status::LocalLengthError },
            length: if fits { length } else { request.length },
            tail: if fits { tail } else { Tail::Plain },
            solicited,
            original: 0,
            source: None,
        };
        self.tell_receiver(slot, completion);
        if fits { Ok(()) } else { Err(NakCode::InvalidRequest) }
    }

    /// The queue pair is about to fail: messages that have come whole end well before, though the slow path has not yet said
    /// so. Packet by packet the requester knows that they came, and took them for carried out. READs and atomics are not
    /// answered any more, and what follows them is not taken for carried out.
    pub(crate) fn end_whole_messages(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if index == NONE {
            return;
        }
        let Some(Keeping { onloaded: Some(onloaded), .. }) = &mut self.asides.get_mut(index).keeping else {
            return;
        };
        onloaded.ask();
        let mut done = SlowPath::default();
        let moved = onloaded.decide(&mut self.kept, &mut done);
        self.count_slow_path(slot, &done);
        let moved = sequence(moved, self.qps[slot].responder.expected);
        while let Some(Keeping { ends, .. }) = &mut self.asides.get_mut(index).keeping
            && let Some(&End { at, what: What::Message { payload, write, solicited, tail } }) = ends.front()
            && after(at, moved) < 0
        {
            ends.pop_front();
            if self.end_payload(slot, at, (payload, write, solicited, tail)).is_err() {
                return;
            }
        }
    }
}
