//! The requester's half of SRNIC's selective repeat (Wang et al., *SRNIC: A Scalable Architecture for RDMA NICs*, NSDI
//! 2023, §4.4.2).
//!
//! The first NACK brings the queue pair into the *loss recovery state*, in which it has bitmaps; what lies below the
//! packet that drew it is sent again. It leaves the state when all that was sent again is acknowledged. What the paper
//! leaves to its software, which packets to send again and when a retransmission was lost in its turn, is decided thus:
//! retransmissions go before new packets, so when a packet arrives that was new when the first missing one was sent
//! again, that one was lost once more. A fabric that reorders by more than a round trip makes the guess wrong, which
//! costs a duplicate.
//!
//! After a timeout the first packet goes again; if what was sent before it is still not acknowledged when that one is,
//! it was the tail of a burst that was lost, and the next goes, a round trip a packet instead of a timeout.
//!
//! Its decisions are for a slow path: the queue pair goes on sending new packets while one is out.

use super::program::{Decision, Event, Input, Recover};
use roci_units::Psn;

/// The program, with its place in the loss recovery state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Srnic {
    recovering: bool,
    /// The timer has gone, and packets below `tail` are not acknowledged.
    timed_out: bool,
    /// The packet after the highest that is known to have arrived: all missing below it are marked. Beyond it there is
    /// nothing to wait for.
    until: Psn,
    /// The window's start when `fresh` was set.
    left: Psn,
    /// A packet that had never been sent when the one at `left` was marked last.
    fresh: Psn,
    /// The first packet that had never been sent when any was marked last.
    newest: Psn,
    /// The first packet that had not been sent when the timer went last.
    tail: Psn,
}

impl Srnic {
    /// A packet beyond the first missing one has arrived.
    fn arrived(&mut self, input: &Input<'_>, psn: Psn) -> Option<(Psn, Psn)> {
        let start = input.start;
        if psn.since(start) <= 0 {
            return None;
        }
        if !self.recovering {
            self.until = psn.plus(1);
            return self.mark(input, start, psn);
        }
        let ahead = psn.since(self.until);
        if psn.since(self.fresh) >= 0 {
            // A gap just below `psn` shows again with the next packet.
            if ahead == 0 {
                self.until = psn.plus(1);
            }
            return self.mark(input, start, start.plus(1));
        }
        if ahead < 0 {
            return None;
        }
        let from = core::mem::replace(&mut self.until, psn.plus(1));
        self.mark(input, from, psn)
    }

    /// Marks from `from` to before `to`; `until` has been set.
    fn mark(&mut self, input: &Input<'_>, from: Psn, to: Psn) -> Option<(Psn, Psn)> {
        if to.since(from) <= 0 {
            return None;
        }
        if from == input.start || !self.recovering {
            (self.left, self.fresh) = (input.start, input.next);
        }
        (self.recovering, self.newest) = (true, input.next);
        Some((from, to))
    }
}

impl Recover for Srnic {
    const SELECTIVE: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let (start, next) = (input.start, input.next);
        if self.recovering && start.since(self.until) >= 0 {
            self.recovering = false;
        }
        self.timed_out &= self.tail.since(start) > 0;
        if start != self.left {
            (self.left, self.fresh) = (start, self.newest);
        }
        let at_least = |until: Psn, than: Psn| if until.since(than) > 0 { until } else { than };
        let mark = match input.event {
            // An empty window has nothing to recover: what the event is about has arrived since.
            _ if start == next => None,
            Event::Ack { selective: None, .. } if self.timed_out && !self.recovering => {
                self.until = start.plus(1);
                self.mark(input, start, self.until)
            }
            Event::Ack { selective: None, .. } => None,
            Event::Ack { selective: Some(psn), .. } | Event::Nack { trigger: Some(psn), .. } => {
                self.arrived(input, psn)
            }
            Event::Nack { trigger: None, .. } => {
                self.until = next;
                self.mark(input, start, next)
            }
            Event::Lost { psn } => {
                self.until = if self.recovering { at_least(self.until, psn.plus(1)) } else { psn.plus(1) };
                self.mark(input, psn, psn.plus(1))
            }
            Event::Timeout => {
                (self.timed_out, self.tail) = (true, next);
                self.until = if self.recovering { self.until } else { start.plus(1) };
                self.mark(input, start, self.until)
            }
        };
        let restart_timer = start != input.old_start || input.event == Event::Timeout;
        Decision { mark, window: None, restart_timer }
    }

    fn is_idle(&self) -> bool {
        !self.recovering && !self.timed_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Instant;

    fn react(srnic: &mut Srnic, start: u32, next: u32, event: Event) -> Option<(u32, u32)> {
        let input = Input {
            now: Instant::ZERO,
            event,
            old_start: Psn::new(start),
            start: Psn::new(start),
            next: Psn::new(next),
            newly_acked: 0,
            marks: None,
        };
        srnic.react(&input).mark.map(|(from, to)| (from.get(), to.get()))
    }

    fn nack(cumulative: u32, trigger: u32) -> Event {
        Event::Nack { cumulative: Psn::new(cumulative), trigger: Some(Psn::new(trigger)) }
    }

    fn ack(cumulative: u32, selective: Option<u32>) -> Event {
        Event::Ack { cumulative: Psn::new(cumulative), selective: selective.map(Psn::new) }
    }

    #[test]
    fn each_gap_is_marked_once_while_older_packets_arrive() {
        let mut srnic = Srnic::default();
        assert_eq!(react(&mut srnic, 5, 20, nack(5, 7)), Some((5, 7)));
        assert_eq!(react(&mut srnic, 5, 20, nack(5, 8)), None);
        assert_eq!(react(&mut srnic, 5, 20, nack(5, 11)), Some((9, 11)));
        assert_eq!(react(&mut srnic, 5, 20, ack(5, Some(6))), None, "a retransmission arrived");
    }

    #[test]
    fn a_packet_newer_than_the_first_retransmission_shows_that_it_was_lost() {
        let mut srnic = Srnic::default();
        react(&mut srnic, 5, 20, nack(5, 7));
        assert_eq!(react(&mut srnic, 5, 25, nack(5, 20)), Some((5, 6)));
        assert_eq!(react(&mut srnic, 5, 25, nack(5, 21)), Some((8, 21)), "sent before 5 was marked again");
        assert_eq!(react(&mut srnic, 5, 30, nack(5, 25)), Some((5, 6)), "lost a third time");
    }

    #[test]
    fn it_ends_when_all_that_was_sent_again_is_acknowledged() {
        let mut srnic = Srnic::default();
        react(&mut srnic, 5, 20, nack(5, 7));
        react(&mut srnic, 7, 20, ack(7, None));
        assert!(!srnic.is_idle());
        react(&mut srnic, 8, 20, ack(8, None));
        assert!(srnic.is_idle(), "packets from 8 on were never in doubt");
    }

    #[test]
    fn a_timeout_without_news_sends_the_first_packet_only() {
        let mut srnic = Srnic::default();
        assert_eq!(react(&mut srnic, 5, 20, Event::Timeout), Some((5, 6)));
        assert_eq!(react(&mut srnic, 5, 20, nack(5, 9)), Some((6, 9)));
        assert_eq!(react(&mut srnic, 5, 20, Event::Timeout), Some((5, 10)));
    }

    #[test]
    fn a_lost_tail_costs_one_timeout() {
        let mut srnic = Srnic::default();
        assert_eq!(react(&mut srnic, 5, 8, Event::Timeout), Some((5, 6)));
        assert_eq!(react(&mut srnic, 6, 9, ack(6, None)), Some((6, 7)));
        assert_eq!(react(&mut srnic, 7, 10, ack(7, None)), Some((7, 8)));
        assert_eq!(react(&mut srnic, 8, 10, ack(8, None)), None, "what was sent since is not in doubt");
        assert!(srnic.is_idle());
    }

    #[test]
    fn a_nack_that_was_overtaken_begins_no_recovery() {
        let mut srnic = Srnic::default();
        assert_eq!(react(&mut srnic, 9, 20, nack(5, 7)), None);
        assert!(srnic.is_idle());
    }
}
