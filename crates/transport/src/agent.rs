//! What is per host and not per queue pair: NDP's pull pacer, Homa's order of grants, a pool of credits; and the
//! packets by which such agents and laws speak to each other.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`homa`] | whom a receiver grants how much, and what it asks for again |
//! | [`ndp`] | when a receiver pulls, and whom |

pub mod homa;
pub mod ndp;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem::{Discriminant, discriminant};
use roci_control::{Class, Emit, Event, Homa, Law, Part};
use roci_units::{Instant, Qpn};
use roci_wire::{Flags, Layout, Opcode, Shape};

use crate::arrival::{Arrival, Refusal};
use crate::credit::room::ReadRooms;
use crate::engine::Engine;
use crate::messages::{is_about_read_data, part_of};
use homa::Grants;
use ndp::Pulls;

/// An agent of the port, which hears of all queue pairs' packets and asks for packets on any of them.
///
/// After each event and each wake-up it is polled until it has nothing to send.
pub trait PortAgent: fmt::Debug + Send {
    /// A packet was accepted. The class is that of the packet; [`Event::qpn`] says whose it is. The part of READ data is in packets of
    /// the queue pair's READ data, counted modulo 2³², where those are acknowledged on their own: the first that is missing is
    /// [`Part::offset`], behind the last that came comes [`Part::end`], and behind the last that was asked for
    /// [`Part::message_length`]; [`Part::message`] is the one that came. It comes without data where the peer says that they wait for
    /// others. A `MESSAGE` is none that came, but a READ that has been asked for, with such a part.
    fn on_event(&mut self, event: &Event<'_>);

    /// A packet to send now, on this queue pair. Where it is a `GRANT` or a `RESEND` and the queue pair's law hears of turns
    /// ([`Class::TURN`]), the law is told in its stead, and sends what it likes. By a `READ_RESPONSE` the agent asks for READ data
    /// again that are missing before [`Part::end`], in packets as in [`on_event`](Self::on_event): before [`Part::offset`] whatever is,
    /// beyond that what later ones of no higher priority have overtaken; by a `READ_REQUEST` for messages that those without payload
    /// have overtaken.
    fn poll(&mut self, now: Instant) -> Option<(Qpn, Emit)>;

    /// A `GRANT` of `part` is to go, by the agent or by a law: the agent takes note of it and may cut it short. False: it
    /// grants nothing that has not been granted, and is not sent.
    fn admit(&mut self, now: Instant, qpn: Qpn, part: &mut Part) -> bool {
        let _ = (now, qpn, part);
        true
    }

    /// When it wants to be polled next, if at all.
    fn next_wakeup(&self) -> Option<Instant>;

    /// The time that it wanted has come.
    fn wake(&mut self, now: Instant);

    /// The queue pair has ended or begins anew: what it was sent counts no longer.
    fn forget(&mut self, qpn: Qpn) {
        let _ = qpn;
    }
}

/// The agents of a port: one for each kind of law with a receiver's half, or the one that was set. All hear all.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    agents: Vec<Box<dyn PortAgent>>,
    /// The kinds of law that have brought one.
    kinds: Vec<Discriminant<Law>>,
    /// Whether the embedder has set one, which then is the only one.
    set: bool,
    /// Whether they are being polled: what one has to send because of a packet that goes now is asked for then.
    polled: bool,
}

impl PortAgent for Agents {
    fn on_event(&mut self, event: &Event<'_>) {
        self.agents.iter_mut().for_each(|agent| agent.on_event(event));
    }

    fn poll(&mut self, now: Instant) -> Option<(Qpn, Emit)> {
        self.agents.iter_mut().find_map(|agent| agent.poll(now))
    }

    fn admit(&mut self, now: Instant, qpn: Qpn, part: &mut Part) -> bool {
        self.agents.iter_mut().all(|agent| agent.admit(now, qpn, part))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.agents.iter().filter_map(|agent| agent.next_wakeup()).min()
    }

    fn wake(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        self.agents.iter_mut().filter(|agent| due(agent.next_wakeup())).for_each(|agent| agent.wake(now));
    }

    fn forget(&mut self, qpn: Qpn) {
        self.agents.iter_mut().for_each(|agent| agent.forget(qpn));
    }
}

impl Engine {
    /// The receiver's half of a law that needs one, unless there is one of its kind or the port's agent was set.
    pub(crate) fn bring_agent(&mut self, law: &Law) {
        let kind = discriminant(law);
        let (link, overhead) = (self.config.link, self.config.wire_overhead);
        let half: Box<dyn PortAgent> = match law {
            Law::Homa(homa) => {
                let params = homa.params();
                if self.read_rooms.is_none() {
                    // Who reads is the receiver: a request for a piece of a READ is the grant for it.
                    self.read_rooms = Some(Box::new(ReadRooms::granted(params)));
                }
                Box::new(Grants::new(*params, link, overhead))
            }
            // Homa as a program: the order of grants is the port's, with Homa's own parameters.
            Law::Program(program) if program.image().is_granted() => {
                return self.bring_agent(&Law::Homa(Homa::default()));
            }
            Law::Ndp(_) => Box::new(Pulls::new(link, overhead)),
            _ => return,
        };
        let port = self.agent.get_or_insert_default();
        if !port.set && !port.kinds.contains(&kind) {
            port.kinds.push(kind);
            port.agents.push(half);
        }
    }

    /// Gives the port an agent, in the place of all others. Without it there is one for each kind of law added that has
    /// a receiver's half: Homa's grants by the parameters of the first such law, NDP's pulls.
    pub fn set_port_agent(&mut self, agent: Box<dyn PortAgent>) {
        let agents = alloc::vec![agent];
        self.agent = Some(Box::new(Agents { agents, set: true, ..Agents::default() }));
    }

    /// A packet that means something only to a law or to the port's agent: a grant, a pull, one of a law's own. Where nobody
    /// listens for its class, it is refused; one of a law's own is passed over (the packet filter, SwCC §4.3.2).
    #[cold]
    pub(crate) fn on_law_packet(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
    ) -> Result<(), Refusal> {
        let class = Class::of_opcode(arrival.header.opcode).ok_or(Refusal::WrongOpcode)?;
        if class == Class::PULL {
            return self.on_pull(now, slot, arrival);
        }
        if self.names_messages(slot) && is_about_read_data(arrival) {
            if class == Class::RESEND {
                self.on_resend_of_responses(now, slot, &part_of(arrival));
            }
            return Ok(());
        }
        if class == Class::GRANT {
            // The receiver has what came until now, and asks if something is missing.
            self.restart_timer(now, slot);
        }
        if self.hears(slot, class) {
            let part = part_of(arrival);
            let event = Event { part, ..self.packet_event(now, slot, arrival, class) };
            self.tell_law(now, slot, &event);
        } else if self.agent.is_none() && !class.within(Class::LAW.with(Class::RESEND)) {
            return Err(Refusal::WrongOpcode);
        }
        if class == Class::RESEND {
            self.on_resend(now, slot, &part_of(arrival));
        }
        Ok(())
    }

    /// Tells the agent of a packet that was accepted.
    #[cold]
    pub(crate) fn tell_agent(&mut self, now: Instant, arrival: &Arrival<'_>) {
        let header = arrival.header;
        let shape = header.opcode.shape();
        let class = if let Some(class) = Class::of_opcode(header.opcode) {
            class
        } else if header.opcode == Opcode::CNP {
            Class::CNP
        } else if shape.has(Shape::SEND) {
            Class::SEND
        } else if shape.has(Shape::WRITE) {
            Class::WRITE
        } else if shape.has(Shape::RESPONSE) && shape.has(Shape::PAYLOAD) {
            Class::READ_RESPONSE
        } else if shape.has(Shape::RESPONSE) || header.opcode == Opcode::READ_ACKNOWLEDGE {
            Class::ACK
        } else if shape.has(Shape::RETH) {
            Class::READ_REQUEST
        } else {
            Class::ATOMIC
        };
        let Some(slot) = self.place(header.dest_qpn) else { return };
        let names = self.names_messages(slot);
        // That READ data wait is told in their stead.
        let class = if names && class == Class::BUSY && is_about_read_data(arrival) {
            Class::READ_RESPONSE
        } else {
            class
        };
        let part = match class {
            Class::READ_RESPONSE if header.payload > 0 => self.response_that_came(slot, header.psn),
            Class::READ_RESPONSE => self.awaited_responses(slot),
            _ if names => part_of(arrival),
            _ => Part::default(),
        };
        let pulled = self.profile(slot).layout == Layout::Ndp && class.meets(Class::DATA);
        let missing = match class {
            _ if pulled => self.missing_up_to(slot, header),
            Class::READ_REQUEST | Class::ATOMIC if names => self.is_ahead(slot, header.psn).into(),
            Class::SEND | Class::WRITE if names => (!self.profile(slot).recovery.keeps_out_of_order()).into(),
            _ => 0,
        };
        let event = Event {
            peer: self.config.host(arrival.path),
            opcode: header.opcode.0,
            length: u32::from(header.payload),
            ecn: arrival.ce,
            part,
            missing,
            drained: pulled && self.lapse_flag(slot).has(Flags::DRAINED),
            ..self.heard(now, slot, arrival, class)
        };
        if let Some(agent) = &mut self.agent {
            agent.on_event(&event);
        }
        self.poll_agent(now);
    }

    /// Tells the agent that READ data have been asked for, where it has to see that they come.
    #[cold]
    pub(crate) fn tell_agent_of_read(&mut self, now: Instant, slot: usize) {
        if !self.names_messages(slot) || !self.profile(slot).separate_reads() {
            return;
        }
        let part = self.awaited_responses(slot);
        let event = Event { part, ..self.event(now, slot, Class::MESSAGE) };
        if let Some(agent) = &mut self.agent {
            agent.on_event(&event);
        }
    }

    /// Sends what the agent asks for, or has the law of its queue pair say what is sent.
    pub(crate) fn poll_agent(&mut self, now: Instant) {
        const TOLD: Class = Class::GRANT.with(Class::RESEND);
        let free = |agent: &mut Agents| !core::mem::replace(&mut agent.polled, true);
        if !self.agent.as_deref_mut().is_some_and(free) {
            return;
        }
        while let Some((qpn, emit)) = self.agent.as_mut().and_then(|agent| agent.poll(now)) {
            let Some(slot) = self.place(qpn) else { continue };
            if emit.class == Class::READ_RESPONSE {
                self.ask_for_responses(now, slot, &emit.part);
            } else if emit.class == Class::READ_REQUEST {
                self.ask_for_requests(slot);
            } else if emit.class.meets(TOLD) && self.hears(slot, Class::TURN) {
                let timeout = emit.class == Class::RESEND;
                let event = Event { part: emit.part, timeout, ..self.event(now, slot, Class::TURN) };
                self.tell_law(now, slot, &event);
            } else {
                self.emit(now, slot, &emit);
            }
        }
        if let Some(agent) = &mut self.agent {
            agent.polled = false;
        }
    }

    /// Wakes the agent, if its time has come.
    pub(crate) fn wake_agent(&mut self, now: Instant) {
        if let Some(agent) = &mut self.agent
            && agent.next_wakeup().is_some_and(|at| at <= now)
        {
            agent.wake(now);
        }
        self.poll_agent(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;
    use roci_units::BitsPerSec;

    #[test]
    fn each_kind_of_law_with_a_receivers_half_brings_it_once() {
        let link = BitsPerSec::from_gbps(10);
        let mut engine = Engine::new(EngineConfig { link, ..EngineConfig::default() });
        for name in ["dcqcn", "homa", "ndp", "homa"] {
            engine.add_law(Law::from_settings(name, &[], link).expect("a law"));
        }
        let agents = engine.agent.as_ref().expect("some");
        assert_eq!(agents.agents.len(), 2, "{agents:?}");
    }
}
