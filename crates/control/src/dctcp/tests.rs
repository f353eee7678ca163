//! DCTCP against its equations in exact arithmetic, and by hand.

use super::*;
use crate::exact::Exact;
use crate::keys::Keyed;
use proptest::prelude::*;
use roci_units::Instant;

const LINK: u32 = 10_000_000;
const MSS: u32 = 1024;

fn law(settings: &[(&str, &str)]) -> Dctcp {
    let mut law = Dctcp::new(Params::preset("sigcomm10").expect("a preset"));
    for (key, text) in settings {
        assert_eq!(law.set(key, text), Some(Ok(())), "{key} = {text}");
    }
    law
}

/// A queue pair with a full window, acknowledged packet by packet.
struct Pair {
    law: Dctcp,
    state: State,
    una: u32,
}

impl Pair {
    fn new(law: Dctcp) -> Self {
        let state = law.connect(LINK);
        Self { law, state, una: 0 }
    }

    fn event(&self, class: Class) -> Event<'static> {
        let packets = self.state.window / MSS;
        Event {
            class,
            acked_sequence: self.una,
            next_sequence: self.una + packets,
            in_flight: packets * MSS,
            ..Event::default()
        }
    }

    fn hear(&mut self, event: &Event<'_>) {
        let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
        self.law.on_event(&mut self.state, event, &mut outcome);
        assert_eq!(outcome.credit, self.law.credit(&self.state));
    }

    fn ack(&mut self, marked: bool) {
        self.una += 1;
        let event = Event { acked: MSS, ecn: marked, ..self.event(Class::ACK) };
        self.hear(&event);
    }

    /// Acknowledges all that is in flight, of which the last `marked` packets carried a mark.
    fn window(&mut self, marked: u32) {
        let packets = self.state.window / MSS;
        (0..packets).for_each(|packet| self.ack(packet + marked >= packets));
    }
}

#[test]
fn slow_start_doubles_the_window_in_each_round_trip_until_the_first_mark() {
    let mut pair = Pair::new(law(&[]));
    assert_eq!(pair.state.window, 10 * MSS);
    pair.window(0);
    assert_eq!(pair.state.window, 20 * MSS);
    pair.window(0);
    assert_eq!(pair.state.window, 40 * MSS);
    pair.window(1);
    let cut = pair.state.window;
    assert!(cut < 40 * MSS + 39 * MSS, "{cut}");
    assert_eq!(pair.state.ssthresh, cut, "slow start is over");
}

#[test]
fn without_marks_the_window_grows_by_a_packet_in_each_window_of_data() {
    let mut pair = Pair::new(law(&[("slow_start", "false")]));
    for packets in 10..40 {
        assert_eq!(pair.state.window, packets * MSS);
        pair.window(0);
    }
}

#[test]
fn one_window_of_data_is_cut_once() {
    let mut pair = Pair::new(law(&[("slow_start", "false"), ("first_window", "100KiB")]));
    pair.window(0);
    let before = pair.state.window;
    pair.ack(true);
    let after = pair.state.window;
    assert!(after < before);
    (0..before / MSS).for_each(|_| pair.ack(true));
    assert_eq!(pair.state.window, after, "until what was in flight is acknowledged");
    pair.ack(true);
    assert!(pair.state.window < after);
}

#[test]
fn a_loss_halves_the_window_and_a_timeout_leaves_one_packet() {
    let mut pair = Pair::new(law(&[("slow_start", "false"), ("first_window", "100KiB")]));
    let loss = pair.event(Class::LOSS);
    pair.hear(&loss);
    assert_eq!(pair.state.window, 50 * 1024);
    pair.hear(&loss);
    assert_eq!(pair.state.window, 50 * 1024, "the same window of data");
    pair.hear(&Event { timeout: true, ..loss });
    assert_eq!(pair.state.window, MSS);
}

#[test]
fn after_a_timeout_slow_start_ends_at_half_the_window_or_two_packets() {
    for (first, threshold) in [("100KiB", 50 * 1024), ("3KiB", 2 * MSS)] {
        let mut pair = Pair::new(law(&[("first_window", first)]));
        let timeout = Event { timeout: true, ..pair.event(Class::LOSS) };
        pair.hear(&timeout);
        assert_eq!((pair.state.window, pair.state.ssthresh), (MSS, threshold));
        pair.hear(&timeout);
        assert_eq!(pair.state.ssthresh, threshold, "what is lost a second time keeps it");
    }
}

#[test]
fn what_is_recorded_is_the_window_the_rate_and_alpha() {
    let law = law(&[]);
    let state = State { alpha: ONE / 4, ..law.connect(LINK) };
    let sample = law.sample(&state);
    assert_eq!((sample.window, sample.rate_kbps, sample.alpha_q30), (10 * MSS, Credit::UNLIMITED, 1 << 28));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut pair = Pair::new(law(&[]));
    for _ in 0..100 {
        pair.una += 1;
        let event = Event { acked: MSS, in_flight: 0, ..pair.event(Class::ACK) };
        pair.hear(&event);
    }
    assert_eq!(pair.state.window, 10 * MSS);
}

/// Over a round trip of a third of the time that its window is sent over a paced queue pair has a third of the window in flight.
#[test]
fn a_paced_window_grows_though_little_of_it_is_in_flight() {
    for (paced, grows) in [("true", true), ("false", false)] {
        let mut pair = Pair::new(law(&[("paced", paced), ("base_rtt", "13us")]));
        (pair.state.window, pair.state.ssthresh) = (30 * MSS, 30 * MSS);
        for _ in 0..60 {
            pair.una += 1;
            let event = Event { acked: MSS, in_flight: 10 * MSS, ..pair.event(Class::ACK) };
            pair.hear(&event);
        }
        assert_eq!(pair.state.window > 30 * MSS, grows, "paced = {paced}");
    }
}

#[test]
fn hpccs_dctcp_begins_at_the_links_rate() {
    let law = Dctcp::new(Params::preset("hpcc").expect("a preset"));
    let state = law.connect(100_000_000);
    assert_eq!(state.window, 162_500, "13 us at 100 Gb/s");
    assert_eq!(law.credit(&state).rate_kbps, Credit::UNLIMITED);
    let half = State { window: 81_250, ..state };
    let kbps = f64::from(law.credit(&half).rate_kbps);
    assert!((kbps / 50e6 - 1.0).abs() < 1e-5, "{kbps}");
}

proptest! {
    /// Equation 1, over many windows: each rounds to the nearest 2⁻¹⁶ and the share to 2⁻¹⁵, and 1/g of them are
    /// remembered, so α is less than 1/g · 2⁻¹⁵ + 2⁻¹⁵ off. Equation 2, at each cut: by half
    /// of 2⁻¹⁶, α being halved, and an octet.
    #[test]
    fn estimate_and_cut_are_the_papers_to_a_part_in_two_thousand(
        shares in prop::collection::vec(0u32..=40, 1..100),
    ) {
        let mut pair = Pair::new(law(&[("slow_start", "false"), ("first_window", "40KiB"), ("wmax", "40KiB")]));
        let mut alpha = Exact::from(1);
        for marked in shares {
            let mut packets = 0u32;
            pair.state.window = 40 * MSS;
            (pair.state.cutting, pair.state.window_end) = (0, pair.una + 39);
            for packet in 0..40 {
                let before = pair.state;
                packets += u32::from(packet + marked >= 40);
                if packet == 39 {
                    alpha = (alpha * 15 + Exact::over(marked, 40)) / 16;
                }
                pair.ack(packet + marked >= 40);
                if pair.state.cutting > before.cutting {
                    let kept = Exact::from(1) - Exact::over(pair.state.alpha, 1 << 17);
                    let error = kept * before.window - pair.state.window;
                    prop_assert!(error.abs() <= Exact::over(before.window, 1 << 17) + 1);
                }
            }
            prop_assert_eq!(packets, marked);
            let got = Exact::over(pair.state.alpha, 1 << 16);
            prop_assert!((&got - &alpha).abs() < Exact::over(17, 1 << 15), "{got:?} {alpha:?}");
        }
    }
}
