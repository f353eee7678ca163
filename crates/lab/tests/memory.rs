//! What a simulated host and a live flow take of memory, by the allocator's account.
#![allow(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;
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

/// Octets of heap in use after a millisecond of the scenario `text`.
fn heap(text: &str) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    let scenario = Scenario::parse(text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut live = 0;
    let run = SimulatedWorld.run(&scenario, 1, None, &mut |_| {
        live = LIVE.load(Ordering::Relaxed);
        Go::Stop
    });
    drop(run);
    live - before
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
    let (small, large) = (heap(&network(1024)), heap(&network(4096)));
    let slope = (large - small) / (4096 - 1024);
    println!("{small} octets with 1024 hosts, {large} with 4096: {slope} a host, switches included");
    assert!(slope <= 4_096, "{slope} octets a host");
}

#[test]
fn a_live_flow_takes_seven_hundred_octets_at_most_before_congestion() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Every flow's first packet is lost until later, so all are alive and nothing is in flight.
    let flows = |qps: u32| {
        format!(
            r#"
            stop = "2ms"
            measure.sample = "0s"
            [topology]
            kind = "star"
            hosts = 17
            rate = "100Gb/s"
            delay = "1us"
            [transport]
            timeout = "0s"
            [faults]
            loss = 1
            [[traffic]]
            kind = "closed-loop"
            pairs = [["h0", "h1"], ["h2", "h3"], ["h4", "h5"], ["h6", "h7"], ["h8", "h9"], ["h10", "h11"]]
            qps = {qps}
            op = "write"
            message = "100B"
            depth = 1
            count = 1
            "#
        )
    };
    let (few, many) = (1_000, 5_000);
    let slope = (heap(&flows(many)) - heap(&flows(few))) / (6 * (many - few) as usize);
    println!(
        "{slope} octets a live flow, both ends and its record included, before its law hears of congestion"
    );
    // More than half of it are the records of the two queue pairs.
    assert!(slope <= 700, "{slope} octets a flow");
}
