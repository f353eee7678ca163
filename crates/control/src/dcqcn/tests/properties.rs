//! The family against itself run differently, and against plain models that fire every timer.

use super::*;
use proptest::prelude::*;

/// Something that happens to a queue pair, some picoseconds after the last thing.
#[derive(Clone, Debug)]
enum Step {
    Cnp(u64),
    Marked(u64),
    Bytes(u64),
    Quiet(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![0u64..10_000_000, 0u64..400_000_000, 0u64..20_000_000_000, Just(1_000_000u64)];
    let step = (gap, 0u8..8).prop_map(|(gap, kind)| match kind {
        0..=3 => Step::Cnp(gap),
        4 => Step::Marked(gap),
        5 => Step::Bytes(gap),
        _ => Step::Quiet(gap),
    });
    prop::collection::vec(step, 1..60)
}

fn members() -> impl Strategy<Value = (&'static str, Vec<(&'static str, &'static str)>)> {
    let choices = |key: &'static str, words: &'static [&'static str]| {
        prop_oneof![Just(None), prop::sample::select(words).prop_map(move |word| Some((key, word)))]
    };
    let switches = (
        choices("cut", &["at-once", "by-flag"]),
        choices("alpha_rise", &["on-cnp", "by-flag"]),
        choices("reset_on", &["cnp", "cut"]),
        choices("clamp", &["true", "false"]),
        choices("clamp_off", &["plain", "unless-stage-zero"]),
        choices("recovery", &["below", "through"]),
        choices("hyper", &["none", "after-one", "min-stage", "scaled"]),
        choices("byte_counter", &["0", "10MB"]),
        choices("decrease_interval", &["0s", "1us", "7us"]),
        choices("increase_timer", &["1ps", "13us", "1ms"]),
        choices("first_rate", &["1", "1/2"]),
        choices("rmin", &["1Kb/s", "20Gb/s"]),
    );
    (prop::sample::select(&PRESETS[..]), switches).prop_map(|(preset, s)| {
        let all = [s.0, s.1, s.2, s.3, s.4, s.5, s.6, s.7, s.8, s.9, s.10, s.11];
        (preset, all.into_iter().flatten().collect())
    })
}

/// Runs the steps; with `look`, samples every `look` picoseconds on the way as well.
fn run(bench: &mut Bench, steps: &[Step], look: Option<u64>) -> Vec<(Sample, Credit, Instant)> {
    let mut trace = Vec::new();
    for step in steps {
        let (class, gap) = match step {
            Step::Cnp(gap) => (Class::CNP, *gap),
            Step::Marked(gap) => (Class::CE, *gap),
            Step::Bytes(gap) => (Class::BYTE_COUNTER, *gap),
            Step::Quiet(gap) => (Class::NONE, *gap),
        };
        let then = bench.now + Span::from_ps(gap);
        if let Some(look) = look {
            // At most a hundred looks a step, so that a long quiet stays cheap.
            let look = Span::from_ps(look.max(gap / 100 + 1));
            while bench.now + look < then {
                bench.until(bench.now + look);
                bench.sample();
            }
        }
        bench.until(then);
        match class {
            Class::NONE => {}
            Class::BYTE_COUNTER if bench.byte_counter == 0 => {}
            class => bench.happen(class, 1024),
        }
        trace.push((bench.sample(), bench.credit, bench.wake));
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rates_and_alpha_stay_in_their_bounds((preset, settings) in members(), steps in steps()) {
        let mut bench = Bench::new(preset, &settings);
        let Law::Dcqcn(law) = bench.law.clone() else { unreachable!() };
        let least = law.params().rmin_kbps.min(LINK);
        for (sample, credit, wake) in run(&mut bench, &steps, None) {
            prop_assert!(least <= sample.rate_kbps);
            prop_assert!(sample.rate_kbps <= sample.target_kbps && sample.target_kbps <= LINK);
            prop_assert!(sample.alpha_q30 <= 1 << 30);
            prop_assert!(credit.rate_kbps == sample.rate_kbps || sample.rate_kbps == LINK);
            // Below line rate something must be under way, or the flow would stay slow for ever. One kb/s is what
            // a truncated half-way step cannot cover.
            prop_assert!(sample.rate_kbps + 1 >= LINK || wake != Instant::NEVER);
        }
    }

    #[test]
    fn looking_changes_nothing_and_a_run_repeats(
        (preset, settings) in members(), steps in steps(), look in 1_000_000u64..100_000_000,
    ) {
        let once = run(&mut Bench::new(preset, &settings), &steps, None);
        prop_assert_eq!(&once, &run(&mut Bench::new(preset, &settings), &steps, None));
        // Each look brings alpha up to date: the eager evaluation of what is otherwise private.
        prop_assert_eq!(&once, &run(&mut Bench::new(preset, &settings), &steps, Some(look)));
    }

    #[test]
    fn waking_late_loses_nothing(cnp in 0u64..100, late in 1u64..50_000_000_000) {
        // An engine that wakes the law once, late, and one that wakes it at each instant it asked for.
        let mut punctual = Bench::new("hpcc", &[]);
        let mut late_bench = Bench::new("hpcc", &[]);
        punctual.cnp(us(cnp));
        late_bench.cnp(us(cnp));
        let then = us(cnp) + Span::from_ps(late);
        punctual.until(then);
        late_bench.now = then;
        late_bench.happen(Class::TIMER, 0);
        prop_assert_eq!(punctual.sample(), late_bench.sample());
        prop_assert_eq!(punctual.wake, late_bench.wake);
    }
}

/// A law that fires every timer by itself: an alpha update at each of its periods, a look at the decrease flag at
/// each of its. Written from the description of SURF's three processes.
struct Plain {
    rate: u64,
    target: u64,
    alpha: u64,
    stage: u64,
    flags: (bool, bool),
    next: Option<(u64, u64)>,
    increase: Option<u64>,
}

impl Plain {
    fn new() -> Self {
        let line = u64::from(LINK);
        Self {
            rate: line,
            target: line,
            alpha: 1024,
            stage: 0,
            flags: (false, false),
            next: None,
            increase: None,
        }
    }

    /// One microsecond tick of the lst-table2 machine; `cnp` arrives at its end.
    fn tick(&mut self, now: u64, cnp: bool) {
        if let Some((alpha, decrease)) = self.next {
            if now == alpha {
                self.alpha = ((self.alpha * 1020 + 512) >> 10) + if self.flags.0 { 4 } else { 0 };
                self.flags.0 = false;
                self.next = Some((alpha + 40, decrease));
            }
            if now == decrease {
                if self.flags.1 {
                    self.target = self.rate;
                    self.rate = (self.rate - ((self.rate * self.alpha) >> 11)).max(80_000);
                    self.flags.1 = false;
                }
                self.next = self.next.map(|(alpha, _)| (alpha, decrease + 3));
            }
        }
        if self.increase == Some(now) {
            self.stage += 1;
            let step = [0, 0, 0, 0, 0, 48_000][self.stage.min(5) as usize];
            let step = if self.stage > 5 { 96_000 } else { step };
            self.target = (self.target + step).min(u64::from(LINK));
            self.rate = (self.rate + self.target) / 2;
            self.increase = Some(now + 2_000);
        }
        if cnp {
            match self.next {
                None => self.next = Some((now + 40, now + 3)),
                Some(_) => self.flags.0 = true,
            }
            self.flags.1 = true;
            self.stage = 0;
            self.increase = Some(now + 2_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn lazy_timers_give_what_firing_each_one_gives(
        gaps in prop::collection::vec(prop_oneof![1u64..12, 1u64..300, 1u64..9_000], 1..12),
    ) {
        let (mut bench, mut plain) = (Bench::new("lst-table2", &[]), Plain::new());
        let mut now = 0;
        for gap in gaps {
            for _ in 1..gap {
                now += 1;
                plain.tick(now, false);
            }
            now += 1;
            plain.tick(now, true);
            bench.cnp(us(now));
            let sample = bench.sample();
            prop_assert_eq!(u64::from(sample.rate_kbps), plain.rate);
            prop_assert_eq!(u64::from(sample.target_kbps), plain.target);
            prop_assert_eq!(u64::from(sample.alpha_q30 >> 20), plain.alpha);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_timer_that_cnps_restart_is_lazy_too(gaps in prop::collection::vec(1u64..2_000, 1..30)) {
        // SwCC's alpha: 16 bits, truncated, raised by each CNP, which starts its 55 µs over.
        let mut bench = Bench::new("swcc", &[]);
        let (mut alpha, mut due, mut now) = (1u64 << 16, u64::MAX, 0);
        for gap in gaps {
            for _ in 0..gap {
                now += 1;
                if now == due {
                    alpha = (alpha * (65_536 - 256)) >> 16;
                    due += 55;
                }
            }
            alpha = ((alpha * (65_536 - 256)) >> 16) + 256;
            due = now + 55;
            bench.cnp(us(now));
            prop_assert_eq!(u64::from(bench.sample().alpha_q30 >> 14), alpha);
        }
    }
}
