//! `[[transport.on]]`: networks on which all flows have one congestion control, whatever they have elsewhere.
//!
//! Links within a server have none unless a rule says otherwise: their switches let senders wait, as credits do.

mod unmet;

use super::Scenario;
use super::keys;
use super::read::Table;
use super::source::{Located, ScenarioError};
use super::switch::Switch;
use super::topology::Names;
use super::traffic::Reading;
use super::transport::Control;
use crate::traffic::{ControlIndex, Networks, OutOfNetwork};
use roci_fabric::packet::HostId;
use roci_fabric::topology::Topology;
use roci_units::BitsPerSec;
use std::collections::{BTreeMap, BTreeSet};

/// A rule: the NICs that it is about, and what flows between two of them have; `None`: what they have elsewhere.
type Rule = (BTreeSet<u32>, Option<Control>);

/// Reads the rules of `transport`, the table `[transport]`, and adds their controls to those that `reading` has. With them comes what a user should know
/// of those that no flow falls under.
pub(super) fn read(
    transport: Option<Table<'_>>,
    topology: &Topology,
    names: &Names<'_>,
    reading: &mut Reading<'_>,
) -> Result<(Networks, Vec<String>), ScenarioError> {
    let mut rules: Vec<Rule> = Vec::new();
    if !topology.scale_up.is_empty() {
        let nics = linked(topology, &topology.scale_up.iter().copied().collect());
        rules.push((nics, Some(Control::plain("none"))));
    }
    let first = rules.len();
    if let Some(table) = transport {
        for rule in table.tables("on", &keys::TRANSPORT_ON)? {
            rules.push((nics(rule, topology, names)?, Control::read(rule, reading.usual_law())?));
        }
    }
    // A later rule may be about all NICs of an earlier one, whose control nobody has then.
    let sets: Vec<BTreeSet<u32>> = rules.iter().map(|(nics, _)| nics.clone()).collect();
    let unmet = unmet::notes(topology, &sets, first, &reading.traffic);
    let is_left = |place: usize| !sets[place + 1..].iter().any(|later| later.is_superset(&sets[place]));
    let left = rules.into_iter().enumerate().filter(|(place, _)| is_left(*place));
    let rules = left.map(|(_, (nics, control))| {
        let is_meant = (0..).take(topology.graph.hosts.len()).map(|nic: u32| nics.contains(&nic));
        (is_meant.collect(), control.map(|control| reading.add_of_network(control)))
    });
    let parts = topology.islands();
    Ok((Networks::new(rules.collect(), &parts[..topology.graph.hosts.len()]), unmet))
}

/// The NICs that a rule is about.
fn nics(rule: Table<'_>, topology: &Topology, names: &Names<'_>) -> Result<BTreeSet<u32>, ScenarioError> {
    if topology.homes.is_none() {
        return Err(rule.source.error(
            rule.origin,
            "each host has one NIC, and so all flows are on one network",
            "leave this rule out; flows and tables of traffic may have a `control` of their own",
        ));
    }
    let mut nics = BTreeSet::new();
    let switches = rule.texts("switches")?.unwrap_or_default();
    for name in &switches {
        let linked = linked(topology, &names.switches_like(rule.source, name)?.into_iter().collect());
        if linked.is_empty() {
            let message = format!("no NIC is linked to `{}`", name.value);
            let remedy = "name the switches that the NICs of this network are linked to";
            return Err(rule.source.error(name.origin, message, remedy));
        }
        nics.extend(linked);
    }
    let hosts = rule.texts("hosts")?.unwrap_or_default();
    for name in &hosts {
        let count = topology.graph.hosts.len();
        let like: BTreeSet<u32> =
            names.like(&name.value).into_iter().filter(|node| (*node as usize) < count).collect();
        if like.is_empty() {
            names.nic(rule.source, name)?;
        }
        nics.extend(like);
    }
    if nics.is_empty() {
        return Err(rule.source.error(
            rule.origin,
            "this rule does not say which network it is about",
            "name the `switches` that its NICs are linked to, such as [\"up*\"], or the NICs in `hosts`",
        ));
    }
    Ok(nics)
}

/// The controls of the networks that `[[at]]` names: their switches, or their NICs.
pub(super) fn named(
    table: Table<'_>,
    patterns: &[Located<String>],
    networks: &Networks,
    names: &Names<'_>,
) -> Result<Vec<ControlIndex>, ScenarioError> {
    let topology = names.topology();
    let count = u32::try_from(topology.graph.hosts.len()).unwrap_or(u32::MAX);
    let mut nics = BTreeSet::new();
    for pattern in patterns {
        let nodes = names.like(&pattern.value);
        if nodes.is_empty() {
            names.node(table.source, pattern)?;
        }
        let (own, switches): (BTreeSet<u32>, BTreeSet<u32>) =
            nodes.into_iter().partition(|node| *node < count);
        nics.extend(own);
        nics.extend(linked(topology, &switches.into_iter().map(|node| node - count).collect()));
    }
    networks.within(&nics).map_err(|why| match why {
        OutOfNetwork::NoControl => table.refuse(
            "networks",
            "no `[[transport.on]]` gives these a congestion control of their own",
            "name the switches or NICs of one that does, or leave it out",
        ),
        OutOfNetwork::Part => table.refuse(
            "networks",
            "some of these share the law of a `[[transport.on]]` with NICs that are not named",
            "name all of its switches or NICs, or give these a `[[transport.on]]` of their own",
        ),
    })
}

/// The NICs that are linked to one of `switches`, which are places in the graph's list.
fn linked(topology: &Topology, switches: &BTreeSet<u32>) -> BTreeSet<u32> {
    let hosts = topology.graph.hosts.len();
    let is_meant = |node: u32| {
        (node as usize)
            .checked_sub(hosts)
            .is_some_and(|place| u32::try_from(place).is_ok_and(|place| switches.contains(&place)))
    };
    let links = topology.graph.links.iter().map(|link| [link.a.0, link.b.0]);
    let ends = links.flat_map(|[a, b]| [(a, b), (b, a)]);
    ends.filter(|(nic, other)| (*nic as usize) < hosts && is_meant(*other)).map(|(nic, _)| nic).collect()
}

/// Of each NIC, whether data packets from there are to gather telemetry where switches write some: not on a part of the network of whose controls it is
/// known that none reads it. Elsewhere flows have `common` or one of `controls` that is of no network.
pub(crate) fn told_by_switches(
    topology: &Topology,
    networks: &Networks,
    common: &Control,
    controls: &[Control],
) -> Vec<bool> {
    let nics = || (0u16..).map(HostId).take(topology.graph.hosts.len());
    if networks.is_none() {
        return nics().map(|_| true).collect();
    }
    let parts = topology.islands();
    let part = |nic: HostId| parts[usize::from(nic.0)];
    let mut of_parts: BTreeMap<u32, BTreeSet<Option<ControlIndex>>> = BTreeMap::new();
    for nic in nics() {
        of_parts.entry(part(nic)).or_default().extend(networks.of_nic(nic));
    }
    let reads = |control: &Control| control.is_program() || control.wants_telemetry();
    let elsewhere = || std::iter::once(common).chain(controls.iter().filter(|it| it.of_network.is_none()));
    let any_reads = |index: &Option<ControlIndex>| match index.and_then(|it| controls.get(it.0 as usize)) {
        Some(control) => reads(control),
        None => elsewhere().any(reads),
    };
    nics().map(|nic| of_parts[&part(nic)].iter().any(any_reads)).collect()
}

/// The rate of the fastest NIC whose flows may have `control`, one of a network of its own.
pub(super) fn fastest(scenario: &Scenario, control: &Control) -> Option<BitsPerSec> {
    control.of_network?;
    let place = scenario.controls.iter().position(|other| std::ptr::eq(other, control))?;
    let index = Some(ControlIndex(u32::try_from(place).ok()?));
    let rates = (0u16..).map(HostId).zip(scenario.topology.graph.host_rates());
    let its = rates.filter(|(nic, _)| scenario.networks.of_nic(*nic).contains(&index));
    its.map(|(_, rate)| rate).max()
}

/// What a user should know of the first network whose flows nothing slows down while its switches drop what has no room.
pub(super) fn lossy_note(
    topology: &Topology,
    networks: &Networks,
    controls: &[Control],
    switch: &Switch,
) -> Option<String> {
    let graph = &topology.graph;
    let fastest = graph.fastest_rates();
    let hosts = graph.hosts.len();
    let is_plain = |index: ControlIndex| {
        controls.get(index.0 as usize).is_some_and(|control| control.law.value == "none")
    };
    graph.links.iter().find_map(|link| {
        let [nic, node] = if (link.a.0 as usize) < hosts { [link.a, link.b] } else { [link.b, link.a] };
        let nic = HostId(u16::try_from(nic.0).ok()?);
        let place = (node.0 as usize).checked_sub(hosts)?;
        networks.of_nic(nic).iter().flatten().find(|index| is_plain(**index))?;
        let (name, rate) = (graph.switches.get(place)?, *fastest.get(place)?);
        let config = switch.config_of(name, rate);
        (config.pfc.is_none() && config.trim.is_none()).then(|| {
            format!(
                "`{name}` drops what it has no room for, and flows there have no congestion control: for links that lose nothing, as those within \
                 servers, give `[[switch.on]]` with `rate = \"{rate}\"` `pfc = true`"
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use crate::scenario::source::ScenarioError;
    use roci_fabric::packet::HostId;
    use roci_units::Span;

    pub(super) const RAILS: &str = "topology = { kind = \"rails\", servers = 2, gpus = 2, spines = 1, rate = \"100Gb/s\", delay = \"5us\", \
        scale_up = \"900Gb/s\", scale_up_delay = \"100ns\" }\n";
    /// Two GPUs with a NIC on each of two networks, and a host that has one on the first alone.
    const GRAPH: &str = "topology = { kind = \"graph\", hosts = [\"a\", \"b\", \"c\"], switches = [\"tor\", \"nv\"], links = [\
        { a = \"a\", b = \"tor\", rate = \"100Gb/s\", delay = \"1us\" }, { a = \"a\", b = \"nv\", rate = \"900Gb/s\", delay = \"100ns\" }, \
        { a = \"b\", b = \"tor\", rate = \"100Gb/s\", delay = \"1us\" }, { a = \"b\", b = \"nv\", rate = \"900Gb/s\", delay = \"100ns\" }, \
        { a = \"c\", b = \"tor\", rate = \"100Gb/s\", delay = \"1us\" }] }\n";

    fn parse(network: &str, rest: &str) -> Result<Scenario, ScenarioError> {
        let traffic = "traffic = [{ kind = \"permutation\", size = \"1KB\", control = \"timely\" }, { kind = \"all-to-all\", size = \"1KB\" }]\n";
        Scenario::parse(&format!("{network}{traffic}{rest}"), "here.toml", &[])
    }

    #[test]
    fn at_names_networks_by_switches_and_nics_and_is_refused_where_their_law_is_not_theirs_alone() {
        let rules = "[[transport.on]]\nswitches = [\"up*\"]\ncontrol = \"swift\"\n[[transport.on]]\nswitches = [\"up0\"]\ncontrol = \"dcqcn\"\n";
        let at = |rest: &str| {
            let set = "set = { \"transport.control.rai\" = \"80Mb/s\" }";
            parse(RAILS, &format!("{rules}[[at]]\ntime = \"1us\"\n{set}\n{rest}\n"))
        };
        let written = |rest: &str| {
            let scenario = at(rest).unwrap_or_else(|error| panic!("{error}"));
            let laws = &scenario.writes[0].networks.as_ref().expect("networks").controls;
            laws.iter().map(|law| scenario.control(Some(*law)).law.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(written("networks = [\"up0\"]"), ["dcqcn"]);
        assert_eq!(written("networks = [\"h0.1\", \"h1.1\"]"), ["dcqcn"]);
        assert_eq!(written("networks = [\"up*\"]"), ["swift", "dcqcn"]);
        for (rest, message, remedy) in [
            ("networks = [\"up1\"]", "share the law", "`[[transport.on]]` of their own"),
            ("networks = [\"leaf*\"]", "no `[[transport.on]]` gives", "name the switches or NICs"),
            ("networks = [\"nvl\"]", "nvl", ""),
            ("networks = [\"up0\"]\ntraffic = \"0\"", "`traffic` says whose it is", "leave out `traffic`"),
            ("networks = [\"up0\"]\nflow = \"0.0\"", "`flow` says whose it is", "leave out `flow`"),
        ] {
            let error = at(rest).expect_err(rest).to_string();
            assert!(error.contains(message) && error.contains(remedy), "{rest}: {error}");
        }
        // A register that its law does not have is named with that law's own.
        let other = parse(
            RAILS,
            &format!(
                "{rules}[[at]]\ntime = \"1us\"\nnetworks = [\"up0\"]\nset = {{ \"transport.control.beta\" = 0.5 }}\n"
            ),
        );
        assert!(other.is_err());
        let scenario = at("networks = [\"up0\"]").unwrap();
        assert_eq!(scenario.changes()[0].1, "rai = 80Mb/s of up0");
    }

    /// What flows between two NICs have for that of their network.
    fn control(scenario: &Scenario, nics: [&str; 2]) -> Option<String> {
        let names = &scenario.topology.graph.hosts;
        let place = |nic: &str| names.iter().position(|name| name == nic).expect("a NIC");
        let nics = nics.map(|nic| HostId(u16::try_from(place(nic)).expect("few NICs")));
        scenario.networks.control(nics).map(|index| scenario.control(Some(index)).name())
    }

    #[test]
    fn links_within_servers_have_no_congestion_control_unless_a_rule_says_so() {
        let usual = parse(RAILS, "").unwrap();
        assert_eq!(control(&usual, ["h0.1", "h1.1"]).as_deref(), Some("none"));
        assert_eq!(control(&usual, ["h0.0", "h1.0"]), None);
        assert_eq!(usual.controls.len(), 2, "the first is that of a table");

        let swift = parse(RAILS, "transport.on = [{ switches = [\"up*\"], control = \"swift\" }]\n").unwrap();
        assert_eq!(control(&swift, ["h0.1", "h1.1"]).as_deref(), Some("swift preset=htsim"));
        assert_eq!(swift.controls.len(), 2, "nobody has `none` any more");

        let rules = "transport.on = [{ switches = [\"up0\"], control = \"swift\" }, { hosts = [\"h*.1\"] }, { hosts = [\"h2.1\", \"h3.1\"], \
            control = { law = \"dcqcn\", preset = \"hpcc\" } }]\n";
        let last = parse(RAILS, rules).unwrap();
        assert_eq!(control(&last, ["h0.1", "h1.1"]), None, "what they have elsewhere");
        assert_eq!(control(&last, ["h2.1", "h3.1"]).as_deref(), Some("dcqcn preset=hpcc"));
        // Of a rule about some NICs others have what they had.
        let one = parse(RAILS, "transport.on = [{ hosts = [\"h0\"], control = \"swift\" }]\n").unwrap();
        assert_eq!(control(&one, ["h0.1", "h1.1"]).as_deref(), Some("none"));
        assert!(
            parse(&RAILS.replace(", scale_up = \"900Gb/s\", scale_up_delay = \"100ns\"", ""), "")
                .unwrap()
                .networks
                .is_none()
        );
    }

    #[test]
    fn in_a_graph_a_network_is_told_by_its_switches_or_its_nics() {
        assert!(parse(GRAPH, "").unwrap().networks.is_none());
        for rule in ["switches = [\"nv\"]", "hosts = [\"*.1\"]", "hosts = [\"a.1\", \"b.1\"]"] {
            let program = "control = { law = \"program\", elf = \"firmware/swift.elf\" }";
            let scenario = parse(GRAPH, &format!("transport.on = [{{ {rule}, {program} }}]\n")).unwrap();
            assert_eq!(
                control(&scenario, ["a.1", "b.1"]).as_deref(),
                Some("program elf=firmware/swift.elf"),
                "{rule}"
            );
            assert_eq!([control(&scenario, ["a.0", "b.0"]), control(&scenario, ["a.0", "c"])], [None, None]);
            assert_eq!(scenario.images().count(), 1, "it is loaded");
        }
        let host = parse(GRAPH, "transport.on = [{ hosts = [\"a\", \"c\"], control = \"none\" }]\n").unwrap();
        assert_eq!(
            control(&host, ["a.0", "c"]).as_deref(),
            Some("none"),
            "a host stands for all of its NICs"
        );
        assert_eq!(control(&host, ["a.0", "b.0"]), None, "one end is on it");
    }

    #[test]
    fn a_law_is_fitted_to_the_round_trip_of_its_network() {
        let scenario = parse(
            RAILS,
            "transport.control = \"nscc\"\ntransport.on = [{ switches = [\"up*\"], control = \"nscc\" }]\n",
        )
        .unwrap();
        let own = scenario.networks.control([HostId(4), HostId(5)]);
        let [within, elsewhere] =
            [own, None].map(|index| scenario.control(index).network.expect("fitted").round_trip);
        assert!(within < Span::from_nanos(500), "four links of 100 ns: {within}");
        assert!(elsewhere > Span::from_micros(40), "eight links of 5 us: {elsewhere}");
    }

    #[test]
    fn a_law_that_reads_telemetry_on_one_network_has_none_gathered_on_others() {
        let of_servers =
            "transport = { control = \"none\", on = [{ switches = [\"up*\"], control = \"hpcc\" }] }\n";
        let scenario = parse(RAILS, of_servers).unwrap();
        assert_eq!(scenario.gathers_telemetry(), [[false; 4], [true; 4]].concat());
    }

    #[test]
    fn packets_gather_no_telemetry_where_no_law_reads_it() {
        let gathers = |network: &str, rest: &str| {
            let scenario = parse(network, &format!("transport.control = \"hpcc\"\n{rest}")).unwrap();
            scenario.gathers_telemetry()
        };
        let [on, off] = [[true; 4], [false; 4]];
        assert_eq!(gathers(RAILS, ""), [on, off].concat());
        assert_eq!(gathers(RAILS, "transport.on = [{ switches = [\"up*\"] }]\n"), [on, on].concat());
        assert_eq!(
            gathers(RAILS, "transport.on = [{ switches = [\"up*\"], control = \"powertcp\" }]\n"),
            [on, on].concat()
        );
        // The three NICs on `tor` come first; some of its flows have `hpcc`.
        assert_eq!(
            gathers(GRAPH, "transport.on = [{ hosts = [\"a.0\", \"b.0\"], control = \"none\" }]\n"),
            [true; 5]
        );
        assert_eq!(
            gathers(GRAPH, "transport.on = [{ switches = [\"nv\"], control = \"none\" }]\n"),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn rules_that_are_about_no_network_are_refused_with_a_remedy() {
        let star = "topology = { kind = \"star\", hosts = 3, rate = \"100Gb/s\", delay = \"1us\" }\n";
        for (network, rule, message, remedy) in [
            (RAILS, "control = \"none\"", "does not say which network", "[\"up*\"]"),
            (
                RAILS,
                "switches = [\"spine*\"], control = \"none\"",
                "no NIC is linked to `spine*`",
                "switches that the NICs",
            ),
            (RAILS, "switches = [\"nv*\"], control = \"none\"", "no switch is called like `nv*`", "`up1`"),
            (RAILS, "hosts = [\"h9\"], control = \"none\"", "no host `h9`", "`h0`"),
            (RAILS, "switches = [\"up*\"], control = \"newton\"", "no law `newton`", "`none`"),
            (RAILS, "switches = [\"up*\"], control = \"homa\"", "header layout of its own", "for all flows"),
            (
                star,
                "switches = [\"s0\"], control = \"none\"",
                "each host has one NIC",
                "a `control` of their own",
            ),
        ] {
            let told = parse(network, &format!("transport.on = [{{ {rule} }}]\n")).unwrap_err().to_string();
            assert!(told.contains(message) && told.contains(remedy), "{rule}: {told}");
        }
    }

    #[test]
    fn a_preset_is_held_against_the_links_of_its_network() {
        // Its steps are of 100 Gb/s, as others have here.
        let on = "transport = { control = \"none\", on = [{ switches = [\"up*\"], control = { law = \"timely\", preset = \"swcc\" } }] }\n";
        let scenario = parse(RAILS, on).unwrap();
        let told: Vec<&str> =
            scenario.notes().filter(|note| note.contains("has the steps of 100Gb/s links")).collect();
        assert!(told.len() == 1 && told[0].contains("hosts here have 900Gb/s"), "{told:?}");
    }

    #[test]
    fn links_without_congestion_control_that_drop_are_told_of() {
        let told = |rest: &str| {
            let scenario = parse(RAILS, rest).unwrap();
            scenario
                .notes()
                .find(|note| note.contains("flows there have no congestion control"))
                .map(str::to_owned)
        };
        assert_eq!(told(""), None);
        let note = told("switch.pfc = false\n").unwrap();
        assert!(
            note.starts_with("`up0` drops") && note.contains("`rate = \"900Gb/s\"` `pfc = true`"),
            "{note}"
        );
        assert_eq!(told("switch.pfc = false\nswitch.on = [{ rate = \"900Gb/s\", pfc = true }]\n"), None);
        assert_eq!(
            told("switch.pfc = false\ntransport.on = [{ hosts = [\"h*.1\"], control = \"swift\" }]\n"),
            None
        );
    }
}
