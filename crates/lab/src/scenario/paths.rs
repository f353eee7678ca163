//! The key `paths` of `[transport]`: whether senders choose a path for each packet.

use super::keys;
use super::read::Table;
use super::source::ScenarioError;
use super::tree::Kind;
use super::{Switch, Transport, together};
use roci_fabric::Balancing;
use roci_fabric::graph::Graph;
use roci_fabric::routing::Routes;
use roci_nic::spread::PORTS;
use roci_nic::{Recycling, Spreading};
use roci_switch::Buffering;
use roci_transport::Recovery;
use roci_units::Span;

/// How a packet chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Flow,
    Random,
    Reps,
}

const NAMED: [(&str, By); 3] = [("flow", By::Flow), ("ops", By::Random), ("reps", By::Reps)];

/// How long REPS tries no new paths after a timeout, and how many packets it then tries them with, where nobody says so: as its authors' simulator
/// has them.
const FREEZE: Span = Span::from_millis(10);
const EXPLORE: u16 = 16;

/// The key `paths`: a word, or a table that says more.
pub(super) fn read(table: Table<'_>, recovery: Recovery) -> Result<Option<Spreading>, ScenarioError> {
    if !table.get("paths").is_some_and(|node| matches!(node.kind, Kind::Table(_))) {
        let by = table.word("paths", &NAMED)?.unwrap_or(By::Flow);
        return Ok(spreading(by, recovery, PORTS, EXPLORE, FREEZE));
    }
    let Some(paths) = table.table("paths", &keys::PATHS)? else { return Ok(None) };
    let by = paths.require("by", paths.word("by", &NAMED[1..])?)?;
    if by != By::Reps
        && let Some(key) = ["explore", "freeze"].into_iter().find(|key| paths.get(key).is_some())
    {
        return Err(paths.refuse(
            key,
            "only REPS remembers ports",
            format!("leave `{key}` out, or set `by` to \"reps\""),
        ));
    }
    let narrow = |number: u64| u16::try_from(number).ok();
    let entropies = paths.number("entropies", 1..=PORTS.into())?.and_then(narrow).unwrap_or(PORTS);
    let explore = paths.number("explore", 0..=u16::MAX.into())?.and_then(narrow).unwrap_or(EXPLORE);
    Ok(spreading(by, recovery, entropies, explore, paths.span("freeze")?.unwrap_or(FREEZE)))
}

fn spreading(by: By, recovery: Recovery, entropies: u16, explore: u16, freeze: Span) -> Option<Spreading> {
    let recycling = Recycling { explore, freeze, nak_is_loss: recovery == Recovery::Ndp };
    match by {
        By::Flow => None,
        By::Random => Some(Spreading { entropies, recycling: None }),
        By::Reps => Some(Spreading { entropies, recycling: Some(recycling) }),
    }
}

/// Notes where senders choose paths and that does nothing, or more than was meant.
pub(super) fn notes(switch: &Switch, transport: &Transport, graph: &Graph) -> Vec<String> {
    let Some(how) = transport.paths else { return Vec::new() };
    let routes = Routes::weighted(graph, &|_, _| 1).ok();
    let has_choice = routes.is_none_or(|routes| {
        (0u32..).zip(&graph.switches).any(|(number, _)| routes.choices(number).next().is_some())
    });
    let mut notes = Vec::new();
    let mut note = |holds: bool, text: String| {
        if holds {
            notes.push(format!("`transport.paths` {text}"));
        }
    };
    note(
        !has_choice,
        "does nothing: no switch here has several ports of equal cost to choose from".to_owned(),
    );
    note(
        has_choice && switch.routing != Balancing::Hash,
        format!(
            "gives packets UDP ports, by which switches choose with `switch.routing = \"ecmp\"` alone, and not with \"{}\"",
            together::routing_of(switch)
        ),
    );
    note(
        transport.recovery == Recovery::GoBackN,
        "lets packets overtake each other, and go-back-N sends all behind a gap again: set `transport.recovery` to \"ndp\", which takes none for \
         lost that is late, or to \"sack\", which takes few"
            .to_owned(),
    );
    note(
        matches!(transport.recovery, Recovery::Irn | Recovery::Srnic),
        "lets packets overtake each other, and IRN and SRNIC send each that was overtaken again: `transport.recovery = \"ndp\"` sends none, \"sack\" few"
            .to_owned(),
    );
    note(
        how.entropies == 1,
        "gives all packets one port, and thereby each two hosts one path: leave `entropies` out".to_owned(),
    );
    note(
        how.recycling.is_some() && transport.recovery != Recovery::Ndp && transport.ack_every > 1,
        format!(
            "is \"reps\", which has a port again for each acknowledgement, and `transport.ack_every` is {}: the other packets take ports at random",
            transport.ack_every
        ),
    );
    note(
        switch.config.queues == Buffering::PerFlow,
        "gives the packets of a flow different UDP ports, by which `switch.queues = \"per-flow\"` tells flows: each port has a queue of its own"
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    const LEAVES: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nrate = \"100Gb/s\"\nfabric_rate = \"100Gb/s\"\ndelay = \"1us\"\n\
                          [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";

    fn read(more: &str) -> Result<Scenario, String> {
        Scenario::parse(&format!("{LEAVES}{more}"), "test", &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn only_reps_remembers_ports_and_it_says_who_is_meant() {
        let refused =
            read("[transport]\npaths = { by = \"ops\", freeze = \"1ms\" }\n").expect_err("no ports are kept");
        assert!(refused.contains("only REPS remembers ports"), "{refused}");
        for wrong in
            ["\"turns\"", "{ by = \"flow\" }", "{ entropies = 4 }", "{ by = \"ops\", entropies = 0 }"]
        {
            read(&format!("[transport]\npaths = {wrong}\n")).expect_err(wrong);
        }
        read("[transport]\nservice = \"UC\"\npaths = \"ops\"\n").expect_err("UC drops what is late");
        assert_eq!(read("[transport]\npaths = \"flow\"\n").expect("it is read").transport.paths, None);
    }

    #[test]
    fn paths_that_do_nothing_or_harm_are_told() {
        let told = |more: &str| {
            let scenario = read(more).expect("it is read");
            scenario.notes().filter(|note| note.contains("transport.paths")).count()
        };
        let reps = "[transport]\npaths = \"reps\"\nrecovery = \"ndp\"\n";
        assert_eq!(told(reps), 0);
        assert_eq!(told("[transport]\nrecovery = \"ndp\"\n[switch]\nrouting = \"spray\"\n"), 0);
        for set in ["routing = \"spray\"", "routing = \"flowlet\"", "queues = \"per-flow\""] {
            assert_eq!(told(&format!("{reps}[switch]\n{set}\n")), 1, "{set}");
        }
        for recovery in ["go-back-n", "irn", "srnic"] {
            assert_eq!(
                told(&format!("[transport]\npaths = \"ops\"\nrecovery = \"{recovery}\"\n")),
                1,
                "{recovery}"
            );
        }
        assert_eq!(told("[transport]\npaths = { by = \"ops\", entropies = 1 }\nrecovery = \"ndp\"\n"), 1);
        let sack = "[transport]\npaths = \"reps\"\nrecovery = \"sack\"\n";
        assert_eq!([told(sack), told(&format!("{sack}ack_every = 4\n"))], [0, 1]);
        assert_eq!(told(&format!("{reps}ack_every = 4\n")), 0, "`ndp` acknowledges each packet");
        let star = LEAVES.replace("spines = 2", "spines = 1");
        let one = Scenario::parse(&format!("{star}{reps}"), "test", &[]).expect("it is read");
        assert!(one.notes().any(|note| note.contains("several ports of equal cost")));
    }
}
