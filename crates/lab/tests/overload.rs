//! Cores that cannot keep up with what arrives.

use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::{Instant, Span};
use std::path::Path;
use support::overrides;

#[expect(dead_code, reason = "other tests look at more")]
mod support;

fn run(text: &str, set: &[(&str, &str)]) -> Results {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/overload.toml");
    let scenario = Scenario::parse(text, &file.display().to_string(), &overrides(set))
        .unwrap_or_else(|error| panic!("{error}"));
    SimulatedWorld
        .run(&scenario, scenario.seed, None, &mut |_| Go::On)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The cores of the receiver have a clock with which they hear of half a gigabit a second or so, on a link of ten. Of the
/// data of one flow they are to hear, of those of the other, which has another pair of them, not.
const SLOW: &str = r#"
name = "overload"
stop = "20ms"
[topology]
kind = "star"
hosts = 3
rate = "10Gb/s"
delay = "1us"
[switch]
ecn = false
pfc = true
[nic]
model = "swcc"
mtu = 1024
[[nic.on]]
hosts = ["h2"]
with = { cores = { clock = "2MHz", queue = 64 }, receive = { fifo = "64KiB" } }
[[traffic]]
kind = "flows"
flows = [
  { name = "heard", src = "h0", dst = "h2", op = "write", size = "40MB", control = { law = "program", elf = "firmware/paced.elf" } },
  { name = "other", src = "h1", dst = "h2", op = "write", size = "40MB" },
]
"#;

/// What the receiver's core can hear of, in bits of payload per second.
fn core_rate(results: &Results) -> f64 {
    let cores = results.hosts[2].nic.as_ref().expect("it is made of parts").cores;
    assert!(cores.receives > 500, "{cores:?}");
    8.0 * 1024.0 * cores.receives as f64 / cores.busy.as_secs_f64()
}

fn goodput(results: &Results) -> [f64; 2] {
    [0, 1].map(|flow| results.flows[flow].goodput_bps(results.simulated) as f64)
}

#[test]
fn a_core_that_cannot_keep_up_has_its_nic_send_pause_and_hears_of_all() {
    let results = run(SLOW, &[]);
    let (rate, [heard, other]) = (core_rate(&results), goodput(&results));
    assert!(rate < 1e9, "{rate}");
    assert!(heard > 0.85 * rate && heard < 1.15 * rate, "{heard} of {rate}");
    let receiver = &results.hosts[2];
    assert!(receiver.pause_sent > 0 && receiver.dropped == 0, "{receiver:?}");
    let cores = receiver.nic.as_ref().unwrap().cores;
    assert!(cores.held_up > cores.receives, "those of the other flow too: {cores:?}");
    assert_eq!(results.unheard(), 0);
    // The FIFO is one: who stands in it behind a packet that waits for its core, waits as well.
    assert!(other < 2.0 * rate, "{other}");
}

#[test]
fn without_pause_such_a_core_has_its_nic_drop_packets() {
    let results = run(SLOW, &[("switch.pfc", "false")]);
    let receiver = &results.hosts[2];
    assert!(receiver.pause_sent == 0 && receiver.dropped > 100, "{receiver:?}");
    assert_eq!(results.unheard(), 0);
    assert!(goodput(&results)[0] < 1.15 * core_rate(&results));
}

#[test]
fn without_a_limit_such_a_core_holds_nothing_up_and_does_not_hear_of_most() {
    let results = run(SLOW, &[("nic.on.0.with.cores.queue", "all")]);
    let [heard, other] = goodput(&results);
    assert!(heard > 3e9 && other > 3e9, "{heard} {other}");
    let receiver = &results.hosts[2];
    assert!(receiver.pause_sent == 0 && receiver.unheard > 1_000, "{receiver:?}");
    assert_eq!(receiver.unheard, results.unheard());
}

#[test]
fn what_lets_a_law_go_on_comes_through_a_full_fifo() {
    // Each host sends and receives, waits for credit, and hears of one packet at a time.
    let both = SLOW.replace("20ms", "1s").replace("hosts = [\"h2\"]", "hosts = [\"h0\", \"h1\", \"h2\"]");
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "16KiB" } }"#;
    let flows = r#"[{ src = "h0", dst = "h1", size = "200KB" }, { src = "h1", dst = "h0", size = "200KB" }, { src = "h2", dst = "h0", size = "200KB" }]"#;
    for (queue, pfc) in [("1", "true"), ("1", "false"), ("64", "true")] {
        let results = run(
            &both,
            &[
                ("traffic.0.flows", flows),
                ("transport.control", credit),
                ("transport.timeout", "20ms"),
                ("nic.on.0.with.cores.queue", queue),
                ("nic.on.0.with.cores.pairs", "1"),
                ("nic.on.0.with.receive.fifo", "16KiB"),
                ("switch.pfc", pfc),
            ],
        );
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        assert_eq!((results.unheard(), results.programs[0].tally.fallen()), (0, 0));
        let held = |host: usize| results.hosts[host].nic.as_ref().unwrap().cores.held_up;
        assert!(queue == "64" || held(0) > 100, "{}", held(0));
    }
}

#[test]
fn a_program_that_loops_back_for_ever_does_not_freeze_the_fifo() {
    // Nothing may go on this credit: the program is stopped in the end, and the fallback law takes over.
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "100B" } }"#;
    let flows = r#"[{ src = "h0", dst = "h2", size = "40KB" }, { src = "h2", dst = "h0", size = "40KB" }]"#;
    let results = run(
        &SLOW.replace("20ms", "1s"),
        &[
            ("traffic.0.flows", flows),
            ("transport.control", credit),
            ("nic.on.0.with.cores.queue", "1"),
            ("nic.on.0.with.cores.clock", "250MHz"),
        ],
    );
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    assert_eq!(results.programs[0].tally.fallen(), 2);
}

#[test]
fn a_timer_shorter_than_its_event_keeps_the_core_busy_and_the_run_going() {
    // 100 ns are 25 cycles of the core, the event takes a few hundred. Both queue pairs of the receiver share a pair.
    let (hasty, both) = (
        r#"{ law = "program", elf = "tests/programs/hasty.elf" }"#,
        r#"[{ src = "h0", dst = "h2", size = "400KB" }, { src = "h1", dst = "h2", size = "400KB" }, { src = "h2", dst = "h0", size = "400KB" }]"#,
    );
    let results = run(
        &SLOW.replace("20ms", "1s"),
        &[
            ("transport.control", hasty),
            ("traffic.0.flows", both),
            ("nic.on.0.with.cores.clock", "250MHz"),
            ("nic.on.0.with.cores.pairs", "1"),
        ],
    );
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
    let cores = results.hosts[2].nic.as_ref().unwrap().cores;
    // Until it is through with what it had taken on when the last flow ended.
    let share = cores.busiest.as_secs_f64() / cores.busiest_over.as_secs_f64();
    assert!(share > 0.9 && share <= 1.0, "{share}");
    assert!(results.simulated < Instant::ZERO + Span::from_millis(20), "{}", results.simulated);
    assert_eq!((results.unheard(), results.programs[0].tally.fallen()), (0, 0));
}
