//! NSCC against its rules in exact arithmetic, and by hand.

use super::*;
use crate::exact::Exact;
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

/// The rules, of octets and nanoseconds. What quick adapt compares are whole numbers here as there.
#[derive(Default)]
struct Printed {
    window: Exact,
    inc: Exact,
    received: u32,
    avg: Exact,
    fi_count: u32,
    increasing: bool,
    adjusted_at: u64,
    decreased_at: u64,
    /// The octets below which quick adapt takes the window down.
    gate: u32,
    achieved: u32,
    /// When its period ends, once one has begun.
    period: Option<u64>,
    asked: bool,
    to_ignore: u32,
    ignored: u32,
}

impl Printed {
    /// Whether quick adapt answers, so that nothing else does.
    fn quick_adapt(&mut self, now: u64, in_flight: u32, loss: bool, ecn: bool, delay: u64) -> bool {
        if ecn && self.ignored < self.to_ignore {
            (self.inc, self.received) = (Exact::default(), 0);
            return true;
        }
        if self.period.is_some_and(|end| now <= end) {
            return false;
        }
        let asked = loss || self.asked || delay > 4 * 12_000;
        let adapts = self.period.is_some() && asked && self.achieved < self.gate;
        if adapts {
            self.window = self.achieved.max(MSS).into();
            (self.to_ignore, self.ignored, self.asked) = (in_flight, 0, false);
            (self.inc, self.received) = (Exact::default(), 0);
        }
        (self.achieved, self.period) = (0, Some(now + 24_000));
        adapts
    }

    fn loss(&mut self, now: u64, in_flight: u32) {
        self.asked = true;
        if !self.quick_adapt(now, in_flight, true, true, 0) {
            self.window = (&self.window - MSS).max(MSS.into());
        }
    }

    /// `a` of the rules is one here.
    fn ack(&mut self, now: u64, rtt: u64, ecn: bool, in_flight: u32) {
        let (base, target, acked, delay) = (12_000, 12_000, MSS, rtt - 12_000);
        self.received += acked;
        self.achieved += acked;
        self.ignored += acked;
        let new = if !ecn && delay > target { base / 4 } else { delay };
        self.avg = (Exact::from(new) + &self.avg * 79) / 80;
        if self.quick_adapt(now, in_flight, false, ecn, delay) {
            return;
        }
        if !ecn && delay >= target {
            self.inc = Exact::from(5 * MSS) * acked + &self.inc;
        } else if !ecn {
            if delay < 1_000 {
                self.fi_count += acked;
                self.increasing |= Exact::from(self.fi_count) > self.window;
            } else {
                (self.increasing, self.fi_count) = (false, 0);
            }
            if self.increasing {
                self.window = Exact::over(acked, 4) + &self.window;
            } else {
                self.inc = Exact::over(4 * MSS, 12_000) * (target - delay) * acked + &self.inc;
            }
        } else if delay >= target {
            (self.increasing, self.fi_count) = (false, 0);
            if self.avg > target.into() && now - self.decreased_at > base {
                let kept = Exact::from(1) - (&self.avg - target) / &self.avg * 4 / 5;
                self.window = kept.max(Exact::over(1, 2)) * &self.window;
                self.decreased_at = now;
            }
        }
        self.bound();
        if self.received > 8 * MSS || now - self.adjusted_at > base {
            self.window = &self.inc / &self.window + &self.window;
            if now - self.adjusted_at >= base {
                self.window = Exact::over(15 * MSS, 100) + &self.window;
                self.adjusted_at = now;
            }
            (self.inc, self.received) = (Exact::default(), 0);
        }
        self.bound();
    }

    /// From a packet to what the link carries in 18 us. Its fraction would grow with each step.
    fn bound(&mut self) {
        self.window = self.window.cut().clamp(MSS.into(), 225_000.into());
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
        let mut exact = Printed {
            window: first.into(),
            adjusted_at: now,
            decreased_at: now - 100_000,
            gate: 225_000 >> qa_gate,
            ..Printed::default()
        };
        for (gap, rtt, ecn, in_flight, loss) in events {
            now += gap;
            let event = Event { in_flight, ..ack(now, rtt, ecn) };
            if loss {
                hear(&law, &mut state, &Event { class: Class::LOSS, ..event });
                exact.loss(now, in_flight);
            } else {
                hear(&law, &mut state, &event);
                exact.ack(now, rtt, ecn, in_flight);
            }
            let got = state.window;
            // A comparison at its very edge may fall the other way.
            let apart = |one: &Exact, other: u32, least: u32| (one - other).abs() > least.into();
            prop_assume!(apart(&exact.window, exact.fi_count, 2_000) && apart(&exact.avg, 12_000, 5));
            prop_assert!((&exact.window - got).abs() <= &exact.window / 200 + 200, "{got} {:?}", exact.window);
            prop_assert!((&exact.avg - Exact::over(state.avg_delay, 16)).abs() <= &exact.avg / 1_000 + 5);
        }
    }
}

#[test]
fn a_window_on_an_empty_path_has_each_acknowledgement_add_a_quarter() {
    let law = law();
    let mut state = law.connect(LINK);
    (state.window, state.adjusted_at) = (20 * MSS, 1_000_000);
    let mut exact =
        Printed { window: (20 * MSS).into(), adjusted_at: 1_000_000, gate: 28_125, ..Printed::default() };
    let mut windows = alloc::vec::Vec::new();
    for n in 0..60 {
        // Delays below a microsecond, but for one, after which a window has to pass anew.
        let rtt = if n == 30 { 13_000 } else { 12_500 };
        hear(&law, &mut state, &ack(1_000_000 + n * 10, rtt, false));
        exact.ack(1_000_000 + n * 10, rtt, false, 0);
        let error = (&exact.window - state.window).abs();
        assert!(error < 20.into(), "{n}: {} {:?}", state.window, exact.window);
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
