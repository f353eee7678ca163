//! The events that laws hear of, made of what the queue pair and a packet tell.

use crate::arrival::Arrival;
use crate::engine::Engine;
use crate::qp::{Qp, sequence};
use crate::stamps::read_words;
use roci_control::{Class, Event};
use roci_units::Instant;
use roci_wire::{Flags, Layout, Opcode};

impl Engine {
    /// An event of `class`, with what the queue pair itself knows.
    pub(crate) fn event<'a>(&self, now: Instant, slot: usize, class: Class) -> Event<'a> {
        event(&self.qps[slot], now, class)
    }

    /// An event of `class` about a packet that arrived, with its telemetry and the law's words.
    pub(crate) fn heard<'a>(
        &self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'a>,
        class: Class,
    ) -> Event<'a> {
        heard(&self.qps[slot], self.profile(slot).layout, now, arrival, class)
    }

    /// The event of `class` of an answer that acknowledges `acked` octets.
    pub(crate) fn answer_event<'a>(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'a>,
        class: Class,
        acked: u32,
    ) -> Event<'a> {
        let qp = &self.qps[slot];
        let (layout, una) = (self.profile(slot).layout, qp.requester.una);
        // An answer to one packet, whichever has come, tells of its path; only those that were late fill gaps.
        let named = layout == Layout::Ndp && arrival.header.opcode == Opcode::ACKNOWLEDGE;
        let state = self.laws.states.get_mut(qp.common.law as usize);
        let sent = state.map_or(Instant::ZERO, |state| {
            let alone = named.then(|| state.sent_alone(sequence(arrival.header.psn, una)));
            let last = state.sent_at(una);
            alone.map_or(last, |alone| alone.unwrap_or(Instant::ZERO))
        });
        answer_event(qp, layout, now, arrival, class, (acked, sent))
    }

    /// The same of one that carries payload.
    pub(crate) fn packet_event<'a>(
        &self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'a>,
        class: Class,
    ) -> Event<'a> {
        Event {
            opcode: arrival.header.opcode.0,
            length: u32::from(arrival.header.payload),
            ecn: arrival.ce,
            ..self.heard(now, slot, arrival, class)
        }
    }
}

/// An event of `class`, with what the queue pair itself knows.
#[inline(always)]
fn event<'a>(qp: &Qp, now: Instant, class: Class) -> Event<'a> {
    let Qp { requester, common, .. } = qp;
    Event {
        class,
        now,
        qpn: common.qpn.get(),
        in_flight: requester.in_flight,
        acked_sequence: requester.una.wrapping_sub(common.base),
        next_sequence: requester.high.wrapping_sub(common.base),
        ..Event::default()
    }
}

/// An event of `class` about a packet that arrived, with its telemetry and the law's words.
#[inline(always)]
fn heard<'a>(qp: &Qp, layout: Layout, now: Instant, arrival: &Arrival<'a>, class: Class) -> Event<'a> {
    let mut event: Event<'a> = event(qp, now, class);
    read_words(&mut event, layout, arrival);
    event
}

/// The event of `class` of an answer that acknowledges `acked` octets; what it answers was `sent` then.
#[inline(always)]
pub(crate) fn answer_event<'a>(
    qp: &Qp,
    layout: Layout,
    now: Instant,
    arrival: &Arrival<'a>,
    class: Class,
    (acked, sent): (u32, Instant),
) -> Event<'a> {
    let mut event = heard(qp, layout, now, arrival, class);
    event.opcode = arrival.header.opcode.0;
    event.ecn = arrival.header.flags.has(Flags::BECN);
    (event.acked, event.sent) = (acked, sent);
    event.hop_count = u8::try_from(arrival.hops.len()).unwrap_or(u8::MAX);
    event
}
