//! `[faults]`: what the links do to packets.

use super::keys;
use super::read::{Detail, Table};
use super::source::{Located, Origin, ScenarioError, Source};
use super::topology::Names;
use super::tree::Kind;
use roci_fabric::graph::{Graph, NodeId};
use roci_units::{BitsPerSec, Instant, Ratio, Span};

/// All that a scenario says of faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// What holds for every link that no rule is about.
    pub common: LinkFaults,
    /// `[[faults.on]]`, in the order of the text. While a rule is in force, it holds for its link in place of
    /// `common`; of several, the last.
    pub rules: Vec<FaultRule>,
    /// Where `[faults]` was written.
    pub place: Located<()>,
}

/// Faults of one link, for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// The links meant, by their places in the graph: more than one where links run in parallel.
    pub links: Vec<u32>,
    /// Which ways.
    pub way: Way,
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

/// The ways of a link that faults concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Both.
    Both,
    /// From the node of this place (among all nodes of the graph) to the other end.
    From(u32),
}

/// What befalls packets on one way of a link; PAUSE frames are exempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFaults {
    /// Losses.
    pub loss: Loss,
    /// The chance of damage that the ICRC finds.
    pub corrupt: Ratio,
    /// The chance of a second arrival.
    pub duplicate: Ratio,
    /// Packets held back while others overtake them.
    pub reorder: Option<Reorder>,
    /// How much later packets arrive, in their order.
    pub delay: Option<ExtraDelay>,
    /// The link goes down and comes up again.
    pub flap: Option<Flap>,
    /// The receiving end keeps the sender paused.
    pub pause_storm: Option<PauseStorm>,
}

impl Default for LinkFaults {
    /// None.
    fn default() -> Self {
        Self {
            loss: Loss::Bernoulli(Ratio::ZERO),
            corrupt: Ratio::ZERO,
            duplicate: Ratio::ZERO,
            reorder: None,
            delay: None,
            flap: None,
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
    /// How long at most.
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

    /// Whether packets may be lost.
    fn loses(&self) -> bool {
        let never = match self.loss {
            Loss::Bernoulli(loss) => loss == Ratio::ZERO,
            Loss::GilbertElliott { good, bad, .. } => good == Ratio::ZERO && bad == Ratio::ZERO,
        };
        !never || self.corrupt != Ratio::ZERO || self.flap.is_some()
    }

    /// Whether no packet survives.
    pub fn loses_everything(&self) -> bool {
        let certain = |ratio: Ratio| ratio == Ratio::ONE;
        certain(self.corrupt)
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
        self.common.loses() || self.rules.iter().any(|rule| rule.faults.loses())
    }

    /// Whether nothing befalls any packet.
    pub fn is_none(&self) -> bool {
        self.common.is_none() && self.rules.is_empty()
    }

    /// How much later than without faults a packet may arrive over any one link.
    pub fn latest(&self) -> Span {
        let rules = self.rules.iter().map(|rule| rule.faults.latest());
        rules.fold(self.common.latest(), Span::max)
    }

    /// Reads `[faults]`.
    pub(super) fn read(
        table: Option<Table<'_>>,
        graph: &Graph,
        names: &Names<'_>,
    ) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let common = link_faults(table, &LinkFaults::default())?;
        let mut rules = Vec::new();
        for rule in table.tables("on", &keys::FAULTS_ON)? {
            let name = rule.require("link", rule.text("link")?)?;
            let (links, way) = find_link(rule, graph, names, &name)?;
            let from = rule.instant("from")?.unwrap_or_default();
            let until = rule.period("until")?.map(|span| Instant::ZERO + span);
            if until.is_some_and(|until| until <= from) {
                return Err(rule.refuse(
                    "until",
                    "these faults end before they begin",
                    "make `until` later than `from`",
                ));
            }
            let cnp = rule.table("cnp", &keys::CNP)?.map(|cnp| {
                Ok(CnpForger {
                    threshold: cnp.require("threshold", cnp.rate("threshold")?)?,
                    window: cnp.require("window", cnp.period("window")?)?,
                    cooldown: cnp.require("cooldown", cnp.period("cooldown")?)?,
                })
            });
            rules.push(FaultRule {
                links,
                way,
                from,
                until,
                faults: link_faults(rule, &LinkFaults::default())?,
                cnp: cnp.transpose()?,
                place: Located { value: (), origin: blamed(rule) },
            });
        }
        Ok(Self { common, rules, place: Located { value: (), origin: blamed(table) } })
    }

    /// What a user should know of rules that change nothing: they begin when the run is over, or name no fault where there is none.
    pub(super) fn idle_notes(&self, stop: Option<Span>, source: &Source) -> Vec<String> {
        let note = |rule: &FaultRule| {
            let place = source.place(rule.place.origin).short();
            let late = stop.filter(|stop| Instant::ZERO + *stop <= rule.from);
            let names_none = rule.faults.is_none() && rule.cnp.is_none() && self.common.is_none();
            match late {
                Some(stop) => Some(format!(
                    "{place}: the faults that begin at {} never do, for the run stops at {stop}",
                    rule.from
                )),
                None => names_none.then(|| format!("{place}: this rule names a link and no fault")),
            }
        };
        self.rules.iter().filter_map(note).collect()
    }

    /// Where it was said that everything which node `from` sends on `link` at `priority` is lost or stopped, from the
    /// first packet on and for ever; `None` where some of it arrives. `data` is the priority of data.
    pub(super) fn black_hole(&self, link: u32, from: u32, priority: u8, data: u8) -> Option<Origin> {
        let meant = |rule: &&FaultRule| {
            rule.links.contains(&link)
                && rule.from == Instant::ZERO
                && rule.until.is_none()
                && (rule.way == Way::Both || rule.way == Way::From(from))
        };
        let (faults, place) = match self.rules.iter().rfind(meant) {
            Some(rule) => (&rule.faults, &rule.place),
            None => (&self.common, &self.place),
        };
        let storm = faults.pause_storm.is_some_and(|storm| storm.priority.unwrap_or(data) == priority);
        (storm || faults.loses_everything()).then_some(place.origin)
    }

    /// The ways of links, as the nodes at their ends, that a pause storm holds at `now`.
    pub fn storming(&self, now: Instant, graph: &Graph) -> Vec<(NodeId, NodeId)> {
        let mut ways = Vec::new();
        for (place, link) in (0u32..).zip(&graph.links) {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let in_force = |rule: &&FaultRule| {
                    rule.links.contains(&place)
                        && (rule.way == Way::Both || rule.way == Way::From(from.0))
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
    let key = ["loss", "corrupt", "pause_storm"].into_iter().find(|key| table.get(key).is_some());
    key.map_or(table.origin, |key| table.origin_of(key))
}

fn link_faults(table: Table<'_>, base: &LinkFaults) -> Result<LinkFaults, ScenarioError> {
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
        table.share("loss")?.map_or(base.loss, Loss::Bernoulli)
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
    let flap = table.table("flap", &keys::FLAP)?.map(|flap| {
        Ok(Flap {
            up: flap.require("up", flap.period("up")?)?,
            down: flap.require("down", flap.period("down")?)?,
        })
    });
    let storm = match table.switch("pause_storm", &keys::PAUSE_STORM)? {
        None | Some(Detail::Off) => None,
        Some(Detail::On) => Some(PauseStorm { priority: None }),
        Some(Detail::Table(storm)) => Some(PauseStorm { priority: storm.priority("priority")? }),
    };
    Ok(LinkFaults {
        loss,
        corrupt: table.share("corrupt")?.unwrap_or(base.corrupt),
        duplicate: table.share("duplicate")?.unwrap_or(base.duplicate),
        reorder: reorder.filter(|reorder| reorder.share != Ratio::ZERO).or(base.reorder),
        delay: delay.filter(|delay| !delay.max.is_zero()).or(base.delay),
        flap: flap.transpose()?.or(base.flap),
        pause_storm: storm.or(base.pause_storm),
    })
}

/// The links between the two nodes that `name` names, and the way. Names may have dashes of their own, so every
/// dash is tried as the one between them.
fn find_link(
    table: Table<'_>,
    graph: &Graph,
    names: &Names<'_>,
    name: &Located<String>,
) -> Result<(Vec<u32>, Way), ScenarioError> {
    for (at, separator) in name.value.match_indices(['-', '>']) {
        let (a, b) = (name.value[..at].trim(), name.value[at + 1..].trim());
        let (Some(a), Some(b)) = (names.place(a), names.place(b)) else { continue };
        let joins = |link: &roci_fabric::graph::Link| {
            (link.a.0, link.b.0) == (a, b) || (link.b.0, link.a.0) == (a, b)
        };
        let links: Vec<u32> =
            (0u32..).zip(&graph.links).filter(|(_, link)| joins(link)).map(|(place, _)| place).collect();
        if links.is_empty() {
            return Err(table.source.error(
                name.origin,
                format!("no link joins the two nodes of `{}`", name.value),
                "name two neighbours",
            ));
        }
        return Ok((links, if separator == ">" { Way::From(a) } else { Way::Both }));
    }
    Err(table.source.error(
        name.origin,
        format!("`{}` names no link of this topology", name.value),
        "write \"a-b\" for both ways or \"a>b\" for one, with the names of two neighbours",
    ))
}
