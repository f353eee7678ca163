//! What `[[at]]` changes during a run, in words.

use super::Scenario;
use roci_units::Instant;

impl Scenario {
    /// What `[[at]]` writes, in the order of time: when, and what with whose it is. What one table writes at one time is one of these.
    pub(crate) fn changes(&self) -> Vec<(Instant, String)> {
        let mut changes: Vec<(Instant, String, String)> = Vec::new();
        for write in &self.writes {
            let of = match (&write.flow, write.traffic) {
                (Some(flow), _) => format!(" of {}", flow.value),
                (None, Some(table)) => format!(" of {}", self.traffic_names[table]),
                (None, None) => {
                    write.networks.as_ref().map_or_else(String::new, |networks| format!(" of {networks}"))
                }
            };
            let set = format!("{} = {}", write.register.value, write.text.value);
            match changes.last_mut().filter(|(time, _, whose)| *time == write.time && *whose == of) {
                Some((_, sets, _)) => *sets += &format!(", {set}"),
                None => changes.push((write.time, set, of)),
            }
        }
        changes
            .extend(self.switch_writes.iter().map(|write| (write.time, write.what.clone(), String::new())));
        changes.sort_by_key(|(time, ..)| *time);
        changes.into_iter().map(|(time, sets, of)| (time, sets + &of)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_at_writes_is_told_in_the_order_of_time_with_whose_it_is() {
        let text = r#"
            stop = "5ms"
            [topology]
            kind = "star"
            hosts = 4
            rate = "100Gb/s"
            delay = "1us"
            [[traffic]]
            name = "bulk"
            kind = "permutation"
            size = "1GB"
            [[at]]
            time = "3ms"
            switches = ["s0"]
            set = { "switch.ecn.kmin" = "50KB", "switch.ecn.kmax" = "90KB" }
            [[at]]
            time = "1ms"
            set = { "transport.control.rai" = "80Mb/s", "transport.control.g" = "1/64" }
            [[at]]
            time = "1ms"
            traffic = "bulk"
            set = { "transport.control.rai" = "90Mb/s" }
            "#;
        let scenario = Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let changes: Vec<_> =
            scenario.changes().into_iter().map(|(time, what)| format!("{time}: {what}")).collect();
        let expected = [
            "1ms: rai = 80Mb/s, g = 1/64",
            "1ms: rai = 90Mb/s of bulk",
            "3ms: switch.ecn.kmin = 50KB, switch.ecn.kmax = 90KB of s0",
        ];
        assert_eq!(changes, expected);
    }
}
