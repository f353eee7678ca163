//! What is per host and not per queue pair: NDP's pull pacer, Homa's order of grants, a pool of credits; and the
//! packets by which such agents and laws speak to each other.

use alloc::boxed::Box;
use core::fmt;
use roci_control::{Class, Emit, Event, Part};
use roci_units::{Instant, Qpn};
use roci_wire::layout::homa::{Homa, HomaBody};
use roci_wire::{Layout, LayoutWords, Opcode, Shape};

use crate::arrival::{Arrival, Refusal};
use crate::engine::Engine;

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
        if self.hears(slot, class) {
            let part = part_of(arrival);
            let event = Event { part, ..self.packet_event(now, slot, arrival, class) };
            self.tell_law(now, slot, &event);
        } else if self.agent.is_none() {
            return Err(Refusal::WrongOpcode);
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

/// The message and octets that a packet's words name in layout `homa`; else all zero.
fn part_of(arrival: &Arrival<'_>) -> Part {
    let homa = LayoutWords::new(arrival.words).and_then(|words| Homa::decode(arrival.header, &words).ok());
    let Some(Homa { rpc, body }) = homa else { return Part::default() };
    #[expect(clippy::cast_possible_truncation, reason = "messages are numbered modulo 2³²")]
    let message = rpc as u32;
    match body {
        HomaBody::Data { length, offset, .. } => {
            let end = offset.saturating_add(u32::from(arrival.header.payload));
            Part { message, message_length: length, offset, end, priority: 0 }
        }
        HomaBody::Grant { offset: end, priority, .. } => Part { message, end, priority, ..Part::default() },
        HomaBody::Resend { offset, length, priority } => {
            Part { message, message_length: 0, offset, end: offset.saturating_add(length), priority }
        }
        _ => Part { message, ..Part::default() },
    }
}
