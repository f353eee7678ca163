//! The 24-bit numbers of the InfiniBand transport.

use core::fmt;

const MASK: u32 = 0x00ff_ffff;

/// A packet sequence number: 24 bits, counted modulo 2²⁴ (IBTA Vol 1 §9.7.1).
///
/// It has no `Ord`: on a circle "less than" is not transitive. Ask for a distance instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The number `value` modulo 2²⁴.
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// Its value, below 2²⁴.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `count` packets later.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count) & MASK)
    }

    /// The number `count` packets earlier.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count) & MASK)
    }

    /// How many packets `self` lies after `other`, in −2²³..2²³; negative when it lies before.
    pub const fn since(self, other: Self) -> i32 {
        (self.0.wrapping_sub(other.0) << 8).cast_signed() >> 8 // bit 23 becomes the sign
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A queue pair number: 24 bits, unique per host (IBTA Vol 1 §3.5.1). 0 and 1 are reserved for management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// The number `value` modulo 2²⁴.
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// Its value, below 2²⁴.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// `{:#08x}` writes all six digits behind `0x`, as perftest and Wireshark do.
impl fmt::LowerHex for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;
    extern crate alloc;

    #[test]
    fn the_number_after_the_last_is_zero() {
        assert_eq!(Psn::new(0x00ff_ffff).plus(1), Psn::new(0));
        assert_eq!(Psn::new(0).since(Psn::new(0x00ff_ffff)), 1);
        assert_eq!(Psn::new(0x00ff_ffff).since(Psn::new(0)), -1);
        assert_eq!(Psn::new(0x0080_0000).since(Psn::new(0)), -0x0080_0000);
    }

    #[test]
    fn a_queue_pair_is_told_in_six_digits_of_sixteen_as_others_tell_it() {
        assert_eq!(
            [17, 0x00ff_ffff].map(|value| format!("{:#08x}", Qpn::new(value))),
            ["0x000011", "0xffffff"]
        );
        assert_eq!(format!("{:06x}", Qpn::new(17)), "000011");
    }

    proptest! {
        #[test]
        fn a_distance_leads_back(from in 0u32..1 << 24, distance in 0u32..1 << 23) {
            let start = Psn::new(from);
            prop_assert_eq!(i64::from(start.plus(distance).since(start)), i64::from(distance));
            prop_assert_eq!(start.plus(distance).minus(distance), start);
        }
    }
}
