//! Swift against its algorithm in exact arithmetic, roots to 2⁻¹²⁸, and by hand.

use super::*;
use crate::exact::Exact;
use proptest::prelude::*;
use roci_units::Instant;

const LINK: u32 = 100_000_000;
const MSS: u32 = 1024;

fn packets(cwnd: u32) -> Exact {
    Exact::over(cwnd, 1 << 16)
}

/// The target delay in nanoseconds as equations 1 to 4 have it.
fn target(p: &Params, cwnd: &Exact, hops: u32) -> Exact {
    let [least, most] = [p.fs_min_cwnd, p.fs_max_cwnd].map(|cwnd| Exact::over(1, Exact::from(cwnd).root()));
    let range = Exact::nanos(p.fs_range);
    let alpha = &range / (least - &most);
    let beta = -(&alpha * most);
    let scaling = (alpha / cwnd.root() + beta).min(range).max(Exact::default());
    Exact::nanos(p.base_target) + Exact::nanos(p.per_hop) * hops + scaling
}

fn hear(law: &Swift, state: &mut State, class: Class, now_ns: u64, rtt_ns: u64, timeout: bool) -> Outcome {
    let now = Instant::ZERO + Span::from_nanos(now_ns);
    let sent = Instant::ZERO + Span::from_nanos(now_ns - rtt_ns);
    let acked = if class == Class::ACK { MSS } else { 0 };
    let event = Event { class, now, sent, acked, timeout, ..Event::default() };
    let mut outcome = Outcome::unchanged(law.credit(state), Instant::NEVER);
    law.on_event(state, &event, &mut outcome);
    outcome
}

proptest! {
    /// Roots of 12 fractional bits: a window of 0.01 has a root of 409, so flow scaling is at most a part in 400 off, and
    /// the rest of the target exact to 2 ns.
    #[test]
    fn the_target_is_the_papers_to_a_part_in_three_hundred(cwnd in 655u32..(300 << 16), hops in 0u32..8) {
        for preset in PRESETS {
            let law = Swift::new(Params::preset(preset).expect("a preset"));
            let exact = target(law.params(), &packets(cwnd), hops);
            let got = law.target_delay(cwnd, hops);
            prop_assert!((&exact - got).abs() <= &exact / 300 + 2, "{preset} {cwnd}: {got} {exact:?}");
        }
    }

    /// A cut: the ratio is 5·2⁻¹⁶ off, its product 2⁻¹⁶.
    #[test]
    fn a_cut_is_the_papers_to_a_part_in_five_thousand(
        cwnd in 655u32..(1_000 << 16),
        delay in 20_000u64..2_000_000,
    ) {
        let law = Swift::new(Params::preset("htsim").expect("a preset"));
        let state = State { cwnd, target: law.target_delay(cwnd, 1), ..law.connect(LINK) };
        let (mut after, target) = (state, Exact::from(state.target));
        hear(&law, &mut after, Class::ACK, 1 << 30, delay, false);
        let delay = Exact::from(delay);
        if delay >= target {
            let kept = Exact::from(1) - (&delay - target) / delay * 4 / 5;
            let exact = packets(cwnd) * kept.max(Exact::over(1, 2));
            let bound = packets(cwnd) / 5_000 + Exact::over(1, 10_000);
            prop_assert!((packets(after.cwnd) - exact.max(Exact::over(1, 100))).abs() <= bound);
        } else {
            prop_assert!(after.cwnd >= cwnd);
        }
    }
}

proptest! {
    // Sums of fractions take their time.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Growth by steps: never more than one step behind the sum of `ai·acked/cwnd`, and never ahead of it by more than
    /// the steps' own second order.
    #[test]
    fn growth_is_at_most_a_step_behind_the_papers(first in (1u32 << 16)..(100 << 16), acks in 1u32..3_000) {
        let law = Swift::new(Params::preset("htsim").expect("a preset"));
        let mut state = State { cwnd: first, ..law.connect(LINK) };
        state.target = law.target_delay(first, 1);
        let mut exact = packets(first);
        for ack in 0..acks {
            // Fractions grow with each step.
            exact = (&exact + Exact::over(1, &exact)).cut();
            hear(&law, &mut state, Class::ACK, 1_000_000 + u64::from(ack) * 100, 2_000, false);
            let got = packets(state.cwnd);
            prop_assert!(got <= &exact + Exact::over(1, 2) && &got + Exact::over(8, 5) >= exact, "{got:?} {exact:?}");
        }
    }
}

#[test]
fn one_round_trip_sees_one_cut() {
    let law = Swift::new(Params::preset("htsim").expect("a preset"));
    let mut state = State { cwnd: 100 << 16, ..law.connect(LINK) };
    hear(&law, &mut state, Class::ACK, 1_000_000, 200_000, false);
    let cut = state.cwnd;
    assert!(cut < 100 << 16);
    hear(&law, &mut state, Class::ACK, 1_199_000, 200_000, false);
    assert_eq!(state.cwnd, cut);
    hear(&law, &mut state, Class::ACK, 1_200_000, 200_000, false);
    assert!(state.cwnd < cut);
}

#[test]
fn below_one_packet_it_sends_one_in_each_round_trip_over_the_window() {
    let law = Swift::new(Params::preset("htsim").expect("a preset"));
    let mut state = State { cwnd: 1 << 16, target: 1_000, ..law.connect(LINK) };
    let outcome = hear(&law, &mut state, Class::ACK, 1_000_000, 100_000, false);
    assert_eq!((state.cwnd, outcome.credit.window), (1 << 15, MSS));
    let gap_ns = f64::from(MSS + OVERHEAD) * 8e6 / f64::from(outcome.credit.rate_kbps);
    assert!((gap_ns / 200_000.0 - 1.0).abs() < 1e-3, "{gap_ns} ns for half a packet in 100 us");
}

#[test]
fn timeouts_in_a_row_leave_the_least_window() {
    let law = Swift::new(Params::preset("falcon").expect("a preset"));
    let mut state = law.connect(LINK);
    state.rtt = 1;
    for (now, cwnd) in [(1 << 30, 6 << 16), (2 << 30, 3 << 16), (3 << 30, 655)] {
        hear(&law, &mut state, Class::LOSS, now, 0, true);
        assert_eq!(state.cwnd, cwnd);
    }
}

#[test]
fn an_acknowledgement_without_a_round_trip_ends_a_row_of_timeouts() {
    let law = Swift::new(Params::preset("falcon").expect("a preset"));
    let mut state = law.connect(LINK);
    hear(&law, &mut state, Class::LOSS, 1 << 30, 0, true);
    assert_eq!(state.timeouts, 1);
    let mut outcome = Outcome::unchanged(law.credit(&state), Instant::NEVER);
    let event = Event { class: Class::ACK, now: Instant::from_ps(1 << 50), acked: MSS, ..Event::default() };
    law.on_event(&mut state, &event, &mut outcome);
    assert_eq!(state.timeouts, 0);
}
