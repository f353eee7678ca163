//! Settings that are each in order and go badly together: what a user should know of them.

use super::source::{Origin, listed};
use super::{Control, Nic, Scenario, Switch, Transport};
use crate::traffic::spec::{Poisson, Traffic};
use roci_fabric::Balancing;
use roci_fabric::graph::Graph;
use roci_fabric::routing::{EqualPorts, Routes};
use roci_fabric::topology::Topology;
use roci_switch::SwitchConfig;
use roci_transport::Recovery;
use roci_units::{BitsPerSec, Instant, Span};
use roci_wire::Layout;
use std::collections::BTreeSet;

/// What a run has beside its settings that decides whether they go well together.
#[derive(Clone, Copy)]
pub(super) struct Surroundings {
    /// Links lose packets.
    pub(super) lossy: bool,
    /// A device forges CNPs.
    pub(super) forged: bool,
    /// Machines mark what arrives.
    pub(super) hostcc: bool,
}

/// Notes on what all flows share, and then on each law of `controls`.
pub(super) fn notes<'a>(
    switch: &Switch,
    transport: &Transport,
    nic: &Nic,
    around: Surroundings,
    controls: impl Iterator<Item = &'a Control>,
) -> Vec<String> {
    let mut notes = of_recovery(switch, transport, nic, around.lossy);
    let mut laws: Vec<&Control> = controls.collect();
    laws.sort_by(|a, b| a.law.value.cmp(&b.law.value));
    laws.dedup_by(|a, b| a.law.value == b.law.value);
    for control in laws {
        notes.extend(of_law(control, switch, transport, nic, around));
    }
    notes
}

/// Whether `config` has PAUSE hold back data.
const fn holds_data(switch: &Switch, config: &SwitchConfig) -> bool {
    config.pfc.is_some() && switch.classes.pause >> switch.classes.data & 1 == 1
}

/// How the recovery goes with what switches do and links lose.
fn of_recovery(switch: &Switch, transport: &Transport, nic: &Nic, lossy: bool) -> Vec<String> {
    let sprayed = switch.routing.scatters();
    let routing = routing_of(switch);
    let trims = switch.config.trim.is_some();
    let holds = |config: &SwitchConfig| holds_data(switch, config);
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| notes.extend(applies.then_some(text));
    let held = switch.configs().all(holds);
    note(
        transport.recovery == Recovery::Ndp && !trims && !held,
        "`transport.recovery = \"ndp\"` hears of an overflow by the header that is left of a packet, and no switch cuts payloads \
         off: each packet that finds no room costs a timeout. Set `switch.trimming = true`"
            .to_owned(),
    );
    note(
        transport.recovery == Recovery::Ndp && lossy,
        format!(
            "`transport.recovery = \"ndp\"` does not hear of what links lose, with `switch.trimming` or without: each such packet \
             waits for `transport.timeout`, {}",
            match transport.timeout {
                Span::ZERO => "and `\"0s\"` is never".to_owned(),
                timeout => format!("{timeout} here"),
            }
        ),
    );
    note(
        switch.configs().any(|config| config.trim.is_some() && holds(config)),
        format!(
            "`switch.trimming` cuts no data where `switch.pfc` holds back their priority, {}: leave `switch.pfc` out, or set it to `false`",
            switch.classes.data
        ),
    );
    note(
        trims && transport.recovery != Recovery::Ndp,
        "`switch.trimming` tells of losses only with `transport.recovery = \"ndp\"`; others take a header without its payload for \
         nothing, and it takes the room of data"
            .to_owned(),
    );
    note(
        sprayed && transport.recovery == Recovery::GoBackN,
        format!(
            "`transport.recovery = \"go-back-n\"` takes packets for lost that others overtake, as they do with `switch.routing = \
             \"{routing}\"`, and sends all behind them again. Set `transport.recovery = \"irn\"`, or another that keeps what comes out \
             of order"
        ),
    );
    note(
        routing == "flowlet" && transport.recovery == Recovery::GoBackN && switch.configs().any(holds),
        "a flow that PAUSE stops is silent, and with `switch.routing = \"flowlet\"` may then take another port and overtake what stands \
         before the first: `transport.recovery = \"go-back-n\"` sends all of that again. Set `switch.flowlet_gap` to more than pauses \
         last, or another recovery"
            .to_owned(),
    );
    if let Some(key) = switch.idle_flowlet_key {
        note(true, format!("`switch.{key}` does nothing: it is for `switch.routing = \"flowlet\"`"));
    }
    note(
        lossy && transport.recovery == Recovery::GoBackN && nic.asking().is_some(),
        format!(
            "`{}` keeps what comes out of order and has software decide what a loss means, and `transport.recovery = \"go-back-n\"` \
             has use for neither: set `transport.recovery = \"srnic\"`",
            nic.asking().unwrap_or_default()
        ),
    );
    for (recovery, name) in [(Recovery::Irn, "irn"), (Recovery::Srnic, "srnic")] {
        note(
            sprayed && transport.recovery == recovery && transport.layout != Layout::Homa,
            format!(
                "`transport.recovery = \"{name}\"` takes packets for lost that others overtake, as they do with `switch.routing = \
                 \"{routing}\"`, and sends those again in vain: that takes room on the links, and time where that is scarce. \"sack\" \
                 waits until three have overtaken one, and \"ndp\" and law `homa` do not judge by the order"
            ),
        );
    }
    notes
}

/// How the law of `control` goes with everything else.
fn of_law(
    control: &Control,
    switch: &Switch,
    transport: &Transport,
    nic: &Nic,
    Surroundings { forged, hostcc, .. }: Surroundings,
) -> Vec<String> {
    let law = control.law.value.as_str();
    let routing = routing_of(switch);
    let sprayed = switch.routing.scatters();
    let held = switch.configs().all(|config| holds_data(switch, config));
    let coreless = nic.coreless();
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| notes.extend(applies.then_some(text));
    note(
        control.is_program() && !coreless.is_empty(),
        format!(
            "a program runs on {}, where no core does: it answers at once, and its cycles take no time. NICs with cores \
             are in `roci nic list`",
            listed(coreless.iter().copied())
        ),
    );
    note(
        sprayed && control.wants_telemetry(),
        format!(
            "`{law}` computes from two acknowledgements in a row whose packets went one way, and with `switch.routing = \"{routing}\"` \
             few did: of n equal ways about one in n tells it of congestion"
        ),
    );
    note(
        law == "homa" && transport.recovery == Recovery::GoBackN,
        "`homa` lets messages overtake each other by their priorities, and `transport.recovery = \"go-back-n\"` takes packets for \
         lost that others overtake. Set `transport.recovery = \"irn\"`"
            .to_owned(),
    );
    note(
        transport.recovery == Recovery::Ndp
            && law != "ndp"
            && !control.is_program()
            && (law == "none" || !held),
        format!(
            "`transport.recovery = \"ndp\"` is pulled by law `ndp` alone, and under `{law}` nothing spaces what is sent: set \
             `transport.control = \"ndp\"`"
        ),
    );
    note(
        law == "homa"
            && nic.bounded().is_some()
            && switch.config.pfc.is_some()
            && switch.classes.pause != u8::MAX,
        format!(
            "`homa` sends on every priority, and PAUSE holds back those of `switch.classes.pause` alone: what the receive FIFO of \
             `{}` has no room for on others is lost. List all eight there, or set `switch.pfc = false`",
            nic.bounded().unwrap_or_default()
        ),
    );
    note(
        switch.config.ecn.is_none()
            && !hostcc
            && (matches!(law, "dctcp" | "nscc") || law == "dcqcn" && !forged),
        format!("`{law}` slows down for marks, and `switch.ecn` is off: set `switch.ecn = true`"),
    );
    notes
}

/// What `switch.routing` is called.
pub(super) const fn routing_of(switch: &Switch) -> &'static str {
    match switch.routing {
        Balancing::Hash => "ecmp",
        Balancing::InTurn => "spray",
        Balancing::Adaptive => "adaptive",
        Balancing::Flowlet { .. } => "flowlet",
    }
}

/// A note where it was chosen how switches choose among ports of equal cost, and none has several; or that they have weights, and all that
/// are equal have the same, as nothing befalls a link.
pub(super) fn idle_routing(switch: &Switch, graph: &Graph, is_faulty: bool) -> Option<String> {
    if switch.routing == Balancing::Hash && !switch.wcmp {
        return None;
    }
    let links = graph.switch_links();
    let rate = |switch: usize, port: u16| links[switch][usize::from(port)].rate.0;
    let routes = Routes::weighted(graph, &rate).ok()?;
    let choices = || (0u32..).zip(&graph.switches).flat_map(|(number, _)| routes.choices(number));
    let key = match switch.routing {
        Balancing::Hash => "wcmp = true".to_owned(),
        _ => format!("routing = \"{}\"", routing_of(switch)),
    };
    if choices().next().is_none() {
        return Some(format!(
            "`switch.{key}` does nothing: no switch here has several ports of equal cost to choose from"
        ));
    }
    let is_weighed =
        |ports: EqualPorts<'_>| ports.ports().collect::<BTreeSet<_>>().len() < ports.count().into();
    (switch.wcmp && !is_faulty && !choices().any(is_weighed)).then(|| {
        "`switch.wcmp = true` does nothing: wherever a switch has several ports of equal cost, the paths through them carry the same"
            .to_owned()
    })
}

/// A note for each table of requests of which none is counted, for the run stops before its warmup is over.
pub(super) fn uncounted(scenario: &Scenario) -> Vec<String> {
    let named = scenario.traffic.iter().zip(&scenario.traffic_names);
    let note = |(traffic, name): (&Traffic, &String)| {
        let Traffic::Rpc(rpc) = traffic else { return None };
        let stop = Instant::ZERO + scenario.stop?;
        let from = rpc.start + rpc.warmup;
        (from >= stop && rpc.start < stop).then(|| {
            format!("no request of `{name}` is counted: its `warmup` is over at {from}, and the run stops at {stop}")
        })
    };
    named.filter_map(note).collect()
}

/// A note for each law of `reads`, under which traffic READs, that nothing tells of the responses.
pub(super) fn unheld_reads<'a>(
    transport: &Transport,
    reads: impl Iterator<Item = &'a Control>,
) -> Vec<String> {
    let note = |control: &Control| {
        let law = control.law.value.as_str();
        match law {
            "timely" | "dctcp" | "hpcc" | "powertcp" | "theta-powertcp" | "swift" | "nscc"
                if transport.recovery == Recovery::GoBackN =>
            {
                Some(format!(
                    "`{law}` hears of acknowledgements, and with `transport.recovery = \"go-back-n\"` READ responses are not \
                 acknowledged: nothing holds them back. Set `transport.recovery = \"irn\"`, or another that keeps what comes out of \
                 order"
                ))
            }
            _ => None,
        }
    };
    let mut notes: Vec<String> = reads.filter_map(note).collect();
    notes.sort();
    notes.dedup();
    notes
}

/// A note where the common control is set at `origin`, and flows have others of their own: all, or some and it was set apart from the
/// file, by `--set` or by what compares controls.
pub(super) fn unheard(origin: Option<Origin>, traffic: &[Traffic]) -> Option<String> {
    let origin = origin?;
    let own: Vec<String> = (0..)
        .zip(traffic)
        .filter(|(_, traffic)| traffic.controls().all(|control| control.is_some()))
        .map(|(n, _): (u32, _)| format!("traffic.{n}"))
        .collect();
    let all = own.len() == traffic.len();
    let tells = !own.is_empty() && (all || matches!(origin, Origin::Override(_)));
    tells.then(|| {
        let what = if all { "no flow" } else { "the others alone" };
        format!(
            "`transport.control` holds for {what}: {} {} a `control` of {} own. To change that, set it there, or leave it out",
            listed(own.iter().map(String::as_str)),
            if own.len() == 1 { "has" } else { "have" },
            if own.len() == 1 { "its" } else { "their" },
        )
    })
}

/// A note where the headers of trimmed packets travel among data.
pub(super) fn mixed_with_headers(switch: &Switch, traffic: &[Traffic]) -> Option<String> {
    let headers = switch.config.trim?.header_priority;
    let data = traffic.iter().flat_map(Traffic::priorities).map(|own| own.unwrap_or(switch.classes.data));
    data.into_iter().any(|priority| priority == headers).then(|| {
        format!(
            "`switch.trimming.priority` is {headers}, which data have as well: headers of trimmed packets wait behind them, and are \
             dropped where a queue of that priority is full. Give them one of their own"
        )
    })
}

/// A note where hosts that traffic is drawn over evenly are asked for more than their links carry, since others' are faster.
pub(super) fn uneven_hosts(traffic: &[Traffic], topology: &Topology) -> Option<String> {
    let rates = topology.capacities();
    let slowest = rates.iter().min().filter(|rate| rate.0 > 0)?;
    let all: u128 = rates.iter().map(|rate| u128::from(rate.0)).sum();
    traffic.iter().find_map(|traffic| {
        let Traffic::Poisson(Poisson { load, .. }) = traffic else { return None };
        let asked = all * u128::from(load.numerator()) / u128::from(load.denominator()) / rates.len() as u128;
        let asked = BitsPerSec(u64::try_from(asked).unwrap_or(u64::MAX));
        (asked > *slowest).then(|| {
            format!(
                "`poisson` draws sources and destinations evenly, for {asked} at each host here, and the slowest of them have links of \
                 {slowest}: what these send and receive waits ever longer"
            )
        })
    })
}

/// A note for each key that is set and that the chosen recovery or law has no use for.
pub(super) fn unused(transport: &Transport, initial_window: bool, traffic: &[Traffic]) -> Vec<String> {
    let mut notes = Vec::new();
    if initial_window && !matches!(transport.recovery, Recovery::Reno | Recovery::NewReno | Recovery::Sack) {
        notes.push(
            "`transport.initial_window` has no effect: only the recoveries \"reno\", \"newreno\" and \"sack\" have a congestion \
             window of their own. To bound what is in flight, set `transport.max_in_flight`"
                .to_owned(),
        );
    }
    let reads = traffic.iter().flat_map(Traffic::controls_of_reads).next().is_some();
    if reads && transport.max_in_flight > 0 && transport.recovery == Recovery::GoBackN {
        notes.push(
            "`transport.max_in_flight` does not hold back READ responses with `transport.recovery = \"go-back-n\"`, which are not \
             acknowledged. Set `transport.recovery = \"irn\"`, or another that keeps what comes out of order"
                .to_owned(),
        );
    }
    let has_own = |traffic: &Traffic| match traffic {
        Traffic::Flows(flows) => flows.iter().any(|flow| flow.common.priority.is_some()),
        Traffic::ClosedLoop(it) => it.common.priority.is_some(),
        Traffic::Collective(it) => it.common.priority.is_some(),
        Traffic::Goal(it) => it.common.priority.is_some(),
        Traffic::Rpc(it) => it.common.priority.is_some(),
        Traffic::Incast(it) => it.common.priority.is_some(),
        Traffic::Permutation(it) | Traffic::AllToAll(it) => it.common.priority.is_some(),
        Traffic::Poisson(it) => it.common.priority.is_some(),
        Traffic::Trigger(it) => it.common.priority.is_some(),
        // Its file has a priority for each flow, whether that is wanted or not.
        Traffic::Hpcc(_) => false,
    };
    if transport.control.is_granted() && traffic.iter().any(has_own) {
        notes.push(format!(
            "`priority` of traffic has no effect under `{}`, which ranks packets by their messages",
            transport.control.law.value
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PERMUTATION, parse, star};

    #[test]
    fn slow_hosts_that_are_asked_for_what_fast_ones_carry_and_late_faults_are_told_of() {
        let notes = |rate: &str| {
            let text = format!(
                "stop = \"1ms\"\n[topology]\nkind = \"graph\"\nhosts = [\"a\", \"b\", \"c\"]\nswitches = [\"s\"]\nlinks = [\n\
                 {{ a = \"a\", b = \"s\", rate = \"100Gb/s\", delay = \"1us\" }},\n{{ a = \"b\", b = \"s\", rate = \"100Gb/s\", delay = \"1us\" }},\n\
                 {{ a = \"c\", b = \"s\", rate = \"{rate}\", delay = \"1us\" }},\n]\n[[traffic]]\nkind = \"poisson\"\nsizes = \"64KB\"\nload = 0.3\n\
                 [[faults.on]]\nlink = \"a-s\"\nloss = 0.01\nfrom = \"1ms\"\n"
            );
            parse(&text).unwrap().notes().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let told = notes("10Gb/s");
        assert!(
            told.contains("for 21Gb/s at each host here, and the slowest of them have links of 10Gb/s"),
            "{told}"
        );
        assert!(told.contains("the faults that begin at 1ms never do, for the run stops at 1ms"), "{told}");
        assert!(!notes("40Gb/s").contains("evenly"));
    }

    #[test]
    fn what_goes_badly_together_is_told_of() {
        let notes = |lines: &str| {
            let notes: Vec<String> =
                parse(&(star(PERMUTATION) + lines)).unwrap().notes().map(str::to_owned).collect();
            // A star has no equal paths, whichever way it is to choose among them.
            let (idle, notes): (Vec<_>, Vec<_>) =
                notes.into_iter().partition(|note| note.contains("several ports of equal cost"));
            assert_eq!(idle.len(), usize::from(lines.contains("routing =")), "{lines}: {idle:?}");
            notes.join(" ")
        };
        let none = "[transport]\ncontrol = \"none\"\n";
        assert_eq!(notes(none), "");
        let told = [
            (
                "[switch]\npfc = false\n[transport]\nrecovery = \"ndp\"\n",
                "each packet that finds no room costs a timeout",
            ),
            ("[switch]\nrouting = \"flowlet\"\n", "may then take another port and overtake what stands"),
            (
                "[switch]\nflowlet_table = 64\n",
                "`switch.flowlet_table` does nothing: it is for `switch.routing = \"flowlet\"`",
            ),
            (
                "[switch]\nrouting = \"adaptive\"\n[transport]\nrecovery = \"go-back-n\"\n",
                "as they do with `switch.routing = \"adaptive\"`",
            ),
            (
                "[transport]\nrecovery = \"ndp\"\n[switch]\ntrimming = true\n[faults]\nloss = 0.01\n",
                "does not hear of what links lose, with `switch.trimming` or without: each such packet waits for `transport.timeout`, 10ms here",
            ),
            (
                "[transport]\nrecovery = \"ndp\"\n[[faults.on]]\nlink = \"h0-s0\"\ncorrupt = 0.01\n",
                "does not hear of what links lose",
            ),
            (
                "[switch]\nrouting = \"spray\"\n[transport]\nrecovery = \"irn\"\n",
                "`transport.recovery = \"irn\"` takes packets for lost that others overtake",
            ),
            (
                "[switch]\nrouting = \"spray\"\n[transport]\nrecovery = \"srnic\"\n",
                "sends those again in vain",
            ),
            ("[[faults.on]]\nlink = \"h0-s0\"\n", "this rule names a link and no fault"),
            ("[switch]\ntrimming = true\n", "only with `transport.recovery = \"ndp\"`"),
            (
                "[switch]\ntrimming = true\npfc = true\n",
                "cuts no data where `switch.pfc` holds back their priority, 3",
            ),
            (
                "[switch]\nrouting = \"spray\"\n[transport]\nrecovery = \"go-back-n\"\n",
                "takes packets for lost",
            ),
            (
                "[switch]\nrouting = \"spray\"\n[transport]\nrecovery = \"sack\"\ncontrol = \"hpcc\"\n",
                "few did: of n equal ways",
            ),
            (
                "[nic]\nmodel = \"hdl\"\n[transport]\ncontrol = { law = \"program\", elf = \"firmware/swift.elf\" }\n",
                "a program runs on `hdl`, where no core does",
            ),
            (
                "[nic]\nmodel = \"cx5\"\nwith = { cores = { clock = \"1GHz\" } }\n[transport]\ncontrol = \"none\"\n",
                "`nic.with.cores.clock` does nothing: `cx5` has no cores",
            ),
            (
                "[nic]\nmodel = \"swcc\"\n[[nic.on]]\nhosts = [\"h0\"]\nmodel = \"cx6\"\nwith.cores = { clock = \"1GHz\", load = \"10ns\" }\n",
                "`nic.with.cores.clock` and `nic.with.cores.load` do nothing: `cx6` has no cores",
            ),
            ("[switch]\necn = false\n[transport]\ncontrol = \"dctcp\"\n", "`switch.ecn` is off"),
            ("[switch]\necn = false\n[transport]\ncontrol = \"dcqcn\"\n", "`switch.ecn` is off"),
            ("[nic]\nmodel = \"cx6\"\n[transport]\ncontrol = \"homa\"\n", "`homa` sends on every priority"),
            (
                "[switch]\ntrimming = true\n[transport]\nrecovery = \"ndp\"\ncontrol = \"dcqcn\"\n",
                "is pulled by law `ndp` alone",
            ),
            (
                "[nic]\nmodel = \"bluefield3\"\nwith.pcie.rate = \"8Gb/s\"\n",
                "PCIe of `bluefield3` carries 8Gb/s",
            ),
            (
                "[nic]\nmodel = \"tonic\"\nwith.send.buffer = \"64B\"\n",
                "`tonic` has 64B of payload ahead of its port",
            ),
            (
                "[nic]\nmodel = \"srnic\"\n[transport]\ncontrol = \"none\"\n[faults]\nloss = 0.01\n",
                "`srnic` keeps what comes out of order",
            ),
            ("op = \"read\"\n[transport]\ncontrol = \"swift\"\n", "READ responses are not acknowledged"),
            (
                "op = \"read\"\n[transport]\nmax_in_flight = 9\n",
                "`transport.max_in_flight` does not hold back READ responses",
            ),
            (
                "control = \"dcqcn\"\n[transport]\ncontrol = \"hpcc\"\n",
                "`transport.control` holds for no flow: `traffic.0` has a `control` of its own",
            ),
            (
                "[switch]\ntrimming = { priority = 3 }\n[transport]\nrecovery = \"ndp\"\n",
                "`switch.trimming.priority` is 3, which data have as well",
            ),
            (
                "[transport]\nrecovery = \"irn\"\ncontrol = \"none\"\n[faults]\nloss = 0.01\n",
                "where packets may be lost is half of IRN",
            ),
            (
                "[transport]\ncontrol = \"none\"\ntimeout = \"500us\"\n[faults]\ndelay = { min = \"200us\", max = \"300us\" }\n",
                "shorter than the longest round trip with `faults.delay`",
            ),
            (
                "[transport]\ncontrol = \"homa\"\nrecovery = \"go-back-n\"\n",
                "overtake each other by their priorities",
            ),
        ];
        for (lines, what) in told {
            assert!(notes(lines).contains(what), "{lines}: {}", notes(lines));
        }
        let clocked = "[nic]\nmodel = \"swcc\"\nwith = { cores = { clock = \"1GHz\" } }\n[transport]\ncontrol = \"none\"\n";
        let given = clocked.replace("swcc", "cx5").replace("{ clock", "{ pairs = 2, clock");
        assert_eq!([notes(clocked), notes(&given)], ["", ""]);
        for held in ["control = \"dcqcn\"", "control = \"dctcp\"\nrecovery = \"irn\"\nmax_in_flight = 60"] {
            assert!(
                !notes(&format!("op = \"read\"\n[transport]\n{held}\n")).contains("READ responses"),
                "{held}"
            );
        }
        let fine = "[switch]\nrouting = \"spray\"\ntrimming = true\n[transport]\nrecovery = \"ndp\"\n";
        let lossless =
            "[switch]\nrouting = \"adaptive\"\n[transport]\nrecovery = \"ndp\"\ncontrol = \"dcqcn\"\n";
        let flowlets =
            "[switch]\nrouting = \"flowlet\"\nflowlet_gap = \"1ms\"\n[transport]\nrecovery = \"sack\"\n";
        let lossy = "[switch]\nrouting = \"flowlet\"\npfc = false\n[transport]\nrecovery = \"go-back-n\"\n";
        let told = "[switch]\nrouting = \"flowlet\"\n[transport]\nrecovery = \"sack\"\ncontrol = \"hpcc\"\n";
        assert!(!notes(told).contains("equal ways"), "a flowlet is one way");
        for fine in [fine, lossless, flowlets, lossy] {
            assert_eq!(notes(fine), "");
        }
        for tolerant in ["recovery = \"sack\"\ncontrol = \"none\"", "control = \"homa\""] {
            let told = notes(&format!("[switch]\nrouting = \"spray\"\n[transport]\n{tolerant}\n"));
            assert!(!told.contains("others overtake"), "{tolerant}: {told}");
        }
    }

    #[test]
    fn a_choice_among_equal_ports_where_no_switch_has_several_is_told_of() {
        let notes = |spines: u32, routing: &str| {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 2\nrate = \"100Gb/s\"\ndelay = \"1us\"\n\
                 {PERMUTATION}[switch]\nrouting = \"{routing}\"\n[transport]\nrecovery = \"ndp\"\ncontrol = \"none\"\n"
            );
            let scenario = parse(&text).unwrap();
            let of_choices = scenario.notes().filter(|note| note.contains("several ports of equal cost"));
            of_choices.map(str::to_owned).collect::<Vec<_>>()
        };
        for routing in ["spray", "adaptive", "flowlet"] {
            let told = notes(1, routing);
            assert!(
                told.iter()
                    .any(|it| it.starts_with(&format!("`switch.routing = \"{routing}\"` does nothing"))),
                "{told:?}"
            );
            assert_eq!(notes(2, routing), [""; 0], "two spines are two ways");
        }
        assert_eq!(notes(1, "ecmp"), [""; 0], "nothing was chosen");
    }

    #[test]
    fn a_fifo_that_has_to_pause_whatever_comes_is_told_of_once() {
        let notes = |delay: &str, rest: &str| -> Vec<String> {
            let text = star(PERMUTATION).replace("1us", delay)
                + "[nic]\nmodel = \"srnic\"\n[transport]\ntimeout = \"16ms\"\n"
                + rest;
            parse(&text).unwrap().notes().map(str::to_owned).collect()
        };
        let told =
            |notes: &[String]| notes.iter().filter(|note| note.contains("pauses whatever comes")).count();
        assert_eq!(told(&notes("1us", "")), 0);
        let long = notes("400us", "");
        assert_eq!(told(&long), 1, "{long:?}");
        assert_eq!(told(&notes("400us", "[switch]\npfc = false\n")), 0);
    }

    #[test]
    fn a_key_that_the_recovery_or_the_law_does_not_use_is_told_of() {
        let notes = |text: &str| {
            let notes: Vec<String> = parse(&star(text)).unwrap().notes().map(str::to_owned).collect();
            notes.join(" ")
        };
        for (recovery, used) in [("go-back-n", false), ("srnic", false), ("reno", true), ("sack", true)] {
            let told = notes(&format!(
                "{PERMUTATION}[transport]\nrecovery = \"{recovery}\"\ninitial_window = 4\ncontrol = \"none\"\n"
            ));
            assert_eq!(
                told.contains("`transport.initial_window` has no effect"),
                !used,
                "{recovery}: {told}"
            );
        }
        let ranked = format!("{PERMUTATION}priority = 5\n[transport]\ncontrol = \"homa\"\n");
        assert!(
            notes(&ranked).contains("`priority` of traffic has no effect under `homa`"),
            "{}",
            notes(&ranked)
        );
        assert_eq!(notes(&ranked.replace("homa", "none")), "");
        assert_eq!(notes(&ranked.replace("priority = 5\n", "")), "");
    }
}
