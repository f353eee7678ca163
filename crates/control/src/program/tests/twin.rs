//! A program in C and the law in Rust of the same name are one function of the events, bit for bit.
//!
//! A line in `twins!` adds a law: its image, the classes that both hear, the law in Rust, and what the program's context
//! is by its state.

use super::super::{Image, Options, Programmed};
use crate::event::{Class, Event, Hop, Part, PathId};
use crate::outcome::{Credit, Outcome, Verdict};
use crate::register::SettingError;
use crate::{Context, Law, hpcc, swift, timely};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant, Span};

/// The words of the program's context at an instant, from the state of the law in Rust.
type Words = fn(&Law, &mut Context, Instant) -> Vec<u32>;

/// Keys of the law in Rust and parameters of the program, which have the same names unless `name/other` says otherwise.
pub(super) type Tuning = Vec<(&'static str, String)>;

/// Numbers that parameters are made of.
struct Draw<'a>(&'a [u32; 16], usize);

impl Draw<'_> {
    /// One from `low` to `high`.
    fn from(&mut self, low: u32, high: u32) -> u32 {
        self.1 += 1;
        low + self.0[self.1 - 1] % (high - low + 1)
    }

    /// One with this unit.
    fn of(&mut self, low: u32, high: u32, unit: &str) -> String {
        format!("{}{unit}", self.from(low, high))
    }

    /// So many thousandths.
    fn thousandths(&mut self, low: u32, high: u32) -> String {
        let n = self.from(low, high);
        format!("{}.{:03}", n / 1_000, n % 1_000)
    }
}

/// A program and the law that it is the twin of.
pub(super) struct Twin {
    elf: &'static str,
    image: &'static [u8],
    pub(super) classes: &'static [Class],
    law: &'static str,
    preset: &'static str,
    words: Words,
}

impl Twin {
    /// The law in Rust with these keys.
    pub(super) fn rust(&self, tuning: &Tuning, link: BitsPerSec) -> Result<Law, SettingError> {
        // Homa has no presets.
        let preset = Some(("preset", self.preset)).filter(|(_, preset)| !preset.is_empty());
        let settings: Vec<_> = preset.into_iter().chain(tuning.iter().filter_map(rust_key)).collect();
        Law::from_settings(self.law, &settings, link)
    }

    /// The program with these parameters.
    pub(super) fn program(&self, tuning: &Tuning, translated: bool) -> Result<Programmed, SettingError> {
        let options = Options { translated, ..Options::default() };
        let image = Image::new(self.elf, self.image, &options).unwrap_or_else(|error| panic!("{error}"));
        let mut law = Programmed::new(Arc::new(image), Law::None).expect("a fallback");
        let settings: Vec<_> = tuning.iter().filter_map(program_key).collect();
        law.set_initial_all(&settings).map(|()| law).map_err(|(_, error)| error)
    }

    /// Both answer alike, event by event.
    pub(super) fn agrees(
        &self,
        tuning: &Tuning,
        link: BitsPerSec,
        begin: Instant,
        events: &[Happening],
    ) -> Result<(), TestCaseError> {
        let rust = |link| self.rust(tuning, link).expect("a law");
        for translated in [true, false] {
            let program = self.program(tuning, translated).unwrap_or_else(|error| panic!("{error}"));
            agree(program, &rust, self.words, link, begin, events)?;
        }
        Ok(())
    }
}

macro_rules! twins {
    ($($twin:ident, $name:ident: $elf:literal, $classes:expr, $law:literal, $preset:literal, $tuning:expr, $words:expr;)*) => {
        $(pub(super) static $twin: Twin = Twin {
            elf: $elf,
            image: include_bytes!(concat!("../../../../../firmware/", $elf)),
            classes: $classes,
            law: $law,
            preset: $preset,
            words: $words,
        };)*
        proptest! {
            $(#[test]
            fn $name(
                link in links(),
                tuned in any::<bool>(),
                numbers in any::<[u32; 16]>(),
                begin in begins(),
                events in stream($twin.classes),
            ) {
                let tuning: fn(&mut Draw<'_>) -> Tuning = $tuning;
                let tuning = if tuned { tuning(&mut Draw(&numbers, 0)) } else { Tuning::new() };
                $twin.agrees(&tuning, link, begin, &events)?;
            })*
        }
    };
}

/// `only in Rust/` and `/only in C` are keys that the other has not.
pub(super) fn rust_key<'a>((key, text): &'a (&'static str, String)) -> Option<(&'static str, &'a str)> {
    let name = key.split('/').next().unwrap_or(key);
    (!name.is_empty()).then_some((name, text))
}

pub(super) fn program_key<'a>((key, text): &'a (&'static str, String)) -> Option<(&'static str, &'a str)> {
    let name = key.split('/').next_back().unwrap_or(key);
    (!name.is_empty()).then_some((name, text))
}

twins! {
    DCQCN, dcqcn_in_c_is_dcqcn_in_rust: "dcqcn.elf", &[Class::CNP, Class::CE, Class::BYTE_COUNTER], "dcqcn", "sigcomm15",
        |draw| [
            ("rai", draw.of(1, 2_000, "Mb/s")), ("rhai", draw.of(1, 5_000, "Mb/s")), ("rmin", draw.of(1, 2_000, "Mb/s")),
            ("threshold", draw.of(1, 10, "")), ("byte_counter", draw.of(10, 3_000, "KB")),
            ("alpha_timer", draw.of(1, 300, "us")), ("increase_timer", draw.of(1, 1_000, "us")),
            ("cnp_gap", draw.of(1, 100, "us")), ("g", format!("{}/{}", draw.from(1, 90), draw.from(90, 256))),
        ].into(),
        |law, context, now| match (law, context) {
            (Law::Dcqcn(law), Context::Dcqcn(state)) => law.words(state, now),
            _ => Vec::new(),
        };
    TIMELY, timely_in_c_is_timely_in_rust: "timely.elf", &[Class::ACK], "timely", "sigcomm15",
        |draw| {
            let (alpha, beta) = ([draw.from(1, 60), draw.from(60, 99)], [draw.from(1, 60), draw.from(60, 99)]);
            let low = draw.from(1, 100);
            [
                ("alpha/", format!("{}/{}", alpha[0], alpha[1])), ("/alpha_num", alpha[0].to_string()),
                ("/alpha_den", alpha[1].to_string()), ("beta/", format!("{}/{}", beta[0], beta[1])),
                ("/beta_num", beta[0].to_string()), ("/beta_den", beta[1].to_string()), ("t_low", format!("{low}us")),
                ("t_high", format!("{}us", low + draw.from(1, 900))), ("min_rtt", draw.of(1, 90, "us")),
                ("delta", draw.of(1, 900, "Mb/s")), ("hai", draw.of(1, 900, "Mb/s")), ("hai_after", draw.of(1, 9, "")),
                ("segment", draw.of(1, 64, "KB")), ("rmin", draw.of(1, 900, "Mb/s")),
            ].into()
        },
        |_, context, _| match context {
            Context::Timely(timely::State { link_kbps, rate_kbps, prev_rtt, rtt_diff, quiet, progress }) => {
                [*link_kbps, *rate_kbps, *prev_rtt, rtt_diff.cast_unsigned(), *quiet, *progress].into()
            }
            _ => Vec::new(),
        };
    HPCC, hpcc_in_c_is_hpcc_in_rust: "hpcc.elf", &[Class::ACK], "hpcc", "sigcomm19",
        |draw| [
            ("eta", draw.thousandths(500, 1_000)), ("base_rtt", draw.of(1, 60, "us")), ("w_ai", draw.of(1, 9_000, "B")),
            ("max_stage", draw.of(0, 9, "")), ("wmin", draw.of(1, 9_000, "B")),
        ].into(),
        |_, context, _| match context {
            Context::Hpcc(state) => hpcc_words(state),
            _ => Vec::new(),
        };
    SWIFT, swift_in_c_is_swift_in_rust: "swift.elf", &[Class::ACK, Class::ACK, Class::ACK, Class::LOSS], "swift", "htsim",
        |draw| {
            let (scaled, least, mss) = (draw.from(10, 900), draw.from(10, 900), draw.from(1, 4_096));
            [
                ("ai", draw.thousandths(1, 9_000)), ("beta", draw.thousandths(1, 1_000)),
                ("max_mdf", draw.thousandths(1, 1_000)), ("base_target", draw.of(1, 90, "us")),
                ("per_hop", draw.of(0, 9_000, "ns")), ("hops/hops_untold", draw.of(0, 9, "")),
                ("fs_range", draw.of(0, 500, "us")), ("fs_min_cwnd", format!("0.{scaled:03}")),
                ("fs_max_cwnd", draw.thousandths(1_000, 100_000)), ("min_cwnd", format!("0.{least:03}")),
                ("max_cwnd", draw.thousandths(30_000, 900_000)), ("first_cwnd", draw.thousandths(1_000, 30_000)),
                ("retx_reset", draw.of(1, 9, "")), ("/mss", mss.to_string()), ("mss/", format!("{mss}B")),
            ].into()
        },
        |_, context, _| match context {
            Context::Swift(swift::State { link_kbps, cwnd, target, hops, grown, decreased_at, rtt, timeouts }) => {
                [*link_kbps, *cwnd, *target, *hops, *grown, *decreased_at, *rtt, *timeouts].into()
            }
            _ => Vec::new(),
        };
    HOMA, homa_in_c_is_homa_in_rust: "homa.elf", HOMA_CLASSES, "homa", "",
        |draw| {
            let (resend, resends, cutoff) = (draw.from(100, 5_000), draw.from(1, 9), draw.from(1, 5_000));
            [
                ("unscheduled", draw.of(1, 90_000, "B")), ("ahead", draw.of(1, 90_000, "B")), ("cutoff_1", format!("{cutoff}B")),
                ("cutoff_2", format!("{}B", cutoff + 4_000)), ("cutoff_3", format!("{}B", 3 * cutoff + 9_000)),
                ("resend/", format!("{resend}us")), ("resends/", resends.to_string()),
                ("/patience", format!("{}us", resend * (resends + 2))),
            ].into()
        },
        |_, context, _| match context {
            Context::Homa(state) => state.words().into(),
            _ => Vec::new(),
        };
}

/// What Homa hears as a sender and, of turns, as a receiver.
const HOMA_CLASSES: &[Class] = &[Class::MESSAGE, Class::GRANT, Class::GRANT, Class::RESEND, Class::TURN];

fn hpcc_words(state: &hpcc::State) -> Vec<u32> {
    let hpcc::State { link_kbps, window, reference, utilisation, update_at, stage, path } = *state;
    let links = path.links.iter().flat_map(|link| {
        let Hop { at_ns, tx_bytes, queue_bytes, rate_kbps } = link.seen;
        [at_ns, tx_bytes, queue_bytes, rate_kbps, link.octet]
    });
    [link_kbps, window, reference, utilisation, update_at, stage, path.number]
        .into_iter()
        .chain(links)
        .collect()
}

/// What happens, in numbers that every class makes something else of.
#[derive(Clone, Debug)]
pub(super) struct Happening {
    /// To which queue pair.
    to: usize,
    class: Class,
    /// Picoseconds since the one before.
    gap: u64,
    ecn: bool,
    length: u32,
    /// Packets acknowledged, of those in flight, and packets sent since.
    acked: u32,
    sent: u32,
    /// Octets of an acknowledged packet.
    octets: u32,
    /// Nanoseconds that the answered packet was under way; `None`: unknown.
    rtt: Option<u64>,
    hops: Vec<(u32, u32, u32, u32)>,
    part: (u32, u32, u32),
}

pub(super) fn links() -> impl Strategy<Value = BitsPerSec> {
    prop_oneof![Just(10u64), Just(25), Just(100), Just(400)].prop_map(BitsPerSec::from_gbps)
}

/// When queue pairs are made: as the clock begins, or up to 50 ms before its nanoseconds come to 2^32 and begin anew, which no
/// law may notice.
pub(super) fn begins() -> impl Strategy<Value = Instant> {
    const ROUND: u64 = 1 << 32;
    let before =
        prop_oneof![Just(ROUND), 0u64..50_000_000, 0u64..1_000_000].prop_map(|before| ROUND - before);
    before.prop_map(|ns| Instant::ZERO + Span::from_nanos(ns))
}

/// Gaps from one packet's time to long silences, and to some in which the clock of 32 bits goes round.
fn gaps() -> impl Strategy<Value = u64> {
    prop_oneof![
        120 => 0u64..2_000_000,
        60 => 0u64..200_000_000,
        20 => 0u64..20_000_000_000,
        1 => 0u64..10_000_000_000_000,
    ]
}

/// Numbers that nobody would expect, in one of so many cases: whatever a register can hold, and mostly its ends.
fn wild(usual: impl Strategy<Value = u32> + 'static, seldom: u32) -> impl Strategy<Value = u32> {
    let ends = prop_oneof![0u32..3, any::<u32>(), (1u32 << 31) - 2..(1 << 31) + 3, u32::MAX - 2..=u32::MAX];
    prop_oneof![seldom => usual, 1 => ends]
}

pub(super) fn stream(classes: &'static [Class]) -> impl Strategy<Value = Vec<Happening>> {
    let rtt = prop_oneof![
        3 => Just(None),
        24 => (1_000u64..1_000_000).prop_map(Some),
        // None at all, and more than the laws tell apart or the clock can.
        1 => prop_oneof![0u64..3, 60_000_000u64..80_000_000, 0u64..10_000_000_000].prop_map(Some),
    ];
    let numbers = (0u32..4, 0u32..6, wild(Just(1_024), 60), rtt);
    let rates = prop_oneof![Just(100_000_000u32), Just(400_000_000)];
    let hop = (wild(1u32..5_000, 60), wild(0u32..100_000, 60), wild(0u32..500_000, 60), wild(rates, 60));
    let part = (wild(0u32..1_000_000, 30), wild(0u32..100_000, 30), 0u32..8);
    let happening = (
        (0..PAIRS, prop::sample::select(classes)),
        gaps(),
        any::<bool>(),
        1u32..4_097,
        numbers,
        prop::collection::vec(hop, 0..8),
        part,
    );
    let happening =
        happening.prop_map(|((to, class), gap, ecn, length, (acked, sent, octets, rtt), hops, part)| {
            Happening { to, class, gap, ecn, length, acked, sent, octets, rtt, hops, part }
        });
    prop::collection::vec(happening, 1..300)
}

/// Queue pairs that a law has at once.
const PAIRS: usize = 3;

/// A queue pair of a law, and the engine's side of it.
struct Pair {
    context: Context,
    credit: Credit,
    wake: Instant,
}

impl Pair {
    /// So many packets have gone on tokens, where those limit anything; each takes so many that now and then all are gone.
    fn spend(&mut self, packets: u32) {
        const OCTETS: u32 = 20_000;
        if self.credit.tokens != Credit::UNLIMITED {
            self.credit.tokens = self.credit.tokens.saturating_sub(packets * OCTETS);
        }
    }
}

/// A law with queue pairs that take turns on it.
struct Run {
    law: Law,
    pairs: [Pair; PAIRS],
}

/// A queue pair's number.
fn number(pair: usize) -> u32 {
    u32::try_from(pair).map_or(0, |pair| 5 + pair)
}

impl Run {
    fn new(law: Law, link: BitsPerSec, begin: Instant) -> Self {
        let pairs = core::array::from_fn(|pair| {
            let (context, outcome) = law.open(link.as_kbps(), number(pair), begin);
            Pair { context, credit: outcome.credit, wake: outcome.wake }
        });
        Self { law, pairs }
    }

    fn tell(&mut self, to: usize, event: &Event<'_>) -> Outcome {
        let pair = &mut self.pairs[to];
        let mut outcome = Outcome::unchanged(pair.credit, pair.wake);
        self.law.on_event(&mut pair.context, event, &mut outcome);
        (pair.credit, pair.wake) = (outcome.credit, outcome.wake);
        // A native law knows no cycles, and an emitted packet's words are those of the header.
        Outcome { cycles: 0, late_cycles: 0, traces: None, ..outcome }
    }

    /// The words of the context of a queue pair of the program.
    fn words(&self, pair: usize, now: Instant) -> [u32; 32] {
        let (Law::Program(law), Context::Program(state)) = (&self.law, &self.pairs[pair].context) else {
            unreachable!("a program's")
        };
        law.context_at(state, now)
    }
}

/// What the engine knows of a queue pair that hears of things.
#[derive(Clone, Copy, Default)]
struct Counts {
    acked: u32,
    next: u32,
    /// What the switches had sent by the last telemetry.
    sent: [u64; 8],
}

fn agree(
    program: Programmed,
    rust: &dyn Fn(BitsPerSec) -> Law,
    words: Words,
    link: BitsPerSec,
    begin: Instant,
    happenings: &[Happening],
) -> Result<(), TestCaseError> {
    let mut native = Run::new(rust(link), link, begin);
    let mut coded = Run::new(Law::Program(Box::new(program)), link, begin);
    for (native, coded) in native.pairs.iter().zip(&coded.pairs) {
        prop_assert_eq!((native.credit, native.wake), (coded.credit, coded.wake), "at the start");
    }
    let mut now = begin + Span::from_micros(10);
    let mut counts = [Counts::default(); PAIRS];
    for happening in happenings {
        now += Span::from_ps(happening.gap);
        let to = happening.to;
        // The engine wakes the laws that have asked for it, whichever queue pair something happens to.
        for pair in 0..PAIRS {
            while native.pairs[pair].wake <= now {
                let at = native.pairs[pair].wake;
                let event = Event { class: Class::TIMER, now: at, qpn: number(pair), ..Event::default() };
                let (expected, found) = (native.tell(pair, &event), coded.tell(pair, &event));
                prop_assert_eq!(expected, found, "{} woken at {}", pair, event.now);
            }
        }
        let counts = &mut counts[to];
        counts.next = counts.next.wrapping_add(happening.sent);
        let acked = happening.acked.min(counts.next.wrapping_sub(counts.acked));
        counts.acked = counts.acked.wrapping_add(acked);
        let hops: Vec<Hop> = happening
            .hops
            .iter()
            .zip(&mut counts.sent)
            .map(|(&(ago, more, queue_bytes, rate_kbps), sent)| {
                *sent += u64::from(more);
                let at =
                    Instant::ZERO + now.since(Instant::ZERO).saturating_sub(Span::from_nanos(ago.into()));
                Hop::new(at, *sent, queue_bytes, rate_kbps)
            })
            .collect();
        let sent = |age| Instant::ZERO + now.since(Instant::ZERO).saturating_sub(Span::from_nanos(age));
        let (message_length, end, priority) = happening.part;
        #[expect(clippy::cast_possible_truncation, reason = "small")]
        let (hop_count, priority) = (hops.len() as u8, priority as u8);
        let part = Part { message: counts.acked, message_length, offset: end / 2, end, priority };
        let event = Event {
            class: happening.class,
            now,
            qpn: number(to),
            length: happening.length,
            ecn: happening.ecn,
            acked: acked.saturating_mul(happening.octets),
            in_flight: counts.next.wrapping_sub(counts.acked) * 1_024,
            acked_sequence: counts.acked,
            next_sequence: counts.next,
            sent: happening.rtt.map_or(Instant::ZERO, sent),
            hop_count,
            path_id: PathId::new(if happening.length % 4 == 0 { 0x00ff_ffff } else { 0 }),
            timeout: happening.class.meets(Class::LOSS.with(Class::TURN)) && happening.ecn,
            part,
            hops: &hops,
            ..Event::default()
        };
        for run in [&mut native, &mut coded] {
            run.pairs[to].spend(happening.sent);
        }
        let (expected, found) = (native.tell(to, &event), coded.tell(to, &event));
        prop_assert_eq!(found.verdict, Verdict::Proceed);
        prop_assert_eq!(expected, found, "{:?}", event);
        let Law::Program(law) = &coded.law else { unreachable!("a program") };
        prop_assert!(law.tally().fallen() == 0, "{:?}", law.tally().first());
        same_words(&mut native, &coded, to, words, now, &event)?;
    }
    // Nor has what happened to one of them left anything with another.
    (0..PAIRS).try_for_each(|pair| same_words(&mut native, &coded, pair, words, now, &Event::default()))
}

fn same_words(
    native: &mut Run,
    coded: &Run,
    pair: usize,
    words: Words,
    now: Instant,
    event: &Event<'_>,
) -> Result<(), TestCaseError> {
    let mut expected = words(&native.law, &mut native.pairs[pair].context, now);
    expected.resize(32, 0);
    prop_assert_eq!(&expected[..], &coded.words(pair, now)[..], "{}", format!("{pair} after {event:?}"));
    Ok(())
}
