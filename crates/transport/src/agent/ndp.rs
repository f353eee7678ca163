//! NDP's pull pacer (Handley et al., SIGCOMM 2017, §3.2): one for each host, for all that it receives.
//!
//! Each packet that arrives, whole or trimmed, earns its sender a pull. Pulls leave one by one, spaced by the time that
//! the packet which each draws will take on the host's link, for one sender after the other: so what arrives fills the
//! link, in equal shares, and no more. A sender that says that nothing follows is pulled for what is missing alone.

use super::PortAgent;
use crate::credit::Pacer;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{BitsPerSec, Instant, Qpn, Span};

/// How much of the time by which a pull leaves late is made up, as where a NIC sends at the edges of a clock alone.
const SLACK: Span = Span::from_micros(1);

/// The pulls of a port.
#[derive(Debug)]
pub struct Pulls {
    /// It is late for no longer than somebody waits.
    pacer: Pacer,
    /// Octets on the wire besides payload of a packet that is pulled.
    overhead: u32,
    senders: Vec<Sender>,
    /// Where a queue pair's stands, and places of queue pairs that have ended.
    places: BTreeMap<u32, u32>,
    vacant: Vec<u32>,
    /// Senders that are to be pulled, each once.
    turns: VecDeque<u32>,
}

/// What is known of one queue pair's sender.
#[derive(Debug)]
struct Sender {
    qpn: u32,
    /// Pulls that it has earned and not been sent.
    earned: u32,
    /// Pulls sent.
    pulled: u32,
    /// Octets of payload of the longest packet that came whole.
    packet: u32,
    /// What is taken for that until one comes: a header does not tell how long its packet was.
    guess: u32,
}

impl Pulls {
    /// A pacer for a port of `link`, whose data packets take `overhead` octets besides their payload.
    #[must_use]
    pub fn new(link: BitsPerSec, overhead: u16) -> Self {
        let mut pacer = Pacer::new(SLACK);
        pacer.set_rate(Instant::ZERO, link.as_kbps());
        Self {
            pacer,
            overhead: overhead.into(),
            senders: Vec::new(),
            places: BTreeMap::new(),
            vacant: Vec::new(),
            turns: VecDeque::new(),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most one for each queue pair")]
    fn sender(&mut self, qpn: u32) -> u32 {
        *self.places.entry(qpn).or_insert_with(|| {
            let new = Sender { qpn, earned: 0, pulled: 0, packet: 0, guess: 0 };
            if let Some(place) = self.vacant.pop() {
                self.senders[place as usize] = new;
                return place;
            }
            self.senders.push(new);
            self.senders.len() as u32 - 1
        })
    }
}

impl PortAgent for Pulls {
    fn on_event(&mut self, event: &Event<'_>) {
        if !event.class.meets(Class::DATA.with(Class::TRIMMED)) {
            return;
        }
        let place = self.sender(event.qpn);
        let sender = &mut self.senders[place as usize];
        if event.class == Class::TRIMMED {
            sender.guess = event.length;
        } else {
            sender.packet = sender.packet.max(event.length);
        }
        let waited = sender.earned > 0;
        sender.earned += 1;
        if event.drained {
            sender.earned = sender.earned.min(event.missing);
        }
        match (waited, sender.earned > 0) {
            (false, true) => {
                if self.turns.is_empty() {
                    self.pacer.resume(event.now);
                }
                self.turns.push_back(place);
            }
            (true, false) => self.turns.retain(|turn| *turn != place),
            _ => {}
        }
    }

    fn poll(&mut self, now: Instant) -> Option<(Qpn, Emit)> {
        if self.pacer.eligible_at() > now {
            return None;
        }
        let place = self.turns.pop_front()?;
        let sender = &mut self.senders[place as usize];
        sender.earned -= 1;
        sender.pulled = sender.pulled.wrapping_add(1);
        if sender.earned > 0 {
            self.turns.push_back(place);
        }
        let packet = if sender.packet > 0 { sender.packet } else { sender.guess };
        self.pacer.charge(now, packet + self.overhead);
        let part = Part { end: sender.pulled, ..Part::default() };
        Some((Qpn::new(sender.qpn), Emit { part, ..Emit::plain(Class::PULL) }))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (!self.turns.is_empty()).then(|| self.pacer.eligible_at())
    }

    fn wake(&mut self, _now: Instant) {
        // The pacer tells in `poll` that the time has come.
    }

    fn forget(&mut self, qpn: Qpn) {
        // Its place is for whoever comes next: numbers are drawn, and seldom come again.
        if let Some(place) = self.places.remove(&qpn.get()) {
            self.turns.retain(|turn| *turn != place);
            self.vacant.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulls() -> Pulls {
        Pulls::new(BitsPerSec::from_gbps(10), 250)
    }

    fn arrives(pulls: &mut Pulls, qpn: u32, class: Class, drained: bool, missing: u32) {
        let event = Event { class, qpn, length: 1_000, drained, missing, ..Event::default() };
        pulls.on_event(&event);
    }

    /// When each pull goes, in nanoseconds, whose it is and what it counts.
    fn sent(pulls: &mut Pulls) -> Vec<(u64, u32, u32)> {
        let mut now = Instant::ZERO;
        let mut all = Vec::new();
        while let Some(at) = pulls.next_wakeup() {
            now = now.max(at);
            pulls.wake(now);
            while let Some((qpn, emit)) = pulls.poll(now) {
                all.push((now.as_ps() / 1_000, qpn.get(), emit.part.end));
            }
        }
        all
    }

    #[test]
    fn pulls_are_a_packets_time_apart_and_take_turns() {
        let mut pulls = pulls();
        for qpn in [2, 2, 2, 3, 4] {
            arrives(&mut pulls, qpn, Class::WRITE, false, 0);
        }
        let expected = [(0, 2, 1), (1_000, 3, 1), (2_000, 4, 1), (3_000, 2, 2), (4_000, 2, 3)];
        assert_eq!(sent(&mut pulls), expected);
    }

    #[test]
    fn pulls_that_wait_for_the_edges_of_a_clock_are_as_many_and_idle_time_is_lost() {
        let mut pulls = pulls();
        let edge = |at: Instant| Instant::from_ps(at.as_ps().next_multiple_of(300_000));
        (0..31).for_each(|_| arrives(&mut pulls, 2, Class::WRITE, false, 0));
        let mut last = Instant::ZERO;
        while let Some(at) = pulls.next_wakeup() {
            last = edge(at);
            assert!(pulls.poll(last).is_some());
        }
        assert_eq!(last, edge(Instant::from_ps(30_000_000)), "thirty packets' time after the first");
        // What comes long after is spaced as ever.
        let now = Instant::from_ps(90_000_000);
        for _ in 0..2 {
            let event = Event { class: Class::WRITE, qpn: 2, length: 1_000, now, ..Event::default() };
            pulls.on_event(&event);
        }
        assert!(pulls.poll(now).is_some() && pulls.poll(now).is_none());
        assert_eq!(pulls.next_wakeup(), Some(now + Span::from_nanos(1_000)));
    }

    #[test]
    fn a_trimmed_packet_earns_a_pull_as_well() {
        let mut pulls = pulls();
        arrives(&mut pulls, 2, Class::TRIMMED, false, 3);
        assert_eq!(sent(&mut pulls).len(), 1);
    }

    #[test]
    fn small_packets_are_pulled_as_fast_as_they_come_though_some_are_trimmed() {
        let mut pulls = pulls();
        let small = Event { class: Class::WRITE, qpn: 2, length: 125, ..Event::default() };
        arrives(&mut pulls, 2, Class::TRIMMED, false, 3);
        pulls.on_event(&small);
        arrives(&mut pulls, 2, Class::TRIMMED, false, 3);
        assert_eq!(sent(&mut pulls), [(0, 2, 1), (300, 2, 2), (600, 2, 3)]);
    }

    #[test]
    fn who_has_nothing_more_is_pulled_for_what_is_missing() {
        for (missing, expected) in [(0, 0), (1, 1), (2, 2), (9, 3)] {
            let mut pulls = pulls();
            arrives(&mut pulls, 2, Class::WRITE, false, 0);
            arrives(&mut pulls, 2, Class::WRITE, false, 0);
            arrives(&mut pulls, 2, Class::WRITE, true, missing);
            assert_eq!(sent(&mut pulls).len(), expected, "{missing} missing");
        }
    }

    #[test]
    fn queue_pairs_that_come_and_go_take_no_more_room_than_there_are_at_once() {
        let mut pulls = pulls();
        for qpn in 2..1_000 {
            arrives(&mut pulls, 1, Class::WRITE, false, 0);
            arrives(&mut pulls, qpn, Class::WRITE, false, 0);
            pulls.forget(Qpn::new(qpn));
        }
        assert_eq!((pulls.senders.len(), pulls.places.len()), (2, 1));
        assert_eq!(sent(&mut pulls).len(), 998, "those of the one that stays");
    }

    #[test]
    fn a_queue_pair_that_begins_anew_counts_from_zero() {
        let mut pulls = pulls();
        arrives(&mut pulls, 2, Class::WRITE, false, 0);
        arrives(&mut pulls, 2, Class::WRITE, false, 0);
        assert_eq!(pulls.poll(Instant::ZERO).map(|(_, emit)| emit.part.end), Some(1));
        pulls.forget(Qpn::new(2));
        assert_eq!(pulls.next_wakeup(), None);
        arrives(&mut pulls, 2, Class::WRITE, false, 0);
        assert_eq!(sent(&mut pulls).last().map(|last| last.2), Some(1));
    }
}
