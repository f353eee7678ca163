//! The priorities that packets of a scenario travel on.

use super::{Control, Scenario, presets};
use crate::traffic::spec::Traffic;

impl Scenario {
    /// Bit p: some traffic names priority p for its data.
    pub(crate) fn named_priorities(&self) -> u8 {
        let named = self.traffic.iter().flat_map(Traffic::priorities);
        named.flatten().fold(0, |bits, priority| bits | 1 << (priority & 7))
    }

    /// The priority that data travel on: the scenario's, or the lowest of those that all traffic names instead.
    pub(crate) fn data_priority(&self) -> u8 {
        let common = self.switch.classes.data;
        let mut priorities = self.traffic.iter().flat_map(Traffic::priorities);
        if priorities.any(|priority| priority.is_none_or(|priority| priority == common)) {
            return common;
        }
        u8::try_from(self.named_priorities().trailing_zeros()).ok().filter(|p| *p < 8).unwrap_or(common)
    }

    /// The priority that data of `traffic` travel on: one of all its flows, or one for each; empty where a law ranks messages, or a program
    /// may.
    pub(crate) fn priorities_of(&self, traffic: &Traffic) -> Vec<u8> {
        let mut controls =
            presets::used(std::slice::from_ref(traffic), &self.transport.control, &self.controls);
        if controls.any(|control| control.is_granted() || control.is_program()) {
            return Vec::new();
        }
        let named = traffic.priorities().map(|priority| priority.unwrap_or(self.switch.classes.data));
        let mut priorities: Vec<u8> = named.collect();
        if priorities.windows(2).all(|two| two[0] == two[1]) {
            priorities.truncate(1);
        }
        priorities
    }

    /// Whether ports count by priority: where `measure.priorities` says so, or else several are in use.
    pub(crate) fn counts_priorities(&self) -> bool {
        self.measure.priorities.unwrap_or_else(|| self.has_several_priorities())
    }

    /// Whether several priorities are in use: data travel on more than one, acknowledgements have another (`switch.classes.ack`), headers of
    /// trimmed packets do, or a law ranks messages, as Homa does. CNPs, and what NDP sends with them, have one of their own nearly
    /// always, and make no second one. What programs that do not grant set themselves is not looked at.
    fn has_several_priorities(&self) -> bool {
        let classes = &self.switch.classes;
        let mut used = self.named_priorities() | 1 << self.data_priority();
        if classes.ack != classes.data {
            used |= 1 << classes.ack;
        }
        let trims = self.switch.configs().filter_map(|config| config.trim);
        used = trims.fold(used, |used, trim| used | 1 << trim.header_priority);
        let mut controls = presets::used(&self.traffic, &self.transport.control, &self.controls);
        used.count_ones() > 1 || controls.any(Control::is_granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn several(rest: &str) -> bool {
        let text = format!(
            "stop = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n{rest}"
        );
        Scenario::parse(&text, "test.toml", &[])
            .unwrap_or_else(|error| panic!("{error}"))
            .has_several_priorities()
    }

    #[test]
    fn several_priorities_are_those_of_data_and_acknowledgements_and_not_that_of_cnps_alone() {
        let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
        let beside = |priority: u8| format!("{traffic}{traffic}priority = {priority}\n");
        assert!(!several(traffic) && !several(&beside(3)));
        assert!(several(&beside(0)));
        assert!(!several(&format!("{traffic}priority = 0\n")), "all data on another one are on one");
        assert!(!several(&format!("[switch]\nclasses = {{ cnp = 5 }}\n{traffic}")));
        assert!(several(&format!("[switch]\nclasses = {{ ack = 6 }}\n{traffic}")));
        assert!(several(&format!("[switch]\ntrimming = true\npfc = false\n{traffic}")));
        assert!(several(&format!("[transport]\nrecovery = \"irn\"\ncontrol = \"homa\"\n{traffic}")));
    }

    #[test]
    fn the_priority_of_flows_is_known_but_under_laws_that_rank_messages_and_programs() {
        let known = |rest: &str| {
            let text = format!(
                "stop = \"1ms\"\n[topology]\nkind = \"star\"\nhosts = 4\nrate = \"100Gb/s\"\ndelay = \"1us\"\n{rest}"
            );
            let scenario = Scenario::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
            scenario.priorities_of(&scenario.traffic[0])
        };
        let traffic = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
        assert_eq!(known(traffic), [3]);
        assert_eq!(known(&format!("[switch]\nclasses = {{ data = 2 }}\n{traffic}")), [2]);
        assert_eq!(known(&format!("{traffic}priority = 5\n")), [5]);
        let flow = |rest: &str| format!("{{ src = \"h0\", dst = \"h1\", size = \"1MB\"{rest} }}");
        let flows =
            |second: &str| format!("[[traffic]]\nkind = \"flows\"\nflows = [{}, {second}]\n", flow(""));
        assert_eq!(known(&flows(&flow(", priority = 0"))), [3, 0]);
        assert_eq!(known(&flows(&flow(""))), [3], "all on one");
        assert!(known(&format!("[transport]\nrecovery = \"irn\"\ncontrol = \"homa\"\n{traffic}")).is_empty());
    }
}
