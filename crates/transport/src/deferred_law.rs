//! A law that the engine does not run itself: its events go out one at a time, and its answers come back late.

use crate::arrival::Deferral;
use crate::engine::Engine;
use crate::law::{leaves_acknowledgement, wants_acknowledgement};
use crate::qp::{Common, Standing};
use crate::queue::NONE;
use crate::segment::{Offer, OwnedEvent};
use crate::token::Purpose;
use alloc::vec::Vec;
use roci_control::{Class, Credit, Event, Hop, Outcome, Verdict, Words};
use roci_units::{Instant, Qpn};

/// Events of a queue pair that wait for a law which is out with an earlier one; more are lost to it. A world that would rather
/// have packets wait holds them back before ([`Engine::packets_waiting`]).
const EVENTS_MAX: usize = 256;

/// What laws that are out have not heard: apart from the engine, since most worlds have none.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Packets that they have still to hear of, by [`count_waiting`](Engine::count_waiting)'s groups.
    waiting: Vec<u32>,
    /// Events that they never heard of, of queue pairs that are gone too.
    unheard: u64,
}

impl Engine {
    /// Hands an event out, or lets it wait for the one that is out.
    pub(crate) fn tell_later(&mut self, slot: usize, event: &Event<'_>) {
        if !self.qps[slot].requester.standing.has(Standing::LAW_OUT) {
            return self.hand_out(slot, own(event));
        }
        let aside = self.aside(slot);
        if aside.events.len() < EVENTS_MAX {
            aside.events.push_back(own(event));
            if let Some(waiting) = self.waiting_of(self.qps[slot].common.qpn, event.class) {
                *waiting += 1;
            }
        } else {
            aside.unheard += 1;
            self.backlog.get_or_insert_default().unheard += 1;
            if wants_acknowledgement(event.class) {
                self.acknowledge_for_law(slot);
            }
        }
    }

    /// Counts from now on the packets of which laws that are out have still to hear, together for all queue pairs whose
    /// numbers are equal modulo `groups`: for a world whose cores work for several of them. No event waits yet.
    pub fn count_waiting(&mut self, groups: u32) {
        debug_assert!(self.asides.is_quiet(), "events wait already");
        self.backlog.get_or_insert_default().waiting = alloc::vec![0; groups as usize];
    }

    /// How many packets laws that are out have still to hear of, in the group of `qpn`; zero where they are not
    /// [counted](Self::count_waiting). An event that is out waits no more.
    #[inline]
    pub fn packets_waiting(&self, qpn: Qpn) -> u32 {
        self.backlog
            .as_ref()
            .map_or(0, |backlog| backlog.group(qpn).map_or(0, |group| backlog.waiting[group]))
    }

    /// Events that laws never heard of because too many waited for them, of all queue pairs that there have been.
    pub fn unheard(&self) -> u64 {
        self.backlog.as_ref().map_or(0, |backlog| backlog.unheard)
    }

    /// The count in which an event of `class` for `qpn` is, if it is in one.
    fn waiting_of(&mut self, qpn: Qpn, class: Class) -> Option<&mut u32> {
        let backlog = self.backlog.as_mut()?;
        let group = backlog.group(qpn)?;
        if class.meets(Class::ARRIVED) { backlog.waiting.get_mut(group) } else { None }
    }

    /// Nothing waits any more for the law of a queue pair that is reset or gone.
    pub(crate) fn forget_events(&mut self, slot: usize) {
        let Common { aside, qpn, .. } = self.qps[slot].common;
        if aside == NONE {
            return;
        }
        while let Some(event) = self.asides.get_mut(aside).events.pop_front() {
            if let Some(waiting) = self.waiting_of(qpn, event.event.class) {
                *waiting -= 1;
            }
        }
    }

    fn hand_out(&mut self, slot: usize, event: OwnedEvent) {
        let decides = self.hears(slot, Class::TRANSMIT);
        let serial = self.next_serial(slot);
        self.aside(slot).about = event.event.class;
        self.note_tokens(slot);
        let standing = &mut self.qps[slot].requester.standing;
        standing.set(Standing::LAW_OUT);
        if decides {
            standing.set(Standing::LAW_DECIDES);
        }
        let token = self.token(slot, Purpose::Law, serial);
        self.defer(Deferral::Law { token, qpn: self.qps[slot].common.qpn, event });
    }

    /// Notes the tokens that a law which is out sees: what is spent until it answers stays spent.
    fn note_tokens(&mut self, slot: usize) {
        self.aside(slot).tokens = self.credit(slot).tokens;
    }

    /// Makes the answer of a law that was out effective.
    fn apply_late(&mut self, now: Instant, slot: usize, outcome: &Outcome) {
        let Common { aside, .. } = self.qps[slot].common;
        if aside != NONE && core::mem::take(&mut self.asides.get_mut(aside).outdated) {
            let rest = self.rest_of_outdated(slot, outcome);
            return self.apply_since(now, slot, &rest);
        }
        self.apply_since(now, slot, outcome);
    }

    /// The same of an answer that stands: what happened while the law was out counts as well.
    fn apply_since(&mut self, now: Instant, slot: usize, outcome: &Outcome) {
        let (mut tokens, mut wake) = (outcome.credit.tokens, outcome.wake);
        let left = self.credit(slot).tokens;
        let seen = self.asides.get(self.qps[slot].common.aside).map_or(left, |aside| aside.tokens);
        if ![left, seen, tokens].contains(&Credit::UNLIMITED) {
            let changed = i64::from(left) + i64::from(tokens) - i64::from(seen);
            tokens = u32::try_from(changed.max(0)).unwrap_or(Credit::UNLIMITED).min(Credit::UNLIMITED - 1);
        }
        // The timer went off while the law was out, and the law is to hear of it: armed anew for an instant that has passed
        // it would go off with each answer that leaves it as it was, for ever.
        if wake <= now && self.timer_waits(slot) {
            wake = Instant::NEVER;
        }
        if (tokens, wake) == (outcome.credit.tokens, outcome.wake) {
            // An outcome is too large to be copied for nothing.
            return self.apply(now, slot, outcome);
        }
        let credit = Credit { tokens, ..outcome.credit };
        self.apply(now, slot, &Outcome { credit, wake, ..*outcome });
    }

    /// Whether among the events that wait for the law is one of its timer.
    fn timer_waits(&self, slot: usize) -> bool {
        let waiting = self.asides.get(self.qps[slot].common.aside).map(|aside| &aside.events);
        waiting.is_some_and(|events| events.iter().any(|event| event.event.class == Class::TIMER))
    }

    /// What stands of an answer that a law gave before it was replaced: what it sends.
    #[cold]
    fn rest_of_outdated(&mut self, slot: usize, outcome: &Outcome) -> Outcome {
        self.note_tokens(slot);
        let wake = self.laws.wake(self.qps[slot].common.law);
        Outcome { emit: outcome.emit, ..Outcome::unchanged(self.credit(slot), wake) }
    }

    /// A number for the event that goes out next. Each queue pair counts its own, for those of a port share a law but
    /// have events out side by side.
    fn next_serial(&mut self, slot: usize) -> u32 {
        let aside = self.aside(slot);
        aside.serial = (aside.serial + 1) & 0xf_ffff;
        aside.serial
    }

    /// Runs the queue pair's law on an event that was handed out, without applying its answer: for a world that only
    /// takes time over it. `None` where there is no such queue pair, or its law hears nothing.
    pub fn evaluate(&mut self, qpn: Qpn, event: &OwnedEvent) -> Option<Outcome> {
        let slot = self.place(qpn)?;
        let hops = &event.hops[..usize::from(event.hop_count).min(event.hops.len())];
        let words = &event.words.words[..usize::from(event.words.len).min(event.words.words.len())];
        self.evaluate_in(slot, &Event { words, hops, ..event.event })
    }

    /// The same of the event that belongs to an offer, [`transmit_event`](Self::transmit_event).
    pub fn evaluate_offer(&mut self, now: Instant, offer: &Offer) -> Option<Outcome> {
        let slot = self.place(offer.qpn)?;
        let event = self.before_sending(now, slot, offer.length);
        self.evaluate_in(slot, &event)
    }

    fn evaluate_in(&mut self, slot: usize, event: &Event<'_>) -> Option<Outcome> {
        self.begin_law(event.now, slot);
        if self.qps[slot].common.law == NONE {
            return None;
        }
        self.note_tokens(slot);
        // Whoever was replaced while this event was out: it is the law of today that answers it.
        self.aside(slot).outdated = false;
        let outcome = self.run_law(slot, event);
        if outcome.verdict == Verdict::LoopBack {
            // Nobody commits to what is refused, but its timers and its credit count.
            self.apply(event.now, slot, &outcome);
            self.note_tokens(slot);
        }
        Some(outcome)
    }

    /// The `TRANSMIT` event that belongs to an offer, for the caller that runs the law.
    pub fn transmit_event(&self, now: Instant, offer: &Offer) -> Option<OwnedEvent> {
        let slot = self.place(offer.qpn)?;
        let event = self.before_sending(now, slot, offer.length);
        Some(own(&event))
    }

    /// The answer to an event that was handed out.
    pub(crate) fn law_answered(&mut self, now: Instant, slot: usize, serial: u32, outcome: &Outcome) {
        let Common { law, aside, .. } = self.qps[slot].common;
        let out = self.qps[slot].requester.standing.has(Standing::LAW_OUT);
        if law == NONE || !out || self.asides.get(aside).is_none_or(|aside| aside.serial != serial) {
            return;
        }
        // What it has the port's agent say to this queue pair, another message's turn, waits behind the events that wait already.
        self.qps[slot].requester.standing.clear(Standing::LAW_DECIDES);
        let about = self.aside(slot).about;
        self.apply_late(now, slot, outcome);
        if leaves_acknowledgement(about, outcome) {
            self.acknowledge_for_law(slot);
        }
        self.release_law(slot);
    }

    /// The law is back: the next event that waited for it goes out.
    pub(crate) fn release_law(&mut self, slot: usize) {
        let standing = &mut self.qps[slot].requester.standing;
        standing.clear(Standing::LAW_OUT.with(Standing::LAW_DECIDES));
        let aside = self.qps[slot].common.aside;
        if aside != NONE {
            let aside = self.asides.get_mut(aside);
            aside.outdated = false;
            if let Some(event) = aside.events.pop_front() {
                if let Some(waiting) = self.waiting_of(self.qps[slot].common.qpn, event.event.class) {
                    *waiting -= 1;
                }
                self.hand_out(slot, event);
            }
        }
    }

    /// An offer takes the law with it: events wait until it is settled.
    pub(crate) fn own_law(&mut self, slot: usize) {
        self.qps[slot].requester.standing.set(Standing::LAW_OUT);
        if self.qps[slot].common.law != NONE {
            // The number of an event that is out must not fit the offer's.
            self.next_serial(slot);
            self.note_tokens(slot);
        }
    }

    /// Applies the answer that a caller's law gave to an offer.
    ///
    /// Whoever recirculates what the law refuses declines the offer instead: what is refused here waits for an event.
    pub(crate) fn settle_law(
        &mut self,
        now: Instant,
        slot: usize,
        length: u32,
        outcome: &Outcome,
    ) -> Verdict {
        self.begin_law(now, slot);
        if outcome.verdict == Verdict::LoopBack && !self.is_outdated(slot) {
            let mut outcome = *outcome;
            let event = self.before_sending(now, slot, length);
            self.refuse_what_strands(slot, &event, &mut outcome);
            if outcome.verdict == Verdict::LoopBack {
                self.park(slot, Standing::PARKED);
            }
            self.apply_late(now, slot, &outcome);
            return outcome.verdict;
        }
        self.apply_late(now, slot, outcome);
        outcome.verdict
    }

    fn is_outdated(&self, slot: usize) -> bool {
        self.asides.get(self.qps[slot].common.aside).is_some_and(|aside| aside.outdated)
    }
}

impl Backlog {
    /// The place of a queue pair's count, if there are any.
    fn group(&self, qpn: Qpn) -> Option<usize> {
        (qpn.get() as usize).checked_rem(self.waiting.len())
    }
}

/// A copy of `event` that owns its words and hops; more than fit are cut off.
fn own(event: &Event<'_>) -> OwnedEvent {
    let mut words = Words::default();
    let count = event.words.len().min(words.words.len());
    words.words[..count].copy_from_slice(&event.words[..count]);
    let mut hops = [Hop::default(); 8];
    let hop_count = event.hops.len().min(hops.len());
    hops[..hop_count].copy_from_slice(&event.hops[..hop_count]);
    #[expect(clippy::cast_possible_truncation, reason = "at most 16 words and 8 hops")]
    let (word_count, hop_count) = (count as u8, hop_count as u8);
    words.len = word_count;
    OwnedEvent { event: event.bare(), words, hops, hop_count }
}
