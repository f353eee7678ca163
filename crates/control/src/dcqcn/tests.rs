//! The family against numbers worked out by hand.

mod properties;

use super::*;
use crate::{Context, Law};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const LINK: u32 = 10_000_000;

fn us(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

/// One queue pair and its engine in the small: it keeps the clock, the credit, the wake-up and the byte counter.
struct Bench {
    law: Law,
    context: Context,
    now: Instant,
    credit: Credit,
    wake: Instant,
    byte_counter: u32,
    cnps: u32,
}

impl Bench {
    fn new(preset: &str, settings: &[(&str, &str)]) -> Self {
        Self::on_link(preset, settings, LINK)
    }

    fn on_link(preset: &str, settings: &[(&str, &str)], link_kbps: u32) -> Self {
        let settings: Vec<_> = [("preset", preset)].iter().chain(settings).copied().collect();
        let law = Law::from_settings("dcqcn", &settings, BitsPerSec::from_kbps(u64::from(link_kbps)))
            .expect("the settings are valid");
        let (context, credit, wake) = law.connect(link_kbps);
        Self { law, context, now: Instant::ZERO, credit, wake, byte_counter: 0, cnps: 0 }
    }

    fn happen(&mut self, class: Class, length: u32) {
        let mut outcome = Outcome::unchanged(self.credit, self.wake);
        let event = Event { class, now: self.now, length, ..Event::default() };
        self.law.on_event(&mut self.context, &event, &mut outcome);
        self.apply(outcome);
    }

    fn apply(&mut self, outcome: Outcome) {
        self.credit = outcome.credit;
        self.wake = outcome.wake;
        self.byte_counter = outcome.byte_counter.unwrap_or(self.byte_counter);
        self.cnps += u32::from(outcome.emit.is_some_and(|emit| emit.class == Class::CNP));
    }

    /// Lets time pass, waking the law whenever it asked for it.
    fn until(&mut self, then: Instant) -> &mut Self {
        while self.wake <= then {
            self.now = self.wake;
            self.happen(Class::TIMER, 0);
        }
        self.now = then;
        self
    }

    fn cnp(&mut self, at: Instant) -> &mut Self {
        self.until(at).happen(Class::CNP, 0);
        self
    }

    fn write(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let mut outcome = Outcome::unchanged(self.credit, self.wake);
        self.law.write(&mut self.context, name, text, self.now, &mut outcome)?;
        self.apply(outcome);
        Ok(())
    }

    fn sample(&mut self) -> Sample {
        self.law.sample(&mut self.context, &Credit::FREE, self.now).expect("DCQCN has samples")
    }

    /// R_C and R_T in kb/s.
    fn rates(&mut self) -> (u32, u32) {
        let sample = self.sample();
        (sample.rate_kbps, sample.target_kbps)
    }

    fn register(&mut self, name: &str) -> String {
        self.law.get(&mut self.context, name, self.now).expect("a register").to_string()
    }
}

#[test]
fn a_context_is_small_enough_to_lie_beside_its_queue_pair() {
    assert!(size_of::<Context>() <= 56, "{}", size_of::<Context>());
}

#[test]
fn a_queue_pair_without_congestion_is_unpaced_and_sleeps() {
    for preset in PRESETS {
        let mut bench = Bench::new(preset, &[]);
        assert_eq!((bench.credit, bench.wake), (Credit::FREE, Instant::NEVER));
        bench.happen(Class::TIMER, 0);
        assert_eq!((bench.credit, bench.wake), (Credit::FREE, Instant::NEVER));
        assert_eq!(bench.rates(), (LINK, LINK));
    }
}

#[test]
fn it_hears_neither_data_nor_acknowledgements_nor_sending() {
    let traced = Bench::new("sigcomm15", &[]).law.traces();
    assert!(!traced.meets(Class::DATA.with(Class::ACK).with(Class::TRANSMIT)));
    assert!(traced.meets(Class::CNP) && traced.meets(Class::CE));
}

#[test]
fn the_first_cnp_at_alpha_one_halves_the_rate() {
    let mut bench = Bench::new("sigcomm15", &[]);
    bench.cnp(us(100));
    assert_eq!(bench.rates(), (LINK / 2, LINK));
    assert_eq!(bench.credit.rate_kbps, LINK / 2);

    // By flag, the cut waits for the end of its period: 3 µs, before which alpha's 40 µs do not end.
    let mut bench = Bench::new("lst-table2", &[]);
    bench.cnp(us(100));
    assert_eq!(bench.rates(), (LINK, LINK));
    assert_eq!(bench.wake, us(103));
    bench.until(us(103));
    assert_eq!(bench.rates(), (LINK / 2, LINK));
}

#[test]
fn a_cut_takes_half_of_alpha_exactly() {
    // Alpha is 10 bits: at 410/1024 a cut takes 410/2048 of 8 Gb/s, 1 601 562.5 kb/s, of which the half is dropped.
    let mut bench = Bench::new("lst-table2", &[]);
    bench.write("rc", "8Gb/s").expect("writable");
    bench.write("alpha", "410/1024").expect("writable");
    bench.cnp(us(1)).until(us(4));
    assert_eq!(bench.rates(), (8_000_000 - 1_601_562, 8_000_000));
}

#[test]
fn the_estimate_rises_after_the_cut_and_decays_with_its_timer() {
    let mut bench = Bench::new("sigcomm15", &[("alpha_bits", "16")]);
    bench.write("alpha", "1/2").expect("writable");
    bench.cnp(us(10));
    // α = 32768; the cut takes a quarter; then α ← 32768·255/256 + 256.
    assert_eq!(bench.rates().0, 7_500_000);
    assert_eq!(bench.register("alpha"), Ratio::new(32_640 + 256, 65_536).to_string());
    // Two periods of 55 µs later: 32896 → 32767.5 → 32639, digits dropped.
    bench.until(us(10 + 2 * 55));
    assert_eq!(bench.sample().alpha_q30, 32_639 << 14);
}

#[test]
fn the_first_cnp_of_isekai_leaves_85_percent_and_then_cuts() {
    let mut bench = Bench::new("isekai", &[]);
    bench.cnp(us(0));
    assert_eq!(bench.rates(), (8_500_000, 8_500_000));
    // Four periods of alpha end before the cut at 4 µs: 1023 → 1018 → 1013 → 1008 → 1003, truncated.
    bench.until(us(4));
    let taken = (8_500_000u64 * 1003) >> 11;
    assert_eq!(u64::from(bench.rates().0), 8_500_000 - taken);
}

#[test]
fn a_period_with_many_cnps_cuts_once() {
    let mut bench = Bench::new("lst-table2", &[]);
    bench.cnp(us(0)).cnp(us(1)).cnp(us(2)).until(us(3));
    assert_eq!(bench.rates().0, 5_000_000);
    bench.until(us(30));
    assert_eq!(bench.rates().0, 5_000_000);
    // Periods run freely from the first CNP: one that comes at 31 µs cuts at 33 µs.
    bench.cnp(us(31));
    assert_eq!(bench.wake, us(33));
}

#[test]
fn a_cnp_at_the_end_of_a_period_belongs_to_the_next() {
    let mut bench = Bench::new("lst-table2", &[]);
    bench.cnp(us(0)).cnp(us(3));
    assert_eq!(bench.rates().0, 5_000_000);
    assert_eq!(bench.wake, us(6));
}

#[test]
fn at_one_instant_alpha_goes_first_then_the_cut_then_the_increase() {
    let settings = [
        ("alpha_timer", "10us"),
        ("decrease_interval", "10us"),
        ("increase_timer", "5us"),
        ("clamp", "false"),
        ("clamp_off", "plain"),
    ];
    let mut bench = Bench::new("lst-table2", &settings);
    bench.write("rc", "4Gb/s").expect("writable");
    bench.cnp(us(0)).until(us(9));
    assert_eq!(bench.rates(), (7_000_000, LINK), "one increase at 5 µs");
    bench.until(us(10));
    // α = 1020/1024 already; 7 Gb/s lose 510/1024 of themselves; then half-way to 10 Gb/s.
    assert_eq!(bench.rates(), ((7_000_000 - 3_486_328 + LINK) / 2, LINK));
}

#[test]
fn a_cooldown_swallows_cuts_but_not_the_estimate() {
    let mut bench = Bench::new("sigcomm15", &[("decrease_interval", "50us"), ("first_alpha", "1/2")]);
    bench.cnp(us(0));
    let (rate, once) = (bench.rates().0, bench.sample().alpha_q30);
    bench.cnp(us(49));
    assert_eq!(bench.rates().0, rate);
    assert!(bench.sample().alpha_q30 > once);
    bench.cnp(us(50));
    assert!(bench.rates().0 < rate);
}

#[test]
fn recovery_is_fast_then_additive_then_hyper_by_the_timer_alone() {
    // SURF's semantics, F = 5, a period of 2 ms: four halvings, one step of R_AI, then R_HAI each time.
    let mut bench = Bench::new("lst-table2", &[]);
    bench.write("rc", "4Gb/s").expect("writable");
    bench.cnp(us(0)).until(us(3));
    assert_eq!(bench.rates(), (2_000_000, 4_000_000));
    let mut seen = Vec::new();
    for period in 1..=7 {
        bench.until(us(period * 2_000));
        seen.push(bench.rates());
    }
    assert_eq!(
        seen,
        [
            (3_000_000, 4_000_000),
            (3_500_000, 4_000_000),
            (3_750_000, 4_000_000),
            (3_875_000, 4_000_000),
            (3_961_500, 4_048_000), // R_AI = 6 MB/s = 48 000 kb/s
            (4_052_750, 4_144_000), // R_HAI = 12 MB/s = 96 000 kb/s
            (4_146_375, 4_240_000),
        ]
    );
}

#[test]
fn the_simulators_count_one_stage_more_of_fast_recovery() {
    // HPCC's run.py at 10 Gb/s: F = 1, R_AI = 2 Mb/s, R_HAI = 20 Mb/s, a period of 300 µs from the cut on.
    let mut bench = Bench::new("hpcc", &[]);
    bench.write("rc", "4Gb/s").expect("writable");
    bench.write("alpha", "1").expect("writable");
    // Alpha is written, so this CNP is not the first: its flag keeps alpha at one for the period that sees it.
    bench.cnp(us(0)).until(us(4));
    let (cut, target) = bench.rates();
    assert_eq!(target, LINK, "stage zero: without the clamp the target stays");
    let mut seen = Vec::new();
    for period in 1..=2 {
        bench.until(us(4 + period * 300));
        seen.push(bench.rates());
    }
    let recovered = cut.midpoint(LINK + 1);
    assert_eq!(seen, [(recovered, LINK), (recovered.midpoint(LINK + 1), LINK)]);

    // With the clamp there is room above the target: halving, R_AI, then R_HAI.
    let mut bench = Bench::new("hpcc", &[("clamp", "true")]);
    bench.write("rc", "4Gb/s").expect("writable");
    bench.cnp(us(0)).until(us(4));
    let targets: Vec<_> = (1..=4).map(|period| bench.until(us(4 + period * 300)).rates().1).collect();
    assert_eq!(targets, [4_000_000, 4_002_000, 4_022_000, 4_042_000]);
}

#[test]
fn hyper_increase_of_sigcomm_waits_for_both_stages() {
    let settings = [("threshold", "2"), ("rai", "1Mb/s"), ("rhai", "7Mb/s")];
    let mut bench = Bench::new("sigcomm15", &settings);
    bench.write("rc", "4Gb/s").expect("writable");
    bench.cnp(us(0));
    assert_eq!(bench.byte_counter, 10_000_000);
    let target = |bench: &mut Bench| bench.sample().target_kbps;
    for (stage, expected) in [(1, 4_000_000), (2, 4_001_000), (3, 4_002_000), (4, 4_003_000)] {
        bench.until(us(stage * 55));
        assert_eq!(target(&mut bench), expected, "the timer's stage {stage} alone adds R_AI at most");
    }
    for (stage, expected) in [(1, 4_004_000), (2, 4_005_000), (3, 4_012_000), (4, 4_019_000)] {
        bench.happen(Class::BYTE_COUNTER, 10_000_000);
        assert_eq!(target(&mut bench), expected, "the byte counter's stage {stage}");
    }
}

#[test]
fn hyper_increase_of_htsim_grows_with_the_stage() {
    // At 10 Gb/s: R_AI 500 Mb/s, R_HAI 1 Gb/s; smaller for room.
    let mut bench = Bench::new("htsim", &[("threshold", "1"), ("rai", "1Mb/s"), ("rhai", "10Mb/s")]);
    bench.write("rc", "2Gb/s").expect("writable");
    bench.cnp(us(0));
    let mut targets = Vec::new();
    for stage in 1..=4 {
        bench.until(us(stage * 55));
        targets.push(bench.sample().target_kbps - 2_000_000);
        bench.happen(Class::BYTE_COUNTER, 10_000_000);
        targets.push(bench.sample().target_kbps - 2_000_000);
    }
    // (T, B): (1,0) and (1,1) fast; (2,1) additive; (2,2) 1·HAI; (3,2) 1·HAI; (3,3) 2·HAI; (4,3) 2·HAI; (4,4) 3·HAI.
    assert_eq!(targets, [0, 0, 1_000, 11_000, 21_000, 41_000, 61_000, 91_000]);
}

#[test]
fn the_clamp_forgets_the_target_and_its_absence_remembers() {
    // Two cuts with no increase between them.
    let twice = |settings: &[(&str, &str)]| {
        let mut bench = Bench::new("sigcomm15", settings);
        bench.cnp(us(0)).cnp(us(20));
        bench.rates().1
    };
    assert_eq!(twice(&[]), 5_000_000);
    assert_eq!(twice(&[("clamp", "false")]), LINK);
    assert_eq!(twice(&[("clamp", "false"), ("clamp_off", "unless-stage-zero")]), LINK);

    // And with one: "unless stage zero" then moves the target, "plain" does not.
    let after_increase = |settings: &[(&str, &str)]| {
        let mut bench = Bench::new("sigcomm15", settings);
        bench.cnp(us(0)).until(us(55));
        assert_eq!(bench.sample().stage, 1);
        bench.cnp(us(60));
        bench.rates().1
    };
    assert_eq!(after_increase(&[("clamp", "false")]), LINK);
    assert_eq!(after_increase(&[("clamp", "false"), ("clamp_off", "unless-stage-zero")]), 7_500_000);
}

#[test]
fn with_the_clamp_off_a_late_increase_covers_half_of_the_way_back() {
    // lst-fig13: a 200 ms timer and the target remembered through ten cuts.
    let mut bench = Bench::new("lst-table2", &[("increase_timer", "200ms"), ("clamp", "false")]);
    for cnp in 0..10 {
        bench.cnp(us(1 + cnp * 50));
    }
    bench.until(us(1_000));
    let (low, target) = bench.rates();
    assert!(low < LINK / 10, "{low}");
    assert_eq!(target, LINK);
    bench.until(us(200_451));
    assert_eq!(bench.rates(), (low.midpoint(LINK), LINK));
}

#[test]
fn a_cnp_or_a_cut_restarts_the_increase_by_choice() {
    // The CNP at 1.9 ms falls into the period that ends at 1.902 ms.
    for (reset, next) in [("cnp", us(1_900 + 2_000)), ("cut", us(1_902 + 2_000))] {
        let mut bench = Bench::new("lst-table2", &[("reset_on", reset)]);
        bench.cnp(us(0)).cnp(us(1_900)).until(us(1_903));
        assert_eq!(bench.wake, next, "{reset}");
        assert_eq!(bench.sample().stage, 0);
    }
}

#[test]
fn a_flow_that_is_back_at_line_rate_sleeps() {
    for preset in PRESETS {
        let mut bench = Bench::new(preset, &[]);
        bench.cnp(us(0)).until(us(10_000_000));
        assert_eq!(bench.wake, Instant::NEVER, "{preset}");
        assert_eq!(bench.byte_counter, 0, "{preset}");
        assert!(bench.rates().0 >= LINK - 1, "{preset}: {}", bench.rates().0);
        assert_eq!(bench.rates().1, LINK, "{preset}");
    }
}

#[test]
fn the_increase_outlives_a_cut_that_comes_after_it() {
    // The timer runs out, at line rate, before the flag has led to a cut; the cut must start it again.
    let settings = [("increase_timer", "1us"), ("decrease_interval", "10us")];
    let mut bench = Bench::new("surf", &settings);
    bench.cnp(us(0)).until(us(10));
    assert!(bench.rates().0 < LINK);
    assert_ne!(bench.wake, Instant::NEVER);
}

#[test]
fn the_rate_never_falls_below_its_least() {
    let mut bench = Bench::new("lst-table2", &[]);
    for cnp in 0..2_000 {
        bench.cnp(us(cnp * 3));
    }
    assert_eq!(bench.rates().0, 80_000, "10 MB/s");
    let mut slow = Bench::on_link("hpcc", &[("rmin", "1Gb/s")], 500_000);
    slow.cnp(us(0)).until(us(10));
    assert_eq!(slow.rates(), (500_000, 500_000), "the link is slower than the least rate");
}

#[test]
fn alpha_stalls_where_it_is_rounded_and_not_where_it_is_truncated() {
    let idle = |preset: &str| {
        let mut bench = Bench::new(preset, &[]);
        bench.cnp(us(0)).until(us(10_000_000));
        bench.register("alpha")
    };
    assert_eq!(idle("surf"), "1/8");
    assert_eq!(idle("lst-table2"), "1/8");
    for preset in ["sigcomm15", "hpcc", "htsim", "isekai", "swcc"] {
        assert_eq!(idle(preset), "0", "{preset}");
    }
}

#[test]
fn a_receiver_spaces_its_cnps() {
    let mut bench = Bench::new("sigcomm15", &[]);
    for marked in 0..100 {
        bench.now = us(marked);
        bench.happen(Class::CE, 4096);
    }
    assert_eq!(bench.cnps, 2, "at 0 and at 50 µs");
    let mut bench = Bench::new("hpcc", &[]);
    for _ in 0..100 {
        bench.happen(Class::CE, 4096);
    }
    assert_eq!(bench.cnps, 100, "each marked packet");
}

#[test]
fn a_gap_may_be_the_ports() {
    for (scope, expected) in [("qp", 2), ("port", 1)] {
        let mut bench = Bench::new("swcc", &[("cnp_scope", scope)]);
        bench.happen(Class::CE, 1024);
        bench.context = bench.law.connect(LINK).0;
        bench.happen(Class::CE, 1024);
        assert_eq!(bench.cnps, expected, "{scope}");
    }
    // A ConnectX behind boards with SURF's firmware keeps it for the port.
    for preset in ["surf", "lst-table2"] {
        let mut bench = Bench::new(preset, &[]);
        for board in 0..3 {
            bench.context = bench.law.connect(LINK).0;
            bench.now = us(board);
            bench.happen(Class::CE, 4096);
        }
        assert_eq!(bench.cnps, 1, "{preset}: three boards are marked within 4 µs");
    }
}

#[test]
fn registers_are_read_and_written_while_it_runs() {
    let mut bench = Bench::new("lst-table2", &[]);
    bench.cnp(us(0)).until(us(3));
    assert_eq!(bench.register("rc"), "5Gb/s");
    assert_eq!(bench.register("rt"), "10Gb/s");
    assert_eq!(bench.register("alpha"), "1");
    assert_eq!(bench.register("increase_timer"), "2ms");

    bench.write("increase_timer", "200ms").expect("writable");
    bench.cnp(us(10));
    assert_eq!(bench.wake, us(12));
    bench.until(us(12));
    assert_eq!(bench.wake, us(200_010));

    bench.write("rc", "1Gb/s").expect("writable");
    assert_eq!(bench.credit.rate_kbps, 1_000_000);
    bench.write("rt", "500Mb/s").expect("writable");
    assert_eq!(bench.register("rt"), "1Gb/s", "the target is never below the rate");
    bench.write("g", "1/128").expect("writable");
    assert_eq!(bench.register("g"), "1/128");
    assert_eq!(bench.write("limiter", "port"), Err(SettingError::ReadOnly { name: "limiter" }));
}

#[test]
fn a_stage_that_is_written_decides_the_next_increase() {
    // The fifth increase is the first to add a step; a stage that is written skips some of those before.
    for (register, written, target) in [("stage", "3", 10_000_000), ("stage", "4", 10_040_000)] {
        let mut bench = Bench::on_link("sigcomm15", &[("hyper", "none")], 40_000_000);
        bench.write("rc", "5Gb/s").expect("writable");
        bench.write("rt", "10Gb/s").expect("writable");
        bench.write(register, written).expect("writable");
        assert_eq!(bench.register(register), written);
        bench.until(us(55));
        assert_eq!(bench.sample().target_kbps, target, "from stage {written}");
    }
    let mut bench = Bench::new("sigcomm15", &[]);
    bench.write("byte_stage", "65535").expect("writable");
    assert_eq!(bench.register("byte_stage"), "65535");
    assert!(bench.write("stage", "65536").is_err());
    assert!(bench.write("stage", "-1").is_err());
}

#[test]
fn alpha_keeps_its_value_when_its_bits_change() {
    let mut bench = Bench::new("sigcomm15", &[]);
    bench.cnp(us(1));
    bench.write("alpha", "1/3").expect("writable");
    for (bits, alpha) in [("12", 1365.0 / 4096.0), ("4", 5.0 / 16.0), ("30", 5.0 / 16.0)] {
        bench.write("alpha_bits", bits).expect("writable");
        let read = f64::from(bench.sample().alpha_q30) / f64::from(1 << 30);
        assert!((read - alpha).abs() < 1e-9, "{bits} bits: {read}");
        assert_eq!(bench.register("alpha_bits"), bits);
    }
}

#[test]
fn a_rate_written_on_an_idle_queue_pair_recovers() {
    let mut bench = Bench::new("sigcomm15", &[]);
    bench.write("rc", "1Gb/s").expect("writable");
    assert_eq!(bench.wake, us(55));
    bench.until(us(10_000_000));
    assert_eq!(bench.credit, Credit::FREE);
}

#[test]
fn traces_of_the_presets() {
    for preset in PRESETS {
        // 25 Gb/s, the rate for which HPCC's values are written; three CNPs, then peace and one count of octets.
        let mut bench = Bench::on_link(preset, &[], 25_000_000);
        let mut lines =
            format!("{preset} at 25 Gb/s\n     time  event        R_C kb/s    R_T kb/s  alpha     T  B\n");
        let mut note = |bench: &mut Bench, event: &str| {
            let s = bench.sample();
            let micros = bench.now.as_ps() / 1_000_000;
            // Six digits, rounded by integers so that no platform differs.
            let alpha = (u64::from(s.alpha_q30) * 1_000_000 + (1 << 29)) >> 30;
            lines += &format!(
                "{micros:>6} us  {event:<10}{:>11} {:>11}  {}.{:06} {:>2} {:>2}\n",
                s.rate_kbps,
                s.target_kbps,
                alpha / 1_000_000,
                alpha % 1_000_000,
                s.stage,
                s.byte_stage
            );
        };
        for at in [100, 160, 220] {
            bench.cnp(us(at));
            note(&mut bench, "CNP");
        }
        for wake in 0..24 {
            if bench.wake == Instant::NEVER {
                break;
            }
            if wake == 8 && bench.byte_counter > 0 {
                bench.now += Span::from_micros(1);
                bench.happen(Class::BYTE_COUNTER, bench.byte_counter);
                note(&mut bench, "bytes");
            }
            bench.until(bench.wake);
            note(&mut bench, "timer");
        }
        insta::assert_snapshot!(preset, lines);
    }
}
