//! The tokens of receiver-driven laws: a queue pair sends what it has been granted, and nothing else.

use roci_control::{Credit, TokenUnit};

/// What a receiver has granted and the queue pair has not sent, in the law's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    left: u32,
    /// Of octets: those that the last packet took beyond what was left; what is granted next pays for them. Of packets: those
    /// of what is left that let nothing go again. One field, for the law's state fills its cache lines.
    beside: u32,
    unit: TokenUnit,
}

impl Tokens {
    /// Tokens are not used.
    pub const UNLIMITED: Self = Self::new(Credit::UNLIMITED, TokenUnit::Octets);

    /// What the law begins with: where they stand for packets, they are all pushed.
    #[inline]
    #[must_use]
    pub const fn new(left: u32, unit: TokenUnit) -> Self {
        let beside = match unit {
            TokenUnit::Octets => 0,
            TokenUnit::Packets => left,
        };
        Self { left, beside, unit }
    }

    /// What is left, in octets or in packets as the law counts; [`Credit::UNLIMITED`] where tokens are not used.
    #[inline]
    #[must_use]
    pub const fn left(self) -> u32 {
        self.left
    }

    /// Whether none is left for a packet that is sent again, though some are for new ones.
    #[inline]
    #[must_use]
    pub const fn are_for_new_ones(self) -> bool {
        self.count_packets() && self.left > 0 && self.beside >= self.left
    }

    /// Whether they limit anything.
    #[inline]
    #[must_use]
    pub const fn limit(self) -> bool {
        self.left != Credit::UNLIMITED
    }

    /// Whether they stand for packets of whatever kind, READ responses among them, not for octets of a message.
    #[inline]
    #[must_use]
    pub const fn count_packets(self) -> bool {
        matches!(self.unit, TokenUnit::Packets)
    }

    /// What the law answers: as many as are left from now on, `pushed` of them for new packets, but for octets that are owed.
    #[inline]
    pub const fn set(&mut self, left: u32, pushed: Option<u32>) {
        self.left = left;
        if self.count_packets() {
            if let Some(pushed) = pushed {
                self.beside = pushed;
            }
            if self.beside > left {
                self.beside = left;
            }
        } else if self.beside > 0 && left != Credit::UNLIMITED {
            let paid = if self.beside < left { self.beside } else { left };
            self.left -= paid;
            self.beside -= paid;
        }
    }

    /// A new message begins: what the last one's end took beyond its grants is not this one's debt.
    #[inline]
    pub const fn begin(&mut self) {
        self.owe(0);
    }

    /// Octets of the message in course that left before this law dealt: its first grants pay for them.
    #[inline]
    pub const fn owe(&mut self, octets: u32) {
        if !self.count_packets() {
            self.beside = octets;
        }
    }

    /// How many of `packets` may leave, which carry `octets` in packets of `mtu` and are `fresh` or sent again.
    #[inline]
    #[must_use]
    pub fn allow(self, packets: u16, octets: u32, mtu: u16, fresh: bool) -> u16 {
        let most = match self.unit {
            _ if !self.limit() => return packets,
            TokenUnit::Octets if !fresh || octets == 0 => return packets,
            // The packet in which they end goes whole.
            TokenUnit::Octets => self.left.div_ceil(u32::from(mtu).max(1)),
            TokenUnit::Packets if fresh => self.left,
            TokenUnit::Packets => self.left.saturating_sub(self.beside),
        };
        u16::try_from(most).map_or(packets, |most| most.min(packets))
    }

    /// Spends the tokens of `packets` with `octets` of payload that leave.
    #[inline]
    pub const fn spend(&mut self, packets: u16, octets: u32, fresh: bool) {
        if !self.limit() {
            return;
        }
        match self.unit {
            TokenUnit::Octets if fresh => {
                self.beside += octets.saturating_sub(self.left);
                self.left = self.left.saturating_sub(octets);
            }
            TokenUnit::Octets => {}
            TokenUnit::Packets => {
                self.left = self.left.saturating_sub(packets as u32);
                if self.beside > self.left {
                    self.beside = self.left;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MTU: u16 = 1_000;

    #[test]
    fn the_packet_in_which_the_octets_end_goes_whole_and_is_paid_for_later() {
        let mut tokens = Tokens::new(1_500, TokenUnit::Octets);
        assert_eq!(tokens.allow(9, 9_000, MTU, true), 2);
        tokens.spend(2, 2_000, true);
        assert_eq!((tokens.left(), tokens.allow(1, 1_000, MTU, true)), (0, 0));
        tokens.set(400, None);
        assert_eq!(tokens.allow(1, 1_000, MTU, true), 0, "400 of 500 are paid");
        tokens.set(400, None);
        assert_eq!((tokens.left(), tokens.allow(2, 2_000, MTU, true)), (300, 1));
    }

    #[test]
    fn a_new_message_does_not_pay_for_the_last_one() {
        let mut tokens = Tokens::new(1, TokenUnit::Octets);
        tokens.spend(1, 1_000, true);
        tokens.begin();
        tokens.set(1_000, None);
        assert_eq!(tokens.left(), 1_000);
    }

    #[test]
    fn what_left_before_a_law_dealt_is_paid_for_by_what_it_deals_first() {
        let mut tokens = Tokens::new(0, TokenUnit::Octets);
        tokens.owe(3_000);
        tokens.set(2_000, None);
        assert_eq!(tokens.left(), 0);
        tokens.set(4_000, None);
        assert_eq!(tokens.left(), 3_000);
    }

    #[test]
    fn what_was_granted_in_octets_is_sent_again_without() {
        let mut tokens = Tokens::new(0, TokenUnit::Octets);
        assert_eq!(tokens.allow(3, 3_000, MTU, false), 3);
        tokens.spend(3, 3_000, false);
        tokens.set(1_000, None);
        assert_eq!(tokens.allow(3, 3_000, MTU, true), 1, "nothing is owed");
    }

    #[test]
    fn a_pull_lets_one_packet_go_new_or_not() {
        let mut tokens = Tokens::new(0, TokenUnit::Packets);
        tokens.set(2, Some(0));
        assert_eq!(tokens.allow(3, 3_000, MTU, false), 2);
        tokens.spend(1, 1_000, false);
        tokens.spend(1, 1_000, true);
        assert_eq!((tokens.left(), tokens.allow(1, 0, MTU, true)), (0, 0));
    }

    #[test]
    fn what_is_pushed_lets_nothing_go_again_and_is_spent_last() {
        let mut tokens = Tokens::new(3, TokenUnit::Packets);
        assert!(tokens.are_for_new_ones(), "a queue pair begins with such ones alone");
        tokens.set(5, None);
        assert_eq!([true, false].map(|fresh| tokens.allow(9, 9_000, MTU, fresh)), [5, 2]);
        tokens.spend(1, 1_000, true);
        assert_eq!(
            (tokens.left(), tokens.allow(9, 9_000, MTU, false), tokens.are_for_new_ones()),
            (4, 1, false)
        );
        tokens.spend(1, 1_000, false);
        assert_eq!((tokens.allow(1, 1_000, MTU, false), tokens.are_for_new_ones()), (0, true));
        tokens.spend(2, 2_000, true);
        tokens.set(2, None);
        assert_eq!(tokens.allow(9, 9_000, MTU, false), 1, "the one that is left is pushed still");
        tokens.set(9, Some(7));
        assert_eq!(tokens.allow(9, 9_000, MTU, false), 2);
        tokens.set(4, None);
        tokens.set(6, None);
        assert_eq!(tokens.allow(9, 9_000, MTU, false), 2, "no more are pushed than there were tokens");
    }

    #[test]
    fn a_message_without_payload_needs_no_octets() {
        assert_eq!(Tokens::new(0, TokenUnit::Octets).allow(1, 0, MTU, true), 1);
    }

    #[test]
    fn without_tokens_nothing_is_counted() {
        let mut free = Tokens::UNLIMITED;
        free.spend(1, u32::MAX, true);
        assert_eq!((free.allow(7, u32::MAX, MTU, true), free.limit()), (7, false));
    }

    proptest! {
        /// Whatever is granted when: all that leaves was granted, but for less than a packet.
        #[test]
        fn nothing_leaves_that_was_not_granted(
            grants in prop::collection::vec((0u32..5_000, 0u16..9), 1..80),
            packets in any::<bool>(),
        ) {
            let unit = if packets { TokenUnit::Packets } else { TokenUnit::Octets };
            let mut tokens = Tokens::new(0, unit);
            let (mut granted, mut sent) = (0u64, 0u64);
            for (grant, wants) in grants {
                tokens.set(tokens.left() + grant, None);
                granted += u64::from(grant);
                let run = tokens.allow(wants, u32::from(wants) * u32::from(MTU), MTU, true);
                tokens.spend(run, u32::from(run) * u32::from(MTU), true);
                sent += if packets { u64::from(run) } else { u64::from(run) * u64::from(MTU) };
                let slack = if packets { 0 } else { u64::from(MTU) - 1 };
                prop_assert!(sent <= granted + slack, "{sent} of {granted}");
                prop_assert!(run == wants || sent + u64::from(!packets) > granted || packets && sent == granted);
            }
        }
    }
}
