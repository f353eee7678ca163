//! Acknowledgements of what arrived beyond a gap: what they tell the recovery program, and the law.

use super::Losing;
use crate::config::Recovery;
use crate::delivery::program::Event as Loss;
use crate::engine::Engine;
use crate::qp::{Notes, Requester, after, sequence};
use crate::queue::{Kind, NONE, flag};
use roci_control::Class;
use roci_units::{Instant, Psn};

impl Engine {
    /// The octets of the packet `psn` if an acknowledgement that names it is the first to say that it arrived, beyond one that
    /// is missing. They are told to the law now, and not again when all before it have arrived as well. A loss `begins` with that
    /// acknowledgement, or has begun.
    #[cold]
    pub(crate) fn take_news(&mut self, slot: usize, psn: Psn, begins: bool) -> Option<u32> {
        let (una, high) = (self.qps[slot].requester.una, self.qps[slot].requester.high);
        let at = sequence(psn, una);
        let profile = self.profile(slot);
        if !profile.names_packets()
            || !profile.recovery.is_selective()
            || after(at, una) < 0
            || after(at, high) >= 0
        {
            return None;
        }
        let aside = self.asides.get(self.qps[slot].common.aside);
        let remembers = match aside.and_then(|aside| aside.losing.as_ref()) {
            Some(losing) if losing.sender.knows(&self.boards, psn) => false,
            Some(losing) => losing.sender.remembers(&self.boards),
            None => begins && self.boards.available(),
        };
        if !remembers {
            return None;
        }
        let octets = self.payload_in_flight(slot, at);
        self.aside(slot).told += octets;
        Some(octets)
    }

    /// Octets of payload in the packet at `at`, which is in flight.
    pub(super) fn payload_in_flight(&self, slot: usize, at: u32) -> u32 {
        let mtu = u32::from(self.profile(slot).mtu);
        let mut index = self.search_from(slot, at);
        while after(at, self.sends.get(index).end) >= 0 {
            index = self.sends.get(index).next;
        }
        let work = self.sends.get(index);
        match work.kind {
            _ if work.kind.is_read_or_atomic() => 0,
            _ if at.wrapping_add(1) == work.end => work.length - at.wrapping_sub(work.first) * mtu,
            _ => mtu,
        }
    }

    /// How many of `octets`, newly acknowledged in order, the law has been told of: all that it has, at most.
    #[inline]
    pub(crate) fn take_told(&mut self, slot: usize, octets: u32) -> u32 {
        if !self.qps[slot].requester.notes.has(Notes::RECOVERING) {
            return 0;
        }
        let told = &mut self.aside(slot).told;
        let before = octets.min(*told);
        *told -= before;
        before
    }

    /// An acknowledgement named a packet that came out of order.
    pub(crate) fn came_out_of_order(&mut self, now: Instant, slot: usize, psn: Psn) {
        let cumulative = Psn::new(self.qps[slot].requester.una);
        if self.qps[slot].requester.notes.has(Notes::RECOVERING) && psn.since(cumulative) >= 0 {
            self.observe(now, slot, Loss::Ack { cumulative, selective: Some(psn) });
            self.follow(now, slot);
        }
    }

    /// The same where that may be the first sign of a gap: what has arrived beyond it is remembered, lest a timeout send it again.
    pub(crate) fn named_out_of_order(&mut self, now: Instant, slot: usize, psn: Psn) {
        let Requester { una, high, notes, .. } = &self.qps[slot].requester;
        let at = sequence(psn, *una);
        if after(at, *high) >= 0 {
            return;
        }
        if after(at, *una) > 0
            && !notes.has(Notes::RECOVERING)
            && self.state(slot).sends()
            && self.boards.available()
        {
            let (una, in_flight) = (*una, high.wrapping_sub(*una));
            self.begin_recovery(slot, una, in_flight);
        }
        self.came_out_of_order(now, slot, psn);
    }

    /// An acknowledgement that the program is to hear of beyond the progress it brought: it names a packet that came
    /// out of order, or repeats the last one.
    pub(crate) fn acknowledged_again(
        &mut self,
        now: Instant,
        slot: usize,
        upto: u32,
        trigger: Psn,
        moved: bool,
    ) {
        let requester = &self.qps[slot].requester;
        let (una, high) = (requester.una, requester.high);
        let recovery = self.profile(slot).recovery;
        if !recovery.owns_window() || una == high {
            return;
        }
        let cumulative = Psn::new(una);
        let selective = (recovery == Recovery::Sack && trigger.since(cumulative) >= 0).then_some(trigger);
        if selective.is_none() && (moved || upto != una) {
            return;
        }
        let began = |losing: Option<&mut Losing>| losing.is_some_and(|losing| losing.sender.recovers());
        let before = began(self.losing(slot));
        self.observe(now, slot, Loss::Ack { cumulative, selective });
        self.follow(now, slot);
        if !before && began(self.losing(slot)) && self.hears(slot, Class::LOSS) {
            let event = self.event(now, slot, Class::LOSS);
            self.tell_law(now, slot, &event);
        }
    }

    /// Follows the fixed stage where it knows more.
    pub(super) fn follow(&mut self, now: Instant, slot: usize) {
        let cumulative = Psn::new(self.qps[slot].requester.una);
        self.note_resends(slot);
        let index = self.qps[slot].common.aside;
        if self.losing(slot).is_some()
            && let Some(losing) = &self.asides.get_mut(index).losing
        {
            let missing = losing.sender.first_missing(&self.boards);
            if missing != cumulative {
                let upto = self.before_result(slot, sequence(missing, self.qps[slot].requester.una));
                self.acknowledge(now, slot, upto);
            }
        }
    }

    /// `upto`, or the sequence of an atomic before it that has no result yet. That its request came behind a gap says nothing of
    /// that: it is carried out, and answered, when its turn has come.
    fn before_result(&self, slot: usize, upto: u32) -> u32 {
        let mut index = self.search_from(slot, self.qps[slot].requester.una);
        while index != NONE {
            let work = self.sends.get(index);
            if !work.has(flag::NUMBERED) || after(work.first, upto) >= 0 {
                break;
            }
            if matches!(work.kind, Kind::FetchAdd | Kind::CompareSwap) && !work.has(flag::ANSWERED) {
                return work.first;
            }
            index = work.next;
        }
        upto
    }
}
