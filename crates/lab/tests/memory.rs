//! What a simulated host and a live flow take of memory, by the allocator's account.
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
use roci_units::{Instant, Span};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The tests of this file run one at a time, since they share the count.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, which is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Octets of heap in use some milliseconds into the scenario `text`, and what came of the run.
fn heap(text: &str, ms: u64) -> (usize, Results) {
    let before = LIVE.load(Ordering::Relaxed);
    let scenario = Scenario::parse(text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut live = None;
    let results = SimulatedWorld.run(&scenario, 1, None, &mut |progress| {
        if progress.now >= Instant::ZERO + Span::from_millis(ms) {
            live.get_or_insert_with(|| LIVE.load(Ordering::Relaxed) - before);
        }
        Go::On
    });
    (live.expect("the run lasts longer"), results.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_host_takes_four_kilobytes_at_most() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let network = |hosts: u32| {
        format!(
            r#"
            stop = "2ms"
            measure.sample = "0s"
            [topology]
            kind = "fat-tree"
            hosts = {hosts}
            rate = "100Gb/s"
            delay = "1us"
            [[traffic]]
            kind = "flows"
            flows = [{{ src = "h0", dst = "h1", op = "write", size = "1KB", start = "1500us" }}]
            "#
        )
    };
    let (small, large) = (heap(&network(1024), 1).0, heap(&network(4096), 1).0);
    let slope = (large - small) / (4096 - 1024);
    println!("{small} octets with 1024 hosts, {large} with 4096: {slope} a host, switches included");
    assert!(slope <= 4_096, "{slope} octets a host");
}

/// Flows of six hosts to three others, so many from each, with a message of a packet after the other.
fn flows(qps: usize, more: &str) -> String {
    format!(
        r#"
        stop = "8ms"
        measure.sample = "0s"
        [topology]
        kind = "star"
        hosts = 9
        rate = "100Gb/s"
        delay = "100ns"
        [transport]
        timeout = "0s"
        {more}
        [[traffic]]
        kind = "closed-loop"
        pairs = [["h0", "h6"], ["h1", "h6"], ["h2", "h7"], ["h3", "h7"], ["h4", "h8"], ["h5", "h8"]]
        qps = {qps}
        op = "write"
        message = "100B"
        depth = 1
        "#
    )
}

/// Octets of heap that each further flow takes in flows of `more`, and what came of those of the larger run.
fn octets_a_flow(more: &str, ms: u64) -> (usize, Results) {
    // Powers of two, so that no table stands half empty.
    let (few, many) = (512, 4_096);
    let ((small, _), (large, results)) = (heap(&flows(few, more), ms), heap(&flows(many, more), ms));
    assert_eq!(results.flows.len(), 6 * many);
    ((large - small) / (6 * (many - few)), results)
}

#[test]
fn a_live_flow_takes_six_hundred_octets_at_most_before_congestion() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Every packet is lost, so all flows are alive and nothing is in flight.
    let (each, results) = octets_a_flow("[faults]\nloss = 1", 7);
    assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::Running && flow.cnps == 0));
    println!(
        "{each} octets a live flow, both ends and its record included, before its law hears of congestion"
    );
    // Most of it are the records of the two queue pairs.
    assert!(each <= 600, "{each} octets a flow");
}

#[test]
fn a_live_flow_takes_seven_hundred_octets_at_most_under_congestion() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Every packet is marked, and at last all are lost, so that nothing is in flight. A small buffer keeps few packets on
    // their way before that: their room is not the flows'.
    let lost: String = (0..9)
        .map(|host| format!("[[faults.on]]\nlink = \"h{host}>s0\"\nfrom = \"5ms\"\nloss = 1\n"))
        .collect();
    let marks = r#"control = { law = "dcqcn" }
        [switch]
        buffer = "400KB"
        ecn = { kmin = "0B", kmax = "0B", pmax = 1 }
        "#;
    let (each, results) = octets_a_flow(&format!("{marks}{lost}"), 7);
    let heard = results.flows.iter().filter(|flow| flow.cnps > 0).count();
    println!("{each} octets a live flow under congestion; {heard} flows of {} heard", results.flows.len());
    assert!(heard * 100 >= results.flows.len() * 99, "{heard} flows heard of it");
    assert!(each <= 700, "{each} octets a flow");
}
