//! `kind = "goal"`.

use super::super::read::Table;
use super::super::source::ScenarioError;
use super::super::topology::split;
use super::super::tree::Kind;
use super::super::{file, keys};
use super::Reading;
use super::collective::{ALGORITHMS, PLACEMENTS, named_algorithms};
use crate::traffic::collective::{Algorithm, CHUNKS_MAX, Operation};
use crate::traffic::goal::{Auto, Goal, How, PlacementError, Schedule};
use crate::traffic::spec::{Common, Op, Traffic};
use roci_fabric::packet::HostId;
use std::collections::{BTreeMap, BTreeSet};

/// What has queue pairs of its own between two ranks.
const QUEUE_PAIRS: [(&str, bool); 2] = [("pair", false), ("tag", true)];

impl Reading<'_> {
    pub(super) fn goal(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common =
            Common { op: Op::Write, priority: table.priority("priority")?, control: self.control(table)? };
        let name = table.require("file", table.text("file")?)?;
        let octets = file::octets(table.source, &name)?;
        let schedule = Schedule::read_shared(&octets).map_err(|error| {
            let (message, remedy) = split(&error.to_string());
            table.refuse("file", format!("{}: {message}", name.value), remedy)
        })?;
        let listed = table.texts("hosts")?;
        let hosts = match &listed {
            // The first hosts, so that a schedule may be smaller than the network.
            None => (0u16..).map(HostId).take(self.names.host_count().min(schedule.ranks.len())).collect(),
            Some(names) => {
                let hosts = names.iter().map(|name| self.names.host(table.source, name));
                hosts.collect::<Result<Vec<_>, _>>()?
            }
        };
        let by_tag = table.word("queue_pairs", &QUEUE_PAIRS)?.unwrap_or(false);
        let mut goal = Goal::new(schedule, hosts, by_tag, common).map_err(|error| {
            let (message, remedy) = split(&error.to_string());
            match (error, &listed) {
                (PlacementError::Count { .. }, None) => table.refuse(
                    "file",
                    format!("{}: {message}", name.value),
                    "enlarge the topology, or name a schedule of fewer ranks",
                ),
                _ => table.refuse("hosts", message, remedy),
            }
        })?;
        goal.shuffled = table.word("placement", &PLACEMENTS)?.unwrap_or(false);
        goal.unit = table.span("calc_unit")?.unwrap_or(goal.unit);
        goal.overhead = table.span("overhead")?.unwrap_or(goal.overhead);
        goal.overhead_per_octet = table.span("overhead_per_octet")?.unwrap_or(goal.overhead_per_octet);
        goal.eager = table.bytes("eager", 0..=u64::MAX)?.unwrap_or(goal.eager);
        goal.replays = table.flag("replays")?.unwrap_or(goal.replays);
        goal.start = self.start(table)?;
        let usual = self.names.per_server().filter(|_| listed.is_none() && !goal.shuffled);
        let (algorithms, auto) = algorithms(table, &goal.schedule)?;
        let of_auto = || Operation::ALL.into_iter().filter(|operation| auto.contains(operation.name()));
        let named = named_algorithms(table, of_auto)?;
        let how = How {
            algorithms,
            auto: (!auto.is_empty()).then(|| Auto {
                operations: auto.clone(),
                named,
                network: self.network(),
            }),
            channels: table.count("channels", 1..=256)?,
            chunks: table.count("chunks", 1..=CHUNKS_MAX)?,
            per_server: ranks_per_server(table, &goal.schedule)?.or(usual).unwrap_or(1),
        };
        goal.set_how(&how).map_err(|error| {
            let (message, remedy) = split(&error.to_string());
            table.refuse(error.key, format!("{}: {message}", name.value), remedy)
        })?;
        Ok(Traffic::Goal(goal))
    }
}

/// How many ranks share a server, if the table says so.
fn ranks_per_server(table: Table<'_>, schedule: &Schedule) -> Result<Option<u32>, ScenarioError> {
    let Some(count) = table.count("ranks_per_server", 1..=65_535)? else { return Ok(None) };
    let ranks = schedule.ranks.len();
    if ranks.is_multiple_of(count as usize) {
        return Ok(Some(count));
    }
    let message = format!("{ranks} ranks are not divided evenly into servers of {count}");
    Err(table.refuse("ranks_per_server", message, "name a number that divides them"))
}

/// The algorithms that a table names by operation, and the operations whose algorithm is to be chosen.
type Algorithms = (BTreeMap<&'static str, Algorithm>, BTreeSet<&'static str>);

/// The algorithms that a table names: one for all operations that have it, or one for each.
fn algorithms(table: Table<'_>, schedule: &Schedule) -> Result<Algorithms, ScenarioError> {
    let (mut algorithms, mut auto) = (BTreeMap::new(), BTreeSet::new());
    let has = |operation: Operation, algorithm: Option<Algorithm>| {
        algorithm.is_none_or(|it| operation.algorithms().contains(&it))
    };
    if !matches!(table.get("algorithm").map(|node| &node.kind), Some(Kind::Table(_))) {
        let Some(one) = table.word("algorithm", &ALGORITHMS)? else { return Ok((algorithms, auto)) };
        let with: Vec<_> = Operation::ALL.into_iter().filter(|operation| has(*operation, one)).collect();
        let names = with.iter().map(|operation| operation.name());
        match one {
            Some(one) => algorithms.extend(names.clone().map(|name| (name, one))),
            None => auto.extend(names.clone()),
        }
        let occurs = |name: &str| schedule.joint.iter().any(|it| it.operation.name() == name);
        if !names.clone().any(occurs) {
            let message = one.map_or_else(
                || "the schedule has no collectives".to_owned(),
                |one| format!("no collective of the schedule has the algorithm `{}`", one.name()),
            );
            return Err(table.refuse("algorithm", message, "name one for each operation, or leave it out"));
        }
    } else if let Some(each) = table.table("algorithm", &keys::GOAL_ALGORITHM)? {
        for operation in Operation::ALL {
            let words: Vec<_> = ALGORITHMS.into_iter().filter(|(_, it)| has(operation, *it)).collect();
            match each.word(operation.name(), &words)? {
                Some(Some(algorithm)) => _ = algorithms.insert(operation.name(), algorithm),
                Some(None) => _ = auto.insert(operation.name()),
                None => {}
            }
        }
    }
    Ok((algorithms, auto))
}

#[cfg(test)]
mod tests {
    use super::super::super::Scenario;
    use super::super::super::source::Source;
    use super::super::super::tests::star;
    use super::*;
    use roci_units::{Bytes, Instant, Span};
    use std::sync::Arc;

    const FILES: &[(&str, &str)] = &[
        ("two.goal", "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n"),
        ("again.goal", "num_ranks 2\nrank 0 {\nsend 9b to 1 tag 3\n}\nrank 1 {\nrecv 9b from 0 tag 3\n}\n"),
        ("nine.goal", "num_ranks 9\n"),
        (
            "sums.goal",
            "num_ranks 4\nrank 0 {\nall-reduce 80b\nall-to-all 80b\n}\nrank 1 {\nall-reduce 80b\nall-to-all 80b\n}\n\
             rank 2 {\nall-reduce 80b\nall-to-all 80b\n}\nrank 3 {\nall-reduce 80b\nall-to-all 80b\n}\n",
        ),
        ("wrong.goal", "num_ranks 2\nrank 0 {\nsend 8 to 1\n}\n"),
    ];

    fn read(lines: &str) -> Result<Scenario, ScenarioError> {
        let text = star(&format!("[[traffic]]\nkind = \"goal\"\n{lines}"));
        Scenario::read(Source::new("test.toml", &text, &[]).with_files(FILES))
    }

    #[test]
    fn a_schedule_has_the_first_hosts_and_loggopsim_s_units_unless_it_says_otherwise() {
        let scenario = read("file = \"two.goal\"\n").unwrap();
        let Traffic::Goal(usual) = &scenario.traffic[0] else { panic!("a schedule") };
        assert_eq!(usual.hosts, [HostId(0), HostId(1)]);
        assert_eq!(
            (usual.unit, usual.overhead, usual.eager),
            (Span::from_nanos(1), Span::ZERO, Bytes(65_535))
        );
        assert_eq!((usual.shuffled, usual.start, usual.lines().len()), (false, Instant::ZERO, 1));
        let lines = "file = \"two.goal\"\nhosts = [\"h3\", \"h0\"]\nplacement = \"random\"\ncalc_unit = \"0s\"\noverhead = \"200ns\"\n\
            overhead_per_octet = \"0.1ns\"\neager = 0\nqueue_pairs = \"tag\"\nstart = \"6us\"\npriority = 2\n";
        let scenario = read(lines).unwrap();
        let Traffic::Goal(one) = &scenario.traffic[0] else { panic!("a schedule") };
        assert_eq!((&one.hosts[..], one.shuffled), (&[HostId(3), HostId(0)][..], true));
        assert_eq!((one.unit, one.overhead, one.eager), (Span::ZERO, Span::from_nanos(200), Bytes(0)));
        assert_eq!((one.overhead_per_octet, usual.overhead_per_octet), (Span::from_ps(100), Span::ZERO));
        assert_eq!((one.start, one.common.priority), (Instant::ZERO + Span::from_micros(6), Some(2)));
        assert_eq!(one.lines()[0].tag, 3, "tags have queue pairs of their own");
    }

    #[test]
    fn a_search_does_no_schedule_again() {
        let replays = |scenario: Scenario| {
            let Traffic::Goal(goal) = &scenario.traffic[0] else { panic!("a schedule") };
            goal.replays
        };
        assert!(replays(read("file = \"two.goal\"\n").unwrap()));
        assert!(!replays(read("file = \"two.goal\"\n").unwrap().without_replays()));
    }

    #[test]
    fn scenarios_that_name_the_same_schedule_share_it() {
        let schedule = |lines: &str| {
            let scenario = read(lines).unwrap();
            let Traffic::Goal(goal) = &scenario.traffic[0] else { panic!("a schedule") };
            goal.schedule.clone()
        };
        let one = schedule("file = \"two.goal\"\n");
        let other = schedule("file = \"two.goal\"\noverhead = \"200ns\"\n");
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &schedule("file = \"again.goal\"\n")), "another file");
    }

    #[test]
    fn how_collectives_are_done_is_said_once_for_all_or_for_each_operation() {
        let algorithms = |lines: &str| {
            let scenario =
                read(&format!("file = \"sums.goal\"\n{lines}")).unwrap_or_else(|error| panic!("{error}"));
            let Traffic::Goal(goal) = &scenario.traffic[0] else { panic!("a schedule") };
            [0, 1].map(|number| goal.way(number).map(|(_, way)| way.algorithm().name()))
        };
        assert_eq!(algorithms(""), [Some("ring"), Some("direct")]);
        assert_eq!(algorithms("algorithm = \"tree\""), [Some("tree"), Some("direct")]);
        assert_eq!(algorithms("algorithm = \"pxn\""), [Some("ring"), Some("direct")], "without servers");
        let both =
            "algorithm = { all-reduce = \"halving-doubling\", all-to-all = \"pxn\" }\nranks_per_server = 2";
        assert_eq!(algorithms(both), [Some("halving-doubling"), Some("pxn")]);
        // A power of two of ranks sums few octets in halves.
        assert_eq!(algorithms("algorithm = \"auto\""), [Some("halving-doubling"), Some("direct")]);
        let sums = "algorithm = { all-reduce = \"auto\", all-to-all = \"pxn\" }\nranks_per_server = 2";
        // In servers of two a tree has two channels, of half as many octets each.
        assert_eq!(algorithms(sums), [Some("tree"), Some("pxn")]);
        // An all-to-all has neither.
        let named = "algorithm = \"auto\"\nalgorithms = [\"ring\", \"tree\"]";
        assert_eq!(algorithms(named), [Some("tree"), Some("direct")]);
        for (lines, message, remedy) in [
            (
                "algorithm = { all-reduce = \"auto\" }\nalgorithms = [\"pxn\"]",
                "there is no algorithm to choose `pxn`",
                "`ring`, `halving-doubling` and `tree`",
            ),
            ("algorithms = [\"ring\"]", "nothing is left to it", "leave it out"),
            ("algorithm = \"fast\"", "there is no algorithm `fast`", "those that exist are `ring`"),
            (
                "algorithm = { all-reduce = \"direct\" }",
                "there is no all-reduce `direct`",
                "`halving-doubling`, `tree` and `auto`",
            ),
            ("algorithm = { sum = \"ring\" }", "sum", "all-reduce"),
            (
                "ranks_per_server = 3",
                "4 ranks are not divided evenly into servers of 3",
                "name a number that divides them",
            ),
            ("chunks = 0", "chunks", "1 to 16384"),
        ] {
            let error = read(&format!("file = \"sums.goal\"\n{lines}\n")).expect_err(lines).to_string();
            assert!(error.contains(message) && error.contains(remedy), "{lines}: {error}");
        }
        let error =
            read("file = \"two.goal\"\nalgorithm = \"ring\"\n").expect_err("no collectives").to_string();
        assert!(error.contains("no collective of the schedule has the algorithm `ring`"), "{error}");
        let error =
            read("file = \"two.goal\"\nalgorithm = \"auto\"\n").expect_err("no collectives").to_string();
        assert!(error.contains("the schedule has no collectives"), "{error}");
    }

    #[test]
    fn a_schedule_that_cannot_be_is_refused_where_it_says_so_and_with_a_remedy() {
        for (lines, message, remedy) in [
            ("", "file", ""),
            (
                "file = \"nine.goal\"\n",
                "nine.goal: the schedule has 9 ranks, and here are 4 hosts",
                "enlarge the topology",
            ),
            (
                "file = \"wrong.goal\"\n",
                "wrong.goal: line 3: \"send 8 to 1\" is no line of a schedule",
                "write `a: calc 5000`",
            ),
            (
                "file = \"two.goal\"\nhosts = [\"h0\"]\n",
                "the schedule has 2 ranks, and here are 1 hosts",
                "list one for each",
            ),
            (
                "file = \"two.goal\"\nhosts = [\"h0\", \"h0\"]\n",
                "a host has two ranks",
                "list each of `hosts` once",
            ),
            (
                "file = \"two.goal\"\nqueue_pairs = \"rank\"\n",
                "queue_pairs",
                "those that exist are `pair` and `tag`",
            ),
        ] {
            let error = read(lines).expect_err(lines).to_string();
            assert!(error.contains(message) && error.contains(remedy), "{lines}: {error}");
        }
    }
}
