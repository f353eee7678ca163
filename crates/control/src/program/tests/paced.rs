//! `paced.c` has no twin in Rust: it does on the cores what other laws leave to hardware. Its rates are held against those
//! of DCQCN in Rust; its pacing, its count of octets and its answers to marks against what they should come to.

use super::super::{Image, Options, Programmed, State};
use crate::event::{Class, Event};
use crate::outcome::{Credit, Emit, Outcome, Verdict};
use crate::{Context, Law};
use alloc::sync::Arc;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant, Span};

const LINK: BitsPerSec = BitsPerSec::from_gbps(10);
/// Octets of payload of a packet, unless a test says otherwise.
const LENGTH: u32 = 1_000;
/// The most.
const LONGEST: u32 = 4_096;

/// Three queue pairs that take turns on the program, and the engine's side of them.
struct Bench {
    law: Programmed,
    pairs: Vec<(State, Outcome)>,
    now: Instant,
    /// Octets of payload of a packet.
    length: u32,
}

impl Bench {
    fn new(link: BitsPerSec) -> Self {
        let file = include_bytes!("../../../../../firmware/paced.elf");
        let image = Image::new("paced", file, &Options::default()).unwrap();
        let law = Programmed::new(Arc::new(image), Law::None).unwrap();
        let now = Instant::ZERO + Span::from_millis(1);
        let pairs = (0..3).map(|qpn| law.open(link.as_kbps(), qpn, now)).collect();
        Self { law, pairs, now, length: LENGTH }
    }

    /// Queue pair `qp` hears of a packet of `class`.
    fn hear(&mut self, qp: usize, class: Class, ecn: bool) -> Outcome {
        let (state, known) = &mut self.pairs[qp];
        let mut outcome = Outcome::unchanged(known.credit, known.wake);
        let event = Event { class, now: self.now, ecn, length: self.length, ..Event::default() };
        self.law.on_event(state, &event, &mut outcome);
        assert_eq!(self.law.tally().first().map(alloc::string::ToString::to_string), None);
        *known = outcome;
        outcome
    }

    /// Time passes, and timers run out.
    fn until(&mut self, then: Instant) {
        for qp in 0..self.pairs.len() {
            while self.pairs[qp].1.wake <= then {
                self.now = self.pairs[qp].1.wake;
                self.hear(qp, Class::TIMER, false);
            }
        }
        self.now = then;
    }

    fn pass(&mut self, span: Span) {
        self.until(self.now + span);
    }

    /// A word of a context.
    fn word(&self, qp: usize, name: &str) -> u32 {
        let word = self.law.image().field(name).expect("a field").word;
        self.law.context_at(&self.pairs[qp].0, self.now)[usize::from(word)]
    }

    fn words(&self, qp: usize) -> [u32; 32] {
        self.law.context_at(&self.pairs[qp].0, self.now)
    }

    /// How many ns pass until a packet that is offered each 100 ns is let go.
    fn wait(&mut self, qp: usize) -> u64 {
        let begun = self.now;
        loop {
            self.pass(Span::from_nanos(100));
            if self.hear(qp, Class::TRANSMIT, false).verdict == Verdict::Proceed {
                return self.now.since(begun).as_ps() / 1_000;
            }
        }
    }

    /// How many of the packets that are offered each 100 ns for so long are let go.
    fn offer(&mut self, qp: usize, span: Span) -> u32 {
        let end = self.now + span;
        let mut sent = 0;
        while self.now < end {
            sent += u32::from(self.hear(qp, Class::TRANSMIT, false).verdict == Verdict::Proceed);
            self.pass(Span::from_nanos(100));
        }
        sent
    }
}

#[test]
fn a_cnp_halves_the_rate_at_first_and_timers_bring_it_back() {
    let link = LINK.as_kbps();
    let mut bench = Bench::new(LINK);
    assert_eq!((bench.word(0, "rate"), bench.word(0, "gap")), (link, 0), "it is not paced");
    bench.hear(0, Class::CNP, false);
    assert_eq!((bench.word(0, "rate"), bench.word(0, "target")), (link / 2, link));
    bench.pass(Span::from_micros(55));
    assert_eq!(bench.word(0, "rate"), link / 4 * 3, "half of the way to the target");
    bench.pass(Span::from_millis(3));
    assert_eq!((bench.word(0, "rate"), bench.word(0, "gap")), (link, 0), "it is not paced any more");
}

#[test]
fn no_queue_pair_notices_what_happens_to_another() {
    let mut bench = Bench::new(LINK);
    let before = bench.words(1);
    for _ in 0..20 {
        bench.hear(0, Class::CNP, false);
        bench.hear(0, Class::WRITE, true);
        bench.offer(0, Span::from_micros(20));
    }
    assert!(bench.word(0, "rate") < LINK.as_kbps() / 10);
    assert_eq!(bench.words(1), before);
    assert_eq!(bench.offer(1, Span::from_micros(10)), 100, "all of them");
}

#[test]
fn loop_back_paces_packets_to_the_rate() {
    let mut bench = Bench::new(LINK);
    assert_eq!(bench.offer(0, Span::from_micros(10)), 100, "all of them, without a CNP");
    // At 5 Gb/s a packet takes 1.6 µs.
    bench.hear(0, Class::CNP, false);
    let sent = bench.offer(0, Span::from_micros(50));
    assert!((30..=33).contains(&sent), "{sent}");
    // An idle queue pair saves nothing up.
    bench.hear(0, Class::CNP, false);
    bench.pass(Span::from_micros(40));
    let rate = bench.word(0, "rate");
    let expected = u64::from(rate) * 10 / 8 / u64::from(LENGTH) / 1_000;
    let sent = u64::from(bench.offer(0, Span::from_micros(10)));
    assert!(sent.abs_diff(expected) <= 1, "{sent} packets in 10 µs at {rate} kb/s");
}

#[test]
fn a_packet_waits_as_long_as_the_one_before_it_takes_at_the_rate_with_which_that_went() {
    for length in [LENGTH, LONGEST] {
        let mut bench = Bench::new(LINK);
        bench.length = length;
        let (mut rises, mut least) = (0, u32::MAX);
        for cnps in 1..=12 {
            for _ in 0..cnps {
                bench.hear(0, Class::CNP, false);
            }
            // What has waited since the rate was higher goes first.
            bench.wait(0);
            let rate = bench.word(0, "rate");
            let (waited, due) = (bench.wait(0), u64::from(length) * 8_000_000 / u64::from(rate));
            assert!(
                (due * 999 / 1_000 - 100..=due * 1_001 / 1_000 + 100).contains(&waited),
                "{length} B after {cnps} more CNPs at {rate} kb/s: {waited} ns, due after {due}"
            );
            rises += u32::from(bench.word(0, "rate") > rate);
            least = least.min(rate);
        }
        assert!(least < 50_000 && rises > 2, "close to the least: {least}; while a packet waits: {rises}");
    }
}

#[test]
fn a_queue_pair_that_was_idle_does_not_wait_for_a_clock_that_goes_round() {
    let mut bench = Bench::new(LINK);
    for _ in 0..8 {
        bench.hear(0, Class::CNP, false);
    }
    bench.hear(0, Class::TRANSMIT, false);
    for idle in [Span::from_millis(1), Span::from_secs(2), Span::from_secs(4)] {
        // Its timers do not run here: at a rate that does not rise, the clock alone is looked at.
        bench.now += idle;
        assert_eq!(bench.hear(0, Class::TRANSMIT, false).verdict, Verdict::Proceed, "after {idle}");
    }
}

#[test]
fn marks_are_answered_by_a_cnp_in_fifty_microseconds_for_each_queue_pair() {
    let cnp = Some(Emit::plain(Class::CNP));
    let mut bench = Bench::new(LINK);
    assert_eq!(bench.hear(0, Class::WRITE, false).emit, None);
    for class in [Class::WRITE, Class::SEND, Class::READ_RESPONSE] {
        for qp in [0, 1] {
            assert_eq!(bench.hear(qp, class, true).emit, cnp, "{class:?}");
            assert_eq!(bench.hear(qp, class, true).emit, None, "{class:?}");
        }
        bench.pass(Span::from_nanos(49_999));
        assert_eq!([0, 1].map(|qp| bench.hear(qp, class, true).emit), [None; 2]);
        bench.pass(Span::from_nanos(1));
    }
    assert_eq!(bench.word(0, "rate"), LINK.as_kbps(), "marks on what arrives are not about what it sends");
}

#[test]
fn ten_megabytes_are_an_increase_as_a_timer_is() {
    let mut bench = Bench::new(BitsPerSec::from_gbps(400));
    bench.hear(0, Class::CNP, false);
    let mut left = 10_000_000 / LENGTH;
    while left > 0 {
        assert_eq!(bench.word(0, "byte_stage"), 0, "{left} packets are left");
        // A packet takes 40 ns at the rate of half a link.
        left -= u32::from(bench.hear(0, Class::TRANSMIT, false).verdict == Verdict::Proceed);
        bench.pass(Span::from_nanos(41));
    }
    let (before, target, stage) = (bench.word(0, "rate"), bench.word(0, "target"), bench.word(0, "stage"));
    bench.pass(Span::from_nanos(200));
    assert_eq!((bench.word(0, "byte_stage"), bench.word(0, "stage")), (1, stage));
    assert!(before < target && bench.word(0, "rate") == before.midpoint(target + 1));
}

proptest! {
    /// Cuts round down here and to the nearest there, which is a kb/s at each; alpha is the same.
    #[test]
    fn its_rates_are_those_of_dcqcn_in_rust(
        gbps in prop::sample::select(&[10u64, 25, 100, 400][..]),
        cnps in prop::collection::vec((0usize..3, prop_oneof![6 => 0u64..200_000_000, 1 => 0u64..20_000_000_000]), 1..200),
    ) {
        let link = BitsPerSec::from_gbps(gbps);
        let mut bench = Bench::new(link);
        let mut law = Law::from_settings("dcqcn", &[], link).expect("DCQCN");
        let mut pairs: Vec<_> = (0..3).map(|_| {
            let (context, credit, wake) = law.connect(link.as_kbps());
            (context, credit, wake, 0u32)
        }).collect();
        let mut tell = |(context, credit, wake, _): &mut (Context, Credit, Instant, u32), class, now| {
            let mut outcome = Outcome::unchanged(*credit, *wake);
            law.on_event(context, &Event { class, now, ..Event::default() }, &mut outcome);
            (*credit, *wake) = (outcome.credit, outcome.wake);
            let sample = law.sample(context, credit, now).expect("DCQCN has samples");
            (sample.rate_kbps, sample.target_kbps)
        };
        for (qp, gap) in cnps {
            bench.pass(Span::from_ps(gap));
            bench.hear(qp, Class::CNP, false);
            let now = bench.now;
            for pair in &mut pairs {
                while pair.2 <= now {
                    let at = pair.2;
                    tell(pair, Class::TIMER, at);
                }
            }
            pairs[qp].3 += 1;
            let (rate, target) = tell(&mut pairs[qp], Class::CNP, now);
            let off = 2 * pairs[qp].3 + 2;
            prop_assert!(bench.word(qp, "rate").abs_diff(rate) <= off, "{} {rate}", bench.word(qp, "rate"));
            prop_assert!(bench.word(qp, "target").abs_diff(target) <= off);
        }
    }
}
