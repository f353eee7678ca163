use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

fn collective(operation: Operation, algorithm: Algorithm, ranks: u16) -> Collective {
    Collective {
        operation,
        algorithm,
        ranks: (0..ranks).map(HostId).collect(),
        per_server: 1,
        root: 0,
        shuffled: false,
        size: Bytes(1 << 20),
        amounts: None,
        channels: 1,
        chunks: 1,
        iterations: 1,
        gap: Span::ZERO,
        start: Instant::ZERO,
        common: Common::default(),
    }
}

/// All that there are, with as many ranks as each can have, on servers of as many as they can.
fn all(most: u16) -> Vec<Collective> {
    let pairs = Operation::ALL.into_iter().flat_map(|it| it.algorithms().iter().map(move |how| (it, *how)));
    let each = pairs.flat_map(|(it, how)| (2..=most).map(move |ranks| collective(it, how, ranks)));
    let each = each.flat_map(|it| {
        // Rings have the same messages, whatever servers their ranks are on.
        let most = if it.algorithm == Algorithm::Ring { 1 } else { it.count() };
        (1..=most).map(move |per_server| Collective { per_server, ..it.clone() })
    });
    each.filter(|it| it.check().is_ok()).collect()
}

/// Whose contributions a shard holds. That of an all-to-all from rank a to rank b is `a`'s alone.
type Held = BTreeSet<u32>;

/// A message on its way: its rank, its step, and what it brings.
type Flying = (u32, u32, Message, Vec<Held>);

/// The data of all ranks, as the sets of those whose contributions each shard holds.
struct Model {
    operation: Operation,
    schedule: Schedule,
    held: Vec<Vec<Held>>,
    /// What came for an all-to-all, where it is not to overwrite what is still to be sent.
    inbox: Vec<BTreeMap<u32, u32>>,
    /// What is kept at each rank.
    kept: Vec<Vec<u32>>,
    /// Who received what in which step.
    received: BTreeSet<(u32, u32)>,
}

impl Model {
    fn new(one: &Collective) -> Self {
        let (operation, schedule) = (one.operation, one.schedule());
        let begin = |rank: u32| {
            let of = |shard: u32| match operation {
                Operation::AllGather if shard != rank => Held::new(),
                Operation::Broadcast | Operation::Scatter if rank > 0 => Held::new(),
                Operation::Gather if shard != rank => Held::new(),
                _ => Held::from([rank]),
            };
            (0..schedule.shards()).map(of).collect()
        };
        let (held, inbox) =
            ((0..schedule.ranks()).map(begin).collect(), vec![BTreeMap::new(); schedule.ranks() as usize]);
        Self {
            operation,
            schedule,
            held,
            inbox,
            kept: vec![vec![0; schedule.kept() as usize]; schedule.ranks() as usize],
            received: BTreeSet::new(),
        }
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
            let sources = message.sources as usize;
            let is_all = shards.iter().all(|it| it.len() == sources);
            assert!(is_all || model.operation != Operation::AllToAll, "step {step}");
            queues.entry(message.edge).or_default().push_back((rank, step, message, shards));
        };
        for rank in 0..self.schedule.ranks() {
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
            if self.operation == Operation::AllToAll {
                let is_its = shard == message.to;
                for source in came {
                    if is_its {
                        assert_eq!(self.inbox[message.to as usize].insert(source, shard), None);
                        continue;
                    }
                    // It is to send this on.
                    assert_eq!(source, from);
                    assert!(self.held[message.to as usize][shard as usize].insert(source), "it came before");
                }
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
        let (operation, ranks) = (self.operation, self.schedule.ranks());
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
                Operation::Reduce if rank == ranks - 1 => assert_eq!(held[0], everyone),
                Operation::Gather if rank == 0 => {
                    assert!(held.iter().zip(0..).all(|(shard, of)| *shard == Held::from([of])));
                }
                Operation::Scatter => assert_eq!(held[rank as usize], Held::from([0])),
                Operation::Reduce | Operation::Gather => {}
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
            let mut model = Model::new(&one);
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
            let message = |shard: u32| Message { edge: 0, to: 0, shards: shard..shard + 1, sources: 1, adds: true };
            (0..u32::from(ranks)).map(move |shard| one.octets(channel, chunk, &message(shard)))
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
        let sent = |rank| sent(&one, 0, rank).map(|(_, octets)| octets).sum::<u64>();
        let most = (0..schedule.ranks()).map(sent).max().unwrap();
        let factor = one.operation.bus_factor(schedule.ranks());
        let least = 720_720 * u64::from(factor.numerator()) / u64::from(factor.denominator());
        match one.algorithm {
            Algorithm::Tree => {
                // A rank with children in one tree has a parent alone in the other: that makes twice the data at most, and the
                // same number of octets to it. The head of a server sends all totals to its chain as well.
                let times = if one.per_server > 1 { 3 } else { 2 };
                assert!((least..=times * 720_720).contains(&most), "{one:?}: {most}");
            }
            Algorithm::Pxn => {
                // What another rail is to have within its own server goes one way, and all for other servers a second one, of its rail.
                let (ranks, others) = (u64::from(one.count()), u64::from(one.per_server - 1));
                let servers = ranks / u64::from(one.per_server);
                let on_rail = (servers - 1) * u64::from(one.per_server);
                assert_eq!(most * ranks, 720_720 * (servers * others + on_rail), "{one:?}");
            }
            // The root receives so much.
            _ if one.operation == Operation::Gather => {
                assert_eq!(most * u64::from(one.count() - 1), least, "{one:?}");
            }
            _ => assert_eq!(most, least, "{one:?}"),
        }
    }
}

/// What `rank` sends of a channel: to whom, and how many octets.
fn sent(one: &Collective, channel: u32, rank: u32) -> impl Iterator<Item = (u32, u64)> {
    let (schedule, place) = (one.schedule(), one.place_of(channel, rank));
    let messages = (0..schedule.steps()).filter_map(move |step| schedule.message(place, step));
    messages.map(move |message| (one.rank_at(channel, message.to), one.octets(channel, 0, &message)))
}

/// The messages and octets of each rank to other servers, by all channels; all of them stay on the rail of that rank.
fn sent_away(one: &Collective) -> Vec<(u64, u64)> {
    let of = |rank: u32| {
        let all = (0..one.channels).flat_map(|channel| sent(one, channel, rank));
        let away = all.filter(|(to, _)| to / one.per_server != rank / one.per_server);
        away.fold((0, 0), |(messages, octets), (to, of)| {
            assert_eq!(to % one.per_server, rank % one.per_server);
            (messages + 1, octets + of)
        })
    };
    (0..one.count()).map(of).collect()
}

#[test]
fn heads_of_trees_on_different_gpus_have_every_nic_carry_as_much() {
    for servers in 2..10u16 {
        let one = Collective {
            per_server: 8,
            channels: 8,
            size: Bytes(8 << 10),
            ..collective(Operation::AllReduce, Algorithm::Tree, servers * 8)
        };
        one.check().unwrap();
        let away = sent_away(&one);
        for server in away.chunks(8) {
            assert!(server.iter().all(|it| *it == server[0]), "{server:?}");
        }
        // Up and down each line of two trees with half of a channel's KiB each; of a server never more than that KiB twice.
        let of_rail = away.iter().step_by(8).map(|(_, octets)| octets);
        assert_eq!(of_rail.clone().sum::<u64>(), 2 * u64::from(servers - 1) * 1024);
        assert!(of_rail.max() <= Some(&2048), "{away:?}");
    }
}

#[test]
fn over_rails_an_all_to_all_sends_as_many_octets_away_in_fewer_messages() {
    for (servers, per_server, channels) in [(4, 8, 3), (3, 4, 1), (1, 4, 1), (5, 2, 2)] {
        let ranks = servers * per_server;
        let one = Collective {
            per_server,
            channels,
            size: Bytes(u64::from(ranks * channels) << 10),
            ..collective(Operation::AllToAll, Algorithm::Pxn, u16::try_from(ranks).unwrap())
        };
        one.check().unwrap();
        // One to each other server, with a KiB of each rank of its own.
        let messages = u64::from((servers - 1) * channels);
        let expected = (messages, messages * u64::from(per_server) * 1024);
        assert!(sent_away(&one).into_iter().all(|it| it == expected), "{servers} {per_server}");
        let schedule = one.schedule();
        for edge in 0..schedule.edges() {
            let octets = if schedule.is_on_rail(edge) { u64::from(per_server) << 10 } else { 1 << 10 };
            assert_eq!(one.carried(0)[edge as usize].sizes, (octets, octets));
        }
    }
}

#[test]
fn each_queue_pair_leads_from_one_rank_to_another_and_is_used() {
    for one in all(8) {
        let schedule = one.schedule();
        let messages = (0..schedule.ranks())
            .flat_map(|rank| (0..schedule.steps()).filter_map(move |step| schedule.message(rank, step)));
        let mut used = BTreeMap::new();
        messages.for_each(|message| *used.entry(message.edge).or_insert(0) += 1);
        assert!(
            used.into_iter().eq((0..schedule.edges()).map(|edge| (edge, schedule.uses(edge)))),
            "{one:?}"
        );
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
    assert_eq!(told(&|it| it.root = 6), "there is no rank 6 to be the root; name one of 0 to 5");
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
    let all_to_all =
        |it: &mut Collective| (it.operation, it.algorithm) = (Operation::AllToAll, Algorithm::Direct);
    assert_eq!(
        told(&|it| {
            all_to_all(it);
            it.per_server = 2;
        }),
        "`all-to-all` by `direct` knows no servers; leave it out, or set `algorithm = \"pxn\"`"
    );
    assert!(
        told(&|it| {
            all_to_all(it);
            it.algorithm = Algorithm::Pxn;
        })
        .ends_with("set `ranks_per_server` to 2 or more, or `algorithm = \"direct\"`")
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

#[test]
fn a_root_sends_first_or_receives_last_whichever_rank_it_is() {
    for operation in Operation::ALL.into_iter().filter(|it| it.has_root()) {
        for root in 0..5 {
            let one = Collective { root, ..collective(operation, operation.algorithms()[0], 5) };
            one.check().unwrap();
            assert!((0..5).all(|rank| one.rank_at(0, one.place_of(0, rank)) == rank));
            let sent: Vec<u64> =
                (0..5).map(|rank| sent(&one, 0, rank).map(|(_, octets)| octets).sum()).collect();
            let received = |rank: u32| {
                let to_it = (0..5).flat_map(|from| self::sent(&one, 0, from)).filter(|(to, _)| *to == rank);
                to_it.map(|(_, octets)| octets).sum::<u64>()
            };
            let of_root = (sent[root as usize], received(root));
            // A shard is a fifth of a MiB, and cuts are whole octets.
            let size = 1 << 20;
            let four = (size - size / 5 - 1..=size - size / 5).contains(&of_root.0.max(of_root.1));
            match operation {
                Operation::Broadcast => assert_eq!(of_root, (size, 0)),
                Operation::Reduce => assert_eq!(of_root, (0, size)),
                Operation::Scatter => assert!(four && of_root.1 == 0, "{of_root:?}"),
                _ => assert!(four && of_root.0 == 0, "{of_root:?}"),
            }
        }
    }
}
