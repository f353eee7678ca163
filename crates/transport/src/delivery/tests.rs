//! A sender, a receiver and a channel that loses, delays and doubles packets: whatever it does, each packet is
//! delivered once, in order, and the exchange ends.

use super::*;
use crate::config::Recovery;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{Instant, Psn, Span};

/// What a channel does, in parts of 256.
#[derive(Clone, Copy, Debug)]
struct Faults {
    loss: u8,
    delay: u8,
    double: u8,
}

#[derive(Clone, Copy, Debug)]
enum Packet {
    Data(Psn),
    Answer(Event),
}

/// Packets on their way, in the order of arrival.
struct Channel {
    faults: Faults,
    trims: bool,
    random: u64,
    serial: u64,
    under_way: BTreeMap<(u64, u64), Packet>,
}

impl Channel {
    fn draw(&mut self) -> u8 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 56) as u8
    }

    fn put(&mut self, now: u64, packet: Packet) {
        let copies = if self.draw() < self.faults.double { 2 } else { 1 };
        for _ in 0..copies {
            if self.draw() < self.faults.loss {
                // Half of what NDP's switches cannot queue arrives without its payload.
                let Packet::Data(psn) = packet else { continue };
                if self.trims && self.draw() < 128 {
                    self.serial += 1;
                    let notice = Packet::Answer(Event::Lost { psn });
                    self.under_way.insert((now + 40, self.serial), notice);
                }
                continue;
            }
            let late = if self.draw() < self.faults.delay { u64::from(self.draw()) } else { 0 };
            self.serial += 1;
            self.under_way.insert((now + 20 + late, self.serial), packet);
        }
    }

    fn get(&mut self, now: u64) -> Option<Packet> {
        let first = self.under_way.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// What an exchange did.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    sent: u32,
    sent_again: u32,
    timeouts: u32,
}

struct Exchange {
    recovery: Recovery,
    first: Psn,
    packets: u32,
    window: u32,
    /// Slots in each pool.
    slots: u32,
    faults: Faults,
    seed: u64,
}

impl Exchange {
    /// Runs it, one packet sent per tick, and checks what was delivered.
    fn run(&self) -> Outcome {
        let (mut send_pool, mut receive_pool) =
            (Sender::pool(128, self.slots), Receiver::pool(128, self.slots));
        let mut sender = Sender::new(self.first, Program::new(self.recovery, 10, self.first));
        let mut receiver = Receiver::new(self.first, self.recovery.keeps_out_of_order());
        let trims = self.recovery == Recovery::Ndp;
        let mut channel =
            Channel { faults: self.faults, trims, random: self.seed, serial: 0, under_way: BTreeMap::new() };
        let mut delivered = vec![0u32; self.packets as usize];
        let mut outcome = Outcome { sent: 0, sent_again: 0, timeouts: 0 };
        let (mut messages, mut quiet_since) = (0, 0);
        let end = self.first.plus(self.packets);
        let mut now = 0;
        while sender.start() != end {
            now += 1;
            assert!(now < 50_000_000, "the exchange ends: {sender:?} {receiver:?}");
            while let Some(packet) = channel.get(now) {
                match packet {
                    Packet::Data(psn) => {
                        let standing = receiver.standing(&receive_pool, psn);
                        if matches!(standing, Standing::Next | Standing::Ahead) {
                            delivered[psn.since(self.first).unsigned_abs() as usize] += 1;
                        }
                        let ends = psn.get().is_multiple_of(5);
                        messages += receiver.accept(&mut receive_pool, psn, ends).messages;
                        let cumulative = receiver.expected();
                        let kept = matches!(standing, Standing::Ahead | Standing::Kept);
                        let answer = match standing {
                            _ if self.recovery.owns_window() => {
                                let selective = (kept && self.recovery == Recovery::Sack).then_some(psn);
                                Some(Event::Ack { cumulative, selective })
                            }
                            Standing::Next | Standing::Behind => {
                                Some(Event::Ack { cumulative, selective: None })
                            }
                            _ if self.recovery == Recovery::Ndp => {
                                Some(Event::Ack { cumulative, selective: kept.then_some(psn) })
                            }
                            Standing::Ahead | Standing::Kept => {
                                Some(Event::Nack { cumulative, trigger: Some(psn) })
                            }
                            Standing::Beyond => {
                                receiver.complains().then_some(Event::Nack { cumulative, trigger: None })
                            }
                        };
                        if let Some(answer) = answer {
                            channel.put(now, Packet::Answer(answer));
                        }
                    }
                    Packet::Answer(event) => {
                        let observed =
                            sender.observe(&mut send_pool, event).expect("the channel invents nothing");
                        if observed.advanced > 0 {
                            quiet_since = now;
                        }
                        self.settle(&mut sender, &mut send_pool, now, &observed);
                    }
                }
            }
            let timeout = sender.timeout(sender.next(), Span::from_ps(600)).as_ps();
            if sender.in_flight() > 0 && now - quiet_since > timeout {
                outcome.timeouts += 1;
                quiet_since = now;
                let observed = sender.observe(&mut send_pool, Event::Timeout).unwrap();
                self.settle(&mut sender, &mut send_pool, now, &observed);
            }
            if let Some(run) = sender.resend(&send_pool, 1) {
                let ahead = run.psn.since(sender.start()).unsigned_abs();
                assert!(
                    run.packets == 1 && ahead < sender.in_flight(),
                    "only what is in flight is sent again"
                );
                sender.resent(&mut send_pool, run);
                outcome.sent_again += 1;
                channel.put(now, Packet::Data(run.psn));
            } else if sender.next() != end
                && sender.room(&send_pool, sender.next()) > 0
                && sender.in_flight() < self.window
            {
                if sender.in_flight() == 0 {
                    quiet_since = now;
                }
                channel.put(now, Packet::Data(sender.next()));
                sender.sent(1);
                outcome.sent += 1;
            }
        }
        assert!(delivered.iter().all(|&times| times == 1), "each once: {delivered:?}");
        assert_eq!(receiver.expected(), end);
        let ends = (0..self.packets).filter(|&n| self.first.plus(n).get().is_multiple_of(5)).count();
        assert_eq!(messages as usize, ends, "each message ends once");
        assert_eq!((send_pool.taken(), receive_pool.taken()), (0, 0), "all bitmaps are given back");
        outcome
    }

    fn settle(&self, sender: &mut Sender, pool: &mut Pool, now: u64, observed: &Observed) {
        if observed.wants_decision {
            let decision = sender.decide(pool, Instant::from_ps(now), observed);
            sender.apply(pool, &decision);
        }
    }
}

const ALL: [Recovery; 7] = [
    Recovery::GoBackN,
    Recovery::Irn,
    Recovery::Reno,
    Recovery::NewReno,
    Recovery::Sack,
    Recovery::Ndp,
    Recovery::Srnic,
];

const CLEAN: Faults = Faults { loss: 0, delay: 0, double: 0 };

fn exchange(recovery: Recovery, faults: Faults) -> Exchange {
    Exchange {
        recovery,
        first: Psn::new(0x00ff_ff00),
        packets: 2_000,
        window: 100,
        slots: 1,
        faults,
        seed: 7,
    }
}

#[test]
fn without_faults_nothing_is_sent_again() {
    for recovery in ALL {
        let outcome = exchange(recovery, CLEAN).run();
        assert_eq!(outcome, Outcome { sent: 2_000, sent_again: 0, timeouts: 0 });
    }
}

#[test]
fn selective_repeat_sends_little_more_than_was_lost_and_go_back_n_much_more() {
    let faults = Faults { loss: 3, ..CLEAN }; // 1.2 % each way
    let selective = exchange(Recovery::Irn, faults).run();
    let go_back = exchange(Recovery::GoBackN, faults).run();
    let sack = exchange(Recovery::Sack, faults).run();
    assert!(selective.sent_again.max(sack.sent_again) < 2_000 * 4 / 100, "{selective:?} {sack:?}");
    assert!(go_back.sent_again > 5 * selective.sent_again, "{go_back:?} against {selective:?}");
    let srnic = exchange(Recovery::Srnic, faults).run();
    assert!(srnic.sent_again < 2_000 * 4 / 100, "{srnic:?}");
}

#[test]
fn srnic_sees_retransmissions_lost_where_irn_waits_for_the_timeout() {
    let faults = Faults { loss: 20, ..CLEAN }; // 7.8 % each way
    let [selective, srnic] =
        [Recovery::Irn, Recovery::Srnic].map(|recovery| exchange(recovery, faults).run());
    assert!(srnic.timeouts < selective.timeouts, "{srnic:?} against {selective:?}");
}

#[test]
fn each_of_the_windows_repairs_more_without_a_timeout_than_the_one_before() {
    let faults = Faults { loss: 3, ..CLEAN };
    let timeouts = |recovery| -> u32 {
        (1..=20).map(|seed| Exchange { seed, ..exchange(recovery, faults) }.run().timeouts).sum()
    };
    let [reno, newreno, sack] = [Recovery::Reno, Recovery::NewReno, Recovery::Sack].map(timeouts);
    assert!(reno > newreno && newreno > sack, "{reno} {newreno} {sack}");
}

#[test]
fn the_timeouts_of_irn_follow_the_packets_in_flight() {
    let mut sender = Sender::new(Psn::new(0), Program::new(Recovery::Irn, 10, Psn::new(0)));
    let spans: Vec<Span> = (0..5)
        .map(|_| {
            sender.sent(1);
            sender.timeout(sender.next(), Span::from_micros(320))
        })
        .collect();
    let (low, high) = (Span::from_micros(100), Span::from_micros(320));
    assert_eq!(spans, [low, low, low, high, high]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn each_packet_is_delivered_once_and_the_exchange_ends(
        recovery in prop::sample::select(&ALL[..]),
        first in prop_oneof![0u32..1 << 24, (1u32 << 24) - 400..1 << 24],
        packets in 1u32..600,
        window in 1u32..=128,
        slots in 0u32..=1,
        faults in (0u8..80, 0u8..80, 0u8..80).prop_map(|(loss, delay, double)| Faults { loss, delay, double }),
        seed: u64,
    ) {
        let first = Psn::new(first);
        let outcome = Exchange { recovery, first, packets, window, slots, faults, seed }.run();
        prop_assert_eq!(outcome.sent, packets);
    }
}
