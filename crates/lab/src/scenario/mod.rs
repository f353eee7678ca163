//! Scenarios: from a text to values that have been read, have their units, and make sense together.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`keys`] | every key: what it takes, its default, its meaning |
//! | [`source`] | where a value was written, and errors that point there |
//! | `tree` | the text as a tree with places, and overrides |
//! | `devices` | what keys are called on switches and NICs |
//! | `syntax` | what to do about a text that is not TOML |
//! | `read` | reading one table |
//! | `topology`, [`switch`], [`nic`], [`transport`], `traffic`, [`measure`], [`faults`], `application`, `machine` | the tables |
//! | [`writes`], [`thresholds`] | what `[[at]]` writes to registers of laws, and to switches |
//! | `changes` | all that `[[at]]` writes, in words |
//! | `program` | programs as congestion control |
//! | `networks` | networks with a congestion control of their own |
//! | `file` | files that a scenario names |
//! | `end` | whether a scenario can come to an end |
//! | `frame` | the greatest frame of the run |
//! | `reach` | how far apart the hosts are, for telemetry and the timeout |
//! | `fill` | whether a flow alone can fill its link |
//! | `cores` | whether cores hear of all that a law is told |
//! | `presets` | whether presets fit the links |
//! | `priorities` | which priorities its packets travel on |
//! | `together` | what goes badly together |
//! | `notes` | what of all this a user should know |
//! | [`overrides`] | `--set`, lists and ranges of values |
//!
//! A scenario is hostile until it is read: every text gives a [`Scenario`] or a [`ScenarioError`] that says where,
//! what, and what to do.

mod apart;
mod application;
mod changes;
mod cores;
mod devices;
mod end;
mod ets;
mod fast;
pub mod faults;
mod file;
mod fill;
mod frame;
pub mod keys;
mod machine;
pub mod measure;
mod networks;
pub mod nic;
mod notes;
pub mod overrides;
mod paths;
mod presets;
mod priorities;
pub(crate) mod program;
mod reach;
mod read;
mod reliability;
pub mod source;
pub mod switch;
mod syntax;
pub mod thresholds;
mod together;
mod topology;
mod traffic;
pub mod transport;
mod tree;
pub mod writes;

pub use application::Application;
pub use faults::Faults;
pub use keys::{Key, Section};
pub use machine::Machine;
pub use measure::Measure;
pub use nic::{Nic, NicConfig, NicModel};
pub use source::{Located, Origin, Place, ScenarioError, Source};
pub use switch::{Classes, Switch};
pub use thresholds::SwitchWrite;
pub use transport::{Control, Setting, Transport};
pub use writes::{RegisterWrite, Written};

use crate::traffic::Networks;
use crate::traffic::collective::Packets;
use crate::traffic::spec::{ControlIndex, Traffic};
use reach::Reach;
use read::Table;
use roci_control::Law;
use roci_control::program::Image;
use roci_fabric::Balancing;
use roci_fabric::topology::Topology;
use roci_switch::config::{CUSTOMARY_FRAME, SwitchConfig};
use roci_transport::{Recovery, Service};
use roci_units::{BitsPerSec, Span};
use roci_wire::ethernet::WIRE_OVERHEAD;
use roci_wire::{IpVersion, Opcode};
use std::path::Path;
use std::sync::Arc;

/// What is to be simulated: everything that a scenario says, with its defaults filled in.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, which can name a folder.
    pub name: String,
    /// What all randomness is drawn from, unless a run is given another seed.
    pub seed: u64,
    /// When the run ends at the latest; `None`: when all traffic is done.
    pub stop: Option<Span>,
    /// How much later than at one instant flows may start; `None`: one packet time.
    pub start_jitter: Option<Span>,
    /// The network.
    pub topology: Topology,
    /// Its switches.
    pub switch: Switch,
    /// Its hosts' NICs.
    pub nic: Nic,
    /// Reliability, and the congestion control of all flows that have none of their own.
    pub transport: Transport,
    /// What the hosts send; never empty.
    pub traffic: Vec<Traffic>,
    /// What each table of `traffic` is called: by the name that it was given, else by its index.
    pub traffic_names: Vec<String>,
    /// The congestion controls that flows have of their own: what [`ControlIndex`] means.
    pub controls: Vec<Control>,
    /// Which networks have one of these for all flows.
    pub networks: Networks,
    /// What takes the SENDs that arrive.
    pub application: Application,
    /// What the hosts that answer requests are like.
    pub machine: Machine,
    /// What is recorded.
    pub measure: Measure,
    /// What the links do to packets.
    pub faults: Faults,
    /// Registers that are written during the run, in the order of time.
    pub writes: Vec<RegisterWrite>,
    /// Thresholds of switches that are written during the run, in the order of time.
    pub switch_writes: Vec<SwitchWrite>,
    /// What a user should know of its tables, and of how they go together.
    own_notes: Vec<String>,
    /// The text that it came from.
    pub source: Source,
}

impl Scenario {
    /// Reads the scenario in the file at `path`, with `overrides`, pairs of a path and a value.
    ///
    /// # Errors
    /// When the file cannot be read, or [`Scenario::parse`] refuses it.
    pub fn load(path: &Path, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let source = Source::new(&name, "", overrides);
        let located = Located { value: name.clone(), origin: Origin::Default };
        let text = file::read_at(&source, path, &located).map_err(|error| ScenarioError {
            // The message begins with the file's name anyway.
            message: error.message.replacen(&format!("cannot read {name}"), "cannot read it", 1),
            remedy: "name a scenario file, such as scenarios/advcam-incast.toml".to_owned(),
            ..error
        })?;
        Self::parse(&text, &name, overrides)
    }

    /// Reads the scenario `text`. `file` is what messages call it; the files that it names are read from that file's
    /// folder.
    ///
    /// # Errors
    /// When it is not TOML, has an unknown key or a value that does not fit, names what does not exist, or can never
    /// come to an end. The error says where, and what to do.
    pub fn parse(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::read(Source::new(file, text, overrides))
    }

    /// Whether packets of a flow may overtake each other: by other paths, for what links do to them, or by their priorities, which laws
    /// and programs may set. Elsewhere they keep their order.
    pub fn may_reorder(&self) -> bool {
        let mut controls = self.controls.iter().chain([&self.transport.control]);
        self.spreads()
            || !self.faults.is_none()
            || controls.any(|control| control.is_granted() || control.is_program())
    }

    /// Whether packets of a flow take different paths: switches choose anew, or senders do.
    pub(crate) fn spreads(&self) -> bool {
        self.switch.routing != Balancing::Hash || self.transport.paths.is_some()
    }

    /// Reads the scenario that `source` holds.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn read(source: Source) -> Result<Self, ScenarioError> {
        let root = tree::parse(&source, source.text())?;
        let top = Table::open(&source, &keys::TOP, &root)?;
        let topology = topology::read(&source, top.require("topology", top.get("topology"))?)?;
        let names = topology::Names::of(&topology);
        let stop = top.period("stop")?;

        let switch_table = top.table("switch", &keys::SWITCH)?;
        let mut switch = Switch::read(switch_table, &names)?;
        let nic_table = top.table("nic", &keys::NIC)?;
        let nic = Nic::read(nic_table, &names)?;
        let transport_table = top.table("transport", &keys::TRANSPORT)?;
        let faults = Faults::read(top.table("faults", &keys::FAULTS)?, &topology.graph, &names)?;
        let lossy = faults.lose() || !topology.loss.is_empty();
        let lossless = !lossy && switch.configs().all(|config| config.pfc.is_some());
        let mut transport = Transport::read(transport_table, lossless)?;
        if transport.recovery == Recovery::Ndp {
            switch.pull_with_headers(switch_table)?;
        }
        let around =
            |opcode| u32::from(roci_wire::overhead(opcode, transport.layout, IpVersion::V4)) + WIRE_OVERHEAD;
        let acknowledged =
            if transport.service == Service::Rc { u32::from(transport.ack_every) } else { u32::MAX };
        let packets = Packets {
            mtu: nic.config.mtu,
            around: around(Opcode::WRITE_MIDDLE),
            acknowledges: around(Opcode::ACKNOWLEDGE) / acknowledged,
        };
        let mut reading = traffic::Reading::new(&names, packets, stop, Control::usual(transport_table)?.law);
        reading.read_all(top)?;
        apart::refuse_unjoined(&source, &topology, &reading)?;
        let (networks, unmet) = networks::read(transport_table, &topology, &names, &mut reading)?;
        let application = Application::read(top.table("application", &keys::APPLICATION)?)?;
        let machine = Machine::read(top.table("machine", &keys::MACHINE)?)?;
        machine.fits(&source, &reading, &topology, &nic)?;
        let measure = Measure::read(top.table("measure", &keys::MEASURE)?, &names)?;
        let writes = RegisterWrite::read_all(top, &mut reading, &transport.control, (&networks, &names))?;
        let mut idle = unmet;
        idle.extend(RegisterWrite::notes(&writes, &source, &reading));
        let late = reading.late_note(&source);
        // What is sent over unreliable connections gets done, wherever it goes.
        if stop.is_none() && transport.service == Service::Rc {
            let kinds = end::Kinds { classes: switch.classes, losses: losses(top) };
            end::refuse_black_holes(&source, &topology, &faults, &reading, kinds)?;
        }
        let used = presets::used(&reading.traffic, &transport.control, &reading.controls);
        reliability::fits(&source, &transport, &reading, used)?;
        let traffic::Reading { mut controls, traffic, traffic_names, .. } = reading;
        // Data may travel on priorities that PAUSE does not hold back.
        let lossless =
            lossless && traffic.iter().flat_map(Traffic::priorities).all(|data| switch.classes.pauses(data));
        if !lossless && transport_table.is_none_or(|table| table.get("timeout").is_none()) {
            transport.expect_losses();
        }
        for control in controls.iter().chain([&transport.control]) {
            control.fits(&source, transport.layout)?;
        }
        let fast = fast::Fast::of(&topology, &networks, &traffic);
        fast.fits(&source, &transport.control, &controls)?;
        if let Some(law) = telemetric(presets::used(&traffic, &transport.control, &controls)) {
            switch.write_telemetry_for(law, switch_table)?;
        }
        let frame = frame::greatest(&topology.graph, &nic, &transport, &traffic);
        let reach = Reach::of(&topology, &networks, frame, &transport)
            .with_nics(nic.idle_round_trip(&topology.graph));
        let told = if switch.int { frame::telemetry(reach.most_switches) } else { 0 };
        switch.set_max_frame(frame + told);
        switch.fits(switch_table, top, &topology.graph)?;
        let switch_writes = SwitchWrite::read_all(top, &switch, &topology.graph, &names)?;
        idle.extend(SwitchWrite::notes(&switch_writes, &source, stop));
        let max_frame = switch.config.max_frame.max(CUSTOMARY_FRAME);
        if switch.config.pfc.is_some() {
            nic.fits(nic_table, &topology.graph, max_frame)?;
        }
        let timeout = transport_table.and_then(|table| table.get("timeout")).map(|node| node.origin);
        let timeout = timeout.unwrap_or_else(|| top.origin_of("topology"));
        let timeout_note = reach.judge(&source, timeout, &topology.graph, &transport, &faults)?;
        let overhead = roci_wire::overhead(Opcode::WRITE_MIDDLE, transport.layout, IpVersion::V4);
        let overhead = u64::from(overhead) + WIRE_OVERHEAD as u64;
        let ahead = nic.longest_wait(&topology.graph, overhead);
        let trims = switch.config.trim.is_some();
        for control in controls.iter_mut().chain([&mut transport.control]).filter(|it| it.is_fitted()) {
            let round_trip = reach.round_trip(control.of_network, &faults);
            control.network = round_trip.map(|round_trip| fill::Network { round_trip, ahead, trims });
        }
        let mut scenario = Self {
            name: name(top)?,
            seed: top.number("seed", 0..=SEED_MAX)?.unwrap_or(1),
            stop,
            start_jitter: top.span("start_jitter")?,
            switch,
            nic,
            transport,
            traffic,
            traffic_names,
            controls,
            networks,
            application,
            machine,
            measure,
            faults,
            writes,
            switch_writes,
            topology,
            own_notes: Vec::new(),
            source: source.clone(),
        };
        let found = notes::Found {
            transport: transport_table,
            lossy,
            lossless,
            reach,
            fast,
            frame,
            overhead,
            max_frame,
            timeout: timeout_note,
            idle,
            late,
        };
        scenario.own_notes = notes::gather(&scenario, found);
        scenario.load_programs()?;
        scenario.try_writes()?;
        Ok(scenario)
    }

    /// What holds for the switch that its first host is linked to, and the rate and delay of that link; `None` where that is
    /// another host.
    pub fn edge(&self) -> Option<(&SwitchConfig, (BitsPerSec, Span))> {
        let graph = &self.topology.graph;
        let link = graph.links.iter().find(|link| link.a.0 == 0 || link.b.0 == 0)?;
        let place = (link.a.0.max(link.b.0) as usize).checked_sub(graph.hosts.len())?;
        let fastest = graph.fastest_rates();
        Some((
            self.switch.config_of(graph.switches.get(place)?, *fastest.get(place)?),
            (link.rate, link.delay),
        ))
    }

    /// Of each NIC, whether data packets from there gather telemetry.
    pub(crate) fn gathers_telemetry(&self) -> Vec<bool> {
        let told = networks::told_by_switches(
            &self.topology,
            &self.networks,
            &self.transport.control,
            &self.controls,
        );
        told.into_iter().map(|told| told && self.switch.int).collect()
    }

    /// The congestion control of a flow.
    pub fn control(&self, index: Option<ControlIndex>) -> &Control {
        let own = index.and_then(|index| self.controls.get(usize::try_from(index.0).ok()?));
        own.unwrap_or(&self.transport.control)
    }

    /// The same for those who want to know how long its schedules take, and not with less in their way, which costs as much again: `replays` is
    /// false of all of them.
    #[must_use]
    pub fn without_replays(mut self) -> Self {
        for traffic in &mut self.traffic {
            if let Traffic::Goal(goal) = traffic {
                goal.replays = false;
            }
        }
        self
    }

    /// What a user should know of how the scenario was read, such as a size that was rounded.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let of_traffic = self.traffic.iter().filter_map(|traffic| match traffic {
            Traffic::Hpcc(hpcc) => hpcc.note.as_deref(),
            _ => None,
        });
        self.topology
            .note
            .as_deref()
            .into_iter()
            .chain(of_traffic)
            .chain(self.own_notes.iter().map(String::as_str))
    }

    /// The programs that its traffic runs, and those that take their place during the run.
    pub(crate) fn images(&self) -> impl Iterator<Item = &Arc<Image>> {
        let used = presets::used(&self.traffic, &self.transport.control, &self.controls);
        let written = self.writes.iter().map(|write| &write.program);
        used.map(|control| &control.loaded).chain(written).filter_map(program::Loaded::image)
    }

    /// What the congestion controls are called in results, after so many of the writes: the common one, then those of single
    /// flows in the order of [`ControlIndex`]. Behind a program stand those that took its place for all, with the time.
    pub fn control_names(&self, written: usize) -> Vec<String> {
        (0..=self.controls.len()).map(|place| self.control_name(place, written, &[])).collect()
    }

    /// The same for the flows of the control at one place, for which the writes at the places `own` were made too.
    pub(crate) fn control_name(&self, place: usize, written: usize, own: &[usize]) -> String {
        let Some(control) = std::iter::once(&self.transport.control).chain(&self.controls).nth(place) else {
            return String::new();
        };
        let writes = self.writes.iter().take(written).enumerate();
        let index = place.checked_sub(1).and_then(|own| u32::try_from(own).ok()).map(ControlIndex);
        let is_for = |(at, write): &(usize, &RegisterWrite)| match &write.flow {
            Some(_) => own.contains(at),
            None => write.is_for(&self.traffic, index),
        };
        let then = writes
            .filter(|write| write.1.program.image().is_some() && is_for(write))
            .map(|(_, write)| format!(", {} from {}", write.text.value, write.time));
        control.name() + &if control.is_program() { then.collect() } else { String::new() }
    }

    /// Loads the programs that take the place of others during the run.
    fn load_programs(&mut self) -> Result<(), ScenarioError> {
        for write in self.writes.iter_mut().filter(|write| write.register.value == program::ELF) {
            let origin = write.register.origin;
            let flow = write.flow.as_ref().map(|flow| &flow.value);
            let numbered = (0..).map(|index| Some(ControlIndex(index))).zip(&self.controls);
            // A flow may run the program of its network.
            let is_meant = |index: Option<ControlIndex>, control: &Control| {
                flow.is_some() && control.of_network.is_some() || write.is_for(&self.traffic, index)
            };
            let programs = numbered
                .chain([(None, &self.transport.control)])
                .filter(|(index, control)| is_meant(*index, control))
                .filter_map(|(_, control)| control.is_program().then_some(control));
            let mut images = programs.map(|control| control.replacement(&self.source, &write.text));
            let Some(first) = images.next().transpose()? else {
                let message = match (flow, write.traffic) {
                    (Some(name), _) => format!("flow `{name}` runs no program that could be replaced"),
                    (None, Some(table)) => {
                        let name = &self.traffic_names[table];
                        format!("no flow of table `{name}` runs a program that could be replaced")
                    }
                    (None, None) => match &write.networks {
                        Some(networks) => {
                            format!("the law of `{networks}` is no program that could be replaced")
                        }
                        None => "no flow runs a program that could be replaced".to_owned(),
                    },
                };
                let remedy = "set `law = \"program\"` in `transport.control`, or in the flow's own `control`";
                return Err(self.source.error(origin, message, remedy));
            };
            images.try_for_each(|image| image.map(drop))?;
            if first.reads_telemetry() && !self.switch.int {
                let message = format!("{} reads telemetry, which no packet gathers here", first.name());
                return Err(self.source.error(write.text.origin, message, "set `switch.int = true`"));
            }
            program::sends(&first, self.transport.layout)
                .map_err(|(message, remedy)| self.source.error(write.text.origin, message, remedy))?;
            write.program = Some(first).into();
        }
        Ok(())
    }

    /// Writes every register once into laws of the kind that the flows have at that time: at least one of them must take it.
    fn try_writes(&self) -> Result<(), ScenarioError> {
        let link = BitsPerSec::from_gbps(100);
        let numbered = || (0..).map(|index| Some(ControlIndex(index))).zip(&self.controls);
        let mut laws = Vec::new();
        if !self.writes.is_empty() {
            for (index, control) in numbered().chain([(None, &self.transport.control)]) {
                laws.push((index, control, control.make(&self.source, link, self.nic.config.mtu)?));
            }
        }
        for write in &self.writes {
            let is_for = |index| {
                write.traffic.is_none() && write.is_for_network(index) || write.is_for(&self.traffic, index)
            };
            if let Some(image) = write.program.image() {
                let kept: Vec<_> = laws.iter().filter(|_| write.flow.is_some()).cloned().collect();
                for (index, _, law) in &mut laws {
                    if let Law::Program(law) = law
                        && is_for(*index)
                    {
                        law.replace(image.clone());
                    }
                }
                // Other flows go on with what they had.
                laws.extend(kept);
                continue;
            }
            let mut refused = None;
            let mut taken = false;
            for (_, control, law) in laws.iter().filter(|(index, ..)| is_for(*index)) {
                match write.try_on(&mut law.clone(), link) {
                    Ok(()) => taken = true,
                    Err(error) => refused = Some((*control, error)),
                }
            }
            if let Some((control, error)) = refused.filter(|_| !taken) {
                return Err(control.refuse_write(&self.source, write, &error));
            }
        }
        for (index, control) in numbered().chain([(None, &self.transport.control)]) {
            if !self.writes.is_empty() && !control.is_program() {
                let law = control.make(&self.source, link, self.nic.config.mtu)?;
                let writes = self.writes.iter().filter(|write| write.is_for(&self.traffic, index));
                control.try_cutoffs(&self.source, law, writes)?;
            }
        }
        Ok(())
    }
}

impl RegisterWrite {
    /// Whether a flow that it is for has the control `index`; `None`: the common one.
    pub(crate) fn is_for(&self, traffic: &[Traffic], index: Option<ControlIndex>) -> bool {
        match (&self.flow, self.traffic) {
            (Some(flow), _) => traffic::controls_of(traffic, &flow.value).contains(&index),
            (None, Some(table)) => traffic[table].controls().any(|control| control == index),
            (None, None) => self.is_for_network(index),
        }
    }

    /// Whether it is for the law `index` of a network; `None`: the common one, which is that of none.
    pub(crate) fn is_for_network(&self, index: Option<ControlIndex>) -> bool {
        let is_its =
            |networks: &writes::Written| index.is_some_and(|index| networks.controls.contains(&index));
        self.networks.as_ref().is_none_or(is_its)
    }

    /// Tries this write on `law` and the context of a queue pair that has just been connected.
    fn try_on(&self, law: &mut Law, link: BitsPerSec) -> Result<(), roci_control::SettingError> {
        let (mut context, credit, wake) = law.connect(link.as_kbps());
        let mut outcome = roci_control::Outcome::unchanged(credit, wake);
        law.write(&mut context, &self.register.value, &self.text.value, self.time, &mut outcome)
    }
}

/// The first of `controls` that has no effect without telemetry.
fn telemetric<'a>(mut controls: impl Iterator<Item = &'a Control>) -> Option<&'a str> {
    controls.find(|control| control.wants_telemetry()).map(|control| control.law.value.as_str())
}

/// Where the file was named that says what the links of the topology lose.
fn losses(top: Table<'_>) -> Origin {
    let file = |node: &tree::Node| match &node.kind {
        tree::Kind::Table(entries) => {
            entries.iter().find(|entry| entry.key == "file").map(|e| e.value.origin)
        }
        _ => None,
    };
    top.get("topology").and_then(file).unwrap_or_default()
}

/// TOML's largest number.
const SEED_MAX: u64 = i64::MAX.cast_unsigned();

/// The name, which must be able to name a folder: by default the file's, without its extension.
fn name(top: Table<'_>) -> Result<String, ScenarioError> {
    let Some(name) = top.text("name")? else {
        let stem = Path::new(top.source.file()).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        return Ok(stem.filter(|stem| can_name_a_folder(stem)).unwrap_or_else(|| "scenario".to_owned()));
    };
    if can_name_a_folder(&name.value) {
        return Ok(name.value);
    }
    Err(top.refuse(
        "name",
        format!("\"{}\" cannot name a folder", name.value.escape_debug()),
        "use letters, digits, dashes, dots and underscores, at most 100, and begin with a letter or digit",
    ))
}

fn can_name_a_folder(name: &str) -> bool {
    name.len() <= 100
        && name.starts_with(|c: char| c.is_alphanumeric())
        && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod guide;
#[cfg(test)]
mod tests;
