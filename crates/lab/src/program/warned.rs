//! What the check of programs warns of in those of a scenario.

use super::{Check, machine_of};
use crate::scenario::Scenario;
use roci_control::program::Image;
use roci_hart::Machine;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Warnings of programs that were looked at once for each program and kind of core, in however many scenarios these run.
#[derive(Debug, Default)]
pub struct Warned {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    image: Arc<Image>,
    machine: Machine,
    /// Of its cores, in hertz, where those take time.
    clock: Option<u64>,
    warnings: Vec<String>,
}

impl Warned {
    /// What `roci program check` warns of in the programs that run in `scenario`, each behind the program's name. A program with
    /// `check = false` is not looked at. Of timers that keep a core busy it is told where the scenario's NICs have cores.
    pub fn of(&mut self, scenario: &Scenario) -> Vec<String> {
        let cores: Vec<(Machine, Option<u64>)> = scenario
            .nic
            .made_of_parts()
            .filter_map(|nic| Some((machine_of(&nic.cores)?, nic.core_clock().map(|clock| clock.hz()))))
            .collect();
        let (mut told, mut warnings) = (BTreeSet::new(), Vec::new());
        for image in scenario.images().filter(|image| image.options().checked) {
            let own = [(image.options().machine.clone(), None)];
            for (machine, clock) in if cores.is_empty() { &own[..] } else { &cores } {
                for warning in self.known(image, machine, *clock) {
                    if told.insert((image.name().to_owned(), warning.clone())) {
                        warnings.push(format!("{}: {warning}", image.name()));
                    }
                }
            }
        }
        warnings
    }

    fn known(&mut self, image: &Arc<Image>, machine: &Machine, clock: Option<u64>) -> &[String] {
        let same = |known: &Known| {
            known.clock == clock && known.machine == *machine && known.image.file() == image.file()
        };
        let place = self.known.iter().position(same).unwrap_or_else(|| {
            // What these cores do not take is refused where the run begins.
            let check = Check::of_image(image.file(), machine.clone(), image.options().cycles_max).ok();
            let hasty = check.iter().flat_map(|check| clock.into_iter().flat_map(|clock| check.hasty(clock)));
            let warnings = check.iter().flat_map(Check::warnings).chain(hasty).collect();
            self.known.push(Known { image: Arc::clone(image), machine: machine.clone(), clock, warnings });
            self.known.len() - 1
        });
        &self.known[place].warnings
    }
}
