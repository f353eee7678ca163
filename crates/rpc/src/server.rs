//! The responder's end of a connection: when credits go back, and what goes with them.

use roci_units::Span;

/// Credits that come back, alone or with a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Return {
    /// Packets that were consumed.
    pub packets: u32,
    /// Their lines.
    pub lines: u32,
    /// How long the receiver took for them, without what they waited.
    pub service: Span,
    /// How long the last of them was with the receiver, its wait included.
    pub residence: Span,
    /// Whether the receiver has nothing to do now.
    pub idle: bool,
    /// Whether lines of these packets were lost from the cache before they were read.
    pub pressed: bool,
}

/// A packet that has been consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processed {
    /// Its lines.
    pub lines: u32,
    /// How many of them came from memory.
    pub missed: u32,
    /// How long the receiver took for it.
    pub service: Span,
    /// How long it was there.
    pub residence: Span,
    /// Whether a response follows, with which credits go back.
    pub answered: bool,
    /// Whether nothing waits for the receiver.
    pub idle: bool,
}

/// Lines of which so many are lost tell of pressure: one in eight.
const PRESSED: u32 = 8;

/// The responder's end.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Lines after which credits go back alone.
    after: u32,
    held: Return,
    missed: u32,
}

impl Server {
    /// The end of a connection whose requester has `share` lines: credits go back alone when a sixteenth of them is held, and with each
    /// response; without a share, with responses alone. δ leaves the requester an eighth of its share at least, so that it never waits
    /// for what is held.
    pub fn new(share: Option<u32>) -> Self {
        let after = share.map_or(u32::MAX, |lines| (lines / 16).max(1));
        Self { after, held: Return::default(), missed: 0 }
    }

    /// A packet was consumed; gives the credits that go back now, with the response or alone.
    pub fn processed(&mut self, it: &Processed) -> Option<Return> {
        self.held.packets += 1;
        self.held.lines = self.held.lines.saturating_add(it.lines);
        self.held.service += it.service;
        self.missed = self.missed.saturating_add(it.missed);
        // Who waits for credits is idle for want of them: they are not held then.
        let due = it.answered || self.held.lines >= self.after || (it.idle && self.after < u32::MAX);
        if !due {
            return None;
        }
        let pressed = self.missed > self.held.lines / PRESSED;
        self.missed = 0;
        let held = std::mem::take(&mut self.held);
        Some(Return { residence: it.residence, idle: it.idle, pressed, ..held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(lines: u32) -> Processed {
        Processed {
            lines,
            missed: 0,
            service: Span::from_nanos(10),
            residence: Span::from_nanos(30),
            answered: false,
            idle: false,
        }
    }

    #[test]
    fn credits_go_back_by_sixteenths_of_the_share_and_with_responses() {
        let mut server = Server::new(Some(1600));
        assert_eq!(server.processed(&packet(64)), None);
        let back = server.processed(&packet(64)).unwrap();
        assert_eq!((back.packets, back.lines, back.service), (2, 128, Span::from_nanos(20)));
        let back = server.processed(&Processed { answered: true, ..packet(3) }).unwrap();
        assert_eq!((back.packets, back.lines, back.pressed), (1, 3, false));
    }

    #[test]
    fn a_receiver_with_nothing_to_do_holds_no_credits() {
        let mut server = Server::new(Some(400));
        assert!(server.processed(&Processed { idle: true, ..packet(1) }).unwrap().idle);
        let mut without = Server::new(None);
        assert_eq!(without.processed(&Processed { idle: true, ..packet(1) }), None);
        assert_eq!(without.processed(&packet(1_000_000)), None);
        assert_eq!(without.processed(&Processed { answered: true, ..packet(1) }).unwrap().packets, 3);
    }

    #[test]
    fn more_than_one_line_in_eight_lost_tells_of_pressure() {
        let mut server = Server::new(Some(4));
        assert!(!server.processed(&Processed { missed: 8, ..packet(64) }).unwrap().pressed);
        assert!(server.processed(&Processed { missed: 9, ..packet(64) }).unwrap().pressed);
        assert!(!server.processed(&packet(64)).unwrap().pressed);
    }
}
