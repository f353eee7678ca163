//! What several test programs share: small scenarios, and their runs.

use roci_lab::results::Results;
use roci_lab::run::{Go, World};
use roci_lab::scenario::Scenario;
use roci_lab::world::SimulatedWorld;

/// Keys with the values that are set over a scenario's own.
pub(crate) fn overrides(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What comes of the scenario `text` with seed 1.
pub(crate) fn run(text: &str, set: &[(&str, &str)]) -> Results {
    let scenario =
        Scenario::parse(text, "here.toml", &overrides(set)).unwrap_or_else(|error| panic!("{error}"));
    SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap_or_else(|error| panic!("{error}"))
}

/// A scenario of `hosts` around one switch, each on a link of `rate` and a microsecond; `rest` has its other keys and tables.
pub(crate) fn star(hosts: u32, rate: &str, rest: &str) -> String {
    format!("topology = {{ kind = \"star\", hosts = {hosts}, rate = \"{rate}\", delay = \"1us\" }}\n{rest}")
}
