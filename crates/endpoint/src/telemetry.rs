//! In-band telemetry that switches on a real network wrote into a packet, as laws read it.
//!
//! A header has 24 bits of a switch's clock, 20 of its port's count of octets, and no rate but five (docs/wire.md, layout `cc`). Laws
//! subtract what one acknowledgement told from what the next does, in 32 bits each. What comes between is filled in here: a switch's
//! clock has gone on by about as much as ours, and its count by as little as it may have.

use roci_control::{Hop, PathId};
use roci_units::{BitsPerSec, Instant};
use roci_wire::layout::int::{IntHop, IntStack};
use roci_wire::{Layout, Opcode};
use std::ops::Range;

/// The clock and the count of a header come round after so much.
const NANOSECONDS: u32 = 1 << 24;
const UNITS: u32 = 1 << 20;
/// Octets of a unit of a count, and of a queue.
const SENT: u32 = 128;
const QUEUED: u32 = 80;
/// A count that seems to have gone on by more than this comes from a packet that others have overtaken.
const BACKWARDS: u32 = UNITS / 4 * 3;

/// What the packets of one way of a queue pair have told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Telemetry {
    hops: [Hop; IntStack::HOPS],
    count: usize,
    path: PathId,
    at: Instant,
}

impl Telemetry {
    /// Takes what a packet brought that arrives at `now`. A rate that the header has no code for is that of the `link`.
    pub(crate) fn hear(&mut self, now: Instant, stack: &IntStack, link: BitsPerSec) {
        let told = stack.hops();
        let path = PathId::new(stack.path().into());
        let is_known = path == self.path && told.len() == self.count;
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2³² is meant, as the clocks are")]
        let passed = (now.since(self.at).as_ps() / 1_000) as u32;
        for (hop, told) in self.hops.iter_mut().zip(told) {
            let before =
                if is_known { Hop { at_ns: hop.at_ns.wrapping_add(passed), ..*hop } } else { Hop::NONE };
            *hop = widened(told, &before, link);
        }
        (self.count, self.path, self.at) = (told.len(), path, now);
    }

    /// The hops, first hop first, and which switches they are.
    pub(crate) fn told(&self) -> (&[Hop], PathId) {
        (&self.hops[..self.count], self.path)
    }
}

/// What is kept of a queue pair's two ways, where its packets have telemetry.
pub(crate) fn of(layout: Layout) -> Option<Box<[Telemetry; 2]>> {
    matches!(layout, Layout::Cc(cc) if cc.has_int()).then(Box::default)
}

/// Whether a packet takes the telemetry of the one that it answers back.
pub(crate) const fn is_answer(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::ACKNOWLEDGE | Opcode::READ_ACKNOWLEDGE)
}

/// The words of telemetry among those of a packet.
pub(crate) fn block_of(layout: Layout) -> Option<Range<usize>> {
    match layout {
        Layout::Cc(cc) if cc.has_int() => Some(cc.int_at()..cc.int_at() + IntStack::WORDS),
        _ => None,
    }
}

/// `told` with the bits that it has not, by what is expected of the clock and was last told of the count.
fn widened(told: &IntHop, before: &Hop, link: BitsPerSec) -> Hop {
    let ahead = told.time_ns.wrapping_sub(before.at_ns) % NANOSECONDS;
    let at_ns = before.at_ns.wrapping_add(ahead);
    let at_ns = if ahead < NANOSECONDS / 2 { at_ns } else { at_ns.wrapping_sub(NANOSECONDS) };
    let more = told.bytes_128.wrapping_sub(before.tx_bytes / SENT) % UNITS;
    let sent = before.tx_bytes.wrapping_add(more * SENT);
    let tx_bytes = if more < BACKWARDS { sent } else { sent.wrapping_sub(UNITS * SENT) };
    let rate = told.rate.rate().unwrap_or(link);
    Hop {
        at_ns,
        tx_bytes,
        queue_bytes: told.queue_80 * QUEUED,
        rate_kbps: u32::try_from(rate.0 / 1_000).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::{Bytes, Span};

    const LINK: BitsPerSec = BitsPerSec::from_mbps(200);

    fn stack(hop: IntHop) -> IntStack {
        let mut stack = IntStack::default();
        stack.push(7, hop);
        stack
    }

    #[test]
    fn what_a_switch_counts_goes_on_where_a_header_s_numbers_come_round() {
        let mut telemetry = Telemetry::default();
        // A switch whose clock is 5 s ahead and runs 100 ppm fast; packets come up to 40 ms apart, by which its clock comes round twice.
        let (mut now, mut sent, mut first) = (Instant::from_ps(0), 0_u64, None);
        for turn in 0..2_000_u64 {
            now += Span::from_micros(1 + turn * 997 % 40_000);
            sent += 1 + turn * 7_919 % 90_000_000;
            let clock = Instant::from_ps(5_000_000_000_000 + now.as_ps() + now.as_ps() / 10_000);
            let hop = IntHop::new(BitsPerSec::from_gbps(100), clock, Bytes(sent), Bytes(turn * 80));
            telemetry.hear(now, &stack(hop), LINK);
            let (&[heard], _) = telemetry.told() else { panic!("one hop") };
            let exact = Hop::new(clock, sent / 128 * 128, 0, 0);
            let (at, tx) = *first.get_or_insert((
                exact.at_ns.wrapping_sub(heard.at_ns),
                exact.tx_bytes.wrapping_sub(heard.tx_bytes),
            ));
            assert_eq!(exact.at_ns.wrapping_sub(heard.at_ns), at, "turn {turn}");
            assert_eq!(exact.tx_bytes.wrapping_sub(heard.tx_bytes), tx, "turn {turn}");
            assert_eq!((u64::from(heard.queue_bytes), heard.rate_kbps), (turn * 80, 100_000_000));
        }
    }

    #[test]
    fn a_packet_that_others_have_overtaken_tells_of_a_moment_before_theirs() {
        let mut telemetry = Telemetry::default();
        let now = Instant::from_ps(9_000_000_000);
        let hop = |micros: u64, sent| {
            IntHop::new(LINK, Instant::from_ps(micros * 1_000_000), Bytes(sent), Bytes(0))
        };
        let mut hear = |hop| {
            telemetry.hear(now, &stack(hop), LINK);
            telemetry.told().0[0]
        };
        let late = hear(hop(700, 1 << 20));
        let early = hear(hop(600, 1 << 19));
        assert_eq!(late.at_ns.wrapping_sub(early.at_ns), 100_000);
        assert_eq!(late.tx_bytes.wrapping_sub(early.tx_bytes), 1 << 19);
        assert_eq!(early.rate_kbps, 200_000, "a rate without a code is the link's");
    }
}
