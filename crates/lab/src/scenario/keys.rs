//! Every key of a scenario: what it takes, what it is when it is left out, and what it means.
//!
//! The parser refuses what is not listed here, its messages quote these lines, and the tables of
//! `docs/guide/scenario.md` are made from them, so that none of the three can disagree with another.

mod faults;
mod machine;
mod nic;
mod switch;
mod topology;
mod traffic;
mod transport;

pub use faults::*;
pub use machine::*;
pub use nic::*;
pub use switch::*;
pub use topology::*;
pub use traffic::*;
pub use transport::*;

/// A table of a scenario and the keys that it may have.
#[derive(Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name, such as `switch.pfc`; one kind of topology or traffic is `topology.star`. Empty for the top level.
    pub path: &'static str,
    /// Its keys, in the order of the guide.
    pub keys: &'static [Key],
    /// The section whose keys it may have besides its own.
    pub also: Option<&'static Section>,
}

/// A key of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes: unit and range.
    pub takes: &'static str,
    /// What holds when it is left out; `required` where it must not be.
    pub default: &'static str,
    /// What it means.
    pub means: &'static str,
}

impl Section {
    /// The key `name`, if the section has it.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys
            .iter()
            .find(|key| key.name == name)
            .or_else(|| self.also.and_then(|section| section.key(name)))
    }

    /// The names of its keys.
    pub fn names(&self) -> Vec<&'static str> {
        let own = self.keys.iter().map(|key| key.name);
        own.chain(self.also.into_iter().flat_map(|section| section.names())).collect()
    }
}

const fn key(name: &'static str, takes: &'static str, default: &'static str, means: &'static str) -> Key {
    Key { name, takes, default, means }
}

const fn section(path: &'static str, keys: &'static [Key]) -> Section {
    Section { path, keys, also: None }
}

const RATE: &str = "a rate above zero and up to 100Tb/s, such as `\"10Gb/s\"`";
const DELAY: &str = "a time, such as `\"1us\"`";
const COUNT: &str = "a whole number, 1 to 65535";
const SIZE: &str = "a size, 1B to 2GiB, such as `\"38MB\"`";
const HOST: &str = "the name of a host";
const HOSTS: &str = "a list of names of hosts";
const CHANCE: &str = "a share, 0 to 1, such as `0.01`, `\"1%\"` or `\"1/256\"`";
const LOAD: &str = "a share above 0 and at most 1, such as `0.3` or `\"30%\"`";
const FILE: &str = "the path of a file, from the scenario's folder";
const LINK_DELAY: &str = "How long a bit travels on each link.";

/// The top level.
pub static TOP: Section = section(
    "",
    &[
        key(
            "name",
            "a string that can name a folder",
            "the file's name",
            "The name in tables and results, and of the folder `out/<name>`.",
        ),
        key("seed", "a whole number, 0 to 2^63-1", "1", "What all randomness of the run is drawn from."),
        key(
            "stop",
            "a time above zero, at most 4503s, such as `\"300ms\"`",
            "when all traffic is done",
            "When the run ends at the latest.",
        ),
        key(
            "start_jitter",
            DELAY,
            "one packet time",
            "Flows that start at one instant start up to this much later, each by its own draw; `\"0s\"` turns it off.",
        ),
        key("topology", "a table", "required", "The network."),
        key("switch", "a table", "the defaults of its keys", "How switches buffer, mark, pause and route."),
        key("nic", "a table", "the defaults of its keys", "The NICs of the hosts."),
        key("transport", "a table", "the defaults of its keys", "Reliability and congestion control."),
        key("traffic", "a list of tables", "required", "What the hosts send."),
        key("application", "a table", "the defaults of its keys", "What takes the SENDs that arrive."),
        key(
            "machine",
            "a table",
            "the defaults of its keys",
            "The hosts that answer requests, from their caches to their cores.",
        ),
        key("measure", "a table", "the defaults of its keys", "What is recorded."),
        key("faults", "a table", "no faults", "What the links do to packets."),
        key(
            "at",
            "a list of tables",
            "none",
            "Registers of laws and thresholds of switches that are written during the run.",
        ),
    ],
);

/// All of them, in the order of the guide.
pub static SECTIONS: [&Section; 50] = [
    &TOP,
    &TOPOLOGY,
    &GRAPH,
    &LINK,
    &STAR,
    &DUMBBELL,
    &TREE,
    &LEAF_SPINE,
    &FAT_TREE,
    &RAILS,
    &HPCC_TOPOLOGY,
    &SWITCH,
    &PFC,
    &ECN,
    &CLASSES,
    &TRIMMING,
    &SWITCH_ON,
    &NIC,
    &NIC_ON,
    &TRANSPORT,
    &PATHS,
    &TRANSPORT_ON,
    &LAYOUT,
    &CONTROL,
    &TRAFFIC,
    &FLOWS,
    &FLOW,
    &CLOSED_LOOP,
    &COLLECTIVE,
    &GOAL,
    &GOAL_ALGORITHM,
    &RPC,
    &INCAST,
    &PERMUTATION,
    &ALL_TO_ALL,
    &POISSON,
    &TRIGGER,
    &HPCC_TRAFFIC,
    &APPLICATION,
    &MACHINE,
    &MEASURE,
    &FAULTS,
    &LOSS,
    &REORDER,
    &EXTRA_DELAY,
    &FLAP,
    &PAUSE_STORM,
    &FAULTS_ON,
    &CNP,
    &AT,
];
