//! What a fault is, and what makes no sense.

use crate::graph::NodeId;
use roci_units::{BitErrorRate, BitsPerSec, Instant, Random, Ratio, Span};
use std::fmt;

/// A fault on one direction of a link, for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSpec {
    /// The link, by its place in the graph.
    pub link: u32,
    /// The end that sends into it.
    pub from: NodeId,
    /// When it begins.
    pub start: Instant,
    /// When it ends; [`Instant::NEVER`] if it does not.
    pub until: Instant,
    /// What it does.
    pub fault: Fault,
}

impl FaultSpec {
    /// What it draws from in the run with this `seed`: a stream by the way of the link that it stands on, `back` if that is the second
    /// one, by what it is, by when it begins, and by how many that have all this in common stand `before` it. What other faults there
    /// are changes none of its draws.
    pub(crate) fn random(&self, seed: u64, back: bool, before: u64) -> Random {
        let way = u64::from(self.link) << 1 | u64::from(back);
        let what = self.fault.number() + FAULTS * before;
        let stream = FAULT_STREAMS + (what << 33) + way;
        match self.start {
            Instant::ZERO => Random::new(seed, stream),
            start => Random::new(Random::new(seed, stream).next_u64(), start.as_ps()),
        }
    }
}

const FAULT_STREAMS: u64 = 1 << 45;

/// No fault has this number, nor a greater one.
const FAULTS: u64 = 16;

/// What a fault does to packets that cross it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Loses each packet with this probability.
    Loss(Ratio),
    /// Loses packets in bursts (Gilbert 1960, Elliott 1963): a chain of two states, which steps at each packet.
    GilbertElliott {
        /// The probability of going from good to bad.
        to_bad: Ratio,
        /// The probability of going from bad to good.
        to_good: Ratio,
        /// The loss while good.
        loss_good: Ratio,
        /// The loss while bad.
        loss_bad: Ratio,
        /// Those of one way of a link that have the same number go on with each other's state, as a fault does that another one
        /// stood in for.
        chain: u32,
    },
    /// Loses each packet of which a bit is wrong: the frame's check sequence tells.
    BitErrors(BitErrorRate),
    /// Damages each packet with this probability; the receiver's ICRC finds out.
    Corrupt(Ratio),
    /// Sends a second copy at the same time with this probability.
    Duplicate(Ratio),
    /// Holds packets back with this probability, so that later ones overtake them.
    Reorder {
        /// The probability.
        chance: Ratio,
        /// For how long.
        delay: Span,
    },
    /// Holds every packet back by `delay` and an equally distributed part of `jitter`, without changing their order: they follow
    /// each other no sooner than the link's rate lets them, also those that come when it is over.
    Delay {
        /// At least so long.
        delay: Span,
        /// And up to this much more.
        jitter: Span,
    },
    /// The link goes up and down in turn, up first. A packet is lost if the link is down as its transmission begins.
    Flap(Turns),
    /// The link is down: it loses everything.
    Down,
    /// The link runs at this rate, which is not above the one that it is built for. What is being sent as it changes ends as it
    /// began; the switch has its thresholds and its headroom for the other rate.
    Rate(BitsPerSec),
    /// The far end keeps `priority` paused.
    PauseStorm {
        /// The priority.
        priority: u8,
    },
    /// Calls for a CNP to the source of the data packet that lifts the link's load above a threshold.
    ForgedCnp {
        /// The load, preamble and gap included.
        threshold: BitsPerSec,
        /// The time over which it is taken, up to the present.
        window: Span,
        /// The least time between two CNPs.
        cooldown: Span,
    },
}

/// What goes down and comes up again for as long as it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// When the first of its turns began, up: not after it came into force, and before it where something else was in force
    /// in its place.
    pub began: Instant,
    /// How long it is up.
    pub up: Span,
    /// How long it is down.
    pub down: Span,
}

impl Turns {
    /// The first instant from `time` on at which it is down, in picoseconds.
    pub(crate) fn next_down(&self, time: u64) -> u64 {
        let (turn, up) = (self.turn(time), self.up.as_ps());
        if turn >= up { time } else { time.saturating_add(up - turn) }
    }

    /// When it comes up, if it is down at `time`; at the end of time where that is before.
    pub(crate) fn next_up(&self, time: u64) -> u64 {
        time.saturating_add((self.up + self.down).as_ps() - self.turn(time))
    }

    /// How much of its turn, up and down, is over at `time`.
    fn turn(&self, time: u64) -> u64 {
        time.saturating_sub(self.began.as_ps()) % (self.up + self.down).as_ps()
    }
}

/// Why a fault makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// No link joins the two nodes.
    NoSuchLink,
    /// A probability above one.
    Probability,
    /// Priorities are 0 to 7.
    Priority,
    /// A flapping link needs times, and a window must have a length.
    Times,
    /// A rate of zero, or above the link's own.
    Rate,
}

impl fmt::Display for FaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchLink => "a fault on a link that does not exist",
            Self::Probability => "a probability above 1",
            Self::Priority => "a priority above 7",
            Self::Times => "a time of zero where a length is needed",
            Self::Rate => "a rate of zero or above the link's own",
        })
    }
}

impl Fault {
    /// By which its draws are told from those of other faults of its way. Losses have one, as a link has one way of losing packets.
    pub(crate) const fn number(&self) -> u64 {
        match self {
            Self::Loss(_) | Self::GilbertElliott { .. } => 0,
            Self::BitErrors(_) => 1,
            Self::Corrupt(_) => 2,
            Self::Duplicate(_) => 3,
            Self::Reorder { .. } => 4,
            Self::Delay { .. } => 5,
            // These draw nothing.
            Self::Flap(_) | Self::Down | Self::Rate(_) | Self::PauseStorm { .. } | Self::ForgedCnp { .. } => {
                6
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), FaultError> {
        let proper = |ratios: &[Ratio]| ratios.iter().all(|ratio| ratio.is_proper());
        let (probabilities, times) = match *self {
            Self::Loss(p) | Self::Corrupt(p) | Self::Duplicate(p) => (proper(&[p]), true),
            Self::Reorder { chance, .. } => (proper(&[chance]), true),
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad, .. } => {
                (proper(&[to_bad, to_good, loss_good, loss_bad]), true)
            }
            Self::Delay { .. } | Self::BitErrors(_) | Self::Down | Self::Rate(_) => (true, true),
            Self::Flap(Turns { up, down, .. }) => (true, !(up + down).is_zero()),
            Self::ForgedCnp { window, .. } => (true, !window.is_zero()),
            Self::PauseStorm { priority } if priority > 7 => return Err(FaultError::Priority),
            Self::PauseStorm { .. } => (true, true),
        };
        match (probabilities, times) {
            (false, _) => Err(FaultError::Probability),
            (_, false) => Err(FaultError::Times),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_on_up_to_the_end_of_time() {
        let turns = Turns { began: Instant::ZERO, up: Span::from_micros(80), down: Span::from_micros(20) };
        let micros = |time: u64| time * 1_000_000;
        assert_eq!((turns.next_down(0), turns.next_up(micros(90))), (micros(80), micros(100)));
        assert_eq!((turns.next_down(micros(185)), turns.next_up(micros(185))), (micros(185), micros(200)));
        // What another fault of the link has down for good is asked for there, and times beyond are none.
        for before in [0, 1, micros(30), micros(99)] {
            let time = u64::MAX - before;
            assert!(turns.next_up(time) >= time && turns.next_down(time) >= time);
        }
    }
}
