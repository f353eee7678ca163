//! How long the work takes that the engine defers.

use roci_transport::Deferred;
use roci_units::{Random, Ratio, Span};

/// A span drawn uniformly from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The shortest.
    pub min: Span,
    /// The longest.
    pub max: Span,
}

impl Range {
    /// Always `span`.
    pub const fn exactly(span: Span) -> Self {
        Self { min: span, max: span }
    }

    /// From nothing to `max`.
    pub const fn up_to(max: Span) -> Self {
        Self { min: Span::ZERO, max }
    }

    /// One span of it.
    pub fn draw(&self, random: &mut Random) -> Span {
        let width = self.max.saturating_sub(self.min).as_ps();
        self.min + Span::from_ps(if width == 0 { 0 } else { random.below(width + 1) })
    }
}

/// What a NIC makes wait, and how long. `None` is immediate: the engine is not even asked to defer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From an offer to its commit: the TX grant.
    pub grant: Option<Range>,
    /// The law's outcome.
    pub law: Option<Range>,
    /// Placement of payload in the host's memory; the completion and the acknowledgement wait for it.
    pub placement: Option<Range>,
    /// The decision what a loss means.
    pub recovery: Option<Range>,
    /// Data of a READ, and the original value of an atomic.
    pub memory: Option<Range>,
    /// How often an offer is answered with LoopBack: it goes to the end of the line and is offered anew.
    pub loop_back: Ratio,
    /// Whether the law answers each event about arriving data with an acknowledgement (`GenTxEvent`). Its queue pairs
    /// run a law that traces them, such as [`Law::External`](roci_control::Law::External).
    pub law_acknowledges: bool,
}

impl Delays {
    /// The ideal NIC: everything is immediate.
    pub const IDEAL: Self = Self {
        grant: None,
        law: None,
        placement: None,
        recovery: None,
        memory: None,
        loop_back: Ratio::ZERO,
        law_acknowledges: false,
    };

    /// The test NIC: every deferral comes back after 0 to 5 µs, so that nothing comes to rely on order or haste.
    pub const fn delaying() -> Self {
        let range = Some(Range::up_to(Span::from_micros(5)));
        Self { grant: range, law: range, placement: range, recovery: range, memory: range, ..Self::IDEAL }
    }

    /// A law that runs beside the engine, as on SwCC's cores: the TX grant comes 150 ns late, half of the packets take
    /// another round first (LoopBack), and the acknowledgements are the law's.
    pub const fn deferred_law() -> Self {
        let law = Some(Range::exactly(Span::from_nanos(150)));
        Self { grant: law, law, loop_back: Ratio::new(1, 2), law_acknowledges: true, ..Self::IDEAL }
    }

    /// The same with a host that takes `placement` to have payload in its memory.
    #[must_use]
    pub const fn with_placement(self, placement: Span) -> Self {
        Self { placement: Some(Range::exactly(placement)), ..self }
    }

    /// What queue pairs on such a NIC have to defer.
    pub const fn deferred(&self) -> Deferred {
        Deferred {
            law: self.law.is_some() || self.law_acknowledges,
            placement: self.placement.is_some(),
            ack_after_placement: self.placement.is_some(),
            recovery: self.recovery.is_some(),
            memory: self.memory.is_some(),
        }
    }

    /// Whether nothing waits.
    pub fn is_ideal(&self) -> bool {
        *self == Self::IDEAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_drawn_from_end_to_end() {
        let (range, mut random) = (Range { min: Span::from_ps(3), max: Span::from_ps(5) }, Random::new(1, 1));
        let drawn: Vec<u64> = (0..200).map(|_| range.draw(&mut random).as_ps()).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&5)));
        assert_eq!(Range::exactly(Span::from_micros(2)).draw(&mut random), Span::from_micros(2));
    }

    #[test]
    fn queue_pairs_defer_what_their_nic_makes_wait() {
        assert!(Delays::IDEAL.is_ideal());
        assert_eq!(Delays::IDEAL.deferred(), Deferred::default());
        let all =
            Deferred { law: true, placement: true, ack_after_placement: true, recovery: true, memory: true };
        assert_eq!(Delays::delaying().deferred(), all);
        let law = Deferred { law: true, ..Deferred::default() };
        assert_eq!(Delays::deferred_law().deferred(), law);
        let slow = Deferred { placement: true, ack_after_placement: true, ..law };
        assert_eq!(Delays::deferred_law().with_placement(Span::from_micros(2)).deferred(), slow);
    }
}
