//! Who may have requests under way where all queue pairs to one place have room together ([`Flights`]): it is asked for before each
//! run, and given back with what is acknowledged or taken for lost.

use crate::credit::flight::Flights;
use crate::engine::Engine;
use crate::queue::flag;
use roci_units::Instant;

impl Engine {
    /// Whether there is room under way for a run of request `work`; where there is none, the queue pair waits in line.
    #[cold]
    pub(crate) fn admits_flight(&mut self, slot: usize, work: u32) -> bool {
        let path = self.qps[slot].common.path;
        let work = self.sends.get(work);
        let counts = work.kind.is_read_or_atomic() || !work.has(flag::LEAVES);
        self.flights.as_mut().is_none_or(|flights| !counts || flights.admit(slot, path))
    }

    /// A run of a request leaves once more. A queue pair that had nothing under way, as it stood in line, waits for an answer from
    /// now on.
    #[cold]
    pub(crate) fn fly_again(&mut self, now: Instant, slot: usize, packets: u32) {
        if self.flights.as_mut().is_some_and(|flights| flights.sent_again(slot, packets)) {
            self.restart_timer(now, slot);
        }
    }

    /// The queue pair has no request that may go now: who waits for room under way need not wait for it.
    #[inline]
    pub(crate) fn end_flight_turn(&mut self, slot: usize) {
        if let Some(flights) = &mut self.flights {
            flights.end_turn(slot);
        }
    }

    /// The queue pair waits for something other than room under way: what it was promised is for who waits for that.
    #[inline]
    pub(crate) fn pass_flight_turn(&mut self, slot: usize) {
        self.change_flight(None, |flights| flights.end_turn(slot));
    }

    /// The responder has answered, and acknowledged so many packets of WRITEs and SENDs: who waits for the room goes.
    #[inline]
    pub(crate) fn land(&mut self, now: Instant, slot: usize, packets: u32) {
        if self.flights.is_some() {
            self.land_flight(now, slot, packets);
        }
    }

    #[cold]
    fn land_flight(&mut self, now: Instant, slot: usize, packets: u32) {
        let was_doubted = self.flights.as_mut().is_some_and(|flights| flights.acknowledged(slot, packets));
        if was_doubted {
            self.arm(now, slot);
        }
        self.let_in(Some(now));
    }

    /// A READ or atomic has come to its end: its one packet is under way until then.
    #[inline]
    pub(crate) fn land_answered(&mut self, slot: usize) {
        self.change_flight(None, |flights| {
            flights.acknowledged(slot, 1);
        });
    }

    /// So many packets of the queue pair, at most, are taken for lost, and have room again when they are sent again.
    #[inline]
    pub(crate) fn lose_flight(&mut self, now: Instant, slot: usize, packets: u32) {
        self.change_flight(Some(now), |flights| flights.lost(slot, packets));
    }

    /// Nothing of the queue pair was answered in time.
    pub(crate) fn doubt_flight(&mut self, now: Instant, slot: usize) {
        self.change_flight(Some(now), |flights| flights.unanswered(slot));
    }

    /// The queue pair has nothing under way any more, and waits for nothing.
    #[cold]
    pub(crate) fn leave_flight(&mut self, slot: usize) {
        self.change_flight(None, |flights| flights.forget(slot));
    }

    /// The queue pair's packets go elsewhere from now on: what is under way keeps no room there, nor has it any here.
    #[cold]
    pub(crate) fn move_flight(&mut self, now: Instant, slot: usize) {
        if self.flights.is_some() {
            self.leave_flight(slot);
            self.arm(now, slot);
        }
    }

    #[inline]
    fn change_flight(&mut self, now: Option<Instant>, change: impl FnOnce(&mut Flights)) {
        if let Some(flights) = &mut self.flights {
            change(flights);
            self.let_in(now);
        }
    }

    /// The first in line for whom there is room has its turn, or the next one that has a request to send; who waits for another reason
    /// by now comes again when that is over. Whether anybody has it.
    #[cold]
    fn let_in(&mut self, now: Option<Instant>) -> bool {
        while let Some(slot) = self.flights.as_mut().and_then(|flights| flights.next()) {
            let requester = &self.qps[slot].requester;
            let may = requester.wants_to_send() && requester.has_requests();
            if may && now.is_none_or(|now| requester.pacer.eligible_at() <= now) {
                #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
                self.schedule.add(slot as u32, requester.priority);
                if let Some(flights) = &mut self.flights {
                    flights.let_in(slot);
                }
                return true;
            }
            if let Some(now) = now {
                self.arm(now, slot);
            }
        }
        false
    }

    /// As the schedule's `turn` where nobody else has one: of those who wait in line for room under way, where there is room.
    #[cold]
    pub(crate) fn turn_from_line(&mut self, now: Instant, open_priorities: u8) -> Option<u32> {
        while self.let_in(Some(now)) {
            if let Some(place) = self.schedule.turn(open_priorities) {
                return Some(place);
            }
        }
        None
    }

    /// The same as its `take`.
    #[cold]
    pub(crate) fn take_from_line(&mut self, now: Instant, open_priorities: u8) -> Option<u32> {
        self.turn_from_line(now, open_priorities)?;
        self.schedule.take(open_priorities)
    }
}
