//! Go-back-N, what RoCE NICs do (IBTA Vol 1 §9.7.5): after a NAK or a timeout everything from the first missing packet
//! on is sent again, because the receiver keeps nothing out of order.

use super::program::{Decision, Event, Input, Recover};

/// The program; it keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct GoBackN;

impl Recover for GoBackN {
    const SELECTIVE: bool = false;

    fn react(&mut self, input: &Input<'_>) -> Decision {
        let mark = match input.event {
            Event::Ack { .. } => None,
            Event::Nack { .. } | Event::Timeout => Some((input.start, input.next)),
            Event::Lost { psn } => Some((psn, input.next)),
        };
        let restart_timer = input.start != input.old_start || input.event == Event::Timeout;
        Decision { mark, window: None, restart_timer }
    }

    fn is_idle(&self) -> bool {
        true
    }
}
