//! Every key of a scenario: what it takes, what it is when it is left out, and what it means.
//!
//! The parser refuses what is not listed here, its messages quote these lines, and the tables of
//! `docs/guide/scenario.md` are made from them, so that none of the three can disagree with another.

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

const RATE: &str = "a rate above zero, such as `\"10Gb/s\"`";
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
        key("measure", "a table", "the defaults of its keys", "What is recorded."),
        key("faults", "a table", "no faults", "What the links do to packets."),
        key("at", "a list of tables", "none", "Registers of the law that are written during the run."),
    ],
);

/// The key that all kinds of topology share.
pub static TOPOLOGY: Section = section(
    "topology",
    &[key(
        "kind",
        "`\"graph\"`, `\"star\"`, `\"dumbbell\"`, `\"tree\"`, `\"leaf-spine\"`, `\"fat-tree\"` or `\"hpcc\"`",
        "required",
        "The shape of the network.",
    )],
);

const fn topology(path: &'static str, keys: &'static [Key]) -> Section {
    Section { path, keys, also: Some(&TOPOLOGY) }
}

/// A network given link by link.
pub static GRAPH: Section = topology(
    "topology.graph",
    &[
        key("hosts", HOSTS, "required", "The hosts. Each has exactly one link."),
        key("switches", "a list of names", "`[]`", "The switches."),
        key(
            "links",
            "a list of tables",
            "required",
            "The links, both ways alike. A switch numbers its ports in the order of this list.",
        ),
    ],
);

/// One link of a graph.
pub static LINK: Section = section(
    "topology.graph.links",
    &[
        key("a", "the name of a host or switch", "required", "One end."),
        key("b", "the name of a host or switch", "required", "The other end."),
        key("rate", RATE, "required", "Its rate, in octets on the wire (preamble and gap in)."),
        key("delay", DELAY, "required", "How long a bit travels."),
    ],
);

/// Hosts around one switch.
pub static STAR: Section = topology(
    "topology.star",
    &[
        key("hosts", COUNT, "required", "How many hosts: `h0`, `h1`, …"),
        key("rate", RATE, "required", "The rate of each link."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

/// Two switches and a link between them.
pub static DUMBBELL: Section = topology(
    "topology.dumbbell",
    &[
        key("left", COUNT, "required", "How many hosts stand on the left: the first ones."),
        key("right", COUNT, "required", "How many hosts stand on the right."),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("bottleneck", RATE, "`rate`", "The rate of the link between the two switches."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

/// Senders behind leaves, one receiver at the root.
pub static TREE: Section = topology(
    "topology.tree",
    &[
        key(
            "leaves",
            "a list of whole numbers, 1 to 65535",
            "required",
            "How many senders stand behind each leaf switch.",
        ),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("uplink", RATE, "`rate`", "The rate from each leaf to the root."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

/// Two tiers.
pub static LEAF_SPINE: Section = topology(
    "topology.leaf-spine",
    &[
        key("leaves", COUNT, "required", "How many leaf switches."),
        key("spines", COUNT, "required", "How many spine switches; each leaf has a link to each."),
        key("hosts_per_leaf", COUNT, "required", "How many hosts stand behind each leaf."),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("fabric_rate", RATE, "`rate`", "The rate between leaves and spines."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

/// Three tiers: by `hosts`, by `k`, or by all of the five counts.
pub static FAT_TREE: Section = topology(
    "topology.fat-tree",
    &[
        key(
            "hosts",
            COUNT,
            "one of `hosts`, `k` or the five counts is required",
            "At least how many hosts, at full bisection; rounded up where no such tree has exactly as many.",
        ),
        key("k", "an even number, 2 to 40", "see `hosts`", "The ports of each switch: k³/4 hosts."),
        key("pods", COUNT, "see `hosts`", "How many pods."),
        key("tors_per_pod", COUNT, "see `hosts`", "How many top-of-rack switches a pod has."),
        key("aggs_per_pod", COUNT, "see `hosts`", "How many aggregation switches a pod has."),
        key(
            "cores",
            COUNT,
            "see `hosts`",
            "How many core switches there are in all: a multiple of `aggs_per_pod`.",
        ),
        key("hosts_per_tor", COUNT, "see `hosts`", "How many hosts stand behind each top-of-rack switch."),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("fabric_rate", RATE, "`rate`", "The rate between switches."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

/// A topology file of HPCC's simulator.
pub static HPCC_TOPOLOGY: Section = topology(
    "topology.hpcc",
    &[key("file", FILE, "required", "A topology file as HPCC's simulator reads it.")],
);

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
            "`\"ecmp\"` or `\"spray\"`",
            "`\"ecmp\"`",
            "How a path is chosen among those of equal cost: by a hash of the flow, or anew for each packet.",
        ),
        key("on", "a list of tables", "none", "Other values for some switches or ports."),
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
            "`true`",
            "Priority flow control: whether a switch pauses its neighbours rather than drop.",
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
            "Egress queues: one for each priority, or, as an ablation, one for each flow, served in turn.",
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
            "A port pauses its neighbour when it holds more than this times the free shared buffer.",
        ),
        key(
            "headroom",
            "`\"usual\"`, `\"exact\"`, or a size, 0B to 1GB",
            "`\"usual\"`",
            "What is kept for packets that arrive after PAUSE was sent, for each port and lossless priority. `usual`: 3 · rate · delay + two maximum frames + the PAUSE frame; `exact`: 2 · rate · delay + the same.",
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
            "How far below the threshold a port must fall before its neighbour may send again.",
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
            "The chance of a mark at `kmax`; it rises linearly from zero at `kmin`.",
        ),
        key(
            "step",
            "a size, 0B to 4GB",
            "not used",
            "Step marking, in place of the three: everything is marked above this queue length, nothing below (DCTCP).",
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
        key("cnp", "a priority, 0 to 7", "`6`", "The priority of congestion notification packets."),
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
            "eight full packets",
            "Where a queue holds more, the payload of a packet is cut off.",
        ),
        key("priority", "a priority, 0 to 7", "`7`", "The priority that the headers travel on from there."),
        key(
            "random_tail",
            "`true` or `false`",
            "`true`",
            "Whether, half of the time, the last packet of the queue is cut in place of the one that arrives.",
        ),
    ],
);

/// Other values for some switches or ports.
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

/// The NICs of the hosts.
pub static NIC: Section = Section {
    path: "nic",
    keys: &[key("on", "a list of tables", "none", "Other values for some hosts.")],
    also: Some(&NIC_EACH),
};

/// What may differ from host to host.
pub static NIC_EACH: Section = section(
    "nic",
    &[
        key(
            "model",
            "`\"ideal\"`, `\"delaying\"`, `\"srnic\"`, `\"tonic\"`, `\"cx5\"`, `\"cx6\"`, or the name of a file ending in `.toml`",
            "`\"ideal\"`",
            "The NIC's architecture. `ideal` takes no time; `delaying` returns everything that can be deferred after a random 0 to 5 µs; the others are made of parts, which `roci nic show` prints and [NICs](nics.md) explains.",
        ),
        key(
            "with",
            "a table, such as `{ context = { entries = \"all\" } }`",
            "none",
            "Other values for parts of the NIC; `roci nic show` lists their keys.",
        ),
        key("mtu", "a whole number, 1 to 4096", "`1024`", "Octets of payload in a full packet."),
        key(
            "rx_fifo",
            "a size, 16KB to 4GB",
            "unlimited",
            "The receive buffer. A NIC that it fills sends PAUSE.",
        ),
        key("rx_rate", RATE, "the link's", "How fast the NIC empties its receive buffer."),
    ],
);

/// Other values for some hosts.
pub static NIC_ON: Section = Section {
    path: "nic.on",
    keys: &[key("hosts", HOSTS, "required", "The hosts meant.")],
    also: Some(&NIC_EACH),
};

/// Reliability and congestion control.
pub static TRANSPORT: Section = section(
    "transport",
    &[
        key(
            "recovery",
            "`\"go-back-n\"`, `\"irn\"`, `\"srnic\"`, `\"reno\"`, `\"newreno\"`, `\"sack\"` or `\"ndp\"`",
            "`\"irn\"` with law `homa`, else `\"go-back-n\"`",
            "How losses are repaired. `reno`, `newreno` and `sack` are TCP's, with a congestion window in packets; a law may limit \
             what is sent besides.",
        ),
        key(
            "timeout",
            "a time; `\"0s\"`: never",
            "`\"500us\"`",
            "The local ACK timeout. It restarts on each acknowledging progress. For `irn` it is RTO_high, and \
             RTO_low, with at most three packets in flight, is 5/16 of it: `\"320us\"` gives the paper's 320 and \
             100 µs. It must exceed the round trip. `reno`, `newreno` and `sack` double it with each timeout in a row.",
        ),
        key(
            "retry",
            "a whole number, 0 to 7",
            "`7`",
            "Retransmissions without progress before a queue pair fails.",
        ),
        key(
            "rnr_retry",
            "a whole number, 0 to 7",
            "`7`",
            "Retries when the receiver is not ready; 7: for ever.",
        ),
        key("min_rnr_timer", "a time", "`\"10us\"`", "The wait that a receiver which is not ready asks for."),
        key(
            "ack_every",
            "a whole number, 1 to 65535",
            "`1`",
            "Packets for each acknowledgement; the last of a message always gets one.",
        ),
        key(
            "ring",
            "a whole number, 1 to 15",
            "`4`",
            "Segments that a queue pair generates ahead of sending.",
        ),
        key(
            "layout",
            "`\"standard\"`, `\"irn\"`, `\"srnic\"`, `\"ndp\"`, `\"homa\"`, `\"cc\"`, or a table (`cc`)",
            "`\"homa\"` with that law, else `\"standard\"` with `recovery = \"go-back-n\"`, `\"srnic\"` and `\"ndp\"` with those, else `\"irn\"`",
            "Which headers the packets carry; their octets are charged on the wire.",
        ),
        key(
            "max_rd_atomic",
            "a whole number, 1 to 255",
            "`16`",
            "READs and atomics that may be outstanding on a queue pair.",
        ),
        key(
            "max_in_flight",
            "a whole number, 0 to 8388608",
            "`0`: no bound of its own",
            "Packets that may be unacknowledged whatever the law says (IRN's BDP-FC).",
        ),
        key(
            "initial_window",
            "a whole number, 1 to 2048",
            "`10`",
            "The first congestion window of `reno`, `newreno` and `sack`, in packets.",
        ),
        key(
            "control",
            "the name of a law, or a table",
            "`{ law = \"dcqcn\", preset = \"sigcomm15\" }`; `\"ndp\"` with that `recovery`",
            "The congestion control.",
        ),
    ],
);

/// The CC header: at most 16 words of four octets.
pub static LAYOUT: Section = section(
    "transport.layout",
    &[
        key("time", "`true` or `false`", "`true`", "Whether it carries hardware time (2 words)."),
        key("int", "`true` or `false`", "`false`", "Whether it has room for telemetry (11 words)."),
        key("words", "a whole number, 0 to 16", "`0`", "Words of the law's own."),
    ],
);

/// Congestion control; the law's own keys come besides.
pub static CONTROL: Section = section(
    "transport.control",
    &[
        key("law", "the name of a law, such as `\"dcqcn\"` or `\"none\"`", "`\"dcqcn\"`", "The law."),
        key(
            "preset",
            "the name of a preset of the law",
            "the law's first",
            "Where the law's other keys take their values from.",
        ),
        key(
            "elf",
            "a file, from the scenario's folder or where the command runs, or an image that comes with Rocinante, such as `\"firmware/dcqcn.elf\"`",
            "required by law `\"program\"`",
            "The program's image. `[[at]]` may write it: another program takes the place of the one that runs.",
        ),
        key(
            "context",
            "a table of the program's own names, such as `{ total_credit = \"64KiB\" }`",
            "zeros",
            "Words of a new queue pair's context in law `\"program\"`: numbers, octets, rates (kept in kb/s) or times (kept in ns).",
        ),
        key(
            "fallback",
            "`\"dcqcn\"`, `\"none\"`, `\"timely\"`, `\"dctcp\"`, `\"swift\"` or `\"nscc\"`, or a table like `control`",
            "`\"dcqcn\"`",
            "The law that takes over a queue pair from a program that traps, takes too many cycles or answers nonsense.",
        ),
        key(
            "check",
            "`true` or `false`",
            "`true`",
            "Whether a program must be proved to answer each event within `cycles`; `false` stops it when it does not.",
        ),
        key(
            "cycles",
            "1 to 1000000000",
            "`10000`",
            "The most clock cycles of a program's core that an event may take.",
        ),
        key(
            "csr",
            "1 to 1000",
            "what the NIC's cores take (`cores.word`, `cores.register`), else `2`",
            "Clock cycles of an instruction that reads or writes one of a program's registers.",
        ),
        key(
            "executor",
            "`\"translated\"` or `\"interpreted\"`",
            "`\"translated\"`",
            "Whether a program is translated to host code. No result depends on it.",
        ),
    ],
);

/// What all kinds of traffic share.
pub static TRAFFIC: Section = section(
    "traffic",
    &[
        key(
            "kind",
            "`\"flows\"`, `\"closed-loop\"`, `\"incast\"`, `\"permutation\"`, `\"all-to-all\"`, `\"poisson\"`, `\"trigger\"` or `\"hpcc\"`",
            "required",
            "The pattern of the traffic.",
        ),
        key(
            "op",
            "`\"send\"`, `\"write\"`, `\"read\"`, `\"fetch-add\"` or `\"compare-swap\"`",
            "`\"write\"`",
            "What each message does.",
        ),
        key("priority", "a priority, 0 to 7", "`switch.classes.data`", "The priority of its data."),
        key("control", "as `transport.control`", "`transport.control`", "Its congestion control."),
    ],
);

const fn traffic(path: &'static str, keys: &'static [Key]) -> Section {
    Section { path, keys, also: Some(&TRAFFIC) }
}

/// Flows listed one by one.
pub static FLOWS: Section = traffic(
    "traffic.flows",
    &[key(
        "flows",
        "a list of tables",
        "required",
        "The flows. Each has its own connected queue pair. `op`, `priority` and `control` beside them hold for those \
         that do not say otherwise.",
    )],
);

/// One flow.
pub static FLOW: Section = section(
    "traffic.flows.flows",
    &[
        key("name", "a string of its own", "`<traffic index>.<n>`", "Its name in results."),
        key("src", HOST, "required", "Who posts it."),
        key("dst", HOST, "required", "The other end. Payload of a `read` travels from here to `src`."),
        key(
            "op",
            "`\"send\"`, `\"write\"`, `\"read\"`, `\"fetch-add\"` or `\"compare-swap\"`",
            "the table's, else `\"write\"`",
            "What it does.",
        ),
        key("size", SIZE, "required; atomics have 8B", "The length of its message."),
        key("start", DELAY, "`\"0s\"`", "When it is posted."),
        key(
            "priority",
            "a priority, 0 to 7",
            "the table's, else `switch.classes.data`",
            "The priority of its data.",
        ),
        key(
            "control",
            "as `transport.control`",
            "the table's, else `transport.control`",
            "Its congestion control.",
        ),
    ],
);

/// Queue pairs that keep a number of messages outstanding.
pub static CLOSED_LOOP: Section = traffic(
    "traffic.closed-loop",
    &[
        key(
            "pairs",
            "a list of pairs of hosts, such as `[[\"h0\", \"h1\"]]`",
            "`pairs`, or `src` and `dst`, is required",
            "Who posts to whom.",
        ),
        key("src", HOST, "see `pairs`", "Who posts."),
        key("dst", HOST, "see `pairs`", "The other end."),
        key("qps", "a whole number, 1 to 1000000", "`1`", "Queue pairs for each pair of hosts."),
        key("message", SIZE, "required; atomics have 8B", "The length of a message."),
        key("depth", "a whole number, 1 to 32768", "`1`", "Messages outstanding on each queue pair."),
        key("count", "a whole number, at least 1", "until `stop`", "Messages for each queue pair."),
        key("start", DELAY, "`\"0s\"`", "When the first are posted."),
    ],
);

/// Many send to one.
pub static INCAST: Section = traffic(
    "traffic.incast",
    &[
        key("senders", COUNT, "required", "How many hosts send, drawn anew for each incast."),
        key("size", SIZE, "required", "What each sends."),
        key("receiver", HOST, "drawn for each incast with `load`, else the first host", "Who receives."),
        key("start", DELAY, "`\"0s\"`", "When the first incast begins, or random ones may begin."),
        key("every", "a time above zero", "once", "The time from one incast to the next."),
        key(
            "load",
            LOAD,
            "once",
            "Incasts at random times, so often that they offer this share of the sum of the host link rates.",
        ),
        key("until", "a time above zero", "until `stop`", "No incast begins at or after this."),
    ],
);

/// Each host sends to one other.
pub static PERMUTATION: Section = traffic(
    "traffic.permutation",
    &[
        key("size", SIZE, "required", "What each host sends to its receiver."),
        key("start", DELAY, "`\"0s\"`", "When all begin."),
    ],
);

/// Each host sends to each other.
pub static ALL_TO_ALL: Section = traffic(
    "traffic.all-to-all",
    &[
        key("size", SIZE, "required", "What each host sends to each other."),
        key("start", DELAY, "`\"0s\"`", "When all begin."),
    ],
);

/// Flows of random size at random times between random hosts.
pub static POISSON: Section = traffic(
    "traffic.poisson",
    &[
        key("sizes", "the name of a distribution, or a file", "required", "How long the flows are."),
        key("load", LOAD, "required", "Payload octets offered, over the sum of the host link rates."),
        key("start", DELAY, "`\"0s\"`", "No flow begins before this."),
        key("until", "a time above zero", "until `stop`", "No flow begins at or after this."),
    ],
);

/// Bursts that all hosts send at once, at random times.
pub static TRIGGER: Section = traffic(
    "traffic.trigger",
    &[
        key("hosts", HOSTS, "required", "Who sends at each trigger."),
        key("receiver", HOST, "required", "Who receives."),
        key("size", SIZE, "required", "What each host sends at each trigger."),
        key(
            "rate",
            "triggers per second, above 0 and at most 4294967295",
            "required",
            "How many triggers come, on average.",
        ),
        key("start", DELAY, "`\"0s\"`", "No trigger comes before this."),
        key("until", "a time above zero", "until `stop`", "No trigger comes at or after this."),
    ],
);

/// A flow file of HPCC's simulator.
pub static HPCC_TRAFFIC: Section = section(
    "traffic.hpcc",
    &[
        key("kind", "`\"hpcc\"`", "required", "The pattern of the traffic."),
        key("file", FILE, "required", "A flow file as HPCC's simulator reads it."),
        key("op", "`\"send\"`, `\"write\"` or `\"read\"`", "`\"write\"`", "What each message does."),
        key("control", "as `transport.control`", "`transport.control`", "Its congestion control."),
    ],
);

/// What is recorded.
pub static MEASURE: Section = section(
    "measure",
    &[
        key(
            "sample",
            "a time; `\"0s\"`: no series",
            "`\"100us\"`",
            "The interval of the time series. It doubles when a series grows long.",
        ),
        key(
            "pcap",
            "a list of names of hosts and switches",
            "`[]`",
            "Whose packets are captured into `capture.pcapng`.",
        ),
    ],
);

/// What the links do to packets.
pub static FAULTS: Section = Section {
    path: "faults",
    keys: &[key("on", "a list of tables", "none", "Faults of some links, in place of the common ones.")],
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
            "The chance that a packet arrives damaged; the receiver's ICRC check drops it.",
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
            "The receiving end keeps the sender paused, for as long as the fault is in force.",
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
        key("by", DELAY, "`\"10us\"`", "How long at most; the time is drawn uniformly."),
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
        key("link", "`\"a-b\"` for both ways, `\"a>b\"` for one way", "required", "The link meant."),
        key("from", DELAY, "`\"0s\"`", "When the faults begin."),
        key("until", "a time above zero", "never", "When they end."),
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

/// A register that is written during the run.
pub static AT: Section = section(
    "at",
    &[
        key("time", DELAY, "required", "When."),
        key(
            "set",
            "a table, such as `{ \"transport.control.g\" = \"1/128\" }`",
            "required",
            "Which registers, and their new values.",
        ),
        key("flow", "the name of a flow", "all flows", "Whose."),
    ],
);

/// All of them, in the order of the guide.
pub static SECTIONS: [&Section; 41] = [
    &TOP,
    &TOPOLOGY,
    &GRAPH,
    &LINK,
    &STAR,
    &DUMBBELL,
    &TREE,
    &LEAF_SPINE,
    &FAT_TREE,
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
    &LAYOUT,
    &CONTROL,
    &TRAFFIC,
    &FLOWS,
    &FLOW,
    &CLOSED_LOOP,
    &INCAST,
    &PERMUTATION,
    &ALL_TO_ALL,
    &POISSON,
    &TRIGGER,
    &HPCC_TRAFFIC,
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
