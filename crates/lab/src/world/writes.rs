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

/// Both ends of a flow: the host and its queue pair.
type Ends = [(HostId, Qpn); 2];

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
        let (register, text) = (write.register.value.as_str(), write.text.value.as_str());
        let nics = &mut self.fabric.nics;
        let program = write.program.image();
        // Those of a table, which no other table has.
        let own: Option<Vec<u16>> =
            write.traffic.map(|table| self.scenario.traffic[table].controls().map(law_index).collect());
        let is_meant = |number: &u16| own.as_ref().is_none_or(|own| own.contains(number));
        if let Some(image) = program
            && write.flow.is_none()
        {
            // One image for each kind of core, shared by the hosts that have such.
            let mut made: Vec<Arc<Image>> = Vec::new();
            for (id, nic) in (0u16..).zip(&mut nics.hosts) {
                for number in 0u16.. {
                    let law = match nic.engine.law_mut(number) {
                        Some(Law::Program(law)) if !is_meant(&law.origin().unwrap_or(number)) => continue,
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
                nic.poke(&mut self.fabric.net, roci_fabric::HostId(id));
            }
            return;
        }
        let mut taken = 0;
        if write.flow.is_none() {
            for host in &mut nics.hosts {
                for number in 0u16.. {
                    let Some(law) = host.engine.law_mut(number) else { break };
                    if !is_meant(&number) {
                        continue;
                    }
                    // Laws without such a parameter are not meant; that some law has it was checked when the
                    // scenario was read.
                    taken += usize::from(law.set(register, text).is_ok());
                }
            }
        }
        let parameter = taken > 0;
        let driver = &nics.application;
        let wanted = |name: &str| write.flow.as_ref().is_none_or(|flow| flow.value == name);
        let of_table = |id: JobId| write.traffic.is_none_or(|table| table == id.traffic as usize);
        let live = driver.live.iter().flatten().filter(|live| of_table(live.id));
        let mut flows: Vec<(JobId, u32, String, Ends)> = live
            .map(|live| {
                let ends = [(live.src, live.src_qpn), (live.dst, live.dst_qpn)];
                (live.id, live.number, driver.name(live.id).to_string(), ends)
            })
            .filter(|(_, _, name, _)| wanted(name))
            .collect();
        // Flows that ended have left their places to others: in the scenario's order they are told.
        flows.sort_by_key(|(id, ..)| *id);
        let (mut fallen, mut lacking) = (Vec::new(), Vec::new());
        for (_, number, name, ends) in &flows {
            let (mut took, mut fell) = (parameter, false);
            for &(host, qpn) in ends {
                let net = &mut self.fabric.net;
                let nic = &mut nics.hosts[usize::from(host.0)];
                fell |= nic.engine.has_fallen(qpn);
                if let Some(image) = program {
                    // It was tried on these cores before the run began. A program that has failed makes room for it.
                    let own = nic.engine.program(qpn).and_then(|law| replacement(law, image).ok());
                    took |= own.is_some_and(|own| nic.engine.replace_program_of(now, qpn, &own));
                    fell = false;
                    nic.poke(net, host);
                } else if !parameter || write.traffic.is_some() && nic.engine.has_own_law(qpn) {
                    // The end that runs no such law has no such register. One that was written to by itself before has a law of its own.
                    took |= nic.engine.control_set(qpn, register, text, now).is_ok();
                    nic.poke(net, host);
                }
            }
            if took && program.is_some() {
                self.own_programs.entry(*number).or_default().push(self.written - 1);
            }
            match (fell, took) {
                (true, _) => fallen.push(name.as_str()),
                (false, true) => taken += 1,
                (false, false) => lacking.push(name.as_str()),
            }
        }
        let all = flows.len();
        let whys = [
            (&fallen, "the fallback law of a program that failed"),
            (&lacking, "a law that has no such register"),
        ];
        let whys = whys
            .into_iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, what)| format!("{} of {all} flows run {what} ({})", names.len(), named(names)));
        let why = match all {
            0 if taken > 0 || write.early => return,
            0 => match (&write.flow, write.traffic) {
                (Some(flow), _) => format!("no flow is under way that it is for: `{}`", flow.value),
                (None, Some(table)) => {
                    format!(
                        "no flow is under way that it is for: of table `{}`",
                        self.scenario.traffic_names[table]
                    )
                }
                (None, None) => "no flow is under way that it is for".to_owned(),
            },
            _ => whys.collect::<Vec<_>>().join(", and "),
        };
        if why.is_empty() {
            return;
        }
        let lost = if taken > 0 { "not all took" } else { "nobody took" };
        self.warnings
            .push(format!("{lost} what `[[at]]` writes to `transport.control.{register}` at {now}: {why}"));
    }
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
