//! One fault at work on the packets that cross its link.

use super::{Fault, FaultSpec};
use crate::packet::Packet;
use roci_units::{BitsPerSec, Pace, Random};
use roci_wire::ethernet::WIRE_OVERHEAD;
use std::collections::VecDeque;

/// A fault where it stands.
#[derive(Debug)]
pub(super) struct Node {
    fault: Fault,
    /// Its place among the faults of the configuration.
    pub(super) place: u32,
    start: u64,
    until: u64,
    random: Random,
    /// Gilbert-Elliott: the place of its chain among those of the line, and whether that is in its bad state. Others leave the one
    /// at their place as it is.
    pub(super) chain: usize,
    pub(super) bad: bool,
    /// Delay: when the last packet came out, and the pace at which they may follow each other.
    last: u64,
    pub(super) pace: Pace,
    /// Forger: when packets were sent and their octets, those within the window; their sum; when it may call again.
    window: VecDeque<(u64, u32)>,
    octets: u64,
    ready_at: u64,
}

/// What one node does to one copy.
pub(super) enum Fate {
    Pass,
    Lost,
    Corrupt,
    Twice,
    Until(u64),
    Overtaken(u64),
}

impl Node {
    /// That of `spec`, which has this `place` in the configuration, on a link of `rate`. It draws from `random`.
    pub(super) fn new(place: u32, spec: &FaultSpec, rate: BitsPerSec, random: Random, chain: usize) -> Self {
        Self {
            fault: spec.fault,
            place,
            start: spec.start.as_ps(),
            until: spec.until.as_ps(),
            random,
            chain,
            bad: false,
            last: 0,
            pace: Pace::new(rate),
            window: VecDeque::new(),
            octets: 0,
            ready_at: 0,
        }
    }

    /// Whether it is in force at `now`, or packets that it has held back are still on their way.
    pub(super) const fn concerns(&self, now: u64) -> bool {
        self.start <= now && (now < self.until || now < self.last)
    }

    /// The first instant from `time` on at which it has the link down; `u64::MAX` if there is none.
    pub(super) fn next_down(&self, time: u64) -> u64 {
        let time = time.max(self.start);
        let at = match self.fault {
            Fault::Down => time,
            Fault::Flap(turns) if !turns.down.is_zero() => turns.next_down(time),
            _ => u64::MAX,
        };
        if at < self.until { at } else { u64::MAX }
    }

    /// When it lets the link up again, if it has it down at `time`.
    pub(super) fn down_until(&self, time: u64) -> Option<u64> {
        let up = match self.fault {
            Fault::Flap(turns) if !turns.up.is_zero() => turns.next_up(time).min(self.until),
            _ => self.until,
        };
        (self.next_down(time) == time && time < u64::MAX).then_some(up)
    }

    pub(super) fn meet(&mut self, now: u64, arrival: u64, packet: &Packet) -> Fate {
        let random = &mut self.random;
        match self.fault {
            Fault::Loss(p) if random.chance(p) => Fate::Lost,
            Fault::BitErrors(rate) if random.next_u64() >= rate.survival(packet.frame.into()) => Fate::Lost,
            Fault::Corrupt(p) if random.chance(p) => Fate::Corrupt,
            Fault::Duplicate(p) if random.chance(p) => Fate::Twice,
            Fault::Reorder { chance, delay } if random.chance(chance) => {
                Fate::Overtaken(arrival.saturating_add(delay.as_ps()))
            }
            Fault::GilbertElliott { to_bad, to_good, loss_good, loss_bad, .. } => {
                self.bad ^= random.chance(if self.bad { to_good } else { to_bad });
                let lost = random.chance(if self.bad { loss_bad } else { loss_good });
                if lost { Fate::Lost } else { Fate::Pass }
            }
            Fault::Delay { delay, jitter } => {
                let mut held = arrival;
                if now < self.until {
                    let extra = random.below(jitter.as_ps().saturating_add(1).max(1));
                    held = held.saturating_add(delay.as_ps()).saturating_add(extra);
                }
                // A time that is rounded by itself would have a link that is always busy fall behind ever more.
                let behind = self.pace.advance(u32::from(packet.frame) + WIRE_OVERHEAD);
                self.last = held.max(self.last.saturating_add(behind.as_ps()));
                Fate::Until(self.last)
            }
            Fault::Flap(turns) if turns.next_down(now) == now => Fate::Lost,
            Fault::Down => Fate::Lost,
            _ => Fate::Pass,
        }
    }

    /// A forger counts the packet; whether the load over the window now exceeds the threshold, the packet carries
    /// data, and the last call is long enough ago.
    pub(super) fn calls_for_cnp(&mut self, now: u64, packet: &Packet) -> bool {
        let Fault::ForgedCnp { threshold, window, cooldown } = self.fault else { return false };
        let octets = u32::from(packet.frame) + WIRE_OVERHEAD;
        self.window.push_back((now, octets));
        self.octets += u64::from(octets);
        while let Some(&(sent, octets)) = self.window.front() {
            if sent + window.as_ps() > now {
                break;
            }
            self.window.pop_front();
            self.octets -= u64::from(octets);
        }
        let over = self.octets > threshold.octets_in(window);
        let call = over && packet.header.payload > 0 && now >= self.ready_at;
        if call {
            self.ready_at = now.saturating_add(cooldown.as_ps());
        }
        call
    }
}
