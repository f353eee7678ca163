//! Whole scenarios at random: the keys of the guide, each with values that a designer might write, put together without regard to
//! whether they go together. What does not is refused, and that is a part of what is tested.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use roci_lab::scenario::Scenario;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Networks; `{n}` and `{m}` are small numbers, `{r}` and `{q}` rates, `{d}` and `{e}` delays.
const NETWORKS: &[&str] = &[
    "kind = \"star\", hosts = {n}, rate = {r}, delay = {d}",
    "kind = \"dumbbell\", left = {n}, right = {m}, rate = {r}, bottleneck = {q}, delay = {d}, bottleneck_delay = {e}",
    "kind = \"tree\", leaves = [{n}, {m}], rate = {r}, uplink = {q}, delay = {d}, uplink_delay = {e}",
    "kind = \"leaf-spine\", leaves = {n}, spines = {m}, hosts_per_leaf = 2, rate = {r}, fabric_rate = {q}, delay = {d}, fabric_delay = {e}",
    "kind = \"fat-tree\", k = 4, rate = {r}, delay = {d}",
    "kind = \"fat-tree\", pods = 2, tors_per_pod = 1, aggs_per_pod = {m}, cores = {m}, hosts_per_tor = {n}, rate = {r}, fabric_rate = {q}, delay = {d}, core_delay = {e}",
    "kind = \"rails\", servers = {n}, gpus = {m}, spines = 1, rate = {r}, delay = {d}",
    "kind = \"rails\", servers = {m}, gpus = {n}, spines = 2, rate = {r}, delay = {d}, scale_up = {q}, scale_up_delay = {e}",
    "kind = \"rails\", servers = 2, gpus = {m}, spines = 1, rate = {r}, delay = {d}, scale_up = \"7.2Tb/s\"",
    "kind = \"graph\", hosts = [\"a\", \"b\"], links = [{ a = \"a\", b = \"b\", rate = {r}, delay = {d} }]",
    "kind = \"graph\", hosts = [\"a\", \"b\", \"c\"], switches = [\"s\", \"t\"], links = [{ a = \"a\", b = \"s\", rate = {r}, delay = {d} }, \
     { a = \"s\", b = \"t\", rate = {q}, delay = {e} }, { a = \"t\", b = \"s\", rate = {q}, delay = {d} }, \
     { a = \"t\", b = \"b\", rate = {r}, delay = {d} }, { a = \"c\", b = \"t\", rate = {q}, delay = {e} }]",
    "kind = \"graph\", hosts = [\"a\", \"b\", \"c\"], switches = [\"s\", \"t\", \"u\"], links = [{ a = \"a\", b = \"s\", rate = {r}, delay = {d} }, \
     { a = \"b\", b = \"t\", rate = {r}, delay = {d} }, { a = \"c\", b = \"u\", rate = {r}, delay = {e} }, \
     { a = \"s\", b = \"t\", rate = {q}, delay = {e} }, { a = \"t\", b = \"u\", rate = {q}, delay = {e} }, { a = \"u\", b = \"s\", rate = {r}, delay = {d} }]",
    "kind = \"graph\", hosts = [\"a\", \"b\", \"c\"], switches = [\"s\", \"t\"], links = [{ a = \"a\", b = \"s\", rate = {r}, delay = {d} }, \
     { a = \"a\", b = \"t\", rate = {r}, delay = {d} }, { a = \"b\", b = \"s\", rate = {q}, delay = {d} }, { a = \"b\", b = \"t\", rate = {r}, delay = {e} }, \
     { a = \"c\", b = \"t\", rate = {q}, delay = {e} }, { a = \"s\", b = \"t\", rate = {r}, delay = {e} }]",
];

const RATES: &[&str] = &["100Gb/s", "10Gb/s", "25Gb/s", "40Gb/s", "400Gb/s", "800Gb/s", "1Gb/s", "10Mb/s"];
const DELAYS: &[&str] = &["1us", "0s", "5ns", "600ns", "3us", "20us", "100us", "5ms"];
const SIZES: &[&str] = &["1KB", "1B", "8B", "1024B", "1025B", "4KB", "20KB", "60KB", "200KB"];
const TIMES: &[&str] = &["0s", "1ns", "3us", "10us", "30us", "100us", "400us", "2ms", "10ms"];

/// Traffic; `{a}` to `{d}` are hosts, all of them others, `{s}` and `{l}` sizes, `{t}` and `{u}` times, `{n}` and `{m}` small numbers.
const TRAFFIC: &[&str] = &[
    "kind = \"flows\", flows = [{ src = {a}, dst = {b}, size = {s} }]",
    "kind = \"flows\", flows = [{ src = {a}, dst = {b}, size = {s} }, { src = {b}, dst = {a}, size = {l}, start = {t}, op = \"read\" }, \
     { src = {b}, dst = {a}, op = \"fetch-add\", start = {u} }]",
    "kind = \"flows\", flows = [{ src = {a}, dst = {c}, size = {s} }, { src = {b}, dst = {c}, size = {l}, start = {t}, priority = 1 }, \
     { name = \"sent\", src = {c}, dst = {a}, size = {l}, op = \"send\" }]",
    "kind = \"flows\", flows = [{ src = {a}, dst = {b}, size = {l} }, { src = {a}, dst = {b}, size = {l} }, { src = {a}, dst = {b}, size = {l} }, \
     { src = {a}, dst = {b}, size = {l} }]",
    "kind = \"closed-loop\", src = {a}, dst = {b}, message = {s}, depth = {n}, count = {m}, qps = {n}",
    "kind = \"closed-loop\", pairs = [[{a}, {b}], [{c}, {b}]], message = {s}, depth = {m}, count = 20",
    "kind = \"closed-loop\", pairs = [[{a}, {b}], [{b}, {a}]], message = {s}, depth = {m}",
    "kind = \"incast\", senders = {m}, size = {s}",
    "kind = \"incast\", senders = {n}, receiver = {a}, size = {s}, every = \"9us\", until = {u}",
    "kind = \"incast\", senders = {m}, size = {s}, load = 0.5, until = {u}",
    "kind = \"permutation\", size = {s}",
    "kind = \"all-to-all\", size = {s}",
    "kind = \"poisson\", sizes = \"20KB\", load = 0.6, until = {u}",
    "kind = \"poisson\", sizes = \"homa-w1\", load = 0.8, until = {u}",
    "kind = \"trigger\", hosts = [{b}, {c}], receiver = {a}, size = {s}, rate = 100000, until = {u}",
    "kind = \"collective\", operation = \"all-reduce\", size = {s}",
    "kind = \"collective\", operation = \"all-reduce\", algorithm = \"halving-doubling\", size = {s}, iterations = {m}",
    "kind = \"collective\", operation = \"all-reduce\", algorithm = \"tree\", size = {s}, chunks = {n}, channels = {m}",
    "kind = \"collective\", operation = \"reduce-scatter\", size = {s}, hosts = [{a}, {b}, {c}], iterations = {n}, gap = {t}",
    "kind = \"collective\", operation = \"all-gather\", algorithm = \"direct\", size = {s}",
    "kind = \"collective\", operation = \"all-gather\", algorithm = \"halving-doubling\", hosts = [{a}, {b}], size = {s}, channels = {m}",
    "kind = \"collective\", operation = \"broadcast\", size = {s}, chunks = {m}, channels = {n}, placement = \"random\"",
    "kind = \"collective\", operation = \"all-to-all\", size = {s}, iterations = {m}",
    "kind = \"collective\", operation = \"all-to-all\", algorithm = \"pxn\", hosts = [{a}, {b}, {c}, {d}], ranks_per_server = 2, size = \"9KB\", \
     chunks = {m}, channels = {n}",
    "kind = \"collective\", operation = \"all-reduce\", algorithm = \"tree\", hosts = [{a}, {b}, {c}, {d}], ranks_per_server = 2, size = \"9KB\", \
     channels = {m}, chunks = 2",
    "kind = \"collective\", operation = \"reduce\", root = {m}, size = {s}, chunks = {n}, iterations = {m}",
    "kind = \"collective\", operation = \"gather\", hosts = [{a}, {b}, {c}], root = 2, size = {s}, channels = {m}",
    "kind = \"collective\", operation = \"scatter\", hosts = [{c}, {b}, {a}, {d}], root = 1, size = {s}, chunks = {m}",
    "kind = \"collective\", operation = \"all-reduce\", algorithm = \"auto\", size = {s}, channels = {n}",
    "kind = \"collective\", operation = \"all-to-all\", hosts = [{a}, {b}, {c}], matrix = [[9, 900, 0], [0, 0, 20000], [64, 64, 7]], iterations = {m}",
    "kind = \"collective\", operation = \"all-to-all\", algorithm = \"pxn\", hosts = [{a}, {b}, {c}, {d}], ranks_per_server = 2, \
     matrix = [[0, 99, 0, 9000], [500, 0, 0, 0], [0, 70, 0, 0], [5000, 5, 0, 0]], chunks = {m}",
    "kind = \"collective\", operation = \"all-to-all\", size = {l}, skew = 1.2, tokens = 16, placement = \"random\"",
    "kind = \"goal\", file = \"uneven.goal\", hosts = [{a}, {b}, {c}, {d}], chunks = {n}, channels = {m}, eager = {s}, start = {t}",
    "kind = \"goal\", file = \"uneven.goal\", hosts = [{a}, {c}, {b}, {d}], algorithm = \"auto\", ranks_per_server = 2",
    "kind = \"goal\", file = \"three.goal\", hosts = [{a}, {b}, {c}], overhead = {t}",
    "kind = \"goal\", file = \"three.goal\", placement = \"random\", eager = {s}, start = {t}, queue_pairs = \"tag\"",
    "kind = \"goal\", file = \"two.goal\", hosts = [{b}, {a}], calc_unit = \"3ns\"",
    "kind = \"goal\", file = \"sums.goal\", hosts = [{a}, {b}, {c}, {d}], algorithm = \"halving-doubling\", chunks = {n}, channels = {m}, overhead = {t}",
    "kind = \"goal\", file = \"sums.goal\", hosts = [{d}, {b}, {a}, {c}], algorithm = { all-reduce = \"tree\", all-to-all = \"pxn\" }, ranks_per_server = 2, \
     start = {t}, chunks = {m}",
    "kind = \"rpc\", server = {a}, request = {s}, count = {n}",
    "kind = \"rpc\", server = {a}, clients = [{b}, {c}], threads = {m}, request = {s}, response = \"1KB\", window = {n}, count = 20, \
     credits = \"loosened\", processing = \"1us\"",
    "kind = \"rpc\", server = {a}, threads = {n}, request = {s}, count = 8, credits = \"session\", session_credits = {m}, rx_ring = 8, warmup = {t}",
];

/// The schedules that tables of traffic name: a ring of three whose calculation goes on beside it, two that exchange messages of all
/// lengths, by number and by whoever comes first, and four that do collectives, all of them and in pairs, side by side and one after the other.
pub(crate) const FILES: &[(&str, &str)] = &[
    (
        "three.goal",
        "num_ranks 3\n\
         rank 0 {\nc: calc 2000\ns: send 9000b to 1 tag 1 cpu 1\ns requires c\nd: calc 3000\nd requires c\nr: recv 9000b from 2 tag 3 cpu 1\ne: calc 10\ne requires r\ne requires d\n}\n\
         rank 1 {\nr: recv 9000b from 0 tag 1\ns: send 9000b to 2 tag 2\ns requires r\nt: send 70000b to 0 tag 9\nt irequires r\n}\n\
         rank 2 {\nr: recv 9000b from -1 tag 2\ns: send 9000b to 0 tag 3\ns requires r\nm: send 5b to 2 tag 4\nn: recv 5b from 2 tag 4\ns requires n\n}\n",
    ),
    (
        "two.goal",
        "num_ranks 2\n\
         rank 0 {\na: send 0b to 1 tag 1\nb: send 1b to 1 tag 2\nc: send 20000b to 1 tag 3\nw: recv 1b from 1 tag -1\nx: recv 1b from -1 tag -1\nd: calc 500\nd requires w\n}\n\
         rank 1 {\na: recv 0b from 0 tag 3\nb: recv 1b from 0 tag 2\nc: recv 1b from 0 tag 1\ns: send 300b to 0 tag 7\ns requires b\nt: send 4096b to 0 tag 7\nt requires a\nt requires c\n}\n",
    ),
    (
        "uneven.goal",
        "num_ranks 4\ngroup 0: 2 0\n\
         rank 0 {\na: all-to-all 0b 900b 0b 20000b\nb: reduce 3000b root 2\nc: all-to-all 0b 0b group 0\nc requires a\n}\n\
         rank 1 {\nw: calc 7000\na: all-to-all 1b 0b 0b 0b\na requires w\nb: reduce 3000b root 2\nb requires a\n}\n\
         rank 2 {\na: all-to-all 0b 0b 50b 0b\nb: reduce 3000b root 2\nc: all-to-all 8b 900b group 0\n}\n\
         rank 3 {\na: all-to-all 5000b 500b 50b 5b\nb: reduce 3000b root 2\nb irequires a\n}\n",
    ),
    (
        "sums.goal",
        "num_ranks 4\ngroup 0: 0 1\ngroup 1: 3 2\n\
         rank 0 {\nc: calc 900\na: all-reduce 9000b group 0\na requires c\nb: all-reduce 30000b cpu 1\nd: all-to-all 7000b\nd requires a\ne: broadcast 5000b\n}\n\
         rank 1 {\na: all-reduce 9000b group 0\nb: all-reduce 30000b\nd: all-to-all 7000b\nd requires a\ne: broadcast 5000b\ne irequires d\ns: send 3000b to 2\ns requires e\n}\n\
         rank 2 {\na: all-gather 80b group 1\nb: all-reduce 30000b\nb requires a\nd: all-to-all 7000b\ne: broadcast 5000b\nr: recv 3000b from 1\n}\n\
         rank 3 {\nc: calc 4000\na: all-gather 80b group 1\na requires c\nb: all-reduce 30000b\nd: all-to-all 7000b\ne: broadcast 5000b\ne requires b\n}\n",
    ),
];

/// What any table of traffic may say besides.
const OF_TRAFFIC: &[&str] = &[
    "op = \"send\"",
    "op = \"read\"",
    "op = \"write\"",
    "op = \"fetch-add\"",
    "op = \"compare-swap\"",
    "priority = 0",
    "priority = 5",
    "priority = 7",
    "control = \"none\"",
    "control = \"swift\"",
    "control = \"dctcp\"",
    "control = \"homa\"",
    "control = { law = \"dcqcn\", preset = \"hpcc\" }",
    "start = \"7us\"",
    "start = \"300us\"",
    "name = \"table\"",
];

/// Keys of all else.
const KEYS: &[&str] = &[
    "stop = \"50us\"",
    "stop = \"1ms\"",
    "stop = \"20ms\"",
    "start_jitter = \"0s\"",
    "start_jitter = \"5us\"",
    "switch.routing = \"spray\"",
    "switch.routing = \"adaptive\"",
    "switch.routing = \"flowlet\"",
    "switch.flowlet_gap = \"1us\"",
    "switch.flowlet_table = 2",
    "switch.wcmp = true",
    "transport.paths = \"ops\"",
    "transport.paths = \"reps\"",
    "transport.paths = { by = \"reps\", entropies = 3, explore = 0, freeze = \"20us\" }",
    "switch.int = true",
    "switch.buffer = \"20KB\"",
    "switch.buffer = \"60KB\"",
    "switch.buffer = \"300KB\"",
    "switch.alpha = \"1/8\"",
    "switch.alpha = 16",
    "switch.pfc = false",
    "switch.pfc = false",
    "switch.pfc = { headroom = \"exact\" }",
    "switch.pfc = { headroom = \"exact\", alpha = 1, reserve = \"2KB\", resume = \"1KB\" }",
    "switch.ecn = false",
    "switch.ecn = { kmin = \"5KB\", kmax = \"20KB\", pmax = 0.5 }",
    "switch.ecn = { step = \"10KB\", at = \"enqueue\" }",
    "switch.ecn = { kmin = \"0B\", kmax = \"0B\", rate = \"100Gb/s\" }",
    "switch.queues = \"per-flow\"",
    "switch.ets = { 3 = 60, 0 = 40 }",
    "switch.ets = { 3 = 50, 1 = 49, 5 = 1 }",
    "switch.trimming = true",
    "switch.trimming = { threshold = \"4KB\", headers = \"1KB\" }",
    "switch.trimming = { headers_per_packet = 1, random_tail = false, return_to_sender = false }",
    "switch.classes = { data = 3, ack = 6 }",
    "switch.classes = { data = 2, ack = 0, cnp = 0, pause = [2] }",
    "switch.classes = { pause = [0, 1, 2, 3, 4, 5, 6, 7] }",
    "switch.on = [{ rate = {r}, ecn = false }, { switches = [{switch}], buffer = \"100KB\", alpha = 2 }]",
    "nic.mtu = 256",
    "nic.mtu = 4096",
    "nic.mtu = 1000",
    "nic.model = \"delaying\"",
    "nic.model = \"srnic\"",
    "nic.model = \"tonic\"",
    "nic.model = \"swcc\"",
    "nic.model = \"hdl\"",
    "nic.model = \"bluefield3\"",
    "nic.model = \"soft-roce\"",
    "nic.model = \"cx5\"",
    "nic.rx_fifo = \"64KB\"",
    "nic.rx_rate = \"5Gb/s\"",
    "nic.ets = { 3 = 90, 0 = 10 }",
    "nic.on = [{ hosts = [{host}], mtu = 512 }]",
    "nic.on = [{ hosts = [{host}], model = \"cx6\" }]",
    "nic.on = [{ hosts = [{host}], rx_rate = \"1Gb/s\", rx_fifo = \"200KB\" }]",
    "transport.service = \"UC\"",
    "transport.recovery = \"irn\"",
    "transport.recovery = \"srnic\"",
    "transport.recovery = \"reno\"",
    "transport.recovery = \"newreno\"",
    "transport.recovery = \"sack\"",
    "transport.recovery = \"ndp\"",
    "transport.recovery = \"ndp\"",
    "transport.timeout = \"100us\"",
    "transport.timeout = \"2ms\"",
    "transport.timeout = \"0s\"",
    "transport.retry = 0",
    "transport.retry = 1",
    "transport.rnr_retry = 1",
    "transport.min_rnr_timer = \"1us\"",
    "transport.ack_every = 4",
    "transport.ack_every = 64",
    "transport.ring = 1",
    "transport.layout = \"cc\"",
    "transport.layout = { words = 4, time = false }",
    "transport.layout = \"irn\"",
    "transport.max_rd_atomic = 1",
    "transport.max_in_flight = 8",
    "transport.max_in_flight = 8000",
    "transport.bitmaps = 1",
    "transport.bitmaps = 0",
    "transport.initial_window = 1",
    "transport.control = \"none\"",
    "transport.control = \"none\"",
    "transport.control = { law = \"dcqcn\", preset = \"hpcc\" }",
    "transport.control = { law = \"dcqcn\", preset = \"surf\" }",
    "transport.control = { law = \"dcqcn\", preset = \"isekai\", cnp_scope = \"port\" }",
    "transport.control = \"homa\"",
    "transport.control = { law = \"homa\", unscheduled = \"2KB\", overcommit = 1, resend = \"100us\", priorities = 4 }",
    "transport.control = \"timely\"",
    "transport.control = \"dctcp\"",
    "transport.control = { law = \"dctcp\", preset = \"hpcc\" }",
    "transport.control = \"hpcc\"",
    "transport.control = \"powertcp\"",
    "transport.control = \"theta-powertcp\"",
    "transport.control = \"swift\"",
    "transport.control = { law = \"swift\", preset = \"falcon\" }",
    "transport.control = \"nscc\"",
    "transport.control = { law = \"program\", elf = \"firmware/dcqcn.elf\" }",
    "transport.control = { law = \"program\", elf = \"firmware/hpcc.elf\" }",
    "transport.on = [{ switches = [\"up*\"] }]",
    "transport.on = [{ switches = [\"up*\"], control = \"swift\" }]",
    "transport.on = [{ hosts = [\"*.1\"], control = \"hpcc\" }]",
    "transport.on = [{ hosts = [\"*.1\"], control = { law = \"program\", elf = \"firmware/dcqcn.elf\" } }]",
    "transport.on = [{ switches = [{switch}], control = \"none\" }, { hosts = [{host}], control = \"nscc\" }]",
    "application.rx_depth = 1",
    "application.rx_time = \"2us\"",
    "machine.cache = \"768KB\"",
    "machine.io_ways = 0",
    "machine.hostcc = true",
    "measure.sample = \"0s\"",
    "measure.sample = \"500ns\"",
    "measure.sample = \"5us\"",
    "faults.loss = 0.01",
    "faults.loss = { to_bad = 0.01, to_good = 0.3 }",
    "faults.corrupt = 0.02",
    "faults.ber = 1e-6",
    "faults.duplicate = 0.02",
    "faults.reorder = 0.05",
    "faults.reorder = { share = 0.1, by = \"1us\" }",
    "faults.delay = \"2us\"",
    "faults.delay = { min = \"100ns\", max = \"4us\" }",
    "faults.detect = \"20us\"",
    "faults.detect = \"never\"",
    "faults.detect_local = \"3us\"",
    "faults.flap = { up = \"80us\", down = \"20us\" }",
    "at = [{ time = {t}, set = { \"switch.ecn.kmin\" = \"2KB\" } }]",
    "at = [{ time = {t}, set = { \"switch.pfc.alpha\" = \"1/64\", \"switch.pfc.resume\" = \"500B\" } }, { time = {u}, switches = [\"s*\"], set = { \"switch.alpha\" = 4 } }]",
    "at = [{ time = {t}, set = { \"transport.control.g\" = \"1/64\" } }]",
    "at = [{ time = {t}, set = { \"transport.control.rc\" = \"2Gb/s\" } }]",
    "at = [{ time = {t}, set = { \"transport.control.window\" = \"3KB\" } }]",
];

/// What may befall a link.
const OF_LINKS: &[&str] = &[
    "down = true",
    "loss = 0.1",
    "loss = 1",
    "corrupt = 0.1",
    "duplicate = 0.5",
    "reorder = 0.3",
    "delay = \"10us\"",
    "rate = \"10Mb/s\"",
    "rate = \"1Gb/s\"",
    "flap = { up = \"30us\", down = \"30us\" }",
    "pause_storm = true",
    "cnp = { threshold = \"1Gb/s\", window = \"5us\", cooldown = \"3us\" }",
];

/// And a switch.
const OF_SWITCHES: &[&str] = &["down = true", "flap = { up = \"40us\", down = \"30us\" }"];

/// A scenario, drawn.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    network: &'static str,
    rates: [&'static str; 2],
    delays: [&'static str; 2],
    numbers: [u32; 2],
    tables: Vec<Table>,
    keys: Vec<&'static str>,
    rules: Vec<Rule>,
    hosts: Index,
    seed: u32,
}

/// A table of traffic, drawn.
#[derive(Clone, Debug)]
struct Table {
    kind: &'static str,
    hosts: [Index; 4],
    sizes: [&'static str; 2],
    times: [usize; 2],
    numbers: [u32; 2],
    keys: Vec<&'static str>,
}

/// A table of `[[faults.on]]`, drawn.
#[derive(Clone, Debug)]
struct Rule {
    place: Index,
    both_ways: bool,
    times: [usize; 2],
    ends: bool,
    of_link: Vec<&'static str>,
    of_switch: Option<&'static str>,
}

/// Any scenario.
pub(crate) fn any_scenario() -> impl Strategy<Value = Drawn> {
    let pair = |of: &'static [&'static str]| [select(of), select(of)];
    let numbers = || [1u32..6, 1u32..5];
    // A first time, and how much later in the list the second is.
    let times = || [0..TIMES.len() - 1, 1..TIMES.len()];
    let table = move || {
        let hosts = [any::<Index>(), any::<Index>(), any::<Index>(), any::<Index>()];
        (select(TRAFFIC), hosts, pair(SIZES), times(), numbers(), vec(select(OF_TRAFFIC), 0..3)).prop_map(
            |(kind, hosts, sizes, times, numbers, keys)| Table { kind, hosts, sizes, times, numbers, keys },
        )
    };
    let rule = || {
        let of_switch = prop::option::weighted(0.2, select(OF_SWITCHES));
        let ends = prop::bool::weighted(0.8);
        (any::<Index>(), any::<bool>(), times(), ends, vec(select(OF_LINKS), 1..3), of_switch).prop_map(
            |(place, both_ways, times, ends, of_link, of_switch)| Rule {
                place,
                both_ways,
                times,
                ends,
                of_link,
                of_switch,
            },
        )
    };
    let rules = prop_oneof![2 => Just(Vec::new()), 1 => vec(rule(), 1..4)];
    let network = (select(NETWORKS), pair(RATES), pair(DELAYS), numbers());
    (network, vec(table(), 1..4), vec(select(KEYS), 0..10), rules, any::<Index>(), 0..1_000_000u32).prop_map(
        |((network, rates, delays, numbers), tables, keys, rules, hosts, seed)| Drawn {
            network,
            rates,
            delays,
            numbers,
            tables,
            keys,
            rules,
            hosts,
            seed,
        },
    )
}

/// `text` with what stands in braces filled in.
fn filled(text: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// The two times that were drawn, one before the other.
fn two(times: [usize; 2]) -> [&'static str; 2] {
    let [first, later] = times;
    [TIMES[first], TIMES[(first + later).min(TIMES.len() - 1)]]
}

fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}

/// Those of `pairs` of a key and its value whose key no earlier one has, nor `before`.
fn once(before: &str, pairs: &[&'static str]) -> Vec<&'static str> {
    let key = |pair: &'static str| pair.split(" = ").next().unwrap_or(pair);
    let mut known: BTreeSet<&str> =
        before.split([',', '{']).filter_map(|part| part.trim().split(" = ").next()).collect();
    pairs.iter().copied().filter(|pair| known.insert(key(pair))).collect()
}

impl Drawn {
    /// The scenario's text, a key on each line; `None` where it has no network, as that of one host.
    pub(crate) fn text(&self) -> Option<String> {
        let [n, m] = self.numbers;
        let mut values = vec![("n", n.to_string()), ("m", m.to_string())];
        values.extend([("r", self.rates[0]), ("q", self.rates[1])].map(|(name, rate)| (name, quoted(rate))));
        values.extend(
            [("d", self.delays[0]), ("e", self.delays[1])].map(|(name, delay)| (name, quoted(delay))),
        );
        let network = filled(self.network, &values);
        let alone = format!(
            "switch.pfc = false\ntransport.timeout = \"0s\"\ntopology = {{ {network} }}\ntraffic = [{{ kind = \"permutation\", size = 1 }}]\n"
        );
        let graph = Scenario::parse(&alone, "here.toml", &[]).ok()?.topology.graph;
        let mut hosts: Vec<&str> = graph
            .hosts
            .iter()
            .map(|nic| nic.split_once('.').map_or(nic.as_str(), |(host, _)| host))
            .collect();
        hosts.dedup();
        values.push(("host", quoted(self.hosts.get(&hosts))));
        values.push(("switch", quoted(graph.switches.first().map_or("none", String::as_str))));
        values.extend(["t", "u"].into_iter().zip(two(self.tables[0].times).map(quoted)));

        let mut text = format!("seed = {}\n", self.seed);
        for key in once("", &self.keys) {
            let _ = writeln!(text, "{}", filled(key, &values));
        }
        let _ = writeln!(text, "topology = {{ {network} }}");
        let tables: Vec<String> = self.tables.iter().map(|table| table.text(&hosts)).collect();
        let _ = writeln!(text, "traffic = [\n{}]", tables.concat());
        let names = [graph.hosts.as_slice(), graph.switches.as_slice()].concat();
        let ends =
            |link: &roci_fabric::graph::Link| [link.a, link.b].map(|node| names[node.0 as usize].clone());
        let links: Vec<[String; 2]> = graph.links.iter().map(ends).collect();
        let rules: Vec<String> = self.rules.iter().map(|rule| rule.text(&links, &graph.switches)).collect();
        if !rules.is_empty() {
            let _ = writeln!(text, "faults.on = [\n{}]", rules.concat());
        }
        Some(text)
    }
}

impl Table {
    fn text(&self, hosts: &[&str]) -> String {
        let mut left = hosts.to_vec();
        let mut taken = self.hosts.iter().map(|place| match left.len() {
            0 => hosts[place.index(hosts.len())],
            more => left.swap_remove(place.index(more)),
        });
        let mut values: Vec<(&str, String)> = Vec::new();
        values.extend(["a", "b", "c", "d"].into_iter().zip(taken.by_ref().map(quoted)));
        values.extend(["s", "l"].into_iter().zip(self.sizes.map(quoted)));
        values.extend(["t", "u"].into_iter().zip(two(self.times).map(quoted)));
        values.extend(["n", "m"].into_iter().zip(self.numbers.map(|number| number.to_string())));
        let mut parts = vec![filled(self.kind, &values)];
        parts.extend(
            once(self.kind.split(" flows").next().unwrap_or_default(), &self.keys)
                .into_iter()
                .map(str::to_owned),
        );
        format!("{{ {} }},\n", parts.join(", "))
    }
}

impl Rule {
    fn text(&self, links: &[[String; 2]], switches: &[String]) -> String {
        let mut parts = Vec::new();
        match self.of_switch {
            Some(what) if !switches.is_empty() => {
                parts.push(format!("switch = \"{}\"", self.place.get(switches)));
                parts.push(what.to_owned());
            }
            _ => {
                let [a, b] = self.place.get(links);
                parts.push(format!("link = \"{a}{}{b}\"", if self.both_ways { '-' } else { '>' }));
                parts.extend(once("", &self.of_link).into_iter().map(str::to_owned));
            }
        }
        let [from, until] = two(self.times);
        parts.push(format!("from = \"{from}\""));
        if self.ends {
            parts.push(format!("until = \"{until}\""));
        }
        format!("{{ {} }},\n", parts.join(", "))
    }
}
