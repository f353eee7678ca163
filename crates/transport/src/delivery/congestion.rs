//! The congestion window of TCP in segments, what Reno, NewReno and SACK share of it (RFC 5681).
//!
//! RFC 5681 counts octets; a fixed stage that counts segments (Tonic §3.2.1) counts the window in them, too.

use roci_units::Span;

/// The largest window: a receiver keeps no more segments out of order.
pub const WINDOW_MAX: u16 = 2048;

/// Duplicate acknowledgements that tell of a loss (RFC 5681 §3.2).
pub const DUPLICATES: u16 = 3;

/// A congestion window, the threshold of slow start and the retreat of the timer.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Segments that may be in flight.
    pub window: u16,
    /// Below it the window grows with each acknowledgement.
    pub threshold: u16,
    /// Segments acknowledged since the window last grew in congestion avoidance.
    acked: u16,
    /// Timeouts since something was acknowledged for the first time, which makes it zero: the timeout is what it was.
    pub backoff: u8,
}

impl Congestion {
    /// A window of `initial` segments, in slow start.
    #[must_use]
    pub const fn new(initial: u16) -> Self {
        let window = if initial == 0 { 1 } else { initial };
        Self { window: limited(window), threshold: u16::MAX, acked: 0, backoff: 0 }
    }

    /// An acknowledgement of `newly_acked` segments, outside of recovery: one segment more in slow start, one more for
    /// each window acknowledged in congestion avoidance (§3.1).
    #[inline(always)]
    pub fn grow(&mut self, newly_acked: u32) {
        if self.window < self.threshold {
            self.window = limited(self.window + 1);
            return;
        }
        let newly_acked = u16::try_from(newly_acked).unwrap_or(u16::MAX);
        self.acked = self.acked.saturating_add(newly_acked);
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window = limited(self.window + 1);
        }
    }

    /// A loss while `in_flight` segments are: the threshold falls to half of them, but not below two (equation 4), and the
    /// window to that and `more`. What limited transmit sent beyond the window does not count (§3.2, step 2).
    pub fn reduce(&mut self, in_flight: u32, more: u16) {
        let flight = u16::try_from(in_flight).unwrap_or(u16::MAX).min(self.window);
        self.threshold = (flight / 2).max(2);
        self.acked = 0;
        self.set(self.threshold + more);
    }

    /// A timeout: the window is one segment, and the next timeout comes after twice the time. The threshold stays where
    /// it is when nothing was acknowledged since the last one (§3.1; RFC 6298 §5.5).
    pub fn collapse(&mut self, in_flight: u32) {
        if self.backoff == 0 {
            self.threshold = (u16::try_from(in_flight).unwrap_or(u16::MAX) / 2).max(2);
        }
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        (self.window, self.acked) = (1, 0);
    }

    /// Sets the window; it is never below one segment.
    pub const fn set(&mut self, window: u16) {
        self.window = if window == 0 { 1 } else { limited(window) };
    }

    /// The timeout, where `configured` is the first.
    #[must_use]
    pub const fn timeout(&self, configured: Span) -> Span {
        Span::from_ps(configured.as_ps().saturating_mul(1 << self.backoff))
    }
}

/// A queue pair fails after at most seven timeouts without progress.
const BACKOFF_MAX: u8 = 7;

const fn limited(window: u16) -> u16 {
    if window > WINDOW_MAX { WINDOW_MAX } else { window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_doubles_in_a_round_trip_and_avoidance_adds_one() {
        let mut congestion = Congestion::new(4);
        congestion.threshold = 8;
        for _ in 0..4 {
            congestion.grow(1);
        }
        assert_eq!(congestion.window, 8);
        for _ in 0..8 {
            congestion.grow(1);
        }
        assert_eq!(congestion.window, 9);
        congestion.grow(9);
        assert_eq!(congestion.window, 10, "segments count, not acknowledgements");
    }

    #[test]
    fn the_window_stays_between_one_segment_and_what_a_receiver_keeps() {
        let mut congestion = Congestion::new(0);
        assert_eq!(congestion.window, 1);
        congestion.set(u16::MAX);
        congestion.grow(1);
        assert_eq!(congestion.window, WINDOW_MAX);
        congestion.set(0);
        assert_eq!(congestion.window, 1);
    }

    #[test]
    fn timeouts_without_progress_halve_once_and_come_after_twice_the_time() {
        let mut congestion = Congestion::new(40);
        let configured = Span::from_micros(100);
        congestion.collapse(40);
        congestion.collapse(40);
        assert_eq!((congestion.window, congestion.threshold), (1, 20));
        assert_eq!(congestion.timeout(configured), Span::from_micros(400));
        congestion.collapse(1);
        assert_eq!(congestion.threshold, 20, "the segment had been sent again by the timer before");
        congestion.backoff = 0;
        assert_eq!(congestion.timeout(configured), configured);
        for _ in 0..300 {
            congestion.collapse(1);
        }
        assert_eq!(congestion.timeout(configured), Span::from_micros(12_800));
        assert_eq!(congestion.timeout(Span::ZERO), Span::ZERO, "zero means never");
    }

    #[test]
    fn what_limited_transmit_sent_does_not_raise_the_threshold() {
        let mut congestion = Congestion::new(10);
        congestion.reduce(12, 0);
        assert_eq!((congestion.threshold, congestion.window), (5, 5));
        congestion.reduce(1, 3);
        assert_eq!((congestion.threshold, congestion.window), (2, 5));
    }
}
