//! A base round trip, for laws whose window is what a link carries in it, sent at an even rate.

use crate::fixed::{constant, saturate, span_nanos};
use crate::outcome::Credit;
use roci_units::Span;

/// What follows from it.
///
/// HPCC and both PowerTCPs take one of 1 ms at most. What the octets of a link last is kept below 2²³ ns (8.4 ms, [`Link::lasts`]) so that
/// products fit: of 1 ms a utilisation or power of eight is told from more, of 8 ms hardly one. And 1/t is cut at 2⁻³², which of 1 ms is a
/// part in 4294, of 2 ms a part in 2147, and counts twice in a queue: then a thousandth no longer holds. Words of other scales would take
/// another load or shift for each acknowledgement, on a core of 32 bits too.
///
/// [`Link::lasts`]: crate::telemetry::Link::lasts
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    /// It in nanoseconds.
    pub(crate) t: u32,
    /// 1/t, times 2³² ns, rounded down.
    pub(crate) per_t: u32,
    /// Kilobits per second of one octet in each, in 16.16.
    kbps_of_octet: u32,
    /// Octets that a kilobit per second carries in it, times 2³².
    pub(crate) octets_of_kbps: u32,
}

impl Trip {
    pub(crate) fn new(base_rtt: Span) -> Self {
        let t = span_nanos(base_rtt).max(1);
        Self {
            t,
            per_t: u32::MAX / t,
            kbps_of_octet: constant(8_000_000, 16, t.into()),
            octets_of_kbps: constant(t.into(), 32, 8_000_000),
        }
    }

    /// What a link carries in it, in octets.
    #[inline]
    pub(crate) const fn carried(&self, link_kbps: u32) -> u32 {
        saturate((link_kbps as u64 * self.octets_of_kbps as u64 + (1 << 31)) >> 32)
    }

    /// `window`, and that in each round trip unless it is the link's rate.
    #[inline]
    pub(crate) fn credit(&self, window: u32, link_kbps: u32) -> Credit {
        let kbps = (u64::from(window) * u64::from(self.kbps_of_octet)) >> 16;
        let slower = kbps < u64::from(link_kbps - (link_kbps >> 12));
        #[expect(clippy::cast_possible_truncation, reason = "slower than the link")]
        let rate_kbps = if slower { (kbps as u32).max(1) } else { Credit::UNLIMITED };
        Credit { rate_kbps, window, ..Credit::FREE }
    }
}
