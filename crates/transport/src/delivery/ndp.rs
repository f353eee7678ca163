//! NDP's sender (Handley et al., *Re-architecting Datacenter Networks and Stacks*, SIGCOMM 2017, §3.2).
//!
//! Switches cut the payload off what they cannot queue, and the receiver tells the sender of each such packet: that one
//! is sent again. Each packet that arrives is acknowledged by itself. Nothing is inferred from the order of arrival, so
//! that packets may take any way. The timeout is for what is lost without a word: NDP keeps a timer for each packet, which
//! is sent again when nothing was heard of it for that long. Here one timer stands for all that were in flight when it
//! started, and they are sent again together.
//!
//! How fast packets go is the receiver's to say, by what it pulls: a matter of credit, not of this program.

use super::program::{Decision, Event, Input, Recover};
use roci_units::Psn;

/// The program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ndp {
    /// The first packet that had not been sent when the timer started, as far as it was seen: who comes in order is not
    /// heard of.
    young: Option<Psn>,
}

impl Recover for Ndp {
    const SELECTIVE: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let restart_timer = input.start != input.old_start || input.event == Event::Timeout;
        let young = self.young.unwrap_or(input.next);
        self.young = Some(if restart_timer { input.next } else { young });
        let mark = match input.event {
            Event::Ack { .. } => None,
            Event::Lost { psn } => Some((psn, psn.plus(1))),
            // The receiver was not ready, and dropped what came behind as well.
            Event::Nack { .. } => Some((input.start, input.next)),
            Event::Timeout if input.start == input.next => None,
            // The timer was started for the first one at the latest.
            Event::Timeout if young.since(input.start) <= 0 => Some((input.start, input.start.plus(1))),
            Event::Timeout => Some((input.start, young)),
        };
        Decision { mark, window: None, restart_timer }
    }

    fn is_idle(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::play::Play;
    use super::*;

    #[test]
    fn only_the_packet_that_was_trimmed_goes_again() {
        let mut play = Play::new(Ndp::default(), 100, 10);
        assert_eq!(play.sack(100, 105).0, None, "order tells nothing");
        assert_eq!(play.event(Event::Lost { psn: Psn::new(103) }).0, Some((103, 104)));
    }

    #[test]
    fn a_timeout_sends_again_what_was_in_flight_when_the_timer_started() {
        let mut play = Play::new(Ndp::default(), 100, 10);
        play.sack(100, 105);
        play.send(7);
        assert_eq!(play.event(Event::Timeout).0, Some((100, 110)), "what was sent since has a timer to run");
        assert_eq!(play.event(Event::Timeout).0, Some((100, 117)));
        play.send(3);
        play.ack(104);
        play.send(5);
        assert_eq!(
            play.event(Event::Timeout).0,
            Some((104, 120)),
            "with the first missing one it starts anew"
        );
    }

    #[test]
    fn a_timeout_out_of_the_blue_is_for_all_that_is_in_flight() {
        assert_eq!(Play::new(Ndp::default(), 100, 10).event(Event::Timeout).0, Some((100, 110)));
    }

    #[test]
    fn a_packet_that_was_sent_after_the_timer_ran_for_none_is_sent_again_alone() {
        let mut play = Play::new(Ndp::default(), 100, 10);
        play.sack(100, 105);
        play.ack(110);
        play.send(2);
        assert_eq!(play.event(Event::Timeout).0, Some((110, 111)));
    }

    #[test]
    fn a_receiver_that_was_not_ready_gets_all_again() {
        let mut play = Play::new(Ndp::default(), 100, 10);
        let nack = Event::Nack { cumulative: Psn::new(100), trigger: None };
        assert_eq!(play.event(nack).0, Some((100, 110)));
    }
}
