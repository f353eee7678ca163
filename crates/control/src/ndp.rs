//! NDP's sender (Handley et al., SIGCOMM 2017, §3.2): a first window at full rate, then a packet for each pull.
//!
//! Tokens count packets. The first window pushes new packets alone; from then on each packet, new or sent again, goes for a
//! pull, and what was trimmed goes first. So what a sender has left of its first window (its message was shorter, or is
//! still being sent) never sends again what was trimmed: that waits for its pull. The receiver's agent spaces the pulls of
//! all its senders so that what they draw just fills its link.
//!
//! A pull that overtakes the answer to its packet, or finds nothing to send, stays until something is; new packets spend
//! such ones before they spend the first window.
//! Departs from §3.2 in that: there a pull that finds nothing comes to nothing, and a packet whose answer comes later than
//! its pull would wait for the timeout.
//!
//! Each packet that is under way, or was answered and not pulled for, draws a pull: together they are the window. Headers
//! that come back and silence make it smaller. While the receiver pulls as soon as a packet arrives, it would pull for
//! more, so that the window grows again by a packet for each such pull, up to the first one's size; while pulls of ours
//! wait at the receiver, more would only be trimmed.
//! Departs from §3.2 in that: there a sender whose headers all came back has one packet under way from then on.
//!
//! A queue pair outlives its messages. Once the receiver knows that nothing more comes (the last packet said so) it
//! stops pulling; when that packet and all before it are acknowledged, the next message begins with a first window, as a
//! new connection would. A message that comes before takes what the receiver will not pull for, which the answer to that
//! packet tells; new packets alone take it, like a first window.

use crate::event::{Class, Event};
use crate::outcome::{Credit, Outcome};
use crate::register::{Place, Register, SettingError, Value, count, period};
use roci_units::{Instant, Span};

/// The law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ndp {
    /// Packets of the first window, at least 1. Default 15.
    initial_window: u16,
    /// How long a queue pair with nothing in flight waits for a pull before it sends a packet without one. Default
    /// 10 ms.
    patience: Span,
}

impl Default for Ndp {
    fn default() -> Self {
        Self { initial_window: 15, patience: Span::from_millis(10) }
    }
}

/// What it remembers of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Packets let go, spent or not, that nobody has answered.
    unanswered: u32,
    /// Packets that the receiver answered and has not pulled for; below zero, pulls whose answers they have overtaken.
    owed: i32,
    /// Of the tokens, those that are pushed, as of the last event: since they go last, there are as many as there are tokens if
    /// those are fewer by now.
    pushed: u32,
    /// Headers that came back to the sender.
    returned: u32,
}

impl State {
    /// That many packets may go, and none is under way.
    const fn fresh(self, tokens: u32) -> Self {
        Self { unanswered: tokens, owed: 0, ..self }
    }

    /// Packets that may go, are under way or wait to be pulled for. An answer that was lost counts in neither of the two.
    fn window(&self) -> u32 {
        self.unanswered.saturating_add_signed(self.owed)
    }

    /// The receiver answered so many packets, and pulls for so many.
    fn note(&mut self, answered: u32, pulled: u32) {
        self.owed = self.owed.saturating_add_unsigned(answered).saturating_sub_unsigned(pulled);
        self.unanswered = self.unanswered.saturating_add(pulled).saturating_sub(answered);
    }
}

/// All registers.
pub static REGISTERS: [Register; 3] = [
    Register {
        name: "initial_window",
        place: Place::Law,
        unit: "count",
        range: "1 to 65535",
        writable: true,
        doc: "Packets that are sent before the first pull, each for the first time: what a link carries in a round trip.",
    },
    Register {
        name: "patience",
        place: Place::Law,
        unit: "time",
        range: "above 0s",
        writable: true,
        doc: "How long a queue pair with nothing in flight waits for a pull, which may be lost, before it sends a \
              packet without one.",
    },
    Register {
        name: "returned",
        place: Place::Context,
        unit: "count",
        range: "0 to 4294967295",
        writable: false,
        doc: "Headers that switches sent back.",
    },
];

impl Ndp {
    /// The classes of events that it wants to hear.
    pub const TRACES: Class = Class::ACK
        .with(Class::NACK)
        .with(Class::PULL)
        .with(Class::TRIMMED)
        .with(Class::LOSS)
        .with(Class::TIMER);

    /// The credit of a new queue pair: the first window.
    pub(crate) fn credit(&self) -> Credit {
        Credit { tokens: self.initial_window.into(), ..Credit::FREE }
    }

    /// What it remembers of a new queue pair.
    pub(crate) fn state(&self) -> State {
        let window = self.initial_window.into();
        State { pushed: window, ..State::default() }.fresh(window)
    }

    /// Reacts to `event`.
    pub fn on_event(&self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        let tokens = &mut outcome.credit.tokens;
        let mut pushed = state.pushed.min(*tokens);
        let nothing_in_flight = event.acked_sequence == event.next_sequence;
        match event.class {
            Class::ACK | Class::NACK | Class::PULL => {
                state.note(u32::from(event.class != Class::PULL), event.pulled);
                let mut more = event.pulled;
                if event.lapsed {
                    // What it had earned by then comes to nothing, yet more may have been sent since, or waits to be.
                    let lapsed = state.owed.saturating_sub_unsigned(event.missing).max(0).cast_unsigned();
                    state.note(0, lapsed);
                    more = more.saturating_add(lapsed);
                    pushed = pushed.saturating_add(lapsed);
                }
                if event.pulled > 0 && state.owed <= 0 && state.window() < self.initial_window.into() {
                    state.unanswered += 1;
                    more = more.saturating_add(1);
                }
                *tokens = tokens.saturating_add(more).min(Credit::UNLIMITED - 1);
                pushed = pushed.min(*tokens);
                if event.drained && nothing_in_flight {
                    *tokens = self.initial_window.into();
                    pushed = *tokens;
                    *state = state.fresh(*tokens);
                }
                outcome.wake = if *tokens == 0 { event.now + self.patience } else { Instant::NEVER };
            }
            // What is in flight has a timeout of its own.
            Class::TIMER if nothing_in_flight => {
                *tokens = (*tokens).max(1);
                *state = state.fresh(*tokens);
            }
            // A header came back because not even headers had room. What it stood for waits for the pulls that others
            // of ours earn, lest the burst repeat itself, and what is left of the first window would add to it. Only the
            // last one to come back goes at once, for its receiver may not know of us (§3.2.4).
            Class::TRIMMED => {
                state.returned = state.returned.saturating_add(1);
                state.unanswered = state.unanswered.saturating_sub(pushed.saturating_add(1));
                *tokens = tokens.saturating_sub(pushed);
                pushed = 0;
                if state.window() == 0 {
                    *tokens = 1;
                    *state = state.fresh(1);
                }
            }
            // Neither header nor pull arrived, so none will: one packet asks, and its pulls let the others go.
            Class::LOSS if event.timeout => {
                if *tokens == pushed {
                    *tokens = tokens.saturating_add(1).min(Credit::UNLIMITED - 1);
                }
                *state = state.fresh(*tokens);
            }
            _ => {}
        }
        state.pushed = pushed;
        outcome.pushed = Some(pushed);
    }

    /// Its register `name`.
    pub(crate) fn get(&self, state: &State, name: &str) -> Option<Value> {
        if name == "returned" { Some(Value::Count(state.returned)) } else { self.parameter(name) }
    }

    /// The parameter `name`.
    pub(crate) fn parameter(&self, name: &str) -> Option<Value> {
        match name {
            "initial_window" => Some(Value::Count(self.initial_window.into())),
            "patience" => Some(Value::Time(self.patience)),
            _ => None,
        }
    }

    /// Writes the parameter `name`; `None` where there is none.
    pub(crate) fn set(&mut self, name: &str, text: &str, running: bool) -> Option<Result<(), SettingError>> {
        let register = REGISTERS.iter().find(|register| register.name == name)?;
        if register.place == Place::Context {
            return running.then_some(Err(SettingError::ReadOnly { name: register.name }));
        }
        let done = if name == "patience" {
            period(text).map(|span| self.patience = span)
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            count(text, 1, 65_535).map(|window| self.initial_window = window as u16)
        };
        Some(done.map_err(|why| register.refuse(text, why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn hear(state: &mut State, tokens: u32, event: Event<'_>) -> u32 {
        hear_with(state, tokens, 0, event).0
    }

    /// The same where `pushed` of the tokens let nothing go again; how many there are then, and how many of those.
    fn hear_with(state: &mut State, tokens: u32, pushed: u32, event: Event<'_>) -> (u32, u32) {
        state.pushed = pushed;
        let credit = Credit { tokens, ..Credit::FREE };
        let mut outcome = Outcome::unchanged(credit, Instant::NEVER);
        Ndp::default().on_event(state, &event, &mut outcome);
        (outcome.credit.tokens, outcome.pushed.unwrap_or(u32::MAX))
    }

    #[test]
    fn each_pull_lets_one_packet_go() {
        let event = Event { class: Class::PULL, pulled: 3, next_sequence: 15, ..Event::default() };
        let mut state = Ndp::default().state();
        assert_eq!(hear(&mut state, 1, event), 4);
        assert_eq!(hear(&mut state, 4, Event { class: Class::ACK, pulled: 0, ..event }), 4);
    }

    #[test]
    fn a_message_after_the_last_one_arrived_begins_with_a_window() {
        let event = Event {
            class: Class::ACK,
            acked_sequence: 9,
            next_sequence: 9,
            drained: true,
            ..Event::default()
        };
        assert_eq!(hear_with(&mut State::default(), 2, 0, event), (15, 15));
        let more = Event { drained: false, ..event };
        assert_eq!(hear(&mut State::default(), 0, more), 0, "pulls are on their way");
        let missing = Event { acked_sequence: 8, ..event };
        assert_eq!(hear(&mut State::default(), 0, missing), 0, "what is missing is pulled");
    }

    #[test]
    fn what_nobody_pulls_for_after_a_packet_said_that_nothing_follows_may_go_with_the_next_message() {
        let mut state = Ndp::default().state();
        let event = Event { class: Class::ACK, acked_sequence: 5, next_sequence: 15, ..Event::default() };
        assert_eq!([0; 3].map(|tokens| hear(&mut state, tokens, event)), [0; 3], "pulls may come");
        assert_eq!(hear(&mut state, 0, Event { class: Class::PULL, pulled: 1, ..event }), 1);
        let said = Event { lapsed: true, missing: 1, ..event };
        assert_eq!(hear_with(&mut state, 0, 0, said), (2, 2), "of three, one is for what is missing");
        assert_eq!(hear(&mut state, 0, event), 0, "what came later is pulled for again");
    }

    #[test]
    fn only_the_last_header_to_come_back_goes_at_once_where_no_pull_is_owed() {
        let law = Ndp { initial_window: 3, ..Ndp::default() };
        let back = Event { class: Class::TRIMMED, next_sequence: 3, ..Event::default() };
        let mut state = law.state();
        assert_eq!([0, 0, 0].map(|tokens| hear(&mut state, tokens, back)), [0, 0, 1], "nobody knows of us");
        assert_eq!(hear(&mut state, 0, back), 1, "nor does anybody now");

        let mut state = law.state();
        let here = Event { class: Class::ACK, acked_sequence: 1, ..back };
        assert_eq!(hear(&mut state, 0, here), 0);
        assert_eq!([0, 0].map(|tokens| hear(&mut state, tokens, back)), [0, 0], "what came is pulled for");
        assert_eq!(hear(&mut state, 0, Event { class: Class::PULL, pulled: 1, ..here }), 2);
        assert_eq!(
            [0, 0].map(|tokens| hear(&mut state, tokens, back)),
            [0, 1],
            "and what was pulled came back"
        );
        assert_eq!(state.returned, 4);
    }

    #[test]
    fn what_is_left_of_the_first_window_does_not_send_again_what_came_back() {
        let law = Ndp { initial_window: 6, ..Ndp::default() };
        let back = Event { class: Class::TRIMMED, next_sequence: 3, ..Event::default() };
        let mut state = law.state();
        let heard = [3, 0, 0].map(|pushed| hear_with(&mut state, pushed, pushed, back));
        assert_eq!(heard, [(0, 0), (0, 0), (1, 0)], "three were sent");
    }

    #[test]
    fn what_is_left_of_the_first_window_sends_nothing_again_that_was_trimmed() {
        let mut state = Ndp::default().state();
        let trimmed = Event { class: Class::NACK, next_sequence: 3, ..Event::default() };
        assert_eq!([12; 3].map(|left| hear_with(&mut state, left, left, trimmed)), [(12, 12); 3]);
        let pull = Event { class: Class::PULL, pulled: 2, ..trimmed };
        assert_eq!(hear_with(&mut state, 12, 12, pull), (14, 12));
        assert_eq!(state.window(), 15);
    }

    #[test]
    fn a_pull_that_overtook_its_answer_still_lets_the_packet_go_again() {
        let mut state = Ndp::default().state();
        let pull = Event { class: Class::PULL, pulled: 1, next_sequence: 3, ..Event::default() };
        assert_eq!(hear_with(&mut state, 12, 12, pull), (13, 12));
        let trimmed = Event { class: Class::NACK, pulled: 0, ..pull };
        assert_eq!(hear_with(&mut state, 13, 12, trimmed), (13, 12));
    }

    /// Packets under way, round after round, where each is answered and pulled for: at once, or all when all were answered.
    fn rounds(state: &mut State, mut under_way: u32, at_once: bool) -> [u32; 7] {
        let answer = Event { class: Class::ACK, acked_sequence: 1, next_sequence: 9, ..Event::default() };
        let pull = Event { class: Class::PULL, pulled: 1, ..answer };
        core::array::from_fn(|_| {
            let packets = core::mem::take(&mut under_way);
            for _ in 0..packets {
                hear(state, 0, answer);
                under_way += if at_once { hear(state, 0, pull) } else { 0 };
            }
            under_way += if at_once { 0 } else { (0..packets).map(|_| hear(state, 0, pull)).sum() };
            under_way
        })
    }

    #[test]
    fn a_window_that_came_back_grows_again_while_pulls_come_at_once() {
        let back = Event { class: Class::TRIMMED, next_sequence: 15, ..Event::default() };
        for at_once in [true, false] {
            let mut state = Ndp::default().state();
            assert_eq!((0..15).map(|_| hear(&mut state, 0, back)).sum::<u32>(), 1);
            let expected = if at_once { [2, 4, 8, 15, 15, 15, 15] } else { [2, 3, 4, 5, 6, 7, 8] };
            assert_eq!(rounds(&mut state, 1, at_once), expected);
        }
    }

    #[test]
    fn a_window_that_is_whole_does_not_grow() {
        for at_once in [true, false] {
            assert_eq!(rounds(&mut Ndp::default().state(), 15, at_once), [15; 7]);
        }
    }

    #[test]
    fn a_pull_that_was_lost_is_not_waited_for_for_ever() {
        let law = Ndp::default();
        let mut outcome = Outcome::unchanged(Credit { tokens: 0, ..Credit::FREE }, Instant::NEVER);
        let event = Event { class: Class::ACK, acked_sequence: 4, next_sequence: 4, ..Event::default() };
        law.on_event(&mut State::default(), &event, &mut outcome);
        assert_eq!(outcome.wake, Instant::ZERO + Span::from_millis(10));
        let timer = Event { class: Class::TIMER, now: outcome.wake, ..event };
        law.on_event(&mut State::default(), &timer, &mut outcome);
        assert_eq!(outcome.credit.tokens, 1);
        law.on_event(&mut State::default(), &Event { class: Class::PULL, pulled: 1, ..event }, &mut outcome);
        assert_eq!(outcome.wake, Instant::NEVER);
    }

    #[test]
    fn silence_is_answered_by_one_packet() {
        let event = Event { class: Class::LOSS, timeout: true, ..Event::default() };
        assert_eq!(hear(&mut State::default(), 0, event), 1);
        assert_eq!(
            hear_with(&mut State::default(), 4, 4, event),
            (5, 4),
            "new packets do not ask for old ones"
        );
        assert_eq!(hear_with(&mut State::default(), 4, 3, event), (4, 3));
        assert_eq!(hear(&mut State::default(), 0, Event { timeout: false, ..event }), 0);
    }

    #[test]
    fn its_parameters_are_read_and_written() {
        let mut law = Ndp::default();
        assert_eq!(law.credit(), Credit { tokens: 15, ..Credit::FREE });
        for (name, text) in [("initial_window", "77"), ("patience", "7us")] {
            assert_eq!(law.set(name, text, true), Some(Ok(())));
            assert_eq!(
                law.get(&State::default(), name).map(|value| value.to_string()),
                Some(text.to_string())
            );
        }
        assert_eq!((law.initial_window, law.patience), (77, Span::from_micros(7)));
        assert!(matches!(law.set("initial_window", "0", false), Some(Err(SettingError::Value { .. }))));
        assert!(matches!(law.set("returned", "1", true), Some(Err(SettingError::ReadOnly { .. }))));
    }
}
