//! The keys of `[measure]`, `[faults]` and `[[at]]`.

use super::{CHANCE, DELAY, RATE, Section, key, section};

/// What is recorded.
pub static MEASURE: Section = section(
    "measure",
    &[
        key(
            "sample",
            "a time; `\"0s\"`: no series",
            "`\"100us\"`",
            "The interval of the time series. It doubles each time that half a million readings have gathered, and stderr says so.",
        ),
        key(
            "pcap",
            "a list of names of hosts and switches",
            "`[]`",
            "Whose packets are captured into `capture.pcapng`.",
        ),
        key(
            "receivers",
            "true or false",
            "`false`",
            "Whether the time series holds the words of programs' contexts at receivers too, as `receiver.context.<name>`.",
        ),
        key(
            "series_csv",
            "true or false",
            "`false`",
            "Whether the time series is written as `series.csv` too, for tools that read no Parquet.",
        ),
        key(
            "timeline",
            "true or false",
            "`false`",
            "Whether what happened when is written as [`timeline.json`](output.md#timelinejson), for Perfetto.",
        ),
        key(
            "priorities",
            "true or false",
            "`true` where several are known to be in use",
            "Whether ports count by priority, for [`priorities.csv`](output.md#prioritiescsv). What programs set by `setPriority` is not known before a run.",
        ),
    ],
);

/// What the links do to packets.
pub static FAULTS: Section = Section {
    path: "faults",
    keys: &[
        key(
            "on",
            "a list of tables",
            "none",
            "Faults of some links, in place of the common ones, or of some switches.",
        ),
        key(
            "detect",
            "a time, or `\"never\"`",
            "`\"1ms\"`, but for links that `flap`",
            "How long a link or a switch must have been down until all switches route around it, and up again until they use it. What is down as the run begins they avoid from the start. Links that `flap` are routed around only where this is given.",
        ),
        key(
            "detect_local",
            "a time, such as `\"1us\"`",
            "`\"10us\"` with `switch.routing` `\"adaptive\"` or `\"flowlet\"`, else `detect`",
            "The same until the switches at the ends of a link leave it, and neighbours those to a switch that failed, where they have another way of equal cost; the others follow after `detect`.",
        ),
    ],
    also: Some(&FAULTS_EACH),
};

/// What may differ from link to link.
pub static FAULTS_EACH: Section = section(
    "faults",
    &[
        key("loss", "a share, 0 to 1, or a table", "`0`", "The chance that a packet is lost on a link."),
        key(
            "corrupt",
            CHANCE,
            "`0`",
            "The chance that a packet arrives damaged where no frame check sees it, as in a switch's memory; the receiver's ICRC check drops it. Bit errors of a link, which the next switch drops, are `loss` or `ber`.",
        ),
        key(
            "ber",
            "a number, 0 to 0.5, such as `1e-9`",
            "`0`",
            "The chance that a bit arrives wrong. A packet with such a bit is lost, as its frame check tells: the longer, the more often. It is what is left behind a link's error correction, each bit by itself.",
        ),
        key("duplicate", CHANCE, "`0`", "The chance that a packet arrives twice."),
        key(
            "reorder",
            "a share, 0 to 1, or a table",
            "`0`",
            "The chance that a packet is held back while others overtake it.",
        ),
        key("delay", "a time, or a table", "`\"0s\"`", "How much later a packet arrives."),
        key("flap", "a table", "none", "A link that goes down and comes up again."),
        key(
            "pause_storm",
            "`true`, `false`, or a table",
            "`false`",
            "The receiving end keeps the sender paused, for as long as the fault is in force, also a switch whose `pfc` is `false`.",
        ),
    ],
);

/// Losses in bursts.
pub static LOSS: Section = section(
    "faults.loss",
    &[
        key("to_bad", CHANCE, "required", "The chance, at each packet, that a good link turns bad."),
        key("to_good", CHANCE, "required", "The chance, at each packet, that a bad link turns good."),
        key("good", CHANCE, "`0`", "The chance of a loss while the link is good."),
        key("bad", CHANCE, "`1`", "The chance of a loss while the link is bad."),
    ],
);

/// Reordering.
pub static REORDER: Section = section(
    "faults.reorder",
    &[
        key("share", CHANCE, "required", "The chance that a packet is held back."),
        key("by", DELAY, "`\"10us\"`", "How long it is held back."),
    ],
);

/// Delay.
pub static EXTRA_DELAY: Section = section(
    "faults.delay",
    &[
        key("min", DELAY, "`\"0s\"`", "The least."),
        key(
            "max",
            DELAY,
            "required",
            "The most; the delay is drawn uniformly, and packets keep their order.",
        ),
    ],
);

/// A link that flaps.
pub static FLAP: Section = section(
    "faults.flap",
    &[
        key("up", "a time above zero", "required", "How long it is up."),
        key("down", "a time above zero", "required", "How long it is down; what is sent then is lost."),
    ],
);

/// A storm of PAUSE frames.
pub static PAUSE_STORM: Section = section(
    "faults.pause_storm",
    &[key("priority", "a priority, 0 to 7", "`switch.classes.data`", "The priority that is stopped.")],
);

/// Faults of some links.
pub static FAULTS_ON: Section = Section {
    path: "faults.on",
    keys: &[
        key(
            "link",
            "`\"a-b\"` for both ways, `\"a>b\"` for one way",
            "one of `link` and `switch` is required",
            "The link meant. A `*` stands for any part of a name: `\"leaf*-spine1\"` are all links of `spine1` to leaves, `\"*-*\"` all links.",
        ),
        key(
            "switch",
            "the name of a switch, or several as in `\"spine*\"`",
            "see `link`",
            "The switch that fails, all of it: with `from`, `until`, and one of `down` and `flap`.",
        ),
        key("from", DELAY, "`\"0s\"`", "When the faults begin."),
        key("until", "a time above zero", "never", "When they end."),
        key(
            "down",
            "`true` or `false`",
            "`false`",
            "Whether the link, or the switch, is down all that time.",
        ),
        key(
            "rate",
            "a rate above zero and up to the link's own, such as `\"25Gb/s\"`",
            "the link's own",
            "The rate at which the link runs, as one that has lost lanes or came up again slower.",
        ),
        key(
            "cnp",
            "a table",
            "none",
            "A device on the link that answers with forged CNPs when a threshold is passed.",
        ),
    ],
    also: Some(&FAULTS_EACH),
};

/// Forged CNPs.
pub static CNP: Section = section(
    "faults.cnp",
    &[
        key("threshold", RATE, "required", "CNPs are forged while the link carries more than this."),
        key("window", "a time above zero", "required", "The time over which the rate is measured."),
        key("cooldown", "a time above zero", "required", "The least time between two forged CNPs."),
    ],
);

/// What is written during the run: registers of laws, and thresholds of switches.
pub static AT: Section = section(
    "at",
    &[
        key("time", DELAY, "required", "When."),
        key(
            "set",
            "a table, such as `{ \"transport.control.g\" = \"1/128\" }`",
            "required",
            "Which registers of laws and thresholds of switches, and their new values.",
        ),
        key(
            "switches",
            "a list of switches' names, in which `*` stands for any characters",
            "all switches",
            "Whose thresholds, where `set` has some of switches.",
        ),
        key(
            "flow",
            "the name of a flow, or `\"<traffic index>.<n>\"`",
            "all flows",
            "Whose register, or whose program (`elf`). A flow that there cannot be is refused; one that does not live at the time is left alone.",
        ),
        key(
            "traffic",
            "the name of a `[[traffic]]` table, or its index, such as `\"0\"`",
            "all tables",
            "Whose flows' registers or programs, those that start later included. Other tables with the same law keep theirs.",
        ),
        key(
            "networks",
            "a list of names of switches or NICs, in which `*` stands for any characters",
            "all networks",
            "Whose law or program, where [`[[transport.on]]`](#transporton) gives networks one of their own: of those that are about no other NICs.",
        ),
    ],
);
