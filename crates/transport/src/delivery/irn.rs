//! IRN's selective repeat (Mittal et al., *Revisiting Network Support for RDMA*, SIGCOMM 2018, §3.1 and §3.2).
//!
//! A NACK names the first missing packet and the packet whose arrival showed it, which the receiver keeps. The first
//! NACK or a timeout begins *recovery*: the first missing packet is sent again, and then each packet below the highest
//! one that is known to have arrived. A packet is sent again once; if that is lost as well, the timeout tells. New
//! packets go when nothing lost is left. Recovery ends when the cumulative acknowledgement passes the last packet that
//! had been sent when it began.
//!
//! The paper leaves open what follows a timeout for which no arrival showed the loss. Here the first packet goes again;
//! if what was sent before the timeout is still not acknowledged when that one is, it was the tail of a burst that was
//! lost, and the next goes, a round trip a packet instead of a timeout; unless the receiver asks for it, as Homa's does.
//!
//! IRN's BDP-FC, the bound on packets in flight, is a window's matter: `QpConfig::max_in_flight`.

use super::program::{Decision, Event, Input, Recover};
use roci_units::{Psn, Span};

/// The program, with its place in recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Irn {
    recovering: bool,
    /// The timer has gone in this recovery.
    timed_out: bool,
    /// Whether `marked_until` counts.
    has_marked: bool,
    /// The last packet sent when recovery began, or when the timer went last.
    recovery: Psn,
    /// The packet after the highest that is known to have arrived, or to be missing and was marked.
    marked_until: Psn,
}

/// §3.1's N.
pub const FEW_IN_FLIGHT: u32 = 3;

/// After how long at most [`FEW_IN_FLIGHT`] packets in flight time out, when too few packets follow a lost one to show the
/// loss, where the timeout is `configured`: 5/16 of it, as §3.1's RTO_low and RTO_high, 100 and 320 µs, stand to each other.
#[must_use]
pub const fn timeout_of_few(configured: Span) -> Span {
    Span::from_ps(configured.as_ps() / 16 * 5)
}

impl Irn {
    fn recover(&mut self, input: &Input<'_>) {
        if !self.recovering {
            self.recovering = true;
            self.recovery = input.next.minus(1);
        }
    }

    /// Marks from the first packet not yet dealt with to before `to`.
    fn mark_to(&mut self, input: &Input<'_>, to: Psn) -> Option<(Psn, Psn)> {
        let from = if self.has_marked { self.marked_until } else { input.start };
        (to.since(from) > 0).then_some((from, to))
    }

    /// The tail that a timeout may have shown to be lost is another's affair.
    pub(super) const fn leave_tail(&mut self) {
        self.timed_out = false;
    }

    fn has_dealt_with(&mut self, until: Psn) {
        if !self.has_marked || until.since(self.marked_until) > 0 {
            (self.has_marked, self.marked_until) = (true, until);
        }
    }
}

impl Recover for Irn {
    const SELECTIVE: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        if self.recovering && input.start.since(self.recovery) > 0 {
            (self.recovering, self.timed_out) = (false, false);
        }
        if self.has_marked && input.start.since(self.marked_until) >= 0 {
            self.has_marked = false;
        }
        let mut mark = None;
        match input.event {
            // An empty window has nothing to recover: what the event is about has arrived since.
            _ if input.start == input.next => {}
            Event::Ack { .. } if self.timed_out && !self.has_marked => {
                self.has_dealt_with(input.start.plus(1));
                mark = Some((input.start, self.marked_until));
            }
            Event::Ack { .. } => {}
            Event::Nack { trigger: Some(trigger), .. } => {
                if trigger.since(input.start) > 0 {
                    self.recover(input);
                    mark = self.mark_to(input, trigger);
                    self.has_dealt_with(trigger.plus(1));
                }
            }
            Event::Nack { trigger: None, .. } => {
                self.recover(input);
                mark = Some((input.start, input.next));
                self.has_dealt_with(input.next);
            }
            Event::Lost { psn } => {
                self.recover(input);
                mark = Some((psn, psn.plus(1)));
            }
            Event::Timeout => {
                (self.recovering, self.timed_out) = (true, true);
                self.recovery = input.next.minus(1);
                self.has_dealt_with(input.start.plus(1));
                mark = Some((input.start, self.marked_until));
            }
        }
        let restart_timer = input.start != input.old_start || input.event == Event::Timeout;
        Decision { mark, window: None, restart_timer }
    }

    fn is_idle(&self) -> bool {
        !self.recovering && !self.has_marked
    }

    /// The configured timeout is RTO_high; zero, "never", stays zero.
    ///
    /// A network whose round trip is longer than RTO_low needs a longer one: everything would be sent again.
    fn timeout(&self, in_flight: u32, configured: Span) -> Span {
        match in_flight {
            0..=FEW_IN_FLIGHT => timeout_of_few(configured),
            _ => configured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::Instant;

    fn react(irn: &mut Irn, start: u32, event: Event) -> Option<(u32, u32)> {
        let input = Input {
            now: Instant::ZERO,
            event,
            old_start: Psn::new(start),
            start: Psn::new(start),
            next: Psn::new(20),
            newly_acked: 0,
            marks: None,
        };
        irn.react(&input).mark.map(|(from, to)| (from.get(), to.get()))
    }

    fn nack(cumulative: u32, trigger: u32) -> Event {
        Event::Nack { cumulative: Psn::new(cumulative), trigger: Some(Psn::new(trigger)) }
    }

    #[test]
    fn each_gap_is_marked_once_until_a_timeout() {
        let mut irn = Irn::default();
        assert_eq!(react(&mut irn, 5, nack(5, 7)), Some((5, 7)));
        assert_eq!(react(&mut irn, 5, nack(5, 8)), None);
        assert_eq!(react(&mut irn, 5, nack(5, 11)), Some((9, 11)));
        assert_eq!(react(&mut irn, 5, Event::Timeout), Some((5, 12)));
    }

    #[test]
    fn a_nack_that_was_overtaken_begins_no_recovery() {
        let mut irn = Irn::default();
        assert_eq!(react(&mut irn, 9, nack(5, 7)), None);
        assert!(irn.is_idle());
    }

    #[test]
    fn recovery_ends_when_the_recovery_packet_is_passed() {
        let mut irn = Irn::default();
        react(&mut irn, 5, nack(5, 7));
        react(&mut irn, 19, Event::Ack { cumulative: Psn::new(19), selective: None });
        assert!(!irn.is_idle(), "19 was in flight when it began");
        react(&mut irn, 20, Event::Ack { cumulative: Psn::new(20), selective: None });
        assert!(irn.is_idle());
    }

    #[test]
    fn a_timeout_without_news_sends_the_first_packet_only() {
        assert_eq!(react(&mut Irn::default(), 5, Event::Timeout), Some((5, 6)));
    }

    #[test]
    fn a_lost_tail_costs_one_timeout() {
        let mut irn = Irn::default();
        let ack = |start| Event::Ack { cumulative: Psn::new(start), selective: None };
        assert_eq!(react(&mut irn, 17, Event::Timeout), Some((17, 18)));
        assert_eq!(react(&mut irn, 17, ack(17)), None, "nothing arrived");
        assert_eq!(react(&mut irn, 18, ack(18)), Some((18, 19)));
        assert_eq!(react(&mut irn, 18, nack(18, 19)), None, "18 is on its way");
        assert_eq!(react(&mut irn, 20, ack(20)), None);
        assert!(irn.is_idle());
    }

    #[test]
    fn a_tail_that_is_left_to_the_receiver_is_not_sent_again() {
        let mut irn = Irn::default();
        assert_eq!(react(&mut irn, 17, Event::Timeout), Some((17, 18)));
        irn.leave_tail();
        let ack = Event::Ack { cumulative: Psn::new(18), selective: None };
        assert_eq!(react(&mut irn, 18, ack), None);
    }

    #[test]
    fn few_packets_in_flight_time_out_sooner() {
        let irn = Irn::default();
        let configured = Span::from_micros(320);
        assert_eq!(irn.timeout(3, configured), Span::from_micros(100));
        assert_eq!(irn.timeout(4, configured), Span::from_micros(320));
        assert_eq!(irn.timeout(4, Span::ZERO), Span::ZERO);
    }
}
