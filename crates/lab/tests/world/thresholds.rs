//! Thresholds of switches that `[[at]]` changes during a run.

use super::{run, star};

/// Two senders into one port for two milliseconds, which marks behind 20 KB, and what is said of `at`.
fn marks_and_pauses(stop: &str, at: &str) -> (u64, u64) {
    let rest = format!(
        r#"
        stop = "{stop}"
        [switch]
        buffer = "1MB"
        ecn = {{ step = "20KB" }}
        pfc = {{ alpha = 1, headroom = "20KB" }}
        [transport]
        control = "none"
        max_in_flight = 64
        [[traffic]]
        kind = "incast"
        senders = 2
        receiver = "h0"
        size = "1GB"
        {at}
        "#
    );
    let results = run(&star(3, "10Gb/s", &rest), &[]);
    (results.switches[0].ecn_marks, results.switches[0].pause_sent)
}

#[test]
fn a_switch_marks_by_the_line_that_it_was_last_given() {
    let raised = "[[at]]\ntime = \"1ms\"\nset = { \"switch.ecn.kmin\" = \"900KB\", \"switch.ecn.kmax\" = \"900KB\" }\n";
    let lowered = "[[at]]\ntime = \"1500us\"\nset = { \"switch.ecn.step\" = \"10KB\" }\n";
    let marks = |stop, at: &str| marks_and_pauses(stop, at).0;
    let half = marks("1ms", "");
    assert!(half > 1_000, "{half}");
    assert_eq!(marks("2ms", raised), half, "none from then on");
    let (all, again) = (marks("2ms", ""), marks("2ms", &format!("{raised}{lowered}")));
    assert!((again - half).abs_diff((all - half) / 2) < 10, "{half}, {again} and {all}");
    let elsewhere = raised.replace("set", "switches = [\"s*\"]\nset");
    assert_eq!(marks("2ms", &elsewhere), half, "the only switch is meant");
}

#[test]
fn ports_are_paused_by_the_share_that_a_switch_was_last_given() {
    // Each sender has 64 packets in flight, some 70 KB: less than what is free, and more than a 64th of it.
    assert_eq!(marks_and_pauses("2ms", "").1, 0);
    let share = "[[at]]\ntime = \"1ms\"\nset = { \"switch.pfc.alpha\" = \"1/64\" }\n";
    assert_eq!(marks_and_pauses("1ms", share).1, 0);
    let pauses = marks_and_pauses("2ms", share).1;
    assert!(pauses > 10, "{pauses}");
    let resume = "[[at]]\ntime = \"1ms\"\nset = { \"switch.pfc.alpha\" = \"1/64\", \"switch.pfc.resume\" = \"12KB\" }\n";
    let fewer = marks_and_pauses("2ms", resume).1;
    assert!(
        0 < fewer && fewer < pauses,
        "who waits until little is left is paused less often: {fewer} of {pauses}"
    );
}
