//! The timers against a sorted map.

use super::*;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;
use proptest::prelude::*;
use roci_units::Span;

fn id(qp: u32) -> TimerId {
    TimerId { qp, kind: 1 }
}

#[test]
fn timers_of_one_instant_fire_in_the_order_armed() {
    let mut timers = Timers::new(2);
    let at = Instant::from_ps(1_000_001);
    for qp in [3, 1, 2] {
        timers.arm(id(qp), at);
    }
    timers.arm(id(3), at); // armed again: now it is the last
    assert_eq!(timers.next(), at);
    assert_eq!(timers.expire(Instant::from_ps(1_000_000)), None);
    let fired: Vec<u32> = core::iter::from_fn(|| timers.expire(at)).map(|id| id.qp).collect();
    assert_eq!(fired, [1, 2, 3]);
    assert_eq!(timers.next(), Instant::NEVER);
}

#[test]
fn a_few_timers_cost_no_memory_of_their_own() {
    let mut timers = Timers::new(2);
    for qp in 0..4 {
        timers.arm(id(qp), Instant::from_ps(u64::from(qp)));
    }
    assert!(timers.many.is_none());
    assert!(size_of::<Timers>() <= 128, "{}", size_of::<Timers>());
}

#[test]
fn the_last_instant_before_never_is_held() {
    let mut timers = Timers::new(2);
    let last = Instant::from_ps(u64::MAX - 1);
    for qp in 0..200 {
        timers.arm(id(qp), last);
    }
    timers.arm(id(0), Instant::NEVER);
    assert_eq!(timers.next(), last);
    assert_eq!(core::iter::from_fn(|| timers.expire(last)).count(), 199);
}

/// Thousands of idle retransmission timers and a few quick ones that fire and are armed again: the case in which
/// the cursor runs ahead and has to come back.
#[test]
fn quick_timers_among_many_slow_ones_stay_in_order_and_cheap() {
    let mut timers = Timers::new(2);
    for qp in 0..5_000 {
        timers.arm(TimerId { qp, kind: 0 }, Instant::from_ps(500_000_000 + u64::from(qp) * 12_345));
    }
    let mut now = Instant::ZERO;
    for qp in 0..300 {
        timers.arm(id(qp), now + Span::from_ps(100_000 * u64::from(qp + 1)));
    }
    let mut crowd = 0;
    for _ in 0..100_000 {
        now = timers.next();
        let fired = timers.expire(now).unwrap();
        crowd += timers.many.as_ref().unwrap().crowd();
        timers.arm(fired, now + Span::from_nanos(if fired.kind == 0 { 500_000 } else { 30_000 }));
    }
    assert!(crowd / 100_000 < 2 * many::CROWD, "the heap holds {} on average", crowd / 100_000);
}

#[derive(Clone, Debug)]
enum Step {
    /// From a queue pair on, so many, from an instant on, so far apart.
    Arm(u32, u32, u64, u64),
    Cancel(u32),
    Pass(u64),
}

/// Steps of few queue pairs at first, so that their timers are few, and then of many.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let few = prop::collection::vec(step(1..6, 1), 0..60);
    (few, prop::collection::vec(step(0..300, 100), 0..400)).prop_map(|(few, many)| [few, many].concat())
}

fn step(qps: Range<u32>, crowd: u32) -> impl Strategy<Value = Step> {
    let ahead = || (0u32..45).prop_flat_map(|bits| 0u64..1 << bits);
    prop_oneof![
        6 => (qps.clone(), ahead()).prop_map(|(qp, ahead)| Step::Arm(qp, 1, ahead, 0)),
        // A crowd, which drives the cursor forward when it is far and back when it is near.
        1 => (qps.clone(), ahead(), ahead())
            .prop_map(move |(qp, ahead, apart)| Step::Arm(qp, crowd, ahead, apart / 64)),
        1 => qps.prop_map(Step::Cancel),
        2 => ahead().prop_map(|ahead| Step::Pass(ahead / 16)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn they_behave_as_a_sorted_map(steps in steps()) {
        let mut timers = Timers::new(3);
        let mut due = BTreeSet::new();
        let mut key_of = BTreeMap::new();
        let (mut now, mut serial) = (Instant::ZERO, 0u64);
        for step in steps {
            match step {
                Step::Arm(first, count, ahead, apart) => {
                    for n in 0..count {
                        serial += 1;
                        let (qp, at) = (first + n, now + Span::from_ps(ahead + u64::from(n) * apart));
                        timers.arm(id(qp), at);
                        if let Some(key) = key_of.insert(qp, (at, serial, qp)) {
                            due.remove(&key);
                        }
                        due.insert((at, serial, qp));
                    }
                }
                Step::Cancel(qp) => {
                    timers.cancel(id(qp));
                    if let Some(key) = key_of.remove(&qp) {
                        due.remove(&key);
                    }
                }
                Step::Pass(ahead) => {
                    now += Span::from_ps(ahead);
                    while let Some(fired) = timers.expire(now) {
                        let key = due.pop_first().unwrap();
                        prop_assert!(key.0 <= now && key.2 == fired.qp && fired.kind == 1);
                        key_of.remove(&fired.qp);
                    }
                    prop_assert!(due.first().is_none_or(|key| key.0 > now));
                }
            }
            prop_assert_eq!(timers.next(), due.first().map_or(Instant::NEVER, |key| key.0));
            for qp in [0, 3, 7, 299] {
                prop_assert_eq!(timers.armed(id(qp)), key_of.get(&qp).map_or(Instant::NEVER, |key| key.0));
            }
        }
    }
}
