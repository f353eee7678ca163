//! Scenarios from configurations of HPCC's simulator, and of those that were made of it; schedules from traces that ASTRA-sim runs ([`chakra`]).
//!
//! Their `config.txt` has a key and its values on each line (`third.cc` of alibaba-edu/High-Precision-Congestion-Control
//! reads it). Topology and flow files stay what they are: scenarios read them (`kind = "hpcc"`). What a scenario cannot say
//! becomes a note, and so does what the two simulators do not understand alike.

pub mod chakra;
mod config;
mod law;
mod paths;

pub use config::ConfigError;

use crate::traffic::spec::{Common, HpccFlows};
use config::Config;
use paths::longest;
use roci_fabric::graph::Graph;
use roci_fabric::topology::hpcc;
use roci_units::BitsPerSec;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A scenario made of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario, with the notes as comments before it.
    pub scenario: String,
    /// What the configuration says and the scenario does not, or not alike.
    pub notes: Vec<String>,
}

/// Where flow files begin, and what `LINK_DOWN` counts from, in us.
const BEGINNING_US: f64 = 2e6;

/// Makes a scenario of the configuration `file`, for a file in the folder `beside`.
///
/// The files that it names are looked for where the command runs, beside it, and in the folders above it.
///
/// # Errors
/// Where a file cannot be read, a value is none, or something decides all of a run and a scenario has nothing like it; with the line
/// and what to do.
pub fn import(file: &Path, beside: &Path) -> Result<Imported, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::said(format!("it cannot be read: {error}")))?;
    let mut config = Config::new(&text);
    let name = file.file_stem().map_or("imported".into(), |stem| stem.to_string_lossy().into_owned());
    let topology_file = found(&mut config, "TOPOLOGY_FILE", file)?;
    let flow_file = found(&mut config, "FLOW_FILE", file)?;
    let blamed = |file: &Path, error: &dyn std::fmt::Display| {
        ConfigError::said(format!("{}: {error}", file.display()))
    };
    let read = |file: &Path| std::fs::read_to_string(file).map_err(|error| blamed(file, &error));
    let topology = hpcc::read(&read(&topology_file)?).map_err(|error| blamed(&topology_file, &error))?;
    let graph = &topology.graph;
    let mut made = Made { config, notes: Vec::new(), text: String::new(), payload: 1000 };
    let shown =
        |path: &Path| relative(path, beside).to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");

    let _ = writeln!(made.text, "name = \"{}\"", name.replace(['"', '\\', '/'], "-"));
    made.stop()?;
    let _ = writeln!(made.text, "\n[topology]\nkind = \"hpcc\"\nfile = \"{}\"", shown(&topology_file));
    let flows = HpccFlows::read(&read(&flow_file)?, topology.hosts(), Common::default())
        .map_err(|error| blamed(&flow_file, &error))?;
    made.switch(graph, &flows.flows.iter().map(|flow| flow.priority).collect())?;
    made.payload()?;
    made.transport(graph)?;
    let _ = writeln!(made.text, "\n[[traffic]]\nkind = \"hpcc\"\nfile = \"{}\"", shown(&flow_file));
    made.faults(graph, !topology.loss.is_empty())?;
    made.leave_out();
    let Made { notes, text, .. } = made;
    let mut scenario = format!("# From {}, a configuration of HPCC's simulator.\n", one_line(file));
    for note in &notes {
        let _ = writeln!(scenario, "# {note}");
    }
    scenario.push_str(&text);
    Ok(Imported { scenario, notes })
}

/// The name of `file` in a comment.
fn one_line(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().replace(char::is_control, " ")
}

/// The file that `key` names, where it is.
fn found(config: &mut Config, key: &'static str, file: &Path) -> Result<PathBuf, ConfigError> {
    let (line, named) = config.text(key)?.ok_or_else(|| {
        ConfigError::said(format!("{key} is missing; name the file there, as HPCC's simulator needs it"))
    })?;
    let above = file.ancestors().skip(1).map(|folder| folder.join(&named));
    let mut tried = std::iter::once(PathBuf::from(&named)).chain(above);
    tried.find(|path| path.is_file()).ok_or_else(|| {
        ConfigError::at(
            line,
            format!(
                "{key}: there is no {named} here, beside {} or above it; correct its path",
                file.display()
            ),
        )
    })
}

/// `path` as seen from the folder `beside`, where it lies within; else from the root.
fn relative(path: &Path, beside: &Path) -> PathBuf {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beside = if beside.as_os_str().is_empty() { whole(Path::new(".")) } else { whole(beside) };
    let path = whole(path);
    path.strip_prefix(&beside).map(Path::to_owned).unwrap_or(path)
}

/// What has been made so far.
struct Made {
    config: Config,
    notes: Vec<String>,
    text: String,
    /// Octets of payload in a full packet.
    payload: u32,
}

impl Made {
    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn stop(&mut self) -> Result<(), ConfigError> {
        let (_, seconds) = self.config.number("SIMULATOR_STOP_TIME")?.unwrap_or((0, 3.01));
        if seconds > 0.0 && seconds <= 4503.0 {
            let _ = writeln!(self.text, "stop = \"{seconds}s\"");
        } else {
            self.note(format!("SIMULATOR_STOP_TIME {seconds}: it runs until all flows are done"));
        }
        Ok(())
    }

    fn payload(&mut self) -> Result<(), ConfigError> {
        let Some((line, payload)) = self.config.whole("PACKET_PAYLOAD_SIZE")? else { return Ok(()) };
        if payload == 0 {
            return Err(ConfigError::at(
                line,
                "PACKET_PAYLOAD_SIZE 0: packets carry at least an octet".into(),
            ));
        }
        self.payload = u32::try_from(payload).unwrap_or(u32::MAX).clamp(1, 4096);
        if u64::from(self.payload) != payload {
            self.note(format!("PACKET_PAYLOAD_SIZE {payload}: RoCEv2's packets carry up to 4096 octets"));
        }
        Ok(())
    }

    fn switch(&mut self, graph: &Graph, groups: &BTreeSet<u8>) -> Result<(), ConfigError> {
        self.text.push_str("\n[switch]\n");
        let (_, megabytes) = self.config.whole("BUFFER_SIZE")?.unwrap_or((0, 16));
        let _ = writeln!(self.text, "buffer = \"{megabytes}MiB\"");
        self.classes(groups)?;
        if self.config.flag("ENABLE_PFC")?.unwrap_or(true) {
            // The shift of 3, the reserve and the resume offset of its switch-mmu.
            // Which is for ports as fast as the first host's.
            let rate = graph.host_rates().first().map(|rate| format!("rate = \"{rate}\", "));
            let _ = writeln!(
                self.text,
                "pfc = {{ alpha = \"1/8\", {}reserve = \"4KiB\", resume = \"3KiB\", headroom = \"usual\" }}",
                rate.unwrap_or_default()
            );
        } else {
            self.text.push_str("pfc = false\n");
        }
        if self.config.flag("ENABLE_QCN")? == Some(false) {
            self.text.push_str("ecn = false\n");
            for key in ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"] {
                self.config.map(key)?;
            }
            return Ok(());
        }
        self.thresholds(graph)
    }

    /// The priorities of flows, of which all but 0 are lossless there, and of what answers them: a mark is told in an acknowledgement, which
    /// queues with data unless it goes first.
    fn classes(&mut self, groups: &BTreeSet<u8>) -> Result<(), ConfigError> {
        let data = groups.first().copied().unwrap_or(3);
        let first = self.config.flag("ACK_HIGH_PRIO")?.unwrap_or(false);
        let answers = if first { 7 } else { data };
        let lossless: Vec<String> =
            groups.iter().filter(|group| **group > 0).map(|group| group.to_string()).collect();
        let pause = if groups.is_empty() { "3".to_owned() } else { lossless.join(", ") };
        let _ = writeln!(
            self.text,
            "classes = {{ data = {data}, ack = {answers}, cnp = {answers}, pause = [{pause}] }}"
        );
        if first {
            self.note("ACK_HIGH_PRIO: acknowledgements go first in switches too, and not at hosts alone");
        }
        if groups.len() > 1 {
            self.note("Flows of several priority groups: switches serve them in turn there, and the highest first here; switch.ets has shares");
        }
        if groups.contains(&0) {
            self.note(
                "Flows of priority group 0: what cannot be lost there is lossy here, on the lowest priority",
            );
        }
        Ok(())
    }

    /// The three maps by rate, of the rates that switches' ports have.
    fn thresholds(&mut self, graph: &Graph) -> Result<(), ConfigError> {
        let maps = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|key| self.config.map(key).map(|map| (key, map)));
        let [kmin, kmax, pmax] = maps;
        let maps = [kmin?, kmax?, pmax?];
        if maps.iter().all(|(_, map)| map.is_empty()) {
            self.note("No KMIN_MAP, KMAX_MAP and PMAX_MAP: switches mark by our defaults");
            return Ok(());
        }
        let of = |rate: BitsPerSec| {
            let mut values = [0.0; 3];
            for (value, (key, map)) in values.iter_mut().zip(&maps) {
                *value = *map.get(&rate.0).ok_or_else(|| {
                    ConfigError::said(format!("{key} has nothing for {rate}, which a link has; add it"))
                })?;
            }
            Ok::<_, ConfigError>(values)
        };
        let ports: BTreeSet<_> = graph.switch_links().iter().flatten().map(|link| link.rate).collect();
        let rates: Vec<_> =
            ports.into_iter().map(|rate| Ok((rate, of(rate)?))).collect::<Result<_, ConfigError>>()?;
        let Some(&(first, values)) = rates.first() else { return Ok(()) };
        let is_close = |a: f64, b: f64| (a - b).abs() <= 1e-3 * a.abs().max(b.abs());
        let alike = rates.iter().all(|&(rate, [kmin, kmax, pmax])| {
            let times = rate.0 as f64 / first.0 as f64;
            is_close(kmin, values[0] * times)
                && is_close(kmax, values[1] * times)
                && is_close(pmax, values[2])
        });
        let table = |rate: BitsPerSec, [kmin, kmax, pmax]: [f64; 3]| {
            format!("{{ kmin = \"{kmin}KB\", kmax = \"{kmax}KB\", pmax = {pmax}, rate = \"{rate}\" }}")
        };
        let _ = writeln!(self.text, "ecn = {}", table(first, values));
        if !alike {
            let switches: BTreeSet<_> = graph.fastest_rates().into_iter().collect();
            for (rate, values) in
                rates.into_iter().filter(|(rate, _)| *rate != first && switches.contains(rate))
            {
                let _ =
                    writeln!(self.text, "[[switch.on]]\nrate = \"{rate}\"\necn = {}", table(rate, values));
            }
            self.note(
                "KMIN_MAP, KMAX_MAP and PMAX_MAP are not in proportion to rates: each switch has those of its fastest port, and \
                 slower ones in proportion",
            );
        }
        Ok(())
    }

    fn transport(&mut self, graph: &Graph) -> Result<(), ConfigError> {
        let _ = writeln!(self.text, "\n[nic]\nmtu = {}\n\n[transport]", self.payload);
        let recovery = if self.config.flag("ENABLE_IRN")?.unwrap_or(false) { "irn" } else { "go-back-n" };
        let _ = writeln!(self.text, "recovery = \"{recovery}\"");
        if self.config.whole("L2_ACK_INTERVAL")?.is_some_and(|(_, octets)| octets > self.payload.into()) {
            self.note("L2_ACK_INTERVAL: each packet is acknowledged, as there behind the first interval: it counts octets");
        }
        if self.config.flag("L2_BACK_TO_ZERO")?.unwrap_or(false) {
            self.note(
                "L2_BACK_TO_ZERO: a loss sends again what follows it (go-back-n), and not all of its chunk",
            );
        }
        let paths = longest(graph, self.payload);
        let has_window = self.config.flag("HAS_WIN")?.unwrap_or(true);
        let varies = self.config.flag("VAR_WIN")?.unwrap_or(false);
        if self.config.flag("GLOBAL_T")? == Some(false) {
            self.note("GLOBAL_T 0: windows and round trips are those of the farthest hosts for all flows");
        }
        let law = self.law(&paths)?;
        if law == "hpcc" && !has_window {
            self.note("HAS_WIN 0: HPCC has a window here, which follows its rate");
        }
        if law != "hpcc" && has_window {
            let packets = paths.octets.div_ceil(self.payload.into()).max(1);
            let _ = writeln!(self.text, "max_in_flight = {packets}    # HAS_WIN: {} octets", paths.octets);
            if varies {
                self.note("VAR_WIN: the window keeps its size, and does not shrink with the rate");
            }
        }
        Ok(())
    }

    /// `has_losses`: the topology file gives some links losses.
    fn faults(&mut self, graph: &Graph, has_losses: bool) -> Result<(), ConfigError> {
        let loss = self.config.number("ERROR_RATE_PER_LINK")?.map_or(0.0, |(_, loss)| loss);
        let down = self.config.numbers("LINK_DOWN")?;
        let [after, a, b] = match down[..] {
            [after, a, b] if after > 0.0 => [after, a, b],
            [] | [_, _, _] if loss == 0.0 => return Ok(()),
            [] | [_, _, _] => [0.0; 3],
            _ => {
                return Err(ConfigError::said(
                    "LINK_DOWN: write a time in us after 2 s, and two nodes".into(),
                ));
            }
        };
        self.text.push_str("\n[faults]\n");
        if loss > 0.0 {
            let _ = writeln!(self.text, "loss = {loss}");
            if has_losses {
                self.note(
                    "ERROR_RATE_PER_LINK: links that the topology file gives losses of their own have both",
                );
            }
        }
        if after > 0.0 {
            let name = |node: f64| {
                let [host, switch] = ["h", "s"].map(|kind| format!("{kind}{node}"));
                if graph.switches.contains(&switch) { switch } else { host }
            };
            let from = BEGINNING_US + after;
            // Its routes change in the same instant.
            let _ = writeln!(
                self.text,
                "detect = \"0s\"\n[[faults.on]]\nlink = \"{}-{}\"\nfrom = \"{from}us\"\ndown = true",
                name(a),
                name(b)
            );
        }
        Ok(())
    }

    /// Tells of what nobody has read.
    fn leave_out(&mut self) {
        let unread: Vec<_> = self.config.unread().map(|(line, key)| format!("{key} (line {line})")).collect();
        if !unread.is_empty() {
            self.note(format!("Not read: {}", unread.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests;
