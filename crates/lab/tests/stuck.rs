//! A run in which nothing moves any more is found out and reported, not left hanging.

use roci_lab::results::{Deadlock, FlowStatus, Results};
use roci_lab::run::{Go, RunError, Stall, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::{Instant, Span};

fn run(text: &str) -> RunError {
    let scenario = Scenario::parse(text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let run = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On);
    run.expect_err("the run cannot end well")
}

/// What the run came to that a deadlock ended.
fn deadlocked(text: &str) -> Results {
    let scenario = Scenario::parse(text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let results =
        SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"));
    assert!(results.failure().is_some_and(|said| said.starts_with("deadlock at ")));
    results
}

/// Where it stood still, and when that was found.
fn deadlock(text: &str) -> Deadlock {
    deadlocked(text).deadlock.expect("that is how it ends")
}

/// Five switches in a ring with two hosts each that send two switches further on: each link of the ring carries the
/// flows of two switches, at twice its rate. The buffers fill, and each switch waits for the next.
fn ring(timeout: &str) -> String {
    let names = |letter: &str, count| (0..count).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    let link =
        |a: String, b: String| format!("{{ a = \"{a}\", b = \"{b}\", rate = \"10Gb/s\", delay = \"1us\" }}");
    let around = (0..5).map(|n| link(format!("s{n}"), format!("s{}", (n + 1) % 5)));
    let down = (0..10).map(|n| link(format!("h{n}"), format!("s{}", n / 2)));
    let links: Vec<String> = around.chain(down).collect();
    let flow =
        |n| format!("{{ src = \"h{n}\", dst = \"h{}\", op = \"write\", size = \"10MB\" }}", (n + 4) % 10);
    let flows: Vec<String> = (0..10).map(flow).collect();
    format!(
        r#"
        [topology]
        kind = "graph"
        hosts = {:?}
        switches = {:?}
        links = [{}]
        [switch]
        buffer = "200KB"
        ecn = false
        [transport]
        timeout = "{timeout}"
        control = {{ law = "none" }}
        [[traffic]]
        kind = "flows"
        flows = [{}]
        "#,
        names("h", 10),
        names("s", 5),
        links.join(","),
        flows.join(","),
    )
}

/// The ports of a cycle, each as the switches at its ends.
fn assert_is_the_ring(cycle: &[(String, String)]) {
    assert_eq!(cycle.len(), 5, "{cycle:?}");
    for (place, (from, to)) in cycle.iter().enumerate() {
        assert_eq!(to, &cycle[(place + 1) % 5].0, "each waits for the next: {cycle:?}");
        assert!(from.starts_with('s') && to.starts_with('s'), "{cycle:?}");
    }
}

#[test]
fn a_cycle_of_pauses_is_named_when_nothing_moves() {
    assert_is_the_ring(&deadlock(&ring("0s")).cycle);
}

#[test]
fn a_cycle_of_pauses_is_named_though_timers_go_on() {
    assert_is_the_ring(&deadlock(&ring("500us")).cycle);
}

#[test]
fn a_run_that_ends_in_a_deadlock_has_results() {
    let results = deadlocked(&format!("{}[measure]\nsample = \"10us\"\n", ring("0s")));
    let at = results.deadlock.as_ref().map(|deadlock| deadlock.at);
    assert_eq!(Some(results.simulated), at, "the run ends where it was found");
    assert_eq!(results.flows.len(), 10);
    let running = results.flows.iter().filter(|flow| flow.status == FlowStatus::Running);
    assert!(running.clone().count() > 0 && running.clone().all(|flow| flow.delivered < flow.bytes));
    assert!(results.switches.iter().all(|switch| switch.pause_sent > 0 && !switch.paused.is_zero()));
    let mut last = Instant::ZERO;
    results.series.rows(|reading| last = last.max(reading.at));
    assert_eq!(last, results.simulated, "the last sample is of the end");
}

#[test]
fn a_cycle_of_pauses_is_named_though_other_traffic_moves() {
    let beside = r#"
        [[traffic]]
        kind = "closed-loop"
        src = "h10"
        dst = "h11"
        op = "write"
        message = "100KB"
        qps = 1
        depth = 1
        "#;
    let text = ring("0s").replace(r#""h9"]"#, r#""h9", "h10", "h11"]"#).replace(
        "links = [",
        r#"links = [{ a = "h10", b = "s0", rate = "10Gb/s", delay = "1us" },
                { a = "h11", b = "s0", rate = "10Gb/s", delay = "1us" }, "#,
    );
    assert_is_the_ring(&deadlock(&format!("stop = \"100ms\"\n{text}{beside}")).cycle);
}

#[test]
fn a_cycle_of_pauses_is_named_though_the_flows_have_failed_before_anyone_looked() {
    let results = deadlocked(&ring("20us"));
    let Deadlock { at, cycle, .. } = results.deadlock.as_ref().expect("that is how it ends");
    assert_is_the_ring(cycle);
    assert!(*at > Instant::ZERO + Span::from_micros(187), "{at}");
    assert!(results.failure().is_some_and(|said| said.ends_with("Transport Retry Counter Exceeded")));
}

#[test]
fn a_cycle_of_pauses_is_named_though_the_end_comes_before_anyone_looked() {
    let results = deadlocked(&format!("stop = \"1ms\"\n{}", ring("500us")));
    assert_is_the_ring(&results.deadlock.as_ref().expect("that is how it ends").cycle);
    assert_eq!(results.simulated, Instant::ZERO + Span::from_millis(1));
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::Running));
}

/// Two more hosts at two of the switches: what one sends the other crosses the ring, and a storm holds it for a while.
fn ring_beside_a_storm() -> String {
    let more = r#"links = [{ a = "h10", b = "s0", rate = "10Gb/s", delay = "1us" },
                { a = "h11", b = "s1", rate = "10Gb/s", delay = "1us" }, "#;
    let storm = r#"
        [[faults.on]]
        link = "s1>h11"
        until = "900us"
        pause_storm = true
        "#;
    ring("20us")
        .replace(r#""h9"]"#, r#""h9", "h10", "h11"]"#)
        .replace("links = [", more)
        .replace("flows = [", r#"flows = [{ src = "h10", dst = "h11", op = "write", size = "10MB" },"#)
        + storm
}

#[test]
fn a_cycle_that_frees_itself_behind_failed_flows_lengthens_no_run() {
    let text = format!("stop = \"400us\"\n{}", ring_beside_a_storm());
    let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let results =
        SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        results.flows.iter().all(|flow| flow.status != FlowStatus::Running && flow.status != FlowStatus::OK)
    );
    assert!(results.simulated <= Instant::ZERO + Span::from_micros(400), "{}", results.simulated);
}

/// While storms hold all links down to the hosts each port of the ring waits for the next one, and for those links: what
/// becomes of it is not decided before they are free.
#[test]
fn ports_that_wait_for_a_port_that_may_yet_move_are_no_deadlock() {
    let storm = |host| {
        let leaf = host / 2;
        format!("[[faults.on]]\nlink = \"s{leaf}>h{host}\"\nuntil = \"5ms\"\npause_storm = true\n")
    };
    let storms: String = (0..10).map(storm).collect();
    let of_five = "\n[switch.classes]\ndata = 5\npause = [5]\n";
    let text = ring("0s").replace("10MB", "2MB") + of_five + &storms;
    let Deadlock { at, priority, cycle } = deadlock(&text);
    assert_is_the_ring(&cycle);
    assert_eq!(priority, 5);
    assert!(at > Instant::ZERO + Span::from_millis(5), "{at}");
}

const PAIR: &str = r#"
    [topology]
    kind = "star"
    hosts = 2
    rate = "10Gb/s"
    delay = "1us"
    "#;

fn stall(text: &str) -> Stall {
    match run(&format!("{PAIR}{text}")) {
        RunError::Stalled { left: 1, why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_storm_that_holds_a_flow_for_ever_is_named() {
    let why = stall(
        r#"
        [transport]
        timeout = "0s"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", op = "write", size = "1MB" }]
        [[faults.on]]
        link = "s0>h1"
        from = "10us"
        pause_storm = true
        "#,
    );
    assert_eq!(why, Stall::Storm(vec!["s0>h1".to_owned()]));
}

#[test]
fn what_lies_beyond_the_end_of_time_ends_a_run_without_a_panic() {
    let flow = |start: &str| {
        format!(
            "[[traffic]]\nkind = \"flows\"\n\
             flows = [{{ src = \"h0\", dst = \"h1\", op = \"write\", size = \"1MB\", start = \"{start}\" }}]\n"
        )
    };
    // The flow begins within the last millisecond, and within the last microsecond.
    assert_eq!(stall(&flow("4503.5995s")), Stall::EndOfTime);
    assert_eq!(stall(&flow("4503.599627s")), Stall::EndOfTime);
    // A packet would arrive after the end of time, or the timer of a lost one end after it.
    let slow = "[transport]\ntimeout = \"0s\"\n[faults]\ndelay = \"1s\"\n";
    let late = format!("{slow}{}", flow("4503.5s"));
    assert_eq!(stall(&late), Stall::EndOfTime);
    // What it says is true, and what it advises helps.
    let said = run(&format!("{PAIR}{late}")).to_string();
    assert!(said.starts_with("out of time: after 4503.500864 s 1 flow is"), "{said}");
    assert!(said.contains("not done, among them") && !said.contains("nothing more"), "{said}");
    assert!(said.contains("75 minutes") && said.contains("`stop`"), "{said}");
    let stopped = format!("stop = \"4503.55s\"\n{PAIR}{late}");
    let scenario = Scenario::parse(&stopped, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let results =
        SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).expect("it ends where it is told to");
    assert_eq!(results.flows[0].status, FlowStatus::Running);
    let lossy =
        "[transport]\ntimeout = \"1s\"\n[[faults.on]]\nlink = \"h0>s0\"\nloss = 1\nuntil = \"4503.55s\"\n";
    assert_eq!(stall(&format!("{lossy}{}", flow("4503.5s"))), Stall::EndOfTime);
}

#[test]
fn a_law_that_lets_flows_send_next_to_nothing_is_named_when_time_is_out() {
    let slow = "[transport]\ncontrol = { law = \"program\", elf = \"tests/programs/rate_zero.elf\" }\n\
                [[traffic]]\nkind = \"permutation\"\nsize = \"2MB\"\n[measure]\nsample = \"0s\"\n";
    let given_up = run(&format!("{PAIR}{slow}")).to_string();
    let named = "`tests/programs/rate_zero.elf` lets 0.0 send at 1 kb/s, for which a rate of 0 is taken too";
    // Long before that time, where all flows are so.
    assert!(given_up.starts_with("given up at 2.0") && given_up.contains(named), "{given_up}");
    assert!(given_up.contains("2 flows are not done") && given_up.ends_with("a `stop`"), "{given_up}");
    // A flow that is to start may bring about whatever it likes.
    let late = "[[traffic]]\nkind = \"flows\"\nflows = [{ src = \"h0\", dst = \"h1\", op = \"write\", size = \"1B\", start = \"4500s\" }]\n";
    let said = run(&format!("{PAIR}{slow}{late}")).to_string();
    assert!(said.starts_with("out of time: after 4"), "{said}");
    assert!(said.ends_with(named), "{said}");
}

#[test]
fn flows_that_may_send_next_to_nothing_are_told_of_early_and_in_results() {
    let crawls = |stop: &str, law: &str| {
        let text = format!(
            "{stop}\n{PAIR}[transport]\ncontrol = {law}\n[[traffic]]\nkind = \"permutation\"\nsize = \"20KB\"\n[measure]\nsample = \"0s\"\n"
        );
        let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut early = Vec::new();
        let run = SimulatedWorld.run(&scenario, 1, None, &mut |progress| {
            early.extend(progress.warning.clone().map(|warning| (progress.now, warning)));
            Go::On
        });
        (early, run.unwrap_or_else(|error| panic!("{error}")))
    };
    let zero = "{ law = \"program\", elf = \"tests/programs/rate_zero.elf\" }";
    // A packet takes nine seconds: it gets done, and has said early why it takes so long.
    let (early, results) = crawls("", zero);
    let [(at, warning)] = &early[..] else { panic!("{early:?}") };
    assert!(
        *at >= Instant::ZERO + Span::from_secs(1) && *at < Instant::ZERO + Span::from_millis(1_010),
        "{at}"
    );
    assert!(warning.contains("lets 0.0 send at 1 kb/s") && warning.contains("a `stop`"), "{warning}");
    assert_eq!(results.warnings, [warning.to_string()]);
    assert!(results.simulated > Instant::ZERO + Span::from_secs(60), "{}", results.simulated);
    // With an end that comes earlier, at the end.
    let (early, results) = crawls("stop = \"10ms\"", zero);
    assert!(early.is_empty() && results.warnings.len() == 1, "{:?}", results.warnings);
    assert!(results.warnings[0].starts_with("2 of 2 flows under way at 10ms may send next to nothing"));
    for law in ["{ law = \"none\" }", "{ law = \"swift\" }", "{ law = \"dcqcn\" }"] {
        assert!(crawls("stop = \"10us\"", law).1.warnings.is_empty(), "{law}");
    }
}

#[test]
fn a_run_that_makes_no_time_can_be_stopped() {
    let text = format!(
        "{PAIR}[[traffic]]\nkind = \"poisson\"\nsizes = \"1B\"\nload = 1\nuntil = \"100us\"\n\
         [measure]\nsample = \"0s\"\n"
    );
    let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
    let mut asked = 0;
    let run = SimulatedWorld.run(&scenario, 1, None, &mut |progress| {
        assert!(progress.now < Instant::ZERO + Span::from_micros(100));
        asked += 1;
        if asked == 3 { Go::Stop } else { Go::On }
    });
    assert_eq!(run.expect_err("it was stopped"), RunError::Interrupted);
}

#[test]
fn a_loss_without_a_timeout_is_a_stall() {
    let text = r#"
        [topology]
        kind = "star"
        hosts = 2
        rate = "10Gb/s"
        delay = "1us"
        [transport]
        timeout = "0s"
        [[traffic]]
        kind = "flows"
        flows = [{ name = "lost", src = "h0", dst = "h1", op = "write", size = "1KB" }]
        [[faults.on]]
        link = "h0>s0"
        loss = 1
        until = "1us"
        "#;
    match run(text) {
        RunError::Stalled { flows, left, why, .. } => {
            assert_eq!((flows, left, why), (vec!["lost".to_owned()], 1, Stall::NoTimeout));
        }
        other => panic!("{other}"),
    }
}
