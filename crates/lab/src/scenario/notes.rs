//! What a user should know of a scenario that is in order: it is gathered here when all tables have been read.

use super::reach::Reach;
use super::read::Table;
use super::{Control, Scenario, Source, Switch, cores, ets, fast, fill, networks, paths, presets, together};
use crate::traffic::spec::{Op, Traffic};

/// What reading found out and a scenario does not keep.
pub(super) struct Found<'a> {
    /// `[transport]`.
    pub transport: Option<Table<'a>>,
    /// Links lose packets.
    pub lossy: bool,
    /// Nothing is lost, neither by links nor by switches.
    pub lossless: bool,
    pub reach: Reach,
    pub fast: fast::Fast,
    /// The greatest frame, without telemetry, in octets.
    pub frame: u32,
    /// What a full packet has on a link besides its payload, in octets.
    pub overhead: u64,
    /// The greatest that NICs must have room for, in octets.
    pub max_frame: u32,
    /// What there is to say of the timeout,
    pub timeout: Option<String>,
    /// of rules of networks and writes of registers that do nothing,
    pub idle: Vec<String>,
    /// and of flows that begin behind the end.
    pub late: Option<String>,
}

/// All of it, in the order in which it is told.
pub(super) fn gather(scenario: &Scenario, found: Found<'_>) -> Vec<String> {
    let Scenario { switch, nic, transport, traffic, controls, application, machine, faults, source, .. } =
        scenario;
    let graph = &scenario.topology.graph;
    let Found {
        transport: table,
        lossy,
        lossless,
        reach,
        fast,
        frame,
        overhead,
        max_frame,
        timeout,
        idle,
        late,
    } = found;
    let used = || presets::used(traffic, &transport.control, controls);
    let elsewhere = || used().filter(|control| control.of_network.is_none());
    let origin_of = |key| table.and_then(|table| table.get(key)).map(|node| node.origin);

    let mut product = reach.product(graph, frame, faults);
    let mut unbounded = transport.bound_note(lossless, product.as_ref());
    let beyond = transport.bitmap_note(product.as_ref());
    if traffic.iter().flat_map(Traffic::ops).all(Op::is_atomic)
        && product.as_ref().is_some_and(|product| product.packets >= transport.max_rd_atomic.into())
    {
        // Of atomics a round trip holds more than a queue pair may have outstanding, whatever bounds it besides.
        (product, unbounded) = (None, None);
    }
    let hops = switch.int.then_some(reach.most_switches);
    let unfilled = product
        .as_ref()
        .map(|product| fill::notes(elsewhere(), source, transport, product, (nic.config.mtu, hops)));
    let forged = faults.rules.iter().any(|rule| rule.cnp.is_some());
    let around = together::Surroundings { lossy, forged, hostcc: machine.hostcc.is_some() };
    let reads = presets::used_by_reads(traffic, &transport.control, controls);
    let is_common = traffic.iter().flat_map(Traffic::controls).any(|control| control.is_none());
    let brought = transport.control.brought_note(origin_of("recovery")).filter(|_| is_common);
    let unnamed = controls.iter().chain([&transport.control]).filter_map(Control::unnamed_note);

    let unheeded = unheeded(source, switch, used()).filter(|_| !transport.recovery.owns_window());
    let by_marks = |control: &Control| matches!(control.law.value.as_str(), "dcqcn" | "dctcp" | "nscc");
    let late_marks = used().any(by_marks).then(|| switch.late_marks_note(graph)).flatten();

    let of_tables = nic
        .note()
        .into_iter()
        .chain(timeout)
        .chain(unbounded)
        .chain(beyond)
        .chain(switch.unmarked_note())
        .chain(late_marks)
        .chain(unheeded)
        .chain(switch.idle_rule_note(graph))
        .chain(nic.idle_notes())
        .chain(nic.parts_notes(graph, max_frame, switch.config.pfc.is_some()));
    of_tables
        .chain(together::notes(switch, transport, nic, around, used()))
        .chain(together::idle_routing(switch, graph, !faults.is_none()))
        .chain(paths::notes(switch, transport, graph))
        .chain(together::unheld_reads(transport, reads))
        .chain(presets::outgrown(used(), &scenario.topology, |control| networks::fastest(scenario, control)))
        .chain(fast.note(&transport.control, controls))
        .chain(networks::lossy_note(&scenario.topology, &scenario.networks, controls, switch))
        .chain(unfilled.into_iter().flatten())
        .chain(fill::unseen(used(), source, nic.config.mtu, graph, hops))
        .chain(fill::in_turns(used(), nic, graph))
        .chain(cores::notes(used(), source, transport, nic, graph, overhead))
        .chain(idle)
        .chain(late)
        .chain(faults.idle_notes(scenario.stop, source))
        .chain(together::uneven_hosts(traffic, &scenario.topology))
        .chain(together::unused(transport, origin_of("initial_window").is_some(), traffic))
        .chain(together::unheard(origin_of("control"), traffic))
        .chain(application.note(table, traffic))
        .chain(machine.notes(traffic, |own| scenario.control(own)))
        .chain(together::uncounted(scenario))
        .chain(brought)
        .chain(together::mixed_with_headers(switch, traffic))
        .chain(ets::notes(switch, traffic, used().any(Control::is_granted)))
        .chain(unnamed)
        .collect()
}

/// What a user should know who varies by hand when switches mark, where no law heeds that: a sweep would run the same again and again.
fn unheeded<'a>(source: &Source, switch: &Switch, used: impl Iterator<Item = &'a Control>) -> Option<String> {
    let (key, _) = source.overrides().iter().find(|(key, _)| key.starts_with("switch.ecn."))?;
    let laws: Vec<&Control> = used.collect();
    let first = laws.first()?;
    let none_heeds = switch.configs().any(|config| config.ecn.is_some())
        && !laws.iter().any(|control| presets::heeds_marks(control));
    none_heeds.then(|| {
        format!(
            "`{key}` changes how many packets are marked and nothing else: `{}` does not slow down for marks",
            first.law.value
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use crate::scenario::tests::{PERMUTATION, star};

    #[test]
    fn marks_that_are_varied_where_no_law_heeds_them_are_told_of() {
        let told = |set: &[(&str, &str)]| {
            let set: Vec<_> =
                set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let scenario = Scenario::parse(&star(PERMUTATION), "here.toml", &set).unwrap();
            scenario.notes().filter(|note| note.contains("does not slow down for marks")).count()
        };
        let kmin = ("switch.ecn.kmin", "10KB");
        let law = |name| ("transport.control", name);
        for (name, is_told) in [("timely", 1), ("none", 1), ("dcqcn", 0), ("dctcp", 0)] {
            assert_eq!(told(&[kmin, law(name)]), is_told, "{name}");
        }
        assert_eq!(told(&[law("timely")]), 0, "nobody varies it");
        assert_eq!(told(&[("switch.ecn", "false"), law("timely")]), 0, "nothing is marked");
        let rest = [("transport.recovery", "reno"), ("transport.control", "none")];
        assert_eq!(told(&[&[kmin], &rest[..]].concat()), 0, "a recovery with a window of its own decides");
    }
}
