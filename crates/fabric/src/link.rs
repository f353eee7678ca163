//! One direction of a link, as the port that sends into it knows it.

use roci_switch::LinkSpec;
use roci_units::{BitsPerSec, Pace, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;

/// What a port knows of its link. With the switch's masks and one queue it makes one cache line.
#[derive(Clone, Debug)]
pub(crate) struct LinkEnd {
    /// When the transmission that is going on, or was the last, ends.
    pub(crate) free_at: u64,
    /// Octets of frames sent, PAUSE frames aside.
    pub(crate) tx_octets: u64,
    /// The port at the other end.
    pub(crate) peer: u32,
    /// The node at the other end: a host's number, or the number of hosts plus a switch's.
    pub(crate) node: u32,
    /// The node at this end.
    pub(crate) owner: u32,
    /// Its place among the [`LinkClass`]es.
    pub(crate) class: u16,
    /// Bit p: the peer has paused priority p.
    pub(crate) paused: u8,
    pub(crate) flags: u8,
}

/// The port will be looked at when it is free: an event or a kick is outstanding.
pub(crate) const PENDING: u8 = 1;
/// Something stands on this direction of the link that looks at each packet.
pub(crate) const FAULTY: u8 = 2;
/// Packets sent are recorded.
pub(crate) const TAPPED: u8 = 4;
/// Packets that the far end receives are recorded there.
pub(crate) const TAPPED_AFAR: u8 = 8;
/// The rate has no whole number of picoseconds per octet.
pub(crate) const UNEVEN: u8 = 16;
/// What is sent is counted by priority.
pub(crate) const COUNTED: u8 = 32;
/// What makes a transmission leave the short way.
pub(crate) const SPECIAL: u8 = FAULTY | TAPPED | TAPPED_AFAR | UNEVEN | COUNTED;

const _: () = assert!(size_of::<LinkEnd>() == 32);

/// Links of one rate and delay; a network has few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkClass {
    /// As which they are built. What follows is of the rate at which they run, which may be lower for a while.
    pub(crate) spec: LinkSpec,
    /// Picoseconds an octet takes, zero where that is no whole number.
    pub(crate) octet_ps: u64,
    pub(crate) delay_ps: u64,
    pub(crate) rate_kbps: u64,
}

impl LinkClass {
    pub(crate) fn new(spec: LinkSpec) -> Self {
        Self::at(spec, spec.rate)
    }

    /// Links built as `spec` that run at `rate`.
    pub(crate) fn at(spec: LinkSpec, rate: BitsPerSec) -> Self {
        const PS: u64 = 8_000_000_000_000;
        Self {
            spec,
            octet_ps: if PS.is_multiple_of(rate.0) { PS / rate.0 } else { 0 },
            delay_ps: spec.delay.as_ps(),
            rate_kbps: rate.0 / 1_000,
        }
    }

    /// Whether both are the same: they may differ in a rate that does not divide, which each port's pace has.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.spec == other.spec && self.octet_ps == other.octet_ps && self.rate_kbps == other.rate_kbps
    }

    /// How long a frame of `octets` keeps the link, preamble and gap included; `pace` carries the remainder of a
    /// rate that does not divide.
    #[inline]
    pub(crate) fn time(&self, octets: u32, pace: Option<&mut Pace>) -> Span {
        match pace {
            Some(pace) => pace.advance(octets + WIRE_OVERHEAD),
            None => Span::from_ps(self.octet_ps * u64::from(octets + WIRE_OVERHEAD)),
        }
    }

    /// About how many nanoseconds `octets` of frames keep the link.
    pub(crate) fn nanoseconds(&self, octets: u64) -> u64 {
        if octets == 0 { 0 } else { octets.saturating_mul(8_000_000) / self.rate_kbps.max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_faster_than_laws_can_tell_has_its_own_rate_all_the_same() {
        let spec = LinkSpec { rate: BitsPerSec::from_gbps(7_200), delay: Span::from_nanos(50) };
        let class = LinkClass::new(spec);
        assert_eq!(class.nanoseconds(9_000_000), 10_000);
        // An octet takes 1.11 ps: it is its port's pace that counts.
        assert_eq!((class.octet_ps, class.rate_kbps), (0, 7_200_000_000));
        let mut pace = Pace::new(spec.rate);
        assert_eq!(class.time(4_182 - WIRE_OVERHEAD, Some(&mut pace)), Span::from_ps(4_646));
    }
}
