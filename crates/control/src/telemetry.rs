//! What laws keep of the links of a path, of which switches tell in telemetry.

use crate::event::Hop;
use crate::fixed::ONE;

/// The most hops of a path, as in HPCC's header.
pub const HOPS: usize = 5;

/// What is known of one link, five words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Link {
    /// `L[i]`: what the last acknowledgement told of it.
    pub seen: Hop,
    /// What an octet lasts on it, in nanoseconds in 8.24.
    pub octet: u32,
}

/// What is known of a path, 26 words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Path {
    /// Which one it is, as [`Event::path`](crate::Event::path) tells of it; zero before the first acknowledgement.
    pub number: u32,
    /// Its links, nearest first.
    pub links: [Link; HOPS],
}

impl Path {
    /// Where the counters of path `number` stand, which is another one than before. Whether it is the first.
    pub(crate) fn meet(&mut self, number: u32, hops: &[Hop]) -> bool {
        for (link, hop) in self.links.iter_mut().zip(hops) {
            // Its rate is learnt when it is first judged.
            link.seen = Hop { rate_kbps: link.seen.rate_kbps, ..*hop };
        }
        core::mem::replace(&mut self.number, number) == 0
    }
}

impl Link {
    /// Learns what an octet lasts, where it has another rate than before.
    #[inline(always)]
    pub(crate) fn keep_pace(&mut self, hop: &Hop) {
        if self.seen.rate_kbps != hop.rate_kbps {
            self.octet = lasting(hop.rate_kbps);
        }
    }

    /// What `octets`, at most 2³³, last on it, in nanoseconds in 24.8: at most 8 ms.
    #[inline]
    pub(crate) fn lasts(&self, octets: u64) -> u64 {
        ((octets * u64::from(self.octet)) >> 16).min(u64::from(u32::MAX >> 1))
    }
}

/// What an octet lasts on a link of `rate_kbps`, in nanoseconds in 8.24, from the 16 first bits of the rate. One below 65 Mb/s counts
/// as that, one above 4 Tb/s as that.
#[cold]
#[inline(never)]
fn lasting(rate_kbps: u32) -> u32 {
    const OCTET: u32 = 8_000_000 << 8;
    let rate = rate_kbps.max(ONE);
    let shift = 16 - rate.leading_zeros();
    let first = rate >> shift;
    ((((OCTET / first) << 16) + ((OCTET % first) << 16) / first) >> shift).max(1 << 15)
}
