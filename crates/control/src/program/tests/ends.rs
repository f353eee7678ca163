//! The ends of what a program's parameters may be: where the law in Rust refuses a value, so does its twin; where both take it,
//! they are one function of the events.

use super::twin::{self, Tuning, Twin};
use alloc::string::ToString;
use alloc::vec::Vec;
use proptest::test_runner::{Config, TestRunner};

/// What stands at the ends of ranges, and one beyond. Each line is `key=value`, or several with spaces between, and keys
/// are as in a [`Tuning`].
struct Ends {
    twin: &'static Twin,
    /// What both take.
    both: &'static [&'static str],
    /// What neither takes.
    neither: &'static [&'static str],
    /// What the program cannot work with, and the law in Rust can.
    rust_alone: &'static [&'static str],
    /// What has a meaning of its own in the program.
    program_alone: &'static [&'static str],
}

fn tuning(line: &'static str) -> Tuning {
    let pair = |pair: &'static str| pair.split_once('=').map(|(key, text)| (key, text.to_string()));
    line.split(' ').map(|word| pair(word).expect("key=value")).collect()
}

impl Ends {
    fn hold(&self) {
        let link = roci_units::BitsPerSec::from_gbps(100);
        let taken = |line| {
            let tuning = tuning(line);
            (self.twin.rust(&tuning, link).is_ok(), self.twin.program(&tuning, true).is_ok())
        };
        let lines = [
            (self.both, (true, true)),
            (self.neither, (false, false)),
            (self.rust_alone, (true, false)),
            (self.program_alone, (false, true)),
        ];
        for (lines, expected) in lines {
            for line in lines {
                assert_eq!(taken(line), expected, "whether Rust and the program take {line}");
            }
        }
        self.name_every_parameter();
        let config = Config { cases: 6, failure_persistence: None, ..Config::default() };
        for line in self.both {
            let events = (twin::links(), twin::begins(), twin::stream(self.twin.classes));
            let agrees =
                |(link, begin, events): (_, _, Vec<_>)| self.twin.agrees(&tuning(line), link, begin, &events);
            if let Err(why) = TestRunner::new(config.clone()).run(&events, agrees) {
                panic!("{line}: {why}");
            }
        }
    }

    fn name_every_parameter(&self) {
        let tunings: Vec<Tuning> = self.both.iter().map(|line| tuning(line)).collect();
        let program = self.twin.program(&Tuning::new(), true).expect("a program");
        for parameter in program.image().parameters() {
            let named = tunings.iter().flatten().filter_map(twin::program_key);
            assert!(named.filter(|(key, _)| *key == parameter.name).count() >= 2, "{}", parameter.name);
        }
    }
}

#[test]
fn dcqcn_in_c_takes_what_its_timers_can_and_dcqcn_in_rust_takes() {
    Ends {
        twin: &twin::DCQCN,
        both: &[
            "rai=1Kb/s",
            "rai=4294967294Kb/s",
            "rhai=1Kb/s",
            "rhai=4294967294Kb/s",
            "rmin=1Kb/s",
            "rmin=4294967294Kb/s",
            "g=1/4294967295",
            "g=1",
            "threshold=1",
            "threshold=255",
            "byte_counter=1B",
            "byte_counter=268435455B",
            "alpha_timer=100ns",
            "alpha_timer=268435455ns",
            "increase_timer=100ns",
            "increase_timer=268435455ns",
            "cnp_gap=100ns",
            "cnp_gap=268435455ns",
        ],
        neither: &[
            "rai=0Kb/s",
            "rai=4294967295Kb/s",
            "rhai=0Kb/s",
            "rhai=4294967295Kb/s",
            "rmin=0Kb/s",
            "rmin=4294967295Kb/s",
            "g=0",
            "g=257/256",
            "threshold=0",
            "threshold=256",
            "byte_counter=4294967296B",
            "alpha_timer=0s",
            "increase_timer=0s",
        ],
        rust_alone: &[
            "alpha_timer=99ns",
            "alpha_timer=268435456ns",
            "increase_timer=99ns",
            "increase_timer=268435456ns",
            "increase_timer=268435556ns",
            "increase_timer=300ms",
            "increase_timer=1s",
            "cnp_gap=0s",
            "cnp_gap=99ns",
            "cnp_gap=268435456ns",
            "byte_counter=0B",
            "byte_counter=268435456B",
            "byte_counter=4294967295B",
        ],
        program_alone: &[],
    }
    .hold();
}

#[test]
fn timely_in_c_takes_what_timely_in_rust_takes() {
    Ends {
        twin: &twin::TIMELY,
        both: &[
            "alpha/=1/4294967295 /alpha_num=1 /alpha_den=4294967295",
            "alpha/=1 /alpha_num=4294967295 /alpha_den=4294967295",
            "beta/=1/42949672 /beta_num=1 /beta_den=42949672 min_rtt=100ns",
            "beta/=1 /beta_num=214748 /beta_den=214748",
            "first_rate/=1/4294967295 /first_num=1 /first_den=4294967295",
            "first_rate/=1 /first_num=4294967295 /first_den=4294967295",
            "t_low=100ns",
            "t_low=67ms",
            "t_high=100ns",
            "t_high=67ms",
            "min_rtt=100ns",
            "min_rtt=67ms",
            "delta=1Kb/s",
            "delta=4294967294Kb/s",
            "hai=1Kb/s",
            "hai=4294967294Kb/s",
            "rmin=1Kb/s",
            "rmin=4294967294Kb/s",
            "hai_after=0",
            "hai_after=255",
            "segment=1B",
            "segment=1000000000B",
        ],
        neither: &[
            "alpha/=0 /alpha_num=0",
            "alpha/=9/8 /alpha_num=9",
            "beta/=0 /beta_num=0",
            "beta/=6/5 /beta_num=6",
            "first_rate/=0 /first_num=0",
            "first_rate/=3/2 /first_num=3",
            "t_low=99ns",
            "t_low=67000001ns",
            "t_high=99ns",
            "t_high=67000001ns",
            "min_rtt=99ns",
            "min_rtt=0s",
            "min_rtt=67000001ns",
            "delta=0Kb/s",
            "delta=4294967295Kb/s",
            "hai=0Kb/s",
            "hai=4294967295Kb/s",
            "rmin=0Kb/s",
            "rmin=4294967295Kb/s",
            "hai_after=256",
            "segment=1000000001B",
        ],
        rust_alone: &[
            "/alpha_den=0",
            "/beta_den=0",
            "/first_den=0",
            "segment=0B",
            "beta/=800000/1000000 /beta_num=800000 /beta_den=1000000",
        ],
        program_alone: &[],
    }
    .hold();
}

#[test]
fn hpcc_in_c_takes_what_hpcc_in_rust_takes() {
    Ends {
        twin: &twin::HPCC,
        both: &[
            "eta=1/4294967295",
            "eta=1",
            "base_rtt=1us",
            "base_rtt=1ms",
            "w_ai=1B",
            "w_ai=1073741824B",
            "wmin=1B",
            "wmin=1073741824B",
            "max_stage=0",
            "max_stage=255",
        ],
        neither: &[
            "eta=0",
            "eta=65537/65536",
            "base_rtt=999ns",
            "base_rtt=1000001ns",
            "w_ai=0B",
            "w_ai=1073741825B",
            "wmin=0B",
            "wmin=1073741825B",
            "max_stage=256",
        ],
        rust_alone: &[],
        program_alone: &[],
    }
    .hold();
}

#[test]
fn swift_in_c_takes_what_swift_in_rust_takes_but_hops_that_255_of_would_wrap() {
    Ends {
        twin: &twin::SWIFT,
        both: &[
            "ai=1/1000",
            "ai=60000",
            "beta=1/4294967295",
            "beta=1",
            "max_mdf=1/4294967295",
            "max_mdf=1",
            "base_target=0s",
            "base_target=67ms",
            "per_hop=0s",
            "per_hop=16ms base_target=67ms",
            "hops/hops_untold=0",
            "hops/hops_untold=64",
            "fs_range=0s",
            "fs_range=500us",
            "fs_min_cwnd=1/1000",
            "fs_min_cwnd=255",
            "fs_max_cwnd=1/1000",
            "fs_max_cwnd=255",
            "min_cwnd=1/1000",
            "min_cwnd=60000 max_cwnd=60000",
            "min_cwnd=1/1000 max_cwnd=1/1000",
            "max_cwnd=60000",
            "first_cwnd=1/1000",
            "first_cwnd=60000",
            "retx_reset=1",
            "retx_reset=255",
            "mss=1B",
            "mss=4096B",
        ],
        neither: &[
            "ai=1/1001",
            "ai=60001",
            "beta=0",
            "beta=65537/65536",
            "max_mdf=0",
            "max_mdf=65537/65536",
            "base_target=67000001ns",
            "base_target=100ms",
            "per_hop=67000001ns",
            "hops/hops_untold=65",
            "fs_range=500001ns",
            "fs_min_cwnd=1/1001",
            "fs_min_cwnd=256",
            "fs_max_cwnd=1/1001",
            "fs_max_cwnd=256",
            "min_cwnd=1/1001",
            "min_cwnd=60001 max_cwnd=60001",
            "max_cwnd=0",
            "max_cwnd=60001",
            "first_cwnd=0",
            "first_cwnd=1/1001",
            "first_cwnd=60001",
            "retx_reset=0",
            "retx_reset=256",
            "mss=0B",
            "mss=4097B",
        ],
        rust_alone: &["per_hop=16000001ns", "per_hop=67ms", "min_cwnd=60000"],
        program_alone: &[],
    }
    .hold();
}

#[test]
fn homa_in_c_takes_what_its_timer_can_and_homa_in_rust_takes() {
    Ends {
        twin: &twin::HOMA,
        both: &[
            "unscheduled=1B",
            "unscheduled=2000000000B",
            "ahead=1B",
            "ahead=2000000000B",
            "cutoff_1=1B",
            "cutoff_1=2000000000B",
            "cutoff_2=1B",
            "cutoff_2=2000000000B",
            "cutoff_3=1B",
            "cutoff_3=2000000000B",
            "resend/=25ns resends/=2 /patience=100ns",
            "resend/=89478485ns resends/=1 /patience=268435455ns",
        ],
        neither: &[
            "unscheduled=0B",
            "unscheduled=2000000001B",
            "ahead=2000000001B",
            "cutoff_1=0B",
            "cutoff_1=2000000001B",
            "cutoff_2=0B",
            "cutoff_2=2000000001B",
            "cutoff_3=0B",
            "cutoff_3=2000000001B",
            "resend/=0s /patience=0s",
        ],
        rust_alone: &[
            "resend/=33ns resends/=1 /patience=99ns",
            "resend/=89478486ns resends/=1 /patience=268435458ns",
        ],
        // As far as `unscheduled`.
        program_alone: &["ahead=0B"],
    }
    .hold();
}
