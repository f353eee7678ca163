//! How much has arrived that no core has consumed, against what the cache and the receive queues hold.

use roci_units::{Instant, Span};

/// The states of Li et al. (APNet 2025, Figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Less than the ways for I/O hold: no misses.
    S1,
    /// More than that, and less than the cache holds.
    S2,
    /// More than the cache holds.
    S3,
    /// As much as all receive queues hold.
    S4,
}

/// What is unconsumed, and how long it was how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct States {
    io: u64,
    cache: u64,
    pub(crate) queues: u64,
    pub(crate) unconsumed: u64,
    pub(crate) most: u64,
    since: Instant,
    spent: [Span; 4],
}

impl States {
    pub(crate) const fn new(io: u64, cache: u64) -> Self {
        let spent = [Span::ZERO; 4];
        Self { io, cache, queues: u64::MAX, unconsumed: 0, most: 0, since: Instant::ZERO, spent }
    }

    pub(crate) const fn state(&self) -> State {
        match self.unconsumed {
            so_much if so_much >= self.queues => State::S4,
            so_much if so_much >= self.cache => State::S3,
            so_much if so_much >= self.io => State::S2,
            _ => State::S1,
        }
    }

    /// So much has come, or was consumed.
    pub(crate) fn change(&mut self, now: Instant, come: u64, consumed: u64) {
        self.pass(now);
        self.unconsumed = (self.unconsumed + come).saturating_sub(consumed);
        self.most = self.most.max(self.unconsumed);
    }

    fn pass(&mut self, now: Instant) {
        if now > self.since {
            self.spent[self.state() as usize] += now.since(self.since);
            self.since = now;
        }
    }

    /// How long it was in each state until `now`.
    pub(crate) fn spent(mut self, now: Instant) -> [Span; 4] {
        self.pass(now);
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_for_the_state_that_what_was_unconsumed_made() {
        let mut states = States::new(100, 1000);
        states.queues = 5000;
        let at = |nanos| Instant::ZERO + Span::from_nanos(nanos);
        for (nanos, come, consumed, state) in [
            (10, 99, 0, State::S1),
            (30, 1, 0, State::S2),
            (60, 900, 0, State::S3),
            (100, 4000, 0, State::S4),
            (150, 0, 4950, State::S1),
        ] {
            states.change(at(nanos), come, consumed);
            assert_eq!(states.state(), state);
        }
        assert_eq!(states.spent(at(160)).map(|span| span.as_ps() / 1000), [40, 30, 40, 50]);
        assert_eq!(states.most, 5000);
    }
}
