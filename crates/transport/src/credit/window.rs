//! How much may be unacknowledged, in octets and in packets, and the tokens of receiver-driven laws.

use roci_control::Credit;

/// The window of one queue pair.
///
/// A packet may leave while the octets in flight with it stay within the window. When nothing is in flight one may
/// leave whatever the window: a silent queue pair learns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Octets of payload sent and not yet acknowledged.
    in_flight: u32,
    /// Octets; [`Credit::UNLIMITED`]: no limit.
    octets: u32,
    packets: u32,
}

impl Window {
    /// The most packets that the arithmetic of sequence numbers allows in flight (IBTA Vol 1 §9.7.1).
    pub const PACKETS_MAX: u32 = 1 << 23;

    /// No limit in octets, and at most `packets` packets; zero: [`Window::PACKETS_MAX`].
    #[must_use]
    pub const fn new(packets: u32) -> Self {
        let packets = if packets == 0 || packets > Self::PACKETS_MAX { Self::PACKETS_MAX } else { packets };
        Self { in_flight: 0, octets: Credit::UNLIMITED, packets }
    }

    /// Octets of payload in flight.
    #[inline]
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The most packets in flight.
    #[inline]
    #[must_use]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Sets the limit in octets, as the law answers it.
    #[inline]
    pub const fn set_octets(&mut self, octets: u32) {
        self.octets = octets;
    }

    /// Whether `next` more octets in `packets` packets may leave while `outstanding` packets are unacknowledged.
    #[inline]
    #[must_use]
    pub const fn allows(&self, outstanding: u32, packets: u32, next: u32) -> bool {
        if outstanding.saturating_add(packets) > self.packets {
            return false;
        }
        self.octets == Credit::UNLIMITED
            || outstanding == 0
            || self.in_flight as u64 + next as u64 <= self.octets as u64
    }

    /// Octets that left for the first time; a retransmission is in flight already.
    #[inline]
    pub const fn sent(&mut self, octets: u32) {
        self.in_flight = self.in_flight.saturating_add(octets);
    }

    /// Octets that were acknowledged.
    #[inline]
    pub const fn acknowledged(&mut self, octets: u32) {
        self.in_flight = self.in_flight.saturating_sub(octets);
    }
}

/// Octets of payload that a receiver has granted and that have not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens(u32);

impl Tokens {
    /// Tokens are not used.
    pub const UNLIMITED: Self = Self(Credit::UNLIMITED);

    /// What the law answers.
    #[inline]
    #[must_use]
    pub const fn new(octets: u32) -> Self {
        Self(octets)
    }

    /// What is left.
    #[inline]
    #[must_use]
    pub const fn left(self) -> u32 {
        self.0
    }

    /// Whether `octets` may leave.
    #[inline]
    #[must_use]
    pub const fn allow(self, octets: u32) -> bool {
        octets <= self.0
    }

    /// Spends the tokens of `octets` that leave.
    #[inline]
    pub const fn spend(&mut self, octets: u32) {
        if self.0 != Credit::UNLIMITED {
            self.0 = self.0.saturating_sub(octets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_filled_and_not_overfilled() {
        let mut window = Window::new(0);
        window.set_octets(3_000);
        window.sent(1_000);
        window.sent(1_000);
        assert!(window.allows(2, 1, 1_000));
        assert!(!window.allows(2, 1, 1_001));
        window.acknowledged(1_000);
        assert!(window.allows(1, 1, 2_000));
    }

    #[test]
    fn a_window_below_one_packet_still_lets_one_go() {
        let mut window = Window::new(0);
        window.set_octets(10);
        assert!(window.allows(0, 1, 4_096));
        window.sent(4_096);
        assert!(!window.allows(1, 1, 1));
    }

    #[test]
    fn packets_are_limited_even_where_octets_are_not() {
        let window = Window::new(110);
        assert!(window.allows(109, 1, u32::MAX));
        assert!(!window.allows(110, 1, 1) && !window.allows(109, 2, 2));
        assert_eq!(Window::new(u32::MAX).packets(), Window::PACKETS_MAX);
    }

    #[test]
    fn tokens_are_spent_once() {
        let mut tokens = Tokens::new(5_000);
        assert!(tokens.allow(4_096));
        tokens.spend(4_096);
        assert!(!tokens.allow(4_096));
        assert_eq!(tokens.left(), 904);
        let mut free = Tokens::UNLIMITED;
        free.spend(u32::MAX);
        assert!(free.allow(u32::MAX - 1));
    }
}
