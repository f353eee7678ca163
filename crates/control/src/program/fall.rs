//! A program that fails, or lets nothing go for too long, with a queue pair: its fallback law takes over.

use super::csr::Side;
use super::fault::{Fault, Why};
use super::law::{Programmed, State, heard};
use super::timers::Timers;
use crate::event::{Class, Event};
use crate::outcome::Outcome;
use alloc::boxed::Box;
use alloc::string::ToString;
use roci_units::Instant;

impl Programmed {
    /// The program has answered LoopBack where nothing brings the packet back but an event, with nothing in flight and no timer
    /// armed. Where none can come, or none has come for long, it is stopped, and the fallback law answers.
    #[cold]
    pub(crate) fn give_up(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if state.fallen.is_some() {
            return;
        }
        let (now, until) = (event.now, self.bears_with(state, event));
        if until > now {
            state.refusal.patient_until = until;
            outcome.wake = until;
            return;
        }
        let waited = now.since(state.refusal.since);
        self.fall(
            state,
            event,
            Side::Tx,
            event.class,
            Why::LoopBacks { count: state.refusal.loop_backs, waited },
            outcome,
        );
    }

    /// The packet of `event` waits for tokens, with nothing in flight. Where the program can give none any more, or has not for long, it
    /// is stopped, and the fallback law answers. Else `outcome` asks to be woken.
    #[cold]
    pub(crate) fn lacks_tokens(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if state.fallen.is_some() {
            return;
        }
        state.refusal.begin(event.now);
        state.refusal.tokenless = true;
        let until = self.bears_with(state, event);
        if event.now < until {
            if state.timers.wake() == Instant::NEVER {
                state.refusal.patient_until = until;
            }
            outcome.wake = state.wake(event.now);
            return;
        }
        let waited = event.now.since(state.refusal.since);
        self.fall(state, event, Side::Rx, event.class, Why::Tokenless { waited }, outcome);
    }

    /// The program has let nothing go for so many retransmission timeouts that it is stopped, and the fallback law answers.
    #[cold]
    pub(crate) fn starve(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if state.fallen.is_none() {
            let why = Why::Starved {
                timeouts: state.refusal.timeouts,
                waited: event.now.since(state.refusal.since),
            };
            self.fall(state, event, Side::Tx, event.class, why, outcome);
        }
    }

    /// The program has failed with this queue pair, when it was told an event of this `class`: the fallback law takes over, and
    /// hears `event`.
    #[cold]
    pub(super) fn fall(
        &mut self,
        state: &mut State,
        event: &Event<'_>,
        side: Side,
        class: Class,
        why: Why,
        outcome: &mut Outcome,
    ) {
        let at = self.cores.of(side, event.qpn).take().map_or(0, |core| core.pc());
        // A core that stopped at a write stands behind it, and no instruction is shorter than four octets. Of what has refused for
        // long, others may have had the core since.
        let at = match why {
            Why::Answer { .. } | Why::Side { .. } | Why::Command { .. } | Why::Packet { .. } => {
                at.wrapping_sub(4)
            }
            Why::LoopBacks { .. } | Why::Starved { .. } => state.refusal.at.wrapping_sub(4),
            // Where the NIC took the last of them, nobody says which answer it was.
            Why::Tokenless { .. } if state.refusal.at == 0 => at,
            Why::Tokenless { .. } => state.refusal.at.wrapping_sub(4),
            Why::Trap(_) | Why::Overrun { .. } | Why::Timers | Why::Silent => at,
        };
        let place = self.image.program().locate(at).to_string();
        let image = self.image.name().to_string();
        let number = self.tally.events[side as usize];
        let fault = Fault { image, side, qpn: event.qpn, at: event.now, class, number, place, why };
        state.fault = Some(Box::new(fault.clone()));
        self.tally.note(fault);
        let (context, credit, wake) = self.fallback.connect(state.link_kbps);
        state.fallen = Some(context);
        state.timers = Timers::NONE;
        state.unsent.clear();
        let cycles = outcome.cycles;
        *outcome = Outcome { byte_counter: Some(0), cycles, ..Outcome::unchanged(credit, wake) };
        // Its peer's program has not failed, and may hear of CNPs.
        let marks =
            if heard(&self.fallback, state.traces).meets(Class::CE) { Class::CE } else { Class::NONE };
        outcome.traces = Some(self.fallback.traces().with(marks));
        self.fall_back(state, event, outcome);
    }

    /// The fallback law hears an event.
    #[cold]
    pub(super) fn fall_back(&mut self, state: &mut State, event: &Event<'_>, outcome: &mut Outcome) {
        if let Some(context) = &mut state.fallen
            && self.fallback.traces().meets(event.class)
        {
            self.fallback.on_event(context, event, outcome);
        } else if event.class == Class::CE && heard(&self.fallback, state.traces).meets(Class::CE) {
            outcome.emit = self.notify(state, event.now);
        }
    }
}
