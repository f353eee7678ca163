//! The keys of `[switch]`.

use super::{CHANCE, RATE, Section, key, section};

/// How switches buffer, mark, pause and route.
pub static SWITCH: Section = Section {
    path: "switch",
    keys: &[
        key("classes", "a table", "the defaults of its keys", "Which traffic travels on which priority."),
        key(
            "int",
            "`true` or `false`",
            "`false`; `true` where a flow runs a law that needs it",
            "Whether switches put telemetry on data packets (HPCC's INT); its octets are charged on the wire.",
        ),
        key(
            "routing",
            "`\"ecmp\"`, `\"spray\"`, `\"adaptive\"` or `\"flowlet\"`",
            "`\"ecmp\"`",
            "How a path is chosen among those of equal cost: by a hash of the flow's addresses and of a UDP port that the seed, the flow's `[[traffic]]` table and its place there decide, whatever else flows, or that packets choose (`transport.paths`); anew for each packet, by taking equal ports in turn, each round from one at random (`\"spray\"`), or the port that will have sent what waits the soonest (`\"adaptive\"`: SONiC's `packet-quality`); or anew for each flowlet, by the loads of the ports (`\"flowlet\"`: `flowlet-quality`). See [below](#routing). Packets that are sprayed, by turns or by load, overtake each other: `recovery = \"go-back-n\"` sends all behind a gap again, `\"irn\"` and `\"srnic\"` each packet that is overtaken, `\"sack\"` few, `\"ndp\"` and law `homa` none.",
        ),
        key(
            "flowlet_gap",
            "a time above zero",
            "`\"16us\"`",
            "With `routing = \"flowlet\"`: how long a flow must have been silent at a switch until its packets may take another port.",
        ),
        key(
            "flowlet_table",
            "1 to 65535",
            "`4096`",
            "With `routing = \"flowlet\"`: how many flowlets a switch remembers. Flows whose hashes fall on one place share one.",
        ),
        key(
            "wcmp",
            "`true` or `false`",
            "`false`",
            "Whether ports of equal cost have weights: what the paths through each carry to the destination's switch, at the rates that links have, where not all are alike. See [below](#weights).",
        ),
        key(
            "on",
            "a list of tables",
            "none",
            "Other values for some switches, by name or by the rate of their fastest port.",
        ),
    ],
    also: Some(&SWITCH_EACH),
};

/// What may differ from switch to switch.
pub static SWITCH_EACH: Section = section(
    "switch",
    &[
        key(
            "buffer",
            "a size, 4KB to 4GB",
            "`\"12MB\"`",
            "The packet buffer that all ports of a switch share.",
        ),
        key(
            "alpha",
            "a ratio, 1/1024 to 1024",
            "`1`",
            "Dynamic threshold of lossy queues: a packet is dropped where its egress queue holds more than this times the free shared buffer.",
        ),
        key(
            "pfc",
            "`true`, `false`, or a table",
            "`true`, with `trimming` `false`",
            "Priority flow control: whether a switch pauses its neighbours rather than drop, and stops when they pause it.",
        ),
        key(
            "ecn",
            "`true`, `false`, or a table",
            "`true`",
            "ECN: whether a switch marks packets as its queues grow.",
        ),
        key(
            "queues",
            "`\"priority\"` or `\"per-flow\"`",
            "`\"priority\"`",
            "Egress queues: one for each priority, or, as an ablation, one for each flow, served in turn. Then a packet is dropped, trimmed or marked by the length of its own flow's queue, which is also the length that telemetry tells.",
        ),
        key(
            "ets",
            "a table of percentages by priority, such as `{ 3 = 60, 0 = 40 }`, or `false`",
            "`false`: every priority is strict",
            "Enhanced transmission selection (IEEE 802.1Qaz): how the priorities listed share a port, 100 percent together. Those that are not listed go first, whichever they are, the highest of them before the others. What a priority leaves unused, or may not use as it is paused, the others have.",
        ),
        key(
            "trimming",
            "`true`, `false`, or a table",
            "`false`",
            "Whether a switch cuts a packet down to its headers rather than drop it, and forwards that first (NDP).",
        ),
    ],
);

/// Priority flow control.
pub static PFC: Section = section(
    "switch.pfc",
    &[
        key(
            "alpha",
            "a ratio, 1/1024 to 1024",
            "`\"1/8\"`",
            "A port pauses its neighbour when it holds more than this times the free shared buffer. A fixed threshold is a `reserve` as long, with 1/1024 here.",
        ),
        key(
            "rate",
            "a rate, such as `\"100Gb/s\"`",
            "every port's own",
            "The rate of the ports that `alpha` is for: it doubles for each doubling of a faster port's rate, begun or whole, up to one, as in HPCC's simulation: with `\"100Gb/s\"` 1/8 is 1/2 at 400 Gb/s.",
        ),
        key(
            "headroom",
            "`\"usual\"`, `\"exact\"`, or a size, 0B to 1GB",
            "`\"usual\"`",
            "What is kept for packets that arrive after PAUSE was sent, for each port and lossless priority. `exact`: 2 · rate · delay + two of the greatest frames of the run (MTU, headers, layout and telemetry of the longest path) + the PAUSE frame; `usual`: 3 · rate · delay + two frames of 4178 octets, or of the greatest if that is more, + the PAUSE frame. The frame that PAUSE is sent for is not among them: the shared buffer has to have room for one from each port.",
        ),
        key(
            "reserve",
            "a size, 0B to 1GB",
            "`\"0B\"`",
            "What each port and lossless priority may take before it takes of the shared buffer.",
        ),
        key(
            "resume",
            "a size, 0B to 1GB",
            "`\"3KB\"`",
            "How far below the threshold a port must fall before its neighbour may send again. It must be less than the threshold of an empty buffer.",
        ),
    ],
);

/// Marking.
pub static ECN: Section = section(
    "switch.ecn",
    &[
        key("kmin", "a size, 0B to 4GB", "`\"5KB\"`", "Below this queue length nothing is marked."),
        key("kmax", "a size, 0B to 4GB", "`\"200KB\"`", "Above this queue length everything is marked."),
        key(
            "pmax",
            CHANCE,
            "`0.01`",
            "The chance of a mark at `kmax`; it rises linearly from zero at `kmin`. It means nothing where the two are equal.",
        ),
        key(
            "step",
            "a size, 0B to 4GB",
            "not used",
            "Step marking, in place of the three: everything is marked above this queue length, nothing below (DCTCP).",
        ),
        key(
            "rate",
            "a rate, such as `\"100Gb/s\"`",
            "every port's own",
            "The rate of the ports that these lengths are for: other ports have them in proportion to their rate, as tables of thresholds by rate have it.",
        ),
        key(
            "at",
            "`\"dequeue\"` or `\"enqueue\"`",
            "`\"dequeue\"`",
            "Whether the queue is looked at when a packet leaves it or when it joins it.",
        ),
    ],
);

/// Which traffic travels on which priority.
pub static CLASSES: Section = section(
    "switch.classes",
    &[
        key("data", "a priority, 0 to 7", "`3`", "The priority of data."),
        key("ack", "a priority, 0 to 7", "that of data", "The priority of acknowledgements."),
        key(
            "cnp",
            "a priority, 0 to 7",
            "`6`; with `transport.recovery = \"ndp\"` that of trimmed headers",
            "The priority of congestion notification packets, and with `transport.recovery = \"ndp\"` of acknowledgements and pulls.",
        ),
        key(
            "pause",
            "a list of priorities, 0 to 7",
            "that of data",
            "The lossless priorities: those that PAUSE acts on.",
        ),
    ],
);

/// Packet trimming.
pub static TRIMMING: Section = section(
    "switch.trimming",
    &[
        key(
            "threshold",
            "a size, 1KB to 4GB",
            "eight of the greatest frames of the run (MTU, headers, layout and telemetry of the longest path)",
            "Where a queue holds more, the payload of a packet is cut off.",
        ),
        key(
            "headers",
            "a size, 100B to 4GB",
            "that of `threshold`; where neither is given 72KB, eight jumbograms, or eight of the greatest frames if that is more",
            "What a queue of headers, and of what else travels on their priority, holds at most.",
        ),
        key(
            "return_to_sender",
            "`true` or `false`",
            "`true`",
            "Whether a header beyond that goes back to its sender, who then knows that the packet is lost, rather than be dropped; with `recovery = \"ndp\"` alone do headers name their sender.",
        ),
        key("priority", "a priority, 0 to 7", "`7`", "The priority that the headers travel on from there."),
        key(
            "random_tail",
            "`true` or `false`",
            "`true`",
            "Whether, half of the time, the last packet of the queue is cut in place of the one that arrives.",
        ),
        key(
            "headers_per_packet",
            "0 to 255",
            "`10`",
            "How many headers, and what else travels on their priority, leave one after the other while packets of lower priorities wait: then one of those leaves. With 0 headers always go first.",
        ),
    ],
);

/// Other values for some switches, by name or by the rate of their fastest port.
pub static SWITCH_ON: Section = Section {
    path: "switch.on",
    keys: &[
        key("switches", "a list of names of switches", "one of the two is required", "The switches meant."),
        key(
            "rate",
            RATE,
            "one of the two is required",
            "The switches meant: those whose fastest link has this rate.",
        ),
    ],
    also: Some(&SWITCH_EACH),
};
