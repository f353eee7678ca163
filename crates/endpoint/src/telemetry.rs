//! In-band telemetry that switches on a real network wrote into a packet, as laws read it.
//!
//! A header has 24 bits of a switch's clock, 20 of its port's count of octets, and no rate but five (docs/wire.md, layout `cc`). Laws
//! subtract what one acknowledgement told from what the next does, in 32 bits each. What comes between is filled in here. How long a packet takes from
//! the switch to us has a least, which is learnt, and no most, for threads wait for a core: of the times that a clock may mean it is the latest that
//! a packet can have come from. Where a count may have come round meanwhile, or other switches tell, the path has another number from then on,
//! and laws take it for one that they have not met.

use crate::control::hops::{self, Way};
use crate::shard::Entry;
use roci_control::{Hop, PathId};
use roci_units::{BitsPerSec, Bytes, Instant, Span};
use roci_wire::layout::int::{IntHop, IntStack};
use roci_wire::{Layout, Opcode, Shape};
use std::ops::Range;

/// The clock of a header comes round after so many nanoseconds, its count after so many units.
const NANOSECONDS: i64 = 1 << 24;
const UNITS: u32 = 1 << 20;
/// Octets of a unit of a count, and of a queue.
const SENT: u32 = 128;
const QUEUED: u32 = 80;
/// By so much a packet may be faster than the fastest before it, in nanoseconds.
const FASTER: i64 = 1_000_000;
/// Clocks differ by at most one part in so many.
const DRIFT: i64 = 5_000;
/// So much a port has to have sent before it is looked whether its rate lets it, which shows in bursts. A quarter more than that and two
/// packets are no wonder, for counts have steps; and so twice in a row, for a packet that is late by more than a clock's round tells of another time.
const LOOKED_AT: u64 = 32 << 10;
const STEPS: u64 = 9_000;
/// What waited at a port when it was looked at is more than it has sent when it is looked at again: then it was busy all the time, and its rate is
/// what it sent. So often in a row that has to be a quarter and two packets less than was said, for a port that is paused, or a switch in software whose
/// thread waits for a core, sends less for a while.
const BUSY: u32 = 64;
/// After so much silence nothing that was told counts any more.
const SILENCE: Span = Span::from_secs(1);

/// The rates of ports for which a header has no code, as somebody has said them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    each: [BitsPerSec; IntStack::HOPS],
    /// How many were said in the order of hops, where it is more than one for all.
    ordered: usize,
}

impl Rates {
    /// One of all ports, several in the order of the hops, or where none is said `link`.
    pub(crate) fn new(said: &[BitsPerSec], link: BitsPerSec) -> Self {
        let mut each = [said.first().copied().unwrap_or(link); IntStack::HOPS];
        each.iter_mut().zip(said).for_each(|(rate, said)| *rate = *said);
        Self { each, ordered: if said.len() > 1 { said.len() } else { 0 } }
    }

    /// How many hops a way is to have, where each has a rate of its own; 0 where one rate is of all.
    pub(crate) const fn ordered(&self) -> usize {
        self.ordered
    }

    /// Whether it is known which of them is whose: several are those of as many hops, unless each hop tells its own.
    pub(crate) fn suit(&self, stack: &IntStack) -> bool {
        let hops = stack.hops();
        self.ordered == 0 || hops.len() == self.ordered || hops.iter().all(|hop| hop.rate.rate().is_some())
    }
}

/// What the packets of one way of a queue pair have told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Telemetry {
    links: [Link; IntStack::HOPS],
    told: Told,
    path: u16,
    /// How often what was told before has ceased to count.
    anew: u32,
    at: Instant,
    /// Up to when clocks were let drift, in nanoseconds.
    drifted: i64,
    /// Whether by what came last a port sends more than the rate that was said for it lets through.
    is_beyond: bool,
    /// Whether it sends less than that though packets wait.
    is_short: bool,
}

/// The hops as laws take them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    hops: [Hop; IntStack::HOPS],
    count: usize,
    path: PathId,
}

impl Told {
    /// The hops, first hop first, and which path that is.
    pub(crate) fn get(&self) -> (&[Hop], PathId) {
        (&self.hops[..self.count], self.path)
    }
}

/// A switch's clock and count, of which its packets tell a part.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// What our clock was ahead at least when a packet came, in nanoseconds: of the packet that was fastest.
    least: i64,
    at: i64,
    sent: u64,
    /// What that was when the path got its number.
    met: u64,
    /// What it is held to the rate by that was said for it.
    held: Held,
}

/// A port as it was last looked whether its rate lets it send so much, or more.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    at: i64,
    sent: u64,
    /// What waited then.
    queued: u64,
    /// Whether it had sent more than its rate lets through.
    was_beyond: bool,
    /// How often in a row it was busy all the time and had sent less.
    short: u32,
}

/// What a port was found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It sends more than its rate lets through.
    Beyond,
    /// It sends less though packets wait.
    Short,
}

impl Telemetry {
    /// Takes what a packet brought that arrives at `now`; whether it brought anything. Rates that the header has no code for are in `rates`.
    pub(crate) fn hear(&mut self, now: Instant, stack: &IntStack, rates: &Rates) -> bool {
        let told = stack.hops();
        if told.is_empty() {
            return false;
        }
        let passed = now.since(self.at);
        let is_known = (stack.path(), told.len()) == (self.path, self.told.count) && passed < SILENCE;
        let now_ns = (now.as_ps() / 1_000).cast_signed();
        if !is_known {
            self.drifted = now_ns;
        }
        // Packets may come faster than a nanosecond of drift does.
        let drift = (now_ns - self.drifted) / DRIFT;
        self.drifted += drift * DRIFT;
        let mut is_anew = !is_known;
        (self.is_beyond, self.is_short) = (false, false);
        let hops = self.links.iter_mut().zip(&mut self.told.hops);
        for (((link, hop), told), rate) in hops.zip(told).zip(&rates.each) {
            let rate = told.rate.rate().unwrap_or(*rate);
            if is_known {
                is_anew |= link.hear(told, now_ns, drift, rate);
                if told.rate.rate().is_none() {
                    let found = link.found((told.queue_80 * QUEUED).into(), rate);
                    self.is_beyond |= found == Some(Found::Beyond);
                    self.is_short |= found == Some(Found::Short);
                }
            } else {
                let at = told.time_ns.into();
                let sent = u64::from(told.bytes_128 * SENT);
                let held = Held { at, sent, ..Held::default() };
                *link = Link { least: now_ns - at, at, sent, met: sent, held };
            }
            *hop = link.hop(told, rate);
        }
        if is_anew {
            self.anew = self.anew.wrapping_add(1);
            for link in &mut self.links {
                link.met = link.sent;
                link.hold_anew();
            }
            (self.is_beyond, self.is_short) = (false, false);
            // A header has twelve of its bits.
            self.told.path = PathId::new(self.anew << 12 | u32::from(stack.path()));
        }
        (self.told.count, self.path, self.at) = (told.len(), stack.path(), now);
        true
    }

    /// Whether by what came last a port has sent more than lets the rate through that was said for it: another is its, or they were said in
    /// another order than that of the hops.
    pub(crate) const fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    /// Whether by what came last a port has sent less than lets the rate through that was said for it, each time that it was looked at in a long while
    /// though packets waited: a lower one is its.
    pub(crate) const fn is_short(&self) -> bool {
        self.is_short
    }

    /// What was told last.
    pub(crate) const fn told(&self) -> &Told {
        &self.told
    }

    /// The same as it is read through the control socket at `now`; `None` where nothing was told yet.
    pub(crate) fn look(&self, now: Instant, is_ours: bool) -> Option<Way> {
        let (hops, path) = self.told.get();
        let hop = |(link, hop): (&Link, &Hop)| hops::Hop {
            queued: Bytes(hop.queue_bytes.into()),
            rate: BitsPerSec::from_kbps(hop.rate_kbps.into()),
            // A packet that others have overtaken may tell of a moment before the first.
            sent: Bytes(link.sent.wrapping_sub(link.met).cast_signed().max(0).unsigned_abs()),
            at_ns: link.at,
        };
        let told = self.links.iter().zip(hops).map(hop).collect();
        let way = Way { is_ours, path: path.get(), anew: self.anew, age: now.since(self.at), hops: told };
        (!hops.is_empty()).then_some(way)
    }
}

impl Link {
    /// Takes what a packet brought, since whose predecessor clocks may have drifted by so much; whether the count may have come round meanwhile.
    fn hear(&mut self, told: &IntHop, now: i64, drift: i64, rate: BitsPerSec) -> bool {
        self.least += drift;
        let latest = now - self.least + FASTER;
        let at = latest - (latest - i64::from(told.time_ns)).rem_euclid(NANOSECONDS);
        self.least = self.least.min(now - at);
        let ahead = at - std::mem::replace(&mut self.at, at);
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2²⁰ is meant")]
        let units = (self.sent / u64::from(SENT)) as u32;
        let more = told.bytes_128.wrapping_sub(units) % UNITS;
        if ahead < 0 {
            // Others have overtaken it, or only slow ones had come before, and its time is taken for one a round earlier: its count says which.
            let change = i64::from(more) - if more < UNITS / 2 { 0 } else { i64::from(UNITS) };
            self.sent = self.sent.wrapping_add_signed(change * i64::from(SENT));
            self.hold_anew();
            return false;
        }
        self.sent = self.sent.wrapping_add((more * SENT).into());
        rate.octets_in(Span::from_nanos(ahead.unsigned_abs())) >= u64::from(UNITS * SENT)
    }

    /// It is looked at from now on.
    fn hold_anew(&mut self) {
        self.held = Held { at: self.at, sent: self.sent, ..Held::default() };
    }

    /// Whether it has sent more than `rate` lets through since it had sent 32 KiB less, and before that as well, or [`BUSY`] times in a row
    /// less though packets waited, of which now are so many octets `queued`; it is looked anew then.
    fn found(&mut self, queued: u64, rate: BitsPerSec) -> Option<Found> {
        let Held { at, sent, queued: waited, was_beyond, short } = self.held;
        let more = self.sent.wrapping_sub(sent);
        let passed = u64::try_from(self.at - at).unwrap_or(0);
        if more < LOOKED_AT || passed == 0 {
            return None;
        }
        let most = |octets: u64| octets.saturating_add(octets / 4).saturating_add(STEPS);
        let through = rate.octets_in(Span::from_nanos(passed));
        let (is_beyond, is_less) = (more > most(through), most(more) < through);
        let short = match waited > more.saturating_add(STEPS) {
            true if is_less => short + 1,
            true => 0,
            false => short,
        };
        let (at, sent) = (self.at, self.sent);
        self.held = Held { at, sent, queued, was_beyond: is_beyond, short: short % BUSY };
        if was_beyond && is_beyond { Some(Found::Beyond) } else { (short == BUSY).then_some(Found::Short) }
    }

    fn hop(&self, told: &IntHop, rate: BitsPerSec) -> Hop {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2³² is meant")]
        let (at_ns, tx_bytes) = (self.at as u32, self.sent as u32);
        Hop {
            at_ns,
            tx_bytes,
            queue_bytes: told.queue_80 * QUEUED,
            rate_kbps: u32::try_from(rate.0 / 1_000).unwrap_or(u32::MAX),
        }
    }
}

impl Entry {
    /// What switches have told last of the way of our packets and of the peer's.
    pub(crate) fn ways(&self, now: Instant) -> Vec<Way> {
        let Some([theirs, ours]) = self.telemetry.as_deref() else { return Vec::new() };
        ours.look(now, true).into_iter().chain(theirs.look(now, false)).collect()
    }
}

/// What is kept of a queue pair's two ways, where its packets have telemetry.
pub(crate) fn of(layout: Layout) -> Option<Box<[Telemetry; 2]>> {
    layout.int_at().is_some().then(Box::default)
}

/// Whether a packet takes the telemetry of the one that it answers back.
pub(crate) const fn is_answer(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::ACKNOWLEDGE | Opcode::READ_ACKNOWLEDGE)
}

/// The words of telemetry among those of a packet.
pub(crate) fn block_of(layout: Layout) -> Option<Range<usize>> {
    layout.int_at().map(|at| at..at + IntStack::WORDS)
}

/// Whether a packet has room for what switches tell, and is one that they tell it in.
pub(crate) fn has_room(layout: Layout, opcode: Opcode) -> bool {
    layout.int_at().is_some() && opcode.shape().has(Shape::PAYLOAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Bytes;

    const RATE: BitsPerSec = BitsPerSec::from_mbps(200);
    const G100: BitsPerSec = BitsPerSec::from_gbps(100);

    fn rates() -> Rates {
        Rates::new(&[], RATE)
    }

    fn stack(switch: u32, hop: IntHop) -> IntStack {
        let mut stack = IntStack::default();
        stack.push(switch, hop);
        stack
    }

    #[test]
    fn what_a_switch_counts_goes_on_where_a_header_s_numbers_come_round_and_packets_are_late() {
        for (slow, ppm) in [(false, 100), (true, 100), (false, 0)] {
            let mut telemetry = Telemetry::default();
            // A switch whose clock is 5 s ahead. Packets come up to 40 ms apart, by which its clock comes round twice, and take up to 14 ms.
            let (mut left, mut sent, mut first, mut before) = (Instant::from_ps(0), 0_u64, None, None);
            for turn in 0..5_000_u64 {
                left += Span::from_micros(1 + turn * 7_919 % 40_000);
                sent += 1 + turn * 7_919 % 9_000_000;
                let drift = left.as_ps() / 1_000_000 * ppm;
                let clock =
                    5_000_000_000_000 + if slow { left.as_ps() - drift } else { left.as_ps() + drift };
                let clock = Instant::from_ps(clock);
                // The first is a slow one.
                let late = Span::from_micros(40 + (turn + 9) * 104_729 % 14_000);
                let now = (left + late).max(before.unwrap_or(left));
                before = Some(now);
                let hop = IntHop::new(BitsPerSec::from_gbps(25), clock, Bytes(sent), Bytes(turn * 80));
                assert!(telemetry.hear(now, &stack(7, hop), &rates()));
                let (&[heard], path) = telemetry.told().get() else { panic!("one hop") };
                let exact = Hop::new(clock, sent / 128 * 128, 0, 0);
                let base = (
                    exact.at_ns.wrapping_sub(heard.at_ns),
                    exact.tx_bytes.wrapping_sub(heard.tx_bytes),
                    path,
                );
                // Once a fast one has come, nothing is taken for another time.
                if turn > 20 {
                    assert_eq!(base, *first.get_or_insert(base), "turn {turn}");
                }
                assert_eq!((u64::from(heard.queue_bytes), heard.rate_kbps), (turn * 80, 25_000_000));
            }
        }
    }

    #[test]
    fn what_is_read_counts_on_beyond_what_a_header_and_a_law_hold_and_begins_anew_with_the_path() {
        let mut telemetry = Telemetry::default();
        assert_eq!(telemetry.look(Instant::from_ps(0), true), None);
        let mut hear = |micros: u64, sent| {
            let at = Instant::from_ps(micros * 1_000_000);
            let hop = IntHop::new(G100, at, Bytes(sent), Bytes(8_000));
            telemetry.hear(at, &stack(7, hop), &rates());
            telemetry.look(at + Span::from_micros(3), true).unwrap()
        };
        let first = hear(1_000, 6_400);
        let hop = hops::Hop { queued: Bytes(8_000), rate: G100, sent: Bytes(0), at_ns: 1_000_000 };
        assert_eq!((&*first.hops, first.age, first.is_ours), (&[hop][..], Span::from_micros(3), true));
        let mut last = first.clone();
        for turn in 1..=80 {
            last = hear(1_000 + turn * 10_000, 6_400 + turn * 125_000_000);
        }
        assert_eq!((last.hops[0].sent, last.path, last.anew), (Bytes(10_000_000_000), first.path, 1));
        let seldom = hear(900_000, 12_000_000_000);
        assert_eq!((seldom.hops[0].sent, seldom.anew), (Bytes(0), 2));
    }

    #[test]
    fn a_count_goes_on_where_the_first_packet_was_slow_and_those_behind_it_are_taken_for_earlier_ones() {
        let mut telemetry = Telemetry::default();
        let micros = |count: u64| Instant::from_ps(count * 1_000_000);
        let mut hear = |left, arrives, sent| {
            let hop = IntHop::new(RATE, micros(left), Bytes(sent), Bytes(0));
            telemetry.hear(micros(arrives), &stack(7, hop), &rates());
            let way = telemetry.look(micros(arrives), true).unwrap();
            (way.hops[0].sent, way.hops[0].at_ns)
        };
        let (_, first) = hear(1_000, 19_000, 0);
        let (_, second) = hear(18_900, 19_010, 1_000_000);
        assert!(second < first, "by as much as its clock comes round in, less what has passed");
        assert_eq!(hear(19_900, 20_010, 2_000_000), (Bytes(2_000_000), second + 1_000_000));
    }

    #[test]
    fn several_rates_are_of_as_many_hops_and_one_is_of_all() {
        let (mbps, at) = (BitsPerSec::from_mbps, Instant::from_ps(1_000_000));
        let hop = |rate| IntHop::new(rate, at, Bytes(0), Bytes(0));
        let heard = |said: &[BitsPerSec], hops: &[BitsPerSec]| {
            let (rates, mut stack, mut telemetry) =
                (Rates::new(said, RATE), IntStack::default(), Telemetry::default());
            hops.iter().for_each(|rate| stack.push(7, hop(*rate)));
            rates.suit(&stack).then(|| {
                telemetry.hear(at, &stack, &rates);
                telemetry.told().get().0.iter().map(|hop| hop.rate_kbps / 1_000).collect::<Vec<_>>()
            })
        };
        let slow = [mbps(100), mbps(1_000)];
        assert_eq!(heard(&[], &slow), Some(vec![200, 200]), "the link's");
        assert_eq!(heard(&slow[..1], &slow), Some(vec![100, 100]));
        assert_eq!(heard(&slow, &slow), Some(vec![100, 1_000]));
        assert_eq!(
            heard(&slow, &[G100, mbps(7)]),
            Some(vec![100_000, 1_000]),
            "a code says it, and has its place"
        );
        assert_eq!(heard(&slow, &[slow[0]; 3]), None);
        assert_eq!(heard(&slow, &slow[..1]), None);
        assert_eq!(heard(&slow, &[G100; 3]), Some(vec![100_000; 3]), "nothing is missing");
    }

    #[test]
    fn rates_that_were_said_in_the_wrong_order_are_noticed_by_a_burst_and_right_ones_never() {
        let (slow, fast) = (BitsPerSec::from_mbps(100), BitsPerSec::from_gbps(1));
        let micros = |count: u64| Instant::from_ps(count * 1_000_000);
        // Two hundred packets of 1 KB, of which a burst of 128 leaves the first port at 1 Gb/s, the second one at 100 Mb/s.
        let seen = |said: [BitsPerSec; 2]| {
            let (rates, mut telemetry) = (Rates::new(&said, fast), Telemetry::default());
            let mut ports = [(fast, Instant::ZERO), (slow, Instant::ZERO)];
            (0..200_u64)
                .filter(|n| {
                    let (mut stack, mut at) =
                        (IntStack::default(), micros(if *n < 128 { 0 } else { 90 * n }));
                    for (rate, free) in &mut ports {
                        at = at.max(*free);
                        stack.push(7, IntHop::new(*rate, at, Bytes(n * 1_100), Bytes(0)));
                        at += rate.time_for(1_100);
                        *free = at;
                    }
                    telemetry.hear(at, &stack, &rates);
                    telemetry.is_beyond()
                })
                .count()
        };
        assert_eq!(seen([fast, slow]), 0);
        assert!(seen([slow, fast]) > 0);
        assert!(seen([slow, slow]) > 0);
        assert_eq!(seen([fast, fast]), 0, "a rate that is too high is never passed");
    }

    #[test]
    fn a_rate_that_is_too_high_is_noticed_while_packets_wait_and_never_else() {
        let (slow, mbps) = (BitsPerSec::from_mbps(100), BitsPerSec::from_mbps);
        // Four thousand packets of 1,100 octets at 100 Mb/s, behind which so much waits; one in `halts` leaves 10 ms late.
        let seen = |said: BitsPerSec, queued: u64, halts: u64| {
            let (rates, mut telemetry) = (Rates::new(&[said], slow), Telemetry::default());
            let mut at = Instant::ZERO;
            (0..4_000_u64)
                .filter(|n| {
                    at += slow.time_for(1_100)
                        + if n % halts == 0 { Span::from_millis(10) } else { Span::ZERO };
                    let hop = IntHop::new(slow, at, Bytes(n * 1_100), Bytes(queued));
                    telemetry.hear(at, &stack(7, hop), &rates);
                    telemetry.is_short()
                })
                .count()
        };
        let never = u64::MAX;
        assert_eq!(seen(mbps(1_000), 100_000, never), 4_000 / 30 / 64);
        assert_eq!(seen(mbps(1_000), 30_000, never), 0, "the port may have been idle");
        assert_eq!(seen(slow, 100_000, never), 0);
        assert_eq!(seen(mbps(120), 100_000, never), 0);
        assert_eq!(seen(slow, 100_000, 100), 0, "it has stood still now and then");
    }

    #[test]
    fn a_slow_clock_is_followed_however_fast_packets_come() {
        let mut telemetry = Telemetry::default();
        let mut now = Instant::from_ps(0);
        for _ in 0..100_000 {
            now += Span::from_micros(3);
            let clock = Instant::from_ps(now.as_ps() - now.as_ps() / 1_000_000 * 190);
            telemetry.hear(now, &stack(7, IntHop::new(RATE, clock, Bytes(0), Bytes(0))), &rates());
        }
        let link = telemetry.links[0];
        let behind = (now.as_ps() / 1_000).cast_signed() - link.at;
        assert!((56_000..58_000).contains(&behind) && behind - link.least < 2, "{behind} {link:?}");
    }

    #[test]
    fn a_packet_that_others_have_overtaken_tells_of_a_moment_before_theirs() {
        let mut telemetry = Telemetry::default();
        let now = Instant::from_ps(9_000_000_000);
        let hop = |micros: u64, sent| {
            IntHop::new(RATE, Instant::from_ps(micros * 1_000_000), Bytes(sent), Bytes(0))
        };
        let mut hear = |hop| {
            telemetry.hear(now, &stack(7, hop), &rates());
            (telemetry.told().get().0[0], telemetry.told().get().1)
        };
        let (late, path) = hear(hop(700, 1 << 20));
        let (early, same) = hear(hop(600, 1 << 19));
        assert_eq!(late.at_ns.wrapping_sub(early.at_ns), 100_000);
        assert_eq!(late.tx_bytes.wrapping_sub(early.tx_bytes), 1 << 19);
        assert_eq!(
            (early.rate_kbps, path),
            (200_000, same),
            "a rate without a code is the one that was said"
        );
    }

    #[test]
    fn where_a_count_may_have_come_round_or_other_switches_told_the_path_is_another_and_else_it_is_not() {
        let mut telemetry = Telemetry::default();
        let mut hear = |micros: u64, switch, rate| {
            let at = Instant::from_ps(micros * 1_000_000);
            telemetry.hear(at, &stack(switch, IntHop::new(rate, at, Bytes(micros), Bytes(0))), &rates());
            telemetry.told().get().1
        };
        let first = hear(0, 7, G100);
        assert_eq!(hear(10_000, 7, G100), first, "125 MB of 134");
        let second = hear(21_000, 7, G100);
        assert_ne!(second, first, "137 MB may have been sent");
        let other = hear(21_100, 8, G100);
        assert_ne!(other, second);
        assert_ne!(hear(21_200, 7, G100), second, "what was kept of it has gone");
        let slow = hear(22_000, 7, RATE);
        assert_eq!(hear(900_000, 7, RATE), slow);
        assert_ne!(hear(2_000_000, 7, RATE), slow, "a second of silence");
        let kept = telemetry.told().get().0.to_vec();
        assert!(!telemetry.hear(Instant::from_ps(2_000_000_000_001), &IntStack::default(), &rates()));
        assert_eq!(telemetry.told().get().0, kept, "a packet without any changes nothing");
    }
}
