//! What is per host and not per queue pair: NDP's pull pacer, Homa's order of grants, a pool of credits.

use alloc::boxed::Box;
use core::fmt;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{Instant, Qpn};
use roci_wire::{Layout, Opcode, Shape};

use crate::arrival::Arrival;
use crate::engine::Engine;
use crate::law::{agent_class, part_of};

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
}

impl Engine {
    /// Gives the port an agent; there is none at first.
    pub fn set_port_agent(&mut self, agent: Box<dyn PortAgent>) {
        self.agent = Some(agent);
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
        let event = Event {
            opcode: header.opcode.0,
            length: u32::from(header.payload),
            ecn: arrival.ce,
            part: if self.profile(slot).layout == Layout::Homa { part_of(arrival) } else { Part::default() },
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
