//! The keys of `[topology]`.

use super::{COUNT, DELAY, FILE, HOSTS, Key, LINK_DELAY, RATE, Section, key, section};

/// The key that all kinds of topology share.
pub static TOPOLOGY: Section = section(
    "topology",
    &[key(
        "kind",
        "`\"graph\"`, `\"star\"`, `\"dumbbell\"`, `\"tree\"`, `\"leaf-spine\"`, `\"fat-tree\"`, `\"rails\"` or `\"hpcc\"`",
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
        key("hosts", HOSTS, "required", "The hosts. One that has several links has a NIC at each."),
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
        key("hosts", "a whole number, 1 to 65534", "required", "How many hosts: `h0`, `h1`, …"),
        key("rate", RATE, "required", "The rate of each link."),
        key("delay", DELAY, "required", LINK_DELAY),
    ],
);

const HOST_DELAY: &str = "How long a bit travels on each of the hosts' links.";

/// Two switches and a link between them.
pub static DUMBBELL: Section = topology(
    "topology.dumbbell",
    &[
        key("left", COUNT, "required", "How many hosts stand on the left: the first ones."),
        key("right", COUNT, "required", "How many hosts stand on the right."),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("bottleneck", RATE, "`rate`", "The rate of the link between the two switches."),
        key("delay", DELAY, "required", HOST_DELAY),
        key("bottleneck_delay", DELAY, "`delay`", "The same on the link between the two switches."),
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
        key("delay", DELAY, "required", HOST_DELAY),
        key("uplink_delay", DELAY, "`delay`", "The same from each leaf to the root."),
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
        key("delay", DELAY, "required", HOST_DELAY),
        key("fabric_delay", DELAY, "`delay`", "The same between leaves and spines."),
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
            "How many core switches there are in all. One of this and `aggs_per_pod` is a multiple of the other: \
             aggregation switch `j` of a pod has links to the `j`-th share of the cores, or, where these are fewer, to core \
             `j` modulo `cores`.",
        ),
        key("hosts_per_tor", COUNT, "see `hosts`", "How many hosts stand behind each top-of-rack switch."),
        key("rate", RATE, "required", "The rate of the hosts' links."),
        key("fabric_rate", RATE, "`rate`", "The rate between switches."),
        key("core_rate", RATE, "`fabric_rate`", "The rate between aggregation and core switches."),
        key("delay", DELAY, "required", HOST_DELAY),
        key("fabric_delay", DELAY, "`delay`", "The same between switches."),
        key("core_delay", DELAY, "`fabric_delay`", "The same between aggregation and core switches."),
    ],
);

/// GPUs on rails, and in servers.
pub static RAILS: Section = topology(
    "topology.rails",
    &[
        key("servers", COUNT, "required", "How many servers."),
        key(
            "gpus",
            COUNT,
            "required",
            "How many GPUs each of them has; each is a host: `h0`, `h1`, … server by server.",
        ),
        key(
            "servers_per_leaf",
            COUNT,
            "`servers`",
            "How many servers share the leaves of a group, of which each rail has one.",
        ),
        key(
            "spines",
            "a whole number, 0 to 65535; 0 only with `scale_up`",
            "required",
            "How many spine switches; each leaf has a link to each.",
        ),
        key("rate", RATE, "required", "The rate of the links between GPUs and leaves."),
        key("fabric_rate", RATE, "`rate`", "The rate between leaves and spines."),
        key("delay", DELAY, "required", "How long a bit travels on each link between a GPU and a leaf."),
        key("fabric_delay", DELAY, "`delay`", "The same between leaves and spines."),
        key(
            "scale_up",
            RATE,
            "no such links",
            "The rate of a second link of each GPU, to a switch of its server, `up0`, `up1`, …, as NVLink has.",
        ),
        key("scale_up_delay", DELAY, "`delay`", "How long a bit travels there."),
    ],
);

/// A topology file of HPCC's simulator.
pub static HPCC_TOPOLOGY: Section = topology(
    "topology.hpcc",
    &[key("file", FILE, "required", "A topology file as HPCC's simulator reads it, ASTRA-sim or SimAI.")],
);
