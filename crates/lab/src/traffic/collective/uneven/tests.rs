use super::*;
use crate::traffic::collective::Operation;
use crate::traffic::spec::Common;
use proptest::prelude::*;
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::collections::{BTreeMap, VecDeque};

/// An all-to-all of these amounts over rails of servers of so many, or direct where that is 1.
fn one(matrix: Matrix, per_server: u32, channels: u32, chunks: u32) -> Collective {
    let of = Collective {
        operation: Operation::AllToAll,
        algorithm: if per_server == 1 { Algorithm::Direct } else { Algorithm::Pxn },
        ranks: (0u16..).map(HostId).take(matrix.ranks() as usize).collect(),
        per_server,
        root: 0,
        shuffled: false,
        size: Bytes(0),
        amounts: None,
        channels,
        chunks,
        iterations: 1,
        gap: Span::ZERO,
        start: Instant::ZERO,
        common: Common::default(),
    };
    of.with_matrix(Arc::new(matrix))
}

/// A matrix of so many ranks, of which `zeros` in 8 have nothing for one another; each other amount is `least` octets at least.
fn matrix(ranks: u32, zeros: u8, least: u64) -> impl Strategy<Value = Matrix> {
    let cell =
        (0u8..8, least..least + 5000).prop_map(move |(zero, octets)| if zero < zeros { 0 } else { octets });
    let row = prop::collection::vec(cell, ranks as usize);
    prop::collection::vec(row, ranks as usize).prop_map(|rows| Matrix::new(&rows).expect("it is square"))
}

fn any_one() -> impl Strategy<Value = Collective> {
    let shape = (1u32..5, 1u32..4, 1u32..4, 1u32..4, 0u8..9);
    shape.prop_flat_map(|(servers, per_server, channels, chunks, zeros)| {
        let ranks = (servers * per_server).max(2);
        let per_server = if servers * per_server == ranks { per_server } else { 1 };
        let least = u64::from(channels * chunks);
        matrix(ranks, zeros, least).prop_map(move |matrix| one(matrix, per_server, channels, chunks))
    })
}

/// Runs all chunks of a channel, each time delivering the first message of a queue pair that `choose` picks; gives of each two ranks the octets
/// that came from one for the other.
fn run(
    one: &Collective,
    channel: u32,
    chunk: u32,
    mut choose: impl FnMut(usize) -> usize,
) -> BTreeMap<(u32, u32), u64> {
    let (schedule, matrix) = (one.schedule(), one.matrix().expect("it has one"));
    let ranks = schedule.ranks();
    let mut kept = vec![vec![0; schedule.kept() as usize]; ranks as usize];
    let mut received = vec![0; ranks as usize];
    let mut queues = BTreeMap::<u32, VecDeque<(u32, Message)>>::new();
    // What a rank has to send on.
    let mut held = BTreeMap::<(u32, u32, u32), u64>::new();
    let mut came = BTreeMap::<(u32, u32), u64>::new();
    let send = |queues: &mut BTreeMap<u32, VecDeque<_>>, rank: u32, step: u32| {
        let message = one.message(channel, one.place_of(channel, rank), step).expect("it brings something");
        assert!(one.octets(channel, chunk, &message) > 0);
        queues.entry(message.edge).or_default().push_back((step, message));
    };
    for rank in 0..ranks {
        one.at_once(channel, rank).into_iter().for_each(|step| send(&mut queues, rank, step));
    }
    while !queues.is_empty() {
        let edge = *queues.keys().nth(choose(queues.len())).expect("one of them");
        let queue = queues.get_mut(&edge).expect("it is there");
        let (step, message) = queue.pop_front().expect("none is empty");
        if queue.is_empty() {
            queues.remove(&edge);
        }
        let (from, to) = schedule.ends(edge);
        let [from, to] = [from, to].map(|place| one.rank_at(channel, place));
        let last = one.rank_at(channel, message.shards.start);
        let octets = one.octets(channel, chunk, &message);
        if message.sources > 1 {
            // What it has of others of its server, all of it, and its own.
            let mut sum = 0;
            for source in one.server(from) {
                let own = if source == from {
                    super::super::share(
                        super::super::share(matrix.octets(from, last), one.channels, channel),
                        one.chunks,
                        chunk,
                    )
                } else {
                    held.remove(&(from, source, last)).unwrap_or(0)
                };
                *came.entry((source, last)).or_default() += own;
                sum += own;
            }
            assert_eq!(sum, octets);
        } else if to == last {
            *came.entry((from, last)).or_default() += octets;
        } else {
            assert_eq!(held.insert((to, from, last), octets), None);
        }
        received[to as usize] += 1;
        one.follows(channel, to, &mut kept[to as usize], step).for_each(|step| send(&mut queues, to, step));
    }
    assert!(held.is_empty(), "it was sent on");
    assert!((0..ranks).all(|rank| received[rank as usize] == one.receives(channel, rank)));
    came
}

proptest! {
    #[test]
    fn whatever_comes_first_each_rank_ends_with_what_the_others_have_for_it(
        one in any_one(),
        picks in prop::collection::vec(any::<u16>(), 1..50),
    ) {
        let matrix = one.matrix().expect("it has one");
        let mut turns = picks.iter().cycle();
        let mut came = BTreeMap::<(u32, u32), u64>::new();
        for channel in 0..one.channels {
            for chunk in 0..one.chunks {
                let of_chunk = run(&one, channel, chunk, |open| usize::from(*turns.next().unwrap()) % open);
                of_chunk.into_iter().for_each(|(pair, octets)| *came.entry(pair).or_default() += octets);
            }
        }
        for (from, to) in (0..matrix.ranks()).flat_map(|from| (0..matrix.ranks()).map(move |to| (from, to))) {
            let expected = if from == to { 0 } else { matrix.octets(from, to) };
            prop_assert_eq!(came.get(&(from, to)).copied().unwrap_or(0), expected);
        }
    }

    #[test]
    fn queue_pairs_are_those_that_carry_something_and_what_they_carry_is_what_is_sent(one in any_one()) {
        let pairs = one.pairs();
        let numbers: Vec<_> = (0..pairs.count()).map(|number| pairs.at(number)).collect();
        prop_assert!((0..).zip(&numbers).all(|(number, &(channel, edge))| pairs.number(channel, edge) == number));
        let mut sent = BTreeMap::<(u32, u32), (u64, u64, u64, u64)>::new();
        for channel in 0..one.channels {
            for (.., message) in one.uneven_steps(channel) {
                for chunk in 0..one.chunks {
                    let octets = one.octets(channel, chunk, &message);
                    let of = sent.entry((channel, message.edge)).or_insert((0, 0, u64::MAX, 0));
                    *of = (of.0 + 1, of.1 + octets, of.2.min(octets), of.3.max(octets));
                }
            }
        }
        prop_assert!(sent.keys().eq(numbers.iter()));
        for (&(channel, edge), (messages, octets, least, most)) in &sent {
            let carried = one.carried(channel)[edge as usize];
            prop_assert_eq!(carried.messages, *messages);
            prop_assert_eq!(one.octets_by_edge(channel)[edge as usize], *octets);
            prop_assert!(carried.sizes.0 <= *least && *most <= carried.sizes.1, "{:?} {} {}", carried, least, most);
        }
    }
}

#[test]
fn where_all_have_as_much_messages_are_those_of_an_even_all_to_all() {
    for (per_server, channels, chunks) in [(1, 2, 3), (3, 2, 2), (3, 1, 1)] {
        let ranks = 6;
        let each = u64::from(channels * chunks) * 100;
        let uneven = one(Matrix::new(&vec![vec![each; 6]; 6]).unwrap(), per_server, channels, chunks);
        uneven.check().unwrap();
        let even = Collective { size: Bytes(6 * each), amounts: None, ..uneven.clone() };
        assert_eq!((uneven.size, uneven.busiest()), (even.size, Some(5 * each)));
        for channel in 0..channels {
            assert_eq!(uneven.carried(channel), even.carried(channel));
            assert_eq!(uneven.octets_by_edge(channel), even.octets_by_edge(channel));
            for rank in 0..ranks {
                assert_eq!(uneven.at_once(channel, rank), even.at_once(channel, rank));
                assert_eq!(uneven.receives(channel, rank), even.receives(channel, rank));
            }
        }
    }
}

#[test]
fn what_cannot_be_sent_is_refused_with_what_helps() {
    let told = |rows: &[Vec<u64>], change: &dyn Fn(&mut Collective)| {
        let mut one = one(Matrix::new(rows).unwrap(), 1, 1, 1);
        change(&mut one);
        let fault = one.check().unwrap_err();
        (fault.key(), fault.to_string())
    };
    let two = [vec![0, 5], vec![7, 0]];
    let (key, text) = told(&two, &|it| it.ranks.push(HostId(2)));
    assert!(key == "matrix" && text.starts_with("2 rows for 3 ranks; write one for each"), "{text}");
    let (_, text) = told(&[vec![9, 0], vec![0, 9]], &|_| {});
    assert!(text.starts_with("no rank sends anything to another"), "{text}");
    let (_, text) = told(&two, &|it| it.chunks = 6);
    assert!(text.starts_with("a rank has 5B for another, which goes in 6 messages; set `chunks`"), "{text}");
    let (key, text) = told(&[vec![0, 5 << 30], vec![1 << 20, 0]], &|it| it.chunks = 2);
    assert!(key == "size" && text.ends_with("set `chunks` to 6 or more"), "{text}");
    let skew = super::super::amounts::Skew { exponent: roci_units::Ratio::new(1, 1), tokens: 100 };
    let (key, text) =
        told(&two, &|it| (it.size, it.amounts, it.chunks) = (Bytes(150), Some(Amounts::Skewed(skew)), 2));
    assert!(key == "tokens" && text.contains("less than an octet for each of 2 messages"), "{text}");
}
