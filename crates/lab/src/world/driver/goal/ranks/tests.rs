//! The ranks over a network that takes the same time for each message, and over such as hold up less than another.

use super::super::replay::{Shared, Trip, play};
use super::*;
use crate::run::Go;
use crate::traffic::goal::{How, Schedule, tests_support::written};
use crate::traffic::spec::Common;
use proptest::prelude::*;
use roci_units::Bytes;
use std::sync::Arc;

const fn ns(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

fn at(nanos: u64) -> Instant {
    Instant::ZERO + ns(nanos)
}

fn spec(text: &str) -> Goal {
    let schedule = Schedule::read(text.as_bytes()).expect("a schedule");
    let hosts = (0u16..).map(HostId).take(schedule.ranks.len()).collect();
    let mut goal =
        Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("a host for each rank");
    goal.set_how(&How::default()).expect("its collectives can be done");
    goal
}

/// As [`play`], which nobody ends.
fn play_on(ranks: &mut Ranks, begins: &[Instant], shared: Shared, trip: &mut dyn FnMut(u32, u64) -> Trip) {
    let begins = (0..).zip(begins.iter().copied());
    assert_eq!(play(ranks, begins, shared, trip, &mut |_| Go::On), Go::On);
}

/// Runs a schedule to its end, or as far as it goes; messages take `latency`, and so do acknowledgements.
fn run(spec: &Goal, latency: Span) -> Ranks {
    let trip = Trip { time: latency, acknowledged: latency * 2, ..Trip::default() };
    let mut ranks = Ranks::new(spec, &spec.hosts);
    play_on(&mut ranks, &vec![spec.start; spec.hosts.len()], Shared::Nothing, &mut |_, _| trip);
    ranks
}

/// When an operation of a rank was done.
fn done(ranks: &Ranks, rank: usize, operation: usize) -> Instant {
    ranks.states[rank].done[operation]
}

fn time(ranks: &Ranks) -> Span {
    ranks.time().expect("all is done")
}

/// A barrier by dissemination among sixteen: in round r each sends to the one 2^r behind it and waits for the one 2^r before it.
fn dissemination() -> String {
    let rank = |rank: u32| {
        let round = |r: u32| {
            let (to, from) = ((rank + (1 << r)) % 16, (rank + 16 - (1 << r)) % 16);
            let waits = if r == 0 { String::new() } else { format!("s{r} requires r{}\n", r - 1) };
            format!("s{r}: send 1b to {to} tag 0\nr{r}: recv 1b from {from} tag 0\n{waits}")
        };
        format!("rank {rank} {{\n{}}}\n", (0..4).map(round).collect::<String>())
    };
    format!("num_ranks 16\n{}", (0..16).map(rank).collect::<String>())
}

#[test]
fn a_barrier_takes_the_time_that_loggopsim_gives_for_it() {
    // Its README: 22000 ns with the parameters that it has unless told others, o = 1500 and L = 2500.
    let mut spec = spec(&dissemination());
    spec.overhead = ns(1500);
    let ranks = run(&spec, ns(2500));
    assert_eq!(time(&ranks), ns(22_000));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.overhead, path.messages), (Span::ZERO, ns(12_000), ns(10_000)));
    assert_eq!(path.count(), 4);
}

#[test]
fn a_cpu_does_one_thing_after_the_other_and_two_do_two_at_once() {
    let one = spec("num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nc: calc 5\nc requires a\n}\n");
    let ranks = run(&one, Span::ZERO);
    // What could begin first is first.
    assert_eq!([0, 1, 2].map(|it| done(&ranks, 0, it)), [at(10), at(30), at(35)]);
    assert_eq!(ranks.critical_path().unwrap().computed, ns(35));
    let two = spec("num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20 cpu 1\nc: calc 5\nc requires a\n}\n");
    let ranks = run(&two, Span::ZERO);
    assert_eq!([0, 1, 2].map(|it| done(&ranks, 0, it)), [at(10), at(20), at(15)]);
    assert_eq!(ranks.results()[0].computed, ns(35));
}

#[test]
fn irequires_has_an_operation_begin_with_another() {
    let spec = spec(
        "num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nc: calc 5 cpu 1\nb requires a\nc irequires b\n}\n",
    );
    let ranks = run(&spec, Span::ZERO);
    assert_eq!([0, 1, 2].map(|it| done(&ranks, 0, it)), [at(10), at(30), at(15)]);
}

#[test]
fn a_message_that_nobody_waits_for_yet_is_there_when_it_is_waited_for() {
    let spec = spec(
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\na: calc 500\nr: recv 8b from 0 tag 3\nr requires a\n}\n",
    );
    let ranks = run(&spec, ns(100));
    assert_eq!(done(&ranks, 1, 1), at(500));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.messages), (ns(500), Span::ZERO), "the message was not waited for");
}

#[test]
fn a_receive_takes_the_first_message_that_it_may() {
    // The one of any rank stands first, so it takes what comes first, and the exact one what comes next.
    let spec = spec(
        "num_ranks 3\nrank 0 {\nx: recv 8b from -1 tag 5\ny: recv 8b from 1 tag -1\nz: recv 8b from 2 tag 6\n}\n\
         rank 1 {\na: calc 10\ns: send 8b to 0 tag 5\ns requires a\nt: send 8b to 0 tag 9\nt requires s\n}\n\
         rank 2 {\nsend 8b to 0 tag 6\n}\n",
    );
    let ranks = run(&spec, ns(100));
    assert_eq!(ranks.undone, 0);
    let by = [0, 1, 2].map(|it| ranks.states[0].by[it]);
    assert_eq!(by, [By::Message(1, 1), By::Message(1, 2), By::Message(2, 0)]);
    // Of several that have come, the first.
    let late = spec_with_late_receiver();
    let ranks = run(&late, ns(100));
    assert_eq!((ranks.undone, done(&ranks, 0, 1)), (0, at(1000)));
}

fn spec_with_late_receiver() -> Goal {
    spec(
        "num_ranks 3\nrank 0 {\nc: calc 1000\nx: recv 8b from -1 tag -1\ny: recv 8b from 2 tag 6\nx requires c\ny requires x\n}\n\
         rank 1 {\nsend 8b to 0 tag 5\n}\nrank 2 {\nc: calc 50\ns: send 8b to 0 tag 6\ns requires c\n}\n",
    )
}

#[test]
fn a_message_is_taken_once_whoever_asks_for_it() {
    let spec = spec(
        "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\na: calc 10\nt: send 8b to 1 tag 2\nt requires a\n}\n\
         rank 1 {\nc: calc 900\nx: recv 8b from -1 tag 1\ny: recv 8b from 0 tag -1\nz: recv 8b from -1 tag -1\nx requires c\ny requires x\nz requires y\n}\n",
    );
    let ranks = run(&spec, ns(100));
    // The third finds none left.
    assert_eq!((ranks.undone, ranks.waiting().len(), ranks.untaken()), (1, 1, 0));
    assert_eq!([1, 2].map(|it| done(&ranks, 1, it)), [at(900); 2]);
}

#[test]
fn a_long_send_is_done_when_it_has_been_acknowledged_and_an_eager_one_at_once() {
    let text = "num_ranks 2\nrank 0 {\ns: send 1000b to 1\nc: calc 10\nc requires s\n}\nrank 1 {\nrecv 1000b from 0\n}\n";
    let mut spec = spec(text);
    assert_eq!(done(&run(&spec, ns(100)), 0, 1), at(10));
    spec.eager = Bytes(999);
    let ranks = run(&spec, ns(100));
    assert_eq!(done(&ranks, 0, 1), at(210));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.messages, path.count()), (ns(10), ns(200), 1));
    let kinds: Vec<LinkKind> = path.links.iter().map(|link| link.kind).collect();
    assert_eq!(kinds, [LinkKind::Acknowledged, LinkKind::Calculation]);
}

#[test]
fn a_cpu_is_longer_busy_with_a_longer_message() {
    let text = "num_ranks 2\nrank 0 {\nsend 1001b to 1\n}\nrank 1 {\nrecv 1001b from 0\n}\n";
    let mut spec = spec(text);
    (spec.overhead, spec.overhead_per_octet) = (ns(50), Span::from_ps(20));
    // o + (s - 1) O + L + o + (s - 1) O of LogGOPS: 50 + 20 + 100 + 50 + 20.
    let ranks = run(&spec, ns(100));
    assert_eq!(time(&ranks), ns(240));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.overhead, path.messages), (ns(140), ns(100)));
    // An empty message is no longer than one of an octet.
    assert_eq!([0, 1].map(|octets| spec.overhead_of(octets)), [ns(50); 2]);
}

#[test]
fn what_comes_counts_for_a_cpu_and_not_what_a_receive_says() {
    // One comes before it is waited for, and one is waited for.
    let mut spec = spec(
        "num_ranks 2\nrank 0 {\nsend 101b to 1 tag 1\nc: calc 1000\ns: send 301b to 1 tag 2\ns requires c\n}\n\
         rank 1 {\nc: calc 500\nr: recv 901b from -1 tag 1\nr requires c\nq: recv 201b from 0 tag -1\nq requires r\n}\n",
    );
    spec.overhead_per_octet = Span::from_nanos(1);
    let ranks = run(&spec, ns(50));
    assert_eq!(done(&ranks, 1, 1), at(600));
    // The sender's CPU is free at 100, calculates until 1100, and copies until 1400.
    assert_eq!(done(&ranks, 1, 2), at(1400 + 50 + 300));
    let of_rank = ranks.results()[1];
    assert_eq!((of_rank.shorter, of_rank.longer), (1, 1));
    let (count, Longer { send, receive }) = ranks.longer().expect("one is longer");
    assert_eq!((count, send, receive), (1, (0, 2), (1, 2)));
}

#[test]
fn what_a_rank_sends_to_itself_takes_no_way() {
    let spec = spec(
        "num_ranks 1\nrank 0 {\ns: send 8b to 0 tag 1\nr: recv 8b from 0 tag 1\nc: calc 7\nc requires r\n}\n",
    );
    assert!(spec.lines().is_empty());
    assert_eq!(time(&run(&spec, ns(100))), ns(7));
}

/// Four ranks of which each calculates before it does what is `behind`.
fn after_calculation(calculations: [u32; 4], behind: &str) -> Goal {
    let block = |(rank, calc): (usize, u32)| format!("rank {rank} {{\nc: calc {calc}\n{behind}\n}}\n");
    let blocks: String = calculations.into_iter().enumerate().map(block).collect();
    spec(&format!("num_ranks 4\ngroup 0: 0-3\n{blocks}"))
}

#[test]
fn a_collective_ends_with_what_goes_back_to_the_rank_that_began_last() {
    // 2 (n - 1) steps of a ring, from rank 2 on. What its partners had sent before was there by then.
    let sum = after_calculation(
        [10, 20, 1000, 30],
        "s: all-reduce 400b cpu 1\ns requires c\nx: calc 5\nx requires s",
    );
    let ranks = run(&sum, ns(100));
    assert_eq!((ranks.undone, time(&ranks)), (0, ns(1000 + 600 + 5)));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.collectives, path.messages), (ns(1005), ns(600), Span::ZERO));
    let links: Vec<_> = path.links.iter().map(|link| (link.kind, link.rank, link.operation)).collect();
    assert_eq!(links[..2], [(LinkKind::Calculation, 2, 0), (LinkKind::Collective, 2, 1)]);
    assert_eq!((links.len(), links[2].0), (3, LinkKind::Calculation));
    let [one] = ranks.joint()[..] else { panic!("one collective") };
    let times = one.times;
    assert_eq!((times.first_begin, times.last_begin, times.last_end), (at(10), at(1000), at(1600)));
    assert_eq!(one.time(), Some(ns(600)));
    let told = ranks.results()[0];
    assert_eq!((told.sent, told.sent_bytes, told.received, told.received_bytes), (6, 600, 6, 600));
    // Nothing is left of it.
    assert_eq!(ranks.courses.running.len(), 0);
}

#[test]
fn a_collective_has_its_cpu_for_no_more_than_the_overhead() {
    let mut sum = after_calculation([10; 4], "s: all-reduce 400b\ns requires c\nx: calc 50\nx irequires s");
    sum.overhead = ns(7);
    let ranks = run(&sum, ns(100));
    assert_eq!([1, 2].map(|it| done(&ranks, 0, it)), [at(617), at(67)]);
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.overhead, path.collectives), (ns(10), ns(7), ns(600)));
}

#[test]
fn a_rank_by_itself_is_done_at_once_and_a_broadcast_s_root_before_the_others() {
    let alone =
        spec("num_ranks 2\ngroup 0: 1\nrank 1 {\na: all-reduce 8b group 0\nb: calc 5\nb requires a\n}\n");
    assert_eq!(time(&run(&alone, ns(100))), ns(5));
    let cast = after_calculation([0; 4], "b: broadcast 8b");
    let ranks = run(&cast, ns(100));
    assert_eq!([0, 1, 2, 3].map(|rank| done(&ranks, rank, 1)), [at(0), at(100), at(200), at(300)]);
}

#[test]
fn a_rank_waits_for_its_own_long_messages_of_a_collective_to_be_acknowledged() {
    let mut cast = after_calculation([0; 4], "b: broadcast 8b\nx: calc 5 cpu 1\nx requires b");
    cast.eager = Bytes(7);
    let ranks = run(&cast, ns(100));
    // The last has nothing to send.
    assert_eq!([0, 1, 2, 3].map(|rank| done(&ranks, rank, 1)), [at(200), at(300), at(400), at(300)]);
    assert_eq!((ranks.undone, ranks.courses.running.len()), (0, 0));
    let path = ranks.critical_path().unwrap();
    assert_eq!((path.computed, path.collectives, path.links[0].rank), (ns(5), ns(400), 0));
}

#[test]
fn ranks_that_wait_in_a_collective_are_named() {
    // Rank 1 waits for a message that rank 0 sends when all have begun.
    let text = "num_ranks 2\nrank 0 {\na: all-reduce 8b\ns: send 8b to 1\ns requires a\n}\n\
                rank 1 {\nr: recv 8b from 0\na: all-reduce 8b\na requires r\n}\n";
    let ranks = run(&spec(text), ns(100));
    let waiting: Vec<String> = ranks.waiting().iter().map(|(rank, does)| format!("{rank}: {does}")).collect();
    assert_eq!(waiting, ["0: a: all-reduce 8b", "1: r: recv 8b from 0 tag 0"]);
    assert_eq!((ranks.undone, ranks.critical_path(), ranks.joint()[0].time()), (4, None, None));
}

#[test]
fn computation_can_be_left_out() {
    let mut spec = spec("num_ranks 1\nrank 0 {\na: calc 10\nb: calc 20\nb requires a\n}\n");
    spec.unit = Span::ZERO;
    let ranks = run(&spec, Span::ZERO);
    assert_eq!((ranks.undone, time(&ranks)), (0, Span::ZERO));
}

/// The time of `spec` where each message keeps the links at both ends busy for `busy` and takes `time`.
fn shared(spec: &Goal, shared: Shared, busy: Span, time: Span) -> Span {
    let mut ranks = Ranks::new(spec, &spec.hosts);
    let begins = vec![spec.start; spec.hosts.len()];
    play_on(&mut ranks, &begins, shared, &mut |line, _| {
        let line = spec.lines()[line as usize];
        let ends = [line.from, line.to].map(|rank| spec.hosts[rank as usize]);
        Trip { ends, busy, time, taken: busy, acknowledged: time * 2 }
    });
    ranks.time().expect("all is done")
}

#[test]
fn messages_share_the_links_at_both_ends_and_nothing_else_of_a_fabric_that_holds_nothing_up() {
    // Three send to one, which then sends to all of them.
    let incast = spec(
        "num_ranks 4\nrank 0 {\na: recv 8b from 1\nb: recv 8b from 2\nc: recv 8b from 3\nx: send 8b to 1\ny: send 8b to 2\nz: send 8b to 3\n\
         x requires a\nx requires b\nx requires c\ny requires x\nz requires y\n}\n\
         rank 1 {\nsend 8b to 0\nrecv 8b from 0\n}\nrank 2 {\nsend 8b to 0\nrecv 8b from 0\n}\nrank 3 {\nsend 8b to 0\nrecv 8b from 0\n}\n",
    );
    let time = |of| shared(&incast, of, ns(100), ns(130));
    // Each waits for those before it on the link into rank 0, and then on the one out of it.
    assert_eq!(time(Shared::Links), ns(2 * (3 * 100 + 30)));
    assert_eq!(time(Shared::Nothing), ns(2 * 130));
    // Two pairs have nothing to do with one another.
    let pairs = spec(
        "num_ranks 4\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\nrank 2 {\nsend 8b to 3\n}\nrank 3 {\nrecv 8b from 2\n}\n",
    );
    assert_eq!(shared(&pairs, Shared::Links, ns(100), ns(130)), ns(130));
}

#[test]
fn a_link_takes_messages_in_the_order_in_which_they_reach_it() {
    // Rank 1's message is posted first but has a long way; rank 2's comes before it, and is not held up by it.
    let two = spec(
        "num_ranks 3\nrank 0 {\nrecv 8b from 1\nr: recv 8b from 2\nc: calc 1000 cpu 1\nc requires r\n}\nrank 1 {\nsend 8b to 0\n}\n\
         rank 2 {\nc: calc 10\ns: send 8b to 0\ns requires c\n}\n",
    );
    let mut ranks = Ranks::new(&two, &two.hosts);
    play_on(&mut ranks, &[Instant::ZERO; 3], Shared::Links, &mut |line, _| {
        let from = two.lines()[line as usize].from;
        let time = if from == 1 { ns(500) } else { ns(120) };
        Trip {
            ends: [HostId(u16::try_from(from).expect("few")), HostId(0)],
            busy: ns(100),
            time,
            taken: ns(100),
            acknowledged: time,
        }
    });
    assert_eq!([0, 1].map(|it| done(&ranks, 0, it)), [at(500), at(130)]);
    assert_eq!(ranks.time(), Some(ns(1130)));
}

#[test]
fn messages_of_one_queue_pair_come_in_order_whatever_their_lengths() {
    // The first is long, and what waits for it would begin with the second if that overtook it.
    let two = spec(
        "num_ranks 2\nrank 0 {\na: send 1000b to 1\nb: send 1b to 1 cpu 1\n}\n\
         rank 1 {\nr: recv 1000b from 0\ns: recv 1b from 0\ns requires r\nc: calc 500\nc requires r\n}\n",
    );
    for shared in [Shared::Nothing, Shared::Links] {
        let mut ranks = Ranks::new(&two, &two.hosts);
        play_on(&mut ranks, &[Instant::ZERO; 2], shared, &mut |_, size| {
            let (busy, time) = if size == 1 { (ns(1), ns(10)) } else { (ns(100), ns(900)) };
            Trip { ends: [HostId(0), HostId(1)], busy, time, taken: busy, acknowledged: time }
        });
        assert_eq!(ranks.time(), Some(ns(1400)), "{shared:?}");
        assert!(done(&ranks, 1, 1) >= at(900), "{shared:?}");
    }
}

#[test]
fn ranks_start_anew_as_if_nothing_had_been() {
    let spec = spec_with_late_receiver();
    let mut ranks = run(&spec, ns(100));
    let before = (ranks.time(), ranks.results());
    ranks.start_anew();
    assert_eq!(ranks.time(), None);
    let trip = Trip { time: ns(100), acknowledged: ns(200), ..Trip::default() };
    play_on(&mut ranks, &[Instant::ZERO; 3], Shared::Nothing, &mut |_, _| trip);
    assert_eq!((ranks.time(), ranks.results()), before);
}

#[test]
fn ranks_that_wait_for_one_another_are_named() {
    let spec = spec(
        "num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 4\ns: send 8b to 1 tag 4\ns requires r\n}\n\
         rank 1 {\nr: recv 8b from 0 tag 4\ns: send 8b to 0 tag 4\ns requires r\n}\n",
    );
    let ranks = run(&spec, ns(100));
    assert_eq!((ranks.undone, ranks.critical_path()), (4, None));
    let waiting: Vec<String> = ranks.waiting().iter().map(|(rank, does)| format!("{rank}: {does}")).collect();
    assert_eq!(waiting, ["0: r: recv 8b from 1 tag 4", "1: r: recv 8b from 0 tag 4"]);
}

proptest! {
    /// Of any schedule: all is done, nothing before what it waits for, no CPU does two things at once, and the parts of the time add up.
    #[test]
    fn a_schedule_comes_to_its_end_in_order(
        text in written(true),
        latency in 0u64..50,
        overhead in 0u64..20,
        eager in prop_oneof![Just(0u64), Just(65_535)],
    ) {
        let mut spec = spec(&text);
        spec.overhead = ns(overhead);
        spec.eager = Bytes(eager);
        let ranks = run(&spec, ns(latency));
        prop_assert_eq!(ranks.undone, 0, "{}", text);
        for (number, (rank, state)) in (0u32..).zip(spec.schedule.ranks.iter().zip(&ranks.states)) {
            let mut busy: BTreeMap<u8, Vec<(Instant, Instant)>> = BTreeMap::new();
            for (operation, it) in (0u32..).zip(rank.operations()) {
                let began = state.began[operation as usize];
                let end = began + ranks.duration(number, operation);
                prop_assert!(end <= state.done[operation as usize]);
                if end > began {
                    busy.entry(it.cpu).or_default().push((began, end));
                }
                for edge in rank.edges(operation) {
                    let waits = state.began[edge.to as usize];
                    let of = if edge.at_begin && matches!(it.does, Does::Recv { .. }) {
                        // It has begun when it stands ready, which is not noted.
                        spec.start
                    } else if edge.at_begin {
                        began
                    } else {
                        state.done[operation as usize]
                    };
                    prop_assert!(waits >= of, "{operation} of rank {number} and {}:\n{text}", edge.to);
                }
            }
            for times in busy.values_mut() {
                times.sort();
                prop_assert!(times.windows(2).all(|two| two[0].1 <= two[1].0), "{text}");
            }
        }
        let path = ranks.critical_path().expect("all is done");
        let mut at = spec.start + path.late;
        for link in &path.links {
            prop_assert_eq!(link.from, at, "a link begins where the one before it ends: {}", text);
            at = link.to;
        }
        let parts = path.late + path.computed + path.overhead + path.messages + path.collectives;
        prop_assert_eq!(parts, path.time, "{}", text);
        for (number, it) in ranks.joint().iter().enumerate() {
            let (done, begun) = (it.times.done, it.times.begun);
            prop_assert_eq!((done, begun), (it.ranks, it.ranks), "{} of {}", number, text);
        }
        prop_assert!((0u32..).take(4).all(|rank| ranks.courses.waiting(&spec, rank).is_none()));
        let last = ranks.states.iter().flat_map(|state| &state.done).max().expect("there are some");
        prop_assert_eq!(path.time, last.since(spec.start));
    }
}
