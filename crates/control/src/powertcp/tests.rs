//! PowerTCP and θ-PowerTCP against their algorithms in exact arithmetic, and by hand.

use super::*;
use crate::exact::Exact;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant};

const LINK: u32 = 100_000_000;
/// What the link carries in the presets' τ, and β: a tenth of it.
const CARRIED: u32 = 162_500;
const BETA: u32 = 16_250;

fn law(preset: &str) -> PowerTcp {
    PowerTcp::new(Params::preset(preset, BitsPerSec::from_gbps(100)).expect("a preset"))
}

fn theta_of(preset: &str, floor: Ratio) -> ThetaPowerTcp {
    let params = Params::theta_preset(preset, BitsPerSec::from_gbps(100)).expect("a preset");
    ThetaPowerTcp::new(Params { floor, ..params })
}

fn theta() -> ThetaPowerTcp {
    theta_of("nsdi22", Ratio::new(1, 2))
}

/// Both algorithms as they are printed, of octets and nanoseconds.
struct Printed {
    w: Exact,
    old: Exact,
    power: Exact,
}

impl Printed {
    fn smooth(&mut self, params: &Params, power: &Exact, dt: u64) {
        let t = &Exact::nanos(params.base_rtt);
        let dt = &Exact::from(dt).min(t.clone());
        self.power = (&self.power * (t - dt) + power * dt) / t;
    }

    fn int(&mut self, params: &Params, last: &[Hop], hops: &[Hop]) {
        let t = &Exact::nanos(params.base_rtt);
        let (mut norm, mut dt) = (Exact::default(), 1);
        for (hop, last) in hops.iter().zip(last) {
            let gap = hop.at_ns.wrapping_sub(last.at_ns);
            let b = &Exact::over(hop.rate_kbps, 8_000_000);
            let growth = (Exact::from(hop.queue_bytes) - last.queue_bytes) / gap;
            let current = growth + Exact::over(hop.tx_bytes.wrapping_sub(last.tx_bytes), gap);
            let voltage = Exact::from(hop.queue_bytes) + b * t;
            let power = current * voltage / (b * b * t);
            if power > norm {
                (norm, dt) = (power, gap.into());
            }
        }
        self.smooth(params, &norm, dt);
    }

    /// Γ divides as the law has it there: cut at 2⁻¹⁶, which of a Γ of 2⁻⁹ is a part in 128.
    fn update(&mut self, params: &Params) {
        let gamma = &Exact::from(params.gamma);
        let carried = Exact::over(LINK, 8_000_000) * Exact::nanos(params.base_rtt);
        let beta = &carried / params.flows;
        let power = (&self.power * ONE).floor() / ONE;
        let aim = &self.old / (power / Exact::from(params.eta)) + &beta;
        let w = gamma * aim + (Exact::from(1) - gamma) * &self.w;
        self.w = w.clamp(params.wmin.into(), carried + beta);
    }
}

fn hop(at_ns: u32, tx_bytes: u32, queue_bytes: u32, rate_kbps: u32) -> Hop {
    Hop { at_ns, tx_bytes, queue_bytes, rate_kbps }
}

fn hear(law: &PowerTcp, state: &mut State, hops: &[Hop], sequence: u32) {
    let event = Event {
        class: Class::ACK,
        hops,
        acked_sequence: sequence,
        next_sequence: sequence + 10,
        ..Event::default()
    };
    law.on_event(state, &event, &mut Outcome::unchanged(Credit::FREE, Instant::NEVER));
}

/// An acknowledgement at `at` of a packet whose round trip was `rtt`, both in nanoseconds.
fn measure(law: &ThetaPowerTcp, state: &mut ThetaState, (at, rtt): (u64, u64), sequence: u32) {
    let event = Event {
        class: Class::ACK,
        now: Instant::ZERO + Span::from_nanos(at),
        sent: Instant::ZERO + Span::from_nanos(at - rtt),
        acked_sequence: sequence,
        next_sequence: sequence + 10,
        ..Event::default()
    };
    law.on_event(state, &event, &mut Outcome::unchanged(Credit::FREE, Instant::NEVER));
}

/// Whether `got` is the window to a part in five hundred, and two octets.
fn is_near(got: u32, window: &Exact) -> bool {
    (window - got).abs() <= window / 500 + 2
}

proptest! {
    /// Γ: what octets last is cut at 2⁻⁸ ns, the voltage at 2⁻¹⁶, a gap beyond τ by its 13 bits, and 1/τ at 2⁻³², which counts twice in a
    /// queue; a thousandth holds for a hundred steps, besides what the last cut leaves of the Γ before (of 1 ms a part in 4294). Of 1 ms a
    /// Γ of seven still fits into the 2²³ ns that a link's octets may last. W: Γ as it is cut there, a
    /// quotient of 15 bits, and a rounded octet.
    #[test]
    fn power_and_window_are_the_papers_to_a_part_in_five_hundred(
        steps in prop::collection::vec(
            (prop_oneof![4 => 20u32..3_000, 1 => 3_000u32..2_000_000], 10u64..100, prop::collection::vec(0u32..4_000, 3)), 1..100),
        preset in prop::sample::select(PRESETS.to_vec()),
        t in prop_oneof![2 => Just(13_000u32), 1 => Just(1_000_000u32), 1 => 1_000u32..1_000_000],
    ) {
        let law = PowerTcp::new(Params { base_rtt: Span::from_nanos(t.into()), ..law(preset).params });
        // Gaps and queues are those of 13 us; what a switch sends in 80 ms is told from less.
        let of_trip = |of_13us: u32| u32::try_from(u64::from(of_13us) * u64::from(t) / 13_000).expect("few of them");
        let mut state = law.connect(LINK);
        let mut last: Vec<Hop> =
            [LINK, 4 * LINK, LINK / 4].map(|rate| hop(1_000, 5_000, of_trip(90_000), rate)).to_vec();
        hear(&law, &mut state, &last, 1);
        let w = || Exact::from(state.window.window);
        let mut exact = Printed { w: w(), old: w(), power: 1.into() };
        for (index, (gap, load, moves)) in (0u32..).zip(&steps) {
            let gap = of_trip(*gap).clamp(1, 80_000_000);
            let hops: Vec<Hop> = last.iter().zip(moves).map(|(last, by)| {
                let octets = u64::from(gap) * u64::from(last.rate_kbps) * load / 800_000_000;
                let octets = u32::try_from(octets).expect("few of them");
                let queue = (last.queue_bytes + of_trip(*by)).saturating_sub(of_trip(2_000));
                hop(last.at_ns.wrapping_add(gap), last.tx_bytes.wrapping_add(octets.max(of_trip(2_000))), queue, last.rate_kbps)
            }).collect();
            let sequence = 2 + index * 4;
            // That errors add up over windows would be the test's doing: each step begins with the law's words.
            (exact.w, exact.old) = (state.window.window.into(), state.window.old.into());
            exact.power = Exact::over(state.window.power, UNIT);
            let left = &exact.power * t / u32::MAX;
            hear(&law, &mut state, &hops, sequence);
            exact.int(&law.params, &last, &hops);
            let power = Exact::over(state.window.power, UNIT);
            let bound = exact.power.clone().max(1.into()) / 1000 + left;
            prop_assert!(exact.power > 7.into() || (&power - &exact.power).abs() <= bound, "Γ {power:?} {:?}", exact.power);
            exact.power = power;
            exact.update(&law.params);
            let w = state.window.window;
            prop_assert!(is_near(w, &exact.w), "W {w} {:?}", exact.w);
            last = hops;
        }
    }

    #[test]
    fn power_by_round_trips_is_the_papers_to_a_part_in_five_hundred(
        steps in prop::collection::vec((prop_oneof![4 => 20u64..3_000, 1 => 14_000u64..60_000], 9_000u64..60_000), 2..100),
        (preset, floor) in (prop::sample::select(PRESETS.to_vec()), 0u32..=2),
    ) {
        let law = theta_of(preset, Ratio::new(floor, 2));
        let mut state = law.connect(LINK);
        let mut at = 1_000_000;
        for (index, (gap, rtt)) in (0u32..).zip(steps) {
            at += gap;
            let power = Exact::over(state.window.power, UNIT);
            let mut exact = Printed { w: state.window.window.into(), old: state.window.old.into(), power };
            let (before, update) = (state, passed(3 * index, state.window.update_at));
            measure(&law, &mut state, (at, rtt), 3 * index);
            if before.rtt == 0 {
                continue;
            }
            // Beyond what dt allows a round trip to change by, it changes by that.
            let mut gradient = (Exact::from(rtt) - before.rtt) / gap;
            if gap > 13_000 {
                gradient = gradient.clamp((-1).into(), 1.into());
            }
            let current = (gradient + 1).max(Exact::over(floor, 2));
            exact.smooth(&law.params, &(current * rtt / 13_000), gap);
            exact.power = exact.power.max(Exact::default());
            let power = Exact::over(state.window.power, UNIT);
            let bound = exact.power.clone().max(1.into()) / 500;
            prop_assert!((&power - &exact.power).abs() <= bound, "Γ {power:?} {:?}", exact.power);
            if update {
                exact.power = power.max(Exact::over(1, 1024));
                exact.update(&law.params);
            }
            let w = state.window.window;
            prop_assert!(is_near(w, &exact.w), "W {w} {:?}", exact.w);
        }
    }

    #[test]
    fn whatever_is_told_the_window_stays_between_least_and_link(
        told in prop::collection::vec(prop::collection::vec((0u32.., 0u32.., 0u32.., 0u32..), 1..8), 1..8),
        times in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40), 1..20),
    ) {
        let bounds = law("nsdi22").params.wmin..=CARRIED + BETA;
        let law = law("nsdi22");
        let mut state = law.connect(LINK);
        for (index, hops) in (0u32..).zip(told) {
            let hops: Vec<Hop> = hops.iter().map(|&(at, sent, queue, rate)| hop(at, sent, queue, rate)).collect();
            hear(&law, &mut state, &hops, index * 20);
            prop_assert!(bounds.contains(&state.window.window));
        }
        let law = theta();
        let mut state = law.connect(LINK);
        for (index, (at, rtt)) in (0u32..).zip(times) {
            measure(&law, &mut state, (at + rtt + 1, rtt), index * 20);
            prop_assert!(bounds.contains(&state.window.window));
        }
    }
}

/// Theorem 1, by a fluid that arrives at the link at a window in each round trip with the queue.
#[test]
fn at_rest_the_queue_is_the_sum_of_all_beta_and_shares_are_equal() {
    let law = law("nsdi22");
    let mut states = [law.connect(LINK), law.connect(LINK), law.connect(LINK)];
    for (state, window) in states.iter_mut().zip([20_000, 60_000, CARRIED]) {
        (state.window.window, state.window.old) = (window, window);
    }
    let (mut queue, mut sent) = (0, 0);
    // Ten steps to a round trip.
    for step in 0..2_000u32 {
        let windows: u32 = states.iter().map(|it| it.window.window).sum();
        let arrives = saturate(u64::from(windows) * u64::from(CARRIED) / u64::from(CARRIED + queue) / 10);
        let leaves = (queue + arrives).min(CARRIED / 10);
        (queue, sent) = (queue + arrives - leaves, sent + leaves);
        let told = [hop(1_000 + step * 1_300, sent, queue, LINK)];
        for state in &mut states {
            hear(&law, state, &told, step);
        }
    }
    assert!((f64::from(queue) / f64::from(3 * BETA) - 1.0).abs() < 0.02, "{queue}");
    let share = f64::from(CARRIED + 3 * BETA) / 3.0;
    for state in &states {
        assert!((f64::from(state.window.window) / share - 1.0).abs() < 0.01, "{}", state.window.window);
    }
}

#[test]
fn a_queue_that_grows_is_answered_before_it_is_long() {
    let power = |grown: u32| {
        let law = law("nsdi22");
        let mut state = law.connect(LINK);
        hear(&law, &mut state, &[hop(1_000, 0, 20_000 - grown, LINK)], 1);
        hear(&law, &mut state, &[hop(14_000, CARRIED, 20_000, LINK)], 2);
        f64::from(state.window.power) / f64::from(UNIT)
    };
    // The voltage of 20 000 octets is 1.123; 16 250 more came than went.
    assert!((power(0) - 1.123).abs() < 0.002, "{}", power(0));
    assert!((power(BETA) - 1.1 * 1.123).abs() < 0.002, "{}", power(BETA));
}

#[test]
fn a_queue_that_nothing_arrives_at_counts_as_half_a_link_but_without_the_floor_as_nothing() {
    let power = |floor| {
        let law = theta_of("nsdi22", floor);
        let mut state = law.connect(LINK);
        for index in 0..30u64 {
            // It drains: round trips are shorter by what has passed.
            let at = index * 1_000;
            measure(&law, &mut state, (1_000_000 + at, 60_000 - at), 1);
        }
        f64::from(state.window.power) / f64::from(UNIT)
    };
    // Half of what some three base round trips stand for.
    assert!((1.2..1.8).contains(&power(Ratio::new(1, 2))), "{}", power(Ratio::new(1, 2)));
    assert!(power(Ratio::ZERO) < 0.2, "{}", power(Ratio::ZERO));
}

#[test]
fn an_idle_path_gives_the_link_back_and_one_beta() {
    let law = law("nsdi22");
    let mut state = law.connect(LINK);
    (state.window.window, state.window.old) = (10_000, 10_000);
    for index in 0..40u32 {
        hear(&law, &mut state, &[hop(1_000 + index * 13_000, index * 1_000, 0, LINK)], index * 11);
    }
    assert_eq!(state.window.window, CARRIED + BETA);
    assert_eq!(law.credit(&state).rate_kbps, Credit::UNLIMITED);
}

#[test]
fn another_path_is_met_before_it_is_judged() {
    let law = law("nsdi22");
    let mut state = law.connect(LINK);
    hear(&law, &mut state, &[hop(1_000, 0, 0, LINK)], 1);
    let before = state.window;
    hear(&law, &mut state, &[hop(9_000, 1 << 30, 900_000, LINK), hop(9_000, 7, 0, LINK)], 2);
    assert_eq!(
        (state.window.window, state.window.power, state.path.number),
        (before.window, before.power, 2 << 24)
    );
}

#[test]
fn telemetry_that_an_acknowledgement_overtook_says_nothing() {
    let law = law("nsdi22");
    let mut state = law.connect(LINK);
    let told = |at: u32| [hop(at, at * 25 / 2, 0, LINK)];
    for at in 1..=100 {
        hear(&law, &mut state, &told(1000 * at), 1);
    }
    let power = state.window.power;
    for at in [95_000, 101_000] {
        hear(&law, &mut state, &told(at), 1);
        assert!(state.window.power.abs_diff(power) < power / 500, "{} {power}", state.window.power);
    }
}

#[test]
fn what_is_recorded_is_the_window_its_rate_and_the_power() {
    let law = law("nsdi22");
    let mut state = law.connect(LINK);
    (state.window.window, state.window.power) = (BETA, UNIT / 2);
    let sample = law.sample(&state);
    assert_eq!((sample.window, sample.alpha_q30), (BETA, 1 << 29));
    assert!(sample.rate_kbps.abs_diff(LINK / 10) < 200, "{}", sample.rate_kbps);
    let law = theta();
    let state = ThetaState { window: state.window, rtt: 20_000, at: 1 };
    assert_eq!(law.sample(&state).rtt_ns, 20_000);
}
