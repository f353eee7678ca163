//! The way of an event to the core that runs its law, and of what the core answers.

use super::cores::Side;
use crate::host::Host;
use crate::work::Due;
use roci_control::{Class, Outcome, Verdict};
use roci_fabric::net::Net;
use roci_fabric::packet::HostId;
use roci_transport::{Grant, Offer, OwnedEvent, Token, Until};
use roci_units::{Instant, Qpn};

use super::machine::{Machine, Step};

impl Host {
    /// Whether cores run its law.
    pub(crate) fn has_cores(&self) -> bool {
        self.slow
            .as_ref()
            .and_then(|slow| slow.machine.as_ref())
            .is_some_and(|machine| machine.cores.is_some())
    }

    /// A core runs the law on an event, and its answer takes effect when it is done.
    pub(crate) fn run_event(&mut self, now: Instant, token: Token, qpn: Qpn, event: &OwnedEvent) {
        // A queue pair that is gone has no law, and its token is void.
        let Some(outcome) = self.engine.evaluate(qpn, event) else { return };
        // What a program does not hear passes no filter (SwCC §4.3.2), and no core runs: what it traced when the event came
        // and traces no more, or a timer that it has set anew since.
        let unheard =
            outcome.cycles == 0 && self.engine.program(qpn).is_some() && !self.engine.has_fallen(qpn);
        let Some((machine, agenda)) = self.machine() else { return };
        if unheard {
            return agenda.answer_at(now, token, &outcome);
        }
        let at = occupy(machine, now, Side::Receive, qpn, &outcome);
        if let Some(cores) = machine.cores.as_mut() {
            cores.stood_behind(now.since(event.event.now));
            if event.event.class.meets(Class::ARRIVED) {
                cores.stand_in_line(qpn, at);
            }
        }
        agenda.answer_at(at, token, &outcome);
    }

    /// A core is asked whether the packet of `offer` may go. False: nobody wants to be asked.
    pub(super) fn ask_core(&mut self, now: Instant, offer: Offer) -> bool {
        let Some(outcome) = self.engine.evaluate_offer(now, &offer) else { return false };
        let Some((machine, agenda)) = self.machine() else { return false };
        let at = occupy(machine, now, Side::Send, offer.qpn, &outcome);
        agenda.grant_at(at, offer, &outcome);
        true
    }

    /// A core has answered whether a packet may go.
    pub(crate) fn ran(&mut self, net: &mut Net, id: HostId, offer: Offer, grant: &Grant) {
        let Grant::Law(Outcome { verdict: Verdict::LoopBack, .. }) = grant else {
            return self.serve_granted(net, id, net.now(), offer, grant);
        };
        let now = net.now();
        let Some((machine, agenda)) = self.machine() else { return };
        machine.turns -= 1;
        machine.is_through(offer.priority, offer.length.into());
        machine.note_sliced(now, offer.qpn, true);
        if let Some(cores) = &mut machine.cores {
            cores.looped_back();
        }
        let again = now + machine.times.loop_back;
        // The core has dealt with it: the unit goes on to what waits for it.
        if let Some(unit) = machine.unit_of(offer.qpn) {
            agenda.at(now, Due::Step(Step::Free { unit }));
        }
        self.engine.decline(now, offer, Until::At(again));
    }
}

/// Has a core of `qpn` busy with an event: until when.
fn occupy(machine: &mut Machine, now: Instant, side: Side, qpn: Qpn, outcome: &Outcome) -> Instant {
    let cycles = if outcome.cycles == 0 { machine.arch.cores.native } else { outcome.cycles };
    let cores = machine.cores.as_mut();
    cores.map_or(now, |cores| cores.run_late(now, side, qpn, cycles, outcome.late_cycles).done)
}

#[cfg(test)]
mod tests;
