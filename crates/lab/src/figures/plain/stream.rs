//! A NewReno sender and the receiver that answers each of its segments, over a plain bottleneck.

use super::bottleneck::{Answer, Flow};
use super::newreno::NewReno;
use roci_units::{Instant, Random, Ratio, Span};
use std::collections::BTreeSet;

/// Both ends of a stream without end.
#[derive(Clone, Debug)]
pub(in super::super) struct Stream {
    sender: NewReno,
    segment: u64,
    /// The share of segments that the receiver loses, and the chance by which.
    loss: Ratio,
    random: Random,
    /// The first segment that has not come, and those beyond it that have.
    pub(in super::super) expected: u64,
    beyond: BTreeSet<u64>,
    /// Segments sent for the first time.
    sent: u64,
    /// Segments sent again.
    pub(in super::super) again: u64,
}

impl Stream {
    /// A stream in segments of `segment` octets, with windows of `initial` segments at first and `most` at most.
    pub(in super::super) fn new(
        segment: u64,
        initial: u64,
        most: u64,
        rto: Span,
        loss: Ratio,
        random: Random,
    ) -> Self {
        let sender = NewReno::new(segment, initial, most * segment, u64::MAX / 2, rto);
        let beyond = BTreeSet::new();
        Self { sender, segment, loss, random, expected: 0, beyond, sent: 0, again: 0 }
    }
}

impl Flow for Stream {
    fn send(&mut self, now: Instant) -> Result<u64, Instant> {
        let number = self.sender.next_segment(now).ok_or(Instant::NEVER)? / self.segment;
        if number < self.sent {
            self.again += 1;
        } else {
            self.sent = number + 1;
        }
        Ok(number)
    }

    fn arrive(&mut self, _now: Instant, number: u64, _marked: bool) -> Option<Answer> {
        if self.random.chance(self.loss) {
            return None;
        }
        if number >= self.expected {
            self.beyond.insert(number);
            while self.beyond.remove(&self.expected) {
                self.expected += 1;
            }
        }
        Some(Answer::Ack(self.expected))
    }

    fn hear(&mut self, now: Instant, answer: Answer) {
        if let Answer::Ack(number) = answer {
            self.sender.on_ack(now, number * self.segment);
        }
    }

    fn deadline(&self) -> Instant {
        self.sender.deadline()
    }

    fn expire(&mut self, now: Instant) {
        self.sender.on_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bottleneck::Bottleneck;
    use super::*;
    use roci_units::BitsPerSec;

    fn run(flows: &mut [Stream], capacity: u64) -> u64 {
        let net = Bottleneck {
            hosts: 1,
            rate: BitsPerSec::from_gbps(8),
            delay: Span::from_micros(2),
            wire: 1_000,
            frame: 1_000,
            capacity,
            back: Span::from_micros(4),
            red: None,
            pause: None,
            seed: 1,
        };
        net.run(flows, Instant::ZERO + Span::from_millis(20))
    }

    fn stream(loss: Ratio, seed: u64) -> Stream {
        Stream::new(1_000, 10, 64, Span::from_millis(1), loss, Random::new(seed, 1))
    }

    #[test]
    fn streams_without_loss_fill_the_link_and_send_nothing_twice() {
        let mut flows: Vec<Stream> = (0..4).map(|seed| stream(Ratio::ZERO, seed)).collect();
        assert_eq!(run(&mut flows, 1 << 30), 0);
        let came: u64 = flows.iter().map(|flow| flow.expected).sum();
        assert!(came.abs_diff(20_000) < 100, "{came}");
        assert!(flows.iter().all(|flow| flow.again == 0 && flow.expected > 3_000));
    }

    #[test]
    fn what_the_receiver_loses_is_sent_again() {
        let mut flows = vec![stream(Ratio::new(1, 100), 7)];
        run(&mut flows, 1 << 30);
        let (again, expected) = (flows[0].again, flows[0].expected);
        assert!(again * 200 > expected && again * 50 < expected, "{again} of {expected}");
    }
}
