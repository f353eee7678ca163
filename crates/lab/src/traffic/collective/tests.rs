use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

fn collective(operation: Operation, algorithm: Algorithm, ranks: u16) -> Collective {
    Collective {
        operation,
        algorithm,
        ranks: (0..ranks).map(HostId).collect(),
        per_server: 1,
        shuffled: false,
        size: Bytes(1 << 20),
        channels: 1,
        chunks: 1,
        iterations: 1,
        gap: Span::ZERO,
        start: Instant::ZERO,
        common: Common::default(),
    }
}

/// All that there are, with as many ranks as each can have.
fn all(most: u16) -> Vec<Collective> {
    let pairs = Operation::ALL.into_iter().flat_map(|it| it.algorithms().iter().map(move |how| (it, *how)));
    let each = pairs.flat_map(|(it, how)| (2..=most).map(move |ranks| collective(it, how, ranks)));
    each.filter(|it| it.check().is_ok()).collect()
}

/// Whose contributions a shard holds. That of an all-to-all from rank a to rank b is `a`'s alone.
type Held = BTreeSet<u32>;

/// A message on its way: its rank, its step, and what it brings.
type Flying = (u32, u32, Message, Vec<Held>);

/// The data of all ranks, as the sets of those whose contributions each shard holds.
struct Model {
    schedule: Schedule,
    held: Vec<Vec<Held>>,
    /// What came for an all-to-all, where it is not to overwrite what is still to be sent.
    inbox: Vec<BTreeMap<u32, u32>>,
    /// What is kept at each rank.
    kept: Vec<u32>,
    /// Who received what in which step.
    received: BTreeSet<(u32, u32)>,
}

impl Model {
    fn new(schedule: Schedule) -> Self {
        let begin = |rank: u32| {
            let of = |shard: u32| match schedule.operation {
                Operation::AllGather if shard != rank => Held::new(),
                Operation::Broadcast if rank > 0 => Held::new(),
                _ => Held::from([rank]),
            };
            (0..schedule.shards()).map(of).collect()
        };
        let (held, inbox) =
            ((0..schedule.ranks).map(begin).collect(), vec![BTreeMap::new(); schedule.ranks as usize]);
        Self { schedule, held, inbox, kept: vec![0; schedule.ranks as usize], received: BTreeSet::new() }
    }

    /// Delivers the messages one by one, each time one of those on their way that `choose` picks: of one queue pair in order.
    fn run(&mut self, mut choose: impl FnMut(usize) -> usize) {
        let mut queues = BTreeMap::<u32, VecDeque<Flying>>::new();
        let send = |model: &Self, queues: &mut BTreeMap<_, VecDeque<_>>, rank: u32, step: u32| {
            let Some(message) = model.schedule.message(rank, step) else { return };
            assert_eq!(model.schedule.ends(message.edge), (rank, message.to), "step {step}");
            let shards =
                message.shards.clone().map(|shard| model.held[rank as usize][shard as usize].clone());
            let shards: Vec<Held> = shards.collect();
            queues.entry(message.edge).or_default().push_back((rank, step, message, shards));
        };
        for rank in 0..self.schedule.ranks {
            self.schedule.at_once(rank).for_each(|step| send(self, &mut queues, rank, step));
        }
        while !queues.is_empty() {
            let edge = *queues.keys().nth(choose(queues.len())).unwrap();
            let queue = queues.get_mut(&edge).unwrap();
            let (rank, step, message, shards) = queue.pop_front().unwrap();
            if queue.is_empty() {
                queues.remove(&edge);
            }
            self.take(rank, &message, shards);
            assert!(self.received.insert((message.to, step)), "rank {} has step {step} twice", message.to);
            let follow = self.schedule.follows(message.to, &mut self.kept[message.to as usize], step);
            follow.for_each(|step| send(self, &mut queues, message.to, step));
        }
    }

    fn take(&mut self, from: u32, message: &Message, shards: Vec<Held>) {
        for (shard, came) in message.shards.clone().zip(shards) {
            if self.schedule.operation == Operation::AllToAll {
                assert_eq!((shard, came), (message.to, Held::from([from])));
                assert_eq!(self.inbox[message.to as usize].insert(from, shard), None);
                continue;
            }
            let has = &mut self.held[message.to as usize][shard as usize];
            if message.adds {
                assert!(has.is_disjoint(&came), "a contribution is added twice");
                has.extend(came);
            } else {
                assert!(has.is_subset(&came) && *has != came, "what came is nothing new");
                *has = came;
            }
        }
    }

    fn judge(&self) {
        let Schedule { operation, ranks, .. } = self.schedule;
        let everyone: Held = (0..ranks).collect();
        for rank in 0..ranks {
            let held = &self.held[rank as usize];
            match operation {
                Operation::AllReduce => assert!(held.iter().all(|shard| *shard == everyone)),
                Operation::ReduceScatter => assert_eq!(held[rank as usize], everyone),
                Operation::AllGather => {
                    assert!(held.iter().zip(0..).all(|(shard, of)| *shard == Held::from([of])));
                }
                Operation::AllToAll => {
                    assert!(
                        self.inbox[rank as usize].keys().copied().eq((0..ranks).filter(|it| *it != rank))
                    );
                }
                Operation::Broadcast => assert_eq!(held[0], Held::from([0])),
            }
            let received = self.received.iter().filter(|(who, _)| *who == rank).count();
            assert_eq!(received, self.schedule.receives(rank) as usize);
        }
    }
}

proptest! {
    #[test]
    fn whatever_comes_first_all_ranks_end_with_all_that_they_are_to_have(picks in prop::collection::vec(any::<u16>(), 1..50)) {
        for one in all(9) {
            let mut model = Model::new(one.schedule());
            let mut turns = picks.iter().cycle();
            model.run(|open| usize::from(*turns.next().unwrap()) % open);
            model.judge();
        }
    }

    #[test]
    fn the_shards_of_all_parts_together_are_the_data_and_differ_by_little(
        size in 1u64..100_000,
        (channels, chunks, ranks) in (1u32..6, 1u32..6, 2u16..17),
    ) {
        let one = Collective {
            size: Bytes(size), channels, chunks, ..collective(Operation::AllReduce, Algorithm::Ring, ranks)
        };
        let shards = |channel: u32, chunk: u32| {
            let one = &one;
            (0..u32::from(ranks)).map(move |shard| one.octets(channel, chunk, &(shard..shard + 1)))
        };
        let parts = (0..channels).flat_map(|channel| (0..chunks).map(move |chunk| (channel, chunk)));
        let sizes: Vec<u64> = parts.flat_map(|(channel, chunk)| shards(channel, chunk)).collect();
        prop_assert_eq!(sizes.iter().sum::<u64>(), size);
        let least = size / (u64::from(channels * chunks) * u64::from(ranks));
        prop_assert!(sizes.iter().all(|it| (least..=least + 1).contains(it)), "{:?}", sizes);
    }
}

#[test]
fn each_rank_sends_the_share_of_its_data_that_bus_bandwidth_counts() {
    for mut one in all(16) {
        let schedule = one.schedule();
        one.size = Bytes(720_720);
        let sent = |rank| {
            let messages = (0..schedule.steps()).filter_map(move |step| schedule.message(rank, step));
            messages.map(|message| one.octets(0, 0, &message.shards)).sum::<u64>()
        };
        let most = (0..schedule.ranks()).map(sent).max().unwrap();
        let factor = one.operation.bus_factor(schedule.ranks());
        if one.algorithm == Algorithm::Tree {
            // A rank with children in one tree has a parent alone in the other: that makes twice the data at most, and the
            // same number of octets to it.
            let least = 720_720 * u64::from(factor.numerator()) / u64::from(factor.denominator());
            assert!((least..=2 * 720_720).contains(&most), "{one:?}: {most}");
            continue;
        }
        assert_eq!(
            most * u64::from(factor.denominator()),
            720_720 * u64::from(factor.numerator()),
            "{one:?}"
        );
    }
}

#[test]
fn each_queue_pair_leads_from_one_rank_to_another_and_is_used() {
    for one in all(8) {
        let schedule = one.schedule();
        let messages = (0..schedule.ranks())
            .flat_map(|rank| (0..schedule.steps()).filter_map(move |step| schedule.message(rank, step)));
        let used: BTreeSet<u32> = messages.map(|message| message.edge).collect();
        assert!(used.into_iter().eq(0..schedule.edges()), "{one:?}");
        assert!((0..schedule.edges()).all(|edge| schedule.ends(edge).0 != schedule.ends(edge).1));
    }
}

#[test]
fn what_cannot_be_done_is_refused_with_what_helps() {
    let told = |change: &dyn Fn(&mut Collective)| {
        let mut one = collective(Operation::AllReduce, Algorithm::Ring, 6);
        change(&mut one);
        one.check().unwrap_err().to_string()
    };
    assert_eq!(
        told(&|it| it.ranks.truncate(1)),
        "a collective among 1 hosts; it takes two ranks at least, so list more `hosts`"
    );
    assert_eq!(told(&|it| it.ranks[3] = HostId(1)), "a host has two ranks; list each of `hosts` once");
    assert_eq!(
        told(&|it| it.algorithm = Algorithm::HalvingDoubling),
        "`halving-doubling` among 6 ranks, which is no power of two; list 4 or 8 of `hosts`, or set `algorithm = \"ring\"`"
    );
    assert_eq!(
        told(&|it| it.algorithm = Algorithm::Direct),
        "`all-reduce` has no algorithm `direct`; those that it has are `ring`, `halving-doubling`, `tree`"
    );
    assert_eq!(
        told(&|it| it.size = Bytes(5)),
        "5B are fewer octets than there are messages in a step, 6; set `size` to 6 octets or more"
    );
    assert!(
        told(&|it| (it.size, it.chunks) = (Bytes(11), 2))
            .ends_with("12 octets or more, or `chunks` or `channels` to less")
    );
    let long = told(&|it| it.size = Bytes(18 << 30));
    assert_eq!(long, "messages of 3GiB, and 1GiB is the most; set `chunks` to 3 or more");
}

#[test]
fn rings_of_channels_go_from_server_to_server_on_every_rail_alike() {
    for (per_server, servers) in [(1, 5), (4, 4), (8, 2), (3, 3)] {
        let ranks = per_server * servers;
        let channels = 2 * per_server;
        let one = Collective {
            per_server,
            channels,
            ..collective(Operation::AllReduce, Algorithm::Ring, u16::try_from(ranks).unwrap())
        };
        one.check().unwrap();
        let mut left = BTreeMap::<u32, u32>::new();
        for channel in 0..channels {
            let order: Vec<u32> = (0..ranks).map(|place| one.rank_at(channel, place)).collect();
            let back: Vec<u32> = order.iter().map(|rank| one.place_of(channel, *rank)).collect();
            assert!(back.into_iter().eq(0..ranks), "{per_server} {channel} {order:?}");
            let next = order.iter().cycle().skip(1);
            for (from, to) in
                order.iter().zip(next).filter(|(from, to)| *from / per_server != *to / per_server)
            {
                // The last server of an odd number is left on another rail than the first is entered on.
                let closes = *to / per_server == 0 && servers % 2 == 1 && per_server > 1;
                assert_eq!(from % per_server == to % per_server, !closes, "{from} to {to} of {order:?}");
                *left.entry(*from).or_default() += 1;
            }
        }
        assert!(left.len() == ranks as usize && left.values().all(|times| *times == 2), "{left:?}");
    }
}

#[test]
fn channels_of_one_order_are_as_without_servers() {
    let plain = collective(Operation::AllGather, Algorithm::Direct, 6);
    assert!((0..6).all(|rank| plain.rank_at(3, rank) == rank && plain.place_of(3, rank) == rank));
}
