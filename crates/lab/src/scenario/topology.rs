//! `[topology]`: the network, built and checked.

use super::file;
use super::keys;
use super::read::Table;
use super::source::{Located, Origin, ScenarioError, Source, listed, nearest};
use super::tree::{Kind, Node};
use roci_fabric::graph::{Graph, NodeId};
use roci_fabric::packet::HostId;
use roci_fabric::topology::explicit::{Explicit, NamedLink};
use roci_fabric::topology::fat_tree::{FatTree, Form};
use roci_fabric::topology::rails::Rails;
use roci_fabric::topology::shapes::{Dumbbell, LeafSpine, Star, Tree};
use roci_fabric::topology::{Topology, TopologyError, hpcc};
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [&str; 8] = ["graph", "star", "dumbbell", "tree", "leaf-spine", "fat-tree", "rails", "hpcc"];

/// Reads `[topology]` and builds the network.
pub(super) fn read(source: &Source, node: &Node) -> Result<Topology, ScenarioError> {
    let any = Table::open_some(source, &keys::TOPOLOGY, node)?;
    let kind = any.require("kind", any.text("kind")?)?;
    let open = |section| Table::open(source, section, node);
    match kind.value.as_str() {
        "graph" => graph(open(&keys::GRAPH)?),
        "hpcc" => file_of_hpcc(open(&keys::HPCC_TOPOLOGY)?),
        "star" => {
            let table = open(&keys::STAR)?;
            built(
                table,
                Star { hosts: need(table, "hosts")?, rate: rate(table)?, delay: delay(table)? }.build(),
            )
        }
        "dumbbell" => {
            let table = open(&keys::DUMBBELL)?;
            let rate = rate(table)?;
            let dumbbell = Dumbbell {
                left: need(table, "left")?,
                right: need(table, "right")?,
                rate,
                bottleneck: table.rate("bottleneck")?.unwrap_or(rate),
                delay: delay(table)?,
            };
            delayed(table, "bottleneck_delay", "", built(table, dumbbell.build())?)
        }
        "tree" => {
            let table = open(&keys::TREE)?;
            let rate = rate(table)?;
            let list = table.require("leaves", table.list("leaves")?)?;
            let leaf = |item| table.number_of("leaves", item, 1..=65_535);
            let leaves = list.iter().map(leaf).collect::<Result<Vec<_>, _>>()?;
            let tree = Tree {
                leaves: leaves.into_iter().map(|n| u32::try_from(n).unwrap_or(u32::MAX)).collect(),
                rate,
                uplink: table.rate("uplink")?.unwrap_or(rate),
                delay: delay(table)?,
            };
            delayed(table, "uplink_delay", "", built(table, tree.build())?)
        }
        "leaf-spine" => {
            let table = open(&keys::LEAF_SPINE)?;
            let shape = LeafSpine {
                leaves: need(table, "leaves")?,
                spines: need(table, "spines")?,
                hosts_per_leaf: need(table, "hosts_per_leaf")?,
                rate: rate(table)?,
                fabric_rate: table.rate("fabric_rate")?,
                delay: delay(table)?,
            };
            delayed(table, "fabric_delay", "", built(table, shape.build())?)
        }
        "rails" => rails(open(&keys::RAILS)?),
        "fat-tree" => {
            let table = open(&keys::FAT_TREE)?;
            let tree = FatTree {
                form: fat_tree_form(table)?,
                rate: rate(table)?,
                fabric_rate: table.rate("fabric_rate")?,
                core_rate: table.rate("core_rate")?,
                delay: delay(table)?,
            };
            let topology = delayed(table, "fabric_delay", "", built(table, tree.build())?)?;
            delayed(table, "core_delay", "core", topology)
        }
        _ => Err(any.unknown_word("kind", &kind, KINDS.into_iter())),
    }
}

fn need(table: Table<'_>, key: &str) -> Result<u32, ScenarioError> {
    table.require(key, table.count(key, 1..=65_535)?)
}

fn rate(table: Table<'_>) -> Result<roci_units::BitsPerSec, ScenarioError> {
    table.require("rate", table.rate("rate")?)
}

fn delay(table: Table<'_>) -> Result<roci_units::Span, ScenarioError> {
    table.require("delay", table.span("delay")?)
}

/// `topology` with the delay that `key` gives to the links between switches, of which one is called `prefix…`.
fn delayed(
    table: Table<'_>,
    key: &str,
    prefix: &str,
    mut topology: Topology,
) -> Result<Topology, ScenarioError> {
    let Some(delay) = table.span(key)? else { return Ok(topology) };
    let Graph { hosts, switches, links } = &mut topology.graph;
    let name = |node: NodeId| (node.0 as usize).checked_sub(hosts.len()).map(|place| &switches[place]);
    for link in links {
        if let (Some(a), Some(b)) = (name(link.a), name(link.b))
            && [a, b].iter().any(|name| name.starts_with(prefix))
        {
            link.delay = delay;
        }
    }
    Ok(topology)
}

fn rails(table: Table<'_>) -> Result<Topology, ScenarioError> {
    let (servers, delay) = (need(table, "servers")?, delay(table)?);
    let scale_up = table.rate("scale_up")?;
    let scale_up_delay = table.span("scale_up_delay")?;
    if let (Some(_), None) = (scale_up_delay, scale_up) {
        let message = "this is the delay of links that are not there";
        return Err(table.refuse("scale_up_delay", message, "add `scale_up = \"3.6Tb/s\"`, or leave it out"));
    }
    let rails = Rails {
        servers,
        gpus: need(table, "gpus")?,
        servers_per_leaf: table.count("servers_per_leaf", 1..=65_535)?.unwrap_or(servers),
        spines: table.require("spines", table.count("spines", 0..=65_535)?)?,
        rate: rate(table)?,
        fabric_rate: table.rate("fabric_rate")?,
        delay,
        scale_up: scale_up.map(|rate| (rate, scale_up_delay.unwrap_or(delay))),
    };
    delayed(table, "fabric_delay", "", built(table, rails.build())?)
}

fn fat_tree_form(table: Table<'_>) -> Result<Form, ScenarioError> {
    const PARTS: [&str; 5] = ["pods", "tors_per_pod", "aggs_per_pod", "cores", "hosts_per_tor"];
    let given: Vec<&str> = ["hosts", "k"]
        .into_iter()
        .chain(PARTS.into_iter().filter(|key| table.get(key).is_some()).take(1))
        .filter(|key| table.get(key).is_some())
        .collect();
    match given.as_slice() {
        ["hosts"] => Ok(Form::Hosts(need(table, "hosts")?)),
        ["k"] => Ok(Form::Radix(table.require("k", table.count("k", 2..=40)?)?)),
        [_part] => Ok(Form::Pods {
            pods: need(table, "pods")?,
            tors_per_pod: need(table, "tors_per_pod")?,
            // A single pod needs no cores, a single ToR no aggregation.
            aggs_per_pod: table.count("aggs_per_pod", 0..=65_535)?.unwrap_or(0),
            cores: table.count("cores", 0..=65_535)?.unwrap_or(0),
            hosts_per_tor: need(table, "hosts_per_tor")?,
        }),
        [] => Err(table.missing("hosts")),
        [first, second, ..] => Err(table.refuse(
            second,
            format!("`{first}` and `{second}` both give the size of the tree"),
            format!("leave one of them out; a fat tree is given by `hosts`, by `k`, or by {}", listed(PARTS)),
        )),
    }
}

/// A graph given link by link. Errors that concern a name or a link point at it.
fn graph(table: Table<'_>) -> Result<Topology, ScenarioError> {
    let hosts = table.require("hosts", table.texts("hosts")?)?;
    let switches = table.texts("switches")?.unwrap_or_default();
    table.require("links", table.list("links")?)?;
    let mut links = Vec::new();
    let mut ends = Vec::new();
    for link in table.tables("links", &keys::LINK)? {
        let a = link.require("a", link.text("a")?)?;
        let b = link.require("b", link.text("b")?)?;
        let (rate, delay) = (rate(link)?, delay(link)?);
        ends.push((link.origin, a.clone(), b.clone()));
        links.push(NamedLink { a: a.value, b: b.value, rate, delay });
    }
    let names = |list: &[Located<String>]| list.iter().map(|name| name.value.clone()).collect();
    let explicit = Explicit { hosts: names(&hosts), switches: names(&switches), links };
    explicit.build().map_err(|error| {
        let find = |name: &str| hosts.iter().chain(&switches).find(|other| other.value == name);
        let of_host = |name: &str| find(name).map_or(table.origin, |name| name.origin);
        let end = |link: usize, name: &str| match ends.get(link) {
            Some((_, a, _)) if a.value == name => a.origin,
            Some((_, _, b)) if b.value == name => b.origin,
            Some((origin, ..)) => *origin,
            None => table.origin,
        };
        let origin = match &error {
            TopologyError::UnknownNode { link, name } | TopologyError::SelfLink { link, name } => {
                end(*link, name)
            }
            TopologyError::DuplicateName(name) => {
                let mut same = hosts.iter().chain(&switches).filter(|other| other.value == *name);
                same.nth(1).map_or(table.origin, |second| second.origin)
            }
            TopologyError::UnfitName(name) => {
                let mut all = hosts.iter().chain(&switches);
                all.find(|other| other.value == *name).map_or(table.origin, |it| it.origin)
            }
            TopologyError::HostWithoutLink(host) | TopologyError::TooManyNics { host, .. } => of_host(host),
            TopologyError::Unreachable { to, .. } => of_host(to),
            _ => table.origin_of("links"),
        };
        let mut refusal = refusal(table.source, origin, &error);
        if let TopologyError::UnknownNode { name, .. } = &error {
            let known = hosts.iter().chain(&switches).map(|name| name.value.as_str());
            if let Some(near) = nearest(name, known) {
                refusal.remedy = format!("did you mean `{near}`? else add `{name}` to `hosts` or `switches`");
            }
        }
        refusal
    })
}

fn file_of_hpcc(table: Table<'_>) -> Result<Topology, ScenarioError> {
    let name = table.require("file", table.text("file")?)?;
    let text = file::read(table.source, &name)?;
    hpcc::read(&text).map_err(|error| {
        let (message, remedy) = split(&error.to_string());
        table.source.error(name.origin, format!("{}: {message}", name.value), remedy)
    })
}

fn built(table: Table<'_>, topology: Result<Topology, TopologyError>) -> Result<Topology, ScenarioError> {
    topology.map_err(|error| {
        let key = match &error {
            TopologyError::TooFew { key, .. } | TopologyError::NotJoined { key, .. } => key,
            TopologyError::OddRadix(_) => "k",
            TopologyError::UnevenCores { .. } => "cores",
            TopologyError::TooManyHosts(_) if table.section.key("hosts").is_some() => "hosts",
            _ => "kind",
        };
        let origin = table.get(key).map_or(table.origin, |node| node.origin);
        let mut refusal = refusal(table.source, origin, &error);
        if let TopologyError::OddRadix(_) = error {
            refusal.remedy = "make `k` even, or say how many `hosts` there are to be".to_owned();
        }
        refusal
    })
}

fn refusal(source: &Source, origin: Origin, error: &TopologyError) -> ScenarioError {
    let (message, remedy) = split(&error.to_string());
    source.error(origin, message, remedy)
}

/// A message of the form "what is wrong; what to do" in its two parts. What stands in quotation marks is the user's.
pub(super) fn split(text: &str) -> (String, String) {
    let (mut quoted, mut escaped) = (false, false);
    let parts = text.char_indices().find(|&(_, c)| {
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        c == ';' && !quoted
    });
    match parts.and_then(|(at, _)| Some((&text[..at], text[at..].strip_prefix("; ")?))) {
        Some((message, remedy)) => (message.to_owned(), remedy.to_owned()),
        None => (text.to_owned(), "change it so that this holds no more".to_owned()),
    }
}

/// The names of a network's hosts and switches, and of NICs where hosts have several.
#[derive(Debug)]
pub(super) struct Names<'a> {
    topology: &'a Topology,
    graph: &'a Graph,
    hosts: BTreeMap<&'a str, u16>,
    /// The places among all nodes of the graph.
    nodes: BTreeMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    pub(super) fn of(topology: &'a Topology) -> Self {
        let graph = &topology.graph;
        let hosts = (0u16..).zip(topology.hosts()).map(|(place, name)| (name.as_str(), place)).collect();
        let nodes = (0u32..).zip(graph.hosts.iter().chain(&graph.switches));
        Self { topology, graph, hosts, nodes: nodes.map(|(place, name)| (name.as_str(), place)).collect() }
    }

    /// The topology itself.
    pub(super) fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// How many hosts in a row are on one server, where the topology says so.
    pub(super) fn per_server(&self) -> Option<u32> {
        self.topology.per_server
    }

    /// `names` with those of its NICs in place of each host that has several.
    pub(super) fn with_nics(&self, names: Vec<Located<String>>) -> Vec<Located<String>> {
        let of = |name: Located<String>| -> Vec<Located<String>> {
            if self.nodes.contains_key(name.value.as_str()) {
                return vec![name];
            }
            let nics = self.nics(&name.value).map(|nic| self.graph.hosts[nic as usize].clone());
            nics.map(|nic| Located { value: nic, ..name.clone() }).collect()
        };
        names.into_iter().flat_map(of).collect()
    }

    /// The places of the NICs of the host `name` among all nodes; none where there is no such host.
    fn nics(&self, name: &str) -> impl Iterator<Item = u32> {
        let host = self.hosts.get(name).map(|place| HostId(*place));
        host.into_iter().flat_map(|host| self.topology.homes.nics(host)).map(|nic| u32::from(nic.0))
    }

    /// How many hosts there are.
    pub(super) fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// The names of the hosts, in their order.
    pub(super) fn hosts(&self) -> &'a [String] {
        self.topology.hosts()
    }

    /// The host `name`.
    pub(super) fn host(&self, source: &Source, name: &Located<String>) -> Result<HostId, ScenarioError> {
        let unknown = || {
            let what = match self.nodes.get(name.value.as_str()) {
                None => return self.unknown(source, name, "host", self.hosts()),
                Some(place) if (*place as usize) < self.graph.hosts.len() => "one of a host's NICs",
                Some(_) => "a switch",
            };
            let message = format!("`{}` is {what}, not a host", name.value);
            source.error(name.origin, message, some(self.hosts(), "hosts"))
        };
        self.hosts.get(name.value.as_str()).map(|place| HostId(*place)).ok_or_else(unknown)
    }

    /// Refuses `name` unless it is a switch.
    pub(super) fn switch(&self, source: &Source, name: &Located<String>) -> Result<(), ScenarioError> {
        if self.nodes.get(name.value.as_str()).is_some_and(|place| *place as usize >= self.graph.hosts.len())
        {
            return Ok(());
        }
        Err(self.unknown(source, name, "switch", &self.graph.switches))
    }

    /// Refuses `name` unless it is a host or one of its NICs.
    pub(super) fn nic(&self, source: &Source, name: &Located<String>) -> Result<(), ScenarioError> {
        match self.nodes.get(name.value.as_str()) {
            Some(place) if (*place as usize) < self.graph.hosts.len() => Ok(()),
            _ => self.host(source, name).map(drop),
        }
    }

    /// Refuses `name` unless it is a host, one of its NICs, or a switch.
    pub(super) fn node(&self, source: &Source, name: &Located<String>) -> Result<(), ScenarioError> {
        let name_str = name.value.as_str();
        if self.nodes.contains_key(name_str) || self.hosts.contains_key(name_str) {
            return Ok(());
        }
        let all: Vec<String> = self.hosts().iter().chain(&self.graph.switches).cloned().collect();
        Err(self.unknown(source, name, "host and switch", &all))
    }

    /// The places, among all nodes, of those that are called `pattern`: of the one with this very name, or, where it has a `*`,
    /// of all whose names have anything in its place. A host stands for all of its NICs.
    pub(super) fn like(&self, pattern: &str) -> BTreeSet<u32> {
        if let Some(place) = self.nodes.get(pattern) {
            return BTreeSet::from([*place]);
        }
        let nodes = self.nodes.iter().filter(|(name, _)| is_like(name, pattern)).map(|(_, place)| *place);
        let hosts = self.hosts.keys().filter(|name| **name == pattern || is_like(name, pattern));
        nodes.chain(hosts.flat_map(|name| self.nics(name))).collect()
    }

    /// The switches that are called `pattern`, by their places in the graph's list; one at least.
    pub(super) fn switches_like(
        &self,
        source: &Source,
        pattern: &Located<String>,
    ) -> Result<Vec<u32>, ScenarioError> {
        if !pattern.value.contains('*') {
            self.switch(source, pattern)?;
        }
        let hosts = u32::try_from(self.graph.hosts.len()).unwrap_or(u32::MAX);
        let nodes = self.like(&pattern.value);
        let switches: Vec<u32> = nodes.into_iter().filter_map(|place| place.checked_sub(hosts)).collect();
        if switches.is_empty() {
            let message = format!("no switch is called like `{}`", pattern.value);
            return Err(source.error(pattern.origin, message, some(&self.graph.switches, "switches")));
        }
        Ok(switches)
    }

    fn unknown(
        &self,
        source: &Source,
        name: &Located<String>,
        what: &str,
        valid: &[String],
    ) -> ScenarioError {
        let remedy = match nearest(&name.value, valid.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`? {}", some(valid, &format!("{what}s"))),
            None => some(valid, &format!("{what}s")),
        };
        let what = what.replace(" and ", " or ");
        source.error(name.origin, format!("there is no {what} `{}`", name.value), remedy)
    }
}

/// Whether `name` is `pattern` with each `*` replaced by something, or by nothing. A pattern without one is like no name.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return false };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The first place where each part fits leaves the most for those behind it.
    for part in between.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Some of `names`, for a message that must stay short.
fn some(names: &[String], what: &str) -> String {
    let what = what.replace("host and", "hosts and").replace("switchs", "switches");
    match names {
        [] => format!("there are no {what}"),
        names if names.len() <= 8 => {
            format!("the {what} are {}", listed(names.iter().map(String::as_str)))
        }
        [first, second, .., last] => {
            format!("the {} {what} are `{first}`, `{second}`, … `{last}`", names.len())
        }
        _ => String::new(),
    }
}

/// The list that `node` is, or nothing.
pub(super) fn items(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::Array(items) => items,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use roci_units::Span;
    use std::collections::BTreeSet;

    fn scenario(shape: &str) -> Scenario {
        let text = format!(
            "[topology]\nrate = \"10Gb/s\"\ndelay = \"1us\"\n{shape}\n[transport]\ncontrol = \"nscc\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
        );
        Scenario::parse(&text, "here.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The kinds of links, by what their ends are called without a number, and their delays.
    fn delays(shape: &str) -> Vec<String> {
        let graph = scenario(shape).topology.graph;
        let names: Vec<&str> = graph.hosts.iter().chain(&graph.switches).map(String::as_str).collect();
        let kind = |node: u32| names[node as usize].trim_end_matches(|c: char| c.is_ascii_digit());
        let line =
            |link: &roci_fabric::graph::Link| format!("{}-{} {}", kind(link.a.0), kind(link.b.0), link.delay);
        graph.links.iter().map(line).collect::<BTreeSet<String>>().into_iter().collect()
    }

    #[test]
    fn links_between_switches_have_the_delay_of_their_tier() {
        let tree = "kind = \"fat-tree\"\nk = 4";
        assert_eq!(delays(tree), ["agg-core 1us", "h-tor 1us", "tor-agg 1us"]);
        let far = "fabric_delay = \"2us\"";
        assert_eq!(delays(&format!("{tree}\n{far}")), ["agg-core 2us", "h-tor 1us", "tor-agg 2us"]);
        let core = "core_delay = \"5us\"";
        assert_eq!(delays(&format!("{tree}\n{core}\n{far}")), ["agg-core 5us", "h-tor 1us", "tor-agg 2us"]);
        let leaves = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2";
        assert_eq!(delays(&format!("{leaves}\n{far}")), ["h-leaf 1us", "leaf-spine 2us"]);
        let dumbbell = "kind = \"dumbbell\"\nleft = 2\nright = 2\nbottleneck_delay = \"3us\"";
        assert_eq!(delays(dumbbell), ["h-s 1us", "s-s 3us"]);
        let tree = "kind = \"tree\"\nleaves = [1, 1]\nuplink_delay = \"4us\"";
        assert_eq!(delays(tree), ["h-leaf 1us", "h-root 1us", "leaf-root 4us"]);
    }

    #[test]
    fn the_round_trip_that_laws_are_fitted_to_is_between_nics_that_flows_have() {
        let fitted = |core: &str| {
            let link = |a: &str, b: &str, delay: &str| {
                format!("{{ a = \"{a}\", b = \"{b}\", rate = \"100Gb/s\", delay = \"{delay}\" }}")
            };
            let mut links = ["a", "b"].map(|host| ["s", "t"].map(|tor| link(host, tor, "500ns"))).concat();
            links.extend(["s", "t"].map(|tor| link(tor, "core", core)));
            let text = format!(
                "[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\"]\nswitches = [\"s\", \"t\", \"core\"]\nlinks = [{}]\n\
                 [transport]\ncontrol = \"nscc\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n",
                links.join(", ")
            );
            let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
            scenario.transport.control.network.expect("it is fitted").round_trip
        };
        // Two NICs of one host are apart by the core, and nothing goes that way.
        assert_eq!(fitted("50us"), fitted("1us"));
        assert!(fitted("50us") < Span::from_micros(3));
    }

    #[test]
    fn the_round_trip_that_laws_are_fitted_to_has_the_delay_of_each_tier() {
        let fitted = |shape: &str| {
            let network = scenario(shape).transport.control.network.expect("it is fitted");
            network.round_trip
        };
        let tree = "kind = \"fat-tree\"\nk = 4";
        let longer = fitted(&format!("{tree}\nfabric_delay = \"2us\"\ncore_delay = \"6us\""));
        // There and back: twice up and twice down, by ToR and aggregation, by the core.
        assert_eq!(longer.saturating_sub(fitted(tree)), Span::from_micros(2 * (2 + 2 * 5)));
    }
}
