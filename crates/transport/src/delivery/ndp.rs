//! NDP's sender (Handley et al., *Re-architecting Datacenter Networks and Stacks*, SIGCOMM 2017, §3.2).
//!
//! Switches cut the payload off what they cannot queue, and the receiver tells the sender of each such packet: that one
//! is sent again. Each packet that arrives is acknowledged by itself. Nothing is inferred from the order of arrival, so
//! that packets may take any way. The timeout is for the rare header that is lost as well.
//!
//! How fast packets go is the receiver's to say, by what it pulls: a matter of credit, not of this program.

use super::program::{Decision, Event, Input, Recover};

/// The program; it keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ndp;

impl Recover for Ndp {
    const SELECTIVE: bool = true;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let mark = match input.event {
            Event::Ack { .. } => None,
            Event::Lost { psn } => Some((psn, psn.plus(1))),
            // The receiver was not ready, and dropped what came behind as well.
            Event::Nack { .. } => Some((input.start, input.next)),
            Event::Timeout => Some((input.start, input.start.plus(1))),
        };
        let restart_timer = input.start != input.old_start || input.event == Event::Timeout;
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
    use roci_units::Psn;

    #[test]
    fn only_the_packet_that_was_trimmed_goes_again() {
        let mut play = Play::new(Ndp, 100, 10);
        assert_eq!(play.sack(100, 105).0, None, "order tells nothing");
        assert_eq!(play.event(Event::Lost { psn: Psn::new(103) }).0, Some((103, 104)));
        assert_eq!(play.event(Event::Timeout).0, Some((100, 101)));
    }

    #[test]
    fn a_receiver_that_was_not_ready_gets_all_again() {
        let mut play = Play::new(Ndp, 100, 10);
        let nack = Event::Nack { cumulative: Psn::new(100), trigger: None };
        assert_eq!(play.event(nack).0, Some((100, 110)));
    }
}
