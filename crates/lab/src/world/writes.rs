//! Registers of laws that a scenario writes while traffic runs (`[[at]]`).

use super::Simulation;
use super::build::replacement;
use crate::scenario::RegisterWrite;
use roci_control::{Image, Law};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Qpn};
use std::sync::Arc;

impl Simulation<'_> {
    /// When the next write is due.
    pub(super) fn next_write(&self) -> Instant {
        self.scenario.writes.get(self.written).map_or(Instant::NEVER, |write| write.time)
    }

    /// Makes the writes that are due.
    pub(super) fn write_due(&mut self, now: Instant) {
        while let Some(write) = self.scenario.writes.get(self.written).filter(|write| write.time <= now) {
            self.written += 1;
            self.write(now, write);
        }
    }

    /// Writes a register of one flow, or of all that are alive and of those that start later.
    fn write(&mut self, now: Instant, write: &RegisterWrite) {
        let (register, text) = (write.register.value.as_str(), write.text.value.as_str());
        let nics = &mut self.fabric.nics;
        if let Some(image) = write.program.image() {
            // One image for each kind of core, shared by the hosts that have such.
            let mut made: Vec<Arc<Image>> = Vec::new();
            for (id, nic) in (0u16..).zip(&mut nics.hosts) {
                for number in 0u16.. {
                    let law = match nic.engine.law_mut(number) {
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
        if write.flow.is_none() {
            let mut taken = false;
            for host in &mut nics.hosts {
                for law in 0u16.. {
                    let Some(law) = host.engine.law_mut(law) else { break };
                    // Laws without such a parameter are not meant; that some law has it was checked when the
                    // scenario was read.
                    taken |= law.set(register, text).is_ok();
                }
            }
            if taken {
                return;
            }
        }
        let driver = &nics.application;
        let wanted = |name: &str| write.flow.as_ref().is_none_or(|flow| flow.value == name);
        let ends: Vec<(HostId, Qpn)> = driver
            .live
            .iter()
            .flatten()
            .filter(|live| wanted(&driver.name(live.id).to_string()))
            .flat_map(|live| [(live.src, live.src_qpn), (live.dst, live.dst_qpn)])
            .collect();
        for (host, qpn) in ends {
            let net = &mut self.fabric.net;
            let nic = &mut nics.hosts[usize::from(host.0)];
            // The end that runs no such law has no such register.
            let _ = nic.engine.control_set(qpn, register, text, now);
            nic.poke(net, host);
        }
    }
}
