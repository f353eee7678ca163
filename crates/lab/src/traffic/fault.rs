//! What is wrong with the traffic that a scenario asks for.

use super::collective::CollectiveFault;
use super::spec::{ClosedLoop, Common, Exchange, Flow, HpccFlow, Incast, Poisson, Repeat, Traffic, Trigger};
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Ratio, Span};
use std::collections::BTreeSet;

/// The longest message, 2³¹ octets (IBTA Vol 1 §9.7.7).
pub const MESSAGE_MAX: Bytes = Bytes(1 << 31);

/// Traffic that cannot be generated, and where it is described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("traffic {traffic}{}: {fault}", flow.map(|n| format!(", flow {n}")).unwrap_or_default())]
pub struct TrafficError {
    /// The `[[traffic]]` table, from 0.
    pub traffic: usize,
    /// The flow in its list, from 0, where one is to blame.
    pub flow: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with traffic, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A host that the topology does not have.
    #[error("host number {}, but the topology has {hosts} hosts, from 0", host.0)]
    UnknownHost {
        /// The host.
        host: HostId,
        /// How many there are.
        hosts: usize,
    },
    /// Source and destination are one host.
    #[error("a flow from {0:?} to itself; give it another destination")]
    ToItself(String),
    /// Nothing would be sent, or time would not pass.
    #[error("{0} is zero; it must be above zero")]
    Zero(&'static str),
    /// A list without entries.
    #[error("{0} is empty; list at least one")]
    Empty(&'static str),
    /// It would go on for ever.
    #[error("it never ends; give it {0}, or the scenario a stop")]
    Unbounded(&'static str),
    /// The topology is too small.
    #[error("it takes {need} hosts, but the topology has {have}")]
    TooFewHosts {
        /// Hosts that it takes.
        need: u64,
        /// Hosts that there are.
        have: usize,
    },
    /// So often that time would not pass.
    #[error("more than one start per picosecond; lower the {0}")]
    TooOften(&'static str),
    /// So many that no memory holds what became of them.
    #[error(
        "about {0} flows, each of which keeps its result in memory; let them come less often, or end sooner (`until`, `stop`)"
    )]
    TooManyFlows(u64),
    /// Atomics work on eight octets.
    #[error("an atomic of {0}; atomics have 8 octets")]
    AtomicSize(Bytes),
    /// Longer than a message may be.
    #[error("a message of {0}; at most 2GiB, so use several")]
    TooLong(Bytes),
    /// A priority that Ethernet does not have.
    #[error("priority {0}; priorities are 0 to 7")]
    Priority(u8),
    /// A collective that cannot be done.
    #[error(transparent)]
    Collective(#[from] CollectiveFault),
    /// Two flows have one name.
    #[error("two flows are named {0:?}; give each its own name")]
    DuplicateName(String),
    /// A flow's name would break the lines of the results.
    #[error("the name {0:?} has a control character; use other characters")]
    UnfitName(String),
    /// A flow is named as another would be that has no name.
    #[error(
        "a flow is named {0:?}, which is what flows without a name are called: by their table and their place in it; give it another name"
    )]
    NumberedName(String),
}

/// Checks all traffic against the names of the hosts and the end of the run.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn check(
    traffic: &[Traffic],
    hosts: &[String],
    stop: Option<Instant>,
) -> Result<(), TrafficError> {
    let checker = Checker { hosts, stop };
    let mut names = BTreeSet::new();
    for (index, table) in traffic.iter().enumerate() {
        let at = |flow| move |fault| TrafficError { traffic: index, flow, fault };
        match table {
            Traffic::Flows(flows) => {
                if flows.is_empty() {
                    return Err(at(None)(Fault::Empty("flows")));
                }
                for (number, flow) in flows.iter().enumerate() {
                    checker.flow(flow).map_err(at(Some(number)))?;
                    let Some(name) = &flow.name else { continue };
                    check_name(name, index, number).map_err(at(Some(number)))?;
                    if !names.insert(name) {
                        return Err(at(Some(number))(Fault::DuplicateName(name.to_string())));
                    }
                }
            }
            Traffic::Hpcc(file) => {
                for (number, flow) in file.flows.iter().enumerate() {
                    checker.hpcc(flow, file.common).map_err(at(Some(number)))?;
                }
            }
            Traffic::ClosedLoop(spec) => checker.closed_loop(spec).map_err(at(None))?,
            Traffic::Collective(spec) => {
                spec.ranks.iter().try_for_each(|&rank| checker.known(rank).map(drop)).map_err(at(None))?;
                spec.check().map_err(|fault| at(None)(fault.into()))?;
            }
            Traffic::Goal(spec) => {
                let known = |&rank: &HostId| checker.known(rank).map(drop);
                spec.hosts.iter().try_for_each(known).map_err(at(None))?;
            }
            Traffic::Rpc(spec) => {
                spec.clients
                    .iter()
                    .try_for_each(|&client| checker.pair(client, spec.server))
                    .and_then(
                        |()| if spec.count.is_none() { checker.bounded(None, "a count") } else { Ok(()) },
                    )
                    .map_err(at(None))?;
            }
            Traffic::Incast(spec) => checker.incast(spec).map_err(at(None))?,
            Traffic::Permutation(spec) | Traffic::AllToAll(spec) => {
                checker.exchange(spec).map_err(at(None))?;
            }
            Traffic::Poisson(spec) => checker.poisson(spec).map_err(at(None))?,
            Traffic::Trigger(spec) => checker.trigger(spec).map_err(at(None))?,
        }
    }
    Ok(())
}

/// Whether a flow may have this name that stands at `number` of table `index`.
fn check_name(name: &str, index: usize, number: usize) -> Result<(), Fault> {
    if name.contains(char::is_control) {
        return Err(Fault::UnfitName(name.to_owned()));
    }
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_numbered = name.split_once('.').is_some_and(|(table, place)| is_number(table) && is_number(place));
    if is_numbered && name != format!("{index}.{number}") {
        return Err(Fault::NumberedName(name.to_owned()));
    }
    Ok(())
}

struct Checker<'a> {
    hosts: &'a [String],
    stop: Option<Instant>,
}

impl Checker<'_> {
    fn flow(&self, flow: &Flow) -> Result<(), Fault> {
        self.pair(flow.src, flow.dst)?;
        message(flow.size, flow.common)
    }

    fn hpcc(&self, flow: &HpccFlow, common: Common) -> Result<(), Fault> {
        self.pair(flow.src, flow.dst)?;
        message(flow.size, Common { priority: Some(flow.priority), ..common })
    }

    fn closed_loop(&self, spec: &ClosedLoop) -> Result<(), Fault> {
        if spec.pairs.is_empty() {
            return Err(Fault::Empty("pairs"));
        }
        for &(src, dst) in &spec.pairs {
            self.pair(src, dst)?;
        }
        above_zero("qps", u64::from(spec.qps))?;
        above_zero("depth", u64::from(spec.depth))?;
        match spec.count {
            Some(count) => above_zero("count", count)?,
            None => self.bounded(None, "a count")?,
        }
        message(spec.message, spec.common)
    }

    fn incast(&self, spec: &Incast) -> Result<(), Fault> {
        above_zero("senders", u64::from(spec.senders))?;
        self.at_least(u64::from(spec.senders) + 1)?;
        if let Some(receiver) = spec.receiver {
            self.known(receiver)?;
        }
        match spec.repeat {
            Repeat::Once => {}
            Repeat::Every(period) => {
                if period == Span::ZERO {
                    return Err(Fault::Zero("every"));
                }
                self.bounded(spec.until, "until")?;
            }
            Repeat::Load(load) => {
                positive("load", load)?;
                // Its rate follows from the octets, and there would be infinitely many empty ones.
                above_zero("size", spec.size.0)?;
                self.bounded(spec.until, "until")?;
            }
        }
        message(spec.size, spec.common)
    }

    fn exchange(&self, spec: &Exchange) -> Result<(), Fault> {
        self.at_least(2)?;
        message(spec.size, spec.common)
    }

    fn poisson(&self, spec: &Poisson) -> Result<(), Fault> {
        self.at_least(2)?;
        positive("load", spec.load)?;
        self.bounded(spec.until, "until")?;
        spec.sizes.points().iter().try_for_each(|point| message(point.size, spec.common))
    }

    fn trigger(&self, spec: &Trigger) -> Result<(), Fault> {
        if spec.hosts.is_empty() {
            return Err(Fault::Empty("hosts"));
        }
        for &host in &spec.hosts {
            self.pair(host, spec.receiver)?;
        }
        positive("rate", spec.rate)?;
        self.bounded(spec.until, "until")?;
        message(spec.size, spec.common)
    }

    fn known(&self, host: HostId) -> Result<&str, Fault> {
        let unknown = Fault::UnknownHost { host, hosts: self.hosts.len() };
        self.hosts.get(usize::from(host.0)).map(String::as_str).ok_or(unknown)
    }

    fn pair(&self, src: HostId, dst: HostId) -> Result<(), Fault> {
        let name = self.known(src)?;
        self.known(dst)?;
        if src == dst { Err(Fault::ToItself(name.to_owned())) } else { Ok(()) }
    }

    fn at_least(&self, need: u64) -> Result<(), Fault> {
        let have = self.hosts.len();
        if (have as u64) < need { Err(Fault::TooFewHosts { need, have }) } else { Ok(()) }
    }

    fn bounded(&self, until: Option<Instant>, remedy: &'static str) -> Result<(), Fault> {
        if until.or(self.stop).is_none() { Err(Fault::Unbounded(remedy)) } else { Ok(()) }
    }
}

fn above_zero(key: &'static str, value: u64) -> Result<(), Fault> {
    if value == 0 { Err(Fault::Zero(key)) } else { Ok(()) }
}

fn positive(key: &'static str, value: Ratio) -> Result<(), Fault> {
    above_zero(key, u64::from(value.numerator()))
}

fn message(size: Bytes, common: Common) -> Result<(), Fault> {
    if common.op.is_atomic() && size != Bytes(8) {
        return Err(Fault::AtomicSize(size));
    }
    if size > MESSAGE_MAX {
        return Err(Fault::TooLong(size));
    }
    match common.priority {
        Some(priority) if priority > 7 => Err(Fault::Priority(priority)),
        _ => Ok(()),
    }
}
