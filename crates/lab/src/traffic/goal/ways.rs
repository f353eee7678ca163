//! How the collectives of a schedule are done: by the algorithms of [`crate::traffic::collective`], each kind of each group over queue pairs
//! that all of its collectives share.

use super::{Does, Group, Joint, Line, MESSAGE_MAX, Schedule};
use crate::traffic::collective::amounts::Matrix;
use crate::traffic::collective::{
    Algorithm, CHUNKS_MAX, Carried, Collective, CollectiveFault, Model, Network, Operation,
};
use crate::traffic::spec::Common;
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most octets of a collective, 1 TiB: parts of it are counted in 64 bits.
const SIZE_MAX: u64 = 1 << 40;
/// So many queue pairs a schedule has at most.
const LINES_MAX: u64 = 1 << 24;
/// As many channels as collectives may have.
const CHANNELS_MAX: u32 = 256;

/// Where each rank sends on what it has received, as in broadcasts and trees, nothing overlaps unless data are cut up: into parts as NCCL's buffers
/// have for a step, an eighth of 4 MiB.
const PART: u64 = 512 << 10;

/// What a schedule does not say of its collectives.
#[derive(Clone, Debug)]
pub struct How {
    /// The algorithm of each operation; `None`: the usual one.
    pub algorithms: BTreeMap<&'static str, Algorithm>,
    /// What has the algorithm chosen that takes least, if anything.
    pub auto: Option<Auto>,
    /// Channels; `None`: rings and trees as many as ranks share a server, others one.
    pub channels: Option<u32>,
    /// Into how many parts each channel's data are cut that go their way by themselves; `None`: of broadcasts and trees into parts of 512 KiB, of
    /// others into as few as messages may be long.
    pub chunks: Option<u32>,
    /// So many ranks in a row share a server; at least 1.
    pub per_server: u32,
}

impl Default for How {
    fn default() -> Self {
        Self { algorithms: BTreeMap::new(), auto: None, channels: None, chunks: None, per_server: 1 }
    }
}

/// Operations of which the algorithm is chosen by size.
#[derive(Clone, Debug)]
pub struct Auto {
    /// Their names.
    pub operations: BTreeSet<&'static str>,
    /// The algorithms that it is one of, where the operation has any of them; none: all.
    pub named: Vec<Algorithm>,
    /// What it is chosen by.
    pub network: Network,
}

/// Where ranks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    /// The host of each.
    pub(super) hosts: &'a [HostId],
    /// Whether they stay there, and are not dealt to these hosts at random.
    pub(super) listed: bool,
}

/// How much ranks have in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct What {
    /// Octets of a rank's data, as in [`Collective::size`].
    pub size: u64,
    /// Where each says what it has for each, a place in [`Schedule::matrices`].
    pub matrix: Option<u32>,
}

/// What ranks have for one another by its place in [`Schedule::matrices`], in the order in which the algorithm counts them.
type Matrices = BTreeMap<u32, Arc<Matrix>>;

/// One kind of collectives of a group that go one way, of any size.
#[derive(Clone, Debug)]
pub struct Way {
    /// The group, a place in [`Schedule::groups`].
    pub group: u32,
    /// Its ranks in the order in which the algorithm counts them, and their places.
    members: Group,
    /// Its ranks are places in that order. Of sizes that fill fewer it has fewer channels and chunks.
    collective: Collective,
    chunks: Option<u32>,
    matrices: Matrices,
    /// The queue pair of the first edge of the first channel, a place in [`Goal::lines`](super::Goal::lines) where all carry something.
    first: u32,
    /// Where some carry nothing, and so are left out, the places that the others have.
    left: Option<Arc<[u32]>>,
}

/// Why a collective cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{does}` among {ranks} ranks: {what}")]
pub struct WayError {
    does: String,
    ranks: usize,
    what: String,
    /// The key of a scenario that is to blame.
    pub key: &'static str,
}

impl Way {
    /// What it does.
    pub const fn operation(&self) -> Operation {
        self.collective.operation
    }

    /// Its ranks, in the order in which the algorithm counts them.
    pub fn ranks(&self) -> &[u32] {
        &self.members.ranks
    }

    /// The place of a rank in that order.
    pub fn place(&self, rank: u32) -> Option<u32> {
        self.members.place(rank)
    }

    /// The same with so much. Its ranks are places in that order.
    pub fn of(&self, what: What) -> Collective {
        of_amount(&self.collective, self.chunks, what, &self.matrices)
    }

    /// How it does it.
    pub const fn algorithm(&self) -> Algorithm {
        self.collective.algorithm
    }

    /// The queue pair of an edge of a channel, a place in [`Goal::lines`](super::Goal::lines).
    pub fn line(&self, channel: u32, edge: u32) -> u32 {
        let line = self.first + channel * self.collective.schedule().edges() + edge;
        self.left.as_ref().map_or(line, |left| left[line as usize])
    }
}

/// A collective of a size or of what each rank has for each.
fn of_amount(of: &Collective, chunks: Option<u32>, what: What, matrices: &Matrices) -> Collective {
    match what.matrix.and_then(|place| matrices.get(&place)) {
        Some(matrix) => of_matrix(of, chunks, matrix),
        None => of_size(of, chunks, what.size),
    }
}

/// An all-to-all of what each rank has for each, in as many channels and chunks as the least of that fills with an octet each.
fn of_matrix(of: &Collective, chunks: Option<u32>, matrix: &Arc<Matrix>) -> Collective {
    let mut it = of.with_matrix(Arc::clone(matrix));
    let least = matrix.least().unwrap_or(0);
    let within = |most: u32, parts: u64| u32::try_from(parts.clamp(1, most.into())).unwrap_or(most);
    it.channels = within(it.channels, least);
    let longest = it.carried(0).iter().map(|carried| carried.sizes.1).max().unwrap_or(0);
    // Messages may have no more, even if those of few octets have none then.
    let needed = u32::try_from(longest.div_ceil(MESSAGE_MAX).max(1)).unwrap_or(CHUNKS_MAX).min(CHUNKS_MAX);
    let wanted = chunks.unwrap_or(needed);
    it.chunks = within(wanted, least / u64::from(it.channels)).max(needed.min(wanted));
    it
}

/// A collective of a size, in as many channels and chunks as that fills with an octet for each shard at least.
fn of_size(of: &Collective, chunks: Option<u32>, size: u64) -> Collective {
    let mut it = Collective { size: Bytes(size), ..of.clone() };
    let shards = u64::from(it.schedule().shards());
    let within = |most: u32, parts: u64| u32::try_from(parts.clamp(1, most.into())).unwrap_or(most);
    it.channels = within(it.channels, size / shards);
    let of_channel = size.div_ceil(it.channels.into());
    let chunks = chunks.unwrap_or_else(|| {
        let part = match (it.operation, it.algorithm) {
            (operation, _) if operation.is_chain() => PART,
            (_, Algorithm::Tree) => PART,
            _ => MESSAGE_MAX,
        };
        let longest = of_channel.div_ceil(shards).saturating_mul(it.schedule().longest().into());
        u32::try_from(longest.div_ceil(part).max(1)).unwrap_or(CHUNKS_MAX).min(CHUNKS_MAX)
    });
    it.chunks = within(chunks, of_channel / shards);
    it
}

/// The way of collectives by group, operation, root and what ranks have, by its place among all.
pub(super) type Places = BTreeMap<(u32, &'static str, u32, What), u32>;

/// The ways of all collectives; `lines` get their queue pairs, with all that these carry.
pub(super) fn ways(
    schedule: &Schedule,
    how: &How,
    placed: Placed<'_>,
    lines: &mut Vec<Line>,
) -> Result<(Vec<Way>, Places), WayError> {
    let mut ways: Vec<Way> = Vec::new();
    let mut places = Places::new();
    for Kind { group, members, operation, root, algorithm, sizes, matrices } in kinds(schedule, how, placed) {
        let collective = template(&members, (operation, root), algorithm, how);
        for &of in sizes.keys() {
            check(&of_amount(&collective, how.chunks, of, &matrices)).map_err(|(what, key)| WayError {
                does: Does::Collective { operation, size: of.size, group, root, number: 0 }.to_string(),
                ranks: members.len(),
                what,
                key,
            })?;
        }
        // Those that have their data go the same way share queue pairs.
        let alike = |way: &&Way| {
            let rooted = |it: &Collective| it.operation.has_root().then(|| (it.operation.name(), it.root));
            way.collective.algorithm == collective.algorithm
                && way.collective.channels == collective.channels
                && rooted(&way.collective) == rooted(&collective)
        };
        let of_group = ways.iter().rev().take_while(|way| way.group == group);
        let first = match of_group.filter(|way| way.ranks() == members).find(alike) {
            Some(way) => way.first,
            None => {
                let more = u64::from(collective.schedule().edges()) * u64::from(collective.channels);
                let first =
                    u32::try_from(lines.len()).ok().filter(|first| u64::from(*first) + more <= LINES_MAX);
                let first = first.ok_or_else(|| WayError {
                    does: operation.name().to_owned(),
                    ranks: members.len(),
                    what: format!(
                        "it takes {more} queue pairs, and a schedule has {LINES_MAX} at most; set another `algorithm`, or have fewer ranks"
                    ),
                    key: "algorithm",
                })?;
                add_lines(&members, &collective, lines);
                first
            }
        };
        let edges = collective.schedule().edges() as usize;
        for (&what, &count) in &sizes {
            let one = of_amount(&collective, how.chunks, what, &matrices);
            for (channel, lines) in (0..one.channels).zip(lines[first as usize..].chunks_mut(edges)) {
                let carried = one.carried(channel).into_iter().zip(one.octets_by_edge(channel));
                for (line, (Carried { messages, sizes }, octets)) in lines.iter_mut().zip(carried) {
                    line.add(messages * count, octets.saturating_mul(count), sizes.1);
                }
            }
        }
        let place = u32::try_from(ways.len()).unwrap_or(u32::MAX);
        places.extend(sizes.keys().map(|what| ((group, operation.name(), root, *what), place)));
        let (members, chunks) = (Group::new(members), how.chunks);
        ways.push(Way { group, members, collective, chunks, matrices, first, left: None });
    }
    leave_out(&mut ways, lines);
    Ok((ways, places))
}

/// Leaves out queue pairs that carry nothing: those of ranks that have nothing for one another, and of channels that no size fills.
fn leave_out(ways: &mut [Way], lines: &mut Vec<Line>) {
    if lines.iter().all(|line| line.messages > 0) {
        return;
    }
    let mut next = 0;
    let place = |line: &Line| {
        let place = next;
        next += u32::from(line.messages > 0);
        place
    };
    let left: Arc<[u32]> = lines.iter().map(place).collect();
    lines.retain(|line| line.messages > 0);
    for way in ways {
        way.left = Some(Arc::clone(&left));
    }
}

/// Collectives of a group that go one way.
struct Kind {
    group: u32,
    /// In the order in which the algorithm counts them.
    members: Vec<u32>,
    operation: Operation,
    root: u32,
    algorithm: Algorithm,
    /// How many there are of each size.
    sizes: Sizes,
    matrices: Matrices,
}

/// How many collectives have so much.
type Sizes = BTreeMap<What, u64>;

/// All of them, those of one group together; a rank by itself has nobody to send to, and none.
fn kinds(schedule: &Schedule, how: &How, placed: Placed<'_>) -> Vec<Kind> {
    let mut all = BTreeMap::<(u32, &str, u32), (Operation, Sizes)>::new();
    for &Joint { group, operation, root, size, matrix, .. } in &schedule.joint {
        let kind = all.entry((group, operation.name(), root)).or_insert_with(|| (operation, Sizes::new()));
        *kind.1.entry(What { size, matrix }).or_default() += 1;
    }
    let mut auto = how.auto.clone();
    if let Some(auto) = &mut auto {
        auto.network.send_from(placed.hosts);
    }
    let mut kinds = Vec::new();
    for ((group, name, root), (operation, sizes)) in all {
        let members = order(&schedule.groups[group as usize].ranks, operation, how.per_server);
        if members.len() < 2 {
            continue;
        }
        let matrices = matrices(schedule, group, &members, sizes.keys());
        let by_algorithm = match auto.as_mut().filter(|auto| auto.operations.contains(name)) {
            Some(auto) => {
                let weighed = Weighed { members: &members, kind: (operation, root), how, placed };
                weighed.by_algorithm(auto, &sizes, &matrices)
            }
            None => {
                let usual = operation.algorithms()[0];
                vec![(how.algorithms.get(name).copied().unwrap_or(usual), sizes)]
            }
        };
        kinds.extend(by_algorithm.into_iter().map(|(algorithm, sizes)| Kind {
            group,
            members: members.clone(),
            operation,
            root,
            algorithm,
            sizes,
            matrices: matrices.clone(),
        }));
    }
    kinds
}

/// What ranks have for one another, in the order of `members`.
fn matrices<'a>(
    schedule: &Schedule,
    group: u32,
    members: &[u32],
    all: impl Iterator<Item = &'a What>,
) -> Matrices {
    let listed = &schedule.groups[group as usize];
    let places: Vec<u32> = members.iter().filter_map(|rank| listed.place(*rank)).collect();
    let ordered = |place: u32| {
        let matrix = &schedule.matrices[place as usize];
        if members == listed.ranks { Arc::clone(matrix) } else { Arc::new(matrix.ordered(&places)) }
    };
    all.filter_map(|what| what.matrix).map(|place| (place, ordered(place))).collect()
}

/// Collectives of one kind whose algorithm is chosen.
struct Weighed<'a> {
    members: &'a [u32],
    kind: (Operation, u32),
    how: &'a How,
    placed: Placed<'a>,
}

impl Weighed<'_> {
    /// Their sizes by the algorithm that takes least for each.
    fn by_algorithm(&self, auto: &mut Auto, sizes: &Sizes, matrices: &Matrices) -> Vec<(Algorithm, Sizes)> {
        let Self { members, kind: (operation, root), how, placed } = *self;
        let hosts: Vec<HostId> = members.iter().map(|rank| placed.hosts[*rank as usize]).collect();
        let mut model =
            Model::new(&mut auto.network, &hosts, on_each_server(members, how.per_server), placed.listed);
        let all: Vec<_> = operation
            .weighed(members.len(), &auto.named)
            .into_iter()
            .map(|it| template(members, (operation, root), it, how))
            .collect();
        let mut chosen: Vec<(Algorithm, Sizes)> = Vec::new();
        for (&what, &count) in sizes {
            let candidates: Vec<_> = all.iter().map(|it| of_amount(it, how.chunks, what, matrices)).collect();
            let can_be_done = candidates.iter().filter(|it| check(it).is_ok());
            // What cannot be done at all is refused as what is usual.
            let fastest = model.fastest(can_be_done).map_or(operation.algorithms()[0], |it| it.algorithm);
            match chosen.iter_mut().find(|(algorithm, _)| *algorithm == fastest) {
                Some((_, sizes)) => _ = sizes.insert(what, count),
                None => chosen.push((fastest, Sizes::from([(what, count)]))),
            }
        }
        chosen
    }
}

/// The order in which algorithms count a group's ranks: that of the list, but where several share a server those of one server come together, except where
/// there is a root, whose number is that of the list and which knows no servers.
fn order(ranks: &[u32], operation: Operation, per_server: u32) -> Vec<u32> {
    let mut order = ranks.to_vec();
    if per_server > 1 && !operation.has_root() {
        order.sort_unstable();
    }
    order
}

/// A kind of collectives of `members`, of no size yet.
fn template(
    members: &[u32],
    (operation, root): (Operation, u32),
    algorithm: Algorithm,
    how: &How,
) -> Collective {
    let per_server = on_each_server(members, how.per_server);
    let mut it = Collective {
        operation,
        algorithm: match algorithm {
            // There are no rails to keep to.
            Algorithm::Pxn if per_server == 1 => Algorithm::Direct,
            other => other,
        },
        ranks: (0u16..).map(HostId).take(members.len()).collect(),
        per_server,
        root,
        shuffled: false,
        size: Bytes(0),
        amounts: None,
        channels: 1,
        chunks: 1,
        iterations: 1,
        gap: Span::ZERO,
        start: Instant::ZERO,
        common: Common::default(),
    };
    if !it.knows_servers() {
        it.per_server = 1;
    }
    it.channels = how.channels.unwrap_or(match it.algorithm {
        // Each channel takes another NIC of a server.
        Algorithm::Ring | Algorithm::Tree => it.per_server.min(CHANNELS_MAX),
        // One takes all of them.
        Algorithm::Pxn | Algorithm::Direct | Algorithm::HalvingDoubling => 1,
    });
    it
}

/// How many of `members` share a server, of which each has so many ranks in a row; 1 where that differs from server to server.
fn on_each_server(members: &[u32], per_server: u32) -> u32 {
    let mut together = members.chunk_by(|a, b| a / per_server == b / per_server).map(<[u32]>::len);
    let first = together.next().unwrap_or(1);
    if together.all(|other| other == first) { u32::try_from(first).unwrap_or(1) } else { 1 }
}

/// Whether it can be done; else why not, and the key to change.
fn check(collective: &Collective) -> Result<(), (String, &'static str)> {
    if collective.size.0 > SIZE_MAX {
        return Err((
            format!("{} octets in all, and 1TiB is the most; split it up", collective.size.0),
            "file",
        ));
    }
    match collective.check() {
        // Empty messages are sent as well as others, and of what ranks have for nobody there is none.
        Ok(())
        | Err(CollectiveFault::TooSmall { .. } | CollectiveFault::TooFew(..) | CollectiveFault::Nothing) => {
            Ok(())
        }
        Err(fault @ CollectiveFault::NoPowerOfTwo(_)) => Err((
            format!(
                "`halving-doubling` is for powers of two; set `algorithm = {{ {} = \"ring\" }}`",
                collective.operation.name()
            ),
            fault.key(),
        )),
        Err(fault @ CollectiveFault::TooLong { .. }) => Err((fault.to_string(), "chunks")),
        Err(fault) => Err((fault.to_string(), fault.key())),
    }
}

/// Adds the queue pairs of all channels, which carry nothing yet.
fn add_lines(members: &[u32], collective: &Collective, lines: &mut Vec<Line>) {
    let steps = collective.schedule();
    for channel in 0..collective.channels {
        let member = |place| members[collective.rank_at(channel, place) as usize];
        lines.extend((0..steps.edges()).map(|edge| {
            let (from, to) = steps.ends(edge);
            Line::empty(member(from), member(to))
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Goal;
    use super::*;
    use crate::traffic::collective::Packets;
    use roci_fabric::topology::Star;
    use roci_units::BitsPerSec;
    use std::sync::Arc;

    #[test]
    fn groups_know_servers_where_they_have_as_many_ranks_on_each() {
        let of = |members: &[u32]| on_each_server(members, 4);
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7]), 4);
        assert_eq!(of(&[0, 1, 4, 5]), 2);
        assert_eq!(of(&[1, 2, 3]), 3, "all of one server");
        assert_eq!(of(&[0, 4, 8]), 1, "one rail");
        assert_eq!(of(&[0, 1, 4]), 1, "uneven");
        assert_eq!(on_each_server(&[0, 1, 2], 1), 1);
    }

    /// Eight ranks that do these, one after the other.
    fn goal(lines: &str) -> Goal {
        let blocks: String = (0..8).map(|rank| format!("rank {rank} {{\n{lines}\n}}\n")).collect();
        let schedule = Schedule::read(format!("num_ranks 8\n{blocks}").as_bytes()).expect("a schedule");
        let hosts = (0u16..8).map(HostId).collect();
        Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("a host for each")
    }

    fn how(algorithms: &[(&'static str, Algorithm)], per_server: u32) -> How {
        How { algorithms: algorithms.iter().copied().collect(), per_server, ..How::default() }
    }

    #[test]
    fn collectives_of_one_kind_share_queue_pairs_which_carry_all_of_them() {
        let mut goal = goal("all-reduce 800b\nall-reduce 80b\nall-gather 8b\nsend 8b to 0\nall-to-all 8b");
        assert_eq!(goal.lines().len(), 7, "those of sends");
        goal.set_how(&How::default()).expect("they can be done");
        // A ring, and each to each other.
        assert_eq!(goal.lines().len(), 7 + 8 + 8 * 7);
        let (_, sum) = goal.way(0).expect("a way");
        let (_, gather) = goal.way(2).expect("a way");
        assert_eq!((sum.line(0, 3), gather.line(0, 3)), (10, 10));
        let line = goal.lines()[10];
        // 2 (n - 1) shards of each sum, and n - 1 of what is gathered.
        assert_eq!((line.from, line.to, line.messages, line.octets), (3, 4, 14 + 14 + 7, 14 * 110 + 7));
        assert_eq!(line.longest, 100);
        assert!(goal.is_joint(10) && !goal.is_joint(6));
        let servers = how(&[("all-to-all", Algorithm::Pxn)], 4);
        goal.set_how(&servers).expect("they can be done");
        // Four rings, one for each NIC of a server; each to three of its server and to one of the other.
        assert_eq!(goal.lines().len(), 7 + 4 * 8 + 8 * 4);
        goal.set_how(&how(&[("all-to-all", Algorithm::Pxn)], 1)).expect("they can be done");
        assert_eq!(goal.lines().len(), 7 + 8 + 8 * 7, "without servers all at once");
    }

    #[test]
    fn what_queue_pairs_carry_is_what_the_steps_send() {
        for (name, algorithms) in Operation::ALL.map(|it| (it.name(), it.algorithms())) {
            for &algorithm in algorithms {
                let mut goal = goal(&format!("{name} 1003b\n{name} 7b"));
                let how = How { chunks: Some(3), channels: Some(2), ..how(&[(name, algorithm)], 2) };
                goal.set_how(&how).expect("it can be done");
                let mut sent = vec![(0, 0); goal.lines().len()];
                // Of seven octets there are fewer channels and chunks.
                for (number, size) in [(0, 1003), (1, 7)] {
                    let (_, way) = goal.way(number).expect("a way");
                    let one = way.of(What { size, matrix: None });
                    let steps = one.schedule();
                    for (channel, rank, step) in (0..one.channels)
                        .flat_map(|channel| (0..8).map(move |rank| (channel, rank)))
                        .flat_map(|(channel, rank)| (0..steps.steps()).map(move |step| (channel, rank, step)))
                    {
                        let Some(message) = steps.message(one.place_of(channel, rank), step) else {
                            continue;
                        };
                        let line = way.line(channel, message.edge);
                        assert_eq!(goal.lines()[line as usize].from, rank);
                        for chunk in 0..one.chunks {
                            let sent = &mut sent[line as usize];
                            *sent = (sent.0 + 1, sent.1 + one.octets(channel, chunk, &message));
                        }
                    }
                }
                let carried: Vec<_> = goal.lines().iter().map(|line| (line.messages, line.octets)).collect();
                assert_eq!(carried, sent, "{name} by {algorithm:?}");
            }
        }
    }

    #[test]
    fn each_size_goes_the_way_that_takes_least_for_it() {
        let star =
            Star { hosts: 8, rate: BitsPerSec::from_gbps(100), delay: Span::from_micros(1) }.build().unwrap();
        let network = Network::of(&star, Packets { mtu: 4096, around: 82, acknowledges: 86 });
        let auto = Auto { operations: ["all-reduce"].into_iter().collect(), named: Vec::new(), network };
        let how = How { auto: Some(auto), ..How::default() };
        // Six of the ranks: no power of two.
        let lines = "all-reduce 600b group 0\nall-reduce 900000000b group 0\nall-reduce 600b group 0\nall-gather 600b group 0";
        let blocks: String = (0..6).map(|rank| format!("rank {rank} {{\n{lines}\n}}\n")).collect();
        let schedule = Schedule::read(format!("num_ranks 8\ngroup 0: 0-5\n{blocks}").as_bytes()).unwrap();
        let hosts = (0u16..8).map(HostId).collect();
        let mut goal = Goal::new(Arc::new(schedule), hosts, false, Common::default()).unwrap();
        goal.set_how(&how).expect("they can be done");
        let ways: Vec<_> = (0..4).map(|number| goal.way(number).expect("a way")).collect();
        assert_eq!(
            ways.iter().map(|(_, way)| way.algorithm()).collect::<Vec<_>>(),
            [Algorithm::Tree, Algorithm::Ring, Algorithm::Tree, Algorithm::Ring]
        );
        assert_eq!(ways[0].0, ways[2].0);
        // The long sum shares its ring with the all-gather, and the short ones have their trees.
        assert_eq!(ways[1].1.line(0, 0), ways[3].1.line(0, 0));
        assert_ne!(ways[0].1.line(0, 0), ways[1].1.line(0, 0));
        assert_eq!(goal.lines()[ways[0].1.line(0, 0) as usize].messages, 2);
    }

    #[test]
    fn data_are_cut_up_where_ranks_send_on_what_they_have_and_no_smaller_than_they_are() {
        let parts = |lines: &str, how: &How, size: u64| {
            let mut goal = goal(&format!("{lines} {size}b"));
            goal.set_how(how).expect("it can be done");
            let one = goal.way(0).expect("a way").1.of(What { size, matrix: None });
            (one.channels, one.chunks)
        };
        let usual = How::default();
        assert_eq!(parts("broadcast", &usual, 10 << 20), (1, 20));
        assert_eq!(parts("all-reduce", &usual, 10 << 20), (1, 1));
        // Half of the data for each of two trees.
        assert_eq!(parts("all-reduce", &how(&[("all-reduce", Algorithm::Tree)], 1), 10 << 20), (1, 10));
        assert_eq!(parts("all-reduce", &usual, 1 << 34), (1, 2), "messages of 1 GiB");
        let many = How { channels: Some(4), chunks: Some(16), ..How::default() };
        assert_eq!(parts("all-reduce", &many, 1 << 20), (4, 16));
        assert_eq!(parts("all-reduce", &many, 100), (4, 3));
        assert_eq!(parts("all-reduce", &many, 8), (1, 1));
        assert_eq!(parts("all-reduce", &many, 0), (1, 1));
    }

    #[test]
    fn ranks_of_one_server_come_together_in_whichever_order_a_group_lists_them() {
        let text = |list: &str| {
            let blocks: String = (0..8)
                .map(|rank| format!("rank {rank} {{\nall-reduce 80b group 0\nbroadcast 8b group 0\n}}\n"))
                .collect();
            format!("num_ranks 8\ngroup 0: {list}\n{blocks}")
        };
        let order = |list: &str, per_server| {
            let schedule = Schedule::read(text(list).as_bytes()).expect("a schedule");
            let hosts = (0u16..8).map(HostId).collect();
            let mut goal =
                Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("a host for each");
            goal.set_how(&how(&[], per_server)).expect("it can be done");
            [0, 1].map(|number| goal.way(number).expect("a way").1.ranks().to_vec())
        };
        let (listed, sorted) = (vec![0, 4, 1, 5, 2, 6, 3, 7], (0..8).collect::<Vec<_>>());
        assert_eq!(order("0 4 1 5 2 6 3 7", 4), [sorted, listed.clone()]);
        assert_eq!(order("0 4 1 5 2 6 3 7", 1), [listed.clone(), listed]);
    }

    #[test]
    fn what_cannot_be_done_is_told_with_the_key_to_change() {
        let told = |lines: &str, how: &How| {
            let error = goal(lines).set_how(how).expect_err("it cannot be done");
            (error.key, error.to_string())
        };
        let (key, error) = told("all-reduce 1100000000000b", &How::default());
        assert_eq!(key, "file");
        assert!(
            error.starts_with("`all-reduce 1100000000000b` among 8 ranks:")
                && error.contains("1TiB is the most"),
            "{error}"
        );
        let whole = How { chunks: Some(1), ..How::default() };
        let (key, error) = told("all-reduce 17179869184b", &whole);
        assert_eq!(key, "chunks");
        assert!(
            error.contains("messages of 2GiB, and 1GiB is the most; set `chunks` to 2 or more"),
            "{error}"
        );
        let (key, error) = told("all-reduce 8b", &how(&[("all-reduce", Algorithm::Direct)], 1));
        assert!(key == "algorithm" && error.contains("has no algorithm `direct`"), "{error}");
        let each: String = (0..5000).map(|rank| format!("rank {rank} {{\nall-to-all 8b\n}}\n")).collect();
        let schedule = Schedule::read(format!("num_ranks 5000\n{each}").as_bytes()).expect("a schedule");
        let hosts = (0u16..5000).map(HostId).collect();
        let mut goal =
            Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("a host for each");
        let error = goal.set_how(&How::default()).expect_err("each sends to each").to_string();
        assert!(error.contains("`all-to-all` among 5000 ranks: it takes 24995000 queue pairs"), "{error}");
        let three = "num_ranks 3\nrank 0 {\nall-reduce 8b\n}\nrank 1 {\nall-reduce 8b\n}\nrank 2 {\nall-reduce 8b\n}\n";
        let schedule = Schedule::read(three.as_bytes()).expect("a schedule");
        let hosts = (0u16..3).map(HostId).collect();
        let mut goal =
            Goal::new(Arc::new(schedule), hosts, false, Common::default()).expect("a host for each");
        let error = goal
            .set_how(&how(&[("all-reduce", Algorithm::HalvingDoubling)], 1))
            .expect_err("no power of two");
        assert!(error.to_string().contains("set `algorithm = { all-reduce = \"ring\" }`"), "{error}");
    }
}
