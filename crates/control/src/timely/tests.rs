//! TIMELY against its algorithm in exact arithmetic, and by hand.

use super::*;
use crate::exact::Exact;
use crate::keys::Keyed;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant};

const LINK: u32 = 40_000_000;

fn law(settings: &[(&str, &str)]) -> Timely {
    let mut law = Timely::new(Params::preset("hpcc", BitsPerSec::from_gbps(40)).expect("a preset"));
    for (key, text) in settings {
        assert_eq!(law.set(key, text), Some(Ok(())), "{key} = {text}");
    }
    law
}

/// A queue pair whose acknowledgements come one in each round trip.
struct Pair {
    law: Timely,
    state: State,
    sequence: u32,
    now: u64,
}

impl Pair {
    fn new(law: Timely) -> Self {
        let state = law.connect(LINK);
        Self { law, state, sequence: 0, now: 1 << 40 }
    }

    fn completes(&mut self, rtt_ns: u64) -> u32 {
        self.now += 1_000_000_000;
        self.sequence += 10;
        let event = Event {
            class: Class::ACK,
            now: Instant::from_ps(self.now),
            sent: Instant::from_ps(self.now - rtt_ns * 1_000),
            acked_sequence: self.sequence,
            next_sequence: self.sequence + 5,
            acked: 10_000,
            ..Event::default()
        };
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        self.law.on_event(&mut self.state, &event, &mut outcome);
        self.state.rate_kbps
    }
}

/// Algorithm 1 as it is printed, of kb/s and nanoseconds.
struct Printed {
    rate: Exact,
    prev_rtt: u64,
    rtt_diff: Exact,
    quiet: u32,
}

impl Printed {
    fn completes(&mut self, params: &Params, new_rtt: u64) {
        let one = Exact::from(1);
        let (alpha, beta) = (&Exact::from(params.alpha), &Exact::from(params.beta));
        let new_rtt_diff = Exact::from(new_rtt) - self.prev_rtt;
        self.prev_rtt = new_rtt;
        self.rtt_diff = (&one - alpha) * &self.rtt_diff + alpha * new_rtt_diff;
        let gradient = &self.rtt_diff / Exact::nanos(params.min_rtt);
        let grows = gradient > Exact::default();
        self.quiet = if grows { 0 } else { self.quiet + 1 };
        let (new_rtt, t_high) = (Exact::from(new_rtt), Exact::nanos(params.t_high));
        let rate = if new_rtt < Exact::nanos(params.t_low) {
            &self.rate + params.delta_kbps
        } else if new_rtt > t_high {
            &self.rate * (&one - beta * (&one - t_high / new_rtt))
        } else if grows {
            &self.rate * (&one - (beta * gradient).min(one.clone()))
        } else {
            &self.rate + if self.quiet >= params.hai_after { params.hai_kbps } else { params.delta_kbps }
        };
        self.rate = rate.clamp(params.rmin_kbps.into(), LINK.into());
    }
}

proptest! {
    /// The error of one step: of the rate before it less than 10⁻⁴ (a factor in 16.16 and a ratio), and 1 kb/s of rounding. The smoothed
    /// difference is half a sixteenth of a nanosecond off at each step, and 1/8 of what it was before: 1/28 in all.
    #[test]
    fn each_step_is_the_papers_to_a_part_in_ten_thousand(
        rtts in prop::collection::vec(20_000u64..2_000_000, 2..60),
        first in 1_000_000u32..LINK,
    ) {
        let mut pair = Pair::new(law(&[]));
        pair.completes(rtts[0]);
        pair.state.rate_kbps = first;
        let mut exact =
            Printed { rate: first.into(), prev_rtt: rtts[0], rtt_diff: Exact::default(), quiet: 0 };
        for rtt in &rtts[1..] {
            // Each step begins at the same rate, so that the errors of one step are seen, not their sum.
            exact.rate = pair.state.rate_kbps.into();
            let bound = &exact.rate / 10_000 + 1;
            let params = *pair.law.params();
            exact.completes(&params, *rtt);
            let got = pair.completes(*rtt);
            prop_assert!((&exact.rate - got).abs() <= bound, "{got} {:?}", exact.rate);
            let diff = Exact::over(pair.state.rtt_diff, 16);
            prop_assert!((&diff - &exact.rtt_diff).abs() <= Exact::over(1, 28), "{diff:?} {:?}", exact.rtt_diff);
        }
    }

    #[test]
    fn whatever_comes_the_rate_stays_between_least_and_link(
        rtts in prop::collection::vec(0u64..1_000_000_000, 1..100),
    ) {
        let mut pair = Pair::new(law(&[]));
        let least = pair.law.params().rmin_kbps;
        for rtt in rtts {
            let rate = pair.completes(rtt);
            prop_assert!((least..=LINK).contains(&rate));
        }
    }
}

#[test]
fn five_quiet_events_begin_hyperactive_increase() {
    let mut pair = Pair::new(law(&[("hai_after", "5")]));
    pair.completes(100_000);
    pair.state.rate_kbps = 1_000_000;
    let rates: Vec<u32> = (0..6).map(|_| pair.completes(100_000)).collect();
    let (delta, hai) = (40_000, 200_000);
    let steps: Vec<u32> = rates.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(rates[0], 1_000_000 + delta);
    assert_eq!(steps, [delta, delta, delta, hai, hai]);
}

#[test]
fn a_segment_is_one_completion_event_whatever_its_packets() {
    let mut pair = Pair::new(law(&[("segment", "20KB")]));
    pair.completes(100_000);
    assert_eq!(pair.state.prev_rtt, 0, "half a segment");
    pair.completes(90_000);
    assert_eq!(pair.state.prev_rtt, 90_000);
}

#[test]
fn an_acknowledgement_of_the_same_window_is_not_heard_twice() {
    let mut pair = Pair::new(law(&[]));
    pair.completes(100_000);
    pair.state.rate_kbps = 1_000_000;
    pair.sequence -= 8; // 2 more packets acknowledged, of 5 that were in flight
    assert_eq!(pair.completes(100_000), 1_000_000);
    assert_eq!(pair.completes(100_000), 1_040_000);
}

#[test]
fn the_presets_of_swcc_and_of_the_paper_are_there() {
    for name in PRESETS {
        let params = Params::preset(name, BitsPerSec::from_gbps(10)).expect("a preset");
        assert_eq!((params.alpha, params.beta), (Ratio::new(7, 8), Ratio::new(4, 5)), "{name}");
        assert!(params.t_low < params.t_high && params.delta_kbps <= params.hai_kbps);
    }
}

#[test]
fn a_new_flow_begins_with_its_part_of_the_link_and_not_below_the_least_rate() {
    for (preset, first, kbps) in [
        ("sigcomm15", None, LINK / 2),
        ("hpcc", None, LINK),
        ("swcc", None, LINK),
        ("sigcomm15", Some("1/5"), LINK / 5),
    ] {
        let mut law = Timely::new(Params::preset(preset, BitsPerSec::from_gbps(40)).expect("a preset"));
        if let Some(first) = first {
            assert_eq!(law.set("first_rate", first), Some(Ok(())));
        }
        let state = law.connect(LINK);
        // A fraction of 16 bits.
        assert!(state.rate_kbps.abs_diff(kbps) <= LINK >> 16, "{preset} {first:?}: {}", state.rate_kbps);
        let limits = if kbps < LINK { state.rate_kbps } else { Credit::UNLIMITED };
        assert_eq!(law.credit(&state).rate_kbps, limits, "{preset}");
    }
    let mut slow = law(&[("first_rate", "1/1000")]);
    assert_eq!(slow.connect(LINK).rate_kbps, slow.params().rmin_kbps);
    assert!(matches!(slow.set("first_rate", "0"), Some(Err(_))));
}
