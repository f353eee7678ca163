//! Which parts of a region are lent, and which are being copied at the moment.

use super::region::LentError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is lent of one region, and who copies.
///
/// A part that is lent is refused to all others, for it may be away for long. A copy by the region itself is short, and is waited
/// for: each has its turn in the order of arrival, after those before it that it cannot go beside, so that neither readers nor
/// writers are put off for ever.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    state: Mutex<State>,
    turned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Parts that are lent, by their first octet.
    lent: BTreeMap<usize, usize>,
    /// Copies, and who waits for one to end, in the order of arrival.
    turns: Vec<Turn>,
    /// The number of the last turn.
    last: u64,
    /// Threads that wait for others' turns to end.
    waiting: usize,
}

#[derive(Debug)]
struct Turn {
    number: u64,
    range: Range<usize>,
    /// Whether it goes beside others that share.
    shares: bool,
}

impl State {
    fn is_lent(&self, range: &Range<usize>) -> bool {
        self.lent.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start)
    }

    /// Whether this turn has to wait for an earlier one.
    fn has_to_wait(&self, number: u64, range: &Range<usize>, shares: bool) -> bool {
        self.turns.iter().any(|other| {
            let overlaps = other.range.start < range.end && range.start < other.range.end;
            other.number < number && overlaps && !(shares && other.shares)
        })
    }
}

impl Lending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends a part, which has an octet at least, to nobody but the caller, until it is [given back](Self::give_back).
    pub(crate) fn lend(&self, range: &Range<usize>) -> Result<(), LentError> {
        let (mut state, number) = self.turn(range, false)?;
        state.lent.insert(range.start, range.end);
        self.end(state, number);
        Ok(())
    }

    /// Never waits for a copy: a shard calls it.
    pub(crate) fn give_back(&self, start: usize) {
        self.state().lent.remove(&start);
    }

    /// Waits for the turn to copy a part; until the value is dropped it is not lent, and is copied by others only if all `share`.
    pub(crate) fn copy(&self, range: &Range<usize>, shares: bool) -> Result<Copying<'_>, LentError> {
        let (state, number) = self.turn(range, shares)?;
        drop(state);
        Ok(Copying { lending: self, number })
    }

    fn turn(&self, range: &Range<usize>, shares: bool) -> Result<(MutexGuard<'_, State>, u64), LentError> {
        let refused = LentError::Lent(range.start, range.end);
        let mut state = self.state();
        if state.is_lent(range) {
            return Err(refused);
        }
        state.last += 1;
        let number = state.last;
        state.turns.push(Turn { number, range: range.clone(), shares });
        if state.has_to_wait(number, range, shares) {
            state.waiting += 1;
            while state.has_to_wait(number, range, shares) {
                state = self.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.waiting -= 1;
            // Who was before us may have been one who lends it.
            if state.is_lent(range) {
                self.end(state, number);
                return Err(refused);
            }
        }
        Ok((state, number))
    }

    fn end(&self, mut state: MutexGuard<'_, State>, number: u64) {
        state.turns.retain(|turn| turn.number != number);
        let is_waited_for = state.waiting > 0;
        drop(state);
        if is_waited_for {
            self.turned.notify_all();
        }
    }
}

/// The turn of one who copies a part.
#[derive(Debug)]
pub(crate) struct Copying<'a> {
    lending: &'a Lending,
    number: u64,
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.lending.end(self.lending.state(), self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Waits until so many threads wait for their turn.
    fn until_waiting(lending: &Lending, threads: usize) {
        while lending.state().waiting < threads {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_lent_is_refused_and_what_is_copied_is_waited_for() {
        let lending = Lending::default();
        lending.lend(&(10..20)).unwrap();
        assert_eq!(lending.copy(&(19..21), true).unwrap_err(), LentError::Lent(19, 21));
        assert_eq!(lending.lend(&(0..11)).unwrap_err(), LentError::Lent(0, 11));
        lending.lend(&(0..10)).unwrap();
        lending.give_back(10);
        let (one, two) = (lending.copy(&(10..20), true).unwrap(), lending.copy(&(15..30), true).unwrap());
        // Neither readers nor who copies elsewhere is in their way.
        drop(lending.copy(&(30..40), false).unwrap());
        let has_written = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let written = lending.copy(&(12..18), false).unwrap();
                has_written.store(true, Ordering::SeqCst);
                drop(written);
            });
            until_waiting(&lending, 1);
            // A reader that comes after a writer does not overtake it.
            let reads = scope.spawn(|| {
                let read = lending.copy(&(12..13), true).unwrap();
                assert!(has_written.load(Ordering::SeqCst));
                drop(read);
            });
            until_waiting(&lending, 2);
            drop(one);
            assert!(!has_written.load(Ordering::SeqCst), "both are read still");
            drop(two);
            reads.join().unwrap();
        });
        assert!(lending.state().turns.is_empty());
    }

    #[test]
    fn who_waits_behind_one_who_lends_is_refused_and_a_part_is_given_back_during_a_copy() {
        let lending = Lending::default();
        lending.lend(&(50..60)).unwrap();
        let read = lending.copy(&(0..10), true).unwrap();
        std::thread::scope(|scope| {
            let lends = scope.spawn(|| lending.lend(&(5..6)));
            until_waiting(&lending, 1);
            let others = [
                scope.spawn(|| lending.copy(&(0..10), true).map(drop)),
                scope.spawn(|| lending.lend(&(5..9))),
            ];
            until_waiting(&lending, 3);
            lending.give_back(50);
            drop(lending.copy(&(50..60), false).unwrap());
            drop(read);
            assert_eq!(lends.join().unwrap(), Ok(()));
            for other in others {
                assert!(matches!(other.join().unwrap(), Err(LentError::Lent(..))));
            }
        });
        let state = lending.state();
        assert_eq!((state.turns.len(), state.lent.len()), (0, 1));
    }
}
