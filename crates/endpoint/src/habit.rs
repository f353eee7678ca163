//! Whether an application that drives a shard is about to leave it alone.

use crate::shard::REPLY_WAIT;
use roci_units::Instant;

/// What an application does while an acknowledgement waits, learned from what it did before.
///
/// One that answers each message at once is back before the acknowledgement is missed, and what it answers is on its way sooner
/// if nothing is sent before it. One that takes a message and computes leaves its peer without the acknowledgement until it polls
/// again, or until the thread notices, in a millisecond. The two look alike when the message is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habit {
    /// An acknowledgement of a message that the application took waited, or would have, when it drove the shard last.
    owed: bool,
    /// How often in a row it has been back in time since.
    returns: u8,
}

/// So often in a row, and it will be the next time. Where some messages are taken one after the other before it computes, most
/// often all of them are acknowledged at once; where it was held up by chance, few are that need not have been.
const TRUSTED: u8 = 16;

impl Habit {
    /// That of an application that is always back in time.
    #[cfg(test)]
    pub(crate) fn returns() -> Self {
        Self { owed: false, returns: TRUSTED }
    }

    /// It drives the shard at `now`, after it did at `before`; zero where it had left the shard to the thread.
    #[inline]
    pub(crate) fn comes(&mut self, before: Instant, now: Instant) {
        if !std::mem::take(&mut self.owed) || before == Instant::ZERO {
            return;
        }
        let is_in_time = now.since(before) < REPLY_WAIT;
        self.returns = if is_in_time { self.returns.saturating_add(1).min(TRUSTED) } else { 0 };
    }

    /// It goes while acknowledgements wait, with the completion of a receive if it `took` one; whether they are to be sent before.
    ///
    /// Where it has taken nothing, it comes again for the rest of a message, whatever it does with the whole.
    #[inline]
    pub(crate) fn goes(&mut self, took: bool) -> bool {
        self.owed = took;
        self.returns < TRUSTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Span;

    /// An application's goings while something waits, and whether it was sent before; it is away for so many µs after each.
    fn sent(habit: &mut Habit, away_us: &[u64]) -> Vec<bool> {
        let mut before = Instant::from_ps(1);
        let turn = |away_us: &u64| {
            let sent = habit.goes(true);
            let now = before + Span::from_micros(*away_us);
            habit.comes(before, now);
            before = now;
            sent
        };
        away_us.iter().map(turn).collect()
    }

    #[test]
    fn nothing_is_sent_before_the_answer_of_one_that_answers_at_once() {
        let sent = sent(&mut Habit::default(), &[2; 100]);
        assert_eq!(sent.iter().filter(|sent| **sent).count(), usize::from(TRUSTED), "until it is known");
        assert!(sent.is_sorted_by(|before, after| before >= after));
    }

    #[test]
    fn all_is_sent_at_once_where_it_computes_after_every_few_messages() {
        let habit = &mut Habit::returns();
        assert_eq!(sent(habit, &[2, 2, 5000]), [false; 3], "nobody knows");
        assert_eq!(sent(habit, &[2, 2, 2, 2, 5000].repeat(10)), [true; 50]);
    }

    #[test]
    fn coming_for_the_parts_of_a_message_is_no_answer() {
        let habit = &mut Habit::returns();
        let mut before = Instant::from_ps(1);
        for message in 0..3 {
            for part in 0..20 {
                let is_last = part == 19;
                assert_eq!(habit.goes(is_last), message > 0, "message {message}, part {part}");
                let now = before + Span::from_micros(if is_last { 5_000 } else { 2 });
                habit.comes(before, now);
                before = now;
            }
        }
    }

    #[test]
    fn one_that_was_held_up_by_chance_is_soon_trusted_again() {
        let habit = &mut Habit::returns();
        sent(habit, &[3000]);
        assert_eq!(sent(habit, &[2; 20]).iter().filter(|sent| **sent).count(), usize::from(TRUSTED));
    }

    #[test]
    fn one_that_left_the_shard_to_the_thread_or_owed_nothing_may_stay_away() {
        let mut habit = Habit::returns();
        assert!(!habit.goes(true));
        habit.comes(Instant::ZERO, Instant::from_ps(u64::MAX));
        habit.comes(Instant::from_ps(1), Instant::from_ps(u64::MAX));
        assert!(!habit.goes(true));
    }
}
