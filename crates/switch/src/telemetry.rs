//! What a switch tells about a queue as a packet leaves it: in-band network telemetry (INT).

use roci_units::Instant;

/// What one switch tells of one egress queue, in full precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// When the packet left.
    pub at: Instant,
    /// Octets that the port had sent by then.
    pub tx_bytes: u64,
    /// Octets queued behind it.
    pub queue_bytes: u32,
    /// The port's rate in kb/s.
    pub rate_kbps: u32,
}

/// Octets that a hop takes on the wire.
pub const HOP_OCTETS: u16 = 8;

impl Hop {
    /// No hop.
    pub const NONE: Self = Self { at: Instant::ZERO, tx_bytes: 0, queue_bytes: 0, rate_kbps: 0 };

    /// The hop in 64 bits as HPCC's switches write it: line rate 3, time 24 (ns), octets sent 20 (units of 128),
    /// queue 17 (units of 80), from the highest bit down. Each field wraps, except the queue, which saturates.
    ///
    /// `None` for a rate that the code of three bits has no value for: it knows 25, 50, 100, 200 and 400 Gb/s.
    pub fn pack(&self) -> Option<u64> {
        let code = RATE_KBPS.iter().position(|&rate| rate == self.rate_kbps)? as u64;
        let time = self.at.as_ps() / 1_000 % (1 << 24);
        let sent = self.tx_bytes / 128 % (1 << 20);
        let queue = u64::from(self.queue_bytes / 80).min((1 << 17) - 1);
        Some(code << 61 | time << 37 | sent << 17 | queue)
    }

    /// What [`Hop::pack`] wrote, as far as it goes; `None` for a rate code without a meaning.
    pub fn unpack(word: u64) -> Option<Self> {
        let rate_kbps = *RATE_KBPS.get((word >> 61) as usize)?;
        let at = Instant::from_ps((word >> 37 & 0xff_ffff) * 1_000);
        let tx_bytes = (word >> 17 & 0xf_ffff) * 128;
        Some(Self { at, tx_bytes, queue_bytes: (word & 0x1_ffff) as u32 * 80, rate_kbps })
    }
}

/// The rates of the three-bit code.
const RATE_KBPS: [u32; 5] = [25_000_000, 50_000_000, 100_000_000, 200_000_000, 400_000_000];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_what_the_fields_hold() {
        let hop = Hop {
            at: Instant::from_ps(1_234_567_000),
            tx_bytes: 128 * 1_000,
            queue_bytes: 80 * 77,
            rate_kbps: 100_000_000,
        };
        assert_eq!(hop.pack().and_then(Hop::unpack), Some(hop));
    }

    #[test]
    fn time_and_octets_wrap_and_the_queue_saturates() {
        let hop = Hop {
            at: Instant::from_ps((1 << 24) * 1_000 + 5_999),
            tx_bytes: 128 * ((1 << 20) + 3) + 127,
            queue_bytes: u32::MAX,
            rate_kbps: 25_000_000,
        };
        let kept = Hop {
            at: Instant::from_ps(5_000),
            tx_bytes: 384,
            queue_bytes: 80 * ((1 << 17) - 1),
            rate_kbps: 25_000_000,
        };
        assert_eq!(hop.pack().and_then(Hop::unpack), Some(kept));
    }

    #[test]
    fn a_rate_without_a_code_cannot_be_packed() {
        assert_eq!(Hop { rate_kbps: 10_000_000, ..Hop::NONE }.pack(), None);
        assert_eq!(Hop::unpack(7 << 61), None);
    }
}
