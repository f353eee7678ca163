//! `[nic]`: the NICs of the hosts.

use super::ets;
use super::file;
use super::keys;
use super::read::Table;
use super::source::{Located, ScenarioError, listed};
use super::topology::Names;
use super::tree::{Entry, Kind};
use roci_fabric::graph::Graph;
use roci_fabric::packet::HostId;
use roci_fabric::topology::Topology;
use roci_nic::arch::file::Conflict;
use roci_nic::arch::{file as architecture_file, presets};
use roci_nic::{Architecture, Delays, DrainConfig};
use roci_switch::Shares;
use roci_transport::Deferred;
use roci_units::{BitsPerSec, Bytes, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All that a scenario says of NICs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nic {
    /// What holds for every host that no rule is about.
    pub config: NicConfig,
    /// `[[nic.on]]`, in the order of the text: the last that is about a host decides.
    pub rules: Vec<NicRule>,
    /// Values of cores that are given where no core is: what a user should know of them.
    idle: Vec<String>,
}

/// Other values for some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct NicRule {
    /// The hosts meant, by name; at least one.
    pub hosts: Vec<Located<String>>,
    /// What holds for them.
    pub config: NicConfig,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Its architecture.
    pub model: NicModel,
    /// Octets of payload in a full packet, 1 to 4096. Between two hosts the smaller holds.
    pub mtu: u16,
    /// The receive buffer; `None`: unlimited.
    pub rx_fifo: Option<Bytes>,
    /// How fast it empties its receive buffer; `None`: as fast as the link.
    pub rx_rate: Option<BitsPerSec>,
    /// How priorities share its port; `None`: all are strict.
    pub ets: Option<Shares>,
}

/// The architectures that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NicModel {
    /// Takes no time.
    #[default]
    Ideal,
    /// Returns everything that can be deferred after a random 0 to 5 µs.
    Delaying,
    /// Made of parts: a preset, or what a file describes.
    Parts(Arc<Architecture>),
}

impl Nic {
    /// The most that NICs of `graph` take, idle, for a full packet and its acknowledgement: the sender's for both, the receiver's for the
    /// packet. One that delays at random counts as one that takes no time.
    pub(super) fn idle_round_trip(&self, graph: &Graph) -> Span {
        let used = self.parts_used(graph);
        let parts = || used.iter().map(|&(parts, mtu)| (parts, u64::from(mtu)));
        let sender = parts().map(|(parts, full)| parts.idle_send(full) + parts.idle_receive(0)).max();
        let receiver = parts().map(|(parts, full)| parts.idle_receive(full)).max();
        sender.unwrap_or_default() + receiver.unwrap_or_default()
    }

    /// How long a packet waits at most in a NIC of `graph` that sends several in a turn, behind those that it has fetched ahead of its port; each takes
    /// so many octets beside its payload.
    pub(super) fn longest_wait(&self, graph: &Graph, overhead: u64) -> Span {
        let rates = graph.host_rates();
        let waits = graph.hosts.iter().zip(rates).filter_map(|(name, rate)| {
            let config = self.config_of(name);
            let NicModel::Parts(parts) = &config.model else { return None };
            let (send, full) = (&parts.send, u64::from(config.mtu));
            let octets = send.buffer.0 + send.burst.0;
            let all = octets + octets.div_ceil(full) * overhead;
            (send.burst.0 > full && rate.0 > 0).then(|| rate.time_for(all))
        });
        waits.max().unwrap_or_default()
    }

    /// The NIC of `graph` that sends the most in a turn, where that is more than a full packet.
    pub(super) fn longest_turn(&self, graph: &Graph) -> Option<&Architecture> {
        let several = |(parts, mtu): &(&Architecture, u16)| parts.send.burst.0 > u64::from(*mtu);
        let used = self.parts_used(graph).into_iter().filter(several);
        used.map(|(parts, _)| parts).max_by_key(|parts| parts.send.burst)
    }

    /// The NICs of `graph` that are made of parts, each kind once, with their MTU.
    fn parts_used(&self, graph: &Graph) -> Vec<(&Architecture, u16)> {
        let mut used: Vec<&NicConfig> = Vec::new();
        for config in graph.hosts.iter().map(|name| self.config_of(name)) {
            if !used.iter().any(|known| std::ptr::eq(*known, config)) {
                used.push(config);
            }
        }
        let parts = used.into_iter().filter_map(|config| match &config.model {
            NicModel::Parts(parts) => Some((&**parts, config.mtu)),
            NicModel::Ideal | NicModel::Delaying => None,
        });
        parts.collect()
    }
}

/// The path MTUs of real queue pairs (IBTA Vol 1, *Path MTU*).
const PATH_MTUS: [u16; 5] = [256, 512, 1024, 2048, 4096];

impl NicModel {
    /// The names of all that exist.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        ["ideal", "delaying"].into_iter().chain(presets::names())
    }

    /// What queue pairs on such a NIC have to defer.
    pub fn deferred(&self) -> Deferred {
        match self {
            Self::Ideal => Delays::IDEAL.deferred(),
            Self::Delaying => Delays::delaying().deferred(),
            Self::Parts(architecture) => architecture.deferred(),
        }
    }
}

impl Default for NicConfig {
    fn default() -> Self {
        Self { model: NicModel::Ideal, mtu: 1024, rx_fifo: None, rx_rate: None, ets: None }
    }
}

impl Nic {
    /// What holds for the host `name`.
    pub fn config_of(&self, name: &str) -> &NicConfig {
        let meant = |rule: &&NicRule| rule.hosts.iter().any(|host| host.value == name);
        self.rules.iter().rfind(meant).map_or(&self.config, |rule| &rule.config)
    }

    /// Octets of payload of full packets of `host`, by the NIC of its NICs that has the fewest.
    pub fn mtu_of(&self, host: HostId, topology: &Topology) -> u16 {
        let mtus = topology
            .homes
            .nics(host)
            .map(|nic| self.config_of(&topology.graph.hosts[usize::from(nic.0)]).mtu);
        mtus.min().unwrap_or(self.config.mtu)
    }

    /// Refuses a receive buffer that PAUSE frames cannot keep from overflowing, for what still arrives after one: the
    /// links in `graph` and the run's greatest frame decide that. `table` is `[nic]`, where there is one.
    pub(super) fn fits(
        &self,
        table: Option<Table<'_>>,
        graph: &Graph,
        max_frame: u32,
    ) -> Result<(), ScenarioError> {
        let Some(table) = table else { return Ok(()) };
        for link in &graph.links {
            for node in [link.a, link.b] {
                let Some(name) = graph.hosts.get(node.0 as usize) else { continue };
                let config = self.config_of(name);
                let (Some(fifo), Some(rate)) = (config.rx_fifo, config.rx_rate) else { continue };
                let least = DrainConfig::least(link.rate, link.delay, max_frame);
                if fifo.0 >= least || rate >= link.rate {
                    continue;
                }
                let message = format!(
                    "the receive buffer of host `{name}` holds {fifo}, and {} may still arrive after it has filled so far \
                     that the NIC, which takes {rate}, sends PAUSE",
                    Bytes(least)
                );
                let remedy = "enlarge `nic.rx_fifo` to that, shorten the link, or turn `switch.pfc` off";
                let key = if table.get("rx_fifo").is_some() { "rx_fifo" } else { "on" };
                return Err(table.refuse(key, message, remedy));
            }
        }
        Ok(())
    }

    /// What a user should know of NICs made of parts that the links of `graph` ask too much of, each model once: of a receive FIFO in
    /// which no more has room than may still arrive after PAUSE, where there is `pfc` and a frame has up to `max_frame` octets; and
    /// of PCIe that is slower than the link; and of so little payload ahead of the port that it does not fill the link.
    pub(super) fn parts_notes(&self, graph: &Graph, max_frame: u32, pfc: bool) -> Vec<String> {
        let mut notes = BTreeMap::new();
        for link in &graph.links {
            for node in [link.a, link.b] {
                let Some(name) = graph.hosts.get(node.0 as usize) else { continue };
                let NicModel::Parts(parts) = &self.config_of(name).model else { continue };
                let model = &parts.name;
                let least = DrainConfig::least(link.rate, link.delay, max_frame);
                if let Some(fifo) = parts.receive.fifo.filter(|fifo| pfc && fifo.0 < least) {
                    notes.entry((model, 0)).or_insert_with(|| {
                        format!(
                            "the receive FIFO of `{model}` holds {fifo}, and {} may still arrive at `{name}` after it has sent PAUSE: it \
                             pauses whatever comes. Enlarge `nic.with.receive.fifo`, shorten the links, or turn `switch.pfc` off",
                            Bytes(least)
                        )
                    });
                }
                let fetch = if parts.pcie.attached { parts.pcie.read } else { Span::ZERO };
                let ahead = fetch + parts.span(parts.send.latency);
                let needed = Bytes(link.rate.octets_in(ahead));
                if parts.send.buffer < needed {
                    notes.entry((model, 2)).or_insert_with(|| {
                        format!(
                            "`{model}` has {} of payload ahead of its port, and the link of `{name}` carries {needed} in the {ahead} that \
                             a packet takes there: it does not fill the link. Set `nic.with.send.buffer` to that and a packet more",
                            parts.send.buffer
                        )
                    });
                }
                if let Some(rate) = parts.pcie.rate.filter(|rate| parts.pcie.attached && *rate < link.rate) {
                    notes.entry((model, 1)).or_insert_with(|| {
                        format!(
                            "PCIe of `{model}` carries {rate}, and the link of `{name}` {}: it does not fill the link. Set \
                             `nic.with.pcie.rate` to that of the NIC's slot",
                            link.rate
                        )
                    });
                }
            }
        }
        notes.into_values().collect()
    }

    /// What a user should know of an MTU that no real queue pair has; `None` where every host has one of theirs.
    pub(super) fn note(&self) -> Option<String> {
        let mut all = std::iter::once(&self.config).chain(self.rules.iter().map(|rule| &rule.config));
        let NicConfig { mtu, .. } = all.find(|config| !PATH_MTUS.contains(&config.mtu))?;
        Some(format!(
            "`nic.mtu = {mtu}` is simulated as it stands, but real queue pairs have 256, 512, 1024, 2048 or 4096 octets of \
             payload in a full packet"
        ))
    }

    /// Of values of cores that are given where no core is, which a sweep over models may do: a note for each NIC.
    pub(super) fn idle_notes(&self) -> impl Iterator<Item = String> {
        self.idle.iter().cloned()
    }

    /// The models made of parts, the general one first.
    pub(crate) fn made_of_parts(&self) -> impl Iterator<Item = &Architecture> {
        let all = std::iter::once(&self.config).chain(self.rules.iter().map(|rule| &rule.config));
        all.filter_map(|config| match &config.model {
            NicModel::Parts(parts) => Some(&**parts),
            _ => None,
        })
    }

    /// One whose receive FIFO may fill.
    pub(super) fn bounded(&self) -> Option<&str> {
        self.made_of_parts().find(|parts| parts.receive.fifo.is_some()).map(|parts| parts.name.as_str())
    }

    /// One that has software decide what a loss means.
    pub(super) fn asking(&self) -> Option<&str> {
        self.made_of_parts().find(|parts| parts.recovery.octets > 0).map(|parts| parts.name.as_str())
    }

    /// Those that have no cores.
    pub(super) fn coreless(&self) -> Vec<&str> {
        let coreless = self.made_of_parts().filter(|parts| parts.cores.pairs == 0);
        let mut names: Vec<&str> = coreless.map(|parts| parts.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Reads `[nic]`, whose rules are about hosts of `names`.
    pub(super) fn read(table: Option<Table<'_>>, names: &Names<'_>) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let config = config(table, &NicConfig::default())?;
        let mut idle: Vec<String> = idle_core_values(table, &config).into_iter().collect();
        let mut rules = Vec::new();
        for rule in table.tables("on", &keys::NIC_ON)? {
            let hosts = rule.require("hosts", rule.texts("hosts")?)?;
            if hosts.is_empty() {
                return Err(rule.refuse("hosts", "this list of hosts is empty", "name at least one host"));
            }
            let config = self::config(rule, &config)?;
            idle.extend(idle_core_values(rule, &config));
            rules.push(NicRule { hosts, config });
        }
        idle.dedup();
        for name in rules.iter().flat_map(|rule: &NicRule| &rule.hosts) {
            names.nic(table.source, name)?;
        }
        for rule in &mut rules {
            rule.hosts = names.with_nics(std::mem::take(&mut rule.hosts));
        }
        Ok(Self { config, rules, idle })
    }
}

/// The NIC that `table` describes; what it leaves out is as in `base`.
fn config(table: Table<'_>, base: &NicConfig) -> Result<NicConfig, ScenarioError> {
    let mtu = table.number("mtu", 1..=4096)?.and_then(|mtu| u16::try_from(mtu).ok());
    let (model, ets) = (model(table, base)?, ets::read(table, base.ets)?);
    if model == NicModel::Delaying && ets.is_some() {
        let key = if table.get("ets").is_some() { "ets" } else { "model" };
        return Err(table.refuse(
            key,
            "`delaying` has what it sends granted ahead, in the order of priorities, and `ets` could share no more than that",
            "choose another `model`, such as \"ideal\", or leave `ets` out",
        ));
    }
    Ok(NicConfig {
        model,
        ets,
        mtu: mtu.unwrap_or(base.mtu),
        rx_fifo: table.bytes("rx_fifo", 16_000..=4_000_000_000)?.or(base.rx_fifo),
        rx_rate: table.rate("rx_rate")?.or(base.rx_rate),
    })
}

/// The architecture that `table` names, with the values that it gives.
fn model(table: Table<'_>, base: &NicConfig) -> Result<NicModel, ScenarioError> {
    let named = table.text("model")?;
    let mut model = match &named {
        None => base.model.clone(),
        Some(name) => find(table, name)?,
    };
    let Some(values) = table.get("with") else { return Ok(model) };
    let Kind::Table(entries) = &values.kind else {
        return Err(table.refuse("with", format!("`with` is {}", values.what()), "it takes a table"));
    };
    let NicModel::Parts(parts) = &mut model else {
        let models = listed(presets::names());
        return Err(match &named {
            Some(name) => table.refuse(
                "with",
                format!("`{}` has no parts whose values could be given", name.value),
                format!("choose a model that has some: {models}"),
            ),
            None => table.refuse(
                "with",
                "`with` gives values of a model's parts, and no `model` is named here",
                format!("set `model` as well, to one of {models}, or to a NIC's file"),
            ),
        });
    };
    let parts = Arc::make_mut(parts);
    set(table, parts, "", entries)?;
    match parts.conflict() {
        None => Ok(model),
        Some(Conflict { path, why, remedy }) => Err(table.refuse("with", format!("`{path}` {why}"), remedy)),
    }
}

/// What a user should know of values of cores that `table` gives, where the model has none.
fn idle_core_values(table: Table<'_>, config: &NicConfig) -> Option<String> {
    let NicModel::Parts(parts) = &config.model else { return None };
    let Kind::Table(entries) = &table.get("with")?.kind else { return None };
    let cores = entries.iter().find(|entry| entry.key == "cores")?;
    let Kind::Table(values) = &cores.value.kind else { return None };
    let idle = values
        .iter()
        .filter(|value| value.key != "pairs")
        .map(|value| format!("nic.with.cores.{}", value.key));
    let idle: Vec<_> = idle.collect();
    if parts.cores.pairs > 0 || idle.is_empty() {
        return None;
    }
    let cored =
        presets::names().filter(|name| presets::find(name).is_some_and(|preset| preset.cores.pairs > 0));
    let (what, does) = (listed_all(&idle), if idle.len() == 1 { "does" } else { "do" });
    Some(format!(
        "{what} {does} nothing: `{}` has no cores, and its laws take no time. Set `cores.pairs` as well to give it some, or choose a \
         model that has them: {}",
        parts.name,
        listed(cored)
    ))
}

/// All of these names.
fn listed_all(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" and ")
}

fn find(table: Table<'_>, name: &Located<String>) -> Result<NicModel, ScenarioError> {
    match name.value.as_str() {
        "ideal" => return Ok(NicModel::Ideal),
        "delaying" => return Ok(NicModel::Delaying),
        _ => {}
    }
    let architecture = match presets::find(&name.value) {
        Some(preset) => preset,
        None if name.value.ends_with(".toml") => {
            let path = file::path(table.source, &name.value);
            let text = file::read_at(table.source, &path, name)?;
            architecture_file::read(&path.display().to_string(), &text)
                .map_err(|error| table.source.error(name.origin, architecture_place(&error), error.remedy))?
        }
        None => return Err(table.unknown_word("model", name, NicModel::names())),
    };
    Ok(NicModel::Parts(Arc::new(architecture)))
}

/// What is wrong in an architecture's file, and where.
fn architecture_place(error: &roci_nic::arch::ArchitectureError) -> String {
    format!("{}:{}: {}", error.file, error.line, error.message)
}

/// Sets what `entries` give, at or below `prefix`.
fn set(
    table: Table<'_>,
    parts: &mut Architecture,
    prefix: &str,
    entries: &[Entry],
) -> Result<(), ScenarioError> {
    for Entry { key, key_origin, value } in entries {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match (&value.kind, value.scalar()) {
            (_, Some(text)) => parts.set(&path, &text).map_err(|(message, remedy)| {
                let known = roci_nic::arch::keys::key(&path).is_some();
                table.source.error(if known { value.origin } else { *key_origin }, message, remedy)
            })?,
            (Kind::Table(entries), None) => set(table, parts, &path, entries)?,
            (_, None) => {
                let message = format!("`{path}` is {}", value.what());
                return Err(table.source.error(value.origin, message, "it takes a single value"));
            }
        }
    }
    Ok(())
}
