//! What is marked to be sent again, and what becomes of it.

use crate::aside::Aside;
use crate::config::Recovery;
use crate::delivery::program::Decision;
use crate::engine::Engine;
use crate::qp::{Notes, after, sequence};
use crate::queue::{NONE, flag};
use crate::transmit::Plan;
use roci_control::Credit;
use roci_units::{Instant, Psn};

impl Engine {
    /// The first run of packets that are marked to be sent again, within one message; of no packets where a window holds
    /// it back.
    ///
    /// Go-back-N takes all that is in flight for lost, so the window bounds what has been sent again as it bounds what is
    /// new. Elsewhere the others are still under way, and what is sent again takes the place of what was lost.
    pub(crate) fn plan_resend(&mut self, slot: usize, quantum: u32) -> Option<Plan> {
        let mtu = u32::from(self.profile(slot).mtu);
        let (una, window) = (self.qps[slot].requester.una, self.qps[slot].requester.window);
        let bounded = self.profile(slot).recovery == Recovery::GoBackN && window != Credit::UNLIMITED;
        let index = self.qps[slot].common.aside;
        self.losing(slot)?;
        let head = self.search_from(slot, una);
        let losing = self.asides.get_mut(index).losing.as_mut()?;
        let most = (quantum / mtu).clamp(1, u32::from(u16::MAX));
        let run = losing.sender.resend(&self.boards, most)?;
        let at = sequence(run.psn, una);
        let mut place = head;
        if losing.hint != NONE && after(at, self.sends.get(losing.hint).first) >= 0 {
            place = losing.hint;
        }
        while after(at, self.sends.get(place).end) >= 0 {
            place = self.sends.get(place).next;
        }
        losing.hint = place;
        let work = self.sends.get(place);
        debug_assert!(work.has(flag::NUMBERED), "what is in flight has numbers");
        let left = work.end.wrapping_sub(at);
        let mut packets = if work.kind.is_read_or_atomic() { 1 } else { run.packets.min(left) };
        if bounded && !work.kind.is_read_or_atomic() {
            let lets = (window / mtu).max(1).saturating_sub(at.wrapping_sub(una));
            // As with new packets: where the window has shut behind what asks for nothing, one goes that asks.
            packets = packets.min(lets.max(u32::from(self.qps[slot].requester.unasked > 0)));
        }
        if let Some(probe) = losing.probe {
            packets = packets.min(probe.lets(at));
        }
        let length = match work.kind {
            _ if work.kind.is_read_or_atomic() => 0,
            _ if packets == left => work.length - at.wrapping_sub(work.first) * mtu,
            _ => packets * mtu,
        };
        let packets = u16::try_from(packets).ok()?;
        Some(Plan { response: false, work: place, at, packets, length, fresh: false })
    }

    /// Packets from `at` to before `end` were sent again.
    pub(crate) fn resent(&mut self, slot: usize, at: u32, end: u32) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_none() {
            return;
        }
        let aside = self.asides.get_mut(index);
        let Some(losing) = &mut aside.losing else { return };
        // A READ is asked for to its end, though fewer of its packets may be marked.
        if let Some(run) = losing.sender.resend(&self.boards, end.wrapping_sub(at)) {
            debug_assert_eq!(run.psn, Psn::new(at), "what is marked first is sent first");
            aside.repeated += losing.sender.resent(&mut self.boards, run);
        }
        self.note_resends(slot);
    }

    /// A READ's response is missing: asks for the rest of it, once until it moves on. With go-back-N it asks for all that is
    /// outstanding, and that costs a retry, as the NAK would that it stands for.
    pub(crate) fn ask_again(&mut self, now: Instant, slot: usize) {
        let requester = &self.qps[slot].requester;
        let (una, in_flight) = (requester.una, requester.high.wrapping_sub(requester.una));
        if self.aside(slot).asked_at == Some(una) {
            return;
        }
        if !self.profile(slot).recovery.keeps_out_of_order() && !self.spend_retry(now, slot) {
            return;
        }
        if !self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            self.begin_recovery(slot, una, in_flight);
        }
        let end = match self.profile(slot).separate_reads() {
            true => una.wrapping_add(1),
            // What followed of the answers was dropped, for it came before its turn: all that is outstanding is asked again.
            false => self.qps[slot].requester.high,
        };
        self.doubt_result(slot);
        self.probe_after(slot, false);
        let aside = self.aside(slot);
        aside.asked_at = Some(una);
        let mark = Some((Psn::new(una), Psn::new(end)));
        self.decided(now, slot, &Decision { mark, window: None, restart_timer: false });
    }

    /// What is first to be acknowledged is to be sent again though its request is known to have arrived: had an atomic's
    /// result arrived as well, it would be acknowledged.
    pub(super) fn doubt_result(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_some()
            && let Some(losing) = &mut self.asides.get_mut(index).losing
        {
            losing.sender.doubt_first(&mut self.boards);
        }
    }

    /// A request left its queue: no search may begin there.
    #[inline]
    pub(crate) fn forget_hint(&mut self, slot: usize, work: u32) {
        if self.qps[slot].requester.notes.has(Notes::RECOVERING)
            && let Some(losing) = self.losing(slot)
            && losing.hint == work
        {
            losing.hint = NONE;
        }
    }

    /// Whether `packets` that are about to be sent have to be acknowledged at once: they were lost before, or no others
    /// follow until they are.
    ///
    /// Where single packets are sent again, they may fill no gap that the receiver knows of, as after the loss of all that
    /// followed: it would take them for the next of many. And where READ responses acknowledge what came before them, as in
    /// layout `homa`, a responder that has the packet may owe no answer but to one that asks.
    pub(crate) fn wants_answer(&mut self, slot: usize, plan: &Plan) -> bool {
        let ends_probe = self.ends_probe(slot, plan);
        let profile = self.profile(slot);
        ends_probe
            || !plan.fresh && profile.recovery.keeps_out_of_order()
            || profile.recovery.owns_window()
                && (!plan.fresh || self.recovery_room(slot) <= u32::from(plan.packets))
    }

    /// Brings the queue pair's notes up to date, and ends the recovery when nothing is left of it.
    pub(super) fn note_resends(&mut self, slot: usize) {
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_none() {
            return;
        }
        let Aside { losing: Some(losing), undecided, .. } = self.asides.get_mut(index) else { return };
        let marked = losing.sender.has_marked(&self.boards);
        let over = undecided.is_empty() && losing.sender.is_in_order();
        let notes = &mut self.qps[slot].requester.notes;
        if marked {
            notes.set(Notes::RESENDS);
        } else {
            notes.clear(Notes::RESENDS);
            if over {
                self.end_recovery(slot);
            }
        }
    }
}
