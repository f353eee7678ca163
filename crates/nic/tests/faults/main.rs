//! Exactly once, in order, or an error completion: over random topologies, faults, loads and NICs.
//!
//! A failure prints the line that replays it. `PROPTEST_CASES` asks for more cases, `PROPTEST_RNG_SEED` for others. Besides
//! the cases that are the same each time there are fresh ones in each run, whose seed is printed: `ROCI_FAULTS_SEED` draws
//! them again, `ROCI_FAULTS_CASES` more of them.
//!
//! The simulated world moves no octets. That each octet of a message is placed, and none over another, is checked where
//! there are some: in the engine's tests (`wander`), on a wire that drops, doubles, delays and trims as well.
#![expect(clippy::cast_possible_truncation, reason = "cases are small: few hosts, ports and requests")]

mod case;
mod check;
mod load;
mod met;
mod network;
mod run;

use case::{Case, any_case};
use met::{Met, met};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use run::{NICS, Nic, PRESETS, run};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;

/// As many cases as a few seconds allow, the same ones each time; the environment asks for more or others.
fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    let asks = |name: &str| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if asks("PROPTEST_CASES") { given.cases } else { 128 },
        rng_seed: if asks("PROPTEST_RNG_SEED") { given.rng_seed } else { RngSeed::Fixed(1) },
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..given
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_message_completes_once_in_order_or_in_error(case in any_case()) {
        run(&case, NICS[0]);
        run(&case, NICS[1]);
    }

    #[test]
    fn a_deferred_law_and_a_slow_host_change_nothing_of_that(case in any_case()) {
        let case = Case { late_receives: 1, ..case };
        run(&case, NICS[2]);
        run(&case, NICS[3]);
        run(&case, NICS[4]);
    }

    #[test]
    fn nor_does_a_nic_that_is_made_of_parts(case in any_case(), which in 0..PRESETS.len()) {
        run(&case, PRESETS[which]);
    }
}

/// Cases that nobody has seen yet.
#[test]
fn fresh_cases_hold_as_well() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("ROCI_FAULTS_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let cases = number("ROCI_FAULTS_CASES").map_or(256, |cases| u32::try_from(cases).expect("fewer cases"));
    // Not by a macro, whose output would be kept until the test fails.
    let _ = writeln!(std::io::stderr(), "fresh cases of faults: ROCI_FAULTS_SEED={seed}");
    let config = ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), ..config() };
    let nics = (0..NICS.len(), 0..PRESETS.len());
    let outcome = TestRunner::new(config).run(&(any_case(), nics), |(case, (which, preset))| {
        run(&case, NICS[which]);
        run(&case, PRESETS[preset]);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("ROCI_FAULTS_SEED={seed}: {error}"));
}

/// All NICs.
fn nics() -> impl Iterator<Item = Nic> {
    NICS.into_iter().chain(PRESETS)
}

/// All but the packets that stand in the cycle, which is named: the flows behind it fail in their time.
#[test]
fn a_ring_of_switches_may_end_in_a_deadlock_and_in_nothing_worse() {
    let mut runner = TestRunner::new(config());
    let count = config().cases.div_ceil(4);
    let mut deadlocks = 0;
    for number in 0..count as usize {
        let case = any_case().new_tree(&mut runner).expect("nothing is filtered").current();
        let case = Case {
            shape: network::RING,
            hosts: 10,
            pairs: 10,
            incast: 0,
            messages: 16,
            depth: 6,
            size: 6 + case.size % 2,
            operations: 1 + case.operations % 3,
            law: 0,
            pfc: 1,
            small: 1,
            rate: case.rate % 2,
            ..case
        };
        deadlocks += met(&run(&case, NICS[number % NICS.len()]))["deadlocks"];
    }
    assert!(0 < deadlocks && deadlocks < count.into(), "{deadlocks} deadlocks in {count} rings");
}

proptest! {
    #![proptest_config(config())]

    /// Nor does it take for a loss what is none. IRN may: its short timeout runs out in a long queue.
    #[test]
    fn without_faults_go_back_n_loses_nothing_and_sends_nothing_twice(case in any_case()) {
        let case = Case {
            // Homa's priorities may drop, and packets of one message overtake each other.
            law: if case.law == 2 { 0 } else { case.law },
            faults: Vec::new(), recovery: 0, pfc: 1, timeout: 0, no_retries: 0, rnr_limited: 0, spray: 0, ..case
        };
        for nic in nics() {
            let met = met(&run(&case, nic));
            if met["deadlocks"] > 0 {
                continue;
            }
            for trouble in ["failures", "dropped by links and switches", "overflowed", "timeouts"] {
                prop_assert_eq!(met[trouble], 0, "{} on the {} NIC", trouble, nic.name);
            }
            // A receiver that is not ready refuses what follows as well.
            let repeated = met["naks"] + met["retransmitted"];
            prop_assert!(repeated == 0 || met["rnr"] > 0, "{} NIC: {:?}", nic.name, met);
        }
    }
}

/// The properties above would hold as well where nothing ever happens.
#[test]
fn the_cases_meet_every_kind_of_trouble() {
    let mut runner = TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(2), ..config() });
    let mut all = Met::new();
    let all_nics: Vec<Nic> = nics().collect();
    for number in 0..200 {
        let tree = any_case().new_tree(&mut runner).expect("nothing is filtered");
        for (name, count) in met(&run(&tree.current(), all_nics[number % all_nics.len()])) {
            *all.entry(name).or_default() += count;
        }
    }
    // Deadlocks are rare but in rings, of which there is a test.
    assert!(all.iter().all(|(name, &count)| count > 0 || *name == "deadlocks"), "{all:?}");
    assert!(all["successes"] > 4 * all["failures"], "{all:?}");
}

/// Of ten messages that want a receive request the slow host has none for about one.
#[test]
fn a_slow_host_is_not_ready_about_one_time_in_ten() {
    let mut runner = TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(2), ..config() });
    let (mut refused, mut received) = (0, 0);
    for _ in 0..100 {
        let case = any_case().new_tree(&mut runner).expect("nothing is filtered").current();
        // Queue pairs that share a queue find it empty more often.
        let met = met(&run(&Case { late_receives: 1, shared: 0, ..case }, NICS[3]));
        refused += met["rnr"];
        received += met["received"];
    }
    assert!((received / 20..=received / 5).contains(&refused), "{refused} refused, {received} received");
}

/// Cases that failed once, and the one that the environment names.
#[test]
fn replay() {
    let given = std::env::var("ROCI_CASE").ok();
    for line in given.as_deref().into_iter().chain(FOUND.iter().copied()) {
        let case: Case = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        for nic in nics() {
            run(&case, nic);
        }
    }
}

/// Cases that failed once, as they were printed.
const FOUND: &[&str] = &[
    // A request posted in the error state was flushed before those that waited for the placement of READs.
    "shape=5 hosts=6 pairs=4 messages=10 depth=4 size=4 operations=48 both=1 reads=2 no_retries=7 fences=1 shared=1 \
     datagrams=4 fault=0:1:0:2 fault=2:17:24:0 seed=7617247316765909377",
    // READs asked for again took the places of those that followed.
    "shape=3 incast=1 messages=5 depth=4 operations=112 both=1 reads=3 fault=4:27:15:1 seed=14757134298032560006",
    // Receive requests taken for messages that came early were flushed last.
    "pairs=4 messages=9 depth=2 size=6 operations=93 both=1 mtu=1 recovery=1 rate=1 slow_receivers=1 ack_every=2 reads=2 \
     no_retries=5 silent=1 fences=1 fault=0:42:13:0 fault=1:22:20:1 seed=13183330768937172858",
    // The acknowledgement behind a READ's last response stayed in the NIC.
    "messages=4 depth=4 size=4 pfc=1 operations=91 silent=1 fences=1 seed=2957195547615475276",
    // A granted READ response was overtaken by the acknowledgement behind it.
    "messages=6 depth=4 pfc=1 operations=81 silent=1 fences=1 seed=17426121067018774705",
    // A law's timer that went off while the law was out was armed again for the same instant, for ever.
    "shape=2 hosts=4 pairs=3 incast=1 messages=11 depth=3 size=7 operations=93 both=1 mtu=2 recovery=6 law=1 pfc=1 small=1 \
     rate=1 slow_receivers=1 ring=5 reads=4 timeout=2 no_retries=5 few_receives=5 late_receives=1 fault=2:49:25:1 \
     fault=5:30:0:0 fault=0:48:20:0 fault=6:47:31:0 seed=3131110596583623831",
    // A datagram whose payload a switch had cut off was taken for an empty one.
    "hosts=3 pairs=2 incast=1 messages=9 depth=2 size=5 both=1 mtu=1 recovery=6 fences=1 datagrams=4 fault=0:1:0:0 \
     fault=3:44:10:2 seed=8601893885725322518",
    // Of the READs before one that was flushed the last had succeeded, and as it was asked, without a word.
    "shape=4 hosts=4 pairs=3 incast=1 messages=12 depth=6 size=7 operations=119 mtu=3 recovery=3 small=1 rate=1 ack_every=2 \
     reads=2 few_receives=5 rnr_limited=1 silent=1 fences=1 shared=1 datagrams=11 fault=1:88:20:2 fault=2:79:14:0 \
     fault=0:6:13:2 seed=1497144374624286338",
    // The half of a SEND whose sender had given up kept the one request of a shared queue, and nobody took it down.
    "shape=3 hosts=5 pairs=6 messages=13 depth=5 size=7 operations=13 mtu=2 recovery=1 law=2 pfc=1 small=1 rate=1 spray=1 \
     slow_receivers=1 ring=3 reads=3 timeout=3 few_receives=5 shared=1 datagrams=11 seed=5028557641672270863",
    // A message came whole behind a gap, and its sender knew of each packet, when the receiver failed before its slow path
    // had said so: its receive request was flushed.
    "shape=3 hosts=7 pairs=3 messages=14 depth=5 size=2 operations=69 both=1 mtu=2 recovery=2 rate=1 slow_receivers=1 reads=3 \
     few_receives=5 rnr_limited=1 silent=1 shared=1 seed=8377526797344510858",
    // The responder's half failed while the success of a READ, the only request, waited for its placement: the application
    // heard of the failure first, from its receive requests.
    "shape=2 hosts=7 pairs=5 incast=1 messages=3 size=3 operations=113 both=1 recovery=3 rate=1 timeout=3 no_retries=6 \
     fences=1 fault=0:1:0:0 fault=0:1:0:2 fault=5:99:11:2 seed=10972453756971557832",
];
