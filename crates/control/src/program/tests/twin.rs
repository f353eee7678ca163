//! A program in C and the law in Rust of the same name are one function of the events, bit for bit.
//!
//! A line in `twins!` adds a law: its image, the classes that both hear, the law in Rust, and what the program's context
//! is by its state.

use super::super::{Image, Options, Programmed};
use crate::event::{Class, Event, Hop, Part};
use crate::outcome::{Credit, Outcome, Verdict};
use crate::{Context, Law, hpcc, swift, timely};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant, Span};

/// The words of the program's context at an instant, from the state of the law in Rust.
type Words = fn(&Law, &mut Context, Instant) -> Vec<u32>;

macro_rules! twins {
    ($($name:ident: $elf:literal, $classes:expr, $law:literal, $preset:literal, $words:expr;)*) => {
        proptest! {
            $(#[test]
            fn $name(link in links(), events in stream($classes)) {
                let preset = [("preset", $preset)];
                // Homa has no presets.
                let settings = if $preset.is_empty() { &[] } else { &preset[..] };
                let rust = |link| Law::from_settings($law, settings, link).expect("a law");
                for translated in [true, false] {
                    agree($elf, include_bytes!(concat!("../../../../../firmware/", $elf)), translated, &rust, $words, link, &events)?;
                }
            })*
        }
    };
}

twins! {
    dcqcn_in_c_is_dcqcn_in_rust: "dcqcn.elf", &[Class::CNP, Class::CE, Class::BYTE_COUNTER], "dcqcn", "sigcomm15",
        |law, context, now| match (law, context) {
            (Law::Dcqcn(law), Context::Dcqcn(state)) => law.words(state, now),
            _ => Vec::new(),
        };
    timely_in_c_is_timely_in_rust: "timely.elf", &[Class::ACK], "timely", "sigcomm15",
        |_, context, _| match context {
            Context::Timely(timely::State { link_kbps, rate_kbps, prev_rtt, rtt_diff, quiet, progress }) => {
                [*link_kbps, *rate_kbps, *prev_rtt, rtt_diff.cast_unsigned(), *quiet, *progress].into()
            }
            _ => Vec::new(),
        };
    hpcc_in_c_is_hpcc_in_rust: "hpcc.elf", &[Class::ACK], "hpcc", "sigcomm19",
        |_, context, _| match context {
            Context::Hpcc(state) => hpcc_words(state),
            _ => Vec::new(),
        };
    swift_in_c_is_swift_in_rust: "swift.elf", &[Class::ACK, Class::ACK, Class::ACK, Class::LOSS], "swift", "htsim",
        |_, context, _| match context {
            Context::Swift(swift::State { link_kbps, cwnd, target, hops, grown, decreased_at, rtt, timeouts }) => {
                [*link_kbps, *cwnd, *target, *hops, *grown, *decreased_at, *rtt, *timeouts].into()
            }
            _ => Vec::new(),
        };
    homa_in_c_is_homa_in_rust: "homa.elf", &[Class::MESSAGE, Class::GRANT, Class::GRANT, Class::RESEND], "homa", "",
        |_, context, _| match context {
            Context::Homa(state) => state.words().into(),
            _ => Vec::new(),
        };
}

fn hpcc_words(state: &hpcc::State) -> Vec<u32> {
    let hpcc::State { link_kbps, window, reference, utilisation, update_at, stage, hop_count, links } =
        *state;
    let links = links.iter().flat_map(|link| {
        let hpcc::Link { at, tx_bytes, queue_bytes, rate_kbps, octet } = *link;
        [at, tx_bytes, queue_bytes, rate_kbps, octet]
    });
    [link_kbps, window, reference, utilisation, update_at, stage, hop_count]
        .into_iter()
        .chain(links)
        .collect()
}

/// What happens, in numbers that every class makes something else of.
#[derive(Clone, Debug)]
struct Happening {
    class: Class,
    /// Picoseconds since the one before.
    gap: u64,
    ecn: bool,
    length: u32,
    /// Packets acknowledged, of those in flight, and packets sent since.
    acked: u32,
    sent: u32,
    /// Nanoseconds that the answered packet was under way; zero: unknown.
    rtt: u32,
    held: u32,
    hops: Vec<(u32, u32, u32, u32)>,
    part: (u32, u32, u32),
}

fn links() -> impl Strategy<Value = BitsPerSec> {
    prop_oneof![Just(10u64), Just(25), Just(100), Just(400)].prop_map(BitsPerSec::from_gbps)
}

/// Gaps from one packet's time to long silences.
fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0u64..2_000_000, 3 => 0u64..200_000_000, 1 => 0u64..20_000_000_000]
}

fn stream(classes: &'static [Class]) -> impl Strategy<Value = Vec<Happening>> {
    let numbers = (0u32..4, 0u32..6, prop_oneof![1 => Just(0u32), 9 => 1_000u32..1_000_000], 0u32..20_000);
    let hop =
        (1u32..5_000, 0u32..100_000, 0u32..500_000, prop_oneof![Just(100_000_000u32), Just(400_000_000)]);
    let part = (0u32..1_000_000, 0u32..100_000, 0u32..8);
    let happening = (
        prop::sample::select(classes),
        gaps(),
        any::<bool>(),
        1u32..4_097,
        numbers,
        prop::collection::vec(hop, 0..6),
        part,
    );
    let happening = happening.prop_map(|(class, gap, ecn, length, (acked, sent, rtt, held), hops, part)| {
        Happening { class, gap, ecn, length, acked, sent, rtt, held, hops, part }
    });
    prop::collection::vec(happening, 1..300)
}

/// A law with a queue pair, and the engine's side of it.
struct Run {
    law: Law,
    context: Context,
    credit: Credit,
    wake: Instant,
}

impl Run {
    fn new(law: Law, link: BitsPerSec) -> Self {
        let (context, credit, wake) = law.connect(link.as_kbps());
        Self { law, context, credit, wake }
    }

    fn tell(&mut self, event: &Event<'_>) -> Outcome {
        let mut outcome = Outcome::unchanged(self.credit, self.wake);
        self.law.on_event(&mut self.context, event, &mut outcome);
        (self.credit, self.wake) = (outcome.credit, outcome.wake);
        // A native law knows no cycles, and an emitted packet's words are those of the header.
        Outcome { cycles: 0, traces: None, ..outcome }
    }
}

fn program(name: &str, file: &[u8], translated: bool) -> Programmed {
    let options = Options { translated, ..Options::default() };
    let image = Image::new(name, file, &options).unwrap_or_else(|error| panic!("{error}"));
    Programmed::new(Arc::new(image), Law::None).expect("a fallback")
}

fn agree(
    name: &str,
    file: &[u8],
    translated: bool,
    rust: &dyn Fn(BitsPerSec) -> Law,
    words: Words,
    link: BitsPerSec,
    happenings: &[Happening],
) -> Result<(), TestCaseError> {
    let mut native = Run::new(rust(link), link);
    let mut coded = Run::new(Law::Program(Box::new(program(name, file, translated))), link);
    prop_assert_eq!((native.credit, native.wake), (coded.credit, coded.wake), "at the start");
    let mut now = Instant::ZERO + Span::from_micros(10);
    let (mut acked_sequence, mut next_sequence) = (0u32, 0u32);
    // What the switches had sent by the last telemetry.
    let mut sent = [0u64; 8];
    for happening in happenings {
        now += Span::from_ps(happening.gap);
        // The engine wakes the law when it has asked for it.
        while native.wake <= now {
            let event = Event { class: Class::TIMER, now: native.wake, ..Event::default() };
            let (expected, found) = (native.tell(&event), coded.tell(&event));
            prop_assert_eq!(expected, found, "woken at {}", event.now);
        }
        next_sequence = next_sequence.wrapping_add(happening.sent);
        let acked = happening.acked.min(next_sequence.wrapping_sub(acked_sequence));
        acked_sequence = acked_sequence.wrapping_add(acked);
        let hops: Vec<Hop> = happening
            .hops
            .iter()
            .zip(&mut sent)
            .map(|(&(ago, more, queue_bytes, rate_kbps), sent)| {
                *sent += u64::from(more);
                let at =
                    Instant::ZERO + now.since(Instant::ZERO).saturating_sub(Span::from_nanos(ago.into()));
                Hop { at, tx_bytes: *sent, queue_bytes, rate_kbps }
            })
            .collect();
        let known = happening.rtt != 0;
        let age = Span::from_nanos(happening.rtt.into());
        let (message_length, end, priority) = happening.part;
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let (hop_count, priority) = (hops.len() as u8, priority as u8);
        let part = Part { message: acked_sequence, message_length, offset: end / 2, end, priority };
        let event = Event {
            class: happening.class,
            now,
            qpn: 5,
            length: happening.length,
            ecn: happening.ecn,
            acked: acked * 1_024,
            in_flight: next_sequence.wrapping_sub(acked_sequence) * 1_024,
            acked_sequence,
            next_sequence,
            sent: if known {
                Instant::ZERO + now.since(Instant::ZERO).saturating_sub(age)
            } else {
                Instant::ZERO
            },
            held: Span::from_nanos(happening.held.into()),
            hop_count,
            timeout: happening.class == Class::LOSS && happening.ecn,
            part,
            hops: &hops,
            ..Event::default()
        };
        let (expected, found) = (native.tell(&event), coded.tell(&event));
        prop_assert_eq!(found.verdict, Verdict::Proceed);
        prop_assert_eq!(expected, found, "{:?}", event);
        let Context::Program(state) = &coded.context else { unreachable!("a program's") };
        let Law::Program(law) = &coded.law else { unreachable!("a program") };
        prop_assert!(!state.has_fallen(), "{:?}", law.tally().first);
        let mut expected = words(&native.law, &mut native.context, now);
        expected.resize(32, 0);
        prop_assert_eq!(&expected[..], &law.context_at(state, now)[..], "{}", format!("after {event:?}"));
    }
    Ok(())
}
