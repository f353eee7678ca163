//! The events that laws hear of, made of what the queue pair and a packet tell.

use crate::arrival::Arrival;
use crate::engine::Engine;
use crate::qp::{Qp, sequence};
use crate::requester::{Progress, drawn_by};
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

    /// The event of `class` of an answer that brought `progress`.
    pub(crate) fn answer_event<'a>(
        &mut self,
        now: Instant,
        slot: usize,
        arrival: &Arrival<'a>,
        class: Class,
        progress: Progress,
    ) -> Event<'a> {
        let qp = &self.qps[slot];
        let (profile, una, header) = (self.profile(slot), qp.requester.una, arrival.header);
        let layout = profile.layout;
        // An answer to one packet, whichever has come, tells of its path; only those that were late fill gaps.
        let named = match header.opcode {
            Opcode::ACKNOWLEDGE if layout == Layout::Ndp => Some(header.psn),
            _ if !progress.names || !profile.names_packets() => None,
            Opcode::ACKNOWLEDGE => Some(drawn_by(header, layout)),
            _ => Some(header.psn),
        };
        let state = self.laws.states.get_mut(qp.common.law as usize);
        let sent = state.map_or(Instant::ZERO, |state| {
            let alone = named.map(|psn| state.sent_alone(sequence(psn, una)));
            let last = state.sent_at(una);
            alone.unwrap_or(last)
        });
        let mut event = Event::default();
        answer_event(&mut event, qp, layout, now, arrival, class, (progress.octets, sent));
        event
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
    let mut event = Event::default();
    say_of(&mut event, qp, now, class);
    event
}

/// Makes `event` one of `class`, and has it say what the queue pair itself knows.
#[inline(always)]
fn say_of(event: &mut Event<'_>, qp: &Qp, now: Instant, class: Class) {
    let Qp { requester, common, .. } = qp;
    (event.class, event.now, event.qpn) = (class, now, common.qpn.get());
    event.in_flight = requester.in_flight;
    event.acked_sequence = requester.una.wrapping_sub(common.base);
    event.next_sequence = requester.high.wrapping_sub(common.base);
}

/// An event of `class` about a packet that arrived, with its telemetry and the law's words.
#[inline(always)]
fn heard<'a>(qp: &Qp, layout: Layout, now: Instant, arrival: &Arrival<'a>, class: Class) -> Event<'a> {
    let mut event: Event<'a> = event(qp, now, class);
    read_words(&mut event, layout, arrival);
    event
}

/// Makes `event`, which says nothing yet, that of `class` of an answer which acknowledges `acked` octets; what it answers was `sent`
/// then. It is filled in place: handed over whole it was copied, 6 ns of an acknowledgement (Zen 4).
#[inline(always)]
pub(crate) fn answer_event<'a>(
    event: &mut Event<'a>,
    qp: &Qp,
    layout: Layout,
    now: Instant,
    arrival: &Arrival<'a>,
    class: Class,
    (acked, sent): (u32, Instant),
) {
    say_of(event, qp, now, class);
    read_words(event, layout, arrival);
    event.opcode = arrival.header.opcode.0;
    event.ecn = arrival.header.flags.has(Flags::BECN);
    (event.acked, event.sent) = (acked, sent);
    event.hop_count = u8::try_from(arrival.hops.len()).unwrap_or(u8::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Reaction;
    use crate::config::{EngineConfig, Pd, QpConfig, Recovery};
    use crate::memory::Access;
    use crate::requester::set_drawn_by;
    use crate::responder::ACK;
    use crate::work::{Operation, SendRequest, Tail};
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use roci_control::{Context, Law};
    use roci_units::{Psn, Qpn, Span};
    use roci_wire::{Aeth, Header};

    const MTU: u16 = 256;
    const QPN: Qpn = Qpn::new(2);
    const PACKETS: u32 = 24;

    /// What TIMELY has heard was acknowledged: it waits for a segment that never is complete.
    fn heard(engine: &Engine) -> u32 {
        match &engine.laws.states[engine.qps[0].common.law as usize].context {
            Context::Timely(state) => state.progress,
            other => panic!("{other:?}"),
        }
    }

    /// An engine under `law` that has sent two WRITEs, of which the second ends with an octet.
    fn engine((recovery, layout): (Recovery, Layout), law: &str, settings: &[(&str, &str)]) -> Engine {
        let mut engine = Engine::new(EngineConfig::default());
        let (rkey, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
        let law = Law::from_settings(law, settings, EngineConfig::default().link).unwrap();
        let config = QpConfig {
            law: engine.add_law(law),
            qpn: Some(QPN),
            peer: QPN,
            mtu: MTU,
            recovery,
            layout,
            initial_window: 1000,
            ..QpConfig::default()
        };
        engine.create_qp(config).unwrap();
        let half = PACKETS / 2 * u32::from(MTU);
        for length in [half, half - u32::from(MTU) + 1] {
            let operation = Operation::Write { va: 0, rkey, tail: Tail::Plain };
            let request = SendRequest {
                id: 1,
                operation,
                length,
                address: 0,
                lkey: 0,
                solicited: false,
                signaled: true,
                fence: false,
            };
            engine.post_send(Instant::ZERO, QPN, &request).unwrap();
        }
        while engine.transmit(Instant::ZERO).is_some() {}
        engine
    }

    /// What a receiver that waits for `expected` answers to packet `psn`.
    fn answer((recovery, layout): (Recovery, Layout), psn: u32, expected: u32) -> Header {
        let naks = psn > expected && !recovery.owns_window();
        let mut header = Header::new(Opcode::ACKNOWLEDGE, QPN, Psn::new(expected));
        header.psn = if naks { header.psn } else { header.psn.minus(1) };
        header.set_aeth(Aeth { syndrome: if naks { 0x60 } else { ACK }, msn: 0 });
        set_drawn_by(&mut header, layout, Psn::new(psn));
        header
    }

    const KINDS: [(Recovery, Layout); 4] = [
        (Recovery::Irn, Layout::Irn),
        (Recovery::Srnic, Layout::Srnic),
        (Recovery::Sack, Layout::Irn),
        (Recovery::Sack, Layout::Srnic),
    ];

    #[test]
    fn dctcp_counts_marks_of_packets_beyond_a_missing_one_each_once() {
        for kind in KINDS {
            let mut engine = engine(kind, "dctcp", &[]);
            let mut reaction = Reaction::default();
            for (psn, marked, told) in [
                (0, false, (0, 0)),
                (2, false, (1, 0)),
                (3, true, (2, 1)),
                (3, true, (2, 1)),
                (1, false, (3, 1)),
            ] {
                let expected = if psn == 1 { 4 } else { 1 };
                let mut header = answer(kind, psn, expected);
                header.flags = if marked { Flags::BECN } else { Flags::NONE };
                let arrival = Arrival::new(&header, 0);
                engine.receive(Instant::ZERO + Span::from_micros(1), &arrival, &mut reaction);
                let Context::Dctcp(state) = &engine.laws.states[0].context else { panic!("DCTCP") };
                let packets = |octets: u32| octets / u32::from(MTU);
                assert_eq!((packets(state.acked), packets(state.marked)), told, "{kind:?}: {psn}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_law_hears_of_each_octet_once_in_whatever_order_packets_come(
            kind in prop::sample::select(KINDS.to_vec()),
            first in prop::collection::vec((0..PACKETS, 0u8..8), 0..60),
            then in Just((0..PACKETS).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut engine = engine(kind, "timely", &[("segment", "1GB"), ("first_rate", "1")]);
            let octets = |psn: u32| if psn + 1 == PACKETS { 1 } else { u32::from(MTU) };
            let (mut now, mut came, mut told) = (Instant::ZERO, BTreeSet::new(), BTreeSet::new());
            let (mut before, mut reaction) = (0, Reaction::default());
            for (psn, fate) in first.into_iter().chain(then.into_iter().map(|psn| (psn, 1))) {
                now += Span::from_nanos(100);
                while engine.transmit(now).is_some() {}
                came.insert(psn);
                let expected = (0..PACKETS).find(|psn| !came.contains(psn)).unwrap_or(PACKETS);
                let header = answer(kind, psn, expected);
                // One answer of eight is lost, and one is doubled.
                for _ in 0..[0, 2].get(usize::from(fate)).copied().unwrap_or(1) {
                    let arrival = Arrival::new(&header, 0);
                    engine.receive(now, &arrival, &mut reaction);
                    told.insert(psn);
                }
                let (una, heard) = (engine.qps[0].requester.una, heard(&engine));
                let known = told.iter().copied().chain(0..una).collect::<BTreeSet<_>>();
                let known = known.into_iter().map(octets).sum::<u32>();
                prop_assert!((before..=known).contains(&heard), "{} after {}, of {}", heard, before, known);
                before = heard;
            }
            prop_assert_eq!(before, (0..PACKETS).map(octets).sum::<u32>());
        }
    }
}
