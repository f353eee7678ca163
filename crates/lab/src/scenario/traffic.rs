//! `[[traffic]]`: what the hosts send.

mod amounts;
mod collective;
mod goal;
mod rpc;

use super::file;
use super::keys::{self, Section};
use super::read::Table;
use super::source::{Located, Origin, ScenarioError, Source, listed, nearest};
use super::topology::{Names, items, split};
use super::transport::Control;
use super::tree::Kind;
use crate::sizes::Sizes;
use crate::traffic::collective::{Network, Packets};
use crate::traffic::spec::{
    ClosedLoop, Common, ControlIndex, Exchange, Flow, HpccFlows, Incast, Op, Poisson, Repeat, Traffic,
    Trigger,
};
use roci_fabric::packet::HostId;
use roci_units::{Bytes, Instant, Ratio, Span};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The longest message: 2³¹ octets (IBTA Vol 1 §9.7.2).
const LONGEST: u64 = 1 << 31;

const KINDS: [&str; 11] = [
    "flows",
    "closed-loop",
    "collective",
    "goal",
    "rpc",
    "incast",
    "permutation",
    "all-to-all",
    "poisson",
    "trigger",
    "hpcc",
];

const OPS: [(&str, Op); 5] = [
    ("send", Op::Send),
    ("write", Op::Write),
    ("read", Op::Read),
    ("fetch-add", Op::FetchAdd),
    ("compare-swap", Op::CompareSwap),
];

/// The tables that have been read so far.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    names: &'a Names<'a>,
    /// How messages are cut into packets, where NICs do not differ.
    packets: Packets,
    /// When the run ends at the latest; `None`: when all traffic is done.
    pub(super) stop: Option<Span>,
    /// The law of controls that name none.
    usual_law: Located<String>,
    /// The controls that flows have of their own.
    pub(super) controls: Vec<Control>,
    /// The names of flows that have one.
    pub(super) flow_names: BTreeSet<String>,
    /// The tables.
    pub(super) traffic: Vec<Traffic>,
    /// What each table is called.
    pub(super) traffic_names: Vec<String>,
    /// Where each table was written.
    pub(super) origins: Vec<Origin>,
    /// When flows and sources may begin at the earliest, and where that was written.
    starts: Vec<Located<Instant>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        names: &'a Names<'a>,
        packets: Packets,
        stop: Option<Span>,
        usual_law: Located<String>,
    ) -> Self {
        Self {
            names,
            packets,
            stop,
            usual_law,
            controls: Vec::new(),
            flow_names: BTreeSet::new(),
            traffic: Vec::new(),
            traffic_names: Vec::new(),
            origins: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Reads every table of the list `traffic` of the top level.
    pub(super) fn read_all(&mut self, top: Table<'_>) -> Result<(), ScenarioError> {
        let list = top.require("traffic", top.list("traffic")?)?;
        if list.is_empty() {
            return Err(top.refuse("traffic", "there is no traffic", "add a [[traffic]] table"));
        }
        for node in list {
            let any = Table::open_some(top.source, &keys::TRAFFIC, node)?;
            let kind = any.require("kind", any.text("kind")?)?;
            let open = |section: &'static Section| Table::open(top.source, section, node);
            let traffic = match kind.value.as_str() {
                "flows" => self.flows(open(&keys::FLOWS)?)?,
                "closed-loop" => self.closed_loop(open(&keys::CLOSED_LOOP)?)?,
                "collective" => self.collective(open(&keys::COLLECTIVE)?)?,
                "goal" => self.goal(open(&keys::GOAL)?)?,
                "rpc" => self.rpc(open(&keys::RPC)?)?,
                "incast" => self.incast(open(&keys::INCAST)?)?,
                "permutation" => Traffic::Permutation(self.exchange(open(&keys::PERMUTATION)?)?),
                "all-to-all" => Traffic::AllToAll(self.exchange(open(&keys::ALL_TO_ALL)?)?),
                "poisson" => self.poisson(open(&keys::POISSON)?)?,
                "trigger" => self.trigger(open(&keys::TRIGGER)?)?,
                "hpcc" => self.hpcc(open(&keys::HPCC_TRAFFIC)?)?,
                _ => return Err(any.unknown_word("kind", &kind, KINDS.into_iter())),
            };
            let name = self.name(any)?;
            self.traffic_names.push(name);
            self.traffic.push(traffic);
            self.origins.push(node.origin);
        }
        self.refuse_no_start(top)
    }

    /// What the cost of collectives goes by.
    fn network(&self) -> Network {
        Network::of(self.names.topology(), self.packets)
    }

    /// What the table that is read now is called: by its `name`, or else by its index.
    fn name(&self, table: Table<'_>) -> Result<String, ScenarioError> {
        let Some(name) = table.text("name")? else { return Ok(self.traffic.len().to_string()) };
        let name = name.value;
        if !name.chars().any(char::is_alphabetic) {
            let message =
                format!("the name `{name}` has no letter, and numbers are for tables without a name");
            return Err(table.refuse("name", message, "give a name with a letter in it, or none"));
        }
        if self.traffic_names.contains(&name) {
            let message = format!("a second [[traffic]] table has the name `{name}`");
            return Err(table.refuse("name", message, "give each table a name of its own, or none"));
        }
        Ok(name)
    }

    /// Refuses traffic that only begins when the run is over.
    fn refuse_no_start(&self, top: Table<'_>) -> Result<(), ScenarioError> {
        let first = self.starts.iter().min_by_key(|start| start.value);
        let (Some(stop), Some(first)) = (self.stop, first) else { return Ok(()) };
        if first.value < Instant::ZERO + stop {
            return Ok(());
        }
        Err(top.source.error(
            first.origin,
            format!(
                "no flow ever begins: the first `start`, {}, is not before the run's `stop`, {stop}",
                first.value
            ),
            "make `stop` later, or `start` earlier",
        ))
    }

    /// What a user should know of traffic that begins too late, where other traffic does not.
    pub(super) fn late_note(&self, source: &Source) -> Option<String> {
        let stop = self.stop?;
        let mut late = self.starts.iter().filter(|start| start.value >= Instant::ZERO + stop);
        let first = late.next()?;
        let others = match late.count() {
            0 => String::new(),
            more => format!("; the like {more} more times"),
        };
        Some(format!(
            "{}: what starts at {} never does, for the run stops at {stop}{others}",
            source.place(first.origin).short(),
            first.value
        ))
    }

    fn flows(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        table.require("flows", table.list("flows")?)?;
        let shared = self.common(table)?;
        let mut flows = Vec::new();
        for flow in table.tables("flows", &keys::FLOW)? {
            let own = self.common(flow)?;
            let common = Common {
                op: if flow.get("op").is_some() { own.op } else { shared.op },
                priority: own.priority.or(shared.priority),
                control: own.control.or(shared.control),
            };
            let (src, dst) = self.pair(flow)?;
            let name = flow.text("name")?;
            if let Some(name) = &name
                && !self.flow_names.insert(name.value.clone())
            {
                return Err(flow.refuse(
                    "name",
                    format!("a second flow has the name `{}`", name.value),
                    "give each flow a name of its own, or none",
                ));
            }
            flows.push(Flow {
                name: name.map(|name| Arc::from(name.value)),
                src,
                dst,
                size: size(flow, "size", common.op)?,
                start: self.start(flow)?,
                common,
            });
        }
        if flows.is_empty() {
            return Err(table.refuse(
                "flows",
                "this list of flows is empty",
                "add a flow, or leave the table out",
            ));
        }
        Ok(Traffic::Flows(flows))
    }

    fn closed_loop(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common = self.common(table)?;
        let pairs = match table.list("pairs")? {
            None if table.get("src").is_none() && table.get("dst").is_none() => {
                return Err(table.missing("pairs"));
            }
            None => vec![self.pair(table)?],
            Some(_) if table.get("src").is_some() || table.get("dst").is_some() => {
                return Err(table.refuse(
                    "pairs",
                    "`pairs` and `src` or `dst` both say who sends",
                    "leave out `pairs`, or `src` and `dst`",
                ));
            }
            Some([]) => {
                return Err(table.refuse("pairs", "this list of pairs is empty", "add a pair of hosts"));
            }
            Some(list) => list
                .iter()
                .map(|item| {
                    let name = |at: usize| match items(item).get(at).map(|node| (&node.kind, node.origin)) {
                        Some((Kind::Text(text), origin)) => Some(Located { value: text.clone(), origin }),
                        _ => None,
                    };
                    match (name(0), name(1), items(item).len()) {
                        (Some(src), Some(dst), 2) => self.two_hosts(table, &src, &dst),
                        _ => Err(table.source.error(
                            item.origin,
                            format!("{} is no pair of hosts", item.shown()),
                            "write [\"from\", \"to\"]",
                        )),
                    }
                })
                .collect::<Result<_, _>>()?,
        };
        let count = table.number("count", 1..=u64::MAX)?;
        if count.is_none() {
            self.must_stop(table, "count", "")?;
        }
        Ok(Traffic::ClosedLoop(ClosedLoop {
            pairs,
            qps: table.count("qps", 1..=1_000_000)?.unwrap_or(1),
            message: size(table, "message", common.op)?,
            depth: table.count("depth", 1..=32_768)?.unwrap_or(1),
            count,
            start: self.start(table)?,
            common,
        }))
    }

    fn incast(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common = self.common(table)?;
        let senders = table.require("senders", table.count("senders", 1..=65_535)?)?;
        let others = self.names.host_count() - 1;
        if senders as usize > others {
            return Err(table.refuse(
                "senders",
                format!("{senders} senders, but besides the receiver there are only {others} hosts"),
                format!("ask for at most {others}, or enlarge the topology"),
            ));
        }
        let repeat = match (table.period("every")?, table.load("load")?) {
            (None, None) => Repeat::Once,
            (Some(every), None) => Repeat::Every(every),
            (None, Some(load)) => Repeat::Load(load),
            (Some(_), Some(_)) => {
                return Err(table.refuse(
                    "load",
                    "`every` and `load` both say how often the incast comes",
                    "leave one of them out",
                ));
            }
        };
        if repeat != Repeat::Once {
            self.bounded(table)?;
        }
        Ok(Traffic::Incast(Incast {
            senders,
            size: size(table, "size", common.op)?,
            receiver: self.host(table, "receiver")?,
            start: self.start(table)?,
            repeat,
            until: until(table)?,
            common,
        }))
    }

    fn exchange(&mut self, table: Table<'_>) -> Result<Exchange, ScenarioError> {
        let common = self.common(table)?;
        self.several_hosts(table)?;
        Ok(Exchange { size: size(table, "size", common.op)?, start: self.start(table)?, common })
    }

    fn poisson(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common = self.common(table)?;
        self.several_hosts(table)?;
        let name = table.require("sizes", table.text("sizes")?)?;
        let fixed = name.value.parse().ok().filter(|size: &Bytes| (1..=LONGEST).contains(&size.0));
        let sizes = match fixed.map_or_else(|| Sizes::named(&name.value), |size| Ok(Sizes::fixed(size))) {
            Ok(sizes) => sizes,
            // What has a dot or a slash is meant as a file.
            Err(unknown) if !name.value.contains(['.', '/']) => {
                let (message, remedy) = split(&unknown.to_string());
                return Err(table.refuse("sizes", message, remedy));
            }
            Err(_) => {
                let text = file::read(table.source, &name)?;
                Sizes::read(&name.value, &text).map_err(|error| {
                    table.refuse(
                        "sizes",
                        format!("{}: {error}", name.value),
                        "write a line \"size percent\" for each corner of the distribution, up to 100",
                    )
                })?
            }
        };
        self.bounded(table)?;
        Ok(Traffic::Poisson(Poisson {
            sizes: Arc::new(sizes),
            load: table.require("load", table.load("load")?)?,
            start: self.start(table)?,
            until: until(table)?,
            common,
        }))
    }

    fn trigger(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let common = self.common(table)?;
        let receiver = table.require("receiver", self.host(table, "receiver")?)?;
        let mut hosts = Vec::new();
        for name in table.require("hosts", table.texts("hosts")?)? {
            let host = self.names.host(table.source, &name)?;
            if host == receiver {
                return Err(to_itself(table, &name));
            }
            hosts.push(host);
        }
        if hosts.is_empty() {
            return Err(table.refuse("hosts", "this list of hosts is empty", "name at least one sender"));
        }
        let rate = table.require("rate", table.ratio("rate")?)?;
        if rate == Ratio::ZERO {
            return Err(table.refuse(
                "rate",
                "a rate of zero triggers never comes",
                "give a rate above zero",
            ));
        }
        self.bounded(table)?;
        Ok(Traffic::Trigger(Trigger {
            hosts,
            receiver,
            size: size(table, "size", common.op)?,
            rate,
            start: self.start(table)?,
            until: until(table)?,
            common,
        }))
    }

    fn hpcc(&mut self, table: Table<'_>) -> Result<Traffic, ScenarioError> {
        let op = table.word("op", &OPS)?.unwrap_or_default();
        let common = Common { op, priority: None, control: self.control(table)? };
        let name = table.require("file", table.text("file")?)?;
        let text = file::read(table.source, &name)?;
        let flows = HpccFlows::read(&text, self.names.hosts(), common);
        let flows = flows.map_err(|error| {
            let (message, remedy) = split(&error.to_string());
            table.refuse("file", format!("{}: {message}", name.value), remedy)
        })?;
        let first = flows.flows.iter().map(|flow| flow.start).min();
        self.starts.extend(first.map(|value| Located { value, origin: name.origin }));
        Ok(Traffic::Hpcc(flows))
    }

    /// `start`.
    fn start(&mut self, table: Table<'_>) -> Result<Instant, ScenarioError> {
        let value = start(table)?;
        let origin = table.get("start").map_or_else(|| table.origin_of("kind"), |node| node.origin);
        self.starts.push(Located { value, origin });
        Ok(value)
    }

    /// `op`, `priority` and `control`.
    fn common(&mut self, table: Table<'_>) -> Result<Common, ScenarioError> {
        Ok(Common {
            op: table.word("op", &OPS)?.unwrap_or_default(),
            priority: table.priority("priority")?,
            control: self.control(table)?,
        })
    }

    /// The index of the control that `table` has of its own. Equal ones share an index.
    fn control(&mut self, table: Table<'_>) -> Result<Option<ControlIndex>, ScenarioError> {
        let Some(control) = Control::read(table, &self.usual_law)? else { return Ok(None) };
        let place = match self.controls.iter().position(|other| *other == control) {
            Some(place) => place,
            None => {
                self.controls.push(control);
                self.controls.len() - 1
            }
        };
        Ok(u32::try_from(place).ok().map(ControlIndex))
    }

    /// The law of controls that name none.
    pub(super) const fn usual_law(&self) -> &Located<String> {
        &self.usual_law
    }

    /// Adds the control of a network, which is nobody else's.
    pub(super) fn add_of_network(&mut self, control: Control) -> ControlIndex {
        let index = ControlIndex(u32::try_from(self.controls.len()).expect("few controls"));
        self.controls.push(Control { of_network: Some(index), ..control });
        index
    }

    fn host(&self, table: Table<'_>, key: &str) -> Result<Option<HostId>, ScenarioError> {
        let name = table.text(key)?;
        name.map(|name| self.names.host(table.source, &name)).transpose()
    }

    /// The hosts `src` and `dst`, which must differ.
    fn pair(&self, table: Table<'_>) -> Result<(HostId, HostId), ScenarioError> {
        let src = table.require("src", table.text("src")?)?;
        let dst = table.require("dst", table.text("dst")?)?;
        self.two_hosts(table, &src, &dst)
    }

    fn two_hosts(
        &self,
        table: Table<'_>,
        src: &Located<String>,
        dst: &Located<String>,
    ) -> Result<(HostId, HostId), ScenarioError> {
        let pair = (self.names.host(table.source, src)?, self.names.host(table.source, dst)?);
        if pair.0 == pair.1 { Err(to_itself(table, dst)) } else { Ok(pair) }
    }

    fn several_hosts(&self, table: Table<'_>) -> Result<(), ScenarioError> {
        if self.names.host_count() >= 2 {
            return Ok(());
        }
        Err(table.refuse("kind", "this traffic needs at least two hosts", "enlarge the topology"))
    }

    /// Refuses a source that goes on until the run stops, when the run does not.
    fn bounded(&self, table: Table<'_>) -> Result<(), ScenarioError> {
        if table.get("until").is_some() {
            return Ok(());
        }
        self.must_stop(table, "until", " = \"10ms\"")
    }

    fn must_stop(&self, table: Table<'_>, key: &str, example: &str) -> Result<(), ScenarioError> {
        if self.stop.is_some() {
            return Ok(());
        }
        Err(table.source.error(
            table.origin_of("kind"),
            "this traffic never ends, and neither does the run: the scenario has no `stop`",
            format!("add `stop = \"10ms\"` at the top, or `{key}{example}` here"),
        ))
    }
}

fn to_itself(table: Table<'_>, host: &Located<String>) -> ScenarioError {
    let message = format!("`{}` would send to itself", host.value);
    table.source.error(host.origin, message, "name two different hosts")
}

/// The length of a message of `op` under `key`.
fn size(table: Table<'_>, key: &str, op: Op) -> Result<Bytes, ScenarioError> {
    let size = table.bytes(key, 1..=LONGEST)?;
    match size {
        None if op.is_atomic() => Ok(Bytes(8)),
        Some(size) if op.is_atomic() && size != Bytes(8) => Err(table.refuse(
            key,
            format!("a {op} has 8 octets, not {size}"),
            format!("leave out `{key}`, or choose another op"),
        )),
        size => table.require(key, size),
    }
}

fn start(table: Table<'_>) -> Result<Instant, ScenarioError> {
    Ok(table.instant("start")?.unwrap_or_default())
}

/// The end of a source, which must lie after its start.
fn until(table: Table<'_>) -> Result<Option<Instant>, ScenarioError> {
    let until = table.period("until")?.map(|span| Instant::ZERO + span);
    if let Some(until) = until
        && until <= start(table)?
    {
        return Err(table.refuse(
            "until",
            "this source ends before it begins",
            "make `until` later than `start`",
        ));
    }
    Ok(until)
}

impl Reading<'_> {
    /// Refuses the name of a flow that there cannot be: a flow is called by its name, or else `<traffic index>.<n>`.
    pub(super) fn find_flow(&self, table: Table<'_>, name: &Located<String>) -> Result<(), ScenarioError> {
        if self.flow_names.contains(&name.value) {
            return Ok(());
        }
        let exist = match numbered(&name.value) {
            None => return Err(self.unknown_flow(table, name, None)),
            Some((index, n)) => match (self.traffic.get(index), self.flows_of(index)) {
                (None, _) => match self.traffic.len() {
                    1 => "there is one [[traffic]] table, and its index is 0".to_owned(),
                    tables => format!("there are {tables} [[traffic]] tables, counted from 0"),
                },
                (Some(_), Some(count)) if n >= count => of_table(index, count),
                (Some(Traffic::Flows(flows)), _) => {
                    let at = usize::try_from(n).ok().and_then(|n| flows.get(n));
                    match at.and_then(|flow| flow.name.as_deref()) {
                        None => return Ok(()),
                        Some(own) => format!("that flow has a name of its own, `{own}`"),
                    }
                }
                _ => return Ok(()),
            },
        };
        Err(self.unknown_flow(table, name, Some(exist)))
    }

    /// How many flows the table `index` has; `None` where chance decides.
    fn flows_of(&self, index: usize) -> Option<u64> {
        let hosts = self.names.host_count() as u64;
        match self.traffic.get(index)? {
            Traffic::Flows(flows) => Some(flows.len() as u64),
            Traffic::Hpcc(file) => Some(file.flows.len() as u64),
            Traffic::ClosedLoop(spec) => Some(spec.pairs.len() as u64 * u64::from(spec.qps)),
            Traffic::Collective(spec) => (!spec.is_drawn()).then(|| spec.queue_pairs().into()),
            Traffic::Goal(spec) => Some(spec.lines().len() as u64),
            Traffic::Rpc(spec) => Some(spec.queue_pairs().into()),
            Traffic::Permutation(_) => Some(hosts),
            Traffic::AllToAll(_) => Some(hosts * (hosts - 1)),
            Traffic::Incast(spec) => match spec.repeat {
                Repeat::Once => Some(u64::from(spec.senders)),
                Repeat::Every(every) => {
                    let end = spec.until.into_iter().chain(self.stop.map(|it| Instant::ZERO + it)).min()?;
                    let during = if end > spec.start { end.since(spec.start).as_ps() } else { 0 };
                    Some(u64::from(spec.senders).saturating_mul(during.div_ceil(every.as_ps())))
                }
                Repeat::Load(_) => None,
            },
            Traffic::Poisson(_) | Traffic::Trigger(_) => None,
        }
    }

    /// The error of a flow that does not exist; `exist` says which do, where its name says in which table it was sought.
    fn unknown_flow(&self, table: Table<'_>, name: &Located<String>, exist: Option<String>) -> ScenarioError {
        let known = || self.flow_names.iter().map(String::as_str);
        let exist = exist.unwrap_or_else(|| match self.flow_names.len() {
            0 => "flows without a name are called `<traffic index>.<n>`, such as `0.0`".to_owned(),
            _ => format!("flows with a name are {}", listed(known().take(8))),
        });
        let remedy = match nearest(&name.value, known()) {
            _ if self.traffic_names.contains(&name.value) => {
                format!(
                    "that is a [[traffic]] table: write `traffic = \"{}\"` in place of `flow` for all of its flows",
                    name.value
                )
            }
            Some(near) => format!("did you mean `{near}`? {exist}"),
            None => exist,
        };
        table.source.error(name.origin, format!("there is no flow `{}`", name.value), remedy)
    }

    /// The place of the table that is called `name`.
    pub(super) fn find_table(
        &self,
        table: Table<'_>,
        name: &Located<String>,
    ) -> Result<usize, ScenarioError> {
        let by_name = self.traffic_names.iter().position(|known| *known == name.value);
        let by_index = || name.value.parse().ok().filter(|index| *index < self.traffic.len());
        by_name.or_else(by_index).ok_or_else(|| {
            let known = || self.traffic_names.iter().map(String::as_str);
            let exist = format!("the [[traffic]] tables are {}", listed(known().take(8)));
            let remedy = match nearest(&name.value, known()) {
                Some(near) => format!("did you mean `{near}`? {exist}"),
                None => exist,
            };
            table.source.error(name.origin, format!("there is no [[traffic]] table `{}`", name.value), remedy)
        })
    }

    /// Gives the flows of the table at `index` congestion controls that those of no other table have: the same that they have now, to be
    /// written to by themselves from the `[[at]]` that is read in `table`. Laws that keep something for a whole port would not be the same.
    pub(super) fn set_apart(
        &mut self,
        table: Table<'_>,
        index: usize,
        common: &Control,
    ) -> Result<(), ScenarioError> {
        let of = |traffic: &Traffic| traffic.controls().collect::<HashSet<_>>();
        let others = self.traffic.iter().enumerate().filter(|(other, _)| *other != index);
        let others: HashSet<_> = others.flat_map(|(_, traffic)| of(traffic)).collect();
        let mut own: Vec<(Option<ControlIndex>, ControlIndex)> = Vec::new();
        for shared in self.traffic[index].controls().filter(|control| others.contains(control)) {
            if own.iter().any(|(from, _)| *from == shared) {
                continue;
            }
            let control = shared.map_or(common, |shared| &self.controls[shared.0 as usize]).clone();
            if let Some(what) = control.keeps_for_a_port(table.source)? {
                return Err(table.refuse(
                    "traffic",
                    format!("other tables have the same law, `{}`, and {what}", control.law.value),
                    "leave `traffic` out, or give this table a `control` of its own",
                ));
            }
            let number = u32::try_from(self.controls.len()).expect("few tables have controls of their own");
            own.push((shared, ControlIndex(number)));
            self.controls.push(control);
        }
        self.traffic[index].set_controls(|control| {
            own.iter().find(|(from, _)| *from == control).map_or(control, |(_, to)| Some(*to))
        });
        Ok(())
    }

    /// When the flow `name` begins, where it is one of a list.
    pub(super) fn start_of(&self, name: &str) -> Option<Instant> {
        flows_called(&self.traffic, name).next().map(|flow| flow.start)
    }
}

/// The flows that are called `name`, of those that stand in lists.
fn flows_called<'a>(traffic: &'a [Traffic], name: &'a str) -> impl Iterator<Item = &'a Flow> {
    let (index, n) = numbered(name).unzip();
    (0..).zip(traffic).flat_map(move |(place, traffic)| {
        let flows = if let Traffic::Flows(flows) = traffic { &flows[..] } else { &[] };
        let is_meant = move |(at, flow): &(u64, &Flow)| match flow.name.as_deref() {
            Some(own) => own == name,
            None => index == Some(place) && n == Some(*at),
        };
        (0..).zip(flows).filter(is_meant).map(|(_, flow)| flow)
    })
}

/// The congestion controls that flows called `name` have; `None`: the common one.
pub(super) fn controls_of(traffic: &[Traffic], name: &str) -> Vec<Option<ControlIndex>> {
    let mut controls: Vec<_> = flows_called(traffic, name).map(|flow| flow.common.control).collect();
    if controls.is_empty()
        && let Some((index, _)) = numbered(name)
        && let Some(traffic) = traffic.get(index)
    {
        // All flows of such a table have it from the table.
        controls.extend(traffic.controls());
    }
    controls
}

/// The table and the number of a flow that is called `<traffic index>.<n>`.
fn numbered(name: &str) -> Option<(usize, u64)> {
    let (table, n) = name.split_once('.')?;
    let both = (table.parse().ok()?, u64::from(n.parse::<u32>().ok()?));
    // A sign, or a zero in front, is in no name.
    (format!("{}.{}", both.0, both.1) == name).then_some(both)
}

/// What the flows of a table are called.
fn of_table(index: usize, count: u64) -> String {
    match count {
        0 => format!("[[traffic]] {index} has no flows"),
        1 => format!("[[traffic]] {index} has one flow, `{index}.0`"),
        count => format!("[[traffic]] {index} has {count} flows, `{index}.0` to `{index}.{}`", count - 1),
    }
}
