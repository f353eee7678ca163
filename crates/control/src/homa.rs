//! Homa (Montazeri et al., SIGCOMM 2018, §3): unscheduled octets at once, all others as they are granted.
//!
//! The unit is the message. Its first [`Params::unscheduled`] octets (RTTbytes, §3.2) go blindly, at a priority that
//! its length alone decides (§3.4); the rest go as far, and at the priority, as the receiver's grants say. Octets that
//! were granted once may be sent again without a further grant, so what this law deals are octets sent for the first time.
//! Who is asked for octets again while some that it may send wait for shorter messages of the port is BUSY (§3.7).
//!
//! At the receiver the port's agent says whose turn it is and by which priority, for that is a matter of all its queue
//! pairs; how far the message is then granted, and at which priority octets are asked for again, this law says.
//!
//! | priority | what travels on it |
//! | --- | --- |
//! | 7 and down, at most four levels and at most half of them | unscheduled octets, the shortest messages highest |
//! | the levels below | scheduled octets, by the receiver's order |
//!
//! Departs from the paper in this: cutoffs between unscheduled levels are parameters, where the paper's receivers
//! measure message sizes and announce the cutoffs.

mod keys;

pub use keys::REGISTERS;

use crate::event::{Class, Event, Part};
use crate::outcome::{Credit, Emit, Outcome};
use crate::register::{Place, Register, SettingError, Value};
use roci_units::{Instant, Ratio, Span};

/// Homa's parameters. [`Default`] is the Linux module's where it has a like, but for the degree of overcommitment: that is 8 there, and
/// here, as in the paper (§3.5), the number of scheduled priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// RTTbytes: octets of each message that go without a grant.
    pub unscheduled: u32,
    /// How far grants run ahead of what has arrived; `None`: as far as `unscheduled`.
    pub ahead: Option<u32>,
    /// Messages that a receiver grants at once, each of another sender: its degree of overcommitment (§3.5), at least 1.
    pub overcommit: u8,
    /// What part of the receiver's link goes to the message that began first, whatever its length: none where it is zero.
    pub oldest: Ratio,
    /// Priorities in use, 1 to 8, the highest among them 7.
    pub priorities: u8,
    /// The longest messages of the first, second and third unscheduled level; what is longer takes the last level.
    pub cutoffs: [u32; 3],
    /// How long a receiver that hears nothing waits for octets that it has granted before it asks for them again (§3.7).
    pub resend: Span,
    /// How often it asks without an answer.
    pub resends: u8,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            unscheduled: 40_000,
            ahead: None,
            overcommit: 4,
            oldest: Ratio::new(1, 20),
            priorities: 8,
            cutoffs: [200, 2_800, 15_000],
            resend: Span::from_millis(1),
            resends: 5,
        }
    }
}

impl Params {
    /// How many priorities unscheduled octets use.
    const fn unscheduled_levels(&self) -> u8 {
        match self.priorities / 2 {
            0 => 1,
            half if half > 4 => 4,
            half => half,
        }
    }

    /// The first cutoff, counted from zero, that is above the next one, of those that the levels in use have: a message between
    /// the two would belong to both levels.
    #[must_use]
    pub fn first_descent(&self) -> Option<usize> {
        let used = usize::from(self.unscheduled_levels()) - 1;
        self.cutoffs[..used].windows(2).position(|pair| pair[0] > pair[1])
    }

    /// The priority of the unscheduled octets of a message of `length`.
    #[must_use]
    pub fn unscheduled_priority(&self, length: u32) -> u8 {
        let levels = self.unscheduled_levels();
        let level =
            self.cutoffs.iter().take(usize::from(levels) - 1).filter(|&&cutoff| length > cutoff).count();
        7 - u8::try_from(level).unwrap_or(0)
    }

    /// The priority of the message which is `rank`th in order, from 0, among `active` that are granted at once.
    ///
    /// The lowest levels are used first (§3.4), so that a shorter message finds one above.
    #[must_use]
    pub fn scheduled_priority(&self, rank: usize, active: usize) -> u8 {
        let levels = (self.priorities - self.unscheduled_levels()).max(1);
        let level = active.saturating_sub(rank + 1).min(usize::from(levels) - 1);
        8 - self.priorities + u8::try_from(level).unwrap_or(0)
    }

    /// The priority of READ data of `length` octets that were asked for at once: what is shorter than grants run ahead goes as a
    /// message's unscheduled octets do; all else, which is asked for in pieces of that length, below them.
    #[must_use]
    pub fn read_priority(&self, length: u32) -> u8 {
        let short = length < self.ahead.unwrap_or(self.unscheduled);
        if short { self.unscheduled_priority(length) } else { self.scheduled_priority(0, 1) }
    }

    /// How far a message of `length` is granted of which `received` octets have come.
    #[must_use]
    pub fn grant(&self, received: u32, length: u32) -> u32 {
        received.saturating_add(self.ahead.unwrap_or(self.unscheduled)).min(length)
    }

    /// How long a sender waits for a grant before it sends a packet without one.
    ///
    /// Longer than the receiver goes on asking, unless it has learned to wait for what is late: by then one of the two has forgotten the
    /// message as a rule.
    fn patience(&self) -> Span {
        self.resend * (u64::from(self.resends) + 2)
    }
}

/// The law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Homa {
    params: Params,
}

/// What it remembers of a queue pair: the message that is being sent. Of those on their way in it remembers nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    message: u32,
    length: u32,
    /// Octets from its start that may be sent.
    granted: u32,
}

/// The most octets of a packet's payload.
const PACKET_MAX: u32 = 4_096;

impl Homa {
    /// The classes of events that it wants to hear.
    pub const TRACES: Class =
        Class::MESSAGE.with(Class::GRANT).with(Class::RESEND).with(Class::TIMER).with(Class::TURN);

    /// A law with `params`.
    #[must_use]
    pub const fn new(params: Params) -> Self {
        Self { params }
    }

    /// Its parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The credit of a new queue pair: nothing, until its first message begins.
    pub(crate) const CREDIT: Credit = Credit { tokens: 0, ..Credit::FREE };

    /// Reacts to `event`.
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let part = &event.part;
        match event.class {
            Class::MESSAGE => {
                let length = part.message_length;
                let granted = length.min(self.params.unscheduled);
                *state = State { message: part.message, length, granted };
                outcome.credit.tokens = granted;
                outcome.priority = Some(self.params.unscheduled_priority(length));
            }
            // A RESEND for octets that were never granted stands for the grant that was lost (§3.7).
            Class::GRANT | Class::RESEND if part.message == state.message => {
                let more = part.end > state.granted;
                if more {
                    state.grant(part.end, outcome);
                    outcome.priority = Some(part.priority.min(7));
                }
                // What may go and has not waits for shorter messages: it is not lost.
                if event.class == Class::RESEND && outcome.credit.tokens > 0 {
                    let part = Part { priority: part.priority.min(7), ..*part };
                    outcome.emit = Some(Emit { part, ..Emit::plain(Class::BUSY) });
                }
                // A grant tells, though it be for nothing new, that the receiver knows of the message.
                if !more && event.class == Class::RESEND {
                    return;
                }
            }
            // The receiver does not know of the message any more, or is out of reach: the packet finds out.
            Class::TIMER => state.grant(state.granted.saturating_add(PACKET_MAX), outcome),
            Class::TURN => {
                outcome.emit = Some(self.turn(event));
                return;
            }
            _ => return,
        }
        let waits = state.granted < state.length;
        outcome.wake = if waits { event.now + self.params.patience() } else { Instant::NEVER };
    }

    /// What the sender is told whose message has its turn.
    fn turn(&self, event: &Event<'_>) -> Emit {
        let mut part = event.part;
        let class = if event.timeout {
            part.priority = part.priority.min(self.params.unscheduled_priority(part.message_length));
            Class::RESEND
        } else {
            part.end = self.params.grant(part.offset, part.message_length);
            Class::GRANT
        };
        Emit { part, ..Emit::plain(class) }
    }

    /// Its register `name`.
    pub(crate) fn get(&self, state: &State, name: &str) -> Option<Value> {
        keys::parameter(&self.params, name).or_else(|| keys::of_state(state, name))
    }

    /// The parameter `name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<Value> {
        keys::parameter(&self.params, name)
    }

    /// Writes the parameter `name`; `None` where there is none.
    pub(crate) fn set(&mut self, name: &str, text: &str, running: bool) -> Option<Result<(), SettingError>> {
        let register = REGISTERS.iter().find(|register| register.name == name)?;
        if register.place == Place::Context || running && !register.writable {
            return running.then_some(Err(SettingError::ReadOnly { name: register.name }));
        }
        Some(keys::set(&mut self.params, register, text))
    }

    /// Its registers.
    pub(crate) const fn registers() -> &'static [Register] {
        &REGISTERS
    }
}

impl State {
    /// Its words, as a program in C keeps them.
    #[cfg(test)]
    pub(crate) const fn words(&self) -> [u32; 3] {
        [self.message, self.length, self.granted]
    }

    /// Octets before `end` may be sent.
    fn grant(&mut self, end: u32, outcome: &mut Outcome) {
        let end = end.min(self.length);
        let more = end.saturating_sub(self.granted);
        self.granted += more;
        // All octets of one message, at most 2³¹, are fewer than "unlimited".
        outcome.credit.tokens = outcome.credit.tokens.saturating_add(more).min(Credit::UNLIMITED - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sender {
        law: Homa,
        state: State,
        outcome: Outcome,
    }

    fn sender() -> Sender {
        let outcome = Outcome::unchanged(Homa::CREDIT, Instant::NEVER);
        Sender { law: Homa::default(), state: State::default(), outcome }
    }

    impl Sender {
        fn hear(
            &mut self,
            class: Class,
            message: u32,
            length: u32,
            end: u32,
            priority: u8,
        ) -> (u32, Option<u8>) {
            let part = Part { message, message_length: length, offset: 0, end, priority };
            (self.outcome.priority, self.outcome.emit) = (None, None);
            self.law.on_event(&mut self.state, &Event { class, part, ..Event::default() }, &mut self.outcome);
            (self.outcome.credit.tokens, self.outcome.priority)
        }
    }

    #[test]
    fn only_cutoffs_of_levels_in_use_must_ascend() {
        let descent =
            |priorities, cutoffs| Params { priorities, cutoffs, ..Params::default() }.first_descent();
        assert_eq!(descent(8, [5, 5, 6]), None);
        assert_eq!([descent(8, [5, 4, 6]), descent(8, [4, 6, 5])], [Some(0), Some(1)]);
        // With five there are two levels, and one cutoff between them; with six, two.
        assert_eq!(
            [descent(5, [9, 5, 4]), descent(6, [9, 5, 4]), descent(6, [4, 5, 0])],
            [None, Some(0), None]
        );
    }

    #[test]
    fn a_short_message_goes_at_once_and_waits_for_nothing() {
        let mut sender = sender();
        assert_eq!(sender.hear(Class::MESSAGE, 0, 150, 150, 0), (150, Some(7)));
        assert_eq!(sender.outcome.wake, Instant::NEVER);
    }

    #[test]
    fn a_long_message_goes_as_far_as_it_is_granted_and_no_grant_counts_twice() {
        let mut sender = sender();
        assert_eq!(sender.hear(Class::MESSAGE, 7, 100_000, 100_000, 0), (40_000, Some(4)));
        assert_eq!(sender.hear(Class::GRANT, 7, 0, 50_000, 2), (50_000, Some(2)));
        assert_eq!(sender.hear(Class::GRANT, 7, 0, 50_000, 3), (50_000, None));
        assert_eq!(sender.hear(Class::GRANT, 6, 0, 90_000, 3), (50_000, None), "another message");
        assert_eq!(sender.hear(Class::GRANT, 7, 0, u32::MAX, 1), (100_000, Some(1)), "never beyond its end");
        assert_eq!(sender.outcome.wake, Instant::NEVER);
    }

    #[test]
    fn a_request_to_send_again_grants_what_it_names() {
        let mut sender = sender();
        sender.hear(Class::MESSAGE, 0, 100_000, 100_000, 0);
        assert_eq!(sender.hear(Class::RESEND, 0, 0, 60_000, 3), (60_000, Some(3)));
    }

    #[test]
    fn who_is_asked_again_is_busy_while_octets_that_may_go_wait() {
        let mut sender = sender();
        let busy = |sender: &Sender| sender.outcome.emit.map(|emit| (emit.class, emit.part.message));
        sender.hear(Class::MESSAGE, 3, 100_000, 100_000, 0);
        sender.hear(Class::RESEND, 3, 0, 1_000, 2);
        assert_eq!(busy(&sender), Some((Class::BUSY, 3)), "none of it has been sent");
        sender.hear(Class::RESEND, 2, 0, 1_000, 2);
        assert_eq!(busy(&sender), None, "that one has been sent to its end");
        sender.outcome.credit.tokens = 0;
        sender.hear(Class::RESEND, 3, 0, 1_000, 2);
        assert_eq!(busy(&sender), None, "what is asked for has been lost");
        sender.hear(Class::RESEND, 3, 0, 50_000, 2);
        assert_eq!(busy(&sender), Some((Class::BUSY, 3)), "of what it grants nothing has been sent");
        sender.hear(Class::GRANT, 3, 0, 60_000, 2);
        assert_eq!(busy(&sender), None, "a grant asks for nothing");
    }

    /// What is said in a turn of a message of 100,000 octets at the receiver.
    fn turn(settings: &[(&str, &str)], (received, priority): (u32, u8), timeout: bool) -> (Class, Part) {
        let link = roci_units::BitsPerSec::from_gbps(10);
        let law = crate::Law::from_settings("homa", settings, link);
        let Ok(crate::Law::Homa(law)) = law else { panic!("{law:?}") };
        let proposed = Part { message: 5, message_length: 100_000, offset: received, end: 99_000, priority };
        let event = Event { class: Class::TURN, part: proposed, timeout, ..Event::default() };
        let mut outcome = Outcome::unchanged(Homa::CREDIT, Instant::NEVER);
        let mut state = State::default();
        law.on_event(&mut state, &event, &mut outcome);
        assert_eq!(state, State::default(), "what comes in is no affair of what goes out");
        assert_eq!((outcome.credit, outcome.wake), (Homa::CREDIT, Instant::NEVER));
        let emit = outcome.emit.expect("an answer");
        assert_eq!((emit.part.message, emit.part.offset), (5, received));
        (emit.class, emit.part)
    }

    #[test]
    fn a_message_is_granted_as_far_ahead_as_the_law_says_by_the_priority_of_its_turn() {
        let granted = |settings, received| {
            let (class, part) = turn(settings, (received, 1), false);
            (class, part.end, part.priority)
        };
        assert_eq!(granted(&[], 3_000), (Class::GRANT, 43_000, 1));
        assert_eq!(granted(&[("unscheduled", "10KB")], 3_000), (Class::GRANT, 13_000, 1));
        assert_eq!(granted(&[("unscheduled", "10KB"), ("ahead", "5KB")], 3_000), (Class::GRANT, 8_000, 1));
        assert_eq!(granted(&[("ahead", "2GB")], 99_999), (Class::GRANT, 100_000, 1), "to its end");
    }

    #[test]
    fn what_is_missing_is_asked_for_by_the_priority_of_its_grant_or_that_of_a_messages_length() {
        let (class, part) = turn(&[], (3_000, 7), true);
        assert_eq!((class, part.end, part.priority), (Class::RESEND, 99_000, 4));
        let (_, part) = turn(&[("cutoff_3", "200KB")], (3_000, 7), true);
        assert_eq!(part.priority, 5);
        let (_, part) = turn(&[], (3_000, 1), true);
        assert_eq!(part.priority, 1, "octets that were granted have the lower one");
    }

    #[test]
    fn who_waits_too_long_sends_a_packet_unasked() {
        let mut sender = sender();
        sender.hear(Class::MESSAGE, 0, 42_000, 42_000, 0);
        assert!(sender.outcome.wake > Instant::ZERO + Span::from_millis(5));
        assert_eq!(sender.hear(Class::TIMER, 0, 0, 0, 0), (42_000, None), "no more than there is");
        assert_eq!(sender.outcome.wake, Instant::NEVER);
    }

    #[test]
    fn who_is_told_once_more_of_a_grant_waits_on() {
        let mut sender = sender();
        sender.hear(Class::MESSAGE, 0, 90_000, 90_000, 0);
        for (class, end, waits_on) in
            [(Class::GRANT, 60_000, true), (Class::GRANT, 60_000, true), (Class::RESEND, 50_000, false)]
        {
            sender.outcome.wake = Instant::NEVER;
            sender.hear(class, 0, 0, end, 2);
            assert_eq!(sender.outcome.wake != Instant::NEVER, waits_on, "{class:?}");
        }
        assert_eq!(sender.state.granted, 60_000);
    }

    #[test]
    fn priorities_fall_with_length_and_scheduled_ones_lie_below() {
        let params = Params::default();
        let of = |length| params.unscheduled_priority(length);
        assert_eq!([of(200), of(201), of(2_800), of(15_000), of(15_001), of(u32::MAX)], [7, 6, 6, 5, 4, 4]);
        let rank = |rank, active| params.scheduled_priority(rank, active);
        assert_eq!(
            [rank(0, 1), rank(0, 2), rank(1, 2), rank(0, 4), rank(3, 4), rank(0, 9)],
            [0, 1, 0, 3, 0, 3]
        );
    }

    #[test]
    fn any_number_of_priorities_keeps_within_them() {
        for priorities in 1..=8 {
            let params = Params { priorities, ..Params::default() };
            for length in [0, 1_000, 10_000, u32::MAX] {
                assert!(params.unscheduled_priority(length) >= 8 - priorities);
            }
            for rank in 0..9 {
                let level = params.scheduled_priority(rank, 9);
                assert!((8 - priorities..=7).contains(&level), "{priorities}: {level}");
                assert!(priorities == 1 || level < params.unscheduled_priority(u32::MAX));
            }
        }
    }
}
