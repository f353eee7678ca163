//! NSCC against its rules in real numbers, and by hand.

use super::*;
use proptest::prelude::*;
use roci_units::Instant;

const LINK: u32 = 100_000_000;
const MSS: u32 = 1024;

fn law() -> Nscc {
    Nscc::new(Params::preset("htsim").expect("a preset"), LINK)
}

fn hear(law: &Nscc, state: &mut State, event: &Event<'_>) {
    let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
    law.on_event(state, event, &mut outcome);
    assert_eq!(outcome.credit.window, state.window);
    assert!((MSS..=state.wmax).contains(&state.window));
}

fn ack(now_ns: u64, rtt_ns: u64, ecn: bool) -> Event<'static> {
    let at = |ns: u64| Instant::ZERO + Span::from_nanos(ns);
    Event {
        class: Class::ACK,
        now: at(now_ns),
        sent: at(now_ns - rtt_ns),
        acked: MSS,
        ecn,
        ..Event::default()
    }
}

#[test]
fn it_begins_with_one_and_a_half_bandwidth_delay_products() {
    assert_eq!(law().connect(LINK).window, 225_000);
}

#[test]
fn a_loss_after_idle_seconds_is_answered_by_what_arrives_from_then_on() {
    let law = law();
    let after = |idle_ns: u64| {
        let mut state = law.connect(LINK);
        let begin = 1_000_000_000;
        hear(&law, &mut state, &ack(begin, 12_000, false));
        let again = begin + idle_ns;
        hear(&law, &mut state, &ack(again, 12_000, false));
        for n in 1..=10 {
            hear(&law, &mut state, &ack(again + 1_000 * n, 12_000, false));
        }
        let lost = ack(again + 11_000, 12_000, false).now;
        hear(&law, &mut state, &Event { class: Class::LOSS, now: lost, ..Event::default() });
        hear(&law, &mut state, &ack(again + 30_000, 12_000, false));
        state.window
    };
    // Ten packets came in the period, and the one that ends it.
    for idle_ms in [1, 100, 1_000, 2_200, 3_000, 4_200, 5_000] {
        assert_eq!(after(idle_ms * 1_000_000), 11 * MSS, "{idle_ms} ms");
    }
}

#[test]
fn a_long_fat_path_gathers_all_that_its_rules_give() {
    let params = Params {
        base_rtt: Span::from_micros(1_000),
        mss: 4_096,
        ..Params::preset("htsim").expect("a preset")
    };
    let law = Nscc::new(params, LINK);
    let mut state = law.connect(LINK);
    (state.window, state.adjusted_at) = (1_000_000, 10_000_000);
    for n in 0..9 {
        // A delay at the target, unmarked: fair increase.
        let acked = Event { acked: 4_096, ..ack(10_000_000 + n, 1_012_000, false) };
        law.on_event(&mut state, &acked, &mut Outcome::unchanged(Credit::FREE, Instant::NEVER));
    }
    let a = 12_500_000.0 / 150_000.0;
    let expected = 1_000_000.0 + 5.0 * 4_096.0 * a * 9.0 * 4_096.0 / 1_000_000.0;
    let error = (f64::from(state.window) - expected).abs();
    assert!(error < 100.0, "{} for {expected}", state.window);
}

#[test]
fn a_full_packet_made_longer_than_the_greatest_window_is_the_window() {
    let link = 1_000;
    let params =
        Params { base_rtt: Span::from_micros(1), mss: 1, ..Params::preset("htsim").expect("a preset") };
    let mut law = Nscc::new(params, link);
    let mut state = law.connect(link);
    law.params.mss = 4_096;
    law.derive();
    let acked = ack(100_000, 1_000, false);
    law.on_event(&mut state, &acked, &mut Outcome::unchanged(Credit::FREE, Instant::NEVER));
    assert_eq!(state.window, 4_096);
}

/// The rules in real numbers: octets and nanoseconds. What quick adapt compares are whole numbers here as there.
#[derive(Default)]
struct Exact {
    window: f64,
    inc: f64,
    received: f64,
    avg: f64,
    fi_count: f64,
    increasing: bool,
    adjusted_at: f64,
    decreased_at: f64,
    /// The octets below which quick adapt takes the window down.
    gate: f64,
    achieved: f64,
    /// When its period ends, once one has begun.
    period: Option<f64>,
    asked: bool,
    to_ignore: f64,
    ignored: f64,
}

impl Exact {
    /// Whether quick adapt answers, so that nothing else does.
    fn quick_adapt(&mut self, now: f64, in_flight: f64, loss: bool, ecn: bool, delay: f64) -> bool {
        if ecn && self.ignored < self.to_ignore {
            (self.inc, self.received) = (0.0, 0.0);
            return true;
        }
        if self.period.is_some_and(|end| now <= end) {
            return false;
        }
        let asked = loss || self.asked || delay > 4.0 * 12_000.0;
        let adapts = self.period.is_some() && asked && self.achieved < self.gate;
        if adapts {
            self.window = self.achieved.max(f64::from(MSS));
            (self.to_ignore, self.ignored, self.asked) = (in_flight, 0.0, false);
            (self.inc, self.received) = (0.0, 0.0);
        }
        (self.achieved, self.period) = (0.0, Some(now + 24_000.0));
        adapts
    }

    fn loss(&mut self, now: f64, in_flight: f64) {
        self.asked = true;
        if !self.quick_adapt(now, in_flight, true, true, 0.0) {
            self.window = (self.window - f64::from(MSS)).max(f64::from(MSS));
        }
    }

    fn ack(&mut self, now: f64, rtt: f64, ecn: bool, in_flight: f64) {
        let (base, target, mss, a) = (12_000.0, 12_000.0, f64::from(MSS), 1.0);
        let (wmax, acked, delay) = (225_000.0, f64::from(MSS), rtt - base);
        self.received += acked;
        self.achieved += acked;
        self.ignored += acked;
        let new = if !ecn && delay > target { base * 0.25 } else { delay };
        self.avg = 0.0125 * new + (1.0 - 0.0125) * self.avg;
        if self.quick_adapt(now, in_flight, false, ecn, delay) {
            return;
        }
        if !ecn && delay >= target {
            self.inc += 5.0 * mss * a * acked;
        } else if !ecn {
            if delay < 1_000.0 {
                self.fi_count += acked;
                self.increasing |= self.fi_count > self.window;
            } else {
                self.fi_count = 0.0;
                self.increasing = false;
            }
            if self.increasing {
                self.window += 0.25 * acked * a;
            } else {
                self.inc += 4.0 * a * mss / 12_000.0 * (target - delay) * acked;
            }
        } else if delay >= target {
            (self.increasing, self.fi_count) = (false, 0.0);
            if self.avg > target && now - self.decreased_at > base {
                self.window *= (1.0 - 0.8 * (self.avg - target) / self.avg).max(0.5);
                self.decreased_at = now;
            }
        }
        self.window = self.window.clamp(mss, wmax);
        if self.received > 8.0 * mss || now - self.adjusted_at > base {
            self.window += self.inc / self.window;
            if now - self.adjusted_at >= base {
                self.window += 0.15 * mss * a;
                self.adjusted_at = now;
            }
            (self.inc, self.received) = (0.0, 0.0);
        }
        self.window = self.window.clamp(mss, wmax);
    }
}

proptest! {
    /// Each acknowledgement rounds by some octets, and what is gathered by a part in ten thousand: after a hundred of
    /// them the window is within a two-hundredth and 200 octets.
    #[test]
    fn the_window_is_that_of_the_rules_to_half_a_percent(
        events in prop::collection::vec(
            (100u64..4_000, 12_000u64..80_000, any::<bool>(), 0u32..100_000, prop::bool::weighted(0.05)),
            1..100,
        ),
        first in 20_000u32..200_000,
        qa_gate in prop::sample::select(&[3u32, 1, 31][..]),
    ) {
        let mut law = law();
        law.params.qa_gate = qa_gate;
        let mut state = law.connect(LINK);
        state.window = first;
        let mut now = 1 << 31;
        (state.adjusted_at, state.decreased_at) = (1 << 31, (1 << 31) - 100_000);
        let mut exact = Exact {
            window: f64::from(first),
            adjusted_at: now as f64,
            decreased_at: now as f64 - 100_000.0,
            gate: f64::from(225_000u32 >> qa_gate),
            ..Exact::default()
        };
        for (gap, rtt, ecn, in_flight, loss) in events {
            now += gap;
            let event = Event { in_flight, ..ack(now, rtt, ecn) };
            if loss {
                hear(&law, &mut state, &Event { class: Class::LOSS, ..event });
                exact.loss(now as f64, in_flight.into());
            } else {
                hear(&law, &mut state, &event);
                exact.ack(now as f64, rtt as f64, ecn, in_flight.into());
            }
            let got = f64::from(state.window);
            // A comparison at its very edge may fall the other way.
            prop_assume!((exact.fi_count - exact.window).abs() > 2_000.0 && (exact.avg - 12_000.0).abs() > 5.0);
            prop_assert!((got - exact.window).abs() <= exact.window / 200.0 + 200.0, "{got} {}", exact.window);
            prop_assert!((f64::from(state.avg_delay) / 16.0 - exact.avg).abs() <= exact.avg * 1e-3 + 5.0);
        }
    }
}

#[test]
fn a_window_on_an_empty_path_has_each_acknowledgement_add_a_quarter() {
    let law = law();
    let mut state = law.connect(LINK);
    (state.window, state.adjusted_at) = (20 * MSS, 1_000_000);
    let mut exact =
        Exact { window: f64::from(20 * MSS), adjusted_at: 1e6, gate: 28_125.0, ..Exact::default() };
    let mut windows = alloc::vec::Vec::new();
    for n in 0..60 {
        // Delays below a microsecond, but for one, after which a window has to pass anew.
        let rtt = if n == 30 { 13_000 } else { 12_500 };
        hear(&law, &mut state, &ack(1_000_000 + n * 10, rtt, false));
        exact.ack((1_000_000 + n * 10) as f64, rtt as f64, false, 0.0);
        assert!(
            (f64::from(state.window) - exact.window).abs() < 20.0,
            "{n}: {} {}",
            state.window,
            exact.window
        );
        windows.push(state.window);
    }
    let quarters = windows.windows(2).filter(|pair| pair[1] - pair[0] == MSS / 4).count();
    assert!((5..35).contains(&quarters), "{windows:?}");
}

#[test]
fn no_mark_takes_more_than_half_of_the_window() {
    let law = law();
    // Mean delays of five and of a hundred microseconds beyond the target of twelve: γ is 0.8.
    for (mean, left) in [(17_000, 1.0 - 0.8 * 5.0 / 17.0), (112_000, 0.5)] {
        let mut state = State { avg_delay: mean * 16, decreased_at: 0, ..law.connect(LINK) };
        (state.window, state.adjusted_at) = (100_000, 1_000_000);
        hear(&law, &mut state, &ack(1_000_000, 12_000 + u64::from(mean), true));
        assert!((f64::from(state.window) - 1e5 * left).abs() < 100.0, "{} for {left}", state.window);
    }
}

#[test]
fn a_loss_sets_the_window_to_what_was_acknowledged_and_ignores_what_was_in_flight() {
    let law = law();
    let mut state = law.connect(LINK);
    let mut now = 1_000_000;
    hear(&law, &mut state, &ack(now, 12_000, false));
    for _ in 0..8 {
        now += 1_000;
        hear(&law, &mut state, &ack(now, 14_000, false));
    }
    now += 30_000;
    let loss = Event { class: Class::LOSS, in_flight: 100_000, ..ack(now, 1, false) };
    hear(&law, &mut state, &loss);
    assert_eq!((state.window, state.to_ignore), (8 * MSS, 100_000));
    hear(&law, &mut state, &ack(now + 100, 40_000, true));
    assert_eq!(state.window, 8 * MSS, "marks of before are not heard");
    let before = state.window;
    hear(&law, &mut state, &Event { now: Instant::ZERO + Span::from_nanos(now + 200), ..loss });
    assert_eq!(state.window, before, "nor losses");
}

#[test]
fn a_shorter_round_trip_lowers_the_greatest_window() {
    let law = law();
    let mut state = law.connect(LINK);
    hear(&law, &mut state, &ack(1_000_000, 6_000, false));
    assert_eq!((state.base_rtt, state.wmax), (6_000, 112_500));
}

#[test]
fn a_packet_that_was_trimmed_takes_its_octets_off_the_window_and_another_loss_a_full_packet() {
    let law = law();
    for (length, octets) in [(700, 700), (0, MSS)] {
        let mut state = law.connect(LINK);
        hear(&law, &mut state, &ack(1_000_000, 12_000, false));
        let before = state.window;
        let loss = Event { class: Class::LOSS, length, ..ack(1_000_100, 1, false) };
        hear(&law, &mut state, &loss);
        assert_eq!(before - state.window, octets);
    }
}
