//! `[faults]`: what the links do to packets, and which links and switches are down.

use super::keys;
use super::read::{Detail, Table};
use super::source::{Located, Origin, ScenarioError, Source};
use super::topology::Names;
use super::tree::Kind;
use roci_fabric::Balancing;
use roci_fabric::graph::{Graph, NodeId};
use roci_units::{BitErrorRate, BitsPerSec, Instant, Ratio, Span};
use std::collections::BTreeSet;

/// All that a scenario says of faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// What holds for every link that no rule is about.
    pub common: LinkFaults,
    /// `[[faults.on]]`, in the order of the text. While a rule is in force, it holds for its link in place of
    /// `common`; of several, the last.
    pub rules: Vec<FaultRule>,
    /// Those of `[[faults.on]]` that are about switches, in the order of the text; of several in force, the last holds.
    pub switches: Vec<SwitchRule>,
    /// Whether and when routes follow what goes down or comes up, where it was written.
    pub detect: Option<Detect>,
    /// How long it takes a switch to leave a port of its own, where it was written.
    pub detect_local: Option<Span>,
    /// Where `[faults]` was written.
    pub place: Located<()>,
}

/// Faults of some links, for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// Its place among the tables of `[[faults.on]]`, and what it names, as it was written.
    pub table: (usize, String),
    /// The ways of links that are meant, in ascending order: a link's place in the graph, and that of the node at the end that
    /// sends into it.
    pub ways: Vec<(u32, u32)>,
    /// When the faults begin.
    pub from: Instant,
    /// When they end; `None`: never.
    pub until: Option<Instant>,
    /// What happens.
    pub faults: LinkFaults,
    /// A device that forges CNPs.
    pub cnp: Option<CnpForger>,
    /// Where the rule was written.
    pub place: Located<()>,
}

impl FaultRule {
    /// Whether it is about what node `from` sends into `link`.
    pub fn concerns(&self, link: u32, from: u32) -> bool {
        self.ways.binary_search(&(link, from)).is_ok()
    }
}

/// Switches that fail, for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchRule {
    /// Its place among the tables of `[[faults.on]]`, and what it names, as it was written.
    pub table: (usize, String),
    /// The switches meant, by their places in the graph's list, in ascending order.
    pub switches: Vec<u32>,
    /// From when on.
    pub from: Instant,
    /// Until when; `None`: for ever.
    pub until: Option<Instant>,
    /// What they do.
    pub state: SwitchState,
    /// Where the rule was written.
    pub place: Located<()>,
}

/// What becomes of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchState {
    /// It works.
    Up,
    /// It is down.
    Down,
    /// It fails and comes back, in turns.
    Flaps(Flap),
}

/// Whether routes follow what goes down and comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detect {
    /// They stay as they are.
    Never,
    /// They follow when it has been so for this long.
    After(Span),
}

/// How long it takes until routes follow, where nothing was chosen: a port that loses its signal, and the tables behind it. Real
/// networks take from some tens of microseconds, where the port's own switch has a spare way, to seconds, where a routing
/// protocol has to find out; a run lasts some milliseconds.
const DETECT: Span = Span::from_millis(1);

/// How long it takes a switch that chooses by load to leave a port of its own, where nothing was chosen: the hardware looks at its ports with
/// each choice, and sees a signal that is lost, or a fault that the other end tells of (IEEE 802.3 §81.3.4), in some microseconds.
const DETECT_LOCAL: Span = Span::from_micros(10);

/// What befalls packets on one way of a link; PAUSE frames are exempt, but where it is down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFaults {
    /// Losses.
    pub loss: Loss,
    /// The chance of damage that the ICRC finds.
    pub corrupt: Ratio,
    /// The chance that a bit is wrong, which the frame's check finds.
    pub ber: BitErrorRate,
    /// The chance of a second arrival.
    pub duplicate: Ratio,
    /// Packets held back while others overtake them.
    pub reorder: Option<Reorder>,
    /// How much later packets arrive, in their order.
    pub delay: Option<ExtraDelay>,
    /// The link goes down and comes up again.
    pub flap: Option<Flap>,
    /// The link is down.
    pub down: bool,
    /// The rate at which it runs; `None`: its own.
    pub rate: Option<BitsPerSec>,
    /// The receiving end keeps the sender paused.
    pub pause_storm: Option<PauseStorm>,
}

impl Default for LinkFaults {
    /// None.
    fn default() -> Self {
        Self {
            loss: Loss::Bernoulli(Ratio::ZERO),
            corrupt: Ratio::ZERO,
            ber: BitErrorRate::ZERO,
            duplicate: Ratio::ZERO,
            reorder: None,
            delay: None,
            flap: None,
            down: false,
            rate: None,
            pause_storm: None,
        }
    }
}

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each by itself, with this chance.
    Bernoulli(Ratio),
    /// In bursts: a link is good or bad, and turns at each packet by chance (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// The chance that a good link turns bad.
        to_bad: Ratio,
        /// The chance that a bad link turns good.
        to_good: Ratio,
        /// The chance of a loss while it is good.
        good: Ratio,
        /// The chance of a loss while it is bad.
        bad: Ratio,
    },
}

/// Packets that are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// The chance that a packet is.
    pub share: Ratio,
    /// For how long.
    pub by: Span,
}

/// A delay drawn uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtraDelay {
    /// The least.
    pub min: Span,
    /// The most.
    pub max: Span,
}

/// A link that goes down and comes up again; it begins up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flap {
    /// How long it is up.
    pub up: Span,
    /// How long it is down.
    pub down: Span,
}

/// PAUSE without a reason: the receiving end keeps a priority stopped for as long as the fault is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStorm {
    /// The priority that is stopped; `None`: that of data.
    pub priority: Option<u8>,
}

/// A device that measures a link and forges CNPs to the senders of what exceeds a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpForger {
    /// The rate that it tolerates.
    pub threshold: BitsPerSec,
    /// The time over which it measures.
    pub window: Span,
    /// The least time between two of its CNPs.
    pub cooldown: Span,
}

impl LinkFaults {
    /// How much later than without faults a packet may arrive.
    fn latest(&self) -> Span {
        let delay = self.delay.map_or(Span::ZERO, |delay| delay.max);
        delay + self.reorder.map_or(Span::ZERO, |reorder| reorder.by)
    }

    /// Whether nothing befalls a packet.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The keys of what befalls packets, in the order of the guide.
    pub fn keys(&self) -> Vec<&'static str> {
        let none = Self::default();
        [
            ("down", self.down),
            ("flap", self.flap.is_some()),
            ("rate", self.rate.is_some()),
            ("loss", self.loss != none.loss),
            ("corrupt", self.corrupt != none.corrupt),
            ("ber", self.ber != none.ber),
            ("duplicate", self.duplicate != none.duplicate),
            ("reorder", self.reorder.is_some()),
            ("delay", self.delay.is_some()),
            ("pause_storm", self.pause_storm.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, is_set)| is_set.then_some(key))
        .collect()
    }

    /// Whether packets may be lost.
    fn loses(&self) -> bool {
        let never = match self.loss {
            Loss::Bernoulli(loss) => loss == Ratio::ZERO,
            Loss::GilbertElliott { good, bad, .. } => good == Ratio::ZERO && bad == Ratio::ZERO,
        };
        !never || self.corrupt != Ratio::ZERO || !self.ber.is_zero() || self.flap.is_some() || self.down
    }

    /// Whether no packet survives.
    pub fn loses_everything(&self) -> bool {
        let certain = |ratio: Ratio| ratio == Ratio::ONE;
        self.down
            || certain(self.corrupt)
            || match self.loss {
                Loss::Bernoulli(loss) => certain(loss),
                Loss::GilbertElliott { to_bad, to_good, good, bad } => {
                    // The link begins good; a state that it never is in, or leaves at once for ever, does not matter.
                    let never_bad = to_bad == Ratio::ZERO;
                    let ever_bad = certain(to_bad) && to_good == Ratio::ZERO;
                    (certain(good) || ever_bad) && (certain(bad) || never_bad)
                }
            }
    }
}

impl Faults {
    /// Whether links may lose packets.
    pub(super) fn lose(&self) -> bool {
        let fails = |rule: &SwitchRule| rule.state != SwitchState::Up;
        self.common.loses()
            || self.rules.iter().any(|rule| rule.faults.loses())
            || self.switches.iter().any(fails)
    }

    /// Whether nothing befalls any packet.
    pub fn is_none(&self) -> bool {
        self.common.is_none() && self.rules.is_empty() && self.switches.is_empty()
    }

    /// How much later than without faults a packet may arrive over any one link.
    pub fn latest(&self) -> Span {
        let rules = self.rules.iter().map(|rule| rule.faults.latest());
        rules.fold(self.common.latest(), Span::max)
    }

    /// The rates at which links run that have lost some of theirs.
    pub fn rates(&self) -> impl Iterator<Item = BitsPerSec> {
        self.rules.iter().filter_map(|rule| rule.faults.rate)
    }

    /// How long it takes until routes follow what goes down or comes up; `None`: they do not.
    pub fn detect(&self) -> Option<Span> {
        match self.detect {
            None => Some(DETECT),
            Some(Detect::Never) => None,
            Some(Detect::After(span)) => Some(span),
        }
    }

    /// How long it takes until a switch that chooses in this way leaves a port whose link is down; `None`: as long as for all others.
    pub fn detect_local(&self, routing: Balancing) -> Option<Span> {
        let by_load = matches!(routing, Balancing::Adaptive | Balancing::Flowlet { .. });
        self.detect_local.or_else(|| by_load.then_some(DETECT_LOCAL))
    }

    /// Whether routes follow a link that flaps: where it was said how soon.
    pub fn follows_flaps(&self) -> bool {
        matches!(self.detect, Some(Detect::After(_)))
    }

    /// Reads `[faults]`.
    pub(super) fn read(
        table: Option<Table<'_>>,
        graph: &Graph,
        names: &Names<'_>,
    ) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let common = link_faults(table)?;
        let (mut rules, mut switches) = (Vec::new(), Vec::new());
        for (number, rule) in table.tables("on", &keys::FAULTS_ON)?.into_iter().enumerate() {
            let from = rule.instant("from")?.unwrap_or_default();
            let until = rule.period("until")?.map(|span| Instant::ZERO + span);
            if until.is_some_and(|until| until <= from) {
                return Err(rule.refuse(
                    "until",
                    "these faults end before they begin",
                    "make `until` later than `from`",
                ));
            }
            if rule.get("flap").is_some() && rule.flag("down")? == Some(true) {
                return Err(rule.refuse(
                    "down",
                    "what is down all the time does not flap",
                    "leave one of the two out; `flap` has the times when it is `down`",
                ));
            }
            let place = Located { value: (), origin: blamed(rule) };
            let name = match (rule.text("link")?, rule.text("switch")?) {
                (None, Some(name)) => {
                    let state = switch_state(rule)?;
                    let (switches_meant, table) =
                        (names.switches_like(rule.source, &name)?, (number, name.value));
                    switches.push(SwitchRule { table, switches: switches_meant, from, until, state, place });
                    continue;
                }
                (Some(_), Some(name)) => {
                    return Err(rule.source.error(
                        name.origin,
                        "these faults name a link and a switch",
                        "leave one of the two out, or write a table for each",
                    ));
                }
                (Some(name), None) => name,
                (None, None) => {
                    return Err(rule.source.error(
                        rule.origin,
                        "these faults name neither a link nor a switch",
                        "add `link = \"a-b\"` with the names of two neighbours, or `switch = …`",
                    ));
                }
            };
            let ways = find_ways(rule, graph, names, &name)?;
            let cnp = rule.table("cnp", &keys::CNP)?.map(|cnp| {
                Ok(CnpForger {
                    threshold: cnp.require("threshold", cnp.rate("threshold")?)?,
                    window: cnp.require("window", cnp.period("window")?)?,
                    cooldown: cnp.require("cooldown", cnp.period("cooldown")?)?,
                })
            });
            let mut faults = link_faults(rule)?;
            faults.down = rule.flag("down")?.unwrap_or(false);
            faults.rate = lower_rate(rule, graph, &ways)?;
            let table = (number, name.value);
            rules.push(FaultRule { table, ways, from, until, faults, cnp: cnp.transpose()?, place });
        }
        let detect = match table.get("detect").map(|node| &node.kind) {
            None => None,
            Some(Kind::Text(text)) if text == "never" => Some(Detect::Never),
            Some(_) => table.span("detect")?.map(Detect::After),
        };
        let detect_local = table.span("detect_local")?;
        let place = Located { value: (), origin: blamed(table) };
        Ok(Self { common, rules, switches, detect, detect_local, place })
    }

    /// What a user should know of rules that change nothing: they begin when the run is over, or name no fault where there is none.
    pub(super) fn idle_notes(&self, stop: Option<Span>, source: &Source) -> Vec<String> {
        let late = |from: Instant, place: &Located<()>| {
            let place = source.place(place.origin).short();
            let stop = stop.filter(|stop| Instant::ZERO + *stop <= from)?;
            Some(format!("{place}: the faults that begin at {from} never do, for the run stops at {stop}"))
        };
        let note = |rule: &FaultRule| {
            let names_none = rule.faults.is_none() && rule.cnp.is_none() && self.common.is_none();
            let place = source.place(rule.place.origin).short();
            let idle = names_none.then(|| format!("{place}: this rule names a link and no fault"));
            late(rule.from, &rule.place).or(idle)
        };
        let of_switches = self.switches.iter().filter_map(|rule| late(rule.from, &rule.place));
        self.rules.iter().filter_map(note).chain(of_switches).collect()
    }

    /// Where it was said that everything which node `from` sends on `link` at `priority` is lost or stopped, from the
    /// first packet on and for ever; `None` where some of it arrives. `data` is the priority of data.
    pub(super) fn black_hole(&self, link: u32, from: u32, priority: u8, data: u8) -> Option<Origin> {
        let meant = |rule: &&FaultRule| {
            rule.concerns(link, from) && rule.from == Instant::ZERO && rule.until.is_none()
        };
        let (faults, place) = match self.rules.iter().rfind(meant) {
            Some(rule) => (&rule.faults, &rule.place),
            None => (&self.common, &self.place),
        };
        let storm = faults.pause_storm.is_some_and(|storm| storm.priority.unwrap_or(data) == priority);
        (storm || faults.loses_everything()).then_some(place.origin)
    }

    /// Where it was said that a switch, by its place in the graph's list, is down from the beginning and for ever.
    pub(super) fn gone(&self, switch: u32) -> Option<Origin> {
        let meant = |rule: &&SwitchRule| {
            rule.switches.binary_search(&switch).is_ok() && rule.from == Instant::ZERO && rule.until.is_none()
        };
        let rule = self.switches.iter().rfind(meant)?;
        (rule.state == SwitchState::Down).then_some(rule.place.origin)
    }

    /// The ways of links, as the nodes at their ends, that a pause storm holds at `now`.
    pub fn storming(&self, now: Instant, graph: &Graph) -> Vec<(NodeId, NodeId)> {
        let mut ways = Vec::new();
        for (place, link) in (0u32..).zip(&graph.links) {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let in_force = |rule: &&FaultRule| {
                    rule.concerns(place, from.0)
                        && rule.from <= now
                        && rule.until.is_none_or(|until| now < until)
                };
                let ruling = self.rules.iter().rfind(in_force).map_or(&self.common, |rule| &rule.faults);
                if ruling.pause_storm.is_some() {
                    ways.push((from, to));
                }
            }
        }
        ways
    }
}

/// Where faults are written that may let nothing through.
fn blamed(table: Table<'_>) -> Origin {
    let written = |key: &&str| table.entries().iter().any(|entry| entry.key == *key);
    let key = ["loss", "corrupt", "pause_storm", "down"].into_iter().find(written);
    key.map_or(table.origin, |key| table.origin_of(key))
}

fn link_faults(table: Table<'_>) -> Result<LinkFaults, ScenarioError> {
    let is_table = |key| table.get(key).is_some_and(|node| matches!(node.kind, Kind::Table(_)));
    let loss = if is_table("loss") {
        let loss = table.require("loss", table.table("loss", &keys::LOSS)?)?;
        Loss::GilbertElliott {
            to_bad: loss.require("to_bad", loss.share("to_bad")?)?,
            to_good: loss.require("to_good", loss.share("to_good")?)?,
            good: loss.share("good")?.unwrap_or(Ratio::ZERO),
            bad: loss.share("bad")?.unwrap_or(Ratio::ONE),
        }
    } else {
        Loss::Bernoulli(table.share("loss")?.unwrap_or(Ratio::ZERO))
    };
    let usual = Span::from_micros(10);
    let reorder = if is_table("reorder") {
        let reorder = table.require("reorder", table.table("reorder", &keys::REORDER)?)?;
        Some(Reorder {
            share: reorder.require("share", reorder.share("share")?)?,
            by: reorder.span("by")?.unwrap_or(usual),
        })
    } else {
        table.share("reorder")?.map(|share| Reorder { share, by: usual })
    };
    let delay = if is_table("delay") {
        let delay = table.require("delay", table.table("delay", &keys::EXTRA_DELAY)?)?;
        let min = delay.span("min")?.unwrap_or(Span::ZERO);
        let max = delay.require("max", delay.span("max")?)?;
        if min > max {
            return Err(delay.refuse(
                "max",
                format!("max, {max}, is less than min, {min}"),
                "exchange the two",
            ));
        }
        Some(ExtraDelay { min, max })
    } else {
        table.span("delay")?.map(|delay| ExtraDelay { min: delay, max: delay })
    };
    let storm = match table.switch("pause_storm", &keys::PAUSE_STORM)? {
        None | Some(Detail::Off) => None,
        Some(Detail::On) => Some(PauseStorm { priority: None }),
        Some(Detail::Table(storm)) => Some(PauseStorm { priority: storm.priority("priority")? }),
    };
    Ok(LinkFaults {
        loss,
        corrupt: table.share("corrupt")?.unwrap_or(Ratio::ZERO),
        ber: table.quantity("ber")?.unwrap_or_default(),
        duplicate: table.share("duplicate")?.unwrap_or(Ratio::ZERO),
        reorder: reorder.filter(|reorder| reorder.share != Ratio::ZERO),
        delay: delay.filter(|delay| !delay.max.is_zero()),
        flap: flap(table)?,
        pause_storm: storm,
        down: false,
        rate: None,
    })
}

fn flap(table: Table<'_>) -> Result<Option<Flap>, ScenarioError> {
    let flap = table.table("flap", &keys::FLAP)?.map(|flap| {
        Ok(Flap {
            up: flap.require("up", flap.period("up")?)?,
            down: flap.require("down", flap.period("down")?)?,
        })
    });
    flap.transpose()
}

/// What a rule says of its switches. A switch is down or not: what links do to packets is said of links.
fn switch_state(rule: Table<'_>) -> Result<SwitchState, ScenarioError> {
    const KEYS: [&str; 5] = ["switch", "from", "until", "down", "flap"];
    if let Some(other) = rule.entries().iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
        return Err(rule.source.error(
            other.key_origin,
            format!("`{}` is a fault of links, and this rule is about a switch", other.key),
            "name its links, such as `link = \"spine0-*\"`, in a table of their own",
        ));
    }
    match (rule.flag("down")?, flap(rule)?) {
        (_, Some(flap)) => Ok(SwitchState::Flaps(flap)),
        (Some(true), None) => Ok(SwitchState::Down),
        (Some(false), None) => Ok(SwitchState::Up),
        (None, None) => Err(rule.refuse(
            "switch",
            "this rule names a switch and not what becomes of it",
            "add `down = true`, or `flap = { up = …, down = … }`",
        )),
    }
}

/// The rate of a rule about these ways of links, none of which may be slower by itself.
fn lower_rate(
    rule: Table<'_>,
    graph: &Graph,
    ways: &[(u32, u32)],
) -> Result<Option<BitsPerSec>, ScenarioError> {
    let Some(rate) = rule.rate("rate")? else { return Ok(None) };
    let links = ways.iter().map(|(link, _)| &graph.links[*link as usize]);
    match links.min_by_key(|link| link.rate).filter(|link| link.rate < rate) {
        None => Ok(Some(rate)),
        Some(link) => {
            let name = |node: NodeId| {
                let place = node.0 as usize;
                graph.hosts.get(place).unwrap_or_else(|| &graph.switches[place - graph.hosts.len()])
            };
            Err(rule.refuse(
                "rate",
                format!(
                    "{rate} is more than the link between `{}` and `{}` has, {}",
                    name(link.a),
                    name(link.b),
                    link.rate
                ),
                format!("a degraded link is slower than it was built: write at most \"{}\"", link.rate),
            ))
        }
    }
}

/// The ways of the links between the two nodes, or kinds of nodes, that `name` names. Names may have dashes of their own, so
/// every dash is tried as the one between them.
fn find_ways(
    table: Table<'_>,
    graph: &Graph,
    names: &Names<'_>,
    name: &Located<String>,
) -> Result<Vec<(u32, u32)>, ScenarioError> {
    let mut found: Option<(usize, BTreeSet<(u32, u32)>)> = None;
    let mut are_nodes = false;
    for (at, separator) in name.value.match_indices(['-', '>']) {
        let (a, b) = (names.like(name.value[..at].trim()), names.like(name.value[at + 1..].trim()));
        are_nodes |= !a.is_empty() && !b.is_empty();
        let mut ways = BTreeSet::new();
        for (place, link) in (0u32..).zip(&graph.links) {
            for (from, to) in [(link.a.0, link.b.0), (link.b.0, link.a.0)] {
                if a.contains(&from) && b.contains(&to) {
                    ways.insert((place, from));
                    if separator == "-" {
                        ways.insert((place, to));
                    }
                }
            }
        }
        match &found {
            _ if ways.is_empty() => {}
            None => found = Some((at, ways)),
            Some((_, others)) if *others == ways || name.value.contains('*') => {}
            Some((before, _)) => {
                let read = |at: usize| format!("`{}` and `{}`", &name.value[..at], &name.value[at + 1..]);
                return Err(table.source.error(
                    name.origin,
                    format!(
                        "`{}` names links between {} and between {}",
                        name.value,
                        read(*before),
                        read(at)
                    ),
                    "rename nodes that have dashes, or write \"a>b\" for each way",
                ));
            }
        }
    }
    if let Some((_, ways)) = found {
        return Ok(ways.into_iter().collect());
    }
    if are_nodes {
        return Err(table.source.error(
            name.origin,
            format!("no link joins the two nodes of `{}`", name.value),
            "name two neighbours",
        ));
    }
    Err(table.source.error(
        name.origin,
        format!("`{}` names no link of this topology", name.value),
        "write \"a-b\" for both ways or \"a>b\" for one, with the names of two neighbours",
    ))
}
