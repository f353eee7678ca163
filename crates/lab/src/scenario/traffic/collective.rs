//! `kind = "collective"`.

use super::super::read::Table;
use super::super::source::{Located, ScenarioError};
use super::super::topology::split;
use super::Reading;
use super::amounts::Said;
use crate::traffic::collective::{Algorithm, CHUNKS_MAX, Collective, CollectiveFault, Model, Operation};
use crate::traffic::jobs::AMOUNTS_STREAMS;
use crate::traffic::spec::{Common, Op, Traffic};
use roci_fabric::packet::HostId;
use roci_units::Random;

/// The most octets of a rank's data: 1 TiB.
const SIZE_MAX: u64 = 1 << 40;

const OPERATIONS: [(&str, Operation); 8] = [
    ("all-reduce", Operation::AllReduce),
    ("reduce-scatter", Operation::ReduceScatter),
    ("all-gather", Operation::AllGather),
    ("all-to-all", Operation::AllToAll),
    ("broadcast", Operation::Broadcast),
    ("reduce", Operation::Reduce),
    ("gather", Operation::Gather),
    ("scatter", Operation::Scatter),
];

/// `auto` is none of them, but has the one chosen that takes least.
pub(super) const ALGORITHMS: [(&str, Option<Algorithm>); 6] = [
    ("ring", Some(Algorithm::Ring)),
    ("halving-doubling", Some(Algorithm::HalvingDoubling)),
    ("tree", Some(Algorithm::Tree)),
    ("direct", Some(Algorithm::Direct)),
    ("pxn", Some(Algorithm::Pxn)),
    ("auto", None),
];

/// How ranks come to their hosts: whether at random.
pub(super) const PLACEMENTS: [(&str, bool); 2] = [("listed", false), ("random", true)];

impl Reading<'_> {
    pub(super) fn collective(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common =
            Common { op: Op::Write, priority: table.priority("priority")?, control: self.control(table)? };
        let operation = table.require("operation", table.word("operation", &OPERATIONS)?)?;
        let listed = table.texts("hosts")?;
        let ranks = match &listed {
            None => {
                self.several_hosts(table)?;
                (0u16..).map(HostId).take(self.names.host_count()).collect()
            }
            Some(names) => {
                let hosts = names.iter().map(|name| self.names.host(table.source, name));
                hosts.collect::<Result<Vec<_>, _>>()?
            }
        };
        let usual = operation.algorithms()[0];
        let algorithm = table.word("algorithm", &ALGORITHMS)?.unwrap_or(Some(usual));
        let shuffled = table.word("placement", &PLACEMENTS)?.unwrap_or(false);
        let root = table.count("root", 0..=65_534)?;
        if root.is_some() && !operation.has_root() {
            let message = format!("`{}` has no root", operation.name());
            return Err(table.refuse("root", message, "leave it out"));
        }
        let Said { size, amounts } = Said::read(table, operation, SIZE_MAX)?;
        let mut one = Collective {
            operation,
            algorithm: algorithm.unwrap_or(usual),
            ranks,
            per_server: 1,
            root: root.unwrap_or(0),
            shuffled,
            size,
            amounts,
            channels: table.count("channels", 1..=256)?.unwrap_or(1),
            chunks: table.count("chunks", 1..=CHUNKS_MAX)?.unwrap_or(1),
            iterations: table.count("iterations", 1..=1_000_000)?.unwrap_or(1),
            gap: table.span("gap")?.unwrap_or_default(),
            start: self.start(table)?,
            common,
        };
        let per_server = table.count("ranks_per_server", 1..=65_535)?;
        let of_topology = self.names.per_server().filter(|_| listed.is_none() && !shuffled);
        let named = named_algorithms(table, || algorithm.is_none().then_some(operation).into_iter())?;
        if algorithm.is_none() {
            one = self.fastest(one, &named, per_server, of_topology.unwrap_or(1));
        } else {
            one.per_server = per_server.or(of_topology.filter(|_| one.knows_servers())).unwrap_or(1);
        }
        one.check().map_err(|fault| {
            let (message, remedy) = split(&fault.to_string());
            // The second place of a host in the list says more than where the list begins.
            let twice = match fault {
                CollectiveFault::TwoRanks(host) => listed.as_ref().and_then(|names| {
                    let places = names.iter().zip(&one.ranks).filter(|(_, rank)| **rank == host);
                    places.map(|(name, _)| name).nth(1)
                }),
                _ => None,
            };
            match twice {
                Some(name) => {
                    table.source.error(name.origin, format!("`{}` has two ranks", name.value), remedy)
                }
                None => table.refuse(fault.key(), message, remedy),
            }
        })?;
        Ok(Traffic::Collective(one))
    }

    /// `one` by the algorithm that takes least, of those that are `named` if any are, where so many ranks share a server as the table says or else is usual. Of what none can do, that which
    /// is refused with the reason of what would be nearest.
    fn fastest(
        &self,
        one: Collective,
        named: &[Algorithm],
        per_server: Option<u32>,
        usual: u32,
    ) -> Collective {
        let mut all = one.by_each(per_server.unwrap_or(usual), named);
        if let Some(per_server) = per_server.filter(|it| *it > 1) {
            let knows = all.iter().find(|it| it.knows_servers());
            let one = knows.cloned().unwrap_or(Collective { per_server, ..one.clone() });
            if matches!(
                one.check(),
                Err(CollectiveFault::UnevenServers(..) | CollectiveFault::KnowsNoServers(..))
            ) {
                return one;
            }
        }
        let mut network = self.network();
        network.send_from(&one.ranks);
        let mut model = Model::new(&mut network, &one.ranks, per_server.unwrap_or(usual), !one.shuffled);
        // What is drawn by the seed of a run is much alike in all.
        let typical: Vec<Collective> = all.iter().filter(|it| it.check().is_ok()).map(typical).collect();
        if let Some(fastest) = model.fastest(typical.iter()) {
            return Collective { size: one.size, amounts: one.amounts, ..fastest.clone() };
        }
        let wanted = |it: &Collective| match it.check() {
            Ok(()) => 0,
            Err(CollectiveFault::TooSmall { messages, .. }) => messages,
            Err(_) => u64::MAX,
        };
        // Of several the first, which is the usual one.
        all.sort_by_key(wanted);
        all.into_iter().next().unwrap_or(one)
    }
}

fn typical(one: &Collective) -> Collective {
    one.drawn(Random::new(0, AMOUNTS_STREAMS))
}

/// The algorithms that the table lists for `auto` to choose among; `of` are the operations that it chooses for.
pub(super) fn named_algorithms<T: Iterator<Item = Operation>>(
    table: Table<'_>,
    of: impl Fn() -> T,
) -> Result<Vec<Algorithm>, ScenarioError> {
    let Some(names) = table.texts("algorithms")? else { return Ok(Vec::new()) };
    if of().next().is_none() {
        let message = "`algorithms` is what `auto` chooses among, and nothing is left to it";
        return Err(table.refuse("algorithms", message, "set `algorithm = \"auto\"`, or leave it out"));
    }
    if names.is_empty() {
        let remedy = "name an algorithm or several, or leave it out";
        return Err(table.refuse("algorithms", "`algorithms` names none to choose among", remedy));
    }
    let its = ALGORITHMS.into_iter().filter_map(|(name, it)| Some((name, it?)));
    let valid: Vec<_> =
        its.filter(|(_, it)| of().any(|operation| operation.algorithms().contains(it))).collect();
    let find = |name: &Located<String>| match valid.iter().find(|(valid, _)| *valid == name.value) {
        Some((_, algorithm)) => Ok(*algorithm),
        None => Err(table.unknown_word("algorithm to choose", name, valid.iter().map(|(name, _)| *name))),
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{parse, star};
    use super::*;
    use roci_units::{Bytes, Instant, Span};

    fn with(lines: &str) -> String {
        star(&format!("[[traffic]]\nkind = \"collective\"\n{lines}"))
    }

    #[test]
    fn a_collective_is_among_all_hosts_in_one_ring_unless_it_says_otherwise() {
        let scenario = parse(&with("operation = \"all-reduce\"\nsize = \"1MB\"\n")).unwrap();
        let Traffic::Collective(usual) = &scenario.traffic[0] else { panic!("a collective") };
        assert_eq!(usual.ranks.len(), scenario.topology.graph.hosts.len());
        assert_eq!((usual.algorithm, usual.shuffled), (Algorithm::Ring, false));
        assert_eq!((usual.channels, usual.chunks, usual.iterations, usual.gap), (1, 1, 1, Span::ZERO));
        let lines = "operation = \"all-gather\"\nalgorithm = \"halving-doubling\"\nhosts = [\"h1\", \"h0\"]\nsize = \"4KiB\"\n\
            channels = 2\nchunks = 3\niterations = 4\ngap = \"5us\"\nstart = \"6us\"\nplacement = \"random\"\npriority = 2\n";
        let scenario = parse(&with(lines)).unwrap();
        let Traffic::Collective(one) = &scenario.traffic[0] else { panic!("a collective") };
        let expected = Collective {
            operation: Operation::AllGather,
            algorithm: Algorithm::HalvingDoubling,
            ranks: vec![HostId(1), HostId(0)],
            per_server: 1,
            root: 0,
            shuffled: true,
            size: Bytes(4096),
            amounts: None,
            channels: 2,
            chunks: 3,
            iterations: 4,
            gap: Span::from_micros(5),
            start: Instant::ZERO + Span::from_micros(6),
            common: Common { op: Op::Write, priority: Some(2), control: None },
        };
        assert_eq!(*one, expected);
    }

    #[test]
    fn the_algorithms_that_are_chosen_among_may_be_named() {
        let of = |lines: &str| {
            let star = "topology = { kind = \"star\", hosts = 8, rate = \"100Gb/s\", delay = \"1us\" }";
            parse(&format!("{star}\n[[traffic]]\nkind = \"collective\"\noperation = \"all-reduce\"\n{lines}"))
        };
        let chosen = |lines: &str| {
            let scenario = of(&format!("algorithm = \"auto\"\n{lines}")).expect("a collective");
            let Traffic::Collective(one) = &scenario.traffic[0] else { panic!("a collective") };
            one.algorithm
        };
        assert_eq!(chosen("size = \"1KB\""), Algorithm::HalvingDoubling);
        assert_eq!(chosen("size = \"1KB\"\nalgorithms = [\"ring\", \"tree\"]"), Algorithm::Tree);
        assert_eq!(chosen("size = \"1KB\"\nalgorithms = [\"ring\"]"), Algorithm::Ring);
        for (lines, message, remedy) in [
            ("algorithms = [\"ring\"]", "nothing is left to it", "`algorithm = \"auto\"`"),
            ("algorithm = \"ring\"\nalgorithms = [\"ring\"]", "nothing is left to it", "leave it out"),
            ("algorithm = \"auto\"\nalgorithms = []", "names none", "name an algorithm"),
            (
                "algorithm = \"auto\"\nalgorithms = [\"ring\", \"direct\"]",
                "there is no algorithm to choose `direct`",
                "those that exist are `ring`, `halving-doubling` and `tree`",
            ),
            ("algorithm = \"auto\"\nalgorithms = [\"auto\"]", "`auto`", "`tree`"),
        ] {
            let error = of(&format!("size = \"1KB\"\n{lines}")).expect_err(lines).to_string();
            assert!(error.contains(message) && error.contains(remedy), "{lines}: {error}");
        }
    }

    #[test]
    fn the_algorithm_may_be_chosen_by_size() {
        let chosen = |lines: &str| {
            let star = "topology = { kind = \"star\", hosts = 12, rate = \"100Gb/s\", delay = \"1us\" }";
            let text = format!("{star}\n[[traffic]]\nkind = \"collective\"\nalgorithm = \"auto\"\n{lines}");
            let scenario = parse(&text).expect("a collective");
            let Traffic::Collective(one) = &scenario.traffic[0] else { panic!("a collective") };
            (one.algorithm, one.per_server)
        };
        let sum = "operation = \"all-reduce\"\n";
        assert_eq!(chosen(&format!("{sum}size = \"1KB\"")), (Algorithm::Tree, 1));
        assert_eq!(chosen(&format!("{sum}size = \"100MB\"\nchunks = 64")), (Algorithm::Ring, 1));
        // What knows no servers is told of none.
        let two = "operation = \"all-to-all\"\nranks_per_server = 2\n";
        assert_eq!(chosen(&format!("{two}size = \"1KB\"")), (Algorithm::Direct, 1));
        assert_eq!(chosen("operation = \"broadcast\"\nsize = \"1KB\""), (Algorithm::Ring, 1));
        let error = parse(&with("operation = \"all-reduce\"\nalgorithm = \"auto\"\nsize = 1\n")).unwrap_err();
        assert!(error.to_string().contains("fewer octets than there are messages"), "{error}");
        let told = |lines: &str| {
            let star = "topology = { kind = \"star\", hosts = 12, rate = \"100Gb/s\", delay = \"1us\" }";
            let text = format!("{star}\n[[traffic]]\nkind = \"collective\"\nalgorithm = \"auto\"\n{lines}");
            parse(&text).expect_err("no collective").to_string()
        };
        // By the algorithm that wants the fewest.
        let error = told(&format!("{sum}size = 1"));
        assert!(error.contains("set `size` to 2 octets or more"), "{error}");
        let error = told(&format!("{sum}size = \"1MB\"\nranks_per_server = 5"));
        assert!(error.contains("not divided evenly into servers of 5"), "{error}");
        let error = told("operation = \"broadcast\"\nsize = \"1MB\"\nranks_per_server = 2");
        assert!(error.contains("`broadcast` by `ring` knows no servers"), "{error}");
    }

    #[test]
    fn a_collective_that_cannot_be_is_refused_where_it_says_so_and_with_a_remedy() {
        let told = |lines: &str| parse(&with(lines)).unwrap_err().to_string();
        let sum = "operation = \"all-reduce\"\nsize = \"1MB\"\n";
        for (lines, message, remedy) in [
            (format!("{sum}hosts = [\"h0\"]\n"), "a collective among 1 hosts", "list more `hosts`"),
            (
                format!("{sum}ranks_per_server = 3\n"),
                "4 ranks are not divided evenly into servers of 3",
                "list a multiple of 3 `hosts`",
            ),
            (
                format!("{sum}algorithm = \"halving-doubling\"\nranks_per_server = 2\n"),
                "`all-reduce` by `halving-doubling` knows no servers",
                "leave it out",
            ),
            (
                "operation = \"all-to-all\"\nsize = \"1MB\"\nalgorithm = \"pxn\"\n".to_owned(),
                "each server has one rank",
                "set `ranks_per_server` to 2 or more",
            ),
            (
                format!("{sum}hosts = [\"h0\", \"h1\", \"h0\"]\n"),
                "`h0` has two ranks",
                "list each of `hosts` once",
            ),
            (
                format!("{sum}hosts = [\"h0\", \"h1\", \"h2\"]\nalgorithm = \"halving-doubling\"\n"),
                "3 ranks, which is no power of two",
                "list 2 or 4 of `hosts`",
            ),
            (
                "operation = \"all-reduce\"\nsize = 2\n".to_owned(),
                "2B are fewer octets than there are messages",
                "octets or more",
            ),
            (
                format!("{sum}algorithm = \"direct\"\n"),
                "`all-reduce` has no algorithm `direct`",
                "`ring`, `halving-doubling`",
            ),
            (format!("{sum}root = 1\n"), "`all-reduce` has no root", "leave it out"),
            (
                "operation = \"reduce\"\nsize = \"1MB\"\nroot = 4\n".to_owned(),
                "there is no rank 4 to be the root",
                "name one of 0 to 3",
            ),
            (
                "operation = \"allreduce\"\nsize = 2\n".to_owned(),
                "there is no operation `allreduce`",
                "did you mean `all-reduce`?",
            ),
            (format!("{sum}op = \"read\"\n"), "op", ""),
        ] {
            let error = told(&lines);
            assert!(error.contains(message) && error.contains(remedy), "{lines}: {error}");
        }
    }
}
