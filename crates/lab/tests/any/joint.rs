//! Collectives at random, of every kind, as tables and in schedules, where nothing is lost: each comes to its end with all octets delivered,
//! and takes no less than it takes at least.

use crate::hold::{Broken, broken};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use roci_lab::results::{FlowStatus, Results};
use roci_lab::run::{Go, World};
use roci_lab::scenario::{Scenario, ScenarioError, Source};
use roci_lab::traffic::{Operation, Traffic};
use roci_lab::world::SimulatedWorld;
use std::fmt::Write as _;

/// A collective of so many servers of as many ranks.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    servers: u32,
    each: u32,
    network: &'static str,
    operation: Operation,
    /// A place among its algorithms; behind the last `auto`.
    algorithm: usize,
    size: u64,
    root: u32,
    channels: u32,
    chunks: u32,
    /// So many iterations, or times in a schedule.
    times: u32,
    /// What each rank has for each, where that differs.
    amounts: Amounts,
    /// Of each rank how long it calculates before, in a schedule; else there is none.
    calculates: Option<Vec<u32>>,
    keys: Vec<&'static str>,
    seed: u32,
}

#[derive(Clone, Debug)]
enum Amounts {
    Alike,
    Listed(Vec<u64>),
    Skewed(&'static str),
}

/// `{n}` hosts, on servers of `{g}` each.
const NETWORKS: &[&str] = &[
    "kind = \"star\", hosts = {n}, rate = \"100Gb/s\", delay = \"1us\"",
    "kind = \"leaf-spine\", leaves = {s}, spines = 2, hosts_per_leaf = {g}, rate = \"100Gb/s\", delay = \"500ns\"",
    "kind = \"tree\", leaves = [{n}, 1], rate = \"25Gb/s\", uplink = \"10Gb/s\", delay = \"300ns\"",
    "kind = \"rails\", servers = {s}, gpus = {g}, spines = 1, rate = \"100Gb/s\", delay = \"1us\", scale_up = \"900Gb/s\", scale_up_delay = \"50ns\"",
    "kind = \"rails\", servers = {s}, gpus = {g}, spines = 2, rate = \"40Gb/s\", delay = \"1us\"",
];

/// Of a scenario.
const KEYS: &[&str] = &[
    "start_jitter = \"0s\"",
    "start_jitter = \"20us\"",
    "transport.control = \"none\"",
    "transport.control = \"swift\"",
    "transport.recovery = \"irn\"",
    "nic.mtu = 4096",
    "nic.mtu = 256",
    "switch.routing = \"adaptive\"",
    "nic.model = \"cx5\"",
];

const SIZES: &[u64] = &[1, 3, 8, 17, 64, 500, 1024, 1025, 4097, 9_000, 30_000, 100_000];

pub(crate) fn any_joint() -> impl Strategy<Value = Joint> {
    let shape = (1u32..4, 1u32..5, select(NETWORKS), select(Operation::ALL.to_vec()), 0usize..4);
    let parts = (select(SIZES), 0u32..16, 1u32..4, 1u32..5, 1u32..4);
    let amounts = prop_oneof![
        2 => Just(Amounts::Alike),
        2 => vec(prop_oneof![1 => Just(0), 2 => 1u64..20_000], 16 * 16).prop_map(Amounts::Listed),
        1 => select(&["0", "1.2", "3"][..]).prop_map(Amounts::Skewed),
    ];
    let calculates = prop::option::of(vec(prop_oneof![Just(0), 0u32..30_000], 16));
    let rest = (amounts, calculates, vec(select(KEYS), 0..4), any::<u32>());
    (shape, parts, rest).prop_map(|(shape, parts, (amounts, calculates, keys, seed))| {
        let (servers, each, network, operation, algorithm) = shape;
        let (size, root, channels, chunks, times) = parts;
        let amounts = if operation == Operation::AllToAll { amounts } else { Amounts::Alike };
        Joint {
            servers,
            each,
            network,
            operation,
            algorithm,
            size,
            root,
            channels,
            chunks,
            times,
            amounts,
            calculates,
            keys,
            seed,
        }
    })
}

impl Joint {
    fn ranks(&self) -> u32 {
        self.servers * self.each
    }

    fn algorithm(&self) -> &'static str {
        self.operation.algorithms().get(self.algorithm).map_or("auto", |it| it.name())
    }

    fn row(&self, from: u32) -> Vec<u64> {
        match &self.amounts {
            Amounts::Listed(all) => all[from as usize * 16..][..self.ranks() as usize].to_vec(),
            Amounts::Alike | Amounts::Skewed(_) => Vec::new(),
        }
    }

    /// The scenario, and the schedule that it names if it does.
    fn text(&self) -> (String, String) {
        let mut text = format!("seed = {}\nmeasure.priorities = true\n", self.seed);
        let mut known = Vec::new();
        for key in &self.keys {
            let name = key.split(" = ").next();
            if !known.contains(&name) {
                known.push(name);
                let _ = writeln!(text, "{key}");
            }
        }
        let values = [("{n}", self.ranks()), ("{s}", self.servers), ("{g}", self.each)];
        let network = values
            .iter()
            .fold(self.network.to_owned(), |text, (name, value)| text.replace(name, &value.to_string()));
        let _ =
            writeln!(text, "topology = {{ {network} }}\n[[traffic]]\nalgorithm = \"{}\"", self.algorithm());
        let _ = writeln!(text, "channels = {}\nchunks = {}", self.channels, self.chunks);
        // Of rails it is what the topology says.
        let knows = matches!(self.algorithm(), "pxn" | "tree") || self.calculates.is_some();
        if self.each > 1 && knows {
            let _ = writeln!(text, "ranks_per_server = {}", self.each);
        }
        let root = self.root % self.ranks();
        let rooted = self.operation.has_root();
        let name = self.operation.name();
        let Some(calculates) = &self.calculates else {
            let hosts: Vec<String> = (0..self.ranks()).map(|host| format!("\"h{host}\"")).collect();
            let _ =
                writeln!(text, "kind = \"collective\"\noperation = \"{name}\"\niterations = {}", self.times);
            if self.network.contains("tree") {
                let _ = writeln!(text, "hosts = [{}]", hosts.join(", "));
            }
            if rooted {
                let _ = writeln!(text, "root = {root}");
            }
            let _ = match &self.amounts {
                Amounts::Listed(_) => {
                    let rows: Vec<Vec<u64>> = (0..self.ranks()).map(|from| self.row(from)).collect();
                    writeln!(text, "matrix = {rows:?}")
                }
                Amounts::Skewed(skew) => {
                    writeln!(text, "size = {}\nskew = {skew}\ntokens = 30", self.size.max(30) * 20)
                }
                Amounts::Alike => writeln!(text, "size = {}", self.size),
            };
            return (text, String::new());
        };
        let _ = writeln!(text, "kind = \"goal\"\nfile = \"it.goal\"\neager = {}", self.size);
        let mut schedule = format!("num_ranks {}\n", self.ranks());
        for (rank, calculates) in (0..self.ranks()).zip(calculates) {
            let _ = writeln!(schedule, "rank {rank} {{\nc: calc {calculates}");
            let row: String = self.row(rank).iter().map(|octets| format!(" {octets}b")).collect();
            let size = if row.is_empty() { format!(" {}b", self.size) } else { row };
            let root = if rooted { format!(" root {root}") } else { String::new() };
            for nth in 0..self.times {
                let _ = writeln!(schedule, "x{nth}: {name}{size}{root} cpu 1");
                let before = if nth == 0 { "c".to_owned() } else { format!("x{}", nth - 1) };
                let _ = writeln!(schedule, "x{nth} requires {before}");
            }
            schedule.push_str("}\n");
        }
        (text, schedule)
    }

    fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let (text, schedule) = self.text();
        // Files are there for as long as the tests.
        let schedule: &'static str = Box::leak(schedule.into_boxed_str());
        Scenario::read(
            Source::new("any.toml", &text, &[]).with_files(Box::leak(Box::new([("it.goal", schedule)]))),
        )
    }

    /// What is wrong with its run; `None` where it is refused in words.
    pub(crate) fn wrong(&self) -> Option<Vec<String>> {
        let scenario = match self.scenario() {
            Ok(scenario) => scenario,
            Err(error) => {
                assert!(!error.message.is_empty() && !error.remedy.is_empty(), "{error}");
                return None;
            }
        };
        let results = match SimulatedWorld.run(&scenario, scenario.seed, None, &mut |_| Go::On) {
            Ok(results) => results,
            Err(error) => return Some(vec![error.to_string()]),
        };
        let Broken(mut wrong) = broken(&scenario, &results);
        wrong.extend(self.not_whole(&scenario, &results));
        Some(wrong)
    }

    /// What is missing of a run that is over.
    fn not_whole(&self, scenario: &Scenario, results: &Results) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut unless = |holds: bool, what: &dyn Fn() -> String| {
            if !holds {
                wrong.push(what());
            }
        };
        for flow in &results.flows {
            let whole = flow.status == FlowStatus::OK && flow.delivered == flow.bytes;
            unless(whole, &|| {
                format!("{} is {} with {} of {}", flow.name, flow.status.name(), flow.delivered, flow.bytes)
            });
        }
        for one in &results.collectives {
            unless(one.iterations.len() == self.times as usize, &|| {
                format!("{} iterations", one.iterations.len())
            });
        }
        for goal in &results.goals {
            unless(goal.path.is_some(), &|| "the schedule is not done".to_owned());
            for it in &goal.joint {
                unless(it.time() >= it.ideal || it.ideal.is_none(), &|| {
                    format!("it took {:?} and takes {:?} at least: {it:?}", it.time(), it.ideal)
                });
            }
        }
        let bytes: u64 = results.flows.iter().map(|flow| flow.bytes).sum();
        // By way of others in its server what is for another rail is sent twice.
        if matches!(self.amounts, Amounts::Listed(_)) && self.ranks() > 1 {
            let direct = |it: &Traffic| match it {
                Traffic::Collective(spec) => spec.per_server == 1,
                Traffic::Goal(spec) => spec.way(0).is_some_and(|(_, way)| way.algorithm().name() == "direct"),
                _ => false,
            };
            let others = |rank: u32| (0..self.ranks()).filter(move |other| *other != rank);
            let of = |to: u32| others(to).map(|from| self.row(from)[to as usize]).sum::<u64>();
            let all = u64::from(self.times) * (0..self.ranks()).map(of).sum::<u64>();
            let is_direct = scenario.traffic.iter().all(direct);
            unless(bytes == all || !is_direct, &|| format!("{bytes} of {all} octets are sent"));
            unless(bytes >= all, &|| format!("{bytes} of {all} octets are sent at least"));
        }
        wrong
    }
}
