//! Shares of a port's bandwidth by priority: enhanced transmission selection (IEEE 802.1Qaz).
//!
//! Priorities without a share are strict and go before all that have one. Those that have take turns by deficit round
//! robin (Shreedhar and Varghese, SIGCOMM 1995) in its surplus form: a turn goes on while something of its quantum is
//! left, and what the last frame took beyond that is taken off the next turn. So nobody has to know how long a frame is
//! before it is taken, which a host, whose frames are made as they leave, does not. `docs/decisions/0022`.

use crate::config::ConfigError;
use crate::port::PRIORITIES;
use roci_wire::WIRE_OVERHEAD;

/// What the shares of a port add up to.
const WHOLE: u32 = 100;

/// Shares of a port's bandwidth by priority, in percent of what strict priorities leave: two at least, 100 together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares([u8; PRIORITIES]);

impl Shares {
    /// The shares of priorities 0 to 7, in percent; a priority with zero is strict.
    ///
    /// # Errors
    /// When they do not make 100 together, or a single priority has all.
    pub fn new(percent: [u8; PRIORITIES]) -> Result<Self, ConfigError> {
        let shares = Self(percent);
        let sum = percent.iter().map(|&share| u32::from(share)).sum();
        if sum != WHOLE {
            return Err(ConfigError::ShareSum(sum));
        }
        if shares.priorities().count_ones() < 2 {
            return Err(ConfigError::LoneShare);
        }
        Ok(shares)
    }

    /// Bit p: priority p has a share.
    pub fn priorities(&self) -> u8 {
        (0..).zip(self.0).fold(0, |set, (priority, share)| set | u8::from(share > 0) << priority)
    }

    /// The share of `priority`, in percent; zero for a strict one.
    pub const fn of(&self, priority: u8) -> u8 {
        self.0[(priority & 7) as usize]
    }
}

/// How many octets each priority has in a turn.
#[derive(Clone, Copy, Debug)]
pub struct Quanta {
    octets: [i32; PRIORITIES],
    shared: u8,
}

impl Quanta {
    /// Turns by `shares`, as short as they can be: the least holds one of the largest frames, of `max_frame` octets,
    /// with its preamble and gap, lest a round pass in which it may send nothing.
    pub fn new(shares: &Shares, max_frame: u32) -> Self {
        let least = shares.0.into_iter().filter(|&share| share > 0).min().map_or(1, u32::from);
        let percent = max_frame.saturating_add(WIRE_OVERHEAD).div_ceil(least);
        let octets = |share| i32::try_from(percent.saturating_mul(u32::from(share))).unwrap_or(i32::MAX);
        Self { octets: shares.0.map(octets), shared: shares.priorities() }
    }

    /// Bit p: priority p has a share.
    #[inline]
    pub const fn priorities(&self) -> u8 {
        self.shared
    }

    /// Octets that `priority` has in a turn, preambles and gaps included; zero for a strict one.
    pub fn of(&self, priority: u8) -> u32 {
        self.octets[usize::from(priority & 7)].unsigned_abs()
    }
}

/// Whose turn it is at one port.
///
/// Ask whose turn it is among those that have something to send ([`Turns::next`]), send a frame of it and say how long that was
/// ([`Turns::sent`]); where it has no more, say so ([`Turns::end`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// Octets left of its turn, of the priority whose turn it is; of others what is to be taken off their next turn,
    /// which is zero or less.
    left: [i32; PRIORITIES],
    current: u8,
}

impl Turns {
    /// Whose turn it is of those in `ready`, each of which has a share. Who has the turn and is not ready has lost it,
    /// and what was left of it.
    ///
    /// # Panics
    /// In debug builds, when none is ready or one of them has no share.
    #[inline]
    pub fn next(&mut self, quanta: &Quanta, ready: u8) -> u8 {
        debug_assert!(ready != 0 && ready & !quanta.shared == 0, "{ready:#010b} of {:#010b}", quanta.shared);
        if ready >> self.current & 1 == 0 {
            self.end(self.current);
        }
        while self.left[usize::from(self.current)] <= 0 {
            // The next of them upwards, and from the last one to the first.
            let above = ready & (0xfe << self.current);
            let set = if above != 0 { above } else { ready };
            self.current = (set.trailing_zeros() & 7) as u8;
            let left = &mut self.left[usize::from(self.current)];
            *left = left.saturating_add(quanta.octets[usize::from(self.current)].max(1));
        }
        self.current
    }

    /// A frame of `octets` has left by `priority`, which has a share.
    #[inline]
    pub fn sent(&mut self, priority: u8, octets: u32) {
        let left = &mut self.left[usize::from(priority & 7)];
        *left = left.saturating_sub_unsigned(octets.saturating_add(WIRE_OVERHEAD));
    }

    /// `priority` has nothing more to send: what is left of its turn is lost.
    #[inline]
    pub fn end(&mut self, priority: u8) {
        let left = &mut self.left[usize::from(priority & 7)];
        *left = (*left).min(0);
    }
}

#[cfg(test)]
mod tests;
