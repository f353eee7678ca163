//! Two classes of traffic on one network, and what of each is told.

use super::{peaks, run};
use roci_lab::output::write_all;
use roci_lab::results::series::Metric;
use roci_lab::results::{PriorityResult, Results};

/// An incast of a lossless class that nothing slows down but PAUSE, beside a lossy one that is marked where `marks` says so.
const CLASSES: &str = r#"
    name = "classes"
    stop = "5ms"
    [topology]
    kind = "star"
    hosts = 7
    rate = "10Gb/s"
    delay = "1us"
    [switch]
    buffer = "1MB"
    ets = { 3 = 50, 0 = 50 }
    [transport]
    control = "none"
    timeout = "20ms"
    [measure]
    sample = "20us"
    [[traffic]]
    kind = "flows"
    flows = [
        { src = "h1", dst = "h0", size = "1MB" }, { src = "h2", dst = "h0", size = "1MB" },
        { src = "h3", dst = "h0", size = "1MB" }, { src = "h4", dst = "h0", size = "1MB" },
    ]
    [[traffic]]
    kind = "flows"
    priority = 0
    flows = [{ src = "h5", dst = "h6", size = "1MB" }]
    "#;

/// The sums of each priority.
fn sums(results: &Results) -> Vec<PriorityResult> {
    results.priority_sums().into_iter().map(|(sum, _)| sum).collect()
}

#[test]
fn the_class_that_is_marked_and_paused_is_told_from_the_one_that_is_not() {
    let results = run(CLASSES, &[]);
    let sums = sums(&results);
    assert_eq!(sums.iter().map(|sum| sum.priority).collect::<Vec<_>>(), [0, 3], "nobody sent CNPs");
    let (quiet, busy) = (sums[0], sums[1]);
    assert!(busy.ecn_marks > 100 && busy.pause_received > 0 && busy.paused.as_secs_f64() > 1e-4, "{busy:?}");
    assert_eq!((quiet.ecn_marks, quiet.pause_received, quiet.drops), (0, 0, 0), "{quiet:?}");
    assert!(quiet.packets > 2 * 900, "a frame of 1024 octets at each of two links: {quiet:?}");

    // The parts of links make up the whole, and so do those of the series.
    for link in &results.links {
        let sum = |count: fn(&PriorityResult) -> u64| link.priorities.iter().map(count).sum::<u64>();
        assert_eq!(sum(|of| of.tx_bytes), link.tx_bytes, "{}", link.name);
        assert_eq!(sum(|of| of.ecn_marks), link.ecn_marks, "{}", link.name);
        assert_eq!(sum(|of| of.pause_received), link.pause_received, "{}", link.name);
    }
    let paused = peaks(&results, Metric::Paused);
    assert!(paused.contains_key("h1>s0:3") && paused.keys().all(|name| name.ends_with(":3")), "{paused:?}");
    let marks = peaks(&results, Metric::Marks);
    assert_eq!(marks.keys().collect::<Vec<_>>(), ["s0>h0:3"]);
    assert!((marks["s0>h0:3"] - busy.ecn_marks as f64).abs() < 0.5, "{marks:?}");
}

#[test]
fn marks_and_pauses_stand_with_the_queue_of_their_priority_whichever_it_is() {
    // As above, with the classes exchanged: priority 0 is the lossless one, and is paused.
    let changed = [
        ("switch.classes.pause", "[0]"),
        ("traffic.0.priority", "0"),
        ("traffic.1.priority", "3"),
        ("switch.classes.ack", "6"),
    ];
    let results = run(CLASSES, &changed);
    let sums = sums(&results);
    assert_eq!(sums.iter().map(|sum| sum.priority).collect::<Vec<_>>(), [0, 3, 6]);
    assert!(sums[0].pause_received > 0 && sums[1].pause_received == 0 && sums[2].ecn_marks == 0);
    for metric in [Metric::Marks, Metric::Pauses, Metric::Paused] {
        let peaks = peaks(&results, metric);
        assert!(!peaks.is_empty() && peaks.keys().all(|name| name.ends_with(":0")), "{peaks:?}");
    }
}

#[test]
fn a_run_of_one_priority_has_no_file_of_priorities() {
    let folder = std::env::temp_dir().join(format!("roci-priorities-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new folder");
    let written = [&[][..], &[("traffic.1.priority", "3")]].map(|changed| {
        let mut results = run(CLASSES, changed);
        write_all(&folder, &mut results, &|| 0.0).expect("it can be written");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let told = (read("priorities.csv").lines().count(), read("summary.json").contains("\"priorities\""));
        std::fs::remove_file(folder.join("priorities.csv")).ok();
        told
    });
    std::fs::remove_dir_all(&folder).expect("it was written");
    // Seven hosts with a link each, both ways, and two priorities, below the heading.
    assert_eq!(written, [(1 + 7 * 2 * 2, true), (0, false)]);
}

#[test]
fn what_faults_lose_is_told_of_the_priority_that_lost_it() {
    let from_h5 = "[[faults.on]]\nlink = \"h5-s0\"\nloss = 0.05\ncorrupt = 0.05\n";
    let results = run(&format!("{CLASSES}\n{from_h5}"), &[]);
    let sums = sums(&results);
    assert!(sums[0].lost > 10 && sums[0].corrupted > 10, "{:?}", sums[0]);
    assert_eq!(
        (sums[1].lost, sums[1].corrupted),
        (0, 0),
        "acknowledgements go on their data's: {:?}",
        sums[1]
    );
    for link in &results.links {
        let sum = |count: fn(&PriorityResult) -> u64| link.priorities.iter().map(count).sum::<u64>();
        assert_eq!((sum(|of| of.lost), sum(|of| of.corrupted)), (link.lost, link.corrupted), "{}", link.name);
    }
}

/// A receive buffer that fills pauses all lossless priorities, also those on which nothing comes.
#[test]
fn a_priority_that_is_paused_and_sends_nothing_is_told_of_so_that_parts_make_up_the_whole() {
    let text = r#"
        topology = { kind = "star", hosts = 2, rate = "10Gb/s", delay = "1us" }
        nic = { rx_rate = "1Gb/s", rx_fifo = "64KB" }
        transport.control = "none"
        transport.timeout = "1ms"
        measure.priorities = true
        [[traffic]]
        kind = "flows"
        priority = 5
        flows = [{ src = "h0", dst = "h1", size = "200KB" }]
    "#;
    let results = run(text, &[]);
    let link = results.links.iter().find(|link| link.name == "s0>h1").expect("there is one");
    assert!(link.pause_received > 0, "{link:?}");
    assert_eq!(link.priorities.iter().map(|of| of.pause_received).sum::<u64>(), link.pause_received);
    let idle = link.priorities.iter().find(|of| of.priority == 3).expect("it was paused");
    assert_eq!((idle.packets, idle.paused), (0, link.paused));
}
