//! Whether an application that drove a shard comes back for what arrives.

use std::sync::atomic::{AtomicU32, Ordering};

/// What the thread has found whenever it took the shard over from the application, which is left alone for a while after it looked.
///
/// One that waits by looking for completions finds most of what arrives itself, and is away only where it computes or its core is
/// taken. One that waits for what its peer writes into its memory (`ib_write_lat`) looks for the ends of its own requests alone: whatever it
/// waits for is found by the thread, each time, after all of the while.
#[derive(Debug, Default)]
pub(crate) struct Absence {
    /// How often in a row the thread has found something, and the application little before.
    times: AtomicU32,
    /// How often the application has since.
    attended: AtomicU32,
}

/// So often in a row, and the thread waits beside the application.
const ABSENT: u32 = 4;
/// An application that has found something so often since the thread did waits by looking.
const ATTENDED: u32 = 16;

impl Absence {
    /// The application has found something.
    #[inline]
    pub(crate) fn attended(&self) {
        let attended = self.attended.load(Ordering::Relaxed);
        if attended < ATTENDED {
            self.attended.store(attended + 1, Ordering::Relaxed);
        }
    }

    /// The thread has taken over, and found something.
    pub(crate) fn missed(&self) {
        let times = if self.has_attended() { 0 } else { self.times.load(Ordering::Relaxed) };
        self.times.store((times + 1).min(ABSENT), Ordering::Relaxed);
        self.attended.store(0, Ordering::Relaxed);
    }

    fn has_attended(&self) -> bool {
        self.attended.load(Ordering::Relaxed) >= ATTENDED
    }

    /// Whether it will most likely not come for what arrives next.
    #[inline]
    pub(crate) fn is_likely(&self) -> bool {
        self.times.load(Ordering::Relaxed) >= ABSENT && !self.has_attended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on(absence: &Absence, attended: u32) {
        (0..attended).for_each(|_| absence.attended());
        absence.missed();
    }

    #[test]
    fn one_that_finds_its_own_ends_alone_is_soon_waited_beside() {
        let absence = Absence::default();
        for _ in 0..ABSENT {
            assert!(!absence.is_likely());
            goes_on(&absence, 2);
        }
        assert!(absence.is_likely());
        goes_on(&absence, 2);
        assert!(absence.is_likely());
    }

    #[test]
    fn one_whose_core_is_taken_now_and_then_is_not() {
        let absence = Absence::default();
        for _ in 0..10 * ABSENT {
            goes_on(&absence, ATTENDED);
            assert!(!absence.is_likely());
        }
    }

    #[test]
    fn one_that_begins_to_look_is_left_alone_again() {
        let absence = Absence::default();
        (0..ABSENT).for_each(|_| goes_on(&absence, 0));
        (0..ATTENDED).for_each(|_| absence.attended());
        assert!(!absence.is_likely());
    }
}
