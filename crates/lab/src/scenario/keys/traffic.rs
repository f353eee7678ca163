//! The keys of `[[traffic]]`.

use super::{COUNT, DELAY, FILE, HOST, HOSTS, Key, LOAD, SIZE, Section, key, section};

const RECEIVER: &str = "Who receives. It posts the messages itself where `op` is `read`.";

const TRAFFIC_NAME: Key = key(
    "name",
    "a string of its own, with a letter in it",
    "its index, counted from 0",
    "Its name where results tell the tables apart. Its flows keep theirs.",
);

/// What all kinds of traffic share.
pub static TRAFFIC: Section = section(
    "traffic",
    &[
        key(
            "kind",
            "`\"flows\"`, `\"closed-loop\"`, `\"collective\"`, `\"goal\"`, `\"rpc\"`, `\"incast\"`, `\"permutation\"`, `\"all-to-all\"`, `\"poisson\"`, `\"trigger\"` or `\"hpcc\"`",
            "required",
            "The pattern of the traffic.",
        ),
        TRAFFIC_NAME,
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

/// Requests and responses.
pub static RPC: Section = section(
    "traffic.rpc",
    &[
        key("kind", "`\"rpc\"`", "required", "The pattern of the traffic."),
        TRAFFIC_NAME,
        key(
            "server",
            HOST,
            "required",
            "Who answers. It is a machine with a cache and threads, as `[machine]` says.",
        ),
        key("clients", HOSTS, "all other hosts", "Who asks. What clients do takes no time."),
        key(
            "threads",
            COUNT,
            "1",
            "Hardware threads of the server that answer. Tables with one server take them in their order; each thread has its own receive \
             buffers.",
        ),
        key(
            "connections",
            COUNT,
            "as many as `threads`",
            "Connections of each client, each with its own queue pair. The n-th of the table belongs to the n-th thread, and so \
             on round.",
        ),
        key(
            "request",
            "a size, 1B to 64MiB, such as `\"7.9MB\"`",
            "required",
            "The payload of a request. One that fills more than a packet is several SENDs, each into its own buffer, from which the \
             thread copies it together.",
        ),
        key(
            "response",
            "a size, 1B to a packet, such as `\"32B\"`",
            "`\"32B\"`",
            "The payload of a response.",
        ),
        key("window", COUNT, "8", "Requests that each connection keeps unanswered (eRPC has 8)."),
        key("count", "a whole number, at least 1", "until `stop`", "Requests of each connection."),
        key(
            "processing",
            "a time",
            "`\"0s\"`",
            "How long a thread is busy with a request besides reading it.",
        ),
        key(
            "overhead",
            "a time",
            "`\"50ns\"`",
            "How long it is busy with each packet of a request besides what it waits for memory.",
        ),
        key(
            "credits",
            "`\"none\"`, `\"session\"`, `\"basic\"` or `\"loosened\"`",
            "`\"none\"`",
            "What bounds the packets of a connection that were sent and not consumed, besides `window`: nothing but receive buffers; a number \
             of packets, as in eRPC; its share of the server's cache; or that and δ, which is CARC.",
        ),
        key("session_credits", COUNT, "32", "Packets of a connection where `credits = \"session\"`."),
        key(
            "credits_cache",
            "a size, 4KiB to 1TiB",
            "`machine.cache`",
            "The cache that shares are computed for: what a client believes of the server.",
        ),
        key(
            "rx_ring",
            COUNT,
            "4096",
            "The most receive buffers of a thread (eRPC has 4096). With credits there are as many as these need, and more only once \
             few are left.",
        ),
        key("warmup", DELAY, "`\"0s\"`", "What ends sooner than this after `start` is counted nowhere."),
        key("start", DELAY, "`\"0s\"`", "When the first requests are posted."),
        key(
            "priority",
            "a priority, 0 to 7",
            "`switch.classes.data`",
            "The priority of requests and responses.",
        ),
        key("control", "as `transport.control`", "`transport.control`", "Their congestion control."),
    ],
);

/// Collective operations.
pub static COLLECTIVE: Section = section(
    "traffic.collective",
    &[
        key("kind", "`\"collective\"`", "required", "The pattern of the traffic."),
        TRAFFIC_NAME,
        key(
            "operation",
            "`\"all-reduce\"`, `\"reduce-scatter\"`, `\"all-gather\"`, `\"all-to-all\"`, `\"broadcast\"`, `\"reduce\"`, `\"gather\"` or `\"scatter\"`",
            "required",
            "What it does.",
        ),
        key(
            "algorithm",
            "`\"ring\"`, `\"halving-doubling\"`, `\"tree\"`, `\"direct\"`, `\"pxn\"` or `\"auto\"`",
            "`\"ring\"`; of `all-to-all`, `gather` and `scatter` `\"direct\"`",
            "How: `all-reduce` takes the first three, `reduce-scatter` and `all-gather` `ring`, `halving-doubling` and `direct`, `all-to-all` \
             `direct` and `pxn`, `broadcast` and `reduce` only `ring`, and `gather` and `scatter` only `direct`. `auto` takes the one that takes least by a model of latency and bandwidth.",
        ),
        key(
            "algorithms",
            "a list of algorithms, such as `[\"ring\", \"tree\"]`",
            "all that the operation has",
            "What `algorithm = \"auto\"` chooses among.",
        ),
        key(
            "root",
            "a rank, counted from 0",
            "`0`",
            "From which rank data come, or to which: of `broadcast`, `reduce`, `gather` and `scatter`.",
        ),
        key("hosts", HOSTS, "all hosts, in their order", "The host of each rank, in the order of ranks."),
        key(
            "placement",
            "`\"listed\"` or `\"random\"`",
            "`\"listed\"`",
            "Whether ranks are dealt to `hosts` in order, or at random by the seed.",
        ),
        key(
            "ranks_per_server",
            "a whole number, 1 to 65535",
            "what the topology says of a server, with all `hosts` in order; else `1`",
            "So many ranks in a row share a server: the rings and trees of different `channels` enter and leave it by different ones, and `pxn` \
             goes over its other ranks. For `tree`, `pxn`, and `ring` but of `broadcast` and `reduce`.",
        ),
        key(
            "size",
            "a size, 1B to 1TiB, such as `\"64MB\"`",
            "required, but with `matrix`",
            "The data of each rank, as NCCL's tests count: what goes in, and of an `all-gather` what comes out; of a `gather` what comes out at the root.",
        ),
        key(
            "matrix",
            "a list of lists of sizes, or the path of a CSV file, from the scenario's folder",
            "all alike, by `size`",
            "Of an `all-to-all` what each rank has for each: a row for each rank that sends, with a size for each that receives. 0 is no message.",
        ),
        key(
            "skew",
            "a number, 0 to 10, such as `1.2`",
            "all alike",
            "Has the `size` of each rank of an `all-to-all` dealt out in tokens, each to a rank that the seed draws by Zipf's law with this exponent: the k-th most popular one in \
             proportion to 1 over k to the power of it. Which ranks are popular the seed draws too.",
        ),
        key("tokens", "a whole number, 1 to 1048576", "`4096`", "Into how many tokens, with `skew`."),
        key(
            "channels",
            "a whole number, 1 to 256",
            "`1`",
            "Parallel copies, each with queue pairs of its own and its part of the data.",
        ),
        key(
            "chunks",
            "a whole number, 1 to 16384",
            "`1`",
            "Into how many parts the data of each channel are cut, each of which goes on as soon as it has come: a pipeline.",
        ),
        key("iterations", "a whole number, 1 to 1000000", "`1`", "How often."),
        key(
            "gap",
            DELAY,
            "`\"0s\"`",
            "How long all ranks compute between one iteration, when the last rank is done, and the next.",
        ),
        key("start", DELAY, "`\"0s\"`", "When the first begins."),
        key("priority", "a priority, 0 to 7", "`switch.classes.data`", "The priority of its data."),
        key("control", "as `transport.control`", "`transport.control`", "Its congestion control."),
    ],
);

/// Schedules of applications.
pub static GOAL: Section = section(
    "traffic.goal",
    &[
        key("kind", "`\"goal\"`", "required", "The pattern of the traffic."),
        TRAFFIC_NAME,
        key("file", FILE, "required", "A GOAL schedule, as text or as `txt2bin` writes it."),
        key(
            "hosts",
            HOSTS,
            "as many hosts as there are ranks, in their order",
            "The host of each rank, in the order of ranks.",
        ),
        key(
            "placement",
            "`\"listed\"` or `\"random\"`",
            "`\"listed\"`",
            "Whether ranks are dealt to `hosts` in order, or at random by the seed.",
        ),
        key(
            "calc_unit",
            "a time, such as `\"1ns\"`",
            "`\"1ns\"`",
            "The time of one unit of `calc`. `\"0s\"` leaves computation out: then nothing is waited for but messages.",
        ),
        key(
            "overhead",
            "a time, such as `\"200ns\"`",
            "`\"0s\"`",
            "How long a CPU of a rank is busy with each message that it sends, and with each that it receives (`o` of LogGOPS).",
        ),
        key(
            "overhead_per_octet",
            "a time, such as `\"0.1ns\"`",
            "`\"0s\"`",
            "How much longer it is busy with a message for each octet but the first, as where it copies it (`O` of LogGOPS). Times are whole picoseconds.",
        ),
        key(
            "eager",
            "a size, such as `\"64KiB\"`",
            "`65535`",
            "A `send` of at most so much is done as soon as it is posted, a longer one when it has been acknowledged. The default is LogGOPSim's \
             `S`.",
        ),
        key(
            "queue_pairs",
            "`\"pair\"` or `\"tag\"`",
            "`\"pair\"`",
            "What has a queue pair of its own, on which messages go one behind the other: each pair of ranks that send, or each of their tags.",
        ),
        key(
            "algorithm",
            "an algorithm of `kind = \"collective\"` or `\"auto\"`, or a table of one for each operation, such as `{ all-reduce = \"tree\" }`",
            "`\"ring\"`; of `all-to-all`, `gather` and `scatter` `\"direct\"`",
            "How collectives are done. One for all holds for the operations that have it; `pxn` among ranks of which each has its own server is `direct`. `auto` takes for each size of each group the one that takes least by a model of latency and bandwidth.",
        ),
        key(
            "algorithms",
            "a list of algorithms, such as `[\"ring\", \"tree\"]`",
            "all that an operation has",
            "What `auto` chooses among; for an operation that has none of them, among all of its own.",
        ),
        key(
            "channels",
            "a whole number, 1 to 256",
            "1; of rings and trees `ranks_per_server`",
            "Parallel copies of each collective, as of `kind = \"collective\"`.",
        ),
        key(
            "chunks",
            "a whole number, 1 to 16384",
            "parts of 512KiB of broadcasts, reduces and trees, else 1",
            "Into how many parts the data of each channel are cut that go their way by themselves; fewer where there are fewer octets.",
        ),
        key(
            "ranks_per_server",
            COUNT,
            "as many as share a server of `topology.kind = \"rails\"` where ranks have the first hosts in order, else 1",
            "So many ranks in a row share a server, of the schedule and not of a group: of one whose ranks stand on each server alike, collectives know it.",
        ),
        key(
            "replays",
            "true or false",
            "`true`",
            "Whether it is found out how long the schedule takes where less is in its way ([`replays`](output.md#goals)). That takes about as long as the run where messages have a packet each, and next to nothing where they are long; Ctrl-C ends it then, and all other results are kept.",
        ),
        key("start", DELAY, "`\"0s\"`", "When the ranks begin."),
        key("priority", "a priority, 0 to 7", "`switch.classes.data`", "The priority of its data."),
        key("control", "as `transport.control`", "`transport.control`", "Its congestion control."),
    ],
);

/// The algorithms of a schedule's collectives.
pub static GOAL_ALGORITHM: Section = section(
    "traffic.goal.algorithm",
    &[
        key(
            "all-reduce",
            "`\"ring\"`, `\"halving-doubling\"`, `\"tree\"` or `\"auto\"`",
            "`\"ring\"`",
            "That of all-reduces.",
        ),
        key(
            "reduce-scatter",
            "`\"ring\"`, `\"halving-doubling\"`, `\"direct\"` or `\"auto\"`",
            "`\"ring\"`",
            "That of reduce-scatters.",
        ),
        key(
            "all-gather",
            "`\"ring\"`, `\"halving-doubling\"`, `\"direct\"` or `\"auto\"`",
            "`\"ring\"`",
            "That of all-gathers.",
        ),
        key("all-to-all", "`\"direct\"`, `\"pxn\"` or `\"auto\"`", "`\"direct\"`", "That of all-to-alls."),
        key("broadcast", "`\"ring\"` or `\"auto\"`", "`\"ring\"`", "That of broadcasts."),
        key("reduce", "`\"ring\"` or `\"auto\"`", "`\"ring\"`", "That of reduces."),
        key("gather", "`\"direct\"` or `\"auto\"`", "`\"direct\"`", "That of gathers."),
        key("scatter", "`\"direct\"` or `\"auto\"`", "`\"direct\"`", "That of scatters."),
    ],
);

/// Many send to one.
pub static INCAST: Section = traffic(
    "traffic.incast",
    &[
        key("senders", COUNT, "required", "How many hosts send, drawn anew for each incast."),
        key("size", SIZE, "required", "What each sends."),
        key("receiver", HOST, "drawn for each incast with `load`, else the first host", RECEIVER),
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
        key(
            "sizes",
            "the name of a distribution such as `\"web-search\"`, a file, or one size such as `\"64KB\"`",
            "required",
            "How long the flows are. The distributions are web-search (web-search-distribution), fb-hdp (fb-hdp-distribution, facebook-hadoop), \
             ali-storage-2019 (ali-storage), cache-follower, solar-2022 (solar), data-mining (mining), web-server, search, \
             google-rpc-2008 (google-rpc), fb-hdp-2015, homa-w1 (w1), homa-w2 (w2), homa-w3 (w3), homa-w4 (w4), homa-w5 (w5), with other names \
             for the same in brackets. Capitals, dashes and underscores make no difference: `websearch` and `WebSearch` are web-search. What has a \
             dot or a slash is a file, whose lines are a size and the percentage of flows that are no longer.",
        ),
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
        key("receiver", HOST, "required", RECEIVER),
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
        TRAFFIC_NAME,
        key("file", FILE, "required", "A flow file as HPCC's simulator reads it."),
        key("op", "`\"send\"`, `\"write\"` or `\"read\"`", "`\"write\"`", "What each message does."),
        key("control", "as `transport.control`", "`transport.control`", "Its congestion control."),
    ],
);
