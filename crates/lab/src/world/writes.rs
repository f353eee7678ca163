//! Registers of laws and thresholds of switches that a scenario writes while traffic runs (`[[at]]`).

use super::Simulation;
use super::build::{law_index, replacement};
use crate::output::digits::time;
use crate::scenario::{RegisterWrite, SwitchWrite};
use crate::traffic::JobId;
use roci_control::{Image, Law};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Qpn};
use std::sync::Arc;

/// A flow that is alive.
struct Flow {
    id: JobId,
    number: u32,
    name: String,
    /// Both its ends: the host and its queue pair.
    ends: [(HostId, Qpn); 2],
    /// The law of its network, where it has that and not its table's.
    of_network: Option<u16>,
}

/// What became of a write to a flow.
enum Answer {
    /// One of its ends took it.
    Took,
    /// Neither has such a register.
    Lacks,
    /// The program that it is for has failed, and a fallback law stands in for it.
    Fallen,
}

impl Simulation<'_> {
    /// When the next write is due.
    pub(super) fn next_write(&self) -> Instant {
        let register = self.scenario.writes.get(self.written).map(|write| write.time);
        let switch = self.scenario.switch_writes.get(self.thresholds).map(|write| write.time);
        register.into_iter().chain(switch).min().unwrap_or(Instant::NEVER)
    }

    /// Makes the writes that are due.
    pub(super) fn write_due(&mut self, now: Instant) {
        while let Some(write) = self.scenario.switch_writes.get(self.thresholds).filter(|it| it.time <= now) {
            self.thresholds += 1;
            for (switch, config) in &write.configs {
                let set = self.fabric.net.set_thresholds(*switch, config);
                debug_assert!(set.is_ok(), "it was judged before the run: {set:?}");
            }
        }
        while let Some(write) = self.scenario.writes.get(self.written).filter(|write| write.time <= now) {
            self.written += 1;
            self.write(now, write);
        }
    }

    /// Tells of the writes for which the run was over too soon. Those after its `stop` were told before it, as were those before
    /// the flow that they are for.
    pub(super) fn tell_of_writes_to_come(&mut self) {
        let stop = self.stop();
        let end = time(self.fabric.net.now().as_secs_f64());
        let to_switches = self.scenario.switch_writes.get(self.thresholds..).unwrap_or_default();
        for SwitchWrite { time: at, .. } in to_switches.iter().filter(|write| write.time <= stop) {
            self.warnings.push(format!(
                "no packet met what `[[at]]` writes to switches at {at}: the run was over after {end}"
            ));
        }
        let to_come = self.scenario.writes.get(self.written..).unwrap_or_default();
        let untold = to_come.iter().filter(|write| write.time <= stop && !write.early);
        for RegisterWrite { time: at, register, .. } in untold {
            let register = &register.value;
            self.warnings.push(format!(
                "nobody took what `[[at]]` writes to `transport.control.{register}` at {at}: the run was over after {end}"
            ));
        }
    }

    /// Writes a register of one flow, or of all that are alive and of those that start later, or of those of one table.
    fn write(&mut self, now: Instant, write: &RegisterWrite) {
        if let Some(image) = write.program.image()
            && write.flow.is_none()
        {
            self.replace_programs(now, write, image);
            return self.tell_of_spared(now, write);
        }
        let laws = self.set_parameter(now, write);
        let flows = self.flows_meant(write);
        let (mut taken, mut fallen, mut lacking, mut elsewhere) = (laws, Vec::new(), Vec::new(), Vec::new());
        for flow in &flows {
            if let Some(law) = flow.of_network.filter(|_| write.traffic.is_some()) {
                if laws == 0 || self.would_take(flow.ends[0].0, law, write) {
                    elsewhere.push(flow.name.as_str());
                }
                continue;
            }
            match self.write_to(now, write, flow, laws > 0) {
                Answer::Fallen => fallen.push(flow.name.as_str()),
                Answer::Took => taken += 1,
                Answer::Lacks => lacking.push(flow.name.as_str()),
            }
        }
        let why = match flows.len() {
            0 if taken > 0 || write.early => return,
            0 => self.no_flow(write),
            all => [
                (&fallen, "the fallback law of a program that failed"),
                (&lacking, "a law that has no such register"),
                (&elsewhere, "the congestion control of their network, whatever their table has"),
            ]
            .into_iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, what)| format!("{} of {all} flows run {what} ({})", names.len(), named(names)))
            .collect::<Vec<_>>()
            .join(", and "),
        };
        if why.is_empty() {
            return;
        }
        let lost = if taken > 0 { "not all took" } else { "nobody took" };
        let register = &write.register.value;
        self.warnings
            .push(format!("{lost} what `[[at]]` writes to `transport.control.{register}` at {now}: {why}"));
    }

    /// Which laws of a host `write` is for, by their numbers: those of its table, which no other table has, or of its networks; all without one.
    fn is_meant(&self, write: &RegisterWrite) -> impl Fn(u16) -> bool + use<> {
        let of_table =
            write.traffic.map(|table| self.scenario.traffic[table].controls().map(law_index).collect());
        let own: Option<Vec<u16>> = of_table.or_else(|| of_networks(write).map(Iterator::collect));
        move |number| own.as_ref().is_none_or(|own| own.contains(&number))
    }

    /// Puts `image` in the place of the programs that are laws at hosts.
    fn replace_programs(&mut self, now: Instant, write: &RegisterWrite, image: &Arc<Image>) {
        let is_meant = self.is_meant(write);
        // One image for each kind of core, shared by the hosts that have such.
        let mut made: Vec<Arc<Image>> = Vec::new();
        for (id, nic) in (0u16..).zip(&mut self.fabric.nics.hosts) {
            for number in 0u16.. {
                let law = match nic.engine.law_mut(number) {
                    Some(Law::Program(law)) if !is_meant(law.origin().unwrap_or(number)) => continue,
                    Some(Law::Program(law)) => law,
                    Some(_) => continue,
                    None => break,
                };
                let known = made.iter().find(|made| made.options() == law.image().options()).cloned();
                // It was tried on these cores before the run began.
                let Ok(image) = known.map_or_else(|| replacement(law, image), Ok) else { continue };
                nic.engine.replace_program(now, number, &image);
                made.push(image);
            }
            nic.poke(&mut self.fabric.net, HostId(id));
        }
    }

    /// Tells of the flows of a table that go on with the program of their network.
    fn tell_of_spared(&mut self, now: Instant, write: &RegisterWrite) {
        if write.traffic.is_none() {
            return;
        }
        let flows = self.flows_meant(write);
        let runs_program = |flow: &&Flow| {
            let host = &self.fabric.nics.hosts[usize::from(flow.ends[0].0.0)];
            flow.of_network.is_some() && host.engine.program(flow.ends[0].1).is_some()
        };
        let spared: Vec<&str> = flows.iter().filter(runs_program).map(|flow| flow.name.as_str()).collect();
        if spared.is_empty() {
            return;
        }
        let (count, all, names) = (spared.len(), flows.len(), named(&spared));
        let lost = if count < all { "not all took" } else { "nobody took" };
        self.warnings.push(format!(
            "{lost} the program that `[[at]]` writes at {now}: {count} of {all} flows run that of their network, whatever their table has ({names}); \
             `networks` in place of `traffic` writes to it"
        ));
    }

    /// Sets the parameter of this name of laws at hosts, unless the write is for one flow. Gives how many laws took it.
    fn set_parameter(&mut self, now: Instant, write: &RegisterWrite) -> usize {
        if write.flow.is_some() {
            return 0;
        }
        let is_meant = self.is_meant(write);
        let mut taken = 0;
        for host in &mut self.fabric.nics.hosts {
            for number in 0u16.. {
                if host.engine.law_mut(number).is_none() {
                    break;
                }
                if is_meant(number) {
                    // Laws without such a parameter are not meant; that some law has it was checked when the
                    // scenario was read.
                    let (register, text) = (&write.register.value, &write.text.value);
                    taken += usize::from(host.engine.set_parameter(number, register, text, now).is_ok());
                }
            }
        }
        taken
    }

    /// Whether that law of a host has the parameter that `write` is for.
    fn would_take(&mut self, host: HostId, law: u16, write: &RegisterWrite) -> bool {
        let law = self.fabric.nics.hosts[usize::from(host.0)].engine.law_mut(law);
        law.is_some_and(|law| law.clone().set(&write.register.value, &write.text.value).is_ok())
    }

    /// The flows that are alive and that `write` is for, in the scenario's order: those that ended have left their places to others.
    fn flows_meant(&self, write: &RegisterWrite) -> Vec<Flow> {
        let driver = &self.fabric.nics.application;
        let by_network: Vec<u16> =
            self.scenario.networks.controls().map(|own| law_index(Some(own))).collect();
        let wanted = |name: &str| write.flow.as_ref().is_none_or(|flow| flow.value == name);
        let of_table = |id: JobId| write.traffic.is_none_or(|table| table == id.traffic as usize);
        let written: Option<Vec<u16>> = of_networks(write).map(Iterator::collect);
        let of_network = |law: u16| written.as_ref().is_none_or(|laws| laws.contains(&law));
        let live = driver.live.iter().flatten().filter(|live| of_table(live.id) && of_network(live.law));
        let mut flows: Vec<Flow> = live
            .map(|live| Flow {
                id: live.id,
                number: live.number,
                name: driver.name(live.id).to_string(),
                ends: [(live.src, live.src_qpn), (live.dst, live.dst_qpn)],
                of_network: by_network.contains(&live.law).then_some(live.law),
            })
            .filter(|flow| wanted(&flow.name))
            .collect();
        flows.sort_by_key(|flow| flow.id);
        flows
    }

    /// Writes to both ends of `flow`, whose laws took it as a `parameter` where they did.
    fn write_to(&mut self, now: Instant, write: &RegisterWrite, flow: &Flow, parameter: bool) -> Answer {
        let program = write.program.image();
        let (mut took, mut fell) = (parameter, false);
        for &(host, qpn) in &flow.ends {
            let net = &mut self.fabric.net;
            let nic = &mut self.fabric.nics.hosts[usize::from(host.0)];
            fell |= nic.engine.has_fallen(qpn);
            if let Some(image) = program {
                // It was tried on these cores before the run began. A program that has failed makes room for it.
                let own = nic.engine.program(qpn).and_then(|law| replacement(law, image).ok());
                took |= own.is_some_and(|own| nic.engine.replace_program_of(now, qpn, &own));
                fell = false;
                nic.poke(net, host);
            } else if !parameter
                || (write.traffic.is_some() || write.networks.is_some()) && nic.engine.has_own_law(qpn)
            {
                // The end that runs no such law has no such register. One that was written to by itself before has a law of its own.
                took |= nic.engine.control_set(qpn, &write.register.value, &write.text.value, now).is_ok();
                nic.poke(net, host);
            }
        }
        if took && program.is_some() {
            self.own_programs.entry(flow.number).or_default().push(self.written - 1);
        }
        match (fell, took) {
            (true, _) => Answer::Fallen,
            (false, true) => Answer::Took,
            (false, false) => Answer::Lacks,
        }
    }

    /// That no flow is alive that `write` is for.
    fn no_flow(&self, write: &RegisterWrite) -> String {
        let whose = match (&write.flow, write.traffic) {
            (Some(flow), _) => format!(": `{}`", flow.value),
            (None, Some(table)) => format!(": of table `{}`", self.scenario.traffic_names[table]),
            (None, None) => {
                write.networks.as_ref().map_or_else(String::new, |networks| format!(": on `{networks}`"))
            }
        };
        format!("no flow is under way that it is for{whose}")
    }
}

/// The numbers of the laws that `write` is for, where it is for those of networks.
pub(super) fn of_networks(write: &RegisterWrite) -> Option<impl Iterator<Item = u16>> {
    write.networks.as_ref().map(|networks| networks.controls.iter().map(|own| law_index(Some(*own))))
}

/// The first few of `names`, and how many more there are.
fn named(names: &[&str]) -> String {
    /// Names that are told.
    const TOLD: usize = 4;
    let told = names.iter().take(TOLD).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(TOLD) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}
