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
use core::fmt;
use roci_control::{Class, Emit, Event, Law, Part};
use roci_units::{Instant, Qpn};
use roci_wire::{Flags, Layout, Opcode, Shape};

use crate::arrival::{Arrival, Refusal};
use crate::engine::Engine;
use crate::messages::part_of;
use homa::Grants;
use ndp::Pulls;

/// An agent of the port, which hears of all queue pairs' packets and asks for packets on any of them.
///
/// After each event and each wake-up it is polled until it has nothing to send.
pub trait PortAgent: fmt::Debug + Send {
    /// A packet was accepted. The class is that of the packet; [`Event::qpn`] says whose it is.
    fn on_event(&mut self, event: &Event<'_>);

    /// A packet to send now, on this queue pair.
    fn poll(&mut self, now: Instant) -> Option<(Qpn, Emit)>;

    /// When it wants to be polled next, if at all.
    fn next_wakeup(&self) -> Option<Instant>;

    /// The time that it wanted has come.
    fn wake(&mut self, now: Instant);

    /// The queue pair has ended or begins anew: what it was sent counts no longer.
    fn forget(&mut self, qpn: Qpn) {
        let _ = qpn;
    }
}

impl Engine {
    /// The receiver's half of a law that needs one, unless the port has an agent already.
    pub(crate) fn bring_agent(&mut self, law: &Law) {
        if self.agent.is_some() {
            return;
        }
        self.agent = match law {
            Law::Homa(homa) => {
                Some(Box::new(Grants::new(*homa.params(), self.config.link, self.config.wire_overhead)))
            }
            Law::Ndp(_) => Some(Box::new(Pulls::new(self.config.link, self.config.wire_overhead))),
            _ => None,
        };
    }

    /// Gives the port an agent. Without it there is that of the first law added that has a receiver's half, or none.
    pub fn set_port_agent(&mut self, agent: Box<dyn PortAgent>) {
        self.agent = Some(agent);
    }

    /// A packet that means something only to a law or to the port's agent: a grant, a pull. Where nobody listens for
    /// its class, it is refused.
    #[cold]
    pub(crate) fn on_law_packet(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'_>,
    ) -> Result<(), Refusal> {
        let class = agent_class(arrival.header.opcode).ok_or(Refusal::WrongOpcode)?;
        if class == Class::PULL {
            return self.on_pull(now, slot, arrival);
        }
        if class == Class::GRANT {
            // The receiver has what came until now, and asks if something is missing.
            self.restart_timer(now, slot);
        }
        if self.hears(slot, class) {
            let part = part_of(arrival);
            let event = Event { part, ..self.packet_event(now, slot, arrival, class) };
            self.tell_law(now, slot, &event);
        } else if self.agent.is_none() {
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
        let class = if let Some(class) = agent_class(header.opcode) {
            class
        } else if header.opcode == Opcode::CNP {
            Class::CNP
        } else if shape.has(Shape::SEND) {
            Class::SEND
        } else if shape.has(Shape::WRITE) {
            Class::WRITE
        } else if shape.has(Shape::RESPONSE) && shape.has(Shape::PAYLOAD) {
            Class::READ_RESPONSE
        } else if shape.has(Shape::RESPONSE) {
            Class::ACK
        } else if shape.has(Shape::RETH) {
            Class::READ_REQUEST
        } else {
            Class::ATOMIC
        };
        let Some(slot) = self.place(header.dest_qpn) else { return };
        let pulled = self.profile(slot).layout == Layout::Ndp && class.meets(Class::DATA);
        let event = Event {
            opcode: header.opcode.0,
            length: u32::from(header.payload),
            ecn: arrival.ce,
            part: if self.names_messages(slot) { part_of(arrival) } else { Part::default() },
            missing: if pulled { self.missing_up_to(slot, header) } else { 0 },
            drained: pulled && header.flags.has(Flags::DRAINED),
            words: arrival.words,
            hops: arrival.hops,
            ..self.event(now, slot, class)
        };
        if let Some(agent) = &mut self.agent {
            agent.on_event(&event);
        }
        self.poll_agent(now);
    }

    /// Sends what the agent asks for.
    pub(crate) fn poll_agent(&mut self, now: Instant) {
        while let Some((qpn, emit)) = self.agent.as_mut().and_then(|agent| agent.poll(now)) {
            if let Some(slot) = self.place(qpn) {
                self.emit(slot, &emit);
            }
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

/// The class of a packet that is neither the requester's nor the responder's.
const fn agent_class(opcode: Opcode) -> Option<Class> {
    match opcode {
        Opcode::PULL => Some(Class::PULL),
        Opcode::HOMA_GRANT => Some(Class::GRANT),
        Opcode::HOMA_RESEND => Some(Class::RESEND),
        Opcode::HOMA_BUSY => Some(Class::BUSY),
        _ => None,
    }
}
