//! The tokens of receiver-driven laws.

use roci_control::Credit;

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
