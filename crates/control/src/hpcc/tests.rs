//! HPCC against its algorithm in exact arithmetic, and by hand.

use super::*;
use crate::event::PathId;
use crate::exact::Exact;
use alloc::vec::Vec;
use proptest::prelude::*;
use roci_units::{BitsPerSec, Instant};

const LINK: u32 = 100_000_000;

fn law(preset: &str) -> Hpcc {
    Hpcc::new(Params::preset(preset, BitsPerSec::from_gbps(100)).expect("a preset"))
}

/// Algorithm 1 as it is printed, of octets and nanoseconds.
struct Printed {
    w: Exact,
    wc: Exact,
    u: Exact,
    stage: u32,
    last: Vec<Hop>,
}

impl Printed {
    fn ack(&mut self, params: &Params, hops: &[Hop], update: bool) {
        let t = &Exact::nanos(params.base_rtt);
        let (mut u, mut tau) = (Exact::default(), Exact::from(1));
        for (hop, last) in hops.iter().zip(&self.last) {
            let octets_per_ns = &Exact::over(hop.rate_kbps, 8_000_000);
            let gap = hop.at_ns.wrapping_sub(last.at_ns).max(1);
            let tx_rate = Exact::over(hop.tx_bytes.wrapping_sub(last.tx_bytes), gap);
            let queue = Exact::from(hop.queue_bytes.min(last.queue_bytes));
            let inflight = queue / (octets_per_ns * t) + tx_rate / octets_per_ns;
            if inflight > u {
                (u, tau) = (inflight, gap.into());
            }
        }
        let tau = &tau.min(t.clone());
        self.u = (Exact::from(1) - tau / t) * &self.u + tau / t * u;
        let eta = Exact::from(params.eta);
        let divides = self.u >= eta || self.stage >= params.max_stage;
        let kept = if divides { &self.wc / (&self.u / eta) } else { self.wc.clone() };
        let wmax = Exact::over(LINK, 8_000_000) * t;
        self.w = (kept + params.w_ai).clamp(params.wmin.into(), wmax);
        if update {
            self.stage = if divides { 0 } else { self.stage + 1 };
            self.wc = self.w.clone();
        }
        self.last = hops.to_vec();
    }
}

fn hop(at_ns: u32, tx_bytes: u32, queue_bytes: u32, rate_kbps: u32) -> Hop {
    Hop { at_ns, tx_bytes, queue_bytes, rate_kbps }
}

fn hear(law: &Hpcc, state: &mut State, hops: &[Hop], sequence: u32) {
    let event = Event {
        class: Class::ACK,
        hops,
        acked_sequence: sequence,
        next_sequence: sequence + 10,
        ..Event::default()
    };
    let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
    law.on_event(state, &event, &mut outcome);
}

/// Base round trips in nanoseconds: the paper's, the longest, and any between the least and that.
fn trips() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(13_000u32), 1 => Just(1_000_000u32), 1 => 1_000u32..1_000_000]
}

proptest! {
    /// U: what octets last is cut at 2⁻⁸ ns and by the 16 bits of a rate that count, a gap beyond T by its 13 bits, and 1/T at 2⁻³², which
    /// counts twice in a queue; a thousandth holds for a hundred steps, besides what the last cut leaves of the U before (of 1 ms a part in
    /// 4294), as long as U round trips are no more than the 2²³ ns that a link's octets may last. W: U, a quotient of 15 bits, and a step
    /// kept from both.
    #[test]
    fn utilisation_and_window_are_the_papers_to_a_part_in_five_hundred(
        steps in prop::collection::vec(
            (prop_oneof![4 => 20u32..3_000, 1 => 3_000u32..2_000_000], 0u64..100, prop::collection::vec((0u32..400_000, 0usize..3), 3)), 1..100),
        t in trips(),
    ) {
        let base_rtt = Span::from_nanos(t.into());
        let law = Hpcc::new(Params { base_rtt, ..law("sigcomm19").params });
        // Gaps and queues are those of 13 us; what a switch sends in 80 ms is told from less.
        let of_trip = |of_13us: u32| u32::try_from(u64::from(of_13us) * u64::from(t) / 13_000).expect("few of them");
        let mut state = law.connect(LINK);
        let rates = [LINK, 4 * LINK, LINK / 4];
        let start: Vec<Hop> = rates.iter().map(|rate| hop(1_000, 5_000, 0, *rate)).collect();
        hear(&law, &mut state, &start, 1);
        let w = &Exact::from(state.window);
        let (aim, thousandth) = (Exact::over(95, 100), Exact::over(1, 1000));
        let mut exact = Printed { w: w.into(), wc: w.into(), u: 1.into(), stage: 0, last: start };
        for (index, (gap, load, links)) in (0u32..).zip(&steps) {
            let gap = of_trip(*gap).clamp(1, 80_000_000);
            let hops: Vec<Hop> = exact.last.iter().zip(links).map(|(last, (queue, _))| {
                let octets = u64::from(gap) * u64::from(last.rate_kbps) * load / 800_000_000;
                let octets = u32::try_from(octets).expect("few of them");
                hop(last.at_ns.wrapping_add(gap), last.tx_bytes.wrapping_add(octets), of_trip(*queue), last.rate_kbps)
            }).collect();
            let sequence = 2 + index * 4;
            let update = passed(sequence, state.update_at);
            // Errors near η or of a stage would be the test's, not the law's: both take the law's.
            exact.wc = state.reference.into();
            exact.stage = state.stage;
            let near = |u: &Exact| (u - &aim).abs() < Exact::over(1, 100);
            let was_near = near(&exact.u);
            let left = &(&exact.u * t / u32::MAX);
            hear(&law, &mut state, &hops, sequence);
            exact.ack(law.params(), &hops, update);
            let u = Exact::over(state.utilisation, UNIT);
            let told = exact.u.clone().max(u.clone()) * t < Exact::from(1 << 23);
            let bound = &thousandth * exact.u.clone().max(1.into()) + left;
            prop_assert!(!told || (&u - &exact.u).abs() <= bound, "U {u:?} {:?}", exact.u);
            let bound = (&thousandth * 2 + left / exact.u.clone().max(thousandth.clone())) * &exact.w + 2;
            let w = Exact::from(state.window);
            let near = was_near || near(&exact.u);
            prop_assert!(near || !told || (&w - &exact.w).abs() <= bound, "W {w:?} {:?}", exact.w);
            exact.u = u;
        }
    }

    #[test]
    fn whatever_is_told_the_window_stays_between_least_and_link(
        hops in prop::collection::vec((0u32.., 0u32.., 0u32.., 0u32..), 1..8),
        more in prop::collection::vec((0u32.., 0u32.., 0u32.., 0u32..), 1..8),
    ) {
        let law = law("hpcc");
        let mut state = law.connect(LINK);
        let made = |hops: &[(u32, u32, u32, u32)]| -> Vec<Hop> {
            hops.iter().map(|&(at, sent, queue, rate)| hop(at, sent, queue, rate)).collect()
        };
        for (index, hops) in (0u32..).zip([&hops, &more, &hops, &more]) {
            hear(&law, &mut state, &made(hops), index * 20);
            prop_assert!((law.params().wmin..=162_500).contains(&state.window));
        }
    }
}

#[test]
fn a_link_at_the_rate_aimed_for_keeps_the_window() {
    let law = law("sigcomm19");
    let mut state = law.connect(LINK);
    state.reference = 100_000;
    let mut at = 1_000;
    let mut tx = 0;
    for index in 0..2_000u32 {
        hear(&law, &mut state, &[hop(at, tx, 0, LINK)], index * 4);
        at += 1_000;
        tx += 11_875; // 95 Gb/s
    }
    let u = f64::from(state.utilisation) / f64::from(UNIT);
    assert!((u - 0.95).abs() < 1e-3, "{u}");
}

#[test]
fn an_idle_path_gives_the_link_back_within_the_stages() {
    let law = law("sigcomm19");
    let mut state = law.connect(LINK);
    state.reference = 10_000;
    let mut at = 1_000;
    for index in 0..40u32 {
        at += 13_000;
        hear(&law, &mut state, &[hop(at, index * 16_250, 0, LINK)], index * 11);
    }
    assert_eq!(state.window, 162_500);
    assert_eq!(law.credit(&state).rate_kbps, Credit::UNLIMITED);
}

#[test]
fn with_a_fixed_window_w_sets_the_rate_and_not_what_may_be_in_flight() {
    let varies = law("sigcomm19");
    let fixed = Hpcc::new(Params { fixed_window: true, ..*varies.params() });
    let state = State { window: 16_250, ..varies.connect(LINK) };
    let (narrow, wide) = (varies.credit(&state), fixed.credit(&state));
    assert_eq!((narrow.window, wide.window), (16_250, 162_500));
    assert!(wide.rate_kbps.abs_diff(LINK / 10) < 200, "{wide:?}");
    assert_eq!(narrow, Credit { window: 16_250, ..wide });
}

#[test]
fn what_is_recorded_is_the_window_its_rate_u_and_the_stage() {
    let law = law("sigcomm19");
    let state = State { window: 16_250, utilisation: UNIT / 2, stage: 3, ..law.connect(LINK) };
    let sample = law.sample(&state);
    assert_eq!((sample.window, sample.alpha_q30, sample.stage), (16_250, 1 << 29, 3));
    // 16 250 octets in 13 us.
    assert!(sample.rate_kbps.abs_diff(LINK / 10) < 200, "{}", sample.rate_kbps);
}

#[test]
fn another_path_is_met_before_it_is_judged() {
    let law = law("sigcomm19");
    let mut state = law.connect(LINK);
    hear(&law, &mut state, &[hop(1_000, 0, 0, LINK)], 1);
    let before = state.window;
    hear(&law, &mut state, &[hop(9_000, 1 << 30, 900_000, LINK), hop(9_000, 7, 0, LINK)], 2);
    assert_eq!((state.window, state.path.number), (before, 2 << 24));
}

#[test]
fn a_path_by_other_switches_of_as_many_hops_is_met_and_moves_nothing_else() {
    let law = law("sigcomm19");
    let mut state = law.connect(LINK);
    let hear = |state: &mut State, path, at: u32, sent: u32, sequence| {
        let hops = [hop(at, sent, 0, LINK)];
        let event = Event {
            class: Class::ACK,
            acked_sequence: sequence,
            next_sequence: sequence + 10,
            path_id: PathId::new(path),
            hops: &hops,
            ..Event::default()
        };
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        law.on_event(state, &event, &mut outcome);
        outcome.credit
    };
    hear(&mut state, 5, 1_000, 0, 1);
    assert_eq!(state.update_at, 11, "the first acknowledgement only shows where counters stand");
    hear(&mut state, 5, 2_000, 12_500, 5);
    let known = state;
    // The other switch's counter is far ahead: taken for the same link it would be full many times over.
    assert_eq!(hear(&mut state, 6, 3_000, 900_000_000, 12), Credit::FREE, "nothing is said of credit");
    let path = state.path;
    assert_eq!(State { path, ..known }, state, "all else stays, so that the next one moves W^c");
    assert!(path.number != known.path.number && path.links[0].seen.tx_bytes == 900_000_000);
    hear(&mut state, 6, 4_000, 900_000_500, 13);
    assert!(state.update_at == 23 && state.utilisation < UNIT, "and is judged by what the new path told");
}

#[test]
fn telemetry_that_an_acknowledgement_overtook_says_nothing() {
    let law = law("hpcc");
    let mut state = law.connect(LINK);
    // A link that is nine tenths full.
    let told = |at: u32| [hop(at, at * 45 / 4, 0, LINK)];
    for at in 1..=100 {
        hear(&law, &mut state, &told(1000 * at), 1);
    }
    let (utilisation, window) = (state.utilisation, state.window);
    hear(&law, &mut state, &told(95_000), 1);
    assert_eq!(state.window, window);
    assert!(
        state.utilisation.abs_diff(utilisation) < utilisation / 500,
        "{} {utilisation}",
        state.utilisation
    );
    hear(&law, &mut state, &told(101_000), 1);
    assert!(
        state.utilisation.abs_diff(utilisation) < utilisation / 500,
        "{} {utilisation}",
        state.utilisation
    );
}
